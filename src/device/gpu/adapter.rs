//! Finds and ranks adapters, opens one, and describes what it can do.
//!
//! In: the settings. Out: an opened device and its [`DeviceInfo`]. The order of [`adapters`] is what `gpu:N` counts
//! in: discrete before integrated before virtual before software.

use super::instance::instance;
use super::raw_device::{Gpu, HEALTH_WAIT};
use super::spare::{self, AdapterKey};
use crate::config::Config;
use crate::contract::device::{
    Capabilities, Costs, DeviceInfo, DeviceKind, Features, SEGMENTS_IN_MEMORY, segment_shift,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::DeviceId;
use crate::kernels::matmul::WIDE_TILES_BYTES;
use crate::kernels::target::FloatProfile;
use parking_lot::Mutex;

/// Upper limit on the storage buffers of a kernel, since some drivers claim millions. The limit on ops in a kernel
/// keeps kernels below this.
const BINDINGS_CAP: u32 = 256;
/// Storage buffers that a kernel needs at the least.
const BINDINGS_MIN: u32 = 8;
/// Shared slabs serve slots up to this size.
const SLAB_SLOT_BYTES_MAX: u64 = 64 << 10;

/// An adapter, as `tidemill info` shows it.
#[derive(Clone, Debug)]
pub struct AdapterSummary {
    /// Its number in `gpu:N`.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Driver and API, as text.
    pub driver: String,
    /// It is a software adapter, which runs on the CPU.
    pub software: bool,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// The optional features that it supports.
    pub features: Features,
    /// Bytes one binding may span.
    pub binding_bytes_max: u64,
    /// Bytes one buffer may have.
    pub buffer_bytes_max: u64,
    /// Estimated bytes of its memory.
    pub memory_bytes: u64,
}

/// An opened adapter.
pub(super) struct Opened {
    /// Its number in [`adapters`].
    pub(super) index: usize,
    /// The device.
    pub(super) gpu: Gpu,
    /// The adapter's own description.
    pub(super) about: wgpu::AdapterInfo,
    /// The granted features.
    pub(super) features: wgpu::Features,
    /// The granted limits.
    pub(super) limits: wgpu::Limits,
    /// Estimated bytes of its memory.
    pub(super) memory_bytes: u64,
}

/// Held while any runtime of this process opens a device. Drivers were seen to handle concurrent openings badly; and a
/// runtime that waits here may get the device that another one has returned meanwhile (`spare.rs`).
pub(super) static OPENING: Mutex<()> = Mutex::new(());

/// Adapters that can run kernels, best first. Empty without a driver.
pub fn adapters() -> Vec<AdapterSummary> {
    let summary = |(index, adapter): (usize, &wgpu::Adapter)| {
        let about = adapter.get_info();
        let limits = adapter.limits();
        AdapterSummary {
            index,
            driver: driver_words(&about),
            software: is_software(&about),
            kind: kind_word(about.device_type),
            features: features_of(adapter.features()),
            binding_bytes_max: limits.max_storage_buffer_binding_size,
            buffer_bytes_max: limits.max_buffer_size,
            memory_bytes: memory_bytes(adapter, &about),
            name: about.name,
        }
    };
    ranked().iter().enumerate().map(summary).collect()
}

/// The descriptions of all adapters.
#[cfg(test)]
pub(super) fn abouts() -> Vec<wgpu::AdapterInfo> {
    ranked().iter().map(wgpu::Adapter::get_info).collect()
}

/// Whether there is a hardware adapter.
pub fn has_hardware() -> bool {
    ranked().iter().any(|adapter| !is_software(&adapter.get_info()))
}

/// Whether there is an adapter of this number, or any.
///
/// # Errors
/// `ErrorKind::Device` if there is none. The message lists the adapters that exist, or says what to install.
pub fn find(index: Option<usize>) -> Result<()> {
    let all = ranked();
    if index.unwrap_or(0) < all.len() { Ok(()) } else { Err(missing(index, &all)) }
}

/// Opens an adapter by its number, or the best.
pub(super) fn open(index: Option<usize>, config: &Config) -> Result<Opened> {
    let all = ranked();
    let wanted = index.unwrap_or(0);
    let Some(adapter) = all.get(wanted) else {
        return Err(missing(index, &all));
    };
    config.injection().opening().map_err(|error| error.with_device(adapter.get_info().name))?;
    let features = wanted_features(adapter.features(), config);
    match spare_device(AdapterKey { index: wanted, about: adapter.get_info() }, features) {
        Some(gpu) => Ok(opened(adapter, wanted, features, gpu)),
        None => open_adapter(adapter, wanted, features, 0),
    }
}

/// A device of this adapter that an earlier runtime has left, if it still answers.
fn spare_device(adapter: AdapterKey, features: wgpu::Features) -> Option<Gpu> {
    std::iter::from_fn(|| spare::take(&adapter, features))
        .map(|spare| Gpu::new(spare.adapter, spare.device, spare.queue, 0))
        .find(|gpu| {
            let answers = gpu.wait_idle(HEALTH_WAIT);
            if !answers {
                gpu.mark_lost("it does not answer after it had nothing to do");
            }
            answers
        })
}

/// Opens the same adapter again after its device was lost.
pub(super) fn reopen(index: usize, name: &str, features: wgpu::Features, generation: u32) -> Result<Opened> {
    let _alone = OPENING.lock();
    let all = look();
    let same = |i: &usize| all.get(*i).is_some_and(|a| a.get_info().name == name);
    let found = Some(index).filter(same).or_else(|| (0..all.len()).find(same));
    match found {
        Some(at) => open_adapter(&all[at], at, features, generation),
        None => Err(Error::new(ErrorKind::Device, format!("the adapter {name} is gone"))),
    }
}

fn open_adapter(adapter: &wgpu::Adapter, index: usize, features: wgpu::Features, generation: u32) -> Result<Opened> {
    let asked = adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("tidemill"),
        required_features: features,
        required_limits: adapter.limits(),
        ..Default::default()
    });
    let (device, queue) = pollster::block_on(asked).map_err(|e| {
        Error::new(ErrorKind::Device, format!("the adapter could not be opened: {e}"))
            .with_device(adapter.get_info().name)
    })?;
    let gpu = Gpu::new(AdapterKey { index, about: adapter.get_info() }, device, queue, generation);
    Ok(opened(adapter, index, features, gpu))
}

