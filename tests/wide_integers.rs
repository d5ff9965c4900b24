//! Tests `i64` beside f64: every result is that of exact arithmetic, rounded half away from zero and saturated.

mod common;
use common::{runtimes, session, wait};
use tidemill::{Array, DType};

/// Random bits.
fn numbers_of(mut bits: u64) -> impl FnMut() -> u64 {
    move || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        bits
    }
}

/// The result of an op on an `i64` and an f64 by exact arithmetic, rounded half away from zero and saturated.
fn exact(op: &str, x: i64, c: f64) -> i64 {
    if c.is_nan() {
        return 0;
    }
    // Numbers are counted in quarters, so that rounding sees halves. Numbers beyond 1e20 saturate as 1e20 does.
    let quarters = |c: f64| (c.clamp(-1e20, 1e20) * 4.0) as i128;
    let total = match op {
        "x+c" => x as i128 * 4 + quarters(c),
        "x-c" => x as i128 * 4 - quarters(c),
        "c-x" => quarters(c) - x as i128 * 4,
        "max" => (x as i128 * 4).max(quarters(c)),
        _ => (x as i128 * 4).min(quarters(c)),
    };
    let rounded = (total.abs() + 2) / 4 * total.signum();
    rounded.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

#[test]
fn i64_beside_numbers_of_f64_is_exact_and_compares_as_the_numbers_do() {
    let xs = [0, 1, -1, 2, -3, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1];
    let numbers = [
        0.5,
        -0.5,
        0.25,
        -0.75,
        2.5,
        -2.5,
        3.75,
        1e15 + 0.5,
        -(1e15) - 0.5,
        9007199254740993.0,
        1e18,
        -1e18,
        9.223372036854775e18,
        9.223372036854776e18,
        -9.223372036854776e18,
        1.2e19,
        -1.2e19,
        4e19,
        -4e19,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&xs, [xs.len(), 1]).unwrap();
        for c in numbers {
            // The f64 is a Rust number, or an array of one element.
            for array in [false, true] {
                let one = s.scalar(c);
                let o = || if array { tidemill::Operand::from(&one) } else { tidemill::Operand::from(c) };
                let left = |o: tidemill::Operand<'_>| match array {
                    true => &one - &x,
                    false => {
                        let _ = o;
                        c - &x
                    }
                };
                let mut results = vec![("x+c", &x + o()), ("x-c", &x - o()), ("c-x", left(o()))];
                results.extend([("max", x.max(o())), ("min", x.min(o()))]);
                for (op, y) in results {
                    let got = wait(y.gather::<i64>()).unwrap();
                    let aside = c.is_nan() && ["max", "min"].contains(&op);
                    let wanted: Vec<i64> = xs.iter().map(|x| if aside { *x } else { exact(op, *x, c) }).collect();
                    assert_eq!(got.as_slice(), wanted, "{op} with {c} on {device}, an array: {array}");
                }
                let order = |x: i64| match c {
                    c if c.is_nan() => None,
                    c if c >= 9.3e18 => Some(std::cmp::Ordering::Less),
                    c if c <= -9.3e18 => Some(std::cmp::Ordering::Greater),
                    c => (x as i128 * 4).partial_cmp(&((c * 4.0) as i128)),
                };
                type Is = fn(std::cmp::Ordering) -> bool;
                let tests: [(&str, tidemill::Array, Is); 6] = [
                    ("lt", x.lt(o()), |o| o.is_lt()),
                    ("le", x.le(o()), |o| o.is_le()),
                    ("gt", x.gt(o()), |o| o.is_gt()),
                    ("ge", x.ge(o()), |o| o.is_ge()),
                    ("eq", x.eq_to(o()), |o| o.is_eq()),
                    ("ne", x.ne_to(o()), |o| o.is_ne()),
                ];
                for (op, y, is) in tests {
                    let got = wait(y.gather::<bool>()).unwrap();
                    let wanted: Vec<bool> = xs.iter().map(|x| order(*x).map_or(op == "ne", is)).collect();
                    assert_eq!(got.as_slice(), wanted, "{op} with {c} on {device}, an array: {array}");
                }
            }
        }
        let clamped = x.clamp(-2.5, 2.4);
        let wanted: Vec<i64> = xs.iter().map(|x| (*x).clamp(-3, 2)).collect();
        assert_eq!(wait(clamped.gather::<i64>()).unwrap().as_slice(), wanted);
        // The bounds are arrays, and one of them is NaN.
        let (low, high) = (s.scalar(-2.5), s.scalar(f64::NAN) * s.scalar(1.0));
        let wanted: Vec<i64> = xs.iter().map(|x| (*x).max(-3)).collect();
        assert_eq!(wait(x.clamp(&low, &high).gather::<i64>()).unwrap().as_slice(), wanted, "{device}");
        // The comparison is exact, while in f64 some different elements would be equal.
        let near = s.from_slice(&xs.map(|x| x as f64), [xs.len(), 1]).unwrap();
        let exact = |is: fn(&i128, &i128) -> bool| xs.map(|x| is(&(x as i128), &(x as f64 as i128)));
        for (what, got, wanted) in [
            ("lt", x.lt(&near), exact(i128::lt)),
            ("le", x.le(&near), exact(i128::le)),
            ("gt", x.gt(&near), exact(i128::gt)),
            ("ge", x.ge(&near), exact(i128::ge)),
            ("eq", x.eq_to(&near), exact(i128::eq)),
            ("ne", x.ne_to(&near), exact(i128::ne)),
            ("mirrored lt", near.gt(&x), exact(i128::lt)),
        ] {
            assert_eq!(wait(got.gather::<bool>()).unwrap().as_slice(), wanted, "{what} on {device}");
        }
    }
}

