//! Linear algebra on the host, by the `faer` library: determinants, inverses, factorisations, eigenvalues.

use super::{Builtin, Outcome, row};
use crate::script::env::Env;
use crate::script::error::{Flow, fail, fail_id};
use crate::script::ops;
use crate::script::ops::gauss;
use crate::script::ops::linear::{Number, column_major};
use crate::script::value::{Class, Data, Dims, Tensor, Value};
use crate::script::vm::Interp;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use num_complex::Complex64;

/// The family.
pub static ROWS: &[Builtin] = &[
    row("det", 1, 1, 1, "det (a)", "The determinant of a square matrix.", det),
    row("inv", 1, 1, 2, "[x, rcond] = inv (a)", "The inverse of a square matrix.", inv),
    row("inverse", 1, 1, 2, "[x, rcond] = inverse (a)", "The inverse of a square matrix.", inv),
    row("pinv", 1, 2, 1, "pinv (a, tolerance)", "The Moore-Penrose inverse.", pinv),
    row("rank", 1, 2, 1, "rank (a, tolerance)", "The number of singular values above the tolerance.", rank),
    row("trace", 1, 1, 1, "trace (a)", "The sum of the diagonal of a square matrix.", trace),
    row("cond", 1, 2, 1, "cond (a)", "The ratio of the largest to the smallest singular value.", cond),
    row("lu", 1, 2, 3, "[l, u, p] = lu (a, \"vector\")", "Factors with partial pivoting.", lu),
    row("qr", 1, 2, 3, "[q, r, e] = qr (a, 0)", "An orthogonal and an upper triangular factor.", qr),
    row("chol", 1, 2, 2, "r = chol (a)", "The upper triangular factor of a positive definite matrix.", chol),
    row("svd", 1, 2, 3, "[u, s, v] = svd (a, 0)", "Singular values and vectors.", svd),
    row("eig", 1, 1, 2, "[v, d] = eig (a)", "Eigenvalues and eigenvectors.", eig),
    row("null", 1, 2, 1, "null (a)", "An orthonormal basis of the null space.", null),
    row("orth", 1, 2, 1, "orth (a)", "An orthonormal basis of the range.", orth),
    row(
        "expm",
        1,
        1,
        1,
        "expm (a)",
        "The exponential of a square matrix, by scaling, Padé's approximant and squaring.",
        expm,
    ),
    row("kron", 2, super::ANY, 1, "kron (a, b, …)", "The Kronecker product.", kron),
    row("cross", 2, 3, 1, "cross (x, y, dim)", "The cross product of vectors of three elements.", cross),
];

/// A real matrix, and whether it is single.
pub(super) struct Real {
    pub matrix: Mat<f64>,
    pub single: bool,
}

/// A matrix of real numbers.
pub(super) fn real(env: &Env, who: &str, value: &Value) -> Flow<Real> {
    let host = env.host(value)?;
    if host.data.is_complex() {
        return fail_id!("Tidemill:not-yet", "{who}: complex matrices are not supported yet");
    }
    if host.dims.len() != 2 {
        return fail!("{who}: argument must be a 2-D matrix");
    }
    let (rows, columns) = (host.dims.rows(), host.dims.columns());
    let matrix = Mat::from_fn(rows, columns, |i, j| host.data.f64_at(j * rows + i));
    Ok(Real { matrix, single: matches!(host.data, Data::F32(_)) })
}

fn square(env: &Env, who: &str, value: &Value) -> Flow<Real> {
    let dims = value.dims();
    // Before it is read: what is not square may be large.
    if value.is_numeric() && dims.len() == 2 && dims.rows() != dims.columns() {
        return fail!("{who}: A must be a square matrix");
    }
    let a = real(env, who, value)?;
    if a.matrix.nrows() != a.matrix.ncols() {
        return fail!("{who}: A must be a square matrix");
    }
    Ok(a)
}

/// A matrix as a value, double or single.
pub(super) fn value_of(matrix: &Mat<f64>, single: bool) -> Value {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    let at = |k: usize| matrix[(k % rows.max(1), k / rows.max(1))];
    let n = rows * columns;
    let data =
        if single { Data::F32((0..n).map(|k| at(k) as f32).collect()) } else { Data::F64((0..n).map(at).collect()) };
    Value::tensor(Tensor::new(Dims::new(&[rows, columns]), data))
}

fn number(x: f64, single: bool) -> Value {
    if single { Value::tensor(Tensor::scalar(Data::F32(vec![x as f32]))) } else { Value::Num(x) }
}

