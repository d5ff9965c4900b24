//! Prices a European call on a stock that follows a geometric Brownian motion: by simulation, beside the closed form.
//!
//! The loop only records: a million paths of 256 steps are one region of a few kernels, and no random number is ever
//! stored.

use crate::shared::{Outcome, RuntimeOptions, at_least, stats_text};
use std::fmt;
use std::time::{Duration, Instant};
use tidemill::{Error, ErrorKind, Result, Stats};

/// The option to price, and the simulation.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Simulated paths
    #[arg(long, default_value_t = 1_000_000, value_parser = at_least(2))]
    pub paths: usize,
    /// Time steps of a path
    #[arg(long, default_value_t = 256, value_parser = at_least(1))]
    pub steps: usize,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Price of the stock today
    #[arg(long, default_value_t = 100.0, value_parser = crate::shared::positive, allow_negative_numbers = true)]
    pub spot: f64,
    /// Price at which the option lets one buy
    #[arg(long, default_value_t = 105.0, value_parser = crate::shared::positive, allow_negative_numbers = true)]
    pub strike: f64,
    /// Interest, continuously compounded, a year
    #[arg(long, default_value_t = 0.05, value_parser = crate::shared::finite, allow_negative_numbers = true)]
    pub rate: f64,
    /// Volatility a year
    #[arg(long, default_value_t = 0.2, value_parser = crate::shared::positive, allow_negative_numbers = true)]
    pub volatility: f64,
    /// Years until the option ends
    #[arg(long, default_value_t = 1.0, value_parser = crate::shared::positive, allow_negative_numbers = true)]
    pub years: f64,
    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            paths: 1_000_000,
            steps: 256,
            seed: 7,
            spot: 100.0,
            strike: 105.0,
            rate: 0.05,
            volatility: 0.2,
            years: 1.0,
            runtime: RuntimeOptions::default(),
        }
    }
}

/// The prices.
#[derive(Debug)]
pub struct Report {
    /// Simulated paths.
    pub paths: usize,
    /// Time steps of a path.
    pub steps: usize,
    /// The simulated price.
    pub price: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The price by the formula of Black and Scholes.
    pub closed_form: f64,
    /// The time from the first recorded op to the result.
    pub elapsed: Duration,
    /// The runtime's counters, if they were asked for.
    pub stats: Option<Stats>,
}

impl Report {
    /// Returns by how many standard errors the simulation and the formula differ.
    pub fn distance(&self) -> f64 {
        (self.price - self.closed_form).abs() / self.standard_error
    }
}

/// Runs the simulation.
///
/// # Errors
/// Invalid options, and errors of the runtime.
pub async fn run(options: &Options) -> Result<Report> {
    check(options)?;
    let runtime = options.runtime.start().await?;
    let begin = Instant::now();
    let session = runtime.session("monte carlo").seed(options.seed).open();
    let step_years = options.years / options.steps as f64;
    let drift = (options.rate - options.volatility * options.volatility / 2.0) * step_years;
    let spread = options.volatility * step_years.sqrt();

    let mut price = session.full(options.spot as f32, [options.paths, 1]);
    for _ in 0..options.steps {
        let shock = session.randn::<f32>([options.paths, 1]);
        price *= (shock * spread + drift).exp();
    }
    let payoff = (price - options.strike).max(0.0);

    let (mean, std) = futures::try_join!(payoff.mean(..).item::<f32>(), payoff.std(..).item::<f32>())?;
    let elapsed = begin.elapsed();
    let discount = (-options.rate * options.years).exp();
    Ok(Report {
        paths: options.paths,
        steps: options.steps,
        price: discount * f64::from(mean),
        standard_error: discount * f64::from(std) / (options.paths as f64).sqrt(),
        closed_form: black_scholes_call(options),
        elapsed,
        stats: options.runtime.finish(runtime).await?,
    })
}

fn check(options: &Options) -> Result<()> {
    let positive = [
        ("--spot", options.spot),
        ("--strike", options.strike),
        ("--volatility", options.volatility),
        ("--years", options.years),
    ];
    let wrong = |text: String| Err(Error::new(ErrorKind::Argument, text));
    for (name, value) in positive {
        if !(value > 0.0 && value.is_finite()) {
            return wrong(format!("{name} has to be a finite number above 0, not {value}"));
        }
    }
    if !options.rate.is_finite() {
        return wrong(format!("--rate has to be a finite number, not {}", options.rate));
    }
    if options.paths < 2 || options.steps < 1 {
        return wrong("at least 2 --paths and 1 of --steps are needed".into());
    }
    Ok(())
}

/// Returns the value of the call by the formula of Black and Scholes.
pub fn black_scholes_call(options: &Options) -> f64 {
    let Options { spot, strike, rate, volatility, years, .. } = *options;
    let spread = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + volatility * volatility / 2.0) * years) / spread;
    let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    spot * normal(d1) - strike * (-rate * years).exp() * normal(d1 - spread)
}

impl Outcome for Report {
    fn succeeded(&self) -> bool {
        self.price.is_finite()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} paths of {} steps in {:.3} s", self.paths, self.steps, self.elapsed.as_secs_f64())?;
        writeln!(f, "simulated    {:.4} +- {:.4}", self.price, self.standard_error)?;
        writeln!(f, "closed form  {:.4} ({:.2} standard errors away)", self.closed_form, self.distance())?;
        f.write_str(&stats_text(&self.stats))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_one_of_the_textbooks() {
        let options = Options { spot: 42.0, strike: 40.0, rate: 0.1, years: 0.5, ..Options::default() };
        assert!((black_scholes_call(&options) - 4.7594).abs() < 5e-5);
    }
}
