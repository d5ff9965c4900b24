//! Failures: indices out of range, exhausted memory, panics, losses. Each is reported with op, place and device, and
//! affects nothing else.

use super::rig::{Rig, allocate, free, readback, slot, upload};
use super::work::{BatchBuilder, Build, double, varied};
use super::{everywhere, everywhere_with};
use crate::contract::batch::Command;
use crate::contract::messages::device::DeviceEvent;
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, ElementOp};
use crate::injection::Injection;
use crate::kernels::ir::Access::{Read, ReadWrite, Write};
use crate::kernels::ir::{Form, Geometry, InstOp, Run};
use crate::kernels::library::Library;

/// Doubles four floats in arrays of these names, and reads them back.
#[track_caller]
fn doubled(rig: &Rig, first: u64) -> Vec<Command> {
    let mut work = BatchBuilder::of(&rig.handle.info, first);
    let (from, to) = (work.of_slice(&[1.0f32, 2.0, 3.0, 4.0]), work.array(DType::F32, 4));
    double(&mut work, from, to);
    work.read("doubled", to);
    work.commands
}

const DOUBLED: [f32; 4] = [2.0, 4.0, 6.0, 8.0];

#[track_caller]
fn assert_works(rig: &mut Rig, first: u64) {
    let commands = doubled(rig, first);
    assert_eq!(rig.floats(commands), DOUBLED);
}

/// The error names the op, its place and the device.
#[track_caller]
fn assert_blamed(rig: &Rig, error: &Error, kind: ErrorKind) {
    let device = Some(rig.handle.info.name.as_str());
    assert_eq!((error.kind(), error.op(), error.device()), (kind, Some("case"), device), "{error}");
    assert!(error.location().is_some_and(|site| site.file().contains("conformance")), "{error}");
}

#[test]
fn fault_words_that_an_index_outside_sets_come_with_the_batch() {
    everywhere(|rig| {
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let (given, index) = (work.given(varied(DType::F32, 10, 0)), work.of_slice(&[0i32, 9, 10, -1]));
        let (out, words) = (work.array(DType::F32, 4), work.fault_words());
        let mut build = Build::new(Form::Map);
        let operands = [build.operand(DType::F32, Read), build.operand(DType::I32, Read)];
        let to = build.operand(DType::F32, Write);
        build.faults_in(words);
        let flat = build.flat();
        let index_value = build.load(operands[1], flat, Run::Flat, None);
        let (extent, site) = (build.number(10), build.words(&[2]));
        let at = build.inst(InstOp::Check { index: index_value, extent, site, guard: None }, DType::U32);
        let x = build.load(operands[0], at, Run::Any, None);
        build.store(to, None, x, None);
        work.kernel(build, Geometry::Map { elements: 4 }, &[given, index, out]);
        work.commands.push(Command::ReadFaults { slot: words.slot, words: 4 });
        work.read("what is inside", out);
        let done = rig.run(work.commands).unwrap();
        assert_eq!(done.faults, [2]);
        let expected = varied(DType::F32, 10, 0);
        let (expected, read) = (expected.as_slice::<f32>().unwrap(), done.data[0].1.as_slice::<f32>().unwrap());
        assert_eq!(read[..2], [expected[0], expected[9]]);
    });
}

#[test]
fn what_a_value_must_be_sets_its_fault_word_where_it_is_not() {
    everywhere(|rig| {
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let (given, out, words) = (work.of_slice(&[1.0f32, 2.0]), work.array(DType::F32, 2), work.fault_words());
        let mut build = Build::new(Form::Map);
        let (from, to) = (build.operand(DType::F32, Read), build.operand(DType::F32, Write));
        build.faults_in(words);
        let flat = build.flat();
        let x = build.load(from, flat, Run::Flat, None);
        for (number, op) in [(0, ElementOp::Eq), (3, ElementOp::Ne)] {
            let condition = build.apply(op, &[x, x], DType::Bool);
            let site = build.words(&[number]);
            build.inst(InstOp::Require { condition, site, guard: None }, DType::Bool);
        }
        build.store(to, None, x, None);
        work.kernel(build, Geometry::Map { elements: 2 }, &[given, out]);
        work.commands.push(Command::ReadFaults { slot: words.slot, words: 4 });
        assert_eq!(rig.run(work.commands).unwrap().faults, [3]);
    });
}

#[test]
fn an_assignment_outside_faults_and_assigns_the_rest() {
    everywhere(|rig| {
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let (base, index) = (work.of_slice(&[1.0f32, 2.0]), work.of_slice(&[1i32, 2]));
        let (value, words) = (work.of_slice(&[7.0f32, 8.0]), work.fault_words());
        let library = Library::AssignIndex {
            dtype: DType::F32,
            index_dtype: DType::I32,
            before: 1,
            extent: 2,
            after: 1,
            count: 2,
            scalar_value: false,
        };
        work.library(library, &[ReadWrite, Read, Read], &[base, index, value], Some(words));
        work.commands.push(Command::ReadFaults { slot: words.slot, words: 4 });
        work.read("assigned", base);
        let done = rig.run(work.commands).unwrap();
        assert_eq!(done.faults, [1]);
        assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [1.0, 7.0]);
    });
}

