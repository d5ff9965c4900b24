//! Polynomials, interpolation, numerical integrals, convolution and filters.

use super::integrals::{cumtrapz, trapz};
use crate::builtins::args::{has_word, number};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::complex_in_class;
use crate::value::blocks::BLOCK;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use faer::Mat;
use num_complex::Complex64;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// The family.
pub static ROWS: &[Builtin] = &[
    row(
        "polyfit",
        3,
        3,
        3,
        "[p, s, mu] = polyfit (x, y, n)",
        "The polynomial of degree n that fits best by least squares.",
        super::fits::polyfit,
    ),
    row(
        "polyval",
        2,
        4,
        2,
        "[y, delta] = polyval (p, x, s, mu)",
        "A polynomial's values, and how far off they may be after polyfit.",
        super::fits::polyval,
    ),
    row(
        "polyder",
        1,
        2,
        2,
        "[q, d] = polyder (a, b)",
        "The derivative of a polynomial, or of the product or quotient of two.",
        polyder,
    ),
    row("polyint", 1, 2, 1, "polyint (p, k)", "A polynomial's integral.", polyint),
    row("roots", 1, 1, 1, "roots (p)", "A polynomial's roots, as eigenvalues of its companion matrix.", roots),
    row("poly", 1, 1, 1, "poly (r)", "The polynomial with these roots.", poly),
    row("conv", 2, 3, 1, "conv (a, b, shape)", "The convolution of two vectors.", conv),
    row("deconv", 2, 2, 2, "[q, r] = deconv (y, a)", "The division of polynomials.", deconv),
    row(
        "filter",
        3,
        5,
        2,
        "[y, sf] = filter (b, a, x, si, dim)",
        "A rational digital filter, along a dimension (the first that is not 1), with its first and last state.",
        filter,
    ),
    row("trapz", 1, 3, 1, "trapz (x, y, dim)", "The integral by the trapezoidal rule.", trapz),
    row("cumtrapz", 1, 3, 1, "cumtrapz (x, y, dim)", "The running integral by the trapezoidal rule.", cumtrapz),
    row(
        "interp1",
        2,
        7,
        1,
        "interp1 (x, y, xi, method, extrap, side)",
        "Values between samples: linear, nearest, previous, next, pchip, cubic, spline; of columns, too.",
        super::interpolation::interp1,
    ),
];

/// Whether one of these is single, which makes the result single.
pub(super) fn any_single(tensors: &[&Tensor]) -> bool {
    tensors.iter().any(|t| matches!(*t.data, Data::F32(_) | Data::C32(_)))
}

/// Returns doubles, or singles if an operand was single.
pub(super) fn reals_as(dims: Dims, data: Vec<f64>, single: bool) -> Value {
    let data = if single { Data::F32(data.iter().map(|&x| x as f32).collect()) } else { Data::F64(data) };
    Value::tensor(Tensor::new(dims, data))
}

/// Returns complex numbers, as singles if an operand was single; they are real if there are no imaginary parts.
pub(super) fn complexes_as(dims: Dims, data: Vec<Complex64>, single: bool) -> Value {
    let class = if single { Class::Single } else { Class::Double };
    Value::tensor(Tensor::new(dims, complex_in_class(class, data)))
}

/// Complex numbers from their parts.
pub(super) fn joined(re: Vec<f64>, im: Vec<f64>) -> Vec<Complex64> {
    re.into_iter().zip(im).map(|(re, im)| Complex64::new(re, im)).collect()
}

/// Reads the coefficients of a polynomial, and returns whether they are single.
fn coefficients(env: &Env, who: &str, value: &Value) -> Flow<(Vec<Complex64>, bool)> {
    let host = env.host(value)?;
    if !host.dims.is_vector() && !host.is_empty() {
        return fail!("{who}: argument must be a vector");
    }
    Ok(((0..host.len()).map(|i| host.data.c64_at(i)).collect(), any_single(&[&host])))
}

