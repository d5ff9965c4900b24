//! Reference results: computed in f64 for functions of f32, and in 256-bit floats for functions of f64.

use astro_float::{BigFloat, Consts, RoundingMode, Sign};
use tidemill::testing::kernels::ElementOp;

/// A function in f64, whose error is far below the precision of f32.
pub fn in_doubles(op: ElementOp, x: &[f64]) -> f64 {
    let a = x[0];
    let b = x.get(1).copied().unwrap_or(0.0);
    match op {
        ElementOp::Sqrt => a.sqrt(),
        ElementOp::Exp => libm::exp(a),
        ElementOp::Expm1 => libm::expm1(a),
        ElementOp::Exp2 => libm::exp2(a),
        ElementOp::Log => libm::log(a),
        ElementOp::Log1p => libm::log1p(a),
        ElementOp::Log2 => libm::log2(a),
        ElementOp::Log10 => libm::log10(a),
        ElementOp::Sin => libm::sin(a),
        ElementOp::Cos => libm::cos(a),
        // The result is exact at the zeros. Elsewhere the rounding error is far below the precision of f32.
        ElementOp::Cospi if (a % 1.0).abs() == 0.5 => 0.0,
        ElementOp::Cospi => libm::cos(std::f64::consts::PI * (a % 2.0)),
        ElementOp::Tan => libm::tan(a),
        ElementOp::Asin => libm::asin(a),
        ElementOp::Acos => libm::acos(a),
        ElementOp::Atan => libm::atan(a),
        ElementOp::Sinh => libm::sinh(a),
        ElementOp::Cosh => libm::cosh(a),
        ElementOp::Tanh => libm::tanh(a),
        ElementOp::Asinh => libm::asinh(a),
        // `acosh` of libm returns numbers also for negative arguments.
        ElementOp::Acosh if a < 1.0 => f64::NAN,
        ElementOp::Acosh => libm::acosh(a),
        ElementOp::Atanh => libm::atanh(a),
        ElementOp::Erf => libm::erf(a),
        ElementOp::Gamma => gamma(a),
        ElementOp::Lgamma => libm::lgamma(a),
        ElementOp::Sigmoid if a < 0.0 => libm::exp(a) / (1.0 + libm::exp(a)),
        ElementOp::Sigmoid => 1.0 / (1.0 + libm::exp(-a)),
        ElementOp::Pow => libm::pow(a, b),
        ElementOp::Atan2 => libm::atan2(a, b),
        ElementOp::Hypot => libm::hypot(a, b),
        ElementOp::Rem => a % b,
        ElementOp::Mod if b == 0.0 => a,
        ElementOp::Mod => {
            let rest = a % b;
            if rest == 0.0 {
                rest.copysign(b)
            } else if (rest < 0.0) != (b < 0.0) {
                rest + b
            } else {
                rest
            }
        }
        other => panic!("no reference for {}", other.name()),
    }
}

/// `tgamma` of libm, with MATLAB's value at negative infinity.
fn gamma(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { f64::NAN } else { libm::tgamma(x) }
}

const PRECISION: usize = 256;
const ROUNDING: RoundingMode = RoundingMode::ToEven;

/// The arithmetic of wide references.
pub struct Reference {
    constants: Consts,
}

fn big(x: f64) -> BigFloat {
    if x == 0.0 || x.is_normal() {
        return BigFloat::from_f64(x, PRECISION);
    }
    // The conversion is wrong for subnormal numbers, so the number is scaled before it.
    let mut value = BigFloat::from_f64(x * 2f64.powi(300), PRECISION);
    value.set_exponent(value.exponent().unwrap_or(0) - 300);
    value
}

/// The leading 64 bits as a number in [1/2, 1), signed, and the exponent.
fn parts(x: &BigFloat) -> (f64, i32) {
    let Some((words, _, sign, exponent, _)) = x.as_raw_parts() else { return (f64::NAN, 0) };
    let top = words.last().copied().unwrap_or(0) as f64 / 18446744073709551616.0;
    (if sign == Sign::Neg { -top } else { top }, exponent)
}

