//! Scatters, which combine values into an array at indices: compared with plain loops on random shapes and every
//! device; their bits, their errors, their numbers of kernels, and refused arguments.

mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use common::{assert_array, counted, runtimes, session, unfolded, values};
use programs::Dice;
use tidemill::testing::rounds;
use tidemill::{Array, DType, ErrorKind, Session};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// A scatter: its name, its linear form, its form along a dimension, and its combination of two numbers.
type Scatter = (
    &'static str,
    fn(&Array, &Array, &Array) -> Array,
    fn(&Array, usize, &Array, &Array) -> Array,
    fn(f64, f64) -> f64,
);

const SCATTERS: [Scatter; 4] = [
    ("add", |x, i, v| x.scatter_add(i, v), |x, d, i, v| x.scatter_add_dim(d, i, v), |a, b| a + b),
    ("mul", |x, i, v| x.scatter_mul(i, v), |x, d, i, v| x.scatter_mul_dim(d, i, v), |a, b| a * b),
    ("min", |x, i, v| x.scatter_min(i, v), |x, d, i, v| x.scatter_min_dim(d, i, v), f64::min),
    ("max", |x, i, v| x.scatter_max(i, v), |x, d, i, v| x.scatter_max_dim(d, i, v), f64::max),
];

const DTYPES: [DType; 7] = [DType::F64, DType::F32, DType::I32, DType::U32, DType::U8, DType::I64, DType::Bool];

/// A small whole number that the dtype holds; for floats, sometimes NaN or infinity.
fn number(dice: &mut Dice, dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::F64 if dice.one_in(9) => [NAN, INF, -INF][dice.below(3)],
        DType::F32 | DType::F64 | DType::I32 | DType::I64 => dice.below(5) as f64 - 2.0,
        DType::U8 | DType::U32 => dice.below(3) as f64,
        _ => dice.below(2) as f64,
    }
}

fn array(s: &Session, data: &[f64], shape: &[usize], dtype: DType) -> Array {
    s.from_slice(data, shape).unwrap().cast_to(dtype)
}

/// The place in memory of slice `i` along `dim` for each element of a part with `count` slices there.
fn places(shape: &[usize], dim: usize, index: &[usize]) -> Vec<usize> {
    let inner: usize = shape[..dim].iter().product();
    let outer: usize = shape[dim + 1..].iter().product();
    let slice = |o: usize, i: usize| (0..inner).map(move |e| e + inner * (i + shape[dim] * o));
    (0..outer).flat_map(|o| index.iter().flat_map(move |&i| slice(o, i))).collect()
}

