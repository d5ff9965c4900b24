//! A device over plain bytes that runs batches strictly in order and checks every access.

use super::words;
use crate::contract::batch::{Batch, Command, Slot};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::residency::ResidencyEvent;
use crate::contract::plan::Launch;
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::BufferId;
use crate::kernels::ir::{Geometry, Tile};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// An in-order device over plain bytes; `None` is a byte that was never written.
pub(in crate::residency) struct ToyDevice {
    pub(in crate::residency) info: DeviceInfo,
    pub(in crate::residency) buffers: BTreeMap<BufferId, Vec<Option<u8>>>,
    pub(in crate::residency) queue: VecDeque<Batch>,
    pub(in crate::residency) reports: VecDeque<ResidencyEvent>,
    /// Reads of bytes that were never written are tolerated, because a batch failed before.
    pub(in crate::residency) lenient: bool,
    /// Contents are not kept: for sizes that plain bytes would be too slow for.
    pub(in crate::residency) dry: bool,
    sizes: BTreeMap<BufferId, u64>,
    pub(in crate::residency) bytes_peak: u64,
}

impl ToyDevice {
    pub(in crate::residency) fn new(info: DeviceInfo) -> ToyDevice {
        let (queue, reports) = (VecDeque::new(), VecDeque::new());
        ToyDevice {
            info,
            buffers: BTreeMap::new(),
            queue,
            reports,
            lenient: false,
            dry: false,
            sizes: BTreeMap::new(),
            bytes_peak: 0,
        }
    }

    pub(in crate::residency) fn clear(&mut self) {
        self.buffers.clear();
        self.queue.clear();
        self.reports.clear();
    }

    /// Runs the next batch and appends its reports.
    pub(in crate::residency) fn step(&mut self) {
        let Some(batch) = self.queue.pop_front() else { return };
        let mut faults = Vec::new();
        for (at, command) in batch.commands.iter().enumerate() {
            if let Err(error) = self.run(command, &mut faults) {
                assert!(self.lenient, "batch {}: {error}", batch.id);
                self.allocations_of(&batch.commands[at..]);
                let (device, batch) = (self.info.id, batch.id);
                self.reports.push_back(ResidencyEvent::BatchFailed { device, batch, error });
                return;
            }
        }
        let (device, batch) = (self.info.id, batch.id);
        self.reports.push_back(ResidencyEvent::BatchFinished { device, batch, faults, device_ns: 10 });
    }

    /// The next batch fails, and leaves nothing but its allocations; if it is an odd one, for want of memory, not even
    /// those.
    pub(in crate::residency) fn fail_next(&mut self) {
        let Some(batch) = self.queue.pop_front() else { return };
        self.lenient = true;
        if batch.id.0.is_multiple_of(2) {
            self.allocations_of(&batch.commands);
        }
        let error = Error::new(ErrorKind::Internal, "injected");
        let (device, batch) = (self.info.id, batch.id);
        self.reports.push_back(ResidencyEvent::BatchFailed { device, batch, error });
    }

    fn allocations_of(&mut self, commands: &[Command]) {
        for command in commands {
            if let Command::Allocate { .. } | Command::Free { .. } = command {
                self.run(command, &mut Vec::new()).expect("making and dropping allocations never fails here");
            }
        }
    }

    /// Batches in flight fail, then the device is reported lost.
    pub(in crate::residency) fn lose(&mut self, replaced: bool) {
        self.lenient = true;
        let error = Error::new(ErrorKind::DeviceLost, "gone");
        let device = self.info.id;
        let batches: Vec<Batch> = self.queue.drain(..).collect();
        for batch in batches {
            let (batch, error) = (batch.id, error.clone());
            self.reports.push_back(ResidencyEvent::BatchFailed { device, batch, error });
        }
        self.buffers.clear();
        self.reports.push_back(ResidencyEvent::DeviceLost { device, error, replaced });
    }

    fn run_dry(&mut self, command: &Command) {
        match command {
            Command::Allocate { buffer, bytes } => {
                assert!(self.sizes.insert(*buffer, *bytes).is_none());
                self.bytes_peak = self.bytes_peak.max(self.sizes.values().sum());
            }
            Command::Free { buffer } => assert!(self.sizes.remove(buffer).is_some()),
            Command::Dispatch { bindings, .. } => {
                assert!(bindings.iter().flatten().all(|s| s.offset + s.bytes <= self.sizes[&s.buffer]));
            }
            Command::Readback { transfer, dtype, elements, .. } => {
                let data = Ok(HostBuffer::zeroed(*dtype, *elements as usize).shared());
                let transfer = *transfer;
                self.reports.push_back(ResidencyEvent::ReadbackDone { transfer, data });
            }
            Command::Upload { .. } | Command::Zero { .. } | Command::Copy { .. } | Command::ReadFaults { .. } => {}
        }
    }

