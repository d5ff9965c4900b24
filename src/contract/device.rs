//! The description of a device for the other actors: numbers, no handles.
//!
//! Must hold: DEV-1: an actor's behaviour follows from [`Capabilities`], [`Features`] and numbers, never from
//! [`DeviceKind`], which is only for opening a device and for texts. Device 0, the host, owns the host's budget and
//! runs every op. Any device may have any mix of the other capabilities.

use crate::graph::DType;
use crate::graph::costs::Operations;
use crate::ids::DeviceId;
use crate::kernels::target::{FloatProfile, Precision};

/// Host threads or a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// CPU threads.
    Host,
    /// A wgpu adapter.
    Gpu,
}

/// Properties of a device on which the decisions of the scheduler, fusion and residency depend. Any mix is possible,
/// except for device 0 (DEV-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// A kernel is compiled before it runs, which takes long, so numbers are parameters of kernels. Read by fusion
    /// (when to ask for pipelines; how `i64` beside a number is written) and by placement, through
    /// [`DeviceInfo::compiles_f64`].
    pub compiles: bool,
    /// It reads host memory in place, and the host reads its memory: transfers copy no bytes. Read by placement
    /// (transfers cost nothing), fusion (inputs that are lent are not overwritten) and residency (what uploads take,
    /// and the bytes on the link).
    pub shares_host_memory: bool,
    /// Its memory is counted in the host's budget, beside host copies of other devices' values and what front ends
    /// hold. The budget is strict, values are kept in one piece, and nothing is evicted that is not in host memory
    /// anyway. True of device 0 alone. Read by residency.
    pub owns_host_budget: bool,
    /// It runs every op, without limits on what a kernel binds and holds. An op that another device cannot run is
    /// planned for device 0, for which this is true. Read by placement, and by fusion (which steps fit, and what counts
    /// as a binding).
    pub runs_all: bool,
    /// Reductions, scans and library kernels run in parallel parts, whose partial results take scratch memory that the
    /// plan gives them. Read by fusion.
    pub needs_scratch: bool,
    /// Elements that are narrower than 32 bits take 32 bits. Read by all who count bytes, through
    /// [`DeviceInfo::element_bytes`].
    pub pads_narrow_types: bool,
    /// Its arithmetic is idle while memory is read, and it takes millions of elements to keep it busy. Read by fusion
    /// (what is computed again rather than stored) and by the scheduler (how large a portion is).
    pub is_throughput: bool,
    /// A launch that takes long runs beside later batches that share no memory with it. Read by residency (which
    /// memory a short batch takes, and how many long ones are in flight).
    pub overlaps_long: bool,
    /// Its launches are queued: one that reads what an earlier one made does not wait for the host in between, and a
    /// result that the host wants takes a round trip. Read by placement (whether a component pays for a launch).
    pub queues_launches: bool,
}

impl Capabilities {
    /// The capabilities of the devices that this package opens.
    pub const fn of(kind: DeviceKind) -> Capabilities {
        let host = matches!(kind, DeviceKind::Host);
        Capabilities {
            compiles: !host,
            shares_host_memory: host,
            owns_host_budget: host,
            runs_all: host,
            needs_scratch: !host,
            pads_narrow_types: !host,
            is_throughput: !host,
            overlaps_long: host,
            queues_launches: !host,
        }
    }
}

/// The optional features that a device's driver supports. For dtypes, the other actors call [`DeviceInfo::has`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Features {
    /// f64 in kernels.
    pub f64: bool,
    /// i64 in kernels.
    pub i64: bool,
    /// Subgroup operations.
    pub subgroups: bool,
    /// GPU time-stamps.
    pub timestamps: bool,
    /// Mappable device memory.
    pub mappable: bool,
    /// A persistent pipeline cache.
    pub pipeline_cache: bool,
}

