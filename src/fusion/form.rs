//! Converts a region to working nodes.
//!
//! In: a region. Out: [`RegionGraph`]: nodes with arguments that are nodes, inputs or scalars; synthetic nodes for scalars
//! that a library kernel needs as buffers; the class of each node. Must hold: arguments stand before their node; a node
//! knows its consumers.

use crate::contract::region::{Region, RegionArg};
use crate::error::Site;
use crate::graph::{DType, Meta, Op, OpClass, Shape, View};
use crate::ids::ValueId;
use smallvec::{SmallVec, smallvec};

/// How a node can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Inside any kernel, at any index.
    Inline,
    /// By folding: anchors a kernel of form Reduce.
    Reduce,
    /// By a running fold: anchors a kernel of form Scan.
    Scan,
    /// By overwriting part of a buffer: anchors a Map kernel over the overwritten part.
    Patch,
    /// By compacting a mask: anchors a Map kernel with guarded stores.
    Compact,
    /// By a library kernel over buffers.
    Library,
    /// It has no elements, so nothing computes it.
    Empty,
}

/// A working node.
#[derive(Clone, Debug)]
pub struct WorkNode {
    /// The value it makes, if it is a node of the region.
    pub value: Option<ValueId>,
    /// The region's node from which it was made.
    pub number: u32,
    /// What it computes.
    pub op: Op,
    /// From what; `Node` indexes working nodes.
    pub args: SmallVec<[RegionArg; 3]>,
    /// Dtype and shape.
    pub meta: Meta,
    /// If its buffer is an output of the region, the region's node that names the output: this node, or a reshape of
    /// it.
    pub output: Option<u32>,
    /// Where it was recorded.
    pub at: Site,
    /// How it is computed.
    pub class: Class,
    /// It overwrites a part of an array, in that array's memory if the array is not needed after the region
    /// (`patches`).
    pub takes_over: bool,
    /// It is written to memory because an array that it reads is overwritten before its value is needed (`patches`).
    pub apart: bool,
    /// For a reduction: how many arrays a workgroup can hold in registers, one line of each (`lines`). 0 for other nodes,
    /// and for reductions whose lines no workgroup holds.
    pub lines_held: u32,
    /// Nodes that use it.
    pub consumers: SmallVec<[u32; 4]>,
}

/// The region, as the passes see it.
#[derive(Debug)]
pub struct RegionGraph<'r> {
    /// The region.
    pub region: &'r Region,
    /// Nodes in topological order.
    pub nodes: Vec<WorkNode>,
}

impl RegionGraph<'_> {
    /// The shape of an argument.
    pub fn arg_shape(&self, arg: RegionArg) -> Shape {
        match arg {
            RegionArg::Node(n) => self.nodes[n as usize].meta.shape.clone(),
            RegionArg::Input(i) => self.region.inputs[i as usize].meta.shape.clone(),
            RegionArg::Scalar(_) => Shape::scalar(),
        }
    }

    /// The dtype of an argument.
    pub fn arg_dtype(&self, arg: RegionArg) -> DType {
        match arg {
            RegionArg::Node(n) => self.nodes[n as usize].meta.dtype,
            RegionArg::Input(i) => self.region.inputs[i as usize].meta.dtype,
            RegionArg::Scalar(s) => s.dtype(),
        }
    }
}

