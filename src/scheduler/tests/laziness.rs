//! Which values are computed, and which are written to memory.

use super::*;
use crate::graph::{SliceDim, View};

#[test]
fn a_gathered_chain_is_one_region_with_one_output() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let z = b.add(y, x, 8);
    b.release(y);
    let g = b.gather(z);
    let regions = b.cut();
    assert_eq!(regions.len(), 1);
    let region = &regions[0];
    assert_eq!(values(region), [y, z]);
    assert_eq!(outputs(region), [z]);
    assert_eq!(region.readbacks, [z]);
    assert_eq!(region.inputs.len(), 1);
    assert!(region.inputs[0].source.is_some(), "the data enters with the first region");
    assert!(!region.inputs[0].dies, "x is still held");
    assert_eq!(b.credits(), 1, "the source leaves the ring at once, the others when they have run");
    b.finish(region);
    assert_eq!(b.credits(), 2);
    assert!(b.delivered(g));
}

#[test]
fn a_value_that_nobody_can_reach_at_the_cut_is_never_computed() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let z = b.scale(y, 8);
    b.release(y);
    b.release(z);
    let w = b.scale(x, 8);
    b.gather(w);
    let regions = b.cut();
    assert_eq!(values(&regions[0]), [w]);
    assert_eq!(b.state.totals().ops_dead, 2);
}

#[test]
fn two_demands_of_one_segment_fuse() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let y = b.scale(x, 8);
    let z = b.sum(x);
    b.gather(y);
    b.gather(z);
    let regions = b.cut();
    assert_eq!(regions.len(), 1);
    assert_eq!(regions[0].readbacks, [y, z]);
}

/// How many cuts read a held value of so many elements, each by `read`, before one writes it out; at most ten.
fn reads_before_it_is_kept(elements: usize, memory_bytes: u64, read: impl Fn(&mut Bench, ValueId) -> ValueId) -> usize {
    let host = DeviceInfo { memory_bytes, ..device(0, DeviceKind::Host) };
    let mut b = Bench::on(vec![host], Config { device: DeviceChoice::Host, ..Config::default() });
    let x = b.rand(elements);
    (0..10)
        .take_while(|_| {
            let part = read(&mut b, x);
            b.gather(part);
            b.release(part);
            let regions = b.cut();
            regions.iter().for_each(|region| b.finish(region));
            !regions.iter().any(|region| outputs(region).contains(&x))
        })
        .count()
}

#[test]
fn a_value_that_is_read_in_parts_is_written_out_when_they_have_cost_as_much_as_the_whole() {
    let slice = |len: usize| {
        move |b: &mut Bench, x: ValueId| {
            let dims = [SliceDim { start: 0, step: 1, len }].into_iter().collect();
            b.node(Op::View(View::Slice(dims)), &[Arg::Value(x)], DType::F32, &[len])
        }
    };
    let all = |b: &mut Bench, x: ValueId| b.sum(x);
    let plenty = 1 << 40;
    assert_eq!(reads_before_it_is_kept(1 << 20, plenty, all), 1);
    assert_eq!(reads_before_it_is_kept(1 << 20, plenty, slice(1 << 18)), 4);
    assert_eq!(reads_before_it_is_kept(1 << 20, plenty, slice(1)), 10, "a few elements are no cause to make a million");
    // Two nodes of a region cost as much as 4096 elements.
    assert_eq!(reads_before_it_is_kept(1 << 14, plenty, slice(1)), 4);
    // All of a check is computed, whichever elements are read.
    let checked = |b: &mut Bench, x: ValueId| {
        let holds =
            b.node(Op::Apply(ElementOp::Lt), &[Arg::Value(x), Arg::Scalar(Scalar::F32(2.0))], DType::Bool, &[1 << 20]);
        let ensure = Op::Ensure { op: "test", message: "no".into() };
        let y = b.node(ensure, &[Arg::Value(x), Arg::Value(holds)], DType::F32, &[1 << 20]);
        let part = slice(1)(b, y);
        [holds, y].into_iter().for_each(|value| b.release(value));
        part
    };
    assert_eq!(reads_before_it_is_kept(1 << 20, plenty, checked), 1);
    // A value that is larger than half of the memory is computed at each read.
    assert_eq!(reads_before_it_is_kept(1 << 20, 8 << 20, all), 1);
    assert_eq!(reads_before_it_is_kept(1 << 20, 7 << 20, all), 10);
}

