//! Assignments in which a target takes as many values as it has places: `[c{1:2}, s.x] = f ()`.
//!
//! Must hold: the places are counted, and the subscripts evaluated, before the value is computed. Meanwhile they are
//! kept in a list of their own, which ends with the statement.

use super::Interp;
use super::call::missing;
use super::frame::Activation;
use crate::compile::code::{Inst, Kind, Slot, is_in};
use crate::error::{Flow, fail};
use crate::index::{self, Access};
use crate::value::{Dims, Value};

/// The targets of one assignment.
#[derive(Default)]
pub(super) struct Targets {
    each: Vec<Waiting>,
}

/// A target: the path to its place in the variable, and how many values it takes.
struct Waiting {
    /// Empty if the variable becomes a cell that holds the value.
    steps: Vec<Access>,
    places: usize,
    /// Whether it is `~`.
    ignored: bool,
    /// Whether it is all of an empty variable, `c{…}`. If such a target stands alone, it takes a value although none
    /// was asked for, as `[varargout{1:nargout}] = f ()` needs it.
    is_empty: bool,
}

impl Targets {
    /// Returns the target if it stands alone and takes a value that was not asked for.
    fn unasked(&mut self) -> Option<&mut Waiting> {
        match &mut self.each[..] {
            [waiting] if waiting.is_empty && waiting.places == 0 => Some(waiting),
            _ => None,
        }
    }

    fn places(&self) -> usize {
        self.each.iter().map(|t| t.places).sum()
    }

    /// Tells for each value whether it goes to a `~`.
    fn ignored(&self) -> Vec<bool> {
        self.each.iter().flat_map(|t| std::iter::repeat_n(t.ignored, t.places)).collect()
    }

    /// The number, from 1, of the first value that a target takes.
    fn first(&self, target: usize) -> usize {
        self.each[..target].iter().map(|t| t.places).sum::<usize>() + 1
    }
}

impl Interp {
    /// How many values the targets of the innermost assignment take.
    pub(super) fn targets_places(&self) -> usize {
        self.targets.last().map_or(1, Targets::places)
    }

    /// Tells for each output of the innermost function, from the first on, whether it goes to a `~`. An anonymous
    /// function or `feval` in between passes on what its own caller wants.
    pub fn ignored_outputs(&self) -> Vec<bool> {
        let is_inside = |a: &&Activation| match a {
            Activation::Code(frame) => frame.code.kind == Kind::Eval,
            Activation::Task(_) => true,
        };
        let mut calls = self.frames.iter().rev().skip_while(is_inside);
        let mut heights = calls.next().map(Activation::heights).unwrap_or_default();
        for call in calls {
            if let Activation::Code(caller) = call {
                match caller.code.insts.get(caller.pc + 1) {
                    Some(&Inst::Spread { n, ignored }) => {
                        return (0..u32::from(n)).map(|i| is_in(ignored, i)).collect();
                    }
                    Some(Inst::SpreadTargets) => {
                        let targets = heights.targets.checked_sub(1).and_then(|i| self.targets.get(i));
                        return targets.map_or_else(Vec::new, Targets::ignored);
                    }
                    Some(Inst::Return) if caller.code.kind != Kind::Function => {}
                    _ => return Vec::new(),
                }
            }
            heights = call.heights();
        }
        Vec::new()
    }

    fn wait_for(&mut self, waiting: Waiting) {
        if let Some(targets) = self.targets.last_mut() {
            targets.each.push(waiting);
        }
    }

    /// Adds a target that takes one value.
    pub(super) fn target_plain(&mut self, ignored: bool) {
        self.wait_for(Waiting { steps: Vec::new(), places: 1, ignored, is_empty: false });
    }

    /// Turns the values above the last mark into as many values as there are places, in reverse order.
    pub(super) fn spread_targets(&mut self) -> Flow<()> {
        let ignored = self.targets.last().map_or_else(Vec::new, Targets::ignored);
        self.all_set(|i| ignored.get(i).is_some_and(|&ignored| ignored))?;
        let is_given = self.marks.last().is_some_and(|&mark| mark < self.stack.len());
        let unasked = self.targets.last_mut().and_then(Targets::unasked).filter(|_| is_given);
        let n = match unasked {
            Some(waiting) => {
                (waiting.steps, waiting.places) = (Vec::new(), 1);
                1
            }
            None => ignored.len(),
        };
        self.spread(n);
        Ok(())
    }

    /// Adds a target whose places are counted now.
    pub(super) fn target(&mut self, slot: Slot, path: u32) -> Flow<()> {
        let (steps, at, marks) = self.path_steps(path)?;
        let base = self.slot_value(slot);
        let places = index::places(&mut self.env, base.as_ref(), &steps)?;
        self.env.check_host(&[places], 4 * size_of::<Value>())?;
        self.stack.truncate(at);
        self.marks.truncate(marks);
        let is_empty = matches!(&steps[..], [Access::Brace(_)]) && base.is_none_or(|base| base.is_empty());
        self.wait_for(Waiting { steps, places, ignored: false, is_empty });
        Ok(())
    }

    /// Stores the values of a target, which lie on the stack in reverse order, in its places.
    pub(super) fn store_target(&mut self, slot: Slot, target: u16) -> Flow<()> {
        let Some((waiting, first)) =
            self.targets.last().and_then(|t| Some((t.each.get(target as usize)?, t.first(target as usize))))
        else {
            return Ok(());
        };
        let at = self.stack.len().saturating_sub(waiting.places);
        let values: Vec<Value> = self.stack[at..].iter().rev().cloned().collect();
        let is_missing = |value: &Value| matches!(value, Value::Colon);
        if values.iter().any(is_missing) {
            return match &values[..] {
                [_] => Err(missing(first).into()),
                _ => fail!("some elements undefined in return list"),
            };
        }
        let steps = waiting.steps.clone();
        let mut variable = self.take_slot(slot);
        let result = if steps.is_empty() {
            variable = Some(Value::cell(Dims::new(&[1, 1]), values));
            Ok(())
        } else {
            index::assign_list(&mut self.env, &mut variable, &steps, values)
        };
        self.put_slot(slot, variable);
        result?;
        self.stack.truncate(at);
        Ok(())
    }

    /// Fails if the value of a target that takes one is missing.
    pub(super) fn target_defined(&self, target: u16) -> Flow<()> {
        match (self.stack.last(), self.targets.last()) {
            (Some(Value::Colon), Some(targets)) => Err(missing(targets.first(target as usize)).into()),
            _ => Ok(()),
        }
    }
}
