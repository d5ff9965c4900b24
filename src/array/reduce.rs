//! Reductions and scans of [`Array`].
//!
//! Must hold: reduced dimensions stay, with an extent of 1. Integers and bools are summed in f64 (except by
//! [`Array::sum_native`]). A reduction over dimensions of one element, or of an empty operand, reaches no tape: it is
//! replaced here by ops with the same result.

use super::dims::Dims;
use super::fold_reduce::identity;
use super::handle::Array;
use super::operand::Operand;
use super::record::{At, Input, apply, cast_in, derive, float_dtype, node};
use super::recorder::Recorder;
use super::strict;
use super::tape::Home;
use super::watch::noted_as;
use super::wide::summed;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::rules::{effective_dims, reduced};
use crate::graph::{DType, DimSet, ElementOp, Meta, Nan, Op, ReduceOp, Scalar, ScanOp, Yields};
use std::panic::Location;
use std::sync::Arc;

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident, $nan_name:ident => $op:expr, $nan:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, dims: impl Dims) -> Array {
                reduce(self, $op, dims, Nan::$nan, Location::caller())
            }

            #[doc = concat!("As [`Array::", stringify!($name), "`], over the elements that are not NaN.")]
            #[track_caller]
            pub fn $nan_name(&self, dims: impl Dims) -> Array {
                reduce(self, $op, dims, Nan::Omit, Location::caller())
            }
        )*}
    };
}

reductions! {
    /// The sum; 0 without elements. Integers and bools give f64.
    sum, nan_sum => ReduceOp::Sum, Include;
    /// The product; 1 without elements, 0 if all elements are finite and one is 0. Integers and bools give f64. It is
    /// computed as products of parts: if one of them underflows to zero and another overflows, it is NaN.
    prod, nan_prod => ReduceOp::Prod, Include;
    /// The mean; NaN without elements. Integers and bools give f64.
    mean, nan_mean => ReduceOp::Mean, Include;
    /// The sample variance (divided by `n - 1`); 0 of one element.
    var, nan_var => ReduceOp::Var { ddof: 1 }, Include;
    /// The sample standard deviation (of [`Array::var`]).
    std, nan_std => ReduceOp::Std { ddof: 1 }, Include;
    /// The population variance (divided by `n`).
    var_population, nan_var_population => ReduceOp::Var { ddof: 0 }, Include;
    /// The population standard deviation.
    std_population, nan_std_population => ReduceOp::Std { ddof: 0 }, Include;
    /// The least element; NaN is skipped (as in MATLAB). Without elements the result is a fault
    /// (`ErrorKind::Argument`), unless it is empty, too. [`Array::reduce`] has a form in which NaN wins.
    min_over, nan_min_over => ReduceOp::Min, Omit;
    /// The greatest element, as [`Array::min_over`]. [`Array::reduce`] has a form in which NaN wins.
    max_over, nan_max_over => ReduceOp::Max, Omit;
    /// The 0-based position (u32) of the least element, the first of equal ones; NaN is skipped. Over several
    /// dimensions, it is the position in column-major order over these. Without elements, as [`Array::min_over`].
    argmin, nan_argmin => ReduceOp::ArgMin, Omit;
    /// The 0-based position (u32) of the greatest element, as [`Array::argmin`].
    argmax, nan_argmax => ReduceOp::ArgMax, Omit;
    /// Whether any element is not zero (bool); NaN counts as not zero.
    any, nan_any => ReduceOp::Any, Include;
    /// Whether all elements are not zero (bool); true without elements.
    all, nan_all => ReduceOp::All, Include;
    /// The number of elements that are not zero (u32); NaN counts.
    count_nonzero, nan_count_nonzero => ReduceOp::CountNonzero, Include;
    /// The Euclidean norm, without overflow.
    norm, nan_norm => ReduceOp::Norm, Include;
    /// `log(sum(exp(x)))` without overflow, in one pass; -inf without elements. Integers and bools give f64.
    logsumexp, nan_logsumexp => ReduceOp::LogSumExp, Include;
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident, $nan_name:ident, $reverse_name:ident => $op:ident, $nan:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, dim: usize) -> Array {
                scan(self, ScanOp::$op, dim, Nan::$nan, false, Location::caller())
            }

            #[doc = concat!("As [`Array::", stringify!($name), "`], skipping NaN.")]
            #[track_caller]
            pub fn $nan_name(&self, dim: usize) -> Array {
                scan(self, ScanOp::$op, dim, Nan::Omit, false, Location::caller())
            }

            #[doc = concat!("As [`Array::", stringify!($name), "`], from the end.")]
            #[track_caller]
            pub fn $reverse_name(&self, dim: usize) -> Array {
                scan(self, ScanOp::$op, dim, Nan::$nan, true, Location::caller())
            }
        )*}
    };
}

