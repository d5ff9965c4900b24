//! Filters and convolutions of channels, compared with plain loops in f64 on every device and dtype.

#[path = "common/cases.rs"]
#[allow(dead_code)]
mod cases;
mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use cases::{Plain, each_case};
use common::{counted, runtimes, session, unfolded, values};
use programs::Dice;
use tidemill::testing::rounds;
use tidemill::{Array, Convolution, DType, ErrorKind, Extent, Padding, Session};

/// Asserts shape and elements, within a bound on the error.
#[track_caller]
fn assert_close(what: &str, got: &Array, shape: &[usize], expected: &[f64], bound: f64) {
    assert_eq!(got.shape().unwrap_or_else(|error| panic!("{what}: {error}")).dims(), shape, "{what}");
    for (i, (g, e)) in values(got).iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= bound, "{what}: element {i} is {g}, expected {e} within {bound}");
    }
}

fn eps(array: &Array) -> f64 {
    if array.dtype().unwrap() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

fn greatest(of: &[f64]) -> f64 {
    of.iter().fold(1.0, |most, x| most.max(x.abs()))
}

/// The transposed direct form II: the result and the state at the end.
fn filtered(b: &[f64], a: &[f64], x: &[f64], state: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let at = |of: &[f64], k: usize| of.get(k).map_or(0.0, |of| of / a[0]);
    let mut z = state.to_vec();
    let y = x.iter().map(|&x| {
        let y = at(b, 0) * x + z.first().copied().unwrap_or(0.0);
        for k in 0..z.len() {
            z[k] = at(b, k + 1) * x + z.get(k + 1).copied().unwrap_or(0.0) - at(a, k + 1) * y;
        }
        y
    });
    (y.collect(), z)
}

/// The coefficients of a denominator with `count` roots of magnitude `radius` at most, times `first`.
fn denominator(dice: &mut Dice, count: usize, radius: f64, first: f64) -> Vec<f64> {
    let mut a = vec![first];
    while a.len() <= count {
        let (size, angle) = (radius * (0.5 + dice.below(100) as f64 / 200.0), dice.below(100) as f64 / 30.0);
        let factor = match count + 1 - a.len() {
            1 => vec![1.0, -size],
            _ => vec![1.0, -2.0 * size * angle.cos(), size * size],
        };
        let mut product = vec![0.0; a.len() + factor.len() - 1];
        for (i, x) in a.iter().enumerate() {
            factor.iter().enumerate().for_each(|(j, y)| product[i + j] += x * y);
        }
        a = product;
    }
    a
}

/// The shape without trailing extents of 1 beyond the second one, and the elements, when the lines of an array are
/// replaced by `count` others. The function gets the number of the line.
fn each_line(x: &Plain, dim: usize, count: usize, f: impl Fn(usize, &[f64]) -> Vec<f64>) -> (Vec<usize>, Vec<f64>) {
    let number = std::cell::Cell::new(0);
    x.each(dim, count, |line| f(number.replace(number.get() + 1), line))
}

#[test]
fn filters_agree_with_plain_loops_along_every_dimension() {
    each_case(71, false, |what, s, dice, x, dim| {
        let (p, q) = (1 + dice.below(6), [0, 1, 2, 3, 5, 9, 18][dice.below(7)]);
        let radius = if q > 5 { 0.4 } else { 0.8 };
        let first = [1.0, 2.0, -0.5][dice.below(3)];
        let b: Vec<f64> = (0..p).map(|_| dice.below(16) as f64 / 8.0 - 1.0).collect();
        let a = denominator(dice, q, radius, first);
        let order = p.max(q + 1) - 1;
        let make = |of: &[f64]| {
            s.from_slice(of, [1, of.len()]).unwrap().cast_to(if x.dtype.is_float() { x.dtype } else { DType::F64 })
        };
        let (numerator, below) = (make(&b), make(&a));
        let (b, a) = (values(&numerator), values(&below));
        let array = x.array(s);
        let what = format!("{what}, {p} over {q}");
        let y = array.filter(&numerator, &below, dim);
        let (shape, expected) = each_line(x, dim, x.shape[dim], |_, line| filtered(&b, &a, line, &vec![0.0; order]).0);
        let bound = 200.0 * (p + q) as f64 * eps(&y) * greatest(&expected);
        assert_close(&what, &y, &shape, &expected, bound);
        // A state for all lines, and one for each.
        let states = Plain::random(
            dice,
            {
                let mut shape = x.shape.clone();
                shape[dim] = order;
                shape
            },
            x.dtype,
            false,
        );
        let one: Vec<f64> = (0..order).map(|k| k as f64 * 0.5 - 1.0).collect();
        for own in [false, true] {
            let state = if own { states.array(s) } else { make(&one) };
            let lines = states.lines(dim);
            let begin = |line: usize| if own { lines[line].clone() } else { one.clone() };
            let (y, end) = array.filter_from(&numerator, &below, &state, dim);
            let (shape, expected) = each_line(x, dim, x.shape[dim], |n, line| filtered(&b, &a, line, &begin(n)).0);
            let (held, at_end) = each_line(x, dim, order, |n, line| filtered(&b, &a, line, &begin(n)).1);
            let bound = 400.0 * (p + q) as f64 * eps(&y) * greatest(&expected).max(greatest(&at_end));
            assert_close(&what, &y, &shape, &expected, bound);
            assert_close(&format!("{what}, state"), &end, &held, &at_end, bound);
        }
    });
}

#[test]
fn a_filter_of_a_signal_in_parts_is_the_filter_of_the_signal() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let (b, a) = (s.from_slice(&[0.5, -0.25, 0.125], 3).unwrap(), s.from_slice(&[1.0, -1.2, 0.5, 0.1], 4).unwrap());
        let x = s.randn::<f64>([100, 3]);
        let whole = x.filter(&b, &a, 0);
        let mut state = s.zeros::<f64>([3, 3]);
        for (from, to) in [(0, 1), (1, 3), (3, 60), (60, 100)] {
            let (part, next) = x.slice((from..to, ..)).filter_from(&b, &a, &state, 0);
            let expected = values(&whole.slice((from..to, ..)));
            assert_close(&device, &part, &[to - from, 3], &expected, 1e-13);
            state = next;
        }
        rt.shutdown_blocking().unwrap();
    }
}

