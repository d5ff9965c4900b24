//! Runs the examples `train`, for a few passes, and `calibrate`, on a few paths: they learn, and give the same bits each
//! time.

mod common;
#[path = "../examples/train/curve.rs"]
mod curve;
#[path = "../examples/calibrate/heston.rs"]
mod heston;
#[path = "../examples/train/model.rs"]
mod model;
#[path = "../examples/calibrate/monte_carlo.rs"]
mod monte_carlo;

use common::{host, unfolded, wait};
use heston::{Market, Parameters};
use model::{Digits, Model, Optimiser};
use monte_carlo::{Calibration, Simulation};
use std::path::Path;
use tidemill::testing::rounds;
use tidemill::{ErrorKind, RandomState, Runtime, Session};

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

#[test]
fn weights_that_are_loaded_are_those_that_were_saved() {
    let rt = host();
    let s = rt.session("weights").seed(5).open();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv");
    let (seen, unseen) = Digits::read(&s, &path, 200).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.safetensors");
    let mut model = Model::network(&s, 8);
    wait(model.learn(&s, &mut Optimiser::adam(0.01), &seen, 50).unwrap().item::<f32>()).unwrap();
    wait(model.save(&file)).unwrap();
    let mut again = Model::network(&s, 8);
    let right = |model: &Model| wait(model.accuracy(&unseen).unwrap().item::<f64>()).unwrap();
    assert_ne!(right(&again), right(&model));
    wait(again.load(&s, &file)).unwrap();
    assert_eq!(right(&again), right(&model));
    let state = s.random_state();
    let mut losses = [&mut model, &mut again].map(|model| {
        s.set_random_state(RandomState { ops: 0, ..state });
        wait(model.learn(&s, &mut Optimiser::sgd(0.1), &seen, 50).unwrap().item::<f32>()).unwrap()
    });
    losses.sort_by(f32::total_cmp);
    assert_eq!(losses[0].to_bits(), losses[1].to_bits());
    let error = wait(Model::network(&s, 9).load(&s, &file)).unwrap_err();
    assert!(error.kind() == ErrorKind::Shape && error.to_string().contains("hidden.weights"), "{error}");
    assert_eq!(wait(Model::logistic(&s).load(&s, &file)).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn a_picture_of_losses_has_a_line_for_each_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loss.png");
    let curves = [("falls", vec![2.0, 1.0, 0.5, 0.25]), ("stays", vec![1.5, 1.5, f32::NAN, 1.5]), ("none", vec![])];
    curve::draw(&file, &curves).unwrap();
    let picture = image::open(&file).unwrap().into_rgb8();
    assert_eq!(picture.dimensions(), (800, 500));
    let pixels = |colour: [u8; 3]| picture.pixels().filter(|pixel| pixel.0 == colour).count();
    assert!(pixels([0, 90, 160]) > 500 && pixels([200, 90, 0]) > 500);
    // Nothing but its key.
    assert!((1..200).contains(&pixels([0, 130, 80])));
    // The names of axes and lines.
    assert!(picture.pixels().filter(|pixel| pixel.0.iter().all(|&part| part < 64)).count() > 1000);
    let error = curve::draw(&folder.path().join("no/such/folder.png"), &curves).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn the_formula_of_heston_is_that_of_others_and_of_black_where_variance_stays() {
    // F. Fang and C. W. Oosterlee, "A novel pricing method for European options based on Fourier-cosine series
    // expansions", SIAM Journal on Scientific Computing 31 (2008), table 4.
    let theirs =
        Parameters { variance: 0.0175, speed: 1.5768, level: 0.0398, volatility: 0.5751, correlation: -0.5711 };
    let market = Market { spot: 100.0, rate: 0.0 };
    assert!((theirs.call(market, 100.0, 1.0) - 5.785155450).abs() < 1e-6);
    let still = Parameters { variance: 0.04, speed: 1.0, level: 0.04, volatility: 1e-4, correlation: 0.0 };
    // 100 (2 N(0.1) - 1): at the money, a volatility of 20 %, a year.
    assert!((still.call(market, 100.0, 1.0) - 7.965567455405804).abs() < 1e-6);
}

#[test]
fn a_calibration_finds_the_parameters_behind_the_prices() {
    let found = Parameters { variance: 0.04, speed: 2.0, level: 0.06, volatility: 0.4, correlation: -0.6 };
    let begin = Parameters { variance: 0.05, speed: 2.0, level: 0.075, volatility: 0.4, correlation: -0.45 };
    let market = Market { spot: 100.0, rate: 0.02 };
    let quotes = found.quotes(market, &[0.5, 1.0]);
    let rt = host();
    let s = rt.session("calibrate").seed(1).open();
    let simulation = Simulation { paths: 1000, steps: 6, steps_kept: 3 };
    let mut fit = Calibration::new(&s, simulation, market, &quotes, begin, 0.1).unwrap();
    let descents = rounds(5, 12);
    let losses = (0..descents).map(|n| {
        let rate = (2.0 * (1.0 - n as f64 / descents as f64)).min(1.0);
        wait(fit.step(rate).unwrap().item::<f64>()).unwrap()
    });
    let losses: Vec<f64> = losses.collect();
    assert!(losses[descents - 1] < losses[0] / rounds(1.5, 4.0), "{losses:?}");
    let fitted = wait(fit.parameters().unwrap().gather::<f64>()).unwrap();
    // Two maturities determine the variances well, and the other parameters together rather than one by one.
    let bounds = [0.3, 0.4, 0.2, 0.4, 0.2];
    for (n, (name, value)) in found.named().into_iter().enumerate() {
        assert!((fitted[n] / value - 1.0).abs() < bounds[n], "{name}: {}, not {value}", fitted[n]);
    }
    // The same step again, in a session of its own: the same bits.
    let again = rt.session("again").seed(1).open();
    let mut again = Calibration::new(&again, simulation, market, &quotes, begin, 0.1).unwrap();
    assert_eq!(wait(again.step(1.0).unwrap().item::<f64>()).unwrap().to_bits(), losses[0].to_bits());
}
