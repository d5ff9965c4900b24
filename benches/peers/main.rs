//! Measures ordinary array work beside the libraries that a user could choose instead, in one run on one machine.
//!
//! `cargo bench --bench peers -- [--device gpu|host] [--quick yes] [--only ROW,ROW] [--python PROGRAM] [--rounds N]
//! [--write FILE]`
//!
//! The rows are in `rows.rs`, their programs in `programs.rs`, and the same programs for PyTorch, JAX, CuPy and NumPy
//! in `peers.py`. Each peer that can be imported runs in a process of its own and waits for requests. A round of a row
//! measures Tidemill and each peer, one after the other; a figure is the median over all rounds. The bench computes one
//! number from all outputs of a program (`programs::check`), and `peers.py` computes the same number for each peer. A row
//! marks the peers whose number differs from Tidemill's. With `--write`, the bench writes its table into a page of the documentation, in
//! place of the old table.

mod page;
mod peer;
mod programs;
mod rows;
#[path = "../shared/mod.rs"]
mod shared;

use peer::Peer;
use programs::{Inputs, check, fill, turn};
use rows::{ROWS, Row};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemill::{Array, DeviceKind, Result, Runtime, Session, Stats};

const USAGE: &str =
    "peers [--device DEVICE] [--quick yes] [--only ROW,ROW] [--python PROGRAM] [--rounds N] [--write FILE]";

/// The options of the command line.
struct Options {
    device: String,
    /// Whether arrays are small, to see only whether all rows run.
    is_quick: bool,
    /// The rows that are measured; all if none is named.
    only: Vec<String>,
    python: String,
    rounds: usize,
    /// The page into which the table is written.
    page: Option<String>,
}

impl Options {
    /// Whether rows have their sizes for a CPU.
    fn is_host(&self) -> bool {
        self.device == "host"
    }
}

/// One program's times in milliseconds, and the number that was computed from its outputs.
#[derive(Clone, Debug, Default)]
struct Measured {
    times_ms: Vec<f64>,
    check: f64,
}

impl Measured {
    fn median(&self) -> f64 {
        let mut times = self.times_ms.clone();
        times.sort_by(f64::total_cmp);
        shared::quantile(&times, 0.5).unwrap_or(f64::NAN)
    }
}

/// A row with its figures.
struct Figures {
    row: &'static Row,
    size: usize,
    /// The weighted sum of the magnitudes of the program's outputs.
    magnitude: f64,
    ours: Measured,
    /// Kernels and dispatches of one turn of the program, and pipelines that were compiled while it was measured.
    counts: String,
    peers: Vec<(String, Measured)>,
}

fn main() -> ExitCode {
    let options = Options {
        device: "gpu".into(),
        is_quick: false,
        only: Vec::new(),
        python: "python3".into(),
        rounds: 3,
        page: None,
    };
    let options = match shared::parsed(USAGE, options, set) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    shared::ended(match executor {
        Ok(executor) => executor.block_on(table(&options)),
        Err(error) => Err(error.into()),
    })
}

fn set(options: &mut Options, name: &str, value: &str) -> std::result::Result<(), String> {
    match name {
        "--device" => options.device = value.into(),
        "--quick" => {
            options.is_quick = match value {
                "yes" => true,
                "no" => false,
                other => return Err(format!("--quick is yes or no, not {other}")),
            }
        }
        "--only" => options.only = value.split(',').map(str::to_owned).collect(),
        "--python" => options.python = value.into(),
        "--rounds" => options.rounds = shared::number(name, value)?,
        "--write" => options.page = Some(value.into()),
        _ => return Err(format!("{name} is unknown")),
    }
    if options.page.is_some() && !options.only.is_empty() {
        return Err("--write replaces the whole table, so it cannot be combined with --only".into());
    }
    match options.only.iter().find(|name| !ROWS.iter().any(|row| row.name == **name)) {
        Some(unknown) => Err(format!("{unknown} is no row")),
        None => Ok(()),
    }
}

async fn table(options: &Options) -> Result<()> {
    let runtime = Runtime::builder().device(options.device.as_str()).start().await?;
    let kind = if options.is_host() { DeviceKind::Host } else { DeviceKind::Gpu };
    let device = runtime.devices().iter().find(|device| device.kind == kind);
    let device = device.map_or(options.device.clone(), |device| format!("{} ({})", device.name, device.driver));
    println!("Tidemill on {device}");
    let mut peers = Peer::all(&options.python, options.is_host());
    for peer in &peers {
        println!("peer: {}", peer.title);
    }
    let mut results = Vec::new();
    for row in ROWS.iter().filter(|row| options.only.is_empty() || options.only.iter().any(|name| name == row.name)) {
        let sizes = if options.is_host() { row.host } else { row.gpu };
        let quick = sizes.first().map(|_| row.quick);
        for size in if options.is_quick { quick.as_slice() } else { sizes } {
            let result = measure(&runtime, options, row, *size, &mut peers).await?;
            result.print();
            results.push(result);
        }
    }
    runtime.shutdown().await?;
    if let Some(page) = &options.page {
        let section = if options.is_host() { "host" } else { "gpu" };
        page::write(page, section, options.rounds, &device, &peers, &results)?;
    }
    Ok(())
}

