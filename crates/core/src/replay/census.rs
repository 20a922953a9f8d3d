//! What was generated beside what was trained on, by environment and length.
//!
//! Slow rollouts are long ones: dropping the stale drops the long, and training drifts to the easy without
//! any number going wrong. Both sides are counted in the same boxes, so that the difference can be seen.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of rollouts by the length of their response.
///
/// Box 0 is for empty ones, box `i` for lengths from `2^(i-1)` to below `2^i`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    boxes: Vec<u64>,
    tokens: u64,
}

impl Lengths {
    pub fn add(&mut self, len: u64) {
        let index = (u64::BITS - len.leading_zeros()) as usize;
        if self.boxes.len() <= index {
            self.boxes.resize(index + 1, 0);
        }
        if let Some(count) = self.boxes.get_mut(index) {
            *count += 1;
        }
        self.tokens += len;
    }

    /// Takes one out again that was added before.
    pub fn remove(&mut self, len: u64) {
        let index = (u64::BITS - len.leading_zeros()) as usize;
        if let Some(count) = self.boxes.get_mut(index)
            && *count > 0
        {
            *count -= 1;
            self.tokens = self.tokens.saturating_sub(len);
        }
        while self.boxes.last() == Some(&0) {
            self.boxes.pop();
        }
    }

    pub fn count(&self) -> u64 {
        self.boxes.iter().sum()
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.tokens as f64 / self.count() as f64 }
    }

    /// The longest length of each box that was ever used, and its count.
    pub fn boxes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let longest = |index: usize| (1_u64.checked_shl(index as u32).unwrap_or_default()).wrapping_sub(1);
        self.boxes.iter().enumerate().map(move |(index, count)| (longest(index), *count))
    }
}

/// Both sides of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides {
    pub generated: Lengths,
    /// A rollout that was used twice is counted twice: it weighs as much in the loss.
    pub trained: Lengths,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    envs: BTreeMap<String, Sides>,
}

impl Census {
    pub fn of(&mut self, env: &str) -> &mut Sides {
        // Asked for every row of a batch: a name is only copied when it is new.
        if !self.envs.contains_key(env) {
            self.envs.insert(env.to_owned(), Sides::default());
        }
        self.envs.get_mut(env).expect("put in just above")
    }

    pub fn envs(&self) -> impl Iterator<Item = (&str, &Sides)> {
        self.envs.iter().map(|(env, sides)| (env.as_str(), sides))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_go_into_boxes_of_powers_of_two() {
        let mut lengths = Lengths::default();
        for len in [0, 1, 2, 3, 4, 1000, 1023, 1024] {
            lengths.add(len);
        }
        let used: Vec<(u64, u64)> = lengths.boxes().filter(|(_, count)| *count > 0).collect();
        assert_eq!(used, [(0, 1), (1, 1), (3, 2), (7, 1), (1023, 2), (2047, 1)]);
        assert_eq!((lengths.count(), lengths.mean()), (8, 3057.0 / 8.0));
    }

    #[test]
    fn what_is_taken_out_leaves_no_trace() {
        let mut lengths = Lengths::default();
        lengths.add(5);
        let before = lengths.clone();
        lengths.add(9000);
        lengths.remove(9000);
        assert_eq!(lengths, before);
    }
}
