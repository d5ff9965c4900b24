//! The numbers among an op's attributes: all that [`Op::hash_structure`] leaves out, apart from texts and data. A loop
//! records one op again and again with other numbers (a slice that moves, a random key), so a list of ops is small if
//! it holds the op once and the numbers of each time.
//!
//! Must hold: NUMBERS-1: an op is equal to any op of its structure that was given its numbers, texts and data of
//! sources aside.

use super::op::{Op, RandomKey, SliceDim, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// The numbers of an op, each as bits: small ones, of either sign, are small.
pub type Numbers = SmallVec<[u64; 6]>;

impl Op {
    /// Its numbers.
    pub fn numbers(&self) -> Numbers {
        match self {
            Op::Random { key, .. } => Numbers::from_slice(&[key.op.into(), key.seed, key.stream]),
            Op::View(view) => match view {
                View::Slice(dims) => of_slice(dims),
                View::CircShift(shifts) => shifts.iter().map(|&shift| shift as u64).collect(),
                View::Diagonal(k) => Numbers::from_slice(&[folded(*k)]),
                View::Reshape | View::Permute(_) | View::Broadcast | View::Repmat => Numbers::new(),
            },
            Op::Triangle { diagonal, .. } => Numbers::from_slice(&[folded(*diagonal)]),
            Op::MakeDiagonal(k) => Numbers::from_slice(&[folded(*k)]),
            Op::AssignSlice(dims) => of_slice(dims),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Apply(_) => Numbers::new(),
            Op::Cat { .. } | Op::Reduce { .. } | Op::Scan { .. } | Op::Take { .. } => Numbers::new(),
            Op::TakeAlong { .. } | Op::AssignIndex { .. } | Op::ArgSort { .. } | Op::MatMul => Numbers::new(),
            Op::Linear(_) | Op::Fourier(_) | Op::Ensure { .. } | Op::Compact => Numbers::new(),
        }
    }

    /// The op with other numbers, as many as it has.
    pub fn with_numbers(&self, numbers: &[u64]) -> Op {
        match (self, numbers) {
            (Op::Random { dist, .. }, &[op, seed, stream]) => {
                Op::Random { dist: *dist, key: RandomKey { seed, stream, op: op as u32 } }
            }
            (Op::View(View::Slice(_)), numbers) => Op::View(View::Slice(slice_of(numbers))),
            (Op::View(View::CircShift(_)), numbers) => {
                Op::View(View::CircShift(numbers.iter().map(|&shift| shift as usize).collect()))
            }
            (Op::View(View::Diagonal(_)), &[k]) => Op::View(View::Diagonal(unfolded(k))),
            (Op::Triangle { upper, .. }, &[k]) => Op::Triangle { upper: *upper, diagonal: unfolded(k) },
            (Op::MakeDiagonal(_), &[k]) => Op::MakeDiagonal(unfolded(k)),
            (Op::AssignSlice(_), numbers) => Op::AssignSlice(slice_of(numbers)),
            (op, numbers) => {
                assert!(numbers.is_empty(), "NUMBERS-1: {} has not {} numbers", op.name(), numbers.len());
                op.clone()
            }
        }
    }
}

fn of_slice(dims: &[SliceDim]) -> Numbers {
    dims.iter().flat_map(|dim| [dim.start as u64, folded(dim.step as i64), dim.len as u64]).collect()
}

fn slice_of(numbers: &[u64]) -> Arc<[SliceDim]> {
    let dim = |dim: &[u64]| SliceDim { start: dim[0] as usize, step: unfolded(dim[1]) as isize, len: dim[2] as usize };
    numbers.chunks_exact(3).map(dim).collect()
}

/// A number whose lowest bit is the sign of another one.
fn folded(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unfolded(bits: u64) -> i64 {
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::words::Words;
    use crate::graph::{Dist, ElementOp, Fourier, LinearOp, Nan, Parts, ReduceOp, ScanOp, Spectrum};

    fn dim(start: usize, step: isize, len: usize) -> SliceDim {
        SliceDim { start, step, len }
    }

    /// Pairs of ops of one structure with other numbers.
    fn pairs() -> Vec<[Op; 2]> {
        let key = |op| RandomKey { seed: u64::MAX - u64::from(op), stream: 1 << 40, op };
        let random = |op| Op::Random { dist: Dist::Normal, key: key(op) };
        let shifts = |shifts: &[usize]| Op::View(View::CircShift(shifts.into()));
        vec![
            [random(0), random(u32::MAX)],
            [
                Op::View(View::Slice([dim(0, 1, 4), dim(3, -1, 2)].into())),
                Op::View(View::Slice([dim(9, -2, 3), dim(0, 1, 0)].into())),
            ],
            [shifts(&[0, 1]), shifts(&[1 << 31, 0])],
            [Op::View(View::Diagonal(-3)), Op::View(View::Diagonal(i64::MAX))],
            [Op::Triangle { upper: true, diagonal: i64::MIN }, Op::Triangle { upper: true, diagonal: 2 }],
            [Op::MakeDiagonal(0), Op::MakeDiagonal(7)],
            [Op::MakeDiagonal(-1), Op::MakeDiagonal(i64::MIN)],
            [Op::AssignSlice([dim(0, 1, 1)].into()), Op::AssignSlice([dim(5, -5, 2)].into())],
        ]
    }

    fn plain() -> Vec<Op> {
        let fourier = Fourier { dim: 0, len: 8, inverse: false, parts: Parts::Real, spectrum: Spectrum::Half };
        vec![
            Op::Fill,
            Op::Iota,
            Op::Linspace,
            Op::Eye,
            Op::Apply(ElementOp::Add),
            Op::View(View::Reshape),
            Op::View(View::Permute([1, 0].into())),
            Op::View(View::Broadcast),
            Op::View(View::Repmat),
            Op::Cat { dim: 1 },
            Op::Reduce { op: ReduceOp::Sum, dims: 1, nan: Nan::Include },
            Op::Scan { op: ScanOp::Sum, dim: 0, nan: Nan::Omit, reverse: true },
            Op::Take { dim: None },
            Op::TakeAlong { dim: 1 },
            Op::AssignIndex { dim: Some(1) },
            Op::ArgSort { dim: 0, descending: true },
            Op::MatMul,
            Op::Linear(LinearOp::Lu),
            Op::Fourier(fourier),
            Op::Compact,
        ]
    }

    fn words(hash: impl Fn(&mut Words<'_, Vec<u64>>)) -> Vec<u64> {
        let mut words = Vec::new();
        hash(&mut Words(&mut words));
        words
    }

    fn attributes(op: &Op) -> (Vec<u64>, Numbers) {
        // Keys are no attributes there.
        (words(|to| op.hash_attributes(to)), op.numbers())
    }

    #[test]
    fn an_op_that_is_given_the_numbers_of_another_is_that_op() {
        for [a, b] in pairs() {
            assert_ne!(a.numbers(), b.numbers(), "{a:?}");
            assert_eq!(words(|to| a.hash_structure(to)), words(|to| b.hash_structure(to)), "{a:?} {b:?}");
            assert_eq!(attributes(&a.with_numbers(&b.numbers())), attributes(&b), "{a:?} {b:?}");
            assert_eq!(attributes(&b.with_numbers(&a.numbers())), attributes(&a), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_attributes_of_an_op_without_numbers_are_its_structure() {
        for op in plain() {
            assert_eq!(op.numbers(), Numbers::new(), "{op:?}");
            assert_eq!(words(|to| op.hash_structure(to)), words(|to| op.hash_attributes(to)), "{op:?}");
            assert_eq!(attributes(&op.with_numbers(&[])), attributes(&op), "{op:?}");
        }
    }
}
