//! Which ops become one kernel, and what is written between kernels.

use super::*;

#[test]
fn a_chain_of_40_ops_with_broadcast_random_numbers_and_a_reduction_is_one_kernel() {
    for dims in [0b11, 0b01, 0b10] {
        let mut b = Build::new();
        let y = chain(&mut b, 1000, 40);
        let r = b.reduce(ReduceOp::Sum, y, dims);
        b.output(r);
        let plan = b.plan(DeviceKind::Gpu);
        let launches = kernels(&plan);
        assert_eq!(launches.len(), 1, "dims {dims:b}");
        assert_eq!(launches[0].bytes_read, (1000 * 100 + 100) * 4);
        assert_eq!(launches[0].bytes_written, r_bytes(dims));
        let stored = plan.buffers.iter().filter(|x| matches!(x.role, Role::Scratch)).map(|x| x.elements).max().unwrap();
        assert!(stored < 100_000, "random numbers or an intermediate were stored");
    }
}

fn r_bytes(dims: u16) -> u64 {
    match dims {
        0b11 => 4,
        0b01 => 400,
        _ => 4000,
    }
}

/// A check of `x` that all of `condition` is true.
fn ensure(b: &mut Build, x: X, condition: X, message: &str) -> X {
    let dims = b.shape(x);
    b.node(Op::Ensure { op: "ensure", message: message.into() }, &[x, condition], dims.dims(), DType::F32)
}

#[test]
fn a_check_adds_no_kernel_and_no_store_and_its_message_is_no_structure() {
    let plan = |message: Option<&str>| {
        let mut b = Build::new();
        let x = b.input(&[1000, 100], false);
        let row = b.node(Op::Apply(ElementOp::IsNan), &[x], &[1000, 100], DType::Bool);
        let mut y = b.apply(ElementOp::Sqrt, &[x]);
        if let Some(message) = message {
            y = ensure(&mut b, y, row, message);
        }
        let t = b.node(Op::View(View::Permute([1, 0].into())), &[y], &[100, 1000], DType::F32);
        let r = b.reduce(ReduceOp::Sum, t, 0b11);
        b.output(r);
        b.plan(DeviceKind::Gpu)
    };
    let (plain, one, other) = (plan(None), plan(Some("one")), plan(Some("other")));
    let told = |plan: &Plan| kernels(plan).iter().map(|l| (l.bytes_read, l.bytes_written)).collect::<Vec<_>>();
    assert_eq!(told(&one), told(&plain));
    let hash = |plan: &Plan| match &kernels(plan)[0].program {
        Program::Kernel(_, hash) => *hash,
        _ => panic!("generated"),
    };
    assert_eq!(hash(&one), hash(&other));
    assert_ne!(hash(&one), hash(&plain));
    assert_eq!(one.fault_sites[0].error.message(), "one");
    assert_eq!(other.fault_sites[0].error.message(), "other");
}

#[test]
fn a_check_that_is_read_in_part_is_made_for_the_whole() {
    let first = SliceDim { start: 0, step: 1, len: 10 };
    for (whole, launches) in [(false, 2), (true, 1)] {
        let mut b = Build::new();
        let x = b.input(&[1000, 1], false);
        let holds = b.node(Op::Apply(ElementOp::IsFinite), &[x], &[1000, 1], DType::Bool);
        let y = ensure(&mut b, x, holds, "finite");
        let doubled = b.apply(ElementOp::Add, &[y, y]);
        let dims: std::sync::Arc<[SliceDim]> = [first, SliceDim { len: 1, ..first }].into();
        let part = b.node(Op::View(View::Slice(dims)), &[doubled], &[10, 1], DType::F32);
        b.output(part);
        if whole {
            // Something else computes every element, and reads the part's data.
            b.output(doubled);
        }
        let plan = b.plan(DeviceKind::Gpu);
        let found = kernels(&plan);
        assert_eq!(found.len(), launches + usize::from(whole), "{found:?}");
        let checked = found.iter().any(|launch| match (&launch.program, launch.geometry) {
            (Program::Kernel(kernel, _), Geometry::Map { elements: 1000 }) => kernel.faults,
            _ => false,
        });
        assert!(checked, "{found:?}");
    }
}

#[test]
fn siblings_their_tail_and_the_chain_that_is_demanded_too_share_a_kernel() {
    let mut b = Build::new();
    let x = b.input(&[300, 200], false);
    let y = b.apply(ElementOp::Exp, &[x]);
    let mean = b.reduce(ReduceOp::Mean, y, 0b01);
    let std = b.reduce(ReduceOp::Std { ddof: 1 }, y, 0b01);
    let ratio = b.apply(ElementOp::Div, &[mean, std]);
    b.output(y);
    b.output(ratio);
    let plan = b.plan(DeviceKind::Gpu);
    let launches = kernels(&plan);
    assert_eq!(launches.len(), 1);
    assert_eq!(launches[0].bytes_read, 300 * 200 * 4);
    assert_eq!(launches[0].bytes_written, (300 * 200 + 200) * 4);
}

#[test]
fn centring_takes_a_fold_and_a_map() {
    let mut b = Build::new();
    let x = b.input(&[300, 200], false);
    let mean = b.reduce(ReduceOp::Mean, x, 0b10);
    let centred = b.apply(ElementOp::Sub, &[x, mean]);
    b.output(centred);
    assert_eq!(kernels(&b.plan(DeviceKind::Gpu)).len(), 2);
}

