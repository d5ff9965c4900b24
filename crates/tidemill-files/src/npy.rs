//! `.npy`, one array of NumPy.
//!
//! [`write()`] stores arrays as they lie, with `fortran_order`, which NumPy reads without a copy.

use crate::element::Kind;
use crate::error::{damaged, error, io, named};
use crate::fill::{buffered, holds, open as open_file};
use crate::layout::Layout;
use crate::put::{Bytes, kind, put};
use crate::source::{Place, Source};
use crate::target::Target;
use crate::threads::off_thread;
use crate::{AnyArray, Tensor};
use py_literal::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tidemill::{DType, ErrorKind, Result, Session};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The longest header that is read, as NumPy's own limit is.
const HEADER_BYTES_MAX: usize = 10_000;
/// Brackets within brackets, in a header; those of one array have two.
const DEPTH_MAX: usize = 16;
/// Digits that NumPy leaves room for, so that an array can grow in its file.
const EXTENT_DIGITS_MAX: usize = 21;
/// Elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// Opens a file: reads its header.
///
/// # Errors
/// `ErrorKind::Io`; `ErrorKind::Format` where it is no `.npy` file, or shorter than its header says; `ErrorKind::DType`
/// for elements that no array holds; `ErrorKind::TooLarge` for extents that no file has.
pub async fn open(path: impl AsRef<Path>) -> Result<Source> {
    let path = path.as_ref().to_owned();
    off_thread(move |_| {
        let (file, bytes) = open_file(&path)?;
        let (layout, offset) = header(&mut buffered(file), &path)?;
        holds(&path, &layout, offset, bytes)?;
        Ok(Source::new(&path, layout, Place::At(offset)))
    })
    .await
}

/// Reads the array of a file.
///
/// # Errors
/// Those of [`open`] and of [`Source::read`].
pub async fn read(s: &Session, path: impl AsRef<Path>) -> Result<AnyArray> {
    open(path).await?.read(s).await
}

/// Writes an array.
///
/// # Errors
/// The array's fault, what happened to its computation, and `ErrorKind::Io`.
pub async fn write(path: impl AsRef<Path>, array: impl Into<Tensor>) -> Result<()> {
    let (path, tensor) = (path.as_ref().to_owned(), array.into());
    off_thread(move |stop| {
        let mut target = Target::create(&path)?;
        let dims = tensor.dims().map_err(|cause| named(&path, &cause))?;
        let header = header_of(kind(&tensor, &path)?, &dims, is_fortran(&dims));
        target.write_all(&header).map_err(|cause| io(&path, "it can't be written", &cause))?;
        put(&tensor, false, &path, &mut Bytes::new(&mut target), stop)?;
        target.finish()
    })
    .await
}

/// Writes a file of any size, one piece of the array after another.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (from, to) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
/// # futures::executor::block_on(async {
/// # let rt = tidemill::Runtime::builder().device("host").start().await?;
/// # let s = rt.session("files").open();
/// # tidemill_files::npy::write(&from, &s.linspace(0.0f64, 1.0, 1000).reshape([10, 100])).await?;
/// use tidemill_files::npy;
/// let source = npy::open(&from).await?;
/// let mut pieces = source.pieces(&s, 1000);
/// let along = source.dims().len() - 1;
/// let mut writer = npy::Writer::create(&to, source.dtype(), source.dims(), along).await?;
/// while let Some(piece) = pieces.next().await {
///     writer.append(&(piece?.array.real()? * 2.0)).await?;
/// }
/// writer.finish().await?;
/// # let y = npy::read(&s, &to).await?.real()?;
/// # assert_eq!(y.shape()?.dims(), [10, 100]);
/// # assert!((y.sum(..).item::<f64>().await? - 1000.0).abs() < 1e-9);
/// # rt.shutdown().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    /// `None` where an append failed, or was dropped half-way.
    target: Option<Target>,
    path: PathBuf,
    kind: Kind,
    dims: Vec<usize>,
    along: usize,
    done: usize,
}

impl Writer {
    /// Begins a file that will hold an array of real numbers with these extents, in pieces that follow each other along
    /// a dimension: the first, for which the file is row-major, or the last, for which it is column-major.
    ///
    /// # Errors
    /// `ErrorKind::Io`; `ErrorKind::Argument` for a dimension that is neither the first nor the last.
    pub async fn create(path: impl AsRef<Path>, dtype: DType, dims: &[usize], along: usize) -> Result<Writer> {
        Writer::begin(path.as_ref(), dtype, false, dims, along).await
    }

