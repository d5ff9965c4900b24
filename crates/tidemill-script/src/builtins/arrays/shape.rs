//! Shapes: functions that return sizes, and that move elements without computing on them.
//!
//! In: values of any class. Out: sizes; the same elements in another order. Arrays on the runtime are moved there, by
//! views that fuse into the ops that read them.

use crate::builtins::args::{self, integer, number};
use crate::builtins::record::record;
use crate::builtins::reduce::lanes::{Axis, pick, pick_along};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::index::Values;
use crate::value::lazy::with_axes;
use crate::value::{Class, Data, Dims, Form, StructArray, Tensor, Value};
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

/// Permutes the dimensions: dimension `d` of the result is dimension `perm[d]`. `perm` names each dimension once, and
/// may go beyond the rank.
pub fn permuted_value(env: &Env, value: &Value, perm: &[usize]) -> Flow<Value> {
    let dims = value.dims();
    if perm.iter().enumerate().all(|(d, &p)| d == p) {
        return Ok(value.clone());
    }
    let out = Dims::new(&perm.iter().map(|&p| dims.extent(p)).collect::<Vec<_>>());
    if let Value::Lazy(l) = value {
        return record(l.array.permute(perm), l.class, &[value]);
    }
    picked(env, value, out, &Axis::permuted(&dims, perm))
}

