//! What a log promises, whoever keeps it.
//!
//! The embedded log keeps these promises with files, [`memory`](super::memory) without any, and
//! [`jetstream`](super::jetstream) with a stream. One conformance suite runs against all of them.
//!
//! Sequence numbers are *predicted* by the sequencer and *enforced* by the writer: `stage` gives the
//! n-th record the number n, and `commit` refuses a batch that does not begin right after the last
//! committed record. With files the prediction cannot fail, because a lock keeps others out. A stream
//! sends the same prediction as its expected last sequence, and a stale owner is fenced by the refusal.

use super::error::{LogError, ReadError, ReplayError, StageError};
use bytes::Bytes;
use rollyard_core::ids::Place;
use rollyard_core::run_config::Durability;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The number and the address that a record has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub seq: u64,
    /// Where the payload can be read once the record is committed.
    pub place: Place,
}

/// A record as it comes back in a replay: everything but the payload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub seq: u64,
    pub place: Place,
    pub payload_len: u32,
    pub body: &'a [u8],
}

/// A part of the log whose payloads are given back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNo(pub u32);

impl SegmentNo {
    /// The segment that a payload lies in.
    #[must_use]
    pub fn of(place: Place) -> Self {
        Self((place.0 >> 32) as u32)
    }

    pub(super) fn place(self, offset: u32) -> Place {
        Place(u64::from(self.0) << 32 | u64::from(offset))
    }

    pub(super) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for SegmentNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08}", self.0)
    }
}

/// Leave to throw the payloads of a segment away, once the records that freed them are committed.
#[derive(Debug)]
pub struct Release {
    pub(super) segment: SegmentNo,
    pub(super) after_seq: u64,
}

impl Release {
    #[must_use]
    pub fn segment(&self) -> SegmentNo {
        self.segment
    }

    /// The record by which nothing in the segment was needed any more.
    #[must_use]
    pub fn after_seq(&self) -> u64 {
        self.after_seq
    }

    /// The segment to throw away, if the records that freed it are committed.
    pub(super) fn due(self, committed_seq: u64) -> Result<SegmentNo, LogError> {
        let Self { segment, after_seq } = self;
        if after_seq > committed_seq {
            return Err(LogError::ReleasedEarly { segment, after_seq, committed_seq });
        }
        Ok(segment)
    }
}

/// A segment that is kept for the sake of a few payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparse {
    pub segment: SegmentNo,
    pub live_bytes: u64,
    pub file_bytes: u64,
}

/// A state of the owner's, taken after the record `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: u64,
    pub bytes: Vec<u8>,
}

/// A payload that whoever made it has put where the log keeps blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub name: String,
    pub len: u32,
    pub crc32c: u32,
    /// The claim for which it was put there.
    pub claim: u64,
}

/// The sequencer's end of a log: numbers records and keeps count of what is still needed.
pub trait Stage: Send {
    type Batch: Send + 'static;

    /// The number that the next record gets: one more than the last staged.
    fn next_seq(&self) -> u64;

    /// Puts a record into the current batch. An empty payload is none.
    ///
    /// Nothing is durable yet: the record is lost in a crash until the batch has been committed, and it
    /// must not be answered, nor its payload read, before that. A refusal changes nothing.
    /// A payload counts as live from here on.
    fn stage(&mut self, body: &[u8], payload: Bytes) -> Result<Stamp, StageError>;

    /// The same for a payload that is stored already. The caller has seen it there.
    ///
    /// Its blob belongs to this record from then on, and goes when the record's segment goes.
    fn stage_stored(&mut self, _body: &[u8], _blob: Blob) -> Result<Stamp, StageError> {
        Err(StageError::NoBlobs)
    }

    /// The bytes staged since the last batch was taken.
    fn staged_bytes(&self) -> u64;

    /// Closes the current batch, if anything was staged. Batches must be committed in this order.
    fn take_batch(&mut self) -> Option<Self::Batch>;

    /// Says that a payload is no longer needed. Its bytes stay readable until its segment is released.
    fn free(&mut self, place: Place, payload_len: u32);

    /// Says after a replay which payloads are needed: exactly these.
    ///
    /// Returns how many of them are gone, which only happens to a log that was tampered with; reading
    /// one of those gives [`ReadError::Gone`].
    fn retain(&mut self, live: &mut dyn Iterator<Item = (Place, u32)>) -> u64;

