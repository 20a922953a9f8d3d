//! How many bytes a rollout is, by writing one.
//!
//! The JSON is what the gateway hands to a yard: messages, token ids, and for every token behind the prompt its
//! log-probability, weight version and mask. Ids are spread evenly over the vocabulary, which makes them longer than
//! those of real text.

use rollyard_core::rollout::{Draft, Rollout};
use rollyard_core::wire::rollout::TokenFields;
use serde::Serialize;
use serde_json::Value;

use super::dice::Dice;
use super::fleet::Shape;

const VOCABULARY: u64 = 151_936;
const CHARACTERS_PER_TOKEN: usize = 4;

#[derive(Serialize)]
struct Item<'a> {
    uid: &'a str,
    instance_id: &'a str,
    messages: Vec<Value>,
    reward: f64,
    weight_version: u32,
    group_size: u32,
    #[serde(flatten)]
    tokens: TokenFields<'a>,
}

/// Bytes of a rollout as they follow from its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// What is there before the first turn.
    pub(crate) prompt_bytes: f64,
    /// All of it, at mean length.
    pub(crate) mean_bytes: f64,
}

impl Sizes {
    pub(crate) fn of(shape: &Shape) -> Self {
        let bytes = |turns: f64| write(&Shape { turns, ..*shape }).len() as f64;
        Self { prompt_bytes: bytes(0.0), mean_bytes: bytes(shape.turns) }
    }

    /// Of a rollout that is `length` times as long as the mean.
    pub(super) fn bytes(&self, length: f64) -> u32 {
        (self.prompt_bytes + (self.mean_bytes - self.prompt_bytes) * length) as u32
    }
}

/// The JSON of a rollout of mean length.
pub(crate) fn write(shape: &Shape) -> Vec<u8> {
    let mut dice = Dice::new(0, 0);
    let mut draft = Draft { prompt_len: shape.prompt_tokens as usize, ..Draft::default() };
    let mut messages = Vec::new();
    let (mut logprobs, mut sampled, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    let mut say = |role: &str, count: f64, dice: &mut Dice| {
        let count = count as usize;
        let letters = (0..count * CHARACTERS_PER_TOKEN).map(|_| char::from(b'a' + dice.below(26) as u8));
        messages.push(serde_json::json!({"role": role, "content": letters.collect::<String>()}));
        draft.tokens.extend((0..count).map(|_| dice.below(VOCABULARY) as i32));
    };
    say("user", shape.prompt_tokens, &mut dice);
    for _ in 0..shape.turns as usize {
        for (role, count) in [("assistant", shape.sampled_per_turn), ("tool", shape.read_per_turn)] {
            let is_sampled = role == "assistant";
            if count > 0.0 {
                say(role, count, &mut dice);
            }
            for _ in 0..count as usize {
                logprobs.push(if is_sampled { libm::log(1.0 - dice.unit()) as f32 } else { 0.0 });
                sampled.push(is_sampled);
                versions.push(if is_sampled { 812 } else { -1 });
            }
        }
    }
    (draft.logprobs, draft.sampled, draft.versions) = (Some(logprobs), Some(sampled), Some(versions));
    let rollout = Rollout::try_from(draft).expect("lists of one length each");
    let item = Item {
        uid: "9d1f3c5a7be24860a1c3e5f708192a3b",
        instance_id: "prompt-00812",
        messages,
        reward: 1.0,
        weight_version: 812,
        group_size: super::fleet::GROUP_SIZE,
        tokens: TokenFields::of(&rollout).expect("log-probabilities are finite"),
    };
    serde_json::to_vec(&item).expect("plain data")
}
