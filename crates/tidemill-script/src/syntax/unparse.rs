//! Prints a tree as text again, for `func2str` and for showing anonymous functions.
//!
//! The text is Octave's: blanks around operators, ` (` before arguments (but not directly inside of a matrix or cell),
//! parentheses as they were written, and numbers in their own digits. As in Octave, a quote inside of a `'…'` string is
//! not doubled and `{}` shows its size, so such texts do not parse again.

use super::ast::{Expr, ExprKind, Param, Step, StepKind, UnaryOp};
use crate::source::Source;
use crate::stack::with_room;
use rustc_hash::FxHashMap;

/// The number of pairs of parentheses around the expression with a span.
type Parens = FxHashMap<(u32, u32), u32>;

/// The innermost construct around an expression; it decides whether a blank comes before arguments.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Nothing,
    Parens,
    Literal,
}

struct Writer<'a> {
    text: String,
    source: &'a Source,
    parens: &'a Parens,
    around: Around,
}

/// Returns the text of an anonymous function with these parameters and this body, parsed from `source`.
pub(super) fn anonymous(params: &[Param], body: &Expr, source: &Source, parens: &Parens) -> String {
    let mut writer = Writer { text: String::new(), source, parens, around: Around::Nothing };
    writer.head(params);
    writer.text.push(' ');
    writer.expr(body);
    writer.text
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn head(&mut self, params: &[Param]) {
        self.push("@(");
        for (at, param) in params.iter().enumerate() {
            if at > 0 {
                self.push(", ");
            }
            match param {
                Param::Ignored(_) => self.push("~"),
                Param::Named(ident, default) => {
                    self.push(&ident.name);
                    if let Some(value) = default {
                        self.push(" = ");
                        self.expr(value);
                    }
                }
            }
        }
        self.push(")");
    }

    /// Writes a part inside of brackets.
    fn within(&mut self, around: Around, write: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.around, around);
        write(self);
        self.around = outer;
    }

    fn expr(&mut self, expr: &Expr) {
        let pairs = self.parens.get(&(expr.span.start, expr.span.end)).copied().unwrap_or(0);
        if pairs == 0 {
            return with_room(|| self.bare(expr));
        }
        (0..pairs).for_each(|_| self.text.push('('));
        // As in Octave: within a matrix, parentheses only affect the arguments of the expression that they hold
        // directly.
        let around = if matches!(expr.kind, ExprKind::Index(..)) { Around::Parens } else { self.around };
        self.within(around, |writer| with_room(|| writer.bare(expr)));
        (0..pairs).for_each(|_| self.text.push(')'));
    }

    fn bare(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Number(_) | ExprKind::Imaginary(_) => self.push(&self.source.text[expr.span.range()]),
            ExprKind::Integer { .. } => self.digits(&self.source.text[expr.span.range()]),
            ExprKind::Str { bytes, double_quoted } => self.string(bytes, *double_quoted),
            ExprKind::Name(name) => self.push(name),
            ExprKind::Colon => self.push(":"),
            ExprKind::End => self.push("end"),
            ExprKind::Unary(op, operand) => {
                self.push(match op {
                    UnaryOp::Minus => "-",
                    UnaryOp::Plus => "+",
                    UnaryOp::Not => "!",
                });
                self.expr(operand);
            }
            ExprKind::Transpose { operand, conjugate } => {
                self.expr(operand);
                self.push(if *conjugate { "'" } else { ".'" });
            }
            ExprKind::Chain(first, links) => {
                self.expr(first);
                for link in links {
                    self.push(" ");
                    self.push(link.op.symbol());
                    self.push(" ");
                    self.expr(&link.right);
                }
            }
            ExprKind::Range { start, step, stop } => {
                self.expr(start);
                for part in step.iter().chain([stop]) {
                    self.push(":");
                    self.expr(part);
                }
            }
            ExprKind::Index(base, steps) => {
                self.expr(base);
                steps.iter().for_each(|step| self.step(step));
            }
            ExprKind::Matrix(rows) => self.rows("[", rows, "]"),
            ExprKind::Cell(rows) if rows.is_empty() => self.push("{}(0x0)\n"),
            ExprKind::Cell(rows) => self.rows("{", rows, "}"),
            ExprKind::Anonymous(definition) => {
                self.head(&definition.params);
                self.expr(&definition.body);
            }
            ExprKind::Handle(name) => {
                self.push("@");
                self.push(name);
            }
            // Anonymous functions may not assign.
            ExprKind::Assign { .. } | ExprKind::PostIncrement { .. } => {}
        }
    }

    fn step(&mut self, step: &Step) {
        let blank = if self.around == Around::Literal { "" } else { " " };
        match &step.kind {
            StepKind::Paren(arguments) => {
                self.push(blank);
                self.push("(");
                self.within(Around::Parens, |writer| writer.list(arguments));
                self.push(")");
            }
            StepKind::Brace(arguments) => {
                self.push(blank);
                self.push("{");
                self.within(Around::Parens, |writer| writer.list(arguments));
                self.push("}");
            }
            StepKind::Field(ident) => {
                self.push(".");
                self.push(&ident.name);
            }
            StepKind::DynamicField(name) => {
                self.push(".(");
                self.within(Around::Parens, |writer| writer.expr(name));
                self.push(")");
            }
        }
    }

    fn list(&mut self, elements: &[Expr]) {
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.push(", ");
            }
            self.expr(element);
        }
    }

    fn rows(&mut self, open: &str, rows: &[Vec<Expr>], close: &str) {
        self.push(open);
        self.within(Around::Literal, |writer| {
            for (at, row) in rows.iter().enumerate() {
                if at > 0 {
                    writer.push("; ");
                }
                writer.list(row);
            }
        });
        self.push(close);
    }

    /// Writes a hexadecimal or binary number: its digits only.
    fn digits(&mut self, text: &str) {
        let digits = text[2..].split(['u', 's']).next().unwrap_or_default();
        self.text.extend(digits.chars().filter(|&c| c != '_'));
    }

    fn string(&mut self, bytes: &[u8], double_quoted: bool) {
        let text = String::from_utf8_lossy(bytes);
        if !double_quoted {
            self.text.push('\'');
            self.push(&text);
            self.text.push('\'');
            return;
        }
        self.text.push('"');
        for character in text.chars() {
            match character {
                '\0' => {}
                '\x07' => self.push("\\a"),
                '\x08' => self.push("\\b"),
                '\x0c' => self.push("\\f"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                '\x0b' => self.push("\\v"),
                '\\' => self.push("\\\\"),
                '"' => self.push("\\\""),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}
