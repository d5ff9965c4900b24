//! Functions of one array, element by element: a row for each function, and one engine for all.
//!
//! In: an array of any class. Out: the function's values. In host memory a function computes in double (complex if the
//! argument is complex, or if a value leaves the real domain) and rounds to the class. On the runtime its method is
//! recorded, with a check of the data if the function has a limited real domain.

use super::degrees::{Turn, degrees, in_degrees, turned};
use super::faddeeva;
use super::parts::{angle, angles, complex_sign, gammas, imag, log2, nextpow2, round, sign, signs, tested};
use crate::builtins::{Builtin, Outcome, Reach, row};
use crate::env::{Env, FaultLabel};
use crate::error::{Flow, fail};
use crate::ops::{self, Elements, Host, complex::c, complex_in_class, in_class, lazy, type_name};
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use std::f64::consts::{LN_2, LN_10, PI};
use tidemill::Array;

/// A function of one array.
pub(crate) struct Map {
    /// The function's name in messages.
    pub name: &'static str,
    /// The function of a real number.
    pub real: fn(f64) -> f64,
    /// The function of many numbers, in a loop of its own, since a call for each element would cost more than some
    /// functions.
    pub reals: fn(&[f64]) -> Vec<f64>,
    /// The function of complex numbers.
    pub complex: Complex,
    /// The limit of the real domain.
    pub beyond: Option<&'static Beyond>,
    /// The function on the runtime.
    pub runtime: Option<fn(&Array) -> Array>,
    /// The treatment of integer classes.
    pub integers: Integers,
    /// Whether characters count as numbers.
    pub chars: bool,
}

/// A loop over many numbers, in which the function is known.
macro_rules! each {
    ($real:expr) => {
        |x| x.iter().map(|&x| ($real)(x)).collect()
    };
}
pub(super) use each;

/// The treatment of complex numbers.
pub(crate) enum Complex {
    /// They are refused.
    No,
    /// The result is complex.
    To(fn(Complex64) -> Complex64),
    /// The result is real.
    ToReal(fn(Complex64) -> f64),
}

/// The treatment of integer classes.
#[derive(Clone, Copy)]
pub(crate) enum Integers {
    /// The result is double.
    Double,
    /// The class stays. This function computes 64-bit integers.
    Keep(fn(i128) -> i128),
}

/// The limit of a real domain.
pub(crate) struct Beyond {
    /// Whether a number lies outside.
    pub test: fn(f64) -> bool,
    /// The complex value for a number outside.
    pub value: fn(f64) -> Complex64,
    /// The check on the runtime: true if a number lies inside, or is NaN.
    pub sound: fn(&Array) -> Array,
    /// A description of the numbers outside.
    pub what: &'static str,
}

static NEGATIVE_ROOT: Beyond =
    Beyond { test: |x| x < 0.0, value: |x| c(0.0, (-x).sqrt()), sound: |x| !x.lt(0.0), what: "of a negative number" };
static NEGATIVE_LOG: Beyond = Beyond { value: ops::complex::ln_beyond, ..of_negative() };
pub(super) static NEGATIVE_LOG2: Beyond = Beyond { value: |x| c((-x).log2(), PI / LN_2), ..of_negative() };
static NEGATIVE_LOG10: Beyond = Beyond { value: |x| c((-x).log10(), PI / LN_10), ..of_negative() };
static BELOW_LOG1P: Beyond = Beyond {
    test: |x| x < -1.0,
    value: |x| c((-(1.0 + x)).ln(), PI),
    sound: |x| !x.lt(-1.0),
    what: "of a number below -1",
};
static BEYOND_ASIN: Beyond = Beyond { value: ops::complex::asin_beyond, ..of_more_than_1() };
static BEYOND_ACOS: Beyond = Beyond { value: ops::complex::acos_beyond, ..of_more_than_1() };
static BEYOND_ATANH: Beyond = Beyond { value: |x| ops::complex::atanh(c(x, 0.0)), ..of_more_than_1() };
static BELOW_ACOSH: Beyond = Beyond {
    test: |x| x < 1.0,
    value: |x| ops::complex::acosh(c(x, 0.0)),
    sound: |x| !x.lt(1.0),
    what: "of a number below 1",
};
static NEGATIVE_GAMMA: Beyond = Beyond {
    test: |x| x < 0.0 && x.floor() != x && x.is_finite() && (x.floor() / 2.0).trunc() != x.floor() / 2.0,
    value: |x| c(libm::lgamma(x), PI),
    sound: |x| {
        let half = x.floor() / 2.0;
        !x.lt(0.0) | x.floor().eq_to(x) | half.fix().eq_to(&half)
    },
    what: "of a negative value of the gamma function",
};

