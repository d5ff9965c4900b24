//! Tests of the passes: regions built by hand, counts and structures of the plans they become.

mod across;
mod fusing;
mod joining;
mod plans;
mod repeats;

use crate::contract::device::*;
use crate::contract::messages::fusion::*;
use crate::contract::plan::{Plan, PlanBuffer, Program, Role, Step};
use crate::contract::region::*;
use crate::fusion::caches::Caches;
use crate::fusion::passes;
use crate::fusion::state::State;
use crate::fusion::verify;
use crate::graph::*;
use crate::ids::*;
use crate::kernels::ir::{Access, Form, Geometry, Inst, InstOp, Run};
use crate::kernels::target::*;
use smallvec::{SmallVec, smallvec};
use std::panic::Location;

fn device(kind: DeviceKind) -> DeviceInfo {
    DeviceInfo {
        profile: FloatProfile::UNFUSED,
        costs: Costs {
            launch_us: 50.0,
            dispatch_us: 2.0,
            memory_gb_per_s: 100.0,
            f32_gop_per_s: 100.0,
            f64_gop_per_s: 50.0,
            upload_gb_per_s: 5.0,
            readback_gb_per_s: 5.0,
        },
        binding_bytes_max: 1 << 31,
        bindings_max: 24,
        segment_shift: 28,
        slab_slot_bytes_max: 65536,
        ..DeviceInfo::toy(DeviceId(u8::from(!Capabilities::of(kind).owns_host_budget)), kind)
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
                weight: 1,
                device: DeviceId(1),
                nodes: vec![],
                inputs: vec![],
                readbacks: vec![],
                why: CutReason::Demand,
                placement: Placement::default(),
                turns: 1,
                is_block: false,
                preview: false,
            },
        }
    }

    fn value(&self) -> ValueId {
        ValueId { session: SessionId(0), index: (self.region.nodes.len() + self.region.inputs.len()) as u64 }
    }

    fn input(&mut self, dims: &[usize], dies: bool) -> X {
        let meta = Meta { dtype: DType::F32, shape: Shape::new(dims).unwrap() };
        let value = self.value();
        self.region.inputs.push(RegionInput { value, meta, source: None, dies, is_source: false });
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
        let shape = super::grouping::reduced_shape(&self.shape(x), dims);
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
        verify::kernels(&plan);
        verify::steps(&plan);
        plan
    }
}

fn s(v: f32) -> X {
    X(RegionArg::Scalar(Scalar::F32(v)))
}

fn kernels(plan: &Plan) -> Vec<std::sync::Arc<crate::contract::plan::Launch>> {
    plan.steps
        .iter()
        .filter_map(|step| match step {
            Step::Launch(launch) => Some(launch.clone()),
            Step::Copy { .. } | Step::Pack { .. } => None,
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
