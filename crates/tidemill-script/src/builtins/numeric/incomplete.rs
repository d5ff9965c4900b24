//! The incomplete gamma and beta functions and their inverses: their table, and their arguments.
//!
//! In: real arrays of one size, or scalars beside them. Out: values in double or single. They are computed in host
//! memory, a block at a time, so that interrupts are checked between two blocks.

use super::incomplete_values::{Beta, Gamma, Part};
use crate::builtins::{Builtin, Outcome, args::is_word, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::complex_in_class;
use crate::value::blocks::Joined;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use std::ops::Range;
use std::sync::Arc;

/// The number of elements between two checks for interrupts.
const AT_A_TIME: usize = 256;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("gammainc", 2, 3, 1, "gammainc (x, a, tail)", "The regularised incomplete gamma function.", gammainc),
    row("gammaincinv", 2, 3, 1, "gammaincinv (y, a, tail)", "Where the incomplete gamma function is y.", gammaincinv),
    row("betainc", 3, 4, 1, "betainc (x, a, b, tail)", "The regularised incomplete beta function.", betainc),
    row("betaincinv", 3, 4, 1, "betaincinv (y, a, b, tail)", "Where the incomplete beta function is y.", betaincinv),
];

/// Arguments of a common size, and the size and class of the result.
struct Common {
    dims: Dims,
    class: Class,
    operands: Vec<Arc<Tensor>>,
}

impl Common {
    /// Returns the arguments in host memory; `None` if their sizes differ.
    fn of(env: &Env, args: &[Value]) -> Flow<Option<Common>> {
        env.host_all(args)?;
        let operands = args.iter().map(|arg| env.host(arg)).collect::<Flow<Vec<_>>>()?;
        let is_single = operands.iter().any(|operand| operand.data.class() == Class::Single);
        let class = if is_single { Class::Single } else { Class::Double };
        let dims = operands.iter().find(|operand| operand.len() != 1).unwrap_or(&operands[0]).dims.clone();
        let fits = operands.iter().all(|operand| operand.len() == 1 || operand.dims == dims);
        Ok(fits.then_some(Common { dims, class, operands }))
    }

    /// Returns the element of an argument for an element of the result.
    fn at(&self, operand: usize, i: usize) -> f64 {
        let operand = &self.operands[operand];
        operand.data.f64_at(if operand.len() == 1 { 0 } else { i })
    }

    /// Whether `test` is true for an element of an argument.
    fn any(&self, operand: usize, test: impl Fn(f64) -> bool) -> bool {
        self.operands[operand].data.any_real(test)
    }

    /// Computes all elements by `values`, a few of them at a time, since one value of an inverse takes up to a
    /// millisecond.
    fn mapped(&self, env: &Env, mut values: impl FnMut(Range<usize>) -> Data) -> Flow<Outcome> {
        let n = self.dims.elements();
        env.check_host(&[n], self.class.bytes())?;
        let mut joined = Joined::of(n);
        for start in (0..n).step_by(AT_A_TIME) {
            env.check_halt()?;
            joined.add(values(start..n.min(start + AT_A_TIME)));
        }
        let data = joined.data.unwrap_or_else(|| Data::zeros(self.class, 0));
        Ok(Value::tensor(Tensor::new(self.dims.clone(), data)).into())
    }

    /// Does the same for real values.
    fn reals(&self, env: &Env, mut value: impl FnMut(usize) -> f64) -> Flow<Outcome> {
        self.mapped(env, |range| match self.class {
            Class::Single => Data::F32(range.map(|i| value(i) as f32).collect()),
            _ => Data::F64(range.map(&mut value).collect()),
        })
    }
}

fn are_real(args: &[Value]) -> bool {
    let is_real = |arg: &Value| match arg {
        Value::Num(_) | Value::Bool(_) => true,
        Value::Tensor(_) | Value::Lazy(_) => !arg.is_complex(),
        _ => false,
    };
    args.iter().all(is_real)
}

/// Returns the text of the argument that names a tail, if there is one.
fn tail_of(args: &[Value], at: usize) -> Option<String> {
    args.get(at).map(|tail| tail.as_text().unwrap_or_default())
}

/// Whether the upper tail is wanted.
fn is_upper(name: &str, tail: Option<String>) -> Flow<bool> {
    match tail.as_deref() {
        None | Some("lower") => Ok(false),
        Some("upper") => Ok(true),
        Some(_) => fail!("{name}: invalid value for TAIL"),
    }
}

