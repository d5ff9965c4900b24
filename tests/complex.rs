//! Complex arrays, Fourier transforms and convolutions on every device, compared with plain sums.

mod common;
use common::{counted, runtimes, session, unfolded, wait};
use tidemill::num_complex::Complex;
use tidemill::{Array, ComplexArray, Convolution, ErrorKind, Extent, Padding, Promotion, Session};

type C = Complex<f64>;

/// Numbers in -1..1 that depend on the seed and that f32 holds exactly.
fn numbers(seed: u32, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f64 / (1 << 23) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn complex(s: &Session, seed: u32, shape: &[usize]) -> (ComplexArray, Vec<C>) {
    let count: usize = shape.iter().product();
    let all: Vec<C> = numbers(seed, 2 * count).chunks(2).map(|part| C::new(part[0], part[1])).collect();
    (s.from_complex(&all, shape).unwrap(), all)
}

/// The transform of every line along a dimension, computed by its defining sum.
fn transformed(x: &[C], shape: &[usize], dim: usize, inverse: bool) -> Vec<C> {
    let (before, len) = (shape[..dim].iter().product::<usize>(), shape[dim]);
    let sign = if inverse { 1.0 } else { -1.0 };
    let element = |at: usize| {
        let (a, k, b) = (at % before, at / before % len, at / before / len);
        let term = |i: usize| {
            let angle = sign * std::f64::consts::TAU * (i * k % len) as f64 / len as f64;
            x[a + before * (i + len * b)] * C::from_polar(1.0, angle)
        };
        (0..len).map(term).sum::<C>() / if inverse { len as f64 } else { 1.0 }
    };
    (0..x.len()).map(element).collect()
}

#[track_caller]
fn assert_near(what: &str, got: &[C], expected: &[C], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let norm = |of: &mut dyn Iterator<Item = C>| of.map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let error = norm(&mut got.iter().zip(expected).map(|(x, y)| x - y));
    let size = norm(&mut expected.iter().copied());
    assert!(error <= tolerance * size, "{what}: an error of {error} of {size}");
}

/// Runs a case on every device, and checks that on a GPU no part of it ran on the host.
fn everywhere(case: impl Fn(&str, &Session)) {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        case(&device, &s);
        assert!(runtime.stats().elsewhere.is_empty(), "{device}: {:?}", runtime.stats().elsewhere);
    }
}

#[test]
fn transforms_along_any_dimension_are_their_sums_and_have_an_inverse() {
    everywhere(|device, s| {
        let shape = [6, 35, 4];
        let (z, all) = complex(s, 1, &shape);
        for dim in 0..3 {
            let what = format!("dimension {dim} on {device}");
            let spectrum = z.fft(dim);
            let expected = transformed(&all, &shape, dim, false);
            assert_eq!(spectrum.shape().unwrap().dims(), shape);
            assert_near(&what, &spectrum.gather::<f64>().wait().unwrap(), &expected, 1e-15);
            assert_near(&what, &spectrum.ifft(dim).gather::<f64>().wait().unwrap(), &all, 1e-15);
        }
        let both = transformed(&transformed(&all, &shape, 2, false), &shape, 0, false);
        assert_near(device, &z.fftn(&[2, 0]).gather::<f64>().wait().unwrap(), &both, 1e-15);
        assert_near(device, &z.fftn(&[2, 0]).ifftn(&[0, 2]).gather::<f64>().wait().unwrap(), &all, 1e-15);
        // Transforms computed values in f32.
        let single = (z.cast::<f32>() * 2.0).fft(1).gather::<f32>().wait().unwrap();
        let single: Vec<C> = single.iter().map(|z| C::new(z.re.into(), z.im.into())).collect();
        let twice: Vec<C> = transformed(&all, &shape, 1, false).iter().map(|z| z * 2.0).collect();
        assert_near(device, &single, &twice, 2e-7);
    });
}

