//! How fast scripts run, beside GNU Octave on the same texts in the same run.
//!
//! `cargo bench --bench scripts -- [--quick] [FILTER]`
//!
//! Each program times itself by `tic` and `toc`, so that nobody's start-up counts, and prints what it computed, which has
//! to be what Octave computed. Runs of both take turns; medians are compared. Without `octave-cli` only our times are
//! printed. Figures of time are printed, not asserted. Everything runs on the host.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;
use tidemill::Runtime;
use tidemill::script::Script;
use tidemill::script::env::Options as ScriptOptions;
use tidemill::script::output::Captured;

/// A program and the share of Octave's time that it may take.
struct Program {
    name: &'static str,
    goal: f64,
    /// Functions, then statements that leave their result in `check`.
    functions: &'static str,
    text: &'static str,
}

const fn program(name: &'static str, goal: f64, functions: &'static str, text: &'static str) -> Program {
    Program { name, goal, functions, text }
}

const HALVE: &str = "function y = halve (x)\n  y = x * 0.5 + 1;\nend\n";

/// Goals of the scalar loops.
const SCALARS: &[Program] = &[
    program("sum of a million numbers", 0.2, "", "s = 0; for k = 1:1000000, s = s + k*2; end, check = s;"),
    program("recurrence", 0.3, "", "x = zeros (1, 1e6); for k = 2:1e6, x(k) = x(k-1)*0.5 + 1; end, check = x(end);"),
    program("recurrence, growing", 0.3, "", "x = 1; for k = 2:1e6, x(k) = x(k-1)*0.5 + 1; end, check = x(end);"),
    program(
        "recurrence, branch and call",
        0.3,
        HALVE,
        "x = zeros (1, 2e5); for k = 2:2e5, if x(k-1) < 1.9, x(k) = halve (x(k-1)); else, x(k) = 0; end, end
         check = sum (x);",
    ),
    program("while", 0.3, "", "k = 0; s = 0; while k < 3e5, k += 1; if k > 9 && s >= 0, s += k; end, end, check = s;"),
    program(
        "int32 recurrence",
        1.0,
        "",
        "x = zeros (1, 1e5, 'int32'); for k = 2:1e5, x(k) = x(k-1) + int32 (3); end, check = double (x(end));",
    ),
];

/// 100,000 statements (or as many as Octave ends soon enough) on small matrices.
const SMALL_MATRICES: &[Program] = &[
    program("A * B", 1.0, "", "A = magic (3); B = A'; for k = 1:1e5, C = A*B; end, check = sum (C(:));"),
    program("A + B * 0.5", 1.0, "", "A = magic (3); B = A; for k = 1:1e5, B = A + B*0.5; end, check = sum (B(:));"),
    program("A \\ b", 1.0, "", "A = magic (3); b = [1; 2; 3]; for k = 1:1e5, x = A \\ b; end, check = sum (x);"),
    program("b / A", 1.0, "", "A = magic (3); b = [1 2 3]; for k = 1:1e5, x = b / A; end, check = sum (x);"),
    program("inv and det", 1.0, "", "A = magic (3); for k = 1:5e4, B = inv (A) * det (A); end, check = sum (B(:));"),
    program(
        "slices",
        1.0,
        "",
        "A = magic (3); s = 0; for k = 1:5e4, b = A(2,:); c = A(:,1); s = s + b(2)*c(3); end
         check = s;",
    ),
    program(
        "slice assignment",
        1.0,
        "",
        "A = eye (3); for k = 1:5e4, A(2,:) = [k 1 2]; A(:,1) = k; end
         check = sum (A(:));",
    ),
    program("transpose, minus", 1.0, "", "A = magic (3); for k = 1:1e5, A = -A'; end, check = A(2,1);"),
    program("comparison, any", 1.0, "", "A = magic (3); n = 0; for k = 1:5e4, n = n + any (A(:) > 8); end, check = n;"),
    program("sum, max", 1.0, "", "A = magic (3); for k = 1:5e4, s = sum (A, 2) + max (A, [], 2); end, check = s(3);"),
    program("literals", 1.0, "", "for k = 1:1e5, B = [k 2 3; 4 5 6; 7 8 k]; end, check = sum (B(:));"),
    program("joined rows", 1.0, "", "a = [1 2 3]; for k = 1:1e5, B = [a; a; a]; end, check = sum (B(:));"),
    program("exp, .^", 1.0, "", "A = magic (3) / 9; for k = 1:5e4, B = exp (A) + A.^2; end, check = sum (B(:));"),
    program("mask", 1.0, "", "A = magic (3); for k = 1:1e5, b = A(A > 4); end, check = sum (b);"),
    program(
        "zeros, eye, reshape",
        1.0,
        "",
        "for k = 1:3e4, A = reshape (zeros (3) + eye (3), 1, 9); end, check = sum (A);",
    ),
    program("complex", 1.0, "", "A = magic (3) * (1+2i); for k = 1:1e5, B = A*A + A; end, check = abs (sum (B(:)));"),
];

