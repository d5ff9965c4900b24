//! Tests reductions against host loops: sizes around chunk boundaries, both layouts, every monoid, phases and siblings.

use super::super::harness::{Build, Gpu, floats, floats64, gpu, sample, words, words64};
use crate::graph::{DType, Dist, ElementOp};
use crate::kernels::ir::{
    Access, Form, Geometry, IndexCompare, IndexOp, InstOp, Monoid, Run, SquareLimits, Tile, Val, reduce_plan,
};

/// A kernel that loads `[inner, outer]` (inner_fast) or `[outer, inner]`, the loaded value, and its index.
fn source(inner_fast: bool, dtype: DType, outer: u32, inner: u32) -> (Build, Val, Val) {
    let mut build = Build::new(Form::Reduce { inner_fast });
    let a = build.operand(dtype, Access::Read);
    let stride = build.param(DType::U32, &[if inner_fast { inner } else { outer }]);
    let o = build.inst(InstOp::Outer, DType::U32);
    let i = build.inst(InstOp::Inner, DType::U32);
    let (slow, fast) = if inner_fast { (o, i) } else { (i, o) };
    let row = build.index(IndexOp::Mul, slow, stride);
    let at = build.index(IndexOp::Add, row, fast);
    let x = build.load(a, at, Run::Flat);
    (build, x, at)
}

fn at(inner_fast: bool, outer: usize, inner: usize, o: usize, i: usize) -> usize {
    if inner_fast { o * inner + i } else { i * outer + o }
}

fn scratch_words(build: &Build, outer: u32, inner: u32, inner_fast: bool) -> Vec<u32> {
    vec![0; (build.kernel.partial_words() * outer * reduce_plan(outer, inner, inner_fast).chunks) as usize]
}

/// Folds f32 data and returns each projected component.
fn fold(gpu: &Gpu, inner_fast: bool, monoid: Monoid, outer: usize, inner: usize, data: &[f32]) -> Vec<Vec<u32>> {
    let (mut build, x, _) = source(inner_fast, DType::F32, outer as u32, inner as u32);
    let position = Val(2);
    let args = match monoid {
        Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => vec![x, position],
        Monoid::MomentsWhere => {
            let zero = build.param(DType::F32, &words(&[0.0]));
            let positive = build.apply(ElementOp::Gt, &[x, zero], DType::Bool);
            vec![x, positive]
        }
        Monoid::Any | Monoid::All => {
            let zero = build.param(DType::F32, &words(&[0.0]));
            vec![build.apply(ElementOp::Gt, &[x, zero], DType::Bool)]
        }
        _ => vec![x],
    };
    let result = build.reduce(monoid, &args);
    let components = monoid.components(build.kernel.inst(args[0]).dtype);
    let outs: Vec<u16> = components.iter().map(|dtype| build.operand(*dtype, Access::Write)).collect();
    for (number, out) in outs.iter().enumerate() {
        let value = build.project(result, number as u8);
        build.store(*out, None, value, None);
    }
    build.scratch();
    let mut buffers = vec![words(data)];
    buffers.extend(outs.iter().map(|_| vec![99; outer]));
    buffers.push(scratch_words(&build, outer as u32, inner as u32, inner_fast));
    let after = build.run(gpu, Geometry::Reduce { outer: outer as u32, inner: inner as u32 }, &buffers);
    after[1..1 + outs.len()].to_vec()
}

#[test]
fn sums_are_exact_around_every_boundary() {
    let Some(gpu) = gpu() else { return };
    let inners = [0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 1000, 4095, 4097, 8192, 8193, 9217, 20_001];
    for inner_fast in [true, false] {
        for outer in [1, 2, 3, 33] {
            for inner in inners {
                let data = sample(outer * inner);
                let sums = floats(&fold(gpu, inner_fast, Monoid::Sum, outer, inner, &data)[0]);
                let expected: Vec<f32> =
                    (0..outer).map(|o| (0..inner).map(|i| data[at(inner_fast, outer, inner, o, i)]).sum()).collect();
                assert_eq!(sums, expected, "inner_fast {inner_fast} outer {outer} inner {inner}");
            }
        }
    }
}

