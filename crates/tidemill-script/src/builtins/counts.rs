//! How many arguments and outputs a builtin takes, and what is said where they are more or less.

use super::{ANY, Builtin};
use crate::error::{Flow, fail_id};

/// Builtins that in Octave are written in the language: too many arguments are told as those of any such function.
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

/// Functions of the library that are builtins in Octave: too many arguments are told as a builtin's.
#[rustfmt::skip]
static BUILT_IN_THERE: &[&str] = &[
    "convn", "del2", "givens", "gmtime", "hex2num", "issparse", "localtime", "lsode", "mktime", "newline",
    "nth_element", "num2hex", "nzmax", "periodogram", "psi", "quad", "rcond", "rescale", "residue", "signbit", "sqrtm",
    "strftime", "sylvester",
];

/// Whether a function of the library is a builtin in Octave.
pub fn is_built_in_there(name: &str) -> bool {
    BUILT_IN_THERE.binary_search(&name).is_ok()
}

/// Names under which Octave's messages know a function.
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

/// The error of a call that a function does not take, with how it is called.
///
/// # Errors
/// Always.
pub fn invalid_call<T>(name: &str, usage: &str) -> Flow<T> {
    let usage: Vec<&str> = usage.split(name).collect();
    // Arguments stand in capitals, as Octave's documentation has them.
    let usage = usage.iter().map(|part| part.to_uppercase()).collect::<Vec<_>>().join(name);
    let known = KNOWN_AS.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs);
    fail_id!("Octave:invalid-fun-call", "Invalid call to {known}.  Correct usage is:\n\n -- {usage}")
}

/// Refuses a call with too few or too many arguments or outputs; how many outputs it gives. Where they are `listed` for
/// targets, a builtin of Octave gives as many as it has, and what is missing is told when it is assigned.
///
/// # Errors
/// As Octave words it.
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
