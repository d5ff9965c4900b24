//! What the driver compiled, kept on disk: the next process does not compile it again.
//!
//! In: a device that has pipeline caches. Out: the cache that pipelines are made with; a file beside the measured
//! costs, named as wgpu names caches of an adapter's kind. A file that is missing, foreign, damaged or too large is no
//! error: the cache begins empty. Must hold: only bytes that this program wrote, whole, reach the driver; a reader
//! never sees half a file.

use super::adapter::Opened;
use super::kept::{Magic, unwrapped, wrapped};
use crate::device::costs::{folder, write_whole};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The file's first bytes: what it is, and the version of its form.
const MAGIC: &Magic = b"tidemill pipelines, 1\n\n\n";
/// The driver's bytes at most: a cache that grows beyond this begins anew.
const BYTES_MAX: usize = 64 << 20;

/// The cache of one device.
pub(super) struct DriverCache {
    cache: wgpu::PipelineCache,
    file: PathBuf,
    about: wgpu::AdapterInfo,
    /// Pipelines that were compiled and not kept yet.
    new: AtomicU64,
}

impl DriverCache {
    /// The cache of an opened device, with what was kept of it; `None` where the device has none, or the user no
    /// folder.
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

    /// What pipelines are made with.
    pub(super) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Another pipeline was compiled.
    pub(super) fn compiled(&self) {
        self.new.fetch_add(1, Relaxed);
    }

    /// Keeps what was compiled since the last time. A failure costs a compilation at the next start, no more.
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
