//! Derivatives of triangular systems and of factorisations, page by page. Each follows from the derivative of the
//! equation of the factors; products with inverses are computed as triangular systems.
//!
//! Must hold: elements of the matrix that an op does not read have a derivative of zero, and constant elements of its
//! value (zeros beside a triangle, the order of rows) pass no derivative on.

use super::pull::{Shares, Steps};
use super::push::{Tangents, tangent_of};
use super::reductions::not_written;
use super::step::{Source, Step};
use crate::array::handle::Array;
use crate::array::linear::part;
use crate::array::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, ElementOp, LinearOp, Meta, Op, Shape, Triangle};
use std::ops::{Deref, Range};

const UNIT: Triangle = Triangle::LOWER.with_unit_diagonal();

impl Steps {
    /// The cotangents of the arguments of an op of linear algebra.
    pub fn linear_shares(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let linear = op.as_linear().ok_or_else(|| not_written(op.name()))?;
        let on = Algebra(self.recorder(step));
        let by_matrix = match linear {
            LinearOp::SolveTriangular(triangle) => return self.solution_shares(step, triangle, above),
            LinearOp::Recurrence { order } => return self.recurrence_shares(step, usize::from(order), above),
            LinearOp::Cholesky => on.pull_cholesky(step.value()?, above)?,
            LinearOp::Lu => self.elimination(step)?.pull(above)?,
            LinearOp::Qr { full } => self.reflections(step, full)?.pull(above)?,
            LinearOp::QrPivoted => self.pivoted(step)?.pull(above)?,
            LinearOp::Eigh { vectors } => self.symmetric(step, vectors)?.pull(above)?,
            LinearOp::Svd { vectors } => self.singular(step, vectors)?.pull(above)?,
            LinearOp::Eig => return Err(step.undefined()),
        };
        Ok(Shares::from_iter([(0, by_matrix)]))
    }

    /// The tangent of the value of an op of linear algebra.
    pub fn linear_tangent(&self, step: &Step, op: &Op, tangents: &Tangents) -> Result<Option<Array>> {
        let linear = op.as_linear().ok_or_else(|| not_written(op.name()))?;
        let on = Algebra(self.recorder(step));
        let tangent = step.args.first().and_then(|argument| tangent_of(argument, tangents));
        let moved = |push: &dyn Fn(&Array) -> Result<Array>| tangent.map(push).transpose();
        match linear {
            LinearOp::SolveTriangular(triangle) => self.solution_tangent(step, triangle, tangents),
            LinearOp::Recurrence { order } => self.recurrence_tangent(step, usize::from(order), tangents),
            LinearOp::Cholesky => moved(&|tangent| on.push_cholesky(step.value()?, tangent)),
            LinearOp::Lu => moved(&|tangent| self.elimination(step)?.push(tangent)),
            LinearOp::Qr { full } => moved(&|tangent| self.reflections(step, full)?.push(tangent)),
            LinearOp::QrPivoted => moved(&|tangent| self.pivoted(step)?.push(tangent)),
            LinearOp::Eigh { vectors } => moved(&|tangent| self.symmetric(step, vectors)?.push(tangent)),
            LinearOp::Svd { vectors } => moved(&|tangent| self.singular(step, vectors)?.push(tangent)),
            LinearOp::Eig => Err(step.undefined()),
        }
    }

    /// For the right sides, the solution of the transposed system. For the matrix, the negative product of that with
    /// the solution, of which only the triangle that was read is kept.
    fn solution_shares(&self, step: &Step, triangle: Triangle, above: &Array) -> Result<Shares> {
        let on = Algebra(self.recorder(step));
        let a = self.read(step, 0)?;
        let by_right = on.solved(a, above, triangle.transposed())?;
        let mut shares = Shares::new();
        if let Source::Step(_) = step.args[0].source {
            let (own, value) = (&a.meta()?.shape, step.value()?);
            let n = own.dim(0);
            // If one matrix serves all pages, their right sides are placed side by side.
            let beside = own.rank() == 2;
            let flat = |x: &Array| match beside {
                true => on.reshape(x, Shape::new(&[n, x.elements()? / n])?),
                false => Ok(x.clone()),
            };
            let (left, right) = if triangle.transpose { (value, &by_right) } else { (&by_right, value) };
            let product = on.matmul(&flat(left)?, &on.transpose(&flat(right)?)?)?;
            let kept = on.read_triangle(&on.apply(ElementOp::Neg, &mut [(&product).into()])?, triangle)?;
            shares.push((0, on.reshape(&on.padded(&kept, 1, 0, own.dim(1) - n)?, own.clone())?));
        }
        if let Source::Step(_) = step.args[1].source {
            shares.push((1, by_right));
        }
        Ok(shares)
    }

