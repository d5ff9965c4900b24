//! The Kronecker and cross products, and the exponential of a matrix.

use super::factors::{Real, complex, complex_value, is_finite, norm_1, real, square, value_of};
use crate::builtins::Outcome;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops;
use crate::ops::linear::Number;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use faer::Mat;
use faer::linalg::solvers::Solve;
use num_complex::Complex64;

/// Computes the exponential by Higham, "The scaling and squaring method for the matrix exponential revisited" (2005),
/// always with the approximant of degree 13.
fn exponential(a: &Mat<f64>) -> Mat<f64> {
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
    let (n, norm) = (a.nrows(), norm_1(a));
    if !norm.is_finite() || !is_finite(a) {
        return Mat::from_fn(n, n, |_, _| f64::NAN);
    }
    let squarings = (norm / 5.371920351148152).log2().ceil().clamp(0.0, 1000.0) as i32;
    let scale = 2.0f64.powi(-squarings);
    let x = Mat::from_fn(n, n, |i, j| a[(i, j)] * scale);
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
    e
}

pub(super) fn expm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Some((a, class)) = complex(&interp.env, &args[0])? {
        let n = a.nrows();
        if n != a.ncols() {
            return fail!("expm: A must be a square matrix");
        }
        if let Some(e) = of_diagonal(&a, Complex64::exp) {
            return Ok(complex_value(&e, class).diagonal().into());
        }
        interp.env.check_host(&[2 * n, 2 * n], size_of::<f64>())?;
        // X + iY multiplies like [X -Y; Y X].
        let e = exponential(&Mat::from_fn(2 * n, 2 * n, |i, j| match (i < n, j < n) {
            (true, true) => a[(i, j)].re,
            (true, false) => -a[(i, j - n)].im,
            (false, true) => a[(i - n, j)].im,
            (false, false) => a[(i - n, j - n)].re,
        }));
        let e = Mat::from_fn(n, n, |i, j| match e[(i, j)] {
            re if re.is_nan() && !is_finite(&a) => Complex64::new(re, 0.0),
            re => Complex64::new(re, e[(i + n, j)]),
        });
        return Ok(complex_value(&e, class).into());
    }
    let a = square(&interp.env, "expm", &args[0])?;
    match of_diagonal(&a.matrix, f64::exp) {
        Some(e) => Ok(value_of(&e, a.single).diagonal().into()),
        None => Ok(value_of(&exponential(&a.matrix), a.single).into()),
    }
}

/// Applies a function to the diagonal of a diagonal matrix. This is exact, and defined for infinite numbers.
fn of_diagonal<T: Number>(a: &Mat<T>, f: impl Fn(T) -> T) -> Option<Mat<T>> {
    let n = a.nrows();
    let is_diagonal = (0..n).all(|j| (0..n).all(|i| i == j || a[(i, j)].size() == 0.0));
    is_diagonal.then(|| Mat::from_fn(n, n, |i, j| if i == j { f(a[(i, j)]) } else { T::real(0.0) }))
}

/// Multiplies two numbers, each of which may be known to be real; a real factor scales both parts.
fn times(real: (bool, bool), a: Complex64, b: Complex64) -> Complex64 {
    match real {
        (true, _) => b * a.re,
        (_, true) => a * b.re,
        _ => ops::complex::mul(a, b),
    }
}

pub(super) fn kron(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    // This is checked before the factors are gathered, since they may be large.
    check_kron(&interp.env, args)?;
    interp.env.host_all(args)?;
    if args.iter().any(Value::is_complex) {
        let (mut class, mut product_is_complex) = (Class::Double, false);
        let mut product = Mat::from_fn(1, 1, |_, _| Complex64::new(1.0, 0.0));
        for arg in args {
            let host = interp.env.host(arg)?;
            class = if host.data.class() == Class::Single { Class::Single } else { class };
            let real = (!product_is_complex, !host.data.is_complex());
            product_is_complex |= host.data.is_complex();
            let (p, q) = (host.dims.rows(), host.dims.columns());
            product = Mat::from_fn(product.nrows() * p, product.ncols() * q, |i, j| {
                times(real, product[(i / p, j / q)], host.data.c64_at(j % q * p + i % p))
            });
        }
        return Ok(complex_value(&product, class).into());
    }
    let mut product = real(&interp.env, "kron", &args[0])?;
    for arg in &args[1..] {
        let b = real(&interp.env, "kron", arg)?;
        let matrix = real_kron(&product.matrix, &b.matrix);
        product = Real { matrix, single: product.single || b.single };
    }
    Ok(value_of(&product.matrix, product.single).into())
}

/// Returns the Kronecker product of two matrices, column by column.
fn real_kron(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    let (p, q) = (b.nrows(), b.ncols());
    let mut out = Mat::zeros(a.nrows() * p, a.ncols() * q);
    if p == 0 {
        return out;
    }
    for j in 0..out.ncols() {
        let (factors, column) = (a.col_as_slice(j / q), b.col_as_slice(j % q));
        for (part, x) in out.col_as_slice_mut(j).chunks_exact_mut(p).zip(factors) {
            part.iter_mut().zip(column).for_each(|(out, y)| *out = x * y);
        }
    }
    out
}

/// Returns an error if a product does not fit into memory, before any is computed. It checks the last product, both as
/// computed and as a value, and the intermediate ones, which are smaller unless the last one has no elements.
fn check_kron(env: &Env, args: &[Value]) -> Flow<()> {
    let width = if args.iter().any(Value::is_complex) { 2 * size_of::<Complex64>() } else { 2 * size_of::<f64>() };
    let (mut rows, mut columns) = (1usize, 1usize);
    for arg in args {
        let dims = arg.dims();
        if dims.len() != 2 {
            return fail!("kron: argument must be a 2-D matrix");
        }
        (rows, columns) = (rows.saturating_mul(dims.rows()), columns.saturating_mul(dims.columns()));
        env.check_host(&[rows, columns], width)?;
    }
    Ok(())
}

pub(super) fn cross(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (x, y) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let dims = x.dims.clone();
    let vectors = x.len() == 3 && y.len() == 3 && x.dims.is_vector() && y.dims.is_vector();
    if x.dims != y.dims && !vectors {
        return fail!("cross: X and Y must have the same dimensions");
    }
    let d = match args.get(2) {
        Some(dim) => crate::builtins::args::number(&interp.env, "cross", dim)? as usize,
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
    let single = matches!(*x.data, Data::F32(_) | Data::C32(_)) || matches!(*y.data, Data::F32(_) | Data::C32(_));
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
