//! Regular expressions in PCRE's syntax, by `fancy-regex`: translation, compilation, matching on bytes.
//!
//! In: patterns and texts as bytes. Out: matches with byte positions. Must hold: a pattern that does not compile, or a
//! search that gives up, is an error, never a panic; positions refer to the bytes of the text as it was given.

use super::chars::is_space;
use crate::env::Env;
use crate::error::{Flow, ScriptError, Stop, fail};
use crate::memory::Growth;
use fancy_regex::Regex;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Options of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Only the first match is wanted.
    pub once: bool,
    /// Upper and lower case are equal.
    pub ignore_case: bool,
    /// `^` and `$` also match at lines.
    pub lines: bool,
    /// `.` does not match a line end.
    pub dot_excludes_newline: bool,
    /// Blanks and comments in the pattern are ignored.
    pub free_spacing: bool,
    /// Empty matches count.
    pub empty_matches: bool,
    /// `\b` is a word boundary, as in a pattern that was written in double quotes. Otherwise it is a backspace.
    pub word_bounds: bool,
}

/// The default options.
pub const DEFAULT: Flags = Flags {
    once: false,
    ignore_case: false,
    lines: false,
    dot_excludes_newline: false,
    free_spacing: false,
    empty_matches: false,
    word_bounds: false,
};

/// A match: its place, and those of its groups.
#[derive(Clone, Debug)]
pub struct Found {
    /// The bytes of the match.
    pub at: Range<usize>,
    /// The bytes of each group, from the first group on.
    pub groups: Vec<Option<Range<usize>>>,
}

/// A compiled pattern.
pub struct Compiled {
    regex: Regex,
    /// The names of groups in the order of the groups, each with the indices, from 0, of the groups of this name.
    pub names: Vec<(Arc<str>, Vec<usize>)>,
}

/// Compiled patterns, for loops that use a pattern again and again.
#[derive(Default)]
struct Cache(FxHashMap<(Vec<u8>, Flags, bool), Arc<Compiled>>);

/// The most compiled patterns that are kept.
const CACHE_MAX: usize = 64;

/// Compiles a pattern. `ends_line`: the text ends with a line end, before which `$` matches as well.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn compile(env: &mut Env, who: &str, pattern: &[u8], flags: Flags, ends_line: bool) -> Flow<Arc<Compiled>> {
    let cache = env.keep.of::<Cache>();
    let key = (pattern.to_vec(), flags, ends_line);
    if let Some(compiled) = cache.0.get(&key) {
        return Ok(compiled.clone());
    }
    let text = String::from_utf8_lossy(pattern);
    let (body, names) = match translate(&text, flags, ends_line) {
        Ok(translated) => translated,
        Err((message, at)) => return fail!("{who}: {message} at position {at} of expression"),
    };
    let mut letters = String::new();
    for (on, letter) in
        [(flags.ignore_case, 'i'), (flags.lines, 'm'), (!flags.dot_excludes_newline, 's'), (flags.free_spacing, 'x')]
    {
        if on {
            letters.push(letter);
        }
    }
    let full = if letters.is_empty() { body } else { format!("(?{letters}){body}") };
    let regex = Regex::new(&full)
        .map_err(|error| Stop::from(ScriptError::new(format!("{who}: {error} (in the expression {text})"))))?;
    let compiled = Arc::new(Compiled { regex, names });
    if cache.0.len() >= CACHE_MAX {
        cache.0.clear();
    }
    cache.0.insert(key, compiled.clone());
    Ok(compiled)
}

/// The approximate number of bytes that a match, or a group of a match, takes with everything made from it.
const FOUND_BYTES: usize = 300;

/// Finds all matches of a pattern in a text, as Octave counts them: after an empty match the search goes on one
/// character further.
///
/// # Errors
/// Patterns that do not compile; searches that give up.
pub fn matches(
    env: &mut Env,
    who: &str,
    pattern: &[u8],
    text: &[u8],
    flags: Flags,
) -> Flow<(Arc<Compiled>, Vec<Found>)> {
    // Each byte that is not UTF-8 becomes a character, and positions are then converted back from characters.
    let (subject, is_wider): (std::borrow::Cow<'_, str>, bool) = match std::str::from_utf8(text) {
        Ok(text) => (text.into(), false),
        Err(_) => (text.iter().map(|&b| b as char).collect::<String>().into(), true),
    };
    let characters = is_wider.then(|| Characters::of(&subject));
    let place = |at: usize| characters.as_ref().map_or(at, |characters| characters.before(at));
    let compiled = compile(env, who, pattern, flags, text.ends_with(b"\n"))?;
    let (mut found, mut growth) = (Vec::new(), Growth::default());
    let mut from = 0;
    while from <= subject.len() {
        env.check_halt()?;
        let captures = match compiled.regex.captures_from_pos(&*subject, from) {
            Ok(Some(captures)) => captures,
            Ok(None) => break,
            Err(error) => return fail!("{who}: {error}"),
        };
        let Some(whole) = captures.get(0) else { break };
        let range = |m: fancy_regex::Match<'_>| place(m.start())..place(m.end());
        let is_empty = whole.start() == whole.end();
        let next = match is_empty {
            true => subject[whole.end()..].chars().next().map_or(whole.end() + 1, |c| whole.end() + c.len_utf8()),
            false => whole.end(),
        };
        if !is_empty || flags.empty_matches {
            // This is the memory for the match's places, and for everything made from it.
            growth.add(env, FOUND_BYTES * captures.len())?;
            let groups = (1..captures.len()).map(|i| captures.get(i).map(range)).collect();
            found.push(Found { at: range(whole), groups });
            if flags.once {
                break;
            }
        }
        from = next;
    }
    Ok((compiled, found))
}

