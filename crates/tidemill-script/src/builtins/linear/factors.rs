//! Linear algebra on the host by the `faer` library: determinants, inverses, factorisations. The family's functions for
//! singular values, eigenvalues and products have modules of their own.

use super::eigen::{eig, hess, schur};
use super::products::{cross, expm, kron};
use super::singular::{cond, null, orth, pinv, rank, svd};
use crate::builtins::args::{has_word, is_word};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::ops;
use crate::ops::gauss;
use crate::ops::linear::{Number, column_major};
use crate::ops::recorded;
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};
use num_complex::Complex64;

/// The family.
pub static ROWS: &[Builtin] = &[
    row("det", 1, 1, 2, "[d, rcond] = det (a)", "The determinant of a square matrix.", det),
    row("inv", 1, 1, 2, "[x, rcond] = inv (a)", "The inverse of a square matrix.", inv),
    row("inverse", 1, 1, 2, "[x, rcond] = inverse (a)", "The inverse of a square matrix.", inv),
    row("pinv", 1, 2, 1, "pinv (a, tolerance)", "The Moore-Penrose inverse.", pinv),
    row("rank", 1, 2, 1, "rank (a, tolerance)", "The number of singular values above the tolerance.", rank),
    row("trace", 1, 1, 1, "trace (a)", "The sum of the diagonal of a square matrix.", trace),
    row("cond", 1, 2, 1, "cond (a, p)", "The norm of a matrix times that of its inverse, by default the 2-norm.", cond),
    row("lu", 1, 2, 3, "[l, u, p] = lu (a, \"vector\")", "Factors with partial pivoting.", lu),
    row(
        "qr",
        1,
        4,
        3,
        "[q, r, e] = qr (a, b, \"econ\", \"vector\")",
        "An orthogonal and an upper triangular factor; with a matrix b, q' * b for q.",
        qr,
    ),
    row("chol", 1, 4, 2, "r = chol (a, \"lower\")", "The upper triangular factor of a positive definite matrix.", chol),
    row("svd", 1, 2, 3, "[u, s, v] = svd (a, 0)", "Singular values and vectors.", svd),
    row("eig", 1, 4, 3, "[v, d, w] = eig (a, b, ...)", "Eigenvalues and eigenvectors of a matrix or of a pair.", eig),
    row("hess", 1, 1, 2, "[p, h] = hess (a)", "The Hessenberg form of a square matrix.", hess),
    row("schur", 1, 2, 2, "[u, s] = schur (a)", "The Schur form of a square matrix.", schur),
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
    row("kron", 2, crate::builtins::ANY, 1, "kron (a, b, …)", "The Kronecker product.", kron),
    row("cross", 2, 3, 1, "cross (x, y, dim)", "The cross product of vectors of three elements.", cross),
];

/// A real matrix, and whether it is single.
pub struct Real {
    pub matrix: Mat<f64>,
    pub single: bool,
}

/// Reads a matrix of real numbers.
pub fn real(env: &Env, who: &str, value: &Value) -> Flow<Real> {
    let host = env.host(value)?;
    if host.data.is_complex() {
        return fail_id!("Tidemill:not-yet", "{who}: complex matrices are not supported yet");
    }
    if host.dims.len() != 2 {
        return fail!("{who}: argument must be a 2-D matrix");
    }
    let (rows, columns) = (host.dims.rows(), host.dims.columns());
    let matrix = MatRef::from_column_major_slice(&ops::reals(&host.data), rows, columns).to_owned();
    Ok(Real { matrix, single: matches!(*host.data, Data::F32(_)) })
}

/// Returns an error, in the function's words, for a value that is no array.
pub(super) fn check_matrix(who: &str, value: &Value) -> Flow<()> {
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
            fail!("{who}: wrong type argument '{}'", value.type_name())
        }
        _ => Ok(()),
    }
}

pub(super) fn square(env: &Env, who: &str, value: &Value) -> Flow<Real> {
    let dims = value.dims();
    // This is checked before the matrix is gathered, since it may be large.
    if value.is_numeric() && dims.len() == 2 && dims.rows() != dims.columns() {
        return fail!("{who}: A must be a square matrix");
    }
    let a = real(env, who, value)?;
    if a.matrix.nrows() != a.matrix.ncols() {
        return fail!("{who}: A must be a square matrix");
    }
    Ok(a)
}

