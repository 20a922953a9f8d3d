//! Cuts text into the pieces that BPE may not merge across.
//!
//! A tokenizer.json names the cut by a regular expression, and running it takes most of the time `tokenizers`
//! needs. The models in use share a handful of expressions, so each is written out by hand here and chosen by its
//! exact text; any other expression is left to `tokenizers`.

mod cased;
mod deepseek;
mod gpt2;
#[cfg(test)]
mod tests;
mod words;

use super::classes::{Classes, NEWLINE, NUMBER, SPACE};

pub(super) use cased::Cased;
pub(super) use deepseek::DeepSeek;
pub(super) use gpt2::Gpt2;
pub(super) use words::Words;

/// Finds the pieces of one text, from its start to its end.
pub(super) trait Scan {
    /// Where the piece ends that begins at `at`. There is a character at `at`, and the piece is never empty.
    fn piece_end(&mut self, text: &[u8], at: usize) -> usize;
}

/// A published pattern, and with it the code that cuts as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// GPT-2 and every `ByteLevel` with `use_regex`.
    Gpt2,
    /// GPT-4 (cl100k), Llama 3, GLM-4: numbers in threes.
    Llama3,
    /// Qwen 2, 2.5 and 3: numbers by the digit.
    Qwen2,
    /// Qwen 3.5: marks belong to words.
    Qwen35,
    /// GPT-4o (o200k), gpt-oss, Llama 4: words also end where case changes.
    O200k,
    /// Mistral's tekken: as o200k, without contractions and with numbers by the digit.
    Tekken,
    /// DeepSeek V3, R1 and V3.1: three cuts, one after the other.
    DeepSeek,
}

const SPLITS: [(&[&str], Pattern); 6] = [
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        Pattern::Llama3,
    ),
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        Pattern::Qwen2,
    ),
    (
        &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        Pattern::Qwen35,
    ),
    (
        &[
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        Pattern::O200k,
    ),
    (
        &[
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        Pattern::Tekken,
    ),
    (
        &[
            r"\p{N}{1,3}",
            "[一-龥぀-ゟ゠-ヿ]+",
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
        ],
        Pattern::DeepSeek,
    ),
];

impl Pattern {
    /// The pattern that these expressions spell, one `Split` after the other.
    pub(super) fn of_splits(regexes: &[String]) -> Option<Pattern> {
        // Some files hold the line ends themselves where others hold `\r\n`; between brackets both mean the same.
        let spelt: Vec<String> =
            regexes.iter().map(|regex| regex.replace('\r', r"\r").replace('\n', r"\n")).collect();
        SPLITS.iter().find(|(known, _)| spelt == *known).map(|(_, pattern)| *pattern)
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: where it ends if one begins at `at`, where an apostrophe stands.
#[inline]
fn contraction_end(text: &[u8], at: usize) -> Option<usize> {
    let letter = |offset: usize| text.get(at + offset).map(u8::to_ascii_lowercase);
    match (letter(1)?, letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(at + 2),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(at + 3),
        // The long s folds to s.
        (0xc5, Some(0xbf)) => Some(at + 3),
        _ => None,
    }
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line end, else all spaces but the one that belongs to a next word.
#[inline]
fn spaces_end(classes: &Classes, text: &[u8], at: usize) -> usize {
    let mut end = at;
    let mut last = at;
    let mut newline_end = None;
    loop {
        let glyph = classes.glyph(text, end);
        if !glyph.is(SPACE) {
            break;
        }
        last = end;
        end += glyph.len;
        if glyph.is(NEWLINE) {
            newline_end = Some(end);
        }
    }
    newline_end.unwrap_or_else(|| before_next_word(text, at, last, end))
}

/// `\s+(?!\S)|\s+` of spaces from `at` to `end`, the last of which begins at `last`.
#[inline]
fn before_next_word(text: &[u8], at: usize, last: usize, end: usize) -> usize {
    if end == text.len() || last == at { end } else { last }
}

/// `\p{N}{1,max}`
#[inline]
fn number_end(classes: &Classes, text: &[u8], at: usize, max: usize) -> usize {
    let mut end = at;
    for _ in 0..max {
        let glyph = classes.glyph(text, end);
        if !glyph.is(NUMBER) {
            break;
        }
        end += glyph.len;
    }
    end
}
