//! How agents are run, as a few settings.

use rollyard_engine::generate::GenerationConfig;
use rollyard_engine::host::Host;
use rollyard_engine::reward::{RewardSpec, RewardSpecError};
use rollyard_engine::workflow::{RecipeError, reward_of};
use serde::Deserialize;
use std::sync::Arc;

use super::{AgentPlan, Desk};
use crate::session::export::Style;
use crate::session::opening::{Budget, Defaults, Opening, Thoughts};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRecipe {
    /// How to sample where the agent does not say.
    pub gconfig: GenerationConfig,
    /// What the agent says about temperature, `top_p` and `top_k` does not count.
    pub fixed_sampling: bool,
    /// As [`RewardSpec`] reads it. What the agent returns or prints last, if left out.
    pub reward: Option<String>,
    pub style: Style,
    pub discount: f64,
    pub thoughts: Thoughts,
    pub budget: Budget,
}

impl Default for AgentRecipe {
    fn default() -> Self {
        Self {
            gconfig: GenerationConfig::default(),
            fixed_sampling: false,
            reward: None,
            style: Style::default(),
            discount: 1.0,
            thoughts: Thoughts::default(),
            budget: Budget::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgentRecipeError {
    #[error(transparent)]
    Reward(#[from] RecipeError),
    #[error("{field} is given, but an agent says that itself with every call; leave it out")]
    AgentsOwn { field: &'static str },
    #[error("{0}")]
    Opening(String),
}

impl AgentRecipe {
    /// Whether worker processes are needed, for the reward.
    pub fn needs_python(&self) -> Result<bool, RewardSpecError> {
        let spec = self.reward.as_deref().map(RewardSpec::parse).transpose()?;
        Ok(matches!(spec, Some(RewardSpec::Python(_))))
    }

    pub async fn build(self, desk: Arc<Desk>, host: Option<&Host>) -> Result<AgentPlan, AgentRecipeError> {
        let opening = self.opening()?;
        let reward = match &self.reward {
            Some(spec) => Some(reward_of(spec, host).await?),
            None => None,
        };
        Ok(AgentPlan { desk, reward, opening })
    }

    /// What every session is opened with.
    pub fn opening(&self) -> Result<Opening, AgentRecipeError> {
        let opening = Opening {
            budget: self.budget,
            sampling: self.sampling()?,
            thoughts: self.thoughts,
            style: self.style,
            discount: self.discount,
            ..Opening::default()
        };
        opening.check().map_err(AgentRecipeError::Opening)?;
        Ok(opening)
    }

    fn sampling(&self) -> Result<Defaults, AgentRecipeError> {
        let gconfig = &self.gconfig;
        let ours = GenerationConfig::default();
        let own = [
            ("min_new_tokens", gconfig.min_new_tokens != ours.min_new_tokens),
            ("frequency_penalty", gconfig.frequency_penalty != ours.frequency_penalty),
            ("presence_penalty", gconfig.presence_penalty != ours.presence_penalty),
            ("stop", gconfig.stop != ours.stop),
            ("stop_token_ids", gconfig.stop_token_ids != ours.stop_token_ids),
            ("json_schema", gconfig.json_schema != ours.json_schema),
        ];
        if let Some((field, _)) = own.into_iter().find(|(_, is_given)| *is_given) {
            return Err(AgentRecipeError::AgentsOwn { field });
        }
        Ok(Defaults {
            max_tokens: Some(gconfig.max_new_tokens),
            temperature: Some(if gconfig.greedy { 0.0 } else { gconfig.temperature }),
            top_p: Some(gconfig.top_p),
            top_k: gconfig.top_k,
            // Every episode has its own.
            seed: None,
            is_fixed: self.fixed_sampling,
        })
    }
}
