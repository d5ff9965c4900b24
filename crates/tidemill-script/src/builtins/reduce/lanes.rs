//! Walks host arrays along dimensions: lanes for reductions and scans, and positions for functions that move elements.
//!
//! Must hold: positions are within the array for which they were made.

use crate::value::tensor::map_data;
use crate::value::{CellArray, Data, Dims, StructArray, Tensor, Value};
use std::sync::Arc;

/// The lanes of an array along one dimension: `count` lanes of `len` elements, which are `stride` apart.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// The number of elements of a lane.
    pub len: usize,
    /// The distance between neighbouring elements of a lane.
    pub stride: usize,
    /// The number of lanes. Lane `n` gives element `n` of the result of a reduction.
    pub count: usize,
}

impl Lanes {
    /// Makes the lanes along dimension `d` (from 0). Beyond the rank, each element is a lane.
    pub fn new(dims: &Dims, d: usize) -> Lanes {
        let stride: usize = (0..d.min(dims.len())).map(|i| dims[i]).product();
        let after: usize = (d + 1..dims.len()).map(|i| dims[i]).product();
        Lanes { len: dims.extent(d), stride, count: stride * after }
    }

    /// Returns the position of a lane's first element.
    pub fn start(&self, lane: usize) -> usize {
        lane % self.stride + lane / self.stride * self.stride * self.len
    }

    /// Returns the positions of a lane's elements.
    pub fn positions(&self, lane: usize) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator + Clone + use<> {
        let (start, stride) = (self.start(lane), self.stride);
        (0..self.len).map(move |k| start + k * stride)
    }
}

/// Joins the dimensions `over` into one, so that a lane runs through all of them. Returns the array, the dimension to
/// walk along, and the dimensions of the result of a reduction.
pub fn joined<'a>(t: &'a Tensor, over: &[usize]) -> (std::borrow::Cow<'a, Tensor>, usize, Dims) {
    let mut out: Vec<usize> = t.dims.to_vec();
    let inside: Vec<usize> = over.iter().copied().filter(|&d| d < t.dims.len()).collect();
    inside.iter().for_each(|&d| out[d] = 1);
    let out = Dims::new(&out);
    let walked: Vec<usize> = inside.iter().copied().filter(|&d| t.dims[d] != 1).collect();
    match walked[..] {
        [] => (std::borrow::Cow::Borrowed(t), inside.first().or(over.first()).copied().unwrap_or(0), out),
        [d] => (std::borrow::Cow::Borrowed(t), d, out),
        _ => {
            let mut front = walked.clone();
            front.sort_unstable();
            let rest: Vec<usize> = (0..t.dims.len()).filter(|d| !walked.contains(d)).collect();
            let len: usize = front.iter().map(|&d| t.dims[d]).product();
            let in_front = front.iter().enumerate().all(|(i, &d)| i == d);
            let mut dims = vec![len];
            dims.extend(rest.iter().map(|&d| t.dims[d]));
            let moved = match in_front {
                true => t.clone(),
                false => {
                    front.extend(&rest);
                    let axes = Axis::permuted(&t.dims, &front);
                    Tensor::new(Dims::new(&[t.len(), 1]), map_data!(&*t.data, v => along(v, &axes)))
                }
            };
            (std::borrow::Cow::Owned(moved.reshaped(Dims::new(&dims))), 0, out)
        }
    }
}

/// Returns the positions `first + Σ index[d] · strides[d]` for all indices within `extents`, column-major.
pub fn strided(extents: &[usize], strides: &[usize], first: usize) -> Vec<usize> {
    let n: usize = extents.iter().product();
    let mut out = Vec::with_capacity(n);
    let mut index = vec![0usize; extents.len()];
    let mut at = first;
    for _ in 0..n {
        out.push(at);
        for d in 0..extents.len() {
            index[d] += 1;
            at += strides[d];
            if index[d] < extents[d] {
                break;
            }
            at -= strides[d] * extents[d];
            index[d] = 0;
        }
    }
    out
}

/// A dimension of a result whose elements are picked from an array: its extent, and each index's offset from the
/// array's first element.
pub struct Axis<'a> {
    len: usize,
    offset: Box<dyn Fn(usize) -> usize + 'a>,
}

