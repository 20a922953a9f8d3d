//! The model as it is sampled: texts are fed bit by bit, and nothing is computed twice.

use std::sync::Arc;

use super::attention::attend;
use super::block;
use super::decoder::{Decoder, DecoderError, Feed, SlotId};
use super::matrix::{multiply, norm};
use super::shape::Shape;
use super::slots::{Remembered, Slots};
use super::weights::Weights;

#[derive(Debug)]
pub struct Policy {
    weights: Arc<Weights>,
    texts: Slots<Cache>,
}

/// Keys and values of one text.
#[derive(Debug, Default)]
struct Cache {
    tokens: usize,
    /// For every block `2 · width` numbers a token, as `attention` wants them.
    blocks: Vec<Vec<f32>>,
}

impl Remembered for Cache {
    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl Policy {
    pub fn new(weights: Arc<Weights>) -> Self {
        Self { weights, texts: Slots::new() }
    }

    pub fn shape(&self) -> &Shape {
        self.weights.shape()
    }

    /// Takes new weights of the same shape. What was cached under the old ones is forgotten: the texts that go on are
    /// to be fed from their beginning.
    pub fn set_weights(&mut self, weights: Arc<Weights>) {
        debug_assert_eq!(weights.shape(), self.weights.shape());
        self.weights = weights;
        self.texts.forget_all();
    }
}

impl Decoder for Policy {
    fn vocabulary(&self) -> usize {
        self.shape().vocabulary
    }

    fn context(&self) -> usize {
        self.shape().context
    }

    fn begin(&mut self) -> SlotId {
        self.texts.begin()
    }

    fn end(&mut self, slot: SlotId) {
        self.texts.end(slot);
    }

    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Vec<f32>, DecoderError> {
        self.texts.check(feeds, self.vocabulary(), self.context())?;
        let weights = Arc::clone(&self.weights);
        let shape = *weights.shape();
        let width = shape.width;
        let mut x = Vec::new();
        for feed in feeds {
            let Some(cache) = self.texts.get_mut(feed.slot) else { continue };
            embed(&weights, cache.tokens, feed.tokens, &mut x);
            cache.blocks.resize_with(shape.layers, Vec::new);
            cache.tokens += feed.tokens.len();
        }
        for layer in 0..shape.layers {
            block::forward(&shape, &weights.block(layer), &mut x, |mut qkv, mut seen| {
                for feed in feeds {
                    let (rows, rest) = qkv.split_at(feed.tokens.len() * 3 * width);
                    let (out, further) = std::mem::take(&mut seen).split_at_mut(feed.tokens.len() * width);
                    (qkv, seen) = (rest, further);
                    let cache = self.texts.get_mut(feed.slot);
                    let Some(past) = cache.and_then(|cache| cache.blocks.get_mut(layer)) else { continue };
                    remember(past, rows, width);
                    attend(&shape, rows, past, out, None);
                }
            });
        }
        let mut lasts = Vec::with_capacity(feeds.len() * width);
        let mut end = 0;
        for feed in feeds {
            end += feed.tokens.len() * width;
            lasts.extend_from_slice(x.get(end - width..end).unwrap_or_default());
        }
        Ok(logits(&weights, &lasts))
    }
}

/// The rows that tokens begin as, from this position on.
pub(super) fn embed(weights: &Weights, before: usize, tokens: &[i32], x: &mut Vec<f32>) {
    let ends = weights.ends();
    let width = weights.shape().width;
    let positions = ends.positions.chunks_exact(width).skip(before);
    for (token, position) in tokens.iter().zip(positions) {
        let row = usize::try_from(*token).unwrap_or_default() * width;
        let row = ends.embed.get(row..row + width).unwrap_or_default();
        x.extend(row.iter().zip(position).map(|(token, position)| token + position));
    }
}

/// Keeps the keys and values of rows.
pub(super) fn remember(past: &mut Vec<f32>, qkv: &[f32], width: usize) {
    for row in qkv.chunks_exact(3 * width) {
        past.extend_from_slice(row.get(width..).unwrap_or_default());
    }
}

fn logits(weights: &Weights, x: &[f32]) -> Vec<f32> {
    let ends = weights.ends();
    let Shape { width, vocabulary, .. } = *weights.shape();
    let mut normed = vec![0.0; x.len()];
    norm(x, ends.norm, &mut normed);
    let mut logits = vec![0.0; x.len() / width * vocabulary];
    multiply(&normed, width, ends.head, vocabulary, &mut logits);
    logits
}
