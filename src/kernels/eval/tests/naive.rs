//! A reference evaluator: loops over scalars, one element at a time, in the order of the indices.

use super::build::Build;
use crate::graph::{DType, Scalar};
use crate::kernels::eval::{HostArg, element};
use crate::kernels::ir::*;

struct Naive<'a> {
    build: &'a Build,
    memory: Vec<Vec<u64>>,
    faults: Vec<u32>,
    flat: u32,
    outer: u32,
    inner: u32,
    values: Vec<Option<Scalar>>,
    /// The components of each fold; empty before it is computed.
    folded: Vec<Vec<Scalar>>,
}

/// Runs a kernel; returns operand memory and fault words.
pub fn run(build: &Build) -> (Vec<Vec<u64>>, Vec<u32>) {
    let insts = build.kernel.insts.len();
    let mut naive = Naive {
        build,
        memory: build.memory.clone(),
        faults: vec![0; build.faults],
        flat: 0,
        outer: 0,
        inner: 0,
        values: vec![None; insts],
        folded: vec![Vec::new(); insts],
    };
    match build.geometry {
        Geometry::Map { elements } => {
            for flat in 0..elements {
                (naive.flat, naive.outer) = (flat, flat);
                naive.stores(|_| true);
            }
        }
        Geometry::Reduce { outer, inner } => {
            for o in 0..outer {
                naive.reduce_line(o, inner);
            }
        }
        Geometry::Line { .. } => panic!("the host holds no lines"),
        Geometry::Scan { outer, inner, reverse } => {
            for o in 0..outer {
                naive.folded.iter_mut().for_each(Vec::clear);
                for i in 0..inner {
                    (naive.outer, naive.inner) = (o, if reverse { inner - 1 - i } else { i });
                    naive.stores(|_| true);
                }
            }
        }
    }
    (naive.memory, naive.faults)
}

