//! A session as samples to train on.
//!
//! *Concatenated*, every sequence of tokens that nothing goes on from is a sample: the turns of its chain are its
//! response, what was given in between is masked. Where a conversation branched, the turns before the branch stand in
//! several sequences, but are trained on in the first of them only: a token that was sampled once counts once.
//! *Individual*, every turn is a sample of its own.

use rollyard_core::rollout::{Draft, Metadata, NO_VERSION, Rollout, RolloutError};
use rollyard_engine::episode::{PromptAndCompletion, Sample};
use rollyard_engine::generate::{Message, Segment, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

use super::tree::Tree;
use super::turn::{Cut, Ending, Turn, TurnNo};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    #[default]
    Concat,
    Individual,
}

/// What the turns of a session are worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewards {
    pub of_turns: BTreeMap<TurnNo, f64>,
    /// Of every turn that the conversation ended with, unless it has its own.
    pub last: Option<f64>,
}

impl Rewards {
    pub fn is_empty(&self) -> bool {
        self.last.is_none() && self.of_turns.is_empty()
    }

    fn own(&self, no: TurnNo, ends: bool) -> f64 {
        let last = self.last.filter(|_| ends);
        self.of_turns.get(&no).copied().or(last).unwrap_or_default()
    }
}

#[derive(Debug)]
pub struct Export<'a> {
    pub tree: &'a Tree,
    pub rewards: &'a Rewards,
    pub style: Style,
    /// What a turn is worth less for every turn that stands between it and the reward.
    pub discount: f64,
    pub env_name: &'a str,
    pub env_example_id: &'a str,
}

impl Export<'_> {
    pub fn samples(&self) -> Result<Vec<Sample>, RolloutError> {
        let leaves = self.tree.leaves();
        let mut samples = match self.style {
            Style::Concat => self.chains(&leaves)?,
            Style::Individual => self.turns(&leaves)?,
        };
        let count = samples.len();
        for (part, sample) in samples.iter_mut().enumerate().filter(|_| count > 1) {
            sample.extra.insert("part".to_owned(), part.into());
            sample.extra.insert("parts".to_owned(), count.into());
        }
        Ok(samples)
    }

    fn chains(&self, leaves: &[TurnNo]) -> Result<Vec<Sample>, RolloutError> {
        let mut trained = HashSet::new();
        let mut samples = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let chain = self.tree.chain(*leaf);
            let reward = chain.iter().map(|no| self.rewards.own(*no, no == leaf)).sum();
            let fresh: Vec<TurnNo> = chain.iter().copied().filter(|no| trained.insert(*no)).collect();
            samples.push(self.sample(&chain, &fresh, reward)?);
        }
        Ok(samples)
    }

    fn turns(&self, leaves: &[TurnNo]) -> Result<Vec<Sample>, RolloutError> {
        let mut heard: Vec<TurnNo> = leaves.iter().flat_map(|leaf| self.tree.chain(*leaf)).collect();
        heard.sort_unstable();
        heard.dedup();
        let worth = self.returns(&heard);
        let each = heard.iter().map(|no| {
            let reward = worth.get(no).copied().unwrap_or_default();
            self.sample(&self.tree.chain(*no), &[*no], reward)
        });
        each.collect()
    }

    /// What each turn led to: its own reward, and what came of it, discounted; the mean where it branched.
    fn returns(&self, heard: &[TurnNo]) -> BTreeMap<TurnNo, f64> {
        let mut later: BTreeMap<TurnNo, Vec<f64>> = BTreeMap::new();
        let mut worth = BTreeMap::new();
        // Whoever follows has a higher number.
        for no in heard.iter().rev() {
            let behind = later.remove(no).unwrap_or_default();
            let mean = behind.iter().sum::<f64>() / behind.len().max(1) as f64;
            let value = self.rewards.own(*no, behind.is_empty()) + self.discount * mean;
            worth.insert(*no, value);
            if let Some(before) = self.tree.get(*no).and_then(|turn| turn.follows) {
                later.entry(before).or_default().push(value);
            }
        }
        worth
    }

    /// The tokens of a chain, of which the answers in `trained` count.
    fn sample(&self, chain: &[TurnNo], trained: &[TurnNo], reward: f64) -> Result<Sample, RolloutError> {
        let turns: Vec<(TurnNo, &Turn)> =
            chain.iter().filter_map(|no| Some((*no, self.tree.get(*no)?))).collect();
        let Some((leaf, last)) = turns.last().copied() else { return Ok(Sample::default()) };
        let first = turns.iter().find(|(no, _)| trained.contains(no));
        let prompt_len = first.map_or(last.len(), |(_, turn)| turn.prompt_len());
        let mut line = Line::default();
        for (no, turn) in turns.iter().filter(|(_, turn)| turn.prompt_len() >= prompt_len) {
            line.give(if line.is_begun { turn.given.len() } else { 0 });
            line.is_begun = true;
            let own = self.rewards.of_turns.get(no).copied().unwrap_or_default();
            line.answer(turn, trained.contains(no), own);
        }
        let lacks_logprobs =
            turns.iter().any(|(no, turn)| trained.contains(no) && turn.logprobs.len() != turn.sampled.len());
        let version = line.segments.iter().find(|segment| segment.tokens > 0).map(|segment| segment.version);
        let draft = Draft {
            env_name: self.env_name.to_owned(),
            env_example_id: self.env_example_id.to_owned(),
            tokens: self.tree.tokens(leaf),
            prompt_len,
            logprobs: (!lacks_logprobs).then_some(line.logprobs),
            sampled: Some(line.sampled),
            versions: Some(line.versions),
            token_rewards: (!self.rewards.of_turns.is_empty()).then_some(line.rewards),
            episode_reward: reward,
            metadata: Metadata { weight_step: version.map_or(-1, i64::from), ..Metadata::default() },
            temperature: Some(last.facts.temperature),
            top_k: last.facts.top_k.and_then(|top_k| i32::try_from(top_k).ok()),
            is_truncated: last.facts.stop == Ending::Length,
            ..Draft::default()
        };
        Ok(Sample {
            rollout: Some(Rollout::try_from(draft)?),
            reward,
            messages: self.messages(leaf, last),
            text: None::<PromptAndCompletion>,
            segments: line.segments,
            stop_reason: Some(match last.facts.stop {
                Ending::Stop => StopReason::Stop,
                Ending::Length => StopReason::Length,
                Ending::ToolCalls => StopReason::ToolCalls,
                Ending::Abort => StopReason::Abort,
            }),
            extra: extra(&turns, trained),
        })
    }

    fn messages(&self, leaf: TurnNo, last: &Turn) -> Vec<Message> {
        let before = self.tree.conversation(leaf).into_iter();
        before.chain([&last.answer]).map(|message| message.json.clone()).collect()
    }
}

