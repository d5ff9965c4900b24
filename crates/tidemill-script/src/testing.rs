//! Items of this crate that its integration tests call and users do not. The feature `testing`, which is off by default,
//! compiles this module. The module **is no part of the stable API**.

pub use crate::builtins::language::documentation::markdown;
pub use crate::builtins::{Builtin, Reach, families};
pub use crate::syntax::{dump, parse};
