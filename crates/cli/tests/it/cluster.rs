//! Three nodes of the real program on a real NATS: any node takes any request, and one that dies is replaced.

use crate::program::{Client, Server, agent, item, rollyard, run};
use rollyard_test_nats::{Options, Server as Nats};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) struct Node {
    name: String,
    pub(crate) server: Server,
    dir: TempDir,
}

impl Node {
    fn client(&self) -> Client {
        self.server.client()
    }
}

pub(crate) struct Yard {
    pub(crate) nodes: Vec<Node>,
    pub(crate) nats: Nats,
    /// Of every node: more flags, and variables.
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Yard {
    /// So many nodes, whose default run has groups of two.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, Vec::new(), Vec::new())
    }

    pub(crate) fn start_with(count: usize, flags: Vec<String>, variables: Vec<(String, String)>) -> Self {
        let nats = Nats::start(Options::default());
        let mut yard = Self { nodes: Vec::new(), nats, flags, variables };
        (0..count).for_each(|no| yard.join(&format!("n{no}")));
        yard.settle();
        yard
    }

    fn join(&mut self, name: &str) {
        let dir = tempfile::tempdir().unwrap();
        let log = self.nats.url();
        let mut flags =
            vec!["--log", &log, "--node", name, "--group-size", "2", "--log-level", "debug", "--root", "/"];
        flags.extend(self.flags.iter().map(String::as_str));
        let server = Server::start_in(dir.path(), &flags, &self.variables);
        self.nodes.push(Node { name: name.to_owned(), server, dir });
    }

    pub(crate) fn ask(&self, no: usize) -> Client {
        self.nodes[no].client()
    }

    /// Waits until every node knows every node, and every run has an owner.
    fn settle(&self) {
        let is_settled = |node: &Node| {
            let answer = node.client().get("/api/nodes").1;
            let alive =
                answer["nodes"].as_array().unwrap().iter().filter(|node| node["alive"] == true).count();
            let owned = answer["runs"].as_array().unwrap().iter().all(|run| run["owner"].is_string());
            alive == self.nodes.len() && owned
        };
        within(20.0, "every run has an owner", || self.nodes.iter().all(is_settled));
    }

    fn owner(&self, run: &str) -> usize {
        let mut owner = None;
        within(10.0, "the run has an owner", || {
            let answer = self.nodes[0].client().get("/api/nodes").1;
            let placed =
                answer["runs"].as_array().unwrap().iter().find(|placed| placed["run"] == run).cloned();
            let name = placed.and_then(|placed| placed["owner"].as_str().map(str::to_owned));
            owner = name.and_then(|name| self.nodes.iter().position(|node| node.name == name));
            owner.is_some()
        });
        owner.unwrap()
    }

    /// Makes runs until a node has one.
    pub(crate) fn run_of(&self, no: usize) -> String {
        for number in 0..50 {
            let run = format!("of-{no}-{number}");
            let (status, body) = self.ask(number % self.nodes.len()).post("/api/runs", &json!({"name": run}));
            assert_eq!(status, 201, "{body}");
            if self.owner(&run) == no {
                return run;
            }
        }
        panic!("no run of fifty went to node {no}");
    }
}

