//! The op table on the host.
