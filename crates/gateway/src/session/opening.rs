//! What a session is opened for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::export::Style;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The run that the rollout is for.
    #[serde(default = "default_run")]
    pub run: String,
    /// The prompt that it is a rollout of: what groups are made by. Made up if left out.
    #[serde(default)]
    pub instance_id: String,
    /// Which of the group.
    #[serde(default)]
    pub slot: u32,
    /// Sessions of the group: they go to the yard together, when the last of them is over. Each by itself if left out.
    #[serde(default)]
    pub group_size: Option<u32>,
    #[serde(default)]
    pub env_name: String,
    #[serde(default)]
    pub budget: Budget,
    #[serde(default)]
    pub sampling: Defaults,
    /// Models of a template that drops earlier thoughts: go on with them in the tokens, or begin a new sequence.
    #[serde(default)]
    pub thoughts: Thoughts,
    #[serde(default)]
    pub style: Style,
    /// For rewards along the conversation, with the style `individual`.
    #[serde(default = "one")]
    pub discount: f64,
    /// The reward of a session that expires without one. Left out, such a session leaves no rollout.
    #[serde(default)]
    pub reward_if_expired: Option<f64>,
    /// Given back with the rollout.
    #[serde(default)]
    pub extra_info: Map<String, Value>,
}

impl Default for Opening {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field has a default")
    }
}

/// How long it may go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    pub turns: u32,
    /// Sampled tokens.
    pub tokens: u64,
    /// Until it expires.
    pub secs: f64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { turns: 1000, tokens: 10_000_000, secs: 3600.0 }
    }
}

/// How to sample where the agent does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    pub max_tokens: Option<u32>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<u32>,
    pub seed: Option<u64>,
    /// What the agent says about temperature, `top_p` and `top_k` does not count: what is trained on is sampled as the
    /// trainer wants it.
    pub is_fixed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thoughts {
    /// As the template says: the conversation goes on in a sequence of its own.
    #[default]
    Template,
    /// The prompt keeps what was sampled.
    Keep,
}

impl Opening {
    /// What is wrong with it, field and value.
    pub fn check(&self) -> Result<(), String> {
        let Budget { turns, tokens, secs } = self.budget;
        if !(secs.is_finite() && secs > 0.0) {
            return Err(format!("budget.secs is {secs}, but must be above 0"));
        }
        if turns == 0 || tokens == 0 {
            return Err(format!(
                "budget.turns is {turns} and budget.tokens {tokens}, but both must be above 0"
            ));
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return Err(format!("discount is {}, but must be from 0 to 1", self.discount));
        }
        if self.reward_if_expired.is_some_and(|reward| !reward.is_finite()) {
            return Err("reward_if_expired is no finite number".to_owned());
        }
        match self.group_size {
            Some(0) => Err("group_size is 0, but must be above 0".to_owned()),
            Some(size) if self.slot >= size => {
                Err(format!("slot is {}, but the group has the slots 0 to {}", self.slot, size - 1))
            }
            _ => Ok(()),
        }
    }
}

fn default_run() -> String {
    "default".to_owned()
}

fn one() -> f64 {
    1.0
}
