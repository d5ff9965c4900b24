//! Batches that compute: arrays, kernels built instruction by instruction, and library kernels, written down for the
//! numbers of one device.

use super::rig::readback;
use crate::contract::batch::{Command, Slot};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Program, Use};
use crate::graph::{DType, Element, ElementOp};
use crate::host_buffer::HostBuffer;
use crate::ids::BufferId;
use crate::kernels::ir::*;
use crate::kernels::library::Library;
use crate::kernels::verify::{level_after, verify};
use smallvec::{SmallVec, smallvec};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A batch under construction.
pub(super) struct BatchBuilder {
    pub(super) info: DeviceInfo,
    pub(super) commands: Vec<Command>,
    pub(super) labels: Vec<String>,
    pub(super) next_buffer: u64,
}

/// An array of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) slot: Slot,
    pub(super) dtype: DType,
    pub(super) elements: usize,
}

impl BatchBuilder {
    /// An empty batch for a device, whose buffers are named from here on.
    pub(super) fn of(info: &DeviceInfo, next_buffer: u64) -> BatchBuilder {
        BatchBuilder { info: info.clone(), commands: Vec::new(), labels: Vec::new(), next_buffer }
    }

    /// A new array.
    pub(super) fn array(&mut self, dtype: DType, elements: usize) -> Array {
        let bytes = (elements as u64 * self.info.element_bytes(dtype)).next_multiple_of(16).max(16);
        let buffer = BufferId(self.next_buffer);
        self.next_buffer += 1;
        self.commands.push(Command::Allocate { buffer, bytes });
        Array { slot: Slot { buffer, offset: 0, bytes }, dtype, elements }
    }

    /// A new array with these elements.
    pub(super) fn given(&mut self, from: HostBuffer) -> Array {
        let array = self.array(from.dtype(), from.len());
        let elements = from.len() as u64;
        self.commands.push(Command::Upload { from: from.shared(), first: 0, elements, to: array.slot });
        array
    }

    /// As [`BatchBuilder::given`].
    pub(super) fn of_slice<T: Element>(&mut self, data: &[T]) -> Array {
        self.given(HostBuffer::from_slice(data))
    }

    /// Reads an array back.
    pub(super) fn read(&mut self, label: impl Into<String>, array: Array) {
        self.labels.push(label.into());
        let number = self.labels.len() as u64;
        self.commands.push(readback(number, array.slot, array.dtype, array.elements as u64));
    }

    /// Four fault words, all clear.
    pub(super) fn fault_words(&mut self) -> Array {
        let words = self.array(DType::U32, 4);
        self.commands.push(Command::Zero { slot: words.slot });
        words
    }

    /// Runs a kernel over its whole space, on these arrays in the order of its operands.
    #[track_caller]
    pub(super) fn kernel(&mut self, mut build: Build, geometry: Geometry, arrays: &[Array]) {
        let mut arrays = arrays.to_vec();
        if self.info.capabilities.needs_scratch && matches!(build.kernel.form, Form::Reduce { .. } | Form::Scan { .. })
        {
            let chunks = match (build.kernel.form, geometry) {
                (Form::Reduce { inner_fast }, Geometry::Reduce { outer, inner }) => {
                    reduce_plan(outer, inner, inner_fast).chunks
                }
                (Form::Scan { inner_fast }, Geometry::Scan { outer, inner, .. }) => {
                    scan_plan(outer, inner, inner_fast).chunks
                }
                _ => 1,
            };
            let (Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. }) = geometry else { panic!("a fold") };
            build.kernel.scratch = Some(build.operand(DType::U32, Access::Write));
            let words = build.kernel.partial_words() * outer * chunks;
            arrays.push(self.array(DType::U32, words.max(4) as usize));
        }
        verify(&build.kernel).unwrap_or_else(|error| panic!("{error}"));
        let faults = build.faults.map(|array| array.slot);
        let (program, params) = build.program();
        self.launch(program, geometry, params, &arrays, faults);
    }

    /// Runs a library kernel on these operands; scratch of its own is behind them.
    #[track_caller]
    pub(super) fn library(&mut self, library: Library, access: &[Access], arrays: &[Array], faults: Option<Array>) {
        let (mut arrays, mut access) = (arrays.to_vec(), access.to_vec());
        if let Some(words @ 1..) = library.scratch_words() {
            let dtype = library.scratch_dtype();
            arrays.push(self.array(dtype, words as usize));
            access.push(Access::ReadWrite);
        }
        let program = (Program::Library(library), access);
        self.launch(program, Geometry::Map { elements: 0 }, vec![1], &arrays, faults.map(|array| array.slot));
    }

    #[track_caller]
    fn launch(
        &mut self,
        (program, access): (Program, Vec<Access>),
        geometry: Geometry,
        params: Vec<u32>,
        arrays: &[Array],
        faults: Option<Slot>,
    ) {
        let uses = access.iter().enumerate().map(|(number, access)| Use {
            buffer: number as u32,
            tiled: false,
            writes: *access != Access::Read,
            reads: *access != Access::Write,
        });
        let end = match geometry {
            Geometry::Map { elements } => elements,
            Geometry::Reduce { outer: 1, inner } => inner,
            Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. } | Geometry::Line { outer, .. } => outer,
        };
        let launch = Arc::new(Launch {
            program,
            geometry,
            params,
            uses: uses.collect(),
            faults: faults.map(|_| arrays.len() as u32),
            label: "case".into(),
            ops: 1,
            bytes_read: 16,
            bytes_written: 16,
            split: None,
            blame: ("case", std::panic::Location::caller().into()),
            provenance: Default::default(),
        });
        self.commands.push(Command::Dispatch {
            launch,
            tile: Tile { begin: 0, end, base: 0, base_wide: 0, last: true },
            bindings: arrays.iter().map(|array| -> SmallVec<[Slot; 1]> { smallvec![array.slot] }).collect(),
            faults,
            span_shift: self.info.span_shift,
        });
    }
}

