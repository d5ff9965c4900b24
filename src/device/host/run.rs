//! The host device's thread: batches in order, events out.

use super::blocks::Blocks;
use super::execute::{Done, Executor};
use super::table::Table;
use crate::config::{DeviceChoice, Injection};
use crate::device::handle::Context;
use crate::device::message::{Batch, DeviceEvent, DeviceInstruction};
use crate::error::{Error, ErrorKind};
use crate::ids::{BatchId, DeviceId};
use crate::kernels::eval::Pool;
use crate::timeline::{Detail, Lane, flow};
use crossbeam_channel::Receiver;
use std::sync::Arc;

/// How errors name this device.
const NAME: &str = "host";

/// The state of the host device.
pub(super) struct Actor {
    context: Context,
    pool: Pool,
    table: Table,
    /// Batches begun.
    begun: u64,
    /// `Stop` was heard while the mailbox was drained.
    stopped: bool,
}

impl Actor {
    pub fn new(context: Context, pool: Pool, blocks: Arc<Blocks>) -> Actor {
        Actor { context, pool, table: Table::new(blocks), begun: 0, stopped: false }
    }

    /// Runs until told to stop, or until nobody can tell it anything.
    pub fn run(mut self, mailbox: &Receiver<DeviceInstruction>) {
        crate::threads::mark_own();
        let _guard = self.context.timeline.clone().enter_thread("host");
        while let Ok(instruction) = mailbox.recv() {
            match instruction {
                DeviceInstruction::Submit(batch) => self.submit(batch, mailbox),
                DeviceInstruction::Release(buffers) => buffers.into_iter().for_each(|b| self.table.free(b)),
                DeviceInstruction::Stop => break,
            }
            if self.stopped {
                break;
            }
        }
    }

    /// What tests inject, where this is the device under test.
    fn injection(&self) -> Option<&Injection> {
        (self.context.config.device == DeviceChoice::Host).then_some(&self.context.config.injection)
    }

    fn submit(&mut self, batch: Batch, mailbox: &Receiver<DeviceInstruction>) {
        let number = self.begun;
        self.begun += 1;
        let at = |wanted: Option<u64>| wanted == Some(number);
        let (mut panics, mut starved, mut lost) = (false, false, false);
        if let Some(injection) = self.injection() {
            if let (0, Some(hold)) = (number, &injection.hold_first_batch) {
                hold.wait();
            }
            panics = at(injection.panic_at_batch);
            starved = at(injection.out_of_memory_at_batch);
            lost = at(injection.lose_device_at_batch);
        }
        if lost {
            self.lose(batch.id, mailbox);
        } else if starved {
            self.fail(batch.id, Error::new(ErrorKind::OutOfMemory, "the exhausted memory that a test asked for"));
        } else {
            self.execute(batch, panics);
        }
    }

    fn execute(&mut self, batch: Batch, panics: bool) {
        let start = self.context.timeline.now_ns();
        let Batch { id, region, commands, .. } = batch;
        let mut executor = Executor {
            context: &self.context,
            table: &mut self.table,
            pool: &self.pool,
            panics,
            done: Done::default(),
        };
        let span = tracing::debug_span!("batch", region = region.0);
        let result = span.in_scope(|| executor.run(commands));
        let done = executor.done;
        let timeline = &self.context.timeline;
        if timeline.is_on() {
            let details = [("region", Detail::Int(region.0 as i64))];
            let lane = Lane::DeviceQueue(DeviceId::HOST);
            timeline.flow_end(lane.clone(), flow::to_device(region), start);
            timeline.span(lane, &format!("batch {id}"), start, timeline.now_ns(), &details);
        }
        match result {
            Ok(()) => self.send(DeviceEvent::BatchFinished {
                device: DeviceId::HOST,
                batch: id,
                faults: done.faults,
                device_ns: done.compute_ns,
            }),
            Err(error) => self.fail(id, error),
        }
    }

    /// The device is gone with all it held, and comes back empty. Batches that wait in the mailbox name memory
    /// of before: they fail first.
    fn lose(&mut self, batch: BatchId, mailbox: &Receiver<DeviceInstruction>) {
        let error = Error::new(ErrorKind::DeviceLost, "the device was lost").with_device(NAME);
        self.table.lose_all();
        self.fail(batch, error.clone());
        for instruction in mailbox.try_iter() {
            match instruction {
                DeviceInstruction::Submit(waiting) => self.fail(waiting.id, error.clone()),
                DeviceInstruction::Release(_) => {}
                DeviceInstruction::Stop => {
                    self.stopped = true;
                    break;
                }
            }
        }
        self.send(DeviceEvent::Lost { device: DeviceId::HOST, error, replaced: true });
    }

    fn fail(&self, batch: BatchId, error: Error) {
        let error = error.with_device(NAME);
        self.send(DeviceEvent::BatchFailed { device: DeviceId::HOST, batch, error });
    }

    fn send(&self, event: DeviceEvent) {
        // The ring may be gone; then nobody waits for this.
        let _ = self.context.events.send(event);
    }
}
