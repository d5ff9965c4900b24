//! Evaluates the columns of a map: finds the lines of its indices, and the segments, each with a pass of its own.
//!
//! In: a launch, and the `Peeled` of its kernel. Out: evaluated rows of columns. Must hold: an evaluated column has the
//! values that the whole pass would compute (`peel`).

use super::frame::{Frame, Place, Scene, Value};
use super::index::{self, Piece};
use super::peel::{Pass, Peeled};
use crate::graph::Scalar;
use crate::kernels::ir::{IndexOp, InstOp, Level, Val};
use smallvec::SmallVec;

/// The most segments of a column. A column with more is evaluated with runs (`runs`).
const SEGMENTS_MAX: usize = 12;

/// Rows of a column with the same answers to conditions.
struct Segment<'a> {
    /// One past its last row.
    end: u32,
    pass: &'a Pass,
}

/// An index as a sum: the index of the first element, plus a step for each row and a step for each column.
#[derive(Clone, Copy, Default)]
struct IndexLine {
    start: u32,
    row: u32,
    column: u32,
}

impl IndexLine {
    /// The index at the first row of a column, and its step from row to row.
    fn of_column(self, number: u32) -> (u32, u32) {
        (self.start.wrapping_add(self.column.wrapping_mul(number)), self.row)
    }
}

/// The line of an index op, if the lines of its arguments determine it along all columns of `full` elements.
fn along_columns(op: IndexOp, x: IndexLine, y: IndexLine, full: usize) -> Option<IndexLine> {
    let each = |f: fn(u32, u32) -> u32| IndexLine {
        start: f(x.start, y.start),
        row: f(x.row, y.row),
        column: f(x.column, y.column),
    };
    let times = |line: IndexLine, factor: u32| IndexLine {
        start: line.start.wrapping_mul(factor),
        row: line.row.wrapping_mul(factor),
        column: line.column.wrapping_mul(factor),
    };
    let is_number = |line: IndexLine| line.row == 0 && line.column == 0;
    let is_flat = x.start == 0 && x.row == 1 && x.column as usize == full;
    match op {
        IndexOp::Add => Some(each(u32::wrapping_add)),
        IndexOp::Sub => Some(each(u32::wrapping_sub)),
        IndexOp::Mul if is_number(y) => Some(times(x, y.start)),
        IndexOp::Mul if is_number(x) => Some(times(y, x.start)),
        IndexOp::Div if is_flat && is_number(y) && y.start as usize == full => {
            Some(IndexLine { column: 1, ..IndexLine::default() })
        }
        IndexOp::Rem if is_flat && is_number(y) && y.start as usize == full => {
            Some(IndexLine { row: 1, ..IndexLine::default() })
        }
        IndexOp::Mul | IndexOp::Div | IndexOp::Rem | IndexOp::Wrap => None,
    }
}

/// The state of evaluating column after column.
pub(super) struct Columns<'a> {
    scene: &'a Scene<'a>,
    peeled: &'a Peeled,
    /// The height of all columns but the last.
    full: usize,
    /// Number and height of the current column, to which the fields below belong.
    column: Option<(u32, usize)>,
    /// Whether the column could be divided into segments.
    is_cut: bool,
    /// The lines of the kernel, by instruction.
    lines: Vec<IndexLine>,
    /// The instructions whose lines must be found again for each column, in order.
    varying: Vec<u32>,
    /// The lines that each condition compared in the column before, to see whether its answers change.
    compared: Vec<Option<[(u32, u32); 2]>>,
    /// The answers of each condition.
    answers: Vec<Vec<Piece>>,
    segments: SmallVec<[Segment<'a>; 4]>,
}

