//! Mailboxes of the ring's thread: unbounded queues whose senders wake one parked thread.
//!
//! In: messages from any thread. Out: the same, in each sender's order. A queue that is waited for through an
//! executor registers and deregisters a waker at each end of each wait, and its sender wakes the thread while it
//! holds the queue's lock; here the reader polls, parks its thread, and is unparked after the lock is free.
//! Must hold: MAIL-1: a reader that parks after it found all of its mailboxes empty is unparked by whatever is sent
//! after that, and by the end of the last sender.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// The reader's thread, once it has said which that is.
type Bell = Arc<OnceLock<Thread>>;

/// The sending end.
pub struct Post<T> {
    /// `None` only while it is dropped.
    queue: Option<flume::Sender<T>>,
    bell: Bell,
}

/// The receiving end.
pub struct Mail<T> {
    queue: flume::Receiver<T>,
    bell: Bell,
}

/// An empty mailbox.
pub fn mail<T>() -> (Post<T>, Mail<T>) {
    let (sender, receiver) = flume::unbounded();
    let bell = Bell::default();
    (Post { queue: Some(sender), bell: bell.clone() }, Mail { queue: receiver, bell })
}

impl<T> Post<T> {
    /// Sends, and wakes the reader if it is parked.
    ///
    /// # Errors
    /// The message, where nobody will ever receive it.
    pub fn send(&self, message: T) -> Result<(), flume::SendError<T>> {
        self.put(message)?;
        ring(&self.bell);
        Ok(())
    }

    /// Sends and leaves a parked reader alone: the caller sends something else in a moment, which wakes it.
    ///
    /// # Errors
    /// The message, where nobody will ever receive it.
    pub fn put(&self, message: T) -> Result<(), flume::SendError<T>> {
        match &self.queue {
            Some(queue) => queue.send(message),
            None => Err(flume::SendError(message)),
        }
    }
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Post<T> {
        Post { queue: self.queue.clone(), bell: self.bell.clone() }
    }
}

impl<T> Drop for Post<T> {
    fn drop(&mut self) {
        // The queue first: the reader is to find it without senders.
        drop(self.queue.take());
        ring(&self.bell);
    }
}

/// A sender of a plain queue, whose reader waits by its own means.
impl<T> From<flume::Sender<T>> for Post<T> {
    fn from(queue: flume::Sender<T>) -> Post<T> {
        Post { queue: Some(queue), bell: Bell::default() }
    }
}

impl<T> Mail<T> {
    /// The next message, if one is there.
    ///
    /// # Errors
    /// Whether one may still come.
    pub fn try_recv(&self) -> Result<T, flume::TryRecvError> {
        self.queue.try_recv()
    }

    /// From now on `thread` is unparked by what is sent. It must look once more before it parks.
    pub fn wakes(&self, thread: Thread) {
        let _ = self.bell.set(thread);
    }
}

fn ring(bell: &Bell) {
    if let Some(thread) = bell.get() {
        thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_reader_is_woken_by_messages_and_by_the_end_of_the_last_sender() {
        let (post, mail) = mail::<u32>();
        let reader = std::thread::spawn(move || {
            mail.wakes(std::thread::current());
            let mut sum = 0;
            loop {
                match mail.try_recv() {
                    Ok(number) => sum += number,
                    Err(flume::TryRecvError::Empty) => std::thread::park(),
                    Err(flume::TryRecvError::Disconnected) => return sum,
                }
            }
        });
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let post = post.clone();
                std::thread::spawn(move || (1..=1000).for_each(|n| post.send(n).unwrap()))
            })
            .collect();
        drop(post);
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(reader.join().unwrap(), 4 * 500_500);
    }

    #[test]
    fn what_nobody_will_receive_comes_back() {
        let (post, mail) = mail();
        drop(mail);
        assert_eq!(post.send(7).unwrap_err().into_inner(), 7);
    }
}