const fn of_negative() -> Beyond {
    Beyond { test: |x| x < 0.0, value: |x| c(x, 0.0), sound: |x| !x.lt(0.0), what: "of a negative number" }
}

const fn of_more_than_1() -> Beyond {
    Beyond { test: |x| x.abs() > 1.0, value: |x| c(x, 0.0), sound: |x| !x.abs().gt(1.0), what: "of a number beyond 1" }
}

/// Makes a row of a function of one argument.
macro_rules! one {
    ($name:literal, $summary:literal, $run:expr) => {
        Builtin {
            name: $name,
            args_min: 1,
            args_max: 1,
            outputs_max: 1,
            reach: Reach::Script,
            usage: concat!($name, " (x)"),
            summary: $summary,
            run: $run,
        }
    };
}

/// Makes a row of a function of real and complex numbers whose result is a float.
macro_rules! map {
    ($name:literal, $summary:literal, $real:expr, $complex:expr, $runtime:expr) => {
        map!($name, $summary, $real, $complex, $runtime, None)
    };
    ($name:literal, $summary:literal, $real:expr, $complex:expr, $runtime:expr, $beyond:expr) => {
        one!($name, $summary, |i, a, _| {
            static MAP: Map = Map {
                name: $name,
                real: $real,
                reals: each!($real),
                complex: $complex,
                beyond: $beyond,
                runtime: $runtime,
                integers: Integers::Double,
                chars: false,
            };
            Ok(apply(&mut i.env, &MAP, &a[0])?.into())
        })
    };
}

/// Makes a row of a function that keeps the class of integers.
macro_rules! keep {
    ($name:literal, $message:literal, $chars:literal, $summary:literal, $real:expr, $wide:expr, $complex:expr, $runtime:expr) => {
        one!($name, $summary, |i, a, _| {
            static MAP: Map = Map {
                name: $message,
                real: $real,
                reals: each!($real),
                complex: $complex,
                beyond: None,
                runtime: $runtime,
                integers: Integers::Keep($wide),
                chars: $chars,
            };
            Ok(apply(&mut i.env, &MAP, &a[0])?.into())
        })
    };
}

/// Makes a row of a test of each element.
macro_rules! test {
    ($name:literal, $summary:literal, $test:expr, $runtime:expr) => {
        one!($name, $summary, |i, a, _| { Ok(tested(&mut i.env, $name, &a[0], $test, $runtime)?.into()) })
    };
}

/// Makes a row of a function that is computed by others: of the reciprocal, or as the reciprocal of another.
macro_rules! reciprocal {
    (of $name:literal, $summary:literal, $inner:literal) => {
        one!($name, $summary, |i, a, n| {
            let y = call(i, $inner, &a[0], n)?;
            Ok(ops::binary(&mut i.env, BinaryOp::Div, &Value::Num(1.0), &y)?.into())
        })
    };
    (to $name:literal, $summary:literal, $outer:literal $(, $beyond:literal)?) => {
        one!($name, $summary, |i, a, n| {
            let x = ops::binary(&mut i.env, BinaryOp::Div, &Value::Num(1.0), &a[0])?;
            let beyond: &[&str] = &[$($beyond)?];
            let label = FaultLabel { name: $name, beyond: beyond.first().copied(), is_real: false };
            Ok(with_fault_label(i, label, |i| call(i, $outer, &x, n))?.into())
        })
    };
}

