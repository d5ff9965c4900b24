//! Functions that call functions: `feval`, `cellfun`, `arrayfun`, `structfun`, handles and their names.

use crate::builtins::{ANY, Builtin, Outcome, Reach, Task, TaskStep, nothing};
use crate::env::Env;
use crate::error::{Flow, Need, ScriptError, Stop, fail, fail_id};
use crate::index::{self, Values};
use crate::source::Source;
use crate::syntax;
use crate::value::function::Closure;
use crate::value::{CellArray, Class, Data, Dims, Function, Lazy, StructArray, Tensor, Value};
use crate::vm::{Callee, Interp};
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
fn name_in_errors(who: &str) -> &str {
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

fn index_of(env: &mut crate::env::Env, value: &Value, i: usize) -> Flow<Value> {
    index::paren(env, value, &[Value::Num(i as f64 + 1.0)])
}

fn reshape_host(env: &mut crate::env::Env, value: Value, dims: Dims) -> Flow<Value> {
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

/// `cellfun`, `arrayfun` and `structfun`: calls a function for every element, and collects the outputs.
struct Each {
    who: &'static str,
    function: Arc<Function>,
    /// The elements of each argument.
    elements: Vec<Vec<Value>>,
    count: usize,
    dims: Dims,
    nargout: usize,
    uniform: bool,
    /// For `structfun`: the names of the fields, if the results form a struct.
    fields: Vec<Arc<str>>,
    handler: Option<Arc<Function>>,
    /// The index of the element whose call is running.
    next: usize,
    handling: bool,
    /// Whether a call is running. An error of this task itself is not passed to the error handler.
    calling: bool,
    /// The results of the last call, until it is known whether they have a fault, which the error handler takes.
    given: Option<Values>,
    /// The results of the calls, for each output.
    results: Vec<Vec<Value>>,
}

/// The options behind the arrays: `"UniformOutput", tf, "ErrorHandler", h`.
struct EachOptions {
    uniform: bool,
    handler: Option<Arc<Function>>,
}

fn each_options<'a>(interp: &mut Interp, who: &str, mut args: &'a [Value]) -> Flow<(&'a [Value], EachOptions)> {
    let mut options = EachOptions { uniform: true, handler: None };
    while let [rest @ .., name, value] = args {
        let Some(name) = name.as_text() else { break };
        if rest.is_empty() {
            break;
        }
        // `cellfun` and `arrayfun` accept abbreviations of at least two letters.
        let name = name.to_lowercase();
        let is = |option: &str| name == option || who != "structfun" && name.len() > 1 && option.starts_with(&*name);
        match () {
            () if is("uniformoutput") => {
                interp.env.host_all([value])?;
                options.uniform = crate::ops::truth(&mut interp.env, value)?;
            }
            () if is("errorhandler") => options.handler = Some(function_of(value, who)?),
            () if who == "cellfun" => return fail!("cellfun: unrecognized parameter {name}"),
            () => break,
        }
        args = rest;
    }
    Ok((args, options))
}

impl Each {
    fn begin(
        env: &Env,
        who: &'static str,
        function: Arc<Function>,
        arrays: Vec<(Dims, Vec<Value>)>,
        options: EachOptions,
        nargout: usize,
    ) -> Flow<Outcome> {
        // An argument with one element is used for every element of the others.
        let of_many = || arrays.iter().enumerate().filter(|(_, a)| a.1.len() != 1);
        let first = of_many().next();
        let dims = first.or(arrays.iter().enumerate().next()).map_or_else(Dims::zero, |(_, a)| a.0.clone());
        for (i, array) in of_many() {
            if array.0 != dims {
                if who == "arrayfun" {
                    return fail_id!("Octave:invalid-input-arg", "arrayfun: dimensions mismatch");
                }
                return fail!(
                    "{who}: all the input arguments must have the same size and shape (arg {} and arg {})",
                    first.map_or(1, |f| f.0 + 1),
                    i + 1
                );
            }
        }
        env.check_host(&[dims.elements(), nargout.max(1)], size_of::<Value>())?;
        let elements = arrays.into_iter().map(|a| a.1).collect();
        Ok(Each::over(who, function, elements, dims, Vec::new(), options, nargout))
    }

    /// Makes a call for each position in lists of elements. `fields` are the names of the results, if they form a
    /// struct.
    fn over(
        who: &'static str,
        function: Arc<Function>,
        elements: Vec<Vec<Value>>,
        dims: Dims,
        fields: Vec<Arc<str>>,
        options: EachOptions,
        nargout: usize,
    ) -> Outcome {
        let count = dims.elements();
        Outcome::Task(Box::new(Each {
            who,
            function,
            elements,
            count,
            dims,
            nargout,
            uniform: options.uniform,
            fields,
            handler: options.handler,
            next: 0,
            handling: false,
            calling: false,
            given: None,
            results: vec![Vec::with_capacity(count); nargout.max(1)],
        }))
    }

    fn arguments(&self) -> Vec<Value> {
        self.elements.iter().map(|e| if e.len() == 1 { &e[0] } else { &e[self.next] }).cloned().collect()
    }

    /// Returns the arrays in a call's results that may be at fault, for the error handler.
    fn suspects(&self, values: &[Value]) -> Vec<Arc<Lazy>> {
        let suspect = |value: &Value| match value {
            Value::Lazy(lazy) if lazy.is_suspect() => Some(lazy.clone()),
            _ => None,
        };
        if self.handler.is_none() || self.handling { Vec::new() } else { values.iter().filter_map(suspect).collect() }
    }

    /// Stores the results of a call.
    fn absorb(&mut self, values: Values) -> Flow<()> {
        if values.len() < self.nargout {
            return fail!("{}: function returned fewer than nargout values", self.who);
        }
        for (i, value) in values.into_iter().take(self.results.len()).enumerate() {
            // Structs with equal fields form a struct array.
            if self.uniform && (value.len() != 1 || matches!(value, Value::Cell(_) | Value::Function(_))) {
                let id = if self.who == "arrayfun" { "Octave:invalid-fun-call" } else { "" };
                let who = name_in_errors(self.who);
                return fail_id!(id, "{who}: all values must be scalars when UniformOutput = true");
            }
            self.results[i].push(value);
        }
        self.next += 1;
        Ok(())
    }

    fn finish(&mut self, interp: &mut Interp) -> Flow<TaskStep> {
        let mut out = Values::new();
        for results in &self.results {
            // Called as a statement, it gives no output if no call gave one; but without elements, it gives an empty
            // cell for results in cells.
            if results.is_empty() && self.nargout == 0 && (self.count > 0 || self.uniform) {
                break;
            }
            out.push(self.collect(interp, results)?);
        }
        Ok(TaskStep::Done(out))
    }

    fn collect(&self, interp: &mut Interp, results: &[Value]) -> Flow<Value> {
        if !self.uniform {
            if self.who == "structfun" {
                let n = self.fields.len();
                let dims = match self.dims.len() {
                    2 => Dims::new(&[self.dims[1], 1]),
                    _ => Dims::new(&self.dims[1..]),
                };
                let values = |k: usize| results.iter().skip(k).step_by(n.max(1)).cloned().collect();
                let fields = self.fields.iter().enumerate().map(|(k, name)| (name.clone(), values(k))).collect();
                return Ok(Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None })));
            }
            return Ok(Value::cell(self.dims.clone(), results.to_vec()));
        }
        if results.is_empty() {
            return Ok(Value::tensor(Tensor::zeros(Class::Double, self.dims.clone())));
        }
        if let Some(numbers) = all_numbers(results) {
            return Ok(Value::tensor(Tensor::new(self.dims.clone(), numbers)));
        }
        let env = &mut interp.env;
        env.host_all(results)?;
        let class = results[0].class();
        if let Some(other) = results.iter().find(|v| v.class() != class) {
            return fail!(
                "{0}: return values must be of the same type (class); found '{1}' and '{2}'",
                self.who,
                class.name(),
                other.class().name()
            );
        }
        if let Value::Function(_) | Value::Cell(_) | Value::Struct(_) = results[0] {
            return match index::concatenate(env, 1, results)? {
                Value::Struct(s) => Ok(Value::Struct(Arc::new(Arc::unwrap_or_clone(s).with_dims(self.dims.clone())))),
                row => reshape_host(env, row, self.dims.clone()),
            };
        }
        let parts = results.iter().map(|v| env.host(v)).collect::<Flow<Vec<_>>>()?;
        Ok(Value::tensor(Tensor::new(self.dims.clone(), first_elements(&parts))))
    }
}

