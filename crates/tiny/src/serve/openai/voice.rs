//! One answer of a stream: its tokens wait until their text can be told.

use rollyard_core::tokens::Tokenizer;
use std::sync::Arc;

use super::super::speech::Speech;
use super::asked::Question;
use crate::engine::Sampled;

#[derive(Debug)]
pub(super) struct Voice {
    speech: Speech,
    untold: Vec<Sampled>,
    /// Tokens until now.
    pub(super) sampled: usize,
    /// Whether anything was told of it.
    pub(super) begun: bool,
    /// In characters, where the next token's text begins.
    pub(super) offset: usize,
}

/// What can be told: a text, and the tokens that came until then.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) tokens: Vec<Sampled>,
}

impl Voice {
    /// One for each answer.
    pub(super) fn all(question: &Question, count: usize, tokenizer: &Arc<Tokenizer>) -> Vec<Self> {
        let one = |_| Self {
            speech: Speech::new(Arc::clone(tokenizer), question.stops.clone(), question.calls),
            untold: Vec::new(),
            sampled: 0,
            begun: false,
            offset: 0,
        };
        (0..count).map(one).collect()
    }

    pub(super) fn heard(&mut self, token: Sampled) -> Option<Piece> {
        let text = self.speech.push(token.token);
        self.sampled += 1;
        self.untold.push(token);
        (!text.is_empty()).then(|| Piece { text, tokens: std::mem::take(&mut self.untold) })
    }

    /// What was not told yet, now that the whole is known.
    pub(super) fn rest(&mut self, whole: &str) -> Piece {
        Piece { text: self.speech.rest(whole), tokens: std::mem::take(&mut self.untold) }
    }
}
