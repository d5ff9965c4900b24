//! Every op of the table runs on the GPU, for every class that any GPU has.

use crate::array::operand::Operand;
use crate::array::record::apply;
use crate::array::*;
use crate::graph::{DType, ElementOp, Nan, ReduceOp, ScanOp};
use futures::executor::block_on;
use std::panic::Location;

#[test]
fn every_op_of_f32_i32_u32_and_bool_runs_on_the_gpu() {
    let rt = match Runtime::builder().device("gpu").fold_elements_max(0).start_blocking() {
        Ok(rt) => rt,
        Err(error) if std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1") => {
            panic!("a GPU is required: {error}")
        }
        Err(error) => return eprintln!("skipped on the GPU: {error}"),
    };
    // Reductions and functions of integers are f64, which not every GPU has.
    let has_f64 = rt.devices().iter().any(|device| !device.capabilities.owns_host_budget && device.has(DType::F64));
    let s = rt.session("ops").open();
    let mut ran = 0;
    let mut check = |what: String, array: Array| {
        let before = rt.stats();
        let dtype = match array.dtype() {
            Ok(dtype) => dtype,
            // According to the table, some ops do not take such a class.
            Err(error) => return assert_eq!(error.kind(), crate::error::ErrorKind::DType, "{what}: {error}"),
        };
        if dtype == DType::F64 && !has_f64 {
            return;
        }
        block_on(array.eval()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let elsewhere = rt.stats().since(&before).elsewhere;
        assert!(elsewhere.is_empty(), "{what}: {elsewhere:?}");
        ran += 1;
    };
    for dtype in [DType::F32, DType::I32, DType::U32, DType::Bool] {
        let x = s.from_vec((0..96).map(|i| (i % 7) as f64).collect(), [12, 8]).unwrap().cast_to(dtype);
        block_on(x.eval()).unwrap();
        for &op in ElementOp::ALL.iter().filter(|op| **op != ElementOp::Cast) {
            let mut alike: Vec<Operand<'_>> = (0..op.arity()).map(|_| (&x).into()).collect();
            check(format!("{} of {dtype}", op.name()), apply(op, &mut alike, Location::caller()));
            if op.arity() == 2 {
                for number in [2.0, 0.5] {
                    let mut beside: [Operand<'_>; 2] = [(&x).into(), number.into()];
                    let what = format!("{} of {dtype} and {number}", op.name());
                    check(what, apply(op, &mut beside, Location::caller()));
                }
            }
        }
        for to in DType::ALL {
            check(format!("cast of {dtype} to {to}"), x.cast_to(to));
        }
        use ReduceOp::*;
        let var = Var { ddof: 1 };
        let std = Std { ddof: 0 };
        for op in [Sum, Prod, Mean, var, std, Min, Max, ArgMin, ArgMax, Any, All, CountNonzero, Norm, LogSumExp] {
            for nan in [Nan::Include, Nan::Omit] {
                check(format!("{op:?} of {dtype}, {nan:?}"), x.reduce(op, 0, nan));
                check(format!("{op:?} of all {dtype}, {nan:?}"), x.reduce(op, .., nan));
            }
        }
        check(format!("dot of {dtype}"), x.dot(&x, 1));
        check(format!("dot of {dtype} without NaN"), x.nan_dot(&x, ..));
        for op in [ScanOp::Sum, ScanOp::Prod, ScanOp::Min, ScanOp::Max] {
            check(format!("scan {op:?} of {dtype}"), x.scan(op, 0, Nan::Omit, false));
        }
        check(format!("sort of {dtype}"), x.sort(0).0);
        check(format!("product of {dtype}"), x.matmul(&x.transpose()));
        let index = s.from_vec(vec![3i32, 0, 5], [3, 1]).unwrap();
        check(format!("elements of {dtype} at indices"), x.take(&index));
        check(format!("assignment of {dtype} at indices"), x.assign_at(&index, 1));
    }
    assert!(ran > 4 * 60, "{ran} ops ran");
}
