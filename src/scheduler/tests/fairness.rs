//! Whose turn it is.

use super::*;

#[test]
fn at_most_so_many_regions_are_downstream() {
    let mut b = Bench::new(DeviceChoice::Host);
    let mut sent = vec![];
    for _ in 0..20 {
        let x = b.rand(8);
        b.demand(x, Want::Device);
        sent.extend(b.cut());
    }
    assert_eq!(sent.len(), 6, "two batches in flight and four");
    b.finish(&sent[0]);
    assert_eq!(b.sent().len(), 1);
}

#[test]
fn sessions_take_turns_by_weight_and_keep_their_own_order() {
    let mut b = Bench::new(DeviceChoice::Host);
    let mut in_flight = b.fill();
    for (session, weight) in [(1, 1), (2, 3)] {
        b.open(session, weight);
        for _ in 0..12 {
            let x = b.rand(8);
            b.demand(x, Want::Device);
            assert!(b.cut().is_empty());
        }
    }
    let mut order = vec![];
    while let Some(region) = in_flight.pop() {
        b.finish(&region);
        let next = b.sent();
        order.extend(next.iter().map(|r| (r.session.0, r.id)));
        in_flight.extend(next);
    }
    let turns: Vec<u64> = order.iter().map(|(s, _)| *s).collect();
    assert_eq!(&turns[..16], [2, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2]);
    for session in [1, 2] {
        let ids: Vec<RegionId> = order.iter().filter(|(s, _)| *s == session).map(|(_, id)| *id).collect();
        assert_eq!(ids.len(), 12);
        assert!(ids.is_sorted(), "{ids:?}");
    }
}

#[test]
fn a_region_waits_until_what_makes_its_input_was_sent() {
    let mut b = Bench::new(DeviceChoice::Host);
    let in_flight = b.fill();
    b.open(1, 1);
    let first = b.rand(8);
    b.demand(first, Want::Device);
    b.cut();
    let shared = b.rand(8);
    b.demand(shared, Want::Device);
    b.cut();
    b.open(2, 100);
    let y = b.scale(shared, 8);
    b.gather(y);
    b.cut();
    let mut order = vec![];
    for region in in_flight {
        b.finish(&region);
        order.extend(b.sent().into_iter().map(|r| values(&r)[0]));
    }
    assert_eq!(order, [first, shared, y]);
}

#[test]
fn what_two_sessions_read_ends_once_only_one_of_them_reads_it() {
    let mut b = Bench::new(DeviceChoice::Host);
    let shared = b.rand(8);
    b.demand(shared, Want::Device);
    for made in b.cut() {
        b.finish(&made);
    }
    let in_flight = b.fill();
    // A region of a session that has had its turns: it is cut before that of the other session, and sent after it.
    let slow = b.scale(shared, 8);
    b.gather(slow);
    assert!(b.cut().is_empty());
    b.open(2, 100);
    let fast = b.scale(shared, 8);
    b.gather(fast);
    assert!(b.cut().is_empty());
    b.session = SessionId(0);
    b.release(shared);
    b.cut();
    let (mut order, mut ended) = (vec![], false);
    for region in in_flight {
        b.finish(&region);
        for reader in b.sent() {
            order.push(values(&reader)[0]);
            assert!(!reader.inputs[0].dies);
            ended |= b.retired().iter().any(|(value, _)| *value == shared);
            assert_eq!(ended, order == [fast, slow], "{order:?}");
            b.finish(&reader);
        }
    }
    assert_eq!(order, [fast, slow]);
}

#[test]
fn long_regions_leave_credits_to_short_ones_of_others() {
    const LONG: usize = 5 << 20;
    let mut b = Bench::new(DeviceChoice::Host);
    let ask = |b: &mut Bench, elements: usize| {
        let x = b.rand(elements);
        b.demand(x, Want::Device);
        b.cut().len()
    };
    b.open(1, 1);
    let long: usize = (0..8).map(|_| ask(&mut b, LONG)).sum();
    assert_eq!(long, 3, "of one session");
    b.open(2, 1);
    let long: usize = (0..8).map(|_| ask(&mut b, LONG)).sum();
    assert_eq!(long, 1, "of all sessions");
    b.open(3, 1);
    let short: usize = (0..8).map(|_| ask(&mut b, 8)).sum();
    assert_eq!(short, 4, "the last two credits, and the reserve");
}

#[test]
fn a_region_knows_the_weight_of_its_session() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.open(1, 7);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    assert_eq!(b.cut()[0].weight, 7);
}

#[test]
fn turns_are_charged_the_products_of_a_product_and_what_a_sum_reads() {
    use super::super::fairness::work_of;
    let mut b = Bench::new(DeviceChoice::Host);
    let data = HostBuffer::from_vec(vec![1.0f32; 64 * 32]).shared();
    let x = b.node(Op::Source(data.clone()), &[], DType::F32, &[64, 32]);
    let y = b.node(Op::Source(data), &[], DType::F32, &[32, 64]);
    let z = b.node(Op::MatMul, &[Arg::Value(x), Arg::Value(y)], DType::F32, &[64, 64]);
    let total = b.sum(z);
    b.gather(total);
    let work = work_of(&b.cut()[0]);
    assert_eq!((work.other, work.double), (64.0 * 64.0 * 64.0 + 64.0 * 64.0, 0.0));
}