/// Makes a value of a matrix, double or single.
pub fn value_of(matrix: &Mat<f64>, single: bool) -> Value {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    let mut data = Vec::with_capacity(rows * columns);
    (0..columns).for_each(|j| data.extend_from_slice(matrix.col_as_slice(j)));
    let data = if single { Data::F32(data.into_iter().map(|x| x as f32).collect()) } else { Data::F64(data) };
    Value::tensor(Tensor::new(Dims::new(&[rows, columns]), data))
}

pub(super) fn number(x: f64, single: bool) -> Value {
    if single { Value::tensor(Tensor::scalar(Data::F32(vec![x as f32]))) } else { Value::Num(x) }
}

/// Reads a matrix of complex numbers; `None` if the value is not complex.
pub(super) fn complex(env: &Env, value: &Value) -> Flow<Option<(Mat<Complex64>, Class)>> {
    let host = env.host(value)?;
    if !host.data.is_complex() || host.dims.len() != 2 {
        return Ok(None);
    }
    let rows = host.dims.rows();
    Ok(Some((Mat::from_fn(rows, host.dims.columns(), |i, j| host.data.c64_at(j * rows + i)), host.data.class())))
}

/// Makes a value of a complex matrix; it is real if there are no imaginary parts.
pub fn complex_value(matrix: &Mat<Complex64>, class: Class) -> Value {
    let data = ops::complex_in_class(class, column_major(matrix.as_ref()));
    Value::tensor(Tensor::new(Dims::new(&[matrix.nrows(), matrix.ncols()]), data))
}

fn det(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    check_matrix("det", &args[0])?;
    if args[0].is_char() {
        return fail!("invalid conversion from string to real matrix");
    }
    if nargout < 2
        && let Some(det) = recorded::function(&interp.env, recorded::Function::Determinant, &args[0])?
    {
        return Ok(det.into());
    }
    let det = determinant(interp, args)?;
    if nargout < 2 {
        return Ok(det.into());
    }
    // The reciprocal condition number comes with the inverse.
    let rcond = match inv(interp, args, 2)? {
        Outcome::Values(values) => values.get(1).cloned(),
        _ => None,
    };
    Ok(vec![det, rcond.unwrap_or_else(Value::empty)].into())
}

fn determinant(interp: &mut Interp, args: &[Value]) -> Flow<Value> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        if a.nrows() != a.ncols() {
            return fail!("det: A must be a square matrix");
        }
        let mut det = if a.nrows() == 0 { Complex64::new(1.0, 0.0) } else { a.determinant() };
        // `faer` divides by a zero pivot.
        let is_finite = || column_major(a.as_ref()).iter().all(|z| z.is_finite());
        if ops::systems::is_singular(a.as_ref()) || det.is_nan() && is_finite() {
            det = Complex64::new(0.0, 0.0);
        }
        return Ok(complex_value(&Mat::from_fn(1, 1, |_, _| det), class));
    }
    let a = square(&interp.env, "det", &args[0])?;
    let (columns, n) = (column_major(a.matrix.as_ref()), a.matrix.nrows());
    let small = || gauss::determinant(&columns, n).filter(|_| !a.single);
    let mut det = if n == 0 { 1.0 } else { small().unwrap_or_else(|| a.matrix.determinant()) };
    // `faer` divides by a zero pivot.
    if det.is_nan() && columns.iter().all(|x| x.is_finite()) {
        det = gauss::Lu::new(&columns, n).determinant();
    }
    // With a zero pivot the determinant is a positive zero, whatever the signs of the pivots.
    if det == 0.0 || a.single && ops::systems::is_singular(a.matrix.as_ref()) {
        det = 0.0;
    }
    Ok(number(det, a.single))
}

/// Returns the greatest sum of absolute values in a column.
pub(super) fn norm_1(a: &Mat<f64>) -> f64 {
    (0..a.ncols()).map(|j| (0..a.nrows()).map(|i| a[(i, j)].abs()).sum()).fold(0.0, f64::max)
}

