//! Rollouts as the tensors a trainer reads.
//!
//! A [`TensorDict`] maps names to [`Tensor`]s that share their first dimension, the rows of the batch.
//! [`sequences`] and [`training`] make one of rollouts, [`concat`] and [`split`] put several together and
//! apart, [`packing`] fills token budgets without padding, and [`balance`] shares rows out over ranks.
//!
//! Everything here is a pure function of its input: the ranks of a job that hold the same batch compute the
//! same bytes, and [`digest`] lets them check it.

pub mod balance;
mod concat;
pub mod packing;
mod planes;
mod rows;
mod sequences;
mod split;
mod tensor;
mod training;

pub use concat::{PadValues, concat};
pub use rows::{Layout, PadTo, Side};
pub use sequences::sequences;
pub use split::split;
pub use tensor::{DType, Element, Tensor, TensorView};
pub use training::{Weighted, training};

use indexmap::IndexMap;
use xxhash_rust::xxh3::Xxh3;

/// Tensors by name, in the order they were put in.
pub type TensorDict = IndexMap<String, Tensor>;

/// The same, looked at in place.
pub type Views<'a> = IndexMap<&'a str, TensorView<'a>>;

/// The key that says which places of a row hold a token.
pub const ATTENTION_MASK: &str = "attention_mask";

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    #[error("there are no rollouts to make a batch of")]
    Empty,
    #[error("{dtype} {shape:?} takes {expected} bytes, but there are {len}")]
    Bytes { dtype: DType, shape: Vec<usize>, len: usize, expected: usize },
    #[error("dict {part} has other keys than dict 0:{}{}", listed(" missing ", .missing), listed(" unexpected ", .extra))]
    Keys { part: usize, missing: Vec<String>, extra: Vec<String> },
    #[error("{key:?} of dict {part} is {found}, but {expected} in dict 0")]
    Differs { key: String, part: usize, found: String, expected: String },
    #[error("{key:?} of dict {part} has no dimensions; the first is the batch")]
    Scalar { key: String, part: usize },
    #[error("{key:?} of dict {part} has {rows} rows, but {first:?} has {expected}")]
    Rows { key: String, part: usize, rows: usize, first: String, expected: usize },
    #[error("{key:?} is {dtype}, which cannot hold the padding value {value}")]
    PadValue { key: String, dtype: DType, value: f64 },
    #[error("the key \"attention_mask\" is {found}, but must be bool or int32 of shape [rows, length]")]
    AttentionMask { found: String },
    #[error("the sizes {sizes:?} add up to {sum}, but the batch has {rows} rows")]
    Sizes { sizes: Vec<usize>, sum: usize, rows: usize },
    #[error("row {row}{} has no token in the loss: {reason}", named(.id))]
    NothingTrained { row: usize, id: String, reason: String },
    #[error("row {row}{} has no log-probs, but row {other} has; a batch has them for all rows or for none", named(.id))]
    Logprobs { row: usize, id: String, other: usize },
    #[error("the advantage of row {row}{} is {value}; it must be a finite number", named(.id))]
    Advantage { row: usize, id: String, value: f32 },
    #[error("row {row}{} has {len} tokens, more than the {limit} of a row", named(.id))]
    RowTooLong { row: usize, id: String, len: usize, limit: usize },
    #[error("sequence {index} has {len} tokens, more than the budget of {budget}")]
    OverBudget { index: usize, len: usize, budget: usize },
    #[error("{count} sequences cannot be shared out equally over {parts} ranks; give a multiple of {parts}")]
    Uneven { count: usize, parts: usize },
    #[error("{what} is 0, but must be at least 1")]
    Zero { what: &'static str },
    #[error("row {row} does not exist: the batch has {rows} rows")]
    NoRow { row: usize, rows: usize },
}

fn listed(label: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{label}{}", names.join(", ")) }
}

fn named(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" ({id})") }
}

/// The views of a dict's tensors.
pub fn views(dict: &TensorDict) -> Views<'_> {
    dict.iter().map(|(key, tensor)| (key.as_str(), tensor.view())).collect()
}

/// A number for the whole batch: names, types, shapes and every byte. The order of the names is nothing to it.
pub fn digest(dict: &Views<'_>) -> u128 {
    let mut hash = Xxh3::new();
    let mut by_name: Vec<_> = dict.iter().collect();
    by_name.sort_unstable_by_key(|(key, _)| **key);
    for (key, view) in by_name {
        hash.update(&(key.len() as u64).to_le_bytes());
        hash.update(key.as_bytes());
        hash.update(view.dtype().name().as_bytes());
        hash.update(&(view.shape().len() as u64).to_le_bytes());
        for dim in view.shape() {
            hash.update(&(*dim as u64).to_le_bytes());
        }
        hash.update(view.bytes());
    }
    hash.digest128()
}

#[cfg(test)]
mod tests;
