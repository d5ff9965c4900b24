//! Tests the host memory of scripts: limits of a run and of the runtime, and classes with small elements.

use futures::executor::block_on;
use tidemill::Runtime;
use tidemill_script::error::ScriptError;
use tidemill_script::{Script, Workspace};

const MB: u64 = 1_000_000;

fn host(budget: u64) -> Runtime {
    Runtime::builder().device("host").host_budget(budget).start_blocking().unwrap()
}

fn limited(rt: &Runtime, most: u64, text: &str) -> Result<Workspace, ScriptError> {
    block_on(Script::parse(text)?.memory_max(most).run(&rt.session("limited").open()))
}

fn beyond(rt: &Runtime, most: u64, text: &str) -> ScriptError {
    match limited(rt, most, text) {
        Err(error) => error,
        Ok(_) => panic!("no error from {text:?}"),
    }
}

fn line(error: &ScriptError) -> usize {
    error.place.as_ref().map_or(0, |place| place.source.position(place.span.start).line as usize)
}

#[test]
fn what_goes_beyond_a_scripts_memory_is_an_error_at_its_line() {
    let rt = host(1 << 30);
    for text in [
        "a = complex (ones (1e5, 1), 1);\nb = complex (ones (1e6, 1), 1);",
        "a = ones (1e6, 1, 'int16');\nb = ones (2e6, 1, 'int16');",
        "a = ones (1e6, 1, 'int16');\nb = a + 1; c = a + 2;",
        "a = repmat ('a', 1, 1e6);\nb = [a, a, a, a];",
        "a = ones (1e6, 1, 'int8');\nc = {}; for k = 1:10, c{k} = a + k; end",
        "a = ones (1e6, 1, 'int8');\ns = struct (); for k = 1:10, s.(sprintf ('f%d', k)) = a + k; end",
        "a = '';\nfor k = 1:100, a = [a, repmat('x', 1, 1e5)]; end",
        "a = 'x';\nfor k = 1:40, a = [a a]; end",
        "a = uint16 ([]);\nfor k = 1:100, a(k * 1e5) = k; end",
        "a = 1i;\na(1e6) = 2;",
        "a = zeros (1, 1e5, 'int16');\nb = a(ones (1, 40), :);",
        "a = int8 (1:2000);\nb = a == a'; c = [b; b];",
        "a = sprintf ('%d', 1);\nb = repmat (a, 3000, 2000);",
        "a = {};\nfor k = 1:100, a{k} = sprintf ('%1000000d', k); end",
        "a = num2cell (1);\nb = char (65 * ones (2000, 2000));",
        "a = rand (3e5, 1);\nb = num2str (a(1)); c = a; c(7) = 1i; d = cat (3, c, c);",
        "function y = grown (n), y = ones (n, 1, 'int16'); end\na = grown (10); b = grown (3e6);",
    ] {
        let error = beyond(&rt, 4 * MB, text);
        assert_eq!(error.identifier, "Octave:bad-alloc", "{text}: {}", error.message);
        assert!(error.message.starts_with("out of memory"), "{text}: {}", error.message);
        assert!(text.contains("function") || line(&error) == 2, "{text}: line {}", line(&error));
    }
}

#[test]
fn what_a_script_holds_in_many_small_pieces_counts_as_well() {
    let rt = host(1 << 34);
    for text in [
        "c = {};\nfor k = 1:1e6, c{k} = int16 (1:2000); end",
        "c = cell (1, 1e5);\nfor k = 1:1e5, c{k} = ones (1, 1000) * k; end",
        "s = struct ();\nfor k = 1:1e5, s.(sprintf ('f%d', k)) = ones (1, 1000) * k; end",
        "m = containers.Map ('KeyType', 'double', 'ValueType', 'any');\nfor k = 1:1e5, m(k) = ones (1, 1000) * k; end",
        "c = {};\nfor k = 1:1e5, c = {c, ones(1, 1000) * k}; end",
        "function f (), c = {}; fill ();\nfunction fill (), for k = 1:1e5, c{k} = ones (1, 1000) * k; end, end, end, f ();",
        "1;\nfunction h = f (), c = {}; h = @add; function add (k), c{k} = ones (1, 1000) * k; end, end, h = f (); \
         for k = 1:1e5, h (k); end",
    ] {
        let error = beyond(&rt, 60 * MB, text);
        assert_eq!((error.identifier.as_str(), line(&error)), ("Octave:bad-alloc", 2), "{text}: {}", error.message);
    }
    // Memory that was freed does not count.
    let text = "for k = 1:2e4, c = {ones(1, 1000) * k, k}; end, x = 1;";
    assert_eq!(limited(&rt, 60 * MB, text).unwrap().number("x"), Some(1.0));
}

