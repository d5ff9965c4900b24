//! Room on the stack for what recurses as deep as a text nests.
//!
//! In: a step of a recursion. Out: its result. Must hold: what is within the stated limits of nesting overflows no
//! stack, also in a build without optimisation on a small stack, such as an executor's worker has.

/// Less than one step of any recursion takes without optimisation, many times over.
const ROOM_BYTES: usize = 128 << 10;
/// What the end of a tree takes that is as high as a tree may be: small steps, which look for room nowhere between.
const TREE_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 512 << 10 };
/// What is added where there is less.
const PIECE_BYTES: usize = 8 << 20;

/// Takes a step of a recursion, on another piece of stack where this one has little room left.
pub fn with_room<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM_BYTES, PIECE_BYTES, step)
}

/// Makes or drops a tree.
pub fn with_room_for_a_tree<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(TREE_BYTES, PIECE_BYTES, step)
}
