//! Measures factorisations and systems on the device that `TIDEMILL_DEVICE` names: `cargo bench --bench linear`.
//!
//! A row is the least of several times, from the call until one element of the result is on the host. Each is printed
//! as a line `name\tdtype\tmilliseconds`, in the form of a peer's lines.

use futures::executor::block_on;
use std::time::{Duration, Instant};
use tidemill::{Array, DType, Runtime, Session};

/// Time of work before the first row, so that the device runs at its full clock.
const WARM_UP: Duration = Duration::from_millis(1500);
/// A row is repeated until this time is over, but at least 3 times and at most 30.
const ROW_MAX: Duration = Duration::from_millis(1500);

fn main() -> tidemill::Result<()> {
    let runtime = Runtime::builder().start_blocking()?;
    let s = runtime.session("linear").seed(1).open();
    let is_gpu = runtime.device("gpu").is_ok();
    let (large, host) = (4096, 1000);
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        let a = s.rand::<f32>([1024, 1024]);
        ready(&a.matmul(&a));
    }
    for dtype in [DType::F32, DType::F64] {
        let n = if is_gpu { large } else { host };
        let a = evaluated(s.randn::<f64>([n, n]).cast_to(dtype));
        let definite = evaluated(a.matmul(&a.t()) + s.eye::<f64>(n).cast_to(dtype) * n as f64);
        let b = evaluated(s.randn::<f64>([n, 1]).cast_to(dtype));
        row(&format!("cholesky {n}"), dtype, || definite.cholesky());
        row(&format!("solve {n}"), dtype, || a.solve(&b));
        row(&format!("lu {n}"), dtype, || a.lu().1);
        row(&format!("qr {n}"), dtype, || a.qr().0);
        row(&format!("inv {n}"), dtype, || a.inv());
        if !is_gpu {
            let a = evaluated(s.randn::<f64>([500, 500]).cast_to(dtype));
            row("svd 500", dtype, || a.svd().0);
            row("eigh 500", dtype, || a.eigh().1);
        }
        small(&s, dtype);
    }
    Ok(())
}

/// Ten thousand matrices of 32 by 32.
fn small(s: &Session, dtype: DType) {
    let a = s.randn::<f64>([32, 32, 10_000]).cast_to(dtype);
    let a = evaluated(a.matmul(&a.t()) + s.eye::<f64>(32).cast_to(dtype) * 32.0);
    let b = evaluated(s.randn::<f64>([32, 1, 10_000]).cast_to(dtype));
    row("cholesky 10000 x 32", dtype, || a.cholesky());
    row("solve 10000 x 32", dtype, || a.solve(&b));
}

/// Computes an array before the measurement.
fn evaluated(array: Array) -> Array {
    block_on(array.eval()).unwrap_or_else(|error| panic!("{error}"));
    array
}

/// Awaits an element.
fn ready(array: &Array) {
    let element = array.slice(0..1).cast::<f64>().item::<f64>();
    block_on(element).unwrap_or_else(|error| panic!("{error}"));
}

fn row(name: &str, dtype: DType, op: impl Fn() -> Array) {
    let (begin, mut least, mut times) = (Instant::now(), f64::INFINITY, 0);
    while times < 3 || (times < 30 && begin.elapsed() < ROW_MAX) {
        let start = Instant::now();
        ready(&op());
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
        times += 1;
    }
    println!("{name}\t{dtype}\t{least:.3}");
}
