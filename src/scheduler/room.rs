//! Computes how much of a device's memory an op needs at a time, however its region is cut into kernels.
//!
//! In: an op, the sizes of its arguments and of its value. Out: bytes of device memory. Must hold: a function of these
//! and of the device's constants alone, so that placement is, too. An array that is read or written at the flat index
//! only passes through the device a segment at a time; all other arrays have to be resident at once.

use super::cut::{Cut, Dep};
use crate::contract::device::DeviceInfo;
use crate::graph::{DType, Meta, Op, OpClass, Reads};
use rustc_hash::FxHashSet;

/// The reason if an op runs on the host because its operands together exceed the device's memory.
pub(super) const NO_ROOM: &str = "its operands do not fit the device's memory together";

/// The reason if an op runs on the host because its kernel would bind too many buffers.
pub(super) const NO_BINDINGS: &str = "its arrays lie in more pieces of memory than a kernel of this device binds";

/// The reason if a factorisation runs on the host because its matrix has too many rows.
pub(super) const TOO_TALL: &str = "its matrix has more rows than the loops of a kernel may take";

/// The reason if an op runs on the host because a GPU cannot count what its kernel needs as scratch.
pub(super) const NO_SCRATCH: &str = "its scratch memory has more than 2^32 words";

/// Whether an op's matrices, if it is a factorisation, have more rows than its kernels take.
pub(super) fn is_too_tall(op: &Op, meta: &Meta) -> bool {
    matches!(op, Op::Linear(linear) if meta.shape.dim(0) > linear.gpu_rows_max())
}

/// The reason if a recurrence runs on the host because of its sizes.
pub(super) const FEW_LONG_LINES: &str = "a recurrence of so few and so long lines is faster on the host";

/// Whether an op is a recurrence of few, long lines.
pub(super) fn has_few_long_lines(op: &Op, meta: &Meta) -> bool {
    let rows = meta.shape.dim(0);
    matches!(op, Op::Linear(linear) if linear.has_few_long_lines(rows, meta.elements() / rows.max(1)))
}

/// The sizes by which an op's needs of memory are counted.
#[derive(Clone, Copy)]
pub(super) struct Sizes<'a> {
    /// The dtypes of its arguments.
    pub dtypes: &'a [DType],
    /// The elements of its arguments.
    pub lengths: &'a [usize],
    /// Its value.
    pub meta: &'a Meta,
    /// 32-bit words of scratch (`kernels::scratch`).
    pub scratch_words: u64,
}

/// Storage buffers that an op in a kernel of its own binds, parameters and fault words included.
pub(super) fn bindings(op: &Op, sizes: Sizes, device: &DeviceInfo) -> u64 {
    let Sizes { dtypes, lengths, meta, scratch_words } = sizes;
    let facts = op.facts();
    let dtype = |n: usize| dtypes.get(n).or(dtypes.first()).copied().unwrap_or(meta.dtype);
    let reads = (0..lengths.len())
        .filter(|&n| facts.reads(n) != Reads::Base)
        .map(|n| device.pieces(dtype(n), lengths[n] as u64));
    let scratch = device.pieces(DType::U32, scratch_words);
    2 + reads.sum::<u64>() + device.pieces(meta.dtype, meta.elements() as u64) + scratch
}

/// Whether a device's memory holds what an op on arrays of these dtypes and lengths uses at a time.
pub(super) fn fits(op: &Op, sizes: Sizes, device: &DeviceInfo) -> bool {
    let Sizes { lengths, meta, scratch_words, .. } = sizes;
    let all = lengths.iter().map(|&n| n as u64).sum::<u64>() + meta.elements() as u64 + scratch_words;
    let slabs = (lengths.len() as u64 + 2) * device.slab_bytes_max();
    // A cheap upper bound, enough for nearly all ops: elements take up to 8 bytes, rounded up by an eighth.
    if all.saturating_mul(9).saturating_add(slabs) <= device.memory_bytes {
        return true;
    }
    bytes_at_a_time(op, sizes, device) <= device.memory_bytes
}

fn bytes_at_a_time(op: &Op, sizes: Sizes, device: &DeviceInfo) -> u64 {
    let Sizes { dtypes, lengths, meta, scratch_words } = sizes;
    let own = meta.elements();
    // On a device, scans, sorts and scatters work on one segment; longer ones run on the host anyway.
    let facts = op.facts();
    let (folds_in_turn, writes_in_turn) = match facts.class {
        OpClass::Element => (false, true),
        OpClass::Reduce => (own == 1, false),
        OpClass::Compact => (true, false),
        OpClass::Scan | OpClass::Patch | OpClass::Library => (false, false),
    };
    let dtype = |n: usize| dtypes.get(n).or(dtypes.first()).copied().unwrap_or(meta.dtype);
    let reads = lengths.iter().enumerate().map(|(n, &length)| {
        let in_turn = match facts.reads(n) {
            Reads::Same | Reads::Expanded | Reads::Index => length == own,
            Reads::Folded => folds_in_turn,
            // The base is overwritten in place and is counted as the op's value.
            Reads::Base => return 0,
            Reads::Number
            | Reads::Moved
            | Reads::Part
            | Reads::Repeated
            | Reads::Joined
            | Reads::Spread
            | Reads::AtIndex
            | Reads::All => false,
        };
        let bytes = if in_turn { DeviceInfo::bytes_in_turn } else { DeviceInfo::bytes_at_once };
        bytes(device, dtype(n), length as u64)
    });
    let bytes = if writes_in_turn { DeviceInfo::bytes_in_turn } else { DeviceInfo::bytes_at_once };
    let scratch = match scratch_words {
        0 => 0,
        words => device.bytes_at_once(DType::U32, words),
    };
    // Partial results and fault words are small.
    reads.sum::<u64>() + bytes(device, meta.dtype, own as u64) + scratch + 2 * device.slab_bytes_max()
}

