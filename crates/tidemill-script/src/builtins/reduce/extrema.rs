//! Least and greatest elements: `min`, `max`, `range`, `bounds`, and the order that running extrema use.
//!
//! In: an array with dimensions, or two arrays that expand to each other. Out: extrema in the array's class (char
//! becomes double), and their positions.

use super::field::Ordered;
use super::lanes::{Lanes, joined};
use super::reductions::{check_array, hosted, on_runtime, type_name};
use crate::builtins::args::{self, Over, is_word};
use crate::builtins::record::{is_big, lift, record};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::ops::{Side, zip};
use crate::value::lazy::Along;
use crate::value::tensor::each_data;
use crate::value::{Class, Data, Lazy, Tensor, Value};
use crate::vm::Interp;
use num_complex::{Complex32, Complex64};
use tidemill::{Array, Nan, ReduceOp};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("max", 1, 7, 2, "[m, i] = max (x, y, dim, nanflag)", "The greatest elements.", |i, a, n| {
        extremum(i, a, n, true)
    }),
    row("min", 1, 7, 2, "[m, i] = min (x, y, dim, nanflag)", "The least elements.", |i, a, n| extremum(i, a, n, false)),
    row("range", 1, 2, 1, "range (x, dim)", "The difference of the greatest and the least element.", range),
    row("bounds", 1, 3, 2, "[s, l] = bounds (x, dim, nanflag)", "The least and the greatest element.", bounds),
];

fn name_of(greatest: bool) -> &'static str {
    if greatest { "max" } else { "min" }
}

fn extremum(interp: &mut Interp, args: &[Value], nargout: usize, greatest: bool) -> Flow<Outcome> {
    let name = name_of(greatest);
    if let Some(k) = args.iter().position(|a| is_word(a, "ComparisonMethod")) {
        return compared(interp, args, k, nargout, greatest);
    }
    let env = &mut interp.env;
    let (mut omit_nan, mut linear) = (true, false);
    let mut plain: Vec<&Value> = Vec::with_capacity(3);
    let mut over_all = false;
    // If a flag follows the second argument, that is no array to compare with.
    let flagged = args.len() > 2 && args[2].as_bytes().is_some_and(|b| !b.is_empty());
    for (k, arg) in args.iter().enumerate() {
        if k < 2 || arg.as_bytes().is_none_or(<[u8]>::is_empty) {
            match k >= 1 && (is_word(arg, "omitnan") || is_word(arg, "includenan")) {
                true => omit_nan = is_word(arg, "omitnan"),
                false => plain.push(arg),
            }
        } else if is_word(arg, "all") {
            over_all = true;
        } else if is_word(arg, "omitnan") || is_word(arg, "omitmissing") {
            omit_nan = true;
        } else if is_word(arg, "includenan") || is_word(arg, "includemissing") {
            omit_nan = false;
        } else if is_word(arg, "linear") {
            linear = true;
        } else {
            return fail!("{name}: unrecognized option '{}'", arg.as_text().unwrap_or_default());
        }
    }
    match plain[..] {
        [x] if over_all => of_one(env, name, x, Over::All, omit_nan, linear, nargout),
        [x] => of_one(env, name, x, Over::Default, omit_nan, linear, nargout),
        // In `max (x, [], 'omitnan')` the empty argument is in the place of a second array.
        [x, y] if flagged && y.is_empty() && !over_all => {
            of_one(env, name, x, Over::Default, omit_nan, linear, nargout)
        }
        [x, y] if !over_all => {
            if nargout > 1 {
                return fail_id!(
                    "Octave:invalid-fun-call",
                    "{name}: two output arguments are not supported for two input arrays"
                );
            }
            Ok(of_two(env, greatest, x, y, omit_nan)?.into())
        }
        [x, y] if y.is_empty() => of_one(env, name, x, Over::All, omit_nan, linear, nargout),
        [x, y, dim] if y.is_empty() => {
            let over = args::over(env, Some(dim), |_| format!("{name}: DIM must be a valid dimension"))?;
            of_one(env, name, x, over, omit_nan, linear, nargout)
        }
        [x, _, dim] => {
            let over = args::over(env, Some(dim), |_| format!("{name}: DIM must be a valid dimension"))?;
            // SCRIPT-2: the warning comes after everything that may have to wait.
            env.warn("", &format!("{name}: second argument is ignored"));
            of_one(env, name, x, over, omit_nan, linear, nargout)
        }
        _ => fail_id!("Octave:invalid-fun-call", "Invalid call to {name}"),
    }
}

