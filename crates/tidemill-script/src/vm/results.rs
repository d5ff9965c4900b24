//! Instructions that show values, and that make cells and handles of functions.

use super::Interp;
use crate::compile::code::Want;
use crate::display;
use crate::error::{Flow, Stop, fail};
use crate::index::{self, Values};
use crate::memory;
use crate::value::function::Closure;
use crate::value::{CellArray, Dims, Function, Value};
use std::sync::Arc;

impl Interp {
    pub(super) fn closure(&mut self, index: u32) {
        let code = self.code().clone();
        let made = &code.closures[index as usize];
        let captured =
            (made.captures.iter()).filter_map(|&(outer, inner)| Some((inner, self.slot_value(outer)?))).collect();
        let nest = self.frame().filter(|_| made.calls_nested).and_then(|frame| frame.nest.clone());
        let function = Function::Anonymous(Arc::new(Closure { code: made.code.clone(), captured, nest }));
        self.stack.push(Value::Function(Arc::new(function)));
    }

    pub(super) fn show(&mut self, slot: u32) -> Flow<()> {
        let Some(value) = self.slot_value(slot) else { return Ok(()) };
        let name = self.name_of(slot);
        self.shown(&name, &value)
    }

    fn shown(&mut self, name: &str, value: &Value) -> Flow<()> {
        memory::check_operands(&self.env, std::slice::from_ref(value), memory::BYTES_SHOWN, false)?;
        self.with_snapshot(|interp| display::show(&mut interp.env, name, value))
    }

    /// Handles the values of a statement that is an expression: assigns `ans`, and prints.
    pub(super) fn answer(&mut self, print: bool, name: Option<u32>) -> Flow<()> {
        let at = self.marks.last().copied().unwrap_or(0).min(self.stack.len());
        let values: Values = self.stack[at..].iter().cloned().collect();
        // The values that will be shown are awaited first, so that nothing is printed twice.
        if print {
            self.with_snapshot(|interp| interp.env.host_all(&values))?;
        }
        let variable = name.filter(|&slot| self.is_defined(slot));
        for value in &values {
            match variable {
                Some(slot) if print => {
                    let name = self.name_of(slot);
                    self.shown(&name, value)?;
                }
                Some(_) => {}
                None => {
                    self.set_variable("ans", value.clone())?;
                    if print {
                        self.shown("ans", value)?;
                    }
                }
            }
        }
        self.marks.pop();
        self.stack.truncate(at);
        Ok(())
    }

    /// Pushes one value if one is wanted, and all if many are.
    pub(super) fn push_wanted(&mut self, values: Values, want: Want) -> Flow<()> {
        match want {
            Want::One | Want::First | Want::Further => match values.into_iter().next() {
                Some(value) => self.stack.push(value),
                None => {
                    return fail!("value on right hand side of assignment is undefined");
                }
            },
            Want::Many(_) | Want::Targets => self.stack.extend(values),
        }
        Ok(())
    }
}

pub(super) fn cell_row(parts: &[Value]) -> Value {
    // A cell among the parts becomes an item, and is not joined: `{c}` holds `c`.
    Value::Cell(Arc::new(if parts.is_empty() {
        CellArray::new(Dims::zero(), Vec::new())
    } else {
        CellArray::row(parts.to_vec())
    }))
}

pub(super) fn cell_rows(env: &mut crate::env::Env, rows: &[Value]) -> Flow<Value> {
    match rows {
        [] => Ok(Value::cell(Dims::zero(), Vec::new())),
        _ => match index::concatenate(env, 0, rows) {
            Err(Stop::Error(error)) if error.message.starts_with("vertical dimensions mismatch (") => {
                fail!("number of columns must match")
            }
            joined => joined,
        },
    }
}