/// Returns coefficients as a row, which is real if there are no imaginary parts.
pub(super) fn polynomial(p: Vec<Complex64>, single: bool) -> Value {
    complexes_as(Dims::new(&[1, p.len()]), p, single)
}

fn polyder(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, mut single) = coefficients(&interp.env, "polyder", &args[0])?;
    let b = args.get(1).map(|b| coefficients(&interp.env, "polyder", b)).transpose()?;
    if a.is_empty() || b.as_ref().is_some_and(|(b, _)| b.is_empty()) {
        return fail!("polyder: argument must be a vector");
    }
    let Some((b, narrow)) = b else { return Ok(polynomial(derivative(&a), single).into()) };
    single |= narrow;
    if nargout < 2 {
        return Ok(polynomial(derivative(&times(&a, &b)), single).into());
    }
    // This is (a' b - a b') / b^2, divided by the leading coefficient of the denominator.
    let (first, second) = (times(&derivative(&a), &b), times(&a, &derivative(&b)));
    let n = first.len().max(second.len());
    let at = |p: &[Complex64], i: usize| (i + p.len()).checked_sub(n).map_or(ZERO, |i| p[i]);
    let over = without_leading_zeros((0..n).map(|i| at(&first, i) - at(&second, i)).collect());
    let under = without_leading_zeros(times(&b, &b));
    let by = under.first().copied().filter(|x| *x != ZERO).unwrap_or(Complex64::ONE);
    let scaled = |p: Vec<Complex64>| {
        let over = |x: Complex64| if by.im == 0.0 { x / by.re } else { x / by };
        polynomial(p.into_iter().map(over).collect(), single)
    };
    Ok(vec![scaled(over), scaled(under)].into())
}

const ZERO: Complex64 = Complex64::ZERO;

/// Returns the coefficients of a product: the full convolution. Those of real polynomials are real, even beside
/// infinities.
fn times(a: &[Complex64], b: &[Complex64]) -> Vec<Complex64> {
    let mut out = vec![ZERO; (a.len() + b.len()).saturating_sub(1)];
    let is_real = a.iter().chain(b).all(|z| z.im == 0.0);
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += if is_real { Complex64::from(x.re * y.re) } else { x * y };
        }
    }
    out
}

fn without_leading_zeros(mut p: Vec<Complex64>) -> Vec<Complex64> {
    let leading = p.iter().take_while(|c| **c == ZERO).count().min(p.len().saturating_sub(1));
    p.drain(..leading);
    p
}

fn derivative(p: &[Complex64]) -> Vec<Complex64> {
    let n = p.len();
    let times = p.iter().take(n.saturating_sub(1)).enumerate().map(|(i, c)| c * (n - 1 - i) as f64);
    let out = without_leading_zeros(times.collect());
    if out.is_empty() { vec![ZERO] } else { out }
}

fn polyint(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (p, single) = coefficients(&interp.env, "polyint", &args[0])?;
    let k = args.get(1).map_or(Ok(0.0), |v| number(&interp.env, "polyint", v))?;
    let n = p.len();
    let mut out: Vec<Complex64> = p.iter().enumerate().map(|(i, c)| c / (n - i) as f64).collect();
    out.push(k.into());
    Ok(polynomial(out, single).into())
}

