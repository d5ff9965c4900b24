//! Turns text into tokens. Some tokens depend on their context.
//!
//! A quote is a transpose after an operand, and begins a string elsewhere. White space separates the elements of a
//! matrix or cell literal, but not inside parentheses, index braces, or the body of an anonymous function. A line's end
//! is a token at the top level and in literals, and white space inside parentheses. The open brackets tell which rule
//! applies.
//!
//! Must hold: `next` looks at every byte a bounded number of times; its state is a plain value, so that the parser can
//! look ahead on a copy.

use super::ast::BinaryOp;
use super::literal::{self, byte, is_name_byte};
use super::token::{Keyword, Parse, SyntaxError, Token, TokenKind};
use crate::source::Span;

/// The construct around the next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// `(…)`.
    Paren,
    /// The parameters of an anonymous function.
    Params,
    /// The body of an anonymous function, to the next comma, semicolon, line's end or closing bracket.
    Body,
    /// `[…]`.
    Matrix,
    /// `{…}` as a literal.
    Cell,
    /// `{…}` as an index.
    IndexBrace,
}

/// A comment, kept for `help`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment {
    /// First byte: the comment sign.
    pub start: usize,
    /// One past its last byte, without the line's end.
    pub end: usize,
}

/// The lexer.
#[derive(Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    contexts: Vec<Context>,
    after_operand: bool,
    after_dot: bool,
    after_at: bool,
    /// Whether the parameters of an anonymous function were just closed, so that its body begins, with an operand.
    after_params: bool,
    /// The comments so far, in order; empty in a copy.
    pub comments: Vec<Comment>,
    /// Whether the text ended inside of a block comment or after `...`.
    pub open_at_end: bool,
}

