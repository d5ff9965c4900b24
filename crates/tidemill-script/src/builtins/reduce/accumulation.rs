//! Functions that count and add values in bins: `accumarray`, `histc`.

use super::summing::{Running, total};
use crate::builtins::args::number;
use crate::builtins::numeric::integers::{in_class, reals};
use crate::builtins::{Outcome, Task, TaskStep};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail, fail_id};
use crate::index::Values;
use crate::ops;
use crate::value::{Class, Data, Dims, Function, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The function that `accumarray` applies to the values of a place.
enum Reducer {
    Sum,
    /// A function of all values of a place.
    Of(fn(&[f64]) -> f64),
    /// A function of the script.
    Called,
}

fn reducer(value: Option<&Value>) -> Reducer {
    let name = match value.filter(|v| !v.is_empty()) {
        None => return Reducer::Sum,
        Some(Value::Function(f)) => match &**f {
            Function::Named(name, _) => name.to_string(),
            Function::Anonymous(_) | Function::Method(..) => return Reducer::Called,
        },
        Some(_) => return Reducer::Called,
    };
    Reducer::Of(match name.as_str() {
        "sum" | "plus" => return Reducer::Sum,
        "max" => |v| v.iter().copied().fold(f64::NAN, f64::max),
        "min" => |v| v.iter().copied().fold(f64::NAN, f64::min),
        "prod" => |v| v.iter().product(),
        "mean" => |v| total(v.iter().copied()) / v.len() as f64,
        "numel" | "length" => |v| v.len() as f64,
        _ => return Reducer::Called,
    })
}

/// Returns the sum of the values of each of `count` places, in the order of the values; `fill` for places without
/// values.
fn summed(places: impl Iterator<Item = usize> + Clone, values: &Data, fill: f64, count: usize) -> Vec<f64> {
    let values = ops::reals(values);
    let mut running = vec![Running::default(); count];
    let mut add = |at: usize, value: f64| {
        running[at].add(value);
    };
    match values[..] {
        [value] => places.clone().for_each(|at| add(at, value)),
        _ => places.clone().zip(&*values).for_each(|(at, value)| add(at, *value)),
    }
    let mut sums: Vec<f64> = running.iter().map(Running::value).collect();
    if fill != 0.0 {
        let mut empty = vec![true; count];
        places.for_each(|at| empty[at] = false);
        sums.iter_mut().zip(empty).filter(|(_, empty)| *empty).for_each(|(sum, _)| *sum = fill);
    }
    sums
}

/// Returns the subscripts of `accumarray`, a row for each value: the number of rows, the number of columns, and the
/// columns.
fn subscripts_of(env: &Env, value: &Value) -> Flow<(usize, usize, Vec<f64>)> {
    if let Value::Cell(cell) = value {
        env.host_all(&cell.items)?;
        let columns = cell.items.iter().map(|v| Ok(env.host(v)?.data.to_f64())).collect::<Flow<Vec<_>>>()?;
        let n = columns.first().map_or(0, Vec::len);
        if columns.iter().any(|c| c.len() != n) {
            return fail!("accumarray: all subscripts must have the same length");
        }
        return Ok((n, columns.len(), columns.concat()));
    }
    let host = env.host(value)?;
    let rows = host.dims.rows();
    if host.is_empty() && rows > 0 {
        return fail!("accumarray: SUBS must have at least one column");
    }
    Ok((rows, host.len().checked_div(rows).unwrap_or(1), host.data.to_f64()))
}

/// Returns the greatest subscript of each column.
fn extents_of(subscripts: &[f64], n: usize, rank: usize) -> Flow<Vec<usize>> {
    let is_place = |s: f64| s >= 1.0 && s as i64 as f64 == s;
    let mut sound = true;
    let mut greatest = |column: &[f64]| {
        let most = column.iter().fold(0.0, |most: f64, &s| {
            sound &= is_place(s);
            if s > most { s } else { most }
        });
        most as usize
    };
    let extents = (0..rank.max(1)).map(|d| greatest(&subscripts[d * n..][..n])).collect();
    if sound {
        return Ok(extents);
    }
    if rank <= 1 {
        return fail!("accumarray: indices must be positive integers");
    }
    let first = (0..n * rank).map(|k| (k % rank, subscripts[k % rank * n + k / rank])).find(|found| !is_place(found.1));
    let (column, bad) = first.unwrap_or_default();
    let place: Vec<String> =
        (0..rank).map(|k| if k == column { crate::builtins::args::short(bad) } else { "_".into() }).collect();
    fail_id!(
        "Octave:invalid-index",
        "index ({}): subscripts must be either integers 1 to (2^63)-1 or logicals",
        place.join(",")
    )
}

pub fn accumarray(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let env = &mut interp.env;
    if let Some(sparse) = args.get(5)
        && crate::ops::truth(env, sparse)?
    {
        return fail!("accumarray: sparse matrices are not supported yet");
    }
    if args.get(3).is_some_and(|f| !f.is_empty() && !matches!(f, Value::Function(_))) {
        return fail!("accumarray: FUNC must be a function handle");
    }
    let values = env.host(&args[1])?;
    let (n, rank, subscripts) = subscripts_of(env, &args[0])?;
    let fill = match args.get(4).filter(|v| !v.is_empty()) {
        Some(value) => number(env, "accumarray", value)?,
        None => 0.0,
    };
    if values.len() != 1 && values.len() != n {
        return fail!("accumarray: dimension mismatch");
    }
    let subscript = |i: usize, d: usize| subscripts[d * n + i];
    let mut extents = extents_of(&subscripts, n, rank)?;
    let mut dims = None;
    if let Some(size) = args.get(2).filter(|s| !s.is_empty()) {
        let size = env.host(size)?.data.to_f64();
        if rank <= 1 && size.len() > 1 {
            // A single subscript counts through all elements.
            let size: Vec<usize> = size.iter().map(|&d| d as usize).collect();
            env.check_host(&size, size_of::<Vec<usize>>())?;
            let elements = size.iter().product();
            if elements < extents[0] {
                return fail!("accumarray: dimensions mismatch");
            }
            extents = vec![elements];
            dims = Some(Dims::new(&size));
        }
        for (d, extent) in extents.iter_mut().enumerate().filter(|_| dims.is_none()) {
            let wanted = size.get(d).copied().unwrap_or(1.0) as usize;
            if wanted < *extent {
                return fail!("accumarray: dimensions mismatch");
            }
            *extent = wanted;
        }
    }
    let dims = match dims {
        Some(dims) => dims,
        None if extents.len() == 1 => Dims::new(&[extents[0], 1]),
        None => Dims::new(&extents),
    };
    env.check_host(&dims, size_of::<Vec<usize>>())?;
    let place = |i: usize| match &extents[..] {
        [_] => subscripts[i] as i64 as usize - 1,
        extents => (0..rank).rev().fold(0, |at, d| at * extents[d] + subscript(i, d) as i64 as usize - 1),
    };
    let places = (0..n).map(place);
    let reduce = reducer(args.get(3));
    if let (Reducer::Sum, false) = (&reduce, values.data.is_complex()) {
        let data = summed(places, &values.data, fill, dims.elements());
        return Ok(in_class(env, dims, data, values.data.class())?.into());
    }
    let places = grouped(places, values.len(), dims.elements());
    if let (Reducer::Of(reduce), false) = (&reduce, values.data.is_complex()) {
        let of = |p: &Vec<usize>| reduce(&p.iter().map(|&i| values.data.f64_at(i)).collect::<Vec<_>>());
        let data = places.iter().map(|p| if p.is_empty() { fill } else { of(p) }).collect();
        return Ok(in_class(env, dims, data, values.data.class())?.into());
    }
    let function = match args.get(3).filter(|f| !f.is_empty()) {
        Some(function) => crate::builtins::calls::functions::function_of(function, "accumarray")?,
        None => Arc::new(Function::Named("sum".into(), None)),
    };
    let gives_cells = function.text().replace(' ', "") == "@(x){x}";
    let groups = (places.into_iter().enumerate())
        .filter(|(_, p)| !p.is_empty())
        .map(|(at, p)| {
            let column = Tensor::new(Dims::new(&[p.len(), 1]), values.data.pick(p.into_iter()));
            (at, Value::tensor(column))
        })
        .collect();
    Ok(Outcome::Task(Box::new(Groups { function, groups, dims, fill, results: Vec::new(), gives_cells })))
}

/// Returns which values belong to each of `count` places.
fn grouped(places: impl Iterator<Item = usize>, values: usize, count: usize) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); count];
    for (i, at) in places.enumerate() {
        groups[at].push(if values == 1 { 0 } else { i });
    }
    groups
}

