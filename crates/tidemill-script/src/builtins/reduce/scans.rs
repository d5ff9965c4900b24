//! Running sums, products and extrema; differences of neighbours.
//!
//! In: an array, a dimension, flags. Out: an array of the same shape (differences are shorter) and class; sums of char
//! and logical arrays are double. Arrays on the runtime are scanned there.

use super::field::{Field, Ordered, as_float, float_data};
use super::lanes::Lanes;
use super::reductions::{check_array, hosted, on_runtime};
use super::summing::Running;
use crate::builtins::args::{self, is_word};
use crate::builtins::record::{is_big, lift, record};
use crate::builtins::{Builtin, Outcome, row};
use crate::error::{Flow, fail, fail_id};
use crate::value::lazy::with_axes;
use crate::value::tensor::map_data;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use tidemill::{Array, Nan, ScanOp};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("cumsum", 1, 5, 1, "cumsum (x, dim, direction, nanflag)", "Running sums.", |i, a, n| {
        scan(i, "cumsum", a, n, ScanOp::Sum)
    }),
    row("cumprod", 1, 5, 1, "cumprod (x, dim, direction, nanflag)", "Running products.", |i, a, n| {
        scan(i, "cumprod", a, n, ScanOp::Prod)
    }),
    row("cummax", 1, 5, 2, "[w, iw] = cummax (x, dim, direction, nanflag)", "Running maxima.", |i, a, n| {
        scan(i, "cummax", a, n, ScanOp::Max)
    }),
    row("cummin", 1, 5, 2, "[w, iw] = cummin (x, dim, direction, nanflag)", "Running minima.", |i, a, n| {
        scan(i, "cummin", a, n, ScanOp::Min)
    }),
    row("diff", 1, 3, 1, "diff (x, k, dim)", "Differences of neighbours.", diff),
];

