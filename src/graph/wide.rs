//! `i64` beside a number of f64, computed exactly by ops on `i64` whose structure does not depend on the number.
//!
//! In: an op, an `i64` value, a number, and an [`Emit`] that records or computes ops. Out: the result of exact
//! arithmetic, rounded half away from zero and saturated; comparisons compare the exact numbers. A number with a
//! fraction is `±mantissa / 2^shift`, with an odd mantissa below 2^53. All that depends on the number are constants of
//! `i64`, which are parameters of a kernel. So 2, 2.5, infinity and NaN share one kernel.
//! Must hold: WIDE-1: no `i64` value passes through f64, whose 53 bits would round it. The exceptions are powers with a
//! fraction, numbers beyond `i64` that are divided by `i64`, and numbers that are unknown when the op is recorded and
//! turn out to have a fraction (`array::wide_unknown`). WIDE-2: where [`Emit::may_depend_on_number`] is false, the
//! emitted ops depend on the op and the number's side alone, except for powers.

mod beside;

pub use beside::{Beside, Comparison, beside};

use crate::graph::DType;
use crate::graph::ElementOp::{self, *};
use crate::graph::table::DTypeRule;

/// One past the greatest `i64`.
pub const LIMIT: f64 = 9_223_372_036_854_775_808.0;
/// Bits of a limb. A sum of a few products of two limbs fits an `i64`.
const LIMB: u32 = 27;
/// From this shift on, a product is less than a half, and a quotient is beyond `i64`: an `i64` has 63 bits, a mantissa
/// 53.
const SHIFT_MAX: u32 = 117;
/// Bits that a step adds to a quotient: a remainder below 2^53, times two to the power of this, fits an `i64`.
const STEP: u32 = 10;

/// Records ops, or computes them.
pub trait Emit {
    /// A value, `i64` or bool.
    type Value: Clone;
    /// Emits an op on values. Their dtypes, `i64` or bool, are those that the op takes.
    fn op(&mut self, op: ElementOp, args: &[Self::Value]) -> Self::Value;
    /// A constant, which is no part of the structure.
    fn number(&mut self, number: i64) -> Self::Value;
    /// Emits the op on `x` and a number in f64, with the result cast back; `None` if f64 is missing.
    fn float(&mut self, op: ElementOp, x: &Self::Value, number: f64, reversed: bool) -> Option<Self::Value>;
    /// Whether the emitted ops may depend on the number, because no kernel is compiled for them.
    fn may_depend_on_number(&self) -> bool;
}

/// Whether this module computes an op beside a number of f64.
pub fn takes(op: ElementOp) -> bool {
    match beside(op) {
        Beside::Compare(_) | Beside::Sum | Beside::Difference | Beside::Product => true,
        Beside::Quotient | Beside::Remainder | Beside::Power => true,
        Beside::Extreme | Beside::Bounds | Beside::Choice | Beside::Apart => false,
    }
}

/// Whether the op's result beside `number` is computed in f64.
pub fn needs_float(op: ElementOp, number: f64, reversed: bool) -> bool {
    match beside(op) {
        Beside::Power => !is_whole(number),
        Beside::Quotient | Beside::Remainder => reversed && !is_inside(number),
        Beside::Compare(_) | Beside::Sum | Beside::Difference | Beside::Product => false,
        Beside::Extreme | Beside::Bounds | Beside::Choice | Beside::Apart => false,
    }
}

/// Rounds a number half away from zero, and saturates it.
pub fn rounded(number: f64) -> i64 {
    number.round() as i64
}

/// The dtype of an op's result; `last` is the dtype of its last argument.
pub fn output(op: ElementOp, last: DType) -> DType {
    match op.info().rule {
        DTypeRule::Comparison | DTypeRule::Logic | DTypeRule::Test => DType::Bool,
        DTypeRule::Arithmetic | DTypeRule::Real | DTypeRule::Select | DTypeRule::Cast => last,
    }
}

fn is_inside(number: f64) -> bool {
    (-LIMIT..LIMIT).contains(&number)
}

/// Whether a number is an `i64`. A zero with a negative sign is none, because the sign matters to a quotient.
fn is_whole(number: f64) -> bool {
    number.trunc() == number && is_inside(number) && number.to_bits() != (-0.0f64).to_bits()
}

fn has_fraction(number: f64) -> bool {
    number.is_finite() && number.trunc() != number
}

