//! Chat templates, rendered to the byte as transformers' `apply_chat_template` renders them.
//!
//! A model was trained on the text its template makes; one space more and it reads something it never saw.
//! So the template runs here in an engine for Jinja that is bent to Python's ways where the two differ:
//! [`value`] and `python` for data and how it prints, `strings` and `methods` for what can be called on it,
//! `filters` for the rest, and `source` for the syntax. `docs/decisions/005-templates.md` says why this engine.
//!
//! A [`ChatTemplate`] is compiled once and shared; a [`Message`] is converted once and rendered in many lists.

mod continuation;
mod date;
mod error;
mod filters;
mod generation;
pub mod json;
mod message;
mod methods;
mod python;
mod render;
mod source;
mod strings;
mod tojson;
pub mod value;

pub use date::CivilTime;
pub use error::{ContinueError, TemplateError};
pub use message::{Message, MessageError, plain};
pub use minijinja::Value;
pub use render::{ChatTemplate, Limits, Render, Rendered};
