//! Gathers the arguments of library functions that look at single elements: all arguments are awaited once, together,
//! and results for arrays that were pinned to the device are put back there.
//!
//! In: a call with arrays of the runtime among its arguments. Out: the same call with host arrays. Must hold: the
//! number of gathers does not depend on the arguments' lengths.

use super::Interp;
use crate::builtins::system::device;
use crate::builtins::{Task, TaskStep};
use crate::compile::Code;
use crate::error::{Flow, ScriptError};
use crate::index::Values;
use crate::library;
use crate::value::{Class, Function, Value};
use std::sync::Arc;

/// A call whose arguments are gathered to the host first.
pub(super) struct GatheredCall {
    function: Arc<Function>,
    args: Vec<Value>,
    nargout: usize,
}

impl GatheredCall {
    /// Returns the task of a call, if the function wants its arguments gathered and one of them is on the runtime.
    pub fn of(code: &Arc<Code>, args: &[Value], nargout: usize) -> Option<GatheredCall> {
        let is_away = |value: &Value| matches!(value, Value::Lazy(_));
        if !args.iter().any(is_away) || !library::holds(code) || !library::gathers_arguments(&code.name) {
            return None;
        }
        let function = Function::Named(code.name.clone(), Some(code.source.clone()));
        Some(GatheredCall { function: Arc::new(function), args: args.to_vec(), nargout })
    }
}

impl Task for GatheredCall {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        let Some(last) = last else {
            if interp.env.traces.are_any() {
                interp.env.traces.runs(self.function.text());
            }
            interp.env.host_all(&self.args)?;
            let args = self.args.iter().map(|value| match value {
                Value::Lazy(_) => Ok(Value::held(interp.env.host(value)?)),
                other => Ok(other.clone()),
            });
            let (function, args) = (self.function.clone(), args.collect::<Flow<_>>()?);
            return Ok(TaskStep::Call { function, args, nargout: self.nargout });
        };
        // Texts stay on the host.
        let values = last?.into_iter().map(|value| match value.is_numeric() || value.class() == Class::Logical {
            true => device::beside(&interp.env, &self.args, value),
            false => Ok(value),
        });
        Ok(TaskStep::Done(values.collect::<Flow<_>>()?))
    }
}
