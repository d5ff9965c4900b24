//! Shapes: column-major, rank at least 2, trailing singletons dropped (MATLAB's rules).
//!
//! Must hold: SHAPE-1: a `Shape` is normalised and its number of elements fits in `u32`, since kernels index
//! with 32 bits. SHAPE-2: what is no larger than a `Shape` in any dimension, or has one element, is one.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;

/// The extents of an array, normalised. Dimension 0 varies fastest in memory.
#[derive(PartialEq, Eq, Hash)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Clone for Shape {
    fn clone(&self) -> Shape {
        // Recording clones shapes, and this copies words where the derived form pushes them one by one.
        match *self.dims() {
            [a, b] => Shape(SmallVec::from_buf_and_len([a, b, 1, 1], 2)),
            ref dims => Shape(SmallVec::from_slice(dims)),
        }
    }
}

impl Shape {
    /// The most elements one array may have: kernels index with 32 bits.
    pub const ELEMENTS_MAX: usize = u32::MAX as usize;
    /// The most dimensions one array may have.
    pub const RANK_MAX: usize = 16;

    /// Normalises `dims`: one extent `n` becomes `[n, 1]`, none becomes `[1, 1]`.
    ///
    /// # Errors
    /// `ErrorKind::Shape` where the product exceeds [`Shape::ELEMENTS_MAX`] or the rank [`Shape::RANK_MAX`].
    pub fn new(dims: &[usize]) -> Result<Shape> {
        let mut out: SmallVec<[usize; 4]> = SmallVec::from_slice(dims);
        while out.len() > 2 && out[out.len() - 1] == 1 {
            out.pop();
        }
        while out.len() < 2 {
            out.push(1);
        }
        if out.len() > Shape::RANK_MAX {
            return Err(Error::new(
                ErrorKind::Shape,
                format!("an array has at most {} dimensions, and {} were asked for", Shape::RANK_MAX, out.len()),
            ));
        }
        // An extent of zero makes the array empty whatever the others are, but each must still be sane.
        let mut product: usize = 1;
        let mut empty = false;
        for &extent in &out {
            empty |= extent == 0;
            product = match product.checked_mul(extent.max(1)) {
                Some(p) if p <= Shape::ELEMENTS_MAX => p,
                _ => {
                    return Err(Error::new(
                        ErrorKind::Shape,
                        format!(
                            "an array of {} has more elements than the {} that one array may hold",
                            join(&out),
                            Shape::ELEMENTS_MAX
                        ),
                    ));
                }
            };
        }
        let _ = empty;
        Ok(Shape(out))
    }

    /// The 1×1 shape.
    pub fn scalar() -> Shape {
        Shape(SmallVec::from_slice(&[1, 1]))
    }

    /// The extents, at least two.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The number of dimensions, at least 2.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The extent of dimension `dim`; 1 beyond the rank.
    pub fn dim(&self, dim: usize) -> usize {
        self.0.get(dim).copied().unwrap_or(1)
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// Whether it holds exactly one element.
    pub fn is_scalar(&self) -> bool {
        self.0.iter().all(|&d| d == 1)
    }

    /// The shape that two operands expand to (implicit expansion, leading dimensions aligned).
    ///
    /// # Errors
    /// `ErrorKind::Shape` where an extent differs and neither is 1.
    pub fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
        if a == b {
            return Ok(a.clone());
        }
        let rank = a.rank().max(b.rank());
        let mut out = SmallVec::<[usize; 4]>::with_capacity(rank);
        for d in 0..rank {
            out.push(match (a.dim(d), b.dim(d)) {
                (x, y) if x == y => x,
                (1, y) => y,
                (x, 1) => x,
                (x, y) => {
                    return Err(Error::new(
                        ErrorKind::Shape,
                        format!("{a} and {b} do not expand to one shape: dimension {d} is {x} on one side and {y} on the other"),
                    ));
                }
            });
        }
        Shape::new(&out)
    }

    /// The dimension that reductions and scans take by default: the first that is not 1, else 0.
    pub fn first_non_singleton(&self) -> usize {
        self.0.iter().position(|&d| d != 1).unwrap_or(0)
    }
}

fn join(dims: &[usize]) -> String {
    let parts: Vec<String> = dims.iter().map(|d| d.to_string()).collect();
    parts.join("x")
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.0))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.0))
    }
}
