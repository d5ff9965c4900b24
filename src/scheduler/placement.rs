//! Where a node runs: what a device can do, and what it is estimated to cost.
//!
//! In: a cut, the devices' numbers. Out: a device and a reason for each node. Must hold: the choice depends on
//! shapes, on where operands were made in program order, on pins and on constants; never on a queue, and not on whether
//! the GPU was open already. A pinned node is on its device or counted as elsewhere; what only pinned nodes need goes
//! with them.
//!
//! PLACE-1: an operand that is used again is worth moving. Where a component runs on the host only because operands would
//! have to be uploaded, each of these remembers its share of what the GPU would have saved. A later component weighs the
//! upload of an operand less by what that has missed so far, and so the operand moves, at the latest, when it has missed
//! as much as its upload takes. All uses together then take at most one upload longer than the better of two programs
//! that had known: one that uploads it at once, and one that never does. What is counted are estimates, in the order in
//! which the session's regions are cut, so that the turn in which an operand moves follows from the program, its shapes
//! and the devices' numbers alone. Values of other sessions are not counted.
//!
//! A GPU that is not open has no constants yet. So `auto` asks first whether a component could be worth any GPU:
//! whether the host would move and compute for longer than the fastest GPU one could imagine would take for all of it,
//! round trip and transfers included ([`IDEAL_GPU`]). What fails this stays on the host, also where the GPU is open.

use super::cut::{Cut, CutNode, Dep};
use super::room;
use super::state::State;
use super::whereabouts::Places;
use crate::config::DeviceChoice;
use crate::contract::device::{Capabilities, Costs, DeviceInfo, DeviceKind, Features};
use crate::graph::costs::{Work, operations};
use crate::graph::refusals::refusal;
use crate::graph::{Arg, DType, Meta, Op, OpClass, Scalar, mixed, wide};
use crate::ids::DeviceId;
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Faster than any GPU: a round trip in a fraction of what submission, execution and mapping take together, caches for
/// memory, links that no bus has.
const IDEAL_GPU: Costs = Costs {
    launch_us: 20.0,
    dispatch_us: 0.2,
    memory_gb_per_s: 10_000.0,
    f32_gop_per_s: 100_000.0,
    f64_gop_per_s: 50_000.0,
    upload_gb_per_s: 500.0,
    readback_gb_per_s: 500.0,
};

/// Why a component runs where it does, in words.
const ON_HOST: &str = "cheaper on the host";
const ON_GPU: &str = "cheaper on the GPU";
const MOVED: &str = "cheaper on the GPU, since its operands are used again";

/// What a device would take for a component.
#[derive(Clone, Debug)]
struct Estimate {
    /// Microseconds until its results are where they are wanted.
    us: f64,
    /// Of these, what it moves and computes for, without launches.
    work_us: f64,
    /// An operand was made there.
    started_here: bool,
    /// Operands of the session that host memory has and the device does not: their positions in the cut's inputs, and the
    /// microseconds that their uploads take.
    uploads: SmallVec<[(u32, f64); 4]>,
}

impl Estimate {
    /// Microseconds of all uploads.
    fn uploads_us(&self) -> f64 {
        self.uploads.iter().map(|upload| upload.1).sum()
    }

    /// Microseconds that the device would save beside the host if it had all operands already.
    fn saved_us(&self, host_us: f64) -> f64 {
        host_us - (self.us - self.uploads_us())
    }
}

/// Where a node runs, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Where {
    /// The device.
    pub device: DeviceId,
    /// Why this device, in words.
    pub reason: &'static str,
    /// Why not the device that was asked for.
    pub elsewhere: Option<&'static str>,
    /// Its component of the cut: nodes that are connected by edges within the cut. [`PINNED`] for a node whose device
    /// the program chose.
    pub component: u32,
}

/// The component of nodes that nobody has to find a device for.
const PINNED: u32 = u32::MAX;

impl Default for Where {
    fn default() -> Where {
        Where { device: DeviceId::HOST, reason: "asked for", elsewhere: None, component: 0 }
    }
}

