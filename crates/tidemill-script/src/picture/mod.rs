//! Reads pictures from files, or tells in plain words why they cannot be read.
//!
//! In: a file's bytes. Out: the picture, as a type of the `image` crate. Decoders make a picture even of a damaged
//! JPEG, for browsers to show. Here that is an error, as for any other format.
//! Must hold: PICTURE-1: no picture is made of a file that is cut short, or whose data breaks the format's rules. A
//! JPEG has no checksum: a change that leaves the same number of valid codes, or that lies in a table or in the bits
//! behind a code, cannot be detected.

mod jpeg;

use image::{DynamicImage, ImageError, ImageFormat};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tidemill::{Error, ErrorKind, Result};

const CUT: &str = "the file ends before the picture does";
const DAMAGED: &str = "the picture's data is damaged";

/// Decodes the picture in a PNG, JPEG, BMP, TIFF or PNM file.
///
/// # Errors
/// `ErrorKind::Io` if the bytes are no picture, end too early, or are damaged; `ErrorKind::Unsupported` for kinds of
/// pictures that are not read.
pub fn decode(bytes: &[u8]) -> Result<DynamicImage> {
    if bytes.is_empty() {
        return Err(unreadable("the file is empty"));
    }
    let Ok(format) = image::guess_format(bytes) else {
        return Err(unreadable("the file is no picture: it begins as none of PNG, JPEG, BMP, TIFF and PNM does"));
    };
    if format == ImageFormat::Png {
        check_png(bytes)?;
    }
    let picture = image::load_from_memory_with_format(bytes, format).map_err(|error| in_words(&error))?;
    match format {
        ImageFormat::Jpeg => check_jpeg(bytes)?,
        ImageFormat::Bmp if has_grey_palette(bytes, &picture) => return Ok(picture.into_luma8().into()),
        _ => {}
    }
    Ok(picture)
}

/// Whether a BMP's pixels are indices of colours (its bits a pixel are at byte 28), and all of these are greys. BMP has
/// no other grey pictures.
fn has_grey_palette(bytes: &[u8], picture: &DynamicImage) -> bool {
    let has_palette = bytes.get(28).is_some_and(|bits| *bits <= 8) && bytes.get(29) == Some(&0);
    has_palette && picture.as_rgb8().is_some_and(|p| p.pixels().all(|pixel| pixel.0.iter().all(|c| *c == pixel[0])))
}

/// Whether a picture is black and white, with a bit a pixel: a PNG with such a header (PNG specification, 11.2.1), or a
/// PBM.
pub fn is_bilevel(bytes: &[u8]) -> bool {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => bytes.get(24..26) == Some(&[1, 0]),
        Ok(ImageFormat::Pnm) => bytes.starts_with(b"P1") || bytes.starts_with(b"P4"),
        _ => false,
    }
}

/// Writes a picture of zeros and ones, row by row, as a PNG of a bit a pixel.
///
/// # Errors
/// An error of writing the file.
pub fn write_bilevel_png(path: &Path, width: u32, height: u32, pixels: &[bool]) -> Result<()> {
    let rows = pixels.chunks(width.max(1) as usize);
    let bits = |row: &[bool]| {
        let byte = |pixels: &[bool]| pixels.iter().enumerate().fold(0, |byte, (i, on)| byte | u8::from(*on) << (7 - i));
        row.chunks(8).map(byte).collect::<Vec<u8>>()
    };
    let bytes: Vec<u8> = rows.flat_map(bits).collect();
    let write = || {
        let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&bytes)?;
        writer.finish()
    };
    write().map_err(|error: png::EncodingError| unreadable(&error.to_string()))
}

fn unreadable(message: &str) -> Error {
    Error::new(ErrorKind::Io, message)
}

/// Describes a decoder's error for people who know no picture formats.
fn in_words(error: &ImageError) -> Error {
    let text = error.to_string();
    match error {
        ImageError::Limits(_) => unreadable("the picture is too large"),
        ImageError::Unsupported(_) => Error::new(ErrorKind::Unsupported, "pictures of this kind are not read"),
        ImageError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => unreadable(CUT),
        _ if text.contains("end of file") || text.contains("EOF") => unreadable(CUT),
        _ => unreadable(DAMAGED),
    }
}

/// Checks that a PNG's chunks (PNG specification, 5.3) are complete, up to the one that is marked as the last.
fn check_png(bytes: &[u8]) -> Result<()> {
    let mut rest = bytes.get(8..).unwrap_or(&[]);
    while let Some((length, chunk)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize + 4;
        let (Some(data), Some(checksum)) = (chunk.get(..length), chunk.get(length..length + 4)) else { break };
        if crc32fast::hash(data).to_be_bytes() != checksum {
            return Err(unreadable(&format!("{DAMAGED}: a checksum does not match")));
        }
        if data.starts_with(b"IEND") {
            return Ok(());
        }
        rest = &chunk[length + 4..];
    }
    Err(unreadable(CUT))
}

/// Checks that the data of a JPEG that can be decoded is complete.
fn check_jpeg(bytes: &[u8]) -> Result<()> {
    match jpeg::check(bytes) {
        Ok(jpeg::Coverage::AllCodes) => Ok(()),
        Ok(jpeg::Coverage::HeadersOnly) if !has_no_end(bytes) => Ok(()),
        Err(jpeg::Damaged) if !has_no_end(bytes) => Err(unreadable(DAMAGED)),
        _ => Err(unreadable(CUT)),
    }
}

