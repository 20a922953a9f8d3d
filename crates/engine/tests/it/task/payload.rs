//! Payloads as trainers and people write them.

use rollyard_engine::task::{MathTask, StartPayload, TaskError};
use serde_json::{Map, Value, json};
use std::path::Path;

use super::{Problems, payload};

fn fields(over: Value) -> Map<String, Value> {
    payload("http://h:1/v1", Path::new("f.jsonl"), over)
}

#[test]
fn numbers_may_be_texts_and_what_is_null_was_not_said() {
    let said = fields(json!({
        "num_epoch": "3", "num_repeat_per_sample": 8.0, "num_process": " 64 ", "max_concurrent": null, "seed": "7",
        "skip_instance_ids": [1, "a"], "tokenizer_path": "/models/q", "max_tokens": "99", "group_size": "8",
        "sampling_params": {"temperature": "0.7", "top_p": 0.9, "top_k": -1, "stop": "END", "stop_token_ids": [5]},
    }));
    let read = StartPayload::parse(&said).unwrap();
    assert_eq!((read.num_epoch.get(), read.num_repeat_per_sample.get(), read.num_process), (3, 8, 64));
    assert_eq!((read.max_concurrent, read.seed), (None, 7));
    assert_eq!(read.skip_instance_ids, ["1", "a"]);
    assert_eq!(read.tokenizer_path.as_deref(), Some(Path::new("/models/q")));
    let gconfig = &read.gconfig;
    assert_eq!((gconfig.max_new_tokens, gconfig.temperature, gconfig.top_p), (99, 0.7, 0.9));
    assert_eq!(
        (gconfig.top_k, &gconfig.stop[..], &gconfig.stop_token_ids[..]),
        (None, &["END".into()][..], &[5][..])
    );
    assert_eq!(Value::from(read.sampling_params), said["sampling_params"]);

    let bare = fields(json!({"num_process": null, "sampling_params": null}));
    let bare = StartPayload::parse(&bare).unwrap();
    assert_eq!((bare.num_epoch.get(), bare.num_repeat_per_sample.get(), bare.num_process), (1, 1, 0));
    assert_eq!((bare.gconfig.max_new_tokens, bare.tokenizer_path), (4096, None));
}

#[test]
fn what_the_parameters_say_of_length_counts_before_the_field_beside_them() {
    for (over, expected) in [
        (json!({"max_tokens": 9, "sampling_params": {"max_tokens": 5}}), 5),
        (json!({"max_tokens": 9, "sampling_params": {"max_new_tokens": "6"}}), 6),
        (json!({"max_tokens": 9, "sampling_params": {}}), 9),
    ] {
        assert_eq!(StartPayload::parse(&fields(over)).unwrap().gconfig.max_new_tokens, expected);
    }
}

#[test]
fn a_wrong_field_is_named_with_its_value() {
    for (over, field, says) in [
        (json!({"task_type": null}), "task_type", "`task_type` is missing"),
        (json!({"task_type": 7}), "task_type", "`task_type` is 7"),
        (json!({"input_file": ""}), "input_file", "`input_file` is \"\", but must be the path"),
        (json!({"remote_engine_url": null}), "remote_engine_url", "missing; it is the address"),
        (json!({"num_epoch": 0}), "num_epoch", "`num_epoch` is 0, but must be a whole number from 1"),
        (json!({"num_epoch": "two"}), "num_epoch", "is \"two\""),
        (json!({"num_repeat_per_sample": 1.5}), "num_repeat_per_sample", "is 1.5"),
        (json!({"num_process": -1}), "num_process", "is -1, but must be a whole number from 0"),
        (json!({"max_concurrent": true}), "max_concurrent", "is true"),
        (json!({"seed": {}}), "seed", "is {}"),
        (json!({"skip_instance_ids": "a"}), "skip_instance_ids", "is \"a\", but must be a list"),
        (json!({"skip_instance_ids": ["a", 1.5]}), "skip_instance_ids[1]", "is 1.5"),
        (json!({"sampling_params": []}), "sampling_params", "is [], but must be an object"),
        (json!({"sampling_params": {"max_tokens": 0}}), "sampling_params.max_tokens", "is 0"),
        (json!({"sampling_params": {"temperature": -1}}), "sampling_params.temperature", "is -1"),
        (json!({"sampling_params": {"top_p": "NaN"}}), "sampling_params.top_p", "is \"NaN\""),
        (json!({"sampling_params": {"top_k": 1.5}}), "sampling_params.top_k", "is 1.5"),
        (json!({"sampling_params": {"stop": [1]}}), "sampling_params.stop", "is [1]"),
        (
            json!({"sampling_params": {"min_tokens": 9, "max_tokens": 8}}),
            "sampling_params.min_tokens",
            "is 9, but must be at most max_tokens",
        ),
        (
            json!({"sampling_params": {"best_of": 4}}),
            "sampling_params.best_of",
            "is 4, but this task knows no such parameter; it knows max_tokens, min_tokens, temperature",
        ),
    ] {
        let error = StartPayload::parse(&fields(over)).unwrap_err();
        assert_eq!(error.field(), field);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn the_same_work_may_skip_more() {
    let parse = |over| StartPayload::parse(&fields(over)).unwrap();
    let first = parse(json!({"num_epoch": 2}));
    for (over, is_same) in [
        (json!({"num_epoch": "2"}), true),
        (json!({"num_epoch": 2, "skip_instance_ids": ["a", "a"]}), true),
        (json!({"num_epoch": 2, "group_timeout_seconds": 5}), true),
        (json!({"num_epoch": 3}), false),
        (json!({"num_epoch": 2, "input_file": "g.jsonl"}), false),
        (json!({"num_epoch": 2, "sampling_params": {"max_tokens": 17}}), false),
    ] {
        assert_eq!(first.same_work(&parse(over.clone())), is_same, "{over}");
    }
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_begun() {
    let problems = Problems::new(1);
    let said = payload("ftp://h", &problems.path(), json!({}));
    match MathTask::prepare(StartPayload::parse(&said).unwrap()) {
        Err(TaskError::Payload(error)) => {
            assert_eq!(error.field(), "remote_engine_url");
            assert!(error.to_string().contains("\"ftp://h\""), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