scans! {
    /// The running sum along a dimension, in the array's dtype (f64 for bools). Integers saturate at each step.
    cumsum, nan_cumsum, cumsum_reverse => Sum, Include;
    /// The running product along a dimension, in the array's dtype (f64 for bools). Integers saturate at each step.
    cumprod, nan_cumprod, cumprod_reverse => Prod, Include;
    /// The running minimum along a dimension; NaN is skipped.
    cummin, nan_cummin, cummin_reverse => Min, Omit;
    /// The running maximum along a dimension; NaN is skipped.
    cummax, nan_cummax, cummax_reverse => Max, Omit;
}

impl Array {
    /// Any reduction, with the treatment of NaN as a value: `x.reduce(ReduceOp::Max, .., Nan::Include)`.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp, dims: impl Dims, nan: Nan) -> Array {
        reduce(self, op, dims, nan, Location::caller())
    }

    /// Any scan, with the treatment of NaN and the direction as values.
    #[track_caller]
    pub fn scan(&self, op: ScanOp, dim: usize, nan: Nan, reverse: bool) -> Array {
        scan(self, op, dim, nan, reverse, Location::caller())
    }

    /// The sum in the array's own dtype. For integers it is exact and saturates once, at the end; for bools it is
    /// [`Array::any`].
    #[track_caller]
    pub fn sum_native(&self, dims: impl Dims) -> Array {
        let at = Location::caller();
        derive(&[self], "sum", at, |home, metas| {
            let op = if metas[0].dtype == DType::Bool { ReduceOp::Any } else { ReduceOp::Sum };
            let dims = dims.set(&metas[0].shape)?;
            let (dtype, nothing) = (metas[0].dtype, metas[0].elements() == 0);
            let sum_of = |x: &Array, dtype| lower(home, &[x], op, dims, Nan::Include, dtype, at);
            let sum = |x: &Array| sum_of(x, DType::I64);
            if !dtype.is_integer() || nothing || effective_dims(&metas[0].shape, dims) == 0 {
                return sum_of(self, dtype);
            }
            if dtype != DType::I64 {
                // The sum of at most 2^31 elements below 2^32 does not overflow.
                return Ok(cast_in(home, &sum(&cast_in(home, self, DType::I64, at))?, dtype, at));
            }
            let carried = |x: &Array| sum(x).unwrap_or_else(|error| Array::faulty(home, error, "sum", at));
            summed(self, at, carried).checked()
        })
    }

    /// The sum of the products of two arrays of one shape.
    #[track_caller]
    pub fn dot(&self, other: &Array, dims: impl Dims) -> Array {
        dot(self, other, dims, Nan::Include, Location::caller())
    }

    /// As [`Array::dot`], over the pairs in which neither number is NaN.
    #[track_caller]
    pub fn nan_dot(&self, other: &Array, dims: impl Dims) -> Array {
        dot(self, other, dims, Nan::Omit, Location::caller())
    }

    /// The differences of neighbours along a dimension, whose extent decreases by one.
    #[track_caller]
    pub fn diff(&self, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self], "diff", at, |home, metas| {
            metas[0].shape.has_axis(dim)?;
            let extent = metas[0].shape.dim(dim);
            let later = self.slice_dim(home, dim, extent.min(1), extent.saturating_sub(1), at)?;
            let earlier = self.slice_dim(home, dim, 0, extent.saturating_sub(1), at)?;
            Ok(apply(ElementOp::Sub, &mut [later.into(), earlier.into()], at))
        })
    }
}

