//! Compiles expressions.
//!
//! Must hold: [`Builder::expr`] leaves exactly one value on the stack; [`Builder::list`] returns how many it leaves.

use super::builder::{Builder, Label};
use super::code::{ClosureCode, Count, Inst, Kind, Want};
use crate::error::ScriptError;
use crate::source::Span;
use crate::stack::with_room;
use crate::syntax::ast::{AnonymousDef, BinaryOp, Expr, ExprKind, Link, LinkOp, Name, Step, StepKind, UnaryOp};
use crate::value::{Class, Data, Dims, Form, Function, Tensor, Value};
use std::sync::Arc;

type Done = Result<(), ScriptError>;

/// Returns the integer of this class with these bits.
fn integer(class: Class, bits: u64) -> Data {
    match class {
        Class::Int8 => Data::I8(vec![bits as i8]),
        Class::Int16 => Data::I16(vec![bits as i16]),
        Class::Int32 => Data::I32(vec![bits as i32]),
        Class::Int64 => Data::I64(vec![bits as i64]),
        Class::Uint8 => Data::U8(vec![bits as u8]),
        Class::Uint16 => Data::U16(vec![bits as u16]),
        Class::Uint32 => Data::U32(vec![bits as u32]),
        _ => Data::U64(vec![bits]),
    }
}

impl Builder {
    /// Compiles an expression that leaves one value.
    pub fn expr(&mut self, expr: &Expr) -> Done {
        with_room(|| self.one_value(expr))
    }

    fn one_value(&mut self, expr: &Expr) -> Done {
        match &expr.kind {
            ExprKind::Number(x) => self.emit(Inst::Num(*x), expr.span),
            ExprKind::Imaginary(x) => {
                let z = num_complex::Complex64::new(0.0, *x);
                self.push_constant(Value::tensor(Tensor::scalar(Data::C64(vec![z]))), expr.span);
            }
            ExprKind::Integer { class, bits } => {
                let value = Value::tensor_as_is(Tensor::scalar(integer(*class, *bits)));
                self.push_constant(value, expr.span);
            }
            ExprKind::Str { bytes, double_quoted } => {
                let mut tensor = Tensor::string(bytes);
                tensor.double_quoted = *double_quoted;
                if self.marks_empty && bytes.is_empty() {
                    tensor.form = Form::Null;
                }
                self.push_constant(Value::Tensor(Arc::new(tensor)), expr.span);
            }
            ExprKind::Name(name) => {
                let slot = self.slot(name);
                self.emit(Inst::Load { slot, last: false, want: Want::One }, expr.span);
            }
            ExprKind::Colon => self.emit(Inst::Colon, expr.span),
            ExprKind::End => self.end(expr.span)?,
            ExprKind::Unary(UnaryOp::Minus, operand) if matches!(operand.kind, ExprKind::Number(_)) => {
                let ExprKind::Number(x) = operand.kind else { return Ok(()) };
                self.emit(Inst::Num(-x), expr.span);
            }
            ExprKind::Unary(op, operand) => {
                self.expr(operand)?;
                self.emit(Inst::Unary(*op), expr.span);
            }
            ExprKind::Transpose { operand, conjugate } => {
                self.expr(operand)?;
                self.emit(Inst::Transpose { conjugate: *conjugate }, expr.span);
            }
            ExprKind::Chain(first, links) => self.chain(first, links)?,
            ExprKind::Range { start, step, stop } => {
                self.range_parts(start, step.as_deref(), stop)?;
                self.emit(Inst::Range { step: step.is_some() }, expr.span);
            }
            ExprKind::Index(base, steps) => self.access(base, steps, Want::One, expr.span)?,
            ExprKind::Matrix(rows) => self.matrix(rows, expr.span)?,
            ExprKind::Cell(rows) => self.cell(rows, expr.span)?,
            ExprKind::Anonymous(def) => self.anonymous(def, expr.span)?,
            ExprKind::Assign { target, op, value } => self.assign_within(target, *op, value, expr.span)?,
            ExprKind::PostIncrement { target, op } => self.post_increment(target, *op, expr.span)?,
            ExprKind::Handle(name) if self.nested_functions.contains(name) => {
                self.calls_nested = true;
                let name = self.constant(Value::string(name.as_bytes()));
                self.emit(Inst::NestedHandle(name), expr.span);
            }
            ExprKind::Handle(name) => {
                let function = Function::Named(name.clone(), Some(self.source.clone()));
                self.push_constant(Value::Function(Arc::new(function)), expr.span);
            }
        }
        Ok(())
    }

