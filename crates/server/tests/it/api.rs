//! The native API: runs, leases, steps, fates, events.

use super::server::{Server, eventually, item};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};

#[test]
fn runs_are_made_configured_and_kept_apart() {
    let server = Server::start(json!({}));
    let (status, made) = server.post("/api/runs", json!({"name": "exp-1", "config": {"group_size": 2}}));
    assert_eq!((status, &made["config"]["group_size"]), (201, &json!(2)));
    assert_eq!(server.post("/api/runs", json!({"name": "exp-1"})).0, 200);
    assert_eq!(server.post("/runs/exp-1/buffer/write", item("a", "i", 1.0)).0, 200);
    assert_eq!(server.get("/runs/exp-1/buffer/stats").1["current_size"], 1);
    assert_eq!(server.get("/buffer/stats").1["current_size"], 0);

    let (status, changed) =
        server.patch("/api/runs/exp-1", json!({"group_timeout_seconds": 5, "pad": "mask"}));
    assert_eq!((status, &changed["config"]["pad"]), (200, &json!("mask")));
    let server = server.restart(json!({}));
    assert_eq!(server.get("/api/runs/exp-1").1["config"]["pad"], "mask");
    assert_eq!(server.get("/api/runs").1.as_array().unwrap().len(), 2);
}

#[test]
fn what_is_unknown_is_said_with_what_is_known() {
    let server = Server::start(json!({}));
    for (answer, status, parts) in [
        (server.get("/api/runs/nope"), 404, ["nope", "default"]),
        (server.post("/runs/nope/buffer/write", item("a", "i", 1.0)), 404, ["nope", "default"]),
        (server.patch("/api/runs/default", json!({"group_sise": 8})), 400, ["group_sise", "group_size"]),
        (server.patch("/api/runs/default", json!({"group_size": 0})), 400, ["group_size", "0"]),
        (server.post("/api/runs", json!({"name": "../x"})), 400, ["../x", "letters"]),
        (server.post("/api/runs", json!({"name": "x", "conf": {}})), 400, ["conf", "config"]),
        (server.post("/start_rollout", json!({"task_type": "chess"})), 400, ["chess", "math"]),
        (server.get("/nowhere"), 404, ["/nowhere", "openapi"]),
        (server.get("/buffer/write"), 405, ["GET", "/buffer/write"]),
        (server.get("/api/runs/default/rollouts/ghost"), 404, ["ghost", "ledger"]),
        (server.post("/api/runs/default/leases/7/ack", json!({})), 404, ["lease 7", "unknown"]),
        (server.post("/api/runs/default/leases/x/ack", json!({})), 400, ["lease", "x"]),
        (server.post("/api/runs/default/lease", json!({"groups": 0})), 400, ["groups", "0"]),
        (server.post("/api/runs/default/lease", json!({"group": 1})), 400, ["group", "groups"]),
        (server.post("/api/runs/default/lease", json!({"wait_seconds": -1})), 400, ["wait_seconds", "-1"]),
        (server.post("/api/runs/default/commit", json!({"step": -1})), 400, ["-1", "u64"]),
    ] {
        let message = answer.1["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.0, status, "{message}");
        for part in parts {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }
    assert_eq!(server.books()["admitted"], 0);
}

fn lease(server: &Server, groups: usize) -> (u64, Vec<String>) {
    let (status, answer) =
        server.post("/api/runs/default/lease", json!({"groups": groups, "reader": "test"}));
    assert_eq!(status, 200, "{answer}");
    let rollouts =
        answer["groups"].as_array().unwrap().iter().flat_map(|g| g["rollouts"].as_array().unwrap());
    let uids = rollouts.map(|rollout| rollout["uid"].as_str().unwrap().to_owned()).collect();
    (answer["lease"].as_u64().unwrap(), uids)
}

#[test]
fn a_lease_is_exclusive_until_acked_or_returned() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    let (no, uids) = lease(&server, 1);
    assert_eq!(uids, ["a-0", "a-1"]);
    assert_eq!(
        server.post("/api/runs/default/lease", json!({"groups": 1})).1,
        json!({"lease": null, "groups": []})
    );
    assert_eq!(server.get("/api/runs/default/leases").1[0]["reader"], "test");
    let again = server.get(&format!("/api/runs/default/leases/{no}")).1;
    assert_eq!(again["groups"][0]["rollouts"][0]["uid"], "a-0");

    assert_eq!(server.post(&format!("/api/runs/default/leases/{no}/return"), json!({})).0, 200);
    let (status, gone) = server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({}));
    assert_eq!((status, &gone["error"]["code"]), (410, &json!("lease_gone")));

    let (no, _) = lease(&server, 1);
    for changed in [true, false] {
        let (status, done) = server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({}));
        assert_eq!((status, &done["changed"]), (200, &json!(changed)));
    }
    assert_eq!(server.books()["trained"], 2);
}

