//! Tests of the passes: regions built by hand, counts and structures of the plans they become.

use super::plan::{Plan, Program, Role, Step};
use super::state::{Caches, State};
use super::{message::*, passes};
use crate::config::Config;
use crate::device::info::*;
use crate::graph::*;
use crate::ids::*;
use crate::kernels::ir::{Access, Form, Geometry};
use crate::scheduler::region::*;
use smallvec::{SmallVec, smallvec};
use std::panic::Location;

fn device(kind: DeviceKind) -> DeviceInfo {
    DeviceInfo {
        id: DeviceId(u8::from(kind == DeviceKind::Gpu)),
        kind,
        name: "test".into(),
        driver: String::new(),
        software: false,
        features: Features {
            f64: true,
            i64: true,
            subgroups: true,
            timestamps: false,
            mappable: false,
            pipeline_cache: false,
        },
        profile: FloatProfile {
            fma_fused: false,
            keeps_subnormals: true,
            exact_division: true,
            exact_sqrt: true,
            keeps_negative_zero: true,
        },
        precision: Precision::Accurate,
        costs: Costs {
            launch_us: 50.0,
            dispatch_us: 2.0,
            memory_gb_per_s: 100.0,
            f32_gop_per_s: 100.0,
            upload_gb_per_s: 5.0,
            readback_gb_per_s: 5.0,
        },
        binding_bytes_max: 1 << 31,
        buffer_bytes_max: 1 << 32,
        bindings_max: 24,
        immediate_words_max: 0,
        budget_bytes: 1 << 34,
        segment_shift: 28,
        slab_slot_bytes_max: 65536,
        batches_in_flight_max: 2,
    }
}

struct Build {
    region: Region,
}

#[derive(Clone, Copy)]
struct X(RegionArg);

impl Build {
    fn new() -> Build {
        Build {
            region: Region {
                id: RegionId(0),
                session: SessionId(0),
                device: DeviceId(1),
                nodes: vec![],
                inputs: vec![],
                readbacks: vec![],
                why: CutReason::Demand,
                placement: Placement::default(),
                preview: false,
            },
        }
    }

    fn value(&self) -> ValueId {
        ValueId { session: SessionId(0), index: (self.region.nodes.len() + self.region.inputs.len()) as u32 }
    }

    fn input(&mut self, dims: &[usize], dies: bool) -> X {
        let meta = Meta { dtype: DType::F32, shape: Shape::new(dims).unwrap() };
        let value = self.value();
        self.region.inputs.push(RegionInput { value, meta, source: None, dies });
        X(RegionArg::Input(self.region.inputs.len() as u32 - 1))
    }

    fn node(&mut self, op: Op, args: &[X], dims: &[usize], dtype: DType) -> X {
        let value = self.value();
        self.region.nodes.push(RegionNode {
            value,
            op,
            args: args.iter().map(|x| x.0).collect(),
            meta: Meta { dtype, shape: Shape::new(dims).unwrap() },
            output: false,
            at: Location::caller().into(),
        });
        X(RegionArg::Node(self.region.nodes.len() as u32 - 1))
    }

    fn apply(&mut self, op: ElementOp, args: &[X]) -> X {
        let shape = args.iter().fold(Shape::scalar(), |s, x| Shape::broadcast(&s, &self.shape(*x)).unwrap());
        self.node(Op::Apply(op), args, shape.dims(), DType::F32)
    }

    fn shape(&self, x: X) -> Shape {
        match x.0 {
            RegionArg::Node(n) => self.region.nodes[n as usize].meta.shape.clone(),
            RegionArg::Input(i) => self.region.inputs[i as usize].meta.shape.clone(),
            RegionArg::Scalar(_) => Shape::scalar(),
        }
    }

    fn reduce(&mut self, op: ReduceOp, x: X, dims: DimSet) -> X {
        let shape = super::cluster::reduced_shape(&self.shape(x), dims);
        self.node(Op::Reduce { op, dims, nan: Nan::Include }, &[x], shape.dims(), DType::F32)
    }

    fn random(&mut self, dims: &[usize]) -> X {
        let op = self.region.nodes.len() as u32;
        self.node(Op::Random { dist: Dist::Normal, key: RandomKey { seed: 1, stream: 0, op } }, &[], dims, DType::F32)
    }

