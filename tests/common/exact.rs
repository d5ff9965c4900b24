//! Sums with twice the digits of f64, against which the bounds of `docs/accuracy.md` are checked.

/// A sum of f64, and the sum of the rounding errors of its additions.
#[derive(Clone, Copy, Default)]
pub struct Exact {
    high: f64,
    low: f64,
}

impl Exact {
    pub fn add(&mut self, x: f64) {
        let next = self.high + x;
        let added = next - self.high;
        self.low += (self.high - (next - added)) + (x - added);
        self.high = next;
    }

    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.low += a.mul_add(b, -product);
    }

    pub fn value(self) -> f64 {
        self.high + self.low
    }
}
