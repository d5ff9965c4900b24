//! Measures how fast scripts run, beside GNU Octave on the same texts in the same run.
//!
//! `cargo bench --bench scripts -- [--quick] [FILTER]`
//!
//! Each program times itself by `tic` and `toc` and by `cputime`, so that start-up does not count, and prints its
//! result, which must equal Octave's. Runs of both alternate. The medians of wall time and of CPU time (of all threads)
//! are compared; CPU time is more reliable if the machine has other work. Without `octave-cli` only our times are
//! printed. Times are printed, not asserted. Everything runs on the host.

use parking_lot::Mutex;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;
use tidemill::Runtime;
use tidemill_script::env::Options as ScriptOptions;
use tidemill_script::output::Captured;
use tidemill_script::{Script, Workspace};

/// A program, and the share of Octave's time that it may take.
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

/// The scalar loops.
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

/// 100,000 statements on small matrices (or as many as Octave finishes in a short time).
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
    program(
        "svd, eig",
        1.0,
        "",
        "A = magic (3); S = A + A'; for k = 1:1e4, s = svd (A) + eig (S); end, check = sum (s);",
    ),
    program("complex", 1.0, "", "A = magic (3) * (1+2i); for k = 1:1e5, B = A*A + A; end, check = abs (sum (B(:)));"),
];

/// Other statements in loops: builtins, texts, containers, calls, growth.
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

/// Loops that change or read parts of arrays that are too large for a script's own memory.
const ARRAYS: &[Program] = &[
    program(
        "A(k,:) = r",
        1.0,
        "",
        "A = zeros (1000); r = 1:1000; for k = 1:1000, A(k,:) = r*k; end, check = sum (A(:));",
    ),
    program(
        "A(:,k) from A(:,k-1)",
        1.0,
        "",
        "A = ones (1000); for k = 2:1000, A(:,k) = A(:,k-1)*0.5 + 1; end, check = sum (A(:));",
    ),
    program(
        "A(i,j) from its neighbours",
        1.0,
        "",
        "A = zeros (300); for i = 2:300, for j = 2:300, A(i,j) = A(i-1,j)*0.5 + A(i,j-1)*0.5 + 1; end, end
         check = A(end);",
    ),
    program(
        "A(:,k) = f (A(:,k-1))",
        1.0,
        "",
        "A = ones (500); f = @(x) sin (x)*0.5 + 1; for k = 2:500, A(:,k) = f (A(:,k-1)); end, check = sum (A(:));",
    ),
    program("x = [x(2:end) x(1)]", 1.0, "", "x = 1:10000; for k = 1:200, x = [x(2:end) x(1)]; end, check = x(1);"),
    program(
        "[m, i] = max (x); x(i) = -1",
        1.0,
        "",
        "x = mod ((1:6000)*7919, 6007); s = 0; for k = 1:500, [m, i] = max (x); x(i) = -1; s = s + m; end, check = s;",
    ),
    program(
        "x(x > c) = c",
        1.0,
        "",
        "x = mod ((1:6000)*7919, 6007); s = 0; for k = 1:500, x(x > 6000 - k) = k; s = s + x(7); end, check = s;",
    ),
    program(
        "do until it converges",
        1.0,
        "",
        "x = linspace (1, 2, 5000); n = 0;
         do, y = x; x = 1 + (x - 1)*0.98; n++; until max (abs (x - y)) < 1e-5
         check = n;",
    ),
    program(
        "until it converges",
        1.0,
        "",
        "x = linspace (1, 2, 5000); n = 0; while max (abs (x - 1)) > 1e-3, x = 1 + (x - 1)*0.98; n++; end, check = n;",
    ),
    program(
        "y = y*0.5 + x, 20,000 elements",
        1.0,
        "",
        "x = ones (1, 20000); y = x; for k = 1:500, y = y*0.5 + x; end, check = sum (y);",
    ),
    program("30 x 30 products", 1.0, "", "A = magic (30); B = A'; for k = 1:3000, C = A*B; end, check = sum (C(:));"),
];

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
    for program in SCALARS.iter().chain(SMALL_MATRICES).chain(LOOPS).chain(ARRAYS) {
        if program.name.contains(&options.filter) {
            beside_octave(&runtime, program, octave, options)?;
        }
    }
    if "empty file".contains(&options.filter) {
        empty_file()?;
    }
    if "copies".contains(&options.filter) {
        let step = step();
        copies(&runtime, "numbers", &number_text(), step)?;
        copies(&runtime, "numbers and text", &small_text(), step)?;
        copies(&runtime, "loops", &loop_text(), step)?;
        copies(&runtime, "arrays of the runtime", &array_text(), step)?;
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
        print!("   Octave {:>9.2} ms   ratio {by_wall:.3} (CPU {by_cpu:.3})   goal {}", their_wall * 1e3, program.goal);
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

/// Fifty statements on numbers.
fn number_text() -> String {
    let mut text = String::from("a = 1.5; b = 2; s = 0;\n");
    for k in 1..=15 {
        text.push_str(&format!("s = s + a * {k};\nb = b / 2 + s;\na = a - 0.25 * {k};\n"));
    }
    text.push_str("c = max (a, b);\nfprintf ('%.6f %.6f\\n', s, c);\n");
    text
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

/// Keeps a core's units busy, as an interpreter does, with chains of multiplications and reads of a table. Arithmetic
/// that mostly waits for its own results would gain by two threads even if they share a core.
#[inline(never)]
fn spin(steps: u64) {
    static TABLE: [u64; 1024] = {
        let mut table = [0; 1024];
        let mut i = 0;
        while i < 1024 {
            table[i] = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            i += 1;
        }
        table
    };
    let next = |x: u64| x.wrapping_mul(0xd129_0d3f_3c6e_f361) ^ TABLE[(x >> 54) as usize];
    std::hint::black_box(
        (0..steps).fold(std::array::from_fn::<u64, 24, _>(|i| i as u64 + 1), |chains, _| chains.map(next)),
    );
}

/// Returns the seconds that a step of [`spin`] takes.
fn step() -> f64 {
    const STEPS: u64 = 4_000_000;
    let times = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        spin(STEPS);
        begin.elapsed().as_secs_f64()
    });
    median(times.collect()) / STEPS as f64
}

