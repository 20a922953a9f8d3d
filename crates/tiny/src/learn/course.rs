//! Samples and trains side by side, step by step.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rollyard_core::tokens::{Tokenizer, TokenizerError};
use rollyard_engine::episode::EpisodeError;
use rollyard_engine::executor::{Executor, ExecutorConfig, ExecutorError, Pace};
use rollyard_engine::sink::{Naming, Sink, YardSink};
use rollyard_engine::yard::{Books, Draw, Drawn, YardClient, YardError, YardSettings};
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::exam::Exam;
use super::feed::Feed;
use super::plan::{Plan, PlanError};
use super::report::{Outcome, StepReport, drift_max};
use super::resume::{self, Place};
use crate::engine::{AskError, EngineSettings, TinyEngine};
use crate::model::{DecoderError, Weights};
use crate::task::shuffle;
use crate::train::{Checkpoint, CheckpointError, Lesson, Trainer};

#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Yard(#[from] YardError),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error("the model: {0}")]
    Model(#[from] DecoderError),
    #[error("the engine: {0}")]
    Engine(#[from] AskError),
    #[error("held-out problems could not be answered: {0}")]
    Exam(#[from] EpisodeError),
    #[error("the tokenizer: {0}")]
    Tokenizer(#[from] TokenizerError),
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
    #[error(
        "no batch of {rollouts} rollouts came together within {secs} s; what the yard has is in its books: {books:?}"
    )]
    Starved { rollouts: usize, secs: u64, books: Books },
    #[error(
        "rollout {nth} of the batch of step {step} has no log-probabilities, so nothing can be learnt from it"
    )]
    NoLogprobs { nth: usize, step: u64 },
    #[error("training panicked")]
    Panicked,
}

/// Where a course takes place.
#[derive(Clone, Debug)]
pub struct Site {
    /// Of the yard.
    pub url: String,
    pub run: String,
    /// Where the policy is kept from step to step.
    pub checkpoint: PathBuf,
    /// Where it is kept as the warm-up left it: what a KL term measures from.
    pub warm: PathBuf,
}

/// How long the yard waits for a batch before it is asked again.
const DRAW_WAIT: Duration = Duration::from_secs(2);
/// A batch takes far less than a second; after this something is wrong.
const STARVED_AFTER: Duration = Duration::from_secs(120);
/// How long a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Groups that are sampled at once; more would only wait for the engine.
const GROUPS_AT_ONCE_MAX: u32 = 64;

#[derive(Debug)]
pub struct Course {
    plan: Plan,
    site: Site,
    engine: TinyEngine,
    executor: Executor,
    yard: YardClient,
    feed: Feed,
    exam: Exam,
    trainer: Trainer,
    place: Place,
    /// Of this attempt: the clock, and what was on it before.
    began: Instant,
    secs_before: f64,
    tokens_before: u64,
    /// For the pace of sampling between two steps.
    last: (Instant, u64),
    /// Rollouts dropped that the executor has not been told of, because they are no whole group yet.
    books: Books,
    dropped_told: u64,
}

impl Course {
    /// The checkpoint's course if there is one. Otherwise a new one, with weights from `warm_up`; `None` from it
    /// means that nobody wants it any more.
    pub async fn open(
        plan: Plan,
        site: Site,
        warm_up: impl FnOnce(&Tokenizer) -> Result<Option<Weights>, LearnError>,
    ) -> Result<Option<Self>, LearnError> {
        let task = plan.check()?;
        let tokenizer = Arc::new(crate::tokenizer::tokenizer()?);
        let (mut trainer, place, is_new) = match resume::load(&plan, &site.checkpoint)? {
            Some((trainer, place)) => (trainer, place, false),
            None => match warm_up(&tokenizer)? {
                Some(weights) => (resume::trainer(&plan, weights), Place::default(), true),
                None => return Ok(None),
            },
        };
        if is_new {
            resume::save_warm(&trainer, &site.warm)?;
        }
        if plan.grpo.kl > 0.0 {
            trainer.first = Some(Arc::new(Checkpoint::load(&site.warm, Some(&plan.shape))?.weights));
        }
        let yard = YardClient::new(YardSettings {
            url: site.url.clone(),
            run: site.run.clone(),
            token: None,
            patience: PATIENCE,
        })?;
        let naming = Naming::new(&format!("{} {}", plan.task, plan.seed));
        let sink = YardSink::open(yard.clone(), naming.clone(), &plan.knobs()).await?;
        let books = take_place(&yard, &place, is_new).await?;
        if is_new {
            // From here on a crash costs no warm-up.
            resume::save(&trainer, &place, &site.checkpoint)?;
        }

        let version = i32::try_from(place.version).unwrap_or(i32::MAX);
        let settings = EngineSettings { seed: Some(plan.seed), ..EngineSettings::default() };
        let engine =
            TinyEngine::start(Arc::clone(&trainer.weights), version, Arc::clone(&tokenizer), settings)
                .map_err(LearnError::Thread)?;
        let problems = task.problems(plan.seed);
        let exam = Exam::new(&plan, task, problems.held_out, &tokenizer, &trainer.weights)?;
        let chosen = problems.train.into_iter().take(plan.problems).collect();
        let workflow = task.workflow(tokenizer, plan.sampling());
        let mut feed = Feed::new(task, chosen, workflow, plan.group_size);
        feed.catch_up(&yard, &naming).await?;
        let executor = executor(&plan, &site, &engine, sink);
        executor.charge((books.held / u64::from(plan.group_size.get())).cast_signed());
        let now = Instant::now();
        Ok(Some(Self {
            site,
            executor,
            yard,
            feed,
            exam,
            trainer,
            began: now,
            secs_before: place.secs,
            tokens_before: place.tokens,
            place,
            last: (now, 0),
            dropped_told: books.dropped,
            books,
            engine,
            plan,
        }))
    }

