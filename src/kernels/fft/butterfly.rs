//! Writes short transforms as straight-line WGSL.
//!
//! In: names of complex numbers. Out: statements that transform them, and the names of the results. Must hold:
//! constants have an error of at most one ulp; nothing is multiplied by a constant 0 or 1, so that NaN does not spread
//! by such products.

use crate::graph::DType;
use std::fmt::Write;

/// A complex number, as the expressions of its parts.
#[derive(Clone, Debug)]
pub struct Number {
    /// The real part.
    pub re: String,
    /// The imaginary part.
    pub im: String,
}

/// Statements under construction.
pub struct Statements {
    /// The text so far.
    pub text: String,
    dtype: DType,
    names: u32,
}

impl Statements {
    /// No statements yet. Numbers have this dtype.
    pub fn new(dtype: DType) -> Statements {
        Statements { text: String::new(), dtype, names: 0 }
    }

    /// Returns a new name.
    pub fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Declares a name for the value of an expression.
    pub fn value(&mut self, expression: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.text, "    let {name} = {expression};");
        name
    }

    /// Declares names for the parts of a complex number.
    pub fn number(&mut self, re: &str, im: &str) -> Number {
        Number { re: self.value(re), im: self.value(im) }
    }

    /// The product of `x` and a number whose parts are these expressions.
    pub fn product(&mut self, x: &Number, re: &str, im: &str) -> Number {
        let Number { re: a, im: b } = x;
        self.number(&format!("{a} * {re} - {b} * {im}"), &format!("{a} * {im} + {b} * {re}"))
    }

    fn sum(&mut self, x: &Number, y: &Number) -> Number {
        self.number(&format!("{} + {}", x.re, y.re), &format!("{} + {}", x.im, y.im))
    }

    fn difference(&mut self, x: &Number, y: &Number) -> Number {
        self.number(&format!("{} - {}", x.re, y.re), &format!("{} - {}", x.im, y.im))
    }

    /// The transform of these numbers. Their count is 1, a prime, or a product of primes.
    pub fn transform(&mut self, x: &[Number]) -> Vec<Number> {
        match x.len() {
            1 => x.to_vec(),
            2 => vec![self.sum(&x[0], &x[1]), self.difference(&x[0], &x[1])],
            radix => match (2..radix).find(|&divisor| radix.is_multiple_of(divisor)) {
                Some(2) if radix.is_multiple_of(4) && radix > 4 => self.composite(x, 4),
                Some(divisor) => self.composite(x, divisor),
                None => self.prime(x),
            },
        }
    }

    /// Transforms the numbers in groups of `inner`, multiplies the results by twiddle factors, and transforms across
    /// the groups.
    fn composite(&mut self, x: &[Number], inner: usize) -> Vec<Number> {
        let (radix, outer) = (x.len(), x.len() / inner);
        let mut parts: Vec<Vec<Number>> = Vec::new();
        for first in 0..outer {
            let part: Vec<Number> = x.iter().skip(first).step_by(outer).cloned().collect();
            let part = self.transform(&part);
            parts.push(part.iter().enumerate().map(|(k, y)| self.turned(y, first * k, radix)).collect());
        }
        let mut result = x.to_vec();
        for k in 0..inner {
            let across: Vec<Number> = parts.iter().map(|part| part[k].clone()).collect();
            for (step, y) in self.transform(&across).into_iter().enumerate() {
                result[k + inner * step] = y;
            }
        }
        result
    }

    /// The transform of a prime number of inputs: the sum and the difference of inputs `j` and `radix - j` give results
    /// `k` and `radix - k` together.
    fn prime(&mut self, x: &[Number]) -> Vec<Number> {
        let (radix, half) = (x.len(), x.len() / 2);
        let pairs: Vec<(Number, Number)> =
            (1..=half).map(|j| (self.sum(&x[j], &x[radix - j]), self.difference(&x[j], &x[radix - j]))).collect();
        let add = |part: fn(&Number) -> &String, of: &[(Number, Number)]| {
            of.iter().fold(part(&x[0]).clone(), |sum, (t, _)| format!("{sum} + {}", part(t)))
        };
        let mut result = x.to_vec();
        result[0] = self.number(&add(|n| &n.re, &pairs), &add(|n| &n.im, &pairs));
        for k in 1..=half {
            let (mut even, mut odd) = ([x[0].re.clone(), x[0].im.clone()], [String::new(), String::new()]);
            for (j, (t, d)) in pairs.iter().enumerate() {
                let (cos, sin) = turn((j + 1) * k, radix);
                let (cos, sin) = (self.literal(cos), self.literal(sin));
                let joint = if j == 0 { "" } else { " + " };
                for (sum, part) in even.iter_mut().zip([&t.re, &t.im]) {
                    let _ = write!(sum, " + {cos} * {part}");
                }
                for (sum, part) in odd.iter_mut().zip([&d.im, &d.re]) {
                    let _ = write!(sum, "{joint}{sin} * {part}");
                }
            }
            let even = self.number(&even[0], &even[1]);
            let odd = self.number(&odd[0], &odd[1]);
            let (re, im) = (&even.re, &even.im);
            result[k] = self.number(&format!("{re} + {}", odd.re), &format!("{im} - {}", odd.im));
            result[radix - k] = self.number(&format!("{re} - {}", odd.re), &format!("{im} + {}", odd.im));
        }
        result
    }

    /// A number times `exp(-2 pi i k / n)`.
    fn turned(&mut self, x: &Number, k: usize, n: usize) -> Number {
        let k = k % n;
        if k == 0 {
            return x.clone();
        }
        if (4 * k).is_multiple_of(n) {
            return match 4 * k / n {
                1 => self.number(&x.im, &format!("-{}", x.re)),
                2 => self.number(&format!("-{}", x.re), &format!("-{}", x.im)),
                _ => self.number(&format!("-{}", x.im), &x.re),
            };
        }
        let (cos, sin) = turn(k, n);
        let (cos, sin) = (self.literal(cos), self.literal(-sin));
        self.product(x, &cos, &sin)
    }

    /// A constant of the dtype.
    pub fn literal(&self, value: f64) -> String {
        literal(self.dtype, value)
    }
}

/// A constant of a dtype, in parentheses if it has a sign.
pub fn literal(dtype: DType, value: f64) -> String {
    let (digits, suffix) =
        if dtype.is_wide() { (format!("{value:?}"), "lf") } else { (format!("{:?}", value as f32), "f") };
    if value.is_sign_negative() { format!("({digits}{suffix})") } else { format!("{digits}{suffix}") }
}

/// Cosine and sine of `2 pi k / n`: the parts of a twiddle factor.
pub fn turn(k: usize, n: usize) -> (f64, f64) {
    // The angle is taken from the nearest quarter turn, so that it and its error are small.
    let k = k % n;
    let quarter = (4 * k + n / 2) / n;
    let rest = (4 * k) as f64 - (quarter * n) as f64;
    let (sin, cos) = (std::f64::consts::FRAC_PI_2 * (rest / n as f64)).sin_cos();
    match quarter % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarter_turns_are_exact() {
        assert_eq!(
            [0, 3, 6, 9].map(|k| turn(k, 12)).map(|(c, s)| (c + 0.0, s + 0.0)),
            [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]
        );
        for (k, n) in [(1, 8), (1, 3), (2, 5), (12, 13), (7, 9)] {
            let (sin, cos) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
            assert!((turn(k, n).0 - cos).abs() < 1e-15 && (turn(k, n).1 - sin).abs() < 1e-15);
        }
    }
}
