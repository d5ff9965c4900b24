//! Sets: members, unions, intersections, differences; of numbers, of rows, of cells of texts.

use super::args::{has_word, texts};
use super::{Builtin, Outcome, row, text};
use crate::script::env::Env;
use crate::script::error::{Flow, fail};
use crate::script::ops::in_class;
use crate::script::value::{Class, Data, Dims, Tensor, Value};
use crate::script::vm::Interp;
use num_complex::Complex64;
use std::cmp::Ordering;

/// The family.
pub static ROWS: &[Builtin] = &[
    row(
        "ismember",
        2,
        3,
        2,
        "[tf, at] = ismember (a, s, \"rows\")",
        "Which elements of a are in s, and where.",
        ismember,
    ),
    row("union", 2, 4, 3, "[c, ia, ib] = union (a, b, \"rows\", \"stable\")", "What is in a or in b, sorted.", union),
    row(
        "intersect",
        2,
        4,
        3,
        "[c, ia, ib] = intersect (a, b, \"rows\", \"stable\")",
        "What is in a and in b, sorted.",
        intersect,
    ),
    row(
        "setdiff",
        2,
        4,
        2,
        "[c, ia] = setdiff (a, b, \"rows\", \"stable\")",
        "What is in a and not in b, sorted.",
        setdiff,
    ),
    row(
        "setxor",
        2,
        4,
        3,
        "[c, ia, ib] = setxor (a, b, \"rows\", \"stable\")",
        "What is in one of a and b alone, sorted.",
        setxor,
    ),
];

/// The elements of a set.
#[derive(Clone, Debug)]
enum Keys {
    Numbers(Vec<f64>),
    /// Ordered by their absolute values, then by their angles.
    Complex(Vec<Complex64>),
    Texts(Vec<Vec<u8>>),
    Rows(Vec<Vec<f64>>),
    ComplexRows(Vec<Vec<Complex64>>),
}

/// Evaluates an expression on the vector of elements, whatever their kind.
macro_rules! each_kind {
    ($keys:expr, $v:ident => $body:expr) => {
        match $keys {
            Keys::Numbers($v) => $body,
            Keys::Complex($v) => $body,
            Keys::Texts($v) => $body,
            Keys::Rows($v) => $body,
            Keys::ComplexRows($v) => $body,
        }
    };
}

