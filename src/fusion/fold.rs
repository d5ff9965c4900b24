//! Writes reductions and scans as kernel IR: the value that is folded, and the result made of the fold.
//!
//! In: a reduce or scan node. Out: values after the fold. Must hold: NaN modes are explicit; nothing defaults.

use super::index::At;
use super::lower::Lowering;
use crate::graph::{DType, ElementOp, Nan, ReduceOp, Scalar, ScanOp};
use crate::kernels::ir::{InstOp, Monoid, SquareLimits, Val};
use smallvec::{SmallVec, smallvec};

impl Lowering<'_, '_> {
    /// The value of a reduce node, available after the fold.
    pub(super) fn reduce(&mut self, n: u32, op: ReduceOp, nan: Nan) -> Val {
        let dtype = self.work.nodes[n as usize].meta.dtype;
        let x = self.arg(n, 0, &At::Flat, None);
        let omit = nan == Nan::Omit && self.builder.dtype_of(x).is_float();
        match op {
            ReduceOp::Sum => {
                let x = self.cleaned(x, omit, 0);
                self.folded(Monoid::Sum, smallvec![x], dtype)
            }
            ReduceOp::Prod => {
                let x = self.cleaned(x, omit, 1);
                let product = self.folded(Monoid::Prod, smallvec![x], dtype);
                if dtype.is_float() { self.product_of_parts(x, product, dtype) } else { product }
            }
            ReduceOp::Mean => self.mean(n, x, omit, dtype),
            ReduceOp::Var { ddof } => self.variance(x, omit, ddof, dtype),
            ReduceOp::Std { ddof } => {
                let variance = self.variance(x, omit, ddof, dtype);
                self.builder.apply(ElementOp::Sqrt, &[variance], dtype)
            }
            ReduceOp::Min => {
                let monoid = if nan == Nan::Omit { Monoid::MinOmit } else { Monoid::MinInclude };
                self.folded(monoid, smallvec![x], dtype)
            }
            ReduceOp::Max => {
                let monoid = if nan == Nan::Omit { Monoid::MaxOmit } else { Monoid::MaxInclude };
                self.folded(monoid, smallvec![x], dtype)
            }
            ReduceOp::ArgMin | ReduceOp::ArgMax => {
                let monoid = match (op, nan) {
                    (ReduceOp::ArgMin, Nan::Omit) => Monoid::ArgMinOmit,
                    (ReduceOp::ArgMin, Nan::Include) => Monoid::ArgMinInclude,
                    (_, Nan::Omit) => Monoid::ArgMaxOmit,
                    (_, Nan::Include) => Monoid::ArgMaxInclude,
                };
                let position = self.builder.inst(InstOp::Inner, DType::U32);
                let value_dtype = self.builder.dtype_of(x);
                let best = self.folded(monoid, smallvec![x, position], value_dtype);
                self.builder.inst(InstOp::Project(best, 1), DType::U32)
            }
            ReduceOp::Any | ReduceOp::All => {
                let truth = self.truth(x, omit, op == ReduceOp::All);
                let monoid = if op == ReduceOp::Any { Monoid::Any } else { Monoid::All };
                self.folded(monoid, smallvec![truth], DType::Bool)
            }
            ReduceOp::CountNonzero => {
                let truth = self.truth(x, omit, false);
                let one = self.builder.cast(truth, dtype);
                self.folded(Monoid::Sum, smallvec![one], dtype)
            }
            ReduceOp::Norm => {
                let x = self.cleaned(x, omit, 0);
                self.norm(x, dtype)
            }
            ReduceOp::LogSumExp => {
                let x = self.without_nan(x, omit, Scalar::F64(f64::NEG_INFINITY));
                let greatest = self.folded(Monoid::ExpSum, smallvec![x], dtype);
                let sum = self.builder.inst(InstOp::Project(greatest, 1), dtype);
                let log = self.builder.apply(ElementOp::Log, &[sum], dtype);
                self.builder.apply(ElementOp::Add, &[greatest, log], dtype)
            }
            ReduceOp::Dot => {
                let y = self.arg(n, 1, &At::Flat, None);
                let mut product = self.builder.apply(ElementOp::Mul, &[x, y], dtype);
                if omit {
                    // A pair is missing if one of its numbers is NaN. Testing the product would be wrong: infinity
                    // times zero is NaN, too.
                    let missing = [x, y].map(|of| self.builder.apply(ElementOp::IsNan, &[of], DType::Bool));
                    let missing = self.builder.apply(ElementOp::Or, &missing, DType::Bool);
                    let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
                    product = self.builder.apply(ElementOp::Select, &[missing, zero, product], dtype);
                }
                self.folded(Monoid::Sum, smallvec![product], dtype)
            }
        }
    }

