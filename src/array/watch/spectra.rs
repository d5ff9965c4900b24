//! Derivatives of eigenvalues and eigenvectors of symmetric matrices, and of singular values and vectors.
//!
//! Must hold: derivatives of vectors divide by differences of the values. A quotient of zero is zero, whatever the
//! divisor is. So values have derivatives even if they are equal, as long as no cotangent reaches their vectors.

use super::linear::Algebra;
use super::pull::Steps;
use super::step::Step;
use crate::array::handle::Array;
use crate::array::linear::pages_of;
use crate::error::Result;
use crate::graph::{ElementOp, LinearOp, Meta, Nan, Op, ReduceOp, Shape};
use std::ops::Range;

impl Steps {
    pub(super) fn symmetric<'a>(&'a self, step: &'a Step, vectors: bool) -> Result<Symmetric<'a>> {
        let n = self.matrix(step)?.shape.dim(0);
        let (on, packed) = self.with_vectors(step, vectors, LinearOp::Eigh { vectors: true })?;
        Ok(Symmetric {
            values: on.part(&packed, 0..n, 0..1)?,
            vectors: on.part(&packed, 0..n, 1..n + 1)?,
            on,
            n,
            yields_vectors: vectors,
        })
    }

    pub(super) fn singular<'a>(&'a self, step: &'a Step, vectors: bool) -> Result<Singular<'a>> {
        let own = self.matrix(step)?;
        let (m, n) = (own.shape.dim(0), own.shape.dim(1));
        let k = m.min(n);
        let (on, packed) = self.with_vectors(step, vectors, LinearOp::Svd { vectors: true })?;
        let parts = Packed { m, n, k };
        let [left, values, right] = parts.split(&on, &packed)?;
        Ok(Singular { on, parts, left, values, right, yields_vectors: vectors })
    }

    /// The value of an op with its vectors, which are computed here if the step did not compute them.
    fn with_vectors<'a>(&'a self, step: &'a Step, has: bool, op: LinearOp) -> Result<(Algebra<'a>, Array)> {
        let on = Algebra(self.recorder(step));
        if has {
            return Ok((on, step.value()?.clone()));
        }
        let matrix = self.read(step, 0)?;
        let own = matrix.meta()?;
        let (rows, columns) = op.extents(own.shape.dim(0), own.shape.dim(1), 0);
        let meta = Meta { dtype: own.dtype, shape: pages_of(&own.shape, rows, columns)? };
        let packed = on.op(Op::Linear(op), &[matrix], meta)?;
        Ok((on, packed))
    }
}

impl Algebra<'_> {
    /// A quotient, which is 0 where the dividend is 0.
    fn quotient(&self, above: &Array, below: &Array) -> Result<Array> {
        let is_zero = self.binary(ElementOp::Eq, above, 0.0)?;
        self.select(&is_zero, 0.0, &self.div(above, below)?)
    }

    /// A mask of the diagonals of `n` by `n` matrices.
    fn on_diagonal(&self, n: usize) -> Result<Array> {
        let shape = Shape::new(&[n, n])?;
        let (rows, columns) = (self.positions_along(&shape, 0b01)?, self.positions_along(&shape, 0b10)?);
        self.binary(ElementOp::Eq, &rows, &columns)
    }

    /// Quotients beside the diagonal, and `diagonal`, a column, on it.
    fn quotients_beside(&self, above: &Array, gaps: &Array, n: usize, diagonal: Option<&Array>) -> Result<Array> {
        let (at, beside) = (self.on_diagonal(n)?, self.quotient(above, gaps)?);
        match diagonal {
            None => self.select(&at, 0.0, &beside),
            Some(diagonal) => self.select(&at, diagonal, &beside),
        }
    }

    /// The diagonals of the products of the transposed `a` with `b`, as columns.
    fn dots(&self, a: &Array, b: &Array) -> Result<Array> {
        self.transpose(&self.reduce(&self.mul(a, b)?, ReduceOp::Sum, 0b01, Nan::Include)?)
    }
}

/// Eigenvalues of symmetric matrices, a column, and their vectors.
pub(super) struct Symmetric<'a> {
    on: Algebra<'a>,
    values: Array,
    vectors: Array,
    n: usize,
    yields_vectors: bool,
}

impl Symmetric<'_> {
    /// In row `i` and column `j`, the value `j` minus the value `i`.
    fn gaps(&self) -> Result<Array> {
        self.on.sub(&self.on.transpose(&self.values)?, &self.values)
    }

    pub fn pull(&self, above: &Array) -> Result<Array> {
        let Symmetric { on, vectors, n, .. } = self;
        let turned = on.transpose(vectors)?;
        let by_values = on.part(above, 0..*n, 0..1)?;
        if !self.yields_vectors {
            return on.by_lower(&on.matmul(&on.mul(vectors, &on.transpose(&by_values)?)?, &turned)?);
        }
        let by_vectors = on.matmul(&turned, &on.part(above, 0..*n, 1..n + 1)?)?;
        let inner = on.quotients_beside(&by_vectors, &self.gaps()?, *n, Some(&by_values))?;
        on.by_lower(&on.matmul(&on.matmul(vectors, &inner)?, &turned)?)
    }

    pub fn push(&self, tangent: &Array) -> Result<Array> {
        let Symmetric { on, vectors, n, .. } = self;
        let moved = on.matmul(&on.mirrored(tangent)?, vectors)?;
        let of_values = on.dots(vectors, &moved)?;
        if !self.yields_vectors {
            return Ok(of_values);
        }
        let inner = on.matmul(&on.transpose(vectors)?, &moved)?;
        let turns = on.quotients_beside(&inner, &self.gaps()?, *n, None)?;
        on.join(1, &[&of_values, &on.matmul(vectors, &turns)?])
    }
}

