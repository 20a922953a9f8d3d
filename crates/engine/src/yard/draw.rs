//! The trainer's calls: batches on lease, and which of them are part of a checkpoint.

use rollyard_core::rollout::Rollout;
use rollyard_core::wire::rollout;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{YardClient, YardError};

/// What a trainer wants for a step.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// One batch is drawn for a step: asking again gives the same.
    pub step: u64,
    pub rollouts: usize,
    /// How long the yard waits until there are enough.
    pub wait: Duration,
}

/// A batch on lease.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub lease: u64,
    pub rollouts: Vec<DrawnRollout>,
}

#[derive(Clone, Debug)]
pub struct DrawnRollout {
    pub rollout: Rollout,
    pub advantage: f64,
    pub reward: f64,
    /// Of the oldest weights that sampled it.
    pub weight_version: i64,
}

/// Where every rollout that was ever admitted is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Books {
    pub admitted: u64,
    pub held: u64,
    pub leased: u64,
    pub trained: u64,
    pub dropped: u64,
    #[serde(default)]
    pub dropped_by_reason: BTreeMap<String, u64>,
    pub balanced: bool,
}

#[derive(Deserialize)]
struct Answer<'a> {
    lease: Option<u64>,
    #[serde(borrow)]
    rollouts: Vec<&'a RawValue>,
}

/// What stands beside the tokens.
#[derive(Deserialize)]
struct Beside {
    advantage: f64,
    reward: f64,
    weight_version: i64,
}

#[derive(Deserialize)]
struct Done {
    books: Books,
}

impl YardClient {
    /// `None` if there were not enough in time.
    pub async fn draw(&self, draw: Draw) -> Result<Option<Drawn>, YardError> {
        let Draw { step, rollouts, wait } = draw;
        let ask = json!({
            "step": step, "rollouts": rollouts, "wait_seconds": wait.as_secs_f64(), "reader": "trainer",
        });
        let answer = self.post_waiting("sample", ask.to_string().into_bytes(), wait).await?;
        let bad = |reason: String| YardError::NotAYard { reason, url: self.url().to_owned() };
        let read: Answer<'_> = serde_json::from_slice(&answer).map_err(|error| bad(error.to_string()))?;
        let Some(lease) = read.lease else { return Ok(None) };
        let rollouts = read.rollouts.into_iter().map(|json| {
            let rollout = rollout::decode(json.get().as_bytes()).map_err(|error| bad(error.to_string()))?;
            let beside: Beside = serde_json::from_str(json.get()).map_err(|error| bad(error.to_string()))?;
            let Beside { advantage, reward, weight_version } = beside;
            Ok(DrawnRollout { rollout, advantage, reward, weight_version })
        });
        Ok(Some(Drawn { lease, rollouts: rollouts.collect::<Result<_, YardError>>()? }))
    }

    /// The batch was learnt from.
    pub async fn ack(&self, lease: u64) -> Result<(), YardError> {
        self.post(&format!("leases/{lease}/ack"), b"{}".to_vec()).await.map(drop)
    }

    /// The trainer is at this step: what is too old for it leaves.
    pub async fn set_step(&self, step: u64) -> Result<Books, YardError> {
        self.done("step", &json!({"step": step})).await
    }

    /// The checkpoint of this step is saved, and has these batches in it.
    pub async fn commit(&self, step: u64, leases: &[u64]) -> Result<Books, YardError> {
        self.done("commit", &json!({"step": step, "leases": leases})).await
    }

    /// What was learnt from after the checkpoint of this step goes back; -1 is before the first.
    pub async fn rewind(&self, step: i64) -> Result<Books, YardError> {
        self.done("rewind", &json!({"step": step})).await
    }

    async fn done(&self, call: &str, body: &serde_json::Value) -> Result<Books, YardError> {
        let done: Done = self.read(&self.post(call, body.to_string().into_bytes()).await?)?;
        Ok(done.books)
    }
}