/// Returns the first elements of arrays of one class, on the host. Joining them on the runtime would need another wait.
fn first_elements(parts: &[Arc<Tensor>]) -> Data {
    macro_rules! gather {
        ($($variant:ident),*) => {
            match &*parts[0].data {
                $(Data::$variant(_) => Data::$variant(
                    parts.iter().filter_map(|p| if let Data::$variant(v) = &*p.data { v.first().copied() } else { None }).collect(),
                ),)*
                Data::C64(_) | Data::C32(_) => Data::C64(parts.iter().map(|p| p.data.c64_at(0)).collect()),
            }
        };
    }
    if parts.iter().any(|p| p.data.is_complex()) {
        let all = Data::C64(parts.iter().map(|p| p.data.c64_at(0)).collect());
        return if parts[0].data.class() == Class::Single { all.converted(Class::Single) } else { all };
    }
    gather!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool)
}

/// Joins values that are all doubles or all logicals, without the general concatenation.
fn all_numbers(values: &[Value]) -> Option<Data> {
    match values[0] {
        Value::Num(_) => values
            .iter()
            .map(|v| if let Value::Num(x) = v { Some(*x) } else { None })
            .collect::<Option<_>>()
            .map(Data::F64),
        Value::Bool(_) => values
            .iter()
            .map(|v| if let Value::Bool(x) = v { Some(*x) } else { None })
            .collect::<Option<_>>()
            .map(Data::Bool),
        _ => None,
    }
}

