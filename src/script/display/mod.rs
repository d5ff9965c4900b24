//! How values are shown, byte for byte as GNU Octave 7.3 shows them.

use super::env::Env;
use super::error::{Flow, fail};
use super::value::Value;

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
    let _ = (env, name, value);
    fail!("display is not built yet")
}

/// What `disp(value)` prints.
///
/// # Errors
/// What reading the value raises.
pub fn disp(env: &mut Env, value: &Value) -> Flow<Vec<u8>> {
    let _ = (env, value);
    fail!("disp is not built yet")
}
