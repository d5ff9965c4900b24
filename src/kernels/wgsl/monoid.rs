//! WGSL of the monoids: identity, update by an element and merge of two partial results.
//!
//! Must hold: the text depends on the monoid, the dtype and the width alone, so that equal kernels fold equally.

use super::types::{extreme, is_nan, lanes, nan, one, register, splat, typed, zero};
use crate::graph::{DType, ElementOp};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::ir::Monoid;
use smallvec::SmallVec;

/// A monoid over values of one dtype.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) monoid: Monoid,
    pub(super) argument: DType,
    pub(super) components: SmallVec<[DType; 3]>,
}

/// Greatest or least.
fn seeks_greatest(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::MaxInclude | Monoid::MaxOmit | Monoid::ArgMaxOmit | Monoid::ArgMaxInclude)
}

fn omits_nan(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::MinOmit | Monoid::MaxOmit | Monoid::ArgMinOmit | Monoid::ArgMaxOmit)
}

impl Fold {
    pub(super) fn new(monoid: Monoid, argument: DType) -> Fold {
        Fold { monoid, argument, components: monoid.components(argument) }
    }

    /// The value of nothing, per component, as a scalar.
    pub(super) fn identity(&self, component: usize) -> &'static str {
        let dtype = self.argument;
        match self.monoid {
            Monoid::Sum | Monoid::Welford | Monoid::WelfordWhere | Monoid::ScaledSquares => zero(dtype),
            Monoid::Prod => one(dtype),
            Monoid::Any => "false",
            Monoid::All => "true",
            Monoid::MinInclude | Monoid::MaxInclude => extreme(dtype, !seeks_greatest(self.monoid)),
            Monoid::MinOmit | Monoid::MaxOmit if dtype.is_float() => nan(dtype),
            Monoid::MinOmit | Monoid::MaxOmit => extreme(dtype, !seeks_greatest(self.monoid)),
            Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => {
                if component == 1 {
                    "0xffffffffu"
                } else if omits_nan(self.monoid) && dtype.is_float() {
                    nan(dtype)
                } else {
                    extreme(dtype, !seeks_greatest(self.monoid))
                }
            }
        }
    }

    /// Statements that fold `args` (of `width` lanes) into the variables `acc`, in the lanes where `mask` holds.
    pub(super) fn update(
        &self,
        functions: &mut Functions,
        width: u32,
        acc: &[String],
        args: &[String],
        mask: Option<&str>,
    ) -> Vec<String> {
        match self.monoid {
            Monoid::Welford => self.welford(width, acc, &args[0], mask),
            Monoid::WelfordWhere => {
                let mask = mask.map_or(args[1].clone(), |mask| format!("({mask} & {})", args[1]));
                self.welford(width, acc, &args[0], Some(&mask))
            }
            Monoid::ScaledSquares => {
                let one = splat(register(self.argument), width, one(self.argument));
                let squares = [format!("abs({})", args[0]), one];
                self.scaled(width, acc, &squares, mask)
            }
            Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => {
                self.position(width, acc, args, mask)
            }
            _ => {
                let next = self.pair(functions, width, &acc[0], &args[0]);
                vec![assign(&acc[0], &next, mask)]
            }
        }
    }

    /// Statements that fold the scalar partial result `other` into the scalar variables `acc`.
    pub(super) fn merge(&self, functions: &mut Functions, acc: &[String], other: &[String]) -> Vec<String> {
        match self.monoid {
            Monoid::Welford | Monoid::WelfordWhere => self.chan(acc, other),
            Monoid::ScaledSquares => self.scaled(1, acc, other, None),
            _ => self.update(functions, 1, acc, other, None),
        }
    }

    /// The fold of two values of a monoid with one component.
    pub(super) fn pair(&self, functions: &mut Functions, width: u32, a: &str, b: &str) -> String {
        let dtype = self.argument;
        let mut apply = |op| functions.apply(op, dtype, dtype, width, &[a.to_string(), b.to_string()]);
        match self.monoid {
            Monoid::Sum => apply(ElementOp::Add),
            Monoid::Prod => apply(ElementOp::Mul),
            Monoid::Any => format!("({a} | {b})"),
            Monoid::All => format!("({a} & {b})"),
            Monoid::MinInclude | Monoid::MinOmit if dtype == DType::Bool => format!("({a} & {b})"),
            Monoid::MaxInclude | Monoid::MaxOmit if dtype == DType::Bool => format!("({a} | {b})"),
            Monoid::MinOmit => apply(ElementOp::Min),
            Monoid::MaxOmit => apply(ElementOp::Max),
            Monoid::MinInclude | Monoid::MaxInclude => {
                let least = apply(if seeks_greatest(self.monoid) { ElementOp::Max } else { ElementOp::Min });
                if dtype.is_float() {
                    let b_wins = format!("select({least}, {b}, {})", is_nan(dtype, width, b));
                    format!("select({b_wins}, {a}, {})", is_nan(dtype, width, a))
                } else {
                    least
                }
            }
            Monoid::ArgMinOmit
            | Monoid::ArgMaxOmit
            | Monoid::ArgMinInclude
            | Monoid::ArgMaxInclude
            | Monoid::Welford
            | Monoid::WelfordWhere
            | Monoid::ScaledSquares => unreachable!("IR-5: {:?} has several components", self.monoid),
        }
    }

    /// Value and position: the better value wins, of equal ones the lesser position.
    fn position(&self, width: u32, acc: &[String], args: &[String], mask: Option<&str>) -> Vec<String> {
        let (value, place) = (&acc[0], &acc[1]);
        let mut lines = vec!["{".to_string(), format!("    let x = {};", args[0]), format!("    let p = {};", args[1])];
        let sign = if seeks_greatest(self.monoid) { ">" } else { "<" };
        if self.argument.is_float() {
            lines.push(format!("    let x_nan = {};", is_nan(self.argument, width, "x")));
            lines.push(format!("    let a_nan = {};", is_nan(self.argument, width, value)));
            let loses = if omits_nan(self.monoid) { "a_nan & !x_nan" } else { "x_nan & !a_nan" };
            lines.push(format!("    let better = ((x {sign} {value}) & !x_nan & !a_nan) | ({loses});"));
            lines.push(format!("    let tie = ((x == {value}) & !x_nan & !a_nan) | (x_nan & a_nan);"));
        } else if self.argument == DType::Bool {
            let better = if sign == ">" { format!("x & !{value}") } else { format!("!x & {value}") };
            lines.push(format!("    let better = {better};"));
            lines.push(format!("    let tie = (x & {value}) | (!x & !{value});"));
        } else {
            lines.push(format!("    let better = x {sign} {value};"));
            lines.push(format!("    let tie = x == {value};"));
        }
        let and_mask = mask.map_or(String::new(), |mask| format!(" & {mask}"));
        lines.push(format!("    let wins = (better | (tie & (p < {place}))){and_mask};"));
        lines.push(format!("    {value} = select({value}, x, wins);"));
        lines.push(format!("    {place} = select({place}, p, wins);"));
        lines.push("}".to_string());
        lines
    }

    /// Welford's update of (count, mean, squared deviations).
    fn welford(&self, width: u32, acc: &[String], arg: &str, mask: Option<&str>) -> Vec<String> {
        let one = splat(register(self.argument), width, one(self.argument));
        let (count, mean, squares) = (&acc[0], &acc[1], &acc[2]);
        vec![
            "{".to_string(),
            format!("    let x = {arg};"),
            format!("    let n = {count} + {one};"),
            format!("    let d = x - {mean};"),
            format!("    let m = {mean} + d / n;"),
            format!("    let s = {squares} + d * (x - m);"),
            format!("    {}", assign(count, "n", mask)),
            format!("    {}", assign(mean, "m", mask)),
            format!("    {}", assign(squares, "s", mask)),
            "}".to_string(),
        ]
    }

    /// Chan, Golub and LeVeque's merge of (count, mean, squared deviations).
    fn chan(&self, acc: &[String], other: &[String]) -> Vec<String> {
        let ty = register(self.argument);
        let zero = zero(self.argument);
        let (count, mean, squares) = (&acc[0], &acc[1], &acc[2]);
        vec![
            format!("if ({count} == {zero}) {{"),
            format!("    {count} = {}; {mean} = {}; {squares} = {};", other[0], other[1], other[2]),
            format!("}} else if ({} > {zero}) {{", other[0]),
            format!("    let n: {ty} = {count} + {};", other[0]),
            format!("    let d = {} - {mean};", other[1]),
            format!("    let share = {} / n;", other[0]),
            format!("    {mean} = {mean} + d * share;"),
            format!("    {squares} = {squares} + {} + d * d * ({count} * share);", other[2]),
            format!("    {count} = n;"),
            "}".to_string(),
        ]
    }

    /// Folds `scale^2 * sum` of `other` into `acc` by dividing the smaller scale by the greater. NaN stays, and
    /// infinity is a scale whose smaller partners count as zero.
    fn scaled(&self, width: u32, acc: &[String], other: &[String], mask: Option<&str>) -> Vec<String> {
        let dtype = self.argument;
        let of = |scalar: &str| splat(register(dtype), width, scalar);
        let (zeros, infinity) = (of(zero(dtype)), of(extreme(dtype, true)));
        let (scale, sum) = (&acc[0], &acc[1]);
        let ty = typed(dtype, width);
        vec![
            "{".to_string(),
            format!("    let x: {ty} = {};", other[0]),
            format!("    let y: {ty} = {};", other[1]),
            format!("    let x_nan = {};", is_nan(dtype, width, "x")),
            format!("    let a_nan = {};", is_nan(dtype, width, scale)),
            format!("    let up = x > {scale};"),
            format!("    let high = select({scale}, x, up);"),
            format!("    let low = select(x, {scale}, up);"),
            format!("    let ratio = select(low / high, {zeros}, (low == {zeros}) | (high == {infinity}));"),
            format!("    let square = ratio * ratio;"),
            format!("    let z = select({sum} + y * square, y + {sum} * square, up);"),
            // Equal scales, infinite ones among them, add without a division; nothing (a scale of 0) adds nothing.
            format!("    let level = select(select(z, {sum} + y, x == {scale}), {sum}, x == {zeros});"),
            format!("    let s = select(select(high, {scale}, a_nan), x, x_nan & !a_nan);"),
            format!("    let q = select(level, {}, x_nan | a_nan);", of(one(dtype))),
            format!("    {}", assign(scale, "s", mask)),
            format!("    {}", assign(sum, "q", mask)),
            "}".to_string(),
        ]
    }

    /// Statements that fold the lanes of the vector variables `from` into the scalar variables `into`, in the
    /// tree `(x + y) + (z + w)`.
    pub(super) fn fold_lanes(
        &self,
        functions: &mut Functions,
        width: u32,
        into: &[String],
        from: &[String],
    ) -> Vec<String> {
        let lane = |lane: usize| -> Vec<String> { from.iter().map(|v| lanes(v, width)[lane].clone()).collect() };
        let mut lines = Vec::new();
        let set = |names: &[String], values: &[String], lines: &mut Vec<String>| {
            lines.extend(names.iter().zip(values).map(|(name, value)| format!("{name} = {value};")));
        };
        set(into, &lane(0), &mut lines);
        if width == 1 {
            return lines;
        }
        lines.extend(self.merge(functions, into, &lane(1)));
        lines.push("{".to_string());
        let pair: Vec<String> = (0..from.len()).map(|component| format!("pair{component}")).collect();
        for (component, value) in lane(2).iter().enumerate() {
            lines.push(format!("    var pair{component} = {value};"));
        }
        lines.extend(self.merge(functions, &pair, &lane(3)).into_iter().map(|line| format!("    {line}")));
        lines.extend(self.merge(functions, into, &pair).into_iter().map(|line| format!("    {line}")));
        lines.push("}".to_string());
        lines
    }
}

fn assign(to: &str, value: &str, mask: Option<&str>) -> String {
    match mask {
        Some(mask) => format!("{to} = select({to}, {value}, {mask});"),
        None => format!("{to} = {value};"),
    }
}
