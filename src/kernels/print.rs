//! The printed form of the kernel IR, for dumps, snapshots and messages of the verifier.
//!
//! Each operand, each instruction and each store is one line: `%3 f32 element = add %1 %2`; `@1[%4] <- %3 if %5`.

use super::ir::{Access, Form, IndexCompare, IndexOp, InstOp, Kernel, Level, Lines, Operand, Run, Store, Val};
use crate::graph::Dist;
use std::fmt;

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Uniform => "uniform",
            Level::Outer => "outer",
            Level::Element => "element",
            Level::Reduced => "reduced",
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Map => "map",
            Form::Reduce { inner_fast: true } => "reduce inner_fast",
            Form::Reduce { inner_fast: false } => "reduce",
            Form::Scan { inner_fast: true } => "scan inner_fast",
            Form::Scan { inner_fast: false } => "scan",
            Form::Line(Lines { workgroup, rounds, in_fours }) => {
                let groups = if *in_fours { "groups of four" } else { "elements" };
                return write!(f, "line in {rounds} rounds of {workgroup} invocations, {groups}");
            }
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Run::Same => f.write_str("same"),
            Run::Flat => f.write_str("flat"),
            Run::Across { stride, extent } => write!(f, "across param {stride} by param {extent}"),
            Run::Any => f.write_str("any"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::ReadWrite => "read_write",
        };
        write!(f, "{} {access}", self.dtype)?;
        if self.tiled {
            f.write_str(" tiled")?;
        }
        if self.segments != 1 {
            write!(f, " segments {}", self.segments)?;
        }
        Ok(())
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.operand)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        write!(f, " <- {}", self.value)?;
        guard(f, self.guard)
    }
}

impl fmt::Display for InstOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstOp::Param(slot) => write!(f, "param {slot}"),
            InstOp::Flat => f.write_str("flat"),
            InstOp::Outer => f.write_str("outer"),
            InstOp::Inner => f.write_str("inner"),
            InstOp::Index(op, a, b) => write!(f, "{a} {} {b}", index_sign(*op)),
            InstOp::Compare(op, a, b) => write!(f, "{a} {} {b}", compare_sign(*op)),
            InstOp::Load { operand, index, run, guard: condition } => {
                write!(f, "load @{operand}[{index}] {run}")?;
                guard(f, *condition)
            }
            InstOp::Apply(op, args) => {
                f.write_str(op.name())?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            InstOp::Check { index, extent, site, guard: condition } => {
                write!(f, "check {index} below {extent} site param {site}")?;
                guard(f, *condition)
            }
            InstOp::Require { condition, site, guard: asked } => {
                write!(f, "require {condition} site param {site}")?;
                guard(f, *asked)
            }
            InstOp::Random { dist, key, element, run, params } => {
                let name = match dist {
                    Dist::Uniform => "uniform",
                    Dist::Normal => "normal",
                    Dist::Integer => "integer",
                    Dist::Wide => "wide integer",
                    Dist::Exponential => "exponential",
                    Dist::Bernoulli => "bernoulli",
                    Dist::Gamma => "gamma",
                    Dist::LogGamma => "log gamma",
                    Dist::Poisson => "poisson",
                    Dist::Binomial => "binomial",
                };
                write!(f, "random {name} key param {key} element {element} {run}")?;
                match &params[..] {
                    [low, span] if *dist == Dist::Integer => write!(f, " low {low} span {span}"),
                    [low, last] if *dist == Dist::Wide => write!(f, " low {low} last {last}"),
                    params => params.iter().try_for_each(|param| write!(f, " of {param}")),
                }
            }
            InstOp::Reduce { monoid, args } => {
                write!(f, "reduce {monoid:?}")?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            InstOp::Project(of, number) => write!(f, "{of}.{number}"),
            InstOp::Scan { monoid, arg } => write!(f, "scan {monoid:?} {arg}"),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} width {} params {}", self.form, self.width(), self.params)?;
        if let Some(scratch) = self.scratch {
            write!(f, " scratch @{scratch}")?;
        }
        if self.faults {
            f.write_str(" faults")?;
        }
        writeln!(f)?;
        for (number, operand) in self.operands.iter().enumerate() {
            writeln!(f, "  @{number} {operand}")?;
        }
        for (number, inst) in self.insts.iter().enumerate() {
            writeln!(f, "  %{number} {} {} = {}", inst.dtype, inst.level, inst.op)?;
        }
        self.stores.iter().try_for_each(|store| writeln!(f, "  {store}"))?;
        let Some(rolled) = &self.rolled else { return Ok(()) };
        writeln!(f, "  turns param {} rows param {}", rolled.turns, rolled.rows)?;
        rolled.carries.iter().try_for_each(|carry| writeln!(f, "  {} <- {} in the next turn", carry.here, carry.next))
    }
}

fn guard(f: &mut fmt::Formatter<'_>, condition: Option<Val>) -> fmt::Result {
    match condition {
        Some(condition) => write!(f, " if {condition}"),
        None => Ok(()),
    }
}

fn index_sign(op: IndexOp) -> &'static str {
    match op {
        IndexOp::Add => "+",
        IndexOp::Sub => "-",
        IndexOp::Mul => "*",
        IndexOp::Div => "/",
        IndexOp::Rem => "%",
        IndexOp::Wrap => "wrap",
    }
}

fn compare_sign(op: IndexCompare) -> &'static str {
    match op {
        IndexCompare::Less => "<",
        IndexCompare::Equal => "==",
        IndexCompare::SignedLessEqual => "<=s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, ElementOp};
    use crate::kernels::ir::{Inst, Monoid};
    use expect_test::expect;
    use smallvec::smallvec;

    #[test]
    fn a_masked_sum_prints_one_line_for_each_part() {
        let inst = |op, dtype, level| Inst { op, dtype, level };
        let operand = |dtype, access, segments| Operand { dtype, access, tiled: false, segments };
        let kernel = Kernel {
            form: Form::Reduce { inner_fast: true },
            operands: vec![
                operand(DType::F32, Access::Read, 2),
                operand(DType::F32, Access::Write, 1),
                operand(DType::U32, Access::Write, 1),
            ],
            scratch: Some(2),
            faults: false,
            params: 17,
            insts: vec![
                inst(InstOp::Inner, DType::U32, Level::Element),
                inst(InstOp::Param(16), DType::U32, Level::Uniform),
                inst(InstOp::Compare(IndexCompare::Less, Val(0), Val(1)), DType::Bool, Level::Element),
                inst(
                    InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: Some(Val(2)) },
                    DType::F32,
                    Level::Element,
                ),
                inst(InstOp::Apply(ElementOp::Mul, smallvec![Val(3), Val(3)]), DType::F32, Level::Element),
                inst(InstOp::Reduce { monoid: Monoid::Sum, args: smallvec![Val(4)] }, DType::F32, Level::Reduced),
            ],
            stores: vec![Store { operand: 1, index: None, value: Val(5), guard: None }],
            rolled: None,
        };
        expect![[r#"
            kernel reduce inner_fast width 4 params 17 scratch @2
              @0 f32 read segments 2
              @1 f32 write
              @2 u32 write
              %0 u32 element = inner
              %1 u32 uniform = param 16
              %2 bool element = %0 < %1
              %3 f32 element = load @0[%0] flat if %2
              %4 f32 element = mul %3 %3
              %5 f32 reduced = reduce Sum %4
              @1 <- %5
        "#]]
        .assert_eq(&kernel.to_string());
    }
}
