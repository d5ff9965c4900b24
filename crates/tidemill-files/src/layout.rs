//! What a file says of an array: type, extents, order; and how an array is cut into blocks.
//!
//! Must hold: LAYOUT-1: the bytes of all elements are a number that fits u64, and each extent fits usize.

use crate::element::Kind;
use crate::error::error;
use std::ops::Range;
use std::path::Path;
use tidemill::{ErrorKind, Result};

/// How the elements of an array lie in a file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub kind: Kind,
    pub big_endian: bool,
    pub dims: Vec<usize>,
    /// The last dimension is the fastest, as in C; otherwise the first is, as in Fortran.
    pub row_major: bool,
}

impl Layout {
    /// # Errors
    /// `ErrorKind::TooLarge` where the bytes of such an array can't be counted.
    pub fn new(path: &Path, kind: Kind, big_endian: bool, dims: &[u64], row_major: bool) -> Result<Layout> {
        // An extent of zero makes the array empty whatever the others are, but each must still be sane.
        let bytes = dims.iter().try_fold(kind.bytes() as u64, |bytes, &extent| bytes.checked_mul(extent.max(1)));
        let extents: Option<Vec<usize>> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        match (bytes, extents) {
            (Some(_), Some(dims)) => Ok(Layout { kind, big_endian, dims, row_major }),
            _ => {
                let what =
                    format!("it says that it holds an array of {dims:?}, which no file holds: its header is wrong");
                Err(error(ErrorKind::TooLarge, path, what))
            }
        }
    }

    pub fn elements(&self) -> u64 {
        self.dims.iter().map(|&extent| extent as u64).product()
    }

    pub fn bytes(&self) -> u64 {
        self.elements() * self.kind.bytes() as u64
    }

    /// The extents, the fastest first.
    pub fn fastest_first(&self) -> Vec<usize> {
        let mut dims = self.dims.clone();
        if self.row_major {
            dims.reverse();
        }
        dims
    }

    /// The dimension along which pieces of the file follow each other: the slowest that has more than one index.
    pub fn slowest(&self) -> usize {
        let is_long = |&d: &usize| self.dims[d] != 1;
        let found =
            if self.row_major { (0..self.dims.len()).find(is_long) } else { (0..self.dims.len()).rfind(is_long) };
        found.unwrap_or(0)
    }
}

/// The blocks of an array in the order in which they lie in a file, each a range of every dimension: as many elements
/// as `elements_max` allows, or one.
pub(crate) fn blocks(dims: &[usize], row_major: bool, elements_max: usize) -> Vec<Vec<Range<usize>>> {
    if dims.contains(&0) {
        return Vec::new();
    }
    // Dimensions by speed, the slowest first.
    let order: Vec<usize> = if row_major { (0..dims.len()).collect() } else { (0..dims.len()).rev().collect() };
    let inner = |from: usize| order[from..].iter().map(|&d| dims[d]).product::<usize>();
    // Slower ones are walked index by index, this one in steps, and faster ones are taken whole.
    let cut = (0..order.len()).find(|&at| inner(at + 1) <= elements_max.max(1)).unwrap_or(order.len());
    let step = if cut < order.len() { (elements_max / inner(cut + 1)).max(1) } else { 1 };
    let mut found = vec![dims.iter().map(|&extent| 0..extent).collect::<Vec<Range<usize>>>()];
    for (at, &d) in order.iter().enumerate().take(cut + 1) {
        let step = if at < cut { 1 } else { step };
        let split = |block: Vec<Range<usize>>| {
            (0..dims[d]).step_by(step).map(move |from| {
                let mut block = block.clone();
                block[d] = from..(from + step).min(dims[d]);
                block
            })
        };
        found = found.into_iter().flat_map(split).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::blocks;

    /// The elements' places in the file, block by block.
    fn places(dims: &[usize], row_major: bool, elements_max: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for block in blocks(dims, row_major, elements_max) {
            assert!(block.iter().map(|range| range.len()).product::<usize>() <= elements_max.max(1));
            let mut at: Vec<usize> = block.iter().map(|range| range.start).collect();
            loop {
                let fold = |place: usize, d: usize| place * dims[d] + at[d];
                let dimensions = 0..dims.len();
                found.push(if row_major { dimensions.fold(0, fold) } else { dimensions.rev().fold(0, fold) });
                let mut next = (0..dims.len()).collect::<Vec<_>>();
                if row_major {
                    next.reverse();
                }
                let Some(d) = next.iter().copied().find(|&d| at[d] + 1 < block[d].end) else { break };
                for &faster in next.iter().take_while(|&&faster| faster != d) {
                    at[faster] = block[faster].start;
                }
                at[d] += 1;
            }
        }
        found
    }

    #[test]
    fn blocks_follow_each_other_as_the_elements_do_in_the_file() {
        for dims in [vec![], vec![5], vec![3, 4], vec![1, 7], vec![2, 3, 4], vec![2, 1, 3, 2]] {
            let elements: usize = dims.iter().product();
            for row_major in [false, true] {
                for elements_max in 0..=elements + 1 {
                    let expected: Vec<usize> = (0..elements).collect();
                    assert_eq!(places(&dims, row_major, elements_max), expected, "{dims:?} {row_major} {elements_max}");
                }
            }
        }
        assert!(blocks(&[3, 0], true, 10).is_empty());
    }
}
