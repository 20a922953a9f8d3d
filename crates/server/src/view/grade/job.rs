//! Jobs that have rollouts graded.
//!
//! A job is a file in the data folder: what it is to ask comes first, how it ended last. One that has no end when the
//! server starts goes on, and asks only what has no grade yet.

use axum::http::StatusCode;
use futures_util::stream::StreamExt;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{Engine, EngineError, GenerationConfig, ModelRequest, Prompt};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use xxhash_rust::xxh3::xxh3_64;

use super::super::answer::blocking;
use super::super::indexing::View;
use super::super::shelf::Views;
use super::super::sidecar::{Sidecar, Told};
use super::super::summary::parse_id;
use super::metric::Metric;
use super::question;
use crate::error::ApiError;
use crate::settings::Grader;

/// So many failures before the first grade mean that it is not the rollouts' fault.
const FAILURES_MAX: u64 = 5;

/// Errors that are shown; all are counted.
const ERRORS_SHOWN: usize = 20;

const ANSWER_TOKENS_MAX: u32 = 4_096;
const ANSWER_WITHIN_SECS: f64 = 300.0;

/// What a job is to ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    job: String,
    view: String,
    places: Vec<String>,
    ids: Vec<String>,
    metrics: Vec<Metric>,
    url: String,
    model: Option<String>,
    at: f64,
}

impl Spec {
    pub(super) fn new(
        view: &View,
        ids: Vec<String>,
        metrics: Vec<Metric>,
        url: String,
        model: Option<String>,
    ) -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let job = format!("{:016x}", xxh3_64(format!("{at:?} {}", view.key).as_bytes()));
        let (view, places) = (view.key.clone(), view.places.clone());
        Self { job, view, places, ids, metrics, url, model, at: at.as_secs_f64() }
    }

    fn question(&self, number: u64) -> Option<(&str, &Metric)> {
        let number = usize::try_from(number).ok()?;
        let (rollout, metric) = (number / self.metrics.len(), number % self.metrics.len());
        Some((self.ids.get(rollout)?, self.metrics.get(metric)?))
    }

    fn total(&self) -> u64 {
        (self.ids.len() * self.metrics.len()) as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Running,
    Done,
    Cancelled,
    Failed,
    /// The server stopped meanwhile.
    Interrupted,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How far a job is.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) status: Status,
    model: Option<String>,
    graded: u64,
    /// Had a grade before.
    skipped: u64,
    failed: u64,
    errors: Vec<String>,
}

impl State {
    pub(super) fn is_running(&self) -> bool {
        self.status == Status::Running
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct JobAnswer {
    job: String,
    view: String,
    status: Status,
    base_url: String,
    model: Option<String>,
    metrics: Vec<String>,
    rollouts: usize,
    /// Questions: rollouts times metrics.
    total: u64,
    graded: u64,
    /// Had a grade of this model before.
    skipped: u64,
    failed: u64,
    /// The last ones.
    errors: Vec<String>,
    /// When it was asked for, in seconds since 1970.
    at: f64,
}

/// The lines of a job's file.
#[derive(Debug, Default)]
struct Log {
    spec: Option<Spec>,
    ended: Option<Status>,
}

impl Told for Log {
    fn hear(&mut self, line: &Value) {
        if let Some(spec) = line.get("spec").and_then(|spec| Spec::deserialize(spec).ok()) {
            self.spec = Some(spec);
        }
        if let Some(status) = line.get("status").and_then(|status| Status::deserialize(status).ok()) {
            self.ended = (status != Status::Running).then_some(status);
        }
    }
}

#[derive(Debug)]
pub(in super::super) struct Jobs {
    dir: PathBuf,
    known: Mutex<Option<BTreeMap<String, Arc<Job>>>>,
}

#[derive(Debug)]
pub(in super::super) struct Job {
    spec: Spec,
    file: Sidecar<Log>,
    state: watch::Sender<State>,
    stop: Mutex<CancellationToken>,
}

impl Jobs {
    pub(in super::super) fn new(dir: &Path) -> Self {
        Self { dir: dir.join("jobs"), known: Mutex::default() }
    }

    /// Goes on with what was under way when the server stopped.
    pub(in super::super) async fn resume(views: &Arc<Views>) {
        let jobs = Arc::clone(views);
        match blocking(move || jobs.jobs.all()).await {
            Ok(all) => {
                for job in all.iter().filter(|job| job.state.borrow().status == Status::Interrupted) {
                    job.begin(views);
                }
            }
            Err(error) => tracing::warn!("grading jobs are not gone on with: {}", error.message),
        }
    }

    /// The newest first.
    pub(super) fn all(&self) -> Result<Vec<Arc<Job>>, ApiError> {
        let mut jobs: Vec<Arc<Job>> = self.with(|known| known.values().cloned().collect())?;
        jobs.sort_by(|a, b| b.spec.at.total_cmp(&a.spec.at));
        Ok(jobs)
    }

    pub(super) fn find(&self, name: &str) -> Result<Arc<Job>, ApiError> {
        self.with(|known| known.get(name).cloned())?.ok_or_else(|| {
            let message = format!("there is no grading job {name:?}; /api/view/jobs lists them");
            ApiError::new(StatusCode::NOT_FOUND, "job_unknown", message)
        })
    }

    pub(super) fn make(&self, spec: Spec) -> Result<Arc<Job>, ApiError> {
        let name = spec.job.clone();
        let file = Sidecar::new(self.path(&name));
        file.append(&json!({"spec": spec}))?;
        let job = Arc::new(Job::new(spec, file, Status::Running));
        self.with(|known| known.insert(name, Arc::clone(&job)))?;
        Ok(job)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.jsonl"))
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Arc<Job>>) -> T) -> Result<T, ApiError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = match known.take() {
            Some(jobs) => jobs,
            None => self.read()?,
        };
        Ok(work(known.insert(jobs)))
    }

