//! What stands between an answer and the next one, without reading the whole conversation again.
//!
//! [`Place`] proves a tail by rendering everything that was said. In a conversation of two hundred turns this costs two
//! hundred times as much as in its first. But templates look back no further than a few messages, so the same proof on
//! a *window* (the system message, the last question, the answer, what is new) gives the same tail. Two things keep
//! this honest. Where thoughts may be dropped because somebody asks anew, the whole is rendered: a window may not hold
//! the thought in question. And in the turns 1, 2, 4, 8 … of a conversation both are done and compared; a template for
//! which they differ is never again believed by its window.

use rollyard_engine::episode::EpisodeError;
use rollyard_engine::workflow::render::Renderer;
use rollyard_engine::workflow::tail::{Place, Tail};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::memory::{Known, Role};
use super::tree::Tree;
use super::turn::TurnNo;

/// What was found out about a template, and how often it was looked at.
#[derive(Debug, Default)]
pub struct Continuity {
    distrusts_windows: AtomicBool,
    windows: AtomicU64,
    proofs: AtomicU64,
    differences: AtomicU64,
}

/// For people: how the boundaries of turns were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ContinuityCounts {
    /// Tails that were found with a few messages.
    pub windows: u64,
    /// Tails that were proven with the whole conversation.
    pub proofs: u64,
    /// Times when the two differed. The proof counts then.
    pub differences: u64,
}

/// A conversation that goes on behind an answer.
#[derive(Debug)]
pub struct Next<'a> {
    pub renderer: &'a Renderer,
    pub tree: &'a Tree,
    pub after: TurnNo,
    pub new: &'a [Arc<Known>],
    /// Thoughts stay in the tokens even where the template would drop them.
    pub keeps_thoughts: bool,
}

/// How it goes on.
#[derive(Debug)]
pub struct Found {
    pub tail: Tail,
    /// The template would have dropped thoughts that are in the tokens.
    pub keeps_thoughts: bool,
}

impl Continuity {
    /// Renders every conversation whole.
    pub fn of_wholes() -> Self {
        Self { distrusts_windows: AtomicBool::new(true), ..Self::default() }
    }

    pub fn counts(&self) -> ContinuityCounts {
        ContinuityCounts {
            windows: self.windows.load(Ordering::Relaxed),
            proofs: self.proofs.load(Ordering::Relaxed),
            differences: self.differences.load(Ordering::Relaxed),
        }
    }

    /// The tail, or `None` if the template writes what was said before differently now.
    pub fn tail(&self, next: &Next<'_>) -> Result<Option<Found>, EpisodeError> {
        let Some(answer) = Answer::read(next)? else { return Ok(None) };
        let chain = next.tree.chain(next.after);
        let must_prove = self.distrusts_windows.load(Ordering::Relaxed)
            || answer.may_lose_thoughts(next, &chain)
            || is_unusual(next, &chain);
        let seen = match must_prove {
            true => None,
            false => answer.tail_after(next, &window(next.tree, &chain))?,
        };
        if seen.is_some() && !chain.len().is_power_of_two() {
            self.windows.fetch_add(1, Ordering::Relaxed);
            return Ok(seen.map(|tail| Found { tail, keeps_thoughts: false }));
        }
        self.proofs.fetch_add(1, Ordering::Relaxed);
        let before: Vec<&RawValue> =
            next.tree.conversation(next.after).into_iter().map(|message| &*message.json).collect();
        let proven = answer.tail_after(next, &before)?;
        let differs = seen
            .as_ref()
            .is_some_and(|window| proven.as_ref().is_none_or(|proven| proven.tokens != window.tokens));
        if differs {
            self.differences.fetch_add(1, Ordering::Relaxed);
            self.distrusts_windows.store(true, Ordering::Relaxed);
            tracing::warn!(
                "a chat template looks further back than a window: conversations are rendered whole"
            );
        }
        if let Some(tail) = proven {
            return Ok(Some(Found { tail, keeps_thoughts: false }));
        }
        if !next.keeps_thoughts {
            return Ok(None);
        }
        let kept = answer.without_thoughts().tail_after(next, &window(next.tree, &chain))?;
        Ok(kept.map(|tail| Found { tail, keeps_thoughts: true }))
    }
}

