//! What a test asked for.

use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Faults and holds that tests inject into a device; none by default.
#[derive(Clone, Debug, Default)]
pub struct Injection {
    /// The device is lost when it would run its batch of this number (counted from 0).
    pub lose_device_at_batch: Option<u64>,
    /// Every batch whose number (counted from 1) is a multiple of this loses the device instead of running.
    pub lose_device_every: Option<u64>,
    /// A worker panics in the batch of this number.
    pub panic_at_batch: Option<u64>,
    /// A GPU's completion thread panics over the batch of this number that was submitted.
    pub panic_in_completion_at_batch: Option<u64>,
    /// A GPU's completion thread ends over that batch.
    pub end_completion_at_batch: Option<u64>,
    /// A poll of the GPU panics while that batch is waited for; the device is healthy.
    pub panic_in_poll_at_batch: Option<u64>,
    /// The GPU is found lost while that batch is waited for.
    pub lose_device_in_completion_at_batch: Option<u64>,
    /// The batch of this number fails with an out-of-memory error.
    pub out_of_memory_at_batch: Option<u64>,
    /// Work that a batch holds before others have their turn, in estimated microseconds, in place of two milliseconds.
    pub slice_us: Option<f64>,
    /// On the host, a launch that is estimated to take so many microseconds runs beside others, in place of three
    /// milliseconds.
    pub long_launch_us: Option<f64>,
    /// The first launch that the host runs beside others waits for this.
    pub hold_first_long: Option<Arc<Hold>>,
    /// The device holds its first batch until this is released.
    pub hold_first_batch: Option<Arc<Hold>>,
    /// The first compilation of a GPU's kernels waits for this, on its worker.
    pub hold_first_compile: Option<Arc<Hold>>,
    /// Features the GPU device must not use although the adapter has them: `"f64"`, `"i64"`, `"subgroups"`,
    /// `"timestamps"`, `"mappable"`, `"pipeline_cache"`.
    pub without_features: Vec<&'static str>,
    /// The GPU cannot be opened, though it is there.
    pub fail_opening: bool,
    /// Opening the GPU waits for this.
    pub hold_opening: Option<Arc<Hold>>,
    /// `auto` takes a software adapter for a GPU.
    pub software_serves: bool,
    /// log2 of elements in a segment, instead of what the device's limits imply.
    pub segment_shift: Option<u32>,
    /// log2 of elements that a binding spans; as `segment_shift` where only that is given.
    pub span_shift: Option<u32>,
    /// Storage buffers that the GPU's kernels may bind, instead of what the device's limits allow.
    pub bindings_max: Option<u32>,
    /// In place of a GPU, host threads that interpret kernels as a device of other capabilities than any that is
    /// opened otherwise: it is told to compile, shares the host's memory, binds 8 arrays and lacks f64 (DEV-1).
    pub stands_in: bool,
    /// Loops are computed as they were recorded, turn by turn, and never as a kernel that is a loop.
    pub never_rolls: bool,
}

impl Injection {
    /// As [`Injection::stands_in`].
    pub fn stands_in(&self) -> bool {
        self.stands_in
    }

    /// As [`Injection::never_rolls`].
    pub fn never_rolls(&self) -> bool {
        self.never_rolls
    }

    /// Holds the device over its first batch.
    pub fn hold_batch(&self, number: u64) {
        if let (0, Some(hold)) = (number, &self.hold_first_batch) {
            hold.wait();
        }
    }

    /// Whether the device's first batch is held: then its thread has to run it.
    pub fn holds_a_batch(&self) -> bool {
        self.hold_first_batch.is_some()
    }

    /// Whether the device is lost when it would run its batch of this number.
    fn loses_device_at(&self, number: u64) -> bool {
        let again = self.lose_device_every.is_some_and(|every| (number + 1).is_multiple_of(every));
        again || self.lose_device_at_batch == Some(number)
    }

