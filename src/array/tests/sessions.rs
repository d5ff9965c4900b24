//! Tests of several sessions: sharing, seeds, ends.

use crate::array::fake::FakeRing;
use crate::array::*;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::graph::Op;
use futures::executor::block_on;

#[test]
fn arrays_of_another_session_must_be_shared_first() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    let mixed = &x + &y;
    assert_eq!(mixed.error().unwrap().kind(), ErrorKind::Ownership);
    drop(mixed);
    let shared = x.share().unwrap();
    ring.story();
    let sum = &shared + &y;
    assert!(sum.error().is_none());
    drop((x, shared, a));
    b.flush();
    // The tape of `b` keeps `a` until it is cut, so that the drop of `a` reaches the scheduler after its use.
    assert_eq!(
        ring.story(),
        [
            "open 1",
            "cut 1 Flush",
            "v1.0 = rand() 9x1 f32",
            "v1.1 = add(v0.0, v1.0) 9x1 f32",
            "cut 0 Flush",
            "drop v0.0",
            "close 0",
        ]
    );
    let other = FakeRing::unfolded();
    let far = other.session("far").rand::<f32>([9, 1]);
    far.share().unwrap();
    assert_eq!((&sum + &far).error().unwrap().message(), "arrays of two runtimes do not mix");
}

#[test]
fn a_session_that_sends_nothing_is_unknown_to_the_ring() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("quiet");
    let x = s.from_slice(&[1.0f32, 2.0], [2, 1]).unwrap();
    assert_eq!(block_on((&x + 1.0).gather::<f32>()).unwrap().as_slice(), [2.0, 3.0]);
    drop((x, s));
    assert!(ring.story().is_empty());
    assert!(ring.gates.lock().is_empty());
}

#[test]
fn an_evaluated_array_may_be_used_by_another_session() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    let eval = x.eval();
    assert_eq!(x.state(), ArrayState::Demanded);
    ring.link.gathers.resolve(crate::ids::GatherId(0), Ok(crate::contract::messages::scheduler::Delivered::Device));
    block_on(eval).unwrap();
    assert_eq!(x.state(), ArrayState::Evaluated);
    assert!((&y + &x).error().is_none());
    assert!((&x + &y).error().is_none());
}

#[test]
fn two_sessions_do_not_keep_each_other_alive() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]).share().unwrap(), b.rand::<f32>([9, 1]).share().unwrap());
    let (p, q) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    drop((&p + &y, &q + &x));
    drop((x, y, p, q, a, b));
    let story = ring.story();
    assert!(story.contains(&"close 0".to_owned()) && story.contains(&"close 1".to_owned()), "{story:?}");
}

#[test]
fn the_same_seed_gives_the_same_keys_and_sessions_differ_otherwise() {
    let ring = FakeRing::unfolded();
    let key = |s: &Session| {
        let _ = (s.rand::<f32>([9, 1]), s.randn::<f32>([9, 1]));
        s.flush();
        ring.nodes()
            .into_iter()
            .filter_map(|n| match n.op {
                Op::Random { key, .. } => Some((key.seed, key.stream, key.op)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let open = |name: &str| SessionBuilder::new(ring.link.clone(), name);
    assert_eq!(key(&open("a").seed(7).open()), [(7, 0, 0), (7, 0, 1)]);
    assert_eq!(key(&open("b").seed(7).open()), [(7, 0, 0), (7, 0, 1)]);
    assert_ne!(open("c").open().seed(), open("d").open().seed());
    let again = FakeRing::unfolded();
    assert_eq!(again.session("x").seed(), FakeRing::unfolded().session("y").seed());
}

#[test]
fn a_reseeded_session_repeats_its_numbers_and_draws_count_as_ops() {
    let ring = FakeRing::unfolded();
    let s = SessionBuilder::new(ring.link.clone(), "seeds").seed(7).open();
    let first = (s.draw::<f64>(false, 3).unwrap(), s.draw::<f32>(true, 2).unwrap());
    let state = s.random_state();
    assert_eq!((state, s.seed()), (RandomState { seed: 7, stream: 0, ops: 2 }, 7));
    let third = s.draw::<f64>(false, 3).unwrap();
    assert_ne!(third, first.0);
    s.set_random_state(state);
    assert_eq!(s.draw::<f64>(false, 3).unwrap(), third);
    s.set_random_state(RandomState { seed: 7, stream: 0, ops: 0 });
    assert_eq!((s.draw::<f64>(false, 3).unwrap(), s.draw::<f32>(true, 2).unwrap()), first);
    assert_eq!(s.draw::<i32>(false, 1).unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn a_closed_session_refuses_and_a_gone_runtime_answers() {
    let ring = FakeRing::unfolded();
    let s = ring.session("closed");
    let x = s.rand::<f32>([4, 1]);
    s.close();
    assert_eq!((&x + 1.0).error().unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(block_on(x.gather::<f32>()).unwrap_err().kind(), ErrorKind::Cancelled);
    let s = ring.session("open");
    let y = s.rand::<f32>([4, 1]);
    let before = y.gather::<f32>();
    ring.link.gathers.close(Error::new(ErrorKind::Shutdown, "the runtime is gone"));
    let after = y.gather::<f32>();
    for gather in [before, after] {
        let error = block_on(gather).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("rand")));
        assert!(error.location().is_some());
    }
}
