//! Lowers ops that move or select elements (views, joins, triangles) and ranges, as arithmetic on indices.
//!
//! In: a node and the position of the wanted element. Out: its value. Must hold: memory is read only if its guard
//! holds.

use super::Lowering;
use crate::contract::region::RegionArg;
use crate::fusion::builder::Origin;
use crate::fusion::grouping::Fold;
use crate::fusion::index::{At, Coordinate, coordinates, linear};
use crate::graph::rules::linspace_step;
use crate::graph::{ElementOp, Scalar, Shape, SliceDim, View};
use crate::kernels::ir::{IndexCompare, IndexOp, InstOp, Val};
use smallvec::{SmallVec, smallvec};

impl Lowering<'_, '_> {
    pub(super) fn iota(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let element = linear(&mut self.builder, &self.space, at, &shape, Some(n));
        let element = self.builder.cast(element, dtype);
        let (first, step) = (self.arg(n, 0, at, guard), self.arg(n, 1, at, guard));
        let distance = self.builder.apply(ElementOp::Mul, &[element, step], dtype);
        self.builder.apply(ElementOp::Add, &[first, distance], dtype)
    }

    pub(super) fn linspace(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let points = shape.elements();
        let element = linear(&mut self.builder, &self.space, at, &shape, Some(n));
        let (first, last) = (self.arg(n, 0, at, guard), self.arg(n, 1, at, guard));
        let number = |arg: RegionArg| match arg {
            RegionArg::Scalar(s) => s.as_f64(),
            _ => unreachable!("FUSE-5: linspace takes numbers"),
        };
        let (from, to) = (number(node.args[0]), number(node.args[1]));
        let step = linspace_step(from, to, points);
        let step = self.builder.scalar(Origin::Attribute(n, 0), Scalar::F64(step).cast(dtype));
        let end = self.builder.number(Origin::Attribute(n, 1), points as u32 - 1);
        let at_end = self.builder.compare(IndexCompare::Equal, element, end);
        let index = self.builder.cast(element, dtype);
        let distance = self.builder.apply(ElementOp::Mul, &[index, step], dtype);
        let inner = self.builder.apply(ElementOp::Add, &[first, distance], dtype);
        // 0 times an infinite step would be NaN.
        let zero = self.builder.zero();
        let at_begin = self.builder.compare(IndexCompare::Equal, element, zero);
        let inner = self.builder.apply(ElementOp::Select, &[at_begin, first, inner], dtype);
        self.builder.apply(ElementOp::Select, &[at_end, last, inner], dtype)
    }

