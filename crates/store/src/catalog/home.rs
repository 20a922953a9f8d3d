//! Where a catalog lives, and who may write to it.
//!
//! One SQLite file for each set of places, in the cache folder and never beside the user's data. Whoever writes holds
//! the lock file beside it, which the operating system takes back from a process that dies; readers need no lock.

use super::CatalogError;
use super::error::sqlite;
use super::schema::{TABLES, VERSION};
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// How often somebody who waits looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Another process only ever holds SQLite's own locks for a commit.
const BUSY: Duration = Duration::from_secs(30);

pub fn default_cache() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    folder("ROLLYARD_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("rollyard")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/rollyard")))
        .unwrap_or_else(|| std::env::temp_dir().join("rollyard-cache"))
}

/// The same for the same places, in whatever order and from whatever folder they were said.
pub fn path_of(specs: &[String], cache: &Path) -> PathBuf {
    let absolute = |spec: &String| match std::path::absolute(spec) {
        Ok(path) if !spec.contains("://") => path.to_string_lossy().into_owned(),
        _ => spec.clone(),
    };
    let mut places: Vec<_> = specs.iter().map(absolute).collect();
    places.sort();
    places.dedup();
    let last =
        places.first().and_then(|place| place.trim_end_matches('/').rsplit('/').next()).unwrap_or_default();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let stem: String = last.chars().filter(is_plain).take(40).collect();
    cache.join(format!("{stem}-{:016x}.catalog", xxh3_64(places.join("\n").as_bytes())))
}

/// Makes sure that there is a catalog of this version.
pub fn prepare(path: &Path) -> Result<(), CatalogError> {
    let folder = path.parent().unwrap_or(path);
    let cache = |cause| CatalogError::Cache { cause, path: folder.to_owned() };
    std::fs::create_dir_all(folder).map_err(cache)?;
    loop {
        if is_good(path) {
            return Ok(());
        }
        match try_lock(path)? {
            Some(_lock) if is_good(path) => return Ok(()),
            Some(_lock) => return make_anew(path),
            None => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

/// Waits for the lock; `waiting` is called while somebody else has it, and may give up.
pub fn lock(
    path: &Path,
    waiting: &mut dyn FnMut() -> Result<(), CatalogError>,
) -> Result<File, CatalogError> {
    loop {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
        waiting()?;
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn try_lock(path: &Path) -> Result<Option<File>, CatalogError> {
    let path = path.with_extension("lock");
    let cache = |cause| CatalogError::Cache { cause, path: path.clone() };
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(cache)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(cause)) => Err(cache(cause)),
    }
}

fn is_good(path: &Path) -> bool {
    let version = |connection: Connection| -> rusqlite::Result<(i64, i64)> {
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables = connection.query_row("SELECT count(*) FROM facts", [], |row| row.get(0))?;
        Ok((version, tables))
    };
    matches!(read_only(path).and_then(version), Ok((VERSION, 2..)))
}

pub fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Under the lock. Whoever still reads the old one keeps it until they are done.
pub fn make_anew(path: &Path) -> Result<(), CatalogError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(CatalogError::Cache { cause, path: name.into() });
            }
            _ => {}
        }
    }
    let sqlite = sqlite(path.to_owned());
    let connection = to_write(path)?;
    connection
        .execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))
        .map_err(sqlite)
}

/// Under the lock.
pub fn to_write(path: &Path) -> Result<Connection, CatalogError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // What a crash of the machine may cost is the last seconds, never the sense of the rest.
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000;
             PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY;",
        )?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    };
    open().map_err(sqlite(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_places_have_the_same_catalog() {
        let name = |specs: &[&str]| {
            path_of(&specs.iter().map(ToString::to_string).collect::<Vec<_>>(), Path::new("/c"))
        };
        let here = std::env::current_dir().unwrap();
        let full = here.join("runs/a.jsonl").to_string_lossy().into_owned();
        assert_eq!(name(&["runs/a.jsonl"]), name(&[&full]));
        assert_eq!(name(&["/a", "/b"]), name(&["/b", "/a", "/a"]));
        assert_ne!(name(&["/a"]), name(&["/b"]));
        assert!(name(&["s3://bucket/some run/"]).to_string_lossy().starts_with("/c/somerun-"));
    }
}
