//! Messages and tools of one rollout, read once and rendered many times.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::template::{CivilTime, Message, MessageError, Render, Value, json};

#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// What to call it: its uid, or else its instance id.
    pub name: Option<String>,
    pub messages: Vec<Message>,
    /// A list of JSON schemas.
    pub tools: Option<Value>,
    /// Further variables of the template, such as `enable_thinking`.
    pub kwargs: Vec<(String, Value)>,
    /// What time a template is told that asks for it.
    pub now: Option<CivilTime>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    #[error("not a conversation: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("field \"messages\" is missing")]
    NoMessages,
    #[error("field \"messages\": {0}")]
    Messages(#[from] MessageError),
    #[error("field \"tools\" is {found}, but must be a list of JSON schemas")]
    Tools { found: String },
}

#[derive(Deserialize)]
struct WireConversation<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
}

impl Conversation {
    /// Reads `messages` and `tools` of an item's JSON; the order of keys is kept.
    pub fn from_item(json: &[u8]) -> Result<Self, ConversationError> {
        let wire: WireConversation<'_> = serde_json::from_slice(json)?;
        let messages = wire.messages.ok_or(ConversationError::NoMessages)?;
        let name = wire.uid.or(wire.instance_id).map(|name| name.get().trim_matches('"').to_owned());
        Ok(Self {
            name,
            messages: Message::list_from_str(messages.get())?,
            tools: wire.tools.map(|tools| read_tools(tools.get())).transpose()?.flatten(),
            ..Self::default()
        })
    }

    /// How to render it.
    pub fn how(&self) -> Render<'_> {
        Render { tools: self.tools.as_ref(), now: self.now, kwargs: &self.kwargs, ..Render::default() }
    }
}

fn read_tools(text: &str) -> Result<Option<Value>, ConversationError> {
    let wrong = || ConversationError::Tools { found: text.chars().take(60).collect() };
    let value = json::parse(text).map_err(|_| wrong())?;
    if value.is_none() {
        return Ok(None);
    }
    let is_list = value.kind() == minijinja::value::ValueKind::Seq;
    if is_list { Ok(Some(value)) } else { Err(wrong()) }
}
