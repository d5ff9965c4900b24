//! Looking before sleeping (spin, then park): what is due in a moment is waited for awake.
//!
//! A thread that sleeps is woken in several microseconds where its core idles lightly, and in hundreds where it sleeps
//! deeply or is a virtual machine's: more than a short batch takes. So a thread of a GPU looks again and again for a
//! while before it sleeps, if what it waited for the last time came that soon; and so does the ring's, for a shorter
//! while, when it has answered somebody, who may well ask for more.
//!
//! Must hold: a wait costs a bounded time of looking, and of one [`Eager`] the second of two long waits in a row none;
//! nobody looks where cores are few, or where the device itself computes on them.

use std::time::{Duration, Instant};

/// Cores below which threads sleep at once: others need them more.
const CORES_MIN: usize = 4;

/// How a thread waits for one kind of thing.
#[derive(Debug)]
pub struct Eager {
    /// How long to look at most.
    most: Duration,
    /// What was waited for last came within `most`.
    soon: bool,
}

/// One wait.
pub struct Look {
    began: Instant,
    until: Option<Instant>,
}

impl Eager {
    /// For what may come within `most`; whoever computes on the host's cores (`software`) needs them more.
    pub fn new(most: Duration, software: bool) -> Eager {
        Eager { most: if software || crate::threads::cores() < CORES_MIN { Duration::ZERO } else { most }, soon: true }
    }

    /// A wait begins.
    pub fn begin(&self) -> Look {
        let began = Instant::now();
        Look { began, until: (self.soon && !self.most.is_zero()).then(|| began + self.most) }
    }

    /// What was waited for is there.
    pub fn end(&mut self, look: &Look) {
        self.soon = look.began.elapsed() <= self.most;
    }
}

impl Look {
    /// Whether to look again rather than to sleep.
    pub fn again(&self) -> bool {
        let again = self.until.is_some_and(|until| Instant::now() < until);
        if again {
            std::hint::spin_loop();
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_long_sleeps_at_once_the_next_time() {
        let mut eager = Eager { most: Duration::from_millis(1), soon: true };
        let look = eager.begin();
        assert!(look.again());
        std::thread::sleep(Duration::from_millis(2));
        assert!(!look.again());
        eager.end(&look);
        let look = eager.begin();
        assert!(!look.again());
        // It came soon after all: the next wait is awake.
        eager.end(&look);
        assert!(eager.begin().again());
    }

    #[test]
    fn nobody_looks_beside_a_software_device() {
        assert!(!Eager::new(Duration::from_secs(1), true).begin().again());
    }
}
