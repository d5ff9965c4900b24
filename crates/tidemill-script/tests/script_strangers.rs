//! Tests scripts that are not trusted: a sandbox that no function leaves, deadlines, and sessions that are closed under
//! a script.

use futures::executor::block_on;
use std::time::{Duration, Instant};
use tidemill::Runtime;
use tidemill_script::env::Options;
use tidemill_script::error::ScriptError;
use tidemill_script::source::Source;
use tidemill_script::testing::{Reach, families};
use tidemill_script::{Script, Workspace};

/// Far longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(120);

fn host() -> Runtime {
    Runtime::builder().device("host").start_blocking().unwrap()
}

fn sandboxed(rt: &Runtime, text: &str) -> Result<Workspace, ScriptError> {
    block_on(Script::parse(text)?.sandboxed().run(&rt.session("stranger").open()))
}

fn refused(rt: &Runtime, text: &str) -> ScriptError {
    match sandboxed(rt, text) {
        Err(error) => error,
        Ok(workspace) => panic!("no error from {text:?}, which printed {:?}", workspace.printed()),
    }
}

/// Returns the line at which an error points.
fn line(error: &ScriptError) -> usize {
    error.place.as_ref().map_or(0, |place| place.source.position(place.span.start).line as usize)
}

#[test]
fn a_sandbox_refuses_whatever_reaches_out_of_the_script_by_name_and_line() {
    let (rt, folder) = (host(), tempfile::tempdir().unwrap());
    let secret = folder.path().join("secret.txt");
    std::fs::write(&secret, "1 2 3\n").unwrap();
    let file = secret.display();
    let calls = [
        ("fopen", format!("f = fopen ('{file}');")),
        ("fopen", format!("f = fopen ('{file}.new', 'w');")),
        ("fileread", format!("t = fileread ('{file}');")),
        ("fgetl", "t = fgetl (0);".into()),
        ("fgets", "t = fgets (stdin);".into()),
        ("fread", "t = fread (0);".into()),
        ("fscanf", "t = fscanf (0, '%d');".into()),
        ("load", format!("load ('{file}');")),
        ("load", format!("x = load ('{file}');")),
        ("save", format!("x = 1; save ('{file}', 'x');")),
        ("save", format!("x = 1; save -v7 {file}.mat x")),
        ("dlmread", format!("x = dlmread ('{file}');")),
        ("csvread", format!("x = csvread ('{file}');")),
        ("readmatrix", format!("x = readmatrix ('{file}');")),
        ("dlmwrite", format!("dlmwrite ('{file}', 1);")),
        ("csvwrite", format!("csvwrite ('{file}', 1);")),
        ("writematrix", format!("writematrix (1, '{file}');")),
        ("importdata", format!("x = importdata ('{file}');")),
        ("textread", format!("x = textread ('{file}', '%f');")),
        ("readlines", format!("x = readlines ('{file}');")),
        ("writelines", format!("writelines ('a', '{file}');")),
        ("exist", format!("x = exist ('{file}', 'file');")),
        ("exist", "x = exist ('/etc', 'dir');".into()),
        ("isfile", format!("x = isfile ('{file}');")),
        ("isfolder", "x = isfolder ('/etc');".into()),
        ("isdir", "x = isdir ('/etc');".into()),
        ("dir", "x = dir ('/etc');".into()),
        ("ls", "ls /etc".into()),
        ("what", "x = what ('/etc');".into()),
        ("glob", "x = glob ('/etc/*');".into()),
        ("readdir", "x = readdir ('/etc');".into()),
        ("stat", "x = stat ('/etc');".into()),
        ("lstat", "x = lstat ('/etc');".into()),
        ("mkdir", format!("mkdir ('{file}.d');")),
        ("rmdir", format!("rmdir ('{}');", folder.path().display())),
        ("delete", format!("delete ('{file}');")),
        ("delete", format!("delete {file}")),
        ("unlink", format!("unlink ('{file}');")),
        ("rename", format!("rename ('{file}', '{file}2');")),
        ("copyfile", format!("copyfile ('{file}', '{file}2');")),
        ("movefile", format!("movefile ('{file}', '{file}2');")),
        ("canonicalize_file_name", "x = canonicalize_file_name ('..');".into()),
        ("make_absolute_filename", "x = make_absolute_filename ('a');".into()),
        ("file_in_loadpath", "x = file_in_loadpath ('a');".into()),
        ("tempname", "x = tempname ();".into()),
        ("tempdir", "x = tempdir ();".into()),
        ("pwd", "x = pwd ();".into()),
        ("cd", "cd /".into()),
        ("chdir", "chdir ('/')".into()),
        ("addpath", format!("addpath ('{}');", folder.path().display())),
        ("genpath", "genpath ('/etc');".into()),
        ("path", "path ('/etc');".into()),
        ("run", format!("run ('{file}');")),
        ("source", format!("source ('{file}');")),
        ("getenv", "x = getenv ('HOME');".into()),
        ("setenv", "setenv ('HOME', 'x');".into()),
        ("unsetenv", "unsetenv ('HOME');".into()),
        ("getpid", "x = getpid ();".into()),
        ("mfilename", "x = mfilename ('fullpath');".into()),
        #[cfg(feature = "image")]
        ("imread", format!("x = imread ('{file}');")),
        #[cfg(feature = "image")]
        ("imwrite", format!("imwrite (zeros (4), '{file}.png');")),
    ];
    for (name, call) in calls {
        let error = refused(&rt, &format!("a = 1;\n{call}\n"));
        assert!(error.message.starts_with(&format!("{name}: refused in a sandbox")), "{call}: {}", error.message);
        assert_eq!((line(&error), error.identifier.as_str()), (2, "Tidemill:sandbox"), "{call}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!((left, std::fs::read_to_string(&secret).unwrap()), (vec!["secret.txt".into()], "1 2 3\n".to_string()));
}

#[test]
fn no_detour_leaves_a_sandbox() {
    let rt = host();
    for detour in [
        "feval ('getenv', 'HOME');",
        "feval (@getenv, 'HOME');",
        "f = @getenv; f ('HOME');",
        "f = @() getenv ('HOME'); f ();",
        "f = str2func ('getenv'); f ('HOME');",
        "f = str2func ('@() getenv (''HOME'')'); f ();",
        "builtin ('getenv', 'HOME');",
        "eval ('getenv (''HOME'');');",
        "eval ('error (''x'')', 'getenv (''HOME'');');",
        "evalc ('getenv (''HOME'');');",
        "evalin ('base', 'getenv (''HOME'');');",
        "cellfun ('getenv', {'HOME'}, 'UniformOutput', false);",
        "cellfun (@getenv, {'HOME'}, 'UniformOutput', false);",
        "cellfun (@(x) error ('x'), {1}, 'ErrorHandler', @(varargin) getenv ('HOME'), 'UniformOutput', false);",
        "arrayfun (@(k) getenv ('HOME'), 1, 'UniformOutput', false);",
        "structfun (@getenv, struct ('a', 'HOME'), 'UniformOutput', false);",
        "x.f = @getenv; x.f ('HOME');",
        "c = {@getenv}; c{1} ('HOME');",
        "fzero (@(x) numel (getenv ('HOME')), [-1, 1]);",
        "quad (@(x) x + numel (getenv ('HOME')), 0, 1);",
        "function f (x), getenv (x); end\nf ('HOME');",
        "try, error ('x'); catch, getenv ('HOME'); end",
        "unwind_protect, x = 1; unwind_protect_cleanup, getenv ('HOME'); end_unwind_protect",
        "ifelse (true, getenv ('HOME'), 1);",
    ] {
        // Some names are no functions here, so they reach nothing either.
        let error = refused(&rt, detour);
        let is_unknown = detour.starts_with("builtin") && error.message.contains("undefined");
        assert!(is_unknown || error.message.contains("getenv: refused in a sandbox"), "{detour}: {}", error.message);
    }
    // This includes code that runs at the end of an object, and code whose errors a script catches.
    let workspace = sandboxed(&rt, "c = onCleanup (@() disp (getenv ('HOME'))); clear c\ndisp (1)").unwrap();
    assert_eq!(workspace.printed(), "1\n");
    assert!(workspace.warned().contains("getenv: refused in a sandbox"), "{}", workspace.warned());
    let workspace = sandboxed(&rt, "try, x = fileread ('/etc/passwd'); catch e, disp (e.identifier), end").unwrap();
    assert_eq!(workspace.printed(), "Tidemill:sandbox\n");
    // Functions without an effect draw and write nothing.
    sandboxed(&rt, "diary x.txt\nprint -dpng x.png\nsaveas (1, 'x.png');\nsavefig x").unwrap();
    assert!(!["x.txt", "x.png", "x.fig"].iter().any(|name| std::path::Path::new(name).exists()));
}

#[test]
fn every_function_that_the_table_marks_is_refused_whatever_it_is_given() {
    let rt = host();
    let mut marked = 0;
    for row in families().iter().flat_map(|(_, rows)| rows.iter()) {
        if row.reach != Reach::Outside {
            continue;
        }
        marked += 1;
        let arguments = vec!["'x'"; row.args_min as usize].join(", ");
        let error = refused(&rt, &format!("{} ({arguments})", row.name));
        assert!(error.message.starts_with(&format!("{}: refused", row.name)), "{}: {}", row.name, error.message);
    }
    assert!(marked > 40, "{marked}");
}

#[test]
fn function_files_beside_a_strangers_script_are_not_read() {
    let (rt, folder) = (host(), tempfile::tempdir().unwrap());
    std::fs::create_dir(folder.path().join("private")).unwrap();
    std::fs::write(folder.path().join("beside.m"), "function y = beside (), y = 7; end").unwrap();
    std::fs::write(folder.path().join("private/hidden.m"), "function y = hidden (), y = 8; end").unwrap();
    let main = folder.path().join("main.m");
    for (call, value) in [("beside", 7.0), ("hidden", 8.0)] {
        let script = Script::from_source(&Source::file(&main, format!("x = {call} ();"))).unwrap();
        let options = Options { path: vec![folder.path().into()], ..Options::default() };
        let run = |options: Options| block_on(script.clone().with_options(options).run(&rt.session("s").open()));
        assert_eq!(run(options.clone()).unwrap().number("x"), Some(value));
        let error = run(Options { sandbox: true, ..options }).unwrap_err();
        assert!(error.message.contains("undefined"), "{}", error.message);
    }
}

#[test]
fn what_a_sandboxed_script_keeps_to_itself_works_as_ever() {
    let rt = host();
    let text = "
        x = linspace (0, 1, 5); y = interp1 (x, x .^ 2, 0.5); s = sprintf ('%d', 3); fprintf (1, '%s\\n', s);
        disp (exist ('y')), disp (exist ('nothing_of_this_name')), disp (exist ('sin')), disp (exist ('fliplr'))
        c = textscan ('1,2', '%f,%f'); disp (c{2})
        A = gpuArray (rand (100)); disp (size (gather (A * A)))
        [p, n, e] = fileparts ('a/b.c'); disp ([p, n, e]), disp (fullfile ('a', 'b'))
        q = quadgk (@(t) t, 0, 2); printf ('%g\\n', q); fflush (stdout); fclose all;
        puts ('end'); fputs (stdout, \"\\n\"); fdisp (stdout, 4);
    ";
    let printed = sandboxed(&rt, text).unwrap().printed();
    assert!(printed.starts_with("3\n1\n0\n") && printed.contains("100   100"), "{printed}");
    assert!(printed.ends_with("ab.c\na/b\n2\nend\n4\n"), "{printed}");
}

fn within(deadline: Duration, text: &str) -> Result<Workspace, ScriptError> {
    let rt = host();
    let script = Script::parse(text).unwrap().deadline(Instant::now() + deadline);
    let began = Instant::now();
    let ended = block_on(script.run(&rt.session("late").open()));
    assert!(began.elapsed() < PATIENCE, "{text}");
    ended
}

#[test]
fn a_deadline_ends_loops_waits_and_whatever_cleans_up_for_ever() {
    // These are scripts, each with the last line at which it may be.
    for (last, text) in [
        (2, "x = 0;\nwhile true, x = x + 1; end"),
        (2, "x = 0;\nwhile true, x = x + numel ('abc'); end"),
        (1, "while true, try, error ('x'); catch, end, end"),
        (1, "while true, try, x = sum (gather (ones (200) * 2)); catch, end, end"),
        (1, "pause (1e5)"),
        (2, "f = @(x) x;\narrayfun (@(k) f (k), 1:1e8);"),
        (3, "function f (n), while true, g (n); end, end\nfunction g (n), end\nf (1);"),
        (2, "unwind_protect\nwhile true, end\nunwind_protect_cleanup\nwhile true, end\nend_unwind_protect"),
        (2, "c = onCleanup (@() pause (1e5));\nwhile true, end"),
        (1, "do, try, pause (1e5); catch, end, until false"),
        (1, "eval ('while true, end')"),
    ] {
        let error = within(Duration::from_millis(30), text).unwrap_err();
        assert_eq!(error.identifier, "Tidemill:deadline", "{text}: {}", error.message);
        assert!((1..=last).contains(&line(&error)), "{text}: line {}", line(&error));
    }
    let text = "x = 1;\ny = 2;\nwhile true, end";
    let error = within(Duration::from_millis(30), text).unwrap_err();
    assert_eq!((line(&error), error.message.as_str()), (3, "the deadline of the script has passed"));
}

#[test]
fn a_deadline_ends_one_builtin_that_takes_long() {
    for text in [
        "x = primes (1e9);",
        "a = ones (3e5, 1); b = conv (a, a);",
        "a = ones (3e5, 1); [q, r] = deconv (a, a(1:15e4));",
        "a = ones (1e4, 1); b = filter (a, 1, ones (1e6, 1));",
        "b = isprime (uint64 (18446744073709551557) * ones (1, 2e6, 'uint64'));",
        "x = gammaincinv (repmat (0.3, 4e6, 1), 2);",
    ] {
        let begun = Instant::now();
        let error = within(Duration::from_millis(300), &format!("\n{text}")).unwrap_err();
        assert_eq!((error.identifier.as_str(), line(&error)), ("Tidemill:deadline", 2), "{text}: {}", error.message);
        assert!(begun.elapsed() < Duration::from_secs(3), "{text}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_cleans_up_after_a_deadline_has_its_time_and_what_ends_before_is_not_ended() {
    let text = "unwind_protect, while true, end\nunwind_protect_cleanup, disp ('cleaned'), end_unwind_protect";
    let error = within(Duration::from_millis(30), text).unwrap_err();
    let written = error.written.as_ref().expect("what it wrote is kept");
    assert_eq!(String::from_utf8_lossy(&written.out), "cleaned\n");
    assert_eq!(within(PATIENCE, "x = sum (1:10);").unwrap().number("x"), Some(55.0));
    let past = Script::parse("while true, end").unwrap().deadline(Instant::now());
    let rt = host();
    assert_eq!(block_on(past.run(&rt.session("s").open())).unwrap_err().identifier, "Tidemill:deadline");
}

#[test]
fn closing_its_session_ends_a_script_that_never_asks_the_runtime() {
    for text in [
        "while true, end",
        "while true, try, error ('x'); catch, end, end",
        "pause (1e5)",
        "while true, try, x = sum (gather (ones (200) * 2)); catch, end, end",
    ] {
        let rt = host();
        let session = rt.session("closed").open();
        let script = Script::parse(text).unwrap();
        let closer = session.clone();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            closer.close();
        });
        let error = block_on(script.run(&session)).unwrap_err();
        closing.join().unwrap();
        assert!(session.is_closed());
        assert_eq!(error.identifier, "Tidemill:closed", "{text}: {}", error.message);
    }
}

#[test]
fn a_loop_that_never_waits_lets_other_tasks_of_its_thread_run_and_ends_when_it_is_dropped() {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    executor.block_on(async {
        let rt = Runtime::builder().device("host").start().await.unwrap();
        let session = rt.session("endless").open();
        let script = Script::parse("x = 0; while true, x = x + 1; end").unwrap();
        let timed = tokio::time::timeout(Duration::from_millis(30), script.run(&session)).await;
        assert!(timed.is_err(), "the timer of the same thread has its turn");
        let other = Script::parse("y = 2;").unwrap();
        assert_eq!(other.run(&session).await.unwrap().number("y"), Some(2.0));
    });
}
