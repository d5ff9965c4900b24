//! Feeds random texts to the parser and to the machine: mutations of the grammar's corpus, and of the cases that are
//! compared with Octave, for `TIDEMILL_FUZZ_SECONDS`: 2 by default, a minute for each target with `TIDEMILL_TESTS=all`.
//!
//! A target is a function on a text that must neither panic nor take long. A failure prints the shortest text that
//! still fails, and the seed (`TIDEMILL_FUZZ_SEED` repeats a run). If the process ends at once (by a stack overflow, or
//! out of memory), the text is in `tidemill-fuzz.m` in the folder of temporary files.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tidemill::Runtime;
use tidemill::testing::rounds;
use tidemill_script::Script;
use tidemill_script::env::{Env, Options};
use tidemill_script::interrupt::Interrupt;
use tidemill_script::machine::{Interp, is_incomplete};
use tidemill_script::output::Output;
use tidemill_script::source::Source;
use tidemill_script::testing::{dump, families, parse};

/// How long one text may take, in processor time if that is known. It is far more than any text needs, but less than a
/// scan takes that begins anew at every byte.
const TEXT_TIME_MAX: Duration = Duration::from_secs(2);

/// How long one script runs before it is interrupted, and how long it may then take to end.
const RUN_TIME_MAX: Duration = Duration::from_millis(500);
const END_TIME_MAX: Duration = Duration::from_secs(120);

/// The most elements of a script's array here, and the largest allocation that may follow from that.
const ELEMENTS_MAX: usize = 1 << 16;
const ALLOCATION_MAX: usize = 256 << 20;

/// The greatest length of a text.
const TEXT_BYTES_MAX: usize = 8_000;

/// Words that a mutation inserts.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "if ", "else ", "elseif ", "end ", "endif ", "while ", "for k = ", "do ", "until ", "switch ", "case ", "otherwise ",
    "try ", "catch ", "unwind_protect ", "function ", "return ", "break ", "global ", "persistent ", "parfor ", "x", "f(",
    "x{", ".a", ".(", "@(x) ", "@", "[", "]", "{", "}", "(", ")", ",", ";", "\n", "\r\n", " ", "\t", "'", "\"", "\\", ".'",
    "...", "...\n", "%", "#", "%{\n", "%}\n", "=", "==", "~", "!", "+", "-", "++", "--", "+=", "*", "^", ".^", "&&", "||",
    ":", "1", "0x1", "1e", "3i", ".", "\0", "\u{e9}", "\u{feff}", "end", "[a, b] = ", "hold on", "'it''s'", "\"\\x41\"",
];

/// The generator of random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

/// Returns the snippets of the grammar's corpus.
fn grammar() -> Vec<Vec<u8>> {
    let mut snippets = vec![Vec::new()];
    for line in include_str!("script/grammar.txt").lines() {
        match line.strip_prefix("> ") {
            Some(code) => {
                let snippet = snippets.last_mut().expect("there is one from the beginning");
                snippet.extend(code.bytes().chain([b'\n']));
            }
            None if snippets.last().is_some_and(|snippet| !snippet.is_empty()) => snippets.push(Vec::new()),
            None => {}
        }
    }
    snippets
}

/// Returns the statements that are compared with Octave.
fn statements() -> Vec<Vec<u8>> {
    let folder = format!("{}/tests/script/octave", env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of recorded cases").flatten() {
        let text = std::fs::read(entry.path()).unwrap_or_default();
        let lines = text.split(|&b| b == b'\n').filter_map(|line| line.strip_prefix(b">>> "));
        all.extend(lines.map(|line| [line, b"\n"].concat()));
    }
    all.sort();
    all.dedup();
    all
}

