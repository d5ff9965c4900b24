//! Searches in sorted elements, counts, and arrays as sets, compared with plain loops on random shapes, with NaN,
//! infinities and empty arrays, on every device and dtype.

#[path = "common/cases.rs"]
mod cases;
mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use cases::{DTYPES, INF, Plain, each_case, order};
use common::{assert_array, counted, runtimes, session, unfolded, values, wait};
use programs::Dice;
use tidemill::DType;

#[test]
fn searches_agree_with_plain_loops() {
    each_case(5, true, |what, s, dice, x, dim| {
        let mut values_shape = x.shape.clone();
        values_shape[dim] = dice.below(7);
        let other = DTYPES[dice.below(DTYPES.len())];
        let v = Plain::random(dice, values_shape, other, true);
        let (table, array) = (x.array(s).sort(dim).0, v.array(s));
        let all = x.array(s).flatten().sort(0).0;
        for right in [false, true] {
            let before = |line: &[f64], v: f64| {
                let lies = |&e: &&f64| if right { order(e, &v).is_le() } else { order(e, &v).is_lt() };
                line.iter().filter(lies).count() as f64
            };
            let got = all.search_sorted(&array, right);
            let expected: Vec<f64> = v.data.iter().map(|&v| before(&x.data, v)).collect();
            assert_array(what, &got, array.shape().unwrap().dims(), &expected, 0.0);
            let lines = x.lines(dim);
            let next = std::cell::Cell::new(0);
            let (shape, expected) = v.each(dim, v.shape[dim], |of| {
                let line = &lines[next.replace(next.get() + 1)];
                of.iter().map(|&v| before(line, v)).collect()
            });
            assert_array(what, &table.search_sorted_dim(dim, &array, right), &shape, &expected, 0.0);
        }
    });
}

#[test]
fn histograms_agree_with_plain_loops() {
    each_case(6, true, |what, s, dice, x, _| {
        let count = 2 + dice.below(5);
        let mut edges: Vec<f64> = (0..count).map(|_| [-INF, -2.0, 0.0, 1.25, 3.0, 6.0, INF][dice.below(7)]).collect();
        edges.sort_by(order);
        let lies = |v: f64, i: usize| edges[i] <= v && (v < edges[i + 1] || i + 2 == count && v == edges[i + 1]);
        let counted = |i: usize| x.data.iter().filter(|&&v| lies(v, i)).count() as f64;
        let expected: Vec<f64> = (0..count - 1).map(counted).collect();
        let got = x.array(s).histogram(&s.from_slice(&edges, count).unwrap());
        assert_array(what, &got, &[count - 1, 1], &expected, 0.0);
    });
}

#[test]
fn members_agree_with_plain_loops() {
    each_case(7, true, |what, s, dice, x, _| {
        let (count, other) = (dice.below(9), DTYPES[dice.below(DTYPES.len())]);
        let set = Plain::random(dice, vec![count, 1, 1], other, true);
        let expected: Vec<f64> = x.data.iter().map(|v| set.data.contains(v) as u8 as f64).collect();
        let array = x.array(s);
        let got = array.is_member(&set.array(s));
        assert_eq!(got.dtype().unwrap(), DType::Bool, "{what}");
        assert_array(what, &got, array.shape().unwrap().dims(), &expected, 0.0);
    });
}

#[test]
fn distinct_elements_agree_with_plain_loops() {
    each_case(9, true, |what, s, _, x, _| {
        let mut places: Vec<usize> = (0..x.data.len()).collect();
        places.sort_by(|&a, &b| order(&x.data[a], &x.data[b]));
        let (mut firsts, mut counts, mut inverse) = (Vec::<usize>::new(), Vec::new(), vec![0.0; places.len()]);
        for (n, &place) in places.iter().enumerate() {
            if n == 0 || x.data[places[n - 1]] != x.data[place] {
                firsts.push(place);
                counts.push(0.0);
            }
            *counts.last_mut().unwrap() += 1.0;
            inverse[place] = (firsts.len() - 1) as f64;
        }
        let array = x.array(s);
        let found = wait(array.unique()).unwrap();
        let values: Vec<f64> = firsts.iter().map(|&place| x.data[place]).collect();
        let first: Vec<f64> = firsts.iter().map(|&place| place as f64).collect();
        let column = [firsts.len(), 1];
        assert_eq!(found.values.dtype().unwrap(), x.dtype, "{what}");
        assert_array(what, &found.values, &column, &values, 0.0);
        assert_array(what, &found.counts, &column, &counts, 0.0);
        assert_array(what, &found.first, &column, &first, 0.0);
        assert_array(what, &found.inverse, array.shape().unwrap().dims(), &inverse, 0.0);
    });
}

