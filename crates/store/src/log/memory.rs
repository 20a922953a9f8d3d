//! The log without files, for tests of what stands on it.
//!
//! It keeps the whole [`contract`](super::contract) short of outliving the process: open the same
//! [`Memory`] again and everything committed is there, everything merely staged is gone.

use super::contract::{
    Commit, Entry, KeepSnapshots, Log, Parts, Payloads, Release, SegmentNo, Snapshot, Sparse, Stage, Stamp,
};
use super::error::{LogError, ReadError, ReplayError, StageError};
use super::live::Liveness;
use bytes::Bytes;
use rollyard_core::ids::Place;
use rollyard_core::run_config::Durability;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a file would be: it stays while logs are opened and dropped.
#[derive(Clone, Debug)]
pub struct Memory {
    stored: Arc<Mutex<Stored>>,
    segment_bytes: u64,
}

#[derive(Debug, Default)]
struct Stored {
    records: Vec<Record>,
    payloads: BTreeMap<SegmentNo, HashMap<Place, Bytes>>,
    snapshot: Option<Snapshot>,
}

#[derive(Debug)]
struct Record {
    place: Place,
    payload: Bytes,
    payload_len: u32,
    body: Box<[u8]>,
}

impl Memory {
    #[must_use]
    pub fn new(segment_bytes: u64) -> Self {
        Self { stored: Arc::default(), segment_bytes }
    }

