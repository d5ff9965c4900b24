//! Sums, products, and truth along dimensions. `norms` has the norms, `extrema` the extrema, and `statistics` the means
//! and the like.
//!
//! In: an array, dimensions, flags. Out: the array with these dimensions reduced to one element. Arrays on the runtime
//! are reduced there.

use super::field::{Field, Ordered, as_float, float_data, widened};
use super::lanes::{Lanes, joined};
use super::norms::{norm, vecnorm};
use super::summing::{total, wide_total};
use crate::builtins::args::{self, Over, is_word};
use crate::builtins::record::record;
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::lazy::Along;
use crate::value::tensor::each_data;
use crate::value::{Class, Data, Dims, Lazy, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;
use tidemill::Array;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("sum", 1, 5, 1, "sum (x, dim, outtype, nanflag)", "The sum of elements.", |i, a, _| {
        Ok(sums(i, "sum", a)?.into())
    }),
    row("prod", 1, 5, 1, "prod (x, dim, outtype, nanflag)", "The product of elements.", |i, a, _| {
        Ok(sums(i, "prod", a)?.into())
    }),
    row("sumsq", 1, 3, 1, "sumsq (x, dim)", "The sum of squared absolute values.", |i, a, _| {
        Ok(sums(i, "sumsq", a)?.into())
    }),
    row("logsumexp", 1, 3, 1, "logsumexp (x, dim, nanflag)", "log (sum (exp (x))) without overflow.", logsumexp),
    row("any", 1, 2, 1, "any (x, dim)", "Whether an element is not zero.", |i, a, _| truths(i, "any", a)),
    row("all", 1, 2, 1, "all (x, dim)", "Whether no element is zero.", |i, a, _| truths(i, "all", a)),
    row("nnz", 1, 1, 1, "nnz (x)", "The number of elements that are not zero.", nnz),
    row("dot", 2, 3, 1, "dot (x, y, dim)", "The dot product.", dot),
    row("norm", 1, 3, 1, "norm (x, p, opt)", "The norm of a vector or matrix.", norm),
    row("vecnorm", 1, 3, 1, "vecnorm (x, p, dim)", "The norms of the vectors along a dimension.", vecnorm),
];

/// The arguments of a reduction behind the array.
pub struct Flags {
    /// The dimensions to reduce.
    pub over: Over,
    /// Whether NaN is skipped.
    pub omit_nan: bool,
    /// `'native'`.
    pub native: bool,
    /// `'double'`.
    pub double: bool,
}

/// Reads the dimension and the words. `dim_message` makes the message for a wrong dimension, `word_message` for a wrong
/// word.
///
/// # Errors
/// Wrong words and dimensions.
pub fn flags(
    env: &Env,
    name: &str,
    args: &[Value],
    dim_message: impl Fn(f64) -> String,
    word_message: impl Fn(&str) -> String,
) -> Flow<Flags> {
    let mut flags = Flags { over: Over::Default, omit_nan: false, native: false, double: false };
    let mut seen_dim = false;
    for arg in args {
        match arg.as_bytes().filter(|b| !b.is_empty()) {
            None => {
                if seen_dim {
                    return fail_id!("Octave:invalid-fun-call", "Invalid call to {name}");
                }
                flags.over = args::over(env, Some(arg), &dim_message)?;
                seen_dim = true;
            }
            Some(_) if is_word(arg, "all") => flags.over = Over::All,
            Some(_) if is_word(arg, "omitnan") || is_word(arg, "omitmissing") => flags.omit_nan = true,
            Some(_) if is_word(arg, "includenan") || is_word(arg, "includemissing") => flags.omit_nan = false,
            Some(_) if is_word(arg, "native") => flags.native = true,
            Some(_) if is_word(arg, "double") => flags.double = true,
            Some(_) if is_word(arg, "default") || is_word(arg, "extra") => {}
            Some(_) => return fail!("{}", word_message(&arg.as_text().unwrap_or_default())),
        }
    }
    Ok(flags)
}

/// Returns the name of a class in messages about types.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Cell(_) => "cell",
        Value::Struct(s) if s.len() == 1 => "scalar struct",
        Value::Struct(_) => "struct",
        Value::Function(_) => "function handle",
        _ => "value",
    }
}

/// Returns an error for values without elements to compute with.
///
/// # Errors
/// `sum: wrong type argument 'cell'`.
pub fn check_array(name: &str, value: &Value) -> Flow<()> {
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
            fail!("{name}: wrong type argument '{}'", type_name(value))
        }
        _ => Ok(()),
    }
}

