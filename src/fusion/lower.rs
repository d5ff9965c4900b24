//! Pass 4: a cluster as a kernel.
//!
//! In: a cluster. Out: [`Lowered`]: the kernel, its parameters, which buffer each operand is.
//! Every inline node is written as a function of the element that is asked for ([`At`]), so that views are
//! index arithmetic, and a node that is asked for at two places is computed twice. Values are shared by
//! (node, place, guard).
//! Must hold: a guarded subtree reads memory only where its guard holds; recursion is bounded by the ops of
//! one kernel.

use super::builder::{Builder, Origin};
use super::cluster::{Cluster, Fold, Phase};
use super::cut::OPS_MERGED_MAX;
use super::form::{Class, Work};
use super::index::{At, Coordinate, Space, coordinates, linear, value_of};
use crate::device::info::{DeviceInfo, DeviceKind};
use crate::graph::{DType, Dist, ElementOp, Meta, Op, Scalar, Shape, SliceDim, View};
use crate::kernels::ir::{
    Access, Form, Geometry, IndexCompare, IndexOp, InstOp, Kernel, Level, Operand, Run, Store, Val, reduce_plan,
};
use crate::scheduler::region::RegionArg;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// A buffer that a kernel uses: a written node (by its working index) or an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A written working node.
    Node(u32),
    /// An input of the region.
    Input(u32),
    /// Partial results of this kernel: so many 32-bit words.
    Scratch(u64),
}

/// A kernel and what it is bound to.
#[derive(Debug)]
pub struct Lowered {
    /// The kernel.
    pub kernel: Kernel,
    /// Its parameter words.
    pub params: Vec<u32>,
    /// Its sizes.
    pub geometry: Geometry,
    /// The buffer of each operand.
    pub sources: Vec<Source>,
    /// Written nodes that take over the memory of a dying buffer: (node, buffer).
    pub in_place: Vec<(u32, Source)>,
    /// Working nodes with a fault word that this kernel may set, in order of their first use.
    pub faulting: Vec<u32>,
    /// Elements each operand is read at, at most.
    pub elements_read: Vec<u64>,
    /// Elements each operand is written at, at most.
    pub elements_written: Vec<u64>,
}

/// Lowers one cluster.
pub(super) struct Lowering<'a, 'r> {
    pub(super) work: &'a Work<'r>,
    pub(super) written: &'a [bool],
    pub(super) cluster: &'a Cluster,
    pub(super) space: Space,
    pub(super) builder: Builder,
    pub(super) operands: Vec<Operand>,
    pub(super) sources: Vec<Source>,
    /// Whether all accesses of an operand so far are at the flat index.
    pub(super) flat_only: Vec<bool>,
    pub(super) elements_read: Vec<u64>,
    pub(super) elements_written: Vec<u64>,
    pub(super) stores: Vec<Store>,
    pub(super) faulting: Vec<u32>,
    fault_words: &'a mut dyn FnMut(u32) -> u32,
    memo: FxHashMap<(u32, At, Option<Val>), Val>,
    operand_of: FxHashMap<Source, u16>,
    depth: u32,
}

/// What lowering must know of its surroundings.
pub struct Surroundings<'a> {
    /// The device.
    pub device: &'a DeviceInfo,
    /// Whether a buffer dies in this cluster: nobody reads it later.
    pub dies: &'a dyn Fn(Source) -> bool,
    /// Whether a root of this cluster is read by another cluster.
    pub read_later: &'a dyn Fn(u32) -> bool,
    /// The number of a working node's fault word.
    pub fault_word: &'a mut dyn FnMut(u32) -> u32,
}

