//! `polyfit` and `polyval`: polynomials fitted by least squares, and their values.
//!
//! In: points, and a degree or a mask of coefficients. Out: coefficients, the highest first; the data with which
//! `polyval` estimates the errors of values; and values.

use super::polynomials::{any_single, complexes_as, polynomial, reals_as};
use crate::builtins::Outcome;
use crate::builtins::args::number;
use crate::builtins::linear::factors::value_of;
use crate::builtins::reduce::summing::total;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Dims, StructArray, Value};
use crate::vm::Interp;
use faer::Mat;
use faer::linalg::solvers::SolveLstsq;
use num_complex::Complex64;

pub(super) fn polyfit(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (x, y) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let kept = degrees(&interp.env, &args[2], x.len())?;
    if x.dims != y.dims && x.len() != y.len() {
        return fail!("polyfit: X and Y must have the same number of points");
    }
    if x.data.is_complex() || (y.data.is_complex() && nargout > 1) {
        return fail!("polyfit: complex arguments are not supported yet");
    }
    let n = kept.len() - 1;
    interp.env.check_host(&[x.len(), kept.len()], 3 * size_of::<f64>())?;
    let used: Vec<usize> = (0..=n).filter(|&j| kept[j]).collect();
    if used.is_empty() && nargout < 2 {
        return Ok(Value::row(vec![0.0; n + 1]).into());
    }
    // This matrix has a column for each coefficient, even for those that are not fitted.
    let spread = |m: &Mat<f64>| {
        Mat::from_fn(m.nrows(), n + 1, |i, j| used.iter().position(|&u| u == j).map_or(0.0, |j| m[(i, j)]))
    };
    let single = any_single(&[&x, &y]);
    let mut at = x.data.to_f64();
    let count = at.len() as f64;
    let mean = total(at.iter().copied()) / count;
    let deviation = (total(at.iter().map(|v| (v - mean) * (v - mean))) / (count - 1.0).max(1.0)).sqrt();
    if nargout > 2 {
        at.iter_mut().for_each(|v| *v = (*v - mean) / deviation);
    }
    let a = Mat::from_fn(x.len(), used.len(), |i, j| at[i].powi((n - used[j]) as i32));
    let factors = a.qr();
    if y.data.is_complex() {
        // The fit is linear, so the real and the imaginary parts are fitted separately.
        let part = |z: Complex64, j: usize| if j == 0 { z.re } else { z.im };
        let p = factors.solve_lstsq(&Mat::from_fn(y.len(), 2, |i, j| part(y.data.c64_at(i), j)));
        let mut all = vec![Complex64::ZERO; n + 1];
        used.iter().enumerate().for_each(|(i, &u)| all[u] = Complex64::new(p[(i, 0)], p[(i, 1)]));
        return Ok(polynomial(all, single).into());
    }
    let b = Mat::from_fn(y.len(), 1, |i, _| y.data.f64_at(i));
    let p = factors.solve_lstsq(&b);
    let mut all = vec![0.0; n + 1];
    used.iter().enumerate().for_each(|(i, &u)| all[u] = p[(i, 0)]);
    let mut out = vec![reals_as(Dims::new(&[1, n + 1]), all, single)];
    if nargout > 1 {
        let fitted = &a * &p;
        let rest: f64 = (0..y.len()).map(|i| (y.data.f64_at(i) - fitted[(i, 0)]).powi(2)).sum();
        let m = used.len();
        let r = Mat::from_fn(m, m, |i, j| if i <= j { factors.thin_R()[(i, j)] } else { 0.0 });
        let mut inverse = Mat::<f64>::identity(m, m);
        r.as_ref().solve_upper_triangular_in_place(inverse.as_mut());
        let covariance = &inverse * inverse.transpose();
        let mut s = StructArray::scalar();
        s.set("yf", reals_as(y.dims.clone(), (0..y.len()).map(|i| fitted[(i, 0)]).collect(), single));
        s.set("X", value_of(&spread(&a), single));
        s.set("R", value_of(&spread(&r), single));
        s.set("C", value_of(&spread(&covariance), single));
        s.set("df", Value::Num(y.len().saturating_sub(m) as f64));
        s.set("normr", reals_as(Dims::scalar(), vec![rest.sqrt()], single));
        out.push(Value::Struct(std::sync::Arc::new(s)));
    }
    if nargout > 2 {
        out.push(reals_as(Dims::new(&[1, 2]), vec![mean, deviation], single));
    }
    Ok(out.into())
}