/// A matrix of complex numbers, if the value is one.
fn complex(env: &Env, value: &Value) -> Flow<Option<(Mat<Complex64>, Class)>> {
    let host = env.host(value)?;
    if !host.data.is_complex() || host.dims.len() != 2 {
        return Ok(None);
    }
    let rows = host.dims.rows();
    Ok(Some((Mat::from_fn(rows, host.dims.columns(), |i, j| host.data.c64_at(j * rows + i)), host.data.class())))
}

/// A complex matrix as a value; real where nothing is imaginary.
fn complex_value(matrix: &Mat<Complex64>, class: Class) -> Value {
    let data = ops::complex_in_class(class, column_major(matrix.as_ref()));
    Value::tensor(Tensor::new(Dims::new(&[matrix.nrows(), matrix.ncols()]), data))
}

fn det(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        if a.nrows() != a.ncols() {
            return fail!("det: A must be a square matrix");
        }
        let det = if a.nrows() == 0 { Complex64::new(1.0, 0.0) } else { a.determinant() };
        return Ok(complex_value(&Mat::from_fn(1, 1, |_, _| det), class).into());
    }
    let a = square(&interp.env, "det", &args[0])?;
    let small = || gauss::determinant(&column_major(a.matrix.as_ref()), a.matrix.nrows()).filter(|_| !a.single);
    let det = if a.matrix.nrows() == 0 { 1.0 } else { small().unwrap_or_else(|| a.matrix.determinant()) };
    Ok(number(det, a.single).into())
}

/// The sum of absolute values of the largest column.
fn norm_1(a: &Mat<f64>) -> f64 {
    (0..a.ncols()).map(|j| (0..a.nrows()).map(|i| a[(i, j)].abs()).sum()).fold(0.0, f64::max)
}

fn inv(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let host = env.host(&args[0])?;
    if host.dims.rows() != host.dims.columns() {
        return fail!("inverse: A must be a square matrix");
    }
    if args[0].is_char() {
        return fail!("invalid conversion from string to real matrix");
    }
    if let Some((a, class)) = complex(env, &args[0])? {
        let n = a.nrows();
        let out = ops::linear::inverse(env, &column_major(a.as_ref()), n, class);
        let out = Mat::from_fn(n, n, |i, j| out[j * n + i]);
        let rcond = 1.0 / (ops::linear::norm_1(a.as_ref()) * ops::linear::norm_1(out.as_ref()));
        return Ok(vec![complex_value(&out, class), number(rcond, class == Class::Single)].into());
    }
    let a = real(env, "inverse", &args[0])?;
    let n = a.matrix.nrows();
    if n == 0 {
        return Ok(vec![value_of(&a.matrix, a.single), Value::Num(f64::INFINITY)].into());
    }
    if n == 1 {
        // A number's inverse is exact, also of zero, Inf and NaN.
        let x = a.matrix[(0, 0)];
        let rcond = if x == 0.0 || !x.is_finite() { 0.0 } else { 1.0 };
        if nargout < 2 && x == 0.0 {
            env.warn("Octave:singular-matrix", "matrix singular to machine precision");
        }
        return Ok(vec![number(1.0 / x, a.single), number(rcond, a.single)].into());
    }
    let inverse = match gauss::inverse(&column_major(a.matrix.as_ref()), n).filter(|_| !a.single) {
        Some(small) => Mat::from_fn(n, n, |i, j| small[i + j * n]),
        None => a.matrix.partial_piv_lu().solve(Mat::<f64>::identity(n, n)),
    };
    let rcond = 1.0 / (norm_1(&a.matrix) * norm_1(&inverse));
    let epsilon = if a.single { f32::EPSILON as f64 } else { f64::EPSILON };
    let finite = (0..n * n).all(|k| inverse[(k % n, k / n)].is_finite());
    let (inverse, rcond) =
        if !finite || rcond.is_nan() { (Mat::from_fn(n, n, |_, _| f64::INFINITY), 0.0) } else { (inverse, rcond) };
    if nargout < 2 && (rcond == 0.0 || rcond < epsilon) {
        let message = if rcond == 0.0 {
            "matrix singular to machine precision".to_string()
        } else {
            format!("matrix singular to machine precision, rcond = {rcond:e}")
        };
        env.warn("Octave:singular-matrix", &message);
    }
    let inverse = value_of(&inverse, a.single);
    let inverse = if args[0].is_diagonal() { inverse.diagonal() } else { inverse };
    let inverse = if args[0].is_permutation() { inverse.permutation() } else { inverse };
    Ok(vec![inverse, number(rcond, a.single)].into())
}

/// Refuses a square matrix of `n` rows that no memory holds.
fn check_square(env: &Env, n: usize) -> Flow<()> {
    env.check_host(&[n, n], size_of::<f64>())
}

/// Singular values and vectors of a matrix.
struct Parts<T> {
    u: Mat<T>,
    s: Vec<f64>,
    v: Mat<T>,
}

