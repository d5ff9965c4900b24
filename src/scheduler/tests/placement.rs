//! Where things run, and why.

use super::*;
use crate::contract::device::{Costs, Features};
use crate::graph::{LinearOp, SliceDim, View};

#[test]
fn host_means_host() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(1 << 24);
    b.gather(x);
    let regions = b.cut();
    assert_eq!(regions[0].device, DeviceId::HOST);
    assert_eq!(regions[0].placement.reason, "asked for");
}

#[test]
fn gpu_means_gpu_and_what_it_cannot_do_runs_on_the_host_and_is_counted() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.source(8);
    let y = b.scale(x, 8);
    let wide = b.node(Op::Apply(ElementOp::Cast), &[Arg::Value(y)], DType::F64, &[8]);
    let sine = b.node(Op::Apply(ElementOp::Sin), &[Arg::Value(wide)], DType::F64, &[8]);
    let back = b.node(Op::Apply(ElementOp::Cast), &[Arg::Value(sine)], DType::F32, &[8]);
    let z = b.add(back, y, 8);
    b.gather(z);
    for value in [y, wide, sine, back] {
        b.release(value);
    }
    let regions = b.cut();
    let places: Vec<(DeviceId, Vec<ValueId>)> = regions.iter().map(|r| (r.device, values(r))).collect();
    assert_eq!(places, [(DeviceId(1), vec![y]), (DeviceId::HOST, vec![wide, sine, back]), (DeviceId(1), vec![z])]);
    assert_eq!(regions[0].why, CutReason::DeviceChange);
    assert_eq!(regions[1].placement.reason, "this device lacks f64");
    assert_eq!(b.state.totals().elsewhere["this device lacks f64"], 3);
}

#[test]
fn a_gpu_runs_what_its_types_and_its_bindings_allow() {
    let mut gpu = device(1, DeviceKind::Gpu);
    let meta = Meta { dtype: DType::F64, shape: Shape::new(&[8]).unwrap() };
    use super::super::placement::capability;
    let sine = |gpu: &DeviceInfo| capability(&Op::Apply(ElementOp::Sin), &[DType::F64], &[8], &meta, gpu);
    gpu.features.f64 = true;
    gpu.features.i64 = false;
    assert_eq!(sine(&gpu), Err("this device lacks the 64-bit integers that f64 needs"));
    gpu.features.i64 = true;
    assert_eq!(sine(&gpu), Ok(()));
    assert!(capability(&Op::Apply(ElementOp::Gamma), &[DType::F64], &[8], &meta, &gpu).is_err());
    let power = Op::Apply(ElementOp::Pow);
    assert!(capability(&power, &[DType::I64, DType::F64], &[8, 1], &meta, &gpu).is_err());
    assert!(capability(&power, &[DType::F64, DType::I64], &[1, 8], &meta, &gpu).is_err(), "of any argument");
    // Two columns of reflections, and as many beside them.
    let tall = |rows: usize| {
        let meta = Meta { dtype: DType::F32, shape: Shape::new(&[rows, 4]).unwrap() };
        capability(&Op::Linear(LinearOp::Qr { full: false }), &[DType::F32], &[2 * rows], &meta, &gpu)
    };
    assert_eq!(tall(960_000), Ok(()));
    assert_eq!(tall(960_001), Err("its matrix has more rows than the loops of a kernel may take"));
    let recurrence = |rows: usize, lines: usize| {
        let meta = Meta { dtype: DType::F32, shape: Shape::new(&[rows, 1, lines]).unwrap() };
        let lengths = [rows * lines, 2];
        capability(&Op::Linear(LinearOp::Recurrence { order: 2 }), &[DType::F32; 2], &lengths, &meta, &gpu)
    };
    assert_eq!((recurrence(8000, 1), recurrence(100_000, 30)), (Ok(()), Ok(())));
    let refused = Err("a recurrence of so few and so long lines is faster on the host");
    assert_eq!((recurrence(9000, 1), recurrence(100_000, 20)), (refused, refused));
    let long = Meta { dtype: DType::U32, shape: Shape::new(&[1 << 31]).unwrap() };
    let sort = Op::ArgSort { dim: 0, descending: false };
    assert!(capability(&sort, &[DType::F32], &[long.elements()], &long, &gpu).is_err());
    let short = Meta { dtype: DType::U32, shape: Shape::new(&[1 << 20]).unwrap() };
    assert_eq!(capability(&sort, &[DType::F32], &[short.elements()], &short, &gpu), Ok(()));
}

