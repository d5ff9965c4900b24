//! Tests loads that run across the flat index against host loops.

use super::super::harness::{Build, Gpu, floats, gpu, sample, words, words64};
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Access, Form, Geometry, HEADER_WORDS, IndexOp, InstOp, Run, Tile, Val};

/// A kernel over `[fast, slow, planes]`, and the load of the element of `[slow, fast, planes]` at the transposed place.
fn transposing(dtype: DType, fast: u32, slow: u32) -> (Build, Val) {
    let mut build = Build::new(Form::Map);
    let a = build.operand(dtype, Access::Read);
    let stride = build.param(DType::U32, &[fast]);
    let extent = build.param(DType::U32, &[slow]);
    let flat = build.inst(InstOp::Flat, DType::U32);
    let along = build.index(IndexOp::Rem, flat, stride);
    let rest = build.index(IndexOp::Div, flat, stride);
    let across = build.index(IndexOp::Rem, rest, extent);
    let plane = build.index(IndexOp::Div, rest, extent);
    let plane = build.index(IndexOp::Mul, plane, stride);
    let row = build.index(IndexOp::Add, along, plane);
    let row = build.index(IndexOp::Mul, row, extent);
    let index = build.index(IndexOp::Add, row, across);
    let x = build.load(a, index, Run::Across { stride: HEADER_WORDS, extent: HEADER_WORDS + 1 });
    (build, x)
}

/// The index of the element that the kernel loads for `flat`.
fn source(fast: usize, slow: usize, flat: usize) -> usize {
    let (along, across, plane) = (flat % fast, flat / fast % slow, flat / fast / slow);
    across + (along + plane * fast) * slow
}

const SHAPES: [[usize; 3]; 6] = [[1, 1, 1], [32, 32, 1], [33, 65, 1], [100, 7, 3], [5, 70, 4], [64, 31, 9]];

fn sum_with_flat(gpu: &Gpu, [fast, slow, planes]: [usize; 3], tiles: &[[u32; 2]]) -> Vec<f32> {
    let (mut build, x) = transposing(DType::F32, fast as u32, slow as u32);
    let (b, out) = (build.operand(DType::F32, Access::Read), build.operand(DType::F32, Access::Write));
    let y = build.load(b, Val(2), Run::Flat);
    let sum = build.apply(ElementOp::Add, &[x, y], DType::F32);
    build.store(out, None, sum, None);
    let elements = fast * slow * planes;
    let tile = |&[begin, end]: &[u32; 2]| Tile { begin, end, base: 0, base_wide: 0, last: end == elements as u32 };
    let tiles: Vec<Tile> = tiles.iter().map(tile).collect();
    let b: Vec<f32> = (0..elements).map(|i| i as f32).collect();
    let buffers = [words(&sample(elements)), words(&b), vec![0; elements]];
    let geometry = Geometry::Map { elements: elements as u32 };
    floats(&gpu.launch(&build.kernel, geometry, &build.params, &buffers, &tiles, 30)[2])
}

#[test]
fn a_transpose_and_what_is_added_to_it_cover_every_element_whole_or_in_tiles() {
    let Some(gpu) = gpu() else { return };
    for shape @ [fast, slow, planes] in SHAPES {
        let elements = fast * slow * planes;
        let data = sample(elements);
        let expected: Vec<f32> = (0..elements).map(|i| data[source(fast, slow, i)] + i as f32).collect();
        let (end, part) = (elements as u32, (elements / 3) as u32);
        assert_eq!(sum_with_flat(gpu, shape, &[[0, end]]), expected, "{shape:?}");
        if part > 0 {
            assert_eq!(sum_with_flat(gpu, shape, &[[0, part], [part, end]]), expected, "{shape:?} in tiles");
            let first = sum_with_flat(gpu, shape, &[[0, part]]);
            let (written, rest) = first.split_at(part as usize);
            assert_eq!(written, &expected[..part as usize], "{shape:?}");
            assert!(rest.iter().all(|&v| v == 0.0), "{shape:?}: written past the tile");
        }
    }
}

#[test]
fn wide_elements_and_bools_are_transposed() {
    let Some(gpu) = gpu() else { return };
    let [fast, slow, planes] = [33, 65, 2];
    let elements = fast * slow * planes;
    let run = |dtype: DType, data: Vec<u32>| {
        let (mut build, x) = transposing(dtype, fast as u32, slow as u32);
        let out = build.operand(dtype, Access::Write);
        build.store(out, None, x, None);
        let empty = vec![7; data.len()];
        build.run(gpu, Geometry::Map { elements: elements as u32 }, &[data, empty]).remove(1)
    };
    let bools: Vec<u32> = sample(elements).iter().map(|&v| (v > 0.0) as u32).collect();
    let expected: Vec<u32> = (0..elements).map(|i| bools[source(fast, slow, i)]).collect();
    assert_eq!(run(DType::Bool, bools), expected);
    if !gpu.target.f64 || !gpu.target.i64 {
        return eprintln!("no 64-bit types: the rest of this test is skipped");
    }
    let data: Vec<f64> = sample(elements).iter().map(|&v| v as f64 + 2f64.powi(-30)).collect();
    let expected: Vec<f64> = (0..elements).map(|i| data[source(fast, slow, i)]).collect();
    assert_eq!(run(DType::F64, words64(&data)), words64(&expected));
}
