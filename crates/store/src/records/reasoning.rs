//! Where an answer thinks aloud.
//!
//! Models mark it as `<think>…</think>`, `<thinking>`, `<reasoning>` or in Harmony's channels; many never close the
//! mark, and some templates put the opening one into the prompt, so that an answer begins with thoughts and only
//! closes them. Nothing is taken away: the marks stay with the reasoning, and all parts together are the text.

use std::ops::Range;

const MARKS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];
const CHANNEL: &str = "<|channel|>";
const ANALYSIS: &str = "<|channel|>analysis";
/// An end is part of the reasoning, the beginning of something else is not.
const CHANNEL_ENDS: [&str; 2] = ["<|end|>", "<|return|>"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Mark(&'static str),
    Channel,
}

/// Calls `part` with each stretch and whether it is reasoning. Says whether the last is never closed.
pub(crate) fn split(text: &str, mut part: impl FnMut(&str, bool)) -> bool {
    let mut emit = |range: Range<usize>, is_reasoning| {
        if let Some(stretch) = text.get(range).filter(|stretch| !stretch.is_empty()) {
            part(stretch, is_reasoning);
        }
    };
    let (mut from, mut open, mut was_reasoning) = (0, None, false);
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        let Some(rest) = text.get(at..) else { continue };
        match open {
            None => {
                if let Some(mark) = opening(rest) {
                    emit(from..at, false);
                    (from, open) = (at, Some(mark));
                } else if let Some(close) = closing(rest).filter(|_| !was_reasoning) {
                    emit(from..at + close.len(), true);
                    (from, was_reasoning) = (at + close.len(), true);
                }
            }
            Some(mark) => {
                if let Some(len) = closed_by(mark, rest) {
                    emit(from..at + len, true);
                    (from, open, was_reasoning) = (at + len, None, true);
                    // One channel may follow the other without an end.
                    open = if len == 0 { opening(rest) } else { open };
                }
            }
        }
    }
    emit(from..text.len(), open.is_some());
    open.is_some()
}

fn opening(rest: &str) -> Option<Open> {
    let mark = MARKS.iter().find(|(open, _)| rest.starts_with(open)).map(|(_, close)| Open::Mark(close));
    mark.or_else(|| rest.starts_with(ANALYSIS).then_some(Open::Channel))
}

fn closing(rest: &str) -> Option<&'static str> {
    MARKS.iter().map(|(_, close)| *close).find(|close| rest.starts_with(close))
}

/// How much of the rest still belongs to it.
fn closed_by(open: Open, rest: &str) -> Option<usize> {
    match open {
        Open::Mark(close) => rest.starts_with(close).then_some(close.len()),
        Open::Channel => {
            let end = CHANNEL_ENDS.iter().find(|end| rest.starts_with(**end)).map(|end| end.len());
            end.or_else(|| (rest.starts_with(CHANNEL) || rest.starts_with("<|start|>")).then_some(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn every_way_to_think_aloud_is_told_apart_and_nothing_is_lost() {
        for (text, expected, unclosed) in [
            ("plain < text", "plain < text", false),
            ("<think>a</think>b", "[<think>a</think>]b", false),
            ("x<think>a</think>b<think>c</think>", "x[<think>a</think>]b[<think>c</think>]", false),
            ("<think>a", "[<think>a]", true),
            ("a</think>b</think>c", "[a</think>]b</think>c", false),
            ("<reasoning>a</reasoning>b", "[<reasoning>a</reasoning>]b", false),
            ("<thinking>a<think>b</thinking>c", "[<thinking>a<think>b</thinking>]c", false),
            (
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
                "[<|channel|>analysis<|message|>a<|end|>]<|start|>assistant<|channel|>final<|message|>b",
                false,
            ),
            ("<|channel|>analysis<|message|>a", "[<|channel|>analysis<|message|>a]", true),
            (
                "<|channel|>analysis<|message|>a<|channel|>final<|message|>b",
                "[<|channel|>analysis<|message|>a]<|channel|>final<|message|>b",
                false,
            ),
            ("", "", false),
        ] {
            let mut got = String::new();
            let is_unclosed = split(text, |part, is_reasoning| {
                got += &if is_reasoning { format!("[{part}]") } else { part.to_owned() };
            });
            assert_eq!((got.as_str(), is_unclosed), (expected, unclosed), "{text}");
        }
    }
}
