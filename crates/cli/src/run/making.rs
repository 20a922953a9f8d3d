//! Puts together what a run is made with: an engine, a workflow, a reward, and Python where one of them is.

use anyhow::{Context, Result, bail};
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::SharedWorkflow;
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::host::{Host, HostConfig, PythonReward, PythonWorkflow};
use rollyard_engine::reward::{RewardSpec, SharedReward};
use rollyard_engine::stats::Stats;
use rollyard_engine::workflow::SingleTurn;
use serde_json::value::to_raw_value;
use std::sync::Arc;
use std::time::Duration;

use super::arguments::{Arguments, SINGLE_TURN};
use crate::model;

/// A reward in Python that takes longer hangs.
const REWARD_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Making {
    pub(super) engine: SharedEngine,
    pub(super) workflow: SharedWorkflow,
    /// Keeps the worker processes.
    pub(super) host: Option<Host>,
}

pub(super) async fn prepare(arguments: &Arguments) -> Result<Making> {
    let engine = engine(arguments).await?;
    let reward = RewardSpec::parse(&arguments.reward)?;
    let needs_python = !arguments.is_built_in() || matches!(reward, RewardSpec::Python(_));
    let host = if needs_python { Some(host(arguments, engine.config()).await?) } else { None };
    let workflow = match &host {
        Some(host) if !arguments.is_built_in() => {
            let kwargs = arguments.workflow_args.as_ref().clone();
            Arc::new(PythonWorkflow::load(host.clone(), &arguments.workflow, kwargs).await?) as SharedWorkflow
        }
        _ => built_in(arguments, engine.config().dialect, reward_of(reward, host.as_ref()).await?)?,
    };
    Ok(Making { engine: Arc::new(engine), workflow, host })
}

async fn engine(arguments: &Arguments) -> Result<HttpEngine> {
    let given = &arguments.engine;
    let mut config = EngineConfig {
        urls: given.urls.clone(),
        api_key: given.engine_key.clone(),
        model: given.model_name.clone(),
        request_timeout_secs: given.request_timeout.as_secs_f64(),
        ..EngineConfig::default()
    };
    config.dialect = match given.dialect {
        Some(dialect) => dialect,
        None => rollyard_engine::clients::find_dialect(&config).await?,
    };
    Ok(HttpEngine::new(config)?)
}

fn built_in(arguments: &Arguments, dialect: Dialect, reward: SharedReward) -> Result<SharedWorkflow> {
    let tokenizer = match (&arguments.engine.model, dialect) {
        (Some(dir), Dialect::Sglang | Dialect::Vllm) => Some(Arc::new(model::load(dir)?)),
        (None, Dialect::Openai) => None,
        (Some(_), Dialect::Openai) => bail!(
            "--model is given, but an openai engine takes no token ids; leave it out to record text, or use sglang or vllm"
        ),
        (None, Dialect::Sglang | Dialect::Vllm) => bail!(
            "--model is missing: {dialect} is asked in token ids, and the folder with the model's tokenizer.json is needed to make \
             them; --dialect openai records text only"
        ),
    };
    let mut single_turn = SingleTurn::new(tokenizer, arguments.gconfig(), reward);
    single_turn.system = arguments.sampling.system.clone();
    match arguments.workflow.as_str() {
        SINGLE_TURN => Ok(Arc::new(single_turn)),
        other => bail!("there is no workflow {other}"),
    }
}

async fn reward_of(spec: RewardSpec, host: Option<&Host>) -> Result<SharedReward> {
    match (spec, host) {
        (RewardSpec::Python(path), Some(host)) => {
            Ok(Arc::new(PythonReward::load(host.clone(), &path, REWARD_TIMEOUT).await?))
        }
        (spec, _) => Ok(spec.build()?),
    }
}

async fn host(arguments: &Arguments, engine: &EngineConfig) -> Result<Host> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let config = HostConfig {
        python: arguments.python.python.clone(),
        processes: arguments.python.processes,
        engine: Some(to_raw_value(engine)?),
        // As for `python -m`: what lies here can be imported.
        sys_path: vec![here.display().to_string()],
        ..HostConfig::default()
    };
    static RECORDED: std::sync::OnceLock<Stats> = std::sync::OnceLock::new();
    Ok(Host::start(config, RECORDED.get_or_init(Stats::default)).await?)
}
