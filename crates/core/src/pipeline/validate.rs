//! Whether a group is worth training on, and when that can be said.
//!
//! A group is judged on every write and again when it can no longer grow. Until then a broken rule may
//! still come to hold, so the answer is to wait:
//!
//! - growing: valid when `size >= finished_size` and the rule holds, else waiting;
//! - full: valid when the rule holds, else invalid;
//! - timed out or closed: invalid when `size < timeout_size`, else as a full one. Coming late excuses a
//!   group from its size, never from its rule.

use serde::{Deserialize, Serialize};

use super::{DropReason, Member};
use crate::run_config::RunConfig;

/// Where a group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// More rollouts may come.
    Growing,
    /// It has `group_size` rollouts.
    Full,
    /// Its last write is longer ago than `group_timeout_seconds`.
    TimedOut,
    /// Somebody said that no more will come, or the next round has begun.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Waiting,
    Valid,
    Invalid(DropReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validate {
    /// Rewards are not all equal; equal ones have no advantage over each other.
    Varied,
    /// Enough members end in an answer: the rule of `math`, where a cut-off answer scores 0 for its
    /// length and not for its reasoning.
    Answered,
    /// The size is all that counts.
    Sized,
    /// A function of the task's generator decides, once the size is reached.
    Hook,
}

impl Validate {
    pub fn judge(self, members: &[Member], stage: Stage, config: &RunConfig) -> Verdict {
        match stage {
            Stage::Growing if members.len() < config.finished_size() => Verdict::Waiting,
            Stage::Growing => match self.broken_rule(members, config.finished_size()) {
                None => Verdict::Valid,
                Some(_) => Verdict::Waiting,
            },
            Stage::Full => self.final_verdict(members, config.finished_size()),
            Stage::TimedOut | Stage::Closed if members.len() < config.timeout_size() => {
                Verdict::Invalid(DropReason::TooFewInTime)
            }
            Stage::TimedOut | Stage::Closed => self.final_verdict(members, config.timeout_size()),
        }
    }

    fn final_verdict(self, members: &[Member], size_min: usize) -> Verdict {
        self.broken_rule(members, size_min).map_or(Verdict::Valid, Verdict::Invalid)
    }

    /// What speaks against a group that has `size_min` members.
    fn broken_rule(self, members: &[Member], size_min: usize) -> Option<DropReason> {
        let (holds, reason) = match self {
            Self::Varied => (varied(members), DropReason::NoVariance),
            Self::Answered => {
                let answers = members.iter().filter(|member| member.answered).count();
                (answers >= size_min, DropReason::TooFewAnswers)
            }
            Self::Sized | Self::Hook => return None,
        };
        (!holds).then_some(reason)
    }
}

fn varied(members: &[Member]) -> bool {
    members.iter().zip(members.iter().skip(1)).any(|(one, next)| one.reward != next.reward)
}

#[cfg(test)]
mod tests {
    use super::Stage::{Closed, Full, Growing, TimedOut};
    use super::Validate::{Answered, Sized, Varied};
    use super::*;
    use crate::pipeline::tests::{config, members};
    use Verdict::{Invalid, Valid, Waiting};
    use proptest::prelude::*;
    use serde_json::json;

    /// Groups of 10 that are finished at 8 and usable at 5 when late.
    fn judge(rule: Validate, members: &[Member], stage: Stage) -> Verdict {
        let config = config(json!({
            "group_size": 10,
            "min_valid_group_size_ratio": 0.8,
            "min_timeout_group_size_ratio": 0.5,
        }));
        rule.judge(members, stage, &config)
    }

    /// A group by its answered and its unanswered members, whose rewards are 1 and 0.
    fn group(answered: usize, unanswered: usize) -> Vec<Member> {
        let mut group = vec![Member { reward: 1.0, answered: true }; answered];
        group.resize(answered + unanswered, Member { reward: 0.0, answered: false });
        group
    }

    #[test]
    fn verdicts_follow_the_stage_and_the_rule() {
        let no_variance = Invalid(DropReason::NoVariance);
        let too_few_answers = Invalid(DropReason::TooFewAnswers);
        let too_few_in_time = Invalid(DropReason::TooFewInTime);
        for (rule, answered, unanswered, stage, expected) in [
            (Varied, 0, 0, Growing, Waiting),
            (Varied, 4, 3, Growing, Waiting),
            (Varied, 4, 4, Growing, Valid),
            (Varied, 8, 0, Growing, Waiting),
            (Varied, 9, 1, Full, Valid),
            (Varied, 10, 0, Full, no_variance),
            (Varied, 0, 10, Full, no_variance),
            (Varied, 2, 2, TimedOut, too_few_in_time),
            (Varied, 4, 1, TimedOut, Valid),
            (Varied, 5, 0, TimedOut, no_variance),
            (Varied, 0, 0, Closed, too_few_in_time),
            (Varied, 4, 1, Closed, Valid),
            (Varied, 9, 0, Closed, no_variance),
            (Answered, 7, 0, Growing, Waiting),
            (Answered, 7, 2, Growing, Waiting),
            (Answered, 8, 0, Growing, Valid),
            (Answered, 8, 2, Full, Valid),
            (Answered, 7, 3, Full, too_few_answers),
            (Answered, 4, 0, TimedOut, too_few_in_time),
            (Answered, 4, 5, TimedOut, too_few_answers),
            (Answered, 5, 0, TimedOut, Valid),
            (Answered, 5, 4, Closed, Valid),
            (Answered, 4, 1, Closed, too_few_answers),
            (Sized, 0, 7, Growing, Waiting),
            (Sized, 0, 8, Growing, Valid),
            (Sized, 0, 10, Full, Valid),
            (Sized, 0, 4, TimedOut, too_few_in_time),
            (Sized, 0, 5, TimedOut, Valid),
            (Sized, 0, 5, Closed, Valid),
        ] {
            let verdict = judge(rule, &group(answered, unanswered), stage);
            assert_eq!(verdict, expected, "{rule:?}, {answered} answered, {unanswered} not, {stage:?}");
        }
    }

    #[test]
    fn one_different_reward_anywhere_is_variance() {
        for (rewards, expected) in [
            (vec![], false),
            (vec![1.0], false),
            (vec![0.0, -0.0], false),
            (vec![0.1, 0.1, 0.1], false),
            (vec![0.0, 1.0, 1.0], true),
            (vec![1.0, 0.0, 1.0], true),
            (vec![1.0, 1.0, 0.0], true),
        ] {
            assert_eq!(varied(&members(&rewards)), expected, "{rewards:?}");
        }
    }

    proptest! {
        #[test]
        fn only_a_growing_group_waits(answered in 0usize..6, unanswered in 0usize..5) {
            let group = group(answered, unanswered);
            for rule in [Varied, Answered, Sized] {
                prop_assert!(!matches!(judge(rule, &group, Growing), Invalid(_)));
                for stage in [Full, TimedOut, Closed] {
                    prop_assert_ne!(judge(rule, &group, stage), Waiting);
                }
            }
        }
    }
}