/// `count / 2^shift` as a whole number, rounded half away from zero.
fn halves_away(count: i128, shift: u32) -> i64 {
    let half = if shift == 0 { 0 } else { 1i128 << (shift - 1) };
    (((count.abs() + half) >> shift) * count.signum()).clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

#[test]
fn remainders_of_i64_and_numbers_of_f64_are_exact() {
    let mut random = numbers_of(11);
    let mut xs = vec![0, 1, -1, 2, -2, 7, -7, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, i64::MAX, i64::MIN, i64::MIN + 1];
    xs.extend((0..40).map(|i| random() as i64 >> i));
    // Each number is `count / 2^shift`.
    let mut numbers =
        vec![(1i128, 1u32), (-1, 1), (5, 1), (-5, 1), (1, 2), (3, 2), (-3, 2), (21, 3), (-(1i128 << 53) + 1, 20)];
    numbers.extend((0..24).map(|i| ((random() as i64 >> 11 | 1) as i128, i + 1)));
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&xs, [xs.len(), 1]).unwrap();
        for &(count, shift) in &numbers {
            let c = count as f64 / 2f64.powi(shift as i32);
            let of = |y: tidemill::Array| wait(y.gather::<i64>()).unwrap().into_vec();
            let wide = |x: i64| (x as i128) << shift;
            let rem = |a: i128, b: i128| if b == 0 { 0 } else { a % b };
            let modulo = |a: i128, b: i128| if b == 0 { a } else { (a % b + b) % b };
            let all = |f: &dyn Fn(i64) -> i128| xs.iter().map(|&x| halves_away(f(x), shift)).collect::<Vec<i64>>();
            let number = s.scalar(c);
            assert_eq!(of(x.remainder(c)), all(&|x| rem(wide(x), count)), "rem(x, {c}) on {device}");
            assert_eq!(of(x.modulo(c)), all(&|x| modulo(wide(x), count)), "mod(x, {c}) on {device}");
            if device.ends_with("fold 64") {
                assert_eq!(of(number.remainder(&x)), all(&|x| rem(count, wide(x))), "rem({c}, x) on {device}");
                assert_eq!(of(number.modulo(&x)), all(&|x| modulo(count, wide(x))), "mod({c}, x) on {device}");
            }
        }
        let some = s.from_slice(&[5i64, -5, i64::MIN, 0], [4, 1]).unwrap();
        let of = |y: tidemill::Array| wait(y.gather::<i64>()).unwrap().into_vec();
        assert_eq!(of(some.remainder(9.223372036854776e18)), [5, -5, 0, 0], "{device}");
        assert_eq!(of(some.modulo(9.223372036854776e18)), [5, i64::MAX - 4, 0, 0], "{device}");
        assert_eq!(of(some.modulo(-1e19)), [i64::MIN, -5, i64::MIN, 0], "{device}");
        assert_eq!(of(some.remainder(f64::INFINITY)), [5, -5, i64::MIN, 0], "{device}");
        assert_eq!(of(some.modulo(f64::INFINITY)), [5, i64::MAX, i64::MAX, 0], "{device}");
        assert_eq!(of(some.modulo(f64::NAN)), [0, 0, 0, 0], "{device}");
    }
}

