//! Whether it was learnt: problems that were never trained on, each answered once, as the policy thinks best.

use futures_util::future::join_all;
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::{Context, EpisodeError, SharedWorkflow};
use rollyard_engine::generate::{GenerationConfig, SharedEngine};
use std::sync::Arc;

use super::course::LearnError;
use super::plan::Plan;
use crate::engine::{EngineSettings, TinyEngine};
use crate::model::Weights;
use crate::task::{Problem, Task};

/// With an engine of its own: what is examined is one version, and nobody who samples has to wait.
#[derive(Debug)]
pub(super) struct Exam {
    task: Task,
    problems: Vec<Problem>,
    workflow: SharedWorkflow,
    engine: TinyEngine,
}

impl Exam {
    pub(super) fn new(
        plan: &Plan,
        task: Task,
        problems: Vec<Problem>,
        tokenizer: &Arc<Tokenizer>,
        weights: &Arc<Weights>,
    ) -> Result<Self, LearnError> {
        let settings = EngineSettings { seed: Some(plan.seed), ..EngineSettings::default() };
        let engine = TinyEngine::start(Arc::clone(weights), 0, Arc::clone(tokenizer), settings)
            .map_err(LearnError::Thread)?;
        let greedy = GenerationConfig { greedy: true, ..GenerationConfig::default() };
        let workflow = task.workflow(Arc::clone(tokenizer), greedy);
        let problems = problems.into_iter().take(plan.exam_problems).collect();
        Ok(Self { task, problems, workflow, engine })
    }

    /// The share of answers that are right.
    pub(super) async fn sit(&self, weights: &Arc<Weights>, version: i32) -> Result<f64, LearnError> {
        self.engine.update(Arc::clone(weights), version).await?;
        let engine: SharedEngine = Arc::new(self.engine.clone());
        let answers = self.problems.iter().enumerate().map(|(nth, problem)| {
            let engine = &engine;
            async move {
                let context = Context {
                    run: Arc::from("exam"),
                    task_id: nth as u64,
                    sample_idx: 0,
                    attempt: 0,
                    is_eval: true,
                    seed: 0,
                };
                let data = problem.data(self.task);
                let ended = self.workflow.run_episode(engine, &data, &context).await?;
                let reward = ended.and_then(|ended| ended.samples.last().map(|sample| sample.reward));
                Ok::<f64, EpisodeError>(reward.unwrap_or_default())
            }
        });
        let rewards = join_all(answers).await.into_iter().collect::<Result<Vec<f64>, _>>()?;
        Ok(rewards.iter().sum::<f64>() / rewards.len().max(1) as f64)
    }
}
