//! What is made of a problem, and what its item says.

use rollyard_core::wire::{item, rollout};
use rollyard_engine::task::TaskError;
use rollyard_test_engine::{Dialects, Settings, model};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

use super::{MemoryShelf, Problems, begin, engine, four, payload, run, uids};
use crate::examples;

const LONG: &str = "123456789012345678901234567890";

#[tokio::test]
async fn an_item_says_what_was_asked_answered_and_earned() {
    let server = engine(Settings { version: 6, ..four() }).await;
    let problems = Problems::of(&format!(
        r#"{{"instance_id": 7, "prompt": [{{"role": "user", "content": "2 + 2?"}}], "label": "4", "source": {{"id": {LONG}}}}}"#
    ));
    let shelf = Arc::new(MemoryShelf::default());
    let fields =
        payload(&format!("{}/v1", server.url()), &problems.path(), json!({"num_repeat_per_sample": 2}));
    let summary = run(&fields, &shelf).await;
    assert!(!summary.stopped && !summary.exact);
    let item = shelf.item("7:0:1");
    assert_eq!(item["instance_id"], "7");
    assert_eq!(item["epoch"], 0);
    assert_eq!(item["reward"], 1.0);
    assert_eq!(item["weight_version"], 6);
    assert_eq!(
        item["messages"],
        json!([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": r"It is \boxed{4}."}])
    );
    let extra = &item["extra_info"];
    assert_eq!(
        (&extra["label"], &extra["max_tokens"], &extra["temperature"]),
        (&json!("4"), &json!(16), &json!(0.5))
    );
    assert_eq!((&extra["round_number"], &extra["finish_reason"]), (&json!(1), &json!("stop")));
    assert_eq!((&extra["rollout_index"], extra.get("prompt"), extra.get("error")), (&json!(1), None, None));
    let timestamp: f64 = extra["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(timestamp > 1.7e9);
    // To the last digit, which a float would not keep.
    assert!(
        String::from_utf8_lossy(&shelf.bytes("7:0:1")).contains(&format!(r#""source":{{"id": {LONG}}}"#))
    );
}

#[tokio::test]
async fn the_reward_is_that_of_the_maths_verifier() {
    let server = engine(four()).await;
    let labels =
        [("a", json!("4"), 1.0), ("b", json!(5), 0.0), ("c", json!("8/2"), 1.0), ("d", json!("#### 4"), 1.0)];
    let line = |(id, label, _): &(&str, Value, f64)| {
        json!({"instance_id": id, "prompt": "?", "label": label}).to_string()
    };
    let problems = Problems::of(&labels.iter().map(line).collect::<Vec<_>>().join("\n"));
    let shelf = Arc::new(MemoryShelf::default());
    run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await;
    for (id, label, reward) in labels {
        assert_eq!(shelf.item(&format!("{id}:0:0"))["reward"], reward, "{label}");
    }
}

#[tokio::test]
async fn every_epoch_has_every_problem_as_often_as_it_is_repeated() {
    let server = engine(four()).await;
    let problems = Problems::new(5);
    let shelf = Arc::new(MemoryShelf::default());
    let fields =
        payload(&server.url(), &problems.path(), json!({"num_epoch": 2, "num_repeat_per_sample": "3"}));
    let summary = run(&fields, &shelf).await;
    assert_eq!(shelf.uids(), uids(0..5, 2, 3));
    for item in shelf.items() {
        let epoch = item["uid"].as_str().unwrap().split(':').nth(1).unwrap().parse::<u64>().unwrap();
        assert_eq!(item["epoch"], epoch);
    }
    let counts = summary.counts;
    assert_eq!(
        (counts.total, counts.made, counts.written, counts.failed, counts.in_flight),
        (30, 30, 30, 0, 0)
    );
    assert_eq!(counts.line(), "30 of 30 rollouts done");
}

#[tokio::test]
async fn a_group_is_made_together_in_an_order_that_the_seed_draws() {
    let server = engine(four()).await;
    let problems = Problems::new(20);
    let mut orders = Vec::new();
    for seed in [0, 0, 1] {
        let shelf = Arc::new(MemoryShelf::default());
        let over = json!({"num_epoch": 2, "num_repeat_per_sample": 2, "max_concurrent": 1, "seed": seed});
        run(&payload(&server.url(), &problems.path(), over), &shelf).await;
        let order = shelf.order();
        for pair in order.chunks(2) {
            assert_eq!(pair[0].strip_suffix(":0"), pair[1].strip_suffix(":1"));
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    assert_ne!(orders[0], orders[2]);
    let names = |order: &[String]| -> Vec<String> {
        order.iter().map(|uid| uid.split(':').next().unwrap().to_owned()).collect()
    };
    let (first, second) = orders[0].split_at(40);
    assert!(first.iter().all(|uid| uid.contains(":0:")) && second.iter().all(|uid| uid.contains(":1:")));
    assert_ne!(names(first), names(second), "the epochs have orders of their own");
}

#[tokio::test]
async fn each_mention_skips_a_problem_in_one_more_epoch() {
    let server = engine(four()).await;
    let problems = Problems::of(
        &["1", "2", "3"]
            .map(|id| format!(r#"{{"instance_id": {id}, "prompt": "?", "label": 4}}"#))
            .join("\n"),
    );
    let shelf = Arc::new(MemoryShelf::default());
    let over =
        json!({"num_epoch": 3, "num_repeat_per_sample": 2, "skip_instance_ids": ["1", 1, "2", "nobody"]});
    let counts = run(&payload(&server.url(), &problems.path(), over), &shelf).await.counts;
    let mut made: HashMap<String, Vec<u64>> = HashMap::new();
    for item in shelf.items() {
        made.entry(item["instance_id"].as_str().unwrap().into())
            .or_default()
            .push(item["epoch"].as_u64().unwrap());
    }
    assert_eq!(made["1"], [2, 2]);
    assert_eq!(made["2"], [1, 1, 2, 2]);
    assert_eq!(made["3"], [0, 0, 1, 1, 2, 2]);
    assert_eq!((counts.total, counts.skipped, counts.written), (18, 6, 12));
}

#[tokio::test]
async fn with_a_tokenizer_the_tokens_are_those_that_were_sampled() {
    let folder = examples::model();
    for dialects in [Dialects::Sglang, Dialects::Vllm] {
        let server = engine(Settings { dialects, vocabulary: 600, version: 3, ..Settings::default() }).await;
        let problems = Problems::new(2);
        let shelf = Arc::new(MemoryShelf::default());
        let over = json!({"tokenizer_path": folder.path(), "num_repeat_per_sample": 2});
        let summary = run(&payload(&server.url(), &problems.path(), over), &shelf).await;
        assert!(summary.exact);
        let mut answers = Vec::new();
        for uid in shelf.uids() {
            let bytes = shelf.bytes(&uid);
            let made = rollout::decode(&bytes).unwrap();
            // Only SGLang says which weights it has; of the others nobody knows.
            let version = (dialects == Dialects::Sglang).then_some(3);
            assert_eq!(item::decode(&bytes).unwrap().version, version, "{dialects:?}");
            assert_eq!(made.response_tokens().len(), 16);
            let logprobs: Vec<f32> = made.response_tokens().iter().map(|id| model::logprob(*id, 3)).collect();
            assert_eq!(made.response_logprobs(), Some(&logprobs[..]));
            assert_eq!(shelf.item(&uid)["extra_info"]["finish_reason"], "length");
            answers.push(made.response_tokens().to_vec());
        }
        answers.sort();
        answers.dedup();
        assert_eq!(answers.len(), 4, "every rollout has a seed of its own");
    }
}

#[tokio::test]
async fn an_engine_or_a_folder_without_tokens_gives_text() {
    let (folder, nothing) = (examples::model(), tempfile::tempdir().unwrap());
    for (dialects, path) in [
        (Dialects::Openai, folder.path()),
        (Dialects::Sglang, nothing.path()),
        (Dialects::Vllm, "Qwen/Qwen3-4B".as_ref()),
    ] {
        let server = engine(Settings { dialects, ..four() }).await;
        let problems = Problems::new(1);
        let shelf = Arc::new(MemoryShelf::default());
        let summary =
            run(&payload(&server.url(), &problems.path(), json!({"tokenizer_path": path})), &shelf).await;
        assert!(!summary.exact);
        assert_eq!(shelf.item("p_0:0:0")["response_tokens"], Value::Null);
    }
}

#[tokio::test]
async fn a_tokenizer_that_is_there_but_broken_ends_the_task() {
    let server = engine(four()).await;
    let problems = Problems::new(1);
    let folder = examples::model();
    std::fs::write(folder.path().join("tokenizer.json"), "{").unwrap();
    let shelf = Arc::new(MemoryShelf::default());
    let fields = payload(&server.url(), &problems.path(), json!({"tokenizer_path": folder.path()}));
    let error = begin(&fields, &shelf).end().await.unwrap_err();
    assert!(matches!(error, TaskError::Tokenizer { .. }), "{error}");
    assert!(error.to_string().ends_with(folder.path().to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_aborted_goes_on_with_the_rest_of_its_budget() {
    let folder = examples::model();
    let problems = Problems::new(1);
    let over = json!({"tokenizer_path": folder.path()});
    let whole = Settings { dialects: Dialects::Sglang, vocabulary: 600, ..Settings::default() };
    let cut = Settings { abort_next: vec![5, 4], version_grows_with_aborts: true, ..whole.clone() };
    let mut made = Vec::new();
    for settings in [whole, cut] {
        let server = engine(settings).await;
        let shelf = Arc::new(MemoryShelf::default());
        run(&payload(&server.url(), &problems.path(), over.clone()), &shelf).await;
        made.push((rollout::decode(&shelf.bytes("p_0:0:0")).unwrap(), server.counters().requests));
    }
    let [(whole, _), (pieces, requests)] = made.try_into().unwrap();
    assert_eq!(requests, 3);
    assert_eq!(pieces.response_tokens(), whole.response_tokens());
    assert_eq!(pieces.response_tokens().len(), 16);
    let versions: Vec<i32> = [vec![0; 5], vec![1; 4], vec![2; 7]].concat();
    assert_eq!(pieces.versions().values().collect::<Vec<_>>(), versions);
}

#[tokio::test]
async fn as_many_are_under_way_as_may_be_and_no_more() {
    let server = engine(Settings { latency_ms: 5, ..four() }).await;
    let problems = Problems::new(40);
    let shelf = Arc::new(MemoryShelf::default());
    run(&payload(&server.url(), &problems.path(), json!({"max_concurrent": "6"})), &shelf).await;
    assert_eq!(server.counters().max_in_flight, 6);
    assert_eq!(shelf.len(), 40);
}
