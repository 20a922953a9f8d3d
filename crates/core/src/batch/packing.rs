//! Sequences of many lengths into few token budgets, without padding.
//!
//! The plan is first-fit decreasing: the longest first, each into the first bin with room, which never
//! needs more than 11/9 of the fewest bins possible and one more. A sequence is never split. Equal lengths
//! keep their order, so every rank plans the same.

use super::concat::check_rows;
use super::split::Mask;
use super::{ATTENTION_MASK, BatchError, Tensor, TensorDict, TensorView, Views};

/// Which sequences go together: no bin has more than `budget` tokens. Bins are in the order of their first
/// sequence, and sequences in a bin in the order they came.
pub fn plan(lengths: &[usize], budget: usize) -> Result<Vec<Vec<usize>>, BatchError> {
    if budget == 0 {
        return Err(BatchError::Zero { what: "the token budget" });
    }
    if let Some((index, len)) = lengths.iter().copied().enumerate().find(|(_, len)| *len > budget) {
        return Err(BatchError::OverBudget { index, len, budget });
    }
    let mut longest_first: Vec<(usize, usize)> = lengths.iter().copied().enumerate().collect();
    longest_first.sort_by_key(|(index, len)| (std::cmp::Reverse(*len), *index));
    let mut rooms = Rooms::new(lengths.len(), budget);
    let mut bins: Vec<Vec<usize>> = Vec::new();
    for (index, len) in longest_first {
        let bin = rooms.take(len);
        if bin >= bins.len() {
            bins.resize_with(bin + 1, Vec::new);
        }
        if let Some(bin) = bins.get_mut(bin) {
            bin.push(index);
        }
    }
    for bin in &mut bins {
        bin.sort_unstable();
    }
    bins.sort_unstable();
    Ok(bins)
}

/// The rows of a padded batch without their padding, in bins of at most `budget` tokens.
pub fn pack(dict: &Views<'_>, budget: usize) -> Result<Vec<TensorDict>, BatchError> {
    let rows = check_rows(0, dict)?;
    let mask = Mask::of(dict)?;
    let lengths: Vec<usize> = (0..rows).map(|row| mask.places(row).filter(|on| *on).count()).collect();
    plan(&lengths, budget)?.iter().map(|rows| flatten(dict, rows)).collect()
}

/// The room left in each bin, as a tree of maxima: the first bin with room is found in log time.
struct Rooms {
    /// A heap-shaped tree; the bins are its last `leaves` entries.
    most: Vec<usize>,
    leaves: usize,
}

impl Rooms {
    fn new(bins: usize, budget: usize) -> Self {
        let leaves = bins.next_power_of_two();
        Self { most: vec![budget; 2 * leaves], leaves }
    }

    fn most(&self, node: usize) -> usize {
        self.most.get(node).copied().unwrap_or(0)
    }

    /// Takes room in the first bin that has it. There is one, as there is a bin for each sequence.
    fn take(&mut self, len: usize) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.most(node) < len {
                node += 1;
            }
        }
        let bin = node - self.leaves;
        let mut room = self.most(node).saturating_sub(len);
        while node >= 1 {
            if let Some(most) = self.most.get_mut(node) {
                *most = room;
            }
            room = room.max(self.most(node ^ 1));
            node /= 2;
        }
        bin
    }
}

/// The tokens of these rows one after the other, as attention kernels for packed sequences want them.
///
/// Tensors that run along `attention_mask` lose their padding and their row dimension; those with one value
/// a row keep the rows. Instead of the mask there are `cu_seqlens` (int32, where each sequence starts, and
/// the end) and `position_ids` where the batch has none.
pub fn flatten(dict: &Views<'_>, rows: &[usize]) -> Result<TensorDict, BatchError> {
    let count = check_rows(0, dict)?;
    if let Some(row) = rows.iter().copied().find(|row| *row >= count) {
        return Err(BatchError::NoRow { row, rows: count });
    }
    let mask = Mask::of(dict)?;
    let kept: Vec<(usize, Vec<usize>)> = rows
        .iter()
        .map(|row| (*row, mask.places(*row).enumerate().filter(|(_, on)| *on).map(|(at, _)| at).collect()))
        .collect();
    let mut flat = TensorDict::new();
    for (key, view) in dict {
        if *key == ATTENTION_MASK {
            continue;
        }
        let along = view.shape().get(1) == Some(&mask.width);
        flat.insert((*key).to_owned(), if along { flatten_key(view, &kept) } else { pick_rows(view, rows) });
    }
    if !flat.contains_key("position_ids") {
        let positions: Vec<i32> = kept.iter().flat_map(|(_, places)| (0..).take(places.len())).collect();
        flat.insert("position_ids".to_owned(), Tensor::of(&[positions.len()], &positions)?);
    }
    let mut starts = vec![0_i32];
    let mut end = 0;
    for (_, places) in &kept {
        end += i32::try_from(places.len()).expect("a bin holds fewer than 2^31 tokens");
        starts.push(end);
    }
    flat.insert("cu_seqlens".to_owned(), Tensor::of(&[starts.len()], &starts)?);
    Ok(flat)
}

fn flatten_key(view: &TensorView<'_>, kept: &[(usize, Vec<usize>)]) -> Tensor {
    let total = kept.iter().map(|(_, places)| places.len()).sum();
    let inner = view.shape().get(2..).unwrap_or_default();
    let shape: Vec<usize> = std::iter::once(total).chain(inner.iter().copied()).collect();
    let mut flat = Tensor::zeros(view.dtype(), &shape);
    let step = inner.iter().product::<usize>() * view.dtype().size_bytes();
    let sources = kept.iter().flat_map(|(row, places)| places.iter().map(|at| (view.row(*row), *at)));
    if step > 0 {
        for (target, (row, at)) in flat.bytes_mut().chunks_exact_mut(step).zip(sources) {
            target.copy_from_slice(row.get(at * step..(at + 1) * step).unwrap_or_default());
        }
    }
    flat
}

fn pick_rows(view: &TensorView<'_>, rows: &[usize]) -> Tensor {
    let inner = view.shape().get(1..).unwrap_or_default();
    let shape: Vec<usize> = std::iter::once(rows.len()).chain(inner.iter().copied()).collect();
    let mut picked = Tensor::zeros(view.dtype(), &shape);
    let step = view.row_bytes();
    if step > 0 {
        for (target, row) in picked.bytes_mut().chunks_exact_mut(step).zip(rows) {
            target.copy_from_slice(view.row(*row));
        }
    }
    picked
}
