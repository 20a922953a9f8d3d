//! Files of problems, good and bad.

use rollyard_engine::task::{MathTask, StartPayload};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

use super::{MemoryShelf, Problems, begin, engine, four, payload, run};

fn prepare(fields: &Map<String, Value>) -> Result<MathTask, String> {
    MathTask::prepare(StartPayload::parse(fields).unwrap()).map_err(|error| error.to_string())
}

const GOOD: &str = r#"{"instance_id": "a", "prompt": "?", "label": 4}"#;

/// A line, and what is said about it.
const BAD: [(&str, &str); 13] = [
    ("{\"instance_id\": ", "is not JSON"),
    ("[1]", "is [1], but must be a JSON object"),
    (r#"{"prompt": "?", "label": 4}"#, "has no instance_id; `rollyard assign-ids --input "),
    (
        r#"{"instance_id": null, "prompt": "?", "label": 4}"#,
        "has no instance_id; `rollyard assign-ids --input ",
    ),
    (r#"{"instance_id": 1.5, "prompt": "?", "label": 4}"#, "has instance_id 1.5, but it must be"),
    (r#"{"instance_id": "", "prompt": "?", "label": 4}"#, "has instance_id \"\""),
    (r#"{"instance_id": "b", "label": 4}"#, "no field \"messages\", \"prompt\""),
    (r#"{"instance_id": "b", "prompt": 5, "label": 4}"#, "field \"prompt\" is 5"),
    (r#"{"instance_id": "b", "prompt": [{"content": "?"}], "label": 4}"#, "field \"prompt[0]\""),
    (r#"{"instance_id": "b", "prompt": "?"}"#, "has no label to compare answers with"),
    (r#"{"instance_id": "b", "prompt": "?", "label": null}"#, "has label null"),
    (
        r#"{"instance_id": "b", "prompt": "?", "label": [4]}"#,
        "has label [4], but it must be a text or a number",
    ),
    (r#"{"instance_id": "b", "input_ids": [5], "label": 4}"#, "has no prompt"),
];

#[test]
fn a_bad_first_line_is_told_before_anything_is_begun() {
    for (line, says) in BAD {
        let problems = Problems::of(&format!("\n  \n{line}\n{GOOD}\n"));
        let error = prepare(&payload("http://h:1", &problems.path(), json!({}))).unwrap_err();
        assert!(error.starts_with("line 3 ") && error.contains(says), "{line}: {error}");
        assert!(error.contains(problems.path().to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_bad_line_further_down_is_told_before_the_first_rollout() {
    let server = engine(four()).await;
    let same = r#"{"instance_id": "a", "prompt": "again?", "label": 4}"#;
    let twice = "lines 1 and 3 have the same instance_id \"a\"";
    for (line, says) in BAD.into_iter().chain([(same, twice)]) {
        let problems = Problems::of(&format!("{GOOD}\n\n{line}\n"));
        let shelf = Arc::new(MemoryShelf::default());
        let running = begin(&payload(&server.url(), &problems.path(), json!({})), &shelf);
        let error = running.end().await.unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("3 "), "{line}: {error}");
        assert_eq!((shelf.len(), server.counters().requests), (0, 0));
    }
}

#[tokio::test]
async fn one_and_the_text_one_are_the_same_problem() {
    let server = engine(four()).await;
    let problems = Problems::of(
        "{\"instance_id\": 1, \"prompt\": \"?\", \"label\": 4}\n{\"instance_id\": \"1\", \"prompt\": \"?\", \"label\": 4}",
    );
    let shelf = Arc::new(MemoryShelf::default());
    let running = begin(&payload(&server.url(), &problems.path(), json!({})), &shelf);
    let error = running.end().await.unwrap_err().to_string();
    assert!(error.contains("lines 1 and 2 have the same instance_id \"1\""), "{error}");
}

#[test]
fn a_file_that_is_missing_or_empty_is_named() {
    let missing = Path::new("/nowhere/problems.jsonl");
    let error = prepare(&payload("http://h:1", missing, json!({}))).unwrap_err();
    assert!(error.contains("cannot be read") && error.ends_with("/nowhere/problems.jsonl"), "{error}");
    let empty = Problems::of("\n\n");
    let error = prepare(&payload("http://h:1", &empty.path(), json!({}))).unwrap_err();
    assert!(error.contains("has no line") && error.ends_with("problems.jsonl"), "{error}");
}

#[tokio::test]
async fn endings_of_windows_and_a_missing_last_one_are_lines_too() {
    let server = engine(four()).await;
    let problems = Problems::of(&format!("{GOOD}\r\n{}", GOOD.replace("\"a\"", "7")));
    let shelf = Arc::new(MemoryShelf::default());
    run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await;
    assert_eq!(shelf.uids().into_iter().collect::<Vec<_>>(), ["7:0:0", "a:0:0"]);
}
