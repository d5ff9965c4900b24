//! Keeps the GPU devices of runtimes that have ended, for later runtimes of the process.
//!
//! In: the device of a runtime that has ended regularly, once nothing uses it any more. Out: the same device, when a
//! runtime opens that adapter with the same features. A working device is not destroyed while the process lives:
//! creating one takes half a second, and NVIDIA's driver (580.159) was seen to loop for ever, with its lock held, when
//! a device was destroyed while others existed. For the same reason, a lost device is not destroyed while others are in
//! use. A kept device holds no buffers except its allocator's reserve. For each adapter and set of features, there are
//! never more devices than were in use at the same time.

use super::raw_device::{IN_USE, Loss};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Identifies an adapter, also when adapters are enumerated again after a loss: its number, which distinguishes two of
/// the same model, and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdapterKey {
    pub(super) index: usize,
    pub(super) about: wgpu::AdapterInfo,
}

/// A device without a runtime.
pub(super) struct Spare {
    /// Its adapter.
    pub(super) adapter: AdapterKey,
    /// The device.
    pub(super) device: wgpu::Device,
    /// Its only queue.
    pub(super) queue: wgpu::Queue,
    /// Set by the callback if the device is lost while it is kept here.
    pub(super) loss: Arc<Loss>,
}

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());
/// Broken devices that cannot be destroyed yet, because others are in use.
static ENDED: Mutex<Vec<(wgpu::Device, wgpu::Queue)>> = Mutex::new(Vec::new());

/// Keeps a device that works and has nothing in flight.
pub(super) fn keep(spare: Spare) {
    SPARES.lock().push(spare);
}

/// The device of this adapter, with exactly these features, that was kept last and is not lost.
pub(super) fn take(adapter: &AdapterKey, features: wgpu::Features) -> Option<Spare> {
    let mut spares = SPARES.lock();
    let lost = spares.extract_if(.., |spare| spare.loss.is_lost()).collect::<Vec<_>>();
    let at = spares.iter().rposition(|s| s.adapter == *adapter && s.device.features() == features);
    let found = at.map(|at| spares.remove(at));
    drop(spares);
    lost.into_iter().for_each(|spare| end(spare.device, spare.queue));
    found
}

/// Takes a broken device. It is destroyed, with all others of this kind, as soon as no device is in use.
pub(super) fn end(device: wgpu::Device, queue: wgpu::Queue) {
    ENDED.lock().push((device, queue));
    destroy_ended();
}

/// Destroys the broken devices, if no device is in use.
pub(super) fn destroy_ended() {
    if IN_USE.load(Ordering::SeqCst) == 0 {
        let ended = std::mem::take(&mut *ENDED.lock());
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::super::adapter::{self, OPENING};
    use super::super::raw_device::Gpu;
    use super::super::tests::rig::no_adapter;
    use crate::config::Config;

    #[test]
    fn a_device_that_was_left_serves_the_next_who_asks_unless_there_is_something_wrong_with_it() {
        if no_adapter() {
            return;
        }
        let mut config = Config::default();
        // No other test asks for these features.
        config.injection.without_features = vec!["i64", "subgroups", "pipeline_cache"];
        let alone = OPENING.lock();
        let open = || adapter::open(None, &config).unwrap().gpu;
        let leave = |gpu: Gpu| {
            gpu.leave();
            drop(gpu);
        };
        let (first, second) = (open(), open());
        let device = first.device.clone();
        assert!(second.device != device, "the first is in use");
        leave(first);
        let third = open();
        assert!(third.device == device && !third.is_lost());
        third.mark_lost("a test says so");
        leave(third);
        let fourth = open();
        assert!(fourth.device != device, "it is lost");
        let device = fourth.device.clone();
        fourth.inject_poll_panic();
        assert!(fourth.poll().is_ok(), "it answers after a panic");
        leave(fourth);
        let fifth = open();
        assert!(fifth.device != device, "a panic within wgpu was seen");
        let device = fifth.device.clone();
        drop(fifth);
        let sixth = open();
        assert!(sixth.device != device, "nobody said that its runtime ended well");
        // One that replaced a lost one is of an adapter that was looked for anew.
        let features = sixth.device.features();
        drop(alone);
        let again = adapter::reopen(0, &sixth.name, features, 1).unwrap().gpu;
        let device = again.device.clone();
        leave(again);
        let _alone = OPENING.lock();
        assert!(open().device == device);
    }
}
