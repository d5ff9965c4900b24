//! The elements of sets by kind, with their order and their equality.
//!
//! In: the elements of one set or of two. Out: positions of elements. Must hold: NaN comes after all others and equals
//! nothing; the two sets are of one kind, or have nothing in common.

use num_complex::Complex64;
use std::cmp::Ordering;

/// The elements of a set.
#[derive(Clone, Debug)]
pub enum Keys {
    Numbers(Vec<f64>),
    /// 64-bit integers that doubles cannot all tell apart.
    Wide(Vec<i128>),
    /// Complex numbers, ordered by absolute value and then by angle.
    Complex(Vec<Complex64>),
    Texts(Vec<Vec<u8>>),
    Rows(Vec<Vec<f64>>),
    WideRows(Vec<Vec<i128>>),
    ComplexRows(Vec<Vec<Complex64>>),
}

/// The order of distinct elements, and which one of equal elements counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Sorted,
    /// In the order of their first occurrence.
    Stable,
    /// Sorted, and the last of equal elements counts; indices and results are rows, except for columns only.
    Legacy,
}

/// Evaluates an expression on the vector of elements of any kind.
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

/// Does the same for two sets of one kind; sets of different kinds have nothing in common.
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
    /// Compares two elements; NaN comes after all others.
    fn order(&self, other: &Self) -> Ordering;

    fn is_nan(&self) -> bool;

    /// Whether two elements are equal; NaN equals nothing.
    fn same(&self, other: &Self) -> bool {
        !self.is_nan() && self.order(other).is_eq()
    }

    /// Returns the positions of these elements in sorted order; positions of equal elements rise.
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

    /// Sorting numbers together with their positions is faster than sorting positions only.
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

/// Rows are compared by their first elements that differ.
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

    /// Returns the elements at these positions.
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

    /// Returns the elements at these positions in the concatenation of this set and another of the same kind; either
    /// may be empty.
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

    /// Appends another set of the same kind, or an empty one.
    pub fn joined(mut self, other: Keys) -> Keys {
        if self.is_empty() {
            return other;
        }
        both_kinds!(&mut self, other, (v, w) => v.extend(w), else {});
        self
    }

    /// Turns real numbers into complex ones.
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

    /// Turns real numbers into 64-bit integers; `stranger` replaces a number that is no integer.
    pub fn whole(self, stranger: i128) -> Keys {
        let one = |x: f64| if x.fract() == 0.0 && x.abs() < 1e30 { x as i128 } else { stranger };
        let all = |v: Vec<f64>| v.into_iter().map(one).collect();
        match self {
            Keys::Numbers(v) => Keys::Wide(all(v)),
            Keys::Rows(v) => Keys::WideRows(v.into_iter().map(all).collect()),
            other => other,
        }
    }

    /// Returns the positions of the distinct elements, in the order of the style.
    pub fn distinct(&self, style: Style) -> Vec<usize> {
        each_kind!(self, v => distinct(v, style))
    }

    /// Returns the positions of the elements of the union, in the concatenation of this set and the other.
    pub fn united(&self, other: &Keys, style: Style) -> Vec<usize> {
        both_kinds!(self, other, (v, w) => united(v, w, style), else {
            // One of them is empty.
            each_kind!(if self.is_empty() { other } else { self }, v => united(v, &[], style))
        })
    }

    /// Returns the positions of the distinct elements in the order of the style, each with its equal's position in the
    /// other set.
    pub fn matched(&self, other: &Keys, style: Style) -> Vec<(usize, Option<usize>)> {
        both_kinds!(self, other, (v, w) => matched(v, w, style), else each_kind!(self, v => matched(v, &[], style)))
    }

    /// Returns each element's first position in the other set, from 1; 0 if it has none.
    pub fn found_in(&self, other: &Keys) -> Vec<f64> {
        both_kinds!(self, other, (v, w) => found(v, w), else vec![0.0; self.len()])
    }

    /// Sorts the elements.
    pub fn sort(&mut self) {
        each_kind!(self, v => v.sort_by(Key::order));
    }
}

/// Returns the positions of the distinct keys in order: of their first occurrences (of their last in the legacy style).
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

/// Returns the positions of the elements in `a` or `b`, in the concatenation of both.
fn united<K: Key>(a: &[K], b: &[K], style: Style) -> Vec<usize> {
    let (first, second) = (distinct(a, style), distinct(b, style));
    let mut out = Vec::with_capacity(first.len() + second.len());
    let (mut i, mut j) = (0, 0);
    while let (Some(&p), Some(&q)) = (first.get(i), second.get(j)) {
        match a[p].order(&b[q]) {
            // Two NaNs are different elements.
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

/// Returns the positions of the distinct keys of `a` in order, each with its equal's position in `b`.
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

/// Returns the first position of each key of `a` in `b`, from 1; 0 if it has none.
fn found<K: Key>(a: &[K], b: &[K]) -> Vec<f64> {
    let places = distinct(b, Style::Sorted);
    let sorted: Vec<K> = places.iter().map(|&at| b[at].clone()).collect();
    let find = |key: &K| {
        let at = sorted.partition_point(|k| k.order(key).is_lt());
        sorted.get(at).filter(|k| k.same(key)).map_or(0.0, |_| places[at] as f64 + 1.0)
    };
    a.iter().map(find).collect()
}
