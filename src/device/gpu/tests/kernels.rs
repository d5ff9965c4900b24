//! Kernels: bindings, parameters, fault words, compiling ahead.

use super::rig::{Rig, allocate, dispatch, launch, launch_of, readback, rig, rig_of, slot, upload};
use crate::config::Config;
use crate::contract::batch::Command;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Plan, PlanBuffer, Program, Role, Step, Use};
use crate::device::gpu::shaders::{Generated, Shaders};
use crate::graph::{DType, ElementOp};
use crate::ids::{BufferId, DeviceId, RegionId, SessionId};
use crate::kernels::ir::{
    Access, Form, Geometry, HEADER_WORDS, Inst, InstOp, Kernel, Level, Operand, Run, Store, Tile, Val,
};
use crate::kernels::library::Library;
use crate::timeline::Timeline;
use std::sync::Arc;

fn floats(rig: &mut Rig, commands: Vec<Command>) -> Vec<f32> {
    rig.run(commands).unwrap().data[0].1.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_kernel_reads_its_operands_and_parameters_and_is_counted() {
    let Some(mut rig) = rig() else { return };
    let (a, b, f) = (slot(1, 0, 1024), slot(2, 0, 1024), slot(3, 0, 16));
    let commands = vec![
        allocate(1, 1024),
        allocate(2, 1024),
        allocate(3, 16),
        upload(&[2.0f32; 256], a),
        dispatch(&launch(3.0, 0.5, 1e9, 0), a, b, f, 256),
        readback(0, b, DType::F32, 256),
    ];
    assert_eq!(floats(&mut rig, commands), [6.5; 256]);
    let stats = rig.stats();
    assert_eq!((stats.dispatches, stats.submissions, stats.pipelines_compiled), (1, 1, 1));
    assert_eq!((stats.bytes_kernel_read, stats.bytes_kernel_written), (10, 20));
    rig.end();
}

#[test]
fn slots_of_one_slab_are_operands_of_one_dispatch_and_each_dispatch_has_its_own_parameters() {
    let Some(mut rig) = rig() else { return };
    let at = |i: u64| slot(1, i * 256, 16);
    let mut commands = vec![allocate(1, 4096), upload(&[1.0f32, 2.0, 3.0, 4.0], at(0))];
    for i in 0..5u64 {
        commands.push(dispatch(&launch(2.0, i as f32, 1e9, 0), at(i), at(i + 1), at(15), 4));
    }
    commands.push(readback(0, at(5), DType::F32, 4));
    // x, 2x, 2(2x)+1, …: 32 x + 0*16 + 1*8 + 2*4 + 3*2 + 4.
    assert_eq!(floats(&mut rig, commands), [32.0 + 26.0, 64.0 + 26.0, 96.0 + 26.0, 128.0 + 26.0]);
    let stats = rig.stats();
    assert_eq!((stats.dispatches, stats.submissions, stats.pipelines_compiled), (5, 1, 1));
    rig.end();
}

#[test]
fn copies_between_dispatches_keep_their_order() {
    let Some(mut rig) = rig() else { return };
    let at = |i: u64| slot(1, i * 256, 16);
    let double = launch(2.0, 0.0, 1e9, 0);
    let commands = vec![
        allocate(1, 4096),
        upload(&[1.0f32; 4], at(0)),
        dispatch(&double, at(0), at(1), at(15), 4),
        Command::Copy { from: at(1), to: at(0) },
        dispatch(&double, at(0), at(1), at(15), 4),
        upload(&[10.0f32; 4], at(0)),
        dispatch(&double, at(0), at(2), at(15), 4),
        Command::Zero { slot: at(0) },
        readback(0, slot(1, 0, 768), DType::F32, 192),
    ];
    let all = floats(&mut rig, commands);
    assert_eq!((all[0], all[64], all[128]), (0.0, 4.0, 20.0));
    rig.end();
}

#[test]
fn a_freed_id_can_name_a_new_allocation_without_a_stale_bind_group() {
    let Some(mut rig) = rig() else { return };
    let (a, b, f) = (slot(1, 0, 16), slot(2, 0, 16), slot(3, 0, 16));
    rig.run(vec![allocate(2, 16), allocate(3, 16)]).unwrap();
    for round in 0..3u32 {
        let commands = vec![
            allocate(1, 16),
            upload(&[round as f32; 4], a),
            dispatch(&launch(1.0, 0.25, 1e9, 0), a, b, f, 4),
            readback(0, b, DType::F32, 4),
            Command::Free { buffer: BufferId(1) },
        ];
        assert_eq!(floats(&mut rig, commands), [round as f32 + 0.25; 4]);
    }
    rig.end();
}

#[test]
fn an_allocation_that_is_made_again_is_the_same_or_replaces_the_old_one_everywhere() {
    let Some(mut rig) = rig() else { return };
    let (a, b, f) = (slot(1, 0, 16), slot(2, 0, 16), slot(3, 0, 16));
    rig.run(vec![allocate(1, 16), allocate(2, 16), allocate(3, 16), upload(&[1.0f32; 4], a)]).unwrap();
    let run = |rig: &mut Rig, first: Vec<Command>| {
        let rest = vec![dispatch(&launch(1.0, 0.25, 1e9, 0), a, b, f, 4), readback(0, b, DType::F32, 4)];
        floats(rig, first.into_iter().chain(rest).collect())
    };
    assert_eq!(run(&mut rig, vec![allocate(1, 16)]), [1.25; 4]);
    assert_eq!(run(&mut rig, vec![allocate(1, 512), upload(&[3.0f32; 4], a)]), [3.25; 4]);
    rig.end();
}

#[test]
fn parameters_beyond_the_first_buffer_grow_it() {
    let Some(mut rig) = rig() else { return };
    let (a, f) = (slot(1, 0, 16), slot(2, 0, 16));
    let mut commands = vec![allocate(1, 16), allocate(2, 16), upload(&[0.0f32; 4], a)];
    let one_more = launch(1.0, 1.0, 1e9, 0);
    let b = slot(3, 0, 16);
    commands.push(allocate(3, 16));
    for _ in 0..200 {
        commands.push(dispatch(&one_more, a, b, f, 4));
        commands.push(dispatch(&one_more, b, a, f, 4));
    }
    commands.push(readback(0, a, DType::F32, 4));
    assert_eq!(floats(&mut rig, commands), [400.0; 4]);
    rig.end();
}

#[test]
fn fault_words_that_are_set_are_reported_with_the_batch() {
    let Some(mut rig) = rig() else { return };
    let (a, b, f) = (slot(1, 0, 16), slot(2, 0, 16), slot(3, 256, 64));
    let commands = |limits: [f32; 3]| {
        let mut all = vec![upload(&[0.0f32, 1.0, 2.0, 3.0], a), Command::Zero { slot: f }];
        for (word, limit) in [2, 7, 9].into_iter().zip(limits) {
            all.push(dispatch(&launch(1.0, 0.0, limit, word), a, b, f, 4));
        }
        all.push(Command::ReadFaults { slot: f, words: 10 });
        all
    };
    rig.run(vec![allocate(1, 16), allocate(2, 16), allocate(3, 1024)]).unwrap();
    assert_eq!(rig.run(commands([2.5, 5.0, 0.0])).unwrap().faults, [2, 9]);
    assert_eq!(rig.run(commands([5.0, 5.0, 5.0])).unwrap().faults, [0u32; 0]);
    rig.end();
}

const SORT: Library = Library::ArgSort { dtype: DType::F32, before: 1, len: 4, after: 1, descending: false };

#[test]
fn a_library_pass_binds_the_operands_that_it_names_and_gets_the_launchs_fault_word() {
    let Some(mut rig) = rig() else { return };
    let (a, b, f) = (slot(1, 0, 16), slot(1, 256, 16), slot(1, 512, 32));
    let mut sort = (*launch_of(Program::Library(SORT), Vec::new())).clone();
    sort.params = vec![5];
    let commands = vec![
        allocate(1, 1024),
        upload(&[1.0f32, 2.0, 3.0, 4.0], b),
        // The pass binds operands 1 and 0: it reads b and writes a.
        dispatch(&Arc::new(sort), a, b, f, 4),
        readback(0, a, DType::F32, 4),
        Command::ReadFaults { slot: f, words: 8 },
    ];
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(done.faults, [5]);
    rig.end();
}

fn plan(launches: Vec<Arc<Launch>>) -> Plan {
    let buffer = PlanBuffer::new(Role::Scratch, DType::F32, 4);
    Plan {
        region: RegionId(0),
        session: SessionId(0),
        weight: 1,
        device: DeviceId(1),
        inputs: Vec::new(),
        buffers: vec![buffer.clone(), buffer],
        steps: launches.into_iter().map(Step::Launch).collect(),
        outputs: Vec::new(),
        readbacks: Vec::new(),
        fault_sites: Vec::new(),
        cached: false,
        explained: None,
    }
}

#[test]
fn preparing_compiles_once_and_the_dispatch_compiles_nothing() {
    let Some(mut rig) = rig() else { return };
    let operand = |buffer| Use { buffer, tiled: false, writes: true, reads: true };
    let mut sort = (*launch_of(Program::Library(SORT), Vec::new())).clone();
    sort.uses = [operand(0), operand(1)].into_iter().collect();
    let plan = plan(vec![launch(1.0, 0.0, 0.0, 0), Arc::new(sort)]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| rig.handle.compiler.prepare(&plan).unwrap());
        }
    });
    assert_eq!(rig.stats().pipelines_compiled, 2);
    let (a, b, f) = (slot(1, 0, 16), slot(1, 256, 16), slot(1, 512, 16));
    rig.run(vec![allocate(1, 1024), dispatch(&launch(9.0, 9.0, 1e9, 0), a, b, f, 4)]).unwrap();
    assert_eq!(rig.stats().pipelines_compiled, 2);
    rig.end();
}

