//! The verifier of the kernel IR. It checks what the WGSL writer and the host evaluator rely on.
//!
//! In: a kernel. Out: the first invariant (IR-1 to IR-8 of `kernels::ir`) that it breaks, with the instruction.

use super::ir::{Access, Form, HEADER_WORDS, Inst, InstOp, Kernel, Level, Monoid, Run, Store, Val};
use crate::graph::table::DTypeRule;
use crate::graph::{DType, Dist, ElementOp};

/// Checks IR-1 to IR-8.
///
/// # Errors
/// The ID of the first broken invariant, what breaks it, and the printed kernel.
pub fn verify(kernel: &Kernel) -> Result<(), String> {
    let check = || -> Result<(), String> {
        operands(kernel)?;
        for number in 0..kernel.insts.len() {
            instruction(kernel, number).map_err(|error| format!("{error} at %{number}"))?;
        }
        for (number, store) in kernel.stores.iter().enumerate() {
            self::store(kernel, store).map_err(|error| format!("{error} at store {number}"))?;
        }
        tiled(kernel)?;
        rolled(kernel)
    };
    check().map_err(|error| format!("{error}\n{kernel}"))
}

/// The level of a value that depends on values of both levels. `None` if the form allows no such value.
pub fn join(form: Form, a: Level, b: Level) -> Option<Level> {
    match (a, b) {
        (Level::Element, Level::Reduced) | (Level::Reduced, Level::Element) if matches!(form, Form::Line(_)) => {
            Some(Level::Element)
        }
        (Level::Element, Level::Reduced) | (Level::Reduced, Level::Element) => None,
        _ => Some(a.max(b)),
    }
}

fn need(condition: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(error()) }
}

fn operands(kernel: &Kernel) -> Result<(), String> {
    for (number, operand) in kernel.operands.iter().enumerate() {
        need(operand.segments >= 1, || format!("IR-4: operand @{number} has no segment"))?;
        need(!operand.tiled || operand.segments == 1, || {
            format!("IR-6: tiled operand @{number} has several segments")
        })?;
    }
    let Some(scratch) = kernel.scratch else { return Ok(()) };
    need(matches!(kernel.form, Form::Reduce { .. }) || kernel.scans_in_phases(), || {
        "IR-5: scratch outside of a reduction, or of scans in phases".to_string()
    })?;
    let operand = kernel.operands.get(scratch as usize).ok_or("IR-4: scratch names no operand")?;
    need(
        operand.dtype == DType::U32 && operand.access == Access::Write && operand.segments == 1 && !operand.tiled,
        || format!("IR-4: scratch @{scratch} is not one written buffer of u32"),
    )
}

/// The level of an instruction that is appended to a kernel, for tests that write kernels.
///
/// # Panics
/// Panics if the arguments have levels that do not join.
#[cfg(test)]
pub fn level_after(kernel: &Kernel, op: &InstOp) -> Level {
    match op {
        InstOp::Flat | InstOp::Inner | InstOp::Scan { .. } => Level::Element,
        InstOp::Outer => Level::Outer,
        InstOp::Reduce { .. } => Level::Reduced,
        _ => arguments(op)
            .iter()
            .fold(Level::Uniform, |level, arg| join(kernel.form, level, kernel.inst(*arg).level).expect("levels join")),
    }
}

/// The values that an instruction uses.
pub fn arguments(op: &InstOp) -> Vec<Val> {
    match op {
        InstOp::Param(_) | InstOp::Flat | InstOp::Outer | InstOp::Inner => vec![],
        InstOp::Index(_, a, b) | InstOp::Compare(_, a, b) => vec![*a, *b],
        InstOp::Load { index, guard, .. } => [*index].into_iter().chain(*guard).collect(),
        InstOp::Apply(_, args) => args.to_vec(),
        InstOp::Check { index, extent, guard, .. } => [*index, *extent].into_iter().chain(*guard).collect(),
        InstOp::Require { condition, guard, .. } => [*condition].into_iter().chain(*guard).collect(),
        InstOp::Random { element, params, .. } => [*element].into_iter().chain(params.iter().copied()).collect(),
        InstOp::Reduce { args, .. } => args.to_vec(),
        InstOp::Project(of, _) => vec![*of],
        InstOp::Scan { arg, .. } => vec![*arg],
    }
}

