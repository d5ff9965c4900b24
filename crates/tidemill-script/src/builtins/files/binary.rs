//! Binary numbers in files: `fread` and `fwrite`.
//!
//! In: streams of `files`; names of classes and of byte orders. Out: arrays, and bytes in files.

use super::streams::{self, Files, Stream};
use crate::builtins::numeric::conversions::{bytes_of, of_bytes};
use crate::builtins::{Builtin, Outcome, args, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use std::io::{self, SeekFrom};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "fread",
        1,
        5,
        2,
        "[x, count] = fread (fid, size, precision, skip, order)",
        "Reads numbers as bytes hold them.",
        fread,
    )
    .outside(),
    row("fwrite", 2, 5, 1, "count = fwrite (fid, x, precision, skip, order)", "Writes numbers as bytes.", fwrite),
];

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(super) const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// Returns the order that an argument names.
    pub(super) fn of(value: &Value) -> Flow<ByteOrder> {
        match value.as_bytes() {
            Some(b"native" | b"n") => Ok(ByteOrder::NATIVE),
            Some(b"ieee-le" | b"l") => Ok(ByteOrder::Little),
            Some(b"ieee-be" | b"b") => Ok(ByteOrder::Big),
            _ => fail!("invalid architecture type specified"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            ByteOrder::Little => "ieee-le",
            ByteOrder::Big => "ieee-be",
        }
    }

    /// Converts numbers of `width` bytes each between the machine's order and this one.
    fn arrange(self, bytes: &mut [u8], width: usize) {
        if self != ByteOrder::NATIVE && width > 1 {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
    }
}

/// The way in which numbers are stored in a file.
struct Layout {
    class: Class,
    width: usize,
    /// How many numbers follow each other before bytes are skipped.
    block: usize,
    skip: i64,
    order: Option<ByteOrder>,
}

impl Layout {
    /// Makes a layout from a precision (`int16`, `4*int16`), the number of bytes to skip, and an order.
    fn of(env: &Env, who: &str, precision: &str, rest: &[Value]) -> Flow<Layout> {
        let blocks = || {
            let (block, name) = precision.split_once('*')?;
            Some((block.trim().parse().ok().filter(|n| *n > 0)?, named(name)?))
        };
        let single = named(precision).map(|number| (1, number));
        let Some((block, (class, width))) = single.or_else(blocks) else {
            return fail!("{who}: invalid PRECISION specified");
        };
        let skip = match rest.first() {
            Some(value) => match args::number(env, who, value)? {
                skip if skip == skip.trunc() => skip as i64,
                _ => return fail!("{who}: SKIP must be an integer"),
            },
            None => 0,
        };
        let order = rest.get(1).map(ByteOrder::of).transpose()?;
        Ok(Layout { class, width, block, skip, order })
    }

    /// Whether a negative skip goes back to bytes that were read.
    fn goes_back(&self) -> bool {
        self.skip < 0 && self.skip.unsigned_abs() as usize >= self.block.saturating_mul(self.width)
    }

    /// Reads the bytes of at most this many numbers.
    fn read(&self, stream: &mut Stream, elements: usize) -> io::Result<Vec<u8>> {
        let whole = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / self.width * self.width);
        let mut bytes = Vec::new();
        if self.skip == 0 {
            bytes = stream.bytes(elements.saturating_mul(self.width))?;
            whole(&mut bytes);
        }
        while self.skip != 0 && bytes.len() / self.width < elements {
            let wanted = self.block.min(elements - bytes.len() / self.width);
            let mut part = stream.bytes(wanted.saturating_mul(self.width))?;
            whole(&mut part);
            bytes.extend(&part);
            if part.len() / self.width < self.block {
                break;
            }
            stream.skip(self.skip)?;
        }
        self.order.unwrap_or(stream.order).arrange(&mut bytes, self.width);
        Ok(bytes)
    }

    fn write(&self, stream: &mut Stream, mut bytes: Vec<u8>) -> io::Result<()> {
        self.order.unwrap_or(stream.order).arrange(&mut bytes, self.width);
        if self.skip == 0 {
            return stream.write(&bytes);
        }
        for block in bytes.chunks(self.block.saturating_mul(self.width)) {
            stream.seek(SeekFrom::Current(self.skip))?;
            stream.write(block)?;
        }
        Ok(())
    }
}

