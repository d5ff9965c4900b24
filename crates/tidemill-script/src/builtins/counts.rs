//! Checks how many arguments and outputs a builtin takes, and words the errors.

use super::{ANY, Builtin};
use crate::error::{Flow, fail_id};

/// Builtins that Octave has written in its own language. The error for too many arguments is that of such functions.
#[rustfmt::skip]
static WRITTEN_THERE: &[&str] = &[
    "accumarray", "acosd", "acot", "acoth", "acsc", "acsch", "asec", "asech", "asind", "atand", "base2dec", "beta",
    "betainc", "betaincinv", "betaln", "bin2dec", "bitcmp", "blanks", "bounds", "cast", "cell2mat", "circshift",
    "clock", "cond", "conv", "copyfile", "cosd", "cot", "cotd", "coth", "cross", "csc", "cscd", "csch", "cumtrapz",
    "deblank", "dec2base", "dec2bin", "dec2hex", "deconv", "deg2rad", "endsWith", "expm", "factor", "factorial",
    "fieldnames", "fileparts", "fileread", "flip", "fliplr", "flipud", "gammainc", "gammaincinv", "hankel", "hex2dec",
    "hilb", "histc", "idivide", "im2double", "index", "inputname", "int2str", "invhilb", "iqr", "isbanded",
    "isdeployed", "isdiag", "isdir", "isfile", "isfolder", "ishermitian", "isletter", "ismac", "ispc", "isprime",
    "isstrprop", "issymmetric", "istril", "istriu", "isunix", "logspace", "magic", "mat2str", "meansq", "median",
    "meshgrid", "mkdir", "mode", "movefile", "nargchk", "narginchk", "nargoutchk", "nchoosek", "nextpow2", "nonzeros",
    "now", "nthroot", "null", "num2str", "orderfields", "orth", "ostrsplit", "pascal", "perms", "poly", "polyder",
    "polyfit", "polyint", "polyval", "postpad", "pow2", "prctile", "prepad", "primes", "print_usage", "quantile",
    "rad2deg", "range", "rank", "reallog", "realpow", "realsqrt", "regexptranslate", "repelem", "rgb2gray", "rindex",
    "roots", "rot90", "rotdim", "sec", "secd", "sech", "shiftdim", "sind", "sortrows", "startsWith", "str2num",
    "strjoin", "strjust", "strtok", "strtrim", "substr", "tand", "tempdir", "toeplitz", "trace", "trapz", "untabify",
    "usejava", "vander", "var", "vecnorm", "version", "wilkinson",
];

/// Library functions that are builtins in Octave. The error for too many arguments is that of builtins.
#[rustfmt::skip]
static BUILT_IN_THERE: &[&str] = &[
    "convn", "del2", "givens", "gmtime", "hex2num", "issparse", "localtime", "lsode", "mktime", "newline",
    "nth_element", "num2hex", "nzmax", "periodogram", "psi", "quad", "rcond", "rescale", "residue", "signbit", "sqrtm",
    "strftime", "sylvester",
];

/// Whether a library function is a builtin in Octave.
pub fn is_built_in_there(name: &str) -> bool {
    BUILT_IN_THERE.binary_search(&name).is_ok()
}

/// The names that Octave's messages use for some functions.
static KNOWN_AS: &[(&str, &str)] = &[
    ("chdir", "cd"),
    ("gammaln", "lgamma"),
    ("ifelse", "merge"),
    ("inverse", "inv"),
    ("isbool", "islogical"),
    ("lower", "tolower"),
    ("putenv", "setenv"),
    ("upper", "toupper"),
];

/// Returns the error for a call with wrong arguments, with the correct usage.
///
/// # Errors
/// Always.
pub fn invalid_call<T>(name: &str, usage: &str) -> Flow<T> {
    let usage: Vec<&str> = usage.split(name).collect();
    // Arguments are in capitals, as in Octave's documentation.
    let usage = usage.iter().map(|part| part.to_uppercase()).collect::<Vec<_>>().join(name);
    let known = KNOWN_AS.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs);
    fail_id!("Octave:invalid-fun-call", "Invalid call to {known}.  Correct usage is:\n\n -- {usage}")
}

/// Checks the number of arguments and outputs of a call, and returns how many outputs the builtin gives. If the outputs
/// are `listed` for targets, a builtin gives as many as it has, as in Octave; a missing one is an error when it is
/// assigned.
///
/// # Errors
/// Octave's errors for such calls.
pub fn check_call(builtin: &Builtin, args: usize, nargout: usize, listed: bool) -> Flow<usize> {
    let too_many = builtin.args_max != ANY && args > builtin.args_max as usize;
    let is_written = WRITTEN_THERE.binary_search(&builtin.name).is_ok();
    if too_many && is_written {
        return fail_id!("Octave:invalid-fun-call", "{}: function called with too many inputs", builtin.name);
    }
    if too_many || args < builtin.args_min as usize {
        return invalid_call(builtin.name, builtin.usage);
    }
    if nargout > builtin.outputs_max as usize && builtin.outputs_max != ANY && nargout > 1 {
        if listed && !is_written {
            return Ok(builtin.outputs_max as usize);
        }
        return fail_id!("Octave:invalid-fun-call", "{}: function called with too many outputs", builtin.name);
    }
    Ok(nargout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted_and_those_of_builtins() {
        assert!(WRITTEN_THERE.is_sorted() && BUILT_IN_THERE.is_sorted());
        for name in BUILT_IN_THERE {
            assert!(crate::library::find(name).is_some(), "{name}");
        }
        for name in WRITTEN_THERE.iter().chain(KNOWN_AS.iter().map(|(ours, _)| ours)) {
            assert!(super::super::find(name).is_some() || cfg!(not(feature = "image")), "{name}");
        }
    }
}
