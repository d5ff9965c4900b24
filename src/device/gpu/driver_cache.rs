//! Stores the driver's compiled pipelines on disk, so that the next process does not compile them again.
//!
//! In: a device that has pipeline caches. Out: the cache that pipelines are made with; a file beside the measured
//! costs, named as wgpu names caches of an adapter's kind. A file that is missing, damaged, too large or from another
//! program is no error: the cache begins empty. Must hold: only bytes that this program wrote, whole, reach the driver;
//! a reader never sees half a file.

use super::adapter::Opened;
use super::kept::{Magic, unwrapped, wrapped};
use crate::device::costs::{folder, write_whole};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first bytes of the file: its type and the version of its format.
const MAGIC: &Magic = b"tidemill pipelines, 1\n\n\n";
/// Most bytes of the driver's data. A cache that grows beyond this is emptied.
const BYTES_MAX: usize = 64 << 20;

/// The cache of one device.
pub(super) struct DriverCache {
    cache: wgpu::PipelineCache,
    file: PathBuf,
    about: wgpu::AdapterInfo,
    /// Pipelines that were compiled and not stored yet.
    new: AtomicU64,
}

impl DriverCache {
    /// The cache of an opened device, filled from its file; `None` if the device supports no cache, or the user has no
    /// cache folder.
    pub(super) fn open(opened: &Opened) -> Option<DriverCache> {
        let Opened { gpu, about, features, .. } = opened;
        if !features.contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let file = folder()?.join(format!("{}.bin", wgpu::util::pipeline_cache_key(about)?));
        let kept = std::fs::read(&file).ok().and_then(|bytes| unwrapped(MAGIC, bytes, about, BYTES_MAX));
        let descriptor = wgpu::PipelineCacheDescriptor { label: None, data: kept.as_deref(), fallback: true };
        // SAFETY: the bytes came from `get_data` of such a cache: the file says so, and is whole. wgpu checks that it
        // was of this adapter and driver, and begins an empty cache otherwise.
        let cache = gpu.checked(|| unsafe { gpu.device.create_pipeline_cache(&descriptor) }).ok()?;
        Some(DriverCache { cache, file, about: about.clone(), new: AtomicU64::new(0) })
    }

    /// The cache object for creating pipelines.
    pub(super) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Counts a pipeline that was compiled.
    pub(super) fn compiled(&self) {
        self.new.fetch_add(1, Relaxed);
    }

    /// Stores the pipelines that were compiled since the last call. A failure only means that the next start compiles
    /// again.
    pub(super) fn keep(&self) {
        if self.new.swap(0, Relaxed) == 0 {
            return;
        }
        let Some(data) = self.cache.get_data().filter(|d| !d.is_empty() && d.len() <= BYTES_MAX) else { return };
        if let Err(error) = write_whole(&self.file, &wrapped(MAGIC, &data, &self.about)) {
            tracing::debug!(target: "tidemill::device", "the compiled pipelines were not kept: {error}");
        }
    }
}
