//! How large a model is, as its file says.

use super::error::Fault;
use super::metadata::Metadata;

/// A text of this length has some 200 MB of keys and values in a model of 135 million weights, and its prompt is read
/// for minutes on two cores. Files claim far more.
const CONTEXT_MAX: usize = 4096;
/// What can be a model for a CPU, and far from where products of these overflow.
const SIZE_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dims {
    pub(super) vocabulary: usize,
    /// Tokens of the longest text.
    pub(super) context: usize,
    /// Numbers that stand for one token inside.
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// Heads that keys and values have; each serves several of the others.
    pub(super) kv_heads: usize,
    pub(super) head_width: usize,
    /// Between the matrices of a block.
    pub(super) hidden: usize,
    /// Keeps a row of zeros from being divided by nothing.
    pub(super) epsilon: f32,
    /// How many numbers of a head turn with the position.
    pub(super) turning: usize,
    /// How fast the slowest of them does.
    pub(super) turn_base: f64,
}

impl Dims {
    pub(super) fn of(metadata: &Metadata) -> Result<Self, Fault> {
        let architecture = metadata.text("general.architecture")?;
        if architecture != "llama" {
            return Err(Fault::Architecture { found: architecture.to_owned() });
        }
        let size = |key: &str| {
            let count = metadata.count(key)?;
            fits(key, count, count <= SIZE_MAX, &format!("at most {SIZE_MAX}"))
        };
        let maybe_size = |key: &str, default: usize| {
            if metadata.maybe_count(key)?.is_some() { size(key) } else { Ok(default) }
        };
        let width = size("llama.embedding_length")?;
        let heads = size("llama.attention.head_count")?;
        let kv_heads = maybe_size("llama.attention.head_count_kv", heads)?;
        let shared = heads.is_multiple_of(kv_heads);
        fits("llama.attention.head_count_kv", kv_heads, shared, &format!("a divisor of the {heads} heads"))?;
        let head_width = maybe_size("llama.attention.key_length", width / heads)?;
        let value_width = maybe_size("llama.attention.value_length", head_width)?;
        let want = format!("{head_width}, as wide as the keys");
        fits("llama.attention.value_length", value_width, value_width == head_width, &want)?;
        let turning = maybe_size("llama.rope.dimension_count", head_width)?;
        let turns = turning <= head_width && turning.is_multiple_of(2);
        fits("llama.rope.dimension_count", turning, turns, &format!("even and at most {head_width}"))?;
        // Positions that are stretched, and experts, are other networks.
        if let Some(found) = metadata.maybe_text("llama.rope.scaling.type")?.filter(|kind| *kind != "none") {
            return Err(unfit("llama.rope.scaling.type", format!("{found:?}"), "\"none\""));
        }
        if let Some(experts) = metadata.maybe_id("llama.expert_count")?.filter(|count| *count > 0) {
            return Err(unfit("llama.expert_count", experts.to_string(), "0"));
        }
        Ok(Self {
            vocabulary: metadata.texts("tokenizer.ggml.tokens")?.len(),
            context: metadata.count("llama.context_length")?.min(CONTEXT_MAX),
            width,
            layers: size("llama.block_count")?,
            heads,
            kv_heads,
            head_width,
            hidden: size("llama.feed_forward_length")?,
            epsilon: metadata.float("llama.attention.layer_norm_rms_epsilon")? as f32,
            turning,
            turn_base: metadata.maybe_float("llama.rope.freq_base")?.unwrap_or(10_000.0),
        })
    }

    pub(super) fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    pub(super) fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }
}

fn fits(key: &str, value: usize, fits: bool, want: &str) -> Result<usize, Fault> {
    if fits { Ok(value) } else { Err(unfit(key, value.to_string(), want)) }
}

fn unfit(key: &str, found: String, want: &str) -> Fault {
    Fault::Unfit { key: key.to_owned(), found, want: want.to_owned() }
}
