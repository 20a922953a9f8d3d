//! What a read returns, to the field and the number.

use super::server::{Server, item};
use serde_json::{Value, json};

fn close(actual: &Value, expected: f64) {
    let actual = actual.as_f64().unwrap();
    assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
}

#[test]
fn rewards_are_normalised_and_the_raw_one_is_kept() {
    let server = Server::start(json!({"group_size": 4}));
    for (n, reward) in [1.0, 0.0, 0.0, 1.0].into_iter().enumerate() {
        server.post("/buffer/write", item(&n.to_string(), "a", reward));
    }
    let rows = server.read(json!({}));
    for (row, raw) in rows.iter().zip([1.0, 0.0, 0.0, 1.0]) {
        close(&row["raw_reward"], raw);
        close(&row["reward"], if raw > 0.5 { 1.0 } else { -1.0 });
        assert_eq!(row["extra_info"], json!({"k": 1}));
        assert_eq!(row["messages"][1]["content"], "4");
        assert!(row.get("padded").is_none());
    }
}

#[test]
fn short_groups_are_padded_by_marked_copies_that_keep_the_sum() {
    let server =
        Server::start(json!({"group_size": 4, "normalize": "none", "min_valid_item_size_ratio": 0.5}));
    for (n, reward) in [0.25, 0.5, 1.0, -1.0].into_iter().enumerate() {
        server.post("/buffer/write", item(&n.to_string(), "a", reward));
    }
    let rows = server.read(json!({}));
    // Three of four are valid: rewards times 4/3, the first halved with its copy.
    let expected = [0.25 * 4.0 / 6.0, 0.5 * 4.0 / 3.0, 4.0 / 3.0, 0.25 * 4.0 / 6.0];
    for (row, expected) in rows.iter().zip(expected) {
        close(&row["reward"], expected);
    }
    assert_eq!(rows[3]["uid"], "0#pad1");
    assert_eq!(rows[3]["padded"], true);
}

#[test]
fn mask_padding_adds_rows_without_weight() {
    let server = Server::start(
        json!({"group_size": 4, "normalize": "none", "pad": "mask", "min_valid_item_size_ratio": 0.5}),
    );
    for (n, reward) in [0.25, 0.5, 1.0, -1.0].into_iter().enumerate() {
        server.post("/buffer/write", item(&n.to_string(), "a", reward));
    }
    let rows = server.read(json!({}));
    close(&rows[0]["reward"], 0.25);
    close(&rows[3]["loss_weight"], 0.0);
    close(&rows[3]["reward"], 0.0);
}

#[test]
fn meta_info_tells_of_all_raw_data_since_the_last_read() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    server.post("/buffer/write", item("x", "same", 1.0));
    server.post("/buffer/write", item("y", "same", 1.0));
    server.post("/buffer/write", item("z", "open", 0.5));
    let answer = server.post("/get_rollout_data", json!({})).1;
    let meta = &answer["data"]["meta_info"];
    assert_eq!((&meta["total_samples"], &meta["num_groups"]), (&json!(5), &json!(3)));
    close(&meta["avg_reward"], 0.7);
    close(&meta["reward_std"], 0.2f64.sqrt());
    assert_eq!((&meta["reward_min"], &meta["reward_max"]), (&json!(0.0), &json!(1.0)));
    assert_eq!(meta["finished_groups"], json!(["a", "same"]));

    server.fill("b", 2);
    let meta = &server.post("/get_rollout_data", json!({})).1["data"]["meta_info"];
    assert_eq!(meta["total_samples"], 2);
}

#[test]
fn too_few_is_an_answer_and_not_an_error() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    let (status, answer) = server.post("/get_rollout_data", json!({"batch_size": 3}));
    assert_eq!((status, &answer["success"], &answer["data"]["data"]), (200, &json!(false), &json!([])));
    let (_, answer) = server.post("/buffer/read", json!({"batch_size": 3, "timeout": 0.05, "wait": true}));
    assert_eq!(answer["success"], false);
    assert_eq!(server.read(json!({"batch_size": "2"})).len(), 2);
}

#[test]
fn a_peek_takes_nothing() {
    let server = Server::start(json!({"group_size": 2}));
    assert_eq!(server.get("/buffer/peek").1["success"], false);
    server.fill("a", 2);
    server.fill("b", 2);
    let peeked = server.get("/buffer/peek?batch_size=2").1;
    assert_eq!(peeked["data"]["data"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/buffer/stats").1["current_size"], 4);
    assert_eq!(peeked["data"]["data"], Value::from(server.read(json!({"batch_size": 2}))));
}

#[test]
fn math_groups_are_judged_by_their_answers() {
    let server = Server::start_for_math_from_outside(json!({}));
    server.post("/start_rollout", json!({"task_type": "math", "num_repeat_per_sample": 2}));
    // Equal rewards, but answered: valid for math.
    server.post("/buffer/write", item("a", "i", 1.0));
    server.post("/buffer/write", item("b", "i", 1.0));
    assert_eq!(server.read(json!({})).len(), 2);
    let mut silent = item("c", "j", 1.0);
    silent["messages"][1]["content"] = json!("");
    server.post("/buffer/write", silent);
    server.post("/buffer/write", item("d", "j", 0.0));
    assert_eq!(server.books()["dropped_by_reason"]["too_few_answers"], 2);
}

#[test]
fn bad_reads_are_refused_by_field_and_value() {
    let server = Server::start(json!({}));
    for (body, field, value) in [
        (json!({"batch_size": 0}), "batch_size", "0"),
        (json!({"batch_size": -2}), "batch_size", "-2"),
        (json!({"batch_size": "many"}), "batch_size", "many"),
        (json!({"timeout": -1}), "timeout", "-1"),
        (json!({"wait": "yes"}), "wait", "yes"),
    ] {
        let (status, answer) = server.post("/buffer/read", body);
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.contains(field) && message.contains(value), "{message}");
    }
    assert_eq!(server.send("/get_rollout_data", b"[1]", &[]).0, 400);
    assert_eq!(server.send("/get_rollout_data", b"{", &[]).0, 400);
    assert_eq!(server.get("/buffer/peek?batch_size=x").0, 400);
}
