//! The forms of kernels: reductions and scans by every fold along both walks, views, indexed loads and stores, random
//! numbers.

use super::agree;
use super::work::{Array, BatchBuilder, Build, double, varied};
use crate::graph::{DType, Dist, ElementOp, RandomKey};
use crate::kernels::ir::{Access, Form, Geometry, IndexCompare, IndexOp, InstOp, Monoid, Run, Val};
use smallvec::{SmallVec, smallvec};

const FOLDS: [Monoid; 16] = [
    Monoid::Sum,
    Monoid::Prod,
    Monoid::MinInclude,
    Monoid::MinOmit,
    Monoid::MaxInclude,
    Monoid::MaxOmit,
    Monoid::ArgMinOmit,
    Monoid::ArgMaxOmit,
    Monoid::ArgMinInclude,
    Monoid::ArgMaxInclude,
    Monoid::Any,
    Monoid::All,
    Monoid::Moments,
    Monoid::MomentsWhere,
    Monoid::Squares,
    Monoid::ExpSum,
];

/// Whether a fold is to a position, which an empty line does not have.
fn is_position(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude)
}

/// Whether a fold is of floats alone.
fn is_of_floats(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::Moments | Monoid::MomentsWhere | Monoid::Squares | Monoid::ExpSum)
}

/// A kernel that walks lines of `[inner, outer]` or `[outer, inner]`; its elements, and their positions in the line.
fn lines(form: Form, dtype: DType, outer: u32, inner: u32) -> (Build, Val, Val) {
    let inner_fast = matches!(form, Form::Reduce { inner_fast: true } | Form::Scan { inner_fast: true });
    let mut build = Build::new(form);
    let from = build.operand(dtype, Access::Read);
    let stride = build.number(if inner_fast { inner } else { outer });
    let o = build.inst(InstOp::Outer, DType::U32);
    let i = build.inst(InstOp::Inner, DType::U32);
    let (slow, fast) = if inner_fast { (o, i) } else { (i, o) };
    let row = build.index(IndexOp::Mul, slow, stride);
    let at = build.index(IndexOp::Add, row, fast);
    let x = build.load(from, at, Run::Any, None);
    (build, x, at)
}

/// Every fold of lines, and what each yields.
fn reduce(work: &mut BatchBuilder, dtype: DType, inner_fast: bool, (outer, inner): (u32, u32)) {
    if !work.info.has(dtype) {
        return;
    }
    let given = work.given(varied(dtype, (outer * inner) as usize, 0));
    let folds = FOLDS.into_iter().filter(|monoid| dtype.is_float() || !is_of_floats(*monoid));
    for monoid in folds.filter(|monoid| inner > 0 || !is_position(*monoid)) {
        let (mut build, x, _) = lines(Form::Reduce { inner_fast }, dtype, outer, inner);
        let mut args: SmallVec<[Val; 2]> = SmallVec::from_slice(&[x]);
        match monoid {
            // The third instruction is the position in the line.
            _ if is_position(monoid) => args.push(Val(2)),
            Monoid::MomentsWhere => args.push(build.apply(ElementOp::Ge, &[x, x], DType::Bool)),
            Monoid::Any | Monoid::All => args[0] = build.apply(ElementOp::Gt, &[x, x], DType::Bool),
            _ => {}
        }
        let argument = build.dtype(args[0]);
        let folded = build.inst(InstOp::Reduce { monoid, args }, monoid.components(argument)[0]);
        let mut arrays = vec![given];
        for (number, component) in monoid.components(argument).into_iter().enumerate() {
            let to = build.operand(component, Access::Write);
            let value = build.inst(InstOp::Project(folded, number as u8), component);
            build.store(to, None, value, None);
            arrays.push(work.array(component, outer as usize));
        }
        work.kernel(build, Geometry::Reduce { outer, inner }, &arrays);
        for (number, array) in arrays[1..].iter().enumerate() {
            // The base of moments, and with it the mean minus base, is any value of the line.
            if !(monoid.is_moments() && (1..=2).contains(&number)) {
                let walk = if inner_fast { "neighbours" } else { "strided" };
                work.read(format!("{monoid:?} of {dtype} ({walk}, {outer} x {inner}), component {number}"), *array);
            }
        }
    }
}

