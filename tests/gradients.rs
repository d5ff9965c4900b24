//! Derivatives: every rule is compared with finite differences in f64 and with forward mode, on every device and in
//! f32. Also ops without a derivative, and the cost of watching.

mod common;

use common::{assert_array, counted, host, unfolded, values, wait};
use tidemill::testing::rounds;
use tidemill::{Array, ErrorKind, Nan, Promotion, ReduceOp, Runtime, Session, Triangle, cat, select, step};

/// A function of arrays, with the shapes of its arguments.
struct Case {
    name: &'static str,
    shapes: &'static [&'static [usize]],
    f: fn(&Session, &[Array]) -> Array,
}

macro_rules! cases {
    ($($name:literal: $shapes:expr, |$s:ident, $x:ident| $f:expr;)*) => {
        &[$(Case { name: $name, shapes: &$shapes, f: |$s, $x| $f },)*]
    };
}

/// Functions that have no kink near the results of `numbers`.
const CASES: &[Case] = cases! {
    "arithmetic": [&[3, 2], &[3, 2]], |_s, x| (&x[0] + &x[1]) * (&x[0] - &x[1]) / &x[1];
    "expanding": [&[3, 1], &[1, 4], &[1, 1]], |_s, x| &x[0] * &x[1] + &x[2] / &x[0];
    "expanding pages": [&[2, 1, 3], &[1, 2]], |_s, x| (&x[0] * &x[1]).square();
    "numbers": [&[4]], |_s, x| 2.0 / (3.0 - &x[0] * 0.5).square() + (&x[0] % 0.7) + x[0].modulo(0.9);
    "one value, used often": [&[3]], |_s, x| { let y = x[0].sin(); &y * &y * &x[0] + &y };
    "powers": [&[4], &[4]], |_s, x| x[0].abs().pow(&x[1]) + x[0].pow(3) + x[0].pow(0);
    "powers of a number": [&[4]], |s, x| s.full(2.0f64, [1, 1]).pow(&x[0]);
    "unary": [&[5]], |_s, x| {
        let (x, y) = (&x[0], x[0].sin() * 0.5);
        let p = y.square() + 1.5;
        x.exp() + x.expm1() + x.exp2() + p.log() + p.log1p() + p.log2() + p.log10() + p.sqrt() + p.reciprocal() + -x
            + x.sign() * x + x.abs()
    };
    "trigonometric": [&[5]], |_s, x| {
        let (x, y) = (&x[0], x[0].sin() * 0.5);
        x.sin() * x.cos() + y.tan() + y.asin() + y.acos() + x.atan() + x.cospi() + (&y + 2.0).acosh() + y.atanh()
    };
    "hyperbolic": [&[5]], |_s, x| {
        let x = &x[0];
        x.sinh() + x.cosh() + x.tanh() + x.asinh() + x.sigmoid() + x.erf()
    };
    "two arguments": [&[4], &[4]], |_s, x| x[0].atan2(&x[1]) + x[0].hypot(&x[1]) + x[0].min(&x[1]) * x[0].max(&x[1]);
    "rounding": [&[4]], |_s, x| x[0].floor() + x[0].ceil() + x[0].round() + x[0].fix() + &x[0];
    "clamping": [&[6], &[1], &[1]], |_s, x| x[0].clamp(-0.8, 1.1) + x[0].clamp(&(&x[1] * 0.1), &(&x[2].abs() + 0.9));
    "choosing": [&[5], &[5]], |_s, x| select(&x[0].gt(0.2), &x[0] * 2.0, &x[1]) + x[1].lt(0.0).select(1.0, &x[0]);
    "casting": [&[4]], |_s, x| (x[0].cast::<f32>() * 2.0).cast::<f64>().square();
    "reshaping": [&[2, 3]], |_s, x| x[0].reshape([3, 2]).square().flatten() * x[0].flatten();
    "permuting": [&[2, 3, 2]], |_s, x| x[0].permute(&[2, 0, 1]).exp() * 2.0;
    "transposing": [&[2, 3]], |_s, x| x[0].t().sin() * x[0].reshape([3, 2]);
    "permuting to more dimensions": [&[2, 3]], |_s, x| x[0].permute(&[2, 0, 1]).square();
    "slices": [&[5, 4]], |_s, x| x[0].slice((1..4, 0..3)) * x[0].slice((2..5, 1..4));
    "slices with steps": [&[5, 4]], |_s, x| x[0].slice((step(.., 2), step(.., -1))).square();
    "backwards": [&[5, 4]], |_s, x| x[0].flip(0) * x[0].flip(1) + x[0].slice((step(1..5, -1), 2)).sum(..);
    "linear slices": [&[3, 2]], |_s, x| x[0].slice(1..5).square();
    "tiling": [&[2, 1, 2]], |s, x| x[0].repmat(&[2, 3, 2]) * s.arange(0.0f64, 48.0, 1.0).reshape([4, 3, 4]);
    "broadcasting": [&[1, 3]], |s, x| x[0].broadcast_to([2, 3, 2]) * s.arange(0.0f64, 12.0, 1.0).reshape([2, 3, 2]);
    "shifting": [&[3, 4]], |_s, x| x[0].circshift(&[1, -1]) * &x[0];
    "diagonals": [&[3, 5]], |_s, x| x[0].diag(1).square() + x[0].diag(-1).sum(..) + x[0].diag(4).sum(..);
    "matrices of diagonals": [&[3]], |_s, x| x[0].diag(1).slice((0..3, ..)).square() + x[0].diag(-2).slice((2..5, 0..4));
    "triangles": [&[3, 4]], |_s, x| x[0].tril(0).square() + x[0].triu(1) * 2.0;
    "joining": [&[2, 2], &[2, 3]], |s, x| {
        let five = s.full(5.0f64, [2, 1]);
        cat(1, &[&x[0], &five, &x[1], &x[0], &(&x[1] * 2.0)]).unwrap().square()
    };
    "joining along a new dimension": [&[2, 2], &[2, 2]], |_s, x| cat(2, &[&x[0], &x[1]]).unwrap().square().sum(0);
    "sums": [&[3, 4]], |_s, x| x[0].sum(0) * x[0].sum(1) + x[0].square().sum(..) + x[0].mean(1) * x[0].mean(..);
    "products": [&[3, 4]], |_s, x| x[0].prod(0) + x[0].prod(1) * x[0].prod(..);
    "products of pages": [&[2, 3, 2]], |_s, x| x[0].prod([0, 2]);
    "products with a zero": [&[4, 3]], |s, x| (&x[0] * s.arange(0.0f64, 12.0, 1.0).gt(2.5).cast::<f64>().reshape([4, 3])).prod(1);
    "variances": [&[4, 3]], |_s, x| x[0].var(0) + x[0].var_population(..) + x[0].std(1) * x[0].std_population(0);
    "extremes": [&[4, 3]], |_s, x| x[0].min_over(0) * x[0].max_over(1) + x[0].max_over(..);
    "extremes of pages": [&[2, 3, 2]], |_s, x| x[0].min_over([0, 2]) + x[0].reduce(ReduceOp::Max, [1, 2], Nan::Include).sum(..);
    "norms": [&[3, 4]], |_s, x| x[0].norm(0) * x[0].norm(1);
    "logarithms of sums": [&[3, 4]], |_s, x| x[0].logsumexp(0) * x[0].logsumexp(1);
    "exponentials over their sum": [&[3, 4], &[5]], |_s, x| {
        x[0].softmax(0).sin() * x[0].softmax(1) + x[0].log_softmax(1).square() + x[1].log_softmax(0).slice(1..2)
    };
    "medians and quantiles": [&[4, 3], &[5, 2]], |_s, x| {
        x[0].median(0) * x[0].quantile(0.3, 1) + x[1].quantiles(&[0.1, 0.6, 1.0], 0).square().sum(..) + x[1].mode(0).sum(..)
    };
    "greatest elements": [&[5, 2]], |_s, x| x[0].top_k(3, 0, true).0.square().sum(0) + x[0].top_k(1, 1, false).0.sin().sum(0);
    "covariances and correlations": [&[5, 3], &[4, 2, 2]], |_s, x| x[0].cov().sin().sum(..) * x[0].corr().square() + x[1].corr().exp().sum(..);
    "running integrals and polynomials": [&[4, 2], &[4], &[3]], |_s, x| {
        x[0].cumtrapz(0).square() + x[0].cumtrapz_at(&x[1], 0).sin() + x[0].polyval(&x[2]) + x[0].cumtrapz(1).exp()
    };
    "dot products": [&[3, 4], &[3, 4]], |_s, x| x[0].dot(&x[1], 0) + x[0].dot(&x[0], ..);
    "reductions of one element": [&[1, 3]], |_s, x| x[0].sum(0) + x[0].prod(0) * x[0].max_over(0) + x[0].norm(0) + x[0].var(0);
    "running sums": [&[4, 3]], |_s, x| x[0].cumsum(0) * x[0].cumsum(1) + x[0].cumsum_reverse(0);
    "running products": [&[4, 3]], |_s, x| x[0].cumprod(0) + x[0].cumprod_reverse(1);
    "running products with zeros": [&[5, 2]], |s, x| {
        let zeros = s.from_slice(&[1.0f64, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [5, 2]).unwrap();
        (&x[0] * &zeros).cumprod(0) + (&x[0] * zeros).cumprod_reverse(0)
    };
    "running extremes": [&[6, 2]], |_s, x| x[0].cummax(0) * x[0].cummin_reverse(0) + x[0].cummin(1) + x[0].cummax_reverse(0);
    "differences": [&[5, 2]], |_s, x| x[0].diff(0).square().sum(..) + x[0].diff(1);
    "matrix products": [&[3, 4], &[4, 2]], |_s, x| x[0].matmul(&x[1]).square();
    "matrix products, transposed": [&[4, 3], &[2, 4]], |_s, x| x[0].t().matmul(&x[1].t()) * 2.0 + x[0].sum(..);
    "matrix products of pages": [&[2, 3, 2], &[3, 2, 1]], |_s, x| x[0].matmul(&x[1]).sin();
    "sorting": [&[5, 2]], |s, x| x[0].sort(0).0 * s.arange(0.0f64, 10.0, 1.0).reshape([5, 2]) + x[0].sort_descending(1).0;
    "taking": [&[3, 2]], |s, x| x[0].take(&s.from_slice(&[5u32, 0, 5, 2, 5, 5, 0, 3], [4, 2]).unwrap()).square();
    "taking slices": [&[3, 4]], |s, x| {
        let index = s.from_slice(&[2i32, 2, 0, 2, 2, 2, 0], 7).unwrap();
        x[0].take_dim(1, &index).square() + x[0].take_dim(0, &index.slice(0..3))
            .sum(..)
    };
    "taking along": [&[3, 4]], |s, x| {
        let index = s.from_slice(&[2u32, 0, 1, 1, 2, 2, 0, 0], [2, 4]).unwrap();
        let more = s.from_slice(&[0u32, 1, 3, 3, 2, 1, 0, 0, 0, 3, 2, 2, 2, 1, 1, 3, 0, 3], [3, 6]).unwrap();
        x[0].take_along(0, &index).square().sum(..) + x[0].take_along(1, &more).sin()
    };
    "assigning": [&[4, 3], &[2, 1]], |_s, x| x[0].assign((1..3, 0..2), &x[1]).square() + x[0].assign((0, 2), 4.0);
    "assigning at": [&[4, 3], &[5]], |s, x| {
        let index = s.from_slice(&[2u32, 7, 2, 0, 7], 5).unwrap();
        x[0].assign_at(&index, &x[1]).square() + x[0].assign_at(&index, 1.5)
    };
    "assigning along": [&[4, 3], &[4, 1]], |s, x| {
        let index = s.from_slice(&[2u32, 0, 2], 3).unwrap();
        x[0].assign_dim(1, &index, &x[1]).square() + x[0].assign_dim(0, &index, x[1].sum(..))
    };
    "adding at indices": [&[4, 3], &[7], &[4, 3]], |s, x| {
        let (index, columns) = (s.from_slice(&[2u32, 7, 2, 0, 7, 2, 2], 7).unwrap(), s.from_slice(&[1u32, 0, 1], 3).unwrap());
        x[0].scatter_add(&index, &x[1]).square() + x[0].scatter_add_dim(1, &columns, &x[2]).sin()
            + index.accumulate(&x[1], 9).square().sum(..)
    };
    "multiplying at indices": [&[4, 3], &[7], &[4, 3]], |s, x| {
        let (index, columns) = (s.from_slice(&[2u32, 7, 2, 0, 7, 2, 2], 7).unwrap(), s.from_slice(&[1u32, 0, 1], 3).unwrap());
        x[0].scatter_mul(&index, &x[1]) + x[0].scatter_mul_dim(1, &columns, &x[2])
    };
    "extremes at indices": [&[4, 3], &[7], &[4, 3]], |s, x| {
        let (index, columns) = (s.from_slice(&[2u32, 7, 2, 0, 7, 2, 2], 7).unwrap(), s.from_slice(&[1u32, 0, 1], 3).unwrap());
        x[0].scatter_min(&index, &x[1]).square() + x[0].scatter_max_dim(1, &columns, &x[2]).sin()
    };
    "checking": [&[3]], |_s, x| x[0].ensure(&x[0].lt(100.0), "too large").square();
    "triangular systems": [&[3, 3], &[3, 2]], |s, x| {
        let a = &x[0] + s.eye::<f64>(3) * 3.0;
        let (upper, unit) = (Triangle::UPPER, Triangle::LOWER.with_unit_diagonal());
        a.solve_triangular(&x[1], Triangle::LOWER) * a.solve_triangular(&x[1], upper)
            + a.solve_triangular(&x[1], upper.transposed()) + x[0].solve_triangular(&x[1], unit).sin()
            + x[0].solve_triangular(&x[1], unit.transposed()) + x[0].solve_triangular(&x[1], Triangle::UPPER.with_unit_diagonal())
    };
    "triangular systems of pages": [&[3, 3], &[3, 2, 2], &[3, 3, 2], &[3, 1]], |s, x| {
        let eye = s.eye::<f64>(3) * 3.0;
        let one = (&x[0] + &eye).solve_triangular(&x[1], Triangle::LOWER.transposed());
        one.square() + (&x[2] + &eye).solve_triangular(&x[3], Triangle::UPPER)
    };
    "systems": [&[3, 3], &[3, 2]], |s, x| (&x[0] + s.eye::<f64>(3) * 3.0).flip(0).solve(&x[1]).square();
    "systems of pages": [&[3, 3, 2], &[3, 1], &[3, 3]], |s, x| {
        let eye = s.eye::<f64>(3) * 3.0;
        (&x[0] + &eye).circshift(&[1]).solve(&x[1]).square() + (&x[2] + eye).solve(&x[0])
    };
    "inverses and determinants": [&[3, 3, 2]], |s, x| {
        let a = (&x[0] * 0.5 + s.eye::<f64>(3) * 2.0).flip(1);
        let (sign, log) = a.slogdet();
        a.inv() * a.det() + sign * log
    };
    "systems of one equation": [&[1, 1], &[1, 2]], |_s, x| (&x[0] + 3.0).solve(&x[1]) * (&x[0] + 2.0).det();
    "cholesky": [&[3, 3, 2], &[4, 4]], |s, x| {
        let square = x[0].matmul(&x[0].t()) + s.eye::<f64>(3) * 2.0;
        square.cholesky().sin() + (&x[1] * 0.2 + s.eye::<f64>(4) * 3.0).cholesky().square().sum(..)
    };
    "elimination": [&[3, 3, 2], &[5, 3], &[3, 5]], |s, x| {
        let sum = |a: &Array, m: usize, n: usize| {
            let (l, u, _) = (a * 0.4 + s.ones::<f64>([m, n]).triu(0).tril(0) * 3.0).flip(0).lu();
            l.sin().sum([0, 1]) + u.square().sum([0, 1])
        };
        sum(&x[0], 3, 3) * sum(&x[1], 5, 3) + sum(&x[2], 3, 5)
    };
    "reflections": [&[3, 3, 2], &[5, 3], &[3, 5]], |s, x| {
        let sum = |a: &Array, m: usize, n: usize| {
            let (q, r) = (a * 0.4 + s.ones::<f64>([m, n]).triu(0).tril(0) * 2.0).qr();
            q.exp().sum([0, 1]) + r.sin().sum([0, 1])
        };
        let (q, r) = (&x[2] * 0.4 + s.ones::<f64>([3, 5]).triu(0).tril(0) * 2.0).qr_full();
        sum(&x[0], 3, 3) * sum(&x[1], 5, 3) + sum(&x[2], 3, 5) + q.exp().sum(..) * r.sin().sum(..)
    };
    "reflections with exchanged columns": [&[3, 3, 2], &[5, 3], &[3, 5], &[4, 1]], |s, x| {
        let sum = |a: &Array, m: usize, n: usize| {
            let (q, r, _) = (a * 0.2 + s.ones::<f64>([m, n]).triu(0).tril(0) * 2.0 * s.arange(1.0f64, n as f64 + 1.0, 1.0)).qr_pivoted();
            q.exp().sum([0, 1]) + r.sin().sum([0, 1])
        };
        sum(&x[0], 3, 3) * sum(&x[1], 5, 3) + sum(&x[2], 3, 5) + sum(&x[3], 4, 1)
    };
    "filters": [&[7, 2], &[3], &[3], &[2, 2]], |_s, x| {
        let a = &x[2] * 0.2 + 1.0;
        let (y, state) = x[0].filter_from(&x[1], &a, &x[3], 0);
        y.sin() + state.square().sum(..) + x[0].filter(&x[1], &a, 1).cos()
    };
    "convolutions of channels": [&[5, 4, 2], &[3, 2, 4], &[2, 1, 8]], |_s, x| {
        let how = tidemill::Convolution::new(tidemill::Extent::Same).padding(tidemill::Padding::Reflect).stride(&[2]);
        let deep = x[0].convolve_channels(&x[1], 1, 2, &how).sin();
        deep.sum(..) + x[0].correlate_channels(&x[2], 1, 4, &how).square()
    };
    "interpolation": [&[5, 2], &[4], &[2, 2]], |s, x| {
        use tidemill::{Extrapolation::{Continue, Nan}, Interpolation::{Linear, Nearest, Pchip, Spline}};
        let points = s.from_slice(&[0.0, 1.0, 2.5, 3.0, 5.0], 5).unwrap() + x[0].slice((.., 0)).sin() * 0.1;
        let places = &x[1] + 1.0;
        let all = [Linear, Nearest, Pchip, Spline].map(|how| x[0].interp1(&points, &places, 0, how, Continue).square());
        let grid = s.from_slice(&[-4.0, 4.0], 2).unwrap();
        let surface = x[2].interp2([&grid, &grid], [&x[1], &x[1].sin()], Linear, Nan);
        all.iter().fold(surface.sum(..), |sum, y| sum + y)
    };
    "least squares": [&[4, 3], &[4, 2], &[3, 5], &[3, 2]], |s, x| {
        let long = &x[0] * 0.4 + s.ones::<f64>([4, 3]).triu(0).tril(0) * 2.0;
        let wide = &x[2] * 0.4 + s.ones::<f64>([3, 5]).triu(0).tril(0) * 2.0;
        long.lstsq(&x[1]).square() + wide.lstsq(&x[3]).sum(..)
    };
    "eigenvalues": [&[3, 3, 2]], |s, x| {
        let a = &x[0] * 0.3 + s.from_slice(&[-2.0, 0.5, 3.0], 3).unwrap().diag(0);
        let (values, vectors) = a.eigh();
        (&vectors * &values.sin().t()).matmul(&vectors.t()) + vectors.square() + a.eigvalsh().exp()
    };
    "singular values": [&[3, 3, 2], &[5, 3], &[3, 5]], |s, x| {
        let sum = |a: &Array, m: usize, n: usize| {
            let scale = s.from_slice(&[1.0, 2.5, 4.0], 3).unwrap().diag(0);
            let scale = if m > n { cat(0, &[&scale, &s.zeros::<f64>([2, 3])]).unwrap() } else { scale };
            let scale = if m < n { cat(1, &[&scale, &s.zeros::<f64>([3, 2])]).unwrap() } else { scale };
            let a = a * 0.2 + scale;
            let (u, values, v) = a.svd();
            let product = (&u * &values.sin().t()).matmul(&v.t());
            product.square().sum([0, 1]) + u.square().exp().sum([0, 1]) + v.square().exp().sum([0, 1])
                + a.singular_values().log().sum(0) + a.pinv().sin().sum([0, 1])
        };
        sum(&x[0], 3, 3) + sum(&x[1], 5, 3) * 0.1 + sum(&x[2], 3, 5) * 0.1
    };
    "transforms of real arrays": [&[5, 4, 2]], |_s, x| {
        let (all, cut, long) = (x[0].fft(0), x[0].fft_n(1, 3), x[0].fft_n(0, 7));
        let (half, even, fewer) = (x[0].rfft(0), x[0].rfft_n(1, 8), x[0].rfft_n(0, 4));
        let size = |z: &tidemill::ComplexArray| z.re().square().sum(..) + (z.im() * z.re()).sin().sum(..);
        all.re() * all.im() + size(&cut) + size(&long) + size(&half) * size(&even) + size(&fewer) + size(&x[0].ifft(2))
    };
    "transforms of complex arrays": [&[5, 4], &[5, 4]], |_s, x| {
        let z = x[0].complex(&x[1]);
        let (all, back) = (z.fft(0).fft_n(1, 6), z.ifft(1).ifft_n(0, 3));
        let lines = z.irfft(0, 8).square().sum(..) + z.irfft(0, 9).sin().sum(..) + z.irfft(1, 4).exp().sum(..);
        let lines = lines + z.fft(0).irfft(0, 8).square().sum(..) + z.fft(1).irfft(1, 12).sin().sum(..);
        all.re().sin().sum(..) + (back.re() * back.im()).sum(..) + lines + (z.fft(0) * &z).ifft(0).re()
    };
    "complex programs": [&[3, 4], &[3, 4]], |_s, x| {
        let z = x[0].complex(&x[1]);
        let w = (&z * &z).exp() * z.conj() / (&z + 3.0);
        w.abs() + w.matmul(&z.transpose()).re().sum(..) + w.sum(0).im() + z.fft(1).abs().log()
    };
    "a small network": [&[3, 4], &[2, 3], &[2, 1]], |s, x| {
        let inputs = s.arange(0.0f64, 20.0, 1.0).reshape([4, 5]) * 0.1;
        let hidden = x[0].matmul(&inputs).tanh();
        let out = x[1].matmul(&hidden) + &x[2];
        (out.logsumexp(0) - out.slice((0..1, ..))).mean(..)
    };
};

/// Different numbers of moderate size.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| (((i * 7 + seed * 5 + 3) % 23) as f64 - 10.7) * 0.117 + 0.0131 * i as f64).collect()
}

