//! Tests of the parser: the corpus of the language's forms, places of errors, limits, and random texts.

use super::parser::{HEIGHT_MAX, NESTING_MAX};
use super::*;
use crate::compile;
use expect_test::expect_file;
use proptest::prelude::*;
use std::fmt::Write;

/// Returns the corpus with the parser's reading of each snippet.
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
    let corpus = include_str!("../../tests/script/grammar.txt");
    expect_file!["../../tests/script/grammar.txt"].assert_eq(&read_corpus(corpus));
}

fn error_of(text: &str) -> String {
    match parse(&Source::new("test", text)) {
        Ok(_) => panic!("{:?}… was read", &text[..text.len().min(40)]),
        Err(error) => error.message,
    }
}

/// Returns texts that nest `depth` deep, one for each form that nests.
fn nests(depth: usize) -> Vec<String> {
    let around =
        |open: &str, inner: &str, close: &str| format!("x = {}{inner}{}", open.repeat(depth), close.repeat(depth));
    vec![
        around("(", "1", ")"),
        around("[", "1", "]"),
        around("{", "1", "}"),
        around("f(", "1", ")"),
        around("c{", "1", "}"),
        around("s.(", "1", ")"),
        around("-", "1", ""),
        format!("x = 2^{}1", "-".repeat(depth)),
        around("@() ", "1", ""),
        around("@(x = ", "1", ") x"),
        around("[1, (", "1", ")]"),
        around("a || a && a | a & a < a : a + a * (", "1", ")"),
        format!("{}{}", "if x\n".repeat(depth), "end\n".repeat(depth)),
        format!("{}{}", "while f(1), for k = 1:3, ".repeat(depth), "end, end,".repeat(depth)),
        format!("{}{}", "switch x, case 1, try, do, ".repeat(depth), "until x, end, end,".repeat(depth)),
    ]
}

#[test]
fn nesting_beyond_the_limit_is_an_error_and_no_stack_overflow() {
    for depth in [NESTING_MAX + 1, 100_000] {
        for text in nests(depth) {
            assert!(error_of(&text).contains("nested deeper than 256 levels"), "{}", &text[..20]);
        }
    }
    for form in 0..nests(1).len() {
        // The deepest text that can be read can also be compiled, printed and dropped.
        let read = |depth: usize| parse(&Source::new("test", nests(depth).swap_remove(form)));
        let (depth, file) =
            (1..=NESTING_MAX).rev().find_map(|depth| Some((depth, read(depth).ok()?))).expect("a depth");
        assert!(depth >= NESTING_MAX / 3 - 1, "form {form} nests {depth} deep only");
        let _ = compile::compile(&file, false);
        assert!(!dump::file(&file).is_empty());
    }
    for text in ["(", "[", "{", "f(", "-", "if x,", "@()"].map(|open| open.repeat(100_000)) {
        error_of(&text);
    }
}

#[test]
fn long_chains_have_a_stated_limit_and_long_lists_have_none() {
    for (first, link) in [("x", "'"), ("x", "^2"), ("1", ":1")] {
        let chain = |links: usize| format!("y = {first}{};", link.repeat(links));
        let file = parse(&Source::new("test", chain(HEIGHT_MAX - 2))).expect("a long chain");
        compile::compile(&file, false).expect("its code");
        assert!(error_of(&chain(100_000)).contains("more than 1000 levels of operators in one expression"));
    }
    // Nesting and chaining add up to one height.
    let both = format!("y = {}1{}", "(1+".repeat(200), ")'''''''".repeat(200));
    assert!(error_of(&both).contains("more than 1000 levels of operators"));
    // Chains of operators between operands have no limit, since code that walks the tree walks a chain in a loop.
    for (first, link) in [("1", "+1"), ("a", "||a"), ("a", "&&a||b"), ("a", "|b"), ("1", "*2-x'")] {
        let file = parse(&Source::new("test", format!("if {first}{0}, f = @() {first}{0}; end", link.repeat(50_000))));
        let file = file.expect("a long chain");
        compile::compile(&file, false).expect("its code");
        assert!(!dump::file(&file).is_empty());
    }
    for long in [
        format!("y = [{}];", "1 -2, x';\n".repeat(50_000)),
        format!("y = f({}1);", "1,".repeat(100_000)),
        format!("y = x{};", "(1).y".repeat(50_000)),
        format!("if x, 1, {} end", "elseif y, 2\n".repeat(50_000)),
        format!("switch x, {} end", "case y, 2\n".repeat(50_000)),
        "x = 1; y(2) = x';\n".repeat(50_000),
        "% a comment\n".repeat(100_000),
        "++x; [a, b] = f(1); hold on\n% why\n".repeat(20_000),
    ] {
        parse(&Source::new("test", long)).expect("a long text");
    }
}

