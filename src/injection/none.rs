//! Nothing is injected: the answers of [`Injection`] where no test can ask for anything.

use crate::error::Result;

/// An injection without faults.
#[derive(Clone, Debug, Default)]
pub struct Injection {}

/// A batch in which nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrong {}

/// It holds nothing.
#[derive(Debug, Default)]
pub struct Latch {}

impl Injection {
    pub fn hold_batch(&self, _number: u64) {}

    pub fn never_rolls(&self) -> bool {
        false
    }

    pub fn holds_a_batch(&self) -> bool {
        false
    }

    pub fn wrong_at(&self, _number: u64) -> Wrong {
        Wrong {}
    }

    pub fn slice_us(&self) -> Option<f64> {
        None
    }

    pub fn long_launch_us(&self) -> Option<f64> {
        None
    }

    pub fn first_long(&self) -> Latch {
        Latch {}
    }

    pub fn first_compile(&self) -> Latch {
        Latch {}
    }
}

#[cfg(feature = "gpu")]
impl Injection {
    pub fn lacks(&self, _feature: &str) -> bool {
        false
    }

    pub fn hold_opening(&self) {}

    pub fn opening(&self) -> Result<()> {
        Ok(())
    }

    pub fn software_serves(&self) -> bool {
        false
    }

    pub fn segment_shift(&self) -> Option<u32> {
        None
    }

    pub fn span_shift(&self) -> Option<u32> {
        None
    }

    pub fn bindings_max(&self) -> Option<u32> {
        None
    }
}

impl Wrong {
    pub fn loses(&self) -> bool {
        false
    }

    pub fn starve(&self) -> Result<()> {
        Ok(())
    }

    pub fn panic(&self) {}

    pub fn panicked(&self) -> Result<()> {
        Ok(())
    }
}

impl Latch {
    pub fn take(&mut self) -> Latch {
        Latch {}
    }

    pub fn wait(&self) {}
}