    #[must_use]
    pub fn open(&self) -> MemoryLog {
        let stored = self.stored();
        let next_seq = stored.records.len() as u64 + 1;
        let last = stored.records.last().map(|record| SegmentNo::of(record.place));
        let sizes = stored.payloads.iter().map(|(&segment, payloads)| (segment, total_len(payloads)));
        let stager = MemoryStager {
            segment_bytes: self.segment_bytes,
            segment: last.map_or(SegmentNo(1), SegmentNo::next),
            segment_len: 0,
            segment_count: 0,
            next_seq,
            batch: Vec::new(),
            live: Liveness::of_found(sizes),
        };
        let snapshot = stored.snapshot.clone();
        drop(stored);
        MemoryLog { stager, snapshot, memory: self.clone() }
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn total_len(payloads: &HashMap<Place, Bytes>) -> u64 {
    payloads.values().map(|payload| payload.len() as u64).sum()
}

/// An opened [`Memory`].
#[derive(Debug)]
pub struct MemoryLog {
    stager: MemoryStager,
    snapshot: Option<Snapshot>,
    memory: Memory,
}

impl Log for MemoryLog {
    type Batch = MemoryBatch;
    type Stager = MemoryStager;
    type Writer = MemoryWriter;
    type Reader = Memory;
    type Snapshots = Memory;

    fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    fn replay<E>(
        &self,
        from_seq: u64,
        mut progress: impl FnMut(u64, u64),
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), ReplayError<E>> {
        let stored = self.memory.stored();
        let total_bytes = stored.records.iter().map(|record| record.body.len() as u64).sum();
        for (seq, record) in (1..).zip(&stored.records).filter(|(seq, _)| *seq >= from_seq) {
            let Record { place, payload_len, ref body, .. } = *record;
            visit(Entry { seq, place, payload_len, body }).map_err(ReplayError::Visit)?;
        }
        progress(total_bytes, total_bytes);
        Ok(())
    }

    /// Memory outlives neither the process nor the power, whatever is asked.
    fn set_durability(&mut self, _durability: Durability) {}

    fn into_parts(self) -> Parts<Self> {
        let Self { stager, memory, .. } = self;
        let writer = MemoryWriter { committed_seq: stager.next_seq - 1, memory: memory.clone() };
        Parts { stager, writer, reader: memory.clone(), snapshots: memory }
    }
}

/// The sequencer's end of a [`MemoryLog`].
#[derive(Debug)]
pub struct MemoryStager {
    segment_bytes: u64,
    segment: SegmentNo,
    segment_len: u64,
    segment_count: u32,
    next_seq: u64,
    batch: Vec<Record>,
    live: Liveness,
}

/// Staged records of a [`MemoryLog`].
#[derive(Debug)]
pub struct MemoryBatch {
    first_seq: u64,
    records: Vec<Record>,
}

impl Stage for MemoryStager {
    type Batch = MemoryBatch;

    fn next_seq(&self) -> u64 {
        self.next_seq
    }

    fn stage(&mut self, body: &[u8], payload: Bytes) -> Result<Stamp, StageError> {
        StageError::check_lens(body.len(), payload.len())?;
        if self.batch.is_empty() && self.segment_len >= self.segment_bytes {
            self.segment = self.segment.next();
            (self.segment_len, self.segment_count) = (0, 0);
        }
        let stamp = Stamp { seq: self.next_seq, place: self.segment.place(self.segment_count) };
        let payload_len = payload.len() as u32;
        self.live.grow(self.segment, u64::from(payload_len));
        if payload_len > 0 {
            self.live.add(stamp.place, payload_len);
        }
        self.segment_len += (body.len() + payload.len()) as u64;
        self.segment_count += 1;
        self.next_seq += 1;
        self.batch.push(Record { place: stamp.place, payload, payload_len, body: body.into() });
        Ok(stamp)
    }

    fn staged_bytes(&self) -> u64 {
        self.batch.iter().map(|record| record.body.len() as u64 + u64::from(record.payload_len)).sum()
    }

    fn take_batch(&mut self) -> Option<MemoryBatch> {
        let records = std::mem::take(&mut self.batch);
        let first_seq = self.next_seq - records.len() as u64;
        (!records.is_empty()).then_some(MemoryBatch { first_seq, records })
    }

    fn free(&mut self, place: Place, payload_len: u32) {
        self.live.free(place, payload_len);
    }

    fn retain(&mut self, live: &mut dyn Iterator<Item = (Place, u32)>) -> u64 {
        self.live.retain(live)
    }

    fn reclaimable(&mut self) -> Vec<Release> {
        self.live.reclaimable(self.segment, self.next_seq - 1)
    }

    fn sparse(&self, live_share_max: f64) -> Vec<Sparse> {
        self.live.sparse(self.segment, live_share_max)
    }
}

/// The sync thread's end of a [`MemoryLog`].
#[derive(Debug)]
pub struct MemoryWriter {
    committed_seq: u64,
    memory: Memory,
}

impl Commit for MemoryWriter {
    type Batch = MemoryBatch;

    fn commit(&mut self, batch: MemoryBatch) -> Result<(), LogError> {
        let mut stored = self.memory.stored();
        // The records themselves say what comes next, so a stale owner is fenced here.
        let (expected, found) = (stored.records.len() as u64 + 1, batch.first_seq);
        if expected != found {
            return Err(LogError::OutOfOrder { expected, found });
        }
        for mut record in batch.records {
            let payloads = stored.payloads.entry(SegmentNo::of(record.place)).or_default();
            if record.payload_len > 0 {
                payloads.insert(record.place, std::mem::take(&mut record.payload));
            }
            stored.records.push(record);
        }
        self.committed_seq = stored.records.len() as u64;
        Ok(())
    }

    fn committed_seq(&self) -> u64 {
        self.committed_seq
    }

    fn release(&mut self, release: Release) -> Result<u64, LogError> {
        let segment = release.due(self.committed_seq)?;
        Ok(self.memory.stored().payloads.remove(&segment).map_or(0, |payloads| total_len(&payloads)))
    }

    fn close(self) -> Result<(), LogError> {
        Ok(())
    }
}

impl Payloads for Memory {
    fn payload(&self, place: Place) -> Result<Bytes, ReadError> {
        let path = PathBuf::from("memory");
        let stored = self.stored();
        let payloads = stored.payloads.get(&SegmentNo::of(place));
        let payloads = payloads.ok_or_else(|| ReadError::Gone { place, path: path.clone() })?;
        let what = "there is none in this record";
        payloads.get(&place).cloned().ok_or(ReadError::Corrupt { place, what, path })
    }
}

impl KeepSnapshots for Memory {
    fn write(&self, seq: u64, bytes: &[u8]) -> Result<(), LogError> {
        self.stored().snapshot = Some(Snapshot { seq, bytes: bytes.to_owned() });
        Ok(())
    }
}
