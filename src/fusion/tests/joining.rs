//! Plans under a tight budget: the same kernels, over joined arrays.

use super::*;

/// The plan without a tight budget, and with one that keeps segments of 1024 elements.
fn plans(b: &Build) -> [Plan; 2] {
    [28, 10].map(|segment_shift| {
        let device = DeviceInfo { segment_shift, span_shift: 28, ..device(DeviceKind::Gpu) };
        let plan = passes::plan(&b.region, &device, &mut Caches::default()).unwrap();
        verify::kernels(&plan);
        verify::steps(&plan);
        plan
    })
}

/// Kernels with their parameters, as text.
fn programs(plan: &Plan) -> Vec<String> {
    kernels(plan).iter().map(|l| format!("{:?} {:?} {:?}", l.program, l.geometry, l.params)).collect()
}

/// Where a plan copies from and to.
fn copies(plan: &Plan) -> Vec<(bool, bool)> {
    let joined = |b: u32| plan.buffers[b as usize].joined;
    let copy = |step: &Step| match step {
        Step::Copy { from, to } => Some((joined(*from), joined(*to))),
        _ => None,
    };
    plan.steps.iter().filter_map(copy).collect()
}

const IN: (bool, bool) = (false, true);
const BACK: (bool, bool) = (true, false);

#[test]
fn what_a_scan_reads_and_writes_is_joined_and_its_kernel_is_the_same() {
    let mut b = Build::new();
    let x = b.input(&[5000, 1], false);
    let y =
        b.node(Op::Scan { op: ScanOp::Sum, dim: 0, reverse: false, nan: Nan::Include }, &[x], &[5000, 1], DType::F32);
    b.output(y);
    let [free, tight] = plans(&b);
    assert_eq!(programs(&free), programs(&tight));
    assert!(copies(&free).is_empty());
    assert_eq!(copies(&tight), [IN, BACK]);
}

#[test]
fn what_is_used_at_the_flat_index_stays_apart_unless_segments_divide_a_chunk_of_its_sum() {
    for reduces in [false, true] {
        let mut b = Build::new();
        let x = b.input(&[50, 100], false);
        let y = b.apply(ElementOp::Exp, &[x]);
        b.output(y);
        if reduces {
            let r = b.reduce(ReduceOp::Mean, y, 0b11);
            b.output(r);
        }
        let [free, tight] = plans(&b);
        assert_eq!(programs(&free), programs(&tight));
        assert_eq!(copies(&tight), if reduces { vec![IN, BACK] } else { vec![] });
    }
}

#[test]
fn assignments_in_a_row_join_their_array_once() {
    let mut b = Build::new();
    let mut x = b.input(&[5000, 1], true);
    for k in 0..40usize {
        let dims: SmallVec<[SliceDim; 4]> =
            smallvec![SliceDim { start: 2 * k, step: 1, len: 1 }, SliceDim { start: 0, step: 1, len: 1 }];
        x = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(k as f32)], &[5000, 1], DType::F32);
    }
    let y = b.apply(ElementOp::Exp, &[x]);
    b.output(x);
    b.output(y);
    let [free, tight] = plans(&b);
    assert_eq!(programs(&free), programs(&tight));
    assert_eq!(copies(&tight), [IN, BACK]);
}

#[test]
fn scratch_of_library_kernels_lies_joined_and_is_not_copied() {
    let mut b = Build::new();
    let x = b.input(&[5000, 1], false);
    let y = b.node(Op::ArgSort { dim: 0, descending: false }, &[x], &[5000, 1], DType::U32);
    b.output(y);
    let [free, tight] = plans(&b);
    assert_eq!(programs(&free), programs(&tight));
    assert_eq!(copies(&tight), [IN, BACK]);
    let long = |b: &&PlanBuffer| matches!(b.role, Role::Scratch) && b.elements > 1024;
    assert!(tight.buffers.iter().filter(long).all(|b| b.joined));
    assert_eq!(tight.buffers.iter().filter(long).count(), 3);
}
