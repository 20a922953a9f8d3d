//! The pattern of GPT-4, Llama 3 and Qwen.
//!
//! `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

use super::super::classes::{Bits, Classes, LEAD, LETTER, MARK, NEWLINE, NUMBER, OTHER, OTHER_BUT_MARK};
use super::{Scan, contraction_end, number_end, spaces_end};

/// With `MARKS`, words hold `\p{M}` too and symbols do not.
pub(in super::super) struct Words<const DIGITS_MAX: usize, const MARKS: bool> {
    pub(in super::super) classes: &'static Classes,
}

impl<const DIGITS_MAX: usize, const MARKS: bool> Words<DIGITS_MAX, MARKS> {
    const WORD: Bits = if MARKS { LETTER | MARK } else { LETTER };
    const SYMBOL: Bits = if MARKS { OTHER_BUT_MARK } else { OTHER };
}

impl<const DIGITS_MAX: usize, const MARKS: bool> Scan for Words<DIGITS_MAX, MARKS> {
    #[inline]
    fn piece_end(&mut self, text: &[u8], at: usize) -> usize {
        let classes = self.classes;
        let first = classes.glyph(text, at);
        let next_at = at + first.len;
        if first.is(Self::WORD) {
            return classes.run(text, next_at, Self::WORD);
        }
        let byte = text.get(at).copied();
        if byte == Some(b'\'')
            && let Some(end) = contraction_end(text, at)
        {
            return end;
        }
        if first.is(NUMBER) {
            return number_end(classes, text, at, DIGITS_MAX);
        }
        let next = classes.glyph(text, next_at);
        if first.is(LEAD) && next.is(Self::WORD) {
            return classes.run(text, next_at + next.len, Self::WORD);
        }
        if first.is(Self::SYMBOL) || (byte == Some(b' ') && next.is(Self::SYMBOL)) {
            let end = classes.run(text, next_at, Self::SYMBOL);
            return classes.run(text, end, NEWLINE);
        }
        spaces_end(classes, text, at)
    }
}
