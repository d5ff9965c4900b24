//! Singular values, and functions based on them: rank, condition, pseudo-inverse, and bases of a matrix's null space
//! and range.

use super::factors::{check_square, complex, complex_value, is_finite, number, real, value_of};
use crate::builtins::Outcome;
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::ops;
use crate::ops::linear::Number;
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Value};
use crate::vm::Interp;
use faer::Mat;
use num_complex::Complex64;

/// The singular values and vectors of a matrix.
struct Parts<T> {
    u: Mat<T>,
    s: Vec<f64>,
    v: Mat<T>,
}

/// The greatest extent of a matrix without elements for which a square matrix of vectors is made.
const EMPTY_EXTENT_MAX: usize = 1 << 14;

fn parts<T: Number>(who: &str, a: &Mat<T>, thin: bool) -> Flow<Parts<T>> {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 {
        if m.max(n) > EMPTY_EXTENT_MAX {
            return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
        }
        let (u, v) = if thin { (0, 0) } else { (m, n) };
        return Ok(Parts { u: Mat::identity(m, u), s: Vec::new(), v: Mat::identity(n, v) });
    }
    if (0..m * n).any(|k| !a[(k % m, k / m)].size().is_finite()) {
        return fail!("{who}: cannot take SVD of matrix containing Inf or NaN values");
    }
    let svd = if thin { a.thin_svd() } else { a.svd() };
    match svd {
        Ok(svd) => {
            let k = m.min(n);
            let s = svd.S();
            let s: Vec<f64> = (0..k).map(|i| s.column_vector()[i].size()).collect();
            Ok(Parts { u: svd.U().to_owned(), s, v: svd.V().to_owned() })
        }
        Err(_) => fail!("{who}: the singular values did not converge"),
    }
}

/// A real matrix beyond this extent is decomposed by the library's blocked algorithms, which are faster, but choose
/// other signs.
pub(super) const SIGNED_MAX: usize = 64;

/// Does the same as [`parts`] for a real matrix, with LAPACK's signs of the vectors.
fn real_parts(who: &str, a: &Mat<f64>, thin: bool) -> Flow<Parts<f64>> {
    let Some((tame, by)) = ops::rotations::tamed(a) else { return tame_parts(who, a, thin) };
    let mut p = tame_parts(who, &tame, thin)?;
    p.s.iter_mut().for_each(|s| *s /= by);
    Ok(p)
}

/// Does the same as [`real_parts`] for numbers that are not extreme.
fn tame_parts(who: &str, a: &Mat<f64>, thin: bool) -> Flow<Parts<f64>> {
    let (m, n) = (a.nrows(), a.ncols());
    if is_finite(a)
        && m.min(n) > 0
        && m.max(n) <= SIGNED_MAX
        && let Some(p) = ops::svd::decompose(a, thin)
    {
        return Ok(Parts { u: p.u, s: p.s, v: p.v });
    }
    parts(who, a, thin)
}

/// Returns the singular values only, in falling order.
pub fn values<T: Number>(who: &str, a: &Mat<T>) -> Flow<Vec<f64>> {
    if a.nrows() == 0 || a.ncols() == 0 {
        return Ok(Vec::new());
    }
    if !is_finite(a) {
        return fail!("{who}: cannot take SVD of matrix containing Inf or NaN values");
    }
    match a.singular_values() {
        Ok(s) => Ok(s),
        Err(_) => fail!("{who}: the singular values did not converge"),
    }
}

/// Does the same as [`values`] for a real matrix, with the same bits as together with the vectors.
pub fn real_values(who: &str, a: &Mat<f64>) -> Flow<Vec<f64>> {
    if let Some((tame, by)) = ops::rotations::tamed(a) {
        return Ok(real_values(who, &tame)?.into_iter().map(|s| s / by).collect());
    }
    let small = is_finite(a) && a.nrows().min(a.ncols()) > 0 && a.nrows().max(a.ncols()) <= SIGNED_MAX;
    match small.then(|| ops::svd::values(a)).flatten() {
        Some(s) => Ok(s),
        None => values(who, a),
    }
}

