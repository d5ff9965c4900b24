//! Writes the monoids in WGSL: identity, update by an element, and merge of two partial results.
//!
//! Sums of floats, and folds that consist of them, are added up in levels: a lane adds eight elements, then eight of
//! those sums, and so on, so that no element passes through many additions, however long a lane is. The bound holds
//! even if a driver's compiler contracts operations, or rearranges the additions of a level.
//!
//! Must hold: the text depends on the monoid, the dtype and the width alone, so that equal kernels fold equally.

use super::types::{extreme, is_nan, is_not_finite, lanes, nan, one, register, splat, typed, zero};
use crate::graph::{DType, ElementOp};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::ir::{Monoid, SquareLimits};
use smallvec::SmallVec;

/// A monoid over values of one dtype.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) monoid: Monoid,
    pub(super) argument: DType,
    pub(super) components: SmallVec<[DType; 4]>,
}

/// Whether the monoid seeks the greatest value, not the least.
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

    /// The identity of a component, as a scalar.
    pub(super) fn identity(&self, component: usize) -> &'static str {
        let dtype = self.argument;
        match self.monoid {
            Monoid::Sum | Monoid::Moments | Monoid::MomentsWhere | Monoid::Squares => zero(dtype),
            Monoid::ExpSum if component == 0 => extreme(dtype, false),
            Monoid::ExpSum => zero(dtype),
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
            Monoid::Moments => self.moments(width, acc, &args[0], mask),
            Monoid::MomentsWhere => {
                let mask = mask.map_or(args[1].clone(), |mask| format!("({mask} & {})", args[1]));
                self.moments(width, acc, &args[0], Some(&mask))
            }
            Monoid::Squares => self.squares(width, acc, &args[0], mask),
            Monoid::ExpSum => {
                let one = splat(register(self.argument), width, one(self.argument));
                self.exp_sum(functions, width, acc, &[args[0].clone(), one], mask)
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
        self.merge_lanes(functions, 1, acc, other)
    }

    /// As [`Fold::merge`], lane by lane.
    pub(super) fn merge_lanes(
        &self,
        functions: &mut Functions,
        width: u32,
        acc: &[String],
        other: &[String],
    ) -> Vec<String> {
        match self.monoid {
            Monoid::Moments | Monoid::MomentsWhere => self.chan(width, acc, other),
            Monoid::Squares => acc.iter().zip(other).map(|(a, b)| format!("{a} = {a} + {b};")).collect(),
            Monoid::ExpSum => self.exp_sum(functions, width, acc, other, None),
            _ => self.update(functions, width, acc, other, None),
        }
    }

    /// For each level, log2 of how many of its partial results make one of the next level. One more level takes all
    /// results of the last of these. A lane of width 4 takes up to 4,096 elements, one of width 1 up to 65,535.
    fn level_bits(&self, width: u32) -> &'static [u32] {
        match self.monoid {
            Monoid::Sum if !self.argument.is_float() => &[],
            Monoid::Sum | Monoid::Squares | Monoid::ExpSum if width == 1 => &[3, 3, 3, 3, 3],
            Monoid::Sum | Monoid::Squares | Monoid::ExpSum => &[3, 3, 3],
            Monoid::Moments | Monoid::MomentsWhere if width == 1 => &[3, 3, 3, 3],
            Monoid::Moments | Monoid::MomentsWhere => &[3, 4],
            Monoid::Prod
            | Monoid::MinInclude
            | Monoid::MinOmit
            | Monoid::MaxInclude
            | Monoid::MaxOmit
            | Monoid::ArgMinOmit
            | Monoid::ArgMaxOmit
            | Monoid::ArgMinInclude
            | Monoid::ArgMaxInclude
            | Monoid::Any
            | Monoid::All => &[],
        }
    }

    /// The number of levels. Each has its own set of variables in a lane.
    pub(super) fn levels(&self, width: u32) -> usize {
        self.level_bits(width).len() + 1
    }

    /// Statements after step number `count` of a lane, which folded `2^step_log2` elements into the first level of
    /// `levels`. They merge full levels into the next one.
    pub(super) fn climb(
        &self,
        functions: &mut Functions,
        width: u32,
        step_log2: u32,
        levels: &[Vec<String>],
    ) -> Vec<String> {
        let bits = self.level_bits(width);
        let mut lines = Vec::new();
        let mut shift = 0;
        for (level, pair) in levels.windows(2).enumerate() {
            shift += bits[level];
            let mask = (1u32 << (shift - step_log2)) - 1;
            lines.push(format!("if ((count & {mask}u) == {mask}u) {{"));
            if level == 0 {
                lines.extend(self.close(width, &pair[0]));
            }
            lines.extend(self.merge_lanes(functions, width, &pair[1], &pair[0]));
            for (component, (name, dtype)) in pair[0].iter().zip(&self.components).enumerate() {
                lines.push(format!("{name} = {};", splat(register(*dtype), width, self.identity(component))));
            }
        }
        lines.extend(bits.iter().map(|_| "}".to_string()));
        lines
    }

    /// Statements that fold all levels into the first, after a lane's last element.
    pub(super) fn gather_levels(&self, functions: &mut Functions, width: u32, levels: &[Vec<String>]) -> Vec<String> {
        let mut lines = self.close(width, &levels[0]);
        for level in &levels[1..] {
            lines.extend(self.merge_lanes(functions, width, &levels[0], level));
        }
        lines
    }

    /// Statements that turn variables into which elements were folded into a partial result: for moments, sums become
    /// means. Compilers assume that `x - x` is zero, also for an infinite `x`. So the squares are set to NaN if the
    /// bits of the mean are not those of a finite number.
    fn close(&self, width: u32, acc: &[String]) -> Vec<String> {
        if !self.monoid.is_moments() {
            return Vec::new();
        }
        let of = |scalar: &str| splat(register(self.argument), width, scalar);
        let (zeros, ones) = (of(zero(self.argument)), of(one(self.argument)));
        let (count, base, off, squares) = (&acc[0], &acc[1], &acc[2], &acc[3]);
        let lost = is_not_finite(self.argument, width, "mean");
        vec![
            "{".to_string(),
            format!("    let m = {off} / max({count}, {ones});"),
            format!("    let mean = {base} + m;"),
            format!("    let s = {squares} - {off} * m;"),
            format!("    {squares} = select(select(s, {zeros}, s < {zeros}), {}, {lost});", of(nan(self.argument))),
            format!("    {off} = m;"),
            "}".to_string(),
        ]
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
            | Monoid::Moments
            | Monoid::MomentsWhere
            | Monoid::Squares
            | Monoid::ExpSum => unreachable!("IR-5: {:?} has several components", self.monoid),
        }
    }

    /// Folds a value and its position: the better value wins, and of equal values the one with the lesser position.
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

    /// Folds an element into (count, base, sum of `x - base`, sum of its squares). The base is the first element. Few
    /// elements are folded before [`Fold::close`], so that an outlier as base costs no digits.
    fn moments(&self, width: u32, acc: &[String], arg: &str, mask: Option<&str>) -> Vec<String> {
        let of = |scalar: &str| splat(register(self.argument), width, scalar);
        let (zeros, ones) = (of(zero(self.argument)), of(one(self.argument)));
        let (count, base, sum, squares) = (&acc[0], &acc[1], &acc[2], &acc[3]);
        let masked = |value: &str| match mask {
            Some(mask) => format!("select({zeros}, {value}, {mask})"),
            None => value.to_string(),
        };
        let first = mask.map_or(format!("{count} == {zeros}"), |mask| format!("({count} == {zeros}) & {mask}"));
        vec![
            "{".to_string(),
            format!("    let x = {arg};"),
            format!("    let k = select({base}, x, {first});"),
            format!("    let d = {};", masked("x - k")),
            format!("    {base} = k;"),
            format!("    {count} = {count} + {};", masked(&ones)),
            format!("    {sum} = {sum} + d;"),
            format!("    {squares} = {squares} + d * d;"),
            "}".to_string(),
        ]
    }

    /// Chan, Golub and LeVeque's merge of (count, base, mean minus base, squared deviations). The result has the base
    /// that is nearer to its mean.
    fn chan(&self, width: u32, acc: &[String], other: &[String]) -> Vec<String> {
        let of = |scalar: &str| splat(register(self.argument), width, scalar);
        let (zeros, ones) = (of(zero(self.argument)), of(one(self.argument)));
        let (count, base, off, squares) = (&acc[0], &acc[1], &acc[2], &acc[3]);
        let (counts, bases, offs, others) = (&other[0], &other[1], &other[2], &other[3]);
        vec![
            "{".to_string(),
            format!("    let n = {count} + {counts};"),
            format!("    let share = {counts} / max(n, {ones});"),
            format!("    let apart = ({bases} - {base}) + ({offs} - {off});"),
            format!("    let nearer = abs({offs}) < abs({off});"),
            format!("    let k = select({base}, {bases}, nearer);"),
            format!("    let m = select({off} + apart * share, {offs} - apart * ({ones} - share), nearer);"),
            format!("    let s = {squares} + {others} + apart * apart * ({count} * share);"),
            format!("    let first = {count} == {zeros};"),
            format!("    let none = {counts} == {zeros};"),
            format!("    {base} = select(select(k, {bases}, first), {base}, none);"),
            format!("    {off} = select(select(m, {offs}, first), {off}, none);"),
            format!("    {squares} = select(select(s, {others}, first), {squares}, none);"),
            format!("    {count} = n;"),
            "}".to_string(),
        ]
    }

    /// Folds (value or greatest value, 1 or sum of `exp(value - greatest)`) into another such pair.
    fn exp_sum(
        &self,
        functions: &mut Functions,
        width: u32,
        acc: &[String],
        other: &[String],
        mask: Option<&str>,
    ) -> Vec<String> {
        let dtype = self.argument;
        let (greatest, sum) = (&acc[0], &acc[1]);
        let ones = splat(register(dtype), width, one(dtype));
        let scale = functions.apply(ElementOp::Exp, dtype, dtype, width, &["d".to_string()]);
        vec![
            "{".to_string(),
            format!("    let x = {};", other[0]),
            format!("    let later = {};", other[1]),
            format!("    let d = -abs({greatest} - x);"),
            // The difference of equal infinities would be NaN.
            format!("    let e = select({scale}, {ones}, {greatest} == x);"),
            format!("    let rises = x > {greatest};"),
            format!("    let s = select({sum} + later * e, {sum} * e + later, rises);"),
            format!(
                "    let y = select(s, {}, {});",
                splat(register(dtype), width, nan(dtype)),
                is_nan(dtype, width, "x")
            ),
            assign(greatest, &format!("select({greatest}, x, rises)"), mask),
            assign(sum, "y", mask),
            "}".to_string(),
        ]
    }

    /// Adds a square to the sum of small, middling or big ones.
    fn squares(&self, width: u32, acc: &[String], arg: &str, mask: Option<&str>) -> Vec<String> {
        let dtype = self.argument;
        let limits = SquareLimits::of(dtype);
        let of = |scalar: &str| splat(register(dtype), width, scalar);
        let power = |exponent: i32| match dtype {
            DType::F64 => of(&format!("{:e}lf", 2f64.powi(exponent))),
            _ => of(&format!("{:e}f", 2f32.powi(exponent))),
        };
        let zeros = of(zero(dtype));
        let masked = |on: &str| mask.map_or(on.to_string(), |mask| format!("{on} & {mask}"));
        vec![
            "{".to_string(),
            format!("    let x: {} = abs({arg});", typed(dtype, width)),
            format!("    let small = x < {};", power(limits.small_below)),
            format!("    let big = x >= {};", power(limits.big_from)),
            format!("    let up = x * {};", power(limits.scale)),
            format!("    let down = x * {};", power(-limits.scale)),
            format!("    {0} = {0} + select({zeros}, up * up, {1});", acc[0], masked("small")),
            format!("    {0} = {0} + select({zeros}, x * x, {1});", acc[1], masked("!(small | big)")),
            format!("    {0} = {0} + select({zeros}, down * down, {1});", acc[2], masked("big")),
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
