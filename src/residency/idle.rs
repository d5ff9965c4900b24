//! Returns unused memory of the pools to the system.
//!
//! In: `IdlePassed`. Out: buffers for the devices to drop. Must hold: RES-2, RES-3; a buffer that was in use since the
//! previous `IdlePassed` stays, so that steady work keeps its pools.

use super::state::State;
use crate::contract::messages::residency::ResidencyOutput;

/// Fewest bytes that one event releases of a device; of more than that, it releases half.
const STEP_BYTES_MIN: u64 = 1 << 20;

impl State {
    /// Releases half of the buffers that have held no slot since the last call, or all free ones.
    pub(super) fn idle_passed(&mut self, all: bool, out: &mut Vec<ResidencyOutput>) {
        for device in &mut self.devices {
            let pool = &mut device.pool;
            let mark = std::mem::replace(&mut device.idle_mark, pool.clock());
            if device.stalled {
                continue;
            }
            let since = if all { u64::MAX } else { mark };
            let unused = pool.unused_bytes(since);
            let mut left = if all { unused } else { (unused / 2).max(STEP_BYTES_MIN) };
            let mut buffers = Vec::new();
            while left > 0 {
                let Some((buffer, bytes)) = pool.trim_unused(since) else { break };
                buffers.push(buffer);
                // The device whose memory is counted in the host's budget keeps dropped buffers on its shelf, which
                // counts what it returns to the system.
                if !device.info.capabilities.owns_host_budget {
                    self.totals.bytes_returned += bytes;
                }
                left = left.saturating_sub(bytes);
            }
            device.drop_behind(buffers, out);
        }
    }
}
