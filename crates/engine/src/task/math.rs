//! The task itself: problems in, scored rollouts out.
//!
//! Here it is checked and put together: the problems, an engine that is there, and a tokenizer if there is one.

use rollyard_core::rollout::NO_VERSION;
use rollyard_core::tokens::Tokenizer;
use serde_json::value::to_raw_value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::{JoinError, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::input::{self, Input, InputError};
use super::maker::Maker;
use super::outage::{Outage, reach};
use super::payload::{PayloadError, StartPayload};
use super::plan::Plan;
use super::progress::{Counts, Progress};
use super::shelf::{Refused, Shelf, ShelfError};
use super::window::Window;
use crate::clients::{Dialect, EngineConfig, HttpEngine, unique_name};
use crate::generate::{Engine, EngineError};
use crate::reward::MathsReward;
use crate::workflow::SingleTurn;

/// Rollouts under way at once, unless the payload wants more.
const CONCURRENT: u32 = 1024;

#[derive(Debug)]
pub struct MathTask {
    payload: StartPayload,
}

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the tokenizer cannot be used ({reason}): {}", .path.display())]
    Tokenizer { reason: String, path: PathBuf },
    #[error("the rollouts cannot be written: {0}")]
    Shelf(#[from] ShelfError),
    #[error("the yard refused {times} rollouts in a row, the last because {refused}")]
    Refused { times: u32, refused: Refused },
    #[error("all of the first {times} rollouts failed, the last one so: {error}")]
    AllFailed { times: u64, error: String },
    #[error("the task broke: {0}")]
    Broke(#[from] JoinError),
}

/// What a task came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub counts: Counts,
    /// Before the end: what is missing is made when the task is started again.
    pub stopped: bool,
    /// The rollouts have the tokens that were sampled; otherwise text is all there is.
    pub exact: bool,
}

impl MathTask {
    /// Looks whether the file can be read and begins as it should; the engine is not asked yet.
    pub fn prepare(payload: StartPayload) -> Result<Self, TaskError> {
        let task = Self { payload };
        let url = &task.payload.remote_engine_url;
        if let Err(error) = HttpEngine::new(task.engine_config()) {
            tracing::debug!(%error, url, "a task cannot be started");
            return Err(PayloadError::engine_url(url).into());
        }
        input::check_first(&task.payload.input_file)?;
        Ok(task)
    }

    pub fn payload(&self) -> &StartPayload {
        &self.payload
    }

    /// Until every rollout is on the shelf, or `stop` is cancelled. An engine that is away is waited for.
    /// The progress is that of this run alone, and new.
    pub async fn run(
        self,
        shelf: Arc<dyn Shelf>,
        progress: Arc<Progress>,
        stop: CancellationToken,
    ) -> Result<Summary, TaskError> {
        let path = self.payload.input_file.clone();
        let input = Arc::new(spawn_blocking(move || Input::read(&path)).await??);
        let plan = Plan::new(input, &self.payload);
        progress.begin(plan.total());
        let (maker, exact) = tokio::select! {
            maker = self.maker(&progress) => maker?,
            () = stop.cancelled() => {
                return Ok(Summary { counts: progress.counts(), stopped: true, exact: false });
            }
        };
        let window = Window { maker: Arc::new(maker), shelf, at_once: self.at_once() };
        window.make_all(plan, &stop).await?;
        let counts = progress.counts();
        Ok(Summary { stopped: counts.left() > 0, counts, exact })
    }

    fn at_once(&self) -> usize {
        let StartPayload { max_concurrent, num_process, .. } = &self.payload;
        max_concurrent.map_or(CONCURRENT.max(*num_process), |max| max.get()) as usize
    }

    fn engine_config(&self) -> EngineConfig {
        EngineConfig::of(Dialect::default(), self.payload.remote_engine_url.clone())
    }

    /// Waits for the engine. Also whether its tokens are exact.
    async fn maker(&self, progress: &Arc<Progress>) -> Result<(Maker, bool), TaskError> {
        let mut config = self.engine_config();
        config.dialect = reach(&config, progress).await;
        let tokenizer = self.tokenizer(config.dialect).await?;
        let exact = tokenizer.is_some();
        let engine = HttpEngine::new(config.clone())?;
        // Nobody tells this engine of new weights: where it does not say what it has, nobody knows.
        engine.set_version(NO_VERSION);
        let StartPayload { gconfig, seed, sampling_params, .. } = &self.payload;
        let kept = sampling_params
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), to_raw_value(value).ok()?)));
        let workflow = SingleTurn::new(tokenizer, gconfig.clone(), Arc::new(MathsReward::default()));
        let maker = Maker {
            engine: Arc::new(engine),
            workflow: Arc::new(workflow),
            name: unique_name().into(),
            seed: gconfig.seed.unwrap_or(*seed),
            sampling_params: kept.collect(),
            outage: Outage::new(config, Arc::clone(progress)),
            progress: Arc::clone(progress),
        };
        Ok((maker, exact))
    }

    /// What makes tokens of text, if the engine takes them and there is one.
    async fn tokenizer(&self, dialect: Dialect) -> Result<Option<Arc<Tokenizer>>, TaskError> {
        let Some(path) = self.payload.tokenizer_path.clone().filter(|_| dialect.speaks_tokens()) else {
            return Ok(None);
        };
        // It may be a name on a hub, which says nothing here.
        if !path.join("tokenizer.json").is_file() {
            tracing::warn!("there is no tokenizer.json, so rollouts are text only: {}", path.display());
            return Ok(None);
        }
        Ok(Some(Arc::new(spawn_blocking(move || load(&path)).await??)))
    }
}

fn load(path: &Path) -> Result<Tokenizer, TaskError> {
    let broken = |reason: String| TaskError::Tokenizer { reason, path: path.to_owned() };
    let folder = rollyard_store::model_folder::read(path).map_err(|error| broken(error.to_string()))?;
    let tokenizer =
        Tokenizer::new(&folder.tokenizer, folder.files()).map_err(|error| broken(error.to_string()))?;
    // Without a template not one prompt could be asked.
    tokenizer.config().template(None, false).map_err(|error| broken(error.to_string()))?;
    Ok(tokenizer)
}