use Complex::{No, To, ToReal};

/// The functions.
#[rustfmt::skip]
pub static ROWS: &[Builtin] = &[
    keep!("abs", "abs", true, "The absolute value.", f64::abs, i128::abs, ToReal(ops::complex::abs), Some(Array::abs)),
    keep!("sign", "signum", false, "-1, 0 or 1.", sign, i128::signum, To(complex_sign), Some(signs)),
    map!("sqrt", "The square root.", f64::sqrt, To(ops::complex::sqrt), Some(Array::sqrt), Some(&NEGATIVE_ROOT)),
    map!("cbrt", "The real cube root.", f64::cbrt, No, None),
    map!("exp", "e to the power x.", f64::exp, To(ops::complex::exp), Some(Array::exp)),
    map!("expm1", "exp (x) - 1, exact near 0.", f64::exp_m1, To(ops::complex::exp_m1), Some(Array::expm1)),
    map!("log", "The natural logarithm.", f64::ln, To(ops::complex::ln), Some(Array::log), Some(&NEGATIVE_LOG)),
    map!("log1p", "log (1 + x), exact near 0.", f64::ln_1p, To(ops::complex::ln_1p), Some(Array::log1p), Some(&BELOW_LOG1P)),
    row("log2", 1, 1, 2, "[f, e] = log2 (x)", "The logarithm to base 2; with two outputs, fractions and exponents.", log2),
    map!("log10", "The logarithm to base 10.", f64::log10, To(ops::complex::log10), Some(Array::log10), Some(&NEGATIVE_LOG10)),
    map!("sin", "The sine of radians.", f64::sin, To(ops::complex::sin), Some(Array::sin)),
    map!("cos", "The cosine of radians.", f64::cos, To(ops::complex::cos), Some(Array::cos)),
    map!("cospi", "The cosine of pi x, exact where it is 0, 1 or -1.", |x| super::bessel_values::turn(x).0 + 0.0, No, Some(Array::cospi)),
    map!("tan", "The tangent of radians.", f64::tan, To(ops::complex::tan), Some(Array::tan)),
    reciprocal!(of "sec", "1 / cos (x).", "cos"),
    reciprocal!(of "csc", "1 / sin (x).", "sin"),
    reciprocal!(of "cot", "1 / tan (x).", "tan"),
    map!("asin", "The angle whose sine is x.", f64::asin, To(ops::complex::asin), Some(Array::asin), Some(&BEYOND_ASIN)),
    map!("acos", "The angle whose cosine is x.", f64::acos, To(ops::complex::acos), Some(Array::acos), Some(&BEYOND_ACOS)),
    map!("atan", "The angle whose tangent is x.", f64::atan, To(ops::complex::atan), Some(Array::atan)),
    reciprocal!(to "asec", "The angle whose secant is x.", "acos", "of a number between -1 and 1"),
    reciprocal!(to "acsc", "The angle whose cosecant is x.", "asin", "of a number between -1 and 1"),
    reciprocal!(to "acot", "The angle whose cotangent is x.", "atan"),
    map!("sinh", "The hyperbolic sine.", f64::sinh, To(ops::complex::sinh), Some(Array::sinh)),
    map!("cosh", "The hyperbolic cosine.", f64::cosh, To(ops::complex::cosh), Some(Array::cosh)),
    map!("tanh", "The hyperbolic tangent.", f64::tanh, To(ops::complex::tanh), Some(Array::tanh)),
    reciprocal!(of "sech", "1 / cosh (x).", "cosh"),
    reciprocal!(of "csch", "1 / sinh (x).", "sinh"),
    reciprocal!(of "coth", "1 / tanh (x).", "tanh"),
    map!("asinh", "The number whose hyperbolic sine is x.", libm::asinh, To(ops::complex::asinh), Some(Array::asinh)),
    map!("acosh", "The number whose hyperbolic cosine is x.", libm::acosh, To(ops::complex::acosh), Some(Array::acosh), Some(&BELOW_ACOSH)),
    map!("atanh", "The number whose hyperbolic tangent is x.", libm::atanh, To(ops::complex::atanh), Some(Array::atanh), Some(&BEYOND_ATANH)),
    reciprocal!(to "asech", "The number whose hyperbolic secant is x.", "acosh", "of a number outside of 0 to 1"),
    reciprocal!(to "acsch", "The number whose hyperbolic cosecant is x.", "asinh"),
    reciprocal!(to "acoth", "The number whose hyperbolic cotangent is x.", "atanh", "of a number between -1 and 1"),
    keep!("floor", "floor", true, "Rounds towards minus infinity.", f64::floor, |x| x, To(|z| c(z.re.floor(), z.im.floor())), Some(Array::floor)),
    keep!("ceil", "ceil", true, "Rounds towards infinity.", f64::ceil, |x| x, To(|z| c(z.re.ceil(), z.im.ceil())), Some(Array::ceil)),
    keep!("fix", "fix", true, "Rounds towards zero.", f64::trunc, |x| x, To(|z| c(z.re.trunc(), z.im.trunc())), Some(Array::fix)),
    row("round", 1, 3, 1, "round (x, digits, kind)", "The nearest integers, half away from zero; or to so many decimal or significant digits.", round),
    keep!("real", "real", true, "The real part.", |x| x, |x| x, ToReal(|z| z.re), Some(Array::clone)),
    one!("imag", "The imaginary part.", imag),
    keep!("conj", "conj", false, "The complex conjugate.", |x| x, |x| x, To(|z| z.conj()), Some(Array::clone)),
    map!("arg", "The angle of a complex number.", angle, ToReal(ops::complex::arg), Some(angles)),
    map!("angle", "The angle of a complex number.", angle, ToReal(ops::complex::arg), Some(angles)),
    test!("isnan", "Whether each element is NaN.", f64::is_nan, Array::isnan),
    test!("isinf", "Whether each element is infinite.", f64::is_infinite, Array::isinf),
    test!("isfinite", "Whether each element is neither NaN nor infinite.", f64::is_finite, Array::isfinite),
    map!("gamma", "The gamma function.", super::special::gamma, No, Some(gammas)),
    map!("lgamma", "The logarithm of the gamma function.", super::special::ln_gamma, No, Some(Array::lgamma), Some(&NEGATIVE_GAMMA)),
    map!("gammaln", "The logarithm of the gamma function.", super::special::ln_gamma, No, Some(Array::lgamma), Some(&NEGATIVE_GAMMA)),
    map!("erf", "The error function.", libm::erf, To(faddeeva::erf), Some(Array::erf)),
    map!("erfc", "1 - erf (x), exact where it is small.", libm::erfc, To(faddeeva::erfc), None),
    map!("erfcx", "exp (x^2) * erfc (x).", super::special::erfc_scaled, To(faddeeva::erfcx), None),
    map!("erfi", "The imaginary error function, -i erf (ix).", faddeeva::erfi_real, To(faddeeva::erfi), None),
    map!("dawson", "Dawson's function, sqrt (pi)/2 exp (-x^2) erfi (x).", faddeeva::dawson_real, To(faddeeva::dawson), None),
    map!("erfinv", "The number whose error function is x.", super::special::erf_inverse, No, None),
    map!("erfcinv", "The number whose complementary error function is x.", super::special::erfc_inverse, No, None),
    row("sind", 1, 1, 1, "sind (x)", "The sine of degrees, exact at multiples of 30.", |i, a, _| degrees(i, "sind", &a[0], Turn::Sine)),
    row("cosd", 1, 1, 1, "cosd (x)", "The cosine of degrees, exact at multiples of 30.", |i, a, _| degrees(i, "cosd", &a[0], Turn::Cosine)),
    row("tand", 1, 1, 1, "tand (x)", "The tangent of degrees, exact at multiples of 45.", |i, a, _| degrees(i, "tand", &a[0], Turn::Tangent)),
    row("asind", 1, 1, 1, "asind (x)", "The angle in degrees whose sine is x.", |i, a, n| in_degrees(i, ("asind", "asin"), &a[0], n)),
    row("acosd", 1, 1, 1, "acosd (x)", "The angle in degrees whose cosine is x.", |i, a, n| in_degrees(i, ("acosd", "acos"), &a[0], n)),
    row("atand", 1, 1, 1, "atand (x)", "The angle in degrees whose tangent is x.", |i, a, n| in_degrees(i, ("atand", "atan"), &a[0], n)),
    reciprocal!(of "secd", "1 / cosd (x).", "cosd"),
    reciprocal!(of "cscd", "1 / sind (x).", "sind"),
    reciprocal!(of "cotd", "1 / tand (x).", "tand"),
    row("deg2rad", 1, 1, 1, "deg2rad (x)", "Degrees as radians.", |i, a, _| turned(i, "deg2rad: DEG", &a[0], PI / 180.0)),
    row("rad2deg", 1, 1, 1, "rad2deg (x)", "Radians as degrees.", |i, a, _| turned(i, "rad2deg: RAD", &a[0], 180.0 / PI)),
    row("nextpow2", 1, 1, 1, "nextpow2 (x)", "The least n with 2^n >= abs (x).", nextpow2),
    row("realsqrt", 1, 1, 1, "realsqrt (x)", "The square root; an error where it is complex.", |i, a, n| {
        must_be_real(i, "realsqrt", |i| call(i, "sqrt", &a[0], n))
    }),
    row("reallog", 1, 1, 1, "reallog (x)", "The natural logarithm; an error where it is complex.", |i, a, n| {
        must_be_real(i, "reallog", |i| call(i, "log", &a[0], n))
    }),
];

