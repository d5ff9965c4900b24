//! Residency, rule by rule, on toy devices.

mod failure;
mod idle;
mod placing;
mod pressure;
mod turns;

use super::simulate::{Builder, numbers};

/// Value 1 from host data, value 2 = value 1 + 1.
fn double(region: u64, device: u8, source: u32, result: u32, dies: bool) -> Builder {
    let mut plan = Builder::new(region, device);
    let input = plan.input(source, 4, Some(numbers(10, 4)), dies);
    let output = plan.output(result, 4);
    plan.map(4, &[input], &[output]);
    plan
}