/// A kernel under construction: levels and parameter words follow from what is asked for.
pub(super) struct Build {
    kernel: Kernel,
    params: Vec<u32>,
    faults: Option<Array>,
}

impl Build {
    pub(super) fn new(form: Form) -> Build {
        let kernel = Kernel {
            form,
            operands: Vec::new(),
            scratch: None,
            faults: false,
            params: HEADER_WORDS,
            insts: Vec::new(),
            stores: Vec::new(),
            rolled: None,
        };
        Build { kernel, params: vec![0; HEADER_WORDS as usize], faults: None }
    }

    fn program(self) -> ((Program, Vec<Access>), Vec<u32>) {
        let mut hasher = DefaultHasher::new();
        self.kernel.hash(&mut hasher);
        let access = self.kernel.operands.iter().map(|operand| operand.access).collect();
        ((Program::Kernel(Arc::new(self.kernel), hasher.finish()), access), self.params)
    }

    pub(super) fn operand(&mut self, dtype: DType, access: Access) -> u16 {
        self.kernel.operands.push(Operand { dtype, access, tiled: false, segments: 1 });
        self.kernel.operands.len() as u16 - 1
    }

    /// The kernel sets words of this array where something is wrong.
    pub(super) fn faults_in(&mut self, words: Array) {
        self.kernel.faults = true;
        self.faults = Some(words);
    }

    pub(super) fn inst(&mut self, op: InstOp, dtype: DType) -> Val {
        let level = level_after(&self.kernel, &op);
        self.kernel.insts.push(Inst { op, dtype, level });
        Val(self.kernel.insts.len() as u32 - 1)
    }

    /// Parameter words; where they begin.
    pub(super) fn words(&mut self, words: &[u32]) -> u32 {
        let at = self.kernel.params;
        self.params.extend_from_slice(words);
        self.kernel.params += words.len() as u32;
        at
    }

    pub(super) fn number(&mut self, number: u32) -> Val {
        let at = self.words(&[number]);
        self.inst(InstOp::Param(at), DType::U32)
    }

    pub(super) fn flat(&mut self) -> Val {
        self.inst(InstOp::Flat, DType::U32)
    }

    pub(super) fn index(&mut self, op: IndexOp, a: Val, b: Val) -> Val {
        self.inst(InstOp::Index(op, a, b), DType::U32)
    }

    pub(super) fn load(&mut self, operand: u16, index: Val, run: Run, guard: Option<Val>) -> Val {
        let dtype = self.kernel.operands[operand as usize].dtype;
        self.inst(InstOp::Load { operand, index, run, guard }, dtype)
    }

    pub(super) fn apply(&mut self, op: ElementOp, args: &[Val], dtype: DType) -> Val {
        self.inst(InstOp::Apply(op, SmallVec::from_slice(args)), dtype)
    }

    pub(super) fn store(&mut self, operand: u16, index: Option<Val>, value: Val, guard: Option<Val>) {
        self.kernel.stores.push(Store { operand, index, value, guard });
    }

    pub(super) fn dtype(&self, val: Val) -> DType {
        self.kernel.inst(val).dtype
    }
}

/// `to = from * 2`, element by element.
#[track_caller]
pub(super) fn double(work: &mut BatchBuilder, from: Array, to: Array) {
    let mut build = Build::new(Form::Map);
    let (a, b) = (build.operand(from.dtype, Access::Read), build.operand(to.dtype, Access::Write));
    let flat = build.flat();
    let x = build.load(a, flat, Run::Flat, None);
    let y = build.apply(ElementOp::Add, &[x, x], from.dtype);
    build.store(b, None, y, None);
    work.kernel(build, Geometry::Map { elements: from.elements as u32 }, &[from, to]);
}

/// Varied elements of a dtype, small and not all whole.
pub(super) fn varied(dtype: DType, elements: usize, seed: usize) -> HostBuffer {
    use crate::graph::Scalar;
    let mut buffer = HostBuffer::zeroed(dtype, elements);
    let bytes = buffer.bytes_mut().expect("it is owned");
    for (i, element) in bytes.chunks_mut(dtype.bytes()).enumerate() {
        let number = ((i + 17 * seed) * 7919 + 13 * (seed + 1)) % 101;
        let value = match dtype {
            DType::Bool => (number % 2) as f64,
            DType::U8 | DType::U32 => number as f64,
            DType::I32 | DType::I64 => number as f64 - 50.0,
            DType::F32 | DType::F64 => (number as f64 - 50.0) / 16.0,
        };
        element.copy_from_slice(&Scalar::F64(value).cast(dtype).bits().to_le_bytes()[..dtype.bytes()]);
    }
    buffer
}
