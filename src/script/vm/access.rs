//! Instructions that read and write parts of values.

use super::Interp;
use super::frame::{Return, Variable};
use crate::script::compile::Code;
use crate::script::compile::code::{Count, Inst, PathStep, Slot, Want};
use crate::script::error::{Flow, Stop, fail, fail_id};
use crate::script::index::{self, Access, Values};
use crate::script::value::{Data, Function, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;

impl Interp {
    /// `x(k)` of a vector of doubles by a double, without leaving the loop.
    #[inline(always)]
    pub(super) fn apply_fast(&mut self, variable: usize) -> bool {
        let Variable::Value(Value::Tensor(tensor)) = &self.variables[variable] else { return false };
        let (Some(Value::Num(k)), Data::F64(data)) = (self.stack.last_mut(), &tensor.data) else { return false };
        let position = *k as usize;
        if position as f64 != *k || position == 0 {
            return false;
        }
        match data.get(position - 1) {
            Some(x) => {
                *k = *x;
                true
            }
            None => false,
        }
    }

    /// `x(k) = v` of doubles that nobody else holds, within bounds.
    #[inline(always)]
    pub(super) fn store_at_fast(&mut self, code: &Code, variable: usize, path: u32) -> bool {
        let [PathStep::Paren(Count::Fixed(1))] = code.paths[path as usize][..] else { return false };
        let n = self.stack.len();
        let Variable::Value(Value::Tensor(tensor)) = &mut self.variables[variable] else { return false };
        let [Value::Num(value), Value::Num(k)] = self.stack[n - 2..] else { return false };
        let Some(Tensor { data: Data::F64(data), is_range, .. }) = Arc::get_mut(tensor) else { return false };
        let position = k as usize;
        if position as f64 != k || position == 0 || position > data.len() {
            return false;
        }
        data[position - 1] = value;
        *is_range = false;
        self.stack.truncate(n - 2);
        true
    }

    /// A variable that is not a plain value: a global, or the name of a function.
    pub(super) fn load_slow(&mut self, inst: Inst) -> Flow<()> {
        let Inst::Load { slot, want, .. } = inst else { return Ok(()) };
        if let Some(value) = self.slot_value(slot) {
            self.stack.push(value);
            return Ok(());
        }
        let name = self.name_of(slot);
        self.call_by_name(&name, Values::new(), want)
    }

    /// Arguments leave the stack; `f` runs; where it must wait they come back.
    fn with_args(&mut self, count: Count, below: usize, f: impl FnOnce(&mut Interp, &[Value]) -> Flow<()>) -> Flow<()> {
        let n = self.count(count);
        let at = self.stack.len().saturating_sub(n + below);
        let args: SmallVec<[Value; 4]> = self.stack.drain(at..).collect();
        match f(self, &args) {
            Err(Stop::Need(need)) => {
                self.stack.truncate(at);
                self.stack.extend(args);
                Err(Stop::Need(need))
            }
            other => {
                self.drop_mark(count);
                other
            }
        }
    }

    /// `name(args)`: a variable indexed or a function called.
    pub(super) fn apply(&mut self, slot: Slot, count: Count, want: Want, last: bool) -> Flow<()> {
        let Some(value) = self.slot_value(slot) else {
            let name = self.name_of(slot);
            return self.with_args(count, 0, |vm, args| vm.call_by_name(&name, args.iter().cloned().collect(), want));
        };
        self.with_args(count, 0, |vm, args| {
            if let Value::Function(function) = &value {
                return vm.call_handle(function, args, want);
            }
            match index::paren(&mut vm.env, &value, args) {
                Ok(result) => vm.stack.push(result),
                Err(stop) => return Err(vm.named(stop, slot)),
            }
            if last {
                vm.clear_slot(slot);
            }
            Ok(())
        })
    }

    /// An index error says which variable it is about.
    fn named(&self, stop: Stop, slot: Slot) -> Stop {
        match stop {
            Stop::Error(mut error)
                if error.identifier == "Octave:index-out-of-bounds" || error.identifier == "Octave:invalid-index" =>
            {
                let name = self.name_of(slot);
                error.message = with_variable(&error.message, &name, self.slot_value(slot).as_ref());
                Stop::Error(error)
            }
            other => other,
        }
    }

    /// `value(args)` of the value below the arguments.
    pub(super) fn paren(&mut self, count: Count, want: Want) -> Flow<()> {
        self.with_args(count, 1, |vm, all| {
            let (value, args) = match all.split_first() {
                Some(split) => split,
                None => return Ok(()),
            };
            match value {
                Value::Function(function) => vm.call_handle(function, args, want),
                value => {
                    let result = index::paren(&mut vm.env, value, args)?;
                    vm.stack.push(result);
                    Ok(())
                }
            }
        })
    }

    fn call_handle(&mut self, function: &Arc<Function>, args: &[Value], want: Want) -> Flow<()> {
        let nargout = self.outputs_wanted(want);
        self.call_function(function, args.iter().cloned().collect(), Return::Push(want), nargout)
    }

    /// `value{args}` of the value below the arguments.
    pub(super) fn brace(&mut self, count: Count, want: Want) -> Flow<()> {
        self.with_args(count, 1, |vm, all| {
            let (value, args) = match all.split_first() {
                Some(split) => split,
                None => return Ok(()),
            };
            let values = index::brace(&mut vm.env, value, args)?;
            vm.push_list(values, want)
        })
    }

    /// `value.name`; `extra` operands above the value go with it.
    pub(super) fn field(&mut self, name: &str, extra: usize, want: Want) -> Flow<()> {
        let at = self.stack.len().saturating_sub(1 + extra);
        let value = self.stack[at].clone();
        let values = index::field(&mut self.env, &value, name)?;
        self.stack.truncate(at);
        self.push_list(values, want)
    }

    /// A comma list: one value where one is wanted.
    fn push_list(&mut self, values: Values, want: Want) -> Flow<()> {
        if want == Want::One && values.len() != 1 {
            return if values.is_empty() {
                fail!("indexing produces no results")
            } else {
                fail!("some elements undefined in argument list")
            };
        }
        self.stack.extend(values);
        Ok(())
    }

    /// The steps of a path with their subscripts, which lie on the stack from `at` on.
    fn way(&self, path: u32) -> Flow<(Vec<Access>, usize, usize)> {
        let code = self.code().clone();
        let path = &code.paths[path as usize];
        // Subscripts are counted from the last step back, since marks nest.
        let mut end = self.stack.len();
        let mut mark = self.marks.len();
        let mut ranges = Vec::with_capacity(path.len());
        for step in path.iter().rev() {
            let n = match step {
                PathStep::Field(_) => 0,
                PathStep::DynamicField => 1,
                PathStep::Paren(Count::Fixed(n)) | PathStep::Brace(Count::Fixed(n)) => *n as usize,
                PathStep::Paren(Count::Marked) | PathStep::Brace(Count::Marked) => {
                    mark = mark.saturating_sub(1);
                    end.saturating_sub(self.marks.get(mark).copied().unwrap_or(end))
                }
            };
            let start = end.saturating_sub(n);
            ranges.push(start..end);
            end = start;
        }
        let mut steps = Vec::with_capacity(path.len());
        for (step, range) in path.iter().zip(ranges.into_iter().rev()) {
            let values: Values = self.stack[range].iter().cloned().collect();
            steps.push(match step {
                PathStep::Field(name) => Access::Field(name.clone()),
                PathStep::DynamicField => match values.first().and_then(Value::as_text) {
                    Some(name) => Access::Field(name.into()),
                    None => return fail!("dynamic structure field names must be strings"),
                },
                PathStep::Paren(_) => Access::Paren(values),
                PathStep::Brace(_) => Access::Brace(values),
            });
        }
        Ok((steps, end, mark))
    }

    /// `variable<path> = value`; the value lies below the subscripts.
    pub(super) fn store_at(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, at, marks) = self.way(path)?;
        let value = match self.stack.get(at.wrapping_sub(1)) {
            Some(Value::Colon) | None => return fail!("value on the right hand side of the assignment not defined"),
            Some(value) => value.clone(),
        };
        let mut target = self.take_slot(slot);
        let result = index::assign(&mut self.env, &mut target, &steps, value);
        self.put_slot(slot, target);
        result.map_err(|stop| self.named(stop, slot))?;
        self.stack.truncate(at - 1);
        self.marks.truncate(marks);
        Ok(())
    }

    /// `variable<path> = []`.
    pub(super) fn delete_at(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, at, marks) = self.way(path)?;
        let Some(mut target) = self.take_slot(slot) else {
            let name = self.name_of(slot);
            return fail_id!(
                "Octave:undefined-function",
                "invalid use of a N_-D array in indexed assignment: '{name}' undefined"
            );
        };
        let result = index::delete(&mut self.env, &mut target, &steps);
        self.put_slot(slot, Some(target));
        result.map_err(|stop| self.named(stop, slot))?;
        self.stack.truncate(at);
        self.marks.truncate(marks);
        Ok(())
    }

    /// What `end` means in the subscripts of an assignment: what lies at the path, or nothing yet.
    pub(super) fn base_path(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, at, marks) = self.way(path)?;
        let mut value = self.slot_value(slot);
        for step in &steps {
            let Some(base) = value.take() else { break };
            let found: Flow<Option<Value>> = match step {
                Access::Paren(args) => index::paren(&mut self.env, &base, args).map(Some),
                Access::Brace(args) => index::brace(&mut self.env, &base, args).map(|v| v.into_iter().next()),
                Access::Field(name) => index::field(&mut self.env, &base, name).map(|v| v.into_iter().next()),
            };
            value = match found {
                Ok(value) => value,
                // What is not there yet has no elements.
                Err(Stop::Error(_)) => None,
                Err(stop) => return Err(stop),
            };
        }
        self.stack.truncate(at);
        self.marks.truncate(marks);
        self.bases.push(Some(value.unwrap_or_else(Value::empty)));
        Ok(())
    }

    /// `end`: of the innermost list around it that indexes a value.
    pub(super) fn end(&mut self, index: u32) -> Flow<()> {
        let code = self.code().clone();
        let lists = &code.ends[index as usize];
        for (base, &(position, count)) in self.bases.iter().rev().zip(lists) {
            if let Some(base) = base {
                let end = index::end(base, position as usize, count as usize);
                self.stack.push(Value::Num(end as f64));
                return Ok(());
            }
        }
        fail!("'end': nonconformant arguments")
    }
}

/// An index error about a variable: `index (5): out of bound; value 5 out of bound 3` becomes
/// `x(5): out of bound 3 (dimensions are 1x3)`.
fn with_variable(message: &str, name: &str, value: Option<&Value>) -> String {
    let Some(rest) = message.strip_prefix("index (") else { return message.to_string() };
    let Some((place, why)) = rest.split_once("): out of bound; value ") else { return format!("{name}({rest}") };
    let bound = why.rsplit(' ').next().unwrap_or_default();
    match value {
        Some(value) => format!("{name}({place}): out of bound {bound} (dimensions are {})", value.dims()),
        None => format!("{name}({place}): out of bound {bound}"),
    }
}
