//! The same model over candle's tensors, as fast as its CPU backend lets it be.
//!
//! Texts of a batch are equally long, so that nothing is padded. Where there is no way back, the fused norm and softmax
//! are used; for training there are none that have one.

use anyhow::Result;
use candle_core::{D, DType, Device, Tensor, Var};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, rms_norm_slow, softmax, softmax_last_dim};
use candle_nn::{VarBuilder, VarMap, loss};
use rollyard_tiny::model::{Shape, Weights};
use rollyard_tiny::train::Lesson;

use crate::ours::likeliest;

const EPSILON: f32 = 1e-5;

pub struct InCandle {
    shape: Shape,
    /// In the order that `Weights` has them in.
    vars: Vec<Var>,
    ends: Ends,
    blocks: Vec<Block>,
}

struct Ends {
    embed: Tensor,
    positions: Tensor,
    norm: Tensor,
    head: Tensor,
}

struct Block {
    attention_norm: Tensor,
    qkv: Tensor,
    out: Tensor,
    mlp_norm: Tensor,
    up: Tensor,
    down: Tensor,
}

/// Whether gradients are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    AndBack,
}

impl InCandle {
    pub fn new(weights: &Weights) -> Result<Self> {
        let shape = *weights.shape();
        let map = VarMap::new();
        let builder = VarBuilder::from_varmap(&map, DType::F32, &Device::Cpu);
        let mut vars = Vec::new();
        for (name, range) in weights.names() {
            let values = &weights.values()[range];
            let dims = dims(&shape, &name, values.len());
            builder.get(dims.clone(), &name)?;
            let var = map.data().lock().expect("nobody panics while they hold it")[&name].clone();
            var.set(&Tensor::from_slice(values, dims, &Device::Cpu)?)?;
            vars.push(var);
        }
        let part = |name: &str, dims: &[usize]| builder.get(dims, name);
        let Shape { vocabulary, width, context, layers, .. } = shape;
        let ends = Ends {
            embed: part("embed", &[vocabulary, width])?,
            positions: part("positions", &[context, width])?,
            norm: part("norm", &[width])?,
            head: part("head", &[width, vocabulary])?,
        };
        let block = |layer: usize| -> Result<Block> {
            let part = |name: &str, dims: &[usize]| part(&format!("blocks.{layer}.{name}"), dims);
            Ok(Block {
                attention_norm: part("attention_norm", &[width])?,
                qkv: part("qkv", &[width, 3 * width])?,
                out: part("out", &[width, width])?,
                mlp_norm: part("mlp_norm", &[width])?,
                up: part("up", &[width, shape.hidden()])?,
                down: part("down", &[shape.hidden(), width])?,
            })
        };
        let blocks = (0..layers).map(block).collect::<Result<_>>()?;
        Ok(Self { shape, vars, ends, blocks })
    }

    /// The likeliest tokens, of all texts at once.
    pub fn sample(&self, prompts: &[Vec<i32>], answer: usize) -> Result<Vec<Vec<i32>>> {
        let length = prompts.first().map_or(0, Vec::len);
        let mut caches: Vec<KvCache> =
            self.blocks.iter().map(|_| KvCache::new(2, length + answer)).collect();
        let mut next: Vec<u32> = prompts.iter().flatten().map(|token| token.cast_unsigned()).collect();
        let mut said = vec![Vec::new(); prompts.len()];
        for nth in 0..answer {
            let tokens = Tensor::from_slice(&next, (prompts.len(), next.len() / prompts.len()), &Device::Cpu)?;
            let before = if nth == 0 { 0 } else { length + nth - 1 };
            let x = self.through(&tokens, before, Way::Forward, Some(&mut caches))?;
            let last = x.narrow(1, x.dim(1)? - 1, 1)?.squeeze(1)?.contiguous()?;
            let logits = rms_norm(&last, &self.ends.norm, EPSILON)?.matmul(&self.ends.head)?.flatten_all()?.to_vec1::<f32>()?;
            next.clear();
            for (row, said) in logits.chunks_exact(self.shape.vocabulary).zip(&mut said) {
                said.push(likeliest(row));
                next.push(likeliest(row).cast_unsigned());
            }
        }
        Ok(said)
    }

