//! Norms of vectors and matrices.
//!
//! In: an array and the kind of norm. Out: numbers. Arrays on the runtime are reduced there, but for norms of matrices
//! that need singular values.

use super::lanes::Lanes;
use super::reductions::{hosted, on_runtime, type_name};
use super::summing::total;
use crate::builtins::Outcome;
use crate::builtins::args::{self, is_word};
use crate::builtins::linear::power_norm::power_norm;
use crate::builtins::linear::singular::{real_values, values};
use crate::builtins::record::record;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::lazy::Along;
use crate::value::{Class, Data, Lazy, Tensor, Value};
use crate::vm::Interp;
use faer::Mat;
use tidemill::Array;

/// The kinds of norms.
#[derive(Clone, Copy, PartialEq)]
enum Norm {
    P(f64),
    Frobenius,
}

fn norm_kind(env: &Env, value: Option<&Value>) -> Flow<Norm> {
    let Some(value) = value.filter(|v| v.is_char() || !v.is_empty()) else { return Ok(Norm::P(2.0)) };
    if let Some(text) = value.as_text() {
        return Ok(match text.as_str() {
            "inf" | "Inf" => Norm::P(f64::INFINITY),
            "-inf" | "-Inf" => Norm::P(f64::NEG_INFINITY),
            "fro" => Norm::Frobenius,
            other => return fail!("norm: unrecognized option: {other}"),
        });
    }
    if value.len() != 1 || !value.is_numeric() && value.class() != Class::Logical {
        return fail!("norm: P must be a string or a scalar");
    }
    Ok(Norm::P(args::number(env, "norm", value)?))
}

/// Returns a value computed from all of these elements, or along dimensions; NaN if one of the elements is NaN.
fn nan_or(array: &Array, dims: &[usize], computed: Array) -> Array {
    array.isnan().any(Along(dims)).select(f64::NAN, computed)
}

/// Returns the greatest of the sums along a dimension.
fn greatest(sums: &Array) -> Array {
    nan_or(sums, &[0, 1], sums.max_over(..))
}

pub fn norm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    let wrong = || {
        let matrix = if x.len() == 1 { "scalar" } else { "matrix" };
        match x {
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
                fail!("xnorm: wrong type argument '{}'", type_name(x))
            }
            _ if x.is_char() => fail!("norm: X must be a numeric matrix"),
            _ if x.class() == Class::Logical => fail!("xnorm: wrong type argument 'bool matrix'"),
            _ => fail!("xnorm: wrong type argument '{} {matrix}'", x.class_name()),
        }
    };
    if !x.class().is_float() {
        return wrong();
    }
    if x.dims().len() > 2 {
        return fail!("norm: only valid for 2-D objects");
    }
    let mut words: Vec<Value> = args[1..].to_vec();
    let along = ["rows", "columns", "cols"].iter().position(|w| {
        let at = words.iter().position(|v| is_word(v, w));
        at.map(|i| words.remove(i)).is_some()
    });
    let kind = norm_kind(env, words.first())?;
    let p = match kind {
        Norm::P(p) => p,
        Norm::Frobenius => 2.0,
    };
    if let Some(along) = along {
        return along_dimension(env, x, p, if along == 0 { 1 } else { 0 });
    }
    let vector = x.dims().is_vector();
    if let Some(l) = on_runtime(x) {
        let class = l.class;
        let recorded = if vector || kind == Norm::Frobenius {
            recorded_norm(&l.array, p, &[0, 1])
        } else if p == 1.0 {
            Some(greatest(&l.array.abs().sum(0)))
        } else if p == f64::INFINITY {
            Some(greatest(&l.array.abs().sum(1)))
        } else {
            None
        };
        if let Some(array) = recorded {
            return Ok(record(array, class, &[x])?.into());
        }
    }
    let host = hosted(env, x)?;
    let result = if host.is_empty() {
        0.0
    } else if (vector || kind == Norm::Frobenius) && p == 2.0 {
        euclidean(&host.data)
    } else if vector {
        let sizes: Vec<f64> = (0..host.len()).map(|i| magnitude(&host.data, i)).collect();
        vector_norm(&sizes, p)
    } else {
        matrix_norm(&host, p)?
    };
    let data = match host.data.class() {
        Class::Single => Data::F32(vec![result as f32]),
        _ => Data::F64(vec![result]),
    };
    Ok(Value::tensor(Tensor::scalar(data)).into())
}

fn magnitude(data: &Data, i: usize) -> f64 {
    match data {
        Data::C64(v) => v[i].norm(),
        Data::C32(v) => v[i].norm() as f64,
        other => other.f64_at(i).abs(),
    }
}

/// Returns the p-norm of these magnitudes.
pub fn vector_norm(sizes: &[f64], p: f64) -> f64 {
    let has_nan = sizes.iter().any(|x| x.is_nan());
    if p == f64::INFINITY {
        return if has_nan { f64::NAN } else { sizes.iter().copied().fold(0.0, f64::max) };
    }
    if p == f64::NEG_INFINITY {
        return if has_nan { f64::NAN } else { sizes.iter().copied().fold(f64::INFINITY, f64::min) };
    }
    if p == 0.0 {
        return sizes.iter().filter(|x| **x != 0.0).count() as f64;
    }
    if p == 1.0 {
        return total(sizes.iter().copied());
    }
    match p > 0.0 {
        _ if has_nan => f64::NAN,
        true => scaled_norm(sizes, p),
        // Here the least magnitude counts most, and a zero decides alone.
        false => {
            let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
            if least == 0.0 || least.is_infinite() {
                return least;
            }
            let sum: f64 = total(sizes.iter().map(|x| libm::pow(x / least, p)));
            least * libm::pow(sum, 1.0 / p)
        }
    }
}

