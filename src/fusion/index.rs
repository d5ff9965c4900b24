//! Computes the index of a node's element from coordinates of the kernel's iteration space.
//!
//! In: the space and a node's shape. Out: index instructions, built only when they are needed. Must hold: neighbouring
//! dimensions that are whole in both space and operand are joined, so that the usual broadcasts take at most one
//! division.

use super::builder::{Builder, Origin};
use super::grouping::Fold;
use crate::graph::{DimSet, Shape};
use crate::kernels::ir::{IndexOp, InstOp, Val};
use smallvec::SmallVec;

/// One coordinate of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinate {
    /// The space's own coordinate in this dimension.
    Space(u8),
    /// Zero.
    Zero,
    /// A computed coordinate.
    Val(Val),
}

/// The position of an element of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The element with the space's own linear index.
    Flat,
    /// The element with the reduced space's own linear index.
    Outer,
    /// The element with this linear index.
    Linear(Val),
    /// The element with these coordinates.
    Coordinates(SmallVec<[Coordinate; 4]>),
}

/// The iteration space of a kernel.
#[derive(Clone, Debug)]
pub struct Space {
    /// Its shape.
    pub shape: Shape,
    /// What is folded.
    pub fold: Fold,
}

impl Space {
    /// The dimensions that `Inner` runs over.
    fn inner_dims(&self) -> DimSet {
        match self.fold {
            Fold::Reduce(dims) | Fold::Line(dims) => dims,
            Fold::Scan { dim, .. } => 1 << dim,
            Fold::None | Fold::Alone => 0,
        }
    }

    /// Elements that `Outer` runs over and elements that `Inner` runs over.
    pub fn sizes(&self) -> (u32, u32) {
        let dims = self.inner_dims();
        let (mut outer, mut inner) = (1u64, 1u64);
        for (d, &n) in self.shape.dims().iter().enumerate() {
            if dims >> d & 1 == 1 { inner *= n as u64 } else { outer *= n as u64 }
        }
        (outer as u32, inner as u32)
    }

    /// Whether neighbouring `Inner` indices are neighbours in memory.
    pub fn inner_fast(&self) -> bool {
        let dims = self.inner_dims();
        match self.shape.dims().iter().position(|&n| n != 1) {
            Some(first) => dims >> first & 1 == 1,
            None => true,
        }
    }

    /// Whether everything is folded: `Inner` is then the flat index.
    pub fn folds_all(&self) -> bool {
        let dims = self.inner_dims();
        dims != 0 && self.shape.dims().iter().enumerate().all(|(d, &n)| n == 1 || dims >> d & 1 == 1)
    }

    fn folded(&self, d: usize) -> bool {
        self.inner_dims() >> d & 1 == 1
    }

    /// The product of extents over a run of dimensions, of those that are folded as `d` is.
    pub fn product(&self, builder: &mut Builder, like: usize, from: usize, to: usize) -> Option<Val> {
        let mut mask = 0u16;
        let mut product = 1u64;
        for d in from..to {
            if self.folded(d) == self.folded(like) && self.shape.dim(d) != 1 {
                mask |= 1 << d;
                product *= self.shape.dim(d) as u64;
            }
        }
        (mask != 0).then(|| builder.number(Origin::Extents(mask), product as u32))
    }

    /// The joined coordinate of dimensions `from..to`, all folded alike: `(base / before) % extent`.
    fn run(&self, builder: &mut Builder, from: usize, to: usize) -> Val {
        let base = match self.fold {
            Fold::None | Fold::Alone => builder.inst(InstOp::Flat, crate::graph::DType::U32),
            _ if self.folded(from) => builder.inst(InstOp::Inner, crate::graph::DType::U32),
            _ => builder.inst(InstOp::Outer, crate::graph::DType::U32),
        };
        let mut val = base;
        if let Some(before) = self.product(builder, from, 0, from) {
            val = builder.index(IndexOp::Div, val, before);
        }
        if self.product(builder, from, to, self.shape.rank()).is_some()
            && let Some(extent) = self.product(builder, from, from, to)
        {
            val = builder.index(IndexOp::Rem, val, extent);
        }
        val
    }

    /// The coordinate in one dimension.
    pub fn coordinate(&self, builder: &mut Builder, d: usize) -> Val {
        if self.shape.dim(d) == 1 { builder.zero() } else { self.run(builder, d, d + 1) }
    }
}

/// Makes one value of a coordinate.
pub fn value_of(builder: &mut Builder, space: &Space, coordinate: Coordinate) -> Val {
    match coordinate {
        Coordinate::Zero => builder.zero(),
        Coordinate::Val(val) => val,
        Coordinate::Space(d) => space.coordinate(builder, d as usize),
    }
}