fn roots(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let host = interp.env.host(&args[0])?;
    if !host.dims.is_vector() && host.len() > 1 {
        return fail!("roots: argument must be a vector");
    }
    let real = !host.data.is_complex();
    let p: Vec<Complex64> = (0..host.len()).map(|i| host.data.c64_at(i)).collect();
    if p.iter().any(|c| !c.is_finite()) {
        return fail!("roots: inputs must not contain Inf or NaN");
    }
    let zero = Complex64::new(0.0, 0.0);
    // Relative to the largest coefficient, the smallest ones may be negligible.
    let largest = p.iter().map(|c| c.norm()).fold(0.0, f64::max);
    let counts = |c: &Complex64| *c != zero && *c / largest != zero;
    let first = p.iter().position(counts);
    let last = p.iter().rposition(counts);
    let (Some(first), Some(last)) = (first, last) else { return Ok(Value::empty().into()) };
    let zeros = p.len() - 1 - last;
    let p = &p[first..=last];
    let n = p.len() - 1;
    let mut found: Vec<Complex64> = Vec::new();
    if n > 0 {
        interp.env.check_host(&[n, n], if real { size_of::<f64>() } else { size_of::<Complex64>() })?;
        let companion = Mat::from_fn(n, n, |i, j| match i {
            0 if real => Complex64::new(-p[j + 1].re / p[0].re, 0.0),
            0 => -(p[j + 1] / largest) / (p[0] / largest),
            _ if i == j + 1 => Complex64::new(1.0, 0.0),
            _ => zero,
        });
        found = crate::builtins::linear::eigen::eigenvalues_of(&companion)?;
    }
    found.extend(std::iter::repeat_n(Complex64::new(0.0, 0.0), zeros));
    Ok(Value::tensor(Tensor::new(Dims::new(&[found.len(), 1]), Data::C64(found))).into())
}

/// Returns the polynomial that has these roots, or the characteristic polynomial of a square matrix. It is real if
/// complex roots come in pairs.
fn poly(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let dims = args[0].dims();
    let square = dims.len() == 2 && dims.rows() == dims.columns() && dims.rows() > 1;
    if !square && !dims.is_vector() && !args[0].is_empty() {
        return fail!("poly: input must be numeric, 2-D, and a square matrix or a vector");
    }
    let roots = if square { crate::builtins::linear::eigen::eigenvalues(interp, &args[0])? } else { args[0].clone() };
    let roots = interp.env.host(&roots)?;
    let roots: Vec<Complex64> = (0..roots.len()).map(|i| roots.data.c64_at(i)).collect();
    let p = roots.iter().fold(vec![Complex64::new(1.0, 0.0)], |p, r| {
        let mut out = p.clone();
        out.push(Complex64::new(0.0, 0.0));
        for (i, c) in p.iter().enumerate() {
            // A real root multiplies each part separately, since Inf times a zero imaginary part would be NaN.
            out[i + 1] -= if r.im == 0.0 { c * r.re } else { c * r };
        }
        out
    });
    let halves = |sign: f64| {
        let mut half: Vec<(f64, f64)> =
            roots.iter().filter(|z| z.im * sign > 0.0).map(|z| (z.re, z.im.abs())).collect();
        half.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        half
    };
    if halves(1.0) == halves(-1.0) {
        return Ok(Value::row(p.iter().map(|z| z.re).collect()).into());
    }
    Ok(Value::tensor(Tensor::new(Dims::new(&[1, p.len()]), Data::C64(p))).into())
}

fn conv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (a, b) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    // An array with an extent of 1 counts as a vector, even if it is empty.
    let is_vector = |t: &Tensor| t.dims.len() == 2 && t.dims.contains(&1);
    if (a.is_empty() || b.is_empty()) && is_vector(&a) && is_vector(&b) {
        return Ok(Value::empty().into());
    }
    if a.is_empty() || b.is_empty() || !a.dims.is_vector() || !b.dims.is_vector() {
        return fail!("conv: both arguments A and B must be vectors");
    }
    if let Some(shape) = args.get(2)
        && !["full", "same", "valid"].iter().any(|word| shape.as_text().as_deref() == Some(word))
    {
        return fail!("conv: SHAPE argument must be \"full\", \"same\", or \"valid\"");
    }
    let (m, n) = (a.len(), b.len());
    let row = |t: &Tensor| t.dims.rows() == 1;
    // The part of the product, and whether it is a row.
    let (part, flat) = if has_word(&args[2..], "same") {
        (n / 2..n / 2 + m, row(&a))
    } else if has_word(&args[2..], "valid") {
        (if m < n { 0..0 } else { n - 1..m }, row(&a))
    } else {
        (0..m + n - 1, if m > n { row(&a) } else { row(&b) })
    };
    let dims = if flat { Dims::new(&[1, part.len()]) } else { Dims::new(&[part.len(), 1]) };
    let (env, single) = (&interp.env, any_single(&[&a, &b]));
    if !a.data.is_complex() && !b.data.is_complex() {
        let full = product(env, &a.data.to_f64(), &b.data.to_f64())?;
        return Ok(reals_as(dims, full[part].to_vec(), single).into());
    }
    let all = |t: &Tensor| (0..t.len()).map(|i| t.data.c64_at(i)).collect::<Vec<_>>();
    let full = product(env, &all(&a), &all(&b))?;
    Ok(complexes_as(dims, full[part].to_vec(), single).into())
}

