//! What can be wrong with a tokenizer.json, and with a text.

/// Why a tokenizer could not be built, or a text not be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    #[error("tokenizer.json is not the JSON of a tokenizer: {0}; fetch the file again")]
    NotJson(#[from] serde_json::Error),
    #[error(
        "tokenizer.json: merge {rank} joins {left:?} and {right:?}, but the vocabulary lacks one of them or \
         their sum; fetch the file again"
    )]
    MergeOutsideVocabulary { rank: usize, left: String, right: String },
    #[error(
        "tokenizer.json is outside the fast path ({reason}), and `tokenizers` refuses it too: {error}; \
         save it with a current `transformers`"
    )]
    Refused { reason: String, error: String },
    #[error("`tokenizers` could not encode a text of {len} bytes: {error}")]
    Encode { len: usize, error: String },
    #[error("`tokenizers` could not decode {count} ids: {error}")]
    Decode { count: usize, error: String },
    #[error("a text of {len} bytes is too long to encode; the limit is {} bytes, so split it", u32::MAX)]
    TooLong { len: usize },
}