    fn push_constant(&mut self, value: Value, span: Span) {
        let index = self.constant(value);
        self.emit(Inst::Const(index), span);
    }

    /// Pushes start, (step,) stop, in this order.
    pub fn range_parts(&mut self, start: &Expr, step: Option<&Expr>, stop: &Expr) -> Done {
        self.expr(start)?;
        if let Some(step) = step {
            self.expr(step)?;
        }
        self.expr(stop)
    }

    /// Compiles an operand and the operators behind it to one value.
    fn chain(&mut self, first: &Expr, links: &[Link]) -> Done {
        match links.last() {
            None => self.expr(first),
            Some(last) if last.op.is_short_circuit() => {
                let (yes, no, out) = (self.label(), self.label(), self.label());
                self.short_circuits(first, links, no, false)?;
                self.bind(yes);
                self.push_constant(Value::Bool(true), last.span);
                self.jump(out);
                self.bind(no);
                self.push_constant(Value::Bool(false), last.span);
                self.bind(out);
                Ok(())
            }
            Some(_) => {
                // `&&` and `||` bind loosest, so none of them comes before another operator.
                self.expr(first)?;
                for link in links {
                    self.expr(&link.right)?;
                    if let LinkOp::Binary(op) = link.op {
                        self.emit(Inst::Binary(op), link.span);
                    }
                }
                Ok(())
            }
        }
    }

    /// Jumps to the label if the expression's truth is `when`.
    pub fn condition(&mut self, expr: &Expr, to: Label, when: bool) -> Done {
        self.condition_part(expr, to, when)
    }

    /// Does the same for the condition of a statement. There `|` and `&` also stop early, if their left side is one
    /// element.
    pub fn statement_condition(&mut self, expr: &Expr, to: Label, when: bool) -> Done {
        match &expr.kind {
            ExprKind::Chain(_, links) if links.last().is_some_and(|last| is_elementwise_logical(last.op)) => {
                self.decided(expr)?;
                self.jump_if(to, when, expr.span);
                Ok(())
            }
            _ => self.condition(expr, to, when),
        }
    }

    fn decided(&mut self, expr: &Expr) -> Done {
        let ExprKind::Chain(first, links) = &expr.kind else { return self.expr(expr) };
        // `|` and `&` bind looser than all other operators that take both values, so they come last.
        let plain = links.iter().take_while(|link| !is_elementwise_logical(link.op)).count();
        if plain == links.len() {
            return self.expr(expr);
        }
        if plain == 0 {
            self.decided(first)?
        } else {
            self.chain(first, &links[..plain])?
        }
        for link in &links[plain..] {
            let LinkOp::Binary(op) = link.op else { continue };
            let decided = self.label();
            self.jump_if_decided(decided, op == BinaryOp::Or, link.span);
            self.decided(&link.right)?;
            self.emit(Inst::Binary(op), link.span);
            self.bind(decided);
        }
        Ok(())
    }

    fn condition_part(&mut self, expr: &Expr, to: Label, when: bool) -> Done {
        with_room(|| self.decides(expr, to, when))
    }

    fn decides(&mut self, expr: &Expr, to: Label, when: bool) -> Done {
        match &expr.kind {
            ExprKind::Chain(first, links) if is_short_circuit(expr) => self.short_circuits(first, links, to, when),
            ExprKind::Unary(UnaryOp::Not, inner) if is_short_circuit(inner) => self.condition_part(inner, to, !when),
            _ => {
                self.expr(expr)?;
                self.jump_if(to, when, expr.span);
                Ok(())
            }
        }
    }

