//! The table of open gathers: who opens one gets a future, who resolves one needs only its id.

use crate::error::{Error, ErrorKind};
use crate::ids::GatherId;
use crate::scheduler::message::Delivered;
use crate::threads::contain;
use futures::channel::oneshot;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The future side of a gather.
pub type Promise = oneshot::Receiver<Result<Delivered, Error>>;

/// Open gathers of one runtime.
#[derive(Default)]
pub struct GatherTable {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    closed: Option<Error>,
    open: FxHashMap<GatherId, oneshot::Sender<Result<Delivered, Error>>>,
}

impl GatherTable {
    /// Opens a gather. After the table was closed, its promise is already resolved to the closing error.
    pub fn open(&self) -> (GatherId, Promise) {
        let (sender, promise) = oneshot::channel();
        let mut inner = self.inner.lock();
        let id = GatherId(inner.next);
        inner.next += 1;
        match &inner.closed {
            Some(error) => drop(sender.send(Err(error.clone()))),
            None => drop(inner.open.insert(id, sender)),
        }
        (id, promise)
    }

    /// As [`GatherTable::resolve_after`], where nothing is counted.
    #[cfg(test)]
    pub fn resolve(&self, id: GatherId, result: Result<Delivered, Error>) -> bool {
        self.resolve_after(id, result, || {})
    }

    /// Resolves a gather, and counts it before whoever waits for it is woken; nothing happens if it was resolved or
    /// cancelled before. True if it was open.
    pub fn resolve_after(&self, id: GatherId, result: Result<Delivered, Error>, count: impl FnOnce()) -> bool {
        let sender = self.inner.lock().open.remove(&id);
        let is_open = sender.is_some();
        if let Some(sender) = sender {
            count();
            wake(sender, result);
        }
        is_open
    }

    /// Whether somebody still awaits it. A future that is dropped says so here at once; its event comes later.
    pub fn is_open(&self, id: GatherId) -> bool {
        self.inner.lock().open.contains_key(&id)
    }

    /// Forgets a cancelled gather.
    pub fn forget(&self, id: GatherId) {
        self.inner.lock().open.remove(&id);
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.inner.lock().open.len()
    }

    /// Resolves all that are open, and all that will be opened, to `error`.
    pub fn close(&self, error: Error) {
        let open = {
            let mut inner = self.inner.lock();
            inner.closed.get_or_insert_with(|| error.clone());
            std::mem::take(&mut inner.open)
        };
        for (_, sender) in open {
            wake(sender, Err(error.clone()));
        }
    }
}

/// Resolves a promise, which wakes whoever waits for it.
fn wake(sender: oneshot::Sender<Result<Delivered, Error>>, result: Result<Delivered, Error>) {
    contain("what a gather's end woke", || drop(sender.send(result)));
}

impl Drop for GatherTable {
    fn drop(&mut self) {
        self.close(Error::new(ErrorKind::Shutdown, "the runtime is gone"));
    }
}
