//! The small model in the place of an engine.

use crate::program::{Server, rollyard, run};
use rollyard_core::tokens::ModelFiles;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;

fn told(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("log")).unwrap()
}

fn check(dir: &Path, url: &str, flags: &[&str]) -> Value {
    let mut program = rollyard(dir);
    program.args(["engine", "check", url, "--exact", "--json"]).args(flags);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn an_engine_check_finds_nothing_missing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::tiny(dir.path(), &["--listen", "127.0.0.1:0", "--weight-version", "3"]);
    assert!(told(dir.path()).contains("random weights (seed 0)"), "{}", told(dir.path()));
    for dialect in ["sglang", "vllm"] {
        let report = check(dir.path(), &server.url, &["--dialect", dialect]);
        assert_eq!(report["exact"], true, "{report}");
    }
    let report = check(dir.path(), &server.url, &[]);
    assert_eq!((&report["dialect"], &report["model"]), (&json!("sglang"), &json!("rollyard-tiny")));
    let missing = |finding: &&Value| finding["found"] != true;
    assert_eq!(report["findings"].as_array().unwrap().iter().find(missing), None);
    assert!(report["findings"].to_string().contains("it sampled with version 3"), "{report}");
    assert_eq!(server.stop(), Some(0));
}

#[cfg(not(feature = "gguf"))]
#[test]
fn a_build_without_gguf_says_how_to_get_one_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["tiny", "serve", "--gguf", "model.gguf"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("--features gguf`: model.gguf"), "{outcome:?}");
}

#[test]
fn the_seed_says_what_is_sampled() {
    let dir = tempfile::tempdir().unwrap();
    let sample = |seed: &str| {
        let server = Server::tiny(dir.path(), &["--listen", "127.0.0.1:0", "--seed", seed]);
        let (_, answer) = server.client().post("/generate", &json!({"text": "12+34"}));
        answer["output_ids"].clone()
    };
    let first = sample("1");
    assert!(!first.as_array().unwrap().is_empty());
    assert_eq!(sample("1"), first);
    assert_ne!(sample("2"), first);
}

#[test]
fn a_port_that_is_taken_leads_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let server = Server::tiny(dir.path(), &["--listen", &taken.to_string()]);
    let port: u16 = server.url.rsplit(':').next().unwrap().parse().unwrap();
    assert!(port > taken.port(), "{}", server.url);
    let line = format!("port {} is taken, so this is port {port}", taken.port());
    assert!(told(dir.path()).contains(&line), "{}", told(dir.path()));
}

#[test]
fn others_need_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["tiny", "serve", "--listen", "0.0.0.0:0"]);
    let outcome = run(program);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("lets other machines in, so it needs a key"), "{outcome:?}");
    let mut server = Server::tiny(dir.path(), &["--listen", "0.0.0.0:0", "--api-key", "s3cret"]);
    server.url = server.url.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(server.client().get("/v1/models").0, 401);
    server.token = Some("s3cret".to_owned());
    assert_eq!(server.client().get("/v1/models").0, 200);
    check(dir.path(), &server.url, &["--api-key", "s3cret"]);
}

#[test]
fn a_checkpoint_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("junk"), "junk").unwrap();
    for (file, words) in
        [("nowhere", "there is no checkpoint here: nowhere"), ("junk", "this is no checkpoint")]
    {
        let mut program = rollyard(dir.path());
        program.args(["tiny", "serve", "--listen", "127.0.0.1:0", "--checkpoint", file]);
        let outcome = run(program);
        assert!(outcome.code == Some(1) && outcome.stderr.contains(words), "{outcome:?}");
    }
}

#[test]
fn its_tokenizer_serves_other_commands() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["tiny", "tokenizer", "tiny-model"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let file = std::fs::read(dir.path().join("tiny-model/tokenizer.json")).unwrap();
    let words = rollyard_core::tokens::Tokenizer::new(&file, ModelFiles::default()).unwrap();
    assert_eq!(words.encoder().encode("<|user|>12").unwrap().len(), 3);

    let server = Server::tiny(dir.path(), &["--listen", "127.0.0.1:0"]);
    let prompt = json!({"instance_id": "q", "prompt": "6+7", "answer": "13"});
    std::fs::write(dir.path().join("data.jsonl"), prompt.to_string()).unwrap();
    let mut program = rollyard(dir.path());
    program.args(["run", "--input", "data.jsonl", "--engine", &server.url, "--model", "tiny-model"]);
    program.args(["--reward", "exact", "--group-size", "3", "--max-new-tokens", "8", "--out", "out"]);
    let outcome = run(program);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines = std::fs::read_to_string(dir.path().join("out/rollouts.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line["is_exact"] == true), "{lines:?}");
}