/// Measures one row: all rounds, Tidemill and its peers in turn.
async fn measure(
    runtime: &Runtime,
    options: &Options,
    row: &'static Row,
    size: usize,
    peers: &mut [Peer],
) -> Result<Figures> {
    let session = runtime.session(row.name).seed(1).open();
    let inputs = fill(&session, row, size).await?;
    let (number, magnitude) = check(&session, &inputs, row, size).await?;
    let mut result = Figures {
        row,
        size,
        magnitude,
        ours: Measured { times_ms: Vec::new(), check: number },
        counts: String::new(),
        peers: Vec::new(),
    };
    if !options.is_host() {
        warm_up(&session).await?;
    }
    turn(&session, &inputs, row, size).await?;
    let before = runtime.stats();
    for _ in 0..options.rounds {
        ours(&session, &inputs, row, size, &mut result.ours).await?;
        for peer in peers.iter_mut() {
            let Some(theirs) = peer.ask(row.name, size) else { continue };
            let agrees = result.agrees(&theirs);
            match result.peers.iter_mut().find(|(name, _)| *name == peer.name) {
                Some((_, measured)) => {
                    measured.times_ms.extend(theirs.times_ms);
                    if !agrees {
                        // If a peer's number differs in one round, the row shows that number.
                        measured.check = theirs.check;
                    }
                }
                None => result.peers.push((peer.name.clone(), theirs)),
            }
        }
    }
    // `ours` runs one turn more in each round than it times.
    result.counts = counts(&runtime.stats().since(&before), result.ours.times_ms.len() + options.rounds);
    Ok(result)
}

/// Times turns of Tidemill's program, for at least a third of a second and three turns.
async fn ours(session: &Session, inputs: &Inputs, row: &Row, size: usize, measured: &mut Measured) -> Result<()> {
    // The first turn of a round is not timed, because the peers have filled the caches with their own data.
    turn(session, inputs, row, size).await?;
    let begin = Instant::now();
    for turns in 0..200 {
        if turns >= 3 && begin.elapsed() > Duration::from_millis(300) {
            break;
        }
        let start = Instant::now();
        turn(session, inputs, row, size).await?;
        measured.times_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Computes products for half a second, because an idle GPU runs at a fraction of its clock.
async fn warm_up(session: &Session) -> Result<()> {
    let a: Array = session.rand::<f32>([4096, 4096]);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(500) {
        a.matmul(&a).eval().await?;
    }
    Ok(())
}

fn counts(stats: &Stats, turns: usize) -> String {
    let turns = turns.max(1) as f64;
    let each = |count: u64| (count as f64 / turns).round();
    let mut words = format!("kernels {} dispatches {}", each(stats.kernels), each(stats.dispatches));
    if stats.pipelines_compiled > 0 {
        words += &format!(" compiled {}", stats.pipelines_compiled);
    }
    for (reason, count) in &stats.elsewhere {
        words += &format!("; {count} elsewhere: {reason}");
    }
    words
}

impl Figures {
    /// The name and the time of the fastest peer among those that computed the same number as Tidemill.
    fn best(&self) -> Option<(&str, f64)> {
        let right = self.peers.iter().filter(|(_, measured)| self.agrees(measured));
        right.map(|(name, measured)| (name.as_str(), measured.median())).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn agrees(&self, theirs: &Measured) -> bool {
        let (ours, theirs) = (self.ours.check, theirs.check);
        // Errors of single elements have both signs, and nearly cancel in the sum, so a small part of the magnitudes is
        // allowed.
        let least = 1e-6 * self.magnitude;
        (ours - theirs).abs() <= (self.row.tolerance * ours.abs().max(theirs.abs())).max(least)
    }

    /// Tidemill's time over that of the fastest peer.
    fn ratio(&self) -> Option<f64> {
        self.best().map(|(_, ms)| self.ours.median() / ms)
    }

    fn print(&self) {
        let ratio = self.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let ours = self.ours.median();
        print!(
            "{:<16} {:>10} ours {ours:10.4} ms  ratio {ratio:>7} goal {:<5}",
            self.row.name, self.size, self.row.goal
        );
        for (name, measured) in &self.peers {
            let wrong =
                if self.agrees(measured) { String::new() } else { format!(" (ANOTHER RESULT: {})", measured.check) };
            print!(" {name} {:.4}{wrong}", measured.median());
        }
        println!("  check {:.6} [{}]", self.ours.check, self.counts);
    }
}
