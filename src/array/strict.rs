//! `Promotion::Strict`: refuses mixes of dtypes that would lose digits or range.
//!
//! In: an op's operands, or the dtypes of a conversion that an op makes by itself. Out: nothing, or an error that names
//! both dtypes and the cast to write. Must hold: STRICT-1: accepted ops are computed as by `Promotion::Matlab`; this
//! module changes no value. STRICT-2: an op that MATLAB's rules refuse keeps their error.

use super::handle::Array;
use super::operand::{Kind, Operand};
use super::record::signature_of;
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::table::DTypeRule;
use crate::graph::{ArgType, DType, ElementOp, Scalar};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

impl Home {
    /// Whether dtypes mix only if nothing is lost.
    pub(super) fn is_strict(&self) -> bool {
        self.is_strict.load(Ordering::Relaxed)
    }
}

/// Whether every number of `from` is one of `to`.
fn holds(to: DType, from: DType) -> bool {
    match (to, from) {
        (to, from) if to == from => true,
        (_, DType::Bool) => true,
        (DType::F64, from) => from != DType::I64,
        (DType::F32 | DType::I32 | DType::U32, DType::U8) => true,
        (DType::I64, from) => from.is_integer(),
        _ => false,
    }
}

/// Whether a plain number beside an array keeps its value in `dtype`. A whole number must be exact; another number may
/// be rounded if `dtype` is a float. For arrays the result is true.
pub(super) fn fits(dtype: DType, operand: &Operand<'_>) -> bool {
    let number = match operand.0 {
        Kind::Number(number) => number,
        Kind::Beyond(number) => {
            let number = number as i128;
            return match dtype {
                DType::F64 => number as f64 as i128 == number,
                DType::F32 => number as f32 as i128 == number,
                _ => false,
            };
        }
        _ => return true,
    };
    let kept = number.cast(dtype);
    match (number, dtype) {
        (Scalar::Bool(_), _) => true,
        (Scalar::F64(v), DType::F64 | DType::F32) => {
            let kept = kept.as_f64();
            kept.is_finite() == v.is_finite() && (kept == 0.0) == (v == 0.0)
        }
        (Scalar::F64(v), _) => kept.as_f64() == v && v < 9_223_372_036_854_775_808.0,
        (Scalar::I64(v), DType::F64) => v as f64 as i128 == v as i128,
        (Scalar::I64(v), DType::F32) => v as f32 as i128 == v as i128,
        (Scalar::I64(_), _) => kept.cast(DType::I64).bits() == number.bits(),
        _ => true,
    }
}

