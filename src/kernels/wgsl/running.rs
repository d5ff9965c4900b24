//! Running folds, for scans. A part of a line is described by how it changes the running value that comes before it.
//!
//! A scan composes parts in a tree. For most monoids the order of operations does not matter (except for rounding), and
//! a part is described by the fold of its elements. For the others, a part is described as a function of the value
//! before it, so that the tree gives the same result as a walk from the beginning of the line:
//!
//! - A saturating sum of signed integers. Compositions of clamped additions `x + a` all have one form: constant up to
//!   some `x`, then of slope one, then constant. The components are the least value, the greatest value, and the `x` at
//!   which it begins to rise.
//! - A saturating product of signed integers. A magnitude that has become too great stays so until a factor is zero,
//!   and the sign decides at which extreme the product is. One case is special: the least integer times -1 is the
//!   greatest integer, whose negative is not the least. The components are the product and marks ([`OVER`], [`TURNED`],
//!   [`GREW`]).
//! - A product of floats. If the value before a part is zero, the product stays zero even if the part's own product
//!   overflows. The components are the product, and whether a number of the part is not finite.
//!
//! Must hold: running integers are those of a walk from the beginning of the line, on every device.

use super::monoid::Fold;
use super::types::{extreme, is_finite, one, register, zero};
use crate::graph::{DType, ElementOp};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::ir::Monoid;

/// Marks a product whose magnitude does not fit. That of the least integer does not.
const OVER: u32 = 1;
/// Marks a product in which a factor -1 comes after the last factor whose magnitude is greater than one.
const TURNED: u32 = 2;
/// Marks a product with a factor whose magnitude is greater than one.
const GREW: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PartKind {
    /// The fold of its elements.
    Folded,
    FloatProduct,
    SaturatingSum,
    SaturatingProduct,
}

/// A running fold over values of one dtype.
#[derive(Clone, Debug)]
pub(super) struct Running {
    fold: Fold,
    part: PartKind,
}

impl Running {
    pub(super) fn new(monoid: Monoid, dtype: DType) -> Running {
        let signed = matches!(dtype, DType::I32 | DType::I64);
        let part = match monoid {
            Monoid::Sum if signed => PartKind::SaturatingSum,
            Monoid::Prod if signed => PartKind::SaturatingProduct,
            Monoid::Prod if dtype.is_float() => PartKind::FloatProduct,
            _ => PartKind::Folded,
        };
        Running { fold: Fold::new(monoid, dtype), part }
    }

