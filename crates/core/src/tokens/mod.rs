//! From text to token ids and back.
//!
//! [`encode`] gives the ids that `tokenizers` gives, only sooner.

pub mod encode;

pub use encode::{AddedToken, Encoded, Encoder, EncoderError, Path};
