//! Residency's record of one device: its memory, the plans that are being placed on it, and its batches, prepared and
//! in flight.
//!
//! In: batches that were closed, buffers that no pool holds any more. Out: limits by its budget, credit and link;
//! `Release` for those buffers. Must hold: RES-2, RES-4, RES-11, RES-15.

use super::cursor::Cursor;
use super::pool::Pool;
use super::turns::Turns;
use super::values::Key;
use crate::contract::batch::{Batch, Command, Transfer};
use crate::contract::device::{DeviceInfo, ONE_PIECE_SHIFT, shift_for};
use crate::contract::messages::residency::ResidencyOutput;
use crate::error::Error;
use crate::graph::DType;
use crate::ids::{BatchId, BufferId, RegionId, SessionId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// A batch that was closed and has not been reported back.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) region: RegionId,
    /// The session that it belongs to, and that session's weight.
    pub(super) session: SessionId,
    pub(super) weight: u32,
    /// Estimated microseconds that its session was charged for its commands.
    pub(super) work_us: f64,
    /// It is not part of its region's own work: it moves values between devices, or is the rest of a failed region. Its
    /// end does not end the region.
    pub(super) service: bool,
    /// It belongs to a long region.
    pub(super) long: bool,
    pub(super) fills: Vec<(Key, u32)>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) allocated: Vec<(BufferId, u64)>,
    pub(super) freed: Vec<BufferId>,
    pub(super) touched: SmallVec<[BufferId; 8]>,
    /// Bytes that cross the link: what it uploads and what it reads back. None on the host, whose memory is shared.
    pub(super) link_bytes: u64,
}

/// A batch that waits for credit.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) batch: Batch,
    /// Buffers that the device is told to drop right after this batch, the last that may name them (RES-15).
    pub(super) then_drop: Vec<BufferId>,
}

/// Residency's record of one device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) info: DeviceInfo,
    /// log2 of 32-bit elements in a segment; `ONE_PIECE_SHIFT` on the host device, where nothing is cut.
    pub(super) shift: u32,
    /// The same for joined buffers, whose pieces are as long as a binding can span.
    pub(super) span_shift: u32,
    pub(super) pool: Pool,
    /// The pool's clock at the last `IdlePassed` event.
    pub(super) idle_mark: u64,
    /// Segments with slots by last use: those in whole buffers, those in slabs.
    pub(super) lru: [BTreeMap<u64, (Key, u32)>; 2],
    /// Segments with stamps from here on belong to the step that is being placed.
    pub(super) pin_floor: u64,
    /// It took more than its budget for a step, and has not given it back (RES-2).
    pub(super) overdrawn: bool,
    /// Bytes that left their slots and have not arrived in host memory.
    pub(super) draining_bytes: u64,
    /// The sessions whose plans can be placed, and their turns.
    pub(super) turns: Turns,
    /// The plans that are being placed, one of a session at the most.
    pub(super) cursors: Vec<Cursor>,
    /// Plans that have ended on this device, since the start.
    pub(super) cursors_ended: u64,
    /// All plans in progress wait for each other's memory. The one that is being placed may not wait again: it fails if
    /// it finds none.
    pub(super) last_chance: bool,
    /// Batches that wait for credit.
    pub(super) prepared: VecDeque<Prepared>,
    /// Batches submitted or prepared.
    pub(super) flights: BTreeMap<BatchId, Flight>,
    /// Batches submitted and not reported back (RES-4).
    pub(super) in_flight: usize,
    /// Most batches in flight.
    pub(super) credit: usize,
    /// Bytes that the batches in flight move over the link (RES-11).
    pub(super) link_bytes: u64,
    /// Buffers whose `Allocate` was in a batch that failed, so that they may not exist.
    pub(super) unconfirmed: Vec<(BufferId, u64)>,
    /// Names of lent memory that no segment uses any more. The device is to drop them.
    pub(super) lent_to_drop: Vec<BufferId>,
    /// A batch failed because the device is lost. Nothing is sent to it until `DeviceLost`, which is certain to follow.
    pub(super) stalled: bool,
    /// The error with which it was lost for good.
    pub(super) lost: Option<Error>,
}

impl Device {
    /// log2 of elements in a segment of what is joined, or is not.
    pub(super) fn shift_of(&self, joined: bool, dtype: DType) -> u32 {
        shift_for(if joined { self.span_shift } else { self.shift }, dtype)
    }

