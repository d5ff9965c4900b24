//! The invariants of the module's header, checked after every event in tests.

use super::graph::{Live, Residence};
use super::regions::UnfinishedRegion;
use super::state::State;
use crate::contract::tape::Want;
use crate::ids::{GatherId, RegionId};

impl State {
    /// Checks the invariants of the module's header.
    ///
    /// # Panics
    /// With the ID of the first that does not hold.
    pub fn validate(&self) {
        let mut count = 0;
        for (at, live) in self.graph.iter() {
            count += 1;
            let value = live.node.value;
            assert_eq!(self.graph.find(value), Some(at), "SCHED-1: the index names {value}");
            assert_eq!(self.graph.count_users(at), live.users as usize, "SCHED-2: users of {value}");
            if !live.is_lazy() {
                assert_eq!(self.graph.arguments(at).count(), 0, "SCHED-2: {value} is cut and still reads");
            }
            let in_region = !live.regions.is_empty() || matches!(live.home, Residence::Coming(_));
            let kept = live.reachable() || !live.gathers.is_empty() || in_region;
            // A segment that waits for a device has not released its dropped values yet.
            assert!(kept || self.opening.is_waiting(), "SCHED-5: nobody keeps {value}");
            for id in &live.regions {
                let record = self.regions.get(id).unwrap_or_else(|| panic!("SCHED-8: {value} is read by region {id}"));
                assert!(record.region.inputs.iter().any(|i| i.value == value), "SCHED-8: {id} reads {value}");
            }
            if let Residence::Coming(id) = live.home {
                let record = self.regions.get(&id).unwrap_or_else(|| panic!("SCHED-8: {value} comes from {id}"));
                assert!(
                    record.region.nodes.iter().any(|n| n.output && n.value == value),
                    "SCHED-8: {id} makes {value}"
                );
            }
            for gather in &live.gathers {
                assert!(self.demands.contains(*gather), "SCHED-3: {value} has open gather {gather}");
                self.validate_gather(*gather, live);
            }
        }
        assert_eq!(count, self.graph.len(), "SCHED-1: as many entries as names");
        self.validate_regions();
        self.validate_ends();
        for (id, gather) in self.demands.iter() {
            let Some(value) = gather.value else { continue };
            let live = self.graph.get(value).unwrap_or_else(|| panic!("SCHED-3: gather {id} of {value}"));
            assert!(live.gathers.contains(&id), "SCHED-3: {value} knows gather {id}");
        }
    }

    fn validate_gather(&self, gather: GatherId, live: &Live) {
        let under_way = match (&live.home, self.demands.get(gather).expect("SCHED-3: it is open").want) {
            (Residence::Coming(_), _) if self.parked_maker(live).is_some() => false,
            (Residence::Coming(_), Want::Device) => true,
            (Residence::Coming(_), Want::Host) => live.readback.region().is_some() || live.host.is_some(),
            (Residence::Here, Want::Host) => live.readback.region().is_some(),
            (Residence::Lazy, _) => self.opening.is_waiting(),
            _ => false,
        };
        assert!(under_way, "SCHED-3: nothing is under way for gather {gather}: {}", self.story(live.node.value));
    }

    fn validate_ends(&self) {
        for (value, by) in self.ends.iter() {
            let live = self.graph.get(value).unwrap_or_else(|| panic!("ENDS-4: {value} ends, and is not live"));
            assert!(!live.reachable(), "ENDS-4: {value} ends, and a program can reach it");
            let Some(by) = by else { continue };
            assert!(
                self.regions.get(&by).is_some_and(UnfinishedRegion::waits),
                "ENDS-2: region {by}, which ends {value}, waits"
            );
            let is_made = matches!(live.home, Residence::Coming(maker) if maker == by);
            assert!(is_made || live.regions.contains(&by), "ENDS-2: region {by} ends {value}, which it does not use");
        }
        for (region, schedules_all) in self.ends.lists() {
            let Some(record) = self.regions.get(&region) else { panic!("ENDS-3: region {region} ends something") };
            assert!(record.is_downstream() || record.waits() && schedules_all, "ENDS-3: what region {region} ends");
        }
    }

    fn validate_regions(&self) {
        let count = |is: fn(&UnfinishedRegion) -> bool| self.regions.iter().filter(|(_, record)| is(record)).count();
        assert_eq!(
            count(UnfinishedRegion::is_returned),
            0,
            "LIFE-2: a region that returned is queued or closed at once"
        );
        let sent = count(UnfinishedRegion::is_downstream);
        assert_eq!(sent, self.regions.downstream(), "LIFE-3: regions downstream");
        assert!(sent <= self.turns.credits() + super::fairness::RESERVE, "SCHED-4: {sent} regions are downstream");
        let heads: Vec<RegionId> = self.sessions.iter().filter_map(|s| s.queue.front().copied()).collect();
        let mut queued = 0;
        for session in self.sessions.iter() {
            let orders: Vec<u64> = session.queue.iter().map(|id| self.regions[id].order).collect();
            assert!(orders.is_sorted(), "SCHED-6: the queue of {}", session.name);
            queued += orders.len();
        }
        assert_eq!(
            queued,
            count(UnfinishedRegion::is_queued),
            "SCHED-6: every region that is to be sent stands in a queue"
        );
        assert_eq!(count(UnfinishedRegion::is_parked), self.regions.parked(), "LIFE-3: parked regions");
        for (id, record) in self.regions.iter() {
            for input in &record.region.inputs {
                let live = self.graph.get(input.value).unwrap_or_else(|| panic!("SCHED-8: {id} reads {}", input.value));
                assert!(live.regions.contains(id), "SCHED-8: {} is read by {id}", input.value);
                let is_parked = self.parked_maker(live).is_some();
                let is_next = self.regions.downstream() < self.turns.credits() && heads.contains(id);
                assert!(!is_next || !is_parked, "SCHED-12: {id} waits for {}, which nobody makes", input.value);
                assert!(
                    !record.is_parked() || self.ends.is_undecided(input.value),
                    "SCHED-12: {} ends while {id} is parked",
                    input.value
                );
            }
            if record.is_parked() {
                let outputs = record.region.nodes.iter().filter(|node| node.output);
                let gathers: usize = outputs.map(|n| self.graph.get(n.value).map_or(0, |l| l.gathers.len())).sum();
                let waits = record.credits > 0 || gathers > 0;
                assert!(!waits && record.region.readbacks.is_empty(), "SCHED-12: {id} is parked");
            }
        }
        let held: u64 =
            self.regions.iter().map(|(_, record)| record.credits as u64).sum::<u64>() + self.opening.credits();
        let totals = self.ledger.totals();
        let taken = totals.nodes_recorded + totals.nodes_charged;
        assert_eq!(taken, totals.nodes_credited + held, "SCHED-7: credits");
    }
}
