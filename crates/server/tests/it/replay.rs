//! Runs that are sampled: steps, batches, ranks, retries.

use super::server::{Server, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

const RUN: &str = "/api/runs/r";

fn server(config: Value) -> Server {
    let server = Server::start(json!({}));
    let mut all = json!({"mode": "replay", "group_size": 2, "max_rollout_step_delay": 2});
    all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let (status, made) = server.post("/api/runs", json!({"name": "r", "config": all}));
    assert_eq!(status, 201, "{made}");
    server
}

fn item(uid: &str, instance: &str, version: u64, reward: f64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    json!({"uid": uid, "instance_id": instance, "env_name": "math", "messages": [], "reward": reward,
           "weight_version": version, "timestamp": now, "response_tokens": [1, 2, 3]})
}

/// Writes pairs of one instance each.
fn write(server: &Server, instances: std::ops::Range<usize>, version: u64) {
    let lines: String = instances
        .flat_map(|n| (0..2).map(move |m| item(&format!("{n}-{m}"), &n.to_string(), version, f64::from(m))))
        .map(|item| item.to_string() + "\n")
        .collect();
    let (status, answer) = server.send(&format!("{RUN}/rollouts"), lines.as_bytes(), &[]);
    assert_eq!((status, &answer["rejected_total"]), (200, &json!(0)), "{answer}");
}

fn sample(server: &Server, ask: Value) -> Value {
    let (status, answer) = server.post(&format!("{RUN}/sample"), ask);
    assert_eq!(status, 200, "{answer}");
    answer
}

fn uids(answer: &Value) -> Vec<String> {
    let rollouts = answer["rollouts"].as_array().unwrap();
    rollouts.iter().map(|rollout| rollout["uid"].as_str().unwrap().to_owned()).collect()
}

fn usage(server: &Server, uid: &str) -> Value {
    server.get(&format!("{RUN}/rollouts/{uid}")).1["usage_count"].clone()
}

#[test]
fn a_rollout_is_drawn_with_its_advantage_and_its_uses() {
    let server = server(json!({"max_samples": 2}));
    write(&server, 0..1, 0);
    let batch = sample(&server, json!({"rollouts": 2}));
    let mut rows: Vec<(String, f64, u64, u64)> = batch["rollouts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_u64().unwrap();
            let uid = row["uid"].as_str().unwrap().to_owned();
            (uid, row["advantage"].as_f64().unwrap(), number("usage_count"), number("weight_version"))
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(rows, [("0-0".to_owned(), -1.0, 1, 0), ("0-1".to_owned(), 1.0, 1, 0)]);
    assert_eq!(usage(&server, "0-0"), 1);
    let lease = &batch["lease"];
    assert_eq!(uids(&server.get(&format!("{RUN}/leases/{lease}")).1), uids(&batch));
    assert_eq!(server.post(&format!("{RUN}/leases/{lease}/return"), json!({})).0, 200);
    assert_eq!(usage(&server, "0-0"), 0);
}

#[test]
fn ranks_share_one_batch_and_may_ask_again() {
    let server = server(json!({}));
    write(&server, 0..10, 0);
    let ask = |process_id| {
        sample(&server, json!({"rollouts": 12, "step": 1, "process_id": process_id, "total_processes": 3}))
    };
    let shares: Vec<Vec<String>> = (0..3).map(|rank| uids(&ask(rank))).collect();
    assert!(shares.iter().all(|share| share.len() == 4), "{shares:?}");
    let all: BTreeSet<&String> = shares.iter().flatten().collect();
    assert_eq!(all.len(), 12, "two ranks see the same rollout");
    for rank in [2, 0, 1] {
        let again = ask(rank);
        assert_eq!(uids(&again), shares[rank]);
        assert_eq!((&again["step"], &again["batch_size"]), (&json!(1), &json!(12)));
    }
    // A rank that comes after the ack and a restart still gets its share.
    let lease = ask(0)["lease"].clone();
    assert_eq!(server.post(&format!("{RUN}/leases/{lease}/ack"), json!({})).0, 200);
    let server = server.restart(json!({}));
    let late = sample(&server, json!({"rollouts": 12, "step": 1, "process_id": 1, "total_processes": 3}));
    assert_eq!(uids(&late), shares[1]);
}

#[test]
fn two_servers_with_one_seed_and_history_draw_the_same() {
    let drawn = || {
        let server = server(json!({"seed": 42}));
        write(&server, 0..30, 0);
        (0..3).map(|step| uids(&sample(&server, json!({"rollouts": 8, "step": step})))).collect::<Vec<_>>()
    };
    assert_eq!(drawn(), drawn());
}

#[test]
fn a_trainer_waits_for_enough_and_gets_it_when_it_is_there() {
    let server = server(json!({}));
    write(&server, 0..1, 0);
    assert_eq!(sample(&server, json!({"rollouts": 4}))["lease"], Value::Null);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sample(&server, json!({"rollouts": 4, "wait_seconds": 20, "step": 0})));
        write(&server, 1..2, 0);
        assert_eq!(uids(&waiting.join().unwrap()).len(), 4);
    });
}

