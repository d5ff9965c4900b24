//! The REPL.

use super::{Told, ended, fed, interrupt, signal, tidemill};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

#[test]
fn a_line_that_is_left_behind_in_the_repl_ends_its_objects() {
    let (child, mut stdin, mut out) = repl();
    let stuck = "printf ('running\\n'); fflush (stdout); conv (ones (1, 4e6), ones (1, 4e6));";
    let text = format!(
        "c = onCleanup (@() disp ('c ends')); d = {{onCleanup(@() disp ('d ends'))}}; k = 7;\n\
         function use (x), disp ('i is used'), end\n\
         i = onCleanup (@() disp ('i ends')); h = onCleanup (@() use (i)); clear i\n\
         function f (), a = onCleanup (@() disp ('a ends')); g (); end\n\
         function g (), b = onCleanup (@() disp ('b ends')); {stuck} end\n"
    );
    stdin.write_all(text.as_bytes()).unwrap();
    for _ in 0..2 {
        // One interrupt is enough, even with `onCleanup` objects.
        stdin.write_all(b"f ()\nprintf ('alive %d\\n', k)\n").unwrap();
        out.wait("running\n");
        interrupt(&child);
        out.wait("b ends\na ends\nalive 7\n");
    }
    // The session's objects live on, and end once, though the step that was left behind holds them, too.
    stdin.write_all(b"clear c\nprintf ('alive %d\\n', k)\n").unwrap();
    out.wait("c ends\nalive 7\n");
    // An object that only another object's function holds ends after that.
    stdin.write_all(b"clear h\nprintf ('alive %d\\n', k)\n").unwrap();
    out.wait("i is used\ni ends\nalive 7\n");
    drop(stdin);
    let (code, _, err) = ended(child);
    assert_eq!((code, err.as_str()), (0, "interrupted\ninterrupted\n"));
    assert_eq!(out.rest(), "d ends\n");
}

#[test]
fn the_repl_outlives_interrupted_cleanup() {
    let (child, mut stdin, mut out) = repl();
    let loops = "printf ('running\\n'); fflush (stdout); while true, end";
    for (cleanup, interrupts) in [("k = 1;", 1), ("k = 2; printf ('running\\n'); fflush (stdout); pause (1000);", 2)] {
        let text = format!("unwind_protect, {loops}\nunwind_protect_cleanup, {cleanup}\nend_unwind_protect\n");
        stdin.write_all(text.as_bytes()).unwrap();
        for _ in 0..interrupts {
            out.wait("running");
            interrupt(&child);
        }
        stdin.write_all(b"printf ('alive %d\\n', k)\n").unwrap();
        out.wait(&format!("alive {interrupts}"));
    }
    drop(stdin);
    let (code, _, err) = ended(child);
    assert_eq!((code, err.matches("interrupted").count()), (0, 2), "{err}");
}

#[test]
fn the_repl_keeps_variables_over_errors_and_reads_statements_of_several_lines() {
    let text = "x = 2;\nfor k = 1:2\n  x = x * k;\nend\nx\nno_such_name\ny = x + 1\n1 +* 2\nhelp numel\n\
                function r = twice (v)\n  % Doubles.\n  r = 2 * v;\nend\ntwice (y)\nhelp twice\nz = [1, 2\n3, 4]\nexit (6)\nx\n";
    let (code, out, err) = fed(&["repl"], text);
    assert_eq!(code, 6, "{err}");
    for words in ["x = 4\n", "y = 5\n", "numel (", "ans = 10\n", "Doubles.", "z =\n\n   1   2\n   3   4\n"] {
        assert!(out.contains(words), "{words:?} is missing in {out}");
    }
    assert_eq!(out.matches("x = 4").count(), 1, "it went on after exit: {out}");
    assert!(err.contains("'no_such_name' undefined") && err.contains("parse error"), "{err}");
    assert_eq!(fed(&["repl"], "x = 1;\n").0, 0);
    for (text, missing) in [("x = [1, 2", "the text ends"), ("x = 3\nif x", "'end'")] {
        let (code, out, err) = fed(&["repl"], text);
        assert_eq!((code, out.contains("x = 3")), (1, text.contains("x = 3")), "{text}: {err}");
        assert!(err.contains("parse error") && err.contains(missing), "{text}: {err}");
    }
}

/// Tests lines that arrive in one piece, as from a paste into a terminal, or from a program.
#[cfg(target_os = "linux")]
#[test]
fn the_repl_on_a_terminal_runs_all_lines_that_arrive_at_once() {
    let command = format!("{} repl --device host", env!("CARGO_BIN_EXE_tidemill"));
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).env("HOME", home.path());
    let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x = 5;\rfor k = 1:2\rx += k;\rend\rprintf ('<%d>', x)\rexit (3)\r").unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("<8>"), "{out}");
    assert_eq!(output.status.code(), Some(3), "{out}");
}

