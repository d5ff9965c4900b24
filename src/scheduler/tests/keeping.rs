//! The limits on dropped values that lazy values and parked regions keep in memory, for each session and in total.

use super::{Bench, outputs};
use crate::config::{Config, DeviceChoice};
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::fixtures::device;
use crate::contract::messages::scheduler::{SchedulerEvent, SchedulerInstruction};
use crate::contract::region::{CutReason, Region};
use crate::dice::Dice;
use crate::ids::{SessionId, ValueId};
use crate::rounds::rounds;
use rustc_hash::FxHashSet;

/// Values of 400 bytes, of which a session may keep 2.
const LENGTH: usize = 100;

fn bench(set: impl FnOnce(&mut DeviceInfo)) -> Bench {
    let mut host = device(0, DeviceKind::Host);
    set(&mut host);
    let choice = DeviceChoice::Host;
    let config =
        Config { device: choice, batches_in_flight: 2, tape_bytes_max: 1000, tape_nodes_max: 48, ..Config::default() };
    Bench::on(vec![host], config)
}

/// A lazy sum of a value that the program has dropped.
fn sum_of_much(b: &mut Bench) -> ValueId {
    let x = b.source(LENGTH);
    let y = b.sum(x);
    b.release(x);
    y
}

#[test]
fn sums_of_what_was_let_go_of_are_computed_when_they_keep_too_much() {
    let mut b = bench(|_| ());
    let mut made = FxHashSet::default();
    let mut sums = vec![];
    for _ in 0..50 {
        sums.push(sum_of_much(&mut b));
        // The gathered value does not depend on the sums.
        let other = b.rand(8);
        b.gather(other);
        let sent = b.cut();
        made.extend(b.run(sent));
        let left = sums.iter().filter(|y| !made.contains(y)).count();
        assert!(left <= 3, "{left} of {}", sums.len());
    }
    assert!(b.charges() >= 40, "they were in the ring again");
}

#[test]
fn many_sums_of_the_same_are_computed_together() {
    let mut b = bench(|_| ());
    let mut made = FxHashSet::default();
    let mut sums = vec![];
    for _ in 0..50 {
        let x = b.source(LENGTH);
        let y = b.scale(x, LENGTH);
        sums.extend((0..8).map(|i| b.sum(if i % 2 == 0 { x } else { y })));
        b.release(x);
        b.release(y);
        let sent = b.cut_for(CutReason::Flush);
        made.extend(b.run(sent));
        let left = sums.iter().filter(|y| !made.contains(y)).count();
        assert!(left <= 3 * 8, "{left} of {}", sums.len());
    }
}

#[test]
fn what_takes_as_much_as_it_keeps_stays_lazy() {
    let mut b = bench(|_| ());
    for _ in 0..20 {
        let x = b.source(LENGTH);
        for _ in 0..2 {
            b.scale(x, LENGTH);
        }
        b.release(x);
        let sent = b.cut_for(CutReason::Flush);
        assert!(sent.is_empty(), "{:?}", sent.iter().map(outputs).collect::<Vec<_>>());
    }
    // Beside them, what takes less does not.
    let small = sum_of_much(&mut b);
    for _ in 0..3 {
        sum_of_much(&mut b);
    }
    let sent = b.cut_for(CutReason::Flush);
    assert!(b.run(sent).contains(&small));
}

#[test]
fn parked_sums_are_computed_when_they_keep_too_much() {
    let mut b = bench(|_| ());
    let busy = b.fill();
    b.open(0, 1);
    let mut most = 0;
    for _ in 0..50 {
        let y = sum_of_much(&mut b);
        let g = b.gather(y);
        b.cut();
        b.event(SchedulerEvent::GatherCancelled(g));
        most = most.max(b.state.parked());
    }
    assert!((1..=3).contains(&most), "{most}");
    assert!(b.run(busy).len() >= 40);
}

#[test]
fn many_sessions_keep_no_more_than_a_share_of_the_hosts_budget() {
    // 16 values' bytes for all, looked at whenever 4 have come.
    let mut b = bench(|host| host.budget_bytes = 32 * 400);
    b.state.kept.lift_bytes_max();
    let mut made = FxHashSet::default();
    let mut sums = vec![];
    for session in 1..=40 {
        b.open(session, 1);
        sums.push(sum_of_much(&mut b));
        let sent = b.cut_for(CutReason::Flush);
        made.extend(b.run(sent));
        let left = sums.iter().filter(|y| !made.contains(y)).count();
        assert!(left <= 16 + 5, "{left} of {}", sums.len());
    }
    assert!(made.len() >= 16, "{}", made.len());
}

