//! Bessel functions of real orders and positive numbers.
//!
//! In: an order that is not negative, and a number above 0. Out: both solutions of the equation, to about 13 digits
//! (near their zeros, the error is absolute). They are computed by Steed's continued fractions and Temme's series, as
//! in N. M. Temme (1975, 1976) and A. R. Barnett et al. (1974). For large numbers and smaller orders, Hankel's
//! expansion and the recurrence over orders are used. Orders above [`ORDER_MAX`] give NaN.

use num_complex::Complex64;
use std::f64::consts::PI;

/// The greatest order that is computed, since the work grows with the order.
const ORDER_MAX: f64 = 1e5;
/// The most terms of a continued fraction. Those that converge take fewer.
const TERMS_MAX: usize = 500_000;
/// From this number on, Hankel's expansion holds for orders of up to 2.
const FAR: f64 = 30.0;
const TINY: f64 = 1e-290;
/// Larger values are scaled down during the recurrence over orders.
const HUGE: f64 = 1e250;

/// `1 / gamma (1 + x)` as a series in x (Abramowitz and Stegun, 6.1.34).
const RECIPROCAL_GAMMA: [f64; 25] = [
    1.0,
    0.577_215_664_901_532_9,
    -0.655_878_071_520_253_8,
    -0.042_002_635_034_095_2,
    0.166_538_611_382_291_5,
    -0.042_197_734_555_544_3,
    -0.009_621_971_527_877_0,
    0.007_218_943_246_663_0,
    -0.001_165_167_591_859_1,
    -0.000_215_241_674_114_9,
    0.000_128_050_282_388_2,
    -0.000_020_134_854_780_7,
    -0.000_001_250_493_482_1,
    0.000_001_133_027_232_0,
    -0.000_000_205_633_841_7,
    0.000_000_006_116_095_0,
    0.000_000_005_002_007_5,
    -0.000_000_001_181_274_6,
    0.000_000_000_104_342_7,
    0.000_000_000_007_782_3,
    -0.000_000_000_003_696_8,
    0.000_000_000_000_510_0,
    -0.000_000_000_000_020_6,
    -0.000_000_000_000_005_4,
    0.000_000_000_000_001_4,
];

/// The initial values of Temme's series, for an order between -1/2 and 1/2.
struct Start {
    /// `pi mu / sin (pi mu)`.
    turn: f64,
    /// `(1 / gamma (1 - mu) - 1 / gamma (1 + mu)) / (2 mu)`.
    difference: f64,
    /// The mean of the two reciprocals.
    mean: f64,
    /// `1 / gamma (1 + mu)`.
    above: f64,
    /// `1 / gamma (1 - mu)`.
    below: f64,
}

impl Start {
    fn of(mu: f64) -> Start {
        let (mut even, mut odd, mut power) = (0.0, 0.0, 1.0);
        for pair in RECIPROCAL_GAMMA.chunks(2) {
            even += pair[0] * power;
            odd += pair.get(1).copied().unwrap_or(0.0) * power;
            power *= mu * mu;
        }
        let turn = if mu == 0.0 { 1.0 } else { PI * mu / (PI * mu).sin() };
        Start { turn, difference: -odd, mean: even, above: even + mu * odd, below: even - mu * odd }
    }
}

/// `sinh (x) / x`.
fn sinh_over(x: f64) -> f64 {
    if x.abs() < 1e-8 { 1.0 } else { x.sinh() / x }
}