fn opened(adapter: &wgpu::Adapter, index: usize, features: wgpu::Features, gpu: Gpu) -> Opened {
    let about = adapter.get_info();
    let memory_bytes = memory_bytes(adapter, &about);
    Opened { index, gpu, about, features, limits: adapter.limits(), memory_bytes }
}

/// The description of the device for the other actors.
pub(super) fn device_info(
    opened: &Opened,
    id: DeviceId,
    config: &Config,
    profile: FloatProfile,
    costs: Costs,
) -> DeviceInfo {
    let limits = &opened.limits;
    let binding_bytes_max = limits.max_storage_buffer_binding_size & !15;
    let memory_bytes = opened.memory_bytes / 5 * 4;
    let budget_bytes = config.device_budget.unwrap_or(memory_bytes);
    let shares = matches!(opened.about.device_type, wgpu::DeviceType::Cpu | wgpu::DeviceType::IntegratedGpu);
    let span_bytes = binding_bytes_max.min(limits.max_buffer_size);
    let segments_min = if config.device_budget.is_some() { SEGMENTS_IN_BUDGET } else { SEGMENTS_IN_MEMORY };
    let injection = config.injection();
    let mut features = features_of(opened.features);
    features.f64 &= limits.max_compute_workgroup_storage_size >= WIDE_TILES_BYTES;
    DeviceInfo {
        id,
        kind: DeviceKind::Gpu,
        capabilities: Capabilities::of(DeviceKind::Gpu),
        name: opened.about.name.clone(),
        driver: driver_words(&opened.about),
        software: is_software(&opened.about) && !injection.software_serves(),
        features,
        profile,
        precision: config.precision,
        costs,
        binding_bytes_max,
        buffer_bytes_max: limits.max_buffer_size,
        bindings_max: bindings(limits).min(injection.bindings_max().unwrap_or(BINDINGS_CAP)),
        line_invocations_max: limits.max_compute_invocations_per_workgroup,
        immediate_words_max: immediate_words(opened),
        budget_bytes,
        memory_bytes: memory_bytes.max(budget_bytes),
        budget_is_set: config.device_budget.is_some(),
        host_share_bytes: if shares && config.host_budget.is_none() { budget_bytes } else { 0 },
        segment_shift: injection
            .segment_shift()
            .unwrap_or_else(|| segment_shift(span_bytes.min(budget_bytes / segments_min))),
        span_shift: injection.span_shift().unwrap_or_else(|| segment_shift(span_bytes)),
        slab_slot_bytes_max: SLAB_SLOT_BYTES_MAX,
        batches_in_flight_max: config.batches_in_flight.max(1),
    }
}

