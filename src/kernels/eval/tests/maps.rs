//! Tests of maps: loads in every pattern, guards, checks, several stores, updates in place.

use super::build::{Build, add};
use crate::graph::{DType, Dist, ElementOp, Scalar};
use crate::kernels::eval::random;
use crate::kernels::ir::*;

/// Numbers of elements around the edges of blocks and tasks.
const SIZES: [u32; 9] = [1, 2, 15, 1023, 1024, 1025, 2047, 3000, 70_001];

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37) % 1001) as f32 - 500.0).collect()
}

#[test]
fn a_sum_of_two_arrays_and_a_number_has_every_element() {
    for n in SIZES {
        let mut b = Build::map(n);
        let (x, y) = (b.input(&ramp(n as usize)), b.input(&ramp(n as usize + 3)));
        let out = b.output(DType::F32, n as usize);
        let flat = b.flat();
        let (x, y) = (b.load(x, flat, None), b.load(y, flat, None));
        let half = b.param(Scalar::F32(0.5));
        let sum = add(&mut b, x, y);
        let sum = add(&mut b, sum, half);
        b.store(out, None, sum, None);
        let outcome = b.check_against_loops();
        assert_eq!(outcome.stats.host_kernels, 1);
        assert_eq!(outcome.stats.host_blocks, n.div_ceil(1024) as u64);
    }
}

#[test]
fn an_empty_map_does_nothing() {
    let mut b = Build::map(0);
    let x = b.input::<f32>(&[]);
    let out = b.output(DType::F32, 0);
    let flat = b.flat();
    let x = b.load(x, flat, None);
    b.store(out, None, x, None);
    assert_eq!(b.run(2).stats.host_blocks, 0);
}

#[test]
fn broadcast_rows_and_columns_of_any_height_are_repeated() {
    for (rows, columns) in [(1, 5000), (2, 3000), (3, 1000), (7, 333), (100, 50), (1000, 5), (1024, 4), (5000, 2)] {
        let n = rows * columns;
        let mut b = Build::map(n);
        let column = b.input(&ramp(rows as usize));
        let row = b.input(&ramp(columns as usize + 9));
        let scalar = b.input(&[2.5f32]);
        let out = b.output(DType::F32, n as usize);
        let flat = b.flat();
        let height = b.number(rows);
        let zero = b.number(0);
        let (down, right) = (b.index(IndexOp::Rem, flat, height), b.index(IndexOp::Div, flat, height));
        let (column, row) = (b.load(column, down, None), b.load(row, right, None));
        let scalar = b.load(scalar, zero, None);
        let sum = add(&mut b, column, row);
        let sum = add(&mut b, sum, scalar);
        b.store(out, None, sum, None);
        b.check_against_loops();
    }
}

#[test]
fn a_transpose_a_flip_and_a_slice_are_index_maps() {
    for (rows, columns) in [(3u32, 1000u32), (1000, 3), (40, 60)] {
        let n = rows * columns;
        let mut b = Build::map(n);
        let x = b.input(&ramp(n as usize));
        let bytes = b.input(&(0..n).map(|i| i as u8).collect::<Vec<_>>());
        let wide = b.input(&(0..2 * n).map(|i| i as i64 - 7).collect::<Vec<_>>());
        let outs =
            [b.output(DType::F32, n as usize), b.output(DType::U8, n as usize), b.output(DType::I64, n as usize)];
        let flat = b.flat();
        let (r, c, last, two) = (b.number(rows), b.number(columns), b.number(n - 1), b.number(2));
        let (i, j) = (b.index(IndexOp::Rem, flat, c), b.index(IndexOp::Div, flat, c));
        let turned = b.index(IndexOp::Mul, i, r);
        let turned = b.index(IndexOp::Add, turned, j);
        let flipped = b.index(IndexOp::Sub, last, flat);
        let strided = b.index(IndexOp::Mul, flat, two);
        for ((out, operand), index) in outs.into_iter().zip([x, bytes, wide]).zip([turned, flipped, strided]) {
            let value = b.load(operand, index, None);
            b.store(out, None, value, None);
        }
        b.check_against_loops();
    }
}

#[test]
fn a_guarded_load_reads_nothing_outside_and_yields_zero() {
    for split in [0u32, 1, 700, 1024, 1500, 2999, 3000] {
        // `[x; y]` with x of `split` elements, as guarded loads and a select; then padded.
        let n = 3000;
        let mut b = Build::map(n);
        let x = b.input(&ramp(split as usize));
        let y = b.input(&ramp((n - split) as usize));
        let (out, padded) = (b.output(DType::F32, n as usize), b.output(DType::F32, n as usize));
        let flat = b.flat();
        let at = b.number(split);
        let first = b.compare(IndexCompare::Less, flat, at);
        let second = b.compare(IndexCompare::SignedLessEqual, at, flat);
        let rest = b.index(IndexOp::Sub, flat, at);
        let x = b.load(x, flat, Some(first));
        let y = b.load(y, rest, Some(second));
        let both = b.apply(ElementOp::Select, DType::F32, &[first, x, y]);
        b.store(out, None, both, None);
        b.store(padded, None, x, None);
        b.check_against_loops();
    }
}

