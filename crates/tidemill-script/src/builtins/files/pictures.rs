//! Pictures: reads files into arrays, writes arrays to files, and converts their classes.
//!
//! In: names of files; arrays of rows × columns × channels. Out: uint8 and uint16 arrays, files. The `image` library
//! decodes and encodes.

use super::streams::path;
use crate::builtins::{ANY, Builtin, Outcome, args, nothing, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::index;
use crate::memory;
use crate::ops;
use crate::picture;
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use image::{DynamicImage, ImageFormat};
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("imread", 1, ANY, 3, "[picture, map, alpha] = imread (file)", "A picture from a file.", imread).outside(),
    row("imwrite", 2, ANY, 0, "imwrite (picture, file, format)", "A picture to a file.", imwrite).outside(),
    row("rgb2gray", 1, 1, 1, "rgb2gray (picture)", "The luminance of a picture.", |i, a, _| {
        Ok(rgb2gray(&mut i.env, &a[0])?.into())
    }),
    row("im2double", 1, 2, 1, "im2double (picture, \"indexed\")", "A picture as doubles from 0 to 1.", |i, a, _| {
        let Some(kind) = a.get(1) else { return Ok(im2double(&mut i.env, &a[0])?.into()) };
        if !args::is_word(kind, "indexed") {
            return fail!("im2double: second input argument must be the string \"indexed\"");
        }
        Ok(indices(&mut i.env, &a[0])?.into())
    }),
    row("im2uint8", 1, 1, 1, "im2uint8 (picture)", "A picture as bytes.", |i, a, _| {
        if a[0].class() == Class::Uint8 {
            return Ok(a[0].clone().into());
        }
        let scaled = im2double(&mut i.env, &a[0])?;
        let scaled = ops::binary(&mut i.env, BinaryOp::Mul, &scaled, &Value::Num(255.0))?;
        Ok(ops::cast(&mut i.env, &scaled, Class::Uint8)?.into())
    }),
];

/// Turns samples that are stored pixel by pixel, row by row, into an array in column-major order.
fn planes<T: Copy>(
    samples: &[T],
    width: usize,
    height: usize,
    channels: usize,
    chosen: std::ops::Range<usize>,
) -> Vec<T> {
    let mut out = Vec::with_capacity(width * height * chosen.len());
    for channel in chosen {
        for x in 0..width {
            out.extend((0..height).map(|y| samples[(y * width + x) * channels + channel]));
        }
    }
    out
}

fn imread(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let file = path("imread", &args[0])?;
    let Ok(bytes) = memory::read(interp.env.found(&file)) else { return fail!("imread: unable to find file '{file}'") };
    let picture = match picture::decode(&bytes) {
        Ok(picture) => picture,
        Err(error) => return fail!("imread: {file}: {}", error.message()),
    };
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let channels = picture.color().channel_count() as usize;
    let colors = if channels < 3 { 1 } else { 3 };
    let is_bilevel = picture::is_bilevel(&bytes);
    let array = |range: std::ops::Range<usize>| {
        let dims = Dims::new(&[height, width, range.len()]);
        let data = match &picture {
            DynamicImage::ImageLuma16(_)
            | DynamicImage::ImageLumaA16(_)
            | DynamicImage::ImageRgb16(_)
            | DynamicImage::ImageRgba16(_) => {
                let samples: Vec<u16> =
                    picture.as_bytes().chunks_exact(2).map(|b| u16::from_ne_bytes([b[0], b[1]])).collect();
                Data::U16(planes(&samples, width, height, channels, range))
            }
            DynamicImage::ImageRgb32F(_) | DynamicImage::ImageRgba32F(_) => {
                let samples = picture.to_rgba8().into_raw();
                Data::U8(planes(&samples, width, height, 4, range))
            }
            other => match planes(other.as_bytes(), width, height, channels, range) {
                bits if is_bilevel => Data::Bool(bits.into_iter().map(|bit| bit > 0).collect()),
                bytes => Data::U8(bytes),
            },
        };
        Value::tensor(Tensor::new(dims, data))
    };
    let alpha = if channels == 2 || channels == 4 { array(colors..colors + 1) } else { Value::empty() };
    Ok(vec![array(0..colors), Value::empty(), alpha].into())
}

/// Samples of 8 or 16 bits, stored pixel by pixel.
enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// Returns the positions of the samples, pixel by pixel.
fn pixels(t: &Tensor, channels: usize) -> impl Iterator<Item = usize> {
    let (height, width) = (t.dims.rows(), t.dims.columns());
    (0..height * width * channels).map(move |i| {
        let (pixel, channel) = (i / channels, i % channels);
        (channel * width + pixel % width) * height + pixel / width
    })
}

