//! Integers: primes, divisors, combinations, counting into bins.

use crate::builtins::args::number;
use crate::builtins::reduce::accumulation::{accumarray, histc};
use crate::builtins::reduce::lanes::pick;
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::index::Values;
use crate::ops::{self, Side};
use crate::value::blocks::BLOCK;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use std::ops::{Neg, Sub};

/// The family.
pub static ROWS: &[Builtin] = &[
    row("primes", 1, 1, 1, "primes (n)", "All primes up to n.", primes),
    row("isprime", 1, 1, 1, "isprime (x)", "Which elements are prime.", isprime),
    row(
        "factor",
        1,
        1,
        2,
        "[p, n] = factor (q)",
        "Prime factors, or distinct ones with how often each divides.",
        factor,
    ),
    row(
        "gcd",
        2,
        ANY,
        3,
        "[g, u, v] = gcd (a, b, …)",
        "The greatest common divisor g, element by element; with two arguments, u a + v b = g.",
        gcd,
    ),
    row("lcm", 2, ANY, 1, "lcm (a, b, …)", "The least common multiple, element by element.", lcm),
    row("factorial", 1, 1, 1, "factorial (n)", "The product of 1 to n.", factorial),
    row("nchoosek", 2, 2, 1, "nchoosek (n, k)", "How many, or which, sets of k of n there are.", nchoosek),
    row("perms", 1, 1, 1, "perms (v)", "All orders of the elements, a row each.", perms),
    row(
        "accumarray",
        2,
        6,
        1,
        "accumarray (subscripts, values, size, f, fill, sparse)",
        "Sums (or f) of the values that have the same subscripts.",
        accumarray,
    ),
    row(
        "histc",
        2,
        3,
        2,
        "[n, bin] = histc (x, edges, dim)",
        "How many elements lie between edges, and where each lies.",
        histc,
    ),
];

/// Returns the elements of a real argument, its dimensions and its class.
pub fn reals(env: &Env, who: &str, value: &Value) -> Flow<(Dims, Vec<f64>, Class)> {
    let host = env.host(value)?;
    if host.data.is_complex() {
        return fail!("{who}: argument must be real");
    }
    Ok((host.dims.clone(), host.data.to_f64(), host.data.class()))
}

/// Converts doubles to a class; char and logical become double.
pub fn in_class(env: &mut Env, dims: Dims, data: Vec<f64>, class: Class) -> Flow<Value> {
    let value = Value::tensor(Tensor::new(dims, Data::F64(data)));
    if class.is_numeric() { ops::cast(env, &value, class) } else { Ok(value) }
}

fn primes(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let class = args[0].class();
    if args[0].len() != 1 || args[0].is_complex() {
        return fail!("primes: N must be a real scalar");
    }
    let n = number(&interp.env, "primes", &args[0])?;
    if n.is_nan() || n == f64::INFINITY {
        return fail!("primes: N must be finite (not +Inf or NaN)");
    }
    if n < 2.0 {
        return Ok(in_class(&mut interp.env, Dims::new(&[1, 0]), Vec::new(), class)?.into());
    }
    if n > 1e9 {
        return fail!("primes: N must be at most 1e9");
    }
    let n = n as usize;
    let out = primes_up_to(&interp.env, n)?;
    let dims = Dims::new(&[1, out.len()]);
    Ok(in_class(&mut interp.env, dims, out, class)?.into())
}

/// The number of odd numbers that are sieved at a time: as many bytes fit into a core's cache.
const SIEVED: usize = 1 << 18;

