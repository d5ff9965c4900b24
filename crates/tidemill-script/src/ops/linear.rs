//! Products, quotients and powers of matrices in host memory. Small products are computed by plain loops, and others as
//! on the host device.
//!
//! Singles are computed in double and rounded at the end. Must hold: MATMUL-1, the bound of products, for doubles.

use super::complex::{self, c};
use super::host::{self, undefined};
use super::operand::{Host, complex_in_class, in_class, nonconformant};
use super::systems::{inverse, solve};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Dims, Tensor, Value};
use faer::linalg::solvers::Solve;
use faer::traits::ComplexField;
use faer::{Mat, MatRef};
use num_complex::Complex64;
use tidemill::frontend;

/// Products with at most this many multiplications, and this many terms in a sum, are plain loops.
const SMALL: usize = 8 * 8 * 8;
const TERMS_SMALL: usize = 16;

/// Returns the two extents of each matrix. Further dimensions are folded into the columns, as messages show them.
fn matrix_dims(what: BinaryOp, a: &[usize], b: &[usize]) -> Flow<((usize, usize), (usize, usize))> {
    let folded = |d: &[usize]| (d[0], d[1..].iter().product());
    let (left, right) = (folded(a), folded(b));
    if a.len() > 2 || b.len() > 2 {
        return nonconformant(host::shape_name(what), &[left.0, left.1], &[right.0, right.1]);
    }
    Ok((left, right))
}

/// Checks that the classes can be multiplied as matrices, which integers cannot, and returns the result's class.
pub(crate) fn matrix_class(op: BinaryOp, a: &Value, b: &Value) -> Flow<Class> {
    let class = host::result_class(op, a, b)?;
    if class.is_integer() { undefined(op, a, b) } else { Ok(class) }
}

/// Multiplies two matrices, neither of which is a scalar.
///
/// # Errors
/// Shapes that do not fit.
pub(crate) fn multiply(env: &Env, a: &Host<'_>, b: &Host<'_>, class: Class) -> Flow<Value> {
    let ((m, k), (l, n)) = matrix_dims(BinaryOp::MatMul, a.dims(), b.dims())?;
    if k != l {
        return nonconformant("operator *", &[m, k], &[l, n]);
    }
    env.check_host(&[m, n], class.bytes())?;
    let dims = Dims::new(&[m, n]);
    if a.is_complex() || b.is_complex() {
        let (x, y) = (a.elements().complexes_in(class), b.elements().complexes_in(class));
        let out = complex_product(&x, &y, (m, k, n));
        return Ok(Value::tensor(Tensor::new(dims, complex_in_class(class, out))));
    }
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let out = product(&x, &y, (m, k, n));
    Ok(Value::tensor(Tensor::new(dims, in_class(class, out))))
}

/// Returns a product, column-major.
fn product(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
    if is_small(m, k, n) {
        plain(a, b, (m, k, n), 0.0, |s, x, y| s + x * y)
    } else {
        frontend::product(a, b, (m, k, n))
    }
}

/// Returns a product of complex matrices, column-major. Each part of it is a real product: the parts of the left
/// factor, side by side, times those of the right factor.
fn complex_product(a: &[Complex64], b: &[Complex64], (m, k, n): (usize, usize, usize)) -> Vec<Complex64> {
    if is_small(m, k, n) {
        return plain(a, b, (m, k, n), c(0.0, 0.0), |s, x, y| s + complex::mul(x, y));
    }
    // Terms 2p and 2p + 1 come from the parts of term p.
    let left = |part: fn(Complex64) -> [f64; 2]| -> Vec<f64> {
        a.chunks_exact(m)
            .flat_map(|column| [0, 1].map(|at| column.iter().map(move |&z| part(z)[at])))
            .flatten()
            .collect()
    };
    let right = |part: fn(Complex64) -> [f64; 2]| -> Vec<f64> { b.iter().flat_map(|&z| part(z)).collect() };
    let re = frontend::product(&left(|z| [z.re, -z.im]), &right(|z| [z.re, z.im]), (m, 2 * k, n));
    let im = frontend::product(&left(|z| [z.re, z.im]), &right(|z| [z.im, z.re]), (m, 2 * k, n));
    re.into_iter().zip(im).map(|(re, im)| c(re, im)).collect()
}

fn is_small(m: usize, k: usize, n: usize) -> bool {
    m * n * k == 0 || m * n * k <= SMALL && k <= TERMS_SMALL
}

