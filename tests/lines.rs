//! Kernels that hold lines: a fold along neighbours in memory, whose result is combined with the elements of its line,
//! is one kernel that reads each line once. The tests count the GPU's kernels, and compare results with loops in f64.

mod common;
use common::{counted, gpu, session, unfolded, values, wait};
use tidemill::testing::Injection;
use tidemill::{Array, Element, Result, Runtime, Session};

/// Lengths around the limits of an invocation's share, of groups of four, and of workgroups.
const LENGTHS: [usize; 7] = [2, 3, 64, 65, 1000, 5001, 16_384];

/// Varied numbers of both signs.
fn sample(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7919 + 13) % 1009) as f64 / 61.0 - 8.0).collect()
}

fn array<T: Element>(s: &Session, data: &[f64], rows: usize, of: fn(f64) -> T) -> Array {
    let data: Vec<T> = data.iter().map(|&v| of(v)).collect();
    let columns = data.len() / rows.max(1);
    s.from_vec(data, [rows, columns]).unwrap()
}

fn softmax(x: &Array) -> Array {
    let e = (x - x.max_over(0)).exp();
    &e / e.sum(0)
}

fn softmax_of(line: &[f64]) -> Vec<f64> {
    let greatest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = line.iter().map(|v| (v - greatest).exp()).sum();
    line.iter().map(|v| (v - greatest).exp() / sum).collect()
}

fn mean_of(line: &[f64]) -> f64 {
    line.iter().sum::<f64>() / line.len() as f64
}

fn variance_of(line: &[f64]) -> f64 {
    let mean = mean_of(line);
    line.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / line.len() as f64
}

/// A case: its name, a program of one array, and the expected result for a line.
type Case = (&'static str, fn(&Array) -> Array, fn(&[f64]) -> Vec<f64>);

const CASES: [Case; 5] = [
    ("softmax", softmax, softmax_of),
    ("the logarithm of softmax", |x| x - x.logsumexp(0), |line| softmax_of(line).iter().map(|v| v.ln()).collect()),
    (
        "layer norm",
        |x| (x - x.mean(0)) / (x.var_population(0) + 1e-5).sqrt(),
        |line| {
            let (mean, deviation) = (mean_of(line), (variance_of(line) + 1e-5).sqrt());
            line.iter().map(|v| (v - mean) / deviation).collect()
        },
    ),
    (
        "a variance of two passes",
        |x| {
            let d = x - x.mean(0);
            (&d * &d).mean(0) + 0.0 * x
        },
        |line| vec![variance_of(line); line.len()],
    ),
    (
        "unit length",
        |x| x / x.norm(0),
        |line| {
            let norm = line.iter().map(|v| v * v).sum::<f64>().sqrt();
            line.iter().map(|v| v / norm).collect()
        },
    ),
];

#[track_caller]
fn assert_close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1e-3);
        assert!(same, "{what}: {a} is not {b} at {i}");
    }
}

fn by_lines(data: &[f64], length: usize, of: fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    data.chunks(length).flat_map(of).collect()
}

#[test]
fn each_line_is_read_once_and_written_once_by_one_kernel() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    for (name, program, of) in CASES {
        for length in LENGTHS {
            let columns = 7;
            let s = session(&rt);
            let data: Vec<f64> = sample(length * columns).iter().map(|&v| v as f32 as f64).collect();
            let x = array(&s, &data, length, |v| v as f32);
            let what = format!("{name} of lines of {length}");
            let (y, did) = counted(&rt, || {
                let y = program(&x);
                wait(y.eval()).unwrap_or_else(|e| panic!("{what}: {e}"));
                y
            });
            let bytes = 4 * (length * columns) as u64;
            assert_eq!((did.kernels, did.dispatches), (1, 1), "{what}");
            assert_eq!((did.bytes_kernel_read, did.bytes_kernel_written), (bytes, bytes), "{what}");
            assert_close(&what, &values(&y), &by_lines(&data, length, of), 2e-4);
        }
    }
}

#[test]
fn a_variance_of_lines_keeps_its_digits() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    // Scale, offset and first element: numbers far from zero, with an outlier in front, too large for a sum, and too
    // small to be divided. The last is a constant.
    let scales = [(1.0, 10_000.0, 0.0), (1.0, 0.0, 1e4), (1e16, 3e37, 0.0), (1e-18, 0.0, 0.0), (0.0, 0.1, 0.0)];
    for length in [2, 10, 333, 16_384] {
        for (scale, base, outlier) in scales {
            let mut data: Vec<f64> = sample(length * 2).iter().map(|v| ((v * scale + base) as f32) as f64).collect();
            data[0] += outlier;
            let s = session(&rt);
            let x = array(&s, &data, length, |v| v as f32);
            let (y, did) = counted(&rt, || {
                let y = x.var_population(0);
                wait(y.eval()).unwrap();
                y
            });
            let what = format!("{length} of {scale} about {base}");
            assert_eq!((did.kernels, did.dispatches), (1, 1), "{what}");
            let expected: Vec<f64> = data.chunks(length).map(variance_of).collect();
            for (got, expected) in values(&y).iter().zip(expected) {
                assert!((got - expected).abs() <= 1e-5 * expected, "{what}: {got} is not {expected}");
            }
        }
    }
}

