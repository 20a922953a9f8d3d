//! How much better a rollout was than expected.
//!
//! In two halves, because two of the estimators look at the whole batch: [`Advantage::of_group`] compares the
//! rollouts of one group when they come in, [`Advantage::over_batch`] the rows of a batch when they go out.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    /// `r - mean of the others`.
    #[default]
    Rloo,
    /// `(r - mean) / (std + 1e-8)`, with the standard deviation of the group itself (division by n).
    Grpo,
    /// `r - mean`: GRPO without the division, as in Dr.GRPO.
    GrpoNoStd,
    /// `r - mean`. What else Dr.GRPO changes, the loss's division by the length, is in the trainer's hands: the
    /// weights of a training batch carry no such division.
    DrGrpo,
    /// `r`, then `(a - mean) / (std + 1e-8)` over the batch.
    ReinforcePp,
    /// `r - mean` of the group, then `(a - mean) / (std + 1e-8)` over the batch.
    ReinforcePpBaseline,
    /// `r`.
    Raw,
}

const EPSILON: f64 = 1e-8;

impl Advantage {
    pub const ALL: [Self; 7] = [
        Self::Rloo,
        Self::Grpo,
        Self::GrpoNoStd,
        Self::DrGrpo,
        Self::ReinforcePp,
        Self::ReinforcePpBaseline,
        Self::Raw,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rloo => "rloo",
            Self::Grpo => "grpo",
            Self::GrpoNoStd => "grpo_no_std",
            Self::DrGrpo => "dr_grpo",
            Self::ReinforcePp => "reinforce_pp",
            Self::ReinforcePpBaseline => "reinforce_pp_baseline",
            Self::Raw => "raw",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// One for each reward of a group. A rollout alone in its group has nothing to be compared with: 0, unless
    /// rewards count as they are.
    pub fn of_group(self, rewards: &[f64]) -> Vec<f64> {
        let n = rewards.len() as f64;
        let mean = mean(rewards);
        let centred = || rewards.iter().map(|reward| reward - mean);
        match self {
            Self::Raw | Self::ReinforcePp => rewards.to_vec(),
            // r - (n·mean - r)/(n - 1) = (r - mean)·n/(n - 1).
            Self::Rloo if rewards.len() > 1 => centred().map(|above| above * n / (n - 1.0)).collect(),
            Self::Grpo => scaled(centred(), std(rewards, mean)),
            Self::Rloo | Self::GrpoNoStd | Self::DrGrpo | Self::ReinforcePpBaseline => centred().collect(),
        }
    }

    /// Puts the advantages of a batch on one scale, where the estimator does.
    pub fn over_batch(self, advantages: &mut [f64]) {
        if !matches!(self, Self::ReinforcePp | Self::ReinforcePpBaseline) {
            return;
        }
        let mean = mean(advantages);
        let whitened = scaled(advantages.iter().map(|advantage| advantage - mean), std(advantages, mean));
        for (advantage, white) in advantages.iter_mut().zip(whitened) {
            *advantage = white;
        }
    }
}

/// Whether there is nothing to tell the rollouts of a group apart by.
pub fn has_no_variance(rewards: &[f64]) -> bool {
    rewards.iter().all(|reward| Some(reward) == rewards.first())
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Of the values themselves, not of what they were drawn from: division by n.
fn std(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

fn scaled(centred: impl Iterator<Item = f64>, std: f64) -> Vec<f64> {
    centred.map(|value| value / (std + EPSILON)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    #[test]
    fn a_group_by_each_estimator() {
        let rewards = [1.0, 0.0, 0.0, 1.0, 0.5];
        for (advantage, expected) in [
            (Advantage::Rloo, [0.625, -0.625, -0.625, 0.625, 0.0]),
            (Advantage::Grpo, [1.118_034, -1.118_034, -1.118_034, 1.118_034, 0.0]),
            (Advantage::GrpoNoStd, [0.5, -0.5, -0.5, 0.5, 0.0]),
            (Advantage::DrGrpo, [0.5, -0.5, -0.5, 0.5, 0.0]),
            (Advantage::ReinforcePp, rewards),
            (Advantage::ReinforcePpBaseline, [0.5, -0.5, -0.5, 0.5, 0.0]),
            (Advantage::Raw, rewards),
        ] {
            let found = advantage.of_group(&rewards);
            assert!(near(&found, &expected), "{}: {found:?}", advantage.name());
        }
    }

    #[test]
    fn rloo_is_the_distance_to_the_mean_of_the_others() {
        let rewards = [3.0, 1.0, 4.0, 1.0];
        let by_hand: Vec<f64> = (0..4)
            .map(|i| {
                let others: f64 = rewards.iter().sum::<f64>() - rewards[i];
                rewards[i] - others / 3.0
            })
            .collect();
        assert!(near(&Advantage::Rloo.of_group(&rewards), &by_hand));
    }

    #[test]
    fn one_alone_or_all_equal_carry_no_signal() {
        for advantage in
            Advantage::ALL.into_iter().filter(|a| !matches!(a, Advantage::Raw | Advantage::ReinforcePp))
        {
            assert!(near(&advantage.of_group(&[0.7]), &[0.0]), "{}", advantage.name());
            assert!(near(&advantage.of_group(&[0.7; 4]), &[0.0; 4]), "{}", advantage.name());
        }
        assert_eq!(Advantage::Raw.of_group(&[]), Vec::<f64>::new());
        assert!(has_no_variance(&[0.5, 0.5]) && has_no_variance(&[1.0]) && !has_no_variance(&[0.0, 1.0]));
    }

    #[test]
    fn only_reinforce_pp_looks_at_the_batch() {
        for advantage in Advantage::ALL {
            let mut batch = [2.0, 4.0, 6.0];
            advantage.over_batch(&mut batch);
            let whitened = matches!(advantage, Advantage::ReinforcePp | Advantage::ReinforcePpBaseline);
            let expected = if whitened { [-1.224_744_9, 0.0, 1.224_744_9] } else { [2.0, 4.0, 6.0] };
            assert!(near(&batch, &expected), "{}: {batch:?}", advantage.name());
        }
    }

    #[test]
    fn an_estimator_has_one_name_everywhere() {
        for advantage in Advantage::ALL {
            assert_eq!(serde_json::to_value(advantage).unwrap(), advantage.name());
            assert_eq!(Advantage::named(advantage.name()), Some(advantage));
        }
        assert_eq!(Advantage::named("gae"), None);
    }

    proptest! {
        #[test]
        fn comparing_within_a_group_adds_nothing_up(rewards in proptest::collection::vec(-10.0..10.0f64, 1..30)) {
            for advantage in [Advantage::Rloo, Advantage::Grpo, Advantage::GrpoNoStd, Advantage::DrGrpo] {
                let sum: f64 = advantage.of_group(&rewards).iter().sum();
                prop_assert!(sum.abs() < 1e-3, "{}: {}", advantage.name(), sum);
            }
        }
    }
}
