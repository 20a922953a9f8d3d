//! Finds generator files in a folder and keeps looking.
//!
//! A file that hangs, dies or fails when it is imported is named with its reason, and the others load. When a file
//! changes it is imported anew by another process; if that fails, the version before stays in use.

use futures_util::StreamExt;
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::timeout;

use super::{Generator, Hook};
use crate::host::{Host, HostConfig, HostError, Load};
use crate::lines::Printed;
use crate::stats::Stats;

/// How the name of a generator file ends.
pub const SUFFIX: &str = "_generator.py";

const INSPECT: &str = "rollyard.generator.child.inspect_file";

/// A file that is not imported by then never will be.
pub const IMPORT_WITHIN: Duration = Duration::from_secs(30);

/// Files imported at once: importing is work for a core each.
const AT_ONCE: usize = 4;

/// Who is told what a file's functions print: the file, then the line.
pub type PrintedBy = Arc<dyn Fn(&Path, &str) + Send + Sync>;

/// A file of the folder: what it loaded as, or what is wrong with it.
pub type Found = Result<Arc<Generator>, Problem>;

/// A file that cannot be used, or not as it is now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {}", .file.display())]
pub struct Problem {
    pub file: PathBuf,
    pub problem: String,
}

/// A folder of generator files, as it was when last looked at.
pub struct Folder {
    dir: PathBuf,
    python: Option<PathBuf>,
    import_within: Duration,
    printed: PrintedBy,
    files: BTreeMap<PathBuf, Entry>,
    /// Why the folder itself cannot be read.
    unreadable: Option<String>,
}

/// What is known of one file.
#[derive(Debug, Default)]
struct Entry {
    mark: Option<Mark>,
    good: Option<Arc<Generator>>,
    problem: Option<String>,
}

/// Tells a changed file from the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    stamp: f64,
    size_bytes: u64,
}

/// What is recorded while a file is imported or judges groups belongs to no run's statistics.
static STATS: Stats = Stats::new();

impl Folder {
    pub fn new(dir: &Path, python: Option<PathBuf>, printed: PrintedBy) -> Self {
        // Python is told where the file is, whatever folder it runs in.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let import_within = IMPORT_WITHIN;
        Self { dir, python, import_within, printed, files: BTreeMap::new(), unreadable: None }
    }

    #[must_use]
    pub fn with_import_within(self, import_within: Duration) -> Self {
        Self { import_within, ..self }
    }

    /// Looks at the folder and imports what is new or changed. True if anything is other than it was.
    pub async fn look(&mut self) -> bool {
        let unreadable = self.unreadable.take();
        let marks = match self.marks() {
            Ok(marks) => marks,
            Err(error) => {
                self.unreadable = Some(error.to_string());
                return self.unreadable != unreadable;
            }
        };
        let count = self.files.len();
        self.files.retain(|file, _| marks.contains_key(file));
        let has_fewer = self.files.len() < count;
        let is_new = |(file, mark): &(PathBuf, Mark)| {
            self.files.get(file).is_none_or(|entry| entry.mark != Some(*mark))
        };
        let new: Vec<(PathBuf, Mark)> = marks.into_iter().filter(is_new).collect();
        let is_changed = has_fewer || !new.is_empty() || unreadable.is_some();
        let imported: Vec<_> = {
            let folder = &*self;
            let import =
                |(file, mark): (PathBuf, Mark)| async move { (folder.import(&file, mark).await, file, mark) };
            stream::iter(new).map(import).buffer_unordered(AT_ONCE).collect().await
        };
        for (outcome, file, mark) in imported {
            let entry = self.files.entry(file).or_default();
            entry.mark = Some(mark);
            match outcome {
                Ok(generator) => (entry.good, entry.problem) = (Some(Arc::new(generator)), None),
                // The version before, if there was one, stays in use.
                Err(problem) => entry.problem = Some(problem),
            }
        }
        is_changed
    }