impl Naive<'_> {
    fn stores(&mut self, which: impl Fn(Level) -> bool) {
        self.values.fill(None);
        let build = self.build;
        let stores = || build.kernel.stores.iter().filter(|s| which(build.kernel.inst(s.value).level));
        for (at, inst) in build.kernel.insts.iter().enumerate() {
            if matches!(inst.op, InstOp::Require { .. }) && which(inst.level) {
                self.value(Val(at as u32));
            }
        }
        // All values exist before the first is stored.
        for store in stores() {
            self.value(store.value);
        }
        for store in stores() {
            let value = self.value(store.value);
            let index = store.index.map_or(self.outer, |v| self.value(v).bits() as u32);
            if store.guard.is_none_or(|g| self.value(g).bits() != 0) {
                let width = value.dtype().bytes();
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory[store.operand as usize]);
                bytes[index as usize * width..][..width].copy_from_slice(&value.bits().to_le_bytes()[..width]);
            }
        }
    }

    fn reduce_line(&mut self, outer: u32, inner: u32) {
        self.outer = outer;
        let folds: Vec<usize> = (0..self.build.kernel.insts.len())
            .filter(|&at| matches!(self.build.kernel.insts[at].op, InstOp::Reduce { .. }))
            .collect();
        let mut elements: Vec<Vec<[Scalar; 2]>> = vec![Vec::new(); folds.len()];
        for i in 0..inner {
            self.inner = i;
            self.stores(|level| level == Level::Element);
            for (list, &at) in elements.iter_mut().zip(&folds) {
                let InstOp::Reduce { args, .. } = &self.build.kernel.insts[at].op else { unreachable!() };
                let first = self.value(args[0]);
                let second = args.get(1).map_or(first, |&a| self.value(a));
                list.push([first, second]);
            }
        }
        for (list, &at) in elements.iter().zip(&folds) {
            let InstOp::Reduce { monoid, args } = &self.build.kernel.insts[at].op else { unreachable!() };
            self.folded[at] = fold(*monoid, self.build.kernel.inst(args[0]).dtype, list);
        }
        self.stores(|level| level != Level::Element);
    }

    fn value(&mut self, val: Val) -> Scalar {
        if let Some(known) = self.values[val.0 as usize] {
            return known;
        }
        let inst = &self.build.kernel.insts[val.0 as usize];
        let value = match &inst.op {
            InstOp::Param(slot) => {
                let slot = *slot as usize;
                let high = if inst.dtype.is_wide() { self.build.params[slot + 1] as u64 } else { 0 };
                Scalar::from_bits(inst.dtype, self.build.params[slot] as u64 | high << 32)
            }
            InstOp::Flat => Scalar::U32(self.flat),
            InstOp::Outer => Scalar::U32(self.outer),
            InstOp::Inner => Scalar::U32(self.inner),
            InstOp::Index(op, a, b) => {
                let (x, y) = (self.value(*a).bits() as u32, self.value(*b).bits() as u32);
                Scalar::U32(match op {
                    IndexOp::Add => x.wrapping_add(y),
                    IndexOp::Sub => x.wrapping_sub(y),
                    IndexOp::Mul => x.wrapping_mul(y),
                    IndexOp::Div => x / y,
                    IndexOp::Rem | IndexOp::Wrap => x % y,
                })
            }
            InstOp::Compare(op, a, b) => {
                let (x, y) = (self.value(*a).bits() as u32, self.value(*b).bits() as u32);
                Scalar::Bool(match op {
                    IndexCompare::Less => x < y,
                    IndexCompare::Equal => x == y,
                    IndexCompare::SignedLessEqual => x as i32 <= y as i32,
                })
            }
            InstOp::Load { operand, index, guard, .. } => {
                let index = self.value(*index).bits() as usize;
                if guard.is_some_and(|g| self.value(g).bits() == 0) {
                    Scalar::from_bits(inst.dtype, 0)
                } else {
                    let width = inst.dtype.bytes();
                    let mut word = [0u8; 8];
                    let bytes: &[u8] = bytemuck::cast_slice(&self.memory[*operand as usize]);
                    word[..width].copy_from_slice(&bytes[index * width..][..width]);
                    Scalar::from_bits(inst.dtype, u64::from_le_bytes(word))
                }
            }
            InstOp::Apply(op, args) => {
                let list: Vec<Scalar> = args.iter().map(|&a| self.value(a)).collect();
                let input = if list.len() == 3 && list[0].dtype() == DType::Bool { list[1] } else { list[0] };
                let list: Vec<HostArg<'_>> = list.into_iter().map(HostArg::Scalar).collect();
                let mut word = [0u64; 1];
                let out = &mut bytemuck::cast_slice_mut(&mut word)[..inst.dtype.bytes()];
                element::apply(*op, input.dtype(), inst.dtype, &list, out, 1);
                Scalar::from_bits(inst.dtype, word[0])
            }
            InstOp::Check { index, extent, site, guard } => {
                let index = match self.value(*index) {
                    Scalar::I64(v) => v,
                    other => other.as_f64() as i64,
                };
                let last = self.value(*extent).bits() as i64 - 1;
                if index.clamp(0, last) != index && guard.is_none_or(|g| self.value(g).bits() != 0) {
                    self.faults[self.build.params[*site as usize] as usize] = 1;
                }
                Scalar::U32(index.clamp(0, last) as u32)
            }
            InstOp::Require { condition, site, guard } => {
                if self.value(*condition).bits() == 0 && guard.is_none_or(|g| self.value(g).bits() != 0) {
                    self.faults[self.build.params[*site as usize] as usize] = 1;
                }
                Scalar::Bool(false)
            }
            InstOp::Random { .. } => panic!("random numbers have their own tests"),
            InstOp::Reduce { .. } => self.folded[val.0 as usize][0],
            InstOp::Project(of, component) => self.folded[of.0 as usize][*component as usize],
            InstOp::Scan { monoid, arg } => {
                let x = self.value(*arg);
                // Test data are exact, so the running value may stand for all elements before this one.
                let running = &mut self.folded[val.0 as usize];
                let pairs: Vec<[Scalar; 2]> = running.iter().copied().chain([x]).map(|x| [x, x]).collect();
                *running = fold(*monoid, x.dtype(), &pairs);
                running[0]
            }
        };
        self.values[val.0 as usize] = Some(value);
        value
    }
}

