//! Several tensor dicts become one.
//!
//! Rows go below each other; every dimension after the first is padded on the right to the longest. Types
//! are kept. Masks are padded with 0 and versions with -1 whatever the padding value, because a token that
//! is not there is neither seen nor trained on, and no weights sampled it.

use std::collections::BTreeMap;

use super::{BatchError, Tensor, TensorDict, TensorView, Views};

/// What stands where no token is.
#[derive(Clone, Debug, PartialEq)]
pub struct PadValues {
    /// For keys that are not named otherwise.
    pub default: f64,
    pub by_key: BTreeMap<String, f64>,
}

impl Default for PadValues {
    fn default() -> Self {
        let masks = [("attention_mask", 0.0), ("loss_mask", 0.0), ("loss_masks", 0.0), ("versions", -1.0)];
        let by_key = masks.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { default: 0.0, by_key }
    }
}

impl PadValues {
    fn of(&self, key: &str) -> f64 {
        self.by_key.get(key).copied().unwrap_or(self.default)
    }
}

/// All dicts below each other. No dicts give no tensors.
pub fn concat(parts: &[Views<'_>], pad: &PadValues) -> Result<TensorDict, BatchError> {
    let Some(first) = parts.first() else { return Ok(TensorDict::new()) };
    for (nth, part) in parts.iter().enumerate() {
        check_keys(first, nth, part)?;
        check_rows(nth, part)?;
    }
    first.keys().map(|key| Ok(((*key).to_owned(), concat_key(key, parts, pad)?))).collect()
}

fn check_keys(first: &Views<'_>, nth: usize, part: &Views<'_>) -> Result<(), BatchError> {
    let not_in = |keys: &Views<'_>, other: &Views<'_>| -> Vec<String> {
        keys.keys().filter(|key| !other.contains_key(*key)).map(|key| (*key).to_owned()).collect()
    };
    let (missing, extra) = (not_in(first, part), not_in(part, first));
    if missing.is_empty() && extra.is_empty() {
        Ok(())
    } else {
        Err(BatchError::Keys { part: nth, missing, extra })
    }
}

/// All tensors of a dict have the same rows.
pub(super) fn check_rows(nth: usize, part: &Views<'_>) -> Result<usize, BatchError> {
    let mut seen: Option<(&str, usize)> = None;
    for (key, view) in part {
        let Some(rows) = view.shape().first().copied() else {
            return Err(BatchError::Scalar { key: (*key).to_owned(), part: nth });
        };
        match seen {
            None => seen = Some((key, rows)),
            Some((_, expected)) if expected == rows => {}
            Some((first, expected)) => {
                let (key, first) = ((*key).to_owned(), first.to_owned());
                return Err(BatchError::Rows { key, part: nth, rows, first, expected });
            }
        }
    }
    Ok(seen.map_or(0, |(_, rows)| rows))
}

fn concat_key(key: &str, parts: &[Views<'_>], pad: &PadValues) -> Result<Tensor, BatchError> {
    let tensors: Vec<&TensorView<'_>> = parts.iter().filter_map(|part| part.get(key)).collect();
    let [first, ..] = tensors.as_slice() else { return Err(BatchError::Empty) };
    let dtype = first.dtype();
    let mut shape = first.shape().to_vec();
    for (part, tensor) in tensors.iter().enumerate().skip(1) {
        let differs = |found: String, expected: String| {
            Err(BatchError::Differs { key: key.to_owned(), part, found, expected })
        };
        if tensor.dtype() != dtype {
            return differs(tensor.dtype().to_string(), dtype.to_string());
        }
        if tensor.shape().len() != shape.len() {
            return differs(
                format!("of shape {:?}", tensor.shape()),
                format!("of shape {:?}", first.shape()),
            );
        }
        for (nth, (dim, longest)) in tensor.shape().iter().zip(&mut shape).enumerate() {
            *longest = if nth == 0 { *longest + dim } else { (*longest).max(*dim) };
        }
    }
    let value = pad.of(key);
    let padding =
        dtype.encode(value).ok_or_else(|| BatchError::PadValue { key: key.to_owned(), dtype, value })?;
    let mut all = Tensor::zeros(dtype, &shape);
    let inner = shape.get(1..).unwrap_or_default();
    let row_bytes = all.view().row_bytes();
    let mut rest = all.bytes_mut();
    for tensor in tensors {
        let [rows, dims @ ..] = tensor.shape() else { continue };
        for row in 0..*rows {
            let (target, after) = rest.split_at_mut(row_bytes);
            place(tensor.row(row), dims, target, inner, &padding);
            rest = after;
        }
    }
    Ok(all)
}

/// Copies a block into the front corner of a block at least as large and pads what is left.
fn place(from: &[u8], from_dims: &[usize], to: &mut [u8], to_dims: &[usize], pad: &[u8]) {
    if from_dims == to_dims {
        to.copy_from_slice(from);
        return;
    }
    let ([from_len, from_inner @ ..], [_, to_inner @ ..]) = (from_dims, to_dims) else { return };
    if from_inner == to_inner {
        let (copied, padded) = to.split_at_mut(from.len());
        copied.copy_from_slice(from);
        fill(padded, pad);
        return;
    }
    let from_step = from_inner.iter().product::<usize>() * pad.len();
    let to_step = to_inner.iter().product::<usize>() * pad.len();
    let (copied, padded) = to.split_at_mut(from_len * to_step);
    for (nth, target) in copied.chunks_exact_mut(to_step).enumerate() {
        let source = from.get(nth * from_step..(nth + 1) * from_step).unwrap_or_default();
        place(source, from_inner, target, to_inner, pad);
    }
    fill(padded, pad);
}

/// Repeats the value; the memory is zero already.
pub(super) fn fill(bytes: &mut [u8], value: &[u8]) {
    if value.iter().any(|byte| *byte != 0) {
        for element in bytes.chunks_exact_mut(value.len()) {
            element.copy_from_slice(value);
        }
    }
}