    fn read(&self) -> Result<BTreeMap<String, Arc<Job>>, ApiError> {
        let mut jobs = BTreeMap::new();
        // No folder, no jobs.
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return Ok(jobs) };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let file = Sidecar::<Log>::new(path.clone());
            let (spec, ended) = file.ask(|log| (log.spec.clone(), log.ended))?;
            match spec {
                Some(spec) => {
                    let job = Job::new(spec, file, ended.unwrap_or(Status::Interrupted));
                    jobs.insert(job.spec.job.clone(), Arc::new(job));
                }
                None => tracing::warn!("not a grading job, left alone: {}", path.display()),
            }
        }
        Ok(jobs)
    }
}

impl Job {
    fn new(spec: Spec, file: Sidecar<Log>, status: Status) -> Self {
        // A job that is only just made runs once it is begun.
        let status = if status == Status::Running { Status::Interrupted } else { status };
        let model = spec.model.clone();
        let state = State { status, model, graded: 0, skipped: 0, failed: 0, errors: Vec::new() };
        Self { spec, file, state: watch::Sender::new(state), stop: Mutex::default() }
    }

    pub(super) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) fn answer(&self) -> JobAnswer {
        self.answer_of(&self.state.borrow())
    }

    pub(super) fn answer_of(&self, state: &State) -> JobAnswer {
        let State { status, model, graded, skipped, failed, errors } = state.clone();
        JobAnswer {
            job: self.spec.job.clone(),
            view: self.spec.view.clone(),
            status,
            base_url: self.spec.url.clone(),
            model,
            metrics: self.spec.metrics.iter().map(|metric| metric.name.clone()).collect(),
            rollouts: self.spec.ids.len(),
            total: self.spec.total(),
            graded,
            skipped,
            failed,
            errors,
            at: self.spec.at,
        }
    }

    /// Asks what has no grade yet, unless it is doing so.
    pub(super) fn begin(self: &Arc<Self>, views: &Arc<Views>) {
        let begun = self.state.send_if_modified(|state| {
            let begins = !state.is_running();
            if begins {
                let model = self.spec.model.clone();
                *state = State {
                    status: Status::Running,
                    model,
                    graded: 0,
                    skipped: 0,
                    failed: 0,
                    errors: Vec::new(),
                };
            }
            begins
        });
        if begun {
            let stop = views.stopping.child_token();
            *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
            views.tasks.spawn(Arc::clone(self).run(Arc::clone(views), stop));
        }
    }

    /// Returns once it has stopped.
    pub(super) async fn cancel(&self) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        let mut state = self.state.subscribe();
        let _gone = state.wait_for(|state| !state.is_running()).await;
    }

    async fn run(self: Arc<Self>, views: Arc<Views>, stop: CancellationToken) {
        let (job, stopping) = (Arc::clone(&self), views.stopping.clone());
        let begun = blocking(move || job.file.append(&json!({"status": Status::Running}))).await;
        let asked = match begun {
            Ok(()) => self.ask_all(&views, &stop).await,
            Err(error) => Err(error.message),
        };
        if let Err(reason) = &asked {
            self.note(|state| state.errors.push(reason.clone()));
        }
        let status = match asked {
            _ if stopping.is_cancelled() => Status::Interrupted,
            Err(_) => Status::Failed,
            Ok(()) if stop.is_cancelled() => Status::Cancelled,
            Ok(()) => Status::Done,
        };
        if status != Status::Interrupted {
            let job = Arc::clone(&self);
            if let Err(error) = blocking(move || job.file.append(&json!({"status": status}))).await {
                tracing::error!("the end of a grading job is not on the disk: {}", error.message);
            }
        }
        self.note(|state| state.status = status);
    }

    async fn ask_all(self: &Arc<Self>, views: &Arc<Views>, stop: &CancellationToken) -> Result<(), String> {
        let Some(grader) = views.settings.grader.clone() else {
            return Err("no model grades here any longer; start the server with --grader-url".to_owned());
        };
        if !grader.urls.contains(&self.spec.url) {
            return Err(format!("this server does not ask it any longer: {}", self.spec.url));
        }
        let view = views.open(&self.spec.places).await.map_err(|error| error.message)?;
        view.refresh().await.map_err(|error| error.message)?;
        let engine = engine(&grader, &self.spec).map_err(|error| hide(&grader, error.to_string()))?;
        let model = tokio::select! {
            model = engine.model() => model.map_err(|error| hide(&grader, error.to_string()))?.to_string(),
            () = stop.cancelled() => return Ok(()),
        };
        self.note(|state| state.model = Some(model.clone()));
        let asking = Asking { job: Arc::clone(self), views: Arc::clone(views), view, engine, model, grader };
        let hopeless = CancellationToken::new();
        let all = futures_util::stream::iter(0..self.spec.total())
            .take_until(stop.cancelled())
            .take_until(hopeless.cancelled())
            .for_each_concurrent(asking.grader.at_once.max(1), |number| {
                let (asking, hopeless) = (&asking, &hopeless);
                async move {
                    tokio::select! {
                        () = asking.ask(number) => {}
                        () = stop.cancelled() => {}
                    }
                    let state = asking.job.state.borrow();
                    if state.graded == 0 && state.failed >= FAILURES_MAX {
                        hopeless.cancel();
                    }
                }
            });
        all.await;
        if hopeless.is_cancelled() {
            return Err(format!(
                "the first {FAILURES_MAX} questions all failed; the job is not gone on with"
            ));
        }
        Ok(())
    }

    fn note(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(|state| {
            change(state);
            let surplus = state.errors.len().saturating_sub(ERRORS_SHOWN);
            state.errors.drain(..surplus);
        });
    }
}

