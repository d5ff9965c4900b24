//! Instructions that read and write parts of values.

use super::Interp;
use super::frame::Variable;
use crate::builtins::system::device;
use crate::compile::Code;
use crate::compile::code::{Count, Inst, PathStep, Slot, Want};
use crate::error::{Flow, ScriptError, Stop, fail};
use crate::index::{self, Access, Values};
use crate::memory;
use crate::syntax::ast::BinaryOp;
use crate::value::lazy::Provenance;
use crate::value::{Data, Form, Function, Held, Parser, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// Functions that can be called on a `containers.Map` as methods (`map.keys ()`).
const METHODS: [&str; 7] = ["isKey", "keys", "values", "remove", "length", "numel", "isempty"];

/// Returns the array of a variable if its elements are in host memory.
#[inline(always)]
fn in_host_memory(variable: &Variable) -> Option<&Tensor> {
    match variable {
        Variable::Value(Value::Tensor(tensor)) => Some(tensor),
        Variable::Value(Value::Lazy(lazy)) if !lazy.pinned.any() => lazy.host.get().map(|host| &**host),
        _ => None,
    }
}

impl Interp {
    /// Does `x(k)` for a vector of doubles and a double within the instruction loop.
    #[inline(always)]
    pub(super) fn apply_fast(&mut self, variable: usize) -> bool {
        let Some(tensor) = in_host_memory(&self.variables[variable]) else { return false };
        let (Some(Value::Num(k)), Data::F64(data)) = (self.stack.last_mut(), &*tensor.data) else { return false };
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

    /// Does `x(i, j)` for a matrix of doubles and two doubles within the instruction loop.
    #[inline(always)]
    pub(super) fn apply_pair_fast(&mut self, variable: usize) -> bool {
        let Variable::Value(Value::Tensor(tensor)) = &self.variables[variable] else { return false };
        let n = self.stack.len();
        let Some([Value::Num(i), Value::Num(j)]) = self.stack.last_chunk() else { return false };
        let (Some(at), Data::F64(data)) = (pair_place(tensor, *i, *j), &*tensor.data) else { return false };
        let Some(&x) = data.get(at) else { return false };
        self.stack.truncate(n - 1);
        self.stack[n - 2] = Value::Num(x);
        true
    }

    /// Does `x(a:b)` for an array in host memory, within its bounds, without making the range. It replaces the
    /// instructions from the range's to the one that reads.
    pub(super) fn slice_fast(&mut self, code: &Code, pc: usize, variables: usize) -> bool {
        let at = applied_at(code, pc);
        let Some(&Inst::Apply { slot, count: Count::Fixed(1), last, .. }) = code.insts.get(at) else { return false };
        let variable = variables + slot as usize;
        let Some(tensor) = in_host_memory(&self.variables[variable]) else { return false };
        let Some(&[Value::Num(first), Value::Num(end)]) = self.stack.last_chunk() else { return false };
        let (from, to) = ((first as usize).wrapping_sub(1), end as usize);
        let is_whole = first as usize as f64 == first && to as f64 == end;
        // A part of one element is a plain number, and a long part may have to be recorded, so both take the slow path.
        if !is_whole || from >= to || to > tensor.len() {
            return false;
        }
        let count = to - from;
        if !(2..=self.env.options.host_elements_max).contains(&count) {
            return false;
        }
        let part = Tensor { double_quoted: tensor.double_quoted, ..index::slice(tensor, from..to) };
        let value = Value::tensor(part);
        if last {
            self.variables[variable] = Variable::Undefined;
        }
        if at != pc + 1 {
            self.bases.pop();
        }
        self.stack.pop();
        self.stack.pop();
        self.stack.push(value);
        true
    }

    /// Does `x(k) = v` and `x(i, j) = v` within bounds, for an array of doubles that nothing else holds.
    #[inline(always)]
    pub(super) fn store_at_fast(&mut self, code: &Code, variable: usize, path: u32) -> bool {
        match code.paths[path as usize][..] {
            [PathStep::Paren(Count::Fixed(1))] => self.store_one_fast(variable),
            [PathStep::Paren(Count::Fixed(2))] => self.store_pair_fast(variable),
            _ => false,
        }
    }

    #[inline(always)]
    fn store_pair_fast(&mut self, variable: usize) -> bool {
        let Variable::Value(Value::Tensor(shared)) = &mut self.variables[variable] else { return false };
        let Some(&[Value::Num(value), Value::Num(i), Value::Num(j)]) = self.stack.last_chunk() else { return false };
        let Some(at) = pair_place(shared, i, j) else { return false };
        let Some(Tensor { data: Held::Own(Data::F64(data), _), form, .. }) = Arc::get_mut(shared) else { return false };
        // A diagonal matrix may remain one, which the slow path decides.
        let Some(place) = data.get_mut(at).filter(|_| *form != Form::Diagonal) else { return false };
        *place = value;
        *form = Form::Full;
        self.stack.truncate(self.stack.len() - 3);
        true
    }

    #[inline(always)]
    fn store_one_fast(&mut self, variable: usize) -> bool {
        let n = self.stack.len();
        let Variable::Value(Value::Tensor(tensor)) = &mut self.variables[variable] else { return false };
        let [Value::Num(value), Value::Num(k)] = self.stack[n - 2..] else { return false };
        let Some(Tensor { data: Held::Own(Data::F64(data), _), form, .. }) = Arc::get_mut(tensor) else { return false };
        let position = k as usize;
        if position as f64 != k || position == 0 || position > data.len() {
            return false;
        }
        data[position - 1] = value;
        *form = Form::Full;
        self.stack.truncate(n - 2);
        true
    }

    /// Loads a variable that is not a plain value: a global, or a name that turns out to be a function's.
    pub(super) fn load_slow(&mut self, inst: Inst) -> Flow<()> {
        let Inst::Load { slot, want, .. } = inst else { return Ok(()) };
        if let Some(value) = self.slot_value(slot) {
            self.stack.push(value);
            return Ok(());
        }
        let name = self.name_of(slot);
        self.call_by_name(&name, Count::Fixed(0), want)
    }

    /// Takes the arguments off the stack and runs `f` on them. If `f` must wait, the arguments are put back.
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

    /// Does `name(args)`: reads a part of a variable, or calls a function.
    pub(super) fn apply(&mut self, slot: Slot, count: Count, want: Want, last: bool) -> Flow<()> {
        self.bring_variable_to_host(slot)?;
        let value = match self.slot_value(slot) {
            Some(Value::Function(function)) => return self.call_handle(&function, 0, count, want),
            Some(value) => value,
            None => {
                let name = self.name_of(slot);
                return self.call_by_name(&name, count, want);
            }
        };
        self.bring_to_host(self.count(count))?;
        self.scalars_to_host(self.count(count), true)?;
        self.with_args(count, 0, |vm, args| {
            match index::paren(&mut vm.env, &value, args) {
                Ok(result) => {
                    let result = vm.beside(&value, result)?;
                    vm.note_result(std::iter::once(&value).chain(args), &result);
                    vm.stack.push(result);
                }
                Err(stop) => return Err(vm.named(stop, slot)),
            }
            if last {
                vm.clear_slot(slot);
            }
            Ok(())
        })
    }

    /// Pins a part that was read as the value is that it comes from.
    fn beside(&self, base: &Value, result: Value) -> Flow<Value> {
        match base.pinned().any() {
            true => device::beside(&self.env, [base], result),
            false => Ok(result),
        }
    }

    /// Makes an index error name the variable.
    fn named(&self, stop: Stop, slot: Slot) -> Stop {
        match stop {
            Stop::Error(error) => Stop::Error(with_variable(error, &self.name_of(slot))),
            other => other,
        }
    }

    /// Makes the index error of a deletion from an array name the variable. Octave leaves the parentheses out here:
    /// `x0: subscripts must be …`.
    fn named_deletion(&self, error: Box<ScriptError>, slot: Slot) -> Box<ScriptError> {
        let is_invalid = error.identifier == "Octave:invalid-index";
        let mut error = with_variable(error, &self.name_of(slot));
        if is_invalid && let Some((place, why)) = error.message.split_once(':') {
            let bare: String = place.chars().filter(|c| !matches!(c, '(' | ')' | ',')).collect();
            // `_` stands for the other subscripts. It is removed behind the name only, since a name may contain it.
            let name = self.name_of(slot);
            let number = bare.get(name.len()..).unwrap_or_default().replace('_', "");
            error.message = format!("{name}{number}:{why}");
        }
        error
    }

    /// Makes an index error in a part of a variable (`c{5}`) begin with the variable's name, which is read from the
    /// text.
    fn named_by_text(&self, stop: Stop) -> Stop {
        let (Stop::Error(error), Some(frame)) = (&stop, self.frame()) else { return stop };
        if !is_about_index(error) {
            return stop;
        }
        let place = self.place_of(frame);
        let text = place.source.text.get(place.span.range()).unwrap_or_default();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        match (stop, self.is_assigned(&text[..end])) {
            (Stop::Error(error), true) => Stop::Error(with_variable(error, &text[..end])),
            (stop, _) => stop,
        }
    }

    /// Does `value(args)`, for the value below the arguments on the stack.
    pub(super) fn paren(&mut self, count: Count, want: Want) -> Flow<()> {
        let below = self.stack.len().checked_sub(self.count(count) + 1).and_then(|at| self.stack.get(at));
        if let Some(Value::Function(function)) = below {
            return self.call_handle(&function.clone(), 1, count, want);
        }
        self.with_args(count, 1, |vm, all| {
            let (value, args) = match all.split_first() {
                Some(split) => split,
                None => return Ok(()),
            };
            let result = index::paren(&mut vm.env, value, args).map_err(|stop| vm.named_by_text(stop))?;
            let result = vm.beside(value, result)?;
            vm.note_result(all, &result);
            vm.stack.push(result);
            Ok(())
        })
    }

    /// Does `value{args}`, for the value below the arguments on the stack.
    pub(super) fn brace(&mut self, count: Count, want: Want) -> Flow<()> {
        self.with_args(count, 1, |vm, all| {
            let (value, args) = match all.split_first() {
                Some(split) => split,
                None => return Ok(()),
            };
            let values = index::brace(&mut vm.env, value, args).map_err(|stop| vm.named_by_text(stop))?;
            vm.push_list(values, want)
        })
    }

    /// Does `value.name`. It also drops `extra` operands above the value.
    pub(super) fn field(&mut self, name: &str, extra: usize, want: Want) -> Flow<()> {
        let at = self.stack.len().saturating_sub(1 + extra);
        let value = self.stack[at].clone();
        let values = index::field(&value, name)?;
        self.stack.truncate(at);
        self.push_list(values, want)
    }

    /// Does `object.name` before parentheses: if the object has such a method, the method replaces the object on the
    /// stack.
    pub(super) fn method(&mut self, name: &str) -> bool {
        let methods: &[&'static str] = match self.stack.last() {
            Some(Value::Map(_)) => &METHODS,
            Some(Value::Parser(_)) => &Parser::METHODS,
            _ => return false,
        };
        let (Some(object), Some(name)) = (self.stack.last(), methods.iter().find(|m| **m == name)) else {
            return false;
        };
        let method = Value::Function(Arc::new(Function::Method(name, object.clone())));
        self.stack.pop();
        self.stack.push(method);
        true
    }

    /// Pushes a comma list, of which the instruction may want exactly one value.
    fn push_list(&mut self, mut values: Values, want: Want) -> Flow<()> {
        match want {
            Want::First if values.is_empty() => return fail!("invalid number of elements on RHS of assignment"),
            Want::First => values.truncate(1),
            Want::Further if values.len() != 1 => return fail!("a cs-list cannot be further indexed"),
            _ => {}
        }
        if want == Want::One && values.len() != 1 {
            return Err(self.no_operand(values.is_empty()).into());
        }
        self.stack.extend(values);
        Ok(())
    }

    /// Returns the error for a list with no value, or several, where one is wanted. It names the operator that comes
    /// next.
    fn no_operand(&self, is_empty: bool) -> ScriptError {
        let pc = self.frame().map_or(0, |frame| frame.pc + 1);
        let unary = |sign: &str| format!("unary operator '{sign}' not implemented for 'cs-list' operands");
        let binary = |op: BinaryOp, left: &str, right: &str| {
            format!("binary operator '{}' not implemented for '{left}' by '{right}' operations", op.symbol())
        };
        let left = || self.stack.last().map_or("scalar", Value::type_name);
        ScriptError::new(match self.code().insts.get(pc..).unwrap_or_default() {
            [Inst::Unary(op), ..] => unary(op.symbol()),
            [Inst::Transpose { conjugate: true }, ..] => unary("'"),
            [Inst::Transpose { .. }, ..] => unary(".'"),
            [Inst::Binary(op), ..] => binary(*op, left(), "cs-list"),
            [Inst::Num(_), Inst::Binary(op), ..] => binary(*op, "cs-list", "scalar"),
            _ if is_empty => "indexing produces no results".into(),
            _ => "some elements undefined in argument list".into(),
        })
    }

    /// Returns the steps of a path with their subscripts, the height of the stack below the subscripts, and the number
    /// of marks below theirs.
    pub(super) fn path_steps(&self, path: u32) -> Flow<(Vec<Access>, usize, usize)> {
        let code = self.code().clone();
        let path = &code.paths[path as usize];
        // Subscripts are counted from the last step backwards, since marks nest.
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

    /// Does `variable<path> = value`; the value lies below the subscripts on the stack.
    pub(super) fn store_at(&mut self, slot: Slot, path: u32) -> Flow<()> {
        self.bring_variable_to_host(slot)?;
        let (mut steps, mut at, mut marks) = self.path_steps(path)?;
        if self.bring_to_host(self.stack.len() - at.saturating_sub(1))? {
            (steps, at, marks) = self.path_steps(path)?;
        }
        let value = match self.stack.get(at.wrapping_sub(1)) {
            Some(Value::Colon) | None => return fail!("value on right hand side of assignment is undefined"),
            Some(value) => value.clone(),
        };
        let spoils = !self.handlers.is_empty() && self.may_spoil(&value);
        let kept = if spoils { self.before_part(slot) } else { None };
        let mut target = self.take_slot(slot);
        let in_try = !self.handlers.is_empty();
        // Only arrays of the runtime are held while they change. Holding any other value would make the store copy it.
        let before = [&value].into_iter().chain(&target).filter(|v| matches!(v, Value::Lazy(_)) && in_try);
        let before: SmallVec<[Value; 2]> = before.cloned().collect();
        let was_recorded = matches!(target, Some(Value::Lazy(_)));
        let provenance = Provenance::of([&value].into_iter().chain(&target), self.env.options.near_elements_max);
        let is_plain = matches!(steps[..], [Access::Paren(_)]);
        let pinned = value.pinned() | target.as_ref().map(Value::pinned).unwrap_or_default();
        let is_pinned = is_plain && pinned.any();
        let mut result = index::assign(&mut self.env, &mut target, &steps, value);
        if is_pinned && let Some(now) = target.take() {
            match device::pinned_as(&self.env, now.clone(), pinned) {
                Ok(pinned) => target = Some(pinned),
                Err(stop) => {
                    target = Some(now);
                    result = result.and(Err(stop));
                }
            }
        }
        if let Some(Value::Lazy(made)) = &target {
            made.set_provenance(provenance);
        }
        if let Some(now) = &target {
            self.note_result(&before, now);
            // Subscripts that lie on the runtime may be at fault, too.
            let recorded = before.last().filter(|_| was_recorded && self.may_spoil(now));
            if result.is_ok() && (spoils || recorded.is_some()) {
                self.overwrote(slot, kept.or_else(|| recorded.map(|before| Some(before.clone()))));
            }
        }
        self.put_slot(slot, target);
        result.map_err(|stop| self.named(stop, slot))?;
        self.stack.truncate(at - 1);
        self.marks.truncate(marks);
        Ok(())
    }

    /// Does `variable<path> = []`.
    pub(super) fn delete_at(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, at, marks) = self.path_steps(path)?;
        let held = self.take_slot(slot);
        let was_there = held.is_some();
        // Deleting from a variable without a value leaves the empty matrix.
        let mut target = held.unwrap_or_else(Value::empty);
        let fits = memory::check_operands(&self.env, std::slice::from_ref(&target), 24, false);
        let result = fits.and_then(|()| index::delete(&mut self.env, &mut target, &steps));
        let is_array = !matches!(target, Value::Cell(_) | Value::Struct(_));
        if was_there || result.is_ok() {
            self.put_slot(slot, Some(target));
        }
        result.map_err(|stop| match stop {
            Stop::Error(error) if is_array => Stop::Error(self.named_deletion(error, slot)),
            stop => self.named(stop, slot),
        })?;
        self.stack.truncate(at);
        self.marks.truncate(marks);
        Ok(())
    }

    /// Pushes the value that `end` refers to in the subscripts of an assignment: the value at the path, or an empty
    /// one.
    pub(super) fn base_path(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, ..) = self.path_steps(path)?;
        let mut value = self.slot_value(slot);
        for step in &steps {
            let Some(base) = value.take() else { break };
            let found: Flow<Option<Value>> = match step {
                Access::Paren(args) => index::paren(&mut self.env, &base, args).map(Some),
                Access::Brace(args) => index::brace(&mut self.env, &base, args).map(|v| v.into_iter().next()),
                Access::Field(name) => index::field(&base, name).map(|v| v.into_iter().next()),
            };
            value = match found {
                Ok(value) => value,
                // A part that does not exist yet has no elements.
                Err(Stop::Error(_)) => None,
                Err(stop) => return Err(stop),
            };
        }
        self.bases.push(Some(value.unwrap_or_else(Value::empty)));
        Ok(())
    }

    /// Does `end`, for the innermost list around it that indexes a value.
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

/// Returns where the value is read whose only subscript the instruction at `pc` makes.
pub(super) fn applied_at(code: &Code, pc: usize) -> usize {
    if let Some(Inst::BaseEnd) = code.insts.get(pc + 1) { pc + 2 } else { pc + 1 }
}

/// Returns the position of row `i` and column `j` (from 1) in a matrix; `None` outside of it.
#[inline(always)]
fn pair_place(tensor: &Tensor, i: f64, j: f64) -> Option<usize> {
    let (row, column) = (i as usize, j as usize);
    let &[rows, columns] = &tensor.dims[..] else { return None };
    let inside =
        row as f64 == i && column as f64 == j && row.wrapping_sub(1) < rows && column.wrapping_sub(1) < columns;
    inside.then(|| row - 1 + (column - 1) * rows)
}

fn is_about_index(error: &ScriptError) -> bool {
    let by_subscript = ["Octave:index-out-of-bounds", "Octave:invalid-index"].contains(&&*error.identifier);
    by_subscript && error.message.starts_with("index (")
}

/// Makes an index error name a variable: `index (5): out of bound 3 …` becomes `x(5): out of bound 3 …`.
fn with_variable(mut error: Box<ScriptError>, name: &str) -> Box<ScriptError> {
    if is_about_index(&error) {
        error.message.replace_range(.."index ".len(), name);
    }
    error
}