    fn output(&mut self, x: X) {
        let RegionArg::Node(n) = x.0 else { panic!("outputs are nodes") };
        self.region.nodes[n as usize].output = true;
    }

    fn plan(&self, kind: DeviceKind) -> Plan {
        let plan =
            passes::plan(&self.region, &device(kind), &mut Caches::default()).expect("the region can be planned");
        passes::verify(&plan);
        plan
    }
}

fn s(v: f32) -> X {
    X(RegionArg::Scalar(Scalar::F32(v)))
}

fn kernels(plan: &Plan) -> Vec<std::sync::Arc<super::plan::Launch>> {
    plan.steps
        .iter()
        .filter_map(|step| match step {
            Step::Launch(launch) => Some(launch.clone()),
            Step::Copy { .. } => None,
        })
        .collect()
}

fn chain(b: &mut Build, n: usize, ops: usize) -> X {
    let x = b.input(&[n, 100], false);
    let row = b.input(&[1, 100], false);
    let z = b.random(&[n, 100]);
    let mut y = b.apply(ElementOp::Add, &[x, row]);
    y = b.apply(ElementOp::Mul, &[y, z]);
    for k in 0..ops - 2 {
        y = if k % 2 == 0 { b.apply(ElementOp::Sin, &[y]) } else { b.apply(ElementOp::Mul, &[y, s(k as f32)]) };
    }
    y
}

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

#[test]
fn other_sizes_and_scalars_give_the_same_kernel() {
    let hash = |n: usize| {
        let mut b = Build::new();
        let y = chain(&mut b, n, 20);
        let r = b.reduce(ReduceOp::Mean, y, 0b11);
        b.output(r);
        let plan = b.plan(DeviceKind::Gpu);
        match &kernels(&plan)[0].program {
            Program::Kernel(_, hash) => *hash,
            _ => panic!("a generated kernel"),
        }
    };
    assert_eq!(hash(1000), hash(123_457));
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
fn a_dying_input_is_reused_in_place_and_a_living_one_is_not() {
    for dies in [true, false] {
        let mut b = Build::new();
        let x = b.input(&[1000, 1], dies);
        let y = b.apply(ElementOp::Exp, &[x]);
        b.output(y);
        let plan = b.plan(DeviceKind::Gpu);
        let launches = kernels(&plan);
        let Program::Kernel(kernel, _) = &launches[0].program else { panic!("generated") };
        let in_place = kernel.operands.iter().any(|o| o.access == Access::ReadWrite);
        assert_eq!(in_place, dies);
        assert_eq!(plan.buffers.iter().any(|b| b.in_place_of.is_some()), dies);
    }
}

#[test]
fn a_transposed_read_of_a_dying_input_is_not_done_in_place() {
    let mut b = Build::new();
    let x = b.input(&[30, 30], true);
    let t = b.node(Op::View(View::Permute([1, 0].into())), &[x], &[30, 30], DType::F32);
    let y = b.apply(ElementOp::Add, &[x, t]);
    b.output(y);
    assert!(b.plan(DeviceKind::Gpu).buffers.iter().all(|b| b.in_place_of.is_none()));
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
fn slice_assignments_in_a_row_are_patches_in_place() {
    let mut b = Build::new();
    let mut x = b.input(&[1000, 1], true);
    for k in 0..5usize {
        let dims: SmallVec<[SliceDim; 4]> =
            smallvec![SliceDim { start: k, step: 1, len: 1 }, SliceDim { start: 0, step: 1, len: 1 }];
        x = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(k as f32)], &[1000, 1], DType::F32);
    }
    b.output(x);
    let plan = b.plan(DeviceKind::Gpu);
    assert!(plan.steps.iter().all(|s| matches!(s, Step::Launch(_))), "nothing is copied");
    assert_eq!(kernels(&plan).iter().map(|l| l.bytes_written).sum::<u64>(), 20);
}

