//! Stages: which instructions a pass over the blocks of a kernel evaluates, and in which registers.
//!
//! In: a kernel and the part of it that a pass evaluates. Out: the order of instructions, a block register for each,
//! and which instructions write their operand directly.
//!
//! Must hold:
//! - EVAL-2: an instruction's register is not that of any value that is still needed, its own arguments included. The
//!   value of a select may lie in the register of one of its arguments, so these registers are needed as long as that
//!   value is.

use super::across::Tiled;
use super::chain::{self, Chain};
use super::peel::Peeled;
use crate::graph::ElementOp;
use crate::kernels::ir::{Access, Form, Inst, InstOp, Kernel, Level, Run, Store, Val};
use smallvec::SmallVec;

/// Stands for "no operand" or "no register" in a list of numbers.
pub(super) const NONE: u16 = u16::MAX;

/// One pass over blocks.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Instructions to evaluate for each block, in order.
    pub order: Vec<u32>,
    /// Stores to do after them, in order.
    pub stores: Vec<u32>,
    /// The block register of each instruction of the kernel.
    pub register: Vec<u16>,
    /// How many registers there are.
    pub registers: usize,
    /// For each instruction, the operand in whose memory its block lies, because its value is stored there; or
    /// [`NONE`].
    pub direct: Vec<u16>,
    /// The chain that ends with each instruction of the kernel, if one does. The other ops of chains are not in
    /// `order`.
    pub chains: Vec<Option<Box<Chain>>>,
    /// Whether each load must copy its block, because the operand is written before the last use of the value.
    pub copied: Vec<bool>,
    /// The first `once` instructions of `order` are evaluated once, before a loop's turns; the others in each turn.
    pub once: usize,
    /// Instructions whose values are numbers of a loop's turn, in order.
    pub numbers: Vec<u32>,
}

/// The part of a kernel that a stage evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Instructions whose values are the same for the whole launch.
    Uniform,
    /// Everything else of a `Map` or `Scan`.
    Whole,
    /// In a reduction: the values that are folded, and the stores of elements.
    Fold,
    /// In a reduction: everything that is computed from the results of folds.
    Finish,
    /// In a `Map`: the indices of loads that run across.
    Indices,
    /// In a `Map`: everything but the indices of loads that run across.
    Rows,
}

/// The passes of a kernel, which depend on the kernel alone.
#[derive(Debug)]
pub(super) struct Passes {
    /// `Part::Uniform`.
    pub uniform: Stage,
    /// `Part::Fold` of a reduction, `Part::Whole` of other forms.
    pub main: Stage,
    /// `Part::Finish` of a reduction; empty for other forms.
    pub finish: Stage,
    /// `Part::Indices` and `Part::Rows` of a kernel with loads that run across.
    pub tiled: Option<Tiled>,
    /// Variants of `Part::Whole` of a `Map` for known answers to its conditions on indices, if it has index arithmetic.
    pub peeled: Option<Peeled>,
}

impl Passes {
    /// Makes the passes of a kernel.
    pub fn of(kernel: &Kernel) -> Passes {
        let uniform = Stage::new(kernel, Part::Uniform);
        let (main, finish) = match kernel.form {
            Form::Reduce { .. } => (Stage::new(kernel, Part::Fold), Stage::new(kernel, Part::Finish)),
            Form::Map | Form::Scan { .. } | Form::Line(_) => (Stage::new(kernel, Part::Whole), Stage::default()),
        };
        let tiled = kernel
            .across()
            .map(|_| Tiled { indices: Stage::new(kernel, Part::Indices), rows: Stage::new(kernel, Part::Rows) });
        let peeled = if kernel.form == Form::Map && kernel.rolled.is_none() { Peeled::of(kernel, &main) } else { None };
        Passes { uniform, main, finish, tiled, peeled }
    }
}

/// The values that each turn of a loop hands to the next one.
pub(super) fn carried(kernel: &Kernel) -> impl Iterator<Item = Val> + '_ {
    kernel.rolled.iter().flat_map(|rolled| &rolled.carries).map(|carry| carry.next)
}

