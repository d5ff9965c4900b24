//! The wgpu device and queue: encode, submit, stage, read back, time-stamp, recover.
