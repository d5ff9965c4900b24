//! Reads numbers and words from a text by a template: `sscanf` and `fscanf`.
//!
//! In: a text, a template like those of C's `scanf`, and the wanted number of elements. Out: a column of numbers, or a
//! text if the template only reads texts. The template starts again until the text ends, an input does not match, or
//! enough was read. Must hold: a pass that reads nothing of the text is the last.

use super::chars;
use super::output::text_row;
use crate::builtins::files::streams::Files;
use crate::builtins::{Builtin, Outcome, row};
use crate::error::{Flow, fail};
use crate::value::{Data, Dims, Tensor, Value};
use crate::vm::Interp;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "sscanf",
        2,
        3,
        255,
        "[x, n, message, pos] = sscanf (text, template, size)",
        "Numbers and words from a text.",
        sscanf,
    ),
    row(
        "fscanf",
        2,
        3,
        255,
        "[x, n, message] = fscanf (fid, template, size)",
        "Numbers and words from a file.",
        fscanf,
    )
    .outside(),
];

/// The kinds of conversions.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Whole(Whole),
    Float,
    Word,
    Chars,
    /// `%[…]`: bytes in a set, or not in it.
    Set {
        bytes: Vec<u8>,
        complement: bool,
    },
}

/// The form of an integer.
#[derive(Clone, Debug, PartialEq)]
struct Whole {
    /// Its base; `None` if the digits tell it.
    base: Option<u32>,
    signed: bool,
    bits: u32,
}

impl Whole {
    /// Makes the form for a conversion's letter.
    fn new(letter: u8, bits: u32) -> Whole {
        let base = match letter {
            b'i' => None,
            b'o' => Some(8),
            b'x' | b'X' => Some(16),
            _ => Some(10),
        };
        Whole { base, signed: matches!(letter, b'd' | b'i'), bits }
    }

    /// Returns the number with this magnitude and sign, or the nearest possible one. For unsigned conversions, negative
    /// numbers wrap around.
    fn number(&self, magnitude: u128, negative: bool) -> f64 {
        let range = 1u128 << self.bits;
        match (self.signed, negative) {
            (true, true) => -(magnitude.min(range / 2) as f64),
            (true, false) => magnitude.min(range / 2 - 1) as f64,
            (false, true) if magnitude < range => (range.wrapping_sub(magnitude) % range) as f64,
            (false, _) => magnitude.min(range - 1) as f64,
        }
    }
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// Any number of blanks.
    Space,
    /// A byte that must come next.
    Byte(u8),
    Conversion {
        kind: Kind,
        width: Option<usize>,
        kept: bool,
    },
}

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Number(f64),
    Text(Vec<u8>),
}

/// Parses a template; `None` if a `%` begins no conversion.
fn parse(template: &[u8]) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < template.len() {
        let byte = template[at];
        at += 1;
        if byte.is_ascii_whitespace() {
            if items.last() != Some(&Item::Space) {
                items.push(Item::Space);
            }
            continue;
        }
        if byte != b'%' {
            items.push(Item::Byte(byte));
            continue;
        }
        let kept = template.get(at) != Some(&b'*');
        at += usize::from(!kept);
        let mut width: Option<usize> = None;
        while let Some(digit @ b'0'..=b'9') = template.get(at) {
            width = Some(width.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0')));
            at += 1;
        }
        let mut bits = 32;
        while let Some(size @ (b'l' | b'h' | b'L')) = template.get(at) {
            bits = match size {
                b'l' => 64,
                b'h' => 16,
                _ => bits,
            };
            at += 1;
        }
        let kind = match template.get(at)? {
            b'%' => {
                items.push(Item::Byte(b'%'));
                at += 1;
                continue;
            }
            letter @ (b'd' | b'u' | b'i' | b'x' | b'X' | b'o') => Kind::Whole(Whole::new(*letter, bits)),
            b'f' | b'e' | b'g' | b'E' | b'G' => Kind::Float,
            b's' => Kind::Word,
            b'c' => Kind::Chars,
            b'[' => {
                let (kind, end) = set(template, at + 1)?;
                at = end;
                kind
            }
            _ => return None,
        };
        at += 1;
        items.push(Item::Conversion { kind, width, kept });
    }
    Some(items)
}

