//! What the tests of this crate see beyond its public API. It exists with the feature `testing` only, which is off by
//! default, and **is no part of the stable API**.

pub use crate::builtins::language::documentation::markdown;
pub use crate::builtins::{Builtin, Reach, families};
pub use crate::syntax::{dump, parse};
