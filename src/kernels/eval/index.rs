//! Index arithmetic over the lanes of a block.
//!
//! In: indices of consecutive lanes as runs `start + step * lane`. Out: the same, as long as few runs say
//! it, so that a broadcast or a view costs some additions a block and not a division an element; else
//! blocks of indices.
//!
//! Must hold: a run is exact modulo 2^32, as IR's wrapping arithmetic is.

use crate::kernels::ir::{IndexCompare, IndexOp};

/// Consecutive lanes with a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// How many.
    pub lanes: u32,
    /// The first lane's index.
    pub start: u32,
    /// The distance to the next lane's, two's complement.
    pub step: u32,
}

impl Piece {
    /// The index of its last lane, if none of its lanes wraps.
    fn last(self) -> Option<u32> {
        let last = self.start as i64 + self.step as i32 as i64 * (self.lanes as i64 - 1);
        u32::try_from(last).ok()
    }

    fn at(self, lane: u32) -> u32 {
        self.start.wrapping_add(self.step.wrapping_mul(lane))
    }
}

/// Appends a run, joined to the one before where it continues it.
fn push(out: &mut Vec<Piece>, piece: Piece) {
    if let Some(last) = out.last_mut() {
        let step = piece.start.wrapping_sub(last.at(last.lanes - 1));
        if (last.lanes == 1 || last.step == step) && (piece.lanes == 1 || piece.step == step) {
            last.step = step;
            last.lanes += piece.lanes;
            return;
        }
    }
    out.push(piece);
}

/// Applies an index op to two values of the same lanes. False where more than `limit` runs would be needed;
/// `out` is then meaningless.
pub(super) fn combine(op: IndexOp, a: &[Piece], b: &[Piece], limit: usize, out: &mut Vec<Piece>) -> bool {
    out.clear();
    let (mut ia, mut ib) = (0, 0);
    let (mut done_a, mut done_b) = (0, 0);
    while ia < a.len() && ib < b.len() {
        let lanes = (a[ia].lanes - done_a).min(b[ib].lanes - done_b);
        let x = Piece { lanes, start: a[ia].at(done_a), step: a[ia].step };
        let y = Piece { lanes, start: b[ib].at(done_b), step: b[ib].step };
        if !combine_piece(op, x, y, limit, out) || out.len() > limit {
            return false;
        }
        done_a += lanes;
        done_b += lanes;
        if done_a == a[ia].lanes {
            (ia, done_a) = (ia + 1, 0);
        }
        if done_b == b[ib].lanes {
            (ib, done_b) = (ib + 1, 0);
        }
    }
    true
}

fn combine_piece(op: IndexOp, x: Piece, y: Piece, limit: usize, out: &mut Vec<Piece>) -> bool {
    let lanes = x.lanes;
    let fixed = |p: Piece| p.step == 0 || p.lanes == 1;
    match op {
        IndexOp::Add => {
            push(out, Piece { lanes, start: x.start.wrapping_add(y.start), step: x.step.wrapping_add(y.step) });
        }
        IndexOp::Sub => {
            push(out, Piece { lanes, start: x.start.wrapping_sub(y.start), step: x.step.wrapping_sub(y.step) });
        }
        IndexOp::Mul => {
            let (run, factor) = if fixed(y) { (x, y.start) } else { (y, x.start) };
            if !fixed(x) && !fixed(y) {
                return false;
            }
            let (start, step) = (run.start.wrapping_mul(factor), run.step.wrapping_mul(factor));
            push(out, Piece { lanes, start, step });
        }
        IndexOp::Div | IndexOp::Rem => {
            return fixed(y) && divide(op == IndexOp::Rem, x, y.start, limit, out);
        }
    }
    true
}

/// Quotients (or remainders) of a run by a constant: a run for each quotient.
fn divide(remainder: bool, x: Piece, divisor: u32, limit: usize, out: &mut Vec<Piece>) -> bool {
    let d = divisor.max(1) as i64;
    let step = x.step as i32 as i64;
    if x.lanes == 1 || step == 0 {
        let start = if remainder { x.start % divisor.max(1) } else { x.start / divisor.max(1) };
        push(out, Piece { lanes: x.lanes, start, step: 0 });
        return true;
    }
    if x.last().is_none() || step.abs() >= d {
        return false;
    }
    let (mut at, mut left) = (x.start as i64, x.lanes as i64);
    while left > 0 {
        let quotient = at / d;
        let room = if step > 0 { ((quotient + 1) * d - at + step - 1) / step } else { (at - quotient * d) / -step + 1 };
        let lanes = room.min(left);
        let (start, by) = if remainder { ((at - quotient * d) as u32, x.step) } else { (quotient as u32, 0) };
        push(out, Piece { lanes: lanes as u32, start, step: by });
        if out.len() > limit {
            return false;
        }
        at += step * lanes;
        left -= lanes;
    }
    true
}

