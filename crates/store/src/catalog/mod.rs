//! A summary of every rollout in some files, kept in the cache folder.
//!
//! One narrow row a rollout: attributes, lengths, flags, and where its bytes lie. Filters, curves and tables ask the
//! summary; bodies are read from the files themselves, by range, when somebody opens one. [`schema`] has the tables,
//! [`columns`] what they are called. Files are indexed in parallel and committed as they go, so that readers see
//! the first rows while the rest is read; an append indexes only the tail; what was replaced is indexed anew.
//! Two processes may index the same place: the second waits for the first and finds nothing left to do.
//!
//! A refresh in order: `home` has the file and its lock, `plan` compares the files with what is known of them,
//! `pipeline` reads (`lines`, `whole`) and summarises on all cores, `writer` puts the rows in and
//! `counts` what they come to. `read` gives bodies and connections.

pub mod columns;
pub(crate) mod counts;
mod error;
mod fates;
mod health;
mod home;
mod lines;
mod pipeline;
mod plan;
mod progress;
mod read;
mod refresh;
pub mod schema;
mod sources;
mod whole;
mod writer;

pub use error::CatalogError;
pub use health::Health;
pub use progress::Progress;
#[cfg(test)]
pub(crate) use read::columns as columns_of_view;

use crate::places::Places;
use crate::records::Body;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The number of a row in a catalog. It is only good for as long as the catalog's revision; links use ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNo(pub i64);

/// Named by its content: the same in every file and after every append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RolloutId(pub u128);

/// The summary of some places. Cheap to clone; connections are made as they are asked for.
#[derive(Clone, Debug)]
pub struct Catalog {
    places: Places,
    /// As the user said them.
    specs: Vec<String>,
    path: PathBuf,
    shared: Arc<read::Shared>,
}

impl Catalog {
    /// Opens the catalog of these places in `cache`, or begins it; nothing is indexed yet.
    pub fn open(places: Places, specs: &[String], cache: &Path) -> Result<Self, CatalogError> {
        let path = home::path_of(specs, cache);
        home::prepare(&path)?;
        Ok(Self { places, specs: specs.to_vec(), path, shared: Arc::default() })
    }

    /// `ROLLYARD_CACHE`, else `XDG_CACHE_HOME/rollyard`, else `~/.cache/rollyard`.
    pub fn default_cache() -> PathBuf {
        home::default_cache()
    }

    /// Looks at the files again and indexes what is new. `report` is called a few times a second.
    pub fn refresh(
        &self,
        report: &(dyn Fn(Progress) + Sync),
        cancelled: &AtomicBool,
    ) -> Result<Progress, CatalogError> {
        refresh::refresh(self, report, cancelled)
    }

    /// A connection that can only read, with the view `rollouts` (rows that are neither bad nor copies, plus `row`,
    /// `id`, `source_file`, `line`, `extra`, `body`, `prompt` and `response`), the view `all_rows` of every row, and
    /// the functions `body(row)`, `prompt(row)`, `response(row)` and `message(row, i)`, which read the files.
    pub fn connect(&self) -> Result<rusqlite::Connection, CatalogError> {
        read::connect(self)
    }

    pub fn health(&self) -> Result<Health, CatalogError> {
        health::health(self)
    }

    /// The bytes of a row, from the file they lie in.
    pub fn body(&self, row: RowNo) -> Result<Body, CatalogError> {
        read::body(self, row)
    }

    /// The first row with this id.
    pub fn find(&self, id: RolloutId) -> Result<Option<RowNo>, CatalogError> {
        read::find(self, id)
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

    fn sqlite(&self) -> impl Fn(rusqlite::Error) -> CatalogError + use<> {
        error::sqlite(self.path.clone())
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