#[test]
fn a_reader_that_hangs_up_gives_back_its_draw_unless_others_share_it() {
    use std::io::Write;
    let server = server(json!({}));
    write(&server, 0..2, 0);
    let hang_up = |body: &str| {
        let mut stream = server.connect();
        let head = format!("POST {RUN}/sample HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
    };
    hang_up(r#"{"rollouts": 5, "wait_seconds": 30}"#);
    hang_up(r#"{"rollouts": 5, "wait_seconds": 30, "step": 0}"#);
    write(&server, 2..4, 0);
    eventually("only the shared draw is out", || server.get(RUN).1["leases_out"].as_u64() <= Some(1));
    let batch = sample(&server, json!({"rollouts": 5, "step": 0}));
    assert_eq!(uids(&batch).len(), 5);
}

#[test]
fn steps_make_rollouts_stale_with_a_reason() {
    let server = server(json!({}));
    write(&server, 0..3, 0);
    let (status, done) = server.post(&format!("{RUN}/step"), json!({"step": 3}));
    assert_eq!((status, &done["books"]["dropped_by_reason"]), (200, &json!({"stale_step": 6})));
    write(&server, 3..5, 2);
    let pool = server.get(&format!("{RUN}/pool")).1;
    assert_eq!(
        (&pool["step"], &pool["size"], &pool["ages_in_steps"]),
        (&json!(3), &json!(4), &json!({"1": 4}))
    );
    assert_eq!(pool["lengths"]["math"]["generated"], json!({"count": 10, "mean": 3.0, "boxes": {"3": 10}}));
    assert_eq!(pool["lengths"]["math"]["trained"]["count"], 0);
    let (_, metrics) = server.get("/metrics");
    let text = metrics.as_str().unwrap();
    for line in [
        r#"rollyard_replay_step{run="r"} 3"#,
        r#"rollyard_replay_rollouts{run="r",env="math"} 4"#,
        r#"rollyard_replay_rollouts_behind{run="r",steps="1"} 4"#,
        r#"rollyard_replay_responses{run="r",env="math",side="generated"} 10"#,
        r#"rollyard_rollouts_dropped{run="r",reason="stale_step"} 6"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn commit_and_rewind_give_the_uses_back() {
    let server = server(json!({"max_samples": 3, "keep_commits": 5}));
    write(&server, 0..2, 0);
    for step in 1..=3 {
        let batch = sample(&server, json!({"rollouts": 4}));
        assert_eq!(server.post(&format!("{RUN}/leases/{}/ack", batch["lease"]), json!({})).0, 200);
        assert_eq!(server.post(&format!("{RUN}/commit"), json!({"step": step})).0, 200);
        assert_eq!(usage(&server, "1-1"), step);
    }
    assert_eq!(server.get(&format!("{RUN}/books")).1["trained"], 4);
    assert_eq!(server.post(&format!("{RUN}/rewind"), json!({"step": 1})).0, 200);
    assert_eq!(usage(&server, "1-1"), 1);
    let server = server.restart(json!({}));
    assert_eq!(usage(&server, "1-1"), 1);
}

#[test]
fn wrong_calls_are_named() {
    let server = server(json!({"replay_capacity": 2, "group_size": 1}));
    let path = |call: &str| format!("{RUN}/{call}");
    let one = |change: Value| {
        let mut item = item("a", "i", 0, 0.5);
        item.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.post("/runs/r/buffer/write", item)
    };
    for (answer, status, code, part) in [
        (server.post(&path("sample"), json!({"rollouts": 0})), 400, "wrong_field", "rollouts"),
        (
            server.post(&path("sample"), json!({"rollouts": 3, "process_id": 2})),
            400,
            "wrong_field",
            "process_id",
        ),
        (
            server.post(&path("sample"), json!({"rollouts": 3, "total_processes": 2, "step": 1})),
            400,
            "wrong_field",
            "multiple",
        ),
        (
            server.post(&path("sample"), json!({"rollouts": 2, "total_processes": 2})),
            400,
            "wrong_field",
            "step",
        ),
        (server.post("/api/runs/default/sample", json!({"rollouts": 1})), 409, "wrong_mode", "queue"),
        (server.get("/api/runs/default/pool"), 409, "wrong_mode", "replay"),
        (server.post(&path("lease"), json!({})), 409, "wrong_mode", "replay"),
        (one(json!({"weight_version": 7})), 409, "future_step", "step 0"),
        (one(json!({"weight_version": null})), 400, "missing_metadata", "weight_version"),
        (one(json!({"timestamp": "yesterday"})), 400, "wrong_field", "yesterday"),
        (one(json!({"group_size": 0})), 400, "wrong_field", "group_size"),
        (
            server.post("/api/runs", json!({"name": "x", "config": {"mode": "replay", "max_samples": 0}})),
            400,
            "invalid_setting",
            "max_samples",
        ),
    ] {
        let message = answer.1["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.0, answer.1["error"]["code"].as_str()), (status, Some(code)), "{message}");
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    assert_eq!(server.get(&path("books")).1["admitted"], 0);
    write(&server, 0..2, 0);
    let (status, answer) = server.post(&path("sample"), json!({"rollouts": 3}));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("batch_too_large")), "{answer}");
    assert_eq!(server.post(&path("step"), json!({"step": 4})).0, 200);
    assert_eq!(server.post(&path("step"), json!({"step": 3})).1["error"]["code"], "step_back");
    assert_eq!(server.patch(RUN, json!({"mode": "queue"})).0, 200, "an empty run may change its mode");
}

#[test]
fn groups_may_have_sizes_of_their_own() {
    let server = server(json!({"group_size": 8}));
    for (uid, instance) in [("a", "i"), ("b", "i"), ("c", "i"), ("d", "j")] {
        let mut item = item(uid, instance, 0, 0.5);
        item["group_size"] = json!(if instance == "i" { 3 } else { 1 });
        assert_eq!(server.post("/runs/r/buffer/write", item).0, 200);
    }
    assert_eq!(server.get(&format!("{RUN}/pool")).1["size"], 4);
}

#[test]
fn a_batch_comes_as_arrow_columns_when_it_is_asked_for() {
    use rollyard_store::rollouts::columns::decode;
    let server = server(json!({"max_token_step_delay": 3}));
    for n in 0..4 {
        let mut item = item(&format!("u{n}"), "i", 0, f64::from(n % 2));
        item["group_size"] = json!(4);
        item["prompt_tokens"] = json!([7, 8]);
        item["response_logprobs"] = json!([-0.5, -0.25, n]);
        assert_eq!(server.post("/runs/r/buffer/write", item).0, 200);
    }
    let accept = [("accept", "application/vnd.apache.arrow.stream")];
    let ask = |body: Value| server.bytes(&format!("{RUN}/sample"), body.to_string().as_bytes(), &accept);
    assert_eq!(ask(json!({"rollouts": 8})).0, 204);
    let (status, bytes) = ask(json!({"rollouts": 4, "step": 2, "process_id": 1, "total_processes": 2}));
    assert_eq!(status, 200);
    let decoded = decode(&bytes).unwrap();
    assert_eq!(decoded.damaged, []);
    let json = sample(&server, json!({"rollouts": 4, "step": 2, "process_id": 1, "total_processes": 2}));
    let named: Vec<&str> = decoded.rows.iter().map(|row| row.uid.as_deref().unwrap()).collect();
    assert_eq!(named, uids(&json));
    for (row, told) in decoded.rows.iter().zip(json["rollouts"].as_array().unwrap()) {
        assert_eq!(row.rollout.tokens(), [7, 8, 1, 2, 3]);
        assert_eq!(f64::from(row.advantage.unwrap()), told["advantage"].as_f64().unwrap() as f32 as f64);
        assert_eq!((row.used, row.rollout.metadata.weight_step), (Some(1), 0));
    }
    let about = |key: &str| decoded.about.extras.get(key).map(String::as_str);
    assert_eq!((about("step"), about("oldest_version")), (Some("2"), Some("-1")));
    assert_eq!(about("lease").unwrap(), json["lease"].to_string());
}

#[test]
fn a_rollout_without_tokens_is_no_row_of_columns_and_goes_back() {
    let server = server(json!({}));
    for n in 0..2 {
        let mut item = item(&format!("u{n}"), "i", 0, 0.5);
        item.as_object_mut().unwrap().remove("response_tokens");
        assert_eq!(server.post("/runs/r/buffer/write", item).0, 200);
    }
    let accept = [("accept", "application/vnd.apache.arrow.stream")];
    let (status, answer) = server.send(&format!("{RUN}/sample"), br#"{"rollouts": 2}"#, &accept);
    assert_eq!((status, &answer["error"]["code"]), (406, &json!("no_tokens")), "{answer}");
    eventually("the draw is given back", || server.get(&format!("{RUN}/books")).1["held"] == 2);
}