#[test]
fn auto_keeps_small_work_on_the_host_and_sends_large_work_to_the_gpu() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let small = b.rand(100);
    b.gather(small);
    let first = b.cut();
    assert_eq!(first[0].device, DeviceId::HOST);
    assert_eq!(first[0].placement.estimates_us.len(), 2);
    let large = b.rand(1 << 24);
    let total = b.sum(large);
    b.gather(total);
    let second = b.cut();
    assert_eq!(second[0].device, DeviceId(1));
    assert_eq!(second[0].placement.reason, "cheaper on the GPU");
    let of = |device: u8| second[0].placement.estimates_us.iter().find(|e| e.0 == device).unwrap().1;
    assert!(of(1) < of(0));
}

#[test]
fn auto_goes_on_where_a_chain_began() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let large = b.rand(1 << 22);
    b.demand(large, Want::Device);
    let first = b.cut();
    assert_eq!(first[0].device, DeviceId(1));
    b.finish(&first[0]);
    let total = b.sum(large);
    b.demand(total, Want::Device);
    let second = b.cut();
    b.finish(&second[0]);
    assert_eq!(second[0].device, DeviceId(1));
    let tiny = b.scale(total, 1);
    b.demand(tiny, Want::Device);
    let third = b.cut();
    assert_eq!(third[0].device, DeviceId(1), "one element made on the GPU stays there: {:?}", third[0].placement);
}

#[test]
fn auto_places_unconnected_work_separately() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let large = b.rand(1 << 24);
    let total = b.sum(large);
    let small = b.rand(10);
    b.gather(total);
    b.gather(small);
    let regions = b.cut();
    let places: Vec<DeviceId> = regions.iter().map(|r| r.device).collect();
    assert_eq!(places, [DeviceId::HOST, DeviceId(1)]);
}

#[test]
fn auto_obeys_a_pin_and_sends_what_only_pinned_work_needs_with_it() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let x = b.rand(10);
    let scaled = b.scale(x, 10);
    let pinned = b.scale(scaled, 10);
    b.pin(pinned, DeviceId(1));
    let free = b.rand(10);
    b.gather(pinned);
    b.gather(free);
    let regions = b.cut();
    let places: Vec<(DeviceId, Vec<ValueId>)> = regions.iter().map(|r| (r.device, values(r))).collect();
    assert_eq!(places, [(DeviceId::HOST, vec![free]), (DeviceId(1), vec![x, scaled, pinned])]);
    assert_eq!(regions[1].placement.reason, "pinned to it by the program");
    assert!(b.state.totals().elsewhere.is_empty());
}

#[test]
fn what_is_computed_from_pinned_work_without_a_pin_is_placed_by_its_costs() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let big = b.rand(1 << 24);
    b.pin(big, DeviceId::HOST);
    let total = b.sum(big);
    b.gather(total);
    let small = b.rand(8);
    b.pin(small, DeviceId(1));
    let scaled = b.scale(small, 8);
    b.gather(scaled);
    let regions = b.cut();
    let places: Vec<(DeviceId, Vec<ValueId>)> = regions.iter().map(|r| (r.device, values(r))).collect();
    // The sum of host data stays: moving 64 MB costs more than summing it. The scaled value goes on where it began.
    assert_eq!(places, [(DeviceId::HOST, vec![big, total]), (DeviceId(1), vec![small, scaled])]);
}

#[test]
fn a_pin_goes_before_the_device_of_the_runtime() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.rand(1 << 20);
    b.pin(x, DeviceId::HOST);
    let y = b.scale(x, 1 << 20);
    b.gather(y);
    let regions = b.cut();
    let places: Vec<DeviceId> = regions.iter().map(|r| r.device).collect();
    assert_eq!(places, [DeviceId::HOST, DeviceId(1)]);
}

