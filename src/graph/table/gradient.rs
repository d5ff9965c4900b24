//! Derivatives, written in the table's own ops.

use super::ElementOp;

/// An expression over an op's arguments and result. A graph of nodes can be built from it as well as a number.
#[derive(Clone, Copy, Debug)]
pub enum Expr {
    /// An argument of the op.
    Arg(u8),
    /// The op's result, so that it need not be computed again.
    Out,
    /// A number.
    Constant(f64),
    /// Another op.
    Apply(ElementOp, &'static [Expr]),
}

/// The derivatives of an op's result by its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Gradient {
    /// There is none, for this reason.
    None(&'static str),
    /// One partial derivative for each argument; the chain rule multiplies it with what arrives from above.
    Rule(&'static [Expr]),
}

impl Expr {
    /// Its value, given the arguments, the result and a way to compute ops.
    pub fn evaluate(&self, args: &[f64], out: f64, apply: &dyn Fn(ElementOp, &[f64]) -> f64) -> f64 {
        match self {
            Expr::Arg(n) => args[*n as usize],
            Expr::Out => out,
            Expr::Constant(value) => *value,
            Expr::Apply(op, parts) => {
                let values: Vec<f64> = parts.iter().map(|part| part.evaluate(args, out, apply)).collect();
                apply(*op, &values)
            }
        }
    }
}