fn engine(grader: &Grader, spec: &Spec) -> Result<HttpEngine, EngineError> {
    HttpEngine::new(EngineConfig {
        api_key: grader.key.clone(),
        model: spec.model.clone(),
        exact: false,
        request_timeout_secs: ANSWER_WITHIN_SECS,
        attempts: 4,
        backoff_secs: 0.5,
        ..EngineConfig::of(Dialect::Openai, spec.url.clone())
    })
}

/// Some endpoints repeat the key they refuse.
fn hide(grader: &Grader, message: String) -> String {
    match grader.key.as_deref().filter(|key| !key.is_empty()) {
        Some(key) => message.replace(key, "…"),
        None => message,
    }
}

/// What every question of a job needs.
struct Asking {
    job: Arc<Job>,
    views: Arc<Views>,
    view: Arc<View>,
    engine: HttpEngine,
    model: String,
    grader: Grader,
}

impl Asking {
    async fn ask(&self, number: u64) {
        let Some((id, metric)) = self.job.spec.question(number) else { return };
        match self.grade(id, metric).await {
            Ok(true) => self.job.note(|state| state.graded += 1),
            Ok(false) => self.job.note(|state| state.skipped += 1),
            Err(error) => {
                let error = hide(&self.grader, format!("{} of {id}: {error}", metric.name));
                self.job.note(|state| {
                    state.failed += 1;
                    state.errors.push(error);
                });
            }
        }
    }

    /// False if it had a grade already.
    async fn grade(&self, id: &str, metric: &Metric) -> Result<bool, String> {
        let (views, view) = (Arc::clone(&self.views), Arc::clone(&self.view));
        let (rollout, name, model) = (id.to_owned(), metric.name.clone(), self.model.clone());
        let read = blocking(move || {
            if views.notes.has_grade(&rollout, &name, &model)? {
                return Ok(None);
            }
            let row = parse_id(&rollout).map(|id| view.catalog().find(id)).transpose()?.flatten();
            let gone = || ApiError::new(StatusCode::NOT_FOUND, "rollout_unknown", "the rollout is gone");
            let body = view.catalog().body(row.ok_or_else(gone)?)?;
            body.pieces().map(Some).map_err(|problem| ApiError::bad("bad_row", problem))
        });
        let Some(pieces) = read.await.map_err(|error| error.message)? else { return Ok(false) };
        let messages = question::messages(metric, &pieces);
        let messages: Result<Vec<_>, _> = messages.iter().map(to_raw_value).collect();
        let request = ModelRequest {
            rid: String::new(),
            prompt: Prompt::Chat { messages: messages.map_err(|error| error.to_string())?, tools: None },
            gconfig: GenerationConfig {
                max_new_tokens: ANSWER_TOKENS_MAX,
                greedy: true,
                ..GenerationConfig::default()
            },
            session: None,
            metadata: Map::new(),
        };
        let response = self.engine.generate(request).await.map_err(|error| error.to_string())?;
        let answer = response.text.unwrap_or_default();
        let grade = question::read(&answer, metric, &pieces)?;
        let Value::Object(note) = json!({
            "id": id, "kind": "grade", "by": format!("model:{}", self.model), "model": self.model,
            "metric": metric.name, "score": grade.score, "reasoning": grade.reasoning, "quotes": grade.quotes,
            "job": self.job.spec.job,
        }) else {
            return Ok(true);
        };
        let views = Arc::clone(&self.views);
        blocking(move || views.notes.add(note)).await.map_err(|error| error.message)?;
        Ok(true)
    }
}
