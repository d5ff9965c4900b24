//! Fast path for the end of a batch: the device's thread resolves gathers itself, so that the waiting task is woken
//! without a detour through the ring's thread.
//!
//! In: for a batch, the gathers that its success resolves; the devices' events, as they are sent. Out: resolved
//! gathers. The ring gets the same events and resolves the same gathers a moment later, which then has no effect. Must
//! hold: ANSWER-1: a batch's answer is recorded before the batch is sent to its device, and is correct if the batch
//! succeeds, whatever else happens; ANSWER-2: the end of a batch, whether it succeeds or fails, removes its answer.

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

/// The gathers that a batch resolves if it succeeds.
#[derive(Debug)]
pub struct Answer {
    /// The device of the batch.
    pub device: DeviceId,
    /// The batch.
    pub batch: BatchId,
    /// Its readback of a whole value, and the gathers that wait for that value in host memory.
    pub brought: Option<(Transfer, SmallVec<[GatherId; 1]>)>,
    /// Gathers that wait until values exist on the device.
    pub made: SmallVec<[GatherId; 1]>,
}

impl Answer {
    fn is_brought_by(&self, device: DeviceId, transfer: Transfer) -> bool {
        self.device == device && self.brought.as_ref().is_some_and(|(own, _)| *own == transfer)
    }
}

/// The recorded answers, at most one for each batch in flight.
pub(super) struct Answers {
    table: Arc<GatherTable>,
    counters: Arc<Counters>,
    expected: Mutex<Vec<(Answer, Option<Arc<HostBuffer>>)>>,
}

impl Answers {
    pub(super) fn new(table: Arc<GatherTable>, counters: Arc<Counters>) -> Answers {
        Answers { table, counters, expected: Mutex::default() }
    }

    /// Records the answer of a batch that is about to be sent.
    pub(super) fn expect(&self, answer: Answer) {
        self.expected.lock().push((answer, None));
    }

    /// The number of recorded answers.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.expected.lock().len()
    }

    /// Handles a device's event. Returns what is to be called once the ring can receive the event: it resolves the
    /// gathers.
    pub(super) fn see(self: &Arc<Answers>, event: &DeviceEvent) -> Option<Then> {
        match event {
            DeviceEvent::ReadbackDone { device, transfer, data: Ok(data) } => {
                let mut expected = self.expected.lock();
                let found = expected.iter_mut().find(|(answer, _)| answer.is_brought_by(*device, *transfer));
                if let Some((_, place)) = found {
                    *place = Some(data.clone());
                }
                None
            }
            DeviceEvent::BatchFinished { device, batch, faults, .. } => {
                let (answer, data) = self.take(*device, *batch)?;
                if !faults.is_empty() || (data.is_none() && answer.made.is_empty()) {
                    return None;
                }
                let this = self.clone();
                Some(Box::new(move || this.give(&answer, data.as_ref())))
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

    fn give(&self, answer: &Answer, data: Option<&Arc<HostBuffer>>) {
        let mut wakes = Wakes::default();
        let mut resolve = |gather: GatherId, delivered: Delivered| {
            let count = || Counters::add(&self.counters.gathers, 1);
            self.table.resolve_with(gather, Ok(delivered), count, &mut wakes);
        };
        if let (Some((_, gathers)), Some(data)) = (&answer.brought, data) {
            gathers.iter().for_each(|&gather| resolve(gather, Delivered::Host(data.clone())));
        }
        answer.made.iter().for_each(|&gather| resolve(gather, Delivered::Device));
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
        let brought = Some((Transfer(3), gathers));
        answers.expect(Answer { device: DEVICE, batch: BatchId(7), brought, made: SmallVec::new() });
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
    fn who_waits_for_a_value_on_the_device_is_answered_by_the_end_of_its_batch() {
        let (answers, brought) = expecting();
        let (gather, made) = answers.table.open();
        let answer = |batch| Answer { device: DEVICE, batch, brought: None, made: SmallVec::from_slice(&[gather]) };
        answers.expect(answer(BatchId(8)));
        assert!(answers.see(&finished(8, vec![1])).is_none(), "a fault is the ring's");
        answers.expect(answer(BatchId(9)));
        answers.see(&finished(9, vec![])).unwrap()();
        assert!(matches!(made.now_or_never(), Some(Ok(Delivered::Device))));
        assert!(brought.now_or_never().is_none());
        assert_eq!(answers.len(), 1);
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
