//! Nodes in one process, on ground that is only memory: what is forwarded, what is not, and what is gathered.

use crate::server::{agent, eventually, item};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, StreamExt};
use rollyard_core::ids::RunName;
use rollyard_core::run_config::RunConfig;
use rollyard_server::cluster::{Claimant, Ground, NodeName, Opened, Timing};
use rollyard_server::{App, Cluster, ClusterSettings, GateSettings, Runs, Settings, serve};
use rollyard_store::log::LogError;
use rollyard_store::log::memory::Memory;
use rollyard_store::yard::{self, Yard, YardError};
use rollyard_test_engine::{Settings as EngineSettings, TestEngine};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_util::sync::CancellationToken;

/// Logs and a channel, shared by all nodes of a test.
#[derive(Debug)]
struct Shared {
    runs: Mutex<BTreeMap<String, Claimed>>,
    said: broadcast::Sender<Bytes>,
}

#[derive(Debug)]
struct Claimed {
    memory: Memory,
    epoch: u64,
    owner: Option<(String, Yard)>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { runs: Mutex::default(), said: broadcast::Sender::new(1024) })
    }
}

impl Ground for Shared {
    fn runs(&self) -> Result<Vec<RunName>, LogError> {
        Ok(self.runs.lock().unwrap().keys().map(|run| RunName::try_from(run.as_str()).unwrap()).collect())
    }

    fn create(&self, run: &RunName) -> Result<bool, LogError> {
        let mut runs = self.runs.lock().unwrap();
        let is_new = !runs.contains_key(run.as_str());
        let fresh = || Claimed { memory: Memory::new(64 << 20), epoch: 0, owner: None };
        runs.entry(run.to_string()).or_insert_with(fresh);
        Ok(is_new)
    }

    fn open(&self, run: &RunName, config: &RunConfig, claimant: &Claimant) -> Result<Opened, YardError> {
        let mut runs = self.runs.lock().unwrap();
        let claimed = runs.get_mut(run.as_str()).unwrap();
        let before = claimed.owner.take().map(|(node, yard)| {
            // Whoever had it can append nothing more.
            yard.close();
            node
        });
        let memory = claimed.memory.clone();
        let yard = yard::open_on(run, config, &mut |_, _| {}, move || Ok(memory.open()))?;
        claimed.epoch += 1;
        claimed.owner = Some((claimant.node.clone(), yard.clone()));
        Ok(Opened { yard, epoch: claimed.epoch, before })
    }

    fn shout(&self, heartbeat: Bytes) -> BoxFuture<'_, Result<(), String>> {
        let _nobody_listens = self.said.send(heartbeat);
        std::future::ready(Ok(())).boxed()
    }

    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>> {
        let heard =
            BroadcastStream::new(self.said.subscribe()).filter_map(|beat| std::future::ready(beat.ok()));
        std::future::ready(Ok(heard.boxed())).boxed()
    }
}

struct Node {
    addr: SocketAddr,
    stopping: CancellationToken,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

/// Ten times as quick as in earnest.
fn timing() -> Timing {
    Timing {
        beat_every: Duration::from_millis(30),
        dead_after: Duration::from_millis(400),
        rank_step: Duration::from_millis(100),
        settled_after: Duration::from_secs(60),
        owner_within: Duration::from_secs(2),
        discover_every: Duration::from_millis(200),
    }
}

impl Node {
    fn start(shared: &Arc<Shared>, name: &str, settings: Settings) -> Self {
        Self::start_gated(shared, name, settings, None)
    }

