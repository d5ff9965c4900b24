//! Functions that repeat, pad and resize arrays.
//!
//! In: values of any class. Out: values with other sizes whose elements are those of the input, repeated or padded.

use super::rearrange::picked;
use super::shape::{host_value, narrowed};
use crate::builtins::Outcome;
use crate::builtins::args::{self, integer, number};
use crate::builtins::record::record;
use crate::builtins::reduce::lanes::{Axis, pick};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

pub(super) fn repmat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(&args[1..])?;
    let x = &args[0];
    // As in Octave, NaN repetitions are none.
    let count = |v: f64| match v.is_nan() {
        true => Ok(0),
        false => integer(v).map(|n| n.max(0) as usize),
    };
    if args.len() > 3 && args[1..].iter().any(|arg| arg.len() > 1) {
        return fail!("repmat: all input arguments must be scalar");
    }
    let mut times: Vec<usize> = Vec::new();
    for arg in &args[1..] {
        let host = env.host(arg)?;
        if arg.is_char() || host.dims.len() > 2 || host.len() > args::RANK_MAX {
            return fail!("repmat: invalid dimensions");
        }
        // For a matrix argument its first column counts, and of further arguments the last number.
        let is_matrix = |dims: &Dims| dims.iter().all(|&n| n > 1);
        let used = match is_matrix(&host.dims) {
            _ if times.len() > 1 && is_matrix(&args[1].dims()) => host.len().saturating_sub(1)..host.len(),
            true => 0..host.dims.rows(),
            false => 0..host.len(),
        };
        for i in used {
            times.push(count(host.data.f64_at(i))?);
        }
    }
    match (times.len(), args.len()) {
        // A single number counts for both dimensions. If further arguments are empty, the other dimension gets 1.
        (1, 2) => times.push(times[0]),
        (1, _) => times.push(1),
        (0, _) => return Ok(x.clone().into()),
        _ => {}
    }
    let dims = x.dims();
    let rank = times.len().max(dims.len());
    times.resize(rank, 1);
    let out: Vec<usize> = (0..rank).map(|d| dims.extent(d).saturating_mul(times[d])).collect();
    env.check_elements(&out)?;
    let out = Dims::new(&out);
    if x.len() == 1
        && let Value::Num(v) = x
        && crate::builtins::record::is_big(env, x.class(), out.elements())
    {
        return Ok(record(crate::builtins::record::filled(env, x.class(), &out, *v)?, x.class(), &[])?.into());
    }
    let on_runtime = matches!(x, Value::Lazy(_)) || crate::builtins::record::is_big(env, x.class(), out.elements());
    if on_runtime
        && !x.is_complex()
        && let Some(array) = crate::builtins::record::lift(env, x)?
    {
        crate::builtins::record::check_shape(env, &out)?;
        return Ok(record(array.repmat(&times), x.class(), &[x])?.into());
    }
    let at = |d: usize, k: usize| k % dims.extent(d).max(1);
    let axes = Axis::mapped(&dims, &out, &at);
    Ok(picked(env, x, out, &axes)?.into())
}

/// Returns an error if there is too little memory for [`placed`]: for the elements and their source positions.
fn check_placed(env: &Env, out: &Dims, x: &Value) -> Flow<()> {
    env.check_host(out, x.class().bytes() + size_of::<Option<usize>>() + size_of::<usize>())
}

/// Cuts or pads a host array: `first[d]` is the position of the array's first element in the result, which is negative
/// if elements are cut off.
fn placed(x: &Value, out: &Dims, first: &[i64], padding: &Value) -> Flow<Value> {
    let dims = x.dims();
    let inside = |d: usize, k: usize| {
        let at = k as i64 - first.get(d).copied().unwrap_or(0);
        (at >= 0 && at < dims.extent(d) as i64).then_some(at as usize)
    };
    // The padding element is appended to the elements, so its position is the array's length.
    let mut positions: Vec<Option<usize>> = if out.contains(&0) { Vec::new() } else { vec![Some(0)] };
    let mut stride = 1;
    for d in 0..if positions.is_empty() { 0 } else { out.len() } {
        let mut next = Vec::with_capacity(positions.len() * out[d]);
        for k in 0..out[d] {
            let at = inside(d, k);
            next.extend(positions.iter().map(|p| Some(p.as_ref()? + at? * stride)));
        }
        positions = next;
        stride *= dims.extent(d);
    }
    let padding_at = x.len();
    let positions: Vec<usize> = positions.into_iter().map(|p| p.unwrap_or(padding_at)).collect();
    let padded = match (x, padding) {
        (Value::Cell(c), pad) => {
            let mut items = c.items.clone();
            items.push(pad.clone());
            let n = items.len();
            Value::cell(Dims::new(&[n, 1]), items)
        }
        (value @ (Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_)), _)
        | (_, value @ (Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_))) => {
            return fail!("wrong type argument '{}'", value.class_name());
        }
        (x, pad) => {
            let data = |v: &Value| match v {
                Value::Num(n) => Data::F64(vec![*n]),
                Value::Bool(b) => Data::Bool(vec![*b]),
                Value::Tensor(t) => Data::clone(&t.data),
                _ => Data::F64(Vec::new()),
            };
            let mut all = data(x);
            let pad = data(pad).converted(all.class());
            append(&mut all, pad);
            let n = all.len();
            Value::Tensor(Arc::new(Tensor::new(Dims::new(&[n, 1]), all)))
        }
    };
    match pick(&padded, out.clone(), &positions) {
        Some(value) => Ok(value),
        None => fail!("wrong type argument '{}'", x.class_name()),
    }
}