/// The number of multiplications between two checks for an interrupt.
const OPERATIONS_BETWEEN_CHECKS: usize = 1 << 22;

/// Returns the coefficients of the product of two polynomials with coefficients.
fn product<T: Copy + Default + Mul<Output = T> + AddAssign>(env: &Env, a: &[T], b: &[T]) -> Flow<Vec<T>> {
    let mut out = vec![T::default(); a.len() + b.len() - 1];
    // The parts of both polynomials are so long that their products stay in a core's cache.
    let step = OPERATIONS_BETWEEN_CHECKS / BLOCK;
    for (block, factors) in a.chunks(step).enumerate() {
        for (part, with) in b.chunks(BLOCK).enumerate() {
            env.check_halt()?;
            for (i, &x) in factors.iter().enumerate() {
                let from = block * step + i + part * BLOCK;
                out[from..from + with.len()].iter_mut().zip(with).for_each(|(sum, &y)| *sum += x * y);
            }
        }
    }
    Ok(out)
}

fn deconv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (y, a) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let is_vector = |t: &Tensor| (t.dims.is_vector() || t.dims.is_scalar()) && !t.is_empty();
    if !is_vector(&y) || !is_vector(&a) {
        return fail!("deconv: Y and A must be vectors");
    }
    if a.data.c64_at(0) == Complex64::ZERO {
        return fail!("deconv: divisor cannot be zero");
    }
    if y.len() < a.len() {
        return Ok(vec![Value::Num(0.0), Value::Tensor(y)].into());
    }
    let single = any_single(&[&y, &a]);
    // The remainder and the quotient have the dividend's orientation.
    let along = |n: usize| if y.dims.rows() == 1 { Dims::new(&[1, n]) } else { Dims::new(&[n, 1]) };
    if y.data.is_complex() || a.data.is_complex() {
        let complexes = |t: &Tensor| (0..t.len()).map(|i| t.data.c64_at(i)).collect::<Vec<_>>();
        let (q, rest) = divided(&interp.env, complexes(&y), &complexes(&a))?;
        return Ok(vec![complexes_as(along(q.len()), q, single), complexes_as(along(rest.len()), rest, single)].into());
    }
    let (q, rest) = divided(&interp.env, y.data.to_f64(), &a.data.to_f64())?;
    Ok(vec![reals_as(along(q.len()), q, single), reals_as(along(rest.len()), rest, single)].into())
}

/// Returns the quotient of two polynomials, and the remainder, which is as long as the dividend.
fn divided<T>(env: &Env, mut rest: Vec<T>, by: &[T]) -> Flow<(Vec<T>, Vec<T>)>
where
    T: Copy + std::ops::Div<Output = T> + std::ops::Mul<Output = T> + std::ops::SubAssign,
{
    let step = (OPERATIONS_BETWEEN_CHECKS / by.len()).max(1);
    let mut quotient = Vec::with_capacity(rest.len() + 1 - by.len());
    for i in 0..=rest.len() - by.len() {
        if i % step == 0 {
            env.check_halt()?;
        }
        let c = rest[i] / by[0];
        rest[i..].iter_mut().zip(by).for_each(|(rest, x)| *rest -= c * *x);
        quotient.push(c);
    }
    Ok((quotient, rest))
}

