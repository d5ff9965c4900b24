//! A runtime's settings, as the builder collects them.

use crate::injection::Injection;
use crate::kernels::target::Precision;
use std::path::PathBuf;
use std::time::Duration;

/// Which device runs things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// Each region where it is estimated to finish first; software adapters are ignored.
    #[default]
    Auto,
    /// The CPU's threads.
    Host,
    /// A GPU: the given adapter, or the first that is best.
    Gpu(Option<usize>),
}

/// How the dtypes of an op's operands mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Promotion {
    /// As MATLAB mixes them: f32 beside f64 is f32, an integer array beside 0.5 is computed in f64 and rounded to its
    /// own dtype, and an `i64` is summed in f64.
    #[default]
    Matlab,
    /// What would lose digits or range is refused: the result carries a fault (`ErrorKind::DType`) that names both
    /// dtypes and the cast to write. What loses nothing mixes as before: `u8` beside f32, f32 or `i32` into f64.
    ///
    /// A plain f64 number beside an f32 array is rounded to f32, as a literal is; it is refused where f32 has no such
    /// magnitude. Whole numbers have to be exact in the result's dtype.
    Strict,
}

/// Ops, and bytes that they keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Nodes.
    pub nodes: u64,
    /// Bytes of the records themselves, and of host data that the program has let go of and they read.
    pub bytes: u64,
}

impl Room {
    /// No limit.
    pub const UNLIMITED: Room = Room { nodes: u64::MAX, bytes: u64::MAX };

    /// Whether there is room for so much.
    pub fn holds(self, nodes: u64, bytes: u64) -> bool {
        nodes <= self.nodes && bytes <= self.bytes
    }

    /// How many nodes more there is room for, beside so much that waits.
    pub fn left(self, nodes: u64, bytes: u64) -> u64 {
        if bytes >= self.bytes { 0 } else { self.nodes.saturating_sub(nodes) }
    }
}

/// How long memory lies free before it goes back to the system, by default.
pub const IDLE_RELEASE: Duration = Duration::from_secs(4);

/// Settings of a runtime.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which device.
    pub device: DeviceChoice,
    /// Whether the GPU is opened when something is first to be placed on it; `None`: where the device is `auto`.
    pub open_on_demand: Option<bool>,
    /// Bytes that values may take on the GPU; `None`: most of what the adapter has. A step that needs more by itself
    /// takes more while it runs.
    pub device_budget: Option<u64>,
    /// Bytes that values may take in host memory; `None`: most of what the machine has, less what a GPU that is in the
    /// same memory may take. Upload writers may give out as much
    /// besides. Data that the program brought and the host device reads where it lies does not count.
    pub host_budget: Option<u64>,
    /// Where the timeline is written, if at all.
    pub timeline: Option<PathBuf>,
    /// Threads of the host device and of planning; `None`: one a core.
    pub worker_threads: Option<usize>,
    /// Batches a device may hold at a time, at least 1.
    pub batches_in_flight: u32,
    /// Accuracy of generated arithmetic.
    pub precision: Precision,
    /// Shaders of earlier runs that a GPU compiles when it is opened; `None`: none.
    pub warm_up: Option<usize>,
    /// How dtypes mix in sessions that do not say otherwise.
    pub promotion: Promotion,
    /// Values with at most this many elements, all of whose operands are known on the host, are computed when
    /// they are recorded; 0 turns folding off.
    pub fold_elements_max: usize,
    /// Undemanded nodes a session's tape holds before it is cut.
    pub tape_nodes_max: usize,
    /// Bytes a session's tape may pin before it is cut.
    pub tape_bytes_max: u64,
    /// Recorded ops of all sessions that may wait; `None`: [`OPS_PENDING_MAX`].
    pub ops_pending_max: Option<u64>,
    /// The same of one session; `None`: half of it, or a few tapes where recording is held.
    pub session_ops_pending_max: Option<u64>,
    /// Bytes of host memory that the waiting work of all sessions may keep; `None`: the host's budget, or 1 GiB
    /// where that is less.
    pub bytes_pending_max: Option<u64>,
    /// The same of one session; `None`: all of it, or two tapes' where recording is held.
    pub session_bytes_pending_max: Option<u64>,
    /// A thread of the program's own that records is held where there is no room, in place of an error.
    pub hold_recording: bool,
    /// How long `shutdown` drains, in milliseconds.
    pub drain_ms: u64,
    /// How long memory lies free before it goes back to the system; `None`: as long as the runtime lives.
    pub idle_release: Option<Duration>,
    /// What a test injects.
    #[cfg(any(test, feature = "testing"))]
    pub injection: Injection,
}

