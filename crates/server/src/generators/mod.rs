//! Generators in the server: what is known of a task type, and who makes rollouts for which run.
//!
//! The folder of generator files is looked at in the background, once a second. A start turns a payload into [`Work`],
//! and a [`supervisor`] per run carries it out, one [`life`] after the other. [`shelf`] is how a built-in task writes,
//! [`payload`] what a process is told, [`status`] what can be seen of it all, [`review`] and [`meta`] where hooks are called.

mod life;
mod log;
mod meta;
mod payload;
pub(crate) mod review;
mod shelf;
mod status;
mod supervisor;
mod work;

pub(crate) use status::{GeneratorAnswer, Noted};
pub(crate) use supervisor::Started;
pub(crate) use work::{Maker, is_same_work};

use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Command, GeneratorState};
use rollyard_engine::generator::Generator;
use rollyard_engine::generator::folder::{Folder, Found, PrintedBy, Problem};
use rollyard_store::yard::Yard;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::runs::Runs;
use crate::settings::Settings;
use supervisor::Supervisor;
use work::Work;

/// The task that needs no file.
pub(crate) const BUILT_IN: &str = "math";

/// A start that comes before the folder was looked at waits so long for it.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The generators of a server.
#[derive(Debug)]
pub(crate) struct Generators {
    settings: Arc<Settings>,
    found: RwLock<Vec<Found>>,
    has_looked: watch::Sender<bool>,
    local: OnceLock<SocketAddr>,
    supervisors: Mutex<BTreeMap<String, Arc<Supervisor>>>,
    metas: meta::Metas,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Generators {
    pub(crate) fn new(settings: Arc<Settings>, stopping: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            settings,
            found: RwLock::default(),
            has_looked: watch::Sender::new(false),
            local: OnceLock::new(),
            supervisors: Mutex::default(),
            metas: meta::Metas::default(),
            tasks: TaskTracker::new(),
            stopping,
        })
    }

    /// Looks for generators from now on, and goes on with those that were running when the server stopped.
    pub(crate) fn begin(self: &Arc<Self>, local: SocketAddr, runs: &Runs) {
        // A second server on the same App would be a mistake of ours; the first address stays.
        let _first = self.local.set(local);
        match &self.settings.generators {
            Some(dir) => drop(self.tasks.spawn(Arc::clone(self).watch(dir.clone()))),
            None => drop(self.has_looked.send_replace(true)),
        }
        for yard in runs.all() {
            self.adopt(&yard);
        }
    }

    /// A run that was open before, here or elsewhere: its generator goes on.
    pub(crate) fn adopt(self: &Arc<Self>, yard: &Yard) {
        self.attach(yard);
        self.tasks.spawn(Arc::clone(self).resume(yard.clone()));
    }

    /// A run that goes to another node, which goes on with its generator. Returns when nothing of it runs here.
    pub(crate) async fn release(&self, run: &str) {
        self.metas.release(run);
        let supervisor = self.supervisors().remove(run);
        if let Some(supervisor) = supervisor {
            supervisor.dismiss().await;
        }
    }

    /// A run that was opened or made.
    pub(crate) fn attach(self: &Arc<Self>, yard: &Yard) {
        review::attach(self, yard, &self.tasks, &self.stopping);
    }

    /// Waits until all that was started here has ended; it was told to when the server was.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The file for a task type.
    pub(crate) fn find(&self, task_type: &str) -> Option<Arc<Generator>> {
        self.known().into_iter().find(|generator| generator.task_type == task_type)
    }

    /// The files that can be used.
    pub(crate) fn known(&self) -> Vec<Arc<Generator>> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        found.iter().filter_map(|found| found.as_ref().ok().cloned()).collect()
    }

    /// The files that cannot.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        found.iter().filter_map(|found| found.as_ref().err().cloned()).collect()
    }

    /// Who makes the rollouts of a task. A file wins over the built-in task, and so does whoever said that they come
    /// from outside.
    pub(crate) fn maker(&self, task_type: &str) -> Option<Maker> {
        if let Some(generator) = self.find(task_type) {
            return Some(Maker::File(generator));
        }
        let is_external =
            task_type == "default" || self.settings.task_types.iter().any(|known| known == task_type);
        match task_type {
            _ if is_external => Some(Maker::External),
            BUILT_IN => Some(Maker::BuiltIn),
            _ => None,
        }
    }

    pub(crate) fn task_types(&self) -> Vec<String> {
        let mut names = vec!["default".to_owned(), BUILT_IN.to_owned()];
        names.extend(self.settings.task_types.iter().cloned());
        names.extend(self.known().iter().map(|generator| generator.task_type.clone()));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// Waits for the first look at the folder.
    pub(crate) async fn looked(&self) {
        let mut has_looked = self.has_looked.subscribe();
        // Whoever is not found by then is unknown, which is said.
        let _late = tokio::time::timeout(FOUND_WITHIN, has_looked.wait_for(|looked| *looked)).await;
    }

    /// Wants this work done for the run; answers without waiting for it. Work that comes from outside stops what the
    /// run had.
    pub(crate) fn start(
        self: &Arc<Self>,
        yard: &Yard,
        maker: Maker,
        payload: Map<String, Value>,
        resumes: bool,
    ) -> Option<Started> {
        if matches!(maker, Maker::External) {
            if let Some(supervisor) = self.supervisor(yard.run_name().as_str()) {
                supervisor.ask_to_stop();
            }
            return None;
        }
        let task_type = payload.get("task_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let work = Work { maker, task_type, payload, resumes };
        Some(self.supervisor_of(yard).start(work))
    }

    /// Returns when the run's generator has stopped.
    pub(crate) async fn stop(self: &Arc<Self>, yard: &Yard) {
        self.supervisor_of(yard).stop().await;
    }

    fn supervisor(&self, run: &str) -> Option<Arc<Supervisor>> {
        self.supervisors().get(run).cloned()
    }

    fn supervisor_of(self: &Arc<Self>, yard: &Yard) -> Arc<Supervisor> {
        let mut supervisors = self.supervisors();
        let known = supervisors.entry(yard.run_name().to_string()).or_insert_with(|| {
            let supervisor = Arc::new(Supervisor::new(yard.clone(), &self.stopping));
            self.tasks.spawn(Arc::clone(&supervisor).supervise(Arc::clone(self)));
            supervisor
        });
        Arc::clone(known)
    }

    fn supervisors(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Supervisor>>> {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this server listens.
    pub(crate) fn server_url(&self) -> String {
        self.local.get().map(|local| format!("http://{local}")).unwrap_or_default()
    }

    fn own_url(&self, run: &RunName) -> String {
        let local = self.local.get().copied().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        payload::own_url(local, self.settings.token.as_deref(), run.as_str())
    }

    async fn watch(self: Arc<Self>, dir: std::path::PathBuf) {
        let printed: PrintedBy = {
            let generators = Arc::downgrade(&self);
            Arc::new(move |file, line| {
                if let Some(generators) = generators.upgrade() {
                    generators.print(file, line);
                }
            })
        };
        let folder = Folder::new(&dir, self.settings.python.clone(), printed);
        let mut folder = folder.with_import_within(self.settings.import_within);
        loop {
            let looked = tokio::select! {
                looked = folder.look() => looked,
                () = self.stopping.cancelled() => break,
            };
            if looked {
                self.publish(folder.found());
            }
            self.has_looked.send_replace(true);
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.stopping.cancelled() => break,
            }
        }
    }

    fn publish(&self, found: Vec<Found>) {
        let mut known = self.found.write().unwrap_or_else(PoisonError::into_inner);
        for new in found.iter().filter(|new| !known.iter().any(|old| is_same(old, new))) {
            match new {
                Ok(generator) => {
                    let hooks: Vec<&str> = generator.hooks.iter().map(|hook| hook.name()).collect();
                    let hooks = if hooks.is_empty() { "none".to_owned() } else { hooks.join(", ") };
                    let is_built_in = generator.task_type == BUILT_IN;
                    let wins = if is_built_in { " (in place of the built-in task)" } else { "" };
                    let (task_type, file) = (&generator.task_type, generator.file.display());
                    tracing::info!("generator for task {task_type}{wins}, hooks {hooks}: {file}");
                }
                Err(problem) => tracing::warn!("generator file not used: {problem}"),
            }
        }
        *known = found;
    }

    /// What a file's functions print belongs to the runs that use it.
    fn print(&self, file: &Path, line: &str) {
        let uses = |supervisor: &&Arc<Supervisor>| {
            let work = supervisor.seen().work;
            work.is_some_and(|work| work.maker.file().is_some_and(|known| known.file == file))
        };
        let users: Vec<Arc<Supervisor>> = self.supervisors().values().filter(uses).cloned().collect();
        if users.is_empty() {
            tracing::info!(target: "generator", file = %file.display(), "{line}");
        }
        for supervisor in users {
            supervisor.log.push(line);
        }
    }

    /// Something that concerns a run's generator: on the ledger, and in its log.
    async fn tell(self: &Arc<Self>, yard: &Yard, told: &str) {
        self.supervisor_of(yard).note(None, told.to_owned()).await;
    }

    /// Goes on with the generator of a run that was running when the server ended.
    async fn resume(self: Arc<Self>, yard: Yard) {
        tokio::select! {
            () = self.looked() => {}
            () = self.stopping.cancelled() => return,
        }
        let seen = yard.ask(|ledger| {
            let state = ledger.generator().map(|known| known.state);
            (state, ledger.start().map(str::to_owned))
        });
        let Ok((Some(GeneratorState::Running), start)) = seen.await else { return };
        let payload: Map<String, Value> =
            start.and_then(|start| serde_json::from_str(&start).ok()).unwrap_or_default();
        let task_type = payload.get("task_type").and_then(Value::as_str).unwrap_or_default();
        let Some(maker) = self.maker(task_type) else {
            let told =
                format!("{}; mend it, then go on with another /start_rollout", self.unknown(task_type));
            let failed = Command::Note { state: Some(GeneratorState::Failed), told };
            if let Err(error) = yard.run(failed).await {
                tracing::warn!(run = %yard.run_name(), "what happened to the generator is not noted: {error}");
            }
            return;
        };
        self.start(&yard, maker, payload, true);
    }

    /// Why a task type is not known, with all that could be meant.
    pub(crate) fn unknown(&self, task_type: &str) -> String {
        let problems: Vec<String> = self.problems().iter().map(Problem::to_string).collect();
        let problems = match problems.as_slice() {
            [] => String::new(),
            some => format!(". Files that could not be used: {}", some.join("; ")),
        };
        let known = self.task_types().join(", ");
        format!("task_type {task_type:?} is unknown; known are: {known}{problems}")
    }
}

fn is_same(one: &Found, other: &Found) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => Arc::ptr_eq(one, other),
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}
