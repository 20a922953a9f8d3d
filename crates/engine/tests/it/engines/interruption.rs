//! A generation that is interrupted is the one that was not, with the right version at each token.

use proptest::prelude::*;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{Engine, EngineError, Segment, StopReason};
use rollyard_test_engine::Settings;

use super::{assert_paired, client, config, request, start, uninterrupted, versions};

#[tokio::test]
async fn cut_at_any_token_it_goes_on_as_if_it_was_not() {
    const MAX: u32 = 12;
    let prompt = [7, 8, 9];
    let whole = uninterrupted(&prompt, MAX as usize);
    let server = start(Settings::default()).await;
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let engine = client(dialect, &[&server]);
        engine.set_version(0);
        for cut in 0..=MAX {
            server.change(|settings| {
                settings.version = 0;
                settings.version_grows_with_aborts = true;
                settings.abort_next = vec![cut];
            });
            let response = engine.generate(request(&prompt, MAX)).await.unwrap();
            assert_eq!(response.output_tokens, whole, "{dialect}, cut at {cut}");
            assert_eq!(response.input_tokens, prompt);
            assert_eq!(response.stop_reason, StopReason::Length);
            assert!(response.is_exact);
            let sampled_by: Vec<i32> = (0..MAX).map(|at| i32::from(at >= cut)).collect();
            assert_paired(&response, &sampled_by);
            // vLLM does not say which weights it had; the version pinned at each request counts.
            let expected = if dialect == Dialect::Sglang { sampled_by } else { vec![0; MAX as usize] };
            assert_eq!(versions(&response), expected, "{dialect}, cut at {cut}");
            server.change(|settings| settings.abort_next.clear());
        }
    }
}

/// What must come of `len` tokens that are cut after these numbers of tokens, with new weights at each cut.
fn segments(len: usize, cuts: &[u32]) -> Vec<Segment> {
    let (mut left, mut version, mut segments) = (len, 0, Vec::new());
    for cut in cuts.iter().map(|cut| *cut as usize) {
        if cut >= left {
            break;
        }
        if cut > 0 {
            segments.push(Segment { tokens: cut, version });
        }
        left -= cut;
        version += 1;
    }
    segments.push(Segment { tokens: left, version });
    segments
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_often_it_is_cut_nothing_is_lost_or_mislabelled(
        cuts in proptest::collection::vec(0_u32..12, 0..10),
        max in 1_u32..60,
        min in 0_u32..20,
        stop_one_in in prop_oneof![Just(0_u64), Just(8), Just(30)],
        first in 1_i32..1000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = start(Settings { stop_one_in, ..Settings::default() }).await;
            let engine = client(Dialect::Sglang, &[&server]);
            let mut request = request(&[first, 2], max);
            request.gconfig.min_new_tokens = min.min(max);
            request.gconfig.seed = Some(11);
            let whole = engine.generate(request.clone()).await.unwrap();
            server.change(|settings| {
                settings.version_grows_with_aborts = true;
                settings.abort_next = cuts.clone();
            });
            let pieces = engine.generate(request).await.unwrap();
            prop_assert_eq!(&pieces.output_tokens, &whole.output_tokens);
            prop_assert_eq!(pieces.stop_reason, whole.stop_reason);
            prop_assert_eq!(&pieces.segments, &segments(whole.output_tokens.len(), &cuts));
            assert_paired(&pieces, &versions(&pieces));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn without_a_single_new_token_it_gives_up_and_says_so() {
    let server = start(Settings { abort_after: Some(0), ..Settings::default() }).await;
    let config = EngineConfig { stalls_max: 3, ..config(Dialect::Sglang, &[&server]) };
    let error = HttpEngine::new(config).unwrap().generate(request(&[1], 8)).await.unwrap_err();
    assert_eq!(error, EngineError::Interrupted { times: 4, url: format!("{}/generate", server.url()) });
    assert_eq!(server.counters().requests, 4);
}

#[tokio::test]
async fn one_token_at_a_time_is_progress_enough() {
    let server = start(Settings { abort_after: Some(1), ..Settings::default() }).await;
    let config = EngineConfig { stalls_max: 0, ..config(Dialect::Vllm, &[&server]) };
    let response = HttpEngine::new(config).unwrap().generate(request(&[3], 20)).await.unwrap();
    assert_eq!(response.output_tokens, uninterrupted(&[3], 20));
    assert_eq!(response.stop_reason, StopReason::Length);
}
