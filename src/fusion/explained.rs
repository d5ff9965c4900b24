//! Remembers how long explained regions took when they ran.
//!
//! In: regions; residency's reports (`PlanRan`) of those that ran. Out: the key for these reports, and the times by
//! device. No region is hashed before the first `explain()`.

use super::bounded::Bounded;
use crate::contract::region::{Region, RegionArg};
use crate::ids::DeviceId;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Explained regions that are remembered.
const REGIONS_MAX: usize = 256;
/// Most runs that are remembered of a region; the latest count.
const RUNS_MAX: usize = 15;

/// The last runs of a region on a device.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Where.
    pub device: DeviceId,
    /// Microseconds of the device's time that each took, the latest last.
    us: SmallVec<[f64; RUNS_MAX]>,
}

impl Runs {
    /// The median time in microseconds, and the number of runs.
    pub fn median(&self) -> (f64, usize) {
        let mut sorted = self.us.clone();
        sorted.sort_by(f64::total_cmp);
        (sorted[sorted.len() / 2], sorted.len())
    }
}

/// The runs of explained regions.
#[derive(Debug)]
pub struct Explained {
    runs: Bounded<SmallVec<[Runs; 2]>>,
}

impl Default for Explained {
    fn default() -> Explained {
        Explained { runs: Bounded::new(REGIONS_MAX) }
    }
}

impl Explained {
    /// Starts to remember how long regions like this one take. Returns the runs so far, by device.
    pub fn ask(&mut self, region: &Region) -> SmallVec<[Runs; 2]> {
        let key = key(region);
        let known = self.runs.get(key);
        if known.is_none() {
            self.runs.insert(key, SmallVec::new());
        }
        known.unwrap_or_default()
    }

    /// The key of a region like one that was explained.
    pub fn key_of(&mut self, region: &Region) -> Option<u64> {
        if self.runs.is_empty() {
            return None;
        }
        let key = key(region);
        self.runs.get(key).map(|_| key)
    }

    /// A region of this key ran.
    pub fn ran(&mut self, key: u64, device: DeviceId, us: f64) {
        let Some(runs) = self.runs.get_mut(key) else { return };
        let at = runs.iter().position(|runs| runs.device == device).unwrap_or_else(|| {
            runs.push(Runs { device, us: SmallVec::new() });
            runs.len() - 1
        });
        if runs[at].us.len() == RUNS_MAX {
            runs[at].us.remove(0);
        }
        runs[at].us.push(us);
    }
}

/// The hash of a region's ops, dtypes and sizes. Its device, and which of its nodes are outputs, do not count.
fn key(region: &Region) -> u64 {
    let mut hasher = FxHasher::default();
    for input in &region.inputs {
        (input.meta.dtype, &input.meta.shape).hash(&mut hasher);
    }
    for node in &region.nodes {
        node.op.hash_attributes(&mut hasher);
        (node.meta.dtype, &node.meta.shape).hash(&mut hasher);
        for arg in &node.args {
            match arg {
                RegionArg::Node(n) => (0u8, *n).hash(&mut hasher),
                RegionArg::Input(i) => (1u8, *i).hash(&mut hasher),
                RegionArg::Scalar(scalar) => (2u8, scalar.dtype()).hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}
