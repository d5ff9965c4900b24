//! Folding: ops on tiny known values are computed when they are recorded, and are never sent to the ring.
//!
//! In: an op, known arguments, the result's dtype and shape. Out: the result's elements, or `None` for ops that are
//! left to the ring (random numbers, sorts, products, assignments).
//! Must hold: FOLD-1: the result is that of a device, within the op's stated bound. Elementwise ops are computed by the
//! same functions as on the host device.

use super::fold_reduce;
use crate::graph::rules::linspace_step;
use crate::graph::{DType, ElementOp, Meta, Op, Scalar, Shape, View};
use crate::graph::{mixed, wide};
use crate::host_buffer::HostBuffer;
use crate::kernels::element::host::{self, HostArg};
use smallvec::SmallVec;
use std::sync::Arc;

/// An argument whose elements are known.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    /// A number.
    Number(Scalar),
    /// Elements with their shape.
    Buffer(&'a HostBuffer, &'a Shape),
}

impl Known<'_> {
    /// The argument's extent in a dimension.
    pub fn dim(&self, d: usize) -> usize {
        match self {
            Known::Number(_) => 1,
            Known::Buffer(_, shape) => shape.dim(d),
        }
    }

    /// The element at a linear index.
    pub fn linear(&self, index: usize) -> Scalar {
        match self {
            Known::Number(n) => *n,
            Known::Buffer(data, _) => data.scalar(index),
        }
    }

    /// The element at coordinates; extents of 1 expand.
    pub fn at(&self, coords: &[usize]) -> Scalar {
        match self {
            Known::Number(n) => *n,
            Known::Buffer(data, shape) => {
                let mut index = 0;
                let mut stride = 1;
                for (d, &extent) in shape.dims().iter().enumerate() {
                    if extent != 1 {
                        index += coords.get(d).copied().unwrap_or(0) * stride;
                    }
                    stride *= extent;
                }
                data.scalar(index)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Known::Number(_) => 1,
            Known::Buffer(data, _) => data.len(),
        }
    }
}

/// The coordinates of a position.
pub(crate) type Coords = SmallVec<[usize; 4]>;

/// A buffer of `meta`. `element` returns each element for its linear index and coordinates.
pub(crate) fn build(meta: &Meta, mut element: impl FnMut(usize, &[usize]) -> Scalar) -> HostBuffer {
    let mut out = HostBuffer::zeroed(meta.dtype, meta.elements());
    let width = meta.dtype.bytes();
    let mut coords: Coords = SmallVec::from_elem(0, meta.shape.rank());
    let bytes = out.bytes_mut().expect("BUF-2: a fresh buffer is owned");
    for (i, slot) in bytes.chunks_exact_mut(width).enumerate() {
        let value = element(i, &coords);
        debug_assert_eq!(value.dtype(), meta.dtype);
        slot.copy_from_slice(&value.bits().to_le_bytes()[..width]);
        for (c, &extent) in coords.iter_mut().zip(meta.shape.dims()) {
            *c += 1;
            if *c < extent {
                break;
            }
            *c = 0;
        }
    }
    out
}

