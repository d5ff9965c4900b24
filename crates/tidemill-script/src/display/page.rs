//! Turns arrays into blocks of lines: columns, wrapped at the line's width, and pages for arrays of more than two
//! dimensions.
//!
//! Two blanks come before a column. If not all columns fit the width, as many as fit form a block under a heading (`
//! Columns 1 through 8:`, ` Columns 9 and 10:`, ` Column 11:`). For this, a complex column counts one place more than
//! it takes. Pages have the heading `ans(:,:,k) =`. An array inside a container is indented, and the line is shorter by
//! that much. All integers are as wide as the widest one of all pages, including its minus sign, and a blank line
//! follows each of their pages. Other pages are laid out one by one (a real page of a complex array is shown as real).

use super::layout::{self, Extent, Layout, Precision};
use super::nested::{Printer, empty_summary};
use super::{Style, number, raw};
use crate::value::{Data, Dims, Form, Tensor};
use num_complex::Complex64;

/// Returns the text of a scalar behind `x = `; `None` if the value is no numeric or logical scalar.
pub(super) fn scalar(printer: &Printer, tensor: &Tensor) -> Option<Vec<u8>> {
    if tensor.len() != 1 || tensor.dims.len() != 2 {
        return None;
    }
    if let Some(text) = raw::scalar(printer.format.style, &tensor.data) {
        return Some(text);
    }
    let bank = printer.format.style == Style::Bank;
    Some(match &*tensor.data {
        Data::C64(_) | Data::C32(_) if bank => {
            let part = tensor.data.c64_at(0).re;
            let layout = layout::matrix(Extent::of(std::iter::once(part)), printer.precision(false));
            let mut out = Vec::new();
            push_real(&mut out, part, layout);
            out
        }
        Data::F64(v) => real_scalar(v[0], printer.precision(false)),
        Data::F32(v) => real_scalar(v[0] as f64, printer.precision(true)),
        Data::C64(_) => complex_scalar(tensor.data.c64_at(0), printer.precision(false)),
        Data::C32(_) => complex_scalar(tensor.data.c64_at(0), printer.precision(true)),
        Data::Char(_) => return None,
        other if bank => format!("{}.00", integer_text(other, 0)).into_bytes(),
        other => integer_text(other, 0).into_bytes(),
    })
}

fn real_scalar(x: f64, precision: Precision) -> Vec<u8> {
    let mut out = Vec::new();
    push_real(&mut out, x, layout::scalar(x, precision));
    out
}

fn complex_scalar(z: Complex64, precision: Precision) -> Vec<u8> {
    let mut out = Vec::new();
    push_complex(&mut out, z, layout::complex_scalar(z, precision));
    out
}

/// Writes an integer, logical or char element in decimal digits.
fn integer_text(data: &Data, i: usize) -> String {
    match data {
        Data::I8(v) => v[i].to_string(),
        Data::I16(v) => v[i].to_string(),
        Data::I32(v) => v[i].to_string(),
        Data::I64(v) => v[i].to_string(),
        Data::U8(v) | Data::Char(v) => v[i].to_string(),
        Data::U16(v) => v[i].to_string(),
        Data::U32(v) => v[i].to_string(),
        Data::U64(v) => v[i].to_string(),
        Data::Bool(v) => (v[i] as u8).to_string(),
        other => other.f64_at(i).to_string(),
    }
}

fn push_padded(out: &mut Vec<u8>, text: &str, width: usize) {
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
    out.extend_from_slice(text.as_bytes());
}

fn push_real(out: &mut Vec<u8>, x: f64, layout: Layout) {
    if x == 0.0 {
        push_padded(out, "0", layout.width);
    } else {
        push_padded(out, &number::text(x, layout.notation), layout.width);
    }
}

fn push_complex(out: &mut Vec<u8>, z: Complex64, layout: layout::ComplexLayout) {
    push_real(out, z.re, Layout { notation: layout.notation, width: layout.real });
    out.extend_from_slice(if z.im.is_sign_negative() { b" - " } else { b" + " });
    push_real(out, z.im.abs(), Layout { notation: layout.notation, width: layout.imaginary });
    out.push(b'i');
}

/// The form of a page's columns: the places that a column counts, and a function that writes an element.
struct Columns<'a> {
    width: usize,
    range: bool,
    push: Box<dyn Fn(&mut Vec<u8>, usize) + 'a>,
}

/// Writes an array that is neither empty nor a scalar as lines, without the blank line after it.
pub(super) fn block(printer: &mut Printer, tensor: &Tensor) {
    if let Data::Char(chars) = &*tensor.data {
        return char_pages(printer, &tensor.dims, chars);
    }
    if tensor.dims.len() > 2 {
        return pages(printer, tensor);
    }
    let heading = match tensor.form {
        Form::Diagonal => "Diagonal Matrix\n",
        Form::Permutation => "Permutation Matrix\n",
        _ => "",
    };
    if !heading.is_empty() {
        printer.out.extend_from_slice(heading.as_bytes());
        printer.loose_line();
    }
    let columns = columns(printer, tensor);
    lines(printer, tensor.dims.rows(), tensor.dims.columns(), &columns, false);
}

