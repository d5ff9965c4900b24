//! Ranges: `start:step:stop`.
//!
//! Must hold: the last element is the stop if it is equal to it up to rounding. Elements of the second half are counted
//! from the end, so that a range is as symmetric as its limits.

use super::lazy;
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::{Class, Data, Dims, Form, Lazy, Pinned, Tensor, Value};

/// A range of doubles: its first element, its step, its last element and the number of steps between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    first: f64,
    step: f64,
    last: f64,
    steps: usize,
    /// Whether all elements except the last are whole numbers.
    is_whole: bool,
}

/// The outcome of comparing a range's limits.
enum Length {
    Empty,
    Nan,
    Steps(Span),
}

impl Span {
    fn of(start: f64, step: f64, stop: f64, epsilon: f64) -> Flow<Length> {
        if start.is_nan() || step.is_nan() || stop.is_nan() {
            return Ok(Length::Nan);
        }
        if step == 0.0 || (step > 0.0) != (stop >= start) && start != stop {
            return Ok(Length::Empty);
        }
        if ((stop - start) / step).is_nan() {
            return Ok(Length::Nan);
        }
        if start.is_infinite() || stop.is_infinite() {
            return fail!("range with infinite number of elements cannot be stored");
        }
        if step.is_infinite() {
            return Ok(Length::Steps(Span { first: start, step: 0.0, last: start, steps: 0, is_whole: false }));
        }
        let whole = start.floor() == start && step.floor() == step;
        let count = if whole {
            whole_steps((stop - start) / step)
        } else {
            let tolerance = 2.0 * epsilon * start.abs().max(stop.abs());
            let nearest = ((stop - start) / step).round();
            let beyond = step.signum() * (start + nearest * step - stop) > tolerance;
            if beyond { nearest - 1.0 } else { nearest }
        };
        if count >= (1u64 << 53) as f64 {
            return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
        }
        let mut last = start + count * step;
        if last == stop {
            // For a zero, this is the one that was written, with its sign.
            last = stop;
        } else if !whole {
            let tolerance = 2.0 * epsilon * start.abs().max(stop.abs());
            if step.signum() * (last - stop) > -tolerance {
                last = stop;
            }
        }
        Ok(Length::Steps(Span { first: start, step, last, steps: count.max(0.0) as usize, is_whole: whole }))
    }

    /// Returns the range that a loop runs over, which may be endless; `None` if it is empty.
    ///
    /// # Errors
    /// Ranges with too many elements to count.
    pub(crate) fn looped(start: f64, step: f64, stop: f64) -> Flow<Option<Span>> {
        let is_endless = (start.is_infinite() || stop.is_infinite()) && step.is_finite() && (stop - start) * step > 0.0;
        if is_endless {
            return Ok(Some(Span { first: start, step, last: stop, steps: usize::MAX - 1, is_whole: true }));
        }
        Ok(match Span::of(start, step, stop, f64::EPSILON)? {
            Length::Empty => None,
            Length::Nan => Some(Span { first: f64::NAN, step, last: f64::NAN, steps: 0, is_whole: false }),
            Length::Steps(span) => Some(span),
        })
    }

    /// Returns the number of elements.
    pub(crate) fn count(&self) -> usize {
        self.steps + 1
    }

    /// All elements.
    fn elements(&self) -> Vec<f64> {
        let count = self.count();
        let mut values = Vec::with_capacity(count);
        match i32::try_from(count) {
            // The most frequent ranges are made without a test for each element. The first element may be -0.
            Ok(count) if self.is_whole => {
                values.push(self.first);
                values.extend((1..count).map(|i| self.first + f64::from(i) * self.step));
                if let [_, .., last] = &mut values[..] {
                    *last = self.last;
                }
            }
            _ => values.extend((0..count).map(|i| self.at(i))),
        }
        values
    }

    /// Returns an element.
    #[inline]
    pub(crate) fn at(&self, i: usize) -> f64 {
        let n = self.steps;
        if i == 0 {
            return self.first;
        }
        if i == n {
            return self.last;
        }
        if self.is_whole {
            return self.first + i as f64 * self.step;
        }
        if 2 * i == n {
            (self.first + self.last) / 2.0
        } else if 2 * i < n {
            self.first + i as f64 * self.step
        } else {
            self.last - (n - i) as f64 * self.step
        }
    }
}

