//! From files into arrays, on a thread that may wait.
//!
//! In: a source and a session. Out: arrays. Elements are decoded in blocks of a mebibyte and written to an upload
//! writer.

use crate::AnyArray;
use crate::element::{FileElement, Kind};
use crate::error::{damaged, error, io, named};
use crate::layout::Layout;
use crate::source::{Place, Source};
use crate::threads::Stop;
use futures::executor::block_on;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tidemill::{Array, ErrorKind, Result, Session, Shape, UploadWriter};

/// Numbers that are decoded at a time.
const NUMBERS: usize = 128 << 10;
/// Bytes of an array that go through the host at a time, where it does not hold the whole.
const SEGMENT_BYTES: usize = 64 << 20;
/// Pieces as small as this one that find no memory are an error.
const SEGMENT_BYTES_MIN: usize = 64 << 10;

/// Something that yields the numbers of a file, one after another; of complex ones, their parts.
pub(crate) trait Fill<T> {
    fn fill(&mut self, out: &mut [T]) -> Result<()>;
}

/// Numbers in binary form.
struct Binary<R> {
    reader: R,
    kind: Kind,
    big_endian: bool,
    path: PathBuf,
    /// Numbers that the file should have, and that were read; parts of complex ones count.
    all: u64,
    done: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Binary<R> {
    fn new(reader: R, source: &Source) -> Binary<R> {
        let layout = &source.0.layout;
        let all = layout.elements() * layout.kind.parts() as u64;
        let path = source.path().to_owned();
        Binary { reader, kind: layout.kind, big_endian: layout.big_endian, path, all, done: 0, bytes: Vec::new() }
    }
}

impl<T: FileElement, R: Read> Fill<T> for Binary<R> {
    fn fill(&mut self, out: &mut [T]) -> Result<()> {
        self.bytes.resize(out.len() * (self.kind.bytes() / self.kind.parts()), 0);
        let parts = self.kind.parts() as u64;
        self.reader.read_exact(&mut self.bytes).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let (all, done) = (self.all / parts, self.done / parts);
                damaged(&self.path, format!("it should hold {all} elements, and ends some place behind element {done}"))
            }
            _ => io(&self.path, "it can't be read", &cause),
        })?;
        T::decode(self.kind, self.big_endian, &self.bytes, out).map_err(|at| {
            let what = format!(
                "element {} (in the file's order) is a u64 above 2^63 - 1, which no dtype of an array holds: store f64",
                self.done + at as u64
            );
            error(ErrorKind::DType, &self.path, what)
        })?;
        self.done += out.len() as u64;
        Ok(())
    }
}

/// Opens a file.
///
/// # Errors
/// `ErrorKind::Io` where it is not there, or is no file.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let fail = |cause| error(ErrorKind::Io, path, format!("it can't be opened: {cause}"));
    let file = File::open(path).map_err(fail)?;
    let facts = file.metadata().map_err(fail)?;
    if !facts.is_file() {
        return Err(error(ErrorKind::Io, path, "it is a folder, a pipe or a device; only files are read"));
    }
    Ok((file, facts.len()))
}

/// Does something with the numbers of a source.
pub(crate) fn with_numbers<T: FileElement, R>(
    source: &Source,
    work: impl FnOnce(&mut dyn Fill<T>) -> Result<R>,
) -> Result<R> {
    let path = source.path();
    match &source.0.place {
        Place::At(offset) => {
            let (mut file, _) = open(path)?;
            file.seek(SeekFrom::Start(*offset)).map_err(|cause| io(path, "it can't be read", &cause))?;
            work(&mut Binary::new(file, source))
        }
        #[cfg(feature = "npz")]
        Place::Member { index, behind } => crate::npz::with_member(path, *index, |mut member| {
            let skipped = std::io::copy(&mut (&mut member).take(*behind), &mut std::io::sink());
            skipped.map_err(|cause| io(path, "it can't be read", &cause))?;
            let mut binary = Binary::new(&mut member, source);
            let result = work(&mut binary)?;
            // The checksum is looked at where the member ends.
            let rest = std::io::copy(&mut member, &mut std::io::sink());
            rest.map_err(|cause| damaged(path, format!("a member of the archive is damaged: {cause}")))?;
            Ok(result)
        }),
        #[cfg(feature = "csv")]
        Place::Table(options) => work(&mut crate::csv::Cells::open(source, options)?),
    }
}

/// Reads a whole array.
pub(crate) fn read<T: FileElement>(source: &Source, s: &Session, stop: &Stop) -> Result<AnyArray> {
    let (path, layout) = (source.path(), &source.0.layout);
    Shape::new(&layout.dims).map_err(|cause| {
        error(cause.kind(), path, format!("{}; read it in pieces (Source::pieces)", cause.message()))
    })?;
    let elements = layout.elements() as usize;
    with_numbers::<T, _>(source, |numbers| {
        let flat = match upload::<T>(s, path, layout.kind, elements) {
            Ok(writer) => filled(writer, numbers, path, stop).map(|pairs| parts(&pairs, layout.kind)),
            Err(cause) if cause.kind() == ErrorKind::OutOfMemory => assembled::<T>(source, s, numbers, stop),
            Err(cause) => Err(cause),
        };
        Ok(shaped(flat?, &layout.fastest_first(), layout.row_major))
    })
}