fn columns<'a>(printer: &Printer, tensor: &'a Tensor) -> Columns<'a> {
    let style = printer.format.style;
    if let Some((width, before)) = raw::column(style, &tensor.data) {
        let push = move |out: &mut Vec<u8>, i: usize| {
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(raw::element(style, &tensor.data, i).as_bytes());
        };
        return Columns { width, range: false, push: Box::new(push) };
    }
    match &*tensor.data {
        data @ (Data::C64(_) | Data::C32(_)) if style == Style::Bank => {
            let precision = printer.precision(false);
            let layout = layout::matrix(Extent::of((0..data.len()).map(|i| data.c64_at(i).re)), precision);
            let push = move |out: &mut Vec<u8>, i: usize| {
                out.extend_from_slice(b"  ");
                push_real(out, data.c64_at(i).re, layout);
            };
            Columns { width: layout.width + 2, range: false, push: Box::new(push) }
        }
        Data::F64(_) | Data::F32(_) => {
            let single = matches!(*tensor.data, Data::F32(_));
            let precision = printer.precision(single);
            let layout = match (&*tensor.data, tensor.form) {
                (Data::F64(v), Form::Range { limit }) => layout::range(v, limit, precision),
                (data, _) => layout::matrix(Extent::of(shown(tensor).map(|i| data.f64_at(i))), precision),
            };
            Columns {
                width: layout.width + 2,
                range: tensor.is_range(),
                push: Box::new(move |out, i| {
                    out.extend_from_slice(b"  ");
                    push_real(out, tensor.data.f64_at(i), layout);
                }),
            }
        }
        Data::C64(_) | Data::C32(_) => {
            let data = &*tensor.data;
            let (diagonal, rows) = (tensor.form == Form::Diagonal, tensor.dims.rows());
            let precision = printer.precision(matches!(data, Data::C32(_)));
            let layout = layout::complex_matrix(shown(tensor).map(|i| data.c64_at(i)), precision);
            Columns {
                width: layout.real + layout.imaginary + 7,
                range: false,
                push: Box::new(move |out, i| {
                    out.extend_from_slice(b"  ");
                    // Off the diagonal of a diagonal matrix nothing is shown, not a complex zero.
                    if diagonal && i % rows != i / rows {
                        push_padded(out, "0", layout.real + layout.imaginary + 4);
                    } else {
                        push_complex(out, data.c64_at(i), layout);
                    }
                }),
            }
        }
        data if style == Style::Bank => {
            let width = integer_width(data) + 3;
            let push = move |out: &mut Vec<u8>, i: usize| {
                out.extend_from_slice(b"  ");
                push_padded(out, &(integer_text(data, i) + ".00"), width);
            };
            Columns { width: width + 2, range: false, push: Box::new(push) }
        }
        data => integer_columns(data, integer_width(data)),
    }
}

/// Returns the elements that determine a page's layout: for a diagonal matrix, those on its diagonal.
fn shown(tensor: &Tensor) -> impl Iterator<Item = usize> + Clone {
    let rows = tensor.dims.rows();
    match tensor.form {
        Form::Diagonal => (0..rows.min(tensor.dims.columns()) * (rows + 1)).step_by(rows + 1),
        _ => (0..tensor.len()).step_by(1),
    }
}

/// Returns the digits of the largest magnitude, and a place for a sign if an element is negative. As in Octave, zero
/// and the least value of a class count no digits, and the latter no sign.
fn integer_width(data: &Data) -> usize {
    let least = data.class().integer_range().map_or(0.0, |(least, _)| least as f64);
    let (mut digits, mut negative) = (0, 0);
    let is_least = |i: usize, x: f64| match data {
        Data::I64(numbers) => numbers[i] == i64::MIN,
        _ => x == least,
    };
    for (i, x) in (0..data.len()).map(|i| (i, data.f64_at(i))) {
        if x != 0.0 && !is_least(i, x) {
            negative = negative.max((x < 0.0) as usize);
            digits = digits.max((x.abs().log10() + 1.0).floor() as usize);
        }
    }
    digits + negative
}

fn integer_columns(data: &Data, width: usize) -> Columns<'_> {
    Columns {
        width: width + 2,
        range: false,
        push: Box::new(move |out, i| {
            out.extend_from_slice(b"  ");
            push_padded(out, &integer_text(data, i), width);
        }),
    }
}

