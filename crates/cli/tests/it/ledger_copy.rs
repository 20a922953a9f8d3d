//! `rollyard ledger copy`, and questions to a run on NATS.

use crate::ledger::{check, live_through_something};
use crate::program::{Outcome, Server, item, rollyard, run};
use rollyard_test_nats::{Options, Server as Nats};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn copy(dir: &Path, from: &str, to: &str, more: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.args(["ledger", "copy", "--from", from, "--to", to]).args(more);
    run(program)
}

fn events(dir: &Path, place: [&str; 2]) -> String {
    let mut program = rollyard(dir);
    program.args(["ledger", "events", "--json"]).args(place);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

fn assert_says(outcome: &Outcome, code: i32, parts: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    for part in parts {
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(part), "{part:?}: {outcome:?}");
    }
}

#[test]
fn runs_go_to_nats_and_back_and_answer_everywhere() {
    let (dir, nats) = (tempfile::tempdir().unwrap(), Nats::start(Options::default()));
    let (dir, url) = (dir.path(), nats.url());
    let server = Server::start(dir, &["--group-size", "2"]);
    live_through_something(&server.client());
    let client = server.client();
    assert_eq!(client.post("/api/runs", &json!({"name": "second.run"})).0, 201);
    let large = json!({"content": "x".repeat(200_000), "role": "user"});
    let mut rollout = item("large", "large", 1.0);
    rollout["messages"][0] = large;
    assert_eq!(client.post("/runs/second.run/buffer/write", &rollout).0, 200);

    let busy = copy(dir, "data", &url, &[]);
    assert_says(&busy, 1, &["a server uses the folder; stop it first", "in use by process"]);
    server.stop();

    let there = copy(dir, "data", &url, &[]);
    let parts = ["run default:", "run second.run:", "every byte the same", "copied in", "/s", "no_variance"];
    assert_says(&there, 0, &parts);
    check(dir, ["--log", &url]);
    let again = copy(dir, "data", &url, &["--run", "default"]);
    assert_says(&again, 1, &["run default is there already, with", "records", "--log-yard"]);
    assert_says(&copy(dir, "data", &url, &["--run", "default", "--log-yard", "other"]), 0, &["every byte"]);

    let back = copy(dir, &url, "back", &[]);
    assert_says(&back, 0, &["run default:", "run second.run:", "200."]);
    check(dir, ["--data", "back"]);
    assert_eq!(events(dir, ["--data", "data"]), events(dir, ["--data", "back"]));
    assert_eq!(events(dir, ["--data", "data"]), events(dir, ["--log", &url]));
    assert_says(&copy(dir, &url, "back", &[]), 1, &["is there already", "another data folder"]);

    // A server goes on with it.
    std::fs::rename(dir.join("data"), dir.join("before")).unwrap();
    std::fs::rename(dir.join("back"), dir.join("data")).unwrap();
    let server = Server::start(dir, &[]);
    let stats = server.client().get("/api/runs/default").1;
    assert_eq!(stats["books"]["admitted"], 11, "{stats}");
    assert_eq!(server.client().post("/buffer/write", &item("after", "waiting", 0.5)).0, 200);
}

#[test]
fn a_node_goes_on_with_a_copied_run_and_is_asked_beside_its_work() {
    let (dir, nats) = (tempfile::tempdir().unwrap(), Nats::start(Options::default()));
    let (dir, url) = (dir.path(), nats.url());
    let server = Server::start(dir, &["--group-size", "2"]);
    assert_eq!(server.client().post("/buffer/write", &item("before", "a", 0.0)).0, 200);
    server.stop();
    assert_says(&copy(dir, "data", &url, &[]), 0, &["1 rollout "]);

    std::fs::rename(dir.join("data"), dir.join("before")).unwrap();
    let node = Server::start(dir, &["--log", &url, "--node", "n"]);
    assert_eq!(node.client().post("/buffer/write", &item("after", "a", 1.0)).0, 200);
    let groups = node.client().post("/get_rollout_data", &json!({})).1;
    assert_eq!(groups["data"]["data"].as_array().unwrap().len(), 2, "{groups}");
    let mut program = rollyard(dir);
    program.args(["ledger", "check", "--payloads", "--log", &url]);
    assert_says(&run(program), 0, &["every rollout accounted for"]);
    let busy = copy(dir, "before", &url, &[]);
    assert_says(&busy, 1, &["is there already"]);
    node.stop();

    assert_says(&copy(dir, &url, "home", &["--run", "default"]), 0, &["every byte the same"]);
    let told = events(dir, ["--data", "home"]);
    assert!(told.contains("\"before\"") && told.contains("\"after\"") && told.contains("Acked"), "{told}");
}

