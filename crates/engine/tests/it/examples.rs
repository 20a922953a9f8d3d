//! What `examples/` shows, run as it stands.

use rollyard_test_engine::{Settings, TestEngine};
use std::path::Path;

#[path = "../../examples/single_turn.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod single_turn;

/// The folder of a small model that speaks ChatML.
pub(crate) fn model() -> tempfile::TempDir {
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures"));
    let dir = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("tokens/chatml/tokenizer.json", "tokenizer.json"),
        ("templates/chatml.jinja", "chat_template.jinja"),
    ] {
        std::fs::copy(fixtures.join(from), dir.path().join(to)).unwrap();
    }
    dir
}

#[tokio::test]
async fn single_turn_shows_every_group_with_rewards_and_versions() {
    // Tokens that the model's tokenizer knows.
    let settings = Settings { vocabulary: 600, stop_one_in: 20, version: 3, ..Settings::default() };
    let engine = TestEngine::start(settings).await.unwrap();
    let mut out = Vec::new();
    single_turn::run(&engine.url(), model().path(), &mut out).await.unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    let [groups @ .., last] = lines.as_slice() else { panic!("nothing was shown") };
    assert_eq!(*last, "4 accepted, 0 rejected, 0 failed");
    assert_eq!(groups.len(), 4, "{out}");
    for group in groups {
        let (rewards, rest) = group.split_once("rewards ").unwrap().1.split_once("; ").unwrap();
        assert_eq!(rewards.split(' ').filter_map(|reward| reward.parse::<f64>().ok()).count(), 4, "{group}");
        assert!(rest.ends_with(" tokens, version 3"), "{group}");
    }
    assert_eq!(engine.counters().requests, 16);
}