/// Writes rows and columns, wrapped. `spaced`: two blank lines come between blocks of columns, as in all pages of
/// integers but the last.
fn lines(printer: &mut Printer, rows: usize, count: usize, columns: &Columns, spaced: bool) {
    let width = printer.format.width as usize;
    let inner = width.saturating_sub(printer.indent());
    // Whether a range is too wide is decided by the rest of the line, but it is broken at the width of the whole line.
    let broken = if columns.range { width } else { inner };
    let wraps = columns.width * count > inner;
    let most = if wraps { (broken / columns.width).max(1) } else { count };
    let mut first = 0;
    while first < count {
        let last = (first + most).min(count);
        if wraps {
            heading(printer, first, last);
        }
        for r in 0..rows {
            // Rows of signs begin at the margin, like text.
            if columns.width > 0 {
                printer.indent_line();
            }
            for c in first..last {
                (columns.push)(&mut printer.out, c * rows + r);
            }
            printer.out.push(b'\n');
        }
        first = last;
        if first < count {
            printer.loose_line();
            if spaced {
                printer.loose_line();
            }
        }
    }
}

fn heading(printer: &mut Printer, first: usize, last: usize) {
    printer.indent_line();
    let text = match last - first {
        1 => format!(" Column {last}:\n"),
        2 => format!(" Columns {} and {last}:\n", first + 1),
        _ => format!(" Columns {} through {last}:\n", first + 1),
    };
    printer.out.extend_from_slice(text.as_bytes());
    printer.loose_line();
}

/// Returns the pages: the subscripts in each page's name, and the position of its first element.
fn page_names(dims: &Dims) -> impl Iterator<Item = (String, usize)> + '_ {
    let size = dims.rows() * dims.columns();
    let count = dims.elements().checked_div(size).unwrap_or(0);
    (0..count).map(move |k| {
        let mut rest = k;
        let mut name = String::from("ans(:,:");
        for extent in &dims[2..] {
            name += &format!(",{}", rest % extent + 1);
            rest /= extent;
        }
        (name + ")", k * size)
    })
}

fn pages(printer: &mut Printer, tensor: &Tensor) {
    let page_dims = Dims::new(&[tensor.dims.rows(), tensor.dims.columns()]);
    let size = page_dims.elements();
    let last = tensor.len() - size;
    let integers = tensor.data.class().is_integer() && raw::column(printer.format.style, &tensor.data).is_none();
    let width = if integers { integer_width(&tensor.data) } else { 0 };
    for (name, start) in page_names(&tensor.dims) {
        let page = Tensor::new(page_dims.clone(), tensor.data.pick(start..start + size)).narrowed();
        if integers {
            printer.out.extend_from_slice(format!("{name} =\n").as_bytes());
            printer.loose_line();
            lines(printer, page_dims.rows(), page_dims.columns(), &integer_columns(&page.data, width), start < last);
            if start < last {
                printer.out.push(b'\n');
            }
        } else if let Some(text) = scalar(printer, &page) {
            printer.indent_line();
            printer.out.extend_from_slice(format!("{name} = ").as_bytes());
            printer.out.extend_from_slice(&text);
            printer.out.push(b'\n');
        } else {
            printer.indent_line();
            printer.out.extend_from_slice(format!("{name} =\n").as_bytes());
            printer.loose_line();
            let columns = columns(printer, &page);
            lines(printer, page_dims.rows(), page_dims.columns(), &columns, false);
            if start < last {
                printer.loose_line();
            }
        }
    }
}

/// Writes char rows as lines of text, which are never indented or wrapped.
fn char_rows(printer: &mut Printer, rows: usize, columns: usize, chars: &[u8]) {
    for r in 0..rows {
        printer.out.extend((0..columns).map(|c| chars[c * rows + r]));
        printer.out.push(b'\n');
    }
}

fn char_pages(printer: &mut Printer, dims: &Dims, chars: &[u8]) {
    let (rows, columns) = (dims.rows(), dims.columns());
    if dims.len() == 2 {
        return char_rows(printer, rows, columns, chars);
    }
    if chars.is_empty() {
        printer.out.extend_from_slice(&empty_summary(dims));
        return printer.out.push(b'\n');
    }
    let size = rows * columns;
    for (name, start) in page_names(dims) {
        let page = &chars[start..start + size];
        if rows == 1 {
            // The first page follows `x = ` on the same line.
            if start > 0 {
                printer.indent_line();
            }
            printer.out.extend_from_slice(format!("{name} = ").as_bytes());
            char_rows(printer, rows, columns, page);
        } else {
            printer.indent_line();
            printer.out.extend_from_slice(format!("{name} =\n").as_bytes());
            printer.loose_line();
            char_rows(printer, rows, columns, page);
            if start + size < chars.len() {
                printer.loose_line();
            }
        }
    }
}