fn instruction(kernel: &Kernel, number: usize) -> Result<(), String> {
    let inst = &kernel.insts[number];
    let args = arguments(&inst.op);
    for arg in &args {
        need((arg.0 as usize) < number, || format!("IR-1: argument {arg} does not stand before"))?;
        has_value(kernel, *arg)?;
    }
    level(kernel, inst, &args)?;
    slots(kernel, inst)?;
    form(kernel, inst)?;
    dtype(kernel, inst)
}

/// IR-1: checks that a value is none of a `Require`.
fn has_value(kernel: &Kernel, val: Val) -> Result<(), String> {
    let has = !matches!(kernel.inst(val).op, InstOp::Require { .. });
    need(has, || format!("IR-1: {val} is a requirement, which has no value"))
}

/// IR-2 for instructions.
fn level(kernel: &Kernel, inst: &Inst, args: &[Val]) -> Result<(), String> {
    let mut joined = Level::Uniform;
    for arg in args {
        joined =
            join(kernel.form, joined, kernel.inst(*arg).level).ok_or("IR-2: an element value meets a reduced one")?;
    }
    let wanted = match inst.op {
        InstOp::Flat | InstOp::Inner => Level::Element,
        InstOp::Outer => Level::Outer,
        InstOp::Reduce { .. } => {
            let is_line = matches!(kernel.form, Form::Line(_));
            need(joined != Level::Reduced || is_line, || "IR-2: a fold of a reduced value".to_string())?;
            Level::Reduced
        }
        InstOp::Scan { .. } => Level::Element,
        _ => joined,
    };
    need(inst.level == wanted, || format!("IR-2: the level is {} but the arguments imply {wanted}", inst.level))
}

/// IR-3, and that only kernels with fault words check (IR-4), and that loads across fit the form (IR-5).
fn slots(kernel: &Kernel, inst: &Inst) -> Result<(), String> {
    let lies = |first: u32, words: u32| {
        need(first >= HEADER_WORDS && first + words <= kernel.params, || {
            format!("IR-3: parameter words {first}..{} are not in {HEADER_WORDS}..{}", first + words, kernel.params)
        })
    };
    match inst.op {
        InstOp::Param(slot) => lies(slot, if inst.dtype.is_wide() { 2 } else { 1 }),
        InstOp::Check { site, .. } | InstOp::Require { site, .. } => {
            need(kernel.faults, || "IR-4: a check without fault words".to_string())?;
            lies(site, 1)
        }
        InstOp::Random { key, .. } => lies(key, 5),
        InstOp::Load { run: Run::Across { stride, extent }, guard, .. } => {
            need(kernel.form == Form::Map && guard.is_none(), || "IR-5: such a load runs across a map".to_string())?;
            need(kernel.across() == Some((stride, extent)), || "IR-5: loads run across in two ways".to_string())?;
            lies(stride, 1).and(lies(extent, 1))
        }
        _ => Ok(()),
    }
}

/// IR-5: checks that the form has such an instruction.
fn form(kernel: &Kernel, inst: &Inst) -> Result<(), String> {
    let fits = match inst.op {
        InstOp::Flat => matches!(kernel.form, Form::Map | Form::Line(_)),
        InstOp::Outer | InstOp::Inner => kernel.form != Form::Map,
        InstOp::Reduce { .. } | InstOp::Project(..) => matches!(kernel.form, Form::Reduce { .. } | Form::Line(_)),
        InstOp::Scan { .. } => matches!(kernel.form, Form::Scan { .. }),
        InstOp::Load { index, run: Run::Flat, .. } if matches!(kernel.form, Form::Line(_)) => {
            matches!(kernel.inst(index).op, InstOp::Flat)
        }
        _ => true,
    };
    need(fits, || format!("IR-5: {} in a {} form", inst.op, kernel.form))
}

