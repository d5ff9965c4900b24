//! For tests: devices that execute batches on plain bytes, strictly in order, and check every access; and builders
//! of plans with toy kernels.
//!
//! A toy launch writes to each element of its written uses the sum of the elements at that index (or the only
//! element) of its read uses, plus one; a full reduction sums its read uses. Elements are u32, or u8 that wrap.

mod plan;
mod toy;

pub(super) use plan::Builder;
pub(super) use toy::ToyDevice;

use crate::config::Config;
use crate::contract::batch::{Command, Slot};
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::messages::residency::{Eviction, ResidencyEvent, ResidencyOutput};
use crate::error::Error;
use crate::graph::{DType, Meta, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId, SessionId, ValueId};
use crate::residency::state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A device's numbers; its budget is all the memory that it has.
pub(super) fn device(id: u8, kind: DeviceKind, budget_bytes: u64, segment_shift: u32) -> DeviceInfo {
    let memory_bytes = budget_bytes;
    let span_shift = segment_shift;
    DeviceInfo {
        software: true,
        budget_bytes,
        memory_bytes,
        host_share_bytes: 0,
        segment_shift,
        span_shift,
        ..DeviceInfo::toy(DeviceId(id), kind)
    }
}

/// A device for which a hundred elements of one launch are a slice.
pub(super) fn slow(mut info: DeviceInfo) -> DeviceInfo {
    info.costs.f32_gop_per_s = 1e-4;
    info.costs.dispatch_us = 0.0;
    info
}

pub(super) fn value(index: u32) -> ValueId {
    ValueId { session: SessionId(0), index: index.into() }
}

pub(super) fn meta(dtype: DType, elements: u64) -> Meta {
    Meta { dtype, shape: Shape::new(&[elements as usize]).expect("a small shape") }
}

/// Little-endian words.
pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Residency with its devices, and its messages to the scheduler.
pub(super) struct World {
    pub(super) state: State,
    pub(super) devices: Vec<ToyDevice>,
    pub(super) arrived: BTreeMap<ValueId, Result<Arc<HostBuffer>, Error>>,
    pub(super) finished: BTreeMap<RegionId, Vec<(ValueId, Error)>>,
    pub(super) failed: BTreeMap<RegionId, Error>,
    pub(super) lost: Vec<ValueId>,
    /// Devices that have not reported whether they serve again.
    stalled: BTreeSet<DeviceId>,
    pub(super) evicted: Vec<Eviction>,
    /// Batches submitted, in words.
    pub(super) log: Vec<String>,
    /// The regions of batches with dispatches, as they were submitted.
    pub(super) dispatched: Vec<RegionId>,
}

impl World {
    pub(super) fn new(devices: Vec<DeviceInfo>) -> World {
        let config = Config { batches_in_flight: 8, ..Config::default() };
        World {
            state: State::new(devices.clone(), &config),
            devices: devices.into_iter().map(ToyDevice::new).collect(),
            arrived: BTreeMap::new(),
            finished: BTreeMap::new(),
            failed: BTreeMap::new(),
            lost: Vec::new(),
            stalled: BTreeSet::new(),
            evicted: Vec::new(),
            log: Vec::new(),
            dispatched: Vec::new(),
        }
    }

    /// A host device with plenty, and a GPU with this budget and segment.
    pub(super) fn with_gpu(budget_bytes: u64, segment_shift: u32) -> World {
        let host = device(0, DeviceKind::Host, 1 << 30, 31);
        World::new(vec![host, device(1, DeviceKind::Gpu, budget_bytes, segment_shift)])
    }

