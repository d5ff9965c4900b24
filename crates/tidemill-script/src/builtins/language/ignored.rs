//! Functions that are accepted without an effect: settings of a terminal or of packages.

use crate::builtins::{ANY, Builtin, Outcome, Reach};
use crate::error::Flow;
use crate::value::Value;
use crate::vm::Interp;

/// Functions that do nothing here, and say nothing: settings of a terminal or of packages.
const SILENT: &[&str] = &[
    "clc",
    "more",
    "close",
    "closereq",
    "echo",
    "mlock",
    "munlock",
    "debug_on_error",
    "debug_on_warning",
    "beep_on_error",
    "confirm_recursive_rmdir",
    "print_empty_dimensions",
    "split_long_rows",
    "fixed_point_format",
    "history",
    "available_graphics_toolkits",
    "rehash",
    "pkg",
    "beep",
    "graphics_toolkit",
    "page_screen_output",
    "page_output_immediately",
    "crash_dumps_octave_core",
    "diary",
    "dbstop",
    "profile",
    "opengl",
    "feature",
];

/// A row of a command that takes whatever it is given.
pub(super) const fn row(name: &'static str, run: crate::builtins::Run, summary: &'static str) -> Builtin {
    Builtin { name, args_min: 0, args_max: ANY, outputs_max: ANY, reach: Reach::Script, usage: name, summary, run }
}

/// Commands without an effect.
pub static IGNORED: &[Builtin] = &{
    let mut rows = [const { row("", silent, "") }; SILENT.len()];
    let mut i = 0;
    while i < SILENT.len() {
        rows[i] = row(SILENT[i], silent, "Accepted, without an effect.");
        i += 1;
    }
    rows
};

fn silent(_: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    Ok(vec![Value::empty(); nargout].into())
}
