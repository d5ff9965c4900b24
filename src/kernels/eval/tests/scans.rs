//! Tests of scans: both layouts and directions, blocks, several outputs.

use super::build::{Build, add};
use crate::graph::{DType, Element};
use crate::kernels::ir::*;

const SIZES: [(u32, u32); 8] = [(1, 1), (1, 1025), (3, 2500), (70, 40), (64, 300), (1500, 3), (5, 0), (0, 5)];

fn scan_all<T: Element>(monoid: Monoid, f: impl Fn(usize) -> T + Copy) {
    for (outer, inner) in SIZES {
        for (inner_fast, reverse) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut b = Build::new(Geometry::Scan { outer, inner, reverse }, inner_fast);
            let n = (outer * inner) as usize;
            let x = b.input(&(0..n).map(f).collect::<Vec<T>>());
            let (out, twice) = (b.output(T::DTYPE, n), b.output(T::DTYPE, n));
            let place = b.place();
            let x = b.load(x, place, None);
            let running = b.scan(monoid, x);
            let after = add(&mut b, running, x);
            b.store(out, Some(place), running, None);
            b.store(twice, Some(place), after, None);
            b.check_against_loops();
        }
    }
}

#[test]
fn running_sums_and_products_run_both_ways() {
    scan_all(Monoid::Sum, |i| ((i * 7919) % 31) as f32 - 15.0);
    scan_all(Monoid::Sum, |i| ((i * 7919) % 31) as f64 - 15.0);
    scan_all(Monoid::Prod, |i| if i % 2 == 0 { 2.0f32 } else { 0.5 });
    scan_all(Monoid::Sum, |i| (i % 3) as i32 - 1);
}

#[test]
fn running_extremes_skip_or_keep_nan_as_they_say() {
    let x = |i: usize| if i % 17 == 3 { f32::NAN } else { ((i * 7919) % 101) as f32 };
    for monoid in [Monoid::MinOmit, Monoid::MaxOmit, Monoid::MinInclude, Monoid::MaxInclude] {
        scan_all(monoid, x);
        scan_all(monoid, |i| (i * 7919 % 251) as u8);
    }
}

#[test]
fn integer_sums_saturate_and_come_back_from_the_limit() {
    let mut b = Build::new(Geometry::Scan { outer: 1, inner: 4, reverse: false }, true);
    let x = b.input(&[i32::MAX, 1, -5, 3]);
    let out = b.output(DType::I32, 4);
    let place = b.place();
    let x = b.load(x, place, None);
    let running = b.scan(Monoid::Sum, x);
    b.store(out, Some(place), running, None);
    assert_eq!(b.run(1).values::<i32>(1), [i32::MAX, i32::MAX, i32::MAX - 5, i32::MAX - 2]);
}

#[test]
fn a_long_running_sum_of_ones_counts_beyond_what_f32_counts_one_by_one() {
    let n = 20_000_000;
    let mut b = Build::new(Geometry::Scan { outer: 1, inner: n, reverse: false }, true);
    let one = b.input(&[1.0f32]);
    let out = b.output(DType::F32, n as usize);
    let place = b.place();
    let zero = b.number(0);
    let one = b.load(one, zero, None);
    let running = b.scan(Monoid::Sum, one);
    b.store(out, Some(place), running, None);
    let sums = b.run(1).values::<f32>(1);
    assert_eq!((sums[0], sums[1_000_000], sums[n as usize - 1]), (1.0, 1_000_001.0, 20_000_000.0));
}

#[test]
fn a_running_sum_begins_with_its_first_element_also_where_that_is_a_negative_zero() {
    for (outer, inner) in [(1, 5), (3, 2500), (70, 4)] {
        for (inner_fast, reverse) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut b = Build::new(Geometry::Scan { outer, inner, reverse }, inner_fast);
            let n = (outer * inner) as usize;
            let x = b.input(&vec![-0.0f64; n]);
            let out = b.output(DType::F64, n);
            let place = b.place();
            let x = b.load(x, place, None);
            let running = b.scan(Monoid::Sum, x);
            b.store(out, Some(place), running, None);
            let sums = b.run(1).values::<f64>(1);
            assert!(sums.iter().all(|x| x.is_sign_negative()), "{outer}x{inner} {inner_fast} {reverse}");
        }
    }
}
