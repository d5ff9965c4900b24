//! Matrix products on the host.
//!
//! In: sizes and operands, or a `Product` by its addresses. Out: the elements of the result.
//!
//! A product is computed in one of three ways (`Way`), depending on its shape. Packed: both factors are copied, and
//! parts of the result are computed tile by tile in registers. Streamed: one side is thin, and rows of the other factor
//! are neighbours in memory. Dotted: the terms of a sum are neighbours in memory. All ways cut the terms into chunks,
//! whose sums are added as a tree at the end.
//!
//! Must hold: EVAL-4: parts and chunks are cut by the sizes alone. MATMUL-1.

mod dotted;
mod lanes;
mod packed;
mod streamed;

use crate::graph::DType;
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::library::Library;
pub use lanes::Real;
use lanes::{Kernel, Lanes, dispatch};

/// A product with fewer multiplications runs on one thread.
const PARALLEL_MIN: usize = 1 << 18;
/// The most terms that are added one after the other (MATMUL-1).
const RUN: usize = 16;
/// A product is thin if its shorter side has at most this many lines.
const THIN: usize = 4;
/// A product is dotted if both sides have at most this many lines, however its terms lie in memory.
const DOTTED_MAX: usize = 16;
/// This many parts of a result keep the threads busy. If a result has fewer, its terms are cut.
const PARTS_ENOUGH: usize = 8;

/// Runs `Library::MatMul` over its operands `[a, b, out]`.
pub fn run(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) {
    match library {
        Library::MatMul { dtype: DType::F32, .. } => multiply::<f32>(library, operands, pool),
        Library::MatMul { dtype: DType::F64, .. } => multiply::<f64>(library, operands, pool),
        Library::MatMul { .. }
        | Library::ArgSort { .. }
        | Library::AssignIndex { .. }
        | Library::Linear { .. }
        | Library::Fourier { .. } => {
            panic!("LIB-1: {library:?} is no matrix product of floats")
        }
    }
}

/// The distances in memory between neighbours of a column and of a row.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    down: usize,
    right: usize,
}

impl Matrix {
    fn new(rows: usize, columns: usize, transposed: bool) -> Matrix {
        if transposed { Matrix { down: columns, right: 1 } } else { Matrix { down: 1, right: rows } }
    }

    fn turned(self) -> Matrix {
        Matrix { down: self.right, right: self.down }
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
    let (page_a, page_b) = (stride_a as usize, stride_b as usize);
    let (a, b) = (Matrix::new(m, k, transpose_a), Matrix::new(k, n, transpose_b));
    let out_elements = operands[2].elements(size_of::<T>());
    assert!(out_elements >= m * n * batch, "EVAL-1: a product of {m} x {n} x {batch} in {out_elements}");
    if m == 0 || n == 0 || batch == 0 {
        return;
    }
    // SAFETY: this is the only slice of `out`.
    let out = &mut unsafe { operands[2].slice_mut::<T>() }[..m * n * batch];
    if k == 0 {
        return out.fill(T::ZERO);
    }
    let (left, right) = (operands[0].slice::<T>(), operands[1].slice::<T>());
    assert!(left.len() >= a.span(m, k) + page_a * (batch - 1), "EVAL-1: the left factor is too short");
    assert!(right.len() >= b.span(k, n) + page_b * (batch - 1), "EVAL-1: the right factor is too short");
    let factors =
        (Factor { at: left.as_ptr(), of: a, page: page_a }, Factor { at: right.as_ptr(), of: b, page: page_b });
    let product = Product { m, n, k, batch, a: factors.0, b: factors.1, c: Matrix::new(m, n, false) };
    product.write(out, |parts, parallel, part| {
        pool.run(parts, parallel, |tasks| tasks.for_each(part));
    });
}

/// The product of two matrices in column-major order, on the caller's thread.
pub fn product<T: Real>(a: &[T], b: &[T], (m, k, n): (usize, usize, usize)) -> Vec<T> {
    assert!(a.len() == m * k && b.len() == k * n, "MATMUL-2: the factors are as long as their sizes say");
    let mut out = vec![T::ZERO; m * n];
    if out.is_empty() || k == 0 {
        return out;
    }
    let a = Factor { at: a.as_ptr(), of: Matrix::new(m, k, false), page: 0 };
    let b = Factor { at: b.as_ptr(), of: Matrix::new(k, n, false), page: 0 };
    let product = Product { m, n, k, batch: 1, a, b, c: Matrix::new(m, n, false) };
    product.write(&mut out, |parts, _, part| (0..parts).for_each(part));
    out
}

/// A factor in memory.
#[derive(Clone, Copy)]
struct Factor<T> {
    at: *const T,
    of: Matrix,
    /// Elements from one page to the next.
    page: usize,
}

impl<T> Factor<T> {
    /// The address of an element.
    ///
    /// # Safety
    /// The element exists.
    unsafe fn element(&self, page: usize, row: usize, column: usize) -> *const T {
        // SAFETY: the caller's promise.
        unsafe { self.at.add(page * self.page + row * self.of.down + column * self.of.right) }
    }

