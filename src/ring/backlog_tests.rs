//! The backlog alone: events in, events out.

use super::backlog::{Backlog, Discarded};
use crate::config::Room;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::records::Records;
use crate::contract::region::CutReason;
use crate::contract::tape::{Drops, Record, Want};
use crate::graph::{Arg, DType, ElementOp, Meta, Node, Op, Shape};
use crate::ids::{GatherId, SessionId, ValueId};
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

/// A backlog, and the gathers that are awaited.
struct Bench {
    backlog: Backlog,
    awaited: HashSet<u64>,
}

fn bench() -> Bench {
    Bench { backlog: Backlog::new(Room { nodes: 100, bytes: 1000 }), awaited: HashSet::new() }
}

fn op(session: u64, index: u64, reads: Option<(u64, u64)>) -> Record {
    let value = ValueId { session: SessionId(session), index };
    let of = |(session, index)| Arg::Value(ValueId { session: SessionId(session), index });
    let meta = Meta { dtype: DType::F32, shape: Shape::scalar() };
    let at = Location::caller().into();
    let args = reads.map(of).into_iter().collect();
    let node = Node { value, op: Op::Apply(ElementOp::Exp), args, meta, pin: None, at, block: 0 };
    Record::Op(Box::new(node), Drops::NONE)
}

fn drop_of(session: u64, index: u64) -> Record {
    Record::Dropped(ValueId { session: SessionId(session), index })
}

impl Bench {
    fn put(&mut self, event: SchedulerEvent) -> Discarded {
        let awaited = &self.awaited;
        self.backlog.put(event, |gather| awaited.contains(&gather.0))
    }

    fn open(&mut self, session: u64) {
        self.open_of_weight(session, 1);
    }

    fn open_of_weight(&mut self, session: u64, weight: u32) {
        self.put(SchedulerEvent::SessionOpened { session: SessionId(session), name: Arc::from("s"), weight });
    }

    fn cut(&mut self, session: u64, records: Vec<Record>) {
        let records = Records::from(records);
        self.put(SchedulerEvent::SegmentCut { session: SessionId(session), records, why: CutReason::Demand, at_ns: 0 });
    }

    /// A session with one op that is gathered under its number.
    fn request(&mut self, session: u64) {
        self.open(session);
        self.awaited.insert(session);
        let value = ValueId { session: SessionId(session), index: 0 };
        let demand = Record::Demanded { gather: GatherId(session), value, want: Want::Host };
        self.cut(session, vec![op(session, 0, None), demand]);
    }

    /// Its gather is dropped, then its handles, then the session.
    fn give_up(&mut self, session: u64) -> Discarded {
        self.awaited.remove(&session);
        self.cut(session, vec![drop_of(session, 0)]);
        self.close(session)
    }

    fn close(&mut self, session: u64) -> Discarded {
        self.put(SchedulerEvent::SessionClosed(SessionId(session)))
    }

    /// The next event that leaves, as a short text.
    fn next(&mut self, has_room: bool) -> Option<String> {
        let awaited = &self.awaited;
        let event = self.backlog.next(has_room, |gather| awaited.contains(&gather.0))?;
        Some(match event {
            SchedulerEvent::SessionOpened { session, .. } => format!("open {session}"),
            SchedulerEvent::SessionClosed(session) => format!("close {session}"),
            SchedulerEvent::SegmentCut { session, records, .. } => {
                let words: Vec<&str> = records
                    .iter()
                    .map(|record| match record {
                        Record::Demanded { .. } => " demand",
                        Record::Cancelled(_) => " cancelled",
                        Record::Dropped(_) => " drop",
                        _ => " op",
                    })
                    .collect();
                format!("cut {session}{}", words.concat())
            }
            other => format!("{other:?}"),
        })
    }

    fn all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next(true)).collect()
    }
}

#[test]
fn sessions_take_turns_and_each_ones_events_keep_their_order() {
    let mut b = bench();
    b.open(1);
    (0..3).for_each(|n| b.cut(1, vec![op(1, n, None)]));
    b.open(2);
    b.cut(2, vec![op(2, 0, None)]);
    b.cut(2, vec![drop_of(2, 0)]);
    assert_eq!(
        b.all(),
        ["open 1", "cut 1 op", "open 2", "cut 2 op", "cut 2 drop", "cut 1 op", "cut 1 op"],
        "drops leave with the work before them"
    );
    assert!(b.backlog.is_empty());
}

#[test]
fn without_room_only_what_frees_memory_leaves() {
    let mut b = bench();
    b.request(1);
    assert_eq!(b.next(false), None);
    assert_eq!(b.all().len(), 2);
    b.cut(1, vec![drop_of(1, 0)]);
    b.cut(1, vec![op(1, 1, None)]);
    assert_eq!((b.next(false).as_deref(), b.next(false)), (Some("cut 1 drop"), None));
}

