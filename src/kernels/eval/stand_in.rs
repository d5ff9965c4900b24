//! Stand-ins for the op table's host side until its branch is merged.
use crate::graph::{DType, Dist, ElementOp, Scalar};

pub enum HostArg<'a> {
    Block(&'a [u8]),
    Scalar(Scalar),
}

impl HostArg<'_> {
    fn at(&self, dtype: DType, lane: usize) -> f64 {
        match self {
            HostArg::Scalar(s) => s.as_f64(),
            HostArg::Block(b) => {
                let mut word = [0u8; 8];
                let w = dtype.bytes();
                word[..w].copy_from_slice(&b[lane * w..lane * w + w]);
                Scalar::from_bits(dtype, u64::from_le_bytes(word)).as_f64()
            }
        }
    }
}

pub mod element {
    use super::*;
    pub fn apply(op: ElementOp, input: DType, output: DType, args: &[HostArg<'_>], out: &mut [u8], n: usize) {
        for lane in 0..n {
            let arg = |k: usize| args[k].at(if op == ElementOp::Select && k == 0 { DType::Bool } else { input }, lane);
            let v = match op {
                ElementOp::Neg => -arg(0),
                ElementOp::Abs => arg(0).abs(),
                ElementOp::Sqrt => arg(0).sqrt(),
                ElementOp::Square => arg(0) * arg(0),
                ElementOp::Sin => arg(0).sin(),
                ElementOp::Cos => arg(0).cos(),
                ElementOp::Exp => arg(0).exp(),
                ElementOp::Tanh => arg(0).tanh(),
                ElementOp::Cast => arg(0),
                ElementOp::Add => arg(0) + arg(1),
                ElementOp::Sub => arg(0) - arg(1),
                ElementOp::Mul => arg(0) * arg(1),
                ElementOp::Div => arg(0) / arg(1),
                ElementOp::Lt => (arg(0) < arg(1)) as u8 as f64,
                ElementOp::Gt => (arg(0) > arg(1)) as u8 as f64,
                ElementOp::Select => {
                    if arg(0) != 0.0 {
                        arg(1)
                    } else {
                        arg(2)
                    }
                }
                other => panic!("stand-in: {other:?}"),
            };
            let bits = Scalar::F64(v).cast(output).bits().to_le_bytes();
            let w = output.bytes();
            out[lane * w..lane * w + w].copy_from_slice(&bits[..w]);
        }
    }
}

pub mod random {
    use super::*;
    pub fn fill(
        dist: Dist,
        dtype: DType,
        key: [u32; 5],
        first: u32,
        range: Option<(Scalar, u32)>,
        out: &mut [u8],
        n: usize,
    ) {
        let elements: Vec<u32> = (0..n as u32).map(|i| first + i).collect();
        at(dist, dtype, key, &elements, range, out);
    }
    pub fn at(
        _dist: Dist,
        dtype: DType,
        key: [u32; 5],
        elements: &[u32],
        _range: Option<(Scalar, u32)>,
        out: &mut [u8],
    ) {
        let w = dtype.bytes();
        for (lane, &e) in elements.iter().enumerate() {
            let x = (e.wrapping_mul(2654435761) ^ key[0]) as f64 / 4294967296.0;
            out[lane * w..lane * w + w].copy_from_slice(&Scalar::F64(x).cast(dtype).bits().to_le_bytes()[..w]);
        }
    }
}
