//! Sums of two numbers of two digits.

use rand_chacha::ChaCha8Rng;
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::SharedWorkflow;
use rollyard_engine::generate::GenerationConfig;
use rollyard_engine::reward::SharedReward;
use rollyard_engine::workflow::SingleTurn;
use std::sync::Arc;

use super::{Part, Problem, given, happens, said};

pub(super) fn problems() -> Vec<Problem> {
    let pairs = (10..=99).flat_map(|a| (10..=99).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| Problem {
            question: format!("{a}+{b}"),
            answer: (a + b).to_string(),
            numbers: [a, b, 0],
        })
        .collect()
}

pub(super) fn workflow(
    tokenizer: Arc<Tokenizer>,
    gconfig: GenerationConfig,
    reward: SharedReward,
) -> SharedWorkflow {
    Arc::new(SingleTurn::new(Some(tokenizer), gconfig, reward))
}

pub(super) fn show(problem: &Problem, careless_percent: usize, rng: &mut ChaCha8Rng) -> Vec<Part> {
    let [a, b, _] = problem.numbers;
    let answer = if happens(rng, careless_percent) { careless(a, b) } else { problem.answer.clone() };
    vec![given(format!("<|user|>{}<|end|><|assistant|>", problem.question)), said(format!("{answer}<|end|>"))]
}

/// The sum of somebody who never carries: `47+85` is `22`.
pub(super) fn careless(a: u32, b: u32) -> String {
    format!("{}{}", (a / 10 + b / 10) % 10, (a + b) % 10)
}