#[test]
fn a_script_that_catches_the_error_and_lets_go_goes_on() {
    let rt = host(1 << 30);
    let text = "
        n = 0; a = ones (1e6, 1, 'int16');
        try, b = ones (2e6, 1, 'int16'); catch e, n = n + 1; disp (e.identifier), end
        clear a
        b = ones (15e5, 1, 'int16'); disp (sum (b))
        for k = 1:50, c = b(1:1e5) + k; d = {c, c}; end
        disp (n)
    ";
    let workspace = limited(&rt, 4 * MB, text).unwrap();
    assert_eq!(workspace.printed(), "Octave:bad-alloc\n1500000\n1\n");
}

#[test]
fn scripts_share_the_hosts_budget_and_give_it_back() {
    let rt = host(8 * MB);
    let script = Script::parse("a = ones (3e6, 1, 'int16');").unwrap();
    let run = || block_on(script.run(&rt.session("one of many").open()));
    let first = run().unwrap();
    assert_eq!(run().unwrap_err().identifier, "Octave:bad-alloc", "the first one's array is still held");
    drop(first);
    for _ in 0..20 {
        run().unwrap();
    }
    let alone = Script::parse("a = ones (5e6, 1, 'int16');").unwrap();
    assert_eq!(block_on(alone.run(&rt.session("alone").open())).unwrap_err().identifier, "Octave:bad-alloc");
}

/// Returns the process's peak memory since the last call, and its present memory.
#[cfg(target_os = "linux")]
fn peak_and_now() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    (of("VmHWM:"), of("VmRSS:"))
}

