//! How many random numbers of each distribution the host draws a second: `cargo bench --bench random`, beside NumPy's by
//! `python3 benches/random_numpy.py`, which draws the same.
//!
//! Numbers stay where they are drawn: each call evaluates an array of 2^22 elements. The best of seven is reported.

use std::time::Instant;
use tidemill::{Array, Result, Runtime, Session};

const COUNT: usize = 1 << 22;

/// Records one array of random numbers; the bench measures how long its evaluation takes.
type Draw = fn(&Session) -> Array;

fn main() -> Result<()> {
    let rt = Runtime::builder().device("host").start_blocking()?;
    let s = rt.session("random").seed(1).open();
    let draws: [(&str, Draw); 16] = [
        ("uniform f32", |s| s.rand::<f32>(COUNT)),
        ("uniform f64", |s| s.rand::<f64>(COUNT)),
        ("normal f64", |s| s.randn::<f64>(COUNT)),
        ("exponential f32", |s| s.exponential::<f32>(1.0, COUNT)),
        ("exponential f64", |s| s.exponential::<f64>(1.0, COUNT)),
        ("integers 0..1000", |s| s.randi::<i32>(0..1000, COUNT)),
        ("bernoulli 0.3", |s| s.bernoulli::<f32>(0.3, COUNT)),
        ("gamma 2.5 f32", |s| s.gamma::<f32>(2.5, 1.0, COUNT)),
        ("gamma 2.5 f64", |s| s.gamma::<f64>(2.5, 1.0, COUNT)),
        ("beta 2, 3 f64", |s| s.beta::<f64>(2.0, 3.0, COUNT)),
        ("poisson 4 f32", |s| s.poisson::<f32>(4.0, COUNT)),
        ("poisson 4 f64", |s| s.poisson::<f64>(4.0, COUNT)),
        ("poisson 100 f64", |s| s.poisson::<f64>(100.0, COUNT)),
        ("binomial 40, 0.1 f64", |s| s.binomial::<f64>(40, 0.1, COUNT)),
        ("binomial 1000, 0.4 f64", |s| s.binomial::<f64>(1000, 0.4, COUNT)),
        ("permutation", |s| s.permutation(COUNT)),
    ];
    for (name, draw) in draws {
        let mut best = f64::INFINITY;
        for _ in 0..7 {
            let array = draw(&s);
            let begin = Instant::now();
            futures::executor::block_on(array.eval())?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        println!("{name:24} {:8.1} million a second", COUNT as f64 / best / 1e6);
    }
    rt.shutdown_blocking()
}
