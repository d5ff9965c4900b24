//! Finds the last use of every variable. There its value is moved, so that it can be changed in place, and is freed
//! early.
//!
//! In: finished code. Out: the same code, with `last` set on the instructions that read a variable for the last time,
//! and with stores that are never read turned into pops. Code that can name variables when it runs (`eval`, `exist`,
//! `who`, `load`, `save`, …) is left unchanged. If a script's variables are wanted afterwards, all of them live at its
//! end.

use super::code::{Code, Inst, Kind, Slot};
use crate::value::{Function, Value};
use crate::{builtins, library};

/// Functions that can read or make variables by name.
const NAMING: &[&str] = &[
    "eval",
    "evalc",
    "evalin",
    "assignin",
    "exist",
    "which",
    "type",
    "who",
    "whos",
    "save",
    "load",
    "inputname",
    "source",
    "run",
    "clear",
    "clearvars",
    "isglobal",
];

/// Marks last uses. With `kept`, all variables are read after the code's end.
pub(super) fn mark_last_uses(code: &mut Code, kept: bool) {
    if names_variables(code) {
        return;
    }
    let words = code.names.len().div_ceil(64).max(1);
    let n = code.insts.len();
    if n.saturating_mul(words) > 1 << 24 {
        return;
    }
    let live_after = solve(code, words, kept);
    // Globals and persistents outlive the call, and other functions see shared variables.
    let statics: Vec<Slot> = (code.insts.iter())
        .filter_map(|i| match i {
            Inst::Global(slot) | Inst::Persistent(slot) => Some(*slot),
            _ => None,
        })
        .chain(code.sharing.iter().flat_map(|sharing| sharing.slots()))
        .collect();
    for i in 0..n {
        let after = &live_after[i * words..(i + 1) * words];
        let lives = |slot: Slot| statics.contains(&slot) || after[slot as usize / 64] >> (slot % 64) & 1 == 1;
        match &mut code.insts[i] {
            Inst::Load { slot, last, .. } | Inst::Apply { slot, last, .. } => *last = !lives(*slot),
            inst @ Inst::Store(_) => {
                let Inst::Store(slot) = *inst else { continue };
                if !lives(slot) {
                    *inst = Inst::Pop;
                }
            }
            _ => {}
        }
    }
    // The loop above removed stores to slots that no instruction reads, so `assigned` is found anew.
    code.find_assigned();
}

/// Whether a statement is only a name, and neither a variable nor a function of the language has this name. It may be a
/// script's, and scripts see their caller's variables.
fn calls_scripts(code: &Code) -> bool {
    code.insts.iter().any(|inst| match inst {
        Inst::Answer { name: Some(slot), .. } => {
            let name = &*code.names[*slot as usize];
            builtins::find(name).is_none() && library::find(name).is_none() && !code.assigned.contains(slot)
        }
        _ => false,
    })
}

fn names_variables(code: &Code) -> bool {
    let called = |name: &str| NAMING.contains(&name);
    let calls_by_name = code.names.iter().any(|n| ["feval", "cellfun", "arrayfun", "str2func"].contains(&&**n));
    code.kind == Kind::Eval
        || calls_scripts(code)
        || code.names.iter().any(|n| called(n))
        // A handle of such a function, or its name as a text beside a function that calls by name, counts, too.
        || code.consts.iter().any(|constant| match constant {
            Value::Function(function) => matches!(&**function, Function::Named(name, _) if called(name)),
            Value::Tensor(_) if calls_by_name => constant.as_text().is_some_and(|text| called(&text)),
            _ => false,
        })
        || code.insts.iter().any(|inst| match inst {
            Inst::Call { name, .. } => {
                matches!(&code.consts[*name as usize], v @ Value::Tensor(_) if v.as_text().is_some_and(|t| called(&t)))
            }
            _ => false,
        })
}

