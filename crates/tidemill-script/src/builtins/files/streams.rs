//! Files: streams by number, whole files, names and folders.
//!
//! In: paths relative to the script's folder (`Env::at`). Out: numbers of streams, text, messages. Must hold: 0, 1 and
//! 2 are the standard streams; text written to 1 and 2 goes to the script's output. Pending bytes are written when a
//! stream is closed, moved, read or dropped.

use super::binary::ByteOrder;
use crate::builtins::text::chars;
use crate::builtins::{Builtin, Outcome, args, nothing, row};
use crate::error::{Flow, Stop, fail, fail_id};
use crate::memory;
use crate::value::{CellArray, Dims, Value};
use crate::vm::Interp;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("fopen", 1, 4, 4, "[fid, message] = fopen (name, mode, order)", "Opens a file; -1 if it cannot.", fopen)
        .outside(),
    row("fclose", 1, 1, 1, "fclose (fid)", "Closes a file, or \"all\" of them.", fclose),
    row("fgetl", 1, 2, 2, "fgetl (fid)", "The next line without its end; -1 at the end of the file.", |i, a, _| {
        line(i, "fgetl", a, false)
    })
    .outside(),
    row("fgets", 1, 2, 2, "fgets (fid)", "The next line with its end; -1 at the end of the file.", |i, a, _| {
        line(i, "fgets", a, true)
    })
    .outside(),
    row("fskipl", 1, 2, 1, "fskipl (fid, n)", "Skips lines.", fskipl).outside(),
    row("feof", 1, 1, 1, "feof (fid)", "Whether reading has met the end of a file.", feof).outside(),
    row("ftell", 1, 1, 1, "ftell (fid)", "The position in a file.", |i, a, _| {
        let (_, stream) = i.env.keep.of::<Files>().stream("ftell", &a[0])?;
        Ok(Value::Num(stream.position() as f64).into())
    })
    .outside(),
    row("fseek", 2, 3, 1, "fseek (fid, offset, origin)", "Moves the position in a file.", fseek).outside(),
    row("frewind", 1, 1, 1, "frewind (fid)", "Moves to the beginning of a file.", |i, a, n| {
        let (_, stream) = i.env.keep.of::<Files>().stream("frewind", &a[0])?;
        let moved = stream.seek(SeekFrom::Start(0)).is_ok();
        Ok(if n == 0 { nothing() } else { Value::Num(if moved { 0.0 } else { -1.0 }).into() })
    })
    .outside(),
    row("SEEK_SET", 0, 0, 1, "SEEK_SET", "Offsets from the beginning.", |_, _, _| Ok(Value::Num(0.0).into())),
    row("SEEK_CUR", 0, 0, 1, "SEEK_CUR", "Offsets from the position.", |_, _, _| Ok(Value::Num(1.0).into())),
    row("SEEK_END", 0, 0, 1, "SEEK_END", "Offsets from the end.", |_, _, _| Ok(Value::Num(2.0).into())),
    row("stdin", 0, 0, 1, "stdin", "The number of standard input: 0.", |_, _, _| Ok(Value::Num(0.0).into())),
    row("fileread", 1, 3, 1, "fileread (name)", "The text of a file.", fileread).outside(),
];

/// The most bytes that wait to be written.
const PENDING_MAX: usize = 1 << 16;
/// The most files that one script may have open.
const OPEN_MAX: usize = 1 << 10;

/// The open files of a script.
#[derive(Default)]
pub struct Files {
    /// The streams by number, from 3.
    streams: Vec<Option<Stream>>,
}

/// An open file.
pub(super) struct Stream {
    file: File,
    name: String,
    mode: String,
    /// The byte order of the numbers in it.
    pub(super) order: ByteOrder,
    /// Bytes that were read ahead, and how many of them are used.
    ahead: Vec<u8>,
    used: usize,
    /// Bytes that wait to be written.
    pending: Vec<u8>,
    /// The file position of the end of `ahead`, or of the beginning of `pending`.
    at: u64,
    met_end: bool,
}

impl Stream {
    fn position(&self) -> u64 {
        self.at - (self.ahead.len() - self.used) as u64 + self.pending.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.file.write_all(&self.pending)?;
            self.at += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }

