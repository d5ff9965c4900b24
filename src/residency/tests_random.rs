//! Random programs on toy devices, against plain vectors: late reports, tight budgets, several devices, failures.

use super::simulate::{Builder, World, device, slow, value};
use crate::contract::device::DeviceKind;
use crate::contract::messages::residency::ResidencyEvent;
use crate::dice::Dice;
use crate::error::{Error, ErrorKind};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId};
use crate::kernels::ir::Geometry;
use crate::rounds::rounds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Random numbers of 64 bits.
struct Random(Dice);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n as usize) as u64
    }
}

/// A program that grows at random, and what its values should be.
struct Program {
    random: Random,
    world: World,
    lengths: Vec<u64>,
    /// Values that can be used, with their elements.
    live: BTreeMap<u32, Vec<u32>>,
    expected: BTreeMap<u32, Vec<u32>>,
    next_value: u32,
    next_region: u64,
    devices: u64,
}

impl Program {
    fn new(seed: u64, budget: u64, shift: u32) -> Program {
        let mut random = Random(Dice(seed));
        let devices = 1 + random.below(3);
        let mut infos = vec![device(0, DeviceKind::Host, 1 << 24, 31)];
        for id in 1..=devices {
            let mut info = device(id as u8, DeviceKind::Gpu, budget, shift + random.below(2) as u32);
            info.slab_slot_bytes_max = if random.below(2) == 0 { 0 } else { 1 << 10 };
            info.batches_in_flight_max = 1 + random.below(3) as u32;
            info.memory_bytes = 1 << 24;
            info.span_shift = 20;
            // A third of them are the GPU's mix of capabilities; others have any (DEV-1).
            if random.below(3) > 0 {
                let can = &mut info.capabilities;
                can.shares_host_memory = random.below(2) == 0;
                can.pads_narrow_types = random.below(2) == 0;
                can.overlaps_long = random.below(2) == 0;
            }
            infos.push(info);
        }
        // Where a device is slow, plans are placed in slices.
        let infos = infos.into_iter().map(|info| if random.below(2) == 0 { slow(info) } else { info }).collect();
        let lengths = vec![1, 3, 100, 64 + random.below(400)];
        Program {
            random,
            world: World::new(infos),
            lengths,
            live: BTreeMap::new(),
            expected: BTreeMap::new(),
            next_value: 0,
            next_region: 0,
            devices,
        }
    }

    fn new_value(&mut self) -> u32 {
        self.next_value += 1;
        self.next_value
    }

    /// An existing value of this length, or a source.
    fn pick(&mut self, length: u64) -> (u32, Option<Arc<HostBuffer>>) {
        let fitting: Vec<u32> = self.live.iter().filter(|(_, v)| v.len() as u64 == length).map(|(&id, _)| id).collect();
        if fitting.is_empty() || self.random.below(5) == 0 {
            let id = self.new_value();
            let data: Vec<u32> = (0..length).map(|_| self.random.below(1 << 20) as u32).collect();
            self.live.insert(id, data.clone());
            return (id, Some(HostBuffer::from_vec(data).shared()));
        }
        (fitting[self.random.below(fitting.len() as u64) as usize], None)
    }

    /// One plan: out = sum of inputs + 1 through a scratch, perhaps in place, perhaps summed up, perhaps gathered.
    fn plan(&mut self) {
        let on = self.random.below(self.devices + 1) as u8;
        let length = self.lengths[self.random.below(self.lengths.len() as u64) as usize];
        let region = self.next_region;
        self.next_region += 1;
        let mut plan = Builder::new(region, on).of_session(self.random.below(3), 1 + self.random.below(4) as u32);
        let (a, a_source) = self.pick(length);
        let (b, b_source) = self.pick(length);
        let dies = a != b && self.random.below(3) == 0;
        let at_a = plan.input(a, length, a_source, dies);
        let at_b = if a == b { at_a } else { plan.input(b, length, b_source, false) };
        let mut now: Vec<u32> =
            self.live[&a].iter().zip(&self.live[&b]).map(|(x, y)| x.wrapping_add(*y).wrapping_add(1)).collect();
        let scratch = plan.scratch(length, self.random.below(4) == 0);
        plan.map(length, &[at_a, at_b], &[scratch]);
        if length > 4 && self.random.below(3) == 0 {
            let uses = [(at_b, false, true, false), (scratch, false, true, true)];
            plan.launch(Geometry::Map { elements: length as u32 }, &uses, None);
            now = now.iter().zip(&self.live[&b]).map(|(x, y)| x.wrapping_add(*y).wrapping_add(1)).collect();
        }
        let out = self.new_value();
        let at_out = plan.output(out, length);
        if length > 4 && self.random.below(3) == 0 {
            let uses = [(scratch, false, true, false), (at_out, false, false, true)];
            plan.launch(Geometry::Map { elements: length as u32 }, &uses, None);
            now.iter_mut().for_each(|x| *x = x.wrapping_add(1));
        } else if self.random.below(2) == 0 {
            // out = a's memory, read through the same binding.
            plan.in_place(at_out, at_a);
            let uses = [(scratch, true, true, false), (at_out, true, true, true)];
            plan.launch(Geometry::Map { elements: length as u32 }, &uses, None);
            let a_now = &self.live[&a];
            now = now.iter().zip(a_now).map(|(x, y)| x.wrapping_add(*y).wrapping_add(1)).collect();
        } else {
            plan.map(length, &[scratch], &[at_out]);
            now.iter_mut().for_each(|x| *x = x.wrapping_add(1));
        }
        if self.random.below(4) == 0 {
            let total = self.new_value();
            let at_total = plan.output(total, 1);
            plan.sum(length, at_out, at_total);
            let sum = now.iter().fold(0u32, |s, x| s.wrapping_add(*x));
            self.live.insert(total, vec![sum]);
        }
        if self.random.below(3) == 0 {
            plan.read_back(a);
            self.expected.insert(a, self.live[&a].clone());
        }
        self.live.insert(out, now);
        if self.random.below(3) == 0 {
            plan.read_back(out);
            self.expected.insert(out, self.live[&out].clone());
        }
        if dies {
            self.live.remove(&a);
        }
        plan.join(&self.world.devices[on as usize].info);
        let retired = self.random.below(3) == 0 && self.live.len() > 2;
        let retire = |program: &mut Program| {
            let nth = program.random.below(program.live.len() as u64) as usize;
            let id = *program.live.keys().nth(nth).expect("one of them");
            program.live.remove(&id);
            let after = Some(RegionId(region));
            program.world.feed(ResidencyEvent::ValueRetired { value: value(id), after });
        };
        // The retirement may overtake the plan on its way.
        if retired && self.random.below(2) == 0 {
            retire(self);
            self.world.feed(plan.done());
        } else {
            self.world.feed(plan.done());
            if retired {
                retire(self);
            }
        }
    }

