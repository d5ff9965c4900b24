//! How well numbers fit a distribution: Kolmogorov and Smirnov's distance, and Pearson's chi-square. The distribution
//! functions are series and continued fractions in f64, good to some 1e-10.
#![allow(dead_code)]

/// The regularised lower incomplete gamma function.
pub fn gamma_below(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-16 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return sum * scale;
    }
    1.0 - scale * fraction(|i| (x + 1.0 - a + 2.0 * i, -i * (i - a)))
}

/// The regularised incomplete beta function.
pub fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return f64::from(u8::from(x >= 1.0));
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_below(b, a, 1.0 - x);
    }
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    let terms = |i: f64| {
        let m = (i / 2.0).floor();
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        (1.0, if i % 2.0 == 0.0 { even } else { odd })
    };
    scale.exp() * fraction(terms) / a
}

/// `1 / (b0 + a1 / (b1 + a2 / (b2 + …)))`, of `terms(i)` as `(b_i, a_i)`, by Lentz's method.
fn fraction(terms: impl Fn(f64) -> (f64, f64)) -> f64 {
    let first = terms(0.0).0;
    let (mut c, mut d) = (1e300, 1.0 / first);
    let mut h = d;
    for i in 1..100_000 {
        let (b, a) = terms(f64::from(i));
        d = 1.0 / (b + a * d);
        c = b + a / c;
        h *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

pub fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The probability of at most `k` events of a Poisson distribution.
pub fn poisson_at_most(mean: f64, k: f64) -> f64 {
    if k < 0.0 { 0.0 } else { 1.0 - gamma_below(k.floor() + 1.0, mean) }
}

/// The probability of at most `k` successes of a binomial distribution.
pub fn binomial_at_most(trials: f64, p: f64, k: f64) -> f64 {
    let k = k.floor();
    if k < 0.0 {
        return 0.0;
    }
    if k >= trials { 1.0 } else { beta_below(trials - k, k + 1.0, 1.0 - p) }
}

/// Kolmogorov and Smirnov's distance times the root of the count: above 1.95 once in a thousand times, above 2.4 once in
/// fifty thousand. Numbers that are equal count as one step.
pub fn distance(mut numbers: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
    assert!(numbers.iter().all(|x| x.is_finite()));
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len() as f64;
    let mut worst: f64 = 0.0;
    let mut i = 0;
    while i < numbers.len() {
        let x = numbers[i];
        let next = i + numbers[i..].iter().take_while(|&&y| y == x).count();
        let f = below(x);
        worst = worst.max((next as f64 / n - f).abs());
        if next == i + 1 {
            worst = worst.max((f - i as f64 / n).abs());
        }
        i = next;
    }
    worst * n.sqrt()
}

/// Pearson's statistic of counts against expected ones, as a number of standard deviations of a normal distribution
/// (Wilson and Hilferty's cube root). Neighbours are joined until each expects eight.
pub fn chi_square(counts: &[f64], expected: &[f64]) -> f64 {
    let (mut groups, mut open) = (Vec::new(), (0.0, 0.0));
    for (count, expects) in counts.iter().zip(expected) {
        open = (open.0 + count, open.1 + expects);
        if open.1 >= 8.0 {
            groups.push(std::mem::take(&mut open));
        }
    }
    let last = groups.last_mut().expect("some group expects eight");
    *last = (last.0 + open.0, last.1 + open.1);
    let degrees = (groups.len() - 1) as f64;
    if degrees == 0.0 {
        return 0.0;
    }
    let sum: f64 = groups.iter().map(|(count, expects)| (count - expects).powi(2) / expects).sum();
    let width = 2.0 / (9.0 * degrees);
    ((sum / degrees).cbrt() - (1.0 - width)) / width.sqrt()
}

/// The same of whole numbers, by their distribution function: of 41 groups or fewer around the mean.
pub fn chi_square_of(numbers: &[f64], mean: f64, deviation: f64, at_most: impl Fn(f64) -> f64) -> f64 {
    assert!(numbers.iter().all(|x| *x >= 0.0 && x.fract() == 0.0), "counts are whole numbers");
    let mut edges: Vec<f64> = (-20..=20).map(|i| (mean + deviation * 0.2 * f64::from(i)).floor()).collect();
    edges.retain(|&edge| edge >= 0.0);
    edges.dedup();
    let n = numbers.len() as f64;
    let mut counts = vec![0.0; edges.len() + 1];
    for x in numbers {
        counts[edges.partition_point(|edge| edge < x)] += 1.0;
    }
    let below: Vec<f64> = edges.iter().map(|&edge| at_most(edge)).collect();
    let parts = (0..=edges.len()).map(|i| {
        let from = if i == 0 { 0.0 } else { below[i - 1] };
        n * (below.get(i).copied().unwrap_or(1.0) - from)
    });
    chi_square(&counts, &parts.collect::<Vec<_>>())
}
