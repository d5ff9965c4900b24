//! A sorted map for keys that mostly grow: [`Growing`].
//!
//! In: numbers, most of them larger than all before, each with a value. Out: the value of a number. Must hold:
//! GROW-1: an entry takes an offset beside its value, and little more: blocks are full where keys only grew, and at
//! least half full where they did not, as long as so many neighbours are no farther apart than an offset says.

/// Entries of a full block.
const BLOCK: usize = 128;

/// A map from numbers to values. Its offsets `O`, `u16` or `u32`, say how far apart the keys of a block may be.
pub(super) struct Growing<V, O> {
    /// Sorted by their keys, none of them empty.
    blocks: Vec<Block<V, O>>,
}

struct Block<V, O> {
    /// The least key.
    base: u64,
    /// The keys less `base`, sorted.
    offsets: Vec<O>,
    /// The value of each key.
    values: Vec<V>,
}

/// A number of 16 or 32 bits.
pub(super) trait Offset: Copy + Ord + Into<u64> + TryFrom<u64> {}

impl Offset for u16 {}
impl Offset for u32 {}

impl<V, O> Default for Growing<V, O> {
    fn default() -> Self {
        Growing { blocks: Vec::new() }
    }
}

impl<V, O: Offset> Growing<V, O> {
    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<&V> {
        let block = &self.blocks[self.block_of(key)?];
        block.place(key).ok().map(|at| &block.values[at])
    }

    /// Gives a key a value, unless it has one. Returns whether it had none.
    pub fn insert_new(&mut self, key: u64, value: impl FnOnce() -> V) -> bool {
        let Some(number) = self.block_of(key) else {
            self.insert_first(key, value());
            return true;
        };
        let block = &mut self.blocks[number];
        let Err(at) = block.place(key) else { return false };
        let Ok(offset) = O::try_from(key - block.base) else {
            self.blocks.insert(number + 1, Block::of(key, value(), 1));
            return true;
        };
        if block.offsets.len() < BLOCK {
            block.insert(at, offset, value());
        } else if number + 1 == self.blocks.len() && at == BLOCK {
            self.blocks.push(Block::of(key, value(), BLOCK));
        } else {
            // Behind a key of the last block that came late, more keys grow.
            let is_last = number + 1 == self.blocks.len();
            let behind = self.blocks[number].split(if is_last { at.clamp(BLOCK / 2, BLOCK - 1) } else { BLOCK / 2 });
            self.blocks.insert(number + 1, behind);
            // One of the two has room now.
            return self.insert_new(key, value);
        }
        true
    }

    /// Gives a key a value.
    pub fn insert(&mut self, key: u64, value: V) {
        let found = self.block_of(key).and_then(|number| Some((number, self.blocks[number].place(key).ok()?)));
        match found {
            Some((number, at)) => self.blocks[number].values[at] = value,
            None => _ = self.insert_new(key, || value),
        }
    }

    /// Inserts a key that is less than all others.
    fn insert_first(&mut self, key: u64, value: V) {
        let first = self.blocks.first_mut().filter(|first| first.offsets.len() < BLOCK);
        if let Some(first) = first
            && first.rebase(key)
            && let Ok(zero) = O::try_from(0)
        {
            first.insert(0, zero, value);
            return;
        }
        self.blocks.insert(0, Block::of(key, value, 1));
    }

    /// The block to whose keys a key belongs; `None` if the key is less than all.
    fn block_of(&self, key: u64) -> Option<usize> {
        match self.blocks.last() {
            Some(last) if last.base <= key => Some(self.blocks.len() - 1),
            _ => self.blocks.partition_point(|block| block.base <= key).checked_sub(1),
        }
    }
}

impl<V, O: Offset> Block<V, O> {
    fn of(key: u64, value: V, capacity: usize) -> Block<V, O> {
        let (mut offsets, mut values) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        offsets.extend(O::try_from(0));
        values.push(value);
        Block { base: key, offsets, values }
    }

