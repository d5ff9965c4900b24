//! Finds partial overwrites of arrays that can be done in place, and the nodes that have to be written to memory for
//! that.
//!
//! In: working nodes. Out: on the nodes, whether a patch takes over its base's memory (`WorkNode::takes_over`), and
//! which nodes are written to memory before that (`WorkNode::apart`), such as a row that is to be swapped, or a slice
//! that is shifted onto itself. So an assignment to a slice costs as much as the slice, not as the array. Must hold:
//! FUSE-7, as far as the order of the nodes and their slices determine it; `assemble` decides whether the base really
//! dies there.

use super::anchors::anchored;
use super::form::{Class, RegionGraph, unreshaped};
use super::source::{Source, source_of};
use crate::contract::region::RegionArg;
use crate::graph::{Op, Reads, Shape, SliceDim, View};
use rustc_hash::{FxHashMap, FxHashSet};

/// Sets `takes_over` and `apart` on the nodes.
pub fn patches(work: &mut RegionGraph<'_>) {
    let patches: Vec<u32> = (0..work.nodes.len() as u32).filter(|&n| base_of(work, n).is_some()).collect();
    if patches.is_empty() {
        return;
    }
    let readers = readers(work, &patches);
    let mut written = anchored(work);
    for p in patches {
        let Some(base) = base_of(work, p) else { continue };
        let readers = &readers[&base];
        if readers.last() != Some(&p) || !may_end(work, base) {
            continue;
        }
        let Some(apart) = apart(work, &written, readers, (p, base)) else { continue };
        let elements: usize = apart.iter().map(|&n| work.nodes[n as usize].meta.elements()).sum();
        // If more elements than the array has would be written apart, copying the array is cheaper.
        if elements > work.arg_shape(work.nodes[p as usize].args[0]).elements() {
            continue;
        }
        work.nodes[p as usize].takes_over = true;
        for n in apart {
            work.nodes[n as usize].apart = true;
            written[n as usize] = true;
        }
    }
}

/// The array that a node overwrites in part.
pub fn base_of(work: &RegionGraph<'_>, n: u32) -> Option<Source> {
    let node = &work.nodes[n as usize];
    let is_buffer = matches!(node.class, Class::Patch | Class::Library);
    (is_buffer && node.op.facts().overwrites()).then(|| source_of(node.args[0]))
}

/// For each base, the nodes that read it, ascending.
fn readers(work: &RegionGraph<'_>, patches: &[u32]) -> FxHashMap<Source, Vec<u32>> {
    let mut readers: FxHashMap<Source, Vec<u32>> =
        patches.iter().filter_map(|&p| Some((base_of(work, p)?, Vec::new()))).collect();
    for (n, node) in work.nodes.iter().enumerate() {
        for &arg in &node.args {
            if !matches!(arg, RegionArg::Scalar(_))
                && let Some(list) = readers.get_mut(&source_of(arg))
            {
                list.push(n as u32);
            }
        }
    }
    readers
}

/// Whether a buffer may end in the region: it is not an output, and not an input that stays alive.
fn may_end(work: &RegionGraph<'_>, source: Source) -> bool {
    match source {
        Source::Node(n) => work.nodes[n as usize].output.is_none(),
        Source::Input(i) => {
            let input = &work.region.inputs[i as usize];
            input.dies && !work.region.readbacks.contains(&input.value)
        }
        Source::Scratch(_) | Source::Pack(_) => false,
    }
}

/// The nodes that have to be written to memory before `p` overwrites its base: those that read the base and are needed
/// later, or that `p` itself needs at other elements. `None` if the base itself is needed.
fn apart(work: &RegionGraph<'_>, written: &[bool], readers: &[u32], (p, base): (u32, Source)) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack: Vec<u32> = readers.to_vec();
    while let Some(n) = stack.pop() {
        if n >= p || written[n as usize] || !seen.insert(n) {
            continue;
        }
        let consumers = &work.nodes[n as usize].consumers;
        match consumers.iter().any(|&c| c > p) {
            true => found.push(n),
            false => stack.extend(consumers),
        }
    }
    let node = &work.nodes[p as usize];
    if let (Op::AssignSlice(dims), RegionArg::Node(_) | RegionArg::Input(_)) = (&node.op, node.args[1]) {
        let lens: Vec<usize> = dims.iter().map(|d| d.len).collect();
        let space = Shape::new(&lens).expect("SHAPE-2: a slice is no larger than its array");
        let is_written = |n: u32| written[n as usize] || found.contains(&n);
        let reading = Reading { work, is_written: &is_written, base, shape: &node.meta.shape, dims, space };
        if !reading.keeps(node.args[1], true, &mut FxHashMap::default()) {
            match node.args[1] {
                RegionArg::Node(value) if !is_written(value) => found.push(value),
                _ => return None,
            }
        }
    }
    Some(found)
}

