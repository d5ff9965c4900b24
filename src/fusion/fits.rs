//! Checks whether each step of a plan fits its device: bindings, and bytes of memory at a time.
//!
//! In: a plan. Out: an error for the first step that does not fit. Must hold: the result depends on sizes and on the
//! device alone, not on its budget. Residency finds room for any plan that fits here, because it can evict everything
//! else.

use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Plan, Step, Use};
use crate::error::{Error, ErrorKind};
use rustc_hash::FxHashMap;

/// The error of the first launch that does not fit: `ErrorKind::Unsupported` if it binds more buffers than a kernel of
/// the device may, `ErrorKind::OutOfMemory` if it uses more than the device's memory at a time.
pub fn misfit(plan: &Plan, device: &DeviceInfo) -> Option<Error> {
    if device.capabilities.runs_all {
        return None;
    }
    if let Some(launch) = plan.steps.iter().find_map(|step| misfit_pack(step, plan, device)) {
        let text = "its smaller arrays do not fit together".to_owned();
        return Some(Error::new(ErrorKind::OutOfMemory, text).with_op(launch.blame.0).with_site(launch.blame.1));
    }
    plan.steps.iter().find_map(|step| {
        let Step::Launch(launch) = step else { return None };
        let (bindings, bytes) = (bindings(launch, plan, device), bytes_at_once(launch, plan, device));
        let (kind, text) = if bindings > device.bindings_max as u64 {
            let most = device.bindings_max;
            let text = format!(
                "its arrays lie in {bindings} pieces of memory, and a kernel of this device binds at most {most}"
            );
            (ErrorKind::Unsupported, text)
        } else if bytes > device.memory_bytes {
            let most = device.memory_bytes;
            (
                ErrorKind::OutOfMemory,
                format!("it uses {bytes} bytes at a time, and the device has {most} bytes of memory"),
            )
        } else {
            return None;
        };
        Some(Error::new(kind, text).with_op(launch.blame.0).with_site(launch.blame.1))
    })
}

/// If a packing step does not fit, the launch that reads the pack. A pack must fit one segment, beside the buffers from
/// which it is copied.
fn misfit_pack<'p>(step: &Step, plan: &'p Plan, device: &DeviceInfo) -> Option<&'p Launch> {
    let Step::Pack { from, to, .. } = step else { return None };
    let buffer = |b: u32| &plan.buffers[b as usize];
    let bytes = |b: u32| device.bytes_at_once(buffer(b).dtype, buffer(b).elements);
    if device.pieces(buffer(*to).dtype, buffer(*to).elements) == 1 && bytes(*from) + bytes(*to) <= device.memory_bytes {
        return None;
    }
    plan.steps.iter().find_map(|step| match step {
        Step::Launch(launch) if launch.uses.iter().any(|used| used.buffer == *to) => Some(&**launch),
        _ => None,
    })
}

fn bindings(launch: &Launch, plan: &Plan, device: &DeviceInfo) -> u64 {
    let segments = |used: &Use| {
        let buffer = &plan.buffers[used.buffer as usize];
        if used.tiled { 1 } else { device.pieces(buffer.dtype, buffer.elements) }
    };
    1 + launch.uses.iter().map(segments).sum::<u64>() + launch.faults.is_some() as u64
}

/// Bytes that are resident while a launch runs. A copy step needs less than one of the launches around it.
fn bytes_at_once(launch: &Launch, plan: &Plan, device: &DeviceInfo) -> u64 {
    let mut held: FxHashMap<u32, u64> = FxHashMap::default();
    let faults = launch.faults.map(|buffer| Use { buffer, tiled: false, writes: true, reads: true });
    for used in launch.uses.iter().copied().chain(faults) {
        let buffer = &plan.buffers[used.buffer as usize];
        let bytes = if used.tiled && !buffer.joined {
            device.bytes_in_turn(buffer.dtype, buffer.elements)
        } else {
            device.bytes_at_once(buffer.dtype, buffer.elements)
        };
        let most = held.entry(used.buffer).or_default();
        *most = bytes.max(*most);
    }
    held.values().sum()
}