#[test]
fn lines_of_f64_are_held_up_to_half_the_length() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    if !rt.device("gpu").unwrap().features.f64 {
        return;
    }
    for (length, kernels) in [(5, 1), (63, 1), (1025, 1), (8192, 1), (8193, 3)] {
        let s = session(&rt);
        let data = sample(length * 3);
        let x = array(&s, &data, length, |v| v);
        let (y, did) = counted(&rt, || {
            let y = softmax(&x);
            wait(y.eval()).unwrap();
            y
        });
        assert_eq!(did.kernels, kernels, "lines of {length}");
        assert_close(&format!("f64, {length}"), &values(&y), &by_lines(&data, length, softmax_of), 1e-12);
    }
}

#[test]
fn what_does_not_fit_keeps_its_kernels() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    let kernels = |rt: &Runtime, rows: usize, columns: usize, program: fn(&Array) -> Array| {
        let s = session(rt);
        let x = array(&s, &sample(rows * columns), rows, |v| v as f32);
        counted(rt, || wait(program(&x).eval()).unwrap()).1.kernels
    };
    assert_eq!(kernels(&rt, 16_385, 2, softmax), 3, "a line that is too long");
    let across: fn(&Array) -> Array = |x| x - x.max_over(1);
    assert_eq!(kernels(&rt, 100, 100, across), 2, "lines of elements that are apart");
    let bent: fn(&Array) -> Array = |x| (x / x.sum(0)).flip(0) + x;
    assert_eq!(kernels(&rt, 100, 100, bent), 2, "elements of a line in another order");
    let pieces = Injection { span_shift: Some(13), segment_shift: Some(13), ..Injection::default() };
    let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(pieces)) else { return };
    assert_eq!(kernels(&rt, 1000, 20, softmax), 3, "an array in pieces");
}

#[test]
fn nan_and_infinities_do_what_they_do_in_kernels_of_their_own() {
    let inf = f64::INFINITY;
    let mut lines = vec![vec![-inf; 6], vec![1.0, f64::NAN, 3.0, -2.0, 5.0, 0.0], vec![1.0, inf, 3.0, inf, 0.0, -inf]];
    lines.extend([vec![-inf, 0.0, 1.0, -inf, 2.0, 3.0], vec![3e18, -3e18, 2e18, 0.0, 1.0, -1.0], vec![0.0; 6]]);
    let data = lines.concat();
    let mut all: Vec<Vec<Vec<f64>>> = Vec::new();
    for (_, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = array(&s, &data, 6, |v| v as f32);
        all.push(CASES.iter().map(|(_, program, _)| values(&program(&x))).collect());
    }
    for other in &all[1..] {
        for ((name, ..), (got, expected)) in CASES.iter().zip(other.iter().zip(&all[0])) {
            assert_close(name, got, expected, 1e-5);
        }
    }
    assert!(all[0][0][..12].iter().all(|v| v.is_nan()), "softmax of -inf alone, and of NaN");
}

#[test]
fn what_is_the_same_all_along_a_line_is_stored_at_each_element() {
    for (device, rt) in unfolded(|b| b) {
        for rows in [4usize, 101, 5001] {
            let s = session(&rt);
            let data: Vec<f64> = sample(rows * 3).into_iter().map(|v| f64::from(v as f32)).collect();
            let x = array(&s, &data, rows, |v| v as f32);
            let spread = x.max_over(0).broadcast_to([rows, 3]);
            let beside = &x - &spread;
            let (got, beside) = (values(&spread), values(&beside));
            let expected =
                by_lines(&data, rows, |line| vec![line.iter().copied().fold(f64::NEG_INFINITY, f64::max); line.len()]);
            assert_close(&format!("{rows} on {device}"), &got, &expected, 1e-6);
            let differences: Vec<f64> = data.iter().zip(&expected).map(|(v, most)| v - most).collect();
            assert_close(&format!("{rows} beside, on {device}"), &beside, &differences, 1e-5);
        }
    }
}

#[test]
fn what_is_checked_of_a_line_is_not_checked_of_lines_that_are_not_there() {
    // A workgroup could hold more lines than there are, so it has lanes without a line.
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = array(&s, &sample(15), 5, |v| v.abs() as f32 + 1.0);
        let sums = x.sum(0);
        let y = &x / sums.ensure(&sums.gt(0.0), "a sum is positive");
        let got = values(&y);
        assert!((got[..5].iter().sum::<f64>() - 1.0).abs() < 1e-5, "{device}: {got:?}");
        let wrong = &x / sums.ensure(&sums.gt(1e9), "a sum is large");
        let error = wait(wrong.gather::<f32>()).unwrap_err();
        assert!(error.message().contains("a sum is large"), "{device}: {error}");
    }
}

