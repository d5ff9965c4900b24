//! Measures how fast scripts run, beside GNU Octave on the same texts in the same run.
//!
//! `cargo bench --bench scripts -- [--quick] [FILTER]`
//!
//! FILTER is a part of a program's name, or the name of a group: `numbers`, `small matrices`, `loops`, `arrays`,
//! `copies`, `helpers`.
//!
//! Each program times itself by `tic` and `toc` and by `cputime`, so that start-up does not count, and prints its
//! result, which must equal Octave's. Runs of both alternate. The medians of wall time and of CPU time (of all threads)
//! are compared; CPU time is more reliable if the machine has other work. Without `octave-cli` only our times are
//! printed. Times are printed, not asserted. Everything runs on the host.

mod copies;
mod helpers;
mod programs;

use parking_lot::Mutex;
use programs::{ARRAYS, LOOPS, Program, SCALARS, SMALL_MATRICES};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;
use tidemill::Runtime;
use tidemill_script::Script;
use tidemill_script::env::Options as ScriptOptions;
use tidemill_script::output::Captured;

/// The options of the command line.
struct Options {
    quick: bool,
    filter: String,
}

fn main() -> ExitCode {
    let mut options = Options { quick: false, filter: String::new() };
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo passes this to benchmarks.
            "--bench" => {}
            "--quick" => options.quick = true,
            other => options.filter = other.into(),
        }
    }
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let octave = Command::new("octave-cli").arg("--version").output().is_ok_and(|o| o.status.success());
    if !octave {
        println!("octave-cli is not here: our times, no ratios");
    }
    let runtime = Runtime::builder().device("host").start_blocking()?;
    let groups = [("numbers", SCALARS), ("small matrices", SMALL_MATRICES), ("loops", LOOPS), ("arrays", ARRAYS)];
    for (group, programs) in groups {
        for program in programs {
            if group == options.filter || program.name.contains(&options.filter) {
                beside_octave(&runtime, program, octave, options)?;
            }
        }
    }
    if "empty file".contains(&options.filter) {
        empty_file()?;
    }
    if "copies".contains(&options.filter) {
        copies::measure(&runtime)?;
    }
    if "helpers".contains(&options.filter) {
        helpers::measure()?;
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The numbers in the last line that a run printed.
struct Seen {
    wall_s: f64,
    cpu_s: f64,
    check: f64,
}

fn read(printed: &str) -> Option<Seen> {
    let mut words = printed.lines().last()?.split_whitespace().map(|word| word.parse().ok());
    Some(Seen { wall_s: words.next()??, cpu_s: words.next()??, check: words.next()?? })
}

/// Returns the medians of wall time and of CPU time.
fn medians(seen: &[Seen]) -> (f64, f64) {
    (median(seen.iter().map(|s| s.wall_s).collect()), median(seen.iter().map(|s| s.cpu_s).collect()))
}

fn beside_octave(
    runtime: &Runtime,
    program: &Program,
    octave: bool,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = format!(
        "1;\n{}begin = tic; used = cputime;\n{}\nused = cputime - used; elapsed = toc (begin);\n\
         fprintf ('%.9f %.9f %.15g\\n', elapsed, used, check);\n",
        program.functions, program.text
    );
    let script = Script::parse(&text)?;
    let file = std::env::temp_dir().join(format!("tidemill_bench_{}.m", std::process::id()));
    std::fs::write(&file, &text)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..if options.quick { 1 } else { 5 } {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let session = runtime.session("bench").open();
        let run = script.run_with(&session, Box::new(captured.clone()), ScriptOptions::default());
        futures::executor::block_on(run)?;
        let printed = String::from_utf8_lossy(&captured.lock().out).into_owned();
        let own = read(&printed).ok_or_else(|| format!("{} printed {printed}", program.name))?;
        if octave {
            let output = Command::new("octave-cli").arg("-q").arg(&file).output()?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let peer = read(&printed).ok_or_else(|| format!("Octave printed {printed}"))?;
            let (value, expected) = (own.check, peer.check);
            if (value - expected).abs() > 1e-9 * expected.abs().max(1.0) {
                return Err(format!("{}: {value}, and Octave gives {expected}", program.name).into());
            }
            theirs.push(peer);
        }
        ours.push(own);
    }
    std::fs::remove_file(&file)?;
    let (wall, cpu) = medians(&ours);
    print!("{:<32} {:>9.2} ms", program.name, wall * 1e3);
    if octave {
        let (their_wall, their_cpu) = medians(&theirs);
        let (by_wall, by_cpu) = (wall / their_wall, cpu / their_cpu);
        // The two of a round ran one after the other.
        let ratios = || ours.iter().zip(&theirs).map(|(own, peer)| own.wall_s / peer.wall_s);
        let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
        print!("   Octave {:>9.2} ms   ratio {by_wall:.3} ({least:.3} to {most:.3})", their_wall * 1e3);
        print!(" (CPU {by_cpu:.3})   goal {}", program.goal);
    }
    println!("   check {:.6}", ours[0].check);
    Ok(())
}

/// The binary that was built with this benchmark.
const BINARY: &str = env!("CARGO_BIN_EXE_tidemill");

/// Measures `tidemill run` on a file without statements, including its start and end.
fn empty_file() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join(format!("tidemill_empty_{}.m", std::process::id()));
    std::fs::write(&file, "")?;
    let mut times = Vec::new();
    for _ in 0..21 {
        let begin = Instant::now();
        let status = Command::new(BINARY).args(["run", "--device", "host"]).arg(&file).status()?;
        times.push(begin.elapsed().as_secs_f64());
        if !status.success() {
            return Err(format!("an empty file ended with {status}").into());
        }
    }
    std::fs::remove_file(&file)?;
    println!("{:<32} {:>9.2} ms   goal 30", "run of an empty file", median(times) * 1e3);
    Ok(())
}