impl Task for Each {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        let called = std::mem::take(&mut self.calling);
        match last {
            Some(Ok(values)) => self.given = Some(values),
            Some(Err(error)) => {
                self.given = None;
                let handler = self.handler.clone().filter(|_| called && !self.handling);
                let Some(handler) = handler else { return Err(error.into()) };
                (self.handling, self.calling) = (true, true);
                let mut s = StructArray::scalar();
                s.set("identifier", error.identifier);
                s.set("message", error.message);
                s.set("index", self.next + 1);
                let mut args = vec![Value::Struct(Arc::new(s))];
                args.extend(self.arguments());
                return Ok(TaskStep::Call { function: handler, args, nargout: self.nargout });
            }
            None => {}
        }
        if let Some(values) = &self.given {
            let suspects = self.suspects(values);
            if !suspects.is_empty() && interp.env.take_awaited().is_none() {
                self.calling = true;
                return Err(Stop::Need(Need::Materialised(suspects)));
            }
        }
        if let Some(values) = self.given.take() {
            self.handling = false;
            self.absorb(values)?;
        }
        if self.next >= self.count {
            return self.finish(interp);
        }
        self.calling = true;
        Ok(TaskStep::Call { function: self.function.clone(), args: self.arguments(), nargout: self.nargout })
    }

    fn catches(&self) -> bool {
        self.handler.is_some() && self.calling
    }
}

/// Does `cellfun ("size", c, dim)` and `cellfun ("isclass", c, name)`, whose names have an argument.
fn computed_with_argument(env: &Env, word: &str, cells: &CellArray, argument: &Value) -> Flow<Value> {
    let dims = cells.dims.clone();
    if word == "size" {
        let dim = crate::builtins::args::dim(env, argument, |_| "cellfun: K must be a positive integer".into())?;
        let extents = cells.items.iter().map(|item| item.dims().extent(dim) as f64).collect();
        return Ok(Value::tensor(Tensor::new(dims, Data::F64(extents))));
    }
    let Some(class) = argument.as_text() else { return fail!("cellfun: not enough arguments for \"isclass\"") };
    let is = cells.items.iter().map(|item| item.class_name() == class).collect();
    Ok(Value::tensor(Tensor::new(dims, Data::Bool(is))))
}