/// The elements of an op's result; `None` if this module does not compute the op.
pub(crate) fn evaluate(op: &Op, args: &[Known<'_>], meta: &Meta) -> Option<HostBuffer> {
    let dtype = meta.dtype;
    Some(match op {
        Op::Apply(ElementOp::Cast) => build(meta, |_, c| args[0].at(c).cast(dtype)),
        Op::Apply(op) => fold_apply(*op, args, meta),
        Op::View(view) => fold_view(view, &args[0], meta),
        Op::Fill => build(meta, |_, _| args[0].linear(0)),
        Op::Iota => build(meta, |i, _| iota(dtype, args[0].linear(0), args[1].linear(0), i)),
        Op::Linspace => {
            let (first, last, n) = (args[0].linear(0), args[1].linear(0), meta.elements());
            build(meta, |i, _| linspace(first, last, i, n))
        }
        Op::Eye => build(meta, |_, c| number(dtype, (c[0] == c[1]) as u8 as f64)),
        Op::Triangle { upper, diagonal } => build(meta, |_, c| {
            let above = c[1] as i128 - c[0] as i128;
            let keep = if *upper { above >= *diagonal as i128 } else { above <= *diagonal as i128 };
            if keep { args[0].at(c) } else { number(dtype, 0.0) }
        }),
        Op::MakeDiagonal(k) => build(meta, |_, c| match c[1] as i128 - c[0] as i128 == *k as i128 {
            true => args[0].linear(c[0].min(c[1])),
            false => number(dtype, 0.0),
        }),
        Op::Cat { dim } => build(meta, |_, c| {
            let mut c: Coords = SmallVec::from_slice(c);
            c.resize(c.len().max(*dim as usize + 1), 0);
            let mut part = 0;
            while c[*dim as usize] >= args[part].dim(*dim as usize) {
                c[*dim as usize] -= args[part].dim(*dim as usize);
                part += 1;
            }
            args[part].at(&c)
        }),
        Op::Take { dim } => {
            let index =
                |i: usize, extent: usize| (args[1].linear(i).as_f64().max(0.0) as usize).min(extent.saturating_sub(1));
            match dim {
                None => build(meta, |i, _| args[0].linear(index(i, args[0].len()))),
                Some(dim) => build(meta, |_, c| {
                    let d = *dim as usize;
                    let mut c: Coords = SmallVec::from_slice(c);
                    c.resize(c.len().max(d + 1), 0);
                    c[d] = index(c[d], args[0].dim(d));
                    args[0].at(&c)
                }),
            }
        }
        Op::Reduce { op, dims, nan } => fold_reduce::reduce(*op, *dims, *nan, args, meta)?,
        Op::Scan { op, dim, nan, reverse } => fold_reduce::scan(*op, *dim as usize, *nan, *reverse, &args[0], meta),
        Op::Source(_)
        | Op::Random { .. }
        | Op::TakeAlong { .. }
        | Op::AssignSlice(_)
        | Op::AssignIndex { .. }
        | Op::ArgSort { .. }
        | Op::MatMul
        | Op::Linear(_)
        | Op::Fourier(_)
        | Op::Ensure { .. }
        | Op::Compact => return None,
    })
}

/// Expands the arguments to the result's elements, and calls the host device's loop once.
fn fold_apply(op: ElementOp, args: &[Known<'_>], meta: &Meta) -> HostBuffer {
    let n = meta.elements();
    let of = |arg: &Known<'_>| match arg {
        Known::Number(number) => (number.dtype(), Some(*number)),
        Known::Buffer(data, _) => (data.dtype(), None),
    };
    if let Some(folded) = fold_wide(op, args, meta) {
        return folded;
    }
    let mixed = mixed::computes_in(op, args.iter().map(of), false);
    let output = match mixed {
        Some(dtype) if meta.dtype != DType::Bool => dtype,
        _ => meta.dtype,
    };
    let mut out = HostBuffer::zeroed(output, n);
    let spread: SmallVec<[HostBuffer; 3]> = args
        .iter()
        .map(|arg| {
            let dtype = mixed.unwrap_or(of(arg).0);
            build(&Meta { dtype, shape: meta.shape.clone() }, |_, c| arg.at(c).cast(dtype))
        })
        .collect();
    let blocks: SmallVec<[HostArg<'_>; 3]> = spread.iter().map(|b| HostArg::Block(b.bytes())).collect();
    // The last argument has the dtype in which the op computes. The first may be the mask of `Select`, which has
    // another one.
    let input = spread.last().map_or(meta.dtype, HostBuffer::dtype);
    host::apply(op, input, output, &blocks, out.bytes_mut().expect("BUF-2: a fresh buffer is owned"), n);
    if output == meta.dtype { out } else { build(meta, |i, _| out.scalar(i).cast(meta.dtype)) }
}

/// An op on an `i64` beside a number of f64.
fn fold_wide(op: ElementOp, args: &[Known<'_>], meta: &Meta) -> Option<HostBuffer> {
    let [a, b] = args else { return None };
    let (x, number, reversed) = match (a, b) {
        (x, Known::Number(Scalar::F64(number))) => (x, *number, false),
        (Known::Number(Scalar::F64(number)), x) => (x, *number, true),
        _ => return None,
    };
    if !wide::takes(op) || !matches!(x, Known::Buffer(data, _) if data.dtype() == DType::I64) {
        return None;
    }
    let spread = build(&Meta { dtype: DType::I64, shape: meta.shape.clone() }, |_, c| x.at(c));
    let mut folding = Folding { elements: meta.elements() };
    let result = wide::apply(&mut folding, op, &spread.shared(), number, reversed);
    Some(build(meta, |i, _| result.scalar(i)))
}

/// Computes the ops of `graph::wide` at once.
struct Folding {
    elements: usize,
}

impl Folding {
    fn run(&self, op: ElementOp, input: DType, output: DType, args: &[HostArg<'_>]) -> HostBuffer {
        let mut out = HostBuffer::zeroed(output, self.elements);
        host::apply(op, input, output, args, out.bytes_mut().expect("BUF-2: a fresh buffer is owned"), self.elements);
        out
    }
}

impl wide::Emit for Folding {
    type Value = Arc<HostBuffer>;

    fn op(&mut self, op: ElementOp, args: &[Arc<HostBuffer>]) -> Arc<HostBuffer> {
        let blocks: SmallVec<[HostArg<'_>; 3]> = args.iter().map(|b| HostArg::Block(b.bytes())).collect();
        let input = args.last().map_or(DType::I64, |last| last.dtype());
        self.run(op, input, wide::output(op, input), &blocks).shared()
    }

    fn number(&mut self, number: i64) -> Arc<HostBuffer> {
        HostBuffer::from_vec(vec![number; self.elements]).shared()
    }

    fn float(&mut self, op: ElementOp, x: &Arc<HostBuffer>, number: f64, reversed: bool) -> Option<Arc<HostBuffer>> {
        let x = self.run(ElementOp::Cast, DType::I64, DType::F64, &[HostArg::Block(x.bytes())]);
        let (x, number) = (HostArg::Block(x.bytes()), HostArg::Scalar(Scalar::F64(number)));
        let result = self.run(op, DType::F64, DType::F64, &if reversed { [number, x] } else { [x, number] });
        Some(self.run(ElementOp::Cast, DType::F64, DType::I64, &[HostArg::Block(result.bytes())]).shared())
    }

    fn may_depend_on_number(&self) -> bool {
        true
    }
}

/// A number in a dtype.
pub(crate) fn number(dtype: DType, value: f64) -> Scalar {
    Scalar::F64(value).cast(dtype)
}

pub(crate) fn iota(dtype: DType, first: Scalar, step: Scalar, i: usize) -> Scalar {
    match (first, step) {
        (Scalar::F32(first), Scalar::F32(step)) => Scalar::F32(first + step * i as f32),
        (Scalar::F64(first), Scalar::F64(step)) => Scalar::F64(first + step * i as f64),
        (Scalar::I64(first), Scalar::I64(step)) => Scalar::I64(first.saturating_add(step.saturating_mul(i as i64))),
        (first, step) => number(dtype, first.as_f64() + step.as_f64() * i as f64),
    }
}

fn linspace(first: Scalar, last: Scalar, i: usize, n: usize) -> Scalar {
    if i + 1 >= n {
        return last;
    }
    if i == 0 {
        return first;
    }
    let (from, to) = (first.as_f64(), last.as_f64());
    let (part, span) = (i as f64 / (n - 1) as f64, to - from);
    // If the span overflows, either both ends are finite, or an end is infinite.
    let distance = if span.is_infinite() { linspace_step(from, to, n) * i as f64 } else { span * part };
    number(first.dtype(), from + distance)
}

fn fold_view(view: &View, operand: &Known<'_>, meta: &Meta) -> HostBuffer {
    let mut from: Coords = SmallVec::new();
    match view {
        View::Reshape => build(meta, |i, _| operand.linear(i)),
        View::Broadcast => build(meta, |_, c| operand.at(c)),
        View::Permute(perm) => build(meta, |_, c| {
            from.clear();
            from.resize(perm.len(), 0);
            for (d, &p) in perm.iter().enumerate() {
                from[p as usize] = c.get(d).copied().unwrap_or(0);
            }
            operand.at(&from)
        }),
        View::Slice(dims) => build(meta, |_, c| {
            from.clear();
            for d in 0..dims.len().max(c.len()) {
                let c = c.get(d).copied().unwrap_or(0);
                from.push(dims.get(d).map_or(c, |s| (s.start as isize + s.step * c as isize) as usize));
            }
            operand.at(&from)
        }),
        View::Repmat => build(meta, |_, c| {
            from.clear();
            from.extend(c.iter().enumerate().map(|(d, &c)| c % operand.dim(d).max(1)));
            operand.at(&from)
        }),
        View::CircShift(shifts) => build(meta, |_, c| {
            from.clear();
            from.extend(c.iter().enumerate().map(|(d, &c)| {
                let n = operand.dim(d).max(1);
                (c + n - shifts.get(d).copied().unwrap_or(0)) % n
            }));
            operand.at(&from)
        }),
        View::Diagonal(k) => build(meta, |i, _| {
            let (down, right) = if *k < 0 { (k.unsigned_abs() as usize, 0) } else { (0, *k as usize) };
            operand.at(&[i + down, i + right])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::SliceDim;

    fn meta(dtype: DType, dims: &[usize]) -> Meta {
        Meta { dtype, shape: Shape::new(dims).unwrap() }
    }

    fn view(view: View, data: &[f64], from: &[usize], to: &[usize]) -> Vec<f64> {
        let buffer = HostBuffer::from_slice(data);
        let shape = Shape::new(from).unwrap();
        let out = evaluate(&Op::View(view), &[Known::Buffer(&buffer, &shape)], &meta(DType::F64, to)).unwrap();
        out.as_slice::<f64>().unwrap().to_vec()
    }

    #[test]
    fn views_of_tiny_values_move_elements_as_the_ops_say() {
        let m = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let perm = View::Permute([1, 0].into());
        assert_eq!(view(perm, &m, &[2, 3], &[3, 2]), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let flip =
            View::Slice([SliceDim { start: 1, step: -1, len: 2 }, SliceDim { start: 0, step: 2, len: 2 }].into());
        assert_eq!(view(flip, &m, &[2, 3], &[2, 2]), [2.0, 1.0, 6.0, 5.0]);
        let shift = View::CircShift([0, 1].into());
        assert_eq!(view(shift, &m, &[2, 3], &[2, 3]), [5.0, 6.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(view(View::Repmat, &[1.0, 2.0], &[2, 1], &[4, 1]), [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(view(View::Diagonal(1), &m, &[2, 3], &[2, 1]), [3.0, 6.0]);
        assert_eq!(view(View::Diagonal(-1), &m, &[2, 3], &[1, 1]), [2.0]);
        assert_eq!(view(View::Broadcast, &[1.0, 2.0], &[1, 2], &[2, 2]), [1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn joining_and_taking_tiny_values_reads_the_right_parts() {
        let (a, b) = (HostBuffer::from_slice(&[1i32, 2]), HostBuffer::from_slice(&[3i32, 4, 5, 6]));
        let (sa, sb) = (Shape::new(&[2, 1]).unwrap(), Shape::new(&[2, 2]).unwrap());
        let args = [Known::Buffer(&a, &sa), Known::Buffer(&b, &sb)];
        let out = evaluate(&Op::Cat { dim: 1 }, &args, &meta(DType::I32, &[2, 3])).unwrap();
        assert_eq!(out.as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
        let index = HostBuffer::from_slice(&[1u32, 1, 0]);
        let si = Shape::new(&[3, 1]).unwrap();
        let args = [Known::Buffer(&b, &sb), Known::Buffer(&index, &si)];
        let out = evaluate(&Op::Take { dim: Some(0) }, &args, &meta(DType::I32, &[3, 2])).unwrap();
        assert_eq!(out.as_slice::<i32>().unwrap(), [4, 4, 3, 6, 6, 5]);
    }

    #[test]
    fn linspace_ends_exactly() {
        let args = [Known::Number(Scalar::F64(0.1)), Known::Number(Scalar::F64(0.7))];
        let out = evaluate(&Op::Linspace, &args, &meta(DType::F64, &[1, 3])).unwrap();
        let out = out.as_slice::<f64>().unwrap();
        assert_eq!([out[0], out[2]], [0.1, 0.7]);
        assert!((out[1] - 0.4).abs() < 1e-15);
        let ends = |from: f64, to: f64, n: usize| {
            let args = [Known::Number(Scalar::F64(from)), Known::Number(Scalar::F64(to))];
            let out = evaluate(&Op::Linspace, &args, &meta(DType::F64, &[1, n])).unwrap();
            out.as_slice::<f64>().unwrap().to_vec()
        };
        let wide = ends(-f64::MAX, f64::MAX, 5);
        assert_eq!((wide[0], wide[2], wide[4]), (-f64::MAX, 0.0, f64::MAX));
        assert_eq!(ends(0.0, f64::INFINITY, 3), [0.0, f64::INFINITY, f64::INFINITY]);
        assert_eq!(ends(f64::NEG_INFINITY, 0.0, 2), [f64::NEG_INFINITY, 0.0]);
        assert_eq!(ends(2.0, 3.0, 1), [3.0]);
    }
}
