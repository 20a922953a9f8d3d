//! Who gets a place, and what becomes of it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::model::{Decoder, DecoderError, Feed, SlotId};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_frees_the_place() {
    let weights = weights(2048, 1);
    let engine =
        engine(&weights, EngineSettings { texts_max: 1, waiting_max: 1, ..EngineSettings::default() });
    let mut first = engine.stream(ask("1", 0, 2000)).await.unwrap();
    assert!(matches!(first.next().await, Some(Event::Token(_))));
    // Held, so that no place is freed by an answer that is complete.
    engine.hold().await.unwrap();
    let second = engine.stream(ask("1", 0, 5)).await.unwrap();
    let third = tokio::spawn({
        let engine = engine.clone();
        async move { engine.ask(ask("1", 0, 6)).await }
    });
    until(&engine, "full", |stats| stats.running == 1 && stats.waiting == 1).await;
    assert!(!third.is_finished());
    drop(first);
    until(&engine, "free", |stats| stats.running == 0).await;
    engine.go_on().await.unwrap();
    assert_eq!(second.answer().await.unwrap().tokens.len(), 5);
    assert_eq!(third.await.unwrap().unwrap().tokens.len(), 6);
    // One that waits goes away, too.
    engine.hold().await.unwrap();
    let waits = engine.stream(ask("1", 0, 5)).await.unwrap();
    assert_eq!(engine.stats().waiting, 1);
    drop(waits);
    until(&engine, "free", |stats| stats.waiting == 0).await;
}

#[tokio::test]
async fn a_flow_has_every_token_and_the_answer() {
    let weights = weights(96, 1);
    let engine = engine(&weights, EngineSettings::default());
    let mut flow = engine.stream(Ask { tops: 2, ..ask("1", 3, 40) }).await.unwrap();
    let (mut tokens, mut answer) = (Vec::new(), None);
    while let Some(event) = flow.next().await {
        match event {
            Event::Token(sampled) => tokens.push((sampled.token, sampled.logprob, sampled.tops)),
            Event::Done(done) => answer = Some(done.unwrap()),
        }
    }
    let answer = answer.unwrap();
    let again: Vec<_> = answer.tokens.into_iter().zip(answer.logprobs).zip(answer.tops).collect();
    assert_eq!(
        tokens,
        again.into_iter().map(|((token, logprob), tops)| (token, logprob, tops)).collect::<Vec<_>>()
    );
    assert_eq!(engine.stats().sampled, 40);
}

/// Fails on a token, panics on another, and says when it is gone.
#[derive(Debug)]
struct Moody {
    texts: usize,
    gone: Arc<AtomicBool>,
}

const FAILS: i32 = 7;
const PANICS: i32 = 8;

impl Decoder for Moody {
    fn vocabulary(&self) -> usize {
        9
    }

    fn context(&self) -> usize {
        30
    }

    fn begin(&mut self) -> SlotId {
        self.texts += 1;
        SlotId(self.texts)
    }

    fn end(&mut self, _: SlotId) {}

    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Vec<f32>, DecoderError> {
        let has = |token: i32| feeds.iter().any(|feed| feed.tokens.contains(&token));
        assert!(!has(PANICS));
        if has(FAILS) {
            return Err(DecoderError::Model("a seven".to_owned()));
        }
        let mut logits = vec![f32::NEG_INFINITY; feeds.len() * 9];
        logits.iter_mut().step_by(9).for_each(|logit| *logit = 1.0);
        Ok(logits)
    }
}

impl Drop for Moody {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Release);
    }
}

fn moody() -> (TinyEngine, Arc<AtomicBool>) {
    let gone = Arc::new(AtomicBool::new(false));
    let model = Model::Fixed(Box::new(Moody { texts: 0, gone: Arc::clone(&gone) }));
    (TinyEngine::over(model, 3, words(), EngineSettings::default()).unwrap(), gone)
}

fn of(token: i32) -> Ask {
    Ask { prompt: vec![token; 2], ..ask("1", 0, 20) }
}

#[tokio::test]
async fn a_failure_concerns_one_text_and_weights_that_cannot_change_do_not() {
    let (engine, _) = moody();
    let asks = [1, FAILS, 2].map(|token| engine.ask(of(token)));
    let [one, seven, two] = <[_; 3]>::try_from(futures_util::future::join_all(asks).await).unwrap();
    assert_eq!(seven, Err(AskError::Failed("a seven".to_owned())));
    assert_eq!([one.unwrap().tokens.len(), two.unwrap().tokens.len()], [20, 20]);
    let error = engine.update(weights(96, 0), 1).await.unwrap_err();
    assert!(error.to_string().contains("cannot change"), "{error}");
    assert_eq!(engine.stats().version, 3);
}

#[tokio::test]
async fn the_thread_ends_with_the_last_handle() {
    let (engine, gone) = moody();
    let other = engine.clone();
    let flow = engine.stream(of(1)).await.unwrap();
    drop(engine);
    drop(other);
    assert!(!gone.load(Ordering::Acquire));
    drop(flow);
    assert!(gone.load(Ordering::Acquire));
}

#[tokio::test]
async fn a_panic_leaves_nobody_waiting() {
    let (engine, _) = moody();
    assert_eq!(engine.ask(of(PANICS)).await, Err(AskError::Closed));
    assert_eq!(engine.ask(of(1)).await, Err(AskError::Closed));
    assert_eq!(engine.hold().await, Err(AskError::Closed));
}