/// Recorded ops that may wait, where nobody said how many: their records take about 1.5 GB. A program that records a
/// loop of some millions of ops before it asks for anything is not refused.
pub const OPS_PENDING_MAX: u64 = 16 << 20;

/// Bytes that waiting work may keep at the least, where nobody said how many: a small budget of the host bounds what it
/// computes, not what the program brought.
const BYTES_PENDING_MIN: u64 = 1 << 30;

impl Config {
    /// What a test injects: nothing in a library without the feature `testing`.
    pub fn injection(&self) -> &Injection {
        #[cfg(any(test, feature = "testing"))]
        return &self.injection;
        #[cfg(not(any(test, feature = "testing")))]
        &Injection {}
    }

    /// What may wait of all sessions, where the host's budget has so many bytes.
    pub fn pending_max(&self, host_bytes: u64) -> Room {
        let nodes = self.ops_pending_max.unwrap_or(OPS_PENDING_MAX).max(1);
        Room { nodes, bytes: self.bytes_pending_max.unwrap_or(host_bytes.max(BYTES_PENDING_MIN)).max(1) }
    }

    /// What may wait of one session. A session alone does not take all the room for ops; for bytes it may, so that one
    /// array as large as the budget is not refused. Where recording is held, running ahead by more than a few tapes is
    /// of no use to anybody.
    pub fn session_pending_max(&self, host_bytes: u64) -> Room {
        let all = self.pending_max(host_bytes);
        let usual = if self.hold_recording { self.ring_room() } else { Room { nodes: all.nodes / 2, ..all } };
        Room {
            nodes: self.session_ops_pending_max.unwrap_or(usual.nodes).clamp(1, all.nodes),
            bytes: self.session_bytes_pending_max.unwrap_or(usual.bytes).clamp(1, all.bytes),
        }
    }

    /// How much of one session the scheduler takes in at a time: eight tapes by nodes, two by bytes, so that one is
    /// computed while another is taken in. What a session sends beyond it waits where it costs little.
    pub fn ring_room(&self) -> Room {
        let bytes = self.tape_bytes_max.max(1).saturating_mul(2);
        Room { nodes: 8 * self.tape_nodes_max.max(1) as u64, bytes }
    }

    /// Whether the GPU is opened when something is first to be placed on it, rather than at the start. A program that
    /// leaves the choice to the runtime may never need one; who names a GPU wants to know at the start whether it
    /// works.
    pub fn opens_on_demand(&self) -> bool {
        self.open_on_demand.unwrap_or(self.device == DeviceChoice::Auto)
    }

    /// How often to look for memory that nobody uses: what lies free at one look and was not needed by the next goes.
    pub fn idle_period(&self) -> Option<Duration> {
        self.idle_release.map(|idle| (idle / 2).max(Duration::from_millis(1)))
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            device: DeviceChoice::Auto,
            open_on_demand: None,
            device_budget: None,
            host_budget: None,
            timeline: None,
            worker_threads: None,
            batches_in_flight: 3,
            precision: Precision::Accurate,
            warm_up: None,
            promotion: Promotion::Matlab,
            fold_elements_max: 64,
            tape_nodes_max: 4096,
            tape_bytes_max: 1 << 30,
            ops_pending_max: None,
            session_ops_pending_max: None,
            bytes_pending_max: None,
            session_bytes_pending_max: None,
            hold_recording: false,
            drain_ms: 30_000,
            idle_release: Some(IDLE_RELEASE),
            #[cfg(any(test, feature = "testing"))]
            injection: Injection::default(),
        }
    }
}
