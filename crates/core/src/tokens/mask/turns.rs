//! Where each message stands among the tokens, for those who look at a conversation.

use super::cuts::tokens_until;
use super::{Masked, MessageSpan};
use crate::tokens::Tokenizer;
use crate::tokens::template::{Message, Render};

/// The turns of a masked conversation. Messages that the template does not keep apart are one turn.
///
/// Rules that render message by message know them; for the others the rendering of the first so many
/// messages shows where the next begins, wherever it is a prefix of the whole.
pub fn whole_turns(
    tokenizer: &Tokenizer,
    messages: &[Message],
    how: &Render<'_>,
    masked: &Masked,
) -> Vec<MessageSpan> {
    let covered: usize = masked.messages.iter().map(|turn| turn.tokens.len()).sum();
    if covered == masked.ids.len() {
        return masked.messages.clone();
    }
    let mut turns = Vec::new();
    let (mut start, mut first) = (0, 0);
    for (end, next) in boundaries(tokenizer, messages, how, masked) {
        turns.push(MessageSpan { message: first, tokens: start..end });
        (start, first) = (end, next);
    }
    turns.push(MessageSpan { message: first, tokens: start..masked.ids.len() });
    turns
}

/// Tokens after which a message begins, and which.
fn boundaries(
    tokenizer: &Tokenizer,
    messages: &[Message],
    how: &Render<'_>,
    masked: &Masked,
) -> Vec<(usize, usize)> {
    let Ok(whole) = tokenizer.render(messages, how) else { return Vec::new() };
    let encoder = tokenizer.encoder();
    let Ok(encoded) = encoder.encode_with_ends(&whole.text) else { return Vec::new() };
    if encoded.ids != masked.ids {
        return Vec::new();
    }
    let mut found = Vec::new();
    for next in 1..messages.len() {
        let before = messages.get(..next).unwrap_or_default();
        let Ok(rendered) = tokenizer.render(before, how) else { continue };
        if !whole.text.starts_with(&rendered.text) {
            continue;
        }
        if let Ok(end) = tokens_until(encoder, &whole.text, &encoded, rendered.text.len()) {
            found.push((end, next));
        }
    }
    found
}
