//! Eigenvalues and eigenvectors, of one matrix or of a pair of matrices, and the Schur and Hessenberg forms.

use super::factors::{complex, complex_value, is_finite, real, value_of};
use super::singular::SIGNED_MAX;
use crate::builtins::Outcome;
use crate::error::{Flow, fail, fail_id};
use crate::ops;
use crate::ops::linear::{Number, column_major};
use crate::ops::schur::Factored;
use crate::value::{Class, Value};
use crate::vm::Interp;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::ComputeEigenvectors;
use faer::linalg::gevd;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use num_complex::Complex64;

/// The options in the words behind the matrices.
#[derive(Default)]
struct Wanted {
    /// `Some (true)`: the eigenvalues as a diagonal matrix, even without vectors; `Some (false)`: as a column, even
    /// with them.
    matrix: Option<bool>,
}

/// Returns the second matrix of a pair, and the options.
fn options(args: &[Value]) -> Flow<(Option<&Value>, Wanted)> {
    let (mut pair, mut wanted) = (None, Wanted::default());
    for (k, arg) in args.iter().enumerate() {
        match arg.as_text().filter(|_| arg.is_char()) {
            None if k == 0 => pair = Some(arg),
            None => return fail!("eig: wrong type argument '{}'", arg.type_name()),
            Some(word) => match word.as_str() {
                // These choose the algorithm. The results are the same up to rounding.
                "balance" | "nobalance" | "chol" | "qz" => {}
                "vector" => wanted.matrix = Some(false),
                "matrix" => wanted.matrix = Some(true),
                _ => return fail!("eig: invalid option \"{word}\""),
            },
        }
    }
    Ok((pair, wanted))
}

/// Reads a square matrix, and returns its class.
fn matrix_of(interp: &Interp, value: &Value, name: &str) -> Flow<(Matrix, Class)> {
    let (a, class) = match complex(&interp.env, value)? {
        Some((a, class)) => (Matrix::Complex(a), class),
        None => {
            let a = real(&interp.env, "eig", value)?;
            (Matrix::Real(a.matrix), if a.single { Class::Single } else { Class::Double })
        }
    };
    let (rows, columns) = a.extents();
    if rows != columns {
        return fail!("eig: {name} must be a square matrix");
    }
    Ok((a, class))
}

pub(super) fn eig(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    super::factors::check_matrix("eig", &args[0])?;
    interp.env.host_all(args)?;
    let (pair, wanted) = options(&args[1..])?;
    let (a, mut class) = matrix_of(interp, &args[0], "A")?;
    let b = match pair {
        Some(value) => {
            let (b, other) = matrix_of(interp, value, "B")?;
            if b.extents() != a.extents() {
                return fail!("nonconformant matrices");
            }
            class = if other == Class::Single { other } else { class };
            Some(b)
        }
        None => None,
    };
    let rows = a.extents().0;
    if rows == 0 {
        return Ok(vec![Value::empty(), Value::empty(), Value::empty()].into());
    }
    let found = match (&a, &b) {
        (Matrix::Real(a), None) => eigen(a, nargout > 1),
        (Matrix::Complex(a), None) => eigen_complex(a),
        (a, Some(b)) => eigen_of_pair(a, b),
    };
    let Some((values, vectors)) = found? else { return fail!("eig: no convergence") };
    let column = || complex_value(&Mat::from_fn(rows, 1, |i, _| values[i]), class);
    let diagonal = || {
        let zero = Complex64::new(0.0, 0.0);
        complex_value(&Mat::from_fn(rows, rows, |i, j| if i == j { values[i] } else { zero }), class).diagonal()
    };
    let values_as = |matrix: bool| if wanted.matrix.unwrap_or(matrix) { diagonal() } else { column() };
    if nargout < 2 {
        return Ok(values_as(false).into());
    }
    let mut out = vec![complex_value(&vectors, class), values_as(true)];
    if nargout > 2 {
        out.push(complex_value(&left_vectors(&vectors, b.as_ref()), class));
    }
    Ok(out.into())
}

