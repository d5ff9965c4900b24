//! The value of an instruction over the lanes of a block, and how a frame keeps it.

use crate::graph::{DType, Scalar};

/// An instruction's value over the lanes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Not computed.
    Absent,
    /// A number that is the same for all lanes.
    Scalar(Scalar),
    /// An index (u32) that moves by `step` from lane to lane.
    Line {
        /// The index of the first lane.
        start: u32,
        /// The difference from lane to lane, in two's complement. It is not 0.
        step: u32,
    },
    /// An index in runs, or a condition in runs of 1 and 0. `Arena::pieces` holds the runs of the instruction.
    Pieces,
    /// The address of a block, which has an element for each lane.
    Block(*const u8),
}

impl Value {
    /// An index that moves by `step` from lane to lane: a line, or a number if `step` is 0.
    pub fn line(start: u32, step: u32) -> Value {
        if step == 0 { Value::Scalar(Scalar::U32(start)) } else { Value::Line { start, step } }
    }

    /// Start and step of an index that is a line or a number. `None` for other values.
    pub fn as_line(self) -> Option<(u32, u32)> {
        match self {
            Value::Scalar(Scalar::U32(start)) => Some((start, 0)),
            Value::Line { start, step } => Some((start, step)),
            _ => None,
        }
    }
}

/// A value in two words, which are stored and loaded separately. If a value is stored in parts and soon loaded as a
/// whole, the core cannot forward the stores: the load waits until all earlier stores, also those of the last block's
/// results, are in the cache.
#[derive(Clone, Copy)]
pub(super) struct Words {
    kind: u64,
    word: u64,
}

impl Words {
    const ABSENT: u64 = 0;
    const PIECES: u64 = 1;
    const BLOCK: u64 = 2;
    const LINE: u64 = 3;
    /// The kind of numbers of the first dtype. The kinds of the other dtypes follow.
    const SCALAR: u64 = 4;

    /// The words of a value.
    #[inline(always)]
    pub fn of(value: Value) -> Words {
        match value {
            Value::Absent => Words { kind: Words::ABSENT, word: 0 },
            Value::Pieces => Words { kind: Words::PIECES, word: 0 },
            Value::Block(at) => Words { kind: Words::BLOCK, word: at.expose_provenance() as u64 },
            Value::Line { start, step } => Words { kind: Words::LINE, word: start as u64 | (step as u64) << 32 },
            Value::Scalar(scalar) => Words { kind: Words::SCALAR + scalar.dtype() as u64, word: scalar.bits() },
        }
    }

    /// The value.
    #[inline(always)]
    pub fn value(self) -> Value {
        match self.kind {
            Words::ABSENT => Value::Absent,
            Words::PIECES => Value::Pieces,
            Words::BLOCK => Value::Block(std::ptr::with_exposed_provenance(self.word as usize)),
            Words::LINE => Value::Line { start: self.word as u32, step: (self.word >> 32) as u32 },
            kind => Value::Scalar(Scalar::from_bits(DType::ALL[(kind - Words::SCALAR) as usize], self.word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_words_is_the_value() {
        let block = [0u8; 4];
        let mut values = vec![
            Value::Absent,
            Value::Pieces,
            Value::Block(block.as_ptr()),
            Value::Line { start: 7, step: u32::MAX },
            Value::Line { start: u32::MAX, step: 1 },
        ];
        for dtype in DType::ALL {
            values.extend([0, 1, 0x8000_0000_0000_0001].map(|bits| Value::Scalar(Scalar::from_bits(dtype, bits))));
        }
        for value in values {
            assert_eq!(format!("{:?}", Words::of(value).value()), format!("{value:?}"));
        }
    }
}
