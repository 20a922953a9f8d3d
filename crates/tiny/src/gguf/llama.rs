//! The network: pre-norm blocks of attention over turned keys and a gated pair of matrices.
//!
//! All rows of a call go through a matrix together, so that its bytes are fetched once for all texts; only attention
//! knows which rows are one text.

use std::fmt;
use std::io::{Read, Seek};

use super::attention::{View, attend};
use super::dims::Dims;
use super::error::Fault;
use super::file::Contents;
use super::matrix::{Matrix, vector};
use super::rope::Rope;
use crate::model::matrix::{add_scaled, dot};
use crate::model::slots::{Remembered, Slots};
use crate::model::{Decoder, DecoderError, Feed, SlotId};

pub(super) struct Llama {
    dims: Dims,
    embed: Matrix,
    blocks: Vec<Block>,
    norm: Vec<f32>,
    /// Left out where the embedding serves both ends.
    head: Option<Matrix>,
    rope: Rope,
    texts: Slots<Cache>,
}

struct Block {
    attention_norm: Vec<f32>,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    out: Matrix,
    mlp_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// Keys and values of one text.
#[derive(Debug, Default)]
struct Cache {
    tokens: usize,
    /// For every block `2 · kv_width` numbers a token.
    blocks: Vec<Vec<f32>>,
}

impl Remembered for Cache {
    fn tokens(&self) -> usize {
        self.tokens
    }
}

impl Llama {
    pub(super) fn load<R: Read + Seek>(dims: Dims, contents: &mut Contents<R>) -> Result<Self, Fault> {
        let Dims { vocabulary, width, .. } = dims;
        let embed = Matrix::load(contents, "token_embd.weight", [vocabulary, width])?;
        // Not reserved: how many there are is only what the file says.
        let mut blocks = Vec::new();
        for layer in 0..dims.layers {
            blocks.push(Block::load(&dims, contents, layer)?);
        }
        let norm = vector(contents, "output_norm.weight", width)?;
        let head = match contents.has("output.weight") {
            true => Some(Matrix::load(contents, "output.weight", [vocabulary, width])?),
            false => None,
        };
        let rope = Rope::load(&dims, contents)?;
        match contents.unread() {
            Some(name) => Err(Fault::UnknownTensor { name: name.to_owned() }),
            None => Ok(Self { dims, embed, blocks, norm, head, rope, texts: Slots::new() }),
        }
    }

    /// What the tokens of all feeds see in this block.
    fn attention(
        &mut self,
        layer: usize,
        normed: &[f32],
        feeds: &[Placed<'_>],
    ) -> Result<Vec<f32>, DecoderError> {
        let Some(block) = self.blocks.get(layer) else { return Ok(Vec::new()) };
        let (query_width, kv_width) = (self.dims.query_width(), self.dims.kv_width());
        let mut queries = block.query.multiply(normed)?;
        let mut keys = block.key.multiply(normed)?;
        let values = block.value.multiply(normed)?;
        let places = || feeds.iter().flat_map(|feed| feed.before..feed.before + feed.tokens.len());
        for ((query, key), place) in
            queries.chunks_exact_mut(query_width).zip(keys.chunks_exact_mut(kv_width)).zip(places())
        {
            self.rope.turn(query, place);
            self.rope.turn(key, place);
        }
        let mut rows = keys.chunks_exact(kv_width).zip(values.chunks_exact(kv_width));
        for feed in feeds {
            let Some(past) = self.texts.get_mut(feed.slot).and_then(|text| text.blocks.get_mut(layer)) else {
                continue;
            };
            for (key, value) in rows.by_ref().take(feed.tokens.len()) {
                past.extend_from_slice(key);
                past.extend_from_slice(value);
            }
        }
        let mut queries = queries.chunks_exact(query_width);
        let mut views = Vec::new();
        for feed in feeds {
            let past = self.texts.get(feed.slot).and_then(|text| text.blocks.get(layer)).map(Vec::as_slice);
            let past = past.unwrap_or_default();
            for (nth, query) in queries.by_ref().take(feed.tokens.len()).enumerate() {
                let end = 2 * kv_width * (feed.before + nth + 1);
                views.push(View { query, past: past.get(..end).unwrap_or_default() });
            }
        }
        let mut seen = vec![0.0; views.len() * query_width];
        attend(&self.dims, &views, &mut seen);
        block.out.multiply(&seen)
    }
}

/// A feed, and how many tokens its text had before.
struct Placed<'a> {
    slot: SlotId,
    tokens: &'a [i32],
    before: usize,
}

impl Decoder for Llama {
    fn vocabulary(&self) -> usize {
        self.dims.vocabulary
    }

