//! A thousand sessions as tasks, each a small program with several gathers, on one runtime.
//!
//! Every program has its own data, awaits a first result, continues with it, and gathers again. All results are checked
//! against the same sums computed one by one in f64.

use crate::shared::{Outcome, RuntimeOptions, at_least, stats_text};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::fmt;
use std::time::{Duration, Instant};
use tidemill::{Error, ErrorKind, Result, Session, Stats};

/// The options of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Programs that run at once
    #[arg(long, default_value_t = 1000, value_parser = at_least(1))]
    pub sessions: usize,
    /// Numbers that each of them computes on
    #[arg(long, default_value_t = 10_000, value_parser = at_least(8))]
    pub elements: usize,
    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

impl Default for Options {
    fn default() -> Options {
        Options { sessions: 1000, elements: 10_000, runtime: RuntimeOptions::default() }
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    /// The number of programs that ran.
    pub sessions: usize,
    /// The number of gathers that they awaited.
    pub gathers: usize,
    /// The errors, by session.
    pub wrong: Vec<(usize, String)>,
    /// The time from the first session to the last result.
    pub elapsed: Duration,
    /// The runtime's counters, if they were asked for.
    pub stats: Option<Stats>,
}

/// Runs all programs.
///
/// # Errors
/// Errors that concern all programs. Errors of single programs are in the report.
pub async fn run(options: &Options) -> Result<Report> {
    if options.sessions == 0 || options.elements < 8 {
        return Err(Error::new(ErrorKind::Argument, "at least 1 of --sessions and 8 --elements are needed"));
    }
    let runtime = options.runtime.start().await?;
    let begin = Instant::now();
    let mut tasks: FuturesUnordered<_> = (0..options.sessions)
        .map(|number| {
            // Tasks work on any executor, since the runtime has threads of its own.
            let session = runtime.session(&format!("program {number}")).seed(number as u64).open();
            let program = program(session, number, options.elements);
            tokio::spawn(async move { (number, program.await) })
        })
        .collect();
    let mut report =
        Report { sessions: options.sessions, gathers: 0, wrong: Vec::new(), elapsed: Duration::ZERO, stats: None };
    while let Some(joined) = tasks.next().await {
        match joined {
            Ok((_, Ok(gathers))) => report.gathers += gathers,
            Ok((number, Err(error))) => report.wrong.push((number, error.to_string())),
            Err(error) => report.wrong.push((usize::MAX, format!("a task ended early: {error}"))),
        }
    }
    drop(tasks);
    report.elapsed = begin.elapsed();
    report.wrong.sort();
    report.stats = options.runtime.finish(runtime).await?;
    Ok(report)
}

/// Runs one small program, and returns the number of gathers that it awaited.
async fn program(session: Session, number: usize, elements: usize) -> Result<usize> {
    let data: Vec<f32> = (0..elements).map(|i| ((i * 7 + number * 13) % 101) as f32 / 101.0).collect();
    let x = session.from_slice(&data, [elements, 1])?;

    // A wave, its mean and its first numbers: the two gathers share one kernel.
    let wave = (&x * 3.0).sin() * 0.5 + &x;
    let (mean, head) = futures::try_join!(wave.mean(..).item::<f32>(), wave.slice((0..8, ..)).gather::<f32>())?;

    // The next computation depends on the result.
    let centred = (&wave - f64::from(mean)) * if mean > 0.5 { 2.0 } else { 4.0 };
    let energy = centred.square().sum(..).item::<f32>().await?;

    // Random numbers depend only on the session's seed, and not on other programs.
    let noise = session.rand::<f32>([elements, 1]);
    let (least, greatest) =
        futures::try_join!(noise.min_over(..).item::<f32>(), (noise + &x).max_over(..).item::<f32>())?;

    let plain: Vec<f64> = data.iter().map(|v| (f64::from(*v) * 3.0).sin() * 0.5 + f64::from(*v)).collect();
    let plain_mean = plain.iter().sum::<f64>() / elements as f64;
    let factor = if mean > 0.5 { 2.0 } else { 4.0 };
    let plain_energy: f64 = plain.iter().map(|v| ((v - plain_mean) * factor).powi(2)).sum();
    agree("the mean", f64::from(mean), plain_mean)?;
    agree("the energy", f64::from(energy), plain_energy)?;
    for (at, value) in head.as_slice().iter().enumerate() {
        agree("the wave", f64::from(*value), plain[at])?;
    }
    if !(0.0..1.0).contains(&least) || !(0.0..2.0).contains(&greatest) {
        return Err(Error::new(ErrorKind::Internal, format!("random numbers of {least} and sums of {greatest}")));
    }
    Ok(5)
}

/// Checks f32 arithmetic against f64, for sums of some ten thousand numbers.
fn agree(what: &str, computed: f64, expected: f64) -> Result<()> {
    if (computed - expected).abs() <= 1e-4 * expected.abs().max(1e-2) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Internal, format!("{what} is {computed} and should be {expected}")))
}

impl Outcome for Report {
    fn succeeded(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let rate = self.sessions as f64 / seconds;
        writeln!(f, "{} sessions, {} gathers in {seconds:.3} s ({rate:.0} sessions/s)", self.sessions, self.gathers)?;
        match self.wrong.len() {
            0 => writeln!(f, "all results are right")?,
            n => writeln!(f, "{n} sessions went wrong, among them:")?,
        }
        for (number, what) in self.wrong.iter().take(5) {
            writeln!(f, "  session {number}: {what}")?;
        }
        f.write_str(&stats_text(&self.stats))
    }
}
