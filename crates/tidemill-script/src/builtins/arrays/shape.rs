//! Shapes: functions that return sizes or give arrays other sizes, and the table of these and of the functions that move
//! elements (`rearrange.rs`), repeat and pad (`padding.rs`).
//!
//! In: values of any class. Out: sizes; the same elements in another order. Arrays on the runtime are moved there, by
//! views that fuse into the ops that read them.

use super::padding::{pad, repmat, resize};
use super::rearrange::{circshift, flip, flipped, permute, rot90, rotdim, shiftdim};
use crate::builtins::args::{self, integer, number};
use crate::builtins::record::record;
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::index::Values;
use crate::value::{Data, Dims, Form, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] =
    &[
        row("size", 1, ANY, ANY, "[m, n, ...] = size (x, dim, ...)", "The extents of an array.", size),
        row("numel", 1, ANY, 1, "numel (x, idx, ...)", "The number of elements.", numel),
        row("ndims", 1, 1, 1, "ndims (x)", "The number of dimensions.", |_, a, _| {
            Ok(Value::from(a[0].dims().len()).into())
        }),
        row("length", 1, 1, 1, "length (x)", "The greatest extent, 0 of an empty array.", |_, a, _| {
            Ok(Value::from(length(&a[0])).into())
        }),
        row("columns", 1, 1, 1, "columns (x)", "The number of columns.", |_, a, _| {
            Ok(Value::from(a[0].dims().columns()).into())
        }),
        row("rows", 1, 1, 1, "rows (x)", "The number of rows.", |_, a, _| Ok(Value::from(a[0].dims().rows()).into())),
        row("isempty", 1, 1, 1, "isempty (x)", "Whether an array has no elements.", |_, a, _| {
            Ok(Value::Bool(a[0].is_empty()).into())
        }),
        row("full", 1, 1, 1, "full (x)", "The array without a special form.", |_, a, _| Ok(full(&a[0]).into())),
        row("isnull", 1, 1, 1, "isnull (x)", "Whether a value is an empty literal.", |_, a, _| {
            Ok(Value::Bool(matches!(&a[0], Value::Tensor(t) if t.is_empty() && t.dims == Dims::zero())).into())
        }),
        row("reshape", 2, ANY, 1, "reshape (x, m, n, ...)", "The same elements under other dimensions.", reshape),
        row("squeeze", 1, 1, 1, "squeeze (x)", "Removes dimensions of extent 1.", squeeze),
        row("permute", 2, 2, 1, "permute (x, perm)", "Exchanges dimensions.", |i, a, _| permute(i, a, false)),
        row("ipermute", 2, 2, 1, "ipermute (x, perm)", "Undoes permute.", |i, a, _| permute(i, a, true)),
        row("shiftdim", 1, 2, 2, "[y, n] = shiftdim (x, n)", "Rotates the dimensions.", shiftdim),
        row("circshift", 2, 3, 1, "circshift (x, n, dim)", "Moves elements around the end of a dimension.", circshift),
        row("flip", 1, 2, 1, "flip (x, dim)", "Reverses the elements along a dimension.", flip),
        row("fliplr", 1, 1, 1, "fliplr (x)", "Reverses the columns.", |i, a, _| {
            Ok(flipped(&i.env, &a[0], &[1])?.into())
        }),
        row("flipud", 1, 1, 1, "flipud (x)", "Reverses the rows.", |i, a, _| Ok(flipped(&i.env, &a[0], &[0])?.into())),
        row("rot90", 1, 2, 1, "rot90 (x, k)", "Turns a matrix by quarter turns, counterclockwise.", rot90),
        row("rotdim", 1, 3, 1, "rotdim (x, n, plane)", "Turns an array by quarter turns in a plane.", rotdim),
        row("vec", 1, 2, 1, "vec (x, dim)", "All elements as a column.", vec),
        row("repmat", 2, ANY, 1, "repmat (x, m, n, ...)", "Tiles an array.", repmat),
        row("postpad", 2, 4, 1, "postpad (x, l, c, dim)", "Pads or cuts a dimension at its end.", |i, a, _| {
            pad(i, "postpad", a, false)
        }),
        row("prepad", 2, 4, 1, "prepad (x, l, c, dim)", "Pads or cuts a dimension at its beginning.", |i, a, _| {
            pad(i, "prepad", a, true)
        }),
        row("resize", 2, ANY, 1, "resize (x, m, n, ...)", "Cuts or pads with zeros to a size.", resize),
        row("sub2ind", 2, ANY, 1, "sub2ind (dims, i, j, ...)", "Linear indices of subscripts.", sub2ind),
        row("ind2sub", 2, 2, ANY, "[i, j, ...] = ind2sub (dims, ind)", "Subscripts of linear indices.", ind2sub),
    ];

