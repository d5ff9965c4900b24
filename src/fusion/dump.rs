//! Writes the results of the passes as text files, one for each pass, beside the kernels' IR and WGSL.
//!
//! In: the results of the passes. Out: files in the folder of `TIDEMILL_DUMP`, named by the hash of the region's
//! structure. Must hold: without that variable, no text is made.

use super::explain::explain;
use super::form::RegionGraph;
use super::grouping::Grouping;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Plan, Program};
use crate::contract::region::RegionArg;
use crate::dump;
use std::fmt::Write;

/// Writes the files for a structure that was planned for the first time.
pub fn first_planned(key: u64, work: &RegionGraph<'_>, grouping: &Grouping, plan: &Plan, device: &DeviceInfo) {
    if dump::folder().is_none() {
        return;
    }
    dump::write(key, "form", || form(work));
    dump::write(key, "groups", || groups(work, grouping));
    dump::write(key, "plan", || {
        let mut text = explain(work.region, plan, device, &[], &[]);
        for launch in plan.launches() {
            if let Program::Kernel(_, hash) = &launch.program {
                let _ = writeln!(text, "  the IR of {} is {hash:016x}.ir", launch.label);
            }
        }
        text
    });
    for launch in plan.launches() {
        if let Program::Kernel(kernel, hash) = &launch.program {
            dump::write(*hash, "ir", || kernel.to_string());
        }
    }
}

/// The working nodes, after `form`.
fn form(work: &RegionGraph<'_>) -> String {
    let mut text = String::new();
    for (number, input) in work.region.inputs.iter().enumerate() {
        let _ = writeln!(text, "i{number}: {} {}", input.meta.dtype, input.meta.shape);
    }
    for (number, node) in work.nodes.iter().enumerate() {
        let arg = |arg: &RegionArg| match arg {
            RegionArg::Node(n) => format!("n{n}"),
            RegionArg::Input(i) => format!("i{i}"),
            RegionArg::Scalar(scalar) => format!("{scalar:?}"),
        };
        let args: Vec<String> = node.args.iter().map(arg).collect();
        let (name, meta) = (node.op.name(), &node.meta);
        let _ =
            write!(text, "n{number} = {name}({}): {} {}, {:?}", args.join(", "), meta.dtype, meta.shape, node.class);
        text.push_str(if node.output.is_some() { ", for others\n" } else { "\n" });
    }
    text
}

/// The nodes that are written to memory, and the kernels, after `cut` and `cluster`.
fn groups(work: &RegionGraph<'_>, grouping: &Grouping) -> String {
    let mut text = String::new();
    let written = (0..grouping.written.len()).filter(|&n| grouping.written[n]).map(|n| format!("n{n}"));
    let _ = writeln!(text, "written: {}", written.collect::<Vec<_>>().join(" "));
    let nodes = work.nodes.len() as u32;
    for (number, cluster) in grouping.clusters.iter().enumerate() {
        let roots: Vec<String> = cluster.roots.iter().map(|(n, phase)| format!("n{n} ({phase:?})")).collect();
        let members: Vec<String> = cluster.members.iter().map(|n| format!("n{n}")).collect();
        let read = |n: u32| if n < nodes { format!("n{n}") } else { format!("i{}", n - nodes) };
        let reads: Vec<String> = cluster.reads.iter().map(read).collect();
        let _ = writeln!(text, "kernel {number} over {}, {:?}: {}", cluster.shape, cluster.fold, members.join(" "));
        let _ = writeln!(text, "  reads {}; makes {}", reads.join(" "), roots.join(" "));
        if let Some(reason) = cluster.split {
            let _ = writeln!(text, "  ends because {reason}");
        }
    }
    text
}
