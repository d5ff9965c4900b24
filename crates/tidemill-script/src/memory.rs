//! Estimates how much memory this machine can still provide, so that a script that asks for more gets an error, before
//! the system kills the process.
//!
//! In: what Linux reports about the machine, the process's control group and its limits. Out: bytes, or `None` on
//! systems that do not report them. Must hold: this is called for big arrays only, since it costs some system calls.

use super::env::Env;
use super::error::Flow;
use super::value::Value;
use std::fs::{File, read_to_string};
use std::io::{self, Read};
use std::path::Path;

/// Requests of at most this many bytes are granted without a check.
const BYTES_UNASKED: usize = 1 << 28;

/// A function's memory for each element is checked if its arguments have more than this many elements together.
const MANY: usize = 1 << 24;

/// Approximate number of bytes of text that are printed for an element.
pub const BYTES_SHOWN: usize = 64;

/// Returns an error if this machine cannot provide `each` bytes for every element of the operands. Unless the function
/// `stays_small`, elements of less than eight bytes need sixteen, since they are turned into numbers and positions on
/// the way. Complex elements need more, for a copy.
///
/// # Errors
/// As [`Env::check_host`].
pub fn check_operands(env: &Env, operands: &[Value], each: usize, stays_small: bool) -> Flow<()> {
    let (mut elements, mut width) = (0usize, each);
    let any_complex = operands.iter().any(Value::is_complex);
    for operand in operands {
        let tensor = match operand {
            Value::Tensor(tensor) => tensor,
            // This array will be gathered to the host.
            Value::Lazy(lazy) if any_complex => {
                elements = elements.saturating_add(lazy.dims.elements());
                width = width.max(32);
                continue;
            }
            _ => continue,
        };
        elements = elements.saturating_add(tensor.len());
        width = width.max(match tensor.data.is_complex() {
            true if stays_small => 0,
            true => 48,
            false if tensor.data.class().bytes() < 8 && !stays_small => 16,
            false => 0,
        });
    }
    if elements > MANY { env.check_host(&[elements], width) } else { Ok(()) }
}

/// Whether these operands have so many elements together that a function's memory for each of them is checked.
pub fn are_many(operands: &[Value]) -> bool {
    let elements = |value: &Value| match value {
        Value::Tensor(t) => t.len(),
        Value::Lazy(l) => l.dims.elements(),
        _ => 0,
    };
    operands.iter().map(elements).fold(0, usize::saturating_add) > MANY
}

/// Approximate number of bytes that a function allocates on the way for each element of its arguments; 0 if that is
/// less than the size of its arguments, or if the function checks memory itself.
pub fn bytes_made_of_each(name: &str) -> usize {
    match name {
        "upper" | "toupper" | "lower" | "tolower" | "strtrim" | "deblank" | "fliplr" | "strrep" | "regexprep" => 2,
        "sprintf" | "fprintf" | "printf" | "int2str" => 16,
        "num2str" | "mat2str" | "strsplit" | "ostrsplit" => 40,
        "cellstr" | "num2cell" => 64,
        "disp" | "display" => BYTES_SHOWN,
        "inv" | "det" | "eig" | "svd" | "qr" | "lu" | "chol" => 24,
        _ => 0,
    }
}

/// Whether a function computes arrays of small classes in memory of their own size and a bounded buffer. It checks the
/// memory of its result itself.
pub fn stays_small(name: &str) -> bool {
    let small = [
        // Classes and shapes.
        "double",
        "single",
        "logical",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "cast",
        "repmat",
        "cat",
        "horzcat",
        "vertcat",
        "permute",
        "ipermute",
        "transpose",
        "ctranspose",
        "circshift",
        "flip",
        "fliplr",
        "flipud",
        "rot90",
        "shiftdim",
        "vec",
        "complex",
        "real",
        "imag",
        "conj",
        // Functions of elements.
        "abs",
        "sign",
        "floor",
        "ceil",
        "fix",
        "round",
        "isnan",
        "isinf",
        "isfinite",
        // Operators.
        "plus",
        "minus",
        "times",
        "rdivide",
        "ldivide",
        "uminus",
        "uplus",
        "not",
        "and",
        "or",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        // Text.
        "upper",
        "toupper",
        "lower",
        "tolower",
        "isspace",
        "isalpha",
        "isdigit",
        "isupper",
        "islower",
        "isalnum",
        "ispunct",
        "blanks",
        "regexp",
        "regexpi",
        "regexprep",
        // Order, and positions of elements.
        "sort",
        "unique",
        "find",
        "nonzeros",
        "repelem",
        // Bits.
        "bitand",
        "bitor",
        "bitxor",
        "bitshift",
        "bitcmp",
        // Incomplete functions.
        "gammainc",
        "gammaincinv",
        "betainc",
        "betaincinv",
    ];
    small.contains(&name)
}

