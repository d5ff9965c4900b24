//! Loops over two operands with implicit expansion.

use super::operand::nonconformant;
use crate::error::Flow;
use crate::value::Dims;
use smallvec::SmallVec;

/// The elements and extents of an operand.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a, T> {
    /// The elements, column-major.
    pub data: &'a [T],
    /// The extents; their product is the number of elements.
    pub dims: &'a [usize],
}

/// Returns the extents of both operands expanded against each other. If they do not fit, the error names `what`.
pub(crate) fn expanded(what: &str, a: &[usize], b: &[usize]) -> Flow<Dims> {
    if a == b || b == [1, 1] {
        return Ok(Dims::new(a));
    }
    if a == [1, 1] {
        return Ok(Dims::new(b));
    }
    match Dims::new(a).broadcast(&Dims::new(b)) {
        Some(dims) => Ok(dims),
        None => nonconformant(what, a, b),
    }
}

/// Applies `f` to each pair of elements. `dims` are the extents from [`expanded`].
pub(crate) fn zip<A: Copy, B: Copy, R>(
    a: Side<'_, A>,
    b: Side<'_, B>,
    dims: &[usize],
    f: impl Fn(A, B) -> R,
) -> Vec<R> {
    if a.dims == b.dims {
        return a.data.iter().zip(b.data).map(|(&x, &y)| f(x, y)).collect();
    }
    if let [y] = *b.data
        && a.dims == dims
    {
        return a.data.iter().map(|&x| f(x, y)).collect();
    }
    if let [x] = *a.data
        && b.dims == dims
    {
        return b.data.iter().map(|&y| f(x, y)).collect();
    }
    expand(a, b, dims, f)
}

fn expand<A: Copy, B: Copy, R>(a: Side<'_, A>, b: Side<'_, B>, dims: &[usize], f: impl Fn(A, B) -> R) -> Vec<R> {
    let elements: usize = dims.iter().product();
    let mut out = Vec::with_capacity(elements);
    if elements == 0 {
        return out;
    }
    let (a_steps, b_steps) = (steps(a.dims, dims.len()), steps(b.dims, dims.len()));
    let rows = dims[0];
    let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, dims.len());
    let (mut i, mut j) = (0, 0);
    loop {
        match (a_steps[0], b_steps[0]) {
            (0, _) => out.extend(b.data[j..j + rows].iter().map(|&y| f(a.data[i], y))),
            (_, 0) => out.extend(a.data[i..i + rows].iter().map(|&x| f(x, b.data[j]))),
            _ => out.extend(a.data[i..i + rows].iter().zip(&b.data[j..j + rows]).map(|(&x, &y)| f(x, y))),
        }
        let mut d = 1;
        loop {
            if d >= dims.len() {
                return out;
            }
            at[d] += 1;
            i += a_steps[d];
            j += b_steps[d];
            if at[d] < dims[d] {
                break;
            }
            i -= a_steps[d] * dims[d];
            j -= b_steps[d] * dims[d];
            at[d] = 0;
            d += 1;
        }
    }
}

/// Returns how far an operand moves for one step along each dimension: 0 along those in which it is expanded.
fn steps(dims: &[usize], rank: usize) -> SmallVec<[usize; 4]> {
    let mut stride = 1;
    (0..rank)
        .map(|d| {
            let extent = dims.get(d).copied().unwrap_or(1);
            let step = if extent == 1 { 0 } else { stride };
            stride *= extent;
            step
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_expand_along_every_dimension() {
        let column = Side { data: &[1.0, 2.0], dims: &[2, 1] };
        let row = Side { data: &[10.0, 20.0, 30.0], dims: &[1, 3] };
        let pages = Side { data: &[100.0, 200.0], dims: &[1, 1, 2] };
        assert_eq!(zip(column, row, &[2, 3], |x, y| x + y), [11.0, 12.0, 21.0, 22.0, 31.0, 32.0]);
        assert_eq!(zip(row, pages, &[1, 3, 2], |x, y| x + y), [110.0, 120.0, 130.0, 210.0, 220.0, 230.0]);
        assert_eq!(zip(pages, column, &[2, 1, 2], |x, y| x - y), [99.0, 98.0, 199.0, 198.0]);
    }
}
