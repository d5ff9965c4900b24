//! A bounded log of the latest transitions of values, rendered by `State::story`.
//!
//! In: a note for each transition. Out: lines of text, for tests; other builds log nothing. Must never change what
//! residency does.

use super::values::Key;
#[cfg(test)]
use std::collections::VecDeque;

/// Notes kept.
#[cfg(test)]
const NOTES_MAX: usize = 2048;

#[cfg(test)]
#[derive(Clone, Copy, Debug)]
struct Note {
    key: Key,
    device: usize,
    segment: u32,
    what: &'static str,
    number: u64,
}

/// The log.
#[derive(Debug, Default)]
pub(super) struct Story(#[cfg(test)] VecDeque<Note>);

impl Story {
    /// Adds a note; the oldest is forgotten.
    #[cfg(test)]
    pub(super) fn note(&mut self, key: Key, device: usize, segment: u32, what: &'static str, number: u64) {
        if self.0.len() == NOTES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Note { key, device, segment, what, number });
    }

    /// Takes no note.
    #[cfg(not(test))]
    pub(super) fn note(&mut self, _: Key, _device: usize, _segment: u32, _what: &'static str, _number: u64) {}

    /// The notes on one key, oldest first.
    #[cfg(test)]
    pub(super) fn of(&self, key: Key) -> Vec<String> {
        let lines = self.0.iter().filter(|note| note.key == key);
        lines.map(|n| format!("device {} segment {}: {} {}", n.device, n.segment, n.what, n.number)).collect()
    }
}
