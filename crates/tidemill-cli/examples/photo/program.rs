//! Develops pictures from files into files.
//!
//! On the device, for each picture: sRGB is converted to linear light; every channel is normalised by its mean and
//! standard deviation; gain, bias and gamma are applied; a 5×5 Gaussian blur is made of shifted views of a padded
//! array, and used for an unsharp mask; statistics are taken; and the result is converted to sRGB bytes. A picture that
//! cannot be read is reported, and the others are still done.

use crate::shared::{Outcome, RuntimeOptions, stats_text, write_whole};
use futures::StreamExt;
use image::{ImageFormat, RgbImage};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashSet;
use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tidemill::{Array, Error, ErrorKind, Result, Runtime, Stats, cat};

/// The number of pictures in progress at a time: one is read or written while another is computed.
const PICTURES_IN_FLIGHT: usize = 3;
/// The linear light of middle grey, to which each channel's mean is moved.
const MIDDLE_GREY: f64 = 0.18;
/// The linear light of one standard deviation at a gain of 1.
const SPREAD: f64 = 0.16;
/// The 5-tap Gaussian: a row of Pascal's triangle, whose sum is 16.
const TAPS: [f64; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];
/// How far a 5×5 blur reaches beyond a pixel.
const MARGIN: usize = 2;

/// The pictures to develop, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Pictures (PNG, JPEG, BMP, TIFF or PNM)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Folder for the results (PNG); made if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Contrast: the factor of one standard deviation of a channel
    #[arg(long, default_value_t = 1.0, value_parser = crate::shared::finite, allow_negative_numbers = true)]
    pub gain: f64,
    /// Brightness that is added, in linear light
    #[arg(long, default_value_t = 0.0, value_parser = crate::shared::finite, allow_negative_numbers = true)]
    pub bias: f64,
    /// Exponent on linear light; below 1 brightens the shadows
    #[arg(long, default_value_t = 1.0, value_parser = crate::shared::positive, allow_negative_numbers = true)]
    pub gamma: f64,
    /// How much of the detail removed by the blur is added again
    #[arg(long, default_value_t = 0.6, value_parser = crate::shared::finite, allow_negative_numbers = true)]
    pub sharpen: f64,
    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    /// The pictures that were written, in the order of the arguments.
    pub done: Vec<Developed>,
    /// The pictures that were not written, with the errors.
    pub failed: Vec<(PathBuf, Error)>,
    /// The runtime's counters, if they were asked for.
    pub stats: Option<Stats>,
}

/// A picture that was written.
#[derive(Clone, Debug)]
pub struct Developed {
    /// The file that was read.
    pub input: PathBuf,
    /// The file that was written.
    pub output: PathBuf,
    /// The numbers of columns and rows.
    pub size: (u32, u32),
    /// Red, green and blue of the result in linear light.
    pub channels: [Channel; 3],
}

/// Statistics of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Channel {
    /// Mean.
    pub mean: f32,
    /// Standard deviation.
    pub std: f32,
    /// Least value.
    pub least: f32,
    /// Greatest value.
    pub greatest: f32,
}

/// Develops all pictures.
///
/// # Errors
/// Errors that concern all pictures: the options, the folder, the runtime. Errors of single pictures are in the report.
pub async fn run(options: &Options) -> Result<Report> {
    let names = output_names(&options.files);
    refuse_overwriting(&options.files, &options.output, &names)?;
    // This comes before the runtime starts, since its timeline may lie in the folder.
    let _unused = FreshFolder::make(&options.output).map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot make the folder {}: {error}", options.output.display()))
    })?;
    let runtime = options.runtime.start().await?;
    let progress = progress_bar(options.files.len());
    let jobs = options.files.iter().cloned().zip(names);
    let results: Vec<(PathBuf, Result<Developed>)> = futures::stream::iter(jobs)
        .map(|(input, name)| {
            let (runtime, progress) = (&runtime, &progress);
            async move {
                let result = develop(runtime, &input, &options.output.join(name), options).await;
                progress.inc(1);
                (input, result)
            }
        })
        .buffered(PICTURES_IN_FLIGHT)
        .collect()
        .await;
    progress.finish_and_clear();
    let mut report = Report { done: Vec::new(), failed: Vec::new(), stats: options.runtime.finish(runtime).await? };
    for (input, result) in results {
        match result {
            Ok(developed) => report.done.push(developed),
            Err(error) => report.failed.push((input, error)),
        }
    }
    Ok(report)
}