/// Returns the p-norm of magnitudes, scaled by the greatest one if powers could overflow or vanish.
fn scaled_norm(sizes: &[f64], p: f64) -> f64 {
    let greatest = sizes.iter().copied().fold(0.0, f64::max);
    if greatest == 0.0 || greatest.is_infinite() {
        return greatest;
    }
    if p == 2.0 && (1e-140..1e140).contains(&greatest) {
        return total(sizes.iter().map(|x| x * x)).sqrt();
    }
    let power = |x: f64| if p == 2.0 { x * x } else { libm::pow(x, p) };
    let sum = total(sizes.iter().map(|x| power(x / greatest)));
    greatest * if p == 2.0 { sum.sqrt() } else { libm::pow(sum, 1.0 / p) }
}

/// Returns the Euclidean norm of all elements.
fn euclidean(data: &Data) -> f64 {
    let nan = (0..data.len()).any(|i| magnitude(data, i).is_nan());
    let parts = |of: &mut dyn Iterator<Item = f64>| of.map(f64::abs).collect::<Vec<f64>>();
    let sizes = match data {
        _ if nan => return f64::NAN,
        Data::C32(v) => parts(&mut v.iter().flat_map(|z| [z.re as f64, z.im as f64])),
        Data::C64(v) => parts(&mut v.iter().flat_map(|z| [z.re, z.im])),
        other => parts(&mut other.to_f64().into_iter()),
    };
    scaled_norm(&sizes, 2.0)
}

fn recorded_norm(array: &Array, p: f64, dims: &[usize]) -> Option<Array> {
    Some(match p {
        2.0 => array.norm(Along(dims)),
        1.0 => array.abs().sum(Along(dims)),
        // A maximum or minimum alone would skip NaN.
        _ if p == f64::INFINITY => nan_or(array, dims, array.abs().max_over(Along(dims))),
        _ if p == f64::NEG_INFINITY => nan_or(array, dims, array.abs().min_over(Along(dims))),
        _ => return None,
    })
}

/// Converts an array of integers to doubles, since a norm is no integer.
fn as_floats(x: &Lazy) -> Array {
    if x.class.is_float() { x.array.clone() } else { x.array.cast::<f64>() }
}

fn matrix_norm(t: &Tensor, p: f64) -> Flow<f64> {
    let (rows, columns) = (t.dims.rows(), t.dims.columns());
    let at = |r: usize, c: usize| magnitude(&t.data, c * rows + r);
    let greatest = |sums: Vec<f64>| {
        if sums.iter().any(|s| s.is_nan()) { f64::NAN } else { sums.into_iter().fold(0.0, f64::max) }
    };
    Ok(match p {
        1.0 => greatest((0..columns).map(|c| total((0..rows).map(|r| at(r, c)))).collect()),
        2.0 => {
            if (0..t.len()).any(|i| !magnitude(&t.data, i).is_finite()) {
                let has_nan = (0..t.len()).any(|i| magnitude(&t.data, i).is_nan());
                return Ok(if has_nan { f64::NAN } else { f64::INFINITY });
            }
            let s = match t.data.is_complex() {
                true => values("norm", &Mat::from_fn(rows, columns, |r, c| t.data.c64_at(c * rows + r)))?,
                false => real_values("norm", &Mat::from_fn(rows, columns, |r, c| t.data.f64_at(c * rows + r)))?,
            };
            s.first().copied().unwrap_or(0.0)
        }
        _ if p == f64::INFINITY => greatest((0..rows).map(|r| total((0..columns).map(|c| at(r, c)))).collect()),
        _ if p > 1.0 && (0..t.len()).any(|i| magnitude(&t.data, i).is_nan()) => f64::NAN,
        _ if p > 1.0 => power_norm(t, p),
        _ => return fail!("xnorm: p must be >= 1"),
    })
}

fn along_dimension(env: &Env, x: &Value, p: f64, d: usize) -> Flow<Outcome> {
    if let Some(l) = on_runtime(x)
        && let Some(array) = recorded_norm(&as_floats(l), p, &[d])
    {
        let class = if l.class == Class::Single { Class::Single } else { Class::Double };
        return Ok(record(array, class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let lanes = Lanes::new(&host.dims, d);
    let norms: Vec<f64> = (0..lanes.count)
        .map(|lane| {
            let sizes: Vec<f64> = lanes.positions(lane).map(|i| magnitude(&host.data, i)).collect();
            vector_norm(&sizes, p)
        })
        .collect();
    let data =
        Data::F64(norms).converted(if host.data.class() == Class::Single { Class::Single } else { Class::Double });
    Ok(Value::tensor(Tensor::new(host.dims.with(d, 1), data)).into())
}

pub(super) fn vecnorm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    if !x.is_numeric() {
        return fail!("vecnorm: A must be numeric");
    }
    let p = match norm_kind(env, args.get(1).filter(|p| !p.is_empty()))? {
        Norm::P(p) if p > 0.0 => p,
        _ => return fail!("vecnorm: P must be positive real scalar or Inf"),
    };
    let d = match args.get(2) {
        None => x.dims().first_non_singleton(),
        Some(d) => args::dim(env, d, |_| "vecnorm: DIM must be a positive integer".to_string())?,
    };
    along_dimension(env, x, p, d)
}
