//! Measures the errors of the elementwise functions, in units in the last place (ulp).
//!
//! `cargo run --release --example ulp -- [--device DEVICE] [--function NAME] [--step N] [--f64]`
//!
//! Without `--device`, or with `host`, it measures the host's loops. With `gpu` or `gpu:N`, it measures a runtime on
//! that adapter.
//!
//! f32 functions of one argument are measured at every N-th of all 2^32 inputs (by default at all), and functions of
//! two at random pairs of every magnitude. The reference is computed in f64. With `--f64`, functions are measured at
//! points of every binade and at known hard cases, against 256-bit arithmetic (erf, gamma and lgamma against the `libm`
//! crate). An error is the distance to the unrounded result, so a correctly rounded function has up to 0.5 ulp. The
//! exit status is 1 if a function exceeds its bound.

#[path = "ulp/device.rs"]
mod device;
#[path = "ulp/reference.rs"]
mod reference;

use device::Device;
use rayon::prelude::*;
use reference::Reference;
use std::process::ExitCode;
use tidemill::testing::kernels::{DTypeRule, ElementOp};

/// The largest error of a function.
#[derive(Clone, Default)]
struct Worst {
    /// The error in ulp. It is infinite if the result is NaN or infinite and should be a number, or the other way
    /// round.
    ulps: f64,
    /// The arguments.
    at: Vec<f64>,
    /// The computed result.
    got: f64,
    /// The exact result.
    wanted: f64,
    /// The number of zeros with the wrong sign.
    signs: u64,
    /// The number of measured points.
    points: u64,
}

impl Worst {
    fn see(&mut self, ulps: f64, at: &[f64], got: f64, wanted: f64) {
        self.points += 1;
        if ulps == 0.0 && got == 0.0 && wanted == 0.0 && got.is_sign_negative() != wanted.is_sign_negative() {
            self.signs += 1;
        }
        if ulps > self.ulps {
            *self = Worst { ulps, at: at.to_vec(), got, wanted, ..*self };
        }
    }

    fn merge(self, other: Worst) -> Worst {
        let (signs, points) = (self.signs + other.signs, self.points + other.points);
        let worse = if other.ulps > self.ulps { other } else { self };
        Worst { signs, points, ..worse }
    }
}

/// The bound on the error of a function, in ulp.
fn bound(op: ElementOp) -> f64 {
    match op {
        ElementOp::Erf | ElementOp::Gamma | ElementOp::Lgamma => 16.0,
        _ => 4.0,
    }
}

