//! What a server samples from: a model that goes on with many texts at once.

use std::fmt;

/// The place of one text in a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub usize);

/// The next tokens of one text.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    pub slot: SlotId,
    /// At least one.
    pub tokens: &'a [i32],
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecoderError {
    #[error("token {token} is none of the model's, which has {vocabulary}")]
    NoSuchToken { token: i32, vocabulary: usize },
    #[error("a text of {tokens} tokens is longer than the model's context of {context}")]
    TooLong { tokens: usize, context: usize },
    #[error("the model failed: {0}")]
    Model(String),
}

/// A model with a cache for each of its texts.
pub trait Decoder: Send + fmt::Debug {
    /// Tokens that it knows.
    fn vocabulary(&self) -> usize;

    /// Tokens of the longest text.
    fn context(&self) -> usize;

    /// A place for a new text.
    fn begin(&mut self) -> SlotId;

    /// The text is done, and its place free.
    fn end(&mut self, slot: SlotId);

    /// Reads on in every text named, each at most once, and gives the logits behind the last token of each: a row of
    /// [`Decoder::vocabulary`] for every feed, in their order. What comes out for a text does not depend on the others.
    fn forward(&mut self, feeds: &[Feed<'_>]) -> Result<Vec<f32>, DecoderError>;
}
