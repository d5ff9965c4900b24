//! Compiles assignments: to variables, to parts, to several targets, and deletions.

use super::builder::Builder;
use super::code::{Count, Inst, PathStep, Want};
use super::expression::mentions_end;
use super::settle::AssignmentKind;
use crate::error::ScriptError;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Name, StepKind, Target};
use crate::value::Value;

type Done = Result<(), ScriptError>;

impl Builder {
    /// `target = value`.
    pub fn assign(&mut self, target: &Target, value: &Expr, print: bool) -> Done {
        self.settled(target, AssignmentKind::Plain { value, sets: &[] }, |builder, target| {
            builder.assign_settled(target, value, print)
        })
    }

    /// Compiles an assignment after its target's subscripts have been settled ([`Builder::settle`]).
    fn settled(
        &mut self,
        target: &Target,
        assignment: AssignmentKind,
        assign: impl FnOnce(&mut Builder, &Target) -> Done,
    ) -> Done {
        let mut slots = Vec::new();
        match self.settle(target, assignment, &mut slots)? {
            None => assign(self, target)?,
            Some(settled) => assign(self, &settled)?,
        }
        self.unsettle(slots, target.span);
        Ok(())
    }

    fn assign_settled(&mut self, target: &Target, value: &Expr, print: bool) -> Done {
        let deletes =
            matches!(target.steps.last().map(|s| &s.kind), Some(StepKind::Paren(_))) && is_empty_literal(value);
        if deletes {
            let slot = self.slot(&target.name.name);
            let path = self.target_path(target)?;
            self.emit(Inst::DeleteAt { slot, path }, target.span.to(value.span));
        } else {
            match &value.kind {
                ExprKind::Index(..) => self.wanted(value, Want::First)?,
                _ => self.expr(value)?,
            }
            self.store(target)?;
            if target.steps.is_empty() && matches!(value.kind, ExprKind::Anonymous(_) | ExprKind::Handle(_)) {
                let slot = self.slot(&target.name.name);
                self.holds_handle(slot);
            }
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

    /// Stores the value on the stack in a target.
    pub fn store(&mut self, target: &Target) -> Done {
        let slot = self.slot(&target.name.name);
        if target.steps.is_empty() {
            self.emit(Inst::Store(slot), target.span);
        } else {
            let path = self.target_path(target)?;
            self.emit(Inst::StoreAt { slot, path }, target.span);
        }
        Ok(())
    }

    /// Pushes a target's subscripts, and returns its path.
    fn target_path(&mut self, target: &Target) -> Result<u32, ScriptError> {
        let mut path = Vec::with_capacity(target.steps.len());
        for step in &target.steps {
            let step = match &step.kind {
                StepKind::Field(name) => PathStep::Field(name.name.clone()),
                StepKind::DynamicField(expr) => {
                    self.expr(expr)?;
                    PathStep::DynamicField
                }
                StepKind::Paren(args) => PathStep::Paren(self.path_subscripts(target, &path, args, step.span)?),
                StepKind::Brace(args) => PathStep::Brace(self.path_subscripts(target, &path, args, step.span)?),
            };
            path.push(step);
        }
        Ok(self.path(path))
    }

    fn path_subscripts(
        &mut self,
        target: &Target,
        before: &[PathStep],
        args: &[Expr],
        span: Span,
    ) -> Result<Count, ScriptError> {
        let base_needed = mentions_end(args);
        if base_needed {
            let slot = self.slot(&target.name.name);
            // The value that `end` refers to is found with the subscripts before this one, which lie on the stack.
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
        let sets: Vec<Name> = targets.iter().flatten().map(|target| target.name.name.clone()).collect();
        let mut slots = Vec::new();
        let mut settled = targets.to_vec();
        for target in settled.iter_mut().flatten() {
            if let Some(fixed) = self.settle(target, AssignmentKind::Plain { value, sets: &sets }, &mut slots)? {
                *target = fixed;
            }
        }
        self.multi_assign_settled(&settled, value, print)?;
        self.unsettle(slots, value.span);
        Ok(())
    }

    fn multi_assign_settled(&mut self, targets: &[Option<Target>], value: &Expr, print: bool) -> Done {
        let lists = targets.iter().flatten().any(takes_list);
        let many = targets.iter().skip(IGNORED_BITS).any(Option::is_none);
        if (lists || targets.len() > 1) && is_constant(value) {
            // This fails when it runs, so that `try` may catch it.
            return self.fail("invalid number of output arguments for constant expression", value.span);
        }
        if targets.len() >= u16::MAX as usize {
            return Err(self.error(value.span, format!("{} values are assigned at once, too many", targets.len())));
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

    /// `[c{1:2}, s.x] = value`. Only when it runs is it known how many values each target takes.
    fn list_assign(&mut self, targets: &[Option<Target>], value: &Expr, print: bool) -> Done {
        self.emit(Inst::TargetsBegin, value.span);
        for target in targets {
            match target {
                Some(target) if takes_list(target) => {
                    let slot = self.slot(&target.name.name);
                    let path = self.target_path(target)?;
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
        self.settled(target, AssignmentKind::Update { value: Some(value) }, |builder, target| {
            builder.updated(target, op, value)?;
            builder.store(target)?;
            builder.show(target, print);
            Ok(())
        })
    }

    /// `(target = value)` and `(target op= value)`: the assigned value stays on the stack.
    pub fn assign_within(&mut self, target: &Target, op: Option<BinaryOp>, value: &Expr, span: Span) -> Done {
        let assignment = if op.is_some() {
            AssignmentKind::Update { value: Some(value) }
        } else {
            AssignmentKind::Plain { value, sets: &[] }
        };
        self.settled(target, assignment, |builder, target| {
            match op {
                None => builder.expr(value)?,
                Some(op) => builder.updated(target, op, value)?,
            }
            builder.emit(Inst::Duplicate, span);
            builder.store(target)
        })
    }

    /// `target++` and `target--`: the old value stays on the stack.
    pub fn post_increment(&mut self, target: &Target, op: BinaryOp, span: Span) -> Done {
        self.settled(target, AssignmentKind::Update { value: None }, |builder, target| {
            builder.check_defined(target, Some(op))?;
            builder.read(target)?;
            builder.emit(Inst::Duplicate, span);
            builder.emit(Inst::Num(1.0), span);
            builder.emit(Inst::Binary(op), span);
            builder.store(target)
        })
    }

    /// Pushes the value that `target op= value` assigns.
    pub fn updated(&mut self, target: &Target, op: BinaryOp, value: &Expr) -> Done {
        let is_increment = self.source.text.get(value.span.range()).is_some_and(|text| ["++", "--"].contains(&text));
        self.check_defined(target, is_increment.then_some(op))?;
        self.read(target)?;
        self.expr(value)?;
        self.emit(Inst::Binary(op), target.span.to(value.span));
        Ok(())
    }

    /// Fails if the target's variable has no value; a function of that name does not count. `increment` is the operator
    /// of `++` or `--`.
    pub fn check_defined(&mut self, target: &Target, increment: Option<BinaryOp>) -> Done {
        let slot = self.slot(&target.name.name);
        let defined = self.label();
        self.jump_if_defined(slot, defined);
        let message = match increment {
            Some(BinaryOp::Add) if target.steps.is_empty() => "in x++ or ++x, x must be defined first",
            Some(_) if target.steps.is_empty() => "in x-- or --x, x must be defined first",
            _ if target.steps.is_empty() => "in computed assignment A OP= X, A must be defined first",
            _ => "in computed assignment A(index) OP= X, A must be defined first",
        };
        self.fail(message, target.span)?;
        self.bind(defined);
        Ok(())
    }

    /// Pushes the present value of a target.
    pub fn read(&mut self, target: &Target) -> Done {
        let name = Expr { kind: ExprKind::Name(target.name.name.clone()), span: target.name.span };
        if target.steps.is_empty() {
            return self.expr(&name);
        }
        let steps = target.steps.clone();
        self.expr(&Expr { kind: ExprKind::Index(Box::new(name), steps), span: target.span })
    }
}

/// The number of targets that [`Inst::Spread`] can mark as `~`. Longer lists are assigned like those whose length is
/// known only when they run.
const IGNORED_BITS: usize = 32;

/// Returns a bit for each of the first targets, which is set if the target is `~`.
fn ignored(targets: &[Option<Target>]) -> u32 {
    targets.iter().take(IGNORED_BITS).enumerate().filter(|(_, target)| target.is_none()).map(|(i, _)| 1 << i).sum()
}

/// Whether a target may take no value, or several: a comma list of cells or fields.
fn takes_list(target: &Target) -> bool {
    let last = target.steps.last().map(|s| &s.kind);
    matches!(last, Some(StepKind::Brace(_) | StepKind::Field(_) | StepKind::DynamicField(_)))
}

/// Whether the value is a literal, and so exactly one value.
fn is_constant(value: &Expr) -> bool {
    let is_number = matches!(value.kind, ExprKind::Number(_) | ExprKind::Imaginary(_) | ExprKind::Integer { .. });
    is_number
        || matches!(value.kind, ExprKind::Str { .. } | ExprKind::Matrix(_) | ExprKind::Cell(_) | ExprKind::Range { .. })
}

/// Whether the value is the literal `[]`, `''` or `""`.
fn is_empty_literal(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Matrix(rows) => rows.iter().all(|r| r.is_empty()),
        ExprKind::Str { bytes, .. } => bytes.is_empty(),
        _ => false,
    }
}
