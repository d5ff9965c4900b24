//! `interp1`: values between samples, by lines, steps, shape-preserving cubics and splines.
//!
//! In: samples (a vector, or a column for each of several functions), and places. Out: the values at the places, NaN
//! where no value is known.

use super::polynomials::{any_single, complexes_as, joined, reals_as};
use crate::builtins::Outcome;
use crate::builtins::args::{has_word, number};
use crate::display::number::MISSING;
use crate::error::{Flow, fail};
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use std::sync::Arc;

/// The method by which values between samples are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Linear,
    Nearest,
    Previous,
    Next,
    Pchip,
    Spline,
}

fn method(name: &str) -> Option<Method> {
    Some(match name.trim_start_matches('*') {
        "linear" => Method::Linear,
        "nearest" => Method::Nearest,
        "previous" => Method::Previous,
        "next" => Method::Next,
        "pchip" | "cubic" => Method::Pchip,
        "spline" => Method::Spline,
        _ => return None,
    })
}

/// Returns the slopes at the samples that keep the samples' shape (Fritsch and Butland, "A method for constructing
/// local monotone piecewise cubic interpolants", 1984; one-sided three-point slopes at the ends).
fn shape_preserving(x: &[f64], y: &[f64]) -> Vec<f64> {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let d: Vec<f64> = (0..n - 1).map(|i| (y[i + 1] - y[i]) / h[i]).collect();
    if n == 2 {
        return vec![d[0]; 2];
    }
    let end = |h0: f64, h1: f64, d0: f64, d1: f64| {
        let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
        match slope {
            s if s * d0 <= 0.0 => 0.0,
            s if d0 * d1 <= 0.0 && s.abs() > 3.0 * d0.abs() => 3.0 * d0,
            s => s,
        }
    };
    let mut slopes = vec![0.0; n];
    slopes[0] = end(h[0], h[1], d[0], d[1]);
    slopes[n - 1] = end(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
    for i in 1..n - 1 {
        if d[i - 1] * d[i] > 0.0 {
            let (w0, w1) = (2.0 * h[i] + h[i - 1], h[i] + 2.0 * h[i - 1]);
            slopes[i] = (w0 + w1) / (w0 / d[i - 1] + w1 / d[i]);
        }
    }
    slopes
}

/// Returns the slopes of the cubic spline whose third derivative is the same on both sides of the second sample, and on
/// both sides of the last but one.
fn not_a_knot(x: &[f64], y: &[f64]) -> Vec<f64> {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let d: Vec<f64> = (0..n - 1).map(|i| (y[i + 1] - y[i]) / h[i]).collect();
    if n == 2 {
        return vec![d[0]; 2];
    }
    if n == 3 {
        // This is the parabola through all three samples.
        let bend = (d[1] - d[0]) / (h[0] + h[1]);
        return vec![d[0] - bend * h[0], d[0] + bend * h[0], d[1] + bend * h[1]];
    }
    let (first, last) = (h[0] + h[1], h[n - 2] + h[n - 3]);
    let (mut lower, mut middle, mut upper, mut slopes) = (vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    (middle[0], upper[0]) = (h[1], first);
    slopes[0] = ((h[0] + 2.0 * first) * h[1] * d[0] + h[0] * h[0] * d[1]) / first;
    for i in 1..n - 1 {
        (lower[i], middle[i], upper[i]) = (h[i], 2.0 * (h[i - 1] + h[i]), h[i - 1]);
        slopes[i] = 3.0 * (h[i] * d[i - 1] + h[i - 1] * d[i]);
    }
    (middle[n - 1], lower[n - 1]) = (h[n - 3], last);
    slopes[n - 1] = (h[n - 2] * h[n - 2] * d[n - 3] + (2.0 * last + h[n - 2]) * h[n - 3] * d[n - 2]) / last;
    // This is Thomas's elimination.
    for i in 1..n {
        let factor = lower[i] / middle[i - 1];
        middle[i] -= factor * upper[i - 1];
        slopes[i] -= factor * slopes[i - 1];
    }
    slopes[n - 1] /= middle[n - 1];
    for i in (0..n - 1).rev() {
        slopes[i] = (slopes[i] - upper[i] * slopes[i + 1]) / middle[i];
    }
    slopes
}

/// Samples in the order of their places.
struct Samples {
    x: Vec<f64>,
    y: Vec<f64>,
    /// The slopes of the cubics; empty for other methods.
    slopes: Vec<f64>,
    method: Method,
    /// Whether the first of two samples at the same place determines the value there.
    jumps_left: bool,
}

impl Samples {
    fn new(x: &[f64], y: Vec<f64>, method: Method) -> Samples {
        let slopes = match method {
            Method::Pchip => shape_preserving(x, &y),
            Method::Spline => not_a_knot(x, &y),
            _ => Vec::new(),
        };
        Samples { x: x.to_vec(), y, slopes, method, jumps_left: false }
    }

    /// Returns the value at a place, which may lie outside of the samples.
    fn at(&self, v: f64) -> f64 {
        let (x, y) = (&self.x, &self.y);
        let before = if self.jumps_left { x.partition_point(|e| *e < v) } else { x.partition_point(|e| *e <= v) };
        let i = before.clamp(1, x.len() - 1) - 1;
        let h = x[i + 1] - x[i];
        let t = (v - x[i]) / h;
        match self.method {
            Method::Nearest => y[if t >= 0.5 { i + 1 } else { i }],
            Method::Previous => y[if v >= x[i + 1] { i + 1 } else { i }],
            Method::Next => y[if v <= x[i] { i } else { i + 1 }],
            Method::Linear => y[i] + t * (y[i + 1] - y[i]),
            Method::Pchip | Method::Spline => {
                let [c3, c2, c1, c0] = self.cubic(i);
                let u = v - x[i];
                c0 + u * (c1 + u * (c2 + u * c3))
            }
        }
    }

    /// Returns a cubic piece in powers of the distance from its left sample.
    fn cubic(&self, i: usize) -> [f64; 4] {
        let (x, y) = (&self.x, &self.y);
        let h = x[i + 1] - x[i];
        let d = (y[i + 1] - y[i]) / h;
        let (s0, s1) = (self.slopes[i], self.slopes[i + 1]);
        [(s0 + s1 - 2.0 * d) / (h * h), (3.0 * d - 2.0 * s0 - s1) / h, s0, y[i]]
    }

    /// Returns the limits of the pieces and their coefficients, the highest first.
    fn pieces(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let (x, y) = (&self.x, &self.y);
        let each = 0..x.len() - 1;
        match self.method {
            Method::Nearest => {
                let mut breaks = vec![x[0]];
                breaks.extend(each.map(|i| (x[i] + x[i + 1]) / 2.0));
                breaks.push(x[x.len() - 1]);
                (breaks, y.iter().map(|v| vec![*v]).collect())
            }
            Method::Previous => {
                let mut breaks = x.clone();
                breaks.push(2.0 * x[x.len() - 1] - x[x.len() - 2]);
                (breaks, y.iter().map(|v| vec![*v]).collect())
            }
            Method::Next => {
                let mut breaks = vec![2.0 * x[0] - x[1]];
                breaks.extend(x);
                (breaks, y.iter().map(|v| vec![*v]).collect())
            }
            Method::Linear => (x.clone(), each.map(|i| vec![(y[i + 1] - y[i]) / (x[i + 1] - x[i]), y[i]]).collect()),
            Method::Pchip | Method::Spline => (x.clone(), each.map(|i| self.cubic(i).to_vec()).collect()),
        }
    }
}

/// Returns curves as one structure for `ppval`, which contains the pieces of all curves.
fn pieces_of(curves: &[Samples]) -> Value {
    let parts: Vec<_> = curves.iter().map(Samples::pieces).collect();
    let Some((breaks, first)) = parts.first() else { return Value::empty() };
    let (pieces, order) = (first.len(), first[0].len());
    let height = pieces * curves.len();
    let at = |k: usize| parts[k % height % curves.len()].1[k % height / curves.len()][k / height];
    let coefficients = Tensor::new(Dims::new(&[height, order]), Data::F64((0..height * order).map(at).collect()));
    let mut s = StructArray::scalar();
    s.set("form", Value::string("pp"));
    s.set("breaks", Value::row(breaks.clone()));
    s.set("coefs", Value::tensor(coefficients));
    s.set("pieces", Value::from(pieces));
    s.set("order", Value::from(order));
    s.set("dim", Value::from(curves.len()));
    s.set("orient", Value::string("first"));
    Value::Struct(Arc::new(s))
}

/// Returns the method that words name, and whether a jump takes the value from its left side.
fn chosen_of(options: &[Value]) -> Flow<(Method, bool)> {
    let (mut chosen, mut jumps_left) = (Method::Linear, false);
    for word in options.iter().filter_map(Value::as_text).map(|word| word.to_lowercase()) {
        match (word.as_str(), method(&word)) {
            ("extrap" | "pp", _) => {}
            ("left" | "right", _) => jumps_left = word == "left",
            (_, Some(method)) => chosen = method,
            (_, None) => return fail!("interp1: invalid METHOD '{word}'"),
        }
    }
    Ok((chosen, jumps_left))
}

/// Does `interp1 (x, y, xi, method, extrap, side)`.
pub(super) fn interp1(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let words = args.iter().position(|a| a.is_char()).unwrap_or(args.len());
    let (arrays, options) = args.split_at(words);
    let env = &interp.env;
    let pieces = has_word(options, "pp");
    let (x, y, xi) = match arrays {
        [y] if pieces => (None, env.host(y)?, env.host(&Value::empty())?),
        [x, y] if pieces => (Some(env.host(x)?), env.host(y)?, env.host(&Value::empty())?),
        [y, xi] => (None, env.host(y)?, env.host(xi)?),
        [x, y, xi] | [x, y, xi, _] => (Some(env.host(x)?), env.host(y)?, env.host(xi)?),
        _ => return fail!("Invalid call to interp1"),
    };
    if [x.as_ref(), Some(&xi)].into_iter().flatten().any(|t| t.data.is_complex()) {
        return fail!("interp1: complex places are not supported yet");
    }
    let (rows, columns) = match y.dims.is_vector() {
        true => (y.len(), 1),
        false => (y.dims.rows(), y.len().checked_div(y.dims.rows()).unwrap_or(0)),
    };
    let places = match &x {
        Some(x) => x.data.to_f64(),
        None => (1..=rows).map(|i| i as f64).collect(),
    };
    if places.len() != rows || rows < 2 {
        return fail!("interp1: minimum of 2 points required in each dimension");
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&i, &j| places[i].total_cmp(&places[j]));
    let sorted: Vec<f64> = order.iter().map(|&i| places[i]).collect();
    let (chosen, jumps_left) = chosen_of(options)?;
    // The value outside may also come before the method.
    let outside = arrays
        .get(3)
        .or_else(|| options.iter().find(|o| !o.is_char()))
        .map(|value| number(env, "interp1", value))
        .transpose()?;
    let jumps = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if jumps && !matches!(chosen, Method::Linear | Method::Nearest) {
        let name = options.iter().filter_map(Value::as_text).find(|word| *word != "extrap").unwrap_or_default();
        let name = if name == "next" { "previous" } else { name.as_str() };
        return fail!("interp1: discontinuities not supported for METHOD '{name}'");
    }
    if pieces {
        let values = |column: usize| order.iter().map(|&i| y.data.f64_at(column * rows + i)).collect();
        let curves: Vec<Samples> = (0..columns).map(|c| Samples::new(&sorted, values(c), chosen)).collect();
        return Ok(pieces_of(&curves).into());
    }
    // Cubics continue beyond their ends unless another value is given.
    let goes_on = has_word(options, "extrap") || outside.is_none() && matches!(chosen, Method::Pchip | Method::Spline);
    let outside = outside.map_or_else(|| Complex64::new(MISSING, MISSING), Complex64::from);
    let part = |of: fn(Complex64) -> f64| {
        let mut out = Vec::with_capacity(xi.len().saturating_mul(columns));
        for column in 0..columns {
            let values = order.iter().map(|&i| of(y.data.c64_at(column * rows + i))).collect();
            let mut samples = Samples::new(&sorted, values, chosen);
            samples.jumps_left = jumps_left;
            out.extend((0..xi.len()).map(|k| match xi.data.f64_at(k) {
                v if v.is_nan() => f64::NAN,
                v if (v < sorted[0] || v > sorted[rows - 1]) && !goes_on => of(outside),
                v => samples.at(v),
            }));
        }
        out
    };
    let out = part(|z| z.re);
    let dims = match y.dims.is_vector() {
        true => xi.dims.clone(),
        // Each column gives a result. The columns' dimensions follow those of the places.
        false => {
            let mut extents = if xi.dims.is_vector() { vec![xi.len()] } else { xi.dims.to_vec() };
            extents.extend_from_slice(&y.dims[1..]);
            Dims::new(&extents)
        }
    };
    let single = any_single(&[&y, &xi]) || x.is_some_and(|x| any_single(&[&x]));
    if y.data.is_complex() {
        return Ok(complexes_as(dims, joined(out, part(|z| z.im)), single).into());
    }
    Ok(reals_as(dims, out, single).into())
}
