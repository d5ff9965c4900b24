//! `dlarray`, `dlfeval`, `dlgradient`, `extractdata`: derivatives of functions of the script.
//!
//! In: arrays. Out: the same arrays on the runtime, marked as `dlarray`, and their gradients. Must hold: DL-1: within
//! `dlfeval`, each dlarray among the arguments is a value of its own, so that a variable that the function captured, or
//! that is passed twice, counts as another one. DL-2: what is computed from a dlarray is one, if it has derivatives.

use super::args::is_word;
use super::{ANY, Builtin, Outcome, Task, TaskStep, row};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::index::Values;
use crate::trace::Trace;
use crate::value::lazy::lift;
use crate::value::{CellArray, Class, Function, Lazy, Pinned, StructArray, Value};
use crate::vm::Interp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemill::Array;

/// The family.
pub static ROWS: &[Builtin] = &[
    row("dlarray", 1, 2, 1, "dlarray (x)", "An array whose derivatives dlgradient gives.", dlarray),
    row("isdlarray", 1, 1, 1, "isdlarray (x)", "Whether a value is a dlarray.", |_, a, _| {
        Ok(Value::Bool(a[0].is_dlarray()).into())
    }),
    row("extractdata", 1, 1, 1, "extractdata (x)", "The array in a dlarray, as a constant.", extractdata),
    row(
        "dlfeval",
        1,
        ANY,
        ANY,
        "[y, ...] = dlfeval (f, x, ...)",
        "Calls a function in which dlgradient has the derivatives by the dlarrays x.",
        dlfeval,
    ),
    row(
        "dlgradient",
        2,
        ANY,
        ANY,
        "[gx, ...] = dlgradient (y, x, ..., \"EnableHigherDerivatives\", tf, \"RetainData\", tf)",
        "The gradients of a number by dlarrays, or by cells and structs of them, in a function that dlfeval calls.",
        dlgradient,
    ),
];

/// How deep cells and structs of dlarrays may be nested.
const DEPTH_MAX: usize = 256;

/// MATLAB's message for a value that depends on no argument of `dlfeval`.
const NOT_TRACED: &str = "Value to differentiate is not traced. It must be a traced real dlarray scalar. Use dlgradient \
                          inside a function called by dlfeval to trace the variables.";

/// Returns the value as a dlarray, if its class has derivatives or truth values; any other value is unchanged.
///
/// # Errors
/// Arrays beyond the runtime's limits.
pub fn as_dlarray(env: &Env, value: Value) -> Flow<Value> {
    let class = value.class();
    let is_array = matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
    let is_fit = class.is_float() || class == Class::Logical;
    if !is_array || !is_fit || value.is_complex() || value.is_dlarray() {
        return Ok(value);
    }
    env.has_pinned.store(true, Ordering::Relaxed);
    let pinned = Pinned { on_device: value.is_pinned(), is_dlarray: true };
    let may_fault = matches!(&value, Value::Lazy(l) if l.may_fault);
    Ok(Lazy::new(lift(env, &value, class)?, class, pinned, may_fault)?.value())
}

fn dlarray(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args.get(1).is_some_and(|format| !format.is_empty()) {
        return fail!("dlarray: formats (labels of dimensions) are not supported");
    }
    let value = as_dlarray(&interp.env, args[0].clone())?;
    if !value.is_dlarray() {
        let what = if value.is_complex() { "complex arrays" } else { value.class_name() };
        return fail!("dlarray: takes real arrays of class double, single or logical, not {what}");
    }
    Ok(value.into())
}

fn extractdata(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let l = match &args[0] {
        Value::Lazy(l) if l.pinned.is_dlarray => l,
        other if other.is_numeric() || other.class() == Class::Logical => return Ok(other.clone().into()),
        other => return fail!("extractdata: takes a dlarray, not {}", other.class_name()),
    };
    if l.pinned.on_device || l.dims.elements() > env.options.host_elements_max {
        let pinned = Pinned { is_dlarray: false, ..l.pinned };
        return Ok(Lazy::new(l.array.stop_gradient(), l.class, pinned, l.may_fault)?.value().into());
    }
    Ok(Value::held(env.host(&args[0])?).into())
}

fn dlfeval(_: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let Value::Function(function) = &args[0] else {
        return fail!("dlfeval: the first argument must be a function handle, not {}", args[0].class_name());
    };
    let (function, args) = (function.clone(), args[1..].to_vec());
    Ok(Outcome::Task(Box::new(Evaluation { function, args, nargout, trace: None })))
}

/// A call of `dlfeval`. Its trace ends with it (TRACE-1).
struct Evaluation {
    function: Arc<Function>,
    args: Vec<Value>,
    nargout: usize,
    trace: Option<Arc<Trace>>,
}

impl Task for Evaluation {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        if let Some(last) = last {
            self.trace = None;
            return Ok(TaskStep::Done(last?));
        }
        let env = &mut interp.env;
        let mut arrays = Vec::new();
        let args: Flow<Vec<Value>> = (self.args.iter())
            .map(|value| {
                each_array(value, 0, &mut |value| match value {
                    Value::Lazy(l) if l.pinned.is_dlarray && l.class.is_float() => {
                        let own = anew(env, l)?;
                        arrays.push(own.array.clone());
                        Ok(own.value())
                    }
                    other => Ok(other.clone()),
                })
            })
            .collect();
        let args = args?;
        self.trace = Some(env.traces.begin(&env.session, &arrays)?);
        Ok(TaskStep::Call { function: self.function.clone(), args, nargout: self.nargout })
    }
}

