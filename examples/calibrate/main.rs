//! Finds the parameters of a stochastic-volatility model by which options are priced as they are quoted:
//! `cargo run --release --example calibrate`.
//!
//! The quotes are those of Heston's model with known parameters, by its semi-analytic formula. The fit begins
//! elsewhere, simulates paths, and descends along the gradient of the pricing errors: array code whose backward pass
//! goes through the loop over time. Random numbers are drawn again in the backward pass, and the states between some
//! steps are kept.

mod heston;
mod monte_carlo;

use clap::Parser;
use heston::{Market, Parameters};
use indicatif::{ProgressBar, ProgressStyle};
use monte_carlo::{Calibration, Simulation};
use tidemill::{Result, Runtime};

/// Fit a stochastic-volatility model to option prices
#[derive(Parser)]
struct Arguments {
    /// Paths of the variance
    #[arg(long, default_value_t = 16_384)]
    paths: usize,
    /// Time steps a year
    #[arg(long, default_value_t = 24)]
    steps: usize,
    /// Time steps between two states that the backward pass keeps
    #[arg(long, default_value_t = 6)]
    kept: usize,
    /// Steps of the descent
    #[arg(long, default_value_t = 200)]
    descents: usize,
    /// auto, host, gpu or gpu:N
    #[arg(long, default_value = "auto")]
    device: String,
}

const MARKET: Market = Market { spot: 100.0, rate: 0.02 };
const MATURITIES: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
const TRUE: Parameters = Parameters { variance: 0.04, speed: 2.0, level: 0.06, volatility: 0.4, correlation: -0.6 };
const BEGIN: Parameters = Parameters { variance: 0.09, speed: 1.0, level: 0.09, volatility: 0.6, correlation: -0.2 };

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = Runtime::builder().device(arguments.device.as_str()).start().await?;
    let s = runtime.session("calibrate").seed(1).open();
    let quotes = TRUE.quotes(MARKET, &MATURITIES);
    let simulation = Simulation { paths: arguments.paths, steps: arguments.steps, steps_kept: arguments.kept };
    let mut fit = Calibration::new(&s, simulation, MARKET, &quotes, BEGIN, 0.1)?;
    let bar = ProgressBar::new(arguments.descents as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left, {msg}") {
        bar.set_style(style);
    }
    for n in 0..arguments.descents {
        // Shorter steps towards the end.
        let loss = fit.step((2.0 * (1.0 - n as f64 / arguments.descents as f64)).min(1.0))?;
        let error = loss.item::<f64>().await?.sqrt();
        bar.set_message(format!("error of implied volatilities {:.3} %", error * 100.0));
        bar.inc(1);
    }
    bar.finish_and_clear();

    let parameters = fit.parameters()?;
    let fitted = parameters.gather::<f64>().await?;
    println!("{:<24}{:>10}{:>10}{:>10}", "parameter", "true", "begin", "fitted");
    for (n, (name, value)) in TRUE.named().into_iter().enumerate() {
        println!("{name:<24}{value:>10.4}{:>10.4}{:>10.4}", BEGIN.named()[n].1, fitted[n]);
    }
    println!("\n{:<10}{:>10}{:>10}{:>10}{:>22}", "maturity", "strike", "quoted", "fitted", "of volatility, %");
    for (group, errors) in quotes.chunk_by(|a, b| a.maturity == b.maturity).zip(fit.errors(&parameters)?) {
        for (quote, error) in group.iter().zip(errors.gather::<f64>().await?.as_slice()) {
            let (price, fitted) = (quote.price, quote.price + error * quote.vega);
            println!("{:<10}{:>10.2}{price:>10.4}{fitted:>10.4}{:>22.3}", quote.maturity, quote.strike, error * 100.0);
        }
    }
    runtime.shutdown().await
}