#[test]
fn real_lines_have_half_spectra_and_lines_are_cut_or_continued_by_zeros() {
    everywhere(|device, s| {
        for len in [1, 2, 7, 30] {
            let x = numbers(3, 3 * len);
            let array = s.from_slice(&x, [len, 3]).unwrap();
            let real: Vec<C> = x.iter().map(|&x| C::from(x)).collect();
            let whole = transformed(&real, &[len, 3], 0, false);
            assert_near(device, &array.fft(0).gather::<f64>().wait().unwrap(), &whole, 1e-15);
            // Transforms a real array as a complex one, whose imaginary parts are not stored.
            assert_near(device, &array.to_complex().fft(0).gather::<f64>().wait().unwrap(), &whole, 1e-15);
            let half: Vec<C> = whole.chunks(len).flat_map(|line| line[..len / 2 + 1].to_vec()).collect();
            let spectrum = array.rfft(0);
            assert_near(device, &spectrum.gather::<f64>().wait().unwrap(), &half, 1e-15);
            let back = spectrum.irfft(0, len).to_complex();
            assert_near(device, &back.gather::<f64>().wait().unwrap(), &real, 1e-15);
            let mut padded: Vec<C> = real[..len].to_vec();
            padded.resize(len + 5, C::ZERO);
            let longer = array.slice((.., 0)).fft_n(0, len + 5).gather::<f64>().wait().unwrap();
            assert_near(device, &longer, &transformed(&padded, &[len + 5], 0, false), 1e-15);
        }
        let x = s.from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0], 5).unwrap();
        let cut = x.fft_n(0, 2).gather::<f64>().wait().unwrap();
        assert_eq!(cut, [C::from(3.0), C::from(-1.0)]);
        let windows = [(s.hamming::<f64>(3), [0.08, 1.0, 0.08]), (s.blackman::<f64>(3), [0.0, 1.0, 0.0])];
        for (window, expected) in windows {
            assert_column(device, &window, &expected);
        }
        let shifted = x.fftshift(0);
        assert_eq!(shifted.gather_blocking::<f64>().unwrap().as_slice(), [4.0, 5.0, 1.0, 2.0, 3.0]);
        assert_eq!(shifted.ifftshift(0).gather_blocking::<f64>().unwrap().as_slice(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    });
}

#[test]
fn a_transform_of_nothing_is_empty_or_zero_and_a_dimension_that_is_not_there_is_an_error() {
    everywhere(|_, s| {
        let none = s.zeros::<f32>([0, 3]);
        assert_eq!(none.fft(0).gather::<f32>().wait().unwrap(), []);
        assert_eq!(none.fft_n(0, 2).gather::<f32>().wait().unwrap(), [Complex::ZERO; 6]);
        let watch = s.watch(&none).unwrap();
        let gradient = watch.gradients(&none.fft_n(0, 2).re().sum(..)).unwrap();
        assert_eq!(gradient.shape().unwrap().dims(), [0, 3]);
        assert_eq!(none.fft(5).error().unwrap().kind(), ErrorKind::Index);
        assert_eq!(s.zeros::<f32>([2, 2]).rfft_n(0, 0).error().unwrap().kind(), ErrorKind::Argument);
        // Integers are transformed in f64.
        let spectrum = s.from_slice(&[1i32, 2], 2).unwrap().fft(0).gather::<f64>().wait().unwrap();
        assert_eq!(spectrum, [C::from(3.0), C::from(-1.0)]);
    });
}

