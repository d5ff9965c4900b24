//! Decides when free memory is returned to the system.
//!
//! In: turns of the ring's loop, and the time. Out: when the machines and the devices are told to return memory. Plain
//! state. Must hold: while there are events, they are told once a period. Without events, they are told `TIMES` times,
//! the last time to return all of it; after that, the loop does not wake up for this. Memory that a claim of a front
//! end needs is returned at once by the loop itself, independent of this (CLAIMS-1).

use std::time::{Duration, Instant};

/// How often free memory is returned without any event in between: half of it each time, and the rest the last time.
const TIMES: u32 = 6;

/// The time at which free memory is returned next.
#[derive(Debug)]
pub(super) struct Idle {
    /// The period; `None` if free memory is never returned.
    period: Option<Duration>,
    /// The next time; `None` if there was no event since all of it was returned.
    next: Option<Instant>,
    /// How often memory was returned since the last event.
    times: u32,
}

impl Idle {
    pub(super) fn new(period: Option<Duration>) -> Idle {
        Idle { period, next: None, times: 0 }
    }

    /// When `look` has to be called again, at the latest.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether memory is to be returned now: `Some(true)` for all of it, `Some(false)` for a part. `busy` says that
    /// there was an event since the last call. The clock is read only if the answer depends on it.
    pub(super) fn look(&mut self, busy: bool, now: impl Fn() -> Instant) -> Option<bool> {
        let period = self.period?;
        if busy {
            self.times = 0;
            self.next.get_or_insert_with(|| now() + period);
        }
        if self.next.is_none_or(|at| now() < at) {
            return None;
        }
        self.times += 1;
        let all = self.times >= TIMES;
        self.next = (!all).then(|| now() + period);
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_happens_all_of_it_goes_in_the_end_and_nothing_is_due_behind_that() {
        let (begin, period) = (Instant::now(), Duration::from_secs(2));
        let at = |seconds: u64| move || begin + Duration::from_secs(seconds);
        let mut idle = Idle::new(Some(period));
        assert_eq!((idle.look(false, at(0)), idle.next()), (None, None), "nothing has happened yet");
        assert_eq!((idle.look(true, at(0)), idle.next()), (None, Some(begin + period)));
        assert_eq!(idle.look(true, at(1)), None);
        let told: Vec<_> = (1..=20).filter_map(|second| idle.look(second == 5, at(second))).collect();
        // At seconds 2 and 4; then six times, since something happens at 5.
        assert_eq!(told, [false, false, false, false, false, false, false, true]);
        assert_eq!(idle.next(), None);
        assert_eq!((idle.look(true, at(30)), idle.next()), (None, Some(begin + 16 * period)));
        assert_eq!(Idle::new(None).look(true, at(100)), None);
    }
}