/// Returns the primes up to a number of at least 2, by the sieve of Eratosthenes over odd numbers, a part at a time.
fn primes_up_to(env: &Env, n: usize) -> Flow<Vec<f64>> {
    let mut out = vec![2.0];
    // The number at place i is 2 i + 1. These are the odd primes up to the root, each with the next multiple to strike
    // out.
    let mut small: Vec<(usize, usize)> = Vec::new();
    let mut composite = vec![false; SIEVED];
    let places = n.div_ceil(2);
    for start in (0..places).step_by(SIEVED) {
        env.check_halt()?;
        let end = places.min(start + SIEVED);
        composite.fill(false);
        let strike = |composite: &mut [bool], p: usize, mut at: usize| {
            while at < end {
                composite[at - start] = true;
                at += p;
            }
            at
        };
        small.iter_mut().for_each(|(p, at)| *at = strike(&mut composite, *p, *at));
        for i in start.max(1)..end {
            if composite[i - start] {
                continue;
            }
            let p = 2 * i + 1;
            out.push(p as f64);
            if p <= n / p {
                let next = strike(&mut composite, p, p * p / 2);
                small.push((p, next));
            }
        }
    }
    Ok(out)
}

fn product_mod(a: u64, b: u64, m: u64) -> u64 {
    ((a as u128 * b as u128) % m as u128) as u64
}

/// Tests by Miller–Rabin with bases that decide every 64-bit number (Sorenson and Webster, 2015).
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    for p in BASES {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    BASES.iter().all(|&base| {
        let (mut x, mut b, mut e) = (1u64, base % n, odd);
        while e > 0 {
            if e & 1 == 1 {
                x = product_mod(x, b, n);
            }
            b = product_mod(b, b, n);
            e >>= 1;
        }
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = product_mod(x, x, n);
            x == n - 1
        })
    })
}

fn isprime(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (dims, x, _) = reals(&interp.env, "isprime", &args[0])?;
    if x.iter().any(|v| v.is_nan() || v.floor() != *v) {
        return fail!("isprime: X contains non-integer entries");
    }
    if x.iter().any(|&v| v < 0.0) {
        return fail!("isprime: X must be a non-negative integer");
    }
    let host = interp.env.host(&args[0])?;
    let one = |i: usize| match &*host.data {
        Data::U64(exact) => is_prime(exact[i]),
        Data::I64(exact) => is_prime(exact[i] as u64),
        _ => x[i].is_finite() && is_prime(x[i] as u64),
    };
    let mut prime = Vec::with_capacity(x.len());
    for start in (0..x.len()).step_by(BLOCK) {
        interp.env.check_halt()?;
        prime.extend((start..x.len().min(start + BLOCK)).map(one));
    }
    Ok(Value::tensor(Tensor::new(dims, Data::Bool(prime))).into())
}

fn factor(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let class = args[0].class();
    let q = number(&interp.env, "factor", &args[0])?;
    if args[0].len() != 1 || args[0].is_complex() || q.fract() != 0.0 || !(q >= 0.0 && q < 2f64.powi(53)) {
        return fail!("factor: Q must be a real non-negative integer");
    }
    if class == Class::Single && q > 2f64.powi(24) {
        return fail!("factor: Q too large to factor (> flintmax)");
    }
    let mut rest = q as u64;
    let mut found: Vec<u64> = Vec::new();
    let mut p = 2u64;
    while rest > 0 && p * p <= rest {
        while rest.is_multiple_of(p) {
            found.push(p);
            rest /= p;
        }
        if p > 1 << 16 && is_prime(rest) {
            break;
        }
        p += if p == 2 { 1 } else { 2 };
    }
    if rest > 1 || found.is_empty() {
        found.push(rest);
    }
    let env = &mut interp.env;
    let row = |env: &mut Env, v: Vec<f64>, class| in_class(env, Dims::new(&[1, v.len()]), v, class);
    if nargout < 2 {
        return Ok(row(env, found.iter().map(|&p| p as f64).collect(), class)?.into());
    }
    let mut distinct = found.clone();
    distinct.dedup();
    let counts = distinct.iter().map(|p| found.iter().filter(|f| *f == p).count() as f64).collect();
    let distinct = distinct.iter().map(|&p| p as f64).collect();
    Ok(vec![row(env, distinct, class)?, row(env, counts, Class::Double)?].into())
}

