//! The use of a GPU's rings by uploads and readbacks. Cases for every backend are in `device/conformance/`.

use super::rig::{allocate, readback, rig, slot, upload};
use crate::contract::batch::Command;
use crate::graph::DType;
use crate::host_buffer::HostBuffer;

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
    rig.end();
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
    rig.end();
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
    rig.end();
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
    rig.end();
}
