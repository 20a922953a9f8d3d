//! Places on this machine's disk.
//!
//! Every file goes by its real path: a link is followed, and what it leads to is named, so that one file has one
//! URL however it was reached.

mod read;
mod walk;
mod write;

use super::error::{PlaceError, in_words};
use super::pattern::{Pattern, can_hold_rollouts};
use super::roots::Roots;
use super::{Depth, FileInfo, Listing, ReadAt, Upload};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walk::Walk;

#[derive(Debug)]
pub(super) struct Disk<'a> {
    pub(super) roots: &'a Roots,
}

impl Disk<'_> {
    pub(super) fn files(&self, path: &Path) -> Result<Vec<FileInfo>, PlaceError> {
        let path = absolute(path)?;
        let (found, near) = match self.real(&path) {
            Ok(real) if real.is_dir() => (self.walk(&real, Depth::All, None)?.files, self.names_in(&real)),
            Ok(real) => return Ok(vec![look(&real)?]),
            // A name with brackets is a name first.
            Err(missing @ PlaceError::NotFound { .. }) => match self.matches(&path)? {
                None => return Err(missing),
                Some(found) if found.is_empty() => {
                    let near = "the glob matches no file".to_owned();
                    return Err(PlaceError::NotFound { near, place: path.display().to_string() });
                }
                Some(found) => return Ok(found),
            },
            Err(error) => return Err(error),
        };
        if found.is_empty() {
            return Err(PlaceError::NoRollouts { near, place: path.display().to_string() });
        }
        Ok(found)
    }

    pub(super) fn browse(&self, path: &Path, depth: Depth) -> Result<Listing, PlaceError> {
        let path = absolute(path)?;
        match self.real(&path) {
            Ok(real) if real.is_dir() => self.walk(&real, depth, None),
            Ok(real) => Ok(Listing { folders: Vec::new(), files: vec![look(&real)?] }),
            Err(missing @ PlaceError::NotFound { .. }) => {
                let files = self.matches(&path)?.ok_or(missing)?;
                Ok(Listing { folders: Vec::new(), files })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn look(&self, path: &Path) -> Result<FileInfo, PlaceError> {
        look(&self.real(path)?)
    }

    pub(super) fn open(&self, path: &Path) -> Result<Arc<dyn ReadAt>, PlaceError> {
        read::open(&self.real(path)?)
    }

    pub(super) fn create(&self, path: &Path) -> Result<Box<dyn Upload>, PlaceError> {
        write::create(&self.target(path)?)
    }

    /// Where a file is, or would be if it were made.
    pub(super) fn target(&self, path: &Path) -> Result<PathBuf, PlaceError> {
        let path = absolute(path)?;
        self.roots.admit_written(&path)?;
        let mut missing = Vec::new();
        for folder in path.ancestors().skip(1) {
            match folder.canonicalize() {
                Ok(mut real) => {
                    self.roots.admit_real(&real)?;
                    real.extend(missing.iter().rev());
                    real.extend(path.file_name());
                    return Ok(real);
                }
                // A step upwards from a folder that is not there leads nowhere.
                Err(error) if error.kind() == ErrorKind::NotFound && folder.file_name().is_some() => {
                    missing.extend(folder.file_name());
                }
                Err(error) => return Err(PlaceError::disk("find the folder", &error, folder)),
            }
        }
        Err(PlaceError::not_a_place("this names a folder, not a file", path.display().to_string()))
    }

    /// The path behind all links, if it may be read.
    pub(super) fn real(&self, path: &Path) -> Result<PathBuf, PlaceError> {
        let path = &absolute(path)?;
        self.roots.admit_written(path)?;
        match path.canonicalize() {
            Ok(real) => self.roots.admit_real(&real).map(|()| real),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(PlaceError::NotFound { near: self.near(path)?, place: path.display().to_string() })
            }
            Err(error) => Err(PlaceError::disk("find the file", &error, path)),
        }
    }

    /// What there is instead of a path. Behind a link that leads out, nobody learns what there is not either.
    fn near(&self, path: &Path) -> Result<String, PlaceError> {
        let above = path.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
        let Some(above) = above else { return Ok("nor is there a folder for it".to_owned()) };
        self.roots.admit_real(&above)?;
        Ok(match fs::read_link(path) {
            Ok(target) => format!("it is a link to {}, which is not there", target.display()),
            Err(_) => format!("{} ({})", self.names_in(&above), above.display()),
        })
    }

    fn names_in(&self, folder: &Path) -> String {
        let Ok(entries) = fs::read_dir(folder) else { return "its folder cannot be listed".to_owned() };
        let names = entries
            .flatten()
            .map(|entry| {
                let slash = if entry.path().is_dir() { "/" } else { "" };
                format!("{}{slash}", entry.file_name().to_string_lossy())
            })
            .filter(|name| !name.starts_with('.'))
            .collect();
        in_words(names)
    }

    /// Nothing if the path is no glob.
    fn matches(&self, path: &Path) -> Result<Option<Vec<FileInfo>>, PlaceError> {
        let Some(text) = path.to_str() else { return Ok(None) };
        let Some(pattern) = Pattern::parse(text, text)? else { return Ok(None) };
        self.roots.admit_written(path)?;
        let base = self.real(Path::new(&pattern.base))?;
        Ok(Some(self.walk(&base, Depth::All, Some(&pattern))?.files))
    }

    fn walk(&self, folder: &Path, depth: Depth, pattern: Option<&Pattern>) -> Result<Listing, PlaceError> {
        let mut walk =
            Walk { roots: self.roots, pattern, depth, folders: Vec::new(), files: BTreeMap::new() };
        walk.enter(folder)?;
        walk.folders.sort();
        Ok(Listing { folders: walk.folders, files: walk.files.into_values().collect() })
    }
}

fn absolute(path: &Path) -> Result<PathBuf, PlaceError> {
    std::path::absolute(path).map_err(|error| PlaceError::disk("find the working folder", &error, path))
}

/// The path is real.
fn look(path: &Path) -> Result<FileInfo, PlaceError> {
    let metadata = fs::metadata(path).map_err(|error| PlaceError::disk("look at the file", &error, path))?;
    let Some(url) = path.to_str() else {
        return Err(PlaceError::not_a_place("the name is not UTF-8; rename it", path.display().to_string()));
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { "a device, a pipe or a socket" };
        return Err(PlaceError::not_a_place(format!("this is {what}, and a file was asked for"), url));
    }
    Ok(info(url, &metadata))
}

fn info(url: &str, metadata: &Metadata) -> FileInfo {
    let (secs, nanos) = (i128::from(metadata.mtime()), i128::from(metadata.mtime_nsec()));
    FileInfo {
        url: url.to_owned(),
        size_bytes: metadata.len(),
        stamp: format!("{}-{}", secs * 1_000_000_000 + nanos, metadata.ino()),
        modified_ms: metadata.mtime() * 1_000 + metadata.mtime_nsec() / 1_000_000,
    }
}

/// Whether a file of a folder is taken along.
fn is_meant(below: &str, name: &str, pattern: Option<&Pattern>) -> bool {
    pattern.map_or_else(|| can_hold_rollouts(name), |pattern| pattern.matches(below))
}
