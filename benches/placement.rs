//! Measures whether `auto` is as fast as the better of `host` and `gpu`, for several programs, sizes and homes of
//! operands.
//!
//! `cargo bench --bench placement -- [--uses N] [--largest N] [--only NAME]`
//!
//! Each program runs `uses` times over the same operand, one run after the other. A run of a program that is gathered
//! ends when the program has the numbers; a run of any other ends when the device has computed the result. The bench
//! opens one runtime for `host`, one for `gpu` and one for `auto`, and gives each an operand that no run has used; a
//! first pass over another operand compiles the kernels. The bench prints the microseconds of all uses, and what `auto`
//! may take: 1.25 times the better of the two, and one transfer. "There" says that the runtime had computed the
//! operand, so that it lay on the device.

mod shared;

use shared::number;
use std::process::ExitCode;
use std::time::Instant;
use tidemill::{Array, Result, Runtime, Session};

const USAGE: &str = "placement [--uses N] [--largest N] [--only NAME]";
/// `auto` may take this many times as long as the better of the two devices, plus one transfer.
const FACTOR: f64 = 1.25;
/// The number of sweeps over fresh operands, of which the median is printed.
const ROUNDS: usize = 3;

struct Options {
    uses: usize,
    largest: usize,
    only: String,
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        match name {
            "--uses" => self.uses = number(name, value)?,
            "--largest" => self.largest = number::<f64>(name, value)? as usize,
            "--only" => self.only = value.to_owned(),
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }
}

/// The memory that holds an operand's elements when the bench records the first op that reads it.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    /// In a vector that the program gave to `Session::from_vec`.
    Program,
    /// On the device on which the runtime computed them.
    Computed,
}

/// A function of an operand, and whether the program gathers its result or leaves it on the device.
struct Program {
    name: &'static str,
    of: fn(&Array) -> Array,
    is_gathered: bool,
    /// Whether the operand is a square matrix.
    is_square: bool,
    /// The most elements that the host computes within seconds.
    largest: usize,
}

const PROGRAMS: [Program; 6] = [
    Program { name: "add", of: |x| x + 0.5, is_gathered: false, is_square: false, largest: 100_000_000 },
    Program { name: "chain", of: chain, is_gathered: false, is_square: false, largest: 100_000_000 },
    Program { name: "chain, gathered", of: chain, is_gathered: true, is_square: false, largest: 100_000_000 },
    Program { name: "sum", of: |x| x.sum(..), is_gathered: true, is_square: false, largest: 100_000_000 },
    Program { name: "product", of: |x| x.matmul(x), is_gathered: false, is_square: true, largest: 1_000_000 },
    Program { name: "loop", of: turns, is_gathered: true, is_square: false, largest: 100_000_000 },
];

fn chain(x: &Array) -> Array {
    let y = (x * 1.5 + 0.25).sin();
    ((&y * x - 0.5).exp() + &y).abs().sqrt() * 2.0
}

/// Four turns of a loop, of which the caller gathers the error.
fn turns(x: &Array) -> Array {
    let mut y = x.clone();
    for _ in 0..4 {
        y = (&y + x / (y.abs() + 1.0)) * 0.5;
    }
    (&y - x).abs().max_over(..)
}

async fn operand(session: &Session, elements: usize, is_square: bool, home: Home) -> Result<Array> {
    let side = (elements as f64).sqrt() as usize;
    let shape = if is_square { vec![side, side] } else { vec![elements, 1] };
    match home {
        Home::Program => {
            let count = shape.iter().product();
            session.from_vec((0..count).map(|i| (i % 1013) as f32 * 1e-3).collect(), shape)
        }
        Home::Computed => {
            let x = session.rand::<f32>(shape);
            x.eval().await?;
            Ok(x)
        }
    }
}

/// Microseconds of each use of a fresh operand.
async fn uses(session: &Session, program: &Program, elements: usize, home: Home, count: usize) -> Result<Vec<f64>> {
    let x = operand(session, elements, program.is_square, home).await?;
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        let y = (program.of)(&x);
        if program.is_gathered {
            y.gather::<f32>().await?;
        } else {
            y.eval().await?;
        }
        taken.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(taken)
}

/// Measures [`ROUNDS`] rounds of uses, and returns the microseconds of each use of the round that took the median time.
async fn measure(runtime: &Runtime, program: &Program, elements: usize, home: Home, count: usize) -> Result<Vec<f64>> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for round in 0..=ROUNDS {
        let session = runtime.session("sweep").seed(round as u64).open();
        let taken = uses(&session, program, elements, home, count).await?;
        // The first round compiles kernels and is not counted.
        if round > 0 {
            rounds.push(taken);
        }
    }
    let sum = |uses: &Vec<f64>| uses.iter().sum::<f64>();
    rounds.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
    Ok(rounds.swap_remove(ROUNDS / 2))
}

/// The microseconds that the first use took beyond the mean of the other ones: the operand's transfer.
fn transfer(uses: &[f64]) -> f64 {
    let rest = &uses[1.min(uses.len())..];
    let mean = rest.iter().sum::<f64>() / rest.len().max(1) as f64;
    if rest.is_empty() { 0.0 } else { (uses[0] - mean).max(0.0) }
}

async fn sweep(options: &Options) -> Result<()> {
    let host = Runtime::builder().device("host").start().await?;
    let gpu = Runtime::builder().device("gpu").start().await?;
    let auto = Runtime::builder().device("auto").start().await?;
    println!("{} uses on {}; microseconds", options.uses, gpu.device("gpu")?.name);
    println!("{:<22} {:>9} {:>11} {:>11} {:>11} {:>11}", "program", "elements", "host", "gpu", "auto", "allowed");
    let mut missed = 0;
    let mut cases = 0;
    for program in PROGRAMS.iter().filter(|program| program.name.starts_with(&options.only)) {
        for home in [Home::Program, Home::Computed] {
            let mut elements = 1_000;
            while elements <= options.largest.min(program.largest) {
                let on = async |runtime| measure(runtime, program, elements, home, options.uses).await;
                let [on_host, on_gpu, on_auto] = [on(&host).await?, on(&gpu).await?, on(&auto).await?];
                let [host_us, gpu_us, auto_us] = [&on_host, &on_gpu, &on_auto].map(|uses| uses.iter().sum::<f64>());
                let allowed = FACTOR * host_us.min(gpu_us) + transfer(&on_gpu);
                let is_slow = auto_us > allowed;
                cases += 1;
                missed += usize::from(is_slow);
                println!(
                    "{:<22} {:>9} {host_us:>11.0} {gpu_us:>11.0} {auto_us:>11.0} {allowed:>11.0} {}",
                    if home == Home::Program { program.name.to_owned() } else { format!("{}, there", program.name) },
                    elements,
                    if is_slow { format!("SLOW {:.2}", auto_us / allowed) } else { String::new() },
                );
                elements *= 10;
            }
        }
    }
    println!("{missed} of {cases} cases took longer than allowed");
    Ok(())
}

fn main() -> ExitCode {
    let defaults = Options { uses: 10, largest: 100_000_000, only: String::new() };
    let options = match shared::parsed(USAGE, defaults, Options::set) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    shared::ended(match executor {
        Ok(executor) => executor.block_on(sweep(&options)).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    })
}
