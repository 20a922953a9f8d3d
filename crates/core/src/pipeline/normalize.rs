//! Rewards of a group, made relative to each other.
//!
//! A policy gradient wants to know which answers were better than their siblings, not how generous the
//! grader is. Over the rewards `r` that passed the filter:
//!
//! - `grpo`: `(r - mean) / (std + 1e-8)`, with the population `std`. Below `std = 1e-8` there is no signal
//!   to divide by, and all become 0; rewards that are all 0 therefore stay as they are.
//! - `center`: `r - mean`, for losses that scale by themselves (Dr. GRPO).
//! - `none`: `r`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalize {
    /// Mean 0 and standard deviation 1.
    Grpo,
    /// Mean 0.
    Center,
    /// As they came.
    None,
    /// A function of the task's generator decides, outside the ledger.
    Hook,
}

/// The standard deviation below which rewards count as equal, and what keeps the quotient finite above it.
const STD_EPSILON: f64 = 1e-8;

impl Normalize {
    /// The rewards a trainer gets for these raw ones, in the same order.
    pub fn rewards(self, raw: &[f64]) -> Vec<f64> {
        match self {
            Self::Grpo => grpo(raw),
            Self::Center => deviations(raw),
            Self::None | Self::Hook => raw.to_vec(),
        }
    }
}

fn grpo(raw: &[f64]) -> Vec<f64> {
    let mut rewards = deviations(raw);
    let variance = rewards.iter().map(|d| d * d).sum::<f64>() / raw.len() as f64;
    let std = variance.sqrt();
    for reward in &mut rewards {
        *reward = if std < STD_EPSILON { 0.0 } else { *reward / (std + STD_EPSILON) };
    }
    rewards
}

/// `r - mean`, for each.
fn deviations(raw: &[f64]) -> Vec<f64> {
    // Measured from the first reward, because the plain mean of equal rewards is off by a rounding error:
    // seven times 1e9 + 0.1 would show a spread above the epsilon and come out as rewards of size 1.
    let origin = raw.first().copied().unwrap_or_default();
    let mean = raw.iter().map(|r| r - origin).sum::<f64>() / raw.len() as f64;
    raw.iter().map(|r| (r - origin) - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(strategy: Normalize, raw: &[f64], expected: &[f64]) {
        let rewards = strategy.rewards(raw);
        assert_eq!(rewards.len(), expected.len(), "{strategy:?} of {raw:?}");
        for (got, want) in rewards.iter().zip(expected) {
            assert!((got - want).abs() < 1e-12, "{strategy:?} of {raw:?}: {rewards:?}, not {expected:?}");
        }
    }

    #[test]
    fn rewards_follow_the_formulas() {
        use Normalize::{Center, Grpo, None};
        // std of {0, 1} is 0.5, of {0, 0, 0, 1} it is sqrt(3)/4, of {1, 2, 3} it is sqrt(2/3).
        let half = 0.5 / (0.5 + 1e-8);
        let quarter = 3f64.sqrt() / 4.0 + 1e-8;
        let third = (2f64 / 3.0).sqrt() + 1e-8;
        for (strategy, raw, expected) in [
            (Grpo, vec![0.0, 1.0], vec![-half, half]),
            (
                Grpo,
                vec![0.0, 0.0, 0.0, 1.0],
                vec![-0.25 / quarter, -0.25 / quarter, -0.25 / quarter, 0.75 / quarter],
            ),
            (Grpo, vec![3.0, 1.0, 2.0], vec![1.0 / third, -1.0 / third, 0.0]),
            (Grpo, vec![0.0, 0.0, 0.0], vec![0.0, 0.0, 0.0]),
            (Grpo, vec![0.5, 0.5 + 1e-9], vec![0.0, 0.0]),
            (Grpo, vec![0.7], vec![0.0]),
            (Grpo, vec![], vec![]),
            (Center, vec![0.0, 1.0], vec![-0.5, 0.5]),
            (Center, vec![3.0, 1.0, 2.0], vec![1.0, -1.0, 0.0]),
            (Center, vec![0.5, 0.5 + 1e-9], vec![-5e-10, 5e-10]),
            (Center, vec![0.7], vec![0.0]),
            (Center, vec![], vec![]),
            (None, vec![3.0, -1.0], vec![3.0, -1.0]),
            (None, vec![], vec![]),
        ] {
            check(strategy, &raw, &expected);
        }
    }

    #[test]
    fn equal_rewards_of_any_size_carry_no_signal() {
        for reward in [0.1, 1.0 / 3.0, 1e9 + 0.1, -1e15 - 0.3, 1e100] {
            let raw = [reward; 7];
            assert_eq!(Normalize::Grpo.rewards(&raw), [0.0; 7], "{reward}");
            assert_eq!(Normalize::Center.rewards(&raw), [0.0; 7], "{reward}");
        }
    }

    proptest! {
        #[test]
        fn grpo_has_mean_zero_and_deviation_at_most_one(raw in prop::collection::vec(-1e6..1e6f64, 1..64)) {
            let rewards = Normalize::Grpo.rewards(&raw);
            let n = raw.len() as f64;
            let mean = rewards.iter().sum::<f64>() / n;
            let std = (rewards.iter().map(|r| r * r).sum::<f64>() / n).sqrt();
            prop_assert!(mean.abs() < 1e-9, "mean {}", mean);
            prop_assert!(std < 1.0 + 1e-9, "std {}", std);
        }

        #[test]
        fn center_has_mean_zero_and_keeps_distances(raw in prop::collection::vec(-1.0..1.0f64, 1..64)) {
            let rewards = Normalize::Center.rewards(&raw);
            prop_assert!((rewards.iter().sum::<f64>() / raw.len() as f64).abs() < 1e-12);
            for (r, c) in raw.iter().zip(&rewards) {
                prop_assert!(((r - raw[0]) - (c - rewards[0])).abs() < 1e-12);
            }
        }

        #[test]
        fn a_better_reward_never_becomes_the_worse_one(
            raw in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), -1e100..1e100f64], 2..16),
        ) {
            for strategy in [Normalize::Grpo, Normalize::Center, Normalize::None] {
                let rewards = strategy.rewards(&raw);
                prop_assert!(rewards.iter().all(|r| r.is_finite()), "{:?}: {:?}", strategy, rewards);
                for (pair, out) in raw.windows(2).zip(rewards.windows(2)) {
                    prop_assert!(pair[0] > pair[1] || out[0] <= out[1], "{:?}: {:?} to {:?}", strategy, pair, out);
                }
            }
        }
    }
}
