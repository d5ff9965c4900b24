//! Tests of reductions: every monoid, both layouts, chunks, units, siblings, tails, empty lines.

use super::build::{Build, Outcome, add};
use crate::graph::{DType, Element, ElementOp, Scalar};
use crate::kernels::ir::*;
use crate::rounds::rounds;

/// Sizes (outer, inner) that are cut in every way: long lines with and without chunks, many lines, few lines side by
/// side, units, no elements.
const SIZES: [(u32, u32); 15] = [
    (1, 1),
    (1, 1000),
    (1, 1025),
    (1, 50_000),
    (3, 40_000),
    (5, 255),
    (70, 300),
    (63, 64),
    (64, 255),
    (100, 130),
    (1030, 7),
    (200, 1500),
    (17_000, 2),
    (1, 0),
    (70, 0),
];

/// All sizes with `TIDEMILL_TESTS=all`, and those without the largest ones otherwise.
fn sizes() -> impl Iterator<Item = (u32, u32)> {
    let elements_max = rounds(60_000, u32::MAX);
    SIZES.into_iter().filter(move |(outer, inner)| outer * inner <= elements_max)
}

fn data<T: Element>(n: usize, f: impl Fn(usize) -> T) -> Vec<T> {
    (0..n).map(f).collect()
}

/// A kernel that folds `x` by a monoid and stores all components, over every size and both layouts.
fn fold_all<T: Element>(monoid: Monoid, f: impl Fn(usize) -> T + Copy) {
    for (outer, inner) in sizes() {
        let is_arg = format!("{monoid:?}").starts_with("Arg");
        if is_arg && inner == 0 {
            continue;
        }
        for inner_fast in [true, false] {
            fold_one(monoid, outer, inner, inner_fast, f).check_against_loops();
        }
    }
}

fn fold_one<T: Element>(monoid: Monoid, outer: u32, inner: u32, inner_fast: bool, f: impl Fn(usize) -> T) -> Build {
    let mut b = Build::new(Geometry::Reduce { outer, inner }, inner_fast);
    let x = b.input(&data((outer * inner) as usize, f));
    let place = b.place();
    let x = b.load(x, place, None);
    let mut args = vec![x];
    match monoid {
        Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => {
            args.push(b.inner());
        }
        Monoid::MomentsWhere => {
            let zero = b.param(Scalar::F64(0.0).cast(T::DTYPE));
            args.push(b.apply(ElementOp::Gt, DType::Bool, &[x, zero]));
        }
        _ => {}
    }
    let folded = b.reduce(monoid, &args);
    for (component, dtype) in monoid.components(T::DTYPE).into_iter().enumerate() {
        let moments = matches!(monoid, Monoid::Moments | Monoid::MomentsWhere);
        if moments && component == 2 {
            continue;
        }
        let out = b.output(dtype, outer as usize);
        let mut value = if component == 0 { folded } else { b.project(folded, component as u8, dtype) };
        if moments && component == 1 {
            // Devices choose different bases, so the sum of the base and of the mean minus the base is compared.
            let off = b.project(folded, 2, dtype);
            value = b.apply(ElementOp::Add, dtype, &[value, off]);
            b.kernel.insts[value.0 as usize].level = Level::Reduced;
        }
        b.store(out, None, value, None);
    }
    b
}

/// Small whole numbers, so that sums are exact in any order.
fn whole(i: usize) -> i64 {
    ((i * 7919) % 31) as i64 - 15
}

fn with_nan(i: usize) -> f32 {
    if i % 13 == 5 { f32::NAN } else { whole(i) as f32 }
}

#[test]
fn sums_of_every_dtype_are_exact() {
    fold_all(Monoid::Sum, |i| whole(i) as f32);
    fold_all(Monoid::Sum, |i| whole(i) as f64);
    fold_all(Monoid::Sum, |i| whole(i) as i32);
    fold_all(Monoid::Sum, whole);
    fold_all(Monoid::Sum, |i| i as u32 % 11);
}

#[test]
fn integer_sums_and_products_saturate() {
    for inner_fast in [true, false] {
        let sum = fold_one(Monoid::Sum, 3, 2000, inner_fast, |i| (i % 2) as u8).check_against_loops();
        assert_eq!(sum.values::<u8>(1).len(), 3);
        let sum = fold_one(Monoid::Sum, 1, 5000, inner_fast, |_| i32::MAX / 100).run(1);
        assert_eq!(sum.values::<i32>(1), [i32::MAX]);
        let product = fold_one(Monoid::Prod, 2, 100, inner_fast, |_| -2i64).run(1);
        assert_eq!(product.values::<i64>(1).len(), 2);
    }
}

#[test]
fn products_are_exact_where_they_are_powers_of_two() {
    fold_all(Monoid::Prod, |i| [1.0f64, 2.0, 0.5, -1.0][(i * 7919 % 997) & (3 * (i % 50 / 49))]);
    fold_all(Monoid::Prod, |i| if i % 3 == 0 { -1.0f32 } else { 1.0 });
}