/// Returns the same elements, no longer known as a range.
pub fn without_range(x: Value) -> Value {
    match &x {
        Value::Tensor(t) if t.is_range() => full(&x),
        _ => x,
    }
}

/// Returns the same elements, known neither as a range nor as diagonal.
fn full(x: &Value) -> Value {
    match x {
        Value::Tensor(t) if t.form != Form::Full => Value::tensor_as_is(t.seen_as(t.dims.clone())),
        other => other.clone(),
    }
}

fn size(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let dims = args[0].dims();
    if args.len() == 1 {
        if nargout < 2 {
            return Ok(Value::row(dims.iter().map(|&d| d as f64).collect()).into());
        }
        // The last output spans the remaining dimensions.
        let out: Vec<Value> = (0..nargout)
            .map(|k| match k + 1 == nargout {
                true => Value::Num((k..dims.len().max(k + 1)).map(|d| dims.extent(d) as f64).product()),
                false => Value::from(dims.extent(k)),
            })
            .collect();
        return Ok(out.into());
    }
    interp.env.host_all(&args[1..])?;
    let mut wanted = Vec::new();
    for arg in &args[1..] {
        if arg.is_char() {
            return fail!("invalid conversion from string to real N-D array");
        }
        if args.len() > 2 && arg.len() != 1 {
            return fail!("size: DIM must be a positive integer");
        }
        let host = interp.env.host(arg)?;
        for i in 0..host.len() {
            let d = integer(host.data.f64_at(i))?;
            if d < 1 {
                return fail!("size: requested dimension DIM (= {d}) out of range");
            }
            wanted.push(dims.extent((d - 1) as usize) as f64);
        }
    }
    if nargout < 2 {
        return Ok(Value::row(wanted).into());
    }
    if nargout != wanted.len() {
        return fail!("size: nargout > 1 but does not match number of requested dimensions");
    }
    Ok(wanted.into_iter().map(Value::Num).collect::<Vec<_>>().into())
}

/// Returns the greatest extent; 0 for an empty array.
pub fn length(value: &Value) -> usize {
    let dims = value.dims();
    if dims.contains(&0) { 0 } else { dims.iter().copied().max().unwrap_or(0) }
}

fn numel(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let subscripts = &args[1..];
    if subscripts.is_empty() {
        return Ok(Value::from(args[0].len()).into());
    }
    let mut n: f64 = 1.0;
    for (k, subscript) in subscripts.iter().enumerate() {
        let colon = matches!(subscript, Value::Colon) || args::is_word(subscript, ":");
        n *= match colon {
            true => crate::index::end(&args[0], k, subscripts.len()) as f64,
            false => subscript.len() as f64,
        };
    }
    Ok(Value::Num(n).into())
}

/// Returns the same elements with other dimensions, which have as many elements.
pub fn reshaped(value: &Value, dims: Dims) -> Flow<Value> {
    debug_assert_eq!(value.len(), dims.elements());
    Ok(match value {
        Value::Num(_) | Value::Bool(_) => value.clone(),
        Value::Tensor(t) => Value::tensor_as_is(t.seen_as(dims)),
        Value::Lazy(l) => record(l.array.reshape(&dims[..]), l.class, &[value])?,
        Value::Cell(c) => Value::cell(dims, c.items.clone()),
        Value::Struct(s) => {
            let mut s = (**s).clone();
            s.dims = dims;
            Value::Struct(Arc::new(s))
        }
        Value::Function(_) | Value::Map(_) | Value::Parser(_) | Value::Colon if dims.is_scalar() => value.clone(),
        _ => return fail!("octave_base_value::reshape (): wrong type argument 'function handle'"),
    })
}

