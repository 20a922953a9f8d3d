//! Finds the added tokens of a text, which stand outside the vocabulary's merges.
//!
//! Chat templates are held together by them (`<|im_start|>`, `<think>`), and they are found in whatever a user
//! wrote too. The longest one at the leftmost place wins.

use aho_corasick::{AhoCorasick, MatchKind};

/// A token matched as a whole before the text is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedToken {
    pub content: String,
    pub id: u32,
    /// Left out by `decode` when special tokens are skipped.
    pub special: bool,
}

/// A stretch of text, in byte positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Text { start: usize, end: usize },
    Added { id: u32, end: usize },
}

/// One set of added tokens: those looked for before normalising, or those looked for after.
#[derive(Debug)]
pub(super) struct Finder {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
}

impl Finder {
    /// None if the tokens are too many or too long for an automaton.
    pub(super) fn new(tokens: &[(String, u32)]) -> Option<Finder> {
        let ids = tokens.iter().map(|(_, id)| *id).collect();
        if tokens.is_empty() {
            return Some(Finder { automaton: None, ids });
        }
        let contents = tokens.iter().map(|(content, _)| content);
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(contents).ok()?;
        Some(Finder { automaton: Some(automaton), ids })
    }

    /// Calls `visit` for every stretch of `text`, in order and without gaps.
    #[inline]
    pub(super) fn split(&self, text: &str, mut visit: impl FnMut(Part)) {
        let mut start = 0;
        for found in self.automaton.iter().flat_map(|automaton| automaton.find_iter(text)) {
            if start < found.start() {
                visit(Part::Text { start, end: found.start() });
            }
            let id = self.ids.get(found.pattern().as_usize()).copied().unwrap_or_default();
            visit(Part::Added { id, end: found.end() });
            start = found.end();
        }
        if start < text.len() {
            visit(Part::Text { start, end: text.len() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(tokens: &[&str], text: &str) -> Vec<Part> {
        let tokens: Vec<_> = tokens.iter().zip(0..).map(|(token, id)| (token.to_string(), id)).collect();
        let mut parts = Vec::new();
        Finder::new(&tokens).unwrap().split(text, |part| parts.push(part));
        parts
    }

    #[test]
    fn the_longest_token_at_the_leftmost_place_wins() {
        let found = parts(&["<a", "<a>", "a>b"], "x<a>b");
        assert_eq!(
            found,
            [Part::Text { start: 0, end: 1 }, Part::Added { id: 1, end: 4 }, Part::Text { start: 4, end: 5 }]
        );
    }

    #[test]
    fn half_a_token_is_text() {
        assert_eq!(parts(&["<|im_end|>"], "<|im_"), [Part::Text { start: 0, end: 5 }]);
        assert_eq!(parts(&["<|im_end|>"], ""), []);
    }
}
