//! Structure as words: what a value hashes, written down, so that two values are compared by all of it and not by a hash.

use std::hash::Hasher;

/// Appends to a list what is hashed: a word for each number, and for bytes their length and as many words as they take.
#[derive(Debug)]
pub struct Words<'a, V>(pub &'a mut V);

impl<V: Extend<u64>> Hasher for Words<'_, V> {
    fn finish(&self) -> u64 {
        unreachable!("the words are compared, and not their hash")
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