#[test]
fn native_sums_of_i64_are_exact_in_any_order_and_saturate_at_the_end() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let sum = |data: &[i64]| {
            let x = s.from_slice(data, [data.len(), 1]).unwrap();
            wait(x.sum_native(0).item::<i64>()).unwrap()
        };
        assert_eq!(sum(&[i64::MAX, 5, -7]), i64::MAX - 2, "{device}");
        assert_eq!(sum(&[i64::MIN, -5, 7]), i64::MIN + 2, "{device}");
        assert_eq!(sum(&[i64::MIN, i64::MIN, i64::MAX]), i64::MIN, "{device}");
        assert_eq!(sum(&[i64::MAX, i64::MAX, i64::MIN]), i64::MAX - 1, "{device}");
        assert_eq!(sum(&[i64::MIN, i64::MAX]), -1, "{device}");
        assert_eq!(sum(&[i64::MIN]), i64::MIN, "{device}");
        let many: Vec<i64> = (0..10_000).map(|i| (i64::MAX - i) * if i % 2 == 0 { 1 } else { -1 }).collect();
        assert_eq!(sum(&many), 5000, "{device}");
        assert_eq!(sum(&vec![(1 << 53) + 1; 1001]), 1001 * ((1 << 53) + 1), "{device}");
    }
}

#[test]
fn what_becomes_an_i64_within_a_kernel_keeps_its_sign() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let ends = [i32::MIN, -4, 0, i32::MAX].map(i64::from);
        let data: Vec<i32> = (0..5000).map(|i| ends[i % 4] as i32).collect();
        let x = s.from_slice(&data, [5000, 1]).unwrap().cast::<i64>();
        let of = |y: Array| wait(y.slice((2500..2504, 0)).gather::<i64>()).unwrap().into_vec();
        assert_eq!(of(x.abs()), ends.map(i64::abs), "{device}");
        assert_eq!(of(x.sign()), ends.map(i64::signum), "{device}");
        assert_eq!(of(-&x), ends.map(|x| -x), "{device}");
        assert_eq!(of(&x + &x), ends.map(|x| x + x), "{device}");
        assert_eq!(of(x.lt(0).cast::<i64>()), [1, 1, 0, 0], "{device}");
        assert_eq!(wait((&x % 3).min_over(0).item::<i64>()).unwrap(), -2, "{device}");
    }
}

#[test]
fn native_sums_of_narrower_integers_saturate_at_the_end_too() {
    let large = 2_000_000_000;
    for (device, rt) in runtimes() {
        let s = session(&rt);
        // The short sum is folded when it is recorded, the long one is added up by a kernel.
        for zeros in [0, 5000] {
            let sum = |ends: &[i32]| {
                let mut data = ends.to_vec();
                data.extend(vec![0; zeros]);
                wait(s.from_slice(&data, [data.len(), 1]).unwrap().sum_native(0).item::<i32>()).unwrap()
            };
            assert_eq!(sum(&[large, large, -large, -large, -large]), -large, "{device}");
            assert_eq!(sum(&[large, large]), i32::MAX, "{device}");
            let bytes: Vec<u8> = [vec![200, 100], vec![0; zeros]].concat();
            let bytes = s.from_slice(&bytes, [bytes.len(), 1]).unwrap();
            assert_eq!(wait(bytes.sum_native(0).item::<u8>()).unwrap(), 255, "{device}");
        }
    }
}

/// `num / den`, rounded half away from zero and saturated; `None` if 128 bits do not hold the intermediate results.
fn rounded(num: Option<i128>, den: i128) -> Option<i64> {
    let num = num.filter(|n| n.unsigned_abs() < 1 << 125)?;
    if den == 0 {
        return Some([0, i64::MAX, i64::MIN][num.signum().rem_euclid(3) as usize]);
    }
    let magnitude = (2 * num.abs() + den.abs()) / (2 * den.abs());
    Some((magnitude * num.signum() * den.signum()).clamp(i64::MIN as i128, i64::MAX as i128) as i64)
}

