//! The yard at work, as it is told to whoever watches.

use super::server::{Server, eventually, item};
use serde_json::{Value, json};

fn live(server: &Server) -> Value {
    let (status, answer) = server.get("/api/live");
    assert_eq!(status, 200, "{answer}");
    answer
}

fn default_run(server: &Server) -> Value {
    live(server)["runs"][0].clone()
}

/// Waits for the first look at the run, so that what follows has something to be compared with.
fn watched(knobs: Value) -> Server {
    let server = Server::start(knobs);
    eventually("two looks", || default_run(&server)["history"]["at_ms"].as_array().unwrap().len() > 1);
    server
}

#[test]
fn groups_are_told_by_where_they_stand() {
    let server = watched(json!({"group_size": 2}));
    for instance in ["a", "b", "c"] {
        server.fill(instance, 2);
    }
    server.post("/buffer/write", item("d-0", "d", 1.0));
    let lease = server.post("/api/runs/default/lease", json!({"groups": 1, "reader": "rank-0"})).1;
    let run = default_run(&server);
    assert_eq!((&run["run"], &run["mode"]), (&json!("default"), &json!("queue")));
    assert_eq!(run["groups"], json!({"open": 1, "posed": 0, "ready": 2, "leased": 1}));
    assert_eq!((&run["books"]["admitted"], &run["books"]["leased"]), (&json!(7), &json!(2)));
    assert_eq!(run["room"]["rollouts"], 7);
    let out = &run["leases"][0];
    assert_eq!(
        (&out["lease"], &out["reader"], &out["groups"], &out["rollouts"]),
        (&lease["lease"], &json!("rank-0"), &json!(1), &json!(2))
    );
    assert!(out["until_ms"].as_u64() > out["granted_ms"].as_u64());
    let open = &run["open"][0];
    assert_eq!((&open["instance"], &open["have"], &open["want"]), (&json!("d"), &json!(1), &json!(2)));
    // Seven since the first look, whenever that was.
    assert!(run["rates"]["admitted"].as_f64().unwrap() > 0.0, "{}", run["rates"]);
    assert!(run["rates"]["read"].as_f64().unwrap() > 0.0, "{}", run["rates"]);
    assert_eq!(run["stuck"], json!([]));
}

#[test]
fn the_history_has_what_came_and_can_be_asked_for_in_parts() {
    let server = watched(json!({"group_size": 2}));
    server.fill("a", 2);
    let saw = |run: &Value| {
        run["history"]["admitted"].as_array().unwrap().iter().any(|rate| rate.as_f64().unwrap() > 0.0)
    };
    eventually("the write in the history", || saw(&default_run(&server)));
    let run = default_run(&server);
    let history = run["history"].as_object().unwrap();
    let lengths: Vec<usize> = history.values().map(|column| column.as_array().unwrap().len()).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0] && *length > 1), "{history:?}");
    assert_eq!(history["ready"].as_array().unwrap().last().unwrap(), 1);
    let last = history["at_ms"].as_array().unwrap().last().unwrap();
    let later = server.get(&format!("/api/live?after_ms={last}")).1;
    let later = later["runs"][0]["history"]["at_ms"].as_array().unwrap();
    assert!(later.iter().all(|at| at.as_u64() > last.as_u64()), "{later:?} after {last}");
    for query in ["after_ms=soon", "since=7"] {
        let (status, answer) = server.get(&format!("/api/live?{query}"));
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("after_ms"), "{answer}");
    }
}

#[test]
fn staleness_is_told_once_somebody_says_the_version() {
    let server = Server::start(json!({"group_size": 1, "validate": "sized"}));
    assert_eq!(default_run(&server)["staleness"], Value::Null);
    let write = |uid: &str, version: u64| {
        let mut item = item(uid, uid, 1.0);
        item["weight_version"] = json!(version);
        let (status, answer) = server.post("/buffer/write", item);
        assert_eq!(status, 200, "{answer}");
    };
    for (uid, version) in [("a", 3), ("b", 5), ("c", 5)] {
        write(uid, version);
    }
    assert_eq!(server.post("/api/runs/default/version", json!({"version": 5})).0, 200);
    // A count is kept for some seconds.
    eventually("the count", || !default_run(&server)["staleness"].is_null());
    assert_eq!(
        default_run(&server)["staleness"],
        json!({
            "unit": "versions",
            "behind": [{"behind": 0, "rollouts": 2}, {"behind": 2, "rollouts": 1}],
            "unknown": 0,
            "left_out": 0,
        })
    );
}

#[test]
fn a_full_run_and_groups_that_all_go_are_stuck() {
    let server = watched(json!({"group_size": 2, "max_buffer_size": 4, "when_full": "reject"}));
    let kinds = |server: &Server| -> Vec<String> {
        let run = default_run(server);
        let stuck = run["stuck"].as_array().unwrap();
        for one in stuck {
            for part in ["what", "why", "next"] {
                assert!(one[part].as_str().unwrap().ends_with('.'), "{one}");
            }
        }
        stuck.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&server), [""; 0]);
    for uid in ["same-0", "same-1"] {
        server.post("/buffer/write", item(uid, "same", 1.0));
    }
    assert_eq!(kinds(&server), ["all_dropped"]);
    assert_eq!(default_run(&server)["books"]["dropped_by_reason"], json!({"no_variance": 2}));
    server.fill("a", 2);
    server.fill("b", 2);
    assert_eq!(kinds(&server), ["full"]);
}

#[test]
fn a_run_that_samples_tells_its_pool_and_whom_the_limiter_holds() {
    let knobs = json!({"mode": "replay", "group_size": 1, "limiter": "queue", "limiter_size": 2, "when_full": "reject"});
    let server = Server::start(knobs);
    for uid in ["a", "b"] {
        let mut item = item(uid, uid, 1.0);
        item["weight_version"] = json!(0);
        let (status, answer) = server.post("/buffer/write", item);
        assert_eq!(status, 200, "{answer}");
    }
    let run = default_run(&server);
    assert_eq!((&run["mode"], &run["pool"], &run["step"]), (&json!("replay"), &json!(2), &json!(0)));
    assert_eq!(run["staleness"]["behind"], json!([{"behind": 0, "rollouts": 2}]));
    assert_eq!(run["stuck"][0]["kind"], "paced");
}

#[test]
fn new_runs_are_watched_too() {
    let server = Server::start(json!({}));
    assert_eq!(server.post("/api/runs", json!({"name": "other"})).0, 201);
    eventually("a look at the new run", || {
        let answer = live(&server);
        let runs = answer["runs"].as_array().unwrap();
        let other = runs.iter().find(|run| run["run"] == "other").unwrap();
        !other["history"]["at_ms"].as_array().unwrap().is_empty()
    });
}
