//! Loops, `switch`, and caught errors.

use super::exception::error_value;
use super::frame::{Activation, Caught, Handler, Heights, Iteration, Variable};
use super::{End, Interp};
use crate::compile::code::{Inst, Slot};
use crate::error::{Flow, Need, ScriptError, Stop, fail};
use crate::index;
use crate::interrupt::Guard;
use crate::ops::{self, Span};
use crate::value::{CellArray, Class, Data, Dims, Lazy, Tensor, Value, lazy};
use std::sync::Arc;

impl Interp {
    /// Begins a loop over a range of doubles, which is not made into an array.
    pub(super) fn for_range(&mut self, step: bool) -> Flow<()> {
        let n = self.stack.len();
        let parts = if step { 3 } else { 2 };
        let numbers: Option<Vec<f64>> = self.stack[n - parts..]
            .iter()
            .map(|v| match v {
                Value::Num(x) => Some(*x),
                _ => None,
            })
            .collect();
        let iteration = match numbers.as_deref() {
            Some([start, stop]) => Iteration::Range { span: Span::looped(*start, 1.0, *stop)?, next: 0 },
            Some([start, by, stop]) => Iteration::Range { span: Span::looped(*start, *by, *stop)?, next: 0 },
            _ => {
                let [start, middle, stop] = match &self.stack[n - parts..] {
                    [a, b, c] => [a.clone(), b.clone(), c.clone()],
                    [a, c] => [a.clone(), Value::Num(1.0), c.clone()],
                    _ => return Ok(()),
                };
                let row = match self.env.take_awaited() {
                    Some(row) => row,
                    None => match ops::range(&mut self.env, &start, step.then_some(&middle), &stop)? {
                        // The array is awaited as a value, since the instruction would record it anew when it runs
                        // again.
                        Value::Lazy(row) => return Err(Stop::Need(Need::Future(Box::pin(gathered(row))))),
                        row => row,
                    },
                };
                self.columns_of(row)?
            }
        };
        self.stack.truncate(n - parts);
        self.iterations.push(iteration);
        Ok(())
    }

    /// A loop over the columns of a value.
    pub(super) fn for_begin(&mut self) -> Flow<()> {
        let Some(value) = self.stack.last().cloned() else { return Ok(()) };
        if !value.is_dlarray() {
            self.env.host_all([&value])?;
        }
        let iteration = self.columns_of(value)?;
        self.stack.pop();
        self.iterations.push(iteration);
        Ok(())
    }

    /// A loop over the fields of a struct.
    pub(super) fn for_fields(&mut self) -> Flow<()> {
        let Some(Value::Struct(data)) = self.stack.last().cloned() else {
            return fail!("in statement 'for [X, Y] = VAL', VAL must be a structure");
        };
        self.stack.pop();
        self.iterations.push(Iteration::Fields { data, next: 0 });
        Ok(())
    }

    fn columns_of(&mut self, value: Value) -> Flow<Iteration> {
        if matches!(value, Value::Function(_)) {
            return fail!("invalid type in for loop expression");
        }
        let dims = value.dims();
        let count = if dims.rows() == 0 { 0 } else { dims.elements() / dims.rows() };
        Ok(match value {
            Value::Num(_) | Value::Bool(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) | Value::Colon => {
                Iteration::Once(Some(value))
            }
            Value::Struct(s) if s.len() == 1 => Iteration::Once(Some(Value::Struct(s))),
            Value::Cell(data) => Iteration::Cells { data, next: 0, count },
            // Its columns are recorded, since they have derivatives.
            Value::Lazy(ref l) if l.pinned.is_dlarray => Iteration::Columns { data: value, next: 0, count },
            Value::Lazy(_) => {
                let data = Value::Tensor(self.env.host(&value)?);
                self.columns_of(data)?
            }
            Value::Tensor(ref t) if t.dims.rows() == 1 && matches!(*t.data, Data::F64(_)) => {
                Iteration::Row { data: value, next: 0, count }
            }
            data => Iteration::Columns { data, next: 0, count },
        })
    }

    /// Puts the next number of a loop over doubles into its variable. Returns `false` for any other loop, and at the
    /// end.
    #[inline(always)]
    pub(super) fn next_number(&mut self, variable: usize) -> bool {
        let x = match self.iterations.last_mut() {
            Some(Iteration::Range { span: Some(span), next }) if *next < span.count() => {
                *next += 1;
                span.at(*next - 1)
            }
            Some(Iteration::Row { data: Value::Tensor(t), next, count }) if *next < *count => match &*t.data {
                Data::F64(data) => {
                    *next += 1;
                    data[*next - 1]
                }
                _ => return false,
            },
            _ => return false,
        };
        match &mut self.variables[variable] {
            Variable::Static(_) | Variable::Shared(_) => self.put_at(variable, Some(Value::Num(x))),
            other => *other = Variable::Value(Value::Num(x)),
        }
        true
    }