#[test]
fn guarded_and_indexed_stores_write_only_their_elements() {
    for n in [10, 3000] {
        let mut b = Build::map(n);
        let x = b.input(&ramp(n as usize));
        let some = b.output(DType::F32, n as usize);
        let spread = b.output(DType::F32, 2 * n as usize);
        let shifted = b.output(DType::U32, n as usize + 5);
        let flat = b.flat();
        let (two, five, limit) = (b.number(2), b.number(5), b.number(n / 2));
        let x = b.load(x, flat, None);
        let zero = b.param(Scalar::F32(0.0));
        let positive = b.apply(ElementOp::Gt, DType::Bool, &[x, zero]);
        let low = b.compare(IndexCompare::Less, flat, limit);
        let doubled = b.index(IndexOp::Mul, flat, two);
        let moved = b.index(IndexOp::Add, flat, five);
        b.store(some, None, x, Some(positive));
        b.store(spread, Some(doubled), x, Some(low));
        b.store(shifted, Some(moved), doubled, None);
        b.check_against_loops();
    }
}

#[test]
fn outputs_in_place_may_swap_their_operands() {
    let n = 2500;
    let mut b = Build::map(n);
    let x = b.in_place(&ramp(n as usize));
    let y = b.in_place(&ramp(n as usize + 1)[1..]);
    let sum = b.output(DType::F32, n as usize);
    let flat = b.flat();
    let (a, c) = (b.load(x, flat, None), b.load(y, flat, None));
    let total = add(&mut b, a, c);
    b.store(x, None, c, None);
    b.store(y, None, a, None);
    b.store(sum, None, total, None);
    b.check_against_loops();
}

#[test]
fn an_index_outside_is_clamped_and_sets_its_own_fault_word() {
    for (outside, expected) in [(None, vec![0, 0]), (Some(-1), vec![0, 1]), (Some(50), vec![0, 1])] {
        let n = 2000;
        let mut b = Build::map(n);
        let mut indices: Vec<i32> = (0..n as i32).map(|i| i * 7 % 50).collect();
        if let Some(index) = outside {
            indices[1999] = index;
        }
        let index = b.input(&indices);
        let table = b.input(&ramp(50));
        let out = b.output(DType::F32, n as usize);
        let flat = b.flat();
        let extent = b.number(50);
        let index = b.load(index, flat, None);
        let at = b.check(index, extent, 1, None);
        let value = b.load(table, at, None);
        b.store(out, None, value, None);
        assert_eq!(b.check_against_loops().faults, expected);
    }
}

#[test]
fn a_guarded_check_counts_only_where_the_guard_holds() {
    for (limit, fault) in [(10, 0), (11, 1)] {
        let n = 1500;
        let mut b = Build::map(n);
        let table = b.input(&ramp(10));
        let out = b.output(DType::F32, n as usize);
        let flat = b.flat();
        let (limit, extent) = (b.number(limit), b.number(10));
        let on = b.compare(IndexCompare::Less, flat, limit);
        let at = b.check(flat, extent, 0, Some(on));
        let value = b.load(table, at, Some(on));
        b.store(out, None, value, None);
        assert_eq!(b.check_against_loops().faults, [fault]);
    }
}

#[test]
fn what_is_required_sets_its_own_fault_word_where_it_does_not_hold_and_is_asked() {
    // Element `bad` is negative. One requirement counts below `limit`, another one everywhere.
    for (bad, limit, faults) in [(None, 1500, [0, 0, 0]), (Some(1499), 1499, [0, 1, 1]), (Some(7), 8, [1, 1, 1])] {
        let n = 1500;
        let mut b = Build::map(n);
        let mut data: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let first = b.input(&[bad.map_or(1.0f32, |_| -1.0)]);
        bad.into_iter().for_each(|bad: usize| data[bad] = -1.0);
        let x = b.input(&data);
        let out = b.output(DType::F32, n as usize);
        let flat = b.flat();
        let (limit, at, zero) = (b.number(limit), b.number(0), b.param(Scalar::F32(0.0)));
        let asked = b.compare(IndexCompare::Less, flat, limit);
        let x = b.load(x, flat, None);
        let holds = b.apply(ElementOp::Ge, DType::Bool, &[x, zero]);
        b.require(holds, 0, Some(asked));
        b.require(holds, 1, None);
        // A uniform condition, whose guard holds for the first elements only.
        let first = b.load(first, at, None);
        let holds = b.apply(ElementOp::Ge, DType::Bool, &[first, zero]);
        b.require(holds, 2, Some(asked));
        b.store(out, None, x, None);
        assert_eq!(b.check_against_loops().faults, faults);
    }
}

