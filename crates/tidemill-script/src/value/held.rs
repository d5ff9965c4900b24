//! Elements of host arrays that two arrays may share: `A(:)` and `reshape(A, …)` allocate none of their own.
//!
//! In: an array and other dimensions. Out: an array that reads the first one's elements, until either of them is
//! written. Must hold: HELD-1: borrowed elements are not lent again: an array that reads another's elements passes the
//! other one on. HELD-2: elements that another array may read are never written. The writer copies them first, or takes
//! them over if no other array is left.

use super::account::Charge;
use super::tensor::{Data, Dims, Form, Tensor};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// From this size on, copying takes longer than counting one more holder, and copying later if either is written.
pub(super) const LENT_BYTES_MIN: usize = 1 << 15;

/// The elements of a host array.
#[derive(Clone)]
pub enum Held {
    /// Elements of its own, and their charge on the account.
    Own(Data, Charge),
    /// The elements of another array, which owns them (HELD-1).
    Of(Arc<Tensor>),
}

impl Held {
    /// Returns the elements, moved out if nothing else holds them.
    pub fn into_data(self) -> Data {
        match self {
            Held::Own(data, _) => data,
            Held::Of(lender) => match Arc::try_unwrap(lender) {
                Ok(lender) => lender.data.into_data(),
                Err(lender) => Data::clone(&lender.data),
            },
        }
    }

    /// Updates the charge after the elements may have grown in place.
    #[inline]
    pub fn recount(&mut self) {
        if let Held::Of(_) = self {
            self.make_own();
        }
        if let Held::Own(data, charge) = self {
            charge.update(data.bytes());
        }
    }

    /// Makes the elements its own (HELD-2).
    #[cold]
    fn make_own(&mut self) {
        let held = std::mem::replace(self, Held::Own(Data::F64(Vec::new()), Charge::default()));
        *self = held.into_data().into();
    }
}

impl Deref for Held {
    type Target = Data;

    #[inline(always)]
    fn deref(&self) -> &Data {
        match self {
            Held::Own(data, _) => data,
            Held::Of(lender) => match &lender.data {
                Held::Own(data, _) => data,
                Held::Of(_) => unreachable!("HELD-1: a lender has elements of its own"),
            },
        }
    }
}

impl DerefMut for Held {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Data {
        if let Held::Of(_) = self {
            self.make_own();
        }
        match self {
            Held::Own(data, _) => data,
            Held::Of(_) => unreachable!("HELD-2: they were made its own"),
        }
    }
}

impl From<Data> for Held {
    fn from(data: Data) -> Held {
        let charge = Charge::of(data.bytes());
        Held::Own(data, charge)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Tensor {
    /// Returns the same elements with other dimensions, known neither as a range nor as diagonal. If there are many
    /// elements, both arrays share them.
    pub fn seen_as(self: &Arc<Tensor>, dims: Dims) -> Tensor {
        assert_eq!(dims.elements(), self.len(), "VALUE-2: a reshape keeps the elements");
        let data = match &self.data {
            Held::Of(lender) => Held::Of(lender.clone()),
            Held::Own(data, _) if data.bytes() >= LENT_BYTES_MIN => Held::Of(self.clone()),
            Held::Own(data, charge) => Held::Own(data.clone(), charge.clone()),
        };
        Tensor { dims, data, double_quoted: self.double_quoted, form: Form::Full, pinned: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Arc<Tensor> {
        Arc::new(Tensor::new(Dims::new(&[n, 1]), Data::F64((0..n).map(|i| i as f64).collect())))
    }

    fn address(tensor: &Tensor) -> usize {
        match &*tensor.data {
            Data::F64(v) => v.as_ptr() as usize,
            _ => 0,
        }
    }

    fn set(tensor: &mut Tensor, to: f64) {
        if let Data::F64(v) = &mut *tensor.data {
            v[0] = to;
        }
    }

    #[test]
    fn many_elements_are_held_by_both_and_few_are_copied() {
        let many = numbers(LENT_BYTES_MIN / 8);
        let row = many.seen_as(Dims::new(&[1, many.len()]));
        assert_eq!((address(&row), row.dims.rows(), &row.data), (address(&many), 1, &many.data));
        let few = numbers(LENT_BYTES_MIN / 8 - 1);
        assert_ne!(address(&few.seen_as(few.dims.clone())), address(&few));
    }

    #[test]
    fn whoever_writes_first_copies_once_and_the_other_keeps_what_it_had() {
        let many = numbers(1 << 14);
        let lent = address(&many);
        let mut row = many.seen_as(Dims::new(&[1, 1 << 14]));
        set(&mut row, 7.0);
        let own = address(&row);
        assert_ne!(own, lent);
        set(&mut row, 8.0);
        assert_eq!((address(&row), row.data.f64_at(0), many.data.f64_at(0)), (own, 8.0, 0.0));

        // If the lender writes, it is shared, so it is copied like any shared value.
        let view = many.seen_as(Dims::new(&[1, 1 << 14]));
        let mut lender = many.clone();
        drop(many);
        set(Arc::make_mut(&mut lender), 9.0);
        assert_eq!((lender.data.f64_at(0), view.data.f64_at(0)), (9.0, 0.0));
        assert_eq!((address(&view), address(&lender) == lent), (lent, false));
    }

    #[test]
    fn elements_that_nobody_else_holds_any_more_are_written_where_they_lie() {
        let many = numbers(1 << 14);
        let lent = address(&many);
        let mut row = many.seen_as(Dims::new(&[1, 1 << 14]));
        drop(many);
        set(&mut row, 7.0);
        assert_eq!(address(&row), lent);
        let mut many = Arc::new(row);
        drop(many.seen_as(Dims::new(&[128, 128])));
        let alone = Arc::get_mut(&mut many).unwrap();
        set(alone, 8.0);
        assert_eq!(address(alone), lent);
    }

    #[test]
    fn a_borrower_passes_its_lender_on() {
        let many = numbers(1 << 14);
        let row = Arc::new(many.seen_as(Dims::new(&[1, 1 << 14])));
        let square = row.seen_as(Dims::new(&[128, 128]));
        drop(row);
        assert!(matches!(&square.data, Held::Of(lender) if Arc::ptr_eq(lender, &many)));
        // Moving the elements out copies them while the lender exists.
        assert_eq!(square.data.into_data(), *many.data);
    }
}
