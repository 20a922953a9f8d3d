//! New weights and pauses in the middle of answers.

use futures_util::future::join_all;
use rollyard_engine::generate::{Delta, Engine, ModelRequest, Prompt, Segment};

use super::*;
use crate::train::{Lesson, Student};

const TEXTS: u64 = 12;
/// So many that they last while a busy machine gets round to interrupting them.
const TOKENS: u32 = 1000;

fn asks(when_cut: WhenCut) -> Vec<Ask> {
    (0..TEXTS).map(|seed| Ask { when_cut, ..ask("<|user|>what?", seed, TOKENS) }).collect()
}

fn begin(engine: &TinyEngine, asks: Vec<Ask>) -> Vec<tokio::task::JoinHandle<Result<Answer, AskError>>> {
    let ask = |ask: Ask| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.ask(ask).await })
    };
    asks.into_iter().map(ask).collect()
}

/// All of them are sampled, or wait for a place: none comes late.
async fn begin_together(
    engine: &TinyEngine,
    asks: Vec<Ask>,
) -> Vec<tokio::task::JoinHandle<Result<Answer, AskError>>> {
    engine.hold().await.unwrap();
    let answers = begin(engine, asks);
    until(engine, "asked", |stats| stats.waiting == answers.len()).await;
    engine.go_on().await.unwrap();
    answers
}

