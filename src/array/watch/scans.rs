//! Derivatives of scans, and sums over the elements of a line that share a label.

use super::reductions::Folded;
use crate::array::handle::Array;
use crate::array::runs::combined;
use crate::error::Result;
use crate::graph::{DType, ElementOp, Nan, Op, ScanOp};

/// A scan of an array.
pub(super) struct Scan<'a> {
    pub fold: Folded<'a>,
    pub op: ScanOp,
    pub dim: usize,
    pub reverse: bool,
}

impl Scan<'_> {
    /// The cotangent of the operand.
    pub fn pull(&self, above: &Array) -> Result<Array> {
        let r = &self.fold.recorder;
        match self.op {
            ScanOp::Sum => {
                let sums = r.scan(above, ScanOp::Sum, self.dim, !self.reverse)?;
                self.fold.where_counted(&sums)
            }
            ScanOp::Prod => {
                let factors = self.factors()?;
                // Before the first zero of a line, the share of an element is the sum of `above` times the products
                // that contain it, divided by the element.
                let passing = r.mul(above, self.fold.value()?)?;
                let shares = r.scan(&passing, ScanOp::Sum, self.dim, !self.reverse)?;
                let shares = r.div(&shares, &factors.operand)?;
                let passing = r.mul(above, &factors.products)?;
                let at_zero = r.scan(&passing, ScanOp::Sum, self.dim, !self.reverse)?;
                let at_zero = r.select(&factors.is_first_zero, &at_zero, 0.0)?;
                self.fold.where_counted(&r.select(&factors.is_before_zero, &shares, &at_zero)?)
            }
            ScanOp::Min | ScanOp::Max => {
                let records = self.records()?;
                let sums = combined(r, ElementOp::Add, above, &records.latest, self.dim, !self.reverse)?;
                r.select(&records.is_record, &sums, 0.0)
            }
        }
    }

    /// The tangent of the value.
    pub fn push(&self, tangent: &Array) -> Result<Array> {
        let r = &self.fold.recorder;
        match self.op {
            ScanOp::Sum => r.scan(&self.fold.where_counted(tangent)?, ScanOp::Sum, self.dim, self.reverse),
            ScanOp::Prod => {
                let factors = self.factors()?;
                let tangent = self.fold.where_counted(tangent)?;
                let rates = r.div(&tangent, &factors.operand)?;
                let rates = r.select(&factors.is_before_zero, &rates, 0.0)?;
                let rates = r.scan(&rates, ScanOp::Sum, self.dim, self.reverse)?;
                let before = r.mul(self.fold.value()?, &rates)?;
                // From the first zero on, only the tangent of that zero changes the products.
                let zero = r.select(&factors.is_first_zero, &tangent, 0.0)?;
                let zero = r.scan(&zero, ScanOp::Sum, self.dim, self.reverse)?;
                let behind = r.mul(&factors.products, &zero)?;
                r.select(&factors.is_before_zero, &before, &behind)
            }
            ScanOp::Min | ScanOp::Max => {
                let mut index = self.records()?.latest;
                if self.reverse {
                    let last = self.fold.meta.shape.dim(self.dim) as i64 - 1;
                    index = r.sub(last, &index)?;
                }
                r.op(Op::TakeAlong { dim: self.dim as u8 }, &[tangent, &index], self.fold.meta.clone())
            }
        }
    }

    fn factors(&self) -> Result<Factors> {
        let r = &self.fold.recorder;
        let operand = self.fold.without_nan(1.0)?;
        let is_zero = r.binary(ElementOp::Eq, &operand, 0.0)?;
        let zeros = r.scan(&r.cast(&is_zero, DType::U32)?, ScanOp::Sum, self.dim, self.reverse)?;
        let is_first = r.binary(ElementOp::Eq, &zeros, 1i64)?;
        let is_first_zero = r.binary(ElementOp::And, &is_first, &is_zero)?;
        let is_before_zero = r.binary(ElementOp::Eq, &zeros, 0i64)?;
        let others = r.select(&is_first_zero, 1.0, &operand)?;
        let products = r.scan(&others, ScanOp::Prod, self.dim, self.reverse)?;
        Ok(Factors { operand, is_before_zero, is_first_zero, products })
    }

    /// Where the running extreme changes, and the place of the latest change, which is the first of equal elements.
    fn records(&self) -> Result<Records> {
        let r = &self.fold.recorder;
        let shape = &self.fold.meta.shape;
        let (operand, value, extent) = (self.fold.operand()?, self.fold.value()?, shape.dim(self.dim));
        // The running extreme just before each element. The first element is always a record.
        let (start, from) = if self.reverse { (extent - 1, 1) } else { (0, 0) };
        let shown = r.part(value, self.dim, from, extent - 1)?;
        let edge = r.part(value, self.dim, start, 1)?;
        let before = r.join(self.dim, &if self.reverse { [&shown, &edge] } else { [&edge, &shown] })?;
        let beats = if self.op == ScanOp::Max { ElementOp::Gt } else { ElementOp::Lt };
        let beats = r.binary(beats, operand, &before)?;
        let (is_nan, was_nan) = (r.is_nan(operand)?, r.is_nan(&before)?);
        let (from, to) = match self.fold.nan {
            Nan::Omit => (was_nan, is_nan),
            Nan::Include => (is_nan, was_nan),
        };
        let changes = r.binary(ElementOp::And, &from, &r.apply(ElementOp::Not, &mut [to.into()])?)?;
        let mut place = r.positions_along(shape, 1 << self.dim)?;
        if self.reverse {
            place = r.sub(extent as i64 - 1, &place)?;
        }
        let is_first = r.binary(ElementOp::Eq, &place, 0i64)?;
        let is_record = r.binary(ElementOp::Or, &beats, &r.binary(ElementOp::Or, &changes, &is_first)?)?;
        let marked = r.select(&is_record, &place, 0i64)?;
        let latest = r.scan(&marked, ScanOp::Max, self.dim, self.reverse)?;
        Ok(Records { is_record, latest })
    }
}

/// The parts from which the derivatives of running products are computed.
struct Factors {
    /// The factors, with 1 for NaN that is left out.
    operand: Array,
    /// Whether no factor so far is 0.
    is_before_zero: Array,
    /// Whether this is the first factor of its line that is 0.
    is_first_zero: Array,
    /// The running products without that factor.
    products: Array,
}

/// The elements from which a running extreme comes.
struct Records {
    is_record: Array,
    /// The place of the latest record (u32), counted in the direction of the scan.
    latest: Array,
}