/// A low pass of order 4 whose poles lie close together (Butterworth, at 0.02 of the Nyquist frequency), by which a
/// recurrence in f32 loses four digits.
const LOW_PASS: ([f64; 5], [f64; 5]) = (
    [8.98486146e-07, 3.59394459e-06, 5.39091688e-06, 3.59394459e-06, 8.98486146e-07],
    [1.0, -3.83582554, 5.52081914, -3.5335352, 0.84855598],
);

#[test]
fn long_and_delicate_filters_are_as_exact_as_the_recurrence() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        // Several passes of a GPU's kernel, and several lines.
        let (rows, lines) = (rounds(20_500, 60_000), rounds(6, 20));
        let data: Vec<f64> = {
            let mut dice = Dice(5);
            (0..rows * lines).map(|_| f64::from(dice.below(2000) as f32 / 1000.0 - 1.0)).collect()
        };
        let [b, a] = [LOW_PASS.0, LOW_PASS.1].map(|of| of.map(|x| f64::from(x as f32)));
        let exact: Vec<f64> = data.chunks(rows).flat_map(|line| filtered(&b, &a, line, &[0.0; 4]).0).collect();
        // The error of the recurrence in f32.
        let plain = data.chunks(rows).flat_map(|line| {
            let mut z = [0f32; 4];
            let step = move |&x: &f64| {
                let y = b[0] as f32 * x as f32 + z[0];
                for k in 0..4 {
                    z[k] = b[k + 1] as f32 * x as f32 + z.get(k + 1).copied().unwrap_or(0.0) - a[k + 1] as f32 * y;
                }
                f64::from(y)
            };
            line.iter().map(step).collect::<Vec<f64>>()
        });
        let of_loop = plain.zip(&exact).map(|(y, e)| (y - e).abs()).fold(0.0, f64::max);
        assert!(of_loop > 1e-5, "{of_loop}");
        for (dtype, bound) in [(DType::F32, 8.0 * of_loop), (DType::F64, 2e-8 * of_loop)] {
            let make = |of: &[f64], shape: &[usize]| s.from_slice(of, shape).unwrap().cast_to(dtype);
            let (numerator, below) = (make(&b, &[5]), make(&a, &[5]));
            let x = make(&data, &[rows, lines]);
            values(&x);
            let (y, stats) = counted(&rt, || {
                let y = x.filter(&numerator, &below, 0);
                values(&y);
                y
            });
            assert_close(&format!("{device}, {dtype}"), &y, &[rows, lines], &exact, bound);
            assert!(stats.ops_recorded < 40 && stats.elsewhere.is_empty(), "{device}: {stats}");
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn a_single_line_of_a_million_elements_takes_a_few_ops() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let (b, a) = (s.from_slice(&[1.0], 1).unwrap(), s.from_slice(&[1.0, -0.5], 2).unwrap());
        let x = s.ones::<f64>(1_000_000);
        let ((last, state), stats) = counted(&rt, || {
            let (y, state) = x.filter_from(&b, &a, &s.zeros::<f64>(1), 0);
            (values(&y.slice(999_999..1_000_000))[0], values(&state)[0])
        });
        assert_eq!((last, state), (2.0, 1.0), "{device}");
        assert!(stats.ops_recorded < 60, "{device}: {stats}");
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn long_numerators_are_convolved_by_transforms() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = s.randn::<f64>([300, 2]);
        let b = s.randn::<f64>(100);
        let a = s.from_slice(&[2.0, -1.0], 2).unwrap();
        let (lines, b_own) = (values(&x), values(&b));
        let expected: Vec<f64> =
            lines.chunks(300).flat_map(|line| filtered(&b_own, &[2.0, -1.0], line, &[0.0; 99]).0).collect();
        assert_close(device, &x.filter(&b, &a, 0), &[300, 2], &expected, 1e-11);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn filters_that_cannot_be_are_faults() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let of = |data: &[f64]| s.from_slice(data, data.len()).unwrap();
        let (x, one, two) = (of(&[1.0, 2.0, 3.0]), of(&[1.0]), of(&[1.0, 0.5]));
        let kind = |array: &Array| array.error().unwrap_or_else(|| panic!("{device}: no fault")).kind();
        assert_eq!(kind(&x.filter(&one, &two, 2)), ErrorKind::Index);
        assert_eq!(kind(&x.filter(&of(&[]), &two, 0)), ErrorKind::Argument);
        assert_eq!(kind(&x.filter(&one, &of(&[]), 0)), ErrorKind::Argument);
        let (y, state) = x.filter_from(&one, &two, &of(&[1.0, 2.0]), 0);
        assert_eq!((kind(&y), kind(&state)), (ErrorKind::Shape, ErrorKind::Shape));
        let error = x.filter(&one, &of(&[0.0, 1.0]), 0).gather_blocking::<f64>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Domain, "{device}: {error}");
        assert!(error.to_string().contains("denominator"), "{device}: {error}");
        // Lines without elements leave the state as it is.
        let (y, state) = s.zeros::<f64>([0, 2]).filter_from(&one, &two, &of(&[3.0]), 0);
        assert_eq!((y.shape().unwrap().dims(), values(&state)), (&[0, 2][..], vec![3.0, 3.0]), "{device}");
        rt.shutdown_blocking().unwrap();
    }
}

