//! Tidemill's programs of the rows, and their inputs.

use crate::rows::{Input, Row};
use tidemill::{Array, Result, Session};

/// The inputs of a row's program.
#[derive(Default)]
pub struct Inputs {
    pub arrays: Vec<Array>,
    /// Numbers in the program's own memory.
    pub host: Vec<f32>,
}

/// Records a program without running it.
pub type Program = fn(&Session, &Inputs, usize) -> Result<Vec<Array>>;

/// When the clock of a turn stops.
#[derive(Clone, Copy)]
pub enum Ends {
    /// All outputs are computed, and stay on the device.
    OnTheDevice,
    /// The first output is one number, and the program has it.
    WithANumber,
    /// All elements of the first output are in the program's memory.
    WithTheWhole,
}

const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The numbers that all peers use as inputs: spread evenly over [-0.5, 0.5), not sorted.
fn even(session: &Session, shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    let x = session.arange(1.0f64, (n + 1) as f64, 1.0) * GOLDEN;
    (&x - x.floor() - 0.5).reshape(shape)
}

/// Makes the inputs of a row, and waits until they are computed.
pub async fn fill(session: &Session, row: &Row, size: usize) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    for input in (row.inputs)(size) {
        let made = match input {
            Input::Even(shape) => even(session, &shape).cast::<f32>(),
            Input::EvenF64(shape) => even(session, &shape),
            Input::Places { count, of } => {
                ((even(session, &[count, 1]) + 0.5) * of as f64).floor().cast::<i32>().min((of - 1) as i64)
            }
            Input::Host(count) => {
                let number = |i: usize| ((i + 1) as f64 * GOLDEN).fract() - 0.5;
                inputs.host = (0..count).map(|i| number(i) as f32).collect();
                continue;
            }
        };
        made.eval().await?;
        inputs.arrays.push(made);
    }
    Ok(inputs)
}

/// Runs the program of a row once, until the row's clock stops.
pub async fn turn(session: &Session, inputs: &Inputs, row: &Row, size: usize) -> Result<()> {
    let outputs = (row.program)(session, inputs, size)?;
    match row.ends {
        // All outputs are demanded before the first is awaited, because the peers synchronise once, too.
        Ends::OnTheDevice => {
            futures::future::try_join_all(outputs.iter().map(Array::eval)).await?;
        }
        Ends::WithANumber => {
            outputs[0].item::<f32>().await?;
        }
        Ends::WithTheWhole => {
            outputs[0].gather::<f32>().await?;
        }
    }
    Ok(())
}

/// The check value of a row: the sum of all elements of its outputs, with weights that grow from 0 to 1 along each
/// array. Also returns the same sum of the magnitudes.
pub async fn check(session: &Session, inputs: &Inputs, row: &Row, size: usize) -> Result<(f64, f64)> {
    let (mut total, mut magnitude) = (0.0, 0.0);
    for output in (row.program)(session, inputs, size)? {
        let n = output.elements()?;
        let weighted = match n {
            1 => output.reshape([1, 1]).cast::<f64>(),
            _ => output.cast::<f64>().reshape([1, n]) * session.linspace(0.0f64, 1.0, n),
        };
        total += weighted.sum(..).item::<f64>().await?;
        magnitude += weighted.abs().sum(..).item::<f64>().await?;
    }
    Ok((total, magnitude))
}

fn one(array: Array) -> Result<Vec<Array>> {
    Ok(vec![array])
}

pub fn chain(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    let x = &inputs.arrays[0];
    let y0 = x.sin() * (-x / 10.0).exp();
    let y1 = &y0 * (x / 4.0).cos() + 0.25 * (&y0 * &y0);
    one(y1.tanh() + 0.1 * &y1)
}

pub fn add(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(&inputs.arrays[0] + 0.5)
}

pub fn randn(session: &Session, _: &Inputs, n: usize) -> Result<Vec<Array>> {
    one(session.randn::<f32>([n, 1]))
}

/// 4K images along the last dimension, which is the slowest, as the first is in the peers' order.
pub fn image(session: &Session, _: &Inputs, images: usize) -> Result<Vec<Array>> {
    let x = session.rand::<f32>([3840, 2160, images]);
    let centred = &x - x.mean([0, 1]);
    let deviation = (centred.square().mean([0, 1]) + 1e-6).sqrt();
    let out = (&centred / &deviation * 1.0123 - 0.02).max(0.0).pow(1.8);
    one((out - &x).square().mean(..))
}

pub fn brownian(session: &Session, _: &Inputs, paths: usize) -> Result<Vec<Array>> {
    let (drift, scale) = ((0.05 - 0.5 * 0.04) / 252.0, 0.2 * (1.0f64 / 252.0).sqrt());
    let mut price = session.full(100.0f32, [paths, 1]);
    for _ in 0..256 {
        price *= (drift + scale * session.randn::<f32>([paths, 1])).exp();
    }
    one((price - 100.0).max(0.0).mean(..))
}