    /// Jumps to the label if the truth of a chain that ends in `&&` or `||` is `when`.
    fn short_circuits(&mut self, first: &Expr, links: &[Link], to: Label, when: bool) -> Done {
        let plain = links.iter().take_while(|link| !link.op.is_short_circuit()).count();
        // `a && b` is false as soon as `a` is, and `a || b` is true as soon as `a` is. This collects, from the last
        // operator to the first: where its sides jump, for which truth, and the label behind it to which an early
        // decision jumps.
        let (mut to, mut when) = (to, when);
        let mut jumps = Vec::with_capacity(links.len() - plain);
        for link in links[plain..].iter().rev() {
            let decisive = link.op == LinkOp::OrOr;
            let skip = (when != decisive).then(|| self.label());
            jumps.push((to, when, skip));
            if let Some(skip) = skip {
                (to, when) = (skip, decisive);
            }
        }
        if plain == 0 {
            self.condition_part(first, to, when)?;
        } else {
            self.chain(first, &links[..plain])?;
            self.jump_if(to, when, links[plain - 1].span);
        }
        for (link, (to, when, skip)) in links[plain..].iter().zip(jumps.into_iter().rev()) {
            self.condition_part(&link.right, to, when)?;
            if let Some(skip) = skip {
                self.bind(skip);
            }
        }
        Ok(())
    }

    fn end(&mut self, span: Span) -> Done {
        if self.lists.is_empty() {
            return Err(self.error(span, "'end': nonconformant arguments: it stands outside of an index".into()));
        }
        self.ends.push(self.lists.iter().rev().copied().collect());
        let index = self.ends.len() as u32 - 1;
        self.emit(Inst::End(index), span);
        Ok(())
    }

    /// Compiles the elements of a list. A list that may hold comma lists is counted when it runs.
    pub fn list(&mut self, items: &[Expr]) -> Result<Count, ScriptError> {
        self.list_with(items, false)
    }

    /// Does the same. With `indices`, the items are subscripts, in which `end` has a meaning.
    fn list_with(&mut self, items: &[Expr], indices: bool) -> Result<Count, ScriptError> {
        let dynamic = items.len() > 1000 || items.iter().any(may_be_list);
        if dynamic {
            self.emit(Inst::Mark, self.at);
        }
        let marks_empty = std::mem::take(&mut self.marks_empty);
        for (i, item) in items.iter().enumerate() {
            self.marks_empty = marks_empty && is_literal(item);
            if indices {
                self.lists.push((i as u16, items.len() as u16));
            }
            let result = if dynamic { self.several(item, 1) } else { self.expr(item) };
            if indices {
                self.lists.pop();
            }
            result?;
        }
        self.marks_empty = false;
        Ok(if dynamic { Count::Marked } else { Count::Fixed(items.len() as u16) })
    }

    /// Compiles an expression that leaves all its values. Functions are asked for `nargout` outputs.
    pub fn several(&mut self, expr: &Expr, nargout: u16) -> Done {
        self.wanted(expr, Want::Many(nargout))
    }

    /// Compiles an expression that leaves the wanted ones of its values.
    pub fn wanted(&mut self, expr: &Expr, want: Want) -> Done {
        match &expr.kind {
            ExprKind::Index(base, steps) => with_room(|| self.access(base, steps, want, expr.span)),
            ExprKind::Name(name) => {
                let slot = self.slot(name);
                self.emit(Inst::Load { slot, last: false, want }, expr.span);
                Ok(())
            }
            _ => self.expr(expr),
        }
    }

    /// Compiles a base and the steps into it.
    fn access(&mut self, base: &Expr, steps: &[Step], want: Want, span: Span) -> Done {
        let mut rest = steps;
        let mut so_far = base.span;
        let wants = |rest: &[Step]| if rest.is_empty() { want } else { Want::Further };
        match &base.kind {
            ExprKind::Name(name) if is_dotted(name, steps) => {
                rest = &steps[1..];
                so_far = so_far.to(steps[0].span);
                self.dotted(name, &steps[0], rest, wants(rest), so_far)?;
            }
            ExprKind::Name(name) => match steps.first().map(|s| &s.kind) {
                Some(StepKind::Paren(args)) => {
                    let slot = self.slot(name);
                    let base_needed = mentions_end(args);
                    if base_needed {
                        self.emit(Inst::BaseSlot(slot), span);
                    }
                    let count = match self.exact_literal(name, args) {
                        Some(value) => {
                            self.push_constant(value, args[0].span);
                            Count::Fixed(1)
                        }
                        None => {
                            self.marks_empty = &**name == "struct";
                            self.list_with(args, true)?
                        }
                    };
                    if base_needed {
                        self.emit(Inst::BaseEnd, span);
                    }
                    rest = &steps[1..];
                    so_far = so_far.to(steps[0].span);
                    self.emit(Inst::Apply { slot, count, want: wants(rest), last: false }, so_far);
                }
                _ => self.expr(base)?,
            },
            _ => self.expr(base)?,
        }
        while let Some((step, after)) = rest.split_first() {
            so_far = so_far.to(step.span);
            let called = matches!(after.first().map(|s| &s.kind), Some(StepKind::Paren(_)));
            self.step(step, called, wants(after), so_far)?;
            rest = after;
        }
        Ok(())
    }

