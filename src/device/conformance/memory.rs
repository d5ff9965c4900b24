//! Memory: uploads, copies, zeros, readbacks, allocations made again and freed.

use super::everywhere;
use super::rig::{allocate, free, readback, slot, upload};
use super::work::{BatchBuilder, double};
use crate::contract::batch::Command;
use crate::contract::messages::device::DeviceInstruction;
use crate::graph::{DType, Element};
use crate::host_buffer::HostBuffer;
use crate::ids::BufferId;

fn round_trip<T: Element + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
    everywhere(|rig| {
        // Below and above the sizes from which uploads and readbacks are not copied.
        for elements in [5usize, 40_001] {
            let data: Vec<T> = (0..elements).map(&make).collect();
            let bytes = (elements as u64 * rig.handle.info.element_bytes(T::DTYPE)).next_multiple_of(16);
            let (a, b) = (slot(1, 0, bytes), slot(2, 256, bytes));
            let commands = vec![
                allocate(1, bytes),
                allocate(2, bytes + 256),
                upload(&data, a),
                Command::Copy { from: a, to: b },
                readback(9, b, T::DTYPE, elements as u64),
                free(1),
                free(2),
            ];
            let done = rig.run(commands).unwrap();
            assert_eq!((done.data.len(), done.data[0].0.0), (1, 9));
            assert_eq!(done.data[0].1.as_slice::<T>().unwrap(), &data[..]);
        }
    });
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
    everywhere(|rig| {
        let mut commands = vec![allocate(1, 300 * 1024)];
        for i in 0..300u32 {
            commands.push(upload(&[i, i + 1, 7 * i], slot(1, u64::from(i) * 1024, 16)));
        }
        for i in 0..300u32 {
            commands.push(readback(u64::from(i), slot(1, u64::from(i) * 1024, 16), DType::U32, 3));
        }
        let done = rig.run(commands).unwrap();
        assert_eq!(done.data.len(), 300);
        for (i, (transfer, data)) in (0u32..).zip(&done.data) {
            assert_eq!(transfer.0, u64::from(i));
            assert_eq!(data.as_slice::<u32>().unwrap(), [i, i + 1, 7 * i]);
        }
    });
}

#[test]
fn zero_clears_its_slot_and_nothing_beside_it() {
    everywhere(|rig| {
        let commands = vec![
            allocate(1, 1024),
            upload(&[1u32; 256], slot(1, 0, 1024)),
            Command::Zero { slot: slot(1, 256, 16) },
            readback(0, slot(1, 0, 1024), DType::U32, 256),
        ];
        let done = rig.run(commands).unwrap();
        let all = done.data[0].1.as_slice::<u32>().unwrap();
        assert!(all.iter().enumerate().all(|(i, word)| *word == u32::from(!(64..68).contains(&i))), "{all:?}");
    });
}

#[test]
fn part_of_a_host_buffer_goes_to_a_slot_at_an_offset() {
    everywhere(|rig| {
        let from = HostBuffer::from_slice(&[false, true, true, false, true]).shared();
        let to = slot(1, 512, 16);
        let upload = Command::Upload { from, first: 1, elements: 3, to };
        let done = rig.run(vec![allocate(1, 1024), upload, readback(0, to, DType::Bool, 3)]).unwrap();
        assert_eq!(done.data[0].1.as_slice::<bool>().unwrap(), [true, true, false]);
    });
}

#[test]
fn slots_of_one_buffer_are_copied_to_each_other_whatever_their_size() {
    everywhere(|rig| {
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
    });
}

#[test]
fn what_was_read_back_and_what_was_given_keep_their_elements_while_memory_is_written_on() {
    everywhere(|rig| {
        let given = HostBuffer::from_vec(vec![1.0f32; 40_000]).shared();
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let array = work.array(DType::F32, 40_000);
        work.commands.push(Command::Upload { from: given.clone(), first: 0, elements: 40_000, to: array.slot });
        work.read("before", array);
        work.commands.push(Command::Zero { slot: array.slot });
        work.read("after", array);
        let done = rig.run(work.commands).unwrap();
        let mean = |data: &HostBuffer| data.as_slice::<f32>().unwrap().iter().sum::<f32>() / 40_000.0;
        assert_eq!((mean(&given), mean(&done.data[0].1), mean(&done.data[1].1)), (1.0, 1.0, 0.0));
    });
}

#[test]
fn empty_readbacks_and_batches_without_work_are_reported() {
    everywhere(|rig| {
        assert!(rig.run(Vec::new()).unwrap().data.is_empty());
        let done = rig.run(vec![allocate(1, 0), readback(3, slot(1, 0, 0), DType::F32, 0)]).unwrap();
        assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [0f32; 0]);
    });
}

#[test]
fn an_allocation_that_is_made_again_stays_and_one_of_another_size_replaces_it() {
    everywhere(|rig| {
        let four = slot(1, 0, 16);
        let read = readback(0, four, DType::F32, 4);
        assert_eq!(rig.floats(vec![allocate(1, 16), upload(&[5.0f32; 4], four), read.clone()]), [5.0; 4]);
        assert_eq!(rig.floats(vec![allocate(1, 16), read]), [5.0; 4]);
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let (from, to) = (work.array(DType::F32, 1000), work.array(DType::F32, 1000));
        work.commands.push(upload(&[1.5f32; 1000], from.slot));
        double(&mut work, from, to);
        work.read("doubled", to);
        assert_eq!(rig.floats(work.commands), [3.0; 1000]);
    });
}

#[test]
fn a_freed_name_can_name_another_allocation_in_the_same_batch() {
    everywhere(|rig| {
        let mut work = BatchBuilder::of(&rig.handle.info, 1);
        let to = work.array(DType::F32, 4);
        for round in 1..4u8 {
            work.next_buffer = 7;
            let from = work.of_slice(&[f32::from(round); 4]);
            double(&mut work, from, to);
            work.read("doubled", to);
            work.commands.push(Command::Free { buffer: from.slot.buffer });
        }
        let done = rig.run(work.commands).unwrap();
        let read: Vec<f32> = done.data.iter().map(|(_, data)| data.as_slice::<f32>().unwrap()[3]).collect();
        assert_eq!(read, [2.0, 4.0, 6.0]);
    });
}

#[test]
fn a_released_allocation_is_gone_and_what_was_submitted_before_still_ran() {
    everywhere(|rig| {
        let all = slot(1, 0, 64);
        let read = |transfer| readback(transfer, all, DType::U32, 16);
        let first = rig.submit(vec![allocate(1, 64), upload(&[5u32; 16], all), read(0)]);
        rig.tell(DeviceInstruction::Release(vec![BufferId(1), BufferId(77)]));
        let second = rig.submit(vec![read(1)]);
        assert_eq!(rig.wait(first).unwrap().data[0].1.as_slice::<u32>().unwrap(), [5; 16]);
        let error = rig.wait(second).unwrap_err();
        assert!(error.message().contains("allocation 1"), "{error}");
    });
}

#[test]
fn giving_back_what_lies_free_loses_nothing() {
    everywhere(|rig| {
        let all = slot(1, 0, 1 << 20);
        let read = readback(0, all, DType::F32, 1 << 18);
        rig.run(vec![allocate(1, 1 << 20), upload(&vec![2.0f32; 1 << 18], all)]).unwrap();
        for is_all in [false, true] {
            rig.tell(DeviceInstruction::Trim { all: is_all });
            assert!(rig.floats(vec![read.clone()]).iter().all(|element| *element == 2.0));
        }
    });
}
