//! Shapes: column-major, rank at least 2, trailing singletons dropped (MATLAB's rules).
//!
//! Must hold: SHAPE-1: a `Shape` is normalised and its number of elements fits in `u32`, since kernels index with 32
//! bits. SHAPE-2: extents that are no larger than a `Shape`'s in any dimension, or that hold one element, are a valid
//! `Shape`. SHAPE-3: two shapes that differ only in their axes are equal: axes say which dimensions a program may name,
//! and change no result.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The extents of an array, normalised. Dimension 0 varies fastest in memory.
///
/// Every op copies a shape to its handle, its record and its node. So a matrix's shape is two words in place, and
/// longer shapes are shared. The shape also counts the dimensions that the program named ([`Shape::axes`]).
#[derive(Clone)]
pub struct Shape(Extents);

#[derive(Clone)]
enum Extents {
    Matrix([usize; 2], u8),
    /// Three or more.
    More(Arc<[usize]>, u8),
}

impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        match (&self.0, &other.0) {
            (Extents::Matrix(a, _), Extents::Matrix(b, _)) => a == b,
            (Extents::More(a, _), Extents::More(b, _)) => Arc::ptr_eq(a, b) || a == b,
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
        let axes = axes_of(dims.len());
        let extents = match dims[..rank] {
            [] => Extents::Matrix([1, 1], axes),
            [n] => Extents::Matrix([n, 1], axes),
            [m, n] => Extents::Matrix([m, n], axes),
            ref more => {
                if rank > Shape::RANK_MAX {
                    return Err(Shape::too_many(rank));
                }
                Extents::More(more.into(), axes)
            }
        };
        let shape = Shape(extents);
        // An extent of zero makes the array empty whatever the others are; the others must still be valid.
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
        Shape(Extents::Matrix([1, 1], 2))
    }

    /// The number of dimensions that a program may name: the rank, or more if it named extents of 1 at the end. So a
    /// program that works for `[4, 3, n]` also works if `n` is 1.
    #[inline]
    pub fn axes(&self) -> usize {
        match self.0 {
            Extents::Matrix(_, axes) | Extents::More(_, axes) => axes as usize,
        }
    }

    /// The same extents with at least this many axes.
    pub(crate) fn with_axes(mut self, axes: usize) -> Shape {
        let (Extents::Matrix(_, own) | Extents::More(_, own)) = &mut self.0;
        *own = (*own).max(axes_of(axes));
        self
    }

    /// The shape with another extent in one dimension, which may be a new one.
    ///
    /// # Errors
    /// Those of [`Shape::new`].
    pub(crate) fn with_dim(&self, dim: usize, extent: usize) -> Result<Shape> {
        let axes = self.axes().max(dim + 1);
        let dims: SmallVec<[usize; 4]> = (0..axes).map(|d| if d == dim { extent } else { self.dim(d) }).collect();
        Shape::new(&dims)
    }

    /// The extents, at least two.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        match &self.0 {
            Extents::Matrix(extents, _) => extents,
            Extents::More(extents, _) => extents,
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
            Extents::Matrix([rows, columns], _) => rows * columns,
            Extents::More(extents, _) => extents.iter().product(),
        }
    }

    /// Whether it holds exactly one element.
    #[inline]
    pub fn is_scalar(&self) -> bool {
        // Shapes of more than two extents do not end in 1, so they are no scalars.
        matches!(self.0, Extents::Matrix([1, 1], _))
    }

    /// The shape that two operands expand to (implicit expansion, leading dimensions aligned).
    ///
    /// # Errors
    /// `ErrorKind::Shape` where two extents differ and neither is 1.
    pub fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
        if a == b {
            return Ok(if a.axes() < b.axes() { b.clone() } else { a.clone() });
        }
        let rank = a.axes().max(b.axes());
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

    /// The error for an array of `rank` dimensions, which are more than an array may have.
    pub(crate) fn too_many(rank: usize) -> Error {
        Error::new(
            ErrorKind::Rank,
            format!("an array has at most {} dimensions, and {rank} were asked for", Shape::RANK_MAX),
        )
    }

    /// Checks that a program may name dimension `dim` of this shape.
    ///
    /// # Errors
    /// `ErrorKind::Index` where `dim` is not below [`Shape::axes`].
    pub(crate) fn has_axis(&self, dim: usize) -> Result<()> {
        if dim < self.axes() {
            return Ok(());
        }
        let message = format!(
            "dimension {dim} is outside of an array of {self}, whose dimensions are 0 to {}; reshape() adds dimensions",
            self.axes() - 1
        );
        Err(Error::new(ErrorKind::Index, message))
    }

    /// The dimension that reductions and scans take by default: the first that is not 1, else 0.
    pub fn first_non_singleton(&self) -> usize {
        self.dims().iter().position(|&d| d != 1).unwrap_or(0)
    }
}

/// The axes of a shape that was made from this many extents: at least 2, and at most as many as an array may have.
fn axes_of(extents: usize) -> u8 {
    extents.clamp(2, Shape::RANK_MAX) as u8
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