/// Builds the working nodes.
pub fn form(region: &Region) -> RegionGraph<'_> {
    let mut nodes: Vec<WorkNode> = Vec::with_capacity(region.nodes.len());
    let mut renamed: Vec<u32> = Vec::with_capacity(region.nodes.len());
    for (number, node) in (0u32..).zip(&region.nodes) {
        let mut args: SmallVec<[RegionArg; 3]> = node
            .args
            .iter()
            .map(|&arg| match arg {
                RegionArg::Node(n) => RegionArg::Node(renamed[n as usize]),
                other => other,
            })
            .collect();
        let facts = node.op.facts();
        if matches!(facts.class, OpClass::Library | OpClass::Compact) {
            for arg in &mut args {
                if let RegionArg::Scalar(scalar) = *arg {
                    nodes.push(WorkNode {
                        value: None,
                        number,
                        op: Op::Fill,
                        args: smallvec![RegionArg::Scalar(scalar)],
                        meta: Meta { dtype: scalar.dtype(), shape: Shape::scalar() },
                        output: None,
                        at: node.at,
                        class: Class::Inline,
                        takes_over: false,
                        apart: false,
                        lines_held: 0,
                        consumers: SmallVec::new(),
                    });
                    *arg = RegionArg::Node(nodes.len() as u32 - 1);
                }
            }
        }
        if let Op::Cat { dim } = node.op {
            narrow_cat(&mut nodes, region, number, dim as usize, &mut args);
        }
        let mut class = classify(&nodes, region, node.meta.elements(), &node.op, &args);
        if facts.overwrites() {
            // The overwritten array is a buffer, whatever reshapes of it the program names.
            let mut beneath = args.clone();
            beneath[0] = unreshaped(&nodes, args[0], |n| nodes[n as usize].output.is_some());
            let there = classify(&nodes, region, node.meta.elements(), &node.op, &beneath);
            if matches!(there, Class::Patch | Class::Library) {
                (args, class) = (beneath, there);
            }
        }
        renamed.push(nodes.len() as u32);
        nodes.push(WorkNode {
            value: Some(node.value),
            number,
            op: node.op.clone(),
            args,
            meta: node.meta.clone(),
            output: node.output.then_some(number),
            at: node.at,
            class,
            takes_over: false,
            apart: false,
            lines_held: 0,
            consumers: SmallVec::new(),
        });
    }
    share_buffers(&mut nodes);
    for index in 0..nodes.len() {
        for slot in 0..nodes[index].args.len() {
            if let RegionArg::Node(n) = nodes[index].args[slot] {
                nodes[n as usize].consumers.push(index as u32);
            }
        }
    }
    RegionGraph { region, nodes }
}

/// An output that is a reshape of a written node has the same bytes, so it gets the node's buffer instead of a copy. If
/// the node is inline, it is computed directly into the reshaped value.
fn share_buffers(nodes: &mut [WorkNode]) {
    for n in 0..nodes.len() {
        let node = &nodes[n];
        if node.output.is_none() || node.class != Class::Inline || !node.op.is_reshape() {
            continue;
        }
        let is_output = |n: u32| nodes[n as usize].output.is_some();
        let RegionArg::Node(from) = unreshaped(nodes, node.args[0], is_output) else { continue };
        let written = nodes[from as usize].class;
        if !is_output(from) && matches!(written, Class::Patch | Class::Library | Class::Compact) {
            nodes[from as usize].output = nodes[n].output.take();
        }
    }
}

/// Most arguments of one `cat`. Wider ones become a tree of `cat` nodes, so that a budget on bindings can cut it.
const CAT_ARGS_MAX: usize = 6;

fn narrow_cat(
    nodes: &mut Vec<WorkNode>,
    region: &Region,
    number: u32,
    dim: usize,
    args: &mut SmallVec<[RegionArg; 3]>,
) {
    let node = &region.nodes[number as usize];
    while args.len() > CAT_ARGS_MAX {
        let mut joined: SmallVec<[RegionArg; 3]> = SmallVec::new();
        for part in args.chunks(CAT_ARGS_MAX) {
            if part.len() == 1 {
                joined.push(part[0]);
                continue;
            }
            let extent: usize = part
                .iter()
                .map(|&arg| match arg {
                    RegionArg::Node(n) => nodes[n as usize].meta.shape.dim(dim),
                    RegionArg::Input(i) => region.inputs[i as usize].meta.shape.dim(dim),
                    RegionArg::Scalar(_) => 1,
                })
                .sum();
            let mut dims: Vec<usize> = node.meta.shape.dims().to_vec();
            dims.resize(dims.len().max(dim + 1), 1);
            dims[dim] = extent;
            let shape = Shape::new(&dims).expect("SHAPE-2: a part is no larger than the whole");
            let class = if shape.elements() == 0 { Class::Empty } else { Class::Inline };
            nodes.push(WorkNode {
                value: None,
                number,
                op: node.op.clone(),
                args: SmallVec::from_slice(part),
                meta: Meta { dtype: node.meta.dtype, shape },
                output: None,
                at: node.at,
                class,
                takes_over: false,
                apart: false,
                lines_held: 0,
                consumers: SmallVec::new(),
            });
            joined.push(RegionArg::Node(nodes.len() as u32 - 1));
        }
        *args = joined;
    }
}

