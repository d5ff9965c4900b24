//! Tests scans against host loops.

use super::super::harness::{Build, floats, gpu, sample, words};
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Access, Form, Geometry, IndexOp, InstOp, Monoid, Run, scan_plan};

#[test]
fn running_folds_go_forth_and_back_over_tiles() {
    let Some(gpu) = gpu() else { return };
    for monoid in [Monoid::Sum, Monoid::MinOmit, Monoid::MaxInclude] {
        for (outer, inner, inner_fast) in [
            (1, 1, true),
            (3, 5, true),
            (2, 256, false),
            (3, 257, true),
            (1, 3000, false),
            (1, 9000, true),
            (3, 20_001, false),
            (300, 70, false),
            (257, 1001, false),
        ] {
            for reverse in [false, true] {
                let mut build = Build::new(Form::Scan { inner_fast });
                let a = build.operand(DType::F32, Access::Read);
                let out = build.operand(DType::F32, Access::Write);
                let stride = build.param(DType::U32, &[if inner_fast { inner } else { outer }]);
                let one = build.param(DType::F32, &words(&[1.0]));
                let o = build.inst(InstOp::Outer, DType::U32);
                let i = build.inst(InstOp::Inner, DType::U32);
                let (slow, fast) = if inner_fast { (o, i) } else { (i, o) };
                let row = build.index(IndexOp::Mul, slow, stride);
                let at = build.index(IndexOp::Add, row, fast);
                let x = build.load(a, at, Run::Flat);
                let x = build.apply(ElementOp::Add, &[x, one], DType::F32);
                let running = build.inst(InstOp::Scan { monoid, arg: x }, DType::F32);
                let after = build.apply(ElementOp::Sub, &[running, one], DType::F32);
                build.store(out, Some(at), after, None);
                let data = sample((outer * inner) as usize);
                let mut buffers = vec![words(&data), vec![0; data.len()]];
                // Long or many lines are scanned in phases.
                if inner > 5000 || outer > 200 {
                    build.scratch();
                    let chunks = scan_plan(outer, inner, inner_fast).chunks;
                    assert!(chunks > 1);
                    buffers.push(vec![7; (build.kernel.partial_words() * outer * chunks) as usize]);
                }
                let got = build.run(gpu, Geometry::Scan { outer, inner, reverse }, &buffers);
                let mut expected = vec![0.0; data.len()];
                for o in 0..outer {
                    let mut acc: Option<f32> = None;
                    for step in 0..inner {
                        let i = if reverse { inner - 1 - step } else { step };
                        let at = (if inner_fast { o * inner + i } else { i * outer + o }) as usize;
                        let x = data[at] + 1.0;
                        let next = match (acc, monoid) {
                            (None, _) => x,
                            (Some(acc), Monoid::Sum) => acc + x,
                            (Some(acc), Monoid::MinOmit) => acc.min(x),
                            (Some(acc), _) => acc.max(x),
                        };
                        acc = Some(next);
                        expected[at] = next - 1.0;
                    }
                }
                assert_eq!(floats(&got[1]), expected, "{monoid:?} {outer} {inner} {inner_fast} {reverse}");
            }
        }
    }
}

#[test]
fn two_scans_share_a_line_and_nan_stays_where_it_is_included() {
    let Some(gpu) = gpu() else { return };
    let mut build = Build::new(Form::Scan { inner_fast: true });
    let a = build.operand(DType::F32, Access::Read);
    let (omit, include) = (build.operand(DType::F32, Access::Write), build.operand(DType::F32, Access::Write));
    let i = build.inst(InstOp::Inner, DType::U32);
    let x = build.load(a, i, Run::Flat);
    let first = build.inst(InstOp::Scan { monoid: Monoid::MaxOmit, arg: x }, DType::F32);
    let second = build.inst(InstOp::Scan { monoid: Monoid::MaxInclude, arg: x }, DType::F32);
    build.store(omit, Some(i), first, None);
    build.store(include, Some(i), second, None);
    let data = [f32::NAN, 1.0, f32::NAN, 3.0];
    let got =
        build.run(gpu, Geometry::Scan { outer: 1, inner: 4, reverse: false }, &[words(&data), vec![0; 4], vec![0; 4]]);
    assert!(floats(&got[1])[0].is_nan());
    assert_eq!(floats(&got[1])[1..], [1.0, 1.0, 3.0]);
    assert!(floats(&got[2]).iter().all(|v| v.is_nan()));
}

/// After a zero, a running product stays zero even if the products of later parts overflow, as in the host's walk. An
/// infinity or NaN among the numbers still makes it NaN.
#[test]
fn a_running_product_stays_zero_behind_a_zero() {
    let Some(gpu) = gpu() else { return };
    for reverse in [false, true] {
        let mut build = Build::new(Form::Scan { inner_fast: true });
        let a = build.operand(DType::F32, Access::Read);
        let out = build.operand(DType::F32, Access::Write);
        let i = build.inst(InstOp::Inner, DType::U32);
        let x = build.load(a, i, Run::Flat);
        let running = build.inst(InstOp::Scan { monoid: Monoid::Prod, arg: x }, DType::F32);
        build.store(out, Some(i), running, None);
        let mut data = vec![-10.0f32; 900];
        data[3] = 0.0;
        data[700] = f32::INFINITY;
        if reverse {
            data.reverse();
        }
        let geometry = Geometry::Scan { outer: 1, inner: 900, reverse };
        let got = build.run(gpu, geometry, &[words(&data), vec![0; 900]]);
        let mut got = floats(&got[1]);
        if reverse {
            got.reverse();
        }
        assert_eq!(got[..3], [-10.0, 100.0, -1000.0]);
        for (place, value) in got.iter().enumerate().skip(3) {
            if place < 700 {
                let negative = place % 2 == 1;
                assert!(*value == 0.0 && value.is_sign_negative() == negative, "{place}: {value}");
            } else {
                assert!(value.is_nan(), "{place}: {value}");
            }
        }
    }
}
