//! Errors, exit codes, and what is refused.

use super::{Scripts, fed, run, tidemill};

#[test]
fn names_that_are_close_have_a_value_or_are_functions() {
    let told = |text: &str| fed(&["run", "-"], text).2;
    // The value of `total1` has ended at its last use.
    assert!(told("total1 = 3; disp (total1); total2").contains("names that are close: total1"));
    assert!(told("x = numell (2)").contains("names that are close: numel"));
    assert!(!told("qwertz1 (1), qwertz2 (2)").contains("names that are close"));
}

#[test]
fn exit_codes_are_the_scripts_own_or_say_what_went_wrong() {
    for (text, code) in [
        ("exit (3)", 3),
        ("exit", 0),
        ("quit (7); disp (1)", 7),
        ("exit (256 + 9)", 9),
        ("exit (-1)", 255),
        ("function f (), exit (5); end\nunwind_protect, f (), unwind_protect_cleanup, disp (1), end_unwind_protect", 5),
        ("cellfun (@(x) exit (x), {6})", 6),
        ("try, eval ('exit (8)', '1'); catch, disp (1), end", 8),
        ("x = 1;", 0),
        ("error ('no')", 1),
    ] {
        assert_eq!(fed(&["run", "-"], text).0, code, "{text}");
    }
    for usage in [
        &["run", "a.m", "--device", "xx"][..],
        &["eval", "1", "--device", "gpu:x"],
        &["run"],
        &["run", "a.m", "--copies", "0"],
        &["run", "--no-such"],
        &["eval"],
    ] {
        assert_eq!(run(usage).0, 2, "{usage:?}");
    }
    // One of several scripts fails, and the others run to their ends.
    let scripts = Scripts::new(&[("good.m", "disp ('good')"), ("bad.m", "error ('bad')"), ("wrong.m", "x = (1")]);
    let all = ["run", &scripts.path("bad.m"), &scripts.path("good.m"), &scripts.path("wrong.m"), "/no/such.m"];
    let (code, out, err) = run(&all);
    assert_eq!((code, out.as_str()), (1, "good\n"));
    for words in ["error: bad", "wrong.m", "/no/such.m"] {
        assert!(err.contains(words), "{words} is missing in {err}");
    }
}

#[test]
fn what_cannot_be_read_as_a_script_is_refused_with_a_message() {
    let scripts = Scripts::new(&[]);
    let garbage: Vec<u8> = (0..20_000u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(scripts.0.path().join("garbage.m"), garbage).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_tidemill"), scripts.0.path().join("binary.m")).unwrap();
    std::fs::write(scripts.0.path().join("zeros.m"), vec![0; 5000]).unwrap();
    let folder = scripts.0.path().to_str().unwrap().to_string();
    for (file, words) in [
        ("/no/such/file.m", "/no/such/file.m"),
        (&folder, "is a folder"),
        (&scripts.path("garbage.m"), "parse error"),
        (&scripts.path("binary.m"), "parse error"),
        (&scripts.path("zeros.m"), "parse error"),
        ("/dev/zero", "is longer than"),
    ] {
        let (code, out, err) = run(&["run", file]);
        assert_eq!((code, out.as_str()), (1, ""), "{file}");
        let short: String = err.chars().take(500).collect();
        assert!(err.starts_with("error: ") && err.contains(words) && !err.contains("panicked"), "{file}: {short}");
        assert!(err.len() < 10_000, "{file}: {} bytes of message", err.len());
    }
}

#[test]
fn a_cell_that_stands_in_very_many_places_is_compared_and_counted_once_and_shown_up_to_a_bound() {
    let grow = "c = {1}; for k = 1:60, c = {c, c}; end;";
    let (code, out, err) = run(&["eval", &format!("{grow} d = c; isequal (c, d), sizeof (c), iscellstr (c)")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "ans = 1\nans = 9.2234e+18\nans = 0\n", ""));
    for shown in ["c", "disp (c)", "s = evalc ('c');"] {
        let (code, out, err) = run(&["eval", &format!("{grow} {shown}")]);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains("take more than 268435456 characters to show"), "{err}");
    }
}

