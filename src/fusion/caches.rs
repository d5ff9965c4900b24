//! The caches of planning: groupings by relative form (`key`), kernels by structure.

use super::bounded::Bounded;
use super::grouping::Grouping;
use crate::kernels::ir::Kernel;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Most entries of the cache of groupings.
const GROUPINGS_MAX: usize = 4096;
/// Most entries of the cache of kernels.
const KERNELS_MAX: usize = 4096;

/// Kernels by structure.
#[derive(Debug)]
pub struct KernelCache {
    kernels: Bounded<Arc<Kernel>>,
    /// Kernels that were new when they were interned, since the last call of `take_new`.
    new: u32,
}

impl KernelCache {
    /// The kernel of this structure, shared, and its hash.
    pub fn intern(&mut self, kernel: Kernel) -> (Arc<Kernel>, u64) {
        let mut hasher = FxHasher::default();
        kernel.hash(&mut hasher);
        let mut hash = hasher.finish();
        // The hash names the pipeline, so it must be unique: if another kernel has this hash, this kernel takes the
        // next number.
        while let Some(known) = self.kernels.get(hash) {
            if *known == kernel {
                return (known, hash);
            }
            hash = hash.wrapping_add(1);
        }
        let kernel = Arc::new(kernel);
        self.new += 1;
        self.kernels.insert(hash, kernel.clone());
        (kernel, hash)
    }

    /// How many kernels were new since the last call.
    pub fn take_new(&mut self) -> u32 {
        std::mem::take(&mut self.new)
    }
}

/// The caches of planning.
#[derive(Debug)]
pub struct Caches {
    /// Groupings by relative form.
    pub groupings: Bounded<Arc<Grouping>>,
    /// Kernels by structure.
    pub kernels: KernelCache,
}

impl Caches {
    /// The grouping of this key, and whether it was in the cache. If not, `make` makes it.
    pub fn grouping(&mut self, key: u64, make: impl FnOnce() -> Grouping) -> (Arc<Grouping>, bool) {
        if let Some(known) = self.groupings.get(key) {
            return (known, true);
        }
        let made = Arc::new(make());
        self.groupings.insert(key, made.clone());
        (made, false)
    }
}

impl Default for Caches {
    fn default() -> Caches {
        Caches {
            groupings: Bounded::new(GROUPINGS_MAX),
            kernels: KernelCache { kernels: Bounded::new(KERNELS_MAX), new: 0 },
        }
    }
}
