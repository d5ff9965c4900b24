//! Compares the runtime's estimates with the times that devices then take.
//!
//! In: a runtime. Out: for each of its devices and for a few programs, the microseconds that a run was estimated to
//! take on the device, and those that it took. Must hold: both are the runtime's own counters, for the same batches.

use std::fmt;
use tidemill::{Array, DeviceKind, Result, Runtime};

/// The number of measured runs of a program, whose median the table shows. A run that is not measured comes first, since
/// it compiles the program's kernels.
const RUNS: usize = 5;

/// A program over one operand, a square matrix.
struct Program {
    what: &'static str,
    side: usize,
    of: fn(&Array) -> Array,
}

const PROGRAMS: [Program; 5] = [
    Program { what: "chain of 5 ops, 10,000", side: 100, of: chain },
    Program { what: "chain of 5 ops, 1,000,000", side: 1000, of: chain },
    Program { what: "sum of 1,000,000", side: 1000, of: |x| x.sum(..) },
    Program { what: "product, 300 x 300", side: 300, of: |x| x.matmul(x) },
    Program { what: "sort of 100 columns of 100", side: 100, of: |x| x.sort(0).0 },
];

fn chain(x: &Array) -> Array {
    ((x * 1.5 + 0.25).sin() * x).exp()
}

/// A program on a device, with the microseconds that the runtime estimated for a run, and those that the device took.
pub struct Line {
    device: String,
    what: &'static str,
    estimated_us: f64,
    took_us: f64,
}

/// Runs the programs on every device.
///
/// # Errors
/// A program fails on a device.
pub async fn measure(runtime: &Runtime) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for device in runtime.devices() {
        let pin = match device.kind {
            DeviceKind::Host => "host",
            DeviceKind::Gpu => "gpu",
        };
        for program in &PROGRAMS {
            let session = runtime.session("estimates").open();
            let x = session.rand::<f32>([program.side, program.side]).try_pin(pin)?;
            x.eval().await?;
            let mut runs = Vec::with_capacity(RUNS);
            for run in 0..=RUNS {
                let before = runtime.stats();
                (program.of)(&x).eval().await?;
                // The device answers before the runtime counts. This request is answered only after the runtime has
                // counted.
                x.explain().await?;
                let did = runtime.stats().since(&before);
                if run > 0 {
                    runs.push((did.device_ns as f64 / 1e3, did.estimated_ns as f64 / 1e3));
                }
            }
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (took_us, estimated_us) = runs[RUNS / 2];
            lines.push(Line { device: device.name.clone(), what: program.what, estimated_us, took_us });
        }
    }
    Ok(lines)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { what, estimated_us, took_us, device } = self;
        let factor = took_us / estimated_us;
        write!(f, "  {what:<28} estimated {estimated_us:>8.1} us, took {took_us:>8.1} us ({factor:.2} times)  {device}")
    }
}
