//! The instruction loop: the fast loop over frequent instructions, and one step of the others.

use super::access::applied_at;
use super::call::missing;
use super::frame::{Activation, Frame, Return, TaskFrame, Variable};
use super::results::{cell_row, cell_rows};
use super::{End, Interp};
use crate::builtins::language::errors::CleansUp;
use crate::builtins::{Task, TaskStep};
use crate::compile::code::{Count, Inst, is_in};
use crate::error::{Flow, Need, ScriptError, Stop};
use crate::index;
use crate::ops;
use crate::source::Place;
use crate::syntax::ast::BinaryOp;
use crate::value::Value;
use std::sync::Arc;
use tidemill::frontend;

/// Why the machine stopped running.
pub(super) enum Slice {
    /// Something must be awaited before it goes on.
    Need(Need),
    /// The script has ended.
    End(End),
}

/// Steps between two checks for interrupts, a lost reader and other tasks. A backward jump or a call counts 1, an
/// instruction outside of the fast loop [`SLOW_STEP_COST`].
const STEPS_BETWEEN_CHECKS: u32 = 20_000;
/// The steps that an instruction counts which may take a while. A step of a builtin that calls functions counts the
/// same.
pub(super) const SLOW_STEP_COST: u32 = 8;

/// How often numbers on the runtime may meet numbers on the host before they are awaited.
const NUMBERS_MET_MAX: u32 = 32;

impl Interp {
    /// Runs until something must be awaited, or the end.
    pub(super) fn slice(&mut self) -> Slice {
        let mut budget = STEPS_BETWEEN_CHECKS;
        loop {
            if !self.doubtful.is_empty() {
                return Slice::Need(Need::Yield);
            }
            if self.cleans_up()
                && let Some(due) = &self.env.due
            {
                let (task, heights): (Box<dyn Task>, _) = (Box::new(CleansUp::all(due)), self.heights());
                let returns = Return::Discard;
                self.frames.push(Activation::Task(TaskFrame { task, last: None, heights, returns, nargout: 0 }));
            }
            let result = match self.frames.last_mut() {
                None => return self.come_to_end(),
                // A session's own frame has no statements; its texts run above it.
                Some(Activation::Code(frame)) if frame.is_session => {
                    self.end_shared();
                    match self.is_due() {
                        true => continue,
                        false => return self.come_to_end(),
                    }
                }
                Some(Activation::Code(_)) => self.run_frame(&mut budget),
                Some(Activation::Task(_)) => self.run_task(&mut budget),
            };
            let end = match result {
                Ok(()) => continue,
                Err(Stop::Need(need)) => return Slice::Need(need),
                Err(Stop::Exit(status)) => {
                    self.env.awaited.clear();
                    let after = self.error_behind_cleanup();
                    self.keep_workspace();
                    self.drop_frames();
                    End::Exit { status, after }
                }
                Err(Stop::Interrupted) => match self.unwind_interrupted() {
                    Ok(()) => continue,
                    Err(end) => end,
                },
                Err(Stop::Error(error)) => match self.unwind(*error) {
                    Ok(()) => continue,
                    Err(end) => end,
                },
            };
            self.ends_with(end);
            if !self.is_due() {
                return self.come_to_end();
            }
        }
    }

    /// Raises an error of an awaited value at the instruction that asked for it.
    pub(super) fn raise(&mut self, error: ScriptError) -> Result<(), End> {
        self.unwind(error)
    }

    /// Returns the place of the innermost code.
    pub fn here(&self) -> Option<Place> {
        self.frames.iter().rev().find_map(|a| match a {
            Activation::Code(f) => Some(self.place_of(f)),
            Activation::Task(_) => None,
        })
    }

    pub(super) fn place_of(&self, frame: &Frame) -> Place {
        let span = frame.code.spans.get(frame.pc).copied().unwrap_or_default();
        Place { source: frame.code.source.clone(), span }
    }