#[test]
fn many_outputs_of_few_elements_and_few_of_many() {
    let Some(gpu) = gpu() else { return };
    for inner_fast in [true, false] {
        for (outer, inner) in [(5000, 3), (1, 300_000), (7, 50_000), (300, 300)] {
            let data = sample(outer * inner);
            let sums = floats(&fold(gpu, inner_fast, Monoid::Sum, outer, inner, &data)[0]);
            let expected: Vec<f32> =
                (0..outer).map(|o| (0..inner).map(|i| data[at(inner_fast, outer, inner, o, i)]).sum()).collect();
            assert_eq!(sums, expected, "inner_fast {inner_fast} outer {outer} inner {inner}");
        }
    }
}

#[test]
fn nan_is_included_or_omitted_as_asked() {
    let Some(gpu) = gpu() else { return };
    let nan = f32::NAN;
    let rows: [[f32; 5]; 4] =
        [[1.0, nan, 3.0, -2.0, 5.0], [nan; 5], [2.0, 2.0, -7.0, 9.0, 9.0], [-1.0, f32::INFINITY, 4.0, -7.0, nan]];
    let data: Vec<f32> = rows.concat();
    let run = |monoid| fold(gpu, true, monoid, 4, 5, &data);
    let same = |got: Vec<f32>, expected: [f32; 4]| {
        let bits = |v: f32| if v.is_nan() { None } else { Some(v) };
        assert_eq!(got.into_iter().map(bits).collect::<Vec<_>>(), expected.map(bits));
    };
    same(floats(&run(Monoid::MinInclude)[0]), [nan, nan, -7.0, nan]);
    same(floats(&run(Monoid::MaxInclude)[0]), [nan, nan, 9.0, nan]);
    same(floats(&run(Monoid::MinOmit)[0]), [-2.0, nan, -7.0, -7.0]);
    same(floats(&run(Monoid::MaxOmit)[0]), [5.0, nan, 9.0, f32::INFINITY]);
    assert_eq!(run(Monoid::ArgMinOmit)[1], [3, 0, 2, 3]);
    assert_eq!(run(Monoid::ArgMaxOmit)[1], [4, 0, 3, 1]);
    assert_eq!(run(Monoid::ArgMinInclude)[1], [1, 0, 2, 4]);
    assert_eq!(run(Monoid::ArgMaxInclude)[1], [1, 0, 3, 4]);
    same(floats(&run(Monoid::Sum)[0]), [nan, nan, 15.0, nan]);
}

#[test]
fn nothing_folds_to_the_identity() {
    let Some(gpu) = gpu() else { return };
    let run = |monoid| fold(gpu, true, monoid, 2, 0, &[]);
    assert_eq!(floats(&run(Monoid::Sum)[0]), [0.0, 0.0]);
    assert_eq!(floats(&run(Monoid::Prod)[0]), [1.0, 1.0]);
    assert_eq!(floats(&run(Monoid::MinInclude)[0]), [f32::INFINITY; 2]);
    assert_eq!(floats(&run(Monoid::MaxInclude)[0]), [f32::NEG_INFINITY; 2]);
    assert!(floats(&run(Monoid::MinOmit)[0]).iter().all(|v| v.is_nan()));
    assert_eq!(run(Monoid::Any)[0], [0, 0]);
    assert_eq!(run(Monoid::All)[0], [1, 1]);
    assert_eq!(floats(&run(Monoid::Moments).concat()), [0.0; 8]);
    assert_eq!(floats(&run(Monoid::Squares).concat()), [0.0; 6]);
}

