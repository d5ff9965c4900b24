//! Subscripts: the meaning of a value as an index, independent of an array.
//!
//! In: a value (colon, number, range, list, mask, `':'`). Out: positions from 0, with the index's shape. Must hold:
//! INDEX-1: every position of a subscript is less than its `extent`.

use crate::display::number::{self, Notation};
use crate::error::{Flow, ScriptError, Stop};
use crate::value::{Data, Dims, Lazy, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// The positions that a subscript names, from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Places {
    /// All positions.
    Colon,
    /// One.
    One(usize),
    /// Evenly spaced positions, at least two; the step is not zero.
    Range {
        /// The first.
        first: usize,
        /// The distance from one to the next.
        step: isize,
        /// The number of positions.
        len: usize,
    },
    /// Any positions, in this order.
    List(Vec<usize>),
}

/// A subscript: its positions and the index's shape.
#[derive(Clone, Debug)]
pub struct Subscript {
    /// The positions.
    pub places: Places,
    /// The shape of the index; for a mask, that of the list of its true places.
    pub dims: Dims,
    /// The greatest position plus one; 0 if there is none, or for a colon.
    pub extent: usize,
}

/// All subscripts of an index.
pub type Subscripts = SmallVec<[Subscript; 3]>;

/// The number of a subscript among several, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// From 0.
    pub index: usize,
    /// The number of subscripts.
    pub count: usize,
}

impl Subscript {
    /// All positions.
    pub fn colon() -> Subscript {
        Subscript { places: Places::Colon, dims: Dims::scalar(), extent: 0 }
    }

    /// One position.
    pub fn one(place: usize) -> Subscript {
        Subscript { places: Places::One(place), dims: Dims::scalar(), extent: place.saturating_add(1) }
    }

    /// Makes a subscript of these positions with this shape; evenly spaced positions become a range.
    pub fn list(places: Vec<usize>, dims: Dims) -> Subscript {
        let extent = places.iter().fold(0, |most, &place| place.saturating_add(1).max(most));
        let places = match places[..] {
            [one] => Places::One(one),
            [first, second, ..] if first != second => {
                let step = second as isize - first as isize;
                let even = places.windows(2).all(|w| w[1] as isize - w[0] as isize == step);
                if even { Places::Range { first, step, len: places.len() } } else { Places::List(places) }
            }
            _ => Places::List(places),
        };
        Subscript { places, dims, extent }
    }

    /// Returns how many of `n` positions it names.
    pub fn len(&self, n: usize) -> usize {
        match &self.places {
            Places::Colon => n,
            Places::One(_) => 1,
            Places::Range { len, .. } => *len,
            Places::List(list) => list.len(),
        }
    }

    /// Returns how many positions an array of `n` must have at least.
    pub fn needs(&self, n: usize) -> usize {
        self.extent.max(n)
    }

    /// Whether it is a colon.
    pub fn is_colon(&self) -> bool {
        self.places == Places::Colon
    }

    /// Whether it names one position by a number.
    pub fn is_one(&self) -> bool {
        matches!(self.places, Places::One(_))
    }

    /// Returns its positions among `n`.
    pub fn positions(&self, n: usize) -> Vec<usize> {
        (0..self.len(n)).map(|i| self.place(i)).collect()
    }

    /// Returns its `i`th position.
    pub fn place(&self, i: usize) -> usize {
        match &self.places {
            Places::Colon => i,
            Places::One(place) => *place,
            Places::Range { first, step, .. } => first.wrapping_add_signed(step.wrapping_mul(i as isize)),
            Places::List(list) => list[i],
        }
    }
}

/// A subscript, or the array of the runtime that stands for one.
pub enum Resolved {
    /// Its positions are known.
    Host(Subscript),
    /// Its elements are on the runtime.
    Lazy(Arc<Lazy>),
}