    fn run_task(&mut self, budget: &mut u32) -> Flow<()> {
        *budget = budget.saturating_sub(SLOW_STEP_COST);
        if *budget == 0 {
            return self.check_and_yield();
        }
        // The task is taken out of the machine while it steps, since its step gets the machine.
        let n = self.frames.len() - 1;
        self.step_begins();
        if let Some(frame) = self.frame() {
            self.env.session.mark((frame.code.id as u64) << 32 | frame.pc as u64);
        }
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let Some(Activation::Task(mut frame)) = self.frames.pop() else { return Ok(()) };
        let last = frame.last.take();
        if self.env.traces.are_any() {
            self.env.traces.runs("");
        }
        let result = self.with_snapshot(|interp| frame.task.step(interp, last));
        if frontend::is_wait_due() || self.has_due_suspects() {
            *budget = 0;
        }
        let (returns, nargout) = (frame.returns, frame.nargout);
        self.frames.insert(n, Activation::Task(frame));
        // If the step must wait, it runs again without the result of its last call, which it has taken in already.
        let step = self.raised_or(result)?;
        self.env.check_account()?;
        match step {
            TaskStep::Done(values) => {
                self.frames.pop();
                self.deliver(values, returns, nargout)
            }
            TaskStep::Call { function, args, nargout } => {
                self.call_function(&function, args.into(), Return::Task, nargout)
            }
        }
    }

    /// Returns a step's result. A warning in the step that counts as an error takes precedence.
    pub(super) fn raised_or<T>(&mut self, result: Flow<T>) -> Flow<T> {
        match self.env.raised.take() {
            Some(error) => Err(Stop::Error(error)),
            None => result,
        }
    }

    /// Runs the innermost frame's code until it calls a function, ends or stops.
    fn run_frame(&mut self, budget: &mut u32) -> Flow<()> {
        let depth = self.frames.len();
        let Some(Activation::Code(frame)) = self.frames.last() else { return Ok(()) };
        let code = frame.code.clone();
        let base = frame.variables;
        let mut pc = frame.pc;
        loop {
            let inst = code.insts[pc];
            match inst {
                Inst::Num(x) => self.stack.push(Value::Num(x)),
                Inst::Load { slot, last, .. } => {
                    let variable = &mut self.variables[base + slot as usize];
                    match variable {
                        Variable::Value(Value::Num(x)) => self.stack.push(Value::Num(*x)),
                        Variable::Value(_) if last => {
                            let Variable::Value(value) = std::mem::take(variable) else { continue };
                            self.stack.push(value);
                        }
                        Variable::Value(value) => self.stack.push(value.clone()),
                        _ => {
                            self.set_pc(pc);
                            self.load_slow(inst)?;
                            if self.frames.len() != depth {
                                return Ok(());
                            }
                        }
                    }
                }
                Inst::Store(slot) if self.store_fast(base + slot as usize) => {}
                Inst::Binary(op) if self.binary_fast(op) => {}
                Inst::Jump(to) => {
                    if self.uses_up(budget, pc, to) {
                        self.set_pc(to as usize);
                        return self.check_and_yield();
                    }
                    pc = to as usize;
                    continue;
                }
                Inst::JumpIf { to, when } => {
                    let truth = match self.stack.last() {
                        Some(Value::Bool(b)) => *b,
                        Some(Value::Num(x)) if !x.is_nan() => *x != 0.0,
                        _ => {
                            self.set_pc(pc);
                            self.truth_of_top()?
                        }
                    };
                    self.stack.pop();
                    if truth == when {
                        if self.uses_up(budget, pc, to) {
                            self.set_pc(to as usize);
                            return self.check_and_yield();
                        }
                        pc = to as usize;
                        continue;
                    }
                }
                Inst::ForNext { slot, exit } => {
                    if !self.next_number(base + slot as usize) {
                        self.set_pc(pc);
                        if !self.next_column_in(base + slot as usize)? {
                            pc = exit as usize;
                            continue;
                        }
                    }
                }
                Inst::Apply { slot, count: Count::Fixed(1), last: false, .. }
                    if self.apply_fast(base + slot as usize) => {}
                Inst::Apply { slot, count: Count::Fixed(2), last: false, .. }
                    if self.apply_pair_fast(base + slot as usize) => {}
                Inst::Range { step: false } if self.slice_fast(&code, pc, base) => pc = applied_at(&code, pc),
                Inst::StoreAt { slot, path } if self.store_at_fast(&code, base + slot as usize, path) => {}
                Inst::Return => {
                    self.set_pc(pc);
                    return self.return_from_frame();
                }
                _ => {
                    let Some(next) = self.slow_step(inst, pc, budget)? else { return Ok(()) };
                    pc = next;
                    continue;
                }
            }
            pc += 1;
        }
    }

