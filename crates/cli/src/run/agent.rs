//! Agents as workflows: the gateway that they ask, and how their sessions are opened.

use anyhow::{Result, bail};
use rollyard_engine::clients::Dialect;
use rollyard_gateway::agent::{AgentRecipe, Desk};
use rollyard_gateway::model::{ANY_NAME, ModelSettings};
use rollyard_gateway::session::opening::Budget;
use std::path::Path;
use std::sync::Arc;

use super::arguments::Arguments;
use super::making::tokenizer;

/// Nothing listens before the first episode.
pub(super) fn desk(arguments: &Arguments, dialect: Dialect) -> Result<Arc<Desk>> {
    let Some(tokenizer) = tokenizer(arguments, dialect)? else {
        bail!(
            "an agent is recorded to the token, but an openai engine gives none; use sglang or vllm, with --model"
        )
    };
    let of_folder = || {
        let folder = arguments.engine.model.as_deref().and_then(Path::file_name);
        folder.map_or_else(|| "policy".to_owned(), |name| name.to_string_lossy().into_owned())
    };
    Ok(Desk::new(ModelSettings {
        name: arguments.engine.model_name.clone().unwrap_or_else(of_folder),
        // Agents have names of models written into them.
        aliases: vec![ANY_NAME.to_owned()],
        tokenizer,
        context_tokens: None,
        grammar: None,
    }))
}

pub(super) fn recipe(arguments: &Arguments) -> Result<AgentRecipe> {
    for (flag, is_given) in
        [("--system", arguments.sampling.system.is_some()), ("--tool", !arguments.turns.tools.is_empty())]
    {
        if is_given {
            bail!("{flag} is given, but an agent says and calls what it wants itself; leave it out");
        }
    }
    let mut budget = Budget::default();
    if let Some(limit) = arguments.episode_timeout {
        budget.secs = limit.as_secs_f64();
    }
    let recipe = AgentRecipe {
        gconfig: arguments.gconfig(),
        fixed_sampling: arguments.sampling.fixed_sampling,
        reward: arguments.reward.clone(),
        budget,
        ..AgentRecipe::default()
    };
    recipe.opening()?;
    Ok(recipe)
}