/// Returns an error if the result is complex, for arrays of the runtime, too.
pub(crate) fn must_be_real(
    interp: &mut Interp,
    name: &'static str,
    value: impl FnOnce(&mut Interp) -> Flow<Value>,
) -> Flow<Outcome> {
    let value = with_fault_label(interp, FaultLabel { name, beyond: None, is_real: true }, value)?;
    if value.is_complex() { fail!("{name}: produced complex result") } else { Ok(value.into()) }
}

/// Runs `f`. Faults of arrays that it records name the function in `label`.
pub(super) fn with_fault_label<T>(
    interp: &mut Interp,
    label: FaultLabel,
    f: impl FnOnce(&mut Interp) -> Flow<T>,
) -> Flow<T> {
    interp.env.fault_label = Some(label);
    let result = f(interp);
    interp.env.fault_label = None;
    result
}

/// Calls another builtin of one argument, by its name.
pub fn call(interp: &mut Interp, name: &str, x: &Value, outputs: usize) -> Flow<Value> {
    let Some(builtin) = crate::builtins::find(name) else { return fail!("'{name}' undefined") };
    match builtin.call(interp, std::slice::from_ref(x), outputs.min(1))? {
        Outcome::Values(mut values) if !values.is_empty() => Ok(values.remove(0)),
        _ => fail!("{name}: there is no value"),
    }
}