/// The log-probabilities of one segment by the weights that it names.
fn check_segment(weights: &Weights, prompt: &[i32], answer: &Answer, start: usize, tokens: usize) {
    let mut lesson = Lesson::answer(prompt, &answer.tokens);
    lesson.tokens.truncate(prompt.len() + start + tokens);
    lesson.sampled.truncate(prompt.len() + start + tokens);
    lesson.sampled.iter_mut().take(prompt.len() + start).for_each(|sampled| *sampled = None);
    let found = Student { threads: 1 }.logprobs(weights, &[lesson]).unwrap();
    assert_eq!(found.len(), tokens);
    for (told, found) in answer.logprobs[start..].iter().zip(&found) {
        assert!((told - found).abs() < 1e-4, "{told} told, {found} found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_told_as_they_are_sampled_with_the_version_of_their_weights() {
    let versions = [weights(1100, 1), weights(1100, 2)];
    let engine = engine(&versions[0], EngineSettings::default());
    let Ask { prompt, sampling, .. } = ask("<|user|>what?", 3, TOKENS);
    let request = ModelRequest {
        rid: String::new(),
        prompt: Prompt::Tokens(prompt),
        gconfig: GenerationConfig { min_new_tokens: TOKENS, ..sampling },
        session: None,
        metadata: serde_json::Map::new(),
    };
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move {
            let mut listener = |delta: Delta<'_>| {
                sender.send((delta.tokens.to_vec(), delta.logprobs.to_vec(), delta.version)).unwrap();
            };
            engine.generate_told(request, &mut listener).await.unwrap()
        }
    });
    let mut told = vec![heard.recv().await.unwrap()];
    engine.update(Arc::clone(&versions[1]), 1).await.unwrap();
    let response = asked.await.unwrap();
    while let Some(delta) = heard.recv().await {
        told.push(delta);
    }
    assert_eq!(told.len(), TOKENS as usize);
    assert_eq!(told.iter().flat_map(|delta| delta.0.clone()).collect::<Vec<_>>(), response.output_tokens);
    assert_eq!(told.iter().flat_map(|delta| delta.1.clone()).collect::<Vec<_>>(), response.output_logprobs);
    let versions: Vec<i32> =
        response.segments.iter().flat_map(|segment| vec![segment.version; segment.tokens]).collect();
    assert_eq!(told.iter().map(|delta| delta.2).collect::<Vec<_>>(), versions);
    assert_eq!((versions.first(), versions.last()), (Some(&0), Some(&1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_weights_take_over_between_two_tokens() {
    let versions = [weights(1100, 1), weights(1100, 2), weights(1100, 3)];
    let engine = engine(&versions[0], EngineSettings::default());
    let all = asks(WhenCut::GoOn);
    let answers = begin_together(&engine, all.clone()).await;
    for version in [1, 2] {
        let before = engine.stats().sampled;
        until(&engine, "sampling", |stats| stats.sampled > before + 4 * TEXTS).await;
        engine.update(Arc::clone(&versions[version]), i32::try_from(version).unwrap()).await.unwrap();
        assert_eq!(usize::try_from(Engine::version(&engine)).unwrap(), version);
    }
    for (ask, answer) in all.iter().zip(join_all(answers).await) {
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.tokens.len(), TOKENS as usize);
        let order: Vec<i32> = answer.segments.iter().map(|segment| segment.version).collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(answer.segments.iter().map(|segment| segment.tokens).sum::<usize>(), answer.tokens.len());
        let mut start = 0;
        for Segment { tokens, version } in answer.segments.iter().cloned() {
            check_segment(&versions[usize::try_from(version).unwrap()], &ask.prompt, &answer, start, tokens);
            start += tokens;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_leaves_no_trace_in_the_tokens() {
    let weights = weights(1100, 1);
    let engine = engine(&weights, EngineSettings::default());
    let plain: Vec<_> = join_all(asks(WhenCut::GoOn).into_iter().map(|ask| engine.ask(ask))).await;
    let answers = begin_together(&engine, asks(WhenCut::GoOn)).await;
    let before = engine.stats().sampled;
    until(&engine, "sampling", |stats| stats.sampled > before + 4 * TEXTS).await;
    engine.pause().await.unwrap();
    let held = engine.stats();
    assert!(held.paused && held.running == TEXTS as usize, "{held:?}");
    // Whoever is heeded now comes after whatever was sampled until now.
    assert_eq!(engine.abort(Some("nobody".to_owned())).await.unwrap(), 0);
    assert_eq!(engine.stats(), held);
    engine.resume().await.unwrap();
    for (plain, answer) in plain.into_iter().zip(join_all(answers).await) {
        let (plain, answer) = (plain.unwrap(), answer.unwrap().unwrap());
        assert_eq!(answer.tokens, plain.tokens);
        assert_eq!((plain.segments.len(), answer.segments.len()), (1, 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_answered_at_a_pause_can_ask_for_the_rest() {
    let weights = weights(1100, 1);
    let engine = engine(&weights, EngineSettings { texts_max: 8, ..EngineSettings::default() });
    let all = asks(WhenCut::Answer);
    let plain: Vec<_> = join_all(all.iter().cloned().map(|ask| engine.ask(ask))).await;
    let answers = begin_together(&engine, all.clone()).await;
    let before = engine.stats().sampled;
    until(&engine, "sampling", |stats| stats.sampled > before + 4 * TEXTS && stats.waiting == 4).await;
    engine.hold().await.unwrap();
    let parts: Vec<Answer> = join_all(answers).await.into_iter().map(|part| part.unwrap().unwrap()).collect();
    engine.go_on().await.unwrap();
    // Four had not begun.
    assert_eq!(parts.iter().filter(|part| part.tokens.is_empty()).count(), 4);
    for ((mut ask, plain), part) in all.into_iter().zip(plain).zip(parts) {
        assert_eq!(part.ended, Ended::Cut);
        assert!(part.tokens.len() < TOKENS as usize);
        ask.prompt.extend(&part.tokens);
        ask.sampling.max_new_tokens -= u32::try_from(part.tokens.len()).unwrap();
        let rest = engine.ask(ask).await.unwrap();
        assert_eq!([part.tokens, rest.tokens].concat(), plain.unwrap().tokens);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_ends_the_one_that_is_named() {
    let weights = weights(1100, 1);
    let engine = engine(&weights, EngineSettings { texts_max: 2, ..EngineSettings::default() });
    let named = |name: &str| Ask { rid: name.to_owned(), ..ask("<|user|>what?", 1, TOKENS) };
    engine.hold().await.unwrap();
    let answers = begin(&engine, vec![named("a"), named("b"), named("c")]);
    until(&engine, "waiting", |stats| stats.waiting == 3).await;
    assert_eq!(engine.abort(Some("b".to_owned())).await.unwrap(), 1);
    assert_eq!(engine.stats().waiting, 2);
    engine.go_on().await.unwrap();
    let ends: Vec<Ended> =
        join_all(answers).await.into_iter().map(|answer| answer.unwrap().unwrap().ended).collect();
    assert_eq!(ends, [Ended::Length, Ended::Cut, Ended::Length]);
}

#[tokio::test]
async fn a_version_belongs_to_its_weights() {
    let weights = weights(96, 1);
    let engine = engine(&weights, EngineSettings::default());
    engine.set_version(0);
    engine.set_version(5);
    assert_eq!(Engine::version(&engine), 0);
    let answer = engine.ask(ask("1", 0, 3)).await.unwrap();
    assert_eq!(answer.segments, [Segment { tokens: 3, version: 0 }]);
    let other = Weights::random(Shape { layers: 1, ..*weights.shape() }, 0);
    let error = engine.update(Arc::new(other), 5).await.unwrap_err();
    assert!(error.to_string().contains("layers: 1"), "{error}");
    assert_eq!(Engine::version(&engine), 0);
}