/// Returns the extremum of an array whose elements are compared by magnitudes or real parts. Argument `k` is the
/// option.
fn compared(interp: &mut Interp, args: &[Value], k: usize, nargout: usize, greatest: bool) -> Flow<Outcome> {
    let name = name_of(greatest);
    let mut rest = args.to_vec();
    let by = rest.drain(k..args.len().min(k + 2)).nth(1).and_then(|word| word.as_text()).unwrap_or_default();
    let by = match by.to_ascii_lowercase().as_str() {
        "auto" => return extremum(interp, &rest, nargout, greatest),
        "real" => "real",
        "abs" => "abs",
        _ => return fail!("{name}: ComparisonMethod must be \"auto\", \"real\" or \"abs\""),
    };
    if k < 2 || !args[1].is_empty() {
        return fail!("{name}: ComparisonMethod is an option for the elements of one array");
    }
    let keys = crate::builtins::numeric::elementwise::call(interp, by, &args[0], 1)?;
    let x = std::mem::replace(&mut rest[0], keys);
    let places = |interp: &mut Interp, rest: &[Value]| match extremum(interp, rest, 2, greatest)? {
        Outcome::Values(mut values) if values.len() > 1 => Ok(values.remove(1)),
        _ => fail!("{name}: there is no value"),
    };
    // A single empty argument would count as a second array.
    let own = if rest.len() == 2 { &rest[..1] } else { &rest[..] };
    let told = if nargout > 1 { Some(places(interp, own)?) } else { None };
    rest.push("linear".into());
    let at = places(interp, &rest)?;
    let m = crate::index::paren(&mut interp.env, &x, &[at])?;
    Ok(std::iter::once(m).chain(told).collect::<Vec<_>>().into())
}

fn of_one(
    env: &Env,
    name: &'static str,
    x: &Value,
    over: Over,
    omit_nan: bool,
    linear: bool,
    nargout: usize,
) -> Flow<Outcome> {
    check_array(name, x)?;
    let greatest = name == "max";
    let linear = linear || matches!(&over, Over::Dims(d) if d.len() > 1);
    let dims = over.of(&x.dims());
    if let Some(l) = on_runtime(x)
        && let Some(outcome) = recorded(x, l, &dims, greatest, omit_nan, linear, nargout)?
    {
        return Ok(outcome);
    }
    let host = hosted(env, x)?;
    // A dimension without elements has no extremum, so the result is empty.
    if dims.iter().any(|&d| host.dims.extent(d) == 0) {
        let shape = dims.iter().fold(host.dims.clone(), |s, &d| if s.extent(d) == 0 { s } else { s.with(d, 1) });
        let class = if host.data.class() == Class::Char { Class::Double } else { host.data.class() };
        let empty = Value::tensor(Tensor::zeros(class, shape.clone()));
        return Ok(vec![empty, Value::tensor(Tensor::zeros(Class::Double, shape))].into());
    }
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let places = match &*t.data {
        Data::F64(v) if lanes.stride == 1 => {
            let lane = |lane| lanes.start(lane)..lanes.start(lane) + lanes.len;
            (0..lanes.count).map(|n| extreme_double(&v[lane(n)], greatest, omit_nan)).collect()
        }
        data => each_data!(data, v => extremes(v, lanes, greatest, omit_nan)),
    };
    let picked = t.data.pick(places.iter().enumerate().map(|(lane, &k)| lanes.start(lane) + k * lanes.stride));
    let picked = if picked.class() == Class::Char { picked.converted(Class::Double) } else { picked };
    let m = Value::tensor(Tensor::new(out.clone(), picked));
    if nargout < 2 {
        return Ok(m.into());
    }
    let index: Vec<f64> = match linear {
        false => places.iter().map(|&k| k as f64 + 1.0).collect(),
        true => {
            // The same walk over positions gives the elements' positions.
            let positions = Tensor::new(host.dims.clone(), Data::F64((0..host.len()).map(|i| i as f64).collect()));
            let (walked, _, _) = joined(&positions, &dims);
            let at = |(lane, &k): (usize, &usize)| walked.data.f64_at(lanes.start(lane) + k * lanes.stride) + 1.0;
            places.iter().enumerate().map(at).collect()
        }
    };
    Ok(vec![m, Value::tensor(Tensor::new(out, Data::F64(index)))].into())
}

