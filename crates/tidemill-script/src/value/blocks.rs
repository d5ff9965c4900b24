//! Elements of an array in blocks: what is computed by way of wider numbers takes them for a block at a time, so that
//! an array of a small class stays small while it is computed.
//!
//! Must hold: BLOCKS-1: what is computed in blocks gives what it gives as a whole: each element depends on those at its
//! own place alone.

use super::Data;
use super::tensor::{each_data, map_data};
use crate::error::Flow;
use std::ops::Range;

/// Elements of a block: what a core's cache holds, also as 16 bytes each.
pub const BLOCK: usize = 1 << 14;

impl Data {
    /// The elements of a range, which lies within them.
    pub fn part(&self, range: Range<usize>) -> Data {
        map_data!(self, v => v[range].to_vec())
    }

    /// Adds elements of the same class behind these; where some are complex, all are.
    pub fn append(&mut self, more: Data) {
        macro_rules! same {
            ($($variant:ident),*) => {
                match (&mut *self, more) {
                    $((Data::$variant(v), Data::$variant(w)) => v.extend_from_slice(&w),)*
                    (_, more) => {
                        *self = self.complexified();
                        let more = more.complexified();
                        // Of two classes, nothing is appended: they are never mixed.
                        if std::mem::discriminant(self) == std::mem::discriminant(&more) {
                            self.append(more);
                        }
                    }
                }
            };
        }
        same!(F64, F32, I8, I16, I32, I64, U8, U16, U32, U64, Char, Bool, C64, C32);
    }

    /// Takes memory for so many elements together.
    fn reserve_for(&mut self, elements: usize) {
        each_data!(self, v => v.reserve_exact(elements.saturating_sub(v.len())));
    }

    /// Whether this is true of an element, as a double; of complex ones, of the real part.
    pub fn any_real(&self, test: impl Fn(f64) -> bool) -> bool {
        match self {
            Data::F64(v) => v.iter().any(|&x| test(x)),
            other => (0..other.len()).any(|i| test(other.f64_at(i))),
        }
    }

    /// `f` of each block, joined (BLOCKS-1); of few elements, `f` of all.
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

/// Blocks that are joined one after the other, in memory for all of them.
pub struct Joined {
    /// The elements so far; `None` before the first block, which decides about their class.
    pub data: Option<Data>,
    elements: usize,
}

impl Joined {
    /// No block yet, of those that hold so many elements together.
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
