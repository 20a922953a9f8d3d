//! What can go wrong between a template and its text.

use minijinja::{Error, ErrorKind};
use thiserror::Error as ThisError;

#[derive(Debug, ThisError)]
pub enum TemplateError {
    #[error("the chat template {name:?} has a syntax error in line {line}: {detail}; correct the template")]
    Syntax { name: String, line: usize, detail: String },
    /// The template's own words, from `raise_exception`.
    #[error("the chat template {name:?} refused the conversation: {words}")]
    Raised { name: String, words: String },
    #[error("the chat template {name:?} failed in line {line}: {detail}")]
    Failed { name: String, line: usize, detail: String },
    #[error("the chat template {name:?} did not finish within {fuel} steps; it may loop without end")]
    OutOfFuel { name: String, fuel: u64 },
    #[error("there are no messages to render; give at least one")]
    NoMessages,
    #[error("{what} {index} is not an object; give a list of JSON objects")]
    NotAnObject { what: &'static str, index: usize },
    #[error("{what} are not a list; give a list of JSON objects")]
    NotAList { what: &'static str },
    #[error(
        "the extra variable {name:?} is set by the render itself; rename it or use the render's own field"
    )]
    ReservedVariable { name: String },
    #[error("cannot continue the final message: {0}")]
    Continue(#[from] ContinueError),
}

#[derive(Debug, ThisError, PartialEq, Eq)]
pub enum ContinueError {
    #[error(
        "the final message has no \"{field}\" to continue; give it one, or add a generation prompt instead"
    )]
    NoField { field: String },
    #[error("the chat template does not read the field \"{field}\"; name one that it does")]
    FieldUnknown { field: String },
    #[error("there is no text in the final message; add a part of type text")]
    NoText,
    #[error(
        "continuing and a generation prompt exclude each other; \
         continue to go on with the final message, or add the prompt to start a new one"
    )]
    WithGenerationPrompt,
    #[error("the text does not contain the final message, the template drops or changes it: {message:?}")]
    NotRendered { message: String },
}

/// The name under which `raise_exception` passes its words through the engine.
#[derive(Debug, ThisError)]
#[error("{0}")]
pub(super) struct RaisedWords(pub(super) String);

impl TemplateError {
    pub(super) fn from_engine(name: &str, error: &Error, fuel: u64) -> Self {
        let (name, line) = (name.to_owned(), error.line().unwrap_or(0));
        if let Some(words) = find_words(error) {
            return Self::Raised { name, words };
        }
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        match error.kind() {
            ErrorKind::SyntaxError | ErrorKind::BadEscape => Self::Syntax { name, line, detail },
            ErrorKind::OutOfFuel => Self::OutOfFuel { name, fuel },
            _ => Self::Failed { name, line, detail },
        }
    }
}

/// An exception raised in a macro is wrapped once for every call on the way out.
fn find_words(error: &Error) -> Option<String> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(words) = inner.downcast_ref::<RaisedWords>() {
            return Some(words.0.clone());
        }
        source = inner.source();
    }
    None
}