/// An answer in the forms that a template may write.
struct Answer<'a> {
    sampled: &'a [i32],
    text: String,
    message: Box<RawValue>,
    plain: Box<RawValue>,
    thinks: bool,
}

impl<'a> Answer<'a> {
    fn read(next: &Next<'a>) -> Result<Option<Self>, EpisodeError> {
        let Some(turn) = next.tree.get(next.after) else { return Ok(None) };
        let special = turn.sampled.iter().rev().take_while(|id| next.renderer.is_special(**id)).count();
        let spoken = turn.sampled.get(..turn.sampled.len() - special).unwrap_or_default();
        let text = next.renderer.decode(spoken)?;
        let plain = plain(&text);
        let (message, thinks) = (turn.answer.json.clone(), turn.answer.thinks || text.contains("</think>"));
        Ok(Some(Self { sampled: &turn.sampled, text, message, plain, thinks }))
    }

    /// A new question may make the template drop any thought of the conversation.
    fn may_lose_thoughts(&self, next: &Next<'_>, chain: &[TurnNo]) -> bool {
        let asks_anew = next.new.iter().any(|message| message.role != Role::Tool);
        let thought = |no: &TurnNo| {
            let turn = next.tree.get(*no);
            turn.is_some_and(|turn| turn.answer.thinks || turn.facts.reasoning_tokens > 0)
        };
        asks_anew && (self.thinks || chain.iter().any(thought))
    }

    fn tail_after(&self, next: &Next<'_>, before: &[&RawValue]) -> Result<Option<Tail>, EpisodeError> {
        let Ok(asked) = next.renderer.asked(before) else { return Ok(None) };
        let new: Vec<&RawValue> = next.new.iter().map(|message| &*message.json).collect();
        let place = Place {
            renderer: next.renderer,
            before,
            asked: &asked,
            sampled: self.sampled,
            text: &self.text,
            new: &new,
        };
        if let Ok(tail) = place.tail(&self.message)? {
            return Ok(Some(tail));
        }
        Ok(place.tail(&self.plain)?.ok())
    }

    /// As if it had been said without thinking.
    fn without_thoughts(self) -> Self {
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(self.message.get()).unwrap_or_default();
        for name in ["reasoning_content", "reasoning", "thinking"] {
            fields.remove(name);
        }
        let message = to_raw_value(&fields).expect("fields are JSON");
        let text = match self.text.rsplit_once("</think>") {
            Some((_, said)) => said.trim_start().to_owned(),
            None => self.text,
        };
        Self { plain: plain(&text), text, message, ..self }
    }
}

fn plain(text: &str) -> Box<RawValue> {
    to_raw_value(&json!({"role": "assistant", "content": text})).expect("two texts are JSON")
}

/// Two answers in a row, or an answer of the agent's own: templates write the last answer of a conversation
/// differently, and a window does not show which one was the last.
fn is_unusual(next: &Next<'_>, chain: &[TurnNo]) -> bool {
    let odd = |messages: &[Arc<Known>]| {
        messages.is_empty() || messages.iter().any(|message| message.role == Role::Assistant)
    };
    odd(next.new) || chain.iter().filter_map(|no| next.tree.get(*no)).any(|turn| odd(&turn.messages))
}

/// The system message, and the last question before the answer.
fn window<'a>(tree: &'a Tree, chain: &[TurnNo]) -> Vec<&'a RawValue> {
    let first = chain.first().and_then(|no| tree.get(*no)).and_then(|turn| turn.messages.first());
    let system = first.filter(|message| message.role == Role::System);
    let question = chain.iter().rev().find_map(|no| {
        let messages = &tree.get(*no)?.messages;
        messages.iter().rev().find(|message| message.role == Role::User)
    });
    system.into_iter().chain(question).map(|message| &*message.json).collect()
}
