//! Recording: turns operands and a rule into a node on a tape, a folded value, or a carried fault.
//!
//! In: operands, an op, its result's dtype and shape. Out: an [`Array`].
//! Invariants:
//! - RECORD-1: the first operand's fault wins, and nothing is recorded for it.
//! - RECORD-2: no node without elements reaches a tape: an empty result is known at once.
//! - RECORD-3: only elementwise ops and fills take numbers as arguments; elsewhere a number is a `Fill` node.
//! - RECORD-4: results computed from a pinned array are pinned. If operands are pinned to several devices, a GPU wins
//!   over the host. Ops on values that are pinned to a GPU do not fold.
//! - RECORD-5: an operand is a number or an array, and an op has an array among its operands.

use super::factorials;
use super::fold;
use super::handle::{Array, Recorded};
use super::operand::{Kind, Operand};
use super::plain;
use super::strict;
use super::tape::{Home, Tape};
use super::wide;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::table::DTypeRule;
use crate::graph::wide::LIMIT;
use crate::graph::{Arg, ArgType, DType, ElementOp, Meta, Op, Scalar, Shape, Signature};
use crate::graph::{mixed, wide as exact};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, SessionId, ValueId};
use crate::stats::Counters;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most operands of an elementwise op.
pub(super) const OPERANDS_MAX: usize = 3;

/// The source line of the program's call.
pub(crate) type At = &'static Location<'static>;

/// An argument of a node that is being recorded.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// An array without a fault.
    Array(&'a Array),
    /// The same, if the caller drops this handle right after the op.
    Last(&'a Array),
    /// A number in the dtype in which the op computes.
    Number(Scalar),
}

impl Input<'_> {
    /// The array of this input; `None` for a number.
    pub fn array(&self) -> Option<&Array> {
        match self {
            Input::Number(_) => None,
            Input::Array(array) | Input::Last(array) => Some(array),
        }
    }

    /// The elements, if they are known on the host.
    pub fn known(&self) -> Option<fold::Known<'_>> {
        match self {
            Input::Number(n) => Some(fold::Known::Number(*n)),
            Input::Array(a) | Input::Last(a) => {
                Some(fold::Known::Buffer(a.0.host.as_deref()?, &a.0.meta.as_ref().ok()?.shape))
            }
        }
    }

    /// The device to which it is pinned.
    fn pin(&self) -> Option<DeviceId> {
        match self {
            Input::Number(_) => None,
            Input::Array(a) | Input::Last(a) => a.1,
        }
    }
}

/// The first fault among the operands, or the session whose tape records their op. That is the session of the first
/// operand that only its own session may use, or of the first operand if there is none.
///
/// # Errors
/// RECORD-1; `ErrorKind::Ownership` for arrays of two runtimes, or of two sessions of which neither array was shared.
pub(crate) fn common_home<'a>(arrays: impl Iterator<Item = &'a Array> + Clone) -> Result<&'a Arc<Home>> {
    // In nearly all calls, all arrays are of one session and without a fault.
    let mut rest = arrays.clone();
    if let Some(first) = rest.next()
        && first.error().is_none()
        && rest.all(|array| array.error().is_none() && Arc::ptr_eq(&first.0.home, &array.0.home))
    {
        return Ok(&first.0.home);
    }
    let mut home: Option<(&'a Arc<Home>, bool)> = None;
    for array in arrays.clone() {
        if let Some(fault) = array.error() {
            return Err(fault.clone());
        }
        let candidate = &array.0.home;
        home = match home {
            None => Some((candidate, array.portable())),
            Some((current, portable)) if Arc::ptr_eq(current, candidate) => {
                Some((current, portable && array.portable()))
            }
            Some((current, _)) if !Arc::ptr_eq(&current.link, &candidate.link) => return Err(two_runtimes()),
            Some((_, true)) if !array.portable() => Some((candidate, false)),
            Some(current) => Some(current),
        };
    }
    let (home, _) = home.ok_or_else(|| Error::new(ErrorKind::Argument, "the op needs an array"))?;
    for array in arrays.filter(|array| !Arc::ptr_eq(home, &array.0.home)) {
        check_readable(home, array)?;
    }
    Ok(home)
}

fn two_runtimes() -> Error {
    Error::new(ErrorKind::Ownership, "arrays of two runtimes do not mix")
}

