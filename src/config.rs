//! The settings of a runtime.

use crate::injection::Injection;
use crate::kernels::target::Precision;
use std::path::PathBuf;
use std::time::Duration;

/// The device on which a runtime runs ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// Each region where it is estimated to finish first; software adapters are ignored.
    #[default]
    Auto,
    /// The host: threads of the CPU.
    Host,
    /// A GPU: the adapter of this number, or else the best one.
    Gpu(Option<usize>),
}

/// How the dtypes of an op's operands mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Promotion {
    /// As in MATLAB: f32 with f64 gives f32; an integer array with 0.5 is computed in f64 and rounded to its own dtype;
    /// an `i64` array is summed in f64.
    #[default]
    Matlab,
    /// A mix that would lose digits or range is refused: the result carries an error (`ErrorKind::DType`) that names
    /// both dtypes and the cast to write. A mix that loses nothing works as in `Matlab`: `u8` with f32, f32 or `i32`
    /// with f64.
    ///
    /// A plain f64 number with an f32 array is rounded to f32, like a literal; it is refused if it is out of the range
    /// of f32. Whole numbers have to be exact in the result's dtype.
    Strict,
}

/// A limit on waiting work: ops, and the bytes that they keep alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Ops.
    pub nodes: u64,
    /// Bytes of the records themselves, and of host data that the program has dropped and that they read.
    pub bytes: u64,
}

impl Room {
    /// No limit.
    pub const UNLIMITED: Room = Room { nodes: u64::MAX, bytes: u64::MAX };

    /// Whether this much is within the limit.
    pub fn holds(self, nodes: u64, bytes: u64) -> bool {
        nodes <= self.nodes && bytes <= self.bytes
    }

    /// The number of further nodes for which there is room, while `nodes` and `bytes` wait.
    pub fn room_left(self, nodes: u64, bytes: u64) -> u64 {
        if bytes >= self.bytes { 0 } else { self.nodes.saturating_sub(nodes) }
    }
}

/// Default of `idle_release`: how long memory is unused before it is returned to the system.
pub const IDLE_RELEASE: Duration = Duration::from_secs(4);

/// Settings of a runtime.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device on which ops run.
    pub device: DeviceChoice,
    /// Whether the GPU is opened only when work could be worth it. `None`: yes if the device is `auto`.
    pub open_on_demand: Option<bool>,
    /// Bytes that values may take on the GPU; `None`: most of the adapter's memory. A single step that needs more takes
    /// more while it runs.
    pub device_budget: Option<u64>,
    /// Bytes that values may take in host memory; `None`: most of the machine's memory, less the share of a GPU that
    /// uses the same memory. Upload writers may take as much in addition. Data of the program that the host device
    /// reads in place does not count.
    pub host_budget: Option<u64>,
    /// Where the timeline is written, if at all.
    pub timeline: Option<PathBuf>,
    /// Threads of the host device, and most threads that compile kernels or copy to a GPU; `None`: one for each core.
    pub worker_threads: Option<usize>,
    /// Batches a device may hold at a time, at least 1.
    pub batches_in_flight: u32,
    /// Accuracy of generated arithmetic.
    pub precision: Precision,
    /// Shaders of earlier runs that a GPU compiles when it is opened; `None`: none.
    pub warm_up: Option<usize>,
    /// How dtypes mix, unless a session sets it.
    pub promotion: Promotion,
    /// Values with at most this many elements, all of whose operands are known on the host, are computed when
    /// they are recorded; 0 turns folding off.
    pub fold_elements_max: usize,
    /// Undemanded nodes a session's tape holds before it is cut.
    pub tape_nodes_max: usize,
    /// Bytes a session's tape may pin before it is cut.
    pub tape_bytes_max: u64,
    /// Most recorded ops of all sessions that may wait; `None`: [`OPS_PENDING_MAX`].
    pub ops_pending_max: Option<u64>,
    /// Most recorded ops of one session that may wait; `None`: half of `ops_pending_max`, or a few tapes if recording
    /// is held.
    pub session_ops_pending_max: Option<u64>,
    /// Most bytes of host memory that the waiting work of all sessions may keep alive; `None`: the host's budget, but
    /// at least 1 GiB.
    pub bytes_pending_max: Option<u64>,
    /// Most bytes that the waiting work of one session may keep alive; `None`: `bytes_pending_max`, or those of two
    /// tapes if recording is held.
    pub session_bytes_pending_max: Option<u64>,
    /// If there is no room for another op, the recording thread of the program is blocked, instead of an error.
    pub hold_recording: bool,
    /// How long `shutdown` drains, in milliseconds.
    pub drain_ms: u64,
    /// How long memory is unused before it is returned to the system; `None`: it is kept as long as the runtime lives.
    pub idle_release: Option<Duration>,
    /// Faults and holds that a test injects.
    #[cfg(any(test, feature = "testing"))]
    pub injection: Injection,
}

/// Default of `ops_pending_max`. The records of this many ops take about 1.5 GB. A program may record a loop of some
/// millions of ops before it asks for a result.
pub const OPS_PENDING_MAX: u64 = 16 << 20;

/// Least default of `bytes_pending_max`: a small host budget limits the memory of computed values, not the program's
/// own data.
const BYTES_PENDING_MIN: u64 = 1 << 30;

impl Config {
    /// The faults that a test injects; none without the feature `testing`.
    pub fn injection(&self) -> &Injection {
        #[cfg(any(test, feature = "testing"))]
        return &self.injection;
        #[cfg(not(any(test, feature = "testing")))]
        &Injection {}
    }

    /// The limit on the waiting work of all sessions, for a host budget of `host_bytes`.
    pub fn pending_max(&self, host_bytes: u64) -> Room {
        let nodes = self.ops_pending_max.unwrap_or(OPS_PENDING_MAX).max(1);
        Room { nodes, bytes: self.bytes_pending_max.unwrap_or(host_bytes.max(BYTES_PENDING_MIN)).max(1) }
    }

    /// The limit on the waiting work of one session. By default, one session may use half of the room for ops, but all
    /// of the room for bytes, so that one array as large as the budget is accepted. If recording is held, the default
    /// is a few tapes, since running further ahead has no use.
    pub fn session_pending_max(&self, host_bytes: u64) -> Room {
        let all = self.pending_max(host_bytes);
        let usual = if self.hold_recording { self.ring_room() } else { Room { nodes: all.nodes / 2, ..all } };
        Room {
            nodes: self.session_ops_pending_max.unwrap_or(usual.nodes).clamp(1, all.nodes),
            bytes: self.session_bytes_pending_max.unwrap_or(usual.bytes).clamp(1, all.bytes),
        }
    }

    /// The most of one session that the scheduler takes in at a time: eight tapes by nodes, two by bytes, so that one
    /// is computed while another is taken in. Further segments wait in the backlog, where they cost little.
    pub fn ring_room(&self) -> Room {
        let bytes = self.tape_bytes_max.max(1).saturating_mul(2);
        Room { nodes: 8 * self.tape_nodes_max.max(1) as u64, bytes }
    }

    /// Whether the GPU is opened on demand rather than at the start. By default it is with `auto`, since the program
    /// may never need a GPU. A program that names a GPU learns at the start whether it works.
    pub fn opens_on_demand(&self) -> bool {
        self.open_on_demand.unwrap_or(self.device == DeviceChoice::Auto)
    }

    /// The period of `IdlePassed`: half of `idle_release`, since memory is returned that was unused for a whole period.
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
