//! The device: `gpuArray`, `gather`, `wait`, `gpuDevice`.
//!
//! In: values. Out: the same values, pinned to the device or gathered to the host. Must hold: only `gather` and `wait`
//! make a script wait, and they do so by a need.

use crate::builtins::args::is_word;
use crate::builtins::derivatives::as_dlarray;
use crate::builtins::record::{lift, pin, record};
use crate::builtins::reduce::reductions::type_name;
use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::env::Env;
use crate::error::{Flow, Need, Stop, fail};
use crate::index::Values;
use crate::value::{Lazy, Pinned, StructArray, Tensor, Value};
use crate::vm::Interp;
use rustc_hash::FxHashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tidemill::frontend;

macro_rules! on_device {
    ($name:literal, $of:literal) => {
        row($name, 0, ANY, 1, $name, "As the function without the prefix, on the device.", |i, a, n| made(i, $of, a, n))
    };
}

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("gpuArray", 0, 1, 1, "gpuArray (x)", "An array on the device, which stays there.", gpu_array),
    row("gather", 1, ANY, ANY, "[x, y, ...] = gather (a, b, ...)", "Arrays brought to host memory.", gather),
    row("isgpuarray", 1, 1, 1, "isgpuarray (x)", "Whether an array is on the device by gpuArray.", |_, a, _| {
        Ok(Value::Bool(a[0].is_pinned()).into())
    }),
    row("existsOnGPU", 1, 1, 1, "existsOnGPU (x)", "Whether an array is on the device and can be used.", |_, a, _| {
        Ok(Value::Bool(a[0].is_pinned()).into())
    }),
    row("gpuDevice", 0, 1, 1, "gpuDevice (index)", "What the device is.", gpu_device),
    row("gpuDeviceCount", 0, 1, 1, "gpuDeviceCount ()", "How many GPUs there are.", |i, _, _| {
        let gpus = i.env.session.devices().iter().filter(|d| d.is_accelerator()).count();
        Ok(Value::from(gpus).into())
    }),
    row("canUseGPU", 0, 0, 1, "canUseGPU ()", "Whether there is a GPU.", |i, _, _| {
        Ok(Value::Bool(i.env.session.devices().iter().any(|d| d.is_accelerator())).into())
    }),
    row("wait", 0, 2, 0, "wait (gpuDevice)", "Waits until every variable has its value.", wait),
    on_device!("gpuArray.zeros", "zeros"),
    on_device!("gpuArray.ones", "ones"),
    on_device!("gpuArray.Inf", "Inf"),
    on_device!("gpuArray.inf", "Inf"),
    on_device!("gpuArray.NaN", "NaN"),
    on_device!("gpuArray.nan", "NaN"),
    on_device!("gpuArray.eye", "eye"),
    on_device!("gpuArray.rand", "rand"),
    on_device!("gpuArray.randn", "randn"),
    on_device!("gpuArray.randi", "randi"),
    on_device!("gpuArray.randperm", "randperm"),
    on_device!("gpuArray.linspace", "linspace"),
    on_device!("gpuArray.logspace", "logspace"),
    on_device!("gpuArray.colon", "colon"),
    on_device!("gpuArray.true", "true"),
    on_device!("gpuArray.false", "false"),
];

/// Pins a value to the device. Values for which the runtime has no arrays stay in host memory and are counted in the
/// statistics; scripts see them as arrays of the device.
///
/// # Errors
/// A value that is no array.
pub fn pinned(env: &Env, value: &Value) -> Flow<Value> {
    let kind = match value {
        _ if value.is_pinned() => return Ok(value.clone()),
        Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_) => value,
        _ => return fail!("gpuArray: arrays of type '{}' are not supported on the device", type_name(value)),
    };
    if let Some(array) = lift(env, kind)? {
        return pin(env, record(array, value.class(), &[])?);
    }
    env.has_pinned.store(true, Ordering::Relaxed);
    let what = if value.is_complex() { "complex numbers" } else { value.class_name() };
    frontend::ran_elsewhere(&env.session, &format!("gpuArray of {what}: kept in host memory"), 1);
    let tensor = env.host(value)?;
    let seen = tensor.seen_as(tensor.dims.clone());
    Ok(Value::Tensor(Arc::new(Tensor { pinned: true, ..seen })))
}

/// Puts a value on the device if one of its sources is there, and makes it a `dlarray` if one of them is.
///
/// # Errors
/// Those of [`pinned`].
pub fn beside<'v>(env: &Env, sources: impl IntoIterator<Item = &'v Value>, value: Value) -> Flow<Value> {
    let is_array = matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
    if !is_array {
        return Ok(value);
    }
    pinned_as(env, value, sources.into_iter().map(Value::pinned).fold(Pinned::default(), |a, b| a | b))
}

/// Makes an array stay on the runtime for these reasons, too.
///
/// # Errors
/// Those of [`pinned`].
pub fn pinned_as(env: &Env, value: Value, as_those: Pinned) -> Flow<Value> {
    let value = if as_those.on_device { pinned(env, &value)? } else { value };
    if as_those.is_dlarray { as_dlarray(env, value) } else { Ok(value) }
}

