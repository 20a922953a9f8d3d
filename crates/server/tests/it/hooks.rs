//! Groups in the hands of their generator's hooks, with real Python: used, refused, raised at, hung on, killed.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::generators::{PLAIN, Yard, has_line};

/// Takes its orders from the instance: what is to go wrong is in its name.
const OBEDIENT: &str = r#"
import copy, os, time
TASK_TYPE = "obedient"

def run_rollout(data):
    pass

def is_valid_group(group, min_valid_group_size, task_type):
    instance_id, items = group
    assert task_type == "obedient" and min_valid_group_size == 4, (task_type, min_valid_group_size)
    if "raise" in instance_id:
        raise ValueError("not this one")
    if "hang" in instance_id:
        time.sleep(600)
    if "exit" in instance_id:
        os._exit(9)
    return "no" not in instance_id, True

def filter_item(item, task_type):
    return item["reward"] >= 0

def normalize_group_data(group):
    instance_id, items = group
    for item in items:
        item["raw_reward"] = item["reward"]
        item["reward"] = item["reward"] * 10
        item["extra_info"] = {"seen": instance_id}
    if "nan" in instance_id:
        items[0]["reward"] = float("nan")
    return instance_id, items

def pad_group_data(group, group_size):
    instance_id, items = group
    while len(items) < group_size + ("long" in instance_id):
        items.append(copy.deepcopy(items[0]))
    return "nothing" if "shape" in instance_id else (instance_id, items)

def get_group_data_meta_info(temp_data):
    rewards = [item["reward"] for items in temp_data.values() for item in items]
    if any("list" in instance_id for instance_id in temp_data):
        return rewards
    return {"total_samples": len(rewards), "avg_reward": sum(rewards) / max(1, len(rewards)), "mine": True}
"#;

/// A server whose default run goes through the hooks.
fn obedient(knobs: Value) -> Yard {
    let yard = Yard::start(&[("o_generator.py", OBEDIENT)]);
    let mut payload = yard.payload("obedient");
    payload["num_repeat_per_sample"] = json!(4);
    payload.as_object_mut().unwrap().extend(knobs.as_object().unwrap().clone());
    yard.start_rollout(payload);
    yard
}

fn write(yard: &Yard, instance: &str, rewards: [f64; 4]) {
    for (n, reward) in rewards.iter().enumerate() {
        let item = json!({
            "uid": format!("{instance}-{n}"), "instance_id": instance, "reward": reward, "note": "kept",
            "messages": [{"role": "assistant", "content": "!"}],
        });
        let (status, answer) = yard.server.post("/buffer/write", item);
        assert_eq!(status, 200, "{answer}");
    }
}

const REWARDS: [f64; 4] = [0.0, 1.0, 0.5, -1.0];

fn dropped(yard: &Yard, reason: &str, count: u64) {
    yard.eventually(reason, |run| run["books"]["dropped_by_reason"][reason] == count);
}

/// The next read that gets something.
fn read(yard: &Yard) -> Value {
    let (status, answer) = yard.server.post("/buffer/read", json!({"timeout": 30, "wait": true}));
    assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
    answer["data"].clone()
}

#[test]
fn a_reader_gets_what_the_hooks_made_of_the_group() {
    let yard = obedient(json!({}));
    write(&yard, "no", REWARDS);
    write(&yard, "yes", REWARDS);
    dropped(&yard, "hook_rejected", 4);
    let data = read(&yard);
    let rows = data["data"].as_array().unwrap();
    let seen: Vec<(&str, f64, f64)> = rows
        .iter()
        .map(|row| {
            (
                row["uid"].as_str().unwrap(),
                row["reward"].as_f64().unwrap(),
                row["raw_reward"].as_f64().unwrap(),
            )
        })
        .collect();
    let expected = [("yes-0", 0.0, 0.0), ("yes-1", 10.0, 1.0), ("yes-2", 5.0, 0.5), ("yes-0#pad1", 0.0, 0.0)];
    assert_eq!(seen, expected, "{data:#}");
    for row in rows {
        assert_eq!((&row["extra_info"], &row["note"]), (&json!({"seen": "yes"}), &json!("kept")));
    }
    assert_eq!(rows[3]["padded"], true);
    // The group that was refused counts as well.
    let meta = &data["meta_info"];
    assert_eq!(
        meta,
        &json!({
            "total_samples": 8, "avg_reward": 0.125, "mine": true, "finished_groups": ["no", "yes"],
        })
    );
    dropped(&yard, "filtered", 1);
}

#[test]
fn a_hook_that_fails_costs_its_own_group_and_says_why() {
    let yard = obedient(json!({"hook_seconds": 3}));
    let bad = ["raise", "exit", "hang", "nan", "long", "shape"];
    let good = ["one", "two", "three", "four", "five", "six"];
    for (instance, other) in bad.iter().zip(good) {
        write(&yard, instance, REWARDS);
        write(&yard, other, REWARDS);
    }
    dropped(&yard, "hook_failed", 4 * bad.len() as u64);
    let run = yard.eventually("the good ones", |run| run["ready_groups"] == bad.len());
    for (instance, part) in [
        ("raise", "is_valid_group raised ValueError: not this one"),
        ("exit", "the process of the hooks ended"),
        ("hang", "did not return within 3 s (hook_seconds)"),
        ("nan", "reward"),
        ("long", "pad_group_data returned 5"),
        ("shape", "pad_group_data"),
    ] {
        let told = format!("(instance {instance:?}) dropped: ");
        let lines = run["generator"]["log"].as_array().unwrap();
        let line = lines.iter().filter_map(Value::as_str).find(|line| line.contains(&told));
        assert!(line.is_some_and(|line| line.contains(part)), "{instance}: {line:?} in {lines:#?}");
    }
    assert_eq!(read(&yard)["data"].as_array().unwrap().len(), 4 * bad.len());
}

