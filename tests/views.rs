//! Programs of finite differences: shifted views, assigned slices, boundaries. Results are those of plain loops, a step
//! takes few kernels, and the parts of a long loop are planned once.

mod common;
use common::{counted, session, unfolded, wait};
use tidemill::{Array, DType, Session, Stats};

/// Whole numbers without a pattern. Sums of them are exact in any order.
fn numbers(elements: usize) -> Vec<f64> {
    (0..elements as u64).map(|k| ((k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000) as f64 - 500.0).collect()
}

fn values(y: &Array) -> Vec<f64> {
    wait(y.gather_any()).unwrap().to_f64()
}

/// The fields of a wave in a box (Yee's scheme) after some steps of whole numbers; `n` rows, `m` columns.
fn wave(s: &Session, (n, m): (usize, usize), steps: usize, dtype: DType) -> Array {
    let zeros = |shape: [usize; 2]| s.zeros::<f64>(shape).cast_to(dtype);
    let (mut ez, mut hx, mut hy) = (zeros([n, m]), zeros([n, m - 1]), zeros([n - 1, m]));
    let sigma = s.from_vec((0..n * m).map(|k| (k % 2) as f64 + 1.0).collect::<Vec<f64>>(), [n, m]).unwrap();
    let sigma = sigma.cast_to(dtype);
    let (rows, columns) = (1..n - 1, 1..m - 1);
    for step in 0..steps {
        hx = &hx - (ez.slice((.., 1..m)) - ez.slice((.., 0..m - 1)));
        hy = &hy + (ez.slice((1..n, ..)) - ez.slice((0..n - 1, ..)));
        let curl = hy.slice((1..n - 1, columns.clone()))
            - hy.slice((0..n - 2, columns.clone()))
            - hx.slice((rows.clone(), 1..m - 1))
            + hx.slice((rows.clone(), 0..m - 2));
        ez = ez.assign((rows.clone(), columns.clone()), ez.slice((rows.clone(), columns.clone())) + curl * 0.5);
        ez = &ez * &sigma;
        let one = (n / 2..n / 2 + 1, m / 2..m / 2 + 1);
        ez = ez.assign(one.clone(), ez.slice(one) + (step as f64 * 8.0));
    }
    ez
}

/// The same fields by plain loops.
fn plain_wave((n, m): (usize, usize), steps: usize) -> Vec<f64> {
    let (mut ez, mut hx, mut hy) = (vec![0.0; n * m], vec![0.0; n * (m - 1)], vec![0.0; (n - 1) * m]);
    for step in 0..steps {
        for k in 0..n * (m - 1) {
            hx[k] -= ez[k + n] - ez[k];
        }
        for (j, i) in (0..m).flat_map(|j| (0..n - 1).map(move |i| (j, i))) {
            hy[j * (n - 1) + i] += ez[j * n + i + 1] - ez[j * n + i];
        }
        for (j, i) in (1..m - 1).flat_map(|j| (1..n - 1).map(move |i| (j, i))) {
            let curl = hy[j * (n - 1) + i] - hy[j * (n - 1) + i - 1] - hx[j * n + i] + hx[(j - 1) * n + i];
            ez[j * n + i] += curl * 0.5;
        }
        for (k, e) in ez.iter_mut().enumerate() {
            *e *= (k % 2) as f64 + 1.0;
        }
        ez[m / 2 * n + n / 2] += step as f64 * 8.0;
    }
    ez
}

#[test]
fn a_wave_in_a_box_is_that_of_plain_loops_for_columns_of_any_height() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        // Columns of a few rows, of one block, and of several blocks. There are only so many steps that f32 holds the
        // numbers exactly.
        for (n, m, dtype) in [(5, 9, DType::F64), (37, 41, DType::F32), (301, 12, DType::F64), (2050, 7, DType::F32)] {
            let ez = wave(&s, (n, m), 5, dtype);
            assert_eq!(values(&ez), plain_wave((n, m), 5), "{n} x {m} {dtype} on {device}");
        }
    }
}