    pub(super) fn view(&mut self, n: u32, view: &View, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let shape = &node.meta.shape;
        let from = work.arg_shape(node.args[0]);
        if matches!(view, View::Reshape) {
            let place = match at {
                At::Flat | At::Linear(_) => at.clone(),
                At::Outer | At::Coordinates(_) => {
                    At::Linear(linear(&mut self.builder, &self.space, at, shape, Some(n)))
                }
            };
            return self.arg(n, 0, &place, guard);
        }
        if matches!(view, View::Broadcast) {
            let place = self.broadcast(at, shape, &from, Some(n));
            return self.arg(n, 0, &place, guard);
        }
        let list = coordinates(&mut self.builder, &self.space, at, shape, Some(n));
        let get = |d: usize| list.get(d).copied().unwrap_or(Coordinate::Zero);
        let mut place: SmallVec<[Coordinate; 4]> = smallvec![Coordinate::Zero; from.rank()];
        match view {
            View::Permute(perm) => {
                for (d, &p) in perm.iter().enumerate() {
                    if (p as usize) < place.len() {
                        place[p as usize] = get(d);
                    }
                }
            }
            View::Slice(dims) => {
                for d in 0..from.rank() {
                    place[d] = self.sliced(n, d, dims.get(d).copied(), from.dim(d), get(d));
                }
                if self.is_own_element(&place, &from) {
                    return self.at_own_element(n, guard);
                }
            }
            View::Repmat => {
                for d in 0..from.rank() {
                    place[d] = if from.dim(d) == shape.dim(d) {
                        get(d)
                    } else {
                        let extent = self.builder.number(Origin::Attribute(n, d as u8), from.dim(d) as u32);
                        let own = self.coordinate(get(d));
                        Coordinate::Val(self.builder.index(IndexOp::Rem, own, extent))
                    };
                }
            }
            View::CircShift(shifts) => {
                for d in 0..from.rank() {
                    place[d] = match shifts.get(d) {
                        Some(&shift) if from.dim(d) > 1 => {
                            let back = (from.dim(d) - shift) % from.dim(d);
                            let back = self.builder.number(Origin::Attribute(n, 2 * d as u8), back as u32);
                            let extent = self.builder.number(Origin::Attribute(n, 2 * d as u8 + 1), from.dim(d) as u32);
                            let own = self.coordinate(get(d));
                            let moved = self.builder.index(IndexOp::Add, own, back);
                            Coordinate::Val(self.builder.index(IndexOp::Wrap, moved, extent))
                        }
                        _ => get(d),
                    };
                }
            }
            View::Diagonal(k) => {
                let own = self.coordinate(get(0));
                for (d, offset) in [(0, (-k).max(0)), (1, (*k).max(0))] {
                    let offset = self.builder.number(Origin::Attribute(n, d), offset as u32);
                    place[d as usize] = Coordinate::Val(self.builder.index(IndexOp::Add, own, offset));
                }
            }
            View::Reshape | View::Broadcast => unreachable!("FUSE-5: handled above"),
        }
        self.arg(n, 0, &At::Coordinates(place), guard)
    }

    pub(super) fn sliced(
        &mut self,
        n: u32,
        d: usize,
        dim: Option<SliceDim>,
        extent: usize,
        own: Coordinate,
    ) -> Coordinate {
        let Some(dim) = dim else { return own };
        if dim.start == 0 && dim.step == 1 && dim.len == extent {
            return own;
        }
        if dim.step == 1
            && let Some(back) = self.put_back(d, dim.start as u32, own)
        {
            return back;
        }
        let start = self.builder.number(Origin::Attribute(n, 2 * d as u8), dim.start as u32);
        if dim.len == 1 {
            return Coordinate::Val(start);
        }
        let own = self.coordinate(own);
        if dim.step == 1 {
            return Coordinate::Val(self.builder.index(IndexOp::Add, start, own));
        }
        let step = self.builder.number(Origin::Attribute(n, 2 * d as u8 + 1), dim.step as i64 as u32);
        let distance = self.builder.index(IndexOp::Mul, own, step);
        Coordinate::Val(self.builder.index(IndexOp::Add, start, distance))
    }

    /// Simplifies `start + (x - start)` to `x`. So an update of a slice that reads the same slice (`a(s) = a(s) + 1`)
    /// is seen to read each element at the place where it is written.
    fn put_back(&mut self, d: usize, start: u32, own: Coordinate) -> Option<Coordinate> {
        let Coordinate::Val(own) = own else { return None };
        let InstOp::Index(IndexOp::Sub, x, first) = self.builder.insts[own.0 as usize].op else { return None };
        match self.builder.insts[first.0 as usize].op {
            InstOp::Param(slot) if self.builder.params[slot as usize] == start => {}
            _ => return None,
        }
        let is_own = d < self.space.shape.rank()
            && self.space.shape.dim(d) != 1
            && self.space.coordinate(&mut self.builder, d) == x;
        Some(if is_own { Coordinate::Space(d as u8) } else { Coordinate::Val(x) })
    }

    /// Whether an element of an array of the space's shape is the one at the flat index.
    fn is_own_element(&self, place: &[Coordinate], shape: &Shape) -> bool {
        let is_own = |d: usize| shape.dim(d) == 1 || place[d] == Coordinate::Space(d as u8);
        self.space.fold == Fold::None && *shape == self.space.shape && (0..shape.rank()).all(is_own)
    }

