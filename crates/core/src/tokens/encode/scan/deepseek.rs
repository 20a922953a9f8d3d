//! The three cuts of DeepSeek V3 and R1, made in one pass.
//!
//! First `\p{N}{1,3}`, then `[一-龥぀-ゟ゠-ヿ]+`, then within what lies between them
//! `[!-~ without letters and digits][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`.
//! The last does not match everything: what it passes over stays together as a piece.

use super::super::classes::{Classes, HAN, LEAD_BUT_SYMBOL, LETTER, MARK, NEWLINE, NUMBER, SPACE, SYMBOL};
use super::{Scan, number_end, spaces_end};

const DIGITS_MAX: usize = 3;
const WORD: u16 = LETTER | MARK;

pub(in super::super) struct DeepSeek {
    classes: &'static Classes,
    /// Where the second cut ends: the third does not look beyond.
    part_end: usize,
}

impl Scan for DeepSeek {
    #[inline]
    fn piece_end(&mut self, text: &[u8], at: usize) -> usize {
        if at >= self.part_end {
            let first = self.classes.glyph(text, at);
            if first.is(NUMBER) {
                self.part_end = number_end(self.classes, text, at, DIGITS_MAX);
                return self.part_end;
            }
            self.part_end = self.find_part_end(text, at, first.is(HAN));
        }
        let part = text.get(..self.part_end).unwrap_or(text);
        self.match_end(part, at).unwrap_or_else(|| self.gap_end(part, at))
    }
}

impl DeepSeek {
    pub(in super::super) fn new(classes: &'static Classes) -> DeepSeek {
        DeepSeek { classes, part_end: 0 }
    }

    #[inline]
    fn find_part_end(&self, text: &[u8], at: usize, han: bool) -> usize {
        if han {
            return self.classes.run(text, at, HAN);
        }
        let mut end = at;
        loop {
            let glyph = self.classes.glyph(text, end);
            if glyph.len == 0 || glyph.is(NUMBER | HAN) {
                return end;
            }
            end += glyph.len;
        }
    }

    /// Where the match ends that begins at `at`, if one does.
    #[inline]
    fn match_end(&self, part: &[u8], at: usize) -> Option<usize> {
        let classes = self.classes;
        let first = classes.glyph(part, at);
        let next_at = at + first.len;
        let byte = part.get(at).copied().unwrap_or_default();
        if byte.is_ascii_punctuation() {
            let letters =
                part.get(next_at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_alphabetic());
            let count = letters.count();
            if count > 0 {
                return Some(next_at + count);
            }
        }
        let next = classes.glyph(part, next_at);
        if first.is(WORD) || (first.is(LEAD_BUT_SYMBOL) && next.is(WORD)) {
            return Some(classes.run(part, next_at, WORD));
        }
        if first.is(SYMBOL) || (byte == b' ' && next.is(SYMBOL)) {
            let end = classes.run(part, next_at, SYMBOL);
            return Some(classes.run(part, end, NEWLINE));
        }
        first.is(SPACE).then(|| spaces_end(classes, part, at))
    }

    fn gap_end(&self, part: &[u8], at: usize) -> usize {
        let mut end = at;
        loop {
            end += self.classes.glyph(part, end).len;
            if end >= part.len() || self.match_end(part, end).is_some() {
                return end;
            }
        }
    }
}