/// Appends data of the same class.
fn append(to: &mut Data, from: Data) {
    use num_complex::{Complex32, Complex64};
    macro_rules! same {
        ($($variant:ident),*) => {
            match (to, from) {
                $((Data::$variant(a), Data::$variant(b)) => a.extend(b),)*
                (Data::C64(a), Data::F64(b)) => a.extend(b.into_iter().map(Complex64::from)),
                (Data::C32(a), Data::F32(b)) => a.extend(b.into_iter().map(Complex32::from)),
                (to, from) => (0..from.len()).for_each(|i| {
                    let one = Data::filled(to.class(), from.f64_at(i), 1);
                    if one.class() == to.class() && !to.is_complex() {
                        append(to, one);
                    }
                }),
            }
        };
    }
    same!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool, C64, C32);
}

pub(super) fn pad(interp: &mut Interp, name: &'static str, args: &[Value], front: bool) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let x = host_value(env, &args[0])?;
    let d = match args.get(3) {
        // This is the first dimension with more than one element.
        None => x.dims().iter().position(|&d| d > 1).unwrap_or(0),
        Some(d) => args::dim(env, d, |_| format!("{name}: DIM must be an integer and a valid dimension"))?,
    };
    let length = if args[1].len() == 1 { number(env, name, &args[1])? } else { f64::NAN };
    if !(length >= 0.0 && length == length.trunc()) {
        return fail!("{name}: second argument must be a positive scaler");
    }
    let zero = Value::Num(0.0);
    let padding = match args.get(2).filter(|p| !p.is_empty()) {
        None => zero,
        Some(p) if p.len() == 1 => host_value(env, p)?,
        Some(_) => return fail!("{name}: third argument must be empty or a scalar"),
    };
    let length = integer(length)? as usize;
    let out = x.dims().with(d.min(1 << 8), length);
    check_placed(env, &out, &x)?;
    // Truth values that are joined with numbers become numbers.
    let x = match x.class() {
        Class::Logical if length > x.dims().extent(d) => super::creation::in_class(env, &x, Class::Double)?,
        _ => x,
    };
    let mut first = vec![0i64; out.len().max(d + 1)];
    if front {
        first[d] = length as i64 - x.dims().extent(d) as i64;
    }
    Ok(narrowed(placed(&x, &out, &first, &padding)?).into())
}

pub(super) fn resize(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let out = new_extents(env, &args[1..])?;
    check_placed(env, &out, &args[0])?;
    let x = host_value(env, &args[0])?;
    let out = match &x {
        Value::Struct(s) => placed_structs(env, s, &out)?,
        _ => narrowed(placed(&x, &out, &[], &Value::Num(0.0))?),
    };
    Ok(out.into())
}

/// Reads the dimensions for `resize`: a list of any shape, or a number for each dimension; fractions are truncated.
fn new_extents(env: &Env, sizes: &[Value]) -> Flow<Dims> {
    if sizes.iter().any(Value::is_char) {
        return fail!("invalid conversion from string to real N-D array");
    }
    let extent = |v: f64| match v {
        v if v >= 0.0 => args::extent(v.trunc()),
        _ => fail!("Invalid resizing operation or ambiguous assignment to an out-of-bounds array element"),
    };
    let mut extents = Vec::new();
    for size in sizes {
        let list = env.host(size)?;
        let used = if sizes.len() == 1 { list.len() } else { list.len().min(1) };
        if used > args::RANK_MAX {
            return fail!("resize: too many dimensions");
        }
        for i in 0..used {
            extents.push(extent(list.data.f64_at(i))?);
        }
    }
    Ok(match extents[..] {
        [] => Dims::zero(),
        [n] => Dims::new(&[n, n]),
        _ => Dims::new(&extents),
    })
}

/// Cuts a struct array, or pads it with structs whose fields are empty.
fn placed_structs(env: &Env, x: &StructArray, out: &Dims) -> Flow<Value> {
    let places = Value::tensor(Tensor::new(x.dims.clone(), Data::F64((1..=x.len()).map(|i| i as f64).collect())));
    let places = env.host(&placed(&places, out, &[], &Value::Num(0.0))?)?;
    let element = |values: &[Value], i: usize| match places.data.f64_at(i) as usize {
        0 => Value::empty(),
        at => values[at - 1].clone(),
    };
    let fields =
        x.fields.iter().map(|(name, values)| (name.clone(), (0..places.len()).map(|i| element(values, i)).collect()));
    Ok(Value::Struct(Arc::new(StructArray { dims: out.clone(), fields: fields.collect(), class: None, cleanup: None })))
}