/// Returns the class that a precision's name means, and the number of its bytes.
fn named(name: &str) -> Option<(Class, usize)> {
    Some(match name.trim() {
        "uchar" | "unsigned char" | "uint8" | "logical" => (Class::Uint8, 1),
        "schar" | "signed char" | "integer*1" | "int8" => (Class::Int8, 1),
        "char" | "char*1" => (Class::Char, 1),
        "int16" | "integer*2" | "short" => (Class::Int16, 2),
        "uint16" | "ushort" | "unsigned short" => (Class::Uint16, 2),
        "int32" | "integer*4" | "int" => (Class::Int32, 4),
        "uint32" | "uint" | "unsigned int" => (Class::Uint32, 4),
        "int64" | "integer*8" | "long" => (Class::Int64, 8),
        "uint64" | "ulong" | "unsigned long" => (Class::Uint64, 8),
        "single" | "float" | "float32" | "real*4" => (Class::Single, 4),
        "double" | "float64" | "real*8" => (Class::Double, 8),
        _ => return None,
    })
}

/// Reads the precision that an argument names; the default is bytes.
fn precision(who: &str, value: Option<&Value>) -> Flow<String> {
    match value.map(Value::as_text) {
        None => Ok("uchar".into()),
        Some(Some(text)) => Ok(text),
        Some(None) => fail!("{who}: PRECISION must be a string"),
    }
}

/// Splits a precision into the type of the numbers in the file and the class of the result. `*int16` keeps the class,
/// and `int16=>single` converts; otherwise the result is double.
fn read_as(precision: &str) -> Option<(&str, Class)> {
    match (precision.split_once("=>"), precision.trim().strip_prefix('*')) {
        (Some((from, into)), _) => Some((from, named(into)?.0)),
        (None, Some(from)) => Some((from, named(from)?.0)),
        (None, None) => Some((precision, Class::Double)),
    }
}

fn fread(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    // The size may be omitted.
    let at = if args.get(1).is_some_and(|value| value.as_bytes().is_some()) { 1 } else { 2 };
    let precision = precision("fread", args.get(at))?;
    let Some((from, into)) = read_as(&precision) else { return fail!("fread: invalid PRECISION specified") };
    let layout = Layout::of(&interp.env, "fread", from, args.get(at + 1..).unwrap_or_default())?;
    let size = match args.get(1).filter(|_| at == 2) {
        Some(value) => interp.env.host(value)?.data.to_f64(),
        None => vec![f64::INFINITY],
    };
    let (rows, columns) = match size[..] {
        [] => (0.0, 0.0),
        [count] => (count, 1.0),
        [rows, columns] if rows.is_finite() => (rows, columns),
        _ => return fail!("fread: invalid SIZE specification"),
    };
    if !(rows >= 0.0 && columns >= 0.0) {
        return fail!("fread: negative value invalid as size specification");
    }
    let count = if rows == 0.0 { 0.0 } else { rows * columns };
    let elements = if count.is_finite() {
        let elements = args::extent(count)?;
        interp.env.check_elements(&[elements])?;
        elements
    } else if layout.goes_back() {
        return fail!("fread: SKIP goes back over all that was read");
    } else {
        usize::MAX / 16
    };
    let (_, stream) = interp.env.keep.of::<Files>().stream("fread", &args[0])?;
    let mut bytes = match layout.read(stream, elements) {
        Ok(bytes) => bytes,
        Err(error) => return fail!("fread: {}", streams::system(&error)),
    };
    let read = bytes.len() / layout.width;
    let dims = match (count.is_finite(), size.len()) {
        (true, _) if read == 0 => [0, 0],
        // A single column is as long as the numbers that were read.
        (true, 2) if read < rows as usize => [read, 1],
        (_, 2) => [rows as usize, read.div_ceil(rows as usize)],
        _ => [read, 1],
    };
    // An incomplete last column is filled up with zeros.
    bytes.resize(dims[0] * dims[1] * layout.width, 0);
    let Some(data) = of_bytes(layout.class, &bytes) else { return fail!("fread: invalid PRECISION specified") };
    let data = data.converted(into);
    Ok(vec![Value::tensor(Tensor::new(Dims::new(&dims), data)), Value::Num(read as f64)].into())
}

fn fwrite(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let precision = precision("fwrite", args.get(2))?;
    let layout = Layout::of(&interp.env, "fwrite", &precision, args.get(3..).unwrap_or_default())?;
    let host = interp.env.host(&args[1])?;
    // For complex numbers the real parts are written.
    let real = host.data.is_complex().then(|| Data::F64(host.data.to_f64()));
    let mut bytes = bytes_of(&real.as_ref().unwrap_or(&host.data).converted(layout.class));
    match args[0] {
        Value::Num(number @ (1.0 | 2.0)) => {
            layout.order.unwrap_or(ByteOrder::NATIVE).arrange(&mut bytes, layout.width);
            if number == 1.0 { interp.env.print(&bytes) } else { interp.env.output.err(&bytes) }
        }
        _ => {
            let (_, stream) = interp.env.keep.of::<Files>().stream("fwrite", &args[0])?;
            if let Err(error) = layout.write(stream, bytes) {
                return fail!("fwrite: {}", streams::system(&error));
            }
        }
    }
    Ok(Value::Num(host.len() as f64).into())
}