#[test]
fn positions_bools_and_products_survive_chunks() {
    let Some(gpu) = gpu() else { return };
    let count = 50_000;
    for inner_fast in [true, false] {
        let mut data = vec![1.0f32; count];
        (data[31_234], data[31_235], data[49_999]) = (-3.0, -3.0, -3.0);
        assert_eq!(fold(gpu, inner_fast, Monoid::ArgMinOmit, 1, count, &data)[1], [31_234]);
        assert_eq!(fold(gpu, inner_fast, Monoid::ArgMaxOmit, 1, count, &data)[1], [0]);
        assert_eq!(fold(gpu, inner_fast, Monoid::All, 1, count, &data)[0], [0]);
        assert_eq!(fold(gpu, inner_fast, Monoid::Any, 1, count, &data)[0], [1]);
        assert_eq!(floats(&fold(gpu, inner_fast, Monoid::Prod, 1, count, &data)[0]), [-27.0]);
        data[40_000] = f32::NAN;
        assert_eq!(fold(gpu, inner_fast, Monoid::ArgMinInclude, 1, count, &data)[1], [40_000]);
    }
}

#[test]
fn the_variance_of_large_close_numbers_does_not_cancel() {
    let Some(gpu) = gpu() else { return };
    for (inner_fast, count) in [(true, 10usize), (false, 10), (true, 30_000), (false, 30_000)] {
        let data: Vec<f32> = (0..count).map(|i| 10_000.0 + (i % 10) as f32).collect();
        let parts = fold(gpu, inner_fast, Monoid::Moments, 1, count, &data);
        let [n, base, off, squares] = [0, 1, 2, 3].map(|part| floats(&parts[part])[0]);
        let mean = base + off;
        assert_eq!(n, count as f32);
        assert!((mean - 10_004.5).abs() < 0.01, "{mean}");
        let variance = squares / n;
        assert!((variance - 8.25).abs() < 1e-5, "{variance}");
    }
    let data = [1.0, -5.0, 3.0, 0.0, -1.0, 5.0];
    let parts = fold(gpu, true, Monoid::MomentsWhere, 1, 6, &data);
    assert_eq!(floats(&parts[0]), [3.0]);
    assert!((floats(&parts[1])[0] + floats(&parts[2])[0] - 3.0).abs() < 1e-6);
    assert!((floats(&parts[3])[0] - 8.0).abs() < 1e-5);
}