impl<'a> Axis<'a> {
    /// Makes a dimension with `len` indices, each with its `offset` in elements.
    pub fn new(len: usize, offset: impl Fn(usize) -> usize + 'a) -> Axis<'a> {
        Axis { len, offset: Box::new(offset) }
    }

    /// Makes the dimensions of a result whose index `k` along dimension `d` is index `at(d, k)` of an array with the
    /// dimensions `dims`.
    pub fn mapped(dims: &Dims, extents: &[usize], at: &'a dyn Fn(usize, usize) -> usize) -> Vec<Axis<'a>> {
        let mut stride = 1usize;
        let axis = |(d, &len): (usize, &usize)| {
            let own = stride;
            stride = stride.saturating_mul(dims.extent(d));
            Axis::new(len, move |k| at(d, k) * own)
        };
        extents.iter().enumerate().map(axis).collect()
    }

    /// Makes the dimensions of a permuted array: dimension `d` of the result is dimension `perm[d]` of an array with
    /// the dimensions `dims`. `perm` names each dimension once, and may go beyond the rank.
    pub fn permuted(dims: &Dims, perm: &[usize]) -> Vec<Axis<'a>> {
        let stride = |p: usize| -> usize { (0..p).map(|d| dims.extent(d)).product() };
        perm.iter()
            .map(|&p| {
                let stride = stride(p);
                Axis::new(dims.extent(p), move |k| k * stride)
            })
            .collect()
    }
}

/// Returns the elements at these places, in order. Places are computed one by one, and are not stored.
fn along<T: Clone>(v: &[T], axes: &[Axis<'_>]) -> Vec<T> {
    let n = axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.len));
    if n == 0 {
        return Vec::new();
    }
    let base: usize = axes.iter().filter(|axis| axis.len == 1).map(|axis| (axis.offset)(0)).sum();
    let axes: Vec<&Axis<'_>> = axes.iter().filter(|axis| axis.len > 1).collect();
    let Some((inner, outer)) = axes.split_first() else { return vec![v[base].clone()] };
    let mut out = Vec::with_capacity(n);
    let mut index = vec![0usize; outer.len()];
    loop {
        let from = outer.iter().zip(&index).fold(base, |at, (axis, &k)| at + (axis.offset)(k));
        out.extend((0..inner.len).map(|k| v[from + (inner.offset)(k)].clone()));
        let mut d = 0;
        loop {
            let Some(axis) = outer.get(d) else { return out };
            index[d] += 1;
            if index[d] < axis.len {
                break;
            }
            index[d] = 0;
            d += 1;
        }
    }
}

/// The places of an array whose elements form a result, in order.
trait Places {
    /// The elements at these places.
    fn read<T: Clone>(&self, elements: &[T]) -> Vec<T>;
}

impl Places for [usize] {
    fn read<T: Clone>(&self, elements: &[T]) -> Vec<T> {
        self.iter().map(|&i| elements[i].clone()).collect()
    }
}

impl Places for [Axis<'_>] {
    fn read<T: Clone>(&self, elements: &[T]) -> Vec<T> {
        along(elements, self)
    }
}

/// Returns the elements of a host array, cell array or struct array along these dimensions; `None` for values without
/// elements in host memory.
pub fn pick_along(value: &Value, dims: Dims, axes: &[Axis<'_>]) -> Option<Value> {
    picked(value, dims, axes)
}

/// Returns the elements of a host array, cell array or struct array at these positions, with new dimensions; `None` for
/// values without elements in host memory.
pub fn pick(value: &Value, dims: Dims, positions: &[usize]) -> Option<Value> {
    picked(value, dims, positions)
}

fn picked<P: Places + ?Sized>(value: &Value, dims: Dims, places: &P) -> Option<Value> {
    let n = dims.elements();
    Some(match value {
        Value::Tensor(t) => {
            let mut picked = Tensor::new(dims, map_data!(&*t.data, v => places.read(v)));
            picked.double_quoted = t.double_quoted;
            // An empty array is not complex.
            if picked.is_empty() { Value::tensor(picked) } else { Value::tensor_as_is(picked) }
        }
        Value::Num(x) => Value::tensor_as_is(Tensor::new(dims, Data::F64(vec![*x; n]))),
        Value::Bool(x) => Value::tensor_as_is(Tensor::new(dims, Data::Bool(vec![*x; n]))),
        Value::Cell(c) => Value::Cell(Arc::new(CellArray::new(dims, places.read(&c.items)))),
        Value::Struct(s) => Value::Struct(Arc::new(StructArray {
            dims,
            fields: s.fields.iter().map(|(k, v)| (k.clone(), places.read(v))).collect(),
            class: s.class,
            cleanup: s.cleanup.clone(),
        })),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_number_the_elements_of_the_result() {
        let lanes = Lanes::new(&Dims::new(&[2, 3, 2]), 1);
        assert_eq!((lanes.len, lanes.stride, lanes.count), (3, 2, 4));
        assert_eq!(lanes.positions(3).collect::<Vec<_>>(), [7, 9, 11]);
        let beyond = Lanes::new(&Dims::new(&[2, 3]), 4);
        assert_eq!((beyond.len, beyond.count, beyond.start(5)), (1, 6, 5));
    }

    #[test]
    fn several_dimensions_become_one_lane_in_column_major_order() {
        let t = Tensor::new(Dims::new(&[2, 2, 2]), Data::F64((0..8).map(f64::from).collect()));
        let (joined, d, out) = joined(&t, &[2, 1]);
        assert_eq!((d, &out[..]), (0, &[2, 1][..]));
        assert_eq!(joined.data.to_f64(), [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]);
    }
}