#[test]
fn minima_and_maxima_skip_or_keep_nan_as_they_say() {
    for monoid in [Monoid::MinInclude, Monoid::MinOmit, Monoid::MaxInclude, Monoid::MaxOmit] {
        fold_all(monoid, with_nan);
        fold_all(monoid, |i| if i % 1000 == 999 { f64::NAN } else { whole(i) as f64 });
        fold_all(monoid, whole);
        fold_all(monoid, |i| i as u8);
    }
    let all = fold_one(Monoid::MinOmit, 2, 300, true, |_| f32::NAN).run(1);
    assert!(all.values::<f32>(1).iter().all(|x| x.is_nan()));
}

#[test]
fn positions_are_of_the_first_extreme_or_the_first_nan() {
    for monoid in [Monoid::ArgMinOmit, Monoid::ArgMaxOmit, Monoid::ArgMinInclude, Monoid::ArgMaxInclude] {
        fold_all(monoid, with_nan);
        fold_all(monoid, |i| whole(i) as f64);
        fold_all(monoid, |i| whole(i) as i32);
        fold_all(monoid, |_| f32::NAN);
        fold_all(monoid, |_| 1u8);
    }
}

#[test]
fn any_and_all_see_a_single_element() {
    for hit in [0usize, 777, 49_999] {
        for inner_fast in [true, false] {
            let any = fold_one(Monoid::Any, 1, 50_000, inner_fast, |i| i == hit).check_against_loops();
            assert_eq!(any.values::<bool>(1), [true]);
            let all = fold_one(Monoid::All, 1, 50_000, inner_fast, |i| i != hit).check_against_loops();
            assert_eq!(all.values::<bool>(1), [false]);
        }
    }
    fold_all(Monoid::Any, |i| i % 500 == 499);
    fold_all(Monoid::All, |i| i % 500 != 499);
}

fn close(got: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (got - expected).abs() / expected.abs().max(1.0);
    assert!(
        got == expected || error <= tolerance || (got.is_nan() && expected.is_nan()),
        "{what}: {got} instead of {expected}"
    );
}

/// Runs on 1, 2 and 5 threads, which must agree in every bit, and compares components within a tolerance.
fn nearly(b: &Build, components: usize, tolerance: f64) {
    let first: Outcome = b.run(1);
    let (memory, _) = super::naive::run(b);
    for (component, words) in memory.iter().enumerate().skip(1).take(components) {
        for threads in [2, 5] {
            assert!(b.run(threads).bytes(component as u16) == first.bytes(component as u16), "{threads} threads");
        }
        let expected = bytemuck::cast_slice::<u64, f64>(words);
        for (e, g) in expected.iter().zip(first.values::<f64>(component as u16)) {
            close(g, *e, tolerance, &format!("component {component} of {:?}", b.geometry));
        }
    }
}

#[test]
fn variances_survive_a_large_mean_and_skip_what_is_masked() {
    for (outer, inner) in sizes() {
        for inner_fast in [true, false] {
            let x = |i: usize| 10_000.0 + whole(i) as f64;
            nearly(&fold_one(Monoid::Moments, outer, inner, inner_fast, x), 3, 1e-12);
            nearly(&fold_one(Monoid::MomentsWhere, outer, inner, inner_fast, |i| whole(i) as f64), 3, 1e-12);
        }
    }
}

#[test]
fn sums_of_exponentials_are_relative_to_the_greatest_value() {
    for (outer, inner) in sizes() {
        for inner_fast in [true, false] {
            nearly(&fold_one(Monoid::ExpSum, outer, inner, inner_fast, |i| 5000.0 + whole(i) as f64), 2, 1e-12);
        }
    }
    let parts = |x: &dyn Fn(usize) -> f32| {
        let out = fold_one(Monoid::ExpSum, 1, 3000, true, x).run(1);
        [1, 2].map(|component| out.values::<f32>(component)[0])
    };
    assert_eq!(parts(&|_| 1e38), [1e38, 3000.0]);
    assert_eq!(parts(&|_| f32::NEG_INFINITY), [f32::NEG_INFINITY, 3000.0]);
    assert_eq!(parts(&|i| if i % 3 == 1 { f32::INFINITY } else { 5.0 }), [f32::INFINITY, 1000.0]);
    assert!(parts(&|i| if i == 1234 { f32::NAN } else { i as f32 })[1].is_nan());
}

