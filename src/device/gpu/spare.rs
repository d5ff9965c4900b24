//! Devices that runtimes have left, for those that come.
//!
//! In: the device of a runtime that has ended, when the last that used it lets it go. Out: the same, to whoever opens that
//! adapter with the same features. A device that works is not destroyed while the process lives: making one takes half
//! a second, and NVIDIA's driver (580.159) was seen to compute without end when devices were destroyed beside others,
//! with its lock held. What waits here holds no buffers, and there are never more than were in use at once.

use super::raw_device::Loss;
use parking_lot::Mutex;
use std::sync::Arc;

/// A device without a runtime.
pub(super) struct Spare {
    /// The device.
    pub(super) device: wgpu::Device,
    /// Its only queue.
    pub(super) queue: wgpu::Queue,
    /// Hears of its loss also while it waits.
    pub(super) loss: Arc<Loss>,
}

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

/// Keeps a device that works and has nothing in flight.
pub(super) fn keep(spare: Spare) {
    SPARES.lock().push(spare);
}

/// The device of an adapter with just these features that was left last, if there is one that is not lost.
pub(super) fn take(about: &wgpu::AdapterInfo, features: wgpu::Features) -> Option<Spare> {
    let mut spares = SPARES.lock();
    let fits = |s: &Spare| !s.loss.is_lost() && s.device.features() == features && s.device.adapter_info() == *about;
    let at = spares.iter().rposition(fits)?;
    Some(spares.remove(at))
}

#[cfg(test)]
mod tests {
    use super::super::adapter::{self, OPENING};
    use crate::config::Config;

    #[test]
    fn a_device_that_was_left_serves_the_next_who_asks_unless_it_is_lost() {
        let mut config = Config::default();
        // No other test asks for these features.
        config.injection.without_features = vec!["i64", "subgroups", "pipeline_cache"];
        let _alone = OPENING.lock();
        let open = || adapter::open(None, &config).ok().map(|opened| opened.gpu);
        let Some(first) = open() else { return };
        let (device, second) = (first.device.clone(), open().unwrap());
        assert!(second.device != device, "the first is in use");
        drop(first);
        let third = open().unwrap();
        assert!(third.device == device && !third.is_lost());
        third.mark_lost("a test says so");
        drop((third, second));
        for _ in 0..2 {
            let gpu = open().unwrap();
            assert!(gpu.device != device && !gpu.is_lost());
        }
    }
}
