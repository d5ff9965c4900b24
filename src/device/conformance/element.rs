//! Every elementwise op of every dtype that a device runs, and every cast.

use super::work::{Array, BatchBuilder, Build, varied};
use super::{agree, rig, run};
use crate::graph::refusals::runs_on_gpus;
use crate::graph::{ArgType, DType, ElementOp};
use crate::host_buffer::HostBuffer;
use crate::kernels::element::host::apply_scalar;
use crate::kernels::ir::{Access, Form, Geometry, IndexOp, Run};

/// Elements of each op: whole groups of four, and some more.
const ELEMENTS: usize = 203;
/// Ops of one kernel. An H100's compiler fails over `abs`, `sign` and `mul` of `i64` in one, which takes the device along.
fn ops_of_a_kernel(input: DType) -> usize {
    if input == DType::I64 { 1 } else { 12 }
}

/// The ops but casts, by what they yield of a dtype; all of them, or those that every device runs.
fn ops(input: DType, output: DType, runs_all: bool) -> Vec<ElementOp> {
    let yields = |op: ElementOp| {
        let arg = ArgType { dtype: input, weak: false, scalar: false };
        let signature = op.signature(&vec![arg; op.arity()]).expect("equal dtypes mix");
        signature.compute == input && signature.output == output
    };
    let runs = |op: &ElementOp| runs_all || runs_on_gpus(*op, input);
    ElementOp::ALL.iter().copied().filter(|op| *op != ElementOp::Cast && yields(*op)).filter(runs).collect()
}

/// The result dtypes of ops on a dtype, without casts.
fn outputs(input: DType) -> Vec<DType> {
    if input == DType::Bool { vec![input] } else { vec![input, DType::Bool] }
}

/// The arguments: three of the dtype, and the mask of `Select`.
fn arguments(input: DType) -> [HostBuffer; 4] {
    [
        varied(input, ELEMENTS, 0),
        varied(input, ELEMENTS, 1),
        varied(input, ELEMENTS, 2),
        varied(DType::Bool, ELEMENTS, 3),
    ]
}

/// Which of the arguments an op takes.
fn taken(op: ElementOp) -> Vec<usize> {
    if op == ElementOp::Select { vec![3, 0, 1] } else { (0..op.arity()).collect() }
}

/// Kernels of these ops, whose results stand one after the other in one array.
fn apply_all(work: &mut BatchBuilder, given: &[Array; 4], ops: &[ElementOp], output: DType) {
    for ops in ops.chunks(ops_of_a_kernel(given[0].dtype)) {
        let out = work.array(output, ops.len() * ELEMENTS);
        let mut build = Build::new(Form::Map);
        let operands = given.map(|array| build.operand(array.dtype, Access::Read));
        let to = build.operand(output, Access::Write);
        let flat = build.flat();
        let values = operands.map(|operand| build.load(operand, flat, Run::Flat, None));
        for (number, &op) in ops.iter().enumerate() {
            let args: Vec<_> = taken(op).into_iter().map(|argument| values[argument]).collect();
            let value = build.apply(op, &args, output);
            let first = build.number((number * ELEMENTS) as u32);
            let at = build.index(IndexOp::Add, first, flat);
            build.store(to, Some(at), value, None);
        }
        let arrays = [given[0], given[1], given[2], given[3], out];
        work.kernel(build, Geometry::Map { elements: ELEMENTS as u32 }, &arrays);
        let names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
        work.read(format!("{} of {} ({ELEMENTS} each)", names.join(", "), given[0].dtype), out);
    }
}

/// All ops on arguments of a dtype, and its casts.
fn all_of(work: &mut BatchBuilder, input: DType) {
    if !work.info.has(input) {
        return;
    }
    let given = arguments(input).map(|argument| work.given(argument));
    for output in outputs(input) {
        apply_all(work, &given, &ops(input, output, false), output);
    }
    casts(work, given[0]);
}

/// The casts of an array.
fn casts(work: &mut BatchBuilder, given: Array) {
    let outputs: Vec<DType> = DType::ALL.into_iter().filter(|output| work.info.has(*output)).collect();
    let mut build = Build::new(Form::Map);
    let from = build.operand(given.dtype, Access::Read);
    let flat = build.flat();
    let x = build.load(from, flat, Run::Flat, None);
    let mut arrays = vec![given];
    for &output in &outputs {
        let to = build.operand(output, Access::Write);
        let value = build.apply(ElementOp::Cast, &[x], output);
        build.store(to, None, value, None);
        arrays.push(work.array(output, ELEMENTS));
    }
    work.kernel(build, Geometry::Map { elements: ELEMENTS as u32 }, &arrays);
    for (array, output) in arrays[1..].iter().zip(outputs) {
        work.read(format!("{} as {output}", given.dtype), *array);
    }
}

/// Floats within twice the bound of each side.
const ULPS: f64 = 64.0;

#[test]
fn every_op_of_f32_is_what_the_host_computes() {
    agree(ULPS, |work| all_of(work, DType::F32));
}

#[test]
fn every_op_of_f64_is_what_the_host_computes() {
    agree(ULPS, |work| all_of(work, DType::F64));
}

#[test]
fn every_op_of_integers_and_bools_is_what_the_host_computes() {
    for input in [DType::I32, DType::U32, DType::U8, DType::I64, DType::Bool] {
        agree(ULPS, |work| all_of(work, input));
    }
}

#[test]
fn the_host_computes_what_the_op_table_means() {
    for input in DType::ALL {
        let given = arguments(input);
        for output in outputs(input) {
            let ops = ops(input, output, true);
            let mut rig = rig::Rig::open(rig::Which::Host, Default::default()).expect("the host always opens");
            let read = run(&mut rig, |work| {
                let given = arguments(input).map(|argument| work.given(argument));
                apply_all(work, &given, &ops, output);
            });
            rig.stop();
            for (ops, (label, data)) in ops.chunks(ops_of_a_kernel(input)).zip(&read) {
                for (number, &op) in ops.iter().enumerate() {
                    for i in 0..ELEMENTS {
                        let args: Vec<_> = taken(op).into_iter().map(|argument| given[argument].scalar(i)).collect();
                        let (meant, got) = (apply_scalar(op, input, output, &args), data.scalar(number * ELEMENTS + i));
                        let nan = meant.as_f64().is_nan() && got.as_f64().is_nan();
                        assert!(nan || meant.bits() == got.bits(), "{label}: {op:?} of {args:?}: {got}, not {meant}");
                    }
                }
            }
        }
    }
}
