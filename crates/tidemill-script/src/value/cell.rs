//! Cell arrays.

use super::{Dims, Value};

/// An array of values.
#[derive(Clone, Debug)]
pub struct CellArray {
    /// The dimensions.
    pub dims: Dims,
    /// The values, column-major.
    pub items: Vec<Value>,
}

impl CellArray {
    /// A cell array of these dimensions and values.
    ///
    /// # Panics
    /// VALUE-2: if the dimensions have another number of elements than there are values.
    pub fn new(dims: Dims, items: Vec<Value>) -> CellArray {
        assert_eq!(dims.elements(), items.len(), "VALUE-2: dimensions {dims} for {} values", items.len());
        CellArray { dims, items }
    }

    /// A row.
    pub fn row(items: Vec<Value>) -> CellArray {
        CellArray::new(Dims::new(&[1, items.len()]), items)
    }
}