#[test]
fn a_lease_waits_for_its_groups_without_polling() {
    let server = Server::start(json!({"group_size": 2}));
    let url = server.url("/api/runs/default/lease");
    let reader = std::thread::spawn(move || {
        let body = json!({"groups": 2, "wait_seconds": 20}).to_string();
        ureq::post(url).send(body).unwrap().body_mut().read_json::<Value>().unwrap()
    });
    server.fill("a", 2);
    server.fill("b", 2);
    assert_eq!(reader.join().unwrap()["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn an_unacked_lease_expires_and_can_be_extended() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    let short = json!({"groups": 1, "lease_seconds": 0.2});
    let no = server.post("/api/runs/default/lease", short.clone()).1["lease"].as_u64().unwrap();
    eventually("the lease expires", || server.books()["held"] == 2);
    let (status, gone) = server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({}));
    assert_eq!(status, 410);
    assert!(gone["error"]["message"].as_str().unwrap().contains("expired"));

    let no = server.post("/api/runs/default/lease", short).1["lease"].as_u64().unwrap();
    assert_eq!(server.post(&format!("/api/runs/default/leases/{no}/extend"), json!({"seconds": 60})).0, 200);
    assert_eq!(server.post(&format!("/api/runs/default/leases/{no}/extend"), json!({"seconds": 0})).0, 400);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({})).0, 200);
}

#[test]
fn resuming_from_a_checkpoint_loses_nothing_and_repeats_nothing() {
    let server = Server::start(json!({"group_size": 2}));
    let mut trained = Vec::new();
    for (step, name) in ["a", "b", "c"].into_iter().enumerate() {
        server.fill(name, 2);
        let (no, uids) = lease(&server, 1);
        server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({}));
        assert_eq!(server.post("/api/runs/default/commit", json!({"step": step + 1})).0, 200);
        trained.push(uids);
    }
    let server = server.restart(json!({}));
    let (status, rewound) = server.post("/api/runs/default/rewind", json!({"step": 1}));
    assert_eq!((status, &rewound["books"]["trained"]), (200, &json!(2)));
    let (_, again) = lease(&server, 2);
    assert_eq!(again, [trained[1].clone(), trained[2].clone()].concat());
    let (status, refused) = server.post("/api/runs/default/commit", json!({"step": 0}));
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("step_not_after")));
}

#[test]
fn the_fate_of_every_rollout_can_be_asked() {
    let server = Server::start(json!({"group_size": 2}));
    let fate = |uid: &str| server.get(&format!("/api/runs/default/rollouts/{uid}")).1;
    server.fill("a", 2);
    server.post("/buffer/write", item("open", "o", 1.0));
    server.post("/buffer/write", item("s1", "same", 1.0));
    server.post("/buffer/write", item("s2", "same", 1.0));
    server.post("/buffer/write", item("unwanted", "u", 1.0));
    assert_eq!(server.delete("/api/runs/default/rollouts/unwanted").0, 200);
    assert_eq!((&fate("open")["state"], &fate("open")["group"]), (&json!("held"), &json!("open")));
    assert_eq!(fate("a-0")["group"], "ready");
    assert_eq!((&fate("s1")["state"], &fate("s1")["reason"]), (&json!("dropped"), &json!("no_variance")));
    assert_eq!(fate("unwanted")["reason"], "requested");

    let (no, _) = lease(&server, 1);
    assert_eq!((&fate("a-0")["state"], &fate("a-0")["lease"]), (&json!("leased"), &json!(no)));
    assert_eq!(server.delete("/api/runs/default/rollouts/a-0").0, 409);
    server.post(&format!("/api/runs/default/leases/{no}/ack"), json!({}));
    server.post("/api/runs/default/commit", json!({"step": 9}));
    let trained = fate("a-0");
    assert_eq!(
        (&trained["state"], &trained["step"], &trained["can_rewind"]),
        (&json!("trained"), &json!(9), &json!(true))
    );
}