/// Whether a JPEG's end marker (ITU-T T.81, B.1.1.3) seems to be missing behind its last scan, which decoders fill with
/// grey. This is less certain if something else follows the picture.
fn has_no_end(bytes: &[u8]) -> bool {
    let last = |marker: [u8; 2]| bytes.windows(2).rposition(|pair| pair == marker);
    last([0xFF, 0xD9]) < last([0xFF, 0xDA])
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::RgbImage;
    use std::io::Cursor;

    const FORMATS: [ImageFormat; 5] =
        [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::Pnm];

    fn picture(format: ImageFormat) -> Vec<u8> {
        let pixel = |x: u32, y: u32| image::Rgb([(x * 7 + y) as u8, (x ^ y) as u8, (x * y / 16) as u8]);
        let mut file = Cursor::new(Vec::new());
        RgbImage::from_fn(160, 120, pixel).write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    fn said(bytes: &[u8]) -> String {
        decode(bytes).err().map(|error| error.message().to_owned()).unwrap_or_default()
    }

    #[test]
    fn whole_files_are_read_as_the_image_crate_reads_them() {
        for format in FORMATS {
            let file = picture(format);
            let plain = image::load_from_memory(&file).unwrap();
            assert_eq!(decode(&file).unwrap(), plain, "{format:?}");
        }
    }

    #[test]
    fn a_grey_bmp_is_read_as_it_was_written() {
        let grey = DynamicImage::from(image::GrayImage::from_fn(7, 5, |x, y| image::Luma([(x * 30 + y) as u8])));
        let mut file = Cursor::new(Vec::new());
        grey.write_to(&mut file, ImageFormat::Bmp).unwrap();
        assert_eq!(decode(&file.into_inner()).unwrap(), grey);
    }

    #[test]
    fn a_picture_of_bits_is_written_and_known_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bits.png");
        let pixels: Vec<bool> = (0..11 * 3).map(|i| i % 3 == 0).collect();
        write_bilevel_png(&path, 11, 3, &pixels).unwrap();
        let file = std::fs::read(&path).unwrap();
        assert!(is_bilevel(&file) && !is_bilevel(&picture(ImageFormat::Png)));
        let read: Vec<bool> = decode(&file).unwrap().to_luma8().pixels().map(|pixel| pixel[0] == 255).collect();
        assert_eq!(read, pixels);
    }

    #[test]
    fn what_is_no_picture_is_told() {
        assert_eq!(said(b""), "the file is empty");
        assert!(said(b"hello, world").starts_with("the file is no picture"));
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_no_picture() {
        for format in FORMATS {
            let file = picture(format);
            for at in (12..file.len() - 1).step_by(97).chain([file.len() - 2]) {
                assert!(!said(&file[..at]).is_empty(), "{format:?} cut at {at} of {}", file.len());
            }
            assert_eq!(said(&file[..file.len() - 2]), CUT, "{format:?}");
        }
    }

    #[test]
    fn bytes_that_are_overwritten_in_the_middle_are_found() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            for at in [30, 40, 50, 60, 70, 80] {
                let mut file = picture(format);
                let from = file.len() * at / 100;
                for (k, byte) in file[from..from + 250].iter_mut().enumerate() {
                    *byte = k as u8;
                }
                assert!(said(&file).starts_with(DAMAGED), "{format:?} at {at} %: {}", said(&file));
            }
        }
        let mut file = picture(ImageFormat::Png);
        let middle = file.len() / 2;
        file[middle] ^= 1;
        assert_eq!(said(&file), "the picture's data is damaged: a checksum does not match");
    }

    #[test]
    fn what_follows_a_jpeg_is_no_part_of_it() {
        let whole = picture(ImageFormat::Jpeg);
        let plain = image::load_from_memory(&whole).unwrap();
        // The bytes behind the picture, such as a film, may contain a start-of-scan marker by chance.
        let tail = [&[0u8; 40][..], &[0xFF, 0xDA, 7, 9], &[3; 40]].concat();
        assert_eq!(decode(&[&whole[..], &tail].concat()).unwrap(), plain);
        let cut = &whole[..whole.len() * 2 / 3];
        assert_eq!(said(cut), CUT);
        assert!(!said(&[cut, &tail].concat()).is_empty());
    }

    #[test]
    fn a_marker_amid_a_jpegs_data_and_bytes_too_many_or_too_few_are_damage() {
        let whole = picture(ImageFormat::Jpeg);
        let middle = whole.len() * 3 / 4;
        let mut file = whole.clone();
        file[middle..middle + 2].copy_from_slice(&[0xFF, 0xD9]);
        assert_eq!(said(&file), DAMAGED);
        let without = [&whole[..middle], &whole[middle + 40..]].concat();
        assert_eq!(said(&without), DAMAGED);
        let twice = [&whole[..middle + 40], &whole[middle..]].concat();
        assert_eq!(said(&twice), DAMAGED);
    }

    #[test]
    fn a_good_part_of_flipped_bits_of_a_jpeg_is_found() {
        let whole = picture(ImageFormat::Jpeg);
        let begin = whole.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14;
        let places: Vec<usize> = (begin..whole.len() - 4).step_by(23).collect();
        let found = places.iter().filter(|&&at| {
            let mut file = whole.clone();
            file[at] ^= 0x10;
            !said(&file).is_empty()
        });
        let found = found.count();
        eprintln!("{found} of {} flipped bits found", places.len());
        assert!(found * 4 >= places.len(), "{found} of {}", places.len());
    }
}
