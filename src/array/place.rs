//! Memory of sessions that have ended, for those that open next.
//!
//! Many short programs open their sessions on one thread and end them on others. An allocator that gives memory back to
//! the thread that took it makes the threads wait for each other there; here it goes round in handfuls.
//!
//! In: sessions whose last handle goes. Out: memory for new ones. Must hold: PLACE-1: what is kept is memory alone; the
//! session in it has ended. At most [`KEPT_MAX`] places are kept, and a few by each thread.

use super::tape::Home;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Places that all threads keep together.
const KEPT_MAX: usize = 1024;
/// Places that a thread passes on, or takes, at a time; it keeps fewer than twice as many.
const HANDFUL: usize = 16;

type Place = Arc<MaybeUninit<Home>>;

static KEPT: Mutex<Vec<Place>> = Mutex::new(Vec::new());
thread_local!(static OWN: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) });

/// Puts a session in its place.
pub(super) fn put(home: Home) -> Arc<Home> {
    let mut place = spare().unwrap_or_else(Arc::new_uninit);
    match Arc::get_mut(&mut place) {
        Some(memory) => {
            memory.write(home);
            // SAFETY: written on the line before.
            unsafe { place.assume_init() }
        }
        // PLACE-1: nobody else holds it. Were it otherwise, it would only be left alone.
        None => Arc::new(home),
    }
}

/// A handle lets go of a session; the last of all ends it and keeps its memory.
pub(super) fn leave(mut home: Arc<Home>) {
    if Arc::get_mut(&mut home).is_none() {
        return;
    }
    let home = Arc::into_raw(home).cast_mut();
    // SAFETY: nobody else holds the session, so that it may end here; what is left is memory that may hold another. Should
    // its end panic, the memory is never used again.
    keep(unsafe {
        std::ptr::drop_in_place(home);
        Arc::from_raw(home.cast::<MaybeUninit<Home>>())
    });
}

fn spare() -> Option<Place> {
    // A thread that is ending has none.
    let own = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        if own.is_empty() {
            let mut kept = KEPT.lock();
            let at = kept.len().saturating_sub(HANDFUL);
            own.extend(kept.drain(at..));
        }
        own.pop()
    });
    own.ok().flatten()
}

fn keep(place: Place) {
    let mut place = Some(place);
    // Whatever is kept nowhere is freed.
    let _ = OWN.try_with(|own| {
        let Ok(mut own) = own.try_borrow_mut() else { return };
        own.extend(place.take());
        if own.len() >= 2 * HANDFUL {
            let mut kept = KEPT.lock();
            let room = KEPT_MAX.saturating_sub(kept.len()).min(HANDFUL);
            kept.extend(own.drain(..room));
            drop(kept);
            own.truncate(HANDFUL);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::fake::FakeRing;

    #[test]
    fn a_session_that_opens_takes_the_memory_of_one_that_ended_and_nothing_else_of_it() {
        let ring = FakeRing::unfolded();
        let own = || OWN.with(|own| own.borrow().len());
        let first = ring.session("first");
        let (second, array, kept) = (first.clone(), first.zeros::<f32>([3]), own());
        drop(first);
        drop(second);
        // An array holds its session, and frees it.
        drop(array);
        assert_eq!(own(), kept);
        let ended = ring.session("ended");
        ended.set_random_state((7, 9));
        let (address, kept) = (Arc::as_ptr(ended.home()), own());
        drop(ended);
        assert_eq!(own(), kept + 1);
        let next = ring.session("a name that is longer than the room beside the session's other fields");
        assert_eq!((Arc::as_ptr(next.home()), own()), (address, kept));
        assert_ne!(next.random_state(), (7, 9));
        assert_eq!(next.name(), "a name that is longer than the room beside the session's other fields");
    }

    #[test]
    fn places_go_round_among_threads_within_a_bound() {
        let ring = FakeRing::unfolded();
        let many: Vec<_> = (0..2 * KEPT_MAX).map(|_| ring.session("many")).collect();
        let kept = std::thread::spawn(move || {
            drop(many);
            OWN.with(|own| own.borrow().len())
        });
        assert!((HANDFUL..2 * HANDFUL).contains(&kept.join().unwrap()));
        assert!(KEPT.lock().len() <= KEPT_MAX);
        drop(ring.session("here"));
        assert!((1..=HANDFUL).contains(&OWN.with(|own| own.borrow().len())));
    }
}
