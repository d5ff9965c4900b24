//! Polynomials, interpolation, numerical integrals, convolution and filters.

use super::args::{has_word, number};
use super::linear::{real, value_of};
use super::{Builtin, Outcome};
use crate::script::env::Env;
use crate::script::error::{Flow, fail};
use crate::script::value::{Data, Dims, Tensor, Value};
use crate::script::vm::Interp;
use faer::Mat;
use faer::linalg::solvers::SolveLstsq;
use num_complex::Complex64;

const fn row(
    name: &'static str,
    least: u8,
    most: u8,
    outputs: u8,
    usage: &'static str,
    summary: &'static str,
    run: super::Run,
) -> Builtin {
    Builtin { name, args_min: least, args_max: most, outputs_max: outputs, usage, summary, run }
}

/// The family.
pub static ROWS: &[Builtin] = &[
    row(
        "polyfit",
        3,
        3,
        1,
        "p = polyfit (x, y, n)",
        "The polynomial of degree n that fits best by least squares.",
        polyfit,
    ),
    row("polyval", 2, 2, 1, "polyval (p, x)", "A polynomial's values.", polyval),
    row("polyder", 1, 1, 1, "polyder (p)", "A polynomial's derivative.", polyder),
    row("polyint", 1, 2, 1, "polyint (p, k)", "A polynomial's integral.", polyint),
    row("roots", 1, 1, 1, "roots (p)", "A polynomial's roots, as eigenvalues of its companion matrix.", roots),
    row("poly", 1, 1, 1, "poly (r)", "The polynomial with these roots.", poly),
    row("conv", 2, 3, 1, "conv (a, b, shape)", "The convolution of two vectors.", conv),
    row("deconv", 2, 2, 2, "[q, r] = deconv (y, a)", "The division of polynomials.", deconv),
    row("conv2", 2, 3, 1, "conv2 (a, b, shape)", "The convolution of two matrices.", conv2),
    row(
        "filter",
        3,
        5,
        1,
        "filter (b, a, x)",
        "A rational digital filter, along the first dimension that is not 1.",
        filter,
    ),
    row("trapz", 1, 3, 1, "trapz (x, y, dim)", "The integral by the trapezoidal rule.", trapz),
    row("cumtrapz", 1, 3, 1, "cumtrapz (x, y, dim)", "The running integral by the trapezoidal rule.", cumtrapz),
    row(
        "interp1",
        2,
        5,
        1,
        "interp1 (x, y, xi, method, extrap)",
        "Values between samples: linear, nearest, previous, next.",
        interp1,
    ),
];

fn vector(env: &Env, who: &str, value: &Value) -> Flow<Vec<f64>> {
    let host = env.host(value)?;
    if host.data.is_complex() {
        return fail!("{who}: complex arguments are not supported yet");
    }
    if !host.dims.is_vector() && !host.is_empty() {
        return fail!("{who}: argument must be a vector");
    }
    Ok(host.data.to_f64())
}

fn polyfit(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (x, y) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let n = number(&interp.env, "polyfit", &args[2])?;
    if x.dims != y.dims && x.len() != y.len() {
        return fail!("polyfit: X and Y must be vectors of the same size");
    }
    if n < 0.0 || n.fract() != 0.0 || n > 1000.0 {
        return fail!("polyfit: N must be a non-negative integer");
    }
    let n = n as usize;
    if x.len() < n + 1 {
        return fail!("polyfit: there must be at least N+1 points");
    }
    let a = Mat::from_fn(x.len(), n + 1, |i, j| x.data.f64_at(i).powi((n - j) as i32));
    let b = Mat::from_fn(y.len(), 1, |i, _| y.data.f64_at(i));
    let p = a.qr().solve_lstsq(&b);
    Ok(Value::row((0..=n).map(|i| p[(i, 0)]).collect()).into())
}

