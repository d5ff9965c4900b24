//! Arrays on the runtime, as scripts hold them.
//!
//! Must hold: nothing here waits. Host values are there once the machine has awaited them ([`Need::Host`]).
//!
//! [`Need::Host`]: crate::script::error::Need::Host

use super::{Class, Dims, Tensor};
use crate::Array;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// An array on the runtime.
#[derive(Debug)]
pub struct Lazy {
    /// The runtime's array. Its shape is `dims` and its dtype the class's.
    pub array: Array,
    /// The class.
    pub class: Class,
    /// The dimensions.
    pub dims: Dims,
    /// Whether the script put it on the device (`gpuArray`); what is computed from it is there, too.
    pub pinned: bool,
    /// Whether reading it may fail by what its data are (an index from data, a root of a negative number).
    pub may_fault: bool,
    /// Its host values, once they have been awaited.
    pub host: OnceLock<Arc<Tensor>>,
    /// How often single elements of it were read or written; after a few, the whole comes to the host.
    pub touches: AtomicU32,
    /// Whether it has been materialised without a fault.
    checked: AtomicBool,
}

impl Lazy {
    /// An array of the runtime as a value's body.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn new(array: Array, class: Class, pinned: bool, may_fault: bool) -> crate::Result<Lazy> {
        let dims = Dims::new(array.shape()?.dims());
        Ok(Lazy {
            array,
            class,
            dims,
            pinned,
            may_fault,
            host: OnceLock::new(),
            touches: AtomicU32::new(0),
            checked: AtomicBool::new(false),
        })
    }

    /// Whether it has been materialised without a fault.
    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// It has been materialised without a fault.
    pub fn set_checked(&self) {
        self.checked.store(true, Ordering::Relaxed);
    }
}
