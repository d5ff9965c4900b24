//! Folding: reductions and scans over tiny known values.
//!
//! In: the op's attributes and its known arguments. Out: the result's elements. Floats are reduced in f64, in pairs,
//! and rounded once; integers exactly.

use super::fold::{Coords, Known, build, number};
use crate::graph::rules::has_dim;
use crate::graph::semantics::{exponential, logarithm};
use crate::graph::{DType, DimSet, Meta, Nan, ReduceOp, Scalar, ScanOp};
use crate::host_buffer::HostBuffer;
use smallvec::SmallVec;
use std::cmp::Ordering;

type Values = SmallVec<[Scalar; 16]>;

/// A reduction over `dims` of its argument (the product of two for `Dot`).
pub(crate) fn reduce(op: ReduceOp, dims: DimSet, nan: Nan, args: &[Known<'_>], meta: &Meta) -> Option<HostBuffer> {
    let rank = match &args[0] {
        Known::Number(_) => 2,
        Known::Buffer(_, shape) => shape.rank(),
    };
    let extents: Coords = (0..rank).map(|d| if has_dim(dims, d) { args[0].dim(d) } else { 1 }).collect();
    let count: usize = extents.iter().product();
    let mut values = Values::new();
    Some(build(meta, |_, out| {
        values.clear();
        let mut inner: Coords = SmallVec::from_elem(0, rank);
        for _ in 0..count {
            let at: Coords = (0..rank).map(|d| inner[d] + out.get(d).copied().unwrap_or(0)).collect();
            match args {
                [x, y] => {
                    let (x, y) = (x.at(&at).as_f64(), y.at(&at).as_f64());
                    if nan == Nan::Include || !(x.is_nan() || y.is_nan()) {
                        values.push(number(meta.dtype, x * y));
                    }
                }
                _ => values.push(args[0].at(&at)),
            }
            for (c, &extent) in inner.iter_mut().zip(&extents) {
                *c += 1;
                if *c < extent {
                    break;
                }
                *c = 0;
            }
        }
        // Pairs with NaN were left out above, because a product of two numbers may be NaN although neither is.
        let nan = if args.len() == 2 { Nan::Include } else { nan };
        reduce_values(op, nan, &values, meta.dtype)
    }))
}

/// The value of a reduction over no element; `None` for extremes and their positions, which do not exist without
/// elements.
pub(crate) fn identity(op: ReduceOp, nan: Nan, dtype: DType) -> Option<Scalar> {
    op.facts().is_defined_when_empty.then(|| reduce_values(op, nan, &[], dtype))
}

/// The sum of floats; 0 for none. It adds halves, so that an element of n takes part in at most `8 + 2 log2 n`
/// additions.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    fn pairwise(values: &[f64]) -> f64 {
        if values.len() <= 16 {
            // The sum begins at zero, because the standard library's sum of nothing is -0.
            return values.iter().fold(0.0, |sum, value| sum + value);
        }
        let (earlier, later) = values.split_at((values.len() / 2).next_multiple_of(16));
        pairwise(earlier) + pairwise(later)
    }
    pairwise(&values.collect::<SmallVec<[f64; 16]>>())
}

fn reduce_values(op: ReduceOp, nan: Nan, values: &[Scalar], dtype: DType) -> Scalar {
    let kept = || values.iter().copied().filter(|v| nan == Nan::Include || !v.as_f64().is_nan());
    let floats = || kept().map(Scalar::as_f64);
    let n = kept().count() as f64;
    let true_of = |v: Scalar| v.as_f64() != 0.0;
    match op {
        ReduceOp::Sum | ReduceOp::Dot if !dtype.is_integer() => number(dtype, total(floats())),
        ReduceOp::Prod if !dtype.is_integer() => {
            let product: f64 = floats().product();
            // A kernel multiplies products of parts, and gives 0 here.
            let is_zero = product.is_nan() && floats().all(f64::is_finite);
            number(dtype, if is_zero { 0.0 } else { product })
        }
        ReduceOp::Sum | ReduceOp::Dot => kept().fold(number(dtype, 0.0), |a, b| whole(a, b, dtype, |x, y| x + y)),
        ReduceOp::Prod => kept().fold(number(dtype, 1.0), |a, b| whole(a, b, dtype, |x, y| x * y)),
        ReduceOp::Mean => number(dtype, total(floats()) / n),
        ReduceOp::Var { ddof } => number(dtype, variance(floats(), n, ddof)),
        ReduceOp::Std { ddof } => number(dtype, variance(floats(), n, ddof).sqrt()),
        ReduceOp::Min => extreme(values, nan, Ordering::Less, dtype).0,
        ReduceOp::Max => extreme(values, nan, Ordering::Greater, dtype).0,
        ReduceOp::ArgMin => Scalar::U32(extreme(values, nan, Ordering::Less, dtype).1),
        ReduceOp::ArgMax => Scalar::U32(extreme(values, nan, Ordering::Greater, dtype).1),
        ReduceOp::Any => Scalar::Bool(kept().any(true_of)),
        ReduceOp::All => Scalar::Bool(kept().all(true_of)),
        ReduceOp::CountNonzero => Scalar::U32(kept().filter(|&v| true_of(v)).count() as u32),
        ReduceOp::Norm => number(dtype, norm(floats())),
        ReduceOp::LogSumExp => number(dtype, log_sum_exp(floats())),
    }
}