/// Checks that ops of a session may read an array of another one.
///
/// # Errors
/// `ErrorKind::Ownership` for an array of another runtime, and for one that was not shared.
pub(crate) fn check_readable(home: &Arc<Home>, array: &Array) -> Result<()> {
    if !Arc::ptr_eq(&home.link, &array.0.home.link) {
        return Err(two_runtimes());
    }
    if !array.portable() {
        return Err(Error::new(
            ErrorKind::Ownership,
            format!(
                "an op has arrays of the sessions '{}' and '{}', neither of which was evaluated or shared: call share() on \
                 one of them first (the results of ops on shared arrays alone belong to the session that shared them, \
                 unless the other session adopts them)",
                &*array.0.home.name, &*home.name
            ),
        ));
    }
    Ok(())
}

/// Records the result that `build` derives from `arrays` (at least one), or returns an array that carries the fault.
pub(crate) fn derive(
    arrays: &[&Array],
    name: &'static str,
    at: At,
    build: impl FnOnce(&Arc<Home>, &[&Meta]) -> Result<Array>,
) -> Array {
    let result = common_home(arrays.iter().copied()).and_then(|home| {
        let metas = arrays.iter().map(|a| a.meta()).collect::<Result<SmallVec<[&Meta; 3]>>>()?;
        build(home, &metas)
    });
    let pin = arrays.iter().fold(None, |pin, a| pin.max(a.1));
    match result {
        // This also pins arrays for which `build` recorded no node (RECORD-4).
        Ok(array) => array.pinned(pin),
        Err(error) => Array::faulty(&arrays[0].0.home, error, name, at),
    }
}

/// The result of recording an op.
enum Made {
    /// An array that is known, or that carries a fault.
    Array(Array),
    /// A node without a handle yet.
    Node(Recorded),
}

impl Made {
    fn handle(self, home: &Arc<Home>) -> Array {
        match self {
            Made::Array(array) => array,
            Made::Node(recorded) => recorded.handle(home.clone()),
        }
    }
}