    /// The next column of the innermost loop; `None` at its end.
    pub(super) fn next_column(&mut self) -> Flow<Option<Value>> {
        let Some(iteration) = self.iterations.last_mut() else { return Ok(None) };
        Ok(match iteration {
            Iteration::Range { span, next } => span.filter(|span| *next < span.count()).map(|span| {
                *next += 1;
                Value::Num(span.at(*next - 1))
            }),
            Iteration::Once(value) => value.take(),
            Iteration::Fields { data, next } => {
                let Some((name, values)) = data.fields.get_index(*next) else { return Ok(None) };
                *next += 1;
                let value = match &values[..] {
                    [one] => one.clone(),
                    many => Value::cell(data.dims.clone(), many.to_vec()),
                };
                self.stack.push(Value::string(name.as_bytes()));
                Some(value)
            }
            Iteration::Cells { data, next, count } => (*next < *count).then(|| {
                let rows = data.dims.rows();
                let items = data.items[*next * rows..(*next + 1) * rows].to_vec();
                *next += 1;
                Value::Cell(Arc::new(CellArray::new(Dims::new(&[rows, 1]), items)))
            }),
            Iteration::Row { data, next, count } | Iteration::Columns { data, next, count } => {
                if *next >= *count {
                    return Ok(None);
                }
                *next += 1;
                let (data, column) = (data.clone(), Value::Num(*next as f64));
                let flat = match data.dims().len() {
                    2 => data,
                    _ => flat_columns(&data),
                };
                Some(index::paren(&mut self.env, &flat, &[Value::Colon, column])?)
            }
        })
    }

    /// Returns the value that a loop without iterations leaves in its variable: the empty value that it looped over.
    pub(super) fn nothing_to_loop_over(&self) -> Option<Value> {
        match self.iterations.last()? {
            Iteration::Range { span: None, .. } => {
                Some(Value::tensor(Tensor::zeros(Class::Double, Dims::new(&[1, 0]))))
            }
            Iteration::Row { data, count: 0, .. } | Iteration::Columns { data, count: 0, .. } => Some(data.clone()),
            Iteration::Cells { data, count: 0, .. } => Some(Value::Cell(data.clone())),
            _ => None,
        }
    }

    /// Replaces a case's value on the stack by whether it matches the subject below it.
    pub(super) fn case_matches(&mut self) -> Flow<()> {
        let n = self.stack.len();
        let (subject, case) = (self.stack[n - 2].clone(), self.stack[n - 1].clone());
        self.env.host_all([&subject, &case])?;
        // All comparisons are done in host memory. The result of a recorded comparison would have to be awaited each
        // time.
        let (subject, case) = (self.on_host(subject)?, self.on_host(case)?);
        let fits = match &case {
            Value::Cell(cell) => {
                let mut any = false;
                for item in &cell.items {
                    let item = self.on_host(item.clone())?;
                    any = any || self.fits(&subject, &item)?;
                }
                any
            }
            case => self.fits(&subject, case)?,
        };
        self.stack[n - 1] = Value::Bool(fits);
        Ok(())
    }

    /// Returns an array of the runtime that was awaited as a host array; any other value unchanged.
    fn on_host(&self, value: Value) -> Flow<Value> {
        match value {
            Value::Lazy(_) => Ok(Value::Tensor(self.env.host(&value)?)),
            other => Ok(other),
        }
    }