#[test]
fn a_held_value_in_passing_is_written_out_the_second_time_it_would_be_computed() {
    let mut b = Bench::new(DeviceChoice::Host);
    let r = b.rand(8);
    let y = b.scale(r, 8);
    b.gather(y);
    let first = b.cut();
    assert_eq!(values(&first[0]), [r, y]);
    assert_eq!(outputs(&first[0]), [y], "r is held, and only passed");
    b.finish(&first[0]);
    let z = b.sum(r);
    b.gather(z);
    let second = b.cut();
    assert_eq!(outputs(&second[0]), [r, z]);
    b.finish(&second[0]);
    let w = b.scale(r, 8);
    b.gather(w);
    let third = b.cut();
    assert_eq!(values(&third[0]), [w]);
    assert_eq!(third[0].inputs[0].value, r);
    assert_eq!(b.state.totals().ops_dead, 0);
}

#[test]
fn the_positions_of_a_sort_are_kept_when_its_values_are_computed() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let sort = Op::ArgSort { dim: 0, descending: false };
    let index = b.node(sort, &[Arg::Value(x)], DType::U32, &[8]);
    let take = Op::TakeAlong { dim: 0 };
    let sorted = b.node(take, &[Arg::Value(x), Arg::Value(index)], DType::F32, &[8]);
    b.gather(sorted);
    let first = b.cut();
    assert_eq!(outputs(&first[0]), [index, sorted]);
}

#[test]
fn a_held_value_that_would_pin_more_than_its_own_bytes_is_written_out_at_once() {
    let mut b = Bench::new(DeviceChoice::Host);
    let big = b.source(1000);
    let small = b.sum(big);
    b.release(big);
    let y = b.scale(small, 1);
    b.gather(y);
    let regions = b.cut();
    assert_eq!(outputs(&regions[0]), [small, y]);
    assert!(regions[0].inputs[0].dies, "nothing keeps the 1000 elements");

    // The same while the big one is held: staying lazy pins nothing that is not pinned anyway.
    let mut b = Bench::new(DeviceChoice::Host);
    let big = b.source(1000);
    let small = b.sum(big);
    let y = b.scale(small, 1);
    b.gather(y);
    let regions = b.cut();
    assert_eq!(outputs(&regions[0]), [y]);
}

#[test]
fn at_the_limit_on_nodes_all_that_is_held_is_computed_without_a_gather() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let mut s = b.scale(x, 8);
    for _ in 0..50 {
        let t = b.add(s, x, 8);
        let next = b.scale(t, 8);
        b.release(t);
        b.release(s);
        s = next;
    }
    let regions = b.cut_for(CutReason::NodeLimit);
    assert_eq!(regions.len(), 1);
    assert_eq!(outputs(&regions[0]), [s]);
    assert_eq!(regions[0].nodes.len(), 101);
    assert!(regions[0].readbacks.is_empty());
    assert_eq!(regions[0].why, CutReason::NodeLimit);
    b.finish(&regions[0]);
    assert_eq!(b.credits(), 102);
}

#[test]
fn a_cut_without_demand_leaves_values_lazy_and_gives_their_credits_back() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let y = b.scale(x, 8);
    b.release(x);
    assert!(b.cut_for(CutReason::Flush).is_empty());
    assert_eq!(b.credits(), 2);
    b.gather(y);
    let regions = b.cut();
    assert_eq!(values(&regions[0]), [x, y]);
    b.finish(&regions[0]);
    // Both were in the ring again, and their session's gate heard of it.
    assert_eq!((b.charges(), b.credits()), (2, 2));
}

#[test]
fn a_region_holds_at_most_1024_nodes_and_says_so() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.state.never_rolls = true;
    let mut s = b.rand(8);
    for _ in 0..2999 {
        let next = b.scale(s, 8);
        b.release(s);
        s = next;
    }
    b.gather(s);
    let regions = b.cut();
    let sizes: Vec<usize> = regions.iter().map(|r| r.nodes.len()).collect();
    assert_eq!(sizes, [1024, 1024, 952]);
    assert_eq!(regions[0].why, CutReason::RegionLimit);
    assert_eq!(regions[2].why, CutReason::Demand);
    assert_eq!(outputs(&regions[0]), [ValueId { session: SessionId(0), index: 1023 }]);
    assert!(regions[1].inputs[0].dies, "it was only handed over");
}

