//! Sorts the elements of host arrays, and finds the distinct ones, with little memory beside input and output.
//!
//! In: elements of one class. Out: the elements in order, their former positions, and the distinct elements. Must hold:
//! sorting is stable in both directions; NaN comes last in ascending and first in descending order. Elements of one or
//! two bytes are counted and not compared. The positions of other elements take four bytes each while they are sorted,
//! unless there are more than `u32` can number.

use crate::builtins::reduce::field::Ordered;
use crate::builtins::reduce::lanes::Lanes;
use crate::builtins::reduce::statistics::order;
use crate::env::Env;
use crate::error::Flow;
use crate::value::Data;
use crate::value::blocks::BLOCK;
use crate::value::tensor::{each_data, map_data};
use std::cmp::Ordering;

/// Compares two elements in ascending or descending order: NaN comes last or first.
pub(super) fn ranked<T: Ordered>(a: T, b: T, descending: bool) -> Ordering {
    let upwards = match (a.no_number(), b.no_number()) {
        (false, false) => order(&a, &b),
        (a_none, b_none) => a_none.cmp(&b_none),
    };
    if descending { upwards.reverse() } else { upwards }
}

/// An element type with so few different values that they are counted.
trait Narrow: Copy {
    const COUNT: usize;
    /// Returns the element's number in ascending order.
    fn key(self) -> usize;
    /// Returns the element with this number.
    fn of_key(key: usize) -> Self;
}

macro_rules! narrow {
    ($($t:ty, $count:expr, $x:ident => $key:expr, $k:ident => $of:expr;)*) => {$(
        impl Narrow for $t {
            const COUNT: usize = $count;
            fn key(self) -> usize {
                let $x = self;
                $key
            }
            fn of_key($k: usize) -> $t {
                $of
            }
        }
    )*};
}
narrow! {
    bool, 2, x => usize::from(x), k => k == 1;
    u8, 1 << 8, x => usize::from(x), k => k as u8;
    i8, 1 << 8, x => (i16::from(x) + 128) as usize, k => (k as i16 - 128) as i8;
    u16, 1 << 16, x => usize::from(x), k => k as u16;
    i16, 1 << 16, x => (i32::from(x) + 32_768) as usize, k => (k as i32 - 32_768) as i16;
}

/// A position, in as few bytes as can hold it.
trait Place: Copy {
    fn of(place: usize) -> Self;
    fn at(self) -> usize;
}
impl Place for u32 {
    fn of(place: usize) -> u32 {
        place as u32
    }
    fn at(self) -> usize {
        self as usize
    }
}
impl Place for usize {
    fn of(place: usize) -> usize {
        place
    }
    fn at(self) -> usize {
        self
    }
}

/// Whether `len` elements with `count` different values are so many that counting them is less work than comparing.
fn is_worth_counting(len: usize, count: usize) -> bool {
    len >= count / 4
}

/// Runs `$counted` with `$v` bound to elements that can be counted, or `$compared` for others.
macro_rules! counted_or_compared {
    ($data:expr, $len:expr, $v:ident => $counted:expr, $compared:expr) => {
        match $data {
            Data::Bool($v) => Data::Bool($counted),
            Data::Char($v) if is_worth_counting($len, u8::COUNT) => Data::Char($counted),
            Data::U8($v) if is_worth_counting($len, u8::COUNT) => Data::U8($counted),
            Data::I8($v) if is_worth_counting($len, i8::COUNT) => Data::I8($counted),
            Data::U16($v) if is_worth_counting($len, u16::COUNT) => Data::U16($counted),
            Data::I16($v) if is_worth_counting($len, i16::COUNT) => Data::I16($counted),
            other => map_data!(other, $v => $compared),
        }
    };
}

/// Returns the elements with each lane in order.
///
/// # Errors
/// An interrupt, a deadline or the end of the session, between two lanes.
pub(super) fn sorted(env: &Env, data: &Data, lanes: Lanes, descending: bool) -> Flow<Data> {
    Ok(
        counted_or_compared!(data, lanes.len, v => counted(env, v, lanes, descending, None)?, values(env, v, lanes, descending)?),
    )
}