    /// Counts a jump backward. Returns `true` if the budget is used up.
    #[inline(always)]
    fn uses_up(&mut self, budget: &mut u32, from: usize, to: u32) -> bool {
        if to as usize > from {
            return false;
        }
        self.steps += 1;
        *budget = budget.saturating_sub(1);
        *budget == 0
    }

    /// Puts the next column of a loop into its variable. Returns `false` if the loop has ended.
    fn next_column_in(&mut self, variable: usize) -> Flow<bool> {
        if let Some(value) = self.next_column()? {
            self.set_slot(variable, value);
            return Ok(true);
        }
        if let Some(nothing) = self.nothing_to_loop_over() {
            self.set_slot(variable, nothing);
        }
        self.iterations.pop();
        Ok(false)
    }

    /// Sets the current instruction, at which the frame goes on and which errors name.
    pub(super) fn set_pc(&mut self, pc: usize) {
        self.step_begins();
        if let Some(Activation::Code(frame)) = self.frames.last_mut() {
            frame.pc = pc;
            // Arrays that are recorded from here on carry this mark, so that their faults name the place.
            self.env.session.mark((frame.code.id as u64) << 32 | pc as u64);
        }
    }

    fn store_fast(&mut self, variable: usize) -> bool {
        match (&mut self.variables[variable], self.stack.last()) {
            (_, None | Some(Value::Colon)) | (Variable::Static(_) | Variable::Shared(_), _) => false,
            (_, Some(Value::Lazy(_) | Value::Cell(_) | Value::Struct(_))) if !self.handlers.is_empty() => false,
            (target, Some(_)) => {
                if let Some(value) = self.stack.pop() {
                    *target = Variable::Value(value);
                }
                true
            }
        }
    }

    /// Does operators on two doubles within the fast loop.
    #[inline(always)]
    fn binary_fast(&mut self, op: BinaryOp) -> bool {
        let n = self.stack.len();
        if n < 2 {
            return false;
        }
        let [Value::Num(a), Value::Num(b)] = &self.stack[n - 2..] else { return false };
        let (a, b) = (*a, *b);
        let result = match op {
            BinaryOp::Add => Value::Num(a + b),
            BinaryOp::Sub => Value::Num(a - b),
            BinaryOp::Mul | BinaryOp::MatMul => Value::Num(a * b),
            BinaryOp::Div | BinaryOp::MatDiv => Value::Num(a / b),
            BinaryOp::Lt => Value::Bool(a < b),
            BinaryOp::Le => Value::Bool(a <= b),
            BinaryOp::Gt => Value::Bool(a > b),
            BinaryOp::Ge => Value::Bool(a >= b),
            BinaryOp::Eq => Value::Bool(a == b),
            BinaryOp::Ne => Value::Bool(a != b),
            _ => return false,
        };
        self.stack.truncate(n - 1);
        self.stack[n - 2] = result;
        true
    }

    /// Tells the traces of `dlfeval` which instruction runs.
    fn note_asker(&mut self, inst: Inst) {
        let traces = &mut self.env.traces;
        match inst {
            Inst::Unary(op) => traces.runs(format!("operator {}", op.symbol())),
            Inst::Binary(op) => traces.runs(format!("operator {}", op.symbol())),
            Inst::Apply { .. } | Inst::Paren { .. } | Inst::Brace { .. } => traces.runs("indexing"),
            Inst::StoreAt { .. } | Inst::DeleteAt { .. } | Inst::StoreTarget { .. } => {
                traces.runs("indexed assignment")
            }
            Inst::Range { .. } | Inst::ForRange { .. } => traces.runs("colon"),
            Inst::Row(_) | Inst::RowOfRows(_) | Inst::Rows(_) => traces.runs("concatenation"),
            _ => traces.runs(""),
        }
        // Showing a value and comparing it with a case need no derivative.
        if matches!(inst, Inst::Show(_) | Inst::Answer { .. } | Inst::CaseMatches) {
            traces.allow(true);
        }
    }

