//! Random numbers: `rand`, `randn`, `randi`, `randperm`, `rng`.
//!
//! In: sizes and classes. Out: draws of the session's stream, in host memory or recorded.
//! Must hold: after `rng(seed)` the same program gives the same numbers. Small draws are taken from the session in
//! batches, and a change of the seed discards the rest of each batch. Asking for the state changes nothing, since the
//! state includes the rest of each batch.

use crate::builtins::args::{class_word, is_word, number, sizes};
use crate::builtins::arrays::creation::check_host;
use crate::builtins::record::{check_shape, is_big, pin, record};
use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::{Class, Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;
use tidemill::{RandomState, Session};

/// The numbers that are drawn at a time in advance.
const BATCH: usize = 1024;
/// Draws of more numbers than this do not use the batch.
const BATCHED_MAX: usize = 64;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("rand", 0, ANY, 1, "rand (m, n, ..., class)", "Uniform random numbers between 0 and 1.", |i, a, n| {
        draws(i, "rand", a, n, Kind::Uniform)
    }),
    row("randn", 0, ANY, 1, "randn (m, n, ..., class)", "Standard normal random numbers.", |i, a, n| {
        draws(i, "randn", a, n, Kind::Normal)
    }),
    row("rande", 0, ANY, 1, "rande (m, n, ..., class)", "Exponential random numbers.", |i, a, n| {
        draws(i, "rande", a, n, Kind::Exponential)
    }),
    row("randi", 1, ANY, 1, "randi ([imin imax], m, n, ..., class)", "Random integers.", randi),
    row("randperm", 1, 2, 1, "randperm (n, m)", "A random permutation of 1 to n, or m of its elements.", randperm),
    row("rng", 0, 2, 1, "s = rng (seed)", "Sets or gives the state of the random numbers.", rng),
];

/// A distribution.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Uniform,
    Normal,
    Exponential,
}

/// Numbers that were drawn in advance. They are taken one by one from the back.
#[derive(Default)]
struct Batch<T> {
    left: Vec<T>,
    /// The session's number of draws when this batch was drawn.
    ops: u64,
}

/// The batches of a script.
#[derive(Default)]
struct Batches {
    uniform: Batch<f64>,
    normal: Batch<f64>,
    uniform_single: Batch<f32>,
    normal_single: Batch<f32>,
}

/// The state of a script's random numbers.
#[derive(Clone, Copy, Default)]
struct State {
    /// The session's seed and number of draws.
    session: (u64, u64),
    /// For each batch in use: the session's number of draws when it was drawn, and how many of its numbers are left.
    batches: [(u64, u64); 4],
}

/// Puts a session's random numbers to a seed and a number of draws. A script's stream stays what it is.
fn set(session: &Session, (seed, ops): (u64, u64)) {
    session.set_random_state(RandomState { seed, ops, ..session.random_state() });
}

impl<T: tidemill::Element + Copy> Batch<T> {
    /// Draws another batch, and discards the rest of this one.
    fn draw(&mut self, session: &Session, normal: bool) -> Flow<()> {
        self.ops = session.random_state().ops;
        self.left = session.draw(normal, BATCH)?;
        self.left.reverse();
        Ok(())
    }

    /// Takes one or a few numbers.
    fn take(&mut self, session: &Session, normal: bool, n: usize) -> Flow<Vec<T>> {
        if n > BATCHED_MAX {
            return Ok(session.draw(normal, n)?);
        }
        if self.left.len() < n {
            self.draw(session, normal)?;
        }
        let mut out = self.left.split_off(self.left.len() - n);
        out.reverse();
        Ok(out)
    }

    fn state(&self) -> (u64, u64) {
        if self.left.is_empty() { (0, 0) } else { (self.ops, self.left.len() as u64) }
    }

    /// Restores the batch to the position that `state` returned.
    fn restore(&mut self, session: &Session, normal: bool, seed: u64, (ops, left): (u64, u64)) -> Flow<()> {
        self.left.clear();
        if left > 0 {
            set(session, (seed, ops));
            self.draw(session, normal)?;
            self.left.truncate(left as usize);
        }
        Ok(())
    }
}

/// Returns one uniform number.
fn uniform(env: &mut Env) -> Flow<f64> {
    let batch = &mut env.keep.of::<Batches>().uniform;
    match batch.left.pop() {
        Some(x) => Ok(x),
        None => Ok(batch.take(&env.session, false, 1)?[0]),
    }
}

