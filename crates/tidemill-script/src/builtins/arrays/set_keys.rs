//! Elements of sets, by their kind: in which order they stand, and which of them are the same.
//!
//! In: the elements of one set or of two. Out: places of elements. Must hold: NaN stands behind all others and is the
//! same as nothing; the two sets are of one kind, or have nothing in common.

use num_complex::Complex64;
use std::cmp::Ordering;

/// The elements of a set.
#[derive(Clone, Debug)]
pub enum Keys {
    Numbers(Vec<f64>),
    /// 64-bit integers, of which doubles do not tell all apart.
    Wide(Vec<i128>),
    /// Ordered by their absolute values, then by their angles.
    Complex(Vec<Complex64>),
    Texts(Vec<Vec<u8>>),
    Rows(Vec<Vec<f64>>),
    WideRows(Vec<Vec<i128>>),
    ComplexRows(Vec<Vec<Complex64>>),
}

/// In which order distinct elements stand, and which of equal ones counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Sorted,
    /// As they come.
    Stable,
    /// Sorted, and the last of equal ones; indices and results are rows, but for columns alone.
    Legacy,
}

/// Evaluates an expression on the vector of elements, whatever their kind.
macro_rules! each_kind {
    ($keys:expr, $v:ident => $body:expr) => {
        match $keys {
            Keys::Numbers($v) => $body,
            Keys::Wide($v) => $body,
            Keys::Complex($v) => $body,
            Keys::Texts($v) => $body,
            Keys::Rows($v) => $body,
            Keys::WideRows($v) => $body,
            Keys::ComplexRows($v) => $body,
        }
    };
}

/// The same of two sets of one kind; sets of two kinds have nothing in common.
macro_rules! both_kinds {
    ($a:expr, $b:expr, ($v:ident, $w:ident) => $body:expr, else $other:expr) => {
        match ($a, $b) {
            (Keys::Numbers($v), Keys::Numbers($w)) => $body,
            (Keys::Wide($v), Keys::Wide($w)) => $body,
            (Keys::Complex($v), Keys::Complex($w)) => $body,
            (Keys::Texts($v), Keys::Texts($w)) => $body,
            (Keys::Rows($v), Keys::Rows($w)) => $body,
            (Keys::WideRows($v), Keys::WideRows($w)) => $body,
            (Keys::ComplexRows($v), Keys::ComplexRows($w)) => $body,
            _ => $other,
        }
    };
}

/// An element of a set.
trait Key: Clone {
    /// NaN stands behind all others.
    fn order(&self, other: &Self) -> Ordering;

    fn is_nan(&self) -> bool;

    /// NaN is no member of anything.
    fn same(&self, other: &Self) -> bool {
        !self.is_nan() && self.order(other).is_eq()
    }

    /// The places of these elements in their order, those of equal ones rising.
    fn places(keys: &[Self]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..keys.len()).collect();
        places.sort_by(|&i, &j| keys[i].order(&keys[j]));
        places
    }
}

impl Key for f64 {
    fn order(&self, other: &f64) -> Ordering {
        self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
    }

    fn is_nan(&self) -> bool {
        f64::is_nan(*self)
    }

    /// Numbers that lie beside their places are sorted faster than places alone.
    fn places(keys: &[f64]) -> Vec<usize> {
        let mut pairs: Vec<(f64, usize)> = keys.iter().copied().zip(0..).collect();
        pairs.sort_by(|a, b| a.0.order(&b.0));
        pairs.into_iter().map(|pair| pair.1).collect()
    }
}

impl Key for i128 {
    fn order(&self, other: &i128) -> Ordering {
        self.cmp(other)
    }

    fn is_nan(&self) -> bool {
        false
    }
}

impl Key for Complex64 {
    fn order(&self, other: &Complex64) -> Ordering {
        match (Key::is_nan(self), Key::is_nan(other)) {
            (false, false) => self.norm().order(&other.norm()).then_with(|| self.arg().order(&other.arg())),
            (a, b) => a.cmp(&b),
        }
    }

    fn is_nan(&self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }
}

impl Key for Vec<u8> {
    fn order(&self, other: &Vec<u8>) -> Ordering {
        self.cmp(other)
    }

    fn is_nan(&self) -> bool {
        false
    }
}

