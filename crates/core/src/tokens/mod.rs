//! Conversations become token ids and loss masks, exactly as the model's own files say.
//!
//! [`config`] reads what a model folder says, [`template`] renders its chat template, [`encode`] turns text
//! into ids; a [`Tokenizer`] is the three together, and
//! [`Spelling`] is the way back while the tokens still come. [`mask`] finds the tokens that are trained on,
//! [`Masks`] puts it to work on whole items, and [`Drift`] compares tokens that were sampled with those that
//! their text would give.

pub mod config;
pub mod encode;
pub mod template;

mod model;
mod spares;
mod spelling;

pub mod mask;

mod conversation;
mod drift;
mod masks;

pub use config::ModelFiles;
pub use conversation::{Conversation, ConversationError};
pub use drift::{Drift, Region};
pub use masks::{ItemTokensError, Masks, in_order, retokenised};
pub use model::{Tokenizer, TokenizerError};
pub use spelling::{Spelling, begun};
