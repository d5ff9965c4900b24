//! Plans of toy launches, built use by use.

use super::{meta, value};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::residency::ResidencyEvent;
use crate::contract::plan::{FaultSite, Launch, Plan, PlanBuffer, PlanInput, Program, Role, Step, Use};
use crate::error::Error;
use crate::graph::{DType, ElementOp};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId, SessionId};
use crate::kernels::ir::{Form, Geometry, Inst, InstOp, Kernel, Level, reduce_plan};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// A plan under construction.
pub(in crate::residency) struct Builder(Plan);

impl Builder {
    pub(in crate::residency) fn new(region: u64, device: u8) -> Builder {
        Builder(Plan {
            region: RegionId(region),
            session: SessionId(0),
            weight: 1,
            device: DeviceId(device),
            inputs: Vec::new(),
            buffers: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            readbacks: Vec::new(),
            fault_sites: Vec::new(),
            cached: false,
            explained: None,
        })
    }

    /// Gives the plan a session and a weight.
    pub(in crate::residency) fn of_session(mut self, session: u64, weight: u32) -> Builder {
        self.0.session = SessionId(session);
        self.0.weight = weight;
        self
    }

    fn buffer(&mut self, role: Role, dtype: DType, elements: u64) -> u32 {
        self.0.buffers.push(PlanBuffer::new(role, dtype, elements));
        self.0.buffers.len() as u32 - 1
    }

    pub(in crate::residency) fn input(
        &mut self,
        id: u32,
        elements: u64,
        source: Option<Arc<HostBuffer>>,
        dies: bool,
    ) -> u32 {
        self.input_of(DType::U32, id, elements, source, dies)
    }

    pub(in crate::residency) fn input_of(
        &mut self,
        dtype: DType,
        id: u32,
        elements: u64,
        source: Option<Arc<HostBuffer>>,
        dies: bool,
    ) -> u32 {
        self.0.inputs.push(PlanInput { value: value(id), meta: meta(dtype, elements), source, dies });
        self.buffer(Role::Input(value(id)), dtype, elements)
    }

    pub(in crate::residency) fn output(&mut self, id: u32, elements: u64) -> u32 {
        self.output_of(DType::U32, id, elements)
    }

    pub(in crate::residency) fn output_of(&mut self, dtype: DType, id: u32, elements: u64) -> u32 {
        let buffer = self.buffer(Role::Output(value(id)), dtype, elements);
        self.0.outputs.push((value(id), meta(dtype, elements), buffer));
        buffer
    }

    /// Another value held by a buffer.
    pub(in crate::residency) fn alias(&mut self, id: u32, buffer: u32) {
        let b = &self.0.buffers[buffer as usize];
        let meta = meta(b.dtype, b.elements);
        self.0.outputs.push((value(id), meta, buffer));
    }

    pub(in crate::residency) fn in_place(&mut self, output: u32, of: u32) {
        self.0.buffers[output as usize].in_place_of = Some(of);
    }

    pub(in crate::residency) fn scratch(&mut self, elements: u64, zeroed: bool) -> u32 {
        let at = self.buffer(Role::Scratch, DType::U32, elements);
        self.0.buffers[at as usize].zeroed = zeroed;
        at
    }

    pub(in crate::residency) fn faults(&mut self, sites: &[(u32, Error)]) -> u32 {
        let site = |(id, error): &(u32, Error)| FaultSite { value: value(*id), error: error.clone() };
        self.0.fault_sites = sites.iter().map(site).collect();
        self.buffer(Role::Faults, DType::U32, sites.len() as u64)
    }

