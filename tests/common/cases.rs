//! Random arrays, and plain loops over their lines.

use super::common::{runtimes, session};
use super::programs::Dice;
use std::cmp::Ordering;
use tidemill::testing::rounds;
use tidemill::{Array, DType, Session};

pub const NAN: f64 = f64::NAN;
pub const INF: f64 = f64::INFINITY;
pub const DTYPES: [DType; 9] =
    [DType::F64, DType::F32, DType::F64, DType::F32, DType::I32, DType::U8, DType::I64, DType::U32, DType::Bool];

/// The shape, dtype and elements of an array of up to three dimensions, in column-major order.
#[derive(Clone, Debug)]
pub struct Plain {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
    pub dtype: DType,
}

impl Plain {
    /// Random numbers, many of which are equal. If `special`, some floats are NaN or infinite.
    pub fn random(dice: &mut Dice, shape: Vec<usize>, dtype: DType, special: bool) -> Plain {
        let is_float = dtype.is_float();
        let number = |dice: &mut Dice| match is_float {
            true if special && dice.one_in(8) => [NAN, INF, -INF][dice.below(3)],
            true => dice.below(40) as f64 / 4.0 - 3.0,
            false => dice.below(if dtype == DType::Bool { 2 } else { 9 }) as f64,
        };
        let data = (0..shape.iter().product()).map(|_| number(dice)).collect();
        Plain { shape, data, dtype }
    }

    pub fn array(&self, s: &Session) -> Array {
        s.from_slice(&self.data, &self.shape[..]).unwrap().cast_to(self.dtype)
    }

    pub fn lines(&self, dim: usize) -> Vec<Vec<f64>> {
        let (inner, extent) = (self.shape[..dim].iter().product::<usize>(), self.shape[dim]);
        let outer: usize = self.shape[dim + 1..].iter().product();
        let line = |o: usize, i: usize| (0..extent).map(move |k| self.data[i + inner * (k + extent * o)]).collect();
        (0..outer).flat_map(|o| (0..inner).map(move |i| line(o, i))).collect()
    }

    /// Applies a function that returns `count` elements to each line. Returns the shape and the elements of the
    /// results.
    pub fn each(&self, dim: usize, count: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> (Vec<usize>, Vec<f64>) {
        let mut shape = self.shape.clone();
        shape[dim] = count;
        let inner: usize = shape[..dim].iter().product();
        let mut data = vec![0.0; shape.iter().product()];
        for (n, line) in self.lines(dim).iter().enumerate() {
            let (o, i) = (n / inner, n % inner);
            let made = f(line);
            assert_eq!(made.len(), count);
            made.iter().enumerate().for_each(|(k, &v)| data[i + inner * (k + count * o)] = v);
        }
        while shape.len() > 2 && shape.last() == Some(&1) {
            shape.pop();
        }
        (shape, data)
    }
}

/// The order of elements: ascending, NaN last.
pub fn order(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Runs a case on random arrays, dimensions and devices. Extents of 0 come in every eighth round.
pub fn each_case(seed: u64, special: bool, check: impl Fn(&str, &Session, &mut Dice, &Plain, usize)) {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let mut dice = Dice(seed);
        for round in 0..if device == "gpu" { rounds(6, 16) } else { rounds(60, 200) } {
            let extents = [1, 2, 3, 4, 7, 33, 0];
            let shape: Vec<usize> = (0..3).map(|_| extents[dice.below(if round % 8 == 0 { 7 } else { 6 })]).collect();
            let dtype = DTYPES[dice.below(DTYPES.len())];
            let x = Plain::random(&mut dice, shape, dtype, special);
            let dim = dice.below(x.array(&s).shape().unwrap().axes());
            let what = format!("{device}, round {round}, {} of {:?} along {dim}", x.dtype, x.shape);
            check(&what, &s, &mut dice, &x, dim);
        }
        rt.shutdown_blocking().unwrap();
    }
}