/// Parses `%[…]` from behind its bracket: returns the set, and the place of its closing bracket.
fn set(template: &[u8], mut at: usize) -> Option<(Kind, usize)> {
    let complement = template.get(at) == Some(&b'^');
    at += usize::from(complement);
    let first = at;
    let mut bytes = Vec::new();
    loop {
        let byte = *template.get(at)?;
        if byte == b']' && at > first {
            return Some((Kind::Set { bytes, complement }, at));
        }
        match (template.get(at + 1), template.get(at + 2)) {
            (Some(b'-'), Some(&last)) if last != b']' => {
                bytes.extend(byte..=last);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// A text, and the position up to which it was read.
struct Input<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads the longest run of matching bytes, at most `most`.
    fn run(&mut self, most: usize, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let len = rest.iter().take(most).take_while(|&&b| fits(b)).count();
        self.at += len;
        &rest[..len]
    }

    fn read(&mut self, kind: &Kind, width: Option<usize>) -> Option<Found> {
        let most = width.unwrap_or(usize::MAX);
        if !matches!(kind, Kind::Chars | Kind::Set { .. }) {
            self.skip_space();
        }
        let text = match kind {
            Kind::Whole(whole) => return self.whole(most, whole),
            Kind::Float => return self.float(most),
            Kind::Word => self.run(most, |b| !b.is_ascii_whitespace()),
            Kind::Chars => self.run(width.unwrap_or(1), |_| true),
            Kind::Set { bytes, complement } => self.run(most, |b| bytes.contains(&b) != *complement),
        };
        (!text.is_empty()).then(|| Found::Text(text.to_vec()))
    }

    /// Reads an integer in a base, or in the base that its first digits tell.
    fn whole(&mut self, most: usize, whole: &Whole) -> Option<Found> {
        let start = self.at;
        let sign = self.run(most.min(1), |b| matches!(b, b'+' | b'-'));
        let left = |input: &Input| most - (input.at - start).min(most);
        let prefixed = self.text[self.at..].get(..2).is_some_and(|p| p.eq_ignore_ascii_case(b"0x")) && left(self) > 2;
        let base = match whole.base {
            Some(base) => base,
            None if prefixed => 16,
            None if self.peek() == Some(b'0') => 8,
            None => 10,
        };
        if base == 16 && prefixed {
            self.at += 2;
        }
        let digits = self.run(left(self), |b| (b as char).is_digit(base));
        if digits.is_empty() {
            self.at = start;
            return None;
        }
        let magnitude = digits.iter().fold(0u128, |sum, &b| {
            let digit = (b as char).to_digit(base).unwrap_or(0);
            sum.saturating_mul(base.into()).saturating_add(digit.into())
        });
        Some(Found::Number(whole.number(magnitude, sign == b"-")))
    }

    fn float(&mut self, most: usize) -> Option<Found> {
        let start = self.at;
        let end = start.saturating_add(most).min(self.text.len());
        let digits = |mut at: usize| {
            while at < end && self.text[at].is_ascii_digit() {
                at += 1;
            }
            at
        };
        let signed = |at: usize| at + usize::from(at < end && matches!(self.text[at], b'+' | b'-'));
        let mut at = signed(start);
        for (word, value) in [("inf", f64::INFINITY), ("nan", f64::NAN), ("na", f64::NAN)] {
            if self.text[at..end].get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes())) {
                self.at = at + word.len();
                return Some(Found::Number(if self.text[start] == b'-' { -value } else { value }));
            }
        }
        let whole = digits(at);
        let mut count = whole - at;
        at = whole;
        if at < end && self.text[at] == b'.' {
            let fraction = digits(at + 1);
            count += fraction - at - 1;
            at = if count > 0 { fraction } else { at };
        }
        if count == 0 {
            return None;
        }
        if at < end && matches!(self.text[at], b'e' | b'E') {
            let first = signed(at + 1);
            let last = digits(first);
            at = if last > first { last } else { at };
        }
        let value = std::str::from_utf8(&self.text[start..at]).ok()?.parse().ok()?;
        self.at = at;
        Some(Found::Number(value))
    }
}

/// The elements that were read, the number of conversions, and whether all of the text matched.
struct Scanned {
    found: Vec<Found>,
    count: usize,
    fits: bool,
    /// The position up to which the text was read.
    end: usize,
}

/// Reads until the text ends, an input does not match, or `enough` conversions were made. `once`: the template is used
/// once.
fn scan(text: &[u8], items: &[Item], enough: usize, once: bool) -> Scanned {
    let mut input = Input { text, at: 0 };
    let mut out = Scanned { found: Vec::new(), count: 0, fits: true, end: 0 };
    'passes: loop {
        let (start, count) = (input.at, out.count);
        for item in items {
            match item {
                Item::Space => input.skip_space(),
                Item::Byte(byte) => {
                    if input.peek() != Some(*byte) {
                        out.fits = input.peek().is_none();
                        break 'passes;
                    }
                    input.at += 1;
                }
                Item::Conversion { kind, width, kept } => {
                    if out.count >= enough {
                        break 'passes;
                    }
                    match input.read(kind, *width) {
                        Some(found) if *kept => {
                            out.found.push(found);
                            out.count += 1;
                        }
                        Some(_) => {}
                        None => {
                            out.fits = input.peek().is_none();
                            break 'passes;
                        }
                    }
                }
            }
        }
        if once || input.at == start && out.count == count || input.at >= text.len() {
            break;
        }
    }
    out.end = input.at;
    out
}

