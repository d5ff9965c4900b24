//! A plan: the kernels of one region over virtual buffers. Fusion writes it, residency places it, a device runs it.
//!
//! Invariants:
//! - PLAN-1: steps are in an order in which every buffer is written before it is read.
//! - PLAN-2: a buffer with `in_place_of` is written only by steps at or after the last read of that input.
//! - PLAN-3: a launch has as many uses as its program has operands.
//! - PLAN-4: a buffer that a launch uses untiled has one segment, or is joined; of the buffers that it uses tiled, all
//!   are joined or none is; a joined buffer lives within the plan.

use crate::contract::device::Costs;
use crate::contract::region::RegionInput;
use crate::error::{Error, Site};
use crate::graph::{DType, Meta};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId, SessionId, ValueId};
use crate::kernels::ir::{Geometry, Kernel};
use crate::kernels::library::Library;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What a virtual buffer stands for.
#[derive(Clone, Debug)]
pub enum Role {
    /// A value that exists before the region (or host data that enters with it).
    Input(ValueId),
    /// A value that the region makes and that is visible outside of it.
    Output(ValueId),
    /// Lives within the plan.
    Scratch,
    /// The region's fault words (u32), zero at the start, read back at the end.
    Faults,
}

/// A virtual buffer.
#[derive(Clone, Debug)]
pub struct PlanBuffer {
    /// What it stands for.
    pub role: Role,
    /// Element type.
    pub dtype: DType,
    /// Elements.
    pub elements: u64,
    /// Takes over the memory of this input, which dies here.
    pub in_place_of: Option<u32>,
    /// Must be zero before its first use.
    pub zeroed: bool,
    /// It is joined: stored in pieces as long as a binding can span, instead of segments, because kernels use all of it
    /// at a time.
    pub joined: bool,
    /// First and last step that uses it (inclusive).
    pub live: (u32, u32),
}

impl PlanBuffer {
    /// A buffer that no step uses yet, in segments.
    pub fn new(role: Role, dtype: DType, elements: u64) -> PlanBuffer {
        PlanBuffer { role, dtype, elements, in_place_of: None, zeroed: false, joined: false, live: (0, 0) }
    }
}

/// How a launch uses a virtual buffer, in the order of the kernel's operands.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Index into [`Plan::buffers`].
    pub buffer: u32,
    /// Bound one segment at a time (IR-6).
    pub tiled: bool,
    /// Written.
    pub writes: bool,
    /// Read.
    pub reads: bool,
}

/// What a launch runs.
#[derive(Clone, Debug)]
pub enum Program {
    /// A generated kernel, with the hash of its structure.
    Kernel(Arc<Kernel>, u64),
    /// A library kernel.
    Library(Library),
}

/// One kernel over its buffers.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel that runs.
    pub program: Program,
    /// The sizes.
    pub geometry: Geometry,
    /// Parameter words; the header's are filled in at dispatch.
    pub params: Vec<u32>,
    /// Buffers, in the order of the program's operands.
    pub uses: SmallVec<[Use; 6]>,
    /// The buffer of fault words, if the program binds them.
    pub faults: Option<u32>,
    /// The ops that were fused into it, for the timeline, `explain()` and errors: `"mul+exp+sum"`.
    pub label: Arc<str>,
    /// Number of graph ops fused in it.
    pub ops: u32,
    /// Bytes that must be read: each distinct input once.
    pub bytes_read: u64,
    /// Bytes that must be written: each output once.
    pub bytes_written: u64,
    /// Why the kernel ends where it does, if a budget cut it.
    pub split: Option<&'static str>,
    /// The op to blame if it fails: its name and its source line.
    pub blame: (&'static str, Site),
    /// Where the region's names and numbers occur in the launch, so that a cached plan can be used for another region.
    pub provenance: Arc<Provenance>,
}

/// The source of a parameter word that depends on a number of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The first word.
    pub word: u32,
    /// The region's node.
    pub node: u32,
    /// Which number of that node.
    pub of: NumberOf,
}

/// Which number of a node a [`Number`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOf {
    /// The scalar that is this argument.
    Arg(u8),
    /// The key of its random numbers.
    Key,
}