pub(super) fn inv(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    check_matrix("inv", &args[0])?;
    let env = &mut interp.env;
    if nargout < 2
        && let Some(inverse) = recorded::function(env, recorded::Function::Inverse, &args[0])?
    {
        return Ok(inverse.into());
    }
    let host = env.host(&args[0])?;
    if host.dims.rows() != host.dims.columns() {
        return fail!("inverse: A must be a square matrix");
    }
    if args[0].is_char() {
        return fail!("invalid conversion from string to real matrix");
    }
    if let Some((a, class)) = complex(env, &args[0])? {
        return Ok(complex_inverse(env, &a, class).into());
    }
    let a = real(env, "inverse", &args[0])?;
    let n = a.matrix.nrows();
    if n == 0 {
        return Ok(vec![value_of(&a.matrix, a.single), Value::Num(f64::INFINITY)].into());
    }
    if args[0].is_diagonal() && n > 1 && (0..n).all(|i| a.matrix[(i, i)] != 0.0) {
        return Ok(inverse_of_diagonal(&a));
    }
    if n == 1 {
        // The inverse of a number is exact, also for zero, Inf and NaN.
        let x = a.matrix[(0, 0)];
        let rcond = rcond_of_number(Complex64::from(x));
        if nargout < 2 && x == 0.0 {
            env.warn("Octave:singular-matrix", "matrix singular to machine precision");
        }
        return Ok(vec![number(1.0 / x, a.single), number(rcond, a.single)].into());
    }
    let inverse = match gauss::inverse(&column_major(a.matrix.as_ref()), n).filter(|_| !a.single) {
        Some(small) => Mat::from_fn(n, n, |i, j| small[i + j * n]),
        None if ops::systems::is_singular(a.matrix.as_ref()) => Mat::from_fn(n, n, |_, _| f64::INFINITY),
        None => a.matrix.partial_piv_lu().solve(Mat::<f64>::identity(n, n)),
    };
    let rcond = 1.0 / (norm_1(&a.matrix) * norm_1(&inverse));
    let epsilon = if a.single { f32::EPSILON as f64 } else { f64::EPSILON };
    let finite = (0..n * n).all(|k| inverse[(k % n, k / n)].is_finite());
    let given = is_finite(&a.matrix);
    let undefined = |m: &Mat<f64>| (0..n * n).any(|k| m[(k % n, k / n)].is_nan());
    if undefined(&inverse) && !given && !undefined(&a.matrix) {
        let nan = value_of(&Mat::from_fn(n, n, |_, _| f64::NAN), a.single);
        return Ok(vec![nan, number(f64::NAN, a.single)].into());
    }
    let (inverse, rcond) = if !finite || rcond.is_nan() || !given {
        (Mat::from_fn(n, n, |_, _| f64::INFINITY), 0.0)
    } else {
        (inverse, rcond)
    };
    if nargout < 2 && (rcond == 0.0 || rcond < epsilon) {
        ops::systems::warn_singular(env, "", rcond);
    }
    let inverse = value_of(&inverse, a.single);
    let inverse = if args[0].is_diagonal() { inverse.diagonal() } else { inverse };
    let inverse = if args[0].is_permutation() { inverse.permutation() } else { inverse };
    Ok(vec![inverse, number(rcond, a.single)].into())
}

/// Returns the inverse of a complex matrix, and its reciprocal condition number.
fn complex_inverse(env: &mut Env, a: &Mat<Complex64>, class: Class) -> Vec<Value> {
    let n = a.nrows();
    let out = ops::systems::inverse(env, &column_major(a.as_ref()), n, class);
    let out = Mat::from_fn(n, n, |i, j| out[j * n + i]);
    if n == 1 {
        let z = a[(0, 0)];
        let inverse = match rcond_of_number(z) {
            0.0 if z == Complex64::ZERO => Complex64::from(f64::INFINITY),
            0.0 => Complex64::ZERO,
            _ => out[(0, 0)],
        };
        let inverse = complex_value(&Mat::from_fn(1, 1, |_, _| inverse), class);
        return vec![inverse, number(rcond_of_number(z), class == Class::Single)];
    }
    if column_major(a.as_ref()).iter().any(|z| z.is_nan()) {
        let nothing = Mat::from_fn(n, n, |_, _| f64::INFINITY);
        return vec![value_of(&nothing, class == Class::Single), number(0.0, class == Class::Single)];
    }
    let rcond = 1.0 / (ops::linear::norm_1(a.as_ref()) * ops::linear::norm_1(out.as_ref()));
    vec![complex_value(&out, class), number(rcond, class == Class::Single)]
}

/// Returns the reciprocal condition number of a single number.
fn rcond_of_number(z: Complex64) -> f64 {
    match () {
        () if z.re.is_nan() || z.im.is_nan() => f64::NAN,
        () if z == Complex64::ZERO || !z.is_finite() => 0.0,
        () => 1.0,
    }
}

