//! Plans: reuse in place, copies, dropped steps, and cache hits.

use super::*;
use std::sync::Arc;

#[test]
fn other_sizes_and_scalars_give_the_same_kernel() {
    let hash = |n: usize| {
        let mut b = Build::new();
        let y = chain(&mut b, n, 20);
        let r = b.reduce(ReduceOp::Mean, y, 0b11);
        b.output(r);
        let plan = b.plan(DeviceKind::Gpu);
        match &kernels(&plan)[0].program {
            Program::Kernel(_, hash) => *hash,
            _ => panic!("a generated kernel"),
        }
    };
    assert_eq!(hash(1000), hash(123_457));
}

#[test]
fn a_dying_input_is_reused_in_place_and_a_living_one_is_not() {
    for dies in [true, false] {
        let mut b = Build::new();
        let x = b.input(&[1000, 1], dies);
        let y = b.apply(ElementOp::Exp, &[x]);
        b.output(y);
        let plan = b.plan(DeviceKind::Gpu);
        let launches = kernels(&plan);
        let Program::Kernel(kernel, _) = &launches[0].program else { panic!("generated") };
        let in_place = kernel.operands.iter().any(|o| o.access == Access::ReadWrite);
        assert_eq!(in_place, dies);
        assert_eq!(plan.buffers.iter().any(|b| b.in_place_of.is_some()), dies);
    }
}

#[test]
fn a_transposed_read_of_a_dying_input_is_not_done_in_place() {
    let mut b = Build::new();
    let x = b.input(&[30, 30], true);
    let t = b.node(Op::View(View::Permute([1, 0].into())), &[x], &[30, 30], DType::F32);
    let y = b.apply(ElementOp::Add, &[x, t]);
    b.output(y);
    assert!(b.plan(DeviceKind::Gpu).buffers.iter().all(|b| b.in_place_of.is_none()));
}

/// `a = a .* w; a(2:99,3:48) += 1; a(50,25) += 3`
#[test]
fn an_array_that_is_updated_in_slices_by_what_they_hold_is_read_where_it_is_overwritten() {
    let mut b = Build::new();
    let (x, w) = (b.input(&[100, 50], true), b.input(&[100, 50], false));
    let add = |b: &mut Build, x: X, rows: (usize, usize), columns: (usize, usize), number: f32| {
        let dims = [rows, columns].map(|(start, len)| SliceDim { start, step: 1, len });
        let own = b.node(Op::View(View::Slice(dims[..].into())), &[x], &[rows.1, columns.1], DType::F32);
        let sum = b.apply(ElementOp::Add, &[own, s(number)]);
        b.node(Op::AssignSlice(dims[..].into()), &[x, sum], &[100, 50], DType::F32)
    };
    let x = b.apply(ElementOp::Mul, &[x, w]);
    let x = add(&mut b, x, (1, 98), (2, 46), 1.0);
    let x = add(&mut b, x, (49, 1), (24, 1), 3.0);
    b.output(x);
    let plan = b.plan(DeviceKind::Gpu);
    assert_eq!(copies(&plan), 0);
    let launches = kernels(&plan);
    assert_eq!(launches.len(), 1);
    let Program::Kernel(kernel, _) = &launches[0].program else { panic!("generated") };
    assert_eq!(kernel.operands.iter().map(|o| o.access).collect::<Vec<_>>(), [Access::Read, Access::ReadWrite]);
    let loads = kernel.insts.iter().filter(|inst| matches!(inst.op, InstOp::Load { .. }));
    let flat = |inst: &Inst| matches!(inst.op, InstOp::Load { run: Run::Flat, guard: None, .. });
    assert_eq!(loads.map(flat).collect::<Vec<_>>(), [true, true], "each operand is read once, at the own element");
}

#[test]
fn slice_assignments_in_a_row_are_patches_in_place() {
    let mut b = Build::new();
    let mut x = b.input(&[1000, 1], true);
    for k in 0..5usize {
        let dims: SmallVec<[SliceDim; 4]> =
            smallvec![SliceDim { start: k, step: 1, len: 1 }, SliceDim { start: 0, step: 1, len: 1 }];
        x = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(k as f32)], &[1000, 1], DType::F32);
    }
    b.output(x);
    let plan = b.plan(DeviceKind::Gpu);
    assert!(plan.steps.iter().all(|s| matches!(s, Step::Launch(_))), "nothing is copied");
    assert_eq!(kernels(&plan).iter().map(|l| l.bytes_written).sum::<u64>(), 20);
}

