//! Tests the `tidemill` command from outside: its output, the files that it leaves behind, and its exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn tidemill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.args(arguments).env_remove("TIDEMILL_DEVICE").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    tidemill(arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn data(name: &str) -> String {
    format!("{}/../../examples/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn events(path: &PathBuf) -> Vec<serde_json::Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_quiet_program_prints_nothing_on_standard_error_without_a_display_or_a_runtime_directory() {
    for device in ["auto", "gpu", "host"] {
        let quiet = |arguments: &[&str]| {
            let mut command = tidemill(arguments);
            for variable in ["XDG_RUNTIME_DIR", "NODEVICE_SELECT", "WAYLAND_DISPLAY", "DISPLAY"] {
                command.env_remove(variable);
            }
            command.env("TIDEMILL_DEVICE", device).output().unwrap()
        };
        let looked = quiet(&["info"]);
        if code(&looked) != 0 && device == "gpu" && err(&looked).contains("no GPU") {
            continue;
        }
        assert_eq!((code(&looked), err(&looked).as_str()), (0, ""), "{device}");
        let computed = quiet(&["eval", "x = gpuArray (ones (300, 1)); disp (sum (x))"]);
        if code(&computed) == 0 {
            assert_eq!(err(&computed), "", "{device}");
        }
    }
}

#[test]
fn help_and_version_succeed_without_colour_where_no_colour_is_wanted() {
    let help = tidemill(&["--help"]).env("NO_COLOR", "1").env("CLICOLOR_FORCE", "0").output().unwrap();
    assert_eq!(code(&help), 0);
    for command in ["info", "trace", "photo", "monte-carlo", "concurrent", "completions"] {
        assert!(out(&help).contains(command), "{command} is missing");
    }
    assert!(!out(&help).contains('\u{1b}'));
    let version = run(&["--version"]);
    assert_eq!((code(&version), out(&version)), (0, format!("tidemill {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_was_wrong() {
    let cases: [(&[&str], &str); 13] = [
        (&["monte-carlo", "--paths", "1"], "--paths"),
        (&["monte-carlo", "--steps", "0"], "--steps"),
        (&["concurrent", "--sessions", "0"], "--sessions"),
        (&["concurrent", "--elements", "7"], "--elements"),
        (&[], "Usage"),
        (&["fly"], "fly"),
        (&["photo"], "required"),
        (&["photo", "a.png", "-o", "out", "--gamma", "0"], "--gamma"),
        (&["photo", "a.png", "-o", "out", "--gain", "nan"], "--gain"),
        (&["photo", "a.png", "-o", "out", "--sharpen", "inf"], "--sharpen"),
        (&["concurrent", "--device", "tpu"], "tpu"),
        (&["concurrent", "--batches-in-flight", "0"], "0"),
        (&["completions", "no-such-shell"], "no-such-shell"),
    ];
    for (arguments, words) in cases {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(err(&output).contains(words), "{arguments:?} gave {}", err(&output));
    }
}

#[test]
fn the_environments_device_is_read_as_the_one_on_the_command_line() {
    let with = |device: &str, arguments: &[&str]| tidemill(arguments).env("TIDEMILL_DEVICE", device).output().unwrap();
    let small = ["concurrent", "--sessions", "2", "--elements", "64"];
    let output = with("tpu", &small);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("tpu") && err(&output).contains("gpu:N"), "{}", err(&output));
    // The variable is blank, or unused, or the command needs no device.
    assert_eq!(code(&with(" ", &small)), 0);
    assert_eq!(code(&with("tpu", &[&small[..], &["--device", "host"]].concat())), 0);
    assert_eq!(code(&with("tpu", &["completions", "bash"])), 0);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run(&["completions", shell]);
        assert_eq!(code(&output), 0);
        assert!(out(&output).contains("monte-carlo"));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let mut child = tidemill(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), err(&output)), (0, String::new()));
}

