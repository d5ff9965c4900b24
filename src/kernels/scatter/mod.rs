//! Indexed assignment.