    fn start_gated(shared: &Arc<Shared>, name: &str, settings: Settings, gate: Option<GateSettings>) -> Self {
        let (dir, stopping) = (TempDir::new().unwrap(), CancellationToken::new());
        let (started, address) = std::sync::mpsc::channel();
        let (path, ground, stop) = (dir.path().to_owned(), Arc::clone(shared), stopping.clone());
        let node = NodeName::try_from(name).unwrap();
        let thread = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = listener.local_addr().unwrap();
                let url = format!("http://{addr}");
                let joining = ClusterSettings { node, url, token: settings.token.clone(), timing: timing() };
                let cluster = Cluster::join(ground, joining).await.unwrap();
                let runs = Runs::open_clustered(&path, &Map::new(), cluster).unwrap();
                let mut app = App::new(Arc::new(runs), settings, stop);
                gate.into_iter().for_each(|gate| app.open_gateway(gate).unwrap());
                started.send(addr).unwrap();
                serve(listener, app).await.unwrap();
            });
        });
        Self { addr: address.recv().unwrap(), stopping, thread: Some(thread), _dir: dir }
    }

    fn stop(&mut self) {
        self.stopping.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    fn send(&self, path: &str, body: &[u8], headers: &[(&str, &str)]) -> (u16, Value) {
        let request = agent().post(format!("http://{}{path}", self.addr)).content_type("application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        answer(request.send(body).unwrap())
    }

    fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(path, body.to_string().as_bytes(), &[])
    }

    fn get(&self, path: &str) -> (u16, Value) {
        answer(agent().get(format!("http://{}{path}", self.addr)).call().unwrap())
    }

    fn books(&self, run: &str) -> Value {
        self.get(&format!("/api/runs/{run}/books")).1
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let text = response.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
    (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Two nodes, and a run that the second has.
fn two(settings: &Settings) -> (Node, Node, String) {
    two_gated(settings, None)
}

/// The same, with a gateway at the first.
fn two_gated(settings: &Settings, gate: Option<GateSettings>) -> (Node, Node, String) {
    let shared = Shared::new();
    let one = Node::start_gated(&shared, "one", settings.clone(), gate);
    let other = Node::start(&shared, "other", settings.clone());
    eventually("the default run has an owner", || owner(&one, "default").is_some());
    for number in 0..50 {
        let run = format!("run-{number}");
        let made = json!({"name": run, "config": {"group_size": 2}});
        let (status, body) = one.send("/api/runs", made.to_string().as_bytes(), &auth(settings));
        assert_eq!(status, 201, "{body}");
        eventually("it has an owner", || owner(&one, &run).is_some());
        if owner(&one, &run).as_deref() == Some("other") {
            return (one, other, run);
        }
    }
    panic!("all of fifty runs went to one node");
}

fn auth(settings: &Settings) -> Vec<(&'static str, &'static str)> {
    settings.token.iter().map(|_| ("authorization", "Bearer s3cret")).collect()
}

fn owner(node: &Node, run: &str) -> Option<String> {
    let request = agent().get(format!("http://{}/api/nodes", node.addr));
    let nodes = answer(request.header("authorization", "Bearer s3cret").call().unwrap()).1;
    let placed = nodes["runs"].as_array()?.iter().find(|placed| placed["run"] == run)?;
    placed["owner"].as_str().map(str::to_owned)
}

fn write(node: &Node, run: &str, uid: &str, instance: &str, reward: f64) {
    let (status, body) = node.post(&format!("/runs/{run}/buffer/write"), item(uid, instance, reward));
    assert_eq!(status, 200, "{body}");
}

#[test]
fn a_request_reaches_the_owner_and_its_answer_comes_back_whole() {
    let (one, other, run) = two(&Settings::default());
    write(&one, &run, "a", "x", 0.0);
    write(&one, &run, "b", "x", 1.0);
    // Refusals come back as they are, with what is wrong.
    let (status, body) = one.post(&format!("/runs/{run}/buffer/write"), json!({"instance_id": 7}));
    assert_eq!(status, 400, "{body}");
    let path = format!("/api/runs/{run}/lease");
    let (status, lease) = one.post(&path, json!({"groups": 1}));
    assert_eq!((status, lease["groups"][0]["rollouts"].as_array().unwrap().len()), (200, 2));
    let ack = format!("/api/runs/{run}/leases/{}/ack", lease["lease"]);
    assert_eq!(one.post(&ack, json!({})).0, 200);
    assert_eq!(other.books(&run)["trained"], 2);
    assert_eq!(one.books(&run), other.books(&run));
    let metrics =
        agent().get(format!("http://{}/metrics", one.addr)).call().unwrap().body_mut().read_to_string();
    assert!(metrics.unwrap().contains("rollyard_cluster_forwards_total{outcome=\"answered\"}"));
}

#[test]
fn a_read_is_acked_at_the_owner_once_the_reader_has_it() {
    let (one, other, run) = two(&Settings::default());
    write(&one, &run, "a", "x", 0.0);
    write(&one, &run, "b", "x", 1.0);
    let (status, body) = one.post(&format!("/runs/{run}/get_rollout_data"), json!({}));
    assert_eq!((status, body["data"]["data"].as_array().unwrap().len()), (200, 2), "{body}");
    eventually("the lease is acked", || other.books(&run)["trained"] == 2);
}

#[test]
fn the_owner_leaves_the_ack_to_the_node_that_has_the_reader() {
    let (one, other, run) = two(&Settings::default());
    write(&one, &run, "a", "x", 0.0);
    write(&one, &run, "b", "x", 1.0);
    let asked = agent().post(format!("http://{}/runs/{run}/get_rollout_data", other.addr));
    let mut response = asked.header("x-rollyard-forwarded", "one").send("{}").unwrap();
    let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("x-rollyard-lease-auto"), "1");
    let lease = header("x-rollyard-lease");
    assert!(response.body_mut().read_to_string().unwrap().contains("\"uid\""));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(other.books(&run)["leased"], 2, "all bytes are at the other node, and nothing is acked");
    assert_eq!(one.post(&format!("/api/runs/{run}/leases/{lease}/ack"), json!({})).0, 200);
    assert_eq!(other.books(&run)["trained"], 2);
}

#[test]
fn a_body_of_many_megabytes_streams_through() {
    let (one, other, run) = two(&Settings::default());
    let padding = "x".repeat(20_000);
    let line = |n: usize| {
        let mut item = item(&format!("u{n}"), &format!("i{}", n / 2), (n % 2) as f64);
        item["padding"] = json!(padding);
        item.to_string()
    };
    let lines: Vec<String> = (0..400).map(line).collect();
    let (status, written) = one.send(&format!("/api/runs/{run}/rollouts"), lines.join("\n").as_bytes(), &[]);
    assert_eq!((status, &written["accepted"]), (200, &json!(400)), "{written}");
    assert_eq!(other.books(&run)["held"], 400);
    let (_, body) = one.post(&format!("/runs/{run}/get_rollout_data"), json!({}));
    assert_eq!(body["data"]["data"].as_array().unwrap().len(), 400);
    eventually("the lease is acked", || other.books(&run)["trained"] == 400);
}

#[test]
fn a_forwarded_request_is_never_forwarded_again() {
    let (one, _other, run) = two(&Settings::default());
    let body = item("a", "x", 1.0).to_string();
    let path = format!("/runs/{run}/buffer/write");
    let (status, answer) = one.send(&path, body.as_bytes(), &[("x-rollyard-forwarded", "somebody")]);
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("owner_moved")), "{answer}");
}

