//! Plot commands: nothing is drawn. The first that is called warns; where one gives a handle, a number stands for what
//! it would have drawn.
//!
//! Must hold: a command that computes values where it has outputs stands here only with outputs that are handles, or
//! empty ones of what it would have drawn; values are computed by functions of the library.

use super::ignored::row;
use crate::builtins::{ANY, Builtin, Outcome, args, nothing, row as counted};
use crate::error::Flow;
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// Commands that give a handle for each output.
#[rustfmt::skip]
const DRAWN: &[&str] = &[
    "plot3", "stem", "stem3", "scatter", "scatter3", "bar3", "bar3h", "pie", "pie3", "pcolor", "quiver", "quiver3",
    "fplot3", "ezplot", "ezplot3", "ezpolar", "ezcontour", "ezcontourf", "ezmesh", "ezmeshc", "ezsurf", "ezsurfc",
    "fsurf", "fmesh", "fcontour", "fimplicit", "box", "xlabel", "ylabel", "zlabel", "title", "subtitle", "sgtitle", "text",
    "gtext", "annotation", "line", "animatedline", "addpoints", "xline", "yline", "refline", "patch", "fill", "fill3",
    "rectangle", "surf", "surface", "surfc", "surfl", "mesh", "meshc", "meshz", "waterfall", "ribbon", "slice",
    "trimesh", "trisurf", "triplot", "tetramesh", "image", "imagesc", "imshow", "spy", "plotyy", "yyaxis", "plotmatrix",
    "polar", "polarplot", "polarscatter", "compass", "feather", "comet", "comet3", "errorbar", "loglogerr", "semilogxerr",
    "semilogyerr", "histogram", "histogram2", "heatmap", "boxplot", "boxchart", "swarmchart", "bubblechart", "wordcloud",
    "geoplot", "gplot", "treeplot", "streamline", "streamtube", "streamribbon", "coneplot", "tiledlayout", "legend",
    "colorbar", "light", "lightangle", "camlight", "hggroup", "hgtransform", "copyobj", "uicontrol", "uimenu", "uipanel",
    "uibuttongroup", "uicontextmenu", "uitable", "uitoolbar", "uipushtool", "uitoggletool", "uifigure", "uiaxes",
    "waitbar", "msgbox", "errordlg", "warndlg", "helpdlg", "dialog", "addlistener", "linkprop", "rotate3d", "zoom", "pan",
    "datacursormode", "clabel", "rgbplot", "stackedplot", "scatterhistogram", "pareto",
    "hgload", "openfig",
];

/// Commands whose outputs, if they have any, are empty.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "hold", "grid", "clf", "cla", "refresh", "refreshdata", "drawnow", "print", "saveas", "savefig", "exportgraphics",
    "copygraphics", "hgsave", "movie", "set", "shading", "lighting", "material", "axtoolbar", "linkaxes", "dellistener",
    "ginput", "waitforbuttonpress", "uiwait", "uiresume", "waitfor", "rotate", "camorbit", "campan", "camdolly", "camroll",
    "camzoom", "camlookat", "campos", "camtarget", "camup", "camva", "camproj", "datetick", "diffuse", "specular",
    "brighten", "whitebg", "contrast", "shg", "orient", "printd", "figurepalette", "plotedit", "colordef", "graymon",
    "movegui", "guidata", "guihandles", "xticklabels", "yticklabels",
    "zticklabels", "xtickangle", "ytickangle", "ztickangle", "xtickformat", "ytickformat", "ztickformat", "thetaticks",
    "rticks", "findfigs", "hdl2struct", "struct2hdl", "isocaps", "isonormals", "reducepatch", "smooth3", "shrinkfaces",
    "alpha", "alim", "alphamap", "dragrect", "rbbox", "bubblesize", "colororder", "disableDefaultInteractivity",
    "enableDefaultInteractivity", "sound", "soundsc",
];

/// Commands that give a handle for each line, one for each column of what they draw, in one output: more would be
/// values.
const LINES: &[&str] = &["plot", "loglog", "semilogx", "semilogy", "area", "bar", "barh", "fplot", "rose", "surfnorm"];

const SAID: &str = "Accepted; nothing is drawn, and the first such call warns.";