    /// The finished segments in which nothing is live, each given out once.
    ///
    /// After opening a log that was not empty, none until [`Stage::retain`] has said what is live.
    /// A release that is not carried out, for instance because of a crash, is given out again after the
    /// log was opened anew.
    fn reclaimable(&mut self) -> Vec<Release>;

    /// The finished segments of which less than `live_share_max` (0 to 1) is live, emptiest first.
    ///
    /// The owner may stage the live payloads again, point its state to the new places and free the old.
    fn sparse(&self, live_share_max: f64) -> Vec<Sparse>;
}

/// The sync thread's end of a log.
pub trait Commit: Send {
    type Batch: Send + 'static;

    /// Makes a batch as durable as the log's durability says: with `Fsync` it survives power loss when
    /// this returns, with `Os` it survives the death of the process.
    ///
    /// A batch is there as a whole or not at all after a crash, and never without all batches before it.
    /// Batches come in the order in which they were taken; any other is refused with
    /// [`LogError::OutOfOrder`]. After a failure every later commit fails with the same error: the owner
    /// opens the log again and replays, unless [`LogError::is_poison`] says that only a new process may.
    fn commit(&mut self, batch: Self::Batch) -> Result<(), LogError>;

    /// Makes sure that this is still the owner's end: what it answers without writing must not be of the past.
    ///
    /// Where a lock keeps others out there is nothing to ask.
    fn confirm(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    /// The last committed record; 0 when there is none.
    fn committed_seq(&self) -> u64;

    /// Throws the payloads of a segment away and returns how many bytes that gave back.
    ///
    /// The records stay in the history. Everything committed is made durable first, so that no crash can
    /// bring back a state that needs these payloads.
    fn release(&mut self, release: Release) -> Result<u64, LogError>;

    /// Makes everything durable and leaves the log in the shape that opens fastest.
    fn close(self) -> Result<(), LogError>;
}

/// Anyone's end of a log.
pub trait Payloads: Clone + Send + Sync + 'static {
    /// The payload of a committed record, checked against its checksum.
    fn payload(&self, place: Place) -> Result<Bytes, ReadError>;

    /// Where large payloads are kept that do not go through the log, if there is such a place.
    fn blobs(&self) -> Option<Arc<dyn BlobPlace>> {
        None
    }

    /// The claim of the log's owner; payloads that others have stored are taken for this one only.
    fn claim(&self) -> Option<u64> {
        None
    }
}

/// Where whoever makes a large payload may put it: the log then gets its name only. Calls block.
pub trait BlobPlace: fmt::Debug + Send + Sync {
    /// What is not larger than this goes through the log.
    fn inline_max(&self) -> usize;

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), LogError>;

    /// The length of a blob, if it is there.
    fn len(&self, name: &str) -> Result<Option<u64>, LogError>;

    /// An address to which whoever has it may put this blob for a while; `None` if this place has no such addresses.
    fn signed_url(&self, name: &str, valid_for: Duration) -> Result<Option<String>, LogError>;
}

/// Keeps states, so that a restart need not replay everything. Works beside the two threads.
pub trait KeepSnapshots: Clone + Send + 'static {
    /// Stores the state after record `seq`; durable when this returns, and the one before it is kept.
    ///
    /// The caller has seen `seq` committed. A snapshot is only a shortcut: without it, or with a damaged
    /// one, the log opens just the same and the replay is longer.
    fn write(&self, seq: u64, bytes: &[u8]) -> Result<(), LogError>;
}

/// An opened log: what was in it, and the ends to go on with.
pub trait Log: Sized {
    type Batch: Send + 'static;
    type Stager: Stage<Batch = Self::Batch> + 'static;
    type Writer: Commit<Batch = Self::Batch> + 'static;
    type Reader: Payloads;
    type Snapshots: KeepSnapshots;

    /// The newest undamaged snapshot, once.
    fn take_snapshot(&mut self) -> Option<Snapshot>;

    /// Visits every record from `from_seq` on, in order, and none twice.
    ///
    /// `progress` is told the bytes read so far and in total.
    fn replay<E>(
        &self,
        from_seq: u64,
        progress: impl FnMut(u64, u64),
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), ReplayError<E>>;

    /// From here on, what is committed is to survive this.
    ///
    /// The owner learns it from the replay: a run's durability is written in its own log.
    fn set_durability(&mut self, durability: Durability);

    fn into_parts(self) -> Parts<Self>;
}

/// The ends of a log, each for its own thread.
#[derive(Debug)]
pub struct Parts<L: Log> {
    pub stager: L::Stager,
    pub writer: L::Writer,
    pub reader: L::Reader,
    pub snapshots: L::Snapshots,
}