#[test]
fn nobody_waits_for_a_hook_that_hangs() {
    let yard = obedient(json!({"hook_seconds": 600}));
    write(&yard, "good", REWARDS);
    yard.eventually("one to read", |run| run["ready_groups"] == 1);
    write(&yard, "hang", REWARDS);
    yard.eventually("one to judge", |run| run["posed_groups"] == 1);
    // Writes go on, in this run and in others, and so do reads of what was ready.
    for n in 0..20 {
        write(&yard, &format!("later-{n}"), REWARDS);
    }
    let data = read(&yard);
    assert_eq!(data["data"].as_array().unwrap().len(), 4);
    // The statistics are behind the one that hangs; the reader does not wait for them either.
    assert_eq!((&data["meta_info"]["mine"], &data["meta_info"]["num_groups"]), (&Value::Null, &json!(22)));
    assert!(has_line(&yard.generator(), "a read got the built-in statistics"));
}

#[test]
fn a_bad_file_beside_good_ones_disturbs_nobody() {
    let raises = OBEDIENT.replace("\"obedient\"", "\"raises\"").replace("item[\"reward\"] >= 0", "1 / 0");
    let hangs =
        OBEDIENT.replace("\"obedient\"", "\"hangs\"").replace("item[\"reward\"] >= 0", "time.sleep(600)");
    let yard = Yard::start(&[
        ("a_generator.py", PLAIN),
        ("b_generator.py", OBEDIENT),
        ("c_generator.py", &raises),
        ("d_generator.py", &hangs),
        ("e_generator.py", "def run_rollout(data:\n"),
    ]);
    let run = |name: &str| yard.server.get(&format!("/api/runs/{name}")).1;
    for (name, repeats) in [("raises", 4), ("hangs", 4), ("obedient", 4), ("plain", 2)] {
        let mut payload = yard.payload(name);
        payload["num_repeat_per_sample"] = json!(repeats);
        payload["hook_seconds"] = json!(600);
        let (status, answer) = yard.server.post(&format!("/runs/{name}/start_rollout"), payload);
        assert_eq!(status, 200, "{answer}");
    }
    for name in ["raises", "hangs", "obedient"] {
        for n in 0..4 {
            let item = json!({"uid": n.to_string(), "instance_id": "i", "reward": n % 2, "messages": []});
            assert_eq!(yard.server.post(&format!("/runs/{name}/buffer/write"), item).0, 200);
        }
    }
    for (name, path, expected) in [
        ("plain", "/ready_groups", json!(5)),
        ("obedient", "/ready_groups", json!(1)),
        ("raises", "/books/dropped_by_reason/hook_failed", json!(4)),
        ("hangs", "/posed_groups", json!(1)),
    ] {
        let deadline = Instant::now() + Duration::from_secs(60);
        while run(name).pointer(path) != Some(&expected) {
            assert!(Instant::now() < deadline, "{name}: {path} is not {expected}: {:#}", run(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(has_line(&run("raises")["generator"], "filter_item raised ZeroDivisionError"));
}

#[test]
fn statistics_of_the_wrong_shape_do_not_keep_a_reader_from_its_rows() {
    let yard = obedient(json!({}));
    write(&yard, "list", REWARDS);
    let data = read(&yard);
    assert_eq!(data["data"].as_array().unwrap().len(), 4);
    assert_eq!(data["meta_info"]["total_samples"], 4);
    assert!(has_line(&yard.generator(), "get_group_data_meta_info"), "{:#}", yard.generator());
}

#[test]
fn what_the_hooks_said_outlives_a_restart_and_a_return() {
    let mut yard = obedient(json!({}));
    write(&yard, "yes", REWARDS);
    yard.eventually("one to read", |run| run["ready_groups"] == 1);
    let (_, first) = yard.server.post("/api/runs/default/lease", json!({}));
    let lease = first["lease"].as_u64().unwrap();
    yard.server.post(&format!("/api/runs/default/leases/{lease}/return"), json!({}));
    yard.restart();
    let (_, again) = yard.server.post("/api/runs/default/lease", json!({"wait_seconds": 30}));
    assert_eq!(again["groups"], first["groups"]);
    assert_eq!(again["groups"][0]["rollouts"][1]["reward"], 10.0);
}

#[test]
fn groups_wait_for_hooks_that_are_not_there_and_the_run_says_so() {
    let yard = Yard::start(&[]);
    let knobs = json!({"config": {"task_type": "lost", "pad": "hook", "group_size": 4}});
    let (status, answer) = yard.server.post("/api/runs", json!({"name": "alone", "config": knobs["config"]}));
    assert!(status < 300, "{answer}");
    for n in 0..4 {
        let item = json!({"uid": n.to_string(), "instance_id": "i", "reward": n % 2, "messages": []});
        yard.server.post("/runs/alone/buffer/write", item);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, run) = yard.server.get("/api/runs/alone");
        if run["posed_groups"] == 1 && run["generator"]["log"].to_string().contains("--generators DIR") {
            break;
        }
        assert!(Instant::now() < deadline, "{run:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
