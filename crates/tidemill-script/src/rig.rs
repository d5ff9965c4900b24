//! Helpers for unit tests of the script front end: an environment on a runtime without a device, and a loop that awaits
//! what a step needs, as the machine does.

use super::env::{Env, Options};
use super::error::{Flow, Need, ScriptError, Stop};
use super::output::Captured;
use super::value::{Lazy, Pinned, Tensor, Value, lazy};
use futures::executor::block_on;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use tidemill::Runtime;

/// One runtime for all tests. It folds no constants, so that lazy values really go through the ring.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Runtime::builder().device("host").fold_elements_max(0).start_blocking().expect("the host device starts")
    })
}

/// A session with a random stream of its own.
pub fn session(stream: u64) -> tidemill::Session {
    runtime().session("test").seed(42).stream(stream).open()
}

/// An environment in which small arrays stay on the host, as they do by default.
pub fn env() -> Env {
    env_with(Options::default()).0
}

/// An environment in which every array that can be on the runtime is recorded there.
pub fn env_lazy() -> Env {
    env_with(Options { host_elements_max: 0, ..Options::default() }).0
}

/// An environment with these options, and its captured output.
pub fn env_with(options: Options) -> (Env, Arc<Mutex<Captured>>) {
    let printed = Arc::new(Mutex::new(Captured::default()));
    let session = runtime().session("test").seed(42).open();
    (Env::new(session, Box::new(printed.clone()), options), printed)
}

/// Runs a step again and again, awaiting what it needs in between, as the machine does with an instruction.
///
/// # Errors
/// The step's error; `exit` counts as a failure.
pub fn settle<T>(env: &mut Env, mut step: impl FnMut(&mut Env) -> Flow<T>) -> Result<T, ScriptError> {
    let mut answers = VecDeque::new();
    for _ in 0..1000 {
        env.awaited = answers.clone();
        match step(env) {
            Ok(value) => return Ok(value),
            Err(Stop::Error(error)) => return Err(*error),
            Err(Stop::Exit(status)) => return Err(ScriptError::new(format!("exit ({status})"))),
            Err(Stop::Interrupted) => return Err(ScriptError::new("interrupted")),
            Err(Stop::Need(need)) => match need {
                Need::Host(arrays) => block_on(lazy::fetch(&arrays))?,
                Need::Materialised(arrays) => {
                    for lazy in arrays {
                        block_on(lazy.array.eval())?;
                        lazy.set_checked();
                    }
                    answers.push_back(Value::Bool(true));
                }
                Need::Future(future) => answers.push_back(block_on(future)?),
                Need::Yield => {}
            },
        }
    }
    Err(ScriptError::new("SCRIPT-2: a step that needs something every time never ends"))
}

/// Returns the host array of a value, wherever the value lies.
///
/// # Errors
/// The fault of an array of the runtime; an error for values that are no arrays.
pub fn to_host(env: &mut Env, value: &Value) -> Result<Arc<Tensor>, ScriptError> {
    settle(env, |env| env.host(value))
}

/// Returns the same array on the runtime, if its class has a dtype; any other value is returned unchanged.
pub fn to_runtime(env: &Env, value: &Value) -> Value {
    let class = value.class();
    if class.dtype().is_none() || value.is_complex() || matches!(value, Value::Lazy(_)) {
        return value.clone();
    }
    let array = lazy::lift(env, value, class).unwrap_or_else(|_| panic!("{value:?} can be lifted"));
    Lazy::new(array, class, Pinned::default(), false).expect("a lifted array carries no fault").value()
}