fn tolerance(env: &Env, args: &[Value], s: &[f64], m: usize, n: usize, single: bool) -> Flow<f64> {
    let epsilon = if single { f32::EPSILON as f64 } else { f64::EPSILON };
    match args.get(1) {
        Some(value) => crate::builtins::args::number(env, "tolerance", value),
        None => Ok(m.max(n) as f64 * s.first().copied().unwrap_or(0.0) * epsilon),
    }
}

pub(super) fn rank(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let s = values("rank", &a)?;
        let least = tolerance(&interp.env, args, &s, a.nrows(), a.ncols(), class == Class::Single)?;
        return Ok(Value::Num(s.iter().filter(|&&s| s > least).count() as f64).into());
    }
    let a = real(&interp.env, "rank", &args[0])?;
    let s = real_values("rank", &a.matrix)?;
    let least = tolerance(&interp.env, args, &s, a.matrix.nrows(), a.matrix.ncols(), a.single)?;
    Ok(Value::Num(s.iter().filter(|&&s| s > least).count() as f64).into())
}

pub(super) fn pinv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    super::factors::check_matrix("pinv", &args[0])?;
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let (m, n) = (a.nrows(), a.ncols());
        if !is_finite(&a) {
            return Ok(value_of(&Mat::from_fn(n, m, |_, _| f64::NAN), class == Class::Single).into());
        }
        let p = parts("pinv", &a, true)?;
        let least = tolerance(&interp.env, args, &p.s, m, n, class == Class::Single)?;
        let inverse = Mat::from_fn(n, m, |i, j| {
            let kept = p.s.iter().enumerate().filter(|(_, s)| **s > least);
            kept.map(|(k, s)| p.v[(i, k)] * p.u[(j, k)].conj() / s).sum::<Complex64>()
        });
        return Ok(complex_value(&inverse, class).into());
    }
    let a = real(&interp.env, "pinv", &args[0])?;
    let (m, n) = (a.matrix.nrows(), a.matrix.ncols());
    if !is_finite(&a.matrix) {
        return Ok(value_of(&Mat::from_fn(n, m, |_, _| f64::NAN), a.single).into());
    }
    let p = real_parts("pinv", &a.matrix, true)?;
    let least = tolerance(&interp.env, args, &p.s, m, n, a.single)?;
    let kept = p.s.iter().filter(|&&s| s > least).count();
    let scaled = Mat::from_fn(n, kept, |i, k| p.v[(i, k)] * (1.0 / p.s[k]));
    let inverse = value_of(&(scaled * p.u.get(.., ..kept).transpose()), a.single);
    Ok(if args[0].is_diagonal() { inverse.diagonal() } else { inverse }.into())
}

pub(super) fn cond(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some(p) = args.get(1).filter(|p| !matches!(p, Value::Num(2.0))) {
        let inverse = super::factors::inv(interp, &args[..1], 2)?.first();
        let a = crate::builtins::reduce::norms::norm(interp, &[args[0].clone(), p.clone()], 1)?.first();
        let inverse = crate::builtins::reduce::norms::norm(interp, &[inverse, p.clone()], 1)?.first();
        return Ok(ops::binary(&mut interp.env, BinaryOp::Mul, &a, &inverse)?.into());
    }
    let (s, single) = match complex(&interp.env, &args[0])? {
        Some((a, class)) => (values("cond", &a)?, class == Class::Single),
        None => {
            let a = real(&interp.env, "cond", &args[0])?;
            (real_values("cond", &a.matrix)?, a.single)
        }
    };
    let ratio = match (s.first(), s.last()) {
        (Some(_), Some(&0.0)) => f64::INFINITY,
        (Some(most), Some(least)) => most / least,
        _ => 0.0,
    };
    Ok(number(ratio, single).into())
}