#[test]
fn every_fold_along_both_walks_is_what_the_host_computes() {
    for inner_fast in [true, false] {
        agree(4096.0, |work| reduce(work, DType::F32, inner_fast, (33, 300)));
        agree(4096.0, |work| reduce(work, DType::F64, inner_fast, (6, 90)));
        for dtype in [DType::I32, DType::U32, DType::I64] {
            agree(0.0, |work| reduce(work, dtype, inner_fast, (5, 70)));
        }
    }
}

#[test]
fn one_long_line_and_lines_of_nothing_fold_to_what_the_host_computes() {
    agree(65_536.0, |work| reduce(work, DType::F32, true, (1, 20_001)));
    agree(0.0, |work| reduce(work, DType::I32, true, (3, 0)));
}

/// Every running fold of lines.
fn scan(work: &mut BatchBuilder, dtype: DType, inner_fast: bool, (outer, inner, reverse): (u32, u32, bool)) {
    if !work.info.has(dtype) {
        return;
    }
    let given = work.given(varied(dtype, (outer * inner) as usize, 0));
    for monoid in [Monoid::Sum, Monoid::Prod, Monoid::MinInclude, Monoid::MinOmit, Monoid::MaxInclude, Monoid::MaxOmit]
    {
        let (mut build, x, at) = lines(Form::Scan { inner_fast }, dtype, outer, inner);
        let to = build.operand(dtype, Access::Write);
        let value = build.inst(InstOp::Scan { monoid, arg: x }, dtype);
        build.store(to, Some(at), value, None);
        let out = work.array(dtype, given.elements);
        work.kernel(build, Geometry::Scan { outer, inner, reverse }, &[given, out]);
        work.read(format!("running {monoid:?} of {dtype}, {outer} x {inner}, reverse: {reverse}"), out);
    }
}

#[test]
fn every_running_fold_is_what_the_host_computes() {
    for reverse in [false, true] {
        agree(4096.0, |work| scan(work, DType::F32, true, (7, 40, reverse)));
        agree(4096.0, |work| scan(work, DType::F64, true, (5, 30, reverse)));
        for dtype in [DType::I32, DType::U32, DType::I64] {
            agree(0.0, |work| scan(work, dtype, false, (33, 50, reverse)));
        }
    }
    agree(0.0, |work| scan(work, DType::I32, true, (2, 9000, false)));
}

/// A kernel that writes the elements of a 12 x 17 array at other places; what is there at which place.
fn moved(
    work: &mut BatchBuilder,
    label: &str,
    given: Array,
    elements: u32,
    place: impl FnOnce(&mut Build, Val) -> Val,
) {
    let out = work.array(given.dtype, elements as usize);
    let mut build = Build::new(Form::Map);
    let (from, to) = (build.operand(given.dtype, Access::Read), build.operand(given.dtype, Access::Write));
    let flat = build.flat();
    let at = place(&mut build, flat);
    let x = build.load(from, at, Run::Any, None);
    build.store(to, None, x, None);
    work.kernel(build, Geometry::Map { elements }, &[given, out]);
    work.read(format!("{label} of {}", given.dtype), out);
}

#[test]
fn views_are_what_the_host_computes() {
    use IndexOp::{Add, Div, Mul, Rem, Sub};
    let (rows, columns) = (12u32, 17u32);
    for dtype in [DType::F32, DType::U8, DType::Bool, DType::I32] {
        agree(0.0, |work| {
            let given = work.given(varied(dtype, (rows * columns) as usize, 0));
            let count = rows * columns;
            moved(work, "transposed", given, count, |build, flat| {
                let (m, n) = (build.number(rows), build.number(columns));
                let (row, column) = (build.index(Div, flat, n), build.index(Rem, flat, n));
                let first = build.index(Mul, column, m);
                build.index(Add, first, row)
            });
            moved(work, "flipped", given, count, |build, flat| {
                let last = build.number(count - 1);
                build.index(Sub, last, flat)
            });
            moved(work, "every third", given, count / 3, |build, flat| {
                let step = build.number(3);
                build.index(Mul, flat, step)
            });
            moved(work, "the first column, repeated", given, 3 * count, |build, flat| {
                let m = build.number(rows);
                build.index(Rem, flat, m)
            });
        });
    }
}