/// Does the same as [`pick_along`], with an error for values without elements.
fn picked(env: &Env, value: &Value, dims: Dims, axes: &[Axis<'_>]) -> Flow<Value> {
    env.check_host(&dims, value.class().bytes() * (1 + usize::from(value.is_complex())))?;
    match pick_along(value, dims, axes) {
        Some(value) => Ok(value),
        None => fail!("wrong type argument '{}'", value.class_name().replace("function_handle", "function handle")),
    }
}

fn permute(interp: &mut Interp, args: &[Value], inverse: bool) -> Flow<Outcome> {
    let name = if inverse { "ipermute" } else { "permute" };
    if args[1].is_char() {
        return fail!("invalid conversion from string to real N-D array");
    }
    let (rank, list) = (args[0].dims().len(), interp.env.host(&args[1])?);
    if list.len() < rank {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to {name}");
    }
    let mut perm = Vec::with_capacity(list.len());
    let mut is_taken = vec![false; list.len()];
    for i in 0..list.len() {
        let p = list.data.f64_at(i).trunc();
        if !(p >= 1.0 && p <= list.len() as f64) {
            return fail!("{name}: permutation vector contains an invalid element");
        }
        let p = p as usize - 1;
        if std::mem::replace(&mut is_taken[p], true) {
            return fail!("{name}: permutation vector cannot contain identical elements");
        }
        perm.push(p);
    }
    if inverse {
        let mut back = vec![0; perm.len()];
        perm.iter().enumerate().for_each(|(d, &p)| back[p] = d);
        perm = back;
    }
    Ok(without_range(permuted_value(&interp.env, &args[0], &perm)?).into())
}

fn shiftdim(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let dims = args[0].dims();
    let n = match args.get(1) {
        None => dims.first_non_singleton() as i64,
        Some(v) if v.len() == 1 => {
            let n = number(&interp.env, "shiftdim", v)?;
            if n != n.trunc() || n.abs() > 1e3 {
                return fail!("shiftdim: N must be a scalar integer");
            }
            n as i64
        }
        Some(_) => return fail!("shiftdim: N must be a scalar integer"),
    };
    let rank = dims.len();
    let value = if n < 0 {
        let mut extents = vec![1; n.unsigned_abs() as usize];
        extents.extend_from_slice(&dims);
        reshaped(&args[0], Dims::new(&extents))?
    } else {
        let turn = n as usize % rank;
        let perm: Vec<usize> = (0..rank).map(|d| (d + turn) % rank).collect();
        permuted_value(&interp.env, &args[0], &perm)?
    };
    Ok(vec![value, Value::Num(n as f64)].into())
}

fn circshift(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let x = &args[0];
    interp.env.host_all(&args[1..])?;
    let dims = x.dims();
    if x.is_empty() {
        return Ok(x.clone().into());
    }
    let list = interp.env.host(&args[1])?;
    let mut shifts = vec![0i64; dims.len()];
    let whole = |v: f64| match v == v.trunc() && v.abs() < 9.2e18 {
        true => Ok(v as i64),
        false => fail!("circshift: all values of N must be integers"),
    };
    if let Some(d) = args.get(2).filter(|d| !d.is_empty()) {
        let d = number(&interp.env, "circshift", d)?;
        if list.len() != 1 {
            return fail!("circshift: N must be a vector, no longer than the number of dimensions in X");
        }
        let shift = whole(list.data.f64_at(0))?;
        if !(d >= 0.0 && d == d.trunc()) {
            return fail!("circshift: DIM must be a valid dimension");
        }
        if let Some(slot) = (d as usize).checked_sub(1).and_then(|d| shifts.get_mut(d)) {
            *slot = shift;
        }
    } else if list.len() == 1 {
        shifts[dims.first_non_singleton()] = whole(list.data.f64_at(0))?;
    } else {
        if !list.dims.is_vector() || list.len() > dims.len() {
            return fail!("circshift: N must be a vector, no longer than the number of dimensions in X");
        }
        for i in 0..list.len() {
            shifts[i] = whole(list.data.f64_at(i))?;
        }
    }
    if let Value::Lazy(l) = x {
        return Ok(record(with_axes(&l.array, shifts.len()).circshift(&shifts), l.class, &[x])?.into());
    }
    let first = |d: usize| (-shifts[d]).rem_euclid(dims[d].max(1) as i64) as usize;
    let firsts: Vec<usize> = (0..dims.len()).map(first).collect();
    let at = |d: usize, k: usize| if k < dims[d] - firsts[d] { k + firsts[d] } else { k + firsts[d] - dims[d] };
    let value = picked(&interp.env, x, dims.clone(), &Axis::mapped(&dims, &dims, &at))?;
    Ok(still_permutation(x, value).into())
}

/// Marks the result as a permutation matrix if the rows or columns of one were reordered.
fn still_permutation(x: &Value, moved: Value) -> Value {
    if x.is_permutation() || x.is_identity() { moved.permutation() } else { moved }
}

/// Reverses the elements along these dimensions.
pub fn flipped(env: &Env, x: &Value, over: &[usize]) -> Flow<Value> {
    let dims = x.dims();
    if let Value::Lazy(l) = x {
        let array = over.iter().fold(l.array.clone(), |a, &d| if d < dims.len() { a.flip(d) } else { a });
        return record(array, l.class, &[x]);
    }
    let at = |d: usize, k: usize| if over.contains(&d) { dims[d] - 1 - k } else { k };
    let value = picked(env, x, dims.clone(), &Axis::mapped(&dims, &dims, &at))?;
    Ok(still_permutation(x, value))
}

fn flip(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let d = match args.get(1) {
        None => args[0].dims().first_non_singleton(),
        Some(d) => args::dim(&interp.env, d, |_| "flip: DIM must be a positive integer".to_string())?,
    };
    Ok(flipped(&interp.env, &args[0], &[d])?.into())
}

fn rot90(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let k = quarter_turns(&interp.env, "rot90: K must be a single real integer", args.get(1))?;
    let value = turned(&interp.env, &args[0], k, [0, 1])?;
    Ok(still_permutation(&args[0], value).into())
}

fn quarter_turns(env: &Env, message: &str, k: Option<&Value>) -> Flow<u8> {
    let Some(k) = k else { return Ok(1) };
    let k = if k.len() == 1 && !k.is_complex() { number(env, "rot90", k)? } else { f64::NAN };
    if k == k.trunc() && k.is_finite() { Ok(k.rem_euclid(4.0) as u8) } else { fail!("{message}") }
}

fn turned(env: &Env, x: &Value, k: u8, plane: [usize; 2]) -> Flow<Value> {
    let rank = x.dims().len().max(plane[0].max(plane[1]) + 1);
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(plane[0], plane[1]);
    match k {
        0 => Ok(x.clone()),
        1 => flipped(env, &permuted_value(env, x, &perm)?, &[plane[0]]),
        2 => flipped(env, x, &plane),
        _ => permuted_value(env, &flipped(env, x, &[plane[0]])?, &perm),
    }
}

fn rotdim(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let k = quarter_turns(env, "rotdim: N must be a scalar integer", args.get(1))?;
    let dims = args[0].dims();
    let plane = match args.get(2) {
        Some(plane) => {
            let plane = env.host(plane)?;
            let wrong = "rotdim: PLANE must be a 2 element integer vector defining a valid PLANE";
            if plane.len() != 2 {
                return fail!("{wrong}");
            }
            let at = |i: usize| plane.data.f64_at(i);
            let valid = |v: f64| v >= 1.0 && v == v.trunc() && v <= dims.len() as f64;
            if !valid(at(0)) || !valid(at(1)) || at(0) == at(1) {
                return fail!("{wrong}");
            }
            [at(0) as usize - 1, at(1) as usize - 1]
        }
        None => {
            let wide: Vec<usize> = (0..dims.len()).filter(|&d| dims[d] != 1).collect();
            match wide[..] {
                [a, b, ..] => [a, b],
                [a] if a > 0 => [0, a],
                _ => [0, 1],
            }
        }
    };
    Ok(turned(env, &args[0], k, plane)?.into())
}

fn vec(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let d = match args.get(1) {
        None => 0,
        Some(d) => args::dim(&interp.env, d, |_| "vec: DIM must be greater than zero".to_string())?,
    };
    let dims = Dims::new(&[1, 1]).with(d.min(1 << 8), args[0].len());
    Ok(reshaped(&args[0], dims)?.into())
}

fn repmat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
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

fn pad(interp: &mut Interp, name: &'static str, args: &[Value], front: bool) -> Flow<Outcome> {
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

fn resize(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
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
