//! Functions that are accepted without an effect: settings of a terminal or of packages, and plots.

use super::{ANY, Builtin, Outcome};
use crate::script::error::Flow;
use crate::script::value::Value;
use crate::script::vm::Interp;

/// Functions that do nothing here, and say nothing: settings of a terminal or of packages.
const SILENT: &[&str] = &[
    "clc",
    "more",
    "close",
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
    "maxNumCompThreads",
    "feature",
];

/// Functions that would draw. The first that is called warns; all go on.
const PLOTS: &[&str] = &[
    "figure",
    "plot",
    "plot3",
    "hold",
    "axis",
    "xlabel",
    "ylabel",
    "zlabel",
    "title",
    "legend",
    "grid",
    "subplot",
    "surf",
    "mesh",
    "contour",
    "contourf",
    "imagesc",
    "imshow",
    "image",
    "bar",
    "histogram",
    "scatter",
    "line",
    "text",
    "colorbar",
    "colormap",
    "drawnow",
    "print",
    "saveas",
    "semilogx",
    "semilogy",
    "loglog",
    "errorbar",
    "area",
    "pie",
    "quiver",
    "fill",
    "patch",
    "set",
    "gca",
    "gcf",
    "xlim",
    "ylim",
    "zlim",
    "view",
    "shading",
    "clf",
    "cla",
    "refresh",
    "waitbar",
    "sgtitle",
    "exportgraphics",
];

const fn row(name: &'static str, run: super::Run, summary: &'static str) -> Builtin {
    Builtin { name, args_min: 0, args_max: ANY, outputs_max: ANY, usage: name, summary, run }
}

/// Commands without an effect, and plots.
pub static IGNORED: &[Builtin] = &{
    const N: usize = SILENT.len() + PLOTS.len();
    let mut rows = [const { row("", silent, "") }; N];
    let mut i = 0;
    while i < N {
        rows[i] = if i < SILENT.len() {
            row(SILENT[i], silent, "Accepted, without an effect.")
        } else {
            row(PLOTS[i - SILENT.len()], plot, "Accepted; nothing is drawn, and the first such call warns.")
        };
        i += 1;
    }
    rows
};

fn silent(_: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    Ok(vec![Value::empty(); nargout].into())
}

#[derive(Default)]
struct Plots {
    warned: bool,
}

fn plot(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    let plots = interp.env.keep.of::<Plots>();
    if !std::mem::replace(&mut plots.warned, true) {
        interp.env.warn("Tidemill:no-plots", "plots are not drawn; plot commands are ignored");
    }
    Ok(vec![Value::empty(); nargout].into())
}