/// Returns the position of the extremum in each lane: the first of equal ones, and the first element of a lane without
/// numbers.
fn extremes<T: Ordered>(v: &[T], lanes: Lanes, greatest: bool, omit_nan: bool) -> Vec<usize> {
    (0..lanes.count)
        .map(|lane| {
            let (start, mut best) = (lanes.start(lane), None::<(usize, T)>);
            for k in 0..lanes.len {
                let x = v[start + k * lanes.stride];
                if x.no_number() {
                    if !omit_nan {
                        return k;
                    }
                    continue;
                }
                match best {
                    Some((_, b)) if !(if greatest { b.before(x) } else { x.before(b) }) => {}
                    _ => best = Some((k, x)),
                }
            }
            best.map_or(0, |(k, _)| k)
        })
        .collect()
}

/// Does the same for a lane of neighbouring doubles: finds the extremum by several partial ones at once, and then its
/// position.
fn extreme_double(lane: &[f64], greatest: bool, omit_nan: bool) -> usize {
    const STRANDS: usize = 8;
    /// Returns the extremum. NaN never wins a comparison, so it is never kept.
    fn extremum(lane: &[f64], least: f64, wins: impl Fn(f64, f64) -> bool) -> f64 {
        let mut best = [least; STRANDS];
        let (chunks, rest) = lane.as_chunks::<STRANDS>();
        for chunk in chunks {
            for (best, &x) in best.iter_mut().zip(chunk) {
                *best = if wins(x, *best) { x } else { *best };
            }
        }
        let pick = |best, &x: &f64| if wins(x, best) { x } else { best };
        best.iter().chain(rest).fold(least, pick)
    }
    if !omit_nan && let Some(place) = lane.iter().position(|x| x.is_nan()) {
        return place;
    }
    let best = match greatest {
        true => extremum(lane, f64::NEG_INFINITY, |x, best| x > best),
        false => extremum(lane, f64::INFINITY, |x, best| x < best),
    };
    // Without a number there is nothing to find.
    lane.iter().position(|&x| x == best).unwrap_or(0)
}

fn recorded(
    x: &Value,
    l: &Lazy,
    dims: &[usize],
    greatest: bool,
    omit_nan: bool,
    linear: bool,
    nargout: usize,
) -> Flow<Option<Outcome>> {
    if linear && nargout > 1 {
        return Ok(None);
    }
    let nan = if omit_nan { Nan::Omit } else { Nan::Include };
    // The runtime cannot compare truth values.
    let array = if l.class == Class::Logical { l.array.cast::<u8>() } else { l.array.clone() };
    let op = if greatest { ReduceOp::Max } else { ReduceOp::Min };
    let mut m = array.reduce(op, Along(dims), nan);
    if l.class == Class::Logical {
        m = m.cast::<bool>();
    }
    let m = record(m, l.class, &[x])?;
    if nargout < 2 {
        return Ok(Some(m.into()));
    }
    let op = if greatest { ReduceOp::ArgMax } else { ReduceOp::ArgMin };
    let index = array.reduce(op, Along(dims), nan).cast::<f64>() + 1.0;
    Ok(Some(vec![m, record(index, Class::Double, &[x])?].into()))
}

/// Returns the wider of two integer classes, which holds the other's numbers; `None` if neither does.
pub fn wider(a: Class, b: Class) -> Option<Class> {
    let is_signed = |class: Class| !class.name().starts_with('u');
    let alike = is_signed(a) == is_signed(b);
    alike.then_some(if a.bytes() > b.bytes() { a } else { b })
}