#[test]
fn only_who_brings_the_token_is_taken_for_a_node() {
    let settings = Settings { token: Some("s3cret".to_owned()), ..Settings::default() };
    let (one, _other, run) = two(&settings);
    let (path, body) = (format!("/runs/{run}/buffer/write"), item("a", "x", 1.0).to_string());
    let forwarded = ("x-rollyard-forwarded", "somebody");
    let token = ("authorization", "Bearer s3cret");
    assert_eq!(one.send(&path, body.as_bytes(), &[forwarded]).0, 401);
    assert_eq!(one.send(&path, body.as_bytes(), &[forwarded, token]).0, 503);
    assert_eq!(one.send(&path, body.as_bytes(), &[token]).0, 200, "forwarded with the node's own token");
}

#[test]
fn nodes_with_different_tokens_say_so() {
    let shared = Shared::new();
    let with = |token: &str| Settings { token: Some(token.to_owned()), ..Settings::default() };
    let one = Node::start(&shared, "one", with("s3cret"));
    let _other = Node::start(&shared, "other", with("0ther"));
    eventually("the default run has an owner", || owner(&one, "default").is_some());
    let token = [("authorization", "Bearer s3cret")];
    let answers: Vec<(u16, Value)> = (0..40)
        .map(|number| {
            one.send("/api/runs", json!({"name": format!("r{number}")}).to_string().as_bytes(), &token)
        })
        .collect();
    let refused = answers.iter().find(|(status, _)| *status == 502).unwrap();
    assert_eq!(refused.1["error"]["code"], "tokens_differ");
    assert!(answers.iter().all(|(status, _)| matches!(status, 201 | 502)));
}

