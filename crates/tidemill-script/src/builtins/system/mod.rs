//! Functions with which a script asks about its process and the machine (`process`), the time (`clocks`), and the
//! devices of the runtime (`device`).

pub mod clocks;
pub mod device;
pub mod process;