/// A folder for the output. If it was made and is left empty, it is removed.
struct FreshFolder(Option<PathBuf>);

impl FreshFolder {
    fn make(path: &Path) -> std::io::Result<FreshFolder> {
        let fresh = !path.exists();
        std::fs::create_dir_all(path)?;
        Ok(FreshFolder(fresh.then(|| path.to_owned())))
    }
}

impl Drop for FreshFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // This fails if the folder contains something.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Develops one picture, from file to file.
async fn develop(runtime: &Runtime, input: &Path, output: &Path, options: &Options) -> Result<Developed> {
    let unreadable = |error: &dyn fmt::Display| Error::new(ErrorKind::Io, format!("{}: {error}", input.display()));
    let bytes = std::fs::read(input).map_err(|error| unreadable(&error))?;
    let picture = tidemill_script::picture::decode(&bytes).map_err(|error| unreadable(&error.message()))?.into_rgb8();
    let (width, height) = picture.dimensions();
    let session = runtime.session(&input.display().to_string()).open();
    // The bytes are red, green, blue, pixel by pixel, row by row. In column-major order, that is 3 × width × height.
    let pixels = session.from_slice(picture.as_raw(), [3, width as usize, height as usize])?;

    let light = linear_light(&pixels);
    let (mean, std) = (light.mean([1, 2]), light.std([1, 2]));
    let toned = tone(&linear_light(&pad(&pixels)?), &mean, &std, options);
    // A blur reads every pixel 25 times, so this array is worth its memory. Everything else is fused and never stored.
    toned.eval().await?;
    let sharp = unsharp_mask(&toned, (width as usize, height as usize), options.sharpen);
    let encoded = encode(&sharp);

    // The gathers are requested together, so that common parts are computed once.
    let ((mean, std), (least, greatest), developed) = futures::try_join!(
        async { futures::try_join!(sharp.mean([1, 2]).gather::<f32>(), sharp.std([1, 2]).gather::<f32>()) },
        async { futures::try_join!(sharp.min_over([1, 2]).gather::<f32>(), sharp.max_over([1, 2]).gather::<f32>()) },
        encoded.gather::<u8>(),
    )?;
    let result = RgbImage::from_raw(width, height, developed.as_slice().to_vec())
        .ok_or_else(|| unreadable(&"the result has another size than the picture"))?;
    let mut png = Cursor::new(Vec::new());
    result.write_to(&mut png, ImageFormat::Png).map_err(|error| unreadable(&error))?;
    write_whole(output, png.get_ref())?;
    let channel = |c: usize| Channel {
        mean: mean.as_slice()[c],
        std: std.as_slice()[c],
        least: least.as_slice()[c],
        greatest: greatest.as_slice()[c],
    };
    Ok(Developed {
        input: input.to_owned(),
        output: output.to_owned(),
        size: (width, height),
        channels: [channel(0), channel(1), channel(2)],
    })
}

/// Converts sRGB bytes to linear light, 0 to 1.
fn linear_light(pixels: &Array) -> Array {
    let x = pixels.cast::<f32>() / 255.0;
    let curved = ((&x + 0.055) / 1.055).pow(2.4);
    x.le(0.04045).select(&x / 12.92, curved)
}

/// Normalises every channel by its mean and standard deviation, then applies gain, bias and gamma.
fn tone(light: &Array, mean: &Array, std: &Array, options: &Options) -> Array {
    // A channel of a single value has no spread, and becomes its mean.
    let normal = (light - mean) / std.max(1e-6);
    (normal * (SPREAD * options.gain) + (MIDDLE_GREY + options.bias)).clamp(0.0, 1.0).pow(options.gamma)
}

