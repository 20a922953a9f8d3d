//! One line of the file: its tokens, and how they compare with its text.

use rollyard_core::rollout::{Rollout, Runs};
use rollyard_core::tokens::template::{CivilTime, Message};
use rollyard_core::tokens::{Conversation, ConversationError, Drift, Masks};
use rollyard_core::wire::rollout::TokensError;

/// A rollout that could be read.
pub(super) struct Line {
    /// What a reader would call it: its uid, or instance id.
    pub(super) name: Option<String>,
    pub(super) ids: Vec<u32>,
    pub(super) mask: Runs<bool>,
    /// Where turns begin: a token, and what to call the turn.
    pub(super) turns: Vec<(usize, String)>,
    pub(super) source: Source,
}

/// Where the tokens come from.
pub(super) enum Source {
    /// Made from its messages.
    Text,
    /// Sampled, and carried along; with how they differ from the text's, if the text can be rendered.
    Sampled(Result<Compared, String>),
}

pub(super) struct Compared {
    pub(super) drift: Drift,
    pub(super) rendered: Vec<u32>,
}

impl Line {
    pub(super) fn read(text: &str, masks: &Masks, now: CivilTime) -> Result<Self, String> {
        let say = |error: ConversationError| error.to_string();
        let conversation = Conversation::from_item(text.as_bytes());
        let conversation = conversation.map(|talk| Conversation { now: Some(now), ..talk });
        match rollyard_core::wire::rollout::decode(text.as_bytes()) {
            Ok(rollout) => Ok(Self::of_sampled(&rollout, conversation.map_err(say), masks)),
            Err(TokensError::Absent) => Self::of_text(&conversation.map_err(say)?, masks),
            Err(error) => Err(error.to_string()),
        }
    }

    fn of_text(conversation: &Conversation, masks: &Masks) -> Result<Self, String> {
        let masked = masks.mask(conversation).map_err(|error| error.to_string())?;
        let turns = masks.turns(conversation, &masked);
        Ok(Self {
            name: conversation.name.clone(),
            turns: turns
                .into_iter()
                .map(|turn| (turn.tokens.start, called(&conversation.messages, turn.message)))
                .collect(),
            ids: masked.ids,
            mask: masked.mask,
            source: Source::Text,
        })
    }

    fn of_sampled(rollout: &Rollout, conversation: Result<Conversation, String>, masks: &Masks) -> Self {
        let ids: Vec<u32> = rollout.tokens().iter().map(|id| id.unsigned_abs()).collect();
        let mut mask = Runs::repeat(false, rollout.prompt_len());
        for (span, sampled) in rollout.sampled().spans() {
            mask.push(sampled, span.len());
        }
        let turns = rollout.turns().into_iter().flat_map(|turn| {
            let given = (!turn.given.is_empty()).then(|| (turn.given.start, "given".to_owned()));
            given.into_iter().chain([(turn.sampled.start, "sampled".to_owned())])
        });
        let name = conversation.as_ref().ok().and_then(|conversation| conversation.name.clone());
        let compared = conversation.and_then(|conversation| {
            let compared = masks.drift(&conversation, &ids).map_err(|error| error.to_string());
            compared.map(|(drift, rendered)| Compared { drift, rendered })
        });
        Self { name, turns: turns.collect(), ids, mask, source: Source::Sampled(compared) }
    }

    pub(super) fn trained(&self) -> usize {
        self.mask.spans().filter(|(_, on)| *on).map(|(span, _)| span.len()).sum()
    }
}

/// What to call the turn that a message begins.
fn called(messages: &[Message], message: usize) -> String {
    let role = messages.get(message).and_then(Message::role).unwrap_or("message");
    format!("{role} ({message})")
}