    /// The place of a key that is not less than `base`, or where it would be inserted.
    fn place(&self, key: u64) -> Result<usize, usize> {
        match O::try_from(key - self.base) {
            // Most keys are inserted at the end.
            Ok(offset) if self.offsets.last().is_some_and(|last| *last < offset) => Err(self.offsets.len()),
            Ok(offset) => self.offsets.binary_search(&offset),
            Err(_) => Err(self.offsets.len()),
        }
    }

    fn insert(&mut self, at: usize, offset: O, value: V) {
        self.offsets.insert(at, offset);
        self.values.insert(at, value);
    }

    /// Makes another key the base. Returns false, having changed nothing, where the last offset would be too large.
    fn rebase(&mut self, base: u64) -> bool {
        let own = self.base;
        let moved = |offset: O| O::try_from((own + offset.into()) - base).ok();
        if self.offsets.last().is_some_and(|last| moved(*last).is_none()) {
            return false;
        }
        self.offsets.iter_mut().for_each(|offset| *offset = moved(*offset).unwrap_or(*offset));
        self.base = base;
        true
    }

    /// Takes the entries from a place on out of a block.
    fn split(&mut self, at: usize) -> Block<V, O> {
        let mut behind =
            Block { base: self.base, offsets: self.offsets.split_off(at), values: self.values.split_off(at) };
        self.offsets.shrink_to_fit();
        self.values.shrink_to_fit();
        if let Some(first) = behind.offsets.first().copied() {
            behind.rebase(self.base + first.into());
        }
        behind
    }
}

#[cfg(test)]
impl<V, O> Growing<V, O> {
    /// The bytes that it takes, apart from what values own.
    pub fn bytes(&self) -> usize {
        let of_block =
            |block: &Block<V, O>| block.offsets.capacity() * size_of::<O>() + block.values.capacity() * size_of::<V>();
        self.blocks.capacity() * size_of::<Block<V, O>>() + self.blocks.iter().map(of_block).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use std::collections::BTreeMap;

    /// Inserts keys into a map and into one of the standard library, and compares both after each.
    fn compare<O: Offset>(keys: impl Iterator<Item = u64>) -> Growing<u64, O> {
        let (mut map, mut expected) = (Growing::<u64, O>::default(), BTreeMap::new());
        for (n, key) in (0..).zip(keys) {
            if n % 3 == 0 {
                map.insert(key, n);
                expected.insert(key, n);
            } else {
                assert_eq!(map.insert_new(key, || n), !expected.contains_key(&key), "{key}");
                expected.entry(key).or_insert(n);
            }
            for near in [key, key.wrapping_sub(1), key.wrapping_add(1)] {
                assert_eq!(map.get(near), expected.get(&near), "{near}");
            }
        }
        assert!(expected.iter().all(|(key, value)| map.get(*key) == Some(value)));
        assert!(map.blocks.iter().all(|block| !block.offsets.is_empty() && block.offsets.len() <= BLOCK));
        map
    }

    fn compare_all<O: Offset>() {
        let mut dice = Dice(7);
        compare::<O>((0..3000).map(|_| dice.next() % 500));
        compare::<O>((0..3000).map(|_| dice.next()));
        compare::<O>((0..3000).map(|n| n * 5 + dice.next() % 40));
        compare::<O>((0..3000).rev());
        compare::<O>((0..3000).map(|n| u64::MAX - n * (1 << 26)));
        compare::<O>((0..3000).map(|n| n * 700 % 1_000_003));
        compare::<O>((0..400).map(|n| n << 33));
    }

    #[test]
    fn it_holds_what_a_map_of_the_standard_library_holds() {
        compare_all::<u16>();
        compare_all::<u32>();
    }

    #[test]
    fn keys_that_grow_fill_blocks_and_others_fill_half_of_them() {
        let each = |map: Growing<u64, u16>| map.bytes() as f64 / 100_000.0;
        let grown = each(compare(0..100_000));
        assert!(grown < 11.0, "{grown}");
        let falling = each(compare((0..100_000).rev()));
        assert!(falling < 22.0, "{falling}");
        let mut dice = Dice(3);
        let nearly = each(compare((0..100_000).map(|n| n * 4 + dice.next() % 9)));
        assert!(nearly < 22.0, "{nearly}");
    }
}
