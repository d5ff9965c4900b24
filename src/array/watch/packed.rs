//! Steps in few bytes: [`Packed`].
//!
//! In: steps, in the order in which they are noted, and handles of some of their values. Out: steps, by number.
//!
//! A step is its statement, and beside that only what differs between the steps of one statement: numbers, as the bits
//! in which they differ from those of the first step, and arguments, as distances. All of these are written with as few
//! bytes as they need. Handles lie in tables of their own.
//!
//! Must hold: PACK-1: a step takes a few bytes, usually less than eight; its statement, of which a program has as many
//! as it has lines and shapes, takes more. PACK-2: a step is found in constant time.

use super::coding::{bits, number_of, push_slowly, put, put_meta, take, take_meta};
use super::custom::Custom;
use super::growing::Growing;
use super::statements::{Form, Kind, Kinds, Statement, Statements, Template};
use super::step::{Argument, Made, MadeBy, Source, Step};
use crate::array::handle::{Array, Value};
use crate::error::Site;
use crate::graph::numbers::Numbers;
use crate::graph::{Meta, Scalar};
use crate::ids::DeviceId;
use smallvec::SmallVec;
use std::sync::Arc;

/// Steps of a block.
const BLOCK: usize = 64;
/// Most bytes of a step in a block. A longer one stands apart.
const BYTES_MAX: usize = u8::MAX as usize;
/// Stands in place of a statement: the number of a step that stands apart follows.
const APART: u64 = 0;
/// Latest steps whose statements are known without a look at their bytes: most steps read one of them.
const LATEST: usize = 8;
/// Handles of arrays that steps read, among which a new step's is looked for.
const RECENT: usize = 32;

/// The steps of a watch.
#[derive(Default)]
pub(super) struct Packed {
    statements: Statements,
    blocks: Vec<Block>,
    len: usize,
    /// The statement of step `n`, at `n % LATEST`, of the latest steps.
    latest: [u32; LATEST],
    /// Steps of more than `BYTES_MAX` bytes.
    apart: Vec<Box<[u8]>>,
    /// Handles of the values of some steps, and where these are pinned.
    kept: Growing<Arc<Value>, u16>,
    pins: Growing<DeviceId, u16>,
    /// Handles of arrays that are no steps' values.
    read: Vec<Array>,
    /// For arrays with one hash of their address, the last of these handles.
    recent: [Option<u32>; RECENT],
    customs: Vec<Arc<dyn Custom>>,
    /// The bytes of the step that is being added.
    scratch: Vec<u8>,
}

/// Steps that lie together.
struct Block {
    bytes: Vec<u8>,
    /// The number of bytes of each step.
    lengths: [u8; BLOCK],
}

/// A step that is about to be added.
pub(super) struct Pending {
    statement: u32,
    numbers: Numbers,
    /// The value's dtype and shape, and those of unread arguments, where the statement does not have them.
    metas: Vec<Meta>,
    custom: Option<Arc<dyn Custom>>,
    args: SmallVec<[Given; 3]>,
    /// As in `Step`.
    pub is_aside: bool,
}

/// An argument of a step that is about to be added, unless it is a number or unread.
pub(super) enum Given {
    /// A value that is followed.
    Step(u32),
    /// A value that is not followed and can be recorded again.
    Aside(u32),
    /// Another array, which a rule reads.
    Read(Array),
}

/// What a step is made of.
pub(super) struct Parts {
    /// Its value's dtype and shape, and those of the arguments that no rule reads, in order, where its statement does
    /// not have them.
    metas: SmallVec<[Meta; 1]>,
    /// The numbers of its op, and those among its arguments.
    numbers: Numbers,
    custom: Option<u32>,
    /// Its arguments.
    pub args: SmallVec<[Source; 3]>,
}

/// The arguments of a step that is about to be added.
#[derive(Default)]
pub(super) struct Givens {
    pub kinds: Kinds,
    pub args: SmallVec<[Given; 3]>,
    /// The numbers among them.
    pub numbers: SmallVec<[Scalar; 2]>,
    /// Dtypes and shapes of those that no rule reads.
    pub unread: SmallVec<[Meta; 2]>,
}

impl Givens {
    pub fn push(&mut self, given: Given) {
        self.kinds.push(match &given {
            Given::Step(_) => Kind::Step,
            Given::Aside(_) => Kind::Aside,
            Given::Read(_) => Kind::Read,
        });
        self.args.push(given);
    }

    pub fn push_number(&mut self, number: Scalar) {
        self.kinds.push(Kind::Number(number.dtype()));
        self.numbers.push(number);
    }

    pub fn push_unread(&mut self, meta: &Meta) {
        self.kinds.push(Kind::Unread);
        self.unread.push(meta.clone());
    }
}

