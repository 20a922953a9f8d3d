//! A model small enough to be made for a test, in the format of the large ones.

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::io::Cursor;

pub(super) const WIDTH: usize = 64;
pub(super) const KV_WIDTH: usize = 32;
pub(super) const HIDDEN: usize = 128;
pub(super) const LAYERS: usize = 2;
pub(super) const CONTEXT: u32 = 24;

const MERGES: [&str; 6] = ["1 2", "12 3", "123 4", "Ġ t", "Ġt o", "' S"];
const TEMPLATE: &str =
    "{% for m in messages %}{{ '<|im_start|>' + m['content'] + '<|im_end|>' }}{% endfor %}";

pub(super) struct Synthetic {
    values: Vec<(String, Value)>,
    tensors: Vec<(String, QTensor)>,
}

impl Synthetic {
    pub(super) fn new() -> Self {
        let tokens = tokens();
        let kinds =
            tokens.iter().map(|token| Value::I32(if token.starts_with("<|") { 3 } else { 1 })).collect();
        let text = |text: &str| Value::String(text.to_owned());
        let texts = |texts: &[String]| Value::Array(texts.iter().map(|token| text(token)).collect());
        let values = [
            ("general.architecture", text("llama")),
            ("general.name", text("Synthetic")),
            ("llama.block_count", Value::U32(LAYERS as u32)),
            ("llama.context_length", Value::U32(CONTEXT)),
            ("llama.embedding_length", Value::U32(WIDTH as u32)),
            ("llama.feed_forward_length", Value::U32(HIDDEN as u32)),
            ("llama.attention.head_count", Value::U32(4)),
            ("llama.attention.head_count_kv", Value::U32(2)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.freq_base", Value::F32(10_000.0)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smollm")),
            ("tokenizer.ggml.tokens", texts(&tokens)),
            ("tokenizer.ggml.token_type", Value::Array(kinds)),
            ("tokenizer.ggml.merges", texts(&MERGES.map(str::to_owned))),
            ("tokenizer.ggml.bos_token_id", Value::U32(0)),
            ("tokenizer.ggml.eos_token_id", Value::U32(1)),
            ("tokenizer.chat_template", text(TEMPLATE)),
        ];
        let values = values.map(|(key, value)| (key.to_owned(), value)).into();
        Self { values, tensors: tensors(tokens.len()) }
    }

    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self = self.without(key);
        self.values.push((key.to_owned(), value));
        self
    }

    pub(super) fn without(mut self, key: &str) -> Self {
        self.values.retain(|(name, _)| name != key);
        self
    }

    pub(super) fn with_tensor(mut self, name: &str, dims: &[usize]) -> Self {
        self.tensors.retain(|(other, _)| other != name);
        self.tensors.push((name.to_owned(), tensor(7, dims, GgmlDType::F32)));
        self
    }

    pub(super) fn without_tensor(mut self, name: &str) -> Self {
        self.tensors.retain(|(other, _)| other != name);
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let values: Vec<_> = self.values.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let tensors: Vec<_> = self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut bytes = Cursor::new(Vec::new());
        gguf_file::write(&mut bytes, &values, &tensors).unwrap();
        bytes.into_inner()
    }

    /// Unpacked, for whoever computes with it otherwise.
    pub(super) fn floats(&self, name: &str) -> Vec<f32> {
        let (_, tensor) = self.tensors.iter().find(|(other, _)| other == name).unwrap();
        tensor.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }
}

/// Every byte as GPT-2 writes it, what the merges make, and two marks.
fn tokens() -> Vec<String> {
    let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let mut shown = |byte: u32| {
        let code = if plain(&byte) { byte } else { next };
        next += u32::from(!plain(&byte));
        char::from_u32(code).unwrap().to_string()
    };
    let mut tokens: Vec<String> = ["<|im_start|>", "<|im_end|>"].map(str::to_owned).into();
    tokens.extend((0..256).map(&mut shown));
    tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
    tokens
}

fn tensors(vocabulary: usize) -> Vec<(String, QTensor)> {
    let mut parts = vec![
        ("token_embd.weight".to_owned(), vec![vocabulary, WIDTH], GgmlDType::Q8_0),
        ("output_norm.weight".to_owned(), vec![WIDTH], GgmlDType::F32),
    ];
    for layer in 0..LAYERS {
        let block = [
            ("attn_norm", vec![WIDTH], GgmlDType::F32),
            ("attn_q", vec![WIDTH, WIDTH], GgmlDType::Q4_1),
            ("attn_k", vec![KV_WIDTH, WIDTH], GgmlDType::Q4_0),
            ("attn_v", vec![KV_WIDTH, WIDTH], GgmlDType::F16),
            ("attn_output", vec![WIDTH, WIDTH], GgmlDType::F32),
            ("ffn_norm", vec![WIDTH], GgmlDType::F32),
            ("ffn_gate", vec![HIDDEN, WIDTH], GgmlDType::Q5_0),
            ("ffn_up", vec![HIDDEN, WIDTH], GgmlDType::Q5_1),
            ("ffn_down", vec![WIDTH, HIDDEN], GgmlDType::Q8_0),
        ];
        parts.extend(block.map(|(part, dims, kind)| (format!("blk.{layer}.{part}.weight"), dims, kind)));
    }
    let numbered = parts.into_iter().enumerate();
    numbered.map(|(seed, (name, dims, kind))| (name, tensor(seed as u64, &dims, kind))).collect()
}

fn tensor(seed: u64, dims: &[usize], kind: GgmlDType) -> QTensor {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut next = || (f64::from(rng.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0) as f32;
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next() * 0.5).collect();
    QTensor::quantize(&Tensor::from_vec(values, dims, &Device::Cpu).unwrap(), kind).unwrap()
}