/// A type of whole numbers: doubles, or a type that holds 64-bit integers exactly.
trait Whole: Copy + PartialOrd + Sub<Output = Self> + Neg<Output = Self> {
    const ZERO: Self;
    const ONE: Self;
    /// Returns the quotient, towards zero, and the remainder.
    fn divided(self, by: Self) -> (Self, Self);
    /// Returns the product, or the nearest number to it.
    fn times(self, by: Self) -> Self;

    fn magnitude(self) -> Self {
        if self < Self::ZERO { -self } else { self }
    }
}

impl Whole for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn divided(self, by: f64) -> (f64, f64) {
        ((self / by).trunc(), self % by)
    }

    fn times(self, by: f64) -> f64 {
        self * by
    }
}

impl Whole for i128 {
    const ZERO: i128 = 0;
    const ONE: i128 = 1;

    fn divided(self, by: i128) -> (i128, i128) {
        (self / by, self % by)
    }

    fn times(self, by: i128) -> i128 {
        self.saturating_mul(by)
    }
}

/// The wanted function of two numbers.
#[derive(Clone, Copy)]
enum Asked {
    Divisor,
    Multiple,
    /// The factor of the first number, in the sum of products that is the greatest common divisor.
    FirstFactor,
    SecondFactor,
}

impl Asked {
    fn of<T: Whole>(self, a: T, b: T) -> T {
        match self {
            Asked::Divisor => divisor(a, b),
            Asked::Multiple if a == T::ZERO || b == T::ZERO => T::ZERO,
            Asked::Multiple => a.divided(divisor(a, b)).0.times(b),
            Asked::FirstFactor => bezout(a, b).0,
            Asked::SecondFactor => bezout(a, b).1,
        }
    }
}

/// Returns the class of the result, or an error for numbers that are not whole, and for integers of different classes.
fn common_class(env: &Env, args: &[Value], who: &str) -> Flow<Class> {
    let (_, _, mut class) = reals(env, who, &args[0])?;
    for arg in args {
        let (_, data, other) = reals(env, who, arg)?;
        if data.iter().any(|v| v.fract() != 0.0) {
            return fail!("{who}: all values must be integers");
        }
        if class.is_integer() && other.is_integer() && class != other {
            if who == "gcd"
                && let Some(wider) = crate::builtins::reduce::extrema::wider(class, other)
            {
                class = wider;
                continue;
            }
            // Neither class holds the numbers of the other.
            return fail!("{who}: '{}' and '{}' have no common class", class.name(), other.name());
        }
        if other.is_integer() || other == Class::Single && !class.is_integer() {
            class = other;
        }
    }
    Ok(class)
}

fn folded<T: Whole>(
    env: &Env,
    args: &[Value],
    who: &str,
    asked: Asked,
    read: fn(&Data, usize) -> T,
    within: fn(T) -> T,
) -> Flow<(Dims, Vec<T>)> {
    let elements = |t: &Tensor| (0..t.len()).map(|i| read(&t.data, i)).collect::<Vec<T>>();
    let first = env.host(&args[0])?;
    let (mut dims, mut out) = (first.dims.clone(), elements(&first));
    for arg in &args[1..] {
        let other = env.host(arg)?;
        let both = ops::expanded(who, &dims, &other.dims)?;
        env.check_host(&both, size_of::<T>())?;
        let (a, b) = (Side { data: &out, dims: &dims }, Side { data: &elements(&other), dims: &other.dims });
        out = ops::zip(a, b, &both, |a, b| within(asked.of(a, b)));
        dims = both;
    }
    Ok((dims, out))
}