#[test]
fn requests_wait_while_a_run_moves_and_nothing_is_lost() {
    let (one, mut other, run) = two(&Settings::default());
    write(&one, &run, "a", "x", 0.0);
    let path = format!("/runs/{run}/buffer/write");
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (one, path) = (&one, &path);
                scope.spawn(move || {
                    for n in 0..50 {
                        let item = item(&format!("{writer}-{n}"), &format!("i{writer}-{n}"), 1.0);
                        let (status, body) = one.post(path, item);
                        assert_eq!(status, 200, "{body}");
                        std::thread::sleep(Duration::from_millis(5));
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(60));
        other.stop();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(owner(&one, &run).as_deref(), Some("one"));
    assert_eq!(one.books(&run)["admitted"], 201);
}

#[test]
fn the_runs_of_a_node_that_left_are_taken_over_and_unknown_ones_are_not_there() {
    let (one, other, run) = two(&Settings::default());
    drop(other);
    eventually("it is taken over", || owner(&one, &run).as_deref() == Some("one"));
    let (status, body) = one.get("/api/runs/never-made");
    assert_eq!((status, &body["error"]["code"]), (404, &json!("run_unknown")));
    assert!(body["error"]["message"].as_str().unwrap().contains(&run), "known runs are named: {body}");
}

#[test]
fn lists_have_the_runs_of_all_nodes() {
    let (one, other, run) = two(&Settings::default());
    for node in [&one, &other] {
        let runs = node.get("/api/runs").1;
        let names: Vec<&str> =
            runs.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
        assert!(names.contains(&"default") && names.contains(&run.as_str()), "{names:?}");
        assert!(names.is_sorted(), "{names:?}");
        let live = node.get("/api/live").1;
        assert_eq!(live["runs"].as_array().unwrap().len(), names.len());
        let nodes = node.get("/api/nodes").1;
        assert_eq!(nodes["nodes"].as_array().unwrap().len(), 2);
        assert_eq!(nodes["clustered"], true);
    }
}

#[test]
fn the_rollout_of_an_agent_reaches_its_run_at_another_node() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let engine = EngineSettings { vocabulary: 90, ..EngineSettings::default() };
    let engine = runtime.block_on(TestEngine::start(engine)).unwrap();
    let (one, other, run) = two_gated(&Settings::default(), Some(crate::gateway::gate(engine.url())));
    let opened = one.post("/api/sessions", json!({"run": run, "instance_id": "i"})).1;
    let bearer = |name: &str| format!("Bearer {}", opened[name].as_str().unwrap());
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Go"}], "max_tokens": 8});
    let (key, reward_key) = (bearer("api_key"), bearer("reward_key"));
    let (status, said) =
        one.send("/v1/chat/completions", chat.to_string().as_bytes(), &[("authorization", &key)]);
    assert_eq!(status, 200, "{said}");
    let end = format!("/api/sessions/{}/end", opened["session"].as_str().unwrap());
    let (status, row) = one.send(&end, br#"{"reward": 0.5}"#, &[("authorization", &reward_key)]);
    assert_eq!((status, &row["is_delivered"]), (200, &json!(true)), "{row}");
    assert_eq!(other.books(&run)["admitted"], 1);
    let (status, body) = one.post("/api/sessions", json!({"run": "nope", "instance_id": "i"}));
    assert_eq!(status, 404, "{body}");
}

#[test]
fn a_server_by_itself_is_one_node_with_all_runs() {
    let server = crate::server::Server::start(json!({}));
    let nodes = server.get("/api/nodes").1;
    assert_eq!((nodes["clustered"].clone(), nodes["nodes"][0]["this"].clone()), (json!(false), json!(true)));
    assert_eq!(nodes["nodes"][0]["url"], server.url(""));
    assert_eq!(nodes["runs"][0]["run"], "default");
    assert_eq!(nodes["runs"][0]["owner"], nodes["node"]);
}
