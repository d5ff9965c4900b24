//! Tests of the users' side against a ring that computes nothing: which records reach the scheduler, in which order,
//! and which never do.

mod gathers;
mod leaks;
mod on_gpu;
mod overload;
mod pins;
mod recording;
mod sessions;
mod tape;

use super::Array;
use crate::graph::Element;
use futures::executor::block_on;
use futures::task::noop_waker;
use std::pin::Pin;
use std::task::Context;

/// Polls once, and returns whether it is ready.
fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(&noop_waker())).is_ready()
}

/// The elements of a value that is known on the host.
fn folded<T: Element>(array: &Array) -> Vec<T> {
    block_on(array.gather::<T>()).unwrap().into_vec()
}