    /// Feeds an event, checks the invariants, hands the instructions out.
    pub(super) fn feed(&mut self, event: ResidencyEvent) {
        let mut out = Vec::new();
        let answered = match &event {
            ResidencyEvent::DeviceLost { device, .. } => Some(*device),
            _ => None,
        };
        self.state.handle(event, &mut out);
        self.state.validate();
        if let Some(device) = answered {
            out.retain(|said| !matches!(said, ResidencyOutput::DeviceStalled(d) if *d == device));
            self.stalled.remove(&device);
        }
        for instruction in out {
            match instruction {
                ResidencyOutput::Submit { device, batch } => {
                    assert!(!self.stalled.contains(&device), "device {device} has not said whether it serves again");
                    if batch.commands.iter().any(|c| matches!(c, Command::Dispatch { .. })) {
                        self.dispatched.push(batch.region);
                    }
                    self.log.extend(batch.commands.iter().map(|c| format!("{device}: {}", brief(c))));
                    self.devices[device.0 as usize].queue.push_back(batch);
                }
                // The toy's plans have no key.
                ResidencyOutput::PlanRan { .. } => unreachable!("RES-10: nobody asked"),
                ResidencyOutput::Release { device, buffers } => {
                    let toy = &mut self.devices[device.0 as usize];
                    // Batches that were submitted before may still use them.
                    while !toy.queue.is_empty() {
                        toy.step();
                    }
                    buffers.iter().for_each(|b| drop(toy.buffers.remove(b)));
                }
                ResidencyOutput::RegionFinished { region, faults, .. } => {
                    assert!(self.finished.insert(region, faults).is_none(), "region {region} finished twice");
                    assert!(!self.failed.contains_key(&region), "region {region} had failed");
                }
                ResidencyOutput::RegionFailed { region, error } => {
                    assert!(self.failed.insert(region, error).is_none(), "region {region} failed twice");
                    assert!(!self.finished.contains_key(&region), "region {region} had finished");
                }
                ResidencyOutput::ValueArrived { value, data } => {
                    self.arrived.insert(value, data);
                }
                ResidencyOutput::Evicted(eviction) => self.evicted.push(eviction),
                ResidencyOutput::DeviceStalled(device) => {
                    assert!(self.stalled.insert(device), "device {device} stalled twice");
                }
                ResidencyOutput::ValueLost { value, .. } => self.lost.push(value),
            }
        }
    }

    /// Lets all devices work until nothing is left to do.
    pub(super) fn settle(&mut self) {
        loop {
            for toy in &mut self.devices {
                while !toy.queue.is_empty() {
                    toy.step();
                }
            }
            let mut any = false;
            for d in 0..self.devices.len() {
                while let Some(report) = self.devices[d].reports.pop_front() {
                    self.feed(report);
                    any = true;
                }
            }
            if !any && self.devices.iter().all(|d| d.queue.is_empty()) {
                return;
            }
        }
    }

    /// The elements of a value that arrived.
    pub(super) fn data(&self, id: u32) -> Vec<u32> {
        let data = self.arrived[&value(id)].as_ref().expect("it arrived whole");
        data.as_slice::<u32>().expect("words").to_vec()
    }
}

/// A source of consecutive numbers.
pub(super) fn numbers(from: u32, count: usize) -> Arc<HostBuffer> {
    HostBuffer::from_vec((from..from + count as u32).collect::<Vec<u32>>()).shared()
}

fn brief(command: &Command) -> String {
    let slot = |s: &Slot| format!("b{}+{}", s.buffer, s.offset);
    match command {
        Command::Allocate { buffer, bytes } => format!("allocate b{buffer} {bytes}"),
        Command::Free { buffer } => format!("free b{buffer}"),
        Command::Upload { first, elements, to, .. } => format!("upload {first}..{} to {}", first + elements, slot(to)),
        Command::Zero { slot: s } => format!("zero {}", slot(s)),
        Command::Copy { from, to } => format!("copy {} to {}", slot(from), slot(to)),
        Command::Dispatch { tile, bindings, .. } => {
            let bound: Vec<String> =
                bindings.iter().map(|b| b.iter().map(slot).collect::<Vec<_>>().join("|")).collect();
            let last = if tile.last { " last" } else { "" };
            format!("dispatch {}..{} base {}{last} over {}", tile.begin, tile.end, tile.base, bound.join(", "))
        }
        Command::Readback { from, elements, .. } => format!("readback {elements} of {}", slot(from)),
        Command::ReadFaults { slot: s, words } => format!("read {words} fault words of {}", slot(s)),
    }
}
