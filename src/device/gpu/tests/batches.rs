//! Memory: uploads, copies, zeros, readbacks, the order of events, the end.

use super::rig::{allocate, readback, rig, slot, upload};
use crate::contract::batch::Command;
use crate::contract::messages::device::DeviceInstruction;
use crate::graph::{DType, Element};
use crate::host_buffer::HostBuffer;
use crate::ids::BufferId;

fn round_trip<T: Element>(make: impl Fn(usize) -> T) {
    let Some(mut rig) = rig() else { return };
    // Below and above the size from which readbacks are handed out as views.
    for elements in [5usize, 40_001] {
        let data: Vec<T> = (0..elements).map(&make).collect();
        let bytes = ((elements * T::DTYPE.gpu_bytes()) as u64).next_multiple_of(16);
        let (a, b) = (slot(1, 0, bytes), slot(2, 256, bytes));
        let commands = vec![
            allocate(1, bytes),
            allocate(2, bytes + 256),
            upload(&data, a),
            Command::Copy { from: a, to: b },
            readback(9, b, T::DTYPE, elements as u64),
            Command::Free { buffer: BufferId(1) },
            Command::Free { buffer: BufferId(2) },
        ];
        let done = rig.run(commands).unwrap();
        assert_eq!(done.data.len(), 1);
        assert_eq!(done.data[0].0.0, 9);
        assert_eq!(done.data[0].1.as_slice::<T>().unwrap(), &data[..]);
    }
    rig.stop();
}

#[test]
fn every_dtype_comes_back_as_it_was_uploaded() {
    round_trip::<f32>(|i| i as f32 - 2.5);
    round_trip::<f64>(|i| i as f64 * 1e300);
    round_trip::<bool>(|i| i % 3 == 0);
    round_trip::<u8>(|i| (i * 7) as u8);
    round_trip::<i32>(|i| -(i as i32) << 8);
    round_trip::<u32>(|i| u32::MAX - i as u32);
    round_trip::<i64>(|i| i64::MIN + i as i64);
}

#[test]
fn many_arrays_are_uploaded_and_read_back_in_one_batch() {
    let Some(mut rig) = rig() else { return };
    let before = rig.stats();
    let mut commands = vec![allocate(1, 300 * 1024)];
    for i in 0..300u32 {
        commands.push(upload(&[i, i + 1, 7 * i], slot(1, u64::from(i) * 1024, 16)));
    }
    for i in 0..300u32 {
        commands.push(readback(u64::from(i), slot(1, u64::from(i) * 1024, 16), DType::U32, 3));
    }
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data.len(), 300);
    for (i, (transfer, data)) in done.data.iter().enumerate() {
        let i = i as u32;
        assert_eq!(transfer.0, u64::from(i));
        assert_eq!(data.as_slice::<u32>().unwrap(), [i, i + 1, 7 * i]);
    }
    let spent = rig.stats().since(&before);
    assert_eq!((spent.submissions, spent.dispatches), (1, 0));
    assert_eq!((spent.bytes_uploaded, spent.bytes_read_back), (300 * 12, 300 * 12));
    rig.stop();
}

#[test]
fn zero_clears_its_slot_and_nothing_beside_it() {
    let Some(mut rig) = rig() else { return };
    let commands = vec![
        allocate(1, 1024),
        upload(&[1u32; 256], slot(1, 0, 1024)),
        Command::Zero { slot: slot(1, 256, 16) },
        readback(0, slot(1, 240, 48), DType::U32, 12),
    ];
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data[0].1.as_slice::<u32>().unwrap(), [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    rig.stop();
}

#[test]
fn part_of_a_host_buffer_goes_to_a_slot_at_an_offset() {
    let Some(mut rig) = rig() else { return };
    let from = HostBuffer::from_slice(&[false, true, true, false, true]).shared();
    let commands = vec![
        allocate(1, 1024),
        Command::Upload { from, first: 1, elements: 3, to: slot(1, 512, 16) },
        readback(0, slot(1, 512, 16), DType::Bool, 3),
        readback(1, slot(1, 512, 16), DType::U32, 3),
    ];
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data[0].1.as_slice::<bool>().unwrap(), [true, true, false]);
    assert_eq!(done.data[1].1.as_slice::<u32>().unwrap(), [1, 1, 0]);
    rig.stop();
}

