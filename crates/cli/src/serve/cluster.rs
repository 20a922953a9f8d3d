//! Joins the other nodes, where runs are shared with them.

use anyhow::{Context, Result, anyhow};
use rollyard_server::cluster::{JetStream, NodeName, Timing};
use rollyard_server::{Cluster, ClusterSettings, JoinError, Runs};
use rollyard_store::archive::host_name;
use rollyard_store::log::LogError;
use rollyard_store::log::jetstream::Connection;
use serde_json::{Map, Value};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::settings::{ClusterServing, Serving};

/// The file in the data folder that keeps the name of a node to which none was given.
const NAME_FILE: &str = "node";

/// A default run that has no owner by then keeps its knobs.
const CONFIGURED_WITHIN: Duration = Duration::from_secs(60);

pub(super) async fn join(
    serving: &Serving,
    cluster: &ClusterServing,
    address: SocketAddr,
) -> Result<Arc<Cluster>> {
    let node = match &cluster.node {
        Some(node) => node.clone(),
        None => kept_name(&serving.data)?,
    };
    let url = cluster.advertise.clone().unwrap_or_else(|| format!("http://{address}"));
    let log = cluster.log.clone();
    tracing::info!(%node, "connecting to {}", log.servers_told());
    let connection = tokio::task::spawn_blocking(move || Connection::open(log)).await?.map_err(explain)?;
    let settings =
        ClusterSettings { node, url, token: serving.server.token.clone(), timing: Timing::default() };
    let joined = Cluster::join(Arc::new(JetStream::new(connection)), settings).await;
    joined.map_err(|error| match error {
        JoinError::NameTaken { .. } => {
            anyhow!("{error}; stop it, or give this node another name with --node NAME")
        }
        JoinError::Log(error) => explain(error),
        error => anyhow!("cannot join the other nodes: {error}"),
    })
}

/// The knobs that were given to this node go to the default run, whoever has it, as soon as somebody does.
pub(super) async fn configure_default(runs: Arc<Runs>, knobs: Map<String, Value>) {
    let until = Instant::now() + CONFIGURED_WITHIN;
    while let Err(error) = runs.configure_default(&knobs).await {
        if Instant::now() >= until {
            return tracing::error!("the default run does not have the knobs that were given: {error}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn explain(error: LogError) -> anyhow::Error {
    let next_step = match &error {
        LogError::Version { .. } => "use the version of rollyard that made it, or another --log-yard",
        _ => "look at the NATS servers, or name others with --log",
    };
    anyhow!("cannot use the log: {error}; {next_step}")
}

/// The host's name and a few letters more, the same at every start.
fn kept_name(data: &Path) -> Result<NodeName> {
    let path = data.join(NAME_FILE);
    if let Ok(kept) = std::fs::read_to_string(&path)
        && let Ok(node) = NodeName::try_from(kept.trim())
    {
        return Ok(node);
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let host: String = host_name().chars().map(|c| if fits(c) { c } else { '-' }).take(50).collect();
    let name = format!("{host}-{:06x}", RandomState::new().hash_one(data) & 0xff_ffff);
    let node = NodeName::try_from(name.as_str())?;
    let kept = std::fs::create_dir_all(data).and_then(|()| std::fs::write(&path, format!("{node}\n")));
    kept.with_context(|| format!("cannot keep this node's name; give one with --node: {}", path.display()))?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_the_name_that_was_made_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = kept_name(&dir.path().join("a")).unwrap();
        assert_eq!(kept_name(&dir.path().join("a")).unwrap(), first);
        assert_ne!(kept_name(&dir.path().join("b")).unwrap(), first);
    }
}