/// The nodes of the region from which a launch takes its names and numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The node to blame if it fails.
    pub blame: u32,
    /// Its numbers.
    pub numbers: Vec<Number>,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Run a kernel.
    Launch(Arc<Launch>),
    /// Copy a whole buffer, also from segments into longer pieces and back.
    Copy {
        /// From.
        from: u32,
        /// To.
        to: u32,
    },
    /// Copy a whole buffer into a part of another; both lie in one piece.
    Pack {
        /// From.
        from: u32,
        /// To.
        to: u32,
        /// The part's first element.
        first: u64,
    },
}

/// Where data-dependent faults come from.
#[derive(Clone, Debug)]
pub struct FaultSite {
    /// The value whose computation may fault.
    pub value: ValueId,
    /// The error to report.
    pub error: Error,
}

/// An input of a region.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// The value.
    pub value: ValueId,
    /// Its type and shape.
    pub meta: Meta,
    /// Host data, where the value enters the runtime with this region.
    pub source: Option<Arc<HostBuffer>>,
    /// No program or region can reach it after this region.
    pub dies: bool,
}

impl From<&RegionInput> for PlanInput {
    fn from(input: &RegionInput) -> PlanInput {
        PlanInput { value: input.value, meta: input.meta.clone(), source: input.source.clone(), dies: input.dies }
    }
}

/// A region's kernels.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The region.
    pub region: RegionId,
    /// Its session.
    pub session: SessionId,
    /// The session's share of a device, relative to other sessions.
    pub weight: u32,
    /// Where it runs.
    pub device: DeviceId,
    /// Values that must exist before it.
    pub inputs: Vec<PlanInput>,
    /// Virtual buffers.
    pub buffers: Vec<PlanBuffer>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Values made, with the buffer that holds each.
    pub outputs: Vec<(ValueId, Meta, u32)>,
    /// Values (inputs or outputs) to bring to host memory at the end.
    pub readbacks: Vec<ValueId>,
    /// Fault word `i` belongs to site `i`.
    pub fault_sites: Vec<FaultSite>,
    /// Whether the plan came from the cache.
    pub cached: bool,
    /// Set if fusion wants to know how long the plan takes: the key of its report.
    pub explained: Option<u64>,
}

impl Launch {
    /// Estimated microseconds on a device. The estimate decides how much work is sent at a time; no result depends on
    /// it.
    pub fn estimate_us(&self, costs: &Costs) -> f64 {
        let (outer, inner) = match self.geometry {
            Geometry::Map { elements } => (1.0, elements as f64),
            Geometry::Reduce { outer, inner }
            | Geometry::Scan { outer, inner, .. }
            | Geometry::Line { outer, inner } => (outer as f64, inner as f64),
        };
        let work = match &self.program {
            Program::Kernel(kernel, _) => {
                let turns = kernel.turns(&self.params) as f64;
                kernel.work(outer * turns, inner)
            }
            Program::Library(library) => library.work(),
        };
        let bytes = (self.bytes_read + self.bytes_written) as f64;
        let memory_us = bytes / (costs.memory_gb_per_s * 1e3);
        costs.dispatch_us + memory_us.max(costs.arithmetic_us(work))
    }
}

impl Step {
    /// The buffers that it uses, some perhaps twice.
    pub fn buffers(&self) -> SmallVec<[u32; 8]> {
        match self {
            Step::Launch(launch) => launch.uses.iter().map(|used| used.buffer).chain(launch.faults).collect(),
            Step::Copy { from, to } | Step::Pack { from, to, .. } => smallvec![*from, *to],
        }
    }
}

impl Plan {
    /// Notes the first and the last step of every buffer.
    pub fn note_lives(&mut self) {
        let mut lives = vec![(0, 0); self.buffers.len()];
        let mut seen = vec![false; self.buffers.len()];
        for (s, step) in self.steps.iter().enumerate() {
            for buffer in step.buffers() {
                let (live, s) = (&mut lives[buffer as usize], s as u32);
                *live = if std::mem::replace(&mut seen[buffer as usize], true) { (live.0, s) } else { (s, s) };
            }
        }
        self.buffers.iter_mut().zip(lives).for_each(|(buffer, live)| buffer.live = live);
    }

    /// Its kernels, in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| match step {
            Step::Launch(launch) => Some(&**launch),
            Step::Copy { .. } | Step::Pack { .. } => None,
        })
    }

    /// Estimated microseconds of its launches on a device.
    pub fn estimate_us(&self, costs: &Costs) -> f64 {
        self.launches().map(|launch| launch.estimate_us(costs)).sum()
    }
}
