//! What kind of character a code point is, as the split patterns ask it.
//!
//! `tokenizers` asks Oniguruma, which knows Unicode 16; `regex-syntax` carries the same tables, and a test
//! compares every code point. Each kind is one bit, so that a run of words or spaces is one mask in a loop.
//! Every test is positive: the end of the text has no bits at all.

use std::iter;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};
use unicode_normalization_alignments::{IsNormalized, char::canonical_combining_class, is_nfc_quick};

pub(super) type Bits = u16;

/// `\p{L}`
pub(super) const LETTER: Bits = 1;
/// `\p{N}`
pub(super) const NUMBER: Bits = 1 << 1;
/// `\s`
pub(super) const SPACE: Bits = 1 << 2;
/// `[\r\n]`
pub(super) const NEWLINE: Bits = 1 << 3;
/// `\p{M}`
pub(super) const MARK: Bits = 1 << 4;
/// `[^\s\p{L}\p{N}]`
pub(super) const OTHER: Bits = 1 << 5;
/// `[^\s\p{L}\p{M}\p{N}]`
pub(super) const OTHER_BUT_MARK: Bits = 1 << 6;
/// `[^\r\n\p{L}\p{N}]`
pub(super) const LEAD: Bits = 1 << 7;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
pub(super) const UPPER: Bits = 1 << 8;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
pub(super) const LOWER: Bits = 1 << 9;
/// `[\p{P}\p{S}]`
pub(super) const SYMBOL: Bits = 1 << 10;
/// `[一-龥぀-ゟ゠-ヿ]`
pub(super) const HAN: Bits = 1 << 11;
/// `[^\r\n\p{L}\p{P}\p{S}]`
pub(super) const LEAD_BUT_SYMBOL: Bits = 1 << 12;
/// May change under NFC together with what stands before it.
pub(super) const COMPOSES: Bits = 1 << 13;

