//! Tests map kernels against host loops.

use super::super::harness::{Build, floats, floats64, gpu, sample, words, words64};
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Access, Form, Geometry, IndexCompare, IndexOp, InstOp, Run, Tile};

const SIZES: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1000, 1023, 70_000];

#[test]
fn a_chain_over_flat_operands_covers_every_size_and_nothing_more() {
    let Some(gpu) = gpu() else { return };
    for count in SIZES {
        let mut build = Build::new(Form::Map);
        let (a, b, out) = (
            build.operand(DType::F32, Access::Read),
            build.operand(DType::F32, Access::Read),
            build.operand(DType::F32, Access::Write),
        );
        let two = build.param(DType::F32, &words(&[2.0]));
        let flat = build.inst(InstOp::Flat, DType::U32);
        let x = build.load(a, flat, Run::Flat);
        let y = build.load(b, flat, Run::Flat);
        let scaled = build.apply(ElementOp::Mul, &[x, two], DType::F32);
        let sum = build.apply(ElementOp::Add, &[scaled, y], DType::F32);
        build.store(out, None, sum, None);
        let (a, b) = (sample(count), sample(count + 5)[5..].to_vec());
        let guard = count.next_multiple_of(4) + 4;
        let after = build.run(gpu, Geometry::Map { elements: count as u32 }, &[words(&a), words(&b), vec![7; guard]]);
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a * 2.0 + b).collect();
        assert_eq!(floats(&after[2][..count]), expected, "{count}");
        assert_eq!(after[2][guard - 4..], [7; 4], "{count}");
    }
}

#[test]
fn broadcasts_and_guards_read_what_they_may() {
    let Some(gpu) = gpu() else { return };
    // out[i] = row[i / 3] + (i < limit ? shifted[i + 1] : 0), rows of three; stored at count - 1 - i where i != 2.
    for count in [1usize, 3, 5, 9, 1000] {
        let mut build = Build::new(Form::Map);
        let row = build.operand(DType::F32, Access::Read);
        let shifted = build.operand(DType::F32, Access::Read);
        let out = build.operand(DType::F32, Access::Write);
        let three = build.param(DType::U32, &[3]);
        let one = build.param(DType::U32, &[1]);
        let two = build.param(DType::U32, &[2]);
        let limit = build.param(DType::U32, &[count as u32 - 1]);
        let flat = build.inst(InstOp::Flat, DType::U32);
        let at = build.index(IndexOp::Div, flat, three);
        let x = build.load(row, at, Run::Any);
        let next = build.index(IndexOp::Add, flat, one);
        let inside = build.compare(IndexCompare::Less, flat, limit);
        let y = build.guarded(shifted, next, Run::Any, Some(inside));
        let sum = build.apply(ElementOp::Add, &[x, y], DType::F32);
        let reversed = build.index(IndexOp::Sub, limit, flat);
        let is_two = build.compare(IndexCompare::Equal, flat, two);
        let no = build.param(DType::Bool, &[0]);
        let yes = build.param(DType::Bool, &[1]);
        let keep = build.apply(ElementOp::Select, &[is_two, no, yes], DType::Bool);
        build.store(out, Some(reversed), sum, Some(keep));
        let (rows, shift) = (sample(count.div_ceil(3)), sample(count));
        let after = build.run(
            gpu,
            Geometry::Map { elements: count as u32 },
            &[words(&rows), words(&shift), words(&vec![-1.0; count])],
        );
        let mut expected = vec![-1.0; count];
        for i in (0..count).filter(|i| *i != 2) {
            expected[count - 1 - i] = rows[i / 3] + if i + 1 < count { shift[i + 1] } else { 0.0 };
        }
        assert_eq!(floats(&after[2]), expected, "{count}");
    }
}