/// Returns the number of steps of a range of whole numbers. A limit that is only a rounding error short of the next
/// number reaches it.
fn whole_steps(steps: f64) -> f64 {
    let next = steps.ceil();
    if next - steps <= 3.0 * f64::EPSILON * next.abs() { next } else { steps.floor() }
}

/// A limit or step: its value, its class, and whether it was empty.
struct Limit {
    value: f64,
    exact: i128,
    class: Class,
    empty: bool,
}

fn limit(env: &mut Env, value: &Value) -> Flow<Limit> {
    if let Value::Num(x) = value {
        return Ok(Limit { value: *x, exact: *x as i128, class: Class::Double, empty: false });
    }
    let class = value.class();
    if !class.is_numeric() && class != Class::Char {
        return fail!("invalid types found in range expression");
    }
    let host = env.host(value)?;
    if host.is_empty() {
        return Ok(Limit { value: 0.0, exact: 0, class, empty: true });
    }
    if host.len() > 1 {
        env.warn("", "colon arguments should be scalars");
    }
    if host.data.is_complex() {
        env.warn("", "imaginary part of complex colon arguments is ignored");
    }
    let value = host.data.f64_at(0);
    let exact = match &*host.data {
        Data::I64(v) => v[0] as i128,
        Data::U64(v) => v[0] as i128,
        _ => value as i128,
    };
    Ok(Limit { value, exact, class, empty: false })
}

/// Makes `start:step:stop`.
///
/// # Errors
/// Operands that are not real numbers, integer classes that do not mix, ranges without end.
pub(crate) fn range(env: &mut Env, start: &Value, step: Option<&Value>, stop: &Value) -> Flow<Value> {
    env.host_all([Some(start), step, Some(stop)].into_iter().flatten())?;
    let (first, last) = (limit(env, start)?, limit(env, stop)?);
    let one = Value::Num(1.0);
    let by = limit(env, step.unwrap_or(&one))?;
    let classes = [first.class, by.class, last.class];
    if first.empty || by.empty || last.empty {
        return Ok(empty(Class::Double));
    }
    if let Some(&class) = classes.iter().find(|c| c.is_integer()) {
        if classes.iter().any(|&c| c.is_integer() && c != class || c == Class::Single) {
            return fail!("incompatible types found in range expression");
        }
        return integers(env, class, &first, &by, &last);
    }
    let single = classes.contains(&Class::Single);
    let chars = first.class == Class::Char || last.class == Class::Char;
    let epsilon = if single { f32::EPSILON as f64 } else { f64::EPSILON };
    let round = |x: f64| if single { x as f32 as f64 } else { x };
    let class = if single { Class::Single } else { Class::Double };
    let span = match Span::of(round(first.value), round(by.value), round(last.value), epsilon)? {
        Length::Empty => return Ok(empty(class)),
        Length::Nan => return Ok(Value::tensor(Tensor::scalar(super::operand::in_class(class, vec![f64::NAN])))),
        Length::Steps(span) => span,
    };
    let count = span.count();
    env.check_elements(&[1, count])?;
    if count > env.options.host_elements_max && !chars {
        return recorded(env, span, class);
    }
    let values = span.elements();
    let data = super::operand::in_class(if chars { Class::Char } else { class }, values);
    let mut tensor = Tensor::new(Dims::new(&[1, count]), data);
    if class == Class::Double && !chars && count > 1 {
        tensor.form = Form::Range { limit: last.value };
    }
    Ok(Value::tensor(tensor))
}

fn empty(class: Class) -> Value {
    Value::tensor(Tensor::zeros(class, Dims::new(&[1, 0])))
}

/// Records a long range on the runtime: the same elements by the same formulas.
fn recorded(env: &mut Env, span: Span, class: Class) -> Flow<Value> {
    let n = span.steps;
    if span.is_whole && class == Class::Double {
        let array = env.session.arange(span.first, span.first + (n as f64 + 0.5) * span.step, span.step);
        // A range of the runtime begins at 0 where a script's range begins at -0.
        let is_negative_zero = span.first == 0.0 && span.first.is_sign_negative();
        let array = if is_negative_zero { array.eq_to(0.0).select(-0.0, &array) } else { array };
        // As an index, this range is a slice.
        return Ok(Lazy::new(array, class, Pinned::default(), false)?.with_steps(span.first, span.step).value());
    }
    let index = env.session.arange(0.0f64, n as f64 + 0.5, 1.0);
    let array = {
        let front = &index * span.step + span.first;
        let back = -((n as f64 - &index) * span.step) + span.last;
        let halves = index.le(n as f64 / 2.0 - 0.25).select(&front, &back);
        let middle = index.eq_to(n as f64 / 2.0);
        if n.is_multiple_of(2) { middle.select((span.first + span.last) / 2.0, &halves) } else { halves }
    };
    match class {
        Class::Single => lazy::record(env, array.cast::<f32>(), class, Pinned::default(), false),
        // Used as an index, this range reports which of its elements is no integer.
        _ => Ok(Lazy::new(array, class, Pinned::default(), false)?.with_steps(span.first, span.step).value()),
    }
}