#[test]
fn a_slice_assignment_to_a_living_base_copies_it_first() {
    let mut b = Build::new();
    let x = b.input(&[1000, 1], false);
    let dims: SmallVec<[SliceDim; 4]> =
        smallvec![SliceDim { start: 3, step: 2, len: 4 }, SliceDim { start: 0, step: 1, len: 1 }];
    let y = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(1.0)], &[1000, 1], DType::F32);
    b.output(y);
    let plan = b.plan(DeviceKind::Gpu);
    assert!(matches!(plan.steps[0], Step::Copy { .. }));
    assert_eq!(plan.steps.len(), 2);
}

#[test]
fn a_transposed_operand_of_matmul_is_read_as_it_lies() {
    let mut b = Build::new();
    let x = b.input(&[20, 30], false);
    let y = b.input(&[20, 40], false);
    let t = b.node(Op::View(View::Permute([1, 0].into())), &[x], &[30, 20], DType::F32);
    let p = b.node(Op::MatMul, &[t, y], &[30, 40], DType::F32);
    b.output(p);
    let launches = kernels(&b.plan(DeviceKind::Gpu));
    assert_eq!(launches.len(), 1);
    let Program::Library(crate::kernels::library::Library::MatMul { transpose_a, transpose_b, m, n, k, .. }) =
        &launches[0].program
    else {
        panic!("a matmul")
    };
    assert_eq!((*transpose_a, *transpose_b, *m, *n, *k), (true, false, 30, 40, 20));
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
fn empty_arrays_run_nothing_and_folds_of_them_run() {
    let mut b = Build::new();
    let x = b.input(&[0, 3], false);
    let y = b.apply(ElementOp::Exp, &[x]);
    b.output(y);
    let sum = b.node(Op::Reduce { op: ReduceOp::Sum, dims: 1, nan: Nan::Include }, &[y], &[1, 3], DType::F32);
    b.output(sum);
    let launches = kernels(&b.plan(DeviceKind::Gpu));
    assert_eq!(launches.len(), 1);
    let Program::Kernel(kernel, _) = &launches[0].program else { panic!("generated") };
    assert!(matches!(kernel.form, Form::Reduce { .. }));
}

#[test]
fn the_second_region_of_a_structure_hits_the_cache_and_compiles_nothing() {
    let mut state = State::new(vec![device(DeviceKind::Host), device(DeviceKind::Gpu)], &Config::default());
    let mut out = vec![];
    for (id, n) in [(0, 1000), (1, 2000)] {
        let mut b = Build::new();
        let y = chain(&mut b, n, 10);
        b.output(y);
        b.region.id = RegionId(id);
        state.handle(FusionEvent::RegionCut(b.region), &mut out);
        if id == 0 {
            assert!(matches!(out[..], [FusionInstruction::Compile(_)]));
            state.handle(FusionEvent::PipelinesReady { region: RegionId(0), result: Ok(()) }, &mut out);
            assert!(matches!(out[1], FusionInstruction::Place(_)));
            out.clear();
        }
    }
    assert!(matches!(out[..], [FusionInstruction::Place(_)]), "{out:?}");
    assert_eq!((state.totals().plan_cache_hits, state.totals().plan_cache_misses), (1, 1));
}

#[test]
fn plans_of_one_session_leave_in_order_whatever_is_compiling() {
    let mut state = State::new(vec![device(DeviceKind::Host), device(DeviceKind::Gpu)], &Config::default());
    let mut out = vec![];
    for (id, session, ops) in [(0, 0, 10), (1, 0, 10), (2, 7, 10)] {
        let mut b = Build::new();
        let y = chain(&mut b, 100, ops);
        b.output(y);
        b.region.id = RegionId(id);
        b.region.session = SessionId(session);
        for input in &mut b.region.inputs {
            input.value.session = SessionId(session);
        }
        state.handle(FusionEvent::RegionCut(b.region), &mut out);
    }
    let placed: Vec<u64> =
        out.iter().filter_map(|i| if let FusionInstruction::Place(p) = i { Some(p.region.0) } else { None }).collect();
    assert_eq!(placed, [2], "the other session's plan passes, the same session's waits");
    state.handle(FusionEvent::PipelinesReady { region: RegionId(0), result: Ok(()) }, &mut out);
    let placed: Vec<u64> =
        out.iter().filter_map(|i| if let FusionInstruction::Place(p) = i { Some(p.region.0) } else { None }).collect();
    assert_eq!(placed, [2, 0, 1]);
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
