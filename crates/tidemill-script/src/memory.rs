//! How much memory this machine can still give, so that a script that asks for more gets an error and not the system's
//! killer of processes.
//!
//! In: what Linux tells of itself and of the group of processes it counts us in. Out: bytes, or nothing where nobody
//! tells. Must hold: this is asked for big arrays only; it costs some system calls.

use super::env::Env;
use super::error::Flow;
use super::value::Value;
use std::fs::{File, read_to_string};
use std::io::{self, Read};
use std::path::Path;

/// Below this nobody asks.
const BYTES_UNASKED: usize = 1 << 28;

/// Elements of arguments from which on it is asked how much memory a function takes for each of them.
const MANY: usize = 1 << 24;

/// Bytes of text that an element takes where it is shown, about.
pub const BYTES_SHOWN: usize = 64;

/// Refuses operands of so many elements that this machine cannot give `each` bytes more for each of them. Unless what
/// is made `stays_small`, of elements of less than eight bytes it is sixteen: numbers and positions stand for them on
/// the way. Complex ones are copied.
///
/// # Errors
/// As [`Env::check_host`].
pub fn check_operands(env: &Env, operands: &[Value], each: usize, stays_small: bool) -> Flow<()> {
    let (mut elements, mut width) = (0usize, each);
    let any_complex = operands.iter().any(Value::is_complex);
    for operand in operands {
        let tensor = match operand {
            Value::Tensor(tensor) => tensor,
            // It comes home.
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

/// Whether these have so many elements together that it is asked how much memory a function takes for each.
pub fn are_many(operands: &[Value]) -> bool {
    let elements = |value: &Value| match value {
        Value::Tensor(t) => t.len(),
        Value::Lazy(l) => l.dims.elements(),
        _ => 0,
    };
    operands.iter().map(elements).fold(0, usize::saturating_add) > MANY
}

/// How many bytes a function makes on the way for each element of its arguments, about; 0 where it makes less than it
/// takes, or asks itself.
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

/// Whether a function computes arrays of small classes in memory of their own size, and a bounded piece beside it. What
/// its result takes it asks for itself.
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
        // Order, and where elements are.
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

/// Whether a function asks only what its arguments are, and makes nothing of their elements.
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
        "fwrite",
        "fputs",
        "fdisp",
        "save",
    ];
    queries.contains(&name)
}

/// Whether so many bytes can be had, as far as anybody tells.
pub fn holds(bytes: usize) -> bool {
    bytes <= BYTES_UNASKED || available().is_none_or(|most| bytes as u64 <= most)
}

/// Bytes that can still be had; `None` where that is not known.
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

/// What grows piece by piece, and has memory asked for before it takes twice as much as when that was asked last.
#[derive(Default)]
pub struct Growth {
    bytes: usize,
    asked: usize,
}

impl Growth {
    /// Takes in so many bytes more.
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

/// A whole file; some have no end.
///
/// # Errors
/// What keeps it from being read, and a memory that does not hold it.
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

/// The bytes that a line of `NAME: n kB` tells of.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// What the process's limit of its address space (`ulimit -v`) leaves.
fn of_limits(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    // A word where there is no limit.
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kibibytes(status, "VmSize:")?))
}

fn of_group(most: &str, used: &str) -> Option<u64> {
    // `max` where there is no limit.
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