#[test]
fn a_scalar_fills_and_a_bool_is_stored_as_a_word() {
    let Some(gpu) = gpu() else { return };
    let mut build = Build::new(Form::Map);
    let out = build.operand(DType::F32, Access::Write);
    let bools = build.operand(DType::Bool, Access::ReadWrite);
    let value = build.param(DType::F32, &words(&[1.5]));
    let flat = build.inst(InstOp::Flat, DType::U32);
    let old = build.load(bools, flat, Run::Flat);
    let yes = build.param(DType::Bool, &[1]);
    let no = build.param(DType::Bool, &[0]);
    let flipped = build.apply(ElementOp::Select, &[old, no, yes], DType::Bool);
    build.store(out, None, value, None);
    build.store(bools, None, flipped, None);
    let after = build.run(gpu, Geometry::Map { elements: 6 }, &[vec![0; 6], vec![1, 0, 0, 1, 1, 0]]);
    assert_eq!(floats(&after[0]), [1.5; 6]);
    assert_eq!(after[1], [0, 1, 1, 0, 0, 1]);
}

#[test]
fn tiles_see_only_their_segment() {
    let Some(gpu) = gpu() else { return };
    let mut build = Build::new(Form::Map);
    let a = build.operand(DType::F32, Access::Read);
    let out = build.operand(DType::F32, Access::Write);
    let flat = build.inst(InstOp::Flat, DType::U32);
    let x = build.load(a, flat, Run::Flat);
    let place = build.apply(ElementOp::Cast, &[flat], DType::F32);
    let sum = build.apply(ElementOp::Add, &[x, place], DType::F32);
    build.store(out, None, sum, None);
    for operand in &mut build.kernel.operands {
        operand.tiled = true;
    }
    // The tile has elements 64..70 of a value with 70 elements, in segments of 64. Only the second segment is bound.
    let tile = Tile { begin: 64, end: 70, base: 64, base_wide: 64, last: true };
    let a = sample(6);
    let after =
        gpu.launch(&build.kernel, Geometry::Map { elements: 70 }, &build.params, &[words(&a), vec![0; 6]], &[tile], 6);
    let expected: Vec<f32> = a.iter().enumerate().map(|(i, a)| a + (64 + i) as f32).collect();
    assert_eq!(floats(&after[1]), expected);
}

#[test]
fn operands_of_several_segments_are_one_array() {
    let Some(gpu) = gpu() else { return };
    for reversed in [false, true] {
        let mut build = Build::new(Form::Map);
        let a = build.operand(DType::F32, Access::Read);
        let out = build.operand(DType::F32, Access::Write);
        let last = build.param(DType::U32, &[149]);
        let flat = build.inst(InstOp::Flat, DType::U32);
        let back = build.index(IndexOp::Sub, last, flat);
        let x = if reversed { build.load(a, back, Run::Any) } else { build.load(a, flat, Run::Flat) };
        build.store(out, if reversed { None } else { Some(back) }, x, None);
        for operand in &mut build.kernel.operands {
            operand.segments = 3;
        }
        let all = sample(150);
        let mut buffers: Vec<Vec<u32>> = all.chunks(64).map(words).collect();
        buffers.extend(all.chunks(64).map(|part| vec![0; part.len()]));
        let tile = Tile { begin: 0, end: 150, base: 0, base_wide: 0, last: true };
        let after = gpu.launch(&build.kernel, Geometry::Map { elements: 150 }, &build.params, &buffers, &[tile], 6);
        let expected: Vec<f32> = all.iter().rev().copied().collect();
        assert_eq!(floats(&after[3..].concat()), expected, "{reversed}");
    }
}

