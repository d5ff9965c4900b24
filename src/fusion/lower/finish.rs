//! The end of lowering: which operands are tiled, which outputs take over an operand's memory, and the kernel.
//!
//! In: the lowered instructions and operands. Out: [`Lowered`]. Must hold: PLAN-2: an output takes over the memory of
//! an operand only if this kernel reads that last, and at the flat index only. The kernel of a patch may also read its
//! base where it overwrites it itself, or where nothing is overwritten (FUSE-7).

use super::{Lowered, Lowering};
use crate::contract::device::DeviceInfo;
use crate::fusion::form::Class;
use crate::fusion::grouping::Fold;
use crate::fusion::source::{Source, source_of};
use crate::graph::DType;
use crate::kernels::ir::{
    Access, Form, Geometry, Inst, InstOp, Kernel, Operand, Run, line_plan, reduce_plan, scan_plan,
};

/// The most instructions of a kernel with loads across.
const ACROSS_INSTS_MAX: usize = 64;
/// The shortest side of a plane for which loads run across: half a tile.
const ACROSS_SIDE_MIN: u32 = 16;
/// Elements of a tile in workgroup memory.
const ACROSS_TILE_ELEMENTS: usize = 32 * 33;
/// The most bytes of workgroup memory that such a kernel's tiles take. Every GPU has 16 KiB.
const ACROSS_BYTES_MAX: usize = 16 << 10;

impl Lowering<'_, '_> {
    pub(super) fn finish(mut self, device: &DeviceInfo, dies: &dyn Fn(Source) -> bool) -> Lowered {
        let in_place = self.reuse(dies);
        self.run_across();
        let (outer, inner) = self.space.sizes();
        let width = if self.builder.insts.iter().any(|inst| inst.dtype.is_wide()) { 1 } else { 4 };
        let (form, geometry) = match self.space.fold {
            Fold::None | Fold::Alone => (Form::Map, Geometry::Map { elements: self.space.shape.elements() as u32 }),
            Fold::Reduce(_) => {
                (Form::Reduce { inner_fast: self.space.inner_fast() }, Geometry::Reduce { outer, inner })
            }
            Fold::Line(_) => (Form::Line(line_plan(inner, width)), Geometry::Line { outer, inner }),
            Fold::Scan { reverse, .. } => {
                (Form::Scan { inner_fast: self.space.inner_fast() }, Geometry::Scan { outer, inner, reverse })
            }
        };
        let tiles = match self.space.fold {
            Fold::None | Fold::Alone => true,
            // The fold is tiled only if whole chunks lie in one piece; otherwise it binds all pieces at once.
            Fold::Reduce(_) => {
                let span = |operand: &Operand| 1u64 << device.span_shift_of(operand.dtype).min(63);
                let chunk = reduce_plan(outer, inner, self.space.inner_fast()).chunk as u64;
                self.space.folds_all() && self.operands.iter().all(|operand| chunk <= span(operand))
            }
            Fold::Scan { .. } | Fold::Line(_) => false,
        };
        for (operand, source) in self.operands.iter_mut().zip(&self.sources) {
            let elements = match *source {
                Source::Node(n) => self.work.nodes[n as usize].meta.elements(),
                Source::Input(i) => self.work.region.inputs[i as usize].meta.elements(),
                // A pack has one piece; if it does not fit one, the plan is made again without packs.
                Source::Pack(_) => 1,
                Source::Scratch(_) => unreachable!("FUSE-5: scratch is bound below"),
            } as u64;
            let index = self.operand_of[source] as usize;
            operand.tiled = tiles && self.flat_only[index];
            operand.segments = if operand.tiled { 1 } else { device.pieces(operand.dtype, elements).min(255) as u8 };
        }
        let numbers = self.builder.numbers().collect();
        let mut kernel = Kernel {
            form,
            operands: self.operands,
            scratch: None,
            faults: !self.faulting.is_empty(),
            params: self.builder.params.len() as u32,
            insts: self.builder.insts,
            stores: self.stores,
            rolled: None,
        };
        let in_phases = device.capabilities.needs_scratch;
        let chunks = match form {
            Form::Reduce { inner_fast } if in_phases => Some(reduce_plan(outer, inner, inner_fast).chunks),
            Form::Scan { inner_fast } if in_phases && kernel.scans_in_phases() => {
                Some(scan_plan(outer, inner, inner_fast).chunks)
            }
            _ => None,
        };
        if let Some(chunks) = chunks {
            let words = if chunks > 1 { kernel.partial_words() as u64 * outer as u64 * chunks as u64 } else { 4 };
            kernel.scratch = Some(kernel.operands.len() as u16);
            kernel.operands.push(Operand { dtype: DType::U32, access: Access::Write, tiled: false, segments: 1 });
            self.sources.push(Source::Scratch(words));
            self.elements_read.push(0);
            self.elements_written.push(0);
        }
        Lowered {
            kernel,
            numbers,
            roots: self.roots,
            params: self.builder.params,
            geometry,
            sources: self.sources,
            in_place,
            elements_read: self.elements_read,
            elements_written: self.elements_written,
            packed: self.packed,
        }
    }