/// A number as a fraction of whole numbers; `None` if these are too large.
fn fraction(c: f64) -> Option<(i128, u32)> {
    let (mut scaled, mut shift) = (c, 0);
    while scaled.fract() != 0.0 {
        (scaled, shift) = (scaled * 2.0, shift + 1);
    }
    (scaled.abs() < 1e38).then_some((scaled as i128, shift))
}

#[test]
fn products_and_quotients_of_i64_and_numbers_of_f64_are_exact() {
    let mut random = numbers_of(0x9e37_79b9_7f4a_7c15);
    let mut xs = vec![0, 1, -1, 2, -3, 5, (1 << 53) + 1, -(1 << 53) - 1, 4611686018427387905];
    xs.extend([i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, 3074457345618258603, -6148914691236517205]);
    xs.extend((0..40).map(|i| random() as i64 >> i));
    let mut numbers = vec![0.5, -0.5, 0.1, -0.1, 2.5, -2.5, 1.0 / 3.0, 0.75, -0.75, 1.5, 7.5, -7.5, 1e-5, -1e-5, 1e-18];
    numbers.extend([1e-20, -1e-20, 1e-300, 5e-324, 1e15 + 0.5, -(2f64.powi(52)) - 0.5, 1.0 - f64::EPSILON / 2.0]);
    numbers.extend([1.0 + f64::EPSILON, 0.9999999999999999, 3e-9, 12345.678, 2f64.powi(-63) * 1.5, 1e19, -1e19, 2e19]);
    numbers.extend([2f64.powi(63), -(2f64.powi(63)), 2f64.powi(64), 1e300, -1e300]);
    numbers.extend((0..24).map(|i| (random() as i64 as f64 + 0.5) * 2f64.powi(-20 - 2 * i)));
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&xs, [xs.len(), 1]).unwrap();
        for &c in &numbers {
            let (y, z, w) = (&x * c, &x / c, c * &x);
            let w_is = wait((&w - &y).abs().max_over(..).item::<i64>()).unwrap();
            assert_eq!(w_is, 0, "{c} on either side on {device}");
            let (product, quotient) = (wait(y.gather::<i64>()).unwrap(), wait(z.gather::<i64>()).unwrap());
            let reversed = (c.fract() != 0.0).then(|| wait((c / &x).gather::<i64>()).unwrap());
            for (i, &v) in xs.iter().enumerate() {
                let (num, shift) = fraction(c).unwrap_or((if c > 0.0 { 1 << 110 } else { -(1 << 110) }, 0));
                let far = if (v < 0) == (c < 0.0) { i64::MAX } else { i64::MIN };
                // With a denominator beyond 2^124, a product rounds to 0 and a quotient saturates.
                let wanted = match shift {
                    0..=120 => rounded(num.checked_mul(v as i128), 1 << shift).unwrap_or(far),
                    _ => 0,
                };
                assert_eq!(product[i], wanted, "{v} * {c:?} on {device}");
                let scaled = 1i128.checked_shl(shift).filter(|_| shift < 126).and_then(|by| by.checked_mul(v as i128));
                let wanted = if v == 0 { 0 } else { rounded(scaled, num).unwrap_or(far) };
                assert_eq!(quotient[i], wanted, "{v} / {c:?} on {device}");
                if let (Some(reversed), 0..=60) = (&reversed, shift) {
                    let wanted = rounded(Some(num), (v as i128) << shift).unwrap();
                    assert_eq!(reversed[i], wanted, "{c:?} / {v} on {device}");
                }
            }
        }
        let of = |y: tidemill::Array| wait(y.gather::<i64>()).unwrap()[0];
        let n = s.from_slice(&[9007199254740993i64, 7, 0], [3, 1]).unwrap();
        assert_eq!([of(&n * 2.5), of(&n * 0.1)], [22517998136852483, 900719925474099], "as MATLAB has it, on {device}");
        let all = |y: tidemill::Array| wait(y.gather::<i64>()).unwrap().into_vec();
        assert_eq!(all(&n * f64::NAN), [0, 0, 0]);
        assert_eq!(all(&n * f64::NEG_INFINITY), [i64::MIN, i64::MIN, 0]);
        assert_eq!(all(&n / f64::INFINITY), [0, 0, 0]);
        assert_eq!(all(f64::INFINITY / -&n), [i64::MIN, i64::MIN, i64::MAX]);
    }
}