/// Changes a text in one place.
fn mutate(text: &mut Vec<u8>, random: &mut Random, corpus: &[Vec<u8>]) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(12)).min(text.len());
    match random.below(9) {
        0 => drop(text.drain(at..end)),
        1 => text.truncate(at),
        2 => drop(text.splice(at..at, random.pick(WORDS).bytes())),
        3 => drop(text.splice(at..end, random.pick(WORDS).bytes())),
        4 => drop(text.splice(at..at, random.pick(corpus).iter().copied())),
        5 => text.extend(random.pick(corpus)),
        6 => {
            let piece = text[at..end].repeat(1 + random.below(40));
            text.splice(at..at, piece);
        }
        7 => {
            let byte = random.next() as u8;
            text.insert(at, byte);
        }
        _ => {
            let to = random.below(text.len() + 1);
            let piece = text[at..end].to_vec();
            text.splice(to..to, piece);
        }
    }
    text.truncate(TEXT_BYTES_MAX);
}

/// Returns how long this thread has run on a processor, if the system reports it, since other programs may use the
/// machine, too.
fn busy() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Whether the target handles the text without a panic, and soon enough.
fn stands(target: fn(&str), text: &str) -> bool {
    let (begin, begin_busy) = (Instant::now(), busy());
    let is_calm = catch_unwind(AssertUnwindSafe(|| target(text))).is_ok();
    let took = match (begin_busy, busy()) {
        (Some(begin), Some(end)) => end - begin,
        _ => begin.elapsed(),
    };
    is_calm && took < TEXT_TIME_MAX
}

/// Removes pieces from the text as long as it still fails.
fn shrink(target: fn(&str), text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    let mut piece = text.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < text.len() {
            let mut shorter = text.clone();
            shorter.drain(at..(at + piece).min(text.len()));
            if stands(target, &shorter.iter().collect::<String>()) {
                at += piece;
            } else {
                text = shorter;
            }
        }
        piece /= 2;
    }
    text.into_iter().collect()
}