    fn solution_tangent(&self, step: &Step, triangle: Triangle, tangents: &Tangents) -> Result<Option<Array>> {
        let on = Algebra(self.recorder(step));
        let of = |slot: usize| tangent_of(&step.args[slot], tangents);
        let mut right = of(1).cloned();
        if let Some(tangent) = of(0) {
            let n = step.meta.shape.dim(0);
            let read = on.read_triangle(&on.part(tangent, 0..n, 0..n)?, triangle)?;
            let matrix = if triangle.transpose { on.transpose(&read)? } else { read };
            let product = on.matmul(&matrix, step.value()?)?;
            right = Some(match right {
                None => on.apply(ElementOp::Neg, &mut [product.into()])?,
                Some(right) => on.sub(&right, &product)?,
            });
        }
        right.map(|right| on.solved(self.read(step, 0)?, &right, triangle)).transpose()
    }

    /// The dtype and shape of the matrix that an op of one argument reads.
    pub fn matrix<'a>(&'a self, step: &'a Step) -> Result<&'a Meta> {
        let meta = step.args.first().and_then(|argument| argument.meta.as_ref());
        meta.ok_or_else(|| Error::new(ErrorKind::Internal, "GRAD-1: a factorisation has a matrix"))
    }

    fn elimination<'a>(&'a self, step: &'a Step) -> Result<Elimination<'a>> {
        let shape = &self.matrix(step)?.shape;
        let (m, n) = (shape.dim(0), shape.dim(1));
        Ok(Elimination { on: Algebra(self.recorder(step)), packed: step.value()?, m, n, k: m.min(n) })
    }

    fn reflections<'a>(&'a self, step: &'a Step, full: bool) -> Result<Reflections<'a>> {
        let shape = &self.matrix(step)?.shape;
        let (m, n) = (shape.dim(0), shape.dim(1));
        if full && m > n {
            let message = "the matrix does not determine all columns of the square orthogonal factor; qr() has those that \
                           it determines";
            return Err(Error::new(ErrorKind::NoDerivative, message));
        }
        Ok(Reflections { on: Algebra(self.recorder(step)), packed: step.value()?, m, n, k: m.min(n) })
    }
}

/// Ops on matrices, page by page, with which rules are written.
pub(super) struct Algebra<'a>(pub Recorder<'a>);

impl<'a> Deref for Algebra<'a> {
    type Target = Recorder<'a>;

    fn deref(&self) -> &Recorder<'a> {
        &self.0
    }
}

impl Algebra<'_> {
    /// A range of rows and columns.
    pub fn part(&self, array: &Array, rows: Range<usize>, columns: Range<usize>) -> Result<Array> {
        part(self, array, rows, columns)
    }

    /// The lower triangle up to a diagonal.
    fn lower(&self, array: &Array, diagonal: i64) -> Result<Array> {
        self.op(Op::Triangle { upper: false, diagonal }, &[array], array.meta()?.clone())
    }

    /// The upper triangle from a diagonal on.
    fn upper(&self, array: &Array, diagonal: i64) -> Result<Array> {
        self.op(Op::Triangle { upper: true, diagonal }, &[array], array.meta()?.clone())
    }

    /// The part of a matrix that a triangular system reads.
    fn read_triangle(&self, array: &Array, triangle: Triangle) -> Result<Array> {
        let off = i64::from(triangle.unit);
        if triangle.upper { self.upper(array, off) } else { self.lower(array, -off) }
    }

    /// The lower triangle with half of its diagonal.
    fn half_lower(&self, array: &Array) -> Result<Array> {
        self.scaled(&self.add(&self.lower(array, 0)?, &self.lower(array, -1)?)?, 0.5)
    }

    /// Turns the derivatives by the elements of a symmetric matrix into those by its lower triangle, whose elements
    /// below the diagonal stand for two.
    pub fn by_lower(&self, symmetric: &Array) -> Result<Array> {
        self.half_lower(&self.add(symmetric, &self.transpose(symmetric)?)?)
    }

    /// The symmetric matrix with this lower triangle.
    pub fn mirrored(&self, array: &Array) -> Result<Array> {
        self.add(&self.lower(array, 0)?, &self.transpose(&self.lower(array, -1)?)?)
    }

    /// The solution of a triangular system.
    fn solved(&self, a: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
        self.op(Op::Linear(LinearOp::SolveTriangular(triangle)), &[a, b], b.meta()?.clone())
    }

    /// `b` times the inverse of a triangle of `a`.
    fn divided(&self, b: &Array, a: &Array, triangle: Triangle) -> Result<Array> {
        self.transpose(&self.solved(a, &self.transpose(b)?, triangle.transposed())?)
    }

    fn pull_cholesky(&self, l: &Array, above: &Array) -> Result<Array> {
        let inner = self.half_lower(&self.matmul(&self.transpose(l)?, &self.lower(above, 0)?)?)?;
        let half = self.solved(l, &inner, Triangle::LOWER.transposed())?;
        self.by_lower(&self.divided(&half, l, Triangle::LOWER)?)
    }

    fn push_cholesky(&self, l: &Array, tangent: &Array) -> Result<Array> {
        let half = self.solved(l, &self.mirrored(tangent)?, Triangle::LOWER)?;
        let inner = self.divided(&half, l, Triangle::LOWER.transposed())?;
        self.matmul(l, &self.half_lower(&inner)?)
    }
}

