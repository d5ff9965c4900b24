//! How values are shown, byte for byte as GNU Octave 7.3 shows them.
//!
//! In: a name and a value, or a value. Out: bytes, printed to the environment's output or returned. [`layout`] says
//! how numbers are written, [`page`] how arrays become lines, [`nested`] how names, cells and structs are put around
//! them; [`number`] writes a number as C does, [`rational`] as a quotient, [`raw`] as its bytes, and [`template`] is
//! `printf`.
//!
//! Must hold: what lies on the runtime is asked for before anything is printed (SCRIPT-2).

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

/// What `format` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Significant digits of doubles: 5 (`short`) or 16 (`long`).
    pub precision: u8,
    /// Whether blank lines around values are left out (`compact`).
    pub compact: bool,
    /// The kind of notation.
    pub style: Style,
    /// Columns that a line may have.
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
    /// `format rat`: quotients, of arrays in so many places.
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

/// `name = value`, as a statement without a semicolon prints it. Prints to the environment's output.
///
/// # Errors
/// What reading the value raises.
pub fn show(env: &mut Env, name: &str, value: &Value) -> Flow<()> {
    env.host_all([value])?;
    let mut printer = Printer::new(env.format);
    printer.named(name, value);
    check_whole(&printer)?;
    env.print(&printer.out);
    Ok(())
}

/// What `disp(value)` prints.
///
/// # Errors
/// What reading the value raises.
pub fn disp(env: &mut Env, value: &Value) -> Flow<Vec<u8>> {
    env.host_all([value])?;
    let mut printer = Printer::new(env.format);
    printer.bare(value);
    check_whole(&printer)?;
    Ok(printer.out)
}

/// Refuses a display of which a part was left out.
fn check_whole(printer: &Printer) -> Flow<()> {
    if printer.is_cut {
        return fail!("what is inside of the cells and structs takes more than {NESTED_BYTES_MAX} characters to show");
    }
    Ok(())
}

/// The lines that `rats` makes of an array of doubles.
pub fn rational_lines(array: &Tensor, places: u8) -> Vec<Vec<u8>> {
    let format = Format { style: Style::Rational(places), ..Format::default() };
    let mut printer = Printer::new(format);
    page::block(&mut printer, array);
    let text = printer.out.strip_suffix(b"\n").unwrap_or(&printer.out);
    text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod cases;
