//! Our own client against it, as against a real engine.

use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine, check};
use rollyard_engine::generate::{
    Delta, Engine, GenerationConfig, ModelRequest, ModelResponse, Prompt, StopReason,
};
use rollyard_tiny::model::Weights;
use rollyard_tiny::train::{Lesson, Student};
use serde_json::json;
use serde_json::value::to_raw_value;
use std::sync::Arc;

use crate::server::{Server, ids, scripted, weights};

/// Tokens of an answer that takes long enough to be interrupted.
const LONG: u32 = 2500;

fn client(server: &Server, dialect: Dialect) -> HttpEngine {
    HttpEngine::new(EngineConfig { backoff_secs: 0.001, ..EngineConfig::of(dialect, server.url.as_str()) })
        .unwrap()
}

fn request(prompt: Prompt, max_new_tokens: u32) -> ModelRequest {
    ModelRequest {
        rid: String::new(),
        prompt,
        gconfig: GenerationConfig { max_new_tokens, seed: Some(4), ..GenerationConfig::default() },
        session: None,
        metadata: serde_json::Map::new(),
    }
}

/// What the weights of each segment find for its tokens is what was told.
fn check_logprobs(response: &ModelResponse, versions: &[Arc<Weights>]) {
    let mut start = 0;
    for segment in &response.segments {
        let end = start + segment.tokens;
        let before = [response.input_tokens.as_slice(), &response.output_tokens[..start]].concat();
        let lesson = Lesson::answer(&before, &response.output_tokens[start..end]);
        let weights = &versions[usize::try_from(segment.version).unwrap()];
        let found = Student { threads: 1 }.logprobs(weights, &[lesson]).unwrap();
        for (told, found) in response.output_logprobs[start..end].iter().zip(&found) {
            assert!((told - found).abs() < 1e-4, "{told} told, {found} found by version {}", segment.version);
        }
        start = end;
    }
    assert_eq!(start, response.output_tokens.len());
}

#[test]
fn a_stream_in_both_dialects_is_the_answer_that_comes_at_once() {
    let server = Server::start(weights(96, 1));
    let prompt = ids("<|user|>12+34<|end|><|assistant|>");
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let engine = client(&server, dialect);
        let ask = || request(Prompt::Tokens(prompt.clone()), 40);
        let whole = server.runtime.block_on(engine.generate(ask())).unwrap();
        let (mut tokens, mut logprobs, mut times) = (Vec::new(), Vec::new(), 0);
        let mut listener = |delta: Delta<'_>| {
            tokens.extend(delta.tokens);
            logprobs.extend(delta.logprobs);
            times += 1;
        };
        let response = server.runtime.block_on(engine.generate_told(ask(), &mut listener)).unwrap();
        assert_eq!(response.output_tokens, whole.output_tokens, "{dialect}");
        assert_eq!(response.stop_reason, whole.stop_reason);
        assert_eq!(response.segments, whole.segments);
        assert_eq!(response.text, whole.text, "{dialect}");
        assert_eq!((tokens, logprobs), (response.output_tokens, response.output_logprobs));
        assert!(times > 1, "{dialect}: {times}");
    }
}

#[test]
fn both_dialects_in_tokens_get_what_a_trainer_finds() {
    let model = weights(96, 1);
    let server = Server::start(Arc::clone(&model));
    let prompt = ids("<|user|>12+34<|end|><|assistant|>");
    let mut all = Vec::new();
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let engine = client(&server, dialect);
        let asked = engine.generate(request(Prompt::Tokens(prompt.clone()), 40));
        let response = server.runtime.block_on(asked).unwrap();
        assert!(response.is_exact && response.segments.len() == 1, "{response:?}");
        assert!(matches!(response.stop_reason, StopReason::Stop | StopReason::Length));
        check_logprobs(&response, std::slice::from_ref(&model));
        all.push(response.output_tokens);
    }
    assert_eq!(all[0], all[1], "one seed, one answer");
}

#[test]
fn messages_are_answered_with_a_message() {
    let server = Server::start(scripted(8, "46"));
    let message = to_raw_value(&json!({"role": "user", "content": "12+34"})).unwrap();
    let prompt = Prompt::Chat { messages: vec![message], tools: None };
    let response =
        server.runtime.block_on(client(&server, Dialect::Openai).generate(request(prompt, 20))).unwrap();
    assert_eq!((response.text.as_deref(), response.stop_reason), (Some("46"), StopReason::Stop));
    assert_eq!(response.segments[0].version, 0);
}

#[test]
fn an_answer_goes_on_with_new_weights_and_says_which_said_what() {
    let versions = [weights(4096, 1), weights(4096, 2)];
    let server = Server::start(Arc::clone(&versions[0]));
    let path = server.save("next", &versions[1]);
    let engine = Arc::new(client(&server, Dialect::Sglang));
    let asked = (0..2).map(|nth| {
        let engine = Arc::clone(&engine);
        let mut request = request(Prompt::Tokens(ids("12+3")), LONG);
        // The end is a token that is not to come.
        request.gconfig.min_new_tokens = LONG;
        request.gconfig.seed = Some(nth);
        server.runtime.spawn(async move { engine.generate(request).await })
    });
    let asked: Vec<_> = asked.collect();
    server.until("sampling", |stats| stats.running == 2 && stats.sampled > 40);
    server.ask("/update_weights_from_disk", &json!({"model_path": path}));
    for asked in asked {
        let response = server.runtime.block_on(asked).unwrap().unwrap();
        assert_eq!(response.output_tokens.len(), LONG as usize);
        let order: Vec<i32> = response.segments.iter().map(|segment| segment.version).collect();
        assert_eq!(order, [0, 1]);
        check_logprobs(&response, &versions);
    }
}

#[test]
fn a_pause_of_the_client_leaves_no_trace_in_the_tokens() {
    let server = Server::start(weights(4096, 1));
    let engine = Arc::new(client(&server, Dialect::Sglang));
    let whole = || {
        let engine = Arc::clone(&engine);
        let mut request = request(Prompt::Tokens(ids("12+3")), LONG);
        request.gconfig.min_new_tokens = LONG;
        server.runtime.spawn(async move { engine.generate(request).await })
    };
    let plain = server.runtime.block_on(whole()).unwrap().unwrap();
    let before = server.engine.stats().sampled;
    let asked = whole();
    server.until("sampling", |stats| stats.sampled > before + 20);
    server.runtime.block_on(engine.pause()).unwrap();
    assert_eq!(server.engine.stats().running, 0);
    server.runtime.block_on(engine.resume()).unwrap();
    let response = server.runtime.block_on(asked).unwrap().unwrap();
    assert_eq!(response.output_tokens, plain.output_tokens);
    assert_eq!((plain.segments.len(), response.segments.len()), (1, 2));
}

#[test]
fn a_check_finds_all_that_training_needs() {
    let server = Server::with(weights(96, 1), |settings| settings.api_key = Some("s3cret".to_owned()));
    let config = EngineConfig {
        api_key: Some("s3cret".to_owned()),
        ..EngineConfig::of(Dialect::Sglang, server.url.as_str())
    };
    let report = server.runtime.block_on(check(config, None)).unwrap();
    assert!(report.exact && report.dialect == Dialect::Sglang, "{report:?}");
    assert!(report.findings.iter().all(|finding| finding.found), "{report:?}");
    assert_eq!(report.model, "rollyard-tiny");
}