/// Calls `f` with every argument of an instruction.
pub(super) fn arguments(inst: &Inst, mut f: impl FnMut(Val)) {
    match &inst.op {
        InstOp::Param(_) | InstOp::Flat | InstOp::Outer | InstOp::Inner => {}
        InstOp::Index(_, a, b) | InstOp::Compare(_, a, b) => {
            f(*a);
            f(*b);
        }
        InstOp::Load { index, guard, .. } => {
            f(*index);
            guard.iter().copied().for_each(f);
        }
        InstOp::Apply(_, args) => args.iter().copied().for_each(f),
        InstOp::Check { index, extent, guard, .. } => {
            f(*index);
            f(*extent);
            guard.iter().copied().for_each(f);
        }
        InstOp::Require { condition, guard, .. } => {
            f(*condition);
            guard.iter().copied().for_each(f);
        }
        InstOp::Random { element, params, .. } => {
            f(*element);
            params.iter().copied().for_each(f);
        }
        InstOp::Reduce { args, .. } => args.iter().copied().for_each(f),
        InstOp::Project(of, _) => f(*of),
        InstOp::Scan { arg, .. } => f(*arg),
    }
}

/// The arguments of an instruction whose memory may become its value without a copy.
fn choices(inst: &Inst) -> &[Val] {
    match &inst.op {
        InstOp::Apply(ElementOp::Select, args) => &args[1..],
        _ => &[],
    }
}

/// The values that a store reads.
pub(super) fn store_values(store: &Store) -> impl Iterator<Item = Val> {
    [Some(store.value), store.index, store.guard].into_iter().flatten()
}

fn runs_across(inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Load { run: Run::Across { .. }, .. })
}

fn across_indices(kernel: &Kernel) -> impl Iterator<Item = Val> + '_ {
    kernel.insts.iter().filter_map(|inst| match inst.op {
        InstOp::Load { index, run: Run::Across { .. }, .. } => Some(index),
        _ => None,
    })
}

/// Whether a store of a reduction is done for each element and not for each output.
fn is_element_store(kernel: &Kernel, store: &Store) -> bool {
    store_values(store).any(|v| kernel.inst(v).level == Level::Element)
}

impl Stage {
    /// The stage of this part of a kernel.
    pub fn new(kernel: &Kernel, part: Part) -> Stage {
        let mut needed = vec![false; kernel.insts.len()];
        let mut stores = Vec::new();
        for (number, store) in kernel.stores.iter().enumerate() {
            let here = match part {
                Part::Uniform | Part::Whole | Part::Rows => true,
                Part::Fold => is_element_store(kernel, store),
                Part::Finish => !is_element_store(kernel, store),
                Part::Indices => false,
            };
            if here {
                store_values(store).for_each(|v| needed[v.0 as usize] = true);
            }
            if here && part != Part::Uniform {
                stores.push(number as u32);
            }
        }
        if matches!(part, Part::Fold | Part::Uniform) {
            for (slot, inst) in needed.iter_mut().zip(&kernel.insts) {
                *slot |= matches!(inst.op, InstOp::Reduce { .. });
            }
        }
        // Checks are always needed, even if no instruction reads their value, because they set fault words.
        for (slot, inst) in needed.iter_mut().zip(&kernel.insts) {
            let here = match part {
                Part::Uniform | Part::Whole | Part::Rows => true,
                Part::Fold => inst.level == Level::Element,
                Part::Finish => inst.level != Level::Element,
                Part::Indices => false,
            };
            *slot |= here && matches!(inst.op, InstOp::Check { .. } | InstOp::Require { .. });
        }
        if part == Part::Indices {
            across_indices(kernel).for_each(|index| needed[index.0 as usize] = true);
        }
        let mut order = Vec::new();
        for (at, inst) in kernel.insts.iter().enumerate().rev() {
            if !needed[at] {
                continue;
            }
            let stops = match part {
                Part::Uniform => false,
                Part::Finish => inst.level == Level::Uniform || matches!(inst.op, InstOp::Reduce { .. }),
                Part::Whole | Part::Fold | Part::Indices => inst.level == Level::Uniform,
                Part::Rows => inst.level == Level::Uniform || runs_across(inst),
            };
            if !stops {
                arguments(inst, |v| needed[v.0 as usize] = true);
            }
            let here = match part {
                Part::Uniform => inst.level == Level::Uniform,
                // A fold of a uniform value must still be evaluated for each element.
                _ => inst.level != Level::Uniform || matches!(inst.op, InstOp::Reduce { .. }),
            };
            if here && !(part == Part::Uniform && matches!(inst.op, InstOp::Reduce { .. })) {
                order.push(at as u32);
            }
        }
        order.reverse();
        if part == Part::Fold {
            // Values that only `Part::Finish` computes have level Reduced.
            order.retain(|&at| {
                let inst = &kernel.insts[at as usize];
                inst.level != Level::Reduced || matches!(inst.op, InstOp::Reduce { .. })
            });
        }
        let chains = match part {
            Part::Uniform => vec![None; kernel.insts.len()],
            _ => chain::find(kernel, &mut order, &stores),
        };
        let mut stage = Stage { order, stores, chains, ..Stage::default() };
        if part == Part::Whole && kernel.rolled.is_some() {
            stage.find_turns(kernel);
        }
        stage.allocate(kernel, part);
        stage.find_direct(kernel, part);
        stage
    }

