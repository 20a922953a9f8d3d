//! What a server's runs are doing.

use crate::program::{Outcome, Server, item, rollyard, run};
use serde_json::{Value, json};
use std::path::Path;

fn stats(dir: &Path, url: &str, flags: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.args(["stats", "--url", url]).args(flags);
    run(program)
}

#[test]
fn one_look_prints_a_table_of_all_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "2"]);
    let client = server.client();
    for (uid, instance, reward) in
        [("a", "x", 0.0), ("b", "x", 1.0), ("c", "y", 0.5), ("d", "y", 0.5), ("e", "z", 1.0)]
    {
        assert_eq!(client.post("/buffer/write", &item(uid, instance, reward)).0, 200);
    }
    // Not a terminal, so one table with or without --once.
    for flags in [&[][..], &["--once"], &["--run", "default"]] {
        let outcome = stats(dir.path(), &server.url, flags);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let lines: Vec<Vec<&str>> =
            outcome.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..6], ["run", "open", "ready", "leases", "admitted", "held"]);
        assert_eq!(lines[1][..10], ["default", "1", "1", "0", "5", "3", "0", "0", "2", "yes"]);
        assert_eq!(lines[2].join(" "), "dropped in default: no_variance 2");
    }
    let outcome = stats(dir.path(), &server.url, &["--json"]);
    let runs: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(runs[0]["books"]["admitted"], 5);
}

#[test]
fn a_run_that_is_sampled_shows_its_pool_and_its_history_tells_of_draws() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let client = server.client();
    let config = json!({"mode": "replay", "group_size": 2, "max_samples": 2, "max_rollout_step_delay": 4});
    assert_eq!(client.post("/api/runs", &json!({"name": "r", "config": config})).0, 201);
    for (uid, reward) in [("a", 0.0), ("b", 1.0)] {
        let source = json!({"env_name": "maths", "weight_version": 0, "response_length": 9});
        let mut item = item(uid, "x", reward);
        item.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        assert_eq!(client.post("/runs/r/buffer/write", &item).0, 200);
    }
    assert_eq!(client.post("/api/runs/r/sample", &json!({"rollouts": 2, "step": 1})).0, 200);
    assert_eq!(client.post("/api/runs/r/leases/0/ack", &json!({})).0, 200);
    assert_eq!(client.post("/api/runs/r/commit", &json!({"step": 1})).0, 200);
    let outcome = stats(dir.path(), &server.url, &["--run", "r"]);
    for part in [
        "pool of r: step 1, 2 to draw from (maths 2), 2 drawn of 2 inserted",
        "pool of r: steps behind 1: 2, oldest ",
        "pool of r: mean tokens generated / trained: maths 9 / 9",
    ] {
        assert!(outcome.stdout.contains(part), "{part:?} is not in {}", outcome.stdout);
    }
    let ask = |question: &[&str]| {
        let mut program = rollyard(dir.path());
        program.args(["ledger"]).args(question).args(["--run", "r", "--data", "data"]);
        run(program).stdout
    };
    let story = ask(&["rollout", "a"]);
    for part in ["can be sampled: 2 rollouts", "drawn for step 1", "is held, in the pool, drawn 1 time"] {
        assert!(story.contains(part), "{part:?} is not in {story}");
    }
    let step = ask(&["step", "1"]);
    assert!(step.contains("1 lease, 1 group, 2 rollouts"), "{step}");
    // It may be drawn twice: the books have it leased, and then trained, and so has its story.
    assert_eq!(client.post("/api/runs/r/sample", &json!({"rollouts": 2, "step": 2})).0, 200);
    let story = ask(&["rollout", "a"]);
    assert!(story.contains("is leased, drawn 2 times"), "{story}");
    assert_eq!(client.post("/api/runs/r/leases/1/ack", &json!({})).0, 200);
    let story = ask(&["rollout", "a"]);
    assert!(story.contains("is trained, and used up, drawn 2 times"), "{story}");
}

#[test]
fn a_server_that_cannot_be_asked_is_an_error_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "s3cret").unwrap();
    let server = Server::start(dir.path(), &["--token-file", "token"]);
    for (url, flags, parts) in [
        ("http://127.0.0.1:1", &[][..], &["no answer", "rollyard serve", "--url"][..]),
        (&server.url, &[], &["token", "--token"]),
        (&server.url, &["--token", "s3cret", "--run", "nope"], &["there is no run \"nope\"", "default"]),
        (&server.url, &["--token", "s3cret", "--run", "a/b"], &["\"a/b\""]),
    ] {
        let outcome = stats(dir.path(), url, flags);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part:?} is not in {:?}", outcome.stderr);
        }
    }
    assert_eq!(stats(dir.path(), &server.url, &["--token", "s3cret"]).code, Some(0));
}