    /// Marks the loads that run across the space in the same direction as the first of them, as far as their tiles fit
    /// workgroup memory, if a plane of the space is large enough for tiles. Only short bodies are marked, because they
    /// wait for memory: an invocation of a kernel with such loads takes elements one by one, not four at a time.
    fn run_across(&mut self) {
        let Some(&(_, from, to)) = self.across.first() else { return };
        let draws = |inst: &Inst| matches!(inst.op, InstOp::Random { .. });
        if self.builder.insts.len() > ACROSS_INSTS_MAX || self.builder.insts.iter().any(draws) {
            return;
        }
        let sizes = [(0, from), (from, to)].map(|(from, to)| self.space.product(&mut self.builder, from, from, to));
        let [Some(stride), Some(extent)] = sizes else { return };
        let slots = [stride, extent].map(|size| match self.builder.insts[size.0 as usize].op {
            InstOp::Param(slot) if self.builder.params[slot as usize] >= ACROSS_SIDE_MIN => Some(slot),
            _ => None,
        });
        let [Some(stride), Some(extent)] = slots else { return };
        let mut bytes = 0;
        for &(load, first, end) in &self.across {
            let inst = &mut self.builder.insts[load.0 as usize];
            bytes += inst.dtype.gpu_bytes() * ACROSS_TILE_ELEMENTS;
            if let InstOp::Load { run, .. } = &mut inst.op
                && (first, end) == (from, to)
                && bytes <= ACROSS_BYTES_MAX
            {
                *run = Run::Across { stride, extent };
            }
        }
    }

    /// Lets flat outputs take over the memory of dying operands that are read at the flat index only.
    fn reuse(&mut self, dies: &dyn Fn(Source) -> bool) -> Vec<(u32, Source)> {
        let mut in_place = Vec::new();
        let mut removed: Vec<u16> = Vec::new();
        if let Some((base, out)) = self.patched_where_it_is_read(dies) {
            removed.push(base);
            self.redirect(base, out);
        }
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

    /// For a patch that reads its dying base only at elements that it overwrites itself, or at elements that no store
    /// overwrites (`a(:,k) = a(:,k-1) + a(:,k)`, FUSE-7): the operands of the base and of the target, which may be the
    /// same.
    fn patched_where_it_is_read(&self, dies: &dyn Fn(Source) -> bool) -> Option<(u16, u16)> {
        let root = self.cluster.roots[0].0;
        let node = &self.work.nodes[root as usize];
        if node.class != Class::Patch {
            return None;
        }
        let base = source_of(node.args[0]);
        let (&read, &out) = (self.operand_of.get(&base)?, self.operand_of.get(&Source::Node(root))?);
        (node.takes_over && dies(base)).then_some((read, out))
    }

    fn elements_of(&self, source: Source) -> usize {
        match source {
            Source::Node(n) => self.work.nodes[n as usize].meta.elements(),
            Source::Input(i) => self.work.region.inputs[i as usize].meta.elements(),
            Source::Scratch(words) => words as usize,
            Source::Pack(_) => 0,
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
