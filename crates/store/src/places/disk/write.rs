//! Writes a file of the disk that appears as a whole.
//!
//! It grows beside its final name under one that nobody lists, is synced, renamed, and its folder synced.

use super::super::error::PlaceError;
use super::super::{FileInfo, Upload};
use super::look;
use bytes::Bytes;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct NewFile {
    file: File,
    path: PathBuf,
    /// Removed on drop.
    unfinished: Unfinished,
}

#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Sets apart the files that one process writes at a time.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The folder of the path is real, as far as it exists; the rest is made.
pub(super) fn create(path: &Path) -> Result<Box<dyn Upload>, PlaceError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(PlaceError::not_a_place("there is no file name in UTF-8", path.display().to_string()));
    };
    if path.is_dir() {
        return Err(PlaceError::not_a_place("this is a folder, not a file", path.display().to_string()));
    }
    fs::create_dir_all(folder).map_err(|error| PlaceError::disk("make the folder", &error, folder))?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder.join(format!(".{name}.{}-{count}.tmp", std::process::id()));
    // A process of the same number may have been killed here.
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&unfinished);
    let file = file.map_err(|error| PlaceError::disk("make the file", &error, path))?;
    Ok(Box::new(NewFile { file, path: path.to_owned(), unfinished: Unfinished(unfinished) }))
}

impl Upload for NewFile {
    fn write(&mut self, bytes: Bytes) -> Result<(), PlaceError> {
        self.file.write_all(&bytes).map_err(|error| PlaceError::disk("write the file", &error, &self.path))
    }

    fn finish(self: Box<Self>) -> Result<FileInfo, PlaceError> {
        let path = &self.path;
        self.file.sync_all().map_err(|error| PlaceError::disk("sync the file", &error, path))?;
        let renamed = fs::rename(&self.unfinished.0, path);
        renamed.map_err(|error| PlaceError::disk("rename the file", &error, path))?;
        let synced = path.parent().map_or(Ok(()), |folder| File::open(folder).and_then(|dir| dir.sync_all()));
        synced.map_err(|error| PlaceError::disk("sync the folder", &error, path))?;
        look(path)
    }

    fn abort(self: Box<Self>) {}
}