#[test]
fn of_a_line_that_nobody_reads_a_part_is_shown() {
    let text = format!("{}y = undefd + {}", "x = 1;".repeat(100_000), "1 + ".repeat(200));
    let deep = format!("x = {}", "(".repeat(100_000));
    let scripts = Scripts::new(&[("long.m", &format!("disp (3)\n{text} 1")), ("deep.m", &deep)]);
    let (code, out, err) = run(&["run", &scripts.path("long.m")]);
    assert_eq!((code, out.as_str()), (1, "3\n"));
    assert!(err.contains("'undefd' undefined") && err.contains("long.m:2:600005"), "{err}");
    assert!(err.len() < 1500 && err.contains("x = 1;y = undefd + 1 + 1"), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    let column = |line: &str, of: &str| line.find(of).map(|at| line[..at].chars().count());
    assert_eq!(column(lines[2], "undefd"), column(lines[3], "╰"), "{err}");
    let (code, _, err) = run(&["run", &scripts.path("deep.m")]);
    assert!(code == 1 && err.contains("nested deeper") && err.len() < 1500, "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_is_full_changes_no_exit_code() {
    let scripts = Scripts::new(&[("good.m", "disp (1)"), ("bad.m", "error ('no')")]);
    let code = |arguments: &[&str]| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        tidemill(arguments).stderr(full).output().unwrap().status.code()
    };
    assert_eq!(code(&["run", "/no/such/file.m"]), Some(1));
    assert_eq!(code(&["run", &scripts.path("bad.m"), "--stats"]), Some(1));
    assert_eq!(code(&["run", &scripts.path("good.m"), "--stats"]), Some(0));
}

#[test]
fn an_error_shows_its_line_with_a_caret_and_the_calls_that_were_open() {
    let text = "function f (x)\n  g (x);\nend\nfunction g (x)\n  x(5)\nend\ndisp ('begin')\nf ([1 2 3])\n";
    let scripts = Scripts::new(&[("calls.m", text)]);
    let (code, out, err) = run(&["run", &scripts.path("calls.m")]);
    assert_eq!((code, out.as_str()), (1, "begin\n"));
    assert!(err.starts_with("error: x(5): out of bound 3 (dimensions are 1x3)\n"), "{err}");
    for words in [
        "calls.m:5:3",
        " 5 │  x(5)",
        "──",
        "g at line 5 column 3",
        "f at line 2 column 3",
        "the script at line 8 column 1",
    ] {
        assert!(err.contains(words), "{words} is missing in {err}");
    }
    // The error's line in an evaluated text is told beside the script's line. In the script itself, the place tells it.
    let (_, _, err) = fed(&["run", "-"], "x = 1;\neval (\"y = 2;\\nz = nosuch;\");");
    assert!(err.contains("eval:2:5") && err.contains("the script at line 2 column 1 of -"), "{err}");
    assert!(!fed(&["run", "-"], "x = nosuch;").2.contains("called from"));
    let (code, out, err) = fed(&["run", "-"], "disp (1)\ny = [1, 2\nx = )");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("error: parse error") && err.contains("│") && !err.contains('\u{1b}'), "{err}");
}

