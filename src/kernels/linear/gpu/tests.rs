use super::*;
use crate::graph::Triangle;
use crate::kernels::wgsl::harness::validate;

fn library(op: LinearOp, dtype: DType, m: u32, n: u32, columns: u32) -> Library {
    Library::Linear { op, dtype, m, n, columns, batch: 3, stride_a: m * n }
}

const OPS: [LinearOp; 7] = [
    LinearOp::Cholesky,
    LinearOp::Lu,
    LinearOp::Qr { full: false },
    LinearOp::SolveTriangular(Triangle::LOWER),
    LinearOp::SolveTriangular(Triangle::UPPER.with_unit_diagonal()),
    LinearOp::Recurrence { order: 1 },
    LinearOp::Recurrence { order: 16 },
];

#[test]
fn every_module_is_valid_whatever_the_segments_of_its_operands() {
    let mut seen = std::collections::HashSet::new();
    for dtype in [DType::F32, DType::F64] {
        for op in OPS {
            for segments in [[1u8; 4], [2, 3, 2, 1]] {
                for (n, columns) in [(5, 1), (40, 9), (130, 70)] {
                    for pass in passes(&library(op, dtype, n, n, columns), &segments, 20).unwrap() {
                        if seen.insert((pass.key.clone(), pass.wgsl.clone())) {
                            validate(&pass.wgsl);
                        }
                    }
                }
            }
        }
    }
    // Equal keys have equal texts.
    let keys: std::collections::HashSet<_> = seen.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), seen.len());
}

#[test]
fn a_blocked_factorisation_takes_a_few_passes_for_each_panel() {
    let count = |op, m, n, columns| passes(&library(op, DType::F32, m, n, columns), &[1; 4], 30).unwrap().len();
    assert_eq!(count(LinearOp::Cholesky, 64, 64, 0), 1);
    // Each block takes three passes: the diagonal, the rows below, the product.
    assert_eq!(count(LinearOp::Cholesky, 4096, 4096, 0), 1 + 64 * 3 - 2);
    assert_eq!(count(LinearOp::Lu, 4096, 4096, 0), 1 + 128 * 4 - 2);
    assert_eq!(count(LinearOp::SolveTriangular(Triangle::LOWER), 4096, 4096, 5), 1 + 64 * 2 - 1);
    assert_eq!(count(LinearOp::Qr { full: false }, 4096, 4096, 0), 1 + 128 * 3 - 1 + 1);
}

#[test]
fn a_recurrence_takes_a_pass_for_as_many_rows_as_its_loops_may_have() {
    let passes = |dtype, rows| {
        let library = Library::Linear {
            op: LinearOp::Recurrence { order: 2 },
            dtype,
            m: rows,
            n: 1,
            columns: 1,
            batch: 130,
            stride_a: rows,
        };
        passes(&library, &[1; 3], 30).unwrap()
    };
    for (dtype, tile) in [(DType::F32, 32), (DType::F64, 16)] {
        assert_eq!(passes(dtype, 1).len(), 1);
        let long = passes(dtype, 40_000);
        assert_eq!(long.len(), 3);
        // Parameters: two of all passes, groups, lines, rows, start, end.
        let ranges: Vec<(u32, u32)> = long.iter().map(|pass| (pass.params[5], pass.params[6])).collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
        assert_eq!((ranges[0].0, ranges[2].1), (0, 40_000));
        assert!(ranges.iter().all(|(start, end)| (end - start).div_ceil(tile) * (3 * tile + 1) <= TURNS_MAX));
        assert_eq!(long[0].grid, [3, 1, 1]);
    }
}

#[test]
fn panels_of_tall_matrices_are_narrow_where_loops_would_be_long() {
    // Turns of a panel of reflections and of elimination, counted from their texts: at most 5 and 3 for each 256 rows
    // of a column, plus those of trees.
    for (turns, fixed) in [(5, 60), (3, 20)] {
        assert_eq!(panel_width(4096, turns, fixed), PANEL);
        for rows in [1u32, 1000, 100_000, 960_000] {
            let width = panel_width(rows, turns, fixed);
            let taken = |width: u32| width * (rows.div_ceil(256) * turns + fixed);
            assert!((1..=PANEL).contains(&width) && taken(width) <= TURNS_MAX, "{rows}: {width}");
            assert!(width == PANEL || taken(width + 1) > TURNS_MAX, "{rows}: {width}");
        }
    }
    // 29 columns of 100,000 rows are one panel.
    let passes = passes(&library(LinearOp::Qr { full: false }, DType::F32, 100_000, 29, 0), &[1; 4], 30).unwrap();
    let panels = passes.iter().filter(|pass| pass.key.contains("qr panel")).count();
    assert_eq!(panels, 1);
}