/// `out[i] = in[i] + in[i]` over a map of 4-wide invocations, as fusion would write it.
fn twice() -> Kernel {
    let operand = |access| Operand { dtype: DType::F32, access, tiled: true, segments: 1 };
    let inst = |op, dtype, level| Inst { op, dtype, level };
    Kernel {
        form: Form::Map,
        operands: vec![operand(Access::Read), operand(Access::Write)],
        scratch: None,
        faults: false,
        params: HEADER_WORDS,
        insts: vec![
            inst(InstOp::Flat, DType::U32, Level::Element),
            inst(InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: None }, DType::F32, Level::Element),
            inst(InstOp::Apply(ElementOp::Add, [Val(1), Val(1)].into_iter().collect()), DType::F32, Level::Element),
        ],
        stores: vec![Store { operand: 1, index: None, value: Val(2), guard: None }],
        rolled: None,
    }
}

#[test]
fn a_generated_kernel_runs_tile_by_tile() {
    let generated = |precision, info: &DeviceInfo| Arc::new(Generated::new(precision, info)) as Arc<dyn Shaders>;
    let Some(mut rig) = rig_of(Config::default(), Timeline::off(), generated) else { return };
    let elements = 5000u32;
    let mut launch = (*launch_of(Program::Kernel(Arc::new(twice()), 11), Vec::new())).clone();
    launch.geometry = Geometry::Map { elements };
    let launch = Arc::new(launch);
    // Two segments of 4096 elements: the second tile's operands begin at element 4096.
    let data: Vec<f32> = (0..elements).map(|i| i as f32).collect();
    let (a, b) = ([slot(1, 0, 16384), slot(2, 0, 16384)], [slot(3, 0, 16384), slot(4, 0, 16384)]);
    let mut commands = vec![allocate(1, 16384), allocate(2, 16384), allocate(3, 16384), allocate(4, 16384)];
    commands.push(upload(&data[..4096], a[0]));
    commands.push(upload(&data[4096..], a[1]));
    for (i, (begin, end)) in [(0, 4096), (4096, elements)].into_iter().enumerate() {
        commands.push(Command::Dispatch {
            launch: launch.clone(),
            tile: Tile { begin, end, base: begin, base_wide: begin, last: end == elements },
            bindings: vec![smallvec::smallvec![a[i]], smallvec::smallvec![b[i]]],
            faults: None,
            span_shift: 12,
        });
    }
    commands.push(readback(0, b[0], DType::F32, 4096));
    commands.push(readback(1, b[1], DType::F32, 904));
    let done = rig.run(commands).unwrap();
    let out: Vec<f32> = done.data.iter().flat_map(|d| d.1.as_slice::<f32>().unwrap().to_vec()).collect();
    assert_eq!(out.len(), 5000);
    assert!(out.iter().zip(&data).all(|(out, x)| *out == 2.0 * x));
    let stats = rig.stats();
    assert_eq!((stats.dispatches, stats.bytes_kernel_read, stats.bytes_kernel_written), (2, 10, 20));
    rig.end();
}