const PATTERNS: [(Bits, &str); 13] = [
    (LETTER, r"\p{L}"),
    (NUMBER, r"\p{N}"),
    (SPACE, r"\s"),
    (NEWLINE, r"[\r\n]"),
    (MARK, r"\p{M}"),
    (OTHER, r"[^\s\p{L}\p{N}]"),
    (OTHER_BUT_MARK, r"[^\s\p{L}\p{M}\p{N}]"),
    (LEAD, r"[^\r\n\p{L}\p{N}]"),
    (UPPER, r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
    (LOWER, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
    (SYMBOL, r"[\p{P}\p{S}]"),
    (HAN, r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]"),
    (LEAD_BUT_SYMBOL, r"[^\r\n\p{L}\p{P}\p{S}]"),
];

/// No character above this one composes with another, in the version of Unicode that `tokenizers` normalises by.
const COMPOSES_MAX: char = '\u{2ffff}';
const BLOCK: usize = 256;

static CLASSES: LazyLock<Classes> = LazyLock::new(Classes::build);

/// The bits of every code point, in blocks of 256 of which equal ones are stored once.
pub(super) struct Classes {
    ascii: [Bits; 128],
    /// For each block of code points, where its bits begin in `bits`.
    starts: Vec<u32>,
    bits: Vec<Bits>,
}

/// One character of a text: its bits and its length in bytes, or zeros at the end.
#[derive(Clone, Copy)]
pub(super) struct Glyph {
    pub(super) bits: Bits,
    pub(super) len: usize,
}

impl Glyph {
    #[inline(always)]
    pub(super) fn is(self, mask: Bits) -> bool {
        self.bits & mask != 0
    }
}

impl Classes {
    pub(super) fn get() -> &'static Classes {
        &CLASSES
    }

    /// The character at `at`, which is a boundary of valid UTF-8.
    #[inline(always)]
    pub(super) fn glyph(&self, text: &[u8], at: usize) -> Glyph {
        match text.get(at) {
            Some(&byte) if byte < 0x80 => Glyph { bits: self.ascii(byte), len: 1 },
            Some(&byte) => self.wide_glyph(text, at, byte),
            None => Glyph { bits: 0, len: 0 },
        }
    }

    /// Where the run of characters with one of the bits of `mask` ends that begins at `at`.
    #[inline(always)]
    pub(super) fn run(&self, text: &[u8], mut at: usize, mask: Bits) -> usize {
        loop {
            let glyph = self.glyph(text, at);
            if !glyph.is(mask) {
                return at;
            }
            at += glyph.len;
        }
    }

    pub(super) fn of(&self, c: char) -> Bits {
        let point = c as usize;
        let start = self.starts.get(point / BLOCK).copied().unwrap_or_default() as usize;
        self.bits.get(start + point % BLOCK).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn ascii(&self, byte: u8) -> Bits {
        self.ascii.get(usize::from(byte)).copied().unwrap_or_default()
    }

    #[inline]
    fn wide_glyph(&self, text: &[u8], at: usize, first: u8) -> Glyph {
        let tail = |offset: usize| u32::from(text.get(at + offset).copied().unwrap_or_default() & 0x3f);
        let first = u32::from(first);
        let (point, len) = match first {
            0xf0.. => ((first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
            0xe0.. => ((first & 0x0f) << 12 | tail(1) << 6 | tail(2), 3),
            _ => ((first & 0x1f) << 6 | tail(1), 2),
        };
        Glyph { bits: self.of(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)), len }
    }

    fn build() -> Classes {
        let mut all = vec![0 as Bits; char::MAX as usize + 1];
        let mut mark = |first: char, last: char, bit: Bits| {
            for bits in all.get_mut(first as usize..=last as usize).into_iter().flatten() {
                *bits |= bit;
            }
        };
        for (bit, pattern) in PATTERNS {
            let hir = regex_syntax::parse(pattern).expect("the patterns above are valid");
            match hir.kind() {
                HirKind::Class(Class::Unicode(class)) => {
                    class.ranges().iter().for_each(|range| mark(range.start(), range.end(), bit));
                }
                other => unreachable!("{pattern} is one class, not {other:?}"),
            }
        }
        for c in '\u{300}'..=COMPOSES_MAX {
            if canonical_combining_class(c) != 0 || is_nfc_quick(iter::once(c)) != IsNormalized::Yes {
                mark(c, c, COMPOSES);
            }
        }
        Classes::pack(&all)
    }

    fn pack(all: &[Bits]) -> Classes {
        let mut seen = hashbrown::HashMap::<&[Bits], u32>::new();
        let mut bits = Vec::new();
        let mut starts = Vec::with_capacity(all.len() / BLOCK);
        for block in all.chunks(BLOCK) {
            starts.push(*seen.entry(block).or_insert_with(|| {
                bits.extend_from_slice(block);
                (bits.len() - block.len()) as u32
            }));
        }
        let mut ascii = [0; 128];
        ascii.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        Classes { ascii, starts, bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::utils::SysRegex;

    /// `tokenizers` splits by Oniguruma, whose idea of a letter has to be ours.
    #[test]
    fn every_code_point_is_what_oniguruma_takes_it_for() {
        let all: String = ('\0'..=char::MAX).collect();
        for (bit, pattern) in PATTERNS {
            let pattern = pattern.replace(r"\u{", r"\x{");
            let regex = SysRegex::new(&format!("(?:{pattern})+")).unwrap();
            let mut expected = vec![false; all.len()];
            regex.find_iter(&all).for_each(|(start, end)| expected[start..end].fill(true));
            for (at, c) in all.char_indices() {
                let found = Classes::get().of(c) & bit != 0;
                assert_eq!(found, expected[at], "U+{:04X} and {pattern}", c as u32);
            }
        }
    }

    #[test]
    fn a_glyph_is_the_character_that_stands_there() {
        let text = "aé字🚀\u{10ffff}";
        for (at, c) in text.char_indices() {
            let glyph = Classes::get().glyph(text.as_bytes(), at);
            assert_eq!((glyph.bits, glyph.len), (Classes::get().of(c), c.len_utf8()), "{c:?}");
        }
        assert_eq!(Classes::get().glyph(text.as_bytes(), text.len()).len, 0);
    }
}