/// Returns the hardware's limit: the seconds that two threads take for the arithmetic of all copies. Two virtual cores
/// may be one core of the machine, and other programs may use it.
fn arithmetic_of_two_threads(steps: u64) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(move || spin(steps * COPIES / 2)))));
    begin.elapsed().as_secs_f64()
}

/// Returns the executor's limit: the speedup of tasks that each do `steps` of arithmetic.
fn arithmetic_in_tasks(executor: &tokio::runtime::Runtime, steps: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        (0..COPIES).for_each(|_| spin(steps));
        one_by_one.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        executor.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            for _ in 0..COPIES {
                running.spawn(async move { spin(steps) });
            }
            while let Some(ended) = running.join_next().await {
                ended?;
            }
            Ok::<(), tokio::task::JoinError>(())
        })?;
        at_once.push(begin.elapsed().as_secs_f64());
    }
    Ok(median(one_by_one) / median(at_once))
}

const COPIES: u64 = 1000;
/// The number of measurements of copies.
const ROUNDS: usize = 9;

/// Measures a thousand copies at the same time, beside a thousand runs one after the other in the same process: by
/// `run_copies`, awaited together by one task, and each in a task of its own.
fn copies(runtime: &Runtime, what: &str, text: &str, step: f64) -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::parse(text)?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let open = |i| runtime.session("copy").stream(i).open();
    let expected: Arc<str> = executor.block_on(script.run(&open(0)))?.printed().into();
    let check = move |workspace: Workspace| {
        let printed = workspace.printed();
        if *printed == *expected { Ok(()) } else { Err(format!("a copy printed {printed}, not {expected}")) }
    };
    let begin = Instant::now();
    for i in 0..COPIES {
        check(executor.block_on(script.run(&open(i)))?)?;
    }
    let steps = (begin.elapsed().as_secs_f64() / COPIES as f64 / step) as u64;
    let (mut one_by_one, mut at_once, mut joined, mut in_tasks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut alone, mut by_two) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        executor.block_on(async {
            for i in 0..COPIES {
                check(script.run(&open(i)).await?)?;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        })?;
        one_by_one.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        for ended in executor.block_on(script.run_copies((0..COPIES).map(open))) {
            check(ended?)?;
        }
        at_once.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        spin(steps * COPIES);
        alone.push(begin.elapsed().as_secs_f64());
        by_two.push(arithmetic_of_two_threads(steps));
        let begin = Instant::now();
        executor.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            for i in 0..COPIES {
                let (session, script, check) = (open(i), script.clone(), check.clone());
                running.spawn(async move { check(script.run(&session).await.map_err(|error| error.to_string())?) });
            }
            while let Some(ended) = running.join_next().await {
                ended??;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        })?;
        in_tasks.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        executor.block_on(async {
            let sessions: Vec<_> = (0..COPIES).map(open).collect();
            for ended in futures::future::join_all(sessions.iter().map(|session| script.run(session))).await {
                check(ended?)?;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        })?;
        joined.push(begin.elapsed().as_secs_f64());
    }
    let one_by_one = median(one_by_one);
    println!("{:<32} {:>9.2} ms", format!("{what}, 1000 runs"), one_by_one * 1e3);
    let ways = [("1000 copies at once", at_once), ("joined by a task", joined), ("in tasks of their own", in_tasks)];
    for (how, times) in ways {
        let time = median(times);
        let gain = one_by_one / time;
        println!("  {how:<30} {:>9.2} ms   {gain:.2} times as fast   goal 1.5 on 2 cores", time * 1e3);
    }
    let of_two = median(alone) / median(by_two);
    println!("{:<32}                {of_two:.2} times as fast", "  arithmetic by two threads");
    let limit = arithmetic_in_tasks(&executor, steps)?;
    println!("{:<32}                {limit:.2} times as fast", "  arithmetic, as long, in tasks");
    copies_by_command(text)
}

/// Measures the same by `--copies`, including the start and the end of the process.
fn copies_by_command(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join(format!("tidemill_copies_{}.m", std::process::id()));
    std::fs::write(&file, text)?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let mut command = Command::new(BINARY);
        let output = command.args(["run", "--device", "host", "--copies", &COPIES.to_string()]).arg(&file).output()?;
        times.push(begin.elapsed().as_secs_f64());
        let lines = output.stdout.iter().filter(|&&b| b == b'\n').count() as u64;
        if !output.status.success() || lines != COPIES {
            return Err(format!("--copies {COPIES} printed {lines} lines and ended with {}", output.status).into());
        }
    }
    std::fs::remove_file(&file)?;
    println!("{:<32} {:>9.2} ms", "  tidemill run --copies 1000", median(times) * 1e3);
    Ok(())
}
