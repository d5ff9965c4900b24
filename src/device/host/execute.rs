//! Runs the commands of a batch on the host, in order.
//!
//! In: commands. Out: readbacks, fault words, nanoseconds; a long launch, which the caller runs on another thread; or
//! the error of the first command that fails.
//!
//! Must hold: HOST-4: any failure of a kernel, a panic included, becomes an error that names its op.

use super::lanes::Job;
use super::table::Table;
use crate::contract::batch::{Command, Slot};
use crate::contract::device::Costs;
use crate::contract::plan::{Launch, Program};
use crate::device::backend::Context;
use crate::error::{Error, ErrorKind, Result, panic_words};
use crate::host_buffer::HostBuffer;
use crate::ids::DeviceId;
use crate::injection::{Latch, Wrong};
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::ir::{Geometry, Kernel};
use crate::kernels::library::Library;
use crate::stats::Counters;
use crate::timeline::{Detail, Lane};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// The results of a batch.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Fault words that are set.
    pub faults: Vec<u32>,
    /// Nanoseconds in kernels.
    pub compute_ns: u64,
}

/// Runs commands against the table.
pub(super) struct Executor<'a> {
    /// Its number.
    pub device: DeviceId,
    pub context: &'a Context,
    pub table: &'a mut Table,
    pub pool: &'a Pool,
    /// Faults that a test injects: a panic in the first dispatch, or at the end if there is none.
    pub wrong: Wrong,
    pub done: Done,
    /// The constants for estimating a launch.
    pub costs: &'a Costs,
    /// A launch that is estimated to take at least this many microseconds runs on a thread of its own.
    pub long_us: f64,
}

