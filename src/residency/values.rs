//! A value's bytes: a copy in host memory, and segments on devices.
//!
//! In: changes of single segments. Out: where each segment is.
//! Must hold: RES-1, a segment changes only as this table says (`Segment::change`):
//!
//! | from \ change | `Assign` a slot | `Finish` its batch | `Give` the slot away | `Drain` | `Arrive` |
//! |---|---|---|---|---|---|
//! | Absent   | Filling | | | | |
//! | Filling  | | Valid | Absent | Draining | |
//! | Valid    | | Valid | Absent | Draining | |
//! | Draining | | | | | Absent |
//!
//! | state | slot | who may use it |
//! |---|---|---|
//! | Absent | none | none; its bytes may be in `part`, in the whole host copy, on another device, or not made yet |
//! | Filling | yes | later commands of its device, since a device works in order; its batch may still fail |
//! | Valid | yes | the same; its batch is done |
//! | Draining | none (its slot was given away; the readback comes before commands that use the slot) | none, until the readback has arrived |

use crate::contract::batch::{Slot, Transfer};
use crate::error::Error;
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, RegionId, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// The name of something that holds bytes: a value, or a buffer that lives within a plan (scratch, fault words).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Value(ValueId),
    /// Buffer of this number of a region's plan.
    Scratch(RegionId, u32),
}

/// Where a segment is on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Absent,
    Filling { slot: Slot, batch: BatchId },
    Valid { slot: Slot },
    Draining,
}

/// What may happen to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Assign { slot: Slot, batch: BatchId },
    Finish,
    Give,
    Drain,
    Arrive,
}

/// A segment of a value on a device.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) place: Place,
    /// Its bytes in host memory.
    pub(super) part: Option<Arc<HostBuffer>>,
    /// The readback that will bring `part`.
    pub(super) coming: Option<Transfer>,
    /// When it was used last, where it has a slot.
    pub(super) stamp: u64,
}

impl Segment {
    /// Its slot, where it has one.
    pub(super) fn slot(&self) -> Option<Slot> {
        match self.place {
            Place::Filling { slot, .. } | Place::Valid { slot } => Some(slot),
            Place::Absent | Place::Draining => None,
        }
    }

    /// The transition table (RES-1).
    pub(super) fn change(&mut self, change: Change) {
        self.place = match (self.place, change) {
            (Place::Absent, Change::Assign { slot, batch }) => Place::Filling { slot, batch },
            (Place::Filling { slot, .. } | Place::Valid { slot }, Change::Finish) => Place::Valid { slot },
            (Place::Filling { .. } | Place::Valid { .. }, Change::Give) => Place::Absent,
            (Place::Filling { .. } | Place::Valid { .. }, Change::Drain) => Place::Draining,
            (Place::Draining, Change::Arrive) => Place::Absent,
            (from, change) => panic!("RES-1: {change:?} of a segment that is {from:?}"),
        }
    }

    /// Whether its bytes are on the device, in `part`, or on their way to `part`.
    pub(super) fn is_kept(&self) -> bool {
        self.slot().is_some() || self.part.is_some() || self.coming.is_some()
    }
}

/// A value's segments on one device.
#[derive(Clone, Debug)]
pub(super) struct DeviceCopy {
    pub(super) device: usize,
    pub(super) segments: SmallVec<[Segment; 1]>,
}

impl DeviceCopy {
    /// Whether the whole value can be had from it.
    pub(super) fn is_complete(&self) -> bool {
        self.segments.iter().all(Segment::is_kept)
    }
}

/// Whether a value exists.
#[derive(Clone, Debug)]
pub(super) enum Status {
    /// The region that makes it has not been placed; perhaps its plan has not even arrived.
    Pending,
    /// Commands that make it have been emitted, or its host data was given.
    Placed,
    /// It will never exist.
    Failed(Error),
}

/// A value, or a buffer of a plan.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) dtype: DType,
    pub(super) elements: u64,
    /// It is stored in pieces as long as a binding can span, instead of segments.
    pub(super) joined: bool,
    pub(super) status: Status,
    /// The region that makes it, until it has finished.
    pub(super) maker: Option<RegionId>,
    /// All of it in host memory.
    pub(super) whole: Option<Arc<HostBuffer>>,
    /// Bytes of `whole` that count against the host budget (user data and buffers shared with the host device don't).
    pub(super) whole_counted: u64,
    pub(super) copies: SmallVec<[DeviceCopy; 1]>,
    /// Plans that arrived, use it and are not placed yet.
    pub(super) users: SmallVec<[RegionId; 2]>,
    /// Only `users` can still reach it.
    pub(super) retired: bool,
    /// The scheduler is to be told when `whole` is there.
    pub(super) awaited: bool,
    /// `whole` is to be put together as soon as all parts are there.
    pub(super) collect: bool,
}

impl Value {
    pub(super) fn new(dtype: DType, elements: u64) -> Value {
        Value {
            dtype,
            elements,
            joined: false,
            status: Status::Pending,
            maker: None,
            whole: None,
            whole_counted: 0,
            copies: SmallVec::new(),
            users: SmallVec::new(),
            retired: false,
            awaited: false,
            collect: false,
        }
    }

    pub(super) fn copy(&self, device: usize) -> Option<&DeviceCopy> {
        self.copies.iter().find(|c| c.device == device)
    }

    pub(super) fn segment(&self, device: usize, segment: u32) -> Option<&Segment> {
        self.copy(device).and_then(|c| c.segments.get(segment as usize))
    }

    pub(super) fn segment_mut(&mut self, device: usize, segment: u32) -> Option<&mut Segment> {
        let copy = self.copies.iter_mut().find(|c| c.device == device)?;
        copy.segments.get_mut(segment as usize)
    }

    /// Elements of a segment that begins at `segment << shift`.
    pub(super) fn segment_elements(&self, segment: u32, shift: u32) -> u64 {
        self.elements.saturating_sub((segment as u64) << shift).min(1u64 << shift)
    }

    /// Whether all of it is in host memory, on one device, or on its way from there (RES-5).
    pub(super) fn is_recoverable(&self) -> bool {
        self.whole.is_some() || self.copies.iter().any(DeviceCopy::is_complete)
    }
}

/// Segments of an array: at least one, also of an empty one.
pub(super) fn segments_of(elements: u64, shift: u32) -> u32 {
    elements.div_ceil(1u64 << shift).max(1) as u32
}
