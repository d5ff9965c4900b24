//! Checks the tour in ARCHITECTURE.md: runs the op that it follows and compares the events with a snapshot, and looks
//! up the functions, files and messages that it names. Looks up the names in docs/add-an-op.md, too.

mod common;

use common::wait;
use expect_test::expect;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidemill::{Array, Runtime, RuntimeBuilder, Session};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts between backticks, which do not go over the end of a line.
fn quoted(text: &str) -> Vec<&str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// Whether Rust source text defines a function of this name.
fn defines(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}"))
        .any(|(at, found)| !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The variants of a public enum.
fn variants<'t>(text: &'t str, name: &str) -> BTreeSet<&'t str> {
    let begin = text.find(&format!("pub enum {name} {{")).unwrap_or_else(|| panic!("there is no enum {name}"));
    let body = &text[begin..begin + text[begin..].find("\n}").unwrap()];
    let named = |line: &'t str| {
        let rest = line.strip_prefix("    ")?;
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        rest.starts_with(|c: char| c.is_uppercase()).then(|| &rest[..end])
    };
    body.lines().filter_map(named).collect()
}

/// Records the op of the tour.
fn product_and_sum(s: &Session) -> (Array, Array) {
    let x = s.from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let y = (&x * 2.0).sum(..);
    (x, y)
}

/// The events of the op on every lane of a timeline, in order, without times.
fn story(builder: RuntimeBuilder) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("story.json");
    let runtime = match builder
        .fold_elements_max(0)
        .worker_threads(1)
        .idle_release(Duration::MAX)
        .timeline(&path)
        .start_blocking()
    {
        Ok(runtime) => runtime,
        Err(error) if common::requires_gpu() => panic!("a GPU is required: {error}"),
        Err(_) => return None,
    };
    let session = common::session(&runtime);
    let (x, y) = product_and_sum(&session);
    assert_eq!(wait(y.item::<f32>()).unwrap(), 42.0);
    drop((x, y, session));
    wait(runtime.shutdown()).unwrap();

    let events: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let key = |event: &serde_json::Value| (event["pid"].as_i64(), event["tid"].as_i64());
    let name = |event: &serde_json::Value| event["name"].as_str().unwrap_or_default().to_owned();
    let rows: Vec<_> = (events.iter().filter(|e| e["ph"] == "M" && e["name"] == "thread_name"))
        .map(|e| (key(e), e["args"]["name"].as_str().unwrap().to_owned()))
        .collect();
    let mut text = String::new();
    for lane in ["session", "scheduler", "fusion", "residency", "worker", "queue", "upload", "compute", "readback"] {
        let own = |e: &&serde_json::Value| rows.iter().any(|(k, row)| *k == key(e) && row.starts_with(lane));
        let mut shown: Vec<_> = events.iter().filter(|e| e["ph"] == "X" || e["ph"] == "i").filter(own).collect();
        shown.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
        for event in shown {
            // The numbers of batches and devices are left out of the story.
            let name = name(event);
            let what = if lane == "queue" { name.split(' ').next().unwrap() } else { &name };
            text.push_str(&format!("{lane}: {what}"));
            for (name, value) in event["args"].as_object().into_iter().flatten().filter(|(name, _)| *name != "device") {
                text.push_str(&format!(", {name} {value}"));
            }
            text.push('\n');
        }
    }
    // The last segment holds only drops. If the ring receives it together with the session's end, it discards it, so
    // the event is left out.
    Some(text.replace("scheduler: segment cut\nscheduler: session closed\n", "scheduler: session closed\n"))
}

/// The lines of the story for some lanes.
fn lanes(story: &str, names: &[&str]) -> Vec<String> {
    let wanted = |line: &&str| names.iter().any(|name| line.starts_with(name));
    story.lines().filter(wanted).map(str::to_owned).collect()
}

