//! Random texts for what reads scripts: mutations of the grammar's corpus, for as long as `TIDEMILL_FUZZ_SECONDS` says
//! (2 by default; CI takes a minute a target).
//!
//! A target is a function from a text to nothing that must neither panic nor take long. A failure prints the text, made
//! as short as it still fails, and the seed (`TIDEMILL_FUZZ_SEED` repeats a run).
#![cfg(feature = "script")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use tidemill::script::source::Source;
use tidemill::script::syntax;

/// How long one text may take: far more than any needs, but a scan that begins anew at every byte takes longer.
const TEXT_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a text may become.
const TEXT_BYTES_MAX: usize = 8_000;

/// Words that a mutation inserts.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "if ", "else ", "elseif ", "end ", "endif ", "while ", "for k = ", "do ", "until ", "switch ", "case ", "otherwise ",
    "try ", "catch ", "unwind_protect ", "function ", "return ", "break ", "global ", "persistent ", "parfor ", "x", "f(",
    "x{", ".a", ".(", "@(x) ", "@", "[", "]", "{", "}", "(", ")", ",", ";", "\n", "\r\n", " ", "\t", "'", "\"", "\\", ".'",
    "...", "...\n", "%", "#", "%{\n", "%}\n", "=", "==", "~", "!", "+", "-", "++", "--", "+=", "*", "^", ".^", "&&", "||",
    ":", "1", "0x1", "1e", "3i", ".", "\0", "\u{e9}", "\u{feff}", "end", "[a, b] = ", "hold on", "'it''s'", "\"\\x41\"",
];

/// The generator of random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

/// The snippets of the corpus.
fn corpus() -> Vec<Vec<u8>> {
    let mut snippets = vec![Vec::new()];
    for line in include_str!("script/grammar.txt").lines() {
        match line.strip_prefix("> ") {
            Some(code) => {
                let snippet = snippets.last_mut().expect("there is one from the beginning");
                snippet.extend(code.bytes().chain([b'\n']));
            }
            None if snippets.last().is_some_and(|snippet| !snippet.is_empty()) => snippets.push(Vec::new()),
            None => {}
        }
    }
    snippets
}

/// Changes a text in one place.
fn mutate(text: &mut Vec<u8>, random: &mut Random, corpus: &[Vec<u8>]) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(12)).min(text.len());
    match random.below(9) {
        0 => drop(text.drain(at..end)),
        1 => text.truncate(at),
        2 => drop(text.splice(at..at, random.pick(WORDS).bytes())),
        3 => drop(text.splice(at..end, random.pick(WORDS).bytes())),
        4 => drop(text.splice(at..at, random.pick(corpus).iter().copied())),
        5 => text.extend(random.pick(corpus)),
        6 => {
            let piece = text[at..end].repeat(1 + random.below(40));
            text.splice(at..at, piece);
        }
        7 => {
            let byte = random.next() as u8;
            text.insert(at, byte);
        }
        _ => {
            let to = random.below(text.len() + 1);
            let piece = text[at..end].to_vec();
            text.splice(to..to, piece);
        }
    }
    text.truncate(TEXT_BYTES_MAX);
}

/// Whether the target stands the text: no panic, and soon enough.
fn stands(target: fn(&str), text: &str) -> bool {
    let begin = Instant::now();
    catch_unwind(AssertUnwindSafe(|| target(text))).is_ok() && begin.elapsed() < TEXT_TIME_MAX
}

/// The text without all that it fails without, a piece at a time.
fn shrink(target: fn(&str), text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    let mut piece = text.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < text.len() {
            let mut shorter = text.clone();
            shorter.drain(at..(at + piece).min(text.len()));
            if stands(target, &shorter.iter().collect::<String>()) {
                at += piece;
            } else {
                text = shorter;
            }
        }
        piece /= 2;
    }
    text.into_iter().collect()
}

fn number_from(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Gives a target mutated texts until its time is over.
fn fuzz(name: &str, target: fn(&str)) {
    let seed = number_from("TIDEMILL_FUZZ_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number_from("TIDEMILL_FUZZ_SECONDS", 2));
    let mut random = Random(seed);
    let corpus = corpus();
    let mut texts = 0u64;
    while Instant::now() < end {
        let mut text = random.pick(&corpus).clone();
        for _ in 0..=random.below(6) {
            mutate(&mut text, &mut random, &corpus);
            let text = String::from_utf8_lossy(&text);
            texts += 1;
            if !stands(target, &text) {
                panic!("{name} fails on {:?}, text {texts} of seed {seed}", shrink(target, &text));
            }
        }
    }
    println!("{name}: {texts} texts");
}

/// Parsing: a tree or an error whose place lies in the text.
fn parses(text: &str) {
    let _ = syntax::is_incomplete(text);
    match syntax::parse(&Source::new("fuzz", text)) {
        Ok(file) => drop(syntax::dump::file(&file)),
        Err(error) => {
            let span = error.place.expect("every syntax error has a place").span;
            assert!(text.get(span.range()).is_some(), "{span:?} lies outside of the text");
        }
    }
}

#[test]
fn any_text_is_parsed_or_refused() {
    fuzz("the parser", parses);
}