#[test]
fn a_step_of_a_wave_takes_three_kernels_and_its_loop_is_planned_once() {
    let (n, m, steps) = (40, 30, 150);
    for (device, rt) in unfolded(|b| b) {
        let run = || {
            let (_, did): (_, Stats) =
                counted(&rt, || wait(wave(&session(&rt), (n, m), steps, DType::F32).eval()).unwrap());
            did
        };
        let first = run();
        let per_step = |count: u64| count as f64 / steps as f64;
        assert!(per_step(first.kernels) <= 3.2, "{device}: {} kernels a step", per_step(first.kernels));
        let state = (4 * n * m) as f64;
        assert!(per_step(first.bytes_kernel_read) <= 8.3 * state, "{device}: {first}");
        assert!(per_step(first.bytes_kernel_written) <= 3.2 * state, "{device}: {first}");
        // Regions begin at the same statement each time, so few of them are new.
        assert!(first.plan_cache_hits >= 1 && first.plan_cache_misses <= 3, "{device}: {first}");
        assert!(first.pipelines_compiled <= 40, "{device}: {first}");
        let again = run();
        assert_eq!((again.plan_cache_misses, again.pipelines_compiled), (0, 0), "{device}: {again}");
        assert_eq!((again.kernels, again.regions), (first.kernels, first.regions), "{device}");
    }
}

#[test]
fn shifts_around_the_edges_and_their_sums_are_those_of_plain_loops() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        for (dims, dtype) in [
            ([1031, 3, 1], DType::F32),
            ([258, 5, 3], DType::F64),
            ([6, 7, 5], DType::F32),
            ([1, 300, 2], DType::I32),
            ([3, 2, 400], DType::I64),
            ([2, 2, 2], DType::F32),
        ] {
            let x = numbers(dims.iter().product());
            let array = s.from_slice(&x, dims).unwrap().cast_to(dtype);
            let shifts: [[i64; 3]; 5] = [[1, 0, 0], [-1, 0, 0], [0, 1, -1], [5, -2, 1], [-300, 1, 1000]];
            let mut sum = array.circshift(&shifts[0]);
            for shift in &shifts[1..] {
                sum += array.circshift(shift);
            }
            let twice = sum.circshift(&[-2, 1, 0]) + &array;
            let at = |[i, j, k]: [i64; 3]| -> f64 {
                let [i, j, k] = [(i, 0), (j, 1), (k, 2)].map(|(p, d)| p.rem_euclid(dims[d] as i64) as usize);
                x[i + dims[0] * (j + dims[1] * k)]
            };
            let summed =
                |p: [i64; 3]| -> f64 { shifts.iter().map(|by| at([p[0] - by[0], p[1] - by[1], p[2] - by[2]])).sum() };
            let expected: Vec<f64> = (0..x.len())
                .map(|e| [e % dims[0], e / dims[0] % dims[1], e / dims[0] / dims[1]].map(|p| p as i64))
                .map(|p| summed([p[0] + 2, p[1] - 1, p[2]]) + at(p))
                .collect();
            assert_eq!(values(&twice), expected, "{dims:?} {dtype} on {device}");
        }
    }
}