fn gammainc(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let tails =
        [("lower", false, false), ("upper", true, false), ("scaledlower", false, true), ("scaledupper", true, true)];
    let part = match args.get(2) {
        None => Part::default(),
        Some(tail) => match tails.into_iter().find(|(word, ..)| is_word(tail, word)) {
            Some((_, upper, scaled)) => Part { upper, scaled },
            None => return fail!("gammainc: invalid value for TAIL"),
        },
    };
    if !are_real(&args[..2]) {
        return fail!("gammainc: all inputs must be real");
    }
    env.host_all(&args[..2])?;
    if env.host(&args[1])?.data.any_real(|a| a < 0.0) {
        return fail!("gammainc: A must be non-negative");
    }
    let Some(common) = Common::of(env, &args[..2])? else {
        return fail!("gammainc: X and A must be of common size or scalars");
    };
    let mut gamma = Gamma::of(1.0);
    if !common.any(0, |x| x < 0.0) {
        return common.reals(env, |i| {
            gamma = gamma.again(common.at(1, i));
            gamma.at(common.at(0, i), part)
        });
    }
    let class = common.class;
    common.mapped(env, |range| {
        let value = |i: usize| -> Complex64 {
            gamma = gamma.again(common.at(1, i));
            let x = common.at(0, i);
            if x < 0.0 { gamma.left_of_zero(x, part) } else { gamma.at(x, part).into() }
        };
        complex_in_class(class, range.map(value).collect())
    })
}

fn gammaincinv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let upper = is_upper("gammaincinv", tail_of(args, 2))?;
    if !are_real(&args[..2]) {
        return fail!("gammaincinv: all inputs must be real");
    }
    let Some(common) = Common::of(env, &args[..2])? else {
        return fail!("gammaincinv: Y and A must be of common size or scalars");
    };
    if common.any(0, |y| !(0.0..=1.0).contains(&y) && !y.is_nan()) {
        return fail!("gammaincinv: Y must be in the range [0, 1]");
    }
    if common.any(1, |a| a <= 0.0) {
        return fail!("gammaincinv: A must be strictly positive");
    }
    let mut gamma = Gamma::of(1.0);
    common.reals(env, |i| {
        gamma = gamma.again(common.at(1, i));
        gamma.inverse(common.at(0, i), upper)
    })
}

/// Reads the arguments of the beta function and of its inverse. `first` is the name of the first argument.
fn of_beta(env: &Env, name: &str, first: &str, args: &[Value]) -> Flow<Common> {
    let Some(common) = Common::of(env, args)? else {
        return fail!("{name}: {first}, A, and B must be of common size or scalars");
    };
    if common.any(0, |x| !(0.0..=1.0).contains(&x) && !x.is_nan()) {
        return fail!("{name}: {first} must be in the range [0, 1]");
    }
    if common.any(1, |a| a <= 0.0) {
        return fail!("{name}: A must be strictly positive");
    }
    if common.any(2, |b| b <= 0.0) {
        return fail!("{name}: B must be strictly positive");
    }
    Ok(common)
}

/// Computes a function of the first operand's elements and of the parameters `a` and `b` in the two other operands.
fn of_each_beta(env: &Env, common: &Common, value: impl Fn(&Beta, f64) -> f64) -> Flow<Outcome> {
    let mut beta = Beta::of(1.0, 1.0);
    common.reals(env, |i| {
        beta = beta.again(common.at(1, i), common.at(2, i));
        value(&beta, common.at(0, i))
    })
}

fn betainc(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    // The case does not matter, as in Octave; its inverses take lower case only.
    let upper = is_upper("betainc", tail_of(args, 3).map(|tail| tail.to_ascii_lowercase()))?;
    if !are_real(&args[..3]) {
        return fail!("betainc: all inputs must be real");
    }
    let common = of_beta(env, "betainc", "X", &args[..3])?;
    of_each_beta(env, &common, |beta, x| beta.at(x, upper))
}

fn betaincinv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let upper = is_upper("betaincinv", tail_of(args, 3))?;
    if !are_real(&args[..3]) || !args[..3].iter().all(|arg| arg.class().is_float()) {
        return fail!("betaincinv: Y, A, and B must be real, floating point values");
    }
    let common = of_beta(env, "betaincinv", "Y", &args[..3])?;
    of_each_beta(env, &common, |beta, y| beta.inverse(y, upper))
}
