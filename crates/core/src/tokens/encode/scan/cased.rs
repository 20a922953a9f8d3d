//! The pattern of GPT-4o and, without contractions, of Mistral's tekken: words end where case changes.
//!
//! With `A` for `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, `a` for `[\p{Ll}\p{Lm}\p{Lo}\p{M}]` and `c` for a contraction:
//! `[^\r\n\p{L}\p{N}]?A*a+c?|[^\r\n\p{L}\p{N}]?A+a*c?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

use super::super::classes::{Classes, LEAD, LOWER, NEWLINE, NUMBER, OTHER, UPPER};
use super::{Scan, contraction_end, number_end, spaces_end};

pub(in super::super) struct Cased<const DIGITS_MAX: usize, const CONTRACTIONS: bool> {
    pub(in super::super) classes: &'static Classes,
}

impl<const DIGITS_MAX: usize, const CONTRACTIONS: bool> Scan for Cased<DIGITS_MAX, CONTRACTIONS> {
    #[inline]
    fn piece_end(&mut self, text: &[u8], at: usize) -> usize {
        let classes = self.classes;
        let first = classes.glyph(text, at);
        let next_at = at + first.len;
        // A mark may be the character before the word as well as its first one, so both are tried in order.
        let led = first.is(LEAD).then_some(next_at);
        let bare = first.is(UPPER | LOWER).then_some(at);
        let word = led
            .and_then(|start| self.lower_end(text, start))
            .or_else(|| bare.and_then(|start| self.lower_end(text, start)))
            .or_else(|| led.and_then(|start| self.upper_end(text, start)))
            .or_else(|| bare.and_then(|start| self.upper_end(text, start)));
        if let Some(end) = word {
            return self.with_contraction(text, end);
        }
        if first.is(NUMBER) {
            return number_end(classes, text, at, DIGITS_MAX);
        }
        let spaced = text.get(at) == Some(&b' ') && classes.glyph(text, next_at).is(OTHER);
        if first.is(OTHER) || spaced {
            let mut end = classes.run(text, next_at, OTHER);
            while text.get(end) == Some(&b'/') || classes.glyph(text, end).is(NEWLINE) {
                end += 1;
            }
            return end;
        }
        spaces_end(classes, text, at)
    }
}

impl<const DIGITS_MAX: usize, const CONTRACTIONS: bool> Cased<DIGITS_MAX, CONTRACTIONS> {
    /// `A*a+`
    #[inline]
    fn lower_end(&self, text: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        let mut both_end = None;
        loop {
            let glyph = self.classes.glyph(text, at);
            if !glyph.is(UPPER) {
                if glyph.is(LOWER) {
                    return Some(self.classes.run(text, at + glyph.len, LOWER));
                }
                // `A*` took all there was and gives back up to the last character that is also an `a`.
                return both_end;
            }
            at += glyph.len;
            if glyph.is(LOWER) {
                both_end = Some(at);
            }
        }
    }

    /// `A+a*`
    #[inline]
    fn upper_end(&self, text: &[u8], start: usize) -> Option<usize> {
        let end = self.classes.run(text, start, UPPER);
        (end > start).then(|| self.classes.run(text, end, LOWER))
    }

    #[inline]
    fn with_contraction(&self, text: &[u8], end: usize) -> usize {
        match text.get(end) {
            Some(b'\'') if CONTRACTIONS => contraction_end(text, end).unwrap_or(end),
            _ => end,
        }
    }
}
