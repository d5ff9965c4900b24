//! Shows values as GNU Octave 7.3 does, byte for byte.
//!
//! In: a name and a value, or a value. Out: bytes, printed to the environment's output or returned. [`layout`] chooses
//! how numbers are written, [`page`] turns arrays into lines, and [`nested`] adds names and shows cells and structs.
//! [`number`] writes a number as C does, [`rational`] as a quotient, and [`raw`] as its bytes. [`template`] is
//! `printf`.
//!
//! Must hold: values on the runtime are asked for before anything is printed (SCRIPT-2).

pub mod layout;
mod nested;
pub mod number;
mod page;
pub mod rational;
mod raw;
pub mod template;

use super::env::Env;
use super::error::{Flow, fail};
use super::value::{Tensor, Value};
use nested::{NESTED_BYTES_MAX, Printer};

/// The settings of `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Significant digits of doubles: 5 (`short`) or 16 (`long`).
    pub precision: u8,
    /// Whether blank lines around values are left out (`compact`).
    pub compact: bool,
    /// The kind of notation.
    pub style: Style,
    /// The number of columns of a line.
    pub width: u16,
}

/// Kinds of notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Fixed point with a common scale.
    Fixed,
    /// `format short e`.
    Exponent,
    /// `format short g`.
    General,
    /// `format bank`: two digits after the point.
    Bank,
    /// `format short eng`: exponents that are multiples of three.
    Engineering,
    /// `format rat`: quotients. In arrays, each has this many places.
    Rational(u8),
    /// `format hex`: the digits of the bytes.
    Hex,
    /// `format bit`: the bits.
    Bits,
    /// `format +`: a sign, or a blank for zero.
    Signs,
}

impl Default for Format {
    fn default() -> Format {
        Format { precision: 5, compact: false, style: Style::Fixed, width: 80 }
    }
}

/// Prints `name = value` to the environment's output, as a statement without a semicolon does.
///
/// # Errors
/// An error of reading the value.
pub fn show(env: &mut Env, name: &str, value: &Value) -> Flow<()> {
    read_all(env, value)?;
    let mut printer = Printer::new(env.format);
    printer.named(name, value);
    check_whole(&printer)?;
    env.print(&printer.out);
    Ok(())
}

/// Returns the text that `disp(value)` prints.
///
/// # Errors
/// An error of reading the value.
pub fn disp(env: &mut Env, value: &Value) -> Flow<Vec<u8>> {
    read_all(env, value)?;
    let mut printer = Printer::new(env.format);
    printer.bare(value);
    check_whole(&printer)?;
    Ok(printer.out)
}

/// Asks for the elements that are shown, traced ones included: what is shown needs no derivatives.
fn read_all(env: &mut Env, value: &Value) -> Flow<()> {
    let could_read = env.traces.allow(true);
    let result = env.host_all([value]);
    env.traces.allow(could_read);
    result
}

/// Returns an error if a part of the display was left out.
fn check_whole(printer: &Printer) -> Flow<()> {
    if printer.is_cut {
        return fail!("the contents of the cells and structs take more than {NESTED_BYTES_MAX} characters to show");
    }
    Ok(())
}

/// Returns the lines of `rats` for an array of doubles.
pub fn rational_lines(array: &Tensor, places: u8) -> Vec<Vec<u8>> {
    let format = Format { style: Style::Rational(places), ..Format::default() };
    let mut printer = Printer::new(format);
    page::block(&mut printer, array);
    let text = printer.out.strip_suffix(b"\n").unwrap_or(&printer.out);
    text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod cases;
