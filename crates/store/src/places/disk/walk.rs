//! Goes through a folder and what is below it.
//!
//! Links to folders are followed, since runs are often linked to from where they are looked for; a folder that is
//! being walked already is not entered again. What one may not read, or what a link leads out to, is left out with
//! a warning: one locked folder must not hide the others.

use super::super::error::PlaceError;
use super::super::pattern::{Pattern, is_hidden};
use super::super::roots::Roots;
use super::super::{Depth, FileInfo};
use super::{info, is_meant};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) roots: &'a Roots,
    pub(super) pattern: Option<&'a Pattern>,
    pub(super) depth: Depth,
    pub(super) folders: Vec<String>,
    /// By URL: links may lead to one file twice.
    pub(super) files: BTreeMap<String, FileInfo>,
}

/// A folder on the way down.
struct Step<'a> {
    real: PathBuf,
    /// From where the walk began, as it is written: what a glob is matched with. Ends in a slash unless empty.
    below: String,
    level: usize,
    above: Option<&'a Step<'a>>,
}

impl Step<'_> {
    fn is_within(&self, real: &Path) -> bool {
        self.real == real || self.above.is_some_and(|above| above.is_within(real))
    }
}

impl Walk<'_> {
    pub(super) fn enter(&mut self, folder: &Path) -> Result<(), PlaceError> {
        self.step(&Step { real: folder.to_owned(), below: String::new(), level: 1, above: None })
    }

    fn step(&mut self, step: &Step<'_>) -> Result<(), PlaceError> {
        let entries = fs::read_dir(&step.real);
        let entries = entries.map_err(|error| PlaceError::disk("list the folder", &error, &step.real))?;
        for entry in entries {
            let entry = entry.map_err(|error| PlaceError::disk("list the folder", &error, &step.real))?;
            self.take(&entry, step)?;
        }
        Ok(())
    }

    fn take(&mut self, entry: &DirEntry, step: &Step<'_>) -> Result<(), PlaceError> {
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            tracing::warn!(path = %path.display(), "left out: the name is not UTF-8");
            return Ok(());
        };
        if is_hidden(name) {
            return Ok(());
        }
        let Ok(kind) = entry.file_type() else { return Ok(()) };
        let real = if kind.is_symlink() {
            match path.canonicalize() {
                Ok(real) if self.roots.admit_real(&real).is_ok() => real,
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "left out: the link leads out of what may be read");
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "left out: the link cannot be followed");
                    return Ok(());
                }
            }
        } else {
            path
        };
        let below = format!("{}{name}", step.below);
        if kind.is_dir() || (kind.is_symlink() && real.is_dir()) {
            return self.descend(Step { real, below: below + "/", level: step.level + 1, above: Some(step) });
        }
        if is_meant(&below, name, self.pattern) {
            self.add(&real);
        }
        Ok(())
    }

    fn descend(&mut self, step: Step<'_>) -> Result<(), PlaceError> {
        if self.depth == Depth::One {
            self.folders.extend(step.real.to_str().map(|url| format!("{url}/")));
            return Ok(());
        }
        let too_deep =
            self.pattern.and_then(|pattern| pattern.levels).is_some_and(|levels| step.level > levels);
        if too_deep || step.above.is_some_and(|above| above.is_within(&step.real)) {
            return Ok(());
        }
        match self.step(&step) {
            Err(PlaceError::Denied { .. }) => {
                tracing::warn!(path = %step.real.display(), "left out: the folder may not be read");
                Ok(())
            }
            result => result,
        }
    }

    fn add(&mut self, real: &Path) {
        // A file that is gone again was never there.
        let Ok(metadata) = fs::metadata(real) else { return };
        match real.to_str() {
            Some(url) if metadata.is_file() => {
                self.files.insert(url.to_owned(), info(url, &metadata));
            }
            _ => {}
        }
    }
}