    /// Does one of the instructions that the fast loop does not do.
    pub(super) fn step(&mut self, inst: Inst) -> Flow<Next> {
        let depth = self.frames.len();
        if self.env.traces.are_any() {
            self.note_asker(inst);
        }
        if self.env.keeps_small_on_host() {
            self.bring_operands_to_host(inst)?;
        }
        match inst {
            Inst::Const(index) => self.stack.push(self.code().consts[index as usize].clone()),
            Inst::Colon => self.stack.push(Value::Colon),
            Inst::Store(slot) => self.store_slow(slot)?,
            Inst::Pop => drop(self.stack.pop()),
            Inst::Duplicate => self.stack.extend_from_within(self.stack.len().saturating_sub(1)..),
            Inst::Unary(op) => self.replace(1, |env, s| ops::unary(env, op, &s[0]))?,
            Inst::Transpose { conjugate } => self.replace(1, |env, s| ops::transpose(env, &s[0], conjugate))?,
            Inst::Binary(op) => self.binary(op)?,
            Inst::Range { step: true } => self.replace(3, |env, s| ops::range(env, &s[0], Some(&s[1]), &s[2]))?,
            Inst::Range { step: false } => self.replace(2, |env, s| ops::range(env, &s[0], None, &s[1]))?,
            Inst::JumpIfDecided { to, or } => return self.jump_if_decided(to, or),
            Inst::JumpIfDefined { slot, to } if self.is_defined(slot) => return Ok(Next::To(to)),
            Inst::JumpIfDefined { .. } => {}
            Inst::Mark => self.marks.push(self.stack.len()),
            Inst::BaseSlot(slot) => self.bases.push(self.slot_value(slot)),
            Inst::BaseTop => self.bases.push(self.stack.last().cloned()),
            Inst::BasePath { slot, path } => self.base_path(slot, path)?,
            Inst::BaseEnd => drop(self.bases.pop()),
            Inst::End(index) => self.end(index)?,
            Inst::Apply { slot, count, want, last } => self.apply(slot, count, want, last)?,
            Inst::Paren { count, want } => self.paren(count, want)?,
            Inst::Brace { count, want } => self.brace(count, want)?,
            Inst::Field { name, called, want } => self.field_or_method(name, called, want)?,
            Inst::DynamicField { want } => self.dynamic_field(want)?,
            Inst::Call { name, count, want } => self.call_named(name, count, want)?,
            Inst::StoreAt { slot, path } => self.store_at(slot, path)?,
            Inst::DeleteAt { slot, path } => self.delete_at(slot, path)?,
            Inst::Spread { n, ignored } => {
                self.all_set(|i| is_in(ignored, i as u32))?;
                self.spread(n as usize);
            }
            Inst::TargetsBegin => self.targets.push(Default::default()),
            Inst::Target { slot, path } => self.target(slot, path)?,
            Inst::TargetPlain { ignored } => self.target_plain(ignored),
            Inst::SpreadTargets => self.spread_targets()?,
            Inst::StoreTarget { slot, target } => self.store_target(slot, target)?,
            Inst::TargetDefined { target } => self.target_defined(target)?,
            Inst::TargetsEnd => drop(self.targets.pop()),
            Inst::Defined(n) if matches!(self.stack.last(), Some(Value::Colon)) => {
                return Err(missing(n as usize).into());
            }
            Inst::Defined(_) => {}
            Inst::Row(count) | Inst::RowOfRows(count) if self.append(1, self.count(count)) => self.drop_mark(count),
            Inst::Row(count) => self.replace_count(count, |env, s| index::concatenate(env, 1, s))?,
            Inst::RowOfRows(count) => self.replace_count(count, index::row_of_rows)?,
            Inst::Rows(n) if self.append(0, n as usize) => {}
            Inst::Rows(n) => self.replace(n as usize, |env, s| index::concatenate(env, 0, s))?,
            Inst::CellRow(count) => self.replace_count(count, |_, s| Ok(cell_row(s)))?,
            Inst::CellRows(n) => self.replace(n as usize, cell_rows)?,
            Inst::Closure(index) => self.closure(index),
            Inst::NestedHandle(name) => self.nested_handle(name)?,
            Inst::Show(slot) => self.show(slot)?,
            Inst::Answer { print, name } => self.answer(print, name)?,
            Inst::ForBegin => self.for_begin()?,
            Inst::ForFields => self.for_fields()?,
            Inst::ForRange { step } => self.for_range(step)?,
            Inst::ForNextTop { exit } => return self.push_next_column(exit),
            Inst::ForEnd => drop(self.iterations.pop()),
            Inst::CaseMatches => self.case_matches()?,
            Inst::TryBegin { handler } => self.try_begin(handler),
            Inst::TryEnd { check } => self.try_end(check)?,
            Inst::Caught(slot) => self.caught(slot),
            Inst::HoldError => self.hold_error(),
            Inst::Rethrow => return self.rethrow().map(|()| Next::Through),
            Inst::Global(slot) => self.make_global(slot),
            Inst::Persistent(slot) => self.make_persistent(slot),
            Inst::Num(_)
            | Inst::Load { .. }
            | Inst::Jump(_)
            | Inst::JumpIf { .. }
            | Inst::ForNext { .. }
            | Inst::Return => {}
        }
        Ok(if self.frames.len() == depth { Next::Through } else { Next::Entered })
    }

