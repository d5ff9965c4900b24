//! Compiles statements.

use super::builder::{Around, Builder};
use super::code::{Count, Inst, Kind, Want};
use crate::error::ScriptError;
use crate::source::Span;
use crate::stack::with_room;
use crate::syntax::ast::{Block, Expr, ExprKind, Ident, Stmt, StmtKind, Target};
use crate::value::Value;

type Done = Result<(), ScriptError>;

impl Builder {
    /// Compiles statements in order.
    pub fn block(&mut self, block: &Block) -> Done {
        block.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, stmt: &Stmt) -> Done {
        with_room(|| self.one_statement(stmt))
    }

    fn one_statement(&mut self, stmt: &Stmt) -> Done {
        self.at = stmt.span;
        match &stmt.kind {
            StmtKind::Expr(expr) => self.expression_statement(expr, stmt.print),
            StmtKind::Assign { target, value } => self.assign(target, value, stmt.print),
            StmtKind::MultiAssign { targets, value } => self.multi_assign(targets, value, stmt.print),
            StmtKind::OpAssign { target, op, value } => self.op_assign(target, *op, value, stmt.print),
            StmtKind::If { arms, otherwise } => self.if_statement(arms, otherwise.as_ref()),
            StmtKind::While { condition, body } => self.while_statement(condition, body),
            StmtKind::DoUntil { body, condition } => self.do_until(body, condition),
            StmtKind::For { target, key: None, range, body } => self.for_statement(target, range, body),
            StmtKind::For { target, key: Some(key), range, body } => self.for_fields(target, key, range, body),
            StmtKind::Switch { subject, cases, otherwise } => self.switch(subject, cases, otherwise.as_ref()),
            StmtKind::Break => self.leave(stmt.span, false),
            StmtKind::Continue => self.leave(stmt.span, true),
            StmtKind::Return => self.return_statement(),
            StmtKind::Try { body, name, handler } => self.try_statement(body, name.as_ref(), handler),
            StmtKind::UnwindProtect { body, cleanup } => self.unwind_protect(body, cleanup),
            StmtKind::Global(names) => self.statics(names, Inst::Global),
            StmtKind::Persistent(names) => self.statics(names, Inst::Persistent),
            StmtKind::Command { name, words } => self.command(name, words, stmt.print),
        }
    }

    fn expression_statement(&mut self, expr: &Expr, print: bool) -> Done {
        self.emit(Inst::Mark, expr.span);
        self.several(expr, 0)?;
        let name = match &expr.kind {
            ExprKind::Name(name) => Some(self.slot(name)),
            _ => None,
        };
        self.slot(&"ans".into());
        self.emit(Inst::Answer { print, name }, expr.span);
        Ok(())
    }

    fn command(&mut self, name: &Ident, words: &[String], print: bool) -> Done {
        // The command's outputs lie above the first mark, its arguments above the second.
        self.emit(Inst::Mark, name.span);
        self.emit(Inst::Mark, name.span);
        for word in words {
            let word = self.constant(Value::string(word.as_bytes()));
            self.emit(Inst::Const(word), name.span);
        }
        let constant = self.constant(Value::string(name.name.as_bytes()));
        self.emit(Inst::Call { name: constant, count: Count::Marked, want: Want::Many(0) }, name.span);
        self.slot(&"ans".into());
        self.emit(Inst::Answer { print, name: None }, name.span);
        Ok(())
    }

    fn if_statement(&mut self, arms: &[(Expr, Block)], otherwise: Option<&Block>) -> Done {
        let out = self.label();
        for (i, (condition, body)) in arms.iter().enumerate() {
            let next = self.label();
            self.statement_condition(condition, next, false)?;
            self.block(body)?;
            if i + 1 < arms.len() || otherwise.is_some() {
                self.jump(out);
            }
            self.bind(next);
        }
        if let Some(block) = otherwise {
            self.block(block)?;
        }
        self.bind(out);
        Ok(())
    }

    fn while_statement(&mut self, condition: &Expr, body: &Block) -> Done {
        let (again, out) = (self.label(), self.label());
        self.bind(again);
        self.statement_condition(condition, out, false)?;
        self.loop_body(body, again, out, false)?;
        self.jump(again);
        self.bind(out);
        Ok(())
    }