fn samples(t: &Tensor, channels: usize) -> Flow<Samples> {
    let order = pixels(t, channels);
    Ok(match &*t.data {
        Data::U8(v) => Samples::Bytes(order.map(|i| v[i]).collect()),
        Data::U16(v) => Samples::Words(order.map(|i| v[i]).collect()),
        Data::Bool(v) => Samples::Bytes(order.map(|i| if v[i] { 255 } else { 0 }).collect()),
        data @ (Data::F64(_) | Data::F32(_)) => {
            Samples::Bytes(order.map(|i| (data.f64_at(i).clamp(0.0, 1.0) * 255.0).round() as u8).collect())
        }
        other => return fail!("imwrite: pictures of class {} are not written", other.class().name()),
    })
}

/// Returns the picture with the colours that its numbers index: from 0 for integers, from 1 for floats. A number beyond
/// the map means the last colour.
fn coloured(picture: &Tensor, map: &Tensor) -> Flow<Arc<Tensor>> {
    let colours = map.dims.rows();
    if map.dims.len() > 2 || map.dims.columns() != 3 || colours == 0 || picture.dims.len() > 2 {
        return fail!("imwrite: MAP must be a valid colormap");
    }
    let first = if picture.data.class().is_integer() { 0.0 } else { 1.0 };
    let row = |i: usize| (picture.data.f64_at(i) - first).clamp(0.0, (colours - 1) as f64) as usize;
    let n = picture.len();
    let data = (0..3 * n).map(|k| map.data.f64_at(row(k % n) + k / n * colours)).collect();
    let dims = Dims::new(&[picture.dims.rows(), picture.dims.columns(), 3]);
    Ok(Arc::new(Tensor::new(dims, Data::F64(data))))
}

fn imwrite(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let host = match &args[0] {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => return fail!("imwrite: IMG must be numeric"),
        value => env.host(value)?,
    };
    // In an indexed picture, the map of colours follows the picture.
    let (host, args) = match args {
        [_, map, _, ..] if !map.is_string() => (coloured(&host, &*env.host(map)?)?, &args[1..]),
        _ => (host, args),
    };
    let file = path("imwrite", &args[1])?;
    let mut format = std::path::Path::new(&file).extension().map(|e| e.to_string_lossy().to_lowercase());
    let mut quality = 75.0;
    let mut rest = &args[2..];
    if rest.len() % 2 == 1
        && let Some(word) = rest[0].as_text()
    {
        format = Some(word.trim_start_matches('.').to_lowercase());
        rest = &rest[1..];
    }
    for pair in rest.chunks_exact(2) {
        if args::is_word(&pair[0], "quality") {
            quality = args::number(env, "imwrite", &pair[1])?;
        }
    }
    let Some(format) = format.as_deref().and_then(ImageFormat::from_extension) else {
        return fail!("imwrite: no format is known for {file}");
    };
    let channels = host.dims.extent(2);
    if host.dims.len() > 3 || ![1, 3, 4].contains(&channels) || host.is_empty() {
        return fail!("imwrite: a picture is rows x columns, with 1, 3 or 4 channels, and not {}", host.dims);
    }
    let (Ok(height), Ok(width)) = (u32::try_from(host.dims.rows()), u32::try_from(host.dims.columns())) else {
        return fail!("imwrite: the picture is too large");
    };
    if let (Data::Bool(bits), 1, ImageFormat::Png) = (&*host.data, channels, format) {
        let rows: Vec<bool> = pixels(&host, 1).map(|i| bits[i]).collect();
        return match picture::write_bilevel_png(&env.at(&file), width, height, &rows) {
            Ok(()) => Ok(nothing()),
            Err(error) => fail!("imwrite: {file}: {}", error.message()),
        };
    }
    let picture = match (samples(&host, channels)?, channels) {
        (Samples::Bytes(v), 1) => image::GrayImage::from_raw(width, height, v).map(DynamicImage::from),
        (Samples::Bytes(v), 3) => image::RgbImage::from_raw(width, height, v).map(DynamicImage::from),
        (Samples::Bytes(v), _) => image::RgbaImage::from_raw(width, height, v).map(DynamicImage::from),
        (Samples::Words(v), 1) => image::ImageBuffer::from_raw(width, height, v).map(DynamicImage::ImageLuma16),
        (Samples::Words(v), 3) => image::ImageBuffer::from_raw(width, height, v).map(DynamicImage::ImageRgb16),
        (Samples::Words(v), _) => image::ImageBuffer::from_raw(width, height, v).map(DynamicImage::ImageRgba16),
    };
    let Some(picture) = picture else { return fail!("imwrite: the picture is too large") };
    let written = match format {
        ImageFormat::Jpeg => {
            // JPEG has samples of 8 bits, and no transparency.
            let picture = match channels {
                1 => DynamicImage::from(picture.into_luma8()),
                _ => DynamicImage::from(picture.into_rgb8()),
            };
            std::fs::File::create(env.at(&file)).map_err(image::ImageError::IoError).and_then(|f| {
                let writer = std::io::BufWriter::new(f);
                let encoder =
                    image::codecs::jpeg::JpegEncoder::new_with_quality(writer, quality.clamp(1.0, 100.0) as u8);
                picture.write_with_encoder(encoder)
            })
        }
        format => picture.save_with_format(env.at(&file), format),
    };
    match written {
        Ok(()) => Ok(nothing()),
        Err(error) => fail!("imwrite: {file}: {error}"),
    }
}

