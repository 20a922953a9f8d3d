//! The numbers of a model, one behind the other.
//!
//! Gradients and an optimiser's moments have the same places, so whatever is done to all weights is one loop.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::ops::Range;

use super::shape::Shape;

#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    shape: Shape,
    values: Vec<f32>,
}

/// The matrices of a block, each with as many rows as go in and columns as come out.
#[derive(Debug)]
pub(super) struct Block<T> {
    pub(super) attention_norm: T,
    pub(super) qkv: T,
    pub(super) out: T,
    pub(super) mlp_norm: T,
    pub(super) up: T,
    pub(super) down: T,
}

/// What stands before and behind the blocks.
#[derive(Debug)]
pub(super) struct Ends<T> {
    pub(super) embed: T,
    pub(super) positions: T,
    pub(super) norm: T,
    pub(super) head: T,
}

/// Every part of a model by name, with its place.
pub type Names = Vec<(String, Range<usize>)>;

impl Weights {
    pub fn zeros(shape: Shape) -> Self {
        Self { shape, values: vec![0.0; shape.weights()] }
    }

    /// As a model begins: small numbers, the same for the same seed.
    pub fn random(shape: Shape, seed: u64) -> Self {
        let mut weights = Self::zeros(shape);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let width = shape.width as f32;
        let ends = Places::ends(&shape);
        let mut fill = |range: Range<usize>, deviation: f32| {
            for value in weights.values.get_mut(range).unwrap_or_default() {
                *value = deviation * normal(&mut rng);
            }
        };
        fill(ends.embed, 0.5);
        fill(ends.positions, 0.5);
        fill(ends.head, 0.5 / width.sqrt());
        // What a block adds is kept small, so that a deep model begins as a shallow one.
        let residual = (2.0 * shape.layers as f32).sqrt();
        for layer in 0..shape.layers {
            let block = Places::block(&shape, layer);
            fill(block.qkv, 1.0 / width.sqrt());
            fill(block.out, 1.0 / (width.sqrt() * residual));
            fill(block.up, 1.0 / width.sqrt());
            fill(block.down, 1.0 / ((shape.hidden() as f32).sqrt() * residual));
        }
        for (name, range) in names(&shape) {
            if name.ends_with("norm") {
                weights.values.get_mut(range).unwrap_or_default().fill(1.0);
            }
        }
        weights
    }

    /// `None` if they are not as many as the shape says.
    pub fn from_values(shape: Shape, values: Vec<f32>) -> Option<Self> {
        (values.len() == shape.weights()).then_some(Self { shape, values })
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn values(&self) -> &[f32] {
        &self.values
    }

    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Of every part of the model.
    pub fn names(&self) -> Names {
        names(&self.shape)
    }

    pub(super) fn ends(&self) -> Ends<&[f32]> {
        let at = |range| self.values.get(range).expect("the shape says how many there are");
        let Ends { embed, positions, norm, head } = Places::ends(&self.shape);
        Ends { embed: at(embed), positions: at(positions), norm: at(norm), head: at(head) }
    }

    pub(super) fn ends_mut(&mut self) -> Ends<&mut [f32]> {
        let width = self.shape.width;
        let (embed, rest) = self.values.split_at_mut(self.shape.vocabulary * width);
        let (positions, rest) = rest.split_at_mut(self.shape.context * width);
        let (norm, rest) = rest.split_at_mut(width);
        let (head, _) = rest.split_at_mut(width * self.shape.vocabulary);
        Ends { embed, positions, norm, head }
    }

    pub(super) fn block(&self, layer: usize) -> Block<&[f32]> {
        let at = |range| self.values.get(range).expect("the shape says how many there are");
        let Block { attention_norm, qkv, out, mlp_norm, up, down } = Places::block(&self.shape, layer);
        Block {
            attention_norm: at(attention_norm),
            qkv: at(qkv),
            out: at(out),
            mlp_norm: at(mlp_norm),
            up: at(up),
            down: at(down),
        }
    }

    pub(super) fn block_mut(&mut self, layer: usize) -> Block<&mut [f32]> {
        let width = self.shape.width;
        let start = Places::block(&self.shape, layer).attention_norm.start;
        let (_, rest) = self.values.split_at_mut(start);
        let (attention_norm, rest) = rest.split_at_mut(width);
        let (qkv, rest) = rest.split_at_mut(3 * width * width);
        let (out, rest) = rest.split_at_mut(width * width);
        let (mlp_norm, rest) = rest.split_at_mut(width);
        let (up, rest) = rest.split_at_mut(4 * width * width);
        let (down, _) = rest.split_at_mut(4 * width * width);
        Block { attention_norm, qkv, out, mlp_norm, up, down }
    }
}

struct Places;

impl Places {
    fn ends(shape: &Shape) -> Ends<Range<usize>> {
        let mut next = cut(0);
        let width = shape.width;
        Ends {
            embed: next(shape.vocabulary * width),
            positions: next(shape.context * width),
            norm: next(width),
            head: next(width * shape.vocabulary),
        }
    }

    fn block(shape: &Shape, layer: usize) -> Block<Range<usize>> {
        let width = shape.width;
        let first = Self::ends(shape).head.end;
        let mut next = cut(first + layer * (12 * width * width + 2 * width));
        Block {
            attention_norm: next(width),
            qkv: next(3 * width * width),
            out: next(width * width),
            mlp_norm: next(width),
            up: next(4 * width * width),
            down: next(4 * width * width),
        }
    }
}

/// Ranges one behind the other.
fn cut(start: usize) -> impl FnMut(usize) -> Range<usize> {
    let mut at = start;
    move |length| {
        let range = at..at + length;
        at = range.end;
        range
    }
}

fn names(shape: &Shape) -> Names {
    let Ends { embed, positions, norm, head } = Places::ends(shape);
    let ends = [("embed", embed), ("positions", positions), ("norm", norm), ("head", head)];
    let mut names: Names = ends.map(|(name, range)| (name.to_owned(), range)).into();
    for layer in 0..shape.layers {
        let Block { attention_norm, qkv, out, mlp_norm, up, down } = Places::block(shape, layer);
        let parts = [
            ("attention_norm", attention_norm),
            ("qkv", qkv),
            ("out", out),
            ("mlp_norm", mlp_norm),
            ("up", up),
            ("down", down),
        ];
        names.extend(parts.map(|(name, range)| (format!("blocks.{layer}.{name}"), range)));
    }
    names
}

/// From the normal distribution, by Box and Muller.
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let mut unit = || (f64::from(rng.next_u32()) + 0.5) / f64::from(u32::MAX).mul_add(1.0, 1.0);
    let (first, second) = (unit(), unit());
    ((-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()) as f32
}