/// Does the same as [`sorted`], and returns each element's former position in its lane (from 1).
///
/// # Errors
/// As [`sorted`].
pub(super) fn sorted_with_places(env: &Env, data: &Data, lanes: Lanes, descending: bool) -> Flow<(Data, Vec<f64>)> {
    let mut places = vec![0.0; data.len()];
    let sorted = counted_or_compared!(
        data, lanes.len,
        v => counted(env, v, lanes, descending, Some(&mut places))?,
        match u32::try_from(lanes.len) {
            Ok(_) => compared::<_, u32>(env, v, lanes, descending, &mut places)?,
            Err(_) => compared::<_, usize>(env, v, lanes, descending, &mut places)?,
        }
    );
    Ok((sorted, places))
}

fn counted<T: Narrow>(
    env: &Env,
    v: &[T],
    lanes: Lanes,
    descending: bool,
    mut places: Option<&mut Vec<f64>>,
) -> Flow<Vec<T>> {
    let mut out = v.to_vec();
    let keys = || -> Box<dyn Iterator<Item = usize>> {
        if descending { Box::new((0..T::COUNT).rev()) } else { Box::new(0..T::COUNT) }
    };
    for lane in 0..lanes.count {
        env.check_halt()?;
        let mut counts = vec![0usize; T::COUNT];
        lanes.positions(lane).for_each(|at| counts[v[at].key()] += 1);
        if let Some(places) = places.as_mut() {
            let mut next = vec![0usize; T::COUNT];
            keys().fold(0, |sum, key| {
                next[key] = sum;
                sum + counts[key]
            });
            let start = lanes.start(lane);
            for (k, at) in lanes.positions(lane).enumerate() {
                let next = &mut next[v[at].key()];
                places[start + *next * lanes.stride] = k as f64 + 1.0;
                *next += 1;
            }
        }
        let mut positions = lanes.positions(lane);
        for key in keys() {
            positions.by_ref().take(counts[key]).for_each(|at| out[at] = T::of_key(key));
        }
    }
    Ok(out)
}

fn values<T: Ordered>(env: &Env, v: &[T], lanes: Lanes, descending: bool) -> Flow<Vec<T>> {
    let mut out = v.to_vec();
    let mut one = Vec::new();
    for lane in 0..lanes.count {
        env.check_halt()?;
        if lanes.stride == 1 {
            let start = lanes.start(lane);
            out[start..start + lanes.len].sort_by(|&a, &b| ranked(a, b, descending));
            continue;
        }
        one.clear();
        one.extend(lanes.positions(lane).map(|at| v[at]));
        one.sort_by(|&a, &b| ranked(a, b, descending));
        lanes.positions(lane).zip(&one).for_each(|(at, x)| out[at] = *x);
    }
    Ok(out)
}

fn compared<T: Ordered, P: Place>(
    env: &Env,
    v: &[T],
    lanes: Lanes,
    descending: bool,
    places: &mut [f64],
) -> Flow<Vec<T>> {
    let mut out = v.to_vec();
    let mut order: Vec<P> = Vec::new();
    for lane in 0..lanes.count {
        env.check_halt()?;
        let element = |place: &P| v[lanes.start(lane) + place.at() * lanes.stride];
        order.clear();
        order.extend((0..lanes.len).map(P::of));
        order.sort_by(|a, b| ranked(element(a), element(b), descending));
        for (at, place) in lanes.positions(lane).zip(&order) {
            out[at] = element(place);
            places[at] = place.at() as f64 + 1.0;
        }
    }
    Ok(out)
}

/// Options for finding distinct items.
#[derive(Clone, Copy)]
pub(super) struct Distinct {
    /// They are listed in the order of their first occurrence, and not in ascending order.
    pub stable: bool,
    /// For equal items, the position of the last one is given, and not of the first.
    pub last: bool,
    /// The index of each item's value among the distinct ones is wanted.
    pub which: bool,
}

/// The positions of the distinct ones among `n` items and, if wanted, the index (from 1) of each item among them.
pub(super) struct Found {
    pub places: Vec<usize>,
    pub which: Vec<f64>,
}