/// The wanted numbers of rows, columns and elements.
struct Wanted {
    rows: Option<usize>,
    columns: Option<usize>,
    elements: usize,
}

fn wanted(interp: &Interp, who: &str, size: Option<&Value>) -> Flow<Wanted> {
    let Some(size) = size else { return Ok(Wanted { rows: None, columns: None, elements: usize::MAX }) };
    let size = interp.env.host(size)?.data.to_f64();
    let extent = |x: f64| -> Flow<Option<usize>> {
        if x == f64::INFINITY || x < 0.0 { Ok(None) } else { Ok(Some(crate::builtins::args::extent(x)?)) }
    };
    match size[..] {
        [] => fail!("{who}: invalid SIZE specification"),
        [n] => Ok(Wanted { rows: None, columns: None, elements: extent(n)?.unwrap_or(usize::MAX) }),
        [m, n, ..] => {
            let Some(rows) = extent(m)? else { return fail!("{who}: infinite value invalid as size specification") };
            let columns = extent(n)?;
            let elements = columns.map_or(usize::MAX, |c| rows.saturating_mul(c));
            Ok(Wanted { rows: Some(rows), columns, elements })
        }
    }
}

/// Returns the elements in the wanted shape.
fn shaped(found: Vec<Found>, items: &[Item], wanted: &Wanted) -> Value {
    let text_only = items.iter().all(|i| match i {
        Item::Conversion { kind, kept, .. } => !kept || matches!(kind, Kind::Word | Kind::Chars | Kind::Set { .. }),
        _ => true,
    });
    let mut numbers = Vec::with_capacity(found.len());
    for part in found {
        match part {
            Found::Number(x) => numbers.push(x),
            Found::Text(text) => numbers.extend(text.into_iter().map(f64::from)),
        }
    }
    // The wanted number counts conversions. A word is one conversion, whatever its length.
    let rows = wanted.rows.or(if numbers.len() > wanted.elements { Some(wanted.elements) } else { None });
    if text_only && wanted.rows.is_none_or(|rows| rows == 1) {
        return text_row(numbers.into_iter().map(|x| x as u8).collect());
    }
    let dims = match rows {
        Some(0) if wanted.rows.is_some() => Dims::new(&[0, wanted.columns.unwrap_or(0)]),
        // A single column is as long as the elements found. The last one of several columns is filled up.
        Some(rows) if rows > 0 && numbers.len() > rows => {
            let columns = numbers.len().div_ceil(rows);
            numbers.resize(rows * columns, 0.0);
            Dims::new(&[rows, columns])
        }
        _ if wanted.elements == 0 => Dims::zero(),
        _ => Dims::new(&[numbers.len(), 1]),
    };
    let data = match text_only {
        true => Data::Char(numbers.into_iter().map(|x| x as u8).collect()),
        false => Data::F64(numbers),
    };
    Value::tensor(Tensor::new(dims, data))
}