/// Returns `cos (pi x)` and `sin (pi x)`, exact at multiples of 1/2.
pub(crate) fn turn(x: f64) -> (f64, f64) {
    let x = x % 2.0;
    let quarter = (2.0 * x).round();
    let (sin, cos) = (PI * (x - quarter / 2.0)).sin_cos();
    match quarter.rem_euclid(4.0) as u8 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// Returns the sums of the even and of the odd terms of Hankel's expansion for a small order.
fn expansion(nu: f64, x: f64, alternating: bool) -> (f64, f64) {
    let (mut even, mut odd, mut term) = (1.0, 0.0, 1.0);
    for k in 1..200 {
        let kf = k as f64;
        let next = term * (4.0 * nu * nu - (2.0 * kf - 1.0).powi(2)) / (8.0 * x * kf);
        if next.abs() >= f64::abs(term) && k > 3 || next == 0.0 {
            break;
        }
        term = next;
        let sign = if alternating && k % 4 >= 2 { -1.0 } else { 1.0 };
        *(if k % 2 == 0 { &mut even } else { &mut odd }) += sign * term;
        if term.abs() < 1e-18 {
            break;
        }
    }
    (even, odd)
}

/// Returns J and Y for a small order and a large number.
fn far(nu: f64, x: f64) -> (f64, f64) {
    let (p, q) = expansion(nu, x, true);
    let (cos_shift, sin_shift) = turn((nu / 2.0 + 0.25) % 2.0);
    let (sin, cos) = x.sin_cos();
    let (cos, sin) = (cos * cos_shift + sin * sin_shift, sin * cos_shift - cos * sin_shift);
    let size = (2.0 / (PI * x)).sqrt();
    (size * (p * cos - q * sin), size * (p * sin + q * cos))
}

/// Returns the Bessel functions of the first and second kind, J and Y.
pub(crate) fn first_and_second(nu: f64, x: f64) -> (f64, f64) {
    if nu > ORDER_MAX || !x.is_finite() {
        return if x.is_infinite() { (0.0, 0.0) } else { (f64::NAN, f64::NAN) };
    }
    if x >= FAR && nu <= x {
        let mu = nu.fract();
        let (mut now, mut next) = (far(mu, x), far(mu + 1.0, x));
        for k in 1..=nu as usize {
            let factor = 2.0 * (mu + k as f64) / x;
            (now, next) = (next, (factor * next.0 - now.0, factor * next.1 - now.1));
        }
        return now;
    }
    let steps = if x < 2.0 { (nu + 0.5).floor() } else { (nu - x + 1.5).floor().max(0.0) } as usize;
    let mu = nu - steps as f64;
    // This computes J' / J at the order, and then J and J' down to the order mu, up to a common factor.
    let (slope, sign) = slope_of_first(nu, x);
    let (mut top, mut j, mut factor) = (sign * TINY, sign * TINY, nu / x);
    let mut derivative = slope * j;
    for _ in 0..steps {
        let lower = factor * j + derivative;
        factor -= 1.0 / x;
        derivative = factor * lower - j;
        j = lower;
        if j.abs() > HUGE {
            (top, j, derivative) = (top / HUGE, j / HUGE, derivative / HUGE);
        }
    }
    let f = if j == 0.0 { derivative / f64::EPSILON } else { derivative / j };
    let (first, mut y, mut y_next) = if x < 2.0 {
        let (y, next) = second_by_series(mu, x);
        let y_slope = mu / x * y - next;
        (2.0 / (PI * x) / (y_slope - f * y), y, next)
    } else {
        let pq = second_fraction(mu, x);
        let gamma = (pq.re - f) / pq.im;
        let first = (2.0 / (PI * x) / ((pq.re - f) * gamma + pq.im)).sqrt().copysign(j);
        let y = first * gamma;
        (first, y, mu / x * y - first * (pq.re * gamma + pq.im))
    };
    for k in 1..=steps {
        (y, y_next) = (y_next, 2.0 * (mu + k as f64) / x * y_next - y);
        if y_next.is_infinite() {
            // All further values are infinite, too, with the same sign.
            y = if k == steps { y } else { y_next };
            break;
        }
    }
    (top * (first / j), y)
}

/// Returns `J' / J` by its continued fraction, and the sign of J.
fn slope_of_first(nu: f64, x: f64) -> (f64, f64) {
    let off_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut h = off_zero(nu / x);
    let (mut b, mut c, mut d, mut sign) = (2.0 * nu / x, h, 0.0, 1.0);
    for _ in 0..TERMS_MAX {
        b += 2.0 / x;
        d = 1.0 / off_zero(b - d);
        c = off_zero(b - 1.0 / c);
        let change = c * d;
        h *= change;
        if d < 0.0 {
            sign = -sign;
        }
        if (change - 1.0).abs() < f64::EPSILON {
            return (h, sign);
        }
    }
    (f64::NAN, sign)
}

/// Returns Y for the orders mu and mu + 1, near 0.
fn second_by_series(mu: f64, x: f64) -> (f64, f64) {
    let start = Start::of(mu);
    let log = -(x / 2.0).ln();
    let e = mu * log;
    let mut f = 2.0 / PI * start.turn * (start.difference * e.cosh() + start.mean * sinh_over(e) * log);
    let (mut p, mut q) = (e.exp() / (start.above * PI), 1.0 / (e.exp() * PI * start.below));
    let half = PI * mu / 2.0;
    let sinc = if half == 0.0 { 1.0 } else { half.sin() / half };
    let r = PI * half * sinc * sinc;
    let (mut c, mut sum, mut sum_next) = (1.0, f + r * q, p);
    for k in 1..200 {
        let k = k as f64;
        f = (k * f + p + q) / (k * k - mu * mu);
        c *= -(x * x / 4.0) / k;
        p /= k - mu;
        q /= k + mu;
        let change = c * (f + r * q);
        sum += change;
        sum_next += c * p - k * change;
        if change.abs() < (1.0 + sum.abs()) * f64::EPSILON / 4.0 {
            break;
        }
    }
    (-sum, -sum_next * 2.0 / x)
}

/// Returns the continued fraction of `(J' + i Y') / (J + i Y)`.
fn second_fraction(mu: f64, x: f64) -> Complex64 {
    // The square of this tiny number, and of its reciprocal, must not underflow or overflow.
    let tiny = Complex64::new(1e-100, 0.0);
    let off_zero = |z: Complex64| if z.norm() < tiny.re { tiny } else { z };
    let mut a = 0.25 - mu * mu;
    let mut b = Complex64::new(2.0 * x, 2.0);
    let mut h = tiny;
    let (mut c, mut d) = (h, Complex64::new(0.0, 0.0));
    for k in 1..TERMS_MAX {
        d = 1.0 / off_zero(b + a * d);
        c = off_zero(b + a / c);
        h *= c * d;
        if (c * d - 1.0).norm() < f64::EPSILON {
            break;
        }
        a += 2.0 * k as f64;
        b += Complex64::new(0.0, 2.0);
    }
    Complex64::new(-0.5 / x, 1.0) + Complex64::new(0.0, 1.0 / x) * h
}

/// Returns the modified Bessel functions, scaled: `I exp (-x)` and `K exp (x)`.
pub(crate) fn modified(nu: f64, x: f64) -> (f64, f64) {
    if nu > ORDER_MAX || x.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    if x.is_infinite() {
        return (0.0, 0.0);
    }
    if x >= FAR && nu * nu <= x {
        let (even, odd) = expansion(nu, x, false);
        return ((even - odd) / (2.0 * PI * x).sqrt(), (even + odd) * (PI / (2.0 * x)).sqrt());
    }
    let steps = (nu + 0.5).floor() as usize;
    let mu = nu - steps as f64;
    let slope = slope_of_modified(nu, x);
    let (mut top, mut i, mut factor) = (TINY, TINY, nu / x);
    let mut derivative = slope * i;
    for _ in 0..steps {
        let lower = factor * i + derivative;
        factor -= 1.0 / x;
        derivative = factor * lower + i;
        i = lower;
        if i > HUGE {
            (top, i, derivative) = (top / HUGE, i / HUGE, derivative / HUGE);
        }
    }
    let f = derivative / i;
    let (mut k, mut k_next) = if x < 2.0 { modified_by_series(mu, x) } else { modified_by_fraction(mu, x) };
    let first = 1.0 / x / (f * k - (mu / x * k - k_next));
    for n in 1..=steps {
        (k, k_next) = (k_next, 2.0 * (mu + n as f64) / x * k_next + k);
    }
    (top * (first / i), k)
}

/// `I' / I` by its continued fraction.
fn slope_of_modified(nu: f64, x: f64) -> f64 {
    let mut h = (nu / x).max(TINY);
    let (mut b, mut c, mut d) = (2.0 * nu / x, h, 0.0);
    for _ in 0..TERMS_MAX {
        b += 2.0 / x;
        d = 1.0 / (b + d);
        c = b + 1.0 / c;
        h *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            return h;
        }
    }
    f64::NAN
}

