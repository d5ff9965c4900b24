//! Parses statements: assignments, blocks, declarations, commands.

use super::ast::{Block, Expr, ExprKind, Ident, Name, Stmt, StmtKind};
use super::command;
use super::parser::Parser;
use super::token::{Keyword, Parse, SyntaxError, TokenKind};
use crate::source::Span;

impl Parser<'_> {
    /// Parses statements up to the text's end, or a keyword that closes a block. `may_be_command`: the first statement
    /// may be a command, which it may not right after a condition without a separator.
    pub(super) fn block(&mut self, into: &mut Block, may_be_command: bool) -> Parse<()> {
        let mut may_be_command = may_be_command | self.skip_separators()?;
        loop {
            match self.token.kind {
                TokenKind::EndOfText => return Ok(()),
                TokenKind::Keyword(Keyword::Function) if self.nesting > 0 && self.function_depth == 0 => {
                    self.conditional_function(into)?;
                }
                TokenKind::Keyword(Keyword::Function) if self.ends_functions && self.function_depth > 0 => {
                    self.nested_function()?;
                }
                TokenKind::Keyword(keyword) if keyword.closes_block() => {
                    if keyword == Keyword::Function && self.function_depth > 0 {
                        self.next_function.get_or_insert(self.token.span);
                    }
                    return Ok(());
                }
                _ => self.statement(into, may_be_command)?,
            }
            may_be_command = true;
            self.skip_separators()?;
        }
    }

    /// Parses a block one level deeper.
    fn nested_block(&mut self, may_be_command: bool) -> Parse<Block> {
        let mut block = Vec::new();
        self.nested(|parser| parser.block(&mut block, may_be_command))?;
        Ok(block)
    }

    /// Parses the body of a loop, and the keyword after it.
    fn loop_body(&mut self, closing: Keyword) -> Parse<Block> {
        self.loop_depth += 1;
        let body = self.nested_block(false)?;
        self.loop_depth -= 1;
        self.close(closing)?;
        Ok(body)
    }

    /// Goes over line ends, commas and semicolons. Returns whether there were any.
    fn skip_separators(&mut self) -> Parse<bool> {
        let mut any = false;
        while matches!(self.token.kind, TokenKind::Newline | TokenKind::Semicolon | TokenKind::Comma) {
            self.advance()?;
            any = true;
        }
        Ok(any)
    }

    /// Goes over a statement's end. Returns whether its result is shown.
    fn statement_end(&mut self) -> Parse<bool> {
        match self.token.kind {
            TokenKind::Semicolon => {
                self.advance()?;
                Ok(false)
            }
            TokenKind::Comma | TokenKind::Newline => {
                self.advance()?;
                Ok(true)
            }
            TokenKind::EndOfText => Ok(true),
            TokenKind::Keyword(keyword) if keyword.closes_block() => Ok(true),
            _ => Err(self.expected("the statement's end")),
        }
    }

    fn statement(&mut self, into: &mut Block, may_be_command: bool) -> Parse<()> {
        let start = self.start();
        let kind = match self.token.kind {
            TokenKind::Keyword(Keyword::Spmd) => return self.spmd(into),
            TokenKind::Keyword(Keyword::FileName | Keyword::LineNumber) => self.expression_statement()?,
            TokenKind::Keyword(keyword) => self.keyword_statement(keyword)?,
            TokenKind::BracketOpen if self.targets_follow() => self.multi_assignment()?,
            TokenKind::Name if may_be_command && self.command_follows() => self.command()?,
            _ => self.expression_statement()?,
        };
        let span = self.span_from(start);
        let print = self.statement_end()?;
        let kind = match kind {
            // The value of an increment becomes `ans` if it is shown, or if the text may use `ans`.
            StmtKind::Expr(expr) if !print && !self.asks_for_ans => assignment(expr),
            kind => kind,
        };
        into.push(Stmt { kind, print, span });
        Ok(())
    }

    /// Parses an expression, or an assignment that begins like one.
    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let expr = self.assignment_or_expression()?;
        // The value of `++x` becomes `ans`, even in parentheses.
        let is_increment = |value: &Expr| ["++", "--"].contains(&self.text_of(value.span));
        Ok(match &expr.kind {
            ExprKind::Assign { value, .. } if !is_increment(value) => assignment(expr),
            _ => StmtKind::Expr(expr),
        })
    }

    /// Whether the bracket that comes next holds the targets of an assignment: `=` follows its closing bracket.
    fn targets_follow(&self) -> bool {
        let mut lexer = self.lexer.look_ahead();
        let mut depth = 1;
        while depth > 0 {
            match lexer.next().map(|token| token.kind) {
                Ok(TokenKind::BracketOpen | TokenKind::BraceOpen | TokenKind::ParenOpen) => depth += 1,
                Ok(TokenKind::BracketClose | TokenKind::BraceClose | TokenKind::ParenClose) => depth -= 1,
                Ok(TokenKind::EndOfText) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        matches!(lexer.next().map(|token| token.kind), Ok(TokenKind::Assign | TokenKind::OpAssign(_)))
    }

    fn multi_assignment(&mut self) -> Parse<StmtKind> {
        let start = self.start();
        self.advance()?;
        let mut targets = Vec::new();
        let mut may_follow = true;
        // A comma before the first target has no effect.
        self.accept(&TokenKind::Comma)?;
        while !self.at(&TokenKind::BracketClose) {
            match self.token.kind {
                TokenKind::Comma if !may_follow => {
                    may_follow = true;
                    self.advance()?;
                }
                TokenKind::Not if may_follow || self.token.separated => {
                    may_follow = false;
                    self.advance()?;
                    targets.push(None);
                }
                TokenKind::Name if may_follow || self.token.separated => {
                    may_follow = false;
                    let expr = self.indexed()?;
                    targets.push(Some(self.to_target(expr)?));
                }
                _ => return Err(self.error("invalid left hand side of assignment")),
            }
        }
        self.advance()?;
        if targets.is_empty() {
            return Err(SyntaxError::new("invalid empty left hand side of assignment", self.span_from(start)));
        }
        if matches!(self.token.kind, TokenKind::OpAssign(_)) {
            return Err(self.error("computed multiple assignment not allowed"));
        }
        self.expect(&TokenKind::Assign, "'='")?;
        let value = self.expression()?;
        for target in targets.iter().flatten() {
            self.variables.insert(target.name.name.clone());
        }
        Ok(StmtKind::MultiAssign { targets, value })
    }

    /// Whether the name that comes next begins a command.
    fn command_follows(&self) -> bool {
        let name = self.text_of(self.token.span);
        // Octave treats these names as numbers: `pi -1` subtracts.
        let is_number = matches!(name, "e" | "pi" | "i" | "I" | "j" | "J" | "Inf" | "inf" | "NaN" | "nan");
        !is_number
            && command::words_follow(&self.source.text, self.lexer.offset())
            && !self.variables.contains(name)
            && !(self.is_variable)(name)
    }

    fn command(&mut self) -> Parse<StmtKind> {
        let span = self.token.span;
        let name = Ident { name: self.intern(self.text_of(span)), span };
        let (words, end) = command::words(&self.source.text, self.lexer.offset())?;
        self.lexer.resume_at(end);
        self.advance()?;
        self.previous_end = end;
        Ok(StmtKind::Command { name, words })
    }

    fn keyword_statement(&mut self, keyword: Keyword) -> Parse<StmtKind> {
        match keyword {
            Keyword::If => self.if_statement(),
            Keyword::While => self.while_statement(),
            Keyword::Do => self.do_statement(),
            Keyword::For => self.for_statement(false),
            Keyword::ParFor => self.for_statement(true),
            Keyword::Switch => self.switch_statement(),
            Keyword::Try => self.try_statement(),
            Keyword::UnwindProtect => self.unwind_protect_statement(),
            Keyword::Global => self.declaration().map(StmtKind::Global),
            Keyword::Persistent => self.declaration().map(StmtKind::Persistent),
            Keyword::Return => self.jump(StmtKind::Return),
            Keyword::Break | Keyword::Continue if self.loop_depth == 0 => {
                Err(self.error(format!("{} must appear within a loop", keyword.text())))
            }
            Keyword::Break => self.jump(StmtKind::Break),
            Keyword::Continue => self.jump(StmtKind::Continue),
            Keyword::ClassDef => Err(self.error("classdef is not supported yet: use structs and functions")),
            _ => Err(self.expected("a statement")),
        }
    }

    fn jump(&mut self, kind: StmtKind) -> Parse<StmtKind> {
        self.advance()?;
        Ok(kind)
    }

    /// Goes over the keyword that closes a block: `end`, or the block's own form.
    pub(super) fn close(&mut self, own: Keyword) -> Parse<()> {
        match self.token.kind {
            TokenKind::Keyword(keyword) if keyword == Keyword::End || keyword == own => self.advance(),
            TokenKind::Keyword(keyword) if keyword.text().starts_with("end") => {
                Err(self.error(format!("'{}' command matched by '{}'", own.text(), keyword.text())))
            }
            _ => Err(self.expected(&format!("'end' or '{}'", own.text()))),
        }
    }

    fn if_statement(&mut self) -> Parse<StmtKind> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.advance()?;
            let condition = self.expression()?;
            arms.push((condition, self.nested_block(false)?));
            if self.at_keyword(Keyword::Else) {
                self.advance()?;
                otherwise = Some(self.nested_block(true)?);
            }
            if otherwise.is_some() || !self.at_keyword(Keyword::ElseIf) {
                self.close(Keyword::EndIf)?;
                return Ok(StmtKind::If { arms, otherwise });
            }
        }
    }

    fn while_statement(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        let condition = self.expression()?;
        let body = self.loop_body(Keyword::EndWhile)?;
        Ok(StmtKind::While { condition, body })
    }

    fn do_statement(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        self.loop_depth += 1;
        let body = self.nested_block(true)?;
        self.loop_depth -= 1;
        self.expect(&TokenKind::Keyword(Keyword::Until), "'until'")?;
        let condition = self.expression()?;
        Ok(StmtKind::DoUntil { body, condition })
    }

    /// Parses `for k = range`, with or without parentheses around all of it. `parfor` may give a number of workers.
    fn for_statement(&mut self, is_parallel: bool) -> Parse<StmtKind> {
        self.advance()?;
        if self.at(&TokenKind::BracketOpen) && !is_parallel {
            return self.for_fields();
        }
        let has_parens = self.accept(&TokenKind::ParenOpen)?;
        if !self.at(&TokenKind::Name) {
            return Err(self.expected("the loop's variable"));
        }
        let target = self.indexed()?;
        let target = self.to_target(target)?;
        self.expect(&TokenKind::Assign, "'='")?;
        let range = self.expression()?;
        if has_parens {
            if is_parallel && self.accept(&TokenKind::Comma)? {
                self.expression()?;
            }
            self.expect(&TokenKind::ParenClose, "')'")?;
        }
        self.variables.insert(target.name.name.clone());
        let body = self.loop_body(if is_parallel { Keyword::EndParFor } else { Keyword::EndFor })?;
        Ok(StmtKind::For { target, key: None, range, body })
    }

    /// Parses Octave's `for [value, key] = struct`.
    fn for_fields(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        let mut targets = Vec::with_capacity(2);
        while targets.len() < 2 {
            if !self.at(&TokenKind::Name) {
                return Err(self.expected("the loop's variables, for a value and its name"));
            }
            let target = self.indexed()?;
            targets.push(self.to_target(target)?);
            self.accept(&TokenKind::Comma)?;
        }
        self.expect(&TokenKind::BracketClose, "']'")?;
        self.expect(&TokenKind::Assign, "'='")?;
        let range = self.expression()?;
        for target in &targets {
            self.variables.insert(target.name.name.clone());
        }
        let key = targets.pop();
        let Some(target) = targets.pop() else { return Err(self.expected("the loop's variable")) };
        let body = self.loop_body(Keyword::EndFor)?;
        Ok(StmtKind::For { target, key, range, body })
    }

    fn switch_statement(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        let subject = self.expression()?;
        self.skip_separators()?;
        let mut cases = Vec::new();
        while self.at_keyword(Keyword::Case) {
            self.advance()?;
            let value = self.expression()?;
            cases.push((value, self.nested_block(false)?));
        }
        let mut otherwise = None;
        if self.at_keyword(Keyword::Otherwise) {
            self.advance()?;
            otherwise = Some(self.nested_block(true)?);
        } else if !matches!(self.token.kind, TokenKind::Keyword(keyword) if keyword.closes_block()) {
            return Err(self.expected("'case', 'otherwise' or 'end'"));
        }
        self.close(Keyword::EndSwitch)?;
        Ok(StmtKind::Switch { subject, cases, otherwise })
    }

    /// Parses `try … catch name … end`. A name alone on the line of `catch`, in parentheses or not, is the error's
    /// variable.
    fn try_statement(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        let body = self.nested_block(true)?;
        let mut name = None;
        let mut handler = Vec::new();
        if self.at_keyword(Keyword::Catch) {
            self.advance()?;
            if self.at(&TokenKind::Name) && command::ends_statement(&self.source.text, self.lexer.offset()) {
                let ident = self.ident("the error's variable")?;
                self.variables.insert(ident.name.clone());
                name = Some(ident);
            } else if self.at(&TokenKind::ParenOpen) && self.encloses_name() {
                self.advance()?;
                let ident = self.ident("the error's variable")?;
                self.expect(&TokenKind::ParenClose, "')'")?;
                self.variables.insert(ident.name.clone());
                name = Some(ident);
            }
            handler = self.nested_block(true)?;
        }
        self.close(Keyword::EndTryCatch)?;
        Ok(StmtKind::Try { body, name, handler })
    }

    /// Whether the parenthesis here holds only a name, and the statement ends behind it.
    fn encloses_name(&self) -> bool {
        let text = &self.source.text;
        let within = text[self.lexer.offset()..].trim_start_matches([' ', '\t']);
        let behind = within.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let is_name = within.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let closed = behind.trim_start_matches([' ', '\t']).strip_prefix(')');
        is_name && closed.is_some_and(|rest| command::ends_statement(text, text.len() - rest.len()))
    }

    fn unwind_protect_statement(&mut self) -> Parse<StmtKind> {
        self.advance()?;
        let body = self.nested_block(true)?;
        self.expect(&TokenKind::Keyword(Keyword::UnwindProtectCleanup), "'unwind_protect_cleanup'")?;
        let cleanup = self.nested_block(true)?;
        self.close(Keyword::EndUnwindProtect)?;
        Ok(StmtKind::UnwindProtect { body, cleanup })
    }

    /// Parses `spmd … end`. There is one worker, so its statements are ordinary statements.
    fn spmd(&mut self, into: &mut Block) -> Parse<()> {
        self.advance()?;
        self.nested(|parser| parser.block(into, true))?;
        self.close(Keyword::EndSpmd)?;
        self.statement_end().map(|_| ())
    }

    /// `global a b = 1`.
    fn declaration(&mut self) -> Parse<Vec<(Ident, Option<Expr>)>> {
        self.advance()?;
        let mut declared: Vec<(Ident, Option<Expr>)> = Vec::new();
        while declared.is_empty() || self.at(&TokenKind::Name) {
            let ident = self.ident("a variable's name")?;
            self.variables.insert(ident.name.clone());
            let value = if self.accept(&TokenKind::Assign)? { Some(self.expression()?) } else { None };
            declared.push((ident, value));
        }
        Ok(declared)
    }

    /// Sets the names that are variables at a function's beginning: its parameters and outputs.
    pub(super) fn begin_scope(&mut self, names: impl Iterator<Item = Name>) {
        self.variables = names.collect();
    }
}

/// Turns an expression that assigns into an assignment statement; other expressions become expression statements.
fn assignment(expr: Expr) -> StmtKind {
    match expr.kind {
        ExprKind::Assign { target, op: None, value } => StmtKind::Assign { target: *target, value: *value },
        ExprKind::Assign { target, op: Some(op), value } => StmtKind::OpAssign { target: *target, op, value: *value },
        ExprKind::PostIncrement { target, op } => {
            let end = expr.span.range().end;
            let sign = Span::new(end - 2, end);
            let value = Expr { kind: ExprKind::Number(1.0), span: sign };
            StmtKind::OpAssign { target: *target, op, value }
        }
        _ => StmtKind::Expr(expr),
    }
}
