//! The device: `gpuArray`, `gather`, `wait`, `gpuDevice`.
//!
//! In: values. Out: the same values, pinned to the device or brought to the host. Must hold: only `gather` and `wait`
//! make a script wait, and they do so by a need.

use super::args::is_word;
use super::record::{lift, pin, record};
use super::reductions::type_name;
use super::{ANY, Builtin, Outcome, nothing, row};
use crate::device::info::DeviceKind;
use crate::script::error::{Flow, Need, Stop, fail};
use crate::script::index::Values;
use crate::script::value::{StructArray, Value};
use crate::script::vm::Interp;
use std::sync::Arc;

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
        Ok(Value::Bool(matches!(&a[0], Value::Lazy(l) if l.pinned)).into())
    }),
    row("existsOnGPU", 1, 1, 1, "existsOnGPU (x)", "Whether an array is on the device and can be used.", |_, a, _| {
        Ok(Value::Bool(matches!(&a[0], Value::Lazy(l) if l.pinned)).into())
    }),
    row("gpuDevice", 0, 1, 1, "gpuDevice (index)", "What the device is.", gpu_device),
    row("gpuDeviceCount", 0, 1, 1, "gpuDeviceCount ()", "How many GPUs there are.", |i, _, _| {
        let gpus = i.env.session.devices().iter().filter(|d| d.kind == DeviceKind::Gpu).count();
        Ok(Value::from(gpus).into())
    }),
    row("canUseGPU", 0, 0, 1, "canUseGPU ()", "Whether there is a GPU.", |i, _, _| {
        Ok(Value::Bool(i.env.session.devices().iter().any(|d| d.kind == DeviceKind::Gpu)).into())
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

/// The value on the device.
///
/// # Errors
/// What the device has no arrays of.
pub fn pinned(interp: &Interp, value: &Value) -> Flow<Value> {
    match value {
        Value::Lazy(_) => pin(&interp.env, value.clone()),
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
            fail!("gpuArray: arrays of type '{}' are not supported on the device", type_name(value))
        }
        _ => match lift(&interp.env, value)? {
            Some(array) => pin(&interp.env, record(array, value.class(), &[])?),
            None if value.is_complex() => fail!("gpuArray: complex arrays are not yet on the device"),
            None => fail!("gpuArray: arrays of class {} are not yet on the device", value.class_name()),
        },
    }
}

fn gpu_array(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let empty = Value::empty();
    Ok(pinned(interp, args.first().unwrap_or(&empty))?.into())
}

/// Builds by the function of this name and puts what it gives on the device.
fn made(interp: &mut Interp, name: &str, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let Some(builtin) = super::find(name) else { return fail!("'{name}' undefined") };
    let mut args = args.to_vec();
    // Filled and random arrays are recorded there to begin with.
    let here = ["zeros", "ones", "Inf", "NaN", "eye", "rand", "randn", "randi", "true", "false"];
    let seeds = args.first().is_some_and(|a| is_word(a, "seed") || is_word(a, "state"));
    if here.contains(&name) && !seeds {
        if args.is_empty() && name != "randi" {
            args.push(Value::Num(1.0));
        }
        args.push(Value::from("gpuArray"));
    }
    super::check_call(builtin, args.len(), nargout, false)?;
    match (builtin.run)(interp, &args, nargout)? {
        Outcome::Values(values) => {
            let values = values.iter().map(|v| pinned(interp, v)).collect::<Flow<Values>>()?;
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
        Value::Lazy(_) => Ok(Value::held(env.host(v)?)),
        other => Ok(other.clone()),
    });
    Ok(values.collect::<Flow<Values>>()?.into())
}

fn gpu_device(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let devices = interp.env.session.devices();
    let gpus: Vec<_> = devices.iter().filter(|d| d.kind == DeviceKind::Gpu).collect();
    let index = match args.first().filter(|a| !a.is_empty()) {
        Some(n) => super::args::number(&interp.env, "gpuDevice", n)?,
        None => 1.0,
    };
    let is_place = index >= 1.0 && index == index.trunc() && index <= gpus.len().max(1) as f64;
    // Without a GPU, the host is the device.
    let device = match is_place {
        true => gpus.get(index as usize - 1).copied().or(devices.first()),
        false => None,
    };
    let Some(device) = device else {
        return fail!("gpuDevice: there is no device {}", super::args::short(index));
    };
    let mut s = StructArray::scalar();
    s.class = Some("parallel.gpu.CUDADevice");
    s.set("Name", Value::from(device.name.as_str()));
    s.set("Index", Value::Num(index));
    s.set("DriverVersion", Value::from(device.driver.as_str()));
    s.set("SupportsDouble", Value::Bool(device.has(crate::DType::F64)));
    s.set("TotalMemory", Value::Num(device.budget_bytes as f64));
    s.set("AvailableMemory", Value::Num(device.budget_bytes as f64));
    s.set("DeviceAvailable", Value::Bool(device.kind == DeviceKind::Gpu));
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
