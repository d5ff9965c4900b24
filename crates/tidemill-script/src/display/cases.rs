//! Compares our output for random values with the output of Octave 7.3.
//!
//! A case file has a line `= WORDS` for a `format` (or `= precision N`), a line `? VALUE` for a value that is shown as
//! `x` or a line `! VALUE` for one that is given to `disp`, and then the printed lines, each behind a `|`. A last line
//! without a line end is behind a `/`. Values are written out: `double 1x2 [bits bits]`, `cell 1x1 { … }`.

use super::{Format, Printer, Style};
use crate::value::{CellArray, Data, Dims, Form, Function, StructArray, Tensor, Value};
use num_complex::{Complex32, Complex64};
use std::sync::Arc;

/// Reads values as case files write them.
struct Reader<'a> {
    words: std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { words: text.split_ascii_whitespace().peekable() }
    }

    fn word(&mut self) -> &'a str {
        self.words.next().expect("a case's value ends early")
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let open = self.word();
        let close = match open {
            "[" => "]",
            "{" => "}",
            other => panic!("a list begins with {other}"),
        };
        let mut out = Vec::new();
        while *self.words.peek().expect("an open list") != close {
            out.push(read(self));
        }
        self.word();
        out
    }

    fn numbers<T: std::str::FromStr>(&mut self) -> Vec<T> {
        self.list(|r| r.word().parse().unwrap_or_else(|_| panic!("a number")))
    }

    fn doubles(&mut self) -> Vec<f64> {
        self.list(|r| f64::from_bits(u64::from_str_radix(r.word(), 16).expect("bits")))
    }

    fn singles(&mut self) -> Vec<f32> {
        self.list(|r| f32::from_bits(u32::from_str_radix(r.word(), 16).expect("bits")))
    }

    fn dims(&mut self) -> Dims {
        let extents: Vec<usize> = self.word().split('x').map(|e| e.parse().expect("an extent")).collect();
        Dims::new(&extents)
    }

    fn value(&mut self) -> Value {
        let class = self.word();
        let mut range_limit = None;
        match class {
            "func" => return Value::Function(Arc::new(Function::Named(self.word().into(), None))),
            "cell" => {
                let dims = self.dims();
                return Value::Cell(Arc::new(CellArray::new(dims, self.list(Reader::value))));
            }
            "struct" => {
                let mut out = StructArray::empty(self.dims());
                let n = out.len();
                let fields = self.list(|r| (r.word().to_string(), (0..n).map(|_| r.value()).collect::<Vec<_>>()));
                out.fields.extend(fields.into_iter().map(|(k, v)| (k.into(), v)));
                return Value::Struct(Arc::new(out));
            }
            "range" => range_limit = Some(f64::from_bits(u64::from_str_radix(self.word(), 16).expect("bits"))),
            _ => {}
        }
        let dims = self.dims();
        let data = match class {
            "double" | "range" => Data::F64(self.doubles()),
            "single" => Data::F32(self.singles()),
            "cdouble" => Data::C64(self.doubles().chunks(2).map(|c| Complex64::new(c[0], c[1])).collect()),
            "csingle" => Data::C32(self.singles().chunks(2).map(|c| Complex32::new(c[0], c[1])).collect()),
            "char" | "string" => Data::Char(self.numbers()),
            "logical" => Data::Bool(self.numbers::<u8>().into_iter().map(|b| b != 0).collect()),
            "int8" => Data::I8(self.numbers()),
            "int16" => Data::I16(self.numbers()),
            "int32" => Data::I32(self.numbers()),
            "int64" => Data::I64(self.numbers()),
            "uint8" => Data::U8(self.numbers()),
            "uint16" => Data::U16(self.numbers()),
            "uint32" => Data::U32(self.numbers()),
            "uint64" => Data::U64(self.numbers()),
            other => panic!("a class {other}"),
        };
        let mut tensor = Tensor::new(dims, data);
        if let Some(limit) = range_limit {
            tensor.form = Form::Range { limit };
        }
        tensor.double_quoted = class == "string";
        Value::tensor_as_is(tensor)
    }
}

fn set(format: &mut Format, words: &str) {
    let style = |precision, style| Format { precision, style, ..Format::default() };
    *format = match words {
        "short" => Format::default(),
        "long" => style(16, Style::Fixed),
        "shortg" => style(5, Style::General),
        "longg" => style(16, Style::General),
        "shorte" => style(5, Style::Exponent),
        "longe" => style(16, Style::Exponent),
        "compact" => Format { compact: true, ..*format },
        other => {
            let digits = other.strip_prefix("precision ").expect("a format");
            style(digits.parse().expect("digits"), Style::Fixed)
        }
    };
}

/// Runs the cases of a file. Returns the first few differences, the number of differences, and the number of cases.
fn differences(text: &str) -> (Vec<String>, usize, usize) {
    let (mut wrong, mut failed, mut count) = (Vec::new(), 0, 0);
    let mut format = Format::default();
    let mut words = "short";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (mark, rest) = line.split_at(line.len().min(2));
        match mark {
            "= " => {
                set(&mut format, rest);
                words = rest;
                continue;
            }
            "? " | "! " => {}
            _ => continue,
        }
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|l| l.starts_with('|') || l.starts_with('/')) {
            expected += &line[1..];
            if line.starts_with('|') {
                expected.push('\n');
            }
        }
        let value = Reader::new(rest).value();
        let mut printer = Printer::new(format);
        match mark {
            "? " => printer.named("x", &value),
            _ => printer.bare(&value),
        }
        count += 1;
        let got = String::from_utf8_lossy(&printer.out).into_owned();
        if got != expected {
            failed += 1;
            if wrong.len() < 12 {
                wrong.push(format!("[{words}] {line:.300}\nexpected:\n{expected}got:\n{got}"));
            }
        }
    }
    (wrong, failed, count)
}

fn check(text: &str) {
    let (wrong, failed, count) = differences(text);
    assert!(count > 0, "no cases");
    assert!(wrong.is_empty(), "{failed} of {count} differ\n{}", wrong.join("\n"));
}

/// Tests random reals of many magnitudes, under every format: widths, notations, wrapping.
#[test]
fn real_numbers_are_shown_as_octave_shows_them() {
    check(include_str!("cases/real.txt"));
}

/// Tests random complex numbers and ranges, under every format.
#[test]
fn complex_numbers_and_ranges_are_shown_as_octave_shows_them() {
    check(include_str!("cases/complex.txt"));
}

/// Tests random integers, texts, containers and arrays of three dimensions.
#[test]
fn containers_and_integers_are_shown_as_octave_shows_them() {
    check(include_str!("cases/nested.txt"));
}

/// Tests edge cases: empty values, least integers, deep structs, pages, NaN beside fractions.
#[test]
fn edge_values_are_shown_as_octave_shows_them() {
    check(include_str!("cases/hand.txt"));
}