/// Returns the template of a call. Its escapes are replaced if it was written in single quotes.
fn template(interp: &Interp, who: &str, value: &Value) -> Flow<Vec<Item>> {
    let Some(bytes) = value.as_bytes() else { return fail!("{who}: format TEMPLATE must be a string") };
    let quoted = interp.env.host(value)?.double_quoted;
    let bytes = if quoted { bytes.to_vec() } else { chars::unescaped(bytes) };
    match parse(&bytes) {
        Some(items) => Ok(items),
        None => fail!("{who}: invalid format specified"),
    }
}

/// Returns the outputs, and the position up to which the text was read.
fn outputs(interp: &mut Interp, who: &str, text: &[u8], args: &[Value], count: usize) -> Flow<(Outcome, usize)> {
    let items = template(interp, who, &args[1])?;
    let message = |s: &Scanned| if s.fits { String::new() } else { format!("{who}: format failed to match") };
    if args.get(2).is_some_and(|c| c.as_bytes() == Some(b"C")) {
        let scanned = scan(text, &items, usize::MAX, true);
        let kept = items.iter().filter(|i| matches!(i, Item::Conversion { kept: true, .. })).count();
        let (errors, read) = (message(&scanned), scanned.count);
        let mut values: Vec<Value> = scanned
            .found
            .into_iter()
            .map(|f| match f {
                Found::Number(x) => Value::Num(x),
                Found::Text(text) => Value::string(text),
            })
            .collect();
        values.resize(kept.max(values.len()), Value::empty());
        values.extend([Value::from(read), Value::from(errors)]);
        values.truncate(count.max(1));
        return Ok((values.into(), scanned.end));
    }
    let wanted = wanted(interp, who, args.get(2))?;
    let scanned = scan(text, &items, wanted.elements, false);
    let errors = message(&scanned);
    let value = shaped(scanned.found, &items, &wanted);
    let values = vec![value, Value::from(scanned.count), Value::from(errors), Value::from(scanned.end + 1)];
    Ok((values.into(), scanned.end))
}

fn sscanf(interp: &mut Interp, args: &[Value], count: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let host = if args[0].is_char() { Some(interp.env.host(&args[0])?) } else { None };
    match host.as_ref().map(|host| &*host.data) {
        Some(Data::Char(bytes)) => Ok(outputs(interp, "sscanf", bytes, args, count)?.0),
        _ => fail!("sscanf: argument STRING must be a string"),
    }
}

fn fscanf(interp: &mut Interp, args: &[Value], count: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    template(interp, "fscanf", &args[1])?;
    let bytes = interp.env.keep.of::<Files>().rest("fscanf", &args[0])?;
    let (outcome, end) = outputs(interp, "fscanf", &bytes, args, count)?;
    // The rest of the text is left for the next call.
    interp.env.keep.of::<Files>().give_back("fscanf", &args[0], bytes.len() - end)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str, template: &str) -> Vec<f64> {
        let items = parse(template.as_bytes()).unwrap();
        let found = scan(text.as_bytes(), &items, usize::MAX, false).found;
        found.into_iter().map(|f| if let Found::Number(x) = f { x } else { f64::NAN }).collect()
    }

    #[test]
    fn templates_begin_anew_until_something_does_not_fit() {
        assert_eq!(numbers("1,2;3,4", "%d,%d;"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(numbers("12345", "%2d%3d"), [12.0, 345.0]);
        assert_eq!(numbers("1 2.5 3", "%d"), [1.0, 2.0]);
        assert_eq!(numbers("0x10 10 010", "%i"), [16.0, 10.0, 8.0]);
        assert_eq!(numbers("1e3 -2.5E-1 -Inf 7.", "%f"), [1000.0, -0.25, f64::NEG_INFINITY, 7.0]);
        assert_eq!(numbers("3 4", "%*d %d"), [4.0]);
        assert!(numbers("", "%d").is_empty());
        assert_eq!(parse(b"%q"), None);
    }

    #[test]
    fn sets_are_ranges_and_complements() {
        let items = parse(b"%[^a-c]%[]x]").unwrap();
        let found = scan(b"xyzabc", &items[..1], usize::MAX, true).found;
        assert_eq!(found, [Found::Text(b"xyz".to_vec())]);
        assert_eq!(
            items[1],
            Item::Conversion { kind: Kind::Set { bytes: b"]x".to_vec(), complement: false }, width: None, kept: true }
        );
    }
}
