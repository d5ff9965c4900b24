//! Runs one compute module over buffers, for tests. The buffers are bindings 0, 1, .. of group 0.
//!
//! `kernels::test_device` opens the device, and says what happens if there is none.

use crate::graph::DType;
use crate::host_buffer::HostBuffer;
pub(crate) use crate::kernels::test_device::validate;
use crate::kernels::test_device::{self, TestDevice};

/// A device to test on.
pub(crate) type Gpu = TestDevice;

/// The device on which tests run.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    test_device::open()
}

/// The WGSL type of `width` elements in a buffer.
pub(crate) fn storage_type(dtype: DType, width: u32) -> String {
    let stored = if dtype == DType::Bool { DType::U32 } else { dtype };
    crate::kernels::wgsl::types::typed(stored, width)
}

/// A host buffer's elements as the words of a device's buffer.
pub(crate) fn words(buffer: &HostBuffer) -> Vec<u32> {
    (0..buffer.len()).flat_map(|i| buffer.scalar(i).words()).collect()
}

impl Gpu {
    fn buffer(&self, words: &[u32]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let size = words.len() as u64 * 4;
        let buffer =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        self.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        buffer
    }

    /// Runs `groups` workgroups of the module; returns the words of the last buffer.
    pub(crate) fn run(&self, text: &str, words: &[Vec<u32>], groups: u32) -> Vec<u32> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(text.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let buffers: Vec<wgpu::Buffer> = words.iter().map(|w| self.buffer(w)).collect();
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(n, buffer)| wgpu::BindGroupEntry { binding: n as u32, resource: buffer.as_entire_binding() })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let result = &buffers[buffers.len() - 1];
        let staged = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: result.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups, 1, 1);
        }
        encoder.copy_buffer_to_buffer(result, 0, &staged, 0, result.size());
        self.queue.submit([encoder.finish()]);
        if let Some(error) = pollster::block_on(scope.pop()) {
            panic!("{error}\n{text}");
        }
        staged.map_async(wgpu::MapMode::Read, .., |result| result.expect("a test's buffer maps"));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a test's device answers");
        let view = staged.get_mapped_range(..).expect("a mapped buffer");
        bytemuck::cast_slice::<u8, u32>(&view).to_vec()
    }
}
