//! What the program finds out about engines.

use crate::program::{Outcome, rollyard, run};
use rollyard_test_engine::{Dialects, Settings, TestEngine};
use serde_json::Value;
use std::net::TcpListener;

fn check(url: &str, flags: &[&str]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let mut program = rollyard(dir.path());
    program.args(["engine", "check", url]).args(flags);
    run(program)
}

/// An engine on a thread of its own, as long as `look` takes.
pub(crate) fn with_engine<T>(settings: Settings, look: impl FnOnce(&str) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let engine = runtime.block_on(TestEngine::start(settings)).unwrap();
    look(&engine.url())
}

/// The words of each row.
fn rows(outcome: &Outcome) -> Vec<(String, bool)> {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let row = |line: &str| {
        let (what, rest) = line.split_at(17);
        (what.trim_end().to_owned(), rest.starts_with("yes"))
    };
    outcome.stdout.lines().map(row).collect()
}

#[test]
fn each_dialect_is_found_out_with_what_it_can_do() {
    let every = ["reachable", "dialect", "model", "token ids in", "token ids out", "log-probs"];
    for (settings, dialect, missing) in [
        (Settings { dialects: Dialects::Sglang, ..Settings::default() }, "sglang", &[][..]),
        (
            Settings {
                dialects: Dialects::Sglang,
                gives_version: false,
                can_abort: false,
                ..Settings::default()
            },
            "sglang",
            &["weight versions", "abort"],
        ),
        (Settings { dialects: Dialects::Vllm, ..Settings::default() }, "vllm", &["weight versions"]),
        (
            Settings { dialects: Dialects::Vllm, gives_logprobs: false, ..Settings::default() },
            "vllm",
            &["log-probs", "weight versions", "exact"],
        ),
        (
            Settings { dialects: Dialects::Openai, gives_version: false, ..Settings::default() },
            "openai",
            &["token ids in", "token ids out", "log-probs", "weight versions", "abort", "exact"],
        ),
    ] {
        let outcome = with_engine(settings, |url| check(url, &[]));
        let rows = rows(&outcome);
        assert!(every.iter().all(|what| rows.iter().any(|(row, _)| row == what)), "{outcome:?}");
        let absent: Vec<&str> =
            rows.iter().filter(|(_, found)| !found).map(|(what, _)| what.as_str()).collect();
        assert_eq!(absent, missing, "{dialect}: {}", outcome.stdout);
        assert!(outcome.stdout.lines().nth(1).unwrap().ends_with(dialect), "{}", outcome.stdout);
    }
}

#[test]
fn the_report_is_json_on_request() {
    let outcome =
        with_engine(Settings::default(), |url| check(url, &["--json", "--exact", "--dialect", "vllm"]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["dialect"], "vllm");
    assert_eq!(report["exact"], true);
    assert_eq!(report["model"], "test-model");
    assert_eq!(report["findings"][1]["detail"], "4 tokens came back");
}

#[test]
fn an_engine_that_only_speaks_text_fails_where_exact_is_asked_for() {
    let settings = Settings { dialects: Dialects::Openai, ..Settings::default() };
    let outcome = with_engine(settings, |url| check(url, &["--exact"]));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("this engine is not exact"), "{outcome:?}");
}

#[test]
fn an_engine_that_is_not_there_is_named_with_the_reason() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = check(&address.to_string(), &[]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("the engine cannot be reached (Connection refused"), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("http://{address}/")), "{outcome:?}");
}