fn arrays(s: &Session, shapes: &[&[usize]], seed: usize) -> Vec<Array> {
    let data = |(n, shape): (usize, &&[usize])| {
        s.from_vec(numbers(shape.iter().product(), n + seed), *shape).expect("the shape fits")
    };
    shapes.iter().enumerate().map(data).collect()
}

/// The value of `case`, a cotangent for it, and the gradients of the arguments.
fn pulled(s: &Session, case: &Case, args: &[Array]) -> (Array, Array, Vec<Array>) {
    let watch = s.watch(args).unwrap();
    let value = (case.f)(s, args);
    let shape = value.shape().unwrap_or_else(|e| panic!("{}: {e}", case.name)).clone();
    let cotangent = s.from_vec(numbers(shape.elements(), 9), &shape).unwrap();
    let gradients = watch.vjp(&value, &cotangent).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    (value, cotangent, gradients)
}

#[track_caller]
fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    let largest = expected.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (g - e).abs() <= tolerance * largest,
            "{what}: element {i} is {g}, expected {e}\n{got:?}\n{expected:?}"
        );
    }
}

#[test]
fn every_rule_agrees_with_finite_differences_and_with_forward_mode() {
    let rt = host();
    for case in CASES {
        let s = rt.session(case.name).seed(1).open();
        let args = arrays(&s, case.shapes, 0);
        let (value, cotangent, gradients) = pulled(&s, case, &args);
        let product = |args: &[Array]| ((case.f)(&s, args) * &cotangent).sum(..);
        let h = 2e-4;
        let mut along = 0.0;
        let tangents = arrays(&s, case.shapes, 4);
        for (n, (arg, gradient)) in args.iter().zip(&gradients).enumerate() {
            assert_eq!(gradient.shape().unwrap(), arg.shape().unwrap(), "{}", case.name);
            let plain = values(arg);
            let moved = |i: usize, by: f64| {
                let mut data = plain.clone();
                data[i] += by;
                let mut moved = args.clone();
                moved[n] = s.from_vec(data, arg.shape()).unwrap();
                product(&moved)
            };
            let rise = |i: usize| {
                let (near, far) = (moved(i, h) - moved(i, -h), moved(i, 2.0 * h) - moved(i, -2.0 * h));
                values(&((near * 8.0 - far) / (12.0 * h)))[0]
            };
            let differences: Vec<f64> = (0..plain.len()).map(rise).collect();
            // A value that was cast to f32 changes in larger steps.
            let tolerance = if case.name == "casting" { 1e-2 } else { 2e-8 };
            let gradient = values(gradient);
            close(&format!("{} by argument {n}", case.name), &gradient, &differences, tolerance);
            along += gradient.iter().zip(values(&tangents[n])).map(|(g, t)| g * t).sum::<f64>();
        }
        let (again, tangent) = s.jvp(&args[..], &tangents[..], |args| Ok((case.f)(&s, args))).unwrap();
        assert_eq!(values(&again), values(&value), "{}: watching changes nothing", case.name);
        let forwards = values(&(tangent * &cotangent).sum(..))[0];
        let tolerance = if case.name == "casting" { 1e-5 } else { 1e-11 };
        close(&format!("{} forwards", case.name), &[forwards], &[along], tolerance);
    }
}

