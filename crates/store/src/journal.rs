//! Records that belong to somebody, kept until he is done.
//!
//! A session of the gateway writes what happens to it, and when its rollouts are in the yard, nothing of it is needed
//! any more. It is a [`log`](crate::log) underneath: the owner's name is the body of a record, what he wrote its payload,
//! so that disk is given back as owners are forgotten. One thread writes: whatever waits goes to the disk with one sync.

use bytes::Bytes;
use rollyard_core::ids::Place;
use rollyard_core::run_config::Durability;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

use crate::log::{self, Commit, Log, LogError, Options, Payloads, ReadError, ReplayError, Stage, StageError};

/// Requests that may wait for the disk; beyond that the askers wait.
const WAITING_MAX: usize = 65_536;
/// A segment is given back as a whole, so it is small: sessions are short.
const SEGMENT_BYTES: u64 = 32 << 20;

const WRITTEN: u8 = 0;
const FORGOTTEN: u8 = 1;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error("a record of the journal cannot be read: {0}")]
    Read(String),
    #[error("a record of the journal has no owner; was the file changed?")]
    NoOwner,
    #[error("the journal is closed")]
    Closed,
}

/// Clones are not needed: whoever shares it holds it in an `Arc`. The last one to go closes it.
#[derive(Debug)]
pub struct Journal {
    requests: flume::Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
enum Request {
    Write { owner: String, record: Vec<u8>, done: oneshot::Sender<Result<(), JournalError>> },
    Forget { owner: String },
    Close,
}

impl Journal {
    /// Opens the journal in `dir`, or begins one there. What was written by owners that were not forgotten comes back in
    /// its order.
    pub fn open(dir: &Path, durability: Durability) -> Result<(Self, Vec<Bytes>), JournalError> {
        let options = Options { segment_bytes: SEGMENT_BYTES, durability, ..Options::default() };
        let opened = log::open(dir, options)?;
        let mut held: HashMap<String, Vec<(u64, Place, u32)>> = HashMap::new();
        let replayed = opened.replay(
            0,
            |_, _| {},
            |entry| {
                let (kind, owner) = entry.body.split_first().ok_or(JournalError::NoOwner)?;
                let owner = std::str::from_utf8(owner).map_err(|_| JournalError::NoOwner)?;
                match *kind {
                    FORGOTTEN => drop(held.remove(owner)),
                    _ => {
                        let places = held.entry(owner.to_owned()).or_default();
                        places.push((entry.seq, entry.place, entry.payload_len));
                    }
                }
                Ok::<(), JournalError>(())
            },
        );
        replayed.map_err(|error| match error {
            ReplayError::Visit(error) => error,
            ReplayError::Log(error) => error.into(),
        })?;
        let parts = opened.into_parts();
        let mut stager = parts.stager;
        let mut live: BTreeMap<u64, (Place, u32)> = BTreeMap::new();
        live.extend(held.values().flatten().map(|(seq, place, len)| (*seq, (*place, *len))));
        stager.retain(&mut live.values().copied());
        let read = |error: ReadError| JournalError::Read(error.to_string());
        let records = live.values().map(|(place, _)| parts.reader.payload(*place).map_err(read));
        let records = records.collect::<Result<Vec<Bytes>, _>>()?;
        let places = held
            .into_iter()
            .map(|(owner, places)| (owner, places.into_iter().map(|(_, place, len)| (place, len)).collect()));
        let writing = Writing { stager, writer: parts.writer, places: places.collect(), failed: None };
        let (requests, waiting) = flume::bounded(WAITING_MAX);
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || writing.run(&waiting));
        let thread = thread.expect("a thread can be started, or nothing works");
        Ok((Self { requests, thread: Mutex::new(Some(thread)) }, records))
    }

    /// Takes its place in the order at once. The receiver hears when it is safe.
    pub fn write(&self, owner: &str, record: Vec<u8>) -> oneshot::Receiver<Result<(), JournalError>> {
        let (done, heard) = oneshot::channel();
        let request = Request::Write { owner: owner.to_owned(), record, done };
        if let Err(refused) = self.requests.send(request)
            && let Request::Write { done, .. } = refused.into_inner()
        {
            let _nobody_waits = done.send(Err(JournalError::Closed));
        }
        heard
    }

