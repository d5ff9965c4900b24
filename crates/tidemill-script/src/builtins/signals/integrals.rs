//! Integrals of samples by the trapezoidal rule.

use super::polynomials::reals_as;
use crate::builtins::Outcome;
use crate::builtins::reduce::summing::Running;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;

/// The integrand.
struct Integrand {
    /// The samples.
    y: std::sync::Arc<Tensor>,
    /// The places of the samples; `None` if they are 1 apart.
    x: Option<Vec<f64>>,
    /// The dimension.
    d: usize,
    single: bool,
}

fn integrand(env: &Env, name: &str, args: &[Value]) -> Flow<Integrand> {
    env.host_all(args)?;
    // A number behind samples is the dimension: `trapz (y, 2)`.
    let (x, y, dim) = match args {
        [y] => (None, y, None),
        [y, dim] if dim.len() == 1 && y.len() != 1 => (None, y, Some(dim)),
        [x, y, rest @ ..] => (Some(env.host(x)?).filter(|x| !x.is_empty()), y, rest.first()),
        [] => return fail!("Invalid call to {name}"),
    };
    let y = env.host(y)?;
    let d = match dim {
        Some(dim) => crate::builtins::args::dim(env, dim, |_| format!("{name}: DIM must be a valid dimension"))?,
        None => y.dims.first_non_singleton(),
    };
    // A single number is the distance between all samples.
    let x = x.map(|x| match x.len() {
        1 => (0..y.dims.extent(d)).map(|i| i as f64 * x.data.f64_at(0)).collect(),
        _ => x.data.to_f64(),
    });
    if x.as_ref().is_some_and(|x| x.len() != y.dims.extent(d) && x.len() != y.len()) {
        return fail!("{name}: length of X and length of Y along DIM must match");
    }
    let single = args.iter().take(2).any(|v| v.class() == Class::Single);
    Ok(Integrand { y, x, d, single })
}

/// Applies a linear function to real samples, or to each part of complex ones.
fn by_parts(given: &Integrand, dims: Dims, of: impl Fn(&[f64]) -> Vec<f64>) -> Value {
    let parts =
        |part: fn(Complex64) -> f64| (0..given.y.len()).map(|i| part(given.y.data.c64_at(i))).collect::<Vec<_>>();
    let real = of(&parts(|z| z.re));
    if !given.y.data.is_complex() {
        return reals_as(dims, real, given.single);
    }
    let imaginary = of(&parts(|z| z.im));
    let joined = real.into_iter().zip(imaginary).map(|(re, im)| Complex64::new(re, im)).collect();
    let class = if given.single { Class::Single } else { Class::Double };
    Value::tensor(Tensor::new(dims, crate::ops::complex_in_class(class, joined)))
}

/// Returns the running integrals along a dimension.
fn integrals(y: &[f64], dims: &Dims, x: Option<&[f64]>, d: usize) -> Vec<f64> {
    let lanes = crate::builtins::reduce::lanes::Lanes::new(dims, d);
    let mut out = vec![0.0; y.len()];
    for lane in 0..y.len().checked_div(dims.extent(d)).unwrap_or(0) {
        let mut sum = Running::default();
        let mut before: Option<usize> = None;
        for (i, at) in lanes.positions(lane).enumerate() {
            if let Some(last) = before {
                let step = match x {
                    Some(x) if x.len() == y.len() => x[at] - x[last],
                    Some(x) => x[i] - x[i - 1],
                    None => 1.0,
                };
                sum.add(step * (y[at] + y[last]) / 2.0);
            }
            out[at] = sum.value();
            before = Some(at);
        }
    }
    out
}

pub(super) fn trapz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let given = integrand(&interp.env, "trapz", args)?;
    let shape = &given.y.dims;
    let lanes = crate::builtins::reduce::lanes::Lanes::new(shape, given.d);
    let dims = if shape[..] == [0, 0] { Dims::scalar() } else { shape.with(given.d, 1) };
    let last = |y: &[f64]| {
        let all = integrals(y, shape, given.x.as_deref(), given.d);
        let end = |lane| if all.is_empty() { 0.0 } else { lanes.positions(lane).next_back().map_or(0.0, |at| all[at]) };
        (0..dims.elements()).map(end).collect()
    };
    Ok(by_parts(&given, dims.clone(), last).into())
}

pub(super) fn cumtrapz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let given = integrand(&interp.env, "cumtrapz", args)?;
    let shape = &given.y.dims;
    Ok(by_parts(&given, shape.clone(), |y| integrals(y, shape, given.x.as_deref(), given.d)).into())
}