/// Returns the variables that are live after each instruction, as bit sets of `words` words.
fn solve(code: &Code, words: usize, kept: bool) -> Vec<u64> {
    let n = code.insts.len();
    let mut live_before = vec![0u64; n * words];
    let mut live_after = vec![0u64; n * words];
    let handlers = handlers(code);
    let mut at_return = vec![if kept { u64::MAX } else { 0 }; words];
    for slot in code.outputs.iter().chain(&code.varargout) {
        at_return[*slot as usize / 64] |= 1 << (slot % 64);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for i in (0..n).rev() {
            let mut after = vec![0u64; words];
            let mut join = |to: usize| {
                if to < n {
                    for (w, word) in after.iter_mut().enumerate() {
                        *word |= live_before[to * words + w];
                    }
                }
            };
            let (next, jump) = successors(&code.insts[i], i);
            next.into_iter().for_each(&mut join);
            jump.into_iter().for_each(&mut join);
            handlers[i].iter().for_each(|&h| join(h));
            // When a loop ends, its variable keeps the value that the body left. On this path it is not written.
            let at_exit = match &code.insts[i] {
                Inst::ForNext { slot, exit } => {
                    let exit = *exit as usize * words + *slot as usize / 64;
                    (live_before.get(exit).copied().unwrap_or(0) >> (slot % 64) & 1 == 1).then_some(*slot)
                }
                _ => None,
            };
            if matches!(code.insts[i], Inst::Return) {
                after.iter_mut().zip(&at_return).for_each(|(a, r)| *a |= r);
            }
            let mut before = after.clone();
            let handled = !handlers[i].is_empty();
            let (reads, writes) = uses(code, &code.insts[i]);
            if let Some(slot) = writes.filter(|_| !handled) {
                before[slot as usize / 64] &= !(1 << (slot % 64));
            }
            for slot in reads.into_iter().chain(at_exit) {
                before[slot as usize / 64] |= 1 << (slot % 64);
            }
            let range = i * words..(i + 1) * words;
            if live_before[range.clone()] != before[..] || live_after[range.clone()] != after[..] {
                live_before[range.clone()].copy_from_slice(&before);
                live_after[range].copy_from_slice(&after);
                changed = true;
            }
        }
    }
    live_after
}

/// Returns the instructions that may follow an instruction: the next one, and the target of its jump.
fn successors(inst: &Inst, i: usize) -> (Option<usize>, Option<usize>) {
    match inst {
        Inst::Jump(to) => (None, Some(*to as usize)),
        Inst::JumpIf { to, .. } | Inst::JumpIfDefined { to, .. } | Inst::JumpIfDecided { to, .. } => {
            (Some(i + 1), Some(*to as usize))
        }
        Inst::ForNext { exit, .. } | Inst::ForNextTop { exit } => (Some(i + 1), Some(*exit as usize)),
        Inst::TryBegin { handler } => (Some(i + 1), Some(*handler as usize)),
        Inst::Return | Inst::Rethrow => (None, None),
        _ => (Some(i + 1), None),
    }
}

/// Returns the variables that an instruction reads, and the one that it overwrites.
fn uses(code: &Code, inst: &Inst) -> (Vec<Slot>, Option<Slot>) {
    match inst {
        Inst::Load { slot, .. } | Inst::Apply { slot, .. } | Inst::BaseSlot(slot) | Inst::Show(slot) => {
            (vec![*slot], None)
        }
        Inst::BasePath { slot, .. }
        | Inst::StoreAt { slot, .. }
        | Inst::DeleteAt { slot, .. }
        | Inst::Target { slot, .. }
        | Inst::StoreTarget { slot, .. } => (vec![*slot], None),
        Inst::JumpIfDefined { slot, .. } => (vec![*slot], None),
        Inst::Answer { name: Some(slot), .. } => (vec![*slot], None),
        Inst::Store(slot) | Inst::ForNext { slot, .. } => (Vec::new(), Some(*slot)),
        Inst::Caught(Some(slot)) => (Vec::new(), Some(*slot)),
        // The value of a global or persistent does not end with the frame.
        Inst::Global(slot) | Inst::Persistent(slot) => (vec![*slot], None),
        Inst::Closure(index) => (code.closures[*index as usize].captures.iter().map(|c| c.0).collect(), None),
        _ => (Vec::new(), None),
    }
}

/// Returns, for each instruction, the handlers that its errors may reach.
fn handlers(code: &Code) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); code.insts.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    // Tries nest in the text. An early end (`break` out of a try) is a copy of `TryEnd` inside of the try. So a try
    // covers exactly the instructions between its `TryBegin` and its handler.
    for (i, inst) in code.insts.iter().enumerate() {
        open.retain(|&(_, handler)| i < handler);
        all[i] = open.iter().map(|&(_, handler)| handler).collect();
        if let Inst::TryBegin { handler } = inst {
            open.push((i, *handler as usize));
        }
    }
    all
}