    /// Nothing that this owner wrote is needed any more. If the process dies before this is on disk, it comes back.
    pub fn forget(&self, owner: &str) {
        let _closed = self.requests.send(Request::Forget { owner: owner.to_owned() });
    }

    /// Writes what waits and closes the files.
    pub fn close(&self) {
        let _closed_already = self.requests.send(Request::Close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the journal panicked");
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

struct Writing<S, W> {
    stager: S,
    writer: W,
    places: HashMap<String, Vec<(Place, u32)>>,
    /// After a failure nothing is written any more: what comes next could not be told from a torn write.
    failed: Option<JournalError>,
}

impl<B: Send + 'static, S: Stage<Batch = B>, W: Commit<Batch = B>> Writing<S, W> {
    fn run(mut self, waiting: &flume::Receiver<Request>) {
        let mut is_open = true;
        while is_open {
            let Ok(first) = waiting.recv() else { break };
            let mut answers = Vec::new();
            for request in std::iter::once(first).chain(waiting.drain()) {
                match request {
                    Request::Write { owner, record, done } => match self.stage(owner, record) {
                        Ok(()) => answers.push(done),
                        Err(error) => drop(done.send(Err(error))),
                    },
                    Request::Forget { owner } => self.forget(&owner),
                    Request::Close => is_open = false,
                }
            }
            self.commit(answers);
        }
        if let Err(error) = self.writer.close() {
            tracing::error!("closing the journal: {error}");
        }
    }

    fn stage(&mut self, owner: String, record: Vec<u8>) -> Result<(), JournalError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let len = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let stamp = self.stager.stage(&body(WRITTEN, &owner), record.into())?;
        self.places.entry(owner).or_default().push((stamp.place, len));
        Ok(())
    }

    fn forget(&mut self, owner: &str) {
        let Some(places) = self.places.remove(owner) else { return };
        if let Err(error) = self.stager.stage(&body(FORGOTTEN, owner), Bytes::new()) {
            tracing::warn!("an owner of the journal is not forgotten: {error}");
            return;
        }
        for (place, len) in places {
            self.stager.free(place, len);
        }
    }

    fn commit(&mut self, answers: Vec<oneshot::Sender<Result<(), JournalError>>>) {
        if let Some(batch) = self.stager.take_batch()
            && let Err(error) = self.writer.commit(batch)
        {
            tracing::error!("the journal cannot be written: {error}");
            self.failed = Some(error.into());
        }
        let outcome = self.failed.clone().map_or(Ok(()), Err);
        for answer in answers {
            let _nobody_waits = answer.send(outcome.clone());
        }
        if self.failed.is_some() {
            return;
        }
        for release in self.stager.reclaimable() {
            if let Err(error) = self.writer.release(release) {
                tracing::warn!("releasing a part of the journal: {error}");
            }
        }
    }
}

fn body(kind: u8, owner: &str) -> Vec<u8> {
    [&[kind], owner.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(records: &[Bytes]) -> Vec<String> {
        records.iter().map(|record| String::from_utf8_lossy(record).into_owned()).collect()
    }

    fn write(journal: &Journal, owner: &str, record: &str) {
        journal.write(owner, record.into()).blocking_recv().unwrap().unwrap();
    }

    #[test]
    fn what_was_written_comes_back_until_its_owner_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, records) = Journal::open(dir.path(), Durability::Os).unwrap();
        assert!(records.is_empty());
        for (owner, record) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")] {
            write(&journal, owner, record);
        }
        journal.forget("a");
        write(&journal, "b", "b2");
        drop(journal);
        let (journal, records) = Journal::open(dir.path(), Durability::Os).unwrap();
        assert_eq!(texts(&records), ["b1", "c1", "b2"]);
        journal.forget("b");
        write(&journal, "a", "anew");
        drop(journal);
        let (_, records) = Journal::open(dir.path(), Durability::Os).unwrap();
        assert_eq!(texts(&records), ["c1", "anew"]);
    }

    #[test]
    fn disk_is_given_back_as_owners_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(dir.path(), Durability::Os).unwrap();
        let record = "x".repeat(1 << 20);
        for owner in 0..150 {
            write(&journal, &owner.to_string(), &record);
            journal.forget(&owner.to_string());
        }
        write(&journal, "last", "l");
        journal.close();
        let size: u64 = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(size < 3 * SEGMENT_BYTES, "{size}");
    }
}