/// What else stands in loops: builtins, texts, containers, calls, growth.
const LOOPS: &[Program] = &[
    program(
        "mod, floor, abs, max",
        1.0,
        "",
        "s = 0; for k = 1:3e4, s = max (s, mod (k, 7) + floor (abs (-k) / 3)); end
         check = s;",
    ),
    program(
        "numel, isempty, size",
        1.0,
        "",
        "a = 1:9; s = 0; for k = 1:3e4, s = s + numel (a) + isempty (a) + size (a, 2); end
         check = s;",
    ),
    program(
        "sprintf, num2str",
        1.0,
        "",
        "s = 0; for k = 1:3000, s = s + length ([sprintf('%d,%s', k, 'x') num2str(k)]); end
         check = s;",
    ),
    program("text that grows", 1.0, "", "s = ''; for k = 1:3e4, s = [s 'ab']; end, check = length (s);"),
    program("x(end+1) = k", 1.0, "", "x = []; for k = 1:1e5, x(end+1) = k; end, check = sum (x);"),
    program("x = [x k]", 1.0, "", "x = []; for k = 1:2e4, x = [x k]; end, check = sum (x);"),
    program("c{end+1} = k", 1.0, "", "c = {}; for k = 1:1e5, c{end+1} = k; end, check = numel (c);"),
    program("s.a(k) = k", 1.0, "", "s.a = zeros (1, 1e5); for k = 1:1e5, s.a(k) = k; end, check = sum (s.a);"),
    program("c{1}(k) = k", 1.0, "", "c = {zeros(1, 1e5)}; for k = 1:1e5, c{1}(k) = k; end, check = sum (c{1});"),
    program(
        "A(i,j) = i+j",
        1.0,
        "",
        "A = zeros (300); for i = 1:300, for j = 1:300, A(i,j) = i + j; end, end
         check = sum (A(:));",
    ),
    program("s = s + x(k)", 1.0, "", "x = (1:1e5) * 0.5; s = 0; for k = 1:1e5, s = s + x(k); end, check = s;"),
    program(
        "big argument",
        1.0,
        "function r = at (a, k)\n  r = a(k);\nend\n",
        "a = 1:1e5; s = 0; for k = 1:5e4, s = s + at (a, k); end, check = s;",
    ),
    program(
        "recursion",
        1.0,
        "function r = fib (n)\n  if n < 2, r = n; else, r = fib (n-1) + fib (n-2); end\nend\n",
        "check = fib (18);",
    ),
    program(
        "anonymous function",
        1.0,
        "",
        "a = 3; f = @(x) x*a + 1; s = 0; for k = 1:1e5, s = f (s) * 0.1; end, check = s;",
    ),
    program(
        "cellfun, arrayfun",
        1.0,
        "",
        "c = num2cell (1:5e4);
         check = sum (cellfun (@(x) x*2, c)) + sum (arrayfun (@(x) x+1, 1:5e4));",
    ),
    program(
        "switch on text",
        1.0,
        "",
        "n = 0; w = 'bb';
         for k = 1:1e5, switch w, case 'aa', n = n+1; case {'bb', 'cc'}, n = n+2; end, end, check = n;",
    ),
    program("try", 1.0, "", "n = 0; for k = 1:1e4, try, error ('a:b', 'c'); catch, n = n+1; end, end, check = n;"),
];

/// What was asked for on the command line.
struct Options {
    quick: bool,
    filter: String,
}

