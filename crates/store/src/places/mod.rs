//! Where files of rollouts lie: a disk, or a bucket of any object store.
//!
//! A *place* is what a user types: a file, a folder, a glob, `s3://bucket/prefix` (or `gs://`, `az://`). It stands
//! for files, each with a URL of its own, a size and a stamp that changes when the file does. Everything above
//! reads files through this module and never asks what kind of place they came from. Calls block; none may be made
//! from inside an async runtime.

pub(crate) mod address;
mod credentials;
mod disk;
mod error;
pub(crate) mod objects;
mod pattern;
mod roots;

pub use credentials::Surroundings;
pub use error::PlaceError;
pub use roots::Roots;

use address::{Address, ObjectAddress};
use bytes::Bytes;
use disk::Disk;
use objects::Objects;
use objects::connection::Connections;
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A file as it was when somebody looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// An absolute path, or `s3://bucket/key`.
    pub url: String,
    pub size_bytes: u64,
    /// Changes when the content does: the modification time in nanoseconds, or an ETag.
    pub stamp: String,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
}

/// One level of a place, or everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// URLs of folders, each ending in a slash. Empty when everything below was asked for.
    pub folders: Vec<String>,
    pub files: Vec<FileInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    One,
    All,
}

/// A file that is open for reading at any offset. Reads beyond the end give what there is.
pub trait ReadAt: Debug + Send + Sync {
    fn read_at(&self, range: Range<u64>) -> Result<Bytes, PlaceError>;

    /// When it was opened.
    fn size_bytes(&self) -> u64;
}

/// A file that is being written, and appears as a whole or not at all.
pub trait Upload: Debug + Send {
    fn write(&mut self, bytes: Bytes) -> Result<(), PlaceError>;
    /// Makes it appear under its name.
    fn finish(self: Box<Self>) -> Result<FileInfo, PlaceError>;
    /// Leaves nothing behind. Dropping does the same as far as it can.
    fn abort(self: Box<Self>);
}

/// Opens places. Clones share connections.
#[derive(Clone, Debug)]
pub struct Places {
    roots: Arc<Roots>,
    connections: Arc<Connections>,
}

impl Places {
    pub fn new(roots: Roots) -> Self {
        Self::within(roots, Surroundings::of_process())
    }

    /// With credentials and settings of stores from elsewhere than the process.
    pub fn within(roots: Roots, around: Surroundings) -> Self {
        Self { roots: Arc::new(roots), connections: Arc::new(Connections::new(around)) }
    }

    /// The files that a place stands for, sorted by URL: all of a folder and below that can hold rollouts
    /// (`.jsonl`, `.json`, `.ndjson`, `.parquet`), the matches of a glob, or the one file. Never none.
    pub fn files(&self, place: &str) -> Result<Vec<FileInfo>, PlaceError> {
        match Address::parse(place)? {
            Address::Disk(path) => self.disk().files(&path),
            Address::Object(address) => self.objects(address).files(),
        }
    }

    /// What there is to choose from: folders, and files that can hold rollouts. May be nothing.
    pub fn browse(&self, place: &str, depth: Depth) -> Result<Listing, PlaceError> {
        match Address::parse(place)? {
            Address::Disk(path) => self.disk().browse(&path, depth),
            Address::Object(address) => self.objects(address).browse(depth),
        }
    }

    /// One file, whatever its name ends in.
    pub fn look(&self, url: &str) -> Result<FileInfo, PlaceError> {
        match Address::parse(url)? {
            Address::Disk(path) => self.disk().look(&path),
            Address::Object(address) => self.objects(address).look(),
        }
    }

    pub fn open(&self, url: &str) -> Result<Arc<dyn ReadAt>, PlaceError> {
        match Address::parse(url)? {
            Address::Disk(path) => self.disk().open(&path),
            Address::Object(address) => self.objects(address).open(),
        }
    }

    /// Starts a file. Folders on the way to it are made.
    pub fn create(&self, url: &str) -> Result<Box<dyn Upload>, PlaceError> {
        match Address::parse(url)? {
            Address::Disk(path) => self.disk().create(&path),
            Address::Object(address) => self.objects(address).create(),
        }
    }

    /// The path of a URL on this machine's disk, if it is one and may be read.
    pub fn local_path(&self, url: &str) -> Option<PathBuf> {
        match Address::parse(url).ok()? {
            Address::Disk(path) => self.disk().real(&path).or_else(|_| self.disk().target(&path)).ok(),
            Address::Object(_) => None,
        }
    }

    fn objects(&self, address: ObjectAddress) -> Objects<'_> {
        Objects { roots: &self.roots, connections: &self.connections, address }
    }

    fn disk(&self) -> Disk<'_> {
        Disk { roots: &self.roots }
    }
}
