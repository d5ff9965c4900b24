//! Functions that are accepted without an effect, so that a script that calls them goes on.
//!
//! Settings of a terminal or of packages say nothing. Plots, windows, sound and values kept with handles do not exist
//! here: each name of them warns once in a run, and its outputs hold nothing.
//!
//! Must hold: ACCEPTED-1: a function that computes values stands in a family or in the library, never here.

use crate::builtins::{ANY, Builtin, Outcome, Reach, Run};
use crate::error::Flow;
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use rustc_hash::FxHashSet;
use std::sync::Arc;

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

/// The value that a function of this list returns as each of its outputs.
#[derive(Clone, Copy)]
enum Given {
    /// A struct without fields in place of a handle: a script may set fields of it and put it into an array.
    Object,
    /// The same for the first output alone: those behind it would be values.
    Line,
    /// The empty matrix.
    Empty,
    /// False for each element of the first argument.
    No,
}

/// The rows of names that warn, by what they give.
macro_rules! warned {
    ($($given:ident: $($name:literal)+;)+) => {
        &[$($(row(
            $name,
            |interp, args, nargout| warned(interp, $name, Given::$given, args, nargout),
            "Accepted, without an effect; its first call warns.",
        ),)+)+]
    };
}

/// Plots, windows, sound, and values kept with handles.
#[rustfmt::skip]
pub static WARNED: &[Builtin] = warned! {
    Object:
        "plot3" "stem" "stem3" "scatter" "scatter3" "bar3" "bar3h" "pie" "pie3" "pcolor" "quiver" "quiver3" "fplot3"
        "ezplot" "ezplot3" "ezpolar" "ezcontour" "ezcontourf" "ezmesh" "ezmeshc" "ezsurf" "ezsurfc" "fsurf" "fmesh"
        "fcontour" "fimplicit" "box" "xlabel" "ylabel" "zlabel" "title" "subtitle" "sgtitle" "text" "gtext"
        "annotation" "line" "animatedline" "addpoints" "xline" "yline" "refline" "patch" "fill" "fill3" "rectangle"
        "surf" "surface" "surfc" "surfl" "mesh" "meshc" "meshz" "waterfall" "ribbon" "slice" "trimesh" "trisurf"
        "triplot" "tetramesh" "image" "imagesc" "imshow" "spy" "plotyy" "yyaxis" "plotmatrix" "polar" "polarplot"
        "polarscatter" "compass" "feather" "comet" "comet3" "errorbar" "loglogerr" "semilogxerr" "semilogyerr"
        "histogram" "histogram2" "heatmap" "boxplot" "boxchart" "swarmchart" "bubblechart" "wordcloud" "geoplot"
        "gplot" "treeplot" "streamline" "streamtube" "streamribbon" "coneplot" "tiledlayout" "legend" "colorbar"
        "light" "lightangle" "camlight" "hggroup" "hgtransform" "copyobj" "uicontrol" "uimenu" "uipanel"
        "uibuttongroup" "uicontextmenu" "uitable" "uitoolbar" "uipushtool" "uitoggletool" "uifigure" "uiaxes"
        "waitbar" "msgbox" "errordlg" "warndlg" "helpdlg" "dialog" "addlistener" "linkprop" "rotate3d" "zoom" "pan"
        "datacursormode" "clabel" "rgbplot" "stackedplot" "scatterhistogram" "pareto" "hgload" "openfig" "figure"
        "gcf" "gca" "axes" "newplot" "subplot" "nexttile" "groot" "gobjects" "ancestor" "getframe";
    Line:
        "plot" "loglog" "semilogx" "semilogy" "area" "bar" "barh" "fplot" "rose" "surfnorm";
    Empty:
        "hold" "grid" "clf" "cla" "refresh" "refreshdata" "drawnow" "print" "saveas" "savefig" "exportgraphics"
        "copygraphics" "hgsave" "movie" "set" "shading" "lighting" "material" "axtoolbar" "linkaxes" "dellistener"
        "ginput" "waitforbuttonpress" "uiwait" "uiresume" "waitfor" "rotate" "camorbit" "campan" "camdolly" "camroll"
        "camzoom" "camlookat" "campos" "camtarget" "camup" "camva" "camproj" "datetick" "diffuse" "specular"
        "brighten" "whitebg" "contrast" "shg" "orient" "printd" "figurepalette" "plotedit" "colordef" "graymon"
        "movegui" "guidata" "guihandles" "xticklabels" "yticklabels" "zticklabels" "xtickangle" "ytickangle"
        "ztickangle" "xtickformat" "ytickformat" "ztickformat" "thetaticks" "rticks" "findfigs" "hdl2struct"
        "struct2hdl" "isocaps" "isonormals" "reducepatch" "smooth3" "shrinkfaces" "alpha" "alim" "alphamap" "dragrect"
        "rbbox" "bubblesize" "colororder" "disableDefaultInteractivity" "enableDefaultInteractivity" "sound" "soundsc"
        "axis" "xlim" "ylim" "zlim" "clim" "rlim" "thetalim" "caxis" "xticks" "yticks" "zticks" "daspect" "pbaspect"
        "view" "get" "gco" "gcbo" "gcbf" "findobj" "findall" "allchild" "setappdata" "getappdata" "rmappdata"
        "contour" "contourf" "contour3" "isosurface";
    No:
        "ishold" "ishandle" "ishghandle" "isgraphics" "isfigure" "isaxes" "isappdata";
};

/// The names that have warned.
#[derive(Default)]
struct Said(FxHashSet<&'static str>);

fn warned(interp: &mut Interp, name: &'static str, given: Given, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let value = match given {
        Given::Object | Given::Line => Value::Struct(Arc::new(StructArray::scalar())),
        Given::Empty => Value::empty(),
        Given::No => {
            let dims = args.first().map_or_else(Dims::scalar, Value::dims);
            interp.env.check_host(&dims, 1)?;
            let no = Data::Bool(vec![false; dims.elements()]);
            Value::tensor(Tensor::new(dims, no))
        }
    };
    if interp.env.keep.of::<Said>().0.insert(name) {
        let text = format!("{name} has no effect: there are no plots, windows, sounds and handles of them");
        interp.env.warn("Tidemill:no-plots", &text);
    }
    let outputs = match given {
        Given::Object | Given::Empty => nargout,
        Given::Line => nargout.min(1),
        // A question is asked for its answer, also as a statement.
        Given::No => nargout.max(1),
    };
    Ok(vec![value; outputs].into())
}