/// The result of an op: folded if all arguments are known and small, else a node on the tape.
pub(crate) fn node(home: &Arc<Home>, op: Op, inputs: &[Input<'_>], meta: Meta, at: At) -> Array {
    make(home, op, inputs, meta, at).handle(home)
}

fn make(home: &Arc<Home>, op: Op, inputs: &[Input<'_>], meta: Meta, at: At) -> Made {
    let note = home.watches.are_any().then(|| home.watches.note(&op, inputs, &meta, home.site(at))).flatten();
    let made = fold_or_push(home, op, inputs, meta, at);
    let Some(note) = note else { return made };
    let array = made.handle(home);
    note.done(&array);
    Made::Array(array)
}

fn fold_or_push(home: &Arc<Home>, op: Op, inputs: &[Input<'_>], meta: Meta, at: At) -> Made {
    let elements = meta.elements();
    // `DeviceId`s are in order: the host, then GPUs.
    let pin = inputs.iter().fold(None, |pin, input| input.pin().max(pin));
    if elements == 0 {
        let data = HostBuffer::zeroed(meta.dtype, 0);
        return Made::Array(Array::host(home, meta, data, op.name(), at).pinned(pin));
    }
    if folds(home, elements, pin) {
        let known: Option<SmallVec<[fold::Known<'_>; 3]>> = inputs.iter().map(|i| i.known()).collect();
        if let Some(data) = known.and_then(|known| fold::evaluate(&op, &known, &meta)) {
            Counters::add(&home.link.counters.ops_folded, 1);
            return Made::Array(Array::host(home, meta, data, op.name(), at).pinned(pin));
        }
    }
    push(home, op, inputs, meta, pin, at)
}

/// Whether an op with this many elements on known data is computed at once.
pub(crate) fn folds(home: &Home, elements: usize, pin: Option<DeviceId>) -> bool {
    elements <= home.fold_elements_max && pin.is_none_or(|device| home.link.devices.is_fallback(device))
}

/// The array that carries the error if a session has no room for a source with this many elements; `None` if it has.
/// `from_slice` and similar functions ask before they copy the elements.
pub(crate) fn refused_source(home: &Arc<Home>, elements: usize, name: &'static str, at: At) -> Option<Array> {
    if elements <= home.fold_elements_max {
        return None;
    }
    home.begin_op().err().map(|error| Array::faulty(home, error, name, at))
}

/// Host data as an array: known at once if it is tiny, else a source on the tape.
pub(crate) fn source(home: &Arc<Home>, data: HostBuffer, shape: Shape, name: &'static str, at: At) -> Array {
    let meta = Meta { dtype: data.dtype(), shape };
    if data.len() <= home.fold_elements_max || data.is_empty() {
        return Array::host(home, meta, data, name, at);
    }
    push(home, Op::Source(data.shared()), &[], meta, None, at).handle(home)
}

/// Puts a node on the tape.
fn push(home: &Arc<Home>, op: Op, inputs: &[Input<'_>], meta: Meta, pin: Option<DeviceId>, at: At) -> Made {
    let name = op.name();
    let is_source = matches!(op, Op::Source(_));
    let numbers = op.facts().scalars.keeps_numbers();
    let (mut tape, before) = match home.begin_op() {
        Ok(begun) => begun,
        Err(error) => return Made::Array(Array::faulty(home, error, name, at)),
    };
    let mut temporaries = SmallVec::<[ValueId; 2]>::new();
    let mut args = SmallVec::<[Arg; 2]>::new();
    let mut fault = None;
    for input in inputs {
        match resolve(home, &mut tape, input, numbers, &mut temporaries, at) {
            Ok(arg) => args.push(arg),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    let pushed = match fault {
        None => home.push_op(&mut tape, op, &args, &meta, pin, at),
        Some(error) => Err(error),
    };
    for value in temporaries {
        tape.push_drop(value.session, value.index);
    }
    if pushed.is_ok() {
        for input in inputs {
            if let Input::Last(array) = input {
                home.let_go(&mut tape, array);
            }
        }
    }
    let segment = tape.segment;
    home.end_push(tape, before);
    match pushed {
        Ok(index) => {
            Made::Node(Recorded { session: home.id, index, segment, meta, source: is_source, pin, op: name, at })
        }
        Err(error) => Made::Array(Array::faulty(home, error, name, at)),
    }
}

/// The argument for an input. If the op needs a known value on the tape, its data is recorded (RECORD-3).
fn resolve(
    home: &Arc<Home>,
    tape: &mut Tape,
    input: &Input<'_>,
    numbers: bool,
    temporaries: &mut SmallVec<[ValueId; 2]>,
    at: At,
) -> Result<Arg> {
    let array = match input {
        Input::Number(number) if numbers => return Ok(Arg::Scalar(*number)),
        Input::Number(number) => {
            let meta = Meta { dtype: number.dtype(), shape: Shape::scalar() };
            let index = home.push_op(tape, Op::Fill, &[Arg::Scalar(*number)], &meta, None, at)?;
            let value = ValueId { session: home.id, index };
            temporaries.push(value);
            return Ok(Arg::Value(value));
        }
        Input::Array(array) | Input::Last(array) => *array,
    };
    let own = Arc::ptr_eq(&array.0.home, home);
    let Some(data) = &array.0.host else {
        if !own {
            tape.hold_foreign(array.clone());
        }
        // One of several nodes of an op may not have been recorded, because the session may be closed.
        array.meta()?;
        return array
            .id()
            .map(Arg::Value)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "RECORD-1: a value without number"));
    };
    if numbers && data.len() == 1 {
        return Ok(Arg::Scalar(data.scalar(0)));
    }
    if let (true, Some(value)) = (own, array.id()) {
        return Ok(Arg::Value(value));
    }
    let meta = array.meta()?;
    let index = match data.len() {
        1 => home.push_op(tape, Op::Fill, &[Arg::Scalar(data.scalar(0))], meta, None, at)?,
        _ => home.push_op(tape, Op::Source(data.clone()), &[], meta, None, at)?,
    };
    let value = ValueId { session: home.id, index };
    if own {
        debug_assert_eq!(array.0.index.get(Ordering::Relaxed), None);
        array.0.segment.store(tape.segment, Ordering::Relaxed);
        array.0.index.set(Some(index), Ordering::Release);
    } else {
        temporaries.push(value);
    }
    Ok(Arg::Value(value))
}

/// Records an elementwise op with implicit expansion and MATLAB's dtype rules. If an owned operand is the last handle
/// of its value, it becomes the result's handle.
pub(crate) fn apply(op: ElementOp, operands: &mut [Operand<'_>], at: At) -> Array {
    match plain::apply(op, operands, at) {
        Some(array) => array,
        None => apply_any(op, operands, at),
    }
}

#[inline(never)]
fn apply_any(op: ElementOp, operands: &mut [Operand<'_>], at: At) -> Array {
    let settled = strict::settle(op, operands);
    let arrays = operands.iter().filter_map(Operand::array);
    let made = common_home(arrays).and_then(|home| {
        settled?;
        if home.is_strict() {
            strict::check(op, operands)?;
        }
        match rewritten(op, operands, at) {
            Some(array) => Ok(Made::Array(array)),
            None => try_apply(home, op, operands, at),
        }
    });
    let of = |session: SessionId| move |operand: &Operand<'_>| operand.array().is_some_and(|a| a.0.home.id == session);
    match made {
        Ok(Made::Array(array)) => array,
        Ok(Made::Node(recorded)) => {
            let home = operands.iter().position(of(recorded.session)).expect("RECORD-5: an operand's session records");
            plain::handle(recorded, operands, home)
        }
        Err(error) => {
            let mut arrays = operands.iter().filter_map(Operand::array);
            let first = arrays.next().expect("RECORD-5: an op has an array among its operands");
            Array::faulty(&first.0.home, error, op.name(), at)
        }
    }
}

/// Ops that are recorded as other ops: those on i64 beside numbers that i64 does not hold, and the gamma function of
/// integers.
fn rewritten(op: ElementOp, operands: &[Operand<'_>], at: At) -> Option<Array> {
    if op == ElementOp::Gamma {
        let of_integers = |array: &&Array| array.dtype().is_ok_and(|dtype| !dtype.is_float());
        return operands.first().and_then(Operand::array).filter(of_integers).map(|array| factorials::of(array, at));
    }
    wide::exactly(op, operands, at)
}

fn try_apply(home: &Arc<Home>, op: ElementOp, operands: &[Operand<'_>], at: At) -> Result<Made> {
    let shape = common_shape(operands)?;
    if let Some(made) = beside_numbers(home, op, operands, &shape, at) {
        return Ok(made);
    }
    let mut types = [ArgType { dtype: DType::Bool, weak: false, scalar: false }; OPERANDS_MAX];
    let mut count = 0;
    for ty in operands.iter().filter_map(Operand::arg_type) {
        types[count] = ty;
        count += 1;
    }
    let signature = signature_of(op, operands, &mut types[..count])?;

    // Casts are recorded first; `casts` keeps them until the op is on the tape.
    let to = |i: usize| if op == ElementOp::Select && i == 0 { DType::Bool } else { signature.compute };
    let mut casts: [Option<Array>; OPERANDS_MAX] = [const { None }; OPERANDS_MAX];
    for (i, operand) in operands.iter().enumerate() {
        if let Some(array) = operand.array()
            && array.meta()?.dtype != to(i)
        {
            casts[i] = Some(cast_in(home, array, to(i), at));
        }
    }
    let mut inputs = [Input::Number(Scalar::Bool(false)); OPERANDS_MAX];
    for (i, operand) in operands.iter().enumerate() {
        inputs[i] = match (&operand.0, &casts[i]) {
            (Kind::Number(number), _) => Input::Number(number.cast(to(i))),
            (_, Some(cast)) => Input::Last(cast),
            (Kind::Borrowed(array), None) => Input::Array(array),
            (Kind::Last(array), None) => Input::Last(array),
            (Kind::Owned(array), None) => Input::Last(array),
            (Kind::Beyond(number), _) => return Err(strict::beyond(*number, to(i))),
        };
    }
    let inputs = &inputs[..operands.len()];
    let made = make(home, Op::Apply(op), inputs, Meta { dtype: signature.output, shape }, at);
    if signature.result == signature.output {
        return Ok(made);
    }
    let result = made.handle(home);
    match &result.0.meta {
        Err(_) => Ok(Made::Array(result)),
        Ok(meta) => {
            let meta = Meta { dtype: signature.result, shape: meta.shape.clone() };
            Ok(make(home, Op::Apply(ElementOp::Cast), &[Input::Last(&result)], meta, at))
        }
    }
}

/// Records an op on integers of one class of up to 32 bits beside plain numbers, or on i64, without casts. The device
/// chooses the dtype in which it computes (`mixed`), and the numbers are no part of its structure.
fn beside_numbers(home: &Arc<Home>, op: ElementOp, operands: &[Operand<'_>], shape: &Shape, at: At) -> Option<Made> {
    if !mixed::takes(op) || operands.len() != op.info().arity {
        return None;
    }
    let class = operands.iter().find_map(Operand::array)?.dtype().ok()?;
    let is_wide = class == DType::I64 && exact::takes(op);
    if !is_wide && !mixed::is_class(class) {
        return None;
    }
    let mut inputs = [Input::Number(Scalar::Bool(false)); OPERANDS_MAX];
    let mut numbers = 0;
    for (input, operand) in inputs.iter_mut().zip(operands) {
        *input = match &operand.0 {
            // A whole number beside i64 is itself i64, since f64 may not hold it.
            Kind::Number(Scalar::I64(_)) if is_wide => return None,
            Kind::Number(number @ (Scalar::F64(_) | Scalar::F32(_) | Scalar::I64(_))) => {
                numbers += 1;
                Input::Number(number.cast(DType::F64))
            }
            Kind::Number(_) | Kind::Beyond(_) => return None,
            Kind::Borrowed(array) => Input::Array(array),
            Kind::Last(array) => Input::Last(array),
            Kind::Owned(array) => Input::Last(array),
        };
    }
    let alike = operands.iter().filter_map(Operand::array).all(|array| array.dtype().is_ok_and(|dtype| dtype == class));
    if numbers == 0 || !alike {
        return None;
    }
    let dtype = if op.info().rule == DTypeRule::Comparison { DType::Bool } else { class };
    Some(make(home, Op::Apply(op), &inputs[..operands.len()], Meta { dtype, shape: shape.clone() }, at))
}

/// The shape that the arrays expand to.
fn common_shape(operands: &[Operand<'_>]) -> Result<Shape> {
    let mut arrays = operands.iter().filter_map(Operand::array);
    let Some(first) = arrays.next() else { return Ok(Shape::scalar()) };
    let first = &first.meta()?.shape;
    let mut expanded = None;
    for array in arrays {
        let shape = expanded.as_ref().unwrap_or(first);
        let own = &array.meta()?.shape;
        if shape != own || shape.axes() < own.axes() {
            expanded = Some(Shape::broadcast(shape, own)?);
        }
    }
    Ok(expanded.unwrap_or_else(|| first.clone()))
}

/// The op's signature. A number beside integers counts as an integer if it is exactly one, so that i64 stays exact
/// above 2^53. It counts as f64 if the integer dtype does not hold it.
pub(super) fn signature_of(op: ElementOp, operands: &[Operand<'_>], types: &mut [ArgType]) -> Result<Signature> {
    // The mask of `Select` does not take part in the mix of dtypes.
    let first = (op == ElementOp::Select) as usize;
    let integers = types[first..].iter().any(|t| !t.weak && t.dtype.is_integer());
    if integers {
        for (operand, ty) in operands.iter().zip(types.iter_mut()) {
            if let Kind::Number(Scalar::F64(v)) = operand.0
                && v.trunc() == v
                && (-LIMIT..LIMIT).contains(&v)
                && v.to_bits() != (-0.0f64).to_bits()
            {
                ty.dtype = DType::I64;
            }
        }
    }
    let signature = op.signature(types)?;
    if !integers || !signature.compute.is_integer() {
        return Ok(signature);
    }
    let mut fits = true;
    for (operand, ty) in operands.iter().zip(types.iter_mut()) {
        if let Kind::Number(number) = operand.0
            && number.cast(signature.compute).as_f64() != number.as_f64()
        {
            ty.dtype = DType::F64;
            fits = false;
        }
    }
    if fits { Ok(signature) } else { op.signature(types) }
}

/// The float dtype in which values of a dtype are computed: their own, or f64 for integers and bools.
///
/// # Errors
/// `ErrorKind::DType` if promotion is strict and f64 does not hold the integers.
pub(crate) fn float_dtype(home: &Arc<Home>, own: DType) -> Result<DType> {
    let dtype = if own.is_float() { own } else { DType::F64 };
    strict::converted(home, own, dtype)?;
    Ok(dtype)
}

/// The float dtype in which an op computes with several arrays: f32 if one of them has it, else f64.
///
/// # Errors
/// `ErrorKind::DType` if promotion is strict and that dtype does not hold one of the arrays' dtypes.
pub(crate) fn floats_dtype(home: &Arc<Home>, metas: &[&Meta]) -> Result<DType> {
    let is_single = metas.iter().any(|meta| meta.dtype == DType::F32);
    let dtype = if is_single { DType::F32 } else { DType::F64 };
    metas.iter().try_for_each(|own| strict::converted(home, own.dtype, dtype))?;
    Ok(dtype)
}

/// The array converted to floats: integers and bools become f64.
///
/// # Errors
/// The array's fault; the errors of [`float_dtype`].
pub(crate) fn as_floats(home: &Arc<Home>, array: &Array, at: At) -> Result<Array> {
    cast_in(home, array, float_dtype(home, array.dtype()?)?, at).checked()
}

/// The array in another dtype, recorded on `home`'s tape; the array itself if it already has this dtype.
pub(crate) fn cast_in(home: &Arc<Home>, array: &Array, to: DType, at: At) -> Array {
    match &array.0.meta {
        Ok(meta) if meta.dtype != to => {
            let meta = Meta { dtype: to, shape: meta.shape.clone() };
            node(home, Op::Apply(ElementOp::Cast), &[Input::Array(array)], meta, at)
        }
        _ => array.clone(),
    }
}
