//! Why a mask could not be made, with the place where it went wrong.

use crate::tokens::config::ConfigError;
use crate::tokens::encode::EncoderError;

#[derive(Debug, thiserror::Error)]
pub enum MaskError {
    #[error("there are no messages to make a mask of")]
    NoMessages,
    #[error("message {message} has no role")]
    NoRole { message: usize },
    #[error(
        "message {message} ({role}) has no content, and a template may print that as \"None\"; \
         give a string, \"\" for nothing"
    )]
    NoContent { message: usize, role: String },
    #[error(
        "message {message} ({role}) has content in parts, which this template cannot render; give a string"
    )]
    Parts { message: usize, role: String },
    #[error(
        "message {message} has the role {role:?}, and the template leaves it out: the model would never see it; \
         known to most templates are system, user, assistant and tool"
    )]
    LeftOut { message: usize, role: String },
    #[error("the mask type {name:?} is unknown; known are {}", .known.join(", "))]
    UnknownType { name: String, known: Vec<String> },
    #[error("the mask type {name:?} is taken")]
    Taken { name: String },
    #[error("{ids} token ids, but {mask} values in the mask")]
    Lengths { ids: usize, mask: usize },
    #[error(
        "the template has no generation prompt: rendering with and without one gives the same text {tail:?}"
    )]
    NoGenerationPrompt { tail: String },
    #[error(
        "message {message} ({role}): its rendering alone should {edge} {expected:?}, but does {found:?}; \
         this template is not made for per-message rendering, use the type \"auto\""
    )]
    Edge { message: usize, role: String, edge: &'static str, expected: String, found: String },
    #[error(
        "message {message} ({role}): the token {token:?} reaches over the boundary of text {before:?} and \
         {after:?} at byte {at}, so that what is given and what is generated cannot be told apart"
    )]
    Straddles { message: usize, role: String, token: String, before: String, after: String, at: usize },
    #[error(
        "message {message} (assistant) cannot be found in the rendering of the whole conversation: at byte \
         {at} the messages before it render as {alone:?}, but as {whole:?} in the whole; the template rewrites \
         earlier turns{hint}"
    )]
    Rewritten { message: usize, at: usize, alone: String, whole: String, hint: &'static str },
    #[error("message {message} (assistant) has no message before it that it could be the answer to")]
    Unprompted { message: usize },
    #[error(
        "the template marks {found} generated spans for {expected} assistant messages; \
         `step_loss_mask` cannot be matched to them"
    )]
    Generations { found: usize, expected: usize },
    #[error(
        "the type \"distill_qwen\" takes a prompt and an answer, but there are {len} messages, of which the \
         last is from {role}; use the type \"auto\""
    )]
    NotAPair { len: usize, role: String },
    #[error("message {message} ({role}): the content is {found}, but must be a string")]
    NotText { message: usize, role: String, found: String },
    #[error(
        "the tokens part from the template's own rendering of the whole conversation at token {at}: \
         {masked:?} here, {whole:?} there"
    )]
    NotWhole { at: usize, masked: String, whole: String },
    #[error(transparent)]
    Render(#[from] ConfigError),
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    /// A rule that is not ours gave up.
    #[error("{0}")]
    Custom(String),
}

/// At most 40 characters from the start, for messages.
pub(super) fn head(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// At most 40 characters from the end, for messages.
pub(super) fn tail(text: &str) -> String {
    match text.char_indices().rev().nth(39) {
        Some((cut, _)) if cut > 0 => format!("…{}", text.get(cut..).unwrap_or_default()),
        _ => text.to_owned(),
    }
}
