//! `safetensors`: tensors with names, as machine learning stores weights.
//!
//! Tensors are row-major in such files. An array is turned on its device before it is gathered.

use crate::archive::distinct;
use crate::element::Kind;
use crate::error::{damaged, error, io, named};
use crate::fill::{buffered, open as open_file};
use crate::layout::Layout;
use crate::put::{Bytes, kind, put};
use crate::source::{Place, Source};
use crate::target::Target;
use crate::threads::off_thread;
use crate::{Archive, Tensor};
use ::safetensors::Dtype;
use ::safetensors::tensor::{Metadata, TensorInfo};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::path::Path;
use tidemill::{ErrorKind, Result};

/// Bytes before the header, which say how long it is.
const LENGTH_BYTES: u64 = 8;
/// The longest header that is read, as the format's own limit is.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// Opens a file: reads its header.
///
/// # Errors
/// `ErrorKind::Io`; `ErrorKind::Format` where it is no such file, where tensors overlap or leave holes, and where it is
/// longer or shorter than its header says.
pub async fn open(path: impl AsRef<Path>) -> Result<Archive> {
    let path = path.as_ref().to_owned();
    off_thread(move |_| {
        let (file, bytes) = open_file(&path)?;
        let mut file = buffered(file);
        let mut length = [0; LENGTH_BYTES as usize];
        file.read_exact(&mut length).map_err(|cause| io(&path, "its safetensors header is cut short", &cause))?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_BYTES_MAX || length > bytes - LENGTH_BYTES {
            let what = format!("it is no safetensors file, or cut short: a header of {length} bytes in {bytes} bytes");
            return Err(damaged(&path, what));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(|cause| io(&path, "its safetensors header is cut short", &cause))?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|cause| damaged(&path, format!("its safetensors header is damaged: {cause}")))?;
        let begin = LENGTH_BYTES + length;
        if begin.checked_add(metadata.data_len() as u64) != Some(bytes) {
            let what = format!(
                "its header says that {} bytes of tensors follow, and {} do: it is cut short, or was appended to",
                metadata.data_len(),
                bytes - begin
            );
            return Err(damaged(&path, what));
        }
        let entries = metadata.offset_keys().into_iter().filter_map(|name| {
            let source = source(&path, &name, metadata.info(&name)?, begin);
            Some((name, source))
        });
        let notes = metadata.metadata().clone().unwrap_or_default().into_iter().collect();
        Ok(Archive { entries: entries.collect(), notes, path })
    })
    .await
}

/// Writes tensors.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("w.safetensors");
/// # futures::executor::block_on(async {
/// # let rt = tidemill::Runtime::builder().device("host").start().await?;
/// # let s = rt.session("files").open();
/// use tidemill_files::{Tensor, safetensors};
/// let (weights, biases) = (s.ones::<f32>([10, 64]), s.zeros::<f32>([10, 1]));
/// let tensors = [("weights", Tensor::from(&weights)), ("biases", Tensor::vector(&biases))];
/// safetensors::write(&path, tensors).await?;
/// let file = safetensors::open(&path).await?;
/// assert_eq!(file.get("biases")?.dims(), [10]);
/// assert_eq!(file.read(&s, "weights").await?.shape()?.dims(), [10, 64]);
/// # rt.shutdown().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The arrays' faults, what happened to their computation; `ErrorKind::Argument` for two tensors of one name;
/// `ErrorKind::DType` for c128, which the format lacks; `ErrorKind::Io`.
pub async fn write<N: Into<String>, T: Into<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    write_with_notes(path, tensors, BTreeMap::new()).await
}

/// As [`write()`], with notes that the file holds beside its tensors.
///
/// # Errors
/// As [`write()`].
pub async fn write_with_notes<N: Into<String>, T: Into<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
    notes: BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref().to_owned();
    let tensors = distinct(&path, tensors);
    off_thread(move |stop| {
        let mut sorted = Vec::new();
        for (name, tensor) in tensors? {
            let dims = tensor.dims().map_err(|cause| named(&path, &cause))?;
            let dtype = dtype_of(kind(&tensor, &path)?, &path, &name)?;
            sorted.push((name, dtype, dims, tensor));
        }
        // As the format's own library does: what needs the widest alignment comes first.
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut end = 0;
        let infos = sorted.iter().map(|(name, dtype, dims, _)| {
            let begin = end;
            end += dims.iter().product::<usize>() * dtype.bitsize() / 8;
            (name.clone(), TensorInfo { dtype: *dtype, shape: dims.clone(), data_offsets: (begin, end) })
        });
        let notes = (!notes.is_empty()).then(|| notes.into_iter().collect::<HashMap<String, String>>());
        let broken = |cause: &dyn std::fmt::Display| error(ErrorKind::Internal, &path, cause);
        let metadata = Metadata::new(notes, infos.collect()).map_err(|cause| broken(&cause))?;
        let mut header = serde_json::to_vec(&metadata).map_err(|cause| broken(&cause))?;
        header.resize(header.len().next_multiple_of(LENGTH_BYTES as usize), b' ');
        let mut target = Target::create(&path)?;
        let begin = target.write_all(&(header.len() as u64).to_le_bytes()).and_then(|()| target.write_all(&header));
        begin.map_err(|cause| io(&path, "it can't be written", &cause))?;
        for (_, _, _, tensor) in &sorted {
            put(tensor, true, &path, &mut Bytes::new(&mut target), stop)?;
        }
        target.finish()
    })
    .await
}

fn source(path: &Path, name: &str, info: &TensorInfo, begin: u64) -> Result<Source> {
    let kind = match info.dtype {
        Dtype::BOOL => Kind::Bool,
        Dtype::U8 => Kind::U8,
        Dtype::I8 => Kind::I8,
        Dtype::I16 => Kind::I16,
        Dtype::U16 => Kind::U16,
        Dtype::F16 => Kind::F16,
        Dtype::BF16 => Kind::BF16,
        Dtype::I32 => Kind::I32,
        Dtype::U32 => Kind::U32,
        Dtype::F32 => Kind::F32,
        Dtype::C64 => Kind::C64,
        Dtype::F64 => Kind::F64,
        Dtype::I64 => Kind::I64,
        Dtype::U64 => Kind::U64,
        other => {
            let what = format!("tensor {name:?} is of {other}, and no array holds such: store it as BF16 or F32");
            return Err(error(ErrorKind::DType, path, what));
        }
    };
    let dims: Vec<u64> = info.shape.iter().map(|&extent| extent as u64).collect();
    let layout = Layout::new(path, kind, false, &dims, true)?;
    Ok(Source::new(path, layout, Place::At(begin + info.data_offsets.0 as u64)))
}

fn dtype_of(kind: Kind, path: &Path, name: &str) -> Result<Dtype> {
    Ok(match kind {
        Kind::Bool => Dtype::BOOL,
        Kind::U8 => Dtype::U8,
        Kind::I8 => Dtype::I8,
        Kind::I16 => Dtype::I16,
        Kind::U16 => Dtype::U16,
        Kind::F16 => Dtype::F16,
        Kind::BF16 => Dtype::BF16,
        Kind::I32 => Dtype::I32,
        Kind::U32 => Dtype::U32,
        Kind::F32 => Dtype::F32,
        Kind::I64 => Dtype::I64,
        Kind::U64 => Dtype::U64,
        Kind::F64 => Dtype::F64,
        Kind::C64 => Dtype::C64,
        Kind::C128 => {
            let what =
                format!("tensor {name:?} is of c128, which safetensors lack: store re() and im(), or cast them to f32");
            return Err(error(ErrorKind::DType, path, what));
        }
    })
}
