//! When free memory goes back to the system.
//!
//! In: turns of the ring's loop, and the time. Out: when the machines and the devices are told to give memory back.
//! Plain state. Must hold: while anything happens they are told once a period; where nothing happens they are told
//! `TIMES` times, the last time to give back all of it, and then the loop has nothing to wake up for. What a claim needs
//! at once is given back beside this, by the loop itself (CLAIMS-1).

use std::time::{Duration, Instant};

/// The times that free memory goes back where nothing happens: half of it each time, and the rest the last time.
const TIMES: u32 = 6;

/// When free memory goes back next.
#[derive(Debug)]
pub(super) struct Idle {
    /// The time from one to the next; `None` where free memory is kept.
    period: Option<Duration>,
    /// When it does next; `None` where nothing has happened since all of it went.
    next: Option<Instant>,
    /// How many times it did since anything happened.
    times: u32,
}

impl Idle {
    pub(super) fn new(period: Option<Duration>) -> Idle {
        Idle { period, next: None, times: 0 }
    }

    /// When to look again at the latest.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Looks whether memory is to go back now; if so, whether all of it. `busy`: something has happened since the last
    /// look. The clock is read only where that matters.
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
