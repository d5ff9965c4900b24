//! The regularised incomplete gamma and beta functions of doubles, and their inverses.
//!
//! In: numbers within the domains that `incomplete.rs` checks. Out: values, NaN if an argument is NaN. Must hold: a
//! value does not depend on the elements before it. [`Gamma`] and [`Beta`] keep values that depend on the parameters
//! only, and are made again when the parameters change.

use super::special::{gamma, ln_beta, ln_gamma};
use num_complex::Complex64;
use std::f64::consts::PI;

/// The most terms of a continued fraction; then its present value is used.
const TERMS_MAX: u32 = 10_000;
/// The number that replaces 0 in a continued fraction (Lentz).
const TINY: f64 = 1e-300;
/// The uniform expansion is used for parameters from this one on, and for numbers that differ from the parameter by a
/// small share of it.
const LARGE: f64 = 1e7;
const NEAR: f64 = 0.03;
/// Below this parameter, powers and gamma functions are computed directly, since they stay within the range of doubles.
const PLAIN_MAX: f64 = 10.0;
/// The same limit for the sum of both parameters of the beta function.
const PLAIN_BETA_MAX: f64 = 150.0;
/// The largest number whose exponential, and that of its negative, is far from the limits of doubles.
const EXPONENT_MAX: f64 = 700.0;

/// The wanted part of an integral.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// The integral from the number on, and not up to it.
    pub upper: bool,
    /// The integral divided by its weight, `x^a exp (-x) / gamma (a + 1)`.
    pub scaled: bool,
}

/// Turns a part of the integral, in units of the weight, into the result: the part itself if it is asked for, or the
/// rest.
fn combined(part: f64, weight: f64, is_asked: bool, scaled: bool) -> f64 {
    match (is_asked, scaled) {
        (true, true) => part,
        (true, false) => part * weight,
        (false, true) => 1.0 / weight - part,
        (false, false) => 1.0 - weight * part,
    }
}

/// The incomplete gamma function for one parameter.
#[derive(Clone, Copy)]
pub(super) struct Gamma {
    a: f64,
    /// `gamma (a + 1)` for a small parameter; otherwise the error of Stirling's formula for its logarithm.
    constant: f64,
}

impl Gamma {
    pub fn of(a: f64) -> Gamma {
        Gamma { a, constant: if a < PLAIN_MAX { gamma(a + 1.0) } else { stirling_rest(a) } }
    }

    /// Returns this value if the parameter is the same, and otherwise a new one.
    pub fn again(self, a: f64) -> Gamma {
        if self.a == a { self } else { Gamma::of(a) }
    }

    /// Returns `x^a exp (-x) / gamma (a + 1)`.
    fn weight(&self, x: f64) -> f64 {
        let a = self.a;
        if a < PLAIN_MAX && x < EXPONENT_MAX {
            return x.powf(a) * (-x).exp() / self.constant;
        }
        let rest = if a < PLAIN_MAX { stirling_rest(a) } else { self.constant };
        (-rest - deviance(a, x)).exp() / (2.0 * PI * a).sqrt()
    }

    /// Returns the value for a number that is not negative.
    pub fn at(&self, x: f64, part: Part) -> f64 {
        let Part { upper, scaled } = part;
        let a = self.a;
        if x.is_nan() || a.is_nan() {
            return f64::NAN;
        }
        if is_end(x, a, scaled) {
            return at_end(x, a, part);
        }
        if a >= LARGE && (x - a).abs() < NEAR * a {
            return self.near_large(x, part);
        }
        let is_far = x >= a + 1.0 || upper && a < 1.0 && x > 0.25;
        match is_far {
            true => combined(upper_fraction(x, a), self.weight(x), upper, scaled),
            false => combined(lower_series(x, a), self.weight(x), !upper, scaled),
        }
    }

    /// Returns the value near a large parameter, where the series and the fraction need a multiple of the parameter's
    /// root of terms. It uses the uniform expansion (N. M. Temme 1979; DLMF 8.12), up to the second power of `1 / a`.
    fn near_large(&self, x: f64, part: Part) -> f64 {
        let a = self.a;
        let half = deviance(a, x);
        let eta = (2.0 * half / a).sqrt().copysign(x - a);
        let polynomial = |factors: &[f64]| factors.iter().rev().fold(0.0, |sum, factor| sum * eta + factor);
        let first =
            [-1.0 / 3.0, 1.0 / 12.0, -2.0 / 135.0, 1.0 / 864.0, 1.0 / 2835.0, -139.0 / 777_600.0, 1.0 / 25_515.0];
        let second = [-1.0 / 540.0, -1.0 / 288.0, 25.0 / 12_096.0];
        let rest = (-half).exp() / (2.0 * PI * a).sqrt() * (polynomial(&first) + polynomial(&second) / a);
        let value = match part.upper {
            true => libm::erfc(half.sqrt().copysign(eta)) / 2.0 + rest,
            false => libm::erfc(half.sqrt().copysign(-eta)) / 2.0 - rest,
        };
        if part.scaled { value / self.weight(x) } else { value }
    }