/// Applies a function to a value.
///
/// # Errors
/// Classes that the function does not take.
#[inline]
pub(crate) fn apply(env: &mut Env, map: &Map, x: &Value) -> Flow<Value> {
    if let Value::Num(x) = x
        && map.beyond.is_none_or(|b| !(b.test)(*x))
    {
        return Ok(Value::Num((map.real)(*x)));
    }
    general(env, map, x)
}

fn general(env: &mut Env, map: &Map, x: &Value) -> Flow<Value> {
    let class = check(map, x)?;
    let result = match class {
        Class::Single => Class::Single,
        class if class.is_integer() && matches!(map.integers, Integers::Keep(_)) => class,
        _ => Class::Double,
    };
    let big = x.len() > env.options.host_elements_max && matches!(x, Value::Tensor(_)) && !leaves(map, x);
    let away = matches!(x, Value::Lazy(_)) || big;
    if let (true, false, Some(method), Some(_)) = (away, x.is_complex(), map.runtime, result.dtype()) {
        return recorded(env, map, method, x, result);
    }
    let host = Host::of(env, x)?;
    let dims = Dims::new(host.dims());
    let value = Value::tensor(Tensor::new(dims, image(map, &host, result)?));
    let stays = x.is_diagonal() && matches!(map.name, "abs" | "sqrt" | "real" | "imag" | "conj");
    Ok(if stays { value.diagonal() } else { value })
}

