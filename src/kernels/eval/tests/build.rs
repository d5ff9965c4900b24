//! Builds kernels for tests, with the levels that lowering would give, and runs them.

use crate::graph::{DType, Element, ElementOp, Scalar};
use crate::kernels::eval::{HostOperand, Pool, run};
use crate::kernels::ir::*;
use crate::stats::{Counters, Stats};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A kernel under construction, its parameters and its memory.
pub struct Build {
    pub kernel: Kernel,
    pub params: Vec<u32>,
    /// Operand memory, in words so that every dtype is aligned.
    pub memory: Vec<Vec<u64>>,
    pub bytes: Vec<usize>,
    pub geometry: Geometry,
    pub faults: usize,
}

/// The memory of the operands, and the fault words, after a run.
pub struct Outcome {
    memory: Vec<Vec<u64>>,
    bytes: Vec<usize>,
    pub faults: Vec<u32>,
    pub stats: Stats,
}

impl Outcome {
    pub fn bytes(&self, operand: u16) -> &[u8] {
        &bytemuck::cast_slice(&self.memory[operand as usize])[..self.bytes[operand as usize]]
    }

    pub fn values<T: Element>(&self, operand: u16) -> Vec<T> {
        self.bytes(operand)
            .chunks_exact(T::DTYPE.bytes())
            .map(|chunk| {
                let mut word = [0u8; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                T::from_scalar(Scalar::from_bits(T::DTYPE, u64::from_le_bytes(word)))
            })
            .collect()
    }
}

impl Build {
    pub fn new(geometry: Geometry, inner_fast: bool) -> Build {
        let form = match geometry {
            Geometry::Map { .. } => Form::Map,
            Geometry::Reduce { .. } => Form::Reduce { inner_fast },
            Geometry::Scan { .. } => Form::Scan { inner_fast },
            Geometry::Line { inner, .. } => Form::Line(line_plan(inner, 4)),
        };
        Build {
            kernel: Kernel {
                form,
                operands: Vec::new(),
                scratch: None,
                faults: false,
                params: HEADER_WORDS,
                insts: Vec::new(),
                stores: Vec::new(),
                rolled: None,
            },
            params: vec![0; HEADER_WORDS as usize],
            memory: Vec::new(),
            bytes: Vec::new(),
            geometry,
            faults: 0,
        }
    }

    pub fn map(elements: u32) -> Build {
        Build::new(Geometry::Map { elements }, true)
    }

    fn operand(&mut self, dtype: DType, access: Access, bytes: &[u8]) -> u16 {
        self.kernel.operands.push(Operand { dtype, access, tiled: false, segments: 1 });
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        self.memory.push(words);
        self.bytes.push(bytes.len());
        (self.kernel.operands.len() - 1) as u16
    }

    pub fn input<T: Element>(&mut self, data: &[T]) -> u16 {
        self.operand(T::DTYPE, Access::Read, crate::host_buffer::as_bytes(data))
    }

    pub fn in_place<T: Element>(&mut self, data: &[T]) -> u16 {
        self.operand(T::DTYPE, Access::ReadWrite, crate::host_buffer::as_bytes(data))
    }

    pub fn output(&mut self, dtype: DType, elements: usize) -> u16 {
        self.operand(dtype, Access::Write, &vec![0xAB; elements * dtype.bytes()])
    }

    pub fn push(&mut self, op: InstOp, dtype: DType, level: Level) -> Val {
        self.kernel.insts.push(Inst { op, dtype, level });
        Val(self.kernel.insts.len() as u32 - 1)
    }

    fn join(&self, vals: &[Val]) -> Level {
        vals.iter().map(|&v| self.kernel.inst(v).level).max().unwrap_or(Level::Uniform)
    }

    pub fn word(&mut self, scalar: Scalar) -> u32 {
        let slot = self.params.len() as u32;
        self.params.push(scalar.bits() as u32);
        if scalar.dtype().is_wide() {
            self.params.push((scalar.bits() >> 32) as u32);
        }
        self.kernel.params = self.params.len() as u32;
        slot
    }

    pub fn param(&mut self, scalar: Scalar) -> Val {
        let slot = self.word(scalar);
        self.push(InstOp::Param(slot), scalar.dtype(), Level::Uniform)
    }

    pub fn number(&mut self, index: u32) -> Val {
        self.param(Scalar::U32(index))
    }

    pub fn flat(&mut self) -> Val {
        self.push(InstOp::Flat, DType::U32, Level::Element)
    }

    pub fn outer(&mut self) -> Val {
        self.push(InstOp::Outer, DType::U32, Level::Outer)
    }

    pub fn inner(&mut self) -> Val {
        self.push(InstOp::Inner, DType::U32, Level::Element)
    }

    pub fn index(&mut self, op: IndexOp, a: Val, b: Val) -> Val {
        let level = self.join(&[a, b]);
        self.push(InstOp::Index(op, a, b), DType::U32, level)
    }

    pub fn compare(&mut self, op: IndexCompare, a: Val, b: Val) -> Val {
        let level = self.join(&[a, b]);
        self.push(InstOp::Compare(op, a, b), DType::Bool, level)
    }