    /// Returns the value for a negative number.
    pub fn left_of_zero(&self, x: f64, part: Part) -> Complex64 {
        let Part { upper, scaled } = part;
        let a = self.a;
        if a.is_nan() || is_end(x, a, scaled) {
            return at_end(x, a, part).into();
        }
        let is_whole = a == a.trunc();
        let (sum, is_asked) = match upper && is_whole && a < 170.0 {
            true => (finite_sum(x, a), true),
            false => (series_below_zero(x, a), !upper),
        };
        let size = (-x).exp() / gamma(a + 1.0);
        if is_whole {
            return combined(sum, x.powf(a) * size, is_asked, scaled).into();
        }
        let weight = Complex64::from_polar((-x).powf(a), PI * a) * size;
        match (is_asked, scaled) {
            (true, true) => sum.into(),
            (true, false) => weight * sum,
            (false, true) => weight.inv() - sum,
            (false, false) => 1.0 - weight * sum,
        }
    }

    /// Returns the number at which the function is `y`, first by halving an interval that contains it, then by Newton's
    /// steps.
    pub fn inverse(&self, y: f64, upper: bool) -> f64 {
        let a = self.a;
        if y.is_nan() || !a.is_finite() {
            return f64::NAN;
        }
        if y == 0.0 || y == 1.0 {
            return if (y == 1.0) == upper { 0.0 } else { f64::INFINITY };
        }
        let sign = if upper { -1.0 } else { 1.0 };
        let off = |x: f64| sign * (self.at(x, Part { upper, scaled: false }) - y);
        let (mut below, mut above) = (0.0, a.max(1.0));
        while above.is_finite() && off(above) < 0.0 {
            below = above;
            above *= 2.0;
        }
        let ln_gamma = ln_gamma(a);
        root_between(off, |x| ((a - 1.0) * x.ln() - x - ln_gamma).exp(), below, above)
    }
}

/// Whether the value is known without computing it.
fn is_end(x: f64, a: f64, scaled: bool) -> bool {
    x == 0.0 || !x.is_finite() || a.is_infinite() || a == 0.0 && !scaled
}

fn at_end(x: f64, a: f64, part: Part) -> f64 {
    let Part { upper, scaled } = part;
    let truth = |is: bool| if is { 1.0 } else { 0.0 };
    if x.is_nan() || a.is_nan() {
        return f64::NAN;
    }
    if scaled {
        return match () {
            () if x == f64::NEG_INFINITY => f64::NAN,
            () if x == 0.0 && upper && a > 0.0 => f64::INFINITY,
            () if x == 0.0 => truth(!upper),
            () if a.is_infinite() == upper => f64::INFINITY,
            () => truth(a.is_infinite()),
        };
    }
    match () {
        () if x == f64::NEG_INFINITY && a % 2.0 == 0.0 => f64::INFINITY.copysign(if upper { -1.0 } else { 1.0 }),
        () if x == f64::NEG_INFINITY => f64::NAN,
        () if a.is_infinite() || x == 0.0 && a > 0.0 => truth(upper),
        () => truth(!upper),
    }
}

/// Returns the lower integral in units of the weight.
fn lower_series(x: f64, mut a: f64) -> f64 {
    let (mut term, mut total) = (1.0f64, 1.0f64);
    loop {
        a += 1.0;
        term *= x / a;
        total += term;
        // The loop also ends if these are NaN.
        if !(term.abs() > total.abs() * (f64::EPSILON / 4.0)) {
            return total;
        }
    }
}

/// Does the same for a negative number, for which all terms are positive.
fn series_below_zero(x: f64, a: f64) -> f64 {
    let (mut term, mut total, mut n) = (1.0f64, 1.0f64, 0.0);
    loop {
        n += 1.0;
        term *= -x / n;
        total += term * a / (a + n);
        let goes_on = (term.abs() > total.abs() * (f64::EPSILON / 4.0) || n < -x) && term.is_finite();
        if !goes_on {
            return total * x.exp();
        }
    }
}

/// Returns the upper integral for an integer parameter in units of the weight.
fn finite_sum(x: f64, a: f64) -> f64 {
    let (mut term, mut total) = (1.0, 0.0);
    for k in 0..a as u32 {
        term *= (a - f64::from(k)) / x;
        total += term;
    }
    total
}

fn not_tiny(x: f64) -> f64 {
    if x.abs() < TINY { TINY } else { x }
}

