//! An agent as a workflow: a session for each episode, and what was asked in it as the trajectory.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_engine::episode::{Context, Data, EpisodeError, Trajectory, Workflow};
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::reward::SharedReward;
use std::sync::Arc;
use std::time::Duration;

use super::desk::{Visit, refused};
use super::judging::judge;
use super::{Desk, Returned, SharedAgent};
use crate::session::opening::Opening;
use crate::taking::Asked;

/// How agents are run: with whichever of them it becomes a workflow.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    pub desk: Arc<Desk>,
    /// Judges the last answer; then what the agent returns does not count. Without it, that is the reward.
    pub reward: Option<SharedReward>,
    /// What every session is opened with; which episode it is for is filled in.
    pub opening: Opening,
}

#[derive(Clone, Debug)]
pub struct AgentWorkflow {
    pub plan: AgentPlan,
    pub agent: SharedAgent,
}

impl AgentPlan {
    pub fn with(&self, agent: SharedAgent) -> AgentWorkflow {
        AgentWorkflow { plan: self.clone(), agent }
    }

    fn opening_for(&self, data: &Data, context: &Context) -> Opening {
        let mut opening = self.opening.clone();
        opening.run = context.run.to_string();
        opening.instance_id = data.example_id().unwrap_or_else(|| context.task_id.to_string());
        opening.env_name = data.env_name().unwrap_or_default();
        opening.slot = context.sample_idx;
        opening.sampling.seed = Some(context.seed);
        opening
    }
}

impl AgentWorkflow {
    async fn run(
        &self,
        engine: &SharedEngine,
        data: &Data,
        context: &Context,
    ) -> Result<Option<Trajectory>, EpisodeError> {
        let visit = self.plan.desk.open(engine, self.plan.opening_for(data, context)).await?;
        let returned = self.returned(&visit, data, context).await?;
        let Visit { gateway, live, .. } = &visit;
        match &self.plan.reward {
            Some(reward) => {
                check_asked(&live.asked())?;
                let reward = judge(reward, live, &gateway.model.tokenizer, data, context).await?;
                gateway.reward(live, None, reward).await.map_err(refused)?;
            }
            None => {
                let Some(rewards) = returned.rewards()? else { return Ok(None) };
                check_asked(&live.asked())?;
                for (answer, reward) in &rewards.of_answers {
                    gateway.reward(live, Some(answer), *reward).await.map_err(refused)?;
                }
                if let Some(reward) = rewards.last {
                    gateway.reward(live, None, reward).await.map_err(refused)?;
                }
            }
        }
        let mut samples = gateway.take(live).await.map_err(refused)?;
        if samples.is_empty() {
            return Err(EpisodeError::Workflow("the agent heard no answer to its end".to_owned()));
        }
        for sample in &mut samples {
            sample.extra.insert("session".to_owned(), (&*live.id).into());
        }
        Ok(Some(Trajectory { samples, tensors: None }))
    }

    /// What the agent ends with, if it does in time and nobody closes the desk meanwhile.
    async fn returned(
        &self,
        visit: &Visit,
        data: &Data,
        context: &Context,
    ) -> Result<Returned, EpisodeError> {
        let secs = self.plan.opening.budget.secs;
        let limit = Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX);
        tokio::select! {
            ended = tokio::time::timeout(limit, self.agent.run(data, context, &visit.access)) => {
                ended.unwrap_or(Err(EpisodeError::Timeout { secs }))
            }
            () = self.plan.desk.stopped() => Err(EpisodeError::Workflow("the executor was closed".to_owned())),
        }
    }
}

impl Workflow for AgentWorkflow {
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>> {
        self.run(engine, data, context).boxed()
    }
}

/// There is nothing to learn from an agent that got no answer.
fn check_asked(asked: &Asked) -> Result<(), EpisodeError> {
    if asked.answers > 0 {
        return Ok(());
    }
    Err(EpisodeError::Workflow(match &asked.last_error {
        Some(error) => format!("no call of the agent was answered ({} failed): {error}", asked.failures),
        None => "the agent never asked; does it use OPENAI_BASE_URL (or ANTHROPIC_BASE_URL) and the key beside it?".to_owned(),
    }))
}
