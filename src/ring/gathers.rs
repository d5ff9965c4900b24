//! The table of open gathers. Opening a gather returns a future; resolving one needs only its id.

use super::promise::{Promise, Resolver, Wakes, promise};
use crate::contract::messages::scheduler::Delivered;
use crate::error::{Error, ErrorKind};
use crate::ids::GatherId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Open gathers of one runtime.
#[derive(Default)]
pub struct GatherTable {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    closed: Option<Error>,
    open: FxHashMap<GatherId, Resolver>,
}

impl GatherTable {
    /// Opens a gather. After the table was closed, its promise is already resolved to the closing error.
    pub fn open(&self) -> (GatherId, Promise) {
        let (resolver, promise) = promise();
        let mut inner = self.inner.lock();
        let id = GatherId(inner.next);
        inner.next += 1;
        match &inner.closed {
            Some(error) => resolver.resolve(Err(error.clone()), &mut Wakes::default()),
            None => drop(inner.open.insert(id, resolver)),
        }
        (id, promise)
    }

    /// Resolves a gather and wakes the task that awaits it. Does nothing if it was resolved or cancelled before.
    /// Returns whether it was open.
    #[cfg(test)]
    pub fn resolve(&self, id: GatherId, result: Result<Delivered, Error>) -> bool {
        self.resolve_with(id, result, || {}, &mut Wakes::default())
    }

    /// Resolves a gather, after calling `count`. Does nothing if it was resolved or cancelled before. The task that
    /// awaits it is woken by `wakes`. Returns whether it was open.
    pub(super) fn resolve_with(
        &self,
        id: GatherId,
        result: Result<Delivered, Error>,
        count: impl FnOnce(),
        wakes: &mut Wakes,
    ) -> bool {
        let resolver = self.inner.lock().open.remove(&id);
        let is_open = resolver.is_some();
        if let Some(resolver) = resolver {
            count();
            resolver.resolve(result, wakes);
        }
        is_open
    }

    /// Whether a gather's future still exists. A dropped future is removed here at once; the event of its cancel comes
    /// later.
    pub fn is_open(&self, id: GatherId) -> bool {
        self.inner.lock().open.contains_key(&id)
    }

    /// Removes a cancelled gather, whose future was dropped.
    pub fn forget(&self, id: GatherId) {
        let resolver = self.inner.lock().open.remove(&id);
        if let Some(resolver) = resolver {
            resolver.forget();
        }
    }

    /// The number of open gathers.
    pub fn open_count(&self) -> usize {
        self.inner.lock().open.len()
    }

    /// Resolves all open gathers, and all that will be opened, to `error`.
    pub fn close(&self, error: Error) {
        let open = {
            let mut inner = self.inner.lock();
            inner.closed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut inner.open)
        };
        let mut wakes = Wakes::default();
        for (_, resolver) in open {
            resolver.resolve(Err(error.clone()), &mut wakes);
        }
    }
}

impl Drop for GatherTable {
    fn drop(&mut self) {
        self.close(Error::new(ErrorKind::Shutdown, "the runtime is gone"));
    }
}
