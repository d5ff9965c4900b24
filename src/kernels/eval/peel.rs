//! Cuts the columns of a map where the answers to conditions on indices change. Updates of slices, pads and shifts
//! evaluate such conditions for each element, but all elements of a segment of a column get the same answers.
//!
//! In: a kernel. Out: passes with known answers, for the segments of columns (`columns`). Such a pass evaluates only
//! the chosen arguments of selects, has no guards, and gets the indices of its loads as lines.
//!
//! Must hold: a pass computes, for the elements of its segment, the values that the whole pass computes.

use super::stage::{self, Part, Stage};
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Inst, InstOp, Kernel, Level, Val};
use std::sync::OnceLock;

/// The most passes with known answers that are kept for a kernel.
const PASSES_MAX: usize = 24;

/// The index arithmetic of a kernel, its conditions, and its passes with known answers.
#[derive(Debug)]
pub(super) struct Peeled {
    /// Instructions that may be lines along a column, in order.
    pub lines: Vec<u32>,
    /// Conditions on lines that vary with the element, in order.
    pub conditions: Vec<u32>,
    /// The conditions that an instruction which is no condition itself reads. The answer to condition `n` of this list
    /// is bit `n` of a pass's key.
    pub asked: Vec<u32>,
    passes: [OnceLock<(u64, Pass)>; PASSES_MAX],
}

/// A pass with known answers.
#[derive(Debug)]
pub(super) struct Pass {
    /// The kernel, in which the answers are constants.
    pub kernel: Kernel,
    /// The instructions that are evaluated.
    pub stage: Stage,
    /// The lines that its instructions read.
    pub lines: Vec<u32>,
    /// The conditions that its instructions read, with their answers.
    pub answers: Vec<(u32, bool)>,
}

impl Peeled {
    /// `None` for a kernel without index arithmetic on an element's position.
    pub fn of(kernel: &Kernel, whole: &Stage) -> Option<Peeled> {
        let mut is_line = vec![false; kernel.insts.len()];
        let mut is_condition = vec![false; kernel.insts.len()];
        let (mut lines, mut conditions) = (Vec::new(), Vec::new());
        for &at in &whole.order {
            let line = |v: Val| {
                is_line[v.0 as usize] || matches!(kernel.inst(v), Inst { level: Level::Uniform, dtype: DType::U32, .. })
            };
            let condition = |v: Val| is_condition[v.0 as usize] || is_uniform_condition(kernel, v);
            match &kernel.insts[at as usize].op {
                InstOp::Flat => is_line[at as usize] = true,
                InstOp::Index(_, a, b) => is_line[at as usize] = line(*a) && line(*b),
                InstOp::Compare(_, a, b) => is_condition[at as usize] = line(*a) && line(*b),
                InstOp::Apply(ElementOp::And, args) => {
                    is_condition[at as usize] = args.iter().all(|&arg| condition(arg));
                }
                _ => {}
            }
            if is_line[at as usize] {
                lines.push(at);
            } else if is_condition[at as usize] {
                conditions.push(at);
            }
        }
        let mut is_asked = vec![false; kernel.insts.len()];
        let mut ask = |v: Val| {
            is_asked[v.0 as usize] |= is_condition[v.0 as usize] || is_uniform_condition(kernel, v);
        };
        for &at in whole.order.iter().filter(|&&at| !is_condition[at as usize]) {
            stage::arguments(&kernel.insts[at as usize], &mut ask);
        }
        kernel.stores.iter().flat_map(stage::store_values).for_each(&mut ask);
        let asked: Vec<u32> = (0..kernel.insts.len() as u32).filter(|&at| is_asked[at as usize]).collect();
        let pays = lines.len() > 1 || !conditions.is_empty();
        let fits = asked.len() <= u64::BITS as usize;
        (pays && fits).then(|| Peeled { lines, conditions, asked, passes: Default::default() })
    }