#[test]
fn every_dtype_is_loaded_cast_and_stored() {
    let n = 1300u32;
    let data: Vec<i64> = (0..n as i64).map(|i| i * 3 - 600).collect();
    for to in DType::ALL {
        let mut b = Build::map(n);
        let x = b.input(&data);
        let out = b.output(to, n as usize);
        let flat = b.flat();
        let x = b.load(x, flat, None);
        let y = b.apply(ElementOp::Cast, to, &[x]);
        b.store(out, None, y, None);
        let filled = b.output(to, n as usize);
        let one = b.param(Scalar::I32(1).cast(to));
        b.store(filled, None, one, None);
        b.check_against_loops();
    }
}

#[test]
#[should_panic(expected = "EVAL-1")]
fn a_load_outside_of_its_operand_is_a_broken_invariant() {
    let mut b = Build::map(100);
    let x = b.input(&[0.0f32; 99]);
    let out = b.output(DType::F32, 100);
    let flat = b.flat();
    let x = b.load(x, flat, None);
    b.store(out, None, x, None);
    b.run(1);
}

#[test]
fn random_numbers_belong_to_their_element_in_whatever_order_it_is_visited() {
    let n = 3001u32;
    let key = [1, 2, 3, 4, 5];
    let mut b = Build::map(n);
    let first = b.params.len() as u32;
    for word in key {
        b.word(Scalar::U32(word));
    }
    let (straight, backwards) = (b.output(DType::F32, n as usize), b.output(DType::F64, n as usize));
    let die = b.output(DType::I32, n as usize);
    let flat = b.flat();
    let last = b.number(n - 1);
    let (low, span) = (b.param(Scalar::I32(-2)), b.number(6));
    let flipped = b.index(IndexOp::Sub, last, flat);
    let random = |dist, element, run, params| InstOp::Random { dist, key: first, element, run, params };
    let x = b.push(random(Dist::Uniform, flat, Run::Flat, smallvec::smallvec![]), DType::F32, Level::Element);
    let y = b.push(random(Dist::Normal, flipped, Run::Any, smallvec::smallvec![]), DType::F64, Level::Element);
    let z = b.push(random(Dist::Integer, flat, Run::Flat, smallvec::smallvec![low, span]), DType::I32, Level::Element);
    b.store(straight, None, x, None);
    b.store(backwards, None, y, None);
    b.store(die, None, z, None);
    let outcome = b.run(2);
    let (up, down): (Vec<u32>, Vec<u32>) = ((0..n).collect(), (0..n).rev().collect());
    let mut expected = vec![0u64; n as usize];
    let range = Some((Scalar::I32(-2), Scalar::U32(6)));
    let cases = [
        (straight, Dist::Uniform, DType::F32, &up, None),
        (backwards, Dist::Normal, DType::F64, &down, None),
        (die, Dist::Integer, DType::I32, &up, range),
    ];
    for (operand, dist, dtype, elements, range) in cases {
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut expected)[..n as usize * dtype.bytes()];
        random::at(dist, dtype, key, elements, range, bytes);
        assert!(outcome.bytes(operand) == &*bytes, "{dist:?}");
    }
    assert!(outcome.values::<i32>(die).iter().all(|v| (-2..4).contains(v)));
}

#[test]
fn tiles_of_transposes_and_what_is_fused_with_them_have_every_element() {
    for [fast, slow, planes] in
        [[64u32, 16u32, 1u32], [300, 70, 3], [257, 33, 2], [63, 40, 2], [1000, 2, 1], [70, 1, 5]]
    {
        let n = fast * slow * planes;
        let mut b = Build::map(n);
        let x = b.input(&ramp(n as usize));
        let wide = b.input(&(0..n).map(|i| i as i64 - 7).collect::<Vec<_>>());
        let bytes = b.input(&(0..n).map(|i| i as u8).collect::<Vec<_>>());
        let y = b.in_place(&ramp(n as usize));
        let outs = [b.output(DType::I64, n as usize), b.output(DType::U8, n as usize)];
        let flat = b.flat();
        let (stride, extent) = (b.number(fast), b.number(slow));
        let slots = (HEADER_WORDS, HEADER_WORDS + 1);
        let (along, rest) = (b.index(IndexOp::Rem, flat, stride), b.index(IndexOp::Div, flat, stride));
        let (across, plane) = (b.index(IndexOp::Rem, rest, extent), b.index(IndexOp::Div, rest, extent));
        let plane = b.index(IndexOp::Mul, plane, stride);
        let row = b.index(IndexOp::Add, along, plane);
        let row = b.index(IndexOp::Mul, row, extent);
        let index = b.index(IndexOp::Add, row, across);
        let turned = [x, wide, bytes].map(|operand| {
            let load = b.load(operand, index, None);
            let run = Run::Across { stride: slots.0, extent: slots.1 };
            b.kernel.insts[load.0 as usize].op = InstOp::Load { operand, index, run, guard: None };
            load
        });
        let own = b.load(y, flat, None);
        let sum = add(&mut b, turned[0], own);
        b.store(y, None, sum, None);
        b.store(outs[0], None, turned[1], None);
        b.store(outs[1], None, turned[2], None);
        b.check_against_loops();
    }
}
