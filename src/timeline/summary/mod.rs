//! Sums up a recorded timeline: `tidemill trace summary FILE`.
//!
//! In: a Chrome-trace file, usually ours. Out: busy times, overlap of transfers with compute, the longest kernels, the
//! largest gaps, peaks of counters, reasons. Busy time is the union of spans, so that overlapping spans count once.

mod intervals;
mod read;

use crate::error::Result;
use intervals::{intersection_ns, length_ns, union};
use read::Event;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// How many kernels, gaps and reasons are listed.
const LISTED: usize = 10;

/// The summary of a timeline.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Events in the file, names included.
    pub events: u64,
    /// From the first begin of a span to the last end.
    pub duration_ns: u64,
    /// Every lane that has spans, in the order of the file's groups.
    pub lanes: Vec<LaneSummary>,
    /// Every device that computed or moved bytes.
    pub devices: Vec<DeviceSummary>,
    /// The kernels that took longest in total.
    pub kernels: Vec<KernelSummary>,
    /// The largest gaps on compute lanes.
    pub gaps: Vec<GapSummary>,
    /// The largest value of each counter.
    pub counter_peaks: Vec<(String, f64)>,
    /// How often each *why* record was made, the most frequent first.
    pub reasons: Vec<(String, u64)>,
}

/// The summary of a lane. The rows into which overlapping spans were split count as one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSummary {
    /// Its group, such as `sessions` or a device.
    pub group: String,
    /// Its name.
    pub lane: String,
    /// Spans.
    pub spans: u64,
    /// Time that at least one span covers.
    pub busy_ns: u64,
}

/// The summary of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSummary {
    /// Its name.
    pub device: String,
    /// Time in which a kernel ran.
    pub compute_ns: u64,
    /// Time in which bytes moved to or from it.
    pub transfer_ns: u64,
    /// Time in which both happened.
    pub overlapped_ns: u64,
}

impl DeviceSummary {
    /// The share of the transfers' time in which a kernel ran, 0 to 1; 0 without transfers.
    pub fn overlap(&self) -> f64 {
        if self.transfer_ns == 0 { 0.0 } else { self.overlapped_ns as f64 / self.transfer_ns as f64 }
    }
}

/// All runs of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSummary {
    /// Its name.
    pub kernel: String,
    /// Runs.
    pub runs: u64,
    /// Time of all runs.
    pub total_ns: u64,
    /// Time of the longest run.
    pub longest_ns: u64,
}

/// A time in which a device that had computed before and did later ran no kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct GapSummary {
    /// The device.
    pub device: String,
    /// Its begin on the file's clock.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
}

/// Reads a timeline and adds it up.
///
/// # Errors
/// `ErrorKind::Io` if the file cannot be read, is cut short, or is no timeline; the message says which.
pub fn summarise(path: impl AsRef<Path>) -> Result<Summary> {
    let mut collected = Collected::default();
    read::read(path.as_ref(), |event| collected.take(event))?;
    Ok(collected.summary())
}

/// Spans as `(begin, end)`.
type Spans = Vec<(i64, i64)>;

#[derive(Default)]
struct Collected {
    events: u64,
    groups: BTreeMap<i64, String>,
    rows: BTreeMap<(i64, i64), String>,
    spans: BTreeMap<(i64, i64), Spans>,
    /// By group: compute, and transfers of both directions.
    devices: BTreeMap<i64, (Spans, Spans)>,
    kernels: BTreeMap<String, KernelSummary>,
    counters: BTreeMap<String, f64>,
    reasons: BTreeMap<String, u64>,
    /// Begins without an end: by row, and asynchronous ones by group, category and id.
    open: BTreeMap<(i64, i64), Vec<Event>>,
    open_apart: BTreeMap<(i64, String, String), Event>,
}