#[test]
fn counts_and_sums_by_index_agree_with_plain_loops() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let mut dice = Dice(8);
        for count in [0usize, 1, 2, 40] {
            let index: Vec<u32> = (0..count).map(|_| dice.below(5) as u32).collect();
            let data: Vec<f64> = (0..count).map(|_| dice.below(9) as f64).collect();
            let (mut counts, mut sums) = (vec![0.0; 5], vec![0.0; 5]);
            for (&i, &v) in index.iter().zip(&data) {
                counts[i as usize] += 1.0;
                sums[i as usize] += v;
            }
            let (index, data) = (s.from_slice(&index, count).unwrap(), s.from_slice(&data, count).unwrap());
            assert_array(&device, &index.bincount(5), &[5, 1], &counts, 0.0);
            for dtype in [DType::F32, DType::I64, DType::U8] {
                let got = index.accumulate(&data.cast_to(dtype), 5);
                assert_eq!(got.dtype().unwrap(), dtype);
                assert_array(&device, &got, &[5, 1], &sums, 0.0);
            }
            assert_array(&device, &index.accumulate(&s.from_slice(&[true], 1).unwrap(), 5), &[5, 1], &counts, 0.0);
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn long_arrays_are_sorted_once_and_searched() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let n = 20_000usize;
        let data: Vec<f32> = (0..n).map(|i| ((i * 7919) % 1013) as f32).collect();
        let x = s.from_slice(&data, n).unwrap();
        let times = |value: usize| (0..n).filter(|i| (i * 7919) % 1013 == value).count() as f64;
        let (found, stats) = counted(&rt, || {
            let found = wait(x.unique()).unwrap();
            let all = (found.values.gather::<f32>(), found.counts.gather::<u32>(), found.inverse.gather::<u32>());
            let (distinct, counts, inverse) = wait(async { futures::join!(all.0, all.1, all.2) });
            (distinct.unwrap(), counts.unwrap(), inverse.unwrap())
        });
        // A second sort would add a kernel.
        assert_eq!(stats.kernels, 11, "{device}");
        let (distinct, counts, inverse) = found;
        assert_eq!(distinct.as_slice(), (0..1013).map(|v| v as f32).collect::<Vec<_>>(), "{device}");
        assert!(counts.iter().enumerate().all(|(v, &count)| f64::from(count) == times(v)), "{device}");
        assert!(inverse.iter().zip(&data).all(|(&i, &v)| distinct[i as usize] == v), "{device}");
        let edges = s.from_slice(&[0.0f32, 10.0, 500.0, 1012.0], 4).unwrap();
        let between = |from: usize, to: usize| (from..to).map(times).sum::<f64>();
        let expected = [between(0, 10), between(10, 500), between(500, 1013)];
        assert_array(device, &x.histogram(&edges), &[3, 1], &expected, 0.0);
        let sorted = s.from_vec((0..n).map(|i| (i / 2) as f32).collect(), n).unwrap();
        let sought = s.from_vec((0..n).map(|i| ((i * 7919) % n) as f32).collect(), n).unwrap();
        let (places, stats) = counted(&rt, || values(&sorted.search_sorted(&sought, false)));
        let expected = (0..n).map(|i| (2 * ((i * 7919) % n)).min(n) as f64);
        assert!(places.into_iter().eq(expected), "{device}");
        // A search takes at most one kernel for each bit of the length.
        assert!(stats.kernels <= 15, "{device}: {} kernels", stats.kernels);
        rt.shutdown_blocking().unwrap();
    }
}