/// Measured constants of the cost model. Placement, turns and the estimates of launches multiply them by bytes and by
/// simple operations (`graph::costs`). `device::costs` measures and stores them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Costs {
    /// Microseconds from submission to completion of an empty kernel with its readback.
    pub launch_us: f64,
    /// Microseconds each further dispatch adds.
    pub dispatch_us: f64,
    /// Gigabytes a second of a plain copy kernel, reads and writes counted.
    pub memory_gb_per_s: f64,
    /// Billions of simple f32 operations a second.
    pub f32_gop_per_s: f64,
    /// Billions of simple f64 operations a second; of a device without f64, those of f32.
    pub f64_gop_per_s: f64,
    /// Gigabytes a second from host memory.
    pub upload_gb_per_s: f64,
    /// Gigabytes a second to host memory.
    pub readback_gb_per_s: f64,
}

impl Costs {
    /// Microseconds that simple operations take.
    pub fn arithmetic_us(&self, work: Operations) -> f64 {
        work.other / (self.f32_gop_per_s * 1e3) + work.double / (self.f64_gop_per_s * 1e3)
    }
}

/// The description of a device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its number in this runtime.
    pub id: DeviceId,
    /// Its kind, for opening it and for texts (DEV-1).
    pub kind: DeviceKind,
    /// How it works.
    pub capabilities: Capabilities,
    /// Its name, for errors and `tidemill info`.
    pub name: String,
    /// Driver and API, as text.
    pub driver: String,
    /// It is a software adapter: a CPU that executes the GPU's API.
    pub software: bool,
    /// The features that its driver supports.
    pub features: Features,
    /// The properties of its floating-point arithmetic.
    pub profile: FloatProfile,
    /// Which precision its kernels are generated for.
    pub precision: Precision,
    /// Measured constants.
    pub costs: Costs,
    /// Bytes one binding may span.
    pub binding_bytes_max: u64,
    /// Bytes one buffer may have.
    pub buffer_bytes_max: u64,
    /// Storage buffers one kernel may bind, parameters and fault words included.
    pub bindings_max: u32,
    /// Most invocations of a workgroup that holds whole lines of elements in registers; 0 if no kernel does.
    pub line_invocations_max: u32,
    /// Parameter words that a dispatch may carry as immediates; 0 for none.
    pub immediate_words_max: u32,
    /// Bytes that values may take on it.
    pub budget_bytes: u64,
    /// Bytes that one step may take, also beyond the budget, until it is done. On the host, whose budget is strict, it
    /// equals `budget_bytes`.
    pub memory_bytes: u64,
    /// Whether the program set the budget. The runtime does not change it then.
    pub budget_is_set: bool,
    /// Bytes of the host's budget that this device takes, if its memory is the host's (a software adapter, an
    /// integrated GPU). The host's budget shrinks by as much, unless the program set it.
    pub host_share_bytes: u64,
    /// log2 of the 32-bit elements in a segment: arrays longer than that are kept in several allocations, which come
    /// and go one by one. A tight budget has short segments. [`DeviceInfo::segment_shift_of`] knows other types.
    pub segment_shift: u32,
    /// log2 of the 32-bit elements that one binding spans: at least `segment_shift`, and a function of the device
    /// alone. An array that a kernel uses as a whole is stored in pieces of that many elements.
    /// [`DeviceInfo::span_shift_of`] knows other types.
    pub span_shift: u32,
    /// Slots up to this size are cut from shared slabs; 0 for none.
    pub slab_slot_bytes_max: u64,
    /// Batches it may hold at a time.
    pub batches_in_flight_max: u32,
}

/// The least number of segments that the budget holds, where the program did not set a budget. A tight budget needs
/// more segments, because a kernel uses several at a time. Longer segments have to be joined less often.
pub const SEGMENTS_IN_MEMORY: u64 = 8;

/// `segment_shift` and `span_shift` of a device that keeps every array in one piece.
pub const ONE_PIECE_SHIFT: u32 = 33;

/// log2 of the 32-bit elements that fit into `bytes` bytes, at least 13 and at most 31.
pub fn segment_shift(bytes: u64) -> u32 {
    let elements = (bytes / 4).max(1 << 13);
    // Element indices are 32 bits wide.
    elements.ilog2().min(31)
}