#[test]
fn gradients_are_those_of_folded_values_on_every_device_and_in_f32() {
    let folding = host();
    for (device, rt) in unfolded(|b| b) {
        let every = if device == "gpu" { rounds(4, 1) } else { 1 };
        for (n, case) in CASES.iter().enumerate().filter(|(n, _)| n % every == 0) {
            let s = folding.session(case.name).open();
            let (_, _, expected) = pulled(&s, case, &arrays(&s, case.shapes, n));
            let s = rt.session(case.name).open();
            let args = arrays(&s, case.shapes, n);
            let narrow: Vec<Array> = args.iter().map(|arg| arg.cast::<f32>()).collect();
            for (tolerance, args) in [(1e-12, args), (2e-4, narrow)] {
                if device == "gpu" && tolerance < 1e-6 {
                    continue;
                }
                let (_, _, gradients) = pulled(&s, case, &args);
                for (gradient, expected) in gradients.iter().zip(&expected) {
                    assert_eq!(gradient.dtype().unwrap(), args[0].dtype().unwrap(), "{}", case.name);
                    let what = format!("{} on {device}, to {tolerance}", case.name);
                    close(&what, &values(gradient), &values(expected), tolerance);
                }
            }
        }
    }
}

/// The gradient of the sum of a function of one array.
fn gradient(s: &Session, x: &[f64], f: impl FnOnce(&Array) -> Array) -> Vec<f64> {
    let x = s.from_slice(x, x.len()).unwrap();
    values(&s.value_and_gradient(&x, |x| Ok(f(x).sum(..))).unwrap().1)
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn kinks_and_ties_have_the_derivatives_that_the_page_states() {
    let rt = host();
    let s = rt.session("kinks").open();
    assert_eq!(gradient(&s, &[-2.0, 0.0, 3.0], |x| x.abs()), [-1.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &[-2.0, 0.0, 3.0], |x| x.sign()), [0.0; 3]);
    // The first of two equal arguments gets the derivative.
    assert_eq!(gradient(&s, &[1.0, 2.0], |x| x.max(x.stop_gradient())), [1.0, 1.0]);
    assert_eq!(gradient(&s, &[1.0, 2.0], |x| x.stop_gradient().min(x)), [0.0, 0.0]);
    assert_eq!(gradient(&s, &[0.0, 1.0, 2.0], |x| x.clamp(1.0, 2.0)), [0.0, 1.0, 1.0]);
    // The first of equal elements gets the derivative, too.
    assert_eq!(gradient(&s, &[3.0, 5.0, 5.0], |x| x.max_over(..)), [0.0, 1.0, 0.0]);
    assert_eq!(gradient(&s, &[3.0, 3.0, 5.0], |x| x.min_over(..)), [1.0, 0.0, 0.0]);
    assert_eq!(gradient(&s, &[1.0, 1.0, 2.0, 2.0], |x| x.cummax(0)), [2.0, 0.0, 2.0, 0.0]);
    assert_eq!(gradient(&s, &[1.0, 1.0, 2.0, 2.0], |x| x.cummin_reverse(0)), [0.0, 2.0, 0.0, 2.0]);
    // `std` of equal elements, `norm` of zeros and `logsumexp` of nothing but -inf have a derivative of 0.
    assert_eq!(gradient(&s, &[2.0, 2.0], |x| x.std(..)), [0.0, 0.0]);
    assert_eq!(gradient(&s, &[0.0, 0.0], |x| x.norm(..)), [0.0, 0.0]);
    assert_eq!(gradient(&s, &[-INF, -INF], |x| x.logsumexp(..)), [0.0, 0.0]);
    // Powers at zero. An infinity that a mask excludes is not multiplied by zero.
    assert_eq!(gradient(&s, &[0.0, 2.0], |x| x.pow(0)), [0.0, 0.0]);
    assert_eq!(gradient(&s, &[0.0, 2.0], |x| s.zeros::<f64>([2, 1]).pow(x)), [0.0, 0.0]);
    assert_eq!(gradient(&s, &[0.0, 2.0], |x| x.gt(0.0).select(x, 0.0).reciprocal()), [0.0, -0.25]);
    // Products with zeros.
    assert_eq!(gradient(&s, &[0.0, 2.0, 3.0], |x| x.prod(..)), [6.0, 0.0, 0.0]);
    assert_eq!(gradient(&s, &[0.0, 2.0, 0.0], |x| x.prod(..)), [0.0, 0.0, 0.0]);
    assert_eq!(gradient(&s, &[2.0, 0.0, 3.0], |x| x.cumprod(0)), [1.0, 8.0, 0.0]);
}

#[test]
fn nan_that_is_left_out_has_no_share() {
    let rt = host();
    let s = rt.session("nan").open();
    let x = [1.0, NAN, 3.0];
    assert_eq!(gradient(&s, &x, |x| x.nan_sum(..)), [1.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.nan_mean(..)), [0.5, 0.0, 0.5]);
    assert_eq!(gradient(&s, &x, |x| x.nan_prod(..)), [3.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.nan_var(..)), [-2.0, 0.0, 2.0]);
    assert_eq!(gradient(&s, &x, |x| x.nan_std_population(..)), [-0.5, 0.0, 0.5]);
    assert_eq!(gradient(&s, &x, |x| x.nan_dot(x, ..)), [2.0, 0.0, 6.0]);
    assert_eq!(gradient(&s, &[3.0, NAN, 4.0], |x| x.nan_norm(..)), [0.6, 0.0, 0.8]);
    close("logsumexp", &gradient(&s, &[2.0, NAN, 2.0], |x| x.nan_logsumexp(..)), &[0.5, 0.0, 0.5], 1e-15);
    assert_eq!(gradient(&s, &x, |x| x.max_over(..)), [0.0, 0.0, 1.0]);
    // A number wins over NaN, on either side.
    assert_eq!(gradient(&s, &x, |x| x.min(NAN)), [1.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.max(x.stop_gradient() * NAN)), [1.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| (x.stop_gradient() * NAN).min(x)), [1.0, 1.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.max(2.0)), [0.0, 0.0, 1.0]);
    let index = s.from_slice(&[0u32, 0, 1], 3).unwrap();
    assert_eq!(gradient(&s, &x, |x| s.full(NAN, [2, 1]).scatter_max(&index, x)), [1.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.nan_cumsum(0)), [3.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &x, |x| x.nan_cumprod(0)), [5.0, 0.0, 1.0]);
    assert_eq!(gradient(&s, &[NAN, 2.0, 1.0], |x| x.cummax(0)), [1.0, 2.0, 0.0]);
}

#[test]
fn what_has_no_derivative_is_an_error_that_names_op_and_line() {
    let rt = host();
    let s = rt.session("none").open();
    let x = s.from_slice(&[1.0f64, 2.0], 2).unwrap();
    let fails = |f: fn(&Array) -> Array, op: &str, why: &str| {
        let watch = s.watch(&x).unwrap();
        let loss = f(&x).sum(..);
        for error in [watch.gradients(&loss).unwrap_err(), watch.jvp(&loss, &x).unwrap_err()] {
            assert_eq!((error.kind(), error.op()), (ErrorKind::NoDerivative, Some(op)), "{error}");
            assert!(error.message().contains(why), "{error}");
            assert!(error.location().is_some_and(|at| at.file().ends_with("gradients.rs")), "{error}");
        }
    };
    fails(|x| x * x.gt(1.5).cast::<f64>(), "gt", "truth value");
    fails(|x| x.argmax(..).cast::<f64>(), "argmax", "position");
    fails(|x| x.count_nonzero(..).cast::<f64>(), "count_nonzero", "count");
    fails(|x| x.cast::<i32>().cast::<f64>(), "cast", "i32");
    fails(|x| x.argsort(0).cast::<f64>(), "sort", "position");
    fails(|x| x.lgamma(), "lgamma", "digamma");
    // Masks, indices and conditions may come from ops without a derivative.
    let constant = gradient(&s, &[1.0, 2.0], |x| select(&x.gt(1.5), x, 0.0) + x.take(&x.argmax(..)));
    assert_eq!(constant, [0.0, 3.0]);
    assert_eq!(gradient(&s, &[1.0, 2.0], |x| x * x.gt(1.5).stop_gradient().cast::<f64>()), [0.0, 1.0]);
}

#[test]
fn what_cannot_be_asked_for_is_an_error() {
    let rt = host();
    let s = rt.session("errors").open();
    let (x, n) = (s.from_slice(&[1.0f64, 2.0], 2).unwrap(), s.from_slice(&[1i32], 1).unwrap());
    assert_eq!(s.watch(&n).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(s.watch(&(&x + s.zeros::<f64>([3, 1]))).unwrap_err().kind(), ErrorKind::Shape);
    let before = x.sum(..);
    let watch = s.watch(&x).unwrap();
    let kind = |result: tidemill::Result<Array>| result.unwrap_err().kind();
    assert_eq!(kind(watch.gradients(&(&x * 2.0))), ErrorKind::Shape);
    assert_eq!(kind(watch.gradients(&before)), ErrorKind::Argument);
    assert_eq!(kind(watch.vjp(&(&x * 2.0), &s.zeros::<f64>([3, 1]))), ErrorKind::Shape);
    assert_eq!(kind(watch.jvp(&(&x * 2.0), [&x, &x])), ErrorKind::Argument);
    assert_eq!(kind(watch.gradients(&(&x + s.zeros::<f64>([3, 1])).sum(..))), ErrorKind::Shape);
    let other = rt.session("other").open();
    assert_eq!(other.watch(&(&s.rand::<f64>([100, 1]) + 1.0)).unwrap_err().kind(), ErrorKind::Ownership);
    // A custom rule that returns too many gradients.
    let two = s.custom_gradient(&x, |x| Ok(x * 2.0), |_, _, above| Ok(vec![above.clone(), above.clone()])).unwrap();
    assert_eq!(kind(watch.gradients(&two.sum(..))), ErrorKind::Argument);
    let long = s.custom_gradient(&x, |x| Ok(x * 2.0), |_, _, above| Ok(vec![above.repmat(&[2])])).unwrap();
    assert_eq!(kind(watch.gradients(&long.sum(..))), ErrorKind::Argument);
    let forwards = watch.jvp(&long, &x);
    assert_eq!(kind(forwards), ErrorKind::NoDerivative);
    let large = s.rand::<f64>([1000, 1]);
    let watch = s.watch(&large).unwrap();
    let loss = large.square().sum(..);
    s.close();
    assert_eq!(kind(watch.gradients(&loss)), ErrorKind::Cancelled);
}

#[test]
fn arrays_without_elements_have_gradients_without_elements() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("empty").open();
        let (x, w) = (s.zeros::<f64>([0, 3]), s.from_slice(&[2.0f64, 3.0], [2, 1]).unwrap());
        let watch = s.watch([&x, &w]).unwrap();
        let product = s.zeros::<f64>([2, 0]).matmul(&x);
        let loss = (&x * 2.0).sum(..) + (product * &w).sum(..) + x.prod(0).sum(..) + w.sum(..);
        let [gx, gw] = watch.gradients(&loss).unwrap();
        assert_array(device, &gx, &[0, 3], &[], 0.0);
        assert_array(device, &gw, &[2, 1], &[1.0, 1.0], 0.0);
        let nothing = w.slice((0..0, ..)).sum(..);
        let [_, gw] = watch.gradients(&nothing).unwrap();
        assert_array(device, &gw, &[2, 1], &[0.0, 0.0], 0.0);
        for of_nothing in [x.median(0).sum(..), x.cov().sum(..), w.t().cumtrapz(0).sum(..), x.softmax(0).sum(..)] {
            let [gx, gw] = watch.gradients(&of_nothing).unwrap();
            assert_array(device, &gx, &[0, 3], &[], 0.0);
            assert_array(device, &gw, &[2, 1], &[0.0, 0.0], 0.0);
        }
        let tangent = watch.jvp(&loss, [&x, &w]).unwrap();
        assert_array(device, &tangent, &[1, 1], &[5.0], 0.0);
    }
}

