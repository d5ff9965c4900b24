//! Functions that call functions: `feval`, `nthargout`, handles and their names. `each.rs` has `cellfun` and its like.

use super::each::{arrayfun, cellfun, structfun};
use crate::builtins::{ANY, Builtin, Outcome, Reach, Task, TaskStep, nothing};
use crate::error::{Flow, ScriptError, fail, fail_id};
use crate::index::{self, Values};
use crate::source::Source;
use crate::syntax;
use crate::value::function::Closure;
use crate::value::{CellArray, Class, Data, Dims, Function, StructArray, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "feval",
        args_min: 1,
        args_max: ANY,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[…] = feval (f, args, …)",
        summary: "Call a function by its handle or name.",
        run: feval,
    },
    Builtin {
        name: "cellfun",
        args_min: 2,
        args_max: ANY,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[…] = cellfun (f, c, …, \"UniformOutput\", tf, \"ErrorHandler\", h)",
        summary: "Call a function on every cell.",
        run: cellfun,
    },
    Builtin {
        name: "arrayfun",
        args_min: 2,
        args_max: ANY,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[…] = arrayfun (f, a, …, \"UniformOutput\", tf, \"ErrorHandler\", h)",
        summary: "Call a function on every element.",
        run: arrayfun,
    },
    Builtin {
        name: "structfun",
        args_min: 2,
        args_max: ANY,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[…] = structfun (f, s, \"UniformOutput\", tf, \"ErrorHandler\", h)",
        summary: "Call a function on every field of a struct.",
        run: structfun,
    },
    Builtin {
        name: "bsxfun",
        args_min: 3,
        args_max: 3,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "c = bsxfun (f, a, b)",
        summary: "Call a function of two arrays, which it expands against each other.",
        run: bsxfun,
    },
    Builtin {
        name: "func2str",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "text = func2str (f)",
        summary: "The text of a handle.",
        run: func2str,
    },
    Builtin {
        name: "str2func",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "f = str2func (text)",
        summary: "A handle from its text.",
        run: str2func,
    },
    Builtin {
        name: "functions",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "s = functions (f)",
        summary: "What a handle is made of.",
        run: functions,
    },
    Builtin {
        name: "deal",
        args_min: 1,
        args_max: ANY,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[a, b, …] = deal (x, y, …)",
        summary: "Its arguments, or one argument for every output.",
        run: deal,
    },
    Builtin {
        name: "nthargout",
        args_min: 2,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "x = nthargout (n, f, args, …)",
        summary: "One of a function's outputs.",
        run: nthargout,
    },
    Builtin {
        name: "merge",
        args_min: 3,
        args_max: 3,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "c = merge (mask, a, b)",
        summary: "Elements of a where the mask is true, of b elsewhere.",
        run: merge,
    },
    Builtin {
        name: "ifelse",
        args_min: 3,
        args_max: 3,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "c = ifelse (mask, a, b)",
        summary: "Elements of a where the mask is true, of b elsewhere.",
        run: merge,
    },
];

/// Returns the function that a handle or a name stands for.
///
/// # Errors
/// Any other value.
pub fn function_of(value: &Value, who: &str) -> Flow<Arc<Function>> {
    match value {
        Value::Function(function) => Ok(function.clone()),
        value => match value.as_text() {
            Some(text) if text.trim_start().starts_with('@') => parse_handle(&text),
            Some(name) => Ok(Arc::new(Function::Named(name.as_str().into(), None))),
            None if ["cellfun", "arrayfun", "structfun"].contains(&who) => {
                fail!("{}: argument NAME must be a string or function handle", name_in_errors(who))
            }
            None => fail!("{who}: FCN must be a string or function handle"),
        },
    }
}

/// Returns the function that errors name for a function that calls a function for each element: in Octave, `structfun`
/// calls `cellfun`.
pub(super) fn name_in_errors(who: &str) -> &str {
    if who == "structfun" { "cellfun" } else { who }
}

fn feval(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if !matches!(args[0], Value::Function(_)) && !args[0].is_string() {
        return fail!("feval: first argument must be a string, inline function, or a function handle");
    }
    let function = function_of(&args[0], "feval")?;
    if let (Function::Named(name, _), true) = (&*function, args[0].is_string())
        && interp.lookup(name)?.is_none()
    {
        let help = interp.undefined(name).help;
        let error = ScriptError::new(format!("feval: function '{name}' not found"));
        return Err(ScriptError { help, ..error }.into());
    }
    Ok(Outcome::Call { function, args: args[1..].to_vec() })
}

fn bsxfun(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let function = function_of(&args[0], "bsxfun")?;
    Ok(Outcome::Call { function, args: args[1..].to_vec() })
}

fn func2str(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    match &args[0] {
        Value::Function(function) => Ok(Value::string(function.text()).into()),
        _ => fail!("func2str: FCN_HANDLE argument must be a function handle object"),
    }
}

fn str2func(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if !args[0].is_string() {
        return fail!("str2func: FCN_NAME must be a string");
    }
    if args[0].is_empty() {
        return fail!("str2func: invalid function name");
    }
    let function = match &*function_of(&args[0], "str2func")? {
        // The name may be that of a function in the file that makes the handle.
        Function::Named(name, None) => Function::Named(name.clone(), interp.here().map(|place| place.source)),
        other => other.clone(),
    };
    Ok(Value::Function(Arc::new(function)).into())
}

fn parse_handle(text: &str) -> Flow<Arc<Function>> {
    let source = Source::new("str2func", text);
    let file = syntax::parse(&source)?;
    match crate::compile::handle(&file)? {
        Some(function) => Ok(Arc::new(function)),
        None => fail!("str2func: invalid function string"),
    }
}

/// Makes a handle of its text, and of the variables that it captured.
pub fn handle_with(text: &str, captured: Vec<(String, Value)>) -> Flow<Arc<Function>> {
    let function = parse_handle(text)?;
    let Function::Anonymous(closure) = &*function else { return Ok(function) };
    let slots = captured.into_iter().filter_map(|(name, value)| {
        let slot = closure.code.names.iter().position(|n| **n == *name)?;
        Some((slot as u32, value))
    });
    let captured = slots.collect();
    Ok(Arc::new(Function::Anonymous(Arc::new(Closure { code: closure.code.clone(), captured, nest: None }))))
}

fn functions(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Function(function) = &args[0] else {
        return fail!("functions: FCN_HANDLE argument must be a valid function handle");
    };
    let mut s = StructArray::scalar();
    s.set("function", function.text());
    match &**function {
        Function::Named(..) | Function::Method(..) => {
            s.set("type", "simple");
            s.set("file", "");
        }
        Function::Anonymous(closure) if closure.name().is_some() => {
            s.set("type", "nested");
            s.set("file", &*closure.code.source.name);
        }
        Function::Anonymous(closure) => {
            s.set("type", "anonymous");
            s.set("file", "");
            let mut workspace = StructArray::scalar();
            for (slot, value) in &closure.captured {
                workspace.set(closure.code.names[*slot as usize].clone(), value.clone());
            }
            let cell = CellArray::row(vec![Value::Struct(Arc::new(workspace))]);
            s.set("workspace", Value::Cell(Arc::new(cell)));
            s.set("within_file_path", "");
        }
    }
    Ok(Value::Struct(Arc::new(s)).into())
}

fn deal(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let n = nargout.max(1);
    match args {
        // Called as a statement, it gives no output.
        [_] if nargout == 0 => Ok(nothing()),
        [one] => {
            interp.env.check_host(&[n], size_of::<Value>())?;
            Ok(vec![one.clone(); n].into())
        }
        all if all.len() == n => Ok(all.to_vec().into()),
        _ => fail!("deal: nargin > 1 and nargin != nargout"),
    }
}

fn merge(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let mask = env.host(&args[0])?;
    if mask.data.class() == Class::Char {
        return fail!("merge: first argument must be logical or numeric");
    }
    if (0..mask.len()).any(|i| mask.data.f64_at(i).is_nan()) {
        return fail!("invalid conversion from NaN to logical");
    }
    if mask.len() == 1 {
        return Ok(args[if mask.data.f64_at(0) != 0.0 { 1 } else { 2 }].clone().into());
    }
    if let (Value::Cell(a), Value::Cell(b)) = (&args[1], &args[2]) {
        return merged_cells(&mask, a, b);
    }
    let [a, b] = [&args[1], &args[2]];
    if a.class() != b.class() || !(a.is_numeric() || a.class() == Class::Char) {
        return fail!("merge: cannot merge {} with {} with array mask", a.class_name(), b.class_name());
    }
    let [a, b] = [env.host(a)?, env.host(b)?];
    if [&a, &b].iter().any(|value| value.len() != 1 && value.dims != mask.dims) {
        return fail!("merge: MASK, TVAL, and FVAL dimensions must match");
    }
    let is_first = |i: usize| mask.data.f64_at(i) != 0.0;
    Ok(Value::tensor(Tensor::new(mask.dims.clone(), chosen(mask.len(), is_first, &a, &b))).into())
}

/// Picks elements of `a` where `is_first` is true, and of `b` elsewhere. Both are of one class, and a scalar is used
/// for all elements.
fn chosen(count: usize, is_first: impl Fn(usize) -> bool, a: &Tensor, b: &Tensor) -> Data {
    let at = |of: &Tensor, i: usize| if of.len() == 1 { 0 } else { i };
    macro_rules! choose {
        ($($variant:ident),*) => {
            match (&*a.data, &*b.data) {
                $((Data::$variant(x), Data::$variant(y)) => Data::$variant(
                    (0..count).map(|i| if is_first(i) { x[at(a, i)] } else { y[at(b, i)] }).collect(),
                ),)*
                _ => {
                    let of = |i| if is_first(i) { a.data.c64_at(at(a, i)) } else { b.data.c64_at(at(b, i)) };
                    Data::C64((0..count).map(of).collect()).converted(a.data.class())
                }
            }
        };
    }
    choose!(F64, F32, C64, C32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool)
}

fn merged_cells(mask: &Tensor, a: &CellArray, b: &CellArray) -> Flow<Outcome> {
    if [a, b].iter().any(|c| c.items.len() != 1 && c.dims != mask.dims) {
        return fail!("merge: MASK, TVAL, and FVAL dimensions must match");
    }
    let chosen = |i: usize| if mask.data.f64_at(i) != 0.0 { a } else { b };
    let at = |i: usize| chosen(i).items.get(i).unwrap_or(&chosen(i).items[0]).clone();
    Ok(Value::cell(mask.dims.clone(), (0..mask.len()).map(at).collect()).into())
}

pub(super) fn index_of(env: &mut crate::env::Env, value: &Value, i: usize) -> Flow<Value> {
    index::paren(env, value, &[Value::Num(i as f64 + 1.0)])
}

pub(super) fn reshape_host(env: &mut crate::env::Env, value: Value, dims: Dims) -> Flow<Value> {
    match value {
        Value::Cell(c) if c.items.len() == dims.elements() => Ok(Value::cell(dims, c.items.clone())),
        value => Ok(Value::tensor(env.host(&value)?.seen_as(dims))),
    }
}

/// `nthargout`.
struct NthOutput {
    function: Arc<Function>,
    args: Vec<Value>,
    wanted: Vec<usize>,
    /// The number of outputs for which the function is asked.
    total: usize,
}

/// The most outputs for which a function may be asked.
const OUTPUTS_MAX: f64 = 1e6;

fn nthargout(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let names_function = |value: &Value| matches!(value, Value::Function(_)) || value.as_text().is_some();
    let (total, rest) = match args {
        [_, function, rest @ ..] if names_function(function) => (&args[0], (function, rest)),
        [_, total, function, rest @ ..] if names_function(function) => (total, (function, rest)),
        _ => return crate::builtins::counts::invalid_call("nthargout", "nthargout (n, ntot, func, ...)"),
    };
    let numbers = |value: &Value| interp.env.host(value).map(|host| host.data.to_f64());
    let (wanted, total) = (numbers(&args[0])?, numbers(total)?);
    let total = total.iter().copied().fold(0.0, f64::max);
    if total == 0.0 || wanted.iter().chain([&total]).any(|x| !(*x >= 1.0 && *x == x.trunc())) {
        return fail!("nthargout: N and NTOT must consist of positive integers");
    }
    if total > OUTPUTS_MAX {
        return fail!("out of memory or dimension too large for Octave's index type");
    }
    if let Some(beyond) = wanted.iter().find(|x| **x > total) {
        return fail_id!(
            "Octave:index-out-of-bounds",
            "index ({beyond}): out of bound {total} (dimensions are 1x{total})"
        );
    }
    Ok(Outcome::Task(Box::new(NthOutput {
        function: function_of(rest.0, "nthargout")?,
        args: rest.1.to_vec(),
        wanted: wanted.iter().map(|x| *x as usize).collect(),
        total: total as usize,
    })))
}

impl Task for NthOutput {
    fn step(&mut self, _: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        match last {
            None => {
                Ok(TaskStep::Call { function: self.function.clone(), args: self.args.clone(), nargout: self.total })
            }
            Some(result) => {
                let values = result?;
                let mut out = Vec::new();
                for &n in &self.wanted {
                    match values.get(n - 1) {
                        Some(value) => out.push(value.clone()),
                        None => return fail!("nthargout: Too many output arguments: {}", self.total),
                    }
                }
                let value = if out.len() > 1 { Value::Cell(Arc::new(CellArray::row(out))) } else { out.swap_remove(0) };
                Ok(TaskStep::Done(smallvec::smallvec![value]))
            }
        }
    }
}
