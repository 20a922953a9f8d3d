//! Text to token ids, exactly as Hugging Face `tokenizers` gives them.
//!
//! A mask is only true if the ids under it are those the model was trained on, so equality comes first: a
//! tokenizer.json is either understood in every field and encoded by the fast path here, or left whole to
//! `tokenizers`, with the reason at hand ([`Encoder::path`]). See `docs/decisions/004-encoder.md` for the numbers.
//!
//! [`spec`] reads the file and decides; [`fast`] encodes by way of [`added`], [`nfc`], [`scan`], [`vocab`] and
//! [`merge`]; [`fallback`] is the other way.

mod added;
mod alphabet;
mod bpe;
mod cache;
mod classes;
mod ends;
mod error;
mod fallback;
mod fast;
mod merge;
mod nfc;
mod scan;
mod spec;
mod table;
mod vocab;

use std::fmt;

pub use added::AddedToken;
pub use error::EncoderError;

use fallback::Fallback;
use fast::Fast;
use spec::Spec;

/// A tokenizer, built once and shared by all threads.
pub struct Encoder {
    engine: Engine,
    path: Path,
}

/// Which code does the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Path {
    /// This module alone.
    Fast,
    /// `tokenizers`, because the fast path does not do what the file asks for.
    Fallback { reason: String },
}

/// Token ids, and for each the byte position in the text where it ends.
///
/// Tokens that share a character share their end, that of the last of them: the text divides between two tokens at
/// byte `p` exactly if `p` is among `ends`, and then after the last token that ends there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    pub ids: Vec<u32>,
    pub ends: Vec<u32>,
}

enum Engine {
    Fast(Box<Fast>),
    Fallback(Box<Fallback>),
}

impl Encoder {
    /// Builds an encoder from the bytes of a tokenizer.json.
    pub fn from_json(tokenizer_json: &[u8]) -> Result<Encoder, EncoderError> {
        let plan = Spec::parse(tokenizer_json)?.plan()?;
        match plan.and_then(|plan| Fast::new(&plan)) {
            Ok(fast) => Ok(Encoder { engine: Engine::Fast(Box::new(fast)), path: Path::Fast }),
            Err(reason) => {
                let fallback = Fallback::new(tokenizer_json, &reason)?;
                Ok(Encoder { engine: Engine::Fallback(Box::new(fallback)), path: Path::Fallback { reason } })
            }
        }
    }

    /// The ids of `text`, with nothing added before or after.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let mut ids = Vec::new();
        self.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// As [`encode`](Encoder::encode), appending to `ids`.
    pub fn encode_into(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), EncoderError> {
        check_len(text)?;
        match &self.engine {
            Engine::Fast(fast) => fast.encode(text, ids, None),
            Engine::Fallback(fallback) => fallback.encode(text, ids)?,
        }
        Ok(())
    }

    /// The ids of `text` and where each ends. Ends never fall, and the last is the length of the text unless the
    /// tokenizer drops what stands there.
    pub fn encode_with_ends(&self, text: &str) -> Result<Encoded, EncoderError> {
        check_len(text)?;
        let mut encoded = Encoded::default();
        match &self.engine {
            Engine::Fast(fast) => fast.encode(text, &mut encoded.ids, Some(&mut encoded.ends)),
            Engine::Fallback(fallback) => (encoded.ids, encoded.ends) = fallback.encode_with_ends(text)?,
        }
        Ok(encoded)
    }

    /// The ids of `text` between those that the tokenizer sets around every text, such as a beginning of text.
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        check_len(text)?;
        match &self.engine {
            Engine::Fast(fast) => {
                let mut ids = fast.frame.before.clone();
                fast.encode(text, &mut ids, None);
                ids.extend_from_slice(&fast.frame.after);
                Ok(ids)
            }
            Engine::Fallback(fallback) => fallback.encode_with_special(text),
        }
    }

    /// The text of `ids`. Unknown ids are passed over, and bytes that are no character become U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, EncoderError> {
        match &self.engine {
            Engine::Fast(fast) => Ok(fast.decode(ids, skip_special_tokens)),
            Engine::Fallback(fallback) => fallback.decode(ids, skip_special_tokens),
        }
    }

    /// What each token adds to the text. Bytes that are no whole character are written as `\xE2`, and an id that is
    /// unknown adds nothing.
    pub fn texts(&self, ids: &[u32]) -> Result<Vec<String>, EncoderError> {
        match &self.engine {
            Engine::Fast(fast) => Ok(fast.texts(ids)),
            Engine::Fallback(fallback) => fallback.texts(ids),
        }
    }

    /// The id of a token, written as in the vocabulary (`Ġthe`).
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        match &self.engine {
            Engine::Fast(fast) => fast.vocabulary().token_to_id(token),
            Engine::Fallback(fallback) => fallback.tokenizer().token_to_id(token),
        }
    }

    /// A token as the vocabulary writes it.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        match &self.engine {
            Engine::Fast(fast) => fast.vocabulary().id_to_token(id),
            Engine::Fallback(fallback) => fallback.tokenizer().id_to_token(id),
        }
    }

    /// How many tokens there are, added ones included. Ids may have gaps and lie beyond.
    pub fn vocab_size(&self) -> usize {
        match &self.engine {
            Engine::Fast(fast) => fast.vocabulary().len(),
            Engine::Fallback(fallback) => fallback.tokenizer().get_vocab_size(true),
        }
    }

    /// The tokens found as a whole, wherever they stand in a text.
    pub fn added_tokens(&self) -> &[AddedToken] {
        match &self.engine {
            Engine::Fast(fast) => fast.added_tokens(),
            Engine::Fallback(fallback) => fallback.added_tokens(),
        }
    }

    /// Whether `decode` leaves `id` out when it skips special tokens.
    pub fn is_special(&self, id: u32) -> bool {
        self.added_tokens().iter().any(|token| token.id == id && token.special)
    }

    /// Which code does the work, and why.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("path", &self.path)
            .field("vocab_size", &self.vocab_size())
            .field("added_tokens", &self.added_tokens().len())
            .finish()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Fast => f.write_str("fast"),
            Path::Fallback { reason } => write!(f, "tokenizers ({reason})"),
        }
    }
}

/// Ends are 32 bits wide.
fn check_len(text: &str) -> Result<(), EncoderError> {
    if u32::try_from(text.len()).is_err() { Err(EncoderError::TooLong { len: text.len() }) } else { Ok(()) }
}
