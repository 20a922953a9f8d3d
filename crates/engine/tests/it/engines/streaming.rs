//! A streamed answer is the one that comes at once, told token by token.

use proptest::prelude::*;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{
    Delta, Engine, EngineError, ModelRequest, ModelResponse, Segment, StopReason,
};
use rollyard_test_engine::{Settings, TestEngine};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{assert_paired, client, config, request, start, uninterrupted, until, versions};

const DIALECTS: [Dialect; 2] = [Dialect::Sglang, Dialect::Vllm];

/// SGLang's two kinds of stream, and vLLM's.
fn kinds() -> [(Dialect, Settings); 3] {
    let new = Settings { streams_what_is_new: true, ..Settings::default() };
    [(Dialect::Sglang, Settings::default()), (Dialect::Sglang, new), (Dialect::Vllm, Settings::default())]
}

#[derive(Debug, Default)]
struct Heard {
    tokens: Vec<i32>,
    logprobs: Vec<f32>,
    versions: Vec<i32>,
    times: usize,
}

impl Heard {
    fn hear(&mut self, delta: Delta<'_>) {
        self.tokens.extend(delta.tokens);
        self.logprobs.extend(delta.logprobs);
        self.versions.extend(vec![delta.version; delta.tokens.len()]);
        self.times += 1;
    }
}

/// What was told is what the response has.
async fn told(engine: &HttpEngine, request: ModelRequest) -> Result<(ModelResponse, Heard), EngineError> {
    let mut heard = Heard::default();
    let response = engine.generate_told(request, &mut |delta| heard.hear(delta)).await?;
    assert_eq!(heard.tokens, response.output_tokens);
    assert_eq!(heard.logprobs, response.output_logprobs);
    assert_eq!(heard.versions, versions(&response));
    Ok((response, heard))
}

#[tokio::test]
async fn a_stream_is_the_answer_that_comes_at_once() {
    for (dialect, settings) in kinds() {
        for stop_one_in in [0, 20] {
            for stream_interval in [1, 7, 1000] {
                let server = start(Settings { stop_one_in, stream_interval, ..settings.clone() }).await;
                let engine = client(dialect, &[&server]);
                let whole = engine.generate(request(&[4, 5], 60)).await.unwrap();
                let (response, heard) = told(&engine, request(&[4, 5], 60)).await.unwrap();
                assert_eq!(response.output_tokens, whole.output_tokens, "{dialect}");
                assert_eq!(response.output_logprobs, whole.output_logprobs);
                assert_eq!(response.segments, whole.segments);
                assert_eq!(response.stop_reason, whole.stop_reason);
                assert_eq!(response.text, whole.text);
                assert_eq!(response.input_tokens, [4, 5]);
                assert!(response.is_exact);
                assert_eq!(heard.times, whole.output_tokens.len().div_ceil(stream_interval));
            }
        }
    }
}

#[tokio::test]
async fn tokens_are_told_while_others_are_still_to_come() {
    for dialect in DIALECTS {
        let server = start(Settings { latency_ms_per_token: 2.0, ..Settings::default() }).await;
        let engine = client(dialect, &[&server]);
        let (mut early, mut count) = (0, 0);
        let mut listener = |delta: Delta<'_>| {
            count += delta.tokens.len();
            early += usize::from(server.counters().in_flight > 0);
        };
        let response = engine.generate_told(request(&[4], 50), &mut listener).await.unwrap();
        assert_eq!(count, 50);
        assert!(early > 40, "{dialect}: {early}");
        assert!(response.ttft < response.latency / 2, "{:?}", response.ttft);
    }
}