#[test]
fn an_open_group_can_be_closed_by_hand() {
    let server = Server::start(json!({"group_size": 3}));
    server.post("/buffer/write", item("a", "i", 1.0));
    server.post("/buffer/write", item("b", "i", 0.0));
    let (status, books) = server.post("/api/runs/default/close_group", json!({"instance_id": "i"}));
    assert_eq!((status, &books["dropped_by_reason"]["too_few_in_time"]), (200, &json!(2)));
    assert_eq!(server.post("/api/runs/default/close_group", json!({"instance_id": "i"})).0, 404);
}

#[test]
fn versions_are_set_and_shown() {
    let server = Server::start(json!({}));
    assert_eq!(server.post("/api/runs/default/version", json!({"version": 3})).1["changed"], true);
    assert_eq!(server.post("/api/runs/default/version", json!({"version": 3})).1["changed"], false);
    assert_eq!(server.get("/api/runs/default").1["version"], 3);
}

#[test]
fn events_are_told_as_they_happen() {
    let server = Server::start(json!({"group_size": 2}));
    let mut stream = server.connect();
    stream.write_all(b"GET /api/runs/default/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    while !lines.next().unwrap().unwrap().is_empty() {}
    server.fill("a", 2);
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        let line = lines.next().unwrap().unwrap();
        kinds.extend(line.strip_prefix("event: ").map(str::to_owned));
    }
    assert_eq!(kinds, ["Admitted", "Admitted", "GroupReady"]);
}

#[test]
fn every_route_is_described() {
    let server = Server::start(json!({}));
    let description = server.get("/api/openapi.json").1;
    let paths: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    for path in [
        "/buffer/write",
        "/buffer/read",
        "/get_rollout_data",
        "/start_rollout",
        "/buffer/peek",
        "/buffer/stats",
        "/runs/{run}/buffer/write",
        "/api/runs",
        "/api/runs/{run}",
        "/api/runs/{run}/rollouts",
        "/api/runs/{run}/rollouts/{uid}",
        "/api/runs/{run}/lease",
        "/api/runs/{run}/leases/{lease}/ack",
        "/api/runs/{run}/leases/{lease}/return",
        "/api/runs/{run}/commit",
        "/api/runs/{run}/rewind",
        "/api/runs/{run}/version",
        "/api/runs/{run}/books",
        "/api/runs/{run}/events",
    ] {
        assert!(paths.iter().any(|known| *known == path), "{path} is not in {paths:?}");
    }
}

#[test]
fn the_books_are_metrics_too() {
    let server = Server::start(json!({"group_size": 2}));
    server.fill("a", 2);
    server.post("/buffer/write", item("s1", "same", 1.0));
    server.post("/buffer/write", item("s2", "same", 1.0));
    let text = server.get("/metrics").1;
    let text = text.as_str().unwrap();
    for line in [
        r#"rollyard_rollouts{run="default",column="admitted"} 4"#,
        r#"rollyard_rollouts{run="default",column="held"} 2"#,
        r#"rollyard_rollouts_dropped{run="default",reason="no_variance"} 2"#,
        r#"rollyard_groups{run="default",column="ready"} 1"#,
        r#"rollyard_requests_total{method="POST",path="/buffer/write",status="200"} 4"#,
    ] {
        assert!(text.contains(line), "{text}\nlacks {line}");
    }
}

#[test]
fn a_stopping_server_lets_waiting_readers_go() {
    let server = Server::start(json!({}));
    let url = server.url("/api/runs/default/lease");
    let reader = std::thread::spawn(move || {
        let body = json!({"groups": 1, "wait_seconds": 3600}).to_string();
        ureq::post(url).send(body).unwrap().body_mut().read_json::<Value>().unwrap()
    });
    eventually("the reader is connected", || {
        let metrics = server.get("/metrics").1;
        // Its request is counted when it ends, so wait for something that needs the server after it began.
        metrics.is_string()
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    drop(server);
    assert_eq!(reader.join().unwrap()["lease"], Value::Null);
}

#[test]
fn knobs_turned_at_the_same_time_are_all_turned() {
    let server = Server::start(json!({}));
    let changes = [
        json!({"group_size": 3}),
        json!({"pad": "mask"}),
        json!({"normalize": "center"}),
        json!({"keep_commits": 9}),
        json!({"reward_max": 7.5}),
        json!({"lease_seconds": 42.0}),
    ];
    std::thread::scope(|scope| {
        for change in &changes {
            scope.spawn(|| assert_eq!(server.patch("/api/runs/default", change.clone()).0, 200));
        }
    });
    let config = &server.get("/api/runs/default").1["config"];
    for change in &changes {
        for (name, value) in change.as_object().unwrap() {
            assert_eq!(&config[name], value, "{name}");
        }
    }
}