#[test]
fn whole_numbers_of_f64_that_are_not_known_are_exact_beside_i64() {
    let xs = [i64::MAX, i64::MIN, (1 << 53) + 1, -(1 << 53) - 1, 7, -7, 0];
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&xs, [xs.len(), 1]).unwrap();
        let of = |y: tidemill::Array| wait(y.gather::<i64>()).unwrap().into_vec();
        for c in [3.0, -3.0, 1.0, 2.0, 9e15] {
            // The runtime does not know this value when the ops below are recorded.
            let number = s.full(c, [1000, 1]).max_over(..);
            let whole = c as i128;
            let all = |f: &dyn Fn(i128) -> i128| -> Vec<i64> {
                xs.iter().map(|&x| f(x.into()).clamp(i64::MIN.into(), i64::MAX.into()) as i64).collect()
            };
            assert_eq!(of(&x * &number), all(&|x| x * whole), "x * {c} on {device}");
            let quotient = |x: i128| rounded(Some(x), whole).unwrap().into();
            assert_eq!(of(&x / &number), all(&quotient), "x / {c} on {device}");
            assert_eq!(of(x.remainder(&number)), all(&|x| x % whole), "rem(x, {c}) on {device}");
            assert_eq!(of(x.modulo(&number)), all(&|x| (x % whole + whole) % whole), "mod(x, {c}) on {device}");
            let under = |x: i128| if x == 0 { 0 } else { whole % x };
            assert_eq!(of(number.remainder(&x)), all(&under), "rem({c}, x) on {device}");
            assert_eq!(of(number.modulo(&x)), all(&|x| if x == 0 { whole } else { (whole % x + x) % x }), "{device}");
        }
        let two = s.full(2.0f64, [1000, 1]).max_over(..);
        let squares = [i64::MAX, i64::MAX, i64::MAX, i64::MAX, 49, 49, 0];
        assert_eq!(of(x.pow(&two)), squares, "{device}");
        let half = s.full(0.5f64, [1000, 1]).max_over(..);
        assert_eq!(of(&s.from_slice(&[5i64, -5, 8], [3, 1]).unwrap() * &half), [3, -3, 4], "{device}");
        let nothing = s.full(-0.0f64, [1000, 1]).max_over(..) * 1.0;
        assert_eq!(of(&s.from_slice(&[5i64, 0], [2, 1]).unwrap() / (0.0 - &nothing)), [i64::MAX, 0], "{device}");
    }
}