#[test]
fn arithmetic_is_that_of_complex_numbers() {
    everywhere(|device, s| {
        let ((a, x), (b, y)) = (complex(s, 5, &[31]), complex(s, 6, &[31]));
        let real = numbers(7, 31);
        let r = s.from_slice(&real, 31).unwrap();
        let c = C::new(0.5, -2.0);
        let each = |f: &dyn Fn(usize) -> C| (0..31).map(f).collect::<Vec<_>>();
        let cases = [
            ("sum", &a + &b, each(&|i| x[i] + y[i])),
            ("difference", &a - &r, each(&|i| x[i] - real[i])),
            ("left difference", &r - &a, each(&|i| real[i] - x[i])),
            ("product", &a * &b, each(&|i| x[i] * y[i])),
            ("product with a number", &a * c, each(&|i| x[i] * c)),
            ("quotient", &a / &b, each(&|i| x[i] / y[i])),
            ("quotient by a number", &a / c, each(&|i| x[i] / c)),
            ("quotient by a real array", &a / &r, each(&|i| x[i] / real[i])),
            ("conjugate", -a.conj(), each(&|i| -x[i].conj())),
            ("exp", a.exp(), each(&|i| x[i].exp())),
            ("log", a.log(), each(&|i| x[i].ln())),
            ("sqrt", a.sqrt(), each(&|i| x[i].sqrt())),
            ("sin", a.sin(), each(&|i| x[i].sin())),
            ("cos", a.cos(), each(&|i| x[i].cos())),
            ("tan", a.tan(), each(&|i| x[i].tan())),
            ("sinh", a.sinh(), each(&|i| x[i].sinh())),
            ("cosh", a.cosh(), each(&|i| x[i].cosh())),
            ("tanh", a.tanh(), each(&|i| x[i].tanh())),
            ("pow", a.pow(&b), each(&|i| x[i].powc(y[i]))),
        ];
        for (name, array, expected) in cases {
            let got = array.gather::<f64>().wait().unwrap();
            // For these functions the reference has a larger error, and a power multiplies the error of its logarithm
            // by the exponent.
            let tolerance = if matches!(name, "pow" | "tan" | "tanh") { 2e-14 } else { 4e-15 };
            for (got, expected) in got.iter().zip(&expected) {
                assert_near(&format!("{name} on {device}"), &[*got], &[*expected], tolerance);
            }
        }
        let sizes = a.abs().gather_blocking::<f64>().unwrap();
        let angles = a.arg().gather_blocking::<f64>().unwrap();
        for i in 0..31 {
            assert!((sizes[i] - x[i].norm()).abs() < 1e-15 && (angles[i] - x[i].arg()).abs() < 1e-15);
        }
        let sum = a.sum(..).gather::<f64>().wait().unwrap();
        assert_near(device, &sum, &[x.iter().sum()], 1e-14);
        let (m, p) = (a.slice(0..6).reshape([2, 3]), b.slice(0..6).reshape([3, 2]));
        let entry = |at: usize| (0..3).map(|k| x[at % 2 + 2 * k] * y[k + 3 * (at / 2)]).sum::<C>();
        let expected: Vec<C> = (0..4).map(entry).collect();
        assert_near(device, &m.matmul(&p).gather::<f64>().wait().unwrap(), &expected, 1e-14);
        let adjoint = m.adjoint().gather::<f64>().wait().unwrap();
        assert_eq!(adjoint, [0, 2, 4, 1, 3, 5].map(|i| x[i].conj()));
        let joined = ComplexArray::cat(0, &[&a, &b]).unwrap().gather::<f64>().wait().unwrap();
        assert_eq!(joined, [x.clone(), y.clone()].concat());
        assert!(a.eq_to(&a).all(..).item::<bool>().wait().unwrap());
        assert!(a.ne_to(&b).all(..).item::<bool>().wait().unwrap());
    });
}

#[test]
fn zeros_infinities_and_what_is_no_number_have_the_values_of_c99() {
    const INF: f64 = f64::INFINITY;
    let is = |got: C, re: f64, im: f64| {
        let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
        assert!(same(got.re, re) && same(got.im, im), "{got} is not {re} {im}");
    };
    everywhere(|_, s| {
        let one = |re: f64, im: f64| s.from_complex(&[C::new(re, im)], 1).unwrap();
        let value = |z: ComplexArray| z.gather::<f64>().wait().unwrap()[0];
        is(value(one(1.0, 1.0) / one(INF, -INF)), 0.0, 0.0);
        assert!(value(one(1.0, 0.0) / one(0.0, 0.0)).re.is_infinite());
        is(value(one(1e300, 1e300) / one(1e300, 1e300)), 1.0, 0.0);
        is(value(one(0.0, 0.0).sqrt()), 0.0, 0.0);
        is(value(one(-4.0, 0.0).sqrt()), 0.0, 2.0);
        is(value(one(-4.0, -(0.5f64.powi(1000))).sqrt()), 0.5f64.powi(1002), -2.0);
        is(value(one(f64::NAN, INF).sqrt()), INF, INF);
        is(value(one(-INF, 1.0).sqrt()), 0.0, INF);
        is(value(one(0.0, 0.0).log()), -INF, 0.0);
        is(value(one(-1.0, 0.0).log()), 0.0, std::f64::consts::PI);
        is(value(one(INF, 0.0).exp()), INF, 0.0);
        is(value(one(-INF, INF).exp()), 0.0, 0.0);
        is(value(one(INF, INF).tanh()), 1.0, 0.0);
        is(value(one(800.0, 0.5).tanh()), 1.0, 0.0);
        is(value(one(0.0, 0.0).pow(2.0)), 0.0, 0.0);
        is(value(one(0.0, 0.0).pow(0.0)), 1.0, 0.0);
        is(one(f64::NAN, INF).abs().to_complex().gather::<f64>().wait().unwrap()[0], INF, 0.0);
    });
}

