//! Which rollouts of a valid group the trainer may see.
//!
//! A generator stores failed trajectories too, with a reward outside the scale (slime uses -1), so that
//! they are counted. They must not be trained on, nor shift the mean of those that are:
//! a rollout passes when `reward_min <= reward <= reward_max`.

use serde::{Deserialize, Serialize};

use super::Member;
use crate::run_config::RunConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// A finite reward from `reward_min` to `reward_max`, both included.
    Range,
    /// Everything passes.
    None,
    /// A function of the task's generator decides, outside the ledger.
    Hook,
}

impl Filter {
    pub fn passes(self, member: &Member, config: &RunConfig) -> bool {
        match self {
            Self::Range => {
                member.reward.is_finite() && (config.reward_min..=config.reward_max).contains(&member.reward)
            }
            Self::None | Self::Hook => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::tests::config;
    use serde_json::json;

    #[test]
    fn range_passes_finite_rewards_between_the_bounds() {
        for (min, max, reward, expected) in [
            (0.0, 1.0, 0.0, true),
            (0.0, 1.0, -0.0, true),
            (0.0, 1.0, 0.5, true),
            (0.0, 1.0, 1.0, true),
            (0.0, 1.0, -1.0, false),
            (0.0, 1.0, 1.0 + f64::EPSILON, false),
            (0.0, 1.0, f64::NAN, false),
            (-1.0, 1.0, -1.0, true),
            (2.0, 2.0, 2.0, true),
            (f64::MIN, f64::MAX, f64::MAX, true),
            (f64::MIN, f64::MAX, f64::INFINITY, false),
            (f64::MIN, f64::MAX, f64::NAN, false),
        ] {
            let config = config(json!({"reward_min": min, "reward_max": max}));
            let member = Member { reward, answered: false };
            assert_eq!(Filter::Range.passes(&member, &config), expected, "{reward} in {min}..={max}");
        }
    }

    #[test]
    fn infinite_bounds_do_not_let_infinite_rewards_through() {
        let open =
            RunConfig { reward_min: f64::NEG_INFINITY, reward_max: f64::INFINITY, ..RunConfig::default() };
        for (reward, expected) in [(f64::INFINITY, false), (f64::NEG_INFINITY, false), (1e300, true)] {
            assert_eq!(Filter::Range.passes(&Member { reward, answered: true }, &open), expected, "{reward}");
        }
    }

    #[test]
    fn none_passes_everything() {
        for reward in [-1.0, 0.0, 7.0] {
            assert!(Filter::None.passes(&Member { reward, answered: false }, &RunConfig::default()));
        }
    }
}