/// Starts `tidemill repl`. The test writes lines to the returned `ChildStdin` and reads the answers from `Told`.
fn repl() -> (Child, ChildStdin, Told) {
    let mut child = tidemill(&["repl"]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let out = Told::by(child.stdout.take().unwrap());
    (child, stdin, out)
}

#[test]
fn a_signal_to_end_ends_the_repl() {
    for text in ["disp ('ready')\n", "printf ('ready\\n'); fflush (stdout); while true, end\n"] {
        let (child, mut stdin, mut out) = repl();
        stdin.write_all(text.as_bytes()).unwrap();
        out.wait("ready");
        signal(&child, "TERM");
        assert_eq!(ended(child).0, 130, "{text}");
        drop(stdin);
    }
}

#[test]
fn an_interrupt_ends_what_runs_in_the_repl_and_leaves_it_alive() {
    let (child, mut stdin, mut out) = repl();
    stdin.write_all(b"k = 5;\ndisp ('ready')\n").unwrap();
    out.wait("ready");
    for turn in 0..3 {
        stdin.write_all(b"printf ('running\\n'); fflush (stdout); while true, k = k + 1; end\n").unwrap();
        out.wait("running");
        interrupt(&child);
        stdin.write_all(format!("k = {turn}; printf ('alive %d\\n', k)\n").as_bytes()).unwrap();
        out.wait(&format!("alive {turn}"));
    }
    // This includes a step that computes for hours: the variables are as they were when it began, and the session goes
    // on.
    stdin.write_all(b"v = [1 2 3]; global g, g = 7; k = 20;\nfunction r = twice (x), r = 2 * x; end\n").unwrap();
    for turn in 0..2 {
        let step =
            "k = k + 1; printf ('running\\n'); fflush (stdout); v = conv (ones (1, 4e6), ones (1, 4e6)); k = 0;\n";
        stdin.write_all(step.as_bytes()).unwrap();
        out.wait("running");
        interrupt(&child);
        stdin.write_all(b"v(2) = k; printf ('alive %d %d %d\\n', v(2), numel (v), twice (g))\n").unwrap();
        out.wait(&format!("alive {} 3 14", 21 + turn));
    }
    drop(stdin);
    let (code, _, err) = ended(child);
    assert_eq!((code, err.matches("interrupted").count()), (0, 5), "{err}");
}

#[test]
fn on_a_terminal_the_repl_edits_lines_and_keeps_their_history() {
    let home = tempfile::tempdir().unwrap();
    let mut probe = Command::new("script");
    probe.args(["-qec", "exit 7", "/dev/null"]).env("SHELL", "/bin/sh").stdin(Stdio::null());
    if probe.stdout(Stdio::null()).stderr(Stdio::null()).status().ok().and_then(|s| s.code()) != Some(7) {
        eprintln!("skipped: no `script` here, or it is given no terminal");
        return;
    }
    // `script` of util-linux gives a process a terminal. `exec` is needed, since a shell that waits would end with 130
    // for the interrupt that the REPL outlives.
    let repl = format!("exec {} repl", env!("CARGO_BIN_EXE_tidemill"));
    let mut command = Command::new("script");
    command.args(["-qec", &repl, "/dev/null"]).env("HOME", home.path()).env("TIDEMILL_DEVICE", "host");
    command
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut out = Told::by(child.stdout.take().unwrap());
    // A typing error is corrected with the backspace key. Then Ctrl-C is sent on a line, and during a loop.
    out.wait(">> ");
    stdin.write_all(b"x = 19\x7f + 1\r").unwrap();
    out.wait("x = 2");
    out.wait(">> ");
    stdin.write_all(b"never run\x03").unwrap();
    out.wait("run");
    out.wait("\r\n");
    out.wait(">> ");
    stdin.write_all(b"printf ('loo%s\\n', 'ping'); fflush (stdout); while true, x = x + 1; end\r").unwrap();
    out.wait("looping");
    stdin.write_all(b"\x03").unwrap();
    out.wait("interrupted");
    out.wait(">> ");
    stdin.write_all(b"y = 40 + 2\r").unwrap();
    out.wait("y = 42");
    out.wait(">> ");
    stdin.write_all(b"\x04").unwrap();
    assert_eq!(ended(child).0, 0);
    let history = std::fs::read_to_string(home.path().join(".tidemill_history")).unwrap();
    assert!(history.contains("x = 1 + 1\n"), "{history}");
    assert!(history.contains("y = 40 + 2") && !history.contains("never run"), "{history}");
}

#[test]
fn help_knows_the_functions_of_a_session() {
    let text = "function r = plain (x), r = x; end\nfunction r = told (x)\n  % TOLD says it.\n  r = x;\nend\n\
                help plain\nhelp told\nhelp nosuch\nhelp sin";
    let (code, out, _) = fed(&["repl"], text);
    assert_eq!(code, 0);
    for words in ["'plain' is a function", "TOLD says it.", "help: 'nosuch' not found", "sin (x)"] {
        assert!(out.contains(words), "{words} is missing in {out}");
    }
}
