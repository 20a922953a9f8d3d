//! A run that is read without being owned.

use super::super::contract::{Entry, Payloads};
use super::super::error::{LogError, ReplayError};
use super::super::jetstream::Claim;
use super::error::CopyError;
use bytes::Bytes;
use rollyard_core::ids::Place;
use std::fmt;
use std::thread::{Scope, ScopedJoinHandle};

/// Records that wait for whoever takes them.
const RECORDS_WAITING_MAX: usize = 1024;

/// A log that can be visited, any number of times.
pub trait Source: Sync + fmt::Debug {
    type Reader: Payloads;

    /// Visits every record from the first on, in order.
    fn visit<E>(
        &self,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Seen<Self::Reader>, ReplayError<E>>;

    /// How far the log is. Another mark later means that somebody has written.
    fn mark(&self) -> Result<Mark, LogError>;

    /// Where it is, for messages.
    fn place(&self) -> String;
}

/// What a visit leaves behind.
#[derive(Debug)]
pub struct Seen<R> {
    /// Reads the payloads of the records seen.
    pub reader: R,
    /// The last record seen; 0 when there is none.
    pub last_seq: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The last claim, where runs are claimed.
    pub claim: Option<Claim>,
    /// The last record, where that is known without a visit.
    pub last_seq: Option<u64>,
}

/// A record on its way from the thread that reads to the one that writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) seq: u64,
    pub(super) place: Place,
    pub(super) payload_len: u32,
    pub(super) body: Bytes,
}

/// A visit on a thread of its own: whoever visits a stream cannot ask the servers for anything else meanwhile.
pub(super) struct Reading<'scope, R> {
    pub(super) records: flume::Receiver<Record>,
    thread: ScopedJoinHandle<'scope, Result<Seen<R>, ReplayError<Stopped>>>,
}

/// Nobody takes the records any more.
pub(super) struct Stopped;

impl<'scope, R: Payloads> Reading<'scope, R> {
    pub(super) fn start<'env, S: Source<Reader = R>>(
        scope: &'scope Scope<'scope, 'env>,
        source: &'env S,
    ) -> Self {
        let (send, records) = flume::bounded(RECORDS_WAITING_MAX);
        let thread = scope.spawn(move || {
            source.visit(|Entry { seq, place, payload_len, body }| {
                let body = Bytes::copy_from_slice(body);
                send.send(Record { seq, place, payload_len, body }).map_err(|_| Stopped)
            })
        });
        Self { records, thread }
    }

    /// Waits for the end, once all records have been taken.
    pub(super) fn finish(self) -> Result<Seen<R>, CopyError> {
        drop(self.records);
        match self.thread.join() {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(ReplayError::Log(error))) => Err(error.into()),
            Ok(Err(ReplayError::Visit(Stopped))) => {
                Err(CopyError::Differs("some of its records were not looked at".to_owned()))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
