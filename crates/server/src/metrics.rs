//! Numbers for Prometheus: what was asked, how long it took, and the books of every run.

use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use rollyard_core::ledger::ReplayStats;
use rollyard_core::pipeline::DropReason;
use rollyard_gateway::gateway::GatewayCounts;
use rollyard_store::archive::Status;
use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::App;
use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::view;

/// What was asked, with names and numbers taken out of the path.
pub(crate) struct Call {
    method: &'static str,
    path: Cow<'static, str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    path: Cow<'static, str>,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    path: Cow<'static, str>,
}

/// What a gateway counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Counted {
    column: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Column {
    run: String,
    column: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Dropped {
    run: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRunLabel {
    run: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEnv {
    run: String,
    env: String,
}

/// Steps that weights are behind the trainer, up to and including.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Behind {
    run: String,
    steps: String,
}

/// Responses that were generated, or trained on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Side {
    run: String,
    env: String,
    side: &'static str,
}

/// What can be drawn in runs that sample, and how old it is.
#[derive(Default)]
struct Pools {
    step: Family<OfRunLabel, Gauge>,
    size: Family<OfEnv, Gauge>,
    behind: Family<Behind, Gauge>,
    oldest_secs: Family<OfRunLabel, Gauge<f64, AtomicU64>>,
    flow: Family<Column, Gauge>,
    responses: Family<Side, Gauge>,
    response_tokens: Family<Side, Gauge>,
}

impl Pools {
    fn note(&self, run: &str, stats: &ReplayStats, now_secs: f64) {
        let of_run = OfRunLabel { run: run.to_owned() };
        self.step.get_or_create(&of_run).set(stats.step);
        for (env, size) in &stats.env_sizes {
            self.size.get_or_create(&OfEnv { run: run.to_owned(), env: env.clone() }).set(*size as i64);
        }
        // Few boxes, whatever the steps: 0, 1, 2, up to 4, up to 8 and so on.
        for (steps, count) in &stats.ages {
            let bound = u64::try_from(*steps).unwrap_or_default();
            let bound = if bound <= 2 { bound } else { bound.next_power_of_two() };
            let behind = Behind { run: run.to_owned(), steps: bound.to_string() };
            self.behind.get_or_create(&behind).inc_by(*count as i64);
        }
        if let Some(oldest) = stats.oldest_timestamp {
            self.oldest_secs.get_or_create(&of_run).set((now_secs - oldest).max(0.0));
        }
        let flow =
            [("inserted", stats.flow.inserted), ("sampled", stats.flow.sampled), ("batches", stats.draws)];
        for (column, value) in flow {
            self.flow.get_or_create(&Column { run: run.to_owned(), column }).set(value as i64);
        }
        for (env, sides) in stats.census.envs() {
            for (side, lengths) in [("generated", &sides.generated), ("trained", &sides.trained)] {
                let label = Side { run: run.to_owned(), env: env.to_owned(), side };
                self.responses.get_or_create(&label).set(lengths.count() as i64);
                self.response_tokens.get_or_create(&label).set(lengths.tokens() as i64);
            }
        }
    }

    fn register(self, registry: &mut Registry) {
        registry.register("replay_step", "Step of the trainer", self.step);
        registry.register("replay_rollouts", "Rollouts that can be drawn", self.size);
        registry.register(
            "replay_rollouts_behind",
            "Rollouts that can be drawn, by steps behind",
            self.behind,
        );
        registry.register("replay_oldest_seconds", "Age of the oldest that can be drawn", self.oldest_secs);
        registry.register("replay_flow", "Rollouts inserted and sampled, batches drawn", self.flow);
        registry.register("replay_responses", "Responses generated and trained on", self.responses);
        registry.register("replay_response_tokens", "Tokens of those responses", self.response_tokens);
    }
}

/// How the archives of the runs are doing.
#[derive(Default)]
struct Archives {
    behind: Family<OfRunLabel, Gauge>,
    failing: Family<OfRunLabel, Gauge>,
    rollouts: Family<OfRunLabel, Gauge>,
    bytes: Family<OfRunLabel, Gauge>,
    missing: Family<OfRunLabel, Gauge>,
}

impl Archives {
    fn note(&self, run: &str, status: &Status) {
        let of_run = OfRunLabel { run: run.to_owned() };
        let numbers = [
            (&self.behind, status.behind),
            (&self.failing, u64::from(status.error.is_some())),
            (&self.rollouts, status.rollouts),
            (&self.bytes, status.bytes),
            (&self.missing, status.missing),
        ];
        for (family, number) in numbers {
            family.get_or_create(&of_run).set(number as i64);
        }
    }

    fn register(self, registry: &mut Registry) {
        registry.register("archive_behind", "Records of the log not archived yet", self.behind);
        registry.register("archive_failing", "1 while the archive cannot be written", self.failing);
        registry.register("archive_rollouts", "Rollouts archived since the start", self.rollouts);
        registry.register("archive_bytes", "Bytes archived since the start", self.bytes);
        registry.register("archive_missing", "Rollouts that could not be archived", self.missing);
    }
}

/// Counts requests; the books are read when somebody looks.
#[derive(Debug)]
pub(crate) struct Metrics {
    calls: Family<Answered, Counter>,
    seconds: Family<Route, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        // 100 µs to about 26 s, each bucket four times the one before.
        let histogram = || Histogram::new(exponential_buckets(1e-4, 4.0, 10));
        Self { calls: Family::default(), seconds: Family::new_with_constructor(histogram) }
    }
}