    fn fits(&mut self, subject: &Value, case: &Value) -> Flow<bool> {
        let is_array = |v: &Value| matches!(v, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
        match (subject.as_bytes(), case.as_bytes()) {
            (Some(a), Some(b)) => return Ok(a == b),
            (Some(_), None) if !is_array(case) => return Ok(false),
            (None, Some(_)) if !is_array(subject) => return Ok(false),
            // A text beside numbers counts as the numbers of its characters.
            _ => {}
        }
        if subject.is_empty() || case.is_empty() {
            return Ok(subject.dims() == case.dims());
        }
        if let (Value::Num(a), Value::Num(b)) = (subject, case) {
            return Ok(a == b);
        }
        let extents = |v: &Value| (v.dims().rows(), v.dims().columns());
        if extents(subject) != extents(case) {
            return Ok(false);
        }
        if !is_array(subject) || !is_array(case) {
            // These values cannot be compared, and the operator returns the error that says so.
            let equal = ops::binary(&mut self.env, crate::syntax::ast::BinaryOp::Eq, subject, case)?;
            return ops::truth(&mut self.env, &equal);
        }
        let (subject, case) = (self.env.host(subject)?, self.env.host(case)?);
        if subject.data.class() == case.data.class() && subject.data.is_complex() == case.data.is_complex() {
            return Ok(subject.data == case.data);
        }
        let n = subject.len();
        Ok(n == case.len() && (0..n).all(|i| subject.data.c64_at(i) == case.data.c64_at(i)))
    }

    pub(super) fn heights(&self) -> Heights {
        Heights {
            stack: self.stack.len(),
            iterations: self.iterations.len(),
            marks: self.marks.len(),
            bases: self.bases.len(),
            targets: self.targets.len(),
            handlers: self.handlers.len(),
            overwritten: self.overwritten.len(),
        }
    }

    /// VM-3: drops everything above these heights.
    pub(super) fn cut(&mut self, heights: Heights) {
        self.stack.truncate(heights.stack);
        self.iterations.truncate(heights.iterations);
        self.marks.truncate(heights.marks);
        self.bases.truncate(heights.bases);
        self.targets.truncate(heights.targets);
        self.handlers.truncate(heights.handlers);
        self.overwritten.truncate(heights.overwritten);
    }

    pub(super) fn try_begin(&mut self, pc: u32) {
        let heights = self.heights();
        let since = self.suspects.next();
        let pc = pc as usize;
        let cleans = matches!(self.code().insts.get(pc), Some(Inst::HoldError));
        let guard = cleans.then(|| Guard::of(&self.interrupt, Some(&self.guards)));
        let held = match self.frames.last() {
            Some(Activation::Code(frame)) => frame.held.len(),
            _ => 0,
        };
        self.handlers.push(Handler { frame: self.frames.len() - 1, pc, heights, since, held, guard });
    }

    /// Ends the body of a `try`. With `check`, it awaits the faults of all arrays that the body recorded.
    pub(super) fn try_end(&mut self, check: bool) -> Flow<()> {
        let Some(since) = self.handlers.last().map(|h| h.since) else { return Ok(()) };
        if check && self.env.take_awaited().is_none() {
            let unchecked = self.suspects.since(since);
            if !unchecked.is_empty() {
                return Err(Stop::Need(Need::Materialised(unchecked)));
            }
        }
        if let Some(handler) = self.handlers.pop() {
            self.overwritten.truncate(handler.heights.overwritten);
        }
        if self.handlers.is_empty() {
            self.suspects.forget(0);
        }
        Ok(())
    }

    /// Unwinds an error: to the innermost `try` or task that takes it, or out of the script.
    pub(super) fn unwind(&mut self, mut error: ScriptError) -> Result<(), End> {
        self.env.awaited.clear();
        self.blame_record(&mut error);
        if error.place.is_none() {
            error.place = self.here();
        }
        if error.stack.is_empty() {
            error.stack = self.calls();
        }
        self.env.last_error = Some(error.clone());
        self.leave(Some(error))
    }

    /// Unwinds an interrupt: to the innermost cleanup, or out of the script.
    pub(super) fn unwind_interrupted(&mut self) -> Result<(), End> {
        self.env.awaited.clear();
        self.heed_interrupts();
        // A builtin that checks its session between two pieces of its work reports only an interrupt, so the session is
        // checked here.
        self.loses_session();
        if self.stops_for_good() {
            self.abandon_all();
            return Err(End::Interrupted);
        }
        // This must begin before unwinding drops the guards of the cleanups.
        self.cleaning.get_or_insert_with(|| Guard::of(&self.interrupt, Some(&self.guards)));
        self.leave(None)
    }

    /// Drops frames up to the one that takes the error, or the interrupt if there is no error. A `try` or a task takes
    /// an error; only a cleanup takes an interrupt. If no frame takes it, it ends the script.
    fn leave(&mut self, mut error: Option<ScriptError>) -> Result<(), End> {
        loop {
            let depth = self.frames.len();
            let handler = self.handlers.last().filter(|handler| handler.frame + 1 == depth);
            let held = handler.map_or(0, |handler| handler.held);
            if let Some(error) = error.take_if(|_| self.leaves_interrupted(held)) {
                return self.interrupted_by(error);
            }
            match (self.frames.last_mut(), handler) {
                (None, _) => return Err(End::by(error)),
                (Some(Activation::Code(frame)), None) if frame.is_session => return Err(End::by(error)),
                (Some(Activation::Code(frame)), Some(handler)) => {
                    let (heights, since) = (handler.heights, handler.since);
                    let is_caught = error.is_some();
                    let takes = is_caught || handler.guard.is_some();
                    frame.held.truncate(held);
                    if takes {
                        frame.pc = handler.pc;
                        frame.caught = Some(error.take().map_or(Caught::Interrupt, Caught::Error));
                    }
                    if is_caught {
                        self.doubt(heights.overwritten);
                    }
                    self.cut(heights);
                    self.suspects.forget(since);
                    if takes {
                        return Ok(());
                    }
                }
                (Some(Activation::Task(task)), _) if error.is_some() && task.task.catches() && task.last.is_none() => {
                    task.last = error.map(Err);
                    let heights = task.heights;
                    self.cut(heights);
                    return Ok(());
                }
                _ => self.drop_frame(),
            }
        }
    }

    /// Whether an error that leaves the innermost frame, or the cleanups in it beyond the first `held`, leaves a
    /// cleanup that an interrupt runs.
    fn leaves_interrupted(&self, held: usize) -> bool {
        match self.frames.last() {
            Some(Activation::Code(frame)) => frame.held.iter().skip(held).any(|h| matches!(h, Caught::Interrupt)),
            _ => false,
        }
    }

    /// Handles an error that ends a cleanup which an interrupt runs. The interrupt continues and the error becomes a
    /// warning; but if nothing is left to run, the script ends with the error.
    fn interrupted_by(&mut self, error: ScriptError) -> Result<(), End> {
        if self.unwind_interrupted().is_err() {
            return Err(End::Failed(Box::new(error)));
        }
        self.env.warn("", &format!("error while cleaning up after an interrupt: {}", error.message));
        Ok(())
    }

    /// Returns the error with which the script would end after the present cleanup, as no `try` further out catches it.
    pub(super) fn error_behind_cleanup(&self) -> Option<Box<ScriptError>> {
        let mut behind = None;
        for (n, activation) in self.frames.iter().enumerate() {
            let frame = match activation {
                Activation::Code(frame) => frame,
                Activation::Task(task) if task.task.catches() => break,
                Activation::Task(_) => continue,
            };
            let catch = self.handlers.iter().find(|handler| handler.frame == n && handler.guard.is_none());
            let is_next = matches!(frame.code.insts.get(frame.pc), Some(Inst::HoldError));
            // Errors of cleanups that began within a `try` are caught by it.
            let held = frame.held.iter().take(catch.map_or(usize::MAX, |catch| catch.held));
            let next = frame.caught.iter().filter(|_| is_next && catch.is_none());
            for caught in held.chain(next) {
                if let Caught::Error(error) = caught {
                    behind = Some(error);
                }
            }
            if catch.is_some() {
                break;
            }
        }
        behind.cloned().map(Box::new)
    }

    /// Marks all interrupts so far as handled.
    pub fn heed_interrupts(&mut self) {
        self.env.halt.heed();
    }

    /// Whether an interrupt came that was not handled yet.
    pub fn is_interrupted(&self) -> bool {
        self.env.halt.is_due()
    }

    /// Stores the caught error in the variable of `catch err`.
    pub(super) fn caught(&mut self, slot: Option<Slot>) {
        let caught = self.frame_mut().and_then(|f| f.caught.take());
        if let (Some(Caught::Error(error)), Some(slot)) = (caught, slot) {
            self.put_slot(slot, Some(error_value(&error)));
        }
    }

    pub(super) fn hold_error(&mut self) {
        if let Some(frame) = self.frame_mut()
            && let Some(caught) = frame.caught.take()
        {
            frame.held.push(caught);
        }
    }

    pub(super) fn rethrow(&mut self) -> Flow<()> {
        match self.frame_mut().and_then(|f| f.held.pop()) {
            Some(Caught::Error(error)) => Err(error.into()),
            Some(Caught::Interrupt) => Err(Stop::Interrupted),
            None => Ok(()),
        }
    }
}

/// Gathers an array of the runtime to host memory.
async fn gathered(lazy: Arc<Lazy>) -> Result<Value, ScriptError> {
    lazy::fetch(std::slice::from_ref(&lazy)).await?;
    let host = lazy.host.get().cloned();
    Ok(host.map_or(Value::Lazy(lazy), Value::Tensor))
}

/// Returns an array of more than two dimensions as a matrix with the same columns.
fn flat_columns(value: &Value) -> Value {
    let dims = value.dims();
    let flat = Dims::new(&[dims.rows(), dims.elements().checked_div(dims.rows()).unwrap_or(0)]);
    match value {
        Value::Tensor(t) => Value::Tensor(Arc::new(t.seen_as(flat))),
        Value::Struct(s) => Value::Struct(Arc::new((**s).clone().with_dims(flat))),
        other => other.clone(),
    }
}