/// Returns a picture with its edge repeated `MARGIN` times on every side, so that a blur neither darkens nor brightens
/// it.
fn pad(picture: &Array) -> Result<Array> {
    let (width, height) = (picture.shape()?.dim(1), picture.shape()?.dim(2));
    let (left, right) = (picture.slice((.., 0..1, ..)), picture.slice((.., width - 1.., ..)));
    let wide = cat(1, &[&left, &left, picture, &right, &right])?;
    let (top, bottom) = (wide.slice((.., .., 0..1)), wide.slice((.., .., height - 1..)));
    cat(2, &[&top, &top, &wide, &bottom, &bottom])
}

/// Adds the detail that a 5×5 Gaussian blur removes. The blur is a weighted sum of 25 shifted views of the padded
/// picture.
fn unsharp_mask(padded: &Array, (width, height): (usize, usize), amount: f64) -> Array {
    let view = |x: usize, y: usize| padded.slice((.., x..x + width, y..y + height));
    let light = view(MARGIN, MARGIN);
    let mut blurred = &light * (TAPS[MARGIN] * TAPS[MARGIN]);
    for (y, row) in TAPS.iter().enumerate() {
        for (x, column) in TAPS.iter().enumerate() {
            if (x, y) != (MARGIN, MARGIN) {
                blurred += view(x, y) * (row * column);
            }
        }
    }
    (&light + (&light - blurred) * amount).clamp(0.0, 1.0)
}

/// Converts linear light to sRGB bytes.
fn encode(light: &Array) -> Array {
    let curved = light.pow(1.0 / 2.4) * 1.055 - 0.055;
    let encoded = light.le(0.0031308).select(light * 12.92, curved);
    (encoded * 255.0).cast::<u8>()
}

/// Returns `name.png` for each file. Files with the same stem keep their whole names, with a number if those are equal,
/// too.
fn output_names(files: &[PathBuf]) -> Vec<String> {
    let stem = |file: &Path| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut taken = HashSet::new();
    let mut names = Vec::new();
    for file in files {
        let whole = file.file_name().unwrap_or_default().to_string_lossy();
        let mut name = format!("{}.png", stem(file));
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name = if number == 1 { format!("{whole}.png") } else { format!("{whole}.{number}.png") };
            number += 1;
        }
        names.push(name);
    }
    names
}

/// Returns an error if a result would replace one of the given pictures.
fn refuse_overwriting(files: &[PathBuf], folder: &Path, names: &[String]) -> Result<()> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let given: HashSet<PathBuf> = files.iter().filter_map(|file| real(file)).collect();
    let hit = names.iter().map(|name| folder.join(name)).find(|path| real(path).is_some_and(|p| given.contains(&p)));
    hit.map_or(Ok(()), |path| {
        let words = format!("the result would overwrite {}; choose another --output folder", path.display());
        Err(Error::new(ErrorKind::Argument, words))
    })
}

/// Makes a progress bar, which is drawn on a terminal only.
fn progress_bar(pictures: usize) -> ProgressBar {
    let bar = ProgressBar::new(pictures as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} pictures, {eta} left") {
        bar.set_style(style);
    }
    bar
}

impl Outcome for Report {
    fn succeeded(&self) -> bool {
        self.failed.is_empty()
    }

    fn failures(&self) -> Vec<&Error> {
        self.failed.iter().map(|(_, error)| error).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Developed { input, output, size, channels } in &self.done {
            writeln!(f, "{} -> {} ({} x {})", input.display(), output.display(), size.0, size.1)?;
            for (name, c) in ["red", "green", "blue"].iter().zip(channels) {
                let Channel { mean, std, least, greatest } = c;
                writeln!(f, "  {name:<6} mean {mean:.4}  std {std:.4}  least {least:.4}  greatest {greatest:.4}")?;
            }
        }
        f.write_str(&stats_text(&self.stats))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_files_with_the_same_stem_do_not_overwrite_each_other() {
        let files = ["a/x.png", "b/x.jpg", "c/x.jpg", "y.png"].map(PathBuf::from);
        assert_eq!(output_names(&files), ["x.png", "x.jpg.png", "x.jpg.2.png", "y.png"]);
    }
}
