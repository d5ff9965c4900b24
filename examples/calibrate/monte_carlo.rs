//! Option prices by simulation, their gradients by the parameters, and the descent along these.
//!
//! A path of the variance is simulated in steps. Given that path, the logarithm of the price at the end is normal, so
//! the mean over what drives the price alone is Black's formula: M. Romano and N. Touzi, "Contingent claims and market
//! completeness in a stochastic volatility model", Mathematical Finance 7 (1997). This leaves little noise, and no
//! kink: a price depends smoothly on the parameters.

use crate::heston::{Market, Parameters, Quote};
use tidemill::{Array, RandomState, Result, Session, cat};

/// The least variance: its square root has a derivative there.
const VARIANCE_MIN: f64 = 1e-6;

/// How options are priced.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// Paths of the variance; half of them mirror the other half.
    pub paths: usize,
    /// Steps a year.
    pub steps: usize,
    /// Steps whose states are computed again in the backward pass instead of being kept.
    pub steps_kept: usize,
}

/// Quotes on their way to a fit.
pub struct Calibration {
    session: Session,
    simulation: Simulation,
    market: Market,
    /// Maturities, and for each the strikes, prices and vegas of its quotes, in rows.
    groups: Vec<(f64, [Array; 3])>,
    quotes: usize,
    /// Where random numbers begin: each pricing draws the same ones, so that the loss is a function.
    random: RandomState,
    /// The parameters as numbers without bounds: logarithms, and the inverse hyperbolic tangent of the correlation.
    unbounded: Array,
    adam: Adam,
}

impl Calibration {
    /// A fit that begins at some parameters.
    ///
    /// # Errors
    /// Those of making arrays.
    pub fn new(
        session: &Session,
        simulation: Simulation,
        market: Market,
        quotes: &[Quote],
        begin: Parameters,
        rate: f64,
    ) -> Result<Calibration> {
        let mut sorted = quotes.to_vec();
        sorted.sort_by(|a, b| a.maturity.total_cmp(&b.maturity));
        let mut groups = Vec::new();
        for group in sorted.chunk_by(|a, b| a.maturity == b.maturity) {
            let row = |of: fn(&Quote) -> f64| session.from_vec(group.iter().map(of).collect(), [1, group.len()]);
            let rows = [row(|quote| quote.strike)?, row(|quote| quote.price)?, row(|quote| quote.vega)?];
            groups.push((group[0].maturity, rows));
        }
        let [variance, speed, level, volatility, correlation] = begin.named().map(|(_, value)| value);
        let begin = [variance.ln(), speed.ln(), level.ln(), volatility.ln(), correlation.atanh()];
        Ok(Calibration {
            session: session.clone(),
            simulation,
            market,
            groups,
            quotes: quotes.len(),
            random: session.random_state(),
            unbounded: session.from_slice(&begin, 5)?,
            adam: Adam { rate, mean: session.zeros::<f64>(5), square: session.zeros::<f64>(5), steps: 0 },
        })
    }

    /// Records a step of the descent, and returns the loss before it: the mean square of the errors of implied
    /// volatilities.
    ///
    /// # Errors
    /// That of recording the prices or their gradient.
    pub fn step(&mut self, rate: f64) -> Result<Array> {
        self.session.set_random_state(self.random);
        let tape = self.session.watch(&self.unbounded)?;
        let errors = self.errors(&bounded(&self.unbounded)?)?;
        let loss = cat(1, &errors.iter().collect::<Vec<&Array>>())?.square().sum(..) / self.quotes;
        let gradient = tape.gradients(&loss)?;
        drop(tape);
        self.unbounded -= self.adam.direction(&gradient) * (self.adam.rate * rate);
        Ok(loss)
    }

    /// The parameters, as a column.
    ///
    /// # Errors
    /// Those of recording them.
    pub fn parameters(&self) -> Result<Array> {
        bounded(&self.unbounded)
    }