#[test]
fn the_time_to_parse_grows_with_the_text_alone() {
    // Each of these would take minutes if a scan began anew at every byte or statement.
    for piece in
        ["[", "%{\n", "... \n", "\\ ", "'", "\"", "x ++ ", "@(", "[a, ", "#", " ", "x{", "1e", "x.", "f a(", "end\n"]
    {
        let _ = parse(&Source::new("test", piece.repeat(400_000 / piece.len())));
    }
}

#[test]
fn a_text_that_waits_for_more_is_told_from_one_that_is_wrong() {
    let incomplete = [
        "if x",
        "if x, y",
        "if x\n  y\nelse",
        "while 1",
        "for k = 1:3",
        "switch x",
        "switch x\ncase 1",
        "do",
        "do\nx",
        "try",
        "try\nx\ncatch err",
        "unwind_protect",
        "unwind_protect\nx\nunwind_protect_cleanup",
        "parfor k = 1:3",
        "function f",
        "function r = f(x)\n  r = x;",
        "function f(",
        "[1 2",
        "[1, 2;",
        "{1",
        "f(1",
        "f(1,",
        "x = (1 +",
        "x = 3 + ...",
        "x = [1 ...",
        "%{",
        "%{\ntext",
        "#{\n%{\n%}",
        "x = {@(y) y",
        "[a, b",
        "hold ...",
        "x = 3 + ...\n",
        "if x\n",
        "c{1",
    ];
    for text in incomplete {
        assert!(is_incomplete(text), "{text:?} waits for more");
    }
    let complete = [
        "",
        "x",
        "x = ",
        "x = 'abc",
        "x = \"abc",
        "if x, end",
        "x = )",
        "[1 2}",
        "end",
        "f(1 2",
        "x +",
        "1 +",
        "@",
        "@(x)",
        "function f, end",
        "function f\nx\nend",
        "%{\n%}",
        "x = 3; % {",
        "for",
        "global",
        "else",
        "hold on",
        "x.",
        "f a(1",
    ];
    for text in complete {
        assert!(!is_incomplete(text), "{text:?} is complete, or wrong");
    }
}

#[test]
fn names_that_are_variables_outside_of_the_text_begin_no_commands() {
    let source = Source::new("eval", "x -1");
    let read = |known: &str| dump::file(&parse_with(&source, &|name| name == known).expect("a statement"));
    assert_eq!(read("x"), "(- x 1)\n");
    assert_eq!(read("y"), "(command x \"-1\")\n");
}

#[test]
fn a_file_ends_all_its_functions_or_none() {
    let message = |text: &str| match parse(&Source::new("test", text)) {
        Ok(_) => String::new(),
        Err(error) => format!("{}: {}", error.place.expect("a place").span.start, error.message),
    };
    let inconsistent = |at: usize| {
        format!(
            "{at}: parse error: inconsistent function endings -- if one function is explicitly ended, so must all the others"
        )
    };
    // If an `end` is forgotten, the function's `end` closes the block, and the function has none.
    assert_eq!(message("1;\nfunction f\nx\nend\nfunction g\nif y\nx\nend\ng"), inconsistent(20));
    assert_eq!(message("1;\nfunction f\nif y\nx\nend\nfunction g\nx\nend\n"), inconsistent(3));
    assert_eq!(message("function f\nx\nend\nfunction g\ny"), inconsistent(17));
    assert_eq!(message("function f\nx\nfunction g\ny\nend"), inconsistent(0));
    // In a script, the second function would be nested in the first.
    assert_eq!(message("x\nfunction f\nx\nfunction g\ny"), inconsistent(15));
    let in_block = "a function cannot begin inside of a block of another function";
    assert_eq!(message("function f\nif x\nfunction g\nend\nend\nend"), format!("16: parse error: {in_block}"));
    for text in ["function f\nx\nfunction g\ny", "x\nfunction f\nx", "x\nfunction f\nx\nend\nfunction g\nx\nend"] {
        assert_eq!(message(text), "");
    }
    assert!(is_incomplete("function f\nx\nend\nfunction g\n"));
}

