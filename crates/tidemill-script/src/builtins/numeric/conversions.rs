//! Conversions to other classes: `double (x)`, `int8 (x)`, `logical (x)`, `cast`, `typecast`, `complex`.

use crate::builtins::{Builtin, Outcome, Reach, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::{self, Elements, Host, lazy, type_name};
use crate::value::tensor::each_data;
use crate::value::{Class, Data, Dims, Pinned, Tensor, Value};
use crate::vm::Interp;
use num_complex::{Complex32, Complex64};

/// A row of a conversion.
macro_rules! to {
    ($name:literal, $class:ident, $summary:literal) => {
        Builtin {
            name: $name,
            args_min: 1,
            args_max: 1,
            outputs_max: 1,
            reach: Reach::Script,
            usage: concat!($name, " (x)"),
            summary: $summary,
            run: |i, a, _| Ok(converted(&mut i.env, &a[0], Class::$class)?.into()),
        }
    };
}

/// The functions.
pub static ROWS: &[Builtin] = &[
    to!("double", Double, "As double."),
    to!("single", Single, "As single."),
    to!("logical", Logical, "Whether each element is not zero."),
    to!("int8", Int8, "As 8-bit integers."),
    to!("int16", Int16, "As 16-bit integers."),
    to!("int32", Int32, "As 32-bit integers."),
    to!("int64", Int64, "As 64-bit integers."),
    to!("uint8", Uint8, "As unsigned 8-bit integers."),
    to!("uint16", Uint16, "As unsigned 16-bit integers."),
    to!("uint32", Uint32, "As unsigned 32-bit integers."),
    to!("uint64", Uint64, "As unsigned 64-bit integers."),
    row(
        "cast",
        2,
        3,
        1,
        "cast (x, class)  or  cast (x, 'like', y)",
        "In the class that a word or a value names.",
        cast,
    ),
    row("typecast", 2, 2, 1, "typecast (x, class)", "The same bytes as elements of another class.", typecast),
    row("complex", 1, 2, 1, "complex (re, im)", "A complex number, also where its imaginary part is 0.", complex),
];

/// Converts a value to another class; large arrays are converted on the runtime.
fn converted(env: &mut Env, value: &Value, class: Class) -> Flow<Value> {
    let host = matches!(value, Value::Tensor(_)) && !value.is_complex();
    let keeps = value.class() == class || value.class() == Class::Char && class == Class::Logical;
    if host && !keeps && class.dtype().is_some() && value.len() > env.options.host_elements_max {
        let own = if value.class().dtype().is_some() { value.class() } else { class };
        let Value::Lazy(l) = lazy::record(env, lazy::lift(env, value, own)?, own, Pinned::default(), false)? else {
            return ops::cast(env, value, class);
        };
        return lazy::cast(env, &l, class);
    }
    Ok(crate::builtins::arrays::shape::narrowed(crate::builtins::arrays::shape::without_range(ops::cast(
        env, value, class,
    )?)))
}

fn cast(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let value = &args[0];
    if !matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_)) {
        return fail!("cast: type conversion from '{}' is not supported", value.class_name());
    }
    if let [_, word, like] = args {
        if !crate::builtins::args::is_word(word, "like") {
            return fail!("Invalid call to cast");
        }
        if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = like {
            return fail!("cast: type conversion to '{}' is not supported", like.class_name());
        }
        let result = converted(env, value, like.class())?;
        return match like.is_complex() && !result.is_complex() {
            true => Ok(with_parts(env, &result, None)?.into()),
            false => Ok(result.into()),
        };
    }
    let Some(name) = args[1].as_text() else { return fail!("cast: TYPE must be a string") };
    match Class::from_name(&name) {
        Some(class) => Ok(converted(env, value, class)?.into()),
        None => fail!("cast: type conversion to '{name}' is not supported"),
    }
}

fn complex(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    if let [x] = args {
        if !x.class().is_float() && x.class() != Class::Logical {
            return fail!("complex: invalid conversion");
        }
        return Ok(with_parts(env, x, None)?.into());
    }
    for x in args {
        match x.class() {
            Class::Char => return fail!("invalid conversion from string to real scalar"),
            class if !class.is_numeric() && class != Class::Logical => {
                return fail!("complex: wrong type argument '{}'", type_name(x, false));
            }
            _ => {}
        }
    }
    Ok(with_parts(env, &args[0], Some(&args[1]))?.into())
}

