//! Index arithmetic over the lanes of a block, symbolic as far as possible.
//!
//! In: indices of consecutive lanes as runs `start + step * lane`. Out: runs, as long as few are enough, so that a
//! broadcast or a view costs some additions for each block and not a division for each element; otherwise blocks of
//! indices. Conditions on indices are also runs, of 1 and 0.
//!
//! Must hold: a run is exact modulo 2^32, as IR's wrapping arithmetic is.

use crate::kernels::ir::{IndexCompare, IndexOp};

/// Consecutive lanes with a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The number of lanes.
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

/// Appends a run. If it continues the last one, both become one run.
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

/// Calls `f` with the runs of two values of the same lanes, cut where a run of either one ends. Stops and returns false
/// when `f` returns false.
fn in_common(a: &[Piece], b: &[Piece], mut f: impl FnMut(Piece, Piece) -> bool) -> bool {
    let (mut ia, mut ib) = (0, 0);
    let (mut done_a, mut done_b) = (0, 0);
    while ia < a.len() && ib < b.len() {
        let lanes = (a[ia].lanes - done_a).min(b[ib].lanes - done_b);
        let x = Piece { lanes, start: a[ia].at(done_a), step: a[ia].step };
        let y = Piece { lanes, start: b[ib].at(done_b), step: b[ib].step };
        if !f(x, y) {
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

/// Applies an index op to two values of the same lanes. Returns false if more than `limit` runs would be needed; `out`
/// is then meaningless.
pub(super) fn combine(op: IndexOp, a: &[Piece], b: &[Piece], limit: usize, out: &mut Vec<Piece>) -> bool {
    out.clear();
    in_common(a, b, |x, y| combine_piece(op, x, y, limit, out) && out.len() <= limit)
}

/// An index op on two values that are each one line (or one number), given by `(start, step)`. `None` if the result is
/// no line. A block of a column usually needs nothing else.
pub(super) fn combine_lines(op: IndexOp, x: (u32, u32), y: (u32, u32), lanes: usize) -> Option<(u32, u32)> {
    match op {
        IndexOp::Add => Some((x.0.wrapping_add(y.0), x.1.wrapping_add(y.1))),
        IndexOp::Sub => Some((x.0.wrapping_sub(y.0), x.1.wrapping_sub(y.1))),
        IndexOp::Mul if y.1 == 0 => Some((x.0.wrapping_mul(y.0), x.1.wrapping_mul(y.0))),
        IndexOp::Mul if x.1 == 0 => Some((y.0.wrapping_mul(x.0), y.1.wrapping_mul(x.0))),
        IndexOp::Div | IndexOp::Rem | IndexOp::Wrap if y.1 == 0 && y.0 > 0 && x.1 <= 1 => {
            let (quotient, rest) = (x.0 / y.0, x.0 % y.0);
            let last = rest as u64 + x.1 as u64 * (lanes as u64 - 1);
            let stays = last < y.0 as u64 && x.0.checked_add(x.1 * (lanes as u32 - 1)).is_some();
            let result = if op == IndexOp::Div { (quotient, 0) } else { (rest, x.1) };
            stays.then_some(result)
        }
        IndexOp::Mul | IndexOp::Div | IndexOp::Rem | IndexOp::Wrap => None,
    }
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
        IndexOp::Div | IndexOp::Rem | IndexOp::Wrap => {
            return fixed(y) && divide(op != IndexOp::Div, x, y.start, limit, out);
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

/// Appends lanes for which a condition holds, or lanes for which it does not.
fn push_answer(out: &mut Vec<Piece>, lanes: u32, holds: bool) {
    match out.last_mut() {
        _ if lanes == 0 => {}
        Some(last) if last.start == holds as u32 => last.lanes += lanes,
        _ => out.push(Piece { lanes, start: holds as u32, step: 0 }),
    }
}

/// Compares two values of the same lanes: runs of 1 (it holds) and 0. Returns false if more than `limit` runs would be
/// needed; `out` is then meaningless.
pub(super) fn compare(op: IndexCompare, a: &[Piece], b: &[Piece], limit: usize, out: &mut Vec<Piece>) -> bool {
    out.clear();
    in_common(a, b, |x, y| {
        let (mut x, mut y) = (x, y);
        loop {
            let lanes = before_wrap(op, x).min(before_wrap(op, y));
            compare_piece(op, Piece { lanes, ..x }, Piece { lanes, ..y }, out);
            if out.len() > limit {
                return false;
            }
            if lanes == x.lanes {
                return true;
            }
            x = Piece { lanes: x.lanes - lanes, start: x.at(lanes), step: x.step };
            y = Piece { lanes: y.lanes - lanes, start: y.at(lanes), step: y.step };
        }
    })
}

/// An index as a number: signed or unsigned, as the comparison takes it.
fn number(op: IndexCompare, index: u32) -> i64 {
    match op {
        IndexCompare::Less | IndexCompare::Equal => index as i64,
        IndexCompare::SignedLessEqual => index as i32 as i64,
    }
}

/// The number of lanes of a run before its index wraps.
fn before_wrap(op: IndexCompare, p: Piece) -> u32 {
    let (start, step) = (number(op, p.start), p.step as i32 as i64);
    let (least, greatest) = match op {
        IndexCompare::Less | IndexCompare::Equal => (0, u32::MAX as i64),
        IndexCompare::SignedLessEqual => (i32::MIN as i64, i32::MAX as i64),
    };
    let steps = match step {
        0 => return p.lanes,
        1.. => (greatest - start) / step,
        _ => (start - least) / -step,
    };
    p.lanes.min(u32::try_from(steps + 1).unwrap_or(u32::MAX))
}

/// Compares two runs that do not wrap. Their difference is monotonic, so the answer changes at most once, or for
/// equality twice, around one lane.
fn compare_piece(op: IndexCompare, x: Piece, y: Piece, out: &mut Vec<Piece>) {
    let lanes = x.lanes as i64;
    let first = number(op, y.start) - number(op, x.start);
    let step = if x.lanes == 1 { 0 } else { y.step as i32 as i64 - x.step as i32 as i64 };
    let least = match op {
        IndexCompare::Less => 1,
        IndexCompare::SignedLessEqual => 0,
        IndexCompare::Equal => {
            let at = if step != 0 && first % step == 0 { -first / step } else { -1 };
            match (step, (0..lanes).contains(&at)) {
                (0, _) => push_answer(out, x.lanes, first == 0),
                (_, false) => push_answer(out, x.lanes, false),
                (_, true) => {
                    push_answer(out, at as u32, false);
                    push_answer(out, 1, true);
                    push_answer(out, (lanes - at - 1) as u32, false);
                }
            }
            return;
        }
    };
    // The number of lanes before the answer changes.
    let before = match step {
        0 => lanes,
        1.. => (least - first + step - 1).div_euclid(step),
        _ => (first - least).div_euclid(-step) + 1,
    };
    let before = before.clamp(0, lanes) as u32;
    let holds = if step > 0 { false } else { step < 0 || first >= least };
    push_answer(out, before, holds);
    push_answer(out, x.lanes - before, !holds);
}

/// The conjunction of two conditions, in runs of 1 and 0. Returns false as [`compare`] does.
pub(super) fn both(a: &[Piece], b: &[Piece], limit: usize, out: &mut Vec<Piece>) -> bool {
    out.clear();
    in_common(a, b, |x, y| {
        push_answer(out, x.lanes, x.start != 0 && y.start != 0);
        out.len() <= limit
    })
}

/// Calls `f` for each run of an index, cut where a condition changes: with the number of lanes before it, whether the
/// condition holds, and the run.
pub(super) fn where_it_holds(condition: &[Piece], index: &[Piece], mut f: impl FnMut(u32, bool, Piece)) {
    let mut done = 0;
    in_common(condition, index, |on, run| {
        f(done, on.start != 0, run);
        done += run.lanes;
        true
    });
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

/// Quotients or remainders of consecutive indices by a small constant, without a division for each lane.
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

/// Applies an index op to blocks. If `b` has one element, this is the index of all lanes.
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
        (IndexOp::Wrap, _) => zip(a, b, out, |x, d| x.min(x.wrapping_sub(d))),
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
            IndexOp::Rem | IndexOp::Wrap => x % y,
        }
    }

    const OPS: [IndexOp; 6] = [IndexOp::Add, IndexOp::Sub, IndexOp::Mul, IndexOp::Div, IndexOp::Rem, IndexOp::Wrap];

    /// Whether an op takes these operands.
    fn takes(op: IndexOp, a: &[u32], b: &[u32]) -> bool {
        match op {
            IndexOp::Add | IndexOp::Sub | IndexOp::Mul => true,
            IndexOp::Div | IndexOp::Rem => !b.contains(&0),
            IndexOp::Wrap => a.iter().zip(b).all(|(&x, &y)| (x as u64) < 2 * y as u64),
        }
    }

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
                    if !takes(op, &written(a), &written(b)) {
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
    fn comparisons_of_runs_are_those_of_their_lanes() {
        let runs: Vec<Vec<Piece>> = [
            (0, 1),
            (10, 0),
            (9, 0),
            (3, 1),
            (5, 0),
            (50, 0),
            (u32::MAX - 20, 1),
            (u32::MAX - 2, 1),
            (20, 0u32.wrapping_sub(3)),
            (0x7fff_fff0, 2),
            (30, 0u32.wrapping_sub(1)),
        ]
        .into_iter()
        .map(|(start, step)| vec![Piece { lanes: 40, start, step }])
        .chain([vec![Piece { lanes: 13, start: 4, step: 2 }, Piece { lanes: 27, start: 1, step: 0 }]])
        .collect();
        let (mut out, mut all) = (Vec::new(), Vec::new());
        for op in [IndexCompare::Less, IndexCompare::Equal, IndexCompare::SignedLessEqual] {
            for a in &runs {
                for b in &runs {
                    assert!(compare(op, a, b, 64, &mut out), "{op:?} {a:?} {b:?}");
                    let lanes = written(a).into_iter().zip(written(b));
                    let expected: Vec<u32> = lanes.map(|(x, y)| compare_one(op, x, y) as u32).collect();
                    assert_eq!(written(&out), expected, "{op:?} {a:?} {b:?}");
                    assert!(out.len() <= 5, "{op:?} {a:?} {b:?} takes {} runs", out.len());
                    all.push(out.clone());
                }
            }
        }
        for a in &all {
            let b = &all[all.len() / 3];
            assert!(both(a, b, 64, &mut out));
            let expected: Vec<u32> = written(a).iter().zip(written(b)).map(|(x, y)| x & y).collect();
            assert_eq!(written(&out), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn lines_that_stay_lines_are_combined_as_their_lanes() {
        let lines = [(0, 1), (7, 0), (499, 1), (1000, 0u32.wrapping_sub(3)), (u32::MAX - 3, 1), (500, 0)];
        for op in OPS {
            for x in lines {
                for y in lines {
                    let lanes = |(start, step): (u32, u32)| written(&[Piece { lanes: 9, start, step }]);
                    if !takes(op, &lanes(x), &lanes(y)) {
                        continue;
                    }
                    let Some((start, step)) = combine_lines(op, x, y, 9) else { continue };
                    let expected: Vec<u32> = lanes(x).iter().zip(lanes(y)).map(|(&x, y)| one(op, x, y)).collect();
                    assert_eq!(lanes((start, step)), expected, "{op:?} {x:?} {y:?}");
                }
            }
        }
    }
}