    pub(super) fn new(info: DeviceInfo, batches_in_flight: u32) -> Device {
        Device {
            shift: info.segment_shift.min(ONE_PIECE_SHIFT),
            span_shift: info.span_shift.min(ONE_PIECE_SHIFT),
            pool: Pool::new(&info),
            lru: [BTreeMap::new(), BTreeMap::new()],
            pin_floor: 0,
            overdrawn: false,
            draining_bytes: 0,
            idle_mark: 0,
            turns: Turns::default(),
            cursors: Vec::new(),
            cursors_ended: 0,
            last_chance: false,
            prepared: VecDeque::new(),
            flights: BTreeMap::new(),
            in_flight: 0,
            credit: info.batches_in_flight_max.min(batches_in_flight).max(1) as usize,
            link_bytes: 0,
            unconfirmed: Vec::new(),
            lent_to_drop: Vec::new(),
            stalled: false,
            lost: None,
            info,
        }
    }

    /// Whether its memory beyond the budget has room for a slot. The host's budget is strict.
    pub(super) fn may_overdraw(&self, bytes: u64) -> bool {
        !self.info.capabilities.owns_host_budget && self.pool.room_for(bytes, self.info.memory_bytes)
    }

    /// A session's plan has ended, or failed.
    pub(super) fn plan_ended(&mut self, session: SessionId) {
        self.turns.end(session);
        self.cursors_ended += 1;
    }

    /// Estimated microseconds to upload this many bytes; 0 if the device shares the host's memory.
    pub(super) fn upload_us(&self, bytes: u64) -> f64 {
        if self.info.capabilities.shares_host_memory {
            return 0.0;
        }
        bytes as f64 / (self.info.costs.upload_gb_per_s * 1e3)
    }

    /// Bytes that may drain at a time.
    pub(super) fn draining_bytes_max(&self) -> u64 {
        self.info.budget_bytes / 4
    }

    /// Most bytes that batches in flight may move over the link (RES-11).
    pub(super) fn link_bytes_max(&self) -> u64 {
        self.info.budget_bytes / 4
    }

    /// Has the device drop buffers that no pool holds any more, after the prepared batches, which may name them
    /// (RES-15).
    pub(super) fn drop_behind(&mut self, buffers: Vec<BufferId>, out: &mut Vec<ResidencyOutput>) {
        match self.prepared.back_mut() {
            Some(last) => last.then_drop.extend(buffers),
            None => self.drop_now(buffers, out),
        }
    }

    /// Has the device drop buffers after the batches that were submitted.
    pub(super) fn drop_now(&self, buffers: Vec<BufferId>, out: &mut Vec<ResidencyOutput>) {
        if !buffers.is_empty() {
            out.push(ResidencyOutput::Release { device: self.info.id, buffers });
        }
    }

    /// A slice of a long plan is placed only while fewer batches than this are in flight. On a device that runs short
    /// batches beside a long one, this leaves a place for short plans; on others, only if the credit is more than two.
    pub(super) fn long_in_flight_max(&self) -> usize {
        let least = if self.info.capabilities.overlaps_long { 1 } else { self.credit.min(2) };
        (self.credit - 1).max(least)
    }

    /// Drops buffers of a failed batch that hold no slot and that no prepared batch names; it does not matter whether
    /// they exist.
    pub(super) fn drop_unconfirmed(&mut self, out: &mut Vec<ResidencyOutput>) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let prepared = self.prepared.iter().filter_map(|next| self.flights.get(&next.batch.id));
        let named: Vec<BufferId> = prepared.flat_map(|flight| flight.touched.iter().copied()).collect();
        let mut buffers = Vec::new();
        self.unconfirmed.retain(|&(buffer, _)| {
            let dropped = !named.contains(&buffer) && self.pool.discard(buffer);
            if dropped {
                buffers.push(buffer);
            }
            !dropped
        });
        self.drop_now(buffers, out);
    }

    /// Repeats, at the head of the next batch, allocations of a failed batch that no later batch has confirmed.
    pub(super) fn allocate_again(&mut self) {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        let Some(next) = self.prepared.front_mut() else { return };
        let next = &mut next.batch;
        let flight = self.flights.get_mut(&next.id).expect("RES-4: a prepared batch has a record");
        flight.allocated.extend(unconfirmed.iter().copied());
        let later: Vec<BufferId> = self.flights.range(next.id..).flat_map(|(_, f)| f.touched.iter().copied()).collect();
        let mut at = 0;
        for (buffer, bytes) in unconfirmed {
            if later.contains(&buffer) || self.pool.has(buffer) {
                next.commands.insert(at, Command::Allocate { buffer, bytes });
                at += 1;
            }
        }
    }
}