/// Returns the greatest value of a picture of this class.
fn full(class: Class) -> f64 {
    match class.integer_range() {
        Some((_, greatest)) => greatest as f64,
        None => 1.0,
    }
}

/// Returns the colour indices of an indexed picture as doubles, from 1 on.
fn indices(env: &mut Env, picture: &Value) -> Flow<Value> {
    let class = picture.class();
    let double = match class {
        Class::Uint8 | Class::Uint16 | Class::Double | Class::Single | Class::Logical => {
            ops::cast(env, picture, Class::Double)?
        }
        _ => {
            return fail!(
                "im2double: if IMG is indexed, then it must be positive integer floating points, or unsigned integer class"
            );
        }
    };
    // Integers count from 0.
    if class.is_integer() { ops::binary(env, BinaryOp::Add, &double, &Value::Num(1.0)) } else { Ok(double) }
}

fn im2double(env: &mut Env, picture: &Value) -> Flow<Value> {
    match picture.class() {
        Class::Uint8 | Class::Uint16 | Class::Int16 | Class::Double | Class::Single | Class::Logical => {}
        other => return fail!("im2double: IMG is of unsupported class \"{}\"", other.name()),
    }
    let class = picture.class();
    let double = ops::cast(env, picture, Class::Double)?;
    if class == Class::Int16 {
        let shifted = ops::binary(env, BinaryOp::Add, &double, &Value::Num(32768.0))?;
        return ops::binary(env, BinaryOp::Div, &shifted, &Value::Num(65535.0));
    }
    match full(class) {
        1.0 => Ok(double),
        greatest => ops::binary(env, BinaryOp::Div, &double, &Value::Num(greatest)),
    }
}

/// Returns the weighted sum of the channels that gives the perceived brightness, in the picture's class. For a map of
/// colours, it returns a map of greys.
fn rgb2gray(env: &mut Env, picture: &Value) -> Flow<Value> {
    let (class, dims) = (picture.class(), picture.dims());
    if !class.is_float() && !matches!(class, Class::Uint8 | Class::Int8 | Class::Uint16 | Class::Int16) {
        return fail!("rgb2gray: RGB of invalid data type '{}'", class.name());
    }
    if dims.len() > 4 {
        return fail!("rgb2gray: invalid RGB with more than 4 dimensions");
    }
    let is_map = dims.len() == 2 && dims.columns() == 3 && class.is_float();
    if !is_map && dims.extent(2) != 3 || picture.is_complex() {
        return fail!("rgb2gray: RGB must be a colormap or RGB image");
    }
    let mut sum = None;
    for (channel, weight) in [0.298936, 0.587043, 0.114021].into_iter().enumerate() {
        let channel = Value::Num(channel as f64 + 1.0);
        let plane = match is_map {
            true => index::paren(env, picture, &[Value::Colon, channel])?,
            false => index::paren(env, picture, &[Value::Colon, Value::Colon, channel, Value::Colon])?,
        };
        let plane = if class.is_integer() { ops::cast(env, &plane, Class::Double)? } else { plane };
        let part = ops::binary(env, BinaryOp::Mul, &plane, &Value::Num(weight))?;
        sum = Some(match sum {
            None => part,
            Some(sum) => ops::binary(env, BinaryOp::Add, &sum, &part)?,
        });
    }
    let sum = sum.unwrap_or_else(Value::empty);
    if is_map {
        return index::paren(env, &sum, &[Value::Colon, Value::row(vec![1.0; 3])]);
    }
    if class.is_integer() { ops::cast(env, &sum, class) } else { Ok(sum) }
}
