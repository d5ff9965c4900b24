//! Queries about values: classes, shapes, equality.
//!
//! In: values. Out: truth values. Only equality and the forms of matrices read elements.

use crate::builtins::args::{self, is_word};
use crate::builtins::record::awaited;
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::map::Key;
use crate::value::total::total;
use crate::value::{Class, Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use futures::FutureExt;
use num_complex::Complex64;
use rustc_hash::FxHashSet;
use std::sync::Arc;

macro_rules! question {
    ($name:literal, $summary:literal, $test:expr) => {
        row($name, 1, 1, 1, $name, $summary, |_, args, _| {
            let test: fn(&Value) -> bool = $test;
            Ok(Value::Bool(test(&args[0])).into())
        })
    };
}

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("class", 1, 1, 1, "class (x)", "The name of a value's class.", |i, a, _| {
        Ok(Value::from(shown_class(i, &a[0])).into())
    }),
    row(
        "isUnderlyingType",
        2,
        2,
        1,
        "isUnderlyingType (x, name)",
        "Whether an array's elements are of a class.",
        |_, a, _| match a[1].as_text() {
            Some(name) => Ok(Value::Bool(a[0].class_name() == name).into()),
            None => fail!("isUnderlyingType: the name of a class must be a string"),
        },
    ),
    row("underlyingType", 1, 1, 1, "underlyingType (x)", "The class of an array's elements.", |_, a, _| {
        Ok(Value::from(a[0].class_name()).into())
    }),
    row("classUnderlying", 1, 1, 1, "classUnderlying (x)", "The class of an array's elements.", |_, a, _| {
        Ok(Value::from(a[0].class_name()).into())
    }),
    row("isa", 2, 2, 1, "isa (x, classname)", "Whether a value is of a class or category.", isa),
    question!("isscalar", "Whether a value has one element.", |x| x.len() == 1),
    question!("isvector", "Whether a value is a row or a column.", |x| {
        let d = x.dims();
        d.len() == 2 && (d.rows() == 1 || d.columns() == 1)
    }),
    question!("ismatrix", "Whether a value has two dimensions.", |x| x.dims().len() == 2),
    question!("isrow", "Whether a value is a row.", |x| x.dims().len() == 2 && x.dims().rows() == 1),
    question!("iscolumn", "Whether a value is a column.", |x| x.dims().len() == 2 && x.dims().columns() == 1),
    question!("issquare", "Whether a value has as many rows as columns.", |x| {
        x.dims().len() == 2 && x.dims().rows() == x.dims().columns()
    }),
    question!("isnumeric", "Whether a value is a float or integer array.", Value::is_numeric),
    question!("isreal", "Whether a value is an array without imaginary parts.", is_real),
    question!("iscomplex", "Whether a value has imaginary parts.", Value::is_complex),
    question!("isfloat", "Whether a value is double or single.", |x| x.class().is_float()),
    question!("isinteger", "Whether a value is of an integer class.", |x| x.class().is_integer()),
    question!("islogical", "Whether a value is logical.", |x| x.class() == Class::Logical),
    question!("isbool", "Whether a value is logical.", |x| x.class() == Class::Logical),
    question!("ischar", "Whether a value is a char array.", |x| x.is_char()),
    question!("iscell", "Whether a value is a cell array.", |x| matches!(x, Value::Cell(_))),
    question!("isstruct", "Whether a value is a struct.", |x| matches!(x, Value::Struct(s) if s.class.is_none())),
    question!("isobject", "Whether a value is an object.", |x| {
        matches!(x, Value::Map(_) | Value::Parser(_)) || matches!(x, Value::Struct(s) if s.class.is_some())
    }),
    question!("iscellstr", "Whether a value is a cell array of strings.", |x| {
        matches!(x, Value::Cell(c) if c.items.iter().all(Value::is_string))
    }),
    question!("is_function_handle", "Whether a value is a function handle.", |x| matches!(x, Value::Function(_))),
    row("isequal", 2, ANY, 1, "isequal (a, b, ...)", "Whether values are equal.", |i, a, _| equal(i, a, false)),
    row("isequaln", 2, ANY, 1, "isequaln (a, b, ...)", "Whether values are equal, NaN to NaN.", |i, a, _| {
        equal(i, a, true)
    }),
    row("size_equal", 0, ANY, 1, "size_equal (a, b, ...)", "Whether the dimensions of values agree.", |_, a, _| {
        Ok(Value::Bool(a.windows(2).all(|p| p[0].dims() == p[1].dims())).into())
    }),
    row("sizeof", 1, 1, 1, "sizeof (x)", "The bytes that a value's elements take.", |_, a, _| {
        Ok(Value::from(bytes_of(&a[0])).into())
    }),
    row("isindex", 1, 2, 1, "isindex (x, n)", "Whether a value is a valid index.", isindex),
    row("isdiag", 1, 1, 1, "isdiag (a)", "Whether a matrix is diagonal.", |i, a, _| banded(i, a, Some(0), Some(0))),
    row("istril", 1, 1, 1, "istril (a)", "Whether a matrix is lower triangular.", |i, a, _| {
        banded(i, a, None, Some(0))
    }),
    row("istriu", 1, 1, 1, "istriu (a)", "Whether a matrix is upper triangular.", |i, a, _| {
        banded(i, a, Some(0), None)
    }),
    row("isbanded", 3, 3, 1, "isbanded (a, lower, upper)", "Whether a matrix has only these diagonals.", isbanded),
    row("issymmetric", 1, 3, 1, "issymmetric (a, \"skew\", tol)", "Whether a matrix is symmetric.", |i, a, _| {
        symmetric(i, "issymmetric", a)
    }),
    row("ishermitian", 1, 3, 1, "ishermitian (a, \"skew\", tol)", "Whether a matrix is Hermitian.", |i, a, _| {
        symmetric(i, "ishermitian", a)
    }),
];

