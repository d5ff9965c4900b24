//! The op table: every elementwise op, declared once.
//!
//! A row of `op_table!` says an op's name, arity, meaning in words, dtype rule, cost, semantic functions, gradient
//! and examples. Everything else is derived: the enum and its information here, the host's loops in
//! `kernels::element::host`, the WGSL in `kernels::element::wgsl`, and the tests of all of them. `docs/add-an-op.md`
//! is the checklist for a new row.
//!
//! A row's `body` is the op's family and its functions in `graph::semantics`:
//! - `real1 f`, `real2 f`: f32 and f64; `f | test, g` computes with `g` what `test` finds too hard for `f`;
//! - `number1 f, i`, `number2 f, i`, `number3 f, i`: floats by `f`, integers by `i` (`f | test, g, i` as above);
//! - `test1 f, i`: floats and integers to bool; `compare f`: two numbers or bools to bool;
//! - `logic1 f`, `logic2 f`: bools; `select` and `cast`: their own.

// The values of examples are written out, as the expectations of tests are.
#![allow(clippy::approx_constant)]

mod gradient;
// Examples contain logarithms and angles, written out.
#[allow(clippy::approx_constant)]
mod info;
mod rules;

use super::costs::Cost;
pub use gradient::{Expr, Factor, Gradient};
#[cfg(test)]
pub use info::Example;
pub use info::OpInfo;
pub use rules::{ArgType, DTypeRule, Signature};