#[test]
fn pinned_work_that_the_device_cannot_do_runs_on_the_host_and_is_counted() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let x = b.rand(8);
    let wide = b.node(Op::Apply(ElementOp::Cast), &[Arg::Value(x)], DType::F64, &[8]);
    b.pin(wide, DeviceId(1));
    b.gather(wide);
    let regions = b.cut();
    let places: Vec<(DeviceId, Vec<ValueId>)> = regions.iter().map(|r| (r.device, values(r))).collect();
    assert_eq!(places, [(DeviceId(1), vec![x]), (DeviceId::HOST, vec![wide])]);
    assert_eq!(b.state.totals().elsewhere["this device lacks f64"], 1);
}

#[test]
fn pinned_work_of_a_device_that_is_gone_runs_on_the_host_and_is_counted() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let error = Error::new(ErrorKind::DeviceLost, "pulled out");
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: false });
    let x = b.rand(8);
    b.pin(x, DeviceId(1));
    b.gather(x);
    assert_eq!(b.cut()[0].device, DeviceId::HOST);
    assert_eq!(b.state.totals().elsewhere["the device that it is pinned to is gone"], 1);
}

/// An H200, as `tidemill info` measured it, beside two threads of a small server.
fn h200_and_two_cores() -> Bench {
    let mut host = device(0, DeviceKind::Host);
    host.costs = Costs {
        launch_us: 12.0,
        dispatch_us: 3.0,
        memory_gb_per_s: 20.0,
        f32_gop_per_s: 6.0,
        f64_gop_per_s: 3.0,
        upload_gb_per_s: 1e6,
        readback_gb_per_s: 1e6,
    };
    let mut gpu = device(1, DeviceKind::Gpu);
    gpu.features = Features { f64: true, i64: true, ..gpu.features };
    gpu.costs = Costs {
        launch_us: 95.0,
        dispatch_us: 4.0,
        memory_gb_per_s: 3600.0,
        f32_gop_per_s: 30_000.0,
        f64_gop_per_s: 15_000.0,
        upload_gb_per_s: 20.0,
        readback_gb_per_s: 12.0,
    };
    Bench::on(vec![host, gpu], Config { device: DeviceChoice::Auto, ..Config::default() })
}

/// Where `program` runs, in regions.
fn placed(program: impl FnOnce(&mut Bench)) -> Vec<u8> {
    let mut b = h200_and_two_cores();
    program(&mut b);
    b.cut().iter().map(|region| region.device.0).collect()
}

#[test]
fn auto_between_an_h200_and_a_small_cpu_sends_what_gains_by_it() {
    let chain = |b: &mut Bench, first: ValueId, n: usize, ops: usize| {
        (0..ops).fold(first, |x, _| {
            let next = b.scale(x, n);
            b.release(x);
            next
        })
    };
    const HOST: u8 = 0;
    const GPU: u8 = 1;
    // Work of a few microseconds on the CPU does not wait for a GPU.
    assert_eq!(
        placed(|b| {
            let x = b.rand(100);
            let y = chain(b, x, 100, 10);
            b.gather(y);
        }),
        [HOST]
    );
    // One op on host data, all of it wanted back: the link costs more than the CPU takes.
    let n = 10_000_000;
    assert_eq!(
        placed(|b| {
            let x = b.source(n);
            let y = b.scale(x, n);
            b.gather(y);
        }),
        [HOST]
    );
    assert_eq!(
        placed(|b| {
            let x = b.source(n);
            let y = b.sum(x);
            b.gather(y);
        }),
        [HOST]
    );
    // Forty ops on it, and it pays.
    assert_eq!(
        placed(|b| {
            let x = b.source(n);
            let y = chain(b, x, n, 40);
            b.gather(y);
        }),
        [GPU]
    );
    // Made on the device, one number back.
    assert_eq!(
        placed(|b| {
            let x = b.rand(1_000_000);
            let y = b.sum(x);
            b.gather(y);
        }),
        [GPU]
    );
    // Products: little to move, much to do.
    let product = |b: &mut Bench, n: usize| {
        let data = HostBuffer::from_vec(vec![1.0f32; n * n]).shared();
        let x = b.node(Op::Source(data), &[], DType::F32, &[n, n]);
        let z = b.node(Op::MatMul, &[Arg::Value(x), Arg::Value(x)], DType::F32, &[n, n]);
        b.gather(z);
    };
    assert_eq!(placed(|b| product(b, 1024)), [GPU]);
    assert_eq!(placed(|b| product(b, 16)), [HOST]);
    // Ops on a dtype that the GPU lacks are not moved to it and back.
    let sines = |b: &mut Bench| {
        b.state.fleet.info_mut(DeviceId(GPU)).features.f64 = false;
        let n = 1_000_000;
        let x = b.node(Op::Source(HostBuffer::from_vec(vec![1.0f64; n]).shared()), &[], DType::F64, &[n]);
        let y = b.node(Op::Apply(ElementOp::Sin), &[Arg::Value(x)], DType::F64, &[n]);
        let z = b.node(Op::Apply(ElementOp::Mul), &[Arg::Value(y), Arg::Scalar(Scalar::F64(0.5))], DType::F64, &[n]);
        b.release(y);
        b.demand(z, Want::Device);
    };
    assert_eq!(placed(sines), [HOST]);
}