/// Skips reshapes that have no buffer of their own, and returns the argument below them.
pub fn unreshaped(nodes: &[WorkNode], mut arg: RegionArg, is_written: impl Fn(u32) -> bool) -> RegionArg {
    while let RegionArg::Node(n) = arg
        && let node = &nodes[n as usize]
        && node.op.is_reshape()
        && node.class == Class::Inline
        && !is_written(n)
        && !matches!(node.args[0], RegionArg::Scalar(_))
    {
        arg = node.args[0];
    }
    arg
}

/// Up to this many slice assignments in a row are computed as selects in the kernel that computes the array: enough to
/// set the edges of a matrix. A longer row, as of a loop that fills an array slice by slice, patches the array's
/// memory.
const SELECTS_MAX: usize = 4;

/// How many slice assignments, each the base of the next, end at a node; counted up to [`SELECTS_MAX`].
fn selects_in_a_row(nodes: &[WorkNode], last: u32) -> usize {
    let mut at = Some(last);
    let mut count = 0;
    while let Some(n) = at.take()
        && count < SELECTS_MAX
        && let node = &nodes[n as usize]
        && node.class == Class::Inline
        && node.op.facts().class == OpClass::Patch
    {
        count += 1;
        at = match unreshaped(nodes, node.args[0], |n| nodes[n as usize].output.is_some()) {
            RegionArg::Node(base) => Some(base),
            RegionArg::Input(_) | RegionArg::Scalar(_) => None,
        };
    }
    count
}

fn classify(nodes: &[WorkNode], region: &Region, elements: usize, op: &Op, args: &[RegionArg]) -> Class {
    if elements == 0 {
        return Class::Empty;
    }
    let elements_of = |arg: RegionArg| match arg {
        RegionArg::Node(n) => nodes[n as usize].meta.elements(),
        RegionArg::Input(i) => region.inputs[i as usize].meta.elements(),
        RegionArg::Scalar(_) => 1,
    };
    match op.facts().class {
        OpClass::Element => Class::Inline,
        OpClass::Reduce => Class::Reduce,
        OpClass::Scan => Class::Scan,
        OpClass::Compact => Class::Compact,
        // With an empty operand there is nothing to compute: a matrix product over no terms is zero everywhere, and an
        // assignment to no places is its base.
        OpClass::Library if args.iter().any(|&arg| elements_of(arg) == 0) => Class::Inline,
        OpClass::Library => Class::Library,
        OpClass::Patch if matches!(op, Op::AssignSlice(dims) if dims.iter().any(|d| d.len == 0)) => Class::Inline,
        // If the base is computed in this kernel anyway, a select costs less than a patch. But each select covers the
        // whole array.
        OpClass::Patch => match args[0] {
            RegionArg::Input(_) => Class::Patch,
            RegionArg::Node(n) if nodes[n as usize].class != Class::Inline => Class::Patch,
            RegionArg::Node(n) if selects_in_a_row(nodes, n) >= SELECTS_MAX => Class::Patch,
            RegionArg::Node(_) | RegionArg::Scalar(_) => Class::Inline,
        },
    }
}

/// For an operand of matmul: the buffer's argument, and whether it is read transposed.
pub fn matmul_operand(work: &RegionGraph<'_>, arg: RegionArg) -> (RegionArg, bool) {
    if let RegionArg::Node(n) = arg {
        let node = &work.nodes[n as usize];
        if let Op::View(View::Permute(perm)) = &node.op
            && perm.len() >= 2
            && perm[0] == 1
            && perm[1] == 0
            && perm.iter().skip(2).enumerate().all(|(i, &p)| p as usize == i + 2)
            && node.output.is_none()
        {
            return (node.args[0], true);
        }
    }
    (arg, false)
}
