//! Where the tokens of a row go: how wide the batch is, and on which side the padding stands.

use std::num::NonZeroUsize;
use std::ops::Range;

use super::{BatchError, Element, Tensor};
use crate::rollout::{NO_VERSION, Rollout};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Right,
    Left,
}

/// How wide the batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadTo {
    Longest,
    /// The longest row, rounded up: few distinct shapes mean few compilations.
    Multiple(NonZeroUsize),
    Exactly(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rows are trimmed at the end to this many tokens.
    pub max_tokens: Option<NonZeroUsize>,
    pub pad_token_id: i32,
    pub pad_to: PadTo,
    /// The side the padding is on.
    pub padding: Side,
}

impl Default for Layout {
    fn default() -> Self {
        Self { max_tokens: None, pad_token_id: 0, pad_to: PadTo::Longest, padding: Side::Right }
    }
}

/// The rollouts' places in a batch of one width.
pub(super) struct Rows<'a> {
    pub(super) rollouts: Vec<&'a Rollout>,
    pub(super) width: usize,
    layout: Layout,
}

impl<'a> Rows<'a> {
    pub(super) fn new(rollouts: Vec<&'a Rollout>, layout: &Layout) -> Result<Self, BatchError> {
        let kept = |rollout: &Rollout| kept(rollout, layout);
        let Some(longest) = rollouts.iter().map(|rollout| kept(rollout)).max() else {
            return Err(BatchError::Empty);
        };
        let width = match layout.pad_to {
            PadTo::Longest => longest,
            PadTo::Multiple(of) => longest.next_multiple_of(of.get()),
            PadTo::Exactly(width) => width,
        };
        if let Some((row, rollout)) = rollouts.iter().enumerate().find(|(_, rollout)| kept(rollout) > width) {
            let id = rollout.env_example_id.to_string();
            return Err(BatchError::RowTooLong { row, id, len: kept(rollout), limit: width });
        }
        Ok(Self { rollouts, width, layout: *layout })
    }

    pub(super) fn kept(&self, rollout: &Rollout) -> usize {
        kept(rollout, &self.layout)
    }

    pub(super) fn pad_token_id(&self) -> i32 {
        self.layout.pad_token_id
    }

    /// Where in the row the rollout's tokens stand.
    pub(super) fn place(&self, rollout: &Rollout) -> Range<usize> {
        let len = self.kept(rollout);
        match self.layout.padding {
            Side::Right => 0..len,
            Side::Left => self.width - len..self.width,
        }
    }

    /// One value a row.
    pub(super) fn column<T: Element>(&self, value: impl Fn(&Rollout) -> T) -> Tensor {
        let mut tensor = Tensor::zeros(T::DTYPE, &[self.rollouts.len()]);
        let values = tensor.values_mut::<T>().unwrap_or_default();
        for (target, rollout) in values.iter_mut().zip(&self.rollouts) {
            *target = value(rollout);
        }
        tensor
    }

    /// Whether there are log-probs: for every rollout, or for none.
    pub(super) fn has_logprobs(&self) -> Result<bool, BatchError> {
        let has = |rollout: &&Rollout| rollout.response_logprobs().is_some();
        let Some(other) = self.rollouts.iter().position(has) else { return Ok(false) };
        if let Some(row) = self.rollouts.iter().position(|rollout| !has(rollout)) {
            let id = self.rollouts.get(row).map(|rollout| rollout.env_example_id.to_string());
            return Err(BatchError::Logprobs { row, id: id.unwrap_or_default(), other });
        }
        Ok(true)
    }
}

fn kept(rollout: &Rollout, layout: &Layout) -> usize {
    let len = rollout.tokens().len();
    layout.max_tokens.map_or(len, |most| len.min(most.get()))
}

/// The spans of the response that were sampled, with weights no older than `oldest_version` if one is given.
///
/// What was sampled with nobody knows which weights is older than any.
pub(super) fn in_loss(
    rollout: &Rollout,
    oldest_version: Option<i32>,
) -> impl Iterator<Item = Range<usize>> + '_ {
    // No version is older than none, and given tokens have none: the versions alone say what is in the loss.
    let oldest = oldest_version.filter(|oldest| *oldest > NO_VERSION);
    let sampled = rollout.sampled().spans().filter(move |(_, on)| *on && oldest.is_none());
    let young = move |version: i32| oldest.is_some_and(|oldest| version >= oldest);
    let versions = rollout.versions().spans().filter(move |(_, version)| young(*version));
    sampled.map(|(span, _)| span).chain(versions.map(|(span, _)| span))
}

/// The part of the row that a span of the response covers, as far as it was not trimmed.
pub(super) fn in_row<'r, T>(rollout: &Rollout, span: Range<usize>, row: &'r mut [T]) -> Option<&'r mut [T]> {
    let start = rollout.prompt_len() + span.start;
    let end = (rollout.prompt_len() + span.end).min(row.len());
    row.get_mut(start..end)
}