/// The longest side of a matrix without elements whose other side gives a square matrix of vectors.
const EMPTY_EXTENT_MAX: usize = 1 << 14;

fn parts<T: Number>(who: &str, a: &Mat<T>, thin: bool) -> Flow<Parts<T>> {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 {
        if m.max(n) > EMPTY_EXTENT_MAX {
            return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
        }
        return Ok(Parts { u: Mat::identity(m, m), s: Vec::new(), v: Mat::identity(n, n) });
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

/// Beyond this extent the library's blocked algorithms decompose a real matrix: they are faster, and their signs are their own.
const SIGNED_MAX: usize = 64;

/// As [`parts`], of a real matrix: the signs of the vectors are LAPACK's.
fn real_parts(who: &str, a: &Mat<f64>, thin: bool) -> Flow<Parts<f64>> {
    let Some((tame, by)) = ops::rotations::tamed(a) else { return tame_parts(who, a, thin) };
    let mut p = tame_parts(who, &tame, thin)?;
    p.s.iter_mut().for_each(|s| *s /= by);
    Ok(p)
}

/// As [`real_parts`], of ordinary numbers.
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

fn tolerance(env: &Env, args: &[Value], s: &[f64], m: usize, n: usize, single: bool) -> Flow<f64> {
    let epsilon = if single { f32::EPSILON as f64 } else { f64::EPSILON };
    match args.get(1) {
        Some(value) => super::args::number(env, "tolerance", value),
        None => Ok(m.max(n) as f64 * s.first().copied().unwrap_or(0.0) * epsilon),
    }
}

fn rank(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let s = parts("rank", &a, true)?.s;
        let least = tolerance(&interp.env, args, &s, a.nrows(), a.ncols(), class == Class::Single)?;
        return Ok(Value::Num(s.iter().filter(|&&s| s > least).count() as f64).into());
    }
    let a = real(&interp.env, "rank", &args[0])?;
    let p = real_parts("rank", &a.matrix, true)?;
    let least = tolerance(&interp.env, args, &p.s, a.matrix.nrows(), a.matrix.ncols(), a.single)?;
    Ok(Value::Num(p.s.iter().filter(|&&s| s > least).count() as f64).into())
}

fn pinv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let (m, n) = (a.nrows(), a.ncols());
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
    let p = real_parts("pinv", &a.matrix, true)?;
    let least = tolerance(&interp.env, args, &p.s, m, n, a.single)?;
    let inverse = Mat::from_fn(n, m, |i, j| {
        p.s.iter().enumerate().filter(|(_, s)| **s > least).map(|(k, s)| p.v[(i, k)] * p.u[(j, k)] / s).sum()
    });
    let inverse = value_of(&inverse, a.single);
    Ok(if args[0].is_diagonal() { inverse.diagonal() } else { inverse }.into())
}

fn cond(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (s, single) = match complex(&interp.env, &args[0])? {
        Some((a, class)) => (parts("cond", &a, true)?.s, class == Class::Single),
        None => {
            let a = real(&interp.env, "cond", &args[0])?;
            (real_parts("cond", &a.matrix, true)?.s, a.single)
        }
    };
    let ratio = match (s.first(), s.last()) {
        (Some(_), Some(&0.0)) => f64::INFINITY,
        (Some(most), Some(least)) => most / least,
        _ => 0.0,
    };
    Ok(number(ratio, single).into())
}

fn trace(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let host = interp.env.host(&args[0])?;
    if host.dims.len() != 2 {
        return fail!("trace: only valid on 2-D objects");
    }
    if host.is_empty() {
        return Ok(Value::Num(0.0).into());
    }
    if host.dims.rows() != host.dims.columns() && !host.dims.is_vector() {
        return fail!("trace: only valid on square matrix");
    }
    if host.dims.is_vector() {
        return Ok(Value::tensor(Tensor::scalar(host.data.pick(std::iter::once(0)))).into());
    }
    let n = host.dims.rows();
    let sum: Complex64 = (0..n).map(|i| host.data.c64_at(i * n + i)).sum();
    if host.data.is_complex() {
        return Ok(Value::tensor(Tensor::scalar(Data::C64(vec![sum]))).into());
    }
    Ok(number(sum.re, matches!(host.data, Data::F32(_))).into())
}

/// Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, algorithm 3.4.1): both factors
/// in one matrix, and the order of the rows.
fn eliminated<T: Number>(a: &Mat<T>) -> (Mat<T>, Vec<usize>) {
    let (m, n) = (a.nrows(), a.ncols());
    let mut w = a.clone();
    let mut order: Vec<usize> = (0..m).collect();
    for c in 0..m.min(n) {
        let pivot = (c..m).fold(c, |best, i| if w[(i, c)].size() > w[(best, c)].size() { i } else { best });
        if pivot != c {
            order.swap(pivot, c);
            for j in 0..n {
                let held = w[(c, j)];
                w[(c, j)] = w[(pivot, j)];
                w[(pivot, j)] = held;
            }
        }
        if w[(c, c)].size() == 0.0 {
            continue;
        }
        for i in c + 1..m {
            let factor = w[(i, c)] / w[(c, c)];
            w[(i, c)] = factor;
            for j in c + 1..n {
                let above = w[(c, j)];
                w[(i, j)] -= factor * above;
            }
        }
    }
    (w, order)
}

fn lu(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let vector = super::args::has_word(&args[1..], "vector");
    if nargout > 2 && !vector {
        check_square(&interp.env, args[0].dims().rows())?;
    }
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        return Ok(triangles(&a, nargout, vector, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "lu", &args[0])?;
    Ok(triangles(&a.matrix, nargout, vector, |m| value_of(m, a.single)).into())
}

/// The outputs of `lu`.
fn triangles<T: Number>(a: &Mat<T>, nargout: usize, vector: bool, value: impl Fn(&Mat<T>) -> Value) -> Vec<Value> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let (w, order) = eliminated(a);
    let (zero, one) = (T::real(0.0), T::real(1.0));
    let upper = Mat::from_fn(k, n, |i, j| if i <= j { w[(i, j)] } else { zero });
    let lower = Mat::from_fn(m, k, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Equal => one,
        std::cmp::Ordering::Greater => w[(i, j)],
        std::cmp::Ordering::Less => zero,
    });
    match nargout {
        0 | 1 => vec![value(&w)],
        2 => {
            let mut place = vec![0; m];
            order.iter().enumerate().for_each(|(i, &from)| place[from] = i);
            vec![value(&Mat::from_fn(m, k, |i, j| lower[(place[i], j)])), value(&upper)]
        }
        _ if vector => {
            vec![value(&lower), value(&upper), Value::row(order.iter().map(|&i| i as f64 + 1.0).collect())]
        }
        _ => {
            let permutation = Mat::from_fn(m, m, |i, j| if order[i] == j { one } else { zero });
            vec![value(&lower), value(&upper), value(&permutation).permutation()]
        }
    }
}