#[test]
fn sums_of_exponentials_are_relative_to_the_greatest_value() {
    let Some(gpu) = gpu() else { return };
    let parts = |data: &[f32]| {
        let parts = fold(gpu, true, Monoid::ExpSum, 1, data.len(), data);
        [0, 1].map(|part| floats(&parts[part])[0])
    };
    assert_eq!(parts(&[1e38, -1e38, 1e38]), [1e38, 2.0]);
    assert_eq!(parts(&vec![-3.0; 40_000]), [-3.0, 40_000.0]);
    assert_eq!(parts(&[f32::NEG_INFINITY; 5]), [f32::NEG_INFINITY, 5.0]);
    assert_eq!(parts(&[1.0, f32::INFINITY, 2.0, f32::INFINITY, 3.0]), [f32::INFINITY, 2.0]);
    assert!(parts(&[1.0, f32::NAN, 2.0, 3.0, 9.0, 7.0])[1].is_nan());
    let [greatest, sum] = parts(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(greatest == 5.0 && (sum - 1.578_055_4).abs() < 1e-6, "{sum}");
}

#[test]
fn a_norm_neither_overflows_nor_loses_nan_and_infinity() {
    let Some(gpu) = gpu() else { return };
    let norm = |data: &[f32]| {
        let parts = fold(gpu, true, Monoid::Squares, 1, data.len(), data);
        let [small, middling, big] = [0, 1, 2].map(|part| floats(&parts[part])[0] as f64);
        let scale = 2f64.powi(2 * SquareLimits::of(DType::F32).scale);
        (small / scale + middling + big * scale).sqrt() as f32
    };
    assert_eq!(norm(&[3.0, -4.0]), 5.0);
    assert_eq!(norm(&[0.0, 0.0, 0.0]), 0.0);
    assert!((norm(&[3e30, 4e30]) / 5e30 - 1.0).abs() < 1e-6);
    assert!((norm(&[3e-30, 4e-30, 0.0, 0.0, 0.0]) / 5e-30 - 1.0).abs() < 1e-6);
    assert_eq!(norm(&[1.0, f32::NEG_INFINITY, f32::INFINITY, 2.0, f32::INFINITY]), f32::INFINITY);
    assert!(norm(&[1.0, f32::NAN, 2.0, 3.0, f32::INFINITY, 7.0]).is_nan());
    assert!((norm(&vec![2.0; 40_000]) - 400.0).abs() < 1e-2);
}

#[test]
fn siblings_share_a_loop_and_a_tail_uses_both() {
    let Some(gpu) = gpu() else { return };
    for (outer, inner) in [(3, 5), (2, 9000), (1, 20_000)] {
        let (mut build, x, at) = source(true, DType::F32, outer, inner);
        let copy = build.operand(DType::F32, Access::Write);
        let out = build.operand(DType::F32, Access::Write);
        let offset = build.operand(DType::F32, Access::Read);
        let shift = build.load(offset, Val(1), Run::Any);
        let moved = build.apply(ElementOp::Add, &[x, shift], DType::F32);
        let sum = build.reduce(Monoid::Sum, &[moved]);
        let least = build.reduce(Monoid::MinOmit, &[x]);
        let both = build.apply(ElementOp::Add, &[sum, least], DType::F32);
        build.store(copy, Some(at), moved, None);
        build.store(out, None, both, None);
        build.scratch();
        let (o, i) = (outer as usize, inner as usize);
        let data = sample(o * i);
        let shifts: Vec<f32> = (0..o).map(|o| o as f32 + 1.0).collect();
        let scratch = scratch_words(&build, outer, inner, true);
        let after = build.run(
            gpu,
            Geometry::Reduce { outer, inner },
            &[words(&data), vec![0; o * i], vec![0; o], words(&shifts), scratch],
        );
        let moved: Vec<f32> = (0..o * i).map(|e| data[e] + shifts[e / i]).collect();
        let expected: Vec<f32> = (0..o)
            .map(|o| {
                moved[o * i..][..i].iter().sum::<f32>()
                    + data[o * i..][..i].iter().fold(f32::INFINITY, |a, b| a.min(*b))
            })
            .collect();
        assert_eq!(floats(&after[1]), moved, "{outer} {inner}");
        assert_eq!(floats(&after[2]), expected, "{outer} {inner}");
    }
}

#[test]
fn tiles_of_a_full_reduction_give_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let inner = 100_000u32;
    let data: Vec<f32> = (0..inner).map(|i| 1.0 / (1.0 + i as f32)).collect();
    let (mut build, x, _) = source(true, DType::F32, 1, inner);
    let sum = build.reduce(Monoid::Sum, &[x]);
    let out = build.operand(DType::F32, Access::Write);
    build.store(out, None, sum, None);
    build.scratch();
    let plan = reduce_plan(1, inner, true);
    assert!(plan.chunks > 3);
    let cut = 2 * plan.chunk;
    let geometry = Geometry::Reduce { outer: 1, inner };
    let buffers = [words(&data), vec![0], scratch_words(&build, 1, inner, true)];
    let one = build.run(gpu, geometry, &buffers);
    let tiles = [
        Tile { begin: 0, end: cut, base: 0, base_wide: 0, last: false },
        Tile { begin: cut, end: inner, base: 0, base_wide: 0, last: true },
    ];
    let two = gpu.launch(&build.kernel, geometry, &build.params, &buffers, &tiles, 30);
    assert_eq!(one[1], two[1]);
    let exact: f64 = data.iter().map(|v| *v as f64).sum();
    assert!((floats(&one[1])[0] as f64 - exact).abs() < 1e-5);
}

