//! One line of the file: its tokens, and how they compare with its text.

use rollyard_core::rollout::{Rollout, Runs};
use rollyard_core::tokens::mask::MessageSpan;
use rollyard_core::tokens::template::{CivilTime, Message};
use rollyard_core::tokens::{Conversation, Drift, Masks, in_order};
use rollyard_core::wire::rollout::TokensError;
use serde::de::IgnoredAny;
use std::ops::Range;

/// A rollout that could be read.
pub(super) struct Line {
    /// What a reader would call it: its uid, or instance id.
    pub(super) name: Option<String>,
    pub(super) ids: Vec<u32>,
    pub(super) mask: Runs<bool>,
    /// Its parts, one behind the other, if it is shown.
    pub(super) turns: Vec<Turn>,
    pub(super) source: Source,
}

pub(super) struct Turn {
    pub(super) tokens: Range<usize>,
    /// What a reader would call it: a role, or how the tokens came about.
    pub(super) called: String,
    /// Which messages it is made of, where that is known.
    pub(super) messages: Range<usize>,
}

/// Where the tokens come from.
pub(super) enum Source {
    /// Made from its messages.
    Text,
    Sampled(Sampled),
}

/// Tokens that were sampled, and carried along.
pub(super) struct Sampled {
    /// How they differ from the text's, if the text can be rendered.
    pub(super) compared: Result<Compared, String>,
    /// Tokens that this model does not have.
    pub(super) unknown: usize,
}

pub(super) struct Compared {
    pub(super) drift: Drift,
    pub(super) rendered: Vec<u32>,
}

pub(super) struct Reader {
    pub(super) masks: Masks,
    /// What time a template is told.
    pub(super) now: CivilTime,
}

impl Reader {
    /// All of them, in order, on all cores. Rows that are `shown` get their turns too.
    pub(super) fn read_all(&self, texts: &[(u64, String)], shown: &[u64]) -> Vec<Result<Line, String>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        in_order(texts, threads, |(row, text)| self.read(text, shown.contains(row)))
    }

    fn read(&self, text: &str, is_shown: bool) -> Result<Line, String> {
        let conversation = Conversation::from_item(text.as_bytes())
            .map(|talk| Conversation { now: Some(self.now), ..talk })
            .map_err(|error| error.to_string());
        match rollyard_core::wire::rollout::decode(text.as_bytes()) {
            Ok(rollout) => Ok(self.of_sampled(&rollout, conversation)),
            Err(TokensError::Absent) => self.of_text(&conversation?, is_shown),
            Err(error) => Err(not_json(text).unwrap_or_else(|| error.to_string())),
        }
    }

    fn of_text(&self, conversation: &Conversation, is_shown: bool) -> Result<Line, String> {
        let masked = self.masks.mask(conversation).map_err(|error| error.to_string())?;
        // Finding the turns renders every message again, which counting does not need.
        let turns = if is_shown {
            turns(&conversation.messages, &self.masks.turns(conversation, &masked))
        } else {
            Vec::new()
        };
        Ok(Line {
            name: conversation.name.clone(),
            turns,
            ids: masked.ids,
            mask: masked.mask,
            source: Source::Text,
        })
    }

    fn of_sampled(&self, rollout: &Rollout, conversation: Result<Conversation, String>) -> Line {
        let ids: Vec<u32> = rollout.tokens().iter().map(|id| id.unsigned_abs()).collect();
        let mut mask = Runs::repeat(false, rollout.prompt_len());
        for (span, sampled) in rollout.sampled().spans() {
            mask.push(sampled, span.len());
        }
        let turns = mask.spans().map(|(tokens, sampled)| {
            let called = if sampled { "sampled" } else { "given" }.to_owned();
            Turn { tokens, called, messages: 0..0 }
        });
        let turns = turns.collect();
        let encoder = self.masks.tokenizer.encoder();
        let unknown = ids.iter().filter(|id| encoder.id_to_token(**id).is_none()).count();
        let name = conversation.as_ref().ok().and_then(|conversation| conversation.name.clone());
        let compared = conversation.and_then(|conversation| {
            let compared = self.masks.drift(&conversation, &ids).map_err(|error| error.to_string());
            compared.map(|(drift, rendered)| Compared { drift, rendered })
        });
        Line { name, turns, ids, mask, source: Source::Sampled(Sampled { compared, unknown }) }
    }
}

impl Line {
    pub(super) fn trained(&self) -> usize {
        self.trained_in(&(0..self.ids.len()))
    }

    /// How many of these tokens are trained on.
    pub(super) fn trained_in(&self, tokens: &Range<usize>) -> usize {
        let spans = self.mask.spans().filter(|(_, on)| *on);
        spans.map(|(span, _)| span.end.min(tokens.end).saturating_sub(span.start.max(tokens.start))).sum()
    }
}

/// The turns with the roles of their messages. A turn goes on until the next one's first message.
fn turns(messages: &[Message], spans: &[MessageSpan]) -> Vec<Turn> {
    let ends = spans.iter().skip(1).map(|next| next.message).chain([messages.len()]);
    spans
        .iter()
        .zip(ends)
        .map(|(span, end)| {
            let within = span.message..end.max(span.message + 1);
            let mut roles: Vec<&str> = messages
                .get(within.clone())
                .unwrap_or_default()
                .iter()
                .map(|message| message.role().unwrap_or("message"))
                .collect();
            roles.dedup();
            Turn { tokens: span.tokens.clone(), called: roles.join(", "), messages: within }
        })
        .collect()
}

/// Why the line is not JSON at all, without the line number of a parser that saw nothing else.
fn not_json(text: &str) -> Option<String> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    if error.is_eof() {
        return Some(format!(
            "the JSON ends in the middle, after {} bytes; was it fully written?",
            text.len()
        ));
    }
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Some(format!("not JSON: {reason} at column {}", error.column()))
}
