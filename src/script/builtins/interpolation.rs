//! `interp1`: values between samples, by lines, steps, shape-preserving cubics and splines.
//!
//! In: samples (a vector, or a column for each of several functions) and the places that are asked for. Out: values,
//! NaN where nothing is known.

use super::Outcome;
use super::args::{has_word, number};
use super::creation::missing;
use super::polynomials::{any_single, complexes_as, joined, reals_as};
use crate::script::error::{Flow, fail};
use crate::script::value::{Dims, Value};
use crate::script::vm::Interp;
use faer::Mat;
use faer::linalg::solvers::Solve;
use num_complex::Complex64;

/// How values between samples are found.
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

/// The slopes at the samples that keep the samples' shape (Fritsch and Butland, "A method for constructing local
/// monotone piecewise cubic interpolants", 1984; one-sided three-point slopes at the ends).
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

/// The slopes of the cubic spline whose third derivative is the same on both sides of the second sample and of the
/// last but one.
fn not_a_knot(x: &[f64], y: &[f64]) -> Vec<f64> {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let d: Vec<f64> = (0..n - 1).map(|i| (y[i + 1] - y[i]) / h[i]).collect();
    if n == 2 {
        return vec![d[0]; 2];
    }
    if n == 3 {
        // The parabola through all three.
        let bend = (d[1] - d[0]) / (h[0] + h[1]);
        return vec![d[0] - bend * h[0], d[0] + bend * h[0], d[1] + bend * h[1]];
    }
    let mut a = Mat::<f64>::zeros(n, n);
    let mut b = Mat::<f64>::zeros(n, 1);
    let (first, last) = (h[0] + h[1], h[n - 2] + h[n - 3]);
    a[(0, 0)] = h[1];
    a[(0, 1)] = first;
    b[(0, 0)] = ((h[0] + 2.0 * first) * h[1] * d[0] + h[0] * h[0] * d[1]) / first;
    for i in 1..n - 1 {
        a[(i, i - 1)] = h[i];
        a[(i, i)] = 2.0 * (h[i - 1] + h[i]);
        a[(i, i + 1)] = h[i - 1];
        b[(i, 0)] = 3.0 * (h[i] * d[i - 1] + h[i - 1] * d[i]);
    }
    a[(n - 1, n - 1)] = h[n - 3];
    a[(n - 1, n - 2)] = last;
    b[(n - 1, 0)] = (h[n - 2] * h[n - 2] * d[n - 3] + (2.0 * last + h[n - 2]) * h[n - 3] * d[n - 2]) / last;
    let slopes = a.partial_piv_lu().solve(&b);
    (0..n).map(|i| slopes[(i, 0)]).collect()
}

/// Samples in the order of their places.
struct Samples {
    x: Vec<f64>,
    y: Vec<f64>,
    /// The slopes of the cubics; empty where there are none.
    slopes: Vec<f64>,
    method: Method,
}

impl Samples {
    fn new(x: &[f64], y: Vec<f64>, method: Method) -> Samples {
        let slopes = match method {
            Method::Pchip => shape_preserving(x, &y),
            Method::Spline => not_a_knot(x, &y),
            _ => Vec::new(),
        };
        Samples { x: x.to_vec(), y, slopes, method }
    }

    /// The value at a place, which may lie outside.
    fn at(&self, v: f64) -> f64 {
        let (x, y) = (&self.x, &self.y);
        let i = x.partition_point(|e| *e <= v).clamp(1, x.len() - 1) - 1;
        let h = x[i + 1] - x[i];
        let t = (v - x[i]) / h;
        match self.method {
            Method::Nearest => y[if t >= 0.5 { i + 1 } else { i }],
            Method::Previous => y[if v >= x[i + 1] { i + 1 } else { i }],
            Method::Next => y[if v <= x[i] { i } else { i + 1 }],
            Method::Linear => y[i] + t * (y[i + 1] - y[i]),
            Method::Pchip | Method::Spline => {
                // Hermite's form, about the nearer left sample.
                let d = (y[i + 1] - y[i]) / h;
                let (s0, s1) = (self.slopes[i], self.slopes[i + 1]);
                let (c2, c3) = ((3.0 * d - 2.0 * s0 - s1) / h, (s0 + s1 - 2.0 * d) / (h * h));
                let u = v - x[i];
                y[i] + u * (s0 + u * (c2 + u * c3))
            }
        }
    }
}

/// `interp1 (x, y, xi, method, extrap)`.
pub(super) fn interp1(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let words = args.iter().position(|a| a.is_char()).unwrap_or(args.len());
    let (arrays, options) = args.split_at(words);
    let env = &interp.env;
    let (x, y, xi) = match arrays {
        [y, xi] => (None, env.host(y)?, env.host(xi)?),
        [x, y, xi] => (Some(env.host(x)?), env.host(y)?, env.host(xi)?),
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
    let named = options.iter().filter_map(Value::as_text).map(|word| word.to_lowercase());
    let mut chosen = Method::Linear;
    for word in named.filter(|word| word != "extrap") {
        chosen = match method(&word) {
            Some(method) => method,
            None => return fail!("interp1: invalid METHOD '{word}'"),
        };
    }
    let jumps = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if jumps && !matches!(chosen, Method::Linear | Method::Nearest) {
        let name = options.iter().filter_map(Value::as_text).find(|word| *word != "extrap").unwrap_or_default();
        let name = if name == "next" { "previous" } else { name.as_str() };
        return fail!("interp1: discontinuities not supported for METHOD '{name}'");
    }
    let outside = match options.last() {
        Some(value) if !value.is_char() => Some(number(env, "interp1", value)?),
        _ => None,
    };
    // Cubics go on beyond their ends unless told otherwise.
    let goes_on = has_word(options, "extrap") || outside.is_none() && matches!(chosen, Method::Pchip | Method::Spline);
    let outside = outside.map_or_else(|| Complex64::new(missing(), missing()), Complex64::from);
    let part = |of: fn(Complex64) -> f64| {
        let mut out = Vec::with_capacity(xi.len().saturating_mul(columns));
        for column in 0..columns {
            let values = order.iter().map(|&i| of(y.data.c64_at(column * rows + i))).collect();
            let samples = Samples::new(&sorted, values, chosen);
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
        // A result for each column, after the dimensions of the places.
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
