//! Puts a streamed answer together, event by event.
//!
//! An event brings what was sampled since the last one, and the last one says why it ended. Behind it there may be counts,
//! and `[DONE]`.

use serde::Deserialize;

use super::answer::{End, Flaw, Piece, Tokens};
use super::config::Dialect;
use super::events::EventReader;
use super::{sglang, vllm};

/// Behind the last event.
const DONE: &[u8] = b"[DONE]";

/// What one event brings.
#[derive(Debug, PartialEq)]
pub(super) struct Chunk {
    /// Those that no event had before.
    pub(super) tokens: Tokens,
    pub(super) text: Option<Text>,
    /// `None` while it goes on.
    pub(super) end: Option<End>,
    pub(super) version: Option<i32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    More(String),
    Whole(String),
}

/// The answer to one request, as far as it was received.
#[derive(Debug)]
pub(super) struct Hearing {
    dialect: Dialect,
    events: EventReader,
    seen: sglang::Seen,
    said: Said,
}

#[derive(Debug, Default)]
struct Said {
    text: String,
    end: Option<End>,
    is_done: bool,
}

impl Hearing {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, events: EventReader::default(), seen: sglang::Seen::default(), said: Said::default() }
    }

    /// Tells what these bytes bring: tokens, and the version that the engine says they have.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        mut tell: impl FnMut(Tokens, Option<i32>) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        let Self { dialect, events, seen, said } = self;
        events.read(bytes, |event| {
            if event == DONE {
                said.is_done = true;
                return Ok(());
            }
            if said.end.is_some() {
                return Ok(());
            }
            let chunk = match dialect {
                Dialect::Sglang => sglang::chunk(event, seen),
                Dialect::Vllm | Dialect::Openai => vllm::chunk(event),
            };
            let Chunk { tokens, text, end, version } =
                chunk.map_err(|flaw| refusal(event).unwrap_or(flaw))?;
            match text {
                Some(Text::More(more)) => said.text.push_str(&more),
                Some(Text::Whole(text)) => said.text = text,
                None => {}
            }
            said.end = end;
            if tokens.ids.is_empty() { Ok(()) } else { tell(tokens, version) }
        })
    }

    /// Why it ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        self.said.end
    }

    /// There is nothing more to come.
    pub(super) fn is_done(&self) -> bool {
        self.said.is_done
    }

    pub(super) fn into_text(self) -> String {
        self.said.text
    }
}

/// What an engine says when it fails in the middle: its status was sent long ago.
fn refusal(event: &[u8]) -> Option<Flaw> {
    #[derive(Deserialize)]
    struct Failed {
        error: Reason,
    }
    #[derive(Deserialize)]
    struct Reason {
        message: String,
        #[serde(default)]
        code: Option<u16>,
    }
    let Failed { error: Reason { message, code } } = serde_json::from_slice(event).ok()?;
    // SGLang gives no code with what is the client's fault.
    Some(Flaw::Refused { status: code.unwrap_or(400), message })
}

/// Reads a streamed answer to a request in token ids, cut into these pieces, as the client does.
pub fn read_stream(dialect: Dialect, pieces: &[&[u8]]) -> Result<Piece, Flaw> {
    let mut hearing = Hearing::new(dialect);
    let mut all = Tokens::default();
    let mut last = None;
    for piece in pieces {
        hearing.read(piece, |tokens, version| {
            all.ids.extend(tokens.ids);
            all.logprobs.extend(tokens.logprobs);
            last = version.or(last);
            Ok(())
        })?;
    }
    let end = hearing.end().ok_or_else(|| Flaw::Bad("no finish reason".into()))?;
    Ok(Piece { tokens: Some(all), text: Some(hearing.into_text()), end, version: last })
}