/// Reads the next so many elements as an array of these extents, the fastest first.
pub(crate) fn read_next<T: FileElement>(
    source: &Source,
    s: &Session,
    numbers: &mut dyn Fill<T>,
    fastest_first: &[usize],
    stop: &Stop,
) -> Result<AnyArray> {
    let (path, layout) = (source.path(), &source.0.layout);
    let shape = Shape::new(fastest_first)
        .map_err(|cause| error(cause.kind(), path, format!("{}; ask for smaller pieces", cause.message())))?;
    let writer = upload::<T>(s, path, layout.kind, shape.elements())?;
    let pairs = filled(writer, numbers, path, stop)?;
    Ok(shaped(parts(&pairs, layout.kind), fastest_first, layout.row_major))
}

/// Memory for elements: a column of real numbers, or two rows of parts.
fn upload<T: FileElement>(s: &Session, path: &Path, kind: Kind, elements: usize) -> Result<UploadWriter<T>> {
    let writer = match kind.is_complex() {
        true => block_on(s.upload_async::<T>([2, elements])),
        false => block_on(s.upload_async::<T>(elements)),
    };
    writer.map_err(|cause| named(path, &cause))
}

fn filled<T: FileElement>(
    mut writer: UploadWriter<T>,
    numbers: &mut dyn Fill<T>,
    path: &Path,
    stop: &Stop,
) -> Result<Array> {
    let mut left = writer.shape().elements();
    let mut block = vec![T::default(); NUMBERS.min(left)];
    while left > 0 {
        stop.check(path)?;
        let block = &mut block[..NUMBERS.min(left)];
        numbers.fill(block)?;
        writer.write(block)?;
        left -= block.len();
    }
    Ok(writer.finish())
}

/// Puts a column together on its device, of pieces that the host has memory for.
fn assembled<T: FileElement>(source: &Source, s: &Session, numbers: &mut dyn Fill<T>, stop: &Stop) -> Result<AnyArray> {
    let (path, layout) = (source.path(), &source.0.layout);
    let elements = layout.elements() as usize;
    let zeros = || s.zeros::<T>(elements);
    let mut whole = match layout.kind.is_complex() {
        true => vec![zeros(), zeros()],
        false => vec![zeros()],
    };
    let (mut done, mut bytes) = (0, SEGMENT_BYTES);
    while done < elements {
        let count = (bytes / layout.kind.bytes()).clamp(1, elements - done);
        let writer = match upload::<T>(s, path, layout.kind, count) {
            Err(cause) if cause.kind() == ErrorKind::OutOfMemory && bytes > SEGMENT_BYTES_MIN => {
                bytes /= 2;
                continue;
            }
            writer => writer?,
        };
        let pieces = match parts(&filled(writer, numbers, path, stop)?, layout.kind) {
            AnyArray::Real(piece) => vec![piece],
            AnyArray::Complex(piece) => vec![piece.re(), piece.im()],
        };
        for (whole, piece) in whole.iter_mut().zip(pieces) {
            *whole = whole.assign((done..done + count, ..), &piece);
            drop(piece);
            block_on(whole.eval()).map_err(|cause| named(path, &cause))?;
        }
        done += count;
    }
    let mut whole = whole.into_iter();
    Ok(match (whole.next(), whole.next()) {
        (Some(re), Some(im)) => AnyArray::Complex(re.complex(&im)),
        (Some(array), None) => AnyArray::Real(array),
        _ => unreachable!("one or two arrays were made here"),
    })
}

/// A column of numbers from numbers, or from pairs of parts.
fn parts(flat: &Array, kind: Kind) -> AnyArray {
    if kind.is_complex() {
        let part = |n: usize| flat.slice((n..n + 1, ..)).flatten();
        AnyArray::Complex(part(0).complex(&part(1)))
    } else {
        AnyArray::Real(flat.clone())
    }
}

/// Gives a column its extents, which are listed with the fastest first.
fn shaped(flat: AnyArray, fastest_first: &[usize], row_major: bool) -> AnyArray {
    let turned: Vec<usize> = (0..fastest_first.len()).rev().collect();
    let turns = row_major && turned.len() > 1;
    match flat {
        AnyArray::Real(flat) => {
            let array = flat.reshape(fastest_first);
            AnyArray::Real(if turns { array.permute(&turned) } else { array })
        }
        AnyArray::Complex(flat) => {
            let array = flat.reshape(fastest_first);
            AnyArray::Complex(if turns { array.permute(&turned) } else { array })
        }
    }
}

/// Whether a file of so many bytes holds what its header says.
pub(crate) fn holds(path: &Path, layout: &Layout, offset: u64, file_bytes: u64) -> Result<()> {
    let there = file_bytes.saturating_sub(offset);
    if layout.bytes() > there {
        let what = format!(
            "its header says that it holds an array of {:?} {}, {} bytes, but {there} bytes follow: it is cut short",
            layout.dims,
            layout.kind.name(),
            layout.bytes(),
        );
        return Err(damaged(path, what));
    }
    Ok(())
}

/// A reader that begins at a file's begin.
pub(crate) fn buffered(file: File) -> BufReader<File> {
    BufReader::with_capacity(1 << 20, file)
}