impl Collected {
    fn take(&mut self, event: Event) {
        self.events += 1;
        match event.phase.as_str() {
            "X" => {
                let end_ns = event.at_ns.saturating_add(event.duration_ns);
                self.span(&event, end_ns);
            }
            "B" => self.open.entry((event.pid, event.tid)).or_default().push(event),
            "E" => {
                let begin = self.open.get_mut(&(event.pid, event.tid)).and_then(Vec::pop);
                begin.into_iter().for_each(|begin| self.span(&begin, event.at_ns));
            }
            "b" => drop(self.open_apart.insert((event.pid, event.category.clone(), event.id.clone()), event)),
            "e" => {
                let begin = self.open_apart.remove(&(event.pid, event.category, event.id));
                begin.into_iter().for_each(|begin| self.span(&begin, event.at_ns));
            }
            "i" | "I" => *self.reasons.entry(event.name).or_default() += 1,
            "C" => self.counter(&event),
            "M" => {
                let name = || event.arguments.get("name").and_then(|n| n.as_str()).unwrap_or_default().to_owned();
                match event.name.as_str() {
                    "process_name" => drop(self.groups.insert(event.pid, name())),
                    "thread_name" => drop(self.rows.insert((event.pid, event.tid), name())),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn span(&mut self, event: &Event, end_ns: i64) {
        let span = (event.at_ns, end_ns.max(event.at_ns));
        self.spans.entry((event.pid, event.tid)).or_default().push(span);
        match event.category.as_str() {
            "compute" => {
                self.devices.entry(event.pid).or_default().0.push(span);
                let kernel = self.kernels.entry(event.name.clone()).or_insert_with(|| KernelSummary {
                    kernel: event.name.clone(),
                    runs: 0,
                    total_ns: 0,
                    longest_ns: 0,
                });
                let length_ns = (span.1 - span.0) as u64;
                kernel.runs += 1;
                kernel.total_ns += length_ns;
                kernel.longest_ns = kernel.longest_ns.max(length_ns);
            }
            "upload" | "readback" => self.devices.entry(event.pid).or_default().1.push(span),
            _ => {}
        }
    }

    fn counter(&mut self, event: &Event) {
        let Some(series) = event.arguments.as_object() else { return };
        for (key, value) in series {
            let name = if series.len() == 1 { event.name.clone() } else { format!("{}.{key}", event.name) };
            if let Some(value) = value.as_f64() {
                let peak = self.counters.entry(name).or_insert(value);
                *peak = peak.max(value);
            }
        }
    }

    fn summary(self) -> Summary {
        let all = self.spans.values().flatten();
        let (first, last) = all.fold((i64::MAX, i64::MIN), |(a, b), (s, e)| (a.min(*s), b.max(*e)));
        let (devices, gaps) = self.device_summaries();
        let mut kernels: Vec<KernelSummary> = self.kernels.values().cloned().collect();
        kernels.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.kernel.cmp(&b.kernel)));
        kernels.truncate(LISTED);
        let lanes = self.lane_summaries();
        let mut reasons: Vec<(String, u64)> = self.reasons.into_iter().collect();
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        reasons.truncate(LISTED);
        Summary {
            events: self.events,
            duration_ns: last.saturating_sub(first).max(0) as u64,
            lanes,
            devices,
            kernels,
            gaps,
            counter_peaks: self.counters.into_iter().collect(),
            reasons,
        }
    }

    fn lane_summaries(&self) -> Vec<LaneSummary> {
        // Lanes are ordered by their first rows.
        let mut order: Vec<(i64, &str)> = Vec::new();
        let mut lanes: BTreeMap<(i64, &str), Spans> = BTreeMap::new();
        let unnamed = String::new();
        for (row, spans) in &self.spans {
            let name = base_name(self.rows.get(row).unwrap_or(&unnamed));
            let lane = (row.0, name);
            if !lanes.contains_key(&lane) {
                order.push(lane);
            }
            lanes.entry(lane).or_default().extend(spans);
        }
        let mut summaries = Vec::new();
        for (pid, name) in order {
            let spans = lanes.remove(&(pid, name)).unwrap_or_default();
            let count = spans.len() as u64;
            let busy_ns = length_ns(&union(spans));
            summaries.push(LaneSummary { group: self.group(pid), lane: name.to_owned(), spans: count, busy_ns });
        }
        summaries
    }

    fn device_summaries(&self) -> (Vec<DeviceSummary>, Vec<GapSummary>) {
        let mut devices = Vec::new();
        let mut gaps = Vec::new();
        for (pid, (compute, transfers)) in &self.devices {
            let (compute, transfers) = (union(compute.clone()), union(transfers.clone()));
            for pair in compute.windows(2) {
                let (start, end) = (pair[0].1, pair[1].0);
                gaps.push(GapSummary {
                    device: self.group(*pid),
                    start_ns: start.max(0) as u64,
                    length_ns: (end - start) as u64,
                });
            }
            devices.push(DeviceSummary {
                device: self.group(*pid),
                compute_ns: length_ns(&compute),
                transfer_ns: length_ns(&transfers),
                overlapped_ns: intersection_ns(&compute, &transfers),
            });
        }
        gaps.sort_by(|a, b| b.length_ns.cmp(&a.length_ns).then(a.start_ns.cmp(&b.start_ns)));
        gaps.truncate(LISTED);
        (devices, gaps)
    }

    fn group(&self, pid: i64) -> String {
        self.groups.get(&pid).cloned().unwrap_or_else(|| format!("process {pid}"))
    }
}

/// A row's name without the number that rows of a split lane have: `compute (2)` is `compute`.
fn base_name(name: &str) -> &str {
    let Some((base, number)) = name.strip_suffix(')').and_then(|n| n.rsplit_once(" (")) else { return name };
    if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) { base } else { name }
}

/// Milliseconds with three decimals.
struct Millis(u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:03} ms", self.0 / 1_000_000, self.0 / 1000 % 1000))
    }
}

