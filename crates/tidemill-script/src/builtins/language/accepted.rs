//! Functions that are accepted without an effect, so that scripts which call them go on.
//!
//! Functions for settings of a terminal or of packages do nothing, silently. Plots, windows, sound, and values kept
//! with handles do not exist here: each of their functions warns once in a run, and returns empty outputs.
//!
//! Must hold: ACCEPTED-1: a function that computes values belongs to a family or the library, and is never listed here.

use crate::builtins::{ANY, Builtin, Outcome, Reach, Run};
use crate::error::Flow;
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Functions that do nothing and do not warn: settings of a terminal or of packages.
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

/// Makes a row of a command that accepts any arguments.
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
    /// A struct without fields instead of a handle. A script may set fields of it, and put it into an array.
    Object,
    /// Such a struct as the first output only, since the others would be values.
    Line,
    /// The empty matrix.
    Empty,
    /// False, for each element of the first argument.
    No,
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

/// Functions for plots, windows, sound, and values kept with handles.
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

/// The functions that have warned.
#[derive(Default)]
struct AlreadyWarned(FxHashSet<&'static str>);

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
    if interp.env.keep.of::<AlreadyWarned>().0.insert(name) {
        let text = format!("{name} has no effect: there are no plots, windows, sounds and handles of them");
        interp.env.warn("Tidemill:no-plots", &text);
    }
    let outputs = match given {
        Given::Object | Given::Empty => nargout,
        Given::Line => nargout.min(1),
        // Such a question has an answer even if it is called as a statement.
        Given::No => nargout.max(1),
    };
    Ok(vec![value; outputs].into())
}