    fn do_until(&mut self, body: &Block, condition: &Expr) -> Done {
        let (start, again, out) = (self.label(), self.label(), self.label());
        self.bind(start);
        self.loop_body(body, again, out, false)?;
        self.bind(again);
        self.statement_condition(condition, start, false)?;
        self.bind(out);
        Ok(())
    }

    fn loop_body(
        &mut self,
        body: &Block,
        again: super::builder::Label,
        out: super::builder::Label,
        is_for: bool,
    ) -> Done {
        self.around.push(Around::Loop { again, out, is_for });
        let result = self.block(body);
        self.around.pop();
        result
    }

    fn for_statement(&mut self, target: &Target, range: &Expr, body: &Block) -> Done {
        match &range.kind {
            ExprKind::Range { start, step, stop } => {
                self.range_parts(start, step.as_deref(), stop)?;
                self.emit(Inst::ForRange { step: step.is_some() }, range.span);
            }
            _ => {
                self.expr(range)?;
                self.emit(Inst::ForBegin, range.span);
            }
        }
        let (again, out) = (self.label(), self.label());
        self.bind(again);
        if target.steps.is_empty() {
            let slot = self.slot(&target.name.name);
            self.for_next(Some(slot), out, target.span);
        } else {
            self.for_next(None, out, target.span);
            self.store(target)?;
        }
        self.loop_body(body, again, out, true)?;
        self.jump(again);
        self.bind(out);
        Ok(())
    }

    /// `for [value, key] = struct`.
    fn for_fields(&mut self, value: &Target, key: &Target, fields: &Expr, body: &Block) -> Done {
        self.expr(fields)?;
        self.emit(Inst::ForFields, fields.span);
        let (again, out) = (self.label(), self.label());
        self.bind(again);
        self.for_next(None, out, value.span);
        self.store(value)?;
        // The field's name lies below its value on the stack.
        self.store(key)?;
        self.loop_body(body, again, out, true)?;
        self.jump(again);
        self.bind(out);
        Ok(())
    }

    fn switch(&mut self, subject: &Expr, cases: &[(Expr, Block)], otherwise: Option<&Block>) -> Done {
        let out = self.label();
        self.expr(subject)?;
        for (case, body) in cases {
            let next = self.label();
            self.expr(case)?;
            self.emit(Inst::CaseMatches, case.span);
            self.jump_if(next, false, case.span);
            self.emit(Inst::Pop, case.span);
            self.block(body)?;
            self.jump(out);
            self.bind(next);
        }
        self.emit(Inst::Pop, subject.span);
        if let Some(block) = otherwise {
            self.block(block)?;
        }
        self.bind(out);
        Ok(())
    }

    /// Compiles `break` or `continue`: leaves the constructs between here and the loop, then jumps.
    fn leave(&mut self, span: Span, again: bool) -> Done {
        let around = self.around.clone();
        for depth in (0..around.len()).rev() {
            match &around[depth] {
                Around::Try => self.emit(Inst::TryEnd { check: true }, span),
                Around::Cleanup(block) => self.run_cleanup(block, depth, span)?,
                // A jump cannot leave a cleanup that follows an error, which is raised again instead.
                Around::Held => {
                    self.emit(Inst::Rethrow, span);
                    return Ok(());
                }
                Around::Loop { again: to_again, out, is_for } => {
                    if again {
                        self.jump(*to_again);
                    } else {
                        if *is_for {
                            self.emit(Inst::ForEnd, span);
                        }
                        self.jump(*out);
                    }
                    return Ok(());
                }
            }
        }
        if matches!(self.kind, Kind::Script | Kind::Eval) {
            return self.return_statement();
        }
        let word = if again { "continue" } else { "break" };
        Err(self.error(span, format!("{word} must appear within a loop")))
    }

    /// Compiles a cleanup at a jump out of the body that it belongs to. The constructs inside of the body were left
    /// before.
    fn run_cleanup(&mut self, block: &Block, depth: usize, span: Span) -> Done {
        self.emit(Inst::TryEnd { check: false }, span);
        let inner = self.around.split_off(depth);
        let result = self.block(block);
        self.around.extend(inner);
        result
    }