    /// A launch over `n` elements; each use: buffer, tiled, reads, writes.
    pub(in crate::residency) fn launch(
        &mut self,
        geometry: Geometry,
        uses: &[(u32, bool, bool, bool)],
        faults: Option<u32>,
    ) {
        // The kernel is never run. It is only there for its estimated cost.
        let op = InstOp::Apply(ElementOp::Add, SmallVec::new());
        let addition = Inst { op, dtype: DType::U32, level: Level::Element };
        let kernel = Kernel {
            form: Form::Map,
            operands: Vec::new(),
            scratch: None,
            faults: faults.is_some(),
            params: 16,
            insts: vec![addition],
            stores: Vec::new(),
            rolled: None,
        };
        let uses: SmallVec<[Use; 6]> =
            uses.iter().map(|&(buffer, tiled, reads, writes)| Use { buffer, tiled, reads, writes }).collect();
        self.0.steps.push(Step::Launch(Arc::new(Launch {
            program: Program::Kernel(Arc::new(kernel), 0),
            geometry,
            params: Vec::new(),
            uses,
            faults,
            label: "toy".into(),
            ops: 1,
            bytes_read: 0,
            bytes_written: 0,
            split: None,
            blame: ("toy", Location::caller().into()),
            provenance: Default::default(),
        })));
    }

    /// A tiled map from `reads` to `writes`.
    pub(in crate::residency) fn map(&mut self, elements: u64, reads: &[u32], writes: &[u32]) {
        let elements_of = |b: u32| self.0.buffers[b as usize].elements;
        let mut uses: Vec<_> = reads.iter().map(|&b| (b, elements_of(b) == elements, true, false)).collect();
        uses.extend(writes.iter().map(|&b| (b, true, false, true)));
        self.launch(Geometry::Map { elements: elements as u32 }, &uses, None);
    }

    pub(in crate::residency) fn sum(&mut self, inner: u64, read: u32, write: u32) {
        let geometry = Geometry::Reduce { outer: 1, inner: inner as u32 };
        self.launch(geometry, &[(read, true, true, false), (write, false, false, true)], None);
    }

    pub(in crate::residency) fn copy(&mut self, from: u32, to: u32) {
        self.0.steps.push(Step::Copy { from, to });
    }

    /// Joins what the plan's launches use all over (PLAN-4): copies around each of them, to and from a buffer in one piece.
    pub(in crate::residency) fn join(&mut self, device: &DeviceInfo) {
        if device.segment_shift >= device.span_shift {
            return;
        }
        let segment = 1 << device.segment_shift;
        for step in std::mem::take(&mut self.0.steps) {
            let Step::Launch(mut launch) = step else {
                self.0.steps.push(step);
                continue;
            };
            let chunk = match launch.geometry {
                Geometry::Reduce { outer, inner } => u64::from(reduce_plan(outer, inner, false).chunk),
                Geometry::Map { .. } | Geometry::Scan { .. } | Geometry::Line { .. } => 1,
            };
            let mut joined: Vec<(u32, u32)> = Vec::new();
            for used in &mut Arc::make_mut(&mut launch).uses {
                let PlanBuffer { dtype, elements, .. } = self.0.buffers[used.buffer as usize];
                if elements <= segment || (used.tiled && chunk <= segment) {
                    continue;
                }
                let known = joined.iter().find(|(apart, _)| *apart == used.buffer).map(|&(_, whole)| whole);
                let whole = known.unwrap_or_else(|| {
                    let whole = self.buffer(Role::Scratch, dtype, elements);
                    self.0.buffers[whole as usize].joined = true;
                    joined.push((used.buffer, whole));
                    whole
                });
                used.buffer = whole;
            }
            let of_uses = |whole: u32, is: fn(&Use) -> bool| launch.uses.iter().any(|u| u.buffer == whole && is(u));
            let read: Vec<_> = joined.iter().filter(|(_, whole)| of_uses(*whole, |u| u.reads)).copied().collect();
            let written: Vec<_> = joined.iter().filter(|(_, whole)| of_uses(*whole, |u| u.writes)).copied().collect();
            self.0.steps.extend(read.into_iter().map(|(from, to)| Step::Copy { from, to }));
            self.0.steps.push(Step::Launch(launch));
            self.0.steps.extend(written.into_iter().map(|(to, from)| Step::Copy { from, to }));
        }
    }

    pub(in crate::residency) fn read_back(&mut self, id: u32) {
        self.0.readbacks.push(value(id));
    }

    pub(in crate::residency) fn done(mut self) -> ResidencyEvent {
        self.0.note_lives();
        ResidencyEvent::PlanReady(Arc::new(self.0))
    }
}
