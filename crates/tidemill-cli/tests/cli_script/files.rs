//! Functions in files, and files that scripts read and write.

use super::{Scripts, fed, run, tidemill, told};

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
fn a_text_of_windows_in_16_bits_is_read() {
    let scripts = Scripts::new(&[]);
    for (name, unit) in [("le.m", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("be.m", u16::to_be_bytes)] {
        let text = "\u{feff}disp ('\u{fc}')\r\n";
        std::fs::write(scripts.path(name), text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()).unwrap();
        assert_eq!(run(&["run", &scripts.path(name)]), (0, "\u{fc}\n".into(), String::new()));
    }
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
