//! Parses JSON text into its tree.
//!
//! In: bytes. Out: a tree, or the place of an error. NaN and infinities may be written out, as `jsonencode` writes them
//! on request. Must hold: lists and objects are nested at most [`DEPTH_MAX`] deep.

use crate::env::DEPTH_MAX;

/// A value in a JSON text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string's bytes.
    Text(Vec<u8>),
    /// A list.
    List(Vec<Json>),
    /// Names with their values, in order.
    Object(Vec<(Vec<u8>, Json)>),
}

/// The place of an error, and its reason.
pub(crate) type Wrong = (usize, &'static str);

/// Parses a text.
///
/// # Errors
/// The text is no JSON.
pub(crate) fn parse(text: &[u8]) -> Result<Json, Wrong> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.blanks();
    if reader.at == text.len() {
        return Err((0, "The document is empty"));
    }
    let value = reader.value()?;
    reader.blanks();
    match reader.at == text.len() {
        true => Ok(value),
        false => Err((reader.at, "The document root must not be followed by other values")),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Goes past this byte if it comes next, after blanks. Returns whether it did.
    fn takes(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.next() == Some(byte);
        self.at += found as usize;
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Json, Wrong> {
        self.blanks();
        match self.next() {
            Some(b'{' | b'[') => {
                if self.depth == DEPTH_MAX {
                    return Err((self.at, "Too many nested values"));
                }
                self.depth += 1;
                let value = if self.takes(b'{') { self.object() } else { self.list() };
                self.depth -= 1;
                value
            }
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') if self.word("true") => Ok(Json::Bool(true)),
            Some(b'f') if self.word("false") => Ok(Json::Bool(false)),
            Some(b'n') if self.word("null") => Ok(Json::Null),
            Some(b'N') if self.word("NaN") => Ok(Json::Number(f64::NAN)),
            Some(b'I') if self.word("Infinity") || self.word("Inf") => Ok(Json::Number(f64::INFINITY)),
            Some(b'-') if self.word("-Infinity") || self.word("-Inf") => Ok(Json::Number(f64::NEG_INFINITY)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err((self.at, "Invalid value")),
        }
    }

    fn list(&mut self) -> Result<Json, Wrong> {
        self.at += 1;
        let mut items = Vec::new();
        if self.takes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            if !self.takes(b',') {
                return Err((self.at, "Missing a comma or ']' after an array element"));
            }
        }
    }

    /// Parses an object, behind its brace.
    fn object(&mut self) -> Result<Json, Wrong> {
        let mut members = Vec::new();
        if self.takes(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.next() != Some(b'"') {
                return Err((self.at, "Missing a name for object member"));
            }
            let name = self.string()?;
            if !self.takes(b':') {
                return Err((self.at, "Missing a colon after a name of object member"));
            }
            members.push((name, self.value()?));
            if self.takes(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.takes(b',') {
                return Err((self.at, "Missing a comma or '}' after an object member"));
            }
        }
    }

    fn digits(&mut self) -> bool {
        let from = self.at;
        while matches!(self.next(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at > from
    }

    fn number(&mut self) -> Result<Json, Wrong> {
        let from = self.at;
        self.word("-");
        if !self.word("0") && !self.digits() {
            return Err((self.at, "Invalid value"));
        }
        if self.word(".") && !self.digits() {
            return Err((self.at, "Miss fraction part in number"));
        }
        if self.word("e") || self.word("E") {
            let _ = self.word("+") || self.word("-");
            if !self.digits() {
                return Err((self.at, "Miss exponent in number"));
            }
        }
        let text = std::str::from_utf8(&self.text[from..self.at]).unwrap_or_default();
        text.parse().map(Json::Number).map_err(|_| (from, "Invalid value"))
    }

    fn string(&mut self) -> Result<Vec<u8>, Wrong> {
        let from = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(byte) = self.next() else { return Err((from, "Missing a closing quotation mark in string")) };
            self.at += 1;
            match byte {
                b'"' => return Ok(out),
                b'\\' => self.escape(&mut out)?,
                0..32 => return Err((self.at - 1, "Invalid encoding in string")),
                byte => out.push(byte),
            }
        }
    }

    /// Parses an escape, behind its backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Wrong> {
        let wrong = (self.at, "Invalid escape character in string");
        let letter = self.next().ok_or(wrong)?;
        self.at += 1;
        out.push(match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut code = self.unit()?;
                if (0xD800..0xDC00).contains(&code) && self.word("\\u") {
                    code = 0x10000 + ((code - 0xD800) << 10) + (self.unit()?.wrapping_sub(0xDC00) & 0x3FF);
                }
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(wrong),
        });
        Ok(())
    }

    /// Parses four hexadecimal digits.
    fn unit(&mut self) -> Result<u32, Wrong> {
        let wrong = (self.at, "Incorrect hex digit after \\u escape in string");
        let digits = self.text.get(self.at..self.at + 4).ok_or(wrong)?;
        self.at += 4;
        digits.iter().try_fold(0, |code, &d| Some(code * 16 + (d as char).to_digit(16)?)).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_trees() {
        let one = || Json::Number(1.0);
        assert_eq!(parse(b" [1, true , null]"), Ok(Json::List(vec![one(), Json::Bool(true), Json::Null])));
        assert_eq!(parse(br#"{"a":"\u0041\ud83d\ude00"}"#), {
            Ok(Json::Object(vec![(b"a".to_vec(), Json::Text("A\u{1F600}".into()))]))
        });
        assert_eq!(parse(b"[1,2"), Err((4, "Missing a comma or ']' after an array element")));
        assert_eq!(parse(b"01"), Err((1, "The document root must not be followed by other values")));
        assert!(parse(&[b'['; 100_000]).is_err());
    }
}
