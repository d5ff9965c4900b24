//! Keys of random ops. The key decides which numbers an op draws.
//!
//! In: a session's seed and stream, and the number of random ops that it has recorded. Out: the key of the next one.

use super::tape::Home;
use crate::graph::RandomKey;
use crate::ids::SessionId;

/// Where the random numbers of a session stand: [`Session::random_state`](super::Session::random_state). Three numbers,
/// which can be stored and set again, in any session of any program: the same numbers follow, on every device, for the
/// same ops.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// use tidemill::RandomState;
/// let s = rt.session("first").seed(7).open();
/// s.rand::<f32>(10);
/// let RandomState { seed, stream, ops } = s.random_state();
/// let next = s.rand::<f64>(5).gather_blocking::<f64>()?;
///
/// let other = rt.session("second").open();
/// other.set_random_state(RandomState { seed, stream, ops });
/// assert_eq!(other.rand::<f64>(5).gather_blocking::<f64>()?.as_slice(), next.as_slice());
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RandomState {
    /// The seed: [`SessionBuilder::seed`](super::SessionBuilder::seed).
    pub seed: u64,
    /// The stream: [`SessionBuilder::stream`](super::SessionBuilder::stream).
    pub stream: u64,
    /// How many random ops were recorded under this seed and stream: the number of the next one.
    pub ops: u64,
}

impl Home {
    /// The key of the next random op.
    pub fn next_random_key(&self) -> RandomKey {
        let mut tape = self.tape.lock();
        let RandomState { seed, stream, ops } = tape.random;
        tape.random.ops = ops.wrapping_add(1);
        random_key(seed, stream, ops)
    }
}

/// The key of the random op number `count` of a session with this seed and stream.
///
/// Philox's counter holds the stream (64 bits), the low 32 bits of the op's number and 32 bits of the element's. The
/// high bits of the op's number change the seed, which is Philox's key. So streams of one seed stay distinct, and a
/// session beyond 2^32 random ops draws another session's numbers only if two 64-bit seeds are equal by chance. The
/// high bits do not change the stream, because other sessions of the same seed use the neighbouring streams.
fn random_key(seed: u64, stream: u64, count: u64) -> RandomKey {
    // The multiplier is not that of default seeds. With the same one, the sum of two seeds would come up twice.
    let change = mixed((count >> 32).wrapping_mul(0xd134_2543_de82_ef95));
    RandomKey { seed: seed ^ change, stream, op: count as u32 }
}

/// A seed that follows from the session's number: neighbours get unrelated seeds.
pub(super) fn default_seed(session: SessionId) -> u64 {
    mixed(session.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). It maps 0
/// to 0.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ops_below_two_to_the_32_have_the_seeds_own_key_and_later_ones_share_none() {
        let last = random_key(7, 9, u64::from(u32::MAX));
        assert_eq!((last.seed, last.stream, last.op), (7, 9, u32::MAX));
        let next = random_key(7, 9, 1 << 32);
        assert_eq!((next.stream, next.op), (9, 0));
        // No session of the same seed has these numbers, whatever its stream is, and no stretch of its own ops.
        let mut seeds: Vec<u64> = (0..1000u64).map(|high| random_key(7, 9, high << 32).seed).collect();
        // Sessions with default seeds, each far into its ops.
        for session in 0..100 {
            let seed = default_seed(SessionId(session));
            seeds.extend((0..100u64).map(|high| random_key(seed, 9, high << 32).seed));
        }
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
