//! A folder of rollout files, on a disk or on S3.
//!
//! A file is there as a whole or not at all, and a folder keeps only so many: the oldest go first, whoever
//! wrote them, so that workers that come and go leave nothing behind. Calls block; none may be made from inside
//! an async runtime.

use super::local::Local;
use super::name::FileName;
use bytes::Bytes;
use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

#[derive(Debug)]
pub struct RolloutFolder {
    place: Box<dyn Place>,
    /// Of the newest file that was seen or written here.
    newest_micros: AtomicU64,
}

/// Where files are. Names are plain text here; only [`RolloutFolder`] knows which are ours.
pub(super) trait Place: Debug + Send + Sync {
    /// Makes it ready to be written to.
    fn prepare(&self) -> Result<(), FolderError>;

    /// All names in it, in any order; none if it does not exist yet.
    fn list(&self) -> Result<Vec<String>, FolderError>;

    /// The file's bytes, or [`FolderError::Gone`].
    fn read(&self, name: &str) -> Result<Bytes, FolderError>;

    /// Puts a file there, whole and durable, or not at all.
    fn publish(&self, name: &str, bytes: Bytes) -> Result<(), FolderError>;

    /// Removes a file; that it is gone already is no error.
    fn delete(&self, name: &str) -> Result<(), FolderError>;
}

#[derive(Debug, Error)]
pub enum FolderError {
    #[error(
        "rollouts cannot be kept at this kind of place; give a path, file:///path or s3://bucket/prefix: {place}"
    )]
    Scheme { place: String },
    #[error("the file is gone; it was deleted, by a writer that keeps no more files or by hand: {name}")]
    Gone { name: String },
    #[error("cannot {what} ({cause}): {path}")]
    Io { what: &'static str, cause: io::Error, path: String },
    #[error(
        "cannot {what} ({why}); check the bucket, AWS_ENDPOINT_URL, AWS_REGION and the credentials in the \
         environment: {place}"
    )]
    S3 { what: &'static str, why: String, place: String },
}

impl RolloutFolder {
    /// A path, `file:///path` or `s3://bucket/prefix`. Nothing is read or written yet.
    pub fn open(place: &str) -> Result<Self, FolderError> {
        let place: Box<dyn Place> = match place.split_once("://") {
            None => Box::new(Local::new(place)),
            Some(("file", path)) if path.starts_with('/') => Box::new(Local::new(path)),
            Some(("s3", _)) => s3(place)?,
            Some(_) => return Err(FolderError::Scheme { place: place.to_owned() }),
        };
        Ok(Self { place, newest_micros: AtomicU64::new(0) })
    }

    /// Makes the folder ready to be written to, and shows early that it cannot be.
    pub fn prepare(&self) -> Result<(), FolderError> {
        self.place.prepare()?;
        self.list().map(drop)
    }

    /// The files that are there, oldest first.
    pub fn list(&self) -> Result<Vec<FileName>, FolderError> {
        let names = self.place.list()?;
        let mut names: Vec<FileName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort_unstable();
        if let Some(newest) = names.last() {
            self.newest_micros.fetch_max(newest.micros(), Ordering::Relaxed);
        }
        Ok(names)
    }

    pub fn read(&self, name: &FileName) -> Result<Bytes, FolderError> {
        self.place.read(&name.to_string())
    }

    /// Puts a file there under a name that is newer than all that are there.
    ///
    /// The clocks of machines differ. A file that went by its own clock could be older than all others at its
    /// birth, and would be deleted before anybody read it.
    pub fn publish(&self, bytes: impl Into<Bytes>, now_micros: u64) -> Result<FileName, FolderError> {
        self.list()?;
        let next = |newest: u64| now_micros.max(newest.saturating_add(1));
        let newest = &self.newest_micros;
        let seen = newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |newest| Some(next(newest)));
        let name = FileName::new(seen.map_or(now_micros, next));
        self.place.publish(&name.to_string(), bytes.into())?;
        Ok(name)
    }

    /// Deletes the oldest files until so many are left, and says which.
    pub fn delete_beyond(&self, files_max: usize) -> Result<Vec<FileName>, FolderError> {
        let mut names = self.list()?;
        names.truncate(names.len().saturating_sub(files_max));
        names.iter().try_for_each(|name| self.place.delete(&name.to_string()))?;
        Ok(names)
    }
}

fn s3(place: &str) -> Result<Box<dyn Place>, FolderError> {
    Ok(Box::new(super::s3::S3::new(place)?))
}