#[test]
fn a_timeline_is_summarised_and_what_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    let name = path.to_str().unwrap();
    std::fs::write(&path, r#"[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":2500,"name":"k","cat":"compute"}]"#).unwrap();
    let good = run(&["trace", "summary", name]);
    assert_eq!(code(&good), 0);
    assert!(out(&good).starts_with("1 events over 2.500 ms\n"), "{}", out(&good));
    std::fs::write(&path, r#"[{"ph":"X","#).unwrap();
    let blank = dir.path().join("blank.json");
    std::fs::write(&blank, " ".repeat(100_000)).unwrap();
    let mut bad = vec![(name, "is cut short after 0 events"), ("/no/such/file.json", "cannot be read")];
    bad.push((blank.to_str().unwrap(), "it begins with blanks only"));
    // This file has no end.
    if cfg!(unix) {
        bad.push(("/dev/zero", "is no timeline"));
    }
    for (file, words) in bad {
        let bad = run(&["trace", "summary", file]);
        assert_eq!(code(&bad), 1);
        assert!(err(&bad).starts_with("error: ") && err(&bad).contains(words), "{}", err(&bad));
    }
}

#[test]
fn the_recorded_timeline_of_concurrent_can_be_summarised() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/concurrent.json");
    assert!(std::fs::metadata(&path).unwrap().len() < 300_000);
    let summary = run(&["trace", "summary", path.to_str().unwrap()]);
    assert_eq!(code(&summary), 0, "{}", err(&summary));
    for words in ["session 7: program 7", "scheduler", "worker 0", "readback", "of compute", "sin+mul", "region"] {
        assert!(out(&summary).contains(words), "{words} is missing in {}", out(&summary));
    }
}

