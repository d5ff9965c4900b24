//! Stores on disk which shaders earlier runs needed, so that a new process can compile them before they are needed.
//!
//! In: the text of each shader that is compiled. Out: the texts that most runs needed. A file that is missing, damaged
//! or of another driver is no error: the history then starts empty. Must hold: a shader counts once per run; the file holds
//! at most [`TEXTS_MAX`] texts and [`BYTES_MAX`] bytes, those that the most runs needed; in memory there are at most
//! twice as many.

use super::kept::{self, Magic};
use super::pipelines::Given;
use crate::device::costs::{folder, write_whole};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MAGIC: &Magic = b"tidemill shaders, 1\n\n\n\n\n";
/// Most texts in the file.
const TEXTS_MAX: usize = 512;
/// Most bytes of texts in the file.
const BYTES_MAX: usize = 4 << 20;

/// A shader's text, and the interface of its pipeline.
pub(super) type Shader = (Given, Arc<str>);

/// In how many runs a shader was needed, and whether this run is one of them.
#[derive(Clone, Copy, Default)]
struct Need {
    runs: u32,
    now: bool,
}

/// The known shaders of one device.
pub(super) struct Known {
    file: PathBuf,
    about: wgpu::AdapterInfo,
    shaders: Mutex<FxHashMap<Shader, Need>>,
    is_new: AtomicBool,
}

impl Known {
    /// The known shaders of an adapter; `None` if the user has no cache folder.
    pub(super) fn open(about: &wgpu::AdapterInfo) -> Option<Known> {
        Some(Known::at(folder()?, about))
    }

    fn at(folder: PathBuf, about: &wgpu::AdapterInfo) -> Known {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = format!("{}-{}", about.name, about.backend).chars().map(plain).collect();
        let file = folder.join(format!("shaders-{name}.bin"));
        let bytes = std::fs::read(&file).ok();
        let kept = bytes.map(|bytes| kept::unwrapped(MAGIC, bytes, about, 2 * BYTES_MAX).and_then(|b| from_bytes(&b)));
        if let Some(None) = kept {
            tracing::debug!(target: "tidemill::device", "{} is damaged, or of another driver: it begins anew", file.display());
        }
        let shaders = Mutex::new(kept.flatten().unwrap_or_default());
        Known { file, about: about.clone(), shaders, is_new: AtomicBool::new(false) }
    }

    /// Notes that this run needs a shader.
    pub(super) fn needed(&self, given: Given, wgsl: &str) {
        let mut shaders = self.shaders.lock();
        let shader = (given, wgsl.into());
        if shaders.len() >= 2 * TEXTS_MAX && !shaders.contains_key(&shader) {
            return;
        }
        let need = shaders.entry(shader).or_default();
        if !std::mem::replace(&mut need.now, true) {
            need.runs = need.runs.saturating_add(1);
            self.is_new.store(true, Relaxed);
        }
    }

    /// At most `most` shaders that this run has not needed yet, those of the most runs first.
    pub(super) fn most_needed(&self, most: usize) -> Vec<Shader> {
        let shaders = self.shaders.lock();
        let known = by_need(&shaders).into_iter().filter(|(_, need)| !need.now);
        known.take(most).map(|(shader, _)| shader.clone()).collect()
    }

    /// Whether this run needed a shader already.
    pub(super) fn is_needed(&self, shader: &Shader) -> bool {
        self.shaders.lock().get(shader).is_some_and(|need| need.now)
    }

    /// Updates the file. A failure only means that the next start cannot compile these shaders in advance.
    pub(super) fn keep(&self) {
        if !self.is_new.swap(false, Relaxed) {
            return;
        }
        let data = to_bytes(&self.shaders.lock());
        if let Err(error) = write_whole(&self.file, &kept::wrapped(MAGIC, &data, &self.about)) {
            tracing::debug!(target: "tidemill::device", "the known shaders were not kept: {error}");
        }
    }
}

/// The shaders, those of the most runs first, then in the order of their texts.
fn by_need(shaders: &FxHashMap<Shader, Need>) -> Vec<(&Shader, &Need)> {
    let mut sorted: Vec<_> = shaders.iter().collect();
    sorted.sort_by(|a, b| b.1.runs.cmp(&a.1.runs).then_with(|| a.0.1.cmp(&b.0.1)));
    sorted
}

/// For each shader its runs, bindings, words of immediates and length, each 4 bytes, and its text.
fn to_bytes(shaders: &FxHashMap<Shader, Need>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((given, wgsl), need) in by_need(shaders).into_iter().take(TEXTS_MAX) {
        if bytes.len() + wgsl.len() > BYTES_MAX {
            continue;
        }
        for word in [need.runs, given.bindings, given.immediate_words, wgsl.len() as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(wgsl.as_bytes());
    }
    bytes
}

fn from_bytes(mut bytes: &[u8]) -> Option<FxHashMap<Shader, Need>> {
    let mut shaders = FxHashMap::default();
    while !bytes.is_empty() {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(4 * at..4 * at + 4)?.try_into().ok()?));
        let (runs, bindings, immediate_words, length) = (word(0)?, word(1)?, word(2)?, word(3)? as usize);
        let text = std::str::from_utf8(bytes.get(16..16 + length)?).ok()?;
        shaders.insert((Given { bindings, immediate_words }, text.into()), Need { runs, now: false });
        bytes = &bytes[16 + length..];
    }
    Some(shaders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::adapter;
    use crate::device::gpu::tests::rig::no_adapter;

    const GIVEN: Given = Given { bindings: 3, immediate_words: 5 };

    #[test]
    fn what_most_runs_needed_comes_first_and_a_damaged_file_is_nothing() {
        if no_adapter() {
            return;
        }
        let about = adapter::abouts().remove(0);
        let folder = tempfile::tempdir().unwrap();
        for run in 0..3 {
            let known = Known::at(folder.path().to_owned(), &about);
            assert_eq!(known.most_needed(10).len(), [0, 2, 2][run]);
            (0..5).for_each(|_| known.needed(GIVEN, "often"));
            if run == 0 {
                known.needed(GIVEN, "once");
            }
            known.keep();
        }
        let known = Known::at(folder.path().to_owned(), &about);
        let names = |known: &Known, most| -> Vec<String> {
            known.most_needed(most).into_iter().map(|(given, wgsl)| format!("{wgsl} {}", given.bindings)).collect()
        };
        assert_eq!(names(&known, 10), ["often 3", "once 3"]);
        assert_eq!(names(&known, 1), ["often 3"]);
        known.needed(GIVEN, "often");
        assert_eq!(names(&known, 10), ["once 3"]);
        let mut bytes = std::fs::read(&known.file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&known.file, bytes).unwrap();
        assert!(Known::at(folder.path().to_owned(), &about).most_needed(10).is_empty());
    }

    #[test]
    fn the_file_is_bounded() {
        let text = |i: usize| format!("{i:06}{}", "x".repeat(20_000)).into();
        let shaders = (0..1000).map(|i| ((GIVEN, text(i)), Need { runs: i as u32, now: true })).collect();
        let bytes = to_bytes(&shaders);
        assert!(bytes.len() <= BYTES_MAX + 16 * TEXTS_MAX, "{}", bytes.len());
        let kept = from_bytes(&bytes).unwrap();
        assert!(kept.len() > 150 && kept.contains_key(&(GIVEN, text(999))) && !kept.contains_key(&(GIVEN, text(0))));
    }
}