    /// Of the weights as they are: 0 after the warm-up.
    pub fn version(&self) -> u64 {
        self.place.version
    }

    /// Share of held-out problems that the weights answer right as they are.
    pub async fn examine(&self) -> Result<f64, LearnError> {
        let version = i32::try_from(self.place.version).unwrap_or(i32::MAX);
        self.exam.sit(&self.trainer.weights, version).await
    }

    /// Goes on until version `steps`, or until told to stop, which it does between two steps. `told` hears of every
    /// step.
    pub async fn run(
        mut self,
        steps: u64,
        stop: &CancellationToken,
        mut told: impl FnMut(&StepReport),
    ) -> Result<Outcome, LearnError> {
        while self.place.version < steps && !stop.is_cancelled() {
            let drawn = tokio::select! {
                drawn = self.draw() => drawn?,
                () = stop.cancelled() => break,
            };
            let report = self.step(drawn, steps).await?;
            told(&report);
        }
        self.executor.close();
        let stopped = self.place.version < steps;
        Ok(Outcome { version: self.place.version, stopped, books: self.books })
    }

    /// The batch of this step, while the executor is kept busy.
    async fn draw(&mut self) -> Result<Drawn, LearnError> {
        let draw = Draw { step: self.place.version, rollouts: self.plan.batch(), wait: DRAW_WAIT };
        let asked = Instant::now();
        loop {
            // Says why nothing comes, if the executor has stopped.
            self.fill()?;
            if let Some(drawn) = self.yard.draw(draw).await? {
                return Ok(drawn);
            }
            if asked.elapsed() > STARVED_AFTER {
                let (rollouts, secs) = (draw.rollouts, STARVED_AFTER.as_secs());
                return Err(LearnError::Starved { rollouts, secs, books: self.books.clone() });
            }
        }
    }

    /// Problems in the queue for as much as may be begun before the next step.
    fn fill(&mut self) -> Result<(), LearnError> {
        let wanted = u64::from(self.plan.groups.get()) * u64::from(self.plan.staleness_max + 2);
        let queued = self.executor.stats().counts.enqueued;
        for _ in queued..wanted {
            self.executor.submit(self.feed.next_group())?;
        }
        Ok(())
    }

    async fn step(&mut self, drawn: Drawn, steps: u64) -> Result<StepReport, LearnError> {
        let version = self.place.version;
        let lessons = self.lessons(&drawn)?;
        let trainer = self.trainer.clone();
        let Drawn { lease, rollouts } = drawn;
        let learnt = tokio::task::spawn_blocking(move || {
            let mut trainer = trainer;
            let found = trainer.student.logprobs(&trainer.weights, &lessons)?;
            let drift = drift_max(version, &rollouts, &lessons, &found);
            let learnt = trainer.step(&lessons)?;
            Ok::<_, DecoderError>((trainer, learnt, drift, rollouts))
        });
        let (trainer, learnt, drift, rollouts) = learnt.await.map_err(|_| LearnError::Panicked)??;
        let mut report = StepReport::of_batch(version, &rollouts, &learnt);
        report.drift_max = drift;
        self.trainer = trainer;

        self.place.version += 1;
        self.place.lease = Some(lease);
        self.clock(&mut report);
        self.keep(lease).await?;
        let next = i32::try_from(self.place.version).unwrap_or(i32::MAX);
        self.engine.update(Arc::clone(&self.trainer.weights), next).await?;
        self.executor.set_version(next);
        self.fill()?;
        report.stale_dropped = self.books.dropped_by_reason.get("stale_step").copied().unwrap_or_default();
        if self.place.version.is_multiple_of(self.plan.exam_every) || self.place.version == steps {
            report.held_out = Some(self.examine().await?);
        }
        Ok(report)
    }

