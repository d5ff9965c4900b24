//! Means, medians, modes, variances, quantiles.
//!
//! In: an array, dimensions, weights, flags. Out: floats (medians and modes keep the class). Variances are computed
//! about the mean. Arrays on the runtime stay there, except for modes, weights and quantiles.

use super::field::{Field, Ordered, as_float, float_data, widened};
use super::lanes::{Lanes, joined};
use super::reductions::{Flags, dims_or_all, each_lane, flags, from_zero, hosted, on_runtime};
use super::summing::{total, wide_total};
use crate::builtins::args::{self, Over};
use crate::builtins::numeric::elementwise::call;
use crate::builtins::record::record;
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops;
use crate::syntax::ast::BinaryOp;
use crate::value::lazy::Along;
use crate::value::tensor::each_data;
use crate::value::{Class, Data, Dims, Lazy, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use tidemill::{Array, Nan, ReduceOp};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("mean", 1, 5, 1, "mean (x, dim, outtype, nanflag)", "The mean of elements.", mean),
    row("median", 1, 4, 1, "median (x, dim, nanflag)", "The middle of the sorted elements.", median),
    row("mode", 1, 2, 3, "[m, f, c] = mode (x, dim)", "The most frequent elements, how often, and which.", mode),
    row("var", 1, 4, 2, "[v, m] = var (x, w, dim, nanflag)", "The variance.", |i, a, n| spread(i, "var", a, n)),
    row("std", 1, 4, 2, "[s, m] = std (x, w, dim, nanflag)", "The standard deviation.", |i, a, n| {
        spread(i, "std", a, n)
    }),
    row("rms", 1, 3, 1, "rms (x, dim)", "The root of the mean square.", |i, a, _| mean_square(i, a, true)),
    row("meansq", 1, 3, 1, "meansq (x, dim)", "The mean square.", |i, a, _| mean_square(i, a, false)),
    row("quantile", 1, 4, 1, "quantile (x, p, dim, method)", "Quantiles.", |i, a, _| quantiles(i, "quantile", a)),
    row("prctile", 1, 3, 1, "prctile (x, p, dim)", "Percentiles.", |i, a, _| quantiles(i, "prctile", a)),
    row("iqr", 1, 2, 1, "iqr (x, dim)", "The distance between the quartiles.", iqr),
];

fn check_numeric(name: &str, x: &Value) -> Flow<()> {
    if x.is_numeric() || x.class() == Class::Logical {
        return Ok(());
    }
    fail!("{name}: X must be a numeric vector or matrix")
}

fn stat_flags(env: &Env, name: &str, args: &[Value]) -> Flow<Flags> {
    flags(
        env,
        name,
        args,
        |_| format!("{name}: DIM must be an integer and a valid dimension"),
        |word| format!("{name}: unrecognized type argument '{word}'"),
    )
}

/// Computes the geometric mean (`g`) by logarithms, and the harmonic mean (`h`) by reciprocals.
fn other_mean(interp: &mut Interp, mut args: Vec<Value>, kind: &str) -> Flow<Outcome> {
    let one = Value::Num(1.0);
    let over = |i: &mut Interp, x: &Value| ops::binary(&mut i.env, BinaryOp::Div, &one, x);
    if kind == "g" && !args[0].is_complex() {
        let host = hosted(&interp.env, &args[0])?;
        if (0..host.len()).any(|i| host.data.f64_at(i) < 0.0) {
            return fail!("mean: X must not contain any negative values");
        }
    }
    args[0] = match kind {
        "g" => call(interp, "log", &args[0], 1)?,
        _ => over(interp, &args[0])?,
    };
    let Outcome::Values(mut means) = mean(interp, &args, 1)? else { return fail!("mean: there is no value") };
    let mean = means.remove(0);
    Ok(match kind {
        "g" => call(interp, "exp", &mean, 1)?,
        _ => over(interp, &mean)?,
    }
    .into())
}