/// Rows stand by their first elements that differ.
macro_rules! row_key {
    ($t:ty) => {
        impl Key for Vec<$t> {
            fn order(&self, other: &Vec<$t>) -> Ordering {
                let differs = self.iter().zip(other).map(|(x, y)| x.order(y)).find(|o| o.is_ne());
                differs.unwrap_or(self.len().cmp(&other.len()))
            }

            fn is_nan(&self) -> bool {
                self.iter().any(Key::is_nan)
            }
        }
    };
}
row_key!(f64);
row_key!(i128);
row_key!(Complex64);

impl Keys {
    /// How many there are.
    pub fn len(&self) -> usize {
        each_kind!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements at these places.
    pub fn pick(&self, places: &[usize]) -> Keys {
        fn picked<K: Clone>(v: &[K], places: &[usize]) -> Vec<K> {
            places.iter().map(|&at| v[at].clone()).collect()
        }
        match self {
            Keys::Numbers(v) => Keys::Numbers(picked(v, places)),
            Keys::Wide(v) => Keys::Wide(picked(v, places)),
            Keys::Complex(v) => Keys::Complex(picked(v, places)),
            Keys::Texts(v) => Keys::Texts(picked(v, places)),
            Keys::Rows(v) => Keys::Rows(picked(v, places)),
            Keys::WideRows(v) => Keys::WideRows(picked(v, places)),
            Keys::ComplexRows(v) => Keys::ComplexRows(picked(v, places)),
        }
    }

    /// The elements at these places, as if those of another set of the same kind stood behind these; one may be empty.
    pub fn pick_of_both(&self, other: &Keys, places: &[usize]) -> Keys {
        fn picked<K: Clone>(v: &[K], w: &[K], places: &[usize]) -> Vec<K> {
            places.iter().map(|&at| v.get(at).unwrap_or_else(|| &w[at - v.len()]).clone()).collect()
        }
        match (self, other) {
            (Keys::Numbers(v), Keys::Numbers(w)) => Keys::Numbers(picked(v, w, places)),
            (Keys::Wide(v), Keys::Wide(w)) => Keys::Wide(picked(v, w, places)),
            (Keys::Complex(v), Keys::Complex(w)) => Keys::Complex(picked(v, w, places)),
            (Keys::Texts(v), Keys::Texts(w)) => Keys::Texts(picked(v, w, places)),
            (Keys::Rows(v), Keys::Rows(w)) => Keys::Rows(picked(v, w, places)),
            (Keys::WideRows(v), Keys::WideRows(w)) => Keys::WideRows(picked(v, w, places)),
            (Keys::ComplexRows(v), Keys::ComplexRows(w)) => Keys::ComplexRows(picked(v, w, places)),
            (v, w) => if v.is_empty() { w } else { v }.pick(places),
        }
    }

    /// These and those of another set of the same kind, or of none.
    pub fn joined(mut self, other: Keys) -> Keys {
        if self.is_empty() {
            return other;
        }
        both_kinds!(&mut self, other, (v, w) => v.extend(w), else {});
        self
    }

    /// As complex numbers, if they are real ones.
    pub fn widened(self) -> Keys {
        let all = |v: Vec<f64>| v.into_iter().map(|x| Complex64::new(x, 0.0)).collect();
        let whole = |v: Vec<i128>| v.into_iter().map(|x| Complex64::new(x as f64, 0.0)).collect();
        match self {
            Keys::Numbers(v) => Keys::Complex(all(v)),
            Keys::Wide(v) => Keys::Complex(whole(v)),
            Keys::Rows(v) => Keys::ComplexRows(v.into_iter().map(all).collect()),
            Keys::WideRows(v) => Keys::ComplexRows(v.into_iter().map(whole).collect()),
            other => other,
        }
    }

    /// As 64-bit integers, if they are real; `stranger` for what is none.
    pub fn whole(self, stranger: i128) -> Keys {
        let one = |x: f64| if x.fract() == 0.0 && x.abs() < 1e30 { x as i128 } else { stranger };
        let all = |v: Vec<f64>| v.into_iter().map(one).collect();
        match self {
            Keys::Numbers(v) => Keys::Wide(all(v)),
            Keys::Rows(v) => Keys::WideRows(v.into_iter().map(all).collect()),
            other => other,
        }
    }

    /// The places of distinct ones in their order.
    pub fn distinct(&self, style: Style) -> Vec<usize> {
        each_kind!(self, v => distinct(v, style))
    }

    /// The places of what is here or in another set, as if that one stood behind this one.
    pub fn united(&self, other: &Keys, style: Style) -> Vec<usize> {
        both_kinds!(self, other, (v, w) => united(v, w, style), else {
            // One of them is empty.
            each_kind!(if self.is_empty() { other } else { self }, v => united(v, &[], style))
        })
    }

    /// The places of distinct ones, in the order of the style, and those of their equals in another set.
    pub fn matched(&self, other: &Keys, style: Style) -> Vec<(usize, Option<usize>)> {
        both_kinds!(self, other, (v, w) => matched(v, w, style), else each_kind!(self, v => matched(v, &[], style)))
    }

    /// Where each stands in another set first, counted from 1; 0 if it does not.
    pub fn found_in(&self, other: &Keys) -> Vec<f64> {
        both_kinds!(self, other, (v, w) => found(v, w), else vec![0.0; self.len()])
    }

    /// Puts them in their order.
    pub fn sort(&mut self) {
        each_kind!(self, v => v.sort_by(Key::order));
    }
}

/// The places of distinct keys in their order: of their first occurrences (of their last, in the old style).
fn distinct<K: Key>(keys: &[K], style: Style) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::with_capacity(keys.len());
    let add = |i: usize| match out.last_mut() {
        Some(last) if keys[*last].same(&keys[i]) => {
            if style == Style::Legacy {
                *last = i;
            }
        }
        _ => out.push(i),
    };
    match keys.is_sorted_by(|a, b| a.order(b).is_le()) {
        true => (0..keys.len()).for_each(add),
        false => K::places(keys).into_iter().for_each(add),
    }
    out
}