#[test]
fn whole_numbers_of_f64_are_as_those_of_i64_are() {
    type Op = (&'static str, fn(&Array, f64) -> Array, fn(&Array, i64) -> Array);
    let ops: [Op; 17] = [
        ("x+c", |x, c| x + c, |x, c| x + c),
        ("x-c", |x, c| x - c, |x, c| x - c),
        ("c-x", |x, c| c - x, |x, c| c - x),
        ("x*c", |x, c| x * c, |x, c| x * c),
        ("x/c", |x, c| x / c, |x, c| x / c),
        ("c/x", |x, c| c / x, |x, c| c / x),
        ("mod(x,c)", |x, c| x.modulo(c), |x, c| x.modulo(c)),
        ("rem(x,c)", |x, c| x % c, |x, c| x % c),
        ("rem(c,x)", |x, c| c % x, |x, c| c % x),
        ("x^c", |x, c| x.pow(c), |x, c| x.pow(c)),
        ("x<c", |x, c| x.lt(c), |x, c| x.lt(c)),
        ("x<=c", |x, c| x.le(c), |x, c| x.le(c)),
        ("x>c", |x, c| x.gt(c), |x, c| x.gt(c)),
        ("x>=c", |x, c| x.ge(c), |x, c| x.ge(c)),
        ("x==c", |x, c| x.eq_to(c), |x, c| x.eq_to(c)),
        ("x~=c", |x, c| x.ne_to(c), |x, c| x.ne_to(c)),
        ("select", |x, c| x.gt(0).select(x, c), |x, c| x.gt(0).select(x, c)),
    ];
    let mut random = numbers_of(0x51ab_c0de);
    let mut xs = vec![0, 1, -1, 2, -2, 3, -7, 10, (1 << 53) + 1, -(1 << 53) - 1, 1 << 62, -(1 << 62) - 1];
    xs.extend([i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, 3037000500, -3037000500]);
    xs.extend((0..40).map(|i| random() as i64 >> i));
    let mut numbers =
        vec![0, 1, -1, 2, -2, 3, -3, 7, 10, -64, 1000, 1 << 31, 1 << 52, 1 << 53, (1 << 54) + 4, -(1 << 60)];
    numbers.extend([1 << 62, -(1 << 62), i64::MIN, i64::MAX - 1023, i64::MIN + 2048]);
    numbers.extend((0..6).map(|i| (random() as i64 >> (9 * i)) as f64 as i64));
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&xs, [xs.len(), 1]).unwrap();
        for &(name, of_f64, of_i64) in &ops {
            for &c in &numbers {
                let (a, b) = (of_f64(&x, c as f64).cast::<i64>(), of_i64(&x, c).cast::<i64>());
                let (a, b) = (wait(a.gather::<i64>()).unwrap(), wait(b.gather::<i64>()).unwrap());
                for (i, v) in xs.iter().enumerate() {
                    assert_eq!(a[i], b[i], "{name} of {v} and {c} on {device}");
                }
            }
        }
        // A select rounds the number beside the array, and does not change the array's elements.
        let chosen = |c: f64| wait(x.gt(i64::MIN).select(&x, c).gather::<i64>()).unwrap().into_vec();
        for (c, whole) in [(0.5, 1), (-2.5, -3), (f64::NAN, 0), (1e300, i64::MAX), (f64::NEG_INFINITY, i64::MIN)] {
            let wanted: Vec<i64> = xs.iter().map(|&v| if v > i64::MIN { v } else { whole }).collect();
            assert_eq!(chosen(c), wanted, "{c} on {device}");
        }
    }
}

#[test]
fn all_that_32_bits_hold_is_a_range_to_draw_from() {
    const N: usize = 20_000;
    for (device, rt) in common::unfolded(|b| b) {
        let s = common::session(&rt);
        let signed = s.randi::<i32>(i64::from(i32::MIN)..i64::from(i32::MAX) + 1, [N, 1]);
        let unsigned = s.randi::<u32>(0..1 << 32, [N, 1]);
        assert_eq!((signed.dtype().unwrap(), unsigned.dtype().unwrap()), (DType::I32, DType::U32));
        for (drawn, least) in [(common::values(&signed), f64::from(i32::MIN)), (common::values(&unsigned), 0.0)] {
            let shares: Vec<f64> = drawn.iter().map(|x| (x - least) / 2f64.powi(32)).collect();
            let mean = shares.iter().sum::<f64>() / N as f64;
            assert!((mean - 0.5).abs() < 0.02, "{device}: a mean of {mean}");
            let (low, high) = shares.iter().fold((1f64, 0f64), |(low, high), &x| (low.min(x), high.max(x)));
            assert!(low < 0.002 && (0.998..1.0).contains(&high), "{device}: {low} to {high}");
        }
    }
}