/// Returns the left vectors: the inverse of the right ones (times the pair's second matrix), scaled to unit length.
fn left_vectors(vectors: &Mat<Complex64>, b: Option<&Matrix>) -> Mat<Complex64> {
    let n = vectors.nrows();
    let right = match b {
        Some(b) => b.widened() * vectors,
        None => vectors.clone(),
    };
    let inverse = right.partial_piv_lu().solve(Mat::<Complex64>::identity(n, n));
    let length = |j: usize| (0..n).map(|i| inverse[(j, i)].norm_sqr()).sum::<f64>().sqrt();
    Mat::from_fn(n, n, |i, j| inverse[(j, i)].conj() / length(j))
}

/// Decomposes a pair. Real symmetric matrices with a positive definite second one are treated as in dsygv, and others
/// by the QZ algorithm.
fn eigen_of_pair(a: &Matrix, b: &Matrix) -> Flow<Eigen> {
    let n = a.extents().0;
    check_finite(&a.widened())?;
    check_finite(&b.widened())?;
    if let (Matrix::Real(a), Matrix::Real(b)) = (a, b)
        && is_hermitian(a)
        && is_hermitian(b)
        && let Ok(factor) = b.llt(Side::Lower)
    {
        let l = factor.L();
        // C = inv (L) A inv (L)' is computed row by row, and then column by column.
        let forward = |m: &Mat<f64>| {
            let mut x = m.clone();
            for j in 0..n {
                for i in 0..n {
                    let sum: f64 = (0..i).map(|k| l[(i, k)] * x[(k, j)]).sum();
                    x[(i, j)] = (x[(i, j)] - sum) / l[(i, i)];
                }
            }
            x
        };
        let c = forward(&forward(a).transpose().to_owned());
        let c = Mat::from_fn(n, n, |i, j| c[(i.max(j), i.min(j))]);
        let Some((values, u)) = eigen(&c, true)? else { return Ok(None) };
        let mut x = u;
        for j in 0..n {
            for i in (0..n).rev() {
                let sum: Complex64 = (i + 1..n).map(|k| x[(k, j)] * l[(k, i)]).sum();
                x[(i, j)] = (x[(i, j)] - sum) / l[(i, i)];
            }
        }
        return Ok(Some((values, x)));
    }
    let found = match (a, b) {
        (Matrix::Real(a), Matrix::Real(b)) => real_pair(a, b),
        (a, b) => complex_pair(&a.widened(), &b.widened()),
    };
    let Some(Pair { over, under, mut vectors }) = found else { return Ok(None) };
    let infinite = Complex64::new(f64::INFINITY, 0.0);
    let values = (0..n).map(|i| if under[i].norm() == 0.0 { infinite } else { over[i] / under[i] }).collect();
    for j in 0..n {
        // The largest element becomes 1. Its size is the sum of the magnitudes of its parts (dggev).
        let size = |z: Complex64| z.re.abs() + z.im.abs();
        let most = (0..n)
            .map(|i| vectors[(i, j)])
            .fold(Complex64::new(0.0, 0.0), |m, z| if size(z) > size(m) { z } else { m });
        let by = if most.re < 0.0 { -size(most) } else { size(most) };
        (0..n).filter(|_| by != 0.0).for_each(|i| vectors[(i, j)] /= by);
    }
    Ok(Some((values, vectors)))
}

/// The eigenvalues of a pair of matrices as quotients, and the vectors.
struct Pair {
    over: Vec<Complex64>,
    under: Vec<Complex64>,
    vectors: Mat<Complex64>,
}

/// Returns the memory for `generalized_eigen`, which asks for less than it needs for small matrices (faer 0.24) and
/// then panics. Small matrices get as much as larger ones here.
fn memory<T: faer::traits::ComplexField>(n: usize) -> MemBuffer {
    let vectors = ComputeEigenvectors::Yes;
    let par = faer::get_global_parallelism();
    MemBuffer::new(gevd::gevd_scratch::<T>(n + 64, vectors, vectors, par, Default::default()))
}

fn complex_pair(a: &Mat<Complex64>, b: &Mat<Complex64>) -> Option<Pair> {
    let n = a.nrows();
    let mut vectors = Mat::zeros(n, n);
    let (mut over, mut under) = (Diag::zeros(n), Diag::zeros(n));
    gevd::gevd_cplx(
        a.clone().as_mut(),
        b.clone().as_mut(),
        over.as_mut(),
        under.as_mut(),
        None,
        Some(vectors.as_mut()),
        faer::get_global_parallelism(),
        MemStack::new(&mut memory::<Complex64>(n)),
        Default::default(),
    )
    .ok()?;
    Some(Pair { over: (0..n).map(|i| over[i]).collect(), under: (0..n).map(|i| under[i]).collect(), vectors })
}