/// Returns the upper integral in units of the weight.
fn upper_fraction(x: f64, a: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut h = d;
    for i in 1..=TERMS_MAX {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / not_tiny(an * d + b);
        c = not_tiny(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h * a
}

/// Returns the error of Stirling's formula for `log (gamma (n + 1))`.
fn stirling_rest(n: f64) -> f64 {
    if n < PLAIN_MAX {
        return ln_gamma(n + 1.0) - (n + 0.5) * n.ln() + n - (2.0 * PI).ln() / 2.0;
    }
    let square = 1.0 / (n * n);
    let series = [-691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    series.iter().fold(0.0, |sum, term| sum * square + term) / n
}

/// Returns `k log (k / m) + m - k`. If `k` and `m` are near, it uses a series (C. Loader, "Fast and Accurate
/// Computation of Binomial Probabilities", 2000), in which no large terms cancel.
fn deviance(k: f64, m: f64) -> f64 {
    if !((k - m).abs() < 0.1 * (k + m)) {
        return k * (k / m).ln() + m - k;
    }
    let v = (k - m) / (k + m);
    let (mut total, mut term) = ((k - m) * v, 2.0 * k * v);
    for j in (3..=200).step_by(2) {
        term *= v * v;
        let before = total;
        total += term / f64::from(j);
        if total == before {
            break;
        }
    }
    total
}

/// The incomplete beta function for two parameters.
#[derive(Clone, Copy)]
pub(super) struct Beta {
    a: f64,
    b: f64,
    /// The factor of the weight that depends on the parameters only.
    constant: f64,
}

impl Beta {
    pub fn of(a: f64, b: f64) -> Beta {
        let n = a + b;
        let constant = match n < PLAIN_BETA_MAX {
            true => gamma(n + 1.0) / (gamma(a + 1.0) * gamma(b + 1.0)),
            false => stirling_rest(n) - stirling_rest(a) - stirling_rest(b),
        };
        Beta { a, b, constant }
    }

    /// Returns this value if the parameters are the same, and otherwise a new one.
    pub fn again(self, a: f64, b: f64) -> Beta {
        if (self.a, self.b) == (a, b) { self } else { Beta::of(a, b) }
    }

    /// Returns `x^a y^b gamma (a + b + 1) / (gamma (a + 1) gamma (b + 1))`, where x + y is 1, for these parameters or
    /// for both exchanged.
    fn weight(&self, a: f64, x: f64, b: f64, y: f64) -> f64 {
        let n = a + b;
        match n < PLAIN_BETA_MAX {
            true => self.constant * x.powf(a) * y.powf(b),
            false => (self.constant - deviance(a, n * x) - deviance(b, n * y)).exp() * (n / (2.0 * PI * a * b)).sqrt(),
        }
    }

    /// Returns the value for a number from 0 to 1, by the continued fraction from the side on which it converges fast.
    pub fn at(&self, x: f64, upper: bool) -> f64 {
        let (a, b) = (self.a, self.b);
        let truth = |is: bool| if is { 1.0 } else { 0.0 };
        if x.is_nan() || a.is_nan() || b.is_nan() || a.is_infinite() && b.is_infinite() {
            return f64::NAN;
        }
        if x == 0.0 || x < 1.0 && a.is_infinite() {
            return truth(upper);
        }
        if x == 1.0 || b.is_infinite() {
            return truth(!upper);
        }
        let is_turned = x > (a + 1.0) / (a + b + 2.0);
        let (x, y, a, b) = if is_turned { (1.0 - x, x, b, a) } else { (x, 1.0 - x, a, b) };
        let part = self.weight(a, x, b, y) * b / (a + b) * beta_fraction(x, a, b);
        if is_turned != upper { 1.0 - part } else { part }
    }

    /// Returns the number at which the function is `y`.
    pub fn inverse(&self, y: f64, upper: bool) -> f64 {
        let (a, b) = (self.a, self.b);
        if y.is_nan() || !a.is_finite() || !b.is_finite() {
            return f64::NAN;
        }
        if y == 0.0 || y == 1.0 {
            return if (y == 1.0) == upper { 0.0 } else { 1.0 };
        }
        let sign = if upper { -1.0 } else { 1.0 };
        let ln_beta = ln_beta(a, b);
        let slope = |x: f64| ((a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - ln_beta).exp();
        root_between(|x| sign * (self.at(x, upper) - y), slope, 0.0, 1.0)
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / not_tiny(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..=TERMS_MAX {
        let m = f64::from(m);
        let e = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / not_tiny(1.0 + e * d);
        c = not_tiny(1.0 + e / c);
        h *= d * c;
        let e = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / not_tiny(1.0 + e * d);
        c = not_tiny(1.0 + e / c);
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h
}

/// Finds the zero of an increasing function by Newton's steps within a shrinking interval.
fn root_between(off: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64, mut below: f64, mut above: f64) -> f64 {
    let mut at = (below + above) / 2.0;
    for _ in 0..200 {
        let distance = off(at);
        if distance == 0.0 {
            break;
        }
        if distance > 0.0 {
            above = at;
        } else {
            below = at;
        }
        let next = between(at - distance / slope(at), below, above);
        let is_done = (next - at).abs() <= at.next_up() - at;
        at = next;
        if is_done {
            break;
        }
    }
    at
}

/// Replaces a step that leaves its interval by the interval's middle; for a wide interval, by the middle of the
/// logarithms.
fn between(next: f64, below: f64, above: f64) -> f64 {
    match () {
        () if next > below && next < above => next,
        () if below == 0.0 => above / 16.0,
        () if below > 0.0 && above > 4.0 * below => (below * above).sqrt(),
        () => (below + above) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(x: f64, y: f64) {
        assert!(x == y || (x - y).abs() <= 4e-15 * y.abs(), "{x:?} is not {y:?}");
    }

    const LOWER: Part = Part { upper: false, scaled: false };
    const UPPER: Part = Part { upper: true, scaled: false };

    #[test]
    fn parts_of_the_gamma_function_are_those_that_are_known() {
        // The known values are: P(1, x) is 1 - exp (-x), and P(1/2, x) is erf (sqrt (x)).
        for x in [1e-8, 0.1, 0.25, 1.0, 3.0, 30.0] {
            near(Gamma::of(1.0).at(x, LOWER), -(-x).exp_m1());
            near(Gamma::of(1.0).at(x, UPPER), (-x).exp());
            near(Gamma::of(0.5).at(x, UPPER), libm::erfc(x.sqrt()));
        }
        // A small and a large parameter in sequence have different constants.
        let (small, large) = (Gamma::of(2.0), Gamma::of(200.0));
        assert_eq!(small.again(200.0).at(190.0, LOWER), large.at(190.0, LOWER));
        assert_eq!(large.again(2.0).at(1.0, LOWER), small.at(1.0, LOWER));
        assert!(Gamma::of(f64::NAN).at(1.0, LOWER).is_nan() && Gamma::of(1.0).at(f64::NAN, UPPER).is_nan());
    }

    #[test]
    fn near_a_large_parameter_the_expansion_gives_what_the_series_gives() {
        let gamma = Gamma::of(1e6);
        for x in [0.995e6, 0.999e6, 1e6, 1.0005e6, 1.003e6] {
            for part in [LOWER, UPPER, Part { upper: false, scaled: true }, Part { upper: true, scaled: true }] {
                let (series, expansion) = (gamma.at(x, part), gamma.near_large(x, part));
                assert!((series - expansion).abs() <= 1e-9 * series.abs(), "{series:?} is not {expansion:?} at {x}");
            }
        }
        // For parameters so large that adding one changes nothing, the loops end, too, and both tails add up to 1.
        for a in [1e10, 1e15, 1e17, 1e300] {
            let gamma = Gamma::of(a);
            for x in [a, a * (1.0 - f64::EPSILON), a + 3.0 * a.sqrt(), 1.1 * a, 0.9 * a] {
                near(gamma.at(x, LOWER) + gamma.at(x, UPPER), 1.0);
            }
            assert!((gamma.at(a, LOWER) - 0.5).abs() < 1e-5);
        }
    }

    #[test]
    fn parts_of_the_beta_function_are_those_that_are_known() {
        // I(x, a, 1) is x^a, and both tails add up to 1.
        for x in [1e-6, 0.2, 0.5, 0.9, 0.999] {
            near(Beta::of(3.0, 1.0).at(x, false), x.powi(3));
            near(Beta::of(40.0, 160.0).at(x, false) + Beta::of(40.0, 160.0).at(x, true), 1.0);
        }
        assert_eq!(Beta::of(1.0, 2.0).again(2.0, 1.0).at(0.3, false), Beta::of(2.0, 1.0).at(0.3, false));
    }

    #[test]
    fn inverses_lead_back() {
        for a in [0.3, 2.0, 80.0] {
            for y in [1e-10, 0.1, 0.5, 0.999] {
                for upper in [false, true] {
                    let x = Gamma::of(a).inverse(y, upper);
                    assert!(
                        (Gamma::of(a).at(x, Part { upper, scaled: false }) - y).abs() < 1e-13 * y.max(0.01),
                        "{a} {y}"
                    );
                    let x = Beta::of(a, 1.5).inverse(y, upper);
                    assert!((Beta::of(a, 1.5).at(x, upper) - y).abs() < 1e-12, "{a} {y} {x}");
                }
            }
        }
    }
}
