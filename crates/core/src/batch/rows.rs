//! Where the tokens of a row go: how wide the batch is, and on which side the padding stands.

use std::num::NonZeroUsize;
use std::ops::Range;

use super::{BatchError, DType, Element, Tensor};
use crate::rollout::Rollout;

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
    width: usize,
    layout: Layout,
}

/// Batches below this are filled by one thread: starting another takes longer than the copy.
const THREADED_BYTES_MIN: usize = 4 << 20;

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

    /// A tensor of `[rows, width]`, of which `fill` writes the places that hold tokens, given the rollout
    /// and the row's number.
    pub(super) fn tensor<T: Element>(
        &self,
        pad: T,
        fill: impl Fn(&Rollout, usize, &mut [T]) + Sync,
    ) -> Tensor {
        let mut tensor = Tensor::zeros(T::DTYPE, &[self.rollouts.len(), self.width]);
        let zero = T::zeroed();
        let fill_row = |rollout: &Rollout, nth: usize, row: &mut [T]| {
            let place = self.place(rollout);
            if pad != zero {
                row.get_mut(..place.start).unwrap_or_default().fill(pad);
                row.get_mut(place.end..).unwrap_or_default().fill(pad);
            }
            fill(rollout, nth, row.get_mut(place).unwrap_or_default());
        };
        let threads = if tensor.bytes().len() < THREADED_BYTES_MIN { 1 } else { 2 };
        let share = self.rollouts.len().div_ceil(threads).max(1);
        let width = self.width.max(1);
        let values = tensor.values_mut::<T>().unwrap_or_default();
        let fill_share = |first: usize, rollouts: &[&Rollout], values: &mut [T]| {
            for ((nth, rollout), row) in (first..).zip(rollouts).zip(values.chunks_exact_mut(width)) {
                fill_row(rollout, nth, row);
            }
        };
        std::thread::scope(|scope| {
            let mut shares = self.rollouts.chunks(share).zip(values.chunks_mut(share * width)).enumerate();
            let last = shares.next_back();
            for (nth, (rollouts, values)) in shares {
                let fill_share = &fill_share;
                scope.spawn(move || fill_share(nth * share, rollouts, values));
            }
            if let Some((nth, (rollouts, values))) = last {
                fill_share(nth * share, rollouts, values);
            }
        });
        tensor
    }

    /// Like [`Rows::tensor`], of truths, one byte each.
    pub(super) fn truths(&self, fill: impl Fn(&Rollout, usize, &mut [u8]) + Sync) -> Tensor {
        self.tensor(0_u8, fill).read_as(DType::Bool)
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

    /// Log-probs where every rollout has them, none where none has.
    pub(super) fn logprobs(&self) -> Result<Option<Tensor>, BatchError> {
        let has = |rollout: &&Rollout| rollout.response_logprobs().is_some();
        let Some(other) = self.rollouts.iter().position(has) else { return Ok(None) };
        if let Some(row) = self.rollouts.iter().position(|rollout| !has(rollout)) {
            let id = self.rollouts.get(row).map(|rollout| rollout.env_example_id.to_string());
            return Err(BatchError::Logprobs { row, id: id.unwrap_or_default(), other });
        }
        Ok(Some(self.tensor(0.0_f32, |rollout, _, row| {
            if let Some((_, response)) = row.split_at_mut_checked(rollout.prompt_len()) {
                let logprobs = rollout.response_logprobs().unwrap_or_default();
                response.copy_from_slice(logprobs.get(..response.len()).unwrap_or_default());
            }
        })))
    }

    /// Every token, and the padding.
    pub(super) fn tokens(&self) -> Tensor {
        self.tensor(self.pad_token_id(), |rollout, _, row| {
            row.copy_from_slice(rollout.tokens().get(..row.len()).unwrap_or_default());
        })
    }

    /// `value(row)` on the sampled tokens, 0 elsewhere.
    pub(super) fn on_sampled<T: Element>(&self, value: impl Fn(usize) -> T + Sync) -> Tensor {
        self.tensor(T::zeroed(), |rollout, nth, row| {
            for (span, sampled) in rollout.sampled().spans() {
                if sampled && let Some(places) = in_row(rollout, span, row) {
                    places.fill(value(nth));
                }
            }
        })
    }
}

fn kept(rollout: &Rollout, layout: &Layout) -> usize {
    let len = rollout.tokens().len();
    layout.max_tokens.map_or(len, |most| len.min(most.get()))
}

/// The part of the row that a span of the response covers, as far as it was not trimmed.
pub(super) fn in_row<'r, T>(rollout: &Rollout, span: Range<usize>, row: &'r mut [T]) -> Option<&'r mut [T]> {
    let start = rollout.prompt_len() + span.start;
    let end = (rollout.prompt_len() + span.end).min(row.len());
    row.get_mut(start..end)
}