    /// Divides the order of a loop into the instructions that are evaluated once, among them the first loads of carried
    /// values, and those that are evaluated in each turn.
    fn find_turns(&mut self, kernel: &Kernel) {
        let varies = kernel.varies();
        let is_of_turn = |at: u32| varies[at as usize] && kernel.carried_by(at as usize).is_none();
        let (each, mut order): (Vec<u32>, Vec<u32>) = self.order.iter().partition(|&&at| is_of_turn(at));
        self.once = order.len();
        order.extend(each);
        self.order = order;
        let is_number = |at: &u32| kernel.insts[*at as usize].level == Level::Uniform && is_of_turn(*at);
        self.numbers = (0..kernel.insts.len() as u32).filter(is_number).collect();
    }

    /// Calls `f` with every argument of an instruction of `order`. If it ends a chain, these are the chain's arguments.
    pub fn arguments(&self, kernel: &Kernel, at: u32, f: impl FnMut(Val)) {
        match &self.chains[at as usize] {
            Some(chain) => chain.arguments(f),
            None => arguments(&kernel.insts[at as usize], f),
        }
    }

    /// Assigns registers by linear scan: a register is free again after the last use of its value.
    fn allocate(&mut self, kernel: &Kernel, part: Part) {
        const END: u32 = u32::MAX;
        let mut last_use = vec![0u32; kernel.insts.len()];
        for (position, &at) in self.order.iter().enumerate() {
            self.arguments(kernel, at, |v| last_use[v.0 as usize] = position as u32);
        }
        for &store in &self.stores {
            store_values(&kernel.stores[store as usize]).for_each(|v| last_use[v.0 as usize] = END);
        }
        if part == Part::Indices {
            across_indices(kernel).for_each(|index| last_use[index.0 as usize] = END);
        }
        // Values that are evaluated once are read in each turn, and the carried values of a turn are read in the next
        // one.
        self.order[..self.once].iter().for_each(|&at| last_use[at as usize] = END);
        carried(kernel).for_each(|val| last_use[val.0 as usize] = END);
        for &at in self.order.iter().rev() {
            for &choice in choices(&kernel.insts[at as usize]) {
                last_use[choice.0 as usize] = last_use[choice.0 as usize].max(last_use[at as usize]);
            }
        }
        // Instructions sorted by the position of their last use. The earliest is at the end, where `pop_if` takes it.
        let mut ends: Vec<(u32, u32)> = self.order.iter().map(|&at| (last_use[at as usize], at)).collect();
        ends.retain(|&(position, _)| position != 0 && position != END);
        ends.sort_unstable_by(|a, b| b.cmp(a));
        self.register = vec![NONE; kernel.insts.len()];
        let mut free: Vec<u16> = Vec::new();
        for (position, &at) in self.order.iter().enumerate() {
            let register = free.pop().unwrap_or_else(|| {
                self.registers += 1;
                (self.registers - 1) as u16
            });
            self.register[at as usize] = register;
            while let Some((_, ended)) = ends.pop_if(|(end, _)| *end == position as u32) {
                free.push(self.register[ended as usize]);
            }
            if last_use[at as usize] == 0 {
                // No instruction of this stage reads the value: it is a check or a fold.
                free.push(register);
            }
        }
        // Two sets of registers for the carried values of a loop follow all others (`rolled`).
        self.registers += 2 * carried(kernel).count();
    }

    /// Whether the chain that makes a value may write it over the elements of an operand: they are loaded only at the
    /// lanes where they are written, and no other instruction reads them later.
    fn is_read_before(&self, kernel: &Kernel, operand: u16, value: Val) -> bool {
        if self.chains[value.0 as usize].is_none() {
            return false;
        }
        let loads = |v: Val| matches!(kernel.inst(v).op, InstOp::Load { operand: from, .. } if from == operand);
        let stays = |at: &u32| match kernel.insts[*at as usize].op {
            InstOp::Load { operand: from, index, guard, .. } if from == operand => {
                kernel.inst(index).op == InstOp::Flat && guard.is_none()
            }
            _ => !choices(&kernel.insts[*at as usize]).iter().copied().any(loads),
        };
        let written = self.order.iter().position(|&at| at == value.0);
        let mut is_read_later = false;
        for &at in self.order.iter().skip(written.map_or(0, |at| at + 1)) {
            self.arguments(kernel, at, |v| is_read_later |= loads(v));
        }
        let is_stored = self.stores.iter().flat_map(|&at| store_values(&kernel.stores[at as usize])).any(loads);
        self.order.iter().all(stays) && !is_read_later && !is_stored
    }