fn mean(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    for kind in ["a", "g", "h"] {
        if let Some(at) = args.iter().skip(1).position(|word| args::is_word(word, kind)) {
            let mut args = args.to_vec();
            args.remove(at + 1);
            check_numeric("mean", &args[0])?;
            return if kind == "a" { mean(interp, &args, 1) } else { other_mean(interp, args, kind) };
        }
    }
    let env = &interp.env;
    let x = &args[0];
    check_numeric("mean", x)?;
    let flags = stat_flags(env, "mean", &args[1..])?;
    let dims = dims_or_all(&flags.over, &x.dims());
    if let Some(l) = on_runtime(x) {
        let wide = flags.double && l.class == Class::Single;
        let array = if wide { l.array.cast::<f64>() } else { l.array.clone() };
        let mean =
            if flags.omit_nan { array.nan_mean(Along(&dims)) } else { from_zero(array.mean(Along(&dims)), l, &dims) };
        return Ok(match (flags.native, l.class) {
            (true, class) if class.is_integer() => {
                let dtype = class.dtype().unwrap_or(tidemill::DType::F64);
                record(mean.cast_to(dtype), class, &[x])?
            }
            _ => {
                let single = l.class == Class::Single && !wide;
                record(mean, if single { Class::Single } else { Class::Double }, &[x])?
            }
        }
        .into());
    }
    let host = hosted(env, x)?;
    let class = host.data.class();
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let wide = flags.double.then(|| widened(&t.data));
    let data = float_data!(&*as_float(wide.as_ref().unwrap_or(&t.data)), v => means(v, lanes, flags.omit_nan));
    let data = if flags.native && class.is_integer() { data.converted(class) } else { data };
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

fn means<T: Field>(v: &[T], lanes: Lanes, omit_nan: bool) -> Vec<T> {
    each_lane(v, lanes, |lane| {
        let mut n = 0usize;
        let sum = wide_total(lane.filter(|x| !(omit_nan && x.is_nan())).inspect(|_| n += 1));
        T::narrow(sum.over(n as f64))
    })
}

fn mean_square(interp: &mut Interp, args: &[Value], root: bool) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    let name = if root { "rms" } else { "meansq" };
    check_numeric(name, x)?;
    let flags = stat_flags(env, name, &args[1..])?;
    let dims = dims_or_all(&flags.over, &x.dims());
    if let Some(l) = on_runtime(x) {
        let array = if l.class.is_float() { l.array.square() } else { l.array.cast::<f64>().square() };
        let mean = if flags.omit_nan { array.nan_mean(Along(&dims)) } else { array.mean(Along(&dims)) };
        let class = if l.class == Class::Single { Class::Single } else { Class::Double };
        return Ok(record(if root { mean.sqrt() } else { mean }, class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let data = float_data!(&*as_float(&t.data), v => mean_squares(v, lanes, flags.omit_nan, root));
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

/// Returns the means of squared magnitudes, or their roots.
fn mean_squares<T: Field>(v: &[T], lanes: Lanes, omit_nan: bool, root: bool) -> Vec<T> {
    each_lane(v, lanes, |lane| {
        let mut n = 0usize;
        let kept = lane.filter(|x| !(omit_nan && x.is_nan())).inspect(|_| n += 1);
        let mean = total(kept.map(|x| x.wide().abs_squared())).over(n as f64);
        T::narrow(if root { mean.root() } else { mean })
    })
}

/// Returns the runtime's array with these dimensions joined into the first, and the shape of a reduction's result.
pub fn joined_array(l: &Lazy, over: &[usize]) -> (Array, Vec<usize>) {
    let rank = l.dims.len();
    let mut out = l.dims.to_vec();
    let mut front: Vec<usize> = over.iter().copied().filter(|&d| d < rank).collect();
    front.sort_unstable();
    front.iter().for_each(|&d| out[d] = 1);
    let len: usize = front.iter().map(|&d| l.dims[d]).product();
    let rest: Vec<usize> = (0..rank).filter(|d| !front.contains(d)).collect();
    let after: usize = rest.iter().map(|&d| l.dims[d]).product();
    front.extend(rest);
    (l.array.permute(&front).reshape([len, after]), out)
}

fn median(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_numeric("median", x)?;
    let flags = stat_flags(env, "median", &args[1..])?;
    let dims = dims_or_all(&flags.over, &x.dims());
    if let Some(l) = on_runtime(x)
        && !flags.omit_nan
        && !matches!(l.class, Class::Int64 | Class::Logical)
    {
        let (lanes, out) = joined_array(l, &dims);
        let n = lanes.shape()?.dim(0);
        let sorted = lanes.sort(0).0;
        let at = |k: usize| sorted.slice((k..k + 1, ..));
        let middle = match (n % 2, l.class.dtype()) {
            (1, _) => at(n / 2),
            (_, Some(dtype)) if l.class.is_integer() => {
                ((at(n / 2 - 1).cast::<f64>() + at(n / 2).cast::<f64>()) * 0.5).cast_to(dtype)
            }
            _ => {
                let (a, b) = (at(n / 2 - 1), at(n / 2));
                let mean = (&a + &b) * 0.5;
                // The mean of two equal infinities is that infinity. NaN is sorted last, and makes the result NaN.
                a.eq_to(&b).select(a.eq_to(0.0).select(0.0, &a), &mean)
            }
        };
        let middle = match l.class.is_float() {
            true => at(n - 1).isnan().select(at(n - 1), &middle),
            false => middle,
        };
        return Ok(record(middle.reshape(out), l.class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let class = host.data.class();
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let data = match &*t.data {
        Data::F64(v) => Data::F64(medians(v, lanes, flags.omit_nan, f64::NAN, half)),
        Data::F32(v) => Data::F32(medians(v, lanes, flags.omit_nan, f32::NAN, half)),
        Data::C64(v) => Data::C64(medians(v, lanes, flags.omit_nan, Field::of(f64::NAN), half)),
        Data::C32(v) => Data::C32(medians(v, lanes, flags.omit_nan, Field::of(f64::NAN), half)),
        Data::I64(v) => Data::I64(medians(v, lanes, false, 0, |a, b| rounded_half(a as i128 + b as i128) as i64)),
        Data::U64(v) => Data::U64(medians(v, lanes, false, 0, |a, b| rounded_half(a as i128 + b as i128) as u64)),
        other => {
            let middle = medians(&other.to_f64(), lanes, false, f64::NAN, half);
            Data::F64(middle).converted(class)
        }
    };
    // Integers and truth values have no NaN, so an empty lane gives a double.
    let data = if lanes.len == 0 && !class.is_float() { Data::F64(vec![f64::NAN; lanes.count]) } else { data };
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

fn half<T: Field>(a: T, b: T) -> T {
    // The mean of two zeros has no sign.
    if a == b { T::ZERO + a } else { (a + b) / T::of(2.0) }
}

/// Returns half of a sum, rounded away from zero.
fn rounded_half(sum: i128) -> i128 {
    (sum + sum.signum() * (sum % 2).abs()) / 2
}

fn medians<T: Ordered>(v: &[T], lanes: Lanes, omit_nan: bool, nothing: T, between: impl Fn(T, T) -> T) -> Vec<T> {
    each_lane(v, lanes, |lane| {
        let mut sorted: Vec<T> = Vec::new();
        let mut nan = None;
        for x in lane {
            match x.no_number() {
                true => nan = Some(x),
                false => sorted.push(x),
            }
        }
        if let (Some(nan), false) = (nan, omit_nan) {
            return nan;
        }
        sorted.sort_by(order);
        let n = sorted.len();
        match n {
            0 => nothing,
            _ if n % 2 == 1 => sorted[n / 2],
            _ => between(sorted[n / 2 - 1], sorted[n / 2]),
        }
    })
}

/// Compares two numbers.
pub fn order<T: Ordered>(a: &T, b: &T) -> std::cmp::Ordering {
    if a.before(*b) {
        std::cmp::Ordering::Less
    } else if b.before(*a) {
        std::cmp::Ordering::Greater
    } else {
        std::cmp::Ordering::Equal
    }
}

fn mode(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_numeric("mode", x)?;
    let over = args::over(env, args.get(1), |_| "mode: DIM must be an integer and a valid dimension".to_string())?;
    let dims = dims_or_all(&over, &x.dims());
    let host = hosted(env, x)?;
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    // For each lane: the greatest frequency, and the positions of the elements with this frequency, least element
    // first.
    let found: Vec<(usize, Vec<usize>)> =
        each_data!(&*t.data, v => (0..lanes.count).map(|n| most_frequent(v, lanes, n)).collect());
    let modes = if lanes.len == 0 {
        let class = if t.data.class() == Class::Single { Class::Single } else { Class::Double };
        Data::F64(vec![f64::NAN; lanes.count]).converted(class)
    } else {
        t.data.pick(found.iter().map(|(_, places)| places[0]))
    };
    let frequency: Vec<f64> = found.iter().map(|(n, _)| *n as f64).collect();
    let mut outs = vec![Value::tensor(Tensor::new(out.clone(), modes))];
    if nargout > 1 {
        outs.push(Value::tensor(Tensor::new(out.clone(), Data::F64(frequency))));
        let all = found.iter().map(|(_, places)| {
            Value::tensor(Tensor::new(Dims::new(&[places.len(), 1]), t.data.pick(places.iter().copied())))
        });
        outs.push(Value::cell(out, all.collect()));
    }
    Ok(outs.into())
}

fn most_frequent<T: Ordered>(v: &[T], lanes: Lanes, lane: usize) -> (usize, Vec<usize>) {
    let mut places: Vec<usize> = lanes.positions(lane).filter(|&p| !v[p].no_number()).collect();
    if places.is_empty() {
        return (0, lanes.positions(lane).take(1).collect());
    }
    places.sort_by(|&a, &b| order(&v[a], &v[b]));
    let (mut most, mut best) = (0, Vec::new());
    for run in places.chunk_by(|&a, &b| v[a] == v[b]) {
        if run.len() > most {
            most = run.len();
            best.clear();
        }
        if run.len() == most {
            best.push(run[0]);
        }
    }
    (most, best)
}

fn spread(interp: &mut Interp, name: &'static str, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_numeric("var", x)?;
    let rest: Vec<Value> = args[1..].to_vec();
    let weight = rest.first().filter(|w| w.as_bytes().is_none_or(<[u8]>::is_empty)).cloned();
    let after = if weight.is_some() { &rest[1..] } else { &rest[..] };
    let flags = flags(
        env,
        "var",
        after,
        |_| "var: DIM must be a positive integer scalar, vector, or 'all'".to_string(),
        |_| "var: W must be 0, 1, or a vector of positive integers".to_string(),
    )?;
    let dims = dims_or_all(&flags.over, &x.dims());
    let weight = match weight {
        Some(w) if !w.is_empty() => Some(env.host(&w)?),
        _ => None,
    };
    let mut ddof = 1u8;
    let mut weights = None;
    if let Some(w) = weight {
        if w.len() == 1 && [0.0, 1.0].contains(&w.data.f64_at(0)) {
            ddof = (w.data.f64_at(0) == 0.0) as u8;
        } else {
            let list = w.data.to_f64();
            if list.iter().any(|w| !(*w >= 0.0)) || list.len() == 1 && x.len() != 1 {
                return fail!("var: W must be 0, 1, or a vector of positive integers");
            }
            let len: usize = dims.iter().map(|&d| x.dims().extent(d)).product();
            if list.len() != len {
                return fail!(
                    "var: the length of W must be equal to the size of X in the dimension along which variance is calculated"
                );
            }
            weights = Some(list);
        }
    }
    if let Some(l) = on_runtime(x)
        && weights.is_none()
    {
        let nan = if flags.omit_nan { Nan::Omit } else { Nan::Include };
        let op = if name == "std" { ReduceOp::Std { ddof } } else { ReduceOp::Var { ddof } };
        let class = if l.class == Class::Single { Class::Single } else { Class::Double };
        let mut outs = vec![record(l.array.reduce(op, Along(&dims), nan), class, &[x])?];
        if nargout > 1 {
            outs.push(record(l.array.reduce(ReduceOp::Mean, Along(&dims), nan), class, &[x])?);
        }
        return Ok(outs.into());
    }
    let host = hosted(env, x)?;
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let floats = as_float(&t.data);
    let root = name == "std";
    let variance = float_data!(&*floats, v => variances(v, lanes, ddof, weights.as_deref(), flags.omit_nan, root).0);
    // Variances are real, even if they are NaN.
    let variance = match variance {
        Data::C64(v) => Data::F64(v.iter().map(|z| z.re).collect()),
        Data::C32(v) => Data::F32(v.iter().map(|z| z.re).collect()),
        data => data,
    };
    // For empty arrays it is a double, as in Octave.
    let variance = if t.is_empty() { variance.converted(Class::Double) } else { variance };
    let mut outs = vec![Value::tensor(Tensor::new(out.clone(), variance))];
    if nargout > 1 {
        let means = float_data!(&*floats, v => variances(v, lanes, ddof, weights.as_deref(), flags.omit_nan, root).1);
        outs.push(Value::tensor(Tensor::new(out, means)));
    }
    Ok(outs.into())
}

/// Returns the variances (or their roots) and the means of lanes.
fn variances<T: Field>(
    v: &[T],
    lanes: Lanes,
    ddof: u8,
    weights: Option<&[f64]>,
    omit_nan: bool,
    root: bool,
) -> (Vec<T>, Vec<T>) {
    let each = (0..lanes.count).map(|lane| {
        // These are the values and weights.
        let kept: Vec<(T::Wide, T::Wide)> = lanes
            .positions(lane)
            .enumerate()
            .map(|(k, p)| (v[p], T::Wide::of(weights.map_or(1.0, |w| w[k]))))
            .filter(|(x, _)| !(omit_nan && x.is_nan()))
            .map(|(x, w)| (x.wide(), w))
            .collect();
        let n = kept.len();
        let weight = match weights {
            Some(_) => total(kept.iter().map(|(_, w)| *w)),
            None => T::Wide::of(n as f64),
        };
        let mean = total(kept.iter().map(|(x, w)| *w * *x)) / weight;
        // Values are taken relative to the first one, so that equal values have a variance of exactly zero.
        let first = kept.first().map_or(mean, |(x, _)| *x);
        let centre = first + total(kept.iter().map(|(x, w)| *w * (*x - first))) / weight;
        let centre = if centre.is_nan() { mean } else { centre };
        let squares = total(kept.iter().map(|(x, w)| *w * (*x - centre).abs_squared()));
        // The centre is rounded. This removes the error that the rounding puts into all squares.
        let off = total(kept.iter().map(|(x, w)| *w * (*x - centre)));
        let extra = off.abs_squared() / weight;
        let sum = if extra.magnitude() < squares.magnitude() {
            squares - extra
        } else if squares.magnitude().is_finite() {
            T::Wide::ZERO
        } else {
            squares
        };
        let spread = match weights {
            Some(_) => sum / weight,
            // For one element the divisor is 1, so that its variance is 0.
            None if n > 0 => sum.over((n as f64 - ddof as f64).max(1.0)),
            None => T::Wide::of(f64::NAN),
        };
        (T::narrow(if root { spread.root() } else { spread }), T::narrow(mean))
    });
    each.unzip()
}

/// Returns the quantile `p` of sorted numbers, by one of the nine methods of Hyndman and Fan ("Sample quantiles in
/// statistical packages", 1996).
fn quantile_of(sorted: &[f64], p: f64, method: u8, single: bool) -> f64 {
    let n = sorted.len() as f64;
    if sorted.is_empty() || p.is_nan() {
        return f64::NAN;
    }
    if !(0.0..=1.0).contains(&p) {
        return if p < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let at = |k: f64| sorted[(k.max(1.0).min(n) as usize) - 1];
    let t = match method {
        1 => return at((n * p).ceil()),
        2 => return (at((n * p).ceil()) + at((n * p + 1.0).floor())) / 2.0,
        3 => {
            let (low, x) = ((n * p - 0.5).floor(), n * p - 0.5);
            // If two positions are equally near, the even one is taken.
            return if x == low && low % 2.0 == 0.0 { at(low) } else { at((n * p).round_ties_even()) };
        }
        4 => n * p,
        6 => (n + 1.0) * p,
        7 => (n - 1.0) * p + 1.0,
        8 => (n + 1.0 / 3.0) * p + 1.0 / 3.0,
        9 => (n + 0.25) * p + 0.375,
        _ => n * p + 0.5,
    };
    let t = t.max(1.0).min(n);
    let (low, part) = (t.floor(), t - t.floor());
    if part == 0.0 {
        at(low)
    } else if single {
        ((1.0 - part) as f32 * at(low) as f32 + part as f32 * at(low + 1.0) as f32) as f64
    } else {
        (1.0 - part) * at(low) + part * at(low + 1.0)
    }
}

fn quantiles(interp: &mut Interp, name: &'static str, args: &[Value]) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let x = &args[0];
    if !(x.is_numeric() || x.class() == Class::Logical) {
        return fail!("{name}: X must be a numeric vector or matrix");
    }
    let percent = name == "prctile";
    let p: Vec<f64> = match args.get(1).filter(|p| !p.is_empty()) {
        None => vec![0.0, 0.25, 0.5, 0.75, 1.0],
        Some(p) if p.is_numeric() && p.dims().is_vector() => {
            env.host(p)?.data.to_f64().into_iter().map(|p| if percent { p / 100.0 } else { p }).collect()
        }
        Some(_) => return fail!("{name}: P must be a numeric vector"),
    };
    let d = match args.get(2).filter(|d| !d.is_empty()) {
        None => x.dims().first_non_singleton(),
        Some(d) => args::dim(env, d, |_| format!("{name}: DIM must be a positive integer"))?,
    };
    let method = match args.get(3) {
        None => 5,
        Some(m) => match args::number(env, name, m)? {
            m if (1.0..=9.0).contains(&m) && m == m.trunc() => m as u8,
            m => return fail!("quantile: Unknown METHOD, '{}'", args::short(m)),
        },
    };
    let host = env.host(x)?;
    let class = if host.data.class() == Class::Single { Class::Single } else { Class::Double };
    let lanes = Lanes::new(&host.dims, d);
    let mut out = host.dims.with(d.min(1 << 8), p.len());
    crate::builtins::arrays::creation::check_host(env, &out, class)?;
    let result = Lanes::new(&out, d.min(1 << 8));
    let mut data = vec![Complex64::default(); out.elements()];
    for lane in 0..lanes.count {
        let (re, im) = sorted(&host, lanes.positions(lane));
        for (place, &p) in result.positions(lane).zip(&p) {
            let of = |part: &[f64]| quantile_of(part, p, method, class == Class::Single);
            data[place] = Complex64::new(of(&re), if im.is_empty() { 0.0 } else { of(&im) });
        }
    }
    // The quantiles of a vector have the orientation of P.
    if host.dims.is_vector() && d == host.dims.first_non_singleton() {
        let row = args.get(1).is_none_or(|p| p.is_empty() || p.dims().rows() == 1);
        out = if row { Dims::new(&[1, p.len()]) } else { Dims::new(&[p.len(), 1]) };
    }
    let data = match host.data.is_complex() {
        true => ops::complex_in_class(class, data),
        false => Data::F64(data.iter().map(|z| z.re).collect()).converted(class),
    };
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

/// Returns the numbers among the elements at these positions, sorted: their real parts, and the imaginary ones if there
/// are any.
fn sorted(host: &Tensor, places: impl Iterator<Item = usize>) -> (Vec<f64>, Vec<f64>) {
    if !host.data.is_complex() {
        let mut sorted: Vec<f64> = places.map(|i| host.data.f64_at(i)).filter(|x| !x.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        return (sorted, Vec::new());
    }
    let mut sorted: Vec<Complex64> = places.map(|i| host.data.c64_at(i)).filter(|z| !z.is_nan()).collect();
    sorted.sort_by(|a, b| {
        let by = |f: fn(Complex64) -> f64| f(*a).total_cmp(&f(*b));
        by(ops::complex::abs).then_with(|| by(ops::complex::arg))
    });
    sorted.into_iter().map(|z| (z.re, z.im)).unzip()
}

fn iqr(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let x = &args[0];
    if !(x.is_numeric() || x.class() == Class::Logical) {
        return fail!("iqr: X must be a numeric vector or matrix");
    }
    let over = args::over(env, args.get(1), |_| "iqr: DIM must be a positive integer scalar or vector".to_string())?;
    let dims = match over {
        Over::Default => vec![x.dims().first_non_singleton()],
        other => other.of(&x.dims()),
    };
    let host = env.host(x)?;
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let spread = |part: &[f64]| quantile_of(part, 0.75, 5, false) - quantile_of(part, 0.25, 5, false);
    let spreads = (0..lanes.count).map(|lane| match sorted(&t, lanes.positions(lane)) {
        (re, im) if im.is_empty() => spread(&re),
        (re, im) => spread(&re).hypot(spread(&im)),
    });
    let spreads: Vec<f64> = spreads.collect();
    let class = if host.data.class() == Class::Single { Class::Single } else { Class::Double };
    Ok(Value::tensor(Tensor::new(out, Data::F64(spreads).converted(class))).into())
}
