//! Structure as words. It records the input of a hash, so that two values are compared as a whole and not by their
//! hashes.

use std::hash::Hasher;

/// A hasher that appends its input to a list: a word for each number; for bytes, their length and then the words that
/// hold them.
#[derive(Debug)]
pub struct Words<'a, V>(pub &'a mut V);

impl<V: Extend<u64>> Hasher for Words<'_, V> {
    fn finish(&self) -> u64 {
        unreachable!("the words are compared, not their hash")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(bytes.len() as u64);
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number as u64);
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number as u64);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.extend(Some(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}