/// The float dtype in which products of arrays of these dtypes are summed, by the op `name`.
///
/// # Errors
/// `ErrorKind::DType` if the dtypes do not mix, or if promotion is strict and the float dtype does not hold one of
/// them.
pub(crate) fn products_dtype(home: &Home, name: &'static str, metas: &[&Meta]) -> Result<DType> {
    let types = metas.iter().map(|m| crate::graph::ArgType {
        dtype: if m.dtype == DType::Bool { DType::F64 } else { m.dtype },
        weak: false,
        scalar: m.shape.is_scalar(),
    });
    let types: smallvec::SmallVec<[_; 2]> = types.collect();
    // The error names this op, not the multiplication.
    let named = |error: Error| Error::new(error.kind(), error.message()).with_op(name);
    let result = ElementOp::Mul.signature(&types).map_err(named)?.result;
    let dtype = if result.is_float() { result } else { DType::F64 };
    metas.iter().try_for_each(|own| strict::converted(home, own.dtype, dtype))?;
    Ok(dtype)
}

fn dot(a: &Array, b: &Array, dims: impl Dims, nan: Nan, at: At) -> Array {
    derive(&[a, b], "dot", at, |home, metas| {
        if metas[0].shape != metas[1].shape {
            return Err(Error::new(
                ErrorKind::Shape,
                format!("the dot product of {} and {}: the shapes differ", metas[0].shape, metas[1].shape),
            ));
        }
        // Only floats hold NaN; arrays of other types have none.
        let nan = if metas.iter().any(|meta| meta.dtype.is_float()) { nan } else { Nan::Include };
        let [x, y] = Recorder { home, at }.factors("dot", [a, b], metas)?;
        lower(home, &[&x, &y], ReduceOp::Dot, dims.set(&metas[0].shape)?, nan, x.dtype()?, at)
    })
}

pub(super) fn reduce(array: &Array, op: ReduceOp, dims: impl Dims, nan: Nan, at: At) -> Array {
    let facts = op.facts();
    derive(&[array], facts.name, at, |home, metas| {
        let dtype = metas[0].dtype;
        let (operand, out) = match facts.yields {
            Yields::Float => {
                let float = float_dtype(home, dtype)?;
                (cast_in(home, array, float, at), float)
            }
            Yields::Same => (array.clone(), dtype),
            Yields::Count => (array.clone(), DType::U32),
            Yields::Truth => (array.clone(), DType::Bool),
        };
        if facts.operands == 2 {
            return Err(Error::new(ErrorKind::Argument, "a dot product takes two arrays: call dot() or nan_dot()"));
        }
        lower(home, &[&operand], op, dims.set(&metas[0].shape)?, nan, out, at)
    })
}