    fn turned(self) -> Factor<T> {
        Factor { of: self.of.turned(), ..self }
    }
}

/// A product: its sizes, its factors, and how its result lies in memory.
#[derive(Clone, Copy)]
struct Product<T> {
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
    a: Factor<T>,
    b: Factor<T>,
    c: Matrix,
}

// SAFETY: the factors are only read.
unsafe impl<T: Sync> Sync for Product<T> {}

/// The way in which a product is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Packed,
    Streamed,
    Dotted,
}

/// Rows, columns and terms of a part of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    rows: usize,
    columns: usize,
    terms: usize,
}

/// A part of the work: its page, and the first ones and the numbers of its rows, columns and terms.
#[derive(Clone, Copy, Debug)]
struct Part {
    page: usize,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
    term: usize,
    terms: usize,
}

impl<T: Real> Product<T> {
    /// Writes the result. `each` calls a function for every number below a count, perhaps on several threads.
    fn write(self, out: &mut [T], each: impl Fn(usize, bool, &(dyn Fn(usize) + Sync))) {
        // The longer side becomes the rows (the result is then written transposed), so that there is one thin form.
        let thin = self.m.min(self.n) <= DOTTED_MAX;
        let product = if thin && self.n > self.m {
            Product { m: self.n, n: self.m, a: self.b.turned(), b: self.a.turned(), c: self.c.turned(), ..self }
        } else {
            self
        };
        product.write_upright(out, each);
    }

    fn write_upright(self, out: &mut [T], each: impl Fn(usize, bool, &(dyn Fn(usize) + Sync))) {
        let Product { m, n, k, batch, .. } = self;
        let way = self.way();
        let cut = self.cut(way);
        let [down, across, chunks] = [m.div_ceil(cut.rows), n.div_ceil(cut.columns), k.div_ceil(cut.terms)];
        let count = down * across * batch * chunks;
        let parallel = m * n * batch * k >= PARALLEL_MIN && count > 1;
        let mut partial = if chunks > 1 { vec![T::ZERO; out.len() * chunks] } else { Vec::new() };
        let to = Shared(if chunks > 1 { partial.as_mut_ptr() } else { out.as_mut_ptr() });
        let elements = out.len();
        each(count, parallel, &|number| {
            let (place, rest) = (number % (down * across), number / (down * across));
            let (chunk, page) = (rest % chunks, rest / chunks);
            let (row, column, term) = (place % down * cut.rows, place / down * cut.columns, chunk * cut.terms);
            let part = Part {
                page,
                row,
                rows: cut.rows.min(m - row),
                column,
                columns: cut.columns.min(n - column),
                term,
                terms: cut.terms.min(k - term),
            };
            let first = chunk * elements + page * m * n + row * self.c.down + column * self.c.right;
            // SAFETY: the factors and the result hold what the sizes say; parts write elements of their own.
            let job = unsafe { Job { product: &self, part, way, out: to.at().add(first) } };
            dispatch::<T, _>(job);
        });
        if chunks > 1 {
            add_chunks(&partial, out);
        }
    }