impl<'t> Lexer<'t> {
    /// Makes a lexer at the beginning of a text.
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        let at = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
        Lexer {
            text,
            at,
            contexts: Vec::new(),
            after_operand: false,
            after_dot: false,
            after_at: false,
            after_params: false,
            comments: Vec::new(),
            open_at_end: false,
        }
    }

    /// Returns a copy to look ahead with.
    pub(super) fn look_ahead(&self) -> Lexer<'t> {
        Lexer { comments: Vec::new(), contexts: self.contexts.clone(), ..*self }
    }

    /// Returns the offset after the last token.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Continues at another offset, at the top level (after the words of a command).
    pub(super) fn resume_at(&mut self, offset: usize) {
        self.at = offset;
        self.after_operand = false;
    }

    /// Returns the next token.
    pub(super) fn next(&mut self) -> Parse<Token> {
        let (space, newline) = self.skip_blanks();
        let in_literal = matches!(self.contexts.last(), Some(Context::Matrix | Context::Cell));
        let separated = space && in_literal;
        if let Some(start) = newline {
            self.leave_bodies();
            return Ok(self.finish(TokenKind::Newline, start, separated));
        }
        let start = self.at;
        let kind = self.token(separated)?;
        Ok(self.finish(kind, start, separated))
    }

    fn finish(&mut self, kind: TokenKind, start: usize, separated: bool) -> Token {
        let body_begins = std::mem::take(&mut self.after_params);
        self.after_operand = !body_begins && kind.ends_operand(!self.contexts.is_empty());
        self.after_dot = kind == TokenKind::Dot;
        self.after_at = kind == TokenKind::At;
        let space_after = matches!(byte(self.text, self.at), b' ' | b'\t' | b'\n' | b'\r');
        Token { kind, span: Span::new(start, self.at), separated, space_after }
    }

    /// Ends the bodies of anonymous functions.
    fn leave_bodies(&mut self) {
        while self.contexts.last() == Some(&Context::Body) {
            self.contexts.pop();
        }
    }

    /// Skips white space, comments, continuations, and line ends that count as white space. Returns whether there was
    /// any, and where a line end began that is a token (which is consumed).
    fn skip_blanks(&mut self) -> (bool, Option<usize>) {
        let mut space = false;
        loop {
            match byte(self.text, self.at) {
                b' ' | b'\t' => self.at += 1,
                b'%' | b'#' => self.skip_comment(),
                b'\n' | b'\r' => {
                    let start = self.at;
                    self.at = line_end(self.text, start);
                    if self.newline_counts() {
                        return (space, Some(start));
                    }
                }
                b'.' if self.text[self.at..].starts_with("...") => self.skip_continuation(3),
                b'\\' if self.backslash_continues() => self.skip_continuation(1),
                _ => return (space, None),
            }
            space = true;
        }
    }

    fn newline_counts(&self) -> bool {
        let around = self.contexts.iter().rev().find(|&&context| context != Context::Body);
        !matches!(around, Some(Context::Paren | Context::Params | Context::IndexBrace))
    }

    fn backslash_continues(&self) -> bool {
        let rest = self.text[self.at + 1..].trim_start_matches([' ', '\t']);
        rest.starts_with(['\n', '\r'])
    }

    /// Skips to the next line. The rest of the line is a comment, and whole lines of comments that follow are skipped,
    /// too.
    fn skip_continuation(&mut self, sign: usize) {
        self.at = find_line_end(self.text, self.at + sign);
        loop {
            self.at = line_end(self.text, self.at);
            let line = &self.text[self.at..];
            let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
            if !matches!(byte(self.text, self.at + blanks), b'%' | b'#') {
                break;
            }
            self.at += blanks;
            self.skip_comment();
        }
        self.open_at_end |= self.at >= self.text.len();
    }

    fn skip_comment(&mut self) {
        let start = self.at;
        let newline = find_line_end(self.text, start);
        self.at = newline;
        if is_block_mark(self.text, start, newline, b'{') {
            self.skip_block(newline);
        }
        self.comments.push(Comment { start, end: self.at });
    }

    /// Skips a block comment, to the end of its closing line; blocks nest.
    fn skip_block(&mut self, opening_end: usize) {
        let mut depth = 1;
        let mut newline = opening_end;
        while newline < self.text.len() {
            let line = line_end(self.text, newline);
            newline = find_line_end(self.text, line);
            let sign =
                line + self.text[line..newline].len() - self.text[line..newline].trim_start_matches([' ', '\t']).len();
            if is_block_mark(self.text, sign, newline, b'{') {
                depth += 1;
            } else if is_block_mark(self.text, sign, newline, b'}') {
                depth -= 1;
            }
            if depth == 0 {
                self.at = newline;
                return;
            }
        }
        self.at = self.text.len();
        self.open_at_end = true;
    }

    fn token(&mut self, separated: bool) -> Parse<TokenKind> {
        let text = self.text;
        let start = self.at;
        let first = byte(text, start);
        if start >= text.len() {
            return Ok(TokenKind::EndOfText);
        }
        if first.is_ascii_digit() || first == b'.' && byte(text, start + 1).is_ascii_digit() {
            let (kind, end) = literal::number(text, start)?;
            self.at = end;
            return Ok(kind);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            return Ok(self.word());
        }
        let transposes = first == b'\'' && self.after_operand && !separated;
        if first == b'"' || first == b'\'' && !transposes {
            let (bytes, end) = literal::string(text, start)?;
            self.at = end;
            return Ok(TokenKind::Str { bytes, double_quoted: first == b'"' });
        }
        if let Some(kind) = self.increment(separated) {
            return Ok(kind);
        }
        let (kind, length) = operator(&text.as_bytes()[start..]).ok_or_else(|| self.invalid_character())?;
        self.at += length;
        self.track_brackets(&kind, separated);
        Ok(kind)
    }

    /// Reads a name or a keyword. After a dot, every word is a name.
    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while is_name_byte(byte(self.text, self.at)) {
            self.at += 1;
        }
        match Keyword::of(&self.text[start..self.at]) {
            Some(keyword) if !self.after_dot => TokenKind::Keyword(keyword),
            _ => TokenKind::Name,
        }
    }

    /// Reads `++` or `--` after an operand if no other operand follows: the line or the bracket ends there, or an
    /// operator follows that stands between two operands.
    fn increment(&mut self, separated: bool) -> Option<TokenKind> {
        let rest = &self.text[self.at..];
        let kind = match rest.get(..2)? {
            "++" => TokenKind::Increment,
            "--" => TokenKind::Decrement,
            _ => return None,
        };
        let mut follows = rest[2..].trim_start_matches([' ', '\t']);
        while follows.starts_with("...") {
            let line = line_end(follows, find_line_end(follows, 3));
            follows = follows[line..].trim_start_matches([' ', '\t']);
        }
        let in_literal = matches!(self.contexts.last(), Some(Context::Matrix | Context::Cell));
        let ends = follows.is_empty()
            || in_literal && follows.len() < rest.len() - 2
            || follows.starts_with(['\n', '\r', ';', ',', '%', '#', ')', ']', '}'])
            || rest[2..].starts_with('\'')
            || follows.starts_with(['=', '<', '>', '*', '/', '^', '&', '|', ':', '+', '-'])
            || follows.starts_with("!=")
            || follows.starts_with("~=");
        if !ends || !self.after_operand || separated {
            return None;
        }
        self.at += 2;
        Some(kind)
    }

    fn invalid_character(&self) -> Box<SyntaxError> {
        let character = self.text[self.at..].chars().next().unwrap_or(' ');
        let span = Span::new(self.at, self.at + character.len_utf8());
        let shown = if character.is_control() { character.escape_default().to_string() } else { character.to_string() };
        SyntaxError::new(format!("invalid character '{shown}' (U+{:04X})", character as u32), span)
    }

    fn track_brackets(&mut self, kind: &TokenKind, separated: bool) {
        match kind {
            TokenKind::ParenOpen if self.after_at => self.contexts.push(Context::Params),
            TokenKind::ParenOpen => self.contexts.push(Context::Paren),
            TokenKind::BracketOpen => self.contexts.push(Context::Matrix),
            TokenKind::BraceOpen if self.after_operand && !separated => self.contexts.push(Context::IndexBrace),
            TokenKind::BraceOpen => self.contexts.push(Context::Cell),
            TokenKind::ParenClose => self.close(&[Context::Paren, Context::Params]),
            TokenKind::BracketClose => self.close(&[Context::Matrix]),
            TokenKind::BraceClose => self.close(&[Context::Cell, Context::IndexBrace]),
            TokenKind::Comma | TokenKind::Semicolon => self.leave_bodies(),
            _ => {}
        }
    }

    fn close(&mut self, kinds: &[Context]) {
        self.leave_bodies();
        let Some(&open) = self.contexts.last() else { return };
        // A bracket of the wrong kind is left to the parser, which knows what it expected.
        if kinds.contains(&open) {
            self.contexts.pop();
            if open == Context::Params {
                self.contexts.push(Context::Body);
                self.after_params = true;
            }
        }
    }
}