#[test]
fn an_upload_larger_than_the_staging_ring_takes_several_submissions_and_arrives() {
    let Some(mut rig) = rig() else { return };
    let elements = if rig.handle.info.software { 20 << 20 } else { 80 << 20 };
    let data: Vec<u32> = (0..elements as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let all = slot(1, 0, elements * 4);
    let from = HostBuffer::from_vec(data).shared();
    let upload = Command::Upload { from: from.clone(), first: 0, elements, to: all };
    let done = rig.run(vec![allocate(1, elements * 4), upload, readback(0, all, DType::U32, elements)]).unwrap();
    assert!(done.data[0].1.bytes() == from.bytes());
    assert!(rig.stats().submissions > 1);
    rig.stop();
}

#[test]
fn a_view_that_is_held_delays_no_other_readback_and_keeps_its_bytes() {
    let Some(mut rig) = rig() else { return };
    let elements = 100_000u64;
    let all = slot(1, 0, elements * 4);
    let mut held = Vec::new();
    rig.run(vec![allocate(1, elements * 4)]).unwrap();
    for round in 0..6u32 {
        let data = vec![round; elements as usize];
        let mut done = rig.run(vec![upload(&data, all), readback(0, all, DType::U32, elements)]).unwrap();
        held.push(done.data.remove(0).1);
    }
    for (round, data) in held.iter().enumerate() {
        assert!(data.as_slice::<u32>().unwrap().iter().all(|v| *v == round as u32));
    }
    // Views outlive the device's threads, too.
    rig.stop();
    assert_eq!(held[5].as_slice::<u32>().unwrap()[99_999], 5);
    assert_eq!(held[0].as_slice::<u32>().unwrap()[99_999], 0);
}

#[test]
fn empty_readbacks_and_batches_without_work_are_reported() {
    let Some(mut rig) = rig() else { return };
    assert!(rig.run(Vec::new()).unwrap().data.is_empty());
    let done = rig.run(vec![allocate(1, 0), readback(3, slot(1, 0, 0), DType::F64, 0)]).unwrap();
    assert_eq!(done.data[0].1.as_slice::<f64>().unwrap(), [0f64; 0]);
    assert_eq!(rig.stats().submissions, 0);
    rig.stop();
}

#[test]
fn a_released_allocation_is_gone_and_what_was_submitted_before_still_ran() {
    let Some(mut rig) = rig() else { return };
    let first = rig.submit(vec![
        allocate(1, 64),
        upload(&[5u32; 16], slot(1, 0, 64)),
        readback(0, slot(1, 0, 64), DType::U32, 16),
    ]);
    rig.handle.reach.instructions.send(DeviceInstruction::Release(vec![BufferId(1), BufferId(77)])).unwrap();
    let second = rig.submit(vec![readback(1, slot(1, 0, 64), DType::U32, 16)]);
    assert_eq!(rig.wait(first).unwrap().data[0].1.as_slice::<u32>().unwrap(), [5; 16]);
    let error = rig.wait(second).unwrap_err();
    assert!(error.message().contains("allocation 1"), "{error}");
    rig.stop();
}

#[test]
fn stop_finishes_what_is_in_flight() {
    let Some(mut rig) = rig() else { return };
    let data = vec![1.5f32; 1 << 20];
    let all = slot(1, 0, 4 << 20);
    let mut ids = vec![rig.submit(vec![allocate(1, 4 << 20)])];
    for _ in 0..3 {
        ids.push(rig.submit(vec![upload(&data, all), readback(0, all, DType::F32, 1 << 20)]));
    }
    let events = rig.events.clone();
    rig.handle.reach.instructions.send(DeviceInstruction::Stop).unwrap();
    for thread in std::mem::take(&mut rig.handle.threads) {
        thread.join().unwrap();
    }
    assert_eq!(events.len(), 4 + 3);
    for id in ids {
        rig.wait(id).unwrap();
    }
}

#[test]
fn slots_of_one_buffer_are_copied_to_each_other_whatever_their_size() {
    let Some(mut rig) = rig() else { return };
    let (small, large) = (64u64, 1u64 << 20);
    let commands = vec![
        allocate(1, 4 * large),
        upload(&[7u32; 16], slot(1, 0, small)),
        upload(&vec![9u32; 1 << 18], slot(1, large, large)),
        Command::Copy { from: slot(1, 0, small), to: slot(1, 256, small) },
        Command::Copy { from: slot(1, large, large), to: slot(1, 2 * large, large) },
        readback(0, slot(1, 256, small), DType::U32, 16),
        readback(1, slot(1, 2 * large, large), DType::U32, 1 << 18),
    ];
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data[0].1.as_slice::<u32>().unwrap(), [7; 16]);
    assert!(done.data[1].1.as_slice::<u32>().unwrap().iter().all(|v| *v == 9));
    rig.stop();
}
