//! Several answers in one episode: the model calls tools, or is told to try again.
//!
//! After an answer with tool calls the tools run and their results are told to the model. After an answer without
//! any, and a reward that is not good enough, the model is told `feedback`, if there is one. The tokens are
//! exact over all turns (see `tail`); where a template rewrites what was said before, the conversation is cut
//! and becomes several samples of the same reward, each of which says so.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_core::tokens::Tokenizer;
use serde_json::{Map, Value};
use std::sync::Arc;

use super::opening::{Opening, message};
use super::talk::Talk;
use crate::episode::{Context, Data, EpisodeError, Trajectory, Workflow};
use crate::generate::{GenerationConfig, SharedEngine};
use crate::reward::SharedReward;
use crate::tool::{ToolBox, ToolSyntax};

#[derive(Clone, Debug)]
pub struct MultiTurn {
    /// Without one the messages are sent as they are, and the text is all there is.
    pub tokenizer: Option<Arc<Tokenizer>>,
    pub gconfig: GenerationConfig,
    /// Of the last answer, with the whole conversation.
    pub reward: SharedReward,
    /// Said first, unless the data has a system message of its own.
    pub system: Option<String>,
    /// Further variables of the template, such as `enable_thinking`.
    pub template_kwargs: Map<String, Value>,
    pub tools: ToolBox,
    pub syntax: ToolSyntax,
    /// Answers in all.
    pub max_turns: u32,
    /// Of the whole sequence, the prompt included.
    pub max_tokens: Option<usize>,
    /// Told to the model after an answer whose reward is below `good_enough`.
    pub feedback: Option<String>,
    pub good_enough: f64,
    /// The reward is multiplied by it once for every time that `feedback` was needed.
    pub turn_discount: f64,
}

impl MultiTurn {
    pub fn new(tokenizer: Option<Arc<Tokenizer>>, gconfig: GenerationConfig, reward: SharedReward) -> Self {
        Self {
            tokenizer,
            gconfig,
            reward,
            system: None,
            template_kwargs: Map::new(),
            tools: ToolBox::default(),
            syntax: ToolSyntax::default(),
            max_turns: 8,
            max_tokens: None,
            feedback: None,
            good_enough: 1.0,
            turn_discount: 1.0,
        }
    }

    async fn run(
        &self,
        engine: &SharedEngine,
        data: &Data,
        context: &Context,
    ) -> Result<Option<Trajectory>, EpisodeError> {
        let opening = Opening::read(data, self.system.as_deref())?;
        if opening.input_ids.is_some() {
            let wrong = "field \"input_ids\" cannot begin a conversation of several turns; give \"messages\"";
            return Err(EpisodeError::BadData(wrong.to_owned()));
        }
        let mut talk = Talk::begin(self, engine, data, context, opening)?;
        let mut discount = 1.0;
        let mut turn = 0;
        let reward = loop {
            let said = talk.ask(turn).await?;
            turn += 1;
            let is_last = turn >= self.max_turns;
            if talk.is_truncated() {
                break talk.score(&said).await?;
            }
            if !said.calls.is_empty() {
                if is_last {
                    talk.truncate();
                    break talk.score(&said).await?;
                }
                let results = talk.call(&said).await;
                if !talk.go_on(&said, results)? {
                    break talk.score(&said).await?;
                }
                continue;
            }
            let reward = talk.score(&said).await?;
            let feedback = self.feedback.as_deref().filter(|_| reward < self.good_enough && !is_last);
            let Some(feedback) = feedback else { break reward };
            if !talk.go_on(&said, vec![message("user", feedback)])? {
                break reward;
            }
            discount *= self.turn_discount;
        };
        Ok(Some(talk.finish(reward * discount)?))
    }
}

impl Workflow for MultiTurn {
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>> {
        self.run(engine, data, context).boxed()
    }
}

#[cfg(test)]
mod tests;
