//! Records ops for programs of several ops, such as the rules of gradients and linear algebra. They are ordinary ops of
//! one session, recorded at the source line that the caller gives.
//!
//! In: arrays without faults. Out: arrays without faults, or the error of the op that could not be recorded.

use crate::array::handle::Array;
use crate::array::operand::Operand;
use crate::array::record::{At, Input, apply, cast_in, node};
use crate::array::reduce::products_dtype;
use crate::array::structure::{join, matmul, transposed_order, whole, zeros};
use crate::array::tape::Home;
use crate::array::watch::{Pause, noted_as};
use crate::error::Result;
use crate::graph::rules::{self, has_dim};
use crate::graph::{DType, DimSet, ElementOp, Meta, Nan, Op, ReduceOp, Scalar, ScanOp, Shape, SliceDim, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// Records ops of one session at one source line.
#[derive(Clone, Copy)]
pub(in crate::array) struct Recorder<'a> {
    pub home: &'a Arc<Home>,
    pub at: At,
}

impl Recorder<'_> {
    /// Records the ops of `record` as constants: no watch that exists already follows them.
    pub fn constant(&self, record: impl FnOnce() -> Result<Array>) -> Result<Array> {
        let _pause = Pause::all();
        record()
    }

    /// An elementwise op.
    pub fn apply(&self, op: ElementOp, operands: &mut [Operand<'_>]) -> Result<Array> {
        apply(op, operands, self.at).checked()
    }

    /// An elementwise op of two operands.
    pub fn binary<'b>(&self, op: ElementOp, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Result<Array> {
        self.apply(op, &mut [a.into(), b.into()])
    }

    pub fn add<'b>(&self, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Result<Array> {
        self.binary(ElementOp::Add, a, b)
    }

    pub fn sub<'b>(&self, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Result<Array> {
        self.binary(ElementOp::Sub, a, b)
    }

    pub fn mul<'b>(&self, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Result<Array> {
        self.binary(ElementOp::Mul, a, b)
    }

    pub fn div<'b>(&self, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Result<Array> {
        self.binary(ElementOp::Div, a, b)
    }

    /// The array times a number of its dtype.
    pub fn scaled(&self, array: &Array, factor: f64) -> Result<Array> {
        self.mul(array, self.number(array.dtype()?, factor))
    }

    /// `yes` where the mask is true, `no` elsewhere.
    pub fn select<'b>(
        &self,
        mask: &'b Array,
        yes: impl Into<Operand<'b>>,
        no: impl Into<Operand<'b>>,
    ) -> Result<Array> {
        self.apply(ElementOp::Select, &mut [mask.into(), yes.into(), no.into()])
    }

    /// Whether elements are NaN.
    pub fn is_nan(&self, array: &Array) -> Result<Array> {
        self.apply(ElementOp::IsNan, &mut [array.into()])
    }

    /// A number, cast to the dtype, so that strict promotion has nothing to refuse.
    pub fn number(&self, dtype: DType, number: f64) -> Operand<'static> {
        Scalar::F64(number).cast(dtype).as_f64().into()
    }

    /// Any op, by its attributes.
    pub fn op(&self, op: Op, inputs: &[&Array], meta: Meta) -> Result<Array> {
        let inputs: SmallVec<[Input<'_>; 4]> = inputs.iter().map(|array| Input::Array(array)).collect();
        node(self.home, op, &inputs, meta, self.at).checked()
    }

    /// An array whose elements are all this number.
    pub fn full(&self, meta: Meta, number: f64) -> Result<Array> {
        let number = Scalar::F64(number).cast(meta.dtype);
        node(self.home, Op::Fill, &[Input::Number(number)], meta, self.at).checked()
    }

    /// Zeros.
    pub fn zeros(&self, meta: Meta) -> Result<Array> {
        zeros(self.home, meta, self.at).checked()
    }

    /// 0, 1, 2 … (u32) under a shape.
    pub fn positions(&self, shape: Shape) -> Result<Array> {
        let meta = Meta { dtype: DType::U32, shape };
        let inputs = [Input::Number(Scalar::U32(0)), Input::Number(Scalar::U32(1))];
        node(self.home, Op::Iota, &inputs, meta, self.at).checked()
    }

    /// The positions along some dimensions (u32), counted in memory order over these, with extents of 1 elsewhere.
    pub fn positions_along(&self, shape: &Shape, dims: DimSet) -> Result<Array> {
        let extent = |d: usize| if has_dim(dims, d) { shape.dim(d) } else { 1 };
        let extents: SmallVec<[usize; 4]> = (0..shape.rank()).map(extent).collect();
        self.positions(Shape::new(&extents)?)
    }

    pub fn cast(&self, array: &Array, dtype: DType) -> Result<Array> {
        cast_in(self.home, array, dtype, self.at).checked()
    }

    pub fn view(&self, array: &Array, view: View, shape: Shape) -> Result<Array> {
        array.view(self.home, view, shape, self.at).checked()
    }

    pub fn reshape(&self, array: &Array, shape: Shape) -> Result<Array> {
        self.view(array, View::Reshape, shape)
    }

    /// The array expanded to a shape.
    pub fn expand(&self, array: &Array, shape: &Shape) -> Result<Array> {
        if array.shape()? == shape {
            return Ok(array.clone());
        }
        // If a number is known, it is not passed to kernels as an operand.
        match array.0.host.as_deref().filter(|data| data.len() == 1) {
            Some(data) => {
                let meta = Meta { dtype: data.dtype(), shape: shape.clone() };
                let filled = node(self.home, Op::Fill, &[Input::Number(data.scalar(0))], meta, self.at).checked()?;
                // The array still depends on the number, and another watch may follow it.
                Ok(noted_as(self.home, Op::View(View::Broadcast), &[array], filled, self.at))
            }
            None => self.view(array, View::Broadcast, shape.clone()),
        }
    }

    /// The array in the dtype and shape of another value, to which it expands.
    pub fn alike(&self, array: &Array, value: &Meta) -> Result<Array> {
        self.expand(&self.cast(array, value.dtype)?, &value.shape)
    }

    /// `share`, added to `sum` if there is one.
    pub fn added(&self, sum: Option<Array>, share: Array) -> Result<Array> {
        match sum {
            None => Ok(share),
            Some(sum) => self.add(&sum, &share),
        }
    }

    /// Sums along the dimensions in which `shape` has one element and the array has more: the adjoint of expanding.
    pub fn sum_to(&self, array: &Array, shape: &Shape) -> Result<Array> {
        let own = array.shape()?;
        let dims = (0..own.rank()).filter(|&d| own.dim(d) != shape.dim(d)).fold(0, |set, d| set | 1 << d);
        self.reduce(array, ReduceOp::Sum, dims, Nan::Include)
    }

    /// A reduction over dimensions.
    pub fn reduce(&self, array: &Array, op: ReduceOp, dims: DimSet, nan: Nan) -> Result<Array> {
        if dims == 0 {
            return Ok(array.clone());
        }
        let shape = array.shape()?;
        let dims: SmallVec<[usize; 4]> = (0..shape.rank()).filter(|&d| has_dim(dims, d)).collect();
        crate::array::reduce::reduce(array, op, &dims[..], nan, self.at).checked()
    }

    /// A scan along a dimension, with NaN included.
    pub fn scan(&self, array: &Array, op: ScanOp, dim: usize, reverse: bool) -> Result<Array> {
        let meta = array.meta()?.clone();
        match meta.shape.dim(dim) {
            0 | 1 => Ok(array.clone()),
            _ => self.op(Op::Scan { op, dim: dim as u8, nan: Nan::Include, reverse }, &[array], meta),
        }
    }

    /// A permutation of dimensions.
    pub fn permute(&self, array: &Array, order: &[usize]) -> Result<Array> {
        let (shape, order) = rules::permuted(array.shape()?, order)?;
        self.view(array, View::Permute(order.as_slice().into()), shape)
    }

    /// The array whose permutation by `order` is `array`.
    pub fn permute_back(&self, array: &Array, order: &[usize]) -> Result<Array> {
        let mut back: SmallVec<[usize; 4]> = SmallVec::from_elem(0, order.len());
        for (to, &from) in order.iter().enumerate() {
            back[from] = to;
        }
        self.permute(array, &back)
    }

    /// The first two dimensions exchanged.
    pub fn transpose(&self, array: &Array) -> Result<Array> {
        self.permute(array, &transposed_order(array.shape()?))
    }

    /// Two arrays in the float dtype in which their products are summed, by the op `name`.
    pub fn factors(&self, name: &'static str, [a, b]: [&Array; 2], metas: &[&Meta]) -> Result<[Array; 2]> {
        let dtype = products_dtype(self.home, name, metas)?;
        Ok([self.cast(a, dtype)?, self.cast(b, dtype)?])
    }

    pub fn matmul(&self, a: &Array, b: &Array) -> Result<Array> {
        matmul(a, b, self.at).checked()
    }

    /// The positions (u32) of the sorted elements of each line; equal ones keep their order.
    pub fn order(&self, array: &Array, dim: usize, descending: bool) -> Result<Array> {
        let meta = Meta { dtype: DType::U32, shape: array.shape()?.clone() };
        match meta.shape.dim(dim) {
            0 | 1 => self.zeros(meta),
            _ => self.op(Op::ArgSort { dim: dim as u8, descending }, &[array], meta),
        }
    }

    pub fn slice(&self, array: &Array, dims: &[SliceDim]) -> Result<Array> {
        array.sliced(self.home, SmallVec::from_slice(dims), self.at)
    }

    /// `len` elements along a dimension, from `start` on.
    pub fn part(&self, array: &Array, dim: usize, start: usize, len: usize) -> Result<Array> {
        array.slice_dim(self.home, dim, start, len, self.at)
    }

    /// Arrays joined along a dimension; those without elements are left out.
    pub fn join(&self, dim: usize, parts: &[&Array]) -> Result<Array> {
        let shapes = parts.iter().map(|part| part.shape()).collect::<Result<SmallVec<[&Shape; 4]>>>()?;
        let meta = Meta { dtype: parts[0].dtype()?, shape: rules::joined(&shapes, dim)? };
        let filled = parts.iter().zip(&shapes).filter(|(_, shape)| shape.elements() > 0);
        let filled = filled.map(|(part, _)| (*part).clone()).collect();
        join(self.home, dim, filled, meta, self.at)?.checked()
    }

    /// The array with zeros before and behind it along a dimension.
    pub fn padded(&self, array: &Array, dim: usize, before: usize, behind: usize) -> Result<Array> {
        let own = array.meta()?;
        if before == 0 && behind == 0 {
            return Ok(array.clone());
        }
        let zeros = |count: usize| {
            let shape = own.shape.with_dim(dim, count)?;
            self.zeros(Meta { dtype: own.dtype, shape })
        };
        self.join(dim, &[&zeros(before)?, array, &zeros(behind)?])
    }

    /// The first `extent` elements along a dimension, followed by zeros if there are fewer.
    pub fn resized(&self, array: &Array, dim: usize, extent: usize) -> Result<Array> {
        match array.shape()?.dim(dim) {
            own if own > extent => self.part(array, dim, 0, extent),
            own => self.padded(array, dim, 0, extent - own),
        }
    }

    /// Zeros of a shape, with the array written to a slice.
    pub fn placed(&self, array: &Array, shape: &Shape, slice: &[SliceDim]) -> Result<Array> {
        let meta = Meta { dtype: array.dtype()?, shape: shape.clone() };
        if slice.iter().any(|dim| dim.step != 1 && dim.step != -1) {
            // If the slice has steps, zeros are overwritten.
            return self.op(Op::AssignSlice(slice.into()), &[&self.zeros(meta.clone())?, array], meta);
        }
        let mut placed = array.clone();
        let backwards = slice.iter().any(|dim| dim.step < 0 && dim.len > 1);
        if backwards {
            let mut flipped = whole(array.shape()?);
            for (own, dim) in flipped.iter_mut().zip(slice) {
                if dim.step < 0 && dim.len > 1 {
                    *own = SliceDim { start: dim.len - 1, step: -1, len: dim.len };
                }
            }
            placed = self.slice(&placed, &flipped)?;
        }
        for (d, dim) in slice.iter().enumerate() {
            let first = if dim.step < 0 { dim.start + 1 - dim.len } else { dim.start };
            placed = self.padded(&placed, d, first, shape.dim(d) - first - dim.len)?;
        }
        // The slice may name fewer axes than the shape has.
        self.reshape(&placed, shape.clone())
    }

    /// The elements at an index (a column of integers) along a dimension.
    pub fn taken(&self, array: &Array, dim: usize, index: &Array) -> Result<Array> {
        let own = array.meta()?;
        let shape = own.shape.with_dim(dim, index.elements()?)?;
        let meta = Meta { dtype: own.dtype, shape };
        self.op(Op::Take { dim: Some(dim as u8) }, &[array, index], meta)
    }
}
