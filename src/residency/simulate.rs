//! For tests: devices that execute batches on plain bytes, strictly in order, and check every access; and builders
//! of plans with toy kernels.
//!
//! A toy launch writes to each element of its written uses the sum of the elements at that index (or the only
//! element) of its read uses, plus one; a full reduction sums its read uses. Elements are u32, or u8 that wrap.

use super::message::{ResidencyEvent, ResidencyInstruction};
use super::state::State;
use crate::config::Config;
use crate::device::info::{Costs, DeviceInfo, DeviceKind, Features, FloatProfile, Precision};
use crate::device::message::{Batch, Command, Slot, Tile};
use crate::error::{Error, ErrorKind};
use crate::fusion::plan::{FaultSite, Launch, Plan, PlanBuffer, PlanInput, Program, Role, Step, Use};
use crate::graph::{DType, Meta, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{BufferId, DeviceId, RegionId, SessionId, ValueId};
use crate::kernels::ir::{Form, Geometry, Kernel};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;

/// A device's numbers.
pub(super) fn device(id: u8, kind: DeviceKind, budget_bytes: u64, segment_shift: u32) -> DeviceInfo {
    let costs = Costs {
        launch_us: 1.0,
        dispatch_us: 1.0,
        memory_gb_per_s: 1.0,
        f32_gop_per_s: 1.0,
        upload_gb_per_s: 1.0,
        readback_gb_per_s: 1.0,
    };
    let profile = FloatProfile {
        fma_fused: true,
        keeps_subnormals: true,
        exact_division: true,
        exact_sqrt: true,
        keeps_negative_zero: true,
    };
    let features =
        Features { f64: true, i64: true, subgroups: true, timestamps: true, mappable: true, pipeline_cache: true };
    DeviceInfo {
        id: DeviceId(id),
        kind,
        name: format!("toy {id}"),
        driver: String::new(),
        software: true,
        features,
        profile,
        precision: Precision::Accurate,
        costs,
        binding_bytes_max: 1 << 30,
        buffer_bytes_max: 1 << 30,
        bindings_max: 16,
        immediate_words_max: 0,
        budget_bytes,
        segment_shift,
        slab_slot_bytes_max: 0,
        batches_in_flight_max: 2,
    }
}

pub(super) fn value(index: u32) -> ValueId {
    ValueId { session: SessionId(0), index }
}

pub(super) fn meta(dtype: DType, elements: u64) -> Meta {
    Meta { dtype, shape: Shape::new(&[elements as usize]).expect("a small shape") }
}

/// A plan under construction.
pub(super) struct Builder(Plan);

impl Builder {
    pub(super) fn new(region: u64, device: u8) -> Builder {
        Builder(Plan {
            region: RegionId(region),
            session: SessionId(0),
            device: DeviceId(device),
            inputs: Vec::new(),
            buffers: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            readbacks: Vec::new(),
            fault_sites: Vec::new(),
            cached: false,
        })
    }

    fn buffer(&mut self, role: Role, dtype: DType, elements: u64) -> u32 {
        let live = (u32::MAX, 0);
        self.0.buffers.push(PlanBuffer { role, dtype, elements, in_place_of: None, zeroed: false, live });
        self.0.buffers.len() as u32 - 1
    }

    pub(super) fn input(&mut self, id: u32, elements: u64, source: Option<Arc<HostBuffer>>, dies: bool) -> u32 {
        self.input_of(DType::U32, id, elements, source, dies)
    }

    pub(super) fn input_of(
        &mut self,
        dtype: DType,
        id: u32,
        elements: u64,
        source: Option<Arc<HostBuffer>>,
        dies: bool,
    ) -> u32 {
        self.0.inputs.push(PlanInput { value: value(id), meta: meta(dtype, elements), source, dies });
        self.buffer(Role::Input(value(id)), dtype, elements)
    }

    pub(super) fn output(&mut self, id: u32, elements: u64) -> u32 {
        self.output_of(DType::U32, id, elements)
    }

    pub(super) fn output_of(&mut self, dtype: DType, id: u32, elements: u64) -> u32 {
        let buffer = self.buffer(Role::Output(value(id)), dtype, elements);
        self.0.outputs.push((value(id), meta(dtype, elements), buffer));
        buffer
    }

    /// Another value held by a buffer.
    pub(super) fn alias(&mut self, id: u32, buffer: u32) {
        let b = &self.0.buffers[buffer as usize];
        let meta = meta(b.dtype, b.elements);
        self.0.outputs.push((value(id), meta, buffer));
    }

    pub(super) fn in_place(&mut self, output: u32, of: u32) {
        self.0.buffers[output as usize].in_place_of = Some(of);
    }

    pub(super) fn scratch(&mut self, elements: u64, zeroed: bool) -> u32 {
        let at = self.buffer(Role::Scratch, DType::U32, elements);
        self.0.buffers[at as usize].zeroed = zeroed;
        at
    }

    pub(super) fn faults(&mut self, sites: &[(u32, Error)]) -> u32 {
        let site = |(id, error): &(u32, Error)| FaultSite { value: value(*id), error: error.clone() };
        self.0.fault_sites = sites.iter().map(site).collect();
        self.buffer(Role::Faults, DType::U32, sites.len() as u64)
    }

    fn used(&mut self, buffer: u32) {
        let step = self.0.steps.len() as u32;
        let live = &mut self.0.buffers[buffer as usize].live;
        *live = (live.0.min(step), live.1.max(step));
    }

    /// A launch over `n` elements; each use: buffer, tiled, reads, writes.
    pub(super) fn launch(&mut self, geometry: Geometry, uses: &[(u32, bool, bool, bool)], faults: Option<u32>) {
        uses.iter().for_each(|u| self.used(u.0));
        faults.into_iter().for_each(|f| self.used(f));
        let kernel = Kernel {
            form: Form::Map,
            operands: Vec::new(),
            scratch: None,
            faults: faults.is_some(),
            params: 16,
            insts: Vec::new(),
            stores: Vec::new(),
        };
        let uses: SmallVec<[Use; 6]> =
            uses.iter().map(|&(buffer, tiled, reads, writes)| Use { buffer, tiled, reads, writes }).collect();
        self.0.steps.push(Step::Launch(Arc::new(Launch {
            program: Program::Kernel(Arc::new(kernel), 0),
            geometry,
            params: Vec::new(),
            uses,
            faults,
            label: "toy".into(),
            ops: 1,
            bytes_read: 0,
            bytes_written: 0,
            split: None,
            blame: ("toy", Location::caller().into()),
        })));
    }

    /// A tiled map from `reads` to `writes`.
    pub(super) fn map(&mut self, elements: u64, reads: &[u32], writes: &[u32]) {
        let elements_of = |b: u32| self.0.buffers[b as usize].elements;
        let mut uses: Vec<_> = reads.iter().map(|&b| (b, elements_of(b) == elements, true, false)).collect();
        uses.extend(writes.iter().map(|&b| (b, true, false, true)));
        self.launch(Geometry::Map { elements: elements as u32 }, &uses, None);
    }

    pub(super) fn sum(&mut self, inner: u64, read: u32, write: u32) {
        let geometry = Geometry::Reduce { outer: 1, inner: inner as u32 };
        self.launch(geometry, &[(read, true, true, false), (write, false, false, true)], None);
    }

    pub(super) fn copy(&mut self, from: u32, to: u32) {
        self.used(from);
        self.used(to);
        self.0.steps.push(Step::Copy { from, to });
    }

    pub(super) fn read_back(&mut self, id: u32) {
        self.0.readbacks.push(value(id));
    }

    pub(super) fn done(self) -> ResidencyEvent {
        ResidencyEvent::PlanReady(Arc::new(self.0))
    }
}

/// An in-order device over plain bytes; `None` is a byte that nobody wrote.
pub(super) struct ToyDevice {
    info: DeviceInfo,
    buffers: BTreeMap<BufferId, Vec<Option<u8>>>,
    pub(super) queue: VecDeque<Batch>,
    pub(super) reports: VecDeque<ResidencyEvent>,
    /// Reads of bytes that nobody wrote are tolerated: something failed before.
    pub(super) lenient: bool,
    /// Contents are not kept: for sizes that plain bytes would be too slow for.
    pub(super) dry: bool,
    sizes: BTreeMap<BufferId, u64>,
    pub(super) bytes_peak: u64,
}

impl ToyDevice {
    fn new(info: DeviceInfo) -> ToyDevice {
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

    pub(super) fn clear(&mut self) {
        self.buffers.clear();
        self.queue.clear();
        self.reports.clear();
    }

    /// Runs the next batch and appends its reports.
    pub(super) fn step(&mut self) {
        let Some(batch) = self.queue.pop_front() else { return };
        let mut faults = Vec::new();
        for command in &batch.commands {
            if let Err(error) = self.run(command, &mut faults) {
                assert!(self.lenient, "batch {}: {error}", batch.id);
                let (device, batch) = (self.info.id, batch.id);
                self.reports.push_back(ResidencyEvent::BatchFailed { device, batch, error });
                return;
            }
        }
        let (device, batch) = (self.info.id, batch.id);
        self.reports.push_back(ResidencyEvent::BatchFinished { device, batch, faults, device_ns: 10 });
    }

    /// The next batch fails without a trace.
    pub(super) fn fail_next(&mut self) {
        let Some(batch) = self.queue.pop_front() else { return };
        self.lenient = true;
        let error = Error::new(ErrorKind::Internal, "injected");
        let (device, batch) = (self.info.id, batch.id);
        self.reports.push_back(ResidencyEvent::BatchFailed { device, batch, error });
    }

    /// Batches in flight fail, then the device is reported lost.
    pub(super) fn lose(&mut self, replaced: bool) {
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
                let (device, transfer) = (self.info.id, *transfer);
                self.reports.push_back(ResidencyEvent::ReadbackDone { device, transfer, data });
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
                let old = self.buffers.insert(*buffer, vec![None; *bytes as usize]);
                assert!(old.is_none() || self.lenient, "{buffer:?} is allocated twice");
                let total = self.buffers.values().map(|b| b.len() as u64).sum::<u64>();
                assert!(total <= self.info.budget_bytes || self.lenient, "over the budget: {total}");
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
            Command::Dispatch { launch, tile, bindings, faults, segment_shift } => {
                self.dispatch(launch, *tile, bindings, *segment_shift)?;
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
                let (device, data) = (self.info.id, Ok(data.shared()));
                self.reports.push_back(ResidencyEvent::ReadbackDone { device, transfer: *transfer, data });
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

/// Little-endian words.
pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Residency with its devices, and what the scheduler would hear.
pub(super) struct World {
    pub(super) state: State,
    pub(super) devices: Vec<ToyDevice>,
    pub(super) arrived: BTreeMap<ValueId, Result<Arc<HostBuffer>, Error>>,
    pub(super) finished: BTreeMap<RegionId, Vec<(ValueId, Error)>>,
    pub(super) failed: BTreeMap<RegionId, Error>,
    pub(super) lost: Vec<ValueId>,
    /// Batches submitted, in words.
    pub(super) log: Vec<String>,
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
            log: Vec::new(),
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
        self.state.handle(event, &mut out);
        self.state.validate();
        for instruction in out {
            match instruction {
                ResidencyInstruction::Submit { device, batch } => {
                    self.log.extend(batch.commands.iter().map(|c| format!("{device}: {}", brief(c))));
                    self.devices[device.0 as usize].queue.push_back(batch);
                }
                ResidencyInstruction::Release { device, buffers } => {
                    let toy = &mut self.devices[device.0 as usize];
                    // Batches that were submitted before may still use them.
                    while !toy.queue.is_empty() {
                        toy.step();
                    }
                    buffers.iter().for_each(|b| drop(toy.buffers.remove(b)));
                }
                ResidencyInstruction::RegionFinished { region, faults, .. } => {
                    assert!(self.finished.insert(region, faults).is_none(), "region {region} finished twice");
                    assert!(!self.failed.contains_key(&region), "region {region} had failed");
                }
                ResidencyInstruction::RegionFailed { region, error } => {
                    assert!(self.failed.insert(region, error).is_none(), "region {region} failed twice");
                    assert!(!self.finished.contains_key(&region), "region {region} had finished");
                }
                ResidencyInstruction::ValueArrived { value, data } => {
                    self.arrived.insert(value, data);
                }
                ResidencyInstruction::ValueLost { value, .. } => self.lost.push(value),
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