/// Does the same for real matrices.
fn real_pair(a: &Mat<f64>, b: &Mat<f64>) -> Option<Pair> {
    let n = a.nrows();
    let mut u = Mat::zeros(n, n);
    let (mut re, mut im, mut under) = (Diag::zeros(n), Diag::zeros(n), Diag::zeros(n));
    gevd::gevd_real(
        a.clone().as_mut(),
        b.clone().as_mut(),
        re.as_mut(),
        im.as_mut(),
        under.as_mut(),
        None,
        Some(u.as_mut()),
        faer::get_global_parallelism(),
        MemStack::new(&mut memory::<f64>(n)),
        Default::default(),
    )
    .ok()?;
    // Complex eigenvalues come in pairs. The two columns of a pair are the real and the imaginary part of its vector.
    let second = |j: usize| im[j] != 0.0 && (0..j).rev().take_while(|&k| im[k] != 0.0).count() % 2 == 1;
    let vector = |i: usize, j: usize| match (im[j] == 0.0, second(j)) {
        (true, _) => Complex64::new(u[(i, j)], 0.0),
        (_, false) => Complex64::new(u[(i, j)], u[(i, j + 1)]),
        (_, true) => Complex64::new(u[(i, j - 1)], -u[(i, j)]),
    };
    let value = |j: usize| match second(j) {
        false => Complex64::new(re[j], im[j]),
        true => Complex64::new(re[j - 1], -im[j - 1]),
    };
    Some(Pair {
        over: (0..n).map(value).collect(),
        under: (0..n).map(|j| Complex64::new(under[j], 0.0)).collect(),
        vectors: Mat::from_fn(n, n, vector),
    })
}

/// Reads the real square matrix for `hess` and `schur`: returns it in column-major order, its extent, and whether it is
/// single.
fn form_of(interp: &Interp, who: &str, value: &Value) -> Flow<(Vec<f64>, usize, bool)> {
    let a = real(&interp.env, who, value)?;
    if a.matrix.nrows() != a.matrix.ncols() {
        return fail!("{who}: A must be a square matrix");
    }
    Ok((column_major(a.matrix.as_ref()), a.matrix.nrows(), a.single))
}

/// Returns the form only, or its factor and the form.
fn factored(n: usize, single: bool, found: &Factored, nargout: usize) -> Outcome {
    let value = |data: &[f64]| value_of(&Mat::from_fn(n, n, |i, j| data[j * n + i]), single);
    match nargout {
        0 | 1 => value(&found.form).into(),
        _ => vec![value(&found.factor), value(&found.form)].into(),
    }
}