/// The derivative of the gradient of `f` in the direction of `v`, by differences.
fn slope_differences(s: &Session, x: &Array, v: &Array, f: impl Fn(&Array) -> tidemill::Result<Array>) -> Vec<f64> {
    let h = 1e-5;
    let slope = |by: f64| values(&s.value_and_gradient(&(x + v * by), &f).unwrap().1);
    slope(h).iter().zip(slope(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
}

#[test]
fn gradients_are_differentiated_again() {
    let rt = host();
    let s = rt.session("twice").open();
    let x = s.from_slice(&[0.7f64, -1.3, 2.1], 3).unwrap();
    let f = |x: &Array| Ok((x.sin() * x.square()).prod(..) + x.logsumexp(..));
    let v = s.from_slice(&[0.3, 1.0, -0.4], 3).unwrap();
    let curved = values(&s.hvp(&x, &v, f).unwrap());
    close("hvp", &curved, &slope_differences(&s, &x, &v, f), 1e-8);
    // The tangent of the gradient is the same: forward over reverse.
    let slopes = |x: &Array| s.value_and_gradient(x, f).map(|(_, gradient)| gradient);
    close("forward over reverse", &values(&s.jvp(&x, &v, slopes).unwrap().1), &curved, 1e-12);
    // The third derivative of x^4 is 24 x.
    let first = |x: &Array| s.value_and_gradient(x, |x| Ok(x.pow(4).sum(..))).map(|(_, gradient)| gradient);
    let second = |x: &Array| s.value_and_gradient(x, |x| Ok(first(x)?.sum(..))).map(|(_, gradient)| gradient);
    let third = s.value_and_gradient(&x, |x| Ok(second(x)?.sum(..))).unwrap().1;
    close("three times", &values(&third), &[0.7, -1.3, 2.1].map(|x| 24.0 * x), 1e-12);
    // A derivative of one element, which is computed when it is recorded, must still depend on the array.
    let v = s.from_slice(&[1.0, 2.0, 4.0], 3).unwrap();
    assert_eq!(values(&s.hvp(&x, &v, |x| Ok(x.sum(..).square())).unwrap()), [14.0; 3]);
    assert_eq!(values(&s.hvp(&x, &v, |x| Ok(x.slice(0..2).sum(..).pow(2))).unwrap()), [6.0, 6.0, 0.0]);
    // The second derivatives of a linear function are 0.
    assert_eq!(values(&s.hvp(&x, &v, |x| Ok(x.sum(..))).unwrap()), [0.0; 3]);
}

#[test]
fn gradients_of_systems_are_differentiated_again() {
    let rt = host();
    let s = rt.session("twice").open();
    let x = s.from_vec(numbers(9, 1), [3, 3]).unwrap();
    let v = s.from_vec(numbers(9, 3), [3, 3]).unwrap();
    let f = |x: &Array| {
        let a = (x * 0.3 + s.eye::<f64>(3) * 2.0).flip(0);
        let z = a.fft(0);
        Ok(a.slogdet().1 + a.solve(&v).square().sum(..) + a.eigvalsh().sin().sum(..) + z.abs().log().sum(..))
    };
    let curved = values(&s.hvp(&x, &v, f).unwrap());
    close("hvp", &curved, &slope_differences(&s, &x, &v, f), 1e-7);
}

#[test]
fn equal_values_have_derivatives_and_what_a_matrix_does_not_determine_has_none() {
    let rt = host();
    let s = rt.session("spectra").open();
    let eye = s.eye::<f64>(3);
    let sum = |f: fn(&Array) -> Array| s.value_and_gradient(&eye, |x| Ok(f(x).sum(..))).map(|(_, g)| values(&g));
    let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    close("eigh", &sum(|x| x.eigh().0).unwrap(), &identity, 1e-14);
    close("svd", &sum(|x| x.svd().1).unwrap(), &identity, 1e-14);
    let tall = s.from_vec(numbers(6, 0), [3, 2]).unwrap();
    let refused = s.value_and_gradient(&tall, |x| Ok(x.qr_full().0.sum(..))).unwrap_err();
    assert_eq!((refused.kind(), refused.op()), (ErrorKind::NoDerivative, Some("qr")), "{refused}");
    let refused = sum(|x| x.eig().0.0).unwrap_err();
    assert_eq!((refused.kind(), refused.op()), (ErrorKind::NoDerivative, Some("eig")), "{refused}");
}

#[test]
fn a_checkpoint_draws_its_random_numbers_again_and_keeps_nothing_between() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("checkpoint").seed(3).open();
        let x = s.linspace(0.5f32, 2.0, 1000);
        let session = s.clone();
        let noisy = move |x: &[Array]| Ok((&x[0] * session.rand::<f32>([1, 1000])).exp().sin());
        let state = s.random_state();
        let (plain, expected) = s.value_and_gradient(&x, |x| Ok(noisy(std::slice::from_ref(x))?.sum(..))).unwrap();
        s.set_random_state(state);
        let watch = s.watch(&x).unwrap();
        let value = s.checkpoint(&x, noisy.clone()).unwrap();
        let drawn = s.random_state();
        let (loss, tangent) = (value.sum(..), watch.jvp(&value, &s.ones::<f32>([1, 1000])).unwrap());
        let gradient = watch.gradients(&loss).unwrap();
        assert_eq!(s.random_state(), drawn, "numbers that are drawn again are not drawn from the session's stream");
        assert_eq!(values(&loss), values(&plain), "{device}");
        assert_eq!(values(&gradient), values(&expected), "{device}");
        close(device, &values(&tangent), &values(&expected), 1e-4);
    }
}