/// Turns a value into a subscript. A range on the runtime is known without reading it.
///
/// # Errors
/// Numbers that are no positive integers, and values that are no indices.
pub fn resolve(value: &Value, position: Position) -> Flow<Resolved> {
    let subscript = match value {
        Value::Colon => Subscript::colon(),
        Value::Num(x) => Subscript::one(place(*x).ok_or_else(|| invalid_number(*x, position))?),
        Value::Bool(true) => Subscript::one(0),
        Value::Bool(false) => Subscript::list(Vec::new(), Dims::zero()),
        Value::Tensor(tensor) => of_tensor(tensor, position)?,
        Value::Lazy(lazy) => match (lazy.host.get(), lazy.steps) {
            (Some(host), _) => of_tensor(host, position)?,
            (None, Some((first, step))) => match even(first, step, lazy.dims.elements(), &lazy.dims) {
                Some(subscript) => subscript,
                None => return Err(invalid_range(first, step, lazy.dims.elements(), position)),
            },
            (None, None) => return Ok(Resolved::Lazy(lazy.clone())),
        },
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) => {
            return Err(invalid(&format!("<{}>", value.type_name()), position));
        }
    };
    Ok(Resolved::Host(subscript))
}

/// Returns the position of an index that counts from 1.
#[inline(always)]
pub fn place(x: f64) -> Option<usize> {
    // No double beyond 2^63 is a position; the cast saturates, and turns NaN into 0.
    let k = x as i64;
    (k as f64 == x && k >= 1 && k != i64::MAX).then(|| k as usize - 1)
}

/// Returns `first, first + step, …` as a subscript, if all are positive integers.
fn even(first: f64, step: f64, len: usize, dims: &Dims) -> Option<Subscript> {
    if len == 0 {
        return Some(Subscript::list(Vec::new(), dims.clone()));
    }
    let last = first + step * (len - 1) as f64;
    let (start, end) = (place(first)?, place(last)?);
    if len == 1 {
        return Some(Subscript { dims: dims.clone(), ..Subscript::one(start) });
    }
    let whole = step as isize;
    if whole as f64 != step || whole == 0 {
        return None;
    }
    let places = Places::Range { first: start, step: whole, len };
    Some(Subscript { places, dims: dims.clone(), extent: start.max(end) + 1 })
}