#[test]
fn powers_of_f32_stay_f32_also_where_promotion_is_strict() {
    for (device, rt) in unfolded(|builder| builder.promotion(Promotion::Strict)) {
        let s = session(&rt);
        let z = s.from_complex(&[C::ZERO, C::new(0.0, 2.0)], 2).unwrap().cast::<f32>();
        let exponents = s.from_slice(&[-1.0f32, 2.0], 2).unwrap();
        for (power, of_zero) in [(z.pow(2.0), 0.0), (z.pow(&exponents), f32::INFINITY)] {
            let [zero, square] = power.gather::<f32>().wait().unwrap()[..] else { panic!("two elements") };
            assert_eq!(zero, Complex::new(of_zero, 0.0), "{device}");
            assert!((square - Complex::new(-4.0, 0.0)).norm() < 1e-5, "{square} on {device}");
        }
        // Bools take the dtype of the complex array, as they take that of a real one.
        let bools = exponents.gt(0.0);
        for product in [&z * &bools, &bools * &z] {
            let [zero, kept] = product.gather::<f32>().wait().unwrap()[..] else { panic!("two elements") };
            assert_eq!([zero, kept], [Complex::ZERO, Complex::new(0.0, 2.0)], "{device}");
        }
        assert!(rt.stats().elsewhere.is_empty(), "{device}: {:?}", rt.stats().elsewhere);
    }
}

#[test]
fn a_real_operand_has_no_imaginary_part_on_either_side() {
    everywhere(|device, s| {
        let z = s.from_complex(&[C::new(1.0, f64::INFINITY), C::new(3.0, -0.0)], 2).unwrap();
        let x = s.from_slice(&[2.0, -2.0], 2).unwrap();
        let whole = s.from_slice(&[2i32, -2], 2).unwrap();
        let all = |z: ComplexArray| z.gather::<f64>().wait().unwrap();
        let (inf, bits) = (f64::INFINITY, |z: Vec<C>| [z[0].re, z[0].im, z[1].re, z[1].im].map(f64::to_bits));
        let cases = [
            ("product", [&x * &z, &z * &x, &whole * &z, &z * &whole], [2.0, inf, -6.0, 0.0]),
            ("sum", [&x + &z, &z + &x, &whole + &z, &z + &whole], [3.0, inf, 1.0, -0.0]),
            ("difference", [&x - &z, -(&z - &x), &whole - &z, -(&z - &whole)], [1.0, -inf, -5.0, 0.0]),
        ];
        for (name, made, expected) in cases {
            for (number, made) in made.into_iter().enumerate() {
                assert_eq!(bits(all(made)), expected.map(f64::to_bits), "{name} {number} on {device}");
            }
        }
        let bools = s.from_slice(&[true, false], 2).unwrap();
        for made in [&bools * &z, &z * &bools] {
            assert_eq!(bits(all(made)), [1.0, inf, 0.0, -0.0].map(f64::to_bits), "{device}");
        }
        assert_eq!(all(&z / &whole)[1], C::new(-1.5, 0.0));
        assert_eq!(all(&whole / &z)[1], C::new(-2.0 / 3.0, 0.0));
        assert_eq!(all(z.slice(1..2).pow(whole.slice(0..1)))[0].re.round(), 9.0);
    });
}

