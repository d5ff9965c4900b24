//! Integers of up to 32 bits beside plain numbers: in which dtype such an op is computed.
//!
//! In: an op whose arguments are integers of one class and numbers as f64, and whether its kernel is compiled. Out: the
//! dtype to which all arguments are cast; the result is cast back. Each dtype that may be chosen gives the same
//! results, since f64 holds these integers, and the cast back rounds and saturates as integer ops do.
//! Must hold: MIXED-1: where a GPU has f64, the choice does not depend on the numbers, so that a new number compiles no
//! new kernel. Elsewhere whole numbers stay integers, which every GPU has, and with which the host is faster.

use super::refusals::runs_on_gpus;
use crate::graph::table::DTypeRule;
use crate::graph::{DType, ElementOp, Scalar};

/// Whether integers of this class beside numbers are recorded as they are. `i64` is not among them: it is exact where
/// f64 is not, and `graph::wide` computes it.
pub fn is_class(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32 | DType::U8)
}

/// Whether an op may be recorded on integers beside numbers: its dtype rule casts all arguments to one dtype.
pub fn takes(op: ElementOp) -> bool {
    matches!(op.info().rule, DTypeRule::Arithmetic | DTypeRule::Comparison)
}

/// The dtype in which an op on these arguments (dtypes, and the values of numbers) is computed; `None` if they are not
/// integers beside numbers. `compiles_f64` says that its kernel is compiled for a device that has f64.
pub fn computes_in(
    op: ElementOp,
    args: impl Iterator<Item = (DType, Option<Scalar>)> + Clone,
    compiles_f64: bool,
) -> Option<DType> {
    let is_number = |arg: &(DType, Option<Scalar>)| matches!(arg.1, Some(Scalar::F64(_)));
    if !takes(op) || !args.clone().any(|arg| is_number(&arg)) {
        return None;
    }
    let class = args.clone().map(|arg| arg.0).find(|&dtype| is_class(dtype))?;
    if compiles_f64 && runs_on_gpus(op, DType::F64) {
        return Some(DType::F64);
    }
    let whole = args.filter(is_number).all(|(_, number)| number.is_some_and(|number| is_of(number, class)));
    Some(if whole { class } else { DType::F64 })
}

/// Whether a number is an integer of this class.
fn is_of(number: Scalar, class: DType) -> bool {
    let value = number.as_f64();
    value.to_bits() != (-0.0f64).to_bits() && number.cast(class).as_f64() == value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(compiles_f64: bool, op: ElementOp, class: DType, number: f64) -> Option<DType> {
        let args = [(class, None), (DType::F64, Some(Scalar::F64(number)))];
        computes_in(op, args.into_iter(), compiles_f64)
    }

    #[test]
    fn the_number_decides_where_nothing_is_compiled_or_f64_is_missing() {
        assert_eq!(on(false, ElementOp::Mul, DType::I32, 2.0), Some(DType::I32));
        assert_eq!(on(false, ElementOp::Lt, DType::U8, 255.0), Some(DType::U8));
        for number in [2.5, -0.0, 256.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(on(false, ElementOp::Mul, DType::U8, number), Some(DType::F64), "{number}");
        }
        for number in [2.0, 2.5] {
            assert_eq!(on(true, ElementOp::Mul, DType::I32, number), Some(DType::F64));
        }
    }

    #[test]
    fn other_arguments_do_not_mix() {
        assert_eq!(on(false, ElementOp::Mul, DType::F64, 2.0), None);
        assert_eq!(on(false, ElementOp::Mul, DType::I64, 2.0), None);
        assert_eq!(on(false, ElementOp::Atan2, DType::I32, 2.0), None);
        let alike = [(DType::I32, None), (DType::I32, Some(Scalar::I32(2)))];
        assert_eq!(computes_in(ElementOp::Mul, alike.into_iter(), false), None);
    }
}