fn polyval(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (p, x) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    if p.data.is_complex() || x.data.is_complex() {
        let at =
            |i: usize| (0..p.len()).fold(Complex64::new(0.0, 0.0), |sum, k| sum * x.data.c64_at(i) + p.data.c64_at(k));
        return Ok(Value::tensor(Tensor::new(x.dims.clone(), Data::C64((0..x.len()).map(at).collect()))).into());
    }
    let p = p.data.to_f64();
    let out = (0..x.len()).map(|i| p.iter().fold(0.0, |sum, c| sum * x.data.f64_at(i) + c)).collect();
    Ok(Value::tensor(Tensor::new(x.dims.clone(), Data::F64(out))).into())
}

fn polyder(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let p = vector(&interp.env, "polyder", &args[0])?;
    let n = p.len();
    let mut out: Vec<f64> =
        p.iter().take(n.saturating_sub(1)).enumerate().map(|(i, c)| c * (n - 1 - i) as f64).collect();
    let leading = out.iter().take_while(|c| **c == 0.0).count().min(out.len().saturating_sub(1));
    out.drain(..leading);
    Ok(Value::row(if out.is_empty() { vec![0.0] } else { out }).into())
}

fn polyint(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let p = vector(&interp.env, "polyint", &args[0])?;
    let k = args.get(1).map_or(Ok(0.0), |v| number(&interp.env, "polyint", v))?;
    let n = p.len();
    let mut out: Vec<f64> = p.iter().enumerate().map(|(i, c)| c / (n - i) as f64).collect();
    out.push(k);
    Ok(Value::row(out).into())
}

fn roots(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let p = vector(&interp.env, "roots", &args[0])?;
    if p.iter().any(|c| !c.is_finite()) {
        return fail!("roots: inputs must not contain Inf or NaN");
    }
    let first = p.iter().position(|c| *c != 0.0);
    let last = p.iter().rposition(|c| *c != 0.0);
    let (Some(first), Some(last)) = (first, last) else { return Ok(Value::empty().into()) };
    let zeros = p.len() - 1 - last;
    let p = &p[first..=last];
    let n = p.len() - 1;
    let mut found: Vec<Complex64> = Vec::new();
    if n > 0 {
        let companion = Mat::from_fn(n, n, |i, j| {
            if i == 0 {
                -p[j + 1] / p[0]
            } else if i == j + 1 {
                1.0
            } else {
                0.0
            }
        });
        match companion.eigenvalues() {
            Ok(values) => found.extend(values.iter().map(|z| Complex64::new(z.re, z.im))),
            Err(_) => return fail!("roots: no convergence"),
        }
    }
    // Larger roots first, as the companion matrix's order gives them for real ones.
    if found.iter().all(|z| z.im == 0.0) {
        found.sort_by(|a, b| b.re.abs().total_cmp(&a.re.abs()).then(b.re.total_cmp(&a.re)));
    }
    found.extend(std::iter::repeat_n(Complex64::new(0.0, 0.0), zeros));
    if found.is_empty() {
        return Ok(Value::empty().into());
    }
    Ok(Value::tensor(Tensor::new(Dims::new(&[found.len(), 1]), Data::C64(found))).into())
}

fn poly(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let roots = vector(&interp.env, "poly", &args[0])?;
    let p = roots.iter().fold(vec![1.0], |p, r| {
        let mut out = p.clone();
        out.push(0.0);
        for (i, c) in p.iter().enumerate() {
            out[i + 1] -= c * r;
        }
        out
    });
    Ok(Value::row(p).into())
}

/// The full convolution.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    out
}

fn conv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let column = |v: &Value| v.dims().columns() == 1 && v.dims().rows() > 1;
    let (a, b) = (vector(&interp.env, "conv", &args[0])?, vector(&interp.env, "conv", &args[1])?);
    if a.is_empty() || b.is_empty() {
        return fail!("conv: both arguments A and B must be vectors");
    }
    let mut out = convolved(&a, &b);
    if has_word(&args[2..], "same") {
        let start = b.len() / 2;
        out = out[start..start + a.len()].to_vec();
    }
    let upright = if a.len() == 1 { column(&args[1]) } else { column(&args[0]) };
    Ok(if upright { Value::column(out) } else { Value::row(out) }.into())
}

