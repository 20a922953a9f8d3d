//! When a group is worth training on, and what the trainer sees of it.
//!
//! A read passes a group through five steps, each a strategy named in the run's configuration and each
//! in a file of its own with its formula: [`Meta`] counts what arrived, [`Validate`] judges the group,
//! [`Filter`] its items, [`Normalize`] the rewards, [`Pad`] the size.
//!
//! The steps work on [`Member`]s, the few facts about a rollout that they need, so the ledger can run
//! them without touching a payload. They are pure: the same group gives the same rows in every replay.

use serde::{Deserialize, Serialize};
use std::fmt;

mod filter;
mod meta;
mod normalize;
mod pad;
mod validate;

pub use filter::Filter;
pub use meta::{Meta, MetaInfo, Tally};
pub use normalize::Normalize;
pub use pad::Pad;
pub use validate::{Stage, Validate, Verdict};

use crate::run_config::RunConfig;

/// What the pipeline knows of one rollout in a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    pub reward: f64,
    /// Its last message has text in it; the rule of `math` counts these.
    pub answered: bool,
}

/// One line of the answer to a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which member of the group it shows.
    pub member: usize,
    /// The reward after normalisation and padding.
    pub reward: f64,
    /// What it is worth in the loss: 1, or 0 for a row that only fills the shape.
    pub weight: f64,
    /// For a copy that pads the group: the how-manieth, from 1. `None` for the member itself.
    pub copy: Option<u32>,
}

/// Why a rollout left without being trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// All rewards of the group were equal: nothing to learn from.
    NoVariance,
    /// Too few members of the group ended in an answer.
    TooFewAnswers,
    /// The group timed out, or was closed, with too few rollouts.
    TooFewInTime,
    /// The filter took this rollout out of a group that was used.
    Filtered,
    /// The filter left too few rollouts of the group.
    TooFewValid,
    /// The group is too short to be padded by copies of itself.
    CannotPad,
    /// Somebody asked for it.
    Requested,
    /// Its bytes on disk no longer match their checksum.
    Corrupt,
}

impl DropReason {
    pub const ALL: [Self; 8] = [
        Self::NoVariance,
        Self::TooFewAnswers,
        Self::TooFewInTime,
        Self::Filtered,
        Self::TooFewValid,
        Self::CannotPad,
        Self::Requested,
        Self::Corrupt,
    ];

    /// The name in counters, metrics and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoVariance => "no_variance",
            Self::TooFewAnswers => "too_few_answers",
            Self::TooFewInTime => "too_few_in_time",
            Self::Filtered => "filtered",
            Self::TooFewValid => "too_few_valid",
            Self::CannotPad => "cannot_pad",
            Self::Requested => "requested",
            Self::Corrupt => "corrupt",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rows a trainer gets of a group that was found valid: filtered, normalised and padded.
///
/// Members that the filter took out are those no row shows.
pub fn process(members: &[Member], config: &RunConfig) -> Result<Vec<Row>, DropReason> {
    let kept: Vec<usize> = (0..members.len())
        .filter(|&i| members.get(i).is_some_and(|member| config.filter.passes(member, config)))
        .collect();
    if kept.len() < config.valid_items() {
        return Err(DropReason::TooFewValid);
    }
    let raw: Vec<f64> = kept.iter().filter_map(|&i| members.get(i)).map(|member| member.reward).collect();
    let rows = kept
        .iter()
        .zip(config.normalize.rewards(&raw))
        .map(|(&member, reward)| Row { member, reward, weight: 1.0, copy: None })
        .collect();
    config.pad.fill(rows, config.group_len())
}