#[test]
fn wide_partials_keep_their_bits() {
    let Some(gpu) = gpu() else { return };
    if !gpu.target.f64 || !gpu.target.i64 {
        return eprintln!("no 64-bit types: this test is skipped");
    }
    for inner_fast in [true, false] {
        for (outer, inner) in [(1usize, 30_000usize), (5, 11), (3, 9000)] {
            let data: Vec<f64> = sample(outer * inner).iter().map(|v| *v as f64 + 2f64.powi(-30)).collect();
            let (mut build, x, _) = source(inner_fast, DType::F64, outer as u32, inner as u32);
            let sum = build.reduce(Monoid::Sum, &[x]);
            let greatest = build.reduce(Monoid::ArgMaxOmit, &[x, Val(2)]);
            let (out, place) = (build.operand(DType::F64, Access::Write), build.operand(DType::U32, Access::Write));
            let position = build.project(greatest, 1);
            build.store(out, None, sum, None);
            build.store(place, None, position, None);
            build.scratch();
            let scratch = scratch_words(&build, outer as u32, inner as u32, inner_fast);
            let after = build.run(
                gpu,
                Geometry::Reduce { outer: outer as u32, inner: inner as u32 },
                &[words64(&data), vec![0; 2 * outer], vec![0; outer], scratch],
            );
            let line = |o: usize| (0..inner).map(|i| data[at(inner_fast, outer, inner, o, i)]).collect::<Vec<_>>();
            let sums: Vec<f64> = (0..outer).map(|o| line(o).iter().sum()).collect();
            assert_eq!(floats64(&after[1]), sums, "{inner_fast} {outer} {inner}");
            let places: Vec<u32> = (0..outer)
                .map(|o| {
                    let line = line(o);
                    let greatest = line.iter().fold(f64::MIN, |a, b| a.max(*b));
                    line.iter().position(|v| *v == greatest).unwrap() as u32
                })
                .collect();
            assert_eq!(after[2], places, "{inner_fast} {outer} {inner}");
        }
    }
}

#[test]
fn bools_and_integers_have_extremes_and_positions() {
    let Some(gpu) = gpu() else { return };
    let run = |dtype: DType, monoid: Monoid, data: Vec<u32>, count: u32, words: usize| {
        let (mut build, x, _) = source(true, dtype, 1, count);
        let args = match monoid {
            Monoid::ArgMinOmit | Monoid::ArgMaxInclude => vec![x, Val(2)],
            _ => vec![x],
        };
        let result = build.reduce(monoid, &args);
        let last = args.len() as u8 - 1;
        let value = build.project(result, last);
        let dtype = build.kernel.inst(value).dtype;
        let out = build.operand(dtype, Access::Write);
        build.store(out, None, value, None);
        build.scratch();
        let scratch = scratch_words(&build, 1, count, true);
        build.run(gpu, Geometry::Reduce { outer: 1, inner: count }, &[data, vec![77; words], scratch])[1].clone()
    };
    assert_eq!(run(DType::Bool, Monoid::ArgMinOmit, vec![1, 1, 0, 1, 0], 5, 1), [2]);
    assert_eq!(run(DType::Bool, Monoid::ArgMaxInclude, vec![0, 0, 0, 1, 1], 5, 1), [3]);
    assert_eq!(run(DType::Bool, Monoid::MinOmit, vec![1, 1, 1], 3, 1), [1]);
    assert_eq!(run(DType::Bool, Monoid::MaxInclude, vec![0, 0, 0, 0, 0, 1], 6, 1), [1]);
    let negative = |v: i32| v as u32;
    assert_eq!(run(DType::I32, Monoid::MinOmit, vec![5, negative(-7), 2], 3, 1), [negative(-7)]);
    assert_eq!(run(DType::I32, Monoid::MaxInclude, vec![negative(-5), negative(-7)], 2, 1), [negative(-5)]);
    assert_eq!(run(DType::I32, Monoid::ArgMinOmit, vec![5, negative(-7), 2, negative(-7)], 4, 1), [1]);
    assert_eq!(run(DType::U8, Monoid::MinOmit, vec![], 0, 1), [255]);
    assert_eq!(run(DType::I32, Monoid::MaxOmit, vec![], 0, 1), [i32::MIN as u32]);
    assert_eq!(run(DType::U32, Monoid::ArgMaxInclude, vec![3, u32::MAX, 0], 3, 1), [1]);
    if !gpu.target.i64 {
        return eprintln!("no 64-bit integers: the rest of this test is skipped");
    }
    assert_eq!(run(DType::I64, Monoid::MinOmit, vec![1, 0, 0, 1 << 31], 2, 2), [0, 1 << 31]);
    assert_eq!(run(DType::I64, Monoid::MaxInclude, vec![], 0, 2), [0, 1 << 31]);
    let many: Vec<u32> = (0..20_000).flat_map(|i| [i, 7]).collect();
    assert_eq!(run(DType::I64, Monoid::MaxOmit, many.clone(), 20_000, 2), [19_999, 7]);
    assert_eq!(run(DType::I64, Monoid::ArgMinOmit, many, 20_000, 1), [0]);
}