    /// Corrects the product of `x`, which is made of products of parts. If all numbers are finite and one is zero, the
    /// result is zero, even if another part overflowed to infinity, and infinity times zero would give NaN.
    fn product_of_parts(&mut self, x: Val, product: Val, dtype: DType) -> Val {
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        let element_is_zero = self.builder.apply(ElementOp::Eq, &[x, zero], DType::Bool);
        let element_is_finite = self.builder.apply(ElementOp::IsFinite, &[x], DType::Bool);
        let holds_zero = self.folded(Monoid::Any, smallvec![element_is_zero], DType::Bool);
        let all_finite = self.folded(Monoid::All, smallvec![element_is_finite], DType::Bool);
        let is_zero = self.builder.apply(ElementOp::And, &[holds_zero, all_finite], DType::Bool);
        let is_nan = self.builder.apply(ElementOp::IsNan, &[product], DType::Bool);
        let mended = self.builder.apply(ElementOp::And, &[is_zero, is_nan], DType::Bool);
        self.builder.apply(ElementOp::Select, &[mended, zero, product], dtype)
    }

    fn folded(&mut self, monoid: Monoid, args: SmallVec<[Val; 2]>, dtype: DType) -> Val {
        self.builder.inst(InstOp::Reduce { monoid, args }, dtype)
    }

    /// The value with NaN replaced by a neutral number, if NaN is omitted.
    fn cleaned(&mut self, x: Val, omit: bool, neutral: i32) -> Val {
        self.without_nan(x, omit, Scalar::I32(neutral))
    }

    /// As [`Lowering::cleaned`], with any number.
    fn without_nan(&mut self, x: Val, omit: bool, neutral: Scalar) -> Val {
        if !omit {
            return x;
        }
        let dtype = self.builder.dtype_of(x);
        let is_nan = self.builder.apply(ElementOp::IsNan, &[x], DType::Bool);
        let neutral = self.builder.constant(neutral.cast(dtype));
        self.builder.apply(ElementOp::Select, &[is_nan, neutral, x], dtype)
    }

    /// Whether a value is not zero; NaN, if omitted, counts as `neutral`.
    fn truth(&mut self, x: Val, omit: bool, neutral: bool) -> Val {
        let dtype = self.builder.dtype_of(x);
        if dtype == DType::Bool {
            return x;
        }
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        let truth = self.builder.apply(ElementOp::Ne, &[x, zero], DType::Bool);
        if !omit {
            return truth;
        }
        let is_nan = self.builder.apply(ElementOp::IsNan, &[x], DType::Bool);
        let neutral = self.builder.constant(Scalar::Bool(neutral));
        self.builder.apply(ElementOp::Select, &[is_nan, neutral, truth], DType::Bool)
    }

    fn mean(&mut self, n: u32, x: Val, omit: bool, dtype: DType) -> Val {
        if omit {
            let clean = self.cleaned(x, true, 0);
            let sum = self.folded(Monoid::Sum, smallvec![clean], dtype);
            let is_nan = self.builder.apply(ElementOp::IsNan, &[x], DType::Bool);
            let present = self.builder.apply(ElementOp::Not, &[is_nan], DType::Bool);
            let one = self.builder.cast(present, dtype);
            let count = self.folded(Monoid::Sum, smallvec![one], dtype);
            return self.builder.apply(ElementOp::Div, &[sum, count], dtype);
        }
        let sum = self.folded(Monoid::Sum, smallvec![x], dtype);
        let count = self.space.sizes().1;
        let count = self.builder.scalar(super::builder::Origin::Attribute(n, 0), Scalar::F64(count as f64).cast(dtype));
        self.builder.apply(ElementOp::Div, &[sum, count], dtype)
    }

