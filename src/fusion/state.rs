//! The fusion actor's state: the plan cache, and plans that wait for their pipelines.
//!
//! In: [`FusionEvent`]s. Out: [`FusionOutput`]s. Touches no channel, clock, thread or GPU.
//! Must hold: FUSE-4.

use super::caches::Caches;
use super::explain::explain;
use super::explained::Explained;
use super::passes::plan;
use super::repeat::Repeats;
use crate::contract::device::DeviceInfo;
use crate::contract::messages::fusion::{FusionEvent, FusionOutput};
use crate::contract::plan::{Plan, Program, Step};
use crate::contract::region::Region;
use crate::error::{Error, ErrorKind, panic_words};
use crate::ids::{DeviceId, RegionId};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regions whose grouping was known.
    pub plan_cache_hits: u64,
    /// Regions that had to be grouped.
    pub plan_cache_misses: u64,
    /// Ops whose region was planned for the host because a single op binds more than its device can ([`NO_PLAN`]).
    pub ops_moved: u64,
    /// Ops whose region was planned for the host because a single op uses more memory at a time than its device has
    /// ([`NO_ROOM`]).
    pub ops_too_large: u64,
}

/// The reason if a region runs on the host because an op of it binds too many buffers.
pub const NO_PLAN: &str = "its arrays lie in more pieces of memory than a kernel of this device binds";
/// The reason if a region runs on the host because an op of it uses too much memory at a time.
pub const NO_ROOM: &str = "what it uses at a time does not fit the device's memory";

#[derive(Debug)]
struct Waiting {
    plan: Arc<Plan>,
    /// Whether its pipelines are being compiled.
    compiling: bool,
}

/// The fusion actor's state.
#[derive(Debug)]
pub struct State {
    devices: Vec<DeviceInfo>,
    caches: Caches,
    repeats: Repeats,
    explained: Explained,
    waiting: VecDeque<Waiting>,
    totals: Totals,
}

impl State {
    /// A state with empty caches.
    pub fn new(devices: Vec<DeviceInfo>) -> State {
        State {
            devices,
            caches: Caches::default(),
            repeats: Repeats::default(),
            explained: Explained::default(),
            waiting: VecDeque::new(),
            totals: Totals::default(),
        }
    }

    /// Counts since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes in one event.
    pub fn handle(&mut self, event: FusionEvent, out: &mut Vec<FusionOutput>) {
        match event {
            FusionEvent::RegionCut(region) => self.region_cut(&region, out),
            FusionEvent::ExplainAsked { gather, regions, notes } => {
                let mut text = String::new();
                for region in &regions {
                    // An explanation uses caches of its own, so that it counts as neither a hit nor a miss.
                    match planned(region, &self.devices, &mut Caches::default()) {
                        Ok((plan, refused)) => {
                            if let Some(error) = refused {
                                text.push_str(&format!("on the host instead of the device that was chosen: {error}\n"));
                            }
                            text.push_str(&self.words(region, &plan));
                        }
                        Err(error) => text.push_str(&format!("region {}: {error}\n", region.id)),
                    }
                }
                if regions.is_empty() {
                    text.push_str("nothing to run: the value is materialised or known on the host\n");
                }
                for note in notes {
                    text.push_str(&note);
                    text.push('\n');
                }
                out.push(FusionOutput::Explained { gather, text });
            }
            FusionEvent::DeviceOpened(device) => self.devices.push(device),
            FusionEvent::PipelinesReady { region, result } => self.pipelines_ready(region, result, out),
            FusionEvent::PlanRan { key, device, us } => self.explained.ran(key, device, us),
        }
    }

