//! Conversion between row-major and column-major order, on the host.

/// Side of the square that is copied at a time, so that both sides stay in cache.
const TILE: usize = 32;

/// The column-major copy of row-major elements with these extents.
pub(crate) fn to_column_major<T: Copy>(data: &[T], dims: &[usize]) -> Vec<T> {
    let reversed: Vec<usize> = dims.iter().rev().copied().collect();
    to_row_major(data, &reversed)
}

/// The row-major copy of column-major elements with these extents. (The opposite conversion is the same with reversed
/// extents.)
pub(crate) fn to_row_major<T: Copy>(data: &[T], dims: &[usize]) -> Vec<T> {
    let wide = dims.iter().filter(|&&n| n != 1).count();
    if wide < 2 || data.is_empty() {
        return data.to_vec();
    }
    let mut out = data.to_vec();
    let rank = dims.len();
    let mut strides = vec![1; rank];
    for d in (0..rank - 1).rev() {
        strides[d] = strides[d + 1] * dims[d + 1];
    }
    // The first dimension is contiguous in the source and the last in the result. These two are copied in tiles, the
    // other dimensions one index at a time.
    let (rows, columns) = (dims[0], dims[rank - 1]);
    let middle: usize = dims[1..rank - 1].iter().product();
    for m in 0..middle {
        let mut rest = m;
        let (mut from_base, mut to_base, mut from_stride) = (0, 0, rows);
        for d in 1..rank - 1 {
            let c = rest % dims[d];
            rest /= dims[d];
            from_base += c * from_stride;
            to_base += c * strides[d];
            from_stride *= dims[d];
        }
        for r0 in (0..rows).step_by(TILE) {
            for c0 in (0..columns).step_by(TILE) {
                for r in r0..(r0 + TILE).min(rows) {
                    for c in c0..(c0 + TILE).min(columns) {
                        out[to_base + r * strides[0] + c] = data[from_base + r + c * from_stride];
                    }
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_convert_both_ways() {
        let column_major: Vec<u32> = (0..24).collect();
        let row_major = to_row_major(&column_major, &[2, 3, 4]);
        // Element (i, j, k) is i + 2j + 6k in column-major order.
        assert_eq!(row_major[..5], [0, 6, 12, 18, 2]);
        assert_eq!(to_column_major(&row_major, &[2, 3, 4]), column_major);
        assert_eq!(to_column_major(&[1, 2, 3, 4, 5, 6], &[2, 3]), [1, 4, 2, 5, 3, 6]);
        let large: Vec<u32> = (0..100 * 70).collect();
        assert_eq!(to_column_major(&to_row_major(&large, &[100, 70]), &[100, 70]), large);
    }
}
