//! Computes some subscripts of an assignment's target before everything else, and only once. `h(randi(9)) += 1` and
//! `a(n++) = n` need this.
//!
//! In: a target, and the value assigned to it. Out: the target, in which hidden variables replace such subscripts while
//! the assignment runs. Must hold: a subscript that is read again, or read after the value is computed, keeps its first
//! value.

use super::builder::Builder;
use super::code::{Inst, Slot, Want};
use super::expression::{changes_variables, contain, may_be_list, mentions_end};
use crate::error::ScriptError;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Name, Step, StepKind, Target};
use crate::{builtins, library};
use std::slice::from_ref;

type Done = Result<(), ScriptError>;

/// How an assignment computes the value that it stores.
#[derive(Clone, Copy)]
pub(super) enum AssignmentKind<'a> {
    /// It computes `value` after the target's subscripts, and sets the variables `sets` before the target.
    Plain { value: &'a Expr, sets: &'a [Name] },
    /// It reads the target first, and combines it with `value`: `a(k) += value`.
    Update { value: Option<&'a Expr> },
}

impl Builder {
    /// Returns the target with its unsettled subscripts replaced by hidden variables, whose slots are added to `slots`.
    /// `None`: the target has no such subscripts.
    pub(super) fn settle(
        &mut self,
        target: &Target,
        assignment: AssignmentKind,
        slots: &mut Vec<Slot>,
    ) -> Result<Option<Target>, ScriptError> {
        let unsettled = |step: &Step| arguments(step).iter().any(|arg| self.is_unsettled(arg, assignment));
        if !target.steps.iter().any(unsettled) {
            return Ok(None);
        }
        let mut settled = target.clone();
        for at in 0..target.steps.len() {
            let args = arguments(&target.steps[at]);
            // It is not known how many subscripts a list gives, so the value of `end` beside it is not known either.
            let listed = args.iter().any(may_be_list);
            for (i, arg) in args.iter().enumerate() {
                let ends = mentions_end(from_ref(arg));
                let is_fixed = !ends || !listed && (at == 0 || matches!(assignment, AssignmentKind::Update { .. }));
                if is_fixed && self.is_unsettled(arg, assignment) {
                    let list = ends.then_some((i as u16, args.len() as u16));
                    let kept = self.kept(arg, list, &settled, at, slots)?;
                    put(&mut settled.steps[at], i, kept);
                }
            }
        }
        Ok(Some(settled))
    }

    /// Empties the hidden variables of subscripts after use, and frees them for reuse.
    pub(super) fn unsettle(&mut self, slots: Vec<Slot>, span: Span) {
        for slot in slots {
            self.emit(Inst::Load { slot, last: true, want: Want::One }, span);
            self.emit(Inst::Pop, span);
            let name = self.names()[slot as usize].clone();
            self.spare.push(name);
        }
    }

    /// Computes a subscript into a hidden variable, and returns the expression that reads it. `list` is set if the
    /// subscript contains `end`: it is its position among the subscripts. `end` refers to the target up to step `at`.
    fn kept(
        &mut self,
        arg: &Expr,
        list: Option<(u16, u16)>,
        target: &Target,
        at: usize,
        slots: &mut Vec<Slot>,
    ) -> Result<Expr, ScriptError> {
        let name = self.spare.pop().unwrap_or_else(|| Name::from(format!("({})", self.names().len())));
        let slot = self.slot(&name);
        if !self.hidden.contains(&slot) {
            self.hidden.push(slot);
        }
        slots.push(slot);
        if may_be_list(arg) {
            let cell = ExprKind::Cell(vec![vec![arg.clone()]]);
            self.expr(&Expr { kind: cell, span: arg.span })?;
        } else if let Some(list) = list {
            self.with_end(arg, list, target, at)?;
        } else {
            self.expr(arg)?;
        }
        self.emit(Inst::Store(slot), arg.span);
        if list.is_some() && at > 0 {
            self.emit(Inst::Pop, arg.span);
        }
        let read = Expr { kind: ExprKind::Name(name), span: arg.span };
        if !may_be_list(arg) {
            return Ok(read);
        }
        let all = StepKind::Brace(vec![Expr { kind: ExprKind::Colon, span: arg.span }]);
        let steps = vec![Step { kind: all, span: arg.span }];
        Ok(Expr { kind: ExprKind::Index(Box::new(read), steps), span: arg.span })
    }

    /// Compiles a subscript in which `end` refers to the target up to step `at`. Beyond the first step, that part of
    /// the target stays on the stack below the value.
    fn with_end(&mut self, arg: &Expr, list: (u16, u16), target: &Target, at: usize) -> Done {
        if at == 0 {
            // If the variable does not exist yet, `end` is zero.
            let (slot, path) = (self.slot(&target.name.name), self.path(Vec::new()));
            self.emit(Inst::BasePath { slot, path }, arg.span);
        } else {
            let steps = target.steps[..at].to_vec();
            self.read(&Target { steps, ..target.clone() })?;
            self.emit(Inst::BaseTop, arg.span);
        }
        self.lists.push(list);
        let result = self.expr(arg);
        self.lists.pop();
        result?;
        self.emit(Inst::BaseEnd, arg.span);
        Ok(())
    }

    /// Whether a subscript might have another value when it is read again, or after the value is computed.
    fn is_unsettled(&self, arg: &Expr, assignment: AssignmentKind) -> bool {
        let arg = from_ref(arg);
        let (value, sets) = match assignment {
            _ if changes_variables(arg) => return true,
            AssignmentKind::Update { .. } if contain(arg, &|kind| self.may_call(kind)) => return true,
            AssignmentKind::Update { value } => (value.map(from_ref).unwrap_or_default(), &[][..]),
            AssignmentKind::Plain { value, sets } => (from_ref(value), sets),
        };
        if contain(arg, &|kind| matches!(kind, ExprKind::Name(name) if sets.contains(name))) {
            return true;
        }
        if changes_variables(value) {
            return contain(arg, &|kind| matches!(kind, ExprKind::Name(_)));
        }
        contain(value, &|kind| self.calls_unknown(kind))
            && contain(arg, &|kind| self.calls_unknown(kind) || self.is_shared(kind))
    }

    /// Whether it is a name that is no variable here, or an indexed expression, which may call a handle.
    fn may_call(&self, kind: &ExprKind) -> bool {
        match kind {
            ExprKind::Name(name) => !self.is_assigned(name),
            ExprKind::Index(..) => true,
            _ => false,
        }
    }

    /// Whether it is a handle, or a name that is neither a variable here nor a function of the language. Functions of
    /// the language change no variables.
    fn calls_unknown(&self, kind: &ExprKind) -> bool {
        let ExprKind::Name(name) = kind else { return false };
        self.is_handle(name)
            || !self.is_assigned(name) && builtins::find(name).is_none() && library::find(name).is_none()
    }

    /// Whether it is a variable that functions called from here may change.
    fn is_shared(&self, kind: &ExprKind) -> bool {
        matches!(kind, ExprKind::Name(name) if self.is_static(name))
    }
}

/// Returns the expressions in a step.
fn arguments(step: &Step) -> &[Expr] {
    match &step.kind {
        StepKind::Paren(args) | StepKind::Brace(args) => args,
        StepKind::DynamicField(expr) => from_ref(&**expr),
        StepKind::Field(_) => &[],
    }
}

fn put(step: &mut Step, i: usize, expr: Expr) {
    match &mut step.kind {
        StepKind::Paren(args) | StepKind::Brace(args) => args[i] = expr,
        StepKind::DynamicField(name) => **name = expr,
        StepKind::Field(_) => {}
    }
}