    /// A device works a little, or a report gets through.
    fn tick(&mut self) {
        let d = self.random.below(self.devices + 1) as usize;
        if self.random.below(2) == 0 {
            self.world.devices[d].step();
        } else if let Some(report) = self.world.devices[d].reports.pop_front() {
            self.world.feed(report);
        }
        if self.random.below(16) == 0 {
            let all = self.random.below(3) == 0;
            self.world.feed(ResidencyEvent::IdlePassed { all });
        }
    }

    /// All regions have ended, and what arrived is right.
    fn check(&mut self, seed: u64) {
        self.world.settle();
        assert_eq!(self.world.state.regions_open(), 0, "seed {seed}: a region hangs");
        for (&id, elements) in &self.expected {
            let arrived = self.world.arrived.get(&value(id)).unwrap_or_else(|| panic!("seed {seed}: {id} never came"));
            if let Ok(data) = arrived {
                assert_eq!(data.as_slice::<u32>(), Some(&elements[..]), "seed {seed}: value {id}");
            } else {
                assert!(!self.world.failed.is_empty() || !self.world.lost.is_empty(), "seed {seed}: {id} failed");
            }
        }
        for id in 1..=self.next_value {
            self.world.feed(ResidencyEvent::ValueRetired { value: value(id), after: None });
        }
        assert_eq!(self.world.state.values_held(), 0, "seed {seed}: values leak");
    }
}

#[test]
fn random_programs_compute_what_plain_vectors_do_under_any_budget() {
    let mut evictions = 0;
    for seed in 0..rounds(24, 120) {
        let budget = [6 << 10, 12 << 10, 256 << 10][seed as usize % 3];
        let mut program = Program::new(seed, budget, 6);
        for _ in 0..60 {
            program.plan();
            for _ in 0..program.random.below(8) {
                program.tick();
            }
        }
        program.check(seed);
        assert!(program.world.failed.is_empty(), "seed {seed}: {:?}", program.world.failed);
        evictions += program.world.state.totals().evictions;
    }
    assert!(evictions > rounds(100, 1000), "the budgets were not tight: {evictions}");
}

#[test]
fn random_programs_with_failing_batches_end_and_deliver_nothing_wrong() {
    for seed in 1000..1000 + rounds(20, 100) {
        let mut program = Program::new(seed, [6 << 10, 64 << 10][seed as usize % 2], 6);
        program.world.devices.iter_mut().for_each(|d| d.lenient = true);
        for _ in 0..60 {
            program.plan();
            for _ in 0..program.random.below(8) {
                program.tick();
            }
            if program.random.below(12) == 0 {
                let d = program.random.below(program.devices + 1) as usize;
                program.world.devices[d].fail_next();
            }
        }
        program.check(seed);
        assert!(!program.world.finished.is_empty());
    }
}

#[test]
fn random_programs_survive_lost_devices() {
    for seed in 2000..2000 + rounds(20, 100) {
        let mut program = Program::new(seed, [6 << 10, 64 << 10][seed as usize % 2], 6);
        program.world.devices.iter_mut().for_each(|d| d.lenient = true);
        for n in 0..60 {
            program.plan();
            for _ in 0..program.random.below(8) {
                program.tick();
            }
            if program.random.below(20) == 0 {
                let d = 1 + program.random.below(program.devices) as usize;
                let replaced = n < 40 || program.random.below(2) == 0;
                if program.random.below(2) == 0 {
                    program.world.devices[d].lose(replaced);
                } else {
                    // Without a word on its batches.
                    program.world.devices[d].clear();
                    let error = Error::new(ErrorKind::DeviceLost, "gone");
                    program.world.feed(ResidencyEvent::DeviceLost { device: DeviceId(d as u8), error, replaced });
                }
            }
        }
        program.check(seed);
    }
}
