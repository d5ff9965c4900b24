//! Simulates planning and the devices: regions end in any order, or fail, or are lost.

use super::{Mode, Simulator, combine, leaf};
use crate::config::DeviceChoice;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::region::{Region, RegionArg};
use crate::error::{Error, ErrorKind};
use crate::graph::Op;
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, ValueId};

impl Simulator {
    /// Lets everything that is downstream come to its end.
    pub(super) fn drain(&mut self) {
        let mut idle = 0;
        loop {
            if !self.opening {
                self.take_in_all();
            }
            if self.flight.is_empty() && !self.opening {
                break;
            }
            let before = (self.flight.len(), self.opening);
            self.complete();
            idle = if (self.flight.len(), self.opening) == before { idle + 1 } else { 0 };
            assert!(idle < 10_000, "nothing can finish: {:?}", self.flight.iter().map(|r| r.id).collect::<Vec<_>>());
        }
    }

    /// One random event downstream.
    pub(super) fn complete(&mut self) {
        if self.mode == Mode::Losing && self.dice.one_in(20) && !self.gpu_gone {
            return self.lose_gpu();
        }
        if self.opening && self.dice.one_in(4) {
            return self.end_opening();
        }
        if self.flight.is_empty() {
            return;
        }
        let place = self.dice.below(self.flight.len());
        let is_missing = |v: &ValueId| self.failed.contains(v) && !self.exists.contains_key(v);
        if self.flight[place].inputs.iter().any(|i| is_missing(&i.value)) {
            let region = self.flight.remove(place);
            return self.fail(vec![region], ErrorKind::Internal);
        }
        let is_unwanted = self.unwanted.contains(&self.flight[place].id);
        if is_unwanted && !self.dice.one_in(3) {
            let region = self.flight.remove(place);
            return self.drop_unwanted(region);
        }
        // The region waits for an output of an earlier region downstream.
        if !self.flight[place].inputs.iter().all(|i| self.exists.contains_key(&i.value)) {
            return;
        }
        let region = self.flight.remove(place);
        match self.mode {
            Mode::Failing if self.dice.one_in(8) => self.fail(vec![region], ErrorKind::OutOfMemory),
            Mode::Dropping if self.dice.one_in(8) => {}
            _ => self.finish(region),
        }
    }

    /// Regions fail, and the values that would have ended with them end. Then the scheduler is told.
    fn fail(&mut self, regions: Vec<Region>, kind: ErrorKind) {
        for region in &regions {
            for node in region.nodes.iter().filter(|n| n.output) {
                self.exists.remove(&node.value);
                self.failed.insert(node.value);
            }
            self.end_with(region);
        }
        self.forget();
        for region in regions {
            let error = Error::new(kind, "injected");
            self.event(SchedulerEvent::RegionFailed { region: region.id, error });
        }
    }

    fn end_with(&mut self, region: &Region) {
        let dying = region.inputs.iter().filter(|i| i.dies).map(|i| i.value);
        self.seen.died += dying.clone().count();
        self.ended.extend(dying.chain(self.ends_after.remove(&region.id).unwrap_or_default()));
    }

    /// As residency does: what has ended is gone, once no region downstream reads it.
    pub(super) fn forget(&mut self) {
        let Simulator { exists, ended, flight, .. } = self;
        exists.retain(|value, _| !ended.contains(value) || flight.iter().any(|r| reads(r, *value)));
    }

    fn drop_unwanted(&mut self, region: Region) {
        self.seen.unwanted += 1;
        self.fail(vec![region], ErrorKind::Cancelled);
    }

    /// Computes a region, and reports in any order.
    fn finish(&mut self, region: Region) {
        let mut numbers: Vec<i64> = vec![];
        let mut faults = vec![];
        for node in &region.nodes {
            let args = node.args.iter().map(|arg| match *arg {
                RegionArg::Node(p) => numbers[p as usize],
                RegionArg::Input(i) => self.exists[&region.inputs[i as usize].value].0,
                RegionArg::Scalar(_) => 0,
            });
            let number = match &node.op {
                Op::Random { key, .. } => leaf(key.op),
                _ => combine(args),
            };
            numbers.push(number);
            if self.faulty.contains(&node.value) {
                faults.push((node.value, Error::new(ErrorKind::Index, "out of range")));
            }
            if node.output {
                self.exists.insert(node.value, (number, region.device));
            }
        }
        self.end_with(&region);
        let mut events = vec![SchedulerEvent::RegionFinished { region: region.id, faults }];
        for value in &region.readbacks {
            let data = HostBuffer::from_vec(vec![self.exists[value].0]).shared();
            let place = self.dice.below(events.len() + 1);
            events.insert(place, SchedulerEvent::ValueArrived { value: *value, data: Ok(data) });
        }
        self.forget();
        for event in events {
            self.event(event);
        }
    }

    /// Ends the opening of the GPU: it is open, or failed.
    fn end_opening(&mut self) {
        self.opening = false;
        let fails = self.mode != Mode::Healthy && self.dice.one_in(3);
        let result = match self.choice {
            _ if fails => Err(Error::new(ErrorKind::Device, "injected")),
            DeviceChoice::Auto if self.dice.one_in(4) => Ok(None),
            _ => Ok(Some(self.gpu.clone())),
        };
        self.gpu_gone = !matches!(result, Ok(Some(_)));
        self.seen.opened += !self.gpu_gone as usize;
        self.seen.refused += self.gpu_gone as usize;
        self.event(SchedulerEvent::OpeningEnded(result));
    }

    fn lose_gpu(&mut self) {
        let gpu = DeviceId(1);
        let error = Error::new(ErrorKind::DeviceLost, "gone");
        self.event(SchedulerEvent::DeviceStalled(gpu));
        let (lost, kept) = std::mem::take(&mut self.flight).into_iter().partition(|r| r.device == gpu);
        self.flight = kept;
        let mut values: Vec<ValueId> = self.exists.iter().filter(|(_, e)| e.1 == gpu).map(|(v, _)| *v).collect();
        values.sort_unstable();
        for value in &values {
            self.exists.remove(value);
            self.failed.insert(*value);
        }
        self.fail(lost, ErrorKind::DeviceLost);
        for value in values {
            self.event(SchedulerEvent::ValueLost { value, error: error.clone() });
        }
        let replaced = self.dice.one_in(2);
        self.gpu_gone = !replaced;
        self.event(SchedulerEvent::DeviceLost { device: gpu, error, replaced });
    }
}

/// Whether a region reads a value that others make.
fn reads(region: &Region, value: ValueId) -> bool {
    region.inputs.iter().any(|input| input.value == value)
}