    fn find_direct(&mut self, kernel: &Kernel, part: Part) {
        self.direct = vec![NONE; kernel.insts.len()];
        self.copied = vec![false; kernel.insts.len()];
        for &number in &self.stores {
            let store = &kernel.stores[number as usize];
            let operand = &kernel.operands[store.operand as usize];
            let alone = kernel.stores.iter().filter(|s| s.operand == store.operand).count() == 1;
            let inst = kernel.inst(store.value);
            let makes_block = matches!(inst.op, InstOp::Apply(..) | InstOp::Load { .. } | InstOp::Random { .. });
            let natural = store.index.is_none() && store.guard.is_none();
            let is_free = operand.access == Access::Write
                || (part == Part::Whole && self.is_read_before(kernel, store.operand, store.value));
            // A loop's stores come after its last turn, but its first turn must read the operand's old elements.
            if is_free && alone && natural && makes_block && kernel.rolled.is_none() {
                self.direct[store.value.0 as usize] = store.operand;
            }
            let mut stored: SmallVec<[Val; 4]> = store_values(store).collect();
            let mut next = 0;
            while let Some(&val) = stored.get(next) {
                next += 1;
                match kernel.inst(val).op {
                    InstOp::Load { operand, .. } if kernel.operands[operand as usize].access == Access::ReadWrite => {
                        self.copied[val.0 as usize] = true;
                    }
                    _ => {
                        let more = choices(kernel.inst(val)).iter().copied().filter(|choice| !stored.contains(choice));
                        stored.extend(more.collect::<SmallVec<[Val; 2]>>());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::DType;
    use crate::kernels::ir::{Form, Operand, Run};
    use smallvec::smallvec;

    /// `y = op(op(op(x, x), x), ...)`, with 40 ops.
    fn chain(op: ElementOp) -> Kernel {
        let element = |op| Inst { op, dtype: DType::F32, level: Level::Element };
        let mut insts = vec![
            Inst { op: InstOp::Flat, dtype: DType::U32, level: Level::Element },
            element(InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: None }),
        ];
        for n in 0..40 {
            insts.push(element(InstOp::Apply(op, smallvec![Val(n + 1), Val(1)])));
        }
        let operand = |access| Operand { dtype: DType::F32, access, tiled: true, segments: 1 };
        Kernel {
            form: Form::Map,
            operands: vec![operand(Access::Read), operand(Access::Write)],
            scratch: None,
            faults: false,
            params: 16,
            insts,
            stores: vec![Store { operand: 1, index: None, value: Val(41), guard: None }],
            rolled: None,
        }
    }

    #[test]
    fn a_chain_of_forty_ops_needs_three_registers_and_its_last_op_writes_the_output() {
        let kernel = chain(ElementOp::Max);
        let stage = Stage::new(&kernel, Part::Whole);
        assert_eq!(stage.order.len(), 42);
        assert!(stage.registers <= 4, "{} registers", stage.registers);
        assert_eq!(stage.direct[41], 1);
        assert_eq!(stage.direct[40], NONE);
        for &at in &stage.order {
            stage.arguments(&kernel, at, |v| {
                assert_ne!(stage.register[v.0 as usize], stage.register[at as usize], "EVAL-2");
            });
        }
    }

    #[test]
    fn arithmetic_in_a_row_is_evaluated_in_chains_of_sixteen() {
        let kernel = chain(ElementOp::Add);
        let stage = Stage::new(&kernel, Part::Whole);
        // The flat index, the load, and the ends of three chains. The first op reads `x` twice.
        assert_eq!(stage.order, [0, 1, 17, 33, 41]);
        assert_eq!(stage.direct[41], 1);
    }

    #[test]
    fn an_operand_is_written_in_place_where_nothing_reads_it_later() {
        let mut kernel = chain(ElementOp::Add);
        kernel.operands = vec![Operand { access: Access::ReadWrite, ..kernel.operands[0] }];
        kernel.stores[0].operand = 0;
        let stage = Stage::new(&kernel, Part::Whole);
        assert_eq!(stage.direct[41], 0, "the last chain reads it, and writes over it");
        kernel.stores[0].value = Val(33);
        kernel.stores.push(Store { operand: 0, index: Some(Val(0)), value: Val(41), guard: None });
        assert_eq!(Stage::new(&kernel, Part::Whole).direct[33], NONE, "the last chain reads it after that");
    }
}
