//! What the driver compiled, kept on disk: the next process does not compile it again.
//!
//! In: a device that has pipeline caches. Out: the cache that pipelines are made with; a file beside the measured
//! costs, named as wgpu names caches of an adapter's kind. A file that is missing, foreign, damaged or too large is no
//! error: the cache begins empty. Must hold: only bytes that this program wrote, whole, reach the driver; a reader
//! never sees half a file.

use super::adapter::Opened;
use crate::device::costs::{folder, write_whole};
use std::hash::Hasher;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The file's first bytes: what it is, and the version of its form.
const MAGIC: &[u8; 24] = b"tidemill pipelines, 1\n\n\n";
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
        let kept = std::fs::read(&file).ok().and_then(|bytes| unwrapped(bytes, about));
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
        if let Err(error) = write_whole(&self.file, &wrapped(&data, &self.about)) {
            tracing::debug!(target: "tidemill::device", "the compiled pipelines were not kept: {error}");
        }
    }
}

/// A driver's bytes with what tells them from any others: magic, a number of adapter, driver and bytes, their length.
fn wrapped(data: &[u8], about: &wgpu::AdapterInfo) -> Vec<u8> {
    let mut file = Vec::with_capacity(MAGIC.len() + 16 + data.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&number(data, about).to_le_bytes());
    file.extend_from_slice(&(data.len() as u64).to_le_bytes());
    file.extend_from_slice(data);
    file
}

/// The driver's bytes of a file, if it is whole and of this adapter and driver.
fn unwrapped(mut file: Vec<u8>, about: &wgpu::AdapterInfo) -> Option<Vec<u8>> {
    let head = MAGIC.len() + 16;
    if file.len() < head || file.len() > head + BYTES_MAX || !file.starts_with(MAGIC) {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let (expected, length) = (word(MAGIC.len())?, word(MAGIC.len() + 8)?);
    let data = file.split_off(head);
    (length == data.len() as u64 && expected == number(&data, about)).then_some(data)
}

fn number(data: &[u8], about: &wgpu::AdapterInfo) -> u64 {
    // Another compiler of this program may hash otherwise: then the cache begins anew, once.
    let mut hasher = std::hash::DefaultHasher::new();
    for words in [&about.name, &about.driver, &about.driver_info] {
        hasher.write(words.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.write(data);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::adapter;
    use crate::device::gpu::tests::rig::no_adapter;

    #[test]
    fn a_file_is_taken_whole_and_of_the_same_driver_or_not_at_all() {
        if no_adapter() {
            return;
        }
        let about = adapter::abouts().remove(0);
        let file = wrapped(b"what a driver compiled", &about);
        assert_eq!(unwrapped(file.clone(), &about).as_deref(), Some(&b"what a driver compiled"[..]));
        for length in 0..file.len() {
            assert_eq!(unwrapped(file[..length].to_vec(), &about), None, "cut to {length}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert_eq!(unwrapped(damaged, &about), None, "damaged at {at}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(unwrapped(longer, &about), None);
        let other = wgpu::AdapterInfo { driver_info: "of tomorrow".to_owned(), ..about };
        assert_eq!(unwrapped(file, &other), None);
    }
}
