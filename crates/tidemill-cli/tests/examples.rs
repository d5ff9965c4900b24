//! Tests the examples on real input, called as the examples and the `tidemill` command call them.
//!
//! `photo` is compared with the same development in plain f64 loops, and `monte_carlo` with its closed form;
//! `concurrent` checks itself, session by session.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "../examples/concurrent/program.rs"]
mod concurrent;
#[path = "../examples/monte_carlo/program.rs"]
mod monte_carlo;
#[path = "../examples/photo/program.rs"]
mod photo;
#[path = "../examples/shared/mod.rs"]
mod shared;

use image::RgbImage;
use shared::{Outcome, RuntimeOptions};
use std::path::{Path, PathBuf};
use tidemill::{DeviceChoice, ErrorKind};

/// The host, and the GPU if there is one.
fn devices() -> Vec<DeviceChoice> {
    let gpu = common::gpu(|builder| builder).map(|_| DeviceChoice::Gpu(None));
    std::iter::once(DeviceChoice::Host).chain(gpu).collect()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn photo_options(files: Vec<PathBuf>, output: &Path, device: DeviceChoice) -> photo::Options {
    let runtime = RuntimeOptions::on(device);
    photo::Options { files, output: output.to_owned(), gain: 1.0, bias: 0.0, gamma: 1.0, sharpen: 0.6, runtime }
}

/// Writes a part of a picture to a file.
fn cropped(from: &str, (x, y, width, height): (u32, u32, u32, u32), to: PathBuf) -> PathBuf {
    image::open(data(from)).unwrap().crop_imm(x, y, width, height).into_rgb8().save(&to).unwrap();
    to
}

/// Returns the developed picture, computed in f64: its bytes, and each channel's mean, standard deviation, least and
/// greatest value.
fn developed(picture: &RgbImage, options: &photo::Options) -> (Vec<u8>, [[f64; 4]; 3]) {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let pixels = width * height;
    let mut bytes = vec![0; 3 * pixels];
    let mut channels = [[0.0; 4]; 3];
    for c in 0..3 {
        let linear = |byte: u8| match f64::from(byte) / 255.0 {
            x if x <= 0.04045 => x / 12.92,
            x => ((x + 0.055) / 1.055).powf(2.4),
        };
        let light: Vec<f64> = picture.pixels().map(|pixel| linear(pixel.0[c])).collect();
        let (mean, std) = mean_and_std(&light);
        let tone = |v: f64| {
            let scaled = (v - mean) / std.max(1e-6) * (0.16 * options.gain) + (0.18 + options.bias);
            scaled.clamp(0.0, 1.0).powf(options.gamma)
        };
        let toned: Vec<f64> = light.into_iter().map(tone).collect();
        let sharp = sharpened(&toned, (width, height), options.sharpen);
        for (i, &v) in sharp.iter().enumerate() {
            let encoded = if v <= 0.0031308 { v * 12.92 } else { v.powf(1.0 / 2.4) * 1.055 - 0.055 };
            bytes[3 * i + c] = (encoded * 255.0).round() as u8;
        }
        let (mean, std) = mean_and_std(&sharp);
        let least = sharp.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = sharp.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        channels[c] = [mean, std, least, greatest];
    }
    (bytes, channels)
}

fn mean_and_std(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Adds the detail that a 5×5 Gaussian removes. Beyond the edge, the edge is repeated.
fn sharpened(light: &[f64], (width, height): (usize, usize), amount: f64) -> Vec<f64> {
    let taps = [1.0, 4.0, 6.0, 4.0, 1.0];
    let at = |x: isize, y: isize| {
        let (x, y) = (x.clamp(0, width as isize - 1) as usize, y.clamp(0, height as isize - 1) as usize);
        light[x + width * y]
    };
    let mut out = Vec::with_capacity(light.len());
    for y in 0..height as isize {
        for x in 0..width as isize {
            let mut blurred = 0.0;
            for (j, row) in taps.iter().enumerate() {
                for (i, column) in taps.iter().enumerate() {
                    blurred += row * column / 256.0 * at(x + i as isize - 2, y + j as isize - 2);
                }
            }
            let own = at(x, y);
            out.push((own + (own - blurred) * amount).clamp(0.0, 1.0));
        }
    }
    out
}

/// Compares a result: bytes may differ by one in few places, where f32 rounds the other way, and numbers agree to five
/// digits.
fn assert_developed(done: &photo::Developed, options: &photo::Options) {
    let what = done.input.display();
    let picture = image::open(&done.input).unwrap().into_rgb8();
    let (bytes, channels) = developed(&picture, options);
    let result = image::open(&done.output).unwrap().into_rgb8();
    assert_eq!((result.dimensions(), done.size), (picture.dimensions(), picture.dimensions()), "{what}");
    let off: Vec<u8> = result.as_raw().iter().zip(&bytes).map(|(got, want)| got.abs_diff(*want)).collect();
    assert!(off.iter().all(|&by| by <= 1), "{what}: a byte is off by {}", off.iter().max().unwrap());
    let differing = off.iter().filter(|&&by| by > 0).count();
    assert!(differing * 500 <= off.len(), "{what}: {differing} of {} bytes differ", off.len());
    for (channel, expected) in done.channels.iter().zip(channels) {
        let got = [channel.mean, channel.std, channel.least, channel.greatest];
        for (got, expected) in got.into_iter().zip(expected) {
            assert!((f64::from(got) - expected).abs() <= 1e-5, "{what}: {channel:?} should be {expected}");
        }
    }
}

#[test]
fn photo_develops_both_pictures_as_plain_loops_in_f64_do() {
    for device in devices() {
        let folder = tempfile::tempdir().unwrap();
        let files = vec![data("astronaut.png"), data("hubble_deep_field.jpg")];
        let options = photo_options(files.clone(), folder.path(), device);
        let report = wait(photo::run(&options)).unwrap();
        assert!(report.succeeded(), "{:?}", report.failed);
        assert_eq!(report.done.iter().map(|d| d.input.clone()).collect::<Vec<_>>(), files);
        for done in &report.done {
            assert_developed(done, &options);
        }
    }
}

#[test]
fn photo_follows_its_options() {
    for device in devices() {
        let folder = tempfile::tempdir().unwrap();
        let part = cropped("astronaut.png", (180, 60, 61, 47), folder.path().join("part.png"));
        let mut options = photo_options(vec![part], &folder.path().join("out"), device);
        (options.gain, options.bias, options.gamma, options.sharpen) = (1.4, -0.03, 0.8, 1.5);
        let report = wait(photo::run(&options)).unwrap();
        assert_developed(&report.done[0], &options);
    }
}

#[test]
fn photo_names_a_corrupt_picture_and_develops_the_others() {
    for device in devices() {
        let folder = tempfile::tempdir().unwrap();
        let first = cropped("astronaut.png", (0, 0, 40, 30), folder.path().join("first.png"));
        let last = cropped("hubble_deep_field.jpg", (300, 300, 33, 21), folder.path().join("last.png"));
        let corrupt = folder.path().join("corrupt.png");
        std::fs::write(&corrupt, &std::fs::read(data("astronaut.png")).unwrap()[..5000]).unwrap();
        let cut = folder.path().join("cut.jpg");
        let jpeg = std::fs::read(data("hubble_deep_field.jpg")).unwrap();
        std::fs::write(&cut, &jpeg[..jpeg.len() - 2]).unwrap();
        // The file is overwritten in the middle, and decoders would still make a picture of it.
        let damaged = folder.path().join("damaged.jpg");
        let mut bytes = jpeg.clone();
        bytes[300_000..300_400].iter_mut().enumerate().for_each(|(k, byte)| *byte = k as u8);
        std::fs::write(&damaged, &bytes).unwrap();
        let missing = folder.path().join("missing.png");
        let out = folder.path().join("out");
        let files = vec![first.clone(), corrupt.clone(), cut.clone(), damaged.clone(), missing.clone(), last.clone()];
        let report = wait(photo::run(&photo_options(files, &out, device))).unwrap();
        assert!(!report.succeeded());
        assert_eq!(report.done.iter().map(|d| d.input.clone()).collect::<Vec<_>>(), [first, last]);
        for ((file, error), expected) in report.failed.iter().zip([corrupt, cut, damaged, missing]) {
            assert_eq!((file, error.kind()), (&expected, ErrorKind::Io));
            assert!(error.to_string().contains(&expected.display().to_string()), "{error}");
        }
        assert_eq!(report.failed.len(), 4);
        assert_eq!(names(&out), ["first.png", "last.png"], "no partial files");
    }
}

#[test]
fn photo_writes_a_timeline_into_the_folder_that_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let part = cropped("astronaut.png", (0, 0, 40, 30), folder.path().join("part.png"));
    let out = folder.path().join("out");
    let mut options = photo_options(vec![part], &out, DeviceChoice::Host);
    options.runtime.trace = Some(out.join("trace.json"));
    wait(photo::run(&options)).unwrap();
    assert_eq!(names(&out), ["part.png", "trace.json"]);
}

#[test]
fn monte_carlo_comes_within_four_standard_errors_of_the_closed_form() {
    for device in devices() {
        let runtime = RuntimeOptions::on(device);
        let options = monte_carlo::Options { paths: 50_000, steps: 32, runtime, ..monte_carlo::Options::default() };
        let report = wait(monte_carlo::run(&options)).unwrap();
        assert!((report.closed_form - 8.0214).abs() < 5e-5, "{}", report.closed_form);
        // A standard error that is far too large would let any price pass.
        assert!((0.04..0.08).contains(&report.standard_error), "{}", report.standard_error);
        assert!(report.distance() <= 4.0, "{report}");
    }
}

#[test]
fn concurrent_programs_all_get_their_own_right_results() {
    for device in devices() {
        let options = concurrent::Options { sessions: 60, elements: 2_000, runtime: RuntimeOptions::on(device) };
        let report = wait(concurrent::run(&options)).unwrap();
        assert!(report.succeeded(), "{report}");
        assert_eq!((report.sessions, report.gathers), (60, 300));
    }
}
