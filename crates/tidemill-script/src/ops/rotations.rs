//! Plane rotations, reflections, and matrices of two by two: the steps of decompositions, in LAPACK's order.

use faer::{ColMut, Mat};

/// Returns a matrix of extreme numbers multiplied by a power of two, so that their squares neither overflow nor vanish
/// (LAPACK scales for the same reason), and that power; `None` if the numbers are not extreme.
pub(crate) fn tamed(a: &Mat<f64>) -> Option<(Mat<f64>, f64)> {
    let most = (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)].abs())).fold(0.0, f64::max);
    if most == 0.0 || !most.is_finite() || (1e-140..=1e140).contains(&most) {
        return None;
    }
    // For subnormal numbers, the power itself would overflow.
    let by = 2f64.powi(-(most.log2() as i32).clamp(-1000, 1000));
    Some((Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * by), by))
}

/// A rotation of two rows or columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub c: f64,
    pub s: f64,
}

impl Rotation {
    pub const NONE: Rotation = Rotation { c: 1.0, s: 0.0 };

    pub fn inverse(self) -> Rotation {
        Rotation { c: self.c, s: -self.s }
    }

    /// Rotates column `j` and the next one.
    pub fn columns(self, a: &mut Mat<f64>, j: usize) {
        let (p, q) = two_columns(a, j, j + 1);
        for (x, y) in p.iter_mut().zip(q) {
            (*x, *y) = (self.c * *x + self.s * *y, self.c * *y - self.s * *x);
        }
    }
}

/// Returns two columns; the first one comes first in the matrix.
fn two_columns(a: &mut Mat<f64>, p: usize, q: usize) -> (&mut [f64], &mut [f64]) {
    fn slice(column: ColMut<'_, f64>) -> &mut [f64] {
        column.try_as_col_major_mut().map(|column| column.as_slice_mut()).unwrap_or_default()
    }
    let (p, q) = a.as_mut().two_cols_mut(p, q);
    (slice(p), slice(q))
}

pub(super) fn swap_columns(a: &mut Mat<f64>, p: usize, q: usize) {
    let (p, q) = two_columns(a, p, q);
    p.swap_with_slice(q);
}

/// Rotations of neighbouring columns, in the order in which they were made, from column `first` on.
pub(super) struct Sweep {
    first: usize,
    turns: Vec<Rotation>,
}

impl Sweep {
    pub fn new(first: usize) -> Sweep {
        Sweep { first, turns: Vec::new() }
    }

    pub fn push(&mut self, turn: Rotation) {
        self.turns.push(turn);
    }

    /// Applies them from the first columns to the last.
    pub fn forward(&self, a: &mut Mat<f64>) {
        self.turns.iter().enumerate().for_each(|(k, turn)| turn.columns(a, self.first + k));
    }

    /// Applies them from the last columns to the first, if they were made in this order.
    pub fn backward(&self, a: &mut Mat<f64>) {
        let last = self.first + self.turns.len() - 1;
        self.turns.iter().enumerate().for_each(|(k, turn)| turn.columns(a, last - k));
    }
}

/// Returns the rotation that maps (f, g) to (r, 0), and r.
pub(super) fn rotation(f: f64, g: f64) -> (Rotation, f64) {
    if g == 0.0 {
        return (Rotation::NONE, f);
    }
    if f == 0.0 {
        return (Rotation { c: 0.0, s: 1f64.copysign(g) }, g.abs());
    }
    let (small, large) = (f64::MIN_POSITIVE.sqrt(), (f64::MAX / 4.0).sqrt());
    let within = |x: f64| x.abs() > small && x.abs() < large;
    // Each rotation waits for the one before, so ordinary numbers skip the scaling.
    if within(f) && within(g) {
        return rotation_of(f, g);
    }
    let scale = f.abs().max(g.abs());
    let (turn, r) = rotation_of(f / scale, g / scale);
    (turn, r * scale)
}

/// Does the same for numbers whose squares neither overflow nor vanish.
#[inline(always)]
fn rotation_of(f: f64, g: f64) -> (Rotation, f64) {
    let length = (f * f + g * g).sqrt();
    let r = length.copysign(f);
    (Rotation { c: f.abs() / length, s: g / r }, r)
}

