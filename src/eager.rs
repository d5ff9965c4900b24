//! Spin, then park: a thread polls for a moment before it sleeps, if it expects the event soon.
//!
//! Waking a sleeping thread takes several microseconds where its core idles lightly, and hundreds where the core sleeps
//! deeply or belongs to a virtual machine: more than a short batch takes. A woken thread also runs its first microseconds
//! at half speed. So a thread of a GPU polls for a while before it sleeps, if its last wait was short. The ring's thread
//! polls for a shorter while after it has answered a gather, because the program may ask for more at once. Between two
//! polls a thread yields its core to any other that wants it.
//!
//! Must hold: a wait polls for a bounded time; after a long wait, the next wait of the same [`Eager`] does not poll. No
//! thread polls where the machine has few cores, or where the device itself computes on them. If a thread finds, while it
//! polls, that another thread wanted its core, it sleeps at once, and its next [`CROWDED_WAITS`] waits do not poll.

use std::time::{Duration, Instant};

/// With fewer cores, threads sleep at once, because other threads need the cores more.
const CORES_MIN: usize = 4;

/// A thread that yields and is back only after this time has given its core to another one.
const GIVEN_AWAY: Duration = Duration::from_micros(30);

/// How many waits sleep at once after one in which other threads wanted the core.
const CROWDED_WAITS: u32 = 64;

/// How a thread waits for one kind of event.
#[derive(Debug)]
pub struct Eager {
    /// The longest time that a wait polls.
    most: Duration,
    /// Whether the last wait took at most `most`.
    soon: bool,
    /// How many of the next waits sleep at once, because other threads wanted the core.
    asleep: u32,
}

/// A wait that is in progress.
pub struct Look {
    began: Instant,
    until: Option<Instant>,
    /// Another thread ran on the core meanwhile.
    crowded: bool,
}

impl Eager {
    /// A waiter for events that may come within `most`. With `software`, the device computes on the host's cores, so
    /// waits never poll.
    pub fn new(most: Duration, software: bool) -> Eager {
        let most = if software || crate::threads::cores() < CORES_MIN { Duration::ZERO } else { most };
        Eager { most, soon: true, asleep: 0 }
    }

    /// Begins a wait.
    pub fn begin(&self) -> Look {
        let began = Instant::now();
        let looks = self.soon && self.asleep == 0 && !self.most.is_zero();
        Look { began, until: looks.then(|| began + self.most), crowded: false }
    }

    /// Ends a wait.
    pub fn end(&mut self, look: &Look) {
        self.soon = look.began.elapsed() <= self.most;
        self.asleep = if look.crowded { CROWDED_WAITS } else { self.asleep.saturating_sub(1) };
    }
}

impl Look {
    /// Returns true if the thread polls again, false if it sleeps.
    pub fn again(&mut self) -> bool {
        let Some(until) = self.until.filter(|_| !self.crowded) else { return false };
        let now = Instant::now();
        if now >= until {
            return false;
        }
        std::thread::yield_now();
        self.crowded = now.elapsed() > GIVEN_AWAY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_long_wait_the_next_wait_sleeps_at_once() {
        let mut eager = Eager { most: Duration::from_millis(1), soon: true, asleep: 0 };
        let mut look = eager.begin();
        assert!(look.again());
        std::thread::sleep(Duration::from_millis(2));
        assert!(!look.again());
        eager.end(&look);
        let mut look = eager.begin();
        assert!(!look.again());
        // The event came soon, so the next wait polls. On a busy machine the look may have been marked as crowded.
        look.crowded = false;
        eager.asleep = 0;
        eager.end(&look);
        assert!(eager.begin().again());
    }

    #[test]
    fn after_giving_its_core_away_a_thread_sleeps_at_once_for_a_while() {
        let mut eager = Eager { most: Duration::from_secs(3600), soon: true, asleep: 0 };
        let mut look = eager.begin();
        assert!(look.again());
        look.crowded = true;
        assert!(!look.again());
        eager.end(&look);
        for _ in 0..CROWDED_WAITS {
            let mut look = eager.begin();
            assert!(!look.again());
            eager.end(&look);
        }
        assert!(eager.begin().again());
    }

    #[test]
    fn no_wait_polls_beside_a_software_device() {
        assert!(!Eager::new(Duration::from_secs(1), true).begin().again());
    }
}