#[test]
fn the_op_of_the_tour_has_this_story_on_the_host() {
    expect![[r#"
        session: record
        session: gather
        scheduler: session opened
        scheduler: segment cut
        scheduler: region, because "asked for", cut "Demand", nodes 2, region 0, session 0
        scheduler: value arrived
        scheduler: region finished
        scheduler: session closed
        scheduler: shutdown asked
        fusion: region cut
        residency: plan ready
        residency: readback done
        residency: batch finished
        residency: value retired
        residency: value retired
        queue: batch, region 0
        compute: mul+sum, bytes read 24, bytes written 4, ops 2
    "#]]
    .assert_eq(&story(Runtime::builder().device("host")).unwrap());
}

#[test]
fn on_a_gpu_only_a_compile_worker_and_the_device_are_added_to_the_story() {
    let host = story(Runtime::builder().device("host")).unwrap();
    let Some(gpu) = story(Runtime::builder().device("gpu")) else { return };
    let same = ["session", "scheduler", "residency"];
    assert_eq!(lanes(&gpu, &same), lanes(&host, &same));
    assert_eq!(lanes(&gpu, &["fusion"]), ["fusion: region cut", "fusion: pipelines ready"]);
    assert_eq!(lanes(&gpu, &["worker"]), ["worker: compile, region 0"]);
    let kernels = lanes(&gpu, &["compute"]);
    assert!(kernels.iter().any(|line| line.starts_with("compute: mul+sum")), "{gpu}");
    assert_eq!(lanes(&gpu, &["queue"]).len(), 1, "one batch: {gpu}");
}

#[test]
fn the_op_of_the_tour_is_explained_as_one_kernel() {
    let runtime = Runtime::builder().device("host").fold_elements_max(0).start_blocking().unwrap();
    let (_x, y) = product_and_sum(&common::session(&runtime));
    expect![[r#"
        region: 2 op(s) on host (asked for), cut by Demand
          kernel 1: reduce 1 x 6: 2 op(s): mul+sum; reads 24 B, writes 4 B
            reads input v0.0: 6 x f32
            writes output v0.2: 1 x f32
    "#]]
    .assert_eq(&wait(y.explain()).unwrap());
}

#[test]
fn every_function_that_the_architecture_names_exists_where_it_says() {
    let text = read("ARCHITECTURE.md");
    let tour = &text[text.find("## The life of one op").expect("the tour is there")..];
    let mut named = 0;
    for (path, name) in quoted(&text).into_iter().filter_map(|quote| quote.split_once(".rs::")) {
        assert!(defines(&read(format!("{path}.rs")), name), "{path}.rs has no function {name}");
        named += usize::from(tour.contains(&format!("{path}.rs::{name}")));
    }
    assert!(named >= 40, "the tour names {named} functions");
    assert!(!defines("fn apply_all(", "apply") && defines("fn apply<T>(", "apply"), "the search itself");
}

#[test]
fn the_architecture_names_every_folder_and_file_of_the_source_and_none_that_is_not_there() {
    let text = read("ARCHITECTURE.md");
    let paths: BTreeSet<&str> = quoted(&text)
        .into_iter()
        .map(|quote| quote.split("::").next().unwrap())
        .filter(|quote| {
            ["src/", "crates/", "tests", "benches", "examples", "traces", "docs", ".ci"]
                .iter()
                .any(|p| quote.starts_with(p))
        })
        .filter(|quote| quote.contains('/'))
        .collect();
    for path in &paths {
        assert!(root().join(path).exists(), "{path} does not exist");
    }
    let rooms = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in rooms(root().join("src")).chain(rooms(root().join("crates"))) {
        let mut name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        name.push_str(if path.is_dir() { "/" } else { "" });
        assert!(paths.contains(name.as_str()), "{name} is not in ARCHITECTURE.md");
    }
}

#[test]
fn the_how_to_of_ops_names_files_that_exist_and_every_column_of_the_table() {
    let text = read("docs/add-an-op.md");
    let paths: BTreeSet<&str> = quoted(&text)
        .into_iter()
        .filter(|quote| ["src/", "crates/", "tests/", "examples/", "docs/"].iter().any(|p| quote.starts_with(p)))
        .collect();
    assert!(paths.len() >= 25, "it names {} files", paths.len());
    for path in paths {
        assert!(root().join(path).exists(), "{path} does not exist");
    }
    // The names of the columns of a row, in order: each is the first word of a line.
    let columns = |row: &str| -> Vec<String> {
        let names = row.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        names.take_while(|name| !name.starts_with('[') && !name.starts_with("```")).map(str::to_owned).collect()
    };
    let row = |text: &str| columns(&text[text.find("[Cbrt").or(text.find("[Neg")).expect("a row of the table")..]);
    assert_eq!(row(&text), row(&read("src/graph/table.rs")));
}

#[test]
fn the_architecture_lists_every_message_of_every_actor() {
    let text = read("ARCHITECTURE.md");
    let mut files = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| `") && line.contains("src/contract/messages/")) {
        let quotes = quoted(row);
        let (name, file, listed) = (quotes[0], quotes[1], quotes[2..].iter().copied().collect::<BTreeSet<_>>());
        assert_eq!(listed, variants(&read(file), name), "{name}");
        files.insert(file);
    }
    for path in std::fs::read_dir(root().join("src/contract/messages")).unwrap().map(|entry| entry.unwrap().path()) {
        let file = format!("src/contract/messages/{}", path.file_name().unwrap().to_string_lossy());
        assert_eq!(files.contains(file.as_str()), !file.ends_with("/mod.rs"), "{file}");
    }
}
