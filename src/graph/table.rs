//! The op table (contract stub: the owner of this file replaces it by the declared-once table).

use super::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// An elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ElementOp {
    Neg,
    Abs,
    Sign,
    Sqrt,
    Square,
    Reciprocal,
    Exp,
    Expm1,
    Exp2,
    Log,
    Log1p,
    Log2,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Floor,
    Ceil,
    Round,
    Fix,
    IsNan,
    IsInf,
    IsFinite,
    Not,
    Erf,
    Gamma,
    Lgamma,
    Sigmoid,
    Cast,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Mod,
    Rem,
    Atan2,
    Hypot,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Xor,
    Select,
    Clamp,
}

/// The dtype of an argument, and whether it is a plain number that adapts to its partner.
#[derive(Clone, Copy, Debug)]
pub struct ArgType {
    /// Its dtype.
    pub dtype: DType,
    /// A Rust scalar (f64 or i64): f32 stays f32.
    pub weak: bool,
    /// It has one element (MATLAB lets a scalar double meet an integer array).
    pub scalar: bool,
}

/// What an elementwise op computes in and yields. `Select`'s mask is bool and stands outside of `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The recorder casts every argument to this first.
    pub compute: DType,
    /// The op's own result; bool for comparisons.
    pub output: DType,
    /// Where it differs from `output`, the recorder appends a cast to this (an integer array times 0.5 computes
    /// in f64 and comes back to the integer).
    pub result: DType,
}

impl ElementOp {
    /// The name that users know it by.
    pub fn name(self) -> &'static str {
        match self {
            ElementOp::Neg => "neg",
            ElementOp::Abs => "abs",
            ElementOp::Sign => "sign",
            ElementOp::Sqrt => "sqrt",
            ElementOp::Square => "square",
            ElementOp::Reciprocal => "reciprocal",
            ElementOp::Exp => "exp",
            ElementOp::Expm1 => "expm1",
            ElementOp::Exp2 => "exp2",
            ElementOp::Log => "log",
            ElementOp::Log1p => "log1p",
            ElementOp::Log2 => "log2",
            ElementOp::Log10 => "log10",
            ElementOp::Sin => "sin",
            ElementOp::Cos => "cos",
            ElementOp::Tan => "tan",
            ElementOp::Asin => "asin",
            ElementOp::Acos => "acos",
            ElementOp::Atan => "atan",
            ElementOp::Sinh => "sinh",
            ElementOp::Cosh => "cosh",
            ElementOp::Tanh => "tanh",
            ElementOp::Asinh => "asinh",
            ElementOp::Acosh => "acosh",
            ElementOp::Atanh => "atanh",
            ElementOp::Floor => "floor",
            ElementOp::Ceil => "ceil",
            ElementOp::Round => "round",
            ElementOp::Fix => "fix",
            ElementOp::IsNan => "isnan",
            ElementOp::IsInf => "isinf",
            ElementOp::IsFinite => "isfinite",
            ElementOp::Not => "not",
            ElementOp::Erf => "erf",
            ElementOp::Gamma => "gamma",
            ElementOp::Lgamma => "lgamma",
            ElementOp::Sigmoid => "sigmoid",
            ElementOp::Cast => "cast",
            ElementOp::Add => "add",
            ElementOp::Sub => "sub",
            ElementOp::Mul => "mul",
            ElementOp::Div => "div",
            ElementOp::Pow => "pow",
            ElementOp::Mod => "mod",
            ElementOp::Rem => "rem",
            ElementOp::Atan2 => "atan2",
            ElementOp::Hypot => "hypot",
            ElementOp::Min => "min",
            ElementOp::Max => "max",
            ElementOp::Eq => "eq",
            ElementOp::Ne => "ne",
            ElementOp::Lt => "lt",
            ElementOp::Le => "le",
            ElementOp::Gt => "gt",
            ElementOp::Ge => "ge",
            ElementOp::And => "and",
            ElementOp::Or => "or",
            ElementOp::Xor => "xor",
            ElementOp::Select => "select",
            ElementOp::Clamp => "clamp",
        }
    }

    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        0
    }

    /// The dtypes it computes in and yields.
    ///
    /// # Errors
    /// `ErrorKind::DType` where the arguments' dtypes do not mix.
    pub fn signature(self, _args: &[ArgType]) -> Result<Signature> {
        Err(Error::new(ErrorKind::DType, "contract stub"))
    }
}
