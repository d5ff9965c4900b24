//! How dtypes mix: MATLAB's rules, with weak scalars.
//!
//! In: the dtypes of an op's arguments. Out: the dtypes in which the op computes and that it yields, or an error in
//! words.

use super::ElementOp;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;

/// The dtype of an argument, and whether it is a plain number that adapts to its partner.
///
/// A weak `I64` promises that its value fits the integer class that it meets; a whole number that does not fit is
/// passed as a weak `F64`, so that `u8(200) + (-100)` is 100.
#[derive(Clone, Copy, Debug)]
pub struct ArgType {
    /// Its dtype.
    pub dtype: DType,
    /// It is a Rust scalar (f64 or i64), which adapts: f32 beside it stays f32.
    pub weak: bool,
    /// It has one element (MATLAB lets a scalar double mix with an integer array).
    pub scalar: bool,
}

/// The dtypes in which an elementwise op computes and that it yields. The mask of `Select` is bool, and is not of the
/// dtype `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The dtype to which the recorder first casts every argument.
    pub compute: DType,
    /// The dtype of the op's own result; bool for comparisons.
    pub output: DType,
    /// The dtype of the final result. If it differs from `output`, the recorder appends a cast (an integer array times
    /// 0.5 is computed in f64 and cast back to the integer).
    pub result: DType,
}

/// How an op's dtypes follow from those of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeRule {
    /// Numbers of one kind; bools become f64.
    Arithmetic,
    /// f32 or f64; integers and bools become f64.
    Real,
    /// Any dtype to bool.
    Test,
    /// Bools to bool; numbers are cast to bool.
    Logic,
    /// Two numbers, also of different integer classes, to bool.
    Comparison,
    /// A mask and two values of one kind.
    Select,
    /// One argument; the target is the node's dtype.
    Cast,
}

/// The common dtypes of arguments.
struct Mixed {
    /// The dtype in which all of them can be computed.
    compute: DType,
    /// The dtype of the result.
    result: DType,
}

impl Mixed {
    fn of(dtype: DType) -> Mixed {
        Mixed { compute: dtype, result: dtype }
    }
}

pub(super) fn signature(op: ElementOp, args: &[ArgType]) -> Result<Signature> {
    let info = op.info();
    if args.len() != info.arity {
        let message = format!("takes {} arguments, and {} were given", info.arity, args.len());
        return Err(Error::new(ErrorKind::Argument, message).with_op(info.name));
    }
    let named = |error: Error| error.with_op(info.name);
    Ok(match info.rule {
        DTypeRule::Arithmetic => arithmetic(args).map_err(named)?,
        DTypeRule::Real => {
            let mixed = mix(args).map_err(named)?;
            let compute = if mixed.result == DType::F32 { DType::F32 } else { DType::F64 };
            Signature { compute, output: compute, result: compute }
        }
        DTypeRule::Test => Signature { compute: args[0].dtype, output: DType::Bool, result: DType::Bool },
        DTypeRule::Logic => Signature { compute: DType::Bool, output: DType::Bool, result: DType::Bool },
        DTypeRule::Comparison => Signature { compute: comparable(args), output: DType::Bool, result: DType::Bool },
        DTypeRule::Select => {
            let mixed = mix(&args[1..]).map_err(named)?;
            Signature { compute: mixed.result, output: mixed.result, result: mixed.result }
        }
        DTypeRule::Cast => {
            let dtype = args[0].dtype;
            Signature { compute: dtype, output: dtype, result: dtype }
        }
    })
}

fn arithmetic(args: &[ArgType]) -> Result<Signature> {
    let mixed = mix(args)?;
    let number = |dtype: DType| if dtype == DType::Bool { DType::F64 } else { dtype };
    let compute = number(mixed.compute);
    Ok(Signature { compute, output: compute, result: number(mixed.result) })
}

/// The common dtypes of values; bool if all are bool.
fn mix(args: &[ArgType]) -> Result<Mixed> {
    let strong = || args.iter().filter(|a| !a.weak);
    let weak = |dtype: DType| args.iter().any(|a| a.weak && a.dtype == dtype);
    let mut class = None;
    for arg in strong().filter(|a| a.dtype.is_integer()) {
        if class.is_some_and(|c| c != arg.dtype) {
            let message = format!(
                "{} and {} are different integer classes, which do not mix; cast one of them first",
                class.unwrap_or(arg.dtype),
                arg.dtype
            );
            return Err(Error::new(ErrorKind::DType, message));
        }
        class = Some(arg.dtype);
    }
    if let Some(class) = class {
        if let Some(array) = strong().find(|a| a.dtype.is_float() && !a.scalar) {
            let message = format!(
                "an {class} array mixes with {class}, bool and single numbers, not with an {} array; cast one first",
                array.dtype
            );
            return Err(Error::new(ErrorKind::DType, message));
        }
        let float = args.iter().any(|a| a.dtype.is_float());
        return Ok(Mixed { compute: if float { DType::F64 } else { class }, result: class });
    }
    if strong().any(|a| a.dtype == DType::F32) {
        return Ok(Mixed::of(DType::F32));
    }
    if strong().any(|a| a.dtype == DType::F64) || weak(DType::F64) {
        return Ok(Mixed::of(DType::F64));
    }
    // Only bools and weak whole numbers are left.
    Ok(Mixed::of(match (strong().next(), weak(DType::I64)) {
        (Some(_), true) => DType::F64,
        (None, true) => DType::I64,
        _ => DType::Bool,
    }))
}