/// Extents of a convolution of channels: those that are convolved, of the kernel, of each group, and of the batch.
struct Channels {
    extents: Vec<usize>,
    taps: Vec<usize>,
    from: usize,
    to: usize,
    groups: usize,
    batch: usize,
    stride: Vec<usize>,
    dilation: Vec<usize>,
}

impl Channels {
    fn random(dice: &mut Dice, dims: usize) -> Channels {
        let mut some = |of: &[usize]| -> Vec<usize> { (0..dims).map(|_| of[dice.below(of.len())]).collect() };
        let (extents, taps) = (some(&[1, 2, 3, 5, 6]), some(&[1, 1, 2, 3]));
        let (stride, dilation) = (some(&[1, 1, 2]), some(&[1, 1, 2]));
        let mut one = |of: &[usize]| of[dice.below(of.len())];
        let (from, to, groups, batch) = (one(&[1, 1, 2, 3]), one(&[1, 2, 3]), one(&[1, 2, 3]), one(&[1, 2]));
        Channels { extents, taps, from, to, groups, batch, stride, dilation }
    }

    fn shapes(&self) -> [Vec<usize>; 2] {
        let x = self.extents.iter().copied().chain([self.from * self.groups, self.batch]).collect();
        let k = self.taps.iter().copied().chain([self.from, self.to * self.groups]).collect();
        [x, k]
    }

