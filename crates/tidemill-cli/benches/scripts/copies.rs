//! Many copies of a script at the same time, beside one run after the other.

use super::{BINARY, median};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use tidemill::Runtime;
use tidemill_script::{Script, Workspace};

/// Measures copies of four scripts.
pub fn measure(runtime: &Runtime) -> Result<(), Box<dyn std::error::Error>> {
    let step = step();
    copies(runtime, "numbers", &number_text(), step)?;
    copies(runtime, "numbers and text", &small_text(), step)?;
    copies(runtime, "loops", &loop_text(), step)?;
    copies(runtime, "arrays of the runtime", &array_text(), step)
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
    println!("{:<32} {:>9.2} ms", format!("{what}, 1000 runs"), median(one_by_one.clone()) * 1e3);
    let ways = [("1000 copies at once", at_once), ("joined by a task", joined), ("in tasks of their own", in_tasks)];
    for (how, times) in ways {
        // The ways of a round ran one after the other.
        let gains: Vec<f64> = one_by_one.iter().zip(&times).map(|(alone, together)| alone / together).collect();
        let (least, most) =
            (gains.iter().copied().fold(f64::INFINITY, f64::min), gains.iter().copied().fold(0.0, f64::max));
        print!(
            "  {how:<30} {:>9.2} ms   {:.2} times as fast ({least:.2} to {most:.2})",
            median(times) * 1e3,
            median(gains)
        );
        println!("   goal 1.5 on 2 cores");
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
