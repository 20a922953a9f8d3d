//! Shortcuts for a restart: the owner's state as of some record.
//!
//! The newest two are kept, so a damaged one costs a longer replay and nothing else.

use super::contract::{KeepSnapshots, SegmentNo, Snapshot};
use super::directory::{Directory, Listing};
use super::disk::Guard;
use super::error::LogError;
use super::format::{BadHeader, Checksum, FILE_HEADER_LEN, FileHeader, Kind};
use rollyard_core::run_config::Durability;
use std::sync::Arc;

const KEEP: usize = 2;

/// Writes snapshots of an embedded log, from any thread but one at a time.
#[derive(Clone, Debug)]
pub struct Snapshots {
    pub(super) dir: Directory,
    pub(super) checksum: Checksum,
    pub(super) durability: Durability,
    /// Nobody else may own the directory while something can still be written to it.
    pub(super) _lock: Arc<dyn Guard>,
}

impl KeepSnapshots for Snapshots {
    fn write(&self, seq: u64, bytes: &[u8]) -> Result<(), LogError> {
        let header = FileHeader {
            kind: Kind::Snapshot,
            segment: SegmentNo(0),
            salt: self.checksum.salt(),
            seq,
            count: u64::from(self.durability == Durability::Fsync),
            content_len: bytes.len() as u64,
            log_len: 0,
            content_crc: self.checksum.of(bytes),
        };
        self.dir.replace(&self.dir.snapshot_path(seq), &[&header.encode(), bytes])?;
        let older = self.dir.list()?.snapshots.into_iter().rev().skip(KEEP);
        older.map(|seq| self.dir.snapshot_path(seq)).try_for_each(|path| self.dir.remove(&path))
    }
}

/// The newest sound snapshot of the log with this salt, and not newer than its last record.
///
/// A log without records has no salt yet. A snapshot beside it says that it once had.
pub(super) fn newest(
    dir: &Directory,
    listing: &Listing,
    salt: Option<u64>,
    last_seq: u64,
) -> Result<Option<Snapshot>, LogError> {
    for &seq in listing.snapshots.iter().rev() {
        let path = dir.snapshot_path(seq);
        let mut bytes = dir.read(&path)?;
        let header = match FileHeader::decode(Kind::Snapshot, &bytes) {
            Ok(header) => Some(header),
            Err(BadHeader::Damaged) => None,
            Err(version) => return Err(version.at(&path)),
        };
        bytes.drain(..FILE_HEADER_LEN.min(bytes.len()));
        let sound = |header: &FileHeader| {
            salt.is_none_or(|salt| salt == header.salt)
                && header.seq == seq
                && header.content_crc == Checksum::new(header.salt).of(&bytes)
        };
        match header.filter(sound) {
            None => tracing::warn!(path = %path.display(), "a snapshot is damaged: the replay is longer"),
            Some(_) if seq <= last_seq => return Ok(Some(Snapshot { seq, bytes })),
            // Without fsync the power may go after the snapshot was synced and before the log was. It must
            // not wait here until other records have got the numbers that it was taken after.
            Some(header) if header.count == 0 => {
                tracing::warn!(path = %path.display(), "a snapshot is newer than the log and is removed");
                dir.remove(&path)?;
                dir.sync()?;
            }
            Some(_) => {
                let what = format!("taken after record {seq}, but the log ends with {last_seq}");
                return Err(LogError::corrupt(&path, 0, what));
            }
        }
    }
    Ok(None)
}