/// Computes some functions for every cell without calls; `None` for any other function.
fn computed_without_calls(name: &str, cells: &CellArray) -> Option<Value> {
    let truths = |test: fn(&Value) -> bool| Data::Bool(cells.items.iter().map(test).collect());
    let counts = |count: fn(&Value) -> usize| Data::F64(cells.items.iter().map(|item| count(item) as f64).collect());
    let data = match name {
        "isempty" => truths(Value::is_empty),
        "isreal" => truths(crate::builtins::arrays::queries::is_real),
        "isnumeric" => truths(Value::is_numeric),
        "islogical" => truths(|item| item.class() == Class::Logical),
        "ischar" if !cells.items.is_empty() => truths(Value::is_char),
        "length" => counts(crate::builtins::arrays::shape::length),
        "ndims" => counts(|item| item.dims().len()),
        "numel" | "prodofsize" => counts(Value::len),
        _ => return None,
    };
    Some(Value::tensor(Tensor::new(cells.dims.clone(), data)))
}

/// Returns the name of the builtin that a handle or a name stands for.
fn builtin_name(interp: &mut Interp, function: &Value) -> Flow<Option<Arc<str>>> {
    let name: Arc<str> = match function {
        Value::Function(f) => match &**f {
            Function::Named(name, _) => name.clone(),
            Function::Anonymous(_) | Function::Method(..) => return Ok(None),
        },
        word if word.is_char() => word.as_text().unwrap_or_default().as_str().into(),
        _ => return Ok(None),
    };
    // Names that only `cellfun` knows stand for no function, so no function of the script can hide them.
    let is_builtin = &*name == "prodofsize" || matches!(interp.lookup(&name)?, Some(Callee::Builtin(_)));
    Ok(is_builtin.then_some(name))
}

fn cellfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    if let [function, Value::Cell(cells)] = args
        && nargout < 2
        // For no cells, handles give doubles.
        && (function.is_char() || !cells.items.is_empty())
        && let Some(name) = builtin_name(interp, function)?
        && let Some(result) = computed_without_calls(&name, cells)
    {
        return Ok(result.into());
    }
    if let ([word, Value::Cell(cells), argument], true) = (args, args[0].is_char())
        && let Some(word) = word.as_text().filter(|w| ["size", "isclass"].contains(&w.as_str()))
    {
        return Ok(computed_with_argument(&interp.env, &word, cells, argument)?.into());
    }
    let function = match crate::builtins::args::is_word(&args[0], "prodofsize") {
        true => Arc::new(Function::Named("numel".into(), None)),
        false => function_of(&args[0], "cellfun")?,
    };
    let (arrays, options) = each_options(interp, "cellfun", &args[1..])?;
    let mut cells = Vec::with_capacity(arrays.len());
    for array in arrays {
        match array {
            Value::Cell(cell) => cells.push((cell.dims.clone(), cell.items.clone())),
            _ => return fail!("cellfun: C must be a cell array"),
        }
    }
    Each::begin(&interp.env, "cellfun", function, cells, options, nargout)
}

fn arrayfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let function = function_of(&args[0], "arrayfun")?;
    let (arrays, options) = each_options(interp, "arrayfun", &args[1..])?;
    interp.env.host_all(arrays)?;
    let mut all = Vec::with_capacity(arrays.len());
    for array in arrays {
        let array = match array {
            Value::Lazy(_) => Value::Tensor(interp.env.host(array)?),
            other => other.clone(),
        };
        let n = array.len();
        interp.env.check_host(&[n], size_of::<Value>())?;
        let mut elements = Vec::with_capacity(n);
        for i in 0..n {
            elements.push(match &array {
                Value::Function(_) => array.clone(),
                array => index_of(&mut interp.env, array, i)?,
            });
        }
        all.push((array.dims(), elements));
    }
    Each::begin(&interp.env, "arrayfun", function, all, options, nargout)
}

fn structfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let function = function_of(&args[0], "structfun")?;
    let (arrays, options) = each_options(interp, "structfun", &args[1..])?;
    let [Value::Struct(s)] = arrays else { return fail!("structfun: S must be a scalar structure") };
    // As in `struct2cell`, the fields are the first dimension.
    let fields: Vec<Arc<str>> = s.fields.keys().cloned().collect();
    let items: Vec<Value> = (0..s.len()).flat_map(|i| s.fields.values().map(move |v| v[i].clone())).collect();
    let dims = match s.dims.len() == 2 && s.dims.columns() == 1 {
        true => Dims::new(&[fields.len(), s.len()]),
        false => Dims::new(&std::iter::once(fields.len()).chain(s.dims.iter().copied()).collect::<Vec<_>>()),
    };
    Ok(Each::over("structfun", function, vec![items], dims, fields, options, nargout))
}