impl Metrics {
    pub(crate) fn count(&self, call: Call, status: StatusCode, took: Duration) {
        let Call { method, path } = call;
        self.seconds.get_or_create(&Route { path: path.clone() }).observe(took.as_secs_f64());
        self.calls.get_or_create(&Answered { method, path, status: status.as_u16() }).inc();
    }
}

/// The calls that come thousands of times a second, which are not worth taking apart.
const FREQUENT: [&str; 4] = ["/buffer/write", "/get_rollout_data", "/buffer/read", "/buffer/stats"];

impl Call {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        let frequent = FREQUENT.into_iter().find(|known| *known == path);
        Self { method, path: frequent.map_or_else(|| route_of(path).into(), Cow::Borrowed) }
    }
}

/// The path with names and numbers taken out, so that there are few; unknown paths are one.
fn route_of(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    for index in 1..parts.len() {
        let stands_for = match parts.get(index - 1) {
            Some(&"runs") => "{run}",
            Some(&"rollouts") => "{uid}",
            Some(&"leases") => "{lease}",
            Some(&"groups") => "{group}",
            Some(&"sessions") => "{session}",
            Some(&"models") => "{model}",
            Some(&"view") if parts.get(index).is_some_and(|part| view::is_key(part)) => "{view}",
            _ => continue,
        };
        if let Some(part) = parts.get_mut(index) {
            *part = stands_for;
        }
    }
    // A path of the user's follows, of any length.
    if let ["", "api", "files" | "contents", ..] = parts.as_slice() {
        parts.truncate(3);
    }
    // The page's files have hashes in their names.
    if let ["", "assets", ..] = parts.as_slice() {
        return "/assets".to_owned();
    }
    match parts.get(1).copied() {
        Some(
            "" | "live" | "buffer" | "get_rollout_data" | "start_rollout" | "runs" | "api" | "healthz"
            | "metrics" | "v1" | "chat" | "completions" | "responses" | "messages" | "models",
        ) => {
            let known = parts.len() <= 7 && parts.iter().all(|part| part.len() <= 20);
            if known { parts.join("/") } else { "other".to_owned() }
        }
        _ => "other".to_owned(),
    }
}

