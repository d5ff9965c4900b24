//! Sets of working nodes, inputs or clusters: a bit for each.

/// A set of working nodes or inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// An empty set over `size` members.
    pub fn new(size: usize) -> Bits {
        Bits(vec![0; size.div_ceil(64)])
    }

    /// Adds a member.
    pub fn insert(&mut self, member: u32) {
        self.0[member as usize / 64] |= 1 << (member % 64);
    }

    /// Takes a member away.
    pub fn remove(&mut self, member: u32) {
        self.0[member as usize / 64] &= !(1 << (member % 64));
    }

    /// Whether it is a member.
    pub fn contains(&self, member: u32) -> bool {
        self.0[member as usize / 64] >> (member % 64) & 1 == 1
    }

    /// Whether it is a member, also of a number beyond the set.
    pub fn has(&self, member: u32) -> bool {
        self.0.get(member as usize / 64).is_some_and(|word| word >> (member % 64) & 1 == 1)
    }

    /// Adds all of another set.
    pub fn union(&mut self, other: &Bits) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    /// How many members.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    /// Whether they share a member.
    pub fn meets(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    i as u32 * 64 + bit
                })
            })
        })
    }
}