/// Lowers a cluster that is not a library kernel.
pub fn lower(work: &Work<'_>, written: &[bool], cluster: &Cluster, around: Surroundings<'_>) -> Lowered {
    let root = cluster.roots[0].0;
    let node = &work.nodes[root as usize];
    let shape = match (&node.op, node.class) {
        (Op::AssignSlice(dims), Class::Patch) => {
            let lens: Vec<usize> = dims.iter().map(|d| d.len).collect();
            Shape::new(&lens).expect("a slice is no larger than its array")
        }
        (Op::Compact, _) => work.arg_shape(node.args[0]),
        _ => space_shape(work, cluster),
    };
    let mut lowering = Lowering {
        work,
        written,
        cluster,
        space: Space { shape, fold: cluster.fold },
        builder: Builder::new(),
        operands: Vec::new(),
        sources: Vec::new(),
        flat_only: Vec::new(),
        elements_read: Vec::new(),
        elements_written: Vec::new(),
        stores: Vec::new(),
        faulting: Vec::new(),
        fault_words: around.fault_word,
        memo: FxHashMap::default(),
        operand_of: FxHashMap::default(),
        depth: 0,
    };
    match node.class {
        Class::Patch => lowering.patch(root),
        Class::Compact => lowering.compact(root),
        _ => lowering.roots(around.read_later),
    }
    lowering.finish(around.device, around.dies)
}

/// The space's shape, from this region's nodes: a cached grouping knows no sizes.
fn space_shape(work: &Work<'_>, cluster: &Cluster) -> Shape {
    let folded = cluster.roots.iter().find(|root| work.nodes[root.0 as usize].class == Class::Reduce);
    match folded {
        Some(&(root, _)) => work.arg_shape(work.nodes[root as usize].args[0]),
        None => work.nodes[cluster.roots[0].0 as usize].meta.shape.clone(),
    }
}

impl Lowering<'_, '_> {
    fn roots(&mut self, read_later: &dyn Fn(u32) -> bool) {
        for &(root, phase) in &self.cluster.roots {
            let wanted = self.work.nodes[root as usize].output || read_later(root);
            let at = if phase == Phase::Reduced { At::Outer } else { At::Flat };
            let value = self.node(root, &at, None);
            if !wanted {
                continue;
            }
            let node = &self.work.nodes[root as usize];
            let operand = self.operand(Source::Node(root), &node.meta.clone());
            self.operands[operand as usize].access = Access::Write;
            let index = match (phase, self.space.fold) {
                (Phase::Element, Fold::Reduce(_) | Fold::Scan { .. }) => {
                    let shape = self.space.shape.clone();
                    Some(linear(&mut self.builder, &self.space, &At::Flat, &shape, u32::MAX))
                }
                _ => None,
            };
            if phase == Phase::Reduced {
                self.flat_only[operand as usize] = false;
            }
            self.elements_written[operand as usize] = node.meta.elements() as u64;
            self.stores.push(Store { operand, index, value, guard: None });
        }
    }

    /// An operand for a buffer; the same one for the same buffer.
    pub(super) fn operand(&mut self, source: Source, meta: &Meta) -> u16 {
        if let Some(&operand) = self.operand_of.get(&source) {
            return operand;
        }
        let operand = self.operands.len() as u16;
        self.operands.push(Operand { dtype: meta.dtype, access: Access::Read, tiled: false, segments: 1 });
        self.sources.push(source);
        self.flat_only.push(true);
        self.elements_read.push(0);
        self.elements_written.push(0);
        self.operand_of.insert(source, operand);
        operand
    }

    /// The value of an argument at an element; `slot` names it for its parameter.
    pub(super) fn arg(&mut self, consumer: u32, slot: usize, at: &At, guard: Option<Val>) -> Val {
        match self.work.nodes[consumer as usize].args[slot] {
            RegionArg::Scalar(scalar) => self.builder.scalar(Origin::Scalar(consumer, slot as u8), scalar),
            RegionArg::Node(n) => {
                let inside = !self.written[n as usize] || self.cluster.roots.iter().any(|r| r.0 == n);
                // A node without elements is asked for only where its guard never holds, or by a fold of nothing.
                if inside && self.work.nodes[n as usize].class != Class::Empty {
                    self.node(n, at, guard)
                } else {
                    let meta = self.work.nodes[n as usize].meta.clone();
                    self.load(Source::Node(n), n, &meta, at, guard)
                }
            }
            RegionArg::Input(i) => {
                let meta = self.work.region.inputs[i as usize].meta.clone();
                self.load(Source::Input(i), self.work.nodes.len() as u32 + i, &meta, at, guard)
            }
        }
    }

