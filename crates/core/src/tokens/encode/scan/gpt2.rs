//! The pattern of GPT-2, which `ByteLevel` carries with it.
//!
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

use super::super::classes::{Classes, LETTER, NUMBER, OTHER, SPACE};
use super::{Scan, before_next_word};

pub(in super::super) struct Gpt2 {
    pub(in super::super) classes: &'static Classes,
}

impl Scan for Gpt2 {
    #[inline]
    fn piece_end(&mut self, text: &[u8], at: usize) -> usize {
        let classes = self.classes;
        if let [b'\'', rest @ ..] = text.get(at..).unwrap_or_default() {
            match rest {
                [b's' | b't' | b'm' | b'd', ..] => return at + 2,
                [b'r' | b'v', b'e', ..] | [b'l', b'l', ..] => return at + 3,
                _ => {}
            }
        }
        let first = classes.glyph(text, at);
        let spaced = text.get(at) == Some(&b' ');
        let start = if spaced { at + 1 } else { at };
        let head = if spaced { classes.glyph(text, start) } else { first };
        for mask in [LETTER, NUMBER, OTHER] {
            if head.is(mask) {
                return classes.run(text, start + head.len, mask);
            }
        }
        let mut last = at;
        let mut end = at + first.len;
        while classes.glyph(text, end).is(SPACE) {
            last = end;
            end += classes.glyph(text, end).len;
        }
        before_next_word(text, at, last, end)
    }
}
