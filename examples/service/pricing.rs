//! Prices a book of European options: its value and risk by Black and Scholes.
//!
//! Each request has a session, which records some fifty ops on the uploaded prices, awaits four sums at once, and ends.

use serde::{Deserialize, Serialize};
use tidemill::{Array, Result, Runtime, Session};

/// The terms that all options of a book share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The price at which the options may be exercised.
    pub strike: f32,
    /// The riskless rate for a year.
    pub rate: f32,
    /// The volatility for a year.
    pub volatility: f32,
    /// The years until the options expire.
    pub years: f32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { strike: 100.0, rate: 0.03, volatility: 0.2, years: 1.0 }
    }
}

impl Terms {
    /// Checks that the options can be priced.
    ///
    /// # Errors
    /// A text for the caller, if a term is not a positive number (the rate may be any finite number).
    pub fn check(&self) -> Result<(), String> {
        let positive = [("strike", self.strike), ("volatility", self.volatility), ("years", self.years)];
        match positive.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
            Some((name, value)) => Err(format!("{name} is {value}, and has to be a positive number")),
            None if !self.rate.is_finite() => Err(format!("rate is {}, and has to be a number", self.rate)),
            None => Ok(()),
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quote {
    /// Options that were priced.
    pub options: usize,
    /// The total value of a call on each price.
    pub calls: f32,
    /// The total value of a put on each price.
    pub puts: f32,
    /// The sum of the calls' deltas, their derivatives by the price.
    pub delta: f32,
    /// The sum of the calls' vegas, their derivatives by the volatility.
    pub vega: f32,
}

/// Prices a book.
///
/// # Errors
/// `ErrorKind::Domain` if a price is not positive, which is found when it is computed; any error of the runtime.
pub async fn price(runtime: &Runtime, prices: Vec<f32>, terms: Terms) -> Result<Quote> {
    price_in(&runtime.session("quote").open(), prices, terms).await
}

/// Prices a book in a session that may hold other work.
///
/// # Errors
/// As [`price`].
pub async fn price_in(s: &Session, prices: Vec<f32>, terms: Terms) -> Result<Quote> {
    let options = prices.len();
    let prices = s.from_vec(prices, options)?;
    let [calls, puts, delta, vega] = sums(&prices, terms);
    // The four sums are awaited together, so they are computed together.
    let (calls, puts, delta, vega) =
        futures::try_join!(calls.item::<f32>(), puts.item::<f32>(), delta.item::<f32>(), vega.item::<f32>())?;
    Ok(Quote { options, calls, puts, delta, vega })
}

/// Records the four sums over a book of which a quote consists.
pub fn sums(prices: &Array, terms: Terms) -> [Array; 4] {
    let Terms { strike, rate, volatility, years } = terms;
    let prices = prices.ensure(&prices.gt(0.0), "a price has to be positive");
    let spread = volatility * years.sqrt();
    let drift = (rate + 0.5 * volatility * volatility) * years;
    let discounted = strike * (-rate * years).exp();
    let d1 = ((&prices / strike).log() + drift) / spread;
    let d2 = &d1 - spread;
    let (n1, n2) = (cumulative(&d1), cumulative(&d2));
    let calls = &prices * &n1 - &n2 * discounted;
    let puts = &calls - &prices + discounted;
    let vega = &prices * density(&d1) * years.sqrt();
    [calls.sum(..), puts.sum(..), n1.sum(..), vega.sum(..)]
}

/// The normal distribution's density.
fn density(x: &Array) -> Array {
    0.398_942_3 * (x * x * -0.5).exp()
}

/// The probability that a normal variable is below `x`: Abramowitz and Stegun, 26.2.17.
fn cumulative(x: &Array) -> Array {
    let k = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = &k * (1.781_477_9 + &k * (-1.821_255_9 + &k * 1.330_274_5));
    let tail = density(x) * &k * (0.319_381_54 + &k * (-0.356_563_78 + series));
    x.lt(0.0).select(&tail, 1.0 - &tail)
}