fn reshape(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(&args[1..])?;
    let x = &args[0];
    if let Value::Function(_) = x {
        return fail!("octave_base_value::reshape (): wrong type argument 'function handle'");
    }
    let part = |v: f64| {
        if v >= 0.0 { integer(v.trunc()).map(|n| n as usize) } else { fail!("reshape: SIZE must be non-negative") }
    };
    let mut unknown = None;
    let mut extents = Vec::new();
    if let [list] = &args[1..] {
        if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = list {
            return fail!("octave_base_value::array_value(): wrong type argument '{}'", list.class_name());
        }
        let host = env.host(list)?;
        if host.len() < 2 {
            return fail!("reshape: SIZE must have 2 or more dimensions");
        }
        if host.len() > args::RANK_MAX {
            return fail!("reshape: too many dimensions");
        }
        for i in 0..host.len() {
            extents.push(part(host.data.f64_at(i))?);
        }
    } else {
        for (k, arg) in args[1..].iter().enumerate() {
            match arg.len() {
                0 if unknown.is_some() => return fail!("reshape: only a single dimension can be unknown"),
                0 => {
                    unknown = Some(k);
                    extents.push(1);
                }
                1 => extents.push(part(number(env, "reshape", arg)?)?),
                _ => return fail!("reshape: SIZE must be non-negative"),
            }
        }
    }
    let n = x.len();
    if let Some(k) = unknown {
        let known = Dims::new(&extents).elements();
        if known == 0 {
            extents[k] = 0;
        } else if !n.is_multiple_of(known) {
            return fail!("reshape: SIZE is not divisible by the product of known dimensions (= {known})");
        } else {
            extents[k] = n / known;
        }
    }
    let dims = Dims::new(&extents);
    if dims.elements() != n {
        let wanted: Vec<String> = extents.iter().map(usize::to_string).collect();
        return fail!("reshape: can't reshape {} array to {} array", x.dims(), wanted.join("x"));
    }
    Ok(reshaped(x, dims)?.into())
}

fn squeeze(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let dims = args[0].dims();
    if dims.len() <= 2 {
        return Ok(args[0].clone().into());
    }
    let kept: Vec<usize> = dims.iter().copied().filter(|&d| d != 1).collect();
    let dims = match kept[..] {
        [] => Dims::scalar(),
        [n] => Dims::new(&[n, 1]),
        _ => Dims::new(&kept),
    };
    Ok(reshaped(&args[0], dims)?.into())
}

fn vec(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let d = match args.get(1) {
        None => 0,
        Some(d) => args::dim(&interp.env, d, |_| "vec: DIM must be greater than zero".to_string())?,
    };
    let dims = Dims::new(&[1, 1]).with(d.min(1 << 8), args[0].len());
    Ok(reshaped(&args[0], dims)?.into())
}

/// Reads the dimension vector of `sub2ind` and `ind2sub`.
fn dimension_vector(env: &Env, name: &str, value: &Value) -> Flow<Vec<usize>> {
    let list = env.host(value)?;
    if list.is_empty() || list.len() > args::RANK_MAX {
        return fail!("{name}: DIMS must contain at least 2 elements");
    }
    (0..list.len())
        .map(|i| match list.data.f64_at(i) {
            v if v >= 0.0 && v == v.trunc() && v < 9e15 => Ok(v as usize),
            _ => fail!("{name}: dimension vector DIMS must contain integers"),
        })
        .collect()
}