pub(super) fn svd(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    super::factors::check_matrix("svd", &args[0])?;
    let (m, n) = (args[0].dims().rows(), args[0].dims().columns());
    // `svd (a, 0)` gives thin factors for tall matrices only, `"econ"` for all.
    let thin = args.len() > 1 && (m > n || crate::builtins::args::has_word(&args[1..], "econ"));
    if !thin && nargout > 1 {
        check_square(&interp.env, m.max(n))?;
    }
    let complex = complex(&interp.env, &args[0])?;
    if nargout < 2 {
        let (s, single) = match complex {
            Some((a, class)) => (values("svd", &a)?, class == Class::Single),
            None => {
                let a = real(&interp.env, "svd", &args[0])?;
                (real_values("svd", &a.matrix)?, a.single)
            }
        };
        return Ok(value_of(&Mat::from_fn(s.len(), 1, |i, _| s[i]), single).into());
    }
    if let Some((a, class)) = complex {
        let p = parts("svd", &a, thin)?;
        return Ok(singular(&p, (m, n), thin, class == Class::Single, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "svd", &args[0])?;
    let p = real_parts("svd", &a.matrix, thin)?;
    Ok(singular(&p, (m, n), thin, a.single, |m| value_of(m, a.single)).into())
}

/// Returns the outputs of `svd` for a matrix of these extents.
fn singular<T>(
    p: &Parts<T>,
    (m, n): (usize, usize),
    thin: bool,
    single: bool,
    value: impl Fn(&Mat<T>) -> Value,
) -> Vec<Value> {
    let (rows, columns) = if thin { (p.s.len(), p.s.len()) } else { (m, n) };
    let s = Mat::from_fn(rows, columns, |i, j| if i == j { p.s[i] } else { 0.0 });
    vec![value(&p.u), value_of(&s, single).diagonal(), value(&p.v)]
}

/// Returns 0 for a number that is negligible, and the number otherwise.
fn without_noise(x: f64, single: bool) -> f64 {
    let least = if single { f32::EPSILON as f64 } else { f64::EPSILON };
    if x.abs() < least { 0.0 } else { x }
}

pub(super) fn null(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let (p, r) = decomposed(&interp.env, args, &a, class == Class::Single, |a| parts("null", a, false))?;
        let n = a.ncols();
        return Ok(complex_value(&Mat::from_fn(n, n - r, |i, j| p.v[(i, r + j)]), class).into());
    }
    let a = real(&interp.env, "null", &args[0])?;
    let (p, r) = decomposed(&interp.env, args, &a.matrix, a.single, |a| real_parts("null", a, false))?;
    let n = a.matrix.ncols();
    Ok(value_of(&Mat::from_fn(n, n - r, |i, j| without_noise(p.v[(i, r + j)], a.single)), a.single).into())
}

/// Returns all singular vectors, and the number of singular values above the tolerance.
fn decomposed<T>(
    env: &Env,
    args: &[Value],
    a: &Mat<T>,
    single: bool,
    parts: impl Fn(&Mat<T>) -> Flow<Parts<T>>,
) -> Flow<(Parts<T>, usize)> {
    check_square(env, a.nrows().max(a.ncols()))?;
    let p = parts(a)?;
    let least = tolerance(env, args, &p.s, a.nrows(), a.ncols(), single)?;
    let r = p.s.iter().filter(|&&s| s > least).count();
    Ok((p, r))
}

/// The signs are Octave's: those of the decomposition, negated.
pub(super) fn orth(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let (p, r) = decomposed(&interp.env, args, &a, class == Class::Single, |a| parts("orth", a, false))?;
        return Ok(complex_value(&Mat::from_fn(a.nrows(), r, |i, j| -p.u[(i, j)]), class).into());
    }
    let a = real(&interp.env, "orth", &args[0])?;
    let (p, r) = decomposed(&interp.env, args, &a.matrix, a.single, |a| real_parts("orth", a, false))?;
    Ok(value_of(&Mat::from_fn(a.matrix.nrows(), r, |i, j| -p.u[(i, j)]), a.single).into())
}