#[test]
fn a_path_of_256_steps_is_a_few_kernels_of_few_structures_that_store_no_random_number() {
    let mut b = Build::new();
    let mut price = b.node(Op::Fill, &[s(100.0)], &[10_000, 1], DType::F32);
    for _ in 0..150 {
        let z = b.random(&[10_000, 1]);
        let scaled = b.apply(ElementOp::Mul, &[s(0.0126), z]);
        let drifted = b.apply(ElementOp::Add, &[s(0.0001), scaled]);
        let grown = b.apply(ElementOp::Exp, &[drifted]);
        price = b.apply(ElementOp::Mul, &[price, grown]);
    }
    let payoff = b.apply(ElementOp::Max, &[price, s(0.0)]);
    let mean = b.reduce(ReduceOp::Mean, payoff, 0b11);
    b.output(mean);
    let plan = b.plan(DeviceKind::Gpu);
    let launches = kernels(&plan);
    assert!(launches.len() <= 16, "{} kernels", launches.len());
    for launch in &launches {
        assert!(launch.bytes_read <= 40_000 && launch.bytes_written <= 40_000, "{launch:?}");
    }
}

#[test]
fn a_chain_that_two_shapes_of_fold_need_is_written_once_where_it_is_dear() {
    let mut b = Build::new();
    let x = b.input(&[300, 200], false);
    let mut y = x;
    for _ in 0..6 {
        y = b.apply(ElementOp::Sin, &[y]);
    }
    let rows = b.reduce(ReduceOp::Sum, y, 0b01);
    let columns = b.reduce(ReduceOp::Sum, y, 0b10);
    b.output(rows);
    b.output(columns);
    let plan = b.plan(DeviceKind::Gpu);
    let launches = kernels(&plan);
    assert_eq!(launches.len(), 2, "the first fold writes the chain, the second reads it");
    assert_eq!(launches.iter().map(|l| l.bytes_read).sum::<u64>(), 2 * 300 * 200 * 4);
}

#[test]
fn a_kernel_never_binds_more_buffers_than_the_device_has() {
    let mut b = Build::new();
    let mut sum = b.input(&[1000, 1], false);
    for _ in 0..60 {
        let x = b.input(&[1000, 1], false);
        sum = b.apply(ElementOp::Add, &[sum, x]);
    }
    b.output(sum);
    let plan = b.plan(DeviceKind::Gpu);
    for launch in kernels(&plan) {
        assert!(launch.uses.len() <= 22, "{} bindings", launch.uses.len());
    }
    assert!(kernels(&plan).iter().any(|l| l.split.is_some()), "the reason is recorded");
}

#[test]
fn operands_that_expand_share_bindings_where_a_kernel_reads_more_than_the_device_binds() {
    let chain = |last: usize, reduced: bool| {
        let mut b = Build::new();
        let mut y = b.input(&[20, 5, 300], false);
        for k in 0..40 {
            let dims = [[20, 1, 1], [1, 5, 1], [1, 1, last]][k % 3];
            let x = b.input(&dims, false);
            y = b.apply(ElementOp::Add, &[y, x]);
        }
        if reduced {
            y = b.reduce(ReduceOp::Sum, y, 0b101);
        }
        b.output(y);
        b.plan(DeviceKind::Gpu)
    };
    for reduced in [false, true] {
        let plan = chain(300, reduced);
        let launches = kernels(&plan);
        assert_eq!(launches.len(), 1);
        assert!(launches[0].uses.len() <= 22, "{} bindings", launches[0].uses.len());
        let inputs = 20 * 5 * 300 + (0..40).map(|k| [20, 5, 300][k % 3]).sum::<u64>();
        assert_eq!(launches[0].bytes_read, inputs * 4, "each input once");
        let packed = plan.steps.iter().filter(|s| matches!(s, Step::Pack { .. })).count();
        assert!((19..40).contains(&packed), "{packed} are packed, no more than have to be");
    }
    // On the host nothing is.
    let mut b = Build::new();
    let mut y = b.input(&[1000, 1], false);
    for _ in 0..40 {
        let x = b.input(&[1000, 1], false);
        y = b.apply(ElementOp::Add, &[y, x]);
    }
    b.output(y);
    let host = DeviceInfo { bindings_max: 256, ..device(DeviceKind::Host) };
    let plan = passes::plan(&b.region, &host, &mut Caches::default()).unwrap();
    assert_eq!((kernels(&plan).len(), plan.steps.len()), (1, 1));
}

#[test]
fn what_does_not_fit_one_segment_together_is_not_packed() {
    let mut b = Build::new();
    let mut y = b.input(&[300, 300], false);
    for _ in 0..40 {
        let x = b.input(&[1, 300], false);
        y = b.apply(ElementOp::Add, &[y, x]);
    }
    b.output(y);
    let small = DeviceInfo { segment_shift: 10, span_shift: 10, ..device(DeviceKind::Gpu) };
    let plan = passes::plan(&b.region, &small, &mut Caches::default()).unwrap();
    verify::kernels(&plan);
    verify::steps(&plan);
    assert!(kernels(&plan).len() > 1 && plan.steps.iter().all(|s| matches!(s, Step::Launch(_))));
}

#[test]
fn a_thousand_outputs_of_one_input_are_planned_without_delay_in_kernels_within_budget() {
    let mut b = Build::new();
    let x = b.input(&[1000, 1], false);
    for k in 0..1000 {
        let y = b.apply(ElementOp::Mul, &[x, s(k as f32)]);
        b.output(y);
    }
    let launches = kernels(&b.plan(DeviceKind::Gpu));
    assert!(launches.len() <= 1000 / 16, "{} kernels", launches.len());
    assert!(launches.iter().all(|l| l.uses.len() <= 22));
}