/// Returns a product whose terms are added one after the other.
fn plain<T: Copy>(a: &[T], b: &[T], (m, k, n): (usize, usize, usize), zero: T, add: impl Fn(T, T, T) -> T) -> Vec<T> {
    let mut out = vec![zero; m * n];
    for (j, column) in out.chunks_exact_mut(m.max(1)).enumerate() {
        for p in 0..k {
            let factor = b[p + j * k];
            for (sum, &x) in column.iter_mut().zip(&a[p * m..(p + 1) * m]) {
                *sum = add(*sum, x, factor);
            }
        }
    }
    out
}

/// Does `a \ b` for matrices. A square matrix gives a triangular or general system. If it is not square, or is
/// singular, the result is the shortest of the least-squares solutions.
///
/// # Errors
/// Shapes that do not fit.
pub(crate) fn left_divide(env: &mut Env, a: &Host<'_>, b: &Host<'_>, class: Class) -> Flow<Value> {
    let ((m, k), (l, n)) = matrix_dims(BinaryOp::MatLeftDiv, a.dims(), b.dims())?;
    if m != l {
        return nonconformant("operator \\", &[m, k], &[l, n]);
    }
    env.check_host(&[k, n], class.bytes())?;
    if a.is_complex() || b.is_complex() {
        let (x, y) = (a.elements().complexes_in(class), b.elements().complexes_in(class));
        let out =
            solve(env, MatRef::from_column_major_slice(&x, m, k), MatRef::from_column_major_slice(&y, m, n), class);
        return Ok(Value::tensor(Tensor::new(Dims::new(&[k, n]), complex_in_class(class, out))));
    }
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let out = solve(env, MatRef::from_column_major_slice(&x, m, k), MatRef::from_column_major_slice(&y, m, n), class);
    Ok(Value::tensor(Tensor::new(Dims::new(&[k, n]), in_class(class, out))))
}

/// Does `a / b`, which is `(b' \ a')'`.
///
/// # Errors
/// Shapes that do not fit.
pub(crate) fn right_divide(env: &mut Env, a: &Value, b: &Value, class: Class) -> Flow<Value> {
    let ((m, k), (l, n)) = matrix_dims(BinaryOp::MatDiv, &a.dims(), &b.dims())?;
    if k != n {
        return nonconformant("operator /", &[m, k], &[l, n]);
    }
    // Host values are transposed. A recorded transpose would have to be awaited, and recorded again (SCRIPT-2).
    let (a, b) = (Value::Tensor(env.host(a)?), Value::Tensor(env.host(b)?));
    let (left, right) = (super::transpose(env, &b, true)?, super::transpose(env, &a, true)?);
    let solved = {
        let (x, y) = Host::pair(env, &left, &right)?;
        left_divide(env, &x, &y, class)?
    };
    super::transpose(env, &solved, true)
}

