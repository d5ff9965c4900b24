//! Answers that a device's thread gives by itself, so that whoever waits is woken once and not through the ring's
//! thread.
//!
//! In: for a batch on its way, which readback answers which gathers if the batch ends well; the devices' events, as
//! they are sent. Out: resolved gathers. The ring hears the same events and says the same answers a moment later, to
//! nobody. Must hold: ANSWER-1: what is expected of a batch is known before its device hears of the batch, and is true
//! of a batch that ends well, whatever else happens; ANSWER-2: a batch's end, good or bad, is the end of what is
//! expected of it.

use super::GatherTable;
use super::promise::Wakes;
use crate::contract::batch::Transfer;
use crate::contract::messages::device::DeviceEvent;
use crate::contract::messages::scheduler::Delivered;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, DeviceId, GatherId};
use crate::mail::Then;
use crate::stats::Counters;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a batch answers when it ends well.
#[derive(Debug)]
pub struct Answer {
    /// Where it runs.
    pub device: DeviceId,
    /// Which it is.
    pub batch: BatchId,
    /// Its readback of a whole value.
    pub transfer: Transfer,
    /// Gathers of that value.
    pub gathers: SmallVec<[GatherId; 1]>,
}

/// Answers that are expected. Few: one at most of each batch in flight.
pub(super) struct Answers {
    table: Arc<GatherTable>,
    counters: Arc<Counters>,
    expected: Mutex<Vec<(Answer, Option<Arc<HostBuffer>>)>>,
}

impl Answers {
    pub(super) fn new(table: Arc<GatherTable>, counters: Arc<Counters>) -> Answers {
        Answers { table, counters, expected: Mutex::default() }
    }

    /// A batch is about to be sent.
    pub(super) fn expect(&self, answer: Answer) {
        self.expected.lock().push((answer, None));
    }

    /// How many are expected.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.expected.lock().len()
    }

    /// A device says something.
    pub(super) fn see(self: &Arc<Answers>, event: &DeviceEvent) -> Option<Then> {
        match event {
            DeviceEvent::ReadbackDone { device, transfer, data: Ok(data) } => {
                let mut expected = self.expected.lock();
                let found = expected.iter_mut().find(|(a, _)| a.device == *device && a.transfer == *transfer);
                if let Some((_, place)) = found {
                    *place = Some(data.clone());
                }
                None
            }
            DeviceEvent::BatchFinished { device, batch, faults, .. } => {
                let (answer, data) = self.take(*device, *batch)?;
                let data = data.filter(|_| faults.is_empty())?;
                let this = self.clone();
                Some(Box::new(move || this.give(&answer, &data)))
            }
            DeviceEvent::BatchFailed { device, batch, .. } => {
                self.take(*device, *batch);
                None
            }
            DeviceEvent::ReadbackDone { .. } | DeviceEvent::Lost { .. } => None,
        }
    }

    fn take(&self, device: DeviceId, batch: BatchId) -> Option<(Answer, Option<Arc<HostBuffer>>)> {
        let mut expected = self.expected.lock();
        let at = expected.iter().position(|(a, _)| a.device == device && a.batch == batch)?;
        Some(expected.swap_remove(at))
    }

    fn give(&self, answer: &Answer, data: &Arc<HostBuffer>) {
        let mut wakes = Wakes::default();
        for &gather in &answer.gathers {
            let count = || Counters::add(&self.counters.gathers, 1);
            self.table.resolve_with(gather, Ok(Delivered::Host(data.clone())), count, &mut wakes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::graph::DType;
    use futures::FutureExt;

    const DEVICE: DeviceId = DeviceId::HOST;

    fn expecting() -> (Arc<Answers>, crate::ring::Promise) {
        let table = Arc::new(GatherTable::default());
        let answers = Arc::new(Answers::new(table.clone(), Arc::default()));
        let (gather, promise) = table.open();
        let gathers = SmallVec::from_slice(&[gather]);
        answers.expect(Answer { device: DEVICE, batch: BatchId(7), transfer: Transfer(3), gathers });
        (answers, promise)
    }

    fn arrives(answers: &Arc<Answers>) {
        let data = Ok(HostBuffer::zeroed(DType::F32, 2).shared());
        assert!(answers.see(&DeviceEvent::ReadbackDone { device: DEVICE, transfer: Transfer(3), data }).is_none());
    }

    fn finished(batch: u64, faults: Vec<u32>) -> DeviceEvent {
        DeviceEvent::BatchFinished { device: DEVICE, batch: BatchId(batch), faults, device_ns: 1 }
    }

    #[test]
    fn a_gather_is_answered_by_the_end_of_its_batch() {
        let (answers, mut promise) = expecting();
        arrives(&answers);
        assert!(answers.see(&finished(6, vec![])).is_none());
        let then = answers.see(&finished(7, vec![])).unwrap();
        assert!((&mut promise).now_or_never().is_none(), "not before the ring can hear of it");
        then();
        assert!(matches!(promise.now_or_never(), Some(Ok(Delivered::Host(data))) if data.len() == 2));
    }

    #[test]
    fn what_ends_badly_is_left_to_the_ring() {
        let (answers, mut promise) = expecting();
        arrives(&answers);
        let error = Error::new(ErrorKind::Internal, "a test");
        assert!(answers.see(&DeviceEvent::BatchFailed { device: DEVICE, batch: BatchId(7), error }).is_none());
        assert!(answers.see(&finished(7, vec![])).is_none());
        let (faulty, mut other) = expecting();
        arrives(&faulty);
        assert!(faulty.see(&finished(7, vec![0])).is_none());
        let (empty, mut third) = expecting();
        assert!(empty.see(&finished(7, vec![])).is_none());
        for promise in [&mut promise, &mut other, &mut third] {
            assert!(promise.now_or_never().is_none());
        }
    }
}