#[test]
fn auto_stays_on_an_h200_until_little_is_left_to_do() {
    let mut b = h200_and_two_cores();
    let n = 4_000_000;
    let mut price = b.rand(n);
    b.demand(price, Want::Device);
    for step in 0..3 {
        let regions = b.cut();
        assert_eq!(regions.iter().map(|r| r.device.0).collect::<Vec<_>>(), [1], "step {step}");
        b.finish(&regions[0]);
        price = b.scale(price, n);
        b.demand(price, Want::Device);
    }
    let regions = b.cut();
    b.finish(&regions[0]);
    // A vector that came back lies on both sides, and small work on it does not go to the GPU again.
    let small = b.rand(1000);
    b.gather(small);
    let regions = b.cut();
    b.finish(&regions[0]);
    assert_eq!(regions[0].device, DeviceId::HOST);
    let twice = b.scale(small, 1000);
    b.gather(twice);
    assert_eq!(b.cut()[0].device, DeviceId::HOST);
}

#[test]
fn a_sort_costs_by_the_length_of_its_lines() {
    let sort = |len: usize, lines: usize| {
        placed(|b| {
            let x = b.rand(len * lines);
            let sorted = b.node(Op::View(View::Reshape), &[Arg::Value(x)], DType::F32, &[len, lines]);
            let op = Op::ArgSort { dim: 0, descending: false };
            let order = b.node(op, &[Arg::Value(sorted)], DType::U32, &[len, lines]);
            b.demand(order, Want::Device);
        })
    };
    let first_on_gpu =
        |len: usize| (0..16).map(|k| 1 << k).find(|&lines| sort(len, lines).contains(&1)).map(|lines| len * lines);
    // Elements from which a sort is worth the GPU.
    assert_eq!([16, 256, 4096].map(first_on_gpu), [Some(1 << 14), Some(1 << 13), Some(1 << 13)]);
}

/// Where a sum over an operand in host memory runs, turn by turn, why, and what the turns are estimated to take on the
/// host and on the GPU.
fn turns(elements: usize, turns: usize) -> Vec<(DeviceId, &'static str, [f64; 2])> {
    let mut b = Bench::new(DeviceChoice::Auto);
    let x = b.source(elements);
    let turn = |_| {
        let y = b.scale(x, elements);
        let total = b.sum(y);
        let gather = b.gather(total);
        let regions = b.cut();
        assert_eq!(regions.len(), 1);
        b.finish(&regions[0]);
        b.release(total);
        let _ = b.result(gather);
        let placement = &regions[0].placement;
        let of = |device: u8| placement.estimates_us.iter().find(|e| e.0 == device).unwrap().1;
        (regions[0].device, placement.reason, [of(0), of(1)])
    };
    (0..turns).map(turn).collect()
}

