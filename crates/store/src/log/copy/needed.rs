//! What the ledger of a run still needs, found by replaying it.

use super::super::error::ReplayError;
use super::error::CopyError;
use super::source::{Mark, Seen, Source};
use super::{Doing, Progress};
use rollyard_core::ids::Place;
use rollyard_core::ledger::{Books, Ledger, decode_events};
use rollyard_core::run_config::RunConfig;
use std::collections::HashMap;

/// The end of a run's history, as its own ledger sees it.
#[derive(Debug)]
pub(super) struct Needed {
    pub(super) last_seq: u64,
    /// The records whose payloads must stay readable, and how long those are.
    pub(super) payloads: HashMap<u64, u32>,
    pub(super) payload_bytes: u64,
    pub(super) books: Books,
}

impl Needed {
    pub(super) fn find<S: Source>(
        source: &S,
        mark: &Mark,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(Self, S::Reader), CopyError> {
        let mut replayed = Replayed::default();
        let records_total = mark.last_seq.unwrap_or(0);
        let visited = source.visit(|entry| {
            watch(Progress {
                doing: Doing::Reading,
                records: entry.seq,
                records_total,
                payload_bytes: 0,
                payload_bytes_total: 0,
            });
            replayed.apply(entry.seq, entry.body, Place(entry.seq))
        });
        let Seen { reader, last_seq } = visited.map_err(|error| match error {
            ReplayError::Log(error) => CopyError::Log(error),
            ReplayError::Visit(error) => error,
        })?;
        let expected = mark.last_seq.unwrap_or(last_seq);
        if last_seq < expected {
            return Err(CopyError::CutShort { found: last_seq, expected });
        }
        let ledger = replayed.ledger;
        ledger.audit().map_err(CopyError::Unbalanced)?;
        let payloads: HashMap<u64, u32> =
            ledger.places().map(|(record, size_bytes)| (record.0, size_bytes)).collect();
        let payload_bytes = payloads.values().map(|size_bytes| u64::from(*size_bytes)).sum();
        let books = ledger.books().clone();
        Ok((Self { last_seq, payloads, payload_bytes, books }, reader))
    }
}

/// A ledger that is made from records.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) ledger: Ledger,
    freed: Vec<(Place, u32)>,
}

impl Default for Replayed {
    fn default() -> Self {
        // The first record of a log says by which rules it was written.
        Self { ledger: Ledger::new(RunConfig::default()), freed: Vec::new() }
    }
}

impl Replayed {
    pub(super) fn apply(&mut self, seq: u64, body: &[u8], place: Place) -> Result<(), CopyError> {
        let unknown = |why: &dyn std::fmt::Display| CopyError::Record { seq, why: why.to_string() };
        for event in decode_events(body).map_err(|why| unknown(&why))? {
            self.ledger.apply(&event, place, &mut self.freed);
        }
        self.freed.clear();
        Ok(())
    }
}
