//! Counters of events in a runtime. Each is increased at the one place where the event happens.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of one runtime.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: AtomicU64,)*
            elsewhere: Mutex<BTreeMap<String, u64>>,
        }

        /// A reading of all counters.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Ops that ran on another device than the one asked for, by reason.
            pub elsewhere: BTreeMap<String, u64>,
        }

        impl Counters {
            /// Reads all counters.
            pub fn read(&self) -> Stats {
                Stats {
                    $($name: self.$name.load(Relaxed),)*
                    elsewhere: self.elsewhere.lock().clone(),
                }
            }
        }

        impl Stats {
            /// The differences from an earlier reading. Gauges (`*_now` and `*_peak`) keep their values.
            pub fn since(&self, earlier: &Stats) -> Stats {
                let mut elsewhere = self.elsewhere.clone();
                for (reason, count) in &earlier.elsewhere {
                    if let Some(now) = elsewhere.get_mut(reason) {
                        *now -= count;
                    }
                }
                elsewhere.retain(|_, count| *count > 0);
                Stats {
                    $($name: if stringify!($name).ends_with("_now") || stringify!($name).ends_with("_peak") {
                        self.$name
                    } else {
                        self.$name - earlier.$name
                    },)*
                    elsewhere,
                }
            }
        }

        impl fmt::Display for Stats {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:<28} {:>16}", stringify!($name), self.$name)?;)*
                for (reason, count) in &self.elsewhere {
                    writeln!(f, "ran elsewhere: {count} op(s), {reason}")?;
                }
                Ok(())
            }
        }
    };
}

counters! {
    /// GPUs opened, at the start or when one was first needed.
    gpus_opened,
    /// Ops recorded on a tape.
    ops_recorded,
    /// Ops computed at once on tiny host values.
    ops_folded,
    /// Recorded ops that were unreachable when their tape was cut, and were never computed.
    ops_dead,
    /// Values that were lost with their device and computed again.
    values_made_again,
    /// Regions cut.
    regions,
    /// Kernels in plans that were placed.
    kernels,
    /// Dispatches made on a GPU.
    dispatches,
    /// Submissions to a GPU queue.
    submissions,
    /// Kernels run by the host device.
    host_kernels,
    /// Blocks of elements the host device evaluated.
    host_blocks,
    /// Nanoseconds that devices spent on batches; on the host, on their kernels.
    device_ns,
    /// Nanoseconds that those batches were estimated to take.
    estimated_ns,
    /// Regions whose plan came from the cache.
    plan_cache_hits,
    /// Regions that had to be planned.
    plan_cache_misses,
    /// GPU pipelines compiled when something needed them.
    pipelines_compiled,
    /// GPU pipelines compiled before anything needed them (`RuntimeBuilder::warm_up`).
    pipelines_warmed,
    /// Bytes copied from host memory to a device.
    bytes_uploaded,
    /// The part of `bytes_uploaded` that was copied on the host first, to memory that the device reads.
    bytes_staged,
    /// Bytes that kernels read.
    bytes_kernel_read,
    /// Bytes that kernels wrote.
    bytes_kernel_written,
    /// Bytes copied within a device's memory.
    bytes_copied,
    /// Bytes copied from a device to host memory.
    bytes_read_back,
    /// Allocations served from a pool.
    pool_hits,
    /// Allocations for which new memory was allocated.
    pool_misses,
    /// Outputs that reused an input's memory in place.
    reused_in_place,
    /// Segments evicted to host memory.
    evictions,
    /// Bytes evicted.
    bytes_evicted,
    /// Buffers that a single step needed beyond its device's budget.
    beyond_budget,
    /// Bytes that values and pools take on devices now.
    bytes_resident_now,
    /// The largest value of `bytes_resident_now`.
    bytes_resident_peak,
    /// Bytes of free memory that is kept for reuse: in the devices' pools, and in the rings for uploads and readbacks.
    bytes_pooled_now,
    /// Bytes of such memory that were returned to the system because they were unused for a while.
    bytes_returned,
    /// Bytes on their way to GPUs and from them now, of the batches in flight.
    bytes_in_flight_now,
    /// The largest value of `bytes_in_flight_now`.
    bytes_in_flight_peak,
    /// Gathers resolved with data.
    gathers,
    /// Gathers resolved with an error.
    gathers_failed,
}

impl Counters {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Relaxed);
    }

    /// Subtracts from a gauge.
    pub fn take(gauge: &AtomicU64, amount: u64) {
        gauge.fetch_sub(amount, Relaxed);
    }

    /// Counts ops that ran on another device than the one asked for.
    pub fn ran_elsewhere(&self, reason: &str, ops: u64) {
        *self.elsewhere.lock().entry(reason.to_owned()).or_default() += ops;
    }

    /// Sets the bytes in flight and their peak.
    pub fn in_flight(&self, bytes: u64, peak: u64) {
        self.bytes_in_flight_now.store(bytes, Relaxed);
        self.bytes_in_flight_peak.fetch_max(peak, Relaxed);
    }

    /// Sets the resident bytes and raises their peak.
    pub fn resident(&self, bytes: u64, peak: u64) {
        self.bytes_resident_now.store(bytes, Relaxed);
        self.bytes_resident_peak.fetch_max(peak, Relaxed);
    }
}