#[test]
fn what_no_machine_can_do_is_an_error_and_no_crash() {
    for (text, words) in [
        ("x = zeros (1e6, 1e6);", "out of memory or dimension too large"),
        ("x = ones (1e5, 1e5, 1e5);", "out of memory or dimension too large"),
        ("x = 1; x(1e12) = 1;", "out of memory or dimension too large"),
        ("x = repmat ('a', 1e7, 1e7);", "out of memory or dimension too large"),
        ("assert (1, 2, []); assert ([1 2], [1 2], [])", "nonconformant arguments (op1 is 1x2, op2 is 0x0)"),
        ("x = nchoosek (1:3, 5); nchoosek (1:3, 1e300)", "out of memory or dimension too large"),
        ("nchoosek (1e15, 5e14); fft (1, 2 ^ 53)", "out of memory or dimension too large"),
        ("fft2 (1, 2 ^ 53, 1)", "out of memory or dimension too large"),
        ("x = bitshift (-Inf, 2) + diff (1, 1e10, 2); ellipke (1e300)", "M must be <= 1"),
        ("x = polygcd ([NaN Inf], [NaN Inf]); strread ('abc', 'x')", "no valid format conversion specifiers"),
        ("prepad (@sin, 2)", "wrong type argument 'function_handle'"),
        ("s = rank (zeros (0, 6e7)); [u, d, v] = svd (zeros (0, 6e7))", "out of memory or dimension too large"),
        ("chol (zeros (0, 6e7))", "chol: requires square matrix"),
        ("[q, r] = qr (zeros (6e7, 0))", "out of memory or dimension too large"),
        ("[l, u, p] = lu (zeros (6e7, 0));", "out of memory or dimension too large"),
        ("x = linsolve (zeros (0, 6e7), zeros (0, 6e7));", "out of memory or dimension too large"),
        ("x = roots (ones (1, 1e6));", "out of memory or dimension too large"),
        ("strjoin (repmat ({'a'}, 1, 2e6), blanks (2e6));", "out of memory or dimension too large"),
        ("strrep (blanks (2e6), ' ', blanks (2e6));", "out of memory or dimension too large"),
        ("x = postpad (1, 4e9);", "out of memory or dimension too large"),
        ("c = {}; for k = 1:60, c = {c, c}; end, save ('/dev/null', 'c')", "does not fit into a MAT file"),
        ("c = {}; for k = 1:60, c = {c, c}; end, d = {c, c}; assert (c, d{1})", "inside of cells and structs"),
        ("err = MException ('a:b', 'c'); save ('/dev/null', 'err')", "MException objects are not saved yet"),
        ("x = zeros (0, 1e9);", "out of memory or dimension too large"),
        ("x = cell (3, 0, 1e9);", "out of memory or dimension too large"),
        ("x = repmat (struct (), 0, 6e7); y = resize (x, 6e7, 6e7);", "out of memory or dimension too large"),
        ("c = cell (1e6, 1e6);", "out of memory or dimension too large"),
        ("function f (), f (); end\nf ()", "max_recursion_depth exceeded"),
        ("f = @(g, n) g (g, n + 1); f (f, 0)", "max_recursion_depth exceeded"),
        ("s = 'eval (s)'; eval (s)", "max_recursion_depth exceeded"),
        ("function r = f (x), r = cellfun (@f, {x}); end\nf (1)", "max_recursion_depth exceeded"),
        ("x = {}; for k = 1:5000, x = {x}; end, x", "nested deeper than 256 levels"),
        ("s.a = 1; for k = 1:5000, s.a = s; end, t = s; isequal (s, t)", "nested deeper than 256 levels"),
        (&format!("x{} = 1;", ".a".repeat(5000)), "more than 256 steps"),
        (&format!("x{} = 1;", "(1)".repeat(5000)), "more than 256 steps"),
    ] {
        let (code, out, err) = fed(&["run", "-"], text);
        assert_eq!((code, out.as_str()), (1, ""), "{text}: {err}");
        assert!(err.contains(words), "{text}: {err}");
    }
    // Values that are nested deeper than can be shown are dropped all the same.
    let deep = "x = {}; f = @(x) x; for k = 1:30000, x = {x}; s.a = x; x = s; f = @(x) f (x); end, disp (numel (x))";
    assert_eq!(fed(&["run", "-"], deep), (0, "1\n".into(), String::new()));
    // This literal has more rows than 16 bits can count.
    let rows = format!(
        "x = [{}]; c = {{{}}}; disp ([size(x), size(c), x(end)])",
        "1;".repeat(70_000) + "7",
        "1\n".repeat(66_000)
    );
    assert_eq!(fed(&["run", "-"], &rows).1, "   70001       1   66000       1       7\n");
}

#[test]
fn what_no_memory_holds_is_an_error() {
    let bodies = [
        "x = num2cell (zeros (6e4, 6e4));",
        "x = (1:1e6) + (1:1e6)';",
        "x = ones (1e6, 1) * ones (1, 1e6);",
        "x = max ((1:1e6), (1:1e6)');",
        "x = [repmat('a', 1, 1e11); repmat('b', 1, 1e11)];",
        "[c{1:4e9}] = deal (0);",
    ];
    for body in bodies {
        let text = format!("try, {body} catch e, disp (e.identifier), end, {body}");
        let (code, out, err) = run(&["eval", &text]);
        assert_eq!((code, out.as_str()), (1, "Octave:bad-alloc\n"), "{body}: {err}");
        assert!(err.contains("error: out of memory"), "{body}: {err}");
    }
}

#[test]
fn a_stack_without_calls_is_not_shown() {
    for text in ["error ('no')", "eval ('error (\"no\")')", "x = eval ('1 +')"] {
        let err = fed(&["repl"], text).2;
        assert!(err.starts_with("error: ") && !err.contains("called from"), "{text}: {err}");
    }
    assert!(fed(&["repl"], "function f (), error ('no'); end\nf ()").2.contains("f at line 1 column 16"));
}
