//! Interpolation, compared with plain loops in f64 on every device and dtype.

#[path = "common/cases.rs"]
#[allow(dead_code)]
mod cases;
mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use cases::each_case;
use common::{runtimes, session, values};
use tidemill::{Array, DType, ErrorKind, Extrapolation, Interpolation};

const METHODS: [Interpolation; 6] = [
    Interpolation::Linear,
    Interpolation::Nearest,
    Interpolation::Previous,
    Interpolation::Next,
    Interpolation::Pchip,
    Interpolation::Spline,
];

/// Asserts shape and elements, within a bound on the error.
#[track_caller]
fn assert_close(what: &str, got: &Array, shape: &[usize], expected: &[f64], bound: f64) {
    assert_eq!(got.shape().unwrap_or_else(|error| panic!("{what}: {error}")).dims(), shape, "{what}");
    for (i, (g, e)) in values(got).iter().zip(expected).enumerate() {
        let close = g == e || g.is_nan() && e.is_nan() || (g - e).abs() <= bound;
        assert!(close, "{what}: element {i} is {g}, expected {e} within {bound}");
    }
}

/// The slopes of the monotone curve, as by MATLAB's `pchip`.
fn monotone(x: &[f64], v: &[f64]) -> Vec<f64> {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|x| x[1] - x[0]).collect();
    let d: Vec<f64> = (0..n - 1).map(|i| (v[i + 1] - v[i]) / h[i]).collect();
    if n == 2 {
        return vec![d[0]; 2];
    }
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    let end = |h0: f64, h1: f64, d0: f64, d1: f64| {
        let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
        match () {
            () if sign(slope) != sign(d0) => 0.0,
            () if sign(d0) != sign(d1) && slope.abs() > 3.0 * d0.abs() => 3.0 * d0,
            () => slope,
        }
    };
    let inner = (1..n - 1).map(|i| {
        let (w0, w1) = (2.0 * h[i] + h[i - 1], h[i] + 2.0 * h[i - 1]);
        if sign(d[i - 1]) * sign(d[i]) > 0.0 { (w0 + w1) / (w0 / d[i - 1] + w1 / d[i]) } else { 0.0 }
    });
    let first = end(h[0], h[1], d[0], d[1]);
    let last = end(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
    std::iter::once(first).chain(inner).chain([last]).collect()
}

/// The polynomials of the spline, highest power last, by Gauss's elimination of all its conditions.
fn spline(x: &[f64], v: &[f64]) -> Vec<[f64; 4]> {
    let pieces = x.len() - 1;
    if pieces < 3 {
        // The parabola, or the line, through all points.
        let slope = |i: usize| (v[i + 1] - v[i]) / (x[i + 1] - x[i]);
        let bend = if pieces == 2 { (slope(1) - slope(0)) / (x[2] - x[0]) } else { 0.0 };
        let piece = |i: usize| [v[i], slope(0) + bend * (2.0 * x[i] - x[0] - x[1]), bend, 0.0];
        return (0..pieces).map(piece).collect();
    }
    let size = 4 * pieces;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut row = |terms: &[(usize, usize, f64)], right: f64| {
        let mut row = vec![0.0; size + 1];
        terms.iter().for_each(|&(piece, power, by)| row[4 * piece + power] += by);
        row[size] = right;
        rows.push(row);
    };
    for i in 0..pieces {
        let h = x[i + 1] - x[i];
        row(&[(i, 0, 1.0)], v[i]);
        row(&[(i, 0, 1.0), (i, 1, h), (i, 2, h * h), (i, 3, h * h * h)], v[i + 1]);
        if i + 1 < pieces {
            row(&[(i, 1, 1.0), (i, 2, 2.0 * h), (i, 3, 3.0 * h * h), (i + 1, 1, -1.0)], 0.0);
            row(&[(i, 2, 2.0), (i, 3, 6.0 * h), (i + 1, 2, -2.0)], 0.0);
        }
    }
    row(&[(0, 3, 1.0), (1, 3, -1.0)], 0.0);
    row(&[(pieces - 2, 3, 1.0), (pieces - 1, 3, -1.0)], 0.0);
    for c in 0..size {
        let pivot = (c..size).max_by(|&a, &b| rows[a][c].abs().total_cmp(&rows[b][c].abs())).unwrap();
        rows.swap(c, pivot);
        let own = rows[c].clone();
        // Few rows have anything in a column.
        for row in rows.iter_mut().enumerate().filter(|(r, row)| *r != c && row[c] != 0.0).map(|(_, row)| row) {
            let by = row[c] / own[c];
            row.iter_mut().zip(&own).for_each(|(x, y)| *x -= by * y);
        }
    }
    (0..pieces).map(|i| std::array::from_fn(|p| rows[4 * i + p][size] / rows[4 * i + p][4 * i + p])).collect()
}

