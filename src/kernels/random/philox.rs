//! Philox-4x32-10, a counter-based generator: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
//! 1, 2, 3", SC'11.
//!
//! In: a counter and a key. Out: four random words. Must hold: it gives the published known answers.

/// Factors of the two products of a round.
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The increments of the key's words from round to round.
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// The high and the low word of a product.
#[inline(always)]
fn product(a: u32, b: u32) -> (u32, u32) {
    let wide = a as u64 * b as u64;
    ((wide >> 32) as u32, wide as u32)
}

/// The four random words for a counter and a key.
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    for round in 0..ROUNDS {
        let key =
            [key[0].wrapping_add(STEPS[0].wrapping_mul(round)), key[1].wrapping_add(STEPS[1].wrapping_mul(round))];
        let (a_high, a_low) = product(FACTORS[0], a);
        let (c_high, c_low) = product(FACTORS[1], c);
        (a, b, c, d) = (c_high ^ b ^ key[0], c_low, a_high ^ d ^ key[1], a_low);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_known_answers_come_out() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32_10([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox4x32_10(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