    fn context(&self) -> usize {
        self.dims.context
    }

    fn begin(&mut self) -> SlotId {
        self.texts.begin()
    }

    fn end(&mut self, slot: SlotId) {
        self.texts.end(slot);
    }

    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Vec<f32>, DecoderError> {
        let Dims { width, epsilon, vocabulary, context, .. } = self.dims;
        self.texts.check(feeds, vocabulary, context)?;
        let mut placed = Vec::with_capacity(feeds.len());
        for Feed { slot, tokens } in feeds {
            let Some(text) = self.texts.get_mut(*slot) else { continue };
            placed.push(Placed { slot: *slot, tokens, before: text.tokens });
            text.tokens += tokens.len();
            text.blocks.resize_with(self.blocks.len(), Vec::new);
        }
        let tokens = feeds.iter().flat_map(|feed| feed.tokens).filter_map(|token| u32::try_from(*token).ok());
        let mut x = self.embed.rows(&tokens.collect::<Vec<u32>>())?;
        for layer in 0..self.blocks.len() {
            let gain =
                self.blocks.get(layer).map(|block| block.attention_norm.as_slice()).unwrap_or_default();
            let normed = norm(&x, gain, epsilon);
            add(&mut x, &self.attention(layer, &normed, &placed)?);
            if let Some(block) = self.blocks.get(layer) {
                let normed = norm(&x, &block.mlp_norm, epsilon);
                add(&mut x, &block.think(&normed)?);
            }
        }
        let mut rows = x.chunks_exact(width);
        let lasts = feeds.iter().filter_map(|feed| rows.nth(feed.tokens.len().saturating_sub(1)));
        let lasts = lasts.collect::<Vec<_>>().concat();
        self.head.as_ref().unwrap_or(&self.embed).multiply(&norm(&lasts, &self.norm, epsilon))
    }
}

impl Block {
    fn load<R: Read + Seek>(dims: &Dims, contents: &mut Contents<R>, layer: usize) -> Result<Self, Fault> {
        let Dims { width, hidden, .. } = *dims;
        let (query_width, kv_width) = (dims.query_width(), dims.kv_width());
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let mut matrix = |part: &str, dims: [usize; 2]| Matrix::load(contents, &name(part), dims);
        let query = matrix("attn_q", [query_width, width])?;
        let key = matrix("attn_k", [kv_width, width])?;
        let value = matrix("attn_v", [kv_width, width])?;
        let out = matrix("attn_output", [width, query_width])?;
        let gate = matrix("ffn_gate", [hidden, width])?;
        let up = matrix("ffn_up", [hidden, width])?;
        let down = matrix("ffn_down", [width, hidden])?;
        let attention_norm = vector(contents, &name("attn_norm"), width)?;
        let mlp_norm = vector(contents, &name("ffn_norm"), width)?;
        Ok(Self { attention_norm, query, key, value, out, mlp_norm, gate, up, down })
    }

    fn think(&self, normed: &[f32]) -> Result<Vec<f32>, DecoderError> {
        let mut gated = self.gate.multiply(normed)?;
        for (gate, up) in gated.iter_mut().zip(self.up.multiply(normed)?) {
            *gate = *gate / (1.0 + (-*gate).exp()) * up;
        }
        self.down.multiply(&gated)
    }
}

impl fmt::Debug for Llama {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llama").field("dims", &self.dims).field("embed", &self.embed).finish_non_exhaustive()
    }
}

/// `x / rms(x) · gain` for every row.
fn norm(x: &[f32], gain: &[f32], epsilon: f32) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(gain.len().max(1)) {
        let inverse = 1.0 / (dot(row, row) / row.len() as f32 + epsilon).sqrt();
        out.extend(row.iter().zip(gain).map(|(x, gain)| x * inverse * gain));
    }
    out
}

fn add(x: &mut [f32], more: &[f32]) {
    add_scaled(x, 1.0, more);
}