/// The comparison of two runs, where it is the same for all lanes.
pub(super) fn compare(op: IndexCompare, a: &[Piece], b: &[Piece]) -> Option<bool> {
    let ([x], [y]) = (a, b) else { return None };
    let still = |p: &Piece| p.step == 0 || p.lanes == 1;
    if still(x) && still(y) {
        return Some(compare_one(op, x.start, y.start));
    }
    match op {
        // Both move without wrapping: their difference moves one way, so the ends decide.
        IndexCompare::Less => {
            let (xl, yl) = (x.last()?, y.last()?);
            let (first, last) = (x.start < y.start, xl < yl);
            (first == last).then_some(first)
        }
        IndexCompare::SignedLessEqual => {
            let (xl, yl) = (signed_last(x)?, signed_last(y)?);
            let (first, last) = (x.start as i32 <= y.start as i32, xl <= yl);
            (first == last).then_some(first)
        }
        IndexCompare::Equal => {
            let (xl, yl) = (x.last()?, y.last()?);
            let (less, greater) = (x.start < y.start && xl < yl, x.start > y.start && xl > yl);
            if x.start == y.start && x.step == y.step { Some(true) } else { (less || greater).then_some(false) }
        }
    }
}

fn signed_last(p: &Piece) -> Option<i32> {
    i32::try_from(p.start as i32 as i64 + p.step as i32 as i64 * (p.lanes as i64 - 1)).ok()
}

/// The comparison of two indices.
pub(super) fn compare_one(op: IndexCompare, a: u32, b: u32) -> bool {
    match op {
        IndexCompare::Less => a < b,
        IndexCompare::Equal => a == b,
        IndexCompare::SignedLessEqual => a as i32 <= b as i32,
    }
}

/// Writes runs out as indices.
pub(super) fn write_pieces(pieces: &[Piece], out: &mut [u32]) {
    let mut rest = out;
    for piece in pieces {
        let (head, tail) = rest.split_at_mut(piece.lanes as usize);
        match piece.step {
            0 => head.fill(piece.start),
            _ => {
                for (lane, slot) in head.iter_mut().enumerate() {
                    *slot = piece.at(lane as u32);
                }
            }
        }
        rest = tail;
    }
}

/// Quotients or remainders of consecutive indices by a small constant, without a division a lane.
pub(super) fn divide_consecutive(remainder: bool, start: u32, divisor: u32, out: &mut [u32]) {
    let (mut q, mut r) = (start / divisor, start % divisor);
    for slot in out {
        *slot = if remainder { r } else { q };
        r += 1;
        if r == divisor {
            r = 0;
            q += 1;
        }
    }
}

/// Applies an index op to blocks; `b` is one index for all lanes where it has one element.
pub(super) fn combine_blocks(op: IndexOp, a: &[u32], b: &[u32], out: &mut [u32]) {
    match (op, b) {
        (IndexOp::Add, _) => zip(a, b, out, u32::wrapping_add),
        (IndexOp::Sub, _) => zip(a, b, out, u32::wrapping_sub),
        (IndexOp::Mul, _) => zip(a, b, out, u32::wrapping_mul),
        (IndexOp::Div, &[d]) if d > 1 => {
            let magic = u64::MAX / d as u64 + 1;
            for (slot, &x) in out.iter_mut().zip(a) {
                *slot = quotient(magic, x);
            }
        }
        (IndexOp::Rem, &[d]) if d > 1 => {
            let magic = u64::MAX / d as u64 + 1;
            for (slot, &x) in out.iter_mut().zip(a) {
                *slot = x - quotient(magic, x) * d;
            }
        }
        (IndexOp::Div, _) => zip(a, b, out, |x, d| x / d.max(1)),
        (IndexOp::Rem, _) => zip(a, b, out, |x, d| x % d.max(1)),
    }
}

/// `x / d` for `magic = ceil(2^64 / d)`, `d > 1`: exact for 32-bit numbers (Lemire, Kaser, Kurz: "Faster
/// remainder by direct computation", 2019).
fn quotient(magic: u64, x: u32) -> u32 {
    ((magic as u128 * x as u128) >> 64) as u32
}