/// The coordinates of an element of a node of `shape`; `owner` names the node whose extents divide;
/// `None` stands for the space itself.
pub fn coordinates(
    builder: &mut Builder,
    space: &Space,
    at: &At,
    shape: &Shape,
    owner: Option<u32>,
) -> SmallVec<[Coordinate; 4]> {
    let rank = shape.rank();
    let one = |d: usize| shape.dim(d) == 1;
    match at {
        At::Coordinates(list) => list.clone(),
        // A flat element of a node of the space's own shape has the space's coordinates; of another shape
        // (a reshape) it must be divided out.
        At::Flat if *shape == space.shape => {
            (0..rank).map(|d| if one(d) { Coordinate::Zero } else { Coordinate::Space(d as u8) }).collect()
        }
        At::Outer if *shape == super::grouping::reduced_shape(&space.shape, space.inner_dims()) => {
            (0..rank).map(|d| if one(d) { Coordinate::Zero } else { Coordinate::Space(d as u8) }).collect()
        }
        At::Flat | At::Outer | At::Linear(_) => {
            let linear = linear(builder, space, at, shape, owner);
            let mut list = SmallVec::new();
            let last = (0..rank).rev().find(|&d| !one(d));
            for d in 0..rank {
                if one(d) {
                    list.push(Coordinate::Zero);
                    continue;
                }
                let mut val = linear;
                if let Some(before) = stride(builder, shape, owner, 0, d) {
                    val = builder.index(IndexOp::Div, val, before);
                }
                if Some(d) != last {
                    let extent = stride(builder, shape, owner, d, d + 1).expect("FUSE-5: the extent is not 1");
                    val = builder.index(IndexOp::Rem, val, extent);
                }
                list.push(Coordinate::Val(val));
            }
            list
        }
    }
}

/// The product of a shape's extents over a run of dimensions; `None` where all are 1.
fn stride(builder: &mut Builder, shape: &Shape, owner: Option<u32>, from: usize, to: usize) -> Option<Val> {
    let trivial = (from..to).all(|d| shape.dim(d) == 1);
    let product: u64 = (from..to).map(|d| shape.dim(d) as u64).product();
    (!trivial).then(|| builder.number(Origin::Stride(owner, from as u8, to as u8), product as u32))
}

/// The linear index of an element of a node of `shape`, with `owner` as in [`coordinates`].
pub fn linear(builder: &mut Builder, space: &Space, at: &At, shape: &Shape, owner: Option<u32>) -> Val {
    let own: SmallVec<[Coordinate; 4]>;
    let list = match at {
        At::Linear(val) => return *val,
        At::Flat if matches!(space.fold, Fold::None | Fold::Alone | Fold::Line(_)) => {
            return builder.inst(InstOp::Flat, crate::graph::DType::U32);
        }
        At::Outer => return builder.inst(InstOp::Outer, crate::graph::DType::U32),
        At::Flat => {
            if space.folds_all() {
                return builder.inst(InstOp::Inner, crate::graph::DType::U32);
            }
            // The owner's shape may be a reshape of the space's; the index is the same.
            own = (0..space.shape.rank())
                .map(|d| if space.shape.dim(d) == 1 { Coordinate::Zero } else { Coordinate::Space(d as u8) })
                .collect();
            return sum(builder, space, &own, &space.shape.clone(), None);
        }
        At::Coordinates(list) => list,
    };
    sum(builder, space, list, shape, owner)
}

fn sum(builder: &mut Builder, space: &Space, list: &[Coordinate], shape: &Shape, owner: Option<u32>) -> Val {
    let mut total: Option<Val> = None;
    let mut fastest: Option<(usize, usize)> = None;
    let mut d = 0;
    while d < list.len().min(shape.rank()) {
        let mut to = d + 1;
        let part = match list[d] {
            _ if shape.dim(d) == 1 => None,
            Coordinate::Zero => None,
            Coordinate::Val(val) => Some(val),
            Coordinate::Space(_) => {
                to = joined(space, list, shape, d);
                let (from, end) = match (list[d], list[to - 1]) {
                    (Coordinate::Space(a), Coordinate::Space(b)) => (a as usize, b as usize + 1),
                    _ => unreachable!("FUSE-5: a joined run is of space coordinates"),
                };
                if total.is_none() && (0..d).all(|d| shape.dim(d) == 1) {
                    fastest = Some((from, end));
                }
                Some(space.run(builder, from, end))
            }
        };
        if let Some(mut part) = part {
            if let Some(before) = stride(builder, shape, owner, 0, d) {
                part = builder.index(IndexOp::Mul, part, before);
            }
            total = Some(match total {
                Some(sum) => builder.index(IndexOp::Add, sum, part),
                None => part,
            });
        }
        d = to;
    }
    let total = total.unwrap_or_else(|| builder.zero());
    if let Some((from, to)) = fastest
        && (0..from).any(|d| space.shape.dim(d) != 1)
        && is_permuted(space, list, shape)
        && !builder.across.iter().any(|known| known.0 == total)
    {
        builder.across.push((total, from, to));
    }
    total
}

/// Whether each dimension of the shape is another one of the space, as a whole, so that a load moves along one of them as
/// the space does and no element of it depends on data.
fn is_permuted(space: &Space, list: &[Coordinate], shape: &Shape) -> bool {
    let mut taken = 0u64;
    (0..shape.rank()).filter(|&d| shape.dim(d) != 1).all(|d| match list.get(d) {
        Some(&Coordinate::Space(e)) => {
            let is_free = taken & (1 << e) == 0;
            taken |= 1 << e;
            is_free && space.shape.dim(e as usize) == shape.dim(d)
        }
        Some(Coordinate::Zero | Coordinate::Val(_)) | None => false,
    })
}

/// One past the last dimension that joins `d`'s run: consecutive, whole, folded alike.
fn joined(space: &Space, list: &[Coordinate], shape: &Shape, d: usize) -> usize {
    let Coordinate::Space(first) = list[d] else { return d + 1 };
    if shape.dim(d) != space.shape.dim(first as usize) {
        return d + 1;
    }
    let mut to = d + 1;
    while to < list.len().min(shape.rank()) {
        match list[to] {
            Coordinate::Space(e)
                if e as usize == first as usize + (to - d)
                    && shape.dim(to) == space.shape.dim(e as usize)
                    && space.folded(e as usize) == space.folded(first as usize) =>
            {
                to += 1;
            }
            _ => break,
        }
    }
    to
}
