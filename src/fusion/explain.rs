//! Renders a plan as the text of `Array::explain`.
//!
//! In: a region and the plan that runs. Out: text. Must hold: it renders the same plan that residency is given.

use super::explained::Runs;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Plan, Program, Role, Step};
use crate::contract::region::Region;
use crate::kernels::ir::{Access, Form, Geometry};
use std::fmt::Write;

/// Renders the plan of `region` for `device`. Its estimates are shown with the names of the devices in `named`; `runs` are
/// the runs of such regions since the program first asked for an explanation of one.
pub fn explain(region: &Region, plan: &Plan, device: &DeviceInfo, named: &[DeviceInfo], runs: &[Runs]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "region: {} op(s) on {} ({}), cut by {:?}",
        region.nodes.len(),
        device.name,
        region.placement.reason,
        region.why
    );
    times(region, named, runs, &mut text);
    let bytes_of = |buffer: u32| {
        let buffer = &plan.buffers[buffer as usize];
        buffer.elements * device.element_bytes(buffer.dtype)
    };
    let mut number = 0;
    // Buffers whose reuse in place was printed already.
    let mut taken = std::collections::BTreeSet::new();
    for step in &plan.steps {
        match step {
            Step::Copy { from, to } => {
                let bytes = bytes_of(*to);
                let _ = writeln!(text, "  copy: buffer {from} to buffer {to}; reads {bytes} B, writes {bytes} B");
            }
            Step::Pack { from, to, first } => {
                let bytes = bytes_of(*from);
                let _ = writeln!(
                    text,
                    "  pack: buffer {from} into buffer {to} at {first}; reads {bytes} B, writes {bytes} B"
                );
            }
            Step::Launch(launch) => {
                number += 1;
                let (kind, sizes) = match (&launch.program, launch.geometry) {
                    (Program::Library(library), _) => (library.name().to_owned(), String::new()),
                    (Program::Kernel(kernel, _), Geometry::Map { elements }) => {
                        debug_assert!(kernel.form == Form::Map);
                        ("map".to_owned(), format!(" over {elements}"))
                    }
                    (_, Geometry::Reduce { outer, inner }) => ("reduce".to_owned(), format!(" {outer} x {inner}")),
                    (_, Geometry::Line { outer, inner }) => ("lines".to_owned(), format!(" {outer} x {inner}")),
                    (_, Geometry::Scan { outer, inner, .. }) => ("scan".to_owned(), format!(" {outer} x {inner}")),
                };
                let _ = writeln!(
                    text,
                    "  kernel {number}: {kind}{sizes}: {} op(s): {}; reads {} B, writes {} B",
                    launch.ops, launch.label, launch.bytes_read, launch.bytes_written
                );
                for (index, used) in launch.uses.iter().enumerate() {
                    let buffer = &plan.buffers[used.buffer as usize];
                    let in_place = match &launch.program {
                        Program::Kernel(kernel, _) => kernel.operands[index].access == Access::ReadWrite,
                        Program::Library(_) => used.reads && used.writes && !matches!(buffer.role, Role::Scratch),
                    };
                    let how = match (used.reads, used.writes) {
                        _ if in_place => "in place",
                        (true, true) => "reads and writes",
                        (true, false) => "reads",
                        _ => "writes",
                    };
                    let taken = match buffer.in_place_of.filter(|_| taken.insert(used.buffer)) {
                        Some(from) => format!(", in the memory of {}", role(&plan.buffers[from as usize].role)),
                        None => String::new(),
                    };
                    let role = role(&buffer.role);
                    let _ = writeln!(text, "    {how} {role}: {} x {}{taken}", buffer.elements, buffer.dtype);
                }
                if let Some(reason) = launch.split {
                    let _ = writeln!(text, "    ends here because {reason}");
                }
            }
        }
    }
    text
}

/// Appends the estimated time on each candidate device, and the measured times of such regions there.
fn times(region: &Region, named: &[DeviceInfo], runs: &[Runs], text: &mut String) {
    let name = |device: u8| match named.get(device as usize) {
        Some(info) => format!("device {device} ({})", info.name),
        None => format!("device {device}"),
    };
    for &(device, us) in &region.placement.estimates_us {
        let _ =
            writeln!(text, "  estimated on {}: {us:.1} us until its results are where they are wanted", name(device));
    }
    for runs in runs {
        let (us, count) = runs.median();
        let _ =
            writeln!(text, "  took on {}: {us:.1} us of its time, the median of {count} run(s)", name(runs.device.0));
    }
}

fn role(role: &Role) -> String {
    match role {
        Role::Input(value) => format!("input {value}"),
        Role::Output(value) => format!("output {value}"),
        Role::Scratch => "scratch".to_owned(),
        Role::Faults => "fault words".to_owned(),
    }
}