/// Hands the rows to another macro: `op_table! { derive }` is `derive! { row row .. }`.
macro_rules! op_table {
    ($then:ident) => {
        $then! {
            [Neg, "neg", 1, "`-x`; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::neg, integer::neg };
                fast { None };
                gradient { Gradient::Rule(&[k(-1.0)]) };
                examples { &[example(DType::F64, &[2.0], -2.0), example(DType::F64, &[0.0], -0.0), example(DType::I32, &[-2147483648.0], 2147483647.0), example(DType::U8, &[3.0], 0.0)] }]
            [Abs, "abs", 1, "The absolute value; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::abs, integer::abs };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Sign, X)]) };
                examples { &[example(DType::F64, &[-2.5], 2.5), example(DType::F64, &[-INFINITY], INFINITY), example(DType::I32, &[-2147483648.0], 2147483647.0)] }]
            [Sign, "sign", 1, "-1, 0 or 1; NaN stays NaN."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::sign, integer::sign };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0)]) };
                examples { &[example(DType::F64, &[-2.5], -1.0), example(DType::F64, &[0.0], 0.0), example(DType::F64, &[NAN], NAN), example(DType::I32, &[-7.0], -1.0), example(DType::U8, &[9.0], 1.0)] }]
            [Sqrt, "sqrt", 1, "The square root; NaN of negative numbers."
                rule Real;
                cost { DIVISION };
                body { real1 arithmetic::sqrt };
                fast { Some("sqrt(#0)") };
                gradient { Gradient::Rule(&[ap!(Div, k(0.5), OUT)]) };
                examples { &[example(DType::F64, &[2.25], 1.5), example(DType::F64, &[-1.0], NAN), example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Square, "square", 1, "`x * x`; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::square, integer::square };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Mul, k(2.0), X)]) };
                examples { &[example(DType::F64, &[-1.5], 2.25), example(DType::I32, &[65536.0], 2147483647.0), example(DType::U8, &[15.0], 225.0)] }]
            [Reciprocal, "reciprocal", 1, "`1 / x`; integers round half away from zero."
                rule Arithmetic;
                cost { DIVISION };
                body { number1 arithmetic::reciprocal, integer::reciprocal };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Neg, ap!(Mul, OUT, OUT))]) };
                examples { &[example(DType::F64, &[4.0], 0.25), example(DType::F64, &[-0.0], -INFINITY), example(DType::I32, &[-2.0], -1.0), example(DType::I32, &[3.0], 0.0)] }]
            [Exp, "exp", 1, "e to the power x."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 exponential::exp_near | exponential::exp_is_far, exponential::exp };
                fast { Some("exp(#0)") };
                gradient { Gradient::Rule(&[OUT]) };
                examples { &[example(DType::F64, &[0.0], 1.0), example(DType::F64, &[1.0], 2.718281828459045), example(DType::F64, &[-1000.0], 0.0), example(DType::F64, &[1000.0], INFINITY), example(DType::F64, &[NAN], NAN)] }]
            [Expm1, "expm1", 1, "`exp(x) - 1`, accurate near 0."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 exponential::expm1 };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Add, OUT, k(1.0))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1e-20], 1e-20), example(DType::F64, &[1.0], 1.718281828459045), example(DType::F64, &[-INFINITY], -1.0), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Exp2, "exp2", 1, "2 to the power x."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 exponential::exp2 };
                fast { Some("exp2(#0)") };
                gradient { Gradient::Rule(&[ap!(Mul, OUT, k(LN_2))]) };
                examples { &[example(DType::F64, &[10.0], 1024.0), example(DType::F64, &[0.5], 1.4142135623730951), example(DType::F64, &[-INFINITY], 0.0)] }]
            [Log, "log", 1, "The natural logarithm; NaN of negative numbers."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 logarithm::log };
                fast { Some("log(#0)") };
                gradient { Gradient::Rule(&[ap!(Reciprocal, X)]) };
                examples { &[example(DType::F64, &[1.0], 0.0), example(DType::F64, &[10.0], 2.302585092994046), example(DType::F64, &[0.0], -INFINITY), example(DType::F64, &[-1.0], NAN), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Log1p, "log1p", 1, "`log(1 + x)`, accurate near 0."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 logarithm::log1p };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Add, X, k(1.0)))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1e-20], 1e-20), example(DType::F64, &[1.0], 0.6931471805599453), example(DType::F64, &[-1.0], -INFINITY), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Log2, "log2", 1, "The logarithm to base 2, exact for powers of two."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 logarithm::log2 };
                fast { Some("log2(#0)") };
                gradient { Gradient::Rule(&[ap!(Div, k(LOG2_E), X)]) };
                examples { &[example(DType::F64, &[8.0], 3.0), example(DType::F64, &[0.125], -3.0), example(DType::F64, &[10.0], 3.321928094887362), example(DType::F64, &[0.0], -INFINITY)] }]
            [Log10, "log10", 1, "The logarithm to base 10."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 logarithm::log10 };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Div, k(LOG10_E), X)]) };
                examples { &[example(DType::F64, &[1000.0], 3.0), example(DType::F64, &[0.01], -2.0), example(DType::F64, &[2.0], 0.3010299956639812), example(DType::F64, &[0.0], -INFINITY)] }]
            [Sin, "sin", 1, "The sine of x radians."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 trigonometric::sin | trigonometric::is_large, trigonometric::sin_large };
                fast { Some("sin(#0)") };
                gradient { Gradient::Rule(&[ap!(Cos, X)]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1.0], 0.8414709848078965), example(DType::F64, &[1e+22], -0.8522008497671888), example(DType::F64, &[INFINITY], NAN)] }]
            [Cos, "cos", 1, "The cosine of x radians."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 trigonometric::cos | trigonometric::is_large, trigonometric::cos_large };
                fast { Some("cos(#0)") };
                gradient { Gradient::Rule(&[ap!(Neg, ap!(Sin, X))]) };
                examples { &[example(DType::F64, &[0.0], 1.0), example(DType::F64, &[2.0], -0.4161468365471424), example(DType::F64, &[1e+22], 0.5232147853951389), example(DType::F64, &[INFINITY], NAN)] }]
            [Cospi, "cospi", 1, "The cosine of pi times x."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 trigonometric::cospi };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Mul, k(-PI), ap!(Sin, ap!(Mul, k(PI), X)))]) };
                examples { &[example(DType::F64, &[0.0], 1.0), example(DType::F64, &[0.25], 0.7071067811865476), example(DType::F64, &[0.5], 0.0), example(DType::F64, &[-1.5], 0.0), example(DType::F64, &[2.75], -0.7071067811865476), example(DType::F64, &[3.0], -1.0), example(DType::F64, &[1e+22], 1.0), example(DType::F64, &[INFINITY], NAN), example(DType::F64, &[NAN], NAN)] }]
            [Tan, "tan", 1, "The tangent of x radians."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 trigonometric::tan | trigonometric::is_large, trigonometric::tan_large };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Add, ap!(Square, OUT), k(1.0))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1.0], 1.5574077246549023), example(DType::F64, &[2.0], -2.185039863261519), example(DType::F64, &[1e+22], -1.628778225606898), example(DType::F64, &[INFINITY], NAN)] }]
            [Asin, "asin", 1, "The angle whose sine is x; NaN outside of -1..1."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 inverse::asin };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Sqrt, ap!(Sub, k(1.0), ap!(Square, X))))]) };
                examples { &[example(DType::F64, &[0.5], 0.5235987755982989), example(DType::F64, &[-1.0], -1.5707963267948966), example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1.5], NAN)] }]
            [Acos, "acos", 1, "The angle whose cosine is x; NaN outside of -1..1."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 inverse::acos };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Neg, ap!(Reciprocal, ap!(Sqrt, ap!(Sub, k(1.0), ap!(Square, X)))))]) };
                examples { &[example(DType::F64, &[0.5], 1.0471975511965979), example(DType::F64, &[-1.0], 3.141592653589793), example(DType::F64, &[1.0], 0.0), example(DType::F64, &[1.5], NAN)] }]
            [Atan, "atan", 1, "The angle whose tangent is x."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 inverse::atan };
                fast { Some("atan(#0)") };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Add, k(1.0), ap!(Square, X)))]) };
                examples { &[example(DType::F64, &[1.0], 0.7853981633974483), example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[INFINITY], 1.5707963267948966), example(DType::F64, &[-3.0], -1.2490457723982544)] }]
            [Sinh, "sinh", 1, "The hyperbolic sine."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 hyperbolic::sinh };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Cosh, X)]) };
                examples { &[example(DType::F64, &[1.0], 1.1752011936438014), example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[-3.0], -10.017874927409903), example(DType::F64, &[1000.0], INFINITY)] }]
            [Cosh, "cosh", 1, "The hyperbolic cosine."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 hyperbolic::cosh };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Sinh, X)]) };
                examples { &[example(DType::F64, &[0.0], 1.0), example(DType::F64, &[1.0], 1.5430806348152437), example(DType::F64, &[-INFINITY], INFINITY)] }]
            [Tanh, "tanh", 1, "The hyperbolic tangent."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 hyperbolic::tanh };
                fast { Some("tanh(clamp(#0, #f32(-20.0), #f32(20.0)))") };
                gradient { Gradient::Rule(&[ap!(Sub, k(1.0), ap!(Square, OUT))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[0.5], 0.46211715726000974), example(DType::F64, &[-2.0], -0.9640275800758169), example(DType::F64, &[INFINITY], 1.0)] }]
            [Asinh, "asinh", 1, "The number whose hyperbolic sine is x."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 hyperbolic::asinh };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Hypot, X, k(1.0)))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[1.0], 0.881373587019543), example(DType::F64, &[1e+300], 691.4686750787736), example(DType::F64, &[-INFINITY], -INFINITY)] }]
            [Acosh, "acosh", 1, "The number whose hyperbolic cosine is x; NaN below 1."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 hyperbolic::acosh };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Mul, ap!(Sqrt, ap!(Sub, X, k(1.0))), ap!(Sqrt, ap!(Add, X, k(1.0)))))]) };
                examples { &[example(DType::F64, &[1.0], 0.0), example(DType::F64, &[2.0], 1.3169578969248166), example(DType::F64, &[0.5], NAN), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Atanh, "atanh", 1, "The number whose hyperbolic tangent is x; NaN outside of -1..1."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real1 hyperbolic::atanh };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, ap!(Sub, k(1.0), ap!(Square, X)))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[0.5], 0.5493061443340548), example(DType::F64, &[-1.0], -INFINITY), example(DType::F64, &[1.5], NAN)] }]
            [Floor, "floor", 1, "The greatest integer not above x."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::floor, integer::same };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0)]) };
                examples { &[example(DType::F64, &[-1.5], -2.0), example(DType::F64, &[2.7], 2.0), example(DType::I32, &[5.0], 5.0)] }]
            [Ceil, "ceil", 1, "The least integer not below x."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::ceil, integer::same };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0)]) };
                examples { &[example(DType::F64, &[-1.5], -1.0), example(DType::F64, &[2.2], 3.0), example(DType::I32, &[5.0], 5.0)] }]
            [Round, "round", 1, "The nearest integer, half away from zero."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::round, integer::same };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0)]) };
                examples { &[example(DType::F64, &[-2.5], -3.0), example(DType::F64, &[0.5], 1.0), example(DType::F64, &[0.49999999999999994], 0.0), example(DType::F64, &[2.2], 2.0), example(DType::I32, &[5.0], 5.0)] }]
            [Fix, "fix", 1, "The integer next to zero."
                rule Arithmetic;
                cost { SIMPLE };
                body { number1 arithmetic::fix, integer::same };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0)]) };
                examples { &[example(DType::F64, &[-1.5], -1.0), example(DType::F64, &[1.7], 1.0), example(DType::I32, &[5.0], 5.0)] }]
            [IsNan, "isnan", 1, "Whether x is NaN."
                rule Test;
                cost { SIMPLE };
                body { test1 arithmetic::isnan, integer::never };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[NAN], 1.0), example(DType::F64, &[INFINITY], 0.0), example(DType::I32, &[0.0], 0.0)] }]
            [IsInf, "isinf", 1, "Whether x is an infinity."
                rule Test;
                cost { SIMPLE };
                body { test1 arithmetic::isinf, integer::never };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[-INFINITY], 1.0), example(DType::F64, &[NAN], 0.0), example(DType::F64, &[1.0], 0.0), example(DType::I32, &[0.0], 0.0)] }]
            [IsFinite, "isfinite", 1, "Whether x is neither NaN nor an infinity."
                rule Test;
                cost { SIMPLE };
                body { test1 arithmetic::isfinite, integer::always };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[1.0], 1.0), example(DType::F64, &[NAN], 0.0), example(DType::F64, &[INFINITY], 0.0), example(DType::I32, &[0.0], 1.0)] }]
            [Not, "not", 1, "Logical not; numbers count as true where they are not zero."
                rule Logic;
                cost { SIMPLE };
                body { logic1 arithmetic::not };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::Bool, &[0.0], 1.0), example(DType::Bool, &[1.0], 0.0)] }]
            [Erf, "erf", 1, "The error function."
                rule Real;
                cost { SPECIAL };
                body { real1 special::erf };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Mul, k(FRAC_2_SQRT_PI), ap!(Exp, ap!(Neg, ap!(Square, X))))]) };
                examples { &[example(DType::F64, &[-0.0], -0.0), example(DType::F64, &[0.5], 0.5204998778130465), example(DType::F64, &[-2.0], -0.9953222650189527), example(DType::F64, &[INFINITY], 1.0)] }]
            [Gamma, "gamma", 1, "The gamma function; NaN at negative integers."
                rule Real;
                cost { SPECIAL };
                body { real1 special::gamma };
                fast { None };
                gradient { Gradient::None("its derivative needs digamma, which the table lacks") };
                examples { &[example(DType::F64, &[5.0], 24.0), example(DType::F64, &[0.5], 1.772453850905516), example(DType::F64, &[-1.5], 2.3632718012073544), example(DType::F64, &[-1.0], NAN), example(DType::F64, &[0.0], INFINITY)] }]
            [Lgamma, "lgamma", 1, "The logarithm of the absolute value of the gamma function."
                rule Real;
                cost { SPECIAL };
                body { real1 special::lgamma };
                fast { None };
                gradient { Gradient::None("its derivative needs digamma, which the table lacks") };
                examples { &[example(DType::F32, &[4.085003425410169e36], INFINITY), example(DType::F64, &[1.0], 0.0), example(DType::F64, &[10.0], 12.801827480081469), example(DType::F64, &[0.5], 0.5723649429247001), example(DType::F64, &[-1.5], 0.8600470153764809), example(DType::F64, &[-1.0], INFINITY), example(DType::F64, &[INFINITY], INFINITY)] }]
            [Sigmoid, "sigmoid", 1, "`1 / (1 + exp(-x))`."
                rule Real;
                cost { EXPONENTIAL };
                body { real1 hyperbolic::sigmoid };
                fast { Some("(#f32(1.0) / (#f32(1.0) + exp(-(#0))))") };
                gradient { Gradient::Rule(&[ap!(Mul, OUT, ap!(Sub, k(1.0), OUT))]) };
                examples { &[example(DType::F64, &[0.0], 0.5), example(DType::F64, &[2.0], 0.8807970779778823), example(DType::F64, &[-INFINITY], 0.0), example(DType::F64, &[INFINITY], 1.0)] }]
            [Cast, "cast", 1, "To another dtype: to integers by rounding half away from zero and saturating, NaN to 0; to bool by \"is not zero\"."
                rule Cast;
                cost { SIMPLE };
                body { cast };
                fast { None };
                gradient { Gradient::Rule(&[k(1.0)]) };
                examples { &[example(DType::F64, &[2.5], 2.5)] }]
            [Add, "add", 2, "`a + b`; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number2 arithmetic::add, integer::add };
                fast { None };
                gradient { Gradient::Rule(&[k(1.0), k(1.0)]) };
                examples { &[example(DType::F64, &[1.5, 2.0], 3.5), example(DType::F64, &[INFINITY, -INFINITY], NAN), example(DType::I32, &[2147483647.0, 1.0], 2147483647.0), example(DType::U8, &[200.0, 100.0], 255.0), example(DType::I64, &[4.611686018427388e+18, 4.611686018427388e+18], 9.223372036854776e+18)] }]
            [Sub, "sub", 2, "`a - b`; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number2 arithmetic::sub, integer::sub };
                fast { None };
                gradient { Gradient::Rule(&[k(1.0), k(-1.0)]) };
                examples { &[example(DType::F64, &[1.5, 2.0], -0.5), example(DType::I32, &[-2147483648.0, 1.0], -2147483648.0), example(DType::U8, &[3.0, 5.0], 0.0)] }]
            [Mul, "mul", 2, "`a * b`; integers saturate."
                rule Arithmetic;
                cost { SIMPLE };
                body { number2 arithmetic::mul, integer::mul };
                fast { None };
                gradient { Gradient::Rule(&[Y, X]) };
                examples { &[example(DType::F64, &[1.5, -2.0], -3.0), example(DType::F64, &[0.0, INFINITY], NAN), example(DType::I32, &[65536.0, -65536.0], -2147483648.0), example(DType::U8, &[16.0, 15.0], 240.0)] }]
            [Div, "div", 2, "`a / b`; integers round half away from zero, `x / 0` saturates, `0 / 0` is 0."
                rule Arithmetic;
                cost { DIVISION };
                body { number2 arithmetic::div, integer::div };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Reciprocal, Y), ap!(Neg, ap!(Div, OUT, Y))]) };
                examples { &[example(DType::F64, &[1.0, 4.0], 0.25), example(DType::F64, &[1.0, -0.0], -INFINITY), example(DType::I32, &[7.0, 2.0], 4.0), example(DType::I32, &[-7.0, 2.0], -4.0), example(DType::I32, &[-5.0, 0.0], -2147483648.0), example(DType::I32, &[0.0, 0.0], 0.0), example(DType::I32, &[-2147483648.0, -1.0], 2147483647.0), example(DType::U8, &[5.0, 3.0], 2.0)] }]
            [Pow, "pow", 2, "`a` to the power `b`; NaN for a negative base and a fractional exponent; integers saturate."
                rule Arithmetic;
                cost { TRIGONOMETRIC };
                body { number2 power::pow, integer::pow };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Select, ap!(Eq, Y, k(0.0)), k(0.0), ap!(Mul, Y, ap!(Pow, X, ap!(Sub, Y, k(1.0))))), ap!(Select, ap!(Eq, X, k(0.0)), k(0.0), ap!(Mul, OUT, ap!(Log, X)))]) };
                examples { &[example(DType::F64, &[2.0, 10.0], 1024.0), example(DType::F64, &[-2.0, 3.0], -8.0), example(DType::F64, &[-8.0, 0.5], NAN), example(DType::F64, &[0.0, 0.0], 1.0), example(DType::F64, &[-0.0, -3.0], -INFINITY), example(DType::F64, &[NAN, 0.0], 1.0), example(DType::F64, &[1.7, 2.3], 3.388695291147646), example(DType::I32, &[-3.0, 3.0], -27.0), example(DType::I32, &[2.0, -1.0], 1.0), example(DType::I32, &[10.0, 10.0], 2147483647.0), example(DType::U8, &[2.0, 7.0], 128.0)] }]
            [Mod, "mod", 2, "The remainder with the divisor's sign; `mod(x, 0)` is x."
                rule Arithmetic;
                cost { DIVISION };
                body { number2 arithmetic::modulo | arithmetic::remainder_is_long, arithmetic::modulo_long, integer::modulo };
                fast { None };
                gradient { Gradient::Rule(&[k(1.0), ap!(Neg, ap!(Floor, ap!(Div, X, Y)))]) };
                examples { &[example(DType::F64, &[-1.0, 3.0], 2.0), example(DType::F64, &[5.5, 2.0], 1.5), example(DType::F64, &[5.0, -3.0], -1.0), example(DType::F64, &[5.0, 0.0], 5.0), example(DType::F64, &[1e+300, 7.0], 1.0), example(DType::F64, &[INFINITY, 3.0], NAN), example(DType::I32, &[-7.0, 3.0], 2.0), example(DType::I32, &[7.0, 0.0], 7.0)] }]
            [Rem, "rem", 2, "The remainder with the dividend's sign; `rem(x, 0)` is NaN, of integers 0."
                rule Arithmetic;
                cost { DIVISION };
                body { number2 arithmetic::rem | arithmetic::remainder_is_long, arithmetic::rem_long, integer::rem };
                fast { None };
                gradient { Gradient::Rule(&[k(1.0), ap!(Neg, ap!(Fix, ap!(Div, X, Y)))]) };
                examples { &[example(DType::F64, &[-1.0, 3.0], -1.0), example(DType::F64, &[5.5, 2.0], 1.5), example(DType::F64, &[5.0, 0.0], NAN), example(DType::F64, &[1e+300, 7.0], 1.0), example(DType::F64, &[2.0, INFINITY], 2.0), example(DType::I32, &[-7.0, 3.0], -1.0), example(DType::I32, &[7.0, 0.0], 0.0)] }]
            [Atan2, "atan2", 2, "The angle of the point with ordinate `a` and abscissa `b`."
                rule Real;
                cost { TRIGONOMETRIC };
                body { real2 inverse::atan2 };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Div, Y, ap!(Add, ap!(Square, X), ap!(Square, Y))), ap!(Neg, ap!(Div, X, ap!(Add, ap!(Square, X), ap!(Square, Y))))]) };
                examples { &[example(DType::F64, &[1.0, 1.0], 0.7853981633974483), example(DType::F64, &[0.0, -1.0], 3.141592653589793), example(DType::F64, &[-0.0, -1.0], -3.141592653589793), example(DType::F64, &[-2.0, -3.0], -2.5535900500422257), example(DType::F64, &[INFINITY, INFINITY], 0.7853981633974483), example(DType::F64, &[0.0, 0.0], 0.0)] }]
            [Hypot, "hypot", 2, "`sqrt(a^2 + b^2)` without overflow."
                rule Real;
                cost { DIVISION };
                body { real2 power::hypot };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Div, X, OUT), ap!(Div, Y, OUT)]) };
                examples { &[example(DType::F64, &[3.0, 4.0], 5.0), example(DType::F64, &[1e+300, 1e+300], 1.4142135623730952e+300), example(DType::F64, &[INFINITY, NAN], INFINITY), example(DType::F64, &[NAN, 1.0], NAN)] }]
            [Min, "min", 2, "The lesser of two; a number wins over NaN."
                rule Arithmetic;
                cost { SIMPLE };
                body { number2 arithmetic::min, integer::min };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Select, ap!(Or, ap!(Gt, X, Y), ap!(IsNan, X)), k(0.0), k(1.0)), ap!(Select, ap!(Or, ap!(Gt, X, Y), ap!(IsNan, X)), k(1.0), k(0.0))]) };
                examples { &[example(DType::F64, &[1.0, 2.0], 1.0), example(DType::F64, &[NAN, 2.0], 2.0), example(DType::F64, &[1.0, NAN], 1.0), example(DType::I32, &[-1.0, 1.0], -1.0)] }]
            [Max, "max", 2, "The greater of two; a number wins over NaN."
                rule Arithmetic;
                cost { SIMPLE };
                body { number2 arithmetic::max, integer::max };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Select, ap!(Or, ap!(Lt, X, Y), ap!(IsNan, X)), k(0.0), k(1.0)), ap!(Select, ap!(Or, ap!(Lt, X, Y), ap!(IsNan, X)), k(1.0), k(0.0))]) };
                examples { &[example(DType::F64, &[1.0, 2.0], 2.0), example(DType::F64, &[NAN, 2.0], 2.0), example(DType::F64, &[1.0, NAN], 1.0), example(DType::I32, &[-1.0, 1.0], 1.0)] }]
            [Eq, "eq", 2, "`a == b`."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::eq };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[1.0, 1.0], 1.0), example(DType::F64, &[NAN, NAN], 0.0), example(DType::F64, &[0.0, -0.0], 1.0), example(DType::I32, &[1.0, 2.0], 0.0), example(DType::Bool, &[1.0, 1.0], 1.0)] }]
            [Ne, "ne", 2, "`a != b`; true where one is NaN."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::ne };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[1.0, 1.0], 0.0), example(DType::F64, &[NAN, NAN], 1.0), example(DType::I32, &[1.0, 2.0], 1.0)] }]
            [Lt, "lt", 2, "`a < b`."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::lt };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[1.0, 2.0], 1.0), example(DType::F64, &[NAN, 1.0], 0.0), example(DType::Bool, &[0.0, 1.0], 1.0), example(DType::U8, &[200.0, 100.0], 0.0)] }]
            [Le, "le", 2, "`a <= b`."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::le };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[2.0, 2.0], 1.0), example(DType::F64, &[NAN, 1.0], 0.0)] }]
            [Gt, "gt", 2, "`a > b`."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::gt };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[1.0, 2.0], 0.0), example(DType::F64, &[NAN, 1.0], 0.0), example(DType::I32, &[-1.0, -2.0], 1.0)] }]
            [Ge, "ge", 2, "`a >= b`."
                rule Comparison;
                cost { SIMPLE };
                body { compare arithmetic::ge };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::F64, &[2.0, 2.0], 1.0), example(DType::F64, &[NAN, 1.0], 0.0)] }]
            [And, "and", 2, "Logical and."
                rule Logic;
                cost { SIMPLE };
                body { logic2 arithmetic::and };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::Bool, &[1.0, 1.0], 1.0), example(DType::Bool, &[1.0, 0.0], 0.0)] }]
            [Or, "or", 2, "Logical or."
                rule Logic;
                cost { SIMPLE };
                body { logic2 arithmetic::or };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::Bool, &[1.0, 0.0], 1.0), example(DType::Bool, &[0.0, 0.0], 0.0)] }]
            [Xor, "xor", 2, "Exclusive or."
                rule Logic;
                cost { SIMPLE };
                body { logic2 arithmetic::xor };
                fast { None };
                gradient { Gradient::None("its result is a truth value") };
                examples { &[example(DType::Bool, &[1.0, 0.0], 1.0), example(DType::Bool, &[1.0, 1.0], 0.0)] }]
            [Select, "select", 3, "`a` where the mask is true, else `b`."
                rule Select;
                cost { SIMPLE };
                body { select };
                fast { None };
                gradient { Gradient::Rule(&[k(0.0), ap!(Select, X, k(1.0), k(0.0)), ap!(Select, X, k(0.0), k(1.0))]) };
                examples { &[example(DType::F64, &[1.0, 2.0, 3.0], 2.0), example(DType::F64, &[0.0, 2.0, 3.0], 3.0)] }]
            [Clamp, "clamp", 3, "x no less than `low` and no greater than `high`, which wins; NaN stays NaN."
                rule Arithmetic;
                cost { SIMPLE };
                body { number3 arithmetic::clamp, integer::clamp };
                fast { None };
                gradient { Gradient::Rule(&[ap!(Select, ap!(And, ap!(Ge, X, Y), ap!(Le, X, Z)), k(1.0), k(0.0)), ap!(Select, ap!(And, ap!(Lt, X, Y), ap!(Le, Y, Z)), k(1.0), k(0.0)), ap!(Select, ap!(Or, ap!(Gt, X, Z), ap!(Gt, Y, Z)), k(1.0), k(0.0))]) };
                examples { &[example(DType::F64, &[5.0, 0.0, 1.0], 1.0), example(DType::F64, &[-5.0, 0.0, 1.0], 0.0), example(DType::F64, &[0.5, 0.0, 1.0], 0.5), example(DType::F64, &[NAN, 0.0, 1.0], NAN), example(DType::I32, &[7.0, 0.0, 3.0], 3.0)] }]
        }
    };
}
pub(crate) use op_table;

