//! Runs the example `train` for a few passes: it learns, and gives the same bits each time.

mod common;
#[path = "../examples/train/model.rs"]
mod model;

use common::{host, unfolded, wait};
use model::{Digits, Model, Optimiser};
use std::path::Path;
use tidemill::testing::rounds;
use tidemill::{Runtime, Session};

/// Makes a model and its optimiser.
type Learner = fn(&Session) -> (Model, Optimiser);

/// The losses of `passes` passes through `count` digits, and the share of unseen digits that is recognised in the end.
fn trained(rt: &Runtime, (passes, count): (usize, usize), learner: Learner) -> (Vec<f32>, f64) {
    let s = rt.session("train").seed(5).open();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv");
    let (seen, unseen) = Digits::read(&s, &path, count).unwrap();
    let (mut model, mut optimiser) = learner(&s);
    let losses = (0..passes).map(|_| {
        let loss = model.learn(&s, &mut optimiser, &seen, 50).unwrap();
        wait(loss.item::<f32>()).unwrap()
    });
    let losses = losses.collect();
    (losses, wait(model.accuracy(&unseen).unwrap().item::<f64>()).unwrap())
}

#[test]
fn both_models_learn_to_read_digits_to_the_same_bits_each_time() {
    for (device, rt) in unfolded(|b| b) {
        let sizes = if device == "gpu" { (2, 150) } else { rounds((3, 600), (8, 1500)) };
        let learners: [Learner; 2] =
            [|s| (Model::logistic(s), Optimiser::sgd(0.2)), |s| (Model::network(s, 32), Optimiser::adam(0.01))];
        for learner in learners {
            let (losses, right) = trained(&rt, sizes, learner);
            assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{device}: {losses:?}");
            assert!(device == "gpu" || right > rounds(0.6, 0.85), "{device}: {right} after {losses:?}");
            let again = trained(&rt, sizes, learner);
            assert_eq!((again.0, again.1), (losses, right), "{device}");
        }
    }
}

#[test]
fn a_pass_learns_from_every_digit_whatever_the_size_of_a_batch() {
    let rt = host();
    let s = rt.session("batches").seed(5).open();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv");
    let (seen, _) = Digits::read(&s, &path, 7).unwrap();
    for (batch, expected) in [(0, 7), (1, 7), (2, 4), (7, 1), (50, 1)] {
        let (mut model, mut optimiser) = (Model::logistic(&s), Optimiser::adam(0.01));
        let loss = model.learn(&s, &mut optimiser, &seen, batch).unwrap();
        assert!(wait(loss.item::<f32>()).unwrap().is_finite(), "batches of {batch}");
        let Optimiser::Adam { steps, .. } = optimiser else { unreachable!("it was made by adam()") };
        assert_eq!(steps, expected, "batches of {batch}");
    }
}
