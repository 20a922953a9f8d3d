//! What of an answer can be told while its tokens still come.
//!
//! Nothing is told that may have to be taken back: not half a character, not what may become a stop, and not a special
//! token that may be the end of the answer. Other special tokens are part of the text: they are how a model writes its
//! thoughts and calls.

use rollyard_core::tokens::{Spelling, Tokenizer, begun};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Words {
    tokenizer: Arc<Tokenizer>,
    spelling: Spelling,
    stops: Vec<String>,
    /// Special tokens that nothing has followed yet.
    held: Vec<i32>,
    /// Decoded, but not told.
    pending: String,
}

impl Words {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>, stops: Vec<String>) -> Self {
        let spelling = Spelling::new(Arc::clone(&tokenizer), false);
        Self { tokenizer, spelling, stops, held: Vec::new(), pending: String::new() }
    }

    /// More tokens: what can be told now, which may be nothing.
    pub(crate) fn push(&mut self, tokens: &[i32]) -> String {
        for token in tokens {
            if self.is_special(*token) {
                self.held.push(*token);
                continue;
            }
            for token in self.held.drain(..).chain([*token]) {
                self.pending.extend(self.spelling.push(token));
            }
        }
        let limit = self.stops.iter().map(|stop| limit(&self.pending, stop)).min();
        let rest = self.pending.split_off(limit.unwrap_or(self.pending.len()));
        std::mem::replace(&mut self.pending, rest)
    }

    /// What is left to be told, and the stop text that ended the answer.
    pub(crate) fn finish(mut self) -> (String, Option<String>) {
        self.pending.push_str(&self.spelling.finish());
        let first = self.stops.iter().filter_map(|stop| Some((self.pending.find(stop.as_str())?, stop)));
        let Some((at, stop)) = first.min_by_key(|(at, _)| *at) else { return (self.pending, None) };
        let stop = stop.clone();
        self.pending.truncate(at);
        (self.pending, Some(stop))
    }

    fn is_special(&self, token: i32) -> bool {
        u32::try_from(token).is_ok_and(|id| self.tokenizer.encoder().is_special(id))
    }
}

/// How much may be told before a stop, or what may become one.
fn limit(text: &str, stop: &str) -> usize {
    text.find(stop).unwrap_or_else(|| begun(text, stop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tokenizer;
    use proptest::prelude::*;

    fn told(text: &str, stops: &[&str], ends: &str) -> (Vec<String>, String, Option<String>) {
        let tokenizer = tokenizer();
        let ids = tokenizer.encoder().encode(&format!("{text}{ends}")).unwrap();
        let mut words = Words::new(tokenizer, stops.iter().map(|stop| (*stop).to_owned()).collect());
        let pieces: Vec<String> = ids.iter().map(|id| words.push(&[*id as i32])).collect();
        let (rest, stop) = words.finish();
        let whole = pieces.concat() + &rest;
        (pieces, whole, stop)
    }

    #[test]
    fn the_end_token_is_not_told_and_a_stop_is_never_begun() {
        let (_, whole, stop) = told("Hello there, wörld 🌍.", &[], "<|im_end|>");
        assert_eq!((whole.as_str(), stop), ("Hello there, wörld 🌍.", None));
        let (pieces, whole, stop) = told("one\n\nObservation: x", &["\nObservation:"], "");
        assert_eq!((whole.as_str(), stop.as_deref()), ("one\n", Some("\nObservation:")));
        assert!(pieces.concat().len() <= whole.len());
        let (_, whole, stop) = told("one\nObserve", &["\nObservation:"], "<|im_end|>");
        assert_eq!((whole.as_str(), stop), ("one\nObserve", None));
    }

    proptest! {
        #[test]
        fn all_that_is_told_is_the_text(text in "[a-zäß🌍 \n]{0,60}", stop in "[a-z]{1,3}") {
            let (_, whole, found) = told(&text, &[stop.as_str()], "<|im_end|>");
            match text.split_once(stop.as_str()) {
                Some((before, _)) => prop_assert_eq!((whole.as_str(), found), (before, Some(stop))),
                None => prop_assert_eq!((whole, found), (text, None)),
            }
        }
    }
}