/// Plot commands without values.
pub static PLOTS: &[Builtin] = &{
    const N: usize = DRAWN.len() + COMMANDS.len() + LINES.len();
    let mut rows = [const { row("", drawn, "") }; N];
    let mut i = 0;
    while i < N {
        rows[i] = if i < DRAWN.len() {
            row(DRAWN[i], drawn, SAID)
        } else if i < DRAWN.len() + COMMANDS.len() {
            row(COMMANDS[i - DRAWN.len()], command, SAID)
        } else {
            row(LINES[i - DRAWN.len() - COMMANDS.len()], lines, SAID)
        };
        i += 1;
    }
    rows
};

/// Plot commands and questions about plots that give values.
pub static ANSWERS: &[Builtin] = &[
    counted("figure", 0, ANY, 1, "h = figure (n)", "Its number; nothing is drawn.", figure),
    counted("gcf", 0, 0, 1, "h = gcf ()", "The number of the current figure.", |i, _, _| {
        Ok(Value::Num(i.env.handles.current_figure()).into())
    }),
    counted("gca", 0, 0, 1, "h = gca ()", "A handle of the current axes.", |i, _, _| {
        Ok(Value::Num(i.env.handles.current_axes()).into())
    }),
    counted("axes", 0, ANY, 1, "h = axes (...)", "A handle of new axes; nothing is drawn.", new_axes),
    counted("newplot", 0, 1, 1, "h = newplot ()", "A handle of the current axes.", |i, _, n| {
        warn(i);
        Ok(if n == 0 { nothing() } else { Value::Num(i.env.handles.current_axes()).into() })
    }),
    counted("subplot", 0, ANY, 1, "h = subplot (...)", "A handle of new axes; nothing is drawn.", new_axes),
    counted("nexttile", 0, ANY, 1, "h = nexttile (...)", "A handle of new axes; nothing is drawn.", new_axes),
    counted("contour", 1, ANY, 2, "[c, h] = contour (...)", "Nothing is drawn, and C is empty.", contour),
    counted("contourf", 1, ANY, 2, "[c, h] = contourf (...)", "Nothing is drawn, and C is empty.", contour),
    counted("contour3", 1, ANY, 2, "[c, h] = contour3 (...)", "Nothing is drawn, and C is empty.", contour),
    counted("axis", 0, ANY, 1, "limits = axis (...)", "[0 1 0 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[0.0, 1.0, 0.0, 1.0])
    }),
    counted("xlim", 0, 2, 1, "limits = xlim (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("ylim", 0, 2, 1, "limits = ylim (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("zlim", 0, 2, 1, "limits = zlim (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("clim", 0, 2, 1, "limits = clim (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("rlim", 0, 2, 1, "limits = rlim (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("thetalim", 0, 2, 1, "limits = thetalim (...)", "[0 360]; nothing is drawn.", |i, _, n| {
        told(i, n, &[0.0, 360.0])
    }),
    counted("caxis", 0, 2, 1, "limits = caxis (...)", "[0 1]; nothing is drawn.", |i, _, n| told(i, n, &[0.0, 1.0])),
    counted("xticks", 0, 2, 1, "at = xticks (...)", "[0 0.5 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[0.0, 0.5, 1.0])
    }),
    counted("yticks", 0, 2, 1, "at = yticks (...)", "[0 0.5 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[0.0, 0.5, 1.0])
    }),
    counted("zticks", 0, 2, 1, "at = zticks (...)", "[0 0.5 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[0.0, 0.5, 1.0])
    }),
    counted("daspect", 0, 2, 1, "ratio = daspect (...)", "[1 1 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[1.0, 1.0, 1.0])
    }),
    counted("pbaspect", 0, 2, 1, "ratio = pbaspect (...)", "[1 1 1]; nothing is drawn.", |i, _, n| {
        told(i, n, &[1.0, 1.0, 1.0])
    }),
    counted("view", 0, ANY, 2, "[azimuth, elevation] = view (...)", "-37.5 and 30; nothing is drawn.", view),
    counted("get", 1, 2, 1, "value = get (h, name)", "What a property is said to be: most are empty.", get),
    counted("gco", 0, 1, 1, "h = gco ()", "No object: empty.", |_, _, _| Ok(Value::empty().into())),
    counted("gcbo", 0, 1, 1, "h = gcbo ()", "No object: empty.", |_, _, _| Ok(Value::empty().into())),
    counted("gcbf", 0, 1, 1, "h = gcbf ()", "No figure: empty.", |_, _, _| Ok(Value::empty().into())),
    counted("groot", 0, 0, 1, "h = groot ()", "0, the root of all figures.", |_, _, _| Ok(Value::Num(0.0).into())),
    counted("gobjects", 0, ANY, 1, "h = gobjects (m, n, ...)", "Places for handles: zeros.", |i, a, n| {
        match crate::builtins::find("zeros") {
            Some(zeros) => zeros.call(i, a, n),
            None => Ok(Value::empty().into()),
        }
    }),
    counted("findobj", 0, ANY, 1, "h = findobj (...)", "No objects: empty.", |_, _, _| Ok(no_handles().into())),
    counted("findall", 0, ANY, 1, "h = findall (...)", "No objects: empty.", |_, _, _| Ok(no_handles().into())),
    counted("allchild", 1, 1, 1, "h = allchild (h)", "No objects: empty.", |_, _, _| Ok(no_handles().into())),
    counted("ancestor", 2, 3, 1, "h = ancestor (h, type)", "The current figure or axes.", ancestor),
    counted("getframe", 0, 2, 1, "frame = getframe (h)", "A frame without a picture.", getframe),
    counted("isosurface", 1, ANY, 3, "fv = isosurface (...)", "A surface without faces; nothing is drawn.", surface),
    counted("ishold", 0, 1, 1, "ishold ()", "false.", |_, _, _| Ok(Value::Bool(false).into())),
    counted("ishandle", 1, 1, 1, "ishandle (h)", "Which elements are handles.", |i, a, _| {
        Ok(which(i, &a[0], |i, x| i.env.handles.is_handle(x))?.into())
    }),
    counted("ishghandle", 1, 1, 1, "ishghandle (h)", "Which elements are handles.", |i, a, _| {
        Ok(which(i, &a[0], |i, x| i.env.handles.is_handle(x))?.into())
    }),
    counted("isgraphics", 1, 2, 1, "isgraphics (h)", "Which elements are handles.", |i, a, _| {
        Ok(which(i, &a[0], |i, x| i.env.handles.is_handle(x))?.into())
    }),
    counted("isfigure", 1, 1, 1, "isfigure (h)", "Which elements are numbers of figures.", |i, a, _| {
        Ok(which(i, &a[0], |i, x| i.env.handles.is_figure(x))?.into())
    }),
    counted("isaxes", 1, 1, 1, "isaxes (h)", "Which elements are handles, but not of figures.", |i, a, _| {
        Ok(which(i, &a[0], |i, x| i.env.handles.is_handle(x) && !i.env.handles.is_figure(x))?.into())
    }),
];