fn is_array(x: &Value) -> bool {
    matches!(x, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_))
}

pub fn is_real(x: &Value) -> bool {
    is_array(x) && !x.is_complex()
}

/// Returns the class that `class` shows: `dlarray`, or `gpuArray` for arrays that a script has put on the device. Functions of the
/// library get the real class, in which they compute.
fn shown_class<'v>(interp: &Interp, x: &'v Value) -> &'v str {
    match x.pinned() {
        pinned if !pinned.any() || interp.in_library() => x.class_name(),
        pinned if pinned.is_dlarray => "dlarray",
        _ => "gpuArray",
    }
}

fn isa(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let x = &args[0];
    let shown = shown_class(interp, x);
    let is = |name: &[u8]| {
        let class = x.class();
        match name {
            b"float" => class.is_float(),
            b"integer" => class.is_integer(),
            b"numeric" => class.is_numeric(),
            b"handle" => matches!(class, Class::Map | Class::Parser),
            name => name == shown.as_bytes() || name == b"gpuArray" && x.is_pinned(),
        }
    };
    Ok(match &args[1] {
        Value::Cell(names) => {
            let Some(found) = names.items.iter().map(|n| n.as_bytes().map(is)).collect::<Option<Vec<bool>>>() else {
                return fail!("isa: CLASSNAME must be a string or cell array of strings");
            };
            Value::tensor(Tensor::new(names.dims.clone(), Data::Bool(found)))
        }
        name => match name.as_bytes() {
            Some(name) => Value::Bool(is(name)),
            None => return fail!("isa: CLASSNAME must be a string or cell array of strings"),
        },
    }
    .into())
}

pub fn bytes_of(x: &Value) -> usize {
    total(x, &own_bytes)
}

fn own_bytes(x: &Value) -> usize {
    let width = |class: Class| match class {
        Class::Double | Class::Int64 | Class::Uint64 => 8,
        Class::Single | Class::Int32 | Class::Uint32 => 4,
        Class::Int16 | Class::Uint16 => 2,
        Class::Function => 0,
        _ => 1,
    };
    match x {
        Value::Cell(_) | Value::Struct(_) => 0,
        Value::Function(_) | Value::Map(_) | Value::Parser(_) | Value::Colon => 0,
        other => other.len() * width(other.class()) * if other.is_complex() { 2 } else { 1 },
    }
}