/// Returns the reflection `1 - tau v v'` that maps a vector to (beta, 0, …): v, tau and beta.
pub(super) fn reflector(x: &[f64]) -> (Vec<f64>, f64, f64) {
    let largest = x[1..].iter().fold(0f64, |m, x| m.max(x.abs()));
    let mut v = x.to_vec();
    let alpha = x[0];
    if largest == 0.0 {
        v[0] = 1.0;
        return (v, 0.0, alpha);
    }
    let rest = largest * x[1..].iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt();
    let beta = -alpha.hypot(rest).copysign(alpha);
    v[1..].iter_mut().for_each(|x| *x /= alpha - beta);
    v[0] = 1.0;
    (v, (beta - alpha) / beta, beta)
}

/// The smaller singular value of `[f g; 0 h]`.
pub(super) fn smallest_2x2(f: f64, g: f64, h: f64) -> f64 {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (low, high) = (f.min(h), f.max(h));
    if low == 0.0 {
        return 0.0;
    }
    let (sum, difference) = (1.0 + low / high, (high - low) / high);
    if g < high {
        let ratio = (g / high).powi(2);
        return low * (2.0 / ((sum * sum + ratio).sqrt() + (difference * difference + ratio).sqrt()));
    }
    let ratio = high / g;
    if ratio == 0.0 {
        return low * high / g;
    }
    let c = 1.0 / ((1.0 + (sum * ratio).powi(2)).sqrt() + (1.0 + (difference * ratio).powi(2)).sqrt());
    2.0 * (low * c * ratio)
}

/// The singular value decomposition of `[f g; 0 h]`.
pub(super) struct Two {
    pub largest: f64,
    pub smallest: f64,
    pub left: Rotation,
    pub right: Rotation,
}

/// Returns the singular values of `[f g; 0 h]`, and the rotations that make it diagonal.
pub(super) fn singular_2x2(f: f64, g: f64, h: f64) -> Two {
    let swapped = h.abs() > f.abs();
    let (ft, ht) = if swapped { (h, f) } else { (f, h) };
    let (fa, ha, ga) = (ft.abs(), ht.abs(), g.abs());
    let sign = |x: f64| 1f64.copysign(x);
    // This is the number of the largest of f, g and h.
    let mut most = if swapped { 3 } else { 1 };
    let (mut smallest, mut largest);
    let (mut cl, mut cr, mut sl, mut sr) = (1.0, 1.0, 0.0, 0.0);
    if ga == 0.0 {
        (smallest, largest) = (ha, fa);
    } else if ga > fa && fa / ga < f64::EPSILON / 2.0 {
        most = 2;
        largest = ga;
        smallest = if ha > 1.0 { fa / (ga / ha) } else { fa / ga * ha };
        (cl, sl, sr, cr) = (1.0, ht / g, 1.0, ft / g);
    } else {
        if ga > fa {
            most = 2;
        }
        let d = fa - ha;
        let l = if d == fa { 1.0 } else { d / fa };
        let m = g / ft;
        let t = 2.0 - l;
        let (mm, tt) = (m * m, t * t);
        let s = (tt + mm).sqrt();
        let r = if l == 0.0 { m.abs() } else { (l * l + mm).sqrt() };
        let a = 0.5 * (s + r);
        (smallest, largest) = (ha / a, fa * a);
        let t = match (mm == 0.0, l == 0.0) {
            (true, true) => 2f64.copysign(ft) * sign(g),
            (true, false) => g / d.copysign(ft) + m / t,
            _ => (m / (s + t) + m / (r + l)) * (1.0 + a),
        };
        let l = (t * t + 4.0).sqrt();
        (cr, sr) = (2.0 / l, t / l);
        cl = (cr + sr * m) / a;
        sl = (ht / ft) * sr / a;
    }
    let (left, right) = match swapped {
        true => (Rotation { c: sr, s: cr }, Rotation { c: sl, s: cl }),
        false => (Rotation { c: cl, s: sl }, Rotation { c: cr, s: sr }),
    };
    let turned = match most {
        1 => sign(right.c) * sign(left.c) * sign(f),
        2 => sign(right.s) * sign(left.c) * sign(g),
        _ => sign(right.s) * sign(left.s) * sign(h),
    };
    largest = largest.copysign(turned);
    smallest = smallest.copysign(turned * sign(f) * sign(h));
    Two { largest, smallest, left, right }
}
