//! Ids that cross actor boundaries. The state behind an id has one owner (ARCHITECTURE.md); all other actors hold the
//! id only.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(/// One script or program on a runtime.
    SessionId(u64));
id!(/// One gather or eval: a demand with a future behind it.
    GatherId(u64));
id!(/// A closed, placed piece of the graph. Numbered in the order in which the scheduler cuts them.
    RegionId(u64));
id!(/// One submission to a device.
    BatchId(u64));
id!(/// One allocation on one device.
    BufferId(u64));
id!(/// A device of a runtime: 0 is always the host.
    DeviceId(u8));

impl DeviceId {
    /// The host device, which every runtime has.
    pub const HOST: DeviceId = DeviceId(0);
    /// The GPU of a runtime that has one or may open one on demand.
    pub const GPU: DeviceId = DeviceId(1);
}

/// One array value: the session that recorded it, and its number in that session's program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId {
    /// The session that recorded the value.
    pub session: SessionId,
    /// Its number in program order.
    pub index: u64,
}

impl std::fmt::Display for ValueId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}.{}", self.session.0, self.index)
    }
}