/// Returns the class of the extremum of two operands.
fn common_class(a: Class, b: Class) -> Class {
    match (a, b) {
        _ if a.is_integer() && b.is_integer() => wider(a, b).unwrap_or(b),
        _ if b.is_integer() => b,
        _ if a.is_integer() => a,
        _ if a == Class::Single || b == Class::Single => Class::Single,
        (Class::Logical, Class::Logical) => Class::Logical,
        _ => Class::Double,
    }
}

fn of_two(env: &mut Env, greatest: bool, x: &Value, y: &Value, omit_nan: bool) -> Flow<Value> {
    let name = name_of(greatest);
    if let (Value::Num(a), Value::Num(b)) = (x, y) {
        let kept = if a.is_nan() {
            *if omit_nan { b } else { a }
        } else if b.is_nan() {
            *if omit_nan { a } else { b }
        } else if (greatest && a > b) || (!greatest && a < b) {
            *a
        } else {
            // For zeros of different signs, the second one is returned.
            *b
        };
        return Ok(Value::Num(kept));
    }
    for v in [x, y] {
        if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = v {
            return fail!("{name}: cannot compute {name} ({}, {})", operand_name(x), operand_name(y));
        }
    }
    if x.class().is_integer() && y.class().is_integer() && wider(x.class(), y.class()).is_none() {
        // Neither class holds the numbers of the other.
        return fail!("{name}: cannot compute {name} ({}, {})", operand_name(x), operand_name(y));
    }
    let Some(dims) = x.dims().broadcast(&y.dims()) else {
        return fail_id!(
            "Octave:nonconformant-args",
            "{name}: nonconformant arguments (op1 is {}, op2 is {})",
            x.dims(),
            y.dims()
        );
    };
    let class = common_class(x.class(), y.class());
    let lazy = [x, y].iter().any(|v| on_runtime(v).is_some());
    let complex = x.is_complex() || y.is_complex();
    if (lazy || is_big(env, class, dims.elements()))
        && !complex
        && omit_nan
        && let Some(dtype) = class.dtype().filter(|_| class != Class::Logical)
        && let (Some(a), Some(b)) = (lift(env, x)?, lift(env, y)?)
    {
        let (a, b) = (a.cast_to(dtype), b.cast_to(dtype));
        let pick = |a: &Array, b: &Array| if greatest { a.max(b) } else { a.min(b) };
        return record(pick(&a, &b), class, &[x, y]);
    }
    env.host_all([x, y])?;
    let (a, b) = (hosted(env, x)?, hosted(env, y)?);
    let converted = |data: &Data| match (complex, class) {
        (true, Class::Single) => Data::C32(
            (0..data.len()).map(|i| data.c64_at(i)).map(|z| Complex32::new(z.re as f32, z.im as f32)).collect(),
        ),
        (true, _) => Data::C64((0..data.len()).map(|i| data.c64_at(i)).collect::<Vec<Complex64>>()),
        _ => data.converted(class),
    };
    let as_class = |t: &'_ Tensor| (complex || t.data.class() != class).then(|| converted(&t.data));
    let (own_a, own_b) = (as_class(&a), as_class(&b));
    let (da, db) = (own_a.as_ref().unwrap_or(&a.data), own_b.as_ref().unwrap_or(&b.data));
    // If both are equal, as zeros of different signs are, the array's element is kept beside a number, and the second
    // of two numbers.
    let second = a.len() == 1;
    macro_rules! pairs {
        ($($variant:ident),*) => {
            match (da, db) {
                $((Data::$variant(p), Data::$variant(q)) => {
                    let (p, q) = (Side { data: p, dims: &a.dims }, Side { data: q, dims: &b.dims });
                    Data::$variant(match second {
                        true => zip(p, q, &dims, |x, y| better(y, x, greatest, omit_nan)),
                        false => zip(p, q, &dims, |x, y| better(x, y, greatest, omit_nan)),
                    })
                })*
                _ => return fail!("{name}: cannot compute {name} ({}, {})", operand_name(x), operand_name(y)),
            }
        };
    }
    let data = pairs!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Bool, C64, C32);
    Ok(Value::tensor(Tensor::new(dims, data)))
}

