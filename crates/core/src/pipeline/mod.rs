//! When a group is worth training on, and what the trainer sees of it.
//!
//! A read passes a group through five steps, each a strategy named in the run's configuration and each
//! in a file of its own with its formula: [`Meta`] counts what arrived, [`Validate`] judges the group,
//! [`Filter`] its items, [`Normalize`] the rewards, [`Pad`] the size.
//!
//! The steps work on [`Member`]s, the few facts about a rollout that they need, so the ledger can run
//! them without touching a payload. They are pure: the same group gives the same rows in every replay.
//!
//! A step can also be left to a function of the task's generator (`hook`). Then the ledger poses the group, somebody
//! outside calls the functions, and what they made of the group is an event: replays need no Python.

use serde::{Deserialize, Serialize};
use std::fmt;

mod filter;
mod meta;
mod normalize;
mod pad;
mod transform;
mod validate;

pub use filter::Filter;
pub use meta::{Meta, MetaInfo, Tally};
pub use normalize::Normalize;
pub use pad::Pad;
pub use transform::Transform;
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
    /// For a copy that pads the group: the how-manieth of the group, from 1. `None` for the member itself.
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
    /// The trainer is too many steps ahead of the weights that sampled it.
    StaleStep,
    /// It was made too long ago.
    StaleTime,
    /// All its tokens were sampled with weights too many steps behind the trainer.
    StaleTokens,
    /// It was sampled with weights that the trainer does not have yet, or no longer.
    FutureStep,
    /// Newer rollouts of its environment needed the room.
    Capacity,
    /// A function of the task's generator found the group finished and not valid.
    HookRejected,
    /// A function of the task's generator raised, hung, died or returned the wrong shape.
    HookFailed,
    /// Its generator was started again and makes its group anew.
    Regenerated,
}

impl DropReason {
    pub const ALL: [Self; 16] = [
        Self::NoVariance,
        Self::TooFewAnswers,
        Self::TooFewInTime,
        Self::Filtered,
        Self::TooFewValid,
        Self::CannotPad,
        Self::Requested,
        Self::Corrupt,
        Self::StaleStep,
        Self::StaleTime,
        Self::StaleTokens,
        Self::FutureStep,
        Self::Capacity,
        Self::HookRejected,
        Self::HookFailed,
        Self::Regenerated,
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
            Self::StaleStep => "stale_step",
            Self::StaleTime => "stale_time",
            Self::StaleTokens => "stale_tokens",
            Self::FutureStep => "future_step",
            Self::Capacity => "capacity",
            Self::HookRejected => "hook_rejected",
            Self::HookFailed => "hook_failed",
            Self::Regenerated => "regenerated",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The members that the filter lets through, if they are enough.
pub fn passing(members: &[Member], config: &RunConfig) -> Result<Vec<usize>, DropReason> {
    let kept: Vec<usize> = (0..members.len())
        .filter(|&i| members.get(i).is_some_and(|member| config.filter.passes(member, config)))
        .collect();
    if kept.len() < config.valid_items() {
        return Err(DropReason::TooFewValid);
    }
    Ok(kept)
}

/// The rows a trainer gets of a group that was found valid: filtered, normalised and padded.
///
/// Members that the filter took out are those no row shows.
pub fn process(members: &[Member], config: &RunConfig) -> Result<Vec<Row>, DropReason> {
    let kept = passing(members, config)?;
    let raw: Vec<f64> = kept.iter().filter_map(|&i| members.get(i)).map(|member| member.reward).collect();
    let rows = kept
        .iter()
        .zip(config.normalize.rewards(&raw))
        .map(|(&member, reward)| Row { member, reward, weight: 1.0, copy: None })
        .collect();
    config.pad.fill(rows, config.group_len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    pub(super) fn config(changes: Value) -> RunConfig {
        let Value::Object(map) = changes else { panic!("a patch is an object") };
        RunConfig::default().patched(&map).unwrap()
    }

    pub(super) fn members(rewards: &[f64]) -> Vec<Member> {
        rewards.iter().map(|&reward| Member { reward, answered: true }).collect()
    }

    /// Member, reward and weight of every row, rewards to six places.
    fn rows(rewards: &[f64], changes: Value) -> Result<Vec<(usize, f64, f64)>, DropReason> {
        let rows = process(&members(rewards), &config(changes))?;
        Ok(rows.iter().map(|row| (row.member, (row.reward * 1e6).round() / 1e6, row.weight)).collect())
    }

    #[test]
    fn a_group_is_filtered_then_normalised_then_padded() {
        for (what, rewards, changes, expected) in [
            (
                "a full group of rewards that pass",
                vec![0.0, 1.0],
                json!({"group_size": 2}),
                Ok(vec![(0, -1.0, 1.0), (1, 1.0, 1.0)]),
            ),
            (
                "the failed rollout is not in the mean, and its place is filled by a copy",
                vec![-1.0, 0.0, 1.0, 0.0, 1.0],
                json!({"group_size": 5}),
                Ok(vec![(1, -0.625, 1.0), (2, 1.25, 1.0), (3, -1.25, 1.0), (4, 1.25, 1.0), (1, -0.625, 1.0)]),
            ),
            (
                "or by a row that weighs nothing",
                vec![-1.0, 0.0, 1.0],
                json!({"group_size": 3, "min_valid_item_size_ratio": 0.6, "pad": "mask"}),
                Ok(vec![(1, -1.0, 1.0), (2, 1.0, 1.0), (1, 0.0, 0.0)]),
            ),
            (
                "or left open",
                vec![-1.0, 0.0, 1.0],
                json!({"group_size": 3, "min_valid_item_size_ratio": 0.6, "pad": "none"}),
                Ok(vec![(1, -1.0, 1.0), (2, 1.0, 1.0)]),
            ),
            (
                "with every step off, the group passes as it came",
                vec![-1.0, 7.5],
                json!({"group_size": 2, "filter": "none", "normalize": "none", "pad": "none"}),
                Ok(vec![(0, -1.0, 1.0), (1, 7.5, 1.0)]),
            ),
            (
                "rewards that only the failed rollout told apart carry no signal",
                vec![-1.0, 1.0, 1.0, 1.0],
                json!({"group_size": 4}),
                Ok(vec![(1, 0.0, 1.0), (2, 0.0, 1.0), (3, 0.0, 1.0), (1, 0.0, 1.0)]),
            ),
            (
                "two of four are below the 0.7 that must pass",
                vec![-1.0, -1.0, 0.0, 1.0],
                json!({"group_size": 4}),
                Err(DropReason::TooFewValid),
            ),
            ("nothing passes", vec![-1.0; 4], json!({"group_size": 4}), Err(DropReason::TooFewValid)),
            ("nothing is there", vec![], json!({"group_size": 4}), Err(DropReason::TooFewValid)),
            (
                "one of three may pass, but cannot be copied twice",
                vec![0.5],
                json!({"group_size": 3, "min_valid_item_size_ratio": 0.1}),
                Err(DropReason::CannotPad),
            ),
        ] {
            assert_eq!(rows(&rewards, changes), expected, "{what}");
        }
    }

    #[test]
    fn math_keeps_a_group_whose_answers_all_score_the_same() {
        let group = members(&[1.0; 4]);
        for (validate, verdict) in [
            ("answered", Verdict::Valid),
            ("varied", Verdict::Invalid(DropReason::NoVariance)),
            ("sized", Verdict::Valid),
        ] {
            let config = config(json!({"group_size": 4, "validate": validate}));
            assert_eq!(config.validate.judge(&group, Stage::Full, &config), verdict, "{validate}");
        }
        let zero = |member| (member, 0.0, 1.0);
        assert_eq!(rows(&[1.0; 4], json!({"group_size": 4})), Ok((0..4).map(zero).collect()));
    }

    #[test]
    fn a_drop_reason_has_one_name_everywhere() {
        for reason in DropReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), json!(reason.name()));
            assert_eq!(reason.to_string(), reason.name());
        }
    }