#[test]
fn random_rows_that_begin_anywhere_hold_the_numbers_of_a_flat_map() {
    let Some(gpu) = gpu() else { return };
    let (outer, inner) = (3u32, 1029u32);
    let draw = |build: &mut Build, element: Val| {
        let key = build.words(&[1, 2, 3, 4, 5]);
        let op = InstOp::Random { dist: Dist::Uniform, key, element, run: Run::Flat, params: smallvec::smallvec![] };
        build.inst(op, DType::F32)
    };
    let mut flat = Build::new(Form::Map);
    let out = flat.operand(DType::F32, Access::Write);
    let element = flat.inst(InstOp::Flat, DType::U32);
    let drawn = draw(&mut flat, element);
    flat.store(out, None, drawn, None);
    let count = (outer * inner) as usize;
    let all = flat.run(gpu, Geometry::Map { elements: outer * inner }, &[vec![0; count]]).remove(0);

    let (mut build, _, at) = source(true, DType::F32, outer, inner);
    let drawn = draw(&mut build, at);
    let greatest = build.reduce(Monoid::MaxOmit, &[drawn]);
    let (kept, out) = (build.operand(DType::F32, Access::Write), build.operand(DType::F32, Access::Write));
    build.store(kept, Some(at), drawn, None);
    build.store(out, None, greatest, None);
    let buffers = [vec![0; count], vec![0; count], vec![0; 3]];
    let after = build.run(gpu, Geometry::Reduce { outer, inner }, &buffers);
    assert_eq!(after[1], all);
    let expected: Vec<f32> =
        floats(&all).chunks(inner as usize).map(|row| row.iter().fold(f32::MIN, |a, b| a.max(*b))).collect();
    assert_eq!(floats(&after[2]), expected);
}