fn number_from(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Calls a target with mutated texts until its time is over.
fn fuzz(name: &str, target: fn(&str), corpus: &[Vec<u8>], generate: fn(&mut Random) -> Option<String>) {
    let seed = number_from("TIDEMILL_FUZZ_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number_from("TIDEMILL_FUZZ_SECONDS", rounds(2, 15)));
    let mut random = Random(seed);
    // This collects many failures before one is fixed.
    let goes_on = std::env::var_os("TIDEMILL_FUZZ_GO_ON").is_some();
    let mut texts = 0u64;
    while Instant::now() < end {
        let generated = generate(&mut random).map(String::into_bytes);
        let is_generated = generated.is_some();
        let mut text = generated.unwrap_or_else(|| random.pick(corpus).clone());
        for change in 0..=random.below(6) {
            // Generated texts are first tried unchanged. Written texts were tried before.
            if change > 0 || !is_generated {
                mutate(&mut text, &mut random, corpus);
            }
            let text = String::from_utf8_lossy(&text);
            texts += 1;
            if !stands(target, &text) {
                if goes_on {
                    println!("{name} fails on {text:?}");
                    continue;
                }
                panic!("{name} fails on {:?}, text {texts} of seed {seed}", shrink(target, &text));
            }
        }
    }
    println!("{name}: {texts} texts");
}

/// Parses a text: the result is a tree, or an error whose place lies in the text.
fn parses(text: &str) {
    let _ = is_incomplete(text);
    match parse(&Source::new("fuzz", text)) {
        Ok(file) => drop(dump::file(&file)),
        Err(error) => {
            let span = error.place.expect("every syntax error has a place").span;
            assert!(text.get(span.range()).is_some(), "{span:?} lies outside of the text");
        }
    }
}

#[test]
fn any_text_is_parsed_or_refused() {
    fuzz("the parser", parses, &grammar(), |_| None);
}

/// An allocator that notes the largest request.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the promises that the system's allocator needs.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Words of texts that are not run, since they reach beyond the script or wait for a person.
const NOT_RUN: &[&str] = &[
    "system", "unix", "save", "fopen", "imwrite", "delete", "unlink", "mkdir", "rmdir", "addpath", "rmpath",
    "csvwrite", "dlmwrite", "write", "rename", "movefile", "copyfile", "setenv", "putenv", "diary", "input",
    "keyboard", "pause", "sleep", "cd", "source", "run", "load", "fread", "fget", "fscanf", "textscan", "fclose",
    "getpid", "shell",
];

/// Values in the programs.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "0", "1", "-1", "2", "3", "0.5", "-0", "1e10", "1e300", "NaN", "Inf", "-Inf", "[]", "zeros (0, 3)", "zeros (3, 0)",
    "ones (2, 3)", "[1 2 3]", "[1; 2; 3]", "[3 1 2; 9 7 8]", "magic (4)", "reshape (1:24, [2 3 4])", "1:5", "5:-1:1", "0:0.1:1",
    "single (2.5)", "int8 (-128)", "int8 ([1 -2 127])", "uint8 (200)", "int32 (7)", "int64 (9007199254740993)",
    "uint64 (18446744073709551615)", "true", "[true false true]", "'abc'", "''", "\"a\\n\"", "['ab'; 'cd']", "1i", "[1+2i 3]",
    "{}", "{1, 'a'}", "{{1}, [2 3]; 'x', @sin}", "struct ()", "struct ('a', 1)", "struct ('a', {1, 2, 3})", "@sin", "@(x) x + 1",
    "@(varargin) numel (varargin)", "linspace (0, 1, 9)", "rand (3)", "-rand (2, 2)", "single ([1 NaN; 3 4])", "':'", "'all'",
    "'omitnan'", "'%d %s\\n'", "'rows'", "1e5", "-5", "x", "y", "z", "c", "s", "gpuArray ([1 2 3])", "5000", "zeros (100)",
];

/// Returns a program of a few statements in half of the calls; `None` means that a snippet is used.
fn program(random: &mut Random) -> Option<String> {
    if random.below(3) == 0 {
        return None;
    }
    let mut text =
        String::from("x = [3 1 2]; y = magic (4); z = 2.5; c = {1, 'two'; [3 4], {}}; s = struct ('a', {1, 2});\n");
    for _ in 0..=random.below(4) {
        let statement = statement(random, 2);
        text.push_str(&statement);
        text.push('\n');
    }
    Some(text)
}

fn statement(random: &mut Random, depth: usize) -> String {
    let value = |random: &mut Random| expression(random, 2);
    let variable = |random: &mut Random| *random.pick(&["x", "y", "z", "c", "s"]);
    let shown = *random.pick(&["", ";"]);
    match random.below(if depth > 0 { 14 } else { 9 }) {
        0 | 1 => format!("{}{shown}", value(random)),
        2 => format!("{} = {}{shown}", variable(random), value(random)),
        3 => format!("{}({}) = {}{shown}", variable(random), subscripts(random), value(random)),
        4 => format!("{}{{{}}} = {}{shown}", variable(random), subscripts(random), value(random)),
        5 => format!("{}.a = {}{shown}", variable(random), value(random)),
        6 => format!("{}({}) = []{shown}", variable(random), subscripts(random)),
        7 => format!("[{}, {}] = {}{shown}", variable(random), variable(random), call(random)),
        8 => {
            format!("[{}{{{}}}, {}] = {}{shown}", variable(random), subscripts(random), variable(random), call(random))
        }
        9 => format!("for k = {}, {}, end", value(random), statement(random, depth - 1)),
        10 => format!(
            "if {}, {}, else, {}, end",
            value(random),
            statement(random, depth - 1),
            statement(random, depth - 1)
        ),
        11 => format!("try, {}, catch e, disp (e.message), end", statement(random, depth - 1)),
        12 => format!("switch {}, case {}, {}, end", value(random), value(random), statement(random, depth - 1)),
        _ => format!("{} += {}{shown}", variable(random), value(random)),
    }
}

fn subscripts(random: &mut Random) -> String {
    let one = |random: &mut Random| match random.below(4) {
        0 => ":".to_string(),
        1 => random
            .pick(&["end", "end + 1", "1:end", "[]", "end:-1:1", "2", "logical ([1 0 1])", "0", "1.5"])
            .to_string(),
        _ => expression(random, 1),
    };
    (0..=random.below(3)).map(|_| one(random)).collect::<Vec<_>>().join(", ")
}

fn call(random: &mut Random) -> String {
    let (_, family) = random.pick(families());
    let name = random.pick(family).name;
    let arguments: Vec<String> = (0..random.below(5)).map(|_| expression(random, 1)).collect();
    format!("{name} ({})", arguments.join(", "))
}

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(VALUES).to_string();
    }
    let below = |random: &mut Random| expression(random, depth - 1);
    match random.below(9) {
        0 | 1 => random.pick(VALUES).to_string(),
        2..=4 => call(random),
        5 => {
            let operators = [
                "+", "-", "*", "/", "\\", "^", ".*", "./", ".\\", ".^", "==", "!=", "<", ">=", "&", "|", "&&", "||",
                ":",
            ];
            format!("({}) {} ({})", below(random), random.pick(&operators), below(random))
        }
        6 => format!("[{}, {}; {}]", below(random), below(random), below(random)),
        7 => format!("{}({})", random.pick(&["x", "y", "c", "s"]), subscripts(random)),
        _ => format!("{}{}", below(random), random.pick(&["'", ".'", ".a", "{1}", "(1)", "(:)", "(end)"])),
    }
}