/// Whether a device can run an op on arguments of these dtypes (`lengths`: their elements), or why not.
///
/// # Errors
/// The reason, in words that end up in `Placement::reason` and `Stats::elsewhere`.
pub fn capability(
    op: &Op,
    args: &[DType],
    lengths: &[usize],
    meta: &Meta,
    device: &DeviceInfo,
) -> Result<(), &'static str> {
    if device.capabilities.runs_all {
        return Ok(());
    }
    for dtype in args.iter().chain([&meta.dtype]) {
        if !device.has(*dtype) {
            return Err(match dtype {
                DType::I64 => "this device lacks i64",
                _ if device.features.f64 => "this device lacks the 64-bit integers that f64 needs",
                _ => "this device lacks f64",
            });
        }
    }
    if let Some(reason) = op.host_only_reason() {
        return Err(reason);
    }
    if room::is_too_tall(op, meta) {
        return Err(room::TOO_TALL);
    }
    if room::scratch_words(op, args, lengths, meta) > u32::MAX as u64 {
        return Err("its scratch memory has more than 2^32 words");
    }
    if let Op::Apply(op) = op
        && let Some(reason) = args.iter().find_map(|&input| refusal(*op, input))
    {
        return Err(reason);
    }
    // Others read less where they bind too much (`fusion/fits`); these bind all that they are about.
    if op.binds_all_pieces() && room::bindings(op, args, lengths, meta, device) > device.bindings_max as u64 {
        return Err(room::NO_BINDINGS);
    }
    if room::fits(op, args, lengths, meta, device) { Ok(()) } else { Err(room::NO_ROOM) }
}

/// Whether an op needs a kernel of its own, so that its operands and result move through memory.
fn is_library(op: &Op) -> bool {
    matches!(op.facts().class, OpClass::Library | OpClass::Scan)
}

/// The fastest GPU that could be.
pub(super) fn ideal_gpu(host: &DeviceInfo) -> DeviceInfo {
    let features = Features { f64: true, i64: true, ..host.features };
    let kind = DeviceKind::Gpu;
    DeviceInfo {
        id: DeviceId::GPU,
        kind,
        capabilities: Capabilities::of(kind),
        features,
        costs: IDEAL_GPU,
        span_shift: 63,
        memory_bytes: u64::MAX,
        ..host.clone()
    }
}

impl State {
    /// Chooses a device for every node of the cut, or finds that one has to be opened first.
    pub(super) fn place(&self, cut: &mut Cut) {
        self.place_pinned(cut);
        match self.choice {
            DeviceChoice::Host => {}
            DeviceChoice::Gpu(_) if self.opening.is_promised() => {
                cut.needs_device |= cut.nodes.iter().any(|n| n.place.component != PINNED && n.runs());
            }
            DeviceChoice::Gpu(_) => match self.fleet.iter().find(|d| d.is_accelerator()) {
                Some(gpu) if self.fleet.is_open(gpu.id) => self.put_all(cut, |_| (gpu.id, "asked for"), true),
                _ => {
                    for node in cut.nodes.iter_mut().filter(|n| n.place.component != PINNED) {
                        node.place.elsewhere = Some("the GPU that was asked for is gone");
                    }
                }
            },
            DeviceChoice::Auto => self.place_cheapest(cut),
        }
    }

    /// Puts pinned nodes, and what only they need, where the program wants them.
    fn place_pinned(&self, cut: &mut Cut) {
        if cut.nodes.iter().all(|n| self.graph[n.at].node.pin.is_none()) {
            return;
        }
        // Users stand behind their arguments: one pass from the last decides. A value that several users want on
        // several devices goes to a GPU.
        let mut pins: Vec<Option<DeviceId>> = cut.nodes.iter().map(|n| self.graph[n.at].node.pin).collect();
        for position in (0..cut.nodes.len()).rev() {
            let Some(device) = pins[position] else { continue };
            for dep in &cut.nodes[position].deps {
                if let Dep::Node(p) = *dep
                    && self.graph[cut.nodes[p as usize].at].node.pin.is_none()
                {
                    pins[p as usize] = pins[p as usize].max(Some(device));
                }
            }
            cut.nodes[position].place.component = PINNED;
            if device == DeviceId::GPU && self.opening.is_promised() {
                cut.needs_device = true;
            } else if self.fleet.is_open(device) {
                self.put(cut, position, device, "pinned to it by the program", true);
            } else {
                cut.nodes[position].place.elsewhere = Some("the device that it is pinned to is gone");
            }
        }
    }