fn fold(interp: &mut Interp, args: &[Value], who: &str, asked: Asked) -> Flow<Value> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let class = common_class(env, args, who)?;
    if !matches!(class, Class::Int64 | Class::Uint64) {
        let (dims, out) = folded(env, args, who, asked, Data::f64_at, |x| x)?;
        return in_class(env, dims, out, class);
    }
    // Each step's result is in the class, as in a loop of its own operations.
    let (dims, data) = if class == Class::Uint64 {
        let exact = |data: &Data, i: usize| match data {
            Data::U64(v) => v[i] as i128,
            other => other.f64_at(i) as u64 as i128,
        };
        let (dims, out) = folded(env, args, who, asked, exact, |x| x.clamp(0, u64::MAX as i128))?;
        (dims, Data::U64(out.into_iter().map(|x| x as u64).collect()))
    } else {
        let exact = |data: &Data, i: usize| match data {
            Data::I64(v) => v[i] as i128,
            other => other.f64_at(i) as i64 as i128,
        };
        let (dims, out) = folded(env, args, who, asked, exact, |x| x.clamp(i64::MIN as i128, i64::MAX as i128))?;
        (dims, Data::I64(out.into_iter().map(|x| x as i64).collect()))
    };
    Ok(Value::tensor(Tensor::new(dims, data)))
}

fn divisor<T: Whole>(a: T, b: T) -> T {
    let (mut a, mut b) = (a.magnitude(), b.magnitude());
    while b != T::ZERO {
        (a, b) = (b, a.divided(b).1);
    }
    a
}

fn gcd(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    if nargout < 2 {
        return Ok(fold(interp, args, "gcd", Asked::Divisor)?.into());
    }
    if args.len() > 2 {
        return fail!("gcd: coefficients are known of two arguments only");
    }
    let outputs = [Asked::Divisor, Asked::FirstFactor, Asked::SecondFactor];
    let outputs = outputs.into_iter().map(|asked| fold(interp, args, "gcd", asked));
    Ok(outputs.collect::<Flow<Values>>()?.into())
}

/// Returns the factors of two numbers whose sum of products is their greatest common divisor.
fn bezout<T: Whole>(a: T, b: T) -> (T, T) {
    let (mut rest, mut next) = (a.magnitude(), b.magnitude());
    let (mut x, mut x_next, mut y, mut y_next) = (T::ONE, T::ZERO, T::ZERO, T::ONE);
    while next != T::ZERO {
        let (quotient, left) = rest.divided(next);
        (rest, next) = (next, left);
        (x, x_next) = (x_next, x - quotient.times(x_next));
        (y, y_next) = (y_next, y - quotient.times(y_next));
    }
    (if a >= T::ZERO { x } else { -x }, if b >= T::ZERO { y } else { -y })
}

fn lcm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(fold(interp, args, "lcm", Asked::Multiple)?.into())
}

fn factorial(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (dims, n, class) = reals(&interp.env, "factorial", &args[0])?;
    // Integers give doubles, which most factorials need.
    let class = if class == Class::Single { class } else { Class::Double };
    if n.iter().any(|&v| v < 0.0 || v.fract() != 0.0) {
        return fail!("factorial: all N must be real non-negative integers");
    }
    let out =
        n.iter().map(|&v| if v > 170.0 { f64::INFINITY } else { (2..=v as u64).map(|k| k as f64).product() }).collect();
    Ok(in_class(&mut interp.env, dims, out, class)?.into())
}