/// Analyses what the kernel of a slice assignment reads.
struct Reading<'a, 'r> {
    work: &'a RegionGraph<'r>,
    is_written: &'a dyn Fn(u32) -> bool,
    base: Source,
    /// The base's dimensions, and the slice that is overwritten.
    shape: &'a Shape,
    dims: &'a [SliceDim],
    space: Shape,
}

impl Reading<'_, '_> {
    /// Whether the elements of the base that an argument reads are not overwritten by the store of another element.
    /// `own`: the argument is read at the space's own elements.
    fn keeps(&self, arg: RegionArg, own: bool, known: &mut FxHashMap<(u32, bool), bool>) -> bool {
        let n = match arg {
            RegionArg::Scalar(_) => return true,
            RegionArg::Node(n) if !(self.is_written)(n) => n,
            _ => return source_of(arg) != self.base,
        };
        if let Some(&known) = known.get(&(n, own)) {
            return known;
        }
        let node = &self.work.nodes[n as usize];
        let own = own && self.work.arg_shape(arg) == self.space;
        let keeps = if let Op::View(View::Slice(of)) = &node.op
            && self.is_base(node.args[0])
        {
            share_nothing(of, self.dims) || (own && of[..] == *self.dims)
        } else {
            // Each operand is read at the same element, or anywhere.
            let facts = node.op.facts();
            node.args.iter().enumerate().all(|(slot, &operand)| {
                let in_step = facts.reads(slot) == Reads::Expanded && self.work.arg_shape(operand) == self.space;
                self.keeps(operand, own && in_step, known)
            })
        };
        known.insert((n, own), keeps);
        keeps
    }

    /// Whether an argument is the base, under the dimensions in which it is overwritten.
    fn is_base(&self, arg: RegionArg) -> bool {
        let beneath = unreshaped(&self.work.nodes, arg, self.is_written);
        source_of(beneath) == self.base && self.work.arg_shape(arg) == *self.shape
    }
}

/// Whether two slices of an array are disjoint, by their bounds and steps.
fn share_nothing(a: &[SliceDim], b: &[SliceDim]) -> bool {
    let bounds = |dim: &SliceDim| {
        let first = dim.start as i128;
        let last = first + dim.step as i128 * (dim.len as i128 - 1);
        (first.min(last), first.max(last))
    };
    let step = |dim: &SliceDim| if dim.len == 1 { 0 } else { dim.step.unsigned_abs() };
    a.iter().zip(b).any(|(a, b)| {
        let ((a_low, a_high), (b_low, b_high)) = (bounds(a), bounds(b));
        let common = common_divisor(step(a), step(b));
        a_high < b_low || b_high < a_low || (common > 1 && !a.start.abs_diff(b.start).is_multiple_of(common))
    })
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slices() -> impl Strategy<Value = SliceDim> {
        (0usize..12, -4isize..5, 1usize..6)
            .prop_filter("it lies in the array", |&(start, step, len)| {
                step != 0 && start as isize + step * (len as isize - 1) >= 0
            })
            .prop_map(|(start, step, len)| SliceDim { start, step, len })
    }

    proptest! {
        #[test]
        fn slices_that_are_told_apart_share_no_element(a in slices(), b in slices()) {
            let places = |s: SliceDim| -> Vec<isize> { (0..s.len as isize).map(|k| s.start as isize + k * s.step).collect() };
            let shared = places(a).iter().any(|place| places(b).contains(place));
            prop_assert!(!(share_nothing(&[a], &[b]) && shared));
        }
    }

    #[test]
    fn odd_and_even_places_are_told_apart_and_so_are_halves() {
        let s = |start, step, len| SliceDim { start, step, len };
        assert!(share_nothing(&[s(0, 2, 5)], &[s(1, 2, 5)]));
        assert!(share_nothing(&[s(0, 4, 5)], &[s(21, -6, 3)]));
        assert!(share_nothing(&[s(0, 3, 5)], &[s(4, 1, 1)]));
        assert!(share_nothing(&[s(0, 1, 5)], &[s(5, 1, 5)]));
        assert!(!share_nothing(&[s(0, 2, 5)], &[s(3, 3, 3)]));
    }
}
