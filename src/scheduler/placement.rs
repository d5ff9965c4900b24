//! Decides where each node runs, by what a device can do and by the estimated time.
//!
//! In: a cut, the devices' numbers. Out: a device and a reason for each node. Must hold: the choice depends on shapes,
//! on where operands were made in program order, on pins and on constants; never on a queue, and not on whether the GPU
//! was open already. A pinned node is on its device or counted as elsewhere; nodes that only pinned nodes need are
//! placed with them.
//!
//! PLACE-1 decides when to upload an operand that is used repeatedly (the ski-rental rule). If a component runs on the
//! host only because its operands would have to be uploaded, each of these operands records its share of the time that
//! the GPU would have saved (`missed_us`). For later components, that time is subtracted from the estimate of the
//! operand's upload. So the operand is uploaded, at the latest, when it has missed as much as its upload takes. All
//! uses together then take at most one upload longer than the better of two plans that know the future: to upload it at
//! once, or never. The times are estimates, added up in the order in which the session's regions are cut, so the
//! upload's place in the program follows from the program, its shapes and the devices' constants alone. Values of other
//! sessions are not counted.
//!
//! A GPU that is not open has no measured constants yet. So `auto` first asks whether a component could be worth any
//! GPU: whether the host's transfers and arithmetic take longer than an ideal GPU ([`IDEAL_GPU`]) takes for everything,
//! round trip and transfers included. A component that fails this test stays on the host, also when the GPU is open.

use super::cut::{Cut, CutNode, Dep};
use super::room::{self, Sizes};
use super::state::State;
use super::whereabouts::Places;
use crate::config::DeviceChoice;
use crate::contract::device::{Capabilities, Costs, DeviceInfo, Features};
use crate::graph::costs::{Operations, operations};
use crate::graph::refusals::refusal;
use crate::graph::{Arg, DType, Meta, Op, OpClass, Scalar, mixed, wide};
use crate::ids::DeviceId;
use crate::kernels::scratch::scratch_words;
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Constants of an ideal GPU, each better than any real one: a round trip shorter than submission, execution and
/// mapping take, memory as fast as a cache, and transfers faster than any bus.
const IDEAL_GPU: Costs = Costs {
    launch_us: 20.0,
    dispatch_us: 0.2,
    memory_gb_per_s: 10_000.0,
    f32_gop_per_s: 100_000.0,
    f64_gop_per_s: 50_000.0,
    upload_gb_per_s: 500.0,
    readback_gb_per_s: 500.0,
};

/// Reasons of placements, as users read them.
const ON_HOST: &str = "cheaper on the host";
const ON_GPU: &str = "cheaper on the GPU";
const MOVED: &str = "cheaper on the GPU, since its operands are used again";

/// The estimated time of a component on a device.
#[derive(Clone, Debug)]
struct Estimate {
    /// Microseconds until its results are where they are wanted.
    us: f64,
    /// The part of `us` for transfers, memory traffic and arithmetic, without launches.
    work_us: f64,
    /// An operand was made on this device, which queues launches: the component need not wait for it.
    started_here: bool,
    /// Operands of the session that are in host memory and not on the device: positions in the cut's inputs, and
    /// microseconds of the uploads.
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
    /// Why it does not run on the device that the program asked for.
    pub elsewhere: Option<&'static str>,
    /// Its component of the cut: nodes that are connected by edges within the cut. `None` for a node whose device the
    /// program chose.
    pub component: Option<u32>,
}