/// Checks the operands of an elementwise op.
///
/// # Errors
/// `ErrorKind::DType` if the op would lose digits or range of one of them.
pub(super) fn check(op: ElementOp, operands: &[Operand<'_>]) -> Result<()> {
    let rule = op.info().rule;
    // The mask of `Select` does not take part in the mix of dtypes.
    let values = match rule {
        DTypeRule::Test | DTypeRule::Logic | DTypeRule::Cast => return Ok(()),
        DTypeRule::Select => operands.get(1..).unwrap_or_default(),
        DTypeRule::Arithmetic | DTypeRule::Real | DTypeRule::Comparison => operands,
    };
    let mut types: SmallVec<[ArgType; 3]> = operands.iter().filter_map(Operand::arg_type).collect();
    let Ok(signature) = signature_of(op, operands, &mut types) else { return Ok(()) };
    let to = if rule == DTypeRule::Comparison { signature.compute } else { signature.result };
    let dtypes: SmallVec<[DType; 3]> =
        values.iter().filter_map(Operand::array).filter_map(|array| array.dtype().ok()).collect();
    // An i64 and a float are compared exactly.
    let is_exact = rule == DTypeRule::Comparison && dtypes.contains(&DType::I64);
    for (&dtype, operand) in dtypes.iter().zip(values.iter().filter(|operand| operand.array().is_some())) {
        if !(holds(to, dtype) || is_exact && to == DType::F64) {
            let other = values.iter().find(|other| !std::ptr::eq(*other, operand)).map(name);
            return Err(refused(dtype.name(), other.as_deref(), to, Some(dtype)));
        }
    }
    for operand in values.iter().filter(|operand| operand.array().is_none()) {
        // Beside integers, a comparison is computed in a dtype that holds both.
        if !(fits(to, operand) || rule == DTypeRule::Comparison && to != DType::F32) {
            let other = dtypes.first().map(|dtype| dtype.name());
            return Err(refused(&name(operand), other, to, None));
        }
    }
    Ok(())
}

/// The name of an operand in an error.
fn name(operand: &Operand<'_>) -> String {
    match &operand.0 {
        Kind::Number(number @ Scalar::I64(_)) => format!("the whole number {number}"),
        Kind::Number(number) => format!("the number {:?} ({})", number.as_f64(), number.dtype()),
        Kind::Beyond(number) => format!("the whole number {number}"),
        _ => operand.array().and_then(|array| array.dtype().ok()).map_or_else(String::new, |dtype| dtype.to_string()),
    }
}

/// The error of an operand that would lose digits or range as `to`: an array of dtype `own`, or a plain number
/// (`None`).
fn refused(losing: &str, beside: Option<&str>, to: DType, own: Option<DType>) -> Error {
    let beside = beside.map_or_else(String::new, |beside| format!(" beside {beside}"));
    let advice = match (own, to) {
        (None, _) => format!("write .cast::<f64>() on the array, or a number that {to} holds"),
        (Some(_), DType::F64) => "write .cast::<f64>() on it if that is intended".to_owned(),
        (Some(own), _) => format!("write .cast::<{own}>() on the other side, or .cast::<{to}>() on this one"),
    };
    let message = format!(
        "{losing}{beside} would be taken as {to}, which loses digits or range, and promotion is strict: {advice}"
    );
    Error::new(ErrorKind::DType, message)
}

/// Checks a conversion that an op makes by itself, such as the sum of integers in f64.
///
/// # Errors
/// `ErrorKind::DType` if it would lose digits or range.
pub(super) fn converted(home: &Home, from: DType, to: DType) -> Result<()> {
    match home.is_strict() && !holds(to, from) {
        true => Err(refused(from.name(), None, to, Some(from))),
        false => Ok(()),
    }
}

/// Checks a value that is written into an array of dtype `to`.
///
/// # Errors
/// As [`converted`].
pub(super) fn written(home: &Home, value: &Operand<'_>, to: DType) -> Result<()> {
    if !home.is_strict() {
        return Ok(());
    }
    match value.array().map(Array::dtype).transpose()? {
        Some(from) => converted(home, from, to),
        None if fits(to, value) => Ok(()),
        None => Err(refused(&name(value), Some(to.name()), to, None)),
    }
}

/// Converts every number above `i64::MAX` to f64 (OPERAND-1). Comparisons, logic and tests accept it beside any array.
///
/// # Errors
/// `ErrorKind::DType` if another op has an array of integers; if promotion is strict, also if it has an array of floats
/// that do not hold the number.
pub(super) fn settle(op: ElementOp, operands: &mut [Operand<'_>]) -> Result<()> {
    if !operands.iter().any(|operand| matches!(operand.0, Kind::Beyond(_))) {
        return Ok(());
    }
    let first = (op == ElementOp::Select) as usize;
    let arrays = || operands.iter().skip(first).filter_map(Operand::array);
    let dtypes = || arrays().filter_map(|array| array.dtype().ok());
    let integer = dtypes().find(|dtype| dtype.is_integer());
    let float = dtypes().find(|dtype| dtype.is_float()).filter(|_| arrays().any(|array| array.0.home.is_strict()));
    let is_value = !matches!(op.info().rule, DTypeRule::Comparison | DTypeRule::Logic | DTypeRule::Test);
    for operand in operands {
        if let Kind::Beyond(number) = operand.0 {
            if let Some(dtype) = integer.filter(|_| is_value) {
                return Err(beyond(number, dtype));
            }
            if let Some(dtype) = float.filter(|&dtype| is_value && !fits(dtype, operand)) {
                return Err(refused(&name(operand), Some(dtype.name()), dtype, None));
            }
            operand.0 = Kind::Number(Scalar::F64(number as f64));
        }
    }
    Ok(())
}

/// The error of a whole number that no dtype holds beside an array of integers.
pub(super) fn beyond(number: u64, dtype: DType) -> Error {
    let message = format!(
        "{number} is above the greatest i64, and no dtype holds it beside {dtype}; write it as f64, or cast the array"
    );
    Error::new(ErrorKind::DType, message)
}