#[test]
fn loads_and_stores_under_a_guard_are_what_the_host_computes() {
    agree(0.0, |work| {
        let (given, out) = (work.given(varied(DType::F32, 100, 0)), work.given(varied(DType::F32, 100, 1)));
        let mut build = Build::new(Form::Map);
        let (from, to) = (build.operand(DType::F32, Access::Read), build.operand(DType::F32, Access::Write));
        let (flat, limit) = (build.flat(), build.number(40));
        let below = build.inst(InstOp::Compare(IndexCompare::Less, flat, limit), DType::Bool);
        let near = build.number(70);
        let stored = build.inst(InstOp::Compare(IndexCompare::Less, flat, near), DType::Bool);
        let x = build.load(from, flat, Run::Flat, Some(below));
        // Where the guard is false, what was loaded has no meaning.
        let whole = build.load(from, flat, Run::Flat, None);
        let otherwise = build.apply(ElementOp::Neg, &[whole], DType::F32);
        let chosen = build.apply(ElementOp::Select, &[below, x, otherwise], DType::F32);
        build.store(to, None, chosen, Some(stored));
        work.kernel(build, Geometry::Map { elements: 100 }, &[given, out]);
        // Forty loaded, thirty negated, thirty as they were.
        work.read("guarded", out);
    });
}

#[test]
fn what_is_computed_in_place_or_in_turn_is_what_the_host_computes() {
    agree(0.0, |work| {
        let given = work.given(varied(DType::F32, 1000, 0));
        let (once, twice) = (work.array(DType::F32, 1000), work.array(DType::F32, 1000));
        double(work, given, once);
        double(work, once, twice);
        let mut build = Build::new(Form::Map);
        let both = build.operand(DType::F32, Access::ReadWrite);
        let flat = build.flat();
        let x = build.load(both, flat, Run::Flat, None);
        let y = build.apply(ElementOp::Mul, &[x, x], DType::F32);
        build.store(both, None, y, None);
        work.kernel(build, Geometry::Map { elements: 1000 }, &[once]);
        work.read("in place", once);
        work.read("in turn", twice);
        work.read("what was given", given);
    });
}

#[test]
fn kernels_with_few_and_with_many_parameters_take_turns_on_the_same_arrays() {
    agree(0.0, |work| {
        let (given, out) = (work.given(varied(DType::F32, 1000, 0)), work.array(DType::F32, 1000));
        // More words than fit beside a dispatch, so that they lie in a buffer, of which a group binds a part.
        for (turn, parameters) in [100u32, 900, 100].into_iter().enumerate() {
            let mut build = Build::new(Form::Map);
            let (from, to) = (build.operand(DType::F32, Access::Read), build.operand(DType::F32, Access::Write));
            let flat = build.flat();
            let mut index = flat;
            for parameter in 0..parameters {
                // The eighth adds 1, and the last takes it away again.
                let word = build.number(u32::from(parameter == 7 || parameter + 1 == parameters));
                let op = if parameter + 1 == parameters { IndexOp::Sub } else { IndexOp::Add };
                index = build.inst(InstOp::Index(op, index, word), DType::U32);
            }
            let x = build.load(from, index, Run::Any, None);
            build.store(to, None, x, None);
            work.kernel(build, Geometry::Map { elements: 1000 }, &[given, out]);
            work.read(format!("turn {turn}"), out);
        }
    });
}

#[test]
fn random_numbers_are_what_the_host_draws() {
    let key = RandomKey { seed: 0x1234_5678_9abc_def0, stream: 7, op: 3 }.words();
    agree(64.0, |work| {
        let kinds = [
            (Dist::Uniform, DType::F32),
            (Dist::Normal, DType::F32),
            (Dist::Exponential, DType::F32),
            (Dist::Integer, DType::I32),
        ];
        for (dist, dtype) in kinds {
            let out = work.array(dtype, 1001);
            let mut build = Build::new(Form::Map);
            let to = build.operand(dtype, Access::Write);
            let flat = build.flat();
            let key = build.words(&key);
            let low = build.words(&[(-5i32) as u32]);
            let low = build.inst(InstOp::Param(low), DType::I32);
            let params = if dist == Dist::Integer { smallvec![low, build.number(11)] } else { smallvec![] };
            let random = InstOp::Random { dist, key, element: flat, run: Run::Flat, params };
            let value = build.inst(random, dtype);
            build.store(to, None, value, None);
            work.kernel(build, Geometry::Map { elements: 1001 }, &[out]);
            work.read(dist.name(), out);
        }
    });
}
