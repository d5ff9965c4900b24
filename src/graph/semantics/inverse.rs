//! Inverse trigonometric functions.

use super::coefficients::{ASIN, ATAN};
use super::lanes::{Float, horner};

/// pi/2 in two parts.
// Each part is rounded on its own, so the f32 part is no named constant.
#[allow(clippy::approx_constant)]
#[inline(always)]
fn half_pi<F: Float>() -> (F, F) {
    (F::lit(std::f64::consts::FRAC_PI_2), F::lit2(-4.371138828673793e-8, 6.123233995736766e-17))
}

/// For `a = |x|`: whether `a` is above 1/2; and the arc sine of `a`, or of `sqrt((1 - a) / 2)` if `a` is above 1/2.
#[inline(always)]
fn half_arc<F: Float>(a: F) -> (F::Mask, F) {
    let big = a.more(F::lit(0.5));
    let z = F::select(big, (F::lit(1.0) - a) * F::lit(0.5), a * a);
    let s = F::select(big, z.root(), a);
    (big, s + s * z * horner(z, &ASIN))
}

/// The arc sine.
#[inline(always)]
pub fn asin<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let (big, arc) = half_arc(a);
    let (high, low) = half_pi::<F>();
    let result = F::select(big, high - (F::lit(2.0) * arc - low), arc).with_sign_of(x);
    F::select(a.more(F::lit(1.0)) | x.is_nan(), F::nan(), result)
}

/// The arc cosine.
#[inline(always)]
pub fn acos<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let (big, arc) = half_arc(a);
    let (high, low) = half_pi::<F>();
    let two = F::lit(2.0);
    let far = F::select(x.less(F::lit(0.0)), two * (high - (arc - low)), two * arc);
    let near = high - (arc.with_sign_of(x) - low);
    F::select(a.more(F::lit(1.0)) | x.is_nan(), F::nan(), F::select(big, far, near))
}

/// The angle in the first quadrant whose tangent is `a / b`, for numbers that are not negative and not both zero.
#[inline(always)]
fn first_quadrant<F: Float>(a: F, b: F) -> F {
    let steep = a.more(b * F::lit(2.414213562373095));
    let diagonal = !steep & a.more(b * F::lit(0.41421356237309503));
    // The tangent of the angle that is left after pi/2, pi/4 or nothing is taken away.
    let over = F::select(steep, -b, F::select(diagonal, a - b, a));
    let under = F::select(steep, a, F::select(diagonal, a + b, b));
    let t = over / under;
    let z = t * t;
    let arc = t + t * z * horner(z, &ATAN);
    let (high, low) = half_pi::<F>();
    let (eighth, eighth_low) = (high * F::lit(0.5), low * F::lit(0.5));
    let turned = F::select(steep, high + (arc + low), eighth + (arc + eighth_low));
    F::select(steep | diagonal, turned, arc)
}

/// The arc tangent.
#[inline(always)]
pub fn atan<F: Float>(x: F) -> F {
    first_quadrant(x.magnitude(), F::lit(1.0)).with_sign_of(x)
}

/// The angle of the point (x, y).
#[inline(always)]
pub fn atan2<F: Float>(y: F, x: F) -> F {
    let (zero, one) = (F::lit(0.0), F::lit(1.0));
    let (a, b) = (y.magnitude(), x.magnitude());
    let both_infinite = y.is_infinite() & x.is_infinite();
    let a = F::select(both_infinite, one, a);
    let b = F::select(both_infinite | (a.same(zero) & b.same(zero)), one, b);
    // The numbers are scaled so that their sum does not overflow and their quotient is not one of subnormals.
    let greater = F::select(a.less(b), b, a);
    let large = greater.more(F::lit2(1e30, 1e300));
    let small = greater.less(F::lit2(1e-20, 1e-270));
    // Each branch has its own product, because a driver turns `a * f + b * f` into `(a + b) * f`, which overflows.
    let scaled = |v: F| {
        let grown = F::select(small, v * F::lit2(1.152921504606847e18, 1.152921504606847e18), v);
        F::select(large, v * F::lit2(9.313225746154785e-10, 9.313225746154785e-10), grown)
    };
    let angle = first_quadrant(scaled(a), scaled(b));
    let (high, low) = half_pi::<F>();
    let behind = one.with_sign_of(x).less(zero);
    let two = F::lit(2.0);
    let angle = F::select(behind, two * high - (angle - two * low), angle).with_sign_of(y);
    F::select(x.is_nan() | y.is_nan(), F::nan(), angle)
}