/// Whether values in host memory leave the real domain. Then the result is complex, and stays in host memory.
fn leaves(map: &Map, x: &Value) -> bool {
    match (map.beyond, x) {
        (Some(beyond), Value::Tensor(t)) => t.data.any_real(beyond.test),
        _ => false,
    }
}

/// Returns an error for classes that a function does not take.
pub(super) fn check(map: &Map, x: &Value) -> Flow<Class> {
    let class = x.class();
    match class {
        Class::Cell | Class::Struct | Class::Function => fail!("{}: not defined for {}", map.name, type_name(x, false)),
        Class::Char if !map.chars => fail!("{}: argument must be numeric", map.name),
        _ if x.is_complex() && matches!(map.complex, Complex::No) => {
            fail!("{}: not defined for {}", map.name, type_name(x, false))
        }
        _ => Ok(class),
    }
}

fn recorded(env: &Env, map: &Map, method: fn(&Array) -> Array, x: &Value, class: Class) -> Flow<Value> {
    let own = x.class();
    let array = lazy::lift(env, x, if own.dtype().is_some() { own } else { class })?;
    let array = if array.dtype()?.is_float() || class.is_integer() { array } else { array.cast::<f64>() };
    let image = method(&array);
    // The elements in host memory were checked before.
    let (Some(beyond), Value::Lazy(_)) = (map.beyond, x) else {
        return lazy::record_from(env, image, class, &[x]);
    };
    let (op, words) = FaultLabel::describe(env.fault_label, map.name, beyond.what);
    let image = lazy::guarded(&image, op, &(beyond.sound)(&array), &words);
    let (pinned, _) = lazy::marks(&[x]);
    lazy::record(env, image, class, pinned, true)
}

/// Computes the result in host memory. Many elements are computed in blocks, since they are computed as doubles.
fn image(map: &Map, host: &Host<'_>, class: Class) -> Flow<Data> {
    let elements = host.elements();
    let leaves = !host.is_complex()
        && map.beyond.is_some_and(|beyond| match elements {
            Elements::Data(data) => data.any_real(beyond.test),
            one => one.reals().iter().any(|&x| (beyond.test)(x)),
        });
    match elements {
        Elements::Data(data) => data.in_blocks(|block| Ok(image_of(map, Elements::Data(block), class, leaves))),
        one => Ok(image_of(map, one, class, leaves)),
    }
}

/// Computes the result for elements, some of which leave the real domain if `leaves`.
fn image_of(map: &Map, elements: Elements<'_>, class: Class, leaves: bool) -> Data {
    if let Elements::Data(Data::C64(_) | Data::C32(_)) = elements {
        let z = elements.complexes_in(class);
        return match map.complex {
            Complex::ToReal(f) => in_class(class, z.iter().map(|&z| f(z)).collect()),
            Complex::To(f) => complex_in_class(class, z.iter().map(|&z| f(z)).collect()),
            Complex::No => in_class(class, z.iter().map(|z| (map.real)(z.re)).collect()),
        };
    }
    if let (true, Integers::Keep(f)) = (ops::is_wide(class), map.integers) {
        return ops::in_wide_class(class, elements.integers().into_iter().map(f));
    }
    let x = elements.reals();
    match map.beyond {
        Some(beyond) if leaves => {
            let value = |&x: &f64| if (beyond.test)(x) { (beyond.value)(x) } else { c((map.real)(x), 0.0) };
            complex_in_class(class, x.iter().map(value).collect())
        }
        _ => in_class(class, (map.reals)(&x)),
    }
}

#[cfg(test)]
mod tests;
