//! The end of a folder that a trainer holds: every batch once, oldest first, whatever happens to the files.
//!
//! A file may be deleted between being listed and being read, and a disk may damage it. Neither stops a reader
//! or is kept from whoever holds it: the rest is read, and what is missing is in [`BatchReader::problems`].

use super::columns::{About, OwnedRow, decode};
use super::folder::{FolderError, RolloutFolder};
use super::name::FileName;
use std::collections::{HashMap, VecDeque};

#[derive(Debug)]
pub struct BatchReader {
    folder: RolloutFolder,
    /// Files that are still there and how often they were tried; a machine whose clock is behind adds files
    /// before those that were read, so that the newest name would not do.
    tried: HashMap<FileName, u32>,
    problems: VecDeque<Problem>,
    problems_total: u64,
}

/// A file that was read. Rollouts without metadata have taken that of the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub name: FileName,
    pub about: About,
    pub rows: Vec<OwnedRow>,
}

/// A file, or a row in it, that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub name: String,
    pub why: String,
}

/// How many problems are remembered; all are counted.
const PROBLEMS_MAX: usize = 1000;

/// A file that cannot be read now may be readable later, but not for ever.
const TRIES_MAX: u32 = 3;

impl BatchReader {
    /// The folder need not be there yet.
    pub fn open(place: &str) -> Result<Self, FolderError> {
        let folder = RolloutFolder::open(place)?;
        Ok(Self { folder, tried: HashMap::new(), problems: VecDeque::new(), problems_total: 0 })
    }

    /// The oldest batch that was not read yet, if there is one.
    pub fn read_next(&mut self) -> Result<Option<Batch>, FolderError> {
        Ok(self.unread()?.into_iter().find_map(|name| self.read(name)))
    }

    /// All batches that are there and were not read yet.
    pub fn read_all(&mut self) -> Result<Vec<Batch>, FolderError> {
        Ok(self.unread()?.into_iter().filter_map(|name| self.read(name)).collect())
    }

    /// The last thousand, oldest first.
    pub fn problems(&self) -> impl DoubleEndedIterator<Item = &Problem> {
        self.problems.iter()
    }

    pub fn problems_total(&self) -> u64 {
        self.problems_total
    }

    fn unread(&mut self) -> Result<Vec<FileName>, FolderError> {
        let mut names = self.folder.list()?;
        // Names are in order, and what is no longer there will not come back.
        self.tried.retain(|name, _| names.binary_search(name).is_ok());
        names.retain(|name| self.tried.get(name).is_none_or(|&tries| tries < TRIES_MAX));
        Ok(names)
    }

    fn read(&mut self, name: FileName) -> Option<Batch> {
        let bytes = match self.folder.read(&name) {
            Ok(bytes) => bytes,
            Err(error) => {
                let gone = matches!(error, FolderError::Gone { .. });
                let tries = self.tried.entry(name.clone()).or_default();
                *tries = if gone { TRIES_MAX } else { *tries + 1 };
                self.report(&name, error.to_string());
                return None;
            }
        };
        self.tried.insert(name.clone(), TRIES_MAX);
        let decoded = match decode(&bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.report(&name, error.to_string());
                return None;
            }
        };
        for damaged in &decoded.damaged {
            self.report(&name, damaged.to_string());
        }
        let mut rows = decoded.rows;
        for row in &mut rows {
            let filled = row.rollout.fill_metadata(&decoded.about.metadata);
            filled.expect("the batch's metadata was read as finite");
        }
        // Nothing is left of it.
        let lost = rows.is_empty() && !decoded.damaged.is_empty();
        (!lost).then_some(Batch { name, about: decoded.about, rows })
    }

    fn report(&mut self, name: &FileName, why: String) {
        self.problems_total += 1;
        if self.problems.len() == PROBLEMS_MAX {
            self.problems.pop_front();
        }
        self.problems.push_back(Problem { name: name.to_string(), why });
    }
}