/// Returns the offset of the next line end at or after `at`, or the text's length.
pub(super) fn find_line_end(text: &str, at: usize) -> usize {
    text.as_bytes()[at..].iter().position(|b| matches!(b, b'\n' | b'\r')).map_or(text.len(), |length| at + length)
}

/// Returns the offset after the line end at `at`.
fn line_end(text: &str, at: usize) -> usize {
    match byte(text, at) {
        b'\r' if byte(text, at + 1) == b'\n' => at + 2,
        b'\n' | b'\r' => at + 1,
        _ => at,
    }
}

/// Whether a line holds only `%{`, `#{` (or the closing form). `sign` is the offset of its first byte that is not
/// blank, and `end` is its end.
fn is_block_mark(text: &str, sign: usize, end: usize, brace: u8) -> bool {
    let before = text.as_bytes()[..sign].iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
    matches!(byte(text, sign), b'%' | b'#')
        && sign + 1 < end
        && byte(text, sign + 1) == brace
        && text[sign + 2..end].trim_matches([' ', '\t']).is_empty()
        && matches!(before, None | Some(b'\n' | b'\r'))
}

/// Returns the longest operator or bracket at the beginning of `bytes`, and its length.
fn operator(bytes: &[u8]) -> Option<(TokenKind, usize)> {
    use BinaryOp::*;
    use TokenKind::*;
    let table: &[(&[u8], TokenKind)] = match bytes.first()? {
        b'.' => &[
            (b".**", Infix(Pow)),
            (b".*=", OpAssign(Mul)),
            (b"./=", OpAssign(Div)),
            (b".\\=", OpAssign(LeftDiv)),
            (b".^=", OpAssign(Pow)),
            (b".*", Infix(Mul)),
            (b"./", Infix(Div)),
            (b".\\", Infix(LeftDiv)),
            (b".^", Infix(Pow)),
            (b".'", Transpose { conjugate: false }),
            // Octave's old spellings of operators that work on elements anyway.
            (b".+=", OpAssign(Add)),
            (b".-=", OpAssign(Sub)),
            (b".+", Plus),
            (b".-", Minus),
            (b".", Dot),
        ],
        b'*' => &[(b"**=", OpAssign(MatPow)), (b"**", Infix(MatPow)), (b"*=", OpAssign(MatMul)), (b"*", Infix(MatMul))],
        b'/' => &[(b"/=", OpAssign(MatDiv)), (b"/", Infix(MatDiv))],
        b'\\' => &[(b"\\=", OpAssign(MatLeftDiv)), (b"\\", Infix(MatLeftDiv))],
        b'^' => &[(b"^=", OpAssign(MatPow)), (b"^", Infix(MatPow))],
        b'+' => &[(b"+=", OpAssign(Add)), (b"+", Plus)],
        b'-' => &[(b"-=", OpAssign(Sub)), (b"-", Minus)],
        b'=' => &[(b"==", Infix(Eq)), (b"=", Assign)],
        b'!' => &[(b"!=", Infix(Ne)), (b"!", Not)],
        b'~' => &[(b"~=", Infix(Ne)), (b"~", Not)],
        b'<' => &[(b"<=", Infix(Le)), (b"<", Infix(Lt))],
        b'>' => &[(b">=", Infix(Ge)), (b">", Infix(Gt))],
        b'&' => &[(b"&&", AndAnd), (b"&=", OpAssign(And)), (b"&", Infix(And))],
        b'|' => &[(b"||", OrOr), (b"|=", OpAssign(Or)), (b"|", Infix(Or))],
        b'\'' => &[(b"'", Transpose { conjugate: true })],
        b':' => &[(b":", Colon)],
        b'(' => &[(b"(", ParenOpen)],
        b')' => &[(b")", ParenClose)],
        b'[' => &[(b"[", BracketOpen)],
        b']' => &[(b"]", BracketClose)],
        b'{' => &[(b"{", BraceOpen)],
        b'}' => &[(b"}", BraceClose)],
        b',' => &[(b",", Comma)],
        b';' => &[(b";", Semicolon)],
        b'@' => &[(b"@", At)],
        _ => return None,
    };
    table.iter().find(|(text, _)| bytes.starts_with(text)).map(|(text, kind)| (kind.clone(), text.len()))
}
