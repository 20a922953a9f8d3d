//! One event of SGLang's stream.
//!
//! By default every event has the whole answer so far; a server that was started for it sends only what is new, and some
//! do the one with ids and the other with log-probs. `completion_tokens` counts from the beginning in either case, so
//! it tells how many are new, and the length of a list which of the two it is. The log-probs are what is read: they
//! have the ids beside them, while the list of ids may be a token ahead of the rest of its event.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::answer::{End, Flaw, Tokens, Version};
use super::super::stream::{Chunk, Text};
use super::{Finish, Triple, read_triples};

/// What the events of one answer brought so far.
#[derive(Debug, Default)]
pub(in super::super) struct Seen {
    tokens: usize,
    /// Whether each event has it all. Not known of the first one, where it makes no difference.
    is_whole: Option<bool>,
    /// Of the list of log-probs in the last event, without the bracket that closed it.
    list_bytes: usize,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    output_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    meta_info: Meta<'a>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    completion_tokens: Option<usize>,
    #[serde(borrow)]
    output_token_logprobs: Option<&'a RawValue>,
    finish_reason: Option<Finish>,
    #[serde(default)]
    weight_version: Version,
}

pub(in super::super) fn chunk(event: &[u8], seen: &mut Seen) -> Result<Chunk, Flaw> {
    let Event { text, output_ids, meta_info: meta } = serde_json::from_slice(event)?;
    let end = meta.finish_reason.map(Finish::end).transpose()?;
    let was = seen.tokens;
    let tokens = match (meta.output_token_logprobs, meta.completion_tokens) {
        // An interruption may come with wrong counts or with none. What it does not show is sampled again.
        (Some(list), Some(total)) if end == Some(End::Cut) => {
            seen.take(list.get(), total).unwrap_or_default()
        }
        (_, _) if end == Some(End::Cut) => Tokens::default(),
        (Some(list), Some(total)) => seen.take(list.get(), total)?,
        (None, Some(total)) if total == was => Tokens::default(),
        (Some(_), None) => return Err(Flaw::Bad("no `completion_tokens`".into())),
        (None, _) if output_ids.is_some() => {
            return Err(Flaw::NotExact { what: "log-probs", hint: "SGLang gives them to whoever asks" });
        }
        (None, _) => return Err(Flaw::NotExact { what: "token ids", hint: "does SGLang answer there?" }),
    };
    if matches!(end, Some(End::Done(_))) {
        check_ids(output_ids, &tokens, seen.tokens)?;
    }
    let text = match (text, seen.is_whole) {
        // The last event has it all again.
        (Some(_), Some(true)) if end.is_none() => None,
        (Some(text), Some(false)) => Some(Text::More(serde_json::from_str(text.get())?)),
        (Some(text), _) => Some(Text::Whole(serde_json::from_str(text.get())?)),
        (None, _) => None,
    };
    Ok(Chunk { tokens, text, end, version: meta.weight_version.0 })
}

impl Seen {
    /// The tokens that are new in a list, of an answer of `total` so far.
    fn take(&mut self, list: &str, total: usize) -> Result<Tokens, Flaw> {
        let Some(new) = total.checked_sub(self.tokens) else {
            return Err(Flaw::Bad(format!("{total} tokens, but {} came before", self.tokens)));
        };
        if new == 0 {
            // What has nothing new has nothing, or everything again.
            if self.tokens > 0 {
                self.is_whole.get_or_insert(list != "[]");
            }
            return Ok(Tokens::default());
        }
        let triples = match self.behind_the_last(list, new) {
            Some(triples) => triples,
            None => self.among_all(serde_json::from_str(list)?, new, total)?,
        };
        self.tokens = total;
        self.list_bytes = list.len().saturating_sub(1);
        read_triples(None, &triples)
    }

    /// A list that has everything begins as the one before did. A long answer is read again with each token of it,
    /// so what was read is jumped over.
    fn behind_the_last(&self, list: &str, new: usize) -> Option<Vec<Triple>> {
        if self.is_whole != Some(true) {
            return None;
        }
        let tail = list.get(self.list_bytes..)?.strip_prefix(',')?;
        let triples: Vec<Triple> = serde_json::from_str(&format!("[{tail}")).ok()?;
        (triples.len() == new).then_some(triples)
    }

