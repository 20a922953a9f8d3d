//! One rollout out of a line that somebody else wrote.
//!
//! Files come in the viewer's format, as our own archive, as yard items, dumps, verl's and slime's files and traces of
//! prime-rl, and none of them keeps to its format. Nothing here fails: what is not understood is kept as it is,
//! counted and shown raw.
//!
//! [`json`] reads a row, [`shape`] finds the conversation in it and [`reasoning`] the thoughts in an answer;
//! [`body`] gives all of it to a reader, [`summary`] what the catalog keeps, and [`identity`] its name. [`detect`]
//! finds signs that a reward was not won by the task.

mod body;
mod detect;
mod extra;
mod fields;
pub mod identity;
pub mod json;
pub(crate) mod list;
mod place;
mod reasoning;
mod repetition;
mod shape;
mod summary;
pub(crate) mod table;
mod when;

pub use body::{Body, Piece, Rollout};
pub use detect::{Detection, Span};
pub use place::Place;
pub use summary::{Summarizer, Summary};
pub use when::seconds;

/// Who says something in a rollout, as search and the reader tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    System,
    User,
    Assistant,
    Reasoning,
    ToolCall,
    ToolResult,
}

impl Channel {
    pub const ALL: [Self; 6] =
        [Self::System, Self::User, Self::Assistant, Self::Reasoning, Self::ToolCall, Self::ToolResult];

    /// The same on every surface.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}