    /// The convolution with zeros around the array: the full one, from an offset on.
    fn plain(&self, extent: Extent, x: &[f64], k: &[f64]) -> (Vec<usize>, Vec<f64>) {
        let dims = self.extents.len();
        let reach: Vec<usize> = (0..dims).map(|d| (self.taps[d] - 1) * self.dilation[d]).collect();
        let (first, count): (Vec<usize>, Vec<usize>) = (0..dims)
            .map(|d| match extent {
                Extent::Full => (0, self.extents[d] + reach[d]),
                Extent::Same => (reach[d].div_ceil(2), self.extents[d]),
                Extent::Valid => (reach[d], self.extents[d].saturating_sub(reach[d])),
            })
            .unzip();
        let kept: Vec<usize> = (0..dims).map(|d| count[d].div_ceil(self.stride[d])).collect();
        let split = |mut place: usize, extents: &[usize]| -> Vec<usize> {
            extents.iter().map(|&n| (place % n, place /= n).0).collect()
        };
        let (places, taps, inputs): (usize, usize, usize) =
            (kept.iter().product(), self.taps.iter().product(), self.extents.iter().product());
        let mut out = Vec::new();
        for n in 0..self.batch {
            for o in 0..self.to * self.groups {
                for place in 0..places {
                    let at = split(place, &kept);
                    let mut sum = 0.0;
                    for c in 0..self.from {
                        for tap in 0..taps {
                            let by = split(tap, &self.taps);
                            let from = (0..dims).rev().try_fold(0, |place, d| {
                                let i = (first[d] + at[d] * self.stride[d]).checked_sub(by[d] * self.dilation[d])?;
                                (i < self.extents[d]).then_some(place * self.extents[d] + i)
                            });
                            let channel = c + self.from * (o / self.to);
                            let own = k[tap + taps * (c + self.from * o)];
                            sum += from.map_or(0.0, |i| x[i + inputs * (channel + self.from * self.groups * n)] * own);
                        }
                    }
                    out.push(sum);
                }
            }
        }
        let mut shape: Vec<usize> = kept.into_iter().chain([self.to * self.groups, self.batch]).collect();
        while shape.len() > 2 && shape.last() == Some(&1) {
            shape.pop();
        }
        (shape, out)
    }
}

#[test]
fn convolutions_of_channels_agree_with_plain_loops() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let mut dice = Dice(91);
        for round in 0..if device == "gpu" { rounds(6, 20) } else { rounds(40, 120) } {
            let dims = 1 + dice.below(3);
            let case = Channels::random(&mut dice, dims);
            let dtype = [DType::F32, DType::F64, DType::I32][dice.below(3)];
            let [x, k] = case.shapes().map(|shape| Plain::random(&mut dice, shape, dtype, false));
            let extent = [Extent::Full, Extent::Same, Extent::Valid][dice.below(3)];
            let how = Convolution::new(extent).stride(&case.stride).dilation(&case.dilation);
            let what = format!("{device}, round {round}, {dtype}, {:?} by {:?}, {how:?}", x.shape, k.shape);
            let (shape, expected) = case.plain(extent, &x.data, &k.data);
            let [array, kernel] = [&x, &k].map(|of| of.array(&s));
            let y = array.convolve_channels(&kernel, dims, case.groups, &how);
            // Elements are quarters of small integers, whose sums are exact.
            assert_close(&what, &y, &shape, &expected, 0.0);
            let mirrored = (0..dims).fold(kernel, |kernel, dim| kernel.flip(dim));
            let y = array.correlate_channels(&mirrored, dims, case.groups, &how);
            assert_close(&what, &y, &shape, &expected, 0.0);
        }
        rt.shutdown_blocking().unwrap();
    }
}