#[test]
fn what_is_kept_through_lazy_values_of_another_session_counts() {
    for direct in [false, true] {
        let mut b = bench(|host| host.budget_bytes = 32 * 400);
        b.state.kept.lift_bytes_max();
        let mut made = FxHashSet::default();
        let mut sums = vec![];
        for _ in 0..40 {
            b.open(1, 1);
            let x = b.source(LENGTH);
            let z = if direct { x } else { b.scale(x, LENGTH) };
            b.cut_for(CutReason::Flush);
            b.open(2, 1);
            sums.push(b.sum(z));
            b.cut_for(CutReason::Flush);
            // The newest reader is a third session's, and goes.
            b.open(3, 1);
            let gone = b.sum(z);
            b.cut_for(CutReason::Flush);
            b.open(1, 1);
            b.release(x);
            if !direct {
                b.release(z);
            }
            let mut sent = b.cut_for(CutReason::Flush);
            b.open(3, 1);
            b.release(gone);
            sent.extend(b.cut_for(CutReason::Flush));
            made.extend(b.run(sent));
            let left = sums.iter().filter(|y| !made.contains(y)).count();
            assert!(left <= 16 + 5, "{direct}: {left} of {}", sums.len());
        }
    }
}

#[test]
fn a_charge_is_told_before_the_credit_that_ends_it() {
    let mut b = bench(|_| ());
    let y = sum_of_much(&mut b);
    b.cut_for(CutReason::Flush);
    b.credits();
    let g = b.gather(y);
    // The region is cut, and then not needed any more.
    b.withdraw(g);
    b.release(y);
    b.cut();
    let told: Vec<(bool, u32)> = (b.out.iter())
        .filter_map(|i| match i {
            SchedulerInstruction::Charge { nodes, bytes: 400, .. } => Some((true, *nodes)),
            SchedulerInstruction::Credit { nodes, .. } => Some((false, *nodes)),
            _ => None,
        })
        .collect();
    let balance = told.iter().fold(0i64, |all, (charge, nodes)| {
        let all = all + if *charge { i64::from(*nodes) } else { -i64::from(*nodes) };
        assert!(all >= 0, "{told:?}");
        all
    });
    assert_eq!(balance, 0, "{told:?}");
}

/// One step of a random program that leaves much behind.
fn step(b: &mut Bench, dice: &mut Dice, held: &mut Vec<ValueId>) {
    let one = |dice: &mut Dice, held: &[ValueId]| held[dice.below(held.len())];
    match dice.below(if held.is_empty() { 2 } else { 10 }) {
        0 => held.push(b.source(LENGTH)),
        1 => held.push(b.rand(LENGTH)),
        2 => held.push(b.scale(one(dice, held), LENGTH)),
        3 => held.push(b.add(one(dice, held), one(dice, held), LENGTH)),
        4 | 5 => held.push(b.sum(one(dice, held))),
        6 | 7 => b.release(held.swap_remove(dice.below(held.len()))),
        8 => drop(b.gather(one(dice, held))),
        _ => held.push(b.rand(8)),
    }
}

/// The regions that a random program is cut into; `schedule` says when they finish, and what others do meanwhile.
fn regions_of(seed: u64, schedule: &mut Dice, others: bool) -> Vec<(Vec<ValueId>, Vec<ValueId>)> {
    let mut b = bench(|_| ());
    let (mut dice, mut held) = (Dice(seed), vec![]);
    let (mut waiting, mut regions) = (Vec::<Region>::new(), vec![]);
    let mut next_of_others = 0;
    for _ in 0..60 {
        b.open(0, 1);
        for _ in 0..=dice.below(6) {
            step(&mut b, &mut dice, &mut held);
        }
        waiting.extend(b.cut_for(if dice.one_in(3) { CutReason::Flush } else { CutReason::Demand }));
        if others && schedule.one_in(2) {
            b.open(1, 1);
            std::mem::swap(&mut b.next_index, &mut next_of_others);
            sum_of_much(&mut b);
            waiting.extend(b.cut_for(CutReason::Flush));
            std::mem::swap(&mut b.next_index, &mut next_of_others);
        }
        for _ in 0..schedule.below(4).min(waiting.len()) {
            let region = waiting.remove(0);
            b.finish(&region);
            regions.push(region);
            waiting.extend(b.sent());
        }
    }
    while !waiting.is_empty() {
        let region = waiting.remove(0);
        b.finish(&region);
        regions.push(region);
        waiting.extend(b.sent());
    }
    regions.retain(|region| region.session == SessionId(0) && !region.nodes.is_empty());
    regions.sort_unstable_by_key(|region| region.id);
    regions.iter().map(|region| (super::values(region), outputs(region))).collect()
}

#[test]
fn what_a_session_has_computed_by_its_limit_depends_on_its_own_program_alone() {
    for seed in 0..rounds(30, 200) {
        let expected = regions_of(seed, &mut Dice(0), false);
        for schedule in 1..4 {
            let regions = regions_of(seed, &mut Dice(schedule << 32 | seed), schedule > 1);
            assert_eq!(regions, expected, "SEED {seed}, schedule {schedule}");
        }
    }
}