fn nchoosek(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let k = number(&interp.env, "nchoosek", &args[1])?;
    if args[0].len() != 1 && !args[0].dims().is_vector() {
        return fail!("nchoosek: first argument must be a scalar or a vector");
    }
    if args[1].len() != 1 || args[1].is_complex() || k < 0.0 || k.fract() != 0.0 || k.is_nan() {
        return fail!("nchoosek: K must be an integer >= 0");
    }
    if let Value::Cell(_) | Value::Struct(_) = &args[0] {
        let (dims, order) = choices(&interp.env, args[0].len(), k as usize, size_of::<Value>())?;
        return Ok(chosen(&args[0], dims, order.into_iter().map(|at| at as usize))?.into());
    }
    let set = interp.env.host(&args[0])?;
    if set.len() == 1 {
        let n = set.data.f64_at(0);
        if n < k || n.fract() != 0.0 {
            return fail!("nchoosek: N must be a non-negative integer >= K");
        }
        let k = k.min(n - k);
        let mut c = 1.0;
        let mut i = 1.0;
        while i <= k && c < f64::INFINITY {
            c = (c * (n - k + i) / i).round();
            i += 1.0;
        }
        // If one argument is no double, its class is the result's.
        let class = match set.data.class() {
            Class::Double => args[1].class(),
            class => class,
        };
        return Ok(in_class(&mut interp.env, Dims::scalar(), vec![c], class)?.into());
    }
    let (dims, order) = choices(&interp.env, set.len(), k as usize, size_of::<f64>())?;
    Ok(Value::tensor(Tensor::new(dims, set.data.pick(order.into_iter().map(|at| at as usize)))).into())
}

/// Returns the elements of a cell or a struct array at these positions.
fn chosen(value: &Value, dims: Dims, places: impl Iterator<Item = usize>) -> Flow<Value> {
    match pick(value, dims, &places.collect::<Vec<_>>()) {
        Some(value) => Ok(value),
        None => fail!("wrong type argument '{}'", value.class_name()),
    }
}

/// The most rows of combinations.
const CHOICES_MAX: f64 = 1e7;

/// Returns all combinations of k of n positions: a row for each, in order, column-major. They are counted before any is
/// made.
fn choices(env: &Env, n: usize, k: usize, bytes: usize) -> Flow<(Dims, Vec<u32>)> {
    if k > n {
        env.check_host(&[1, k], bytes)?;
        return Ok((Dims::new(&[0, k]), Vec::new()));
    }
    let count = (0..k.min(n - k)).try_fold(1.0, |count: f64, i| {
        let more = (count * (n - i) as f64 / (i + 1) as f64).round();
        (more <= CHOICES_MAX).then_some(more)
    });
    let (Some(count), Ok(_)) = (count, u32::try_from(n)) else {
        return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
    };
    let m = count as usize;
    env.check_host(&[m, k], bytes + size_of::<u32>())?;
    let mut out = vec![0; m * k];
    let mut pick: Vec<u32> = (0..k as u32).collect();
    for row in 0..m {
        pick.iter().enumerate().for_each(|(column, &place)| out[column * m + row] = place);
        let Some(at) = (0..k).rev().find(|&i| (pick[i] as usize) < n - k + i) else { break };
        pick[at] += 1;
        for j in at + 1..k {
            pick[j] = pick[j - 1] + 1;
        }
    }
    Ok((Dims::new(&[m, k]), out))
}

fn perms(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = args[0].len();
    let m = (2..=n).fold(1usize, |product, k| product.saturating_mul(k));
    let bytes =
        if let Value::Cell(_) | Value::Struct(_) = &args[0] { size_of::<Value>() } else { args[0].class().bytes() };
    interp.env.check_host(&[m, n], bytes + 1)?;
    // The permutations are in reverse lexicographic order of positions, so each row is the one that precedes its
    // predecessor.
    let mut order = vec![0u8; m * n];
    let mut row: Vec<u8> = (0..n as u8).rev().collect();
    for r in 0..m {
        row.iter().enumerate().for_each(|(c, &at)| order[c * m + r] = at);
        let Some(turn) = row.windows(2).rposition(|pair| pair[0] > pair[1]) else { break };
        let next = row.iter().rposition(|&at| at < row[turn]).unwrap_or(turn);
        row.swap(turn, next);
        row[turn + 1..].reverse();
    }
    let order = order.into_iter().map(usize::from);
    let dims = Dims::new(&[m, n]);
    if let Value::Cell(_) | Value::Struct(_) = &args[0] {
        return Ok(chosen(&args[0], dims, order)?.into());
    }
    let v = interp.env.host(&args[0])?;
    Ok(Value::tensor(Tensor::new(dims, v.data.pick(order))).into())
}