#[test]
fn windows_of_an_image_are_loaded_wherever_rows_end() {
    let Some(gpu) = gpu() else { return };
    for (rows, columns, segments) in
        [(3, 9, 1), (5, 7, 1), (6, 3, 1), (13, 11, 1), (62, 40, 1), (10, 15, 3), (9, 15, 3)]
    {
        // out[x, y] = sum over i, j of (1 + i + 3 j) image[x + i, y + j], of an image of `rows` by `columns`.
        let (inner, outer) = (rows - 2, columns - 2);
        let mut build = Build::new(Form::Map);
        let image = build.operand(DType::I32, Access::Read);
        let out = build.operand(DType::I32, Access::Write);
        let [row, stride] = [inner, rows].map(|count| build.param(DType::U32, &[count]));
        let flat = build.inst(InstOp::Flat, DType::U32);
        let (x, y) = (build.index(IndexOp::Rem, flat, row), build.index(IndexOp::Div, flat, row));
        let mut sum = build.param(DType::I32, &[0]);
        for (i, j) in (0..9).map(|window| (window % 3, window / 3)) {
            let [right, down, weight] = [i, j, 1 + i + 3 * j].map(|number| build.param(DType::U32, &[number]));
            let (x, y) = (build.index(IndexOp::Add, x, right), build.index(IndexOp::Add, y, down));
            let start = build.index(IndexOp::Mul, y, stride);
            let at = build.index(IndexOp::Add, x, start);
            let element = build.load(image, at, Run::Any);
            let weight = build.apply(ElementOp::Cast, &[weight], DType::I32);
            let scaled = build.apply(ElementOp::Mul, &[element, weight], DType::I32);
            sum = build.apply(ElementOp::Add, &[sum, scaled], DType::I32);
        }
        build.store(out, None, sum, None);
        build.kernel.operands[0].segments = segments;
        let pixel = |x: u32, y: u32| (x + rows * y) * 7919 % 1000;
        let pixels: Vec<u32> = (0..rows * columns).map(|at| pixel(at % rows, at / rows)).collect();
        let elements = inner * outer;
        let mut buffers: Vec<Vec<u32>> =
            if segments > 1 { pixels.chunks(64).map(<[u32]>::to_vec).collect() } else { vec![pixels] };
        buffers.push(vec![0; elements as usize]);
        let tile = Tile { begin: 0, end: elements, base: 0, base_wide: 0, last: true };
        let after = gpu.launch(&build.kernel, Geometry::Map { elements }, &build.params, &buffers, &[tile], 6);
        let weighted = |x: u32, y: u32| (0..9).map(|w| (1 + w) * pixel(x + w % 3, y + w / 3)).sum::<u32>();
        let expected: Vec<u32> = (0..elements).map(|at| weighted(at % inner, at / inner)).collect();
        assert_eq!(after.last(), Some(&expected), "{rows} x {columns} in {segments}");
    }
}

#[test]
fn wide_dtypes_go_one_by_one() {
    let Some(gpu) = gpu() else { return };
    if !gpu.target.f64 || !gpu.target.i64 {
        return eprintln!("no 64-bit types: this test is skipped");
    }
    for count in SIZES {
        let mut build = Build::new(Form::Map);
        let a = build.operand(DType::F64, Access::Read);
        let out = build.operand(DType::F64, Access::Write);
        let exact = build.operand(DType::I64, Access::Write);
        let third = build.param(DType::F64, &words64(&[1.0 / 3.0]));
        let odd = (1i64 << 53) + 1;
        let big = build.param(DType::I64, &[odd as u32, (odd >> 32) as u32]);
        let flat = build.inst(InstOp::Flat, DType::U32);
        let x = build.load(a, flat, Run::Flat);
        let y = build.apply(ElementOp::Mul, &[x, third], DType::F64);
        build.store(out, None, y, None);
        build.store(exact, None, big, None);
        let values: Vec<f64> = sample(count).iter().map(|v| *v as f64 + 1e-9).collect();
        let after = build.run(
            gpu,
            Geometry::Map { elements: count as u32 },
            &[words64(&values), vec![0; 2 * count], vec![0; 2 * count]],
        );
        let expected: Vec<f64> = values.iter().map(|v| v * (1.0 / 3.0)).collect();
        assert_eq!(floats64(&after[1]), expected, "{count}");
        assert!(after[2].chunks(2).all(|pair| pair == [1, 1 << 21]), "{count}");
    }
}