/// Rows or columns of an array of 100 x 50.
fn columns(k: usize, columns: usize) -> SmallVec<[SliceDim; 4]> {
    smallvec![SliceDim { start: 0, step: 1, len: 100 }, SliceDim { start: k, step: 1, len: columns }]
}

fn view(b: &mut Build, x: X, k: usize, n: usize) -> X {
    b.node(Op::View(View::Slice(columns(k, n).as_slice().into())), &[x], &[100, n], DType::F32)
}

fn assign(b: &mut Build, x: X, k: usize, n: usize, value: X) -> X {
    b.node(Op::AssignSlice(columns(k, n).as_slice().into()), &[x, value], &[100, 50], DType::F32)
}

fn copies(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| matches!(step, Step::Copy { .. })).count()
}

/// `a(:,k) = a(:,k) * 2 + …` for columns in a row: where they read what they overwrite, they are written out first.
#[test]
fn a_slice_that_is_made_of_its_array_is_patched_in_place_whatever_it_reads() {
    for (form, launches) in [
        ("own", 2),
        ("own twice", 2),
        ("before", 2),
        ("a sum of others", 2),
        ("the next", 4),
        ("a sum", 4),
        ("flipped", 4),
    ] {
        let mut b = Build::new();
        let mut x = b.input(&[100, 50], true);
        for k in [3, 7] {
            let own = view(&mut b, x, k, 2);
            let other = match form {
                "own twice" => own,
                "the next" => view(&mut b, x, k + 1, 2),
                "before" => view(&mut b, x, k - 2, 2),
                "a sum" | "a sum of others" => {
                    let column = view(&mut b, x, if form == "a sum" { k } else { k + 2 }, 1);
                    b.node(Op::View(View::Broadcast), &[column], &[100, 2], DType::F32)
                }
                "flipped" => {
                    let dims = [SliceDim { start: 99, step: -1, len: 100 }, SliceDim { start: 0, step: 1, len: 2 }];
                    b.node(Op::View(View::Slice(dims.as_slice().into())), &[own], &[100, 2], DType::F32)
                }
                _ => s(2.0),
            };
            let made = b.node(Op::Apply(ElementOp::Mul), &[own, other], &[100, 2], DType::F32);
            x = assign(&mut b, x, k, 2, made);
        }
        b.output(x);
        let plan = b.plan(DeviceKind::Gpu);
        assert_eq!((copies(&plan), kernels(&plan).len()), (0, launches), "{form}");
        let written: u64 = kernels(&plan).iter().map(|l| l.bytes_written).sum();
        assert_eq!(written, launches as u64 * 200 * 4, "{form}: as much as the slices");
    }
}

#[test]
fn what_a_patch_overwrites_before_it_is_needed_is_written_out_first() {
    // t = x(:,3); x(:,3) = x(:,7); x(:,7) = t
    let mut b = Build::new();
    let x = b.input(&[100, 50], true);
    let (t, other) = (view(&mut b, x, 3, 1), view(&mut b, x, 7, 1));
    let x = assign(&mut b, x, 3, 1, other);
    let x = assign(&mut b, x, 7, 1, t);
    b.output(x);
    let plan = b.plan(DeviceKind::Gpu);
    assert_eq!((copies(&plan), kernels(&plan).len()), (0, 3), "a swap");
    let explained = kernels(&plan).iter().filter_map(|l| l.split).count();
    assert_eq!(explained, 1, "why it is written out is said");

    // s = sum(x(:)); x(:,3) = 0; y = s * x(1,1): the sum is taken before, not with what comes after.
    let mut b = Build::new();
    let x = b.input(&[100, 50], true);
    let sum = b.reduce(ReduceOp::Sum, x, 0b11);
    let x = assign(&mut b, x, 3, 1, s(0.0));
    let one = b.reduce(ReduceOp::Max, x, 0b11);
    let y = b.apply(ElementOp::Mul, &[sum, one]);
    b.output(x);
    b.output(y);
    assert_eq!(copies(&b.plan(DeviceKind::Gpu)), 0, "a sum");
}

