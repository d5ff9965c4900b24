//! The wgpu instance of the process.
//!
//! In: the environment variable `WGPU_BACKEND`. Out: one instance. Must hold: nothing here talks to a window system:
//! with the instance extensions of Wayland and X11, Mesa's device-select layer connects to a display to ask which GPU
//! it is on, and prints an error where `XDG_RUNTIME_DIR` is not set, which it is in few services. Nothing of the
//! process's environment is changed.

use std::sync::OnceLock;

/// The wgpu instance of the process. Creating one loads the drivers, and it holds no state of a runtime.
pub(super) fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let backends = wgpu::Backends::PRIMARY.with_env();
        let flags = wgpu::InstanceFlags::empty().with_env();
        windowless(backends, flags).unwrap_or_else(|| {
            wgpu::Instance::new(wgpu::InstanceDescriptor {
                backends,
                flags,
                ..wgpu::InstanceDescriptor::new_without_display_handle()
            })
        })
    })
}

/// An instance with Vulkan only, without the extensions for windows. `None` if there is no Vulkan, or if another
/// backend is asked for.
#[cfg(target_os = "linux")]
fn windowless(backends: wgpu::Backends, flags: wgpu::InstanceFlags) -> Option<wgpu::Instance> {
    type Vulkan = wgpu::hal::api::Vulkan;
    if !backends.contains(wgpu::Backends::VULKAN) {
        return None;
    }
    let descriptor = wgpu::hal::InstanceDescriptor {
        name: "tidemill",
        flags,
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds::default(),
        backend_options: wgpu::BackendOptions::default(),
        telemetry: None,
        display: None,
    };
    let leave_out: Box<wgpu::hal::vulkan::CreateInstanceCallback<'_>> =
        Box::new(|asked| asked.extensions.retain(|extension| !is_of_windows(extension)));
    // SAFETY: what is left out is what an installation without windows lacks, too: wgpu asks for these extensions only
    // where they are there, and looks whether they are before it makes a surface, which this program never does.
    let hal = unsafe { wgpu::hal::vulkan::Instance::init_with_callback(&descriptor, Some(leave_out)) }.ok()?;
    // SAFETY: it was just made, and is handed over.
    Some(unsafe { wgpu::Instance::from_hal::<Vulkan>(hal) })
}

#[cfg(not(target_os = "linux"))]
fn windowless(_backends: wgpu::Backends, _flags: wgpu::InstanceFlags) -> Option<wgpu::Instance> {
    None
}

/// Whether an instance extension is for windows of Wayland or X11.
#[cfg(target_os = "linux")]
fn is_of_windows(extension: &std::ffi::CStr) -> bool {
    [c"VK_KHR_wayland_surface", c"VK_KHR_xcb_surface", c"VK_KHR_xlib_surface"].contains(&extension)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_instance_knows_of_no_window_system() {
        type Vulkan = wgpu::hal::api::Vulkan;
        // SAFETY: the instance is only asked for names.
        let Some(vulkan) = (unsafe { super::instance().as_hal::<Vulkan>() }) else { return };
        let extensions = vulkan.shared_instance().extensions();
        assert!(!extensions.iter().any(|extension| super::is_of_windows(extension)), "{extensions:?}");
    }
}
