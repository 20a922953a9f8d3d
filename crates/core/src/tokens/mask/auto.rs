//! The rule for any template: one rendering of the whole, and proof of where each answer stands in it.
//!
//! The tokens are those of the template's own text, so nothing can drift from what an engine is given that
//! renders the same conversation. A model stops at its end-of-turn token: what the template prints after it
//! (a newline, mostly) was not generated and is not trained on.

use std::ops::Range;

use super::cuts::tokens_until;
use super::spans::answers;
use super::{MaskError, MaskRule, Masked, MessageSpan, check_messages, is_assistant, is_trained, render};
use crate::rollout::Runs;
use crate::tokens::Tokenizer;
use crate::tokens::encode::Encoder;
use crate::tokens::template::{Message, Render};

#[derive(Clone, Copy, Debug)]
pub struct Auto;

impl MaskRule for Auto {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError> {
        check_messages(tokenizer, messages, how)?;
        let whole = render(tokenizer, messages, how)?;
        let encoder = tokenizer.encoder();
        let encoded = encoder.encode_with_ends(&whole.text)?;
        let cut = |message: usize, at: usize| {
            let role = messages.get(message).and_then(Message::role).unwrap_or_default();
            tokens_until(encoder, &whole.text, &encoded, at).map_err(|error| error.in_message(message, role))
        };
        let mut spans: Vec<Trained> = Vec::new();
        let mut turns = Vec::new();
        if whole.generation.is_empty() {
            for answer in answers(tokenizer, messages, how, &whole.text)? {
                let (start, end) =
                    (cut(answer.message, answer.bytes.start)?, cut(answer.message, answer.bytes.end)?);
                turns.push(MessageSpan { message: answer.message, tokens: start..end });
                let end = start + generated(encoder, encoded.ids.get(start..end).unwrap_or_default());
                spans.push(Trained { message: answer.message, tokens: start..end });
            }
        } else {
            // The template's author says what is generated, to the character.
            for (message, bytes) in marked(messages, &whole.generation)? {
                spans.push(Trained { message, tokens: cut(message, bytes.start)?..cut(message, bytes.end)? });
            }
        }
        let mask = paint(encoded.ids.len(), &spans, |message| messages.get(message).is_none_or(is_trained));
        Ok(Masked { ids: encoded.ids, mask, messages: turns })
    }
}

/// The tokens of an answer.
pub(super) struct Trained {
    pub(super) message: usize,
    pub(super) tokens: Range<usize>,
}

/// A mask of `len` tokens that is 1 on the spans whose message wants it.
pub(super) fn paint(len: usize, spans: &[Trained], wanted: impl Fn(usize) -> bool) -> Runs<bool> {
    let mut mask = Runs::default();
    for span in spans.iter().filter(|span| wanted(span.message)) {
        mask.push(false, span.tokens.start.saturating_sub(mask.len()));
        mask.push(true, span.tokens.end.saturating_sub(mask.len()));
    }
    mask.push(false, len.saturating_sub(mask.len()));
    mask
}

/// How many tokens of an answer the model generates: up to the end-of-turn token, if only space follows it.
fn generated(encoder: &Encoder, ids: &[u32]) -> usize {
    let Some(last) = ids.iter().rposition(|id| encoder.is_special(*id)) else { return ids.len() };
    let after = ids.get(last + 1..).unwrap_or_default();
    let is_space = encoder.decode(after, false).is_ok_and(|text| text.trim().is_empty());
    if is_space { last + 1 } else { ids.len() }
}

/// The marked spans with the messages they belong to.
fn marked(messages: &[Message], spans: &[Range<usize>]) -> Result<Vec<(usize, Range<usize>)>, MaskError> {
    let assistants: Vec<usize> =
        messages.iter().enumerate().filter(|(_, said)| is_assistant(said)).map(|(nth, _)| nth).collect();
    let all_trained = messages.iter().all(is_trained);
    if assistants.len() != spans.len() && !all_trained {
        return Err(MaskError::Generations { found: spans.len(), expected: assistants.len() });
    }
    let of = |nth: usize| assistants.get(nth).or(assistants.last()).copied().unwrap_or_default();
    Ok(spans.iter().enumerate().map(|(nth, span)| (of(nth), span.clone())).collect())
}