#[test]
fn indices_outside_are_clamped_and_set_their_fault_word() {
    let Some(gpu) = gpu() else { return };
    let cases: [(DType, Vec<u32>, u32, [u32; 2]); 5] = [
        (DType::I32, vec![2, 0, 1], 0, [0, 0]),
        (DType::I32, vec![2, -1i32 as u32, 1], 0, [0, 1]),
        (DType::U32, vec![0, 1, u32::MAX], 3, [0, 1]),
        (DType::U8, vec![3, 1, 0], 3, [0, 1]),
        (DType::I64, vec![2, 0, 7, 5, 0, 0], 0, [0, 1]),
    ];
    for (dtype, indices, _, faults) in cases {
        let mut build = Build::new(Form::Map);
        build.kernel.faults = true;
        let at = build.operand(dtype, Access::Read);
        let out = build.operand(DType::U32, Access::Write);
        let extent = build.param(DType::U32, &[3]);
        let site = build.words(&[1]);
        let flat = build.inst(InstOp::Flat, DType::U32);
        let index = build.load(at, flat, Run::Flat);
        let checked = build.inst(InstOp::Check { index, extent, site, guard: None }, DType::U32);
        build.store(out, None, checked, None);
        let after = build.run(gpu, Geometry::Map { elements: 3 }, &[indices.clone(), vec![9; 3], vec![0, 0]]);
        let expected: Vec<u32> = match dtype {
            DType::I64 => vec![2, 2, 0],
            _ => indices.iter().map(|i| (*i as i32 as i64).clamp(0, 2) as u32).collect(),
        };
        let expected = if dtype == DType::U32 { vec![0, 1, 2] } else { expected };
        assert_eq!(after[1], expected, "{dtype}");
        assert_eq!(after[2], faults, "{dtype}");
    }
}

#[test]
fn what_is_required_of_elements_that_are_there_sets_its_fault_word() {
    let Some(gpu) = gpu() else { return };
    for dtype in [DType::F32, DType::F64] {
        if dtype == DType::F64 && !gpu.target.f64 {
            continue;
        }
        // The last group has every possible number of elements, and its lanes past the end would fail the requirement.
        // Element `bad` is negative; one requirement counts below `limit` only.
        for count in [1, 2, 3, 4, 5, 257] {
            for (bad, limit) in [(None, count), (Some(count - 1), count), (Some(count - 1), count - 1)] {
                let mut build = Build::new(Form::Map);
                build.kernel.faults = true;
                let a = build.operand(dtype, Access::Read);
                let out = build.operand(dtype, Access::Write);
                let one = build.param(dtype, &if dtype.is_wide() { words64(&[1.0]) } else { words(&[1.0]) });
                let below = build.param(DType::U32, &[limit]);
                let sites = [build.words(&[0]), build.words(&[1])];
                let flat = build.inst(InstOp::Flat, DType::U32);
                let x = build.load(a, flat, Run::Flat);
                let holds = build.apply(ElementOp::Ge, &[x, one], DType::Bool);
                let asked = build.compare(IndexCompare::Less, flat, below);
                for (site, guard) in sites.into_iter().zip([None, Some(asked)]) {
                    build.inst(InstOp::Require { condition: holds, site, guard }, DType::Bool);
                }
                build.store(out, None, x, None);
                let value = |i: u32| if Some(i) == bad { -1.0 } else { i as f64 + 1.0 };
                let data = match dtype {
                    DType::F64 => words64(&(0..count).map(value).collect::<Vec<_>>()),
                    _ => words(&(0..count).map(|i| value(i) as f32).collect::<Vec<_>>()),
                };
                let empty = vec![9; data.len()];
                let after = build.run(gpu, Geometry::Map { elements: count }, &[data.clone(), empty, vec![0, 0]]);
                assert_eq!(after[1], data, "what is checked stays as it is");
                let expected = [bad.is_some() as u32, bad.is_some_and(|bad| bad < limit) as u32];
                assert_eq!(after[2], expected, "{dtype}, {count} elements, {bad:?} below {limit}");
            }
        }
    }
}

#[test]
fn a_grid_of_more_than_a_row_reaches_the_end() {
    let Some(gpu) = gpu() else { return };
    // 65,535 groups of 256 elements (wide kernels take one element for each invocation) and one more, in a second row.
    let count = 65_535 * 256 + 300;
    if !gpu.target.i64 {
        return eprintln!("no 64-bit types: this test is skipped");
    }
    let mut build = Build::new(Form::Map);
    let out = build.operand(DType::U32, Access::Write);
    let big = build.param(DType::I64, &[5, 0]);
    let flat = build.inst(InstOp::Flat, DType::U32);
    let five = build.apply(ElementOp::Cast, &[big], DType::U32);
    let sum = build.apply(ElementOp::Add, &[flat, five], DType::U32);
    build.store(out, None, sum, None);
    let after = build.run(gpu, Geometry::Map { elements: count }, &[vec![0; count as usize]]);
    assert!(after[0].iter().enumerate().all(|(i, v)| *v == i as u32 + 5));
}