#[test]
fn a_part_under_other_dimensions_is_patched_where_it_lies() {
    let mut b = Build::new();
    let mut x = b.input(&[100, 50], true);
    for k in [10, 20, 30usize] {
        let part = |from| Arc::<[SliceDim]>::from([from, SliceDim { start: 0, step: 1, len: 1 }]);
        let flat = b.node(Op::View(View::Reshape), &[x], &[5000, 1], DType::F32);
        let apart = part(SliceDim { start: 1, step: 9, len: 300 });
        let value = b.node(Op::View(View::Slice(apart)), &[flat], &[300, 1], DType::F32);
        let to = part(SliceDim { start: 9 * k, step: 9, len: 300 });
        let new = b.node(Op::AssignSlice(to), &[flat, value], &[5000, 1], DType::F32);
        x = b.node(Op::View(View::Reshape), &[new], &[100, 50], DType::F32);
    }
    // A row of the matrix is another part than the same numbers among its elements.
    let row = b.node(Op::View(View::Slice(columns(9, 1).as_slice().into())), &[x], &[100, 1], DType::F32);
    let flat = b.node(Op::View(View::Reshape), &[x], &[5000, 1], DType::F32);
    let to = [SliceDim { start: 900, step: 1, len: 100 }, SliceDim { start: 0, step: 1, len: 1 }];
    let x = b.node(Op::AssignSlice(to.as_slice().into()), &[flat, row], &[5000, 1], DType::F32);
    b.output(x);
    let plan = b.plan(DeviceKind::Gpu);
    let written: Vec<u64> = kernels(&plan).iter().map(|l| l.bytes_written / 4).collect();
    assert_eq!((copies(&plan), written), (0, vec![300, 300, 300, 100, 100]));
}

#[test]
fn an_array_is_copied_for_a_patch_where_it_lives_on_or_more_than_it_is_kept() {
    let plan = |dies: bool, kept: usize, read_later: bool| {
        let mut b = Build::new();
        let before = b.input(&[100, 50], dies);
        let made: Vec<X> = (0..kept).map(|k| b.apply(ElementOp::Add, &[before, s(k as f32)])).collect();
        let own = view(&mut b, before, 2, 2);
        let mut x = assign(&mut b, before, 3, 2, own);
        for y in made.into_iter().chain(read_later.then_some(before)) {
            x = b.apply(ElementOp::Mul, &[x, y]);
        }
        b.output(x);
        copies(&b.plan(DeviceKind::Gpu))
    };
    assert_eq!(plan(true, 0, false), 0);
    assert_eq!(plan(false, 0, false), 1, "somebody holds it");
    assert_eq!(plan(true, 0, true), 1, "it is read later");
    assert_eq!(plan(true, 1, false), 1, "what is kept of it and its slice are more than it is");
}

#[test]
fn other_slices_share_a_grouping_unless_they_overwrite_what_they_read() {
    let mut caches = Caches::default();
    let mut cached = |k: usize| {
        let mut b = Build::new();
        let x = b.input(&[100, 50], true);
        let made = view(&mut b, x, k, 2);
        let x = assign(&mut b, x, 10, 2, made);
        b.output(x);
        passes::plan(&b.region, &device(DeviceKind::Gpu), &mut caches).unwrap().cached
    };
    assert_eq!([20, 30, 11, 9, 10].map(&mut cached), [false, true, false, true, true]);
}

#[test]
fn the_edges_of_a_computed_array_are_selects_and_a_loop_over_its_slices_patches_it() {
    for (slices, launches) in [(4, 1), (100, 97)] {
        let mut b = Build::new();
        let x = b.input(&[1000, 1], false);
        let mut x = b.node(Op::Apply(ElementOp::Exp), &[x], &[1000, 1], DType::F32);
        for k in 0..slices {
            let dims: SmallVec<[SliceDim; 4]> =
                smallvec![SliceDim { start: 7 * k, step: 1, len: 7 }, SliceDim { start: 0, step: 1, len: 1 }];
            x = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(k as f32)], &[1000, 1], DType::F32);
        }
        b.output(x);
        let plan = b.plan(DeviceKind::Gpu);
        let written = kernels(&plan).iter().map(|l| l.bytes_written).sum::<u64>();
        assert!(plan.steps.iter().all(|s| matches!(s, Step::Launch(_))), "nothing is copied");
        assert_eq!((kernels(&plan).len(), written), (launches, 4000 + 28 * (launches as u64 - 1)), "{slices} slices");
    }
}