impl Packed {
    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A step that `add` takes. `given` has the arguments, but those of a custom rule.
    pub fn pending(&mut self, made: MadeBy<'_>, at: Site, meta: &Meta, given: Givens, flags: (bool, bool)) -> Pending {
        let Givens { kinds, args, numbers, unread } = given;
        let mut all = match made {
            MadeBy::Op(op) => op.numbers(),
            MadeBy::Watched | MadeBy::Custom(_) => Numbers::new(),
        };
        all.extend(numbers.into_iter().map(bits));
        let (is_aside, is_pinned) = flags;
        let form = Form { made, at, kinds, meta, unread: &unread, numbers: &all, is_aside, is_pinned };
        let statement = self.statements.number(&form);
        let own = self.statements.get(statement);
        let metas = if own.metas.is_empty() { form.metas().cloned().collect() } else { Vec::new() };
        let custom = match made {
            MadeBy::Custom(custom) => Some(custom.clone()),
            MadeBy::Watched | MadeBy::Op(_) => None,
        };
        Pending { statement, numbers: own.moved(&all), metas, custom, args, is_aside }
    }

    /// Adds a step, and returns its number.
    pub fn add(&mut self, step: Pending) -> u32 {
        let number = u32::try_from(self.len).expect("WATCH-2: a tape has fewer values than a watch has numbers");
        self.latest[self.len % LATEST] = step.statement;
        let mut to = std::mem::take(&mut self.scratch);
        to.clear();
        put(&mut to, u64::from(step.statement) + 1);
        step.metas.iter().for_each(|meta| put_meta(&mut to, meta));
        step.numbers.iter().for_each(|number| put(&mut to, *number));
        let is_custom = step.custom.is_some();
        if let Some(custom) = step.custom {
            put(&mut to, self.customs.len() as u64);
            put(&mut to, step.args.len() as u64);
            push_slowly(&mut self.customs, custom);
        }
        for given in step.args {
            if is_custom {
                to.push(u8::from(matches!(given, Given::Read(_))));
            }
            match given {
                Given::Step(argument) | Given::Aside(argument) => put(&mut to, u64::from(number - argument)),
                Given::Read(array) => put(&mut to, u64::from(self.read_number(array))),
            }
        }
        if to.len() > BYTES_MAX {
            let apart = self.apart.len() as u64;
            push_slowly(&mut self.apart, to.as_slice().into());
            to.clear();
            put(&mut to, APART);
            put(&mut to, apart);
        }
        self.push(&to);
        self.scratch = to;
        number
    }

    fn push(&mut self, step: &[u8]) {
        let at = self.len % BLOCK;
        if at == 0 {
            let before = self.blocks.last_mut().map_or(0, |block| {
                block.bytes.shrink_to_fit();
                block.bytes.len()
            });
            let block = Block { bytes: Vec::with_capacity(before), lengths: [0; BLOCK] };
            push_slowly(&mut self.blocks, block);
        }
        let block = self.blocks.last_mut().expect("PACK-2: a block was begun");
        block.bytes.extend_from_slice(step);
        block.lengths[at] = step.len() as u8;
        self.len += 1;
    }

    /// The number of a handle that steps read. A loop reads the same array in each turn.
    fn read_number(&mut self, array: Array) -> u32 {
        let address = Arc::as_ptr(&array.0) as usize;
        let recent = &mut self.recent[(address >> 4 ^ address >> 9) % RECENT];
        if let Some(number) = *recent {
            let known = &self.read[number as usize];
            if Arc::ptr_eq(&known.0, &array.0) && known.1 == array.1 {
                return number;
            }
        }
        let number = u32::try_from(self.read.len()).expect("WATCH-2: a tape has fewer values than a watch has numbers");
        *recent = Some(number);
        push_slowly(&mut self.read, array);
        number
    }

    /// Keeps a handle of a step's value, unless one is kept.
    pub fn keep(&mut self, step: u32, array: &Array) {
        let is_new = self.kept.insert_new(step.into(), || array.0.clone());
        if let (true, Some(device)) = (is_new, array.1) {
            self.pins.insert(step.into(), device);
        }
    }

    /// The handle of a step's value, if it is kept.
    pub fn value(&self, step: u32) -> Option<Array> {
        let value = self.kept.get(step.into())?;
        Some(Array(value.clone(), self.pins.get(step.into()).copied()))
    }

    /// Whether a handle of a step's value is kept.
    pub fn keeps(&self, step: u32) -> bool {
        self.kept.get(step.into()).is_some()
    }

    /// The number of a step's statement, the statement, and the step's bytes behind that number.
    fn found(&self, step: u32) -> (u32, &Statement, &[u8]) {
        let (block, at) = (&self.blocks[step as usize / BLOCK], step as usize % BLOCK);
        let begin: usize = block.lengths[..at].iter().map(|length| usize::from(*length)).sum();
        let mut bytes = &block.bytes[begin..begin + usize::from(block.lengths[at])];
        let mut first = take(&mut bytes);
        if first == APART {
            bytes = &self.apart[take(&mut bytes) as usize];
            first = take(&mut bytes);
        }
        let number = (first - 1) as u32;
        (number, self.statements.get(number), bytes)
    }

