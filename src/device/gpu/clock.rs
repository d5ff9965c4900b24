//! Converts GPU time-stamps to the timeline's clock.
//!
//! The host sees a completion at or after the tick at which it happened. So the smallest difference within the last
//! second or two is the best estimate of the offset. Older differences are forgotten, because the clocks drift.

/// Nanoseconds after which an anchor is replaced.
const ANCHOR_NS: u64 = 1_000_000_000;

/// The offset from GPU time to host time.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    earlier: Option<i64>,
    current: Option<i64>,
    current_since_ns: u64,
}

impl Alignment {
    /// Notes that a GPU time was seen to have passed at `seen_ns`.
    pub(super) fn observe(&mut self, gpu_ns: u64, seen_ns: u64) {
        let shift = seen_ns as i64 - gpu_ns as i64;
        if self.current.is_none() || seen_ns.saturating_sub(self.current_since_ns) > ANCHOR_NS {
            self.earlier = self.current.replace(shift);
            self.current_since_ns = seen_ns;
        } else {
            self.current = self.current.map(|least| least.min(shift));
        }
    }

    /// A span of GPU time on the host's clock: not before `earliest_ns`, and not ending before it starts.
    pub(super) fn span(&self, gpu_ns: (u64, u64), earliest_ns: u64) -> (u64, u64) {
        let shift = match (self.earlier, self.current) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or(0),
        };
        let host = |gpu: u64| (gpu as i64).saturating_add(shift).max(0) as u64;
        let start = host(gpu_ns.0).max(earliest_ns);
        (start, host(gpu_ns.1).max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_delay_seen_anchors_the_gpu_clock() {
        let mut alignment = Alignment::default();
        alignment.observe(1_000, 51_500);
        alignment.observe(2_000, 52_100);
        alignment.observe(3_000, 53_900);
        assert_eq!(alignment.span((2_500, 2_900), 0), (52_600, 53_000));
    }

    #[test]
    fn a_span_never_starts_before_its_submission() {
        let mut alignment = Alignment::default();
        alignment.observe(1_000, 2_000);
        assert_eq!(alignment.span((500, 900), 1_700), (1_700, 1_900));
        assert_eq!(alignment.span((500, 600), 1_700), (1_700, 1_700));
    }

    #[test]
    fn anchors_older_than_two_seconds_are_forgotten() {
        let mut alignment = Alignment::default();
        alignment.observe(0, 100);
        alignment.observe(1_100_000_000, 1_100_000_400);
        assert_eq!(alignment.span((0, 0), 0).0, 100);
        alignment.observe(2_200_000_000, 2_200_000_500);
        assert_eq!(alignment.span((0, 0), 0).0, 400);
    }
}
