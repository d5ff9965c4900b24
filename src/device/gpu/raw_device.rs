//! One opened wgpu device, with its errors and its loss, which wgpu reports by scopes and callbacks.
//!
//! Must hold: GPU-3, GPU-6, GPU-9. A lost `Gpu` is never repaired, but replaced by a new one with the next generation
//! number.

use super::finish::{Finish, State};
use super::spare::{self, AdapterKey, Spare};
use crate::eager::Eager;
use crate::error::{Error, ErrorKind, Result, panic_words};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long the device may take to answer after a panic.
pub(super) const HEALTH_WAIT: Duration = Duration::from_secs(10);
/// How long [`Gpu::wait_idle`] polls before it sleeps in between.
const LOOK: Duration = Duration::from_millis(1);

/// The number of devices in use by runtimes of this process. A broken device is destroyed only when no other is in use,
/// because destroying it could stop the others (`spare.rs`).
pub(super) static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Set once, when the loss of the device is first noticed.
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

    /// Whether it has been marked.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

/// An opened device.
pub(super) struct Gpu {
    /// The device.
    pub(super) device: wgpu::Device,
    /// Its only queue.
    pub(super) queue: wgpu::Queue,
    /// The number of devices that were lost and replaced before this one.
    pub(super) generation: u32,
    /// Its name, for errors.
    pub(super) name: String,
    /// Bytes one buffer may have.
    pub(super) buffer_bytes_max: u64,
    /// Whether and why it is lost.
    loss: Arc<Loss>,
    /// Its adapter.
    adapter: AdapterKey,
    /// Its runtime has ended regularly.
    left: AtomicBool,
    /// A panic happened inside of wgpu. Its runtime may go on with the device, but no other runtime gets it.
    doubtful: AtomicBool,
    /// A test wants the next poll to panic.
    #[cfg(any(test, feature = "testing"))]
    poll_panics: AtomicBool,
}

impl Gpu {
    /// Wraps a new device and registers callbacks for its loss and for uncaught errors.
    pub(super) fn new(adapter: AdapterKey, device: wgpu::Device, queue: wgpu::Queue, generation: u32) -> Gpu {
        let loss = Arc::new(Loss::default());
        let heard = loss.clone();
        // The callback can run under wgpu's locks: it only sets a flag.
        device.set_device_lost_callback(move |reason, message| {
            heard.mark(&format!("{message} ({reason:?})"));
        });
        // An error outside of any scope (such as unmapping after a loss) belongs to no batch and must not panic.
        device.on_uncaptured_error(Arc::new(|error: wgpu::Error| {
            tracing::error!(target: "tidemill::gpu", "uncaptured wgpu error: {error}");
        }));
        let buffer_bytes_max = device.limits().max_buffer_size;
        IN_USE.fetch_add(1, Ordering::SeqCst);
        crate::leaving::wait_at_exit();
        Gpu {
            device,
            queue,
            generation,
            name: adapter.about.name.clone(),
            buffer_bytes_max,
            loss,
            adapter,
            left: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            #[cfg(any(test, feature = "testing"))]
            poll_panics: AtomicBool::new(false),
        }
    }