#[test]
fn quotients_are_right_up_to_the_greatest_numbers() {
    everywhere(|device, s| {
        let quotient = |x: C, y: C| {
            let [x, y] = [x, y].map(|z| s.from_complex(&[z], 1).unwrap());
            (x / y).gather::<f64>().wait().unwrap()
        };
        let same = |part: f64| C::new(part, part);
        assert_near(device, &quotient(C::from(1e300), same(1e308)), &[C::new(5e-9, -5e-9)], 1e-15);
        assert_near(device, &quotient(same(1e308), same(1.7e308)), &[C::from(1e308 / 1.7e308)], 1e-15);
        assert_near(device, &quotient(same(f64::MAX), same(f64::MAX)), &[C::from(1.0)], 1e-15);
        let large = quotient(same(1e308), same(1.0))[0] / 1e308;
        assert_near(device, &[large], &[C::from(1.0)], 1e-15);
        let large = quotient(C::new(1.7e308, -1.7e308), same(1.0))[0] / 1e308;
        assert_near(device, &[large], &[C::new(0.0, -1.7)], 1e-15);
        // Small divisors are not halved, so the smallest normal number loses no digits.
        assert_eq!(quotient(C::from(f64::MIN_POSITIVE), C::from(f64::MIN_POSITIVE)), [C::from(1.0)]);
        assert_eq!(quotient(C::from(1e308), C::from(f64::MIN_POSITIVE))[0].re, f64::INFINITY);
    });
}

/// A convolution of columns by its defining sum. `beyond` gives the elements beyond the edges.
fn plain(x: &[f64], k: &[f64], beyond: impl Fn(i64) -> f64, first: i64, count: usize, step: i64) -> Vec<f64> {
    let at = |i: i64| if (0..x.len() as i64).contains(&i) { x[i as usize] } else { beyond(i) };
    let one = |n: usize| k.iter().zip(0..).map(|(k, j): (&f64, i64)| k * at(first + n as i64 * step - j)).sum();
    (0..count).map(one).collect()
}

#[track_caller]
fn assert_column(what: &str, got: &Array, expected: &[f64]) {
    let got = got.gather_blocking::<f64>().unwrap();
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() < 1e-13, "{what}: {got} is not {expected} at {i}");
    }
}

#[test]
fn convolutions_are_their_sums_directly_and_by_transforms() {
    everywhere(|device, s| {
        let x = numbers(11, 200);
        let array = s.from_slice(&x, 200).unwrap();
        for taps in [1usize, 2, 5, 70, 201] {
            let k = numbers(12, taps);
            let kernel = s.from_slice(&k, taps).unwrap();
            let what = format!("{taps} on {device}");
            let full = plain(&x, &k, |_| 0.0, 0, 200 + taps - 1, 1);
            assert_column(&what, &array.convolve(&kernel, Extent::Full), &full);
            assert_column(&what, &array.convolve(&kernel, Extent::Same), &full[taps / 2..][..200]);
            let valid = (201usize).saturating_sub(taps);
            assert_column(&what, &array.convolve(&kernel, Extent::Valid), &full[(taps - 1).min(199)..][..valid]);
            let same = Convolution::new(Extent::Same).stride(&[3]);
            let mirror = |i: i64| x[(if i < 0 { -i } else { 398 - i }) as usize];
            let (first, count) = (taps as i64 / 2, 67);
            if taps < 200 {
                let reflected = array.convolve_by(&kernel, &same.clone().padding(Padding::Reflect));
                assert_column(&what, &reflected, &plain(&x, &k, mirror, first, count, 3));
            }
            let around = array.convolve_by(&kernel, &same.padding(Padding::Circular));
            let ring = |i: i64| x[i.rem_euclid(200) as usize];
            assert_column(&what, &around, &plain(&x, &k, ring, first, count, 3));
        }
        let short = array.slice(0..3);
        let (k, taps) = (numbers(13, 90), 90);
        let kernel = s.from_slice(&k, taps).unwrap();
        let full = plain(&x[..3], &k, |_| 0.0, 0, 92, 1);
        assert_column(device, &short.convolve(&kernel, Extent::Full), &full);
        assert_column(device, &short.convolve(&kernel, Extent::Same), &full[45..48]);
        for number in [f64::NAN, f64::INFINITY] {
            let mut spoiled = x.clone();
            spoiled[40] = number;
            let made = s.from_slice(&spoiled, 200).unwrap().convolve(&kernel, Extent::Full);
            assert!(made.gather_blocking::<f64>().unwrap().iter().all(|y| y.is_nan()), "{number} on {device}");
        }
        let spread = Convolution::new(Extent::Full).dilation(&[2]);
        for (k, apart) in [(vec![1.0, -2.0], vec![1.0, 0.0, -2.0]), (vec![0.5; 80], [0.5, 0.0].repeat(80))] {
            let apart = &apart[..2 * k.len() - 1];
            let made = array.convolve_by(&s.from_slice(&k, k.len()).unwrap(), &spread);
            assert_column(device, &made, &plain(&x, apart, |_| 0.0, 0, 200 + apart.len() - 1, 1));
        }
        let edge = array.slice(0..3).pad(&[(2, 1)], Padding::Replicate);
        assert_column(device, &edge, &[x[0], x[0], x[0], x[1], x[2], x[2]]);
        let kernel = s.from_slice(&[1.0, 2.0], 2).unwrap();
        let product = array.slice(0..3).correlate(&kernel, &Convolution::new(Extent::Valid));
        assert_column(device, &product, &[x[0] + 2.0 * x[1], x[1] + 2.0 * x[2]]);
        let none = Convolution::new(Extent::Full).stride(&[0]);
        assert_eq!(array.convolve_by(&kernel, &none).error().unwrap().kind(), ErrorKind::Argument);
    });
}