    fn load(&mut self, source: Source, owner: u32, meta: &Meta, at: &At, guard: Option<Val>) -> Val {
        let operand = self.operand(source, meta);
        let elements = meta.elements() as u64;
        let (index, run) = if meta.shape.is_scalar() {
            (self.builder.zero(), Run::Same)
        } else {
            let index = linear(&mut self.builder, &self.space, at, &meta.shape, owner);
            let run = match at {
                At::Flat => Run::Flat,
                _ if self.builder.level_of(index) != Level::Element => Run::Same,
                _ => Run::Any,
            };
            (index, run)
        };
        if run != Run::Flat {
            self.flat_only[operand as usize] = false;
        }
        let iterations = match self.builder.level_of(index) {
            Level::Uniform => 1,
            Level::Element => self.space.shape.elements() as u64,
            Level::Outer | Level::Reduced => self.space.sizes().0 as u64,
        };
        let read = &mut self.elements_read[operand as usize];
        *read = (*read + iterations).min(elements);
        self.builder.inst(InstOp::Load { operand, index, run, guard }, meta.dtype)
    }

    /// The value of an inline node (or a root of this cluster) at an element.
    pub(super) fn node(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let key = (n, at.clone(), guard);
        if let Some(&val) = self.memo.get(&key) {
            return val;
        }
        self.depth += 1;
        assert!(self.depth <= 4 * OPS_MERGED_MAX, "FUSE: a kernel is deeper than its budget of ops");
        let val = self.compute(n, at, guard);
        self.depth -= 1;
        self.memo.insert(key, val);
        val
    }