/// Returns the name of an operand in messages.
fn operand_name(value: &Value) -> &'static str {
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => type_name(value),
        v if v.is_char() => "string",
        v if v.is_scalar() => "scalar",
        _ => "matrix",
    }
}

#[inline(always)]
fn better<T: Ordered>(a: T, b: T, greatest: bool, omit_nan: bool) -> T {
    match (a.no_number(), b.no_number()) {
        (true, _) => {
            if omit_nan {
                b
            } else {
                a
            }
        }
        (_, true) => {
            if omit_nan {
                a
            } else {
                b
            }
        }
        _ if if greatest { a.before(b) } else { b.before(a) } => b,
        _ => a,
    }
}

fn range(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (x, none) = (args[0].clone(), Value::empty());
    let mut full = vec![x, none];
    full.extend(args[1..].iter().cloned());
    let one = |interp: &mut Interp, greatest: bool| -> Flow<Value> {
        let args = if args.len() > 1 { &full[..] } else { &full[..1] };
        match extremum(interp, args, 1, greatest)? {
            Outcome::Values(v) if !v.is_empty() => Ok(v[0].clone()),
            _ => fail!("range: no value"),
        }
    };
    let (high, low) = (one(interp, true)?, one(interp, false)?);
    Ok(crate::ops::binary(&mut interp.env, crate::syntax::ast::BinaryOp::Sub, &high, &low)?.into())
}

fn bounds(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if !(args[0].is_numeric() || args[0].class() == Class::Logical) {
        return fail!("bounds: X must be a numeric vector or matrix");
    }
    let mut full = vec![args[0].clone(), Value::empty()];
    full.extend(args[1..].iter().cloned());
    let full = if args.len() > 1 { full } else { full[..1].to_vec() };
    let mut out = Vec::with_capacity(2);
    for greatest in [false, true] {
        match extremum(interp, &full, 1, greatest)? {
            Outcome::Values(v) if !v.is_empty() => out.push(v[0].clone()),
            _ => return fail!("bounds: no value"),
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Dims;

    #[test]
    fn of_equal_zeros_an_arrays_is_kept_before_a_number_and_the_second_of_two_numbers() {
        let mut env = crate::rig::env();
        let mut signs = |x: Value, y: Value| -> Vec<bool> {
            let kept = of_two(&mut env, true, &x, &y, true).ok().expect("small arrays wait for nothing");
            let host = env.host(&kept).ok().expect("small arrays wait for nothing");
            host.data.to_f64().iter().map(|x| x.is_sign_negative()).collect()
        };
        let zeros = || Value::row(vec![-0.0, 0.0]);
        assert_eq!(signs(zeros(), Value::Num(0.0)), [true, false]);
        assert_eq!(signs(Value::Num(0.0), zeros()), [true, false]);
        assert_eq!(signs(zeros(), Value::row(vec![0.0, -0.0])), [true, false]);
        assert_eq!(signs(Value::Num(-0.0), Value::Num(0.0)), [false]);
        assert_eq!(signs(Value::Num(0.0), Value::Num(-0.0)), [true]);
    }

    #[test]
    fn a_lane_of_doubles_has_its_extremum_where_the_plain_walk_finds_it() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let few = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 2.5];
        for round in 0..2000 {
            // There are few different numbers, so that some are equal; some lanes are all NaN.
            let kinds = if round % 50 == 0 { 1 } else { few.len() as u64 };
            let lane: Vec<f64> = (0..1 + next() % 40).map(|_| few[(next() % kinds) as usize]).collect();
            let lanes = Lanes::new(&Dims::new(&[lane.len(), 1]), 0);
            for (greatest, omit_nan) in [(true, true), (true, false), (false, true), (false, false)] {
                let plain = extremes(&lane, lanes, greatest, omit_nan)[0];
                assert_eq!(extreme_double(&lane, greatest, omit_nan), plain, "{lane:?} {greatest} {omit_nan}");
            }
        }
    }
}
