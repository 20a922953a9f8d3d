//! Snapshots, as objects beside the stream.
//!
//! There are two, written in turn, so that a damaged or unfinished one costs a longer replay and nothing else. Each
//! says after which message of the stream it was taken, and the replay begins there.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::contract::{KeepSnapshots, Snapshot};
use super::super::error::LogError;
use super::blobs::BlobStore;
use super::connection::{Connection, again};
use super::names::Names;

const SLOTS: [&str; 2] = ["snapshot-a", "snapshot-b"];
const SEQ: &str = "seq";
const SEQUENCE: &str = "sequence";
const BORN: &str = "born";

/// Batches that are remembered until a snapshot wants to know where they ended.
const MARKS_MAX: usize = 4096;

/// After which message a record was the last. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Marks(Arc<Mutex<VecDeque<(u64, u64)>>>);

impl Marks {
    pub(super) fn new(seq: u64, sequence: u64) -> Self {
        Self(Arc::new(Mutex::new(VecDeque::from([(seq, sequence)]))))
    }

    pub(super) fn note(&self, seq: u64, sequence: u64) {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() == MARKS_MAX {
            marks.pop_front();
        }
        marks.push_back((seq, sequence));
    }

    /// The last message of ours.
    pub(super) fn last(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).back().map_or(0, |(_, sequence)| *sequence)
    }

    /// A message after which no record past `seq` had been written; 0 if none is known.
    fn before(&self, seq: u64) -> u64 {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.iter().rev().find(|(noted, _)| *noted <= seq).map_or(0, |(_, sequence)| *sequence)
    }
}

/// Keeps the snapshots of a log on JetStream. Clones share it.
#[derive(Clone, Debug)]
pub struct Snapshots {
    pub(super) connection: Connection,
    pub(super) bucket: BlobStore,
    /// When the stream was made that they are of.
    pub(super) born: String,
    pub(super) marks: Marks,
    /// The slot to write next.
    pub(super) next: Arc<Mutex<usize>>,
}

impl KeepSnapshots for Snapshots {
    fn write(&self, seq: u64, bytes: &[u8]) -> Result<(), LogError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = SLOTS.get(*next % SLOTS.len()).copied().unwrap_or(SLOTS[0]);
        let metadata = HashMap::from([
            (SEQ.to_owned(), seq.to_string()),
            (SEQUENCE.to_owned(), self.marks.before(seq).to_string()),
            (BORN.to_owned(), self.born.clone()),
        ]);
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let patience = self.connection.settings().patience;
        self.connection.run(again(patience, async || {
            self.bucket.put_with(slot, bytes.clone(), metadata.clone()).await
        }))?;
        *next += 1;
        Ok(())
    }
}

/// A snapshot that was found, and where the replay after it begins.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) snapshot: Snapshot,
    pub(super) sequence: u64,
}

/// The newest sound snapshot that is not newer than the log, and the slot that the next one goes to.
pub(super) async fn newest(
    bucket: &BlobStore,
    names: &Names,
    born: &str,
    last_seq: u64,
) -> Result<(Option<Found>, usize), LogError> {
    let mut known = Vec::new();
    for (slot, name) in SLOTS.iter().enumerate() {
        let Some(info) = bucket.info(name).await? else { continue };
        let number = |key: &str| info.metadata.get(key).and_then(|text| text.parse::<u64>().ok());
        let (Some(seq), Some(sequence)) = (number(SEQ), number(SEQUENCE)) else { continue };
        if info.metadata.get(BORN).map(String::as_str) != Some(born) {
            // Of a stream of the same name that was removed.
            bucket.delete(name).await?;
            continue;
        }
        if seq > last_seq {
            // The servers lost the end of the log, which they may without syncing. Other records will get its numbers.
            tracing::error!(run = %names.run, seq, last_seq, "a snapshot is newer than the log and is removed: the servers have lost records");
            bucket.delete(name).await?;
            continue;
        }
        known.push((seq, sequence, slot));
    }
    known.sort_unstable();
    let next = known.last().map_or(0, |(_, _, slot)| slot + 1);
    for (seq, sequence, slot) in known.into_iter().rev() {
        let Some(name) = SLOTS.get(slot) else { continue };
        match bucket.get(name).await {
            Ok(Some(bytes)) => {
                let snapshot = Snapshot { seq, bytes: bytes.into() };
                return Ok((Some(Found { snapshot, sequence }), next));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(run = %names.run, "a snapshot is damaged, the replay is longer: {error}")
            }
        }
    }
    Ok((None, next))
}