    /// Puts the nodes that are not pinned on the device that is chosen for their component where that can run them, on
    /// the host otherwise.
    fn put_all(&self, cut: &mut Cut, choice: impl Fn(u32) -> (DeviceId, &'static str), asked: bool) {
        for position in 0..cut.nodes.len() {
            let component = cut.nodes[position].place.component;
            if component != PINNED {
                let (device, reason) = choice(component);
                self.put(cut, position, device, reason, asked);
            }
        }
    }

    /// Puts a node on `device` if that can run it, on the host otherwise.
    fn put(&self, cut: &mut Cut, position: usize, device: DeviceId, reason: &'static str, asked: bool) {
        let able = self.able(cut, position, &self.fleet[device]);
        let place = &mut cut.nodes[position].place;
        place.reason = reason;
        match able {
            Ok(()) => place.device = device,
            Err(why) if asked => place.elsewhere = Some(why),
            Err(why) => place.reason = why,
        }
    }

    fn able(&self, cut: &Cut, position: usize, info: &DeviceInfo) -> Result<(), &'static str> {
        let node = &self.graph[cut.nodes[position].at].node;
        let mut dtypes: SmallVec<[DType; 4]> = SmallVec::new();
        let mut lengths: SmallVec<[usize; 4]> = SmallVec::new();
        // In the order of the op: a node's arguments are listed last first.
        for dep in cut.nodes[position].deps.iter().rev() {
            let meta = self.meta_of(cut, *dep);
            dtypes.push(meta.dtype);
            lengths.push(meta.elements());
        }
        let numbers = node.args.iter().filter_map(|arg| match arg {
            Arg::Scalar(number) => Some(*number),
            Arg::Value(_) => None,
        });
        if let Op::Apply(op) = node.op {
            let values = dtypes.iter().map(|&dtype| (dtype, None));
            let args = values.chain(numbers.clone().map(|number| (number.dtype(), Some(number))));
            if let Some(inner) = mixed::computes_in(op, args, info.compiles_f64()) {
                return capability(&node.op, &[inner], &lengths, &node.meta, info);
            }
            // `i64` beside a number takes f64 for few numbers only.
            if let ([DType::I64], Some(Scalar::F64(number))) = (&dtypes[..], numbers.clone().next())
                && wide::takes(op)
            {
                let reversed = matches!(node.args.first(), Some(Arg::Scalar(_)));
                let takes_float = wide::needs_float(op, number, reversed);
                let classes = [DType::I64, if takes_float { DType::F64 } else { DType::I64 }];
                return capability(&node.op, &classes, &lengths, &node.meta, info);
            }
        }
        dtypes.extend(numbers.map(|number| number.dtype()));
        match capability(&node.op, &dtypes, &lengths, &node.meta, info) {
            // What is made of nothing that is stored is made in the kernel that reads it.
            Err(room::NO_ROOM) if !is_library(&node.op) => {
                for (length, dep) in lengths.iter_mut().zip(&cut.nodes[position].deps) {
                    if room::is_made_of_nothing(cut, *dep) {
                        *length = 0;
                    }
                }
                capability(&node.op, &dtypes, &lengths, &node.meta, info)
            }
            able => able,
        }
    }

    pub(super) fn meta_of(&self, cut: &Cut, dep: Dep) -> &Meta {
        &self.graph[cut.entry(dep)].node.meta
    }

