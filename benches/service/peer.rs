//! The same program on ndarray, in its usual style: each line is an expression of arrays, and functions go through
//! `mapv`.

use super::pricing::{Quote, Terms};
use ndarray::{Array1, Zip};

/// Prices a book, as `pricing::price` does.
///
/// # Errors
/// A text for the caller, if a price is not positive.
pub fn price(prices: &Array1<f32>, terms: Terms) -> Result<Quote, String> {
    if !prices.iter().all(|&price| price > 0.0) {
        return Err("a price has to be positive".into());
    }
    let Terms { strike, rate, volatility, years } = terms;
    let spread = volatility * years.sqrt();
    let drift = (rate + 0.5 * volatility * volatility) * years;
    let discounted = strike * (-rate * years).exp();
    let d1 = ((prices / strike).mapv(f32::ln) + drift) / spread;
    let d2 = &d1 - spread;
    let (n1, n2) = (cumulative(&d1), cumulative(&d2));
    let calls = prices * &n1 - &n2 * discounted;
    let puts = &calls - prices + discounted;
    let vega = prices * density(&d1) * years.sqrt();
    Ok(Quote { options: prices.len(), calls: calls.sum(), puts: puts.sum(), delta: n1.sum(), vega: vega.sum() })
}

fn density(x: &Array1<f32>) -> Array1<f32> {
    0.398_942_3 * (x * x * -0.5).mapv(f32::exp)
}

fn cumulative(x: &Array1<f32>) -> Array1<f32> {
    let k = 1.0 / (1.0 + 0.231_641_9 * x.mapv(f32::abs));
    let series = &k * (1.781_477_9 + &k * (-1.821_255_9 + &k * 1.330_274_5));
    let tail = density(x) * &k * (0.319_381_54 + &k * (-0.356_563_78 + series));
    Zip::from(x).and(&tail).map_collect(|&x, &tail| if x < 0.0 { tail } else { 1.0 - tail })
}
