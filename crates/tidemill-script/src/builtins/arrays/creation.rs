//! Arrays from sizes and numbers: `zeros`, `eye`, `linspace`, `repmat`, constants, special matrices.
//!
//! In: sizes, classes, prototypes. Out: host arrays, or fills recorded on the runtime if they are big.

use crate::builtins::args::{class_word, integer, is_word, number, sizes};
use crate::builtins::numeric::operators::{cat, joined};
use crate::builtins::record::{check_shape, filled, is_big, lift, pin, record};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::display::number::{MISSING, is_missing};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail, fail_id};
use crate::value::{Class, Data, Dims, Lazy, Pinned, Tensor, Value};
use crate::vm::Interp;
use num_complex::{Complex32, Complex64};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("zeros", 0, ANY, 1, "zeros (m, n, ..., class)", "An array of zeros.", |i, a, _| {
        filled_with(i, "zeros", a, 0.0)
    }),
    row("ones", 0, ANY, 1, "ones (m, n, ..., class)", "An array of ones.", |i, a, _| filled_with(i, "ones", a, 1.0)),
    row("Inf", 0, ANY, 1, "Inf (m, n, ..., class)", "Infinity.", |i, a, _| float(i, "Inf", a, f64::INFINITY)),
    row("inf", 0, ANY, 1, "inf (m, n, ..., class)", "Infinity.", |i, a, _| float(i, "Inf", a, f64::INFINITY)),
    row("NaN", 0, ANY, 1, "NaN (m, n, ..., class)", "Not a number.", |i, a, _| float(i, "NaN", a, f64::NAN)),
    row("nan", 0, ANY, 1, "nan (m, n, ..., class)", "Not a number.", |i, a, _| float(i, "NaN", a, f64::NAN)),
    row("isna", 1, 1, 1, "isna (x)", "Whether each element is a missing value.", isna),
    row("NA", 0, ANY, 1, "NA (m, n, ..., class)", "A missing value.", |i, a, _| float(i, "NA", a, MISSING)),
    row(
        "pi",
        0,
        ANY,
        1,
        "pi (m, n, ..., class)",
        "The ratio of a circle's circumference to its diameter.",
        |i, a, _| float(i, "pi", a, std::f64::consts::PI),
    ),
    row("e", 0, ANY, 1, "e (m, n, ..., class)", "The base of natural logarithms.", |i, a, _| {
        float(i, "e", a, std::f64::consts::E)
    }),
    row("eps", 0, ANY, 1, "eps (x)", "The distance from a number to the next greater one.", eps),
    row("realmax", 0, ANY, 1, "realmax (m, n, ..., class)", "The greatest finite number.", |i, a, _| {
        by_class(i, "realmax", a, f64::MAX, f32::MAX)
    }),
    row("realmin", 0, ANY, 1, "realmin (m, n, ..., class)", "The least positive normal number.", |i, a, _| {
        by_class(i, "realmin", a, f64::MIN_POSITIVE, f32::MIN_POSITIVE)
    }),
    row("intmax", 0, 1, 1, "intmax (class)", "The greatest integer of a class.", |i, a, _| int_limit(i, "intmax", a)),
    row("intmin", 0, 1, 1, "intmin (class)", "The least integer of a class.", |i, a, _| int_limit(i, "intmin", a)),
    row("flintmax", 0, 1, 1, "flintmax (class)", "The greatest of consecutive integers in a float class.", flintmax),
    row("i", 0, ANY, 1, "i (m, n, ...)", "The imaginary unit.", imaginary),
    row("j", 0, ANY, 1, "j (m, n, ...)", "The imaginary unit.", imaginary),
    row("I", 0, ANY, 1, "I (m, n, ...)", "The imaginary unit.", imaginary),
    row("J", 0, ANY, 1, "J (m, n, ...)", "The imaginary unit.", imaginary),
    row("true", 0, ANY, 1, "true (m, n, ...)", "An array of logical ones.", |i, a, _| logical(i, "true", a, true)),
    row("false", 0, ANY, 1, "false (m, n, ...)", "An array of logical zeros.", |i, a, _| logical(i, "false", a, false)),
    row("eye", 0, 5, 1, "eye (m, n, class)", "The identity matrix.", eye),
    row("cell", 0, ANY, 1, "cell (m, n, ...)", "A cell array of empty matrices.", cell),
    row("linspace", 2, 3, 1, "linspace (start, end, n)", "Points at equal distances, both ends exact.", linspace),
    row("logspace", 2, 3, 1, "logspace (a, b, n)", "Points at equal ratios from 10^a to 10^b.", logspace),
    row("colon", 2, 3, 1, "colon (base, increment, limit)", "The range base:increment:limit.", colon),
    row("cat", 1, ANY, 1, "cat (dim, a, b, ...)", "Joins arrays along a dimension.", cat),
    row("horzcat", 0, ANY, 1, "horzcat (a, b, ...)", "Joins arrays side by side.", |i, a, _| joined(&mut i.env, 1, a)),
    row("vertcat", 0, ANY, 1, "vertcat (a, b, ...)", "Joins arrays one below the other.", |i, a, _| {
        joined(&mut i.env, 0, a)
    }),
];