    fn way(&self) -> Way {
        let contiguous = self.a.of.down == 1;
        if self.n <= THIN && contiguous && (self.m >= 64 || self.k <= RUN) {
            Way::Streamed
        } else if self.n <= THIN || self.m <= DOTTED_MAX {
            Way::Dotted
        } else {
            Way::Packed
        }
    }

    /// How the work is cut. Chunks of terms are powers of two.
    fn cut(&self, way: Way) -> Cut {
        let (rows, columns) = match way {
            Way::Dotted => return Cut { rows: dotted::LINES, columns: dotted::LINES, terms: dotted::TERMS },
            Way::Streamed => (streamed::rows::<T>(self.n), THIN),
            Way::Packed => (packed::ROWS, packed::COLUMNS),
        };
        let parts = self.m.div_ceil(rows) * self.n.div_ceil(columns) * self.batch;
        if parts >= PARTS_ENOUGH {
            return Cut { rows, columns, terms: self.k };
        }
        // The largest number of chunks, and the smallest number of terms in a chunk.
        let (most, least) = match way {
            Way::Streamed => (16, streamed::ELEMENTS_MIN / self.m.clamp(1, rows)),
            Way::Packed | Way::Dotted => (64, 1 << 13),
        };
        Cut { rows, columns, terms: self.k.div_ceil(most).max(least).max(RUN).next_power_of_two() }
    }
}

/// Adds the sums of the chunks of each element as a tree.
fn add_chunks<T: Real>(partial: &[T], out: &mut [T]) {
    /// Elements that are added at a time.
    const GROUP: usize = 16;
    let elements = out.len();
    let chunks = partial.len() / elements;
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
    let begin = elements - rest.len();
    for (number, group) in groups.iter_mut().enumerate() {
        *group = added(partial, elements, chunks, number * GROUP);
    }
    for (number, element) in rest.iter_mut().enumerate() {
        [*element] = added(partial, elements, chunks, begin + number);
    }
}

/// The sums over all chunks of `LANES` neighbouring elements from `first` on. Each chunk has all `elements`.
fn added<T: Real, const LANES: usize>(partial: &[T], elements: usize, chunks: usize, first: usize) -> [T; LANES] {
    let plus = |x: [T; LANES], y: [T; LANES]| std::array::from_fn(|lane| x[lane].plus(y[lane]));
    let mut tree = Tree::<[T; LANES], 32>::new([T::ZERO; LANES]);
    for chunk in 0..chunks {
        let at = chunk * elements + first;
        tree.add(std::array::from_fn(|lane| partial[at + lane]), plus);
    }
    tree.sum(plus)
}

/// Adds any number of values as a tree, like a binary counter: digit `n` holds the sum of `2^n` values.
struct Tree<V, const LEVELS: usize> {
    sums: [V; LEVELS],
    count: usize,
}

impl<V: Copy, const LEVELS: usize> Tree<V, LEVELS> {
    #[inline(always)]
    fn new(zero: V) -> Tree<V, LEVELS> {
        Tree { sums: [zero; LEVELS], count: 0 }
    }

    #[inline(always)]
    fn add(&mut self, mut value: V, plus: impl Fn(V, V) -> V) {
        let (mut bits, mut level) = (self.count, 0);
        while bits & 1 == 1 {
            value = plus(self.sums[level], value);
            bits >>= 1;
            level += 1;
        }
        self.sums[level] = value;
        self.count += 1;
    }

    /// The sum of all values. There must be at least one.
    #[inline(always)]
    fn sum(&self, plus: impl Fn(V, V) -> V) -> V {
        let mut level = self.count.trailing_zeros() as usize;
        let mut value = self.sums[level];
        loop {
            level += 1;
            if self.count >> level == 0 {
                return value;
            }
            if self.count >> level & 1 == 1 {
                value = plus(self.sums[level], value);
            }
        }
    }
}

