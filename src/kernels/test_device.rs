//! The GPU device on which kernel tests run, opened once, and a validator of WGSL modules.
//!
//! Without an adapter, [`open`] returns `None` and prints that the test is skipped; with `TIDEMILL_REQUIRE_GPU=1` it
//! panics.

use std::sync::OnceLock;

/// An opened device.
pub(crate) struct TestDevice {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// Whether shaders may use f64.
    pub(crate) f64: bool,
    /// Whether shaders may use 64-bit integers.
    pub(crate) i64: bool,
    /// Storage buffers that a kernel may bind.
    pub(crate) bindings_max: u32,
}

/// The device of the default adapter.
pub(crate) fn open() -> Option<&'static TestDevice> {
    static DEVICE: OnceLock<Option<TestDevice>> = OnceLock::new();
    let device = DEVICE.get_or_init(open_first).as_ref();
    if device.is_none() {
        assert!(std::env::var_os("TIDEMILL_REQUIRE_GPU").is_none_or(|v| v != "1"), "no GPU adapter");
        eprintln!("no GPU adapter: this test is skipped");
    }
    device
}

fn open_first() -> Option<TestDevice> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok()?;
    let features = adapter.features() & (wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64);
    let limits = adapter.limits();
    let bindings_max = limits.max_storage_buffers_per_shader_stage;
    let descriptor =
        wgpu::DeviceDescriptor { required_features: features, required_limits: limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).ok()?;
    let (f64, i64) = (features.contains(wgpu::Features::SHADER_F64), features.contains(wgpu::Features::SHADER_INT64));
    Some(TestDevice { device, queue, f64, i64, bindings_max })
}

/// Parses and validates a WGSL module, as a device does. Panics if it is not valid.
pub(crate) fn validate(text: &str) {
    use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = wgpu::naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)));
    let capabilities = Capabilities::FLOAT64 | Capabilities::SHADER_INT64 | Capabilities::IMMEDIATES;
    if let Err(error) = Validator::new(ValidationFlags::all(), capabilities).validate(&module) {
        panic!("{}\n{text}", error.emit_to_string(text));
    }
}
