//! What a whole file comes to.

use rollyard_core::tokens::mask::response_length;

use super::line::{Line, Sampled, Source};

/// Lines that went wrong and are named; the rest is only counted.
const NAMED: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Rollouts whose tokens were made from text.
    pub(super) text: u64,
    /// Rollouts that carry the tokens that were sampled.
    pub(super) sampled: u64,
    /// Of those, rollouts whose text would give other tokens.
    pub(super) drifted: u64,
    /// Sampled tokens that the text would not give.
    pub(super) drifted_tokens: u64,
    /// Of those that carry tokens, rollouts whose text cannot be rendered to compare.
    pub(super) incomparable: u64,
    /// Sampled tokens that this model does not have.
    pub(super) unknown: u64,
    /// Lines that could not be read or masked.
    pub(super) failed: u64,
    pub(super) tokens: u64,
    pub(super) trained: u64,
    /// Rollouts without a single trained token.
    pub(super) untrained: u64,
    pub(super) longest: u64,
    pub(super) longest_response: u64,
    /// The first rows that went wrong, and why.
    pub(super) reasons: Vec<(u64, String)>,
    pub(super) last_row: u64,
}

impl Tally {
    pub(super) fn count(&mut self, row: u64, outcome: &Result<Line, String>) {
        self.last_row = row;
        match outcome {
            Ok(line) => self.count_line(row, line),
            Err(reason) => {
                self.failed += 1;
                self.name(row, reason);
            }
        }
    }

    fn count_line(&mut self, row: u64, line: &Line) {
        self.tokens += line.ids.len() as u64;
        self.trained += line.trained() as u64;
        self.untrained += u64::from(line.trained() == 0);
        self.longest = self.longest.max(line.ids.len() as u64);
        self.longest_response = self.longest_response.max(response_length(&line.mask) as u64);
        match &line.source {
            Source::Text => self.text += 1,
            Source::Sampled(sampled) => self.count_sampled(row, sampled),
        }
    }

    fn count_sampled(&mut self, row: u64, sampled: &Sampled) {
        self.sampled += 1;
        self.unknown += sampled.unknown as u64;
        match &sampled.compared {
            Ok(compared) => {
                self.drifted += u64::from(!compared.drift.is_none());
                self.drifted_tokens += compared.drift.sampled_tokens() as u64;
            }
            Err(reason) => {
                self.incomparable += 1;
                self.name(row, &format!("its text cannot be compared: {reason}"));
            }
        }
    }

    fn name(&mut self, row: u64, reason: &str) {
        if self.reasons.len() < NAMED {
            self.reasons.push((row, reason.to_owned()));
        }
    }

    /// Lines that went wrong and are not named.
    pub(super) fn unnamed(&self) -> u64 {
        (self.failed + self.incomparable).saturating_sub(self.reasons.len() as u64)
    }

    pub(super) fn rollouts(&self) -> u64 {
        self.text + self.sampled + self.failed
    }
}
