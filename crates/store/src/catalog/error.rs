//! Why a catalog could not be used.

use crate::places::PlaceError;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the catalog cannot be used ({cause}): {}", .path.display())]
    Sqlite { cause: rusqlite::Error, path: PathBuf },
    #[error("the cache folder cannot be used ({cause}); set ROLLYARD_CACHE to a folder that can be written: {}", .path.display())]
    Cache { cause: std::io::Error, path: PathBuf },
    #[error("no space is left for the catalog; set ROLLYARD_CACHE to a folder on a larger disk: {}", .path.display())]
    Full { path: PathBuf },
    #[error("indexing was cancelled")]
    Cancelled,
    #[error("there is no row {0} in the catalog")]
    NoRow(i64),
    #[error("row {row} is no longer where it was ({why}); refresh the catalog: {url}")]
    Moved { row: i64, why: String, url: String },
}

pub(super) fn sqlite(path: PathBuf) -> impl Fn(rusqlite::Error) -> CatalogError {
    move |cause| {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly};
        let path = path.clone();
        match cause.sqlite_error_code() {
            Some(DiskFull) => CatalogError::Full { path },
            Some(CannotOpen | PermissionDenied | ReadOnly) => {
                CatalogError::Cache { cause: std::io::Error::other(cause), path }
            }
            _ => CatalogError::Sqlite { cause, path },
        }
    }
}

/// Whether the file is no catalog that could be used, so that a new one is the way out.
pub(super) fn is_damage(error: &CatalogError) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error {
        CatalogError::Sqlite { cause, .. } => {
            matches!(cause.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
        }
        _ => false,
    }
}
