//! What a server's runs are doing.

use crate::program::{Outcome, Server, item, rollyard, run};
use serde_json::Value;
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