#[test]
fn more_of_a_session_than_it_has_room_for_waits_and_others_go_on() {
    let mut b = bench();
    b.open(1);
    for n in 0..4 {
        b.cut(1, (0..60).map(|k| op(1, 60 * n + k, None)).collect());
    }
    b.request(2);
    let (many, passed) = (" op".repeat(60), b.all());
    assert_eq!(
        passed,
        [
            "open 2".to_owned(),
            "cut 2 op demand".into(),
            "open 1".into(),
            format!("cut 1{many}"),
            format!("cut 1{many}")
        ],
        "the small segment ends first"
    );
    assert!(!b.backlog.is_empty());
    b.backlog.credit(SessionId(1), 10);
    assert_eq!(b.next(true), None, "110 are inside, and there is room for 100");
    b.backlog.credit(SessionId(1), 10);
    assert_eq!(b.all().len(), 1);
    b.backlog.credit(SessionId(1), 160);
    assert_eq!(b.all().len(), 1);
}

#[test]
fn a_request_that_is_given_up_while_it_waits_leaves_nothing_behind() {
    let mut b = bench();
    b.request(1);
    b.request(2);
    b.request(3);
    let discarded = b.give_up(2);
    let gone = Discarded { session: Some(SessionId(2)), nodes: 1, cuts: vec![0, 0], gathers: vec![], unheard: true };
    assert_eq!(discarded, gone);
    assert_eq!(b.all(), ["open 1", "cut 1 op demand", "open 3", "cut 3 op demand"]);
    for session in [1, 3] {
        // The scheduler knows this session, so it is told of the session's end at once, and releases what it held.
        let discarded = b.give_up(session);
        assert_eq!((discarded.nodes, discarded.unheard), (0, false));
        b.backlog.credit(SessionId(session), 1);
        assert_eq!(b.next(false), Some(format!("close {session}")));
        assert_eq!(b.next(false), None);
    }
    assert!(b.backlog.tables()[..2].iter().all(|(_, entries)| *entries == 0), "{:?}", b.backlog.tables());
}

#[test]
fn while_many_wait_and_some_give_up_the_last_is_served_first() {
    let mut b = bench();
    (0..50).for_each(|session| b.request(session));
    assert_eq!(b.backlog.sessions_inside_max(), 32);
    b.give_up(49);
    assert_eq!(b.backlog.sessions_inside_max(), 8);
    assert_eq!(b.next(true).as_deref(), Some("open 48"));
    assert_eq!(b.next(true).as_deref(), Some("cut 48 op demand"));
    // The more are served, the less that counts.
    let served: Vec<String> = b.all().into_iter().filter(|event| event.starts_with("cut")).collect();
    assert_eq!(served[..3], ["cut 47 op demand", "cut 46 op demand", "cut 45 op demand"]);
    assert_eq!(served[7..10], ["cut 0 op demand", "cut 1 op demand", "cut 2 op demand"]);
}

#[test]
fn a_session_that_is_closed_fails_what_waits_of_it_and_is_awaited() {
    let mut b = bench();
    b.request(1);
    b.all();
    b.awaited.insert(7);
    let demand =
        Record::Demanded { gather: GatherId(7), value: ValueId { session: SessionId(1), index: 1 }, want: Want::Host };
    b.cut(1, vec![op(1, 1, None), demand]);
    let discarded = b.close(1);
    let (session, gathers) = (Some(SessionId(1)), vec![GatherId(7)]);
    assert_eq!(discarded, Discarded { session, nodes: 1, cuts: vec![0], gathers, unheard: false });
    assert_eq!(b.next(false).as_deref(), Some("close 1"));
    b.backlog.credit(SessionId(1), 1);
    assert_eq!(b.backlog.tables()[0].1, 0);
}

/// The sessions of the segments that leave, in order.
fn whose(passed: &[String]) -> Vec<u64> {
    let cuts = passed.iter().filter_map(|event| event.strip_prefix("cut "));
    cuts.map(|cut| cut.split(' ').next().and_then(|session| session.parse().ok()).expect("a session's number"))
        .collect()
}

#[test]
fn sessions_that_wait_have_turns_by_their_weights() {
    let mut b = Bench { backlog: Backlog::new(Room::UNLIMITED), awaited: HashSet::new() };
    for (session, weight) in [(1, 1), (2, 3), (3, 8)] {
        b.open_of_weight(session, weight);
        (0..400).for_each(|n| b.cut(session, vec![op(session, n, None)]));
    }
    let turns = whose(&b.all());
    let of = |session| turns[..480].iter().filter(|other| **other == session).count();
    for (session, due) in [(1, 40), (2, 120), (3, 320)] {
        assert!(of(session).abs_diff(due) <= 2, "{session}: {} of {due}", of(session));
    }
}

