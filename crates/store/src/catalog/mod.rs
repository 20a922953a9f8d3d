//! A summary of every rollout in some files, kept in the cache folder.
//!
//! One narrow row a rollout: attributes, lengths, flags, and where its bytes lie. Filters, curves and tables ask the
//! summary; bodies are read from the files themselves, by range, when somebody opens one. [`schema`] has the tables,
//! [`columns`] what they are called. Files are indexed in parallel and committed as they go, so that readers see
//! the first rows while the rest is read; an append indexes only the tail; what was replaced is indexed anew.
//! Two processes may index the same place: the second waits for the first and finds nothing left to do.

pub mod columns;
pub mod schema;

use crate::places::{PlaceError, Places};
use crate::records::Body;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The number of a row in a catalog. It is only good for as long as the catalog's revision; links use ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNo(pub i64);

/// Named by its content: the same in every file and after every append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RolloutId(pub u128);

/// How far indexing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files_done: u64,
    pub files: u64,
    pub bytes_done: u64,
    pub bytes: u64,
    /// In the catalog, with those of earlier times.
    pub rows: u64,
    pub bad_rows: u64,
    /// Another process is indexing the same place, and is waited for.
    pub waiting: bool,
}

/// What is wrong with the rollouts of a catalog, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub rows: u64,
    /// Could not be read; they are listed and shown raw.
    pub bad_rows: u64,
    /// Rows that are the same rollout as an earlier one.
    pub copies: u64,
    pub unclosed: u64,
    pub truncated: u64,
    /// Numbers that are none, and other things the format does not know.
    pub odd: u64,
    /// Groups of several rollouts that all have the same reward.
    pub dead_groups: u64,
    pub groups: u64,
    /// Files that could not be read, with the reason.
    pub unread_files: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the catalog cannot be used ({cause}): {}", .path.display())]
    Sqlite { cause: rusqlite::Error, path: PathBuf },
    #[error("the cache folder cannot be used ({cause}): {}", .path.display())]
    Cache { cause: std::io::Error, path: PathBuf },
    #[error("indexing was cancelled")]
    Cancelled,
    #[error("there is no row {0} in the catalog")]
    NoRow(i64),
}

/// The summary of some places. Cheap to clone; connections are made as they are asked for.
#[derive(Clone, Debug)]
pub struct Catalog {
    places: Places,
    /// As the user said them.
    specs: Vec<String>,
    path: PathBuf,
}

impl Catalog {
    /// Opens the catalog of these places in `cache`, or begins it; nothing is indexed yet.
    pub fn open(places: Places, specs: &[String], cache: &Path) -> Result<Self, CatalogError> {
        let _ = (places, specs, cache);
        unimplemented!()
    }

    /// `ROLLYARD_CACHE`, else `XDG_CACHE_HOME/rollyard`, else `~/.cache/rollyard`.
    pub fn default_cache() -> PathBuf {
        unimplemented!()
    }

    /// Looks at the files again and indexes what is new. `report` is called a few times a second.
    pub fn refresh(
        &self,
        report: &(dyn Fn(Progress) + Sync),
        cancelled: &AtomicBool,
    ) -> Result<Progress, CatalogError> {
        let _ = (report, cancelled);
        unimplemented!()
    }

    /// A connection that can only read, with the view `rollouts` (rows that are neither bad nor copies, plus
    /// `source_file` and `extra`) and the functions that read bodies.
    pub fn connect(&self) -> Result<rusqlite::Connection, CatalogError> {
        unimplemented!()
    }

    pub fn health(&self) -> Result<Health, CatalogError> {
        unimplemented!()
    }

    /// The bytes of a row, from the file they lie in.
    pub fn body(&self, row: RowNo) -> Result<Body, CatalogError> {
        let _ = row;
        unimplemented!()
    }

    /// The first row with this id.
    pub fn find(&self, id: RolloutId) -> Result<Option<RowNo>, CatalogError> {
        let _ = id;
        unimplemented!()
    }

    pub fn specs(&self) -> &[String] {
        &self.specs
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Display for RolloutId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::str::FromStr for RolloutId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(u128::from_str_radix(text, 16)?))
    }
}