    proptest! {
        #[test]
        fn a_group_is_used_exactly_from_the_valid_share_on(
            group_size in 1usize..40,
            percent in 1usize..=100,
            passing in 0usize..40,
        ) {
            let passing = passing.min(group_size);
            let mut rewards = vec![-1.0; group_size - passing];
            rewards.resize(group_size, 0.5);
            let changes = json!({
                "group_size": group_size,
                "min_valid_item_size_ratio": percent as f64 / 100.0,
                "pad": "none",
            });
            let needed = (group_size * percent).div_ceil(100).max(1);
            let expected = if passing < needed { Err(DropReason::TooFewValid) } else { Ok(passing) };
            prop_assert_eq!(rows(&rewards, changes).map(|rows| rows.len()), expected);
        }

        #[test]
        fn a_used_group_is_whole_finite_and_balanced(
            rewards in prop::collection::vec(0.0..=1.0f64, 1..32),
            missing in 0usize..32,
            pad in prop_oneof![Just("repeat"), Just("mask")],
        ) {
            let group_size = rewards.len() + missing.min(rewards.len());
            let changes =
                json!({"group_size": group_size, "min_valid_item_size_ratio": 0.01, "pad": pad});
            let rows = process(&members(&rewards), &config(changes)).unwrap();
            prop_assert_eq!(rows.len(), group_size);
            prop_assert!(rows.iter().all(|row| row.reward.is_finite()));
            prop_assert!(rows.iter().map(|row| row.reward * row.weight).sum::<f64>().abs() < 1e-6);
            let mut shown: Vec<usize> = rows.iter().filter(|r| r.copy.is_none()).map(|r| r.member).collect();
            shown.dedup();
            prop_assert_eq!(shown, (0..rewards.len()).collect::<Vec<_>>());
        }
    }
}
