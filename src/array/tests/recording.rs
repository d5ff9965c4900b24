//! Tests of recorded ops: their dtypes, shapes, faults and folded values.

use super::folded;
use crate::array::fake::FakeRing;
use crate::array::*;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::graph::{Arg, DType, Nan, Op, ReduceOp};
use futures::executor::block_on;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn operators_take_every_ownership_and_numbers_stay_weak() {
    let ring = FakeRing::unfolded();
    let s = ring.session("operators");
    let x = s.full(1.0f32, [4, 1]);
    let i = s.full(1i32, [4, 1]);
    let results = [
        &x + &x,
        x.clone() - &x,
        &x * x.clone(),
        x.clone() / x.clone(),
        &x % 3,
        &x + 1.0,
        1.0 - &x,
        2 * x.clone(),
        &x + 1.0f32,
        &x - 100i64,
        -&x,
        x.max(0.0),
        x.pow(2),
        x.clamp(0, 1.0),
    ];
    for result in &results {
        assert_eq!(result.dtype().unwrap(), DType::F32, "{result:?}");
    }
    for result in [&i + 1, &i * 0.5, 2.0 * &i, i.max(7)] {
        assert_eq!(result.dtype().unwrap(), DType::I32, "{result:?}");
    }
    for result in [x.lt(1.0), !&x, &x & &i, &x | 1, x.eq_to(&i), x.isnan()] {
        assert_eq!(result.dtype().unwrap(), DType::Bool, "{result:?}");
    }
    let mut y = x.clone();
    y += 1.0;
    y *= &x;
    assert_eq!(y.dtype().unwrap(), DType::F32);
    assert_eq!(s.full(true, [2, 1]).sqrt().dtype().unwrap(), DType::F64);
}

#[test]
fn an_integer_beside_a_number_is_recorded_alike_whether_that_is_whole_or_not() {
    let ring = FakeRing::unfolded();
    let s = ring.session("mixed");
    let i = s.full(7i32, [4, 1]);
    ring.nodes();
    let _ = (&i * 0.5, &i * 2.0, i.lt(2), i.atan2(2.0));
    s.flush();
    let nodes = ring.nodes();
    let names: Vec<String> = nodes.iter().map(|n| format!("{} {}", n.op.name(), n.meta.dtype)).collect();
    assert_eq!(names, ["full i32", "mul i32", "mul i32", "lt bool", "cast f64", "atan2 f64"]);
    let numbers = nodes.iter().flat_map(|n| &n.args).filter_map(|arg| match arg {
        Arg::Scalar(number) => Some(format!("{number} {}", number.dtype())),
        Arg::Value(_) => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), ["7 i32", "0.5 f64", "2 f64", "2 f64", "2 f64"]);
}

#[test]
fn whole_numbers_that_do_not_fit_an_integer_are_compared_in_f64() {
    let ring = FakeRing::unfolded();
    let s = ring.session("fit");
    let bytes = s.full(200u8, [4, 1]);
    let _ = bytes.lt(300);
    let large = s.full(i64::MAX - 1, [4, 1]);
    let _ = &large + 1.0;
    s.flush();
    let of = |n: &crate::graph::Node| match n.args.last() {
        Some(Arg::Scalar(scalar)) => format!("{} {scalar} {}", n.op.name(), scalar.dtype()),
        _ => n.op.name().to_owned(),
    };
    let nodes: Vec<String> = ring.nodes().iter().map(of).collect();
    assert!(nodes.contains(&"lt 300 f64".to_owned()), "{nodes:?}");
    assert!(nodes.contains(&"add 1 f64".to_owned()), "{nodes:?}");
}

