//! Shapes: column-major, rank at least 2, trailing singletons dropped (MATLAB's rules).
//!
//! Must hold: SHAPE-1: a `Shape` is normalised and its number of elements fits in `u32`, since kernels index
//! with 32 bits. SHAPE-2: what is no larger than a `Shape` in any dimension, or has one element, is one.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The extents of an array, normalised. Dimension 0 varies fastest in memory.
///
/// Every op copies a shape to its handle, its record and its node: a matrix's is two words in place, and others are
/// shared.
#[derive(Clone)]
pub struct Shape(Extents);

#[derive(Clone)]
enum Extents {
    Matrix([usize; 2]),
    /// Three or more.
    More(Arc<[usize]>),
}

impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        match (&self.0, &other.0) {
            (Extents::Matrix(a), Extents::Matrix(b)) => a == b,
            (Extents::More(a), Extents::More(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dims().hash(state);
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
    /// `ErrorKind::TooLarge` where the product exceeds [`Shape::ELEMENTS_MAX`], `ErrorKind::Rank` where there are more
    /// dimensions than [`Shape::RANK_MAX`].
    pub fn new(dims: &[usize]) -> Result<Shape> {
        let rank = dims.iter().rposition(|&extent| extent != 1).map_or(0, |last| last + 1);
        let extents = match dims[..rank] {
            [] => Extents::Matrix([1, 1]),
            [n] => Extents::Matrix([n, 1]),
            [m, n] => Extents::Matrix([m, n]),
            ref more => {
                if rank > Shape::RANK_MAX {
                    return Err(Shape::too_many(rank));
                }
                Extents::More(more.into())
            }
        };
        let shape = Shape(extents);
        // An extent of zero makes the array empty whatever the others are, but each must still be sane.
        let mut product: usize = 1;
        for &extent in shape.dims() {
            product = match product.checked_mul(extent.max(1)) {
                Some(p) if p <= Shape::ELEMENTS_MAX => p,
                _ => {
                    return Err(Error::new(
                        ErrorKind::TooLarge,
                        format!(
                            "an array of {} has more elements than the {} that one array may hold",
                            join(shape.dims()),
                            Shape::ELEMENTS_MAX
                        ),
                    ));
                }
            };
        }
        Ok(shape)
    }

    /// The 1×1 shape.
    pub fn scalar() -> Shape {
        Shape(Extents::Matrix([1, 1]))
    }

    /// The extents, at least two.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        match &self.0 {
            Extents::Matrix(extents) => extents,
            Extents::More(extents) => extents,
        }
    }

    /// The number of dimensions, at least 2.
    #[inline]
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// The extent of dimension `dim`; 1 beyond the rank.
    pub fn dim(&self, dim: usize) -> usize {
        self.dims().get(dim).copied().unwrap_or(1)
    }

    /// The number of elements.
    #[inline]
    pub fn elements(&self) -> usize {
        match &self.0 {
            Extents::Matrix([rows, columns]) => rows * columns,
            Extents::More(extents) => extents.iter().product(),
        }
    }

    /// Whether it holds exactly one element.
    #[inline]
    pub fn is_scalar(&self) -> bool {
        // More than two extents do not end in 1.
        matches!(self.0, Extents::Matrix([1, 1]))
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

    /// The error of an array of so many dimensions.
    pub(crate) fn too_many(rank: usize) -> Error {
        Error::new(
            ErrorKind::Rank,
            format!("an array has at most {} dimensions, and {rank} were asked for", Shape::RANK_MAX),
        )
    }

    /// The dimension that reductions and scans take by default: the first that is not 1, else 0.
    pub fn first_non_singleton(&self) -> usize {
        self.dims().iter().position(|&d| d != 1).unwrap_or(0)
    }
}

fn join(dims: &[usize]) -> String {
    let parts: Vec<String> = dims.iter().map(|d| d.to_string()).collect();
    parts.join("x")
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(self.dims()))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(self.dims()))
    }
}