    /// The pass with these answers. `None` if there is none, and [`PASSES_MAX`] passes are kept already.
    pub fn pass(&self, kernel: &Kernel, key: u64) -> Option<&Pass> {
        let mut slots = self.passes.iter().map(|slot| slot.get_or_init(|| (key, self.build(kernel, key))));
        slots.find(|(of, _)| *of == key).map(|(_, pass)| pass)
    }

    fn build(&self, kernel: &Kernel, key: u64) -> Pass {
        let mut known: Vec<Option<bool>> = vec![None; kernel.insts.len()];
        for (number, &at) in self.asked.iter().enumerate() {
            known[at as usize] = Some(key >> number & 1 != 0);
        }
        let known = |v: Val| known[v.0 as usize];
        // For each value, the value that replaces it; itself, if none does.
        let mut same: Vec<Val> = (0..kernel.insts.len() as u32).map(Val).collect();
        let mut of_answers = kernel.clone();
        for (at, inst) in of_answers.insts.iter_mut().enumerate() {
            match &mut inst.op {
                InstOp::Apply(op, args) => {
                    args.iter_mut().for_each(|arg| *arg = same[arg.0 as usize]);
                    if *op == ElementOp::Select
                        && let Some(answer) = known(args[0])
                    {
                        same[at] = args[if answer { 1 } else { 2 }];
                    }
                }
                InstOp::Load { index, guard, .. } => {
                    *index = same[index.0 as usize];
                    *guard = guard.filter(|&guard| known(guard) != Some(true));
                }
                InstOp::Check { index, guard, .. } => {
                    *index = same[index.0 as usize];
                    *guard = guard.filter(|&guard| known(guard) != Some(true));
                }
                InstOp::Require { condition, guard, .. } => {
                    *condition = same[condition.0 as usize];
                    *guard = guard.filter(|&guard| known(guard) != Some(true));
                }
                InstOp::Random { element, params, .. } => {
                    *element = same[element.0 as usize];
                    params.iter_mut().for_each(|param| *param = same[param.0 as usize]);
                }
                InstOp::Param(_) | InstOp::Flat | InstOp::Outer | InstOp::Inner => {}
                InstOp::Index(..) | InstOp::Compare(..) => {}
                InstOp::Reduce { .. } | InstOp::Project(..) | InstOp::Scan { .. } => {}
            }
        }
        of_answers.stores.retain(|store| store.guard.is_none_or(|guard| known(guard) != Some(false)));
        for store in &mut of_answers.stores {
            store.value = same[store.value.0 as usize];
            store.index = store.index.map(|index| same[index.0 as usize]);
            store.guard = store.guard.filter(|&guard| known(guard).is_none());
        }
        self.pass_over(of_answers, known)
    }

    /// Makes the pass over a kernel whose answers are constants.
    fn pass_over(&self, kernel: Kernel, known: impl Fn(Val) -> Option<bool>) -> Pass {
        let mut stage = Stage::new(&kernel, Part::Whole);
        stage.order.retain(|at| !self.lines.contains(at) && !self.conditions.contains(at));
        let mut lines = Vec::new();
        let mut answers = Vec::new();
        let mut read = |v: Val| {
            if self.lines.contains(&v.0) && !lines.contains(&v.0) {
                lines.push(v.0);
            }
            if let Some(answer) = known(v)
                && kernel.inst(v).level != Level::Uniform
                && !answers.contains(&(v.0, answer))
            {
                answers.push((v.0, answer));
            }
        };
        for &at in &stage.order {
            stage.arguments(&kernel, at, &mut read);
        }
        for &store in &stage.stores {
            stage::store_values(&kernel.stores[store as usize]).for_each(&mut read);
        }
        Pass { kernel, stage, lines, answers }
    }
}

fn is_uniform_condition(kernel: &Kernel, v: Val) -> bool {
    matches!(kernel.inst(v), Inst { level: Level::Uniform, dtype: DType::Bool, .. })
}