#[test]
fn faults_are_carried_the_first_operands_wins_and_nothing_is_recorded() {
    let ring = FakeRing::unfolded();
    let s = ring.session("faults");
    let (a, b) = (s.rand::<f32>([2, 3]), s.rand::<f32>([4, 3]));
    s.flush();
    ring.story();
    let bad = &a + &b;
    let line = line!() - 1;
    let error = bad.error().unwrap().clone();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")));
    assert_eq!(error.location().unwrap().line(), line);
    let other = a.reshape([7, 1]);
    let poisoned = (&a * (&bad - &other)).exp().sum(..);
    assert_eq!(poisoned.error().unwrap().op(), Some("add"), "the first operand's fault wins");
    assert_eq!(block_on(poisoned.gather::<f32>()).unwrap_err().to_string(), error.to_string());
    assert_eq!(a.try_add(&b).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(bad.shape().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(s.randn::<f32>(bad.shape()).error().unwrap().op(), Some("add"));
    let huge = [usize::MAX, 2];
    let made = [s.zeros::<f32>(huge), s.ones::<f32>(huge), s.full(2.0f32, huge), s.eye::<f32>(usize::MAX)];
    assert_eq!(made.map(|x| x.error().unwrap().op()), ["zeros", "ones", "full", "eye"].map(Some));
    s.flush();
    assert!(ring.story().is_empty());
    assert!(format!("{bad:?}").starts_with("Array(faulty: add: 2x3 and 4x3 do not expand to one shape"));
}

#[test]
fn bad_arguments_are_typed_errors() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("bad");
    let x = s.zeros::<f32>([3, 3]);
    let kind = |a: &Array| a.error().map(Error::kind);
    assert_eq!(s.from_vec(vec![1.0f32; 5], [2, 3]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(kind(&s.zeros::<f32>([1 << 20, 1 << 20])), Some(ErrorKind::TooLarge));
    assert_eq!(kind(&x.take(&s.full(1.0f32, [2, 1]))), Some(ErrorKind::DType));
    assert_eq!(
        x.take(&s.zeros::<f32>([2, 1])).error().unwrap().message(),
        "indices must be integers, and these are f32"
    );
    let product = s.full(1i32, [3, 3]).matmul(&s.full(1u32, [3, 3]));
    assert_eq!(product.error().map(|e| (e.kind(), e.op())), Some((ErrorKind::DType, Some("matmul"))));
    assert_eq!(kind(&x.take(&s.full(9i32, [2, 1]))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.take(&s.full(-1i64, [2, 1]))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.slice((0..4, 0))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.slice((3, 0))), Some(ErrorKind::Index));
    assert_eq!(kind(&(&s.full(1i32, [2, 1]) + &s.full(1u8, [2, 1]))), Some(ErrorKind::DType));
    assert_eq!(kind(&x.matmul(&s.zeros::<f32>([2, 3]))), Some(ErrorKind::Shape));
    assert_eq!(kind(&s.rand::<i32>([2, 2])), Some(ErrorKind::DType));
    assert_eq!(kind(&s.randi::<i32>(5..5, [2, 2])), Some(ErrorKind::Argument));
    assert_eq!(kind(&s.arange(0.0, 1.0, 0.0)), Some(ErrorKind::Argument));
    assert_eq!(cat(0, &[]).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(block_on(x.gather::<f64>()).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(block_on(x.item::<f32>()).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(kind(&s.zeros::<f32>([0, 1]).argmax(0)), Some(ErrorKind::Argument));
}

#[test]
fn tiny_host_values_fold_and_their_gathers_are_ready() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("fold");
    let table = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let centred = &table - table.mean(1);
    assert_eq!(folded::<f32>(&centred), [-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(folded::<f32>(&table.slice((1, step(.., -1)))), [6.0, 5.0, 4.0]);
    assert_eq!(folded::<f32>(&table.t().slice((0..2,))), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(folded::<f32>(&table.slice(1..3)), [4.0, 2.0], "a lone range counts elements");
    assert_eq!(table.slice(step(.., -2)).shape().unwrap().dims(), [3, 1]);
    assert_eq!(block_on(table.sum(..).item::<f32>()).unwrap(), 21.0);
    assert_eq!(folded::<f64>(&s.linspace(0.0, 1.0, 3)), [0.0, 0.5, 1.0]);
    assert_eq!(folded::<i32>(&s.arange(1, 8, 3)), [1, 4, 7]);
    assert_eq!(folded::<u8>(&s.eye::<u8>(2)), [1, 0, 0, 1]);
    assert_eq!(folded::<f32>(&cat(0, &[&table, &table.slice((0,))]).unwrap().slice((.., 0))), [1.0, 4.0, 1.0]);
    let (x, mask) = (s.from_slice(&[3, 1, 2], 3).unwrap(), s.from_slice(&[true, false, true], 3).unwrap());
    assert_eq!(folded::<i32>(&mask.select(&x, -1)), [3, -1, 2]);
    assert_eq!(folded::<i32>(&x.take(&s.from_slice(&[2u32, 0], 2).unwrap())), [2, 3]);
    assert!(ring.story().is_empty(), "nothing travels");
    assert!(ring.link.counters.ops_folded.load(Relaxed) > 10);
    assert_eq!(format!("{centred:?}"), "Array(2x3 f32, host, sub)");
}

#[test]
fn folding_can_be_turned_off() {
    let ring = FakeRing::unfolded();
    let s = ring.session("unfolded");
    let x = s.from_slice(&[1.0f32], 1).unwrap() + 1.0;
    assert_eq!(x.state(), ArrayState::Lazy);
    assert_eq!(format!("{x:?}"), "Array(1x1 f32, lazy, add)");
}

#[test]
fn empty_arrays_need_no_ring_and_reduce_to_identities() {
    let ring = FakeRing::unfolded();
    let s = ring.session("empty");
    let e = s.zeros::<f32>([0, 3]);
    assert_eq!(folded::<f32>(&(&e + 1.0)), [] as [f32; 0]);
    assert_eq!((&e * s.rand::<f32>([1, 3])).shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.t().matmul(&s.rand::<f32>([0, 2])).shape().unwrap().dims(), [3, 2]);
    assert_eq!(e.cumsum(0).shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.sort(0).0.shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.repmat(&[2, 2]).shape().unwrap().dims(), [0, 6]);
    assert_eq!(e.diff(0).shape().unwrap().dims(), [0, 3]);
    assert_eq!(s.zeros::<f32>([1, 1]).diff(0).shape().unwrap().dims(), [0, 1]);
    s.flush();
    ring.nodes();
    let (_sum, _prod, _all) = (e.sum(0), e.prod(0), e.all(0));
    s.flush();
    let fills: Vec<f64> = ring
        .nodes()
        .iter()
        .map(|n| match n.args[0] {
            Arg::Scalar(s) => s.as_f64(),
            Arg::Value(_) => f64::NAN,
        })
        .collect();
    assert_eq!(fills, [0.0, 1.0, 1.0]);
    let joined = cat(0, &[&e, &s.rand::<f32>([2, 3]), &e]).unwrap();
    assert_eq!(joined.shape().unwrap().dims(), [2, 3]);
}

#[test]
fn shapes_and_dtypes_of_reductions_follow_the_table() {
    let ring = FakeRing::unfolded();
    let s = ring.session("reduce");
    let (f, i, b) = (s.rand::<f32>([4, 3, 2]), s.full(1i32, [4, 3]), s.full(true, [4, 3]));
    let of = |a: &Array| (a.shape().unwrap().dims().to_vec(), a.dtype().unwrap());
    assert_eq!(of(&f.sum(1)), (vec![4, 1, 2], DType::F32));
    assert_eq!(of(&f.mean([0, 2])), (vec![1, 3], DType::F32));
    assert_eq!(of(&f.max_over(..)), (vec![1, 1], DType::F32));
    assert_eq!(of(&f.argmin(())), (vec![1, 3, 2], DType::U32));
    assert_eq!(of(&i.sum(0)), (vec![1, 3], DType::F64));
    assert_eq!(of(&i.sum_native(0)), (vec![1, 3], DType::I32));
    assert_eq!(of(&i.min_over(0)), (vec![1, 3], DType::I32));
    assert_eq!(of(&b.mean(1)), (vec![4, 1], DType::F64));
    assert_eq!(of(&b.any(..)), (vec![1, 1], DType::Bool));
    assert_eq!(of(&b.count_nonzero(0)), (vec![1, 3], DType::U32));
    assert_eq!(of(&f.dot(&f, 0)), (vec![1, 3, 2], DType::F32));
    assert_eq!(of(&f.cumsum(1)), (vec![4, 3, 2], DType::F32));
    assert_eq!(of(&i.cumsum(1)), (vec![4, 3], DType::I32));
    assert_eq!(of(&f.diff(0)), (vec![3, 3, 2], DType::F32));
    assert_eq!(of(&f.reduce(ReduceOp::Max, 0, Nan::Include)), (vec![1, 3, 2], DType::F32));
}

#[test]
fn a_reduction_over_one_element_is_no_reduction() {
    let ring = FakeRing::unfolded();
    let s = ring.session("one");
    let x = s.rand::<f32>([4, 3, 1, 1, 1]);
    let kept = [x.sum(2), x.mean(3), x.max_over(4), x.var([2, 3]), x.any(3)];
    assert_eq!(kept[0].shape().unwrap().dims(), [4, 3]);
    s.flush();
    assert!(ring.nodes().iter().all(|n| !matches!(n.op, Op::Reduce { .. })));
    drop(kept);
    let ring = FakeRing::new(Config::default());
    let y = ring.session("values").from_slice(&[f64::NAN, 2.0], [1, 2]).unwrap();
    assert_eq!(folded::<f64>(&y.nan_sum(0)), [0.0, 2.0]);
    assert!(folded::<f64>(&y.sum(0))[0].is_nan());
    assert_eq!(folded::<f64>(&y.var(0))[1], 0.0);
    assert_eq!(folded::<u32>(&y.argmax(0)), [0, 0]);
    assert_eq!(folded::<bool>(&y.any(0)), [true, true]);
}

#[test]
fn operators_that_assign_are_the_operators() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("assign");
    let start = || s.from_vec(vec![7i32, -7, 0], [1, 3]).unwrap();
    type Change = fn(&mut crate::array::Array);
    let cases: [(Change, [i32; 3]); 5] = [
        (|x| *x += 2, [9, -5, 2]),
        (|x| *x -= 2, [5, -9, -2]),
        (|x| *x *= 2, [14, -14, 0]),
        (|x| *x /= 2, [4, -4, 0]),
        (|x| *x %= 4, [3, -3, 0]),
    ];
    for (change, expected) in cases {
        let (mut x, kept) = (start(), start());
        change(&mut x);
        assert_eq!(folded::<i32>(&x), expected);
        assert_eq!(folded::<i32>(&kept), [7, -7, 0]);
    }
    let cases: [(Change, [bool; 3]); 3] =
        [(|x| *x &= 1, [true, true, false]), (|x| *x |= 0, [true, true, false]), (|x| *x ^= 1, [false, false, true])];
    for (change, expected) in cases {
        let mut x = start();
        change(&mut x);
        assert_eq!(folded::<bool>(&x), expected);
    }
}

#[test]
fn assignments_take_the_bases_dtype_and_check_their_shapes() {
    let ring = FakeRing::unfolded();
    let s = ring.session("assign");
    let x = s.rand::<f32>([4, 3]);
    let y = x.assign((1..3, 0), 5);
    assert_eq!((y.dtype().unwrap(), y.shape().unwrap().dims()), (DType::F32, &[4, 3][..]));
    let index = s.from_slice(&[0u32, 0, 2], 3).unwrap();
    assert!(x.assign_at(&index, 1.0).error().is_none());
    assert!(x.assign_dim(1, &index, s.rand::<f32>([4, 3])).error().is_none());
    assert_eq!(x.assign((1..3, 0), s.rand::<f32>([3, 1])).error().unwrap().kind(), ErrorKind::Shape);
    assert_eq!(x.assign_at(&index, s.rand::<f32>([2, 1])).error().unwrap().kind(), ErrorKind::Shape);
    s.flush();
    for node in ring.nodes() {
        let values = node.args.iter().all(|a| matches!(a, Arg::Value(_)));
        assert!(values || !matches!(node.op, Op::AssignSlice(_) | Op::AssignIndex { .. }), "RECORD-3");
    }
}

#[test]
fn fills_and_points_carry_their_numbers_as_parameters() {
    let ring = FakeRing::unfolded();
    let s = ring.session("parameters");
    let _ = (s.full(3.0f64, [4, 1]), s.linspace(0.0f32, 1.0, 5), s.arange(0i32, 10, 2), s.randi::<i32>(-2..3, [9, 1]));
    s.flush();
    let args: Vec<Vec<String>> = ring
        .nodes()
        .iter()
        .map(|n| {
            n.args
                .iter()
                .map(|a| match a {
                    Arg::Scalar(s) => format!("{s} {}", s.dtype()),
                    Arg::Value(v) => v.to_string(),
                })
                .collect()
        })
        .collect();
    assert_eq!(args[0], ["3 f64"]);
    assert_eq!(args[1], ["0 f32", "1 f32"]);
    assert_eq!(args[2], ["0 i32", "2 i32"]);
    assert_eq!(args[3], ["-2 i32", "5 u32"]);
}
