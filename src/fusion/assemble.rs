//! Makes the steps of a plan over virtual buffers.
//!
//! In: clusters in order. Out: a [`Plan`]. Must hold: PLAN-1 to PLAN-3; a buffer is taken over in place only
//! by the last step that reads it.

use super::caches::KernelCache;
use super::form::{Class, RegionGraph, WorkNode};
use super::grouping::Grouping;
use super::library;
use super::lower::{Lowered, Packed, Surroundings, lower};
use super::repeat::is_blind;
use super::roll::roll;
use super::source::{Source, source_of};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{
    FaultSite, Launch, Number, NumberOf, Plan, PlanBuffer, PlanInput, Program, Provenance, Role, Step, Use,
};
use crate::contract::region::Region;
use crate::graph::{Check, DType};
use crate::kernels::ir::{Access, Geometry};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

struct Assembly<'a, 'r> {
    work: &'a RegionGraph<'r>,
    grouping: &'a Grouping,
    device: &'a DeviceInfo,
    kernels: &'a mut KernelCache,
    buffers: Vec<PlanBuffer>,
    steps: Vec<Step>,
    buffer_of: FxHashMap<Source, u32>,
    last_reader: FxHashMap<Source, usize>,
    sites: Vec<FaultSite>,
    site_of: FxHashMap<u32, u32>,
    faults: Option<u32>,
    /// The region of all turns, where the work is one turn of a loop.
    turns: Option<&'a Region>,
}

/// Puts a plan together.
pub fn assemble(
    work: &RegionGraph<'_>,
    grouping: &Grouping,
    device: &DeviceInfo,
    kernels: &mut KernelCache,
    cached: bool,
) -> Plan {
    let mut assembly = Assembly::new(work, grouping, device, kernels);
    for cluster in 0..grouping.clusters.len() {
        assembly.cluster(cluster);
    }
    assembly.plan(cached)
}

/// Puts the plan of a loop together: `work` is one turn of `region`, in one cluster. `None` where its kernel cannot be a
/// loop.
pub fn assemble_loop(
    work: &RegionGraph<'_>,
    grouping: &Grouping,
    device: &DeviceInfo,
    kernels: &mut KernelCache,
    region: &Region,
) -> Option<Plan> {
    let mut assembly = Assembly::new(work, grouping, device, kernels);
    assembly.turns = Some(region);
    let plan = assembly.generated(0).then(|| assembly.plan(false))?;
    // One turn has its carried values among its inputs; the plan has those of the whole loop.
    Some(Plan { inputs: region.inputs.iter().map(PlanInput::from).collect(), ..plan })
}

impl<'a, 'r> Assembly<'a, 'r> {
    fn new(
        work: &'a RegionGraph<'r>,
        grouping: &'a Grouping,
        device: &'a DeviceInfo,
        kernels: &'a mut KernelCache,
    ) -> Assembly<'a, 'r> {
        let mut last_reader = FxHashMap::default();
        let count = work.nodes.len() as u32;
        for (c, cluster) in grouping.clusters.iter().enumerate() {
            for read in cluster.reads.iter() {
                let source = if read < count { Source::Node(read) } else { Source::Input(read - count) };
                last_reader.insert(source, c);
            }
        }
        Assembly {
            work,
            grouping,
            device,
            kernels,
            buffers: Vec::new(),
            steps: Vec::new(),
            buffer_of: FxHashMap::default(),
            last_reader,
            sites: Vec::new(),
            site_of: FxHashMap::default(),
            faults: None,
            turns: None,
        }
    }

    fn cluster(&mut self, index: usize) {
        let cluster = &self.grouping.clusters[index];
        let root = cluster.roots[0].0;
        match self.work.nodes[root as usize].class {
            Class::Library => self.library(index, root),
            Class::Inline | Class::Reduce | Class::Scan | Class::Patch | Class::Compact | Class::Empty => {
                self.generated(index);
            }
        }
    }

