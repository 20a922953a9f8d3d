//! What goes wrong with the buffer we replace, one test each, by name.

use super::server::{Server, eventually, item, post_raw};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, Instant};

#[test]
fn read_of_four_leaves_the_other_groups() {
    let server = Server::start(json!({"group_size": 4}));
    for n in 0..10 {
        server.fill(&format!("i{n}"), 4);
    }
    assert_eq!(server.read(json!({"batch_size": 4})).len(), 4);
    assert_eq!(server.get("/buffer/stats").1["current_size"], 36);
    let mut uids = BTreeSet::new();
    for _ in 0..9 {
        uids.extend(server.read(json!({"batch_size": 4})).iter().map(|row| row["uid"].to_string()));
    }
    assert_eq!(uids.len(), 36);
}

#[test]
fn a_reader_that_hangs_up_in_the_middle_does_not_lose_its_batch() {
    let server = Server::start(json!({"group_size": 2}));
    let long = "x".repeat(400_000);
    for n in 0..40 {
        let mut rollout = item(&n.to_string(), &(n / 2).to_string(), f64::from(n % 2));
        rollout["messages"][1]["content"] = json!(long);
        assert_eq!(server.post("/buffer/write", rollout).0, 200);
    }
    let mut reader = server.connect();
    post_raw(&mut reader, "/get_rollout_data", "{}");
    reader.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!(server.books()["leased"], 40);
    drop(reader);
    eventually("the batch is back", || server.books()["held"] == 40);
    assert_eq!(server.read(json!({})).len(), 40);
}

#[test]
fn a_reader_that_dies_with_a_small_answer_unread_does_not_lose_it() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    let mut reader = server.connect();
    post_raw(&mut reader, "/get_rollout_data", "{}");
    // The first byte shows that the answer is on its way; the rest stays unread in this socket.
    reader.read_exact(&mut [0; 1]).unwrap();
    drop(reader);
    eventually("the batch is back", || server.books()["held"] == 2);
    assert_eq!(server.read(json!({})).len(), 2);
}

#[test]
fn a_reader_that_hangs_up_while_waiting_takes_nothing() {
    let server = Server::start(json!({"group_size": 2}));
    let mut reader = server.connect();
    post_raw(&mut reader, "/buffer/read", r#"{"batch_size": 2, "wait": true, "timeout": 20}"#);
    drop(reader);
    server.fill("a", 2);
    eventually("the group is free", || {
        let books = server.books();
        books["leased"] == 0 && books["held"] == 2
    });
    assert_eq!(server.read(json!({})).len(), 2);
}

#[test]
fn a_delivered_read_is_acked_for_the_client() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    assert_eq!(server.read(json!({})).len(), 2);
    eventually("the read is acked", || server.books()["trained"] == 2);
    assert_eq!(server.read(json!({})).len(), 0);
}