    /// What goes wrong in the batch of this number.
    pub fn wrong_at(&self, number: u64) -> Wrong {
        let starves = self.out_of_memory_at_batch == Some(number);
        let panics = !starves && self.panic_at_batch == Some(number);
        Wrong { loses: self.loses_device_at(number), starves, panics }
    }

    /// As [`Injection::slice_us`].
    pub fn slice_us(&self) -> Option<f64> {
        self.slice_us
    }

    /// As [`Injection::long_launch_us`].
    pub fn long_launch_us(&self) -> Option<f64> {
        self.long_launch_us
    }

    /// What holds the first launch that the host runs beside others.
    pub fn first_long(&self) -> Latch {
        Latch(self.hold_first_long.clone())
    }

    /// What holds the first compilation.
    pub fn first_compile(&self) -> Latch {
        Latch(self.hold_first_compile.clone())
    }
}

/// What only a GPU is asked.
#[cfg(feature = "gpu")]
impl Injection {
    /// Whether the GPU must not use a feature.
    pub fn lacks(&self, feature: &str) -> bool {
        self.without_features.contains(&feature)
    }

    /// Holds the opening of the GPU.
    pub fn hold_opening(&self) {
        if let Some(hold) = &self.hold_opening {
            hold.wait();
        }
    }

    /// Fails where the GPU cannot be opened.
    pub fn opening(&self) -> Result<()> {
        let error = || Error::new(ErrorKind::Device, "the adapter could not be opened: injected");
        if self.fail_opening { Err(error()) } else { Ok(()) }
    }

    /// As [`Injection::software_serves`].
    pub fn software_serves(&self) -> bool {
        self.software_serves
    }

    /// As [`Injection::segment_shift`].
    pub fn segment_shift(&self) -> Option<u32> {
        self.segment_shift
    }

    /// As [`Injection::span_shift`].
    pub fn span_shift(&self) -> Option<u32> {
        self.span_shift.or(self.segment_shift)
    }

    /// As [`Injection::bindings_max`].
    pub fn bindings_max(&self) -> Option<u32> {
        self.bindings_max
    }
}

/// What goes wrong in a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrong {
    loses: bool,
    starves: bool,
    panics: bool,
}

impl Wrong {
    /// Whether the device is lost instead of running the batch.
    pub fn loses(&self) -> bool {
        self.loses
    }

    /// Fails where memory is exhausted before the batch's first command.
    pub fn starve(&self) -> Result<()> {
        let error = || Error::new(ErrorKind::OutOfMemory, "the device's memory is exhausted (injected)");
        if self.starves { Err(error()) } else { Ok(()) }
    }

    /// Panics where the batch is to.
    pub fn panic(&self) {
        assert!(!self.panics, "a panic was injected");
    }

    /// Fails, as after a panic, where the batch is to panic.
    pub fn panicked(&self) -> Result<()> {
        let error = || Error::new(ErrorKind::Internal, "a panic was injected");
        if self.panics { Err(error()) } else { Ok(()) }
    }
}

/// A latch that tests hold a device by.
#[derive(Debug, Default)]
pub struct Hold {
    open: parking_lot::Mutex<bool>,
    changed: parking_lot::Condvar,
}

impl Hold {
    /// Lets the device go on.
    pub fn release(&self) {
        *self.open.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until released.
    pub fn wait(&self) {
        let mut open = self.open.lock();
        while !*open {
            self.changed.wait(&mut open);
        }
    }
}

/// What a test holds a thread with, once.
#[derive(Debug, Default)]
pub struct Latch(Option<Arc<Hold>>);

impl Latch {
    /// This one; what is left holds nothing.
    pub fn take(&mut self) -> Latch {
        Latch(self.0.take())
    }

    /// Waits until released, where it holds anything.
    pub fn wait(&self) {
        if let Some(hold) = &self.0 {
            hold.wait();
        }
    }
}