#[test]
fn scatters_agree_with_plain_loops_on_every_device_and_dtype() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let mut dice = Dice(30);
        for round in 0..if device == "gpu" { rounds(16, 40) } else { rounds(150, 400) } {
            let dtype = DTYPES[dice.below(DTYPES.len())];
            let (name, linear, along, of_two) = SCATTERS[dice.below(SCATTERS.len())];
            let shape: Vec<usize> =
                (0..3).map(|_| [1, 1, 2, 3, 4, 9, 0][dice.below(if round % 8 == 0 { 7 } else { 6 })]).collect();
            let elements: usize = shape.iter().product();
            let dim = dice.below(3);
            let extent = if dice.one_in(3) { elements } else { shape[dim] };
            let count = if extent == 0 { 0 } else { [0, 1, 2, 5, 17, 70][dice.below(6)] };
            let index: Vec<usize> = (0..count).map(|_| dice.below(extent)).collect();
            let base: Vec<f64> = (0..elements).map(|_| number(&mut dice, dtype)).collect();
            let is_linear = extent == elements && dice.one_in(2) || extent != shape[dim];
            let places = if is_linear { index.clone() } else { places(&shape, dim, &index) };
            let given: Vec<f64> = match dice.one_in(5) {
                true => vec![number(&mut dice, dtype)],
                false => places.iter().map(|_| number(&mut dice, dtype)).collect(),
            };
            let mut expected = base.clone();
            for (n, &place) in places.iter().enumerate() {
                let value = if given.len() == 1 { given[0] } else { given[n] };
                expected[place] = of_two(expected[place], value);
            }
            if dtype == DType::Bool {
                expected.iter_mut().for_each(|e| *e = (*e != 0.0) as u8 as f64);
            }
            // Sums and products of 70 integers may exceed the range of u8 and i32. They saturate, as the array's
            // arithmetic does.
            let (least, most) = match dtype {
                DType::U8 => (0.0, 255.0),
                DType::U32 => (0.0, u32::MAX as f64),
                DType::I32 => (i32::MIN as f64, i32::MAX as f64),
                DType::I64 => (i64::MIN as f64, i64::MAX as f64),
                _ => (-INF, INF),
            };
            if name == "mul" && expected.iter().any(|e| *e <= least || *e >= most || e.abs() > 1e7) && count > 17 {
                continue;
            }
            let mut part = shape.clone();
            part[dim] = count;
            let (given_shape, index_dtype) = (
                if given.len() == 1 {
                    vec![1, 1]
                } else if is_linear {
                    vec![count, 1]
                } else {
                    part
                },
                [DType::U32, DType::I32, DType::I64, DType::U8][dice.below(if extent > 256 { 3 } else { 4 })],
            );
            let indices: Vec<f64> = index.iter().map(|&i| i as f64).collect();
            let x = array(&s, &base, &shape, dtype);
            let i = array(&s, &indices, &[count, 1], index_dtype);
            let v = array(&s, &given, &given_shape, dtype);
            let got = if is_linear { linear(&x, &i, &v) } else { along(&x, dim, &i, &v) };
            let what = format!(
                "{name} of {dtype} on {device}, round {round}: {shape:?}, {index:?}, dim {dim} linear {is_linear}"
            );
            assert_eq!(got.dtype().unwrap(), dtype, "{what}");
            let own = x.shape().unwrap();
            assert_array(&what, &got, own.dims(), &expected, 0.0);
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn integers_saturate_at_each_step_and_nan_loses_against_numbers() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let index = s.from_slice(&[0u32, 0, 1], 3).unwrap();
        let x = s.from_slice(&[200u8, 1], 2).unwrap();
        let sum = x.scatter_add(&index, s.from_slice(&[100u8, 3, 4], 3).unwrap());
        assert_array(&device, &sum, &[2, 1], &[255.0, 5.0], 0.0);
        let x = s.from_slice(&[NAN, NAN], 2).unwrap();
        let least = x.scatter_min(&index, s.from_slice(&[NAN, 3.0, NAN], 3).unwrap());
        assert_array(&device, &least, &[2, 1], &[3.0, NAN], 0.0);
        let most = x.scatter_max(&index, 2.0);
        assert_array(&device, &most, &[2, 1], &[2.0, 2.0], 0.0);
        let totals = s.zeros::<f64>([2, 1]).scatter_add(&index, s.from_slice(&[NAN, 3.0, INF], 3).unwrap());
        assert_array(&device, &totals, &[2, 1], &[NAN, INF], 0.0);
        // Elements without an index keep their bits.
        let x = s.from_slice(&[-0.0f64, 1.0], 2).unwrap();
        let kept = x.scatter_add(&s.from_slice(&[1u32], 1).unwrap(), 1.0);
        assert_eq!(
            values(&kept).iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            [(-0.0f64).to_bits(), 2.0f64.to_bits()]
        );
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn sums_of_many_values_keep_their_bound_and_their_bits() {
    for (device, rt) in unfolded(|b| b) {
        for count in [1000usize, 20_000] {
            let mut dice = Dice(count as u64);
            let bins = 37;
            let index: Vec<u32> = (0..count).map(|_| (dice.below(bins) * dice.below(2)) as u32).collect();
            let data: Vec<f32> = (0..count).map(|_| dice.below(1 << 24) as f32 / 7.0 - 1e6).collect();
            let mut exact = vec![(0.0f64, 0.0f64, 1usize); bins];
            for (&i, &v) in index.iter().zip(&data) {
                let (sum, magnitude, terms) = &mut exact[i as usize];
                (*sum, *magnitude, *terms) = (*sum + f64::from(v), *magnitude + f64::from(v.abs()), *terms + 1);
            }
            let totals = || {
                let s = session(&rt);
                let (index, data) = (s.from_slice(&index, count).unwrap(), s.from_slice(&data, count).unwrap());
                values(&s.zeros::<f32>([bins, 1]).scatter_add(&index, &data))
            };
            let got = totals();
            for (i, (got, (sum, magnitude, terms))) in got.iter().zip(&exact).enumerate() {
                let bound = (4.0 + (*terms as f64).log2()) * f64::from(f32::EPSILON) * magnitude;
                assert!((got - sum).abs() <= bound, "{device}, {count}, bin {i}: {got}, {sum} within {bound}");
            }
            assert_eq!(got, totals(), "{device}: the same bits again");
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn a_scatter_takes_a_kernel_for_each_factor_of_four_beside_its_sort() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let count = 4096usize;
        let index = s.from_vec((0..count).map(|i| (i * 7 % 100) as u32).collect(), count).unwrap();
        let data = s.from_vec((0..count).map(|i| i as f32).collect(), count).unwrap();
        let base = s.zeros::<f32>([100, 1]);
        let (_, stats) = counted(&rt, || values(&base.scatter_add(&index, &data)));
        // The kernels: the sort and its input, six passes over 4^6 indices, the combination with the elements, and the
        // assignment.
        assert_eq!(stats.kernels, 10, "{device}");
        assert!(stats.dispatches <= if device == "gpu" { 16 } else { 0 }, "{device}: {} dispatches", stats.dispatches);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_names_method_and_line() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.zeros::<f64>([3, 2]);
        let (two, ten) = (s.from_slice(&[0u32, 5], 2).unwrap(), s.from_slice(&[0i32, 10, 1], 3).unwrap());
        let three = s.from_slice(&[1.0, 2.0, 3.0], 3).unwrap();
        let refused = |array: Array, op: &str, kind: ErrorKind| {
            let error = array.gather_blocking::<f64>().unwrap_err();
            assert_eq!(error.kind(), kind, "{device}: {error}");
            assert_eq!(error.op(), Some(op), "{device}: {error}");
            assert!(error.location().is_some_and(|at| at.file().ends_with("scatter.rs")), "{error}");
        };
        refused(x.scatter_add(&two, &three), "scatter_add", ErrorKind::Shape);
        refused(
            x.scatter_max_dim(1, &s.from_slice(&[1u32, 0], 2).unwrap(), three.t()),
            "scatter_max_dim",
            ErrorKind::Shape,
        );
        refused(x.scatter_mul_dim(2, &two, &three), "scatter_mul_dim", ErrorKind::Index);
        refused(x.scatter_min(&three, 1.0), "scatter_min", ErrorKind::DType);
        refused(s.zeros::<f64>([0, 2]).scatter_min_dim(0, &two, 1.0), "scatter_min_dim", ErrorKind::Index);
        let faulty = x.scatter_add(&ten, &three).gather_blocking::<f64>().unwrap_err();
        assert_eq!(faulty.kind(), ErrorKind::Index, "{device}: {faulty}");
        assert!(faulty.location().is_some_and(|at| at.file().ends_with("scatter.rs")), "{faulty}");
        let below = s.from_slice(&[-1i64, 1], 2).unwrap();
        let error = x.scatter_mul_dim(0, &below, 2.0).gather_blocking::<f64>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index, "{device}: {error}");
        rt.shutdown_blocking().unwrap();
    }
}