fn deconv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (y, a) = (vector(&interp.env, "deconv", &args[0])?, vector(&interp.env, "deconv", &args[1])?);
    if a.first().is_none_or(|c| *c == 0.0) {
        return fail!("deconv: divisor cannot be zero");
    }
    if y.len() < a.len() {
        return Ok(vec![Value::Num(0.0), Value::row(y)].into());
    }
    let mut rest = y.clone();
    let mut q = Vec::with_capacity(y.len() - a.len() + 1);
    for i in 0..=y.len() - a.len() {
        let c = rest[i] / a[0];
        q.push(c);
        for (j, x) in a.iter().enumerate() {
            rest[i + j] -= c * x;
        }
    }
    Ok(vec![Value::row(q), Value::row(rest)].into())
}

fn conv2(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (a, b) = (real(&interp.env, "conv2", &args[0])?, real(&interp.env, "conv2", &args[1])?);
    let (ma, na, mb, nb) = (a.matrix.nrows(), a.matrix.ncols(), b.matrix.nrows(), b.matrix.ncols());
    let (m, n) = ((ma + mb).saturating_sub(1), (na + nb).saturating_sub(1));
    let at = |i: usize, j: usize| -> f64 {
        let mut sum = 0.0;
        for q in j.saturating_sub(na - 1)..=j.min(nb - 1) {
            for p in i.saturating_sub(ma - 1)..=i.min(mb - 1) {
                sum += a.matrix[(i - p, j - q)] * b.matrix[(p, q)];
            }
        }
        sum
    };
    if ma * na * mb * nb == 0 {
        return Ok(value_of(&Mat::zeros(m, n), a.single).into());
    }
    let out = if has_word(&args[2..], "same") {
        let (top, left) = (mb / 2, nb / 2);
        Mat::from_fn(ma, na, |i, j| at(i + top, j + left))
    } else if has_word(&args[2..], "valid") {
        Mat::from_fn((ma + 1).saturating_sub(mb), (na + 1).saturating_sub(nb), |i, j| at(i + mb - 1, j + nb - 1))
    } else {
        Mat::from_fn(m, n, at)
    };
    Ok(value_of(&out, a.single || b.single).into())
}

fn filter(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(&args[..3])?;
    let (b, a) = (vector(&interp.env, "filter", &args[0])?, vector(&interp.env, "filter", &args[1])?);
    let x = interp.env.host(&args[2])?;
    let lead = a.first().copied().unwrap_or(0.0);
    if lead == 0.0 {
        return fail!("filter: a_vector[0] must be nonzero");
    }
    let order = a.len().max(b.len());
    let coefficient = |v: &[f64], i: usize| v.get(i).copied().unwrap_or(0.0) / lead;
    let d = x.dims.first_non_singleton();
    let lanes = super::lanes::Lanes::new(&x.dims, d);
    let mut out = vec![0.0; x.len()];
    for lane in 0..x.len().checked_div(x.dims.extent(d)).unwrap_or(0) {
        // The transposed direct form II.
        let mut state = vec![0.0; order];
        for at in lanes.positions(lane) {
            let input = x.data.f64_at(at);
            let y = coefficient(&b, 0) * input + state[0];
            for i in 1..order {
                let next = state.get(i).copied().unwrap_or(0.0);
                state[i - 1] = next + coefficient(&b, i) * input - coefficient(&a, i) * y;
            }
            out[at] = y;
        }
    }
    Ok(Value::tensor(Tensor::new(x.dims.clone(), Data::F64(out))).into())
}

/// Samples, their places (`None`: 1 apart) and the dimension.
fn integrand(env: &Env, args: &[Value]) -> Flow<(std::sync::Arc<Tensor>, Option<Vec<f64>>, usize)> {
    env.host_all(args)?;
    let (x, y) = match args {
        [y] => (None, env.host(y)?),
        [x, y, ..] => (Some(env.host(x)?).filter(|x| !x.is_empty()), env.host(y)?),
        [] => return fail!("Invalid call to trapz"),
    };
    let d = match args.get(2) {
        Some(dim) => (number(env, "trapz", dim)?.max(1.0) as usize).min(super::args::RANK_MAX) - 1,
        None => y.dims.first_non_singleton(),
    };
    let x = x.map(|x| x.data.to_f64());
    if x.as_ref().is_some_and(|x| x.len() != y.dims.extent(d) && x.len() != y.len()) {
        return fail!("trapz: length of X and length of Y along DIM must match");
    }
    Ok((y, x, d))
}

