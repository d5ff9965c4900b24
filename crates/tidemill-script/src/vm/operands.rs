//! The operands of instructions: how many there are, bringing them to the host, and replacing them by results.

use super::Interp;
use crate::builtins::system::device;
use crate::compile::code::{Count, Inst, Want};
use crate::error::{Flow, fail};
use crate::index;
use crate::memory;
use crate::value::Value;
use std::sync::atomic::Ordering;

impl Interp {
    /// Reads a field, or calls the method of this name if `called` says that arguments follow.
    pub(super) fn field_or_method(&mut self, name: u32, called: bool, want: Want) -> Flow<()> {
        let name = self.code().consts[name as usize].as_text().unwrap_or_default();
        if called && self.method(&name) {
            return Ok(());
        }
        self.field(&name, 0, want)
    }

    /// Reads the field whose name is the operand on top.
    pub(super) fn dynamic_field(&mut self, want: Want) -> Flow<()> {
        let Some(name) = self.stack.last().and_then(Value::as_text) else {
            return fail!("dynamic structure field names must be strings");
        };
        self.field(&name, 1, want)
    }

    /// Does [`Interp::bring_to_host`] for the operands of an instruction whose operands are all arrays.
    pub(super) fn bring_operands_to_host(&mut self, inst: Inst) -> Flow<()> {
        let n = match inst {
            Inst::Unary(_) | Inst::Transpose { .. } => 1,
            Inst::Binary(_) => 2,
            Inst::Row(count) | Inst::RowOfRows(count) => self.count(count),
            Inst::Rows(n) => n as usize,
            _ => return Ok(()),
        };
        self.bring_to_host(n).map(|_| ())
    }

    /// Gathers small arrays among the upper `n` operands, if small arrays are kept on the host; returns `true` if there
    /// were any. If one of the operands is a large array of the runtime, all of them stay there.
    pub(super) fn bring_to_host(&mut self, n: usize) -> Flow<bool> {
        if !self.env.keeps_small_on_host() {
            return Ok(false);
        }
        let near = self.env.options.near_elements_max;
        let at = self.stack.len().saturating_sub(n);
        let is_away = |v: &&Value| matches!(v, Value::Lazy(_));
        let is_far = |v: &Value| matches!(v, Value::Lazy(l) if !l.is_near(near));
        let operands = &self.stack[at..];
        if !operands.iter().any(|v| is_away(&v)) || operands.iter().any(is_far) {
            return Ok(false);
        }
        self.env.host_all(operands.iter().filter(is_away))?;
        for operand in &mut self.stack[at..] {
            if let Value::Lazy(lazy) = operand
                && let Some(host) = lazy.host_value()
            {
                *operand = host;
            }
        }
        Ok(true)
    }

    /// Does the same for the array in a variable.
    pub(super) fn bring_variable_to_host(&mut self, slot: crate::compile::code::Slot) -> Flow<()> {
        if !self.env.keeps_small_on_host() {
            return Ok(());
        }
        if let Some(Value::Lazy(lazy)) = self.slot_value(slot)
            && lazy.is_near(self.env.options.near_elements_max)
        {
            self.env.host(&Value::Lazy(lazy.clone()))?;
            self.put_slot(slot, lazy.host_value());
        }
        Ok(())
    }

    /// Pops `n` operands, and pushes the result of the function.
    pub(super) fn replace(
        &mut self,
        n: usize,
        f: impl FnOnce(&mut crate::env::Env, &[Value]) -> Flow<Value>,
    ) -> Flow<()> {
        let at = self.stack.len().saturating_sub(n);
        memory::check_operands(&self.env, &self.stack[at..], 0, true)?;
        let takes_snapshot = self.snapshot.is_some() && !self.stack[at..].iter().all(|v| matches!(v, Value::Num(_)));
        let value = match takes_snapshot {
            true => self.with_snapshot(|interp| f(&mut interp.env, &interp.stack[at..])),
            false => f(&mut self.env, &self.stack[at..]),
        }?;
        let value = match self.env.has_pinned.load(Ordering::Relaxed) {
            true => device::beside(&self.env, &self.stack[at..], value)?,
            false => value,
        };
        self.note_result_of(at, &value);
        self.stack.truncate(at);
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn replace_count(
        &mut self,
        count: Count,
        f: impl FnOnce(&mut crate::env::Env, &[Value]) -> Flow<Value>,
    ) -> Flow<()> {
        let n = self.count(count);
        self.replace(n, f)?;
        self.drop_mark(count);
        Ok(())
    }

    /// Joins the upper `n` operands in place, if the first of them allows it.
    pub(super) fn append(&mut self, dim: usize, n: usize) -> bool {
        let at = self.stack.len().saturating_sub(n);
        let done = n > 1
            && !self.env.has_pinned.load(Ordering::Relaxed)
            && index::append(&self.env, dim, &mut self.stack[at..]);
        if done {
            self.stack.truncate(at + 1);
        }
        done
    }

    /// Returns the number of operands of an instruction.
    pub(super) fn count(&self, count: Count) -> usize {
        match count {
            Count::Fixed(n) => n as usize,
            Count::Marked => self.stack.len() - self.marks.last().copied().unwrap_or(0).min(self.stack.len()),
        }
    }

    /// Drops the mark of a counted list after use.
    pub(super) fn drop_mark(&mut self, count: Count) {
        if count == Count::Marked {
            self.marks.pop();
        }
    }

    pub(super) fn spread(&mut self, n: usize) {
        let at = self.marks.pop().unwrap_or(0).min(self.stack.len());
        self.stack.truncate((at + n).min(self.stack.len()));
        while self.stack.len() < at + n {
            self.stack.push(Value::Colon);
        }
        self.stack[at..].reverse();
    }
}