pub(crate) fn within(secs: f64, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs_f64(secs);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {secs} s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes until it is taken; gives back how long that took.
pub(crate) fn write(client: &Client, run: &str, item: &Value) -> Duration {
    let since = Instant::now();
    loop {
        let (status, body) = client.post(&format!("/runs/{run}/buffer/write"), item);
        if status == 200 {
            return since.elapsed();
        }
        assert_eq!(status, 503, "{body}");
        assert!(since.elapsed() < Duration::from_secs(30), "{body}");
    }
}

fn fill(client: &Client, run: &str, groups: std::ops::Range<usize>) {
    for group in groups {
        for (part, reward) in [("a", 0.0), ("b", 1.0)] {
            write(client, run, &item(&format!("{group}-{part}"), &format!("i{group}"), reward));
        }
    }
}

/// The uids of one read.
fn read(client: &Client, run: &str, count: usize) -> Vec<String> {
    let (status, body) = client.post(&format!("/runs/{run}/get_rollout_data"), &json!({"batch_size": count}));
    assert_eq!(status, 200, "{body}");
    let rows = body["data"]["data"].as_array().unwrap();
    rows.iter().map(|row| row["uid"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn any_node_takes_any_request_and_runs_spread() {
    let yard = Yard::start(3);
    let mut owners = BTreeSet::new();
    for number in 0..12 {
        let run = format!("run-{number}");
        let (asked, other) = (number % 3, (number + 1) % 3);
        let config = json!({"name": run, "config": {"group_size": 2, "keep_commits": 7}});
        let (status, body) = yard.ask(asked).post("/api/runs", &config);
        assert_eq!(status, 201, "{body}");
        assert_eq!(body["config"]["keep_commits"], 7, "made with its knobs, wherever");
        assert_eq!(yard.ask(other).post("/api/runs", &config).0, 200, "it is there for everybody");
        fill(&yard.ask(other), &run, 0..2);
        assert_eq!(read(&yard.ask((number + 2) % 3), &run, 2).len(), 2);
        owners.insert(yard.owner(&run));
    }
    assert_eq!(owners.len(), 3, "runs spread over the nodes");
    // The bare calls mean the default run, wherever it is; the list has all of them, whoever is asked.
    for no in 0..3 {
        assert_eq!(yard.ask(no).post("/buffer/write", &item(&format!("d{no}"), "d", 1.0)).0, 200);
        let runs = yard.ask(no).get("/api/runs").1;
        assert_eq!(runs.as_array().unwrap().len(), 13);
        let live = yard.ask(no).get("/api/live").1;
        assert_eq!(live["runs"].as_array().unwrap().len(), 13);
        let (status, body) = yard.ask(no).get("/api/runs/nope");
        assert_eq!((status, &body["error"]["code"]), (404, &json!("run_unknown")));
    }
    let books = yard.ask(1).get("/api/runs/default/books").1;
    assert_eq!(books["admitted"], 3, "{books}");
    let config = yard.ask(2).get("/api/runs/default").1["config"].clone();
    assert_eq!(config["group_size"], 2, "the flags of a node reach the default run");
    let dir = &yard.nodes[0].dir;
    let mut stats = rollyard(dir.path());
    stats.args(["stats", "--url", &yard.nodes[0].server.url]);
    let shown = run(stats).stdout;
    for part in ["n0", "n1", "n2", "alive, asked", "run-11"] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn writes_flow_again_within_three_seconds_after_the_owner_was_killed() {
    let mut yard = Yard::start(3);
    let run = yard.run_of(1);
    fill(&yard.ask(0), &run, 0..10);
    let acked = read(&yard.ask(2), &run, 4);
    // The receipt of that read is on the log before its owner dies.
    within(5.0, "the read is acked", || yard.ask(0).get(&format!("/api/runs/{run}/books")).1["trained"] == 4);
    yard.nodes[1].server.kill();
    let took = write(&yard.ask(0), &run, &item("later", "later", 1.0));
    assert!(took < Duration::from_secs(3), "{took:?}");
    let owner = yard.owner(&run);
    assert_ne!(owner, 1);
    let rest = read(&yard.ask(2), &run, 16);
    assert_eq!(rest.len(), 16);
    assert!(rest.iter().all(|uid| !acked.contains(uid)), "nothing is read twice");
    let books = yard.ask(0).get(&format!("/api/runs/{run}/books")).1;
    assert_eq!((&books["admitted"], &books["balanced"]), (&json!(21), &json!(true)));
    let metrics = metrics(&yard.nodes[owner].server.url);
    assert!(metrics.contains("rollyard_cluster_takeovers_total"), "{metrics}");
    assert!(metrics.contains(&format!("rollyard_cluster_owner{{run=\"{run}\"}} 1")), "{metrics}");
}

#[test]
fn a_server_that_stops_hands_its_runs_over_at_once() {
    let mut yard = Yard::start(2);
    let run = yard.run_of(1);
    fill(&yard.ask(0), &run, 0..5);
    let node = yard.nodes.remove(1);
    let stopping = std::thread::spawn(move || node.server.stop());
    let mut slowest = Duration::ZERO;
    for no in 0..100 {
        slowest = slowest.max(write(&yard.ask(0), &run, &item(&format!("w{no}"), &format!("w{no}"), 1.0)));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(stopping.join().unwrap(), Some(0));
    assert!(slowest < Duration::from_millis(1500), "{slowest:?}");
    assert_eq!(yard.owner(&run), 0);
    let books = yard.ask(0).get(&format!("/api/runs/{run}/books")).1;
    assert_eq!(books["admitted"], 110, "{books}");
}

#[test]
fn a_reader_that_hangs_up_at_another_node_gives_its_lease_back() {
    let yard = Yard::start(2);
    let run = yard.run_of(1);
    let padding = "x".repeat(200_000);
    for group in 0..20 {
        for (part, reward) in [("a", 0.0), ("b", 1.0)] {
            let mut item = item(&format!("{group}-{part}"), &format!("i{group}"), reward);
            item["padding"] = json!(padding);
            write(&yard.ask(0), &run, &item);
        }
    }
    let address = yard.nodes[0].server.url.strip_prefix("http://").unwrap().to_owned();
    for round in 0..3 {
        let mut stream = TcpStream::connect(&address).unwrap();
        let body = json!({"batch_size": 40}).to_string();
        let head = format!(
            "POST /runs/{run}/get_rollout_data HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut piece = [0; 20_000];
        stream.read_exact(&mut piece).unwrap();
        drop(stream);
        within(10.0, &format!("round {round}: all is held again"), || {
            let books = yard.ask(0).get(&format!("/api/runs/{run}/books")).1;
            books["held"] == 40 && books["leased"] == 0
        });
    }
    // One that reads to the end has it, and only once.
    let mut uids = read(&yard.ask(0), &run, 40);
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 40);
    within(10.0, "the read is acked", || {
        yard.ask(0).get(&format!("/api/runs/{run}/books")).1["trained"] == 40
    });
}

#[test]
fn an_owner_that_was_paused_can_write_nothing_more_and_finds_its_place_again() {
    let yard = Yard::start(3);
    let run = yard.run_of(1);
    fill(&yard.ask(0), &run, 0..3);
    yard.nodes[1].server.signal(Signal::STOP);
    let took = write(&yard.ask(0), &run, &item("meanwhile", "meanwhile", 1.0));
    assert!(took < Duration::from_secs(6), "{took:?}");
    yard.nodes[1].server.signal(Signal::CONT);
    // Asked at once, before it has noticed anything: it must not write beside the new owner.
    let took = write(&yard.ask(1), &run, &item("after", "after", 1.0));
    assert!(took < Duration::from_secs(6), "{took:?}");
    let seen = |no: usize| yard.ask(no).get(&format!("/api/runs/{run}/books")).1;
    assert_eq!(seen(0)["admitted"], 8);
    within(5.0, "all nodes see the same books", || (0..3).all(|no| seen(no) == seen(0)));
    let ids: BTreeSet<String> = read(&yard.ask(1), &run, 6).into_iter().collect();
    assert_eq!(ids.len(), 6);
}

#[test]
fn a_generator_goes_on_where_its_run_goes() {
    let mut yard = Yard::start(2);
    let run = yard.run_of(1);
    let input = yard.nodes[0].dir.path().join("input.jsonl");
    std::fs::write(&input, "{\"instance_id\": \"a\", \"prompt\": [{\"role\": \"user\", \"content\": \"1+1?\"}], \"label\": \"2\"}\n")
        .unwrap();
    let payload = json!({"task_type": "math", "input_file": input, "num_repeat_per_sample": 2,
        "remote_engine_url": "http://127.0.0.1:1/v1", "num_process": 1});
    let (status, body) = yard.ask(0).post(&format!("/runs/{run}/start_rollout"), &payload);
    assert_eq!((status, &body["generator"]), (200, &json!("started")), "{body}");
    let state = |yard: &Yard| yard.ask(0).get(&format!("/api/runs/{run}")).1["generator"]["state"].clone();
    within(10.0, "it runs", || state(&yard) == "running");
    yard.nodes.remove(1).server.stop();
    within(10.0, "it runs at the new owner", || {
        let shown = yard.ask(0).get(&format!("/api/runs/{run}")).1;
        shown["generator"]["state"] == "running" && !shown["generator"]["progress"].is_null()
    });
    assert_eq!(yard.owner(&run), 0);
}

#[test]
fn a_second_node_of_one_name_does_not_start() {
    let yard = Yard::start(1);
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["serve", "--listen", "127.0.0.1:0", "--log", &yard.nats.url(), "--node", "n0"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for part in ["\"n0\"", &yard.nodes[0].server.url, "--node NAME"] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
}

#[test]
fn servers_that_are_not_there_are_named_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["serve", "--listen", "127.0.0.1:0", "--log", "nats://u:s3cret@127.0.0.1:1"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for part in ["nats://127.0.0.1:1", "--log"] {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("s3cret"));
}

pub(crate) fn metrics(url: &str) -> String {
    let mut answer = agent().get(format!("{url}/metrics")).call().unwrap();
    answer.body_mut().read_to_string().unwrap()
}