#[test]
fn what_a_slice_leaves_out_is_not_touched_by_what_replaces_the_rest() {
    // NaN outside of the slice stays there, and none spreads into the slice.
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        for (n, m) in [(300, 9), (7, 5), (1500, 4)] {
            let mut x: Vec<f32> = numbers(n * m).iter().map(|&v| v as f32).collect();
            for j in 0..m {
                (x[j * n], x[j * n + n - 1]) = (f32::NAN, f32::INFINITY);
            }
            let a = s.from_slice(&x, [n, m]).unwrap();
            let other = s.from_slice(&x[..(n - 2) * (m - 1)], [n - 2, m - 1]).unwrap();
            // The base is computed in the same kernel, so the assignment is a select.
            let base = &a * 2.0;
            let y = base.assign((1..n - 1, 1..m), a.slice((1..n - 1, 0..m - 1)) - &other);
            let z = y.assign((tidemill::step(.., 3), 2), 5.0) + 1.0;
            let got = values(&z);
            for (e, &got) in got.iter().enumerate() {
                let (i, j) = (e % n, e / n);
                let inner = (1..n - 1).contains(&i) && j >= 1;
                let y = if inner { x[(j - 1) * n + i] - x[(j - 1) * (n - 2) + i - 1] } else { x[e] * 2.0 };
                let expected = if j == 2 && i % 3 == 0 { 6.0 } else { y + 1.0 } as f64;
                let same = got == expected || (got.is_nan() && expected.is_nan());
                assert!(same, "({i}, {j}) of {n} x {m} on {device}: {got}, expected {expected}");
            }
        }
    }
}

#[test]
fn one_element_that_is_set_in_each_step_of_a_loop_is_computed_with_the_rest() {
    let (n, m, steps) = (270, 4, 40);
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let mut expected = numbers(n * m);
        let mut x = s.from_slice(&expected, [n, m]).unwrap();
        let (_, did) = counted(&rt, || {
            for step in 0..steps {
                let one = (step..step + 1, 2..3);
                x = 3.0 - &x;
                x = x.assign(one.clone(), x.slice(one) + step as f64);
            }
            wait(x.eval()).unwrap()
        });
        for step in 0..steps {
            expected.iter_mut().for_each(|x| *x = 3.0 - *x);
            expected[2 * n + step] += step as f64;
        }
        assert_eq!(values(&x), expected, "{device}");
        // A kernel holds few steps, because values that one step computes twice would be computed four times by the
        // next.
        assert!((2..=steps as u64).contains(&did.kernels), "{device}: {did}");
    }
}

/// A transposed operand that is also indexed or expanded is not read as a plain transpose, even if the sizes would fit.
#[test]
fn operands_that_are_transposed_and_indexed_are_read_element_by_element() {
    for (device, runtime) in unfolded(|b| b) {
        let session = session(&runtime);
        let plain: Vec<f32> = (0..300 * 70).map(|i| (i * 37 % 1009) as f32).collect();
        let a = session.from_slice(&plain, [300, 70]).unwrap() + 0.0;
        // For each element, a row of the transpose is chosen.
        let choice: Vec<i32> = (0..70 * 300).map(|i| i * 11 % 70).collect();
        let chosen = a.t().take_along(0, &session.from_slice(&choice, [70, 300]).unwrap());
        let chosen = chosen.gather_blocking::<f32>().unwrap();
        // The columns are reordered, and then transposed.
        let order: Vec<i32> = (0..70).map(|i| i * 29 % 70).collect();
        let reordered = a.take_dim(1, &session.from_slice(&order, [70, 1]).unwrap()).t();
        let reordered = reordered.gather_blocking::<f32>().unwrap();
        // A row and a column expand to a space with as many elements as `wide`.
        let wide = session.from_slice(&plain[..20_000], [200, 100]).unwrap() + 0.0;
        let x = session.from_slice(&plain[..100], [100, 1]).unwrap() + 0.0;
        let sums = (&x + wide.slice((.., 2..3)).t()).gather_blocking::<f32>().unwrap();
        for i in 0..70 {
            for j in 0..300 {
                assert_eq!(chosen[[i, j]], plain[j + 300 * choice[i + 70 * j] as usize], "chosen {i}, {j} on {device}");
                assert_eq!(reordered[[i, j]], plain[j + 300 * order[i] as usize], "reordered {i}, {j} on {device}");
            }
        }
        for i in 0..100 {
            for j in 0..200 {
                assert_eq!(sums[[i, j]], plain[i] + plain[j + 400], "sums {i}, {j} on {device}");
            }
        }
    }
}
