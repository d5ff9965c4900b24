//! [`Pieces`]: a file of any size as one array after another.

use crate::AnyArray;
use crate::element::{FileElement, by_dtype};
use crate::error::damaged;
use crate::fill::{read_next, with_numbers};
use crate::source::Source;
use crate::threads::Stop;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::{SinkExt, Stream, StreamExt};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use tidemill::{Result, Session, frontend};

/// A part of an array in a file.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The elements. Other dimensions than [`Piece::dim`] are whole.
    pub array: AnyArray,
    /// The dimension that is cut.
    pub dim: usize,
    /// The indices of that dimension that are here.
    pub range: Range<usize>,
}

/// The pieces of an array in a file, in the file's order: a stream. One is read ahead. Dropping it ends the reading.
#[must_use = "pieces that are dropped are not read"]
#[derive(Debug)]
pub struct Pieces(mpsc::Receiver<Result<Piece>>);

impl Pieces {
    pub(crate) fn start(source: Source, s: Session, bytes: usize) -> Pieces {
        let (mut sender, receiver) = mpsc::channel(0);
        let work = move || {
            let give = |piece| block_on(sender.send(Ok(piece))).map_err(|_| damaged(source.path(), "nobody reads it"));
            let result = by_dtype!(source.dtype(), T => read_all::<T>(&source, &s, bytes, give));
            // Where the stream was dropped, nobody is told.
            if let Err(error) = result {
                let _ = block_on(sender.send(Err(error)));
            }
        };
        blocking::unblock(work).detach();
        Pieces(receiver)
    }

    /// The next piece; `None` behind the last one, and behind an error.
    ///
    /// # Errors (of the piece)
    /// As [`Source::read`]; `ErrorKind::TooLarge` where one index of the dimension that is cut is more than an array
    /// may have.
    pub async fn next(&mut self) -> Option<Result<Piece>> {
        self.0.next().await
    }

    /// As [`Pieces::next`], on this thread.
    ///
    /// # Errors (of the piece)
    /// `ErrorKind::WouldBlock` inside of an async context; else as [`Pieces::next`].
    pub fn next_blocking(&mut self) -> Option<Result<Piece>> {
        match frontend::may_block("waiting for a file") {
            Ok(()) => block_on(self.0.next()),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for Pieces {
    type Item = Result<Piece>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Piece>>> {
        self.0.poll_next_unpin(cx)
    }
}

fn read_all<T: FileElement>(
    source: &Source,
    s: &Session,
    bytes: usize,
    mut give: impl FnMut(Piece) -> Result<()>,
) -> Result<()> {
    let layout = &source.0.layout;
    let dim = layout.slowest();
    let extent = layout.dims.get(dim).copied().unwrap_or(1);
    let one = (layout.bytes() / extent.max(1) as u64).max(1);
    let step = usize::try_from(bytes as u64 / one).unwrap_or(usize::MAX).clamp(1, extent.max(1));
    let stop = Stop::default();
    with_numbers::<T, _>(source, |numbers| {
        for from in (0..extent).step_by(step) {
            let range = from..extent.min(from + step);
            let mut dims = layout.dims.clone();
            if let Some(cut) = dims.get_mut(dim) {
                *cut = range.len();
            }
            if layout.row_major {
                dims.reverse();
            }
            let array = read_next::<T>(source, s, numbers, &dims, &stop)?;
            give(Piece { array, dim, range })?;
        }
        Ok(())
    })
}
