//! Cuts a launch into tiles where its operands have several segments.
//!
//! In: a launch and its device's segment size. Out: tiles, and the segments that each of them uses. A tile uses all of
//! a buffer that is not tiled: such a buffer is joined or has one segment (PLAN-4).
//! Must hold: tiles cover the launch's space once, in order, and only the last has `Tile::last`. Tiles depend on
//! shapes, element types and segment size alone, so that the bits of a reduction do, too.

use super::cursor::{Stop, blamed};
use super::device::Device;
use super::values::segments_of;
use crate::contract::plan::{Launch, Plan, Use};
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::kernels::ir::{Geometry, Tile};
use smallvec::SmallVec;

/// One tile of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileAt {
    /// The number of the tile, in order.
    pub(super) number: u32,
    /// log2 of the elements of a tile.
    pub(super) shift: u32,
}

impl TileAt {
    /// The segment that the tile lies in, where a segment has `1 << shift` elements.
    fn segment(self, shift: u32) -> u32 {
        debug_assert!(shift >= self.shift, "PLAN-4: a tile lies in one segment of each use");
        self.number >> (shift - self.shift)
    }

    /// Whether the tile is the first of its segment.
    fn begins_segment(self, shift: u32) -> bool {
        self.segment(shift) << (shift - self.shift) == self.number
    }

    /// Whether the tile is the last of its segment. The launch's last tile may end a segment without this.
    pub(super) fn ends_segment(self, shift: u32) -> bool {
        TileAt { number: self.number + 1, ..self }.begins_segment(shift)
    }
}

/// A segment of a plan's buffer that a tile uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) buffer: u32,
    pub(super) segment: u32,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// Segments of a use that a tile binds.
pub(super) fn segments_used(u: &Use, plan: &Plan, device: &Device, tile: Option<TileAt>) -> std::ops::Range<u32> {
    let buffer = &plan.buffers[u.buffer as usize];
    let shift = device.shift_of(buffer.joined, buffer.dtype);
    let count = segments_of(buffer.elements, shift);
    let whole = u.tiled || buffer.joined || count == 1 || device.shift == device.span_shift;
    debug_assert!(whole, "PLAN-4: buffer {} lies in {count} segments", u.buffer);
    match tile {
        Some(tile) if u.tiled && count > 1 => {
            let segment = tile.segment(shift);
            segment..segment + 1
        }
        _ => 0..count,
    }
}

/// The segments that a tile of a launch uses, each once.
pub(super) fn needs_of(launch: &Launch, plan: &Plan, device: &Device, tile: Option<TileAt>) -> SmallVec<[Need; 8]> {
    let mut needs: SmallVec<[Need; 8]> = SmallVec::new();
    let mut add = |need: Need| match needs.iter_mut().find(|n| n.buffer == need.buffer && n.segment == need.segment) {
        Some(n) => {
            n.reads |= need.reads;
            n.writes |= need.writes;
        }
        None => needs.push(need),
    };
    for u in &launch.uses {
        let buffer = &plan.buffers[u.buffer as usize];
        // The segment already holds elements that an earlier tile of this launch wrote: they must be kept.
        let goes_on =
            u.tiled && tile.is_some_and(|tile| !tile.begins_segment(device.shift_of(buffer.joined, buffer.dtype)));
        for segment in segments_used(u, plan, device, tile) {
            add(Need { buffer: u.buffer, segment, reads: u.reads || goes_on, writes: u.writes });
        }
    }
    if let Some(buffer) = launch.faults {
        add(Need { buffer, segment: 0, reads: true, writes: true });
    }
    needs
}

/// log2 of the elements of a tile: as many as the shortest segment of a tiled use has.
pub(super) fn tile_shift(launch: &Launch, plan: &Plan, device: &Device) -> u32 {
    let tiled = || launch.uses.iter().filter(|u| u.tiled).map(|u| &plan.buffers[u.buffer as usize]);
    let joined = tiled().any(|buffer| buffer.joined);
    let shifts = tiled().map(|buffer| device.shift_of(joined, buffer.dtype));
    shifts.min().unwrap_or_else(|| device.shift_of(joined, DType::U32))
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
        Geometry::Reduce { .. } | Geometry::Scan { .. } | Geometry::Line { .. } => {
            let text = "PLAN: only maps and full reductions can be cut into tiles";
            Err(blamed(Stop::Fail(Error::new(ErrorKind::Internal, text)), launch))
        }
    }
}

pub(super) fn tile_range(geometry: &Geometry, tile: Option<TileAt>, span: [u32; 2], count: u32) -> Tile {
    let elements = match *geometry {
        Geometry::Map { elements } => elements,
        Geometry::Reduce { outer: 1, inner } => inner,
        Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. } | Geometry::Line { outer, .. } => outer,
    };
    match tile {
        None => Tile { begin: 0, end: elements, base: 0, base_wide: 0, last: true },
        Some(tile) => {
            let begin = (tile.number as u64) << tile.shift;
            let end = (begin + (1u64 << tile.shift)).min(elements as u64) as u32;
            let [base, base_wide] = span.map(|shift| (begin >> shift << shift) as u32);
            Tile { begin: begin as u32, end, base, base_wide, last: tile.number + 1 == count }
        }
    }
}