    fn lessons(&self, drawn: &Drawn) -> Result<Vec<Lesson>, LearnError> {
        let step = self.place.version;
        let mut lessons = Vec::with_capacity(drawn.rollouts.len());
        for (nth, drawn) in drawn.rollouts.iter().enumerate() {
            let lesson = Lesson::of(&drawn.rollout, drawn.advantage as f32);
            lessons.push(lesson.ok_or(LearnError::NoLogprobs { nth, step })?);
        }
        if self.plan.shuffled {
            let mut dealt: Vec<f32> = lessons.iter().map(|lesson| lesson.advantage).collect();
            shuffle(&mut dealt, &mut ChaCha8Rng::seed_from_u64(self.plan.seed ^ step));
            for (lesson, advantage) in lessons.iter_mut().zip(dealt) {
                lesson.advantage = advantage;
            }
        }
        Ok(lessons)
    }

    /// Saves the policy, and ties what it learnt from to it. What the checkpoint holds is learnt, and nothing else: it
    /// comes first, and whoever is killed behind it does the rest when it is found.
    async fn keep(&mut self, lease: u64) -> Result<(), LearnError> {
        self.yard.ack(lease).await?;
        let (trainer, place, path) = (self.trainer.clone(), self.place.clone(), self.site.checkpoint.clone());
        let saved = tokio::task::spawn_blocking(move || resume::save(&trainer, &place, &path));
        saved.await.map_err(|_| LearnError::Panicked)??;
        // The yard takes no rollouts of weights that the trainer is not at, so it hears of the step before the engine.
        self.yard.set_step(self.place.version).await?;
        let books = self.yard.commit(self.place.version, &[lease]).await?;
        self.note(books);
        Ok(())
    }

    /// What the yard has dropped may be sampled anew.
    fn note(&mut self, books: Books) {
        let group_size = u64::from(self.plan.group_size.get());
        let groups = books.dropped.saturating_sub(self.dropped_told) / group_size;
        if groups > 0 {
            self.dropped_told += groups * group_size;
            self.executor.charge(-groups.cast_signed());
        }
        self.books = books;
    }

    fn clock(&mut self, report: &mut StepReport) {
        let (now, sampled) = (Instant::now(), self.engine.stats().sampled);
        let (then, before) = std::mem::replace(&mut self.last, (now, sampled));
        self.place.secs = self.secs_before + now.duration_since(self.began).as_secs_f64();
        self.place.tokens = self.tokens_before + sampled;
        report.secs = self.place.secs;
        report.tokens = self.place.tokens;
        let secs = now.duration_since(then).as_secs_f64().max(1e-6);
        report.tokens_per_sec = sampled.saturating_sub(before) as f64 / secs;
    }
}

/// Puts the run to where the checkpoint stands.
async fn take_place(yard: &YardClient, place: &Place, is_new: bool) -> Result<Books, YardError> {
    if is_new {
        return yard.rewind(-1).await;
    }
    let Some(lease) = place.lease else { return yard.rewind(-1).await };
    // If it was killed behind the checkpoint, this is what was left to do; if not, it changes nothing.
    yard.set_step(place.version).await?;
    yard.commit(place.version, &[lease]).await?;
    yard.rewind(place.version.cast_signed()).await
}

fn executor(plan: &Plan, site: &Site, engine: &TinyEngine, sink: YardSink) -> Executor {
    let most = plan.groups.get().saturating_mul(plan.staleness_max + 1).min(GROUPS_AT_ONCE_MAX);
    let pace = Pace {
        max_concurrent: NonZeroU32::new(most).unwrap_or(plan.groups),
        batch: plan.groups,
        max_head_offpolicyness: Some(plan.staleness_max),
    };
    let config = ExecutorConfig {
        run: Arc::from(site.run.as_str()),
        seed: plan.seed,
        // The yard has it all.
        keep: false,
        ..ExecutorConfig::new(pace)
    };
    let sinks: Vec<Arc<dyn Sink>> = vec![Arc::new(sink)];
    Executor::new(Arc::new(engine.clone()), config, sinks, Handle::current())
}
