//! What steps of one statement of the program have in common, held once: [`Statements`].
//!
//! In: an op, its place, what kinds of arguments it has. Out: the number of its statement. Must hold: STATEMENT-1: two
//! steps are of one statement if they differ in nothing but the steps and arrays that they read, in numbers, and in
//! custom rules and their arguments.

use super::coding::{dtype_code, dtype_of};
use super::step::MadeBy;
use crate::error::Site;
use crate::graph::gradient::RuleReads;
use crate::graph::numbers::Numbers;
use crate::graph::words::Words;
use crate::graph::{DType, Meta, Op};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Statements from which on their steps hold dtypes and shapes themselves, so that a loop whose shapes grow has few
/// statements.
const WITH_METAS_MAX: usize = 256;

/// The statements of a log.
#[derive(Default)]
pub(super) struct Statements {
    all: Vec<Statement>,
    /// By the hash of what identifies them, or the next number that is free.
    by_hash: FxHashMap<u64, u32>,
}

/// What the steps of a statement have in common.
pub(super) struct Statement {
    /// How their values were computed.
    pub template: Template,
    /// The place where they were recorded.
    pub at: Site,
    /// The kinds of their arguments, but for a custom rule.
    pub kinds: Kinds,
    /// The dtype and shape of their values, then those of arguments that no rule reads. Empty where the steps hold
    /// these.
    pub metas: SmallVec<[Meta; 1]>,
    /// The structure of the op in words (`Op::hash_structure`), except for an elementwise function.
    structure: Box<[u64]>,
    /// The numbers of the first of them: those of the op, then those among its arguments.
    pub numbers: Box<[u64]>,
    /// As in `Step`.
    pub is_aside: bool,
    /// As in `Step`.
    pub is_pinned: bool,
    /// Whether an elementwise op made their values.
    pub is_elementwise: bool,
}

/// How the values of a statement's steps were computed.
pub(super) enum Template {
    /// The program watches them.
    Watched,
    /// By this op, but for its numbers.
    Op(Op),
    /// By a custom rule, which the step has.
    Custom,
}

/// What is known of a step when its statement is looked for.
pub(super) struct Form<'a> {
    pub made: MadeBy<'a>,
    pub at: Site,
    pub kinds: Kinds,
    /// Dtype and shape of the value.
    pub meta: &'a Meta,
    /// Those of unread arguments.
    pub unread: &'a [Meta],
    pub numbers: &'a [u64],
    pub is_aside: bool,
    pub is_pinned: bool,
}

/// The kinds of a step's arguments: four bits each, and above them how many there are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(u64);

/// The kind of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that is followed.
    Step,
    /// A value that is aside.
    Aside,
    /// An array that a rule reads.
    Read,
    /// An array that no rule reads.
    Unread,
    /// A number.
    Number(DType),
}

impl Kinds {
    const COUNT_AT: u32 = 4 * RuleReads::ARGS_MAX as u32;

    fn code(kind: Kind) -> u64 {
        match kind {
            Kind::Step => 0,
            Kind::Aside => 1,
            Kind::Read => 2,
            Kind::Unread => 3,
            Kind::Number(dtype) => 4 + dtype_code(dtype),
        }
    }

    pub fn push(&mut self, kind: Kind) {
        let count = self.len();
        assert!(count < RuleReads::ARGS_MAX, "GRAD-1: an op has at most {} arguments", RuleReads::ARGS_MAX);
        self.0 |= Kinds::code(kind) << (4 * count);
        self.0 += 1 << Kinds::COUNT_AT;
    }

    pub fn len(self) -> usize {
        (self.0 >> Kinds::COUNT_AT) as usize
    }

    /// How many of the arguments are numbers.
    pub fn numbers(self) -> usize {
        self.iter().filter(|kind| matches!(kind, Kind::Number(_))).count()
    }

    pub fn iter(self) -> impl Iterator<Item = Kind> {
        (0..self.len()).map(move |n| match self.0 >> (4 * n) & 15 {
            0 => Kind::Step,
            1 => Kind::Aside,
            2 => Kind::Read,
            3 => Kind::Unread,
            code => Kind::Number(dtype_of(code - 4)),
        })
    }
}

impl Form<'_> {
    /// Both.
    pub fn metas(&self) -> impl Iterator<Item = &Meta> {
        std::iter::once(self.meta).chain(self.unread)
    }

    /// A hash of what identifies its statement, with dtypes and shapes or without.
    fn hash(&self, with_metas: bool) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_usize(self.at.location as *const _ as usize);
        hasher.write_u64(self.at.mark);
        hasher.write_u64(self.kinds.0);
        hasher.write_usize(self.numbers.len() << 2 | usize::from(self.is_aside) << 1 | usize::from(self.is_pinned));
        for meta in self.metas().filter(|_| with_metas) {
            hasher.write_u64(dtype_code(meta.dtype));
            meta.shape.hash(&mut hasher);
        }
        if let MadeBy::Op(op) = self.made {
            op.hash_structure(&mut hasher);
        }
        hasher.finish()
    }
}