    /// Adds the launch of a generated kernel; false where it should be a loop and cannot be one.
    fn generated(&mut self, index: usize) -> bool {
        let grouping = self.grouping;
        let cluster = &grouping.clusters[index];
        let mut lowered = {
            let (sites, site_of, work) = (&mut self.sites, &mut self.site_of, self.work);
            let mut fault_word = |n: u32| site(work, sites, site_of, n);
            let (last_reader, work) = (&self.last_reader, self.work);
            let dies = |source: Source| dies(work, self.device, last_reader, index, source);
            // A cluster's own roots are not among its reads, so a reader of one is another cluster.
            let read_later = |root: u32| last_reader.contains_key(&Source::Node(root));
            let around =
                Surroundings { device: self.device, dies: &dies, read_later: &read_later, fault_word: &mut fault_word };
            lower(self.work, &grouping.written, cluster, around)
        };
        if let Some(region) = self.turns
            && !roll(region, self.work, cluster, &mut lowered)
        {
            return false;
        }
        for &(node, source) in &lowered.in_place {
            self.take_over(node, source);
        }
        let root = cluster.roots[0].0;
        if self.work.nodes[root as usize].class == Class::Patch {
            let base = source_of(self.work.nodes[root as usize].args[0]);
            // The assigned value may be computed from the base itself. If that is done in place, the base is no operand
            // of its own.
            self.take_over_or_copy(index, root, base, lowered.sources.contains(&base));
        }
        let packs = self.pack(&lowered.packed);
        let mut uses: SmallVec<[Use; 6]> = SmallVec::new();
        let (mut bytes_read, mut bytes_written) = (0, 0);
        for (o, operand) in lowered.kernel.operands.iter().enumerate() {
            let buffer = match lowered.sources[o] {
                Source::Pack(dtype) => packs[&dtype],
                source => self.buffer(source),
            };
            let width = self.device.element_bytes(operand.dtype);
            bytes_read += lowered.elements_read[o] * width;
            bytes_written += lowered.elements_written[o] * width;
            uses.push(Use {
                buffer,
                tiled: operand.tiled,
                writes: operand.access != Access::Read,
                reads: operand.access != Access::Write,
            });
        }
        let faults = lowered.kernel.faults.then(|| self.fault_buffer());
        let (mut label, mut ops) = self.label(index);
        if let Some(Region { turns, .. }) = self.turns {
            label = format!("{turns} turns of {label}").into();
            ops *= turns;
        }
        let root = &self.work.nodes[cluster.roots[cluster.roots.len() - 1].0 as usize];
        let provenance = self.provenance(root, &lowered.numbers);
        let Lowered { kernel, params, geometry, .. } = lowered;
        let (kernel, hash) = self.kernels.intern(kernel);
        self.steps.push(Step::Launch(Arc::new(Launch {
            program: Program::Kernel(kernel, hash),
            geometry,
            params,
            uses,
            faults,
            label,
            ops,
            bytes_read,
            bytes_written,
            split: cluster.split,
            blame: (root.op.name(), root.at),
            provenance,
        })));
        true
    }

    fn library(&mut self, index: usize, root: u32) {
        let node = &self.work.nodes[root as usize];
        let call = library::call(self.work, root);
        if let Some(base) = call.base {
            self.take_over_or_copy(index, root, base, call.operands.contains(&base));
        }
        let mut uses: SmallVec<[Use; 6]> = SmallVec::new();
        let (mut bytes_read, mut bytes_written) = (0, 0);
        for (o, &source) in call.operands.iter().enumerate() {
            let buffer = self.buffer(source);
            let output = o == call.output;
            let of = &self.buffers[buffer as usize];
            let width = self.device.element_bytes(of.dtype);
            if output {
                bytes_written += call.library.elements_written(of.elements) * width;
            } else {
                bytes_read += of.elements * width;
            }
            uses.push(Use { buffer, tiled: false, writes: output, reads: !output || call.base.is_some() });
        }
        let mut params = Vec::new();
        let mut faults = None;
        if node.op.facts().check != Check::Nothing {
            let (sites, site_of) = (&mut self.sites, &mut self.site_of);
            params.push(site(self.work, sites, site_of, root));
            faults = Some(self.fault_buffer());
        }
        let scratch = self.device.capabilities.needs_scratch.then(|| call.library.scratch_words()).flatten();
        if let Some(words @ 1..) = scratch {
            let dtype = call.library.scratch_dtype();
            let buffer = self.new_buffer(Role::Scratch, dtype, words * 4 / dtype.gpu_bytes() as u64);
            uses.push(Use { buffer, tiled: false, writes: true, reads: true });
        }
        let (label, ops) = self.label(index);
        self.steps.push(Step::Launch(Arc::new(Launch {
            program: Program::Library(call.library),
            geometry: Geometry::Map { elements: node.meta.elements() as u32 },
            params,
            uses,
            faults,
            label,
            ops,
            bytes_read,
            bytes_written,
            split: None,
            blame: (node.op.name(), node.at),
            provenance: self.provenance(node, &[]),
        })));
    }