/// Returns an array on the runtime that has elements; empty arrays are known without asking.
pub fn on_runtime(value: &Value) -> Option<&Lazy> {
    match value {
        Value::Lazy(l) if l.dims.elements() > 0 => Some(l),
        _ => None,
    }
}

/// Returns the host array, even for an empty array on the runtime.
///
/// # Errors
/// The need for it; or an error that no memory holds the result for an array without elements whose other extents are
/// enormous.
pub fn hosted(env: &Env, value: &Value) -> Flow<Arc<Tensor>> {
    let dims = value.dims();
    if dims.elements() == 0 {
        env.check_host(&dims.iter().copied().filter(|&d| d != 0).collect::<Vec<usize>>(), 8)?;
    }
    match value {
        Value::Lazy(l) if l.dims.elements() == 0 => Ok(Arc::new(Tensor::zeros(l.class, l.dims.clone()))),
        other => env.host(other),
    }
}

/// Returns the dimensions of a reduction that has a value for empty arrays: a 0×0 array gives one element, unless a
/// dimension is named.
pub fn dims_or_all(over: &Over, dims: &Dims) -> Vec<usize> {
    match over {
        Over::Default if dims[..] == [0, 0] => vec![0, 1],
        over => over.of(dims),
    }
}

/// The elements of a lane, in order.
pub struct Lane<'a, T> {
    rest: &'a [T],
    stride: usize,
    left: usize,
}

impl<T: Copy> Iterator for Lane<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let first = *self.rest.first()?;
        self.rest = self.rest.get(self.stride..).unwrap_or_default();
        Some(first)
    }

    fn fold<B, F: FnMut(B, T) -> B>(self, first: B, f: F) -> B {
        match self.stride {
            1 => self.rest.iter().take(self.left).copied().fold(first, f),
            stride => self.rest.iter().step_by(stride.max(1)).take(self.left).copied().fold(first, f),
        }
    }
}

/// Reduces each lane to one element.
pub fn each_lane<T: Copy, R>(v: &[T], lanes: Lanes, f: impl Fn(Lane<'_, T>) -> R) -> Vec<R> {
    (0..lanes.count)
        .map(|lane| {
            f(Lane { rest: v.get(lanes.start(lane)..).unwrap_or_default(), stride: lanes.stride, left: lanes.len })
        })
        .collect()
}

fn sums(interp: &mut Interp, name: &'static str, args: &[Value]) -> Flow<Value> {
    let env = &interp.env;
    let x = &args[0];
    check_array(name, x)?;
    if let Value::Num(v) = x
        && args.len() == 1
    {
        // A sum begins with 0, so the sum of -0 is 0.
        return Ok(Value::Num(match name {
            "sumsq" => v * v,
            "sum" => v + 0.0,
            _ => *v,
        }));
    }
    let flags = flags(
        env,
        name,
        &args[1..],
        |d| format!("{name}: invalid dimension DIM = {}", args::short(d)),
        |word| format!("{name}: unrecognized type argument '{word}'"),
    )?;
    let dims = dims_or_all(&flags.over, &x.dims());
    if let Some(l) = on_runtime(x)
        && !(name != "sum" && flags.native && l.class.is_integer())
    {
        return recorded_sum(x, l, name, &flags, &dims);
    }
    let host = hosted(env, x)?;
    let class = host.data.class();
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    let data = if flags.native && class.is_integer() {
        native(&t.data, lanes, name)
    } else {
        let wide = flags.double.then(|| widened(&t.data));
        let sum =
            float_data!(&*as_float(wide.as_ref().unwrap_or(&t.data)), v => float_sums(v, lanes, name, flags.omit_nan));
        match (flags.native, class) {
            (true, Class::Logical) => sum.converted(Class::Logical),
            _ => sum,
        }
    };
    Ok(Value::tensor(Tensor::new(out, data)))
}

fn float_sums<T: Field>(v: &[T], lanes: Lanes, name: &str, omit_nan: bool) -> Vec<T> {
    let keep = |x: &T| !(omit_nan && x.is_nan());
    match name {
        "sum" => each_lane(v, lanes, |lane| T::narrow(wide_total(lane.filter(keep)))),
        "prod" => each_lane(v, lanes, |lane| lane.filter(keep).fold(T::ONE, |a, b| a * b)),
        _ => each_lane(v, lanes, |lane| T::narrow(total(lane.filter(keep).map(|x| x.wide().abs_squared())))),
    }
}

/// Computes sums and products in an integer class, which saturate at each step.
fn native(data: &Data, lanes: Lanes, name: &str) -> Data {
    macro_rules! integers {
        ($($variant:ident: $t:ty),*) => {
            match data {
                $(Data::$variant(v) => Data::$variant(match name {
                    "sum" => each_lane(v, lanes, |lane| lane.fold(0, |a: $t, b| a.saturating_add(b))),
                    "prod" => each_lane(v, lanes, |lane| lane.fold(1, |a: $t, b| a.saturating_mul(b))),
                    _ => each_lane(v, lanes, |lane| lane.fold(0, |a: $t, b| a.saturating_add(b.saturating_mul(b)))),
                }),)*
                other => other.clone(),
            }
        };
    }
    integers!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64)
}

