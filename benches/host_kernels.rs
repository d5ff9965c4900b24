//! Measures the host evaluator beside NumPy, in one run on the same cores. Prints nanoseconds for each element, and
//! check values.
//!
//! `cargo bench --bench host_kernels`. NumPy is run by `python3`, if it is installed.

use smallvec::{SmallVec, smallvec};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use tidemill::testing::kernels::ir::*;
use tidemill::testing::kernels::{Counters, ElementOp, HostBuffer, HostOperand, Pool, run};
use tidemill::{DType, Scalar};

const ELEMENTS: usize = 5_000_000;
const REPEATS: usize = 15;

/// Builds a kernel.
struct Writer {
    kernel: Kernel,
    params: Vec<u32>,
    dtype: DType,
}

impl Writer {
    fn new(form: Form, dtype: DType) -> Writer {
        let operand = |access| Operand { dtype, access, tiled: true, segments: 1 };
        let kernel = Kernel {
            form,
            operands: vec![operand(Access::Read), operand(Access::Write)],
            scratch: None,
            faults: false,
            params: HEADER_WORDS,
            insts: Vec::new(),
            stores: Vec::new(),
            rolled: None,
        };
        Writer { kernel, params: vec![0; HEADER_WORDS as usize], dtype }
    }

    fn push(&mut self, op: InstOp, dtype: DType, level: Level) -> Val {
        self.kernel.insts.push(Inst { op, dtype, level });
        Val(self.kernel.insts.len() as u32 - 1)
    }

    fn number(&mut self, value: f64) -> Val {
        let scalar = Scalar::F64(value).cast(self.dtype);
        let slot = self.params.len() as u32;
        self.params.push(scalar.bits() as u32);
        if self.dtype.is_wide() {
            self.params.push((scalar.bits() >> 32) as u32);
        }
        self.kernel.params = self.params.len() as u32;
        self.push(InstOp::Param(slot), self.dtype, Level::Uniform)
    }

    fn apply(&mut self, op: ElementOp, args: &[Val]) -> Val {
        let args: SmallVec<[Val; 3]> = SmallVec::from_slice(args);
        self.push(InstOp::Apply(op, args), self.dtype, Level::Element)
    }

    /// `x` at the index of the iteration space.
    fn input(&mut self) -> Val {
        let op = if self.kernel.form == Form::Map { InstOp::Flat } else { InstOp::Inner };
        let index = self.push(op, DType::U32, Level::Element);
        self.push(InstOp::Load { operand: 0, index, run: Run::Flat, guard: None }, self.dtype, Level::Element)
    }

    /// `tanh(y1) + 0.1 y1` with `y0 = sin(x) exp(-x / 10)`, `y1 = y0 cos(x / 4) + 0.25 y0 y0`.
    fn chain(&mut self) -> Val {
        use ElementOp::{Add, Cos, Div, Exp, Mul, Neg, Sin, Tanh};
        let x = self.input();
        let [ten, four, quarter, tenth] = [10.0, 4.0, 0.25, 0.1].map(|v| self.number(v));
        let sin = self.apply(Sin, &[x]);
        let down = self.apply(Neg, &[x]);
        let down = self.apply(Div, &[down, ten]);
        let decay = self.apply(Exp, &[down]);
        let y0 = self.apply(Mul, &[sin, decay]);
        let slow = self.apply(Div, &[x, four]);
        let slow = self.apply(Cos, &[slow]);
        let left = self.apply(Mul, &[y0, slow]);
        let square = self.apply(Mul, &[y0, y0]);
        let right = self.apply(Mul, &[quarter, square]);
        let y1 = self.apply(Add, &[left, right]);
        let tanh = self.apply(Tanh, &[y1]);
        let part = self.apply(Mul, &[tenth, y1]);
        self.apply(Add, &[tanh, part])
    }

    fn store(&mut self, value: Val) {
        self.kernel.stores.push(Store { operand: 1, index: None, value, guard: None });
    }
}

