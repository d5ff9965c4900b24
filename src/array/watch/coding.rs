//! Numbers, dtypes and shapes as bytes.

use crate::graph::{DType, Meta, Scalar, Shape};
use smallvec::SmallVec;

/// Appends a number: seven bits a byte, the low ones first. The highest bit says that another byte follows; a ninth
/// byte is the last one and holds eight bits.
pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    for _ in 0..8 {
        if number < 0x80 {
            break;
        }
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Takes a number.
pub(super) fn take(from: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = from.split_first() {
        *from = rest;
        if byte < 0x80 || shift == 56 {
            number |= u64::from(byte) << shift;
            break;
        }
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
    }
    number
}

/// Appends a dtype and a shape with its axes.
pub(super) fn put_meta(to: &mut Vec<u8>, meta: &Meta) {
    let dims = meta.shape.dims();
    put(to, dtype_code(meta.dtype));
    put(to, meta.shape.axes() as u64);
    put(to, dims.len() as u64);
    dims.iter().for_each(|&extent| put(to, extent as u64));
}

/// Takes a dtype and a shape.
pub(super) fn take_meta(from: &mut &[u8]) -> Meta {
    let (dtype, axes) = (dtype_of(take(from)), take(from) as usize);
    let dims: SmallVec<[usize; 4]> = (0..take(from)).map(|_| take(from) as usize).collect();
    let shape = Shape::new(&dims).expect("SHAPE-1: these are the extents of a shape");
    Meta { dtype, shape: shape.with_axes(axes) }
}

/// The place of a dtype among all.
pub(super) fn dtype_code(dtype: DType) -> u64 {
    dtype as u64
}

/// The dtype at a place.
pub(super) fn dtype_of(code: u64) -> DType {
    DType::ALL[code as usize]
}

/// The bits of a number, such that those of short fractions are small.
pub(super) fn bits(number: Scalar) -> u64 {
    match number {
        Scalar::F64(number) => number.to_bits().swap_bytes(),
        Scalar::F32(number) => number.to_bits().swap_bytes().into(),
        Scalar::Bool(_) | Scalar::U8(_) | Scalar::I32(_) | Scalar::U32(_) | Scalar::I64(_) => number.bits(),
    }
}

/// The number of a dtype that has such bits.
pub(super) fn number_of(dtype: DType, bits: u64) -> Scalar {
    let bits = match dtype {
        DType::F64 => bits.swap_bytes(),
        DType::F32 => (bits as u32).swap_bytes().into(),
        DType::Bool | DType::U8 | DType::I32 | DType::U32 | DType::I64 => bits,
    };
    Scalar::from_bits(dtype, bits)
}

/// Appends to a list whose capacity grows by an eighth: it never has room for many more items than it holds.
pub(super) fn push_slowly<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 4);
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), (1 << 56) - 1, 1 << 56, 1 << 63, u64::MAX];
        let shapes: [&[usize]; 5] = [&[], &[3], &[2, 0], &[4, 1, 1], &[2, 3, 4, 5]];
        let metas: Vec<Meta> = shapes
            .iter()
            .zip(DType::ALL)
            .map(|(dims, dtype)| Meta { dtype, shape: Shape::new(dims).unwrap() })
            .collect();
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| put(&mut bytes, *number));
        assert_eq!(bytes.len(), 3 + 2 + 2 + 5 + 8 + 3 * 9);
        metas.iter().for_each(|meta| put_meta(&mut bytes, meta));
        let mut from = bytes.as_slice();
        assert_eq!(numbers.map(|_| take(&mut from)), numbers);
        for meta in &metas {
            let taken = take_meta(&mut from);
            assert_eq!((&taken, taken.shape.axes()), (meta, meta.shape.axes()));
        }
        assert!(from.is_empty());
    }

    #[test]
    fn a_dtype_has_a_place_among_all() {
        assert_eq!(DType::ALL.map(|dtype| dtype_of(dtype_code(dtype))), DType::ALL);
    }

    #[test]
    fn a_number_has_its_dtype_and_its_bits_again_and_halves_are_short() {
        let all = [
            Scalar::F32(-0.0),
            Scalar::F32(0.1),
            Scalar::F64(f64::NAN),
            Scalar::F64(-1e-300),
            Scalar::Bool(true),
            Scalar::U8(255),
            Scalar::I32(-7),
            Scalar::U32(u32::MAX),
            Scalar::I64(i64::MIN),
        ];
        for number in all {
            let again = number_of(number.dtype(), bits(number));
            assert_eq!((again.dtype(), again.bits()), (number.dtype(), number.bits()));
        }
        assert!([0.5, 1.0, 2.0, -3.0, 1000.0].iter().all(|&number| bits(Scalar::F64(number)) < 1 << 24));
    }
}
