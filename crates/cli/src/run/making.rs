//! Puts together what a run is made with: an engine, a workflow, a reward, and Python where one of them is.

use anyhow::{Context, Result, bail};
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::SharedWorkflow;
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::host::{Host, HostConfig, PythonWorkflow};
use rollyard_engine::stats::Stats;
use rollyard_gateway::agent::{CommandAgent, Desk, HostedAgent, SharedAgent, is_agent};
use serde_json::value::to_raw_value;
use std::sync::Arc;

use super::agent;
use super::arguments::Arguments;
use crate::model;

pub(super) struct Making {
    pub(super) engine: SharedEngine,
    pub(super) workflow: SharedWorkflow,
    /// Keeps the worker processes.
    pub(super) host: Option<Host>,
    /// Where agents ask.
    pub(super) desk: Option<Arc<Desk>>,
}

pub(super) async fn prepare(arguments: &Arguments) -> Result<Making> {
    let recipe = arguments.recipe()?;
    let command = arguments.agent.as_deref().map(CommandAgent::new).transpose()?;
    let needs_python = match &recipe {
        Some(recipe) => recipe.needs_python()?,
        None if command.is_some() => agent::recipe(arguments)?.needs_python()?,
        None => true,
    };
    let engine = engine(arguments).await?;
    let dialect = engine.config().dialect;
    let host = if needs_python { Some(host(arguments, engine.config()).await?) } else { None };
    let Made { workflow, desk } = match (recipe, command, &host) {
        (Some(recipe), _, host) => {
            let workflow = recipe.build(tokenizer(arguments, dialect)?, host.as_ref()).await?;
            Made { workflow, desk: None }
        }
        (None, Some(command), host) => of_agent(arguments, dialect, Arc::new(command), host.as_ref()).await?,
        (None, None, Some(host)) => of_python(arguments, dialect, host).await?,
        (None, None, None) => bail!("a workflow in Python needs a host for it"),
    };
    Ok(Making { engine: Arc::new(engine), workflow, host, desk })
}

struct Made {
    workflow: SharedWorkflow,
    desk: Option<Arc<Desk>>,
}

async fn of_agent(
    arguments: &Arguments,
    dialect: Dialect,
    agent: SharedAgent,
    host: Option<&Host>,
) -> Result<Made> {
    let desk = agent::desk(arguments, dialect)?;
    let plan = agent::recipe(arguments)?.build(Arc::clone(&desk), host).await?;
    Ok(Made { workflow: Arc::new(plan.with(agent)), desk: Some(desk) })
}

/// A workflow by its name, or an agent.
async fn of_python(arguments: &Arguments, dialect: Dialect, host: &Host) -> Result<Made> {
    let path = arguments.workflow.as_str();
    let kwargs = arguments.workflow_args.as_ref().clone();
    if is_agent(host, path).await? {
        let agent = HostedAgent::load(host.clone(), path, kwargs, None).await?;
        return of_agent(arguments, dialect, Arc::new(agent), Some(host)).await;
    }
    let workflow = PythonWorkflow::load(host.clone(), path, kwargs).await?;
    Ok(Made { workflow: Arc::new(workflow), desk: None })
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
pub(super) fn tokenizer(arguments: &Arguments, dialect: Dialect) -> Result<Option<Arc<Tokenizer>>> {
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
