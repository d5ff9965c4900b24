//! Assignments: plain, into parts, to several targets, deletions.

use super::builder::Builder;
use super::code::{Count, Inst, PathStep, Want};
use super::expression::{changes_variables, may_be_list, mentions_end};
use crate::script::error::ScriptError;
use crate::script::source::Span;
use crate::script::syntax::ast::{BinaryOp, Expr, ExprKind, Name, StepKind, Target};
use crate::script::value::Value;

type Done = Result<(), ScriptError>;

impl Builder {
    /// `target = value`.
    pub fn assign(&mut self, target: &Target, value: &Expr, print: bool) -> Done {
        self.settled(target, |builder, target| builder.assign_settled(target, value, print))
    }

    /// Subscripts that change variables, as in `a(n++) += n`, are computed once, and before all else: they become
    /// variables that nobody can name, for as long as the assignment takes.
    fn settled(&mut self, target: &Target, assign: impl FnOnce(&mut Builder, &Target) -> Done) -> Done {
        let lists = target.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Paren(args) | StepKind::Brace(args) => Some(args),
            _ => None,
        });
        if !lists.into_iter().any(|args| changes_variables(args)) {
            return assign(self, target);
        }
        let mut target = target.clone();
        let mut slots = Vec::new();
        for step in &mut target.steps {
            let (StepKind::Paren(args) | StepKind::Brace(args)) = &mut step.kind else { continue };
            let fixed = |arg: &&mut Expr| {
                !matches!(arg.kind, ExprKind::Colon) && !may_be_list(arg) && !mentions_end(std::slice::from_ref(arg))
            };
            for arg in args.iter_mut().filter(fixed) {
                self.expr(arg)?;
                let name = Name::from(format!("({})", self.names().len()));
                let slot = self.slot(&name);
                self.emit(Inst::Store(slot), arg.span);
                slots.push(slot);
                arg.kind = ExprKind::Name(name);
            }
        }
        assign(self, &target)?;
        for slot in slots {
            self.emit(Inst::Load { slot, last: true, want: Want::One }, target.span);
            self.emit(Inst::Pop, target.span);
        }
        Ok(())
    }

    fn assign_settled(&mut self, target: &Target, value: &Expr, print: bool) -> Done {
        let deletes =
            matches!(target.steps.last().map(|s| &s.kind), Some(StepKind::Paren(_))) && is_empty_literal(value);
        if deletes {
            let slot = self.slot(&target.name.name);
            let path = self.way(target)?;
            self.emit(Inst::DeleteAt { slot, path }, target.span.to(value.span));
        } else {
            match &value.kind {
                ExprKind::Index(..) => self.wanted(value, Want::First)?,
                _ => self.expr(value)?,
            }
            self.store(target)?;
        }
        self.show(target, print);
        Ok(())
    }

    fn show(&mut self, target: &Target, print: bool) {
        if print {
            let slot = self.slot(&target.name.name);
            self.emit(Inst::Show(slot), target.span);
        }
    }

    /// The value on the stack goes into a target.
    pub fn store(&mut self, target: &Target) -> Done {
        let slot = self.slot(&target.name.name);
        if target.steps.is_empty() {
            self.emit(Inst::Store(slot), target.span);
        } else {
            let path = self.way(target)?;
            self.emit(Inst::StoreAt { slot, path }, target.span);
        }
        Ok(())
    }

    /// The way into a target: its subscripts on the stack, its steps in a path.
    fn way(&mut self, target: &Target) -> Result<u32, ScriptError> {
        let mut path = Vec::with_capacity(target.steps.len());
        for step in &target.steps {
            let step = match &step.kind {
                StepKind::Field(name) => PathStep::Field(name.name.clone()),
                StepKind::DynamicField(expr) => {
                    self.expr(expr)?;
                    PathStep::DynamicField
                }
                StepKind::Paren(args) => PathStep::Paren(self.way_subscripts(target, &path, args, step.span)?),
                StepKind::Brace(args) => PathStep::Brace(self.way_subscripts(target, &path, args, step.span)?),
            };
            path.push(step);
        }
        Ok(self.path(path))
    }

    fn way_subscripts(
        &mut self,
        target: &Target,
        before: &[PathStep],
        args: &[Expr],
        span: Span,
    ) -> Result<Count, ScriptError> {
        let base_needed = mentions_end(args);
        if base_needed {
            let slot = self.slot(&target.name.name);
            // What `end` means is found by the subscripts before this one, which lie on the stack.
            let path = self.path(before.to_vec());
            self.emit(Inst::BasePath { slot, path }, span);
        }
        let count = self.subscripts(args)?;
        if base_needed {
            self.emit(Inst::BaseEnd, span);
        }
        Ok(count)
    }

    /// `[a, b(2), ~] = value`.
    pub fn multi_assign(&mut self, targets: &[Option<Target>], value: &Expr, print: bool) -> Done {
        let lists = targets.iter().flatten().any(takes_list);
        let many = targets.iter().skip(IGNORED_BITS).any(Option::is_none);
        if (lists || targets.len() > 1) && is_constant(value) {
            // It fails when it runs, so that `try` may catch it.
            return self.fail("invalid number of output arguments for constant expression", value.span);
        }
        if lists || many {
            return self.list_assign(targets, value, print);
        }
        let n = targets.len() as u16;
        self.emit(Inst::Mark, value.span);
        self.several(value, n)?;
        self.emit(Inst::Spread { n, ignored: ignored(targets) }, value.span);
        for (i, target) in targets.iter().enumerate() {
            match target {
                None => self.emit(Inst::Pop, value.span),
                Some(target) => {
                    self.emit(Inst::Defined(i as u16 + 1), target.span);
                    self.store(target)?;
                    self.show(target, print);
                }
            }
        }
        Ok(())
    }

    fn fail(&mut self, message: &str, span: Span) -> Done {
        let message = self.constant(Value::string(message.as_bytes()));
        self.emit(Inst::Const(message), span);
        let name = self.constant(Value::string(b"error"));
        self.emit(Inst::Call { name, count: Count::Fixed(1), want: Want::Many(0) }, span);
        Ok(())
    }

    /// `[c{1:2}, s.x] = value`: how many values a target takes is known when it runs.
    fn list_assign(&mut self, targets: &[Option<Target>], value: &Expr, print: bool) -> Done {
        self.emit(Inst::TargetsBegin, value.span);
        for target in targets {
            match target {
                Some(target) if takes_list(target) => {
                    let slot = self.slot(&target.name.name);
                    let path = self.way(target)?;
                    self.emit(Inst::Target { slot, path }, target.span);
                }
                Some(target) => self.emit(Inst::TargetPlain { ignored: false }, target.span),
                None => self.emit(Inst::TargetPlain { ignored: true }, value.span),
            }
        }
        self.emit(Inst::Mark, value.span);
        self.wanted(value, Want::Targets)?;
        self.emit(Inst::SpreadTargets, value.span);
        for (i, target) in targets.iter().enumerate() {
            let number = i as u16;
            match target {
                None => self.emit(Inst::Pop, value.span),
                Some(target) if takes_list(target) => {
                    let slot = self.slot(&target.name.name);
                    self.emit(Inst::StoreTarget { slot, target: number }, target.span);
                    self.show(target, print);
                }
                Some(target) => {
                    self.emit(Inst::TargetDefined { target: number }, target.span);
                    self.store(target)?;
                    self.show(target, print);
                }
            }
        }
        self.emit(Inst::TargetsEnd, value.span);
        Ok(())
    }

    /// `target op= value`.
    pub fn op_assign(&mut self, target: &Target, op: BinaryOp, value: &Expr, print: bool) -> Done {
        self.settled(target, |builder, target| {
            builder.updated(target, op, value)?;
            builder.store(target)?;
            builder.show(target, print);
            Ok(())
        })
    }

    /// What `target op= value` assigns, on the stack.
    pub fn updated(&mut self, target: &Target, op: BinaryOp, value: &Expr) -> Done {
        self.read(target)?;
        self.expr(value)?;
        self.emit(Inst::Binary(op), target.span.to(value.span));
        Ok(())
    }

    /// What a target holds, on the stack.
    pub fn read(&mut self, target: &Target) -> Done {
        let name = Expr { kind: ExprKind::Name(target.name.name.clone()), span: target.name.span };
        if target.steps.is_empty() {
            return self.expr(&name);
        }
        let steps = target.steps.clone();
        self.expr(&Expr { kind: ExprKind::Index(Box::new(name), steps), span: target.span })
    }
}

/// Targets of which [`Inst::Spread`] can say that nobody wants them; longer lists are assigned as those whose length is
/// known when they run.
const IGNORED_BITS: usize = 32;

/// Which of the first targets are `~`, a bit each.
fn ignored(targets: &[Option<Target>]) -> u32 {
    targets.iter().take(IGNORED_BITS).enumerate().filter(|(_, target)| target.is_none()).map(|(i, _)| 1 << i).sum()
}

/// Whether a target may take other than one value: a comma list of cells or fields.
fn takes_list(target: &Target) -> bool {
    let last = target.steps.last().map(|s| &s.kind);
    matches!(last, Some(StepKind::Brace(_) | StepKind::Field(_) | StepKind::DynamicField(_)))
}

/// A value that is written out, and so is one.
fn is_constant(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Number(_) | ExprKind::Imaginary(_) | ExprKind::Integer { .. } | ExprKind::Str { .. })
}

/// `[]`, `''` or `""`, written out.
fn is_empty_literal(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Matrix(rows) => rows.iter().all(|r| r.is_empty()),
        ExprKind::Str { bytes, .. } => bytes.is_empty(),
        _ => false,
    }
}
