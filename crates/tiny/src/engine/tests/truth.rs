//! Log-probabilities are those that a trainer finds, and tokens depend on the seed alone.

use futures_util::future::join_all;

use super::*;
use crate::train::{Lesson, Student};

#[tokio::test]
async fn a_trainer_finds_the_logprobs_that_were_sampled() {
    let weights = weights(96, 1);
    let engine = engine(&weights, EngineSettings::default());
    for (temperature, top_p, top_k) in
        [(1.0, 1.0, None), (0.7, 1.0, None), (1.0, 0.8, Some(40)), (1.3, 0.5, None)]
    {
        let asks = (0..40_u64).map(|seed| {
            let mut ask = ask(&format!("<|user|>{seed}+{}<|end|><|assistant|>", seed * 7), seed, 60);
            ask.sampling = GenerationConfig { temperature, top_p, top_k, ..ask.sampling };
            ask
        });
        let asks: Vec<Ask> = asks.collect();
        let answers = join_all(asks.iter().cloned().map(|ask| engine.ask(ask))).await;
        let answers: Vec<Answer> = answers.into_iter().map(Result::unwrap).collect();
        let lessons: Vec<Lesson> = asks
            .iter()
            .zip(&answers)
            .map(|(ask, answer)| {
                let mut lesson = Lesson::answer(&ask.prompt, &answer.tokens);
                lesson.temperature = temperature;
                lesson
            })
            .collect();
        let found = Student { threads: 2 }.logprobs(&weights, &lessons).unwrap();
        let told: Vec<f32> = answers.iter().flat_map(|answer| answer.logprobs.clone()).collect();
        assert_eq!(found.len(), 40 * 60);
        assert_eq!(told.len(), found.len());
        let worst = told.iter().zip(&found).map(|(told, found)| (told - found).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst} at temperature {temperature}");
    }
}

#[tokio::test]
async fn company_changes_nothing() {
    let weights = weights(96, 2);
    let engine = engine(&weights, EngineSettings { texts_max: 16, ..EngineSettings::default() });
    let alone = engine.ask(ask("<|user|>3*4?", 42, 50)).await.unwrap();
    let others = (0..40).map(|seed| ask("<|user|>something else", seed, 20 + seed as u32));
    let asks = others.chain([ask("<|user|>3*4?", 42, 50)]);
    let answers = join_all(asks.map(|ask| engine.ask(ask))).await;
    let among = answers.into_iter().last().unwrap().unwrap();
    assert_eq!((&among.tokens, &among.logprobs), (&alone.tokens, &alone.logprobs));
    let other = engine.ask(ask("<|user|>3*4?", 43, 50)).await.unwrap();
    assert_ne!(other.tokens, alone.tokens);
    let second = engine.ask(Ask { nth: 1, ..ask("<|user|>3*4?", 42, 50) }).await.unwrap();
    assert_ne!(second.tokens, alone.tokens);
    let unseeded = || {
        let mut ask = ask("<|user|>3*4?", 0, 50);
        ask.sampling.seed = None;
        engine.ask(ask)
    };
    assert_ne!(unseeded().await.unwrap().tokens, unseeded().await.unwrap().tokens);
}

#[tokio::test]
async fn the_likeliest_tokens_are_told_in_order() {
    let weights = weights(96, 3);
    let engine = engine(&weights, EngineSettings::default());
    let mut greedy = Ask { tops: 5, ..ask("12", 0, 10) };
    greedy.sampling.greedy = true;
    let answer = engine.ask(greedy).await.unwrap();
    assert_eq!(answer.tops.len(), 10);
    for ((tops, token), logprob) in answer.tops.iter().zip(&answer.tokens).zip(&answer.logprobs) {
        assert_eq!(tops.len(), 5);
        assert_eq!(tops[0], Alternative { token: *token, logprob: *logprob });
        assert!(tops.is_sorted_by(|one, next| one.logprob >= next.logprob), "{tops:?}");
    }
}

#[tokio::test]
async fn what_is_cut_off_is_never_sampled() {
    let weights = weights(96, 4);
    let engine = engine(&weights, EngineSettings::default());
    let within = |top_k, top_p| {
        let mut ask = Ask { tops: 20, ..ask("7*8=", 9, 80) };
        ask.sampling = GenerationConfig { top_k, top_p, ..ask.sampling };
        engine.ask(ask)
    };
    let ranks = |answer: &Answer| -> Vec<usize> {
        let ranked = answer.tops.iter().zip(&answer.tokens);
        ranked.map(|(tops, token)| tops.iter().position(|top| top.token == *token).unwrap_or(99)).collect()
    };
    let by_k = ranks(&within(Some(3), 1.0).await.unwrap());
    assert_eq!(by_k.iter().max(), Some(&2), "{by_k:?}");
    let answer = within(None, 0.2).await.unwrap();
    for ((tops, token), rank) in answer.tops.iter().zip(&answer.tokens).zip(ranks(&answer)) {
        // All that are likelier have less than `top_p` together.
        let before: f32 = tops.iter().take(rank).map(|top| top.logprob.exp()).sum();
        assert!(rank < 20 && before < 0.2, "{token} has rank {rank} behind {before}");
    }
    assert!(ranks(&answer).iter().any(|rank| *rank > 0));
    let free = ranks(&within(None, 1.0).await.unwrap());
    assert!(free.iter().any(|rank| *rank > 2));
}
