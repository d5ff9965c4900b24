//! `.npz`, an archive of `.npy` files, as `numpy.savez` and `numpy.savez_compressed` write it.

use crate::archive::distinct;
use crate::error::{damaged, error, io, named};
use crate::fill::{buffered, open as open_file};
use crate::npy::{header, header_of, is_fortran};
use crate::put::{Bytes, kind, put};
use crate::source::{Place, Source};
use crate::target::Target;
use crate::threads::off_thread;
use crate::{Archive, Tensor};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use tidemill::{ErrorKind, Result};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// No byte of deflated data becomes more bytes than this.
const DEFLATE_RATIO_MAX: u64 = 1032;

/// Opens a file: reads its directory and the header of each array. Members that are no `.npy` files are left out.
///
/// # Errors
/// `ErrorKind::Io`; `ErrorKind::Format` where it is no archive, or its directory is damaged.
pub async fn open(path: impl AsRef<Path>) -> Result<Archive> {
    let path = path.as_ref().to_owned();
    off_thread(move |stop| {
        let mut archive = archive(&path)?;
        let mut entries = Vec::new();
        for index in 0..archive.len() {
            stop.check(&path)?;
            let member = archive.by_index(index).map_err(|cause| refused(&path, &cause))?;
            let name = member.name().map_err(|cause| refused(&path, &cause))?.into_owned();
            if let Some(name) = name.strip_suffix(".npy") {
                let source = source(member, &path, index);
                let source = source.map_err(|cause| {
                    let what = cause.message().replacen(": ", &format!(", array {name:?}: "), 1);
                    tidemill::Error::new(cause.kind(), what)
                });
                entries.push((name.to_owned(), source));
            }
        }
        Ok(Archive { path, entries, notes: BTreeMap::new() })
    })
    .await
}

/// Writes arrays, as they are.
///
/// # Errors
/// The arrays' faults, what happened to their computation; `ErrorKind::Argument` for two arrays of one name;
/// `ErrorKind::Io`.
pub async fn write<N: Into<String>, T: Into<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    write_by(path.as_ref(), distinct(path.as_ref(), tensors), CompressionMethod::Stored).await
}

/// Writes arrays, deflated.
///
/// # Errors
/// As [`write()`].
pub async fn write_compressed<N: Into<String>, T: Into<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    write_by(path.as_ref(), distinct(path.as_ref(), tensors), CompressionMethod::Deflated).await
}

async fn write_by(path: &Path, tensors: Result<Vec<(String, Tensor)>>, method: CompressionMethod) -> Result<()> {
    let (path, tensors) = (path.to_owned(), tensors?);
    off_thread(move |stop| {
        let failed = |cause: ZipError| refused(&path, &cause);
        let mut archive = ZipWriter::new(Target::create(&path)?);
        for (name, tensor) in &tensors {
            let dims = tensor.dims().map_err(|cause| named(&path, &cause))?;
            let options = SimpleFileOptions::default().compression_method(method).large_file(true);
            archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
            let header = header_of(kind(tensor, &path)?, &dims, is_fortran(&dims));
            archive.write_all(&header).map_err(|cause| io(&path, "it can't be written", &cause))?;
            put(tensor, false, &path, &mut Bytes::new(&mut archive), stop)?;
        }
        archive.finish().map_err(failed)?.finish()
    })
    .await
}

/// Calls `work` with a member's bytes.
pub(crate) fn with_member<R>(
    path: &Path,
    index: usize,
    work: impl FnOnce(ZipFile<'_, BufReader<File>>) -> Result<R>,
) -> Result<R> {
    work(archive(path)?.by_index(index).map_err(|cause| refused(path, &cause))?)
}

fn archive(path: &Path) -> Result<ZipArchive<BufReader<File>>> {
    let (file, _) = open_file(path)?;
    ZipArchive::new(buffered(file)).map_err(|cause| refused(path, &cause))
}

/// The array of a member.
fn source(mut member: ZipFile<'_, BufReader<File>>, path: &Path, index: usize) -> Result<Source> {
    let (size, packed) = (member.size(), member.compressed_size());
    let (layout, behind) = header(&mut member.by_ref(), path)?;
    // The directory may lie about both sizes: the packed one is held against the file.
    let file_bytes = std::fs::metadata(path).map_err(|cause| io(path, "it can't be read", &cause))?.len();
    let most = match member.compression() {
        CompressionMethod::Stored => packed,
        _ => packed.saturating_mul(DEFLATE_RATIO_MAX),
    };
    if packed > file_bytes || size > most {
        return Err(damaged(path, "its directory claims more bytes than the file can hold"));
    }
    crate::fill::holds(path, &layout, behind, size)?;
    Ok(Source::new(path, layout, Place::Member { index, behind }))
}

fn refused(path: &Path, cause: &ZipError) -> tidemill::Error {
    match cause {
        ZipError::Io(cause) => io(path, "it can't be read or written", cause),
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            let what = format!("{cause}: archives that are stored or deflated, as NumPy writes them, are read");
            error(ErrorKind::Unsupported, path, what)
        }
        _ => damaged(path, format!("it is no .npz file, or damaged: {cause}")),
    }
}
