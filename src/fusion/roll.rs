//! Makes a region that is a loop one kernel with a loop.
//!
//! In: a region of several turns (REGION-4). Out: one turn as a region, which is lowered as any other; then its kernel
//! as a loop, with a row of parameters for each turn. Must hold: FUSE-9: the kernel depends on the body alone: neither
//! on the number of turns nor on the numbers; on the host, its results are those of the turns computed one after the
//! other, bit for bit.

use super::form::RegionGraph;
use super::grouping::Cluster;
use super::lower::Lowered;
use super::repeat::{is_blind, put_number};
use super::source::Source;
use crate::contract::plan::{Number, NumberOf};
use crate::contract::region::{Region, RegionArg, RegionNode};
use crate::kernels::ir::{Carry, HEADER_WORDS, InstOp, Kernel, Level, Rolled, Run, Val};
use smallvec::SmallVec;

/// One turn of a loop, as a region: the last one, which has the outputs. Its first inputs are the values that are
/// carried from the turn before; they are bound to the initial values of the loop.
pub(super) struct Body {
    pub turn: Region,
    /// The nodes that the next turn reads, in the order of those inputs.
    pub carries: Vec<u32>,
}

impl Body {
    /// The body of a region of several turns; `None` if the turns are not alike, or carry nothing.
    pub fn of(region: &Region) -> Option<Body> {
        let turns = region.turns as usize;
        let period = region.nodes.len() / turns;
        let last = region.nodes.len() - period;
        let is_seen_before = region.nodes[..last].iter().any(|node| node.output);
        if period * turns != region.nodes.len() || turns < 2 || is_seen_before {
            return None;
        }
        let mut carried: Vec<(u32, u32)> = Vec::new();
        let mut others: Vec<u32> = Vec::new();
        for (node, first) in region.nodes[last..].iter().zip(&region.nodes) {
            for (arg, init) in node.args.iter().zip(&first.args) {
                match (*arg, *init) {
                    (RegionArg::Node(n), RegionArg::Input(i)) if (n as usize) < last => {
                        carried.push((n + period as u32 - last as u32, i));
                    }
                    (RegionArg::Node(n), _) if (n as usize) < last => return None,
                    (RegionArg::Input(i), _) if !others.contains(&i) => others.push(i),
                    (RegionArg::Node(_) | RegionArg::Input(_) | RegionArg::Scalar(_), _) => {}
                }
            }
        }
        carried.sort_unstable();
        carried.dedup();
        let inputs: Vec<u32> = carried.iter().map(|&(_, init)| init).chain(others).collect();
        let are_apart = (0..inputs.len()).all(|n| !inputs[..n].contains(&inputs[n]));
        if carried.is_empty() || !are_apart {
            return None;
        }
        let carries: Vec<u32> = carried.iter().map(|&(q, _)| q).collect();
        let place = |i: u32| inputs.iter().position(|&input| input == i).map(|place| RegionArg::Input(place as u32));
        let moved = |arg: &RegionArg| match *arg {
            RegionArg::Node(n) if (n as usize) < last => {
                let q = n + period as u32 - last as u32;
                carries.binary_search(&q).ok().map(|place| RegionArg::Input(place as u32))
            }
            RegionArg::Node(n) => Some(RegionArg::Node(n - last as u32)),
            RegionArg::Input(i) => place(i),
            RegionArg::Scalar(_) => Some(*arg),
        };
        let node = |node: &RegionNode| {
            let args = node.args.iter().map(moved).collect::<Option<SmallVec<_>>>()?;
            Some(RegionNode { args, op: node.op.clone(), meta: node.meta.clone(), ..*node })
        };
        let nodes = region.nodes[last..].iter().map(node).collect::<Option<Vec<_>>>()?;
        let inputs = inputs.iter().map(|&i| region.inputs[i as usize].clone()).collect();
        let (readbacks, placement) = (region.readbacks.clone(), region.placement.clone());
        Some(Body { turn: Region { nodes, inputs, readbacks, placement, ..*region }, carries })
    }
}