/// Returns `K exp (x)` for the orders mu and mu + 1, near 0.
fn modified_by_series(mu: f64, x: f64) -> (f64, f64) {
    let start = Start::of(mu);
    let log = -(x / 2.0).ln();
    let e = mu * log;
    let mut f = start.turn * (start.difference * e.cosh() + start.mean * sinh_over(e) * log);
    let (mut p, mut q) = (0.5 * e.exp() / start.above, 0.5 / (e.exp() * start.below));
    let (mut c, mut sum, mut sum_next) = (1.0, f, p);
    for k in 1..200 {
        let k = k as f64;
        f = (k * f + p + q) / (k * k - mu * mu);
        c *= x * x / 4.0 / k;
        p /= k - mu;
        q /= k + mu;
        sum += c * f;
        sum_next += c * (p - k * f);
        if (c * f).abs() < sum.abs() * f64::EPSILON / 4.0 {
            break;
        }
    }
    (sum * x.exp(), sum_next * 2.0 / x * x.exp())
}

/// Does the same for numbers away from 0.
fn modified_by_fraction(mu: f64, x: f64) -> (f64, f64) {
    let first = 0.25 - mu * mu;
    let mut b = 2.0 * (1.0 + x);
    let mut d = 1.0 / b;
    let (mut h, mut change) = (d, d);
    let (mut before, mut now) = (0.0, 1.0);
    let (mut q, mut c, mut a) = (first, first, -first);
    let mut sum = 1.0 + q * change;
    for k in 2..TERMS_MAX {
        if a == 0.0 {
            break;
        }
        a -= 2.0 * (k - 1) as f64;
        c = -a * c / k as f64;
        (before, now) = (now, (before - b * now) / a);
        q += c * now;
        b += 2.0;
        d = 1.0 / (b + a * d);
        change *= b * d - 1.0;
        h += change;
        sum += q * change;
        if (q * change / sum).abs() < f64::EPSILON / 4.0 {
            break;
        }
    }
    let k = (PI / (2.0 * x)).sqrt() / sum;
    (k, k * (mu + x + 0.5 - first * h) / x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(x: f64, y: f64) {
        assert!((x - y).abs() <= 1e-12 * y.abs(), "{x} is not {y}");
    }

    #[test]
    fn values_are_those_that_octave_gives() {
        let recorded = [
            // order, number, J, Y, I exp (-x), K exp (x)
            (0.0, 0.1, 0.9975015620660401, -1.5342386513503667, 0.9071009257823008, 2.682326102262895),
            (0.0, 1.0, 0.7651976865579666, 0.088256964215677, 0.4657596075936404, 1.1444630798068949),
            (1.0, 1.0, 0.44005058574493355, -0.7812128213002889, 0.20791041534970842, 1.636153486263258),
            (0.5, 1.5, 0.6498380747537482, -0.0460831658930973, 0.30951761682539985, 1.0233267079464887),
            (0.3333333333333333, 0.7, 0.7185626817692198, -0.580858029995712, 0.42886241412160675, 1.4026392951746969),
            (2.5, 1.9, 0.2029180941904101, -0.8965089923250896, 0.05087880974264083, 3.1005160873031876),
            (0.0, 2.0, 0.22389077914123562, 0.5103756726497453, 0.308508322553671, 0.8415682150707713),
            (0.0, 5.0, -0.17759677131433838, -0.3085176252490338, 0.18354081260932834, 0.547807564313519),
            (1.0, 10.0, 0.04347274616886149, 0.2490154242069539, 0.12126268138445553, 0.4107665705957888),
            (0.3, 3.3, -0.1901253114687128, 0.39434033755834474, 0.2261122590754864, 0.6753380942859948),
            (7.25, 4.5, 0.022601234863306965, -2.5302459704823566, 0.0008594759384618415, 68.09231317996873),
            (20.0, 3.0, 1.2275946737992997e-15, -13113540041757.422, 7.572443832391644e-17, 326483251275269.44),
            (50.5, 50.5, 0.12100712016724553, -0.20961994768697592, 2.6818592169748403e-12, 2610475793.354154),
            (0.0, 30.0, -0.08636798358104023, -0.11729573168666405, 0.07314594648223727, 0.22788666561625368),
            (3.0, 31.0, 0.12530943159753816, 0.07019724661059251, 0.06208216344026402, 0.25862484557143633),
            (10.75, 100.0, 0.027181092718873652, 0.07526224707354191, 0.022361174469439516, 0.22232350380671492),
            (
                100.0,
                40.0,
                2.3866062996026384e-30,
                -1.4552439438102415e+27,
                2.814508363790951e-44,
                1.6494392672290582e+41,
            ),
            (40.0, 45.0, 0.1266006212682021, 0.1193321775774934, 2.5613237339087848e-09, 3242212.1444563046),
            (0.0, 1000.0, 0.024786686152420172, 0.004715917977622815, 0.012617240455891255, 0.03962832160075421),
            (2.0, 25.5, -0.1489287094285329, 0.05345889814795608, 0.07329454108977936, 0.2667513563953648),
            (
                90.0,
                0.5,
                4.389011413147519e-193,
                -8.058377543622604e+189,
                2.6657291900595295e-193,
                2.08403382976414e+190,
            ),
            (12.0, 29.9, 0.15105587020755354, 0.020470961266445688, 0.0065429388033938106, 2.371975056771344),
        ];
        for (nu, x, j, y, i, k) in recorded {
            let (first, second) = first_and_second(nu, x);
            near(first, j);
            near(second, y);
            let (first, second) = modified(nu, x);
            near(first, i);
            near(second, k);
        }
    }

    #[test]
    fn the_wronskian_holds_over_orders_and_numbers() {
        for order in 0..60 {
            for step in 1..200 {
                let (nu, x) = (order as f64 * 0.73, step as f64 * 0.47);
                let (j, y) = first_and_second(nu, x);
                let (j_next, y_next) = first_and_second(nu + 1.0, x);
                near((j_next * y - j * y_next) * PI * x / 2.0, 1.0);
                let (i, k) = modified(nu, x);
                let (i_next, k_next) = modified(nu + 1.0, x);
                near((i * k_next + i_next * k) * x, 1.0);
            }
        }
    }
}
