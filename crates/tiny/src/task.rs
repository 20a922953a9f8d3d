//! What the policy learns: problems whose answers can be checked, and a teacher who is not much of one.
//!
//! Problems are made from a seed, those to train on and those held out apart. The warm-up imitates a teacher who
//! grows careless, so that the model knows the form of an answer and both the right way and the wrong one, and prefers
//! the wrong; what is right it has to find out by its reward.

mod arithmetic;
mod tool;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::{Data, SharedWorkflow};
use rollyard_engine::generate::GenerationConfig;
use rollyard_engine::reward::{ExactReward, SharedReward};
use serde_json::json;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::train::Lesson;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `47+85` is `132`.
    Arithmetic,
    /// `6*7+15` is `57`, by way of a tool that multiplies.
    Tool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no task {0:?}; there are arithmetic and tool")]
pub struct UnknownTask(pub String);

impl FromStr for Task {
    type Err = UnknownTask;

    fn from_str(name: &str) -> Result<Self, UnknownTask> {
        let all = [Self::Arithmetic, Self::Tool];
        all.into_iter().find(|task| task.name() == name).ok_or_else(|| UnknownTask(name.to_owned()))
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub question: String,
    pub answer: String,
    /// Its numbers, for whoever shows how it is done.
    numbers: [u32; 3],
}

/// The problems of a task, in an order that the seed says.
#[derive(Clone, Debug)]
pub struct Problems {
    pub train: Vec<Problem>,
    pub held_out: Vec<Problem>,
}

/// Problems that are kept for seeing whether it was learnt.
const HELD_OUT: usize = 500;

/// A part of a conversation: as text, and whether the model said it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    text: String,
    is_model: bool,
}

fn given(text: String) -> Part {
    Part { text, is_model: false }
}

fn said(text: String) -> Part {
    Part { text, is_model: true }
}

impl Task {
    pub fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Tool => "tool",
        }
    }

    pub fn problems(self, seed: u64) -> Problems {
        let mut train = match self {
            Self::Arithmetic => arithmetic::problems(),
            Self::Tool => tool::problems(),
        };
        shuffle(&mut train, &mut ChaCha8Rng::seed_from_u64(seed));
        let held_out = train.split_off(train.len().saturating_sub(HELD_OUT));
        Problems { train, held_out }
    }

    /// Tokens that an answer may have, each turn.
    pub fn answer_tokens_max(self) -> u32 {
        match self {
            Self::Arithmetic => 5,
            Self::Tool => 10,
        }
    }

    pub fn workflow(self, tokenizer: Arc<Tokenizer>, gconfig: GenerationConfig) -> SharedWorkflow {
        let gconfig = GenerationConfig { max_new_tokens: self.answer_tokens_max(), ..gconfig };
        let reward: SharedReward = Arc::new(ExactReward);
        match self {
            Self::Arithmetic => arithmetic::workflow(tokenizer, gconfig, reward),
            Self::Tool => tool::workflow(tokenizer, gconfig, reward),
        }
    }

    /// How the teacher goes about a problem, on a day when so many of a hundred are done carelessly.
    pub fn lesson(
        self,
        tokenizer: &Tokenizer,
        problem: &Problem,
        careless_percent: usize,
        rng: &mut ChaCha8Rng,
    ) -> Lesson {
        let parts = match self {
            Self::Arithmetic => arithmetic::show(problem, careless_percent, rng),
            Self::Tool => tool::show(problem, careless_percent, rng),
        };
        let mut lesson = Lesson { advantage: 1.0, temperature: 1.0, ..Lesson::default() };
        for part in parts {
            let ids = tokenizer.encoder().encode(&part.text).unwrap_or_default();
            lesson.sampled.extend(ids.iter().map(|_| part.is_model.then_some(0.0)));
            lesson.tokens.extend(ids.into_iter().map(|id| i32::try_from(id).unwrap_or_default()));
        }
        lesson
    }
}

impl Problem {
    /// As a workflow is given it. The question is its name: whenever it is asked, it is the same instance.
    pub fn data(&self, task: Task) -> Data {
        let text = json!({
            "messages": [{"role": "user", "content": self.question}],
            "label": self.answer,
            "instance_id": self.question,
            "id": self.question,
            "env_name": task.name(),
        });
        Data::parse(&text.to_string()).expect("it was made as an object")
    }
}

/// From 0 to one less.
pub(crate) fn below(rng: &mut ChaCha8Rng, most: usize) -> usize {
    usize::try_from(rng.next_u64() % (most.max(1) as u64)).unwrap_or_default()
}

pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for end in (1..items.len()).rev() {
        items.swap(end, below(rng, end + 1));
    }
}

/// So often in a hundred.
fn happens(rng: &mut ChaCha8Rng, percent: usize) -> bool {
    below(rng, 100) < percent
}

#[cfg(test)]
mod tests;
