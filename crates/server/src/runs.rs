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

use crate::cluster::{Cluster, Owner};

/// The run that slime's calls mean when they name none.
pub const DEFAULT_RUN: &str = "default";

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("there is no run {name:?}; known are: {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("run {run:?} is owned by node {node}: {url}")]
    Elsewhere { run: String, node: String, url: String },
    #[error("run {run:?} has no owner at the moment; another node takes it over within seconds")]
    NoOwner { run: String },
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
    /// Where the runs are that are not open here, if this server is one of many.
    cluster: Option<Arc<Cluster>>,
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
        let runs = Self::none(dir, changes, archive, None)?;
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

    /// The runs that this node of a cluster owns: none yet. What is only this node's is kept in `dir`.
    pub fn open_clustered(
        dir: &Path,
        changes: &Map<String, Value>,
        cluster: Arc<Cluster>,
    ) -> Result<Self, RunError> {
        std::fs::create_dir_all(dir).map_err(|cause| RunError::Folder { path: dir.to_owned(), cause })?;
        if std::fs::read_dir(dir.join("runs")).is_ok_and(|mut runs| runs.next().is_some()) {
            tracing::warn!("runs in the data folder are not served together with --log: {}", dir.display());
        }
        Self::none(dir, changes, None, Some(cluster))
    }

    fn none(
        dir: &Path,
        changes: &Map<String, Value>,
        archive: Option<ArchiveSettings>,
        cluster: Option<Arc<Cluster>>,
    ) -> Result<Self, RunError> {
        Ok(Self {
            _lock: DirLock::acquire(dir)?,
            dir: dir.to_owned(),
            defaults: RunConfig::default().patched(changes)?,
            archive,
            archivers: RwLock::default(),
            open: RwLock::default(),
            cluster,
            creating: Mutex::default(),
        })
    }

    pub fn find(&self, name: &str) -> Result<Yard, RunError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(yard) = open.get(name) {
            return Ok(yard.clone());
        }
        let (name, known) = (name.to_owned(), open.keys().cloned().collect());
        drop(open);
        let Some(cluster) = &self.cluster else { return Err(RunError::Unknown { name, known }) };
        Err(match cluster.owner(&name) {
            Some(Owner::There { node, url, .. }) => RunError::Elsewhere { run: name, node, url },
            // It is ours, and was just taken out to be closed.
            Some(Owner::Here | Owner::Nobody) => RunError::NoOwner { run: name },
            None => RunError::Unknown { name, known: cluster.known() },
        })
    }

    /// A run that this node owns from now on.
    pub(crate) fn put(&self, yard: Yard) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(yard.run_name().to_string(), yard);
    }

    /// A run that it does not any more; whoever takes it out closes it.
    pub(crate) fn take(&self, run: &str) -> Option<Yard> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(run)
    }

    /// Whether a run cannot be asked because another node has it, or is about to: no trouble of this server's.
    pub(crate) fn is_going(&self, error: &YardError) -> bool {
        self.cluster.is_some() && matches!(error, YardError::Moved { .. } | YardError::Closed)
    }

    pub fn all(&self) -> Vec<Yard> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Where the runs are archived, if they are.
    pub fn archive(&self) -> Option<&ArchiveSettings> {
        self.archive.as_ref()
    }

    /// The nodes that the runs are spread over, if they are.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.as_ref()
    }

    /// The data folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn defaults(&self) -> &RunConfig {
        &self.defaults
    }

    /// The run of that name, made with `config` if it does not exist; true if it was made. Reads the disk.
    pub fn create(&self, run: &RunName, config: &RunConfig) -> Result<(Yard, bool), RunError> {
        let _one_at_a_time = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        match self.find(run.as_str()) {
            Ok(yard) => return Ok((yard, false)),
            Err(RunError::Unknown { .. }) if self.cluster.is_none() => {}
            // A cluster makes its runs elsewhere.
            Err(error) => return Err(error),
        }
        Ok((self.open_run(run, config, &mut |_, _, _| {})?, true))
    }

    /// Puts settings given at start into the default run; those not given stay as they were.
    pub async fn configure_default(&self, changes: &Map<String, Value>) -> Result<(), RunError> {
        if let Some(cluster) = &self.cluster
            && cluster.owner(DEFAULT_RUN) != Some(Owner::Here)
        {
            return cluster.configure(DEFAULT_RUN, changes).await;
        }
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
