//! A bounded log of the latest transitions of values, rendered by `State::story`.
//!
//! In: a note for each transition. Out: lines of text, for tests; other builds log nothing. Must never change what the
//! scheduler does.

use crate::ids::{GatherId, RegionId, ValueId};
#[cfg(test)]
use {super::graph::Residence, super::state::State, std::collections::VecDeque, std::fmt::Write};

/// Notes kept.
#[cfg(test)]
const LOG_MAX: usize = 4096;

/// A transition in a value's story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Recorded,
    Demanded(GatherId),
    Cut(RegionId),
    Passed(RegionId),
    Finished(RegionId),
    Poisoned,
    Failed,
    Lost,
    Arrived,
    Released,
    Retired,
    Dead,
    Forgotten,
}

/// The latest transitions, for `story`.
#[derive(Debug, Default)]
pub(super) struct Log(#[cfg(test)] VecDeque<(ValueId, What)>);

impl Log {
    #[cfg(test)]
    pub(super) fn note(&mut self, value: ValueId, what: What) {
        if self.0.len() == LOG_MAX {
            self.0.pop_front();
        }
        self.0.push_back((value, what));
    }

    #[cfg(not(test))]
    pub(super) fn note(&mut self, _: ValueId, _: What) {}
}

#[cfg(test)]
impl State {
    /// A readable text: the state of a value, and its latest transitions.
    pub fn story(&self, value: ValueId) -> String {
        let mut text = format!("{value}:");
        match self.graph.get(value) {
            None => text.push_str(" not live"),
            Some(live) => {
                let home = match &live.home {
                    Residence::Lazy if live.passing.has_passed() => "lazy, computed in passing".to_owned(),
                    Residence::Lazy => "lazy".to_owned(),
                    Residence::Coming(region) => format!("coming from region {region}"),
                    Residence::Here => format!("here, made on device {}", live.places.made()),
                    Residence::Failed(error) => format!("failed: {error}"),
                };
                let _ = write!(
                    text,
                    " {} of {}, {home}; held {}, users {}, gathers {}, regions {}",
                    live.node.op.name(),
                    live.node.meta.shape,
                    live.held,
                    live.users,
                    live.gathers.len(),
                    live.regions.len()
                );
            }
        }
        for (_, what) in self.log.0.iter().filter(|(v, _)| *v == value) {
            let _ = match what {
                What::Recorded => write!(text, "\n  recorded"),
                What::Demanded(gather) => write!(text, "\n  demanded by gather {gather}"),
                What::Cut(region) => write!(text, "\n  cut into region {region}"),
                What::Passed(region) => write!(text, "\n  computed in passing by region {region}"),
                What::Finished(region) => write!(text, "\n  made by region {region}"),
                What::Poisoned => write!(text, "\n  poisoned by a fault"),
                What::Failed => write!(text, "\n  failed"),
                What::Lost => write!(text, "\n  lost with its device"),
                What::Arrived => write!(text, "\n  arrived in host memory"),
                What::Released => write!(text, "\n  its last handle was dropped"),
                What::Retired => write!(text, "\n  retired"),
                What::Dead => write!(text, "\n  found unreachable, never computed"),
                What::Forgotten => write!(text, "\n  forgotten"),
            };
        }
        text
    }
}
