//! Bitwise functions of integers, and of doubles that hold integers.

use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::{self, Elements, Host, Side, in_class, in_wide_class, zip};
use crate::value::blocks::{BLOCK, Joined};
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use std::borrow::Cow;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("bitand", 2, 2, 1, "bitand (x, y)", "The bits that both have.", |i, a, _| both(i, "bitand", a, |x, y| x & y)),
    row("bitor", 2, 2, 1, "bitor (x, y)", "The bits that either has.", |i, a, _| both(i, "bitor", a, |x, y| x | y)),
    row("bitxor", 2, 2, 1, "bitxor (x, y)", "The bits that exactly one has.", |i, a, _| {
        both(i, "bitxor", a, |x, y| x ^ y)
    }),
    row("bitshift", 2, 3, 1, "bitshift (x, n, mask)", "The bits moved left by n, or right by -n.", bitshift),
    row("bitcmp", 1, 2, 1, "bitcmp (x, k)", "The bits that x lacks, of its lowest k or of all.", bitcmp),
];

/// The number of bits of integers that a double holds exactly.
const DOUBLE_BITS: u32 = 53;

fn both(interp: &mut Interp, name: &str, args: &[Value], f: impl Fn(u64, u64) -> u64) -> Flow<Outcome> {
    let (a, b) = (&args[0], &args[1]);
    let (p, q) = (a.class(), b.class());
    if [p, q].iter().any(|c| !c.is_numeric() && *c != Class::Logical) {
        return fail!("{name}: invalid operand type");
    }
    let class = match ops::arithmetic_class(p, q) {
        _ if p == Class::Logical && q == Class::Logical => Class::Logical,
        Some(class) => class,
        None => return fail!("{name}: must have matching operand types"),
    };
    let (x, y) = Host::pair(&interp.env, a, b)?;
    if x.dims() != y.dims() && x.len() != 1 && y.len() != 1 {
        return fail!("{name}: size of X and Y must match, or one operand must be a scalar");
    }
    let dims = Dims::new(if x.len() == 1 { y.dims() } else { x.dims() });
    let data = in_blocks(&interp.env, dims.elements(), class, &[&x, &y], |parts, dims| {
        let (x, y) = (&parts[0], &parts[1]);
        let (m, n) = (whole(x, class), whole(y, class));
        macro_rules! pairs {
            ($($variant:ident $t:ty),*) => {
                match (&*m, &*n) {
                    // The bits of a narrow integer are the lowest bits of a wide one.
                    $((Data::$variant(m), Data::$variant(n)) => {
                        let (m, n) = (Side { data: m, dims: x.dims() }, Side { data: n, dims: y.dims() });
                        Data::$variant(zip(m, n, dims, |x, y| f(x as u64, y as u64) as $t))
                    })*
                    _ => return fail!("{name}: invalid operand type"),
                }
            };
        }
        let bits = pairs!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        Ok(if class.is_integer() { bits } else { bits.converted(class) })
    })?;
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

/// Computes elements of a class by `f`, a block at a time (BLOCKS-1). Each operand has as many elements as the result,
/// or one. `f` gets parts of the operands, and the dimensions of the part.
fn in_blocks(
    env: &Env,
    n: usize,
    class: Class,
    operands: &[&Host<'_>],
    mut f: impl FnMut(&[Host<'_>], &Dims) -> Flow<Data>,
) -> Flow<Data> {
    env.check_host(&[n], class.bytes())?;
    let mut joined = Joined::of(n);
    for start in (0..n).step_by(BLOCK) {
        env.check_halt()?;
        let range = start..n.min(start + BLOCK);
        let dims = Dims::new(&[range.len(), 1]);
        let part = |operand: &&Host<'_>| match operand.elements() {
            Elements::Number(x) => Host::Number(*x),
            Elements::Truth(x) => Host::Truth(*x),
            Elements::Data(data) => {
                let (range, dims) =
                    if data.len() == 1 { (0..1, Dims::scalar()) } else { (range.clone(), dims.clone()) };
                Host::Awaited(Arc::new(Tensor::new(dims, data.part(range))))
            }
        };
        let parts: Vec<Host<'_>> = operands.iter().map(part).collect();
        joined.add(f(&parts, &dims)?);
    }
    Ok(joined.data.unwrap_or_else(|| Data::zeros(class, 0)))
}

/// Returns the elements in an integer class. If the result is no integer, floats and truth values become unsigned
/// integers.
fn whole<'a>(x: &'a Host<'_>, class: Class) -> Cow<'a, Data> {
    match x.elements() {
        Elements::Data(data) if data.class() == class && class.is_integer() => Cow::Borrowed(data),
        other => {
            let class = if class.is_integer() { class } else { Class::Uint64 };
            Cow::Owned(in_class(class, other.reals().into_owned()))
        }
    }
}

fn data(class: Class, x: Vec<i128>) -> Data {
    if ops::is_wide(class) {
        return in_wide_class(class, x.into_iter());
    }
    in_class(class, x.into_iter().map(|x| x as f64).collect())
}

fn width(class: Class) -> u32 {
    match class {
        Class::Int8 | Class::Uint8 => 8,
        Class::Int16 | Class::Uint16 => 16,
        Class::Int32 | Class::Uint32 => 32,
        Class::Int64 | Class::Uint64 => 64,
        Class::Single => 24,
        _ => DOUBLE_BITS,
    }
}

fn bitshift(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env: &mut Env = &mut interp.env;
    let (a, by) = (&args[0], &args[1]);
    if !a.is_numeric() {
        return fail!("bitshift: not defined for {} objects", a.class_name());
    }
    if matches!(by, Value::Cell(_) | Value::Struct(_) | Value::Function(_)) {
        return fail!("bitshift: K must be a scalar or array of integers");
    }
    let class = a.class();
    let kept = match args.get(2) {
        None => None,
        Some(n) => Some(crate::builtins::args::number(env, "bitshift", n)?),
    };
    if kept.is_some_and(|n| n < 0.0) {
        return fail!("bitshift: N must be a positive integer");
    }
    let (x, n) = Host::pair(env, a, by)?;
    if x.dims() != n.dims() && x.len() != 1 && n.len() != 1 {
        return fail!("bitshift: size of A and N must match, or one operand must be a scalar");
    }
    let dims = Dims::new(if x.len() == 1 { n.dims() } else { x.dims() });
    let bits = width(class);
    let mask = u64::MAX >> (64 - bits);
    let mask = kept.map_or(mask, |n| if n < bits as f64 { mask & ((1 << n as u32) - 1) } else { mask });
    let data = in_blocks(env, dims.elements(), class, &[&x, &n], |parts, dims| {
        let (x, n) = (&parts[0], &parts[1]);
        let values: Vec<i128> = match class.is_integer() {
            true => x.elements().integers(),
            // If a number has no bits among the lowest 64, none of its bits stay.
            false => x.elements().reals().iter().map(|x| if x.abs() < 1e30 { x.trunc() as i128 } else { 0 }).collect(),
        };
        let shifts = n.elements().reals();
        if shifts.iter().any(|n| n.trunc() != *n) {
            return fail!("bitshift: K must be a scalar or array of integers");
        }
        let (m, n) = (Side { data: &values[..], dims: x.dims() }, Side { data: &shifts[..], dims: n.dims() });
        Ok(data(class, zip(m, n, dims, |x, n| shifted(class, x, n as i64, mask))))
    })?;
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

fn shifted(class: Class, x: i128, n: i64, mask: u64) -> i128 {
    let bits = width(class) as i64;
    if class.is_float() && x < 0 {
        return -shifted(class, -x, n, mask);
    }
    if n >= bits || n <= -bits {
        return 0;
    }
    // Only the lowest 64 bits can stay.
    let moved = if n >= 0 { (x & u64::MAX as i128) << n } else { x >> -n };
    let kept = moved & mask as i128;
    // In a signed class, the highest bit is the sign.
    let signed = class.integer_range().is_some_and(|(least, _)| least < 0);
    if signed && kept >> (bits - 1) & 1 == 1 { kept - (1 << bits) } else { kept }
}

fn bitcmp(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let class = args[0].class();
    if !class.is_numeric() {
        return fail!("bitcmp: invalid class {}", args[0].class_name());
    }
    let host = Host::of(&interp.env, &args[0])?;
    let bits = width(class);
    let kept = match args.get(1).filter(|k| !k.is_empty()) {
        Some(k) => crate::builtins::args::number(&interp.env, "bitcmp", k)?,
        None => bits as f64,
    };
    if !(kept >= 1.0 && kept <= bits as f64) {
        return fail!("bitcmp: K must be in the range [1,{bits}]");
    }
    let greatest = (1i128 << kept as u32) - 1;
    let signed = class.integer_range().is_some_and(|(least, _)| least < 0);
    // If all bits of a signed integer are kept, the sign is one of them. A float below zero counts as having no bits.
    let all = signed && kept as u32 == bits;
    let lacks = |x: i128| match all {
        true => !x,
        false if class.is_integer() => greatest & !x,
        false => greatest & !x.max(0),
    };
    let data = in_blocks(&interp.env, host.len(), class, &[&host], |parts, _| {
        Ok(data(class, parts[0].elements().integers().into_iter().map(lacks).collect()))
    })?;
    Ok(Value::tensor(Tensor::new(Dims::new(host.dims()), data)).into())
}
