//! A server that starts, one that cannot, and one that stops.

use crate::program::{Outcome, Server, item, rollyard, run};
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;

fn serve(dir: &Path, flags: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.arg("serve").args(flags);
    run(program)
}

fn check_refused(outcome: &Outcome, parts: &[&str]) {
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "it does not say that it listens");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {:?}", outcome.stderr);
    }
}

#[test]
fn a_folder_that_another_server_has_is_refused_with_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let outcome = serve(dir.path(), &["--listen", "127.0.0.1:0", "--data", "data"]);
    check_refused(&outcome, &["in use by process", "--data"]);
    assert_eq!(server.client().get("/healthz").0, 200, "the first is not disturbed");
}

#[test]
fn a_port_that_is_taken_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    check_refused(&serve(dir.path(), &["--listen", &address]), &[&address, "another program", "--listen"]);
    assert!(!dir.path().join("yard-data").exists());
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = serve(dir.path(), &["--listen", "192.0.2.1:8889", "--token", "x"]);
    check_refused(&outcome, &["192.0.2.1:8889", "--listen"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    // Tests may run as root, whom permission bits do not stop; nobody can create files here.
    let dir = tempfile::tempdir().unwrap();
    let outcome = serve(dir.path(), &["--listen", "127.0.0.1:0", "--data", "/proc/x"]);
    check_refused(&outcome, &["/proc/x", "--data"]);
    // A file where the folder should be.
    std::fs::write(dir.path().join("file"), "").unwrap();
    let outcome = serve(dir.path(), &["--listen", "127.0.0.1:0", "--data", "file"]);
    check_refused(&outcome, &["file", "--data"]);
}

#[test]
fn a_damaged_log_is_refused_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &["--group-size", "2"]);
    let client = server.client();
    for n in 0..20 {
        assert_eq!(client.post("/buffer/write", &item(&format!("u{n}"), "a", 0.5)).0, 200);
    }
    server.kill();
    let log = dir.path().join("data/runs/default/00000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[100] ^= 0xff;
    std::fs::write(&log, &bytes).unwrap();
    let outcome = serve(dir.path(), &["--listen", "127.0.0.1:0", "--data", "data"]);
    check_refused(&outcome, &["corrupt", "00000001.log", "copy"]);
    assert!(std::fs::read(&log).unwrap() == bytes);
}

#[test]
fn a_server_that_is_asked_to_stop_finishes_and_comes_back_with_everything() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--group-size", "2"]);
    let client = server.client();
    assert_eq!(client.post("/buffer/write", &item("u1", "a", 0.0)).0, 200);
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(dir.path(), &[]);
    assert_eq!(server.client().get("/api/runs/default/rollouts/u1").1["state"], "held");
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains("recovered run default: 1 rollouts on its books, 1 held"), "{log}");
}

#[test]
fn a_waiting_reader_does_not_keep_a_server_from_stopping() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let client = server.client();
    let waiting =
        std::thread::spawn(move || client.try_post("/api/runs/default/lease", r#"{"wait_seconds": 60}"#));
    // Time enough to ask, measured in answers.
    let client = server.client();
    assert!((0..50).all(|_| client.get("/healthz").0 == 200));
    assert_eq!(server.stop(), Some(0));
    // Told that nothing will come, or cut off before it could ask: not left waiting for a minute.
    let answer = waiting.join().unwrap();
    assert!(answer.is_none_or(|(status, body)| status == 200 && body["lease"].is_null()));
}

#[test]
fn a_token_is_asked_for_where_one_is_set() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "s3cret\n").unwrap();
    let mut server = Server::start(dir.path(), &["--token-file", "token"]);
    assert_eq!(server.client().get("/api/runs").0, 401);
    server.token = Some("s3cret".to_owned());
    assert_eq!(server.client().get("/api/runs").0, 200);
}

#[test]
fn task_types_can_be_made_known() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--allow-task-type", "code", "--task-type", "agent"]);
    let client = server.client();
    for (task, refused) in [
        ("code", json!(null)),
        ("agent", json!(null)),
        // The built-in task is known, and needs an engine.
        ("math", json!("missing_field")),
        ("poetry", json!("unknown_task_type")),
    ] {
        let (_, answer) = client.post("/start_rollout", &json!({"task_type": task}));
        assert_eq!(answer["error"]["code"], refused, "{task}");
    }
}
