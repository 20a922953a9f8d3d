//! The model as it is trained: whole texts forward, and back again for gradients.

use super::attention::{attend, back_through_attention};
use super::block::{self, Passed};
use super::decoder::DecoderError;
use super::matrix::{Normed, back_through_norm, back_to_input, back_to_weights, multiply, norm};
use super::policy::{embed, remember};
use super::shape::Shape;
use super::weights::Weights;

/// Texts one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    tokens: Vec<i32>,
    /// Of each text.
    lengths: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, tokens: &[i32]) {
        if !tokens.is_empty() {
            self.tokens.extend_from_slice(tokens);
            self.lengths.push(tokens.len());
        }
    }

    pub fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }
}

/// What one pass over texts left behind.
#[derive(Debug)]
pub struct Tape<'a> {
    weights: &'a Weights,
    texts: &'a Texts,
    blocks: Vec<(Passed, Vec<f32>)>,
    last: Vec<f32>,
    last_inverse: Vec<f32>,
    last_normed: Vec<f32>,
    logits: Vec<f32>,
}

impl<'a> Tape<'a> {
    pub fn record(weights: &'a Weights, texts: &'a Texts) -> Result<Self, DecoderError> {
        let shape = *weights.shape();
        let Shape { width, vocabulary, context, layers, .. } = shape;
        if let Some(tokens) = texts.lengths.iter().find(|tokens| **tokens > context) {
            return Err(DecoderError::TooLong { tokens: *tokens, context });
        }
        let known = |token: i32| usize::try_from(token).is_ok_and(|token| token < vocabulary);
        if let Some(token) = texts.tokens.iter().find(|token| !known(**token)) {
            return Err(DecoderError::NoSuchToken { token: *token, vocabulary });
        }
        let mut x = Vec::with_capacity(texts.tokens.len() * width);
        let mut rest = texts.tokens.as_slice();
        for length in &texts.lengths {
            let (text, further) = rest.split_at(*length);
            rest = further;
            embed(weights, 0, text, &mut x);
        }
        let mut blocks = Vec::with_capacity(layers);
        for layer in 0..layers {
            let mut shares = Vec::new();
            let passed = block::forward(&shape, &weights.block(layer), &mut x, |mut qkv, mut seen| {
                let mut past = Vec::new();
                for length in &texts.lengths {
                    let (rows, rest) = qkv.split_at(length * 3 * width);
                    let (out, further) = std::mem::take(&mut seen).split_at_mut(length * width);
                    (qkv, seen) = (rest, further);
                    past.clear();
                    remember(&mut past, rows, width);
                    attend(&shape, rows, &past, out, Some(&mut shares));
                }
            });
            blocks.push((passed, shares));
        }
        let ends = weights.ends();
        let mut last_normed = vec![0.0; x.len()];
        let last_inverse = norm(&x, ends.norm, &mut last_normed);
        let mut logits = vec![0.0; texts.tokens.len() * vocabulary];
        multiply(&last_normed, width, ends.head, vocabulary, &mut logits);
        Ok(Self { weights, texts, blocks, last: x, last_inverse, last_normed, logits })
    }

    /// A row for every token: what comes next.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Adds to `gradients` what every weight is to blame for, given what every logit is.
    pub fn back(&self, dlogits: &[f32], gradients: &mut Weights) {
        let shape = *self.weights.shape();
        let Shape { width, vocabulary, .. } = shape;
        let ends = self.weights.ends();
        let mut dnormed = vec![0.0; self.last.len()];
        let mut dx = vec![0.0; self.last.len()];
        {
            let dends = gradients.ends_mut();
            back_to_weights(&self.last_normed, width, dlogits, vocabulary, dends.head);
            back_to_input(dlogits, vocabulary, ends.head, width, &mut dnormed);
            let normed = Normed { x: &self.last, inverse: &self.last_inverse, gain: ends.norm };
            back_through_norm(normed, &dnormed, &mut dx, dends.norm);
        }
        for (layer, (passed, shares)) in self.blocks.iter().enumerate().rev() {
            let mut dblock = gradients.block_mut(layer);
            block::backward(
                &shape,
                &self.weights.block(layer),
                passed,
                &mut dx,
                &mut dblock,
                |mut dseen, mut dqkv| {
                    let mut qkv = passed.qkv.as_slice();
                    let mut shares = shares.iter();
                    for length in &self.texts.lengths {
                        let (rows, rest) = qkv.split_at(length * 3 * width);
                        let (drows, dfurther) = std::mem::take(&mut dqkv).split_at_mut(length * 3 * width);
                        let (dout, drest) = dseen.split_at(length * width);
                        (qkv, dqkv, dseen) = (rest, dfurther, drest);
                        back_through_attention(&shape, rows, &mut shares, dout, drows);
                    }
                },
            );
        }
        self.back_to_embeddings(&dx, gradients);
    }

    fn back_to_embeddings(&self, dx: &[f32], gradients: &mut Weights) {
        let width = self.weights.shape().width;
        let dends = gradients.ends_mut();
        let mut rows = dx.chunks_exact(width).zip(&self.texts.tokens);
        for length in &self.texts.lengths {
            for (dposition, (dx, token)) in
                dends.positions.chunks_exact_mut(width).zip(rows.by_ref().take(*length))
            {
                super::matrix::add_scaled(dposition, 1.0, dx);
                let at = usize::try_from(*token).unwrap_or_default() * width;
                super::matrix::add_scaled(dends.embed.get_mut(at..at + width).unwrap_or_default(), 1.0, dx);
            }
        }
    }
}