/// Folds in order; sums and products in f64 or i128, so test data must make them exact.
pub fn fold(monoid: Monoid, dtype: DType, list: &[[Scalar; 2]]) -> Vec<Scalar> {
    let numbers = || list.iter().map(|[x, _]| *x);
    let float = |x: f64| Scalar::F64(x).cast(dtype);
    let extreme = |least: bool, omit: bool| -> Scalar {
        let identity = match (dtype.is_float(), omit, least) {
            (true, true, _) => f64::NAN,
            (true, false, true) => f64::INFINITY,
            (true, false, false) => f64::NEG_INFINITY,
            (false, _, true) => return numbers().fold(greatest(dtype), |a, b| if wide(b) < wide(a) { b } else { a }),
            (false, _, false) => return numbers().fold(least_of(dtype), |a, b| if wide(b) > wide(a) { b } else { a }),
        };
        float(numbers().map(Scalar::as_f64).fold(identity, |a, b| match (a.is_nan(), b.is_nan()) {
            (true, _) => {
                if omit {
                    b
                } else {
                    a
                }
            }
            (_, true) => {
                if omit {
                    a
                } else {
                    b
                }
            }
            _ => {
                if least {
                    a.min(b)
                } else {
                    a.max(b)
                }
            }
        }))
    };
    match monoid {
        Monoid::Sum if dtype.is_float() => vec![float(numbers().map(Scalar::as_f64).fold(0.0, |a, b| a + b))],
        Monoid::Prod if dtype.is_float() => vec![float(numbers().map(Scalar::as_f64).product())],
        Monoid::Sum => vec![clamped(dtype, numbers().map(wide).sum())],
        Monoid::Prod => vec![clamped(dtype, numbers().map(wide).product())],
        Monoid::MinInclude => vec![extreme(true, false)],
        Monoid::MinOmit => vec![extreme(true, true)],
        Monoid::MaxInclude => vec![extreme(false, false)],
        Monoid::MaxOmit => vec![extreme(false, true)],
        Monoid::Any => vec![Scalar::Bool(numbers().any(|x| x.bits() != 0))],
        Monoid::All => vec![Scalar::Bool(numbers().all(|x| x.bits() != 0))],
        Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => {
            let least = matches!(monoid, Monoid::ArgMinOmit | Monoid::ArgMinInclude);
            let include = matches!(monoid, Monoid::ArgMinInclude | Monoid::ArgMaxInclude);
            let mut best = list[0];
            for &[x, p] in &list[1..] {
                let (a, b) = (best[0].as_f64(), x.as_f64());
                let better = match (a.is_nan(), b.is_nan()) {
                    (true, true) => false,
                    (true, false) => !include,
                    (false, true) => include,
                    _ => {
                        if least {
                            b < a
                        } else {
                            b > a
                        }
                    }
                };
                if better {
                    best = [x, p];
                }
            }
            best.to_vec()
        }
        Monoid::Moments | Monoid::MomentsWhere => {
            let kept: Vec<f64> = list
                .iter()
                .filter(|[_, on]| monoid == Monoid::Moments || on.bits() != 0)
                .map(|[x, _]| x.as_f64())
                .collect();
            let n = kept.len() as f64;
            let mean = if kept.is_empty() { 0.0 } else { kept.iter().sum::<f64>() / n };
            let squares = kept.iter().map(|x| (x - mean) * (x - mean)).sum();
            // Tests compare `base + (mean - base)` only, so the base may be any number.
            vec![float(n), float(mean), float(0.0), float(squares)]
        }
        Monoid::Squares => {
            // Test data are middling values, neither small nor big.
            vec![float(0.0), float(numbers().map(|x| x.as_f64().powi(2)).sum()), float(0.0)]
        }
        Monoid::ExpSum => {
            let greatest = numbers().map(|x| x.as_f64()).fold(f64::NEG_INFINITY, f64::max);
            vec![float(greatest), float(numbers().map(|x| (x.as_f64() - greatest).exp()).sum())]
        }
    }
}

fn wide(x: Scalar) -> i128 {
    match x {
        Scalar::I64(v) => v as i128,
        other => other.as_f64() as i128,
    }
}

fn clamped(dtype: DType, x: i128) -> Scalar {
    let (low, high) = (wide(least_of(dtype)), wide(greatest(dtype)));
    Scalar::I64(x.clamp(low, high) as i64).cast(dtype)
}

fn greatest(dtype: DType) -> Scalar {
    Scalar::I64(i64::MAX).cast(dtype)
}

fn least_of(dtype: DType) -> Scalar {
    Scalar::I64(i64::MIN).cast(dtype)
}