/// log2 of the elements of a type that fit the bytes of `1 << shift` 32-bit elements. Types narrower than 32 bits count
/// as 32 bits, which is their size on a GPU.
pub fn shift_for(shift: u32, dtype: DType) -> u32 {
    shift - u32::from(dtype.is_wide())
}

/// The size of a slab, where the budget is large enough for many of them.
const SLAB_BYTES_MAX: u64 = 4 << 20;
/// A slab takes at most this share of the budget.
const SLABS_MIN: u64 = 64;
/// Smaller slabs would hold too few slots to be useful.
const SLAB_BYTES_MIN: u64 = 1 << 10;

/// Smaller host buffers are copied into a slot of the pool, which costs less than naming them as buffers of their own.
const READ_IN_PLACE_BYTES_MIN: u64 = if cfg!(test) { 1 } else { 64 << 10 };

/// The slabs from which a device's small values get their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slabs {
    /// Bytes of a slab; 0 where there are none.
    pub bytes: u64,
    /// The largest slot that is cut from one.
    pub slot_bytes_max: u64,
}

/// The size of the whole buffer that serves a request: rounded up by at most an eighth (and to 16 bytes).
pub fn size_class(bytes: u64) -> u64 {
    let step = ((1u64 << bytes.max(1).ilog2()) / 8).max(16);
    bytes.max(1).next_multiple_of(step)
}

impl DeviceInfo {
    /// Called on the host, of which `held_bytes` are in use, when another device is opened. Hands over a part of the
    /// host's budget if that device uses the host's memory. The host keeps `held_bytes` and half of the rest. The other
    /// device's budget becomes no larger than the part, unless the program set it. Its `memory_bytes`, and so
    /// placement, do not depend on what the host holds at the moment.
    pub fn leave_to(&mut self, other: &mut DeviceInfo, held_bytes: u64) {
        if other.host_share_bytes == 0 {
            return;
        }
        other.host_share_bytes = other.host_share_bytes.min(self.budget_bytes.saturating_sub(held_bytes) / 2);
        if !other.budget_is_set {
            other.budget_bytes = other.budget_bytes.min(other.host_share_bytes);
            other.segment_shift = other.segment_shift.min(segment_shift(other.budget_bytes / SEGMENTS_IN_MEMORY));
        }
        self.give_up(other.host_share_bytes);
    }

    /// Called on the host: takes the bytes out of its budget for another device.
    pub fn give_up(&mut self, bytes: u64) {
        debug_assert!(self.capabilities.owns_host_budget);
        self.budget_bytes = self.budget_bytes.saturating_sub(bytes);
        self.memory_bytes = self.budget_bytes;
    }

    /// Called on the host: returns bytes to its budget that another device had taken.
    pub fn take_back(&mut self, bytes: u64) {
        debug_assert!(self.capabilities.owns_host_budget);
        self.budget_bytes += bytes;
        self.memory_bytes = self.budget_bytes;
    }

    /// The sizes of its slabs and of their slots.
    pub fn slabs(&self) -> Slabs {
        let share = (self.budget_bytes / SLABS_MIN).max(1);
        let bytes = (1u64 << share.ilog2()).min(SLAB_BYTES_MAX);
        if self.slab_slot_bytes_max == 0 || bytes < SLAB_BYTES_MIN {
            return Slabs { bytes: 0, slot_bytes_max: 0 };
        }
        Slabs { bytes, slot_bytes_max: self.slab_slot_bytes_max.min(bytes / 4) }
    }

    /// Whether the device reads a host buffer of this size in place, without a copy of its own. Such a buffer is never
    /// written.
    pub fn reads_in_place(&self, bytes: u64) -> bool {
        self.capabilities.shares_host_memory && bytes >= READ_IN_PLACE_BYTES_MIN
    }

    /// The size of a whole buffer that serves a request for `bytes`.
    pub fn whole_bytes(&self, bytes: u64) -> u64 {
        size_class(bytes).min(self.buffer_bytes_max).max(bytes)
    }