fn of_tensor(tensor: &Tensor, position: Position) -> Flow<Subscript> {
    let dims = &tensor.dims;
    Ok(match &*tensor.data {
        Data::F64(v) => {
            if tensor.is_range()
                && let [first, second, ..] = v[..]
                && let Some(subscript) = even(first, second - first, v.len(), dims)
            {
                return Ok(subscript);
            }
            Subscript::list(places(v.iter().copied(), position)?, dims.clone())
        }
        Data::F32(v) => Subscript::list(places(v.iter().map(|&x| x as f64), position)?, dims.clone()),
        Data::Bool(mask) => of_mask(mask, dims),
        Data::Char(text) if text[..] == b":"[..] => Subscript::colon(),
        Data::Char(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::I8(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::I16(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::I32(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::I64(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::U8(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::U16(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::U32(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::U64(v) => Subscript::list(whole_places(v.iter().map(|&x| x as i128), position)?, dims.clone()),
        Data::C64(_) | Data::C32(_) => {
            if tensor.is_empty() {
                return Err(invalid("<complex matrix>", position));
            }
            let z = tensor.data.c64_at(0);
            let sign = if z.im.is_sign_negative() { "-" } else { "+" };
            let text = format!("{}{sign}{}i", general(z.re), general(z.im.abs()));
            return Err(bad(&text, position, "subscripts must be real (forgot to initialize i or j?)"));
        }
    })
}

fn places(numbers: impl Iterator<Item = f64> + Clone, position: Position) -> Flow<Vec<usize>> {
    // A smaller number that is added to this one has no room for a fraction, and its integer is in the lowest bits.
    // This needs no branch, and is done for several numbers at once. Greater numbers are checked one by one.
    const FAR: f64 = (1u64 << 52) as f64;
    let mut odd = 0;
    let near = |x: f64| {
        let moved = x + FAR;
        odd |= u64::from(moved - FAR != x) | u64::from(x < 1.0) | u64::from(x >= FAR);
        moved.to_bits().wrapping_sub(FAR.to_bits() + 1) as usize
    };
    let places = numbers.clone().map(near).collect();
    if odd == 0 {
        return Ok(places);
    }
    numbers.map(|x| place(x).ok_or_else(|| invalid_number(x, position))).collect()
}

fn whole_places(numbers: impl Iterator<Item = i128>, position: Position) -> Flow<Vec<usize>> {
    numbers
        .map(|n| match usize::try_from(n - 1) {
            Ok(place) if n < i64::MAX as i128 => Ok(place),
            _ => Err(invalid(&n.to_string(), position)),
        })
        .collect()
}

/// Turns a mask into the list of its true places, in the mask's own direction, or as a column if it has none.
fn of_mask(mask: &[bool], dims: &Dims) -> Subscript {
    let places: Vec<usize> = mask.iter().enumerate().filter_map(|(i, &on)| on.then_some(i)).collect();
    let dims = mask_dims(dims, places.len());
    Subscript::list(places, dims)
}

/// Returns the shape of the list of a mask's `n` true places.
pub fn mask_dims(mask: &Dims, n: usize) -> Dims {
    if mask.is_scalar() && n == 0 { Dims::zero() } else { along(mask, n).unwrap_or_else(|| Dims::new(&[n, 1])) }
}

/// Returns dimensions with `n` elements along the single extent that is not 1; `None` if there is no such extent.
pub fn along(dims: &Dims, n: usize) -> Option<Dims> {
    let mut long = dims.iter().enumerate().filter(|&(_, &extent)| extent != 1).map(|(d, _)| d);
    match (long.next(), long.next()) {
        (Some(d), None) => Some(dims.with(d, n)),
        _ => None,
    }
}

/// Returns the shape of `array(index)`, for one subscript that names `n` places.
pub fn linear_dims(array: &Dims, index: &Subscript, n: usize) -> Dims {
    if index.is_colon() {
        return Dims::new(&[array.elements(), 1]);
    }
    // For two vectors, the indexed one determines the direction.
    match along(array, n) {
        Some(dims) if n != 1 && along(&index.dims, n).is_some() => dims,
        _ => index.dims.clone(),
    }
}

/// Returns the extents of `array` as `count` subscripts see them. The last one spans the remaining dimensions.
pub fn folded(array: &Dims, count: usize) -> SmallVec<[usize; 3]> {
    let mut extents: SmallVec<[usize; 3]> = (0..count).map(|d| array.extent(d)).collect();
    if let Some(last) = extents.last_mut() {
        let rest = (count..array.len()).map(|d| array.extent(d));
        *last = rest.fold(*last, usize::saturating_mul);
    }
    extents
}

/// Formats `(_,5,_)`: a subscript among the others.
fn place_in(text: &str, position: Position) -> String {
    let (before, after) = (position.index, position.count.saturating_sub(position.index + 1));
    let before = if before < 4 { "_,".repeat(before) } else { format!("...[x{before}]...") };
    let after = if after < 5 { ",_".repeat(after) } else { format!("...[x{after}]...") };
    format!("index ({before}{text}{after})")
}

fn bad(text: &str, position: Position, why: &str) -> Stop {
    ScriptError::with_id("Octave:invalid-index", format!("{}: {why}", place_in(text, position))).into()
}

fn invalid(text: &str, position: Position) -> Stop {
    bad(text, position, "subscripts must be either integers 1 to (2^63)-1 or logicals")
}

fn invalid_number(x: f64, position: Position) -> Stop {
    let mut text = general(x);
    let nearest = (x + 0.5).floor();
    if x.is_finite() && x != nearest && !text.contains('.') {
        // A number that would print as an integer is shown with its distance from one.
        let off = x - nearest;
        text.push_str(if off < 0.0 { "-" } else { "+" });
        text.push_str(&general(off.abs()));
    }
    invalid(&text, position)
}

/// Returns the error for the first element of a range that is no position.
fn invalid_range(first: f64, step: f64, len: usize, position: Position) -> Stop {
    let bad = (0..len).map(|i| first + step * i as f64).find(|&x| place(x).is_none());
    invalid_number(bad.unwrap_or(first), position)
}

/// Returns the error for a subscript beyond the array.
pub fn out_of_bound(extent: usize, position: Position, bound: usize, dims: &Dims) -> Stop {
    let place = place_in(&extent.to_string(), position);
    let message = format!("{place}: out of bound {bound} (dimensions are {dims})");
    ScriptError::with_id("Octave:index-out-of-bounds", message).into()
}

/// Formats a number with six significant digits, as C's `%g` does.
fn general(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf".into() } else { "-inf".into() };
    }
    number::text(x, Notation::General(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: Value, index: usize, count: usize) -> String {
        match resolve(&value, Position { index, count }) {
            Err(Stop::Error(error)) => error.message,
            _ => "no error".into(),
        }
    }

    #[test]
    fn numbers_that_are_no_positions_are_named_as_octave_names_them() {
        let why = "subscripts must be either integers 1 to (2^63)-1 or logicals";
        let cases = [
            (0.0, "0"),
            (-1.0, "-1"),
            (1.5, "1.5"),
            (-1.5, "-1.5"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (1e20, "1e+20"),
            (1.0000001, "1+1e-07"),
            (100_000.5, "100000-0.5"),
        ];
        for (x, text) in cases {
            assert_eq!(message(Value::Num(x), 0, 1), format!("index ({text}): {why}"), "{x}");
        }
        assert_eq!(message(Value::Num(0.0), 1, 3), format!("index (_,0,_): {why}"));
        assert_eq!(message(Value::Num(0.0), 0, 8), format!("index (0...[x7]...): {why}"));
        assert_eq!(message(Value::Num(0.0), 5, 7), format!("index (...[x5]...0,_): {why}"));
        assert_eq!(message(Value::cell(Dims::zero(), vec![]), 0, 1), format!("index (<cell>): {why}"));
        let int = Value::tensor(Tensor::scalar(Data::I32(vec![-5])));
        assert_eq!(message(int, 0, 1), format!("index (-5): {why}"));
        let z = Value::tensor_as_is(Tensor::scalar(Data::C64(vec![num_complex::Complex64::new(0.0, 1.0)])));
        assert_eq!(message(z, 0, 1), "index (0+1i): subscripts must be real (forgot to initialize i or j?)");
    }

    #[test]
    fn lists_of_numbers_are_positions_however_large_and_the_first_that_is_none_is_named() {
        let far = (1u64 << 53) as f64;
        let found =
            places([3.0, 1.0, far, far + 2.0, far / 2.0 - 1.0, far / 2.0].into_iter(), Position { index: 0, count: 1 });
        let far = 1 << 53;
        assert_eq!(found.ok(), Some(vec![2, 0, far - 1, far + 1, far / 2 - 2, far / 2 - 1]));
        for (bad, text) in [(0.0, "0"), (1.5, "1.5"), (-3.0, "-3"), (f64::NAN, "nan"), (f64::INFINITY, "inf")] {
            let told = message(Value::row(vec![2.0, 1.0, bad, 0.5]), 0, 1);
            assert!(told.starts_with(&format!("index ({text}):")), "{told}");
        }
    }

    #[test]
    fn even_lists_are_ranges() {
        assert_eq!(Subscript::list(vec![4, 2, 0], Dims::zero()).places, Places::Range { first: 4, step: -2, len: 3 });
        assert_eq!(Subscript::list(vec![1, 1], Dims::zero()).places, Places::List(vec![1, 1]));
        let s = Subscript::list(vec![3, 1, 2], Dims::zero());
        assert_eq!((s.extent, s.positions(9)), (4, vec![3, 1, 2]));
        assert_eq!(Subscript::colon().positions(3), [0, 1, 2]);
    }
}
