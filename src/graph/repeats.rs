//! Finds stretches of a sequence in which a body comes again and again: the loops of a tape, and of what a watch notes.
//!
//! In: the kind of each item, equal for items that one statement made, and a test whether an item reads what the item one
//! body before it reads. Out: stretches. Must hold: the result depends on the kinds and the test alone.

use rustc_hash::FxHashMap;

/// A sequence in which stretches are looked for. Items without a kind are in none.
pub struct Repeats<K, S> {
    /// The items.
    pub count: usize,
    /// The kind of an item.
    pub kind: K,
    /// Whether item `at` reads what the item one body before it reads, in a stretch that begins at `first`: called with
    /// `(first, period, at)` from the third body on.
    pub is_steady: S,
}

/// Which stretches are found.
pub struct Limits<L> {
    /// Most items of a body.
    pub period_max: usize,
    /// Earlier items of the same kind at which a body may begin, the nearest first.
    pub places_max: usize,
    /// The fewest items of a stretch whose body has so many.
    pub least: L,
}

/// Items from `first` up to `end`, in bodies of `period` items; the last body may be cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first item.
    pub first: usize,
    /// Items of a body.
    pub period: usize,
    /// One past the last item.
    pub end: usize,
}

impl<K, S> Repeats<K, S>
where
    K: Fn(usize) -> Option<u32>,
    S: Fn(usize, usize, usize) -> bool,
{
    /// The stretches, in order. None begins before the end of another.
    pub fn stretches(&self, limits: &Limits<impl Fn(usize) -> usize>) -> Vec<Stretch> {
        let mut found = Vec::new();
        // The latest item of each kind so far, and for each item the one of its kind before it.
        let mut latest: FxHashMap<u32, usize> = FxHashMap::default();
        let mut before = vec![usize::MAX; self.count];
        let (mut at, mut free) = (0, 0);
        while at < self.count {
            let Some(kind) = (self.kind)(at) else {
                at += 1;
                continue;
            };
            before[at] = latest.insert(kind, at).unwrap_or(usize::MAX);
            let places = std::iter::successors(Some(before[at]), |&place| before.get(place).copied());
            let is_near = |&place: &usize| place != usize::MAX && place >= free && at - place <= limits.period_max;
            let mut stretches = places.take_while(is_near).take(limits.places_max).map(|first| {
                let period = at - first;
                Stretch { first, period, end: self.end(first, period) }
            });
            match stretches.find(|stretch| stretch.end - stretch.first >= (limits.least)(stretch.period)) {
                None => at += 1,
                Some(stretch) => {
                    found.push(stretch);
                    // Later stretches begin behind this one; its last items may be the first ones of another.
                    (at, free) = (stretch.end.max(at + 1), stretch.end);
                }
            }
        }
        found
    }

    /// The end of the items from `first` on that come again after `period` items each.
    pub fn end(&self, first: usize, period: usize) -> usize {
        let mut end = first + period;
        while end < self.count
            && (self.kind)(end).is_some()
            && (self.kind)(end) == (self.kind)(end - period)
            && (end < first + 2 * period || (self.is_steady)(first, period, end))
        {
            end += 1;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(kinds: &[u32]) -> Vec<(usize, usize, usize)> {
        let kind = |at: usize| (kinds[at] > 0).then_some(kinds[at]);
        let repeats = Repeats { count: kinds.len(), kind, is_steady: |_: usize, _: usize, _: usize| true };
        let limits = Limits { period_max: 4, places_max: 3, least: |period| 3 * period };
        let found = repeats.stretches(&limits);
        found.iter().map(|stretch| (stretch.first, stretch.period, stretch.end)).collect()
    }

    #[test]
    fn a_body_that_comes_three_times_is_found_with_what_is_left_of_a_fourth() {
        assert_eq!(stretches(&[9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 8]), [(1, 3, 11)]);
        assert_eq!(stretches(&[1, 2, 1, 2, 1]), []);
    }

    #[test]
    fn a_statement_that_a_body_has_twice_does_not_hide_the_body() {
        assert_eq!(stretches(&[1, 1, 2, 1, 1, 2, 1, 1, 2]), [(0, 3, 9)]);
    }

    #[test]
    fn items_without_a_kind_end_a_stretch_and_long_bodies_are_not_looked_for() {
        assert_eq!(stretches(&[1, 2, 1, 2, 1, 2, 0, 1, 2, 1, 2, 1, 2]), [(0, 2, 6), (7, 2, 13)]);
        assert_eq!(stretches(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]), []);
    }
}
