//! Handles of figures and of what is in them. Nothing is drawn, so a handle is only a number that a plot command gave
//! out, by which a script may name what it would have drawn.
//!
//! Must hold: PLOT-1: fields that are assigned to a handle are lost, and those that are read of one have the values
//! of [`Handles::property`]; no other number has fields.

use super::value::{Data, Dims, Tensor, Value};

/// The handles that a script has been given.
#[derive(Default)]
pub struct Handles {
    /// The numbers of figures, the current one last.
    figures: Vec<f64>,
    /// How many others there are: they are -1.5, -2.5 and so on.
    others: u32,
    /// The current axes.
    axes: Option<f64>,
}

impl Handles {
    /// A handle of something new in a figure.
    pub fn another(&mut self) -> f64 {
        self.others = self.others.saturating_add(1);
        -0.5 - self.others as f64
    }

    /// The figure of this number, or a new one, becomes the current one.
    pub fn figure(&mut self, number: Option<f64>) -> f64 {
        let greatest = self.figures.iter().fold(0.0, |a: f64, &b| a.max(b));
        let number = number.unwrap_or(greatest + 1.0);
        if self.figures.last() != Some(&number) {
            self.figures.retain(|&f| f != number);
            self.figures.push(number);
            self.axes = None;
        }
        number
    }

    /// The current figure.
    pub fn current_figure(&mut self) -> f64 {
        match self.figures.last() {
            Some(&figure) => figure,
            None => self.figure(None),
        }
    }

    /// The current axes.
    pub fn current_axes(&mut self) -> f64 {
        self.current_figure();
        match self.axes {
            Some(axes) => axes,
            None => self.new_axes(),
        }
    }

    /// New axes in the current figure.
    pub fn new_axes(&mut self) -> f64 {
        self.current_figure();
        let axes = self.another();
        self.axes = Some(axes);
        axes
    }

    /// Whether a figure has this number.
    pub fn is_figure(&self, x: f64) -> bool {
        self.figures.contains(&x)
    }

    /// Whether a number is a handle.
    pub fn is_handle(&self, x: f64) -> bool {
        self.is_figure(x) || x <= -1.5 && x.fract() == -0.5 && -0.5 - x <= self.others as f64
    }

    /// Whether a value consists of handles.
    pub fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Num(x) => self.is_handle(*x),
            Value::Tensor(t) => match &*t.data {
                Data::F64(x) => !x.is_empty() && x.iter().all(|&x| self.is_handle(x)),
                _ => false,
            },
            _ => false,
        }
    }

    /// What a property is said to be: plausible where scripts compute with it, empty otherwise.
    pub fn property(&mut self, handle: f64, name: &str) -> Value {
        let text = || Value::tensor(Tensor::new(Dims::zero(), Data::Char(Vec::new())));
        match name.to_ascii_lowercase().as_str() {
            "screensize" => Value::row(vec![1.0, 1.0, 1024.0, 768.0]),
            "position" | "outerposition" | "innerposition" if self.is_figure(handle) => {
                Value::row(vec![300.0, 200.0, 560.0, 420.0])
            }
            "position" | "outerposition" | "innerposition" => Value::row(vec![0.0, 0.0, 1.0, 1.0]),
            "xlim" | "ylim" | "zlim" | "clim" | "alim" => Value::row(vec![0.0, 1.0]),
            "xtick" | "ytick" | "ztick" => Value::row(vec![0.0, 0.5, 1.0]),
            "color" | "facecolor" | "edgecolor" => Value::row(vec![0.0, 0.0, 0.0]),
            "fontsize" => Value::Num(10.0),
            "linewidth" => Value::Num(0.5),
            "markersize" => Value::Num(6.0),
            "visible" => "on".into(),
            "name" | "tag" | "string" | "displayname" | "fontname" => text(),
            "currentfigure" => Value::Num(self.current_figure()),
            "currentaxes" | "parent" => Value::Num(self.current_axes()),
            "title" | "subtitle" | "xlabel" | "ylabel" | "zlabel" | "xaxis" | "yaxis" | "zaxis" | "legend" => {
                Value::Num(self.another())
            }
            _ => Value::empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_were_given_out_are_handles() {
        let mut handles = Handles::default();
        assert!(!handles.is_handle(1.0) && !handles.is_handle(-1.5));
        let (figure, line) = (handles.current_figure(), handles.another());
        assert_eq!((figure, line), (1.0, -1.5));
        assert!(handles.holds(&Value::row(vec![line, figure])));
        assert!(!handles.holds(&Value::row(vec![line, 2.0])) && !handles.holds(&Value::empty()));
        assert_eq!((handles.figure(Some(4.0)), handles.figure(None), handles.current_axes()), (4.0, 5.0, -2.5));
    }
}
