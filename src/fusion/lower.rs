//! Lowers a cluster to a kernel.
//!
//! In: a cluster. Out: [`Lowered`]: the kernel, its parameters, which buffer each operand is. Every inline node is a
//! function of the position of the wanted element ([`At`]). So views are index arithmetic, and a node that is needed at
//! two positions is computed twice. Values are shared by (node, place, guard). `structure` and `indexing` hold what
//! some ops need; `finish` makes the kernel of it. Must hold: a guarded subtree reads memory only where its guard
//! holds; recursion is bounded by the ops of one kernel.

mod finish;
mod indexing;
mod structure;
mod wide_number;

use super::budget::OPS_MERGED_MAX;
use super::builder::{Builder, Origin};
use super::form::{Class, RegionGraph};
use super::grouping::{Cluster, Fold, Phase};
use super::index::{At, Coordinate, Space, coordinates, linear, value_of};
use super::source::Source;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::NumberOf;
use crate::contract::region::RegionArg;
use crate::graph::{DType, ElementOp, Meta, Op, Scalar, Shape};
use crate::graph::{mixed, wide};
use crate::kernels::ir::{Access, Geometry, IndexCompare, IndexOp, InstOp, Kernel, Level, Operand, Run, Store, Val};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A kernel and its operands.
#[derive(Debug)]
pub struct Lowered {
    /// The kernel.
    pub kernel: Kernel,
    /// Its parameter words.
    pub params: Vec<u32>,
    /// Parameters that are numbers of the program: first word, working node, and which number of the node.
    pub numbers: Vec<(u32, u32, NumberOf)>,
    /// The values of the cluster's roots, in order; empty for a cluster that patches or compacts.
    pub roots: Vec<Val>,
    /// Its sizes.
    pub geometry: Geometry,
    /// The buffer of each operand.
    pub sources: Vec<Source>,
    /// Written nodes that take over the memory of a dying buffer: (node, buffer).
    pub in_place: Vec<(u32, Source)>,
    /// Upper bound of the elements that are read of each operand.
    pub elements_read: Vec<u64>,
    /// Upper bound of the elements that are written of each operand.
    pub elements_written: Vec<u64>,
    /// The operands that are packed, in order.
    pub packed: Vec<Packed>,
}

/// A buffer that is read from its copy in a pack.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// The buffer.
    pub source: Source,
    /// Its dtype, which names the pack.
    pub dtype: DType,
    /// Its first element's place in the pack.
    pub first: u64,
    /// Its elements.
    pub elements: u64,
    /// Upper bound of the elements that are read of it.
    pub read: u64,
}

/// Lowers one cluster.
pub(super) struct Lowering<'a, 'r> {
    pub(super) work: &'a RegionGraph<'r>,
    pub(super) written: &'a [bool],
    pub(super) cluster: &'a Cluster,
    pub(super) device: &'a DeviceInfo,
    pub(super) space: Space,
    pub(super) builder: Builder,
    pub(super) operands: Vec<Operand>,
    pub(super) sources: Vec<Source>,
    /// Whether all accesses of an operand so far are at the flat index.
    pub(super) flat_only: Vec<bool>,
    pub(super) elements_read: Vec<u64>,
    pub(super) elements_written: Vec<u64>,
    pub(super) stores: Vec<Store>,
    pub(super) roots: Vec<Val>,
    pub(super) faulting: Vec<u32>,
    fault_words: &'a mut dyn FnMut(u32) -> u32,
    /// Loads of whole operands that may run across the space, and the run of its dimensions along which their elements
    /// are neighbours in memory.
    pub(super) across: SmallVec<[(Val, usize, usize); 2]>,
    pub(super) memo: FxHashMap<(u32, At, Option<Val>), Val>,
    operand_of: FxHashMap<Source, u16>,
    pub(super) packed: Vec<Packed>,
    depth: u32,
}

/// What lowering needs to know about the rest of the plan.
pub struct Surroundings<'a> {
    /// The device.
    pub device: &'a DeviceInfo,
    /// Whether a buffer dies in this cluster, so that nothing reads it later.
    pub dies: &'a dyn Fn(Source) -> bool,
    /// Whether a root of this cluster is read by another cluster.
    pub read_later: &'a dyn Fn(u32) -> bool,
    /// The number of a working node's fault word.
    pub fault_word: &'a mut dyn FnMut(u32) -> u32,
}