/// Returns which coefficients `polyfit` fits, the highest first: all up to a degree, or those of a mask; at most as
/// many as there are points.
fn degrees(env: &Env, value: &Value, points: usize) -> Flow<Vec<bool>> {
    let mut kept = match value.class() {
        Class::Logical => env.host(value)?.data.to_f64().iter().map(|x| *x != 0.0).collect(),
        _ => {
            let n = number(env, "polyfit", value)?;
            if n < 0.0 || n.fract() != 0.0 || n > 1000.0 {
                return fail!("polyfit: N must be a non-negative integer");
            }
            vec![true; n as usize + 1]
        }
    };
    let mut excess = kept.iter().filter(|k| **k).count().saturating_sub(points);
    for k in kept.iter_mut().filter(|k| **k) {
        if excess == 0 {
            break;
        }
        *k = false;
        excess -= 1;
    }
    match kept.contains(&true) || points == 0 && !kept.is_empty() {
        true => Ok(kept),
        false => fail!("polyfit: N must be a non-negative integer"),
    }
}

/// Returns the possible errors of the values at these places, from the data that `polyfit` returned about its fit.
fn uncertainty(env: &Env, s: &Value, x: &[f64], degree: usize) -> Flow<Vec<f64>> {
    let field = |name: &str| match s {
        Value::Struct(s) if s.len() == 1 => s.get(name).cloned(),
        _ => None,
    };
    let (Some(r), Some(df), Some(normr)) = (field("R"), field("df"), field("normr")) else {
        return fail!("polyval: S must be a structure of polyfit");
    };
    let r = env.host(&r)?;
    let n = degree + 1;
    if r.dims.rows() != n || r.dims.columns() != n {
        return fail!("polyval: S must be a structure of polyfit for P");
    }
    let scale = number(env, "polyval", &normr)? / number(env, "polyval", &df)?.sqrt();
    let at = |x: f64| {
        // This is the row of powers, divided by R from the right.
        let mut row = vec![0.0; n];
        for j in 0..n {
            let rest: f64 = (0..j).map(|i| row[i] * r.data.f64_at(j * n + i)).sum();
            row[j] = (x.powi((degree - j) as i32) - rest) / r.data.f64_at(j * n + j);
        }
        scale * (1.0 + row.iter().map(|v| v * v).sum::<f64>()).sqrt()
    };
    Ok(x.iter().map(|&x| at(x)).collect())
}

pub(super) fn polyval(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (p, x) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    if !args[0].class().is_float() || !p.is_empty() && !p.dims.is_vector() {
        return fail!("polyval: P must be a numeric floating point vector");
    }
    if !args[1].class().is_float() {
        return fail!("polyval: X must be numeric floating point");
    }
    let single = any_single(&[&p, &x]);
    let (shift, scale) = match args.get(3) {
        None => (0.0, 1.0),
        Some(mu) => match interp.env.host(mu)? {
            host if host.len() >= 2 && mu.class().is_float() => (host.data.f64_at(0), host.data.f64_at(1)),
            _ => return fail!("polyval: MU must be numeric floating point with 2 values"),
        },
    };
    if p.data.is_complex() || x.data.is_complex() {
        let is_real = !x.data.is_complex();
        let at = |i: usize| {
            let x = (x.data.c64_at(i) - shift) / scale;
            // A real number multiplies each part separately, so that NaN in one part stays there.
            let times = |z: Complex64| if is_real { z * x.re } else { z * x };
            let coefficients = (1..p.len()).map(|k| p.data.c64_at(k));
            let first = if p.is_empty() { Complex64::new(0.0, 0.0) } else { p.data.c64_at(0) };
            coefficients.fold(first, |sum, c| times(sum) + c)
        };
        return Ok(complexes_as(x.dims.clone(), (0..x.len()).map(at).collect(), single).into());
    }
    let p = p.data.to_f64();
    let at = |i: usize| {
        let x = (x.data.f64_at(i) - shift) / scale;
        // The sum begins with the first coefficient, so that a constant's is not multiplied by infinity.
        p.split_first().map_or(0.0, |(first, rest)| rest.iter().fold(*first, |sum, c| sum * x + c))
    };
    let mut out = vec![reals_as(x.dims.clone(), (0..x.len()).map(at).collect(), single)];
    if nargout > 1 {
        let Some(s) = args.get(2) else { return fail!("polyval: S must be a structure of polyfit") };
        let places: Vec<f64> = x.data.to_f64().iter().map(|x| (x - shift) / scale).collect();
        let delta = uncertainty(&interp.env, s, &places, p.len().saturating_sub(1))?;
        out.push(reals_as(x.dims.clone(), delta, single));
    }
    Ok(out.into())
}