    /// log2 of the elements of a type in a segment.
    pub fn segment_shift_of(&self, dtype: DType) -> u32 {
        shift_for(self.segment_shift, dtype)
    }

    /// log2 of the elements of a type that one binding spans.
    pub fn span_shift_of(&self, dtype: DType) -> u32 {
        shift_for(self.span_shift, dtype)
    }

    /// Pieces in which a kernel binds all of an array: at least one, also of an empty one.
    pub fn pieces(&self, dtype: DType, elements: u64) -> u64 {
        elements.div_ceil(1 << self.span_shift_of(dtype).min(63)).max(1)
    }

    /// Bytes of memory that an array takes at the most while one step uses all of it, whatever the budget makes of it:
    /// a small one may keep a slab open for itself, a longer one is rounded up by at most an eighth.
    pub fn bytes_at_once(&self, dtype: DType, elements: u64) -> u64 {
        let bytes = elements.saturating_mul(self.element_bytes(dtype));
        bytes.saturating_add(bytes / 8 + 16).max(self.slab_bytes_max())
    }

    /// The same for an array of which a step uses one segment at a time.
    pub fn bytes_in_turn(&self, dtype: DType, elements: u64) -> u64 {
        self.bytes_at_once(dtype, elements.min(1u64 << self.span_shift_of(dtype).min(62)))
    }

    /// Bytes of a slab at the most, under any budget.
    pub fn slab_bytes_max(&self) -> u64 {
        if self.slab_slot_bytes_max == 0 { 0 } else { SLAB_BYTES_MAX }
    }

    /// A device for tests: it has all features, round costs, and memory of the size that the test gives.
    #[cfg(test)]
    pub fn toy(id: DeviceId, kind: DeviceKind) -> DeviceInfo {
        let capabilities = Capabilities::of(kind);
        let segment_shift = if capabilities.owns_host_budget { ONE_PIECE_SHIFT } else { 20 };
        DeviceInfo {
            id,
            kind,
            capabilities,
            name: format!("toy {}", id.0),
            driver: String::new(),
            software: false,
            features: Features {
                f64: true,
                i64: true,
                subgroups: true,
                timestamps: true,
                mappable: true,
                pipeline_cache: true,
            },
            profile: FloatProfile::EXACT,
            precision: Precision::Accurate,
            costs: Costs {
                launch_us: 1.0,
                dispatch_us: 1.0,
                memory_gb_per_s: 1.0,
                f32_gop_per_s: 1.0,
                f64_gop_per_s: 1.0,
                upload_gb_per_s: 1.0,
                readback_gb_per_s: 1.0,
            },
            binding_bytes_max: 1 << 30,
            buffer_bytes_max: 1 << 32,
            bindings_max: 16,
            line_invocations_max: if capabilities.compiles { 1024 } else { 0 },
            immediate_words_max: 0,
            budget_bytes: 1 << 40,
            memory_bytes: 1 << 40,
            budget_is_set: false,
            host_share_bytes: 0,
            segment_shift,
            span_shift: segment_shift,
            slab_slot_bytes_max: 0,
            batches_in_flight_max: 2,
        }
    }

    /// Whether it is a device other than the host, with a budget of its own: what programs call a GPU, and may name. No
    /// actor's behaviour follows from this (DEV-1).
    pub fn is_accelerator(&self) -> bool {
        !self.capabilities.owns_host_budget
    }

    /// Bytes an element takes in this device's memory.
    pub fn element_bytes(&self, dtype: DType) -> u64 {
        let bytes = if self.capabilities.pads_narrow_types { dtype.gpu_bytes() } else { dtype.bytes() };
        bytes as u64
    }

    /// Whether its kernels can compute with this type. f64 needs 64-bit integers, too, which hold its bits.
    pub fn has(&self, dtype: DType) -> bool {
        match dtype {
            DType::F64 => self.features.f64 && self.features.i64,
            DType::I64 => self.features.i64,
            _ => true,
        }
    }

    /// Whether its kernels are compiled, and may hold f64.
    pub fn compiles_f64(&self) -> bool {
        self.capabilities.compiles && self.has(DType::F64)
    }
}
