//! The places of a decoder's texts, and what is refused before any of them is touched.

use super::decoder::{DecoderError, Feed, SlotId};

/// What is remembered of each text, by slot; a place that is free has `None`.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    texts: Vec<Option<T>>,
}

/// How much a remembered text has been fed.
pub(crate) trait Remembered: Default {
    fn tokens(&self) -> usize;
}

impl<T: Remembered> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { texts: Vec::new() }
    }

    pub(crate) fn begin(&mut self) -> SlotId {
        let free = self.texts.iter().position(Option::is_none).unwrap_or(self.texts.len());
        if free == self.texts.len() {
            self.texts.push(None);
        }
        if let Some(slot) = self.texts.get_mut(free) {
            *slot = Some(T::default());
        }
        SlotId(free)
    }

    pub(crate) fn end(&mut self, slot: SlotId) {
        if let Some(slot) = self.texts.get_mut(slot.0) {
            *slot = None;
        }
    }

    pub(crate) fn get(&self, slot: SlotId) -> Option<&T> {
        self.texts.get(slot.0).and_then(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, slot: SlotId) -> Option<&mut T> {
        self.texts.get_mut(slot.0).and_then(Option::as_mut)
    }

    pub(crate) fn forget_all(&mut self) {
        for text in self.texts.iter_mut().flatten() {
            *text = T::default();
        }
    }

    /// Tokens that the text in this place has been fed.
    pub(crate) fn tokens(&self, slot: SlotId) -> Result<usize, DecoderError> {
        self.get(slot).map(T::tokens).ok_or_else(|| DecoderError::Model(format!("no text in {slot:?}")))
    }

    /// Whether the model knows every token and no text grows beyond the context.
    pub(crate) fn check(
        &self,
        feeds: &[Feed<'_>],
        vocabulary: usize,
        context: usize,
    ) -> Result<(), DecoderError> {
        for feed in feeds {
            let known = |token: i32| usize::try_from(token).is_ok_and(|token| token < vocabulary);
            if let Some(token) = feed.tokens.iter().find(|token| !known(**token)) {
                return Err(DecoderError::NoSuchToken { token: *token, vocabulary });
            }
            let tokens = self.tokens(feed.slot)? + feed.tokens.len();
            if tokens > context {
                return Err(DecoderError::TooLong { tokens, context });
            }
        }
        Ok(())
    }
}
