//! Many concurrent tasks on one runtime: each runs a random program, some cancel gathers, some make mistakes.

mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use common::{gpu, wait};
use programs::{Program, Twist, decode, run};
use std::path::Path;
use tidemill::testing::rounds;
use tidemill::{Error, ErrorKind, Runtime, RuntimeBuilder, Session};

/// The number of concurrent tasks.
fn tasks() -> u64 {
    rounds(60, 200)
}

/// The program of a task. There are `structures` different ones, so that a GPU compiles few pipelines; tasks differ in
/// how they run it.
fn program(task: u64, structures: u64) -> Program {
    let structure = task % structures;
    let steps: Vec<u64> = (0..12).map(|i| structure.wrapping_mul(1000) + i).collect();
    decode(structure, &steps)
}

/// Makes mistakes, and checks that the faulty op and its dependents fail, and its neighbours do not.
async fn mistakes(s: &Session, task: u64) -> Result<(), String> {
    let x = s.from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let other = s.from_vec(vec![1.0f32; 4], [4, 1]).unwrap();
    let far = s.from_vec(vec![0i32, 6 + task as i32], [2, 1]).unwrap();
    let (bad, kind) = match task % 3 {
        0 => (&x + &other, ErrorKind::Shape),
        1 => (x.take(&far), ErrorKind::Index),
        _ => (x.slice((0..3, ..)), ErrorKind::Index),
    };
    let (good, worse) = ((&x * 2.0).sum(0), (&bad * 2.0).sum(..));
    let (good, bad, worse) = futures::join!(good.gather::<f32>(), bad.gather_any(), worse.gather_any());
    let is = |e: Option<Error>| e.map(|e| e.kind());
    let kinds = (is(bad.err()), is(worse.err()));
    if kinds != (Some(kind), Some(kind)) {
        return Err(format!("expected {kind:?} twice, got {kinds:?}"));
    }
    let good = good.map_err(|e| format!("a neighbour of a mistake: {e}"))?;
    if good.as_slice() != [6.0, 14.0, 22.0] { Err(format!("a neighbour of a mistake: {good:?}")) } else { Ok(()) }
}

/// Runs one task. The error says what was wrong.
async fn task(s: Session, task: u64, structures: u64) -> Result<(), String> {
    let program = program(task, structures);
    match task % 4 {
        // The first gathers are cancelled. The values that are gathered at the end must be right nevertheless.
        0 => run(&s, &program, Twist::Cancel).await,
        1 => {
            let both = futures::join!(run(&s, &program, Twist::None), mistakes(&s, task));
            both.0.and(both.1)
        }
        _ => run(&s, &program, Twist::None).await,
    }
}

/// The last and the greatest reading of the counter of open gathers, from a timeline.
fn gathers_open(timeline: &Path) -> (u64, u64) {
    let events: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(timeline).unwrap()).unwrap();
    let readings = events.iter().filter(|e| e["ph"] == "C" && e["name"] == "gathers open");
    let value = |e: &serde_json::Value| e["args"].as_object().unwrap().values().next().unwrap().as_u64().unwrap();
    let readings: Vec<u64> = readings.map(value).collect();
    (*readings.last().expect("gathers were counted"), *readings.iter().max().unwrap())
}

fn soak(device: &str, open: impl FnOnce(RuntimeBuilder) -> Option<Runtime>, structures: u64) {
    let folder = tempfile::tempdir().unwrap();
    let timeline = folder.path().join("soak.json");
    let Some(rt) = open(Runtime::builder().device(device).fold_elements_max(0).timeline(&timeline)) else { return };
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let shared = rt.session("shared").seed(1).open();
    let mut resident = Vec::new();
    for round in 0..3 {
        let tasks: Vec<_> = (0..tasks())
            .map(|i| {
                // Every fifth task records on a tape that is shared with others.
                let s = if i % 5 == 0 { shared.clone() } else { rt.session("task").seed(i).open() };
                executor.spawn(task(s, i, structures))
            })
            .collect();
        let mut wrong = Vec::new();
        for (i, task) in tasks.into_iter().enumerate() {
            let ended = executor.block_on(task).expect("no task panics");
            if let Err(what) = ended {
                wrong.push(format!("{device}, round {round}, task {i}: {what}\n{:?}", program(i as u64, structures)));
            }
        }
        assert!(wrong.is_empty(), "{} tasks are wrong; the first:\n{}", wrong.len(), wrong[0]);
        // After this gather, the ring has handled all cancels and drops.
        wait(rt.session("last").open().full(1.0f32, [9, 9]).sum(..).gather::<f32>()).unwrap();
        resident.push(rt.stats().bytes_resident_now);
    }
    // Only indices outside of their array are found in the ring: those of a third of every fourth task, and their
    // dependents.
    let stats = rt.stats();
    let late = (0..tasks()).filter(|i| i % 4 == 1 && i % 3 == 1).count() as u64;
    assert_eq!(stats.gathers_failed, 3 * 2 * late, "{device}: {stats}");
    // Pools keep memory for later values, but it must not grow with the rounds.
    let most = resident[0].max(resident[1]);
    assert!(resident[2] <= most + most / 2 + (1 << 20), "{device}: resident bytes {resident:?}");
    drop(shared);
    wait(rt.shutdown()).unwrap();
    let (last, most) = gathers_open(&timeline);
    assert_eq!(last, 0, "{device}: gathers are open at the end");
    assert!(most > 1, "{device}: no two gathers were open at the same time");
}

#[test]
fn tasks_compute_cancel_and_err_beside_each_other_on_the_host() {
    soak("host", |b| Some(b.start_blocking().expect("the host device always opens")), tasks());
}

#[test]
fn tasks_compute_cancel_and_err_beside_each_other_on_the_gpu() {
    soak("gpu", |b| gpu(|_| b), 12);
}
