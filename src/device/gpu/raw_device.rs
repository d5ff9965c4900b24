//! One opened wgpu device, and the two ways in which it speaks out of band: errors and its loss.
//!
//! Must hold: GPU-3, GPU-6, GPU-9. A `Gpu` is never repaired: a lost one is replaced by another generation.

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
/// How long [`Gpu::wait_idle`] looks before it rests.
const LOOK: Duration = Duration::from_millis(1);

/// Devices in use by runtimes of this process. One that is of no use any more is destroyed where it is the last, and left
/// alone beside others: destroying it could stop them (`spare.rs`).
pub(super) static IN_USE: AtomicUsize = AtomicUsize::new(0);

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
    /// Counts the devices that stood in this place.
    pub(super) generation: u32,
    /// Its name, for errors.
    pub(super) name: String,
    /// Bytes one buffer may have.
    pub(super) buffer_bytes_max: u64,
    /// Whether and why it is lost.
    loss: Arc<Loss>,
    /// The adapter that it is of.
    adapter: AdapterKey,
    /// Its runtime has ended as it was told to.
    left: AtomicBool,
    /// A panic within wgpu was seen: it may go on, but serves no other runtime.
    doubtful: AtomicBool,
    /// A test wants the next poll to panic.
    #[cfg(any(test, feature = "testing"))]
    poll_panics: AtomicBool,
}

impl Gpu {
    /// Wraps a fresh device and listens for its loss and its uncaught errors.
    pub(super) fn new(adapter: AdapterKey, device: wgpu::Device, queue: wgpu::Queue, generation: u32) -> Gpu {
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

    /// One poll; the words of the panic that it ended in. What else it finds comes by callbacks.
    fn poll_once(&self) -> std::result::Result<(), String> {
        let poll = || {
            #[cfg(any(test, feature = "testing"))]
            if self.poll_panics.swap(false, Ordering::Relaxed) {
                panic!("a panic was injected into a poll");
            }
            // An error is a loss, of which the callback tells.
            let _ = self.device.poll(wgpu::PollType::Poll);
        };
        catch_unwind(AssertUnwindSafe(poll)).map_err(|panic| {
            self.doubt();
            panic_words(&*panic)
        })
    }

    /// Waits until a submission has finished, looking at it for a while before it sleeps.
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
                // Its callback went down with a panic. If the device is idle, the submission has finished all the same.
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
                // What is measured ends soon, and a rest would be measured with it.
                (State::Flying, waited) if waited < LOOK => std::thread::yield_now(),
                (State::Flying, waited) => finish.rest(waited),
            }
        }
    }

    /// Says that its runtime has ended as it was told to: another one may take it.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// Says that there was a panic over it.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Makes the next poll panic, as a defect of wgpu would.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn inject_poll_panic(&self) {
        self.poll_panics.store(true, Ordering::Relaxed);
    }
}

impl Drop for Gpu {
    /// Nothing of its runtime uses it any more: where nothing was wrong with it, it serves another one, which hears of
    /// its errors then.
    fn drop(&mut self) {
        IN_USE.fetch_sub(1, Ordering::SeqCst);
        // What is due for release is released before it waits.
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
            // Its buffers are freed, destroyed or not.
            spare::end(device, queue);
        }
    }
}
