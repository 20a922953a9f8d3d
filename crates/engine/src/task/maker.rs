//! Makes one rollout after the other, and the item that tells of it.

use bytes::Bytes;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::outage::{Outage, Verdict};
use super::plan::Work;
use super::progress::{Progress, count};
use crate::episode::{Context, EpisodeError, Sample, SharedWorkflow};
use crate::generate::{EngineError, SharedEngine, StopReason};
use crate::group::caught;
use crate::sink::item::{self, Label};
use crate::workflow::opening::role;

/// What a rollout that could not be made is worth: no reward that is in range.
const FAILED: f64 = -1.0;

/// Attempts at a rollout that breaks for reasons of its own.
const ATTEMPTS: u32 = 3;

/// A prompt that was met with status 500 so many times, with something else answered well in between, is what
/// breaks the engine.
const BREAKS_ENGINE: u32 = 4;

#[derive(Debug)]
pub(super) struct Maker {
    pub(super) engine: SharedEngine,
    pub(super) workflow: SharedWorkflow,
    /// Unlike that of any other task that asks the same engine.
    pub(super) name: Arc<str>,
    pub(super) seed: u64,
    /// Written with every item.
    pub(super) sampling_params: BTreeMap<String, Box<RawValue>>,
    pub(super) outage: Outage,
    pub(super) progress: Arc<Progress>,
}

impl Maker {
    /// The item, made or failed. An error says that no rollout can be made of this engine.
    pub(super) async fn make(&self, work: &Work) -> Result<Bytes, EngineError> {
        let made = match self.sample(work).await {
            Ok(sample) => self.item(work, &sample, None).map_err(EpisodeError::Workflow),
            Err(error) => Err(error),
        };
        match made {
            Ok(item) => {
                count(&self.progress.made);
                Ok(item)
            }
            Err(EpisodeError::Engine(error)) if Verdict::on_engine(&error) == Verdict::Unfit => Err(error),
            Err(error) => {
                count(&self.progress.failed);
                self.progress.failure(format!("{}: {error}", work.uid));
                let prompt =
                    Sample { messages: work.instance.prompt.clone(), reward: FAILED, ..Sample::default() };
                self.item(work, &prompt, Some(&error)).map_err(EngineError::BadRequest)
            }
        }
    }

    /// Through outages, until there is an answer or none can be had.
    async fn sample(&self, work: &Work) -> Result<Sample, EpisodeError> {
        let (mut attempt, mut outages, mut broke, mut broke_engine) = (0, 0, 0, 0);
        loop {
            let error = match self.attempt(work, attempt).await {
                Ok(sample) => {
                    self.outage.answered();
                    return Ok(sample);
                }
                Err(error) => error,
            };
            attempt += 1;
            match (Verdict::on(&error), &error) {
                (Verdict::Outage, EpisodeError::Engine(reason)) => {
                    // Every wait ends with an answer to somebody, so the engine was well before each of these.
                    broke_engine += u32::from(matches!(reason, EngineError::Refused { status: 500, .. }));
                    if broke_engine >= BREAKS_ENGINE {
                        return Err(error);
                    }
                    outages += 1;
                    tracing::debug!(uid = work.uid, %error, outages, "a rollout waits for the engine");
                    self.outage.wait(reason, outages).await;
                }
                (Verdict::Again, _) if broke + 1 < ATTEMPTS => broke += 1,
                _ => return Err(error),
            }
        }
    }

    async fn attempt(&self, work: &Work, attempt: u32) -> Result<Sample, EpisodeError> {
        let context = Context {
            run: Arc::clone(&self.name),
            task_id: work.group,
            sample_idx: work.repeat,
            attempt,
            is_eval: false,
            // It fits 31 bits: not every engine takes more.
            seed: xxh3_64_with_seed(work.uid.as_bytes(), self.seed) >> 33,
        };
        let trajectory = caught(&self.workflow, &self.engine, &work.instance.data, &context).await?;
        let sample = trajectory.and_then(|trajectory| trajectory.samples.into_iter().next());
        sample.ok_or_else(|| EpisodeError::Workflow("the workflow returned nothing".into()))
    }

    fn item(&self, work: &Work, sample: &Sample, error: Option<&EpisodeError>) -> Result<Bytes, String> {
        let now = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let assistants = sample.messages.iter().filter(|said| role(said).as_deref() == Some("assistant"));
        let reason = match (error, sample.stop_reason) {
            (Some(_), _) => Some("error"),
            (None, Some(StopReason::Stop)) => Some("stop"),
            (None, Some(StopReason::Length)) => Some("length"),
            (None, Some(StopReason::ToolCalls)) => Some("tool_calls"),
            (None, Some(StopReason::Abort)) => Some("abort"),
            (None, None) => None,
        };
        let mut extra_info = work.instance.rest.clone();
        extra_info.extend(self.sampling_params.clone());
        let error = error.map(|error| ("error", json!(error.to_string())));
        let own = [
            ("timestamp", json!(now.to_string())),
            ("round_number", json!(assistants.count())),
            ("finish_reason", json!(reason)),
            ("rollout_index", json!(work.repeat)),
        ];
        for (name, value) in own.into_iter().chain(error) {
            extra_info.insert(name.to_owned(), to_raw_value(&value).map_err(|error| error.to_string())?);
        }
        let label = Label {
            uid: &work.uid,
            instance_id: &work.instance.id,
            env_name: None,
            timestamp: None,
            group_size: None,
            epoch: Some(work.epoch),
            extra_info,
        };
        let mut json = Vec::new();
        item::write(&mut json, label, sample)?;
        Ok(json.into())
    }
}