#[test]
fn integers_among_the_arguments_of_a_function_with_a_rule_are_constants() {
    let rt = host();
    let s = rt.session("labels").open();
    let x = s.from_slice(&[1.0f64, 3.0, 2.0, 0.5, 0.0, 4.0], [3, 2]).unwrap();
    let direction = s.from_vec(numbers(6, 2), [3, 2]).unwrap();
    let known = s.from_slice(&[1u32, 2], [1, 2]).unwrap();
    for is_followed in [false, true] {
        let watch = s.watch(&x).unwrap();
        let index = if is_followed { x.argmax(0) } else { known.clone() };
        let plain = x.take_along(0, &index).square();
        let again = s.checkpoint([&x, &index], |x| Ok(x[0].take_along(0, &x[1]).square())).unwrap();
        let rule = |x: &[Array], _: &Array, above: &Array| Ok(vec![&x[0] * above, x[1].clone()]);
        let ruled = s.custom_gradient([&x, &index], |[x, index]| Ok(x.take_along(0, index)), rule).unwrap();
        let expected = values(&watch.gradients(&plain.sum(..)).unwrap());
        assert_eq!(expected, [0.0, 6.0, 0.0, 0.0, 0.0, 8.0]);
        assert_eq!(values(&watch.gradients(&again.sum(..)).unwrap()), expected);
        let tangent = |value: &Array| values(&watch.jvp(value, &direction).unwrap());
        assert_eq!(tangent(&again), tangent(&plain));
        assert_eq!(values(&watch.gradients(&ruled.sum(..)).unwrap()), values(&x));
    }
}