/// Lowers a cluster that is not a library kernel.
pub fn lower<'a>(
    work: &'a RegionGraph<'_>,
    written: &'a [bool],
    cluster: &'a Cluster,
    around: Surroundings<'a>,
) -> Lowered {
    let root = cluster.roots[0].0;
    let node = &work.nodes[root as usize];
    let shape = match node.class {
        Class::Patch => {
            let Op::AssignSlice(dims) = &node.op else { unreachable!("FUSE-5: only slices are patched") };
            let lens: Vec<usize> = dims.iter().map(|d| d.len).collect();
            Shape::new(&lens).expect("SHAPE-2: a slice is no larger than its array")
        }
        Class::Compact => work.arg_shape(node.args[0]),
        Class::Inline | Class::Reduce | Class::Scan | Class::Library | Class::Empty => space_shape(work, cluster),
    };
    let mut lowering = Lowering {
        work,
        written,
        cluster,
        device: around.device,
        space: Space { shape, fold: cluster.fold },
        builder: Builder::new(matches!(cluster.fold, Fold::Line(_))),
        operands: Vec::new(),
        sources: Vec::new(),
        flat_only: Vec::new(),
        elements_read: Vec::new(),
        elements_written: Vec::new(),
        stores: Vec::new(),
        roots: Vec::new(),
        faulting: Vec::new(),
        across: SmallVec::new(),
        fault_words: around.fault_word,
        memo: FxHashMap::default(),
        operand_of: FxHashMap::default(),
        packed: Vec::new(),
        depth: 0,
    };
    match node.class {
        Class::Patch => lowering.patch(root),
        Class::Compact => lowering.compact(root),
        Class::Inline | Class::Reduce | Class::Scan | Class::Library | Class::Empty => {
            lowering.roots(around.read_later)
        }
    }
    lowering.finish(around.device, around.dies)
}

/// The space's shape, from this region's nodes: a cached grouping knows no sizes.
fn space_shape(work: &RegionGraph<'_>, cluster: &Cluster) -> Shape {
    let folded = cluster.roots.iter().find(|root| work.nodes[root.0 as usize].class == Class::Reduce);
    match folded {
        Some(&(root, _)) => work.arg_shape(work.nodes[root as usize].args[0]),
        None => work.nodes[cluster.roots[0].0 as usize].meta.shape.clone(),
    }
}