/// Counts the characters before each byte of a text, from the nearest mark.
struct Characters<'t> {
    text: &'t [u8],
    /// The number of characters before every [`Characters::STEP`]th byte.
    marks: Vec<usize>,
}

impl<'t> Characters<'t> {
    const STEP: usize = 64;

    fn of(text: &'t str) -> Characters<'t> {
        let text = text.as_bytes();
        let mut before = 0;
        let mut marks = Vec::with_capacity(text.len() / Self::STEP + 1);
        for step in text.chunks(Self::STEP) {
            marks.push(before);
            before += Self::count(step);
        }
        marks.push(before);
        Characters { text, marks }
    }

    /// Returns the number of characters that begin in a piece.
    fn count(bytes: &[u8]) -> usize {
        bytes.iter().filter(|&b| b & 0xC0 != 0x80).count()
    }

    fn before(&self, at: usize) -> usize {
        let mark = at / Self::STEP;
        match mark * Self::STEP < self.text.len() {
            true => self.marks[mark] + Self::count(&self.text[mark * Self::STEP..at]),
            // This is the end of a text that consists of whole steps.
            false => self.marks[self.marks.len() - 1],
        }
    }
}

/// A pattern in the syntax of the regex crate, and the names of its groups as in [`Compiled`].
type Translated = (String, Vec<(Arc<str>, Vec<usize>)>);

/// Translates a pattern of PCRE to the syntax of the regex crate. Parts that mean the same in both are unchanged.
///
/// # Errors
/// The fault and its place, in PCRE's words.
fn translate(pattern: &str, flags: Flags, ends_line: bool) -> Result<Translated, (&'static str, usize)> {
    let chars: Vec<(usize, char)> = pattern.char_indices().collect();
    let out = String::with_capacity(pattern.len() + 16);
    let mut t = Translator { chars, at: 0, out, depth: 0, flags, groups: 0, names: Vec::new() };
    // Whether the last item can be repeated.
    let mut repeatable = false;
    while let Some(c) = t.next() {
        let here = t.chars[t.at - 1].0;
        match c {
            '\\' => {
                t.escape(false).map_err(|m| (m, pattern.len()))?;
                repeatable = true;
            }
            '[' => {
                t.class().map_err(|m| (m, pattern.len()))?;
                repeatable = true;
            }
            '(' => {
                t.open();
                repeatable = false;
            }
            ')' => {
                t.depth = t.depth.checked_sub(1).ok_or(("unmatched parentheses", here))?;
                t.out.push(')');
                repeatable = true;
            }
            '*' | '+' | '?' => {
                if !repeatable {
                    return Err(("nothing to repeat", here));
                }
                t.out.push(c);
                // A lazy or possessive mark may follow, but no further repetition.
                if matches!(t.peek(), Some('?' | '+')) {
                    t.copy();
                }
                repeatable = false;
            }
            '{' => match t.counts() {
                Some(counts) if repeatable => {
                    t.out.push_str(&counts);
                    if matches!(t.peek(), Some('?' | '+')) {
                        t.copy();
                    }
                    repeatable = false;
                }
                _ => {
                    t.out.push_str("\\{");
                    repeatable = true;
                }
            },
            '}' => {
                t.out.push_str("\\}");
                repeatable = true;
            }
            '$' if ends_line && !flags.lines => {
                t.out.push_str("(?=\\n?\\z)");
                repeatable = true;
            }
            '|' => {
                t.out.push('|');
                repeatable = false;
            }
            '#' if flags.free_spacing => {
                while t.peek().is_some_and(|c| c != '\n') {
                    t.at += 1;
                }
            }
            c if flags.free_spacing && c.is_ascii() && is_space(c as u8) => {}
            c => {
                t.out.push(c);
                repeatable = true;
            }
        }
    }
    if t.depth > 0 { Err(("missing )", pattern.len())) } else { Ok((t.out, t.names)) }
}

struct Translator {
    /// The pattern's characters with their byte offsets.
    chars: Vec<(usize, char)>,
    at: usize,
    out: String,
    depth: usize,
    flags: Flags,
    /// The number of capturing groups that were opened.
    groups: usize,
    names: Vec<(Arc<str>, Vec<usize>)>,
}

impl Translator {
    fn next(&mut self) -> Option<char> {
        let (_, c) = *self.chars.get(self.at)?;
        self.at += 1;
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).map(|c| c.1)
    }