    fn place_cheapest(&self, cut: &mut Cut) {
        let candidates: SmallVec<[DeviceId; 4]> =
            self.fleet.iter().filter(|d| !d.software && self.fleet.is_open(d.id)).map(|d| d.id).collect();
        if candidates.len() < 2 && !self.opening.is_promised() {
            let failed = self.opening.has_failed();
            let reason = if failed { "the GPU could not be opened" } else { "the only device" };
            for node in cut.nodes.iter_mut().filter(|n| n.place.component != PINNED) {
                node.place.reason = reason;
            }
            return;
        }
        let components = find_components(cut);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); components];
        for (position, node) in cut.nodes.iter().enumerate().filter(|(_, n)| n.place.component != PINNED) {
            members[node.place.component as usize].push(position as u32);
        }
        let mut choices: Vec<(DeviceId, &'static str)> = Vec::with_capacity(components);
        for nodes in &members {
            let host = self.estimate(cut, nodes, self.fleet.host());
            let mut estimates: SmallVec<[(u8, f64); 2]> = SmallVec::new();
            estimates.push((self.fleet.fallback().0, host.us));
            let mut best: Option<(DeviceId, f64, Estimate)> = None;
            for &device in candidates.iter().filter(|d| !self.fleet.is_fallback(**d)) {
                let estimate = self.estimate(cut, nodes, &self.fleet[device]);
                estimates.push((device.0, estimate.us));
                let us = estimate.us - self.missed_us(cut, &estimate);
                if best.as_ref().is_none_or(|(_, least, _)| us < *least) {
                    best = Some((device, us, estimate));
                }
            }
            cut.estimates.push(estimates);
            let mut choice = (self.fleet.fallback(), ON_HOST);
            if self.opening.is_promised() {
                cut.needs_device |= self.could_pay(cut, nodes, &host);
            } else if let Some((device, us, estimate)) = best {
                // Of equals, the host. Whether it could pay is asked only where something depends on the answer.
                if us < host.us {
                    if self.could_pay(cut, nodes, &host) {
                        choice = (device, if estimate.us < host.us { ON_GPU } else { MOVED });
                    }
                } else if estimate.saved_us(host.us) > 0.0 && self.could_pay(cut, nodes, &host) {
                    miss(cut, &estimate, host.us);
                }
            }
            choices.push(choice);
        }
        self.put_all(cut, |component| choices[component as usize], false);
    }

    /// What the operands that a component would have to upload have missed so far, at most what their uploads take.
    fn missed_us(&self, cut: &Cut, estimate: &Estimate) -> f64 {
        let missed = |&(input, us): &(u32, f64)| self.graph[cut.inputs[input as usize].at].missed_us.min(us);
        estimate.uploads.iter().map(missed).sum()
    }

    /// Whether a component could be worth a GPU, however fast that is. What began on one may go on there. The host's
    /// launches don't count: they say how busy the machine was when it was measured, not how much there is to do.
    fn could_pay(&self, cut: &Cut, nodes: &[u32], host: &Estimate) -> bool {
        let gpu = self.estimate(cut, nodes, &self.ideal_gpu);
        gpu.started_here || host.work_us > gpu.us
    }

    /// What a component's results take, if it runs on a device.
    fn estimate(&self, cut: &Cut, nodes: &[u32], info: &DeviceInfo) -> Estimate {
        let rates = &info.costs;
        let mut reading = Reading::default();
        let (mut written_bytes, mut arithmetic_us, mut transfer_us, mut kernels) = (0.0, 0.0, 0.0, 1.0);
        let mut to_host = false;
        for &position in nodes {
            let node = &cut.nodes[position as usize];
            let live = &self.graph[node.at];
            let elements = self.read(cut, node, info, &mut reading).max(live.node.meta.elements());
            let arg = |slot: usize| match live.node.args.get(slot)? {
                Arg::Value(value) => self.graph.get(*value).map(|live| &live.node.meta),
                Arg::Scalar(_) => None,
            };
            let work = Work::of(live.node.meta.dtype, operations(&live.node.op, &live.node.meta, elements, arg));
            let bytes = live.node.meta.elements() as f64 * info.element_bytes(live.node.meta.dtype) as f64;
            if node.root || is_library(&live.node.op) {
                written_bytes += bytes;
            }
            kernels += if is_library(&live.node.op) { 1.0 } else { 0.0 };
            if info.is_accelerator() && node.root && self.wants_host(live) {
                to_host = true;
                transfer_us += readback_us(live.node.meta.bytes() as f64, info);
            }
            if !info.capabilities.runs_all && self.able(cut, position as usize, info).is_err() {
                // To the host and back, with the host's own work.
                transfer_us += 2.0 * (rates.launch_us + readback_us(bytes, info));
                transfer_us += self.fleet.host().costs.arithmetic_us(work);
            } else {
                arithmetic_us += rates.arithmetic_us(work);
            }
        }
        let memory_us = (reading.bytes + written_bytes) / (rates.memory_gb_per_s * 1e3);
        let started_here = reading.started_here;
        // A chain that goes on where it is needs no round trip of its own.
        let launch_us = if started_here && !to_host { 0.0 } else { rates.launch_us };
        let work_us = transfer_us + reading.transfer_us + memory_us.max(arithmetic_us);
        let us = launch_us + kernels * rates.dispatch_us + work_us;
        Estimate { us, work_us, started_here, uploads: reading.uploads }
    }

    /// Counts what a node reads, and gives the most elements that it reads of one argument.
    fn read(&self, cut: &Cut, node: &CutNode, info: &DeviceInfo, reading: &mut Reading) -> usize {
        let of = &self.graph[node.at].node;
        let facts = of.op.facts();
        let mut most = 0;
        // A cut lists the last argument that is a value first.
        let slots = (0..of.args.len()).rev().filter(|&slot| matches!(of.args[slot], Arg::Value(_)));
        for (&dep, slot) in node.deps.iter().zip(slots) {
            let meta = self.meta_of(cut, dep);
            let part = facts.reads(slot).elements(meta.elements(), of.meta.elements());
            most = most.max(part);
            let at = match dep {
                Dep::Input(i) => cut.inputs[i as usize].at,
                Dep::Node(p) if cut.nodes[p as usize].place.component == PINNED => cut.nodes[p as usize].at,
                Dep::Node(_) => continue,
            };
            let so_far = reading.elements.entry(at).or_insert_with(|| {
                let fetch = self.fetch(cut, dep, info);
                reading.transfer_us += fetch.us;
                reading.started_here |= fetch.is_made_there;
                reading.uploads.extend(fetch.upload);
                0
            });
            let more = part.min(meta.elements() - *so_far);
            *so_far += more;
            reading.bytes += more as f64 * info.element_bytes(meta.dtype) as f64;
        }
        most
    }

    /// What it takes to have an operand on a device.
    fn fetch(&self, cut: &Cut, operand: Dep, info: &DeviceInfo) -> Fetch {
        let device = info.id;
        let (live, places, input) = match operand {
            Dep::Input(i) => {
                let live = &self.graph[cut.inputs[i as usize].at];
                // What other sessions did with a shared value must not matter.
                let own = live.node.value.session == cut.session;
                (live, if own { live.places } else { Places::made_on(live.places.made()) }, own.then_some(i))
            }
            Dep::Node(p) => {
                let node = &cut.nodes[p as usize];
                (&self.graph[node.at], Places::made_on(node.place.device), None)
            }
        };
        let made = places.made();
        let bytes = live.node.meta.elements() as f64 * info.element_bytes(live.node.meta.dtype) as f64;
        if places.include(device) {
            return Fetch { us: 0.0, is_made_there: made == device && info.is_accelerator(), upload: None };
        }
        let made = &self.fleet[made];
        let is_on_host = places.include(DeviceId::HOST);
        let to_host_us = if is_on_host { 0.0 } else { made.costs.launch_us + readback_us(bytes, made) };
        let shares = info.capabilities.shares_host_memory;
        let upload_us = if shares { 0.0 } else { bytes / (info.costs.upload_gb_per_s * 1e3) };
        let upload = input.filter(|_| is_on_host && upload_us > 0.0).map(|i| (i, upload_us));
        Fetch { us: to_host_us + upload_us, is_made_there: false, upload }
    }
}