#[test]
fn convolutions_of_planes_go_along_all_dimensions_of_the_kernel() {
    everywhere(|device, s| {
        let (rows, columns, pages) = (9, 12, 2);
        let x = numbers(21, rows * columns * pages);
        let array = s.from_slice(&x, [rows, columns, pages]).unwrap();
        for (m, n) in [(3, 2), (9, 8)] {
            let k = numbers(22, m * n);
            let kernel = s.from_slice(&k, [m, n]).unwrap();
            let full = |i: usize, j: usize, page: usize| -> f64 {
                let term = |at: usize| {
                    let (p, q) = (at % m, at / m);
                    let there = i >= p && j >= q && i - p < rows && j - q < columns;
                    if there { k[at] * x[i - p + rows * (j - q + columns * page)] } else { 0.0 }
                };
                (0..m * n).map(term).sum()
            };
            let expected: Vec<f64> = (0..rows * columns * pages)
                .map(|at| full(at % rows + m / 2, at / rows % columns + n / 2, at / rows / columns))
                .collect();
            let same = array.convolve(&kernel, Extent::Same);
            assert_eq!(same.shape().unwrap().dims(), [rows, columns, pages]);
            assert_column(&format!("{m} x {n} on {device}"), &same, &expected);
            let valid = array.convolve(&kernel, Extent::Valid);
            assert_eq!(valid.shape().unwrap().dims(), [rows - m + 1, columns - n + 1, pages]);
        }
        let wide = s.zeros::<f64>([3, 20]);
        assert_eq!(array.convolve(&wide, Extent::Valid).elements().unwrap(), 0);
    });
}

#[test]
fn a_transform_is_one_kernel_reads_parts_where_they_lie_and_a_short_convolution_fuses() {
    for (device, rt) in unfolded(|builder| builder) {
        let s = session(&rt);
        let part = |seed| {
            let part = s.from_vec(numbers(seed, 64 * 48), [64, 48]).unwrap();
            wait(part.eval()).unwrap();
            part
        };
        let (re, im) = (part(31), part(32));
        // There is a kernel for each dimension, and one that interleaves the parts.
        let (_, did) = counted(&rt, || s.complex(&re, &im).fftn(&[0, 1]).gather::<f64>().wait().unwrap());
        assert_eq!(did.kernels, 3, "{device}");
        let kernel = s.from_slice(&[1.0, 2.0, 3.0], 3).unwrap();
        let smooth = re.convolve(&kernel, Extent::Valid);
        let (_, did) = counted(&rt, || (smooth * 2.0).gather_blocking::<f64>().unwrap());
        assert_eq!(did.kernels, 1, "{device}");
        // The kernels: two transforms, the product of the spectra, the inverse transform, and the part that is kept.
        // There is no kernel for padding.
        let long = s.from_slice(&numbers(33, 70), 70).unwrap();
        wait(long.eval()).unwrap();
        let (_, did) = counted(&rt, || re.convolve(&long, Extent::Full).gather_blocking::<f64>().unwrap());
        assert_eq!(did.kernels, 5, "{device}");
    }
}
