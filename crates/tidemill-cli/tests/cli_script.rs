//! Tests `tidemill run`, `eval` and `repl` from outside: their output and their exit codes.

#![cfg(unix)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything takes here, even if the machine has other work.
const PATIENCE: Duration = Duration::from_secs(300);

fn tidemill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.args(arguments).env("TIDEMILL_DEVICE", "host").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a process's exit code, standard output and standard error.
fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("what is printed is UTF-8");
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    told(tidemill(arguments).output().unwrap())
}

/// Does the same with a text on its standard input.
fn fed(arguments: &[&str], text: &str) -> (i32, String, String) {
    let mut child = tidemill(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // The process may end before it has read everything.
    let _ = writer.join().unwrap();
    told(output)
}

/// A folder with scripts.
struct Scripts(tempfile::TempDir);

impl Scripts {
    fn new(files: &[(&str, &str)]) -> Scripts {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Scripts(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }
}

fn interrupt(child: &Child) {
    signal(child, "INT");
}

fn signal(child: &Child, name: &str) {
    // This uses the shell's own `kill`, since a bare machine has no program of that name.
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Waits for a process that has to end soon.
fn ended(mut child: Child) -> (i32, String, String) {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    told(child.wait_with_output().unwrap())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn names_that_are_close_have_a_value_or_are_functions() {
    let told = |text: &str| fed(&["run", "-"], text).2;
    // The value of `total1` has ended at its last use.
    assert!(told("total1 = 3; disp (total1); total2").contains("names that are close: total1"));
    assert!(told("x = numell (2)").contains("names that are close: numel"));
    assert!(!told("qwertz1 (1), qwertz2 (2)").contains("names that are close"));
}

#[test]
fn functions_of_a_private_folder_are_seen_by_the_files_beside_it_and_by_each_other_only() {
    let scripts = Scripts::new(&[
        ("main.m", "disp (hidden (2)), shown (4); addpath ([pwd '/other']); other ()"),
        ("shown.m", "function shown (x), g = @hidden; disp (g (x)), disp (cellfun (@hidden, {1, 2})), end"),
        ("private/hidden.m", "function y = hidden (x), y = deeper (x) * 10; end"),
        ("private/deeper.m", "function y = deeper (x), y = x + 1; end"),
        ("other/other.m", "function other (), try, hidden (1), catch e, disp (e.message), end, end"),
    ]);
    let output = tidemill(&["run", "main.m"]).current_dir(scripts.0.path()).output().unwrap();
    let (code, out, err) = told(output);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "30\n50\n   20   30\n'hidden' undefined near line 1, column 25\n");
}

#[test]
fn a_scripts_own_functions_come_before_private_ones_which_are_found_wherever_it_goes() {
    let scripts = Scripts::new(&[
        (
            "main.m",
            "cd ('elsewhere'); own (), hidden (), x = which ('hidden'); disp (x(end-15:end)), disp (which ('own'))\nfunction own (), disp ('own'), end",
        ),
        ("private/own.m", "function own (), disp ('private'), end"),
        ("private/hidden.m", "function hidden (), disp ('hidden'), end"),
        ("elsewhere/hidden.m", "function hidden (), disp ('elsewhere'), end"),
    ]);
    let output = tidemill(&["run", "main.m"]).current_dir(scripts.0.path()).output().unwrap();
    let (code, out, err) = told(output);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "own\nhidden\nprivate/hidden.m\ncommand-line function\n", ""));
}

#[test]
fn the_stack_of_an_error_names_whole_paths_and_functions_behind_their_files() {
    let scripts = Scripts::new(&[
        ("main.m", "try, deep (), catch e, for s = e.stack', printf ('%s|%s|%d\\n', s.file, s.name, s.line), end, end"),
        ("deep.m", "function deep (), mid (); end\nfunction mid (), error ('x'); end"),
    ]);
    let output = tidemill(&["run", "main.m"]).current_dir(scripts.0.path()).output().unwrap();
    let (_, out, err) = told(output);
    let (deep, main) = (scripts.path("deep.m"), scripts.path("main.m"));
    assert_eq!(out, format!("{deep}|deep>mid|2\n{deep}|deep|1\n{main}|main|1\n"), "{err}");
}

#[test]
fn several_files_and_copies_print_whole_lines_with_their_names_before_them() {
    let text = "for k = 1:200, printf ('%d', k); printf (' of 200\\n'); end\nprintf ('end')";
    let scripts = Scripts::new(&[("a.m", text), ("b.m", text)]);
    let (a, b) = (scripts.path("a.m"), scripts.path("b.m"));
    let (code, out, err) = run(&["run", &a, &b, &a, "--copies", "3", "--prefix"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let mut expected = Vec::new();
    for name in ["a#1", "a#2", "a#3", "a#4", "a#5", "a#6", "b#1", "b#2", "b#3"] {
        expected.extend((1..=200).map(|k| format!("{name}: {k} of 200")));
        expected.push(format!("{name}: end"));
    }
    expected.sort_unstable();
    assert_eq!(sorted(&out), expected);
    let (code, out, _) = run(&["run", &scripts.path("a.m"), "--copies", "2"]);
    assert_eq!((code, out.lines().count()), (0, 402));
}

#[test]
fn whole_lines_of_several_reach_the_standard_error_with_their_names_before_them() {
    let text =
        "for k = 1:200, fprintf (2, '%d', k); fprintf (2, ' of '); fprintf (2, '200\\n'); end, fprintf (2, 'end')";
    let scripts = Scripts::new(&[("a.m", text)]);
    let (code, out, err) = run(&["run", &scripts.path("a.m"), "--copies", "4", "--prefix"]);
    assert_eq!((code, out.as_str()), (0, ""));
    let line = |copy, k| format!("a#{copy}: {k} of 200");
    let mut expected: Vec<String> = (1..=4).flat_map(|copy| (1..=200).map(move |k| line(copy, k))).collect();
    expected.extend((1..=4).map(|copy| format!("a#{copy}: end")));
    expected.sort_unstable();
    assert_eq!(sorted(&err), expected);
}

#[test]
fn an_error_of_one_among_several_scripts_says_which() {
    let scripts = Scripts::new(&[("a.m", "if rand > 2, end\nerror ('no')\n"), ("b.m", "disp (1)\n")]);
    let (code, _, err) = run(&["run", &scripts.path("a.m"), "--copies", "2"]);
    assert_eq!(code, 1);
    assert!(err.contains("in a#1") && err.contains("in a#2"), "{err}");
    let (_, _, err) = run(&["run", &scripts.path("a.m"), &scripts.path("b.m")]);
    assert!(err.contains("in a\n"), "{err}");
    let (_, _, err) = run(&["run", &scripts.path("a.m")]);
    assert!(!err.contains("error: in"), "{err}");
}

#[test]
fn copies_draw_their_own_random_numbers_and_a_run_repeats() {
    let scripts = Scripts::new(&[("r.m", "printf ('%.15f\\n', rand ());")]);
    let two = || run(&["run", &scripts.path("r.m"), "--copies", "2"]).1;
    let first = two();
    let lines = sorted(&first);
    assert!(lines.len() == 2 && lines[0] != lines[1], "{first}");
    assert_eq!(lines, sorted(&two()));
}

#[test]
fn a_script_is_read_from_the_standard_input_and_arguments_reach_it() {
    let text = "a = argv (); printf ('%s|', a{:}); disp (numel (a))";
    assert_eq!(fed(&["run", "-", "--", "one", "--two", "x y"], text), (0, "one|--two|x y|3\n".into(), String::new()));
    assert_eq!(fed(&["run", "-"], "disp (1)").1, "1\n");
    let (code, _, err) = fed(&["run", "-"], "x = 1;\ny = nothing_here (x)");
    assert_eq!(code, 1);
    assert!(err.contains("-:2:5") && err.contains("'nothing_here' undefined"), "{err}");
}

#[test]
fn functions_beside_a_script_are_found_wherever_it_goes() {
    let text = "helper (1)\nmkdir ('deep'); cd deep\nhelper (2)\n";
    let scripts = Scripts::new(&[("goes.m", text), ("helper.m", "function y = helper (x), y = x + 100; end\n")]);
    let output = tidemill(&["run", "goes.m"]).current_dir(scripts.0.path()).output().unwrap();
    assert_eq!(told(output), (0, "ans = 101\nans = 102\n".to_string(), String::new()));
}

#[test]
fn a_folder_of_any_name_holds_the_users_functions() {
    for folder in ["library", "other", "eval"] {
        let text = ("main.m", "disp (fliplr ([1 2 3]))\ntry, colour_steps (3); catch e, disp (e.message), end\n");
        let files = [text, ("fliplr.m", "function y = fliplr (x), y = 'mine'; end\n")];
        let named = files.map(|(name, text)| (format!("{folder}/{name}"), text));
        let scripts = Scripts::new(&[(named[0].0.as_str(), named[0].1), (named[1].0.as_str(), named[1].1)]);
        let output = tidemill(&["run", &named[0].0]).current_dir(scripts.0.path()).output().unwrap();
        assert_eq!(
            told(output),
            (0, "mine\n'colour_steps' undefined near line 2, column 6\n".to_string(), String::new())
        );
    }
}

#[test]
fn handles_of_a_files_functions_are_called_from_anywhere() {
    let solves = "function solves ()
                    [t, y] = ode45 (@rate, [0 1], 1); printf ('%.3f %.3f\\n', y(end), fzero (@less, [0 3]));
                    printf ('%g %g\\n', applied (@less, 5), applied (str2func ('less'), 7));
                  end
                  function d = rate (t, y), d = -y; end
                  function r = less (x), r = x - 2; end";
    let applied = "function r = applied (f, x), r = f (x); end\nfunction r = less (x), r = 'of applied'; end";
    let given = "function h = given (), h = @inner; end\nfunction r = inner (x), r = 10 * x; end";
    let scripts = Scripts::new(&[
        ("main.m", "solves, h = given (); disp (h (3)), c = {1, h}; disp (c{2}(4)), cellfun (h, {5})\n"),
        ("solves.m", solves),
        ("applied.m", applied),
        ("given.m", given),
    ]);
    let printed = "0.368 2.000\n3 5\n30\n40\nans = 50\n";
    assert_eq!(run(&["run", &scripts.path("main.m")]), (0, printed.to_string(), String::new()));
}

#[test]
fn a_file_is_run_by_what_it_stands_for_and_called_by_its_own_name() {
    let text = "function main ()\n  x = 3\n  y = squared (x)\nend\nfunction r = squared (x), r = x ^ 2; end\n";
    let scripts = Scripts::new(&[
        ("main.m", text),
        ("calls.m", "run ('main.m'); misnamed\n"),
        // The function is declared with the name of another file.
        ("misnamed.m", "function doubled (), disp (doubled (4)), end\n"),
        ("doubled.m", "function y = doubled (x), y = 2 * x; end\n"),
    ]);
    assert_eq!(run(&["run", &scripts.path("main.m")]), (0, "x = 3\ny = 9\n".to_string(), String::new()));
    let output = tidemill(&["run", "calls.m"]).current_dir(scripts.0.path()).output().unwrap();
    assert_eq!(told(output), (0, "x = 3\ny = 9\n8\n".to_string(), String::new()));
}

#[test]
fn scripts_share_their_callers_variables_and_texts_their_files_functions() {
    let main = "n = 3; e = 5; pi = 3;\nshows\nr = of_function (3)\nevaluates (3)\nrun ('sub/go.m');
                addpath (genpath ('lib')); which_one (1)
                p = path; path ('sub', p); disp (beside (3)), path (p); try, beside (3), catch disp ('gone'), end
                for k = 1:2, adds, end, disp (total)\nbegins\nmarked\n";
    let evaluates = "function evaluates (x)
                       eval ('y = sb (x)'); h = eval ('@(x) sb (x)'); disp (h (2)), disp (evalc ('sb (x);'))
                       cellfun (@(s) eval (s), {'sb (5)'}), eval ('hidden (x)')
                     end
                     function r = sb (x), r = x + 1000; end";
    let scripts = Scripts::new(&[
        ("main.m", main),
        ("shows.m", "disp (n), x = [e pi]\n"),
        ("of_function.m", "function r = of_function (n)\nk = n + 1; doubles; r = z;\n"),
        ("doubles.m", "z = k * 2;\n"),
        ("adds.m", "if k == 1, total = 0; end, total = total + k;\n"),
        ("evaluates.m", evaluates),
        ("private/hidden.m", "function r = hidden (x), r = -x; end\n"),
        ("sub/go.m", "x = beside (3)\ndisp (load ('data.txt'))\n"),
        ("sub/beside.m", "function y = beside (x), y = x + 1; end\n"),
        ("sub/data.txt", "5 6\n"),
        ("lib/a/private/which_one.m", "function which_one (x), disp ('the private one'), end\n"),
        ("lib/b/which_one.m", "function which_one (x), disp ('the public one'), end\n"),
        ("begins.m", "\u{feff}%{\n a block, it's\n%}\ndisp ('begun')\n"),
        ("marked.m", "function marked ()\n  try, print_usage (); catch e, disp (e.identifier), end\nend\n"),
    ]);
    let output = tidemill(&["run", "main.m"]).current_dir(scripts.0.path()).output().unwrap();
    let printed = "3\nx =\n\n   5   3\n\nr = 8\ny = 1003\n1002\n\nans = 1005\nans = -3\nx = 4\n   5   6\nthe public one\n4\n\
                   gone\n3\nbegun\nOctave:invalid-fun-call\n";
    assert_eq!(told(output), (0, printed.to_string(), String::new()));
}

#[test]
fn function_files_that_are_cleared_are_read_again() {
    let text =
        "w = @(t) fclose (fputs_to ('gen.m', t)); function f = fputs_to (n, t), f = fopen (n, 'w'); fputs (f, t); end
                w ('function r = gen (x), r = x * 2; end'); disp (gen (4))
                w ('function r = gen (x), r = x * 3; end'); clear gen, disp (gen (4))
                w ('function r = gen (x), r = x * 5; end'); clear functions, disp (gen (4))";
    let scripts = Scripts::new(&[("main.m", text)]);
    let output = tidemill(&["run", "main.m"]).current_dir(scripts.0.path()).output().unwrap();
    assert_eq!(told(output), (0, "8\n12\n20\n".to_string(), String::new()));
}

#[test]
fn files_are_found_where_the_script_says_and_as_it_writes_them() {
    let text = "f = fopen ('made.m', 'w'); fprintf (f, 'function r = made (x)\\nr = x * 2;\\n'); fclose (f); disp (made (4))
                addpath data; disp (load ('d.txt')), disp (exist ('d.txt', 'file')), f = fopen ('d.txt'); disp (fgetl (f))
                disp (fileread ('d.txt')(1)), disp (isempty (file_in_loadpath ('d.txt')))";
    let scripts = Scripts::new(&[("data/d.txt", "5 6\n")]);
    let output = tidemill(&["eval", text]).current_dir(scripts.0.path()).output().unwrap();
    assert_eq!(told(output), (0, "8\n   5   6\n2\n5 6\n5\n0\n".to_string(), String::new()));
}

#[test]
fn folders_are_listed_whole_and_by_patterns() {
    let scripts = Scripts::new(&[("a.csv", "1"), ("b.csv", "22"), ("deep/c.csv", "3"), (".hidden", "")]);
    let text = "d = dir ('*.csv'); printf ('%s %d %d\\n', d(2).name, d(2).bytes, d(2).isdir)
                disp (strcmp (d(1).folder, pwd ()) && d(1).datenum > 738000 && ischar (d(1).date))
                d = dir ('.'); printf ('%s ', d.name); disp ([d.isdir])
                disp (size (dir ('*.nothing'))); disp (isempty (dir ('nowhere')))
                d = dir ('deep/*.csv'); printf ('%s\\n', d.name)
                dir deep
                [info, failed, message] = stat ('a.csv'); disp ([info.size, failed, isempty(message), info.modestr(1) == '-'])
                [info, failed, message] = stat ('nowhere'); disp (isempty (info)); printf ('%d %s\\n', failed, message)";
    let output = tidemill(&["eval", text]).current_dir(scripts.0.path()).output().unwrap();
    let printed = "b.csv 2 0\n1\n. .. .hidden a.csv b.csv deep   1  1  0  0  0  1\n   0   1\n1\nc.csv\n\
                   .      ..     c.csv\n   1   0   1   1\n1\n-1 No such file or directory\n";
    assert_eq!(told(output), (0, printed.to_string(), String::new()));
}

#[test]
fn a_file_that_is_refused_keeps_what_is_in_it() {
    let scripts = Scripts::new(&[("kept.txt", "kept")]);
    let text = "k = 0; while fopen ('kept.txt') > 0, k++; end, disp (k > 1000)
                [f, message] = fopen ('kept.txt', 'w'); disp (f), disp (message), fclose ('all'); fileread ('kept.txt')";
    let output = tidemill(&["eval", text]).current_dir(scripts.0.path()).output().unwrap();
    assert_eq!(told(output), (0, "1\n-1\nToo many open files\nans = kept\n".to_string(), String::new()));
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

#[test]
fn a_text_of_windows_in_16_bits_is_read() {
    let scripts = Scripts::new(&[]);
    for (name, unit) in [("le.m", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("be.m", u16::to_be_bytes)] {
        let text = "\u{feff}disp ('\u{fc}')\r\n";
        std::fs::write(scripts.path(name), text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()).unwrap();
        assert_eq!(run(&["run", &scripts.path(name)]), (0, "\u{fc}\n".into(), String::new()));
    }
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

fn is_timeline(path: &Path) {
    let events: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!events.is_empty());
}

#[test]
fn timelines_counters_and_plans_are_written_when_they_are_asked_for() {
    let scripts = Scripts::new(&[("big.m", "x = rand (200); y = x * 2 + 1; printf ('%d\\n', sum (y(:)) > 0);")]);
    let trace = scripts.path("t.json");
    let (code, out, err) = run(&["run", &scripts.path("big.m"), "--trace", &trace, "--stats", "--explain"]);
    assert_eq!((code, out.as_str()), (0, "1\n"), "{err}");
    is_timeline(Path::new(&trace));
    assert!(err.contains("kernels") && err.contains("ops_recorded") && err.contains("mul"), "{err}");
    let (code, _, err) = run(&["run", &scripts.path("big.m"), "--trace", "/no/such/folder/t.json"]);
    assert_eq!(code, 1);
    assert!(err.contains("cannot write the timeline"), "{err}");
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
fn a_function_file_holds_nested_functions_that_share_its_variables() {
    let nested = "function varargout = nested (start)\n  n = start;\n  varargout = {@more, @() less (1)};\n  \
                  function v = more (by)\n    n = n + by;\n    v = n;\n  end\n  function v = less (by)\n    \
                  n = n - by;\n    v = n;\n  end\nend\n";
    let main = "[more, less] = nested (10);\n[other, ~] = nested (0);\nprintf ('%d %d %d %d\\n', more (5), less (), \
                other (1), more (1))\n";
    let scripts = Scripts::new(&[("nested.m", nested), ("main.m", main)]);
    let (code, out, err) = run(&["run", &scripts.path("main.m")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "15 14 1 15\n", ""));
}

#[test]
fn splines_of_surfaces_and_of_curves_with_gaps_are_those_of_octave() {
    // A basis of splines for every point of the mesh would take more memory than there is.
    let surface = "n = 600; A = mod (reshape ((1:n*n)*7919, n, n), 1009)/101;\n\
                   B = interp2 (A, linspace (1, n, 2*n), linspace (1, n, 2*n)', 'spline');\n\
                   printf ('%.8g\\n', sum (B(:)))\n";
    let gaps = "y = [1 8 NaN 64 125 216; 2 3 5 7 11 13]; printf ('%.6f ', spline (1:6, y, [2.5 3]))\n";
    let scripts = Scripts::new(&[("surface.m", surface), ("gaps.m", gaps)]);
    let (code, out, err) = run(&["run", &scripts.path("surface.m")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "7185826.2\n", ""));
    let (code, out, err) = run(&["run", &scripts.path("gaps.m")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "15.625000 4.012500 27.000000 5.000000 ", ""));
}

#[test]
fn library_functions_gather_arrays_of_the_device_as_often_for_many_elements_as_for_few() {
    let calls = [
        "gammainc (g, 2)",
        "gammaincinv (u, 2)",
        "betainc (u, 2, 3)",
        "betaincinv (u, 2, 3)",
        "expint (g)",
        "psi (g)",
        "sinint (g)",
        "cosint (g)",
        "ellipke (u)",
        "ellipj (g, 0.5)",
        "legendre (2, u)",
        "bincoeff (ceil (g), 2)",
        "repelem (g, 2)",
        "uniquetol (g)",
        "hex2num (num2hex (g))",
        "datestr (730000 + g)",
        "datevec (730000 + g)",
        "rat (g)",
        "movmean (g, 3)",
        "histcounts (g)",
        "spline (1:numel (g), g, 1.5)",
        "pchip (1:numel (g), g, 1.5)",
        "interp2 (g' * g, 2, 2, 'spline')",
        "interpn (g, 1)",
        "cplxpair (g)",
        "fillmissing (g, 'linear')",
        "ranks (g)",
        "convhull (g, mod (7 * g, 3))",
        "splitapply (@sum, g, 1 + mod (1:numel (g), 3))",
        "nthroot (g, 3)",
        "accumdim (1 + mod (1:numel (g), 3), g)",
        "inpolygon (g, g, [0 1 1], [0 0 1])",
        "discretize (g, 4)",
        "unwrap (g)",
        "runlength (round (g))",
        "weekday (730000 + g)",
        "eomday (2000 + round (g), 2)",
        "mink (g, 2)",
        "polyarea (g, mod (7 * g, 3))",
        "rgb2hsv ([u' u' u'])",
        "swapbytes (uint16 (g))",
        "isoutlier (g)",
    ];
    let gathers = |call: &str, n: usize| {
        let text =
            format!("g = gpuArray (0.5 + mod ((1:{n}) * 7919, 101) / 20); u = g / 6;\nx = {call};\nx = gather (x);\n");
        let scripts = Scripts::new(&[("main.m", &text)]);
        let (code, out, err) = run(&["run", "--stats", "--device", "host", &scripts.path("main.m")]);
        assert_eq!(code, 0, "{call}: {err}");
        let line = out.lines().chain(err.lines()).find_map(|line| line.strip_prefix("gathers "));
        line.unwrap_or_else(|| panic!("{out}{err}")).trim().parse::<u64>().unwrap()
    };
    for call in calls {
        let (few, many) = (gathers(call, 40), gathers(call, 200));
        assert!(many <= few + 4, "{call}: {few} gathers of 40 elements, {many} of 200");
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
fn eval_runs_a_text() {
    assert_eq!(run(&["eval", "x = 1 + 1"]), (0, "x = 2\n".into(), String::new()));
    assert_eq!(run(&["eval", "-3 ^ 2"]).1, "ans = -9\n");
    assert_eq!(run(&["eval", "exit (4)"]).0, 4);
    let (code, out, err) = run(&["eval", "1 +* 2"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("parse error") && err.contains("eval:1:4"), "{err}");
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

/// The output of a process, as it arrives.
struct Told {
    chunks: std::sync::mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Told {
    fn by(mut from: impl Read + Send + 'static) -> Told {
        let (sender, chunks) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                if sender.send(chunk[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Told { chunks, text: String::new() }
    }

    /// Returns the output until its end.
    fn rest(mut self) -> String {
        while let Ok(chunk) = self.chunks.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
        self.text
    }

    /// Waits until these words have arrived, and drops everything up to their end.
    fn wait(&mut self, words: &str) {
        loop {
            if let Some(at) = self.text.find(words) {
                self.text.drain(..at + words.len());
                return;
            }
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("{words:?} does not come after {:?}", self.text),
            }
        }
    }
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
fn a_stack_without_calls_is_not_shown() {
    for text in ["error ('no')", "eval ('error (\"no\")')", "x = eval ('1 +')"] {
        let err = fed(&["repl"], text).2;
        assert!(err.starts_with("error: ") && !err.contains("called from"), "{text}: {err}");
    }
    assert!(fed(&["repl"], "function f (), error ('no'); end\nf ()").2.contains("f at line 1 column 16"));
}

#[test]
fn what_nobody_reads_any_more_does_not_hold_up_the_end() {
    // Every iteration is recorded, and some of them are being computed when the script ends.
    let text = "y = ones (3000); for k = 1:30000, y = y + 1; end, exit (4)";
    let begin = Instant::now();
    assert_eq!(run(&["eval", text]).0, 4);
    // The runtime itself would wait half a minute for the work in flight.
    let seconds = begin.elapsed().as_secs();
    assert!(seconds < 25, "{seconds} s");
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

/// Tests as in Octave: a call by a file's name means its first function, whatever follows it. A function within a block
/// is defined when the block runs.
#[test]
fn files_that_begin_with_a_function_and_blocks_that_define_one() {
    let main = "a = g (3)\ncellfun (@g, {1, 2})\nif exist ('OCTAVE_VERSION')\n  function r = plus_one (x)\n    r = x + 1;\n  \
                end\nend\nplus_one (3)\nswitch 2\n  case 1\n    function r = px (), r = 1; end\n  case 2\n    function r = px \
                (), r = 2; end\nend\npx ()\n";
    let beside = "function y = g (x)\n  y = 2*x;\nend\ndisp ('hello')\ng (5)\n";
    let scripts = Scripts::new(&[("main.m", main), ("g.m", beside)]);
    let (code, out, err) = run(&["run", &scripts.path("main.m")]);
    assert_eq!((code, out.as_str()), (0, "a = 6\nans =\n\n   2   4\n\nans = 4\nans = 2\n"), "{err}");
    // Run by itself, the file is a script.
    assert_eq!(run(&["run", &scripts.path("g.m")]).1, "hello\nans = 10\n");
}

#[test]
fn a_sandbox_keeps_a_strangers_script_from_files_and_the_standard_input() {
    let scripts = Scripts::new(&[
        ("reads.m", "disp (1 + 1)\nx = fileread ('reads.m');\n"),
        ("calls.m", "beside ();\n"),
        ("beside.m", "function beside (), disp ('beside'), end\n"),
    ]);
    let (status, out, err) = run(&["run", "--sandbox", &scripts.path("reads.m")]);
    assert_eq!((status, out.as_str()), (1, "2\n"));
    assert!(err.contains("fileread: refused in a sandbox") && err.contains("reads.m:2"), "{err}");
    let (status, _, err) = run(&["run", "--sandbox", &scripts.path("calls.m")]);
    assert!(status == 1 && err.contains("'beside' undefined"), "{err}");
    assert_eq!(run(&["run", &scripts.path("calls.m")]).1, "beside\n");
    let (status, out, err) = fed(&["run", "--sandbox", "-"], "disp (3)\nx = fgetl (0);\n");
    assert_eq!((status, out.as_str()), (1, "3\n"), "{err}");
    assert!(err.contains("fgetl: refused in a sandbox"), "{err}");
    let (status, _, err) = run(&["eval", "--sandbox", "getenv ('HOME')"]);
    assert!(status == 1 && err.contains("getenv: refused"), "{err}");
    let (_, _, err) = fed(&["repl", "--sandbox"], "getenv ('HOME')\n");
    assert!(err.contains("getenv: refused"), "{err}");
}