/// The value at a place. `pieces` are the polynomials of the spline.
fn curve(x: &[f64], v: &[f64], how: Interpolation, beyond: Extrapolation, pieces: &[[f64; 4]], at: f64) -> f64 {
    let n = x.len();
    if at.is_nan() {
        return f64::NAN;
    }
    if at < x[0] || at > x[n - 1] {
        match beyond {
            Extrapolation::Nan => return f64::NAN,
            Extrapolation::Value(number) => return number,
            Extrapolation::Continue => {}
        }
    }
    let before = x.iter().filter(|&&x| x <= at).count().saturating_sub(1);
    let i = before.min(n.saturating_sub(2));
    match how {
        Interpolation::Previous => v[before],
        Interpolation::Next => v[x.iter().filter(|&&x| x < at).count().min(n - 1)],
        Interpolation::Nearest if n == 1 => v[0],
        Interpolation::Nearest => v[i + (at - x[i] >= x[i + 1] - at) as usize],
        Interpolation::Linear => v[i] + (v[i + 1] - v[i]) / (x[i + 1] - x[i]) * (at - x[i]),
        Interpolation::Pchip => {
            let (d, h) = (monotone(x, v), x[i + 1] - x[i]);
            let (t, secant) = ((at - x[i]) / h, (v[i + 1] - v[i]) / h);
            let c = (3.0 * secant - 2.0 * d[i] - d[i + 1]) / h;
            let b = (d[i] - 2.0 * secant + d[i + 1]) / (h * h);
            let s = t * h;
            v[i] + s * (d[i] + s * (c + s * b))
        }
        Interpolation::Spline => {
            let (p, s) = (pieces[i], at - x[i]);
            p[0] + s * (p[1] + s * (p[2] + s * p[3]))
        }
    }
}

#[test]
fn curves_agree_with_plain_loops_along_every_dimension() {
    each_case(31, false, |what, s, dice, values_at, dim| {
        let n = values_at.shape[dim];
        let how = METHODS[dice.below(6)];
        let beyond = [Extrapolation::Nan, Extrapolation::Value(7.5), Extrapolation::Continue][dice.below(3)];
        let mut point = dice.below(8) as f64 / 4.0 - 2.0;
        let x: Vec<f64> = (0..n).map(|_| (point, point += (1 + dice.below(6)) as f64 / 4.0).0).collect();
        let count = dice.below(12);
        let mut places: Vec<f64> = (0..count).map(|_| dice.below(300) as f64 / 16.0 - 3.0).collect();
        // Points themselves, and NaN.
        places.extend(x.iter().copied().take(3).chain(x.last().copied()).chain([f64::NAN]));
        let dtype = if values_at.dtype.is_float() { values_at.dtype } else { DType::F64 };
        let make = |of: &[f64]| s.from_slice(of, [1, of.len()]).unwrap().cast_to(dtype);
        let what = format!("{what}, {how:?}, {beyond:?}");
        let y = values_at.array(s).interp1(&make(&x), &make(&places), dim, how, beyond);
        let least =
            if matches!(how, Interpolation::Linear | Interpolation::Pchip | Interpolation::Spline) { 2 } else { 1 };
        if n < least {
            assert_eq!(y.error().map(|error| error.kind()), Some(ErrorKind::Argument), "{what}");
            return;
        }
        let each = |line: &[f64]| {
            let pieces = if how == Interpolation::Spline { spline(&x, line) } else { Vec::new() };
            places.iter().map(|&at| curve(&x, line, how, beyond, &pieces, at)).collect()
        };
        let (shape, expected) = values_at.each(dim, places.len(), each);
        let eps = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        // A polynomial that is continued grows fast.
        let greatest = expected.iter().filter(|y| y.is_finite()).fold(10.0f64, |most, y| most.max(y.abs()));
        let bound = if matches!(how, Interpolation::Pchip | Interpolation::Spline) { 3000.0 } else { 100.0 };
        assert_close(&what, &y, &shape, &expected, bound * eps * greatest);
    });
}