fn equal(interp: &mut Interp, args: &[Value], nan_equal: bool) -> Flow<Outcome> {
    let env = &mut interp.env;
    // Two big arrays are compared on the runtime, and only the answer is gathered.
    if let [Value::Lazy(a), Value::Lazy(b)] = args
        && a.dims == b.dims
        && a.host.get().is_none()
        && b.host.get().is_none()
        && !a.dims.contains(&0)
    {
        let same = a.array.eq_to(&b.array);
        let same = match nan_equal {
            true => same.select(true, &(a.array.isnan() & b.array.isnan())),
            false => same,
        };
        let answer = awaited(env, || {
            let item = same.all(..).item::<bool>();
            Ok(async move { Ok(Value::Bool(item.await?)) }.boxed())
        })?;
        return Ok(answer.into());
    }
    // If the shapes differ, the values are not needed.
    if args.windows(2).any(|p| p[0].dims() != p[1].dims()) {
        return Ok(Value::Bool(false).into());
    }
    env.host_all(args)?;
    let mut known = FxHashSet::default();
    for pair in args.windows(2) {
        if !same(env, &pair[0], &pair[1], nan_equal, 0, &mut known)? {
            return Ok(Value::Bool(false).into());
        }
    }
    Ok(Value::Bool(true).into())
}

/// The depth to which containers are compared; maps may contain themselves.
const DEPTH_MAX: usize = 300;

