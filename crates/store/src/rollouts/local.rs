//! Rollout files in a folder of this machine.
//!
//! A file is written under a name that nobody lists, synced, and then renamed. What a killed writer left under
//! such a name is removed by the next, once it is so old that nobody can still be writing it.

use super::folder::{FolderError, Place};
use super::name::FileName;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Local {
    dir: PathBuf,
}

/// Nobody takes that long to write one file.
const UNFINISHED_FOR_MAX: Duration = Duration::from_secs(3600);

impl Local {
    pub(super) fn new(dir: &str) -> Self {
        Self { dir: dir.into() }
    }

    fn sync(&self) -> Result<(), FolderError> {
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(|cause| failed("sync the folder", &self.dir, cause))
    }

    /// Removes what killed writers left.
    fn tidy(&self) -> Result<(), FolderError> {
        for name in self.list()? {
            let Some(finished) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")) else {
                continue;
            };
            let path = self.dir.join(&name);
            // Whoever removes or finishes it meanwhile does what is wanted.
            let Ok(written) = fs::metadata(&path).and_then(|file| file.modified()) else { continue };
            let is_old = written.elapsed().is_ok_and(|age| age > UNFINISHED_FOR_MAX);
            if is_old && finished.parse::<FileName>().is_ok() {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

impl Place for Local {
    fn prepare(&self) -> Result<(), FolderError> {
        fs::create_dir_all(&self.dir).map_err(|cause| failed("make the folder", &self.dir, cause))?;
        self.tidy()
    }

    fn list(&self) -> Result<Vec<String>, FolderError> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|cause| failed("list the folder", &self.dir, cause))?,
        };
        // A name that is no UTF-8 is none of ours.
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let names: io::Result<_> = entries.map(name).collect();
        names.map_err(|cause| failed("list the folder", &self.dir, cause))
    }

    fn read(&self, name: &str) -> Result<Bytes, FolderError> {
        let path = self.dir.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(FolderError::Gone { name: path.display().to_string() })
            }
            Err(cause) => Err(failed("read the file", &path, cause)),
        }
    }

    fn publish(&self, name: &str, bytes: Bytes) -> Result<(), FolderError> {
        let (unfinished, finished) = (self.dir.join(format!(".{name}.tmp")), self.dir.join(name));
        let written = write(&unfinished, &bytes)
            .map_err(|cause| failed("write the file", &finished, cause))
            .and_then(|()| {
                fs::rename(&unfinished, &finished)
                    .map_err(|cause| failed("rename the file", &finished, cause))
            });
        if let Err(error) = written {
            // A full disk should not be fuller for it. What cannot be removed is removed by the next writer.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        self.sync()
    }

    fn delete(&self, name: &str) -> Result<(), FolderError> {
        remove(&self.dir.join(name))
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn remove(path: &Path) -> Result<(), FolderError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(failed("delete the file", path, cause)),
        _ => Ok(()),
    }
}

fn failed(what: &'static str, path: &Path, cause: io::Error) -> FolderError {
    FolderError::Io { what, cause, path: path.display().to_string() }
}
