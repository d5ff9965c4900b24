//! Stable argsort.