    /// In `int64 (…)` and the like, a single literal beyond 2^53 keeps all of its digits.
    fn exact_literal(&self, name: &Name, args: &[Expr]) -> Option<Value> {
        let [arg] = args else { return None };
        let (literal, negative) = match &arg.kind {
            ExprKind::Unary(UnaryOp::Minus, operand) => (&**operand, true),
            _ => (arg, false),
        };
        let ExprKind::Number(x) = literal.kind else { return None };
        if x < (1u64 << 53) as f64 || !Class::from_name(name)?.is_integer() {
            return None;
        }
        let digits: u64 = self.source.text.get(literal.span.range())?.parse().ok()?;
        let data = match negative {
            true => Data::I64(vec![0i64.saturating_sub_unsigned(digits)]),
            false => Data::U64(vec![digits]),
        };
        Some(Value::tensor_as_is(Tensor::scalar(data)))
    }

    /// Compiles `gpuArray.zeros`, which `rest` follows. This is the function of that name, unless a variable `gpuArray`
    /// exists when it runs.
    fn dotted(&mut self, name: &Name, field: &Step, rest: &[Step], want: Want, span: Span) -> Done {
        let StepKind::Field(word) = &field.kind else { return Ok(()) };
        let called = matches!(rest.first().map(|s| &s.kind), Some(StepKind::Paren(_)));
        let dotted = Name::from(format!("{name}.{}", word.name));
        let slot = self.slot(name);
        let (variable, after) = (self.label(), self.label());
        self.jump_if_defined(slot, variable);
        if called {
            self.push_constant(Value::Function(Arc::new(Function::Named(dotted, None))), span);
        } else {
            let name = self.constant(Value::string(dotted.as_bytes()));
            self.emit(Inst::Call { name, count: Count::Fixed(0), want }, span);
        }
        self.jump(after);
        self.bind(variable);
        self.emit(Inst::Load { slot, last: false, want: Want::Further }, span);
        self.step(field, called, want, span)?;
        self.bind(after);
        Ok(())
    }

    /// Compiles a step into the value on the stack. `called`: parentheses follow.
    fn step(&mut self, step: &Step, called: bool, want: Want, span: Span) -> Done {
        match &step.kind {
            StepKind::Paren(args) | StepKind::Brace(args) => {
                let base_needed = mentions_end(args);
                if base_needed {
                    self.emit(Inst::BaseTop, span);
                }
                let count = self.list_with(args, true)?;
                if base_needed {
                    self.emit(Inst::BaseEnd, span);
                }
                let inst = match &step.kind {
                    StepKind::Paren(_) => Inst::Paren { count, want },
                    _ => Inst::Brace { count, want },
                };
                self.emit(inst, span);
            }
            StepKind::Field(name) => {
                let name = self.constant(Value::string(name.name.as_bytes()));
                self.emit(Inst::Field { name, called, want }, span);
            }
            StepKind::DynamicField(expr) => {
                self.expr(expr)?;
                self.emit(Inst::DynamicField { want }, span);
            }
        }
        Ok(())
    }

    /// Compiles the subscripts of an assignment's step; `end` refers to the present value.
    pub fn subscripts(&mut self, args: &[Expr]) -> Result<Count, ScriptError> {
        self.list_with(args, true)
    }

    fn matrix(&mut self, rows: &[Vec<Expr>], span: Span) -> Done {
        if rows.iter().all(|r| r.is_empty()) {
            let form = if self.marks_empty { Form::Null } else { Form::Full };
            let nothing = Tensor { form, ..Tensor::new(Dims::zero(), Data::F64(Vec::new())) };
            self.push_constant(Value::tensor_as_is(nothing), span);
            return Ok(());
        }
        self.marks_empty = false;
        for row in rows {
            let count = self.list(row)?;
            self.emit(if rows.len() > 1 { Inst::RowOfRows(count) } else { Inst::Row(count) }, span);
        }
        if rows.len() > 1 {
            self.emit(Inst::Rows(rows.len() as u32), span);
        }
        Ok(())
    }