#[test]
fn what_cannot_be_copied_is_said_with_the_next_step() {
    let (dir, nats) = (tempfile::tempdir().unwrap(), Nats::start(Options::default()));
    let (dir, url) = (dir.path(), nats.url());
    Server::start(dir, &[]).stop();
    let dead = "nats://127.0.0.1:1";
    for (from, to, more, parts) in [
        ("data", dead, &[][..], &["127.0.0.1:1 cannot be used", "are they running?"][..]),
        ("data", "http://127.0.0.1:1", &[], &["no place of runs", "nats://host:4222"]),
        ("nowhere", &url, &[], &["not the data folder of a server: nowhere"]),
        ("data", &url, &["--run", "nope"], &["there is no run nope", "known are: default"]),
        (&url, "back", &["--run", "nope"], &["there is no run nope", "127.0.0.1"]),
        (&url, "back", &[], &["there is no run: nats://"]),
        ("data", "./data", &[], &["the same place"]),
        (&url, &url, &[], &["the same place"]),
        (&url, "nats://127.0.0.1:2", &["--blobs", "s3://b/p"], &["copy to a data folder first"]),
        ("data", &url, &["--log-replicas", "9"], &["replicas is 9"]),
        ("data", &url, &["--log-credentials", "missing"], &["cannot read the credentials", "missing"]),
        ("data", &url, &["--log", &url], &["--from and --to"]),
    ] {
        assert_says(&copy(dir, from, to, more), 1, parts);
    }
    assert_says(&copy(dir, "data", &url, &["--blobs", "file:///x"]), 2, &["s3://bucket/prefix"]);
    for (place, parts) in [
        (["--log", dead], &["cannot be used"][..]),
        (["--log", "data"], &["no NATS server", "--data"]),
        (["--log", &url], &["there is no run \"default\" in yard rollyard; there is none"]),
    ] {
        let mut program = rollyard(dir);
        program.args(["ledger", "check"]).args(place);
        assert_says(&run(program), 1, parts);
    }
    assert!(!dir.join("back/runs/nope").exists());
}

#[test]
fn a_copy_that_is_killed_is_no_run_and_can_be_begun_again() {
    let (dir, nats) = (tempfile::tempdir().unwrap(), Nats::start(Options::default()));
    let (dir, url) = (dir.path(), nats.url());
    let server = Server::start(dir, &["--group-size", "1000"]);
    let client = server.client();
    let mut rollout = item("", "i", 0.5);
    rollout["messages"][0]["content"] = "x".repeat(100_000).into();
    for n in 0..300 {
        rollout["uid"] = format!("u{n}").into();
        assert_eq!(client.post("/buffer/write", &rollout).0, 200);
    }
    server.stop();
    let kill_when = |from: &str, to: &str, is_there: &dyn Fn() -> bool| {
        let mut program = rollyard(dir);
        program.args(["ledger", "copy", "--from", from, "--to", to]);
        let mut child = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_there() && child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap().code()
    };
    let has_stream = || {
        let account = nats.monitor("/jsz?streams=true").unwrap_or_default();
        account["streams"].as_u64().is_some_and(|streams| streams >= 2)
    };
    assert_eq!(kill_when("data", &url, &has_stream), None, "it was finished before it could be killed");
    let mut program = rollyard(dir);
    program.args(["ledger", "check", "--log", &url]);
    assert_says(&run(program), 1, &["was not copied to its end", "rollyard ledger copy"]);
    assert_says(&copy(dir, "data", &url, &[]), 0, &["300 rollouts"]);

    let unfinished = dir.join("back/runs/.copying-default");
    assert_eq!(
        kill_when(&url, "back", &|| unfinished.exists()),
        None,
        "it was finished before it could be killed"
    );
    assert!(unfinished.exists() && !dir.join("back/runs/default").exists());
    assert_says(&copy(dir, &url, "back", &[]), 0, &["300 rollouts"]);
    assert!(!unfinished.exists());
    assert_eq!(events(dir, ["--data", "data"]), events(dir, ["--data", "back"]));
}
