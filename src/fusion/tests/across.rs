//! Which loads run across their kernel's space.

use super::*;
use crate::kernels::ir::Kernel;

/// The one kernel of a plan, and the stride and extent of its loads across.
fn walk(b: &Build) -> (std::sync::Arc<Kernel>, Option<(u32, u32)>) {
    let plan = b.plan(DeviceKind::Gpu);
    let [launch] = &kernels(&plan)[..] else { panic!("one kernel") };
    let Program::Kernel(kernel, _) = &launch.program else { panic!("a generated kernel") };
    let sizes = kernel.across().map(|(stride, extent)| {
        let [stride, extent] = [stride, extent].map(|slot| launch.params[slot as usize]);
        (stride, extent)
    });
    (kernel.clone(), sizes)
}

fn permuted(b: &mut Build, x: X, order: &[u8]) -> X {
    let from = b.shape(x);
    let dims: Vec<usize> = order.iter().map(|&d| from.dim(d as usize)).collect();
    b.node(Op::View(View::Permute(order.into())), &[x], &dims, DType::F32)
}

#[test]
fn transposes_and_permutations_run_across_with_what_is_fused_around_them() {
    for (dims, order, sizes) in [
        (&[300, 70][..], &[1, 0][..], Some((70, 300))),
        (&[300, 20, 16], &[2, 0, 1], Some((16, 6000))),
        (&[300, 20, 16], &[2, 1, 0], Some((320, 300))),
        (&[20, 30, 40], &[1, 2, 0], Some((1200, 20))),
        // The first dimension stays the first: neighbours are neighbours.
        (&[300, 20, 16], &[0, 2, 1], None),
        // Three numbers side by side are too few for a tile.
        (&[3, 5000], &[1, 0], None),
        (&[1, 5000], &[1, 0], None),
    ] {
        let mut b = Build::new();
        let x = b.input(dims, false);
        let y = b.apply(ElementOp::Sqrt, &[x]);
        let t = permuted(&mut b, y, order);
        let own = b.shape(t);
        let other = b.input(own.dims(), false);
        let sum = b.apply(ElementOp::Add, &[t, other]);
        b.output(sum);
        assert_eq!(walk(&b).1, sizes, "{dims:?} by {order:?}");
    }
}

#[test]
fn kernels_of_other_sizes_are_the_same_and_broadcasts_and_random_numbers_do_not_run_across() {
    let transpose = |rows: usize, columns: usize| {
        let mut b = Build::new();
        let x = b.input(&[rows, columns], false);
        let t = permuted(&mut b, x, &[1, 0]);
        let y = b.apply(ElementOp::Sqrt, &[t]);
        b.output(y);
        walk(&b).0
    };
    assert_eq!(transpose(100, 200), transpose(33, 1000));
    let mut b = Build::new();
    let (x, row) = (b.input(&[100, 200], false), b.input(&[1, 200], false));
    let y = b.apply(ElementOp::Add, &[x, row]);
    b.output(y);
    assert_eq!(walk(&b).1, None);
    let mut b = Build::new();
    let x = b.input(&[100, 200], false);
    let t = permuted(&mut b, x, &[1, 0]);
    let noise = b.random(&[200, 100]);
    let y = b.apply(ElementOp::Add, &[t, noise]);
    b.output(y);
    assert_eq!(walk(&b).1, None);
}
