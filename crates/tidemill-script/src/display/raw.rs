//! Shows elements by their bytes, bits or signs: `format hex`, `format bit`, `format +`.
//!
//! Must hold: all elements of an array have the same width.

use super::Style;
use crate::value::Data;

/// Returns the text of a scalar; `None` in other styles.
pub(super) fn scalar(style: Style, data: &Data) -> Option<Vec<u8>> {
    match style {
        Style::Signs if data.is_complex() => Some(b"c".to_vec()),
        Style::Hex | Style::Bits | Style::Signs => Some(element(style, data, 0).into_bytes()),
        _ => None,
    }
}

/// Returns the places that a column counts, and the text before an element. Signs are never wrapped.
pub(super) fn column(style: Style, data: &Data) -> Option<(usize, &'static str)> {
    match style {
        Style::Signs => Some((0, "")),
        Style::Hex | Style::Bits => Some((element(style, data, 0).len() + 2, "  ")),
        _ => None,
    }
}

/// Returns the text of an element.
pub(super) fn element(style: Style, data: &Data, i: usize) -> String {
    match style {
        Style::Signs => {
            let z = data.c64_at(i);
            let sign = match data.is_complex() {
                true if z.re != 0.0 || z.im != 0.0 => '+',
                false if z.re > 0.0 => '+',
                false if z.re < 0.0 => '-',
                _ => ' ',
            };
            sign.to_string()
        }
        style => bytes(style == Style::Hex, data, i),
    }
}

fn bytes(hex: bool, data: &Data, i: usize) -> String {
    let digits = |bits: u64, bytes: usize| match hex {
        true => format!("{bits:0width$x}", width = 2 * bytes),
        false => format!("{bits:0width$b}", width = 8 * bytes),
    };
    let single = |x: f32| digits(x.to_bits() as u64, 4);
    let double = |x: f64| digits(x.to_bits(), 8);
    match data {
        Data::F64(v) => double(v[i]),
        Data::F32(v) => single(v[i]),
        Data::C64(v) => format!("{}  {}i", double(v[i].re), double(v[i].im)),
        Data::C32(v) => format!("{}  {}i", single(v[i].re), single(v[i].im)),
        Data::I8(v) => digits(v[i] as u8 as u64, 1),
        Data::I16(v) => digits(v[i] as u16 as u64, 2),
        Data::I32(v) => digits(v[i] as u32 as u64, 4),
        Data::I64(v) => digits(v[i] as u64, 8),
        Data::U8(v) | Data::Char(v) => digits(v[i] as u64, 1),
        Data::U16(v) => digits(v[i] as u64, 2),
        Data::U32(v) => digits(v[i] as u64, 4),
        Data::U64(v) => digits(v[i], 8),
        Data::Bool(v) => digits(v[i] as u64, 1),
    }
}