    pub(super) fn seek(&mut self, to: SeekFrom) -> io::Result<()> {
        self.flush()?;
        let to = match to {
            SeekFrom::Current(by) => match self.position().checked_add_signed(by) {
                Some(at) => SeekFrom::Start(at),
                None => return Err(io::ErrorKind::InvalidInput.into()),
            },
            other => other,
        };
        self.at = self.file.seek(to)?;
        self.ahead.clear();
        self.used = 0;
        self.met_end = false;
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Writing to a file that was opened for reading is ignored without an error, as in Octave.
        if self.mode.starts_with('r') && !self.mode.contains('+') {
            return Ok(());
        }
        if self.used < self.ahead.len() || !self.ahead.is_empty() {
            let at = self.position();
            self.seek(SeekFrom::Start(at))?;
        }
        self.pending.extend(bytes);
        if self.pending.len() > PENDING_MAX { self.flush() } else { Ok(()) }
    }

    /// Reads ahead. Returns `false` at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        self.flush()?;
        if self.used == self.ahead.len() {
            self.ahead.clear();
            self.used = 0;
        }
        let mut block = [0; 1 << 14];
        let grows = self.ahead.capacity() - self.ahead.len() < block.len();
        if grows && !memory::holds(self.ahead.len().saturating_mul(2)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let n = self.file.read(&mut block)?;
        self.ahead.extend(&block[..n]);
        self.at += n as u64;
        self.met_end |= n == 0;
        Ok(n > 0)
    }

    /// Reads the next line with its end (`
    /// `, `\r
    /// ` or `\r`): at most `len` bytes, and the rest of that line end. The result is empty at the end of the file.
    fn line(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let rest = &self.ahead[self.used..];
            let within = rest.len().min(len);
            let end =
                rest[searched.min(within)..within].iter().position(|b| b"\r\n".contains(b)).map(|at| searched + at);
            // The byte after a carriage return has to be known.
            let is_open = end.is_none_or(|at| rest[at] == b'\r' && at + 1 == rest.len());
            searched = end.unwrap_or(within);
            if is_open && (within < len || end.is_some()) && self.fill()? {
                continue;
            }
            let rest = &self.ahead[self.used..];
            let take = match end {
                Some(at) => at + if rest[at..].starts_with(b"\r\n") { 2 } else { 1 },
                None => within,
            };
            let line = self.ahead[self.used..self.used + take].to_vec();
            self.used += take;
            return Ok(line);
        }
    }

    /// Moves forward, at most to the end, or back.
    pub(super) fn skip(&mut self, by: i64) -> io::Result<()> {
        let Ok(ahead) = usize::try_from(by) else { return self.seek(SeekFrom::Current(by)) };
        while self.ahead.len() - self.used < ahead && self.fill()? {}
        self.used += ahead.min(self.ahead.len() - self.used);
        Ok(())
    }

    /// Reads at most `n` bytes.
    pub(super) fn bytes(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() - self.used < n && self.fill()? {}
        let take = n.min(self.ahead.len() - self.used);
        let out = self.ahead[self.used..self.used + take].to_vec();
        self.used += take;
        Ok(out)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The stream is being dropped, so an error such as a full disk cannot be reported.
        let _ = self.flush();
    }
}

impl Files {
    /// Writes to an open file; `None` if no file has this number. The caller handles 1 and 2.
    pub fn write(&mut self, number: i64, bytes: &[u8]) -> Option<io::Result<()>> {
        let at = usize::try_from(number).ok()?.checked_sub(3)?;
        Some(self.streams.get_mut(at)?.as_mut()?.write(bytes))
    }

    /// Returns the rest of a file.
    pub fn rest(&mut self, who: &str, fid: &Value) -> Flow<Vec<u8>> {
        match self.stream(who, fid)?.1.bytes(usize::MAX) {
            Ok(bytes) => Ok(bytes),
            Err(error) => fail!("{who}: {}", system(&error)),
        }
    }

    /// Puts the last `n` bytes back, so that they are read again.
    pub fn give_back(&mut self, who: &str, fid: &Value, n: usize) -> Flow<()> {
        let (_, stream) = self.stream(who, fid)?;
        stream.used -= n.min(stream.used);
        stream.met_end &= n == 0;
        Ok(())
    }

    /// Returns the stream with a number.
    pub(super) fn stream(&mut self, who: &str, value: &Value) -> Flow<(usize, &mut Stream)> {
        let x = match value {
            Value::Num(x) => *x,
            Value::Bool(b) => *b as u8 as f64,
            Value::Tensor(t) if t.len() == 1 => t.data.f64_at(0),
            _ => return fail!("{who}: invalid stream specified"),
        };
        let at = x as usize;
        match self.streams.get_mut(at.wrapping_sub(3)) {
            Some(Some(stream)) if x == at as f64 => Ok((at, stream)),
            _ => fail!("{who}: invalid stream number = {}", args::short(x)),
        }
    }