macro_rules! derive_enum {
    ($([$variant:ident, $name:literal, $arity:literal, $doc:literal
        rule $rule:ident; cost { $cost:expr }; body { $($body:tt)* }; fast { $fast:expr }; gradient { $gradient:expr };
        examples { $examples:expr }])*) => {
        /// An elementwise op.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ElementOp {
            $(#[doc = $doc] $variant,)*
        }

        impl ElementOp {
            /// Every op, in the order of the table.
            #[cfg(any(test, feature = "testing"))]
            pub const ALL: &'static [ElementOp] = &[$(ElementOp::$variant,)*];
        }
    };
}
op_table! { derive_enum }

impl ElementOp {
    /// Its row.
    pub fn info(self) -> &'static OpInfo {
        &info::TABLE[self as usize]
    }

    /// The op that users know by this name.
    #[cfg(any(test, feature = "testing"))]
    pub fn by_name(name: &str) -> Option<ElementOp> {
        ElementOp::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// The name that users know it by.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        self.info().arity
    }

    /// The cost of the op.
    pub fn cost(self) -> Cost {
        Cost::Each(self.info().cost)
    }

    /// The dtypes in which the op computes and that it yields. For `Cast`, both are the argument's dtype; the target is
    /// the node's.
    ///
    /// # Errors
    /// `ErrorKind::DType` where the arguments' dtypes do not mix.
    pub fn signature(self, args: &[ArgType]) -> crate::error::Result<Signature> {
        rules::signature(self, args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_at_its_own_number_under_a_name_of_its_own() {
        for (at, &op) in ElementOp::ALL.iter().enumerate() {
            assert_eq!(op as usize, at);
            assert_eq!(op.info().op, op);
            assert_eq!(ElementOp::by_name(op.name()), Some(op), "{} is taken twice", op.name());
        }
    }

    #[test]
    fn every_row_has_examples_and_gradients_of_its_arity() {
        for op in ElementOp::ALL {
            let info = op.info();
            assert!(!info.examples.is_empty(), "{} has no example", info.name);
            for example in info.examples {
                assert_eq!(example.args.len(), info.arity, "{}", info.name);
            }
            if let Gradient::Rule(parts) = info.gradient {
                assert_eq!(parts.len(), info.arity, "{}", info.name);
            }
        }
    }
}
