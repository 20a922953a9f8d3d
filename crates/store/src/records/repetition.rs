//! Finds answers that go round in circles, cheaply.
//!
//! A sample of 32-byte windows is hashed, each beginning at punctuation, so that the same sentence gives the same
//! window wherever it stands. The share of windows that were there before is the measure. A text with hardly any
//! punctuation is sampled by its bytes instead.

use std::collections::HashSet;
use std::ops::Range;

const WINDOW: usize = 32;
/// Longer answers are judged by their first part, which bounds the work.
const WINDOWS_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Repetition {
    windows: Vec<u64>,
    /// Where each window begins in its text.
    froms: Vec<u32>,
}

impl Repetition {
    pub(crate) fn clear(&mut self) {
        self.windows.clear();
        self.froms.clear();
    }

    pub(crate) fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let before = self.windows.len();
        for at in memchr::memchr3_iter(b'.', b',', b'\n', bytes) {
            if !self.window(bytes, at + 1) {
                break;
            }
        }
        if (self.windows.len() - before) * 128 < bytes.len() {
            self.windows.truncate(before);
            self.froms.truncate(before);
            let sampled = |(_, byte): &(usize, &u8)| **byte & 0x0f == 0x05;
            for (at, _) in bytes.iter().enumerate().filter(sampled) {
                if !self.window(bytes, at) {
                    break;
                }
            }
        }
    }

    fn window(&mut self, bytes: &[u8], from: usize) -> bool {
        let Some(window) = bytes.get(from..from + WINDOW) else { return false };
        let mut hash = 0u64;
        for part in window.as_chunks::<8>().0 {
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*part)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.windows.push(hash);
        self.froms.push(u32::try_from(from).unwrap_or(u32::MAX));
        self.windows.len() < WINDOWS_MAX
    }

    /// 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        let all = self.windows.len();
        if all < 2 {
            return 0.0;
        }
        self.windows.sort_unstable();
        self.windows.dedup();
        (all - self.windows.len()) as f64 / all as f64
    }
}

/// The share of some texts as [`Repetition`] has it, and their longest stretch that was there before: which text,
/// and the bytes of it.
pub(crate) fn circle<'t>(
    texts: impl Iterator<Item = (usize, &'t str)>,
) -> (f64, Option<(usize, Range<usize>)>) {
    let mut repetition = Repetition::default();
    let mut seen = HashSet::new();
    let mut longest: Option<(usize, Range<usize>)> = None;
    for (nth, text) in texts {
        let before = repetition.windows.len();
        repetition.read(text);
        let mut run: Option<Range<usize>> = None;
        let windows = repetition.windows.get(before..).unwrap_or_default();
        let froms = repetition.froms.get(before..).unwrap_or_default();
        for (hash, from) in windows.iter().zip(froms) {
            if seen.insert(*hash) {
                run = None;
                continue;
            }
            let from = *from as usize;
            let run = run.get_or_insert(from..from);
            run.end = from + WINDOW;
            if longest.as_ref().is_none_or(|(_, longest)| longest.len() < run.len()) {
                longest = Some((nth, run.clone()));
            }
        }
    }
    (repetition.share(), longest)
}

#[cfg(test)]
mod tests {
    use super::Repetition;

    fn share(text: &str) -> f64 {
        let mut repetition = Repetition::default();
        repetition.read(text);
        repetition.share()
    }

    #[test]
    fn loops_are_high_and_prose_is_low() {
        let counted: String =
            (0..200).map(|n| format!("Item {n} is worth {} coins, I think.\n", n * n)).collect();
        assert!(share(&counted) < 0.1, "{}", share(&counted));
        assert!(share(&"Wait, let me think about this again. ".repeat(50)) > 0.9);
        assert!(share(&"the same words again and again ".repeat(50)) > 0.9);
        assert!(share(&"永远重复同样的话".repeat(100)) > 0.9);
        assert!(share("") == 0.0 && share("short.") == 0.0);
    }
}
