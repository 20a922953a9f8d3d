//! Cuts text and its tokens at the same places, or says why they do not fall together.

use super::MaskError;
use super::error::{head, tail};
use crate::tokens::encode::{Encoded, Encoder, EncoderError, Path};

/// A token that reaches over a place where the text is cut.
#[derive(Debug)]
pub(super) enum CutError {
    Encoder(EncoderError),
    Straddles { token: String, before: String, after: String, at: usize },
}

impl CutError {
    pub(super) fn in_message(self, message: usize, role: &str) -> MaskError {
        match self {
            Self::Encoder(error) => error.into(),
            Self::Straddles { token, before, after, at } => {
                MaskError::Straddles { message, role: role.to_owned(), token, before, after, at }
            }
        }
    }
}

/// How many tokens end at or before the byte, of which the last must end just there.
pub(super) fn tokens_until(
    encoder: &Encoder,
    text: &str,
    encoded: &Encoded,
    at: usize,
) -> Result<usize, CutError> {
    let count = encoded.ends.partition_point(|end| *end as usize <= at);
    let reached = count.checked_sub(1).and_then(|last| encoded.ends.get(last)).map_or(0, |end| *end as usize);
    if reached == at {
        return Ok(count);
    }
    let token = encoded.ids.get(count).map(|id| encoder.decode(&[*id], false).unwrap_or_default());
    Err(CutError::Straddles {
        token: token.unwrap_or_default(),
        before: tail(text.get(..at).unwrap_or_default()),
        after: head(text.get(at..).unwrap_or_default()),
        at,
    })
}

/// The tokens of a piece of text, and how many of them come before its answer.
pub(super) struct Piece {
    pub(super) ids: Vec<u32>,
    pub(super) given: usize,
}

/// The places of a piece in the text it is cut from.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) start: usize,
    /// Where the answer begins.
    pub(super) answer: usize,
    pub(super) end: usize,
}

/// The tokens that `places` cover when the whole text is tokenised.
///
/// Tokens never reach into or out of an added token, so a piece between two of them is tokenised by itself.
pub(super) fn piece(encoder: &Encoder, text: &str, places: Places) -> Result<Piece, CutError> {
    let safe = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        at == 0 || rest.is_empty() || is_apart(encoder, rest)
    };
    let from = if safe(places.start) { places.start } else { 0 };
    let to = if safe(places.end) { places.end } else { text.len() };
    let text = text.get(from..to).unwrap_or_default();
    let mut encoded = encoder.encode_with_ends(text).map_err(CutError::Encoder)?;
    let start = tokens_until(encoder, text, &encoded, places.start - from)?;
    let answer = tokens_until(encoder, text, &encoded, places.answer - from)?;
    let end = tokens_until(encoder, text, &encoded, places.end - from)?;
    encoded.ids.truncate(end);
    encoded.ids.drain(..start);
    Ok(Piece { given: answer - start, ids: encoded.ids })
}

/// Whether the rest begins with an added token that keeps it apart from what comes before. Tokenizers off the
/// fast path may treat the beginning of a text in a way of their own.
fn is_apart(encoder: &Encoder, rest: &str) -> bool {
    let begins = || encoder.added_tokens().iter().any(|token| rest.starts_with(&token.content));
    *encoder.path() == Path::Fast && begins()
}
