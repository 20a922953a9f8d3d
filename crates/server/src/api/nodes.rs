//! Nodes: who is alive, and who owns which run.

use axum::Json;
use axum::extract::State;
use rollyard_store::archive::host_name;
use serde::Serialize;
use std::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::cluster::Cluster;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Serialize, ToSchema)]
struct NodesAnswer {
    /// The node that answers.
    node: String,
    /// Whether the runs are on a log that many nodes share.
    clustered: bool,
    nodes: Vec<NodeAnswer>,
    runs: Vec<PlacedRun>,
}

#[derive(Serialize, ToSchema)]
struct NodeAnswer {
    node: String,
    url: String,
    /// Whether it was heard lately.
    alive: bool,
    /// Whether it is the one that answers.
    this: bool,
    /// When it started by its own clock, in milliseconds since 1970.
    started: u64,
    heard_ms_ago: u64,
    /// What it has, as it says itself.
    runs: Vec<OwnedRun>,
}

#[derive(Serialize, ToSchema)]
struct OwnedRun {
    run: String,
    /// How often the run has been claimed, this claim included; 0 on a log of one server.
    epoch: u64,
}

#[derive(Serialize, ToSchema)]
struct PlacedRun {
    run: String,
    /// Null while nobody owns it.
    owner: Option<String>,
    epoch: u64,
}

/// The nodes that the runs are spread over. A server by itself is one node that has all runs.
#[utoipa::path(get, path = "/nodes", tag = "nodes", responses((status = 200, body = NodesAnswer)))]
async fn list(State(app): State<App>) -> Json<NodesAnswer> {
    Json(match &app.cluster {
        Some(cluster) => of_cluster(cluster),
        None => of_one(&app),
    })
}

fn of_cluster(cluster: &Cluster) -> NodesAnswer {
    let now = Instant::now();
    let register = cluster.register();
    let mut nodes: Vec<NodeAnswer> = register
        .nodes
        .all()
        .map(|peer| {
            let alive = register.nodes.is_alive(peer, now);
            let open = peer.beat.runs.iter().filter(|held| alive && !held.busy);
            NodeAnswer {
                node: peer.beat.node.clone(),
                url: peer.beat.url.clone(),
                alive,
                this: false,
                started: peer.beat.started,
                heard_ms_ago: ms(now.saturating_duration_since(peer.last)),
                runs: open.map(|held| OwnedRun { run: held.run.clone(), epoch: held.epoch }).collect(),
            }
        })
        .collect();
    let placed = register.placed(now);
    let me = &register.me;
    let mine = placed.iter().filter(|(_, owner, _)| owner.as_ref() == Some(&me.node));
    nodes.push(NodeAnswer {
        node: me.node.clone(),
        url: me.url.clone(),
        alive: true,
        this: true,
        started: me.started_ms,
        heard_ms_ago: 0,
        runs: mine.map(|(run, _, epoch)| OwnedRun { run: run.clone(), epoch: *epoch }).collect(),
    });
    nodes.sort_by(|one, other| one.node.cmp(&other.node));
    let runs = placed.into_iter().map(|(run, owner, epoch)| PlacedRun { run, owner, epoch }).collect();
    NodesAnswer { node: me.node.clone(), clustered: true, nodes, runs }
}

fn of_one(app: &App) -> NodesAnswer {
    let node = host_name();
    let names: Vec<String> = app.runs.all().iter().map(|yard| yard.run_name().to_string()).collect();
    let owned = |run: &String| OwnedRun { run: run.clone(), epoch: 0 };
    let this = NodeAnswer {
        node: node.clone(),
        url: app.generators.server_url(),
        alive: true,
        this: true,
        started: app.live.began_ms(),
        heard_ms_ago: 0,
        runs: names.iter().map(owned).collect(),
    };
    let placed = |run: String| PlacedRun { run, owner: Some(node.clone()), epoch: 0 };
    let runs = names.into_iter().map(placed).collect();
    NodesAnswer { clustered: false, nodes: vec![this], runs, node: node.clone() }
}

fn ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