impl Default for Where {
    fn default() -> Where {
        Where { device: DeviceId::HOST, reason: "asked for", elsewhere: None, component: Some(0) }
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
    if room::has_few_long_lines(op, meta) {
        return Err(room::FEW_LONG_LINES);
    }
    let scratch_words = scratch_words(op, args, lengths, meta).ok_or(room::NO_SCRATCH)?;
    let sizes = Sizes { dtypes: args, lengths, meta, scratch_words };
    if let Op::Apply(op) = op
        && let Some(reason) = args.iter().find_map(|&input| refusal(*op, input))
    {
        return Err(reason);
    }
    // These ops bind all pieces of their arrays at once. For other ops, `fusion/fits` splits the kernel if it binds too
    // much.
    if op.binds_all_pieces() && room::bindings(op, sizes, device) > device.bindings_max as u64 {
        return Err(room::NO_BINDINGS);
    }
    if room::fits(op, sizes, device) { Ok(()) } else { Err(room::NO_ROOM) }
}

/// Whether an op needs a kernel of its own, so that its operands and result move through memory.
fn is_library(op: &Op) -> bool {
    matches!(op.facts().class, OpClass::Library | OpClass::Scan)
}

/// The fastest GPU that could be.
pub(super) fn ideal_gpu(host: &DeviceInfo) -> DeviceInfo {
    let features = Features { f64: true, i64: true, ..host.features };
    let capabilities = Capabilities {
        compiles: true,
        shares_host_memory: false,
        owns_host_budget: false,
        runs_all: false,
        needs_scratch: true,
        pads_narrow_types: true,
        is_throughput: true,
        overlaps_long: false,
        queues_launches: true,
    };
    DeviceInfo {
        id: DeviceId::GPU,
        capabilities,
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
                cut.needs_device |= cut.nodes.iter().any(|n| n.place.component.is_some() && n.runs());
            }
            DeviceChoice::Gpu(_) => match self.fleet.beside_fallback() {
                Some(gpu) if self.fleet.is_open(gpu.id) => self.put_all(cut, |_| (gpu.id, "asked for"), true),
                _ => {
                    for node in cut.nodes.iter_mut().filter(|n| n.place.component.is_some()) {
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
        // Nodes come after their arguments, so one pass from the last to the first is enough. If users of a value are
        // pinned to several devices, it goes to the one with the highest number, a GPU.
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
            cut.nodes[position].place.component = None;
            if self.opening.promises(device) {
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
            if let Some(component) = cut.nodes[position].place.component {
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
            // An argument that reads no stored array is computed in the kernel that reads it, so it takes no memory.
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
            for node in cut.nodes.iter_mut().filter(|n| n.place.component.is_some()) {
                node.place.reason = reason;
            }
            return;
        }
        let components = find_components(cut);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); components];
        for (position, node) in cut.nodes.iter().enumerate() {
            if let Some(component) = node.place.component {
                members[component as usize].push(position as u32);
            }
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
                // At equal times, the host is chosen. `could_pay` is called only if the choice depends on it.
                if us < host.us {
                    if self.could_pay(cut, nodes, &host) {
                        choice = (device, if estimate.us < host.us { ON_GPU } else { MOVED });
                    }
                } else if estimate.saved_us(host.us) > 0.0 && self.could_pay(cut, nodes, &host) {
                    add_missed(cut, &estimate, host.us);
                }
            }
            choices.push(choice);
        }
        self.put_all(cut, |component| choices[component as usize], false);
    }

    /// Microseconds that the component's operands have missed so far (PLACE-1), for each at most the time of its
    /// upload.
    fn missed_us(&self, cut: &Cut, estimate: &Estimate) -> f64 {
        let missed = |&(input, us): &(u32, f64)| self.graph[cut.inputs[input as usize].at].missed_us.min(us);
        estimate.uploads.iter().map(missed).sum()
    }

    /// Whether a component could be worth a GPU of any speed. A component that reads a value made on a GPU may always
    /// continue there. The host's launch times do not count: they depend on how busy the machine was during
    /// calibration, not on the work.
    fn could_pay(&self, cut: &Cut, nodes: &[u32], host: &Estimate) -> bool {
        let gpu = self.estimate(cut, nodes, &self.ideal_gpu);
        gpu.started_here || host.work_us > gpu.us
    }

    /// Estimates the time of a component on a device.
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
            let work = Operations::of(live.node.meta.dtype, operations(&live.node.op, &live.node.meta, elements, arg));
            let bytes = live.node.meta.elements() as f64 * info.element_bytes(live.node.meta.dtype) as f64;
            if node.root || is_library(&live.node.op) {
                written_bytes += bytes;
            }
            kernels += if is_library(&live.node.op) { 1.0 } else { 0.0 };
            if info.capabilities.queues_launches && node.root && self.wants_host(live) {
                to_host = true;
                transfer_us += readback_us(live.node.meta.bytes() as f64, info);
            }
            if !info.capabilities.runs_all && self.able(cut, position as usize, info).is_err() {
                // The device cannot run this op: add a transfer to the host and back, and the host's arithmetic.
                transfer_us += 2.0 * (rates.launch_us + readback_us(bytes, info));
                transfer_us += self.fleet.host().costs.arithmetic_us(work);
            } else {
                arithmetic_us += rates.arithmetic_us(work);
            }
        }
        let memory_us = (reading.bytes + written_bytes) / (rates.memory_gb_per_s * 1e3);
        let started_here = reading.started_here;
        // A chain of ops that continues on its device, with no result for the host, needs no round trip.
        let launch_us = if started_here && !to_host { 0.0 } else { rates.launch_us };
        let work_us = transfer_us + reading.transfer_us + memory_us.max(arithmetic_us);
        let us = launch_us + kernels * rates.dispatch_us + work_us;
        Estimate { us, work_us, started_here, uploads: reading.uploads }
    }

    /// Adds what a node reads to `reading`. Returns the largest number of elements that it reads of one argument.
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
                Dep::Node(p) if cut.nodes[p as usize].place.component.is_none() => cut.nodes[p as usize].at,
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

    /// Estimates the cost of getting an operand to a device.
    fn fetch(&self, cut: &Cut, operand: Dep, info: &DeviceInfo) -> Fetch {
        let device = info.id;
        let (live, places, input) = match operand {
            Dep::Input(i) => {
                let live = &self.graph[cut.inputs[i as usize].at];
                // Copies that other sessions made of a shared value must not influence the choice.
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
            return Fetch { us: 0.0, is_made_there: made == device && info.capabilities.queues_launches, upload: None };
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

/// The operands that a component reads from outside.
#[derive(Default)]
struct Reading {
    /// Elements that are read of each operand, added up over the nodes that read it, but at most all of them.
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

/// The cost of getting an operand to a device.
struct Fetch {
    /// Microseconds until it is there.
    us: f64,
    /// The device made the operand, and queues launches.
    is_made_there: bool,
    /// The operand's upload, as in [`Estimate::uploads`], if it belongs to the session and is in host memory.
    upload: Option<(u32, f64)>,
}

/// Divides the time that the GPU would have saved among the operands whose uploads kept the component on the host, in
/// proportion to the upload times (PLACE-1).
fn add_missed(cut: &mut Cut, gpu: &Estimate, host_us: f64) {
    for &(input, us) in &gpu.uploads {
        cut.inputs[input as usize].missed_us += gpu.saved_us(host_us) * us / gpu.uploads_us();
    }
}

/// Microseconds until this many bytes are in host memory.
fn readback_us(bytes: f64, from: &DeviceInfo) -> f64 {
    if from.capabilities.shares_host_memory { 0.0 } else { bytes / (from.costs.readback_gb_per_s * 1e3) }
}

/// Numbers the connected components of a cut's own edges between nodes that are not pinned, in order of their first
/// nodes.
fn find_components(cut: &mut Cut) -> usize {
    let mut sets = petgraph::unionfind::UnionFind::<u32>::new(cut.nodes.len());
    let pinned = |cut: &Cut, position: usize| cut.nodes[position].place.component.is_none();
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
    for (position, node) in cut.nodes.iter_mut().enumerate().filter(|(_, n)| n.place.component.is_some()) {
        let fresh = numbers.len() as u32;
        node.place.component = Some(*numbers.entry(sets.find_mut(position as u32)).or_insert(fresh));
    }
    numbers.len()
}
