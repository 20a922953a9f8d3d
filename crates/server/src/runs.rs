//! The runs of a data folder: `DIR/runs/NAME`, one log each, one process at a time.

use rollyard_core::ids::RunName;
use rollyard_core::ledger::Command;
use rollyard_core::run_config::{ConfigError, RunConfig};
use rollyard_store::archive::{ArchiveError, ArchiveSettings, Archiver};
use rollyard_store::log::{DirLock, LogError};
use rollyard_store::yard::{self, Hold, Yard, YardError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// The run that slime's calls mean when they name none.
pub const DEFAULT_RUN: &str = "default";

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("there is no run {name:?}; known are: {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("run {run:?}: {cause}")]
    Yard { run: String, cause: YardError },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("run {run:?} cannot be archived: {cause}")]
    Archive { run: String, cause: ArchiveError },
    #[error("the data folder cannot be used: {cause}: {}", .path.display())]
    Folder { path: PathBuf, cause: io::Error },
}

/// The open runs. Opening one takes a while, finding one does not.
#[derive(Debug)]
pub struct Runs {
    dir: PathBuf,
    defaults: RunConfig,
    /// Where rollouts go that leave a run, if they are kept.
    archive: Option<ArchiveSettings>,
    /// By run; they go before the runs do.
    archivers: RwLock<BTreeMap<String, Arc<Archiver>>>,
    open: RwLock<BTreeMap<String, Yard>>,
    /// Held while a run is created, so that two requests do not create the same.
    creating: Mutex<()>,
    _lock: DirLock,
}

impl Runs {
    /// Opens every run in `dir`, and the default run with the settings in `changes`.
    ///
    /// `report` is told what is read, for a progress line.
    pub fn open(
        dir: &Path,
        changes: &Map<String, Value>,
        report: impl FnMut(&str, u64, u64),
    ) -> Result<Self, RunError> {
        Self::open_archived(dir, changes, None, report)
    }

    /// The same, with every run archived.
    pub fn open_archived(
        dir: &Path,
        changes: &Map<String, Value>,
        archive: Option<ArchiveSettings>,
        mut report: impl FnMut(&str, u64, u64),
    ) -> Result<Self, RunError> {
        let folder = |cause| RunError::Folder { path: dir.to_owned(), cause };
        std::fs::create_dir_all(dir.join("runs")).map_err(folder)?;
        let lock = DirLock::acquire(dir)?;
        let defaults = RunConfig::default().patched(changes)?;
        let runs = Self {
            dir: dir.to_owned(),
            defaults,
            archive,
            archivers: RwLock::default(),
            open: RwLock::default(),
            creating: Mutex::default(),
            _lock: lock,
        };
        for entry in std::fs::read_dir(dir.join("runs")).map_err(folder)? {
            let name = entry.map_err(folder)?.file_name();
            match name.to_str().map(RunName::try_from) {
                Some(Ok(run)) => drop(runs.open_run(&run, &runs.defaults, &mut report)?),
                _ => tracing::warn!(?name, "not a run, left alone"),
            }
        }
        let run = RunName::try_from(DEFAULT_RUN).map_err(|e| folder(io::Error::other(e)))?;
        if runs.find(DEFAULT_RUN).is_err() {
            runs.open_run(&run, &runs.defaults, &mut report)?;
        }
        Ok(runs)
    }

    pub fn find(&self, name: &str) -> Result<Yard, RunError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(name)
            .cloned()
            .ok_or_else(|| RunError::Unknown { name: name.to_owned(), known: open.keys().cloned().collect() })
    }

    pub fn all(&self) -> Vec<Yard> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub fn defaults(&self) -> &RunConfig {
        &self.defaults
    }

    /// The run of that name, made with `config` if it does not exist; true if it was made. Reads the disk.
    pub fn create(&self, run: &RunName, config: &RunConfig) -> Result<(Yard, bool), RunError> {
        let _one_at_a_time = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(yard) = self.find(run.as_str()) {
            return Ok((yard, false));
        }
        Ok((self.open_run(run, config, &mut |_, _, _| {})?, true))
    }

    /// Puts settings given at start into the default run; those not given stay as they were.
    pub async fn configure_default(&self, changes: &Map<String, Value>) -> Result<(), RunError> {
        let yard = self.find(DEFAULT_RUN)?;
        let failed = |cause| RunError::Yard { run: DEFAULT_RUN.to_owned(), cause };
        yard.run(Command::Configure { changes: changes.clone(), start: None }).await.map_err(failed)?;
        Ok(())
    }

    /// Who archives a run, if it is archived.
    pub fn archiver(&self, run: &str) -> Option<Arc<Archiver>> {
        self.archivers.read().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    /// Finishes and closes all runs and their archives, taking snapshots for a quick start.
    pub fn close(&self) {
        let archivers: Vec<_> =
            self.archivers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for archiver in archivers {
            archiver.stop();
        }
        for yard in self.all() {
            yard.close();
        }
    }

    fn open_run(
        &self,
        run: &RunName,
        config: &RunConfig,
        report: &mut impl FnMut(&str, u64, u64),
    ) -> Result<Yard, RunError> {
        let started = Instant::now();
        let dir = self.dir.join("runs").join(run.as_str());
        let mut progress = |done, total| report(run.as_str(), done, total);
        let hold = self.archive.as_ref().map_or_else(Hold::none, |settings| Archiver::hold(&dir, settings));
        let yard = yard::open_held(run, &dir, config, hold.clone(), &mut progress)
            .map_err(|cause| RunError::Yard { run: run.to_string(), cause })?;
        if let Some(settings) = &self.archive {
            let archiver = Archiver::start(yard.clone(), &dir, settings, hold)
                .map_err(|cause| RunError::Archive { run: run.to_string(), cause })?;
            let mut archivers = self.archivers.write().unwrap_or_else(PoisonError::into_inner);
            archivers.insert(run.to_string(), Arc::new(archiver));
        }
        tracing::debug!(%run, secs = started.elapsed().as_secs_f64(), "opened");
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(run.to_string(), yard.clone());
        Ok(yard)
    }
}