#[test]
fn memory_that_is_not_there_fails_who_allocates_it_and_who_names_it_and_nobody_else() {
    everywhere(|rig| {
        let huge = slot(1, 0, 16);
        let allocate = |rig: &Rig| {
            let mut commands = doubled(rig, 2);
            commands.splice(0..0, [allocate(1, 1 << 60), Command::Zero { slot: huge }]);
            commands
        };
        let commands = allocate(rig);
        let error = rig.run(commands).unwrap_err();
        assert_eq!((error.kind(), error.device()), (ErrorKind::OutOfMemory, Some(rig.handle.info.name.as_str())));
        let error = rig.run(vec![Command::Zero { slot: huge }]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert_works(rig, 2);
    });
}

#[test]
fn exhausted_memory_fails_that_batch_only() {
    let injection = || Injection { out_of_memory_at_batch: Some(1), ..Injection::default() };
    everywhere_with(injection, |rig| {
        assert_works(rig, 1);
        let commands = doubled(rig, 3);
        assert_eq!(rig.run(commands).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_works(rig, 5);
    });
}

#[test]
fn a_panic_fails_its_batch_and_no_other() {
    everywhere_with(
        || Injection { panic_at_batch: Some(1), ..Injection::default() },
        |rig| {
            assert_works(rig, 1);
            let commands = doubled(rig, 3);
            let error = rig.run(commands).unwrap_err();
            assert_blamed(rig, &error, ErrorKind::Internal);
            assert_works(rig, 5);
        },
    );
}

#[test]
fn the_allocations_of_a_batch_that_fails_are_there_for_those_behind_it() {
    let injections = [
        Injection { out_of_memory_at_batch: Some(1), ..Injection::default() },
        Injection { panic_at_batch: Some(1), ..Injection::default() },
    ];
    for injection in injections {
        everywhere_with(
            || injection.clone(),
            |rig| {
                let old = slot(9, 0, 16);
                rig.run(vec![allocate(9, 16), upload(&[1.0f32; 4], old)]).unwrap();
                let mut commands = doubled(rig, 1);
                let behind = commands.split_off(1);
                commands.extend(behind.iter().cloned());
                commands.push(free(9));
                let id = rig.submit(commands);
                // Sent before the failure is known; its allocations are left out.
                let second =
                    rig.submit(behind.into_iter().filter(|c| !matches!(c, Command::Allocate { .. })).collect());
                assert!(rig.wait(id).is_err());
                assert_eq!(rig.wait(second).unwrap().data[0].1.as_slice::<f32>().unwrap(), DOUBLED);
                assert!(rig.run(vec![readback(0, old, DType::F32, 4)]).is_err(), "it was freed");
            },
        );
    }
}

#[test]
fn a_batch_that_names_what_is_not_there_fails_alone() {
    everywhere(|rig| {
        let mut commands = doubled(rig, 1);
        commands.retain(|command| !matches!(command, Command::Allocate { .. }));
        let error = rig.run(commands).unwrap_err();
        assert_blamed(rig, &error, ErrorKind::Internal);
        assert_works(rig, 1);
    });
}

#[test]
fn a_lost_device_fails_what_waits_in_order_tells_of_the_loss_and_serves_again_empty() {
    everywhere_with(
        || Injection { lose_device_at_batch: Some(1), ..Injection::default() },
        |rig| {
            let commands = doubled(rig, 1);
            let held = rig.run(commands).unwrap().data.remove(0).1;
            let sent: Vec<_> = (0..4)
                .map(|batch| {
                    let commands = doubled(rig, 3 + 2 * batch);
                    rig.submit(commands)
                })
                .collect();
            // The lost one, and then either those behind it fail with it, or they come after the loss and run.
            let error = rig.wait(sent[0]).unwrap_err();
            assert_blamed(rig, &error, ErrorKind::DeviceLost);
            let mut ended = Vec::new();
            let mut failed_after = None;
            while ended.len() < 3 || failed_after.is_none() {
                match rig.event() {
                    DeviceEvent::BatchFinished { batch, .. } => ended.push((batch, true)),
                    DeviceEvent::BatchFailed { batch, error, .. } => {
                        assert_blamed(rig, &error, ErrorKind::DeviceLost);
                        ended.push((batch, false));
                    }
                    DeviceEvent::ReadbackDone { .. } => {}
                    DeviceEvent::Lost { device, error, replaced } => {
                        assert_eq!((device, replaced, error.kind()), (rig.handle.info.id, true, ErrorKind::DeviceLost));
                        assert_eq!(error.device(), Some(rig.handle.info.name.as_str()));
                        failed_after = Some(ended.len());
                    }
                }
            }
            assert_eq!(ended.iter().map(|(batch, _)| *batch).collect::<Vec<_>>(), sent[1..]);
            let failed = failed_after.unwrap_or_default();
            assert!(ended.iter().enumerate().all(|(at, (_, ran))| *ran == (at >= failed)), "{ended:?}, {failed}");
            // Earlier allocations are gone, earlier readbacks are still there, and new work runs.
            assert!(rig.run(vec![readback(0, slot(2, 0, 16), DType::F32, 4)]).is_err());
            assert_works(rig, 1);
            assert_eq!(held.as_slice::<f32>().unwrap(), DOUBLED);
        },
    );
}

#[test]
fn a_device_may_be_lost_again_and_again() {
    everywhere_with(
        || Injection { lose_device_every: Some(2), ..Injection::default() },
        |rig| {
            for round in 0..3 {
                assert_works(rig, 1 + 2 * round);
                let commands = doubled(rig, 1);
                assert_eq!(rig.run(commands).unwrap_err().kind(), ErrorKind::DeviceLost);
                assert!(matches!(rig.event(), DeviceEvent::Lost { replaced: true, .. }));
            }
        },
    );
}
