//! Keeps count of what fails, and says when to stop.
//!
//! A prompt that fails is one prompt less; an engine that is gone fails them all, and a run that went on would
//! burn through its data and look busy.

use std::collections::HashMap;
use std::fmt;

use crate::episode::EpisodeError;

/// Different messages that are kept; what comes after them is counted together.
const REASONS_MAX: usize = 32;
/// Shown to the user.
const REASONS_SHOWN: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Failures {
    reasons: HashMap<String, u64>,
    others: u64,
    in_a_row: u64,
}

impl Failures {
    /// Notes how an attempt ended, and says how many have failed since the last that did not.
    pub(super) fn note(&mut self, error: Option<&EpisodeError>) -> u64 {
        let Some(error) = error else {
            self.in_a_row = 0;
            return 0;
        };
        self.in_a_row += 1;
        let message = error.to_string();
        let is_new = !self.reasons.contains_key(&message);
        if is_new && self.reasons.len() >= REASONS_MAX {
            self.others += 1;
        } else {
            *self.reasons.entry(message).or_default() += 1;
        }
        self.in_a_row
    }

    pub(super) fn reasons(&self) -> Reasons {
        let mut counted: Vec<_> = self.reasons.iter().map(|(why, count)| (why.clone(), *count)).collect();
        counted.sort_unstable_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
        let others = self.others + counted.iter().skip(REASONS_SHOWN).map(|(_, count)| count).sum::<u64>();
        counted.truncate(REASONS_SHOWN);
        Reasons { counted, others }
    }
}

/// Why attempts failed, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    pub counted: Vec<(String, u64)>,
    pub others: u64,
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts =
            self.counted.iter().map(|(why, count)| format!("{count} × {why}")).collect::<Vec<_>>();
        if self.others > 0 {
            parts.push(format!("{} × something else", self.others));
        }
        f.write_str(&parts.join("; "))
    }
}
