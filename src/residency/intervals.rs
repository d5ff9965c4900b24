//! A set of region numbers, stored as intervals. It stays small, because regions come nearly in order.

use crate::ids::RegionId;
use std::collections::BTreeMap;

/// Numbers that were inserted.
#[derive(Debug, Default)]
pub(super) struct Intervals(BTreeMap<u64, u64>);

impl Intervals {
    /// Adds a region.
    pub(super) fn insert(&mut self, region: RegionId) {
        let at = region.0;
        if self.contains(region) {
            return;
        }
        let mut begin = at;
        let mut end = at + 1;
        if let Some((&b, &e)) = self.0.range(..at).next_back()
            && e == at
        {
            begin = b;
        }
        if let Some(e) = self.0.remove(&end) {
            end = e;
        }
        self.0.insert(begin, end);
    }

    /// Whether a region was added.
    pub(super) fn contains(&self, region: RegionId) -> bool {
        self.0.range(..=region.0).next_back().is_some_and(|(_, &end)| region.0 < end)
    }

    /// The number of intervals.
    #[cfg(test)]
    pub(super) fn intervals(&self) -> usize {
        self.0.len()
    }

    /// Whether all regions from the first that was ever added up to this one were added.
    pub(super) fn has_all_up_to(&self, region: RegionId) -> bool {
        self.0.iter().next().is_some_and(|(&begin, &end)| begin <= region.0 && region.0 < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_gaps_stay() {
        let mut set = Intervals::default();
        for n in [3, 1, 2, 7, 2] {
            set.insert(RegionId(n));
        }
        assert_eq!(set.0.iter().map(|(&b, &e)| (b, e)).collect::<Vec<_>>(), vec![(1, 4), (7, 8)]);
        assert!(set.contains(RegionId(3)) && !set.contains(RegionId(4)) && !set.contains(RegionId(0)));
        assert!(set.has_all_up_to(RegionId(3)) && !set.has_all_up_to(RegionId(7)));
    }
}