/// The same of two sets of one kind; sets of two kinds have nothing in common.
macro_rules! both_kinds {
    ($a:expr, $b:expr, ($v:ident, $w:ident) => $body:expr, else $other:expr) => {
        match ($a, $b) {
            (Keys::Numbers($v), Keys::Numbers($w)) => $body,
            (Keys::Complex($v), Keys::Complex($w)) => $body,
            (Keys::Texts($v), Keys::Texts($w)) => $body,
            (Keys::Rows($v), Keys::Rows($w)) => $body,
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
row_key!(Complex64);

impl Keys {
    fn len(&self) -> usize {
        each_kind!(self, v => v.len())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements at these places.
    fn pick(&self, places: &[usize]) -> Keys {
        fn picked<K: Clone>(v: &[K], places: &[usize]) -> Vec<K> {
            places.iter().map(|&at| v[at].clone()).collect()
        }
        match self {
            Keys::Numbers(v) => Keys::Numbers(picked(v, places)),
            Keys::Complex(v) => Keys::Complex(picked(v, places)),
            Keys::Texts(v) => Keys::Texts(picked(v, places)),
            Keys::Rows(v) => Keys::Rows(picked(v, places)),
            Keys::ComplexRows(v) => Keys::ComplexRows(picked(v, places)),
        }
    }

    /// The elements at these places, as if those of another set of the same kind stood behind these; one may be empty.
    fn pick_of_both(&self, other: &Keys, places: &[usize]) -> Keys {
        fn picked<K: Clone>(v: &[K], w: &[K], places: &[usize]) -> Vec<K> {
            places.iter().map(|&at| v.get(at).unwrap_or_else(|| &w[at - v.len()]).clone()).collect()
        }
        match (self, other) {
            (Keys::Numbers(v), Keys::Numbers(w)) => Keys::Numbers(picked(v, w, places)),
            (Keys::Complex(v), Keys::Complex(w)) => Keys::Complex(picked(v, w, places)),
            (Keys::Texts(v), Keys::Texts(w)) => Keys::Texts(picked(v, w, places)),
            (Keys::Rows(v), Keys::Rows(w)) => Keys::Rows(picked(v, w, places)),
            (Keys::ComplexRows(v), Keys::ComplexRows(w)) => Keys::ComplexRows(picked(v, w, places)),
            (v, w) => if v.is_empty() { w } else { v }.pick(places),
        }
    }

    /// These and those of another set of the same kind, or of none.
    fn joined(mut self, other: Keys) -> Keys {
        if self.is_empty() {
            return other;
        }
        both_kinds!(&mut self, other, (v, w) => v.extend(w), else {});
        self
    }

    /// As complex numbers, if they are real ones.
    fn widened(self) -> Keys {
        let all = |v: Vec<f64>| v.into_iter().map(|x| Complex64::new(x, 0.0)).collect();
        match self {
            Keys::Numbers(v) => Keys::Complex(all(v)),
            Keys::Rows(v) => Keys::ComplexRows(v.into_iter().map(all).collect()),
            other => other,
        }
    }
}

/// A set as it was given.
struct Given {
    keys: Keys,
    dims: Dims,
    class: Class,
    is_cell: bool,
    columns: usize,
}

fn given(env: &Env, who: &str, value: &Value, rows: bool) -> Flow<Given> {
    if let Value::Cell(_) = value {
        let Some(keys) = texts(value) else { return fail!("{who}: A and B must be arrays or cell arrays of strings") };
        let keys = Keys::Texts(keys.into_iter().collect());
        return Ok(Given { keys, dims: value.dims(), class: Class::Cell, is_cell: true, columns: 1 });
    }
    let host = env.host(value)?;
    let (m, n) = (host.dims.rows(), host.dims.elements().checked_div(host.dims.rows()).unwrap_or(0));
    let keys = match (host.data.is_complex(), rows) {
        (true, true) => {
            Keys::ComplexRows((0..m).map(|i| (0..n).map(|j| host.data.c64_at(j * m + i)).collect()).collect())
        }
        (true, false) => Keys::Complex((0..host.len()).map(|i| host.data.c64_at(i)).collect()),
        (false, true) => {
            let x = host.data.to_f64();
            Keys::Rows((0..m).map(|i| (0..n).map(|j| x[j * m + i]).collect()).collect())
        }
        (false, false) => Keys::Numbers(host.data.to_f64()),
    };
    Ok(Given {
        keys,
        dims: host.dims.clone(),
        class: host.data.class(),
        is_cell: false,
        columns: if rows { n } else { 1 },
    })
}

/// Where one set has complex numbers, those of the other are some, too.
fn alike(a: &mut Given, b: &mut Given) {
    let complex = |g: &Given| matches!(g.keys, Keys::Complex(_) | Keys::ComplexRows(_));
    if complex(a) || complex(b) {
        for set in [a, b] {
            set.keys = std::mem::replace(&mut set.keys, Keys::Numbers(Vec::new())).widened();
        }
    }
}

/// Where one set has integers or singles, the numbers of the other are such, too, before they are compared.
fn saturated(a: &mut Given, b: &mut Given) {
    let class = joined_class(a, b);
    for set in [a, b] {
        if !class.is_integer() && class != Class::Single || set.class == class {
            continue;
        }
        let fit = |v: &mut Vec<f64>| *v = Data::F64(std::mem::take(v)).converted(class).to_f64();
        match &mut set.keys {
            Keys::Numbers(v) => fit(v),
            Keys::Rows(rows) => rows.iter_mut().for_each(fit),
            Keys::Complex(_) | Keys::ComplexRows(_) | Keys::Texts(_) => {}
        }
    }
}

/// Refuses options that are none, or contradict each other, and sets that have no rows alike.
fn check(who: &str, args: &[Value]) -> Flow<()> {
    let words: Vec<String> = args[2..].iter().map(|word| word.as_text().unwrap_or_default().to_lowercase()).collect();
    let known = ["rows", "sorted", "stable", "legacy"];
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        return fail!("{who}: invalid option: {word}");
    }
    if words.iter().filter(|word| *word != "rows").count() > 1 {
        return fail!("{who}: only one of \"sorted\", \"stable\", or \"legacy\" may be specified");
    }
    if !words.iter().any(|word| word == "rows") {
        return Ok(());
    }
    if args[..2].iter().any(|set| matches!(set, Value::Cell(_))) {
        return fail!("{who}: cells not supported with \"rows\" flag");
    }
    let (a, b) = (args[0].dims(), args[1].dims());
    if a.len() > 2 || b.len() > 2 {
        return fail!("{who}: A and B must be 2-dimensional matrices with \"rows\" flag");
    }
    if a.columns() != b.columns() && !args[..2].iter().any(Value::is_empty) {
        return fail!("{who}: number of columns in A and B must match");
    }
    Ok(())
}

/// A text as a cell; a char matrix as its rows.
fn rows_in_cell(value: &Value) -> Value {
    match text::rows(value) {
        Some(rows) if rows.len() > 1 => text::cell_column(rows),
        _ => Value::cell(Dims::scalar(), vec![value.clone()]),
    }
}

/// Cells of texts go with cells of texts alone.
fn combine(who: &str, a: &Value, b: &Value) -> Flow<()> {
    let is_cell = |v: &Value| matches!(v, Value::Cell(_));
    if is_cell(a) && is_cell(b) && texts(a).is_some() != texts(b).is_some() {
        return fail!("{who}: cell array of strings cannot be combined with a nonstring value");
    }
    Ok(())
}

/// Both sets; a text beside a cell of texts is one of them.
fn both(env: &Env, who: &str, args: &[Value]) -> Flow<(Given, Given, bool)> {
    env.host_all(args)?;
    check(who, args)?;
    let rows = has_word(&args[2..], "rows");
    let wrap = |value: &Value, other: &Value| match (value, other) {
        (v, Value::Cell(_)) if v.is_char() => rows_in_cell(v),
        (v, Value::Cell(_)) if v.is_empty() && !matches!(v, Value::Cell(_)) => Value::cell(Dims::zero(), Vec::new()),
        (v, _) => v.clone(),
    };
    let (a, b) = (wrap(&args[0], &args[1]), wrap(&args[1], &args[0]));
    combine(who, &a, &b)?;
    let (mut a, mut b) = (given(env, who, &a, rows)?, given(env, who, &b, rows)?);
    if a.is_cell != b.is_cell {
        return fail!("{who}: cell array of strings cannot be combined with a nonstring value");
    }
    alike(&mut a, &mut b);
    saturated(&mut a, &mut b);
    Ok((a, b, rows))
}

/// In which order distinct elements stand, and which of equal ones counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Sorted,
    /// As they come.
    Stable,
    /// Sorted, and the last of equal ones; indices and results are rows, but for columns alone.
    Legacy,
}

fn style(args: &[Value]) -> Style {
    match &args[2..] {
        words if has_word(words, "stable") => Style::Stable,
        words if has_word(words, "legacy") => Style::Legacy,
        _ => Style::Sorted,
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

/// As [`matched`], of sets of any kind.
fn matched_keys(a: &Keys, b: &Keys, style: Style) -> Vec<(usize, Option<usize>)> {
    both_kinds!(a, b, (v, w) => matched(v, w, style), else each_kind!(a, v => matched(v, &[], style)))
}

/// The class of both sets' elements side by side; what has no elements has no say.
fn joined_class(a: &Given, b: &Given) -> Class {
    if a.class == b.class || b.keys.is_empty() {
        return a.class;
    }
    if a.keys.is_empty() && a.class == Class::Double {
        return b.class;
    }
    let either = |class: Class| a.class == class || b.class == class;
    match (a.class, b.class) {
        _ if either(Class::Char) => Class::Char,
        (class, _) | (_, class) if class.is_integer() => class,
        _ if either(Class::Single) => Class::Single,
        _ => Class::Double,
    }
}

/// Keys as a value of the kind that the sets had.
fn value_of(keys: Keys, a: &Given, b: &Given, style: Style) -> Value {
    let n = keys.len();
    let is_row = |g: &Given| g.dims.rows() == 1 && g.dims.len() == 2;
    let is_column = |g: &Given| g.dims.columns() == 1 && g.dims.rows() != 1;
    // A row where both are rows (a scalar or an empty set is either); else a column.
    let neutral = |g: &Given| g.dims.is_scalar() || g.keys.is_empty();
    let flat = (is_row(a) || neutral(a))
        && (is_row(b) || neutral(b))
        && !(is_column(a) && !neutral(a) || is_column(b) && !neutral(b));
    let flat = flat || style == Style::Legacy && ![a, b].into_iter().all(|g| is_column(g) || neutral(g));
    let dims = match n {
        0 if a.keys.is_empty() && b.keys.is_empty() => Dims::zero(),
        _ if flat => Dims::new(&[1, n]),
        _ => Dims::new(&[n, 1]),
    };
    let class = joined_class(a, b);
    // The elements of a matrix of these rows.
    fn elements<T: Copy + Default>(rows: &[Vec<T>], columns: usize) -> Vec<T> {
        let n = rows.len();
        (0..n * columns).map(|k| rows[k % n].get(k / n).copied().unwrap_or_default()).collect()
    }
    let (dims, data) = match keys {
        Keys::Texts(texts) => return Value::cell(dims, texts.iter().map(Value::string).collect()),
        _ if a.is_cell || b.is_cell => return Value::cell(dims, Vec::new()),
        Keys::Complex(numbers) if n > 0 => (dims, crate::script::ops::complex_in_class(class, numbers)),
        Keys::ComplexRows(rows) if n > 0 => {
            let columns = rows[0].len();
            (Dims::new(&[n, columns]), crate::script::ops::complex_in_class(class, elements(&rows, columns)))
        }
        Keys::Numbers(numbers) => (dims, in_class(class, numbers)),
        Keys::Rows(of_rows) => {
            let columns = a.columns.max(b.columns);
            (Dims::new(&[n, columns]), Data::F64(elements(&of_rows, columns)).converted(class))
        }
        Keys::Complex(_) => (dims, Data::F64(Vec::new()).converted(class)),
        Keys::ComplexRows(_) => (Dims::new(&[0, a.columns.max(b.columns)]), Data::F64(Vec::new()).converted(class)),
    };
    Value::tensor(Tensor::new(dims, data))
}

fn places(items: impl Iterator<Item = usize>, lying: bool) -> Value {
    let numbers = items.map(|i| i as f64 + 1.0).collect();
    if lying { Value::row(numbers) } else { Value::column(numbers) }
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

fn ismember(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    if has_word(&args[2..], "stable") || has_word(&args[2..], "sorted") {
        return fail!("ismember: \"stable\" or \"sorted\" are not valid options");
    }
    let rows = has_word(&args[2..], "rows");
    let is_cell = |v: &Value| matches!(v, Value::Cell(_));
    let is_odd = |v: &Value| !is_cell(v) && !v.is_char() && !v.is_empty();
    if is_cell(&args[0]) && is_odd(&args[1]) || is_cell(&args[1]) && is_odd(&args[0]) {
        return fail!("ismember: cell array of strings cannot be combined with a nonstring value");
    }
    // One text is looked for among texts; a text's letters are looked for among letters.
    let one_text = args[0].is_char() && matches!(args[1], Value::Cell(_));
    combine("ismember", &args[0], &args[1])?;
    let mut a = match one_text {
        true => given(env, "ismember", &rows_in_cell(&args[0]), rows)?,
        false => given(env, "ismember", &args[0], rows)?,
    };
    let mut s = match &args[1] {
        v if a.is_cell && v.is_char() => given(env, "ismember", &rows_in_cell(v), rows)?,
        v => given(env, "ismember", v, rows)?,
    };
    if rows && !a.is_cell && a.columns != s.columns && !a.keys.is_empty() && !s.keys.is_empty() {
        return fail!("ismember: number of columns in A and B must match");
    }
    alike(&mut a, &mut s);
    if a.class.is_float() && s.class.is_float() {
        saturated(&mut a, &mut s);
    }
    let found = both_kinds!(&a.keys, &s.keys, (v, w) => found(v, w), else vec![0.0; a.keys.len()]);
    let dims = if rows { Dims::new(&[found.len(), 1]) } else { a.dims.clone() };
    let tf = Data::Bool(found.iter().map(|&at| at > 0.0).collect());
    let tf = Value::tensor(Tensor::new(dims.clone(), tf));
    Ok(vec![tf, Value::tensor(Tensor::new(dims, Data::F64(found)))].into())
}

fn union(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "union", args)?;
    let style = style(args);
    let split = a.keys.len();
    let found = match both_kinds!(&a.keys, &b.keys, (v, w) => Some(united(v, w, style)), else None) {
        Some(found) => found,
        // One of them is empty.
        None if a.keys.is_empty() => each_kind!(&b.keys, v => united(&[], v, style)),
        None => each_kind!(&a.keys, v => united(v, &[], style)),
    };
    let value = value_of(a.keys.pick_of_both(&b.keys, &found), &a, &b, style);
    if nargout < 2 {
        return Ok(value.into());
    }
    let lying = style == Style::Legacy && !rows;
    let from_a = places(found.iter().copied().filter(|&at| at < split), lying);
    let from_b = places(found.iter().filter(|&&at| at >= split).map(|at| at - split), lying);
    Ok(vec![value, from_a, from_b].into())
}

fn intersect(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "intersect", args)?;
    let style = style(args);
    let matched = matched_keys(&a.keys, &b.keys, style);
    let found: Vec<(usize, usize)> = matched.iter().filter_map(|&(i, j)| Some((i, j?))).collect();
    let keys = a.keys.pick(&found.iter().map(|f| f.0).collect::<Vec<_>>());
    // Two single elements have nothing, of no shape, in common.
    let alone = || matched.len() == 1 && each_kind!(&b.keys, v => distinct(v, style)).len() == 1;
    let value = match keys.is_empty() && (a.keys.is_empty() || b.keys.is_empty() || alone()) {
        true if a.is_cell => Value::cell(Dims::zero(), Vec::new()),
        true => Value::tensor(Tensor::zeros(joined_class(&a, &b), Dims::zero())),
        false => value_of(keys, &a, &b, style),
    };
    if nargout < 2 {
        return Ok(value.into());
    }
    let lying = style == Style::Legacy && !rows;
    Ok(vec![value, places(found.iter().map(|f| f.0), lying), places(found.iter().map(|f| f.1), lying)].into())
}

/// The places of what is in `keys` and not in the other set.
fn without(keys: &Keys, other: &Keys, style: Style) -> Vec<usize> {
    matched_keys(keys, other, style).into_iter().filter(|found| found.1.is_none()).map(|found| found.0).collect()
}

fn setdiff(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setdiff", args)?;
    let style = style(args);
    let found = without(&a.keys, &b.keys, style);
    // They were compared in the kind of both, and are given as they were.
    let is_alike = args[0].class() == args[1].class() && args[0].is_complex() == args[1].is_complex();
    let keys = match a.is_cell || is_alike {
        true => a.keys.pick(&found),
        false => given(&interp.env, "setdiff", &args[0], rows)?.keys.pick(&found),
    };
    let like_a = Given {
        keys: Keys::Numbers(Vec::new()),
        dims: Dims::zero(),
        class: a.class,
        is_cell: a.is_cell,
        columns: a.columns,
    };
    let other = if style == Style::Legacy { &b } else { &like_a };
    let value = value_of(keys, &a, other, style);
    if nargout < 2 {
        return Ok(value.into());
    }
    Ok(vec![value, places(found.into_iter(), style == Style::Legacy && !rows)].into())
}

fn setxor(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setxor", args)?;
    let style = style(args);
    let (only_a, only_b) = (without(&a.keys, &b.keys, style), without(&b.keys, &a.keys, style));
    let mut keys = a.keys.pick(&only_a).joined(b.keys.pick(&only_b));
    if style != Style::Stable {
        each_kind!(&mut keys, v => v.sort_by(Key::order));
    }
    let lying = style == Style::Legacy && !rows;
    let of = |given: &Given, found: &[usize]| match given.keys.is_empty() {
        true => Value::empty(),
        false => places(found.iter().copied(), lying),
    };
    let out = vec![value_of(keys, &a, &b, style), of(&a, &only_a), of(&b, &only_b)];
    Ok(out.into())
}
