//! Products, quotients and powers of matrices in host memory: small products by plain loops, others by `gemm`;
//! systems of equations by `faer`.
//!
//! Singles are computed in double and rounded at the end.

use super::complex::{self, c};
use super::host::{self, undefined};
use super::operand::{Host, complex_in_class, in_class, nonconformant};
use crate::script::env::Env;
use crate::script::error::{Flow, fail};
use crate::script::syntax::ast::BinaryOp;
use crate::script::value::{Class, Dims, Tensor, Value};
use faer::linalg::solvers::Solve;
use faer::traits::ComplexField;
use faer::{Mat, MatRef};
use num_complex::Complex64;

/// Products with at most so many multiplications are plain loops.
const SMALL: usize = 8 * 8 * 8;

/// The two extents of a matrix; further dimensions are folded into the columns, as messages show them.
fn matrix_dims(what: BinaryOp, a: &[usize], b: &[usize]) -> Flow<((usize, usize), (usize, usize))> {
    let folded = |d: &[usize]| (d[0], d[1..].iter().product());
    let (left, right) = (folded(a), folded(b));
    if a.len() > 2 || b.len() > 2 {
        return nonconformant(host::shape_name(what), &[left.0, left.1], &[right.0, right.1]);
    }
    Ok((left, right))
}

/// Checks that classes multiply as matrices; gives the result's class. Integers never do.
pub(crate) fn matrix_class(op: BinaryOp, a: &Value, b: &Value) -> Flow<Class> {
    let class = host::result_class(op, a, b)?;
    if class.is_integer() { undefined(op, a, b) } else { Ok(class) }
}

/// The product of two matrices, neither a scalar.
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
        let out = product(&x, &y, (m, k, n), c(0.0, 0.0), c(1.0, 0.0), |s, x, y| s + complex::mul(x, y));
        return Ok(Value::tensor(Tensor::new(dims, complex_in_class(class, out))));
    }
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let out = product(&x, &y, (m, k, n), 0.0, 1.0, |s, x, y| s + x * y);
    Ok(Value::tensor(Tensor::new(dims, in_class(class, out))))
}

