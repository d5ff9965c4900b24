//! Credits, and counters since the start of the runtime.
//!
//! In: nodes that were recorded, that went into regions, and whose regions ended. Out: `Charge` and `Credit` for the
//! sessions' gates, and totals. Must hold: SCHED-7; a gate is told of a charge before it is told of the credits that end it.

use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::ids::SessionId;
use std::collections::BTreeMap;

/// Counters since the start of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regions cut.
    pub regions: u64,
    /// Ops found unreachable and never computed.
    pub ops_dead: u64,
    /// Ops that ran elsewhere than asked, by reason.
    pub elsewhere: BTreeMap<&'static str, u64>,
    /// Values that were lost with their device, and made again.
    pub values_made_again: u64,
    /// Nodes recorded.
    pub nodes_recorded: u64,
    /// Nodes that were charged once more, counted each time: they were left lazy, and a later cut computed them.
    pub nodes_charged: u64,
    /// Credits given back.
    pub nodes_credited: u64,
}

/// A charge: nodes of a session that went into a region after their credits were given back, and the bytes that the
/// region keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub session: SessionId,
    pub nodes: u32,
    pub bytes: u64,
}

/// The totals, and the charges that the gates have not heard of.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    totals: Totals,
    charges: Vec<Charge>,
}

impl Ledger {
    /// Gives credits back.
    pub fn credit(&mut self, session: SessionId, nodes: u32, out: &mut Vec<SchedulerInstruction>) {
        if nodes > 0 {
            self.tell_charges(out);
            self.totals.nodes_credited += nodes as u64;
            out.push(SchedulerInstruction::Credit { session, nodes });
        }
    }

    /// Charges a session for nodes whose credits were given back, and that are in a region now.
    pub fn charge(&mut self, charge: Charge) {
        self.totals.nodes_charged += u64::from(charge.nodes);
        self.charges.push(charge);
    }

    /// Tells the gates of charges that they have not heard of.
    pub fn tell_charges(&mut self, out: &mut Vec<SchedulerInstruction>) {
        let say = |Charge { session, nodes, bytes }| SchedulerInstruction::Charge { session, nodes, bytes };
        out.extend(self.charges.drain(..).map(say));
    }

    /// Counts regions that were cut.
    pub fn count_regions(&mut self, regions: usize) {
        self.totals.regions += regions as u64;
    }

    /// Counts nodes that a tape recorded.
    pub fn count_recorded(&mut self, nodes: u32) {
        self.totals.nodes_recorded += u64::from(nodes);
    }

    /// Counts an op that is unreachable and never computed.
    pub fn count_dead(&mut self) {
        self.totals.ops_dead += 1;
    }

    /// Counts an op that runs elsewhere than asked.
    pub fn count_elsewhere(&mut self, reason: &'static str) {
        *self.totals.elsewhere.entry(reason).or_default() += 1;
    }

    /// Counts a lost value that is made again.
    pub fn count_made_again(&mut self) {
        self.totals.values_made_again += 1;
    }

    /// The counters.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Charges that the gates have not heard of.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.charges.len()
    }
}
