//! A reference for arrays: plain loops over f64, which do not call the crate.
#![allow(dead_code)]

use std::cmp::Ordering;

/// The class of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Float,
    Mask,
    Position,
}

/// Elements in column-major order, and the largest error that a computation in f32 may have. An error of 0 means that
/// the elements are small integers, which every device computes exactly.
#[derive(Clone, Debug)]
pub struct Plain {
    pub dims: Vec<usize>,
    pub data: Vec<f64>,
    pub class: Class,
    pub error: f64,
}

/// A generous bound on the relative error of one op.
const EPSILON: f64 = 1e-6;
/// Integers up to this, and the sums of the ops below, are exact in f32.
const EXACT_MAX: f64 = (1 << 22) as f64;

/// Brings dimensions to normal form: at least two, and beyond those no trailing dimension of extent 1.
fn normal(mut dims: Vec<usize>) -> Vec<usize> {
    while dims.len() > 2 && dims.last() == Some(&1) {
        dims.pop();
    }
    dims
}

/// The coordinates of a linear index.
fn coords(mut index: usize, dims: &[usize]) -> Vec<usize> {
    dims.iter().map(|&n| (index % n, index /= n).0).collect()
}

impl Plain {
    pub fn new(dims: Vec<usize>, data: Vec<f64>, class: Class, error: f64) -> Plain {
        assert_eq!(dims.iter().product::<usize>(), data.len());
        Plain { dims: normal(dims), data, class, error }
    }

    pub fn len(&self) -> usize {
        self.data.len()
    }

    pub fn dim(&self, d: usize) -> usize {
        self.dims.get(d).copied().unwrap_or(1)
    }

    pub fn exact(&self) -> bool {
        self.error == 0.0
    }

    pub fn largest(&self) -> f64 {
        self.data.iter().fold(0.0, |m, v| v.abs().max(m))
    }

    fn at(&self, coords: &[usize]) -> f64 {
        let (mut index, mut stride) = (0, 1);
        for (d, &n) in self.dims.iter().enumerate() {
            index += coords.get(d).copied().unwrap_or(0) * stride;
            stride *= n;
        }
        self.data[index]
    }

    /// Makes an array whose elements are a function of their coordinates.
    fn build(dims: Vec<usize>, class: Class, error: f64, f: impl FnMut(&[usize]) -> f64) -> Plain {
        let len = dims.iter().product();
        let mut f = f;
        let data = (0..len).map(|i| f(&coords(i, &dims))).collect();
        Plain::new(dims, data, class, error)
    }

    /// Adds an op's own rounding error to the errors of its operands.
    fn rounded(mut self, error: f64, integral: bool, bound: f64) -> Plain {
        let exact = integral && bound <= EXACT_MAX;
        self.error = if exact { 0.0 } else { error + EPSILON * bound.max(1e-3) };
        self
    }