/// Running integrals along a dimension.
fn integrals(y: &Tensor, x: Option<&[f64]>, d: usize) -> Vec<f64> {
    let lanes = super::lanes::Lanes::new(&y.dims, d);
    let mut out = vec![0.0; y.len()];
    for lane in 0..y.len().checked_div(y.dims.extent(d)).unwrap_or(0) {
        let mut sum = 0.0;
        let mut before: Option<usize> = None;
        for (i, at) in lanes.positions(lane).enumerate() {
            if let Some(last) = before {
                let step = match x {
                    Some(x) if x.len() == y.len() => x[at] - x[last],
                    Some(x) => x[i] - x[i - 1],
                    None => 1.0,
                };
                sum += step * (y.data.f64_at(at) + y.data.f64_at(last)) / 2.0;
            }
            out[at] = sum;
            before = Some(at);
        }
    }
    out
}

fn trapz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (y, x, d) = integrand(&interp.env, args)?;
    let all = integrals(&y, x.as_deref(), d);
    let lanes = super::lanes::Lanes::new(&y.dims, d);
    let dims = if y.dims[..] == [0, 0] { Dims::scalar() } else { y.dims.with(d, 1) };
    let out = (0..dims.elements())
        .map(|lane| if all.is_empty() { 0.0 } else { lanes.positions(lane).next_back().map_or(0.0, |at| all[at]) });
    Ok(Value::tensor(Tensor::new(dims.clone(), Data::F64(out.collect()))).into())
}

fn cumtrapz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (y, x, d) = integrand(&interp.env, args)?;
    let out = integrals(&y, x.as_deref(), d);
    Ok(Value::tensor(Tensor::new(y.dims.clone(), Data::F64(out))).into())
}

fn interp1(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let words = args.iter().position(|a| a.is_char()).unwrap_or(args.len());
    let (arrays, options) = args.split_at(words);
    let env = &interp.env;
    let (x, y, xi) = match arrays {
        [y, xi] => (None, env.host(y)?, env.host(xi)?),
        [x, y, xi] => (Some(env.host(x)?), env.host(y)?, env.host(xi)?),
        _ => return fail!("Invalid call to interp1"),
    };
    let y = y.data.to_f64();
    let x = x.map_or_else(|| (1..=y.len()).map(|i| i as f64).collect(), |x| x.data.to_f64());
    if x.len() != y.len() || x.len() < 2 {
        return fail!("interp1: minimum of 2 points required in each dimension");
    }
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let (x, y): (Vec<f64>, Vec<f64>) = order.iter().map(|&i| (x[i], y[i])).unzip();
    let method = options.first().and_then(Value::as_text).unwrap_or_else(|| "linear".into()).to_lowercase();
    let extrapolate = has_word(options, "extrap");
    let outside = match options.last() {
        Some(value) if !value.is_char() => number(env, "interp1", value)?,
        _ => f64::NAN,
    };
    if !["linear", "nearest", "previous", "next", "*linear", "extrap"].contains(&method.as_str()) {
        return fail!("interp1: the method '{method}' is not supported yet; linear, nearest, previous and next are");
    }
    let n = x.len();
    let at = |v: f64| -> f64 {
        if v.is_nan() || (v < x[0] || v > x[n - 1]) && !extrapolate {
            return if v.is_nan() { f64::NAN } else { outside };
        }
        let i = x.partition_point(|e| *e <= v).clamp(1, n - 1) - 1;
        let t = (v - x[i]) / (x[i + 1] - x[i]);
        match method.as_str() {
            "nearest" => y[if t >= 0.5 { i + 1 } else { i }],
            "previous" => y[if v >= x[i + 1] { i + 1 } else { i }],
            "next" => y[if v <= x[i] { i } else { i + 1 }],
            _ => y[i] + t * (y[i + 1] - y[i]),
        }
    };
    let out = xi.data.to_f64().into_iter().map(at).collect();
    Ok(Value::tensor(Tensor::new(xi.dims.clone(), Data::F64(out))).into())
}