#[test]
fn empty_lines_and_no_lines() {
    for (device, rt) in unfolded(|b| b) {
        for shape in [[0usize, 5], [5, 0], [0, 0]] {
            let s = session(&rt);
            let x = s.zeros::<f32>(shape);
            let y = &x / x.sum(0);
            assert_eq!(y.shape().unwrap().dims(), shape, "{device}");
            assert!(values(&y).is_empty(), "{device}");
        }
    }
}

#[test]
fn views_several_outputs_and_what_is_gathered_beside() -> Result<()> {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return Ok(()) };
    let s = session(&rt);
    let (rows, columns) = (130, 37);
    let data: Vec<f64> = sample(rows * columns).iter().map(|&v| v as f32 as f64).collect();
    let x = array(&s, &data, rows, |v| v as f32);
    let expected = by_lines(&data, rows, softmax_of);

    // The sum, the greatest element and the softmax are all gathered.
    let (all, did) = counted(&rt, || {
        let greatest = x.max_over(0);
        let e = (&x - &greatest).exp();
        let sum = e.sum(0);
        let y = &e / &sum;
        wait(async { futures::try_join!(greatest.eval(), sum.eval(), y.eval()) }).unwrap();
        (greatest, sum, y)
    });
    assert_eq!(did.kernels, 1, "three outputs");
    assert_close("softmax", &values(&all.2), &expected, 1e-5);
    let greatest: Vec<f64> = data.chunks(rows).map(|line| line.iter().copied().fold(f64::MIN, f64::max)).collect();
    assert_eq!(values(&all.0), greatest);
    let sum = |(line, greatest): (&[f64], &f64)| line.iter().map(|v| (v - greatest).exp()).sum();
    let sums: Vec<f64> = data.chunks(rows).zip(&greatest).map(sum).collect();
    assert_close("sums", &values(&all.1), &sums, 1e-5);

    // The lines of a transposed view are read across memory, once.
    let turned: Vec<f64> = (0..rows * columns).map(|i| data[i / columns + i % columns * rows]).collect();
    let turned_in = array(&s, &turned, columns, |v| v as f32);
    let (y, did) = counted(&rt, || {
        let y = softmax(&turned_in.t());
        wait(y.eval()).unwrap();
        y
    });
    assert_eq!(did.kernels, 1, "a view");
    assert_eq!(did.bytes_kernel_read, 4 * (rows * columns) as u64, "a view");
    assert_close("of a view", &values(&y), &expected, 1e-5);

    // A gradient of softmax reads two arrays, and weights that are the same for every line.
    let (y, dy) = (array(&s, &expected, rows, |v| v as f32), &x);
    let w = s.from_vec((0..rows).map(|i| 1.0 + i as f32 / 100.0).collect::<Vec<f32>>(), [rows, 1])?;
    let (dx, did) = counted(&rt, || {
        let dx = &y * (dy - (&y * dy).sum(0)) * &w;
        wait(dx.eval()).unwrap();
        dx
    });
    assert_eq!(did.kernels, 1, "a gradient");
    let gradient: Vec<f64> = (0..columns)
        .flat_map(|c| {
            let at = c * rows..(c + 1) * rows;
            let dot: f64 = expected[at.clone()].iter().zip(&data[at.clone()]).map(|(a, b)| a * b).sum();
            at.map(|i| expected[i] * (data[i] - dot) * (1.0 + (i % rows) as f64 / 100.0)).collect::<Vec<f64>>()
        })
        .collect();
    assert_close("a gradient", &values(&dx), &gradient, 1e-3);
    Ok(())
}

#[test]
fn explain_names_the_lines() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    let s = session(&rt);
    let x = array(&s, &sample(300), 100, |v| v as f32);
    let text = wait(softmax(&x).explain()).unwrap();
    assert!(text.contains("kernel 1: lines 3 x 100: 5 op(s): "), "{text}");
    assert!(text.contains("reads 1200 B, writes 1200 B"), "{text}");
}

#[test]
fn the_same_lines_have_the_same_bits_in_place_and_beside_others() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    let s = session(&rt);
    let data = sample(1000 * 9);
    let x = array(&s, &data, 1000, |v| v as f32);
    let kept = values(&softmax(&x));
    // This is the last use of the array, so its memory becomes the result's.
    assert_eq!(values(&softmax(&(array(&s, &data, 1000, |v| v as f32) + 0.0))), kept);
    let some = values(&softmax(&array(&s, &data[..3000], 1000, |v| v as f32)));
    assert_eq!(some, kept[..3000]);
}
