//! Repeats single elements.
//!
//! In: values of any class, and the number of repetitions for each element, or for each index of a dimension. Out: a
//! value of the same class. Arrays on the runtime are read there.

use crate::builtins::reduce::lanes::{Axis, pick_along};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::index;
use crate::value::blocks::BLOCK;
use crate::value::tensor::map_data;
use crate::value::{Dims, Tensor, Value};
use crate::vm::Interp;

/// The functions.
pub static ROWS: &[Builtin] = &[row(
    "repelem",
    2,
    ANY,
    1,
    "repelem (x, r1, r2, ...)",
    "Repeats each element: r1 times down, r2 times across.",
    repelem,
)];

/// How often each index of a dimension is repeated.
enum Times {
    Each(usize),
    List(Vec<usize>),
}

impl Times {
    /// Reads an argument for a dimension with this many indices. `unfit` makes the error for a list of another length.
    fn of(env: &Env, value: &Value, indices: usize, unfit: impl FnOnce() -> Flow<Times>) -> Flow<Times> {
        let host = env.host(value)?;
        let count = |x: f64| match x >= 0.0 && x == x.trunc() {
            true => Ok(x as usize),
            false => fail!("repelem: R1 must be a non-negative integer"),
        };
        match host.len() {
            1 => Ok(Times::Each(count(host.data.f64_at(0))?)),
            n if n == indices => {
                Ok(Times::List((0..n).map(|i| count(host.data.f64_at(i))).collect::<Flow<Vec<usize>>>()?))
            }
            _ => unfit(),
        }
    }

    /// Returns the number of indices in the result.
    fn total(&self, indices: usize) -> usize {
        match self {
            Times::Each(times) => times.saturating_mul(indices),
            Times::List(times) => times.iter().fold(0, |sum, &n| sum.saturating_add(n)),
        }
    }

    fn at(&self, index: usize) -> usize {
        match self {
            Times::Each(times) => *times,
            Times::List(times) => times[index],
        }
    }

    /// Returns the source index (from 0) of each index of the result.
    fn indices(&self, indices: usize) -> Vec<usize> {
        let mut all = Vec::with_capacity(self.total(indices));
        (0..indices).for_each(|i| all.extend(std::iter::repeat_n(i, self.at(i))));
        all
    }
}

fn repelem(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let (x, counts) = (&args[0], &args[1..]);
    env.host_all(counts)?;
    let dims = x.dims();
    if let [count] = counts {
        if !dims.is_vector() {
            let (rank, more) = (dims.len(), dims.len() + 1);
            return fail!("repelem: {rank}D Array requires {more} or more input arguments, but only 2 given");
        }
        let times = Times::of(env, count, x.len(), || {
            fail!(
                "repelem: R1 must either be scalar or have the same number of elements as the vector to be replicated"
            )
        })?;
        // A single element becomes a row.
        let d = usize::from(dims.rows() == 1);
        let mut all = vec![Times::Each(1), Times::Each(1)];
        all[d] = times;
        return repeated(env, x, &dims, &all);
    }
    let mut all = Vec::with_capacity(counts.len().max(dims.len()));
    for (d, count) in counts.iter().enumerate() {
        let of = d + 1;
        all.push(Times::of(env, count, dims.extent(d), || {
            fail!(
                "repelem: R{of} must either be scalar or have the same number of elements as the size of dimension {of} of X"
            )
        })?);
    }
    while all.len() < dims.len() {
        all.push(Times::Each(1));
    }
    repeated(env, x, &dims, &all)
}

fn repeated(env: &mut Env, x: &Value, dims: &Dims, times: &[Times]) -> Flow<Outcome> {
    let out: Vec<usize> = times.iter().enumerate().map(|(d, times)| times.total(dims.extent(d))).collect();
    let out = Dims::new(&out);
    if let Value::Lazy(_) = x {
        env.check_host(&out, 0)?;
        let subscripts: Vec<Value> = times
            .iter()
            .enumerate()
            .map(|(d, times)| Value::row(times.indices(dims.extent(d)).iter().map(|&i| i as f64 + 1.0).collect()))
            .collect();
        return Ok(index::paren(env, x, &subscripts)?.into());
    }
    env.check_host(&out, x.class().bytes() * (1 + usize::from(x.is_complex())))?;
    let is_one = |times: &Times| matches!(times, Times::Each(1));
    // If only the first dimension that is not 1 is repeated, equal elements follow each other.
    let d = match x.len() {
        1 => times.iter().position(|times| !is_one(times)).unwrap_or(0),
        _ => dims.first_non_singleton(),
    };
    if let Value::Tensor(t) = x
        && times.iter().enumerate().all(|(k, times)| k == d || is_one(times))
    {
        let (len, n) = (dims.extent(d), out.elements());
        let data = map_data!(&*t.data, v => {
            let mut data = Vec::with_capacity(n);
            for (block, elements) in v.chunks(BLOCK).enumerate() {
                env.check_halt()?;
                for (k, element) in elements.iter().enumerate() {
                    data.extend(std::iter::repeat_n(*element, times[d].at((block * BLOCK + k) % len)));
                }
            }
            data
        });
        let double_quoted = t.double_quoted;
        return Ok(Value::tensor_as_is(Tensor { double_quoted, ..Tensor::new(out, data) }).into());
    }
    let indices: Vec<Vec<usize>> = times.iter().enumerate().map(|(d, times)| times.indices(dims.extent(d))).collect();
    let at = |d: usize, k: usize| indices.get(d).map_or(k, |indices| indices[k]);
    let axes = Axis::mapped(dims, &out, &at);
    match pick_along(x, out, &axes) {
        Some(value) => Ok(value.into()),
        None => fail!("repelem: wrong type argument '{}'", x.class_name()),
    }
}
