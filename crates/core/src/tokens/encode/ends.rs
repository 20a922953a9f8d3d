//! Where tokens end in the text they came from.
//!
//! Byte-level tokens may end in the middle of a character, and normalising may leave no trace of where one ended. Such
//! a token shares its end with the next that has one, so that a position is an end only if the text really divides there.

use super::nfc::{Composed, Cursor};

/// Collects the ends of the tokens of one stretch of text.
pub(super) struct Ends<'a> {
    composed: &'a Composed<'a>,
    /// Where the stretch begins in the whole text.
    base: usize,
    ends: &'a mut Vec<u32>,
    cursor: Cursor,
    at: usize,
    /// How many tokens still wait for an end.
    open: usize,
}

impl<'a> Ends<'a> {
    pub(super) fn new(composed: &'a Composed<'a>, base: usize, ends: &'a mut Vec<u32>) -> Ends<'a> {
        Ends { composed, base, ends, cursor: Cursor::default(), at: 0, open: 0 }
    }

    /// A token of `len` bytes of the composed text comes next.
    #[inline]
    pub(super) fn push_len(&mut self, len: usize) {
        self.push_at(self.at + len);
    }

    /// The next token ends at `at` in the composed text.
    #[inline]
    pub(super) fn push_at(&mut self, at: usize) {
        self.at = at;
        self.open += 1;
        if let Some(origin) = self.composed.origin(at, &mut self.cursor) {
            let end = (self.base + origin) as u32;
            self.ends.extend(std::iter::repeat_n(end, self.open));
            self.open = 0;
        }
    }
}