#[test]
fn a_loop_is_a_region_of_its_own_and_what_is_seen_of_it_are_the_last_turns_values() {
    let mut b = Bench::new(DeviceChoice::Host);
    let mut s = b.rand(8);
    let mut seen = None;
    for turn in 0..1000 {
        let next = b.scale(s, 8);
        match turn {
            600 => seen = Some(s),
            _ => b.release(s),
        }
        s = next;
    }
    b.gather(s);
    let regions = b.cut();
    let sizes: Vec<(usize, u32)> = regions.iter().map(|r| (r.nodes.len(), r.turns)).collect();
    assert_eq!(sizes, [(1, 1), (600, 600), (400, 400)]);
    assert_eq!(outputs(&regions[1]), [seen.unwrap()]);
    assert_eq!(outputs(&regions[2]), [s]);
}

#[test]
fn an_input_dies_in_the_last_region_that_can_reach_it_and_is_not_retired_again() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    b.demand(y, Want::Device);
    let first = b.cut();
    b.finish(&first[0]);
    b.release(x);
    assert!(b.cut_for(CutReason::Flush).is_empty());
    assert_eq!(b.retired(), [(x, None)], "it died outside of a region, after its region ended");
    let z = b.scale(y, 8);
    b.release(y);
    let g = b.gather(z);
    b.release(z);
    let second = b.cut();
    assert!(second[0].inputs[0].dies);
    assert_eq!(b.retired(), [(z, Some(second[0].id))], "z ends with its readback; y by dying");
    b.finish(&second[0]);
    assert!(b.delivered(g));
    assert!(b.retired().is_empty());
}

#[test]
fn a_value_dropped_while_its_region_runs_is_retired_after_that_region() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    b.demand(y, Want::Device);
    let regions = b.cut();
    b.release(x);
    b.release(y);
    b.cut_for(CutReason::Flush);
    let mut retired = b.retired();
    retired.sort();
    assert_eq!(retired, [(x, Some(regions[0].id)), (y, Some(regions[0].id))]);
    b.finish(&regions[0]);
    assert!(b.state.story(y).contains("not live"));
}

#[test]
fn a_session_that_leaves_too_much_lazy_has_it_computed() {
    let mut b = Bench::with(Config { device: DeviceChoice::Host, tape_nodes_max: 10, ..Config::default() });
    let x = b.source(8);
    let mut sent = 0;
    for _ in 0..20 {
        b.scale(x, 8);
        b.cut_for(CutReason::Flush).iter().for_each(|r| {
            sent += r.nodes.len();
        });
    }
    assert!(sent >= 10, "{sent} nodes ran");
}

/// A chain that is cut after each op: only the newest value is held, and each segment has one op.
#[test]
fn a_session_that_leaves_a_long_chain_lazy_op_by_op_has_it_computed() {
    let mut b = Bench::with(Config { device: DeviceChoice::Host, tape_nodes_max: 16, ..Config::default() });
    let mut s = b.rand(4);
    let (mut live_max, mut made) = (0, 0);
    for _ in 0..200 {
        let next = b.scale(s, 4);
        b.release(s);
        s = next;
        let sent = b.cut_for(CutReason::Flush);
        made += b.run(sent).len();
        live_max = live_max.max(b.state.graph.len());
    }
    assert!(live_max <= 18, "{live_max} values are live");
    assert!((5..=25).contains(&made), "{made} values were written out");
}

#[test]
fn the_same_program_is_cut_the_same_whenever_completions_arrive() {
    let run = |finish_early: bool| {
        let mut b = Bench::new(DeviceChoice::Host);
        let mut shapes = vec![];
        let x = b.rand(64);
        let mut y = b.scale(x, 64);
        let mut pending = vec![];
        for step in 0..12 {
            let z = b.add(x, y, 64);
            if step % 3 == 0 {
                b.release(y);
            }
            y = z;
            b.gather(z);
            for region in b.cut() {
                shapes.push(format!("{:?} {:?} {:?}", region.id, values(&region), outputs(&region)));
                if finish_early {
                    b.finish(&region);
                } else {
                    pending.push(region);
                    if pending.len() > 4 {
                        let oldest = pending.remove(0);
                        b.finish(&oldest);
                    }
                }
            }
        }
        shapes
    };
    assert_eq!(run(true), run(false));
}
