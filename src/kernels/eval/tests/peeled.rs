//! Tests of maps with conditions on an element's position: slices, shifts and their updates, over columns of any
//! height.

use super::build::Build;
use crate::graph::{DType, ElementOp, Scalar};
use crate::kernels::ir::*;

fn ramp(n: u32) -> Vec<f64> {
    (0..n).map(|i| ((i * 37) % 1001) as f64 * 0.37 - 150.0).collect()
}

/// `first <= coordinate < first + count`, and `coordinate - first`.
fn inside(b: &mut Build, coordinate: Val, first: u32, count: u32) -> (Val, Val) {
    let (first, count) = (b.number(first), b.number(count));
    let distance = b.index(IndexOp::Sub, coordinate, first);
    (b.compare(IndexCompare::Less, distance, count), distance)
}

/// The element `rows * column + row` of an operand, where the guard holds.
fn element(b: &mut Build, operand: u16, [row, column]: [Val; 2], rows: u32, guard: Val) -> Val {
    let rows = b.number(rows);
    let before = b.index(IndexOp::Mul, column, rows);
    let index = b.index(IndexOp::Add, row, before);
    b.load(operand, index, Some(guard))
}

fn real(b: &mut Build, op: ElementOp, x: Val, y: Val) -> Val {
    b.apply(op, DType::F64, &[x, y])
}

/// `x(r, c) += 0.5 * (y(r + 1, c) - y(r, c) - y(r, c + 1))` in a slice, everything times `x`, and one element more.
fn update(rows: u32, elements: u32, in_place: bool) -> Build {
    let mut b = Build::map(elements);
    let x = if in_place { b.in_place(&ramp(elements)) } else { b.input(&ramp(elements)) };
    let y = b.input(&ramp(elements + 2 * rows + 7)[7..]);
    let out = if in_place { x } else { b.output(DType::F64, elements as usize) };
    let flat = b.flat();
    let height = b.number(rows);
    let (row, column) = (b.index(IndexOp::Rem, flat, height), b.index(IndexOp::Div, flat, height));
    let own = b.load(x, flat, None);
    let (in_rows, _) = inside(&mut b, row, 1, rows.saturating_sub(2).max(1));
    let (in_columns, _) = inside(&mut b, column, 1, 3);
    let here = b.apply(ElementOp::And, DType::Bool, &[in_rows, in_columns]);
    let one = b.number(1);
    let (below, right) = (b.index(IndexOp::Add, row, one), b.index(IndexOp::Add, column, one));
    let parts = [[below, column], [row, column], [row, right]].map(|at| element(&mut b, y, at, rows, here));
    let curl = real(&mut b, ElementOp::Sub, parts[0], parts[1]);
    let curl = real(&mut b, ElementOp::Sub, curl, parts[2]);
    let half = b.param(Scalar::F64(0.5));
    let curl = real(&mut b, ElementOp::Mul, half, curl);
    let moved = real(&mut b, ElementOp::Add, own, curl);
    let updated = b.apply(ElementOp::Select, DType::F64, &[here, moved, own]);
    let scaled = real(&mut b, ElementOp::Mul, updated, own);
    let ((in_row, _), (in_column, _)) = (inside(&mut b, row, rows / 2, 1), inside(&mut b, column, 2, 1));
    let source = b.apply(ElementOp::And, DType::Bool, &[in_row, in_column]);
    let pulse = real(&mut b, ElementOp::Add, scaled, half);
    let result = b.apply(ElementOp::Select, DType::F64, &[source, pulse, scaled]);
    b.store(out, None, result, None);
    b
}

#[test]
fn an_update_of_a_slice_has_every_element_also_in_place_and_with_a_last_column_of_its_own_height() {
    for (rows, elements) in [(300, 2100), (256, 1025), (1000, 4400), (1025, 5125), (2500, 10_000), (7, 700)] {
        for in_place in [false, true] {
            update(rows, elements, in_place).check_against_loops();
        }
    }
}