    fn variance(&mut self, x: Val, omit: bool, ddof: u8, dtype: DType) -> Val {
        let count = if omit {
            let is_nan = self.builder.apply(ElementOp::IsNan, &[x], DType::Bool);
            let present = self.builder.apply(ElementOp::Not, &[is_nan], DType::Bool);
            self.folded(Monoid::MomentsWhere, smallvec![x, present], dtype)
        } else {
            self.folded(Monoid::Moments, smallvec![x], dtype)
        };
        let squares = self.builder.inst(InstOp::Project(count, 3), dtype);
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        let one = self.builder.constant(Scalar::I32(1).cast(dtype));
        let less = self.builder.constant(Scalar::I32(ddof as i32).cast(dtype));
        // The variance of one value is 0, whatever the divisor; that of no value is NaN.
        let freedom = self.builder.apply(ElementOp::Sub, &[count, less], dtype);
        let divisor = self.builder.apply(ElementOp::Max, &[freedom, one], dtype);
        let variance = self.builder.apply(ElementOp::Div, &[squares, divisor], dtype);
        let none = self.builder.apply(ElementOp::Eq, &[count, zero], DType::Bool);
        let nan = self.builder.constant(Scalar::F64(f64::NAN).cast(dtype));
        self.builder.apply(ElementOp::Select, &[none, nan, variance], dtype)
    }

    /// The root of the sum of squares, from three sums of scaled squares. The sum of big values is used if there are
    /// any; the sum of small values if the others are so small that these matter.
    fn norm(&mut self, x: Val, dtype: DType) -> Val {
        let limits = SquareLimits::of(dtype);
        let small = self.folded(Monoid::Squares, smallvec![x], dtype);
        let middling = self.builder.inst(InstOp::Project(small, 1), dtype);
        let big = self.builder.inst(InstOp::Project(small, 2), dtype);
        let of = |lowering: &mut Self, op, args: &[Val]| lowering.builder.apply(op, args, dtype);
        let root = of(self, ElementOp::Sqrt, &[middling]);
        let [small_root, big_root] = [(small, limits.scale), (big, -limits.scale)].map(|(sum, power)| {
            let [by, back] = [power, -power].map(|p| self.builder.constant(Scalar::F64(2f64.powi(p)).cast(dtype)));
            // The root is scaled instead of the sum, because the square of the factor is out of the dtype's range.
            let scaled = of(self, ElementOp::Mul, &[root, by]);
            let square = of(self, ElementOp::Mul, &[scaled, scaled]);
            let all = of(self, ElementOp::Add, &[sum, square]);
            let root = of(self, ElementOp::Sqrt, &[all]);
            of(self, ElementOp::Mul, &[root, back])
        });
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        let low = self.builder.constant(Scalar::F64(2f64.powi(limits.small_counts_below)).cast(dtype));
        let is_low = self.builder.apply(ElementOp::Lt, &[middling, low], DType::Bool);
        let is_big = self.builder.apply(ElementOp::Gt, &[big, zero], DType::Bool);
        let lesser = of(self, ElementOp::Select, &[is_low, small_root, root]);
        of(self, ElementOp::Select, &[is_big, big_root, lesser])
    }

    /// The value of a scan node at the element that is being computed.
    pub(super) fn scan(&mut self, n: u32, op: ScanOp, nan: Nan) -> Val {
        let dtype = self.work.nodes[n as usize].meta.dtype;
        let x = self.arg(n, 0, &At::Flat, None);
        let omit = nan == Nan::Omit;
        let float = self.builder.dtype_of(x).is_float();
        let (monoid, arg) = match op {
            ScanOp::Sum => (Monoid::Sum, self.cleaned(x, omit && float, 0)),
            ScanOp::Prod => (Monoid::Prod, self.cleaned(x, omit && float, 1)),
            ScanOp::Min => (if omit { Monoid::MinOmit } else { Monoid::MinInclude }, x),
            ScanOp::Max => (if omit { Monoid::MaxOmit } else { Monoid::MaxInclude }, x),
        };
        self.builder.inst(InstOp::Scan { monoid, arg }, dtype)
    }
}