/// The arguments behind the sizes: a class, a prototype, a place.
struct Form<'a> {
    sizes: &'a [Value],
    class: Option<Class>,
    like: Option<&'a Value>,
    gpu: bool,
}

/// Splits the arguments of a filling function. `wrong` makes the error for a word that is no class.
fn form<'a>(args: &'a [Value], wrong: impl Fn(&str) -> ScriptError) -> Flow<Form<'a>> {
    let words = args.iter().position(Value::is_string).unwrap_or(args.len());
    // An empty char array is a size, and no word.
    let words = if words < args.len() && args[words].is_empty() { args.len() } else { words };
    let mut form = Form { sizes: &args[..words], class: None, like: None, gpu: false };
    let mut rest = args[words..].iter();
    while let Some(word) = rest.next() {
        if is_word(word, "like") {
            let Some(proto) = rest.next() else {
                return fail!("the word 'like' must be followed by an array");
            };
            form.like = Some(proto);
        } else if is_word(word, "gpuArray") {
            form.gpu = true;
        } else {
            match class_word(word) {
                Some(class) => form.class = Some(class),
                None => return Err(wrong(&word.as_text().unwrap_or_default()).into()),
            }
        }
    }
    Ok(form)
}

impl Form<'_> {
    fn class(&self) -> Class {
        self.class.or(self.like.map(Value::class)).unwrap_or(Class::Double)
    }

    fn complex(&self) -> bool {
        self.class.is_none() && self.like.is_some_and(Value::is_complex)
    }

    fn on_device(&self) -> bool {
        self.gpu || self.like.is_some_and(Value::is_pinned)
    }
}

/// Returns an error for host arrays that do not fit into memory.
///
/// # Errors
/// Out of memory.
pub fn check_host(env: &Env, dims: &Dims, class: Class) -> Flow<()> {
    env.check_host(dims, class.bytes())
}

/// Makes an array that holds one value, in host memory or recorded.
fn fill(env: &mut Env, form: &Form<'_>, dims: Dims, value: f64) -> Flow<Value> {
    let class = form.class();
    if let Class::Cell | Class::Struct | Class::Function | Class::Char = class {
        return fail!("a prototype must be numeric or logical, not {}", class.name());
    }
    if form.on_device() && !form.complex() && class.dtype().is_some() {
        let value = record(filled(env, class, &dims, value)?, class, &[])?;
        return pin(env, value);
    }
    if !form.complex() && is_big(env, class, dims.elements()) {
        return Ok(Lazy::new(filled(env, class, &dims, value)?, class, Pinned::default(), false)?
            .filled_with(value)
            .value());
    }
    env.check_host(&dims, class.bytes() * (1 + form.complex() as usize))?;
    let n = dims.elements();
    let data = match (form.complex(), class) {
        (true, Class::Single) => Data::C32(vec![Complex32::new(value as f32, 0.0); n]),
        (true, _) => Data::C64(vec![Complex64::new(value, 0.0); n]),
        _ => Data::filled(class, value, n),
    };
    let value = Value::tensor_as_is(Tensor::new(dims, data));
    if form.on_device() { crate::builtins::system::device::pinned(env, &value) } else { Ok(value) }
}