    /// The shape to which two arrays expand each other, if they fit.
    pub fn expanded(&self, other: &Plain) -> Option<Vec<usize>> {
        (0..self.dims.len().max(other.dims.len()))
            .map(|d| match (self.dim(d), other.dim(d)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect()
    }

    fn pinned(&self, c: &[usize]) -> f64 {
        let own: Vec<usize> = (0..self.dims.len()).map(|d| if self.dims[d] == 1 { 0 } else { c[d] }).collect();
        self.at(&own)
    }

    pub fn map(&self, slope: f64, integral: bool, f: impl Fn(f64) -> f64) -> Plain {
        let data = self.data.iter().map(|&v| f(v)).collect();
        let out = Plain::new(self.dims.clone(), data, self.class, 0.0);
        let bound = out.largest();
        out.rounded(slope * self.error, integral && self.exact(), bound)
    }

    pub fn sqrt_abs(&self) -> Plain {
        let out = self.map(0.0, false, |v| v.abs().sqrt());
        let error = out.error + self.error.sqrt();
        Plain { error, ..out }
    }

    pub fn zip(&self, other: &Plain, product: bool, f: impl Fn(f64, f64) -> f64) -> Plain {
        let dims = self.expanded(other).expect("the program checked it");
        let out = Plain::build(dims, Class::Float, 0.0, |c| f(self.pinned(c), other.pinned(c)));
        let (a, b) = (self.largest(), other.largest());
        let error = match product {
            true => self.error * b + other.error * a + self.error * other.error,
            false => self.error + other.error,
        };
        let bound = out.largest();
        out.rounded(error, self.exact() && other.exact(), bound)
    }

    pub fn compare(&self, other: &Plain, f: impl Fn(f64, f64) -> bool) -> Plain {
        let dims = self.expanded(other).expect("the program checked it");
        Plain::build(dims, Class::Mask, 0.0, |c| f(self.pinned(c), other.pinned(c)) as u8 as f64)
    }

    /// Makes an array from elements at other coordinates, or 0 where `from` returns `None`.
    fn pick(&self, dims: Vec<usize>, from: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Plain {
        Plain::build(dims, self.class, self.error, |c| from(c).map_or(0.0, |c| self.at(&c)))
    }

    /// `parts` has `(start, step, len)` for each dimension.
    pub fn slice(&self, parts: &[(usize, isize, usize)]) -> Plain {
        let place = |(&c, part): (&usize, &(usize, isize, usize))| (part.0 as isize + part.1 * c as isize) as usize;
        self.pick(parts.iter().map(|p| p.2).collect(), |c| Some(c.iter().zip(parts).map(place).collect()))
    }

    pub fn assign(&self, parts: &[(usize, isize, usize)], value: &Plain) -> Plain {
        let mut out = self.clone();
        let lens: Vec<usize> = parts.iter().map(|p| p.2).collect();
        for i in 0..lens.iter().product() {
            let c = coords(i, &lens);
            let (mut index, mut stride) = (0, 1);
            for (d, part) in parts.iter().enumerate() {
                index += (part.0 as isize + part.1 * c[d] as isize) as usize * stride;
                stride *= self.dim(d);
            }
            out.data[index] = value.pinned(&c);
        }
        out.error = self.error.max(value.error);
        out
    }

    pub fn permute(&self, perm: &[usize]) -> Plain {
        self.pick(perm.iter().map(|&p| self.dim(p)).collect(), |c| {
            let mut own = vec![0; perm.len()];
            perm.iter().enumerate().for_each(|(d, &p)| own[p] = c[d]);
            Some(own)
        })
    }

    pub fn reshape(&self, dims: &[usize]) -> Plain {
        Plain::new(dims.to_vec(), self.data.clone(), self.class, self.error)
    }

    pub fn flip(&self, dim: usize) -> Plain {
        self.pick(self.dims.clone(), |c| {
            let mut c = c.to_vec();
            c[dim] = self.dims[dim] - 1 - c[dim];
            Some(c)
        })
    }

    pub fn repmat(&self, times: &[usize]) -> Plain {
        let dims = (0..self.dims.len()).map(|d| self.dims[d] * times[d]).collect();
        self.pick(dims, |c| Some((0..c.len()).map(|d| c[d] % self.dims[d]).collect()))
    }

    pub fn circshift(&self, by: &[i64]) -> Plain {
        let back = |c: usize, n: usize, by: i64| (c as i64 - by).rem_euclid(n as i64) as usize;
        self.pick(self.dims.clone(), |c| Some((0..c.len()).map(|d| back(c[d], self.dims[d], by[d])).collect()))
    }

    pub fn triangle(&self, upper: bool, k: i64) -> Plain {
        self.pick(self.dims.clone(), |c| {
            let diagonal = c[1] as i64 - c[0] as i64;
            let keep = if upper { diagonal >= k } else { diagonal <= k };
            keep.then(|| c.to_vec())
        })
    }

    pub fn cat(&self, other: &Plain, dim: usize) -> Plain {
        // As in MATLAB, `[]` is skipped, whatever the shape of the other array.
        if other.dims == [0, 0] {
            return self.clone();
        }
        if self.dims == [0, 0] {
            return other.clone();
        }
        let rank = self.dims.len().max(other.dims.len()).max(dim + 1);
        let mut dims: Vec<usize> = (0..rank).map(|d| self.dim(d)).collect();
        dims[dim] += other.dim(dim);
        let own = self.dim(dim);
        Plain::build(dims, self.class, self.error.max(other.error), |c| {
            let mut c = c.to_vec();
            if c[dim] < own {
                return self.at(&c);
            }
            c[dim] -= own;
            other.at(&c)
        })
    }

    pub fn take(&self, dims: &[usize], index: &[usize]) -> Plain {
        let data = index.iter().map(|&i| self.data[i]).collect();
        Plain::new(dims.to_vec(), data, self.class, self.error)
    }

    pub fn take_dim(&self, dim: usize, index: &[usize]) -> Plain {
        let mut dims = self.dims.clone();
        dims[dim] = index.len();
        self.pick(dims, |c| {
            let mut c = c.to_vec();
            c[dim] = index[c[dim]];
            Some(c)
        })
    }

    /// The elements along some dimensions: a list for each element of the reduced shape.
    fn lists(&self, over: &[usize]) -> (Vec<usize>, Vec<Vec<f64>>) {
        let dims: Vec<usize> = (0..self.dims.len()).map(|d| if over.contains(&d) { 1 } else { self.dims[d] }).collect();
        let mut lists = vec![Vec::new(); dims.iter().product()];
        for i in 0..self.len() {
            let c = coords(i, &self.dims);
            let (mut index, mut stride) = (0, 1);
            for (d, &n) in dims.iter().enumerate() {
                index += if n == 1 { 0 } else { c[d] } * stride;
                stride *= n;
            }
            lists[index].push(self.data[i]);
        }
        (dims, lists)
    }

    pub fn reduce(&self, over: &[usize], class: Class, f: impl Fn(&[f64]) -> f64) -> Plain {
        let (dims, lists) = self.lists(over);
        Plain::new(dims, lists.iter().map(|l| f(l)).collect(), class, self.error)
    }

    pub fn sum(&self, over: &[usize]) -> Plain {
        let n: usize = over.iter().map(|&d| self.dim(d)).product();
        let bound = n as f64 * self.largest();
        self.reduce(over, Class::Float, |l| l.iter().sum()).rounded(n as f64 * self.error, self.exact(), bound)
    }

    pub fn mean(&self, over: &[usize]) -> Plain {
        let bound = self.largest();
        let mean = |l: &[f64]| l.iter().sum::<f64>() / l.len() as f64;
        self.reduce(over, Class::Float, mean).rounded(self.error, false, bound)
    }

    pub fn var(&self, over: &[usize]) -> Plain {
        let m = self.largest();
        let var = |l: &[f64]| {
            let mean = l.iter().sum::<f64>() / l.len() as f64;
            l.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (l.len() as f64 - 1.0).max(1.0)
        };
        self.reduce(over, Class::Float, var).rounded(8.0 * m * self.error, false, 8.0 * m * m)
    }

    pub fn cumsum(&self, dim: usize) -> Plain {
        let mut out = self.clone();
        let stride: usize = self.dims[..dim].iter().product();
        for i in 0..self.len() {
            if !(i / stride).is_multiple_of(self.dims[dim]) {
                out.data[i] += out.data[i - stride];
            }
        }
        let n = self.dims[dim] as f64;
        // Each element adds one rounding error of the running sum, perhaps all of the same sign.
        let roundings = n * f64::from(f32::EPSILON) / 2.0 * n * self.largest();
        out.rounded(n * self.error + roundings, self.exact(), n * self.largest())
    }

    /// Values and positions, sorted along a dimension; equal elements keep their order.
    pub fn sort(&self, dim: usize, descending: bool) -> (Plain, Plain) {
        let (mut values, mut positions) = (self.clone(), self.clone());
        positions.class = Class::Position;
        let (stride, n): (usize, usize) = (self.dims[..dim].iter().product(), self.dims[dim]);
        for first in (0..self.len()).filter(|i| i / stride % n == 0) {
            let mut order: Vec<usize> = (0..n).collect();
            let at = |i: usize| self.data[first + i * stride];
            order.sort_by(|&a, &b| {
                let order = at(a).partial_cmp(&at(b)).unwrap_or(Ordering::Equal);
                if descending { order.reverse() } else { order }
            });
            for (to, &from) in order.iter().enumerate() {
                values.data[first + to * stride] = at(from);
                positions.data[first + to * stride] = from as f64;
            }
        }
        (values, positions)
    }

    pub fn matmul(&self, other: &Plain) -> Plain {
        let k = self.dims[1];
        let out = Plain::build(vec![self.dims[0], other.dims[1]], Class::Float, 0.0, |c| {
            (0..k).map(|i| self.at(&[c[0], i]) * other.at(&[i, c[1]])).sum()
        });
        let (a, b, n) = (self.largest(), other.largest(), k as f64);
        let error = n * (self.error * b + other.error * a + self.error * other.error);
        // The error is that of a running sum, because a GPU may add the products one by one.
        let roundings = n * f64::from(f32::EPSILON) / 2.0 * n * a * b;
        out.rounded(error + roundings, self.exact() && other.exact(), n * a * b)
    }
}

/// The elements of `yes` where the mask is set, those of `no` elsewhere. All expand to `dims`.
pub fn select(dims: &[usize], mask: &Plain, yes: &Plain, no: &Plain) -> Plain {
    Plain::build(dims.to_vec(), Class::Float, yes.error.max(no.error), |c| {
        if mask.pinned(c) != 0.0 { yes.pinned(c) } else { no.pinned(c) }
    })
}