/// IR-4 for loads, and IR-7.
fn dtype(kernel: &Kernel, inst: &Inst) -> Result<(), String> {
    let of = |val: Val| kernel.inst(val).dtype;
    let is = |val: Val, dtype: DType| {
        need(of(val) == dtype, || format!("IR-7: {val} is {} where {dtype} is needed", of(val)))
    };
    let yields = |dtype: DType| need(inst.dtype == dtype, || format!("IR-7: yields {dtype}, says {}", inst.dtype));
    let guarded = |guard: Option<Val>| guard.map_or(Ok(()), |guard| is(guard, DType::Bool));
    match &inst.op {
        InstOp::Param(_) => Ok(()),
        InstOp::Flat | InstOp::Outer | InstOp::Inner => yields(DType::U32),
        InstOp::Index(_, a, b) => is(*a, DType::U32).and(is(*b, DType::U32)).and(yields(DType::U32)),
        InstOp::Compare(_, a, b) => is(*a, DType::U32).and(is(*b, DType::U32)).and(yields(DType::Bool)),
        InstOp::Load { operand, index, guard, .. } => {
            let from = kernel.operands.get(*operand as usize).ok_or("IR-4: a load of no operand")?;
            need(from.access != Access::Write, || format!("IR-4: a load of @{operand}, which is written only"))?;
            yields(from.dtype).and(is(*index, DType::U32)).and(guarded(*guard))
        }
        InstOp::Apply(op, args) => apply(*op, &args.iter().map(|arg| of(*arg)).collect::<Vec<_>>(), inst.dtype),
        InstOp::Check { index, extent, guard, .. } => {
            need(of(*index).is_integer(), || format!("IR-7: {} is no index type", of(*index)))?;
            is(*extent, DType::U32).and(yields(DType::U32)).and(guarded(*guard))
        }
        InstOp::Require { condition, guard, .. } => {
            is(*condition, DType::Bool).and(yields(DType::Bool)).and(guarded(*guard))
        }
        InstOp::Random { dist, element, params, .. } => {
            is(*element, DType::U32)?;
            random(kernel, *dist, params, inst.dtype)
        }
        InstOp::Reduce { monoid, args } => {
            let args: Vec<DType> = args.iter().map(|arg| of(*arg)).collect();
            fold(*monoid, &args)?;
            yields(args[0])
        }
        InstOp::Project(val, number) => {
            let InstOp::Reduce { monoid, args } = &kernel.inst(*val).op else {
                return Err(format!("IR-7: a component of {val}, which is no fold"));
            };
            let components = monoid.components(of(args[0]));
            let component = components.get(*number as usize).ok_or("IR-7: no such component")?;
            yields(*component)
        }
        InstOp::Scan { monoid, arg } => {
            use Monoid::*;
            need(matches!(monoid, Sum | Prod | MinInclude | MinOmit | MaxInclude | MaxOmit), || {
                format!("IR-5: {monoid:?} has no running form")
            })?;
            fold(*monoid, &[of(*arg)])?;
            yields(of(*arg))
        }
    }
}

/// IR-7 of random numbers.
fn random(kernel: &Kernel, dist: Dist, params: &[Val], output: DType) -> Result<(), String> {
    let of = |n: usize| kernel.inst(params[n]).dtype;
    let count = if dist.has_range() { 2 } else { dist.parameters() };
    need(params.len() == count, || format!("IR-7: {dist:?} takes {count} numbers, not {}", params.len()))?;
    match dist {
        Dist::Integer => need(output != DType::Bool && of(0) == output && of(1) == DType::U32, || {
            format!("IR-7: random integers as {output} from {} on, {} of them", of(0), of(1))
        }),
        Dist::Wide => need([output, of(0), of(1)].iter().all(|dtype| *dtype == DType::I64), || {
            format!("IR-7: wide random integers as {output}")
        }),
        Dist::Bernoulli => need(output == DType::Bool && of(0).is_float(), || {
            format!("IR-7: random truth values as {output} of {}", of(0))
        }),
        Dist::Uniform | Dist::Normal | Dist::Exponential => {
            need(output.is_float(), || format!("IR-7: random floats as {output}"))
        }
        Dist::Gamma | Dist::LogGamma | Dist::Poisson | Dist::Binomial => {
            let agree = output.is_float() && (0..count).all(|n| of(n) == output);
            need(agree, || format!("IR-7: {dist:?} as {output} of {}", of(0)))
        }
    }
}