fn qr(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let thin = args.len() > 1;
    let (m, n) = (args[0].dims().rows(), args[0].dims().columns());
    if m > 0 && n > 0 && !thin && nargout > 1 {
        check_square(&interp.env, m)?;
    }
    if nargout > 2 {
        check_square(&interp.env, n)?;
    }
    if let Some((a, class)) = complex(&interp.env, &args[0])?
        && m > 0
        && n > 0
    {
        return Ok(orthogonal(&a, thin, nargout, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "qr", &args[0])?;
    if m == 0 || n == 0 {
        if nargout > 2 {
            return fail!("qr: A must have elements");
        }
        return empty_factors(&interp.env, &a, thin, nargout);
    }
    Ok(orthogonal(&a.matrix, thin, nargout, |m| value_of(m, a.single)).into())
}

/// The outputs of `qr`; with three, columns are exchanged so that the diagonal's magnitudes descend.
fn orthogonal<T: Number>(a: &Mat<T>, thin: bool, nargout: usize, value: impl Fn(&Mat<T>) -> Value) -> Vec<Value> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = if thin { m.min(n) } else { m };
    let upper = |r: &Mat<T>| Mat::from_fn(k, n, |i, j| if i <= j && i < r.nrows() { r[(i, j)] } else { T::real(0.0) });
    if nargout > 2 {
        let factors = a.col_piv_qr();
        let q = if thin { factors.compute_thin_Q() } else { factors.compute_Q() };
        let (order, _) = factors.P().arrays();
        let order: Vec<usize> = order.to_vec();
        let exchange = if thin {
            Value::row(order.iter().map(|&at| at as f64 + 1.0).collect())
        } else {
            let e = Mat::from_fn(n, n, |i, j| if order[j] == i { 1.0 } else { 0.0 });
            value_of(&e, false).permutation()
        };
        return vec![value(&q), value(&upper(&factors.R().to_owned())), exchange];
    }
    let factors = a.qr();
    let mut r = upper(&factors.R().to_owned());
    let turns: Vec<(T, T)> = (0..k.min(n)).map(|j| T::turn(r[(j, j)], j + 1 == m)).collect();
    for (j, &(turn, element)) in turns.iter().enumerate() {
        (j..n).for_each(|c| r[(j, c)] *= turn);
        r[(j, j)] = element;
    }
    if nargout < 2 {
        return vec![value(&r)];
    }
    let mut q = if thin { factors.compute_thin_Q() } else { factors.compute_Q() };
    for (j, (turn, _)) in turns.iter().enumerate() {
        (0..m).for_each(|c| q[(c, j)] *= turn.conjugate());
    }
    vec![value(&q), value(&r)]
}

/// The factors of a matrix without elements.
fn empty_factors(env: &Env, a: &Real, thin: bool, nargout: usize) -> Flow<Outcome> {
    let (m, n) = (a.matrix.nrows(), a.matrix.ncols());
    let k = if thin { 0 } else { m };
    let r = value_of(&Mat::zeros(k, n), a.single);
    if nargout < 2 {
        return Ok(r.into());
    }
    check_square(env, k)?;
    Ok(vec![value_of(&Mat::identity(m, k), a.single), r].into())
}

fn chol(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    if args[0].is_numeric() && args[0].dims().rows() != args[0].dims().columns() {
        return fail!("chol: requires square matrix");
    }
    let a = square(&interp.env, "chol", &args[0])?;
    let n = a.matrix.nrows();
    let lower = super::args::has_word(&args[1..], "lower");
    // Only one triangle is read.
    let full = Mat::from_fn(n, n, |i, j| if (i >= j) == lower { a.matrix[(i, j)] } else { a.matrix[(j, i)] });
    match full.llt(Side::Lower) {
        Ok(factor) => {
            let l = factor.L();
            let out = Mat::from_fn(n, n, |i, j| {
                let (i, j) = if lower { (i, j) } else { (j, i) };
                if i >= j { l[(i, j)] } else { 0.0 }
            });
            Ok(vec![value_of(&out, a.single), Value::Num(0.0)].into())
        }
        Err(_) if nargout > 1 => {
            // The factor of the largest leading part that is positive definite.
            let part = |k: usize| full.submatrix(0, 0, k, k).llt(Side::Lower);
            let k = (1..n).take_while(|&k| part(k).is_ok()).count();
            let out = match part(k) {
                Ok(factor) if k > 0 => Mat::from_fn(k, k, |i, j| {
                    let (i, j) = if lower { (i, j) } else { (j, i) };
                    if i >= j { factor.L()[(i, j)] } else { 0.0 }
                }),
                _ => Mat::zeros(0, 0),
            };
            Ok(vec![value_of(&out, a.single), Value::Num(k as f64 + 1.0)].into())
        }
        Err(_) => fail!("chol: input matrix must be positive definite"),
    }
}

fn svd(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (m, n) = (args[0].dims().rows(), args[0].dims().columns());
    // `svd (a, 0)` cuts tall matrices alone; `"econ"` cuts both ways.
    let thin = nargout < 2 || args.len() > 1 && (m > n || super::args::has_word(&args[1..], "econ"));
    if !thin {
        check_square(&interp.env, m.max(n))?;
    }
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let p = parts("svd", &a, thin)?;
        return Ok(singular(&p, (m, n), thin, nargout, class == Class::Single, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "svd", &args[0])?;
    let p = real_parts("svd", &a.matrix, thin)?;
    Ok(singular(&p, (m, n), thin, nargout, a.single, |m| value_of(m, a.single)).into())
}

/// The outputs of `svd` of a matrix of these extents.
fn singular<T>(
    p: &Parts<T>,
    (m, n): (usize, usize),
    thin: bool,
    nargout: usize,
    single: bool,
    value: impl Fn(&Mat<T>) -> Value,
) -> Vec<Value> {
    if nargout < 2 {
        return vec![value_of(&Mat::from_fn(p.s.len(), 1, |i, _| p.s[i]), single)];
    }
    let (rows, columns) = if thin { (p.s.len(), p.s.len()) } else { (m, n) };
    let s = Mat::from_fn(rows, columns, |i, j| if i == j { p.s[i] } else { 0.0 });
    vec![value(&p.u), value_of(&s, single).diagonal(), value(&p.v)]
}

fn eig(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, class) = match complex(&interp.env, &args[0])? {
        Some((a, class)) => (Matrix::Complex(a), class),
        None => {
            let a = real(&interp.env, "eig", &args[0])?;
            (Matrix::Real(a.matrix), if a.single { Class::Single } else { Class::Double })
        }
    };
    let (rows, columns) = match &a {
        Matrix::Real(a) => (a.nrows(), a.ncols()),
        Matrix::Complex(a) => (a.nrows(), a.ncols()),
    };
    if rows != columns {
        return fail!("eig: A must be a square matrix");
    }
    if rows == 0 {
        return Ok(vec![Value::empty(), Value::empty()].into());
    }
    let found = match &a {
        Matrix::Real(a) => eigen(a, nargout > 1),
        Matrix::Complex(a) => eigen_complex(a),
    };
    let Some((values, vectors)) = found? else { return fail!("eig: no convergence") };
    let column = Mat::from_fn(rows, 1, |i, _| values[i]);
    if nargout < 2 {
        return Ok(complex_value(&column, class).into());
    }
    let diagonal = Mat::from_fn(rows, rows, |i, j| if i == j { values[i] } else { Complex64::new(0.0, 0.0) });
    Ok(vec![complex_value(&vectors, class), complex_value(&diagonal, class).diagonal()].into())
}

/// A matrix of either kind.
enum Matrix {
    Real(Mat<f64>),
    Complex(Mat<Complex64>),
}

/// Eigenvalues and the eigenvectors that belong to them; nothing if they do not converge.
type Eigen = Option<(Vec<Complex64>, Mat<Complex64>)>;

fn check_finite<T: Number>(a: &Mat<T>) -> Flow<()> {
    if is_finite(a) { Ok(()) } else { fail!("eig: matrix contains Inf or NaN values") }
}

fn is_finite<T: Number>(a: &Mat<T>) -> bool {
    (0..a.ncols()).all(|j| (0..a.nrows()).all(|i| a[(i, j)].size().is_finite()))
}

fn is_hermitian<T: Number>(a: &Mat<T>) -> bool {
    (0..a.nrows()).all(|i| (0..=i).all(|j| a[(i, j)] == a[(j, i)].conjugate()))
}

/// Of a real matrix: those of symmetric ones ascend, others stand as LAPACK leaves them.
fn eigen(a: &Mat<f64>, with_vectors: bool) -> Flow<Eigen> {
    check_finite(a)?;
    let n = a.nrows();
    let widened = |x: f64| Complex64::new(x, 0.0);
    if let Some((tame, by)) = ops::rotations::tamed(a) {
        let found = eigen(&tame, with_vectors)?;
        return Ok(found.map(|(values, u)| (values.into_iter().map(|x| x / by).collect(), u)));
    }
    if is_hermitian(a) {
        if n <= SIGNED_MAX {
            let wide = |(values, u): (Vec<f64>, Mat<f64>)| {
                (values.into_iter().map(widened).collect(), Mat::from_fn(n, n, |i, j| widened(u[(i, j)])))
            };
            return Ok(ops::symmetric::decompose(a).map(wide));
        }
        let Ok(eigen) = a.self_adjoint_eigen(Side::Lower) else { return Ok(None) };
        let values = (0..n).map(|i| widened(eigen.S().column_vector()[i])).collect();
        let vectors = normal_signs(&eigen.U().to_owned());
        return Ok(Some((values, Mat::from_fn(n, n, |i, j| widened(vectors[(i, j)])))));
    }
    if n <= ops::schur::ROWS_MAX {
        let elements = column_major(a.as_ref());
        if with_vectors {
            let found = ops::schur::eigen(&elements, n);
            return Ok(found.map(|(values, u)| (values, Mat::from_fn(n, n, |i, j| u[j * n + i]))));
        }
        return Ok(ops::schur::values(&elements, n).map(|values| (values, Mat::zeros(0, 0))));
    }
    let Ok(eigen) = a.eigen() else { return Ok(None) };
    let values: Vec<Complex64> = (0..n).map(|i| eigen.S().column_vector()[i]).collect();
    Ok(Some(unit_columns(values, &eigen.U().to_owned())))
}

/// Of a complex matrix: those of Hermitian ones ascend and are real.
fn eigen_complex(a: &Mat<Complex64>) -> Flow<Eigen> {
    check_finite(a)?;
    let n = a.nrows();
    if is_hermitian(a) {
        let Ok(eigen) = a.self_adjoint_eigen(Side::Lower) else { return Ok(None) };
        let values = (0..n).map(|i| Complex64::new(eigen.S().column_vector()[i].re, 0.0)).collect();
        // The last element of each is made real and positive.
        let u = eigen.U();
        let turn = |z: Complex64| if z.norm() == 0.0 { Complex64::new(1.0, 0.0) } else { z.conj() / z.norm() };
        let turned = |i: usize, j: usize| match u[(i, j)] * turn(u[(n - 1, j)]) {
            z if i == n - 1 => Complex64::new(z.re, 0.0),
            z => z,
        };
        return Ok(Some((values, Mat::from_fn(n, n, turned))));
    }
    let Ok(eigen) = a.eigen() else { return Ok(None) };
    let values: Vec<Complex64> = (0..n).map(|i| eigen.S().column_vector()[i]).collect();
    Ok(Some(unit_columns(values, &eigen.U().to_owned())))
}

/// The vectors at unit length, the largest element of each real.
fn unit_columns(values: Vec<Complex64>, u: &Mat<Complex64>) -> (Vec<Complex64>, Mat<Complex64>) {
    let n = u.nrows();
    let mut vectors = u.clone();
    for j in 0..n {
        let mut column: Vec<Complex64> = (0..n).map(|i| u[(i, j)]).collect();
        ops::schur::normalise(&mut column);
        (0..n).for_each(|i| vectors[(i, j)] = column[i]);
    }
    (values, vectors)
}

/// Eigenvectors are fixed up to their sign: each column's last element is made positive.
fn normal_signs(vectors: &Mat<f64>) -> Mat<f64> {
    let n = vectors.nrows();
    Mat::from_fn(n, vectors.ncols(), |i, j| if vectors[(n - 1, j)] < 0.0 { -vectors[(i, j)] } else { vectors[(i, j)] })
}

/// Nothing, if a number is next to it.
fn without_noise(x: f64, single: bool) -> f64 {
    let least = if single { f32::EPSILON as f64 } else { f64::EPSILON };
    if x.abs() < least { 0.0 } else { x }
}

fn null(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
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

/// All singular vectors, and how many singular values are above the tolerance.
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

/// The signs are those of Octave, which makes the decomposition's negative.
fn orth(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let (p, r) = decomposed(&interp.env, args, &a, class == Class::Single, |a| parts("orth", a, false))?;
        return Ok(complex_value(&Mat::from_fn(a.nrows(), r, |i, j| -p.u[(i, j)]), class).into());
    }
    let a = real(&interp.env, "orth", &args[0])?;
    let (p, r) = decomposed(&interp.env, args, &a.matrix, a.single, |a| real_parts("orth", a, false))?;
    Ok(value_of(&Mat::from_fn(a.matrix.nrows(), r, |i, j| -p.u[(i, j)]), a.single).into())
}

/// Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), with the approximant of
/// degree 13 throughout.
fn expm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    const B: [f64; 14] = [
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ];
    let a = square(&interp.env, "expm", &args[0])?;
    let n = a.matrix.nrows();
    let norm = norm_1(&a.matrix);
    if !norm.is_finite() {
        return Ok(value_of(&Mat::from_fn(n, n, |_, _| f64::NAN), a.single).into());
    }
    if norm == 0.0 {
        return Ok(value_of(&Mat::identity(n, n), a.single).diagonal().into());
    }
    let squarings = (norm / 5.371920351148152).log2().ceil().clamp(0.0, 1000.0) as i32;
    let scale = 2.0f64.powi(-squarings);
    let x = Mat::from_fn(n, n, |i, j| a.matrix[(i, j)] * scale);
    let identity = Mat::<f64>::identity(n, n);
    let (x2, sum) = (&x * &x, |parts: &[(f64, &Mat<f64>)]| {
        Mat::from_fn(n, n, |i, j| parts.iter().map(|(c, m)| c * m[(i, j)]).sum::<f64>())
    });
    let x4 = &x2 * &x2;
    let x6 = &x2 * &x4;
    let odd = &x6 * sum(&[(B[13], &x6), (B[11], &x4), (B[9], &x2)]);
    let u = &x * (odd + sum(&[(B[7], &x6), (B[5], &x4), (B[3], &x2), (B[1], &identity)]));
    let even = &x6 * sum(&[(B[12], &x6), (B[10], &x4), (B[8], &x2)]);
    let v = even + sum(&[(B[6], &x6), (B[4], &x4), (B[2], &x2), (B[0], &identity)]);
    let mut e = (&v - &u).partial_piv_lu().solve(&v + &u);
    for _ in 0..squarings {
        e = &e * &e;
    }
    // The exponential of a diagonal matrix is one.
    Ok(value_of(&e, a.single).diagonal().into())
}