/// A product, column-major.
pub(crate) fn product<T: Copy + 'static>(
    a: &[T],
    b: &[T],
    (m, k, n): (usize, usize, usize),
    zero: T,
    one: T,
    add: impl Fn(T, T, T) -> T,
) -> Vec<T> {
    let mut out = vec![zero; m * n];
    if m * n * k <= SMALL || m * n == 0 || k == 0 {
        for (j, column) in out.chunks_exact_mut(m.max(1)).enumerate() {
            for p in 0..k {
                let factor = b[p + j * k];
                for (sum, &x) in column.iter_mut().zip(&a[p * m..(p + 1) * m]) {
                    *sum = add(*sum, x, factor);
                }
            }
        }
        return out;
    }
    assert!(a.len() == m * k && b.len() == k * n, "VALUE-2: the factors are as long as their dimensions say");
    // SAFETY: the three slices hold as many elements as the sizes and strides reach; `out` is borrowed alone.
    unsafe {
        gemm::gemm::<T>(
            m,
            n,
            k,
            out.as_mut_ptr(),
            m as isize,
            1,
            false,
            a.as_ptr(),
            m as isize,
            1,
            b.as_ptr(),
            k as isize,
            1,
            zero,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
    out
}

/// `a \ b` of matrices: a triangular or general system; where the matrix has more or fewer rows than columns, or is
/// singular, the shortest of the best solutions.
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

/// `a / b`, which is `(b' \ a')'`.
///
/// # Errors
/// Shapes that do not fit.
pub(crate) fn right_divide(env: &mut Env, a: &Value, b: &Value, class: Class) -> Flow<Value> {
    let ((m, k), (l, n)) = matrix_dims(BinaryOp::MatDiv, &a.dims(), &b.dims())?;
    if k != n {
        return nonconformant("operator /", &[m, k], &[l, n]);
    }
    // Host values are turned over: what is recorded here would have to be awaited, and recorded again (SCRIPT-2).
    let (a, b) = (Value::Tensor(env.host(a)?), Value::Tensor(env.host(b)?));
    let (left, right) = (super::transpose(env, &b, true)?, super::transpose(env, &a, true)?);
    let solved = {
        let (x, y) = Host::pair(env, &left, &right)?;
        left_divide(env, &x, &y, class)?
    };
    super::transpose(env, &solved, true)
}

/// Numbers that systems are solved in.
pub(crate) trait Number: ComplexField<Real = f64> + Copy {
    /// The magnitude.
    fn size(self) -> f64;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// A real number.
    fn real(x: f64) -> Self;
    /// The factor that makes an element of an upper triangular factor's diagonal real, with the sign that LAPACK's
    /// reflections give it, and what becomes of the element. The last row of a square matrix is not reflected.
    fn turn(element: Self, last: bool) -> (Self, Self);
    /// The inverse of a small matrix in Octave's order of additions, if there is such a way.
    fn small_inverse(_: &[Self], _: usize) -> Option<Vec<Self>> {
        None
    }
    /// The solutions of small systems, likewise, where nothing has to be said about them.
    fn small_sound(_: MatRef<'_, Self>, _: MatRef<'_, Self>) -> Option<Vec<Self>>
    where
        Self: Sized,
    {
        None
    }
    /// The solutions of small systems, likewise.
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
}

/// The elements of a matrix, column-major.
pub(crate) fn column_major<T: Number>(matrix: MatRef<'_, T>) -> Vec<T> {
    (0..matrix.ncols()).flat_map(|j| (0..matrix.nrows()).map(move |i| matrix[(i, j)])).collect()
}

fn epsilon(class: Class) -> f64 {
    if class == Class::Single { f32::EPSILON as f64 } else { f64::EPSILON }
}

/// The largest sum of magnitudes in a column.
pub(crate) fn norm_1<T: Number>(a: MatRef<'_, T>) -> f64 {
    let column = |j: usize| (0..a.nrows()).map(|i| a[(i, j)].size()).sum::<f64>();
    (0..a.ncols()).map(column).fold(0.0, |most, sum| if sum > most || sum.is_nan() { sum } else { most })
}

/// Warns of a matrix that a system cannot rely on.
pub(crate) fn warn_singular(env: &mut Env, what: &str, rcond: f64) {
    if rcond == 0.0 {
        env.warn("Octave:singular-matrix", &format!("{what}matrix singular to machine precision"));
    } else {
        let text = format!("{what}matrix singular to machine precision, rcond = {}", significant(rcond));
        env.warn("Octave:nearly-singular-matrix", &text);
    }
}

/// Six significant digits, as C's `%g` writes small numbers.
fn significant(x: f64) -> String {
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The solution of `a x = b`, column-major.
fn solve<T: Number>(env: &mut Env, a: MatRef<'_, T>, b: MatRef<'_, T>, class: Class) -> Vec<T> {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 || b.ncols() == 0 {
        return vec![T::real(0.0); n * b.ncols()];
    }
    if m != n {
        return least_squares(a, b, class);
    }
    let nonzero = |i: usize, j: usize| a[(i, j)].size() != 0.0;
    let upper = (0..n).all(|j| (j + 1..n).all(|i| !nonzero(i, j)));
    let lower = !upper && (0..n).all(|j| (0..j).all(|i| !nonzero(i, j)));
    if upper || lower {
        if (0..n).any(|i| !nonzero(i, i)) {
            warn_singular(env, "", 0.0);
            return least_squares(a, b, class);
        }
        let mut x = b.to_owned();
        if upper {
            a.solve_upper_triangular_in_place(x.as_mut());
        } else {
            a.solve_lower_triangular_in_place(x.as_mut());
        }
        let rcond = reciprocal_condition(a, |y| {
            if upper {
                a.solve_upper_triangular_in_place(y.as_mut())
            } else {
                a.solve_lower_triangular_in_place(y.as_mut())
            }
        });
        if rcond < epsilon(class) {
            warn_singular(env, "", rcond);
        }
        return column_major(x.as_ref());
    }
    // Most systems are small and far from singular.
    if class != Class::Single
        && let Some(x) = T::small_sound(a, b)
    {
        return x;
    }
    let lu = a.partial_piv_lu();
    let pivots = lu.U();
    if (0..n).any(|i| pivots[(i, i)].size() == 0.0 || pivots[(i, i)].size().is_nan()) {
        warn_singular(env, "", 0.0);
        return least_squares(a, b, class);
    }
    let rcond = reciprocal_condition(a, |y| lu.solve_in_place(y.as_mut()));
    if rcond < epsilon(class) || rcond.is_nan() {
        warn_singular(env, "", rcond);
        if rcond == 0.0 || rcond.is_nan() {
            return least_squares(a, b, class);
        }
    }
    if class != Class::Single
        && let Some(x) = T::small_solve(&column_major(a), n, &column_major(b))
    {
        return x;
    }
    column_major(lu.solve(b).as_ref())
}

/// 1 over the product of the 1-norms of a matrix and of its inverse.
pub(crate) fn reciprocal_condition<T: Number>(a: MatRef<'_, T>, solve: impl Fn(&mut Mat<T>)) -> f64 {
    let n = a.nrows();
    let mut inverse = Mat::<T>::identity(n, n);
    solve(&mut inverse);
    let product = norm_1(a) * norm_1(inverse.as_ref());
    if product.is_infinite() { 0.0 } else { 1.0 / product }
}

/// The shortest of the vectors that come nearest to solving `a x = b`.
fn least_squares<T: Number>(a: MatRef<'_, T>, b: MatRef<'_, T>, class: Class) -> Vec<T> {
    let (n, columns) = (a.ncols(), b.ncols());
    let finite = (0..n).all(|j| (0..a.nrows()).all(|i| a[(i, j)].size().is_finite()));
    let Some(svd) = finite.then(|| a.thin_svd().ok()).flatten() else {
        return vec![T::real(f64::NAN); n * columns];
    };
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    let values: Vec<f64> = (0..s.nrows()).map(|i| s[i].size()).collect();
    let least = values.first().copied().unwrap_or(0.0) * epsilon(class);
    let mut out = vec![T::real(0.0); n * columns];
    for (j, x) in out.chunks_exact_mut(n).enumerate() {
        for (p, &value) in values.iter().enumerate().take_while(|&(_, &value)| value > least) {
            let mut along = T::real(0.0);
            for i in 0..a.nrows() {
                along += u[(i, p)].conjugate() * b[(i, j)];
            }
            let along = along * T::real(1.0 / value);
            for (i, x) in x.iter_mut().enumerate() {
                *x += v[(i, p)] * along;
            }
        }
    }
    out
}

/// `a ^ b`, one of them a matrix.
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

/// A complex matrix as a value; its imaginary parts are dropped where they can only be rounding.
fn from_complex(out: Vec<Complex64>, n: usize, class: Class, real: bool) -> Value {
    let dims = Dims::new(&[n, n]);
    if real {
        return Value::tensor(Tensor::new(dims, in_class(class, out.iter().map(|z| z.re).collect())));
    }
    Value::tensor(Tensor::new(dims, complex_in_class(class, out)))
}

/// A function of a matrix, by its eigenvalues and eigenvectors.
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
    // scaled / u, by a system with the transposes.
    let lu = u.transpose().partial_piv_lu();
    column_major(lu.solve(scaled.transpose()).as_ref().transpose())
}

/// A whole power, by repeated squaring; of the inverse where it is negative.
fn whole_power(env: &mut Env, a: &Host<'_>, exponent: i32, n: usize, class: Class) -> Flow<Value> {
    let dims = Dims::new(&[n, n]);
    if exponent == 0 {
        return Ok(Value::tensor(Tensor::new(dims, in_class(class, identity(n)))).diagonal());
    }
    if a.is_complex() {
        let base = a.elements().complexes_in(class).into_owned();
        let base = if exponent < 0 { inverse(env, &base, n, class) } else { base };
        let multiply = |x: &[Complex64], y: &[Complex64]| {
            product(x, y, (n, n, n), c(0.0, 0.0), c(1.0, 0.0), |s, x, y| s + complex::mul(x, y))
        };
        let out = squarings(base, exponent.unsigned_abs(), identity(n), multiply);
        return Ok(Value::tensor(Tensor::new(dims, complex_in_class(class, out))));
    }
    let base = a.elements().reals_in(class).into_owned();
    let base = if exponent < 0 { inverse(env, &base, n, class) } else { base };
    let multiply = |x: &[f64], y: &[f64]| product(x, y, (n, n, n), 0.0, 1.0, |s, x, y| s + x * y);
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

/// The inverse of a square matrix, column-major; infinite, with a warning, where there is none.
pub(crate) fn inverse<T: Number>(env: &mut Env, a: &[T], n: usize, class: Class) -> Vec<T> {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let lu = matrix.partial_piv_lu();
    let pivots = lu.U();
    if (0..n).any(|i| pivots[(i, i)].size() == 0.0) {
        env.warn("Octave:singular-matrix", "inverse: matrix singular to machine precision, rcond = 0");
        return vec![T::real(f64::INFINITY); n * n];
    }
    let mut out = Mat::<T>::identity(n, n);
    lu.solve_in_place(out.as_mut());
    let rcond = 1.0 / (norm_1(matrix) * norm_1(out.as_ref()));
    if rcond < epsilon(class) {
        warn_singular(env, "inverse: ", rcond);
    }
    if class != Class::Single
        && let Some(small) = T::small_inverse(a, n)
    {
        return small;
    }
    column_major(out.as_ref())
}