/// The node of a reduction, or the ops that replace it if nothing is reduced.
fn lower(
    home: &Arc<Home>,
    operands: &[&Array],
    op: ReduceOp,
    dims: DimSet,
    nan: Nan,
    dtype: DType,
    at: At,
) -> Result<Array> {
    let from = operands[0].meta()?;
    // Only floats hold NaN. For other dtypes both forms are the same, and share one plan.
    let nan = if from.dtype.is_float() { nan } else { Nan::Include };
    let dims = effective_dims(&from.shape, dims);
    let meta = Meta { dtype, shape: reduced(&from.shape, dims) };
    if dims == 0 {
        return Ok(of_one_element(operands, op, nan, dtype, at));
    }
    if from.elements() == 0 {
        let Some(value) = identity(op, nan, dtype) else {
            return match meta.elements() {
                0 => Ok(node(home, Op::Fill, &[Input::Number(Scalar::U32(0))], meta, at)),
                _ => Err(Error::new(ErrorKind::Argument, "an array without elements has no least or greatest element")),
            };
        };
        let value = node(home, Op::Fill, &[Input::Number(value)], meta, at);
        return Ok(noted_as(home, Op::Reduce { op, dims, nan }, operands, value, at));
    }
    let inputs: smallvec::SmallVec<[Input<'_>; 2]> = operands.iter().map(|a| Input::Array(a)).collect();
    Ok(node(home, Op::Reduce { op, dims, nan }, &inputs, meta, at))
}

/// A reduction of single elements, as elementwise ops.
fn of_one_element(operands: &[&Array], op: ReduceOp, nan: Nan, dtype: DType, at: At) -> Array {
    let x = operands[0];
    let el = |op: ElementOp, args: &mut [Operand<'_>]| apply(op, args, at);
    let is_nan = || el(ElementOp::IsNan, &mut [x.into()]);
    let replaced = |by: f64| match nan {
        Nan::Include => x.clone(),
        Nan::Omit => el(ElementOp::Select, &mut [is_nan().into(), by.into(), x.into()]),
    };
    let not_zero = || el(ElementOp::Ne, &mut [x.into(), 0i64.into()]);
    let counted = || match nan {
        Nan::Include => not_zero(),
        Nan::Omit => el(ElementOp::And, &mut [not_zero().into(), el(ElementOp::Not, &mut [is_nan().into()]).into()]),
    };
    let result = match op {
        ReduceOp::Sum => replaced(0.0),
        ReduceOp::Prod => replaced(1.0),
        ReduceOp::LogSumExp => replaced(f64::NEG_INFINITY),
        ReduceOp::Mean | ReduceOp::Min | ReduceOp::Max => x.clone(),
        // The result is 0, but NaN for NaN and infinity.
        ReduceOp::Var { .. } | ReduceOp::Std { .. } => {
            let zero = el(ElementOp::Mul, &mut [x.into(), 0i64.into()]);
            el(ElementOp::Abs, &mut [zero.into()])
        }
        ReduceOp::ArgMin | ReduceOp::ArgMax => el(ElementOp::Mul, &mut [x.cast_to(DType::U32).into(), 0i64.into()]),
        ReduceOp::Any | ReduceOp::CountNonzero => counted(),
        ReduceOp::All => not_zero(),
        ReduceOp::Norm => el(ElementOp::Abs, &mut [replaced(0.0).into()]),
        ReduceOp::Dot => {
            let product = el(ElementOp::Mul, &mut [x.into(), operands[1].into()]);
            match nan {
                Nan::Include => product,
                Nan::Omit => {
                    let other = el(ElementOp::IsNan, &mut [operands[1].into()]);
                    let missing = el(ElementOp::Or, &mut [is_nan().into(), other.into()]);
                    el(ElementOp::Select, &mut [missing.into(), 0i64.into(), product.into()])
                }
            }
        }
    };
    cast_in(&x.0.home, &result, dtype, at)
}

fn scan(array: &Array, op: ScanOp, dim: usize, nan: Nan, reverse: bool, at: At) -> Array {
    derive(&[array], op.facts().name, at, |home, metas| {
        metas[0].shape.has_axis(dim)?;
        let dtype = if metas[0].dtype == DType::Bool && op.facts().counts_bools { DType::F64 } else { metas[0].dtype };
        let nan = if dtype.is_float() { nan } else { Nan::Include };
        let operand = cast_in(home, array, dtype, at);
        let meta = Meta { dtype, shape: metas[0].shape.clone() };
        if meta.shape.dim(dim) == 1 {
            return Ok(of_one_element(&[&operand], op.facts().whole, nan, dtype, at));
        }
        Ok(node(home, Op::Scan { op, dim: dim as u8, nan, reverse }, &[Input::Array(&operand)], meta, at))
    })
}
