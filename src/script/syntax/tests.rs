//! Tests of the parser: the corpus of the language's forms, places of errors, limits, and random texts.

use super::*;
use expect_test::{expect, expect_file};
use proptest::prelude::*;
use std::fmt::Write;

/// The corpus with the parser's reading of each snippet.
fn read_corpus(corpus: &str) -> String {
    let mut out = String::new();
    let mut snippet = String::new();
    for line in corpus.lines().chain([""]) {
        if let Some(text) = line.strip_prefix('>') {
            snippet.push_str(text.strip_prefix(' ').unwrap_or(text));
            snippet.push('\n');
            let _ = writeln!(out, "{line}");
        } else if !line.starts_with(['=', '!']) {
            let text = std::mem::take(&mut snippet);
            if !text.is_empty() {
                read_snippet(&mut out, text.trim_end_matches('\n'));
            }
            if !line.is_empty() || !out.ends_with("\n\n") {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    format!("{}\n", out.trim_end())
}

fn read_snippet(out: &mut String, text: &str) {
    match parse(&Source::new("test", text)) {
        Ok(file) => dump::file(&file).lines().for_each(|line| {
            let _ = writeln!(out, "= {line}");
        }),
        Err(error) => {
            let place = error.place.expect("every syntax error has a place");
            let at = place.source.position(place.span.start);
            let _ = writeln!(out, "! {}:{}: {}", at.line, at.column, error.message);
        }
    }
}

#[test]
fn the_corpus_is_read_as_written_there() {
    let corpus = include_str!("../../../tests/script/grammar.txt");
    expect_file!["../../../tests/script/grammar.txt"].assert_eq(&read_corpus(corpus));
}