fn filled_with(interp: &mut Interp, name: &'static str, args: &[Value], value: f64) -> Flow<Outcome> {
    if args.is_empty() {
        return Ok(Value::Num(value).into());
    }
    let form = form(args, |_| ScriptError::new("invalid data type specified"))?;
    if form.class == Some(Class::Char) {
        return fail!("{name}: invalid class name");
    }
    let dims = sizes(&interp.env, name, form.sizes)?;
    Ok(fill(&mut interp.env, &form, dims, value)?.into())
}

/// Finds the elements that mark missing values: NaN with the payload of [`MISSING`].
fn isna(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if !args[0].is_numeric() && args[0].class() != Class::Logical {
        return match &args[0] {
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
                fail!("isna: not defined for {}", crate::ops::type_name(&args[0], false))
            }
            _ => fail!("isna: argument must be numeric"),
        };
    }
    let x = interp.env.host(&args[0])?;
    let missing = (0..x.len()).map(|i| x.data.c64_at(i)).map(|z| is_missing(z.re) || is_missing(z.im));
    Ok(Value::tensor(Tensor::new(x.dims.clone(), Data::Bool(missing.collect()))).into())
}

fn float(interp: &mut Interp, name: &'static str, args: &[Value], value: f64) -> Flow<Outcome> {
    if args.is_empty() {
        return Ok(Value::Num(value).into());
    }
    by_class(interp, name, args, value, value as f32)
}

fn by_class(interp: &mut Interp, name: &'static str, args: &[Value], double: f64, single: f32) -> Flow<Outcome> {
    let wrong = || ScriptError::new(format!("{name}: invalid class name"));
    let form = form(args, |word| match Class::from_name(word) {
        Some(_) => wrong(),
        None => ScriptError::new("invalid data type specified"),
    })?;
    let class = form.class();
    if !class.is_float() {
        return Err(wrong().into());
    }
    let dims = sizes(&interp.env, name, form.sizes)?;
    let value = if class == Class::Single { single as f64 } else { double };
    Ok(fill(&mut interp.env, &form, dims, value)?.into())
}

fn logical(interp: &mut Interp, name: &'static str, args: &[Value], value: bool) -> Flow<Outcome> {
    if args.is_empty() {
        return Ok(Value::Bool(value).into());
    }
    let mut form = form(args, |_| ScriptError::new("invalid data type specified"))?;
    if let Some(class) = form.class.filter(|c| *c != Class::Logical) {
        return fail!("{name}: invalid data type '{}'", class.name());
    }
    form.class = Some(Class::Logical);
    let dims = sizes(&interp.env, name, form.sizes)?;
    Ok(fill(&mut interp.env, &form, dims, value as u8 as f64)?.into())
}