pub(super) fn hess(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    super::factors::check_matrix("hess", &args[0])?;
    let (a, n, single) = form_of(interp, "hess", &args[0])?;
    if n < 3 {
        // The matrix has the form already.
        let factor = (0..n * n).map(|k| if k % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
        return Ok(factored(n, single, &Factored { form: a, factor }, nargout));
    }
    if a.iter().any(|x| !x.is_finite()) {
        return fail!("hess: argument must not contain Inf or NaN values");
    }
    Ok(factored(n, single, &ops::schur::hessenberg_form(&a, n), nargout))
}

pub(super) fn schur(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    super::factors::check_matrix("schur", &args[0])?;
    match args.get(1).map(|word| word.as_text().unwrap_or_default()) {
        None => {}
        Some(word) if word == "real" => {}
        Some(word) if ["complex", "u", "U", "a", "A", "d", "D"].contains(&word.as_str()) => {
            return fail_id!("Tidemill:not-yet", "schur: the option \"{word}\" is not supported yet");
        }
        Some(word) => return fail!("schur: incorrect ordered schur argument '{word}'"),
    }
    let (a, n, single) = form_of(interp, "schur", &args[0])?;
    if a.iter().any(|x| !x.is_finite()) {
        let form = (0..n * n).map(|k| if k % n > k / n + 1 || n == 2 && k == 1 { 0.0 } else { f64::NAN }).collect();
        return Ok(factored(n, single, &Factored { form, factor: vec![f64::NAN; n * n] }, nargout));
    }
    match ops::schur::schur_form(&a, n) {
        Some(found) => Ok(factored(n, single, &found, nargout)),
        None => fail!("schur: no convergence"),
    }
}

/// A real or a complex matrix.
enum Matrix {
    Real(Mat<f64>),
    Complex(Mat<Complex64>),
}

impl Matrix {
    fn extents(&self) -> (usize, usize) {
        match self {
            Matrix::Real(a) => (a.nrows(), a.ncols()),
            Matrix::Complex(a) => (a.nrows(), a.ncols()),
        }
    }

    /// Returns the same numbers as complex ones.
    fn widened(&self) -> Mat<Complex64> {
        match self {
            Matrix::Real(a) => Mat::from_fn(a.nrows(), a.ncols(), |i, j| Complex64::new(a[(i, j)], 0.0)),
            Matrix::Complex(a) => a.clone(),
        }
    }
}

/// Eigenvalues and their eigenvectors; `None` if they do not converge.
type Eigen = Option<(Vec<Complex64>, Mat<Complex64>)>;

fn check_finite<T: Number>(a: &Mat<T>) -> Flow<()> {
    if is_finite(a) { Ok(()) } else { fail!("eig: matrix contains Inf or NaN values") }
}

fn is_hermitian<T: Number>(a: &Mat<T>) -> bool {
    (0..a.nrows()).all(|i| (0..=i).all(|j| a[(i, j)] == a[(j, i)].conjugate()))
}

/// Decomposes a real matrix. The eigenvalues of a symmetric one ascend, and others are in LAPACK's order.
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
                (values.into_iter().map(widened).collect(), Mat::from_fn(u.nrows(), n, |i, j| widened(u[(i, j)])))
            };
            return Ok(ops::symmetric::decompose(a, with_vectors).map(wide));
        }
        if !with_vectors {
            let values = a.self_adjoint_eigenvalues(Side::Lower).ok();
            return Ok(values.map(|values| (values.into_iter().map(widened).collect(), Mat::zeros(0, 0))));
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
    if !with_vectors {
        return Ok(a.eigenvalues().ok().map(|values| (values, Mat::zeros(0, 0))));
    }
    let Ok(eigen) = a.eigen() else { return Ok(None) };
    let values: Vec<Complex64> = (0..n).map(|i| eigen.S().column_vector()[i]).collect();
    Ok(Some(unit_columns(values, &eigen.U().to_owned())))
}

/// Decomposes a complex matrix. The eigenvalues of a Hermitian one ascend, and are real.
fn eigen_complex(a: &Mat<Complex64>) -> Flow<Eigen> {
    check_finite(a)?;
    let n = a.nrows();
    if is_hermitian(a) {
        let Ok(eigen) = a.self_adjoint_eigen(Side::Lower) else { return Ok(None) };
        let values = (0..n).map(|i| Complex64::new(eigen.S().column_vector()[i].re, 0.0)).collect();
        // The last element of each vector is made real and positive.
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

/// Scales the vectors to unit length, with the largest element of each real.
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

/// Makes each column's last element positive, since eigenvectors are only determined up to their sign.
fn normal_signs(vectors: &Mat<f64>) -> Mat<f64> {
    let n = vectors.nrows();
    Mat::from_fn(n, vectors.ncols(), |i, j| if vectors[(n - 1, j)] < 0.0 { -vectors[(i, j)] } else { vectors[(i, j)] })
}

/// Returns the eigenvalues of a nonempty square matrix. A finite matrix without imaginary parts is treated as real.
///
/// # Errors
/// Those of `eig`.
pub fn eigenvalues_of(a: &Mat<Complex64>) -> Flow<Vec<Complex64>> {
    let n = a.nrows();
    let real = (0..n).all(|j| (0..n).all(|i| a[(i, j)].im == 0.0));
    let found = if real { eigen(&Mat::from_fn(n, n, |i, j| a[(i, j)].re), false) } else { eigen_complex(a) };
    match found? {
        Some((values, _)) => Ok(values),
        None => fail!("eig: no convergence"),
    }
}

/// Returns the eigenvalues of a square matrix as a column.
///
/// # Errors
/// Those of `eig`.
pub fn eigenvalues(interp: &mut Interp, a: &Value) -> Flow<Value> {
    match eig(interp, std::slice::from_ref(a), 1)? {
        Outcome::Values(values) => Ok(values.into_iter().next().unwrap_or_else(Value::empty)),
        _ => fail!("eig: no eigenvalues"),
    }
}