#[test]
fn constants_are_measured_once_and_kept_where_the_environment_says() {
    let dir = tempfile::tempdir().unwrap();
    let info = || {
        let output = tidemill(&["info", "--device", "host"]).env("TIDEMILL_CACHE", dir.path()).output().unwrap();
        assert_eq!(code(&output), 0, "{}", err(&output));
        let text = out(&output);
        let constants = text.lines().skip_while(|line| !line.contains("launch"));
        let constants = constants.take_while(|line| !line.contains("Environment"));
        constants.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = info();
    assert_eq!(first, info());
    let files = names(dir.path());
    assert!(files.len() == 1 && files[0].starts_with("costs-host-") && files[0].ends_with(".json"), "{files:?}");
    // The kept file is the one that is used.
    let path = dir.path().join(&files[0]);
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    kept["memory_gb_per_s"] = 123.5.into();
    std::fs::write(&path, kept.to_string()).unwrap();
    assert!(info().iter().any(|line| line.contains("memory") && line.contains("123.5 GB/s")), "{:?}", info());
}

#[test]
fn info_shows_the_host_device() {
    let output = run(&["info", "--device", "host"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    for words in ["Adapters", "Device 0", "float profile", "GB/s", "TIDEMILL_WARMUP", "sum of 1,000,000", " us, took "]
    {
        assert!(out(&output).contains(words), "{words} is missing in {}", out(&output));
    }
}

#[test]
fn monte_carlo_agrees_with_the_closed_form() {
    let output = run(&["monte-carlo", "--device", "host", "--paths", "20000", "--steps", "16", "--stats"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(out(&output).contains("closed form  8.0214"), "{}", out(&output));
    assert!(out(&output).contains("ops_recorded"));
    let wrong = run(&["monte-carlo", "--device", "host", "--volatility", "0"]);
    assert_eq!(code(&wrong), 2);
    let (said, words) = (err(&wrong), ["--volatility", "it has to be a finite number above 0"]);
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_corrupt_picture_is_named_and_the_others_are_developed() {
    let dir = tempfile::tempdir().unwrap();
    let corrupt = dir.path().join("corrupt.png");
    std::fs::write(&corrupt, &std::fs::read(data("astronaut.png")).unwrap()[..3000]).unwrap();
    let folder = dir.path().join("out");
    let astronaut = data("astronaut.png");
    let arguments =
        ["photo", corrupt.to_str().unwrap(), &astronaut, "-o", folder.to_str().unwrap(), "--device", "host"];
    let output = run(&arguments);
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert!(err(&output).contains("corrupt.png") && !out(&output).contains("corrupt.png"), "{}", err(&output));
    assert_eq!(names(&folder), ["astronaut.png"]);
    // If there is no result, no folder is left behind.
    let nothing = dir.path().join("nothing");
    let output = run(&["photo", "/nope.png", "-o", nothing.to_str().unwrap(), "--device", "host"]);
    assert_eq!(code(&output), 1, "{}", err(&output));
    assert!(!nothing.exists());
    let developed = image::open(folder.join("astronaut.png")).unwrap().into_rgb8();
    assert_eq!(developed.dimensions(), (512, 512));
}

#[test]
fn a_result_never_overwrites_the_picture_it_was_made_from() {
    let dir = tempfile::tempdir().unwrap();
    let picture = dir.path().join("a.png");
    std::fs::copy(data("astronaut.png"), &picture).unwrap();
    let before = std::fs::read(&picture).unwrap();
    let output = run(&["photo", picture.to_str().unwrap(), "-o", dir.path().to_str().unwrap(), "--device", "host"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("would overwrite"), "{}", err(&output));
    assert_eq!(std::fs::read(&picture).unwrap(), before);
    assert_eq!(names(dir.path()), ["a.png"]);
}

#[test]
fn concurrent_leaves_a_timeline_that_can_be_summarised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    let name = path.to_str().unwrap();
    let output = run(&["concurrent", "--device", "host", "--sessions", "20", "--elements", "1000", "--trace", name]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(out(&output).contains("20 sessions, 100 gathers"), "{}", out(&output));
    assert!(!events(&path).is_empty());
    let summary = run(&["trace", "summary", name]);
    assert!(out(&summary).contains("Busy time of lanes"), "{}", out(&summary));
}

#[test]
fn a_timeline_that_cannot_be_written_is_an_error_before_anything_runs() {
    let output = run(&["concurrent", "--device", "host", "--trace", "/no/such/folder/t.json"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("cannot write the timeline to /no/such/folder/t.json"), "{}", err(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_exits_with_130_and_leaves_a_timeline_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    let trace = path.to_str().unwrap();
    let mut child = tidemill(&["concurrent", "--device", "host", "--sessions", "200000", "--trace", trace])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It is interrupted once it has begun to record.
    while std::fs::metadata(&path).map_or(0, |m| m.len()) < 1000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // This uses the shell's own `kill`, since a bare machine has no program of that name.
    let interrupt = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), err(&output)), (130, "interrupted\n".to_owned()));
    assert!(!events(&path).is_empty());
}

/// Checks the file in which the command keeps the shaders that a driver compiled: a second process uses the file, and a
/// damaged file is ignored. Adapters whose drivers return no compiled shaders have no such file.
#[test]
fn what_a_driver_compiled_is_kept_and_a_damaged_file_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let run = || {
        let script = "x = rand(1000, 1, 'single'); s = sum(x .* 2 + 1); fprintf('%d\\n', s > 1000)";
        let mut command = tidemill(&["eval", "--device", "gpu", script]);
        command.env("TIDEMILL_CACHE", dir.path()).output().unwrap()
    };
    let kept = || names(dir.path()).into_iter().filter(|name| name.ends_with(".bin")).collect::<Vec<_>>();
    let first = run();
    if code(&first) != 0 && std::env::var_os("TIDEMILL_REQUIRE_GPU").is_none_or(|v| v != "1") {
        eprintln!("skipped: {}", err(&first));
        return;
    }
    assert_eq!((code(&first), out(&first).as_str()), (0, "1\n"), "{}", err(&first));
    let Some(file) = kept().pop().map(|name| dir.path().join(name)) else {
        eprintln!("skipped: this adapter's driver keeps nothing");
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    assert!(whole.len() > 40, "{} bytes", whole.len());
    assert_eq!(code(&run()), 0);
    assert_eq!(std::fs::read(&file).unwrap().len(), whole.len(), "the second run found all of it there");
    for damaged in [&whole[..whole.len() / 2], b"", b"something else entirely"] {
        std::fs::write(&file, damaged).unwrap();
        let output = run();
        assert_eq!((code(&output), out(&output).as_str()), (0, "1\n"), "{}", err(&output));
        assert!(std::fs::read(&file).unwrap().len() > 40, "a new one was kept");
    }
    assert!(names(dir.path()).iter().all(|name| !name.ends_with(".new")), "{:?}", names(dir.path()));
}

#[test]
fn what_planning_makes_of_a_region_is_written_down_pass_by_pass() {
    let folder = tempfile::tempdir().unwrap();
    let dumped = folder.path().join("dump");
    let text = "x = rand (1, 5000); disp (sum (x .* 2 + 1) > 0)";
    let mut command = tidemill(&["eval", text]);
    let output = command.env("TIDEMILL_DUMP", &dumped).env("TIDEMILL_DEVICE", "host").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    let files: Vec<_> = std::fs::read_dir(&dumped).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of = |stage: &str| {
        let all = files.iter().filter(|file| file.extension().is_some_and(|e| e == stage));
        all.map(|file| std::fs::read_to_string(file).unwrap()).collect::<String>()
    };
    assert!(of("form").contains("= rand(): f64 1x5000, Inline"), "{}", of("form"));
    assert!(of("groups").contains("written: n"), "{}", of("groups"));
    assert!(of("plan").contains("kernel 1: reduce"), "{}", of("plan"));
    assert!(of("ir").contains("random uniform key"), "{}", of("ir"));
}