fn imaginary(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let form = form(args, |_| ScriptError::new("invalid data type specified"))?;
    let dims = sizes(&interp.env, "i", form.sizes)?;
    interp.env.check_host(&dims, size_of::<Complex64>())?;
    let n = dims.elements();
    let data = match form.class() {
        Class::Single => Data::C32(vec![Complex32::I; n]),
        _ => Data::C64(vec![Complex64::I; n]),
    };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

fn eps(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let [x] = args
        && !x.is_string()
    {
        if !x.class().is_float() {
            return fail!("eps: X must be of a floating point type");
        }
        let host = interp.env.host(x)?;
        let data = match &*host.data {
            Data::F32(v) => Data::F32(v.iter().map(|&x| spacing_f32(x)).collect()),
            Data::C32(v) => Data::F32(v.iter().map(|x| spacing_f32(x.norm())).collect()),
            Data::C64(v) => Data::F64(v.iter().map(|x| spacing(x.norm())).collect()),
            other => Data::F64(other.to_f64().into_iter().map(spacing).collect()),
        };
        return Ok(Value::tensor(Tensor::new(host.dims.clone(), data)).into());
    }
    by_class(interp, "eps", args, f64::EPSILON, f32::EPSILON)
}

/// Returns the distance from `|x|` to the next greater double.
fn spacing(x: f64) -> f64 {
    let x = x.abs();
    if x.is_nan() || x.is_infinite() {
        f64::NAN
    } else if x < f64::MIN_POSITIVE {
        f64::from_bits(1)
    } else {
        let bits = x.to_bits().min(f64::MAX.to_bits() - 1);
        f64::from_bits(bits + 1) - f64::from_bits(bits)
    }
}

fn spacing_f32(x: f32) -> f32 {
    let x = x.abs();
    if x.is_nan() || x.is_infinite() {
        f32::NAN
    } else if x < f32::MIN_POSITIVE {
        f32::from_bits(1)
    } else {
        let bits = x.to_bits().min(f32::MAX.to_bits() - 1);
        // For the greatest number, this is the spacing of its binade.
        f32::from_bits(bits + 1) - f32::from_bits(bits)
    }
}

fn int_limit(interp: &mut Interp, name: &'static str, args: &[Value]) -> Flow<Outcome> {
    let _ = interp;
    let class = match args {
        [] => Class::Int32,
        [word] if word.is_string() => {
            let text = word.as_text().unwrap_or_default();
            match Class::from_name(&text).filter(|c| c.is_integer()) {
                Some(class) => class,
                None => return fail!("{name}: not defined for '{text}' objects"),
            }
        }
        [x, ..] if x.class().is_integer() => x.class(),
        _ => return fail!("{name}: argument must be a string or integer variable"),
    };
    let (least, greatest) = class.integer_range().unwrap_or_default();
    let data = match (class, name == "intmax") {
        // A double cannot hold these exactly.
        (Class::Int64, max) => Data::I64(vec![if max { i64::MAX } else { i64::MIN }]),
        (Class::Uint64, max) => Data::U64(vec![if max { u64::MAX } else { 0 }]),
        (class, max) => Data::filled(class, if max { greatest } else { least } as f64, 1),
    };
    Ok(Value::tensor(Tensor::scalar(data)).into())
}

fn flintmax(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let class = match args {
        [] => Class::Double,
        [word] if word.is_string() => match class_word(word).filter(|c| c.is_float()) {
            Some(class) => class,
            None => return fail!("flintmax: not defined for class '{}'", word.as_text().unwrap_or_default()),
        },
        [x, ..] if x.class().is_float() => x.class(),
        [_, ..] => return fail!("flintmax: argument must be a string or floating point variable"),
    };
    Ok(match class {
        Class::Single => Value::tensor(Tensor::scalar(Data::F32(vec![16_777_216.0]))),
        _ => Value::Num(9_007_199_254_740_992.0),
    }
    .into())
}

fn eye(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let form = form(args, |_| ScriptError::new("invalid data type specified"))?;
    if form.sizes.len() > 2 {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to eye");
    }
    let dims = sizes(&interp.env, "eye", form.sizes)?;
    if dims.len() > 2 {
        return fail!("eye (A): use eye (size (A)) instead");
    }
    let (env, class) = (&mut interp.env, form.class());
    let (rows, columns, n) = (dims.rows(), dims.columns(), dims.rows().min(dims.columns()));
    if let Some(dtype) = class.dtype()
        && (form.on_device() || is_big(env, class, dims.elements()))
    {
        let whole = Dims::new(&[rows.max(columns), rows.max(columns)]);
        check_shape(env, &whole)?;
        let square = env.session.eye::<bool>(whole.rows()).cast_to(dtype);
        let part = if rows == columns { square } else { square.slice((0..rows, 0..columns)) };
        let value = record(part, class, &[])?;
        return Ok(if form.on_device() { pin(env, value)? } else { value }.into());
    }
    check_host(env, &dims, class)?;
    let mut data = Data::zeros(class, rows * columns);
    let one = Data::filled(class, 1.0, 1);
    for k in 0..n {
        set(&mut data, k * rows + k, &one, 0);
    }
    let value = Value::tensor(Tensor::new(dims, data).diagonal());
    Ok(if form.on_device() { crate::builtins::system::device::pinned(env, &value)? } else { value }.into())
}

/// Sets `to[at] = from[i]` if both are of one variant; otherwise does nothing.
pub fn set(to: &mut Data, at: usize, from: &Data, i: usize) {
    macro_rules! pairs {
        ($($variant:ident),*) => {
            match (to, from) {
                $((Data::$variant(to), Data::$variant(from)) => to[at] = from[i],)*
                _ => {}
            }
        };
    }
    pairs!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool, C64, C32);
}