    pub fn load(&mut self, operand: u16, index: Val, guard: Option<Val>) -> Val {
        let level = self.join(&[index, guard.unwrap_or(index)]);
        let dtype = self.kernel.operands[operand as usize].dtype;
        self.push(InstOp::Load { operand, index, run: Run::Any, guard }, dtype, level)
    }

    pub fn apply(&mut self, op: ElementOp, dtype: DType, args: &[Val]) -> Val {
        let level = self.join(args);
        self.push(InstOp::Apply(op, SmallVec::from_slice(args)), dtype, level)
    }

    pub fn check(&mut self, index: Val, extent: Val, fault: u32, guard: Option<Val>) -> Val {
        let site = self.word(Scalar::U32(fault));
        self.kernel.faults = true;
        self.faults = self.faults.max(fault as usize + 1);
        let level = self.join(&[index, extent, guard.unwrap_or(index)]);
        self.push(InstOp::Check { index, extent, site, guard }, DType::U32, level)
    }

    pub fn require(&mut self, condition: Val, fault: u32, guard: Option<Val>) {
        let site = self.word(Scalar::U32(fault));
        self.kernel.faults = true;
        self.faults = self.faults.max(fault as usize + 1);
        let level = self.join(&[condition, guard.unwrap_or(condition)]);
        self.push(InstOp::Require { condition, site, guard }, DType::Bool, level);
    }

    pub fn reduce(&mut self, monoid: Monoid, args: &[Val]) -> Val {
        let dtype = monoid.components(self.kernel.inst(args[0]).dtype)[0];
        self.push(InstOp::Reduce { monoid, args: SmallVec::from_slice(args) }, dtype, Level::Reduced)
    }

    pub fn project(&mut self, of: Val, component: u8, dtype: DType) -> Val {
        self.push(InstOp::Project(of, component), dtype, Level::Reduced)
    }

    pub fn scan(&mut self, monoid: Monoid, arg: Val) -> Val {
        let dtype = self.kernel.inst(arg).dtype;
        self.push(InstOp::Scan { monoid, arg }, dtype, Level::Element)
    }

    pub fn store(&mut self, operand: u16, index: Option<Val>, value: Val, guard: Option<Val>) {
        self.kernel.stores.push(Store { operand, index, value, guard });
    }

    /// The memory index of `(outer, inner)`: column-major with the fast one first.
    pub fn place(&mut self) -> Val {
        let (outer_extent, inner_extent) = match self.geometry {
            Geometry::Reduce { outer, inner }
            | Geometry::Scan { outer, inner, .. }
            | Geometry::Line { outer, inner } => (outer, inner),
            Geometry::Map { .. } => panic!("a map has no inner index"),
        };
        let (outer, inner) = (self.outer(), self.inner());
        let (fast, slow, extent) = match self.kernel.form {
            Form::Reduce { inner_fast: true } | Form::Scan { inner_fast: true } | Form::Line(_) => {
                (inner, outer, inner_extent)
            }
            _ => (outer, inner, outer_extent),
        };
        let extent = self.number(extent);
        let column = self.index(IndexOp::Mul, slow, extent);
        self.index(IndexOp::Add, column, fast)
    }

    pub fn run(&self, threads: usize) -> Outcome {
        let mut memory = self.memory.clone();
        let operands: Vec<HostOperand<'_>> = memory
            .iter_mut()
            .zip(&self.bytes)
            .map(|(words, &bytes)| HostOperand::write(&mut bytemuck::cast_slice_mut(words)[..bytes]))
            .collect();
        let faults: Vec<AtomicU32> = (0..self.faults).map(|_| AtomicU32::new(0)).collect();
        let counters = Counters::default();
        let pool = Pool::new(Some(threads)).unwrap();
        run(&Arc::new(self.kernel.clone()), &self.geometry, &self.params, &operands, Some(&faults), &pool, &counters)
            .unwrap();
        drop(operands);
        Outcome {
            memory,
            bytes: self.bytes.clone(),
            faults: faults.iter().map(|w| w.load(Relaxed)).collect(),
            stats: counters.read(),
        }
    }

    /// Runs on 1, 2 and 5 threads, which must give the same bytes, and compares these with loops over scalars.
    pub fn check_against_loops(&self) -> Outcome {
        let first = self.run(1);
        for threads in [2, 5] {
            let other = self.run(threads);
            for operand in 0..self.kernel.operands.len() as u16 {
                assert!(first.bytes(operand) == other.bytes(operand), "operand {operand} on {threads} threads");
            }
            assert_eq!(first.faults, other.faults);
        }
        let (memory, faults) = super::naive::run(self);
        for (number, operand) in self.kernel.operands.iter().enumerate() {
            let expected = &bytemuck::cast_slice::<u64, u8>(&memory[number])[..self.bytes[number]];
            let got = first.bytes(number as u16);
            let width = operand.dtype.bytes();
            for (at, (e, g)) in expected.chunks(width).zip(got.chunks(width)).enumerate() {
                assert_eq!(e, g, "operand {number}, element {at}, {:?}, {:?}", self.geometry, self.kernel.form);
            }
        }
        assert_eq!(first.faults, faults);
        first
    }
}

/// `x + y`
pub fn add(b: &mut Build, x: Val, y: Val) -> Val {
    let dtype = b.kernel.inst(x).dtype;
    b.apply(ElementOp::Add, dtype, &[x, y])
}