    /// As [`Writer::create`], for complex numbers whose parts have this dtype.
    ///
    /// # Errors
    /// As [`Writer::create`]; `ErrorKind::DType` where parts can't be of this type.
    pub async fn create_complex(path: impl AsRef<Path>, dtype: DType, dims: &[usize], along: usize) -> Result<Writer> {
        Writer::begin(path.as_ref(), dtype, true, dims, along).await
    }

    async fn begin(path: &Path, dtype: DType, is_complex: bool, dims: &[usize], along: usize) -> Result<Writer> {
        let refused = |kind, what: String| Err(error(kind, path, what));
        let Some(kind) = Kind::of(dtype, is_complex) else {
            return refused(ErrorKind::DType, format!("complex numbers have parts of f32 or f64, not of {dtype}"));
        };
        if along >= dims.len() || (along != 0 && along + 1 != dims.len()) {
            let what = format!("pieces follow each other along dimension 0 or the last of {}, not {along}", dims.len());
            return refused(ErrorKind::Argument, what);
        }
        // Of one dimension, both orders are the same.
        let extents: Vec<u64> = dims.iter().map(|&extent| extent as u64).collect();
        Layout::new(path, kind, false, &extents, along == 0)?;
        let header = header_of(kind, dims, along != 0);
        let (path, dims) = (path.to_owned(), dims.to_owned());
        off_thread(move |_| {
            let mut target = Target::create(&path)?;
            target.write_all(&header).map_err(|cause| io(&path, "it can't be written", &cause))?;
            Ok(Writer { target: Some(target), path, kind, dims, along, done: 0 })
        })
        .await
    }

    /// Appends a piece: its extent along the dimension of the pieces is any, the others are those of the array.
    ///
    /// # Errors
    /// `ErrorKind::Shape` and `ErrorKind::DType` for a piece that does not fit, behind which others may follow; the
    /// piece's fault, what happened to its computation, and `ErrorKind::Io`, which end the file.
    pub async fn append(&mut self, piece: impl Into<Tensor>) -> Result<()> {
        let tensor = piece.into();
        let shape = tensor.array.shape().map_err(|cause| named(&self.path, &cause))?;
        let count = shape.dim(self.along);
        let fits = (0..self.dims.len().max(shape.rank()))
            .all(|d| d == self.along || shape.dim(d) == self.dims.get(d).copied().unwrap_or(1));
        if !fits || count > self.dims[self.along] - self.done {
            let what = format!(
                "a piece of {shape} does not fit behind index {} of dimension {} of an array of {:?}",
                self.done, self.along, self.dims
            );
            return Err(error(ErrorKind::Shape, &self.path, what));
        }
        let is = kind(&tensor, &self.path)?;
        if is != self.kind {
            let what = format!("a piece holds {}, and the file {}: cast it", is.name(), self.kind.name());
            return Err(error(ErrorKind::DType, &self.path, what));
        }
        let Some(mut target) = self.target.take() else {
            return Err(error(ErrorKind::Cancelled, &self.path, "a piece before this one was not written"));
        };
        let row_major = self.along == 0;
        let written = off_thread(move |stop| {
            let path = target.path().to_owned();
            put(&tensor, row_major, &path, &mut Bytes::new(&mut target), stop)?;
            Ok(target)
        });
        self.target = Some(written.await?);
        self.done += count;
        Ok(())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// `ErrorKind::Shape` where pieces are missing, `ErrorKind::Io`.
    pub async fn finish(self) -> Result<()> {
        let Some(target) = self.target else {
            return Err(error(ErrorKind::Cancelled, &self.path, "a piece was not written"));
        };
        if self.done < self.dims[self.along] {
            let what = format!("of {} indices of dimension {}, {} came", self.dims[self.along], self.along, self.done);
            return Err(error(ErrorKind::Shape, &self.path, what));
        }
        off_thread(move |_| target.finish()).await
    }
}

/// Whether column-major order differs from row-major order. Where it does not, NumPy stores the latter.
pub(crate) fn is_fortran(dims: &[usize]) -> bool {
    dims.iter().filter(|&&extent| extent != 1).count() > 1
}

/// What a file begins with.
pub(crate) fn header_of(kind: Kind, dims: &[usize], fortran: bool) -> Vec<u8> {
    let descr = match kind {
        Kind::Bool => "|b1",
        Kind::U8 => "|u1",
        Kind::I8 => "|i1",
        Kind::I16 => "<i2",
        Kind::U16 => "<u2",
        // NumPy has no bf16; arrays hold neither of the two.
        Kind::F16 | Kind::BF16 => "<f2",
        Kind::I32 => "<i4",
        Kind::U32 => "<u4",
        Kind::F32 => "<f4",
        Kind::I64 => "<i8",
        Kind::U64 => "<u8",
        Kind::F64 => "<f8",
        Kind::C64 => "<c8",
        Kind::C128 => "<c16",
    };
    let order = if fortran { "True" } else { "False" };
    let extents: Vec<String> = dims.iter().map(usize::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}{comma}), }}", extents.join(", "));
    // To the byte what NumPy writes: room for the slowest extent to grow, and then up to the next multiple.
    if let Some(slowest) = if fortran { extents.last() } else { extents.first() } {
        text.extend(std::iter::repeat_n(' ', EXTENT_DIGITS_MAX.saturating_sub(slowest.len())));
    }
    let before = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', ALIGNMENT - before % ALIGNMENT));
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    // 16 extents of up to 20 digits fill no 65,535 bytes.
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.bytes());
    header
}

