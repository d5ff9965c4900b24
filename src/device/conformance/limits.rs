//! The limits that a backend reports, and kernels that use them fully.

use super::everywhere;
use super::rig::{allocate, readback, slot, upload};
use super::work::{Array, BatchBuilder, Build};
use crate::contract::batch::Command;
use crate::error::ErrorKind;
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Access, Form, Geometry, Run};

/// Bindings beyond which no kernel of these tests goes.
const BINDINGS_TRIED_MAX: u32 = 16;

#[test]
fn its_numbers_fit_each_other() {
    everywhere(|rig| {
        let info = &rig.handle.info;
        assert!(info.bindings_max >= 8, "what the runtime's own kernels bind");
        assert!(info.binding_bytes_max <= info.buffer_bytes_max);
        assert!(info.segment_shift <= info.span_shift);
        assert!(info.budget_bytes <= info.memory_bytes && info.batches_in_flight_max > 0);
        let costs = info.costs;
        let measured = [costs.launch_us, costs.dispatch_us, costs.memory_gb_per_s, costs.f32_gop_per_s];
        let moved = [costs.f64_gop_per_s, costs.upload_gb_per_s, costs.readback_gb_per_s];
        assert!(measured.iter().chain(&moved).all(|cost| cost.is_finite() && *cost > 0.0), "{costs:?}");
        // The host owns its budget and runs all; a device that runs all lacks nothing.
        let capabilities = info.capabilities;
        assert!(!capabilities.owns_host_budget || capabilities.runs_all);
        assert!(!capabilities.runs_all || DType::ALL.into_iter().all(|dtype| info.has(dtype)));
        assert!(capabilities.compiles || !capabilities.needs_scratch);
    });
}

/// Adds up `arrays` arrays of ones.
fn sum_of(work: &mut BatchBuilder, arrays: usize) -> Array {
    let mut build = Build::new(Form::Map);
    let mut bound: Vec<Array> = (0..arrays).map(|_| work.of_slice(&[1.0f32; 5])).collect();
    let operands: Vec<u16> = bound.iter().map(|_| build.operand(DType::F32, Access::Read)).collect();
    let to = build.operand(DType::F32, Access::Write);
    let flat = build.flat();
    let values: Vec<_> = operands.into_iter().map(|operand| build.load(operand, flat, Run::Flat, None)).collect();
    let sum = values.into_iter().reduce(|sum, x| build.apply(ElementOp::Add, &[sum, x], DType::F32));
    build.store(to, None, sum.expect("at least one array"), None);
    let out = work.array(DType::F32, 5);
    bound.push(out);
    work.kernel(build, Geometry::Map { elements: 5 }, &bound);
    out
}

#[test]
fn a_kernel_may_bind_as_many_arrays_as_the_device_says_and_more_fail_its_batch_alone() {
    everywhere(|rig| {
        let most = rig.handle.info.bindings_max.min(BINDINGS_TRIED_MAX);
        // Its parameters and its output are bound, too.
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let out = sum_of(&mut work, most as usize - 2);
        work.read("the sum", out);
        assert_eq!(rig.floats(work.commands.clone()), [(most - 2) as f32; 5]);
        if most == rig.handle.info.bindings_max {
            let mut beyond = BatchBuilder::of(&rig.handle.info, 100);
            sum_of(&mut beyond, most as usize - 1);
            assert_eq!(rig.run(beyond.commands).unwrap_err().kind(), ErrorKind::Internal);
        }
        assert_eq!(rig.floats(work.commands), [(most - 2) as f32; 5]);
    });
}

#[test]
fn an_array_of_a_whole_slab_and_slots_at_its_end_are_reached() {
    everywhere(|rig| {
        let bytes = 8u64 << 20;
        let last = slot(1, bytes - 256, 256);
        let commands = vec![
            allocate(1, bytes),
            Command::Zero { slot: slot(1, 0, bytes) },
            upload(&[3.0f32; 64], last),
            readback(0, slot(1, bytes - 512, 512), DType::F32, 128),
        ];
        let read = rig.floats(commands);
        assert!(read[..64].iter().all(|x| *x == 0.0) && read[64..].iter().all(|x| *x == 3.0), "{read:?}");
    });
}
