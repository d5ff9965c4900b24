//! Counts the kernels, dispatches and bytes of one turn of each workload of `benches/peers`, on the host and on Mesa's
//! software GPU, and compares them with `tests/workloads.txt`. A fusion that is lost, or a pass too many, fails this
//! test. `UPDATE_EXPECT=1` writes the file.

mod common;
// The bench uses all of these items, this test some.
#[allow(dead_code)]
#[path = "../benches/peers/programs.rs"]
mod programs;
#[allow(dead_code)]
#[path = "../benches/peers/rows.rs"]
mod rows;

use common::{counted, unfolded, wait};
use expect_test::expect_file;
use rows::{ROWS, Row};
use std::fmt::Write;
use tidemill::Runtime;

/// The size of a row in this test: so large that kernels take the same path as in the bench, and so small that two
/// cores take a moment.
fn size(row: &Row) -> usize {
    match row.name {
        "sum_all" | "sum_fast" | "sum_slow" | "var_fast" | "var_slow" | "argmax_slow" => 600,
        "softmax_fast" | "softmax_slow" | "cumsum_fast" | "cumsum_slow" | "blur9" | "matvec" | "matvec_t" => 600,
        "transpose" | "permute" => 640,
        "matmul" | "matmul_f64" => 520,
        "sort" | "cumsum" => 100_000,
        "upload" | "gather" | "add" | "chain" => 100_000,
        _ => row.quick,
    }
}

fn counts(rt: &Runtime) -> String {
    let mut text = String::new();
    for row in ROWS {
        let size = size(row);
        let session = rt.session(row.name).seed(1).open();
        let inputs = wait(programs::fill(&session, row, size)).unwrap();
        // The first turn moves data that lies on the host.
        wait(programs::turn(&session, &inputs, row, size)).unwrap();
        let (_, did) = counted(rt, || wait(programs::turn(&session, &inputs, row, size)).unwrap());
        let (kernels, dispatches, regions) = (did.kernels, did.dispatches, did.regions);
        let (read, written) = (did.bytes_kernel_read, did.bytes_kernel_written);
        let name = row.name;
        let _ = writeln!(
            text,
            "{name:<14} {size:>6}: {regions} region(s), {kernels} kernel(s), {dispatches} dispatch(es), reads {read} B, writes {written} B"
        );
        assert!(did.elsewhere.is_empty(), "{name}: {:?}", did.elsewhere);
    }
    text
}

#[test]
fn each_workload_runs_the_kernels_and_moves_the_bytes_that_are_recorded() {
    let mut text = String::new();
    for (device, rt) in unfolded(|b| b) {
        if rt.devices().iter().any(|info| info.is_accelerator() && !info.software) {
            continue;
        }
        let _ = writeln!(text, "{device}\n{}", counts(&rt));
    }
    expect_file!["workloads.txt"].assert_eq(&text);
}
