//! Measures the speed of the host's threads, for the cost model.
//!
//! In: the pool. Out: costs. Must hold: it takes about 100 milliseconds, mostly to get memory. The figures are those of
//! the faster rounds, because other load on the machine can only make rounds slower. It runs once per machine:
//! `device::costs` stores the result.

use crate::contract::device::Costs;
use crate::graph::{ElementOp, Scalar};
use crate::host_buffer::HostBuffer;
use crate::kernels::element::host::{HostArg, apply};
use crate::kernels::eval::Pool;
use std::time::{Duration, Instant};

/// Bytes of the source of the copy, and of its destination. Together they exceed the caches of a server.
const COPY_BYTES: usize = 64 << 20;
/// Bytes a task copies.
const COPY_TASK_BYTES: usize = 128 << 10;
/// Elements of the block that the arithmetic goes over, as the evaluator's.
const BLOCK: usize = 2048;
/// Ops over the block, a task.
const BLOCK_OPS: usize = 64;
/// No further round starts after this time.
const ROUNDS_TIME: Duration = Duration::from_millis(3);
/// Rounds of one kind at most.
const ROUNDS_MAX: usize = 32;

/// Measures the host's costs.
pub(super) fn measure(pool: &Pool) -> Costs {
    Costs {
        launch_us: launch_us(),
        dispatch_us: dispatch_us(pool),
        memory_gb_per_s: memory_gb_per_s(pool),
        f32_gop_per_s: gop_per_s(pool, Scalar::F32(0.999)),
        f64_gop_per_s: gop_per_s(pool, Scalar::F64(0.999)),
        // Host memory is shared, not copied.
        upload_gb_per_s: 1e6,
        readback_gb_per_s: 1e6,
    }
}

/// Seconds of a round: the 25th percentile.
fn seconds(mut round: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut seconds = Vec::with_capacity(ROUNDS_MAX);
    while seconds.len() < 3 || (seconds.len() < ROUNDS_MAX && begin.elapsed() < ROUNDS_TIME) {
        let start = Instant::now();
        round();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 4]
}

/// Microseconds for a batch to reach the device's thread and for its completion to return. Both wake a thread.
fn launch_us() -> f64 {
    let (there, inbox) = crossbeam_channel::unbounded::<()>();
    let (outbox, back) = crossbeam_channel::unbounded::<()>();
    let echo = std::thread::Builder::new().spawn(move || {
        for () in inbox {
            let _ = outbox.send(());
        }
    });
    let Ok(echo) = echo else { return 10.0 };
    let seconds = seconds(|| {
        let _ = there.send(());
        let _ = back.recv();
    });
    drop(there);
    let _ = echo.join();
    (seconds * 1e6).clamp(2.0, 50.0)
}

/// Microseconds of a kernel that does nothing, on all threads.
fn dispatch_us(pool: &Pool) -> f64 {
    let seconds = seconds(|| pool.run(pool.threads() * 2, true, |tasks| tasks.for_each(drop)));
    (seconds * 1e6).clamp(0.2, 100.0)
}

fn memory_gb_per_s(pool: &Pool) -> f64 {
    let from = vec![1u8; COPY_BYTES];
    let mut to = vec![2u8; COPY_BYTES];
    let parts: Vec<parking_lot::Mutex<&mut [u8]>> =
        to.chunks_mut(COPY_TASK_BYTES).map(parking_lot::Mutex::new).collect();
    let seconds = seconds(|| {
        pool.run(parts.len(), true, |tasks| {
            for task in tasks {
                let mut to = parts[task].lock();
                let first = task * COPY_TASK_BYTES;
                to.copy_from_slice(&from[first..first + COPY_TASK_BYTES]);
            }
        });
    });
    (2.0 * COPY_BYTES as f64 / seconds / 1e9).clamp(0.5, 10_000.0)
}

/// Multiplications of blocks that lie in a cache by a factor, by the evaluator's own loop.
fn gop_per_s(pool: &Pool, factor: Scalar) -> f64 {
    let dtype = factor.dtype();
    let tasks = pool.threads() * 4;
    let seconds = seconds(|| {
        pool.run(tasks, true, |tasks| {
            let mut blocks = [HostBuffer::zeroed(dtype, BLOCK), HostBuffer::zeroed(dtype, BLOCK)];
            for _ in tasks {
                for _ in 0..BLOCK_OPS {
                    let [from, to] = &mut blocks;
                    let args = [HostArg::Block(from.bytes()), HostArg::Scalar(factor)];
                    let to = to.bytes_mut().expect("BUF-2: a fresh buffer is owned");
                    apply(ElementOp::Mul, dtype, dtype, &args, to, BLOCK);
                    blocks.swap(0, 1);
                }
            }
        });
    });
    ((tasks * BLOCK_OPS * BLOCK) as f64 / seconds / 1e9).clamp(0.05, 100_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_finite_and_of_a_machine() {
        for threads in [1, 2] {
            let pool = Pool::new(Some(threads)).unwrap();
            let start = Instant::now();
            let costs = measure(&pool);
            let took = start.elapsed();
            let Costs { launch_us, dispatch_us, memory_gb_per_s, f32_gop_per_s, f64_gop_per_s, .. } = costs;
            for value in [launch_us, dispatch_us, memory_gb_per_s, f32_gop_per_s, f64_gop_per_s] {
                assert!(value.is_finite() && value > 0.0, "{costs:?}");
            }
            println!("{threads} threads: {costs:?} in {took:?}");
        }
    }
}