/// The magnitude of a number with a fraction as `mantissa / 2^shift`.
fn parts(number: f64) -> (i64, u32) {
    let bits = number.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7ff) as u32, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, shift) = if field == 0 { (fraction, 1074) } else { (fraction | 1 << 52, 1075 - field) };
    let spare = mantissa.trailing_zeros();
    (mantissa >> spare, shift - spare)
}

/// `x op number`, or `number op x`.
pub fn apply<E: Emit>(emit: &mut E, op: ElementOp, x: &E::Value, number: f64, reversed: bool) -> E::Value {
    if emit.may_depend_on_number() {
        if is_whole(number) {
            let whole = emit.number(number as i64);
            return emit.op(op, &if reversed { [whole, x.clone()] } else { [x.clone(), whole] });
        }
        if needs_float(op, number, reversed)
            && let Some(value) = emit.float(op, x, number, reversed)
        {
            return value;
        }
    }
    let mut chain = Chain { emit, x: x.clone() };
    match beside(op) {
        Beside::Power => power(chain.emit, x, number, reversed),
        Beside::Compare(how) => chain.compared(if reversed { how.mirrored() } else { how }, number),
        Beside::Sum => chain.plus(number),
        Beside::Difference if reversed => chain.subtracted_from(number),
        Beside::Difference => chain.plus(-number),
        Beside::Product => chain.times(number),
        Beside::Quotient if reversed => chain.dividing(number),
        Beside::Quotient => chain.divided_by(number),
        Beside::Remainder if reversed => chain.remainder_of_number(op, number),
        Beside::Remainder => chain.remainder(op, number),
        Beside::Extreme | Beside::Bounds | Beside::Choice | Beside::Apart => {
            unreachable!("WIDE-1: {} is not computed beside a number", op.name())
        }
    }
}

/// `x ^ c`, or `c ^ x`. It is computed in f64 if `c` is no `i64`. The number may decide this, because only the host
/// computes powers of `i64` (`graph::refusals`).
fn power<E: Emit>(emit: &mut E, x: &E::Value, c: f64, reversed: bool) -> E::Value {
    if !is_whole(c)
        && let Some(float) = emit.float(Pow, x, c, reversed)
    {
        return float;
    }
    let whole = emit.number(rounded(c));
    emit.op(Pow, &if reversed { [whole, x.clone()] } else { [x.clone(), whole] })
}

/// Builds the ops on one `i64` value, `x`.
struct Chain<'e, E: Emit> {
    emit: &'e mut E,
    x: E::Value,
}

/// The steps that a fraction adds to a sum of whole numbers, as `[threshold, step, other]`: `step` if the sum is at
/// least the threshold, else `other`.
fn steps(fraction: f64) -> [i64; 3] {
    let step = fraction.signum() as i64;
    match fraction.abs().partial_cmp(&0.5) {
        Some(std::cmp::Ordering::Greater) => [0, step, step],
        // A tie is rounded away from zero. A positive fraction moves sums from 0 on up; a negative one moves sums up to
        // 0 down.
        Some(std::cmp::Ordering::Equal) if step > 0 => [0, 1, 0],
        Some(std::cmp::Ordering::Equal) => [1, 0, -1],
        _ => [0, 0, 0],
    }
}