/// The factors of an elimination of an `m` by `n` matrix. Their first `k` rows and columns are the factors of a square
/// matrix. For the rows below or the columns beside these, one of the factors is known.
struct Elimination<'a> {
    on: Algebra<'a>,
    packed: &'a Array,
    m: usize,
    n: usize,
    k: usize,
}

impl Elimination<'_> {
    /// The first rows, whose triangles systems read; the lower factor without its diagonal; the upper factor.
    fn square(&self) -> Result<[Array; 3]> {
        let Elimination { on, packed, k, .. } = self;
        let square = on.part(packed, 0..*k, 0..*k)?;
        let (lower, upper) = (on.lower(&square, -1)?, on.upper(&square, 0)?);
        Ok([square, lower, upper])
    }

    /// For each row of the factors, the number of the matrix's row that was moved there.
    fn rows(&self) -> Result<Array> {
        let column = self.on.part(self.packed, 0..self.m, self.n..self.n + 1)?;
        self.on.cast(&column, DType::U32)
    }

    /// The rows of a matrix in the order of `index`, a column.
    fn ordered(&self, matrix: &Array, index: &Array) -> Result<Array> {
        let meta = matrix.meta()?.clone();
        let index = self.on.expand(index, &meta.shape)?;
        self.on.op(Op::TakeAlong { dim: 0 }, &[matrix, &index], meta)
    }

    fn pull(&self, above: &Array) -> Result<Array> {
        let Elimination { on, packed, m, n, k } = self;
        let (m, n, k) = (*m, *n, *k);
        let [square, lower, upper] = self.square()?;
        let first = on.part(above, 0..k, 0..k)?;
        let (mut by_lower, mut by_upper) = (on.lower(&first, -1)?, on.upper(&first, 0)?);
        let mut rest = None;
        if m > k {
            let below = on.divided(&on.part(above, k..m, 0..k)?, &square, Triangle::UPPER.transposed())?;
            let product = on.matmul(&on.transpose(&on.part(packed, k..m, 0..k)?)?, &below)?;
            by_upper = on.sub(&by_upper, &on.upper(&product, 0)?)?;
            rest = Some((0, below));
        } else if n > k {
            let beside = on.solved(&square, &on.part(above, 0..k, k..n)?, UNIT.transposed())?;
            let product = on.matmul(&beside, &on.transpose(&on.part(packed, 0..k, k..n)?)?)?;
            by_lower = on.sub(&by_lower, &on.lower(&product, -1)?)?;
            rest = Some((1, beside));
        }
        let of_lower = on.add(&on.matmul(&on.transpose(&lower)?, &by_lower)?, &by_lower)?;
        let of_upper = on.matmul(&by_upper, &on.transpose(&upper)?)?;
        let inner = on.add(&on.lower(&of_lower, -1)?, &on.upper(&of_upper, 0)?)?;
        let half = on.solved(&square, &inner, UNIT.transposed())?;
        let mut by_rows = on.divided(&half, &square, Triangle::UPPER.transposed())?;
        if let Some((dim, rest)) = rest {
            by_rows = on.join(dim, &[&by_rows, &rest])?;
        }
        if m == 1 {
            return Ok(by_rows);
        }
        // The new place of each row of the matrix.
        let rows = self.rows()?;
        let places = on.op(Op::ArgSort { dim: 0, descending: false }, &[&rows], rows.meta()?.clone())?;
        self.ordered(&by_rows, &places)
    }

    fn push(&self, tangent: &Array) -> Result<Array> {
        let Elimination { on, packed, m, n, k } = self;
        let (m, n, k) = (*m, *n, *k);
        let [square, lower, upper] = self.square()?;
        let moved = self.ordered(tangent, &self.rows()?)?;
        let half = on.solved(&square, &on.part(&moved, 0..k, 0..k)?, UNIT)?;
        let inner = on.divided(&half, &square, Triangle::UPPER)?;
        let strict = on.lower(&inner, -1)?;
        let of_lower = on.add(&on.matmul(&lower, &strict)?, &strict)?;
        let of_upper = on.matmul(&on.upper(&inner, 0)?, &upper)?;
        let mut factors = on.add(&of_lower, &of_upper)?;
        if m > k {
            let product = on.matmul(&on.part(packed, k..m, 0..k)?, &of_upper)?;
            let rest = on.sub(&on.part(&moved, k..m, 0..k)?, &product)?;
            factors = on.join(0, &[&factors, &on.divided(&rest, &square, Triangle::UPPER)?])?;
        } else if n > k {
            let product = on.matmul(&of_lower, &on.part(packed, 0..k, k..n)?)?;
            let rest = on.sub(&on.part(&moved, 0..k, k..n)?, &product)?;
            factors = on.join(1, &[&factors, &on.solved(&square, &rest, UNIT)?])?;
        }
        on.padded(&factors, 1, 0, 2)
    }
}

