//! What an agent is told, whichever dialect it speaks.
//!
//! A stream begins with [`Begun`], goes on with one [`Spoken`] after the other, and has one [`Ended`] for each choice. An
//! [`Answer`] is the same at once.

/// Before the first token.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// Without the prefix that a dialect puts before it. The same for all choices.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// As the agent called it, or as we call it.
    pub model: String,
    pub prompt_tokens: usize,
    /// Of the prompt: tokens that the session had before.
    pub cached_tokens: usize,
}

/// Something that was said since the last time.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    /// From 0.
    pub choice: u32,
    pub pieces: Vec<Piece>,
    /// Only where log-probs were asked for.
    pub tokens: Vec<Spelled>,
}

/// Thoughts, words and calls, in the order they are said. Pieces are never taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Reasoning(String),
    Content(String),
    /// The arguments follow.
    CallBegun {
        index: u32,
        id: String,
        name: String,
    },
    /// More of the arguments, which are JSON when they are complete.
    CallArguments {
        index: u32,
        json: String,
    },
}

/// A token with its text, for log-probs.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelled {
    pub id: i32,
    pub text: String,
    pub logprob: f32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub choice: u32,
    pub stop: Stop,
    /// The stop text that ended the answer.
    pub stop_text: Option<String>,
    pub completion_tokens: usize,
    /// Of these, the thoughts.
    pub reasoning_tokens: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Stop,
    Length,
    ToolCalls,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub begun: Begun,
    pub choices: Vec<Choice>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub reasoning: Option<String>,
    pub content: String,
    pub calls: Vec<Call>,
    /// Only where log-probs were asked for.
    pub tokens: Vec<Spelled>,
    pub ended: Ended,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub arguments: String,
}
