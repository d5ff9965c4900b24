//! The measured devices: the host's loops, or a runtime on a GPU.

use super::{Worst, away_from_zeros, reference, ulps_f32};
use tidemill::testing::kernels::{ElementOp, HostArg, HostBuffer, apply, apply_scalar};
use tidemill::{Array, DType, Element, Error, ErrorKind, Result, Runtime, Scalar};

/// A device that evaluates functions.
pub enum Device {
    /// The loops of the host device, called one block at a time.
    Host,
    /// A runtime whose device is a GPU. Every block is computed in a session of its own.
    Gpu {
        /// The runtime.
        runtime: Runtime,
        /// Whether the device may take subnormal numbers for zero, as its probed profile says.
        flushes: bool,
    },
}

impl Device {
    /// Opens the device of a name: `host`, `gpu` or `gpu:N`.
    pub fn open(name: &str) -> Result<Device> {
        if name == "host" {
            return Ok(Device::Host);
        }
        let runtime = Runtime::builder().device(name).fold_elements_max(0).start_blocking()?;
        let flushes = !runtime.device("gpu")?.profile.keeps_subnormals;
        Ok(Device::Gpu { runtime, flushes })
    }

    /// The device's name, and whether its subnormal numbers count as zero.
    pub fn describe(&self) -> String {
        match self {
            Device::Host => "host".to_owned(),
            Device::Gpu { runtime, flushes } => {
                let info = runtime.devices().last().expect("a runtime has a device");
                let subnormals = if *flushes { ", subnormal numbers count as zero" } else { "" };
                format!("{} ({}){subnormals}", info.name, info.driver)
            }
        }
    }

    /// The number of elements that are evaluated at a time.
    pub fn block(&self) -> usize {
        match self {
            Device::Host => 4096,
            Device::Gpu { .. } => 1 << 18,
        }
    }

    /// Evaluates a function of f32 at points, with a column for each argument, and records the errors in `worst`.
    pub fn compare(&self, op: ElementOp, columns: &[Vec<f32>], worst: &mut Worst) {
        let got = match self {
            Device::Host => on_host(op, columns),
            Device::Gpu { runtime, .. } => match on_gpu(runtime, op, columns) {
                Ok(got) => got,
                Err(error) => panic!("{}: {error}", op.name()),
            },
        };
        for (i, &got) in got.iter().enumerate() {
            let mut all = [0.0; 2];
            columns.iter().zip(&mut all).for_each(|(column, x)| *x = column[i] as f64);
            let args = &all[..columns.len()];
            let least = f64::from(f32::MIN_POSITIVE);
            let (ulps, wanted) = self.error_of(args, got as f64, least, |args| error_f32(op, args, got));
            worst.see(ulps, args, got as f64, wanted);
        }
    }

    /// Evaluates a function of f64 at points, with a column for each argument.
    pub fn evaluate(&self, op: ElementOp, columns: &[Vec<f64>]) -> Vec<f64> {
        match self {
            Device::Host => (0..columns[0].len())
                .map(|i| {
                    let args: Vec<Scalar> = columns.iter().map(|column| Scalar::F64(column[i])).collect();
                    apply_scalar(op, DType::F64, DType::F64, &args).as_f64()
                })
                .collect(),
            Device::Gpu { runtime, .. } => match on_gpu(runtime, op, columns) {
                Ok(got) => got,
                Err(error) => panic!("{}: {error}", op.name()),
            },
        }
    }

    /// The error of `got` in ulp, and the exact result, both by `measure`. If the device takes numbers below `least`
    /// for zero, the lesser error counts: that for the arguments, or that for the arguments as the device takes them.
    pub fn error_of(
        &self,
        args: &[f64],
        got: f64,
        least: f64,
        mut measure: impl FnMut(&[f64]) -> (f64, f64),
    ) -> (f64, f64) {
        let (mut ulps, mut wanted) = measure(args);
        if matches!(self, Device::Gpu { flushes: true, .. }) && ulps > 0.5 {
            let zero = |x: &f64| if x.abs() < least { 0.0f64.copysign(*x) } else { *x };
            let (of_flushed, value) = measure(&args.iter().map(zero).collect::<Vec<f64>>());
            if of_flushed < ulps {
                (ulps, wanted) = (of_flushed, value);
            }
            if got == 0.0 && wanted.abs() <= least {
                ulps = 0.0;
            }
        }
        (ulps, wanted)
    }
}

/// The error of a result in ulp, and the exact result.
fn error_f32(op: ElementOp, args: &[f64], got: f32) -> (f64, f64) {
    let wanted = reference::in_doubles(op, args);
    (away_from_zeros(op, wanted, ulps_f32(got, wanted), 23), wanted)
}

fn on_host(op: ElementOp, columns: &[Vec<f32>]) -> Vec<f32> {
    let n = columns[0].len();
    let mut out = HostBuffer::zeroed(DType::F32, n);
    // The loops need aligned blocks.
    let columns: Vec<HostBuffer> = columns.iter().map(|c| HostBuffer::from_slice(c)).collect();
    let blocks: Vec<HostArg<'_>> = columns.iter().map(|c| HostArg::Block(c.bytes())).collect();
    apply(op, DType::F32, DType::F32, &blocks, out.bytes_mut().expect("a fresh buffer is owned"), n);
    out.as_slice::<f32>().expect("it holds singles").to_vec()
}

fn on_gpu<T: Element>(runtime: &Runtime, op: ElementOp, columns: &[Vec<T>]) -> Result<Vec<T>> {
    let session = runtime.session("ulp").open();
    let args = columns.iter().map(|c| session.from_slice(c, [c.len(), 1])).collect::<Result<Vec<Array>>>()?;
    let out = recorded(op, &args).gather_blocking::<T>()?;
    match runtime.stats().elsewhere.keys().next() {
        None => Ok(out.into_vec()),
        Some(reason) => Err(Error::new(ErrorKind::Unsupported, format!("it ran on the host: {reason}"))),
    }
}

fn recorded(op: ElementOp, x: &[Array]) -> Array {
    let a = &x[0];
    match op {
        ElementOp::Sqrt => a.sqrt(),
        ElementOp::Exp => a.exp(),
        ElementOp::Expm1 => a.expm1(),
        ElementOp::Exp2 => a.exp2(),
        ElementOp::Log => a.log(),
        ElementOp::Log1p => a.log1p(),
        ElementOp::Log2 => a.log2(),
        ElementOp::Log10 => a.log10(),
        ElementOp::Sin => a.sin(),
        ElementOp::Cos => a.cos(),
        ElementOp::Cospi => a.cospi(),
        ElementOp::Tan => a.tan(),
        ElementOp::Asin => a.asin(),
        ElementOp::Acos => a.acos(),
        ElementOp::Atan => a.atan(),
        ElementOp::Sinh => a.sinh(),
        ElementOp::Cosh => a.cosh(),
        ElementOp::Tanh => a.tanh(),
        ElementOp::Asinh => a.asinh(),
        ElementOp::Acosh => a.acosh(),
        ElementOp::Atanh => a.atanh(),
        ElementOp::Erf => a.erf(),
        ElementOp::Gamma => a.gamma(),
        ElementOp::Lgamma => a.lgamma(),
        ElementOp::Sigmoid => a.sigmoid(),
        ElementOp::Pow => a.pow(&x[1]),
        ElementOp::Atan2 => a.atan2(&x[1]),
        ElementOp::Hypot => a.hypot(&x[1]),
        ElementOp::Rem => a.remainder(&x[1]),
        ElementOp::Mod => a.modulo(&x[1]),
        other => panic!("{} is not measured", other.name()),
    }
}