/// The least time of `REPEATS` runs, in nanoseconds for each element, and the first output.
fn measure(writer: &Writer, outputs: usize, geometry: Geometry, pool: &Pool) -> (f64, f64) {
    let x: Vec<f64> = (0..ELEMENTS).map(|i| i as f64 * (20.0 / ELEMENTS as f64)).collect();
    let x = match writer.dtype {
        DType::F32 => HostBuffer::from_vec(x.iter().map(|&v| v as f32).collect()),
        _ => HostBuffer::from_vec(x),
    };
    let mut out = HostBuffer::zeroed(writer.dtype, outputs);
    let counters = Counters::default();
    let kernel = Arc::new(writer.kernel.clone());
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let operands = [
            HostOperand::read(x.bytes()),
            HostOperand::write(out.bytes_mut().expect("a buffer that was just made is ours")),
        ];
        let start = Instant::now();
        run(&kernel, &geometry, &writer.params, &operands, None, pool, &counters).expect("no memory is needed");
        best = best.min(start.elapsed().as_nanos() as f64 / ELEMENTS as f64);
    }
    (best, out.scalar(outputs - 1).as_f64())
}

fn numpy(dtype: DType) -> Option<String> {
    let script = format!(
        "
import numpy as np, time
n = {ELEMENTS}
x = (np.arange(n) * (20.0 / n)).astype(np.{})
def chain():
    y0 = np.sin(x) * np.exp(-x / 10)
    y1 = y0 * np.cos(x / 4) + 0.25 * (y0 * y0)
    return np.tanh(y1) + 0.1 * y1
def best(f):
    times = []
    for _ in range({REPEATS}):
        t = time.perf_counter(); r = f(); times.append(time.perf_counter() - t)
    return min(times) / n * 1e9, float(r)
print('numpy %s: chain %.3f ns/element (last %.9g), with sum %.3f (%.9g), plain sum %.3f (%.9g)' % (
    (x.dtype.name,) + best(lambda: chain()[-1]) + best(lambda: chain().sum()) + best(lambda: x.sum())))
",
        if dtype == DType::F32 { "float32" } else { "float64" }
    );
    let output = Command::new("python3").arg("-c").arg(script).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let threads: SmallVec<[Option<usize>; 2]> = smallvec![None, Some(1)];
    for dtype in [DType::F32, DType::F64] {
        for &threads in &threads {
            let pool = Pool::new(threads).expect("the system gives threads");
            let mut map = Writer::new(Form::Map, dtype);
            let value = map.chain();
            map.store(value);
            let (map_ns, last) = measure(&map, ELEMENTS, Geometry::Map { elements: ELEMENTS as u32 }, &pool);

            let sizes = Geometry::Reduce { outer: 1, inner: ELEMENTS as u32 };
            let mut sum = Writer::new(Form::Reduce { inner_fast: true }, dtype);
            let value = sum.chain();
            let folded =
                sum.push(InstOp::Reduce { monoid: Monoid::Sum, args: smallvec![value] }, dtype, Level::Reduced);
            sum.store(folded);
            let (sum_ns, total) = measure(&sum, 1, sizes, &pool);

            let mut plain = Writer::new(Form::Reduce { inner_fast: true }, dtype);
            let value = plain.input();
            let folded =
                plain.push(InstOp::Reduce { monoid: Monoid::Sum, args: smallvec![value] }, dtype, Level::Reduced);
            plain.store(folded);
            let (plain_ns, plain_total) = measure(&plain, 1, sizes, &pool);
            println!(
                "host  {dtype} on {} thread(s): chain {map_ns:.3} ns/element (last {last:.9}), with sum {sum_ns:.3} \
                 ({total:.9}), plain sum {plain_ns:.3} ({plain_total:.9})",
                pool.threads()
            );
        }
        match numpy(dtype) {
            Some(line) => println!("{line}"),
            None => println!("numpy {dtype}: python3 with numpy is not installed"),
        }
    }
}