/// The places of what is in `a` or in `b`, as if `b` stood behind `a`.
fn united<K: Key>(a: &[K], b: &[K], style: Style) -> Vec<usize> {
    let (first, second) = (distinct(a, style), distinct(b, style));
    let mut out = Vec::with_capacity(first.len() + second.len());
    let (mut i, mut j) = (0, 0);
    while let (Some(&p), Some(&q)) = (first.get(i), second.get(j)) {
        match a[p].order(&b[q]) {
            // NaN beside NaN is another one.
            Ordering::Equal if !a[p].is_nan() => {
                out.push(if style == Style::Legacy { a.len() + q } else { p });
                (i, j) = (i + 1, j + 1);
            }
            Ordering::Greater => {
                out.push(a.len() + q);
                j += 1;
            }
            Ordering::Less | Ordering::Equal => {
                out.push(p);
                i += 1;
            }
        }
    }
    out.extend(&first[i..]);
    out.extend(second[j..].iter().map(|q| a.len() + q));
    if style == Style::Stable {
        out.sort_unstable();
    }
    out
}

/// For the places of distinct keys of `a`, in their order, those of their equals in `b`.
fn matched<K: Key>(a: &[K], b: &[K], style: Style) -> Vec<(usize, Option<usize>)> {
    let others = distinct(b, style);
    let mut next = 0;
    let equal = |i: usize| {
        while others.get(next).is_some_and(|&j| b[j].order(&a[i]).is_lt()) {
            next += 1;
        }
        (i, others.get(next).copied().filter(|&j| b[j].same(&a[i])))
    };
    let mut out: Vec<_> = distinct(a, style).into_iter().map(equal).collect();
    if style == Style::Stable {
        out.sort_by_key(|found| found.0);
    }
    out
}

/// Where each key of `a` stands in `b` first, counted from 1; 0 if it does not.
fn found<K: Key>(a: &[K], b: &[K]) -> Vec<f64> {
    let places = distinct(b, Style::Sorted);
    let sorted: Vec<K> = places.iter().map(|&at| b[at].clone()).collect();
    let find = |key: &K| {
        let at = sorted.partition_point(|k| k.order(key).is_lt());
        sorted.get(at).filter(|k| k.same(key)).map_or(0.0, |_| places[at] as f64 + 1.0)
    };
    a.iter().map(find).collect()
}