#[test]
fn an_operand_that_is_used_again_moves_when_it_has_missed_what_its_upload_takes() {
    let all = turns(1 << 22, 20);
    let moved = all.iter().position(|turn| turn.0 == DeviceId(1)).expect("it moves in the end");
    assert!(moved > 0, "once, the host is the better one: {all:?}");
    assert!(all[moved..].iter().all(|turn| turn.0 == DeviceId(1)), "it stays there: {all:?}");
    assert_eq!(all[moved].1, "cheaper on the GPU, since its operands are used again");
    assert_eq!(all[moved + 1].1, "cheaper on the GPU");
    let (host_us, gpu_us) = (all[0].2[0], all[moved + 1].2[1]);
    let upload_us = all[0].2[1] - gpu_us;
    // All turns together take at most one upload longer than the better device would have.
    let taken = moved as f64 * host_us + upload_us + (20 - moved) as f64 * gpu_us;
    let better = (20.0 * host_us).min(upload_us + 20.0 * gpu_us);
    assert!(taken <= better + upload_us, "{taken} beside {better} and {upload_us}");
    assert_eq!(
        turns(1 << 22, 20).iter().map(|turn| turn.0).collect::<Vec<_>>(),
        all.iter().map(|turn| turn.0).collect::<Vec<_>>()
    );
}

#[test]
fn an_operand_for_which_the_host_is_as_fast_never_moves() {
    let all = turns(1 << 8, 200);
    assert!(all.iter().all(|turn| turn.0 == DeviceId::HOST), "{all:?}");
}

#[test]
fn what_another_session_missed_does_not_count() {
    let mut b = Bench::new(DeviceChoice::Auto);
    let n = 1 << 22;
    let x = b.source(n);
    b.open(5, 1);
    for _ in 0..20 {
        let y = b.scale(x, n);
        let total = b.sum(y);
        b.gather(total);
        for region in b.cut() {
            assert_eq!(region.device, DeviceId::HOST);
            b.finish(&region);
        }
    }
}

#[test]
fn what_is_overwritten_by_index_is_told_from_what_is_written_into_it() {
    // Eight pieces of the array, eight of scratch, one each of the indices and the values, parameters and fault words.
    let mut gpu = device(1, DeviceKind::Gpu);
    (gpu.span_shift, gpu.bindings_max) = (10, 20);
    let pieces = gpu.pieces(DType::F32, 1 << 13) as u32;
    assert_eq!(pieces, 8);
    let config = Config { device: DeviceChoice::Gpu(None), ..Config::default() };
    let mut b = Bench::on(vec![device(0, DeviceKind::Host), gpu], config);
    let (base, value) = (b.source(1 << 13), b.source(4));
    let indices = HostBuffer::from_vec(vec![3u32, 1, 4, 2]).shared();
    let index = b.node(Op::Source(indices), &[], DType::U32, &[4]);
    let args = [base, index, value].map(Arg::Value);
    let assigned = b.node(Op::AssignIndex { dim: None }, &args, DType::F32, &[1 << 13]);
    b.gather(assigned);
    let regions = b.cut();
    assert_eq!(regions[0].device, DeviceId(1), "{:?}", b.state.totals().elsewhere);
}

#[test]
fn a_value_that_stays_on_the_device_is_not_weighed_as_a_readback() {
    let estimate = |want: Want| {
        let mut b = h200_and_two_cores();
        let x = b.source(1 << 26);
        let y = b.scale(x, 1 << 26);
        b.demand(y, want);
        let regions = b.cut();
        regions[0].placement.estimates_us.iter().find(|e| e.0 == 1).unwrap().1
    };
    let readback_us = (4u64 << 26) as f64 / 12e3;
    assert!((estimate(Want::Host) - estimate(Want::Device) - readback_us).abs() < 1.0);
}

#[test]
fn a_slice_costs_what_it_reads_and_not_what_it_is_a_part_of() {
    let on_host = |elements: usize| {
        let mut b = h200_and_two_cores();
        let x = b.source(elements);
        let window = vec![SliceDim { start: 3, step: 1, len: 1 << 10 }].into();
        let slice = b.node(Op::View(View::Slice(window)), &[Arg::Value(x)], DType::F32, &[1 << 10]);
        let total = b.sum(slice);
        b.gather(total);
        let regions = b.cut();
        regions[0].placement.estimates_us.iter().find(|e| e.0 == 0).unwrap().1
    };
    assert_eq!(on_host(1 << 26), on_host(1 << 12));
}