#[test]
fn norms_do_not_overflow_and_pass_infinity_and_nan_on() {
    for (outer, inner) in sizes() {
        for inner_fast in [true, false] {
            nearly(&fold_one(Monoid::Squares, outer, inner, inner_fast, |i| whole(i) as f64), 3, 1e-12);
        }
    }
    let norm = |x: &dyn Fn(usize) -> f32| {
        let out = fold_one(Monoid::Squares, 1, 3000, true, x).run(1);
        let [small, middling, big] = [1, 2, 3].map(|component| out.values::<f32>(component)[0] as f64);
        let scale = 2f64.powi(2 * SquareLimits::of(DType::F32).scale);
        (small / scale + middling + big * scale).sqrt()
    };
    close(norm(&|_| 1e38) / 5.477_225_6e39, 1.0, 1e-7, "beyond f32");
    close(norm(&|_| 1e-40) / 5.477_225_6e-39, 1.0, 1e-5, "far below 1");
    assert_eq!(norm(&|i| if i == 2999 { f32::INFINITY } else { 1.0 }), f64::INFINITY);
    assert_eq!(norm(&|i| if i % 1000 == 1 { f32::NEG_INFINITY } else { 1.0 }), f64::INFINITY);
    assert!(norm(&|i| if i == 7 { f32::NAN } else { f32::INFINITY }).is_nan());
    assert_eq!(norm(&|_| 0.0), 0.0);
}

#[test]
fn twenty_million_f32_ones_sum_to_twenty_million() {
    for inner_fast in [true, false] {
        let out = fold_one(Monoid::Sum, 1, 20_000_000, inner_fast, |_| 1.0f32).run(2);
        assert_eq!(out.values::<f32>(1), [20_000_000.0]);
    }
    // Outputs side by side, as many rows.
    let out = fold_one(Monoid::Sum, 64, 300_000, false, |_| 0.1f32).run(2);
    for sum in out.values::<f32>(1) {
        close(sum as f64, 0.1f32 as f64 * 300_000.0, 1e-6, "pairwise");
    }
}

#[test]
fn a_producer_siblings_outer_values_and_a_tail_are_one_kernel() {
    for (outer, inner) in sizes() {
        for inner_fast in [true, false] {
            let mut b = Build::new(Geometry::Reduce { outer, inner }, inner_fast);
            let x = b.input(&data((outer * inner) as usize, |i| whole(i) as f64));
            let shift = b.input(&data(outer as usize, |i| (i % 5) as f64));
            let (total, least, scaled) = (
                b.output(DType::F64, outer as usize),
                b.output(DType::F64, outer as usize),
                b.output(DType::F64, 2 * outer as usize),
            );
            let copy = b.output(DType::F64, (outer * inner) as usize);
            let place = b.place();
            let at = b.outer();
            let (x, shift) = (b.load(x, place, None), b.load(shift, at, None));
            let moved = add(&mut b, x, shift);
            b.store(copy, Some(place), moved, None);
            let sum = b.reduce(Monoid::Sum, &[moved]);
            let min = b.reduce(Monoid::MinInclude, &[x]);
            let constant = b.param(Scalar::F64(2.0));
            let count = b.reduce(Monoid::Sum, &[constant]);
            let tail = b.apply(ElementOp::Sub, DType::F64, &[sum, count]);
            let tail = b.apply(ElementOp::Add, DType::F64, &[tail, shift]);
            b.kernel.insts[tail.0 as usize].level = Level::Reduced;
            let two = b.number(2);
            let spread = b.index(IndexOp::Mul, at, two);
            b.store(total, None, sum, None);
            b.store(least, None, min, None);
            b.store(scaled, Some(spread), tail, None);
            b.check_against_loops();
        }
    }
}

#[test]
fn requirements_of_elements_of_lines_and_of_folds_count_wherever_they_stand() {
    // Sums of whole numbers below 8. That each element is below 8 is true, that each is below 7 is not; the sums are
    // below the limit.
    for (outer, inner) in [(1, 1), (1, 1025), (3, 40_000), (70, 300), (1030, 7), (5, 0)] {
        for inner_fast in [true, false] {
            let mut b = Build::new(Geometry::Reduce { outer, inner }, inner_fast);
            let x = b.input(&data((outer * inner) as usize, |i| (i % 8) as i32));
            let out = b.output(DType::I32, outer as usize);
            let place = b.place();
            let x = b.load(x, place, None);
            let outer_index = b.outer();
            let lines = b.number(outer);
            let fewer = b.number(outer - 1);
            for (limit, fault) in [(8, 0), (7, 1)] {
                let limit = b.param(Scalar::I32(limit));
                let below = b.apply(ElementOp::Lt, DType::Bool, &[x, limit]);
                b.require(below, fault, None);
            }
            for (limit, fault) in [(lines, 2), (fewer, 3)] {
                let below = b.compare(IndexCompare::Less, outer_index, limit);
                b.require(below, fault, None);
            }
            let sum = b.reduce(Monoid::Sum, &[x]);
            for (limit, fault) in [(i32::MAX, 4), (0, 5)] {
                let limit = b.param(Scalar::I32(limit));
                let below = b.apply(ElementOp::Lt, DType::Bool, &[sum, limit]);
                b.require(below, fault, None);
            }
            b.store(out, None, sum, None);
            let faults = b.check_against_loops().faults;
            assert_eq!(faults, [0, (outer * inner >= 8) as u32, 0, 1, 0, 1], "{outer} {inner} {inner_fast}");
        }
    }
}
