//! Random words on standard output without end, 32 bits each, for batteries of statistical tests: `docs/random.md` has the
//! commands. The argument names the stream; without one, the streams are listed.
//!
//! In: the name of a stream. Out: words, until nobody reads them.

use std::io::Write;
use std::process::ExitCode;
use tidemill::{Array, RandomState, Result, Runtime, Session};

/// Numbers that are drawn at a time.
const COUNT: usize = 1 << 18;
/// Sessions, streams or ops whose numbers are interleaved.
const WAYS: u64 = 256;

type Words = fn(&Runtime, &Session) -> Result<Vec<u32>>;

/// A name, what it writes, and the function.
const STREAMS: [(&str, &str, Words); 12] = [
    ("words", "32-bit integers", |_, s| gathered(&s.randi::<u32>(0..1 << 32, COUNT))),
    ("floats", "uniform f32, of 24 bits, four of them to three words", |_, s| {
        packed(
            &s.rand::<f32>(COUNT)
                .gather_blocking::<f32>()?
                .as_slice()
                .iter()
                .map(|x| (x * 16_777_216.0) as u32)
                .collect::<Vec<_>>(),
            24,
        )
    }),
    ("doubles", "the upper 32 bits of uniform f64", |_, s| scaled(&s.rand::<f64>(COUNT))),
    ("normals", "normal f64, by their distribution function", |_, s| scaled(&below(&s.randn::<f64>(COUNT)))),
    ("normals-single", "normal f32, the upper 16 bits of their distribution function, two to a word", |_, s| {
        let words = scaled(&below(&s.randn::<f32>(COUNT).cast::<f64>()))?;
        packed(&words.iter().map(|word| word >> 16).collect::<Vec<_>>(), 16)
    }),
    ("exponentials", "exponential f64, by their distribution function", |_, s| {
        scaled(&(1.0 - (-s.exponential::<f64>(1.0, COUNT)).exp()))
    }),
    ("integers", "integers below 3 * 2^30, of which a quarter is drawn again: 16 bits, two to a word", |_, s| {
        let drawn = s.randi::<u32>(0..3 << 30, COUNT).gather_blocking::<u32>()?;
        packed(&drawn.as_slice().iter().map(|word| word & 0xffff).collect::<Vec<_>>(), 16)
    }),
    ("truths", "truth values of probability one half, 32 to a word", |_, s| {
        let drawn = s.bernoulli::<f32>(0.5, COUNT).gather_blocking::<bool>()?;
        packed(&drawn.as_slice().iter().map(|&truth| u32::from(truth)).collect::<Vec<_>>(), 1)
    }),
    ("seeds", "words of sessions with neighbouring seeds, one of each in turn", |rt, s| {
        let ops = s.random_state().ops;
        of_ways(s, |way| {
            let other = rt.session("seeds").open();
            other.set_random_state(RandomState { seed: way, stream: 0, ops });
            other.randi::<u32>(0..1 << 32, COUNT / WAYS as usize)
        })
    }),
    ("sessions", "words of sessions with the seeds that they have by themselves, one of each in turn", |rt, s| {
        thread_local! {
            static SESSIONS: std::cell::RefCell<Vec<Session>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        SESSIONS.with_borrow_mut(|sessions| {
            if sessions.is_empty() {
                sessions.extend((0..WAYS).map(|_| rt.session("neighbour").open()));
            }
            of_ways(s, |way| sessions[way as usize].randi::<u32>(0..1 << 32, COUNT / WAYS as usize))
        })
    }),
    ("streams", "words of neighbouring streams of one seed, one of each in turn", |rt, s| {
        let ops = s.random_state().ops;
        of_ways(s, |way| {
            let other = rt.session("streams").open();
            other.set_random_state(RandomState { seed: 1, stream: way, ops });
            other.randi::<u32>(0..1 << 32, COUNT / WAYS as usize)
        })
    }),
    ("ops", "words of neighbouring ops of one session, one of each in turn", |_, s| {
        of_ways(s, |_| s.randi::<u32>(0..1 << 32, COUNT / WAYS as usize))
    }),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, _, words)) = STREAMS.iter().find(|stream| stream.0 == name) else {
        eprintln!("random_words STREAM, where STREAM is");
        STREAMS.iter().for_each(|(name, what, _)| eprintln!("  {name:16}{what}"));
        return ExitCode::FAILURE;
    };
    match write(*words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("random_words: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(words: Words) -> Result<()> {
    let rt = Runtime::builder().device("host").start_blocking()?;
    let s = rt.session("words").seed(20_261_127).open();
    let mut out = std::io::stdout().lock();
    loop {
        let bytes: Vec<u8> = words(&rt, &s)?.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Nobody reads on: the battery has seen enough.
        if out.write_all(&bytes).is_err() {
            return rt.shutdown_blocking();
        }
    }
}

fn gathered(words: &Array) -> Result<Vec<u32>> {
    Ok(words.gather_blocking::<u32>()?.as_slice().to_vec())
}

/// Uniform f64 as 32 bits each.
fn scaled(uniform: &Array) -> Result<Vec<u32>> {
    Ok(uniform.gather_blocking::<f64>()?.as_slice().iter().map(|x| (x * 4_294_967_296.0) as u32).collect())
}

/// The distribution function of normal numbers.
fn below(x: &Array) -> Array {
    ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

/// Numbers of `bits` bits, one behind the other.
fn packed(numbers: &[u32], bits: u32) -> Result<Vec<u32>> {
    let (mut words, mut open, mut filled) = (Vec::new(), 0u64, 0);
    for &number in numbers {
        open = open << bits | u64::from(number);
        filled += bits;
        if filled >= 32 {
            filled -= 32;
            words.push((open >> filled) as u32);
        }
    }
    Ok(words)
}

/// The first word of each way, then the second of each, and so on.
fn of_ways(s: &Session, draw: impl Fn(u64) -> Array) -> Result<Vec<u32>> {
    // The session's own op counts the turns.
    s.rand::<f32>(1);
    let ways = (0..WAYS).map(|way| gathered(&draw(way))).collect::<Result<Vec<_>>>()?;
    Ok((0..COUNT / WAYS as usize).flat_map(|n| ways.iter().map(move |words| words[n])).collect())
}
