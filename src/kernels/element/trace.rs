//! Lanes that record the operations on them: a semantic function that is called with such lanes yields WGSL.
//!
//! In: a function of `graph::semantics`. Out: `let` lines and the text of the result. A line is written once for each
//! different expression, so that common parts are shared. Each thread has its own recording, which lasts for one call
//! of [`record`].
//!
//! Must hold: ELEM-4: lanes exist only inside of `record`.

use crate::graph::semantics::{Lane, Mask};
use crate::kernels::wgsl::types::vector;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A hand-written WGSL function that recorded code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// `tm_mulhi(u32, u32) -> u32`: the product's high word.
    MulHigh,
    /// `tm_mulhi_4` on `vec4<u32>`.
    MulHigh4,
    /// `tm_fmod(f32, f32) -> f32`: the exact remainder.
    Remainder,
    /// `tm_fmod_f64(f64, f64) -> f64`: the exact remainder.
    RemainderWide,
}

/// The result of a recording.
pub(crate) struct Recording {
    /// `let` lines, in order.
    pub lines: Vec<String>,
    /// The text of each result: a variable, an argument or a constant.
    pub results: Vec<String>,
    /// Functions that the lines call.
    pub helpers: BTreeSet<Helper>,
}

struct Recorder {
    width: u32,
    texts: Vec<String>,
    known: FxHashMap<String, u32>,
    lines: Vec<String>,
    helpers: BTreeSet<Helper>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

fn with<R>(f: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with(|cell| f(cell.borrow_mut().as_mut().expect("ELEM-4: a traced lane outside of a recording")))
}

/// Records `f` on lanes of `width` elements. `f` returns the numbers of the lanes that are results.
pub(crate) fn record(width: u32, f: impl FnOnce() -> Vec<u32>) -> Recording {
    let fresh =
        Recorder { width, texts: Vec::new(), known: FxHashMap::default(), lines: Vec::new(), helpers: BTreeSet::new() };
    let outer = RECORDER.with(|cell| cell.replace(Some(fresh)));
    let results = f();
    let done = RECORDER.with(|cell| cell.replace(outer)).expect("ELEM-4: a recording ended twice");
    let results = results.iter().map(|&id| done.texts[id as usize].clone()).collect();
    Recording { lines: done.lines, results, helpers: done.helpers }
}

/// The scalar type of a lane.
pub(crate) trait Kind: Copy + 'static {
    /// Its WGSL name.
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($kind:ident $name:literal $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy)]
        pub(crate) struct $kind;
        impl Kind for $kind {
            const NAME: &'static str = $name;
        }
    )*};
}
kinds! {
    F32 "f32" "32-bit float.";
    F64 "f64" "64-bit float.";
    U32 "u32" "32-bit unsigned.";
    U8 "u32" "8-bit unsigned, in a 32-bit register.";
    I32 "i32" "32-bit signed.";
    I64 "i64" "64-bit signed.";
    U64 "u64" "64-bit unsigned.";
    Truth "bool" "A truth value.";
}

/// A recorded value of kind `K`.
pub(crate) struct Traced<K>(u32, PhantomData<K>);

impl<K> Clone for Traced<K> {
    fn clone(&self) -> Traced<K> {
        *self
    }
}

impl<K> Copy for Traced<K> {}

/// The WGSL name of the type of a lane of kind `K`.
pub(crate) fn type_name<K: Kind>() -> String {
    vector(K::NAME, with(|r| r.width))
}

/// How many elements a lane holds.
pub(crate) fn width() -> u32 {
    with(|r| r.width)
}

/// Records that a helper is called.
pub(crate) fn need(helper: Helper) {
    with(|r| r.helpers.insert(helper));
}

impl<K: Kind> Traced<K> {
    /// A value whose text is given: an argument or a constant.
    pub(crate) fn named(text: String) -> Traced<K> {
        with(|r| {
            if let Some(&id) = r.known.get(&text) {
                return Traced(id, PhantomData);
            }
            let id = r.texts.len() as u32;
            r.known.insert(text.clone(), id);
            r.texts.push(text);
            Traced(id, PhantomData)
        })
    }

