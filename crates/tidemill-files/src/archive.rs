//! [`Archive`]: several arrays in one file, each with a name.

use crate::error::error;
use crate::{AnyArray, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidemill::{ErrorKind, Result, Session};

/// Arrays in one file: a `.npz` or a `safetensors` file of which the headers were read.
#[derive(Clone, Debug)]
pub struct Archive {
    pub(crate) path: PathBuf,
    /// Each with its source, or with the reason why it can't be read.
    pub(crate) entries: Vec<(String, Result<Source>)>,
    pub(crate) notes: BTreeMap<String, String>,
}

impl Archive {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The arrays' names, in the file's order, also of those that can't be read.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// What the file says beside its arrays: the `__metadata__` of a `safetensors` file.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// An array of the file, by its name.
    ///
    /// # Errors
    /// `ErrorKind::Argument` for a name that is not there; why the array can't be read, as opening a file of its own
    /// would say.
    pub fn get(&self, name: &str) -> Result<Source> {
        match self.entries.iter().find(|(known, _)| known == name) {
            Some((_, source)) => source.clone(),
            None => {
                const SHOWN: usize = 20;
                let mut names: Vec<String> = self.names().take(SHOWN).map(|name| format!("{name:?}")).collect();
                if self.entries.len() > SHOWN {
                    names.push("…".to_owned());
                }
                let what = format!("it has no array {name:?}; it has {}", names.join(", "));
                Err(error(ErrorKind::Argument, &self.path, what))
            }
        }
    }

    /// Reads an array.
    ///
    /// # Errors
    /// Those of [`Archive::get`] and of [`Source::read`].
    pub async fn read(&self, s: &Session, name: &str) -> Result<AnyArray> {
        self.get(name)?.read(s).await
    }

    /// Reads all arrays, one after another.
    ///
    /// # Errors
    /// Those of [`Archive::read`], of the first array that fails.
    pub async fn read_all(&self, s: &Session) -> Result<BTreeMap<String, AnyArray>> {
        let mut arrays = BTreeMap::new();
        for (name, source) in &self.entries {
            arrays.insert(name.clone(), source.clone()?.read(s).await?);
        }
        Ok(arrays)
    }
}

/// Arrays on their way into a file, whose names differ.
pub(crate) fn distinct<N: Into<String>, T: Into<crate::Tensor>>(
    path: &Path,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<Vec<(String, crate::Tensor)>> {
    let tensors: Vec<(String, crate::Tensor)> =
        tensors.into_iter().map(|(name, tensor)| (name.into(), tensor.into())).collect();
    let mut names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(error(ErrorKind::Argument, path, format!("two arrays are to be called {:?}", pair[0]))),
        None => Ok(tensors),
    }
}
