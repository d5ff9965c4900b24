//! Structs and struct arrays.
//!
//! Must hold: every field has as many values as the array has elements.

use super::cleanup::Cleanup;
use super::{Dims, Value};
use indexmap::IndexMap;
use std::sync::Arc;

/// A struct array; a struct is an array of one element.
#[derive(Clone, Debug)]
pub struct StructArray {
    /// The dimensions.
    pub dims: Dims,
    /// The fields in the order in which they were made. Each has a value for each element, column-major.
    pub fields: IndexMap<Arc<str>, Vec<Value>>,
    /// The class of an object that behaves like a struct (`MException`, `gpuDevice`'s); `None` for a struct.
    pub class: Option<&'static str>,
    /// For an `onCleanup` object: its cleanup.
    pub cleanup: Option<Arc<Cleanup>>,
}

impl StructArray {
    /// A struct without fields.
    pub fn scalar() -> StructArray {
        StructArray::empty(Dims::scalar())
    }

    /// An array without fields.
    pub fn empty(dims: Dims) -> StructArray {
        StructArray { dims, fields: IndexMap::new(), class: None, cleanup: None }
    }

    /// Returns the same struct with another class.
    pub fn with_class(mut self, class: Option<&'static str>) -> StructArray {
        self.class = class;
        self
    }

    /// Returns the same elements with other dimensions.
    pub fn with_dims(mut self, dims: Dims) -> StructArray {
        debug_assert_eq!(dims.elements(), self.len());
        self.dims = dims;
        self
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.dims.elements()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A field of a struct of one element.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field)?.first()
    }

    /// Sets a field of a struct of one element.
    pub fn set(&mut self, field: impl Into<Arc<str>>, value: impl Into<Value>) {
        debug_assert_eq!(self.len(), 1);
        self.fields.insert(field.into(), vec![value.into()]);
    }

    /// Element `i` as a struct.
    pub fn element(&self, i: usize) -> StructArray {
        StructArray {
            dims: Dims::scalar(),
            fields: self.fields.iter().map(|(k, v)| (k.clone(), vec![v[i].clone()])).collect(),
            class: self.class,
            cleanup: self.cleanup.clone(),
        }
    }
}
