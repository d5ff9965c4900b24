//! Interrupts, readers that go away, and the cleanup of what ends.

use super::{PATIENCE, Scripts, Told, ended, fed, interrupt, is_timeline, run, sorted, tidemill};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn an_interrupt_ends_also_what_computes_for_hours_in_one_step() {
    let text = "disp ('begin'), fflush (stdout); y = sum (rand (200)(:)); disp (y > 0)\n\
                x = conv (ones (1, 4000000), ones (1, 4000000));";
    let scripts = Scripts::new(&[("long.m", text)]);
    for copies in ["1", "2"] {
        let trace = scripts.path(&format!("{copies}.json"));
        let arguments = ["run", &scripts.path("long.m"), "--copies", copies, "--trace", &trace];
        let mut child = tidemill(&arguments).spawn().unwrap();
        let mut first = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        // The recorded arrays are computed, and then the long step begins.
        std::thread::sleep(Duration::from_secs(1));
        interrupt(&child);
        let (code, out, err) = ended(child);
        assert_eq!((code, err.as_str()), (130, "interrupted\n"));
        // Earlier output is not lost.
        assert!(copies == "2" || out == "1\n", "{out}");
        is_timeline(Path::new(&trace));
    }
}

#[test]
fn a_reader_that_goes_away_ends_an_endless_script() {
    let scripts = Scripts::new(&[("loud.m", "while true, disp ('still here'), end")]);
    let mut child = tidemill(&["run", &scripts.path("loud.m")]).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let (code, _, err) = ended(child);
    assert_eq!((code, err.as_str()), (1, "error: the standard output was closed\n"));
    // Closing only the standard error ends nothing.
    let text = "for k = 1:5000, warning ('still here'), end, disp ('result')";
    let mut child = tidemill(&["eval", text]).spawn().unwrap();
    child.stderr.take().unwrap().read_exact(&mut first).unwrap();
    let (code, out, _) = ended(child);
    assert_eq!((code, out.as_str()), (0, "result\n"));
}

