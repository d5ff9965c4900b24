//! CSV: tables of numbers as text.
//!
//! A table is read twice: once for its extents, once for its numbers.

use crate::element::{FileElement, Kind};
use crate::error::{damaged, error, io, named};
use crate::fill::{Fill, buffered, open as open_file};
use crate::layout::Layout;
use crate::put::{Take, kind, put};
use crate::source::{Facts, Place, Source};
use crate::target::Target;
use crate::threads::off_thread;
use crate::{AnyArray, Tensor};
use ::csv::{ByteRecord, ErrorKind as CsvError, Reader, ReaderBuilder, Trim, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemill::{DType, ErrorKind, Result, Session};

/// How a table is written as text.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.csv");
/// # futures::executor::block_on(async {
/// # let rt = tidemill::Runtime::builder().device("host").start().await?;
/// # let s = rt.session("files").open();
/// use tidemill_files::csv;
/// std::fs::write(&path, "time; height\n0; 1.5\n1;\n2; 1.25\n")?;
/// let table = csv::open(&path, &csv::Options::default().delimiter(b';')).await?;
/// assert_eq!((table.columns(), table.dims()), (&["time".to_owned(), "height".to_owned()][..], &[3, 2][..]));
/// let x = table.read(&s).await?.real()?;
/// assert_eq!(x.slice((0, ..)).gather::<f64>().await?.as_slice(), [0.0, 1.5]);
/// # rt.shutdown().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    delimiter: u8,
    header: Option<bool>,
    comment: Option<u8>,
    dtype: DType,
    names: Vec<String>,
}

impl Default for Options {
    /// Commas, doubles; the first line is a header if a cell of it is no number.
    fn default() -> Options {
        Options { delimiter: b',', header: None, comment: None, dtype: DType::F64, names: Vec::new() }
    }
}

impl Options {
    /// What stands between cells: `b';'`, `b'\t'`, `b' '`.
    pub fn delimiter(mut self, delimiter: u8) -> Options {
        self.delimiter = delimiter;
        self
    }

    /// Whether the first line names the columns, where that shall not be found out.
    pub fn header(mut self, header: bool) -> Options {
        self.header = Some(header);
        self
    }

    /// Lines that begin with this are left out when a table is read.
    pub fn comment(mut self, comment: u8) -> Options {
        self.comment = Some(comment);
        self
    }

    /// The type of the numbers that are read. An empty cell is NaN in f32 and f64, and an error in others.
    pub fn dtype(mut self, dtype: DType) -> Options {
        self.dtype = dtype;
        self
    }

    /// The columns' names, for a table that is written.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Options {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    fn reader(&self, path: &Path) -> Result<Reader<BufReader<File>>> {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(false).trim(Trim::All).delimiter(self.delimiter).comment(self.comment);
        Ok(builder.from_reader(buffered(open_file(path)?.0)))
    }

    fn is_number(&self, cell: &[u8]) -> bool {
        let parses = |text: &str| {
            crate::element::by_dtype!(self.dtype, T => Ok(<T as FileElement>::parse(text).is_some())).unwrap_or(false)
        };
        std::str::from_utf8(cell).is_ok_and(parses)
    }
}

/// Opens a table: counts its rows and columns.
///
/// # Errors
/// `ErrorKind::Io`; `ErrorKind::Format` where a row has fewer or more cells than the first.
pub async fn open(path: impl AsRef<Path>, options: &Options) -> Result<Source> {
    let (path, options) = (path.as_ref().to_owned(), options.clone());
    off_thread(move |stop| {
        let mut reader = options.reader(&path)?;
        let (mut record, mut rows, mut columns) = (ByteRecord::new(), 0u64, 0);
        let (mut names, mut is_first) = (Vec::new(), true);
        while reader.read_byte_record(&mut record).map_err(|cause| refused(&path, cause))? {
            columns = record.len();
            if std::mem::take(&mut is_first)
                && options.header.unwrap_or_else(|| !record.iter().all(|cell| options.is_number(cell)))
            {
                names = record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
            } else {
                rows += 1;
            }
            if rows % 4096 == 0 {
                stop.check(&path)?;
            }
        }
        let Some(kind) = Kind::of(options.dtype, false) else {
            return Err(error(ErrorKind::DType, &path, format!("tables of {} are not known", options.dtype)));
        };
        let layout = Layout::new(&path, kind, false, &[rows, columns as u64], true)?;
        let options = Options { header: Some(!names.is_empty()), ..options };
        Ok(Source(Arc::new(Facts { path, layout, place: Place::Table(options), columns: names })))
    })
    .await
}

/// Reads the numbers of a table, a row of it as a row of the array.
///
/// # Errors
/// Those of [`open`] and of [`Source::read`]; `ErrorKind::Format` for a cell that is no number of the type, with its
/// line and column.
pub async fn read(s: &Session, path: impl AsRef<Path>, options: &Options) -> Result<AnyArray> {
    open(path, options).await?.read(s).await
}