    /// Writes the pending bytes of a file. Returns whether that succeeded.
    pub fn flush(&mut self, who: &str, file: &Value) -> Flow<bool> {
        Ok(self.stream(who, file)?.1.flush().is_ok())
    }
}

/// Returns the system's error message, without the error number that Rust adds.
pub fn system(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

/// Returns the answer of `fopen` about an open file: its name, mode, byte order and encoding; empty values for any
/// other number.
fn described(files: &mut Files, fid: &Value) -> Flow<Outcome> {
    let standard = match fid {
        Value::Num(0.0) => Some(("stdin", "r")),
        Value::Num(1.0) => Some(("stdout", "w")),
        Value::Num(2.0) => Some(("stderr", "w")),
        _ => None,
    };
    let (name, mode, order) = match standard {
        Some((name, mode)) => (name.to_string(), mode.to_string(), ByteOrder::NATIVE),
        None => match files.stream("fopen", fid) {
            Ok((_, s)) => (s.name.clone(), s.mode.clone(), s.order),
            Err(_) if fid.is_numeric() && fid.len() == 1 => return Ok(vec![Value::string(""); 4].into()),
            Err(error) => return Err(error),
        },
    };
    Ok(vec![name.into(), mode.into(), order.name().to_string().into(), "utf-8".to_string().into()].into())
}

fn fopen(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    // A file that is read may be in an added folder.
    let is_read = args.get(1).and_then(Value::as_text).is_none_or(|mode| mode.starts_with('r'));
    let find = |name| if is_read { interp.env.found(name) } else { interp.env.at(name) };
    let at = args[0].as_text().map(find).unwrap_or_default();
    let files = interp.env.keep.of::<Files>();
    let Some(name) = args[0].as_text() else {
        return described(files, &args[0]);
    };
    if name == "all" && args.len() == 1 {
        let open = files.streams.iter().enumerate().filter(|s| s.1.is_some()).map(|s| s.0 as f64 + 3.0).collect();
        return Ok(Value::column(open).into());
    }
    let mode = match args.get(1) {
        Some(value) => chars::string(value, "fopen: file mode must be a string")?.to_vec(),
        None => b"r".to_vec(),
    };
    let order = args.get(2).map_or(Ok(ByteOrder::NATIVE), ByteOrder::of)?;
    let plain: Vec<u8> = mode.iter().copied().filter(|b| !b"bt".contains(b)).collect();
    let mut options = File::options();
    match &plain[..] {
        b"r" => options.read(true),
        b"r+" => options.read(true).write(true),
        b"w" => options.write(true).create(true).truncate(true),
        b"w+" => options.read(true).write(true).create(true).truncate(true),
        b"a" => options.append(true).create(true),
        b"a+" => options.read(true).append(true).create(true),
        _ => return fail!("invalid mode specified"),
    };
    // This is checked before the file is opened, and perhaps truncated.
    let free = files.streams.iter().position(Option::is_none).unwrap_or(files.streams.len());
    if free >= OPEN_MAX {
        return Ok(vec![Value::Num(-1.0), Value::string("Too many open files")].into());
    }
    let opened = options.open(at).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::Error::from_raw_os_error(21)),
        false => Ok(file),
    });
    let mut file = match opened {
        Ok(file) => file,
        Err(error) => return Ok(vec![Value::Num(-1.0), Value::string(system(&error))].into()),
    };
    let at = if plain[0] == b'a' { file.seek(SeekFrom::End(0)).unwrap_or(0) } else { 0 };
    let stream = Stream {
        file,
        name,
        order,
        mode: format!("{}{}", String::from_utf8_lossy(&plain), if mode.contains(&b't') { "" } else { "b" }),
        ahead: Vec::new(),
        used: 0,
        pending: Vec::new(),
        at,
        met_end: false,
    };
    if free == files.streams.len() {
        files.streams.push(None);
    }
    files.streams[free] = Some(stream);
    Ok(vec![Value::Num(free as f64 + 3.0), Value::string("")].into())
}

fn fclose(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let files = interp.env.keep.of::<Files>();
    if args::is_word(&args[0], "all") {
        files.streams.clear();
    } else {
        let (at, stream) = files.stream("fclose", &args[0])?;
        let flushed = stream.flush();
        files.streams[at - 3] = None;
        if let Err(error) = flushed {
            return fail!("fclose: {}", system(&error));
        }
    }
    Ok(Value::Num(0.0).into())
}

/// Waits until a line was typed. An interrupt ends the wait.
fn await_typing(interp: &Interp) -> Flow<()> {
    #[cfg(unix)]
    if io::IsTerminal::is_terminal(&io::stdin()) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = io::stdin();
        let look_up = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        while matches!(
            poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&look_up)),
            Ok(0) | Err(rustix::io::Errno::INTR)
        ) {
            if interp.is_interrupted() {
                return Err(Stop::Interrupted);
            }
        }
    }
    Ok(())
}

