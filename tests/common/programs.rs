//! Random array programs: decoded from random numbers, evaluated in plain f64 as they grow, and run through the public
//! API. Any list of numbers is a valid program, so that a failing program can be shrunk by leaving out numbers. Must
//! hold: comparisons, positions and the like have operands that are small integers, because every device computes these
//! exactly.
#![allow(dead_code)]

#[path = "../../src/dice.rs"]
mod dice;

use super::plain::{Class, Plain, select};
pub(crate) use dice::Dice;
use tidemill::{Array, DType, Element, HostAny, Result, Session, SliceArg, cat, step};

type Parts = Vec<(usize, isize, usize)>;

/// One op. Its operands are the numbers of earlier values.
#[derive(Clone, Debug)]
pub enum Op {
    Source(Vec<usize>, Vec<f64>),
    Full(Vec<usize>, f64),
    Unary(&'static str, usize),
    Binary(&'static str, usize, usize),
    Number(&'static str, usize, f64),
    Compare(&'static str, usize, usize),
    Select(usize, usize, usize),
    Not(usize),
    ToFloat(usize),
    Slice(usize, Parts),
    Permute(usize, Vec<usize>),
    Reshape(usize, Vec<usize>),
    Flip(usize, usize),
    Repmat(usize, Vec<usize>),
    CircShift(usize, Vec<i64>),
    Cat(usize, usize, usize),
    Triangle(usize, bool, i64),
    Reduce(&'static str, usize, Vec<usize>),
    Cumsum(usize, usize),
    Assign(usize, Parts, usize),
    AssignNumber(usize, Parts, f64),
    Take(usize, Vec<usize>),
    TakeDim(usize, usize, Vec<usize>),
    Sort(usize, usize, bool),
    Positions(usize, usize, bool),
    Matmul(usize, usize),
}

/// A program, its expected values, and what it does with its handles.
#[derive(Clone)]
pub struct Program {
    pub ops: Vec<Op>,
    pub plain: Vec<Plain>,
    /// The number of ops that are recorded before the first gathers.
    pub split: usize,
    /// The values that are gathered at the split, all at once.
    pub first: Vec<usize>,
    /// The values that are gathered at the end. Some of them were gathered at the split, too.
    pub second: Vec<usize>,
    /// For each value, whether its handle is dropped right after the last use, and not only at the end.
    pub drop_early: Vec<bool>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (op, plain)) in self.ops.iter().zip(&self.plain).enumerate() {
            if i == self.split {
                writeln!(f, "gather {:?}", self.first)?;
            }
            let early = if self.drop_early[i] { ", dropped after its last use" } else { "" };
            writeln!(f, "%{i} = {op:?}  {:?} {:?} error {:e}{early}", plain.class, plain.dims, plain.error)?;
        }
        writeln!(f, "gather {:?}", self.second)
    }
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

const ELEMENTS_MAX: usize = 8000;
const VALUE_MAX: f64 = 1e4;

/// Decodes a program: `seed` gives its data and handles, and each of `steps` an op.
pub fn decode(seed: u64, steps: &[u64]) -> Program {
    let mut dice = Dice::new(seed);
    let (mut ops, mut plain) = (Vec::new(), Vec::new());
    let large = dice.one_in(3);
    let extent = |dice: &mut Dice| match dice.below(16) {
        0 => 0,
        1 | 2 if large => 1030,
        3 | 4 if large => 300,
        5 | 6 if large => 33,
        n => n % 6 + 1,
    };
    let rank = 2 + dice.below(2);
    let base: Vec<usize> = (0..rank).map(|_| extent(&mut dice)).collect();
    let base = if base.iter().product::<usize>() > ELEMENTS_MAX { vec![70, 6] } else { base };
    for i in 0..2 + dice.below(3) {
        let dims: Vec<usize> = base.iter().map(|&n| if i > 0 && dice.one_in(4) { 1 } else { n }).collect();
        let data: Vec<f64> = (0..dims.iter().product()).map(|_| dice.below(9) as f64 - 4.0).collect();
        let exact = Plain::new(dims, data, Class::Float, 0.0);
        let full = exact.len() > 0 && dice.one_in(5);
        let value = exact.data.first().copied().unwrap_or(0.0);
        ops.push(if full {
            Op::Full(exact.dims.clone(), value)
        } else {
            Op::Source(exact.dims.clone(), exact.data.clone())
        });
        plain.push(if full { exact.map(0.0, true, |_| value) } else { exact });
    }
    for &number in steps {
        let (op, value) = propose(&mut Dice::new(number), &plain);
        let error = 1e-3 * value.largest().max(1.0);
        if value.len() <= ELEMENTS_MAX && value.largest() <= VALUE_MAX && value.error <= error {
            ops.push(op);
            plain.push(value);
        }
    }
    let n = ops.len();
    let split = 1 + dice.below(n);
    let mut some =
        |of: usize| -> Vec<usize> { (0..1 + dice.below(4)).map(|_| of - 1 - dice.below(of.min(12))).collect() };
    let (first, mut second) = (some(split), some(n));
    second.push(n - 1);
    let drop_early = (0..n).map(|_| dice.one_in(2)).collect();
    Program { ops, plain, split, first, second, drop_early }
}

/// Proposes an op on the values so far. Returns it and its value.
fn propose(dice: &mut Dice, plain: &[Plain]) -> (Op, Plain) {
    let recent = |dice: &mut Dice| match dice.one_in(2) {
        true => plain.len() - 1 - dice.below(plain.len().min(4)),
        false => dice.below(plain.len()),
    };
    let kind = dice.below(20);
    if kind < 9 {
        let a = recent(dice);
        return views_and_moves(dice, plain, a);
    }
    // Finds a value of floats that `good` accepts, `from` or the next one after it.
    let from = recent(dice);
    let float = |from: usize, good: &dyn Fn(&Plain) -> bool| {
        (0..plain.len()).map(|i| (from + i) % plain.len()).find(|&i| plain[i].class == Class::Float && good(&plain[i]))
    };
    let a = float(from, &|_| true).expect("sources are floats");
    if plain[from].class != Class::Float && dice.one_in(2) {
        return flags(dice, from, &plain[from]);
    }
    match kind {
        9..=11 => unary(dice, a, &plain[a]),
        12 | 13 => {
            let b = float(dice.below(plain.len()), &|b| plain[a].expanded(b).is_some()).unwrap_or(a);
            let name = dice.of(&["add", "sub", "mul", "min", "max"]);
            (Op::Binary(name, a, b), binary(name, &plain[a], &plain[b]))
        }
        14 => {
            let name = dice.of(&["add", "sub", "mul", "min", "max"]);
            let number = dice.below(7) as f64 - 3.0;
            let other = Plain::new(vec![1, 1], vec![number], Class::Float, 0.0);
            (Op::Number(name, a, number), binary(name, &plain[a], &other))
        }
        15 => {
            let a = float(from, &Plain::exact).expect("sources are exact");
            let fits = |b: &Plain| b.exact() && plain[a].expanded(b).is_some();
            let b = float(dice.below(plain.len()), &fits).unwrap_or(a);
            let name = dice.of(&["lt", "le", "gt", "ge", "eq", "ne"]);
            (Op::Compare(name, a, b), compare(name, &plain[a], &plain[b]))
        }
        16 => select_some(dice, plain, a).unwrap_or_else(|| unary(dice, a, &plain[a])),
        17 | 18 => reduce(dice, a, &plain[a]),
        _ => {
            let matrix = |p: &Plain| p.dims.len() == 2;
            let a = float(from, &matrix).unwrap_or(a);
            match float(dice.below(plain.len()), &|b| matrix(b) && matrix(&plain[a]) && b.dim(0) == plain[a].dim(1)) {
                Some(b) => (Op::Matmul(a, b), plain[a].matmul(&plain[b])),
                None => reduce(dice, a, &plain[a]),
            }
        }
    }
}

fn unary(dice: &mut Dice, a: usize, x: &Plain) -> (Op, Plain) {
    let names = ["neg", "abs", "square", "sqrt_abs", "exp_clamped", "sin", "tanh", "clamp"];
    let name = dice.of(&names);
    let value = match name {
        "neg" => x.map(1.0, true, |v| -v),
        "abs" => x.map(1.0, true, f64::abs),
        "square" => x.map(2.0 * x.largest() + x.error, true, |v| v * v),
        "sqrt_abs" => x.sqrt_abs(),
        "exp_clamped" => x.map(8.0, false, |v| v.clamp(-2.0, 2.0).exp()),
        "sin" => x.map(1.0, false, f64::sin),
        "tanh" => x.map(1.0, false, f64::tanh),
        _ => x.map(1.0, true, |v| v.clamp(-4.0, 4.0)),
    };
    (Op::Unary(name, a), value)
}

fn binary(name: &str, a: &Plain, b: &Plain) -> Plain {
    match name {
        "add" => a.zip(b, false, |x, y| x + y),
        "sub" => a.zip(b, false, |x, y| x - y),
        "mul" => a.zip(b, true, |x, y| x * y),
        "min" => a.zip(b, false, f64::min),
        _ => a.zip(b, false, f64::max),
    }
}

fn compare(name: &str, a: &Plain, b: &Plain) -> Plain {
    match name {
        "lt" => a.compare(b, |x, y| x < y),
        "le" => a.compare(b, |x, y| x <= y),
        "gt" => a.compare(b, |x, y| x > y),
        "ge" => a.compare(b, |x, y| x >= y),
        "eq" => a.compare(b, |x, y| x == y),
        _ => a.compare(b, |x, y| x != y),
    }
}

fn select_some(dice: &mut Dice, plain: &[Plain], yes: usize) -> Option<(Op, Plain)> {
    let mask =
        (0..plain.len()).rev().find(|&m| plain[m].class == Class::Mask && plain[m].expanded(&plain[yes]).is_some())?;
    let dims = plain[mask].expanded(&plain[yes])?;
    let start = dice.below(plain.len());
    let shape = Plain::new(dims.clone(), vec![0.0; dims.iter().product()], Class::Float, 0.0);
    let no = (0..plain.len())
        .map(|i| (start + i) % plain.len())
        .find(|&i| plain[i].class == Class::Float && shape.expanded(&plain[i]).is_some())?;
    let dims = shape.expanded(&plain[no])?;
    Some((Op::Select(mask, yes, no), select(&dims, &plain[mask], &plain[yes], &plain[no])))
}

/// An op on bools or positions.
fn flags(dice: &mut Dice, a: usize, x: &Plain) -> (Op, Plain) {
    let over = dims_of(dice, x);
    match dice.below(4) {
        0 if x.class == Class::Mask => {
            let data = x.data.iter().map(|&v| 1.0 - v).collect();
            (Op::Not(a), Plain::new(x.dims.clone(), data, Class::Mask, 0.0))
        }
        1 => {
            let value = x.reduce(&over, Class::Mask, |l| l.iter().any(|&v| v != 0.0) as u8 as f64);
            (Op::Reduce("any", a, over), value)
        }
        2 => {
            let value = x.reduce(&over, Class::Position, |l| l.iter().filter(|&&v| v != 0.0).count() as f64);
            (Op::Reduce("count", a, over), value)
        }
        _ => (Op::ToFloat(a), Plain { class: Class::Float, ..x.clone() }),
    }
}

fn dims_of(dice: &mut Dice, x: &Plain) -> Vec<usize> {
    let all: Vec<usize> = (0..x.dims.len()).collect();
    match dice.below(3) {
        0 => all,
        1 => all.into_iter().filter(|_| dice.one_in(2)).collect(),
        _ => vec![dice.below(x.dims.len())],
    }
}

fn reduce(dice: &mut Dice, a: usize, x: &Plain) -> (Op, Plain) {
    let over = dims_of(dice, x);
    let nothing = over.iter().any(|&d| x.dim(d) == 0);
    let first = |l: &[f64]| {
        let most = l.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        l.iter().position(|&v| v == most).unwrap_or(0) as f64
    };
    let (name, value) = match dice.below(8) {
        1 if !nothing => ("mean", x.mean(&over)),
        2 if !nothing => {
            ("max", x.reduce(&over, Class::Float, |l| l.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
        }
        3 if !nothing => ("min", x.reduce(&over, Class::Float, |l| l.iter().copied().fold(f64::INFINITY, f64::min))),
        4 if !nothing => ("var", x.var(&over)),
        5 if !nothing && x.exact() => ("argmax", x.reduce(&over, Class::Position, first)),
        6 if x.exact() => ("any", x.reduce(&over, Class::Mask, |l| l.iter().any(|&v| v != 0.0) as u8 as f64)),
        7 => {
            let dim = dice.below(x.dims.len());
            return (Op::Cumsum(a, dim), x.cumsum(dim));
        }
        _ => ("sum", x.sum(&over)),
    };
    (Op::Reduce(name, a, over), value)
}

/// A part of each dimension, perhaps with a step or reversed.
fn parts_of(dice: &mut Dice, x: &Plain) -> Parts {
    x.dims
        .iter()
        .map(|&n| match dice.below(4) {
            0 => (0, 1, n),
            _ if n == 0 => (0, 1, 0),
            1 => (dice.below(n), 1, 1),
            _ => {
                let low = dice.below(n);
                let high = low + 1 + dice.below(n - low);
                let by = 1 + dice.below(3);
                let len = (high - low).div_ceil(by);
                if dice.one_in(2) { (low, by as isize, len) } else { (high - 1, -(by as isize), len) }
            }
        })
        .collect()
}

fn views_and_moves(dice: &mut Dice, plain: &[Plain], a: usize) -> (Op, Plain) {
    let x = &plain[a];
    let (rank, dim) = (x.dims.len(), dice.below(x.dims.len()));
    let n = x.dims[dim];
    match dice.below(14) {
        0 | 1 => {
            let parts = parts_of(dice, x);
            (Op::Slice(a, parts.clone()), x.slice(&parts))
        }
        2 | 3 => {
            let mut perm: Vec<usize> = (0..rank).collect();
            (0..rank).for_each(|i| perm.swap(i, i + dice.below(rank - i)));
            (Op::Permute(a, perm.clone()), x.permute(&perm))
        }
        4 | 5 => {
            let of = x.len().max(1);
            let divisors: Vec<usize> = (1..=of).filter(|d| of.is_multiple_of(*d)).collect();
            let first = dice.of(&divisors);
            let second = dice.of(&divisors.into_iter().filter(|d| (of / first).is_multiple_of(*d)).collect::<Vec<_>>());
            let dims = if x.len() == 0 { vec![0, 1 + dice.below(4)] } else { vec![first, second, of / first / second] };
            (Op::Reshape(a, dims.clone()), x.reshape(&dims))
        }
        6 => (Op::Flip(a, dim), x.flip(dim)),
        7 => {
            let times: Vec<usize> = (0..rank).map(|_| if x.len() > 400 { 1 } else { 1 + dice.below(3) }).collect();
            (Op::Repmat(a, times.clone()), x.repmat(&times))
        }
        8 => {
            let by: Vec<i64> = (0..rank).map(|_| dice.below(9) as i64 - 4).collect();
            (Op::CircShift(a, by.clone()), x.circshift(&by))
        }
        9 => {
            let fits = |b: &Plain| b.class == x.class && (0..3).all(|d| d == dim || b.dim(d) == x.dim(d));
            let from = dice.below(plain.len());
            let b = (0..plain.len()).map(|i| (from + i) % plain.len()).find(|&b| fits(&plain[b])).unwrap_or(a);
            (Op::Cat(a, b, dim), x.cat(&plain[b], dim))
        }
        10 => {
            let (upper, k) = (dice.one_in(2), dice.below(5) as i64 - 2);
            (Op::Triangle(a, upper, k), x.triangle(upper, k))
        }
        11 => {
            let parts = parts_of(dice, x);
            let part = x.slice(&parts);
            let from = dice.below(plain.len());
            let fits = |b: &Plain| b.class == x.class && (0..4).all(|d| b.dim(d) == part.dim(d) || b.dim(d) == 1);
            let b = (0..plain.len()).map(|i| (from + i) % plain.len()).find(|&b| fits(&plain[b]));
            match b {
                Some(b) if dice.one_in(2) => (Op::Assign(a, parts.clone(), b), x.assign(&parts, &plain[b])),
                _ => {
                    let value = Plain::new(vec![1, 1], vec![1.0], Class::Float, 0.0);
                    (Op::AssignNumber(a, parts.clone(), 1.0), x.assign(&parts, &value))
                }
            }
        }
        12 if n > 0 => {
            let index: Vec<usize> = (0..1 + dice.below(8)).map(|_| dice.below(n)).collect();
            if x.len() > 0 && dice.one_in(2) {
                let index: Vec<usize> = index.iter().map(|_| dice.below(x.len())).collect();
                return (Op::Take(a, index.clone()), x.take(&[index.len(), 1], &index));
            }
            (Op::TakeDim(a, dim, index.clone()), x.take_dim(dim, &index))
        }
        _ => {
            let descending = dice.one_in(3);
            let (values, positions) = x.sort(dim, descending);
            if x.exact() && dice.one_in(2) {
                return (Op::Positions(a, dim, descending), positions);
            }
            (Op::Sort(a, dim, descending), values)
        }
    }
}

fn arguments(parts: &Parts) -> Vec<SliceArg> {
    let one = |&(start, by, len): &(usize, isize, usize)| {
        let far = (len.max(1) - 1) * by.unsigned_abs();
        match by {
            _ if len == 0 => (start..start).into(),
            1 => (start..start + len).into(),
            2.. => step(start..start + far + 1, by as i64),
            _ => step(start - far..start + 1, by as i64),
        }
    };
    parts.iter().map(one).collect()
}

fn index<T: Element>(s: &Session, index: &[usize], f: impl Fn(usize) -> T) -> Result<Array> {
    s.from_vec(index.iter().map(|&i| f(i)).collect::<Vec<T>>(), [index.len(), 1])
}

/// Records one op.
fn record(s: &Session, op: &Op, values: &[Option<Array>]) -> Result<Array> {
    let v = |i: &usize| values[*i].as_ref().expect("a handle that is used is kept");
    Ok(match op {
        Op::Source(dims, data) => s.from_vec(data.iter().map(|&x| x as f32).collect::<Vec<f32>>(), dims.clone())?,
        Op::Full(dims, value) => s.full(*value as f32, dims.clone()),
        Op::Unary(name, a) => match *name {
            "neg" => -v(a),
            "abs" => v(a).abs(),
            "square" => v(a).square(),
            "sqrt_abs" => v(a).abs().sqrt(),
            "exp_clamped" => v(a).clamp(-2.0, 2.0).exp(),
            "sin" => v(a).sin(),
            "tanh" => v(a).tanh(),
            _ => v(a).clamp(-4.0, 4.0),
        },
        Op::Binary(name, a, b) => match *name {
            "add" => v(a) + v(b),
            "sub" => v(a) - v(b),
            "mul" => v(a) * v(b),
            "min" => v(a).min(v(b)),
            _ => v(a).max(v(b)),
        },
        Op::Number(name, a, n) => match *name {
            "add" => v(a) + *n,
            "sub" => v(a) - *n,
            "mul" => v(a) * *n,
            "min" => v(a).min(*n),
            _ => v(a).max(*n),
        },
        Op::Compare(name, a, b) => match *name {
            "lt" => v(a).lt(v(b)),
            "le" => v(a).le(v(b)),
            "gt" => v(a).gt(v(b)),
            "ge" => v(a).ge(v(b)),
            "eq" => v(a).eq_to(v(b)),
            _ => v(a).ne_to(v(b)),
        },
        Op::Select(mask, yes, no) => v(mask).select(v(yes), v(no)),
        Op::Not(a) => !v(a),
        Op::ToFloat(a) => v(a).cast::<f32>(),
        Op::Slice(a, parts) => v(a).slice(arguments(parts).as_slice()),
        Op::Permute(a, perm) => v(a).permute(perm),
        Op::Reshape(a, dims) => v(a).reshape(dims.clone()),
        Op::Flip(a, dim) => v(a).flip(*dim),
        Op::Repmat(a, times) => v(a).repmat(times),
        Op::CircShift(a, by) => v(a).circshift(by),
        Op::Cat(a, b, dim) => cat(*dim, &[v(a), v(b)])?,
        Op::Triangle(a, true, k) => v(a).triu(*k),
        Op::Triangle(a, false, k) => v(a).tril(*k),
        Op::Reduce(name, a, over) => match *name {
            "sum" => v(a).sum(over.as_slice()),
            "mean" => v(a).mean(over.as_slice()),
            "max" => v(a).max_over(over.as_slice()),
            "min" => v(a).min_over(over.as_slice()),
            "var" => v(a).var(over.as_slice()),
            "argmax" => v(a).argmax(over.as_slice()),
            "count" => v(a).count_nonzero(over.as_slice()),
            _ => v(a).any(over.as_slice()),
        },
        Op::Cumsum(a, dim) => v(a).cumsum(*dim),
        Op::Assign(a, parts, value) => v(a).assign(arguments(parts).as_slice(), v(value)),
        Op::AssignNumber(a, parts, value) => v(a).assign(arguments(parts).as_slice(), *value),
        Op::Take(a, at) => v(a).take(&index(s, at, |i| i as i32)?),
        Op::TakeDim(a, dim, at) => v(a).take_dim(*dim, &index(s, at, |i| i as u32)?),
        Op::Sort(a, dim, true) => v(a).sort_descending(*dim).0,
        Op::Sort(a, dim, false) => v(a).sort(*dim).0,
        Op::Positions(a, dim, true) => v(a).sort_descending(*dim).1,
        Op::Positions(a, dim, false) => v(a).sort(*dim).1,
        Op::Matmul(a, b) => v(a).matmul(v(b)),
    })
}

fn operands(op: &Op) -> Vec<usize> {
    match op {
        Op::Source(..) | Op::Full(..) => vec![],
        Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Cat(a, b, _) | Op::Assign(a, _, b) | Op::Matmul(a, b) => {
            vec![*a, *b]
        }
        Op::Select(a, b, c) => vec![*a, *b, *c],
        Op::Unary(_, a) | Op::Number(_, a, _) | Op::Not(a) | Op::ToFloat(a) | Op::Slice(a, _) => vec![*a],
        Op::Permute(a, _) | Op::Reshape(a, _) | Op::Flip(a, _) | Op::Repmat(a, _) | Op::CircShift(a, _) => vec![*a],
        Op::Triangle(a, ..) | Op::Reduce(_, a, _) | Op::Cumsum(a, _) | Op::AssignNumber(a, ..) => vec![*a],
        Op::Take(a, _) | Op::TakeDim(a, ..) | Op::Sort(a, ..) | Op::Positions(a, ..) => vec![*a],
    }
}

/// Compares a gathered value with the expected one. Returns a description of the first difference.
fn wrong(number: usize, plain: &Plain, got: &HostAny) -> Option<String> {
    let dtype = match plain.class {
        Class::Float => DType::F32,
        Class::Mask => DType::Bool,
        Class::Position => DType::U32,
    };
    if got.dtype() != dtype || got.shape().dims() != plain.dims {
        return Some(format!("%{number} is {} {}, expected {dtype} {:?}", got.dtype(), got.shape(), plain.dims));
    }
    let data = got.to_f64();
    let i = data.iter().zip(&plain.data).position(|(g, e)| !(g == e || (g - e).abs() <= plain.error))?;
    Some(format!(
        "%{number}: element {i} is {}, expected {} +- {:e}\n got {data:?}\nwant {:?}",
        data[i], plain.data[i], plain.error, plain.data
    ))
}

/// A disturbance of a program's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    None,
    /// The first gathers are polled once and dropped.
    Cancel,
    /// Some values are recorded with a check, and the check of the value with this number (modulo the number of values)
    /// fails.
    Poison(usize),
}

/// The possible outcome of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fine,
    /// The value depends on the one that fails, but perhaps on its shape only.
    Unsure,
    Fails,
}

/// The outcomes of a program's values, if the check of one fails.
fn fates(program: &Program, poisoned: Option<usize>) -> Vec<Fate> {
    let mut fates = vec![Fate::Fine; program.ops.len()];
    for (i, op) in program.ops.iter().enumerate() {
        let data = |a: usize| fates[a] == Fate::Fails && program.plain[a].len() > 0 && program.plain[i].len() > 0;
        let certain = match op {
            Op::Positions(..) => false,
            Op::Reduce(name, a, _) => data(*a) && ["sum", "mean", "max", "min", "any"].contains(name),
            Op::Assign(a, parts, b) => data(*a) || (data(*b) && parts.iter().all(|part| part.2 > 0)),
            op => operands(op).into_iter().any(data),
        };
        fates[i] = match certain || Some(i) == poisoned {
            true => Fate::Fails,
            false if operands(op).into_iter().any(|a| fates[a] != Fate::Fine) => Fate::Unsure,
            false => Fate::Fine,
        };
    }
    fates
}

/// Adds a check to a value, which fails at the last element if `fails`.
fn checked(s: &Session, plain: &Plain, value: Array, fails: bool) -> Result<Array> {
    if !fails {
        return Ok(value.ensure(&value.ge(-1e9), "no check should fail"));
    }
    let holds: Vec<bool> = (0..plain.len()).map(|i| i + 1 < plain.len()).collect();
    Ok(value.ensure(&s.from_vec(holds, plain.dims.clone())?, "this check should fail"))
}

/// Runs a program and compares all gathered values.
pub async fn run(s: &Session, program: &Program, twist: Twist) -> Result<(), String> {
    let n = program.ops.len();
    let mut last_use: Vec<usize> = (0..n).collect();
    for (i, op) in program.ops.iter().enumerate() {
        operands(op).into_iter().for_each(|a| last_use[a] = i);
    }
    program.first.iter().for_each(|&a| last_use[a] = last_use[a].max(program.split));
    program.second.iter().for_each(|&a| last_use[a] = n);
    let poisoned = match twist {
        Twist::Poison(i) => Some(i % n).filter(|&i| program.plain[i].len() > 0),
        _ => None,
    };
    let fates = fates(program, poisoned);
    let mut values: Vec<Option<Array>> = Vec::new();
    for (i, op) in program.ops.iter().enumerate() {
        if i == program.split {
            gather(&values, &program.first, &program.plain, &fates, twist).await?;
        }
        let mut value = record(s, op, &values).map_err(|e| format!("%{i}: {e}"))?;
        if matches!(twist, Twist::Poison(_)) && (poisoned == Some(i) || i % 3 == 0) {
            value = checked(s, &program.plain[i], value, poisoned == Some(i)).map_err(|e| format!("%{i}: {e}"))?;
        }
        values.push(Some(value));
        for a in (0..=i).filter(|&a| program.drop_early[a] && last_use[a] <= i) {
            values[a] = None;
        }
    }
    gather(&values, &program.second, &program.plain, &fates, Twist::None).await
}

async fn gather(
    values: &[Option<Array>],
    which: &[usize],
    plain: &[Plain],
    fates: &[Fate],
    twist: Twist,
) -> Result<(), String> {
    let array = |i: usize| values[i].as_ref().expect("what is gathered is kept");
    let mut all = futures::future::join_all(which.iter().map(|&i| array(i).gather_any()));
    if twist == Twist::Cancel {
        let _ = futures::poll!(&mut all);
        return Ok(());
    }
    for (&i, got) in which.iter().zip(all.await) {
        let got = match got {
            Err(e) if fates[i] != Fate::Fine && e.message() == "this check should fail" => continue,
            Ok(_) if fates[i] == Fate::Fails => {
                return Err(format!("%{i} depends on a check that fails, and does not"));
            }
            got => got.map_err(|e| format!("%{i}: {e}"))?,
        };
        if let Some(wrong) = wrong(i, &plain[i], &got) {
            return Err(wrong);
        }
    }
    Ok(())
}
