//! Functions that are accepted without an effect, so that scripts which call them go on.
//!
//! Nothing is drawn, shown or played here, and there is no debugger and no profiler. A numerical script of a stranger
//! calls some functions of that kind beside its computations. A name is on this list only if such scripts call it often
//! (figures, axes, labels, colours, writing a figure to a file, sound), and if ignoring the call changes no number.
//!
//! `SILENT` has the functions whose effect would be on a terminal or on packages only: they do not warn. Each other
//! function warns once in a run, also if it would change what is printed or would write a file.
//!
//! Must hold: ACCEPTED-1: a call that asks for computed values is never accepted. A function that computes values
//! belongs to a family or the library; if it is missing, it is unknown. A function that draws, and computes values if
//! it is called with outputs (`contour`), is accepted without outputs only.

use crate::builtins::{ANY, Builtin, Outcome, Reach, Run};
use crate::error::{Flow, fail_id};
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Functions that do nothing and do not warn: settings of a terminal, of packages and of windows.
const SILENT: &[&str] =
    &["clc", "more", "close", "pkg", "beep", "graphics_toolkit", "page_screen_output", "page_output_immediately"];

/// Makes a row of a command that accepts any arguments and outputs.
const fn row(name: &'static str, run: Run, summary: &'static str) -> Builtin {
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

/// The outputs of a function in this list.
#[derive(Clone, Copy)]
enum Given {
    /// A struct without fields for each handle. A script may set fields of it, and put it into an array.
    Handles,
    /// Such a struct as the only output, since further ones would be computed values.
    Handle,
    /// No outputs, since they would be computed values.
    Nothing,
    /// The empty matrix, for each setting of axes that do not exist.
    Empty,
    /// False, for each element of the first argument.
    No,
    /// The empty matrix. The function would change what is printed, write a file or stop the script.
    Setting,
}

impl Given {
    /// The most outputs that a call may ask for.
    fn outputs_max(self) -> usize {
        match self {
            Given::Nothing => 0,
            Given::Handle => 1,
            Given::Handles | Given::Empty | Given::No | Given::Setting => usize::MAX,
        }
    }
}

/// Makes the rows of functions that warn, by their outputs.
macro_rules! warned {
    ($($given:ident: $($name:literal)+;)+) => {
        &[$($(row(
            $name,
            |interp, args, nargout| warned(interp, $name, Given::$given, args, nargout),
            "Accepted, without an effect; its first call warns.",
        ),)+)+]
    };
}

/// Functions for plots, sound, and tools of programmers.
#[rustfmt::skip]
pub static WARNED: &[Builtin] = warned! {
    Handles:
        "figure" "gcf" "gca" "axes" "subplot" "tiledlayout" "nexttile" "groot" "gobjects" "plot3" "plotyy" "yyaxis"
        "stem" "stem3" "scatter" "scatter3" "bar3" "pie" "errorbar" "histogram" "histogram2" "heatmap" "boxplot" "polar"
        "polarplot" "surf" "surfc" "surfl" "surface" "mesh" "meshc" "waterfall" "pcolor" "fsurf" "fmesh" "fcontour"
        "fimplicit" "ezplot" "ezsurf" "trisurf" "trimesh" "triplot" "quiver" "quiver3" "streamline" "slice" "image"
        "imagesc" "imshow" "spy" "line" "animatedline" "addpoints" "xline" "yline" "patch" "fill" "rectangle" "text"
        "annotation" "xlabel" "ylabel" "zlabel" "title" "subtitle" "sgtitle" "legend" "colorbar" "box" "camlight"
        "waitbar";
    Handle:
        "plot" "loglog" "semilogx" "semilogy" "area" "bar" "barh" "fplot";
    Nothing:
        "contour" "contourf" "contour3";
    Empty:
        "hold" "grid" "clf" "cla" "refresh" "drawnow" "print" "saveas" "savefig" "exportgraphics" "shading" "lighting"
        "material" "alpha" "linkaxes" "datetick" "colororder" "axis" "xlim" "ylim" "zlim" "caxis" "clim" "xticks"
        "yticks" "zticks" "xticklabels" "yticklabels" "xtickangle" "daspect" "pbaspect" "view" "set" "get" "findobj"
        "findall" "sound" "soundsc";
    No:
        "ishold" "ishandle" "isgraphics" "isfigure";
    Setting:
        "diary" "echo" "profile" "dbstop" "split_long_rows" "fixed_point_format";
};

/// The functions that have warned.
#[derive(Default)]
struct AlreadyWarned(FxHashSet<&'static str>);

fn warned(interp: &mut Interp, name: &'static str, given: Given, args: &[Value], nargout: usize) -> Flow<Outcome> {
    if nargout > given.outputs_max() {
        return fail_id!("Octave:invalid-fun-call", "{name}: function called with too many outputs");
    }
    let value = match given {
        Given::Handles | Given::Handle => Value::Struct(Arc::new(StructArray::scalar())),
        Given::Empty | Given::Nothing | Given::Setting => Value::empty(),
        Given::No => {
            let dims = args.first().map_or_else(Dims::scalar, Value::dims);
            interp.env.check_host(&dims, 1)?;
            let no = Data::Bool(vec![false; dims.elements()]);
            Value::tensor(Tensor::new(dims, no))
        }
    };
    if interp.env.keep.of::<AlreadyWarned>().0.insert(name) {
        match given {
            Given::Setting => interp.env.warn("Tidemill:no-effect", &format!("{name} has no effect")),
            _ => {
                let text = format!("{name} has no effect: there are no plots, sounds and handles of them");
                interp.env.warn("Tidemill:no-plots", &text);
            }
        }
    }
    // A question has an answer even if it is called as a statement.
    let outputs = if matches!(given, Given::No) { nargout.max(1) } else { nargout };
    Ok(vec![value; outputs].into())
}