/// What is said of a sample beside its tokens.
fn extra(turns: &[(TurnNo, &Turn)], trained: &[TurnNo]) -> Map<String, Value> {
    let sum = |value: &dyn Fn(&Turn) -> usize| turns.iter().map(|(_, turn)| value(turn)).sum::<usize>();
    let mut extra = Map::new();
    extra.insert("turn_numbers".to_owned(), json!(trained));
    let cut = turns.iter().find_map(|(_, turn)| turn.cut);
    if let Some(cut) = cut {
        extra.insert("cut".to_owned(), json!(cut_words(cut)));
    }
    for (name, count) in [
        ("malformed_calls", sum(&|turn| turn.facts.malformed.len())),
        ("missing_calls", sum(&|turn| usize::from(turn.facts.lacks_call))),
        ("kept_thoughts", sum(&|turn| usize::from(turn.facts.keeps_thoughts))),
    ] {
        if count > 0 {
            extra.insert(name.to_owned(), count.into());
        }
    }
    let took: f64 =
        turns.iter().filter(|(no, _)| trained.contains(no)).map(|(_, turn)| turn.facts.took_ms).sum();
    extra.insert("generation_secs".to_owned(), json!(took.round() / 1e3));
    extra
}

pub fn cut_words(cut: Cut) -> &'static str {
    match cut {
        Cut::Rewritten => "the agent rewrote the conversation or began another",
        Cut::Template => "the template rewrites what was said before",
        Cut::Retokenised => "the text of the prompt has other tokens than were sampled",
    }
}

/// A response while it is put together.
#[derive(Default)]
struct Line {
    is_begun: bool,
    logprobs: Vec<f32>,
    sampled: Vec<bool>,
    versions: Vec<i32>,
    rewards: Vec<f32>,
    segments: Vec<Segment>,
}

impl Line {
    fn give(&mut self, count: usize) {
        self.extend(count, false, |_| 0.0);
        self.versions.extend(std::iter::repeat_n(NO_VERSION, count));
    }

    fn answer(&mut self, turn: &Turn, counts: bool, reward: f64) {
        let count = turn.sampled.len();
        if !counts {
            return self.give(count);
        }
        self.extend(count, true, |at| turn.logprobs.get(at).copied().unwrap_or_default());
        for segment in &turn.segments {
            self.versions.extend(std::iter::repeat_n(segment.version, segment.tokens));
        }
        self.segments.extend(turn.segments.iter().cloned());
        if let Some(last) = self.rewards.last_mut().filter(|_| count > 0) {
            *last = reward as f32;
        }
    }

    fn extend(&mut self, count: usize, sampled: bool, logprob: impl Fn(usize) -> f32) {
        self.logprobs.extend((0..count).map(logprob));
        self.sampled.extend(std::iter::repeat_n(sampled, count));
        self.rewards.extend(std::iter::repeat_n(0.0, count));
    }
}