fn zip(a: &[u32], b: &[u32], out: &mut [u32], f: impl Fn(u32, u32) -> u32) {
    if let &[b] = b {
        for (slot, &x) in out.iter_mut().zip(a) {
            *slot = f(x, b);
        }
    } else {
        for ((slot, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *slot = f(x, y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[Piece]) -> Vec<u32> {
        let lanes: u32 = pieces.iter().map(|p| p.lanes).sum();
        let mut out = vec![0; lanes as usize];
        write_pieces(pieces, &mut out);
        out
    }

    fn one(op: IndexOp, x: u32, y: u32) -> u32 {
        match op {
            IndexOp::Add => x.wrapping_add(y),
            IndexOp::Sub => x.wrapping_sub(y),
            IndexOp::Mul => x.wrapping_mul(y),
            IndexOp::Div => x / y,
            IndexOp::Rem => x % y,
        }
    }

    const OPS: [IndexOp; 5] = [IndexOp::Add, IndexOp::Sub, IndexOp::Mul, IndexOp::Div, IndexOp::Rem];

    #[test]
    fn runs_agree_with_index_arithmetic_lane_by_lane() {
        let runs: Vec<Vec<Piece>> = vec![
            vec![Piece { lanes: 100, start: 0, step: 1 }],
            vec![Piece { lanes: 100, start: 7, step: 0 }],
            vec![Piece { lanes: 100, start: 1000, step: 0u32.wrapping_sub(3) }],
            vec![Piece { lanes: 40, start: 5, step: 2 }, Piece { lanes: 60, start: 90, step: 0 }],
            vec![Piece { lanes: 100, start: u32::MAX - 20, step: 1 }],
            vec![Piece { lanes: 1, start: 3, step: 9 }, Piece { lanes: 99, start: 4_000_000_000, step: 1 }],
        ];
        let mut combined = 0;
        for op in OPS {
            for a in &runs {
                for b in &runs {
                    if matches!(op, IndexOp::Div | IndexOp::Rem) && written(b).contains(&0) {
                        continue;
                    }
                    let mut out = Vec::new();
                    let expected: Vec<u32> = written(a).iter().zip(written(b)).map(|(&x, y)| one(op, x, y)).collect();
                    if combine(op, a, b, 64, &mut out) {
                        assert_eq!(written(&out), expected, "{op:?} {a:?} {b:?}");
                        combined += 1;
                    }
                    let mut block = vec![0; 100];
                    combine_blocks(op, &written(a), &written(b), &mut block);
                    assert_eq!(block, expected, "blocks: {op:?} {a:?} {b:?}");
                }
            }
        }
        assert!(combined > 60, "most of these stay runs: {combined}");
    }

    #[test]
    fn quotient_and_remainder_by_a_column_height_take_a_run_a_column_and_join_again() {
        let flat = [Piece { lanes: 1024, start: 2048, step: 1 }];
        let height = [Piece { lanes: 1024, start: 300, step: 0 }];
        let (mut q, mut r, mut back, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        assert!(combine(IndexOp::Div, &flat, &height, 64, &mut q));
        assert!(combine(IndexOp::Rem, &flat, &height, 64, &mut r));
        assert_eq!(q.len(), 5);
        assert_eq!(r[0], Piece { lanes: 52, start: 248, step: 1 });
        assert!(combine(IndexOp::Mul, &q, &height, 64, &mut back));
        assert!(combine(IndexOp::Add, &back, &r, 64, &mut all));
        assert_eq!(all, flat);
    }

    #[test]
    fn division_by_a_constant_is_exact_at_the_edges() {
        let xs = [0, 1, 2, 6, 7, 8, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX - 1, u32::MAX];
        for d in [1, 2, 3, 7, 10, 641, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX - 1, u32::MAX] {
            let mut out = [0; 11];
            combine_blocks(IndexOp::Div, &xs, &[d], &mut out);
            assert_eq!(out, xs.map(|x| x / d), "/{d}");
            combine_blocks(IndexOp::Rem, &xs, &[d], &mut out);
            assert_eq!(out, xs.map(|x| x % d), "%{d}");
        }
        let mut out = [0; 9];
        divide_consecutive(false, 5, 3, &mut out);
        assert_eq!(out, [1, 2, 2, 2, 3, 3, 3, 4, 4]);
        divide_consecutive(true, 5, 3, &mut out);
        assert_eq!(out, [2, 0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_comparison_is_decided_by_the_ends_only_where_all_lanes_agree() {
        let run = |start: u32, step: u32| [Piece { lanes: 10, start, step }];
        assert_eq!(compare(IndexCompare::Less, &run(0, 1), &run(10, 0)), Some(true));
        assert_eq!(compare(IndexCompare::Less, &run(0, 1), &run(9, 0)), None);
        assert_eq!(compare(IndexCompare::Less, &run(10, 1), &run(10, 0)), Some(false));
        assert_eq!(compare(IndexCompare::Equal, &run(3, 1), &run(3, 1)), Some(true));
        assert_eq!(compare(IndexCompare::Equal, &run(3, 1), &run(5, 0)), None);
        assert_eq!(compare(IndexCompare::Equal, &run(3, 1), &run(50, 0)), Some(false));
        assert_eq!(compare(IndexCompare::SignedLessEqual, &run(u32::MAX - 20, 1), &run(0, 0)), Some(true));
        assert_eq!(compare(IndexCompare::SignedLessEqual, &run(u32::MAX - 2, 1), &run(0, 0)), None);
    }
}
