//! Linear algebra on the host, by the crate `faer`.
//!
//! In: the library's operands. Out: its output, written page by page. Many small pages are distributed to the pool's
//! threads, each page to one thread. Larger pages are computed one after the other, each by all threads. The line of a
//! recurrence is computed by one thread, however long it is.

mod factors;
mod recurrence;
mod spectrum;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, LinearOp, Triangle};
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::library::Library;
use faer::dyn_stack::{MemBuffer, StackReq};
use faer::traits::RealField;
use faer::{MatMut, MatRef, Par};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The least number of operations of a page for which several threads gain more than their synchronisation costs.
const SHARED_MIN: f64 = 4e6;

/// A float type of pages.
trait Real: RealField + Copy {
    const ZERO: Self;
    const ONE: Self;
    const NAN: Self;
    /// A position as a float. It is exact up to 2^24.
    fn position(at: usize) -> Self;
    fn is_number(self) -> bool;
    fn magnitude(self) -> Self;
    fn root(self) -> Self;
}

macro_rules! real {
    ($($float:ident)*) => {$(
        impl Real for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $float::NAN;
            fn position(at: usize) -> Self {
                at as $float
            }
            fn is_number(self) -> bool {
                self.is_finite()
            }
            fn magnitude(self) -> Self {
                self.abs()
            }
            fn root(self) -> Self {
                self.sqrt()
            }
        }
    )*};
}
real!(f32 f64);

/// A page of an op: the matrix, the right sides of a system or the coefficients of a recurrence, and how many threads may share the work.
#[derive(Clone, Copy)]
struct Page<'a, T> {
    a: MatRef<'a, T>,
    b: &'a [T],
    par: Par,
}

/// Runs `Library::Linear` over its operands `[a, out]` or `[a, b, out]`. Sets fault word `site` if a page does not have
/// the factor or the solution.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for intermediate results.
pub fn run(
    library: &Library,
    operands: &[HostOperand<'_>],
    faults: Option<&[AtomicU32]>,
    site: usize,
    pool: &Pool,
) -> Result<()> {
    let holds = match library {
        Library::Linear { dtype: DType::F32, .. } => pages::<f32>(library, operands, pool)?,
        Library::Linear { dtype: DType::F64, .. } => pages::<f64>(library, operands, pool)?,
        other => panic!("LIB-1: {other:?} is no linear algebra of floats"),
    };
    if let (false, Some(words)) = (holds, faults) {
        assert!(site < words.len(), "EVAL-1: fault word {site} of {}", words.len());
        words[site].store(1, Relaxed);
    }
    Ok(())
}

/// Computes all pages. Returns false if a page does not have the factor or the solution.
fn pages<T: Real>(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) -> Result<bool> {
    let &Library::Linear { op, m, n, columns, batch, stride_a, .. } = library else {
        panic!("LIB-1: {library:?} is no linear algebra");
    };
    let (m, n, batch, stride) = (m as usize, n as usize, batch as usize, stride_a as usize);
    let (rows, width) = op.extents(m, n, columns as usize);
    let size = rows * width;
    let a = operands[0].slice::<T>();
    let has_sides = matches!(op, LinearOp::SolveTriangular(_));
    let output = op.arguments();
    let b = if output > 1 { operands[1].slice::<T>() } else { &[] };
    // The memory of an operand may be longer than the operand.
    let b = if let LinearOp::Recurrence { order } = op { &b[..usize::from(order)] } else { b };
    // SAFETY: this is the only slice of the output, which is no other operand.
    let out = &mut unsafe { operands[output].slice_mut::<T>() }[..size * batch];
    let holds = AtomicBool::new(true);
    let one = |(page, out): (usize, &mut [T]), par: Par| -> Result<()> {
        let a = MatRef::from_column_major_slice(&a[page * stride..][..m * n], m, n);
        let b = if has_sides { &b[page * size..][..size] } else { b };
        if !compute(op, Page { a, b, par }, out)? {
            holds.store(false, Relaxed);
        }
        Ok(())
    };
    let elements = op.cost_elements(m, n, columns as usize);
    let work = op.facts().cost.operations(elements as f64, m.min(n) as u64);
    let threads = pool.threads();
    let is_shared = !matches!(op, LinearOp::Recurrence { .. });
    if is_shared && threads > 1 && work >= SHARED_MIN && (batch < threads || work >= 16.0 * SHARED_MIN) {
        pool.install(|| out.chunks_mut(size).enumerate().try_for_each(|page| one(page, Par::rayon(threads))))?;
    } else if batch > 1 && pool.is_worth_waking((work * batch as f64) as usize) {
        pool.install(|| out.par_chunks_mut(size).enumerate().try_for_each(|page| one(page, Par::Seq)))?;
    } else {
        out.chunks_mut(size).enumerate().try_for_each(|page| one(page, Par::Seq))?;
    }
    Ok(holds.into_inner())
}

/// Computes one page. Returns false if it does not have the factor or the solution.
fn compute<T: Real>(op: LinearOp, page: Page<'_, T>, out: &mut [T]) -> Result<bool> {
    match op {
        LinearOp::Cholesky => factors::cholesky(page, out),
        LinearOp::Lu => factors::lu(page, out).map(|()| true),
        LinearOp::SolveTriangular(triangle) => Ok(solve(page, triangle, out)),
        LinearOp::Recurrence { .. } => {
            recurrence::line(page, out);
            Ok(true)
        }
        LinearOp::Qr { full } => factors::qr(page, full, out).map(|()| true),
        LinearOp::QrPivoted => factors::qr_pivoted(page, out).map(|()| true),
        LinearOp::Eigh { vectors } => spectrum::eigh(page, vectors, out).map(|()| true),
        LinearOp::Eig => spectrum::eig(page, out).map(|()| true),
        LinearOp::Svd { vectors } => spectrum::svd(page, vectors, out).map(|()| true),
    }
}

/// Solves a triangular system. Returns false if its diagonal has a zero.
fn solve<T: Real>(Page { a, b, par }: Page<'_, T>, triangle: Triangle, out: &mut [T]) -> bool {
    use faer::linalg::triangular_solve::{
        solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_unit_upper_triangular_in_place,
        solve_upper_triangular_in_place,
    };
    out.copy_from_slice(b);
    let n = a.nrows();
    let x = MatMut::from_column_major_slice_mut(out, n, b.len() / n);
    let a = a.get(.., ..n);
    if !triangle.unit && (0..n).any(|i| a[(i, i)] == T::ZERO) {
        return false;
    }
    let a = if triangle.transpose { a.transpose() } else { a };
    match (triangle.is_forward(), triangle.unit) {
        (true, false) => solve_lower_triangular_in_place(a, x, par),
        (true, true) => solve_unit_lower_triangular_in_place(a, x, par),
        (false, false) => solve_upper_triangular_in_place(a, x, par),
        (false, true) => solve_unit_upper_triangular_in_place(a, x, par),
    }
    true
}

/// Memory for the intermediate results of `faer`.
fn memory(need: StackReq) -> Result<MemBuffer> {
    MemBuffer::try_new(need).map_err(|_| {
        Error::new(ErrorKind::OutOfMemory, format!("{} bytes to factor a matrix in", need.unaligned_bytes_required()))
    })
}

/// Whether no element is infinite or NaN.
fn is_finite<T: Real>(a: MatRef<'_, T>) -> bool {
    (0..a.ncols()).all(|j| (0..a.nrows()).all(|i| a[(i, j)].is_number()))
}