fn integers(env: &mut Env, class: Class, first: &Limit, by: &Limit, last: &Limit) -> Flow<Value> {
    let (least, greatest) = class.integer_range().unwrap_or((0, 0));
    let name = |what: &str, range: bool| {
        let also = if range { " or out of range for given integer type" } else { "" };
        format!("colon operator {what} invalid (not an integer{also})")
    };
    let whole = |l: &Limit| l.class.is_integer() || l.value.trunc() == l.value;
    let within = |l: &Limit| whole(l) && (least..=greatest).contains(&l.exact);
    if !within(first) {
        return fail!("{}", name("lower bound", true));
    }
    if !within(last) {
        return fail!("{}", name("upper bound", true));
    }
    if !whole(by) {
        return fail!("{}", name("increment", false));
    }
    let (start, step, stop) = (first.exact, by.exact, last.exact);
    if step == 0 || (step > 0) != (stop >= start) && start != stop {
        return Ok(empty(class));
    }
    let count = (((stop - start) / step) as usize).saturating_add(1);
    env.check_elements(&[1, count])?;
    if count > env.options.host_elements_max
        && let Some(array) = recorded_integers(env, class, start, step, count)
    {
        return lazy::record(env, array, class, Pinned::default(), false);
    }
    let at = |i: usize| start + step * i as i128;
    let data = if super::operand::is_wide(class) {
        super::operand::in_wide_class(class, (0..count).map(at))
    } else {
        super::operand::in_class(class, (0..count).map(|i| at(i) as f64).collect())
    };
    Ok(Value::tensor(Tensor::new(Dims::new(&[1, count]), data)))
}

/// Records a long range of integers on the runtime; `None` for classes that it lacks, and beyond the integers of f64.
fn recorded_integers(env: &Env, class: Class, start: i128, step: i128, count: usize) -> Option<tidemill::Array> {
    let dtype = class.dtype()?;
    let last = start + step * (count as i128 - 1);
    let exact = |x: i128| x.abs() < 1 << 53;
    if !exact(start) || !exact(last) || !exact(step) {
        return None;
    }
    let stop = last as f64 + 0.5 * step as f64;
    Some(env.session.arange(start as f64, stop, step as f64).cast_to(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(start: f64, step: f64, stop: f64) -> Vec<f64> {
        match Span::of(start, step, stop, f64::EPSILON) {
            Ok(Length::Steps(span)) => {
                let elements = span.elements();
                assert!((0..=span.steps).map(|i| span.at(i)).eq(elements.iter().copied()));
                elements
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn ranges_are_built_from_both_ends() {
        assert_eq!(elements(0.0, 0.1, 0.3), [0.0, 0.1, 0.3 - 0.1, 0.3]);
        let tenths = elements(0.0, 0.1, 1.0);
        assert_eq!(tenths.len(), 11);
        assert_eq!((tenths[3], tenths[5], tenths[7]), (0.1 * 3.0, 0.5, 1.0 - 3.0 * 0.1));
        assert_eq!(elements(1.0, 0.2, 2.0), [1.0, 1.2, 1.4, 2.0 - 0.2 * 2.0, 1.8, 2.0]);
        assert_eq!(elements(5.0, -2.0, 0.0), [5.0, 3.0, 1.0]);
        assert!(elements(-0.0, 1.0, 1.0)[0].is_sign_negative());
        assert!(elements(3.0, -1.0, -0.0)[3].is_sign_negative());
        assert!(elements(1.0, 0.0, 3.0).is_empty());
        assert!(elements(5.0, 1.0, 1.0).is_empty());
        assert_eq!(elements(1.0, f64::INFINITY, 3.0), [1.0]);
        assert_eq!(elements(0.0, 1.0, 2.9), [0.0, 1.0, 2.0]);
    }
}
