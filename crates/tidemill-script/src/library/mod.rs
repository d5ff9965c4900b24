//! The functions of the language that are written in the language itself. Each has a text, which is parsed and compiled
//! at its first call and is then shared by all scripts.
//!
//! A function belongs here and not into `builtins/` if it needs no access to the machine and is no inner loop: its
//! arrays go to the runtime like those of any script. Must hold: LIBRARY-1: a text first defines the function that its
//! row names. Only the text itself sees the other functions that it defines. LIBRARY-2: no library function has the
//! name of a builtin.

mod table;
mod table_more;

pub use table::families;

use super::compile::{self, Code};
use super::error::ScriptError;
use super::source::{Origin, Source};
use super::syntax::{self, ast::Name};
use super::{CODE_PLACES, own_place};
use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::sync::{Arc, OnceLock};

/// A function that is written in the language.
pub struct Written {
    /// The function's name.
    pub name: &'static str,
    /// The usage: its name with its arguments.
    pub usage: &'static str,
    /// A sentence that describes it.
    pub summary: &'static str,
    /// Its source text.
    text: &'static str,
}

/// The code of a text.
#[derive(Clone)]
pub struct Loaded {
    /// The function.
    pub code: Arc<Code>,
    /// All functions of its text, which the text's functions can call.
    pub functions: Arc<FxHashMap<Name, Arc<Code>>>,
}

/// The beginning of the names of library sources.
pub const PREFIX: &str = "library/";

impl Written {
    /// Makes a row of the table.
    const fn new(name: &'static str, usage: &'static str, summary: &'static str, text: &'static str) -> Written {
        Written { name, usage, summary, text }
    }

    /// Returns its code.
    ///
    /// # Errors
    /// A text that does not parse; a test compiles all of them.
    pub fn load(&self) -> Result<Loaded, ScriptError> {
        // Each thread has code of its own, as for scripts. No text has persistent variables, which would be lost with
        // the thread.
        static LOADED: [RwLock<FxHashMap<&'static str, Loaded>>; CODE_PLACES] =
            [const { RwLock::new(FxHashMap::with_hasher(FxBuildHasher)) }; CODE_PLACES];
        let place = &LOADED[own_place()];
        if let Some(loaded) = place.read().get(self.name) {
            return Ok(loaded.clone());
        }
        let source = Source::of(Origin::Library, format!("{PREFIX}{}.m", self.name), self.text);
        let file = syntax::parse(&source)?;
        let unit = compile::compile(&file, true)?;
        let Some(code) = unit.first_function.as_ref().and_then(|f| unit.functions.get(f)).cloned() else {
            return Err(ScriptError::new(format!("LIBRARY-1: {} defines no function", source.name)));
        };
        let loaded = Loaded { code, functions: Arc::new(unit.functions) };
        Ok(place.write().entry(self.name).or_insert(loaded).clone())
    }
}

/// Whether a function is one of the library.
pub fn holds(code: &Code) -> bool {
    code.source.origin == Origin::Library
}

/// Finds the library function of this name.
pub fn find(name: &str) -> Option<&'static Written> {
    static BY_NAME: OnceLock<FxHashMap<&'static str, &'static Written>> = OnceLock::new();
    let rows = || families().iter().flat_map(|(_, rows)| rows.iter()).map(|w| (w.name, w));
    BY_NAME.get_or_init(|| rows().collect()).get(name).copied()
}

/// The functions whose statements look at single elements, at parts, or repeatedly at all elements. Their arguments on
/// the runtime are gathered once, before they begin (`vm/gathered_call.rs`).
const GATHERED: &[&str] = &[
    "accumdim",
    "addtodate",
    "asctime",
    "balance",
    "base64_decode",
    "base64_encode",
    "bincoeff",
    "bitget",
    "bitset",
    "calendar",
    "commutation_matrix",
    "condeig",
    "condest",
    "convhull",
    "cosint",
    "cplxpair",
    "ctime",
    "curl",
    "datenum",
    "datestr",
    "datevec",
    "detrend",
    "discretize",
    "divergence",
    "dsearchn",
    "ellipj",
    "ellipke",
    "eomday",
    "expint",
    "fillmissing",
    "findgroups",
    "gray2ind",
    "hist",
    "histcounts",
    "hsv2rgb",
    "ind2gray",
    "ind2rgb",
    "inpolygon",
    "interp2",
    "interpn",
    "isdefinite",
    "ismissing",
    "isoutlier",
    "issortedrows",
    "kendall",
    "legendre",
    "logm",
    "lscov",
    "lsqnonneg",
    "maxk",
    "mink",
    "movfun",
    "movmad",
    "movmax",
    "movmean",
    "movmedian",
    "movmin",
    "movprod",
    "movstd",
    "movsum",
    "movvar",
    "mpoles",
    "normest",
    "normest1",
    "nth_element",
    "num2hex",
    "ols",
    "pchip",
    "polyaffine",
    "polyarea",
    "polygcd",
    "polyout",
    "polyreduce",
    "powerset",
    "ppder",
    "ppint",
    "psi",
    "randg",
    "randp",
    "ranks",
    "rat",
    "rectint",
    "repelems",
    "residue",
    "rgb2hsv",
    "rmmissing",
    "rref",
    "run_count",
    "runlength",
    "sinint",
    "spearman",
    "spline",
    "splitapply",
    "sqrtm",
    "stairs",
    "statistics",
    "strftime",
    "swapbytes",
    "sylvester",
    "uniquetol",
    "unwrap",
    "weekday",
];

/// Whether a library function's arguments are gathered before it begins.
pub fn gathers_arguments(name: &str) -> bool {
    GATHERED.binary_search(&name).is_ok()
}

/// Finds the function of this name that only library functions may call.
pub fn find_shared(name: &str) -> Option<&'static Written> {
    table::shared().find(|w| w.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_whose_arguments_are_awaited_stand_in_order_and_exist() {
        assert!(GATHERED.is_sorted());
        for name in GATHERED {
            assert!(find(name).is_some(), "{name} is not in the library");
        }
    }

    #[test]
    fn every_text_compiles_and_defines_its_function_first_under_a_name_that_nothing_else_has() {
        let mut seen = std::collections::HashSet::new();
        for written in families().iter().flat_map(|(_, rows)| rows.iter()).chain(table::shared()) {
            let loaded = written.load().unwrap_or_else(|e| panic!("{}: {}", written.name, e.message));
            assert_eq!(&*loaded.code.name, written.name);
            assert!(super::super::builtins::find(written.name).is_none(), "{} is a builtin, too", written.name);
            assert!(seen.insert(written.name), "{} stands twice", written.name);
            assert!(!written.usage.is_empty() && written.summary.ends_with('.'), "{}", written.name);
            assert!(holds(&loaded.code));
            let lasts = |code: &Arc<Code>| code.insts.iter().any(|i| matches!(i, compile::code::Inst::Persistent(_)));
            assert!(!loaded.functions.values().any(lasts), "{} keeps state with a thread's code", written.name);
        }
    }
}