impl Executor<'_> {
    /// Runs commands up to the first long launch, which is returned, or up to the first error.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory`, or `ErrorKind::Internal` with the message of a panic.
    pub fn run(&mut self, commands: &mut impl Iterator<Item = Command>) -> Result<Option<Job>> {
        for command in commands {
            if let Some(job) = self.guarded(command)? {
                return Ok(Some(job));
            }
        }
        self.wrong.panicked()?;
        Ok(None)
    }

    fn guarded(&mut self, command: Command) -> Result<Option<Job>> {
        let blame = match &command {
            Command::Dispatch { launch, .. } => Some(launch.blame),
            _ => None,
        };
        // After a panic, the table stays valid: every allocation is complete, whatever its contents.
        let done = catch_unwind(AssertUnwindSafe(|| self.command(command)));
        let result = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
        result.map_err(|error| match blame {
            Some((op, site)) => error.with_op(op).with_site(site),
            None => error,
        })
    }

    fn command(&mut self, command: Command) -> Result<Option<Job>> {
        match command {
            Command::Allocate { buffer, bytes } => self.table.allocate(buffer, bytes as usize),
            Command::Free { buffer } => self.table.free(buffer),
            Command::Upload { from, first, elements, to } => {
                self.upload(from, first as usize, elements as usize, to)?
            }
            Command::Zero { slot } => {
                let (at, there) = self.table.write(slot.buffer, slot.offset as usize, slot.offset != 0)?;
                // SAFETY: ours, and at most what is there.
                unsafe { std::ptr::write_bytes(at, 0, (slot.bytes as usize).min(there)) };
            }
            Command::Copy { from, to } => self.copy(from, to)?,
            Command::Dispatch { launch, bindings, faults, .. } => return self.dispatch(&launch, &bindings, faults),
            Command::Readback { transfer, from, dtype, elements } => {
                let data = self.table.share(from.buffer, from.offset as usize, dtype, elements as usize)?;
                self.context.reports.readback(transfer, Ok(data));
            }
            Command::ReadFaults { slot, words } => {
                let (at, there) = self.table.read(slot.buffer, slot.offset as usize)?;
                assert!(there >= words as usize * 4, "EVAL-1: {words} fault words in {there} bytes");
                // SAFETY: that many words are there, aligned to the slot's 256 bytes.
                let words = unsafe { std::slice::from_raw_parts(at.cast::<u32>(), words as usize) };
                let set = words.iter().enumerate().filter(|&(_, &word)| word != 0);
                self.done.faults.extend(set.map(|(number, _)| number as u32));
            }
        }
        Ok(None)
    }

    fn upload(&mut self, from: Arc<HostBuffer>, first: usize, elements: usize, to: Slot) -> Result<()> {
        let width = from.dtype().bytes();
        let skip = first * width;
        if to.offset == 0 {
            return self.table.adopt(to.buffer, from, skip);
        }
        let start = self.context.timeline.now_ns();
        let bytes = &from.bytes()[skip..skip + elements * width];
        let (at, there) = self.table.write(to.buffer, to.offset as usize, true)?;
        assert!(there >= bytes.len(), "RES-3: an upload of {} bytes into {there}", bytes.len());
        // SAFETY: checked; the slot is ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        Counters::add(&self.context.counters.bytes_uploaded, bytes.len() as u64);
        let timeline = &self.context.timeline;
        timeline.span(Lane::DeviceUpload(self.device), "upload", start, timeline.now_ns(), &[]);
        Ok(())
    }

    fn copy(&mut self, from: Slot, to: Slot) -> Result<()> {
        let (target, room) = self.table.write(to.buffer, to.offset as usize, to.offset != 0)?;
        // The source is looked up last: making memory for the target does not move it.
        let (source, there) = self.table.read(from.buffer, from.offset as usize)?;
        let bytes = (from.bytes.min(to.bytes) as usize).min(there).min(room);
        // SAFETY: both hold that many bytes; two slots do not overlap, and `copy` would bear it.
        unsafe { std::ptr::copy(source, target, bytes) };
        Counters::add(&self.context.counters.bytes_copied, bytes as u64);
        Ok(())
    }

    fn dispatch(
        &mut self,
        launch: &Arc<Launch>,
        bindings: &[SmallVec<[Slot; 1]>],
        faults: Option<Slot>,
    ) -> Result<Option<Job>> {
        std::mem::take(&mut self.wrong).panic();
        let operands = self.operands(launch, bindings)?;
        let words = match faults {
            Some(slot) => self.fault_words(slot)?,
            None => None,
        };
        let job = Job { launch: launch.clone(), operands, words, hold: Latch::default() };
        if is_long(launch, self.long_us, self.costs) {
            return Ok(Some(job));
        }
        self.here(&job)?;
        Ok(None)
    }

    /// Runs a launch on this thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn here(&mut self, job: &Job) -> Result<()> {
        let start = Instant::now();
        job.run(self.pool, &self.context.counters)?;
        self.ran(&job.launch, start.elapsed());
        Ok(())
    }

    /// Counts a launch that has just ended.
    pub fn ran(&mut self, launch: &Launch, took: Duration) {
        let counters = &self.context.counters;
        Counters::add(&counters.bytes_kernel_read, launch.bytes_read);
        Counters::add(&counters.bytes_kernel_written, launch.bytes_written);
        let took_ns = took.as_nanos() as u64;
        self.done.compute_ns += took_ns;
        let timeline = &self.context.timeline;
        if timeline.is_on() {
            let details = [
                ("ops", Detail::Int(launch.ops as i64)),
                ("bytes read", Detail::Int(launch.bytes_read as i64)),
                ("bytes written", Detail::Int(launch.bytes_written as i64)),
            ];
            let lane = Lane::DeviceCompute(self.device);
            let end = timeline.now_ns();
            timeline.span(lane, &launch.label, end.saturating_sub(took_ns), end, &details);
        }
    }

    /// The memory of each operand. Operands that are written get memory of their own first (HOST-2).
    fn operands<'m>(
        &mut self,
        launch: &Launch,
        bindings: &[SmallVec<[Slot; 1]>],
    ) -> Result<SmallVec<[HostOperand<'m>; 8]>> {
        assert_eq!(launch.uses.len(), bindings.len(), "PLAN-3: slots for every use");
        for (number, (usage, slots)) in launch.uses.iter().zip(bindings).enumerate() {
            if let (true, Some(slot)) = (usage.writes && !is_scratch(&launch.program, number), slots.first()) {
                let keep = usage.reads || slot.offset != 0 || !overwrites(launch, number, slot.bytes);
                self.table.write(slot.buffer, slot.offset as usize, keep)?;
            }
        }
        let mut operands = SmallVec::new();
        for (number, (usage, slots)) in launch.uses.iter().zip(bindings).enumerate() {
            assert!(slots.len() <= 1, "HOST-3: the host has no segments, and {} slots were bound", slots.len());
            let Some(slot) = slots.first().filter(|_| !is_scratch(&launch.program, number)) else {
                operands.push(HostOperand::none());
                continue;
            };
            // Written memory is this allocation's own by now (HOST-2), so reading its address is enough.
            let (at, there) = self.table.read(slot.buffer, slot.offset as usize)?;
            let bytes = there.min(slot.bytes as usize);
            // SAFETY: the table keeps the memory while the launch runs; only operands that are written are
            // written, and those are ours alone.
            operands.push(unsafe {
                if usage.writes {
                    HostOperand::write(std::slice::from_raw_parts_mut(at.cast_mut(), bytes))
                } else {
                    HostOperand::read(std::slice::from_raw_parts(at, bytes))
                }
            });
        }
        Ok(operands)
    }

    fn fault_words<'m>(&mut self, slot: Slot) -> Result<Option<&'m [AtomicU32]>> {
        let (at, there) = self.table.write(slot.buffer, slot.offset as usize, true)?;
        let words = there.min(slot.bytes as usize) / 4;
        // SAFETY: ours, aligned, and accessed atomically while the launch runs.
        Ok(Some(unsafe { std::slice::from_raw_parts(at.cast::<AtomicU32>(), words) }))
    }
}

/// Whether a launch takes long enough for a thread of its own.
pub(super) fn is_long(launch: &Launch, long_us: f64, costs: &Costs) -> bool {
    launch.estimate_us(costs) >= long_us
}

/// Whether an operand is scratch that only GPUs use.
fn is_scratch(program: &Program, operand: usize) -> bool {
    matches!(program, Program::Kernel(kernel, _) if kernel.scratch == Some(operand as u16))
}

/// Whether a launch writes every element of an operand of this size, so that its earlier contents are not needed.
fn overwrites(launch: &Launch, operand: usize, bytes: u64) -> bool {
    let natural = |kernel: &Kernel| {
        let elements = match launch.geometry {
            Geometry::Map { elements } => elements,
            Geometry::Reduce { outer, .. } => outer,
            Geometry::Scan { .. } | Geometry::Line { .. } => 0,
        };
        let written = elements as u64 * kernel.operands[operand].dtype.bytes() as u64;
        // Slots are padded to 16 bytes.
        written.next_multiple_of(16) >= bytes
            && kernel.stores.iter().any(|s| s.operand as usize == operand && s.index.is_none() && s.guard.is_none())
    };
    match &launch.program {
        Program::Kernel(kernel, _) => natural(kernel),
        Program::Library(
            Library::MatMul { .. } | Library::ArgSort { .. } | Library::Linear { .. } | Library::Fourier { .. },
        ) => true,
        Program::Library(Library::AssignIndex { .. }) => false,
    }
}

fn internal(words: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, words)
}

/// The error of a kernel that panicked.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    internal(format!("a worker panicked: {}", panic_words(panic)))
}