#[derive(Default)]
struct Plots {
    warned: bool,
}

fn warn(interp: &mut Interp) {
    let plots = interp.env.keep.of::<Plots>();
    if !std::mem::replace(&mut plots.warned, true) {
        interp.env.warn("Tidemill:no-plots", "plots are not drawn; plot commands are ignored");
    }
}

fn command(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    Ok(vec![Value::empty(); nargout].into())
}

fn drawn(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    let handles: Vec<Value> = (0..nargout).map(|_| Value::Num(interp.env.handles.another())).collect();
    Ok(handles.into())
}

fn lines(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    if nargout == 0 {
        return Ok(nothing());
    }
    let n = count_of_lines(args);
    Ok(Value::column((0..n).map(|_| interp.env.handles.another()).collect()).into())
}

/// How many lines `plot (x, y, format, x, y, …, name, value, …)` would draw.
fn count_of_lines(args: &[Value]) -> usize {
    let columns = |v: &Value| if v.dims().is_vector() { 1 } else { v.dims().columns().max(1) };
    let mut rest = match args {
        // Axes to draw in.
        [first, second, ..] if first.len() == 1 && !second.is_char() && second.len() > 1 => &args[1..],
        all => all,
    };
    let mut n = 0;
    while let Some((first, more)) = rest.split_first() {
        if first.is_char() {
            // A name with its value: formats stand behind numbers.
            rest = more.get(1..).unwrap_or_default();
            continue;
        }
        let pair = more.first().filter(|second| !second.is_char());
        n += pair.map_or(columns(first), |second| columns(first).max(columns(second)));
        rest = &more[pair.is_some() as usize..];
        if let [format, more @ ..] = rest
            && format.as_bytes().is_some_and(|b| b.len() <= 4)
        {
            rest = more;
        }
    }
    n.max(1)
}