#[tokio::test]
async fn an_aborted_stream_goes_on_as_if_it_was_not() {
    const MAX: u32 = 12;
    for (dialect, settings) in kinds() {
        let server = start(settings).await;
        let engine = client(dialect, &[&server]);
        for cut in 0..=MAX {
            server.change(|settings| {
                settings.version = 0;
                settings.version_grows_with_aborts = true;
                settings.abort_next = vec![cut];
            });
            let (response, _) = told(&engine, request(&[7, 8, 9], MAX)).await.unwrap();
            assert_eq!(response.output_tokens, uninterrupted(&[7, 8, 9], MAX as usize), "cut at {cut}");
            assert_eq!(response.stop_reason, StopReason::Length);
            let sampled_by: Vec<i32> = (0..MAX).map(|at| i32::from(at >= cut)).collect();
            assert_paired(&response, &sampled_by);
            let expected = if dialect == Dialect::Sglang { sampled_by } else { vec![0; MAX as usize] };
            assert_eq!(versions(&response), expected, "{dialect}, cut at {cut}");
            server.change(|settings| settings.abort_next.clear());
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_costs_no_token() {
    const MAX: u32 = 12;
    for (dialect, settings) in kinds() {
        for broken in 0..=MAX {
            let server = start(settings.clone()).await;
            server.change(|settings| {
                settings.records = true;
                settings.break_next = vec![broken];
            });
            let engine = client(dialect, &[&server]);
            let (response, _) = told(&engine, request(&[7, 8], MAX)).await.unwrap();
            let whole = uninterrupted(&[7, 8], MAX as usize);
            assert_eq!(response.output_tokens, whole, "{dialect}, broken at {broken}");
            assert_eq!(response.stop_reason, StopReason::Length);
            assert_paired(&response, &[0; MAX as usize]);
            let again = [&[7, 8], &whole[..broken as usize]].concat();
            let asked = if broken == MAX { vec![vec![7, 8]] } else { vec![vec![7, 8], again] };
            assert_eq!(server.recorded(), asked, "what was received is not asked for again");
        }
    }
}

#[tokio::test]
async fn a_stream_that_always_breaks_without_a_token_is_given_up() {
    for dialect in DIALECTS {
        let server = start(Settings { break_next: vec![0; 20], ..Settings::default() }).await;
        let engine = HttpEngine::new(EngineConfig { attempts: 3, ..config(dialect, &[&server]) }).unwrap();
        let error = told(&engine, request(&[1], 8)).await.unwrap_err();
        assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
        assert_eq!(server.counters().requests, 3);

        server.change(|settings| settings.break_next = vec![2; 6]);
        let (response, _) = told(&engine, request(&[1], 20)).await.unwrap();
        assert_eq!(response.output_tokens, uninterrupted(&[1], 20), "one that brings tokens is not");
    }
}

#[tokio::test]
async fn weights_that_change_in_mid_stream_change_the_version_in_mid_stream() {
    for streams_what_is_new in [false, true] {
        for stream_interval in [1, 4] {
            let settings = Settings { streams_what_is_new, stream_interval, ..Settings::default() };
            let server = start(Settings { version: 3, version_grows_after: Some(6), ..settings }).await;
            let (response, _) = told(&client(Dialect::Sglang, &[&server]), request(&[2], 16)).await.unwrap();
            assert_eq!(response.output_tokens, uninterrupted(&[2], 16));
            let segments = [Segment { tokens: 6, version: 3 }, Segment { tokens: 10, version: 4 }];
            assert_eq!(response.segments, segments);
            assert_paired(&response, &versions(&response));
        }
    }
}

#[tokio::test]
async fn a_pause_interrupts_streams_and_they_go_on_with_new_weights() {
    for (dialect, settings) in kinds() {
        let server = start(Settings { latency_ms_per_token: 5.0, ..settings }).await;
        let engine = Arc::new(client(dialect, &[&server]));
        let heard = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn({
            let (engine, heard) = (Arc::clone(&engine), Arc::clone(&heard));
            async move {
                let mut listener = |delta: Delta<'_>| {
                    heard.fetch_add(delta.tokens.len(), Ordering::SeqCst);
                };
                engine.generate_told(request(&[9], 400), &mut listener).await.unwrap()
            }
        });
        until("some tokens are there", || heard.load(Ordering::SeqCst) > 3).await;
        engine.pause().await.unwrap();
        assert_eq!(server.counters().in_flight, 0, "{dialect}");
        let before = heard.load(Ordering::SeqCst);
        server.change(|settings| {
            settings.version = 1;
            settings.latency_ms_per_token = 0.0;
        });
        engine.set_version(1);
        engine.resume().await.unwrap();
        let response = task.await.unwrap();
        assert_eq!(response.output_tokens, uninterrupted(&[9], 400), "{dialect}");
        assert_eq!(versions(&response)[before - 1..=before], [0, 1], "{dialect}");
        assert_paired(&response, &versions(&response));
    }
}

/// Drops the future as soon as a token was heard.
async fn hang_up(engine: &HttpEngine) {
    let told = Arc::new(tokio::sync::Notify::new());
    let teller = Arc::clone(&told);
    let mut listener = move |_: Delta<'_>| teller.notify_one();
    tokio::select! {
        _ = engine.generate_told(request(&[1], 10_000), &mut listener) => panic!("it cannot be done"),
        () = told.notified() => {}
    }
}

#[tokio::test]
async fn hanging_up_aborts_the_request_on_the_server() {
    for (dialect, settings) in kinds() {
        let server = start(Settings { latency_ms_per_token: 5.0, ..settings }).await;
        let engine = client(dialect, &[&server]);
        hang_up(&engine).await;
        until("nothing is computed any more", || server.counters().in_flight == 0).await;
        assert_eq!(engine.servers()[0].in_flight, 0);
        if dialect == Dialect::Sglang {
            until("it is told by name", || server.counters().aborted_by_name == 1).await;
        }
    }
}

#[tokio::test]
async fn a_stream_that_stalls_is_a_timeout_and_is_asked_for_again() {
    for dialect in DIALECTS {
        let server = start(Settings { latency_ms_per_token: 2.0, ..Settings::default() }).await;
        let config = EngineConfig { request_timeout_secs: 0.4, ..config(dialect, &[&server]) };
        let engine = HttpEngine::new(EngineConfig { attempts: 20, ..config }).unwrap();
        let mut heard = 0;
        let mut listener = |delta: Delta<'_>| {
            let before = heard;
            heard += delta.tokens.len();
            // Longer in all than the timeout, which is for each part.
            if before < 300 && heard >= 300 {
                server.change(|settings| settings.hang = true);
            }
        };
        let response = engine.generate_told(request(&[6], 2000), &mut listener);
        let freed = async {
            until("it timed out", || engine.servers()[0].failures > 0).await;
            server.change(|settings| {
                settings.hang = false;
                settings.latency_ms_per_token = 0.0;
            });
            std::future::pending::<()>().await;
        };
        let response = tokio::select! {
            response = response => response.unwrap(),
            () = freed => unreachable!(),
        };
        assert_eq!(response.output_tokens, uninterrupted(&[6], 2000), "{dialect}");
        assert!(matches!(engine.servers()[0].last_error.as_deref(), Some(error) if error.contains("within")));
    }
}

#[tokio::test]
async fn streams_that_cannot_be_right_are_refused_with_what_is_wrong() {
    let no_ids = Settings { gives_token_ids: false, gives_token_ids_as_words: false, ..Settings::default() };
    let no_logprobs = Settings { gives_logprobs: false, ..Settings::default() };
    for (dialect, settings, missing) in [
        (Dialect::Vllm, no_ids.clone(), "token ids"),
        (Dialect::Vllm, no_logprobs.clone(), "log-probs"),
        (Dialect::Sglang, no_logprobs, "log-probs"),
        (Dialect::Sglang, Settings { gives_logprobs: false, ..no_ids }, "token ids"),
    ] {
        let server = start(settings).await;
        let exact = config(dialect, &[&server]);
        let error = told(&HttpEngine::new(exact.clone()).unwrap(), request(&[1], 4)).await.unwrap_err();
        assert!(matches!(error, EngineError::NotExact { what, .. } if what == missing), "{dialect}: {error}");
        assert_eq!(server.counters().requests, 1, "asking again cannot help");

        let loose = HttpEngine::new(EngineConfig { exact: false, ..exact }).unwrap();
        let (response, heard) = told(&loose, request(&[1], 4)).await.unwrap();
        assert!(!response.is_exact && heard.times == 0);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    for (dialect, answer) in [
        (
            Dialect::Sglang,
            r#"{"meta_info": {"output_token_logprobs": [[-0.5, 1, null]], "finish_reason": {"type": "stop"}}}"#,
        ),
        (
            Dialect::Vllm,
            r#"{"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [-0.5]}, "finish_reason": "stop"}]}"#,
        ),
    ] {
        let server = start(Settings::default()).await;
        let engine = client(dialect, &[&server]);
        engine.model().await.unwrap();
        server.change(|settings| settings.raw_answers = vec![answer.into()]);
        let (response, heard) = told(&engine, request(&[1], 8)).await.unwrap();
        assert_eq!((response.output_tokens, heard.times), (vec![1], 1));
    }
}

#[tokio::test]
async fn half_of_an_answer_with_a_schema_is_thrown_away() {
    for dialect in DIALECTS {
        let server = start(Settings { abort_next: vec![5], records: true, ..Settings::default() }).await;
        let engine = client(dialect, &[&server]);
        let mut request = request(&[1, 2], 12);
        request.gconfig.json_schema = Some(r#"{"type": "object"}"#.into());
        let (response, heard) = told(&engine, request).await.unwrap();
        assert_eq!(response.output_tokens, uninterrupted(&[1, 2], 12));
        assert_eq!(heard.times, 1);
        assert_eq!(server.recorded(), [[1, 2], [1, 2]], "{dialect}: a grammar begins at the beginning");
    }
}

#[tokio::test]
async fn scripted_tokens_are_told_through_every_interruption() {
    let script = vec![vec![11, 12, 13, 14, 0], vec![21, 0]];
    for (dialect, settings) in kinds() {
        let server = start(Settings { token_answers: script.clone(), ..settings }).await;
        server.change(|settings| {
            settings.abort_next = vec![2];
            settings.break_next = vec![9, 1];
        });
        let engine = client(dialect, &[&server]);
        for tokens in &script {
            let (response, _) = told(&engine, request(&[1], 50)).await.unwrap();
            assert_eq!(response.output_tokens, *tokens, "{dialect}");
            assert_eq!(response.stop_reason, StopReason::Stop);
        }
    }
}

/// Many at once, over one engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_streams_at_once_do_not_mix() {
    for (dialect, settings) in kinds() {
        let server = start(Settings { latency_ms_per_token: 1.0, ..settings }).await;
        let engine = Arc::new(client(dialect, &[&server]));
        let streams = (0..100).map(|prompt| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let (response, _) = told(&engine, request(&[prompt], 40)).await.unwrap();
                assert_eq!(response.output_tokens, uninterrupted(&[prompt], 40));
            })
        });
        for stream in streams.collect::<Vec<_>>() {
            stream.await.unwrap();
        }
        assert_eq!(server.counters().disconnected, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_a_stream_is_cut_and_broken_nothing_is_lost_or_mislabelled(
        aborts in proptest::collection::vec(0_u32..12, 0..6),
        breaks in proptest::collection::vec(0_u32..12, 0..6),
        max in 1_u32..60,
        stop_one_in in prop_oneof![Just(0_u64), Just(8), Just(30)],
        streams_what_is_new in any::<bool>(),
        stream_interval in 1_usize..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = Settings { stop_one_in, streams_what_is_new, stream_interval, ..Settings::default() };
            let server: TestEngine = start(settings).await;
            let config = EngineConfig { attempts: 20, ..config(Dialect::Sglang, &[&server]) };
            let engine = HttpEngine::new(config).unwrap();
            let mut request = request(&[1, 2], max);
            request.gconfig.seed = Some(11);
            let whole = engine.generate(request.clone()).await.unwrap();
            server.change(|settings| {
                settings.version_grows_with_aborts = true;
                settings.abort_next = aborts;
                settings.break_next = breaks;
            });
            let (pieces, _) = told(&engine, request).await.unwrap();
            prop_assert_eq!(&pieces.output_tokens, &whole.output_tokens);
            prop_assert_eq!(pieces.stop_reason, whole.stop_reason);
            assert_paired(&pieces, &versions(&pieces));
            Ok(())
        })?;
    }
}

/// What is asked is what the caller gave, to the last token.
#[tokio::test]
async fn the_engine_receives_the_prompt_as_it_was_given() {
    let server = start(Settings { records: true, ..Settings::default() }).await;
    let prompt: Vec<i32> = (0..100_000).map(|at| at * 21_474).collect();
    let heard = Mutex::new(0);
    for dialect in DIALECTS {
        let engine = client(dialect, &[&server]);
        let mut listener = |delta: Delta<'_>| *heard.lock().unwrap() += delta.tokens.len();
        engine.generate_told(request(&prompt, 3), &mut listener).await.unwrap();
    }
    assert_eq!(server.recorded(), [prompt.clone(), prompt]);
    assert_eq!(*heard.lock().unwrap(), 6);
}