impl Lowering<'_, '_> {
    fn roots(&mut self, read_later: &dyn Fn(u32) -> bool) {
        for &(root, phase) in &self.cluster.roots {
            let wanted = self.work.nodes[root as usize].output.is_some() || read_later(root);
            let at = if phase == Phase::Reduced { At::Outer } else { At::Flat };
            let value = self.node(root, &at, None);
            self.roots.push(value);
            if !wanted {
                continue;
            }
            let node = &self.work.nodes[root as usize];
            let operand = self.operand(Source::Node(root), &node.meta.clone());
            self.operands[operand as usize].access = Access::Write;
            let index = match (phase, self.space.fold) {
                (Phase::Element, Fold::Reduce(_) | Fold::Scan { .. }) => {
                    let shape = self.space.shape.clone();
                    Some(linear(&mut self.builder, &self.space, &At::Flat, &shape, None))
                }
                // The value is one number for the whole line, but the root has an element for each element of the line: the
                // store needs the index of the element.
                (Phase::Element, Fold::Line(_)) if self.builder.level_of(value) != Level::Element => {
                    Some(linear(&mut self.builder, &self.space, &At::Flat, &self.space.shape.clone(), None))
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

    /// The operand of a buffer, added at its first use.
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

    /// The value of an argument at an element. `slot` identifies the parameter if it is a scalar.
    pub(super) fn arg(&mut self, consumer: u32, slot: usize, at: &At, guard: Option<Val>) -> Val {
        match self.work.nodes[consumer as usize].args[slot] {
            RegionArg::Scalar(scalar) => self.builder.scalar(Origin::Scalar(consumer, slot as u8), scalar),
            RegionArg::Node(n) => {
                if self.is_inside(n) {
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

    /// Whether a node is computed in this kernel. A node without elements is used only under a guard that never holds,
    /// or by a reduction over no elements.
    pub(super) fn is_inside(&self, n: u32) -> bool {
        let is_here = !self.written[n as usize] || self.cluster.roots.iter().any(|root| root.0 == n);
        is_here && self.work.nodes[n as usize].class != Class::Empty
    }

    fn load(&mut self, source: Source, owner: u32, meta: &Meta, at: &At, guard: Option<Val>) -> Val {
        if self.is_packed(source) {
            return self.load_packed(source, owner, meta, at, guard);
        }
        let operand = self.operand(source, meta);
        let elements = meta.elements() as u64;
        let (index, run) = if meta.shape.is_scalar() {
            (self.builder.zero(), Run::Same)
        } else {
            let index = linear(&mut self.builder, &self.space, at, &meta.shape, Some(owner));
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
        let iterations = self.iterations(index);
        let read = &mut self.elements_read[operand as usize];
        *read = (*read + iterations).min(elements);
        let value = self.builder.inst(InstOp::Load { operand, index, run, guard }, meta.dtype);
        let is_whole = elements == self.space.shape.elements() as u64;
        if run == Run::Any && guard.is_none() && is_whole && self.space.fold == Fold::None {
            let known = self.builder.across.iter().find(|known| known.0 == index);
            self.across.extend(known.map(|&(_, from, to)| (value, from, to)));
        }
        value
    }

    /// How often a value is computed.
    fn iterations(&self, val: Val) -> u64 {
        match self.builder.level_of(val) {
            Level::Uniform => 1,
            Level::Element => self.space.shape.elements() as u64,
            Level::Outer | Level::Reduced => self.space.sizes().0 as u64,
        }
    }

    fn is_packed(&self, source: Source) -> bool {
        let packed = &self.cluster.packed;
        match source {
            Source::Node(n) => packed.has(n),
            Source::Input(i) => packed.has(self.work.nodes.len() as u32 + i),
            Source::Scratch(_) | Source::Pack(_) => false,
        }
    }

    /// A load of a packed operand. Its start in the pack is a parameter.
    fn load_packed(&mut self, source: Source, owner: u32, meta: &Meta, at: &At, guard: Option<Val>) -> Val {
        let elements = meta.elements() as u64;
        let known = self.packed.iter().position(|packed| packed.source == source);
        let number = known.unwrap_or_else(|| {
            let before = self.packed.iter().filter(|packed| packed.dtype == meta.dtype);
            let first = before.map(|packed| packed.elements).sum();
            self.packed.push(Packed { source, dtype: meta.dtype, first, elements, read: 0 });
            self.packed.len() - 1
        });
        let operand = self.operand(Source::Pack(meta.dtype), meta);
        self.flat_only[operand as usize] = false;
        let first = self.builder.number(Origin::Packed(owner), self.packed[number].first as u32);
        let index = match meta.shape.is_scalar() {
            true => first,
            false => {
                let index = linear(&mut self.builder, &self.space, at, &meta.shape, Some(owner));
                self.builder.index(IndexOp::Add, first, index)
            }
        };
        let run = if self.builder.level_of(index) == Level::Element { Run::Any } else { Run::Same };
        let iterations = self.iterations(index);
        let packed = &mut self.packed[number];
        packed.read = (packed.read + iterations).min(elements);
        self.elements_read[operand as usize] =
            self.packed.iter().filter(|packed| packed.dtype == meta.dtype).map(|packed| packed.read).sum();
        self.builder.inst(InstOp::Load { operand, index, run, guard }, meta.dtype)
    }

    /// The value of an inline node (or a root of this cluster) at an element.
    pub(super) fn node(&mut self, n: u32, at: &At, guard: Option<Val>) -> Val {
        let key = (n, at.clone(), guard);
        if let Some(&val) = self.memo.get(&key) {
            return val;
        }
        self.depth += 1;
        assert!(self.depth <= 4 * OPS_MERGED_MAX, "FUSE-6: a kernel is deeper than its budget of ops");
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
                let slots = 0..node.args.len();
                if let Some(inner) = self.mixes(n, *op) {
                    let args: SmallVec<[Val; 3]> = slots.map(|slot| self.mixed(n, slot, inner, at, guard)).collect();
                    let output = if dtype == DType::Bool { dtype } else { inner };
                    let value = self.builder.apply(*op, &args, output);
                    return self.builder.cast(value, dtype);
                }
                if let Some((slot, number)) = self.beside_number(n, *op) {
                    let x = self.expanded(n, 1 - slot, at, guard);
                    let mut emit = wide_number::Emitter { lowering: self, node: n, numbers: 0 };
                    return wide::apply(&mut emit, *op, &x, number, slot == 0);
                }
                let args: SmallVec<[Val; 3]> = slots.map(|slot| self.expanded(n, slot, at, guard)).collect();
                self.builder.apply(*op, &args, dtype)
            }
            Op::Fill => self.arg(n, 0, at, guard),
            Op::Iota => self.iota(n, at, guard),
            Op::Linspace => self.linspace(n, at, guard),
            Op::Eye => {
                let list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
                let (row, column) = (self.coordinate(list[0]), self.coordinate(list[1]));
                let on = self.builder.compare(IndexCompare::Equal, row, column);
                self.builder.cast(on, dtype)
            }
            Op::Random { dist, key } => {
                let first = self.builder.random_key(n, *key);
                let element = linear(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
                let params = (0..node.args.len()).map(|slot| self.expanded(n, slot, at, guard)).collect();
                let run = if *at == At::Flat { Run::Flat } else { Run::Any };
                self.builder.inst(InstOp::Random { dist: *dist, key: first, element, run, params }, dtype)
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
                let mut list = coordinates(&mut self.builder, &self.space, at, &node.meta.shape, Some(n));
                let dim = *dim as usize;
                let extent = work.arg_shape(node.args[0]).dim(dim);
                // The result lacks this dimension if the index has one element along it.
                list.resize(list.len().max(dim + 1), Coordinate::Zero);
                list[dim] = Coordinate::Val(self.check(n, index, extent, guard));
                self.arg(n, 0, &At::Coordinates(list), guard)
            }
            Op::AssignSlice(dims) => self.assign_slice(n, dims, at, guard),
            Op::Ensure { .. } => {
                let condition = self.expanded(n, 1, at, guard);
                let site = self.fault_site(n);
                self.builder.inst(InstOp::Require { condition, site, guard }, DType::Bool);
                self.arg(n, 0, at, guard)
            }
            // An assignment to no places is its base; a matrix product over no terms is zero.
            Op::AssignIndex { .. } => self.arg(n, 0, at, guard),
            Op::MatMul => self.builder.constant(Scalar::I32(0).cast(dtype)),
            Op::ArgSort { .. } | Op::Linear(_) | Op::Fourier(_) | Op::Compact => {
                unreachable!("FUSE-1: an anchor is not inline")
            }
        }
    }

    /// The dtype in which an op on integers and plain numbers is computed.
    fn mixes(&self, n: u32, op: ElementOp) -> Option<DType> {
        let number = |arg: RegionArg| match arg {
            RegionArg::Scalar(number) => Some(number),
            _ => None,
        };
        let args = self.work.nodes[n as usize].args.iter().map(|&arg| (self.work.arg_dtype(arg), number(arg)));
        mixed::computes_in(op, args, self.device.compiles_f64())
    }

    /// If an op takes an `i64` and a plain number: the position and the value of the number.
    fn beside_number(&self, n: u32, op: ElementOp) -> Option<(usize, f64)> {
        let args = &self.work.nodes[n as usize].args;
        let number = |arg: &RegionArg| match arg {
            RegionArg::Scalar(Scalar::F64(number)) => Some(*number),
            _ => None,
        };
        let slot = (0..args.len()).find(|&slot| number(&args[slot]).is_some())?;
        let is_wide = args.len() == 2 && self.work.arg_dtype(args[1 - slot]) == DType::I64;
        if is_wide && wide::takes(op) { Some((slot, number(&args[slot])?)) } else { None }
    }

    /// An argument of such an op.
    fn mixed(&mut self, n: u32, slot: usize, inner: DType, at: &At, guard: Option<Val>) -> Val {
        match self.work.nodes[n as usize].args[slot] {
            RegionArg::Scalar(number) => self.builder.scalar(Origin::Scalar(n, slot as u8), number.cast(inner)),
            _ => {
                let value = self.expanded(n, slot, at, guard);
                self.builder.cast(value, inner)
            }
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
        let place = self.broadcast(at, own, &theirs, Some(n));
        self.arg(n, slot, &place, guard)
    }

    fn broadcast(&mut self, at: &At, own: &Shape, theirs: &Shape, owner: Option<u32>) -> At {
        if theirs.is_scalar() {
            return At::Linear(self.builder.zero());
        }
        let list = coordinates(&mut self.builder, &self.space, at, own, owner);
        At::Coordinates(
            (0..theirs.rank()).map(|d| if theirs.dim(d) == 1 { Coordinate::Zero } else { list[d] }).collect(),
        )
    }
}
