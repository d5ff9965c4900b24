//! The handle by which the ring holds a device: its description, its mailbox, its compiler and its threads.

use super::backend::{Compiler, UploadMemory};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceInstruction;
use std::sync::Arc;

/// Runs small instructions on the calling thread, in place of the driver's.
pub trait Inline: Send + Sync {
    /// Carries out an instruction at once, on the calling thread, if that is estimated to take at most `within_us`
    /// microseconds and all earlier instructions are finished. The caller has to make sure that the mailbox is empty
    /// and that no other thread sends to it meanwhile.
    ///
    /// # Errors
    /// Returns the instruction if it was not carried out. The caller then sends it to the mailbox.
    fn try_inline(&self, instruction: DeviceInstruction, within_us: f64) -> Result<(), DeviceInstruction>;
}

/// How the ring reaches a device.
#[derive(Clone)]
pub struct Reach {
    /// The sending end of the driver's mailbox.
    pub instructions: crossbeam_channel::Sender<DeviceInstruction>,
    /// Runs small instructions past the mailbox. `None` if every instruction has to go through the mailbox.
    pub inline: Option<Arc<dyn Inline>>,
}

impl Reach {
    /// A reach that sends every instruction to this mailbox.
    #[cfg(test)]
    pub fn by(instructions: crossbeam_channel::Sender<DeviceInstruction>) -> Reach {
        Reach { instructions, inline: None }
    }

    /// Gives the device an instruction. The calling thread may carry it out itself if it is estimated to take at most
    /// `within_us` microseconds; otherwise it goes to the mailbox. Returns false if the device has ended.
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
    /// The description of the device: capabilities, limits and measured constants.
    pub info: DeviceInfo,
    /// How to give it instructions.
    pub reach: Reach,
    /// Its compiler.
    pub compiler: Arc<dyn Compiler>,
    /// Memory that users may fill for it in place of host memory, if it has such memory.
    pub uploads: Option<Arc<dyn UploadMemory>>,
    /// Its threads, the driver's first. The shutdown joins them.
    pub threads: Vec<std::thread::JoinHandle<()>>,
}
