//! Rules that render each message by itself and put the pieces together.
//!
//! `qwen` renders a message alone and takes off the default system prompt that the template adds.
//! `qwen3` renders it after a dummy user message, so that templates which treat the answer to the last
//! question otherwise treat every answer so; consecutive tool messages are one turn, as the template has it.
//! slime counts tokens to make these cuts; we compare text and check that a token ends there.

use std::ops::Range;

use super::cuts::{self, Places};
use super::error::{head, tail};
use super::probe::Probe;
use super::{
    DistillQwen, MaskError, MaskRule, Masked, MessageSpan, check_messages, is_assistant, is_trained, render,
};
use crate::rollout::Runs;
use crate::tokens::Tokenizer;
use crate::tokens::template::{Message, Render};

#[derive(Clone, Copy, Debug)]
pub struct Qwen;

#[derive(Clone, Copy, Debug)]
pub struct Qwen3;

/// A tokenizer that knows this is a distilled one, whatever the name says.
const DISTILLED: &str = "<｜Assistant｜>";

impl MaskRule for Qwen {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError> {
        if tokenizer.encoder().added_tokens().iter().any(|token| token.content == DISTILLED) {
            return DistillQwen.mask(tokenizer, messages, how);
        }
        check_messages(tokenizer, messages, how)?;
        let probe = Probe::of(tokenizer, how)?;
        let mut pieces = Pieces::new(tokenizer, &probe);
        for (nth, message) in messages.iter().enumerate() {
            let how = Render { tools: how.tools.filter(|_| nth == 0), ..*how };
            let text = render(tokenizer, std::slice::from_ref(message), &how)?.text;
            // A message that is not the system's comes after the default one; only the first keeps it.
            let prefix = if message.role() == Some("system") { "" } else { probe.system.as_str() };
            let kept = if nth == 0 { 0 } else { prefix.len() };
            let cut = Cut { text: &text, prefix, kept: kept..text.len() };
            pieces.push(nth, message, &cut)?;
        }
        Ok(pieces.masked)
    }
}

impl MaskRule for Qwen3 {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError> {
        check_messages(tokenizer, messages, how)?;
        let probe = Probe::of(tokenizer, how)?;
        let before = format!("{}{}", probe.system, probe.block);
        let mut pieces = Pieces::new(tokenizer, &probe);
        let mut rest = messages;
        while let Some((message, _)) = rest.split_first() {
            let nth = messages.len() - rest.len();
            let (turn, after) = rest.split_at(turn_len(rest));
            rest = after;
            if nth == 0 {
                let list: Vec<Message> = turn.iter().chain([&probe.dummy]).cloned().collect();
                let text = render(tokenizer, &list, how)?.text;
                let end = text.strip_suffix(&probe.block).map(str::len).ok_or_else(|| MaskError::Edge {
                    message: nth,
                    role: message.role().unwrap_or_default().to_owned(),
                    edge: "end with",
                    expected: tail(&probe.block),
                    found: tail(&text),
                })?;
                let prefix = if message.role() == Some("system") { "" } else { probe.system.as_str() };
                pieces.push(nth, message, &Cut { text: &text, prefix, kept: 0..end })?;
            } else {
                let list: Vec<Message> = [&probe.dummy].into_iter().chain(turn).cloned().collect();
                let text = render(tokenizer, &list, &Render { tools: None, ..*how })?.text;
                let cut = Cut { text: &text, prefix: &before, kept: before.len()..text.len() };
                pieces.push(nth, message, &cut)?;
            }
        }
        Ok(pieces.masked)
    }
}

/// How many of the messages form one turn: tool results in a row are one, anything else is by itself.
fn turn_len(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role() == Some("tool")).count().max(1)
}

/// The part of a rendering that is a message's own.
struct Cut<'t> {
    text: &'t str,
    /// What the rendering must begin with.
    prefix: &'t str,
    kept: Range<usize>,
}

/// The tokens put together so far.
struct Pieces<'a> {
    tokenizer: &'a Tokenizer,
    probe: &'a Probe,
    masked: Masked,
}

impl<'a> Pieces<'a> {
    fn new(tokenizer: &'a Tokenizer, probe: &'a Probe) -> Self {
        let masked = Masked { ids: Vec::new(), mask: Runs::default(), messages: Vec::new() };
        Self { tokenizer, probe, masked }
    }

    fn push(&mut self, nth: usize, message: &Message, cut: &Cut<'_>) -> Result<(), MaskError> {
        let role = || message.role().unwrap_or_default().to_owned();
        let begins = |expected: &str, found: &str| MaskError::Edge {
            message: nth,
            role: role(),
            edge: "begin with",
            expected: head(expected),
            found: head(found),
        };
        // A first message with tools has them in a system prompt of its own making.
        let is_prefixed = cut.text.starts_with(cut.prefix);
        if cut.kept.start > 0 && !is_prefixed {
            return Err(begins(cut.prefix, cut.text));
        }
        let answer = if is_assistant(message) {
            let own = cut.text.strip_prefix(cut.prefix).ok_or_else(|| begins(cut.prefix, cut.text))?;
            if !own.starts_with(&self.probe.generation) {
                return Err(begins(&self.probe.generation, own));
            }
            cut.prefix.len() + self.probe.generation.len()
        } else {
            cut.kept.end
        };
        let places = Places { start: cut.kept.start, answer, end: cut.kept.end };
        let encoder = self.tokenizer.encoder();
        let piece = cuts::piece(encoder, cut.text, places).map_err(|error| error.in_message(nth, &role()))?;
        let start = self.masked.ids.len();
        self.masked.mask.push(false, piece.given);
        self.masked.mask.push(is_trained(message), piece.ids.len() - piece.given);
        self.masked.ids.extend(piece.ids);
        self.masked.messages.push(MessageSpan { message: nth, tokens: start..self.masked.ids.len() });
        Ok(())
    }
}
