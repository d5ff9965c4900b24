//! Heston's model of a price whose variance moves, too, and its option prices by one integral.
//!
//! Under the measure by which options are priced:
//!
//! ```text
//! dS = r S dt + sqrt(v) S dW        dv = speed (level - v) dt + volatility sqrt(v) dZ        dW dZ = correlation dt
//! ```
//!
//! S. L. Heston, "A closed-form solution for options with stochastic volatility", Review of Financial Studies 6 (1993).
//! The characteristic function is in the form that stays on one branch of the logarithm: H. Albrecher, P. Mayer, W.
//! Schoutens and J. Tistaert, "The little Heston trap", Wilmott (January 2007). The price is the single integral of A.
//! L. Lewis, "Option Valuation under Stochastic Volatility" (2000).

use std::f64::consts::PI;
use tidemill::num_complex::Complex;

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The variance today.
    pub variance: f64,
    /// How fast the variance returns, per year.
    pub speed: f64,
    /// The variance to which it returns.
    pub level: f64,
    /// The volatility of the variance.
    pub volatility: f64,
    /// The correlation of price and variance.
    pub correlation: f64,
}

/// Today's market: the price of the stock, and the interest rate per year, paid continuously.
#[derive(Clone, Copy, Debug)]
pub struct Market {
    /// The price of the stock.
    pub spot: f64,
    /// The interest rate.
    pub rate: f64,
}

/// A call and its price.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// When it is exercised, in years.
    pub maturity: f64,
    /// At which price of the stock.
    pub strike: f64,
    /// What it costs today.
    pub price: f64,
    /// How much its price changes with its implied volatility. Errors of prices are divided by it.
    pub vega: f64,
}

impl Parameters {
    /// Names and values, in the order in which arrays hold them.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("variance today", self.variance),
            ("speed of return", self.speed),
            ("level of return", self.level),
            ("volatility of variance", self.volatility),
            ("correlation", self.correlation),
        ]
    }

    /// The mean of `exp(i u log(S / F))` at a maturity, where F is the forward price.
    fn characteristic(&self, u: Complex<f64>, maturity: f64) -> Complex<f64> {
        let i = Complex::<f64>::i();
        let squared = self.volatility * self.volatility;
        let b = self.speed - i * u * (self.correlation * self.volatility);
        let d = (b * b + (i * u + u * u) * squared).sqrt();
        let g = (b - d) / (b + d);
        let decayed = (-d * maturity).exp();
        let by_level = ((b - d) * maturity - ((1.0 - g * decayed) / (1.0 - g)).ln() * 2.0) * (self.speed / squared);
        let by_variance = (b - d) / squared * (1.0 - decayed) / (1.0 - g * decayed);
        (by_level * self.level + by_variance * self.variance).exp()
    }

    /// The price of a call, to some eight digits.
    pub fn call(&self, market: Market, strike: f64, maturity: f64) -> f64 {
        /// The integrand has decayed there, unless the maturity is a few days.
        const LAST: f64 = 400.0;
        const POINTS: usize = 8000;
        let forward = market.spot * (market.rate * maturity).exp();
        let distance = (forward / strike).ln();
        let step = LAST / POINTS as f64;
        // The midpoint rule converges as fast as any on a function that is analytic and decays.
        let integrand = |u: f64| {
            let factor = Complex::new(0.0, u * distance).exp();
            (factor * self.characteristic(Complex::new(u, -0.5), maturity)).re / (u * u + 0.25)
        };
        let integral: f64 = (0..POINTS).map(|n| integrand((n as f64 + 0.5) * step)).sum::<f64>() * step;
        (-market.rate * maturity).exp() * (forward - (forward * strike).sqrt() / PI * integral)
    }

    /// Calls of some maturities, five strikes each around the forward price, with the prices of this model.
    pub fn quotes(&self, market: Market, maturities: &[f64]) -> Vec<Quote> {
        // Strikes lie so many standard deviations of the price from the forward price.
        const DEVIATIONS: [f64; 5] = [-1.5, -0.75, 0.0, 0.75, 1.5];
        let usual = self.level.max(self.variance).sqrt();
        let quote = |maturity: f64, deviation: f64| {
            let deviation = deviation * usual * maturity.sqrt();
            let strike = market.spot * (market.rate * maturity + deviation).exp();
            let d = -deviation / (usual * maturity.sqrt()) + usual * maturity.sqrt() / 2.0;
            let vega = market.spot * (-d * d / 2.0).exp() / (2.0 * PI).sqrt() * maturity.sqrt();
            Quote { maturity, strike, price: self.call(market, strike, maturity), vega }
        };
        maturities.iter().flat_map(|&maturity| DEVIATIONS.map(|deviation| quote(maturity, deviation))).collect()
    }
}
