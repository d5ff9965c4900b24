//! The scripts of a soak, each with its expected output.

use super::programs::Dice;

/// A script and its expected end.
pub struct Case {
    pub text: String,
    pub ends: Ends,
}

pub enum Ends {
    /// It prints this text.
    Prints(String),
    /// It fails with an error that contains this text.
    Fails(&'static str),
}

fn prints(text: String, what: String) -> Case {
    Case { text, ends: Ends::Prints(what) }
}

/// Draws a script that fails by itself.
pub fn failing(dice: &mut Dice) -> Case {
    let n = 3 + dice.below(40);
    let (text, says) = match dice.below(4) {
        0 => (format!("x = ones (3, {n}); x = x * 2; y = x(4, 1);"), "out of bound"),
        1 => (format!("a = ones (300, 200); b = ones ({n}, 200); c = a + b;"), "nonconformant"),
        2 => (format!("error ('soak:fault', 'on purpose %d', {n});"), "on purpose"),
        _ => (format!("x = {n}; y = x + no_such_thing;"), "undefined"),
    };
    Case { text, ends: Ends::Fails(says) }
}

/// Draws a script that runs to its end.
pub fn working(dice: &mut Dice) -> Case {
    match dice.below(8) {
        0 => {
            let n = 100 + dice.below(2000);
            let sum: usize = (1..=n).map(|i| i % 7 * 2).sum();
            prints(
                format!("t = 0; for i = 1:{n}, t = t + mod (i, 7) * 2; end; printf ('%d\\n', t);"),
                format!("{sum}\n"),
            )
        }
        1 => {
            let n = 10 + dice.below(60_000);
            let sum = (1..=n).map(|i| i * i).sum::<usize>();
            prints(
                format!("x = (1:{n})'; y = cumsum (x .^ 2); printf ('%.0f %.0f\\n', y(end), sum (x .^ 2));"),
                format!("{sum} {sum}\n"),
            )
        }
        2 => {
            let n = 2 + dice.below(60);
            let a = |r: usize, c: usize| (r + c * n) % 11;
            let trace: usize = (0..n * n).map(|i| a(i % n, i / n).pow(2)).sum();
            let sum: usize = (0..n).map(|c| (0..n).map(|r| a(r, c)).sum::<usize>().pow(2)).sum();
            prints(
                format!(
                    "A = reshape (mod (0:{}, 11), {n}, {n}); B = A * A'; printf ('%.0f %.0f\\n', trace (B), sum (B(:)));",
                    n * n - 1
                ),
                format!("{trace} {sum}\n"),
            )
        }
        3 => {
            let n = 10 + dice.below(30_000);
            let mut x: Vec<usize> = (1..=n).map(|i| i * 7919 % 1009).collect();
            x.sort_unstable();
            let (first, last, middle) = (x[0], x[n - 1], x[n / 2]);
            x.dedup();
            prints(
                format!(
                    "x = mod ((1:{n}) * 7919, 1009); s = sort (x); \
                     printf ('%d %d %d %d\\n', s(1), s(end), s({}), numel (unique (x)));",
                    n / 2 + 1
                ),
                format!("{first} {last} {middle} {}\n", x.len()),
            )
        }
        4 => {
            let n = dice.below(1000);
            prints(
                format!(
                    "try, error ('soak:id', 'no %d', {n}); catch e, printf ('%s|%s\\n', e.identifier, e.message); end"
                ),
                format!("soak:id|no {n}\n"),
            )
        }
        5 => {
            let (n, steps) = (10_000 + dice.below(50_000), 1 + dice.below(12));
            prints(
                format!(
                    "x = 2 * ones ({n}, 1, 'single'); for k = 1:{steps}, x = x .* 0.5 + 1; end; \
                     printf ('%g %d %s\\n', mean (x), numel (x), class (x));"
                ),
                format!("2 {n} single\n"),
            )
        }
        6 => {
            let n = 1 + dice.below(300);
            let joined: Vec<String> = (1..=n).map(|i| i.to_string()).collect();
            prints(
                format!(
                    "c = cell (1, {n}); for i = 1:{n}, c{{i}} = sprintf ('%d', i); end; printf ('%s\\n', strjoin (c, ','));"
                ),
                format!("{}\n", joined.join(",")),
            )
        }
        _ => {
            let (rows, columns) = (20 + dice.below(300), 20 + dice.below(300));
            // These are whole numbers, so that the sums are exact in any order.
            let at = |r: usize, c: usize| (r + 1) * (c + 1) % 13;
            let greatest: usize = (0..columns).map(|c| (0..rows).map(|r| at(r, c)).sum::<usize>()).max().unwrap_or(0);
            let above: usize = (0..columns).map(|c| (0..rows).filter(|&r| at(r, c) > 6).count()).sum();
            prints(
                format!(
                    "A = mod ((1:{rows})' * (1:{columns}), 13); \
                     printf ('%d %d\\n', max (sum (A, 1)), nnz (A > 6));"
                ),
                format!("{greatest} {above}\n"),
            )
        }
    }
}