/// Checks running sums and products of `$int` along both dimensions, forth and back, against a walk that saturates at
/// each step.
macro_rules! running_folds {
    ($int:ty, $session:expr, $device:expr) => {{
        let mut next = numbers_of(0x9e37_79b9_7f4a_7c15);
        // The terms of sums often reach the ends of the range and leave them again. The factors of products change the
        // sign, grow, reach an end exactly, and become zero. Most are 1 or -1, so that a saturated product changes its
        // sign many times before it grows again.
        let mut term = |_| {
            let bits = next();
            match bits % 8 {
                0 => <$int>::MAX,
                1 => <$int>::MIN,
                2 => -1,
                _ => (bits >> 8) as $int >> (bits % 5),
            }
        };
        let terms: Vec<$int> = (0..70_001).map(&mut term).collect();
        let mut next = numbers_of(0x2545_f491_4f6c_dd1d);
        let mut factor = |_| {
            let bits = next();
            match bits % 64 {
                0 => 0,
                1 => <$int>::MAX,
                2 => <$int>::MIN,
                3 => 1 << (bits >> 8) % (<$int>::BITS as u64 - 1),
                4 => (<$int>::MIN >> (bits >> 8) % (<$int>::BITS as u64 - 1)),
                5..8 => 2,
                8..10 => -3,
                10..40 => 1,
                _ => -1,
            }
        };
        let factors: Vec<$int> = (0..70_001).map(&mut factor).collect();
        for (what, data, fold) in [
            ("sum", &terms, <$int>::saturating_add as fn($int, $int) -> $int),
            ("product", &factors, <$int>::saturating_mul),
        ] {
            // Lines that one workgroup walks, and lines that many workgroups walk together.
            for (dims, dim) in [([2000, 3], 0), ([3, 2000], 1), ([70_001, 1], 0), ([2, 30_000], 1)] {
                let (length, lines) = (dims[dim], dims[1 - dim]);
                let data = &data[..length * lines];
                let x = $session.from_slice(data, dims).unwrap();
                for reverse in [false, true] {
                    let got = match (what, reverse) {
                        ("sum", false) => x.cumsum(dim),
                        ("sum", true) => x.cumsum_reverse(dim),
                        (_, false) => x.cumprod(dim),
                        (_, true) => x.cumprod_reverse(dim),
                    };
                    let got = wait(got.gather::<$int>()).unwrap().into_vec();
                    for line in 0..lines {
                        let mut running: Option<$int> = None;
                        for step in 0..length {
                            let place = if reverse { length - 1 - step } else { step };
                            let at = if dim == 0 { line * length + place } else { place * lines + line };
                            running = Some(running.map_or(data[at], |running| fold(running, data[at])));
                            assert_eq!(
                                Some(got[at]),
                                running,
                                "{} {what} along {dim}, reverse {reverse}, line {line}, step {step}",
                                $device
                            );
                        }
                    }
                }
            }
        }
    }};
}

#[test]
fn running_sums_and_products_saturate_at_each_step_from_where_they_begin() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        running_folds!(i32, s, device);
        running_folds!(i64, s, device);
    }
}

/// Long lines of other scans, which many workgroups walk: each scan alone, two in one kernel, and a scan of another
/// scan's result.
#[test]
fn long_running_folds_are_those_of_a_walk() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let n = 100_003;
        let data: Vec<f64> = (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 - 500.0).collect();
        let x = s.from_slice(&data, [n, 1]).unwrap();
        let of = |y: Array| wait(y.gather::<f64>()).unwrap().into_vec();
        let walk = |data: &[f64], fold: fn(f64, f64) -> f64| -> Vec<f64> {
            let mut all = data.to_vec();
            (1..all.len()).for_each(|i| all[i] = fold(all[i - 1], all[i]));
            all
        };
        let add = |a: f64, b: f64| a + b;
        let (sums, most) = (walk(&data, add), walk(&data, f64::max));
        assert_eq!(of(x.cumsum(0)), sums, "{device}");
        assert_eq!(of(x.cummin(0)), walk(&data, f64::min), "{device}");
        let both: Vec<f64> = sums.iter().zip(&most).map(|(a, b)| a * 2.0 + b).collect();
        assert_eq!(of(x.cumsum(0) * 2.0 + x.cummax(0)), both, "{device}");
        assert_eq!(of(x.cumsum(0).cummax(0)), walk(&sums, f64::max), "{device}");
        let signs: Vec<f64> = data.iter().map(|x| if *x < 0.0 { -1.0 } else { 1.0 }).collect();
        let signed = s.from_slice(&signs, [n, 1]).unwrap();
        assert_eq!(of(signed.cumprod(0)), walk(&signs, |a, b| a * b), "{device}");
        let narrow = x.cast::<f32>().cumsum_reverse(0).cast::<f64>();
        let mut backwards: Vec<f64> = data.iter().rev().copied().collect();
        backwards = walk(&backwards, add);
        backwards.reverse();
        assert_eq!(of(narrow), backwards, "{device}");
    }
}
