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

/// How a factor of a derivative is multiplied with what arrives from above, so that nothing is multiplied by 0 or 1.
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a> {
    /// Nothing arrives below: the factor is 0.
    Zero,
    /// What arrives passes as it is.
    One,
    /// Minus what another factor makes of it.
    Negated(&'a Expr),
    /// What the first factor makes of it, divided by the second.
    Quotient(&'a Expr, &'a Expr),
    /// It is divided by an expression.
    Over(&'a Expr),
    /// Where the first is true, what the second factor makes of it; elsewhere, what the third does.
    Chosen(&'a Expr, &'a Expr, &'a Expr),
    /// It is multiplied by the expression's value.
    Value,
}

impl Expr {
    /// How the expression is multiplied with what arrives from above.
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

    /// Its value, given the arguments, the result and a way to compute ops.
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