fn sub2ind(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let named = dimension_vector(env, "sub2ind", &args[0])?;
    let count = args.len() - 1;
    // The last subscript spans the remaining dimensions.
    let extents: Vec<usize> = (0..count)
        .map(|k| match k + 1 == count {
            true => named.iter().skip(k).fold(1usize, |n, &d| n.saturating_mul(d)),
            false => named.get(k).copied().unwrap_or(1),
        })
        .collect();
    let subscripts = args[1..].iter().map(|v| env.host(v)).collect::<Flow<Vec<_>>>()?;
    let shape = subscripts[0].dims.clone();
    if subscripts.iter().any(|s| s.dims != shape) {
        return fail!("sub2ind: all subscripts must be of the same size");
    }
    let place = |k: usize, text: &str| {
        let mut parts = vec!["_"; count];
        parts[k] = text;
        parts.join(",")
    };
    let mut out = vec![0.0; shape.elements()];
    let mut stride = 1.0;
    for (k, subscript) in subscripts.iter().enumerate() {
        for (i, sum) in out.iter_mut().enumerate() {
            let v = subscript.data.f64_at(i);
            if !(v >= 1.0 && v == v.trunc()) {
                return fail_id!(
                    "Octave:invalid-index",
                    "index ({}): subscripts must be either integers 1 to (2^63)-1 or logicals",
                    place(k, &args::short(v))
                );
            }
            if v > extents[k] as f64 {
                // The message names the greatest subscript.
                let most = (0..subscript.len()).map(|i| subscript.data.f64_at(i)).fold(v, f64::max);
                return fail_id!(
                    "Octave:index-out-of-bounds",
                    "index ({}): out of bound {} (dimensions are {})",
                    place(k, &args::short(most)),
                    extents[k],
                    Dims::new(&named)
                );
            }
            *sum += (v - 1.0) * stride;
        }
        stride *= extents[k] as f64;
    }
    out.iter_mut().for_each(|v| *v += 1.0);
    Ok(Value::tensor(Tensor::new(shape, Data::F64(out))).into())
}

fn ind2sub(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let named = dimension_vector(env, "ind2sub", &args[0])?;
    let count = nargout.max(1);
    let extents: Vec<usize> = (0..count)
        .map(|k| match k + 1 == count {
            true => named.iter().skip(k).fold(1usize, |n, &d| n.saturating_mul(d)),
            false => named.get(k).copied().unwrap_or(1),
        })
        .collect();
    let total = named.iter().fold(1.0, |n, &d| n * d as f64);
    let index = env.host(&args[1])?;
    let index = match &*index.data {
        Data::Bool(mask) => {
            let places: Vec<f64> = mask.iter().enumerate().filter(|(_, m)| **m).map(|(i, _)| i as f64 + 1.0).collect();
            let n = places.len();
            let dims = if index.dims.rows() == 1 { Dims::new(&[1, n]) } else { Dims::new(&[n, 1]) };
            Arc::new(Tensor::new(dims, Data::F64(places)))
        }
        _ => index,
    };
    let mut outs = vec![Vec::with_capacity(index.len()); count];
    for i in 0..index.len() {
        let v = index.data.f64_at(i);
        if !(v >= 1.0 && v == v.trunc()) {
            return fail!(
                "ind2sub: invalid index index {}: subscripts must be either integers 1 to (2^63)-1 or logicals",
                args::short(v)
            );
        }
        if v > total {
            return fail!("ind2sub: index out of range");
        }
        let mut rest = (v - 1.0) as usize;
        for (out, &extent) in outs.iter_mut().zip(&extents) {
            out.push((rest % extent.max(1)) as f64 + 1.0);
            rest /= extent.max(1);
        }
    }
    let values: Values =
        outs.into_iter().map(|out| Value::tensor(Tensor::new(index.dims.clone(), Data::F64(out)))).collect();
    Ok(values.into())
}

/// Makes a complex value real if it has no imaginary part.
pub fn narrowed(value: Value) -> Value {
    match value {
        Value::Tensor(t) if t.data.is_complex() => Value::tensor(Arc::unwrap_or_clone(t)),
        other => other,
    }
}

/// Returns the value with its elements in host memory.
pub fn host_value(env: &Env, value: &Value) -> Flow<Value> {
    match value {
        Value::Lazy(_) => Ok(Value::held(env.host(value)?)),
        other => Ok(other.clone()),
    }
}
