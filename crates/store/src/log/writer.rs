//! Puts batches on the disk, one write and one sync each.
//!
//! The writer also finishes segments: when a batch begins a new one, the old is cut to its real length
//! and its history written, both durable before the new file exists. So only the last segment can ever be
//! unfinished, and a restart needs to judge no other.
//!
//! It fails once. After a failed write the file is cut back to where the batch began, and everything later
//! is refused until the log is opened again: the stager has already numbered records that now do not
//! exist. After a failed sync even that would be a guess, see [`LogError::Sync`].

use super::batch::Batch;
use super::contract::{Commit, Release, SegmentNo};
use super::directory::Directory;
use super::disk::{DiskFile, Guard};
use super::error::{Failure, LogError};
use super::format::Checksum;
use super::history::{History, Sealed};
use super::pool::Pool;
use super::reader::Reader;
use rollyard_core::run_config::Durability;
use std::path::PathBuf;
use std::sync::Arc;

/// The sync thread's end of an embedded log.
#[derive(Debug)]
pub struct Writer {
    pub(super) dir: Directory,
    pub(super) checksum: Checksum,
    pub(super) durability: Durability,
    pub(super) segment_bytes: u64,
    pub(super) committed_seq: u64,
    /// The segment being written; none right after opening.
    pub(super) active: Option<Active>,
    pub(super) failed: Failure,
    pub(super) pool: Pool,
    /// To let go of the files of released segments.
    pub(super) reader: Reader,
    pub(super) _lock: Arc<dyn Guard>,
}

#[derive(Debug)]
pub(super) struct Active {
    segment: SegmentNo,
    first_seq: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    len: u64,
    history: History,
}

impl Active {
    fn sync(&self) -> Result<(), LogError> {
        self.file.sync().map_err(|cause| LogError::sync(&self.path, cause))
    }
}

impl Commit for Writer {
    type Batch = Batch;

    fn commit(&mut self, batch: Batch) -> Result<(), LogError> {
        self.failed.check()?;
        let expected = self.committed_seq + 1;
        if batch.first_seq != expected {
            return Err(LogError::OutOfOrder { expected, found: batch.first_seq });
        }
        let written = self.write(&batch);
        self.failed.remember(written)?;
        self.committed_seq = batch.next_seq() - 1;
        self.pool.give(batch.into_buffer());
        Ok(())
    }

    fn committed_seq(&self) -> u64 {
        self.committed_seq
    }

    fn release(&mut self, release: Release) -> Result<u64, LogError> {
        self.failed.check()?;
        let segment = release.due(self.committed_seq)?;
        let released = self.remove_log(segment);
        self.failed.remember(released)
    }

    fn close(mut self) -> Result<(), LogError> {
        self.failed.check()?;
        self.seal()
    }
}

impl Writer {
    fn write(&mut self, batch: &Batch) -> Result<(), LogError> {
        if batch.offset == 0 {
            self.seal()?;
            self.active = Some(self.create(batch)?);
        }
        let expected = self.committed_seq + 1;
        let out_of_order = LogError::OutOfOrder { expected, found: batch.first_seq };
        let active =
            self.active.as_mut().filter(|active| active.segment == batch.segment).ok_or(out_of_order)?;

        if let Err(cause) = active.file.write_all_at(&mut batch.slices(), batch.offset) {
            // If this fails too, the restart finds a torn write and cuts it off.
            let _ = active.file.truncate(batch.offset);
            return Err(LogError::io("write a batch", &active.path, cause));
        }
        if self.durability == Durability::Fsync {
            active.sync()?;
        }
        if batch.offset == 0 {
            self.dir.sync()?;
        }
        active.len = batch.offset + batch.len();
        active.history.append(&batch.history);
        Ok(())
    }

    fn create(&self, batch: &Batch) -> Result<Active, LogError> {
        let path = self.dir.log_path(batch.segment);
        let file = self.dir.disk.create(&path);
        let file = file.map_err(|cause| LogError::io("create a segment", &path, cause))?;
        // Room laid out in advance only makes syncs cheaper. Where it cannot be had, the file grows.
        if file.allocate(self.segment_bytes).is_err() {
            let emptied = file.truncate(0);
            emptied.map_err(|cause| LogError::io("truncate a segment", &path, cause))?;
        }
        let (segment, first_seq) = (batch.segment, batch.first_seq);
        Ok(Active { segment, first_seq, path, file, len: 0, history: History::default() })
    }

    /// Finishes the active segment, if there is one.
    fn seal(&mut self) -> Result<(), LogError> {
        let Some(active) = self.active.take() else { return Ok(()) };
        let truncated = active.file.truncate(active.len);
        truncated.map_err(|cause| LogError::io("truncate a segment", &active.path, cause))?;
        // With fsync every batch is on the disk already, and the cut may come back without harm: zeros.
        if self.durability == Durability::Os {
            active.sync()?;
        }
        let sealed = Sealed {
            segment: active.segment,
            salt: self.checksum.salt(),
            first_seq: active.first_seq,
            count: active.history.count,
            content_len: active.history.content.len() as u64,
            log_len: active.len,
            has_log: true,
        };
        active.history.write(&self.dir, &sealed)
    }

    /// Every segment but the active one has its history on the disk.
    fn remove_log(&mut self, segment: SegmentNo) -> Result<u64, LogError> {
        if let (Some(active), Durability::Os) = (&self.active, self.durability) {
            active.sync()?;
        }
        let path = self.dir.log_path(segment);
        let len = self.dir.disk.open(&path).and_then(|file| file.size());
        let len = len.map_err(|cause| LogError::io("open a segment", &path, cause))?;
        self.dir.remove(&path)?;
        self.reader.forget(segment);
        Ok(len)
    }
}