fn filter(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (b, _) = coefficients(&interp.env, "filter", &args[0])?;
    let (a, _) = coefficients(&interp.env, "filter", &args[1])?;
    let x = interp.env.host(&args[2])?;
    if a.first().is_none_or(|lead| *lead == ZERO) {
        return fail!("filter: a_vector[0] must be nonzero");
    }
    let order = a.len().max(b.len());
    let d = match args.get(4) {
        Some(dim) => crate::builtins::args::dim(&interp.env, dim, |_| "filter: DIM must be a valid dimension".into())?,
        None => x.dims.first_non_singleton(),
    };
    let lanes = crate::builtins::reduce::lanes::Lanes::new(&x.dims, d);
    let given = match args.get(3).filter(|v| !v.is_empty()) {
        Some(value) => Some(interp.env.host(value)?),
        None => None,
    };
    // There is one column of states for each vector. For a single vector it may be a row.
    let fits = |given: &Tensor| {
        given.len() == (order - 1) * lanes.count && (lanes.count == 1 || given.dims.rows() == order - 1)
    };
    if given.as_ref().is_some_and(|given| !fits(given)) {
        return fail!("filter: first dimension of SI must be of length max (length (a), length (b)) - 1");
    }
    let single = args[..3].iter().any(|v| v.class() == Class::Single);
    let (dims, rest) = (x.dims.clone(), Dims::new(&[order - 1, lanes.count]));
    let given = given.as_deref();
    if b.iter().chain(&a).any(|c| c.im != 0.0) {
        let given = given.map(|g| |i: usize| g.data.c64_at(i));
        let (out, left) = filtered(&interp.env, &b, &a, &lanes, |i| x.data.c64_at(i), given)?;
        return Ok(vec![complexes_as(dims, out, single), complexes_as(rest, left, single)].into());
    }
    // With real coefficients the parts do not mix, even beside infinities.
    let [b, a] = [&b, &a].map(|v| v.iter().map(|c| c.re).collect::<Vec<_>>());
    let part = |z: fn(Complex64) -> f64| {
        let given = given.map(|g| |i: usize| z(g.data.c64_at(i)));
        filtered(&interp.env, &b, &a, &lanes, |i| z(x.data.c64_at(i)), given)
    };
    let real = part(|z| z.re)?;
    if !x.data.is_complex() && given.is_none_or(|given| !given.data.is_complex()) {
        return Ok(vec![reals_as(dims, real.0, single), reals_as(rest, real.1, single)].into());
    }
    let imaginary = part(|z| z.im)?;
    let out = complexes_as(dims, joined(real.0, imaginary.0), single);
    Ok(vec![out, complexes_as(rest, joined(real.1, imaginary.1), single)].into())
}

/// Filters along lanes in the transposed direct form II: returns the output, and the final states. `given` holds the
/// initial states.
fn filtered<T: Copy + Default + Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T>>(
    env: &Env,
    b: &[T],
    a: &[T],
    lanes: &crate::builtins::reduce::lanes::Lanes,
    input: impl Fn(usize) -> T,
    given: Option<impl Fn(usize) -> T>,
) -> Flow<(Vec<T>, Vec<T>)> {
    let order = a.len().max(b.len());
    let over = |v: &[T]| (0..order).map(|i| v.get(i).map_or(T::default(), |c| *c / a[0])).collect::<Vec<T>>();
    let (b, a) = (over(b), over(a));
    let mut out = vec![T::default(); lanes.len * lanes.count];
    let step = (OPERATIONS_BETWEEN_CHECKS / order).max(1);
    let mut left = Vec::with_capacity((order - 1) * lanes.count);
    for lane in 0..lanes.count {
        let begin = (0..order - 1).map(|i| given.as_ref().map_or(T::default(), |g| g(lane * (order - 1) + i)));
        let mut state: Vec<T> = begin.chain([T::default()]).collect();
        for (k, at) in lanes.positions(lane).enumerate() {
            if k % step == 0 {
                env.check_halt()?;
            }
            let x = input(at);
            let y = b[0] * x + state[0];
            for i in 1..order {
                state[i - 1] = state[i] + b[i] * x - a[i] * y;
            }
            out[at] = y;
        }
        left.extend(&state[..order - 1]);
    }
    Ok((out, left))
}
