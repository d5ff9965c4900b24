//! Derivatives of factors with exchanged columns: those of the factors of the matrix whose columns are in this order.

use super::linear::{Algebra, Reflections};
use super::pull::Steps;
use super::step::Step;
use crate::array::handle::Array;
use crate::array::linear::pages_of;
use crate::error::Result;
use crate::graph::{DType, Meta, Op};

impl Steps {
    /// The factors with exchanged columns that a step computed.
    pub(super) fn pivoted<'a>(&'a self, step: &'a Step) -> Result<Pivoted<'a>> {
        let matrix = self.matrix(step)?;
        let (m, n) = (matrix.shape.dim(0), matrix.shape.dim(1));
        Ok(Pivoted { on: Algebra(self.recorder(step)), packed: step.value()?, matrix, m, n, k: m.min(n) })
    }
}

/// The factors of an `m` by `n` matrix with exchanged columns, as `LinearOp::QrPivoted` lays them out.
pub(super) struct Pivoted<'a> {
    on: Algebra<'a>,
    packed: &'a Array,
    matrix: &'a Meta,
    m: usize,
    n: usize,
    k: usize,
}

impl Pivoted<'_> {
    /// Some rows of a column for each page, as a matrix.
    fn unpacked(&self, array: &Array, first: usize, [rows, columns]: [usize; 2]) -> Result<Array> {
        let part = self.on.part(array, first..first + rows * columns, 0..1)?;
        self.on.reshape(&part, pages_of(&self.matrix.shape, rows, columns)?)
    }

    /// Both factors of a value or of its cotangent, side by side as `LinearOp::Qr` lays them out.
    fn beside(&self, array: &Array) -> Result<Array> {
        let Pivoted { on, m, n, k, .. } = self;
        let q = self.unpacked(array, 0, [*m, *k])?;
        let upper = on.padded(&self.unpacked(array, m * k, [*k, *n])?, 0, 0, m - k)?;
        on.join(1, &[&q, &upper])
    }

    /// For each column of the factors' product, the number of the matrix's column that was moved there: a row.
    fn columns(&self) -> Result<Array> {
        let Pivoted { m, n, k, .. } = self;
        self.on.cast(&self.unpacked(self.packed, m * k + k * n, [1, *n])?, DType::U32)
    }

    /// The columns of a matrix in the order of `index`, a row.
    fn ordered(&self, matrix: &Array, index: &Array) -> Result<Array> {
        let meta = matrix.meta()?.clone();
        self.on.op(Op::TakeAlong { dim: 1 }, &[matrix, &self.on.expand(index, &meta.shape)?], meta)
    }

    /// The derivatives by the matrix, from those by the value.
    pub fn pull(&self, above: &Array) -> Result<Array> {
        let Pivoted { on, n, .. } = self;
        let by_ordered = self.factors(&self.beside(self.packed)?).pull(&self.beside(above)?)?;
        if *n == 1 {
            return Ok(by_ordered);
        }
        // The new place of each column of the matrix.
        let columns = self.columns()?;
        let places = on.op(Op::ArgSort { dim: 1, descending: false }, &[&columns], columns.meta()?.clone())?;
        self.ordered(&by_ordered, &places)
    }

    /// The tangent of the value, from that of the matrix.
    pub fn push(&self, tangent: &Array) -> Result<Array> {
        let Pivoted { on, m, n, k, .. } = self;
        let moved = self.ordered(tangent, &self.columns()?)?;
        let factors = self.factors(&self.beside(self.packed)?).push(&moved)?;
        let column = |columns: std::ops::Range<usize>, rows: usize| -> Result<Array> {
            let count = columns.len() * rows;
            on.reshape(&on.part(&factors, 0..rows, columns)?, pages_of(&self.matrix.shape, count, 1)?)
        };
        let both = on.join(0, &[&column(0..*k, *m)?, &column(*k..k + n, *k)?])?;
        // The order of the columns is constant.
        on.padded(&both, 0, 0, *n)
    }

    /// The factors of the matrix with exchanged columns.
    fn factors<'b>(&'b self, packed: &'b Array) -> Reflections<'b> {
        Reflections { on: Algebra(self.on.0), packed, m: self.m, n: self.n, k: self.k }
    }
}