    fn binary(&mut self, op: BinaryOp) -> Flow<()> {
        self.scalars_to_host(2, false)?;
        self.replace(2, |env, s| ops::binary(env, op, &s[0], &s[1]))
    }

    /// Jumps if the operand on top decides an `&&` (`or` is false) or an `||` (`or` is true).
    fn jump_if_decided(&mut self, to: u32, or: bool) -> Flow<Next> {
        if self.stack.last().is_some_and(|v| v.dims().is_scalar()) && self.truth_of_top()? == or {
            self.stack.pop();
            self.stack.push(Value::Bool(or));
            return Ok(Next::To(to));
        }
        Ok(Next::Through)
    }

    /// Pushes the next value of the innermost loop, or leaves the loop if there is none.
    fn push_next_column(&mut self, exit: u32) -> Flow<Next> {
        Ok(match self.next_column()? {
            Some(value) => {
                self.stack.push(value);
                Next::Through
            }
            None => {
                self.iterations.pop();
                Next::To(exit)
            }
        })
    }

    /// Replaces numbers of the runtime among the upper `n` operands by host numbers if their values are known. If
    /// numbers on the runtime meet numbers on the host again and again, as in a sum over elements that began on the
    /// runtime, they are awaited, since such a loop would record an op each time. So are numbers that are `subscripts`.
    pub(super) fn scalars_to_host(&mut self, n: usize, subscripts: bool) -> Flow<()> {
        let at = self.stack.len().saturating_sub(n);
        let operands = &mut self.stack[at..];
        let loose = |v: &Value| matches!(v, Value::Lazy(l) if !l.pinned.any() && l.dims.is_scalar());
        if !operands.iter().any(loose) {
            return Ok(());
        }
        for operand in operands.iter_mut().filter(|v| loose(v)) {
            if let Value::Lazy(lazy) = operand
                && let Some(host) = lazy.host.get()
            {
                *operand = Value::tensor_as_is((**host).clone());
            }
        }
        let away = operands.iter().filter(|v| loose(v)).count();
        let numbers = operands.iter().filter(|v| matches!(v, Value::Num(_) | Value::Bool(_))).count();
        if away > 0 && (subscripts || numbers > 0 && away + numbers == n) {
            self.numbers_met += 1;
            self.env.waits_for(self.stack[at..].iter().filter(|v| loose(v)));
            if self.numbers_met >= NUMBERS_MET_MAX {
                self.numbers_met = 0;
                return self.env.host_all(&self.stack[at..]);
            }
        }
        Ok(())
    }

    fn truth_of_top(&mut self) -> Flow<bool> {
        let Some(value) = self.stack.last() else { return Ok(false) };
        let value = value.clone();
        // A condition has no derivative and needs none.
        let could_read = self.env.traces.allow(true);
        let truth = ops::truth(&mut self.env, &value);
        self.env.traces.allow(could_read);
        truth
    }

    /// Returns the code of the innermost frame.
    ///
    /// # Panics
    /// VM-1: only called while code runs.
    pub(super) fn code(&self) -> &Arc<crate::compile::Code> {
        match self.frames.last() {
            Some(Activation::Code(frame)) => &frame.code,
            _ => unreachable!("VM-1: an instruction belongs to a frame of code"),
        }
    }
}

/// Where the code goes on.
pub(super) enum Next {
    Through,
    To(u32),
    /// A frame was entered or left.
    Entered,
}