/// A product whose factors may be known to be real: a real factor scales both parts.
fn times(real: (bool, bool), a: Complex64, b: Complex64) -> Complex64 {
    match real {
        (true, _) => b * a.re,
        (_, true) => a * b.re,
        _ => ops::complex::mul(a, b),
    }
}

fn kron(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    if args.iter().any(Value::is_complex) {
        let (mut class, mut product_is_complex) = (Class::Double, false);
        let mut product = Mat::from_fn(1, 1, |_, _| Complex64::new(1.0, 0.0));
        for arg in args {
            let host = interp.env.host(arg)?;
            if host.dims.len() != 2 {
                return fail!("kron: argument must be a 2-D matrix");
            }
            class = if host.data.class() == Class::Single { Class::Single } else { class };
            let real = (!product_is_complex, !host.data.is_complex());
            product_is_complex |= host.data.is_complex();
            let (p, q) = (host.dims.rows(), host.dims.columns());
            let (rows, columns) = (product.nrows().saturating_mul(p), product.ncols().saturating_mul(q));
            interp.env.check_host(&[rows, columns], 8)?;
            product = Mat::from_fn(rows, columns, |i, j| {
                times(real, product[(i / p, j / q)], host.data.c64_at(j % q * p + i % p))
            });
        }
        return Ok(complex_value(&product, class).into());
    }
    let mut product = real(&interp.env, "kron", &args[0])?;
    for arg in &args[1..] {
        let b = real(&interp.env, "kron", arg)?;
        let (p, q) = (b.matrix.nrows(), b.matrix.ncols());
        let (rows, columns) = (product.matrix.nrows().saturating_mul(p), product.matrix.ncols().saturating_mul(q));
        interp.env.check_host(&[rows, columns], 8)?;
        let matrix = Mat::from_fn(rows, columns, |i, j| product.matrix[(i / p, j / q)] * b.matrix[(i % p, j % q)]);
        product = Real { matrix, single: product.single || b.single };
    }
    Ok(value_of(&product.matrix, product.single).into())
}