fn line(interp: &mut Interp, who: &str, args: &[Value], keep_end: bool) -> Flow<Outcome> {
    let len = match args.get(1) {
        Some(value) => {
            let n = args::number(&interp.env, who, value)?;
            if n.is_infinite() { usize::MAX } else { args::extent(n)? }
        }
        None => usize::MAX,
    };
    let read = match &args[0] {
        Value::Num(0.0) => {
            await_typing(interp)?;
            let mut text = Vec::new();
            io::BufRead::read_until(&mut io::stdin().lock(), b'\n', &mut text).map(|_| text)
        }
        fid => interp.env.keep.of::<Files>().stream(who, fid)?.1.line(len),
    };
    let mut line = match read {
        Ok(line) => line,
        Err(error) => return fail!("{who}: {}", system(&error)),
    };
    if line.is_empty() {
        return Ok(vec![Value::Num(-1.0), Value::Num(0.0)].into());
    }
    if !keep_end {
        let end = line.strip_suffix(b"\r\n").or(line.strip_suffix(b"\n")).or(line.strip_suffix(b"\r"));
        line.truncate(end.unwrap_or(&line).len());
    }
    let len = line.len();
    // The end of the file is reached by reading a last line without an end, or by reading one byte ahead.
    if let Ok((_, stream)) = interp.env.keep.of::<Files>().stream(who, &args[0])
        && stream.used == stream.ahead.len()
    {
        let _ = stream.fill();
    }
    Ok(vec![Value::string(line), Value::Num(len as f64)].into())
}

fn fskipl(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = match args.get(1) {
        Some(value) => args::number(&interp.env, "fskipl", value)?,
        None => 1.0,
    };
    let (_, stream) = interp.env.keep.of::<Files>().stream("fskipl", &args[0])?;
    let mut count = 0.0;
    while count < n {
        match stream.line(usize::MAX) {
            Ok(line) if line.ends_with(b"\n") || line.ends_with(b"\r") => count += 1.0,
            _ => break,
        }
    }
    Ok(Value::Num(count).into())
}

fn feof(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Value::Num(0.0 | 1.0 | 2.0) = args[0] {
        return Ok(Value::Num(0.0).into());
    }
    let (_, stream) = interp.env.keep.of::<Files>().stream("feof", &args[0])?;
    Ok(Value::Num((stream.met_end && stream.used == stream.ahead.len()) as u8 as f64).into())
}

fn fseek(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let offset = args::integer(args::number(&interp.env, "fseek", &args[1])?)?;
    let origin = match args.get(2) {
        None => 0.0,
        Some(value) => match value.as_bytes() {
            Some(b"bof") => 0.0,
            Some(b"cof") => 1.0,
            Some(b"eof") => 2.0,
            Some(_) => return fail!("fseek: invalid value for origin"),
            None => args::number(&interp.env, "fseek", value)?,
        },
    };
    let (_, stream) = interp.env.keep.of::<Files>().stream("fseek", &args[0])?;
    let end = stream.flush().and_then(|()| Ok(stream.file.metadata()?.len())).unwrap_or(u64::MAX) as i64;
    let place = match origin {
        1.0 => stream.position() as i64 + offset,
        2.0 => end.saturating_add(offset),
        _ => offset,
    };
    // It cannot move behind the end.
    let moved = (0..=end).contains(&place) && stream.seek(SeekFrom::Start(place as u64)).is_ok();
    Ok(Value::Num(if moved { 0.0 } else { -1.0 }).into())
}

fn fileread(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Some(name) = args[0].as_text() else { return fail!("fileread: FILENAME argument must be a string") };
    match memory::read(interp.env.found(&name)) {
        Ok(bytes) => Ok(Value::string(bytes).into()),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type")
        }
        Err(_) => fail!("fileread: cannot open file {name}"),
    }
}

/// Reads a file name from an argument.
///
/// # Errors
/// A value that is no string.
pub fn path(who: &str, value: &Value) -> Flow<String> {
    match value.as_text() {
        Some(name) => Ok(name),
        None => fail_id!("Octave:invalid-fun-call", "{who}: argument must be a string"),
    }
}

/// Returns names as a column of cells.
pub fn names(list: Vec<String>) -> Value {
    let dims = Dims::new(&[list.len(), 1]);
    Value::Cell(Arc::new(CellArray::new(dims, list.into_iter().map(Value::from).collect())))
}
