//! What is taken of an answer, and what is refused.

use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{Engine, EngineError, GenerationConfig, StopReason};
use rollyard_test_engine::{Settings, model};

use super::{VOCABULARY, assert_paired, client, config, request, start, uninterrupted};

#[tokio::test]
async fn tokens_come_with_their_log_probs_in_every_form_that_engines_have() {
    for (dialect, change) in [
        (Dialect::Sglang, Settings::default()),
        (Dialect::Sglang, Settings { gives_token_ids: false, ..Settings::default() }),
        (Dialect::Vllm, Settings::default()),
        (Dialect::Vllm, Settings { gives_token_ids: false, ..Settings::default() }),
        (Dialect::Vllm, Settings { gives_token_ids_as_words: false, ..Settings::default() }),
    ] {
        let server = start(change.clone()).await;
        let response = client(dialect, &[&server]).generate(request(&[4, 5], 30)).await.unwrap();
        assert_eq!(response.output_tokens, uninterrupted(&[4, 5], 30), "{dialect} {change:?}");
        assert_paired(&response, &[0; 30]);
        assert!(response.is_exact);
    }
}

#[tokio::test]
async fn a_stop_token_ends_it_and_is_part_of_it() {
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let server = start(Settings { stop_one_in: 20, ..Settings::default() }).await;
        let response = client(dialect, &[&server]).generate(request(&[4], 5000)).await.unwrap();
        assert_eq!(response.stop_reason, StopReason::Stop);
        assert_eq!(response.output_tokens, model::continuation(&[4], 0, VOCABULARY, 20, 5000));
        assert_eq!(response.output_tokens.last(), Some(&model::STOP_TOKEN));
    }
}

#[tokio::test]
async fn seeds_stop_tokens_and_the_least_length_reach_the_engine() {
    let server = start(Settings::default()).await;
    let whole = model::continuation(&[4], 99, VOCABULARY, 0, 40);
    let gconfig = GenerationConfig {
        max_new_tokens: 40,
        min_new_tokens: 12,
        seed: Some(99),
        stop_token_ids: vec![whole[5], whole[20]],
        ..GenerationConfig::default()
    };
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let mut request = request(&[4], 40);
        request.gconfig = gconfig.clone();
        let response = client(dialect, &[&server]).generate(request).await.unwrap();
        assert_eq!(response.output_tokens, whole[..=20], "{dialect}");
    }
}

#[tokio::test]
async fn an_engine_without_ids_or_log_probs_is_not_exact() {
    let no_ids = Settings { gives_token_ids: false, gives_token_ids_as_words: false, ..Settings::default() };
    let no_logprobs = Settings { gives_logprobs: false, ..Settings::default() };
    let neither = Settings { gives_logprobs: false, ..no_ids.clone() };
    for (dialect, settings, missing) in [
        (Dialect::Vllm, no_ids, "token ids"),
        (Dialect::Vllm, no_logprobs.clone(), "log-probs"),
        (Dialect::Sglang, no_logprobs, "log-probs"),
        (Dialect::Sglang, neither, "token ids"),
    ] {
        let server = start(settings).await;
        let exact = config(dialect, &[&server]);
        let error = HttpEngine::new(exact.clone()).unwrap().generate(request(&[1], 4)).await.unwrap_err();
        assert!(matches!(error, EngineError::NotExact { what, .. } if what == missing), "{dialect}: {error}");
        assert_eq!(server.counters().requests, 1, "asking again cannot help");

        let loose = HttpEngine::new(EngineConfig { exact: false, ..exact }).unwrap();
        let response = loose.generate(request(&[1], 4)).await.unwrap();
        assert!(!response.is_exact && response.output_tokens.is_empty());
    }
}

#[tokio::test]
async fn answers_that_cannot_be_right_are_refused_with_what_is_wrong() {
    let sglang = |ids: &str, logprobs: &str, reason: &str| {
        format!(
            r#"{{"output_ids": {ids}, "meta_info": {{"output_token_logprobs": {logprobs}, "finish_reason": {reason}}}}}"#
        )
    };
    let vllm = |choice: &str| format!(r#"{{"choices": [{choice}]}}"#);
    let stop = r#"{"type": "stop"}"#;
    for (dialect, answer, says) in [
        (Dialect::Sglang, "<html>busy</html>".into(), "expected value"),
        (Dialect::Sglang, String::new(), "EOF"),
        (Dialect::Sglang, "{}".into(), "missing field `meta_info`"),
        (Dialect::Sglang, sglang("[1, 2, 3]", "[[-0.5, 1, null]]", stop), "3 token ids, but 1 log-probs"),
        (
            Dialect::Sglang,
            sglang("[1, 2]", "[[-0.5, 1, null], [-0.5, 3, null]]", stop),
            "token 1 is 2 among the ids, but 3",
        ),
        (Dialect::Sglang, sglang("[1]", "[[null, 1, null]]", stop), "token 0 of 1 has no log-prob"),
        (Dialect::Sglang, sglang("[1]", "[[-0.5, 1, null]]", r#"{"type": "vanished"}"#), "\"vanished\""),
        (Dialect::Sglang, sglang("[1]", "[[-0.5, 1, null]]", "null"), "no finish reason"),
        (Dialect::Sglang, sglang("[99999999999]", "[]", stop), "99999999999"),
        (
            Dialect::Sglang,
            sglang("null", &format!("[{}]", ["[-0.5, 1, null]"; 9].join(",")), stop),
            "9 tokens, but 8 were asked for",
        ),
        (Dialect::Vllm, r#"{"choices": []}"#.into(), "`choices` is empty"),
        (
            Dialect::Vllm,
            vllm(r#"{"token_ids": [1, 2], "logprobs": {"token_logprobs": [-0.5]}, "finish_reason": "stop"}"#),
            "2 token ids, but 1 log-probs",
        ),
        (
            Dialect::Vllm,
            vllm(r#"{"token_ids": [1], "logprobs": {"token_logprobs": [null]}, "finish_reason": "stop"}"#),
            "token 0 of 1 has no log-prob",
        ),
    ] {
        let server = start(Settings::default()).await;
        let engine = client(dialect, &[&server]);
        engine.model().await.unwrap();
        server.change(|settings| settings.raw_answers = vec![answer.clone()]);
        let error = engine.generate(request(&[1], 8)).await.unwrap_err();
        assert!(matches!(error, EngineError::BadAnswer { .. }), "{answer}: {error:?}");
        assert!(error.to_string().contains(says), "{answer}: {error}");
        assert!(error.to_string().contains(&server.url()), "{error}");
        assert_eq!(engine.servers()[0].failures, 1);
    }
}

#[tokio::test]
async fn an_answer_of_two_hundred_thousand_tokens_is_taken_whole() {
    let server = start(Settings::default()).await;
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let response = client(dialect, &[&server]).generate(request(&[1], 200_000)).await.unwrap();
        assert_eq!(response.output_tokens, uninterrupted(&[1], 200_000));
        assert_eq!(response.output_logprobs.len(), 200_000);
    }
}

#[tokio::test]
async fn a_request_that_no_engine_can_answer_is_not_sent() {
    let server = start(Settings::default()).await;
    let error = client(Dialect::Sglang, &[&server]).generate(request(&[], 8)).await.unwrap_err();
    assert!(matches!(error, EngineError::BadRequest(_)), "{error}");
    assert_eq!(server.counters().requests, 0);
}