    fn return_statement(&mut self) -> Done {
        let around = self.around.clone();
        let at = self.at;
        for depth in (0..around.len()).rev() {
            match &around[depth] {
                Around::Try => self.emit(Inst::TryEnd { check: true }, at),
                Around::Cleanup(block) => self.run_cleanup(block, depth, at)?,
                Around::Held => {
                    self.emit(Inst::Rethrow, at);
                    return Ok(());
                }
                Around::Loop { .. } => {}
            }
        }
        self.emit(Inst::Return, at);
        Ok(())
    }

    /// Compiles statements. If outputs are wanted and there is one expression, its values are left on the stack.
    pub fn values_or_block(&mut self, block: &Block, nargout: usize) -> Done {
        match &block[..] {
            [Stmt { kind: StmtKind::Expr(expr), .. }] if nargout > 0 => {
                self.emit(Inst::Mark, expr.span);
                self.several(expr, nargout.min(u16::MAX as usize - 1) as u16)
            }
            // An assignment gives the value that it assigns.
            [Stmt { kind: StmtKind::Assign { target, value }, .. }] if nargout > 0 => {
                self.emit(Inst::Mark, value.span);
                self.assign_within(target, None, value, value.span)
            }
            [Stmt { kind: StmtKind::OpAssign { target, op, value }, .. }] if nargout > 0 => {
                self.emit(Inst::Mark, value.span);
                self.assign_within(target, Some(*op), value, value.span)
            }
            _ => self.block(block),
        }
    }

    /// Compiles a text, and another that runs if the first fails. The first one's values stay on the stack behind its
    /// end.
    pub fn tried(&mut self, body: &Block, handler: &Block, nargout: usize) -> Done {
        let (caught, out) = (self.label(), self.label());
        let at = self.at;
        self.try_begin(caught);
        self.around.push(Around::Try);
        let result = self.values_or_block(body, nargout);
        self.around.pop();
        result?;
        self.emit(Inst::TryEnd { check: true }, at);
        self.jump(out);
        self.bind(caught);
        self.emit(Inst::Caught(None), at);
        self.values_or_block(handler, nargout)?;
        self.bind(out);
        Ok(())
    }

    fn try_statement(&mut self, body: &Block, name: Option<&Ident>, handler: &Block) -> Done {
        let (caught, out) = (self.label(), self.label());
        let at = self.at;
        self.try_begin(caught);
        self.around.push(Around::Try);
        let result = self.block(body);
        self.around.pop();
        result?;
        self.emit(Inst::TryEnd { check: true }, at);
        self.jump(out);
        self.bind(caught);
        let slot = name.map(|n| self.slot(&n.name));
        self.emit(Inst::Caught(slot), at);
        self.block(handler)?;
        self.bind(out);
        Ok(())
    }

    fn unwind_protect(&mut self, body: &Block, cleanup: &Block) -> Done {
        let (failed, out) = (self.label(), self.label());
        let at = self.at;
        self.try_begin(failed);
        self.around.push(Around::Cleanup(cleanup.clone()));
        let result = self.block(body);
        self.around.pop();
        result?;
        self.emit(Inst::TryEnd { check: false }, at);
        self.block(cleanup)?;
        self.jump(out);
        self.bind(failed);
        self.emit(Inst::HoldError, at);
        self.around.push(Around::Held);
        let result = self.block(cleanup);
        self.around.pop();
        result?;
        self.emit(Inst::Rethrow, at);
        self.bind(out);
        Ok(())
    }

    fn statics(&mut self, names: &[(Ident, Option<Expr>)], inst: fn(u32) -> Inst) -> Done {
        for (name, init) in names {
            let slot = self.slot(&name.name);
            self.emit(inst(slot), name.span);
            let there = self.label();
            self.jump_if_defined(slot, there);
            // Without an initial value the variable is an empty matrix.
            let empty = Expr { kind: ExprKind::Matrix(Vec::new()), span: name.span };
            self.expr(init.as_ref().unwrap_or(&empty))?;
            self.emit(Inst::Store(slot), name.span);
            self.bind(there);
        }
        Ok(())
    }
}