/// Reads a header: the layout, and its bytes.
pub(crate) fn header(reader: &mut impl Read, path: &Path) -> Result<(Layout, u64)> {
    let short = |cause: std::io::Error| io(path, "its .npy header is cut short", &cause);
    let mut begin = [0; 8];
    reader.read_exact(&mut begin).map_err(short)?;
    if &begin[..6] != MAGIC {
        return Err(damaged(path, "it is no .npy file: it does not begin with \\x93NUMPY"));
    }
    let (before, length) = match begin[6..] {
        [1, _] => {
            let mut length = [0; 2];
            reader.read_exact(&mut length).map_err(short)?;
            (10, u16::from_le_bytes(length) as usize)
        }
        [2 | 3, _] => {
            let mut length = [0; 4];
            reader.read_exact(&mut length).map_err(short)?;
            (12, u32::from_le_bytes(length) as usize)
        }
        [major, minor] => {
            return Err(damaged(path, format!("version {major}.{minor} of .npy is not known; 1, 2 and 3 are")));
        }
        _ => unreachable!("two bytes of eight"),
    };
    if length > HEADER_BYTES_MAX {
        let what = format!("its .npy header claims {length} bytes, and none has more than {HEADER_BYTES_MAX}");
        return Err(damaged(path, what));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(short)?;
    Ok((parsed(&text, path)?, (before + length) as u64))
}

/// The layout that a header's text says.
fn parsed(text: &[u8], path: &Path) -> Result<Layout> {
    let wrong = |what: &str| damaged(path, format!("its .npy header is damaged: {what}"));
    let text = std::str::from_utf8(text).map_err(|_| wrong("it is no text"))?;
    // The parser calls itself for each bracket.
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(wrong("it has too many brackets"));
        }
    }
    let value: Value = text.trim().parse().map_err(|_| wrong("it is no literal of Python's"))?;
    let Value::Dict(entries) = value else { return Err(wrong("it is no dictionary")) };
    let entry = |name: &str| {
        let found = entries.iter().find(|(key, _)| key.as_string().is_some_and(|key| key == name));
        found.map(|(_, value)| value).ok_or_else(|| wrong(&format!("{name} is missing")))
    };
    let Value::Boolean(fortran) = entry("fortran_order")? else {
        return Err(wrong("fortran_order is neither True nor False"));
    };
    let (Value::Tuple(extents) | Value::List(extents)) = entry("shape")? else {
        return Err(wrong("shape is no tuple"));
    };
    let extent = |value: &Value| match value {
        Value::Integer(extent) => u64::try_from(extent).ok(),
        _ => None,
    };
    let Some(dims) = extents.iter().map(extent).collect::<Option<Vec<u64>>>() else {
        return Err(wrong("an extent is negative, has a fraction, or is beyond 2^64"));
    };
    let (kind, big_endian) = match entry("descr")? {
        Value::String(descr) => element(descr).ok_or_else(|| {
            let what = format!("its elements are '{descr}', and no array holds such: {}", advice(descr));
            error(ErrorKind::DType, path, what)
        })?,
        _ => {
            let what = "its elements are records of several fields: save each field as an array of its own";
            return Err(error(ErrorKind::DType, path, what));
        }
    };
    Layout::new(path, kind, big_endian, &dims, !fortran)
}