/// Whether a function only looks at its arguments, and makes nothing of their elements.
pub fn makes_nothing(name: &str) -> bool {
    let queries = [
        "numel",
        "ndims",
        "size",
        "rows",
        "columns",
        "length",
        "class",
        "size_equal",
        "sizeof",
        "exist",
        "validatestring",
        "struct",
        "cell",
        "deal",
        "func2str",
        "gather",
        "clear",
        "char",
        "reshape",
        "squeeze",
        "vec",
        "isequal",
        "isargout",
        "isa",
        "ischar",
        "iscell",
        "isstruct",
        "isfield",
        "isempty",
        "isscalar",
        "isvector",
        "ismatrix",
        "isrow",
        "iscolumn",
        "issquare",
        "isnumeric",
        "isreal",
        "iscomplex",
        "islogical",
        "isfloat",
        "isinteger",
        "iscellstr",
        "isgpuarray",
        "dlarray",
        "dlfeval",
        "dlgradient",
        "extractdata",
        "isdlarray",
        "fwrite",
        "fputs",
        "fdisp",
        "save",
    ];
    queries.contains(&name)
}

/// Whether this many bytes can be allocated, as far as the system reports it.
pub fn holds(bytes: usize) -> bool {
    bytes <= BYTES_UNASKED || available().is_none_or(|most| bytes as u64 <= most)
}

/// The bytes that can still be allocated; `None` if the system does not report it.
pub fn available() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let group = || {
        let most = read_to_string("/sys/fs/cgroup/memory.max").ok()?;
        let used = read_to_string("/sys/fs/cgroup/memory.current").ok()?;
        of_group(&most, &used)
    };
    let own = || {
        let limits = read_to_string("/proc/self/limits").ok()?;
        of_limits(&limits, &read_to_string("/proc/self/status").ok()?)
    };
    [machine, group(), own()].into_iter().flatten().min()
}

/// Checks memory for something that grows piece by piece. It checks for twice the present size, and again once that is
/// exceeded.
#[derive(Default)]
pub struct Growth {
    bytes: usize,
    asked: usize,
}

impl Growth {
    /// Counts further bytes.
    ///
    /// # Errors
    /// As [`Env::check_host`].
    pub fn add(&mut self, env: &Env, bytes: usize) -> Flow<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.asked {
            self.asked = self.bytes.saturating_mul(2);
            env.check_host(&[self.asked], 1)?;
        }
        Ok(())
    }
}

/// Reads a whole file. Some files, such as devices, have no end, so the available memory is checked on the way.
///
/// # Errors
/// An error of reading, or `OutOfMemory`.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    loop {
        let block = bytes.len().max(BYTES_UNASKED / 8);
        if (&mut file).take(block as u64).read_to_end(&mut bytes)? < block {
            return Ok(bytes);
        }
        if !holds(bytes.len().saturating_mul(2)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
    }
}

fn of_machine(text: &str) -> Option<u64> {
    kibibytes(text, "MemAvailable:")
}

/// Returns the bytes given by a line `NAME: n kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The bytes that the process's limit of its address space (`ulimit -v`) leaves.
fn of_limits(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    // Without a limit this is a word.
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kibibytes(status, "VmSize:")?))
}

fn of_group(most: &str, used: &str) -> Option<u64> {
    // Without a limit this is `max`.
    let most: u64 = most.trim().parse().ok()?;
    Some(most.saturating_sub(used.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(of_machine("MemTotal: 9 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n"), Some(2 << 20));
        assert_eq!(of_machine("MemTotal: 9 kB\n"), None);
        assert_eq!(of_group("1000\n", "400\n"), Some(600));
        assert_eq!(of_group("1000\n", "4000\n"), Some(0));
        assert_eq!(of_group("max\n", "400\n"), None);
        let limits =
            |most: &str| format!("Max cpu time  unlimited  unlimited  seconds\nMax address space  {most}  9  bytes\n");
        assert_eq!(of_limits(&limits("5000"), "Name: x\nVmSize:\t    2 kB\n"), Some(5000 - 2048));
        assert_eq!(of_limits(&limits("unlimited"), "VmSize: 2 kB\n"), None);
    }
}
