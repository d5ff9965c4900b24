//! How each elementwise op is computed with an `i64` beside a number of f64. Each op has one arm here, which all code
//! that computes it reads.

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
    /// As a sum with parts of the number.
    Sum,
    /// As a sum with the negated number.
    Difference,
    /// As a product with parts of the number.
    Product,
    /// As a quotient by parts of the number.
    Quotient,
    /// As a remainder by parts of the number.
    Remainder,
    /// As a power, on `i64` if the number is whole.
    Power,
    /// As the same op on the rounded number. Rounding keeps the order of numbers.
    Extreme,
    /// As `Extreme`, for an op with two numbers.
    Bounds,
    /// As the same op on the rounded number, which is what an assignment to the array would store.
    Choice,
    /// In f64 if at all: the op has no exact result beside a number.
    Apart,
}

/// How an elementwise op is computed with an `i64` and a number of f64.
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
        // These ops take one argument.
        Neg | Abs | Sign | Square | Sqrt | Reciprocal | Floor | Ceil | Round | Fix | Cast => Beside::Apart,
        Exp | Expm1 | Exp2 | Log | Log1p | Log2 | Log10 | Sigmoid | Tanh | Erf | Gamma | Lgamma => Beside::Apart,
        Sin | Cos | Cospi | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh => Beside::Apart,
        IsNan | IsInf | IsFinite | Not => Beside::Apart,
    }
}
