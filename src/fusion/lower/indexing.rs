//! Lowers indexing by arrays, and assignments to slices.
//!
//! In: a node and the position of the wanted element. Out: its value, or the stores of a kernel of its own. Must hold:
//! an index from data is clamped before it is used, and sets the node's fault word if it was out of range.

use super::Lowering;
use crate::fusion::builder::Origin;
use crate::fusion::index::{At, Coordinate, coordinates, linear};
use crate::fusion::source::Source;
use crate::graph::{DType, ElementOp, Op, Scalar, SliceDim};
use crate::kernels::ir::{Access, IndexCompare, IndexOp, InstOp, Store, Val};
use smallvec::SmallVec;

impl Lowering<'_, '_> {
    /// The parameter slot of a node's fault word.
    pub(super) fn fault_site(&mut self, n: u32) -> u32 {
        let words = &mut *self.fault_words;
        let faulting = &mut self.faulting;
        self.builder.fault_slot(n, || {
            faulting.push(n);
            words(n)
        })
    }

    /// Clamps an index from data to its extent, and sets the node's fault word if it was out of range.
    pub(super) fn check(&mut self, n: u32, index: Val, extent: usize, guard: Option<Val>) -> Val {
        let site = self.fault_site(n);
        let extent = self.builder.number(Origin::Attribute(n, 254), extent as u32);
        self.builder.inst(InstOp::Check { index, extent, site, guard }, DType::U32)
    }

    pub(super) fn take(&mut self, n: u32, dim: Option<u8>, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let from = work.arg_shape(node.args[0]);
        match dim {
            None => {
                let index = self.arg(n, 1, at, guard);
                let element = self.check(n, index, from.elements(), guard);
                self.arg(n, 0, &At::Linear(element), guard)
            }
            Some(dim) => {
                let dim = dim as usize;
                let mut list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
                list.resize(list.len().max(dim + 1), Coordinate::Zero);
                let own = self.coordinate(list[dim]);
                let index = self.arg(n, 1, &At::Linear(own), guard);
                list[dim] = Coordinate::Val(self.check(n, index, from.dim(dim), guard));
                self.arg(n, 0, &At::Coordinates(list), guard)
            }
        }
    }

    pub(super) fn assign_slice(&mut self, n: u32, dims: &[SliceDim], at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let base = self.arg(n, 0, at, guard);
        if dims.iter().any(|d| d.len == 0) {
            return base;
        }
        let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
        let theirs = work.arg_shape(node.args[1]);
        let mut inside: Option<Val> = None;
        let mut place: SmallVec<[Coordinate; 4]> = SmallVec::new();
        for (d, dim) in dims.iter().enumerate() {
            let own = list.get(d).copied().unwrap_or(Coordinate::Zero);
            let (there, here) = self.unsliced(n, d, *dim, node.meta.shape.dim(d), own);
            inside = self.builder.both(inside, here);
            // Where the slice has one element, `there` is zero, too; it is kept because `put_back` recognises its form.
            place.push(if theirs.dim(d) == 1 && dim.len > 1 { Coordinate::Zero } else { there });
        }
        let both = self.builder.both(guard, inside);
        let value = self.arg(n, 1, &At::Coordinates(place), both);
        match inside {
            None => value,
            Some(inside) => self.builder.apply(ElementOp::Select, &[inside, value, base], node.meta.dtype),
        }
    }

    /// The coordinate in a slice that corresponds to a coordinate of the base, and whether the slice contains it.
    fn unsliced(
        &mut self,
        n: u32,
        d: usize,
        dim: SliceDim,
        extent: usize,
        own: Coordinate,
    ) -> (Coordinate, Option<Val>) {
        if dim.start == 0 && dim.step == 1 && dim.len == extent {
            return (own, None);
        }
        let own = self.coordinate(own);
        let first = if dim.step < 0 { dim.start - (dim.len - 1) * dim.step.unsigned_abs() } else { dim.start };
        let first = self.builder.number(Origin::Attribute(n, 3 * d as u8), first as u32);
        let len = self.builder.number(Origin::Attribute(n, 3 * d as u8 + 1), dim.len as u32);
        let distance = self.builder.index(IndexOp::Sub, own, first);
        if dim.step == 1 {
            let here = self.builder.compare(IndexCompare::Less, distance, len);
            return (Coordinate::Val(distance), Some(here));
        }
        let step = self.builder.number(Origin::Attribute(n, 3 * d as u8 + 2), dim.step.unsigned_abs() as u32);
        let steps = self.builder.index(IndexOp::Div, distance, step);
        let rest = self.builder.index(IndexOp::Rem, distance, step);
        let zero = self.builder.zero();
        let on = self.builder.compare(IndexCompare::Equal, rest, zero);
        let within = self.builder.compare(IndexCompare::Less, steps, len);
        let here = self.builder.both(Some(on), Some(within));
        let there = if dim.step < 0 {
            let one = self.builder.constant(Scalar::U32(1));
            let last = self.builder.index(IndexOp::Sub, len, one);
            self.builder.index(IndexOp::Sub, last, steps)
        } else {
            steps
        };
        (Coordinate::Val(there), here)
    }

    /// A kernel over the slice, storing into the base's memory.
    pub(super) fn patch(&mut self, n: u32) {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let Op::AssignSlice(dims) = &node.op else { unreachable!("FUSE-5: only slices are patched") };
        let space = self.space.shape.clone();
        let theirs = work.arg_shape(node.args[1]);
        let place = if theirs == space { At::Flat } else { self.broadcast(&At::Flat, &space, &theirs, None) };
        let value = self.arg(n, 1, &place, None);
        let mut list: SmallVec<[Coordinate; 4]> = SmallVec::new();
        for (d, dim) in dims.iter().enumerate() {
            let own = if space.dim(d) == 1 { Coordinate::Zero } else { Coordinate::Space(d as u8) };
            list.push(self.sliced(n, d, Some(*dim), node.meta.shape.dim(d), own));
        }
        let shape = node.meta.shape.clone();
        let index = linear(&mut self.builder, &self.space, &At::Coordinates(list), &shape, Some(n));
        let operand = self.operand(Source::Node(n), &node.meta.clone());
        // Elements that are not overwritten keep their contents.
        self.operands[operand as usize].access = Access::ReadWrite;
        self.flat_only[operand as usize] = false;
        self.elements_written[operand as usize] = space.elements() as u64;
        self.stores.push(Store { operand, index: Some(index), value, guard: None });
    }

    /// A kernel over the mask, storing each true element's index at its rank.
    pub(super) fn compact(&mut self, n: u32) {
        let mask = self.arg(n, 0, &At::Flat, None);
        let count = self.arg(n, 1, &At::Flat, None);
        let one = self.builder.constant(Scalar::U32(1));
        let rank = self.builder.index(IndexOp::Sub, count, one);
        let shape = self.space.shape.clone();
        let own = linear(&mut self.builder, &self.space, &At::Flat, &shape, None);
        let meta = self.work.nodes[n as usize].meta.clone();
        let operand = self.operand(Source::Node(n), &meta);
        self.operands[operand as usize].access = Access::Write;
        self.flat_only[operand as usize] = false;
        self.elements_written[operand as usize] = meta.elements() as u64;
        self.stores.push(Store { operand, index: Some(rank), value: own, guard: Some(mask) });
    }
}