/// The rule of an elementwise op: its arguments have one dtype (except for a mask), and its result has the same dtype
/// or is a bool.
fn apply(op: ElementOp, args: &[DType], output: DType) -> Result<(), String> {
    let (arity, rule) = (op.arity(), op.info().rule);
    need(args.len() == arity, || format!("IR-7: {} takes {arity} arguments, not {}", op.name(), args.len()))?;
    let computed = if rule == DTypeRule::Select {
        need(args[0] == DType::Bool, || format!("IR-7: a mask of {}", args[0]))?;
        &args[1..]
    } else {
        args
    };
    need(computed.iter().all(|dtype| *dtype == computed[0]), || format!("IR-7: {} of {computed:?}", op.name()))?;
    let wanted = match rule {
        DTypeRule::Arithmetic | DTypeRule::Real | DTypeRule::Select => computed[0],
        DTypeRule::Test | DTypeRule::Logic | DTypeRule::Comparison => DType::Bool,
        DTypeRule::Cast => output,
    };
    need(output == wanted, || format!("IR-7: {} yields {wanted}, says {output}", op.name()))
}

fn fold(monoid: Monoid, args: &[DType]) -> Result<(), String> {
    use Monoid::*;
    let (first, others) = args.split_first().ok_or_else(|| format!("IR-7: {monoid:?} of nothing"))?;
    let fits = match monoid {
        Sum | Prod => *first != DType::Bool && others.is_empty(),
        MinInclude | MinOmit | MaxInclude | MaxOmit => others.is_empty(),
        ArgMinOmit | ArgMaxOmit | ArgMinInclude | ArgMaxInclude => others == [DType::U32],
        Any | All => *first == DType::Bool && others.is_empty(),
        Moments | Squares | ExpSum => first.is_float() && others.is_empty(),
        MomentsWhere => first.is_float() && others == [DType::Bool],
    };
    need(fits, || format!("IR-7: {monoid:?} of {args:?}"))
}

/// IR-2 and IR-4 for stores.
fn store(kernel: &Kernel, store: &Store) -> Result<(), String> {
    for val in [Some(store.value), store.index, store.guard].into_iter().flatten() {
        need((val.0 as usize) < kernel.insts.len(), || format!("IR-1: {val} does not exist"))?;
        has_value(kernel, val)?;
    }
    let to = kernel.operands.get(store.operand as usize).ok_or("IR-4: a store to no operand")?;
    need(to.access != Access::Read, || format!("IR-4: a store to @{}, which is read only", store.operand))?;
    need(kernel.scratch != Some(store.operand), || "IR-4: a store to scratch".to_string())?;
    let value = kernel.inst(store.value);
    need(value.dtype == to.dtype, || format!("IR-7: {} stored as {}", value.dtype, to.dtype))?;
    let mut level = value.level;
    for val in [store.index, store.guard].into_iter().flatten() {
        level = join(kernel.form, level, kernel.inst(val).level).ok_or("IR-2: an element value meets a reduced one")?;
    }
    if let Some(index) = store.index {
        need(kernel.inst(index).dtype == DType::U32, || "IR-7: an index that is not u32".to_string())?;
    }
    if let Some(guard) = store.guard {
        need(kernel.inst(guard).dtype == DType::Bool, || "IR-7: a guard that is not bool".to_string())?;
    }
    match kernel.form {
        Form::Map => {
            need(matches!(level, Level::Uniform | Level::Element), || format!("IR-2: a {level} store in a map"))
        }
        Form::Line(_) => Ok(()),
        Form::Reduce { .. } | Form::Scan { .. } => need(store.index.is_some() || level != Level::Element, || {
            format!("IR-2: an element store without an index in a {} form", kernel.form)
        }),
    }
}

/// IR-6: checks that tiled operands are accessed at the flat index only.
fn tiled(kernel: &Kernel) -> Result<(), String> {
    let is_tiled = |operand: u16| kernel.operands[operand as usize].tiled;
    for (number, inst) in kernel.insts.iter().enumerate() {
        if let InstOp::Load { operand, run, .. } = inst.op {
            need(!is_tiled(operand) || run == Run::Flat, || {
                format!("IR-6: @{operand} is tiled but loaded elsewhere at %{number}")
            })?;
        }
    }
    for (number, store) in kernel.stores.iter().enumerate() {
        let flat =
            store.index.is_none_or(|index| kernel.form != Form::Map || matches!(kernel.inst(index).op, InstOp::Flat));
        need(!is_tiled(store.operand) || flat, || {
            format!("IR-6: @{} is tiled but written elsewhere at store {number}", store.operand)
        })?;
    }
    Ok(())
}

