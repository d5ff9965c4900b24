//! Reading: `a(i, j)`, `c{i}`, of host arrays, cells and structs.

use super::grid::{Reading, read_dims, reading};
use super::lazy::{self, LazySubscripts, Read};
use super::subscript::{Position, Resolved, Subscript, Subscripts, along, place, resolve};
use super::{Values, structs};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::tensor::map_data;
use crate::value::{Data, Dims, Tensor, Value};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Spare capacity behind a part that was read, in elements.
const SLICE_ROOM: usize = 4;

/// `base(subscripts)`.
pub fn paren(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Value> {
    if let Some(value) = scalar(base, subscripts) {
        return Ok(value);
    }
    if subscripts.is_empty() {
        return Ok(base.clone());
    }
    if let Value::Map(map) = base {
        return super::map::read(env, map, subscripts);
    }
    if let Value::Parser(_) = base {
        return fail!("only '()' indexing with exactly zero arguments is supported by an inputParser");
    }
    match lazy::subscripts(subscripts)? {
        // The leading rows and columns of a diagonal matrix are a diagonal matrix, too.
        LazySubscripts::Host(known)
            if base.is_diagonal() && subscripts.len() == 2 && subscripts.iter().all(is_leading) =>
        {
            Ok(host(env, base, known)?.diagonal())
        }
        // A permutation matrix with reordered rows and columns is a permutation matrix, too, and so is such an
        // identity.
        LazySubscripts::Host(known) if subscripts.len() == 2 && (base.is_permutation() || base.is_identity()) => {
            let part = host(env, base, known)?;
            Ok(if part.dims() == base.dims() { part.permutation() } else { part })
        }
        LazySubscripts::Host(known) if !matches!(base, Value::Lazy(_)) => host(env, base, known),
        known => match lazy::read(env, base, known, subscripts)? {
            Read::Done(value) => Ok(value),
            Read::Host(base, known) => host(env, &base, known),
        },
    }
}

/// Whether a subscript is a colon, 1, or a range from 1.
fn is_leading(subscript: &Value) -> bool {
    match subscript {
        Value::Colon => true,
        Value::Num(k) => *k == 1.0,
        Value::Tensor(t) if t.is_range() => matches!(&*t.data, Data::F64(v) if matches!(v[..], [1.0, 2.0, ..])),
        _ => false,
    }
}

/// Reads one element by one or two plain numbers.
#[inline]
fn scalar(base: &Value, subscripts: &[Value]) -> Option<Value> {
    let (dims, data) = match base {
        Value::Tensor(tensor) => (&tensor.dims, &*tensor.data),
        Value::Lazy(lazy) if !lazy.pinned.any() => {
            let host = lazy.host.get()?;
            (&host.dims, &*host.data)
        }
        _ => return None,
    };
    let at = match subscripts {
        [Value::Num(k)] => place(*k)?,
        [Value::Num(i), Value::Num(j)] => {
            let (i, j) = (place(*i)?, place(*j)?);
            if i >= dims.rows() || dims.len() != 2 || j >= dims.columns() {
                return None;
            }
            i + j * dims.rows()
        }
        _ => return None,
    };
    match data {
        Data::F64(v) => v.get(at).map(|&x| Value::Num(x)),
        Data::Bool(v) => v.get(at).map(|&x| Value::Bool(x)),
        _ => None,
    }
}

/// Reads a part of a value in host memory through known subscripts.
pub fn host(env: &Env, base: &Value, subscripts: Subscripts) -> Flow<Value> {
    if let Value::Tensor(tensor) = base
        && subscripts.iter().all(Subscript::is_colon)
    {
        let (dims, _) = read_dims(&tensor.dims, &subscripts)?;
        return Ok(Value::tensor(tensor.seen_as(dims)));
    }
    let Reading { grid, dims } = reading(&base.dims(), subscripts)?;
    env.check_host(&dims, base.class().bytes())?;
    Ok(match base {
        Value::Tensor(tensor) => {
            let data = map_data!(&*tensor.data, v => grid.gather(v));
            Value::tensor(Tensor { double_quoted: tensor.double_quoted, ..Tensor::new(dims, data) })
        }
        Value::Num(x) => Value::tensor(Tensor::new(dims, Data::F64(vec![*x; grid.len()]))),
        Value::Bool(x) => Value::tensor(Tensor::new(dims, Data::Bool(vec![*x; grid.len()]))),
        Value::Cell(cell) => Value::cell(dims, grid.gather(&cell.items)),
        Value::Struct(array) => Value::Struct(Arc::new(structs::gather(array, &grid, dims))),
        Value::Function(_) => return fail!("function handle cannot be indexed with ()"),
        Value::Lazy(_) | Value::Map(_) | Value::Parser(_) | Value::Colon => {
            return fail!("an array in host memory was to be indexed");
        }
    })
}

/// Returns the elements in this range of positions, as `x(a:b)` gives them. There are at least two.
pub fn slice(tensor: &Tensor, places: Range<usize>) -> Tensor {
    let count = places.len();
    let data = map_data!(&*tensor.data, v => {
        // A little is often appended to a part.
        let mut part = Vec::with_capacity(count + SLICE_ROOM);
        part.extend_from_slice(&v[places]);
        part
    });
    Tensor::new(along(&tensor.dims, count).unwrap_or_else(|| Dims::new(&[1, count])), data)
}

/// `base{subscripts}`.
pub fn brace(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Values> {
    if let Value::Map(_) = base {
        return fail!("containers.Map: only '()' indexing is supported");
    }
    if let Value::Parser(_) = base {
        return fail!("object cannot be indexed with '{{'");
    }
    let Value::Cell(cell) = base else {
        return fail!("{} cannot be indexed with {{", structs::indexed_name(base));
    };
    if let [Value::Num(k)] = subscripts
        && let Some(item) = place(*k).and_then(|k| cell.items.get(k))
    {
        return Ok(smallvec::smallvec![item.clone()]);
    }
    if subscripts.is_empty() {
        return Ok(cell.items.iter().cloned().collect());
    }
    let subscripts = on_host(env, subscripts)?;
    let Reading { grid, dims } = reading(&cell.dims, subscripts)?;
    env.check_host(&dims, size_of::<Value>())?;
    Ok(SmallVec::from_vec(grid.gather(&cell.items)))
}

/// Returns the subscripts on the host. Those on the runtime are awaited.
pub fn on_host(env: &mut Env, subscripts: &[Value]) -> Flow<Subscripts> {
    let count = subscripts.len();
    env.host_all(subscripts.iter().filter(|v| matches!(v, Value::Lazy(l) if l.steps.is_none())))?;
    let mut out = Subscripts::new();
    for (index, value) in subscripts.iter().enumerate() {
        match resolve(value, Position { index, count })? {
            Resolved::Host(subscript) => out.push(subscript),
            Resolved::Lazy(_) => return fail!("SCRIPT-2: a subscript was to be awaited"),
        }
    }
    Ok(out)
}