#[test]
fn columns_of_a_slice_along_the_last_dimension_are_one_line_and_are_not_cut() {
    for (rows, columns) in [(5, 900), (100, 33), (300, 7), (1500, 3)] {
        for taken in [rows, rows - 1] {
            // From the third column on, columns without their last row, or whole ones.
            let n = taken * columns;
            let mut b = Build::map(n);
            let x = b.input(&ramp(rows * (columns + 2)));
            let out = b.output(DType::F64, n as usize);
            let flat = b.flat();
            let (height, two) = (b.number(taken), b.number(2));
            let (row, column) = (b.index(IndexOp::Rem, flat, height), b.index(IndexOp::Div, flat, height));
            let from = b.index(IndexOp::Add, column, two);
            let full = b.number(rows);
            let before = b.index(IndexOp::Mul, from, full);
            let index = b.index(IndexOp::Add, row, before);
            let loaded = b.load(x, index, None);
            let half = b.param(Scalar::F64(0.5));
            let result = real(&mut b, ElementOp::Add, loaded, half);
            b.store(out, None, result, None);
            b.check_against_loops();
            let blocks = b.run(1).stats.host_blocks;
            let whole = n.div_ceil(1024) as u64;
            let cut = if taken < 256 { whole } else { columns as u64 * taken.div_ceil(1024) as u64 };
            assert_eq!(blocks, if taken == rows { whole } else { cut }, "{taken} of {rows} rows");
        }
    }
}

#[test]
fn slices_of_three_dimensions_are_found_in_each_column() {
    for (rows, columns, planes) in [(300, 4, 5), (257, 3, 3), (1100, 2, 4)] {
        let n = rows * columns * planes;
        let mut b = Build::map(n);
        let x = b.input(&ramp(n + 1));
        let out = b.output(DType::F64, n as usize);
        let flat = b.flat();
        let (height, width) = (b.number(rows), b.number(columns));
        let plane_size = b.number(rows * columns);
        let row = b.index(IndexOp::Rem, flat, height);
        let column = b.index(IndexOp::Div, flat, height);
        let column = b.index(IndexOp::Rem, column, width);
        let plane = b.index(IndexOp::Div, flat, plane_size);
        let (in_rows, _) = inside(&mut b, row, 3, 200);
        let (in_columns, _) = inside(&mut b, column, 1, 2);
        let (in_planes, _) = inside(&mut b, plane, 1, 2);
        let here = b.apply(ElementOp::And, DType::Bool, &[in_rows, in_columns]);
        let here = b.apply(ElementOp::And, DType::Bool, &[here, in_planes]);
        let before = b.index(IndexOp::Mul, plane, plane_size);
        let index = b.index(IndexOp::Mul, column, height);
        let index = b.index(IndexOp::Add, index, row);
        let index = b.index(IndexOp::Add, index, before);
        let one = b.number(1);
        let index = b.index(IndexOp::Add, index, one);
        let value = b.load(x, index, Some(here));
        let place = b.apply(ElementOp::Cast, DType::F64, &[index]);
        let both = b.apply(ElementOp::Select, DType::F64, &[here, value, place]);
        b.store(out, None, both, None);
        b.check_against_loops();
    }
}

#[test]
fn a_condition_that_is_a_value_and_one_that_guards_a_store_or_a_check_are_known_in_each_segment() {
    for elements in [900, 3100, 5000] {
        let mut b = Build::map(elements);
        let x = b.input(&ramp(elements));
        let (flags, some) = (b.output(DType::F64, elements as usize), b.output(DType::F64, elements as usize));
        let flat = b.flat();
        let height = b.number(450);
        let row = b.index(IndexOp::Rem, flat, height);
        let (here, distance) = inside(&mut b, row, 17, 300);
        let (late, _) = inside(&mut b, row, 100, 1000);
        let (answer, other) =
            (b.apply(ElementOp::Cast, DType::F64, &[here]), b.apply(ElementOp::Cast, DType::F64, &[late]));
        let answer = real(&mut b, ElementOp::Sub, answer, other);
        let extent = b.number(250);
        let place = b.check(distance, extent, 0, Some(here));
        let value = b.load(x, place, None);
        b.store(flags, None, answer, None);
        b.store(some, None, value, Some(here));
        b.faults = 1;
        let outcome = b.check_against_loops();
        assert_eq!(outcome.faults, [1]);
    }
}
