//! Two hundred tasks at once on one runtime: each runs a random program, some cancel, some make mistakes.

mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use common::unfolded;
use programs::{Dice, Program, Twist, decode, run};
use tidemill::{Error, ErrorKind, Runtime, Session};

const TASKS: u64 = 200;

/// One of few structures, so that a GPU compiles few pipelines; tasks differ in what they do to it.
fn program(task: u64, structures: u64) -> Program {
    let structure = task % structures;
    let steps: Vec<u64> = (0..12).map(|i| structure.wrapping_mul(1000) + i).collect();
    decode(structure, &steps)
}

/// Every place at which a mistake shows: the op itself, what depends on it, and not its neighbours.
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

/// What one task does, and how many gathers of it end, with data and with an error; cancelled ones may do neither.
async fn task(s: Session, task: u64, structures: u64) -> Result<(u64, u64), String> {
    let program = program(task, structures);
    let (first, second) = (program.first.len() as u64, program.second.len() as u64);
    let mut dice = Dice::new(task);
    let done = match task % 4 {
        0 => {
            run(&s, &program, Twist::Cancel).await?;
            (second, 0)
        }
        1 => {
            let both = futures::join!(run(&s, &program, Twist::None), mistakes(&s, task));
            both.0.and(both.1)?;
            (first + second + 1, 2)
        }
        _ => {
            run(&s, &program, Twist::None).await?;
            (first + second, 0)
        }
    };
    if dice.one_in(2) {
        tokio::task::yield_now().await;
    }
    Ok(done)
}

fn soak(device: &str, rt: &Runtime, structures: u64) {
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let shared = rt.session("shared").seed(1).open();
    let mut resident = Vec::new();
    for round in 0..3 {
        let before = rt.stats();
        let tasks: Vec<_> = (0..TASKS)
            .map(|i| {
                // Every fifth task records on a tape that is shared with others.
                let s = if i % 5 == 0 { shared.clone() } else { rt.session("task").seed(i).open() };
                executor.spawn(task(s, i, structures))
            })
            .collect();
        let (mut fine, mut failed, mut wrong) = (0, 0, Vec::new());
        for (i, task) in tasks.into_iter().enumerate() {
            match executor.block_on(task).expect("no task panics") {
                Ok(ended) => (fine, failed) = (fine + ended.0, failed + ended.1),
                Err(what) => wrong
                    .push(format!("{device}, round {round}, task {i}: {what}\n{:?}", program(i as u64, structures))),
            }
        }
        assert!(wrong.is_empty(), "{} tasks of {TASKS} are wrong; the first:\n{}", wrong.len(), wrong[0]);
        let stats = rt.stats().since(&before);
        assert!(stats.gathers >= fine, "{device}: {fine} gathers were awaited\n{stats}");
        let _ = failed;
        resident.push(stats.bytes_resident_now);
    }
    // Pools keep memory for the next ones: it is bounded, and does not grow with the rounds.
    assert!(resident[2] <= resident[0].max(resident[1]) * 3 / 2 + (1 << 20), "{device}: resident bytes {resident:?}");
    assert!(rt.stats().bytes_resident_peak <= 512 << 20, "{device}: {}", rt.stats());
    eprintln!("{device}: {resident:?}\n{}", rt.stats());
}

#[test]
fn two_hundred_tasks_compute_cancel_and_err_beside_each_other() {
    for (device, rt) in unfolded(|b| b) {
        soak(device, &rt, if device == "gpu" { 12 } else { TASKS });
    }
}