/// Interrupts a process that is blocked in a write: the test does not read the process's output, so that the pipe is full.
#[test]
fn an_interrupt_ends_also_what_waits_for_a_reader() {
    for text in ["while true, disp (1), end", "while true, warning ('a'), end"] {
        let child = tidemill(&["eval", text]).spawn().unwrap();
        // By then the pipe is full.
        std::thread::sleep(Duration::from_secs(1));
        interrupt(&child);
        // The output that it waits with is read only once it has ended.
        let mut child = child;
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < PATIENCE, "{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    }
}

#[test]
fn an_interrupted_script_exits_with_130_and_leaves_a_timeline_that_opens() {
    let text =
        "disp ('begin')\nx = rand (100);\nwhile true, x = x * 0.5 + 0.25; s = sum (x(:)); if s < 0, break, end, end";
    let scripts = Scripts::new(&[("endless.m", text)]);
    let trace = PathBuf::from(scripts.path("t.json"));
    let mut child = tidemill(&["run", &scripts.path("endless.m"), "--trace", trace.to_str().unwrap()]).spawn().unwrap();
    while std::fs::metadata(&trace).map_or(0, |m| m.len()) < 1000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    let (code, _, err) = ended(child);
    assert_eq!((code, err.as_str()), (130, "interrupted\n"));
    is_timeline(&trace);
}

#[test]
fn an_interrupt_runs_the_cleanup_of_what_it_ends() {
    for (copies, body) in GUARDED {
        let scripts = Scripts::new(&[("guarded.m", &guarded(body))]);
        let trace = scripts.path("trace.json");
        let arguments = ["run", &scripts.path("guarded.m"), "--copies", copies, "--trace", &trace];
        let mut child = tidemill(&arguments).spawn().unwrap();
        let mut out = Told::by(child.stdout.take().unwrap());
        for _ in 0..copies.parse().unwrap() {
            out.wait("begin\n");
        }
        interrupt(&child);
        let (code, _, err) = ended(child);
        assert_eq!((code, err.as_str()), (130, "interrupted\n"), "{copies} copies of {body}");
        let said = out.rest();
        let mut lines: Vec<_> = said.lines().collect();
        lines.sort_unstable();
        let expected = if *copies == "2" { "90000 90000 inner inner" } else { "90000 inner" };
        assert_eq!(lines.join(" "), expected, "{copies} copies of {body}");
        is_timeline(Path::new(&trace));
    }
}

/// Tests ways to leave a cleanup. None of them stops the interrupt that runs it.
#[test]
fn an_interrupt_goes_on_whatever_ends_the_cleanup() {
    let begin = "function begin (), disp ('begin'), fflush (stdout); pause (1000); end\n";
    let cases = [
        ("try, unwind_protect, begin (); unwind_protect_cleanup, error ('no'), end, catch, disp ('caught'), end", ""),
        ("for k = 1:2, unwind_protect, begin (); unwind_protect_cleanup, disp (k), continue, end, end", "1\n"),
        ("while true, unwind_protect, begin (); unwind_protect_cleanup, disp (1), break, end, end", "1\n"),
        (
            "unwind_protect, begin (); unwind_protect_cleanup, try, error ('no'), catch e, disp (e.message), end, end",
            "no\n",
        ),
        ("eval ('unwind_protect, begin (); unwind_protect_cleanup, error (''no''), end', 'disp (1)')", ""),
        ("f ();", "1\n"),
        ("g ();", "b ends\n"),
    ];
    let functions = "function f (), unwind_protect, begin (); unwind_protect_cleanup, disp (1), return, end, end\n\
                     function g (), a = onCleanup (@() begin ()); b = onCleanup (@() disp ('b ends')); end\n";
    for (body, expected) in cases {
        let scripts = Scripts::new(&[("ends.m", &format!("{begin}{functions}{body}\ndisp ('after')\n"))]);
        let mut child = tidemill(&["run", &scripts.path("ends.m")]).spawn().unwrap();
        let mut out = Told::by(child.stdout.take().unwrap());
        out.wait("begin\n");
        interrupt(&child);
        let (code, _, err) = ended(child);
        assert_eq!((code, out.rest().as_str()), (130, expected), "{body}: {err}");
        assert!(err.ends_with("interrupted\n"), "{body}: {err}");
    }
}

/// Tests that a script's `onCleanup` objects are run, however the script ends.
#[test]
fn what_a_variable_s_end_runs_is_run_however_a_script_ends() {
    let f = "function f (), c = onCleanup (@() disp ('f ends')); disp ('in f'); ";
    let cases = [
        ("c = onCleanup (@() disp ('bye')); disp (1)", 0, "1\nbye\n"),
        ("global c; c = onCleanup (@() disp ('bye')); disp (1)", 0, "1\nbye\n"),
        ("c = onCleanup (@() disp ('bye')); error ('no')", 1, "bye\n"),
        ("c = onCleanup (@() disp ('bye')); exit (4)", 4, "bye\n"),
        ("c = onCleanup (@() error ('no')); disp (1)", 0, "1\n"),
        ("c = onCleanup (@() exit (5)); disp (1)", 5, "1\n"),
        ("c = onCleanup (@() disp (sum (rand (300)(:)) > 0)); disp (1)", 0, "1\n1\n"),
        (&format!("1; {f}end\nf (); disp (2)"), 0, "in f\nf ends\n2\n"),
        (&format!("1; {f}error ('no'); end\ntry, f (); catch, disp ('caught'), end"), 0, "in f\nf ends\ncaught\n"),
        (&format!("1; {f}error ('no'); end\nf ()"), 1, "in f\nf ends\n"),
    ];
    for (text, status, printed) in cases {
        let scripts = Scripts::new(&[("ends.m", text)]);
        let (code, out, err) = run(&["run", &scripts.path("ends.m")]);
        assert_eq!((code, out.as_str()), (status, printed), "{text}: {err}");
        let warned = err.contains("onCleanup: error caught while executing cleanup function:\nno");
        assert_eq!(warned, text.contains("@() error"), "{text}: {err}");
    }
    let scripts = Scripts::new(&[("loop.m", &format!("1; {f}fflush (stdout); while true, end, end\nf ()"))]);
    let mut child = tidemill(&["run", &scripts.path("loop.m")]).spawn().unwrap();
    let mut out = Told::by(child.stdout.take().unwrap());
    out.wait("in f\n");
    interrupt(&child);
    assert_eq!(ended(child).0, 130);
    assert_eq!(out.rest(), "f ends\n");
    let (code, out, _) = fed(&["repl"], "c = onCleanup (@() disp ('bye'));\ndisp (1)\n");
    assert_eq!((code, out.as_str()), (0, "1\nbye\n"));
}

#[test]
fn an_exit_in_what_cleans_up_hides_no_error() {
    let guarded = "unwind_protect, error ('no'); unwind_protect_cleanup, exit (3); end";
    let cases = [
        (guarded, 3, true),
        (&format!("1; function f (), {guarded}, end\nf ()"), 3, true),
        ("unwind_protect, c = onCleanup (@() exit (3)); error ('no'); unwind_protect_cleanup, clear c; end", 3, true),
        ("c = onCleanup (@() exit (3)); error ('no')", 3, true),
        ("global c; c = onCleanup (@() exit (3)); error ('no')", 3, true),
        ("c = onCleanup (@() exit (5)); exit (3)", 3, false),
        // An error that is caught ends nothing.
        (&format!("try, {guarded}, catch, end"), 3, false),
        (&format!("try, eval (\"{guarded}\"); catch, end"), 3, false),
        (&format!("unwind_protect, error ('no'); unwind_protect_cleanup, try, {guarded}, catch, end, end"), 3, true),
        ("try, error ('no'); catch, unwind_protect, x = 1; unwind_protect_cleanup, exit (3); end, end", 3, false),
        (&format!("cellfun (@(x) eval (\"{guarded}\"), {{1}}, 'ErrorHandler', @(e, x) 1)"), 3, false),
        ("exit (130)", 130, false),
    ];
    for (text, status, is_told) in cases {
        let scripts = Scripts::new(&[("ends.m", text)]);
        let (code, out, err) = run(&["run", &scripts.path("ends.m")]);
        assert_eq!(
            (code, out.as_str(), err.matches("error: no").count()),
            (status, "", is_told.into()),
            "{text}: {err}"
        );
        assert!(is_told || err.is_empty(), "{text}: {err}");
        // A session goes on, too, since a line's error leaves its variables alone.
        if !text.starts_with("1;") && !text.contains("c = onCleanup") {
            let (code, out, err) = fed(&["repl"], &format!("{text}\ndisp (1)\n"));
            assert_eq!((code, out.as_str(), err.contains("error: no")), (status, "", is_told), "{text}: {err}");
            assert!(!err.contains("interrupted"), "{text}: {err}");
        }
    }
}

#[test]
fn the_end_of_a_session_ends_its_objects_whatever_is_named_clear() {
    for clear in ["clear = 3;", "function clear (varargin), disp ('mine'), end"] {
        let text =
            format!("{clear}\nc = onCleanup (@() disp ('bye'));\nglobal g; g = {{onCleanup(@() disp ('too'))}};\n");
        let (code, out, err) = fed(&["repl"], &text);
        assert_eq!((code, sorted(&out), err.as_str()), (0, vec!["bye", "too"], ""), "{clear}");
    }
}

#[test]
fn a_second_interrupt_ends_also_the_cleanup() {
    let text = "unwind_protect, disp ('begin'), fflush (stdout); while true, end\n\
                unwind_protect_cleanup, disp ('cleans'), fflush (stdout); k = 0; while true, k = k + 1; end\n\
                end_unwind_protect";
    let scripts = Scripts::new(&[("endless.m", text)]);
    let mut child = tidemill(&["run", &scripts.path("endless.m")]).spawn().unwrap();
    let mut out = Told::by(child.stdout.take().unwrap());
    out.wait("begin");
    interrupt(&child);
    out.wait("cleans");
    // It gets time until it is interrupted again.
    std::thread::sleep(Duration::from_secs(2));
    assert!(child.try_wait().unwrap().is_none());
    interrupt(&child);
    let (code, _, err) = ended(child);
    assert_eq!((code, err.as_str()), (130, "interrupted\n"));
}

/// Cleanups that an interrupt runs: in a function's loop, in a step that takes long, and in a wait. A `catch` is not
/// run.
const GUARDED: &[(&str, &str)] = &[
    ("1", "begin (); k = 0; while true, k = k + 1; end"),
    // Other interrupts come while a script waits, and not in its steps.
    ("2", "begin (); k = 0; while true, k = k + 1; end"),
    ("1", "begin (); x = conv (ones (1, 20000), ones (1, 20000));"),
    ("2", "begin (); pause (1000);"),
    ("1", "begin (); cellfun (@(x) arrayfun (@(y) y, 1:1e7), {1, 2});"),
];

fn guarded(body: &str) -> String {
    format!(
        "function begin (), disp ('begin'), fflush (stdout); end\n\
         function inner ()\n\
           try, unwind_protect, {body}\n\
           unwind_protect_cleanup, disp ('inner'), end_unwind_protect\n\
           catch, disp ('caught'), end\n\
         end\n\
         unwind_protect, inner ();\n\
         unwind_protect_cleanup, x = rand (300); disp (sum (x(:) < 2)), end_unwind_protect\n\
         disp ('after')\n"
    )
}
