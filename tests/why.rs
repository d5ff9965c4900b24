//! The timeline's *why* records: each decision is an instant event with its reason and its numbers.

mod common;

use common::{gpu, session, wait};
use std::path::Path;
use tidemill::testing::Injection;
use tidemill::{Array, Runtime, RuntimeBuilder};

/// Runs a program with a timeline. Returns the names and details of the timeline's instant events.
fn reasons(
    set: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    program: impl FnOnce(&Runtime),
) -> Option<Vec<(String, serde_json::Value)>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("why.json");
    let runtime = gpu(|b| set(b.fold_elements_max(0).timeline(&path)))?;
    program(&runtime);
    wait(runtime.shutdown()).unwrap();
    Some(instants(&path))
}

fn instants(path: &Path) -> Vec<(String, serde_json::Value)> {
    let events: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let instants = events.into_iter().filter(|event| event["ph"] == "i");
    instants.map(|event| (event["name"].as_str().unwrap().to_owned(), event["args"].clone())).collect()
}

fn named<'a>(all: &'a [(String, serde_json::Value)], name: &str) -> Vec<&'a serde_json::Value> {
    all.iter().filter(|(own, _)| own == name).map(|(_, details)| details).collect()
}

#[test]
fn a_region_says_where_it_was_cut_and_why_its_device_was_chosen() {
    let program = |rt: &Runtime| {
        let s = session(rt);
        let x = s.full(2.0f32, [1000, 1]) * 3.0;
        assert_eq!(wait(x.sum(..).item::<f32>()).unwrap(), 6000.0);
    };
    let Some(all) = reasons(|b| b, program) else { return };
    let regions = named(&all, "region");
    assert_eq!(regions.len(), 1, "{all:?}");
    assert!(!regions[0]["cut"].as_str().unwrap().is_empty() && !regions[0]["because"].as_str().unwrap().is_empty());
    assert!(named(&all, "kernel split").is_empty() && named(&all, "eviction").is_empty(), "{all:?}");
}

#[test]
fn a_kernel_that_a_budget_cuts_says_which() {
    let few_bindings = Injection { bindings_max: Some(8), ..Injection::default() };
    let program = |rt: &Runtime| {
        let s = session(rt);
        let x: Vec<Array> = (0..40).map(|i| s.from_vec(vec![i as f32; 500], [500, 1]).unwrap()).collect();
        let sum = x.iter().fold(s.zeros::<f32>([500, 1]), |sum, x| sum + x);
        // The second time, the plan comes from the cache.
        for _ in 0..2 {
            assert_eq!(wait((&sum + 1.0).gather::<f32>()).unwrap().into_vec(), vec![781.0; 500]);
        }
    };
    let Some(all) = reasons(|b| b.injection(few_bindings), program) else { return };
    let splits = named(&all, "kernel split");
    assert!(!splits.is_empty(), "{all:?}");
    for split in splits {
        assert_eq!(split["because"], "a kernel would otherwise bind more buffers than it may");
        assert!(split["ops"].as_str().unwrap().contains("add") && split["buffers"].as_i64().unwrap() > 1, "{split}");
    }
}

#[test]
fn what_leaves_a_full_device_says_who_wanted_its_memory() {
    let mut evictions = 0;
    let program = |rt: &Runtime| {
        let s = session(rt);
        // Sixteen values of 2 MB on a device with a budget of 8 MB.
        let held: Vec<Array> = (0..16).map(|i| s.rand::<f32>([1 << 19, 1]) + f64::from(i)).collect();
        held.iter().for_each(|x| wait(x.eval()).unwrap());
        for (i, x) in held.iter().enumerate() {
            let mean = f64::from(wait(x.mean(..).item::<f32>()).unwrap());
            assert!((mean - 0.5 - i as f64).abs() < 0.01, "{i}: {mean}");
        }
        evictions = rt.stats().evictions;
    };
    let Some(all) = reasons(|b| b.device_budget(8 << 20), program) else { return };
    let told = named(&all, "eviction");
    assert!(evictions > 0 && told.len() as u64 == evictions, "{evictions} evictions, {} told", told.len());
    for eviction in told {
        let number = |name: &str| eviction[name].as_i64().unwrap_or_else(|| panic!("{name} of {eviction}"));
        assert!(number("bytes") > 0 && number("bytes wanted") > 0 && number("device") == 1, "{eviction}");
        assert_eq!(number("budget"), 8 << 20);
        assert!(number("bytes in use") <= 8 << 20, "{eviction}");
        assert!(eviction["because"].as_str().unwrap().starts_with("memory is short"), "{eviction}");
    }
}