fn scan(interp: &mut Interp, name: &'static str, args: &[Value], nargout: usize, op: ScanOp) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_array(name, x)?;
    let sums = matches!(op, ScanOp::Sum | ScanOp::Prod);
    // By default, sums include NaN and extrema do not.
    let (mut omit_nan, mut reverse, mut dim) = (!sums, false, None);
    for (at, arg) in args[1..].iter().enumerate() {
        if arg.as_bytes().is_some_and(|b| !b.is_empty()) {
            if is_word(arg, "reverse") {
                reverse = true;
            } else if is_word(arg, "omitnan") || is_word(arg, "omitmissing") {
                omit_nan = true;
            } else if is_word(arg, "includenan") || is_word(arg, "includemissing") {
                omit_nan = false;
            } else if !["forward", "native", "double"].iter().any(|w| is_word(arg, w)) {
                return fail!("{name}: unrecognized string argument");
            }
        } else if at > 0 {
            // A dimension must come directly behind the array.
            return fail_id!("Octave:invalid-fun-call", "Invalid call to {name}");
        } else if !arg.is_empty() {
            dim = Some(args::dim(env, arg, |d| match sums {
                true => format!("{name}: invalid dimension argument = {}", args::short(d)),
                false => format!("{name}: DIM must be a valid dimension"),
            })?);
        }
    }
    let d = dim.unwrap_or_else(|| x.dims().first_non_singleton());
    let class = match x.class() {
        Class::Char => Class::Double,
        Class::Logical if sums => Class::Double,
        class => class,
    };
    let big = on_runtime(x).is_some() || is_big(env, x.class(), x.len()) && !x.is_complex();
    if big
        && nargout < 2
        && d < 16
        && let Some(array) = lift(env, x)?
    {
        let nan = if omit_nan { Nan::Omit } else { Nan::Include };
        let array = if class == Class::Logical { array.cast::<u8>() } else { array };
        let scanned = with_axes(&array, d + 1).scan(op, d, nan, reverse);
        let scanned = if class == Class::Logical { scanned.cast::<bool>() } else { scanned };
        return Ok(record(scanned, class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let lanes = Lanes::new(&host.dims, d);
    if sums {
        let data = running_sums(&host.data, class, lanes, op == ScanOp::Sum, omit_nan, reverse);
        return Ok(Value::tensor(Tensor::new(host.dims.clone(), data)).into());
    }
    let data = host.data.converted(class);
    let places;
    let best = map_data!(&data, v => {
        let (best, at) = running_extrema(v, lanes, op == ScanOp::Max, omit_nan, reverse);
        places = at;
        best
    });
    let out = Value::tensor(Tensor::new(host.dims.clone(), best));
    if nargout < 2 {
        return Ok(out.into());
    }
    Ok(vec![out, Value::tensor(Tensor::new(host.dims.clone(), Data::F64(places)))].into())
}

fn running_sums(data: &Data, class: Class, lanes: Lanes, sum: bool, omit_nan: bool, reverse: bool) -> Data {
    macro_rules! integers {
        ($($variant:ident: $t:ty),*) => {
            match data {
                $(Data::$variant(v) if class.is_integer() => Data::$variant(match sum {
                    true => running(v, lanes, 0, reverse, |_| false, |a: $t, b| a.saturating_add(b)),
                    false => running(v, lanes, 1, reverse, |_| false, |a: $t, b| a.saturating_mul(b)),
                }),)*
                other => float_data!(&*as_float(other), v => floats(v, lanes, sum, omit_nan, reverse)),
            }
        };
    }
    fn floats<T: Field>(v: &[T], lanes: Lanes, sum: bool, omit_nan: bool, reverse: bool) -> Vec<T> {
        let skip = |x: T| omit_nan && x.is_nan();
        match sum {
            true => running_floats(v, lanes, reverse, skip),
            false => running(v, lanes, T::ONE, reverse, skip, |a, b| a * b),
        }
    }
    integers!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64)
}

/// Returns running sums of floats, computed with the digits of doubles and the errors of the additions. Before the
/// first element that counts they are 0.
fn running_floats<T: Field>(v: &[T], lanes: Lanes, reverse: bool, skip: impl Fn(T) -> bool) -> Vec<T> {
    let mut out = v.to_vec();
    for lane in 0..lanes.count {
        let mut sums: Option<[Running; 2]> = None;
        let mut step = |p: usize| {
            if !skip(v[p]) {
                let [re, im] = v[p].parts();
                match &mut sums {
                    Some(sums) => {
                        sums[0].add(re);
                        sums[1].add(im);
                    }
                    // The first element is not added to 0, so that -0 keeps its sign.
                    None => sums = Some([Running::begun(re), Running::begun(im)]),
                }
            }
            out[p] = sums.map_or(T::ZERO, |sums| T::of_parts(sums.map(|sum| sum.value())));
        };
        match reverse {
            false => lanes.positions(lane).for_each(&mut step),
            true => lanes.positions(lane).rev().for_each(&mut step),
        }
    }
    out
}

/// Returns running sums; before the first element that counts they are `nothing`.
fn running<T: Copy>(
    v: &[T],
    lanes: Lanes,
    nothing: T,
    reverse: bool,
    skip: impl Fn(T) -> bool,
    add: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut out = v.to_vec();
    for lane in 0..lanes.count {
        let mut sum = None;
        let mut step = |p: usize| {
            if !skip(v[p]) {
                // The first element is not added to 0, so that -0 keeps its sign.
                sum = Some(sum.map_or(v[p], |sum| add(sum, v[p])));
            }
            out[p] = sum.unwrap_or(nothing);
        };
        match reverse {
            false => lanes.positions(lane).for_each(&mut step),
            true => lanes.positions(lane).rev().for_each(&mut step),
        }
    }
    out
}

/// Returns the extremum so far in each lane, and its position (from 1); before the first number, NaN at 1.
fn running_extrema<T: Ordered>(
    v: &[T],
    lanes: Lanes,
    greatest: bool,
    omit_nan: bool,
    reverse: bool,
) -> (Vec<T>, Vec<f64>) {
    let (mut out, mut places) = (v.to_vec(), vec![1.0; v.len()]);
    for lane in 0..lanes.count {
        let mut best: Option<(T, usize)> = None;
        let mut step = |(k, p): (usize, usize)| {
            let x = v[p];
            let replaces = match best {
                // A NaN that counts is never replaced.
                Some((b, _)) if b.no_number() => omit_nan && !x.no_number(),
                Some(_) if x.no_number() => !omit_nan,
                Some((b, _)) => {
                    if greatest {
                        b.before(x)
                    } else {
                        x.before(b)
                    }
                }
                None => true,
            };
            if replaces {
                best = Some((x, k));
            }
            if let Some((b, k)) = best {
                (out[p], places[p]) = (b, k as f64 + 1.0);
            }
        };
        match reverse {
            false => lanes.positions(lane).enumerate().for_each(&mut step),
            true => lanes.positions(lane).enumerate().rev().for_each(&mut step),
        }
    }
    (out, places)
}

fn diff(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    if !(x.is_numeric() || x.class() == Class::Logical) {
        return fail!("diff: X must be numeric or logical");
    }
    env.host_all(&args[1..])?;
    let order = match args.get(1).filter(|k| !k.is_empty()) {
        None => 1,
        Some(k) if k.len() == 1 => args::integer(args::number(env, "diff", k)?)?,
        Some(_) => return fail!("diff: order K must be a scalar or []"),
    };
    if order < 0 {
        return fail!("diff: order K must be non-negative");
    }
    let dim = match args.get(2) {
        None => None,
        Some(d) => {
            let d = args::dim(env, d, |_| "diff: DIM must be a valid dimension".to_string())?;
            if d >= x.dims().len() {
                return fail!("diff: DIM must be a valid dimension");
            }
            Some(d)
        }
    };
    let mut value = if x.class() == Class::Logical {
        crate::builtins::arrays::creation::in_class(env, x, Class::Double)?
    } else {
        x.clone()
    };
    for _ in 0..order {
        let dims = value.dims();
        let d = match dim {
            Some(d) => d,
            // A single element has no differences.
            None if value.len() == 1 => {
                value = Value::tensor(Tensor::zeros(value.class(), Dims::zero()));
                break;
            }
            None => dims.first_non_singleton(),
        };
        if dims.extent(d) == 0 {
            // Further differences stay empty.
            break;
        }
        value = differences(&value, d)?;
    }
    Ok(value.into())
}

fn differences(value: &Value, d: usize) -> Flow<Value> {
    if let Value::Lazy(l) = value {
        let array: Array = with_axes(&l.array, d + 1).diff(d);
        return record(array, l.class, &[value]);
    }
    let host = match value {
        Value::Tensor(t) => t.seen_as(t.dims.clone()),
        Value::Num(x) => Tensor::scalar(Data::F64(vec![*x])),
        _ => return fail!("diff: X must be numeric or logical"),
    };
    let dims = host.dims.with(d, host.dims.extent(d).saturating_sub(1));
    let (from, to) = (Lanes::new(&host.dims, d), Lanes::new(&dims, d));
    let places: Vec<usize> = {
        let mut places = vec![0; dims.elements()];
        for lane in 0..to.count {
            to.positions(lane).zip(from.positions(lane)).for_each(|(out, p)| places[out] = p);
        }
        places
    };
    let step = from.stride;
    macro_rules! subtract {
        ($(($variant:ident, $minus:expr)),*) => {
            match &*host.data {
                $(Data::$variant(v) => Data::$variant(places.iter().map(|&p| $minus(v[p + step], v[p])).collect()),)*
                other => other.clone(),
            }
        };
    }
    let data = subtract!(
        (F64, |a, b| a - b),
        (F32, |a, b| a - b),
        (C64, |a, b| a - b),
        (C32, |a, b| a - b),
        (I8, i8::saturating_sub),
        (I16, i16::saturating_sub),
        (I32, i32::saturating_sub),
        (I64, i64::saturating_sub),
        (U8, u8::saturating_sub),
        (U16, u16::saturating_sub),
        (U32, u32::saturating_sub),
        (U64, u64::saturating_sub)
    );
    Ok(Value::tensor(Tensor::new(dims, data)))
}