/// Returns the exact inverse of a diagonal matrix without a zero on its diagonal.
fn inverse_of_diagonal(a: &Real) -> Outcome {
    let n = a.matrix.nrows();
    let inverse = Mat::from_fn(n, n, |i, j| if i == j { 1.0 / a.matrix[(i, i)] } else { 0.0 });
    let sizes = (0..n).map(|i| a.matrix[(i, i)].abs());
    let (least, most) = sizes.fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), x| (l.min(x), m.max(x)));
    vec![value_of(&inverse, a.single).diagonal(), number(least / most, a.single)].into()
}

/// Returns an error if a square matrix of `n` rows does not fit into memory.
pub(super) fn check_square(env: &Env, n: usize) -> Flow<()> {
    env.check_host(&[n, n], size_of::<f64>())
}

fn trace(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some(trace) = recorded::function(&interp.env, recorded::Function::Trace, &args[0])? {
        return Ok(trace.into());
    }
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
    let sum: Complex64 = crate::builtins::reduce::summing::total((0..n).map(|i| host.data.c64_at(i * n + i)));
    if host.data.is_complex() {
        return Ok(Value::tensor(Tensor::scalar(Data::C64(vec![sum]))).into());
    }
    Ok(number(sum.re, matches!(*host.data, Data::F32(_))).into())
}

fn lu(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    check_matrix("lu", &args[0])?;
    let vector = has_word(&args[1..], "vector");
    if nargout > 2 && !vector {
        check_square(&interp.env, args[0].dims().rows())?;
    }
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        return Ok(triangles(&a, nargout, vector, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "lu", &args[0])?;
    Ok(triangles(&a.matrix, nargout, vector, |m| value_of(m, a.single)).into())
}

/// Returns the outputs of `lu`.
fn triangles<T: Number>(a: &Mat<T>, nargout: usize, vector: bool, value: impl Fn(&Mat<T>) -> Value) -> Vec<Value> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let (w, order) = ops::systems::eliminated(a.as_ref());
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

/// The form of the factors of `qr`.
#[derive(Clone, Copy)]
struct Factors {
    /// Q has no more columns than the smaller extent of A.
    thin: bool,
    /// The exchange of columns is given as a row of their numbers.
    listed: bool,
    nargout: usize,
}

fn factors_asked(args: &[Value], nargout: usize) -> Flow<Factors> {
    let is_zero = |v: &Value| matches!(v, Value::Num(x) if *x == 0.0) || is_word(v, "0");
    let known = |v: &Value| is_zero(v) || ["econ", "vector", "matrix"].iter().any(|w| is_word(v, w));
    if !args[1..].iter().all(known) {
        return fail!("qr: options are 0, \"econ\", \"vector\" and \"matrix\"");
    }
    let thin = args[1..].iter().any(is_zero) || has_word(&args[1..], "econ");
    let listed = has_word(&args[1..], "vector") || thin && !has_word(&args[1..], "matrix");
    Ok(Factors { thin, listed, nargout })
}

fn qr(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    check_matrix("qr", &args[0])?;
    if let Some(b) = args.get(1).filter(|b| b.is_numeric() && !matches!(b, Value::Num(0.0))) {
        let Outcome::Values(mut factors) = qr(interp, &[&args[..1], &args[2..]].concat(), nargout.max(2))? else {
            return fail!("qr: no factors");
        };
        // Only the product of the orthogonal factor with B is wanted.
        let turned = ops::transpose(&mut interp.env, &factors[0], true)?;
        factors[0] = ops::binary(&mut interp.env, BinaryOp::MatMul, &turned, b)?;
        return Ok(Outcome::Values(factors));
    }
    let asked = factors_asked(args, nargout)?;
    let thin = asked.thin;
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
        return Ok(orthogonal(&a, asked, |m| complex_value(m, class)).into());
    }
    let a = real(&interp.env, "qr", &args[0])?;
    if m == 0 || n == 0 {
        if nargout > 2 {
            return fail!("qr: A must have elements");
        }
        return empty_factors(&interp.env, &a, thin, nargout);
    }
    Ok(orthogonal(&a.matrix, asked, |m| value_of(m, a.single)).into())
}

