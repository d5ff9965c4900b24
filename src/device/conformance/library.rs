//! Library kernels: products of matrices, sorting permutations, assignment by index.

use super::agree;
use super::work::{BatchBuilder, varied};
use crate::graph::DType;
use crate::kernels::ir::Access::{Read, ReadWrite, Write};
use crate::kernels::library::Library;

fn product(
    work: &mut BatchBuilder,
    dtype: DType,
    (m, n, k, batch): (u32, u32, u32, u32),
    (transpose_a, transpose_b): (bool, bool),
) {
    if !work.info.has(dtype) {
        return;
    }
    let a = work.given(varied(dtype, (m * k * batch) as usize, 0));
    let b = work.given(varied(dtype, (k * n) as usize, 1));
    let out = work.array(dtype, (m * n * batch) as usize);
    let (stride_a, stride_b) = (m * k, 0);
    let library = Library::MatMul { dtype, m, n, k, batch, transpose_a, transpose_b, stride_a, stride_b };
    work.library(library, &[Read, Read, Write], &[a, b, out], None);
    work.read(format!("{dtype}: {m} x {k} by {k} x {n}, {batch} pages, {transpose_a} {transpose_b}"), out);
}

#[test]
fn products_of_matrices_are_what_the_host_computes() {
    agree(65_536.0, |work| {
        for dtype in [DType::F32, DType::F64] {
            product(work, dtype, (5, 7, 11, 1), (false, false));
            product(work, dtype, (65, 33, 70, 1), (true, false));
            product(work, dtype, (17, 40, 19, 3), (false, true));
            product(work, dtype, (1, 9, 300, 1), (false, false));
        }
    });
}

#[test]
fn sorting_permutations_are_those_of_the_host() {
    agree(0.0, |work| {
        for dtype in DType::ALL.into_iter().filter(|dtype| work.info.has(*dtype)).collect::<Vec<_>>() {
            for (before, len, after) in [(1u32, 1000u32, 1u32), (3, 50, 4)] {
                let elements = (before * len * after) as usize;
                let keys = work.given(varied(dtype, elements, 0));
                for descending in [false, true] {
                    let out = work.array(DType::U32, elements);
                    let library = Library::ArgSort { dtype, before, len, after, descending };
                    work.library(library, &[Read, Write], &[keys, out], None);
                    work.read(format!("{before} x {len} x {after} of {dtype}, descending: {descending}"), out);
                }
            }
        }
    });
}

#[test]
fn assignments_by_index_are_those_of_the_host_and_the_last_of_duplicates_wins() {
    agree(0.0, |work| {
        let dtypes: Vec<DType> = DType::ALL.into_iter().filter(|dtype| work.info.has(*dtype)).collect();
        for (scalar_value, dtype) in dtypes.into_iter().flat_map(|dtype| [(false, dtype), (true, dtype)]) {
            let (before, extent, after, count) = (3u32, 10u32, 2u32, 6u32);
            let base = work.given(varied(dtype, (before * extent * after) as usize, 0));
            let index = work.of_slice(&[4i32, 0, 9, 4, 2, 0]);
            let values = if scalar_value { 1 } else { (before * count * after) as usize };
            let value = work.given(varied(dtype, values, 1));
            let faults = work.fault_words();
            let index_dtype = DType::I32;
            let library = Library::AssignIndex { dtype, index_dtype, before, extent, after, count, scalar_value };
            work.library(library, &[ReadWrite, Read, Read], &[base, index, value], Some(faults));
            work.read(format!("{dtype}, one value: {scalar_value}"), base);
            work.read(format!("{dtype}, one value: {scalar_value}, fault words"), faults);
        }
    });
}
