//! One tensor dict becomes several, each no longer than its own longest row.
//!
//! `attention_mask` says how long a row is. Tensors that run along it are cut with it; others keep their
//! shape. Putting the parts together again gives the batch back.

use super::concat::check_rows;
use super::{ATTENTION_MASK, BatchError, DType, Tensor, TensorDict, TensorView, Views};

/// Parts of `sizes` rows each, in order.
pub fn split(dict: &Views<'_>, sizes: &[usize]) -> Result<Vec<TensorDict>, BatchError> {
    let rows = check_rows(0, dict)?;
    let sum = sizes.iter().sum();
    if sum != rows {
        return Err(BatchError::Sizes { sizes: sizes.to_vec(), sum, rows });
    }
    let mask = Mask::of(dict)?;
    let mut start = 0;
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let rows: Vec<usize> = (start..start + size).collect();
        parts.push(take(dict, &rows, &mask));
        start += size;
    }
    Ok(parts)
}

/// These rows, cut to the longest of them.
fn take(dict: &Views<'_>, rows: &[usize], mask: &Mask<'_>) -> TensorDict {
    let longest = rows.iter().map(|row| mask.len(*row)).max().unwrap_or(0);
    dict.iter().map(|(key, view)| ((*key).to_owned(), cut(view, rows, mask.width, longest))).collect()
}

fn cut(view: &TensorView<'_>, rows: &[usize], width: usize, longest: usize) -> Tensor {
    let mut shape = view.shape().to_vec();
    if let Some(first) = shape.first_mut() {
        *first = rows.len();
    }
    if let Some(along) = shape.get_mut(1)
        && *along == width
    {
        *along = longest;
    }
    let mut part = Tensor::zeros(view.dtype(), &shape);
    let row_bytes = part.view().row_bytes();
    if row_bytes > 0 {
        for (target, row) in part.bytes_mut().chunks_exact_mut(row_bytes).zip(rows) {
            target.copy_from_slice(view.row(*row).get(..row_bytes).unwrap_or_default());
        }
    }
    part
}

/// The places of each row that hold a token.
pub(super) struct Mask<'a> {
    view: &'a TensorView<'a>,
    pub(super) width: usize,
}

impl<'a> Mask<'a> {
    pub(super) fn of(dict: &'a Views<'a>) -> Result<Self, BatchError> {
        let bad = |found: String| BatchError::AttentionMask { found };
        let view = dict.get(ATTENTION_MASK).ok_or_else(|| bad("missing".to_owned()))?;
        match (view.dtype(), view.shape()) {
            (DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64, [_, width]) => {
                Ok(Self { view, width: *width })
            }
            (dtype, shape) => Err(bad(format!("{dtype} of shape {shape:?}"))),
        }
    }

    /// Whether each place of the row holds a token.
    pub(super) fn places(
        &self,
        row: usize,
    ) -> impl DoubleEndedIterator<Item = bool> + ExactSizeIterator + 'a {
        self.view
            .row(row)
            .chunks_exact(self.view.dtype().size_bytes())
            .map(|element| element.iter().any(|byte| *byte != 0))
    }

    /// Up to and with the last token of the row.
    fn len(&self, row: usize) -> usize {
        self.places(row).rposition(|on| on).map_or(0, |last| last + 1)
    }
}