/// The same elements as another value (DL-1), through which derivatives pass for a `dlfeval` further out.
fn anew(env: &Env, l: &Lazy) -> Flow<Lazy> {
    let array = env.session.custom_gradient(&l.array, |x| Ok(x.clone()), |_, _, above| Ok(vec![above.clone()]))?;
    let mut own = Lazy::new(array, l.class, l.pinned, l.may_fault)?;
    own.host = l.host.clone();
    Ok(own)
}

/// Applies a function to each value that is no container, in cells and structs of any depth, and returns the same
/// arrangement of its results.
fn each_array(value: &Value, depth: usize, f: &mut impl FnMut(&Value) -> Flow<Value>) -> Flow<Value> {
    if depth > DEPTH_MAX {
        return fail!("containers of dlarrays are nested deeper than {DEPTH_MAX} levels");
    }
    Ok(match value {
        Value::Cell(cell) => {
            let items = cell.items.iter().map(|item| each_array(item, depth + 1, f)).collect::<Flow<Vec<Value>>>()?;
            Value::Cell(Arc::new(CellArray::new(cell.dims.clone(), items)))
        }
        Value::Struct(array) if array.class.is_none() && array.cleanup.is_none() => {
            let mut made = StructArray::empty(array.dims.clone());
            for (name, values) in &array.fields {
                let values = values.iter().map(|value| each_array(value, depth + 1, f));
                made.fields.insert(name.clone(), values.collect::<Flow<Vec<Value>>>()?);
            }
            Value::Struct(Arc::new(made))
        }
        other => f(other)?,
    })
}

/// The arguments of `dlgradient` behind the variables.
struct Options {
    /// Whether the gradients have derivatives, too.
    higher: bool,
}

fn options(args: &[Value]) -> Flow<Options> {
    let mut options = Options { higher: false };
    for pair in args.chunks(2) {
        let [name, value] = pair else {
            return fail!("dlgradient: the option '{}' lacks its value", pair[0].as_text().unwrap_or_default());
        };
        let is_set = match value {
            Value::Bool(is_set) => *is_set,
            Value::Num(x) => *x != 0.0,
            other => return fail!("dlgradient: an option must be true or false, not {}", other.class_name()),
        };
        if is_word(name, "EnableHigherDerivatives") {
            options.higher = is_set;
        } else if !is_word(name, "RetainData") {
            // The steps of a trace are kept until `dlfeval` returns, so `RetainData` changes nothing.
            return match name.as_text() {
                Some(name) => fail!("dlgradient: there is no option '{name}'"),
                None => fail!("dlgradient: the name of an option must be a text, not {}", name.class_name()),
            };
        }
    }
    Ok(options)
}

fn dlgradient(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let count = args[1..].iter().position(Value::is_string).unwrap_or(args.len() - 1);
    let (variables, rest) = args[1..].split_at(count);
    let options = options(rest)?;
    if variables.is_empty() {
        return fail!("dlgradient: there is no variable to differentiate by");
    }
    if nargout > variables.len() {
        return fail!("dlgradient: called with too many outputs");
    }
    let loss = match &args[0] {
        Value::Lazy(loss) if env.traces.follow(loss) => loss,
        _ => return fail!("dlgradient: {NOT_TRACED}"),
    };
    if !loss.dims.is_scalar() {
        return fail!("dlgradient: Value to differentiate is non-scalar. It must be a traced real dlarray scalar.");
    }
    let mut by = Vec::new();
    for (n, variable) in variables.iter().enumerate() {
        each_array(variable, 0, &mut |value| match value {
            Value::Lazy(l) if env.traces.follow(l) => {
                by.push(l.clone());
                Ok(value.clone())
            }
            Value::Lazy(l) if l.pinned.is_dlarray => {
                fail!(
                    "dlgradient: variable {} is not traced: it is no argument of dlfeval, nor computed from one",
                    n + 1
                )
            }
            other => fail!("dlgradient: variable {} must be a dlarray, not {}", n + 1, other.class_name()),
        })?;
    }
    let arrays: Vec<Array> = by.iter().map(|l| l.array.clone()).collect();
    let sees_all =
        |trace: &Arc<Trace>| trace.0.follows(&loss.array) && arrays.iter().all(|array| trace.0.follows(array));
    let Some(trace) = env.traces.live().find(sees_all) else {
        return fail!("dlgradient: the value and the variables are traced by different calls of dlfeval");
    };
    let gradients = match options.higher {
        true => {
            let gradients = trace.0.followed_gradients_by(&loss.array, &arrays)?;
            let pairs = gradients.into_iter().zip(&arrays);
            pairs.map(|(gradient, array)| followed(&trace, env, gradient, array)).collect::<tidemill::Result<_>>()?
        }
        false => trace.0.gradients_by(&loss.array, &arrays)?,
    };
    let mut made = by.iter().zip(gradients);
    let mut next = |_: &Value| match made.next() {
        Some((l, gradient)) => {
            let may_fault = l.may_fault || loss.may_fault;
            Ok(Lazy::new(gradient, l.class, l.pinned, may_fault)?.value())
        }
        None => fail!("dlgradient: a gradient is missing"),
    };
    let values = variables.iter().map(|variable| each_array(variable, 0, &mut next)).collect::<Flow<Values>>()?;
    Ok(values.into())
}

/// A gradient that the trace follows. One that does not depend on the variables has zeros as its own derivatives.
fn followed(trace: &Trace, env: &Env, gradient: Array, array: &Array) -> tidemill::Result<Array> {
    if trace.0.follows(&gradient) {
        return Ok(gradient);
    }
    let session = env.session.clone();
    env.session.custom_gradient(
        [&gradient, array],
        |[gradient, _]| Ok(gradient.clone()),
        move |args, _, above| {
            let zeros = session.scalar(0.0).cast_to(args[1].dtype()?);
            Ok(vec![above.clone(), zeros.broadcast_to(args[1].shape()?)])
        },
    )
}