    /// Every file, sorted by name. A file that changed for the worse is there twice: as it is used, and as a problem.
    /// Of two files for one task type none is picked by chance: both are refused.
    pub fn found(&self) -> Vec<Found> {
        let refused = |file: &Path, problem: String| Err(Problem { file: file.to_owned(), problem });
        let mut found = Vec::new();
        if let Some(reason) = &self.unreadable {
            found.push(refused(&self.dir, format!("the folder cannot be read ({reason})")));
        }
        for (file, entry) in &self.files {
            if let Some(problem) = &entry.problem {
                let kept = if entry.good.is_some() { "; the version before it stays in use" } else { "" };
                found.push(refused(file, format!("{problem}{kept}")));
            }
            let Some(generator) = &entry.good else { continue };
            let rival = self.files.iter().find(|(other, entry)| {
                let task_type = entry.good.as_ref().map(|good| &good.task_type);
                *other != file && task_type == Some(&generator.task_type)
            });
            found.push(match rival {
                None => Ok(Arc::clone(generator)),
                Some((other, _)) => {
                    let (task_type, name) = (&generator.task_type, name_of(other));
                    refused(
                        file,
                        format!("TASK_TYPE {task_type:?} is that of {name} too, so neither is used"),
                    )
                }
            });
        }
        found
    }

    fn marks(&self) -> io::Result<BTreeMap<PathBuf, Mark>> {
        let mut marks = BTreeMap::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let file = entry?.path();
            let is_named =
                file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(SUFFIX));
            // One that vanished meanwhile is gone.
            let Some(metadata) = is_named.then(|| std::fs::metadata(&file).ok()).flatten() else { continue };
            if metadata.is_file() {
                marks.insert(file, Mark::of(&metadata));
            }
        }
        Ok(marks)
    }

    async fn import(&self, file: &Path, mark: Mark) -> Result<Generator, String> {
        let secs = self.import_within.as_secs_f64();
        let late =
            |_| format!("it was not imported within {secs} s; it may wait for something at its top level");
        timeout(self.import_within, self.inspect(file, mark)).await.map_err(late)?
    }

    async fn inspect(&self, file: &Path, mark: Mark) -> Result<Generator, String> {
        #[derive(Deserialize)]
        struct Inspected {
            task_type: Option<String>,
            hooks: Vec<String>,
            problem: Option<String>,
        }
        let (printed, of) = (Arc::clone(&self.printed), file.to_owned());
        let config = HostConfig {
            python: self.python.clone(),
            processes: NonZeroUsize::MIN,
            threads: NonZeroUsize::MIN,
            sys_path: vec![self.dir.display().to_string()],
            printed: Some(Printed::new(move |line| printed(&of, line))),
            ..HostConfig::default()
        };
        let lost = |error: HostError| match error {
            HostError::Lost(why) => format!("its process ended while it was imported ({why})"),
            error => error.to_string(),
        };
        let host = Host::start(config, &STATS).await.map_err(lost)?;
        let handle = host.load(Load::Function { path: INSPECT.to_owned() }).await.map_err(lost)?;
        let arguments =
            to_raw_value(&json!({"args": [file], "kwargs": {}})).map_err(|error| error.to_string())?;
        let answer = host.call(handle, &arguments).await.map_err(lost)?;
        let unclear = |error| format!("what it offers is not understood ({error}): {answer}");
        match serde_json::from_str(answer.get()).map_err(unclear)? {
            Inspected { problem: Some(problem), .. } => {
                // The file is named by whoever tells it.
                let path = format!(": {}", file.display());
                Err(problem.strip_suffix(&path).map_or(problem.clone(), str::to_owned))
            }
            Inspected { task_type: None, .. } => Err("it has no TASK_TYPE".to_owned()),
            Inspected { task_type: Some(task_type), hooks, .. } => {
                let hooks: BTreeSet<Hook> = hooks.iter().filter_map(|name| Hook::named(name)).collect();
                Ok(Generator { file: file.to_owned(), task_type, hooks, stamp: mark.stamp, host })
            }
        }
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Folder").field("dir", &self.dir).field("files", &self.files).finish_non_exhaustive()
    }
}

impl Mark {
    fn of(metadata: &Metadata) -> Self {
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { stamp: changed.unwrap_or_default().as_secs_f64(), size_bytes: metadata.len() }
    }
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