/// Returns complex numbers with these parts.
fn with_parts(env: &Env, re: &Value, im: Option<&Value>) -> Flow<Value> {
    let zero = Value::Num(0.0);
    let (a, b) = Host::pair(env, re, im.unwrap_or(&zero))?;
    let single = a.class() == Class::Single || im.is_some() && b.class() == Class::Single;
    let dims = match (a.len(), b.len()) {
        _ if a.dims() == b.dims() => Dims::new(a.dims()),
        (_, 1) => Dims::new(a.dims()),
        (1, _) => Dims::new(b.dims()),
        _ => return fail!("complex: dimension mismatch"),
    };
    env.check_host(&dims, if single { size_of::<Complex32>() } else { size_of::<Complex64>() })?;
    // This reads single elements, so that nothing but the result is allocated.
    let at = |host: &Host<'_>, i: usize| match host.elements() {
        Elements::Number(x) => Complex64::new(*x, 0.0),
        Elements::Truth(x) => Complex64::new(*x as u8 as f64, 0.0),
        Elements::Data(data) => data.c64_at(if data.len() == 1 { 0 } else { i }),
    };
    let z = |i: usize| match im {
        Some(_) => Complex64::new(at(&a, i).re, at(&b, i).re),
        None => at(&a, i),
    };
    let all = 0..dims.elements();
    let data = match single {
        true => Data::C32(all.map(z).map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()),
        false => Data::C64(all.map(z).collect()),
    };
    Ok(Value::tensor_as_is(Tensor::new(dims, data)))
}

fn typecast(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    if !matches!(args[0], Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_)) {
        return fail!("typecast: invalid input CLASS: {}", args[0].class_name());
    }
    let host = env.host(&args[0])?;
    env.check_host(&host.dims, 2 * host.data.class().bytes())?;
    let bytes = bytes_of(&host.data);
    let name = args[1].as_text().unwrap_or_default();
    let (plain, complex) = match name.strip_suffix(" complex") {
        Some(plain @ ("single" | "double")) => (plain, true),
        _ => (name.as_str(), false),
    };
    let Some(class) = Class::from_name(plain).filter(|c| *c != Class::Logical || bytes.iter().all(|&b| b < 2)) else {
        return fail!("typecast: cannot convert to {name} class");
    };
    if class == Class::Logical && host.data.class() != Class::Logical {
        return fail!("typecast: cannot convert to {name} class");
    }
    let paired = |data: Data| match data {
        data if !complex => Some(data),
        data if data.len() % 2 != 0 => None,
        Data::F32(v) => Some(Data::C32(v.chunks_exact(2).map(|z| Complex32::new(z[0], z[1])).collect())),
        data => Some(Data::C64(data.to_f64().chunks_exact(2).map(|z| Complex64::new(z[0], z[1])).collect())),
    };
    let Some(data) = of_bytes(class, &bytes).and_then(paired) else {
        return fail!("typecast: incorrect number of input values to make output value");
    };
    let n = data.len();
    let dims = if host.dims.len() == 2 && host.dims.rows() == 1 { [1, n] } else { [n, 1] };
    let dims = if host.dims == Dims::zero() { [0, 0] } else { dims };
    Ok(Value::tensor(Tensor::new(Dims::new(&dims), data)).into())
}

/// Returns the bytes of elements, in the machine's order.
pub fn bytes_of(data: &Data) -> Vec<u8> {
    trait Bytes: Copy {
        fn bytes(self, out: &mut Vec<u8>);
    }
    macro_rules! bytes {
        ($($t:ty),*) => {$(
            impl Bytes for $t {
                fn bytes(self, out: &mut Vec<u8>) {
                    out.extend_from_slice(&self.to_ne_bytes());
                }
            }
        )*};
    }
    bytes!(f64, f32, i8, i16, i32, i64, u8, u16, u32, u64);
    impl Bytes for bool {
        fn bytes(self, out: &mut Vec<u8>) {
            out.push(self as u8);
        }
    }
    impl Bytes for Complex64 {
        fn bytes(self, out: &mut Vec<u8>) {
            self.re.bytes(out);
            self.im.bytes(out);
        }
    }
    impl Bytes for Complex32 {
        fn bytes(self, out: &mut Vec<u8>) {
            self.re.bytes(out);
            self.im.bytes(out);
        }
    }
    let mut out = Vec::new();
    each_data!(data, v => v.iter().for_each(|x| x.bytes(&mut out)));
    out
}

/// Returns elements of a class from their bytes, in the machine's order; `None` if the last element is incomplete.
pub fn of_bytes(class: Class, bytes: &[u8]) -> Option<Data> {
    macro_rules! all {
        ($variant:ident, $t:ty) => {{
            let parts = bytes.chunks_exact(size_of::<$t>());
            if !parts.remainder().is_empty() {
                return None;
            }
            Data::$variant(parts.filter_map(|p| Some(<$t>::from_ne_bytes(p.try_into().ok()?))).collect())
        }};
    }
    Some(match class {
        Class::Double => all!(F64, f64),
        Class::Single => all!(F32, f32),
        Class::Int8 => all!(I8, i8),
        Class::Int16 => all!(I16, i16),
        Class::Int32 => all!(I32, i32),
        Class::Int64 => all!(I64, i64),
        Class::Uint8 => all!(U8, u8),
        Class::Uint16 => all!(U16, u16),
        Class::Uint32 => all!(U32, u32),
        Class::Uint64 => all!(U64, u64),
        Class::Char => Data::Char(bytes.to_vec()),
        Class::Logical => Data::Bool(bytes.iter().map(|&b| b != 0).collect()),
        _ => return None,
    })
}
