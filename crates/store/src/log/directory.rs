//! The names of a log's files, and the ways of reading and writing one as a whole.

use super::contract::SegmentNo;
use super::disk::Disk;
use super::error::LogError;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log's directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) path: PathBuf,
}

/// The files in a log's directory, in order.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) logs: Vec<SegmentNo>,
    pub(super) hists: Vec<SegmentNo>,
    pub(super) snapshots: Vec<u64>,
    pub(super) unfinished: Vec<PathBuf>,
}

impl Directory {
    pub(super) fn log_path(&self, segment: SegmentNo) -> PathBuf {
        self.path.join(format!("{segment}.log"))
    }

    pub(super) fn hist_path(&self, segment: SegmentNo) -> PathBuf {
        self.path.join(format!("{segment}.hist"))
    }

    pub(super) fn snapshot_path(&self, seq: u64) -> PathBuf {
        self.path.join(format!("snapshot-{seq:020}.snap"))
    }

    pub(super) fn list(&self) -> Result<Listing, LogError> {
        let names = self.disk.list(&self.path);
        let names = names.map_err(|cause| LogError::io("list the directory", &self.path, cause))?;
        let mut listing = Listing::default();
        for name in names {
            let Some((stem, kind)) = name.rsplit_once('.') else { continue };
            let path = self.path.join(&name);
            match kind {
                "log" | "hist" => {
                    let segment = stem.parse().ok().map(SegmentNo);
                    let is = |known: fn(&Self, SegmentNo) -> PathBuf| {
                        segment.filter(|&segment| known(self, segment) == path)
                    };
                    listing.logs.extend(is(Self::log_path));
                    listing.hists.extend(is(Self::hist_path));
                }
                "snap" => {
                    let seq = stem.strip_prefix("snapshot-").and_then(|seq| seq.parse().ok());
                    listing.snapshots.extend(seq.filter(|&seq| self.snapshot_path(seq) == path));
                }
                "tmp" => listing.unfinished.push(path),
                _ => {}
            }
        }
        listing.logs.sort_unstable();
        listing.hists.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }

    /// The whole file.
    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, LogError> {
        self.read_up_to(path, u64::MAX)
    }

    /// The file's first bytes.
    pub(super) fn read_up_to(&self, path: &Path, len_max: u64) -> Result<Vec<u8>, LogError> {
        let read = || {
            let file = self.disk.open(path)?;
            let mut bytes = vec![0; usize::try_from(file.size()?.min(len_max)).map_err(io::Error::other)?];
            let read = file.read_at(&mut bytes, 0)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        read().map_err(|cause| LogError::io("read", path, cause))
    }

    /// Puts a whole file in place: after a crash there is the old one or the new one, never a part.
    pub(super) fn replace(&self, path: &Path, parts: &[&[u8]]) -> Result<(), LogError> {
        let temporary = self.path.join(format!("{}.tmp", path.file_name().unwrap_or_default().display()));
        let write = || {
            let file = self.disk.create(&temporary)?;
            let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
            file.write_all_at(&mut slices, 0)?;
            Ok(file)
        };
        let file = write().map_err(|cause| LogError::io("write", path, cause))?;
        // Its pages may be lost for good, but nobody relies on them: only the log itself is poisoned by a
        // failed sync.
        file.sync().map_err(|cause| LogError::io("sync", path, cause))?;
        let renamed = self.disk.rename(&temporary, path);
        renamed.map_err(|cause| LogError::io("rename", path, cause))?;
        self.sync()
    }

    /// Makes names durable. After a failure nobody can say which of them are.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        self.disk.sync_dir(&self.path).map_err(|cause| LogError::sync(&self.path, cause))
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), LogError> {
        self.disk.remove(path).map_err(|cause| LogError::io("remove", path, cause))
    }
}
