//! One opened wgpu device, and the two ways in which it speaks out of band: errors and its loss.
//!
//! Must hold: GPU-3, GPU-6. A `Gpu` is never repaired: a lost one is replaced by another generation.

use crate::error::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, by whoever first learns that the device is gone.
#[derive(Debug, Default)]
pub(super) struct Loss {
    lost: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Loss {
    /// Records the first reason.
    pub(super) fn mark(&self, reason: &str) {
        self.reason.lock().get_or_insert_with(|| reason.to_owned());
        self.lost.store(true, Ordering::Release);
    }
}

/// An opened device.
pub(super) struct Gpu {
    /// The device.
    pub(super) device: wgpu::Device,
    /// Its only queue.
    pub(super) queue: wgpu::Queue,
    /// Counts the devices that stood in this place.
    pub(super) generation: u32,
    /// Its name, for errors.
    pub(super) name: String,
    /// Bytes one buffer may have.
    pub(super) buffer_bytes_max: u64,
    /// Whether and why it is lost.
    loss: Arc<Loss>,
}

impl Gpu {
    /// Wraps a fresh device and listens for its loss and its uncaught errors.
    pub(super) fn new(device: wgpu::Device, queue: wgpu::Queue, name: String, generation: u32) -> Gpu {
        let loss = Arc::new(Loss::default());
        let heard = loss.clone();
        // The callback can run under wgpu's locks: it only sets a flag.
        device.set_device_lost_callback(move |reason, message| {
            heard.mark(&format!("{message} ({reason:?})"));
        });
        // Whatever no scope caught (an unmapping after a loss, say) has no batch to blame and must not panic.
        device.on_uncaptured_error(Arc::new(|error: wgpu::Error| {
            tracing::error!(target: "tidemill::gpu", "uncaptured wgpu error: {error}");
        }));
        let buffer_bytes_max = device.limits().max_buffer_size;
        Gpu { device, queue, generation, name, buffer_bytes_max, loss }
    }

    /// Whether it is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.loss.lost.load(Ordering::Acquire)
    }

    /// Declares it gone.
    pub(super) fn mark_lost(&self, reason: &str) {
        self.loss.mark(reason);
    }

    /// Why it is gone, as an error.
    pub(super) fn loss_error(&self) -> Error {
        let reason = self.loss.reason.lock().clone().unwrap_or_else(|| "no reason given".to_owned());
        Error::new(ErrorKind::DeviceLost, format!("the device was lost: {reason}")).with_device(self.name.clone())
    }

    /// Runs calls of wgpu and returns what they reported out of band as an error: memory that ran out as
    /// `OutOfMemory`, a loss as `DeviceLost`, everything else as `Internal` with wgpu's words.
    ///
    /// Error scopes belong to a thread: `work` must not hand calls to another one.
    pub(super) fn checked<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let out = work();
        // Native scopes are ready at once; all three must be popped, in this order.
        let internal = pollster::block_on(internal.pop());
        let memory = pollster::block_on(memory.pop());
        let validation = pollster::block_on(validation.pop());
        if self.is_lost() {
            return Err(self.loss_error());
        }
        match memory.or(internal).or(validation) {
            None => Ok(out),
            Some(error) => Err(self.error(&error)),
        }
    }

    /// wgpu's error as ours.
    fn error(&self, error: &wgpu::Error) -> Error {
        let error = match error {
            wgpu::Error::OutOfMemory { .. } => Error::new(ErrorKind::OutOfMemory, "the device's memory is exhausted"),
            wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
                Error::new(ErrorKind::Internal, description.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        };
        error.with_device(self.name.clone())
    }

    /// Waits until all that was submitted has finished, at most `timeout`. False if it did not, or if the
    /// device is gone.
    pub(super) fn wait_idle(&self, timeout: std::time::Duration) -> bool {
        if self.is_lost() {
            return false;
        }
        let poll = || self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(timeout) });
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)) {
            Ok(Ok(_)) => !self.is_lost(),
            Ok(Err(_)) => false,
            Err(_) => {
                self.mark_lost("waiting for the device panicked");
                false
            }
        }
    }
}

/// The words of a caught panic.
pub(super) fn panic_words(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
