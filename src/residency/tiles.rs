//! How a launch is cut where its operands have several segments.
//!
//! In: a launch and its device's segment size. Out: tiles, and what each one uses. What is joined, or of one segment,
//! is used as a whole (PLAN-4).
//! Must hold: tiles cover the launch's space once, in order, and only the last says so; they depend on shapes and
//! segment size alone, so that the bits of a reduction do too.

use super::cursor::{Stop, blamed};
use super::device::Device;
use super::values::segments_of;
use crate::contract::plan::{Launch, Plan, Use};
use crate::error::{Error, ErrorKind};
use crate::kernels::ir::{Geometry, Tile};
use smallvec::SmallVec;

/// A segment of a plan's buffer that a tile uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) buffer: u32,
    pub(super) segment: u32,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// Segments of a use that a tile binds.
pub(super) fn segments_used(u: &Use, plan: &Plan, device: &Device, tile: Option<u32>) -> std::ops::Range<u32> {
    let buffer = &plan.buffers[u.buffer as usize];
    let count = segments_of(buffer.elements, device.shift_of(buffer.joined));
    let whole = u.tiled || buffer.joined || count == 1 || device.shift == device.span_shift;
    debug_assert!(whole, "PLAN-4: buffer {} lies in {count} segments", u.buffer);
    match tile {
        Some(n) if u.tiled && count > 1 => n..n + 1,
        _ => 0..count,
    }
}

/// What a tile of a launch uses, each segment once.
pub(super) fn needs_of(launch: &Launch, plan: &Plan, device: &Device, tile: Option<u32>) -> SmallVec<[Need; 8]> {
    let mut needs: SmallVec<[Need; 8]> = SmallVec::new();
    let mut add = |need: Need| match needs.iter_mut().find(|n| n.buffer == need.buffer && n.segment == need.segment) {
        Some(n) => {
            n.reads |= need.reads;
            n.writes |= need.writes;
        }
        None => needs.push(need),
    };
    for u in &launch.uses {
        for segment in segments_used(u, plan, device, tile) {
            add(Need { buffer: u.buffer, segment, reads: u.reads, writes: u.writes });
        }
    }
    if let Some(buffer) = launch.faults {
        add(Need { buffer, segment: 0, reads: true, writes: true });
    }
    needs
}

/// log2 of the elements of a tile.
pub(super) fn tile_shift(launch: &Launch, plan: &Plan, device: &Device) -> u32 {
    let joined = |u: &Use| u.tiled && plan.buffers[u.buffer as usize].joined;
    device.shift_of(launch.uses.iter().any(joined))
}

/// The number of tiles, if a tiled use has several segments.
pub(super) fn tiles_of(launch: &Launch, plan: &Plan, device: &Device) -> Result<Option<u32>, Stop> {
    let shift = tile_shift(launch, plan, device);
    let tiled = |u: &&Use| u.tiled && segments_of(plan.buffers[u.buffer as usize].elements, shift) > 1;
    if launch.uses.iter().find(tiled).is_none() {
        return Ok(None);
    }
    match launch.geometry {
        Geometry::Map { elements: n } | Geometry::Reduce { outer: 1, inner: n } => {
            Ok(Some(segments_of(n as u64, shift)))
        }
        Geometry::Reduce { .. } | Geometry::Scan { .. } => {
            let text = "PLAN: only maps and full reductions can be cut into tiles";
            Err(blamed(Stop::Fail(Error::new(ErrorKind::Internal, text)), launch))
        }
    }
}

pub(super) fn tile_range(geometry: &Geometry, shift: u32, tile: Option<u32>, count: u32) -> Tile {
    let elements = match *geometry {
        Geometry::Map { elements } => elements,
        Geometry::Reduce { outer: 1, inner } => inner,
        Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. } => outer,
    };
    match tile {
        None => Tile { begin: 0, end: elements, base: 0, last: true },
        Some(n) => {
            let begin = (n as u64) << shift;
            let end = (begin + (1u64 << shift)).min(elements as u64) as u32;
            Tile { begin: begin as u32, end, base: begin as u32, last: n + 1 == count }
        }
    }
}
