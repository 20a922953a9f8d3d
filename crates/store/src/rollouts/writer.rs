//! The end of a folder that a worker holds: a batch becomes a file, and the oldest file goes.

use super::columns::{About, ColumnsError, Row, encode};
use super::folder::{FolderError, RolloutFolder};
use super::name::FileName;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct BatchWriter {
    folder: RolloutFolder,
    files_max: NonZeroUsize,
}

/// A batch that is there to be read.
#[derive(Debug)]
pub struct Written {
    pub name: FileName,
    pub size_bytes: usize,
    pub encode_time: Duration,
    pub publish_time: Duration,
    /// Old files could not be deleted; the batch is written all the same.
    pub undeleted: Option<FolderError>,
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl BatchWriter {
    /// Makes the folder if it is not there. Of all files in it, whoever wrote them, so many are kept.
    pub fn open(place: &str, files_max: NonZeroUsize) -> Result<Self, FolderError> {
        let folder = RolloutFolder::open(place)?;
        folder.prepare()?;
        Ok(Self { folder, files_max })
    }

    pub fn write(&self, rows: &[Row<'_>], about: &About, now_micros: u64) -> Result<Written, WriteError> {
        let begun = Instant::now();
        let bytes = encode(rows, about)?;
        let (size_bytes, encode_time, begun) = (bytes.len(), begun.elapsed(), Instant::now());
        let name = self.folder.publish(bytes, now_micros)?;
        let publish_time = begun.elapsed();
        let undeleted = self.folder.delete_beyond(self.files_max.get()).err();
        Ok(Written { name, size_bytes, encode_time, publish_time, undeleted })
    }

    /// Deletes all files of rollouts, and nothing else that may be in the folder.
    pub fn clear(&self) -> Result<(), FolderError> {
        self.folder.delete_beyond(0).map(drop)
    }
}