    fn cell(&mut self, rows: &[Vec<Expr>], span: Span) -> Done {
        let marks_empty = std::mem::take(&mut self.marks_empty);
        for row in rows {
            self.marks_empty = marks_empty;
            let count = self.list(row)?;
            self.emit(Inst::CellRow(count), span);
        }
        if rows.len() != 1 {
            self.emit(Inst::CellRows(rows.len() as u32), span);
        }
        Ok(())
    }

    fn anonymous(&mut self, def: &AnonymousDef, span: Span) -> Done {
        let mut inner = Builder::new(self.source.clone(), Kind::Anonymous, "".into());
        inner.text = def.text.as_str().into();
        inner.nested_functions = self.nested_functions.clone();
        inner.head(&def.params, &[])?;
        let params = inner.names().len();
        inner.emit(Inst::Mark, def.body.span);
        inner.several(&def.body, u16::MAX)?;
        let mut captures = Vec::new();
        let names: Vec<Name> = inner.names()[params..].to_vec();
        for (i, name) in names.iter().enumerate() {
            captures.push((self.slot(name), (params + i) as u32));
        }
        let calls_nested = inner.calls_nested || names.iter().any(|name| self.nested_functions.contains(name));
        self.calls_nested |= calls_nested;
        self.closures.push(ClosureCode { code: Arc::new(inner.finish(true)), captures, calls_nested });
        let index = self.closures.len() as u32 - 1;
        self.emit(Inst::Closure(index), span);
        Ok(())
    }
}

/// Whether there are functions whose names begin like this.
fn is_dotted(name: &Name, steps: &[Step]) -> bool {
    ["gpuArray", "containers"].contains(&&**name) && matches!(steps.first().map(|s| &s.kind), Some(StepKind::Field(_)))
}

/// Whether the expression is a literal matrix, text or cell.
fn is_literal(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Matrix(_) | ExprKind::Str { .. } | ExprKind::Cell(_))
}

/// Whether an expression's last operator is `&&` or `||`.
fn is_short_circuit(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Chain(_, links) if links.last().is_some_and(|last| last.op.is_short_circuit()))
}

/// Whether this is `|` or `&`.
fn is_elementwise_logical(op: LinkOp) -> bool {
    matches!(op, LinkOp::Binary(BinaryOp::Or | BinaryOp::And))
}

/// Whether an expression may give no value, or several: it contains `{}` or a field.
pub(super) fn may_be_list(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Index(_, steps) => steps.iter().any(|s| !matches!(s.kind, StepKind::Paren(_))),
        _ => false,
    }
}

/// Whether one of the expressions contains `end` outside of anonymous functions.
pub(super) fn mentions_end(items: &[Expr]) -> bool {
    contain(items, &|kind| matches!(kind, ExprKind::End))
}

/// Whether one of the expressions assigns, as `n++` does.
pub(super) fn changes_variables(items: &[Expr]) -> bool {
    contain(items, &|kind| matches!(kind, ExprKind::Assign { .. } | ExprKind::PostIncrement { .. }))
}

/// Whether one of the expressions, or a part of it, is of a kind. Bodies of anonymous functions do not count.
pub(super) fn contain(items: &[Expr], is: &dyn Fn(&ExprKind) -> bool) -> bool {
    let one = |e: &Expr| contain(std::slice::from_ref(e), is);
    items.iter().any(|e| {
        is(&e.kind)
            || match &e.kind {
                ExprKind::Unary(_, a) => one(a),
                ExprKind::Transpose { operand, .. } => one(operand),
                ExprKind::Chain(first, links) => one(first) || links.iter().any(|link| one(&link.right)),
                ExprKind::Range { start, step, stop } => {
                    one(start) || step.as_ref().is_some_and(|step| one(step)) || one(stop)
                }
                ExprKind::Index(base, steps) => {
                    one(base)
                        || steps.iter().any(|s| match &s.kind {
                            StepKind::Paren(args) | StepKind::Brace(args) => contain(args, is),
                            StepKind::DynamicField(e) => one(e),
                            StepKind::Field(_) => false,
                        })
                }
                ExprKind::Matrix(rows) | ExprKind::Cell(rows) => rows.iter().any(|r| contain(r, is)),
                ExprKind::Assign { value, .. } => one(value),
                _ => false,
            }
    })
}