#[test]
fn a_checkpoint_passes_on_zeros_where_plain_code_does_and_each_share_once() {
    let rt = host();
    let s = rt.session("constants").open();
    let x = s.from_slice(&[1.0f64, 3.0], 2).unwrap();
    let watch = s.watch(&x).unwrap();
    let constant = s.checkpoint(&x, |x| Ok(x[0].stop_gradient() * 2.0)).unwrap();
    let y = &constant * &x;
    assert_eq!(values(&watch.gradients(&y.sum(..)).unwrap()), [2.0, 6.0]);
    assert_eq!(values(&watch.jvp(&y, &x).unwrap()), [2.0, 18.0]);
    assert_eq!(values(&watch.gradients(&constant.sum(..)).unwrap()), [0.0, 0.0]);
    // The same array is given twice.
    let square = s.checkpoint([&x, &x], |x| Ok(&x[0] * &x[1])).unwrap();
    assert_eq!(values(&watch.gradients(&square.sum(..)).unwrap()), [2.0, 6.0]);
    assert_eq!(values(&watch.jvp(&square, &x).unwrap()), [2.0, 18.0]);
}

#[test]
fn an_index_outside_of_its_array_is_a_fault_of_the_gradient_too() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("outside").open();
        let x = s.from_vec(numbers(12, 0).iter().map(|&x| x as f32).collect(), [4, 3]).unwrap();
        for (outside, count) in [(4, 2), (-1, 2), (4, 6), (-1, 6)] {
            let mut index = vec![0i32; 3 * count];
            index[1] = outside;
            let index = s.from_vec(index, [count, 3]).unwrap() + 0i64;
            let watch = s.watch(&x).unwrap();
            let gradient = watch.gradients(&x.take_along(0, &index).sum(..)).unwrap();
            let error = wait(gradient.gather::<f32>()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Index, "{device}, {outside} of {count}: {error}");
            assert!(error.message().contains("0..4 in dimension 0 of 4x3"), "{device}: {error}");
            assert!(error.location().is_some_and(|at| at.file().ends_with("gradients.rs")), "{error}");
        }
    }
}

