//! Constants of cost and time by which several parts of the runtime decide what is worth it, each with its unit and
//! with where it comes from.
//!
//! In: nothing. Out: numbers. Must hold: none is measured while the runtime runs, so that decisions do not depend on a
//! clock. Measured constants of a device are its `Costs` (`device.rs`); what ops cost, in simple operations, is in
//! `graph::costs`.

/// Nanoseconds that the ring's thread spends to plan, place, send and end a region. Chosen, not
/// measured. Where jobs are tiny, the ring is what sessions share. It decides turns, and no bit.
pub const RING_REGION_NS: u64 = 10_000;
/// Nanoseconds that each of a region's nodes adds. Chosen in the same way.
pub const RING_NODE_NS: u64 = 300;

/// Estimated nanoseconds that the ring's thread spends on `nodes` nodes that pass through it together.
pub fn ring_ns(nodes: u64) -> u64 {
    RING_REGION_NS + RING_NODE_NS * nodes
}

/// The cost of taking one node through the ring, in elements that could be computed in the same time: chosen,
/// not measured. It decides which lazy values are stored because they were computed often.
pub const RING_NODE_ELEMENTS: u64 = 2048;

/// Most work in a batch before other sessions take a turn on its device, in estimated microseconds. Chosen, long beside
/// a launch. A single step that takes longer is still one batch. A region whose
/// arithmetic takes its device longer than this is long, too, however few its elements: a matrix product, for example.
pub const SLICE_US: f64 = 2000.0;
/// A region that computes this many times the elements of a portion is long: its device is busy with it for a while.
/// Chosen: a portion takes about a millisecond on a slow device.
pub const LONG_PORTIONS: u64 = 4;

/// Most nodes times elements of a loop's region: about a millisecond on a fast device, and on a slow one far less than
/// the two seconds after which some systems reset a device as hung. Chosen by the rates of current GPUs.
pub const LOOP_WORK_MAX: u64 = 1 << 34;

/// A launch on the host that is estimated to take at least this many microseconds runs on a thread of its own, beside
/// others. Chosen. No result depends on it.
pub const LAUNCH_APART_US: f64 = 3000.0;

/// A batch of the host that is estimated to take at most this many microseconds runs on the ring's thread if no other
/// work waits for the ring: waking the device's thread, and being woken by it, would take longer. Chosen: to wake
/// a thread took some 15 us on the host of an H100. No result depends on it.
pub const INLINE_US: f64 = 10.0;
/// The same limit if other work waits: to wake another thread would cost the ring's thread more. Chosen.
pub const INLINE_BUSY_US: f64 = 3.0;
/// Estimated microseconds of a kernel that has almost nothing to compute, on one thread. Chosen, from what current
/// cores do, as are the next two; a device's `Costs` describe all threads of the host together.
pub const INLINE_LAUNCH_US: f64 = 0.5;
/// Estimated microseconds for a byte that a thread copies: 10 GB a second.
pub const COPY_US_PER_BYTE: f64 = 1e-4;
/// Estimated microseconds for a byte that is freed, if its page is returned to the system: some 40 ns for 4 KiB.
pub const FREE_US_PER_BYTE: f64 = 1e-5;

/// Simple operations (`graph::costs`) up to which a device of throughput computes a chain again rather than store it.
/// Arithmetic is idle while memory is read: GPUs do about ten simple operations while they move a byte, and a value
/// that is written out and read again moves eight bytes at the least. Chosen by that.
pub const RECOMPUTED_ON_THROUGHPUT: u32 = 72;
/// The same on a core, which does about one simple operation while it moves a byte to or from its cache. Chosen by
/// that.
pub const RECOMPUTED_ON_CORES: u32 = 5;
/// Simple operations up to which a core computes a chain for every element of a reader that is larger than the chain.
/// But 40 ops are one kernel, whatever functions they are (of an angle: 30). Chosen.
pub const EXPANDED_ON_CORES: u32 = 40 * 30;