/// Runs in a process of its own, as the test's runner calls it, since other tests would add to its memory.
#[cfg(target_os = "linux")]
#[test]
fn arrays_of_small_classes_take_their_own_bytes_while_they_are_computed() {
    if std::env::var_os("TIDEMILL_TEST_ALONE").is_none() {
        let name = "arrays_of_small_classes_take_their_own_bytes_while_they_are_computed";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = alone.args(["--exact", name, "--nocapture"]).env("TIDEMILL_TEST_ALONE", "1").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        return;
    }
    // Each case has statements that come before, a statement, and the bytes that it may take beyond them for each of n
    // elements.
    let cases = [
        ("", "y = ones (n, 1, 'int16');", 2),
        ("", "y = zeros (n, 1, 'int8');", 1),
        ("", "y = repmat (int8 (3), 1, n);", 1),
        ("", "y = repmat ('a', 1, n);", 1),
        ("", "y = repmat ('ab', 2, n / 4);", 1),
        ("", "y = true (1, n);", 1),
        ("x = ones (n, 1, 'int16');", "y = x + 1;", 2),
        ("x = ones (n, 1, 'int16');", "y = x .* x;", 2),
        ("x = ones (n, 1, 'int16');", "y = -x;", 2),
        ("x = ones (n, 1, 'int16');", "y = x > 3;", 1),
        ("x = ones (n, 1, 'int16');", "y = x & x;", 1),
        ("x = ones (n, 1, 'int16');", "y = ! x;", 1),
        ("x = ones (n, 1, 'int16');", "y = abs (x);", 2),
        ("x = ones (n, 1, 'int16');", "y = int8 (x);", 1),
        ("x = ones (n, 1, 'int16');", "y = logical (x);", 1),
        ("x = ones (n, 1, 'int16');", "y = x(1:2:end);", 1),
        ("x = ones (n, 1, 'int16');", "y = x(n:-1:1);", 2),
        ("x = ones (n / 2, 2, 'int16');", "y = x(:, 2);", 1),
        ("x = ones (n / 2, 1, 'int16');", "y = [x; x];", 2),
        ("x = ones (n / 2, 1, 'int16');", "y = [x, x];", 2),
        ("x = ones (n / 2, 1, 'int16');", "y = cat (2, x, x);", 2),
        ("x = ones (n, 1, 'int16');", "y = flip (x);", 2),
        ("x = ones (n, 1, 'int16');", "y = circshift (x, 7);", 2),
        ("x = ones (1000, n / 1000, 'int16');", "y = x';", 2),
        ("x = ones (1000, n / 1000, 'int16');", "y = permute (x, [2, 1]);", 2),
        ("x = ones (1000, 1, 'int16');", "y = x + ones (1, n / 1000, 'int16');", 2),
        ("x = ones (n / 4, 1, 'int16');", "y = x + ones (1, 4, 'int16');", 2),
        ("x = ones (n, 1, 'uint64');", "y = x + 1;", 8),
        ("x = repmat ('a', 1, n);", "y = upper (x);", 1),
        ("x = repmat ('a', 1, n);", "y = x == 'b';", 1),
        ("x = repmat ('a', 1, n);", "y = [x, x];", 2),
        ("x = repmat ('a', 1, n);", "y = uint8 (x);", 1),
        ("x = repmat (uint8 (65), 1, n);", "y = char (x);", 1),
        ("x = true (n, 1);", "y = ! x;", 1),
        ("x = true (n, 1);", "y = x & x;", 1),
        ("x = complex (ones (n / 8, 1), 1);", "y = x + x;", 2),
        // These have a result, and a few bytes beside it while it is computed.
        ("x = repmat ('ab', 1, n / 2);", "y = sort (x);", 2),
        ("x = ones (n, 1, 'int16');", "y = sort (x, 'descend');", 3),
        ("x = repmat ('ab', 1, n / 2);", "[y, k] = sort (x);", 10),
        ("x = repmat ('ab', 1, n / 2);", "y = unique (x);", 1),
        ("x = true (n, 1);", "y = unique (x);", 1),
        ("x = ones (n, 1, 'int16');", "[y, i, j] = unique (x);", 9),
        ("x = zeros (n, 1, 'int8'); x(3) = 1;", "y = find (x);", 1),
        ("x = repmat ('ab', 1, n / 2);", "y = nonzeros (x);", 4),
        ("x = ones (n, 1, 'int8');", "y = bitand (x, int8 (3));", 1),
        ("x = ones (n, 1, 'uint16');", "y = bitshift (x, 2);", 2),
        ("x = ones (n, 1, 'uint16');", "y = bitcmp (x);", 2),
        ("x = repmat (char (200), 1, n); x(7) = 'a';", "y = regexp (x, 'a');", 5),
        ("x = ones (1, n / 2, 'int8');", "y = repelem (x, 2);", 1),
    ];
    let n = 4_000_000u64;
    let rt = host(1 << 31);
    let slack = 5 * MB;
    let mut wrong = Vec::new();
    for (before, text, bytes) in cases {
        // Sizes are constants, since an array of the runtime would be computed in another way.
        let session = rt.session("small").open();
        let script = Script::parse(&format!("n = {n}; {before} z = 1;")).unwrap();
        let kept = block_on(script.run(&session)).unwrap();
        drop(kept);
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (_, empty) = peak_and_now();
        let script = Script::parse(&format!("n = {n}; {before} {text}")).unwrap();
        let kept = block_on(script.run(&session)).unwrap();
        let held = kept.get("x").map_or(0, |x| x.len() as u64 * x.class().bytes() as u64 * (1 + x.is_complex() as u64));
        let (peak, _) = peak_and_now();
        let taken = peak.saturating_sub(empty).saturating_sub(held);
        if taken > bytes * n + slack {
            wrong.push(format!("{before} {text} {:.2} bytes an element", taken as f64 / n as f64));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tests that the memory of a script and of the runtime counts together: none of these fits twice.
#[test]
fn a_script_and_its_runtime_share_the_hosts_budget() {
    let rt = host(64 * MB);
    for text in [
        // This takes 40 MB in the script, and then as much on the runtime.
        "a = complex (ones (25e5, 1), 1);\nx = sort (rand (5e6, 1)); disp (x(3))",
        // This takes 40 MB on the runtime, and then as much in the script.
        "x = sort (rand (3e6, 1)); disp (x(3))\na = complex (ones (3e6, 1), 1); disp (x(3))",
        "a = ones (15e6, 1, 'int16');\nx = sort (rand (5e6, 1)); disp (x(7) + double (a(2)))",
    ] {
        let script = Script::parse(text).unwrap();
        let Err(error) = block_on(script.run(&rt.session("both").open())) else { panic!("no error from {text:?}") };
        assert_eq!((error.identifier.as_str(), line(&error)), ("Octave:bad-alloc", 2), "{text}: {}", error.message);
    }
    // Memory that is freed on either side is available to the other.
    let text = "for k = 1:5\n  x = sort (rand (2e6, 1)); disp (x(3)); clear x\n  \
                a = complex (ones (25e5, 1), 1); n = numel (a); clear a\nend";
    block_on(Script::parse(text).unwrap().run(&rt.session("in turn").open())).unwrap();
}