/// Whether a value of a cut is computed without reading a stored array: random numbers, ranges, and ops on these alone.
pub(super) fn is_made_of_nothing(cut: &Cut, dep: Dep) -> bool {
    let mut work = vec![dep];
    let mut seen = FxHashSet::default();
    while let Some(dep) = work.pop() {
        match dep {
            Dep::Input(_) => return false,
            Dep::Node(p) if seen.insert(p) => work.extend_from_slice(&cut.nodes[p as usize].deps),
            Dep::Node(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::device::DeviceKind;
    use crate::graph::{ElementOp, Nan, ReduceOp, Shape, View};
    use crate::ids::DeviceId;
    use crate::kernels::scratch::scratch_words;

    fn fits_f32(op: &Op, lengths: &[usize], meta: &Meta, device: &DeviceInfo) -> bool {
        let dtypes = &[DType::F32; 2];
        let scratch_words = scratch_words(op, dtypes, lengths, meta).expect("a GPU can count it");
        fits(op, Sizes { dtypes, lengths, meta, scratch_words }, device)
    }

    #[test]
    fn what_passes_in_segments_always_fits_and_what_is_read_elsewhere_must_fit_together() {
        let device =
            DeviceInfo { memory_bytes: 64 << 20, segment_shift: 20, ..DeviceInfo::toy(DeviceId(1), DeviceKind::Gpu) };
        let meta = |dims: &[usize]| Meta { dtype: DType::F32, shape: Shape::new(dims).unwrap() };
        let fits = |op: &Op, lengths: &[usize], meta: &Meta| fits_f32(op, lengths, meta, &device);
        let n = 10 << 20;
        let sum = |dims: u16| Op::Reduce { op: ReduceOp::Sum, dims, nan: Nan::Include };
        assert!(fits(&Op::Apply(ElementOp::Add), &[16 * n, 16 * n], &meta(&[4 * n, 4])));
        assert!(fits(&sum(3), &[16 * n], &meta(&[1, 1])));
        assert!(fits(&sum(1), &[n], &meta(&[1, 4])));
        assert!(!fits(&sum(1), &[2 * n], &meta(&[1, 4])));
        let dot = Op::Reduce { op: ReduceOp::Dot, dims: 1, nan: Nan::Include };
        assert!(!fits(&dot, &[n, n], &meta(&[1, 4])));
        assert!(fits(&Op::View(View::Repmat), &[n], &meta(&[n, 8])));
        assert!(!fits(&Op::Cat { dim: 0 }, &[n, n], &meta(&[2 * n, 1])));
        assert!(!fits(&Op::MatMul, &[n / 2, n / 2], &meta(&[n, 1])));
        assert!(fits(&Op::Take { dim: None }, &[n, 8 * n], &meta(&[8 * n, 1])));
        // Long lines take copies of their keys beside them.
        let sort =
            |len: usize| fits(&Op::ArgSort { dim: 0, descending: false }, &[2 * n / 5], &meta(&[len, 2 * n / 5 / len]));
        assert!(sort(8) && !sort(2 * n / 5));
        // The base, which is the value, and the winners of each place of the extent: none where all get the same.
        let assign = |dim, value: usize| fits(&Op::AssignIndex { dim }, &[n, 4, value], &meta(&[n / 16, 16]));
        assert!(!assign(None, 4) && assign(None, 1) && assign(Some(0), 4 * 16) && assign(Some(1), n / 4));
    }

    #[test]
    fn what_fits_does_not_depend_on_the_budget() {
        let meta = |n: usize| Meta { dtype: DType::F32, shape: Shape::new(&[n, 1]).unwrap() };
        let toy = DeviceInfo::toy(DeviceId(1), DeviceKind::Gpu);
        for n in [10 << 20, 20 << 20, 50 << 20, 70 << 20] {
            let fits = |budget_bytes: u64, segment_shift: u32| {
                let slab_slot_bytes_max = 1 << 16;
                let device = DeviceInfo {
                    budget_bytes,
                    segment_shift,
                    slab_slot_bytes_max,
                    span_shift: 24,
                    memory_bytes: 256 << 20,
                    ..toy.clone()
                };
                let (map, cat) = (Op::Apply(ElementOp::Add), Op::Cat { dim: 0 });
                [(map, n), (cat, 2 * n)].map(|(op, to)| fits_f32(&op, &[n, n], &meta(to), &device))
            };
            let free = fits(256 << 20, 24);
            assert!(
                [fits(64 << 20, 19), fits(4 << 20, 15), fits(1 << 10, 12)].iter().all(|tight| *tight == free),
                "{n}"
            );
        }
    }
}