    /// Whether it is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.loss.is_lost()
    }

    /// Declares it gone.
    pub(super) fn mark_lost(&self, reason: &str) {
        self.loss.mark(reason);
    }

    /// The error with the reason of the loss.
    pub(super) fn loss_error(&self) -> Error {
        let reason = self.loss.reason.lock().clone().unwrap_or_else(|| "no reason given".to_owned());
        Error::new(ErrorKind::DeviceLost, format!("the device was lost: {reason}")).with_device(self.name.clone())
    }

    /// Runs wgpu calls inside error scopes, and returns the errors that the scopes caught: exhausted memory as
    /// `OutOfMemory`, a loss as `DeviceLost`, everything else as `Internal` with wgpu's message.
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

    /// Converts an error of wgpu.
    fn error(&self, error: &wgpu::Error) -> Error {
        let error = match error {
            wgpu::Error::OutOfMemory { .. } => Error::new(ErrorKind::OutOfMemory, "the device's memory is exhausted"),
            wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
                Error::new(ErrorKind::Internal, description.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        };
        error.with_device(self.name.clone())
    }

    /// Lets due callbacks run, without waiting.
    ///
    /// # Errors
    /// The device is lost: it was before, its driver says so, or it does not answer after a panic inside of wgpu.
    pub(super) fn poll(&self) -> Result<()> {
        if !self.is_lost()
            && let Err(words) = self.poll_once()
            && !self.wait_idle(HEALTH_WAIT)
        {
            self.mark_lost(&format!("it does not answer after a panic ({words})"));
        }
        if self.is_lost() { Err(self.loss_error()) } else { Ok(()) }
    }

    /// Polls once. The error is the message of a panic inside of wgpu; other results come by callbacks.
    fn poll_once(&self) -> std::result::Result<(), String> {
        let poll = || {
            #[cfg(any(test, feature = "testing"))]
            if self.poll_panics.swap(false, Ordering::Relaxed) {
                panic!("a panic was injected into a poll");
            }
            // An error means a loss, which the callback reports.
            let _ = self.device.poll(wgpu::PollType::Poll);
        };
        catch_unwind(AssertUnwindSafe(poll)).map_err(|panic| {
            self.doubt();
            panic_words(&*panic)
        })
    }

    /// Waits until a submission has finished: polls for a while, and then sleeps in between.
    pub(super) fn wait(&self, finish: &Finish, eager: &mut Eager) -> Result<()> {
        let (mut look, began) = (eager.begin(), Instant::now());
        loop {
            self.poll()?;
            match finish.state() {
                State::Done => {
                    eager.end(&look);
                    return Ok(());
                }
                State::Flying if look.again() => {}
                State::Flying => finish.rest(began.elapsed()),
                // The callback was lost by a panic. If the device becomes idle, the submission has finished all the
                // same.
                State::Forgotten if self.wait_idle(HEALTH_WAIT) => return Ok(()),
                State::Forgotten => self.mark_lost("it does not answer after a callback was lost"),
            }
        }
    }

    /// Waits until all that was submitted has finished, at most `timeout`. False if it did not, or if the
    /// device is gone.
    pub(super) fn wait_idle(&self, timeout: Duration) -> bool {
        let began = Instant::now();
        let asked = catch_unwind(AssertUnwindSafe(|| Finish::of(&self.queue)));
        let Ok(finish) = asked else { return false };
        loop {
            if self.is_lost() || self.poll_once().is_err() {
                return false;
            }
            match (finish.state(), began.elapsed()) {
                (State::Done, _) => return !self.is_lost(),
                (State::Forgotten, _) => return false,
                (State::Flying, waited) if waited > timeout => return false,
                // Measured work ends soon, and a sleep would be included in the measurement.
                (State::Flying, waited) if waited < LOOK => std::thread::yield_now(),
                (State::Flying, waited) => finish.rest(waited),
            }
        }
    }

    /// Called when its runtime has ended regularly: another runtime may take the device.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// Called after a panic inside of wgpu.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Makes the next poll panic, like a bug in wgpu.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn inject_poll_panic(&self) {
        self.poll_panics.store(true, Ordering::Relaxed);
    }
}

impl Drop for Gpu {
    /// Called when the runtime does not use the device any more. If nothing was wrong with it, it is kept for the next
    /// runtime.
    fn drop(&mut self) {
        IN_USE.fetch_sub(1, Ordering::SeqCst);
        // A last poll frees what is due, before the device is kept.
        let serves = self.left.load(Ordering::Relaxed)
            && !self.is_lost()
            && self.poll_once().is_ok()
            && !self.is_lost()
            && !self.doubtful.load(Ordering::Relaxed);
        let (device, queue) = (self.device.clone(), self.queue.clone());
        if serves {
            spare::keep(Spare { adapter: self.adapter.clone(), device, queue, loss: self.loss.clone() });
            spare::destroy_ended();
        } else {
            // Its buffers are freed in any case.
            spare::end(device, queue);
        }
    }
}