/// Writes a matrix, a row of it as a line, with the fewest digits that are read as the same numbers.
///
/// # Errors
/// The array's fault, what happened to its computation; `ErrorKind::Shape` for more than two dimensions, or where names
/// are given and are not as many as the columns; `ErrorKind::DType` for complex numbers; `ErrorKind::Io`.
pub async fn write(path: impl AsRef<Path>, array: impl Into<Tensor>, options: &Options) -> Result<()> {
    let (path, tensor, options) = (path.as_ref().to_owned(), array.into(), options.clone());
    off_thread(move |stop| {
        let shape = tensor.array.shape().map_err(|cause| named(&path, &cause))?.clone();
        if shape.rank() > 2 {
            let what = format!("a table has two dimensions, and the array is {shape}: reshape it");
            return Err(error(ErrorKind::Shape, &path, what));
        }
        if kind(&tensor, &path)?.is_complex() {
            return Err(error(ErrorKind::DType, &path, "cells are real numbers: write re() and im()"));
        }
        let columns = shape.dim(1);
        if !options.names.is_empty() && options.names.len() != columns {
            let what = format!("{} names for {columns} columns", options.names.len());
            return Err(error(ErrorKind::Shape, &path, what));
        }
        let mut target = Target::create(&path)?;
        if !options.names.is_empty() {
            let mut header = WriterBuilder::new().delimiter(options.delimiter).from_writer(&mut target);
            header.write_record(&options.names).map_err(|cause| refused(&path, cause))?;
            header.flush().map_err(|cause| io(&path, "it can't be written", &cause))?;
        }
        let mut lines =
            Lines { target: &mut target, delimiter: options.delimiter, columns, at: 0, text: String::new() };
        put(&tensor, true, &path, &mut lines, stop)?;
        target.finish()
    })
    .await
}

/// Writes elements as cells, row by row.
struct Lines<'t> {
    target: &'t mut Target,
    delimiter: u8,
    columns: usize,
    /// The column of the next element.
    at: usize,
    text: String,
}

impl Take for Lines<'_> {
    fn take<T: FileElement>(&mut self, elements: &[T]) -> std::io::Result<()> {
        for &element in elements {
            self.text.clear();
            element.print(&mut self.text);
            self.at += 1;
            self.target.write_all(self.text.as_bytes())?;
            if self.at == self.columns {
                self.at = 0;
                self.target.write_all(b"\n")?;
            } else {
                self.target.write_all(&[self.delimiter])?;
            }
        }
        Ok(())
    }
}

/// The numbers of a table, row by row.
pub(crate) struct Cells {
    reader: Reader<BufReader<File>>,
    path: PathBuf,
    dtype: DType,
    record: ByteRecord,
    /// The cell of the record that is next.
    next: usize,
}

impl Cells {
    pub fn open(source: &Source, options: &Options) -> Result<Cells> {
        let path = source.path();
        let mut reader = options.reader(path)?;
        let mut record = ByteRecord::new();
        if options.header == Some(true) {
            reader.read_byte_record(&mut record).map_err(|cause| refused(path, cause))?;
        }
        record.clear();
        Ok(Cells { reader, path: path.to_owned(), dtype: options.dtype, record, next: 0 })
    }
}

impl<T: FileElement> Fill<T> for Cells {
    fn fill(&mut self, out: &mut [T]) -> Result<()> {
        for out in out {
            if self.next >= self.record.len() {
                self.next = 0;
                let more = self.reader.read_byte_record(&mut self.record);
                if !more.map_err(|cause| refused(&self.path, cause))? {
                    return Err(damaged(&self.path, "it became shorter while it was read"));
                }
            }
            let cell = self.record.get(self.next).unwrap_or_default();
            self.next += 1;
            let number = std::str::from_utf8(cell).ok().and_then(T::parse);
            *out = number.ok_or_else(|| {
                let line = self.record.position().map_or(0, ::csv::Position::line);
                let cell = String::from_utf8_lossy(&cell[..cell.len().min(40)]).into_owned();
                let what = format!("line {line}, column {}: {cell:?} is no number of {}", self.next, self.dtype);
                damaged(&self.path, what)
            })?;
        }
        Ok(())
    }
}

fn refused(path: &Path, cause: ::csv::Error) -> tidemill::Error {
    let words = cause.to_string();
    match cause.into_kind() {
        CsvError::Io(cause) => io(path, "it can't be read or written", &cause),
        CsvError::UnequalLengths { pos, expected_len, len } => {
            let line = pos.map_or(0, |pos| pos.line());
            damaged(path, format!("line {line} has {len} cells, and lines before it have {expected_len}"))
        }
        _ => damaged(path, words),
    }
}