#[test]
fn requirements_of_elements_of_lines_and_of_folds_set_their_fault_words() {
    let Some(gpu) = gpu() else { return };
    for (outer, inner) in [(1u32, 1u32), (1, 5), (1, 20_001), (3, 17), (33, 300), (300, 3)] {
        for inner_fast in [true, false] {
            let (mut build, x, _) = source(inner_fast, DType::F32, outer, inner);
            build.kernel.faults = true;
            let out = build.operand(DType::F32, Access::Write);
            let line = build.inst(InstOp::Outer, DType::U32);
            let mut faults = 0;
            let mut require = |build: &mut Build, condition| {
                let site = build.words(&[faults]);
                faults += 1;
                build.inst(InstOp::Require { condition, site, guard: None }, DType::Bool);
            };
            for least in [0.0, 1.0] {
                let least = build.param(DType::F32, &words(&[least]));
                let holds = build.apply(ElementOp::Ge, &[x, least], DType::Bool);
                require(&mut build, holds);
            }
            for limit in [outer, outer - 1] {
                let limit = build.param(DType::U32, &[limit]);
                let holds = build.compare(IndexCompare::Less, line, limit);
                require(&mut build, holds);
            }
            let sum = build.reduce(Monoid::Sum, &[x]);
            for limit in [1e9, 0.0] {
                let limit = build.param(DType::F32, &words(&[limit]));
                let holds = build.apply(ElementOp::Lt, &[sum, limit], DType::Bool);
                require(&mut build, holds);
            }
            build.store(out, None, sum, None);
            build.scratch();
            // Only the last element is 0, the others are 1.
            let count = (outer * inner) as usize;
            let data: Vec<f32> = (0..count).map(|i| (i + 1 < count) as u8 as f32).collect();
            let scratch = scratch_words(&build, outer, inner, inner_fast);
            let buffers = [words(&data), vec![9; outer as usize], scratch, vec![0; 6]];
            let after = build.run(gpu, Geometry::Reduce { outer, inner }, &buffers);
            assert_eq!(after[3], [0, 1, 0, 1, 0, 1], "{outer} {inner} {inner_fast}");
            assert_eq!(floats(&after[1]).iter().sum::<f32>(), (count - 1) as f32, "{outer} {inner} {inner_fast}");
        }
    }
}

/// The components of the fold of one line, in a launch of its own.
fn line_alone(gpu: &Gpu, monoid: Monoid, data: &[f32], outer: usize, inner: usize, o: usize) -> Vec<f32> {
    let line: Vec<f32> = (0..inner).map(|i| data[at(false, outer, inner, o, i)]).collect();
    fold(gpu, true, monoid, 1, inner, &line).iter().enumerate().map(|(n, part)| component(monoid, n, part[0])).collect()
}

/// A component as a number. Positions and bools are words.
fn component(monoid: Monoid, number: usize, word: u32) -> f32 {
    let is_float = monoid.components(DType::F32)[number] == DType::F32 && !matches!(monoid, Monoid::Any | Monoid::All);
    if is_float { f32::from_bits(word) } else { word as f32 }
}

#[test]
fn neighbouring_outputs_are_folded_side_by_side_as_each_is_alone() {
    let Some(gpu) = gpu() else { return };
    let monoids = [
        Monoid::Prod,
        Monoid::MinInclude,
        Monoid::MaxOmit,
        Monoid::ArgMinOmit,
        Monoid::ArgMaxInclude,
        Monoid::Any,
        Monoid::Moments,
        Monoid::MomentsWhere,
        Monoid::Squares,
        Monoid::ExpSum,
    ];
    for (outer, inner) in [(2usize, 40usize), (7, 9001), (38, 333), (131, 10)] {
        // Few values differ from one, so that products and sums of squares stay exact.
        let mut data: Vec<f32> = sample(outer * inner).iter().map(|v| if *v > 47.0 { -2.0 } else { 1.0 }).collect();
        data[outer * inner / 2] = f32::NAN;
        for monoid in monoids {
            let parts = fold(gpu, false, monoid, outer, inner, &data);
            for o in [0, 1, outer / 2, outer - 2, outer - 1] {
                let alone = line_alone(gpu, monoid, &data, outer, inner, o);
                for (number, expected) in alone.iter().enumerate() {
                    let found = component(monoid, number, parts[number][o]);
                    // The base of moments may be any element, so the base and the mean minus the base are not compared.
                    if monoid.is_moments() && (number == 1 || number == 2) {
                        continue;
                    }
                    let near = (found - expected).abs() <= 1e-3 * expected.abs().max(1e-3);
                    let same = found == *expected || found.is_nan() && expected.is_nan();
                    assert!(same || near, "{monoid:?} {outer} by {inner}, output {o}: {found} and {expected}");
                }
            }
        }
    }
}