/// Returns the outputs of `qr`. With three outputs, columns are exchanged so that the diagonal's magnitudes descend.
fn orthogonal<T: Number>(a: &Mat<T>, asked: Factors, value: impl Fn(&Mat<T>) -> Value) -> Vec<Value> {
    let Factors { thin, listed, nargout } = asked;
    let (m, n) = (a.nrows(), a.ncols());
    let k = if thin { m.min(n) } else { m };
    let upper = |r: &Mat<T>| Mat::from_fn(k, n, |i, j| if i <= j && i < r.nrows() { r[(i, j)] } else { T::real(0.0) });
    if nargout > 2 {
        let factors = a.col_piv_qr();
        let q = if thin { factors.compute_thin_Q() } else { factors.compute_Q() };
        let (order, _) = factors.P().arrays();
        let order: Vec<usize> = order.to_vec();
        let exchange = if listed {
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

/// Returns the factors of a matrix without elements.
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
    check_matrix("chol", &args[0])?;
    if args[0].is_numeric() && args[0].dims().rows() != args[0].dims().columns() {
        return fail!("chol: requires square matrix");
    }
    let mut lower = false;
    for option in &args[1..] {
        let Some(word) = option.as_text() else { return fail!("chol: optional arguments must be strings") };
        match word.to_ascii_lowercase().as_str() {
            "lower" => lower = true,
            "upper" => lower = false,
            "vector" => return fail!("chol: A must be sparse for the \"vector\" option"),
            _ => return fail!("chol: optional argument must be one of \"vector\", \"lower\", or \"upper\""),
        }
    }
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        return triangle(&a, lower, nargout, |m| complex_value(m, class));
    }
    let a = square(&interp.env, "chol", &args[0])?;
    triangle(&a.matrix, lower, nargout, |m| value_of(m, a.single))
}

/// Returns the outputs of `chol`. If the matrix is not positive definite, this is the factor of its largest leading
/// part that is.
fn triangle<T: Number>(a: &Mat<T>, lower: bool, nargout: usize, value: impl Fn(&Mat<T>) -> Value) -> Flow<Outcome> {
    let n = a.nrows();
    // Only one triangle is read, and only the real parts of the diagonal.
    let full = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Equal => T::real(a[(i, i)].real_part()),
        order if order.is_gt() == lower => a[(i, j)],
        _ => a[(j, i)].conjugate(),
    });
    let large = (n > PLAIN_MAX).then(|| full.llt(Side::Lower).ok()).flatten();
    let (factor, k) = match large {
        Some(factor) => (factor.L().to_owned(), n),
        None => cholesky(&full),
    };
    if k < n && nargout < 2 {
        return fail!("chol: input matrix must be positive definite");
    }
    let out = Mat::from_fn(k, k, |i, j| match lower {
        _ if i != j && (i > j) != lower => T::real(0.0),
        true => factor[(i, j)],
        false if i == j => factor[(i, i)],
        false => factor[(j, i)].conjugate(),
    });
    Ok(vec![value(&out), Value::Num(if k < n { k as f64 + 1.0 } else { 0.0 })].into())
}

/// Up to this extent `chol` follows LAPACK's unblocked algorithm, which keeps whole numbers exact.
const PLAIN_MAX: usize = 64;

/// Returns the lower triangular factor of the largest leading part that is positive definite, and its number of rows
/// (LAPACK's potf2 as in OpenBLAS, which lets NaN pass).
fn cholesky<T: Number>(a: &Mat<T>) -> (Mat<T>, usize) {
    let n = a.nrows();
    let mut l = Mat::<T>::zeros(n, n);
    for j in 0..n {
        let squares: f64 = (0..j).map(|k| (l[(j, k)] * l[(j, k)].conjugate()).real_part()).sum();
        let pivot = a[(j, j)].real_part() - squares;
        if pivot <= 0.0 {
            return (l, j);
        }
        let root = pivot.sqrt();
        l[(j, j)] = T::real(root);
        for i in j + 1..n {
            let mut sum = T::real(0.0);
            (0..j).for_each(|k| sum += l[(i, k)] * l[(j, k)].conjugate());
            l[(i, j)] = (a[(i, j)] - sum).scaled(1.0 / root);
        }
    }
    (l, n)
}

pub(super) fn is_finite<T: Number>(a: &Mat<T>) -> bool {
    (0..a.ncols()).all(|j| (0..a.nrows()).all(|i| a[(i, j)].size().is_finite()))
}
