//! The host evaluator: Kernel over host memory, in blocks.
