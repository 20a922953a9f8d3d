//! One for the right answer to a maths problem, nothing for any other.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::MathsRules;
use crate::reward::truth::truth;
use crate::reward::{Judged, Reward, RewardError};

/// The truth is the data's `answer`, `label`, `ground_truth` or `solution`, whichever comes first in this order;
/// where it is a worked solution, its boxed or marked answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct MathsReward {
    pub rules: MathsRules,
}

impl MathsReward {
    fn judge(&self, judged: Judged<'_>) -> Result<f64, RewardError> {
        let truth = truth("math", judged.data)?;
        let truth = super::extract(&truth).unwrap_or(&truth);
        let answer = self.rules.extract(judged.completion);
        Ok(if answer.is_some_and(|answer| self.rules.verify(answer, truth)) { 1.0 } else { 0.0 })
    }
}

impl Reward for MathsReward {
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        ready(self.judge(judged)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Data;
    use crate::reward::tests::score;

    #[test]
    fn the_truth_is_found_under_the_names_that_data_sets_use() {
        for (data, completion, expect) in [
            (r#"{"answer": "1/2"}"#, r"so \boxed{0.5}", 1.0),
            (r#"{"answer": "work it out #### 72", "label": 3}"#, r"\boxed{72}", 1.0),
            (r#"{"label": 72}"#, "#### 72", 1.0),
            (r#"{"ground_truth": "\\boxed{7}"}"#, r"\boxed{8} or \boxed{7}", 1.0),
            (
                r#"{"solution": 123456789012345678901234567890}"#,
                r"\boxed{123456789012345678901234567890}",
                1.0,
            ),
            (
                r#"{"solution": 123456789012345678901234567891}"#,
                r"\boxed{123456789012345678901234567890}",
                0.0,
            ),
            (r#"{"answer": "7"}"#, r"\boxed{7} or \boxed{8}", 0.0),
            (r#"{"answer": "7"}"#, "7", 0.0),
            (r#"{"answer": "7"}"#, r"\boxed{}", 0.0),
        ] {
            let reward = score(&MathsReward::default(), &Data::parse(data).unwrap(), completion);
            assert_eq!(reward, Ok(expect), "{data} {completion}");
        }
    }

    #[test]
    fn data_without_a_truth_says_what_it_has() {
        for (data, expect) in [
            (r#"{"question": 1}"#, "none of the fields \"answer\", \"label\""),
            (r#"{"answer": [1]}"#, "field \"answer\" is [1], but must be a text or a number"),
        ] {
            let error = score(&MathsReward::default(), &Data::parse(data).unwrap(), "").unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
            assert!(!error.may_pass());
        }
    }
}