impl<E: Emit> Chain<'_, E> {
    fn n(&mut self, number: i64) -> E::Value {
        self.emit.number(number)
    }

    fn op(&mut self, op: ElementOp, a: &E::Value, b: &E::Value) -> E::Value {
        self.emit.op(op, &[a.clone(), b.clone()])
    }

    fn with(&mut self, op: ElementOp, a: &E::Value, number: i64) -> E::Value {
        let number = self.n(number);
        self.op(op, a, &number)
    }

    fn select(&mut self, mask: &E::Value, yes: &E::Value, no: &E::Value) -> E::Value {
        self.emit.op(Select, &[mask.clone(), yes.clone(), no.clone()])
    }

    /// Selects one of two constants.
    fn either(&mut self, mask: &E::Value, yes: i64, no: i64) -> E::Value {
        let (yes, no) = (self.n(yes), self.n(no));
        self.select(mask, &yes, &no)
    }

    /// A condition on the number, as a value: all of its elements are equal.
    fn flag(&mut self, is_so: bool) -> E::Value {
        let flag = self.n(-i64::from(is_so));
        self.with(Lt, &flag, 0)
    }

    /// The number of steps in which a shift is done: those of the greatest shift, unless the ops may depend on the
    /// number.
    fn turns(&self, shift: u32, greatest: u32) -> u32 {
        (if self.emit.may_depend_on_number() { shift } else { greatest }).div_ceil(STEP)
    }

    /// `a / 2^by`, rounded down.
    fn shifted(&mut self, a: &E::Value, by: u32) -> E::Value {
        let unit = self.n(1 << by);
        let rest = self.op(Mod, a, &unit);
        let whole = self.op(Sub, a, &rest);
        self.op(Div, &whole, &unit)
    }

    /// The lowest limb, which is not negative, and the rest, divided by 2^[`LIMB`].
    fn split(&mut self, a: &E::Value) -> (E::Value, E::Value) {
        let unit = self.n(1 << LIMB);
        let rest = self.op(Mod, a, &unit);
        let whole = self.op(Sub, a, &rest);
        (rest, self.op(Div, &whole, &unit))
    }

    /// Compares `x` with `c`. The `i64` values for which the comparison holds are an interval, or all but one value.
    fn compared(&mut self, how: Comparison, c: f64) -> E::Value {
        const NONE: (i64, i64) = (i64::MAX, i64::MIN);
        let (least, greatest) = match how {
            _ if c.is_nan() => NONE,
            Comparison::Less if c >= LIMIT => (i64::MIN, i64::MAX),
            Comparison::Less if c <= -LIMIT => NONE,
            Comparison::Less => (i64::MIN, c.ceil() as i64 - 1),
            Comparison::LessOrEqual if c < -LIMIT => NONE,
            Comparison::LessOrEqual => (i64::MIN, c.floor() as i64),
            Comparison::Greater if c < -LIMIT => (i64::MIN, i64::MAX),
            Comparison::Greater if c >= LIMIT => NONE,
            Comparison::Greater => (c.floor() as i64 + 1, i64::MAX),
            Comparison::GreaterOrEqual if c >= LIMIT => NONE,
            Comparison::GreaterOrEqual => (c.ceil() as i64, i64::MAX),
            Comparison::Equal | Comparison::NotEqual if c.trunc() == c && is_inside(c) => (c as i64, c as i64),
            Comparison::Equal | Comparison::NotEqual => NONE,
        };
        let x = self.x.clone();
        let (from, to) = (self.with(Ge, &x, least), self.with(Le, &x, greatest));
        let inside = self.op(And, &from, &to);
        if how == Comparison::NotEqual { self.emit.op(Not, &[inside]) } else { inside }
    }

    /// The whole part of `c` as the sum of two `i64`, if `c` is below 2^64, and the bounds of the result. For other
    /// numbers, and for NaN, the bounds are equal, because all results are.
    fn halves(c: f64) -> (i64, i64, [i64; 2]) {
        let all = [i64::MIN, i64::MAX];
        match c.abs() {
            _ if c.is_nan() => (0, 0, [0, 0]),
            size if size >= 2.0 * LIMIT => (0, 0, [if c > 0.0 { i64::MAX } else { i64::MIN }; 2]),
            // The number is even here. If adding the first half saturates, adding both halves would saturate, too.
            size if size >= LIMIT => ((c / 2.0) as i64, (c / 2.0) as i64, all),
            _ => (c as i64, 0, all),
        }
    }

    /// `first + second`, moved by the steps of a fraction (see `steps`), within bounds.
    fn rounded_in_bounds(
        &mut self,
        first: &E::Value,
        second: i64,
        [from, above, below]: [i64; 3],
        bounds: [i64; 2],
    ) -> E::Value {
        let sum = self.with(Add, first, second);
        let mask = self.with(Ge, &sum, from);
        let step = self.either(&mask, above, below);
        let moved = self.op(Add, &sum, &step);
        let [low, high] = bounds.map(|bound| self.n(bound));
        self.emit.op(Clamp, &[moved, low, high])
    }

    /// `x + c`.
    fn plus(&mut self, c: f64) -> E::Value {
        let (half, other, bounds) = Self::halves(c);
        let x = self.x.clone();
        let first = self.with(Add, &x, half);
        let fraction = if c.abs() < LIMIT { c.fract() } else { 0.0 };
        self.rounded_in_bounds(&first, other, steps(fraction), bounds)
    }

    /// `c - x`.
    fn subtracted_from(&mut self, c: f64) -> E::Value {
        let (mut half, other, bounds) = Self::halves(c);
        let mut moves = steps(if c.abs() < LIMIT { c.fract() } else { 0.0 });
        if c < 0.0 && c > -1.0 {
            // `0 - x` may be 2^63, which overflows before the fraction takes it down. So `x` is subtracted from -1, and
            // the difference moved up by 1 unless the result is rounded down to it.
            half = -1;
            moves = if c > -0.5 { [0, 1, 1] } else { [0, i64::from(c == -0.5), 0] };
        }
        let (half, x) = (self.n(half), self.x.clone());
        let first = self.op(Sub, &half, &x);
        self.rounded_in_bounds(&first, other, moves, bounds)
    }

    /// `x * c`.
    fn times(&mut self, c: f64) -> E::Value {
        // `c` is `mantissa * more / 2^shift`.
        let (mantissa, shift, more) = match c.abs() {
            _ if c.is_nan() => (0, 0, 1),
            size if size >= LIMIT => (1 << 52, 0, 1 << 62),
            _ if has_fraction(c) => {
                let (mantissa, shift) = parts(c);
                if shift >= SHIFT_MAX { (0, 0, 1) } else { (mantissa, shift, 1) }
            }
            size => {
                let whole = size as i64;
                let spare = (64 - whole.leading_zeros()).saturating_sub(53);
                (whole >> spare, 0, 1 << spare)
            }
        };
        let sign = if c < 0.0 { -1 } else { 1 };
        let (m0, m1) = (sign * (mantissa % (1 << LIMB)), sign * (mantissa >> LIMB));
        // Half of the unit to which the product is rounded is added before rounding down, and 1 less where the product
        // is negative, so that ties go away from zero.
        let half = |limb: u32| match shift > 0 && ((shift - 1) / LIMB).min(3) == limb {
            true => 1i64 << (shift - 1 - limb * LIMB),
            false => 0,
        };
        let less = |below: bool| i64::from(shift > 0 && (sign < 0) != below);
        let x = self.x.clone();
        let is_below = self.with(Lt, &x, 0);
        let below = self.either(&is_below, less(true), less(false));
        let (x0, rest) = self.split(&x);
        let (x1, x2) = self.split(&rest);
        let (m0, m1) = (self.n(m0), self.n(m1));
        let mut product = |a: &E::Value, m: &E::Value, more: i64| {
            let product = self.op(Mul, a, m);
            self.with(Add, &product, more)
        };
        let p0 = product(&x0, &m0, half(0));
        let (p1, other1) = (product(&x0, &m1, half(1)), product(&x1, &m0, 0));
        let (p2, other2) = (product(&x1, &m1, half(2)), product(&x2, &m0, 0));
        let p3 = product(&x2, &m1, half(3));
        let p0 = self.op(Sub, &p0, &below);
        let (d0, carry) = self.split(&p0);
        let (p1, p2) = (self.op(Add, &p1, &other1), self.op(Add, &p2, &other2));
        let p1 = self.op(Add, &p1, &carry);
        let (d1, carry) = self.split(&p1);
        let p2 = self.op(Add, &p2, &carry);
        let (d2, carry) = self.split(&p2);
        let d3 = self.op(Add, &p3, &carry);
        // The product is high * 2^54 + low, and low is not negative.
        let (high, low) = (self.with(Mul, &d3, 1 << LIMB), self.with(Mul, &d1, 1 << LIMB));
        let (high, low) = (self.op(Add, &high, &d2), self.op(Add, &low, &d0));
        let up = (2 * LIMB).saturating_sub(shift);
        let upper = self.shifted(&high, shift.saturating_sub(2 * LIMB));
        let upper = self.with(Mul, &upper, 1 << up);
        let lower = self.shifted(&low, shift.min(2 * LIMB));
        let total = self.op(Add, &upper, &lower);
        // If the high part saturates at the least `i64`, adding the low part would raise the result again.
        let far = self.with(Lt, &high, if up > 0 { -(1i64 << (63 - up)) } else { i64::MIN });
        let least = self.n(i64::MIN);
        let total = self.select(&far, &least, &total);
        self.with(Mul, &total, more)
    }

    /// `x / c`.
    fn divided_by(&mut self, c: f64) -> E::Value {
        let size = c.abs();
        let is_negative = c.is_sign_negative();
        let (mantissa, shift) = match size {
            _ if has_fraction(c) => parts(c),
            _ if is_inside(size) => (size as i64, 0),
            _ => (1, 0),
        };
        let is_tiny = mantissa == 0 || shift >= SHIFT_MAX;
        let (mantissa, shift) = if is_tiny { (1, 0) } else { (mantissa, shift) };
        let is_large = !is_inside(size);
        // The result is `lower` for all x below `least`, `upper` for all x above `greatest`, and 0 in between if `c` is
        // large.
        let far = if is_negative { (i64::MAX, i64::MIN) } else { (i64::MIN, i64::MAX) };
        let (least, greatest, (lower, upper)) = match size * LIMIT {
            _ if is_tiny => (0, 0, far),
            _ if is_large => {
                let (half, one) = (size / 2.0, if is_negative { -1 } else { 1 });
                match half <= LIMIT {
                    true if half < LIMIT => (-(half as i64) + 1, half as i64 - 1, (-one, one)),
                    true => (i64::MIN + 1, i64::MAX, (-one, one)),
                    // The same holds if `c` is NaN.
                    false => (i64::MIN, i64::MAX, (0, 0)),
                }
            }
            limit if limit < LIMIT => ((-limit).ceil() as i64, limit.ceil() as i64 - 1, far),
            _ => (i64::MIN, i64::MAX, far),
        };
        // Long division of x * 2^shift, rounded down; the remainder stays in 0..mantissa.
        let (x, m) = (self.x.clone(), self.n(mantissa));
        let rest = self.op(Rem, &x, &m);
        let whole = self.op(Sub, &x, &rest);
        let quotient = self.op(Div, &whole, &m);
        let is_below = self.with(Lt, &rest, 0);
        let less = self.either(&is_below, -1, 0);
        let mut quotient = self.op(Add, &quotient, &less);
        let more = self.either(&is_below, mantissa, 0);
        let mut rest = self.op(Add, &rest, &more);
        let mut left = shift;
        for _ in 0..self.turns(shift, SHIFT_MAX) {
            let step = left.min(STEP);
            left -= step;
            let unit = self.n(1 << step);
            let dividend = self.op(Mul, &rest, &unit);
            rest = self.op(Mod, &dividend, &m);
            let whole = self.op(Sub, &dividend, &rest);
            let digits = self.op(Div, &whole, &m);
            quotient = self.op(Mul, &quotient, &unit);
            quotient = self.op(Add, &quotient, &digits);
        }
        // Ties go away from zero. For a negative divisor, the base is the complement of the quotient's bits, `-1 -
        // quotient`, which is moved up by 1 if the exact result is nearer to `-quotient`.
        let twice = self.op(Add, &rest, &rest);
        let x_below = self.with(Lt, &x, 0);
        let (up_from, down_to) =
            (self.either(&x_below, mantissa, mantissa - 1), self.either(&x_below, mantissa + 1, mantissa));
        let (up, down) = (self.op(Gt, &twice, &up_from), self.op(Lt, &twice, &down_to));
        let negative = self.flag(is_negative);
        let minus_one = self.n(-1);
        let complement = self.op(Sub, &minus_one, &quotient);
        let base = self.select(&negative, &complement, &quotient);
        let (up, down) = (self.either(&up, 1, 0), self.either(&down, 1, 0));
        let step = self.select(&negative, &down, &up);
        let result = self.op(Add, &base, &step);
        let (zero, large) = (self.n(0), self.flag(is_large));
        let result = self.select(&large, &zero, &result);
        let (below, above) = (self.with(Lt, &x, least), self.with(Gt, &x, greatest));
        let (lower, upper) = (self.n(lower), self.n(upper));
        let result = self.select(&above, &upper, &result);
        self.select(&below, &lower, &result)
    }

    /// The result in f64 if the number is beyond what is computed exactly, else `exact`.
    fn or_float(&mut self, op: ElementOp, c: f64, reversed: bool, exact: E::Value) -> E::Value {
        if self.emit.may_depend_on_number() {
            return exact;
        }
        let x = self.x.clone();
        // For other numbers, the result in f64 is computed with 1, and not used.
        let is_so = needs_float(op, c, reversed);
        match self.emit.float(op, &x, if is_so { c } else { 1.0 }, reversed) {
            Some(float) => {
                let beyond = self.flag(is_so);
                self.select(&beyond, &float, &exact)
            }
            None => exact,
        }
    }

    /// `c / x`.
    fn dividing(&mut self, c: f64) -> E::Value {
        let number = if is_inside(c) { c } else { 0.0 };
        let x = self.x.clone();
        let whole = self.n(number.trunc() as i64);
        let rest = self.op(Rem, &whole, &x);
        let quotient = self.op(Sub, &whole, &rest);
        let quotient = self.op(Div, &quotient, &x);
        let (rest, divisor) = (self.emit.op(Abs, &[rest]), self.emit.op(Abs, std::slice::from_ref(&x)));
        let twice = self.op(Add, &rest, &rest);
        let twice = self.with(Add, &twice, (number.abs().fract() * 2.0) as i64);
        let (is_away, is_below) = (self.op(Ge, &twice, &divisor), self.with(Lt, &x, 0));
        let sign = if c < 0.0 { -1 } else { 1 };
        let (away, stay) = (self.either(&is_below, -sign, sign), self.n(0));
        let step = self.select(&is_away, &away, &stay);
        let result = self.op(Add, &quotient, &step);
        let is_zero = self.with(Eq, &x, 0);
        let far = self.n(if c == 0.0 { 0 } else { rounded(c.signum() * f64::INFINITY) });
        let result = self.select(&is_zero, &far, &result);
        self.or_float(Div, c, true, result)
    }

    /// `mod(x, c)` or `rem(x, c)`.
    fn remainder(&mut self, op: ElementOp, c: f64) -> E::Value {
        let is_far = c.abs() >= LIMIT;
        // x * 2^shift, in steps that fit an `i64`, each reduced by the divisor. The remainder is then a multiple of
        // 2^-shift.
        let (mantissa, shift) = match c.abs() {
            _ if is_far || c.is_nan() => (1, 0),
            size if size > 0.0 && size < 0.5 => (1, 0),
            _ if has_fraction(c) => parts(c),
            size => (size as i64, 0),
        };
        let (x, divisor) = (self.x.clone(), self.n(if c < 0.0 { -mantissa } else { mantissa }));
        let mut rest = self.op(op, &x, &divisor);
        let mut left = shift;
        for _ in 0..self.turns(shift, 54) {
            let step = left.min(STEP);
            left -= step;
            rest = self.with(Mul, &rest, 1 << step);
            rest = self.op(op, &rest, &divisor);
        }
        let result = self.with(Div, &rest, 1 << shift);
        // The divisor is beyond `i64`. Its size is greater than that of every `x` except -2^63.
        let (least, greatest) = match op {
            Mod if c > 0.0 => (0, i64::MAX),
            Mod if c == -LIMIT => (i64::MIN + 1, 0),
            Mod => (i64::MIN, 0),
            _ if c.abs() == LIMIT => (i64::MIN + 1, i64::MAX),
            _ => (i64::MIN, i64::MAX),
        };
        let size = if is_far { c.abs() } else { 0.0 };
        let (lifted, lowered) = match op {
            Mod => (self.plus(size), self.plus(-size)),
            _ => (self.n(0), self.n(0)),
        };
        let (below, above) = (self.with(Lt, &x, least), self.with(Gt, &x, greatest));
        let beside = self.select(&below, &lifted, &x);
        let beside = self.select(&above, &lowered, &beside);
        let far = self.flag(is_far);
        self.select(&far, &beside, &result)
    }

    /// `mod(c, x)` or `rem(c, x)`.
    fn remainder_of_number(&mut self, op: ElementOp, c: f64) -> E::Value {
        let number = if is_inside(c) { c } else { 0.0 };
        // The remainder of a whole number next to `c`, moved by their difference, which has the sign of the result.
        let beside = |whole: f64| {
            let rest = number - whole;
            (whole as i64, if rest.abs() >= 0.5 { rest.signum() as i64 } else { 0 })
        };
        let (under, over) = match op {
            Mod => (beside(number.ceil()), beside(number.floor())),
            _ => (beside(number.trunc()), beside(number.trunc())),
        };
        let x = self.x.clone();
        let is_below = self.with(Lt, &x, 0);
        let (whole, step) = (self.either(&is_below, under.0, over.0), self.either(&is_below, under.1, over.1));
        let rest = self.op(op, &whole, &x);
        let result = self.op(Add, &rest, &step);
        let is_zero = self.with(Eq, &x, 0);
        let by_zero = self.n(if op == Mod { rounded(number) } else { 0 });
        let result = self.select(&is_zero, &by_zero, &result);
        self.or_float(op, c, true, result)
    }
}
