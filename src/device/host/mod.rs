//! The CPU as a device: the same plans on worker threads.
