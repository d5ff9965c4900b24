//! Matrices of dlarrays: quotients, powers, inverses, determinants and traces are recorded, since the host's results would
//! have no derivatives.
//!
//! In: operands, at least one of them a `dlarray`. Out: an array of the runtime; `None` for shapes that need another method,
//! which the host has. A singular matrix is an error where the result is read.

use super::lazy::{lift, record_from};
use super::linear::matrix_class;
use crate::env::Env;
use crate::error::Flow;
use crate::syntax::ast::BinaryOp;
use crate::value::Value;
use tidemill::Array;

/// The greatest magnitude of the exponent of a matrix power, which is a product of matrices.
const EXPONENT_MAX: f64 = 1e6;

/// A function of a square matrix.
#[derive(Clone, Copy)]
pub(crate) enum Function {
    Inverse,
    Determinant,
    Trace,
}

/// Whether it is a square matrix of real numbers with elements.
fn is_square(value: &Value) -> bool {
    let dims = value.dims();
    dims.len() == 2 && dims.rows() == dims.columns() && !value.is_empty() && !value.is_complex()
}

/// Records a function of a matrix, if it is a square dlarray.
///
/// # Errors
/// Faults of the matrix.
pub(crate) fn function(env: &Env, function: Function, a: &Value) -> Flow<Option<Value>> {
    let class = a.class();
    if !a.is_dlarray() || !class.is_float() || !is_square(a) {
        return Ok(None);
    }
    let matrix = lift(env, a, class)?;
    let array = match function {
        Function::Inverse => matrix.inv(),
        Function::Determinant => matrix.det(),
        Function::Trace => matrix.diag(0).sum(..),
    };
    record_from(env, array, class, &[a]).map(Some)
}

/// Records an operator of matrices, if one of them is a dlarray.
///
/// # Errors
/// Shapes and classes that do not fit; faults of the operands.
pub(crate) fn operator(env: &Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Option<Value>> {
    let is_of_elements = if op == BinaryOp::MatDiv { b.is_scalar() } else { a.is_scalar() };
    if !a.is_dlarray() && !b.is_dlarray() || is_of_elements || a.is_complex() || b.is_complex() {
        return Ok(None);
    }
    let class = matrix_class(op, a, b)?;
    let both = || Ok::<_, crate::error::Stop>((lift(env, a, class)?, lift(env, b, class)?));
    let array = match op {
        BinaryOp::MatLeftDiv if is_square(a) && b.dims().len() == 2 && a.dims().rows() == b.dims().rows() => {
            let (a, b) = both()?;
            a.solve(&b)
        }
        BinaryOp::MatDiv if is_square(b) && a.dims().len() == 2 && a.dims().columns() == b.dims().columns() => {
            let (a, b) = both()?;
            b.t().solve(&a.t()).t()
        }
        BinaryOp::MatPow if is_square(a) => match b {
            Value::Num(n) if n.fract() == 0.0 && *n != 0.0 && n.abs() <= EXPONENT_MAX => {
                power(&lift(env, a, class)?, *n)
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    record_from(env, array, class, &[a, b]).map(Some)
}

/// The power of a matrix by a whole number that is not 0, by repeated squares.
fn power(a: &Array, exponent: f64) -> Array {
    let mut square = if exponent < 0.0 { a.inv() } else { a.clone() };
    let mut rest = exponent.abs() as u64;
    let mut product: Option<Array> = None;
    loop {
        if rest % 2 == 1 {
            product = Some(product.map_or_else(|| square.clone(), |product| product.matmul(&square)));
        }
        rest /= 2;
        match (rest, product) {
            (0, Some(product)) => return product,
            (_, other) => product = other,
        }
        square = square.matmul(&square);
    }
}
