//! Brings the rollouts of sessions to a run that another node owns, by the calls that any client has.

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use rollyard_gateway::delivery::{Delivery, RunLoad};
use rollyard_gateway::refusal::{Kind, Refusal};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::runs::Runs;

const PAUSE: Duration = Duration::from_millis(100);

/// A run that is on its way from one node to another is waited for.
pub(super) async fn load(cluster: &Cluster, runs: &Runs, run: &str) -> Result<RunLoad, Refusal> {
    let until = Instant::now() + cluster.timing().owner_within;
    loop {
        let tried = match runs.find(run) {
            Ok(yard) => yard.ask(super::load_of).await.map_err(|error| error.to_string()),
            Err(_) => ask(cluster, run).await,
        };
        match tried {
            Ok(load) => return Ok(load),
            Err(why) if Instant::now() >= until => return Err(Refusal::new(Kind::Internal, why)),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn ask(cluster: &Cluster, run: &str) -> Result<RunLoad, String> {
    let (status, said) = cluster.call(run, Method::GET, &format!("/api/runs/{run}"), Bytes::new()).await?;
    if !status.is_success() {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&said)));
    }
    let said: Value = serde_json::from_slice(&said).map_err(|error| error.to_string())?;
    let number = |path: &str| said.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    Ok(RunLoad {
        steps: number("/version"),
        accepted: number("/books/held") + number("/books/leased") + number("/books/trained"),
    })
}

/// May be done again from the beginning: what was written before is written once.
pub(super) async fn deliver(cluster: &Cluster, delivery: Delivery) -> Result<(), String> {
    let Delivery { run, instance_id, items, closes_group } = delivery;
    let lines = Bytes::from(items.join(&b'\n'));
    let lines = cluster.lighten_for_owner(&run, lines).await;
    let (status, said) =
        cluster.call(&run, Method::POST, &format!("/api/runs/{run}/rollouts"), lines).await?;
    let told = || String::from_utf8_lossy(&said).into_owned();
    if !status.is_success() {
        return Err(format!("{status}: {}", told()));
    }
    let written: Value = serde_json::from_slice(&said).map_err(|error| error.to_string())?;
    if written.get("rejected_total").and_then(Value::as_u64) != Some(0) {
        return Err(format!("the run refuses a rollout: {}", told()));
    }
    if closes_group {
        let body = Bytes::from(json!({"instance_id": instance_id}).to_string());
        let path = format!("/api/runs/{run}/close_group");
        let (status, said) = cluster.call(&run, Method::POST, &path, body).await?;
        // It was complete with what it has, and is closed.
        let is_closed = status.is_success() || matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT);
        if !is_closed {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&said)));
        }
    }
    Ok(())
}