pub fn volatility(session: &Session, _: &Inputs, paths: usize) -> Result<Vec<Array>> {
    let mut x = session.zeros::<f32>([paths, 1]);
    let mut v = session.full(0.04f32, [paths, 1]);
    for _ in 0..256 {
        let (z1, z2) = (session.randn::<f32>([paths, 1]), session.randn::<f32>([paths, 1]));
        v = (&v + 0.01 * (0.04 - &v) + 0.02 * v.sqrt() * z2).max(1e-4);
        x += 0.0001 + (&v / 252.0).sqrt() * z1;
    }
    one(x.exp().mean(..))
}

pub fn mandelbrot(session: &Session, _: &Inputs, n: usize) -> Result<Vec<Array>> {
    let real = session.linspace(-2.0f32, 0.5, n).reshape([1, n]);
    let imaginary = session.linspace(-1.25f32, 1.25, n).reshape([n, 1]);
    let [mut zr, mut zi, mut count] = [0; 3].map(|_| session.zeros::<f32>([n, n]));
    for _ in 0..100 {
        let (r2, i2) = (zr.square(), zi.square());
        let inside = (&r2 + &i2).le(4.0);
        let next = inside.select(2.0 * &zr * &zi + &imaginary, &zi);
        zr = inside.select(r2 - i2 + &real, &zr);
        zi = next;
        count += inside.cast::<f32>();
    }
    one(count.mean(..))
}

pub fn stencil(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    let mut u = inputs.arrays[0].clone();
    for _ in 0..100 {
        u = 0.25 * (u.circshift(&[1, 0]) + u.circshift(&[-1, 0]) + u.circshift(&[0, 1]) + u.circshift(&[0, -1]));
    }
    one(u.square().mean(..) * 1e6)
}

pub fn blur(_: &Session, inputs: &Inputs, n: usize) -> Result<Vec<Array>> {
    let x = &inputs.arrays[0];
    let mut sum: Option<Array> = None;
    for (i, j) in (0..9).map(|k| (k % 3, k / 3)) {
        let part = x.slice((i..n - 2 + i, j..n - 2 + j));
        sum = Some(match sum {
            Some(sum) => sum + part,
            None => part,
        });
    }
    one(sum.expect("there are nine parts") / 9.0)
}

/// Simulates a wave in a box. Each step updates the electric and the magnetic fields through slices.
pub fn fdtd(session: &Session, _: &Inputs, n: usize) -> Result<Vec<Array>> {
    let mut e = session.zeros::<f64>([n, n]);
    let mut hx = session.zeros::<f64>([n, n - 1]);
    let mut hy = session.zeros::<f64>([n - 1, n]);
    let mut sigma = session.ones::<f64>([n, n]);
    for edge in [0..8, n - 8..n] {
        sigma = sigma.assign((edge.clone(), ..), 0.97).assign((.., edge), 0.97);
    }
    let inside = 1..n - 1;
    for step in 1..=200 {
        hx -= 0.5 * (e.slice((.., 1..n)) - e.slice((.., 0..n - 1)));
        hy += 0.5 * (e.slice((1..n, ..)) - e.slice((0..n - 1, ..)));
        let curl = hy.slice((1..n - 1, inside.clone()))
            - hy.slice((0..n - 2, inside.clone()))
            - hx.slice((inside.clone(), 1..n - 1))
            + hx.slice((inside.clone(), 0..n - 2));
        let moved = e.slice((inside.clone(), inside.clone())) + 0.5 * curl;
        e = e.assign((inside.clone(), inside.clone()), &moved) * &sigma;
        let pulse = (-((step as f64 - 30.0) / 10.0).powi(2)).exp();
        let at = (n / 2 - 1..n / 2, n / 2 - 1..n / 2);
        let source = e.slice(at.clone()) + pulse;
        e = e.assign(at, &source);
    }
    one(e.square().sum(..).cast::<f32>())
}

pub fn pairs(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    let (x, y) = (&inputs.arrays[0], &inputs.arrays[1]);
    let (dx, dy) = (x - x.t(), y * 0.7 - y.t() * 0.7);
    one((dx.square() + dy.square() + 1e-4).sqrt().reciprocal().sum(1).mean(..))
}

pub fn regression(session: &Session, inputs: &Inputs, n: usize) -> Result<Vec<Array>> {
    let x = &inputs.arrays[0];
    let target = x.slice((.., 0..1)).gt(0.1).cast::<f32>();
    let mut w = session.zeros::<f32>([256, 1]);
    for _ in 0..20 {
        let error = x.matmul(&w).sigmoid() - &target;
        w -= 0.5 * (x.t().matmul(&error) / n as f64);
    }
    one(w.square().sum(..))
}

/// The gradient of the sum of the chain.
pub fn chain_gradient(session: &Session, inputs: &Inputs, n: usize) -> Result<Vec<Array>> {
    let x = &inputs.arrays[0];
    let (_, gradient) = session.value_and_gradient(x, |x| {
        let inputs = Inputs { arrays: vec![x.clone()], ..Inputs::default() };
        Ok(chain(session, &inputs, n)?[0].sum(..))
    })?;
    one(gradient)
}

