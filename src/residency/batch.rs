//! Batches: opened, filled with commands, closed and queued for their device.
//!
//! In: commands in order. Out: [`Batch`]es, with a record of what each one fills, reads back and allocates.
//! Must hold: RES-4, a closed batch has a record until the device reports on it, with the bytes that it moves (RES-11).

use super::device::{Flight, Prepared};
use super::state::State;
use super::values::{Change, Key, Place};
use crate::contract::batch::{Batch, Command, Transfer};
use crate::contract::device::DeviceInfo;
use crate::ids::{BatchId, BufferId, RegionId, SessionId};
use smallvec::SmallVec;

/// A batch that commands are added to.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: BatchId,
    pub(super) region: RegionId,
    pub(super) session: SessionId,
    pub(super) commands: Vec<Command>,
    /// Segments that its commands fill.
    pub(super) fills: Vec<(Key, u32)>,
    /// Readbacks in it.
    pub(super) transfers: Vec<Transfer>,
    /// Estimated microseconds of its uploads and dispatches. Copies are charged when the device reports their time.
    pub(super) work_us: f64,
}

impl Open {
    /// An empty batch.
    pub(super) fn new(id: BatchId, region: RegionId, session: SessionId) -> Open {
        Open { id, region, session, commands: Vec::new(), fills: Vec::new(), transfers: Vec::new(), work_us: 0.0 }
    }
}

impl State {
    /// Opens a batch.
    pub(super) fn open(&mut self, region: RegionId, session: SessionId) -> Open {
        Open::new(BatchId(self.new_number()), region, session)
    }

    /// Queues the batch for its device, unless it is empty, and leaves a new, empty one in its place. `service` marks a
    /// batch that is not part of its region's own work.
    pub(super) fn close(&mut self, d: usize, open: &mut Open, service: bool) {
        if open.commands.is_empty() {
            // A batch without commands is not sent and cannot fail. Its fills, slots of empty values, are done.
            for (key, segment) in std::mem::take(&mut open.fills) {
                self.finish_fill(d, key, segment, open.id);
            }
            return;
        }
        let next = self.open(open.region, open.session);
        let done = std::mem::replace(open, next);
        let mut flight = Flight {
            region: done.region,
            session: done.session,
            weight: self.regions.get(&done.region).map_or(1, |work| work.plan.weight),
            work_us: done.work_us,
            service,
            long: self.regions.get(&done.region).is_some_and(|work| work.long),
            fills: done.fills,
            transfers: done.transfers,
            allocated: Vec::new(),
            freed: Vec::new(),
            touched: SmallVec::new(),
            link_bytes: 0,
        };
        let info = &self.devices[d].info;
        for command in &done.commands {
            note_buffers(command, &mut flight);
            if !info.capabilities.shares_host_memory {
                flight.link_bytes += link_bytes(command, info);
            }
        }
        flight.touched.sort_unstable();
        flight.touched.dedup();
        if !service && let Some(work) = self.regions.get_mut(&done.region) {
            work.batches += 1;
        }
        let device = &mut self.devices[d];
        device.flights.insert(done.id, flight);
        let batch = Batch { id: done.id, region: done.region, session: done.session, commands: done.commands };
        device.prepared.push_back(Prepared { batch, then_drop: Vec::new() });
    }

    /// A batch that fills a segment is done.
    pub(super) fn finish_fill(&mut self, d: usize, key: Key, segment: u32, batch: BatchId) {
        let at = self.values.get_mut(&key).and_then(|v| v.segment_mut(d, segment));
        if let Some(at) = at
            && matches!(at.place, Place::Filling { batch: b, .. } if b == batch)
        {
            at.change(Change::Finish);
        }
    }
}

/// Bytes that a command moves between the host and a device with memory of its own.
fn link_bytes(command: &Command, device: &DeviceInfo) -> u64 {
    match command {
        Command::Upload { from, elements, .. } => elements * device.element_bytes(from.dtype()),
        Command::Readback { dtype, elements, .. } => elements * device.element_bytes(*dtype),
        Command::ReadFaults { words, .. } => *words as u64 * 4,
        _ => 0,
    }
}

fn note_buffers(command: &Command, flight: &mut Flight) {
    let mut touch = |buffer: BufferId| {
        if flight.touched.last() != Some(&buffer) {
            flight.touched.push(buffer);
        }
    };
    match command {
        Command::Allocate { buffer, bytes } => flight.allocated.push((*buffer, *bytes)),
        Command::Free { buffer } => flight.freed.push(*buffer),
        Command::Upload { to, .. } => touch(to.buffer),
        Command::Zero { slot } | Command::ReadFaults { slot, .. } => touch(slot.buffer),
        Command::Copy { from, to } => {
            touch(from.buffer);
            touch(to.buffer);
        }
        Command::Dispatch { bindings, faults, .. } => {
            bindings.iter().flatten().chain(faults).for_each(|slot| touch(slot.buffer));
        }
        Command::Readback { from, .. } => touch(from.buffer),
    }
}