/// The type of NumPy's description, and whether its high bytes come first.
fn element(descr: &str) -> Option<(Kind, bool)> {
    let (order, rest) = descr.split_at_checked(1)?;
    let big_endian = match order {
        "<" | "|" => false,
        ">" => true,
        // The byte order of the machine that wrote it, which nobody knows; NumPy writes one of the others.
        _ => return None,
    };
    let kind = match rest {
        "b1" => Kind::Bool,
        "i1" => Kind::I8,
        "u1" => Kind::U8,
        "i2" => Kind::I16,
        "u2" => Kind::U16,
        "i4" => Kind::I32,
        "u4" => Kind::U32,
        "i8" => Kind::I64,
        "u8" => Kind::U64,
        "f2" => Kind::F16,
        "f4" => Kind::F32,
        "f8" => Kind::F64,
        "c8" => Kind::C64,
        "c16" => Kind::C128,
        _ => return None,
    };
    Some((kind, big_endian))
}

/// How a program of NumPy's can store something else.
fn advice(descr: &str) -> &'static str {
    match descr.trim_start_matches(['<', '>', '|', '=']).chars().next() {
        Some('O') => "objects are Python's own",
        Some('S' | 'U' | 'a') => "text is not computed with",
        Some('M' | 'm') => "store dates and spans of time as int64",
        Some('V') => "store raw bytes as uint8",
        Some('f') => "store it as float64 (x.astype(numpy.float64))",
        Some('c') => "store it as complex128 (x.astype(numpy.complex128))",
        _ => "store it as another type (x.astype)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_it_was_made_of() {
        for (dims, fortran) in [(vec![], false), (vec![3], false), (vec![2, 3], true), (vec![1; 16], false)] {
            let bytes = header_of(Kind::C64, &dims, fortran);
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            let (layout, offset) = header(&mut &bytes[..], Path::new("x.npy")).unwrap();
            assert_eq!((layout.kind, layout.dims, layout.row_major), (Kind::C64, dims, !fortran));
            assert_eq!(offset, bytes.len() as u64);
        }
    }

    #[test]
    fn headers_that_are_wrong_are_errors_that_say_why() {
        let parse = |text: &str| parsed(text.as_bytes(), Path::new("x.npy")).unwrap_err();
        let with = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        let cases = [
            (with("'<f4'", "True", "(4294967296, 4294967296)"), ErrorKind::TooLarge, "which no file holds"),
            (with("'<f4'", "True", "(18446744073709551616,)"), ErrorKind::Format, "beyond 2^64"),
            (with("'<f4'", "True", "(-1,)"), ErrorKind::Format, "negative"),
            (with("'<f4'", "True", "7"), ErrorKind::Format, "no tuple"),
            (with("'<f4'", "1", "(7,)"), ErrorKind::Format, "neither True nor False"),
            (with("'|O'", "True", "(7,)"), ErrorKind::DType, "objects"),
            (with("'<U5'", "True", "(7,)"), ErrorKind::DType, "text"),
            (with("'<f16'", "True", "(7,)"), ErrorKind::DType, "float64"),
            (with("'<M8[ns]'", "True", "(7,)"), ErrorKind::DType, "int64"),
            (with("''", "True", "(7,)"), ErrorKind::DType, "no array holds such"),
            (with("[('a', '<f4')]", "True", "(7,)"), ErrorKind::DType, "fields"),
            ("{'descr': '<f4'}".to_owned(), ErrorKind::Format, "fortran_order is missing"),
            ("[1, 2]".to_owned(), ErrorKind::Format, "no dictionary"),
            ("import os".to_owned(), ErrorKind::Format, "no literal"),
            ("(".repeat(9_000), ErrorKind::Format, "brackets"),
        ];
        for (text, kind, words) in cases {
            let error = parse(&text);
            assert!(error.kind() == kind && error.to_string().contains(words), "{text:.60}: {error:?}");
        }
        assert!(parsed(b"\xff\xfe", Path::new("x.npy")).is_err());
    }
}
