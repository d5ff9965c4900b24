//! Derivatives, written in the table's own ops.

use super::ElementOp;

/// An expression over an op's arguments and result, from which numbers are computed or nodes of the graph are built.
#[derive(Clone, Copy, Debug)]
pub enum Expr {
    /// An argument of the op.
    Arg(u8),
    /// The op's result, which is not computed again.
    Out,
    /// A number.
    Constant(f64),
    /// Another op.
    Apply(ElementOp, &'static [Expr]),
}

/// The partial derivatives of an op's result by its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Gradient {
    /// There are none, for this reason.
    None(&'static str),
    /// One partial derivative for each argument; the chain rule multiplies it with the derivative by the op's result.
    Rule(&'static [Expr]),
}

/// How a partial derivative is multiplied with the derivative by the op's result, which is called `above` here, so that
/// nothing is multiplied by 0 or 1.
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a> {
    /// The product is 0.
    Zero,
    /// The product is `above`.
    One,
    /// The product is the negated product of the expression and `above`.
    Negated(&'a Expr),
    /// The product of the first expression and `above`, divided by the second.
    Quotient(&'a Expr, &'a Expr),
    /// `above` divided by the expression.
    Over(&'a Expr),
    /// The product of the second expression and `above` where the first is true, that of the third elsewhere.
    Chosen(&'a Expr, &'a Expr, &'a Expr),
    /// `above` times the value of the expression.
    Value,
}

impl Expr {
    /// How the expression is multiplied with the derivative by the op's result.
    pub fn factor(&self) -> Factor<'_> {
        match self {
            Expr::Constant(0.0) => Factor::Zero,
            Expr::Constant(1.0) => Factor::One,
            Expr::Constant(-1.0) => Factor::Negated(&Expr::Constant(1.0)),
            Expr::Apply(ElementOp::Neg, [part]) => Factor::Negated(part),
            Expr::Apply(ElementOp::Reciprocal, [part]) => Factor::Over(part),
            Expr::Apply(ElementOp::Div, [above, below]) => Factor::Quotient(above, below),
            Expr::Apply(ElementOp::Select, [mask, yes, no]) => Factor::Chosen(mask, yes, no),
            Expr::Arg(_) | Expr::Out | Expr::Constant(_) | Expr::Apply(..) => Factor::Value,
        }
    }

    /// The arguments that the expression reads, bit `i` for argument `i`, and whether it reads the result.
    pub fn reads(&self) -> (u8, bool) {
        match self {
            Expr::Arg(n) => (1 << n, false),
            Expr::Out => (0, true),
            Expr::Constant(_) => (0, false),
            Expr::Apply(_, parts) => parts.iter().map(Expr::reads).fold((0, false), |a, b| (a.0 | b.0, a.1 || b.1)),
        }
    }

    /// The expression's value, for the arguments, the result and a function that computes ops.
    #[cfg(test)]
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
