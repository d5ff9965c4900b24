//! Makes sure that recursion over nested texts and trees has enough stack.
//!
//! In: a step of a recursion. Out: its result. Must hold: nesting within the stated limits overflows no stack, even in
//! a build without optimisation on a small stack, such as an executor's worker has.

/// Stack that must be free before a step. One step of any recursion takes far less, even without optimisation.
const ROOM_BYTES: usize = 128 << 10;
/// Stack that must be free before a tree of the greatest permitted height is dropped. Its steps are small and check for
/// room nowhere in between.
const TREE_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 512 << 10 };
/// The size of the piece of stack that is added when too little is free.
const PIECE_BYTES: usize = 8 << 20;

/// Takes a step of a recursion, on a new piece of stack if this one has little room left.
pub fn with_room<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM_BYTES, PIECE_BYTES, step)
}

/// Makes or drops a tree, with enough stack for its greatest permitted height.
pub fn with_room_for_a_tree<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(TREE_BYTES, PIECE_BYTES, step)
}