#[test]
fn a_function_file_holds_nothing_but_functions() {
    let is_function_file = |text: &str| parse(&Source::new("test", text)).expect("a file").is_function_file;
    assert!(is_function_file("function f\nx\nfunction g\ny"));
    assert!(is_function_file("% Help.\n\nfunction f\nx\nend\n% Done.\n"));
    assert!(!is_function_file("1;\nfunction f\nx\nend"));
    assert!(!is_function_file("function f\nx\nend\nf"));
    assert!(!is_function_file("x"));
    assert!(!is_function_file(""));
}

#[test]
fn errors_say_where_they_are_and_what_helps() {
    let error = parse(&Source::new("a.m", "x = 1;\nif x = 2\nend")).expect_err("an assignment as a condition");
    assert_eq!(error.to_string(), "a.m:2:6: parse error: expected an expression, but found '='");
    assert_eq!(error.help.as_deref(), Some("an assignment is a statement of its own; '==' compares"));
}

/// Returns the printed text of the anonymous function in `text`.
fn function_text(text: &str) -> String {
    let file = parse(&Source::new("test", text)).expect("an anonymous function");
    match &file.body[0].kind {
        ast::StmtKind::Expr(ast::Expr { kind: ast::ExprKind::Anonymous(definition), .. }) => definition.text.clone(),
        other => panic!("{other:?} is no anonymous function"),
    }
}

#[test]
fn anonymous_functions_are_shown_as_octave_shows_them() {
    let texts = include_str!("../../tests/script/anonymous.txt");
    let mut shown = String::new();
    for line in texts.lines().filter_map(|line| line.strip_prefix("> ")) {
        let _ = write!(shown, "> {line}\n= {}\n\n", function_text(line).escape_debug());
    }
    expect_file!["../../tests/script/anonymous.txt"].assert_eq(&shown);
}

