//! Deletion: `a(i) = []`, `a(:, j) = []`.
//!
//! Must hold: at most one subscript is not a colon; an error leaves the target unchanged.

use super::grid::Grid;
use super::lazy;
use super::lazy_write::move_to_host;
use super::read::on_host;
use super::subscript::{Places, Subscript, Subscripts, folded};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::tensor::{each_data, map_data};
use crate::value::{CellArray, Dims, Form, Lazy, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The result of a deletion: the elements at `keep` along dimension `dim` of the array.
struct Rest {
    /// The array's extents as the deletion sees them.
    extents: SmallVec<[usize; 3]>,
    dim: usize,
    keep: Vec<usize>,
    /// The shape of the result.
    dims: Dims,
}

/// `target(subscripts) = []`.
pub fn paren(env: &mut Env, target: &mut Option<Value>, subscripts: &[Value]) -> Flow<()> {
    let base = target.get_or_insert_with(Value::empty);
    if let ([Value::Lazy(mask)], true) = (subscripts, lazy_mask(base, subscripts)) {
        let rest = lazy::without(env, base, mask)?;
        if rest.len() != base.len() {
            let dims = linear_rest(&base.dims(), rest.len());
            *base = reshaped(rest, dims)?;
        }
        return Ok(());
    }
    if let Value::Function(_) = base {
        return fail!("can't perform indexed assignment for function handle type");
    }
    let known = on_host(env, subscripts)?;
    let touches = touched(env, target, &known)?;
    let base = target.get_or_insert_with(Value::empty);
    if run_of_vector(base, &known) {
        return Ok(());
    }
    let Some(rest) = rest(&base.dims(), &known)? else {
        // Nothing is deleted. But the array becomes an ordinary one, no range, and not known to be diagonal.
        if let Value::Tensor(shared) = base
            && shared.form != Form::Full
        {
            Arc::make_mut(shared).form = Form::Full;
        }
        return Ok(());
    };
    *base = without(env, base, rest)?;
    if let Value::Lazy(lazy) = base {
        lazy.touches.store(touches, Ordering::Relaxed);
    }
    Ok(())
}

/// Gathers an array of the runtime to the host if small parts of it are deleted again and again. Returns its count of
/// touches.
fn touched(env: &Env, target: &mut Option<Value>, subscripts: &[Subscript]) -> Flow<u32> {
    let Some(Value::Lazy(lazy)) = target else { return Ok(0) };
    let extents = folded(&lazy.dims, subscripts.len());
    let elements = subscripts.iter().zip(&extents).fold(1, |n: usize, (s, &extent)| n.saturating_mul(s.len(extent)));
    if !lazy.pinned.any() && elements <= env.part_elements_max() && lazy.touch(elements) {
        move_to_host(env, target)?;
        return Ok(0);
    }
    Ok(lazy.touches.load(Ordering::Relaxed))
}

/// Whether the subscript is a mask of the runtime that fits an array that the runtime can hold.
fn lazy_mask(base: &Value, subscripts: &[Value]) -> bool {
    let [Value::Lazy(mask)] = subscripts else { return false };
    mask.class == crate::value::Class::Logical
        && mask.host.get().is_none()
        && mask.dims.elements() == base.len()
        && base.class().dtype().is_some()
        && !base.is_complex()
}

fn reshaped(value: Value, dims: Dims) -> Flow<Value> {
    Ok(match value {
        Value::Lazy(l) if l.dims != dims => {
            Lazy::new(l.array.reshape(&dims[..]), l.class, l.pinned, l.may_fault)?.value()
        }
        Value::Tensor(t) => Value::tensor_as_is(Arc::unwrap_or_clone(t).reshaped(dims)),
        other => other,
    })
}

/// Deletes neighbouring elements of a vector in place. Returns `false` if that is not possible.
fn run_of_vector(base: &mut Value, subscripts: &[Subscript]) -> bool {
    let (first, len) = match subscripts {
        [Subscript { places: Places::One(at), .. }] => (*at, 1),
        [Subscript { places: Places::Range { first, step: 1, len }, .. }] => (*first, *len),
        _ => return false,
    };
    let Value::Tensor(shared) = base else { return false };
    let Some(tensor) = Arc::get_mut(shared) else { return false };
    let n = tensor.data.len();
    // The rest must not become a scalar, and must keep its direction.
    if first + len > n || n - len < 2 || tensor.data.is_complex() {
        return false;
    }
    let dims = match tensor.dims[..] {
        [1, _] => Dims::new(&[1, n - len]),
        [_, 1] => Dims::new(&[n - len, 1]),
        _ => return false,
    };
    each_data!(&mut *tensor.data, v => drop(v.drain(first..first + len)));
    tensor.dims = dims;
    tensor.form = Form::Full;
    true
}

/// Returns the shape of the `n` remaining elements after a deletion of single elements: a column stays a column.
fn linear_rest(dims: &Dims, n: usize) -> Dims {
    match dims[..] {
        [rows, 1] if rows != 1 => Dims::new(&[n, 1]),
        _ => Dims::new(&[1, n]),
    }
}

/// Returns the remaining part; `None` if nothing is deleted.
fn rest(array: &Dims, subscripts: &Subscripts) -> Flow<Option<Rest>> {
    match &subscripts[..] {
        [] => fail!("invalid empty index list"),
        [one] if one.is_colon() => {
            let n = array.elements();
            Ok(Some(Rest { extents: SmallVec::from_slice(&[n]), dim: 0, keep: Vec::new(), dims: Dims::zero() }))
        }
        [one] => {
            let n = array.elements();
            let Some(keep) = others(one, n, "I")? else { return Ok(None) };
            let dims = linear_rest(array, keep.len());
            Ok(Some(Rest { extents: SmallVec::from_slice(&[n]), dim: 0, keep, dims }))
        }
        many => along_one(array, many),
    }
}

fn along_one(array: &Dims, subscripts: &[Subscript]) -> Flow<Option<Rest>> {
    let rank = array.len().max(subscripts.len());
    let extents: SmallVec<[usize; 3]> = (0..rank).map(|d| array.extent(d)).collect();
    let mut named = subscripts.iter().enumerate().filter(|(_, s)| !s.is_colon());
    let (dim, keep) = match (named.next(), named.next()) {
        (None, _) => (0, Some(Vec::new())),
        (Some((d, s)), None) => (d, others(s, extents[d], "..,I,..")?),
        _ if is_empty_before_two(subscripts, &extents) => return Ok(None),
        _ => return fail!("a null assignment can only have one non-colon index"),
    };
    let Some(keep) = keep else { return Ok(None) };
    let dims = array.with(dim, keep.len());
    Ok(Some(Rest { extents, dim, keep, dims }))
}

/// Whether a subscript is empty, and at most one subscript before it is no colon.
fn is_empty_before_two(subscripts: &[Subscript], extents: &[usize]) -> bool {
    let empty = subscripts.iter().zip(extents).position(|(s, &n)| s.len(n) == 0);
    empty.is_some_and(|at| subscripts[..at].iter().filter(|s| !s.is_colon()).count() < 2)
}

/// Returns the positions below `n` that a subscript does not name; `None` if it names none.
fn others(subscript: &Subscript, n: usize, what: &str) -> Flow<Option<Vec<usize>>> {
    if subscript.len(n) == 0 {
        return Ok(None);
    }
    if subscript.extent > n {
        return fail_id!(
            "Octave:index-out-of-bounds",
            "A({what}) = []: index out of bounds: value {} out of bound {n}",
            subscript.extent
        );
    }
    let mut goes = vec![false; n];
    subscript.positions(n).into_iter().for_each(|place| goes[place] = true);
    Ok(Some(goes.iter().enumerate().filter_map(|(place, &goes)| (!goes).then_some(place)).collect()))
}

fn without(env: &mut Env, base: &Value, rest: Rest) -> Flow<Value> {
    let Rest { extents, dim, keep, dims } = rest;
    if let Value::Lazy(lazy) = base {
        return lazy::keep(env, lazy, &extents, dim, keep, &dims);
    }
    let kept = Subscript::list(keep, Dims::scalar());
    let subscripts = (0..extents.len()).map(|d| if d == dim { kept.clone() } else { Subscript::colon() }).collect();
    let grid = Grid::new(&extents, subscripts);
    Ok(match base {
        Value::Cell(cell) => Value::Cell(Arc::new(CellArray::new(dims, grid.gather(&cell.items)))),
        Value::Struct(array) => Value::Struct(Arc::new(super::structs::gather(array, &grid, dims))),
        other => {
            let tensor = env.host(other)?;
            let data = map_data!(&*tensor.data, v => grid.gather(v));
            Value::tensor(Tensor { double_quoted: tensor.double_quoted, ..Tensor::new(dims, data) })
        }
    })
}
