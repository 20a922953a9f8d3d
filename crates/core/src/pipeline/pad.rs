//! Short groups, brought to the size the trainer's batch is built for.
//!
//! With `n` rows of `group_size`, and `k = group_size - n` missing:
//!
//! - `repeat`: every reward is multiplied by `group_size / n`, then the first `k` rows are appended again
//!   and both the originals and the copies get half the reward. A member thus counts
//!   `reward * group_size / n` in all, whether or not it was copied: right for losses that sum over
//!   rollouts. It needs `k <= n`, because a row is halved once.
//! - `mask`: `k` rows of weight 0 are appended and no reward changes: right for token-mean losses, where a
//!   copy would count its tokens twice.
//! - `none`: the rows as they are.

use serde::{Deserialize, Serialize};

use super::{DropReason, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pad {
    /// Copies of the first rows, sharing their rewards.
    Repeat,
    /// Rows that fill the shape and weigh nothing.
    Mask,
    /// Nothing: a short group stays short.
    None,
    /// A function of the task's generator decides, outside the ledger.
    Hook,
}

impl Pad {
    /// The rows of a group, of which there are `group_size` unless the strategy is [`Pad::None`].
    pub fn fill(self, rows: Vec<Row>, group_size: usize) -> Result<Vec<Row>, DropReason> {
        debug_assert!(rows.len() <= group_size, "{} rows in a group of {group_size}", rows.len());
        match self {
            Self::Repeat => repeat(rows, group_size),
            Self::Mask => mask(rows, group_size),
            Self::None | Self::Hook => Ok(rows),
        }
    }
}

fn repeat(mut rows: Vec<Row>, group_size: usize) -> Result<Vec<Row>, DropReason> {
    let missing = group_size.saturating_sub(rows.len());
    if missing > rows.len() {
        return Err(DropReason::CannotPad);
    }
    let scale = group_size as f64 / rows.len() as f64;
    for row in &mut rows {
        row.reward *= scale;
    }
    for row in rows.iter_mut().take(missing) {
        row.reward /= 2.0;
    }
    let copies: Vec<Row> =
        rows.iter().zip(1..).take(missing).map(|(row, nth)| Row { copy: Some(nth), ..*row }).collect();
    rows.extend(copies);
    Ok(rows)
}

fn mask(mut rows: Vec<Row>, group_size: usize) -> Result<Vec<Row>, DropReason> {
    if rows.is_empty() {
        return Err(DropReason::CannotPad);
    }
    let missing = group_size.saturating_sub(rows.len());
    // A filler still needs tokens to be a row, so it shows a member; going round spreads their lengths.
    let fillers: Vec<Row> = rows
        .iter()
        .cycle()
        .zip(1..)
        .take(missing)
        .map(|(row, nth)| Row { member: row.member, reward: 0.0, weight: 0.0, copy: Some(nth) })
        .collect();
    rows.extend(fillers);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows of the members 10, 11, … so that a place in the list is not mistaken for a member.
    fn rows(rewards: &[f64]) -> Vec<Row> {
        rewards
            .iter()
            .zip(10..)
            .map(|(&reward, member)| Row { member, reward, weight: 1.0, copy: None })
            .collect()
    }

    /// Member, reward, weight and copy (0 for the member itself) of every row.
    type Seen = Vec<(usize, f64, f64, u32)>;

    fn fill(pad: Pad, rewards: &[f64], group_size: usize) -> Result<Seen, DropReason> {
        let rows = pad.fill(rows(rewards), group_size)?;
        Ok(rows.iter().map(|row| (row.member, row.reward, row.weight, row.copy.unwrap_or(0))).collect())
    }

    #[test]
    fn repeat_shares_each_reward_between_a_row_and_its_copy() {
        for (rewards, group_size, expected) in [
            (vec![1.0, 2.0], 2, Ok(vec![(10, 1.0, 1.0, 0), (11, 2.0, 1.0, 0)])),
            (vec![1.0, 2.0], 3, Ok(vec![(10, 0.75, 1.0, 0), (11, 3.0, 1.0, 0), (10, 0.75, 1.0, 1)])),
            (
                vec![1.0, -2.0],
                4,
                Ok(vec![(10, 1.0, 1.0, 0), (11, -2.0, 1.0, 0), (10, 1.0, 1.0, 1), (11, -2.0, 1.0, 2)]),
            ),
            (vec![1.0, 2.0], 5, Err(DropReason::CannotPad)),
            (vec![1.0], 3, Err(DropReason::CannotPad)),
            (vec![], 1, Err(DropReason::CannotPad)),
        ] {
            assert_eq!(fill(Pad::Repeat, &rewards, group_size), expected, "{rewards:?} to {group_size}");
        }
    }

    #[test]
    fn mask_adds_weightless_rows_and_touches_no_reward() {
        for (rewards, group_size, expected) in [
            (vec![1.0, 2.0], 2, Ok(vec![(10, 1.0, 1.0, 0), (11, 2.0, 1.0, 0)])),
            (vec![1.0, 2.0], 3, Ok(vec![(10, 1.0, 1.0, 0), (11, 2.0, 1.0, 0), (10, 0.0, 0.0, 1)])),
            (
                vec![1.0, 2.0],
                5,
                Ok(vec![
                    (10, 1.0, 1.0, 0),
                    (11, 2.0, 1.0, 0),
                    (10, 0.0, 0.0, 1),
                    (11, 0.0, 0.0, 2),
                    (10, 0.0, 0.0, 3),
                ]),
            ),
            (vec![], 1, Err(DropReason::CannotPad)),
        ] {
            assert_eq!(fill(Pad::Mask, &rewards, group_size), expected, "{rewards:?} to {group_size}");
        }
    }

    #[test]
    fn none_leaves_a_short_group_short() {
        for rewards in [vec![], vec![1.0], vec![1.0, 2.0]] {
            assert_eq!(Pad::None.fill(rows(&rewards), 8), Ok(rows(&rewards)));
        }
    }

    /// Up to 32 rewards and a group size they can be padded to by copies.
    fn short_group() -> impl Strategy<Value = (Vec<f64>, usize)> {
        prop::collection::vec(-1e6..1e6f64, 1..32).prop_flat_map(|rewards| {
            let n = rewards.len();
            (Just(rewards), n..=2 * n)
        })
    }

    proptest! {
        #[test]
        fn repeat_preserves_what_every_member_counts((rewards, group_size) in short_group()) {
            let filled = Pad::Repeat.fill(rows(&rewards), group_size).unwrap();
            prop_assert_eq!(filled.len(), group_size);

            let scale = group_size as f64 / rewards.len() as f64;
            let (sum, plain) = (filled.iter().map(|r| r.reward).sum::<f64>(), rewards.iter().sum::<f64>() * scale);
            prop_assert!((sum - plain).abs() < 1e-6, "{} is not {}", sum, plain);
            for row in rows(&rewards) {
                let counts: f64 = filled.iter().filter(|f| f.member == row.member).map(|f| f.reward).sum();
                prop_assert!((counts - row.reward * scale).abs() < 1e-6);
            }
        }

        #[test]
        fn copies_are_numbered_from_one_behind_the_members((rewards, group_size) in short_group()) {
            for pad in [Pad::Repeat, Pad::Mask] {
                let filled = pad.fill(rows(&rewards), group_size).unwrap();
                let (members, copies) = filled.split_at(rewards.len());
                prop_assert!(members.iter().zip(10..).all(|(row, i)| row.member == i && row.copy.is_none()));
                prop_assert!(copies.iter().zip(1..).all(|(row, nth)| row.copy == Some(nth)));
            }
        }

        #[test]
        fn mask_fills_any_group_and_weighs_what_came_in(
            rewards in prop::collection::vec(-1e6..1e6f64, 1..16),
            missing in 0usize..64,
        ) {
            let filled = Pad::Mask.fill(rows(&rewards), rewards.len() + missing).unwrap();
            prop_assert_eq!(filled.len(), rewards.len() + missing);
            prop_assert_eq!(filled.iter().map(|row| row.weight).sum::<f64>(), rewards.len() as f64);
            prop_assert_eq!(&filled[..rewards.len()], rows(&rewards));
        }
    }
}