/// The number types in which systems are solved.
pub(crate) trait Number: ComplexField<Real = f64> + Copy {
    /// The magnitude.
    fn size(self) -> f64;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// A real number.
    fn real(x: f64) -> Self;
    /// Its real part.
    fn real_part(self) -> f64;
    /// Divides the number by 0.
    fn over_zero(self) -> Self;
    /// Multiplies each part of the number by a real number.
    fn scaled(self, by: f64) -> Self;
    /// Returns the factor that makes a diagonal element of an upper triangular factor real, with the sign of LAPACK's
    /// reflections, and the resulting element. The last row of a square matrix is not reflected.
    fn turn(element: Self, last: bool) -> (Self, Self);
    /// Inverts a small matrix with additions in Octave's order, if that is implemented.
    fn small_inverse(_: &[Self], _: usize) -> Option<Vec<Self>> {
        None
    }
    /// Solves small systems in the same order, if they need no warning.
    fn small_sound(_: MatRef<'_, Self>, _: MatRef<'_, Self>) -> Option<Vec<Self>>
    where
        Self: Sized,
    {
        None
    }
    /// Factors a small matrix in the same order: the unit lower and the upper triangle in one matrix, and the order of
    /// the rows.
    fn small_factors(_: MatRef<'_, Self>) -> Option<(Vec<Self>, Vec<usize>)>
    where
        Self: Sized,
    {
        None
    }
    /// Solves small systems in the same order.
    fn small_solve(_: &[Self], _: usize, _: &[Self]) -> Option<Vec<Self>> {
        None
    }
}

impl Number for f64 {
    fn size(self) -> f64 {
        f64::abs(self)
    }
    fn conjugate(self) -> f64 {
        self
    }
    fn turn(element: Self, _: bool) -> (Self, Self) {
        (1.0, element)
    }
    fn real(x: f64) -> f64 {
        x
    }
    fn real_part(self) -> f64 {
        self
    }
    fn over_zero(self) -> f64 {
        self / 0.0
    }
    fn scaled(self, by: f64) -> f64 {
        self * by
    }
    fn small_inverse(a: &[f64], n: usize) -> Option<Vec<f64>> {
        super::gauss::inverse(a, n)
    }
    fn small_sound(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Option<Vec<f64>> {
        let n = a.nrows();
        if n > super::gauss::ROWS_MAX {
            return None;
        }
        super::gauss::solve_sound(&column_major(a), n, &column_major(b))
    }
    fn small_factors(a: MatRef<'_, f64>) -> Option<(Vec<f64>, Vec<usize>)> {
        let n = a.nrows();
        (n <= super::gauss::ROWS_MAX).then(|| super::gauss::Lu::new(&column_major(a), n).into_parts())
    }
    fn small_solve(a: &[f64], n: usize, b: &[f64]) -> Option<Vec<f64>> {
        super::gauss::solve(a, n, b)
    }
}

impl Number for Complex64 {
    fn size(self) -> f64 {
        complex::abs(self)
    }
    fn conjugate(self) -> Complex64 {
        self.conj()
    }
    fn turn(element: Self, last: bool) -> (Self, Self) {
        let size = element.norm();
        if element.im == 0.0 || size == 0.0 {
            return (c(1.0, 0.0), element);
        }
        let sign = if last { -element.re.signum() } else { element.re.signum() };
        (element.conj() * (sign / size), c(sign * size, 0.0))
    }
    fn real(x: f64) -> Complex64 {
        c(x, 0.0)
    }
    fn real_part(self) -> f64 {
        self.re
    }
    fn over_zero(self) -> Complex64 {
        c(self.re / 0.0, self.im / 0.0)
    }
    fn scaled(self, by: f64) -> Complex64 {
        c(self.re * by, self.im * by)
    }
}

/// The elements of a matrix, column-major.
pub(crate) fn column_major<T: Number>(matrix: MatRef<'_, T>) -> Vec<T> {
    (0..matrix.ncols()).flat_map(|j| (0..matrix.nrows()).map(move |i| matrix[(i, j)])).collect()
}

/// The largest sum of magnitudes in a column.
pub(crate) fn norm_1<T: Number>(a: MatRef<'_, T>) -> f64 {
    let column = |j: usize| (0..a.nrows()).map(|i| a[(i, j)].size()).sum::<f64>();
    (0..a.ncols()).map(column).fold(0.0, |most, sum| if sum > most || sum.is_nan() { sum } else { most })
}

/// Does `a ^ b`, where one operand is a matrix.
///
/// # Errors
/// Matrices that are not square; two matrices.
pub(crate) fn power(env: &mut Env, a: &Value, b: &Value) -> Flow<Value> {
    if !a.is_scalar() && !b.is_scalar() {
        return fail!("can't do A ^ B for A and B both matrices");
    }
    if a.class().is_integer() || b.class().is_integer() {
        return undefined(BinaryOp::MatPow, a, b);
    }
    let dims = if a.is_scalar() { b.dims() } else { a.dims() };
    if dims.len() > 2 || dims.rows() != dims.columns() && dims.elements() > 0 {
        return fail!(
            "for x^y, only square matrix arguments are permitted and one argument must be scalar.  Use .^ for elementwise power."
        );
    }
    let class = host::result_class(BinaryOp::MatPow, a, b)?;
    if dims.elements() == 0 {
        return Ok(Value::tensor(Tensor::zeros(class, Dims::zero())));
    }
    let (x, y) = Host::pair(env, a, b)?;
    let n = dims.rows();
    if a.is_scalar() {
        let (base, exponent) = (x.elements().complexes_in(class)[0], y.elements().complexes_in(class));
        let real = !x.is_complex() && !y.is_complex();
        let base_power = |value: Complex64| {
            if real && base.re > 0.0 { complex::real_pow(base.re, value) } else { complex::pow(base, value) }
        };
        let out = by_eigenvalues(&exponent, n, y.is_complex(), base_power);
        return Ok(from_complex(out, n, class, real && base.re > 0.0));
    }
    if !y.is_complex() {
        let exponent = y.elements().reals()[0];
        if exponent.trunc() == exponent && exponent.abs() <= i32::MAX as f64 {
            return whole_power(env, &x, exponent as i32, n, class);
        }
    }
    let exponent = y.elements().complexes_in(class)[0];
    let base = x.elements().complexes_in(class);
    let out = by_eigenvalues(&base, n, x.is_complex(), |value| {
        if y.is_complex() { complex::pow(value, exponent) } else { complex::powf(value, exponent.re) }
    });
    Ok(from_complex(out, n, class, false))
}

/// Makes a value of a complex matrix. If `real`, its imaginary parts can only be rounding errors, and are dropped.
fn from_complex(out: Vec<Complex64>, n: usize, class: Class, real: bool) -> Value {
    let dims = Dims::new(&[n, n]);
    if real {
        return Value::tensor(Tensor::new(dims, in_class(class, out.iter().map(|z| z.re).collect())));
    }
    Value::tensor(Tensor::new(dims, complex_in_class(class, out)))
}

/// Computes a function of a matrix by its eigenvalues and eigenvectors.
fn by_eigenvalues(a: &[Complex64], n: usize, complex: bool, f: impl Fn(Complex64) -> Complex64) -> Vec<Complex64> {
    let undefined = || vec![c(f64::NAN, f64::NAN); n * n];
    if a.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
        return undefined();
    }
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let hermitian = (0..n).all(|j| (0..=j).all(|i| matrix[(i, j)] == matrix[(j, i)].conj()));
    if hermitian {
        let Ok(eigen) = matrix.self_adjoint_eigen(faer::Side::Lower) else { return undefined() };
        let (u, s) = (eigen.U(), eigen.S().column_vector());
        let scaled = Mat::from_fn(n, n, |i, j| u[(i, j)] * f(s[j]));
        return column_major((scaled * u.adjoint()).as_ref());
    }
    let eigen = if complex { matrix.eigen() } else { Mat::from_fn(n, n, |i, j| matrix[(i, j)].re).eigen() };
    let Ok(eigen) = eigen else { return undefined() };
    let (u, s) = (eigen.U(), eigen.S().column_vector());
    let scaled = Mat::from_fn(n, n, |i, j| u[(i, j)] * f(s[j]));
    // This computes scaled / u by a system with the transposes.
    let lu = u.transpose().partial_piv_lu();
    column_major(lu.solve(scaled.transpose()).as_ref().transpose())
}

/// Computes an integer power by repeated squaring, of the inverse if the exponent is negative.
fn whole_power(env: &mut Env, a: &Host<'_>, exponent: i32, n: usize, class: Class) -> Flow<Value> {
    let dims = Dims::new(&[n, n]);
    if exponent == 0 {
        return Ok(Value::tensor(Tensor::new(dims, in_class(class, identity(n)))).diagonal());
    }
    if a.is_complex() {
        let base = a.elements().complexes_in(class).into_owned();
        let base = if exponent < 0 { inverse(env, &base, n, class) } else { base };
        let multiply = |x: &[Complex64], y: &[Complex64]| complex_product(x, y, (n, n, n));
        let out = squarings(base, exponent.unsigned_abs(), identity(n), multiply);
        return Ok(Value::tensor(Tensor::new(dims, complex_in_class(class, out))));
    }
    let base = a.elements().reals_in(class).into_owned();
    let base = if exponent < 0 { inverse(env, &base, n, class) } else { base };
    let multiply = |x: &[f64], y: &[f64]| product(x, y, (n, n, n));
    let out = squarings(base, exponent.unsigned_abs(), identity(n), multiply);
    Ok(Value::tensor(Tensor::new(dims, in_class(class, out))))
}

fn identity<T: Number>(n: usize) -> Vec<T> {
    (0..n * n).map(|i| T::real(if i % (n + 1) == 0 { 1.0 } else { 0.0 })).collect()
}

fn squarings<T: Clone>(base: Vec<T>, exponent: u32, one: Vec<T>, multiply: impl Fn(&[T], &[T]) -> Vec<T>) -> Vec<T> {
    let (mut left, mut factor, mut result) = (exponent, base, None::<Vec<T>>);
    while left > 0 {
        if left % 2 == 1 {
            result = Some(match result {
                Some(result) => multiply(&result, &factor),
                None => factor.clone(),
            });
        }
        left /= 2;
        if left > 0 {
            factor = multiply(&factor, &factor);
        }
    }
    result.unwrap_or(one)
}