    fn copy(&mut self) {
        if let Some(c) = self.next() {
            self.out.push(c);
        }
    }

    /// Handles the text behind an open parenthesis. The kind of a group is copied, so that its `?` does not count as a
    /// repetition.
    fn open(&mut self) {
        self.depth += 1;
        self.out.push('(');
        if self.peek() != Some('?') {
            self.groups += 1;
            return;
        }
        if let Some((name, length)) = self.group_name() {
            self.groups += 1;
            let group = self.groups - 1;
            match self.names.iter_mut().find(|known| *known.0 == *name) {
                // In the crate's syntax, a name may occur only once.
                Some((_, groups)) => groups.push(group),
                None => {
                    self.out.push_str(&format!("?<{name}>"));
                    self.names.push((name.into(), vec![group]));
                }
            }
            self.at += length;
            return;
        }
        self.copy();
        match self.peek() {
            // A comment ends at the next parenthesis, whatever it contains.
            Some('#') => {
                while let Some(c) = self.next() {
                    if c == ')' {
                        break;
                    }
                }
                self.out.truncate(self.out.len() - 2);
                self.depth -= 1;
            }
            Some('<' | 'P' | '=' | '!' | ':' | '>' | '|') => {
                self.copy();
                while self.out.ends_with("?P") || self.out.ends_with('<') {
                    let before = self.at;
                    self.copy();
                    if self.at == before {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the name in `?<name>` or `?P<name>`, and the number of characters that this takes.
    fn group_name(&self) -> Option<(String, usize)> {
        let rest: String = self.chars[self.at..].iter().map(|c| c.1).collect();
        let inner = rest.strip_prefix("?<").or_else(|| rest.strip_prefix("?P<"))?;
        let name = inner.split_once('>')?.0;
        let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
        is_name.then(|| (name.to_string(), (rest.len() - inner.len()) + name.chars().count() + 1))
    }

    /// Reads `{n}`, `{n,}` or `{n,m}` behind the brace; `None` for other text, and then nothing is read.
    fn counts(&mut self) -> Option<String> {
        let rest: String = self.chars[self.at..].iter().map(|c| c.1).take_while(|&c| c != '}').collect();
        let closes = self.chars.get(self.at + rest.chars().count()).is_some();
        let (low, high) = rest.split_once(',').unwrap_or((&rest, ""));
        let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit());
        if !closes || low.is_empty() || !digits(low) || !digits(high) {
            return None;
        }
        self.at += rest.chars().count() + 1;
        Some(format!("{{{rest}}}"))
    }

    /// Handles an escape, behind its backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), &'static str> {
        let Some(c) = self.next() else { return Err("\\ at end of pattern") };
        let plain = match (c, in_class) {
            ('d', false) => "[0-9]",
            ('D', false) => "[^0-9]",
            ('w', false) => "[A-Za-z0-9_]",
            ('W', false) => "[^A-Za-z0-9_]",
            ('s', false) => "[ \\t\\n\\r\\f\\x0B]",
            ('S', false) => "[^ \\t\\n\\r\\f\\x0B]",
            ('d', true) => "0-9",
            ('w', true) => "A-Za-z0-9_",
            ('s', true) => " \\t\\n\\r\\f\\x0B",
            ('D' | 'W' | 'S', true) => {
                self.out.push('\\');
                self.out.push(c);
                return Ok(());
            }
            ('h', false) => "[ \\t]",
            ('h', true) => " \\t",
            ('R', false) => "(?:\\r\\n|[\\n\\r\\f\\x0B])",
            ('e', _) => "\\x1B",
            ('<', false) => "(?:(?<=[^A-Za-z0-9_])|^)",
            ('>', false) => "(?=[^A-Za-z0-9_]|$)",
            ('b', false) if self.flags.word_bounds => "\\b",
            ('b', _) => "\\x08",
            ('Z', false) => "(?=\\n?\\z)",
            ('Q', _) => {
                self.quoted();
                return Ok(());
            }
            ('E', _) => "",
            ('o' | '0', _) => {
                self.octal(c);
                return Ok(());
            }
            ('1'..='7', _) if in_class || self.octal_follows() => {
                self.at -= 1;
                self.octal('0');
                return Ok(());
            }
            (c, _) if self.flags.free_spacing && c.is_ascii() && is_space(c as u8) => {
                self.out.push_str(&format!("\\x{:02X}", c as u8));
                return Ok(());
            }
            _ => {
                let known = "aftnrvxAzbBGKkgpPuN123456789";
                // Any other letter stands for itself.
                let is_escape = match c {
                    '_' | '<' | '>' => false,
                    c if c.is_ascii_alphanumeric() => known.contains(c),
                    c => c.is_ascii_punctuation(),
                };
                if is_escape {
                    self.out.push('\\');
                }
                self.out.push(c);
                return Ok(());
            }
        };
        self.out.push_str(plain);
        Ok(())
    }

    /// Whether two more octal digits follow the digit that was read.
    fn octal_follows(&self) -> bool {
        (0..2).all(|i| self.chars.get(self.at + i).is_some_and(|c| ('0'..='7').contains(&c.1)))
    }

    fn octal(&mut self, kind: char) {
        let braced = kind == 'o' && self.peek() == Some('{');
        if braced {
            self.at += 1;
        }
        let mut code = 0u32;
        for _ in 0..3 {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) => {
                    code = code * 8 + digit;
                    self.at += 1;
                }
                None => break,
            }
        }
        if braced && self.peek() == Some('}') {
            self.at += 1;
        }
        self.out.push_str(&format!("\\x{{{code:x}}}"));
    }

    /// Handles text between `\Q` and `\E`.
    fn quoted(&mut self) {
        while let Some(c) = self.next() {
            if c == '\\' && self.peek() == Some('E') {
                self.at += 1;
                return;
            }
            if c.is_ascii_punctuation() && c != '<' && c != '>' {
                self.out.push('\\');
            }
            self.out.push(c);
        }
    }

    /// Handles a class in brackets; its first bracket was read.
    fn class(&mut self) -> Result<(), &'static str> {
        let missing = "missing terminating ] for character class";
        self.out.push('[');
        if self.peek() == Some('^') {
            self.copy();
        }
        let mut is_first = true;
        loop {
            let Some(c) = self.next() else { return Err(missing) };
            match c {
                ']' if !is_first => break,
                ']' => self.out.push_str("\\]"),
                '\\' => self.escape(true).map_err(|_| missing)?,
                '[' if self.peek() == Some(':') => {
                    let rest: String = self.chars[self.at..].iter().map(|c| c.1).collect();
                    match rest.find(":]") {
                        Some(end) => {
                            self.out.push('[');
                            for _ in 0..rest[..end + 2].chars().count() {
                                self.copy();
                            }
                        }
                        None => self.out.push_str("\\["),
                    }
                }
                '[' | '&' | '~' | '#' | ' ' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c => self.out.push(c),
            }
            is_first = false;
        }
        self.out.push(']');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_up_to_every_byte() {
        let text: String = (0..150u32).map(|k| if k % 3 == 0 { '\u{e9}' } else { 'x' }).collect();
        for text in [&text[..], &text[..128], ""] {
            let characters = Characters::of(text);
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for (count, at) in ends.enumerate() {
                assert_eq!(characters.before(at), count, "byte {at} of {}", text.len());
            }
        }
    }

    fn translated(pattern: &str) -> String {
        translate(pattern, DEFAULT, false).map_or_else(|(message, at)| format!("{message} at {at}"), |t| t.0)
    }

    #[test]
    fn what_pcre_reads_otherwise_is_rewritten() {
        assert_eq!(translated(r"a{2,}b{c}"), r"a{2,}b\{c\}");
        assert_eq!(translated(r"[[]\d[]x]"), r"[\[][0-9][\]x]");
        assert_eq!(translated(r"(?<name>\w+)_\_"), r"(?<name>[A-Za-z0-9_]+)__");
        assert_eq!(translated(r"\<x\>"), r"(?:(?<=[^A-Za-z0-9_])|^)x(?=[^A-Za-z0-9_]|$)");
        assert_eq!(translated(r"(?<a>x)|(?P<a>y)"), r"(?<a>x)|(y)");
        assert_eq!(translated(r"a(?#no)b"), "ab");
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_its_words() {
        assert_eq!(translated("("), "missing ) at 1");
        assert_eq!(translated("a)"), "unmatched parentheses at 1");
        assert_eq!(translated("*"), "nothing to repeat at 0");
        assert_eq!(translated("["), "missing terminating ] for character class at 1");
        assert_eq!(translated("a\\"), "\\ at end of pattern at 2");
    }
}
