//! How far an archive is: the last record whose bytes are safe, and the files that are still growing.
//!
//! One small file for each format, beside the run's log, replaced as a whole. It is written after the archive's bytes
//! are durable and before a new file gets its first, so that after a crash whatever it does not know of can be cut
//! off or written over.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64;

use super::error::ArchiveError;
use super::layout::Format;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The archive it is about; another place begins anew.
    pub(super) root: String,
    /// The name that the files of the last start have.
    pub(super) worker: String,
    /// Part of all names: a run that begins anew must not write over the files of one that had its name.
    pub(super) tag: String,
    /// Everything up to this record is safe.
    pub(super) seq: u64,
    /// Files that grow, and how long they are without what is not safe yet.
    #[serde(default)]
    pub(super) open: Vec<OpenFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenFile {
    pub(super) is_fates: bool,
    pub(super) day: u64,
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

#[derive(Clone, Debug)]
pub(super) struct CursorFile {
    path: PathBuf,
}

impl CursorFile {
    pub(super) fn of(dir: &Path, format: Format) -> Self {
        Self { path: dir.join(format!("archive-{}.cursor", format.name())) }
    }

    /// Where to go on in `root`. A cursor that cannot be read is like none: what the run still
    /// holds is archived again, beside what there is.
    pub(super) fn read(&self, root: &str) -> Cursor {
        let read = fs::read(&self.path).map_err(|error| error.to_string());
        let cursor = read
            .and_then(|bytes| serde_json::from_slice::<Cursor>(&bytes).map_err(|error| error.to_string()));
        match cursor {
            Ok(cursor) if cursor.root == root => return cursor,
            Ok(cursor) => {
                tracing::info!(
                    "the archive begins anew in {root}, with what the run still holds; before, it went to {}",
                    cursor.root
                );
            }
            Err(why) if self.path.exists() => {
                tracing::warn!(
                    "the archive begins anew, its cursor cannot be read: {why}: {}",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
        Cursor { root: root.to_owned(), tag: new_tag(), ..Cursor::default() }
    }

    pub(super) fn write(&self, cursor: &Cursor) -> Result<(), ArchiveError> {
        let write = || -> io::Result<()> {
            // The log cleans such names up when it is opened.
            let temporary = self.path.with_extension("cursor.tmp");
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(cursor)?)?;
            file.sync_data()?;
            fs::rename(&temporary, &self.path)?;
            sync_parent(&self.path)
        };
        write().map_err(ArchiveError::io("write the archive's cursor", &self.path))
    }
}

/// Another one each time.
fn new_tag() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = format!("{} {}", since_epoch.as_nanos(), std::process::id());
    format!("{:08x}", xxh3_64(moment.as_bytes()) >> 32)
}

/// Makes a file's name durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