/// A kernel of more than 64 elements, and padding by other elements than zeros: each group and each pair of channels is
/// a plain convolution.
#[test]
fn convolutions_of_channels_are_sums_of_convolutions() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let sum = |x: &Array, k: &Array, how: &Convolution, (from, to, groups): (usize, usize, usize)| -> Vec<f64> {
            let channel = |o: usize| {
                let parts = (0..from).map(|c| {
                    let read = c + from * (o / to);
                    let own = k
                        .slice((.., .., c..c + 1, o..o + 1))
                        .reshape([k.shape().unwrap().dim(0), k.shape().unwrap().dim(1)]);
                    values(&x.slice((.., .., read..read + 1)).convolve_by(&own, how))
                });
                parts.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect()).unwrap()
            };
            (0..to * groups).flat_map(channel).collect()
        };
        for (sides, from, to, groups) in [([9, 8], 1, 1, 3), ([9, 8], 2, 1, 2), ([3, 3], 1, 2, 2), ([3, 1], 3, 2, 1)] {
            let x = s.randn::<f64>([20, 17, from * groups]);
            let k = s.randn::<f64>([sides[0], sides[1], from, to * groups]);
            for padding in [Padding::Reflect, Padding::Constant(1.5)] {
                let how = Convolution::new(Extent::Same).padding(padding).stride(&[2, 1]);
                let y = x.convolve_channels(&k, 2, groups, &how);
                let expected = sum(&x, &k, &how, (from, to, groups));
                let shape = [10, 17, to * groups];
                let shape = if to * groups == 1 { &shape[..2] } else { &shape[..] };
                assert_close(&format!("{device}, {sides:?}, {padding:?}"), &y, shape, &expected, 1e-11);
            }
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn channels_that_do_not_fit_are_faults() {
    let rt = common::host();
    let s = session(&rt);
    let how = Convolution::new(Extent::Same);
    let kind = |s: &Session, x: &[usize], k: &[usize], dims, groups, how: &Convolution| {
        s.zeros::<f64>(x).convolve_channels(&s.zeros::<f64>(k), dims, groups, how).error().map(|error| error.kind())
    };
    let shape = Some(ErrorKind::Shape);
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 1, 3, &how), None);
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 1, 2, &how), shape, "too few channels in a group");
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 5], 1, 3, &how), shape, "no multiple of the groups");
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6, 2], 1, 3, &how), shape, "a dimension too many");
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 1, 0, &how), Some(ErrorKind::Argument));
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 0, 3, &how), Some(ErrorKind::Argument));
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 1, 3, &how.clone().stride(&[1, 2])), Some(ErrorKind::Argument));
    assert_eq!(kind(&s, &[8, 6], &[3, 2, 6], 1, 3, &how.clone().stride(&[0])), Some(ErrorKind::Argument));
    let empty = s.zeros::<f64>([8, 6, 0]).convolve_channels(&s.zeros::<f64>([3, 2, 6]), 1, 3, &how);
    assert_eq!(empty.shape().unwrap().dims(), [8, 6, 0]);
    assert_eq!(values(&s.ones::<f64>([2, 2]).convolve_channels(&s.zeros::<f64>([0, 2, 1]), 1, 1, &how)), [0.0, 0.0]);
    rt.shutdown_blocking().unwrap();
}
