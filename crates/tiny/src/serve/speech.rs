//! What of a text can be told while its tokens still come.
//!
//! Nothing is told that may have to be taken back: not half a character, not what may become a stop, and not what may
//! become a tool call. All that was told and the [rest](Speech::rest) are together the text that whoever does not
//! stream is given ([`TinyEngine::text_of`](crate::engine::TinyEngine::text_of)).

use rollyard_core::tokens::{Spelling, Tokenizer, begun};
use std::sync::Arc;

/// Where a tool call begins.
pub(super) const CALL: &str = "<tool_call>";

#[derive(Debug)]
pub(super) struct Speech {
    spelling: Spelling,
    stops: Vec<String>,
    /// Whether the text may call tools.
    calls: bool,
    /// Decoded, but not told.
    pending: String,
    told: String,
}

impl Speech {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, stops: Vec<String>, calls: bool) -> Self {
        let (pending, told) = (String::new(), String::new());
        Self { spelling: Spelling::new(tokenizer, true), stops, calls, pending, told }
    }

    /// One more token: what can be told now, which may be nothing.
    pub(super) fn push(&mut self, token: i32) -> String {
        let before = self.pending.len();
        if let Some(text) = self.spelling.push(token) {
            self.pending.push_str(&text);
        }
        let limit = self.limit(before);
        let rest = self.pending.split_off(limit);
        let tell = std::mem::replace(&mut self.pending, rest);
        self.told.push_str(&tell);
        tell
    }

    /// What is missing of the whole text, now that it is known.
    pub(super) fn rest(&self, whole: &str) -> String {
        let rest = whole.strip_prefix(self.told.as_str()).unwrap_or_else(|| {
            let (told_bytes, whole_bytes) = (self.told.len(), whole.len());
            tracing::warn!(told_bytes, whole_bytes, "a stream told what is not in its text");
            ""
        });
        rest.to_owned()
    }

    /// All that was told until now.
    pub(super) fn told(&self) -> &str {
        &self.told
    }

    /// How much of what is pending may be told, if `before` of it was there before the last token.
    fn limit(&self, before: usize) -> usize {
        let text = self.pending.as_str();
        let mut limit = text.len();
        for stop in &self.stops {
            // The stop that ended the text, if this token was the last: found where `text_of` finds it. If it was not,
            // the next ones let it go.
            let from = before.saturating_sub(stop.len());
            let from = (0..=from).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            let whole = text.get(from..).and_then(|tail| tail.find(stop.as_str())).map(|at| from + at);
            limit = limit.min(whole.unwrap_or(limit)).min(begun(text, stop));
        }
        if self.calls {
            limit = limit.min(text.find(CALL).unwrap_or(limit)).min(begun(text, CALL));
            // The space before a call is not part of what is said.
            limit = text.get(..limit).map_or(0, |text| text.trim_end().len());
        }
        limit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rollyard_core::tokens::ModelFiles;
    use serde_json::json;

    use super::*;

    /// Every token is a byte, so that characters come in pieces.
    fn bytes() -> Arc<Tokenizer> {
        let vocabulary: serde_json::Map<String, serde_json::Value> =
            (0..=255_u32).map(|byte| (format!("<0x{byte:02X}>"), json!(byte))).collect();
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": null, "post_processor": null,
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": true, "ignore_merges": false,
                "vocab": vocabulary, "merges": []},
        });
        Arc::new(Tokenizer::new(tokenizer.to_string().as_bytes(), ModelFiles::default()).unwrap())
    }

    fn told(text: &str, stops: &[&str], calls: bool) -> Vec<String> {
        let stops = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut speech = Speech::new(bytes(), stops, calls);
        text.bytes().map(|byte| speech.push(i32::from(byte))).filter(|told| !told.is_empty()).collect()
    }

    #[test]
    fn characters_are_told_whole() {
        assert_eq!(told("aü€b🙂", &[], false), ["a", "ü", "€", "b", "🙂"]);
    }

    #[test]
    fn what_may_become_a_stop_waits() {
        // Told with the token that shows it was none; the last stop is never told.
        assert_eq!(told("xEx", &["END"], false), ["x", "Ex"]);
        assert_eq!(told("xEEND", &["END"], false), ["x", "E"]);
        assert_eq!(told("aENDbc", &["END"], false), ["a", "ENDbc"]);
        assert_eq!(told("xaa", &["aab", "xaac"], false), Vec::<String>::new());
        assert_eq!(told("xaab", &["aab", "xaac"], false), ["x"]);
        assert_eq!(told("é€", &["€uro"], false), ["é"]);
    }

    #[test]
    fn what_may_become_a_call_waits() {
        assert_eq!(told("So \n<b>", &[], true).concat(), "So \n<b>");
        assert_eq!(told("So \n<tool_call>{}</tool_call> more", &[], true).concat(), "So");
        assert_eq!(told("<tool", &[], true).concat(), "");
        assert_eq!(told("<tool", &[], false).concat(), "<tool");
    }

    proptest! {
        /// However a text is cut off by a stop, what was told is a beginning of what is left of it.
        #[test]
        fn nothing_is_taken_back(
            text in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "ab", "ü", " "]), 0..12),
            stops in proptest::collection::vec(proptest::sample::select(vec!["ab", "ba", "aab", "ü", "b ü"]), 1..3),
        ) {
            let text = text.concat();
            let stops: Vec<String> = stops.into_iter().map(str::to_owned).collect();
            let mut speech = Speech::new(bytes(), stops.clone(), false);
            let mut so_far = Vec::new();
            for byte in text.bytes() {
                so_far.push(byte);
                speech.push(i32::from(byte));
                let Ok(seen) = std::str::from_utf8(&so_far) else { continue };
                if let Some(stop) = stops.iter().find(|stop| seen.ends_with(stop.as_str())) {
                    let left = seen.strip_suffix(stop.as_str()).unwrap();
                    prop_assert!(left.starts_with(speech.told()), "{:?} told of {left:?}", speech.told());
                    prop_assert_eq!(format!("{}{}", speech.told(), speech.rest(left)), left);
                    return Ok(());
                }
            }
            prop_assert_eq!(format!("{}{}", speech.told(), speech.rest(&text)), text);
        }
    }
}
