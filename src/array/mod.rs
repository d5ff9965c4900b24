//! What the user holds: Runtime, Session, Array, Gather. Must never touch a device.