/// Makes the kernel of a turn a loop over all turns of `region`, with their parameters; false where it cannot be one.
pub(super) fn roll(region: &Region, work: &RegionGraph<'_>, cluster: &Cluster, lowered: &mut Lowered) -> bool {
    let kernel = &lowered.kernel;
    let carries: Option<Vec<Carry>> = (0..cluster.roots.len()).map(|n| carry(lowered, n)).collect();
    let Some(carries) = carries.filter(|_| !kernel.faults && kernel.across().is_none()) else { return false };
    let rows = Rows::of(work, lowered);
    let turns = HEADER_WORDS;
    let first = rows.fixed.len() as u32 + turns + 1;
    let mut params = vec![0; HEADER_WORDS as usize];
    params.push(region.turns);
    params.extend(rows.fixed.iter().map(|&word| lowered.params[word as usize]));
    params.resize(params.len() + rows.row.len() * region.turns as usize, 0);
    let mut slots = vec![0; lowered.params.len()];
    rows.fixed.iter().zip(turns + 1..).for_each(|(&word, slot)| slots[word as usize] = slot);
    rows.row.iter().zip(first..).for_each(|(&word, slot)| slots[word as usize] = slot);
    let kernel = &mut lowered.kernel;
    move_slots(kernel, &slots);
    kernel.params = first + rows.row.len() as u32;
    kernel.rolled = Some(Rolled { turns, rows: first, carries });
    lowered.numbers.iter_mut().for_each(|(word, ..)| *word = slots[*word as usize]);
    let numbers: Vec<Number> =
        rows.numbers.iter().map(|number| Number { word: slots[number.word as usize], ..*number }).collect();
    put_rows(kernel, &numbers, region, &mut params);
    lowered.params = params;
    true
}

/// Writes the numbers of each turn into its row of parameters.
pub(super) fn put_rows(kernel: &Kernel, numbers: &[Number], region: &Region, params: &mut [u32]) {
    let (turns, row_words) = (kernel.turns(params) as usize, kernel.row_words() as usize);
    let period = region.nodes.len() / turns;
    for turn in 0..turns {
        for number in numbers {
            let node = &region.nodes[number.node as usize + turn * period];
            put_number(number, node, &mut params[number.word as usize + turn * row_words..]);
        }
    }
}

/// The load of a carried value, and the value that replaces it in the next turn.
fn carry(lowered: &Lowered, number: usize) -> Option<Carry> {
    let input = Source::Input(number as u32);
    let taken = lowered.in_place.iter().find(|(_, from)| *from == input).map(|&(root, _)| Source::Node(root));
    let is_it = |operand: u16| lowered.sources[operand as usize] == taken.unwrap_or(input);
    let is_load =
        |op: &InstOp| matches!(*op, InstOp::Load { operand, run: Run::Flat, guard: None, .. } if is_it(operand));
    let any_load = |op: &InstOp| matches!(*op, InstOp::Load { operand, .. } if is_it(operand));
    let insts = &lowered.kernel.insts;
    let here = insts.iter().position(|inst| is_load(&inst.op))?;
    let is_only = insts.iter().filter(|inst| any_load(&inst.op)).count() == 1;
    let next = *lowered.roots.get(number)?;
    let varies = lowered.kernel.inst(next).level == Level::Element;
    (is_only && varies).then_some(Carry { here: Val(here as u32), next })
}

/// Divides the parameter words of a turn's kernel into those that differ between turns and those that do not.
struct Rows {
    /// Words that are the same in each turn, without the header's.
    fixed: Vec<u32>,
    /// Words that differ between turns.
    row: Vec<u32>,
    /// The numbers in these words.
    numbers: Vec<Number>,
}

impl Rows {
    fn of(work: &RegionGraph<'_>, lowered: &Lowered) -> Rows {
        let mut is_of_turn = vec![false; lowered.params.len()];
        let mut numbers = Vec::new();
        for &(word, n, of) in &lowered.numbers {
            let node = &work.region.nodes[n as usize];
            if !is_blind(node, |arg| work.region.dtype_of(arg)) {
                continue;
            }
            let words = match of {
                NumberOf::Key => 5,
                NumberOf::Arg(slot) => match node.args[slot as usize] {
                    RegionArg::Scalar(scalar) => scalar.words().count(),
                    RegionArg::Node(_) | RegionArg::Input(_) => continue,
                },
            };
            (0..words).for_each(|offset| is_of_turn[word as usize + offset] = true);
            numbers.push(Number { word, node: n, of });
        }
        let (row, fixed) = (HEADER_WORDS..lowered.params.len() as u32).partition(|&word| is_of_turn[word as usize]);
        Rows { fixed, row, numbers }
    }
}

/// Renumbers parameter words.
fn move_slots(kernel: &mut Kernel, slots: &[u32]) {
    for inst in &mut kernel.insts {
        match &mut inst.op {
            InstOp::Param(slot) | InstOp::Random { key: slot, .. } => *slot = slots[*slot as usize],
            InstOp::Check { site, .. } | InstOp::Require { site, .. } => *site = slots[*site as usize],
            InstOp::Flat | InstOp::Outer | InstOp::Inner | InstOp::Index(..) | InstOp::Compare(..) => {}
            InstOp::Load { .. } | InstOp::Apply(..) => {}
            InstOp::Reduce { .. } | InstOp::Project(..) | InstOp::Scan { .. } => {}
        }
    }
}
