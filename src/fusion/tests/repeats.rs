//! Regions that come again: found with names and numbers of their own, and only where nothing else differs (FUSE-8).

use super::*;
use crate::contract::plan::FaultSite;
use crate::fusion::repeat::Repeats;

/// A chain with random numbers and its sum, of session `session`, that multiplies by `factor`.
fn region(session: u32, n: usize, factor: f32) -> Region {
    let mut b = Build::new();
    let y = chain(&mut b, n, 10);
    let y = b.apply(ElementOp::Mul, &[y, s(factor)]);
    let total = b.reduce(ReduceOp::Sum, y, 3);
    b.output(total);
    let mut region = b.region;
    (region.id, region.session, region.weight) = (RegionId(session as u64), SessionId(session.into()), session + 1);
    for input in &mut region.inputs {
        input.value.session = SessionId(session.into());
    }
    for node in &mut region.nodes {
        node.value.session = SessionId(session.into());
        if let Op::Random { key, .. } = &mut node.op {
            *key = RandomKey { seed: session as u64 + (7 << 32), stream: 3, op: session };
        }
    }
    region.readbacks = region.nodes.iter().filter(|n| n.output).map(|n| n.value).collect();
    region
}

fn planned(region: &Region) -> Plan {
    passes::plan(region, &device(DeviceKind::Gpu), &mut Caches::default()).expect("the region can be planned")
}

/// Whether a region's plan is found after it, or what stands for it, was planned twice.
fn is_found(repeats: &mut Repeats, before: &Region, region: &Region) -> bool {
    for _ in 0..2 {
        if repeats.find(before).is_none() {
            repeats.keep(before, &planned(before));
        }
    }
    repeats.find(region).is_some()
}

#[test]
fn a_region_that_comes_for_the_third_time_has_the_plan_that_it_would_be_given() {
    let mut repeats = Repeats::default();
    for (session, factor) in [(0, 2.0), (1, -0.5)] {
        let region = region(session, 1000, factor);
        assert!(repeats.find(&region).is_none(), "it left no plan yet");
        repeats.keep(&region, &planned(&region));
    }
    let third = region(5, 1000, f32::NAN);
    let found = repeats.find(&third).expect("two like it came before");
    assert_eq!((found.region, found.session, found.weight), (RegionId(5), SessionId(5), 6));
    let anew = Plan { cached: true, ..planned(&third) };
    assert_eq!(format!("{found:?}"), format!("{anew:?}"));
    let params = |plan: &Plan| kernels(plan)[0].params.clone();
    assert_ne!(params(&found), params(&planned(&region(5, 1000, 3.0))), "the factor is among the parameters");
    assert_ne!(params(&found), params(&planned(&region(6, 1000, f32::NAN))), "and so is the seed");
}

#[test]
fn what_planning_looks_at_is_not_put_in() {
    let before = region(0, 1000, 2.0);
    let mut repeats = Repeats::default();
    assert!(is_found(&mut repeats, &before, &before));
    assert!(repeats.find(&region(0, 2000, 2.0)).is_none(), "another size");
    let mut other = region(0, 1000, 2.0);
    other.inputs[0].dies = true;
    assert!(repeats.find(&other).is_none(), "an input that ends");
    let mut other = region(0, 1000, 2.0);
    other.nodes[2].output = true;
    assert!(repeats.find(&other).is_none(), "another output");
    let mut other = region(0, 1000, 2.0);
    other.device = DeviceId::HOST;
    assert!(repeats.find(&other).is_none(), "another device");
}

#[test]
fn a_number_that_decides_what_integers_compute_in_is_part_of_what_has_to_be_equal() {
    let by = |number: f64| {
        let mut b = Build::new();
        let x = b.input(&[100, 1], false);
        b.region.inputs[0].meta.dtype = DType::I32;
        let number = X(RegionArg::Scalar(Scalar::F64(number)));
        let y = b.node(Op::Apply(ElementOp::Mul), &[x, number], &[100, 1], DType::I32);
        b.output(y);
        b.region
    };
    let mut repeats = Repeats::default();
    assert!(is_found(&mut repeats, &by(2.0), &by(2.0)));
    assert!(repeats.find(&by(2.5)).is_none());
    assert!(repeats.find(&by(3.0)).is_none());
}

#[test]
fn an_integer_scalar_beside_a_number_is_part_of_what_has_to_be_equal() {
    let numbers = |integer: i32| {
        let mut b = Build::new();
        let scalars = [Scalar::I32(integer), Scalar::F64(2.5)].map(|scalar| X(RegionArg::Scalar(scalar)));
        let y = b.node(Op::Apply(ElementOp::Div), &scalars, &[1, 1], DType::I32);
        b.output(y);
        b.region
    };
    let mut repeats = Repeats::default();
    assert!(is_found(&mut repeats, &numbers(7), &numbers(7)));
    assert!(repeats.find(&numbers(-7)).is_none(), "it is a parameter in f64");
}

/// Elements of a matrix's column at indices, checked: two sites that fault.
fn checked(session: u32, dim: Option<u8>, message: &str) -> Region {
    let mut b = Build::new();
    let x = b.input(&[100, 1], false);
    let index = b.input(&[10, 1], false);
    b.region.inputs[1].meta.dtype = DType::I32;
    let y = b.node(Op::Take { dim }, &[x, index], &[10, 1], DType::F32);
    let holds = b.node(Op::Apply(ElementOp::IsFinite), &[y], &[10, 1], DType::Bool);
    let y = b.node(Op::Ensure { op: "ensure", message: message.into() }, &[y, holds], &[10, 1], DType::F32);
    let y = b.apply(ElementOp::Mul, &[y, s(session as f32)]);
    b.output(y);
    let mut region = b.region;
    (region.id, region.session) = (RegionId(session as u64), SessionId(session.into()));
    for input in &mut region.inputs {
        input.value.session = SessionId(session.into());
    }
    for node in &mut region.nodes {
        node.value.session = SessionId(session.into());
        node.at.mark = session as u64;
    }
    region
}

#[test]
fn what_can_fault_is_found_and_says_what_its_own_program_says() {
    let mut repeats = Repeats::default();
    assert!(is_found(&mut repeats, &checked(1, None, "finite"), &checked(2, None, "finite")));
    let other = checked(3, None, "no infinity, please");
    let found = repeats.find(&other).expect("the words are no structure");
    let anew = Plan { cached: true, ..planned(&other) };
    assert_eq!(format!("{found:?}"), format!("{anew:?}"));
    let told = |plan: &Plan| -> Vec<(ValueId, String, Option<u64>)> {
        let site = |site: &FaultSite| (site.value, site.error.message().to_owned(), site.error.mark());
        plan.fault_sites.iter().map(site).collect()
    };
    assert_eq!(told(&found), told(&anew));
    assert!(told(&found).iter().any(|(_, message, mark)| message.contains("please") && *mark == Some(3)));
    assert!(repeats.find(&checked(4, Some(0), "finite")).is_none(), "another dimension");
}

#[test]
fn a_region_as_long_as_regions_are_is_found_and_a_longer_one_is_planned() {
    let chain = |ops: usize| {
        let mut b = Build::new();
        let mut y = b.input(&[100, 1], false);
        for _ in 0..ops {
            y = b.apply(ElementOp::Sin, &[y]);
        }
        b.output(y);
        b.region
    };
    for (ops, found) in [(500, true), (1024, true), (5000, false)] {
        let region = chain(ops);
        assert_eq!(is_found(&mut Repeats::default(), &region, &region), found, "{ops} ops");
    }
}
