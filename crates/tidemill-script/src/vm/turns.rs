//! The turns of a machine: what happens between instructions, and between two checks for interrupts.

use super::frame::{Activation, Frame, Return};
use super::run::{Next, SLOW_STEP_COST, Slice};
use super::{End, Interp};
use crate::compile::code::Inst;
use crate::error::{Flow, Need, Stop};
use tidemill::frontend;

impl Interp {
    /// Whether `onCleanup` functions are called now. They wait while an instruction has answers to take.
    pub(super) fn cleans_up(&self) -> bool {
        self.is_due() && self.env.awaited.is_empty()
    }

    /// Ends the machine, once all cleanup has run.
    pub(super) fn come_to_end(&mut self) -> Slice {
        self.cleaning = None;
        Slice::End(std::mem::take(&mut self.ended))
    }

    /// Sets how the machine ends once its cleanup has run.
    pub(super) fn ends_with(&mut self, end: End) {
        self.ended = std::mem::take(&mut self.ended).then(end);
    }

    /// Whether `onCleanup` objects have ended whose functions are to be called.
    pub fn is_due(&self) -> bool {
        self.env.due.as_ref().is_some_and(|due| due.any())
    }

    /// Finds the ends of objects that a machine which was left behind holds, too.
    pub(super) fn end_shared(&self) {
        if let Some(due) = self.env.due.as_ref().filter(|due| due.shares()) {
            due.end_shared(&self.held_duties(), &self.interrupt);
        }
    }

    /// Keeps the script's own variables for the workspace at `exit`, whichever function called it.
    pub(super) fn keep_workspace(&mut self) {
        let is_script = |activation: &Activation| matches!(activation, Activation::Code(frame) if frame.returns == Return::Discard && !frame.is_session);
        if self.frames.first().is_some_and(is_script) {
            self.frames.truncate(1);
            self.workspace = self.variables();
        }
    }

    /// Drops all frames but a session's own.
    pub(super) fn drop_frames(&mut self) {
        while !matches!(self.frames.last(), None | Some(Activation::Code(Frame { is_session: true, .. }))) {
            self.drop_frame();
        }
    }

    /// Does an instruction that the fast loop does not do, and returns where the code goes on. `None`: another frame or
    /// a cleanup goes on.
    pub(super) fn slow_step(&mut self, inst: Inst, pc: usize, budget: &mut u32) -> Flow<Option<usize>> {
        self.set_pc(pc);
        // The last instruction may have ended an `onCleanup` object.
        if self.cleans_up() {
            return Ok(None);
        }
        // These instructions may take a while, so the next check comes sooner.
        *budget = budget.saturating_sub(SLOW_STEP_COST);
        let next = self.step(inst);
        let next = self.raised_or(next)?;
        self.env.check_account()?;
        // The instruction may have taken long.
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        if self.env.should_keep_small_on_host() {
            self.env.keep_small_on_host();
        }
        if frontend::is_wait_due() || self.has_due_suspects() {
            *budget = 0;
        }
        let next = match next {
            Next::Through => pc + 1,
            Next::To(to) => to as usize,
            Next::Entered => {
                *budget = budget.saturating_sub(1);
                if *budget == 0 {
                    self.check_and_yield()?;
                }
                return Ok(None);
            }
        };
        if *budget == 0 {
            self.set_pc(next);
            self.check_and_yield()?;
        }
        Ok(Some(next))
    }

    /// Checks for an interrupt and a lost reader, then lets other tasks run.
    pub(super) fn check_and_yield(&mut self) -> Flow<()> {
        if self.is_interrupted() || self.loses_session() {
            return Err(Stop::Interrupted);
        }
        if self.env.output.closed() {
            return Err(Stop::Exit(0));
        }
        self.env.check_host(&[self.env.output.held_bytes()], 1)?;
        self.count_small()?;
        Err(Stop::Need(Need::Yield))
    }

    /// Counts an instruction. Awaited answers are dropped unless this is the first instruction after a wait, which
    /// asked for them.
    pub(super) fn step_begins(&mut self) {
        if !self.env.awaited.is_empty() && self.steps != self.steps_at_resume {
            self.env.awaited.clear();
        }
        self.steps += 1;
    }
}
