//! Puts together what a run is made with: an engine, a workflow, a reward, and Python where one of them is.

use anyhow::{Context, Result, bail};
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::SharedWorkflow;
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::host::{Host, HostConfig, PythonWorkflow};
use rollyard_engine::stats::Stats;
use serde_json::value::to_raw_value;
use std::sync::Arc;

use super::arguments::Arguments;
use crate::model;

pub(super) struct Making {
    pub(super) engine: SharedEngine,
    pub(super) workflow: SharedWorkflow,
    /// Keeps the worker processes.
    pub(super) host: Option<Host>,
}

pub(super) async fn prepare(arguments: &Arguments) -> Result<Making> {
    let recipe = arguments.recipe()?;
    let needs_python = recipe.as_ref().map_or(Ok(true), |recipe| recipe.needs_python())?;
    let engine = engine(arguments).await?;
    let host = if needs_python { Some(host(arguments, engine.config()).await?) } else { None };
    let workflow = match (recipe, &host) {
        (Some(recipe), host) => {
            let tokenizer = tokenizer(arguments, engine.config().dialect)?;
            recipe.build(tokenizer, host.as_ref()).await?
        }
        (None, Some(host)) => {
            let kwargs = arguments.workflow_args.as_ref().clone();
            Arc::new(PythonWorkflow::load(host.clone(), &arguments.workflow, kwargs).await?)
        }
        (None, None) => bail!("a workflow in Python needs a host for it"),
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

/// What makes tokens of text, where the engine is asked in tokens.
fn tokenizer(arguments: &Arguments, dialect: Dialect) -> Result<Option<Arc<Tokenizer>>> {
    match (&arguments.engine.model, dialect) {
        (Some(dir), Dialect::Sglang | Dialect::Vllm) => Ok(Some(Arc::new(model::load(dir)?))),
        (None, Dialect::Openai) => Ok(None),
        (Some(_), Dialect::Openai) => bail!(
            "--model is given, but an openai engine takes no token ids; leave it out to record text, or use sglang or vllm"
        ),
        (None, Dialect::Sglang | Dialect::Vllm) => bail!(
            "--model is missing: {dialect} is asked in token ids, and the folder with the model's tokenizer.json is needed to make \
             them; --dialect openai records text only"
        ),
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