    fn among_all(&mut self, mut triples: Vec<Triple>, new: usize, total: usize) -> Result<Vec<Triple>, Flaw> {
        let len = triples.len();
        if len == total {
            if self.tokens > 0 {
                self.is_whole = Some(true);
            }
            return Ok(triples.split_off(self.tokens));
        }
        if len == new {
            self.is_whole = Some(false);
            return Ok(triples);
        }
        Err(Flaw::Bad(format!("{len} log-probs, but of {total} tokens {new} are new")))
    }
}

/// Where the ids are listed alone too, both must agree.
fn check_ids(ids: Option<&RawValue>, new: &Tokens, total: usize) -> Result<(), Flaw> {
    let Some(ids) = ids else { return Ok(()) };
    let ids: Vec<i32> = serde_json::from_str(ids.get())?;
    if ids.len() != total && ids.len() != new.ids.len() {
        return Err(Flaw::Bad(format!("{} token ids, but {total} log-probs", ids.len())));
    }
    if !ids.ends_with(&new.ids) {
        return Err(Flaw::Bad("the ids are not those among the log-probs".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::StopReason;
    use std::fmt::Write;

    /// An event with lists from these tokens on.
    fn event(ids_from: usize, list_from: usize, to: usize, reason: &str) -> String {
        let ids: Vec<usize> = (ids_from..to).collect();
        let mut list = String::new();
        for id in list_from..to {
            let comma = if list.is_empty() { "" } else { ", " };
            write!(list, "{comma}[-0.{id}, {id}, null]").unwrap();
        }
        format!(
            r#"{{"text": "t{ids_from}-{to}", "output_ids": {ids:?}, "meta_info": {{"completion_tokens": {to},
            "output_token_logprobs": [{list}], "weight_version": "{to}", "finish_reason": {reason}}}}}"#
        )
    }

    #[test]
    fn what_is_new_is_found_whether_events_have_everything_or_not() {
        let steps = [(0, 1), (1, 2), (2, 5), (5, 5), (5, 11), (11, 12)];
        for (whole_ids, whole_list) in [(true, true), (false, false), (false, true)] {
            let mut seen = Seen::default();
            for (from, to) in steps {
                let reason = if to == 12 { r#"{"type": "stop"}"# } else { "null" };
                let from_or_0 = |whole| if whole { 0 } else { from };
                let event = event(from_or_0(whole_ids), from_or_0(whole_list), to, reason);
                let chunk = chunk(event.as_bytes(), &mut seen).unwrap();
                let ids: Vec<i32> = (from..to).map(|id| i32::try_from(id).unwrap()).collect();
                assert_eq!(chunk.tokens.ids, ids, "{event}");
                assert_eq!(chunk.version, Some(i32::try_from(to).unwrap()));
                assert_eq!(chunk.end, (to == 12).then_some(End::Done(StopReason::Stop)));
            }
        }
    }

    #[test]
    fn an_interruption_with_wrong_counts_takes_nothing_away() {
        let mut seen = Seen::default();
        chunk(event(0, 0, 3, "null").as_bytes(), &mut seen).unwrap();
        for last in [
            r#"{"text": "", "output_ids": [], "meta_info": {"finish_reason": {"type": "abort"}}}"#,
            r#"{"output_ids": [2], "meta_info": {"completion_tokens": 0, "output_token_logprobs": [],
                "finish_reason": {"type": "abort", "message": "Abort in waiting queue"}}}"#,
        ] {
            let chunk = chunk(last.as_bytes(), &mut seen).unwrap();
            assert_eq!((chunk.tokens, chunk.end), (Tokens::default(), Some(End::Cut)));
        }
    }

    #[test]
    fn counts_that_cannot_be_right_are_refused() {
        for (second, says) in [
            (event(0, 2, 6, "null"), "4 log-probs, but of 6 tokens 3 are new"),
            (event(0, 0, 2, "null"), "2 tokens, but 3 came before"),
            (event(2, 3, 6, r#"{"type": "stop"}"#), "4 token ids, but 6 log-probs"),
        ] {
            let mut seen = Seen::default();
            chunk(event(0, 0, 3, "null").as_bytes(), &mut seen).unwrap();
            match chunk(second.as_bytes(), &mut seen) {
                Err(Flaw::Bad(reason)) => assert_eq!(reason, says),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_abort_with_a_status_is_a_refusal() {
        let event = r#"{"meta_info": {"finish_reason": {"type": "abort", "message": "too long", "status_code": 400}}}"#;
        let flaw = chunk(event.as_bytes(), &mut Seen::default()).unwrap_err();
        assert_eq!(flaw, Flaw::Refused { status: 400, message: "too long".into() });
    }
}
