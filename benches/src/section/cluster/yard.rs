//! Who is measured: one server on its disk, or three nodes on three NATS servers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rollyard_test_nats::{Cluster, Options, Sync};
use serde_json::{Value, json};

use crate::http::Client;
use crate::server::{Server, cpu_of};
use crate::setup::Setup;

pub(super) const NODES: usize = 3;
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Of so many names the hash gives every node one.
const NAMES_MAX: usize = 100;
/// Rollouts of a group, in every run.
pub(super) const GROUP: u64 = 8;

/// How often the servers keep a run, and when they sync.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    pub(super) replicas: usize,
    pub(super) sync: Sync,
}

/// A run, and the number of the server that owns it.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) run: String,
    pub(super) owner: usize,
}

/// Dropping it ends all of it. The nodes go before what they stand on.
#[derive(Debug)]
pub(super) struct Yard {
    pub(super) servers: Vec<Server>,
    nats: Option<Cluster>,
    durability: &'static str,
}

/// NATS servers with their files on the measured disk, and nothing in the links between them.
pub(super) fn start_nats(setup: &Setup, sync: Sync) -> Result<Cluster> {
    let under = Some(Path::new(&setup.dir).canonicalize()?);
    let options = Options { sync, proxied_routes: false, under, ..Options::default() };
    Cluster::try_start_with(NODES, &options).map_err(|said| anyhow!(said))
}

pub(super) fn start_node(setup: &Setup, nats: &Cluster, replicas: usize, name: &str) -> Result<Server> {
    let flags = ["--log", &nats.urls(), "--log-replicas", &replicas.to_string(), "--node", name];
    setup.start_rollyard_with(&flags.map(str::to_owned))
}

impl Yard {
    pub(super) fn embedded(setup: &Setup, durability: &'static str) -> Result<Self> {
        Ok(Self { servers: vec![setup.start_rollyard()?], nats: None, durability })
    }

    pub(super) fn clustered(setup: &Setup, keeping: Keeping) -> Result<Self> {
        let nats = start_nats(setup, keeping.sync)?;
        let servers = std::thread::scope(|scope| {
            let start = |no| start_node(setup, &nats, keeping.replicas, &node_name(no));
            let starting: Vec<_> = (0..NODES).map(|no| scope.spawn(move || start(no))).collect();
            let joined =
                starting.into_iter().map(|node| node.join().map_err(|_| anyhow!("a start panicked"))?);
            joined.collect::<Result<Vec<_>>>()
        })?;
        let yard = Self { servers, nats: Some(nats), durability: "fsync" };
        yard.settle()?;
        Ok(yard)
    }

    /// Makes a run on every server, or so many on the only one.
    pub(super) fn make_runs(&self, prefix: &str, count: usize) -> Result<Vec<Placed>> {
        if self.nats.is_none() {
            return (0..count).map(|no| self.make_run(format!("{prefix}-{no}"))).collect();
        }
        let mut placed: Vec<Placed> = Vec::new();
        for no in 0..NAMES_MAX {
            let made = self.make_run(format!("{prefix}-{no}"))?;
            if placed.iter().all(|before| before.owner != made.owner) {
                placed.push(made);
            }
            if placed.len() == count {
                return Ok(placed);
            }
        }
        Err(anyhow!("{NAMES_MAX} runs do not spread over {NODES} nodes: {placed:?}"))
    }

    fn make_run(&self, run: String) -> Result<Placed> {
        let config = json!({
            "group_size": GROUP, "group_timeout_seconds": 1_000_000, "durability": self.durability
        });
        let mut client = Client::connect(self.address(0)?)?;
        let answer = client.call("POST", "/api/runs", &json!({"name": run, "config": config}).to_string())?;
        ensure!(matches!(answer.status, 200 | 201), "run {run} was not made: {}", answer.status);
        let owner = if self.nats.is_none() { 0 } else { self.owner(0, &run)? };
        Ok(Placed { run, owner })
    }

    pub(super) fn address(&self, no: usize) -> Result<SocketAddr> {
        Ok(self.server(no)?.address())
    }

    pub(super) fn server(&self, no: usize) -> Result<&Server> {
        self.servers.get(no).context("no such node")
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Server::address).collect()
    }

    /// The owner of a run, as this node knows it.
    pub(super) fn owner(&self, asked: usize, run: &str) -> Result<usize> {
        let mut owner = None;
        self.wait_for("an owner of the run", || {
            let nodes = self.nodes(asked)?;
            let runs = nodes.get("runs").and_then(Value::as_array).context("no runs")?;
            let found = runs.iter().find(|found| found.get("run").and_then(Value::as_str) == Some(run));
            let name = found.and_then(|found| found.get("owner")?.as_str());
            owner = (0..NODES).find(|no| name == Some(&node_name(*no)));
            Ok(owner.is_some())
        })?;
        owner.context("an owner was found")
    }

    /// Waits until all nodes know of each other, and every run has an owner.
    pub(super) fn settle(&self) -> Result<()> {
        self.wait_for("all nodes and an owner for every run", || {
            let settled = |no| -> Result<bool> {
                let nodes = self.nodes(no)?;
                let list = |name| nodes.get(name).and_then(Value::as_array).context("no list");
                let alive = list("nodes")?.iter().filter(|node| node.get("alive") == Some(&json!(true)));
                let owned = |run: &Value| run.get("owner").is_some_and(Value::is_string);
                Ok(alive.count() == NODES && list("runs")?.iter().all(owned))
            };
            Ok((0..NODES).map(settled).collect::<Result<Vec<_>>>()?.into_iter().all(|settled| settled))
        })
    }

    fn nodes(&self, asked: usize) -> Result<Value> {
        Client::connect(self.address(asked)?)?.get("/api/nodes")
    }

    fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + SETTLED_WITHIN;
        while !is_so()? {
            ensure!(Instant::now() < deadline, "waited {SETTLED_WITHIN:?} for {what}");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// CPU time of the servers, and of NATS.
    pub(super) fn cpu(&self) -> Result<(Duration, Duration)> {
        let servers = self.servers.iter().map(Server::cpu).sum::<Result<Duration>>()?;
        let nats = self.nats.iter().flat_map(|nats| nats.servers());
        let nats = nats.map(|server| cpu_of(server.pid().unsigned_abs())).sum::<Result<Duration>>()?;
        Ok((servers, nats))
    }
}

fn node_name(no: usize) -> String {
    format!("node-{no}")
}