/// Makes a sum on the runtime begin with 0, so that the sum of -0 alone is 0. The runtime does not reduce dimensions of
/// extent 1.
pub fn from_zero(sum: Array, l: &Lazy, over: &[usize]) -> Array {
    let alone = over.iter().all(|&d| l.dims.extent(d) == 1);
    if alone && l.class.is_float() { sum + 0.0 } else { sum }
}

fn recorded_sum(x: &Value, l: &Lazy, name: &str, flags: &Flags, dims: &[usize]) -> Flow<Value> {
    let array = if flags.double && l.class == Class::Single { l.array.cast::<f64>() } else { l.array.clone() };
    let float = match (l.class, flags.double) {
        (Class::Single, false) => Class::Single,
        _ => Class::Double,
    };
    if flags.native && l.class.is_integer() && name == "sum" {
        return record(array.sum_native(Along(dims)), l.class, &[x]);
    }
    if flags.native && l.class == Class::Logical {
        let truth = if name == "prod" { array.all(Along(dims)) } else { array.any(Along(dims)) };
        return record(truth, Class::Logical, &[x]);
    }
    let sum = match (name, flags.omit_nan) {
        ("sum", false) => from_zero(array.sum(Along(dims)), l, dims),
        ("sum", true) => array.nan_sum(Along(dims)),
        ("prod", false) => array.prod(Along(dims)),
        ("prod", true) => array.nan_prod(Along(dims)),
        (_, omit) => {
            let array = if array.dtype()?.is_float() { array } else { array.cast::<f64>() };
            if omit { array.square().nan_sum(Along(dims)) } else { array.square().sum(Along(dims)) }
        }
    };
    record(sum, float, &[x])
}