/// A part of a product, to be computed with the widest instruction set of the CPU.
struct Job<'a, T> {
    product: &'a Product<T>,
    part: Part,
    way: Way,
    /// The element of the result, or of the partial results, for the part's first row and column.
    out: *mut T,
}

impl<T: Real> Kernel<T> for Job<'_, T> {
    #[inline(always)]
    fn run<L: Lanes<Real = T>>(self) {
        // SAFETY: `write_upright` made the job for a part that exists.
        unsafe {
            match self.way {
                Way::Packed => packed::run::<L>(self.product, self.part, self.out),
                Way::Streamed => streamed::run::<L>(self.product, self.part, self.out),
                Way::Dotted => dotted::run::<L>(self.product, self.part, self.out),
            }
        }
    }
}

/// A pointer that workers share. Each worker writes the parts that it has taken.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn at(&self) -> *mut T {
        self.0
    }
}

// SAFETY: workers write disjoint parts.
unsafe impl<T> Sync for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Element;
    use crate::host_buffer::as_bytes;
    use crate::kernels::matmul::cases::{self, Case};

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

    /// The largest error of a product on the host, divided by the bound.
    fn worst<T: Real + Element + Into<f64>>(
        case: Case,
        kind: &str,
        narrow: fn(f64) -> T,
        eps: f64,
        pool: &Pool,
    ) -> f64 {
        let (a, b) = cases::operands(case, kind, eps / 2.0, |x| narrow(x).into());
        let [x, y] = [&a, &b].map(|v| v.iter().map(|&x| narrow(x)).collect::<Vec<T>>());
        let mut out = vec![narrow(f64::NAN); case.m * case.n * case.batch];
        let operands =
            [HostOperand::read(as_bytes(&x)), HostOperand::read(as_bytes(&y)), HostOperand::write(bytes_mut(&mut out))];
        run(&case.library(T::DTYPE), &operands, pool);
        let got: Vec<f64> = out.iter().map(|&x| x.into()).collect();
        cases::worst(case, &a, &b, &got, eps)
    }

    #[test]
    fn products_of_any_length_and_shape_hold_their_bound() {
        let pool = Pool::new(Some(2)).unwrap();
        for (number, case) in cases::shapes(60_000).into_iter().enumerate() {
            for (_, kind) in cases::kinds(number) {
                let single = worst(case, kind, |x| x as f32, f32::EPSILON as f64, &pool);
                let double = worst(case, kind, |x| x, f64::EPSILON, &pool);
                assert!(single <= 1.0 && double <= 1.0, "{kind}, {case:?}: {single} {double}");
            }
        }
    }

    #[test]
    fn vectors_of_narrower_instruction_sets_hold_the_bound() {
        let pool = Pool::new(Some(1)).unwrap();
        for widest in [None, Some(lanes::Width::Avx2)] {
            lanes::WIDEST.set(widest);
            for (number, case) in cases::shapes(4_000).into_iter().enumerate() {
                for (_, kind) in cases::kinds(number) {
                    let single = worst(case, kind, |x| x as f32, f32::EPSILON as f64, &pool);
                    let double = worst(case, kind, |x| x, f64::EPSILON, &pool);
                    assert!(single <= 1.0 && double <= 1.0, "{widest:?}: {kind}, {case:?}: {single} {double}");
                }
            }
        }
    }

    #[test]
    fn a_long_sum_of_ones_counts_them() {
        let (ones, mut out) = (vec![1.0f32; 40_000_000], [0.0f32; 1]);
        let case = Case { m: 1, n: 1, k: ones.len(), batch: 1, transpose_a: false, transpose_b: false };
        let operands = [
            HostOperand::read(as_bytes(&ones)),
            HostOperand::read(as_bytes(&ones)),
            HostOperand::write(bytes_mut(&mut out)),
        ];
        run(&case.library(DType::F32), &operands, &Pool::new(Some(2)).unwrap());
        assert_eq!(out, [40_000_000.0]);
    }
}
