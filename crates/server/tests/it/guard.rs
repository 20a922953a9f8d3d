//! Who gets in.

use super::server::{Server, item, read_all};
use rollyard_server::Settings;
use serde_json::json;
use std::io::Write;

fn raw(server: &Server, headers: &str) -> String {
    let mut stream = server.connect();
    let request = format!("GET /buffer/stats HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read_all(&mut stream)
}

#[test]
fn a_server_with_a_token_answers_nobody_else() {
    let settings = Settings { token: Some("s3cret".to_owned()), ..Settings::default() };
    let server = Server::start_with(json!({}), settings);
    assert_eq!(server.post("/buffer/write", item("a", "i", 1.0)).0, 401);
    assert_eq!(server.get("/api/runs").0, 401);
    assert_eq!(server.get("/metrics").0, 401);
    assert_eq!(server.get("/healthz").0, 200);
    let body = item("a", "i", 1.0).to_string();
    for (given, status) in [("Bearer s3cret", 200), ("Bearer nope", 401), ("Basic dXNlcjpzM2NyZXQ=", 200)] {
        assert_eq!(
            server.send("/buffer/write", body.as_bytes(), &[("authorization", given)]).0,
            status,
            "{given}"
        );
    }
}

#[test]
fn other_names_and_other_pages_are_refused() {
    let server = Server::start(json!({}));
    assert!(raw(&server, "Host: localhost:1\r\n").starts_with("HTTP/1.1 200"));
    assert!(raw(&server, "Host: rebound.example\r\n").starts_with("HTTP/1.1 403"));
    assert!(raw(&server, "Host: localhost\r\nOrigin: http://evil.example\r\n").starts_with("HTTP/1.1 403"));
    assert!(raw(&server, "Host: localhost\r\nOrigin: http://localhost\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn no_path_outside_the_roots_is_looked_at() {
    let inside = tempfile::TempDir::new().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(inside.path().join("prompts.jsonl"), "{}\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.path().join("link.jsonl")).unwrap();
    let settings = Settings { roots: vec![inside.path().to_owned()], ..Settings::default() };
    let server = Server::start_with(json!({}), settings);
    let start =
        |file: String| server.post("/start_rollout", json!({"task_type": "default", "input_file": file}));
    let base = inside.path().display().to_string();
    assert_eq!(start(format!("{base}/prompts.jsonl")).0, 200);
    for (file, part) in [
        (outside.path().display().to_string(), "--root"),
        ("/etc/passwd".to_owned(), "--root"),
        (format!("{base}/../../etc/passwd"), "--root"),
        (format!("{base}/link.jsonl"), "--root"),
        (format!("{base}/none.jsonl"), "no such file"),
        (base.clone(), "not a file"),
    ] {
        let (status, body) = start(file.clone());
        assert_eq!(status, 400);
        assert!(body["error"]["message"].as_str().unwrap().contains(part), "{file}: {body}");
    }
    // Whether a file outside exists cannot be told from the answer.
    let there =
        start("/etc/passwd".to_owned()).1["error"]["message"].as_str().unwrap().replace("/etc/passwd", "");
    let not_there =
        start("/etc/nope".to_owned()).1["error"]["message"].as_str().unwrap().replace("/etc/nope", "");
    assert_eq!(there, not_there);
}
