//! The BPE model of a tokenizer.json: its vocabulary and its merges, borrowed from the file.

use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::EncoderError;

/// The model as written, with tokens in the byte-level alphabet.
#[derive(Debug, Deserialize)]
pub(super) struct Bpe<'a> {
    #[serde(default)]
    dropout: Option<f32>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) ignore_merges: bool,
    #[serde(borrow)]
    pub(super) vocab: Vocab<'a>,
    #[serde(borrow)]
    merges: Vec<Pair<'a>>,
}

/// Tokens by their text. `repeated` names one that the file gives two ids.
#[derive(Debug)]
pub(super) struct Vocab<'a> {
    pub(super) ids: HashMap<Cow<'a, str>, u32>,
    pub(super) repeated: Option<String>,
}

/// One merge: `["a", "b"]`, or `"a b"` in older files.
#[derive(Debug)]
enum Pair<'a> {
    Two(Token<'a>, Token<'a>),
    Line(Cow<'a, str>),
}

/// A merge by ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeIds {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) id: u32,
}

impl<'a> Bpe<'a> {
    /// Why the fast path cannot do it, if it cannot.
    pub(super) fn oddity(&self) -> Option<String> {
        let marked = |affix: &Option<String>| affix.as_deref().is_some_and(|affix| !affix.is_empty());
        if self.dropout.is_some_and(|dropout| dropout != 0.0) {
            Some("the model drops merges at random".into())
        } else if marked(&self.continuing_subword_prefix) || marked(&self.end_of_word_suffix) {
            Some("the model marks the parts of words".into())
        } else {
            self.vocab.repeated.as_ref().map(|token| format!("token {token:?} is in the vocabulary twice"))
        }
    }

    /// Every merge joins two tokens of the vocabulary into a third.
    pub(super) fn check_merges(&self) -> Result<(), EncoderError> {
        self.merges().try_for_each(|merge| merge.map(drop))
    }

    pub(super) fn merges_len(&self) -> usize {
        self.merges.len()
    }

    /// The merges by rank.
    pub(super) fn merges(&self) -> impl Iterator<Item = Result<MergeIds, EncoderError>> {
        let prefix = self.continuing_subword_prefix.as_deref().unwrap_or_default();
        let lines = self.merges.iter().filter(|pair| !pair.is_heading());
        let mut joined = String::new();
        lines.enumerate().map(move |(rank, pair)| {
            let (left, right) = pair.sides();
            joined.clear();
            joined.push_str(left);
            joined.push_str(right.strip_prefix(prefix).unwrap_or(right));
            let id = |token: &str| self.vocab.ids.get(token).copied();
            match (id(left), id(right), id(&joined)) {
                (Some(left), Some(right), Some(id)) => Ok(MergeIds { left, right, id }),
                _ => {
                    Err(EncoderError::MergeOutsideVocabulary { rank, left: left.into(), right: right.into() })
                }
            }
        })
    }
}

impl Pair<'_> {
    /// Files made from a merges.txt may keep its first line.
    fn is_heading(&self) -> bool {
        matches!(self, Pair::Line(line) if line.starts_with("#version"))
    }

    fn sides(&self) -> (&str, &str) {
        match self {
            Pair::Two(left, right) => (&left.0, &right.0),
            Pair::Line(line) => line.split_once(' ').unwrap_or((line, "")),
        }
    }
}

/// Text borrowed from the file where it has no escapes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Token<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Token<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TokenVisitor;
        impl<'de> Visitor<'de> for TokenVisitor {
            type Value = Token<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Token<'de>, E> {
                Ok(Token(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Token<'de>, E> {
                Ok(Token(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TokenVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pair<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairVisitor;
        impl<'de> Visitor<'de> for PairVisitor {
            type Value = Pair<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge, as \"a b\" or [\"a\", \"b\"]")
            }
            fn visit_borrowed_str<E>(self, line: &'de str) -> Result<Pair<'de>, E> {
                Ok(Pair::Line(Cow::Borrowed(line)))
            }
            fn visit_str<E>(self, line: &str) -> Result<Pair<'de>, E> {
                Ok(Pair::Line(Cow::Owned(line.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pair<'de>, A::Error> {
                let missing = |len| serde::de::Error::invalid_length(len, &self);
                let left = seq.next_element()?.ok_or_else(|| missing(0))?;
                let right = seq.next_element()?.ok_or_else(|| missing(1))?;
                Ok(Pair::Two(left, right))
            }
        }
        deserializer.deserialize_any(PairVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VocabVisitor;
        impl<'de> Visitor<'de> for VocabVisitor {
            type Value = Vocab<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tokens to ids")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab<'de>, A::Error> {
                let mut vocab = Vocab { ids: HashMap::with_capacity(1 << 18), repeated: None };
                while let Some((Token(token), id)) = map.next_entry::<Token<'de>, u32>()? {
                    if vocab.ids.contains_key(&token) {
                        vocab.repeated = Some(token.to_string());
                    }
                    vocab.ids.insert(token, id);
                }
                Ok(vocab)
            }
        }
        deserializer.deserialize_map(VocabVisitor)
    }
}