fn to_f64(x: &BigFloat) -> f64 {
    if x.is_nan() {
        return f64::NAN;
    }
    if x.is_inf() {
        return if x.is_inf_pos() { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if x.is_zero() {
        return 0.0;
    }
    let (top, exponent) = parts(x);
    let half = exponent.clamp(-2200, 2200) / 2;
    top * 2f64.powi(half) * 2f64.powi(exponent.clamp(-2200, 2200) - half)
}

impl Reference {
    /// Allocates the constants.
    pub fn new() -> Reference {
        Reference { constants: Consts::new().expect("memory for constants") }
    }

    /// The error of `got` in ulp, and the exact value of the function.
    pub fn ulps(&mut self, op: ElementOp, args: &[f64], got: f64) -> (f64, f64) {
        // Exact functions, special values, and functions that the wide arithmetic lacks are computed in f64.
        let special = args.iter().any(|x| !x.is_finite() || *x == 0.0);
        let in_doubles = in_doubles(op, args);
        let by_doubles =
            matches!(op, ElementOp::Mod | ElementOp::Rem | ElementOp::Erf | ElementOp::Gamma | ElementOp::Lgamma);
        if special || by_doubles || in_doubles.is_nan() || args == [1.0] {
            let same = got == in_doubles || got.is_nan() && in_doubles.is_nan();
            return (if same { 0.0 } else { distance(got, in_doubles) }, in_doubles);
        }
        let wanted = self.wide(op, args);
        let (_, exponent) = parts(&wanted);
        let value = to_f64(&wanted);
        if wanted.is_zero() {
            return (if got == 0.0 { 0.0 } else { f64::INFINITY }, value);
        }
        if got.is_nan() {
            return (f64::INFINITY, value);
        }
        if got.is_infinite() {
            // Infinity counts as 2^1024, the number after the greatest finite one.
            let over = exponent > 1024 || value.abs() == f64::MAX || value.is_infinite();
            return (if over && (got > 0.0) == (value > 0.0) { 0.0 } else { f64::INFINITY }, value);
        }
        if exponent > 1024 {
            return (f64::INFINITY, value);
        }
        let ulp = (exponent - 53).max(-1074);
        let difference = big(got).sub(&wanted, PRECISION, ROUNDING);
        let (top, apart) = if difference.is_zero() { (0.0, 0) } else { parts(&difference) };
        (top.abs() * 2f64.powi((apart - ulp).clamp(-900, 900)), value)
    }

    fn wide(&mut self, op: ElementOp, args: &[f64]) -> BigFloat {
        let (p, r) = (PRECISION, ROUNDING);
        let x = big(args[0]);
        let one = big(1.0);
        let cc = &mut self.constants;
        // A sum of 1 and a small argument loses bits of the argument. Below 2^-120 the argument itself is the result.
        let tiny = args[0].abs() < 2f64.powi(-120);
        match op {
            ElementOp::Sqrt => x.sqrt(p, r),
            ElementOp::Exp => x.exp(p, r, cc),
            ElementOp::Expm1 if tiny => x,
            ElementOp::Expm1 => x.exp(2 * p, r, cc).sub(&one, 2 * p, r),
            ElementOp::Exp2 => big(2.0).pow(&x, p, r, cc),
            ElementOp::Log => x.ln(p, r, cc),
            ElementOp::Log1p if tiny => x,
            ElementOp::Log1p => x.add(&one, 2 * p, r).ln(2 * p, r, cc),
            ElementOp::Log2 => x.log2(p, r, cc),
            ElementOp::Log10 => x.log10(p, r, cc),
            ElementOp::Sin => x.sin(p, r, cc),
            ElementOp::Cos => x.cos(p, r, cc),
            ElementOp::Cospi if (args[0] % 1.0).abs() == 0.5 => big(0.0),
            ElementOp::Cospi => big(args[0] % 2.0).mul(&cc.pi(2 * p, r), 2 * p, r).cos(p, r, cc),
            ElementOp::Tan => x.tan(p, r, cc),
            ElementOp::Asin => x.asin(p, r, cc),
            ElementOp::Acos => x.acos(p, r, cc),
            ElementOp::Atan => x.atan(p, r, cc),
            ElementOp::Sinh => x.sinh(p, r, cc),
            ElementOp::Cosh => x.cosh(p, r, cc),
            ElementOp::Tanh => x.tanh(p, r, cc),
            ElementOp::Asinh => x.asinh(p, r, cc),
            ElementOp::Acosh => x.acosh(p, r, cc),
            ElementOp::Atanh => x.atanh(p, r, cc),
            ElementOp::Sigmoid => {
                let e = x.neg().exp(p, r, cc);
                one.div(&one.add(&e, p, r), p, r)
            }
            ElementOp::Pow => {
                let magnitude = x.abs().pow(&big(args[1]), p, r, cc);
                if in_doubles(op, args).is_sign_negative() { magnitude.neg() } else { magnitude }
            }
            ElementOp::Hypot => {
                let y = big(args[1]);
                x.mul(&x, p, r).add(&y.mul(&y, p, r), p, r).sqrt(p, r)
            }
            ElementOp::Atan2 => {
                let angle = x.div(&big(args[1]), p, r).atan(p, r, cc);
                let pi = cc.pi(p, r);
                match (args[1] < 0.0, args[0] < 0.0) {
                    (false, _) => angle,
                    (true, false) => angle.add(&pi, p, r),
                    (true, true) => angle.sub(&pi, p, r),
                }
            }
            other => panic!("no wide reference for {}", other.name()),
        }
    }
}

/// The distance of two f64 in ulp.
fn distance(got: f64, wanted: f64) -> f64 {
    if got.is_nan() || wanted.is_nan() || got.is_infinite() || wanted.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = ((wanted.abs().to_bits() >> 52) as i32 - 1023).clamp(-1022, 1023);
    let half = (exponent - 52) / 2;
    (got - wanted).abs() / 2f64.powi(half) / 2f64.powi(exponent - 52 - half)
}