    fn region_cut(&mut self, region: &Region, out: &mut Vec<FusionOutput>) {
        let planned = self.planned(region);
        let new = self.caches.kernels.take_new();
        let plan = match planned {
            Ok((mut plan, refused)) => {
                plan.explained = self.explained.key_of(region);
                let ops = region.nodes.len() as u64;
                match refused.map(|error| error.kind()) {
                    Some(ErrorKind::OutOfMemory) => self.totals.ops_too_large += ops,
                    Some(_) => self.totals.ops_moved += ops,
                    None => {}
                }
                plan
            }
            Err(error) => {
                out.push(FusionOutput::Fail { region: region.id, error });
                return;
            }
        };
        if !plan.steps.is_empty() {
            if plan.cached {
                self.totals.plan_cache_hits += 1;
            } else {
                self.totals.plan_cache_misses += 1;
            }
        }
        let library =
            plan.steps.iter().any(|s| matches!(s, Step::Launch(l) if matches!(l.program, Program::Library(_))));
        let device = &self.devices[plan.device.0 as usize];
        let compiles = device.capabilities.compiles && (new > 0 || (library && !plan.cached));
        let plan = Arc::new(plan);
        if compiles {
            out.push(FusionOutput::Compile(plan.clone()));
        }
        self.waiting.push_back(Waiting { plan, compiling: compiles });
        self.release(out);
    }

    /// The text of an explanation, with the measured times of such regions.
    fn words(&mut self, region: &Region, plan: &Plan) -> String {
        let runs = self.explained.ask(region);
        explain(region, plan, &self.devices[plan.device.0 as usize], &self.devices, &runs)
    }

    /// The plan of a region that runs, found or made.
    fn planned(&mut self, region: &Region) -> Result<(Plan, Option<Error>), Error> {
        if let Some(plan) = guarded(|| self.repeats.find(region))? {
            if cfg!(debug_assertions) {
                let (mut anew, _) = planned(region, &self.devices, &mut self.caches)?;
                self.caches.kernels.take_new();
                anew.cached = true;
                assert_eq!(format!("{plan:?}"), format!("{anew:?}"), "FUSE-8");
            }
            return Ok((plan, None));
        }
        let planned = planned(region, &self.devices, &mut self.caches)?;
        if planned.1.is_none() {
            guarded(|| self.repeats.keep(region, &planned.0))?;
        }
        Ok(planned)
    }

    fn pipelines_ready(&mut self, region: RegionId, result: Result<(), Error>, out: &mut Vec<FusionOutput>) {
        let Some(position) = self.waiting.iter().position(|w| w.plan.region == region) else { return };
        match result {
            Ok(()) => self.waiting[position].compiling = false,
            Err(error) => {
                self.waiting.remove(position);
                out.push(FusionOutput::Fail { region, error });
            }
        }
        self.release(out);
    }

    /// Passes plans on that are compiled and that need not wait for an earlier plan (FUSE-4).
    fn release(&mut self, out: &mut Vec<FusionOutput>) {
        let mut index = 0;
        while index < self.waiting.len() {
            let held = self.waiting[index].compiling
                || (0..index).any(|earlier| conflicts(&self.waiting[earlier].plan, &self.waiting[index].plan));
            if held {
                index += 1;
                continue;
            }
            let waiting = self.waiting.remove(index).expect("FUSE-4: the index is in range");
            out.push(FusionOutput::Place(waiting.plan));
        }
    }
}

fn conflicts(earlier: &Plan, later: &Plan) -> bool {
    earlier.session == later.session
        || later.inputs.iter().any(|input| {
            earlier.inputs.iter().any(|other| other.value == input.value)
                || earlier.outputs.iter().any(|(value, ..)| *value == input.value)
        })
}

/// The plan of a region for its device. If the region does not fit the device, a plan for the host, which has no such
/// limits, with the error.
fn planned(region: &Region, devices: &[DeviceInfo], caches: &mut Caches) -> Result<(Plan, Option<Error>), Error> {
    let device = &devices[region.device.0 as usize];
    match guarded(|| plan(region, device, caches)).flatten() {
        Ok(plan) => Ok((plan, None)),
        Err(error)
            if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::OutOfMemory)
                && !device.capabilities.runs_all =>
        {
            let plan = guarded(|| plan(region, &devices[DeviceId::HOST.0 as usize], caches)).flatten()?;
            Ok((plan, Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// Runs a pass and turns a panic into an error, so that a broken invariant fails its region only, with the invariant's
/// name.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let words = panic_words(&*panic);
        Error::new(ErrorKind::Internal, format!("planning failed, which is a bug in Tidemill: {words}"))
    })
}
