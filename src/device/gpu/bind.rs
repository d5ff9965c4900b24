//! A cache of bind groups, by the buffers and ranges that they bind.
//!
//! Must hold: GPU-7; the cache is bounded. It is emptied when it is full, which costs a few microseconds for each
//! kernel in use.

use super::pipelines::Layout;
use super::raw_device::Gpu;
use crate::contract::batch::Slot;
use crate::error::Result;
use crate::ids::BufferId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Most bind groups in the cache.
const GROUPS_MAX: usize = 4096;
/// Most notes of which allocation is in which group, stale ones included.
const NOTES_MAX: usize = 8 * GROUPS_MAX;

/// The key of a bind group: the layout and the ranges that it binds.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Bytes of parameters that are bound; 0 if parameters are immediates.
    window: u64,
    slots: SmallVec<[Slot; 6]>,
}

/// The cache.
#[derive(Default)]
pub(super) struct BindGroups {
    groups: FxHashMap<Key, wgpu::BindGroup>,
    by_buffer: FxHashMap<BufferId, Vec<Key>>,
    notes: usize,
}

/// One slot with its buffer.
pub(super) struct Bound {
    /// The slot.
    pub(super) slot: Slot,
    /// Its buffer.
    pub(super) buffer: wgpu::Buffer,
}

impl BindGroups {
    /// The group that binds these slots and, unless parameters are immediates, `window` bytes of the parameter buffer
    /// at a dynamic offset.
    pub(super) fn get(
        &mut self,
        gpu: &Gpu,
        layout: &Layout,
        params: Option<(&wgpu::Buffer, u64)>,
        bound: &[Bound],
    ) -> Result<wgpu::BindGroup> {
        let key = Key { window: params.map_or(0, |(_, window)| window), slots: bound.iter().map(|b| b.slot).collect() };
        if let Some(group) = self.groups.get(&key) {
            return Ok(group.clone());
        }
        let group = make(gpu, layout, params, bound)?;
        if self.groups.len() >= GROUPS_MAX || self.notes >= NOTES_MAX {
            self.clear();
        }
        for b in bound {
            let keys = self.by_buffer.entry(b.slot.buffer).or_default();
            if keys.last() != Some(&key) {
                keys.push(key.clone());
                self.notes += 1;
            }
        }
        self.groups.insert(key, group.clone());
        Ok(group)
    }

    /// Drops the groups that name an allocation, because they would keep its memory alive.
    pub(super) fn forget(&mut self, buffer: BufferId) {
        for key in self.by_buffer.remove(&buffer).unwrap_or_default() {
            self.notes -= 1;
            self.groups.remove(&key);
        }
    }

    /// Drops all groups.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.by_buffer.clear();
        self.notes = 0;
    }
}

fn make(gpu: &Gpu, layout: &Layout, params: Option<(&wgpu::Buffer, u64)>, bound: &[Bound]) -> Result<wgpu::BindGroup> {
    let entry = |binding: usize, buffer, offset, bytes: u64| wgpu::BindGroupEntry {
        binding: binding as u32,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset,
            size: wgpu::BufferSize::new(bytes),
        }),
    };
    let mut entries: SmallVec<[wgpu::BindGroupEntry; 8]> = SmallVec::new();
    entries.extend(params.map(|(buffer, window)| entry(0, buffer, 0, window)));
    for (i, b) in bound.iter().enumerate() {
        entries.push(entry(i + 1, &b.buffer, b.slot.offset, b.slot.bytes));
    }
    gpu.checked(|| {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout.group,
            entries: &entries,
        })
    })
}