fn main() -> ExitCode {
    let mut options = Options { quick: false, filter: String::new() };
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo says that it is a benchmark.
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
    for program in SCALARS.iter().chain(SMALL_MATRICES).chain(LOOPS) {
        if program.name.contains(&options.filter) {
            beside_octave(&runtime, program, octave, options)?;
        }
    }
    if "empty file".contains(&options.filter) {
        empty_file()?;
    }
    if "copies".contains(&options.filter) {
        copies(&runtime, "numbers and text", &small_text())?;
        copies(&runtime, "loops", &loop_text())?;
        copies(&runtime, "arrays of the runtime", &array_text())?;
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds, and what the program computed, from its last line.
fn read(printed: &str) -> Option<(f64, f64)> {
    let mut words = printed.lines().last()?.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

fn beside_octave(
    runtime: &Runtime,
    program: &Program,
    octave: bool,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = format!(
        "1;\n{}begin = tic;\n{}\nelapsed = toc (begin);\nfprintf ('%.9f %.15g\\n', elapsed, check);\n",
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
        let (seconds, value) = read(&printed).ok_or_else(|| format!("{} printed {printed}", program.name))?;
        ours.push(seconds);
        if octave {
            let output = Command::new("octave-cli").arg("-q").arg(&file).output()?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let (seconds, expected) = read(&printed).ok_or_else(|| format!("Octave printed {printed}"))?;
            theirs.push(seconds);
            if (value - expected).abs() > 1e-9 * expected.abs().max(1.0) {
                return Err(format!("{}: {value}, and Octave gives {expected}", program.name).into());
            }
        }
    }
    std::fs::remove_file(&file)?;
    let ours = median(ours);
    print!("{:<32} {:>9.2} ms", program.name, ours * 1e3);
    if octave {
        let theirs = median(theirs);
        print!("   Octave {:>9.2} ms   ratio {:.3}   goal {}", theirs * 1e3, ours / theirs, program.goal);
    }
    println!();
    Ok(())
}

/// The binary that was built with this benchmark.
fn binary() -> Option<PathBuf> {
    option_env!("CARGO_BIN_EXE_tidemill").map(PathBuf::from).filter(|path| Path::exists(path))
}

/// `tidemill run` of a file without statements, start and end included.
fn empty_file() -> Result<(), Box<dyn std::error::Error>> {
    let Some(binary) = binary() else {
        println!("the binary is not here (feature `cli`): no time of an empty file");
        return Ok(());
    };
    let file = std::env::temp_dir().join(format!("tidemill_empty_{}.m", std::process::id()));
    std::fs::write(&file, "")?;
    let mut times = Vec::new();
    for _ in 0..21 {
        let begin = Instant::now();
        let status = Command::new(&binary).args(["run", "--device", "host"]).arg(&file).status()?;
        times.push(begin.elapsed().as_secs_f64());
        if !status.success() {
            return Err(format!("an empty file ended with {status}").into());
        }
    }
    std::fs::remove_file(&file)?;
    println!("{:<32} {:>9.2} ms   goal 30", "run of an empty file", median(times) * 1e3);
    Ok(())
}

/// Fifty statements on numbers, a small matrix and text.
fn small_text() -> String {
    let mut text = String::from("x = (1:10) * 2; s = 0; A = magic (4); b = [1; 2; 3; 4]; t = '';\n");
    for k in 1..=14 {
        text.push_str(&format!("s = s + sum (x) * {k};\nb = A * b / 30;\nt = [t sprintf('%d,', s)];\n"));
    }
    text.push_str("n = numel (t);\nfprintf ('%d %d %.6f\\n', s, n, sum (b));\n");
    text
}

/// The same number of statements, with loops over numbers.
fn loop_text() -> String {
    let mut text = String::from("x = (1:10) * 2; s = 0; y = zeros (1, 100);\n");
    for k in 1..=16 {
        text.push_str(&format!("s = s + sum (x) * {k};\nfor i = 1:100, y(i) = mod (i, {k}) + y(i); end\n"));
        text.push_str("if s > 1000, s = s - 1; end\n");
    }
    text.push_str("fprintf ('%d %d\\n', s, sum (y));\n");
    text
}

/// Fifty statements, some of them on an array of the runtime.
fn array_text() -> String {
    let mut text = String::from("x = (1:10) * 2; s = 0; A = magic (4); b = [1; 2; 3; 4]; big = ones (100, 100);\n");
    for k in 1..=11 {
        text.push_str(&format!("s = s + sum (x) * {k};\nfor i = 1:100, s = s + mod (i, {k}); end\n"));
        text.push_str("b = A * b / 30;\nbig = big .* 0.5 + 0.5;\n");
    }
    text.push_str("fprintf ('%d %.6f %d\\n', s, sum (b), sum (big(:)));\n");
    text
}

/// A thousand copies at once beside a thousand runs one after the other, in one process.
fn copies(runtime: &Runtime, what: &str, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    const COPIES: u64 = 1000;
    let script = Script::parse(text)?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let begin = Instant::now();
        let expected = executor.block_on(async {
            let mut printed = String::new();
            for i in 0..COPIES {
                let session = runtime.session("copy").stream(i).open();
                printed = script.run(&session).await?.printed();
            }
            Ok::<String, Box<dyn std::error::Error>>(printed)
        })?;
        one_by_one.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        executor.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            for i in 0..COPIES {
                let session = runtime.session("copy").stream(i).open();
                let script = script.clone();
                running.spawn(async move { script.run(&session).await.map(|w| w.printed()) });
            }
            while let Some(ended) = running.join_next().await {
                let printed = ended??;
                if printed != expected {
                    return Err(format!("a copy printed {printed}, not {expected}").into());
                }
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        })?;
        at_once.push(begin.elapsed().as_secs_f64());
    }
    let (one_by_one, at_once) = (median(one_by_one), median(at_once));
    println!("{:<32} {:>9.2} ms", format!("{what}, 1000 runs"), one_by_one * 1e3);
    let gain = one_by_one / at_once;
    println!(
        "{:<32} {:>9.2} ms   {gain:.2} times as fast   goal 1.5 on 2 cores",
        "  1000 copies at once",
        at_once * 1e3
    );
    Ok(())
}
