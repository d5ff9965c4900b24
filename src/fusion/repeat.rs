//! Reuses the plans of regions that come again.
//!
//! In: a region. Out: its plan, if a region that differs in names and numbers only was planned before. A plan is kept
//! when its region comes for the second time; that of a loop or a block, at the first. From then on, only what differs between two
//! runs of the same statements is replaced: values, source lines, scalars, random keys, the messages of checks. Must
//! hold: FUSE-8: the result equals the plan that the passes would make (debug builds make it, and compare). So the
//! signature holds everything that the passes read, and omits a number only if no pass reads it.

use super::bounded::Bounded;
use super::roll::put_rows;
use crate::contract::plan::{FaultSite, Launch, Number, NumberOf, Plan, PlanBuffer, PlanInput, Program, Role, Step};
use crate::contract::region::{Region, RegionArg, RegionNode};
use crate::error::Error;
use crate::graph::words::Words;
use crate::graph::{DType, Op};
use crate::ids::ValueId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Most plans that are kept, and most hashes of regions that came once.
const REPEATS_MAX: usize = 1024;
/// Words of the longest signature for which a plan is kept: enough for a region with the most nodes.
const SIGNATURE_MAX: usize = 32 * 1024;
/// Words from which on a signature counts as long. Such a signature and its plan take some hundred KB.
const LONG: usize = 2048;
/// Plans of long signatures that are kept.
const LONG_REPEATS_MAX: usize = 48;
/// The fewest words that an input or a node takes.
const WORDS_MIN: usize = 7;

/// A plan without names.
#[derive(Debug)]
struct Repeat {
    signature: Box<[u64]>,
    plan: Plan,
    /// The region's input or node that each buffer stands for.
    roles: Vec<Named>,
    /// The region's node of each output.
    outputs: Vec<u32>,
    /// The region's node of each fault site, and the site's error. A check (`Op::Ensure`) takes its message from the node
    /// of the region that comes again.
    sites: Vec<(u32, Error)>,
}

#[derive(Clone, Copy, Debug)]
enum Named {
    Input(u32),
    Node(u32),
    Nothing,
}

/// Plans and signatures of earlier regions.
#[derive(Debug)]
pub struct Repeats {
    plans: Bounded<Arc<Repeat>>,
    /// Plans of regions with long signatures, such as parts of a loop.
    long_plans: Bounded<Arc<Repeat>>,
    /// Hashes of regions that came once. No plan is kept for them yet.
    seen: Bounded<()>,
    /// The signature of the latest region, and its hash; `None` if it has none.
    signature: Vec<u64>,
    hash: Option<u64>,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats {
            plans: Bounded::new(REPEATS_MAX),
            long_plans: Bounded::new(LONG_REPEATS_MAX),
            seen: Bounded::new(REPEATS_MAX),
            signature: Vec::new(),
            hash: None,
        }
    }
}

impl Repeats {
    /// The plan of a region, if that of a similar one was kept.
    pub fn find(&mut self, region: &Region) -> Option<Plan> {
        self.signature.clear();
        self.hash = sign(region, &mut self.signature).then(|| {
            let mut hasher = FxHasher::default();
            self.signature.hash(&mut hasher);
            hasher.finish()
        });
        let hash = self.hash?;
        let known = self.plans().get(hash)?;
        (*known.signature == *self.signature).then(|| known.of(region))
    }

    /// Keeps the plan of the region for which `find` has just failed, if the region came before.
    pub fn keep(&mut self, region: &Region, plan: &Plan) {
        let Some(hash) = self.hash.take().filter(|_| plan.device == region.device) else { return };
        // The plan of a loop or a block is small, and a program that loops once is likely to do so again.
        if region.turns == 1 && !region.is_block && self.seen.get(hash).is_none() {
            self.seen.insert(hash, ());
            return;
        }
        let repeat = Arc::new(Repeat::new(self.signature.as_slice().into(), region, plan));
        self.plans().insert(hash, repeat);
    }

    /// The cache in which the plan of the newest region belongs, by the length of its signature.
    fn plans(&mut self) -> &mut Bounded<Arc<Repeat>> {
        if self.signature.len() < LONG { &mut self.plans } else { &mut self.long_plans }
    }
}

impl Repeat {
    fn new(signature: Box<[u64]>, region: &Region, plan: &Plan) -> Repeat {
        let nodes: FxHashMap<ValueId, u32> =
            region.nodes.iter().enumerate().map(|(n, node)| (node.value, n as u32)).collect();
        let named = |buffer: &PlanBuffer| match buffer.role {
            Role::Input(value) => region
                .inputs
                .iter()
                .position(|input| input.value == value)
                .map_or(Named::Nothing, |input| Named::Input(input as u32)),
            Role::Output(value) => Named::Node(nodes[&value]),
            Role::Scratch | Role::Faults => Named::Nothing,
        };
        let roles = plan.buffers.iter().map(named).collect();
        let outputs = plan.outputs.iter().map(|(value, ..)| nodes[value]).collect();
        let sites = plan.fault_sites.iter().map(|site| (nodes[&site.value], site.error.clone())).collect();
        let mut plan = plan.clone();
        // The kept plan must not keep data of the region alive.
        (plan.inputs, plan.readbacks, plan.cached) = (Vec::new(), Vec::new(), true);
        plan.fault_sites = Vec::new();
        Repeat { signature, plan, roles, outputs, sites }
    }