/// Makes an expression of random form. Its strings contain no quotes and no cell is empty, since the printed form of
/// those does not parse again, in Octave either.
fn any_expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x".to_string()),
        Just("yy".to_string()),
        "[0-9]{1,3}(\\.[0-9]{1,2})?(e[0-9])?i?",
        "'[a-z %#]{0,5}'",
        "\"[a-z %#]{0,5}\"",
        Just("@sin".to_string()),
        Just("[]".to_string()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let ops = prop::sample::select(vec![
            "+", "-", ".*", "./", ".\\", ".^", "*", "/", "\\", "^", "==", "~=", "!=", "<", "<=", ">", ">=", "&", "|",
            "&&", "||", ":",
        ]);
        let blank = prop::sample::select(vec!["", " ", "\t", " ...\n"]);
        let separators = prop::sample::select(vec![", ", " ", ";", "\n", " ,"]);
        let (a, b) = (inner.clone(), inner.clone());
        prop_oneof![
            (inner.clone(), ops, inner.clone(), blank)
                .prop_map(|(a, op, b, blank)| format!("{a}{blank}{op}{blank}{b}")),
            (prop::sample::select(vec!["-", "+", "!", "~", "- "]), inner.clone())
                .prop_map(|(op, a)| format!("{op}{a}")),
            (inner.clone(), prop::sample::select(vec!["'", ".'"])).prop_map(|(a, op)| format!("({a}){op}")),
            prop::sample::select(vec!["x'", "yy.'", "x(1)'", "x.^2'", "c{1}.a''", "[1 -2]'"]).prop_map(str::to_string),
            inner.clone().prop_map(|a| format!("({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("f({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("c{{{a}}}(end, {b}, :)")),
            inner.clone().prop_map(|a| format!("s.a.({a}).b")),
            (inner.clone(), separators.clone(), inner.clone()).prop_map(|(a, by, b)| format!("[{a}{by}{b}]")),
            (a, separators, b).prop_map(|(a, by, b)| format!("{{{a}{by}{b}}}")),
            inner.clone().prop_map(|a| format!("@(x, ~) {a}")),
        ]
    })
}

/// Makes random sequences of pieces of the language.
fn any_pieces() -> impl Strategy<Value = String> {
    let pieces = "if |else|elseif |end|endif|while |for |do|until |switch |case |otherwise|try|catch |function |return|break|\
        global |x|y1|f|(|)|[|]|{|}|,|;|\n|'|\"|\\|.|..|...|:|=|==|~|!|@|@(|+|-|++|--|*|^|.^|.'|&|&&|||0x|1|2.|1e|3i|0b1|%|#|\
        %{\n|%}\n| |\t|\r\n|\u{e9}|\0";
    prop::collection::vec(prop::sample::select(pieces.split('|').collect::<Vec<_>>()), 0..60).prop_map(|p| p.concat())
}

/// Checks that no function on texts panics for this text, and that all spans lie within it.
fn survives(text: &str) {
    let source = Source::new("test", text);
    let _ = is_incomplete(text);
    match parse(&source) {
        Ok(file) => {
            dump::file(&file);
            assert!(file.body.iter().all(|stmt| text.get(stmt.span.range()).is_some()), "spans of {text:?}");
        }
        Err(error) => {
            let span = error.place.expect("every error has a place").span;
            assert!(text.get(span.range()).is_some(), "{span:?} of {text:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_tree_or_an_error_with_a_place(text in any::<String>()) {
        survives(&text);
    }

    #[test]
    fn any_order_of_the_languages_pieces_gives_a_tree_or_an_error(text in any_pieces()) {
        survives(&text);
    }

    #[test]
    fn what_is_shown_of_a_function_reads_as_the_same_function(body in any_expression()) {
        let text = format!("@(x) {body}");
        // Blanks may separate what was generated as one expression. Texts that do not parse are skipped.
        prop_assume!(parse(&Source::new("test", text.as_str())).is_ok_and(|file| file.body.len() == 1));
        let shown = function_text(&text);
        let tree = |text: &str| dump::file(&parse(&Source::new("test", text)).expect("a function"));
        prop_assert_eq!(tree(&shown), tree(&text), "{} is shown as {}", text, shown);
        prop_assert_eq!(function_text(&shown), shown);
    }
}

#[test]
fn a_function_before_the_end_of_another_is_nested_in_it() {
    let dumped = |text: &str| match parse(&Source::new("test", text)) {
        Ok(file) => dump::file(&file),
        Err(error) => error.message,
    };
    let text =
        "function f\nx = 1;\nfunction g\nx = 2;\nfunction h\nend\nend\ng\nfunction k\nend\nend\nfunction l\nend\n";
    let tree = "(function [] f ()\n  (= x 1);\n  g\n  (function [] g ()\n    (= x 2);\n    (function [] h ()))\n  (function [] k ()))\n(function [] l ())\n";
    assert_eq!(dumped(text), tree);
    // A name that the function around it has assigned begins no command in a nested function.
    let text = "function f\nx = 1;\nfunction g\nx -1\nend\nend\n";
    assert_eq!(dumped(text), "(function [] f ()\n  (= x 1);\n  (function [] g ()\n    (- x 1)))\n");
    assert!(is_incomplete("function f\nx = 1;\nfunction g\nend\n"));
    assert!(is_incomplete("function f\nfunction g\nx = 1;\n"));
    assert!(!is_incomplete("function f\nfunction g\nend\nend\n"));
}
