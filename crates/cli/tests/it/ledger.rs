//! Questions to the log of a small yard, beside its server and after it.

use crate::program::{Client, Outcome, Server, item, rollyard, run};
use serde_json::{Value, json};
use std::path::Path;

/// Asks where `place` says: `--data data`, or `--log nats://…`.
fn ask(dir: &Path, place: [&str; 2], question: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.arg("ledger").args(question).args(place);
    run(program)
}

fn ledger(dir: &Path, question: &[&str]) -> Outcome {
    ask(dir, ["--data", "data"], question)
}

/// Steps 1 and 2 are committed, 3 is undone; one group is dropped, one waits, one is leased.
pub(crate) fn live_through_something(client: &Client) {
    let instances = [("s1", 1.0), ("s2", 1.0), ("s3", 1.0), ("dull", 0.0), ("out", 1.0)];
    for (instance, reward) in instances {
        for (n, reward) in [(0, 0.0), (1, reward)] {
            assert_eq!(
                client.post("/buffer/write", &item(&format!("{instance}-{n}"), instance, reward)).0,
                200
            );
        }
    }
    assert_eq!(client.post("/buffer/write", &item("lonely", "waiting", 0.25)).0, 200);
    let api = |path: &str, body: Value| {
        let (status, answer) = client.post(&format!("/api/runs/default/{path}"), &body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    };
    for step in 1..=3 {
        let lease = api("lease", json!({"groups": 1, "reader": "trainer"}))["lease"].clone();
        api(&format!("leases/{lease}/ack"), Value::Null);
        api("commit", json!({"step": step}));
    }
    api("rewind", json!({"step": 2}));
    // The group that was put back comes first again.
    let lease = api("lease", json!({"groups": 1, "reader": "trainer"}))["lease"].clone();
    api(&format!("leases/{lease}/return"), Value::Null);
    api("lease", json!({"groups": 2, "reader": "second"}));
}

pub(crate) fn check(dir: &Path, place: [&str; 2]) {
    for (question, code, parts) in [
        (
            &["rollout", "s1-0"][..],
            0,
            &[
                "admitted to group 0",
                "group 0 ready",
                "lease 0 to \"trainer\"",
                "lease 0 acked",
                "step 1 committed",
                "rollout \"s1-0\" is trained at step 1, in lease 0",
            ][..],
        ),
        (
            &["rollout", "s3-1"],
            0,
            &[
                "step 3 committed",
                "rewound to step 2",
                "returned",
                "lease 4 to \"second\"",
                "is with the reader of lease 4",
            ],
        ),
        (&["rollout", "dull-1"], 0, &["dropped: no_variance"]),
        (&["rollout", "lonely"], 0, &["reward 0.25", "waits for more"]),
        (&["rollout", "nobody"], 1, &["no rollout \"nobody\" was ever admitted"]),
        (
            &["step", "2"],
            0,
            &["step 2 of run default", "1 lease, 1 group, 2 rollouts", "s2-0", "s2-1", "trainer"],
        ),
        (&["step", "3"], 1, &["a rewind has undone it"]),
        (&["step", "9"], 1, &["not committed", "1 to 2 were"]),
        (&["check", "--payloads"], 0, &["no_variance", "every rollout accounted for", "are sound"]),
        (&["events"], 0, &["configured", "rollout \"s1-0\" admitted", "rewound to step 2"]),
        (&["events", "--run", "nope"], 1, &["there is no run \"nope\"", "known are: default"]),
        (&["events", "--run", "../x"], 1, &["run name"]),
    ] {
        let outcome = ask(dir, place, question);
        assert_eq!(outcome.code, Some(code), "{question:?}: {outcome:?}");
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        for part in parts {
            assert!(text.contains(part), "{question:?}: {part:?} is not in {text}");
        }
    }
    let outcome = ask(dir, place, &["events", "--json", "--from", "3"]);
    let events: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["seq"], 3);
    assert_eq!(events[0]["event"], "Admitted");
    assert_eq!(events[0]["data"]["uid"], "s1-1");
}

#[test]
fn the_log_tells_what_happened_beside_a_server_and_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "2"]);
    live_through_something(&server.client());
    check(dir.path(), ["--data", "data"]);
    server.stop();
    check(dir.path(), ["--data", "data"]);
}

#[test]
fn what_slime_read_is_trained_without_a_step() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "2"]);
    let client = server.client();
    for (n, reward) in [(0, 0.0), (1, 1.0)] {
        assert_eq!(client.post("/buffer/write", &item(&format!("u-{n}"), "a", reward)).0, 200);
    }
    assert_eq!(client.post("/get_rollout_data", &json!({})).1["data"]["data"].as_array().unwrap().len(), 2);
    // It is acked once the answer has arrived, which stopping waits for.
    server.stop();
    let outcome = ledger(dir.path(), &["rollout", "u-1"]);
    assert!(outcome.stdout.contains("is trained, in lease 0, without a step"), "{outcome:?}");
    let outcome = ledger(dir.path(), &["step", "1"]);
    assert!(outcome.stderr.contains("auto_commit"), "{outcome:?}");
}

#[test]
fn a_rollout_that_was_damaged_fails_the_check() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "2"]);
    let client = server.client();
    for n in 0..3 {
        assert_eq!(client.post("/buffer/write", &item(&format!("u-{n}"), &format!("i-{n}"), 0.5)).0, 200);
    }
    server.stop();
    assert_eq!(ledger(dir.path(), &["check", "--payloads"]).code, Some(0));
    let log = dir.path().join("data/runs/default/00000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(5).position(|window| window == b"\"u-1\"").unwrap();
    bytes[at + 1] = b'x';
    std::fs::write(&log, bytes).unwrap();
    assert_eq!(ledger(dir.path(), &["check"]).code, Some(0), "the books are not concerned");
    let outcome = ledger(dir.path(), &["check", "--payloads"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("1 rollouts cannot be read"), "{outcome:?}");
}

#[test]
fn a_folder_without_runs_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = ledger(dir.path(), &["check"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("not the data folder of a server"), "{outcome:?}");
}