impl Statement {
    /// Whether a step of this form is one of this statement's, which has dtypes and shapes or has not.
    fn has(&self, form: &Form<'_>, with_metas: bool) -> bool {
        let at = (self.at.location as *const _, self.at.mark);
        let is_equal = |(a, b): (&Meta, &Meta)| a == b && a.shape.axes() == b.shape.axes();
        at == (form.at.location as *const _, form.at.mark)
            && (self.kinds, self.is_aside, self.is_pinned) == (form.kinds, form.is_aside, form.is_pinned)
            && (self.numbers.len(), self.metas.is_empty()) == (form.numbers.len(), !with_metas)
            && self.metas.iter().zip(form.metas()).all(is_equal)
            && match (&self.template, form.made) {
                (Template::Watched, MadeBy::Watched) | (Template::Custom, MadeBy::Custom(_)) => true,
                (Template::Op(own), MadeBy::Op(op)) => self.is_alike(own, op),
                (Template::Watched | Template::Op(_) | Template::Custom, _) => false,
            }
    }
}

impl Statement {
    /// Whether an op differs from that of this statement in numbers alone.
    fn is_alike(&self, own: &Op, op: &Op) -> bool {
        if let (Op::Apply(own), Op::Apply(op)) = (own, op) {
            return own == op;
        }
        if let (Op::Ensure { op: own, message: text }, Op::Ensure { op, message }) = (own, op) {
            return own == op && text == message;
        }
        let mut same = Same { rest: &self.structure, is_equal: true };
        op.hash_structure(&mut Words(&mut same));
        // The first word of a structure is the kind of the op.
        same.is_equal && same.rest.is_empty()
    }
}

/// Compares words with those of a list.
struct Same<'a> {
    rest: &'a [u64],
    is_equal: bool,
}

impl Extend<u64> for Same<'_> {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, words: T) {
        for word in words {
            match self.rest.split_first() {
                Some((first, rest)) if *first == word => self.rest = rest,
                _ => self.is_equal = false,
            }
        }
    }
}

fn structure(op: &Op) -> Box<[u64]> {
    let mut words: SmallVec<[u64; 16]> = SmallVec::new();
    if !matches!(op, Op::Apply(_)) {
        op.hash_structure(&mut Words(&mut words));
    }
    words.as_slice().into()
}

impl Statements {
    /// The statement with this number.
    pub fn get(&self, number: u32) -> &Statement {
        &self.all[number as usize]
    }

    /// The number of the statement of a step, which may be a new one.
    pub fn number(&mut self, form: &Form<'_>) -> u32 {
        let has_room = self.all.len() < WITH_METAS_MAX;
        self.find(form, true).unwrap_or_else(|hash| match has_room {
            true => self.add(form, true, hash),
            false => self.find(form, false).unwrap_or_else(|hash| self.add(form, false, hash)),
        })
    }

    /// A statement; or the number at which it would be found.
    fn find(&self, form: &Form<'_>, with_metas: bool) -> Result<u32, u64> {
        let mut hash = form.hash(with_metas);
        while let Some(&number) = self.by_hash.get(&hash) {
            if self.get(number).has(form, with_metas) {
                return Ok(number);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }

    fn add(&mut self, form: &Form<'_>, with_metas: bool, hash: u64) -> u32 {
        let number = u32::try_from(self.all.len()).expect("STATEMENT-1: fewer statements than numbers");
        let (template, structure, is_elementwise) = match form.made {
            MadeBy::Watched => (Template::Watched, Box::default(), false),
            MadeBy::Op(op) => (Template::Op(op.clone()), structure(op), op.is_elementwise()),
            MadeBy::Custom(_) => (Template::Custom, Box::default(), false),
        };
        self.all.push(Statement {
            template,
            at: form.at,
            kinds: form.kinds,
            metas: form.metas().filter(|_| with_metas).cloned().collect(),
            structure,
            numbers: form.numbers.into(),
            is_aside: form.is_aside,
            is_pinned: form.is_pinned,
            is_elementwise,
        });
        self.by_hash.insert(hash, number);
        number
    }
}

impl Statement {
    /// The op of a step that has these numbers.
    pub fn op_with(&self, op: &Op, numbers: &[u64]) -> Op {
        let own = op.numbers().len();
        if numbers[..own] == self.numbers[..own] { op.clone() } else { op.with_numbers(&numbers[..own]) }
    }

    /// The numbers of a step, from their differences to those of the first step; and the other way round.
    pub fn moved(&self, numbers: &[u64]) -> Numbers {
        numbers.iter().zip(&self.numbers).map(|(number, own)| number ^ own).collect()
    }
}

#[cfg(test)]
impl Statements {
    /// The bytes that they take, apart from what ops own.
    pub fn bytes(&self) -> usize {
        let words = |statement: &Statement| statement.numbers.len() + statement.structure.len();
        let of_numbers = self.all.iter().map(|statement| words(statement) * 8).sum::<usize>();
        let buckets = (self.by_hash.capacity() * 8 / 7).next_power_of_two();
        self.all.capacity() * size_of::<Statement>() + of_numbers + buckets * (size_of::<(u64, u32)>() + 1)
    }
}
