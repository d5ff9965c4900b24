//! Matrix products on the host, by the `gemm` crate.
//!
//! Must hold: EVAL-4: panels are cut by the sizes alone.

use crate::graph::DType;
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::library::Library;

/// Columns (or rows) of the result that a task computes.
const PANEL: usize = 128;
/// Multiplications below which one thread is enough.
const PARALLEL_MIN: usize = 1 << 18;

/// Runs `Library::MatMul` over its operands `[a, b, out]`.
pub fn run(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) {
    match library {
        Library::MatMul { dtype: DType::F32, .. } => multiply::<f32>(library, operands, pool),
        Library::MatMul { dtype: DType::F64, .. } => multiply::<f64>(library, operands, pool),
        other => panic!("LIB-1: {other:?} is no matrix product of floats"),
    }
}

trait Real: Copy + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

/// A matrix by its address and the distances between neighbours of a column and of a row.
#[derive(Clone, Copy)]
struct Matrix {
    down: usize,
    right: usize,
}

impl Matrix {
    fn new(rows: usize, columns: usize, transposed: bool) -> Matrix {
        if transposed { Matrix { down: columns, right: 1 } } else { Matrix { down: 1, right: rows } }
    }

    fn span(self, rows: usize, columns: usize) -> usize {
        if rows == 0 || columns == 0 { 0 } else { (rows - 1) * self.down + (columns - 1) * self.right + 1 }
    }
}

fn multiply<T: Real>(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) {
    let &Library::MatMul { m, n, k, batch, transpose_a, transpose_b, stride_a, stride_b, .. } = library else {
        panic!("LIB-1: {library:?} is no matrix product");
    };
    let (m, n, k, batch) = (m as usize, n as usize, k as usize, batch as usize);
    let (stride_a, stride_b) = (stride_a as usize, stride_b as usize);
    let (a, b) = (Matrix::new(m, k, transpose_a), Matrix::new(k, n, transpose_b));
    let out_elements = operands[2].elements(size_of::<T>());
    assert!(out_elements >= m * n * batch, "EVAL-1: a product of {m} x {n} x {batch} in {out_elements}");
    if m == 0 || n == 0 || batch == 0 {
        return;
    }
    // SAFETY: the one place that writes `out`.
    let out: *mut T = unsafe { operands[2].slice_mut::<T>() }.as_mut_ptr();
    if k == 0 {
        // SAFETY: `out` holds that many elements.
        unsafe { std::slice::from_raw_parts_mut(out, m * n * batch) }.fill(T::ZERO);
        return;
    }
    let (left, right) = (operands[0].slice::<T>(), operands[1].slice::<T>());
    assert!(left.len() >= a.span(m, k) + stride_a * (batch - 1), "EVAL-1: the left factor is too short");
    assert!(right.len() >= b.span(k, n) + stride_b * (batch - 1), "EVAL-1: the right factor is too short");
    let by_columns = n >= m;
    let panels = if by_columns { n.div_ceil(PANEL) } else { m.div_ceil(PANEL) };
    let parallel = m * n * batch * k >= PARALLEL_MIN;
    let out = Shared(out);
    pool.run(panels * batch, parallel, |tasks| {
        for task in tasks {
            let (page, begin) = (task / panels, task % panels * PANEL);
            let (row, rows) = if by_columns { (0, m) } else { (begin, PANEL.min(m - begin)) };
            let (column, columns) = if by_columns { (begin, PANEL.min(n - begin)) } else { (0, n) };
            // SAFETY: the spans were checked above; panels write disjoint parts of `out`.
            unsafe {
                gemm::gemm::<T>(
                    rows,
                    columns,
                    k,
                    out.at().add(page * m * n + column * m + row),
                    m as isize,
                    1,
                    false,
                    left.as_ptr().add(page * stride_a + row * a.down),
                    a.right as isize,
                    a.down as isize,
                    right.as_ptr().add(page * stride_b + column * b.right),
                    b.right as isize,
                    b.down as isize,
                    T::ZERO,
                    T::ONE,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    });
}

/// A pointer that workers share; each writes its own panels.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn at(&self) -> *mut T {
        self.0
    }
}

// SAFETY: panels are disjoint.
unsafe impl<T> Sync for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_buffer::as_bytes;

    fn bytes_mut<T>(slice: &mut [T]) -> &mut [u8] {
        let bytes = std::mem::size_of_val(slice);
        // SAFETY: plain numbers.
        unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), bytes) }
    }

    #[test]
    fn a_small_product_is_exact() {
        // [1 3 5; 2 4 6] * [1 4; 2 5; 3 6]
        let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut out = [0.0f32; 4];
        let library = Library::MatMul {
            dtype: DType::F32,
            m: 2,
            n: 2,
            k: 3,
            batch: 1,
            transpose_a: false,
            transpose_b: false,
            stride_a: 6,
            stride_b: 6,
        };
        let operands =
            [HostOperand::read(as_bytes(&a)), HostOperand::read(as_bytes(&b)), HostOperand::write(bytes_mut(&mut out))];
        run(&library, &operands, &Pool::new(Some(1)).unwrap());
        assert_eq!(out, [22.0, 28.0, 49.0, 64.0]);
    }

    #[test]
    fn transposed_and_shared_operands_agree_with_three_loops_for_any_number_of_threads() {
        let value = |i: usize| ((i * 7919) % 23) as f64 - 11.0;
        for (m, n, k) in [(1, 1, 1), (3, 300, 5), (300, 3, 17), (129, 130, 64), (4, 4, 0)] {
            for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
                for shared in [false, true] {
                    let batch = 3;
                    let a: Vec<f64> = (0..m * k * batch).map(value).collect();
                    let b: Vec<f64> = (0..k * n * batch).map(|i| value(i + 5)).collect();
                    let stride_a = if shared { 0 } else { m * k };
                    let mut expected = vec![0.0; m * n * batch];
                    for (at, slot) in expected.iter_mut().enumerate() {
                        let (i, j, p) = (at % m, at / m % n, at / (m * n));
                        for l in 0..k {
                            let x = a[p * stride_a + if ta { l + k * i } else { i + m * l }];
                            let y = b[p * k * n + if tb { j + n * l } else { l + k * j }];
                            *slot += x * y;
                        }
                    }
                    for threads in [1, 2, 5] {
                        let mut out = vec![f64::NAN; m * n * batch];
                        let library = Library::MatMul {
                            dtype: DType::F64,
                            m: m as u32,
                            n: n as u32,
                            k: k as u32,
                            batch: batch as u32,
                            transpose_a: ta,
                            transpose_b: tb,
                            stride_a: stride_a as u32,
                            stride_b: (k * n) as u32,
                        };
                        let operands = [
                            HostOperand::read(as_bytes(&a)),
                            HostOperand::read(as_bytes(&b)),
                            HostOperand::write(bytes_mut(&mut out)),
                        ];
                        run(&library, &operands, &Pool::new(Some(threads)).unwrap());
                        assert_eq!(out, expected, "{m}x{k}x{n} {ta} {tb} shared {shared}, {threads} threads");
                    }
                }
            }
        }
    }
}