/// The dtype in which arguments are compared: all pairs are comparable, and the integers up to 32 bits exactly.
fn comparable(args: &[ArgType]) -> DType {
    let (a, b) = (&args[0], &args[1]);
    if a.weak != b.weak {
        let (strong, weak) = if a.weak { (b, a) } else { (a, b) };
        return match (strong.dtype, weak.dtype) {
            (DType::F32, _) => DType::F32,
            (class, DType::I64) if class.is_integer() => class,
            _ => DType::F64,
        };
    }
    match (a.dtype, b.dtype) {
        (x, y) if x == y => x,
        (DType::F32, y) if !y.is_integer() => DType::F32,
        (x, DType::F32) if !x.is_integer() => DType::F32,
        (DType::F64 | DType::F32, _) | (_, DType::F64 | DType::F32) => DType::F64,
        (DType::Bool, class) | (class, DType::Bool) => class,
        // Every other integer fits i64.
        _ => DType::I64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dtype: DType) -> ArgType {
        ArgType { dtype, weak: false, scalar: false }
    }

    fn single(dtype: DType) -> ArgType {
        ArgType { dtype, weak: false, scalar: true }
    }

    fn weak(dtype: DType) -> ArgType {
        ArgType { dtype, weak: true, scalar: true }
    }

    fn sig(compute: DType, output: DType, result: DType) -> Signature {
        Signature { compute, output, result }
    }

    use DType::*;

    #[test]
    fn f32_stays_f32_beside_numbers_bools_and_f64() {
        for other in [weak(F64), weak(I64), array(Bool), array(F64), array(F32)] {
            assert_eq!(ElementOp::Add.signature(&[array(F32), other]).unwrap(), sig(F32, F32, F32));
            assert_eq!(ElementOp::Atan2.signature(&[other, array(F32)]).unwrap(), sig(F32, F32, F32));
        }
    }

    #[test]
    fn an_integer_array_times_a_double_computes_in_f64_and_comes_back() {
        assert_eq!(ElementOp::Mul.signature(&[array(I32), weak(F64)]).unwrap(), sig(F64, F64, I32));
        assert_eq!(ElementOp::Mul.signature(&[single(F64), array(U8)]).unwrap(), sig(F64, F64, U8));
        assert_eq!(ElementOp::Mul.signature(&[array(I64), weak(I64)]).unwrap(), sig(I64, I64, I64));
        assert_eq!(ElementOp::Mul.signature(&[array(U8), array(Bool)]).unwrap(), sig(U8, U8, U8));
    }

    #[test]
    fn integers_do_not_mix_with_other_classes_or_float_arrays() {
        let error = ElementOp::Add.signature(&[array(I32), array(U8)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DType);
        assert_eq!(
            error.to_string(),
            "add: i32 and u8 are different integer classes, which do not mix; cast one of them first"
        );
        assert!(ElementOp::Add.signature(&[array(I32), array(F64)]).is_err());
    }

    #[test]
    fn bools_compute_in_f64_but_compare_and_select_as_they_are() {
        assert_eq!(ElementOp::Add.signature(&[array(Bool), array(Bool)]).unwrap(), sig(F64, F64, F64));
        assert_eq!(ElementOp::Add.signature(&[array(Bool), weak(I64)]).unwrap(), sig(F64, F64, F64));
        assert_eq!(ElementOp::Eq.signature(&[array(Bool), array(Bool)]).unwrap(), sig(Bool, Bool, Bool));
        let mask = array(Bool);
        assert_eq!(ElementOp::Select.signature(&[mask, mask, mask]).unwrap(), sig(Bool, Bool, Bool));
        assert_eq!(ElementOp::Select.signature(&[mask, array(U8), weak(F64)]).unwrap(), sig(U8, U8, U8));
    }

    #[test]
    fn comparisons_take_any_pair() {
        assert_eq!(ElementOp::Lt.signature(&[array(U32), array(I32)]).unwrap(), sig(I64, Bool, Bool));
        assert_eq!(ElementOp::Lt.signature(&[array(F32), weak(F64)]).unwrap(), sig(F32, Bool, Bool));
        assert_eq!(ElementOp::Lt.signature(&[weak(F64), array(U8)]).unwrap(), sig(F64, Bool, Bool));
        assert_eq!(ElementOp::Lt.signature(&[array(U8), weak(I64)]).unwrap(), sig(U8, Bool, Bool));
        assert_eq!(ElementOp::IsNan.signature(&[array(I32)]).unwrap(), sig(I32, Bool, Bool));
    }

    #[test]
    fn functions_of_integers_are_doubles() {
        assert_eq!(ElementOp::Sin.signature(&[array(I32)]).unwrap(), sig(F64, F64, F64));
        assert_eq!(ElementOp::Sin.signature(&[array(F32)]).unwrap(), sig(F32, F32, F32));
    }

    #[test]
    fn a_wrong_number_of_arguments_is_an_error() {
        assert_eq!(ElementOp::Add.signature(&[array(F32)]).unwrap_err().kind(), ErrorKind::Argument);
    }
}
