//! The tensors of a batch that have a value for each token, filled together.
//!
//! A plane is one of them: `[rows, width]`, with padding where a row has no token. All planes are filled in
//! one go, some rows at a time, by two threads that take the next rows as they get to them: one that has to
//! wait for its core does not hold up the other, and a long row is nobody's share.

use std::sync::Mutex;

use super::rows::{Rows, in_loss, in_row};
use super::{DType, Element, Tensor, TensorDict};
use crate::rollout::Rollout;

/// Batches below this are filled by one thread: starting another takes longer than the copy.
const THREADED_BYTES_MIN: usize = 4 << 20;

/// What a thread takes at once comes to about this: far more than taking it costs.
const SHARE_BYTES: usize = 1 << 20;

pub(super) struct Planes<'a> {
    rows: &'a Rows<'a>,
    tensors: TensorDict,
    /// One for each tensor.
    fills: Vec<FillRow<'a>>,
}

/// Writes a whole row, padding included, given the rollout and the row's number.
type FillRow<'a> = Box<dyn Fn(&Rollout, usize, &mut [u8]) + Sync + 'a>;

/// The same rows of every plane.
struct Share<'a> {
    first_row: usize,
    rollouts: &'a [&'a Rollout],
    /// One for each plane.
    bytes: Vec<&'a mut [u8]>,
}

impl<'a> Planes<'a> {
    pub(super) fn new(rows: &'a Rows<'a>) -> Self {
        Self { rows, tensors: TensorDict::new(), fills: Vec::new() }
    }

    /// A plane of which `fill` writes the places that hold tokens, given the rollout and the row's number;
    /// they are 0 before.
    pub(super) fn add<T: Element + 'a>(
        &mut self,
        name: &'static str,
        pad: T,
        fill: impl Fn(&Rollout, usize, &mut [T]) + Sync + 'a,
    ) {
        let rows = self.rows;
        let is_zero = pad == T::zeroed();
        let fill = move |rollout: &Rollout, nth: usize, bytes: &mut [u8]| {
            let row: &mut [T] = bytemuck::cast_slice_mut(bytes);
            let place = rows.place(rollout);
            if !is_zero {
                row.get_mut(..place.start).unwrap_or_default().fill(pad);
                row.get_mut(place.end..).unwrap_or_default().fill(pad);
            }
            fill(rollout, nth, row.get_mut(place).unwrap_or_default());
        };
        let tensor = Tensor::zeros(T::DTYPE, &[rows.rollouts.len(), rows.width]);
        self.tensors.insert(name.to_owned(), tensor);
        self.fills.push(Box::new(fill));
    }

    /// Every token, and the padding.
    pub(super) fn add_tokens(&mut self, name: &'static str) {
        self.add(name, self.rows.pad_token_id(), |rollout, _, row| {
            row.copy_from_slice(rollout.tokens().get(..row.len()).unwrap_or_default());
        });
    }

    /// Where tokens are, one byte each.
    pub(super) fn add_attention_mask(&mut self, name: &'static str) {
        self.add(name, 0_u8, |_, _, row| row.fill(1));
        if let Some(mask) = self.tensors.get_mut(name) {
            mask.reread_as(DType::Bool);
        }
    }

    /// `value(row)` on the sampled tokens, as far as they are not older than `oldest_version`; 0 elsewhere.
    pub(super) fn add_in_loss<T: Element + 'a>(
        &mut self,
        name: &'static str,
        oldest_version: Option<i32>,
        value: impl Fn(usize) -> T + Sync + 'a,
    ) {
        self.add(name, T::zeroed(), move |rollout, nth, row| {
            for span in in_loss(rollout, oldest_version) {
                if let Some(places) = in_row(rollout, span, row) {
                    places.fill(value(nth));
                }
            }
        });
    }

    /// The log-probs of the response.
    pub(super) fn add_logprobs(&mut self, name: &'static str) {
        self.add(name, 0.0_f32, |rollout, _, row| {
            if let Some((_, response)) = row.split_at_mut_checked(rollout.prompt_len()) {
                let logprobs = rollout.response_logprobs().unwrap_or_default();
                response.copy_from_slice(logprobs.get(..response.len()).unwrap_or_default());
            }
        });
    }

    pub(super) fn fill(mut self) -> TensorDict {
        let size_bytes: usize = self.tensors.values().map(|tensor| tensor.bytes().len()).sum();
        let shares = Mutex::new(shares(self.rows, &mut self.tensors, size_bytes).into_iter());
        let work = || {
            // The lock is held only to take a share.
            while let Some(share) = shares.lock().ok().and_then(|mut shares| shares.next()) {
                share.fill(&self.fills);
            }
        };
        std::thread::scope(|scope| {
            if size_bytes >= THREADED_BYTES_MIN {
                scope.spawn(work);
            }
            work();
        });
        drop(shares);
        self.tensors
    }
}

/// Cuts the tensors into the same rows each.
fn shares<'a>(rows: &'a Rows<'a>, tensors: &'a mut TensorDict, size_bytes: usize) -> Vec<Share<'a>> {
    let row_bytes = size_bytes.div_ceil(rows.rollouts.len().max(1)).max(1);
    let count = SHARE_BYTES.div_ceil(row_bytes);
    let mut shares: Vec<Share<'a>> = rows
        .rollouts
        .chunks(count)
        .enumerate()
        .map(|(nth, rollouts)| Share { first_row: nth * count, rollouts, bytes: Vec::new() })
        .collect();
    for tensor in tensors.values_mut() {
        let share_bytes = (tensor.view().row_bytes() * count).max(1);
        for (share, bytes) in shares.iter_mut().zip(tensor.bytes_mut().chunks_mut(share_bytes)) {
            share.bytes.push(bytes);
        }
    }
    shares
}

impl Share<'_> {
    fn fill(self, fills: &[FillRow<'_>]) {
        for (bytes, fill) in self.bytes.into_iter().zip(fills) {
            let row_bytes = (bytes.len() / self.rollouts.len().max(1)).max(1);
            for ((nth, rollout), row) in
                (self.first_row..).zip(self.rollouts).zip(bytes.chunks_exact_mut(row_bytes))
            {
                fill(rollout, nth, row);
            }
        }
    }
}