    fn compute(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let dtype = node.meta.dtype;
        match &node.op {
            Op::Source(_) => unreachable!("REGION-2: sources are inputs"),
            Op::Apply(op) => {
                let args: SmallVec<[Val; 3]> =
                    (0..node.args.len()).map(|slot| self.expanded(n, slot, at, guard)).collect();
                self.builder.apply(*op, &args, dtype)
            }
            Op::Fill => self.arg(n, 0, at, guard),
            Op::Iota => self.iota(n, at, guard),
            Op::Linspace => self.linspace(n, at, guard),
            Op::Eye => {
                let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, n);
                let (row, column) = (self.coordinate(list[0]), self.coordinate(list[1]));
                let on = self.builder.compare(IndexCompare::Equal, row, column);
                self.builder.cast(on, dtype)
            }
            Op::Random { dist, key } => {
                let first = self.builder.random_key(n, *key);
                let element = linear(&mut self.builder, &self.space, at, &node.meta.shape, n);
                let range = (*dist == Dist::Integer).then(|| (self.arg(n, 0, at, guard), self.arg(n, 1, at, guard)));
                let run = if *at == At::Flat { Run::Flat } else { Run::Any };
                self.builder.inst(InstOp::Random { dist: *dist, key: first, element, run, range }, dtype)
            }
            Op::View(view) => self.view(n, view, at, guard),
            Op::Cat { dim } => self.cat(n, *dim as usize, at, guard),
            Op::Triangle { upper, diagonal } => self.triangle(n, *upper, *diagonal, at, guard),
            Op::MakeDiagonal(k) => self.make_diagonal(n, *k, at, guard),
            Op::Reduce { op, nan, .. } => self.reduce(n, *op, *nan),
            Op::Scan { op, nan, .. } => self.scan(n, *op, *nan),
            Op::Take { dim } => self.take(n, *dim, at, guard),
            Op::TakeAlong { dim } => {
                let index = self.arg(n, 1, at, guard);
                let mut list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, n);
                let extent = work.arg_shape(node.args[0]).dim(*dim as usize);
                list[*dim as usize] = Coordinate::Val(self.check(n, index, extent, guard));
                self.arg(n, 0, &At::Coordinates(list), guard)
            }
            Op::AssignSlice(dims) => self.assign_slice(n, dims, at, guard),
            Op::Ensure { .. } => {
                let condition = self.expanded(n, 1, at, guard);
                let site = self.fault_site(n);
                self.builder.inst(InstOp::Require { condition, site, guard }, DType::Bool);
                self.arg(n, 0, at, guard)
            }
            // Nothing is assigned, or a product over no terms: what is left is the base, or zero.
            Op::AssignIndex { .. } => self.arg(n, 0, at, guard),
            Op::MatMul => self.builder.constant(Scalar::I32(0).cast(dtype)),
            Op::ArgSort { .. } | Op::Compact => unreachable!("FUSE-1: an anchor is not inline"),
        }
    }

    fn coordinate(&mut self, coordinate: Coordinate) -> Val {
        value_of(&mut self.builder, &self.space, coordinate)
    }

    /// An argument with implicit expansion.
    pub(super) fn expanded(&mut self, n: u32, slot: usize, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let arg = work.nodes[n as usize].args[slot];
        let (own, theirs) = (&work.nodes[n as usize].meta.shape, work.arg_shape(arg));
        if *own == theirs || matches!(arg, RegionArg::Scalar(_)) {
            return self.arg(n, slot, at, guard);
        }
        let place = self.broadcast(at, own, &theirs, n);
        self.arg(n, slot, &place, guard)
    }

    fn broadcast(&mut self, at: &At, own: &Shape, theirs: &Shape, n: u32) -> At {
        if theirs.is_scalar() {
            return At::Linear(self.builder.zero());
        }
        let list = coordinates(&mut self.builder, &self.space, at, own, n);
        At::Coordinates(
            (0..theirs.rank()).map(|d| if theirs.dim(d) == 1 { Coordinate::Zero } else { list[d] }).collect(),
        )
    }

    fn iota(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let element = linear(&mut self.builder, &self.space, at, &shape, n);
        let element = self.builder.cast(element, dtype);
        let (first, step) = (self.arg(n, 0, at, guard), self.arg(n, 1, at, guard));
        let distance = self.builder.apply(ElementOp::Mul, &[element, step], dtype);
        self.builder.apply(ElementOp::Add, &[first, distance], dtype)
    }

    fn linspace(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let points = shape.elements();
        let element = linear(&mut self.builder, &self.space, at, &shape, n);
        let (first, last) = (self.arg(n, 0, at, guard), self.arg(n, 1, at, guard));
        let number = |arg: RegionArg| match arg {
            RegionArg::Scalar(s) => s.as_f64(),
            _ => unreachable!("linspace takes numbers"),
        };
        let (from, to) = (number(node.args[0]), number(node.args[1]));
        let step = if points > 1 { (to - from) / (points - 1) as f64 } else { 0.0 };
        let step = self.builder.scalar(Origin::Attribute(n, 0), Scalar::F64(step).cast(dtype));
        let end = self.builder.number(Origin::Attribute(n, 1), points as u32 - 1);
        let at_end = self.builder.compare(IndexCompare::Equal, element, end);
        let index = self.builder.cast(element, dtype);
        let distance = self.builder.apply(ElementOp::Mul, &[index, step], dtype);
        let inner = self.builder.apply(ElementOp::Add, &[first, distance], dtype);
        self.builder.apply(ElementOp::Select, &[at_end, last, inner], dtype)
    }

    fn view(&mut self, n: u32, view: &View, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let shape = &node.meta.shape;
        let from = work.arg_shape(node.args[0]);
        if matches!(view, View::Reshape) {
            let place = match at {
                At::Flat | At::Linear(_) => at.clone(),
                At::Outer | At::Coordinates(_) => At::Linear(linear(&mut self.builder, &self.space, at, shape, n)),
            };
            return self.arg(n, 0, &place, guard);
        }
        if matches!(view, View::Broadcast) {
            let place = self.broadcast(at, shape, &from, n);
            return self.arg(n, 0, &place, guard);
        }
        let list = coordinates(&mut self.builder, &self.space, at, shape, n);
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
                            Coordinate::Val(self.builder.index(IndexOp::Rem, moved, extent))
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
            View::Reshape | View::Broadcast => unreachable!("handled above"),
        }
        self.arg(n, 0, &At::Coordinates(place), guard)
    }

    fn sliced(&mut self, n: u32, d: usize, dim: Option<SliceDim>, extent: usize, own: Coordinate) -> Coordinate {
        let Some(dim) = dim else { return own };
        if dim.start == 0 && dim.step == 1 && dim.len == extent {
            return own;
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

    fn cat(&mut self, n: u32, dim: usize, at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let dtype = node.meta.dtype;
        let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, n);
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
        result.expect("a cat with elements has an argument with elements")
    }

    fn triangle(&mut self, n: u32, upper: bool, diagonal: i64, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let list = coordinates(&mut self.builder, &self.space, at, &shape, n);
        let (row, column) = (self.coordinate(list[0]), self.coordinate(list[1]));
        // A diagonal beyond the matrix keeps or drops all; clamped, the arithmetic stays in range.
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

    fn make_diagonal(&mut self, n: u32, k: i64, at: &At, guard: Option<Val>) -> Val {
        let node = &self.work.nodes[n as usize];
        let (dtype, shape) = (node.meta.dtype, node.meta.shape.clone());
        let list = coordinates(&mut self.builder, &self.space, at, &shape, n);
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

    /// The parameter slot of a node's fault word.
    fn fault_site(&mut self, n: u32) -> u32 {
        let words = &mut *self.fault_words;
        let faulting = &mut self.faulting;
        self.builder.fault_slot(n, || {
            faulting.push(n);
            words(n)
        })
    }

    /// An index from data, clamped into its extent, with the node's fault word set where it lay outside.
    fn check(&mut self, n: u32, index: Val, extent: usize, guard: Option<Val>) -> Val {
        let site = self.fault_site(n);
        let extent = self.builder.number(Origin::Attribute(n, 254), extent as u32);
        self.builder.inst(InstOp::Check { index, extent, site, guard }, DType::U32)
    }

    fn take(&mut self, n: u32, dim: Option<u8>, at: &At, guard: Option<Val>) -> Val {
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
                let mut list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, n);
                list.resize(list.len().max(dim + 1), Coordinate::Zero);
                let own = self.coordinate(list[dim]);
                let index = self.arg(n, 1, &At::Linear(own), guard);
                list[dim] = Coordinate::Val(self.check(n, index, from.dim(dim), guard));
                self.arg(n, 0, &At::Coordinates(list), guard)
            }
        }
    }

    fn assign_slice(&mut self, n: u32, dims: &[SliceDim], at: &At, guard: Option<Val>) -> Val {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let base = self.arg(n, 0, at, guard);
        if dims.iter().any(|d| d.len == 0) {
            return base;
        }
        let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, n);
        let theirs = work.arg_shape(node.args[1]);
        let mut inside: Option<Val> = None;
        let mut place: SmallVec<[Coordinate; 4]> = SmallVec::new();
        for (d, dim) in dims.iter().enumerate() {
            let own = list.get(d).copied().unwrap_or(Coordinate::Zero);
            let (there, here) = self.unsliced(n, d, *dim, node.meta.shape.dim(d), own);
            inside = self.builder.both(inside, here);
            place.push(if theirs.dim(d) == 1 { Coordinate::Zero } else { there });
        }
        let both = self.builder.both(guard, inside);
        let value = self.arg(n, 1, &At::Coordinates(place), both);
        match inside {
            None => value,
            Some(inside) => self.builder.apply(ElementOp::Select, &[inside, value, base], node.meta.dtype),
        }
    }

    /// Where a coordinate of the base lies in a slice of it, and whether it does.
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
    fn patch(&mut self, n: u32) {
        let work = self.work;
        let node = &work.nodes[n as usize];
        let Op::AssignSlice(dims) = &node.op else { unreachable!("only slices are patched") };
        let space = self.space.shape.clone();
        let theirs = work.arg_shape(node.args[1]);
        let place = if theirs == space { At::Flat } else { self.broadcast(&At::Flat, &space, &theirs, u32::MAX) };
        let value = self.arg(n, 1, &place, None);
        let mut list: SmallVec<[Coordinate; 4]> = SmallVec::new();
        for (d, dim) in dims.iter().enumerate() {
            let own = if space.dim(d) == 1 { Coordinate::Zero } else { Coordinate::Space(d as u8) };
            list.push(self.sliced(n, d, Some(*dim), node.meta.shape.dim(d), own));
        }
        let shape = node.meta.shape.clone();
        let index = linear(&mut self.builder, &self.space, &At::Coordinates(list), &shape, n);
        let operand = self.operand(Source::Node(n), &node.meta.clone());
        // What is not overwritten stays.
        self.operands[operand as usize].access = Access::ReadWrite;
        self.flat_only[operand as usize] = false;
        self.elements_written[operand as usize] = space.elements() as u64;
        self.stores.push(Store { operand, index: Some(index), value, guard: None });
    }

    /// A kernel over the mask, storing each true element's index at its rank.
    fn compact(&mut self, n: u32) {
        let mask = self.arg(n, 0, &At::Flat, None);
        let count = self.arg(n, 1, &At::Flat, None);
        let one = self.builder.constant(Scalar::U32(1));
        let rank = self.builder.index(IndexOp::Sub, count, one);
        let shape = self.space.shape.clone();
        let own = linear(&mut self.builder, &self.space, &At::Flat, &shape, u32::MAX);
        let meta = self.work.nodes[n as usize].meta.clone();
        let operand = self.operand(Source::Node(n), &meta);
        self.operands[operand as usize].access = Access::Write;
        self.flat_only[operand as usize] = false;
        self.elements_written[operand as usize] = meta.elements() as u64;
        self.stores.push(Store { operand, index: Some(rank), value: own, guard: Some(mask) });
    }

    fn finish(mut self, device: &DeviceInfo, dies: &dyn Fn(Source) -> bool) -> Lowered {
        let in_place = self.reuse(dies);
        let (outer, inner) = self.space.sizes();
        let (form, geometry) = match self.space.fold {
            Fold::None | Fold::Alone => (Form::Map, Geometry::Map { elements: self.space.shape.elements() as u32 }),
            Fold::Reduce(_) => {
                (Form::Reduce { inner_fast: self.space.inner_fast() }, Geometry::Reduce { outer, inner })
            }
            Fold::Scan { reverse, .. } => {
                (Form::Scan { inner_fast: self.space.inner_fast() }, Geometry::Scan { outer, inner, reverse })
            }
        };
        let tiles = match self.space.fold {
            Fold::None | Fold::Alone => true,
            // Whole chunks lie in one segment, or the fold reads all segments at once.
            Fold::Reduce(_) => {
                self.space.folds_all()
                    && reduce_plan(outer, inner, self.space.inner_fast()).chunk as u64
                        <= 1u64 << device.segment_shift.min(63)
            }
            Fold::Scan { .. } => false,
        };
        for (operand, source) in self.operands.iter_mut().zip(&self.sources) {
            let elements = match *source {
                Source::Node(n) => self.work.nodes[n as usize].meta.elements(),
                Source::Input(i) => self.work.region.inputs[i as usize].meta.elements(),
                Source::Scratch(_) => unreachable!("scratch is bound below"),
            } as u64;
            let index = self.operand_of[source] as usize;
            operand.tiled = tiles && self.flat_only[index];
            let segments = if device.segment_shift >= 32 { 1 } else { elements.div_ceil(1 << device.segment_shift) };
            operand.segments = if operand.tiled { 1 } else { segments.clamp(1, 255) as u8 };
        }
        let mut kernel = Kernel {
            form,
            operands: self.operands,
            scratch: None,
            faults: !self.faulting.is_empty(),
            params: self.builder.params.len() as u32,
            insts: self.builder.insts,
            stores: self.stores,
        };
        if let (Form::Reduce { inner_fast }, DeviceKind::Gpu) = (form, device.kind) {
            let cut = reduce_plan(outer, inner, inner_fast);
            let words =
                if cut.chunks > 1 { kernel.partial_words() as u64 * outer as u64 * cut.chunks as u64 } else { 4 };
            kernel.scratch = Some(kernel.operands.len() as u16);
            kernel.operands.push(Operand { dtype: DType::U32, access: Access::Write, tiled: false, segments: 1 });
            self.sources.push(Source::Scratch(words));
            self.elements_read.push(0);
            self.elements_written.push(0);
        }
        Lowered {
            kernel,
            params: self.builder.params,
            geometry,
            sources: self.sources,
            in_place,
            faulting: self.faulting,
            elements_read: self.elements_read,
            elements_written: self.elements_written,
        }
    }

    /// Lets flat outputs take over the memory of dying operands that are read at the flat index only.
    fn reuse(&mut self, dies: &dyn Fn(Source) -> bool) -> Vec<(u32, Source)> {
        let mut in_place = Vec::new();
        let mut removed: Vec<u16> = Vec::new();
        for s in 0..self.stores.len() {
            let out = self.stores[s].operand as usize;
            let Source::Node(root) = self.sources[out] else { continue };
            if !self.flat_only[out] || matches!(self.space.fold, Fold::Alone) {
                continue;
            }
            let meta = &self.work.nodes[root as usize].meta;
            let victim = (0..self.operands.len()).find(|&i| {
                self.operands[i].access == Access::Read
                    && self.flat_only[i]
                    && self.operands[i].dtype == meta.dtype
                    && !removed.contains(&(i as u16))
                    && self.elements_of(self.sources[i]) == meta.elements()
                    && dies(self.sources[i])
            });
            if let Some(victim) = victim {
                in_place.push((root, self.sources[victim]));
                self.operands[out].access = Access::ReadWrite;
                removed.push(victim as u16);
                self.redirect(victim as u16, out as u16);
            }
        }
        self.remove_operands(&removed);
        in_place
    }

    fn elements_of(&self, source: Source) -> usize {
        match source {
            Source::Node(n) => self.work.nodes[n as usize].meta.elements(),
            Source::Input(i) => self.work.region.inputs[i as usize].meta.elements(),
            Source::Scratch(words) => words as usize,
        }
    }

    fn redirect(&mut self, from: u16, to: u16) {
        for inst in &mut self.builder.insts {
            if let InstOp::Load { operand, .. } = &mut inst.op
                && *operand == from
            {
                *operand = to;
            }
        }
        self.elements_read[to as usize] = self.elements_read[from as usize];
    }

    fn remove_operands(&mut self, removed: &[u16]) {
        if removed.is_empty() {
            return;
        }
        let mut renamed = vec![0u16; self.operands.len()];
        let mut next = 0;
        for (old, new) in renamed.iter_mut().enumerate() {
            *new = next;
            next += u16::from(!removed.contains(&(old as u16)));
        }
        let keep = |i: usize| !removed.contains(&(i as u16));
        for inst in &mut self.builder.insts {
            if let InstOp::Load { operand, .. } = &mut inst.op {
                *operand = renamed[*operand as usize];
            }
        }
        for store in &mut self.stores {
            store.operand = renamed[store.operand as usize];
        }
        fn filter<T: Clone>(list: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
            let mut index = 0;
            list.retain(|_| {
                index += 1;
                keep(index - 1)
            });
        }
        filter(&mut self.operands, keep);
        filter(&mut self.sources, keep);
        filter(&mut self.flat_only, keep);
        filter(&mut self.elements_read, keep);
        filter(&mut self.elements_written, keep);
        self.operand_of = self.sources.iter().enumerate().map(|(i, &s)| (s, i as u16)).collect();
    }
}