/// Finds the distinct items among `n`.
pub(super) fn distinct(
    n: usize,
    asked: Distinct,
    compare: impl Fn(usize, usize) -> Ordering,
    same: impl Fn(usize, usize) -> bool,
) -> Found {
    match u32::try_from(n) {
        Ok(_) => distinct_at::<u32>(n, asked, compare, same),
        Err(_) => distinct_at::<usize>(n, asked, compare, same),
    }
}

fn distinct_at<P: Place>(
    n: usize,
    asked: Distinct,
    compare: impl Fn(usize, usize) -> Ordering,
    same: impl Fn(usize, usize) -> bool,
) -> Found {
    let mut order: Vec<P> = (0..n).map(P::of).collect();
    order.sort_by(|a, b| compare(a.at(), b.at()));
    // The beginnings of the groups of equal items in the order.
    let mut starts: Vec<P> = Vec::new();
    for k in 0..n {
        let begins = starts.last().is_none_or(|start| !same(order[start.at()].at(), order[k].at()));
        if begins {
            starts.push(P::of(k));
        }
    }
    let mut groups: Vec<P> = (0..starts.len()).map(P::of).collect();
    let start = |group: usize| starts[group].at();
    let end = |group: usize| starts.get(group + 1).map_or(n, |start| start.at());
    if asked.stable {
        groups.sort_by_key(|group| order[start(group.at())].at());
    }
    let mut which = vec![0.0; if asked.which { n } else { 0 }];
    if asked.which {
        for (number, group) in groups.iter().enumerate() {
            order[start(group.at())..end(group.at())].iter().for_each(|at| which[at.at()] = number as f64 + 1.0);
        }
    }
    let named = |group: &P| order[if asked.last { end(group.at()) - 1 } else { start(group.at()) }].at();
    Found { places: groups.iter().map(named).collect(), which }
}

/// Finds the distinct elements, by counting if there are few different ones.
///
/// # Errors
/// Too little memory for the positions; if elements are counted, the errors of [`sorted`].
pub(super) fn distinct_elements(env: &Env, data: &Data, asked: Distinct) -> Flow<Found> {
    let n = data.len();
    Ok(match data {
        Data::Bool(v) => distinct_counted(env, v, asked)?,
        Data::Char(v) | Data::U8(v) if is_worth_counting(n, u8::COUNT) => distinct_counted(env, v, asked)?,
        Data::I8(v) if is_worth_counting(n, i8::COUNT) => distinct_counted(env, v, asked)?,
        Data::U16(v) if is_worth_counting(n, u16::COUNT) => distinct_counted(env, v, asked)?,
        Data::I16(v) if is_worth_counting(n, i16::COUNT) => distinct_counted(env, v, asked)?,
        other => {
            // This is the memory for the order of positions and, if all elements differ, for as many groups and their
            // positions.
            env.check_host(&[n], if asked.which { 32 } else { 24 })?;
            each_data!(other, v => {
                distinct(n, asked, |a, b| ranked(v[a], v[b], false), |a, b| v[a] == v[b])
            })
        }
    })
}

fn distinct_counted<T: Narrow>(env: &Env, v: &[T], asked: Distinct) -> Flow<Found> {
    // The first and the last position of each value.
    let mut ends: Vec<Option<(usize, usize)>> = vec![None; T::COUNT];
    for (block, elements) in v.chunks(BLOCK).enumerate() {
        env.check_halt()?;
        for (k, x) in elements.iter().enumerate() {
            let at = block * BLOCK + k;
            let ends = &mut ends[x.key()];
            *ends = Some((ends.map_or(at, |ends| ends.0), at));
        }
    }
    let mut there: Vec<usize> = (0..T::COUNT).filter(|&key| ends[key].is_some()).collect();
    let end = |key: usize| ends[key].unwrap_or_default();
    if asked.stable {
        there.sort_by_key(|&key| end(key).0);
    }
    let mut which = Vec::new();
    if asked.which {
        let mut numbers = vec![0.0; T::COUNT];
        there.iter().enumerate().for_each(|(number, &key)| numbers[key] = number as f64 + 1.0);
        which = v.iter().map(|x| numbers[x.key()]).collect();
    }
    let places = there.into_iter().map(|key| if asked.last { end(key).1 } else { end(key).0 }).collect();
    Ok(Found { places, which })
}
