//! A row of the op table as data. Columns that only tests and measuring programs read are compiled for them alone.

use super::ElementOp;
use super::gradient::{Expr, Gradient};
use super::op_table;
use super::rules::DTypeRule;
#[cfg(any(test, feature = "testing"))]
use crate::graph::DType;
use crate::graph::costs::{DIVISION, EXPONENTIAL, SIMPLE, SPECIAL, TRIGONOMETRIC};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E, LOG10_E, PI};

/// The facts about an op, beside its code.
#[derive(Debug)]
pub struct OpInfo {
    /// The op.
    #[cfg(any(test, feature = "testing"))]
    pub op: ElementOp,
    /// The name by which users know the op.
    pub name: &'static str,
    /// The number of arguments that it takes.
    pub arity: usize,
    /// The op's function, in words.
    #[cfg(any(test, feature = "testing"))]
    pub doc: &'static str,
    /// How the op's dtypes follow from those of its arguments.
    pub rule: DTypeRule,
    /// Simple operations that an element takes (`graph::costs`).
    pub cost: u32,
    /// The derivatives by the op's arguments.
    pub gradient: Gradient,
    /// The f32 expression that `Precision::Fast` writes in WGSL: `#0` is the argument, `#f32(..)` a constant.
    #[cfg(feature = "gpu")]
    pub fast: Option<&'static str>,
    /// Arguments with the results that they give.
    #[cfg(any(test, feature = "testing"))]
    pub examples: &'static [Example],
}

/// Arguments and the result that they must give; truth values are 1 and 0.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug)]
pub struct Example {
    /// The dtype in which it is computed; examples in f64 also hold in f32, to its precision.
    pub dtype: DType,
    /// The arguments.
    pub args: &'static [f64],
    /// The result.
    pub expected: f64,
}

#[cfg(any(test, feature = "testing"))]
const fn example(dtype: DType, args: &'static [f64], expected: f64) -> Example {
    Example { dtype, args, expected }
}

#[cfg(any(test, feature = "testing"))]
const INFINITY: f64 = f64::INFINITY;
#[cfg(any(test, feature = "testing"))]
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
        rule $rule:ident; cost { $cost:expr }; body { $($body:tt)* }; fast { $fast:expr }; gradient { $gradient:expr };
        examples { $examples:expr }])*) => {
        pub(super) static TABLE: &[OpInfo] = &[$(OpInfo {
            #[cfg(any(test, feature = "testing"))]
            op: ElementOp::$variant,
            name: $name,
            arity: $arity,
            #[cfg(any(test, feature = "testing"))]
            doc: $doc,
            rule: DTypeRule::$rule,
            cost: $cost,
            gradient: $gradient,
            #[cfg(feature = "gpu")]
            fast: $fast,
            #[cfg(any(test, feature = "testing"))]
            examples: $examples,
        },)*];
    };
}
op_table! { derive_table }