fn variance(values: impl Iterator<Item = f64> + Clone, n: f64, ddof: u8) -> f64 {
    let mean = total(values.clone()) / n;
    let squares = total(values.clone().map(|v| (v - mean) * (v - mean)));
    // The mean is rounded. The error that this causes in the squares is subtracted again.
    let off = total(values.map(|v| v - mean));
    let rest = squares - off * off / n;
    let squares = if rest < 0.0 { 0.0 } else { rest };
    // Without elements the mean is NaN, and so is the variance; with one element it is 0, also for a sample.
    if n == 0.0 { f64::NAN } else { squares / (n - ddof as f64).max(1.0) }
}

fn norm(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let scale = values.clone().fold(0.0f64, |a, v| if v.is_nan() || a.is_nan() { f64::NAN } else { a.max(v.abs()) });
    if scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    // If neither the squares nor their sum can leave the range, no scaling is needed.
    if (1e-140..1e140).contains(&scale) {
        return total(values.map(|v| v * v)).sqrt();
    }
    scale * total(values.map(|v| (v / scale) * (v / scale))).sqrt()
}

fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let greatest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    // The difference of equal infinities would be NaN; here it counts as 0.
    let terms = values.map(|v| if v == greatest { 1.0 } else { exponential::exp(v - greatest) });
    greatest + logarithm::log(total(terms))
}

/// The extreme element and its position. Without elements, it is NaN if NaN is omitted, else the identity.
fn extreme(values: &[Scalar], nan: Nan, wanted: Ordering, dtype: DType) -> (Scalar, u32) {
    let mut best: Option<(Scalar, u32)> = None;
    for (i, &value) in values.iter().enumerate() {
        let value_is_nan = value.as_f64().is_nan();
        match best {
            None => best = Some((value, i as u32)),
            Some((old, _)) if old.as_f64().is_nan() => {
                if nan == Nan::Omit && !value_is_nan {
                    best = Some((value, i as u32));
                }
            }
            Some((old, _)) => {
                let better = if value_is_nan { nan == Nan::Include } else { compare(value, old) == wanted };
                if better {
                    best = Some((value, i as u32));
                }
            }
        }
    }
    best.unwrap_or_else(|| {
        let infinite = if wanted == Ordering::Less { f64::INFINITY } else { f64::NEG_INFINITY };
        let none = if dtype.is_float() && nan == Nan::Omit { f64::NAN } else { infinite };
        (number(dtype, none), 0)
    })
}