    /// The errors of implied volatilities, a row for each maturity, the nearest first.
    ///
    /// # Errors
    /// Those of recording the prices.
    pub fn errors(&self, parameters: &Array) -> Result<Vec<Array>> {
        let Simulation { paths, steps, steps_kept } = self.simulation;
        let half = paths.div_ceil(2);
        // The second column mirrors the first. A state is the variance, its integral over time, and the integral of its
        // square root over what drives it: three pages.
        let zeros = self.session.zeros::<f64>([half, 2]);
        let mut state = cat(2, &[&(&zeros + parameter(parameters, 0)), &zeros, &zeros])?;
        let (mut done, mut errors) = (0, Vec::new());
        for (maturity, [strikes, prices, vegas]) in &self.groups {
            let until = (maturity * steps as f64).round() as usize;
            while done < until {
                let count = steps_kept.clamp(1, until - done);
                let (session, step) = (self.session.clone(), 1.0 / steps as f64);
                state = self.session.checkpoint([&state, parameters], move |args| {
                    advanced(&session, &args[0], &args[1], count, step)
                })?;
                done += count;
            }
            errors.push((self.calls(&state, parameters, *maturity, strikes) - prices) / vegas);
        }
        Ok(errors)
    }

    /// The prices of calls in a row, by Black's formula on each path.
    fn calls(&self, state: &Array, parameters: &Array, maturity: f64, strikes: &Array) -> Array {
        let page = |n: usize| state.slice((.., .., n)).flatten();
        let (total, driven, correlation) = (page(1), page(2), parameter(parameters, 4));
        let forward = self.market.spot * (self.market.rate * maturity).exp();
        let moved = (&driven * &correlation - &total * correlation.square() * 0.5).exp();
        // Their mean is 1 but for the noise, which a division takes away.
        let forwards = &moved / moved.mean(..) * forward;
        let variances = total * (1.0 - correlation.square());
        let deviations = variances.sqrt();
        let first = ((&forwards / strikes).log() + variances * 0.5) / &deviations;
        let second = &first - deviations;
        let calls = forwards * normal(&first) - normal(&second) * strikes;
        calls.mean(0) * (-self.market.rate * maturity).exp()
    }
}

/// The state after some steps: Milstein's scheme for the variance, the rule of trapezia for its integral.
fn advanced(s: &Session, state: &Array, parameters: &Array, steps: usize, step: f64) -> Result<Array> {
    let page = |n: usize| state.slice((.., .., n));
    let (mut variance, mut total, mut driven) = (page(0), page(1), page(2));
    let (speed, level, volatility) = (parameter(parameters, 1), parameter(parameters, 2), parameter(parameters, 3));
    let half = state.shape()?.dim(0);
    let mirrored = s.from_slice(&[1.0, -1.0], [1, 2])? * step.sqrt();
    for _ in 0..steps {
        let held = variance.max(VARIANCE_MIN);
        let drawn = s.randn::<f64>([half, 1]) * &mirrored;
        let curved = (drawn.square() - step) * 0.25 * &volatility;
        let driving = held.sqrt() * drawn + curved;
        let next = &variance + (&level - &held) * &speed * step + &driving * &volatility;
        total += (held + next.max(VARIANCE_MIN)) * (step / 2.0);
        driven += driving;
        variance = next;
    }
    cat(2, &[&variance, &total, &driven])
}

/// The probability that a standard normal number is below each element.
fn normal(x: &Array) -> Array {
    (x * std::f64::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5
}

fn parameter(parameters: &Array, n: usize) -> Array {
    parameters.slice((n, 0))
}

/// The parameters of the model, from numbers without bounds.
fn bounded(unbounded: &Array) -> Result<Array> {
    cat(0, &[&unbounded.slice((0..4, 0)).exp(), &unbounded.slice((4, 0)).tanh()])
}

/// Adam: steps by running means of the gradients and of their squares.
struct Adam {
    /// The length of a step.
    rate: f64,
    mean: Array,
    square: Array,
    steps: i32,
}

impl Adam {
    fn direction(&mut self, gradient: &Array) -> Array {
        const FIRST: f64 = 0.9;
        const SECOND: f64 = 0.99;
        self.steps += 1;
        self.mean = &self.mean * FIRST + gradient * (1.0 - FIRST);
        self.square = &self.square * SECOND + gradient.square() * (1.0 - SECOND);
        // Both means begin at 0, and are too small at first.
        let (first, second) = (1.0 - FIRST.powi(self.steps), 1.0 - SECOND.powi(self.steps));
        (&self.mean / first) / ((&self.square / second).sqrt() + 1e-12)
    }
}