/// Whether two values are equal, ignoring their classes. All host values were awaited before. `known` holds pairs of
/// containers with several holders that were found equal.
fn same(env: &Env, a: &Value, b: &Value, nan_equal: bool, depth: usize, known: &mut Pairs) -> Flow<bool> {
    if depth > DEPTH_MAX {
        return fail!("isequal: values are nested too deep, or hold themselves");
    }
    if a.dims() != b.dims() {
        return Ok(false);
    }
    let pair = shared_pair(a, b);
    if pair.is_some_and(|pair| known.contains(&pair)) {
        return Ok(true);
    }
    let mut all = |a: &[Value], b: &[Value]| -> Flow<bool> {
        for (x, y) in a.iter().zip(b) {
            if !same(env, x, y, nan_equal, depth + 1, known)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let equal = match (a, b) {
        (Value::Cell(a), Value::Cell(b)) => all(&a.items, &b.items)?,
        (Value::Struct(a), Value::Struct(b)) => {
            let fields = |s: &StructArray| s.fields.len();
            if fields(a) != fields(b) {
                return Ok(false);
            }
            for (name, values) in &a.fields {
                match b.fields.get(name) {
                    Some(others) if all(values, others)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) if Arc::ptr_eq(a, b) => true,
        (Value::Parser(a), Value::Parser(b)) => Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) => {
            let (a, b) = (a.entries(), b.entries());
            let values = |e: &[(Key, Value)]| e.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>();
            a.iter().map(|(k, _)| k).eq(b.iter().map(|(k, _)| k)) && all(&values(&a), &values(&b))?
        }
        (Value::Function(a), Value::Function(b)) => crate::ops::same_function(a, b),
        (a, b) if is_array(a) && is_array(b) => {
            let (a, b) = (env.host(a)?, env.host(b)?);
            same_data(&a.data, &b.data, nan_equal)
        }
        _ => false,
    };
    if let (Some(pair), true) = (pair, equal) {
        known.insert(pair);
    }
    Ok(equal)
}

/// The addresses of two containers.
type Pairs = FxHashSet<(*const (), *const ())>;

/// Returns the addresses of two containers, if each has several holders.
fn shared_pair(a: &Value, b: &Value) -> Option<(*const (), *const ())> {
    fn place<T>(shared: &Arc<T>) -> Option<*const ()> {
        (Arc::strong_count(shared) > 1).then(|| Arc::as_ptr(shared).cast())
    }
    match (a, b) {
        (Value::Cell(a), Value::Cell(b)) => Some((place(a)?, place(b)?)),
        (Value::Struct(a), Value::Struct(b)) => Some((place(a)?, place(b)?)),
        _ => None,
    }
}

fn same_data(a: &Data, b: &Data, nan_equal: bool) -> bool {
    if a == b {
        return true;
    }
    let single = a.class() == Class::Single || b.class() == Class::Single;
    let whole = |d: &Data| d.class().is_integer();
    (0..a.len().min(b.len())).all(|i| {
        if whole(a) && whole(b) {
            // This compares exactly, even integers that doubles cannot hold.
            return integer_at(a, i) == integer_at(b, i);
        }
        let (x, y) = (a.c64_at(i), b.c64_at(i));
        let near = |z: Complex64| match single && !whole(a) && !whole(b) {
            true => Complex64::new(z.re as f32 as f64, z.im as f32 as f64),
            false => z,
        };
        near(x) == near(y) || nan_equal && x.is_nan() && y.is_nan()
    })
}

fn integer_at(data: &Data, i: usize) -> i128 {
    match data {
        Data::I64(v) => v[i] as i128,
        Data::U64(v) => v[i] as i128,
        other => other.f64_at(i) as i128,
    }
}

fn isindex(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let most = match args.get(1) {
        Some(n) => args::number(env, "isindex", n)?,
        None => f64::INFINITY,
    };
    let valid = match &args[0] {
        x if !is_array(x) || x.is_complex() => false,
        x if x.class() == Class::Logical => x.len() as f64 <= most,
        x => {
            let host = env.host(x)?;
            (0..host.len()).map(|i| host.data.f64_at(i)).all(|v| v >= 1.0 && v == v.trunc() && v <= most && v < 9.3e18)
        }
    };
    Ok(Value::Bool(valid).into())
}

/// Whether all elements outside of these diagonals are zero; `None` means no limit.
fn banded(interp: &mut Interp, args: &[Value], lower: Option<usize>, upper: Option<usize>) -> Flow<Outcome> {
    let x = &args[0];
    let fits = is_array(x) && !x.is_char() && x.dims().len() == 2;
    if !fits {
        return Ok(Value::Bool(false).into());
    }
    let host = interp.env.host(x)?;
    let rows = host.dims.rows().max(1);
    let zero = |i: usize| host.data.c64_at(i) == Complex64::ZERO;
    let inside = |i: usize| {
        let (r, c) = (i % rows, i / rows);
        lower.is_none_or(|l| r <= c.saturating_add(l)) && upper.is_none_or(|u| c <= r.saturating_add(u))
    };
    Ok(Value::Bool((0..host.len()).all(|i| inside(i) || zero(i))).into())
}

fn isbanded(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    if args[0].is_empty() && is_array(&args[0]) {
        return Ok(Value::empty().into());
    }
    let mut limits = [0usize; 2];
    for (limit, arg) in limits.iter_mut().zip(&args[1..]) {
        let n = if arg.len() == 1 { args::number(env, "isbanded", arg)? } else { f64::NAN };
        if !(n >= 0.0 && n == n.trunc()) {
            return fail!("isbanded: LOWER and UPPER must be non-negative integers");
        }
        *limit = n as usize;
    }
    banded(interp, args, Some(limits[0]), Some(limits[1]))
}

fn symmetric(interp: &mut Interp, name: &str, args: &[Value]) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    env.host_all(args)?;
    let (mut tolerance, mut skew) = (0.0, false);
    for option in &args[1..] {
        match option {
            word if is_word(word, "skew") => skew = true,
            word if is_word(word, "nonskew") => {}
            t if t.len() == 1 && is_array(t) && !t.is_char() => tolerance = args::number(env, name, t)?,
            t if t.is_string() => return fail!("{name}: second argument must be \"skew\", \"nonskew\" or TOL"),
            _ => tolerance = f64::NAN,
        }
        if tolerance.is_nan() || tolerance < 0.0 {
            return fail_id!("Octave:invalid-fun-call", "{name}: TOL must be a scalar >= 0");
        }
    }
    let hermitian = name == "ishermitian";
    if hermitian && (!is_array(x) || x.is_char()) {
        return Ok(Value::Bool(false).into());
    }
    if !is_array(x) {
        return fail!("{name}: A must be a numeric, logical, or character matrix");
    }
    let host = env.host(x)?;
    let dims: &Dims = &host.dims;
    if dims.len() != 2 || dims.rows() != dims.columns() {
        return Ok(Value::Bool(false).into());
    }
    let n = dims.rows();
    let at = |r: usize, c: usize| host.data.c64_at(c * n + r);
    let mirrored = |r: usize, c: usize| {
        let z = if hermitian { at(c, r).conj() } else { at(c, r) };
        if skew { -z } else { z }
    };
    let answer = if tolerance == 0.0 {
        (0..n).all(|c| (0..=c).all(|r| at(r, c) == mirrored(r, c)))
    } else {
        // The greatest sum of differences in a row, relative to the greatest sum of elements.
        let norm =
            |f: &dyn Fn(usize, usize) -> f64| (0..n).map(|r| (0..n).map(|c| f(r, c)).sum::<f64>()).fold(0.0, f64::max);
        norm(&|r, c| (at(r, c) - mirrored(r, c)).norm()) / norm(&|r, c| at(r, c).norm()) <= tolerance
    };
    Ok(Value::Bool(answer).into())
}
