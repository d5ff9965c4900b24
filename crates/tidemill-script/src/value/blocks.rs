//! Processes an array's elements in blocks. A computation that goes through wider numbers makes them for a block at a
//! time, so that an array of a small class takes little memory while it is computed.
//!
//! Must hold: BLOCKS-1: computing in blocks gives the same result as computing the whole: each element depends only on
//! the elements in its own place.

use super::Data;
use super::tensor::{each_data, map_data};
use crate::error::Flow;
use std::ops::Range;

/// The number of elements of a block. A block fits into a core's cache, even with 16 bytes an element.
pub const BLOCK: usize = 1 << 14;

impl Data {
    /// Returns the elements in a range, which lies within the array.
    pub fn part(&self, range: Range<usize>) -> Data {
        map_data!(self, v => v[range].to_vec())
    }

    /// Appends elements of the same class. If some of them are complex, all become complex.
    pub fn append(&mut self, more: Data) {
        macro_rules! same {
            ($($variant:ident),*) => {
                match (&mut *self, more) {
                    $((Data::$variant(v), Data::$variant(w)) => v.extend_from_slice(&w),)*
                    (_, more) => {
                        *self = self.complexified();
                        let more = more.complexified();
                        // Elements of different classes are never mixed, so nothing is appended.
                        if std::mem::discriminant(self) == std::mem::discriminant(&more) {
                            self.append(more);
                        }
                    }
                }
            };
        }
        same!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool, C64, C32);
    }

    /// Reserves memory for this many elements in total.
    fn reserve_for(&mut self, elements: usize) {
        each_data!(self, v => v.reserve_exact(elements.saturating_sub(v.len())));
    }

    /// Whether `test` is true for an element as a double. For complex elements, the real part counts.
    pub fn any_real(&self, test: impl Fn(f64) -> bool) -> bool {
        match self {
            Data::F64(v) => v.iter().any(|&x| test(x)),
            other => (0..other.len()).any(|i| test(other.f64_at(i))),
        }
    }

    /// Applies `f` to each block, and joins the results (BLOCKS-1). A few elements are processed as one block.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn in_blocks(&self, mut f: impl FnMut(&Data) -> Flow<Data>) -> Flow<Data> {
        let n = self.len();
        if n <= BLOCK {
            return f(self);
        }
        let mut joined = Joined::of(n);
        for start in (0..n).step_by(BLOCK) {
            joined.add(f(&self.part(start..n.min(start + BLOCK)))?);
        }
        Ok(joined.data.unwrap_or_else(|| Data::F64(Vec::new())))
    }
}

/// Joins blocks one after the other, in memory that is reserved for all of them.
pub struct Joined {
    /// The elements so far; `None` before the first block, which determines the class.
    pub data: Option<Data>,
    elements: usize,
}

impl Joined {
    /// Begins with no block, and with memory for this many elements in total.
    pub fn of(elements: usize) -> Joined {
        Joined { data: None, elements }
    }

    /// Adds the next block.
    pub fn add(&mut self, mut block: Data) {
        match &mut self.data {
            Some(data) => data.append(block),
            None => {
                block.reserve_for(self.elements);
                self.data = Some(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Class;
    use num_complex::Complex64;

    #[test]
    fn blocks_give_what_the_whole_gives() {
        let whole = Data::I16((0..3 * BLOCK + 7).map(|i| (i * 37 % 251) as i16).collect());
        let mut blocks = 0;
        let doubled = whole.in_blocks(|block| {
            blocks += 1;
            assert!(block.len() <= BLOCK);
            Ok(Data::F64(block.to_f64().iter().map(|x| x * 2.0).collect()).converted(Class::Int16))
        });
        let wanted: Vec<i16> = (0..3 * BLOCK + 7).map(|i| (i * 37 % 251 * 2) as i16).collect();
        assert!(blocks == 4 && matches!(doubled, Ok(Data::I16(v)) if v == wanted));
    }

    #[test]
    fn a_complex_block_makes_all_complex() {
        let mut data = Data::F64(vec![1.0]);
        data.append(Data::C64(vec![Complex64::new(2.0, 3.0)]));
        data.append(Data::F64(vec![4.0]));
        assert_eq!(data, Data::C64(vec![Complex64::new(1.0, 0.0), Complex64::new(2.0, 3.0), Complex64::new(4.0, 0.0)]));
    }
}