    /// The region's nodes from which a launch takes its source line and its numbers.
    fn provenance(&self, root: &WorkNode, numbers: &[(u32, u32, NumberOf)]) -> Arc<Provenance> {
        let number = |&(word, n, of): &(u32, u32, NumberOf)| {
            let node = &self.work.nodes[n as usize];
            let recorded = &self.work.region.nodes[node.number as usize];
            let varies = node.value.is_some() && is_blind(recorded, |arg| self.work.region.dtype_of(arg));
            varies.then_some(Number { word, node: node.number, of })
        };
        let numbers = numbers.iter().filter_map(number).collect();
        Arc::new(Provenance { blame: root.number, numbers })
    }

    /// Adds copies of the packed operands of a kernel. Returns the pack of each dtype.
    fn pack(&mut self, packed: &[Packed]) -> FxHashMap<DType, u32> {
        let mut packs: FxHashMap<DType, u32> = FxHashMap::default();
        for part in packed {
            let from = self.buffer(part.source);
            let to = match packs.get(&part.dtype) {
                Some(&pack) => pack,
                None => {
                    let elements = packed.iter().filter(|p| p.dtype == part.dtype).map(|p| p.elements).sum();
                    let pack = self.new_buffer(Role::Scratch, part.dtype, elements);
                    packs.insert(part.dtype, pack);
                    pack
                }
            };
            self.steps.push(Step::Pack { from, to, first: part.first });
        }
        packs
    }

    /// Gives the node the memory of a source that dies.
    fn take_over(&mut self, node: u32, source: Source) {
        let from = self.buffer(source);
        match source {
            Source::Node(_) => {
                self.buffer_of.insert(Source::Node(node), from);
                let role = self.role(node);
                self.buffers[from as usize].role = role;
            }
            _ => {
                let buffer = self.buffer(Source::Node(node));
                self.buffers[buffer as usize].in_place_of = Some(from);
            }
        }
    }

    /// Makes the node's buffer start with the contents of the base: it takes over the base's memory if nothing reads
    /// that later, else a copy is made. `read` says whether the node's own kernel reads the base.
    fn take_over_or_copy(&mut self, cluster: usize, node: u32, base: Source, read: bool) {
        if !read && dies(self.work, self.device, &self.last_reader, cluster, base) {
            self.take_over(node, base);
        } else {
            let (from, to) = (self.buffer(base), self.buffer(Source::Node(node)));
            self.steps.push(Step::Copy { from, to });
        }
    }

    fn role(&self, node: u32) -> Role {
        match self.work.nodes[node as usize].output {
            Some(seen) => Role::Output(self.work.region.nodes[seen as usize].value),
            None => Role::Scratch,
        }
    }

    fn buffer(&mut self, source: Source) -> u32 {
        if let Some(&buffer) = self.buffer_of.get(&source) {
            return buffer;
        }
        let (role, dtype, elements) = match source {
            Source::Node(n) => {
                let meta = &self.work.nodes[n as usize].meta;
                (self.role(n), meta.dtype, meta.elements() as u64)
            }
            Source::Input(i) => {
                let input = &self.work.region.inputs[i as usize];
                (Role::Input(input.value), input.meta.dtype, input.meta.elements() as u64)
            }
            Source::Scratch(words) => return self.new_buffer(Role::Scratch, DType::U32, words),
            Source::Pack(_) => unreachable!("FUSE-5: a pack is made with its kernel"),
        };
        let buffer = self.new_buffer(role, dtype, elements);
        self.buffer_of.insert(source, buffer);
        buffer
    }