#[test]
fn a_slice_assignment_to_a_living_base_copies_it_first() {
    let mut b = Build::new();
    let x = b.input(&[1000, 1], false);
    let dims: SmallVec<[SliceDim; 4]> =
        smallvec![SliceDim { start: 3, step: 2, len: 4 }, SliceDim { start: 0, step: 1, len: 1 }];
    let y = b.node(Op::AssignSlice(dims.as_slice().into()), &[x, s(1.0)], &[1000, 1], DType::F32);
    b.output(y);
    let plan = b.plan(DeviceKind::Gpu);
    assert!(matches!(plan.steps[0], Step::Copy { .. }));
    assert_eq!(plan.steps.len(), 2);
}

#[test]
fn a_transposed_operand_of_matmul_is_read_as_it_lies() {
    let mut b = Build::new();
    let x = b.input(&[20, 30], false);
    let y = b.input(&[20, 40], false);
    let t = b.node(Op::View(View::Permute([1, 0].into())), &[x], &[30, 20], DType::F32);
    let p = b.node(Op::MatMul, &[t, y], &[30, 40], DType::F32);
    b.output(p);
    let launches = kernels(&b.plan(DeviceKind::Gpu));
    assert_eq!(launches.len(), 1);
    let Program::Library(crate::kernels::library::Library::MatMul { transpose_a, transpose_b, m, n, k, .. }) =
        &launches[0].program
    else {
        panic!("a matmul")
    };
    assert_eq!((*transpose_a, *transpose_b, *m, *n, *k), (true, false, 30, 40, 20));
}

#[test]
fn empty_arrays_run_nothing_and_folds_of_them_run() {
    let mut b = Build::new();
    let x = b.input(&[0, 3], false);
    let y = b.apply(ElementOp::Exp, &[x]);
    b.output(y);
    let sum = b.node(Op::Reduce { op: ReduceOp::Sum, dims: 1, nan: Nan::Include }, &[y], &[1, 3], DType::F32);
    b.output(sum);
    let launches = kernels(&b.plan(DeviceKind::Gpu));
    assert_eq!(launches.len(), 1);
    let Program::Kernel(kernel, _) = &launches[0].program else { panic!("generated") };
    assert!(matches!(kernel.form, Form::Reduce { .. }));
}

#[test]
fn the_second_region_of_a_structure_hits_the_cache_and_compiles_nothing() {
    let mut state = State::new(vec![device(DeviceKind::Host), device(DeviceKind::Gpu)]);
    let mut out = vec![];
    for (id, n) in [(0, 1000), (1, 2000)] {
        let mut b = Build::new();
        let y = chain(&mut b, n, 10);
        b.output(y);
        b.region.id = RegionId(id);
        state.handle(FusionEvent::RegionCut(Arc::new(b.region)), &mut out);
        if id == 0 {
            assert!(matches!(out[..], [FusionOutput::Compile(_)]));
            state.handle(FusionEvent::PipelinesReady { region: RegionId(0), result: Ok(()) }, &mut out);
            assert!(matches!(out[1], FusionOutput::Place(_)));
            out.clear();
        }
    }
    assert!(matches!(out[..], [FusionOutput::Place(_)]), "{out:?}");
    assert_eq!((state.totals().plan_cache_hits, state.totals().plan_cache_misses), (1, 1));
}

#[test]
fn plans_of_one_session_leave_in_order_whatever_is_compiling() {
    let mut state = State::new(vec![device(DeviceKind::Host), device(DeviceKind::Gpu)]);
    let mut out = vec![];
    for (id, session, ops) in [(0, 0, 10), (1, 0, 10), (2, 7, 10)] {
        let mut b = Build::new();
        let y = chain(&mut b, 100, ops);
        b.output(y);
        b.region.id = RegionId(id);
        b.region.session = SessionId(session);
        for input in &mut b.region.inputs {
            input.value.session = SessionId(session);
        }
        state.handle(FusionEvent::RegionCut(Arc::new(b.region)), &mut out);
    }
    let placed: Vec<u64> =
        out.iter().filter_map(|i| if let FusionOutput::Place(p) = i { Some(p.region.0) } else { None }).collect();
    assert_eq!(placed, [2], "the other session's plan passes, the same session's waits");
    state.handle(FusionEvent::PipelinesReady { region: RegionId(0), result: Ok(()) }, &mut out);
    let placed: Vec<u64> =
        out.iter().filter_map(|i| if let FusionOutput::Place(p) = i { Some(p.region.0) } else { None }).collect();
    assert_eq!(placed, [2, 0, 1]);
}
