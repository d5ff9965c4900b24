//! The WGSL writer: Kernel to text.
