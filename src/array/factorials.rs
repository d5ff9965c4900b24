//! The gamma function of integers, which are factorials, from a table.
//!
//! In: an array of integers or bools. Out: its gamma function in f64; NaN for negative numbers. There is no gamma
//! function of f64 in WGSL that every compiler keeps exact (`graph::refusals::runs_on_gpus`), but for whole numbers
//! there are only 171 finite values. Must hold: no index is outside of the table, so that no kernel can fault.

use super::handle::Array;
use super::record::{At, Input, apply, cast_in, derive, folds, node, source};
use crate::graph::{DType, ElementOp, Meta, Op, Shape};
use crate::host_buffer::HostBuffer;
use std::sync::LazyLock;

/// The least argument whose value overflows.
const INFINITE: usize = 172;

static TABLE: LazyLock<Vec<f64>> = LazyLock::new(table);

/// The values at -1, 0, 1, ... Below, they are NaN as the first one; above, infinite as the last one. They are
/// correctly rounded: each factorial is computed exactly, and rounded once.
fn table() -> Vec<f64> {
    let mut values = vec![f64::NAN, f64::INFINITY];
    let mut exact = vec![1u64];
    for n in 1..INFINITE as u64 {
        values.push(nearest(&exact));
        let mut carry = 0u128;
        for limb in &mut exact {
            carry += u128::from(*limb) * u128::from(n);
            *limb = carry as u64;
            carry >>= 64;
        }
        if carry > 0 {
            exact.push(carry as u64);
        }
    }
    values.push(f64::INFINITY);
    values
}

/// The double next to a whole number of 64-bit limbs, the lowest first, the highest not zero.
fn nearest(limbs: &[u64]) -> f64 {
    let high = limbs.len() - 1;
    let spare = limbs[high].leading_zeros();
    let below = if high > 0 && spare > 0 { limbs[high - 1] >> (64 - spare) } else { 0 };
    // The leading 64 bits. If lower bits are lost, the last bit is set, which a double has no room for, so that
    // rounding takes them into account.
    let mut top = limbs[high] << spare | below;
    let is_lost = high > 0 && (limbs[high - 1] << spare != 0 || limbs[..high - 1].iter().any(|&limb| limb != 0));
    top |= u64::from(is_lost);
    top as f64 * 2f64.powi(64 * high as i32 - spare as i32)
}

/// The gamma function of an array of integers or bools.
pub(super) fn of(x: &Array, at: At) -> Array {
    derive(&[x], ElementOp::Gamma.name(), at, |home, metas| {
        let meta = Meta { dtype: DType::F64, shape: metas[0].shape.clone() };
        let values = &*TABLE;
        let is_small = folds(home, meta.elements(), x.1);
        if let Some(data) = x.0.host.as_deref().filter(|_| is_small) {
            let at_element = |i: usize| match data.scalar(i).as_f64() {
                below if below < 0.0 => f64::NAN,
                number => values[(number.min(INFINITE as f64) + 1.0) as usize],
            };
            let data = HostBuffer::from_vec((0..data.len()).map(at_element).collect::<Vec<f64>>());
            return Ok(Array::host(home, meta, data, ElementOp::Gamma.name(), at));
        }
        // A cast saturates: a number that does not fit an i32 is beyond the table on the same side.
        let bounded = cast_in(home, x, DType::I32, at);
        let bounded = apply(ElementOp::Min, &mut [(&bounded).into(), (INFINITE as i64).into()], at);
        let bounded = apply(ElementOp::Max, &mut [(&bounded).into(), (-1i64).into()], at);
        let index = apply(ElementOp::Add, &mut [(&bounded).into(), 1i64.into()], at);
        let shape = Shape::new(&[values.len(), 1])?;
        let table = source(home, HostBuffer::from_slice(values), shape, "gamma", at);
        Ok(node(home, Op::Take { dim: None }, &[Input::Last(&table), Input::Last(&index)], meta, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_are_correctly_rounded_and_end_where_doubles_do() {
        let table = table();
        assert!(table[0].is_nan() && table[1] == f64::INFINITY && table.len() == INFINITE + 2);
        assert_eq!(table[2..8], [1.0, 1.0, 2.0, 6.0, 24.0, 120.0]);
        // The double nearest to 22! is the last that is exact.
        assert_eq!((table[24], table[25]), (1.1240007277776077e21, 2.585201673888498e22));
        assert_eq!(table[172], 7.257415615307999e306, "170!");
        assert_eq!(table[173], f64::INFINITY);
    }
}