/// Fewest segments in a budget that the program set, since kernels use several segments at a time.
const SEGMENTS_IN_BUDGET: u64 = 16;

/// Usable adapters, best first, in a stable order. They are enumerated once per process, because some drivers are slow
/// at this and print messages.
fn ranked() -> Vec<wgpu::Adapter> {
    static FOUND: Mutex<Vec<wgpu::Adapter>> = Mutex::new(Vec::new());
    let mut found = FOUND.lock();
    if found.is_empty() {
        *found = look();
    }
    found.clone()
}

/// As [`ranked`], but enumerates again.
fn look() -> Vec<wgpu::Adapter> {
    let mut all = pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()));
    all.retain(|adapter| {
        let limits = adapter.limits();
        limits.max_compute_invocations_per_workgroup >= 256 && bindings(&limits) >= BINDINGS_MIN
    });
    all.sort_by_key(|adapter| rank(adapter.get_info().device_type));
    all
}

fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn kind_word(kind: wgpu::DeviceType) -> &'static str {
    match kind {
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Cpu => "software",
        wgpu::DeviceType::Other => "other",
    }
}

fn is_software(about: &wgpu::AdapterInfo) -> bool {
    about.device_type == wgpu::DeviceType::Cpu
}

fn driver_words(about: &wgpu::AdapterInfo) -> String {
    let words = [about.driver.as_str(), about.driver_info.as_str()];
    let words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
    format!("{} ({:?})", words.join(" "), about.backend)
}

fn bindings(limits: &wgpu::Limits) -> u32 {
    limits.max_storage_buffers_per_shader_stage.min(limits.max_bindings_per_bind_group)
}

/// Most words of immediates (push constants) of a pipeline.
fn immediate_words(opened: &Opened) -> u32 {
    let has = opened.features.contains(wgpu::Features::IMMEDIATES);
    if has { opened.limits.max_immediate_size / 4 } else { 0 }
}

fn missing(index: Option<usize>, all: &[wgpu::Adapter]) -> Error {
    let message = match index {
        Some(n) if !all.is_empty() => {
            let names: Vec<String> =
                all.iter().enumerate().map(|(i, a)| format!("gpu:{i} is {}", a.get_info().name)).collect();
            format!("there is no adapter gpu:{n}; {}", names.join(", "))
        }
        _ => "no GPU adapter was found: install a Vulkan driver for your GPU (on Debian or Ubuntu, \
              `apt install mesa-vulkan-drivers` brings drivers and a software one), or choose the device `host`"
            .to_owned(),
    };
    Error::new(ErrorKind::Device, message)
}