/// An orthogonal factor, `m` by `k`, and an upper factor, `k` by `n`, side by side. The first `k` columns of the matrix
/// determine the orthogonal factor.
pub(super) struct Reflections<'a> {
    pub on: Algebra<'a>,
    pub packed: &'a Array,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl Reflections<'_> {
    /// The orthogonal factor, and the square part of the upper one.
    fn square(&self) -> Result<[Array; 2]> {
        let Reflections { on, packed, m, k, .. } = self;
        Ok([on.part(packed, 0..*m, 0..*k)?, on.part(packed, 0..*k, *k..2 * k)?])
    }

    pub fn pull(&self, above: &Array) -> Result<Array> {
        let Reflections { on, packed, m, n, k } = self;
        let (m, n, k) = (*m, *n, *k);
        let [q, upper] = self.square()?;
        let mut by_q = on.part(above, 0..m, 0..k)?;
        let by_upper = on.upper(&on.part(above, 0..k, k..2 * k)?, 0)?;
        let mut beside = None;
        if n > k {
            let by_rest = on.part(above, 0..k, 2 * k..k + n)?;
            let rest = on.part(packed, 0..k, 2 * k..k + n)?;
            by_q = on.add(&by_q, &on.matmul(&q, &on.matmul(&rest, &on.transpose(&by_rest)?)?)?)?;
            beside = Some(on.matmul(&q, &by_rest)?);
        }
        let inner = on.sub(&on.matmul(&upper, &on.transpose(&by_upper)?)?, &on.matmul(&on.transpose(&by_q)?, &q)?)?;
        let sum = on.add(&by_q, &on.matmul(&q, &on.mirrored(&inner)?)?)?;
        let first = on.divided(&sum, &upper, Triangle::UPPER.transposed())?;
        match beside {
            None => Ok(first),
            Some(beside) => on.join(1, &[&first, &beside]),
        }
    }

    pub fn push(&self, tangent: &Array) -> Result<Array> {
        let Reflections { on, packed, m, n, k } = self;
        let (m, n, k) = (*m, *n, *k);
        let [q, upper] = self.square()?;
        let half = on.divided(&on.part(tangent, 0..m, 0..k)?, &upper, Triangle::UPPER)?;
        let inner = on.matmul(&on.transpose(&q)?, &half)?;
        // The part that rotates no column, and therefore belongs to the upper factor.
        let kept = on.add(&on.upper(&inner, 0)?, &on.transpose(&on.lower(&inner, -1)?)?)?;
        let of_q = on.sub(&half, &on.matmul(&q, &kept)?)?;
        let mut of_upper = on.matmul(&kept, &upper)?;
        if n > k {
            let rest = on.matmul(&q, &on.part(packed, 0..k, 2 * k..k + n)?)?;
            let moved = on.matmul(&on.transpose(&q)?, &on.part(tangent, 0..m, k..n)?)?;
            let beside = on.add(&moved, &on.matmul(&on.transpose(&of_q)?, &rest)?)?;
            of_upper = on.join(1, &[&of_upper, &beside])?;
        }
        on.join(1, &[&of_q, &on.padded(&of_upper, 0, 0, m - k)?])
    }
}