/// `accumarray` with a function of the script, which is called for each place that has values.
struct Groups {
    function: Arc<Function>,
    /// The places that have values, with their values.
    groups: Vec<(usize, Value)>,
    dims: Dims,
    fill: f64,
    results: Vec<Value>,
    /// Whether the function is `@(x) {x}`. Then its results are known without a call.
    gives_cells: bool,
}

impl Groups {
    /// Puts the results in their places: in cells if the function gives cells, and otherwise as numbers.
    fn finish(&self, env: &mut Env) -> Flow<Value> {
        env.host_all(&self.results)?;
        if self.results.iter().any(|v| v.len() != 1) {
            return fail!("accumarray: FCN must return a scalar or a cell");
        }
        let placed = || self.groups.iter().map(|g| g.0).zip(&self.results);
        if self.gives_cells || matches!(self.results.first(), Some(Value::Cell(_))) {
            let mut items = vec![Value::empty(); self.dims.elements()];
            for (at, value) in placed() {
                let Value::Cell(cell) = value else { return fail!("accumarray: FCN must always return a cell") };
                items[at] = cell.items[0].clone();
            }
            return Ok(Value::cell(self.dims.clone(), items));
        }
        let class = self.results.first().map_or(Class::Double, Value::class);
        let mut numbers = vec![num_complex::Complex64::new(self.fill, 0.0); self.dims.elements()];
        for (at, value) in placed() {
            numbers[at] = env.host(value)?.data.c64_at(0);
        }
        if self.results.iter().any(Value::is_complex) {
            return Ok(Value::tensor(Tensor::new(self.dims.clone(), Data::C64(numbers))));
        }
        if class == Class::Logical {
            let truths = numbers.iter().map(|z| z.re != 0.0).collect();
            return Ok(Value::tensor(Tensor::new(self.dims.clone(), Data::Bool(truths))));
        }
        in_class(env, self.dims.clone(), numbers.iter().map(|z| z.re).collect(), class)
    }
}

