//! The threads that help a script's task: how long one takes until it has done a share of the work.

use super::median;
use std::time::{Duration, Instant};
use tidemill_script::machine::parallel_map;

/// The number of measurements of each way.
const ROUNDS: usize = 301;
/// The stack of a thread that runs scripts.
const STACK_BYTES: usize = 8 << 20;

/// Measures how long two items take on two threads, where the second thread is an idle helper, a new thread, or one of
/// tokio's blocking threads. Each item takes 20 microseconds, so that on one thread both would take 40.
pub fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let executor = tokio::runtime::Builder::new_current_thread().thread_stack_size(STACK_BYTES).build()?;
    let mut ways =
        [("an idle helper", Vec::new()), ("a new thread", Vec::new()), ("tokio's blocking thread", Vec::new())];
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        futures::executor::block_on(parallel_map(2, async |_| work()));
        ways[0].1.push(begin.elapsed().as_secs_f64());

        let begin = Instant::now();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
        work();
        thread.join().map_err(|_| "the thread panicked")?;
        ways[1].1.push(begin.elapsed().as_secs_f64());

        let begin = Instant::now();
        let task = executor.spawn_blocking(work);
        work();
        futures::executor::block_on(task)?;
        ways[2].1.push(begin.elapsed().as_secs_f64());
    }
    println!("two items of 20 us on two threads:");
    for (how, mut times) in ways {
        times.sort_by(f64::total_cmp);
        let (least, most) = (times[ROUNDS / 10], times[ROUNDS - 1 - ROUNDS / 10]);
        println!("  {how:<30} {:>9.1} us ({:.1} to {:.1})", median(times) * 1e6, least * 1e6, most * 1e6);
    }
    Ok(())
}

/// Computes for 20 microseconds.
fn work() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(20) {
        std::hint::spin_loop();
    }
}