    fn run(&mut self, command: &Command, faults: &mut Vec<u32>) -> Result<(), Error> {
        if self.dry {
            self.run_dry(command);
            return Ok(());
        }
        match command {
            Command::Allocate { buffer, bytes } => {
                let repeated = self.buffers.get(buffer).is_some_and(|there| there.len() as u64 == *bytes);
                assert!(!repeated || self.lenient, "{buffer:?} is allocated twice");
                if !repeated {
                    self.buffers.insert(*buffer, vec![None; *bytes as usize]);
                }
                let total = self.buffers.values().map(|b| b.len() as u64).sum::<u64>();
                assert!(total <= self.info.memory_bytes || self.lenient, "over the memory: {total}");
                self.bytes_peak = self.bytes_peak.max(total);
            }
            Command::Free { buffer } => {
                assert!(self.buffers.remove(buffer).is_some() || self.lenient, "{buffer:?} is freed twice");
            }
            Command::Upload { from, first, elements, to } => {
                for n in 0..*elements {
                    let element = self.host_element(from, (first + n) as usize);
                    self.write(*to, from.dtype(), n, element)?;
                }
            }
            Command::Zero { slot } => {
                self.range(*slot)?.fill(Some(0));
            }
            Command::Copy { from, to } => {
                assert_eq!(from.bytes, to.bytes, "a copy keeps its size");
                let bytes = self.range(*from)?.to_vec();
                self.range(*to)?.copy_from_slice(&bytes);
            }
            Command::Dispatch { launch, tile, bindings, faults, span_shift } => {
                self.dispatch(launch, *tile, bindings, *span_shift)?;
                if let Some(slot) = faults {
                    self.write(*slot, DType::U32, 0, 1)?;
                }
            }
            Command::Readback { transfer, from, dtype, elements } => {
                let mut bytes = Vec::new();
                for n in 0..*elements {
                    let element = self.read(*from, *dtype, n)?;
                    bytes.extend_from_slice(&element.to_le_bytes()[..dtype.bytes()]);
                }
                let data = match dtype {
                    DType::U8 => HostBuffer::from_vec(bytes),
                    _ => HostBuffer::from_vec(words(&bytes)),
                };
                let data = Ok(data.shared());
                self.reports.push_back(ResidencyEvent::ReadbackDone { transfer: *transfer, data });
            }
            Command::ReadFaults { slot, words } => {
                for n in 0..*words {
                    if self.read(*slot, DType::U32, n as u64)? != 0 {
                        faults.push(n);
                    }
                }
            }
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        launch: &Launch,
        tile: Tile,
        bindings: &[SmallVec<[Slot; 1]>],
        shift: u32,
    ) -> Result<(), Error> {
        let dtype = DType::U32;
        let whole = matches!(launch.geometry, Geometry::Reduce { .. });
        let at = |u: usize, n: u32| -> (Slot, u64) {
            let slots = &bindings[u];
            let index = if launch.uses[u].tiled { n - tile.base } else { n };
            match slots.len() {
                1 => (slots[0], index as u64),
                _ => (slots[(index >> shift) as usize], (index & ((1 << shift) - 1)) as u64),
            }
        };
        let mut total = 0u32;
        for n in tile.begin..tile.end {
            let mut sum = 1u32;
            for u in (0..launch.uses.len()).filter(|&u| launch.uses[u].reads) {
                let single = bindings[u].len() == 1 && !launch.uses[u].tiled;
                let (slot, index) = if single { (bindings[u][0], self.clamp(bindings[u][0], n)) } else { at(u, n) };
                sum = sum.wrapping_add(self.read(slot, dtype, index)?);
            }
            total = total.wrapping_add(sum - whole as u32);
            if !whole {
                for u in (0..launch.uses.len()).filter(|&u| launch.uses[u].writes) {
                    let (slot, index) = at(u, n);
                    self.write(slot, dtype, index, sum)?;
                }
            }
        }
        if whole {
            for u in (0..launch.uses.len()).filter(|&u| launch.uses[u].writes) {
                let before = if tile.begin == 0 { 0 } else { self.read(bindings[u][0], dtype, 0)? };
                self.write(bindings[u][0], dtype, 0, before.wrapping_add(total))?;
            }
        }
        Ok(())
    }

    /// Untiled operands of one element are read as scalars.
    fn clamp(&self, slot: Slot, n: u32) -> u64 {
        if slot.bytes <= 16 { 0 } else { n as u64 }
    }

    fn host_element(&self, from: &HostBuffer, n: usize) -> u32 {
        let width = from.dtype().bytes();
        let mut word = [0u8; 4];
        word[..width].copy_from_slice(&from.bytes()[n * width..(n + 1) * width]);
        u32::from_le_bytes(word)
    }

    fn range(&mut self, slot: Slot) -> Result<&mut [Option<u8>], Error> {
        let missing = || Error::new(ErrorKind::Internal, format!("{:?} does not exist", slot.buffer));
        let bytes = self.buffers.get_mut(&slot.buffer).ok_or_else(missing)?;
        Ok(&mut bytes[slot.offset as usize..(slot.offset + slot.bytes) as usize])
    }

    fn read(&mut self, slot: Slot, dtype: DType, n: u64) -> Result<u32, Error> {
        let (width, lenient) = (self.info.element_bytes(dtype) as usize, self.lenient);
        let at = n as usize * width;
        let mut word = [0u8; 4];
        for (to, from) in word.iter_mut().zip(&self.range(slot)?[at..at + width]) {
            let known = from.or(lenient.then_some(0xEE));
            *to = known
                .ok_or_else(|| Error::new(ErrorKind::Internal, format!("{slot:?} is read before it is written")))?;
        }
        Ok(u32::from_le_bytes(word))
    }

    fn write(&mut self, slot: Slot, dtype: DType, n: u64, element: u32) -> Result<(), Error> {
        let width = self.info.element_bytes(dtype) as usize;
        let at = n as usize * width;
        for (to, from) in self.range(slot)?[at..at + width].iter_mut().zip(element.to_le_bytes()) {
            *to = Some(from);
        }
        Ok(())
    }
}