    /// A constant, repeated in all lanes.
    pub(crate) fn constant(text: &str) -> Traced<K> {
        if with(|r| r.width) == 1 {
            Traced::named(text.to_string())
        } else {
            Traced::named(format!("{}({text})", type_name::<K>()))
        }
    }

    /// The value of a line with this expression. The line is new if none has the expression yet.
    pub(crate) fn line(expression: String) -> Traced<K> {
        with(|r| {
            if let Some(&id) = r.known.get(&expression) {
                return Traced(id, PhantomData);
            }
            let id = r.texts.len() as u32;
            let name = format!("t{}", r.lines.len());
            r.lines.push(format!("let {name} = {expression};"));
            r.texts.push(name);
            r.known.insert(expression, id);
            Traced(id, PhantomData)
        })
    }

    /// Its text.
    pub(crate) fn text(self) -> String {
        with(|r| r.texts[self.0 as usize].clone())
    }

    /// Its number, to be returned from a recording.
    pub(crate) fn id(self) -> u32 {
        self.0
    }

    /// The same bits as another kind.
    pub(crate) fn bitcast<T: Kind>(self) -> Traced<T> {
        Traced::line(format!("bitcast<{}>({})", type_name::<T>(), self.text()))
    }

    /// The value converted to another kind by WGSL's rules.
    pub(crate) fn convert<T: Kind>(self) -> Traced<T> {
        Traced::line(format!("{}({})", type_name::<T>(), self.text()))
    }

    /// The same value as another kind that has the same WGSL type.
    pub(crate) fn as_kind<T: Kind>(self) -> Traced<T> {
        Traced(self.0, PhantomData)
    }

    /// `self op other`.
    pub(crate) fn infix<T: Kind>(self, op: &str, other: Traced<K>) -> Traced<T> {
        Traced::line(format!("({} {op} {})", self.text(), other.text()))
    }

    /// `function(self)`.
    pub(crate) fn call(self, function: &str) -> Traced<K> {
        Traced::line(format!("{function}({})", self.text()))
    }

    /// `function(self, other)`.
    pub(crate) fn call2(self, function: &str, other: Traced<K>) -> Traced<K> {
        Traced::line(format!("{function}({}, {})", self.text(), other.text()))
    }
}

impl<K: Kind> Lane for Traced<K> {
    type Mask = Traced<Truth>;
    fn select(mask: Traced<Truth>, yes: Traced<K>, no: Traced<K>) -> Traced<K> {
        if yes.0 == no.0 {
            return yes;
        }
        Traced::line(format!("select({}, {}, {})", no.text(), yes.text(), mask.text()))
    }
    fn same(self, other: Traced<K>) -> Traced<Truth> {
        self.infix("==", other)
    }
    fn less(self, other: Traced<K>) -> Traced<Truth> {
        self.infix("<", other)
    }
    fn at_most(self, other: Traced<K>) -> Traced<Truth> {
        self.infix("<=", other)
    }
}

impl Mask for Traced<Truth> {
    fn all(value: bool) -> Traced<Truth> {
        Traced::constant(if value { "true" } else { "false" })
    }
}

impl BitAnd for Traced<Truth> {
    type Output = Traced<Truth>;
    fn bitand(self, other: Traced<Truth>) -> Traced<Truth> {
        self.infix("&", other)
    }
}

impl BitOr for Traced<Truth> {
    type Output = Traced<Truth>;
    fn bitor(self, other: Traced<Truth>) -> Traced<Truth> {
        self.infix("|", other)
    }
}

impl BitXor for Traced<Truth> {
    type Output = Traced<Truth>;
    fn bitxor(self, other: Traced<Truth>) -> Traced<Truth> {
        self.infix("!=", other)
    }
}

impl Not for Traced<Truth> {
    type Output = Traced<Truth>;
    fn not(self) -> Traced<Truth> {
        self.call("!")
    }
}
