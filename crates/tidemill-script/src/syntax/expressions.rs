//! Parses expressions: operators by precedence, operands, indices, literals, handles.
//!
//! From loosest to tightest: `||`, `&&`, `|`, `&`, comparisons, `:`, `+ -`, `* / \` and their elementwise forms, prefix
//! `- + !`, then powers, transposes and indices, which have the same precedence and associate from the left.

use super::ast::{AnonymousDef, BinaryOp, Expr, ExprKind, Ident, Link, LinkOp, Param, Step, StepKind, Target, UnaryOp};
use super::parser::{NESTING_MAX, Parser};
use super::token::{Keyword, Parse, SyntaxError, TokenKind};
use super::unparse;
use crate::source::Span;
use std::sync::Arc;

/// An operator between operands.
#[derive(Clone, Copy)]
enum Infix {
    Link(LinkOp),
    Range,
}

const RANGE_LEVEL: u8 = 6;

/// Returns the precedence of an operator between two operands; higher levels bind tighter.
fn level(op: &Infix) -> u8 {
    use BinaryOp::*;
    match op {
        Infix::Link(LinkOp::OrOr) => 1,
        Infix::Link(LinkOp::AndAnd) => 2,
        Infix::Link(LinkOp::Binary(Or)) => 3,
        Infix::Link(LinkOp::Binary(And)) => 4,
        Infix::Link(LinkOp::Binary(Eq | Ne | Lt | Le | Gt | Ge)) => 5,
        Infix::Range => RANGE_LEVEL,
        Infix::Link(LinkOp::Binary(Add | Sub)) => 7,
        Infix::Link(LinkOp::Binary(_)) => 8,
    }
}

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(|parser| parser.binary(0))
    }

    /// Parses an expression, or an assignment used as one: in parentheses, as an argument, or on the right of another.
    pub(super) fn assignment_or_expression(&mut self) -> Parse<Expr> {
        let start = self.start();
        let expr = self.expression()?;
        let op = match self.token.kind {
            TokenKind::Assign => None,
            TokenKind::OpAssign(op) => Some(op),
            _ => return Ok(expr),
        };
        self.check_may_assign()?;
        let below = self.height;
        let target = Box::new(self.to_target(expr)?);
        self.advance()?;
        let value = Box::new(self.nested(Parser::assignment_or_expression)?);
        self.grow(below.max(self.height))?;
        self.variables.insert(target.name.name.clone());
        Ok(Expr { kind: ExprKind::Assign { target, op, value }, span: self.span_from(start) })
    }

    /// Returns an error inside of anonymous functions, which may not assign.
    fn check_may_assign(&self) -> Parse<()> {
        if self.anonymous_depth == 0 {
            return Ok(());
        }
        let op = self.text_of(self.token.span);
        Err(self.error(format!("invalid use of operator {op} in anonymous function")))
    }

    /// Parses operands joined by operators that bind at least as tight as `level_min`.
    fn binary(&mut self, level_min: u8) -> Parse<Expr> {
        let start = self.start();
        let mut left = self.prefix()?;
        let mut links: Vec<Link> = Vec::new();
        while let Some(op) = self.infix() {
            let level = level(&op);
            if level < level_min {
                break;
            }
            let left_height = self.height;
            self.advance()?;
            let right = self.binary(level + 1)?;
            let below = left_height.max(self.height);
            match op {
                Infix::Link(op) => {
                    // The chain counts as one level, at its end.
                    self.height = below;
                    links.push(Link { op, right, span: self.span_from(start) });
                }
                Infix::Range => {
                    let before = self.chain(left, std::mem::take(&mut links), below)?;
                    self.grow(self.height)?;
                    let kind = self.range(before, Box::new(right))?;
                    left = Expr { kind, span: self.span_from(start) };
                }
            }
        }
        let height = self.height;
        self.chain(left, links, height)
    }

    /// Joins an operand and the links behind it, if there are any, into one expression. `below` is the greatest height
    /// of the operands.
    fn chain(&mut self, first: Expr, links: Vec<Link>, below: usize) -> Parse<Expr> {
        self.height = below;
        let Some(span) = links.last().map(|link| link.span) else { return Ok(first) };
        self.grow(below)?;
        Ok(Expr { kind: ExprKind::Chain(Box::new(first), links), span })
    }

    /// Parses the rest of a range whose start and second part are parsed.
    fn range(&mut self, start: Expr, second: Box<Expr>) -> Parse<ExprKind> {
        let start = Box::new(start);
        if !self.at(&TokenKind::Colon) {
            return Ok(ExprKind::Range { start, step: None, stop: second });
        }
        self.advance()?;
        let below = self.height;
        let stop = Box::new(self.binary(RANGE_LEVEL + 1)?);
        self.grow(below.max(self.height))?;
        Ok(ExprKind::Range { start, step: Some(second), stop })
    }

    /// Returns the operator that comes next. In a matrix or cell literal, a sign with white space before it and none
    /// after it begins a new element.
    fn infix(&self) -> Option<Infix> {
        let token = &self.token;
        Some(match token.kind {
            TokenKind::Plus | TokenKind::Minus if token.separated && !token.space_after => return None,
            TokenKind::Plus => Infix::Link(LinkOp::Binary(BinaryOp::Add)),
            TokenKind::Minus => Infix::Link(LinkOp::Binary(BinaryOp::Sub)),
            TokenKind::Infix(op) => Infix::Link(LinkOp::Binary(op)),
            TokenKind::AndAnd => Infix::Link(LinkOp::AndAnd),
            TokenKind::OrOr => Infix::Link(LinkOp::OrOr),
            TokenKind::Colon => Infix::Range,
            _ => return None,
        })
    }

    /// Returns the prefix operator that comes next.
    fn prefix_op(&self) -> Option<UnaryOp> {
        match self.token.kind {
            TokenKind::Plus => Some(UnaryOp::Plus),
            TokenKind::Minus => Some(UnaryOp::Minus),
            TokenKind::Not => Some(UnaryOp::Not),
            _ => None,
        }
    }

    /// Parses an operand with its prefix operators, which bind looser than powers and transposes: `-x^2` is `-(x^2)`.
    fn prefix(&mut self) -> Parse<Expr> {
        let Some(op) = self.prefix_op() else { return self.power() };
        self.signed(op, Parser::prefix)
    }

    /// Parses a prefix operator and its operand. `++x` and `--x` change the variable.
    fn signed(&mut self, op: UnaryOp, operand: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        match op {
            UnaryOp::Plus if self.increment_follows() => self.pre_increment(op, BinaryOp::Add, operand),
            UnaryOp::Minus if self.increment_follows() => self.pre_increment(op, BinaryOp::Sub, operand),
            _ => self.unary(op, operand),
        }
    }

    /// Whether a double sign before a name comes next. In anonymous functions, which may not assign, it is two signs.
    fn increment_follows(&self) -> bool {
        let (before, after) = self.source.text.split_at(self.start());
        let Some(&sign) = after.as_bytes().first() else { return false };
        let rest = after.trim_start_matches(char::from(sign));
        self.anonymous_depth == 0
            && after.len() - rest.len() == 2
            && before.as_bytes().last() != Some(&sign)
            && rest.trim_start_matches([' ', '\t']).starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    /// Parses `++x` or `--x`. Before an operand that cannot be assigned, such as `x'`, it is two signs.
    fn pre_increment(&mut self, sign: UnaryOp, op: BinaryOp, operand: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        let start = self.start();
        self.advance()?;
        let inner = self.start();
        self.advance()?;
        let operand = self.nested(operand)?;
        self.grow(self.height)?;
        if let Ok(target) = self.incremented(operand.clone()) {
            let value = Box::new(Expr { kind: ExprKind::Number(1.0), span: Span::new(start, inner + 1) });
            let kind = ExprKind::Assign { target: Box::new(target), op: Some(op), value };
            return Ok(Expr { kind, span: self.span_from(start) });
        }
        self.grow(self.height)?;
        let once = Expr { kind: ExprKind::Unary(sign, Box::new(operand)), span: self.span_from(inner) };
        Ok(Expr { kind: ExprKind::Unary(sign, Box::new(once)), span: self.span_from(start) })
    }

    fn unary(&mut self, op: UnaryOp, operand: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        let start = self.start();
        self.advance()?;
        let operand = Box::new(self.nested(operand)?);
        self.grow(self.height)?;
        Ok(Expr { kind: ExprKind::Unary(op, operand), span: self.span_from(start) })
    }

    /// Parses powers, transposes and indices from the left: `x.^2'` is `(x.^2)'`.
    fn power(&mut self) -> Parse<Expr> {
        let start = self.start();
        let mut left = self.indexed()?;
        loop {
            let height = self.height;
            let kind = match self.token.kind {
                TokenKind::Transpose { conjugate } => {
                    self.advance()?;
                    ExprKind::Transpose { operand: Box::new(left), conjugate }
                }
                TokenKind::Infix(op @ (BinaryOp::Pow | BinaryOp::MatPow)) => {
                    self.advance()?;
                    let right = self.exponent()?;
                    let link = Link { op: LinkOp::Binary(op), right, span: self.span_from(start) };
                    ExprKind::Chain(Box::new(left), vec![link])
                }
                TokenKind::Increment | TokenKind::Decrement => self.post_increment(left)?,
                _ if self.at_step() => {
                    left = self.steps(left, start)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.grow(height.max(self.height))?;
            left = Expr { kind, span: self.span_from(start) };
        }
    }

    /// Parses `x++` or `x--`, behind its operand.
    fn post_increment(&mut self, operand: Expr) -> Parse<ExprKind> {
        self.check_may_assign()?;
        let op = if self.at(&TokenKind::Increment) { BinaryOp::Add } else { BinaryOp::Sub };
        let target = Box::new(self.incremented(operand)?);
        self.advance()?;
        Ok(ExprKind::PostIncrement { target, op })
    }

    /// Parses the right side of `^`: an operand with its own indices and signs, but without powers. `2^-1^2` is
    /// `(2^-1)^2`.
    fn exponent(&mut self) -> Parse<Expr> {
        match self.prefix_op() {
            Some(op) => self.signed(op, Parser::exponent),
            None => {
                let start = self.start();
                let operand = self.indexed()?;
                if !matches!(self.token.kind, TokenKind::Increment | TokenKind::Decrement) {
                    return Ok(operand);
                }
                let kind = self.post_increment(operand)?;
                self.grow(self.height)?;
                Ok(Expr { kind, span: self.span_from(start) })
            }
        }
    }

    /// Parses an operand and the steps into it.
    pub(super) fn indexed(&mut self) -> Parse<Expr> {
        let start = self.start();
        let base = self.primary()?;
        self.steps(base, start)
    }

    /// Whether a step comes next. In a matrix or cell literal, a bracket after white space begins a new element.
    fn at_step(&self) -> bool {
        match self.token.kind {
            TokenKind::ParenOpen | TokenKind::BraceOpen => !self.token.separated,
            TokenKind::Dot => true,
            _ => false,
        }
    }

    fn steps(&mut self, base: Expr, start: usize) -> Parse<Expr> {
        let mut steps = Vec::new();
        let mut height = self.height;
        while self.at_step() {
            let step_start = self.start();
            self.height = 0;
            let kind = match self.token.kind {
                TokenKind::ParenOpen => StepKind::Paren(self.arguments(&TokenKind::ParenClose)?),
                TokenKind::BraceOpen => StepKind::Brace(self.arguments(&TokenKind::BraceClose)?),
                _ => self.field()?,
            };
            height = height.max(self.height);
            steps.push(Step { kind, span: self.span_from(step_start) });
        }
        self.height = height;
        if steps.is_empty() {
            return Ok(base);
        }
        self.grow(height)?;
        Ok(Expr { kind: ExprKind::Index(Box::new(base), steps), span: self.span_from(start) })
    }

    /// `.name` or `.(expression)`.
    fn field(&mut self) -> Parse<StepKind> {
        self.advance()?;
        if !self.at(&TokenKind::ParenOpen) {
            return Ok(StepKind::Field(self.ident("a field's name")?));
        }
        self.advance()?;
        let name = self.expression()?;
        self.expect(&TokenKind::ParenClose, "')'")?;
        Ok(StepKind::DynamicField(Box::new(name)))
    }

    /// Parses the arguments between the bracket that comes next and `close`.
    fn arguments(&mut self, close: &TokenKind) -> Parse<Vec<Expr>> {
        self.advance()?;
        let mut arguments = Vec::new();
        let mut height = 0;
        let what = if *close == TokenKind::ParenClose { "',' or ')'" } else { "',' or '}'" };
        self.index_depth += 1;
        while !self.at(close) {
            arguments.push(self.argument(close)?);
            height = height.max(self.height);
            if !self.at(close) {
                self.expect(&TokenKind::Comma, what)?;
                if self.at(close) {
                    return Err(self.expected("an argument after ','"));
                }
            }
        }
        self.index_depth -= 1;
        self.height = height;
        self.advance()?;
        Ok(arguments)
    }

    fn argument(&mut self, close: &TokenKind) -> Parse<Expr> {
        if !self.at(&TokenKind::Colon) {
            return self.assignment_or_expression();
        }
        let span = self.token.span;
        self.advance()?;
        if !self.at(close) && !self.at(&TokenKind::Comma) {
            return Err(self.expected("',' or the index's closing bracket after ':'"));
        }
        self.height = 1;
        Ok(Expr { kind: ExprKind::Colon, span })
    }

    /// Parses an operand.
    fn primary(&mut self) -> Parse<Expr> {
        let span = self.token.span;
        self.height = 1;
        let kind = match &mut self.token.kind {
            TokenKind::Number(value) => ExprKind::Number(*value),
            TokenKind::Imaginary(value) => ExprKind::Imaginary(*value),
            TokenKind::Integer { class, bits } => ExprKind::Integer { class: *class, bits: *bits },
            TokenKind::Str { bytes, double_quoted } => {
                ExprKind::Str { bytes: std::mem::take(bytes), double_quoted: *double_quoted }
            }
            TokenKind::Name => ExprKind::Name(self.intern(self.text_of(span))),
            TokenKind::Keyword(Keyword::End) if self.index_depth > 0 => ExprKind::End,
            TokenKind::Keyword(Keyword::FileName) => {
                ExprKind::Str { bytes: self.source.name.clone().into_bytes(), double_quoted: true }
            }
            TokenKind::Keyword(Keyword::LineNumber) => {
                ExprKind::Number(f64::from(self.source.position(span.start).line))
            }
            TokenKind::ParenOpen => return self.parenthesized(),
            TokenKind::BracketOpen => return self.literal(&TokenKind::BracketClose),
            TokenKind::BraceOpen => return self.literal(&TokenKind::BraceClose),
            TokenKind::At => return self.handle(),
            TokenKind::Colon => {
                return Err(self.error("':' stands alone only as an index, as in 'x(:)'"));
            }
            _ => return Err(self.expected("an expression")),
        };
        self.advance()?;
        Ok(Expr { kind, span })
    }

    fn parenthesized(&mut self) -> Parse<Expr> {
        self.advance()?;
        let inner = self.assignment_or_expression()?;
        self.expect(&TokenKind::ParenClose, "')'")?;
        *self.parens.entry((inner.span.start, inner.span.end)).or_default() += 1;
        Ok(inner)
    }

    /// Parses a matrix or a cell: rows of elements.
    fn literal(&mut self, close: &TokenKind) -> Parse<Expr> {
        let start = self.start();
        let is_matrix = *close == TokenKind::BracketClose;
        self.advance()?;
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        let mut row: Vec<Expr> = Vec::new();
        let mut height = 0;
        // Whether an element may come here: at a row's beginning, after a comma, or after white space.
        let mut element_may_follow = true;
        // A comma before a row's first element has no effect.
        let mut comma_may_lead = true;
        loop {
            match &self.token.kind {
                kind if kind == close => break,
                TokenKind::Semicolon | TokenKind::Newline => {
                    rows.extend((!row.is_empty()).then(|| std::mem::take(&mut row)));
                    (element_may_follow, comma_may_lead) = (true, true);
                    self.advance()?;
                }
                TokenKind::Comma if !element_may_follow || row.is_empty() && comma_may_lead => {
                    (element_may_follow, comma_may_lead) = (true, false);
                    self.advance()?;
                }
                _ if element_may_follow || self.token.separated => {
                    row.push(self.assignment_or_expression()?);
                    height = height.max(self.height);
                    element_may_follow = false;
                }
                _ if is_matrix => return Err(self.expected("',', ';' or ']'")),
                _ => return Err(self.expected("',', ';' or '}'")),
            }
        }
        rows.extend((!row.is_empty()).then_some(row));
        self.advance()?;
        self.grow(height)?;
        let kind = if is_matrix { ExprKind::Matrix(rows) } else { ExprKind::Cell(rows) };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    /// `@name` or `@(parameters) body`.
    fn handle(&mut self) -> Parse<Expr> {
        let start = self.start();
        self.advance()?;
        if self.at(&TokenKind::ParenOpen) {
            return self.anonymous(start);
        }
        let first = self.ident("a function's name or '(' after '@'")?;
        let mut end = first.span.end;
        while self.at(&TokenKind::Dot) && self.token.span.start == end {
            self.advance()?;
            end = self.ident("a name after '.'")?.span.end;
        }
        let name = self.intern(self.text_of(Span { start: first.span.start, end }));
        self.height = 1;
        Ok(Expr { kind: ExprKind::Handle(name), span: self.span_from(start) })
    }

    fn anonymous(&mut self, start: usize) -> Parse<Expr> {
        let outer_index_depth = std::mem::take(&mut self.index_depth);
        self.anonymous_depth += 1;
        let params = self.parameters()?;
        let body = self.expression()?;
        if matches!(self.token.kind, TokenKind::Assign | TokenKind::OpAssign(_)) {
            self.check_may_assign()?;
        }
        self.anonymous_depth -= 1;
        self.index_depth = outer_index_depth;
        self.grow(self.height)?;
        let text = unparse::anonymous(&params, &body, self.source, &self.parens);
        let definition = AnonymousDef { params, body, text };
        Ok(Expr { kind: ExprKind::Anonymous(Arc::new(definition)), span: self.span_from(start) })
    }

    /// `(a, ~, b = 1)`: the parameters of a function.
    pub(super) fn parameters(&mut self) -> Parse<Vec<Param>> {
        self.expect(&TokenKind::ParenOpen, "'('")?;
        let mut params = Vec::new();
        while !self.at(&TokenKind::ParenClose) {
            params.push(self.parameter()?);
            if !self.at(&TokenKind::ParenClose) {
                self.expect(&TokenKind::Comma, "',' or ')'")?;
                if self.at(&TokenKind::ParenClose) {
                    return Err(self.expected("a parameter after ','"));
                }
            }
        }
        self.advance()?;
        Ok(params)
    }

    fn parameter(&mut self) -> Parse<Param> {
        if self.at(&TokenKind::Not) {
            let span = self.token.span;
            self.advance()?;
            return Ok(Param::Ignored(span));
        }
        let name = self.ident("a parameter's name")?;
        let default = if self.accept(&TokenKind::Assign)? { Some(self.expression()?) } else { None };
        Ok(Param::Named(name, default))
    }

    /// Returns the target of `++` or `--`. A variable may be in parentheses.
    fn incremented(&self, operand: Expr) -> Parse<Target> {
        match operand.kind {
            ExprKind::Name(name) => {
                let span = operand.span;
                Ok(Target { name: Ident { name, span }, steps: Vec::new(), span })
            }
            _ => self.to_target(operand),
        }
    }

    /// Turns an expression into the target of an assignment.
    pub(super) fn to_target(&self, expr: Expr) -> Parse<Target> {
        let is_constant = matches!(
            expr.kind,
            ExprKind::Number(_) | ExprKind::Imaginary(_) | ExprKind::Integer { .. } | ExprKind::Str { .. }
        );
        let has_parens = |e: &Expr| self.parens.contains_key(&(e.span.start, e.span.end));
        let span = expr.span;
        match expr.kind {
            ExprKind::Name(ref name) if !has_parens(&expr) => {
                Ok(Target { name: Ident { name: name.clone(), span }, steps: Vec::new(), span })
            }
            ExprKind::Index(ref base, _) if has_parens(&expr) || has_parens(base) => Err(invalid_target("", span)),
            // Each step of a target makes a value inside of a value.
            ExprKind::Index(_, steps) if steps.len() > NESTING_MAX => {
                Err(SyntaxError::new(format!("more than {NESTING_MAX} steps into the target of an assignment"), span))
            }
            ExprKind::Index(base, steps) => match base.kind {
                ExprKind::Name(name) => Ok(Target { name: Ident { name, span: base.span }, steps, span }),
                _ => Err(invalid_target("", span)),
            },
            _ => Err(invalid_target(if is_constant { "constant " } else { "" }, span)),
        }
    }
}

fn invalid_target(what: &str, span: Span) -> Box<SyntaxError> {
    SyntaxError::new(format!("invalid {what}left hand side of assignment"), span)
}