    /// What the steps of a step's statement have in common.
    pub fn statement(&self, step: u32) -> &Statement {
        match step as usize + LATEST >= self.len {
            true => self.statements.get(self.latest[step as usize % LATEST]),
            false => self.found(step).1,
        }
    }

    /// The number of a step's statement, and its value's dtype and shape, unless the statement determines them.
    pub fn form(&self, step: u32) -> (u32, Option<Meta>) {
        let (number, statement, mut bytes) = self.found(step);
        (number, statement.metas.is_empty().then(|| take_meta(&mut bytes)))
    }

    /// The dtype and shape of a step's value.
    pub fn meta(&self, step: u32) -> Meta {
        let (_, statement, mut bytes) = self.found(step);
        statement.metas.first().map_or_else(|| take_meta(&mut bytes), Meta::clone)
    }

    /// What a step is made of.
    pub fn parts(&self, step: u32) -> (&Statement, Parts) {
        let (_, statement, mut bytes) = self.found(step);
        let from = &mut bytes;
        let metas = match statement.metas.is_empty() {
            false => SmallVec::new(),
            true => {
                let unread = statement.kinds.iter().filter(|kind| *kind == Kind::Unread).count();
                (0..1 + unread).map(|_| take_meta(from)).collect()
            }
        };
        let numbers = statement.numbers.iter().map(|own| own ^ take(from)).collect::<Numbers>();
        let mut parts = Parts { metas, numbers, custom: None, args: SmallVec::new() };
        if let Template::Custom = statement.template {
            parts.custom = Some(take(from) as u32);
            for _ in 0..take(from) {
                let is_read = take(from) == 1;
                let argument = take(from) as u32;
                parts.args.push(if is_read { Source::Read(argument) } else { Source::Step(step - argument) });
            }
            return (statement, parts);
        }
        let mut numbers = parts.numbers[parts.numbers.len() - statement.kinds.numbers()..].iter();
        parts.args.extend(statement.kinds.iter().map(|kind| match kind {
            Kind::Step => Source::Step(step - take(from) as u32),
            Kind::Aside => Source::Aside(step - take(from) as u32),
            Kind::Read => Source::Read(take(from) as u32),
            Kind::Unread => Source::Unread,
            Kind::Number(dtype) => Source::Number(number_of(dtype, numbers.next().copied().unwrap_or_default())),
        }));
        (statement, parts)
    }

    /// A step, as its readers get it.
    pub fn step(&self, number: u32) -> Step {
        let (statement, Parts { metas, numbers, custom, args }) = self.parts(number);
        let made = match (&statement.template, custom) {
            (Template::Op(op), _) => Made::Op(statement.op_with(op, &numbers)),
            (Template::Custom, Some(custom)) => Made::Custom(self.customs[custom as usize].clone()),
            (Template::Watched | Template::Custom, _) => Made::Watched,
        };
        let mut metas = if metas.is_empty() { &statement.metas } else { &metas }.iter().cloned();
        let meta = metas.next().expect("PACK-2: a step has a dtype and a shape");
        let args = args.into_iter().map(|source| {
            let (meta, array) = match source {
                Source::Step(step) | Source::Aside(step) => (Some(self.meta(step)), self.value(step)),
                Source::Read(read) => {
                    let array = &self.read[read as usize];
                    (array.0.meta.as_ref().ok().cloned(), Some(array.clone()))
                }
                Source::Unread => (metas.next(), None),
                Source::Number(_) => (None, None),
            };
            Argument { source, meta, array }
        });
        let args = args.collect();
        let (at, is_aside, is_pinned) = (statement.at, statement.is_aside, statement.is_pinned);
        Step { made, args, meta, value: self.value(number), at, is_aside, is_pinned }
    }
}

#[cfg(test)]
impl Packed {
    /// How many handles it has.
    pub fn handles(&self) -> usize {
        self.read.len() + (0..self.len as u32).filter(|&step| self.keeps(step)).count()
    }

    /// The bytes that it takes, apart from what handles, ops and rules own.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.bytes.capacity()).sum::<usize>();
        let apart = self.apart.iter().map(|step| step.len()).sum::<usize>();
        blocks
            + self.blocks.capacity() * size_of::<Block>()
            + apart
            + self.apart.capacity() * size_of::<Box<[u8]>>()
            + self.statements.bytes()
            + self.kept.bytes()
            + self.pins.bytes()
            + self.read.capacity() * size_of::<Array>()
            + self.customs.capacity() * size_of::<Arc<dyn Custom>>()
            + self.scratch.capacity()
    }
}
