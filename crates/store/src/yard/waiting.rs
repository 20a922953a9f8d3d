//! Those who wait: readers for groups to get ready, writers for room.

use rollyard_core::ledger::{Draw, LeaseTerms, Want};
use std::collections::VecDeque;
use std::time::Instant;
use tokio::sync::oneshot;

use super::answer::{Admission, AdmitError, Granted, Submission, YardError};

/// What a reader waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Groups(Want),
    Rollouts(Draw),
}

impl Wanted {
    /// Others may have, or be about to get, the same lease.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Self::Rollouts(Draw { step: Some(_), .. }))
    }
}

/// A reader who would rather wait than get less.
pub(super) struct Reader {
    pub(super) wanted: Wanted,
    pub(super) terms: LeaseTerms,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Option<Granted>, YardError>>,
}

pub(super) type AdmitReply = oneshot::Sender<Result<Vec<Result<Admission, AdmitError>>, YardError>>;

/// A writer in the middle of its rollouts, held up by a full run.
pub(super) struct Writer {
    pub(super) done: Vec<Result<Admission, AdmitError>>,
    pub(super) rest: VecDeque<Submission>,
    /// Set when it first meets a full run.
    pub(super) deadline: Option<Instant>,
    pub(super) reply: AdmitReply,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) readers: VecDeque<Reader>,
    pub(super) writers: VecDeque<Writer>,
}

impl Waiting {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let readers = self.readers.iter().map(|reader| reader.deadline);
        let writers = self.writers.iter().filter_map(|writer| writer.deadline);
        readers.chain(writers).min()
    }
}