fn register_gateway(registry: &mut Registry, counts: &GatewayCounts) {
    let (sessions, boundaries): (Family<Counted, Gauge>, Family<Counted, Gauge>) = Default::default();
    for (family, column, value) in [
        (&sessions, "opened", counts.opened),
        (&sessions, "closed", counts.closed),
        (&sessions, "open", counts.open_now as u64),
        (&boundaries, "windows", counts.boundaries.windows),
        (&boundaries, "proofs", counts.boundaries.proofs),
        (&boundaries, "differences", counts.boundaries.differences),
    ] {
        family.get_or_create(&Counted { column }).set(value as i64);
    }
    let requests: Family<Counted, Gauge> = Family::default();
    requests.get_or_create(&Counted { column: "answered" }).set(counts.requests as i64);
    requests.get_or_create(&Counted { column: "refused" }).set(counts.refused as i64);
    registry.register("gateway_sessions", "Sessions of agents since the start, and open now", sessions);
    registry.register("gateway_requests", "Requests of agents since the start", requests);
    registry.register("gateway_boundaries", "Places between two turns, by how they were found", boundaries);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

fn register_cluster(registry: &mut Registry, cluster: &Cluster) {
    let owner: Family<OfRunLabel, Gauge> = Family::default();
    let me = cluster.node();
    for (run, owned_by, _) in cluster.register().placed(Instant::now()) {
        owner.get_or_create(&OfRunLabel { run }).set(i64::from(owned_by.as_ref() == Some(&me)));
    }
    let takeovers: Counter = Counter::default();
    takeovers.inc_by(cluster.takeovers());
    let forwards: Family<Outcome, Counter> = Family::default();
    for (outcome, count) in cluster.forwards().counts() {
        forwards.get_or_create(&Outcome { outcome }).inc_by(count);
    }
    registry.register("cluster_owner", "1 for the runs that this node owns", owner);
    registry.register("cluster_takeovers", "Runs that this node took over from others", takeovers);
    let direct: Counter = Counter::default();
    direct.inc_by(cluster.direct_bytes());
    registry.register(
        "cluster_direct_bytes",
        "Bytes of large rollouts put past the owners of their runs",
        direct,
    );
    registry.register("cluster_forwards", "Requests sent on to other nodes, by what came of it", forwards);
}

pub(crate) async fn show(State(app): State<App>) -> Result<Response, ApiError> {
    let mut registry = Registry::with_prefix("rollyard");
    registry.register("requests", "Requests answered", app.metrics.calls.clone());
    registry.register("request_seconds", "Time until an answer began", app.metrics.seconds.clone());

    let rollouts: Family<Column, Gauge> = Family::default();
    let bytes: Family<Column, Gauge> = Family::default();
    let groups: Family<Column, Gauge> = Family::default();
    let dropped: Family<Dropped, Gauge> = Family::default();
    let pools = Pools::default();
    let archives = Archives::default();
    let now_secs = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    for yard in app.runs.all() {
        let run = yard.run_name().to_string();
        let seen = yard.ask(|ledger| {
            let groups = (ledger.open_groups(), ledger.posed_groups(), ledger.ready_groups());
            (ledger.books().clone(), groups, ledger.replay_stats())
        });
        let (books, (open, posed, ready), replay) = match seen.await {
            Ok(seen) => seen,
            Err(error) if app.runs.is_going(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(stats) = replay {
            pools.note(&run, &stats, now_secs);
        }
        if let Some(archiver) = app.runs.archiver(&run) {
            archives.note(&run, &archiver.status());
        }
        let set = |family: &Family<Column, Gauge>, column, value: u64| {
            family.get_or_create(&Column { run: run.clone(), column }).set(value as i64);
        };
        set(&rollouts, "admitted", books.admitted);
        set(&rollouts, "held", books.held);
        set(&rollouts, "leased", books.leased);
        set(&rollouts, "trained", books.trained);
        set(&rollouts, "dropped", books.dropped_total());
        set(&bytes, "held", books.held_bytes);
        set(&bytes, "leased", books.leased_bytes);
        set(&bytes, "retained", books.retained_bytes);
        set(&groups, "open", open as u64);
        set(&groups, "posed", posed as u64);
        set(&groups, "ready", ready as u64);
        for reason in DropReason::ALL {
            let count = books.dropped.get(&reason).copied().unwrap_or_default();
            dropped.get_or_create(&Dropped { run: run.clone(), reason: reason.name() }).set(count as i64);
        }
    }
    registry.register("rollouts", "Books: admitted = held + leased + trained + dropped", rollouts);
    registry.register("rollout_bytes", "Bytes of rollouts kept", bytes);
    registry.register("groups", "Groups waiting for rollouts, and ready to be read", groups);
    registry.register("rollouts_dropped", "Rollouts dropped, by reason", dropped);
    pools.register(&mut registry);
    archives.register(&mut registry);
    if let Some(gateway) = &app.gateway {
        register_gateway(&mut registry, &gateway.counts());
    }
    if let Some(cluster) = &app.cluster {
        register_cluster(&mut registry, cluster);
    }

    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics", error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