/// The eigenvalues of a square matrix with elements; real where nothing in it is imaginary, as long as it is finite.
///
/// # Errors
/// As `eig`.
pub(super) fn eigenvalues_of(a: &Mat<Complex64>) -> Flow<Vec<Complex64>> {
    let n = a.nrows();
    let real = (0..n).all(|j| (0..n).all(|i| a[(i, j)].im == 0.0));
    let found = if real { eigen(&Mat::from_fn(n, n, |i, j| a[(i, j)].re), false) } else { eigen_complex(a) };
    match found? {
        Some((values, _)) => Ok(values),
        None => fail!("eig: no convergence"),
    }
}

/// The eigenvalues of a square matrix, as a column.
///
/// # Errors
/// As `eig`.
pub fn eigenvalues(interp: &mut Interp, a: &Value) -> Flow<Value> {
    match eig(interp, std::slice::from_ref(a), 1)? {
        Outcome::Values(values) => Ok(values.into_iter().next().unwrap_or_else(Value::empty)),
        _ => fail!("eig: no eigenvalues"),
    }
}

fn cross(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (x, y) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let dims = x.dims.clone();
    let vectors = x.len() == 3 && y.len() == 3 && x.dims.is_vector() && y.dims.is_vector();
    if x.dims != y.dims && !vectors {
        return fail!("cross: X and Y must have the same dimensions");
    }
    let d = match args.get(2) {
        Some(dim) => super::args::number(&interp.env, "cross", dim)? as usize,
        None => dims.iter().position(|&e| e == 3).map_or(0, |d| d + 1),
    };
    if d == 0 {
        return fail!("cross: must have at least one dimension with 3 elements");
    }
    if dims.extent(d - 1) != 3 {
        return fail!("cross: dimension DIM must have 3 elements");
    }
    let dims = if vectors && x.dims != y.dims { Dims::new(&[3, 1]) } else { dims };
    let stride: usize = if vectors { 1 } else { dims[..(d - 1).min(dims.len())].iter().product() };
    let single = matches!(x.data, Data::F32(_) | Data::C32(_)) || matches!(y.data, Data::F32(_) | Data::C32(_));
    if x.data.is_complex() || y.data.is_complex() {
        let at = |t: &Tensor, lane: usize, i: usize| t.data.c64_at(lane + (i % 3) * stride);
        let real = (!x.data.is_complex(), !y.data.is_complex());
        let minor = |k: usize| {
            let (lane, i) = (k % stride + k / (stride * 3) * stride * 3, k / stride % 3);
            let product = |i: usize, j: usize| times(real, at(&x, lane, i), at(&y, lane, j));
            product(i + 1, i + 2) - product(i + 2, i + 1)
        };
        let class = if single { Class::Single } else { Class::Double };
        let data = ops::complex_in_class(class, (0..x.len()).map(minor).collect());
        return Ok(Value::tensor(Tensor::new(dims, data)).into());
    }
    // Integers saturate in their class at every step.
    let class = [x.data.class(), y.data.class()].into_iter().find(|c| c.is_integer());
    let range = class.and_then(Class::integer_range);
    let held = |v: f64| range.map_or(v, |(least, most)| v.round().clamp(least as f64, most as f64));
    let mut out = vec![0.0; x.len()];
    for (k, slot) in out.iter_mut().enumerate() {
        let (lane, i) = (k % stride + k / (stride * 3) * stride * 3, k / stride % 3);
        let at = |t: &Tensor, i: usize| t.data.f64_at(lane + (i % 3) * stride);
        *slot = held(held(at(&x, i + 1) * at(&y, i + 2)) - held(at(&x, i + 2) * at(&y, i + 1)));
    }
    let data = match class {
        Some(class) => Data::F64(out).converted(class),
        None if single => Data::F32(out.iter().map(|&v| v as f32).collect()),
        None => Data::F64(out),
    };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}