fn logsumexp(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_array("logsumexp", x)?;
    let flags = flags(
        env,
        "logsumexp",
        &args[1..],
        |d| format!("logsumexp: invalid dimension DIM = {}", args::short(d)),
        |word| format!("logsumexp: unrecognized type argument '{word}'"),
    )?;
    let dims = dims_or_all(&flags.over, &x.dims());
    if let Some(l) = on_runtime(x) {
        let sum = match flags.omit_nan {
            true => l.array.nan_logsumexp(Along(&dims)),
            false => l.array.logsumexp(Along(&dims)),
        };
        let class = if l.class == Class::Single { Class::Single } else { Class::Double };
        return Ok(record(sum, class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    if host.data.is_complex() {
        return fail!("logsumexp: X must be real");
    }
    let (t, d, out) = joined(&host, &dims);
    let values = t.data.to_f64();
    let sums = each_lane(&values, Lanes::new(&t.dims, d), |lane| {
        let kept: Vec<f64> = lane.filter(|x| !(flags.omit_nan && x.is_nan())).collect();
        let greatest = kept.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Equal infinities have no difference.
        let terms = kept.iter().map(|&x| if x == greatest { 1.0 } else { (x - greatest).exp() });
        greatest + terms.sum::<f64>().ln()
    });
    let data = match t.data.class() {
        Class::Single => Data::F32(sums.iter().map(|&x| x as f32).collect()),
        _ => Data::F64(sums),
    };
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

fn truths(interp: &mut Interp, name: &'static str, args: &[Value]) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    check_array(name, x)?;
    let over = match args.get(1) {
        Some(word) if word.is_char() && !is_word(word, "all") => return fail!("{name}: DIM must be an integer"),
        dim => args::over(env, dim, |d| format!("{name}: invalid dimension argument = {}", args::short(d)))?,
    };
    let dims = dims_or_all(&over, &x.dims());
    let is_any = name == "any";
    if let Some(l) = on_runtime(x) {
        // NaN counts neither as true nor as false.
        let truth = if is_any { l.array.nan_any(Along(&dims)) } else { l.array.all(Along(&dims)) };
        return Ok(record(truth, Class::Logical, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let (t, d, out) = joined(&host, &dims);
    let lanes = Lanes::new(&t.dims, d);
    fn over_lanes<T: Ordered>(v: &[T], lanes: Lanes, is_any: bool) -> Vec<bool> {
        match is_any {
            true => each_lane(v, lanes, |mut lane| lane.any(|x| x.is_true())),
            false => each_lane(v, lanes, |mut lane| lane.all(|x| x.is_true() || x.no_number())),
        }
    }
    let truth = each_data!(&*t.data, v => over_lanes(v, lanes, is_any));
    Ok(Value::tensor(Tensor::new(out, Data::Bool(truth))).into())
}

fn nnz(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let x = &args[0];
    if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = x {
        let name = if let Value::Cell(_) = x { "cell array" } else { type_name(x) };
        return fail!("nnz: wrong type argument '{name}'");
    }
    if let Some(l) = on_runtime(x) {
        return Ok(record(l.array.count_nonzero(..).cast::<f64>(), Class::Double, &[x])?.into());
    }
    let host = hosted(&interp.env, x)?;
    let count = each_data!(&*host.data, v => v.iter().filter(|x| x.is_true() || x.no_number()).count());
    Ok(Value::from(count).into())
}

fn dot(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let (x, y) = (&args[0], &args[1]);
    for v in [x, y] {
        if !(v.is_numeric() || v.class() == Class::Logical) {
            return fail!("dot: X and Y must be numeric");
        }
    }
    let dim = match args.get(2) {
        Some(d) => Some(args::dim(env, d, |_| "dot: DIM must be a valid dimension".to_string())?),
        None => None,
    };
    let vectors = dim.is_none() && x.dims().is_vector() && y.dims().is_vector() && x.len() == y.len();
    if !vectors && x.dims() != y.dims() {
        return fail!("dot: sizes of X and Y must match");
    }
    let over = dim.map_or(Over::Default, |d| Over::Dims(vec![d]));
    let shape = if vectors { Dims::new(&[x.len(), 1]) } else { x.dims() };
    let dims = dims_or_all(&over, &shape);
    if x.class().is_integer() || y.class().is_integer() {
        // Products of integers saturate in their class, and are summed like other integers.
        let fit = |v: &Value| {
            if vectors { crate::builtins::arrays::shape::reshaped(v, shape.clone()) } else { Ok(v.clone()) }
        };
        let (a, b) = (fit(x)?, fit(y)?);
        let product = crate::ops::binary(&mut interp.env, crate::syntax::ast::BinaryOp::Mul, &a, &b)?;
        let mut rest = vec![product];
        rest.extend(dim.map(|d| Value::from(d + 1)));
        return Ok(sums(interp, "sum", &rest)?.into());
    }
    if (on_runtime(x).is_some() || on_runtime(y).is_some())
        && let (Some(a), Some(b)) = (crate::builtins::record::lift(env, x)?, crate::builtins::record::lift(env, y)?)
    {
        let single = x.class() == Class::Single || y.class() == Class::Single;
        let class = if single { Class::Single } else { Class::Double };
        let fit = |a: Array| {
            let a = if vectors { a.flatten() } else { a };
            if single { a.cast::<f32>() } else { a.cast::<f64>() }
        };
        return Ok(record(fit(a).dot(&fit(b), Along(&dims)), class, &[x, y])?.into());
    }
    env.host_all(args)?;
    let (a, b) = (hosted(env, x)?, hosted(env, y)?);
    let (a, b) = (a.seen_as(shape.clone()), b.seen_as(shape));
    let (a, b) = in_common(&a.data, &b.data, a.dims.clone());
    let (ta, d, out) = joined(&a, &dims);
    let (tb, _, _) = joined(&b, &dims);
    let lanes = Lanes::new(&ta.dims, d);
    macro_rules! products {
        ($($variant:ident),*) => {
            match (&*ta.data, &*tb.data) {
                $((Data::$variant(a), Data::$variant(b)) => Data::$variant(
                    (0..lanes.count)
                        .map(|lane| {
                            let products = lanes.positions(lane).map(|p| a[p].conjugate().wide() * b[p].wide());
                            Field::narrow(total(products))
                        })
                        .collect(),
                ),)*
                _ => Data::F64(vec![0.0; lanes.count]),
            }
        };
    }
    let data = products!(F64, F32, C64, C32);
    Ok(Value::tensor(Tensor::new(out, data)).into())
}

/// Converts two data to a common float variant: complex if either is complex, and single if either is single.
fn in_common(a: &Data, b: &Data, dims: Dims) -> (Tensor, Tensor) {
    let single = a.class() == Class::Single || b.class() == Class::Single;
    let complex = a.is_complex() || b.is_complex();
    let convert = |data: &Data| -> Data {
        let data = match complex {
            true => Data::C64((0..data.len()).map(|i| data.c64_at(i)).collect()),
            false => widened(&as_float(data)),
        };
        if single { super::field::narrowed(&data) } else { data }
    };
    (Tensor::new(dims.clone(), convert(a)), Tensor::new(dims, convert(b)))
}