/// A name from a file, on one line: control characters, of which a terminal may obey some, are written as escapes.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .chars()
            .try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { write!(f, "{c}") })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} events over {}", self.events, Millis(self.duration_ns))?;
        self.show_lanes(f)?;
        writeln!(f, "\nTransfers overlapped with compute")?;
        for d in &self.devices {
            let (percent, device) = (d.overlap() * 100.0, OneLine(&d.device));
            let (transfer, compute) = (Millis(d.transfer_ns), Millis(d.compute_ns));
            writeln!(f, "  {percent:>5.1} % of {transfer:>14} beside {compute:>14} of compute  {device}")?;
        }
        writeln!(f, "\nLongest kernels (total, runs, longest)")?;
        for k in &self.kernels {
            writeln!(
                f,
                "  {:>14} {:>8} {:>14}  {}",
                Millis(k.total_ns),
                k.runs,
                Millis(k.longest_ns),
                OneLine(&k.kernel)
            )?;
        }
        writeln!(f, "\nLargest gaps in compute (length, begin)")?;
        for g in &self.gaps {
            writeln!(f, "  {:>14} at {:>14}  {}", Millis(g.length_ns), Millis(g.start_ns), OneLine(&g.device))?;
        }
        writeln!(f, "\nPeaks of counters")?;
        for (name, peak) in &self.counter_peaks {
            writeln!(f, "  {peak:>16}  {}", OneLine(name))?;
        }
        writeln!(f, "\nReasons given")?;
        for (name, count) in &self.reasons {
            writeln!(f, "  {count:>8}  {}", OneLine(name))?;
        }
        Ok(())
    }
}

impl Summary {
    /// Busy times; of a group with many lanes only the busiest.
    fn show_lanes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nBusy time of lanes (busy, spans)")?;
        let mut groups: Vec<&str> = Vec::new();
        for lane in &self.lanes {
            if !groups.contains(&lane.group.as_str()) {
                groups.push(&lane.group);
            }
        }
        for group in groups {
            let mut lanes: Vec<&LaneSummary> = self.lanes.iter().filter(|l| l.group == group).collect();
            writeln!(f, "  {}", OneLine(group))?;
            if lanes.len() > 2 * LISTED {
                lanes.sort_by(|a, b| b.busy_ns.cmp(&a.busy_ns).then_with(|| a.lane.cmp(&b.lane)));
            }
            let shown = if lanes.len() > 2 * LISTED { LISTED } else { lanes.len() };
            for lane in &lanes[..shown] {
                writeln!(f, "    {:>14} {:>8}  {}", Millis(lane.busy_ns), lane.spans, OneLine(&lane.lane))?;
            }
            if shown < lanes.len() {
                writeln!(f, "    and {} more lanes", lanes.len() - shown)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
