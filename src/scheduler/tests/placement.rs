//! Where things run, and why.

use super::*;

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
fn a_gpu_with_f64_still_sends_its_sines_to_the_host() {
    let mut gpu = device(1, DeviceKind::Gpu);
    gpu.features.f64 = true;
    let meta = Meta { dtype: DType::F64, shape: Shape::new(&[8]).unwrap() };
    let can = |op: ElementOp| capability(&Op::Apply(op), &[DType::F64], &[8], &meta, &gpu);
    use super::super::capability;
    assert_eq!(can(ElementOp::Sqrt), Ok(()));
    assert_eq!(can(ElementOp::Sin), Err("WGSL lacks this function in f64"));
    let long = Meta { dtype: DType::U32, shape: Shape::new(&[(1 << 20) + 1]).unwrap() };
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