/// Feature names as `Injection::without_features` spells them.
const FEATURES: [(&str, wgpu::Features); 7] = [
    ("f64", wgpu::Features::SHADER_F64),
    ("i64", wgpu::Features::SHADER_INT64),
    ("subgroups", wgpu::Features::SUBGROUP),
    (
        "timestamps",
        wgpu::Features::TIMESTAMP_QUERY
            .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
            .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES),
    ),
    ("mappable", wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
    ("pipeline_cache", wgpu::Features::PIPELINE_CACHE),
    ("immediates", wgpu::Features::IMMEDIATES),
];

fn wanted_features(has: wgpu::Features, config: &Config) -> wgpu::Features {
    FEATURES
        .iter()
        .filter(|(name, _)| !config.injection().lacks(name))
        .fold(wgpu::Features::empty(), |all, (_, feature)| all | (*feature & has))
}

fn features_of(has: wgpu::Features) -> Features {
    // Time-stamps are written by the encoder, before and after the commands of a submission.
    let stamps = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
    Features {
        f64: has.contains(wgpu::Features::SHADER_F64),
        i64: has.contains(wgpu::Features::SHADER_INT64),
        subgroups: has.contains(wgpu::Features::SUBGROUP),
        timestamps: has.contains(stamps),
        mappable: has.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
        pipeline_cache: has.contains(wgpu::Features::PIPELINE_CACHE),
    }
}

/// Estimates an adapter's memory in bytes: half of the machine's for a software adapter; the largest device-local heap
/// if Vulkan reports it; otherwise a cautious guess. The heap of an integrated GPU may be all of the machine's memory,
/// so at most half of that is used.
fn memory_bytes(adapter: &wgpu::Adapter, about: &wgpu::AdapterInfo) -> u64 {
    let half = machine_memory_bytes() / 2;
    match about.device_type {
        wgpu::DeviceType::Cpu => half,
        wgpu::DeviceType::IntegratedGpu => vulkan_heap_bytes(adapter).unwrap_or(8 << 30).min(half),
        wgpu::DeviceType::DiscreteGpu => vulkan_heap_bytes(adapter).unwrap_or(8 << 30),
        _ => vulkan_heap_bytes(adapter).unwrap_or(half.min(8 << 30)),
    }
}

#[cfg(any(target_os = "linux", target_os = "windows"))]
fn vulkan_heap_bytes(adapter: &wgpu::Adapter) -> Option<u64> {
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: the handle is only asked for properties, and lives as long as the adapter.
    let vulkan = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = vulkan.shared_instance().raw_instance();
    // SAFETY: the physical device belongs to this instance.
    let memory = unsafe { instance.get_physical_device_memory_properties(vulkan.raw_physical_device()) };
    let heaps = &memory.memory_heaps[..memory.memory_heap_count as usize];
    heaps.iter().filter(|h| h.flags.as_raw() & DEVICE_LOCAL != 0).map(|h| h.size).max()
}

#[cfg(not(any(target_os = "linux", target_os = "windows")))]
fn vulkan_heap_bytes(_adapter: &wgpu::Adapter) -> Option<u64> {
    None
}

/// The machine's memory in bytes; 8 GiB if the system does not report it.
fn machine_memory_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    told.map_or(8 << 30, |kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_the_largest_power_of_two_of_wide_elements_that_fits() {
        assert_eq!(segment_shift(128 << 20), 25);
        assert_eq!(segment_shift((128 << 20) - 16), 24);
        assert_eq!(segment_shift((64 << 20) / SEGMENTS_IN_BUDGET), 20);
        assert_eq!(segment_shift(0), 13);
    }

    #[test]
    fn left_out_features_are_not_asked_for() {
        let mut config = Config::default();
        config.injection.without_features = vec!["f64", "timestamps"];
        let wanted = wanted_features(wgpu::Features::all(), &config);
        let features = features_of(wanted);
        assert!(!features.f64 && !features.timestamps);
        assert!(features.i64 && features.subgroups && features.mappable && features.pipeline_cache);
    }

    #[test]
    fn a_missing_adapter_is_an_error_that_says_what_to_install() {
        let error = missing(None, &[]);
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.message().contains("mesa-vulkan-drivers"), "{error}");
    }
}