/// The error of an f32 result, in ulp.
fn ulps_f32(got: f32, wanted: f64) -> f64 {
    let rounded = wanted as f32;
    if got == rounded && (got == 0.0 || got.is_infinite()) || got.is_nan() && wanted.is_nan() {
        return 0.0;
    }
    if got.is_nan() || wanted.is_nan() || wanted.is_infinite() {
        return f64::INFINITY;
    }
    // Infinity counts as the number after the greatest finite one.
    let got = if got.is_infinite() { 2f64.powi(128).copysign(got as f64) } else { got as f64 };
    let exponent = ((wanted.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    (got - wanted).abs() / 2f64.powi(exponent - 23)
}

/// Near its zeros, lgamma has only an absolute bound. There the error is counted in ulp of 1/4.
fn away_from_zeros(op: ElementOp, wanted: f64, ulps: f64, mantissa: i32) -> f64 {
    if op != ElementOp::Lgamma || wanted.abs() >= 0.25 || !ulps.is_finite() {
        return ulps;
    }
    let exponent = if wanted == 0.0 { -126 } else { wanted.abs().log2().floor() as i32 };
    ulps * 2f64.powi(exponent - mantissa) / 2f64.powi(-2 - mantissa)
}

/// Measures a function of one f32 at every `step`-th input.
fn measure_f32(op: ElementOp, step: u64, begin: u64, end: u64, device: &Device) -> Worst {
    let mut worst = Worst::default();
    let mut next = begin.next_multiple_of(step);
    while next < end {
        let count = ((end - next).div_ceil(step)).min(device.block() as u64) as usize;
        let inputs = (0..count).map(|i| f32::from_bits((next + i as u64 * step) as u32)).collect();
        device.compare(op, &[inputs], &mut worst);
        next += count as u64 * step;
    }
    worst
}

fn all_f32(op: ElementOp, step: u64, device: &Device) -> Worst {
    const PARTS: u64 = 64;
    let part = (1u64 << 32) / PARTS;
    (0..PARTS)
        .into_par_iter()
        .map(|n| measure_f32(op, step, n * part, (n + 1) * part, device))
        .reduce(Worst::default, Worst::merge)
}

/// Pseudo-random words, the same in every run.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Pairs for functions of two arguments: any bits, and magnitudes at which results vary most.
fn pair(op: ElementOp, words: &mut Words, wide: bool) -> [f64; 2] {
    let any = |word: u64| if wide { f64::from_bits(word) } else { f32::from_bits(word as u32) as f64 };
    let round = |x: f64| if wide { x } else { x as f32 as f64 };
    let (a, b, how) = (words.next(), words.next(), words.next());
    let unit = |word: u64| (word >> 11) as f64 / 9007199254740992.0;
    let near = |word: u64| (unit(word) * 2.0 - 1.0) * 2f64.powi((word % 41) as i32 - 20);
    match (how % 4, op) {
        (0, _) => [any(a), any(b)],
        (1, ElementOp::Pow) => [round(0.5 + 1.5 * unit(a)), round(near(b) * 100.0)],
        (2, ElementOp::Pow) => {
            // Pairs whose result may be anywhere in the type's range.
            let base = round(2f64.powf((unit(a) * 2.0 - 1.0) * if wide { 900.0 } else { 110.0 }));
            let reach = (unit(b) * 2.0 - 1.0) * if wide { 1074.0 } else { 149.0 };
            [base, round(reach / base.log2())]
        }
        (1, _) => [any(a), round(any(a) * (0.5 + unit(b)))],
        _ => [round(near(a)), round(near(b))],
    }
}

fn pairs_f32(op: ElementOp, points: u64, device: &Device) -> Worst {
    (0..64u64)
        .into_par_iter()
        .map(|seed| {
            let (mut words, mut worst) = (Words(seed * 77 + 1), Worst::default());
            let mut left = points / 64;
            while left > 0 {
                let count = left.min(device.block() as u64);
                let pairs: Vec<[f64; 2]> = (0..count).map(|_| pair(op, &mut words, false)).collect();
                let column = |n: usize| pairs.iter().map(|p| p[n] as f32).collect::<Vec<f32>>();
                device.compare(op, &[column(0), column(1)], &mut worst);
                left -= count;
            }
            worst
        })
        .reduce(Worst::default, Worst::merge)
}

/// Points of every binade, and hard cases.
fn points_f64(per_binade: u64, words: &mut Words) -> Vec<f64> {
    let mut points = vec![0.0, f64::INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0, 0.5];
    for exponent in 0..2047u64 {
        for _ in 0..per_binade {
            points.push(f64::from_bits(exponent << 52 | words.next() >> 12));
        }
    }
    // Points where functions switch algorithms, or where their results are nearly 0.
    for _ in 0..400 * per_binade {
        let unit = (words.next() >> 11) as f64 / 9007199254740992.0;
        let small = 2f64.powi(-((words.next() % 53) as i32)) * unit;
        let n = (words.next() % 1_000_000) as f64;
        points.extend([1.0 + small, 1.0 - small, 2.0 + small, n * std::f64::consts::FRAC_PI_2, n, n + 0.5]);
        points.extend([unit, unit * 10.0, unit * 40.0, 700.0 + unit * 20.0, 1020.0 + unit * 6.0, 160.0 + unit * 15.0]);
    }
    // The f64 that is nearest to a multiple of pi/2, and similar hard cases.
    points.extend([6381956970095103.0 * 2f64.powi(797), 1e22, 5.319372648326541e255, std::f64::consts::FRAC_PI_2]);
    points.extend(points.clone().iter().map(|x| -x));
    points
}

fn measure_f64(op: ElementOp, per_binade: u64, device: &Device) -> Worst {
    let columns = if op.arity() == 1 {
        vec![points_f64(per_binade, &mut Words(99))]
    } else {
        let mut words = Words(7);
        let pairs: Vec<[f64; 2]> = (0..per_binade * 10_000).map(|_| pair(op, &mut words, true)).collect();
        [0, 1].map(|n| pairs.iter().map(|pair| pair[n]).collect()).to_vec()
    };
    let got = device.evaluate(op, &columns);
    let points: Vec<usize> = (0..got.len()).collect();
    (points.par_chunks(512))
        .map(|chunk| {
            let (mut reference, mut worst) = (Reference::new(), Worst::default());
            for &i in chunk {
                let args: Vec<f64> = columns.iter().map(|column| column[i]).collect();
                let (ulps, wanted) = device.error_of(&args, got[i], f64::MIN_POSITIVE, |args| {
                    let (ulps, wanted) = reference.ulps(op, args, got[i]);
                    (away_from_zeros(op, wanted, ulps, 52), wanted)
                });
                worst.see(ulps, &args, got[i], wanted);
            }
            worst
        })
        .reduce(Worst::default, Worst::merge)
}

struct Options {
    device: String,
    function: Option<ElementOp>,
    step: u64,
    wide: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { device: "host".into(), function: None, step: 1, wide: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--f64" => options.wide = true,
            "--device" => options.device = args.next().ok_or("--device wants host, gpu or gpu:N")?,
            "--step" => {
                let text = args.next().unwrap_or_default();
                options.step =
                    text.parse().ok().filter(|&n| n > 0).ok_or(format!("--step wants a number, not '{text}'"))?;
            }
            "--function" => {
                let name = args.next().unwrap_or_default();
                options.function = Some(ElementOp::by_name(&name).ok_or(format!("there is no function '{name}'"))?);
            }
            other => return Err(format!("'{other}' is no option")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("ulp: {message}\nusage: ulp [--device DEVICE] [--function NAME] [--step N] [--f64]");
            return ExitCode::from(2);
        }
    };
    let device = match Device::open(&options.device) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("ulp: {error}");
            return ExitCode::FAILURE;
        }
    };
    let measured = |op: ElementOp| {
        op.info().rule == DTypeRule::Real || matches!(op, ElementOp::Pow | ElementOp::Mod | ElementOp::Rem)
    };
    let mut failed = false;
    println!("{}", device.describe());
    println!("{:<8} {:>10} {:>11} {:>6}  worst at", "function", "max ulp", "points", "-0/+0");
    for &op in ElementOp::ALL.iter().filter(|&&op| options.function.map_or(measured(op), |f| f == op)) {
        let worst = match (options.wide, op.arity()) {
            (true, _) => measure_f64(op, (8 / options.step).max(1), &device),
            (false, 1) => all_f32(op, options.step, &device),
            (false, _) => pairs_f32(op, (1 << 27) / options.step, &device),
        };
        let at: Vec<String> = worst.at.iter().map(|x| format!("{x:e}")).collect();
        let Worst { ulps, points, signs, got, wanted, .. } = worst;
        failed |= ulps > bound(op);
        let mark = if ulps > bound(op) { "  OUT OF BOUNDS" } else { "" };
        let place = format!("{} ({got:e}, not {wanted:e}){mark}", at.join(", "));
        println!("{:<8} {ulps:>10.3} {points:>11} {signs:>6}  {place}", op.name());
    }
    ExitCode::from(failed as u8)
}
