//! Numbers records, gives them their places and packs them into batches, without touching a file.
//!
//! The stager knows where the writer will put each byte, because it alone decides when a new segment
//! begins: at the first record of a batch, once the segment is full.

use super::batch::Batch;
use super::contract::{Release, SegmentNo, Sparse, Stage, Stamp};
use super::error::StageError;
use super::format::{BATCH_LEN_FULL, Checksum};
use super::live::Liveness;
use super::pool::Pool;
use bytes::Bytes;
use rollyard_core::ids::Place;
use rollyard_core::run_config::Durability;

/// A segment of nothing but bodies is cut here, because the writer keeps its history in memory.
const HISTORY_LEN_MAX: u64 = 16 << 20;

/// The sequencer's end of an embedded log.
#[derive(Debug)]
pub struct Stager {
    pub(super) checksum: Checksum,
    pub(super) durability: Durability,
    pub(super) segment_bytes: u64,
    /// The segment of the next batch, unless that is full.
    pub(super) segment: SegmentNo,
    /// What the batches taken so far have put into it.
    pub(super) segment_len: u64,
    pub(super) history_len: u64,
    pub(super) next_seq: u64,
    pub(super) batch: Option<Batch>,
    pub(super) live: Liveness,
    pub(super) pool: Pool,
}

impl Stager {
    fn begin_batch(&mut self) -> Batch {
        if self.segment_len >= self.segment_bytes || self.history_len >= HISTORY_LEN_MAX {
            self.segment = self.segment.next();
            (self.segment_len, self.history_len) = (0, 0);
        }
        Batch::begin(self.segment, self.segment_len, self.next_seq, self.checksum, self.pool.take())
    }
}

impl Stage for Stager {
    type Batch = Batch;

    fn next_seq(&self) -> u64 {
        self.next_seq
    }

    fn stage(&mut self, body: &[u8], payload: Bytes) -> Result<Stamp, StageError> {
        StageError::check_lens(body.len(), payload.len())?;
        let staged_bytes = self.staged_bytes();
        if staged_bytes >= BATCH_LEN_FULL {
            return Err(StageError::BatchFull { staged_bytes });
        }
        let mut batch = self.batch.take().unwrap_or_else(|| self.begin_batch());
        let payload_len = payload.len() as u32;
        let stamp = batch.push(body, payload, self.checksum);
        self.batch = Some(batch);
        self.next_seq += 1;
        self.live.grow(self.segment, 0);
        if payload_len > 0 {
            self.live.add(stamp.place, payload_len);
        }
        Ok(stamp)
    }

    fn staged_bytes(&self) -> u64 {
        self.batch.as_ref().map_or(0, Batch::len)
    }

    fn take_batch(&mut self) -> Option<Batch> {
        let mut batch = self.batch.take()?;
        batch.finish(self.durability == Durability::Fsync, self.checksum);
        self.segment_len += batch.len();
        self.history_len += batch.history.content.len() as u64;
        self.live.grow(batch.segment, batch.len());
        Some(batch)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Commit;
    use crate::log::format::{FileHeader, Kind};

    #[test]
    fn version_1_is_still_written_byte_for_byte() {
        let expected = include_bytes!("../../tests/fixtures/log-v1/00000002.log");
        let header = FileHeader::decode(Kind::Log, expected).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut log = crate::log::open(dir.path(), crate::log::Options::default()).unwrap();
        (log.stager.checksum, log.stager.segment) = (Checksum::new(header.salt), header.segment);
        (log.stager.next_seq, log.writer.committed_seq) = (header.seq, header.seq - 1);
        for n in 4..=6_usize {
            let payload: Vec<u8> = (0..700).map(|i| (n * 31 + i * 7) as u8 | 1).collect();
            log.stager.stage(format!("record {n}").as_bytes(), payload.into()).unwrap();
        }
        log.writer.commit(log.stager.take_batch().unwrap()).unwrap();
        log.writer.close().unwrap();
        assert_eq!(std::fs::read(dir.path().join("00000002.log")).unwrap(), expected);
    }
}
