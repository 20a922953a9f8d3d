//! Runs in a data folder, as they are copied out of it and into it.

use super::super::archive::Archive;
use super::super::contract::Entry;
use super::super::error::{LogError, ReplayError};
use super::super::lock::DirLock;
use super::super::open::{Opened, Options, open};
use super::super::reader::Reader;
use super::error::CopyError;
use super::source::{Mark, Seen, Source};
use super::target::Target;
use rollyard_core::ids::RunName;
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What an unfinished copy is called, before the run's name. No run's name begins like this, so no server opens it.
const UNFINISHED: &str = ".copying-";

/// The data folder of a server that does not run: it is locked as a server would.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: DirLock,
}

impl DataFolder {
    /// A folder that a server has used.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        // Nothing is put into a folder that was never one of ours.
        list(&path.join("runs"))?;
        Ok(Self { path: path.to_owned(), _lock: DirLock::acquire(path)? })
    }

    /// The same, or a new one.
    pub fn open_or_make(path: &Path) -> Result<Self, LogError> {
        let runs = path.join("runs");
        fs::create_dir_all(&runs).map_err(|cause| LogError::io("create the folder", &runs, cause))?;
        Self::open(path)
    }

    pub fn runs(&self) -> Result<Vec<RunName>, LogError> {
        let names = list(&self.path.join("runs"))?;
        let mut runs: Vec<RunName> =
            names.iter().filter_map(|name| RunName::try_from(name.as_str()).ok()).collect();
        runs.sort();
        Ok(runs)
    }

    pub fn source(&self, run: &RunName) -> Result<FolderSource, CopyError> {
        let dir = self.path.join("runs").join(run.as_str());
        if !dir.is_dir() {
            return Err(CopyError::NoRun { run: run.clone(), place: self.path.display().to_string() });
        }
        FolderSource::open(dir).map_err(CopyError::from)
    }

    pub fn target(&self, run: &RunName) -> FolderTarget {
        let runs = self.path.join("runs");
        FolderTarget {
            dir: runs.join(run.as_str()),
            unfinished: runs.join(format!("{UNFINISHED}{run}")),
            runs,
            run: run.clone(),
        }
    }
}

/// A run in a folder that is locked.
#[derive(Debug)]
pub struct FolderSource {
    dir: PathBuf,
}

impl FolderSource {
    /// Only the owner may judge a write that was interrupted, and whoever holds the lock is that.
    fn open(dir: PathBuf) -> Result<Self, LogError> {
        let visited = Archive::open(&dir)?.visit(|_| Ok::<_, Infallible>(()));
        let unread_bytes = visited.map_err(only_log)?.unread_bytes;
        if unread_bytes > 0 {
            let opened = open(&dir, Options::default())?;
            tracing::warn!(
                bytes = opened.torn_bytes,
                "cut an interrupted write off the log: {}",
                dir.display()
            );
        }
        Ok(Self { dir })
    }
}

impl Source for FolderSource {
    type Reader = Reader;

    fn visit<E>(
        &self,
        visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<Seen<Reader>, ReplayError<E>> {
        let visited = Archive::open(&self.dir)?.visit(visit)?;
        Ok(Seen { reader: visited.reader, last_seq: visited.last_seq })
    }

    /// The lock keeps everybody out.
    fn mark(&self) -> Result<Mark, LogError> {
        Ok(Mark::default())
    }

    fn place(&self) -> String {
        self.dir.display().to_string()
    }
}

/// A run that is to be in a folder.
#[derive(Debug)]
pub struct FolderTarget {
    runs: PathBuf,
    run: RunName,
    dir: PathBuf,
    unfinished: PathBuf,
}

impl FolderTarget {
    fn sync(&self) -> Result<(), LogError> {
        let synced = File::open(&self.runs).and_then(|runs| runs.sync_all());
        synced.map_err(|cause| LogError::io("sync", &self.runs, cause))
    }
}

impl Target for FolderTarget {
    type Log = Opened;
    type View = FolderSource;

    fn check(&self) -> Result<(), CopyError> {
        // A run that was opened and never written to has nothing but its lock.
        if !self.dir.exists() || list(&self.dir)?.iter().all(|name| name == "LOCK") {
            return Ok(());
        }
        let visited = Archive::open(&self.dir)?.visit(|_| Ok::<_, Infallible>(()));
        Err(CopyError::NotEmpty {
            run: self.run.clone(),
            records: visited.map_err(only_log)?.last_seq,
            place: self.dir.display().to_string(),
            advice: "move that folder away, or copy to another data folder".to_owned(),
        })
    }

    fn begin(&mut self) -> Result<Opened, CopyError> {
        self.abandon()?;
        Ok(open(&self.unfinished, Options::default())?)
    }

    fn view(&self) -> Result<FolderSource, CopyError> {
        Ok(FolderSource { dir: self.unfinished.clone() })
    }

    fn finish(&mut self) -> Result<(), CopyError> {
        self.check()?;
        remove(&self.dir)?;
        let renamed = fs::rename(&self.unfinished, &self.dir);
        renamed.map_err(|cause| LogError::io("rename the finished copy to", &self.dir, cause))?;
        Ok(self.sync()?)
    }

    fn abandon(&mut self) -> Result<(), LogError> {
        remove(&self.unfinished)
    }
}

fn list(dir: &Path) -> Result<Vec<String>, LogError> {
    let names =
        || fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
    let names: std::io::Result<Vec<String>> = names();
    names.map_err(|cause| LogError::io("list the folder", dir, cause))
}

fn remove(dir: &Path) -> Result<(), LogError> {
    match fs::remove_dir_all(dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(LogError::io("remove", dir, cause)),
        _ => Ok(()),
    }
}

fn only_log(error: ReplayError<Infallible>) -> LogError {
    match error {
        ReplayError::Log(error) => error,
        ReplayError::Visit(never) => match never {},
    }
}
