//! Functions that call a function for each element: `cellfun`, `arrayfun`, `structfun`.
//!
//! In: a function, and cells, arrays or structs. Out: an array or a cell of what the function gave for each element.

use super::functions::{function_of, index_of, name_in_errors, reshape_host};
use crate::builtins::{Outcome, Task, TaskStep};
use crate::env::Env;
use crate::error::{Flow, Need, ScriptError, Stop, fail, fail_id};
use crate::index::{self, Values};
use crate::value::{CellArray, Class, Data, Dims, Function, Lazy, StructArray, Tensor, Value};
use crate::vm::{Callee, Interp};
use std::sync::Arc;

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

pub(super) fn cellfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
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

pub(super) fn arrayfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
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

pub(super) fn structfun(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
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