/// Delta and vega of the option of [`brownian`], by one backward pass through its loop. They are added, so that one
/// number is awaited.
pub fn greeks(session: &Session, _: &Inputs, paths: usize) -> Result<Vec<Array>> {
    let (start, volatility) = (session.full(100.0f32, [1, 1]), session.full(0.2f32, [1, 1]));
    let (_, [delta, vega]) = session.value_and_gradient([&start, &volatility], |[start, volatility]| {
        let drift = (0.05 - volatility.square() * 0.5) / 252.0;
        let scale = volatility * (1.0f64 / 252.0).sqrt();
        let mut price = start.broadcast_to([paths, 1]);
        for _ in 0..256 {
            price *= (&drift + &scale * session.randn::<f32>([paths, 1])).exp();
        }
        Ok((price - 100.0).max(0.0).mean(..))
    })?;
    one(delta + vega / 100.0)
}

/// The gradients of a network of 784 inputs, 512 hidden values and 10 scores by its four parameters, over a batch of
/// images.
pub fn network(session: &Session, inputs: &Inputs, batch: usize) -> Result<Vec<Array>> {
    let [images, labels, w1, b1, w2, b2] = &inputs.arrays[..] else { unreachable!("the row has six inputs") };
    let labels = labels.reshape([1, batch]);
    let (_, gradients) = session.value_and_gradient([w1, b1, w2, b2], |[w1, b1, w2, b2]| {
        let hidden = (w1.matmul(images) + b1).max(0.0);
        let scores = w2.matmul(&hidden) + b2;
        Ok((scores.logsumexp(0) - scores.take_along(0, &labels)).mean(..))
    })?;
    Ok(gradients.into())
}

/// The gradient of a logistic regression's loss.
pub fn regression_gradient(session: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    let [x, w] = &inputs.arrays[..] else { unreachable!("the row has two inputs") };
    let target = x.slice((.., 0..1)).gt(0.1).cast::<f32>();
    let (_, gradient) = session.value_and_gradient(w, |w| {
        let z = x.matmul(w);
        Ok((z.max(0.0) - &z * &target + (-z.abs()).exp().log1p()).mean(..))
    })?;
    one(gradient)
}

pub fn sum_all(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].sum(..))
}

pub fn sum_fast(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one((&inputs.arrays[0] + 0.5).sum(0))
}

pub fn sum_slow(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one((&inputs.arrays[0] + 0.5).sum(1))
}

pub fn var_fast(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].var(0))
}

pub fn var_slow(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].var(1))
}

pub fn argmax_slow(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].argmax(1))
}

fn softmax(x: &Array, dim: usize) -> Result<Vec<Array>> {
    let e = (x - x.max_over(dim)).exp();
    one(&e / e.sum(dim))
}

pub fn softmax_fast(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    softmax(&inputs.arrays[0], 0)
}

pub fn softmax_slow(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    softmax(&inputs.arrays[0], 1)
}

pub fn transpose(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].t() + 0.0)
}

pub fn permute(_: &Session, inputs: &Inputs, n: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].reshape([n, n / 64, 64]).permute(&[2, 0, 1]) + 0.0)
}

pub fn cumsum_fast(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one((&inputs.arrays[0] + 0.5).cumsum(0))
}

pub fn cumsum_slow(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one((&inputs.arrays[0] + 0.5).cumsum(1))
}

pub fn sort(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    let (values, places) = inputs.arrays[0].sort(0);
    Ok(vec![values, places])
}

pub fn take(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].take(&inputs.arrays[1]))
}

pub fn product(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].matmul(&inputs.arrays[1]))
}

pub fn product_transposed(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].t().matmul(&inputs.arrays[1]))
}

pub fn square_of(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one(inputs.arrays[0].matmul(&inputs.arrays[0]))
}

pub fn tiny(session: &Session, _: &Inputs, steps: usize) -> Result<Vec<Array>> {
    let mut y = session.rand::<f32>([1000, 1]) * 0.0;
    for _ in 0..steps {
        y += 1.0;
    }
    one(y.mean(..))
}

pub fn unfusable(session: &Session, _: &Inputs, steps: usize) -> Result<Vec<Array>> {
    let m = session.eye::<f32>(32);
    let mut y = session.full(1.0f32, [32, 32]) + &m * 0.0;
    for _ in 0..steps {
        y = y.cumsum(0).matmul(&m) * 0.03;
    }
    one(y.sum(..))
}

pub fn trip(_: &Session, inputs: &Inputs, _: usize) -> Result<Vec<Array>> {
    one((&inputs.arrays[0] + 1.0).slice((0..1, ..)))
}

pub fn upload(session: &Session, inputs: &Inputs, n: usize) -> Result<Vec<Array>> {
    one(session.from_slice(&inputs.host, [n, 1])? + 0.5)
}