/// IR-8 (`rolled.rs`).
fn rolled(kernel: &Kernel) -> Result<(), String> {
    let Some(rolled) = &kernel.rolled else { return Ok(()) };
    need(kernel.form == Form::Map && !kernel.faults && kernel.across().is_none(), || {
        format!("IR-8: a loop in a {} form, with faults or with loads across", kernel.form)
    })?;
    let is_fixed = (HEADER_WORDS..rolled.rows).contains(&rolled.turns);
    need(is_fixed && rolled.rows <= kernel.params, || "IR-8: the turns are a word of a turn".to_string())?;
    for carry in &rolled.carries {
        for val in [carry.here, carry.next] {
            need((val.0 as usize) < kernel.insts.len(), || format!("IR-1: {val} does not exist"))?;
            has_value(kernel, val)?;
        }
        let (here, next) = (kernel.inst(carry.here), kernel.inst(carry.next));
        let is_flat = |index: Val| matches!(kernel.inst(index).op, InstOp::Flat);
        let is_load = matches!(here.op, InstOp::Load { run: Run::Flat, guard: None, index, .. } if is_flat(index));
        need(is_load, || format!("IR-8: {} is carried, and is no load at the flat index", carry.here))?;
        let is_alike = here.dtype == next.dtype && next.level == Level::Element;
        need(is_alike, || format!("IR-8: {} does not become {}", carry.here, carry.next))?;
    }
    for (number, store) in kernel.stores.iter().enumerate() {
        let is_carried = rolled.carries.iter().any(|carry| carry.next == store.value);
        need(is_carried && store.index.is_none() && store.guard.is_none(), || {
            format!("IR-8: store {number} is of no carried value, or not where it lies")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::ir::{IndexCompare, IndexOp, Operand, line_plan};
    use smallvec::smallvec;

    fn inst(op: InstOp, dtype: DType, level: Level) -> Inst {
        Inst { op, dtype, level }
    }

    fn operand(dtype: DType, access: Access) -> Operand {
        Operand { dtype, access, tiled: false, segments: 1 }
    }

    /// The sum of squares of elements below a bound.
    fn reduction() -> Kernel {
        use Level::*;
        Kernel {
            form: Form::Reduce { inner_fast: true },
            operands: vec![
                operand(DType::F32, Access::Read),
                operand(DType::F32, Access::Write),
                operand(DType::U32, Access::Write),
            ],
            scratch: Some(2),
            faults: false,
            params: 18,
            insts: vec![
                inst(InstOp::Inner, DType::U32, Element),
                inst(InstOp::Param(16), DType::U32, Uniform),
                inst(InstOp::Compare(IndexCompare::Less, Val(0), Val(1)), DType::Bool, Element),
                inst(
                    InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: Some(Val(2)) },
                    DType::F32,
                    Element,
                ),
                inst(InstOp::Apply(ElementOp::Mul, smallvec![Val(3), Val(3)]), DType::F32, Element),
                inst(InstOp::Reduce { monoid: Monoid::Sum, args: smallvec![Val(4)] }, DType::F32, Reduced),
                inst(InstOp::Apply(ElementOp::Sqrt, smallvec![Val(5)]), DType::F32, Reduced),
            ],
            stores: vec![Store { operand: 1, index: None, value: Val(6), guard: None }],
            rolled: None,
        }
    }

    /// `b = a` over flat operands.
    fn copy() -> Kernel {
        Kernel {
            form: Form::Map,
            operands: vec![operand(DType::F32, Access::Read), operand(DType::F32, Access::Write)],
            scratch: None,
            faults: false,
            params: 16,
            insts: vec![
                inst(InstOp::Flat, DType::U32, Level::Element),
                inst(
                    InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: None },
                    DType::F32,
                    Level::Element,
                ),
            ],
            stores: vec![Store { operand: 1, index: None, value: Val(1), guard: None }],
            rolled: None,
        }
    }

    fn breaks(kernel: Kernel, change: impl FnOnce(&mut Kernel)) -> String {
        let mut kernel = kernel;
        verify(&kernel).unwrap();
        change(&mut kernel);
        let error = verify(&kernel).expect_err("the change breaks an invariant");
        error.lines().next().unwrap().to_string()
    }

    #[test]
    fn each_invariant_is_named_when_it_breaks() {
        let r = |change: fn(&mut Kernel)| breaks(reduction(), change);
        let c = |change: fn(&mut Kernel)| breaks(copy(), change);
        assert_eq!(
            r(|k| k.insts[4].op = InstOp::Apply(ElementOp::Mul, smallvec![Val(3), Val(4)])),
            "IR-1: argument %4 does not stand before at %4"
        );
        assert_eq!(
            r(|k| k.insts[4].level = Level::Uniform),
            "IR-2: the level is uniform but the arguments imply element at %4"
        );
        assert_eq!(
            r(|k| k.insts[6].op = InstOp::Apply(ElementOp::Add, smallvec![Val(5), Val(4)])),
            "IR-2: an element value meets a reduced one at %6"
        );
        assert_eq!(
            r(|k| k.stores[0].value = Val(4)),
            "IR-2: an element store without an index in a reduce inner_fast form at store 0"
        );
        assert_eq!(r(|k| k.insts[1].op = InstOp::Param(15)), "IR-3: parameter words 15..16 are not in 16..18 at %1");
        assert_eq!(r(|k| k.operands[0].access = Access::Write), "IR-4: a load of @0, which is written only at %3");
        assert_eq!(c(|k| k.stores[0].operand = 0), "IR-4: a store to @0, which is read only at store 0");
        assert_eq!(c(|k| k.insts[0].op = InstOp::Inner), "IR-5: inner in a map form at %0");
        assert_eq!(r(|k| k.insts[0].op = InstOp::Flat), "IR-5: flat in a reduce inner_fast form at %0");
        assert_eq!(
            c(|k| {
                k.operands[0].tiled = true;
                let InstOp::Load { run, .. } = &mut k.insts[1].op else { return };
                *run = Run::Any;
            }),
            "IR-6: @0 is tiled but loaded elsewhere at %1"
        );
        assert_eq!(r(|k| k.insts[4].dtype = DType::I32), "IR-7: mul yields f32, says i32 at %4");
        assert_eq!(
            r(|k| k.insts[5].op = InstOp::Reduce { monoid: Monoid::Any, args: smallvec![Val(4)] }),
            "IR-7: Any of [F32] at %5"
        );
        assert_eq!(
            c(|k| k.insts[0].op = InstOp::Index(IndexOp::Add, Val(0), Val(0))),
            "IR-1: argument %0 does not stand before at %0"
        );
        assert_eq!(c(|k| k.operands[1].dtype = DType::F64), "IR-7: f32 stored as f64 at store 0");
    }

    #[test]
    fn a_requirement_is_a_bool_with_a_fault_word_and_has_no_value() {
        let mut checked = reduction();
        checked.faults = true;
        let require = InstOp::Require { condition: Val(2), site: 17, guard: Some(Val(2)) };
        checked.insts.push(inst(require, DType::Bool, Level::Element));
        let c = |change: fn(&mut Kernel)| breaks(checked.clone(), change);
        assert_eq!(checked.to_string().lines().nth(11), Some("  %7 bool element = require %2 site param 17 if %2"));
        assert_eq!(c(|k| k.faults = false), "IR-4: a check without fault words at %7");
        assert_eq!(c(|k| k.params = 17), "IR-3: parameter words 17..18 are not in 16..17 at %7");
        assert_eq!(c(|k| k.insts[7].dtype = DType::F32), "IR-7: yields bool, says f32 at %7");
        let condition = |k: &mut Kernel, val| {
            k.insts[7].op = InstOp::Require { condition: val, site: 17, guard: None };
        };
        assert_eq!(breaks(checked.clone(), |k| condition(k, Val(4))), "IR-7: %4 is f32 where bool is needed at %7");
        let error = c(|k| {
            k.stores[0].guard = Some(Val(7));
        });
        assert_eq!(error, "IR-1: %7 is a requirement, which has no value at store 0");
    }

    #[test]
    fn only_elements_and_folds_do_not_join() {
        use Level::*;
        let form = Form::Reduce { inner_fast: true };
        assert_eq!(join(form, Uniform, Outer), Some(Outer));
        assert_eq!(join(form, Outer, Element), Some(Element));
        assert_eq!(join(form, Outer, Reduced), Some(Reduced));
        assert_eq!(join(form, Element, Reduced), None);
        assert_eq!(join(Form::Line(line_plan(7, 4)), Element, Reduced), Some(Element));
    }
}