    /// The mean loss of a taught token and its gradient. In `parts` at once, each a thread with lessons of its own.
    pub fn train(&self, lessons: &[Lesson], parts: usize) -> Result<(f64, Vec<f32>)> {
        let shares: Vec<&[Lesson]> = lessons.chunks(lessons.len().div_ceil(parts)).collect();
        let each: Vec<Result<(f64, Vec<f32>)>> = match shares.as_slice() {
            [all] => vec![self.train_part(all)],
            _ => std::thread::scope(|scope| {
                let threads: Vec<_> =
                    shares.iter().map(|share| scope.spawn(move || self.train_part(share))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
            }),
        };
        let (mut loss, mut sum) = (0.0, vec![0.0; self.shape.weights()]);
        for (share, part) in shares.iter().zip(each) {
            let (part_loss, gradients) = part?;
            let weight = share.len() as f64 / lessons.len() as f64;
            loss += weight * part_loss;
            sum.iter_mut().zip(gradients).for_each(|(sum, gradient)| *sum += weight as f32 * gradient);
        }
        Ok((loss, sum))
    }

    fn train_part(&self, lessons: &[Lesson]) -> Result<(f64, Vec<f32>)> {
        let length = lessons.first().map_or(0, |lesson| lesson.tokens.len());
        let taught = lessons.first().map_or(0, Lesson::taught);
        let all: Vec<u32> = lessons.iter().flat_map(|lesson| &lesson.tokens).map(|token| token.cast_unsigned()).collect();
        let tokens = Tensor::from_vec(all, (lessons.len(), length), &Device::Cpu)?;
        let x = self.through(&tokens, 0, Way::AndBack, None)?;
        let normed = rms_norm_slow(&x, &self.ends.norm, EPSILON)?;
        let rows = normed.narrow(1, length - taught - 1, taught)?.contiguous()?.flatten_to(1)?;
        let logits = rows.matmul(&self.ends.head)?;
        let targets = tokens.narrow(1, length - taught, taught)?.contiguous()?.flatten_all()?;
        let loss = loss::cross_entropy(&logits, &targets)?;
        let gradients = loss.backward()?;
        let mut values = Vec::with_capacity(self.shape.weights());
        for var in &self.vars {
            match gradients.get(var) {
                Some(gradient) => values.extend(gradient.flatten_all()?.to_vec1::<f32>()?),
                None => values.resize(values.len() + var.elem_count(), 0.0),
            }
        }
        Ok((f64::from(loss.to_scalar::<f32>()?), values))
    }

    /// Rows of all texts, behind the last block.
    fn through(
        &self,
        tokens: &Tensor,
        before: usize,
        way: Way,
        mut caches: Option<&mut Vec<KvCache>>,
    ) -> Result<Tensor> {
        let Shape { width, heads, .. } = self.shape;
        let (texts, length) = tokens.dims2()?;
        let places = self.ends.positions.narrow(0, before, length)?;
        let x = self.ends.embed.index_select(&tokens.flatten_all()?, 0)?.reshape((texts, length, width))?;
        let mut x = x.broadcast_add(&places)?.reshape((texts * length, width))?;
        let mask = (length > 1).then(|| mask(length)).transpose()?;
        let scale = 1.0 / (self.shape.head_width() as f64).sqrt();
        for (layer, block) in self.blocks.iter().enumerate() {
            let qkv = norm(&x, &block.attention_norm, way)?.matmul(&block.qkv)?;
            let qkv = qkv.reshape((texts, length, 3, heads, self.shape.head_width()))?;
            let part = |at: usize| qkv.narrow(2, at, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
            let (query, mut key, mut value) = (part(0)?, part(1)?, part(2)?);
            if let Some(cache) = caches.as_mut().and_then(|caches| caches.get_mut(layer)) {
                (key, value) = cache.append(&key, &value)?;
            }
            let scores = (query.matmul(&key.transpose(2, 3)?)? * scale)?;
            let scores = match &mask {
                Some(mask) => scores.broadcast_add(mask)?,
                None => scores,
            };
            let shares = match way {
                Way::Forward => softmax_last_dim(&scores)?,
                Way::AndBack => softmax(&scores, D::Minus1)?,
            };
            let seen = shares.matmul(&value)?.transpose(1, 2)?.contiguous()?.reshape((texts * length, width))?;
            x = (x + seen.matmul(&block.out)?)?;
            let raised = norm(&x, &block.mlp_norm, way)?.matmul(&block.up)?;
            x = (x + raised.relu()?.sqr()?.matmul(&block.down)?)?;
        }
        Ok(x.reshape((texts, length, width))?)
    }
}

fn norm(x: &Tensor, gain: &Tensor, way: Way) -> Result<Tensor> {
    Ok(match way {
        Way::Forward => rms_norm(x, gain, EPSILON)?,
        Way::AndBack => rms_norm_slow(x, gain, EPSILON)?,
    })
}

/// Nobody looks at what comes behind.
fn mask(length: usize) -> Result<Tensor> {
    let cell = |at: usize| if at % length > at / length { f32::NEG_INFINITY } else { 0.0 };
    let cells: Vec<f32> = (0..length * length).map(cell).collect();
    Ok(Tensor::from_vec(cells, (length, length), &Device::Cpu)?)
}

fn dims(shape: &Shape, name: &str, count: usize) -> Vec<usize> {
    let width = shape.width;
    match name.rsplit('.').next().unwrap_or(name) {
        "embed" => vec![shape.vocabulary, width],
        "positions" => vec![shape.context, width],
        "head" => vec![width, shape.vocabulary],
        "qkv" => vec![width, 3 * width],
        "out" => vec![width, width],
        "up" => vec![width, shape.hidden()],
        "down" => vec![shape.hidden(), width],
        _ => vec![count],
    }
}