fn cell(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let dims = match args {
        [] => Dims::zero(),
        [one] if one.is_empty() && !one.is_char() => Dims::zero(),
        [one] if one.is_string() => return fail!("invalid conversion from string to real N-D array"),
        many if many.iter().any(Value::is_string) => return fail!("cell: dimension must be a scalar integer"),
        _ => sizes(&interp.env, "cell", args)?,
    };
    check_host(&interp.env, &dims, Class::Double)?;
    if dims.elements() > 1 << 30 {
        return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
    }
    let items = vec![Value::empty(); dims.elements()];
    Ok(Value::cell(dims, items).into())
}

fn linspace(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let count = match args.get(2) {
        None => 100.0,
        Some(n) if n.is_empty() => 1.0,
        Some(n) if n.len() != 1 => return fail!("linspace: N must be a scalar"),
        Some(n) => number(&interp.env, "linspace", n)?,
    };
    let n = if count >= 1.0 { integer(count.floor())? as usize } else { 0 };
    if args[..2].iter().any(Value::is_char) {
        return fail!("invalid conversion from string to real N-D array");
    }
    let (first, last) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    let vector = |t: &Tensor| t.dims.is_vector() && !t.is_empty();
    if !vector(&first) || !vector(&last) {
        return fail!("linspace: START, END must be scalars or vectors");
    }
    let rows = match (first.len(), last.len()) {
        (a, b) if a == b => a,
        (1, b) => b,
        (a, 1) => a,
        _ => return fail!("linspace: vectors must be of equal length"),
    };
    let class =
        if [&first, &last].iter().any(|t| t.data.class() == Class::Single) { Class::Single } else { Class::Double };
    let complex = first.data.is_complex() || last.data.is_complex();
    let dims = Dims::new(&[rows, n]);
    let finite = [&first, &last].iter().all(|t| t.data.f64_at(0).is_finite());
    if rows == 1 && !complex && finite && is_big(&interp.env, class, n) {
        check_shape(&interp.env, &dims)?;
        let (a, b) = (first.data.f64_at(0), last.data.f64_at(0));
        let array = match class {
            Class::Single => interp.env.session.linspace(a as f32, b as f32, n),
            _ => interp.env.session.linspace(a, b, n),
        };
        return Ok(record(array, class, &[])?.into());
    }
    check_host(&interp.env, &dims, Class::Double)?;
    let mut out = vec![Complex64::ZERO; rows * n];
    for row in 0..rows {
        let (a, b) = (first.data.c64_at(row.min(first.len() - 1)), last.data.c64_at(row.min(last.len() - 1)));
        let mirrored = rows == 1;
        let points: Vec<Complex64> = match (complex, class) {
            (true, _) => points(a, b, n, mirrored, |x, k| x * k, |x, k| x / k),
            (_, Class::Single) => {
                points(a.re as f32, b.re as f32, n, mirrored, |x, k| x * k as f32, |x, k| x / k as f32)
                    .into_iter()
                    .map(|x| Complex64::from(x as f64))
                    .collect()
            }
            _ => points(a.re, b.re, n, mirrored, |x, k| x * k, |x, k| x / k).into_iter().map(Complex64::from).collect(),
        };
        points.into_iter().enumerate().for_each(|(k, z)| out[k * rows + row] = z);
    }
    let data = match (complex, class) {
        (true, Class::Single) => Data::C32(out.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()),
        (true, _) => Data::C64(out),
        (_, Class::Single) => Data::F32(out.iter().map(|z| z.re as f32).collect()),
        _ => Data::F64(out.iter().map(|z| z.re).collect()),
    };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

/// Returns `n` points from `a` to `b`. With `mirrored`, they are computed from both ends, so that they are symmetric.
fn points<T>(a: T, b: T, n: usize, mirrored: bool, times: impl Fn(T, f64) -> T, over: impl Fn(T, f64) -> T) -> Vec<T>
where
    T: Copy + Default + PartialEq + std::ops::Add<Output = T> + std::ops::Sub<Output = T> + std::ops::Neg<Output = T>,
{
    if n < 2 {
        return vec![b; n];
    }
    let step = over(b - a, (n - 1) as f64);
    let mut out = vec![b; n];
    if !mirrored {
        (1..n - 1).for_each(|k| out[k] = a + times(step, k as f64));
        out[0] = a;
        return out;
    }
    for k in 0..n.div_ceil(2) {
        out[k] = a + times(step, k as f64);
        out[n - 1 - k] = b - times(step, k as f64);
    }
    (out[0], out[n - 1]) = (a, b);
    if n % 2 == 1 && n > 2 {
        out[n / 2] = if a == -b { T::default() } else { over(a + b, 2.0) };
    }
    out
}

fn logspace(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    if args.iter().any(|v| v.len() != 1) {
        return fail!("logspace: arguments A, B, and N must be scalars");
    }
    let n = match args.get(2) {
        None => 50.0,
        Some(n) => number(&interp.env, "logspace", n)?,
    };
    let n = if n >= 1.0 { integer(n.floor())? as usize } else { 0 };
    let (a, b) = (interp.env.host(&args[0])?, interp.env.host(&args[1])?);
    check_host(&interp.env, &Dims::new(&[1, n]), Class::Double)?;
    let (a, mut b) = (a.data.f64_at(0), b.data.f64_at(0));
    let to_pi = b == std::f64::consts::PI;
    if to_pi {
        b = std::f64::consts::PI.log10();
    }
    let values: Vec<f64> =
        points(a, b, n, true, |x, k| x * k, |x, k| x / k).into_iter().map(|x| libm::pow(10.0, x)).collect();
    Ok(Value::row(values).into())
}

fn colon(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    Ok(match args {
        [first, last] => crate::ops::range(env, first, None, last)?,
        [first, step, last] => crate::ops::range(env, first, Some(step), last)?,
        _ => return fail_id!("Octave:invalid-fun-call", "Invalid call to colon"),
    }
    .into())
}

/// Returns a value in another class of the runtime, whether it is a host array or recorded.
pub fn in_class(env: &Env, value: &Value, class: Class) -> Flow<Value> {
    if value.class() == class {
        return Ok(value.clone());
    }
    if let (Value::Lazy(_), Some(dtype)) = (value, class.dtype())
        && let Some(array) = lift(env, value)?
    {
        return record(array.cast_to(dtype), class, &[value]);
    }
    let host = env.host(value)?;
    Ok(Value::tensor(Tensor::new(host.dims.clone(), host.data.converted(class))))
}
