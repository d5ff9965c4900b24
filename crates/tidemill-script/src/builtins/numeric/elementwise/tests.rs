//! Tests functions of elements against results of Octave (`ops/recorded/functions.txt`), in host memory and on the
//! runtime.

use crate::builtins::{Outcome, find};
use crate::env::Env;
use crate::error::ScriptError;
use crate::ops::tests::{parsed, report, same};
use crate::rig;
use crate::value::{Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// A line of the recordings: a function, its arguments, and its result.
struct Case {
    line: &'static str,
    name: &'static str,
    args: Vec<Tensor>,
    expected: &'static str,
}

fn cases() -> Vec<Case> {
    let (mut values, mut pairs) = (Vec::new(), Vec::new());
    let mut cases = Vec::new();
    for line in include_str!("../../../ops/recorded/functions.txt").lines() {
        if let Some(text) = line.strip_prefix("value ") {
            values.push(vec![parsed(text)]);
        } else if let Some(text) = line.strip_prefix("pair ") {
            let (a, b) = text.split_once("; ").unwrap();
            pairs.push(vec![parsed(a), parsed(b)]);
        } else {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().unwrap();
            let (name, k, expected) = (next(), next().parse::<usize>().unwrap(), next());
            let from = if pairs.is_empty() { &values } else { &pairs };
            cases.push(Case { line, name, args: from[k].clone(), expected });
        }
    }
    cases
}

impl Case {
    fn run(&self, interp: &mut Interp, args: &[Value]) -> Result<Value, ScriptError> {
        let builtin = find(self.name).unwrap_or_else(|| panic!("{} is no builtin", self.name));
        // A step needs an environment, which the machine holds, so `rig::settle` cannot be used.
        let result = loop {
            let outcome = builtin.call(interp, args, 1);
            match outcome {
                Ok(Outcome::Values(mut values)) => break Ok(values.remove(0)),
                Ok(_) => break Err(ScriptError::new("a task")),
                Err(stop) => {
                    let mut stop = Some(stop);
                    let awaited = rig::settle(&mut interp.env, |_| match stop.take() {
                        Some(stop) => Err(stop),
                        None => Ok(()),
                    });
                    if let Err(error) = awaited {
                        break Err(error);
                    }
                }
            }
        };
        result
    }

    fn is_right(&self, result: &Result<Arc<Tensor>, ScriptError>, lazy: bool) -> bool {
        match result {
            Err(error) if self.expected.starts_with("error") => {
                error.message.contains(&self.expected[6..]) || error.message.contains("wrong type argument")
            }
            // On the runtime, a result that would be complex is a fault.
            Err(error) => lazy && error.message.contains("is complex"),
            Ok(t) if !self.expected.starts_with("error") => same(t, &parsed(self.expected), 1e-13, !lazy),
            Ok(_) => false,
        }
    }

    /// Whether MATLAB differs from the recorded result of Octave, or neither is right.
    fn deviates(&self) -> bool {
        let complex = self.args.iter().any(|a| a.data.is_complex());
        match self.name {
            // These are exact at multiples of 30 and 45 degrees; Octave refuses fractions for integers.
            "sind" | "cosd" | "tand" | "asind" | "acosd" => true,
            // Here the angle of NaN is NaN.
            "arg" => self.args[0].data.has_nan(),
            // Here -7 / 2 is -3 by `fix`, not -4.
            "idivide" => true,
            "bitshift" => complex,
            // MATLAB refuses complex numbers; Octave's erfcinv has fewer digits below 1e-9.
            "erf" | "erfc" | "erfcx" => complex,
            "erfcinv" => (0..self.args[0].len()).any(|i| (0.0..1e-6).contains(&self.args[0].data.f64_at(i))),
            // Octave rounds intermediate results for integers.
            "nthroot" | "beta" => self.args.iter().any(|a| a.data.class().is_integer()),
            _ => false,
        }
    }
}

fn interp(env: Env) -> Interp {
    Interp::new(env)
}

fn described(result: Result<Arc<Tensor>, ScriptError>) -> String {
    match result {
        Ok(t) => format!("{} {:?}", t.dims, t.data),
        Err(error) => error.message,
    }
}

#[test]
fn functions_give_what_octave_gives() {
    let mut interp = interp(rig::env());
    let mut wrong = Vec::new();
    for case in cases() {
        let args: Vec<Value> = case.args.iter().map(|t| Value::tensor_as_is(t.clone())).collect();
        let result = case.run(&mut interp, &args).and_then(|v| rig::to_host(&mut interp.env, &v));
        if !case.is_right(&result, false) && !case.deviates() {
            wrong.push(format!("{}: {}", case.line, described(result)));
        }
    }
    report(&wrong);
}

#[test]
fn the_runtime_gives_what_the_host_gives() {
    let mut interp = interp(rig::env_lazy());
    let (mut wrong, mut recorded) = (Vec::new(), Vec::new());
    for case in cases() {
        let args: Vec<Value> = case.args.iter().map(|t| Value::tensor_as_is(t.clone())).collect();
        let args: Vec<Value> = args.iter().map(|v| rig::to_runtime(&interp.env, v)).collect();
        match case.run(&mut interp, &args) {
            Ok(value) => recorded.push((case, value)),
            Err(error) if case.is_right(&Err(error.clone()), true) || case.deviates() => {}
            Err(error) => wrong.push(format!("{}: {}", case.line, error.message)),
        }
    }
    for part in recorded.chunks(300) {
        let _ = rig::settle(&mut interp.env, |env| env.host_all(part.iter().map(|(_, v)| v)));
        for (case, value) in part {
            let result = rig::to_host(&mut interp.env, value);
            if !case.is_right(&result, true) && !case.deviates() {
                wrong.push(format!("{}: {}", case.line, described(result)));
            }
        }
    }
    report(&wrong);
}