/// An output that accepts text, and is closed after a while.
struct Bounded(usize);

impl Output for Bounded {
    fn out(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_sub(bytes.len());
    }
    fn err(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_sub(bytes.len());
    }
    fn closed(&self) -> bool {
        self.0 == 0
    }
}

/// The runtime of all runs.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::builder().device("host").start_blocking().expect("the host device always opens"));

/// Runs a text: the result is an end, or an error whose place lies in the text, within time and memory. Texts of even
/// length run on the host, and others on the runtime.
fn runs(text: &str) {
    if NOT_RUN.iter().any(|word| text.contains(word)) {
        return;
    }
    let Ok(script) = Script::from_source(&Source::new("fuzz", text)) else { return };
    let left = std::env::temp_dir().join("tidemill-fuzz.m");
    std::fs::write(&left, text).expect("a folder of temporary files");
    let options = Options {
        host_elements_max: if text.len().is_multiple_of(2) { 4096 } else { 0 },
        elements_max: ELEMENTS_MAX,
        recursion_max: 64,
        ..Options::default()
    };
    let session = RUNTIME.session("fuzz").seed(1).open();
    let mut interp = Interp::new(Env::new(session, Box::new(Bounded(1 << 20)), options));
    LARGEST.store(0, Ordering::Relaxed);
    let result = {
        let _watch = Watch::over(interp.interrupt.clone(), text);
        futures::executor::block_on(script.run_on(&mut interp, text.len().is_multiple_of(3)))
    };
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= ALLOCATION_MAX, "{largest} bytes were allocated at once");
    if let Err(error) = result {
        let place = error.place.expect("every error has a place");
        assert!(place.source.text.get(place.span.range()).is_some(), "{:?} lies outside of the text", place.span);
    }
}

/// Interrupts a script that runs for long. If that does not end the script, prints the text and ends the process.
struct Watch(std::sync::mpsc::Sender<()>);

impl Watch {
    fn over(interrupt: Arc<Interrupt>, text: &str) -> Watch {
        let (sender, ended) = channel();
        let text = text.to_string();
        std::thread::spawn(move || {
            if ended.recv_timeout(RUN_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                interrupt.raise();
                if ended.recv_timeout(END_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("the interpreter does not end: {text:?}");
                    std::process::abort();
                }
            }
        });
        Watch(sender)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may have ended already.
        let _ = self.0.send(());
    }
}

#[test]
fn any_text_runs_to_an_end_or_an_error() {
    let mut corpus = grammar();
    corpus.extend(statements());
    fuzz("the interpreter", runs, &corpus, program);
}
