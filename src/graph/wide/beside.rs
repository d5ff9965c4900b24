//! What an elementwise op does with an `i64` beside a number of f64: one arm an op, for all who compute it.

use crate::graph::ElementOp::{self, *};

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `a == b`.
    Equal,
    /// `a != b`.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessOrEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Equal => Comparison::Equal,
            Comparison::NotEqual => Comparison::NotEqual,
        }
    }
}

/// How an op's result with an `i64` and a number of f64 is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// By comparing with whole numbers near the number.
    Compare(Comparison),
    /// As a sum of parts of the number.
    Sum,
    /// As a sum with the negative number.
    Difference,
    /// As a product with parts of the number.
    Product,
    /// As a quotient by parts of the number.
    Quotient,
    /// As a remainder by parts of the number.
    Remainder,
    /// As a power, of `i64` where the number is whole.
    Power,
    /// With the number rounded first, which keeps the order.
    Extreme,
    /// As `Extreme`; two numbers.
    Bounds,
    /// With the number rounded first, as an assignment to the array would.
    Choice,
    /// In f64, or not at all: the op has no exact result beside a number.
    Apart,
}

/// How an elementwise op computes with an `i64` and a number of f64.
pub fn beside(op: ElementOp) -> Beside {
    match op {
        Eq => Beside::Compare(Comparison::Equal),
        Ne => Beside::Compare(Comparison::NotEqual),
        Lt => Beside::Compare(Comparison::Less),
        Le => Beside::Compare(Comparison::LessOrEqual),
        Gt => Beside::Compare(Comparison::Greater),
        Ge => Beside::Compare(Comparison::GreaterOrEqual),
        Add => Beside::Sum,
        Sub => Beside::Difference,
        Mul => Beside::Product,
        Div => Beside::Quotient,
        Mod | Rem => Beside::Remainder,
        Pow => Beside::Power,
        Min | Max => Beside::Extreme,
        Clamp => Beside::Bounds,
        Select => Beside::Choice,
        Atan2 | Hypot | And | Or | Xor => Beside::Apart,
        // Of one argument.
        Neg | Abs | Sign | Square | Sqrt | Reciprocal | Floor | Ceil | Round | Fix | Cast => Beside::Apart,
        Exp | Expm1 | Exp2 | Log | Log1p | Log2 | Log10 | Sigmoid | Tanh | Erf | Gamma | Lgamma => Beside::Apart,
        Sin | Cos | Cospi | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh => Beside::Apart,
        IsNan | IsInf | IsFinite | Not => Beside::Apart,
    }
}