/// What the nodes of a component read from outside of it.
#[derive(Default)]
struct Reading {
    /// How many elements of each operand; at most all, once.
    elements: FxHashMap<NodeIndex, usize>,
    /// Their bytes.
    bytes: f64,
    /// Microseconds until all operands are on the device.
    transfer_us: f64,
    /// As in [`Estimate`].
    started_here: bool,
    /// As in [`Estimate`].
    uploads: SmallVec<[(u32, f64); 4]>,
}

/// What it takes to have an operand on a device.
struct Fetch {
    /// Microseconds until it is there.
    us: f64,
    /// The device made it.
    is_made_there: bool,
    /// Its upload, as in [`Estimate::uploads`], where it is one of the session and host memory has it.
    upload: Option<(u32, f64)>,
}

/// Has the operands that kept a component from a GPU remember what it would have saved, each its share by the time that
/// its upload takes (PLACE-1).
fn miss(cut: &mut Cut, gpu: &Estimate, host_us: f64) {
    for &(input, us) in &gpu.uploads {
        cut.inputs[input as usize].missed_us += gpu.saved_us(host_us) * us / gpu.uploads_us();
    }
}

/// Microseconds until so many bytes are in host memory.
fn readback_us(bytes: f64, from: &DeviceInfo) -> f64 {
    if from.capabilities.shares_host_memory { 0.0 } else { bytes / (from.costs.readback_gb_per_s * 1e3) }
}

/// Numbers the connected components of a cut's own edges between nodes that are not pinned, in order of their first
/// nodes.
fn find_components(cut: &mut Cut) -> usize {
    let mut sets = petgraph::unionfind::UnionFind::<u32>::new(cut.nodes.len());
    let pinned = |cut: &Cut, position: usize| cut.nodes[position].place.component == PINNED;
    for (position, node) in cut.nodes.iter().enumerate().filter(|(position, _)| !pinned(cut, *position)) {
        for dep in &node.deps {
            if let Dep::Node(p) = *dep
                && !pinned(cut, p as usize)
            {
                sets.union(position as u32, p);
            }
        }
    }
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    for (position, node) in cut.nodes.iter_mut().enumerate().filter(|(_, n)| n.place.component != PINNED) {
        let fresh = numbers.len() as u32;
        node.place.component = *numbers.entry(sets.find_mut(position as u32)).or_insert(fresh);
    }
    numbers.len()
}