/// Whether a function's results for arrays on the device are there, too.
pub fn stays_on_device(builtin: &Builtin) -> bool {
    static NAMES: OnceLock<FxHashSet<&'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let of_families = crate::builtins::families().iter().filter(|(title, _)| COMPUTE.contains(title));
        let mut names: FxHashSet<_> = of_families.flat_map(|(_, rows)| rows.iter().map(|row| row.name)).collect();
        names.extend(["cat", "horzcat", "vertcat"]);
        names.retain(|name| !TELL.contains(name));
        names
    });
    names.contains(builtin.name)
}

/// The families of functions that compute arrays from arrays.
const COMPUTE: &[&str] = &[
    "Shapes",
    "Functions of elements",
    "Functions of two arrays",
    "Bessel functions",
    "Bits",
    "Operators as functions",
    "Conversions",
    "Reductions",
    "Least and greatest",
    "Statistics",
    "Scans",
    "Sorting and finding",
    "Linear algebra",
    "Polynomials, interpolation, filters",
    "Convolution",
    "Fourier transforms",
    "Whole numbers and counting",
    "Sets",
];

/// Functions among them whose results are known without an array's elements.
const TELL: &[&str] = &["size", "numel", "ndims", "length", "columns", "rows", "isempty", "isnull", "sub2ind"];

fn gpu_array(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let empty = Value::empty();
    Ok(pinned(&interp.env, args.first().unwrap_or(&empty))?.into())
}

/// Calls the function of this name, and puts its results on the device.
fn made(interp: &mut Interp, name: &str, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let Some(builtin) = crate::builtins::find(name) else { return fail!("'{name}' undefined") };
    let mut args = args.to_vec();
    // Filled and random arrays are recorded on the device from the beginning.
    let here = ["zeros", "ones", "Inf", "NaN", "eye", "rand", "randn", "randi", "true", "false"];
    let seeds = args.first().is_some_and(|a| is_word(a, "seed") || is_word(a, "state"));
    if here.contains(&name) && !seeds {
        if args.is_empty() && name != "randi" {
            args.push(Value::Num(1.0));
        }
        args.push(Value::from("gpuArray"));
    }
    crate::builtins::check_call(builtin, args.len(), nargout, false)?;
    match builtin.call(interp, &args, nargout)? {
        Outcome::Values(values) => {
            let values = values.iter().map(|v| pinned(&interp.env, v)).collect::<Flow<Values>>()?;
            Ok(values.into())
        }
        task => Ok(task),
    }
}

fn gather(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let count = nargout.clamp(1, args.len());
    let values = args[..count].iter().map(|v| match v {
        // A dlarray remains one.
        Value::Lazy(l) if l.pinned.is_dlarray => {
            Ok(Lazy::new(l.array.clone(), l.class, Pinned::DLARRAY, l.may_fault)?.value())
        }
        Value::Lazy(_) => Ok(Value::held(env.host(v)?)),
        Value::Tensor(t) if t.pinned => {
            let seen = t.seen_as(t.dims.clone());
            Ok(Value::Tensor(Arc::new(Tensor { form: t.form, ..seen })))
        }
        other => Ok(other.clone()),
    });
    Ok(values.collect::<Flow<Values>>()?.into())
}

fn gpu_device(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let devices = interp.env.session.devices();
    let gpus: Vec<_> = devices.iter().filter(|d| d.is_accelerator()).collect();
    let index = match args.first().filter(|a| !a.is_empty()) {
        Some(n) => crate::builtins::args::number(&interp.env, "gpuDevice", n)?,
        None => 1.0,
    };
    let is_place = index >= 1.0 && index == index.trunc() && index <= gpus.len().max(1) as f64;
    // Without a GPU, the host counts as the device.
    let device = match is_place {
        true => gpus.get(index as usize - 1).copied().or(devices.first()),
        false => None,
    };
    let Some(device) = device else {
        return fail!("gpuDevice: there is no device {}", crate::builtins::args::short(index));
    };
    let mut s = StructArray::scalar();
    s.class = Some("parallel.gpu.CUDADevice");
    s.set("Name", Value::from(device.name.as_str()));
    s.set("Index", Value::Num(index));
    s.set("DriverVersion", Value::from(device.driver.as_str()));
    s.set("SupportsDouble", Value::Bool(device.has(tidemill::DType::F64)));
    s.set("TotalMemory", Value::Num(device.budget_bytes as f64));
    s.set("AvailableMemory", Value::Num(device.budget_bytes as f64));
    s.set("DeviceAvailable", Value::Bool(device.is_accelerator()));
    s.set("DeviceSelected", Value::Bool(true));
    Ok(Value::Struct(Arc::new(s)).into())
}

fn wait(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let _ = args;
    if interp.env.take_awaited().is_some() {
        return Ok(nothing());
    }
    let missing: Vec<_> = interp.live_values().into_iter().filter(|l| !l.is_checked()).collect();
    if missing.is_empty() { Ok(nothing()) } else { Err(Stop::Need(Need::Materialised(missing))) }
}