#[test]
fn splines_of_cubic_polynomials_are_the_polynomials() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let cubic = |x: f64| 2.0 - x + 0.5 * x * x - 0.25 * x * x * x;
        let (x, places) = ([-1.0, 0.5, 1.0, 2.5, 3.0, 4.5, 6.0], [-2.0, -1.0, 0.0, 2.0, 2.75, 5.5, 7.0]);
        let v: Vec<f64> = x.iter().map(|&x| cubic(x)).chain(x.iter().map(|&x| -cubic(x))).collect();
        let expected: Vec<f64> = places.iter().flat_map(|&x| [cubic(x), -cubic(x)]).collect();
        let v = s.from_slice(&v, [7, 2]).unwrap().t();
        let [x, places] = [x, places].map(|of| s.from_slice(&of, 7).unwrap());
        let y = v.interp1(&x, &places, 1, Interpolation::Spline, Extrapolation::Continue);
        assert_close(&device, &y, &[2, 7], &expected, 1e-12);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn surfaces_agree_with_plain_loops() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let (x, z) = ([0.0, 1.0, 1.5, 4.0], [-1.0, 0.0, 2.0]);
        let v: Vec<f64> = (0..12).map(|i| ((i * 7) % 5) as f64 - 1.5 * (i % 3) as f64).collect();
        let (rows, columns) = ([-0.5, 0.0, 0.75, 1.5, 4.0, f64::NAN, 4.5], [-1.0, 0.5, 1.0, 2.0, 2.5]);
        let all = [Extrapolation::Nan, Extrapolation::Value(-3.0), Extrapolation::Continue];
        for (n, how) in METHODS[..4].iter().enumerate() {
            // A GPU compiles each program.
            let some = if device == "gpu" { &all[n % 3..][..1] } else { &all[..] };
            for &beyond in some {
                let expected: Vec<f64> = columns
                    .iter()
                    .flat_map(|&c| rows.iter().map(move |&r| (r, c)))
                    .map(|(r, c)| {
                        let lines: Vec<f64> = v.chunks(4).map(|line| curve(&x, line, *how, beyond, &[], r)).collect();
                        let is_outside = r.is_nan() || !(0.0..=4.0).contains(&r);
                        match beyond {
                            // All lines are outside, whatever the column is.
                            Extrapolation::Nan | Extrapolation::Value(_) if is_outside => lines[0],
                            _ => curve(&z, &lines, *how, beyond, &[], c),
                        }
                    })
                    .collect();
                for dtype in if device == "gpu" { &[DType::F32][..] } else { &[DType::F32, DType::F64] } {
                    let what = format!("{device}, {dtype}, {how:?}, {beyond:?}");
                    let make = |of: &[f64], shape: [usize; 2]| s.from_slice(of, shape).unwrap().cast_to(*dtype);
                    let axes = [make(&x, [4, 1]), make(&z, [1, 3])];
                    let places = [make(&rows, [7, 1]), make(&columns, [1, 5])];
                    let y = make(&v, [4, 3]).interp2([&axes[0], &axes[1]], [&places[0], &places[1]], *how, beyond);
                    assert_close(&what, &y, &[7, 5], &expected, 1e-5);
                }
            }
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn interpolation_that_cannot_be_is_a_fault() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let of = |data: &[f64]| s.from_slice(data, data.len()).unwrap();
        let (linear, nan) = (Interpolation::Linear, Extrapolation::Nan);
        let (v, x, q) = (of(&[1.0, 2.0, 3.0]), of(&[0.0, 1.0, 2.0]), of(&[0.5]));
        let kind = |array: &Array| array.error().unwrap_or_else(|| panic!("{device}: no fault")).kind();
        assert_eq!(kind(&v.interp1(&of(&[0.0, 1.0]), &q, 0, linear, nan)), ErrorKind::Shape);
        assert_eq!(kind(&v.interp1(&x, &q, 3, linear, nan)), ErrorKind::Index);
        assert_eq!(kind(&of(&[1.0]).interp1(&q, &q, 0, linear, nan)), ErrorKind::Argument);
        assert_eq!(kind(&of(&[]).interp1(&of(&[]), &q, 0, Interpolation::Nearest, nan)), ErrorKind::Argument);
        for points in [[0.0, 0.0, 1.0], [0.0, 2.0, 1.0], [0.0, f64::NAN, 1.0]] {
            let error = v.interp1(&of(&points), &q, 0, linear, nan).gather_blocking::<f64>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Domain, "{device}: {error}");
            assert!(error.to_string().contains("ascend"), "{device}: {error}");
        }
        let two = of(&[0.0, 1.0]);
        let pages = s.zeros::<f64>([2, 2, 2]);
        assert_eq!(kind(&pages.interp2([&two, &two], [&q, &q], linear, nan)), ErrorKind::Shape);
        let matrix = s.zeros::<f64>([2, 2]);
        assert_eq!(kind(&matrix.interp2([&two, &two], [&q, &q], Interpolation::Spline, nan)), ErrorKind::Unsupported);
        assert_eq!(kind(&matrix.interp2([&two, &x], [&q, &q], linear, nan)), ErrorKind::Shape);
        assert_eq!(kind(&matrix.interp2([&two, &two], [&x, &two], linear, nan)), ErrorKind::Shape);
        assert_eq!(v.interp1(&x, &of(&[]), 0, linear, nan).shape().unwrap().dims(), [0, 1]);
        rt.shutdown_blocking().unwrap();
    }
}
