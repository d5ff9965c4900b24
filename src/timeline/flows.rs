//! Pairs the ends of arrows, and finds the span of each end.
//!
//! In: ends of arrows as they are recorded, and the rows of spans as they are placed. Out: complete arrows. Must hold:
//! an arrow is returned only with both ends, each inside of a span of its row. An end may be recorded before its span,
//! since spans are recorded when they end; it then waits for the span. Bounds: at most `WAITING_MAX` ends wait for a
//! span, and as many for their other end; the oldest are dropped.

use super::json::Place;
use super::lanes::{Lanes, Row};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// Ends that wait for their span or their other end.
const WAITING_MAX: usize = 1 << 18;

/// One end, placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Its row.
    pub(super) place: Place,
    /// Its time.
    pub(super) at_ns: u64,
}

/// A complete arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    /// Its number in the file, which is unique even if callers reuse their numbers.
    pub(super) id: u64,
    /// Where it begins.
    pub(super) start: End,
    /// Where it points.
    pub(super) end: End,
}

/// All arrows that are not complete.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Ends without a span, by row and time.
    spanless: FxHashMap<Row, BTreeMap<u64, Vec<Half>>>,
    spanless_count: usize,
    /// Placed ends without their other end: starts and ends apart.
    single: [FxHashMap<u64, VecDeque<End>>; 2],
    single_count: usize,
    next_id: u64,
}

#[derive(Clone, Copy, Debug)]
struct Half {
    flow: u64,
    is_end: bool,
}

impl Flows {
    /// One end was recorded.
    pub(super) fn recorded(&mut self, lanes: &Lanes, row: &Row, flow: u64, at_ns: u64, is_end: bool) -> Option<Arrow> {
        match lanes.find(row, at_ns) {
            Some((place, start_ns, end_ns)) => {
                self.placed(flow, is_end, End { place, at_ns: inside(at_ns, start_ns, end_ns) })
            }
            None => {
                if self.spanless_count >= WAITING_MAX {
                    self.spanless.clear();
                    self.spanless_count = 0;
                }
                self.spanless.entry(row.clone()).or_default().entry(at_ns).or_default().push(Half { flow, is_end });
                self.spanless_count += 1;
                None
            }
        }
    }

    /// A span was placed: places the ends that waited for it.
    pub(super) fn span_placed(&mut self, row: &Row, place: Place, start_ns: u64, end_ns: u64) -> Vec<Arrow> {
        let Some(waiting) = self.spanless.get_mut(row) else { return Vec::new() };
        let times: Vec<u64> = waiting.range(start_ns..=end_ns).map(|(at, _)| *at).collect();
        let mut found = Vec::new();
        for at_ns in times {
            found.extend(waiting.remove(&at_ns).unwrap_or_default().into_iter().map(|half| (at_ns, half)));
        }
        if waiting.is_empty() {
            self.spanless.remove(row);
        }
        self.spanless_count -= found.len();
        found
            .into_iter()
            .filter_map(|(at_ns, half)| {
                self.placed(half.flow, half.is_end, End { place, at_ns: inside(at_ns, start_ns, end_ns) })
            })
            .collect()
    }

    /// An end was placed. Returns the arrow if the other end was placed, too.
    fn placed(&mut self, flow: u64, is_end: bool, end: End) -> Option<Arrow> {
        let others = &mut self.single[usize::from(!is_end)];
        if let Some(queue) = others.get_mut(&flow) {
            let other = queue.pop_front()?;
            if queue.is_empty() {
                others.remove(&flow);
            }
            self.single_count -= 1;
            self.next_id += 1;
            let (start, end) = if is_end { (other, end) } else { (end, other) };
            return Some(Arrow { id: self.next_id, start, end });
        }
        if self.single_count >= WAITING_MAX {
            self.single = Default::default();
            self.single_count = 0;
        }
        self.single[usize::from(is_end)].entry(flow).or_default().push_back(end);
        self.single_count += 1;
        None
    }
}

/// Viewers treat a span's end as outside of it, so an arrow there would belong to no span.
fn inside(at_ns: u64, start_ns: u64, end_ns: u64) -> u64 {
    if at_ns == end_ns && end_ns > start_ns { at_ns - 1 } else { at_ns }
}
