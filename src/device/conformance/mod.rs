//! The conformance tests of backends: one list of cases, which runs on the host, on the fake device and on the best
//! adapter of the machine.
//!
//! In: backends, behind their drivers. Out: failures that name the backend. Cases of ops and kernel forms are batches
//! that [`BatchBuilder`] builds for a device; every backend has to read back the same results as the host (`agree`), and the
//! tests of kernels check the host's results. Memory, order, limits, faults and losses are asserted directly. A new
//! backend is one more `Which`.

mod element;
mod faults;
mod forms;
mod library;
mod limits;
mod memory;
mod order;
pub(super) mod rig;
mod work;

use crate::graph::{DType, Scalar};
use crate::host_buffer::HostBuffer;
use crate::injection::Injection;
use rig::{Rig, Which};
use std::sync::Arc;
use work::BatchBuilder;

/// Runs a case on each backend.
fn everywhere(case: impl FnMut(&mut Rig)) {
    everywhere_with(Injection::default, case);
}

/// Runs a case on each backend, with injected faults.
fn everywhere_with(injection: impl Fn() -> Injection, mut case: impl FnMut(&mut Rig)) {
    for which in Which::ALL {
        let Some(mut rig) = Rig::open(which, injection()) else { continue };
        // Shown where the case fails.
        eprintln!("on {}", rig.handle.info.name);
        case(&mut rig);
        rig.stop();
    }
}

/// The arrays that a device read back, each with a label.
type Read = Vec<(String, Arc<HostBuffer>)>;

/// Runs the work of a case on a device. Returns the arrays that were read back.
fn run(rig: &mut Rig, case: impl FnOnce(&mut BatchBuilder)) -> Read {
    let mut work = BatchBuilder::of(&rig.handle.info, rig.next_buffer);
    case(&mut work);
    rig.next_buffer = work.next_buffer;
    let done = rig.run(work.commands).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.faults, [0u32; 0]);
    assert_eq!(done.data.len(), work.labels.len(), "every array that was asked for is read back");
    work.labels.into_iter().zip(done.data.into_iter().map(|(_, data)| data)).collect()
}

/// Checks that every backend reads back the same as the host. Floats may differ by `ulps` units in the last place, or
/// by a tiny amount near zero. Results for which a backend lacks the dtype are skipped.
fn agree(ulps: f64, case: impl Fn(&mut BatchBuilder)) {
    let mut host: Option<Read> = None;
    everywhere(|rig| {
        let read = run(rig, &case);
        let Some(expected) = &host else {
            assert!(!read.is_empty(), "the host has results");
            host = Some(read);
            return;
        };
        for (label, data) in read {
            let (_, meant) = expected.iter().find(|(known, _)| *known == label).expect("the host has every result");
            assert_same(&label, meant, &data, ulps);
        }
    });
}

/// Compares element by element; any NaN is as good as another.
fn assert_same(label: &str, expected: &HostBuffer, read: &HostBuffer, ulps: f64) {
    assert_eq!((expected.dtype(), expected.len()), (read.dtype(), read.len()), "{label}");
    let (unit, tiny) = match expected.dtype() {
        DType::F32 => (f64::from(f32::EPSILON), 2e-6),
        DType::F64 => (f64::EPSILON, 1e-12),
        _ => (0.0, 0.0),
    };
    let is_float = unit > 0.0;
    for at in 0..expected.len() {
        let (meant, got): (Scalar, Scalar) = (expected.scalar(at), read.scalar(at));
        let (x, y) = (meant.as_f64(), got.as_f64());
        let apart = (x - y).abs();
        let close = apart.is_finite() && (apart <= ulps * unit * x.abs().max(y.abs()) || (ulps > 0.0 && apart <= tiny));
        let same = meant.bits() == got.bits() || (is_float && (x == y || (x.is_nan() && y.is_nan()) || close));
        assert!(same, "{label}, element {at}: {got} where the host has {meant}");
    }
}