fn compare(a: Scalar, b: Scalar) -> Ordering {
    match (a, b) {
        (Scalar::I64(a), Scalar::I64(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// A saturating step on integers.
fn whole(a: Scalar, b: Scalar, dtype: DType, step: impl Fn(i128, i128) -> i128) -> Scalar {
    let of = |s: Scalar| match s.cast(DType::I64) {
        Scalar::I64(v) => v as i128,
        _ => 0,
    };
    let exact = step(of(a), of(b)).clamp(i64::MIN as i128, i64::MAX as i128);
    Scalar::I64(exact as i64).cast(dtype)
}

/// A running reduction along `dim`.
pub(crate) fn scan(op: ScanOp, dim: usize, nan: Nan, reverse: bool, arg: &Known<'_>, meta: &Meta) -> HostBuffer {
    let extent = arg.dim(dim);
    let mut values = Values::new();
    build(meta, |_, c| {
        let here = c.get(dim).copied().unwrap_or(0);
        // The values are in the scan's order, on which saturation and rounding depend.
        let steps = if reverse { extent - here } else { here + 1 };
        values.clear();
        let mut at: Coords = SmallVec::from_slice(c);
        for step in 0..steps {
            if let Some(c) = at.get_mut(dim) {
                *c = if reverse { extent - 1 - step } else { step };
            }
            values.push(arg.at(&at));
        }
        // A running sum begins with its first element, so that a sum of negative zeros is a negative zero.
        let negative_zero = |v: &Scalar| v.as_f64() == 0.0 && v.as_f64().is_sign_negative();
        if op == ScanOp::Sum && meta.dtype.is_float() && values.iter().all(negative_zero) {
            return number(meta.dtype, -0.0);
        }
        reduce_values(op.facts().whole, nan, &values, meta.dtype)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Shape;

    fn fold(op: ReduceOp, nan: Nan, data: &[f64], dims: DimSet, out: &[usize]) -> Vec<f64> {
        let buffer = HostBuffer::from_slice(data);
        let shape = Shape::new(&[data.len() / 2, 2]).unwrap();
        let dtype = match op {
            ReduceOp::ArgMin | ReduceOp::ArgMax | ReduceOp::CountNonzero => DType::U32,
            ReduceOp::Any | ReduceOp::All => DType::Bool,
            _ => DType::F64,
        };
        let meta = Meta { dtype, shape: Shape::new(out).unwrap() };
        let out = reduce(op, dims, nan, &[Known::Buffer(&buffer, &shape)], &meta).unwrap();
        (0..out.len()).map(|i| out.scalar(i).as_f64()).collect()
    }

    #[test]
    fn reductions_of_tiny_values_follow_matlab() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];
        assert_eq!(fold(ReduceOp::Sum, Nan::Include, &data, 0b01, &[1, 2]), [6.0, 18.0]);
        assert_eq!(fold(ReduceOp::Sum, Nan::Include, &data, 0b10, &[3, 1]), [5.0, 7.0, 12.0]);
        assert_eq!(fold(ReduceOp::Mean, Nan::Include, &data, 0b11, &[1, 1]), [4.0]);
        assert_eq!(fold(ReduceOp::Var { ddof: 1 }, Nan::Include, &data, 0b01, &[1, 2]), [1.0, 7.0]);
        assert_eq!(fold(ReduceOp::ArgMax, Nan::Omit, &data, 0b11, &[1, 1]), [5.0]);
        assert_eq!(fold(ReduceOp::Norm, Nan::Include, &[3.0, -4.0], 0b10, &[1, 1]), [5.0]);
        let large = fold(ReduceOp::Norm, Nan::Include, &[3e200, 4e200], 0b10, &[1, 1])[0];
        assert!((large / 5e200 - 1.0).abs() < 1e-15, "{large}");
    }

    #[test]
    fn nan_is_omitted_or_wins_as_asked() {
        let data = [f64::NAN, 1.0, 3.0, 2.0];
        assert_eq!(fold(ReduceOp::Max, Nan::Omit, &data, 0b11, &[1, 1]), [3.0]);
        assert!(fold(ReduceOp::Max, Nan::Include, &data, 0b11, &[1, 1])[0].is_nan());
        assert_eq!(fold(ReduceOp::ArgMin, Nan::Omit, &data, 0b11, &[1, 1]), [1.0]);
        assert_eq!(fold(ReduceOp::ArgMin, Nan::Include, &data, 0b11, &[1, 1]), [0.0]);
        assert_eq!(fold(ReduceOp::Mean, Nan::Omit, &data, 0b11, &[1, 1]), [2.0]);
    }

    #[test]
    fn reductions_of_nothing_give_their_identities() {
        let of = |op| identity(op, Nan::Include, DType::F64).map(Scalar::as_f64);
        assert_eq!(of(ReduceOp::Sum), Some(0.0));
        assert_eq!(of(ReduceOp::Prod), Some(1.0));
        assert!(of(ReduceOp::Mean).unwrap().is_nan());
        for op in [ReduceOp::Min, ReduceOp::Max, ReduceOp::ArgMin, ReduceOp::ArgMax] {
            assert!(identity(op, Nan::Omit, DType::F64).is_none(), "{op:?}");
        }
        assert!(matches!(identity(ReduceOp::All, Nan::Include, DType::Bool), Some(Scalar::Bool(true))));
    }

    #[test]
    fn scans_run_both_ways() {
        let buffer = HostBuffer::from_slice(&[1i64, 2, 3]);
        let shape = Shape::new(&[1, 3]).unwrap();
        let meta = Meta { dtype: DType::I64, shape: shape.clone() };
        let arg = Known::Buffer(&buffer, &shape);
        let run =
            |reverse| scan(ScanOp::Sum, 1, Nan::Include, reverse, &arg, &meta).as_slice::<i64>().unwrap().to_vec();
        assert_eq!(run(false), [1, 3, 6]);
        assert_eq!(run(true), [6, 5, 3]);
        let zeros = HostBuffer::from_slice(&[-0.0f64, -0.0, 0.0]);
        let arg = Known::Buffer(&zeros, &shape);
        let meta_f64 = Meta { dtype: DType::F64, shape: shape.clone() };
        let sums = scan(ScanOp::Sum, 1, Nan::Include, false, &arg, &meta_f64);
        let signs = sums.as_slice::<f64>().unwrap().iter().map(|x| x.is_sign_negative()).collect::<Vec<_>>();
        assert_eq!(signs, [true, true, false]);
        // Saturated on the way from the end.
        let buffer = HostBuffer::from_slice(&[-1i64, 5, i64::MAX]);
        let arg = Known::Buffer(&buffer, &shape);
        let last = scan(ScanOp::Sum, 1, Nan::Include, true, &arg, &meta);
        assert_eq!(last.as_slice::<i64>().unwrap(), [i64::MAX - 1, i64::MAX, i64::MAX]);
    }
}