    /// The first argument of a node at the flat index, where every lane may load and no guard is needed.
    fn at_own_element(&mut self, n: u32, guard: Option<Val>) -> Val {
        let guard = match self.work.nodes[n as usize].args[0] {
            RegionArg::Node(m) if self.is_inside(m) && !self.memo.contains_key(&(m, At::Flat, None)) => guard,
            _ => None,
        };
        self.arg(n, 0, &At::Flat, guard)
    }

    pub(super) fn cat(&mut self, n: u32, dim: usize, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let dtype = node.meta.dtype;
        let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
        let own = list.get(dim).copied().unwrap_or(Coordinate::Zero);
        let own = self.coordinate(own);
        let mut result: Option<Val> = None;
        let mut begins = Vec::with_capacity(node.args.len());
        let mut begin = 0;
        for &arg in &node.args {
            begins.push(begin);
            begin += work.arg_shape(arg).dim(dim);
        }
        for (slot, &arg) in node.args.iter().enumerate().rev() {
            let extent = work.arg_shape(arg).dim(dim);
            if work.arg_shape(arg).elements() == 0 {
                continue;
            }
            let begin = self.builder.number(Origin::Attribute(n, 2 * slot as u8), begins[slot] as u32);
            let extent = self.builder.number(Origin::Attribute(n, 2 * slot as u8 + 1), extent as u32);
            let inside = self.builder.index(IndexOp::Sub, own, begin);
            let here = self.builder.compare(IndexCompare::Less, inside, extent);
            let mut place = list.clone();
            place.resize(place.len().max(dim + 1), Coordinate::Zero);
            place[dim] = Coordinate::Val(inside);
            let both = self.builder.both(guard, Some(here));
            let value = self.arg(n, slot, &At::Coordinates(place), both);
            result = Some(match result {
                None => value,
                Some(rest) => self.builder.apply(ElementOp::Select, &[here, value, rest], dtype),
            });
        }
        result.expect("FUSE-5: a cat with elements has an argument with elements")
    }

    pub(super) fn triangle(&mut self, n: u32, upper: bool, diagonal: i64, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let list = coordinates(&mut self.builder, &self.space, at, &shape, Some(n));
        let (row, column) = (self.coordinate(list[0]), self.coordinate(list[1]));
        // A diagonal outside of the matrix keeps or drops all elements. Clamping it does not change that, and keeps the
        // arithmetic in range.
        let k = diagonal.clamp(-(shape.dim(0) as i64), shape.dim(1) as i64);
        let k = self.builder.number(Origin::Attribute(n, 0), k as i32 as u32);
        let limit = self.builder.index(IndexOp::Add, row, k);
        let keep = if upper {
            self.builder.compare(IndexCompare::SignedLessEqual, limit, column)
        } else {
            self.builder.compare(IndexCompare::SignedLessEqual, column, limit)
        };
        let value = self.arg(n, 0, at, guard);
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        self.builder.apply(ElementOp::Select, &[keep, value, zero], dtype)
    }

    pub(super) fn make_diagonal(&mut self, n: u32, k: i64, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let list = coordinates(&mut self.builder, &self.space, at, &shape, Some(n));
        let (row, column) = (self.coordinate(list[0]), self.coordinate(list[1]));
        let offset = self.builder.number(Origin::Attribute(n, 0), k as i32 as u32);
        let own = self.builder.index(IndexOp::Add, row, offset);
        let on = self.builder.compare(IndexCompare::Equal, own, column);
        let element = if k >= 0 { row } else { column };
        let both = self.builder.both(guard, Some(on));
        let value = self.arg(n, 0, &At::Linear(element), both);
        let zero = self.builder.constant(Scalar::I32(0).cast(dtype));
        self.builder.apply(ElementOp::Select, &[on, value, zero], dtype)
    }
}