    /// The value with which a line begins, as a scalar. A sum of floats begins with -0, so that the sum of one element
    /// is that element, also if it is -0.
    pub(super) fn identity(&self) -> &'static str {
        match (self.fold.monoid, self.fold.argument) {
            (Monoid::Sum, DType::F32) => "-0.0f",
            (Monoid::Sum, DType::F64) => "-0.0lf",
            _ => self.fold.identity(0),
        }
    }

    /// Whether this is a sum of floats, whose carry is added up in levels.
    pub(super) fn is_float_sum(&self) -> bool {
        self.fold.monoid == Monoid::Sum && self.fold.argument.is_float()
    }

    /// The components of the part that consists of the element `x`.
    pub(super) fn element(&self, x: &str) -> Vec<String> {
        let dtype = self.fold.argument;
        let (least, greatest, zero, one) = (extreme(dtype, false), extreme(dtype, true), zero(dtype), one(dtype));
        match self.part {
            PartKind::Folded => vec![x.to_string()],
            PartKind::FloatProduct => vec![x.to_string(), format!("select(1u, 0u, {})", is_finite(dtype, x))],
            PartKind::SaturatingSum => vec![
                format!("({least} + max({x}, {zero}))"),
                format!("({greatest} + min({x}, {zero}))"),
                format!("({least} - min({x}, {zero}))"),
            ],
            PartKind::SaturatingProduct => {
                let turned = format!("select({GREW}u, {TURNED}u, {x} == -{one})");
                let over = format!("select(0u, {OVER}u, {x} == {least})");
                vec![x.to_string(), format!("(select({turned}, 0u, ({x} == {one}) | ({x} == {zero})) | {over})")]
            }
        }
    }

    /// Statements that extend the part in the variables `part` by the part `earlier`, which comes before it.
    pub(super) fn compose(&self, functions: &mut Functions, part: &[String], earlier: &[String]) -> Vec<String> {
        match self.part {
            PartKind::Folded => vec![format!("{} = {};", part[0], self.fold.pair(functions, 1, &earlier[0], &part[0]))],
            PartKind::FloatProduct => {
                let product = self.float_product(functions, &earlier[0], part);
                vec![format!("{} = {product};", part[0]), format!("{} |= {};", part[1], earlier[1])]
            }
            PartKind::SaturatingSum => {
                let (low, high, from) = (&part[0], &part[1], &part[2]);
                vec![
                    "{".to_string(),
                    format!("    let least = {};", self.clamped_sum(&earlier[0], part)),
                    format!("    let greatest = {};", self.clamped_sum(&earlier[1], part)),
                    // The `x` at which the earlier part reaches the value from which this one rises.
                    format!("    let rises = {} + ({from} - {});", earlier[2], earlier[0]),
                    format!("    {from} = select({}, rises, {} < {from});", earlier[2], earlier[0]),
                    format!("    {low} = least;"),
                    format!("    {high} = greatest;"),
                    "}".to_string(),
                ]
            }
            PartKind::SaturatingProduct => {
                let mut lines = vec!["{".to_string()];
                lines.extend(self.clamped_product(functions, &earlier[0], &earlier[1], part));
                lines.push(format!("    {} = product;", part[0]));
                lines.push(format!(
                    "    {0} = select(0u, {OVER}u, over) | tail | (({0} | {1}) & {GREW}u);",
                    part[1], earlier[1]
                ));
                lines.push("}".to_string());
                lines
            }
        }
    }

    /// Statements that set the variable `to` to the running value after the part, given the value `before` it.
    pub(super) fn apply(&self, functions: &mut Functions, to: &str, before: &str, part: &[String]) -> Vec<String> {
        match self.part {
            PartKind::Folded => vec![format!("{to} = {};", self.fold.pair(functions, 1, before, &part[0]))],
            PartKind::FloatProduct => vec![format!("{to} = {};", self.float_product(functions, before, part))],
            PartKind::SaturatingSum => vec![format!("{to} = {};", self.clamped_sum(before, part))],
            PartKind::SaturatingProduct => {
                let mut lines = vec!["{".to_string()];
                lines.extend(self.clamped_product(functions, before, "0u", part));
                lines.push(format!("    {to} = product;"));
                lines.push("}".to_string());
                lines
            }
        }
    }

    /// The product of `before` and the part. Zero stays zero if all numbers of the part are finite, even if its own
    /// product is not.
    fn float_product(&self, functions: &mut Functions, before: &str, part: &[String]) -> String {
        let (dtype, zero) = (self.fold.argument, zero(self.fold.argument));
        let product = self.fold.pair(functions, 1, before, &part[0]);
        let stays = format!("(({before} == {zero}) & !{} & ({} == 0u))", is_finite(dtype, &part[0]), part[1]);
        let signed = format!("select({before}, -{before}, {} < {zero})", part[0]);
        format!("select({product}, {signed}, {stays})")
    }

    /// The value of a saturating sum after the part.
    fn clamped_sum(&self, before: &str, part: &[String]) -> String {
        let (low, high, from) = (&part[0], &part[1], &part[2]);
        let (signed, unsigned) = match self.fold.argument {
            DType::I64 => ("i64", "u64"),
            other => (register(other), "u32"),
        };
        let rise = format!("min(bitcast<{unsigned}>({before} - {from}), bitcast<{unsigned}>({high} - {low}))");
        format!("select({low}, {low} + bitcast<{signed}>({rise}), {before} > {from})")
    }

    /// Declares the value of a saturating product after the part as `product`, whether its magnitude is too great as
    /// `over`, and the mark [`TURNED`] as `tail`.
    fn clamped_product(&self, functions: &mut Functions, before: &str, marks: &str, part: &[String]) -> Vec<String> {
        let dtype = self.fold.argument;
        let (least, greatest, zero) = (extreme(dtype, false), extreme(dtype, true), zero(dtype));
        let (a, b) = (before, &part[0]);
        // The magnitude is computed as a negative number, because that of the least integer is no positive integer.
        let factors = [format!("min({a}, -{a})"), format!("max({b}, -{b})")];
        let magnitude = functions.apply(ElementOp::Mul, dtype, dtype, 1, &factors);
        vec![
            format!("    let magnitude = {magnitude};"),
            format!("    let marked = (({marks} | {}) & {OVER}u) != 0u;", part[1]),
            format!("    let left = marked | (magnitude == {least}) | ({b} == {least});"),
            format!("    let over = left & ({a} != {zero}) & ({b} != {zero});"),
            format!("    let tail = select({marks} | {0}, {0}, ({0} & {GREW}u) != 0u) & {TURNED}u;", part[1]),
            format!("    let below = select({least}, -{greatest}, tail != 0u);"),
            format!("    let bound = select({greatest}, below, ({a} < {zero}) != ({b} < {zero}));"),
            format!("    let product = select({a} * {b}, bound, over);"),
        ]
    }
}