#[test]
fn tiles_of_many_dimensions_are_summed() {
    let rt = host();
    let s = rt.session("tiles").open();
    for extents in [vec![2; 9], [vec![2], vec![1; 14], vec![2]].concat()] {
        let count: usize = extents.iter().product();
        let x = s.from_vec(numbers(count, 0), extents.as_slice()).unwrap();
        let times: Vec<usize> = extents.iter().map(|&extent| if extent == 1 { 1 } else { 2 }).collect();
        let tiles = times.iter().product::<usize>() as f64;
        let (_, gradient) = s.value_and_gradient(&x, |x| Ok((x.repmat(&times).square() * 0.5).sum(..))).unwrap();
        close("tiles", &values(&gradient), &numbers(count, 0).iter().map(|x| x * tiles).collect::<Vec<_>>(), 1e-12);
    }
}

#[test]
fn shares_of_two_dtypes_that_meet_at_a_truth_value_have_no_derivative() {
    let rt = host();
    let s = rt.session("strict").open();
    s.set_promotion(Promotion::Strict);
    let x = s.from_slice(&[1.0f64, 2.0], 2).unwrap();
    let loss = |x: &Array| {
        let mask = x.gt(1.5);
        mask.cast::<f32>().sum(..).cast::<f64>() + mask.cast::<f64>().sum(..)
    };
    let refused = s.value_and_gradient(&x, |x| Ok(loss(x))).unwrap_err();
    assert_eq!((refused.kind(), refused.op()), (ErrorKind::NoDerivative, Some("gt")), "{refused}");
}

#[test]
fn vectors_that_do_not_fit_are_refused_before_the_function_is_recorded() {
    let rt = host();
    let s = rt.session("vectors").open();
    let x = s.from_slice(&[1.0f64, 2.0], 2).unwrap();
    let long = s.zeros::<f64>([3, 1]);
    // The gradient of a linear function does not depend on the argument.
    let error = s.hvp(&x, &long, |x| Ok(x.sum(..))).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("hvp")), "{error}");
    let unread = |_: [&Array; 1]| -> tidemill::Result<Array> { unreachable!("the vectors are checked first") };
    for error in [s.hvp([&x], [&x, &x], unread).unwrap_err(), s.jvp([&x], [&x, &x], unread).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        assert!(error.op().is_some_and(|op| op == "hvp" || op == "jvp"), "{error}");
        assert!(error.location().is_some_and(|at| at.file().ends_with("gradients.rs")), "{error}");
    }
    let watch = s.watch(&x).unwrap();
    let before = s.ones::<f64>([1, 1]);
    assert_eq!(watch.vjp(&before, &before).unwrap_err().op(), Some("vjp"));
    assert_eq!(watch.jvp(&before, &x).unwrap_err().op(), Some("jvp"));
    assert_eq!(watch.gradients(&before).unwrap_err().op(), Some("gradients"));
}

#[test]
fn watching_changes_neither_kernels_nor_bytes_nor_bits() {
    for (device, rt) in unfolded(|b| b) {
        let run = |watched: bool| {
            let s = rt.session("same").seed(2).open();
            let x = s.rand::<f32>([300, 50]);
            wait(x.eval()).unwrap();
            let watch = watched.then(|| s.watch(&x).unwrap());
            let chain = ((&x * 2.0 + 1.0).sqrt() - x.sin()).exp();
            let loss = (chain.sum(0) * x.max_over(0)).sum(..);
            let (loss, stats) = counted(&rt, || values(&loss));
            drop(watch);
            (loss, stats.kernels, stats.dispatches, stats.bytes_kernel_read, stats.bytes_kernel_written)
        };
        let plain = run(false);
        assert_eq!(run(true), plain, "{device}");
    }
}

#[test]
fn the_gradient_of_a_chain_and_its_sum_is_one_kernel_more() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("chain").open();
        let x = s.linspace(0.1f32, 2.0, 1_000_003);
        wait(x.eval()).unwrap();
        let chain = |x: &Array| ((x * 2.0 + 1.0).sqrt().sin().exp() - x).square().tanh();
        let (_, forward) = counted(&rt, || values(&chain(&x).sum(..)));
        let both = || {
            let (loss, gradient) = s.value_and_gradient(&x, |x| Ok(chain(x).sum(..))).unwrap();
            wait(async { futures::try_join!(loss.item::<f32>(), gradient.gather::<f32>()) }).unwrap()
        };
        let ((loss, gradient), first) = counted(&rt, both);
        assert!(first.kernels <= forward.kernels + 1, "{device}: {} and {}", first.kernels, forward.kernels);
        assert_eq!(gradient.as_slice().len(), 1_000_003);
        assert!(loss.is_finite());
        let (_, again) = counted(&rt, both);
        assert_eq!((again.kernels, again.plan_cache_misses), (first.kernels, 0), "{device}: nothing is planned again");
    }
}

