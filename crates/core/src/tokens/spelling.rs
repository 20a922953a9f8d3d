//! The text of tokens that come one by one.
//!
//! A token may be half a character, and may read differently at the beginning of a text. So the tokens of the last step
//! are decoded once more with the new ones, and nothing is given out while it ends within a character.

use std::sync::Arc;

use super::Tokenizer;

#[derive(Debug)]
pub struct Spelling {
    tokenizer: Arc<Tokenizer>,
    /// Special tokens are left out.
    plain: bool,
    /// Those from the last step on.
    tokens: Vec<u32>,
    /// How many of these were given out.
    read: usize,
}

impl Spelling {
    pub fn new(tokenizer: Arc<Tokenizer>, plain: bool) -> Self {
        Self { tokenizer, plain, tokens: Vec::new(), read: 0 }
    }

    /// One more token. `None` while the tokens end within a character.
    pub fn push(&mut self, token: i32) -> Option<String> {
        self.tokens.extend(u32::try_from(token).ok());
        let new = self.unread().filter(|new| !new.ends_with('\u{fffd}'))?;
        self.tokens.drain(..self.read);
        self.read = self.tokens.len();
        Some(new)
    }

    /// What was held back, now that nothing more comes: half a character becomes a replacement character.
    pub fn finish(mut self) -> String {
        let rest = self.unread().unwrap_or_default();
        self.tokens.clear();
        rest
    }

    fn unread(&self) -> Option<String> {
        let encoder = self.tokenizer.encoder();
        let old = encoder.decode(self.tokens.get(..self.read)?, self.plain).ok()?;
        let all = encoder.decode(&self.tokens, self.plain).ok()?;
        all.strip_prefix(old.as_str()).map(str::to_owned)
    }
}

/// Where the text's end may be the beginning of `mark`; its length if it is not.
pub fn begun(text: &str, mark: &str) -> usize {
    let begins =
        mark.char_indices().rev().filter_map(|(len, _)| mark.get(..len)).filter(|begin| !begin.is_empty());
    let longest = begins.into_iter().find(|begin| text.ends_with(begin));
    longest.map_or(text.len(), |begin| text.len() - begin.len())
}
