//! The order of batches and of their readbacks, cancelled work, and the end of a device.

use super::everywhere;
use super::rig::{Rig, Which, allocate, readback, slot, upload};
use super::work::{Array, BatchBuilder, double};
use crate::contract::batch::Command;
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::device::handle::DeviceHandle;
use crate::graph::DType;
use crate::injection::{Hold, Injection};
use std::sync::Arc;
use std::time::Duration;

/// Work on two arrays that are doubled back and forth: from which, and to which.
fn doubling(rig: &Rig, to_second: bool) -> (BatchBuilder, Array, Array) {
    let mut work = BatchBuilder::of(&rig.handle.info, 1);
    let pair = (work.array(DType::F32, 100), work.array(DType::F32, 100));
    let (from, to) = if to_second { pair } else { (pair.1, pair.0) };
    (work, from, to)
}

#[test]
fn batches_that_are_sent_at_once_take_effect_and_end_in_their_order() {
    everywhere(|rig| {
        let (mut work, first, _) = doubling(rig, true);
        work.commands.push(upload(&[1.0f32; 100], first.slot));
        let mut sent = vec![rig.submit(work.commands)];
        for round in 0..20 {
            let (mut work, from, to) = doubling(rig, round % 2 == 0);
            double(&mut work, from, to);
            work.read("doubled", to);
            work.read("what was doubled", from);
            sent.push(rig.submit(work.commands));
        }
        for (round, id) in sent.into_iter().enumerate() {
            let done = rig.wait(id).unwrap();
            let read: Vec<f32> = done.data.iter().map(|(_, data)| data.as_slice::<f32>().unwrap()[99]).collect();
            let expected = [2f32.powi(round as i32), 2f32.powi(round as i32 - 1)];
            assert!(round == 0 || read == expected, "{round}: {read:?}");
        }
    });
}

#[test]
fn commands_of_a_batch_take_effect_in_their_order() {
    everywhere(|rig| {
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let (a, b, c) = (work.of_slice(&[1.0f32; 8]), work.array(DType::F32, 8), work.array(DType::F32, 8));
        double(&mut work, a, b);
        work.commands.push(Command::Copy { from: b.slot, to: c.slot });
        double(&mut work, c, b);
        work.read("four", b);
        work.commands.push(upload(&[10.0f32; 8], c.slot));
        double(&mut work, c, b);
        work.commands.push(Command::Zero { slot: c.slot });
        work.read("twenty", b);
        work.read("nothing", c);
        let done = rig.run(work.commands).unwrap();
        let read: Vec<f32> = done.data.iter().map(|(_, data)| data.as_slice::<f32>().unwrap()[7]).collect();
        assert_eq!(read, [4.0, 20.0, 0.0]);
    });
}

#[test]
fn a_batch_that_is_held_holds_what_comes_behind_it() {
    for which in Which::ALL {
        let hold = Arc::new(Hold::default());
        let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
        let Some(mut rig) = Rig::open(which, injection) else { continue };
        let all = slot(1, 0, 16);
        let first = rig.submit(vec![allocate(1, 16), upload(&[1u32, 2, 3, 4], all)]);
        let second = rig.submit(vec![readback(0, all, DType::U32, 4)]);
        assert!(rig.events.recv_timeout(Duration::from_millis(20)).is_err(), "{which:?}");
        hold.release();
        rig.wait(first).unwrap();
        assert_eq!(rig.wait(second).unwrap().data[0].1.as_slice::<u32>().unwrap(), [1, 2, 3, 4]);
        rig.stop();
    }
}

#[test]
fn work_whose_results_nobody_awaits_runs_or_is_dropped_and_harms_nobody() {
    everywhere(|rig| {
        // Its memory is released, as a cancel does, while batches are on their way.
        let mut ids = Vec::new();
        for round in 0..10u64 {
            let mut work = BatchBuilder::of(&rig.handle.info, 10 * round + 1);
            let (from, to) = (work.of_slice(&[1.0f32; 1000]), work.array(DType::F32, 1000));
            double(&mut work, from, to);
            ids.push(rig.submit(work.commands));
            rig.tell(DeviceInstruction::Release(vec![from.slot.buffer, to.slot.buffer]));
        }
        for id in ids {
            rig.wait(id).unwrap();
        }
        let gone = rig.run(vec![readback(0, slot(1, 0, 16), DType::F32, 4)]);
        assert!(gone.is_err());
    });
}

#[test]
fn stop_finishes_what_was_submitted() {
    for which in Which::ALL {
        let Some(mut rig) = Rig::open(which, Injection::default()) else { continue };
        let all = slot(1, 0, 1 << 20);
        rig.submit(vec![allocate(1, 1 << 20)]);
        for _ in 0..3 {
            rig.submit(vec![upload(&vec![1.5f32; 1 << 18], all), readback(0, all, DType::F32, 1 << 18)]);
        }
        let reach = rig.handle.reach.clone();
        let events = rig.end();
        let finished = |event: &&DeviceEvent| matches!(event, DeviceEvent::BatchFinished { .. });
        assert_eq!((events.len(), events.iter().filter(finished).count()), (7, 4), "{which:?}");
        // Data that was read back outlives the device.
        for event in &events {
            if let DeviceEvent::ReadbackDone { data: Ok(data), .. } = event {
                assert_eq!(data.as_slice::<f32>().unwrap()[1000], 1.5);
            }
        }
        assert!(!reach.give(DeviceInstruction::Release(Vec::new()), 10.0), "{which:?} says that it has ended");
    }
}

#[test]
fn a_device_ends_that_nobody_can_reach_any_more() {
    for which in Which::ALL {
        let Some(mut rig) = Rig::open(which, Injection::default()) else { continue };
        rig.submit(vec![allocate(1, 64)]);
        let DeviceHandle { reach, threads, .. } = rig.handle;
        drop(reach);
        for thread in threads {
            thread.join().unwrap();
        }
        let events: Vec<DeviceEvent> = rig.events.drain().collect();
        assert!(matches!(events[..], [DeviceEvent::BatchFinished { .. }]), "{which:?}: {events:?}");
    }
}
