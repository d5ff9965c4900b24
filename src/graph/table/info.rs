//! A row of the op table as data, for tests, documentation and whoever asks.

use super::gradient::{Expr, Gradient};
use super::rules::DTypeRule;
use super::{ElementOp, op_table};
use crate::graph::DType;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E, LOG10_E};

// Short names for the table's examples.
const INFINITY: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// What is known of an op beside its code.
#[derive(Debug)]
pub struct OpInfo {
    /// The op.
    pub op: ElementOp,
    /// The name that users know it by.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arity: usize,
    /// What it computes, in words.
    pub doc: &'static str,
    /// How its dtypes follow from its arguments'.
    pub rule: DTypeRule,
    /// The derivatives by its arguments.
    pub gradient: Gradient,
    /// What `Precision::Fast` writes for f32 in WGSL: `#0` is the argument, `#f32(..)` a constant.
    pub fast: Option<&'static str>,
    /// Arguments and results.
    pub examples: &'static [Example],
}

/// Arguments and the result that they must give; truth values are 1 and 0.
#[derive(Debug)]
pub struct Example {
    /// What it is computed in; examples in f64 also hold in f32, to its precision.
    pub dtype: DType,
    /// The arguments.
    pub args: &'static [f64],
    /// The result.
    pub expected: f64,
}

const fn example(dtype: DType, args: &'static [f64], expected: f64) -> Example {
    Example { dtype, args, expected }
}

const INFINITY: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const X: Expr = Expr::Arg(0);
const Y: Expr = Expr::Arg(1);
const Z: Expr = Expr::Arg(2);
const OUT: Expr = Expr::Out;

const fn k(value: f64) -> Expr {
    Expr::Constant(value)
}

/// An op applied to expressions.
macro_rules! ap {
    ($op:ident, $($arg:expr),*) => { Expr::Apply(ElementOp::$op, &[$($arg),*]) };
}

macro_rules! derive_table {
    ($([$variant:ident, $name:literal, $arity:literal, $doc:literal
        rule $rule:ident; body { $($body:tt)* }; fast { $fast:expr }; gradient { $gradient:expr };
        examples { $examples:expr }])*) => {
        pub(super) static TABLE: &[OpInfo] = &[$(OpInfo {
            op: ElementOp::$variant,
            name: $name,
            arity: $arity,
            doc: $doc,
            rule: DTypeRule::$rule,
            gradient: $gradient,
            fast: $fast,
            examples: $examples,
        },)*];
    };
}
op_table! { derive_table }