#[test]
fn a_session_that_stays_has_its_share_beside_sessions_that_live_for_one_request() {
    for (weight, tasks) in [(1, 16), (8, 16), (8, 100), (64, 16)] {
        let mut b = Bench { backlog: Backlog::new(Room::UNLIMITED), awaited: HashSet::new() };
        b.open_of_weight(0, weight);
        (0..4).for_each(|n| b.cut(0, vec![op(0, n, None)]));
        (1..=tasks).for_each(|session| b.request(session));
        let (mut its, mut last, mut wait) = (0, 0, 0);
        let (mut next, turns) = (tasks, 100 * (u64::from(weight) + tasks));
        for turn in 0..turns {
            let session = loop {
                let passed = b.next(true).expect("all have work");
                if let [session] = whose(&[passed])[..] {
                    break session;
                }
            };
            if session == 0 {
                (its, wait, last) = (its + 1, wait.max(turn - last), turn);
                b.cut(0, vec![op(0, its + 4, None)]);
            } else {
                b.give_up(session);
                b.backlog.credit(SessionId(session), 1);
                next += 1;
                b.request(next);
            }
        }
        let due = turns * u64::from(weight) / (u64::from(weight) + tasks);
        // It has four requests, which raises what a weight of 1 counts as.
        let most = if weight == 1 { 280 } else { 105 };
        assert!((95..=most).contains(&(its * 100 / due)), "weight {weight} beside {tasks}: {its} of {due}");
        assert!(wait <= 2 * (u64::from(weight) + tasks).div_ceil(weight.into()), "it waits for {wait} turns");
        assert!(b.backlog.tables().iter().all(|(_, entries)| *entries <= 4 * tasks as usize + 100));
    }
}

#[test]
fn a_turn_costs_what_leaves_in_it() {
    let mut b = Bench { backlog: Backlog::new(Room::UNLIMITED), awaited: HashSet::new() };
    // By what the ring is said to take, a segment of 90 nodes is 3.6 times as long as one of a single node.
    for (session, nodes) in [(1, 90), (2, 1)] {
        b.open(session);
        (0..200).for_each(|n| b.cut(session, (0..nodes).map(|k| op(session, nodes * n + k, None)).collect()));
    }
    let turns = whose(&b.all());
    let small = turns[..150].iter().filter(|session| **session == 2).count();
    assert!((114..=120).contains(&small), "{small} of 150");
}

#[test]
fn who_waits_alone_owes_nothing() {
    let mut b = bench();
    b.request(1);
    for n in 1..50 {
        b.cut(1, vec![op(1, n, None)]);
        b.all();
        b.backlog.credit(SessionId(1), 1);
    }
    assert_eq!(b.backlog.tables()[2], ("backlog shares", 0));
    b.cut(1, vec![op(1, 50, None)]);
    b.request(2);
    assert_eq!(b.all()[0], "cut 1 op");
    assert_eq!(b.backlog.tables()[2], ("backlog shares", 0));
}

#[test]
fn demands_that_nobody_awaits_any_more_are_not_told() {
    let mut b = bench();
    b.request(1);
    b.awaited.clear();
    assert_eq!(b.all(), ["open 1", "cut 1 op cancelled"]);
}

#[test]
fn who_reads_a_sessions_values_comes_after_what_makes_them_and_before_what_ends_them() {
    let mut b = bench();
    (100..150).for_each(|session| b.request(session));
    b.give_up(149);
    // The last comes first now.
    b.open(1);
    b.cut(1, vec![op(1, 0, None)]);
    b.open(2);
    b.cut(2, vec![op(2, 0, Some((1, 0)))]);
    b.open(3);
    b.cut(3, vec![op(3, 0, Some((2, 0)))]);
    b.cut(2, vec![drop_of(2, 0)]);
    b.cut(1, vec![drop_of(1, 0)]);
    assert_eq!(b.close(1), Discarded::default(), "somebody reads what it made");
    let order =
        ["open 3", "open 2", "open 1", "cut 1 op", "cut 2 op", "cut 3 op", "cut 2 drop", "cut 1 drop", "close 1"];
    assert_eq!(b.all()[..9], order);
}

#[test]
fn who_has_waited_longest_has_a_turn_however_many_give_up_and_come() {
    let mut b = bench();
    (0..100).for_each(|session| b.request(session));
    for n in 100..1000 {
        b.request(2 * n);
        b.request(2 * n + 1);
        b.give_up(2 * n);
        let passed = [b.next(true), b.next(true)];
        if passed.contains(&Some("cut 0 op demand".to_owned())) {
            assert!(n <= 117, "{n}");
            return;
        }
    }
    panic!("it never has its turn");
}

#[test]
fn thousands_that_come_and_give_up_leave_no_entries() {
    let mut b = bench();
    for session in 0..20_000 {
        b.request(session);
        if session % 4 == 0 {
            b.next(true);
            b.next(true);
        }
        if session >= 100 {
            b.give_up(session - 100);
            b.backlog.credit(SessionId(session - 100), 1);
        }
        while b.next(false).is_some() {}
    }
    let tables = b.backlog.tables();
    assert!(tables.iter().all(|(_, entries)| *entries <= 1000), "{tables:?}");
}