    /// The plan for a region of this signature.
    fn of(&self, region: &Region) -> Plan {
        let node = |n: u32| &region.nodes[n as usize];
        let buffers = self.plan.buffers.iter().zip(&self.roles).map(|(buffer, named)| {
            let role = match *named {
                Named::Input(i) => Role::Input(region.inputs[i as usize].value),
                Named::Node(n) => Role::Output(node(n).value),
                Named::Nothing => buffer.role.clone(),
            };
            PlanBuffer { role, ..buffer.clone() }
        });
        let steps = self.plan.steps.iter().map(|step| match step {
            Step::Launch(launch) => Step::Launch(relaunch(launch, region)),
            step => step.clone(),
        });
        let outputs = self.plan.outputs.iter().zip(&self.outputs);
        Plan {
            region: region.id,
            session: region.session,
            weight: region.weight,
            device: region.device,
            inputs: region.inputs.iter().map(PlanInput::from).collect(),
            buffers: buffers.collect(),
            steps: steps.collect(),
            outputs: outputs.map(|((_, meta, buffer), &n)| (node(n).value, meta.clone(), *buffer)).collect(),
            readbacks: region.readbacks.clone(),
            fault_sites: self.sites.iter().map(|(n, error)| site(node(*n), error)).collect(),
            cached: true,
            explained: None,
        }
    }
}

/// The fault site of a region's node, made as `like` was made for the node of a region of the same structure.
fn site(node: &RegionNode, like: &Error) -> FaultSite {
    // The message depends on sizes, which are the same; only a check's message belongs to the node.
    let message = if let Op::Ensure { message, .. } = &node.op { message } else { like.message() };
    let error = Error::new(like.kind(), message).with_op(node.op.name()).with_site(node.at);
    FaultSite { value: node.value, error }
}

/// A launch with the numbers and the source line of a region.
fn relaunch(launch: &Arc<Launch>, region: &Region) -> Arc<Launch> {
    let at = region.nodes[launch.provenance.blame as usize].at;
    let is_there = std::ptr::eq(launch.blame.1.location, at.location) && launch.blame.1.mark == at.mark;
    if launch.provenance.numbers.is_empty() && is_there {
        return launch.clone();
    }
    let mut launch = Launch::clone(launch);
    launch.blame.1 = at;
    match &launch.program {
        Program::Kernel(kernel, _) if kernel.rolled.is_some() => {
            put_rows(kernel, &launch.provenance.numbers, region, &mut launch.params);
        }
        Program::Kernel(..) | Program::Library(_) => {
            for number in &launch.provenance.numbers {
                let node = &region.nodes[number.node as usize];
                put_number(number, node, &mut launch.params[number.word as usize..]);
            }
        }
    }
    Arc::new(launch)
}

/// Puts a number of a node into parameter words.
pub(super) fn put_number(number: &Number, node: &RegionNode, words: &mut [u32]) {
    match number.of {
        NumberOf::Arg(slot) => {
            let RegionArg::Scalar(scalar) = node.args[slot as usize] else {
                unreachable!("FUSE-8: an argument's kind is in the signature")
            };
            words.iter_mut().zip(scalar.words()).for_each(|(word, new)| *word = new);
        }
        NumberOf::Key => {
            let Op::Random { key, .. } = &node.op else { unreachable!("FUSE-8: {} has no key", node.op.name()) };
            words[..5].copy_from_slice(&key.words());
        }
    }
}

/// Whether an op's scalars are parameters that no pass reads.
pub fn is_blind(node: &RegionNode, dtype_of: impl Fn(RegionArg) -> DType) -> bool {
    node.op.facts().scalars.are_parameters(node.args.iter().map(|&arg| dtype_of(arg)))
}

/// Writes everything that planning reads to `words`. Returns false if the region is too large.
fn sign(region: &Region, words: &mut Vec<u64>) -> bool {
    // The turns of a loop are equal (REGION-4). Two of them show how each turn reads the previous one.
    let nodes = &region.nodes[..region.nodes.len() / region.turns as usize * region.turns.min(2) as usize];
    if (region.inputs.len() + nodes.len()) * WORDS_MIN > SIGNATURE_MAX {
        return false;
    }
    let mut to = Words(words);
    (region.device.0, region.inputs.len(), region.nodes.len(), region.turns, region.is_block).hash(&mut to);
    region.nodes[region.nodes.len() - nodes.len()..].iter().for_each(|node| node.output.hash(&mut to));
    for input in &region.inputs {
        (input.meta.dtype, &input.meta.shape).hash(&mut to);
        (input.dies, input.is_source, region.readbacks.contains(&input.value)).hash(&mut to);
    }
    for node in nodes {
        if to.0.len() > SIGNATURE_MAX {
            return false;
        }
        node.op.hash_attributes(&mut to);
        (node.output, node.meta.dtype, &node.meta.shape, node.args.len()).hash(&mut to);
        let is_blind = is_blind(node, |arg| region.dtype_of(arg));
        for arg in &node.args {
            match *arg {
                RegionArg::Node(n) => (0u8, n).hash(&mut to),
                RegionArg::Input(i) => (1u8, i).hash(&mut to),
                RegionArg::Scalar(scalar) if is_blind => (2u8, scalar.dtype()).hash(&mut to),
                RegionArg::Scalar(scalar) => (3u8, scalar.dtype(), scalar.bits()).hash(&mut to),
            }
        }
    }
    true
}
