//! Why an archive is behind.

use std::io;
use std::path::{Path, PathBuf};

use crate::log::{LogError, ReadError};
use crate::places::PlaceError;
use crate::yard::YardError;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot {doing}: {cause}: {}", path.display())]
    Io { doing: &'static str, cause: io::Error, path: PathBuf },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot make Parquet of what was archived: {cause}: {url}")]
    Parquet { cause: ::parquet::errors::ParquetError, url: String },
    #[error(transparent)]
    Payload(#[from] ReadError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Yard(#[from] YardError),
    #[error("record {seq} of the log cannot be read: {why}")]
    Record { seq: u64, why: String },
    #[error("no thread for the archive: {0}")]
    Thread(io::Error),
}

impl ArchiveError {
    pub(super) fn io<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |cause| Self::Io { doing, cause, path: path.to_owned() }
    }
}
