//! Mailboxes of the ring's thread: unbounded queues whose senders wake one parked thread.
//!
//! In: messages from any thread. Out: the same messages, in each sender's order. A watcher sees each message on the
//! sender's thread before it is queued, and may return a function that is called there right after. An async queue
//! would register and deregister a waker for each wait, and would wake the thread while it holds the queue's lock. Here
//! the reader polls and parks its thread, and is unparked after the lock is released. Must hold: MAIL-1: a reader that
//! parks after it found all of its mailboxes empty is unparked by each later message, and by the drop of the last
//! sender.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// The reader's thread, once it is set.
type Bell = Arc<OnceLock<Thread>>;

/// A function that a watcher has called on the sender's thread once the message is queued.
pub type Then = Box<dyn FnOnce() + Send>;

/// Sees every message that is sent.
type Watcher<T> = Arc<OnceLock<Box<dyn Fn(&T) -> Option<Then> + Send + Sync>>>;

/// The sending end.
pub struct Post<T> {
    /// `None` only while it is dropped.
    queue: Option<flume::Sender<T>>,
    bell: Bell,
    watcher: Watcher<T>,
}

/// The receiving end.
pub struct Mail<T> {
    queue: flume::Receiver<T>,
    bell: Bell,
    watcher: Watcher<T>,
}

/// An empty mailbox.
pub fn mail<T>() -> (Post<T>, Mail<T>) {
    let (sender, receiver) = flume::unbounded();
    let (bell, watcher) = (Bell::default(), Watcher::default());
    let post = Post { queue: Some(sender), bell: bell.clone(), watcher: watcher.clone() };
    (post, Mail { queue: receiver, bell, watcher })
}

impl<T> Post<T> {
    /// Sends, and wakes the reader if it is parked.
    ///
    /// # Errors
    /// The message, if the receiver is gone.
    pub fn send(&self, message: T) -> Result<(), flume::SendError<T>> {
        self.put(message)?;
        ring(&self.bell);
        Ok(())
    }

    /// Sends without waking a parked reader. The caller sends another message soon, which wakes it.
    ///
    /// # Errors
    /// The message, if the receiver is gone.
    pub fn put(&self, message: T) -> Result<(), flume::SendError<T>> {
        let then = self.watcher.get().and_then(|watcher| watcher(&message));
        match &self.queue {
            Some(queue) => queue.send(message)?,
            None => return Err(flume::SendError(message)),
        }
        if let Some(then) = then {
            then();
        }
        Ok(())
    }
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Post<T> {
        Post { queue: self.queue.clone(), bell: self.bell.clone(), watcher: self.watcher.clone() }
    }
}

impl<T> Drop for Post<T> {
    fn drop(&mut self) {
        // The queue is dropped first, so that the reader finds it without senders.
        drop(self.queue.take());
        ring(&self.bell);
    }
}

/// A sender for a plain queue, whose reader is not woken by this module.
impl<T> From<flume::Sender<T>> for Post<T> {
    fn from(queue: flume::Sender<T>) -> Post<T> {
        Post { queue: Some(queue), bell: Bell::default(), watcher: Watcher::default() }
    }
}

impl<T> Mail<T> {
    /// The next message, if one is there.
    ///
    /// # Errors
    /// `Empty` if a message may still come, `Disconnected` if not.
    pub fn try_recv(&self) -> Result<T, flume::TryRecvError> {
        self.queue.try_recv()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// From now on, `watcher` sees each message.
    pub fn watched_by(&self, watcher: impl Fn(&T) -> Option<Then> + Send + Sync + 'static) {
        let _ = self.watcher.set(Box::new(watcher));
    }

    /// From now on, `thread` is unparked by each message. It has to poll once more before it parks.
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
    fn a_watcher_acts_on_the_senders_thread_once_the_message_is_queued() {
        let (post, mail) = mail::<u32>();
        let (seen, heard) = flume::unbounded();
        mail.watched_by(move |&number| {
            let (seen, number, sender) = (seen.clone(), number, std::thread::current().id());
            (number > 1).then(|| Box::new(move || seen.send((number, sender)).unwrap()) as Then)
        });
        post.send(1).unwrap();
        assert!(heard.try_recv().is_err());
        post.send(2).unwrap();
        assert_eq!(heard.try_recv(), Ok((2, std::thread::current().id())));
        assert_eq!((mail.try_recv(), mail.try_recv()), (Ok(1), Ok(2)));
    }

    #[test]
    fn a_message_without_a_receiver_comes_back() {
        let (post, mail) = mail();
        drop(mail);
        assert_eq!(post.send(7).unwrap_err().into_inner(), 7);
    }
}
