//! What planning remembers: groupings by relative form (`key`), kernels by structure.

use super::bounded::Bounded;
use super::grouping::Grouping;
use crate::kernels::ir::Kernel;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Entries the cache of groupings holds. When it is full, what was not used since the last time goes, or else all.
const GROUPINGS_MAX: usize = 4096;
/// Kernels that are kept by structure; likewise.
const KERNELS_MAX: usize = 4096;

/// Kernels by structure.
#[derive(Debug)]
pub struct KernelCache {
    kernels: Bounded<Arc<Kernel>>,
    /// Kernels that were not known when they were interned, since the last call of `take_new`.
    new: u32,
}

impl KernelCache {
    /// The kernel of this structure, shared, and its hash.
    pub fn intern(&mut self, kernel: Kernel) -> (Arc<Kernel>, u64) {
        let mut hasher = FxHasher::default();
        kernel.hash(&mut hasher);
        let mut hash = hasher.finish();
        // The hash names the pipeline, so another kernel that has it already keeps it and this one takes the next.
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

/// What planning remembers.
#[derive(Debug)]
pub struct Caches {
    /// Groupings by relative form.
    pub groupings: Bounded<Arc<Grouping>>,
    /// Kernels by structure.
    pub kernels: KernelCache,
}

impl Caches {
    /// The grouping of this key, known or made; and whether it was known.
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