#[test]
fn a_watch_that_is_dropped_frees_what_only_it_kept() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    let s = rt.session("dropped").open();
    let x = s.linspace(0.0f32, 1.0, 1 << 20);
    let begin = rt.stats().bytes_resident_now;
    let watch = s.watch(&x).unwrap();
    // A computed sort is kept, because the watch needs it.
    let loss = (x.sort(1).0.square() * &x).sum(..);
    assert!(values(&loss)[0].is_finite());
    assert!(rt.stats().bytes_resident_now > begin, "{}", rt.stats());
    drop((watch, loss));
    s.flush();
    common::until("the watch's values go", || rt.stats().bytes_resident_now <= begin);
}

#[test]
fn gathers_that_are_dropped_and_arrays_that_are_overwritten_are_as_for_all_others() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("ordinary").open();
        let mut w = s.from_vec((0..1000).map(f64::from).collect(), [1000, 1]).unwrap() * 1e-3;
        let mut expected: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-3).collect();
        for _ in 0..3 {
            let watch = s.watch(&w).unwrap();
            let mut y = w.clone();
            y *= &w;
            y = y.assign((0..10, ..), 0.0);
            let g = watch.gradients(&y.sum(..)).unwrap();
            let mut gather = g.gather::<f64>();
            assert!(common::poll_once(&mut gather).is_none_or(|done| done.is_ok()));
            drop(gather);
            w -= g * 0.1;
            expected.iter_mut().enumerate().filter(|(i, _)| *i >= 10).for_each(|(_, w)| *w -= 0.2 * *w);
        }
        close(device, &values(&w), &expected, 1e-12);
    }
}

#[test]
fn a_value_of_another_session_is_watched_where_it_is_used() {
    let rt = host();
    let (a, b) = (rt.session("a").open(), rt.session("b").open());
    let shared = a.rand::<f64>([100, 1]).share().unwrap();
    let watch = b.watch(&shared).unwrap();
    // Ops of shared arrays alone belong to the session that shared them, which this watch does not see.
    assert_eq!(watch.gradients(&shared.sum(..)).unwrap_err().kind(), ErrorKind::Argument);
    let loss = (b.ones::<f64>([100, 1]) * &shared).square().sum(..);
    close("shared", &values(&watch.gradients(&loss).unwrap()), &values(&(&shared * 2.0)), 1e-12);
}

/// Draws for random programs.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % count
    }
}

/// Records a random program of a few arrays, whose result has one element. The program depends on `seed` alone.
fn random_program(s: &Session, seed: u64, inputs: &[Array]) -> Array {
    let mut draws = Draws(seed);
    let mut made: Vec<Array> = inputs.to_vec();
    for _ in 0..4 + draws.below(14) {
        let (a, b) = (made[draws.below(made.len())].clone(), made[draws.below(made.len())].clone());
        let shape = a.shape().unwrap().clone();
        let (rows, columns) = (shape.dim(0), shape.dim(1));
        let fitting = match (&a + &b).error() {
            None => b,
            Some(_) => b.mean(..),
        };
        let dim = draws.below(2);
        let next = match draws.below(24) {
            0 => &a + &fitting,
            1 => &a * &fitting,
            2 => &a / (fitting.square() + 1.0),
            3 => a.sin() - fitting,
            4 => a.tanh() * 1.5,
            5 => (a * 0.3).exp(),
            6 => (a.square() + 0.5).log(),
            7 => a.max(&fitting),
            8 => a.gt(0.1).select(&a, &fitting),
            9 => a.sum(dim) * 0.5,
            10 => a.broadcast_to([rows, columns, 2]).sum(2),
            11 => a.t(),
            12 => a.flip(dim),
            13 => cat(dim, &[&a, &a.sin()]).unwrap().slice((0..rows, 0..columns)),
            14 => a.slice((rows / 2.., ..)),
            15 => (a * 0.5).cumsum(dim),
            16 => (a * 0.2 + 1.0).cumprod(dim),
            17 => a.cummax(dim),
            18 => a.matmul(&a.t()) * 0.2,
            19 => a.logsumexp(dim),
            20 => a.var(dim) + a.max_over(dim),
            21 => a.sort(dim).0,
            22 => {
                let index: Vec<u32> = (0..5).map(|_| draws.below(rows) as u32).collect();
                a.take_dim(0, &s.from_vec(index, 5).unwrap()).slice((0..rows.min(5), ..))
            }
            _ => a.assign((0, ..), fitting.mean(..)),
        };
        made.push(next);
    }
    let ends = made.iter().rev().take(3).map(|end| end.tanh().mean(..));
    ends.reduce(|a, b| a + b).unwrap()
}

#[test]
fn a_tangent_of_another_session_meets_factors() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    let (a, b) = (rt.session("a").seed(1).open(), rt.session("b").seed(2).open());
    let x = a.rand::<f64>([40, 6]);
    wait(x.eval()).unwrap();
    let foreign = b.rand::<f64>([40, 6]).share().unwrap();
    wait(foreign.eval()).unwrap();
    let watch = a.watch(&x).unwrap();
    let (q, r) = x.qr();
    let own = a.adopt(&foreign).unwrap();
    for value in [&q, &r] {
        let tangents = [watch.jvp(value, &foreign).unwrap(), watch.jvp(value, &own).unwrap()];
        assert_eq!(values(&tangents[0]), values(&tangents[1]));
    }
}

#[test]
fn random_programs_have_the_gradients_of_finite_differences_and_of_forward_mode() {
    let rt = host();
    let others = unfolded(|b| b);
    let (programs, mut kinks) = (rounds(60, 300), 0);
    for seed in 0..programs {
        let s = rt.session("random").open();
        let fill = |s: &Session, seed: usize| arrays(s, &[&[3, 4], &[3, 1], &[1, 4]], seed);
        let (inputs, tangents) = (fill(&s, seed as usize), fill(&s, seed as usize + 7));
        let run = |s: &Session, inputs: &[Array]| {
            let watch = s.watch(inputs).unwrap();
            let loss = random_program(s, seed, inputs);
            let gradients = watch.gradients(&loss).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let tangent = watch.jvp(&loss, &fill(s, seed as usize + 7)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let gradients: Vec<f64> = gradients.iter().flat_map(values).collect();
            (gradients, values(&tangent)[0])
        };
        let (gradients, tangent) = run(&s, &inputs);
        let direction: Vec<f64> = tangents.iter().flat_map(values).collect();
        let along: f64 = gradients.iter().zip(&direction).map(|(g, t)| g * t).sum();
        close(&format!("seed {seed} forwards"), &[tangent], &[along], 1e-10);
        let at = |by: f64| {
            let moved: Vec<Array> = inputs.iter().zip(&tangents).map(|(x, t)| x + t * by).collect();
            values(&random_program(&s, seed, &moved))[0]
        };
        let slope = |h: f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let (near, nearer) = (slope(2e-4), slope(1e-4));
        // If there is a kink nearby, finite differences with two distances differ, and the seed is counted only.
        match (near - nearer).abs() <= 1e-7 * (1.0 + near.abs()) {
            true => close(&format!("seed {seed}"), &[along], &[nearer], 1e-6),
            false => kinks += 1,
        }
        for (device, rt) in &others {
            if *device == "gpu" && seed % rounds(20, 40) != 0 {
                continue;
            }
            let s = rt.session("random").open();
            let again = run(&s, &fill(&s, seed as usize));
            close(&format!("seed {seed} on {device}"), &again.0, &gradients, 1e-9);
            close(&format!("seed {seed} on {device}, forwards"), &[again.1], &[tangent], 1e-9);
            assert_eq!(run(&s, &fill(&s, seed as usize)), again, "seed {seed} on {device}: the same bits");
        }
    }
    assert!(kinks * 10 < programs, "{kinks} of {programs} programs have a kink");
}