impl<'a> Columns<'a> {
    /// Begins before the first column. Columns have `full` elements.
    pub fn new(scene: &'a Scene<'a>, peeled: &'a Peeled, full: usize) -> Columns<'a> {
        let insts = scene.kernel.insts.len();
        let mut columns = Columns {
            scene,
            peeled,
            full,
            column: None,
            is_cut: false,
            lines: vec![IndexLine::default(); insts],
            varying: Vec::new(),
            compared: vec![None; insts],
            answers: vec![Vec::new(); insts],
            segments: SmallVec::new(),
        };
        for &at in &peeled.lines {
            let line = match scene.kernel.insts[at as usize].op {
                InstOp::Index(op, a, b) if !columns.varies(a) && !columns.varies(b) => {
                    let arguments = columns.line(a).zip(columns.line(b));
                    arguments.and_then(|(x, y)| along_columns(op, x, y, full))
                }
                InstOp::Flat => Some(IndexLine { start: 0, row: 1, column: full as u32 }),
                _ => None,
            };
            match line {
                Some(line) => columns.lines[at as usize] = line,
                None => columns.varying.push(at),
            }
        }
        columns
    }

    /// Whether all columns of `full` elements can be evaluated as one column: every element gets the same answers, and
    /// the step of every index that is read is the same from one column to the next as within a column.
    pub fn are_one_line(scene: &'a Scene<'a>, peeled: &'a Peeled, full: usize) -> bool {
        if !peeled.asked.is_empty() || !peeled.conditions.is_empty() {
            return false;
        }
        let columns = Columns::new(scene, peeled, full);
        let is_straight = |&at: &u32| {
            let IndexLine { row, column, .. } = columns.lines[at as usize];
            !columns.varying.contains(&at) && column == row.wrapping_mul(full as u32)
        };
        peeled.pass(scene.kernel, 0).is_some_and(|pass| pass.lines.iter().all(is_straight))
    }

    fn varies(&self, v: Val) -> bool {
        self.varying.contains(&v.0)
    }

    /// Evaluates rows `first..first + lanes` of a column, which has `height` elements. Returns false, and evaluates
    /// nothing, if the column has no segments.
    pub fn evaluate(&mut self, frame: &mut Frame<'a>, number: u32, height: usize, first: u32, lanes: usize) -> bool {
        if self.column != Some((number, height)) {
            let is_other_height = self.column.is_none_or(|(_, before)| before != height);
            self.column = Some((number, height));
            self.is_cut = self.cut(number, height, is_other_height).is_some();
        }
        if !self.is_cut {
            return false;
        }
        let (mut row, end) = (first, first + lanes as u32);
        for segment in &self.segments {
            let stop = segment.end.min(end);
            if stop <= row {
                continue;
            }
            self.segment(frame, segment.pass, number, row, (stop - row) as usize);
            row = stop;
        }
        frame.blocks += 1;
        true
    }

    fn segment(&self, frame: &mut Frame<'a>, pass: &'a Pass, number: u32, row: u32, lanes: usize) {
        frame.enter(&pass.kernel, &pass.stage);
        for &at in &pass.lines {
            let (start, step) = self.lines[at as usize].of_column(number);
            let start = start.wrapping_add(step.wrapping_mul(row));
            frame.set(at as usize, Value::line(start, if lanes > 1 { step } else { 0 }));
        }
        for &(at, answer) in &pass.answers {
            frame.set(at as usize, Value::Scalar(Scalar::Bool(answer)));
        }
        let natural = number * self.full as u32 + row;
        let [flat, outer, inner] = [Value::Absent; 3];
        frame.evaluate_part(&Place { lanes, natural, flat, outer, inner });
    }

    /// Finds the lines and the segments of a column. `None` if an index is no line, or if there are too many segments.
    fn cut(&mut self, number: u32, height: usize, is_new: bool) -> Option<()> {
        for n in 0..self.varying.len() {
            let at = self.varying[n] as usize;
            let InstOp::Index(op, a, b) = self.scene.kernel.insts[at].op else { return None };
            let [a, b] = [self.line(a)?, self.line(b)?].map(|line| line.of_column(number));
            let (start, row) = index::combine_lines(op, a, b, height)?;
            self.lines[at] = IndexLine { start, row, column: 0 };
        }
        let mut is_changed = is_new || !self.is_cut;
        for &at in &self.peeled.conditions {
            is_changed |= self.condition(at as usize, number, height, is_changed)?;
        }
        if is_changed {
            self.divide(height)?;
        }
        Some(())
    }

    fn line(&self, v: Val) -> Option<IndexLine> {
        match self.scene.kernel.inst(v).level {
            Level::Uniform => match self.scene.uniform[v.0 as usize] {
                Value::Scalar(Scalar::U32(start)) => Some(IndexLine { start, row: 0, column: 0 }),
                _ => None,
            },
            _ => Some(self.lines[v.0 as usize]),
        }
    }

    /// Evaluates a condition along the column. Returns whether the answers differ from those in the column before.
    fn condition(&mut self, at: usize, number: u32, height: usize, is_changed: bool) -> Option<bool> {
        let mut out = std::mem::take(&mut self.answers[at]);
        let (is_changed, fits) = match &self.scene.kernel.insts[at].op {
            &InstOp::Compare(op, a, b) => {
                let [a, b] = [self.line(a)?, self.line(b)?].map(|line| line.of_column(number));
                let before = self.compared[at].replace([a, b]);
                let [one, other] = [a, b].map(|(start, step)| [Piece { lanes: height as u32, start, step }]);
                if before == Some([a, b]) && out.iter().map(|piece| piece.lanes as usize).sum::<usize>() == height {
                    (false, true)
                } else if a.1 == 0 && b.1 == 0 {
                    let known = Piece { lanes: height as u32, start: index::compare_one(op, a.0, b.0) as u32, step: 0 };
                    let is_other = out != [known];
                    out.clear();
                    out.push(known);
                    (is_other, true)
                } else {
                    (true, index::compare(op, &one, &other, SEGMENTS_MAX, &mut out))
                }
            }
            InstOp::Apply(_, args) if is_changed => {
                let (mut one, mut other) = (NO_ANSWER, NO_ANSWER);
                let (a, b) = (self.answer(args[0], height, &mut one), self.answer(args[1], height, &mut other));
                (true, index::both(a, b, SEGMENTS_MAX, &mut out))
            }
            _ => (false, true),
        };
        if !fits {
            self.compared[at] = None;
        }
        self.answers[at] = out;
        fits.then_some(is_changed)
    }

    fn answer<'b>(&'b self, v: Val, height: usize, one: &'b mut Piece) -> &'b [Piece] {
        match (self.scene.kernel.inst(v).level, self.scene.uniform[v.0 as usize]) {
            (Level::Uniform, Value::Scalar(answer)) => {
                *one = Piece { lanes: height as u32, start: (answer.bits() != 0) as u32, step: 0 };
                std::slice::from_ref(one)
            }
            _ => &self.answers[v.0 as usize],
        }
    }

    /// Cuts the column into segments, wherever the answer to one of `Peeled::asked` changes.
    fn divide(&mut self, height: usize) -> Option<()> {
        let mut segments: SmallVec<[Segment<'a>; 4]> = SmallVec::new();
        let mut row = 0;
        while row < height as u32 {
            let (mut end, mut key) = (height as u32, 0);
            for (number, &at) in self.peeled.asked.iter().enumerate() {
                let mut one = NO_ANSWER;
                let mut behind = 0;
                for piece in self.answer(Val(at), height, &mut one) {
                    behind += piece.lanes;
                    if behind > row {
                        end = end.min(behind);
                        key |= (piece.start as u64) << number;
                        break;
                    }
                }
            }
            segments.push(Segment { end, pass: self.peeled.pass(self.scene.kernel, key)? });
            if segments.len() > SEGMENTS_MAX {
                return None;
            }
            row = end;
        }
        self.segments = segments;
        Some(())
    }
}

const NO_ANSWER: Piece = Piece { lanes: 0, start: 0, step: 0 };