#[test]
fn a_bad_item_does_not_break_later_reads() {
    let server = Server::start(json!({"group_size": 2}));
    for bad in [
        r#"{"uid":"x","instance_id":"a","messages":"none","reward":1}"#,
        r#"{"uid":"x","instance_id":"a","messages":[],"reward":"high"}"#,
        r#"{"uid":"x","instance_id":"a","messages":[]}"#,
        r#"{"uid":"x","messages":[],"reward":1}"#,
        r#"[]"#,
        "not json",
        "",
    ] {
        let (status, body) = server.send("/buffer/write", bad.as_bytes(), &[]);
        assert_eq!(status, 400, "{bad}: {body}");
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    server.fill("a", 2);
    assert_eq!(server.read(json!({})).len(), 2);
    assert_eq!(server.books()["admitted"], 2);
}

#[test]
fn a_failing_step_drops_its_group_and_keeps_the_rest() {
    let server = Server::start(json!({"group_size": 4}));
    // Three of four fail the filter: that group cannot be used.
    for (n, reward) in [1.0, -1.0, -1.0, 0.0].into_iter().enumerate() {
        server.post("/buffer/write", item(&format!("bad{n}"), "bad", reward));
    }
    server.fill("good", 4);
    let rows = server.read(json!({}));
    assert!(rows.iter().all(|row| row["instance_id"] == "good"));
    assert_eq!(rows.len(), 4);
    assert_eq!(server.books()["dropped_by_reason"]["too_few_valid"], 4);
}

#[test]
fn a_blocked_read_does_not_block_the_writes_that_wake_it() {
    let server = Server::start(json!({"group_size": 2}));
    let url = server.url("/buffer/read");
    let reader = std::thread::spawn(move || {
        let body = json!({"batch_size": 2, "timeout": 20, "wait": true}).to_string();
        let mut response = ureq::post(url).send(body).unwrap();
        response.body_mut().read_json::<serde_json::Value>().unwrap()
    });
    server.fill("a", 2);
    assert_eq!(reader.join().unwrap()["data"]["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_full_buffer_does_not_deadlock() {
    let server = Server::start(
        json!({"group_size": 2, "max_buffer_size": 2, "when_full": "wait", "full_wait_seconds": 20}),
    );
    server.fill("a", 2);
    let url = server.url("/buffer/write");
    let writer = std::thread::spawn(move || {
        ureq::post(url).send(item("late", "b", 1.0).to_string()).unwrap().status().as_u16()
    });
    assert_eq!(server.read(json!({})).len(), 2);
    assert_eq!(writer.join().unwrap(), 200);
    assert_eq!(server.books()["held"], 1);
}

#[test]
fn a_full_buffer_can_refuse_with_a_time_to_retry() {
    for when_full in [json!({"when_full": "reject"}), json!({"when_full": "wait", "full_wait_seconds": 0.05})]
    {
        let mut knobs = json!({"group_size": 2, "max_buffer_size": 2});
        knobs.as_object_mut().unwrap().extend(when_full.as_object().unwrap().clone());
        let server = Server::start(knobs);
        server.fill("a", 2);
        let response = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let response =
            response.post(server.url("/buffer/write")).send(item("x", "b", 1.0).to_string()).unwrap();
        assert_eq!(response.status().as_u16(), 429);
        assert!(response.headers().contains_key("retry-after"));
        assert_eq!(server.books()["admitted"], 2);
    }
}

#[test]
fn a_byte_limit_counts_too() {
    let server = Server::start(json!({"group_size": 8, "max_buffer_bytes": 500, "when_full": "reject"}));
    assert_eq!(server.post("/buffer/write", item("a", "i", 1.0)).0, 200);
    let (status, body) = server.post("/buffer/write", item(&"b".repeat(400), "i", 1.0));
    assert_eq!((status, &body["error"]["code"]), (413, &json!("too_large")));
    let statuses: Vec<u16> =
        (0..5).map(|n| server.post("/buffer/write", item(&format!("c{n}"), "i", 1.0)).0).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn finished_but_invalid_groups_are_purged() {
    let server = Server::start(json!({"group_size": 2}));
    for n in 0..20 {
        server.post("/buffer/write", item(&n.to_string(), &(n / 2).to_string(), 1.0));
    }
    assert_eq!(server.get("/buffer/stats").1["current_size"], 0);
    assert_eq!(server.books()["dropped_by_reason"]["no_variance"], 20);
}

#[test]
fn a_restart_loses_nothing() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("read", 2);
    server.fill("ready", 2);
    server.post("/buffer/write", item("open", "open", 0.5));
    assert_eq!(server.read(json!({"batch_size": 2})).len(), 2);
    eventually("the read is acked", || server.books()["trained"] == 2);
    let before = server.books();
    let server = server.restart(json!({}));
    assert_eq!(server.books(), before);
    let rows = server.read(json!({}));
    assert!(rows.iter().all(|row| row["instance_id"] == "ready"), "{rows:?}");
    assert_eq!(rows.len(), 2);
    assert_eq!(server.get("/api/runs/default/rollouts/open").1["state"], "held");
}

#[test]
fn a_second_start_drops_nothing() {
    let server = Server::start_for_math_from_outside(json!({"group_size": 2}));
    let payload = json!({"task_type": "math", "num_repeat_per_sample": "2", "num_process": 4});
    let (status, first) = server.post("/start_rollout", payload.clone());
    assert_eq!(
        (status, &first["message"], &first["run"]),
        (200, &json!("Rollout started"), &json!("default"))
    );
    server.fill("a", 2);
    let (status, second) = server.post("/start_rollout", payload);
    assert_eq!((status, &second["changed"]), (200, &json!(false)));
    assert_eq!(server.read(json!({})).len(), 2);
}

#[test]
fn retries_do_not_duplicate() {
    let server = Server::start(json!({"group_size": 2}));
    let rollout = item("same", "a", 1.0);
    let first = server.post("/buffer/write", rollout.clone()).1;
    let second = server.post("/buffer/write", rollout).1;
    assert_eq!(first["data"]["meta_info"], json!({"duplicate": false, "group_size_now": 1}));
    assert_eq!(second["data"]["meta_info"], json!({"duplicate": true, "group_size_now": 1}));
    let (status, taken) = server.post("/buffer/write", item("same", "a", 0.0));
    assert_eq!((status, &taken["error"]["code"]), (409, &json!("uid_taken")));
    assert!(taken["error"]["message"].as_str().unwrap().contains("\"same\""));
    assert_eq!(server.books()["admitted"], 1);
}

#[test]
fn over_full_groups_are_not_returned_over_full() {
    let server = Server::start(json!({"group_size": 2}));
    for n in 0..5 {
        server.post("/buffer/write", item(&n.to_string(), "a", f64::from(n % 2)));
    }
    assert_eq!(server.read(json!({})).len(), 4);
    assert_eq!(server.books()["held"], 1);
}

#[test]
fn epochs_and_weight_versions_do_not_mix_in_a_group() {
    let server = Server::start(json!({"group_size": 2}));
    for (uid, field, value) in [("a", "weight_version", 1), ("b", "weight_version", 2), ("c", "epoch", 7)] {
        let mut rollout = item(uid, "i", f64::from(u8::from(uid == "a")));
        rollout[field] = json!(value);
        assert_eq!(server.post("/buffer/write", rollout).0, 200);
    }
    assert!(server.read(json!({})).is_empty());
    assert_eq!(server.get("/api/runs/default").1["open_groups"], 3);
}

#[test]
fn nan_is_refused_and_named() {
    let server = Server::start(json!({}));
    for word in ["NaN", "Infinity", "-Infinity"] {
        let text = item("x", "a", 0.125).to_string().replace("0.125", word);
        let (status, body) = server.send("/buffer/write", text.as_bytes(), &[]);
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.contains(word) && message.contains("reward"), "{message}");
    }
    assert_eq!(server.books()["admitted"], 0);
}

#[test]
fn timed_out_groups_do_not_skip_the_diversity_check() {
    let server = Server::start(json!({"group_size": 4, "group_timeout_seconds": 0.2}));
    for (uid, instance, reward) in [
        ("a", "same", 1.0),
        ("b", "same", 1.0),
        ("c", "same", 1.0),
        ("d", "mixed", 0.0),
        ("e", "mixed", 1.0),
        ("f", "mixed", 1.0),
    ] {
        server.post("/buffer/write", item(uid, instance, reward));
    }
    eventually("the groups time out", || server.get("/api/runs/default").1["open_groups"] == 0);
    assert_eq!(server.books()["dropped_by_reason"]["no_variance"], 3);
    let rows = server.read(json!({}));
    assert_eq!(rows.iter().filter(|row| row["padded"] == true).count(), 1);
    assert_eq!(rows.len(), 4);
}

#[test]
fn slow_clients_do_not_hold_up_the_others() {
    let server = Server::start(json!({"group_size": 2}));
    let long = "x".repeat(2_000_000);
    for n in 0..8 {
        let mut rollout = item(&n.to_string(), &(n / 2).to_string(), f64::from(n % 2));
        rollout["messages"][1]["content"] = json!(long);
        server.post("/buffer/write", rollout);
    }
    // Readers that never read, and writers that never finish.
    let mut crowd = Vec::new();
    for n in 0..100 {
        let mut stream = server.connect();
        match n % 2 {
            0 => post_raw(&mut stream, "/buffer/read", r#"{"batch_size": 2, "wait": true, "timeout": 60}"#),
            _ => {
                use std::io::Write;
                stream
                    .write_all(
                        b"POST /buffer/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n{",
                    )
                    .unwrap();
            }
        }
        crowd.push(stream);
    }
    let started = Instant::now();
    for n in 0..20 {
        assert_eq!(server.post("/buffer/write", item(&format!("w{n}"), &format!("w{n}"), 1.0)).0, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "twenty writes took {:?}", started.elapsed());
}

#[test]
fn a_damaged_rollout_is_dropped_with_its_reason_and_the_rest_arrives() {
    let server = Server::start(json!({"group_size": 4, "normalize": "none"}));
    for (n, reward) in [1.0, 0.0, 0.5, 0.25].into_iter().enumerate() {
        let mut rollout = item(&n.to_string(), "a", reward);
        rollout["mark"] = json!(format!("mark-of-{n}-{}", "x".repeat(600)));
        server.post("/buffer/write", rollout);
    }
    server.fill("b", 4);
    let runs = server.dir.as_ref().unwrap().path().join("runs/default");
    let server = server.restart_after(json!({}), || {
        for entry in std::fs::read_dir(&runs).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let mark = bytes.windows(9).position(|window| window == b"mark-of-2");
            if path.extension().is_some_and(|kind| kind == "log")
                && let Some(at) = mark
            {
                bytes[at] ^= 1;
                std::fs::write(&path, bytes).unwrap();
            }
        }
    });
    let rows = server.read(json!({}));
    let uids: Vec<&str> = rows.iter().map(|row| row["uid"].as_str().unwrap()).collect();
    assert_eq!(uids, ["0", "1", "3", "0#pad1", "b-0", "b-1", "b-2", "b-3"]);
    assert_eq!(server.books()["dropped_by_reason"]["corrupt"], 1);
    assert_eq!(server.get("/api/runs/default/rollouts/2").1["reason"], "corrupt");
}
