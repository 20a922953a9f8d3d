//! The way of every tokenizer that the fast path does not know: `tokenizers` itself.

use std::panic;

use tokenizers::{PostProcessor, PostProcessorWrapper, Tokenizer};

use super::added::AddedToken;
use super::alphabet::{bytes_of, shown};
use super::error::EncoderError;

#[derive(Debug)]
pub(super) struct Fallback {
    /// Without its post-processor, which would move offsets.
    tokenizer: Tokenizer,
    post_processor: Option<PostProcessorWrapper>,
    added: Vec<AddedToken>,
}

impl Fallback {
    pub(super) fn new(json: &[u8], reason: &str) -> Result<Fallback, EncoderError> {
        let refused = |error: tokenizers::Error| EncoderError::Refused {
            reason: reason.to_owned(),
            error: error.to_string(),
        };
        // It indexes where it should check: what a file can make it do must not end a server.
        let read = panic::catch_unwind(|| Tokenizer::from_bytes(json));
        let mut tokenizer = read.unwrap_or_else(|_| Err("it panicked".into())).map_err(refused)?;
        // `transformers` switches both off for every call too.
        tokenizer.with_truncation(None).map_err(refused)?;
        tokenizer.with_padding(None);
        let post_processor = tokenizer.get_post_processor().cloned();
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        let mut added: Vec<AddedToken> = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| AddedToken { content: token.content, id, special: token.special })
            .collect();
        added.sort_by_key(|token| token.id);
        Ok(Fallback { tokenizer, post_processor, added })
    }

    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), EncoderError> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| encode_error(text, error))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    pub(super) fn encode_with_ends(&self, text: &str) -> Result<(Vec<u32>, Vec<u32>), EncoderError> {
        let encoding = self.tokenizer.encode(text, false).map_err(|error| encode_error(text, error))?;
        let offsets = encoding.get_offsets();
        let mut ends: Vec<u32> = offsets.iter().map(|&(_, end)| end as u32).collect();
        // A token that begins before the one to its left has ended shares a character with it, and so its end.
        let mut right: Option<(usize, u32)> = None;
        for (&(start, _), end) in offsets.iter().zip(&mut ends).rev() {
            if let Some((right_start, right_end)) = right
                && right_start < *end as usize
            {
                *end = right_end;
            }
            right = Some((start, *end));
        }
        Ok((encoding.get_ids().to_vec(), ends))
    }

    pub(super) fn encode_with_special(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| encode_error(text, error))?;
        let framed = match &self.post_processor {
            Some(processor) => {
                processor.process(encoding, None, true).map_err(|error| encode_error(text, error))?
            }
            None => encoding,
        };
        Ok(framed.get_ids().to_vec())
    }

    pub(super) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, EncoderError> {
        let decoded = self.tokenizer.decode(ids, skip_special_tokens);
        decoded.map_err(|error| EncoderError::Decode { count: ids.len(), error: error.to_string() })
    }

    /// A token is read after the one before it, because the first token of a text may lose its space.
    pub(super) fn texts(&self, ids: &[u32]) -> Result<Vec<String>, EncoderError> {
        let before = std::iter::once(None).chain(ids.iter().map(|id| Some(*id)));
        ids.iter().zip(before).map(|(id, before)| self.text(*id, before)).collect()
    }

    fn text(&self, id: u32, before: Option<u32>) -> Result<String, EncoderError> {
        let Some(token) = self.tokenizer.id_to_token(id) else { return Ok(String::new()) };
        if let Some(byte) = lone_byte(&token) {
            return Ok(shown(&[byte]));
        }
        let alone = self.decode(&[id], false)?;
        if alone.contains('\u{fffd}') {
            return Ok(bytes_of(&token).map_or(alone, |bytes| shown(&bytes)));
        }
        let Some(before) = before else { return Ok(alone) };
        let (first, both) = (self.decode(&[before], false)?, self.decode(&[before, id], false)?);
        Ok(both.strip_prefix(&first).map_or(alone, str::to_owned))
    }

    pub(super) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub(super) fn added_tokens(&self) -> &[AddedToken] {
        &self.added
    }
}

/// The byte that a token like `<0xE2>` stands for.
fn lone_byte(token: &str) -> Option<u8> {
    u8::from_str_radix(token.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

fn encode_error(text: &str, error: tokenizers::Error) -> EncoderError {
    EncoderError::Encode { len: text.len(), error: error.to_string() }
}