    fn new_buffer(&mut self, role: Role, dtype: DType, elements: u64) -> u32 {
        self.buffers.push(PlanBuffer::new(role, dtype, elements));
        self.buffers.len() as u32 - 1
    }

    fn fault_buffer(&mut self) -> u32 {
        if self.faults.is_none() {
            let buffer = self.new_buffer(Role::Faults, DType::U32, 0);
            self.buffers[buffer as usize].zeroed = true;
            self.faults = Some(buffer);
        }
        self.faults.expect("FUSE-5: it was just made")
    }

    /// The names of a cluster's ops, with repetitions counted, and the number of ops.
    fn label(&self, index: usize) -> (Arc<str>, u32) {
        const LABEL_MAX: usize = 72;
        let mut label = String::new();
        let mut ops = 0;
        let mut names: Vec<(&'static str, u32)> = Vec::new();
        for n in self.grouping.clusters[index].members.iter() {
            let node = &self.work.nodes[n as usize];
            if node.op.is_number() {
                continue;
            }
            ops += 1;
            let name = node.op.name();
            match names.last_mut() {
                Some((last, count)) if *last == name => *count += 1,
                _ => names.push((name, 1)),
            }
        }
        for (i, (name, count)) in names.iter().enumerate() {
            if label.len() > LABEL_MAX {
                label.push_str("+…");
                break;
            }
            if i > 0 {
                label.push('+');
            }
            label.push_str(name);
            if *count > 1 {
                label.push_str(&format!("×{count}"));
            }
        }
        if label.is_empty() {
            label.push_str("full");
        }
        (label.into(), ops)
    }

    fn plan(mut self, cached: bool) -> Plan {
        let region = self.work.region;
        if let Some(faults) = self.faults {
            self.buffers[faults as usize].elements = self.sites.len() as u64;
        }
        let mut outputs = Vec::new();
        for (n, node) in self.work.nodes.iter().enumerate() {
            if let Some(seen) = node.output {
                let buffer = self.buffer(Source::Node(n as u32));
                let seen = &region.nodes[seen as usize];
                outputs.push((seen.value, seen.meta.clone(), buffer));
            }
        }
        Plan {
            region: region.id,
            session: region.session,
            weight: region.weight,
            device: self.device.id,
            inputs: region.inputs.iter().map(PlanInput::from).collect(),
            buffers: self.buffers,
            steps: self.steps,
            outputs,
            readbacks: region.readbacks.clone(),
            fault_sites: self.sites,
            cached,
            explained: None,
        }
    }
}

/// Whether a buffer is not needed after a cluster, so that it may be overwritten.
fn dies(
    work: &RegionGraph<'_>,
    device: &DeviceInfo,
    last_reader: &FxHashMap<Source, usize>,
    cluster: usize,
    source: Source,
) -> bool {
    if last_reader.get(&source) != Some(&cluster) {
        return false;
    }
    match source {
        Source::Node(n) => work.nodes[n as usize].output.is_none(),
        Source::Input(i) => {
            let input = &work.region.inputs[i as usize];
            let bytes = (input.meta.elements() * input.meta.dtype.bytes()) as u64;
            let is_lent = input.is_source && device.reads_in_place(bytes);
            input.dies && !is_lent && !work.region.readbacks.contains(&input.value)
        }
        Source::Scratch(_) | Source::Pack(_) => false,
    }
}

/// The number of a node's fault word.
fn site(work: &RegionGraph<'_>, sites: &mut Vec<FaultSite>, site_of: &mut FxHashMap<u32, u32>, n: u32) -> u32 {
    *site_of.entry(n).or_insert_with(|| {
        let node = &work.nodes[n as usize];
        // The overwritten array may be a reshape of the program's one (`form`); the message names the program's shape.
        let shape = if node.op.facts().overwrites() { node.meta.shape.clone() } else { work.arg_shape(node.args[0]) };
        let error = node.op.fault(&shape).with_site(node.at);
        let value = node.value.expect("FUSE-5: a node that faults was recorded");
        sites.push(FaultSite { value, error });
        sites.len() as u32 - 1
    })
}
