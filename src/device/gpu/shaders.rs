//! Sources of WGSL: the writers in `kernels/` or, in tests, hand-written text.
//!
//! In: programs and their sizes. Out: text, parameters, grids. Knows no device.

use crate::contract::device::DeviceInfo;
use crate::error::Result;
use crate::kernels::ir::{Geometry, HEADER_WORDS, Kernel, Tile};
use crate::kernels::library::{self, Library, Pass};
use crate::kernels::target::Precision;
use crate::kernels::wgsl;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most library kernels whose passes are cached.
const PASSES_MAX: usize = 32;

/// One dispatch of a generated kernel.
pub(super) struct Call {
    /// The header's words.
    pub(super) header: [u32; HEADER_WORDS as usize],
    /// Workgroups.
    pub(super) grid: [u32; 3],
}

/// A source of shaders.
pub(super) trait Shaders: Send + Sync {
    /// The module of a generated kernel.
    fn kernel(&self, kernel: &Kernel) -> Result<String>;

    /// Parameter words that a generated kernel takes as immediates; 0 if its parameters are in binding 0.
    fn immediate_words(&self, kernel: &Kernel) -> u32;

    /// The dispatches that cover a tile of a launch.
    fn calls(&self, kernel: &Kernel, geometry: &Geometry, tile: Tile, segment_shift: u32) -> Vec<Call>;

    /// The passes of a library kernel, given the segments of each operand.
    fn passes(&self, library: &Library, segments: &[u8], segment_shift: u32) -> Result<Arc<Vec<Pass>>>;
}

/// The writers in `kernels/`.
pub(super) struct Generated {
    target: wgsl::Target,
    passes: Mutex<VecDeque<Remembered>>,
}

struct Remembered {
    library: Library,
    segments: Vec<u8>,
    segment_shift: u32,
    passes: Arc<Vec<Pass>>,
}

impl Generated {
    /// Writers for a device.
    pub(super) fn new(precision: Precision, info: &DeviceInfo) -> Generated {
        let target = wgsl::Target {
            f64: info.features.f64,
            i64: info.features.i64,
            precision,
            profile: info.profile,
            bindings_max: info.bindings_max,
            immediate_words_max: info.immediate_words_max,
        };
        Generated { target, passes: Mutex::default() }
    }
}

impl Shaders for Generated {
    fn kernel(&self, kernel: &Kernel) -> Result<String> {
        wgsl::write(kernel, &self.target)
    }

    fn immediate_words(&self, kernel: &Kernel) -> u32 {
        if self.target.takes_immediates(kernel) { kernel.params } else { 0 }
    }

    fn calls(&self, kernel: &Kernel, geometry: &Geometry, tile: Tile, segment_shift: u32) -> Vec<Call> {
        let dispatches = wgsl::dispatches(kernel, geometry, tile, segment_shift);
        dispatches.into_iter().map(|d| Call { header: d.header, grid: d.grid }).collect()
    }

    fn passes(&self, library: &Library, segments: &[u8], segment_shift: u32) -> Result<Arc<Vec<Pass>>> {
        let mut remembered = self.passes.lock();
        let same = |r: &Remembered| r.segment_shift == segment_shift && r.segments == segments && r.library == *library;
        if let Some(known) = remembered.iter().find(|r| same(r)) {
            return Ok(known.passes.clone());
        }
        let passes = Arc::new(library::passes(library, segments, segment_shift)?);
        if remembered.len() == PASSES_MAX {
            remembered.pop_front();
        }
        let (library, segments) = (library.clone(), segments.to_vec());
        remembered.push_back(Remembered { library, segments, segment_shift, passes: passes.clone() });
        Ok(passes)
    }
}