/// The layout of values and vectors of `m` by `n` matrices in one column: `k` values, the left vectors, the right
/// vectors.
struct Packed {
    m: usize,
    n: usize,
    k: usize,
}

impl Packed {
    /// The left vectors, the values, the right vectors.
    fn split(&self, on: &Algebra<'_>, packed: &Array) -> Result<[Array; 3]> {
        let &Packed { m, n, k } = self;
        let pages = packed.shape()?;
        let matrix =
            |rows: Range<usize>, height: usize| on.reshape(&on.part(packed, rows, 0..1)?, pages_of(pages, height, k)?);
        Ok([matrix(k..k + m * k, m)?, on.part(packed, 0..k, 0..1)?, matrix(k + m * k..k + m * k + n * k, n)?])
    }

    fn join(&self, on: &Algebra<'_>, left: &Array, values: &Array, right: &Array) -> Result<Array> {
        let column = |matrix: &Array, height: usize| on.reshape(matrix, pages_of(matrix.shape()?, height * self.k, 1)?);
        on.join(0, &[values, &column(left, self.m)?, &column(right, self.n)?])
    }
}

/// Singular values, a column, and their vectors.
pub(super) struct Singular<'a> {
    on: Algebra<'a>,
    parts: Packed,
    left: Array,
    values: Array,
    right: Array,
    yields_vectors: bool,
}

impl Singular<'_> {
    /// In row `i` and column `j`, the square of value `j` minus that of value `i`.
    fn gaps(&self) -> Result<Array> {
        let (on, row) = (&self.on, self.on.transpose(&self.values)?);
        on.mul(&on.sub(&row, &self.values)?, &on.add(&row, &self.values)?)
    }

    /// The part of `columns` that is orthogonal to `vectors`, divided by the singular values. `inner` is the product of
    /// the transposed vectors with `columns`.
    fn beside(&self, columns: &Array, vectors: &Array, inner: &Array) -> Result<Array> {
        let on = &self.on;
        let rest = on.sub(columns, &on.matmul(vectors, inner)?)?;
        on.quotient(&rest, &on.transpose(&self.values)?)
    }

    pub fn pull(&self, above: &Array) -> Result<Array> {
        let Singular { on, parts, left, values, right, .. } = self;
        let Packed { m, n, k } = *parts;
        let (row, right_turned) = (on.transpose(values)?, on.transpose(right)?);
        if !self.yields_vectors {
            return on.matmul(&on.mul(left, &on.transpose(above)?)?, &right_turned);
        }
        let [by_left, by_values, by_right] = parts.split(on, above)?;
        let gaps = self.gaps()?;
        let of_left = on.matmul(&on.transpose(left)?, &by_left)?;
        let of_right = on.matmul(&on.transpose(right)?, &by_right)?;
        let symmetric = |inner: &Array| {
            let turns = on.quotients_beside(inner, &gaps, k, None)?;
            on.add(&turns, &on.transpose(&turns)?)
        };
        let turns = on.add(&on.mul(&symmetric(&of_left)?, &row)?, &on.mul(values, &symmetric(&of_right)?)?)?;
        let inner = on.select(&on.on_diagonal(k)?, &by_values, &turns)?;
        let mut sum = on.matmul(&on.matmul(left, &inner)?, &right_turned)?;
        if m > k {
            let rest = self.beside(&by_left, left, &of_left)?;
            sum = on.add(&sum, &on.matmul(&rest, &right_turned)?)?;
        }
        if n > k {
            let rest = self.beside(&by_right, right, &of_right)?;
            sum = on.add(&sum, &on.matmul(left, &on.transpose(&rest)?)?)?;
        }
        Ok(sum)
    }

    pub fn push(&self, tangent: &Array) -> Result<Array> {
        let Singular { on, parts, left, values, right, .. } = self;
        let Packed { m, n, k } = *parts;
        let moved = on.matmul(tangent, right)?;
        let of_values = on.dots(left, &moved)?;
        if !self.yields_vectors {
            return Ok(of_values);
        }
        let (row, gaps) = (on.transpose(values)?, self.gaps()?);
        let inner = on.matmul(&on.transpose(left)?, &moved)?;
        let turned = on.transpose(&inner)?;
        let turns = |a: Array, b: Array| on.quotients_beside(&on.add(&a, &b)?, &gaps, k, None);
        let left_turns = turns(on.mul(&inner, &row)?, on.mul(values, &turned)?)?;
        let right_turns = turns(on.mul(values, &inner)?, on.mul(&turned, &row)?)?;
        let (mut of_left, mut of_right) = (on.matmul(left, &left_turns)?, on.matmul(right, &right_turns)?);
        if m > k {
            of_left = on.add(&of_left, &self.beside(&moved, left, &inner)?)?;
        }
        if n > k {
            let moved = on.matmul(&on.transpose(tangent)?, left)?;
            of_right = on.add(&of_right, &self.beside(&moved, right, &turned)?)?;
        }
        parts.join(on, &of_left, &of_values, &of_right)
    }
}
