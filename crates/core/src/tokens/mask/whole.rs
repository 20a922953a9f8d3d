//! slime's rules that do not go message by message.

use super::auto::{Trained, paint};
use super::cuts::tokens_until;
use super::spans::answers;
use super::{MaskError, MaskRule, Masked, MessageSpan, check_messages, is_trained, render};
use crate::rollout::Runs;
use crate::tokens::Tokenizer;
use crate::tokens::template::{Message, Render, Value};

/// One rendering of the whole, masked by character: an opened block of reasoning after the header is given,
/// `<|im_end|>` and its newline are trained on.
///
/// slime looks for the header in the text, so a user who writes one shifts the mask; we prove where each
/// answer stands.
#[derive(Clone, Copy, Debug)]
pub struct Qwen35;

const THINK_OPENED: &str = "<think>\n";

impl MaskRule for Qwen35 {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError> {
        check_messages(tokenizer, messages, how)?;
        let whole = render(tokenizer, messages, how)?.text;
        let encoder = tokenizer.encoder();
        let encoded = encoder.encode_with_ends(&whole)?;
        let mut spans = Vec::new();
        for answer in answers(tokenizer, messages, how, &whole)? {
            let cut = |at: usize| {
                let found = tokens_until(encoder, &whole, &encoded, at);
                found.map_err(|error| error.in_message(answer.message, "assistant"))
            };
            let (mut start, end) = (cut(answer.bytes.start)?, cut(answer.bytes.end)?);
            let text = whole.get(answer.bytes.start..).unwrap_or_default();
            if text.starts_with(THINK_OPENED) {
                // The newline may be one token with the next, in an empty block; such a token is trained on.
                let opened = answer.bytes.start + THINK_OPENED.len();
                start = encoded.ends.partition_point(|token_end| *token_end as usize <= opened);
            }
            spans.push(Trained { message: answer.message, tokens: start..end });
        }
        let mask = paint(encoded.ids.len(), &spans, |message| messages.get(message).is_none_or(is_trained));
        let messages = spans
            .into_iter()
            .map(|span| MessageSpan { message: span.message, tokens: span.tokens })
            .collect();
        Ok(Masked { ids: encoded.ids, mask, messages })
    }
}

/// The first message with the generation prompt, then the raw text of the last, all of it trained on.
///
/// slime leaves out what stands between them without a word; here it is an error.
#[derive(Clone, Copy, Debug)]
pub struct DistillQwen;

impl MaskRule for DistillQwen {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError> {
        check_messages(tokenizer, messages, how)?;
        let [prompt, answer] = messages else {
            let role = messages.last().and_then(Message::role).unwrap_or_default().to_owned();
            return Err(MaskError::NotAPair { len: messages.len(), role });
        };
        let role = answer.role().unwrap_or_default().to_owned();
        if role != "assistant" {
            return Err(MaskError::NotAPair { len: messages.len(), role });
        }
        let Some(text) = answer.get("content").and_then(Value::as_str) else {
            return Err(MaskError::NotText { message: 1, role, found: "in parts".to_owned() });
        };
        let asking = Render { add_generation_prompt: true, ..*how };
        let prompt = tokenizer.render(std::slice::from_ref(prompt), &asking)?.text;
        let mut ids = tokenizer.encoder().encode(&prompt)?;
        let given = ids.len();
        tokenizer.encoder().encode_into(text, &mut ids)?;
        let mut mask = Runs::repeat(false, given);
        mask.push(is_trained(answer), ids.len() - given);
        let spans = [(0, 0..given), (1, given..ids.len())];
        let messages = spans.into_iter().map(|(message, tokens)| MessageSpan { message, tokens }).collect();
        Ok(Masked { ids, mask, messages })
    }
}
