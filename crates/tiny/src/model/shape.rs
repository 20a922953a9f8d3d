//! How large a model is.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Tokens that it knows.
    pub vocabulary: usize,
    /// Numbers that stand for one token inside.
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    /// Tokens of the longest text.
    pub context: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("field \"{field}\" of the model's shape is 0, but must be at least 1")]
    Zero { field: &'static str },
    #[error(
        "field \"width\" of the model's shape is {width}, but must be a multiple of \"heads\", which is {heads}"
    )]
    Heads { width: usize, heads: usize },
    #[error("a model of {weights} weights is too large to be trained here; at most {max}")]
    TooLarge { weights: usize, max: usize },
}

/// A gigabyte of them; the demo's model has a thousandth of it.
const WEIGHTS_MAX: usize = 1 << 28;

impl Shape {
    /// The demo's.
    pub fn demo(vocabulary: usize) -> Self {
        Self { vocabulary, width: 64, layers: 2, heads: 4, context: 96 }
    }

    pub fn check(self) -> Result<Self, ShapeError> {
        let Self { vocabulary, width, layers, heads, context } = self;
        let fields = [
            ("vocabulary", vocabulary),
            ("width", width),
            ("layers", layers),
            ("heads", heads),
            ("context", context),
        ];
        if let Some((field, _)) = fields.into_iter().find(|(_, value)| *value == 0) {
            return Err(ShapeError::Zero { field });
        }
        if !width.is_multiple_of(heads) {
            return Err(ShapeError::Heads { width, heads });
        }
        let weights = self.weights();
        if weights > WEIGHTS_MAX {
            return Err(ShapeError::TooLarge { weights, max: WEIGHTS_MAX });
        }
        Ok(self)
    }

    /// Between the two matrices of a block.
    pub fn hidden(&self) -> usize {
        4 * self.width
    }

    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// How many numbers a model of this shape is.
    pub fn weights(&self) -> usize {
        let Self { vocabulary, width, layers, context, .. } = *self;
        let block = width
            .saturating_mul(width)
            .saturating_mul(12)
            .saturating_add(width.saturating_mul(2))
            .saturating_mul(layers);
        let ends = vocabulary.saturating_mul(2).saturating_add(context).saturating_add(1);
        block.saturating_add(ends.saturating_mul(width))
    }
}