impl Task for Groups {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        match last {
            Some(Ok(values)) => match values.into_iter().next() {
                Some(value) => self.results.push(value),
                None => return fail!("accumarray: FCN must return a value"),
            },
            Some(Err(error)) => return Err(error.into()),
            None => {}
        }
        match self.groups.get(self.results.len()) {
            Some((_, values)) => {
                Ok(TaskStep::Call { function: self.function.clone(), args: vec![values.clone()], nargout: 1 })
            }
            None => Ok(TaskStep::Done(std::iter::once(self.finish(&mut interp.env)?).collect())),
        }
    }
}

pub fn histc(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (dims, x, _) = reals(&interp.env, "histc", &args[0])?;
    let (_, edges, _) = reals(&interp.env, "histc", &args[1])?;
    if edges.is_empty() {
        return Ok(vec![Value::empty(), Value::empty()].into());
    }
    if let Some(dim) = args.get(2)
        && number(&interp.env, "histc", dim)? > dims.len() as f64
    {
        return fail!("histc: DIM must be an integer and a valid dimension");
    }
    let d = match args.get(2) {
        Some(dim) => crate::builtins::args::dim(&interp.env, dim, |_| {
            "histc: DIM must be an integer and a valid dimension".into()
        })?,
        None => dims.first_non_singleton(),
    };
    let (length, stride) = (dims.extent(d), dims.iter().take(d).product::<usize>());
    let out_dims = dims.with(d, edges.len());
    let mut out = vec![0.0; out_dims.elements()];
    let mut bins = vec![0.0; x.len()];
    for (k, v) in x.iter().enumerate() {
        let lane = k % stride + k / (stride * length) * stride * edges.len();
        let bin = edges.partition_point(|e| e <= v);
        if bin > 0 && (bin < edges.len() || *v == edges[edges.len() - 1]) {
            out[lane + (bin - 1) * stride] += 1.0;
            bins[k] = bin as f64;
        }
    }
    let counts = Value::tensor(Tensor::new(out_dims, Data::F64(out)));
    Ok(vec![counts, Value::tensor(Tensor::new(dims, Data::F64(bins)))].into())
}