fn doubles(env: &mut Env, kind: Kind, n: usize) -> Flow<Vec<f64>> {
    let batches = env.keep.of::<Batches>();
    match kind {
        Kind::Uniform => batches.uniform.take(&env.session, false, n),
        Kind::Normal => batches.normal.take(&env.session, true, n),
        Kind::Exponential => {
            let mut drawn = batches.uniform.take(&env.session, false, n)?;
            // 1 - u is never 0.
            drawn.iter_mut().for_each(|u| *u = -libm::log1p(-*u));
            Ok(drawn)
        }
    }
}

fn singles(env: &mut Env, kind: Kind, n: usize) -> Flow<Vec<f32>> {
    let batches = env.keep.of::<Batches>();
    match kind {
        Kind::Uniform => batches.uniform_single.take(&env.session, false, n),
        Kind::Normal => batches.normal_single.take(&env.session, true, n),
        Kind::Exponential => {
            let mut drawn = batches.uniform_single.take(&env.session, false, n)?;
            drawn.iter_mut().for_each(|u| *u = -libm::log1pf(-*u));
            Ok(drawn)
        }
    }
}

fn draws(interp: &mut Interp, name: &'static str, args: &[Value], nargout: usize, kind: Kind) -> Flow<Outcome> {
    let env = &mut interp.env;
    if args.is_empty() {
        return Ok(Value::Num(match kind {
            Kind::Uniform => uniform(env)?,
            kind => doubles(env, kind, 1)?[0],
        })
        .into());
    }
    if let Some(outcome) = state_call(env, name, args, nargout)? {
        return Ok(outcome);
    }
    let words = args.iter().position(|a| a.is_string() && !a.is_empty()).unwrap_or(args.len());
    let (mut class, mut pinned) = (Class::Double, false);
    let mut rest = args[words..].iter();
    while let Some(word) = rest.next() {
        match class_word(word) {
            Some(c) if c.is_float() => class = c,
            _ if is_word(word, "gpuArray") => pinned = true,
            _ if is_word(word, "like") => match rest.next() {
                Some(proto) if proto.class().is_float() => {
                    class = proto.class();
                    pinned |= proto.is_pinned();
                }
                _ => return fail!("{name}: the prototype after 'like' must be double or single"),
            },
            _ => return fail!("{name}: unrecognized string argument"),
        }
    }
    let dims = match &args[..words] {
        // An empty size, of any class, gives an empty array.
        [none] if none.is_empty() && !matches!(none, Value::Cell(_) | Value::Struct(_)) => Dims::zero(),
        sizes_given => sizes(env, name, sizes_given)?,
    };
    if pinned || is_big(env, class, dims.elements()) {
        check_shape(env, &dims)?;
        let (s, shape) = (&env.session, &dims[..]);
        let array = match (kind, class) {
            (Kind::Normal, Class::Single) => s.randn::<f32>(shape),
            (Kind::Normal, _) => s.randn::<f64>(shape),
            (Kind::Uniform, Class::Single) => s.rand::<f32>(shape),
            (Kind::Uniform, _) => s.rand::<f64>(shape),
            (Kind::Exponential, Class::Single) => -(-s.rand::<f32>(shape)).log1p(),
            (Kind::Exponential, _) => -(-s.rand::<f64>(shape)).log1p(),
        };
        let value = record(array, class, &[])?;
        return Ok(if pinned { pin(env, value)? } else { value }.into());
    }
    check_host(env, &dims, class)?;
    let n = dims.elements();
    let data = match class {
        Class::Single => Data::F32(singles(env, kind, n)?),
        _ => Data::F64(doubles(env, kind, n)?),
    };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

/// Does `rand('seed', x)`, `rand('state', x)`, `rand('twister', x)` and their forms that return the state.
fn state_call(env: &mut Env, name: &str, args: &[Value], nargout: usize) -> Flow<Option<Outcome>> {
    let is_seed = is_word(&args[0], "seed");
    if !(is_seed || is_word(&args[0], "state") || is_word(&args[0], "twister")) || args.len() > 2 {
        return Ok(None);
    }
    let Some(value) = args.get(1) else {
        let state = state(env);
        return Ok(Some(if is_seed { Value::Num(env.session.seed() as f64) } else { state }.into()));
    };
    let _ = nargout;
    if is_word(value, "reset") {
        reseed(env, clock_seed());
        return Ok(Some(nothing()));
    }
    if value.is_char() {
        return if is_seed {
            fail!("{name}: seed must be a real scalar")
        } else {
            fail!("{name}: unrecognized string argument")
        };
    }
    let host = env.host(value)?;
    match stored(&host) {
        Some(state) => restore(env, state)?,
        None => reseed(env, seed_of(&host.data.to_f64())),
    }
    Ok(Some(nothing()))
}

/// Returns the state as a column of 32-bit words, two for each number.
fn state(env: &mut Env) -> Value {
    let RandomState { seed, ops, .. } = env.session.random_state();
    let session = (seed, ops);
    let b = env.keep.of::<Batches>();
    let batches = [b.uniform.state(), b.normal.state(), b.uniform_single.state(), b.normal_single.state()];
    let pairs = std::iter::once(session).chain(batches);
    let words = pairs.flat_map(|(a, b)| [a & 0xFFFF_FFFF, a >> 32, b & 0xFFFF_FFFF, b >> 32]);
    Value::column(words.map(|w| w as f64).collect())
}

/// Parses the result of [`state`].
fn stored(t: &Tensor) -> Option<State> {
    if t.len() != 20 {
        return None;
    }
    let whole = |x: f64| (x >= 0.0 && x <= u32::MAX as f64 && x == x.trunc()).then_some(x as u64);
    let words: Vec<u64> = t.data.to_f64().into_iter().map(whole).collect::<Option<_>>()?;
    let pair = |i: usize| (words[i] | words[i + 1] << 32, words[i + 2] | words[i + 3] << 32);
    let state = State { session: pair(0), batches: std::array::from_fn(|k| pair(4 + 4 * k)) };
    state.batches.iter().all(|(_, left)| *left <= BATCH as u64).then_some(state)
}

/// Returns the state after setting a seed.
fn seeded(seed: u64) -> State {
    State { session: (seed, 0), ..State::default() }
}

fn reseed(env: &mut Env, seed: u64) {
    *env.keep.of::<Batches>() = Batches::default();
    set(&env.session, (seed, 0));
}

fn restore(env: &mut Env, state: State) -> Flow<()> {
    let (session, seed, of) = (&env.session, state.session.0, state.batches);
    let b = env.keep.of::<Batches>();
    b.uniform.restore(session, false, seed, of[0])?;
    b.normal.restore(session, true, seed, of[1])?;
    b.uniform_single.restore(session, false, seed, of[2])?;
    b.normal_single.restore(session, true, seed, of[3])?;
    set(session, state.session);
    Ok(())
}

/// Returns a seed for any numbers; a single whole number is its own seed.
fn seed_of(numbers: &[f64]) -> u64 {
    match numbers {
        [x] if *x >= 0.0 && *x == x.trunc() && *x < 1.8e19 => *x as u64,
        many => many.iter().fold(0xCBF2_9CE4_8422_2325, |hash, x| {
            (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17)
        }),
    }
}

fn clock_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rng(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let invalid = || fail_id!("Octave:invalid-fun-call", "Invalid call to rng");
    let target = match args {
        [] => None,
        [Value::Struct(s), ..] => {
            let (Some(Value::Tensor(state)), true) = (s.get("State"), args.len() == 1) else {
                return fail!("rng: input structure requires \"Type\", \"Seed\", \"State\" fields");
            };
            match stored(state) {
                Some(state) => Some(state),
                None => return fail!("rng: the state is not one that rng gave"),
            }
        }
        [first, rest @ ..] => {
            if let [generator] = rest {
                let known =
                    ["twister", "philox", "threefry", "v5normal", "v5uniform", "v4", "simdTwister", "combRecursive"];
                if !known.iter().any(|k| is_word(generator, k)) {
                    return fail!(
                        "rng: random number generator \"{}\" is not available",
                        generator.as_text().unwrap_or_default()
                    );
                }
            }
            if is_word(first, "default") && !rest.is_empty() || first.is_complex() {
                return invalid();
            } else if is_word(first, "default") {
                Some(seeded(0))
            } else if is_word(first, "shuffle") {
                Some(seeded(clock_seed()))
            } else if first.is_char() || first.len() != 1 {
                return invalid();
            } else {
                let seed = number(env, "rng", first)?;
                if !(0.0..4_294_967_296.0).contains(&seed) {
                    return invalid();
                }
                Some(seeded(seed_of(&[seed.trunc()])))
            }
        }
    };
    let before = if nargout > 0 || target.is_none() { Some(description(env)) } else { None };
    if let Some(state) = target {
        restore(env, state)?;
    }
    Ok(match before {
        Some(value) if nargout > 0 || args.is_empty() => value.into(),
        _ => nothing(),
    })
}

/// Returns the struct of `s = rng`.
fn description(env: &mut Env) -> Value {
    let state = state(env);
    let mut s = StructArray::scalar();
    s.set("Type", Value::string("philox"));
    s.set("Seed", Value::Num(env.session.seed() as f64));
    s.set("State", state);
    Value::Struct(Arc::new(s))
}

/// The first number from which on doubles are even.
const FLINTMAX: f64 = 9_007_199_254_740_992.0;

fn randi(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let words = args.iter().position(|a| a.is_string() && !a.is_empty()).unwrap_or(args.len());
    if words == 0 {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to randi");
    }
    env.host_all(args)?;
    let bounds = env.host(&args[0])?;
    let (low, high) = match bounds.len() {
        1 => (1.0, bounds.data.f64_at(0)),
        2 => (bounds.data.f64_at(0), bounds.data.f64_at(1)),
        _ => return fail!("randi: IMIN and IMAX must be integer bounds"),
    };
    if low != low.trunc() || high != high.trunc() || !low.is_finite() || !high.is_finite() {
        return fail!("randi: IMIN and IMAX must be integer bounds");
    }
    if high.abs() >= FLINTMAX || low.abs() >= FLINTMAX {
        return fail!("randi: IMIN and IMAX must be smaller than flintmax()");
    }
    if high - low >= FLINTMAX - 1.0 {
        return fail!("randi: integer range must be smaller than flintmax()-1");
    }
    if bounds.len() == 1 && high < 1.0 {
        return fail!("randi: require IMAX >= 1");
    }
    if high < low {
        return fail!("randi: require IMIN <= IMAX");
    }
    let (mut class, mut pinned) = (Class::Double, false);
    let mut rest = args[words..].iter();
    while let Some(word) = rest.next() {
        match class_word(word) {
            Some(c) if c.is_numeric() => class = c,
            _ if is_word(word, "gpuArray") => pinned = true,
            _ if is_word(word, "like") => match rest.next() {
                Some(proto) if proto.class().is_numeric() => {
                    class = proto.class();
                    pinned |= proto.is_pinned();
                }
                _ => return fail!("randi: the prototype after 'like' must be numeric"),
            },
            _ => return fail!("randi: unknown requested output CLASS '{}'", word.as_text().unwrap_or_default()),
        }
    }
    let limit = match class.integer_range() {
        Some((_, max)) => max as f64,
        None if class == Class::Single => 16_777_216.0,
        None => 9_007_199_254_740_992.0,
    };
    if high > limit || low < -limit - 1.0 {
        return fail!("randi: require IMAX <= {}", crate::builtins::args::short(limit));
    }
    let dims = sizes(env, "randi", &args[1..words])?;
    let span = high - low + 1.0;
    let dtype = class.dtype();
    if let Some(dtype) = dtype
        && (pinned || is_big(env, class, dims.elements()))
    {
        check_shape(env, &dims)?;
        let fits = low >= i32::MIN as f64 && high < i32::MAX as f64 && span <= u32::MAX as f64;
        let array = match fits {
            true => env.session.randi::<i32>(low as i64..high as i64 + 1, &dims[..]).cast_to(dtype),
            false => ((env.session.rand::<f64>(&dims[..]) * span).floor() + low).cast_to(dtype),
        };
        let value = record(array, class, &[])?;
        return Ok(if pinned { pin(env, value)? } else { value }.into());
    }
    check_host(env, &dims, Class::Double)?;
    let n = dims.elements();
    let drawn: Vec<f64> = doubles(env, Kind::Uniform, n)?.into_iter().map(|u| low + (u * span).floor()).collect();
    let data = Data::F64(drawn).converted(class);
    let value = Value::tensor(Tensor::new(dims, data));
    Ok(if pinned { crate::builtins::system::device::pinned(env, &value)? } else { value }.into())
}

fn randperm(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let n = crate::builtins::args::integer(number(env, "randperm", &args[0])?)?;
    let m = match args.get(1) {
        Some(m) => crate::builtins::args::integer(number(env, "randperm", m)?)?,
        None => n,
    };
    if n < 0 || m < 0 {
        return fail!("randperm: M and N must be non-negative");
    }
    if m > n {
        return fail!("randperm: M must be less than or equal to N");
    }
    let (n, m) = (n as usize, m as usize);
    if is_big(env, Class::Double, n) {
        check_shape(env, &Dims::new(&[1, n]))?;
        // This is the order of n random numbers. Equal numbers keep their positions, which has no visible effect.
        let order = env.session.rand::<f64>([1, n]).argsort(1).cast::<f64>() + 1.0;
        let part = if m < n { order.slice((.., 0..m)) } else { order };
        return Ok(record(part, Class::Double, &[])?.into());
    }
    check_host(env, &Dims::new(&[1, n]), Class::Double)?;
    let mut order: Vec<f64> = (1..=n).map(|k| k as f64).collect();
    for k in 0..m.min(n.saturating_sub(1)) {
        let other = k + (uniform(env)? * (n - k) as f64) as usize;
        order.swap(k, other.min(n - 1));
    }
    order.truncate(m);
    Ok(Value::tensor(Tensor::new(Dims::new(&[1, m]), Data::F64(order))).into())
}