/// Numbers, where an output is asked for.
fn told(interp: &mut Interp, nargout: usize, numbers: &[f64]) -> Flow<Outcome> {
    warn(interp);
    Ok(if nargout == 0 { nothing() } else { Value::row(numbers.to_vec()).into() })
}

fn view(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    Ok(match nargout {
        0 => nothing(),
        _ => vec![Value::Num(-37.5), Value::Num(30.0)].into(),
    })
}

fn figure(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let number = match args.first() {
        Some(value) if !value.is_char() && value.len() == 1 => {
            Some(args::number(&interp.env, "figure", value)?).filter(|x| *x >= 1.0 && x.trunc() == *x)
        }
        _ => None,
    };
    warn(interp);
    let number = interp.env.handles.figure(number);
    Ok(if nargout == 0 { nothing() } else { Value::Num(number).into() })
}

fn new_axes(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    let axes = interp.env.handles.new_axes();
    Ok(if nargout == 0 { nothing() } else { Value::Num(axes).into() })
}

fn contour(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    Ok(match nargout {
        0 => nothing(),
        _ => vec![Value::empty(), Value::Num(interp.env.handles.another())].into(),
    })
}

fn surface(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    warn(interp);
    if nargout != 1 {
        return Ok(vec![Value::empty(); nargout].into());
    }
    let mut surface = StructArray::scalar();
    surface.set("faces", Value::empty());
    surface.set("vertices", Value::empty());
    Ok(Value::Struct(Arc::new(surface)).into())
}

fn getframe(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    warn(interp);
    let mut frame = StructArray::scalar();
    frame.set("cdata", Value::empty());
    frame.set("colormap", Value::empty());
    Ok(Value::Struct(Arc::new(frame)).into())
}

fn no_handles() -> Value {
    Value::tensor(Tensor::new(Dims::new(&[0, 1]), Data::F64(Vec::new())))
}

fn ancestor(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let handles = &mut interp.env.handles;
    let axes = args::is_word(&args[1], "axes");
    Ok(Value::Num(if axes { handles.current_axes() } else { handles.current_figure() }).into())
}

/// A property of one handle, or of several in a cell.
fn get(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let handles = interp.env.host(&args[0])?.data.to_f64();
    let Some(name) = args.get(1) else { return Ok(Value::Struct(Arc::new(StructArray::scalar())).into()) };
    let names: Vec<String> = match name {
        Value::Cell(cell) => cell.items.iter().map(|v| v.as_text().unwrap_or_default()).collect(),
        name => vec![name.as_text().unwrap_or_default()],
    };
    if let ([handle], [name], false) = (&handles[..], &names[..], matches!(name, Value::Cell(_))) {
        return Ok(interp.env.handles.property(*handle, name).into());
    }
    let all = &mut interp.env.handles;
    let dims = Dims::new(&[handles.len(), names.len()]);
    let items = names.iter().flat_map(|name| handles.iter().map(move |h| (name, *h)));
    let items = items.map(|(name, handle)| all.property(handle, name)).collect();
    Ok(Value::cell(dims, items).into())
}

/// A question about each element.
fn which(interp: &Interp, value: &Value, test: impl Fn(&Interp, f64) -> bool) -> Flow<Value> {
    if !value.class().is_float() {
        let none = Data::Bool(vec![false; value.len()]);
        return Ok(Value::tensor(Tensor::new(value.dims(), none)));
    }
    let host = interp.env.host(value)?;
    let answers = host.data.to_f64().into_iter().map(|x| test(interp, x)).collect();
    Ok(Value::tensor(Tensor::new(host.dims.clone(), Data::Bool(answers))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_columns() {
        let row = || Value::row(vec![1.0, 2.0]);
        let matrix = || Value::tensor(Tensor::new(Dims::new(&[2, 3]), Data::F64(vec![0.0; 6])));
        assert_eq!(count_of_lines(&[row()]), 1);
        assert_eq!(count_of_lines(&[row(), matrix()]), 3);
        assert_eq!(count_of_lines(&[row(), row(), "r-".into(), row(), row(), "b".into()]), 2);
        assert_eq!(count_of_lines(&[row(), row(), row(), row(), "LineWidth".into(), Value::Num(2.0)]), 2);
        assert_eq!(count_of_lines(&[Value::Num(-1.5), row(), row()]), 1);
    }
}
