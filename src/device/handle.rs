//! How the ring holds a device: its numbers, its mailbox, its compiler.

use super::backend::{Compiler, UploadMemory};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceInstruction;
use std::sync::Arc;

/// Does small work on the thread of who asks for it.
pub trait Inline: Send + Sync {
    /// Carries out an instruction at once, on this thread, where that is estimated to take at most `within_us`
    /// microseconds and nothing that the device was told before is unfinished. Its mailbox is empty, and nobody else
    /// sends.
    ///
    /// # Errors
    /// The instruction, where it has to be sent.
    fn try_inline(&self, instruction: DeviceInstruction, within_us: f64) -> Result<(), DeviceInstruction>;
}

/// How the ring reaches a device.
#[derive(Clone)]
pub struct Reach {
    /// Its mailbox.
    pub instructions: crossbeam_channel::Sender<DeviceInstruction>,
    /// A way past the mailbox.
    pub inline: Option<Arc<dyn Inline>>,
}

impl Reach {
    /// By the mailbox alone.
    #[cfg(test)]
    pub fn by(instructions: crossbeam_channel::Sender<DeviceInstruction>) -> Reach {
        Reach { instructions, inline: None }
    }

    /// Gives an instruction; what is estimated to take at most `within_us` microseconds may be carried out here. False
    /// if the device has ended.
    pub fn give(&self, instruction: DeviceInstruction, within_us: f64) -> bool {
        let inline = self.inline.as_ref().filter(|_| self.instructions.is_empty());
        let left = match inline {
            Some(inline) => inline.try_inline(instruction, within_us),
            None => Err(instruction),
        };
        left.err().is_none_or(|instruction| self.instructions.send(instruction).is_ok())
    }
}

/// A running device.
pub struct DeviceHandle {
    /// Its numbers.
    pub info: DeviceInfo,
    /// The way to it.
    pub reach: Reach,
    /// Its compiler.
    pub compiler: Arc<dyn Compiler>,
    /// Memory that users may fill for it, where that is not host memory.
    pub uploads: Option<Arc<dyn UploadMemory>>,
    /// Its threads, the driver's first, joined at shutdown.
    pub threads: Vec<std::thread::JoinHandle<()>>,
}
