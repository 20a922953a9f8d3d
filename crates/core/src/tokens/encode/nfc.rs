//! Composes characters as `tokenizers` does, and remembers where they came from.
//!
//! Nearly all text is composed already, and a look at its bytes proves it. What is not is cut before every
//! character that no other can join, and each cluster composed alone: that gives the same text, and leaves only
//! the few clusters that changed without a place of their own in the original.

use std::borrow::Cow;

use unicode_normalization_alignments::{UnicodeNormalization, is_nfc};

use super::classes::{COMPOSES, Classes};

/// Text after NFC, with the way back to the positions of the original.
#[derive(Debug)]
pub(super) struct Composed<'t> {
    pub(super) text: Cow<'t, str>,
    clusters: Vec<Cluster>,
}

/// A stretch that NFC changed: where it ends in the original and in the composed text, and how long it is there.
#[derive(Debug)]
struct Cluster {
    end: usize,
    composed_start: usize,
    composed_end: usize,
}

impl<'t> Composed<'t> {
    /// Text as it is, for tokenizers that do not normalise.
    pub(super) fn verbatim(text: &'t str) -> Composed<'t> {
        Composed { text: Cow::Borrowed(text), clusters: Vec::new() }
    }

    pub(super) fn nfc(text: &'t str, classes: &Classes) -> Composed<'t> {
        // Nothing below U+0300 composes with what stands before it, and that is written with a byte of 0xcc or more.
        let plain = text.bytes().all(|byte| byte < 0xcc);
        if plain || text.chars().all(|c| classes.of(c) & COMPOSES == 0) || is_nfc(text) {
            return Composed::verbatim(text);
        }
        compose(text, classes)
    }

    /// The position in the original of position `at`, which comes after those asked before. None if characters
    /// from both of its sides were composed together.
    pub(super) fn origin(&self, at: usize, cursor: &mut Cursor) -> Option<usize> {
        while let Some(cluster) = self.clusters.get(cursor.next) {
            if at < cluster.composed_end {
                break;
            }
            *cursor = Cursor { next: cursor.next + 1, composed: cluster.composed_end, original: cluster.end };
        }
        let inside = self.clusters.get(cursor.next).is_some_and(|cluster| at > cluster.composed_start);
        (!inside && self.text.is_char_boundary(at)).then(|| cursor.original + (at - cursor.composed))
    }
}

/// How far [`Composed::origin`] has come: the next cluster, and the two ends of the last.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    next: usize,
    composed: usize,
    original: usize,
}

fn compose<'t>(text: &'t str, classes: &Classes) -> Composed<'t> {
    let mut out = String::with_capacity(text.len());
    let mut clusters = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        let mut end = start + first.len_utf8();
        while let Some((at, c)) = rest.next_if(|&(_, c)| classes.of(c) & COMPOSES != 0) {
            end = at + c.len_utf8();
        }
        let cluster = text.get(start..end).unwrap_or_default();
        let composed_start = out.len();
        out.extend(cluster.nfc().map(|(c, _)| c));
        if out.get(composed_start..) != Some(cluster) {
            clusters.push(Cluster { end, composed_start, composed_end: out.len() });
        }
    }
    Composed { text: Cow::Owned(out), clusters }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(text: &str) -> (String, Vec<Option<usize>>) {
        let composed = Composed::nfc(text, Classes::get());
        let mut cursor = Cursor::default();
        let origins = (0..=composed.text.len()).map(|at| composed.origin(at, &mut cursor)).collect();
        (composed.text.into_owned(), origins)
    }

    #[test]
    fn composed_text_is_borrowed_back() {
        for text in ["", "plain", "é", "字가\u{e9}", "ב\u{5b0}"] {
            assert!(matches!(Composed::nfc(text, Classes::get()).text, Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn a_position_inside_a_composed_character_has_no_origin() {
        let (text, found) = origins("ae\u{301}b");
        assert_eq!(text, "aéb");
        assert_eq!(found, [Some(0), Some(1), None, Some(4), Some(5)]);
    }

    #[test]
    fn marks_that_changed_places_have_no_origin() {
        let (text, found) = origins("x\u{301}\u{323}y");
        assert_eq!(text, "x\u{323}\u{301}y");
        assert_eq!(found, [Some(0), None, None, None, None, Some(5), Some(6)]);
    }
}
