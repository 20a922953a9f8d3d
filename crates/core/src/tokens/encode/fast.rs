//! The fast path: byte-level BPE with a known cut.
//!
//! A text goes through four stages: added tokens are cut out, the rest is composed if the tokenizer asks for it, cut
//! into pieces, and each piece is looked up or merged. Byte-level tokens cover their text without gaps, so the ends
//! of tokens follow from their lengths and cost nothing unless asked for.

use super::added::{AddedToken, Finder, Part};
use super::alphabet::shown;
use super::cache::PieceCache;
use super::classes::Classes;
use super::ends::Ends;
use super::merge::Merger;
use super::nfc::Composed;
use super::scan::{Cased, DeepSeek, Gpt2, Pattern, Scan, Words};
use super::spec::{Frame, Plan, Reason};
use super::table::Key;
use super::vocab::Vocabulary;
use crate::tokens::spares::Spares;

pub(super) struct Fast {
    classes: &'static Classes,
    nfc: bool,
    pattern: Pattern,
    /// Added tokens looked for in the text as it came, and those looked for once it is composed.
    raw: Finder,
    composed: Finder,
    vocabulary: Vocabulary,
    pub(super) frame: Frame,
    /// Rooms to work in, one for each thread that encodes at the moment.
    rooms: Spares<Room>,
}

/// What one thread needs while it encodes. It keeps what it learnt for the next text.
#[derive(Debug, Default)]
struct Room {
    cache: PieceCache,
    merger: Merger,
}

impl Fast {
    pub(super) fn new(plan: &Plan) -> Result<Fast, Reason> {
        let classes = Classes::get();
        let normalize = |text: &str| {
            if plan.nfc { Composed::nfc(text, classes).text.into_owned() } else { text.to_owned() }
        };
        let vocabulary = Vocabulary::new(&plan.bpe, &plan.added, normalize)?;
        let finder = |normalized: bool| {
            let tokens = plan.added.iter().filter(|token| token.normalized == normalized);
            let contents: Vec<(String, u32)> = tokens
                .map(|token| {
                    (if normalized { normalize(&token.content) } else { token.content.clone() }, token.id)
                })
                .collect();
            Finder::new(&contents).ok_or_else(|| format!("{} added tokens are too many", contents.len()))
        };
        Ok(Fast {
            classes,
            nfc: plan.nfc,
            pattern: plan.pattern,
            raw: finder(false)?,
            composed: finder(true)?,
            vocabulary,
            frame: plan.frame.clone(),
            rooms: Spares::default(),
        })
    }

    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>, ends: Option<&mut Vec<u32>>) {
        self.rooms.with(Room::default, |room| self.encode_in(room, text, ids, ends));
    }

    fn encode_in(&self, room: &mut Room, text: &str, ids: &mut Vec<u32>, mut ends: Option<&mut Vec<u32>>) {
        ids.reserve(text.len() / 3);
        self.raw.split(text, |part| match part {
            Part::Added { id, end } => {
                ids.push(id);
                if let Some(ends) = ends.as_deref_mut() {
                    ends.push(end as u32);
                }
            }
            Part::Text { start, end } => {
                let span = text.get(start..end).unwrap_or_default();
                let composed =
                    if self.nfc { Composed::nfc(span, self.classes) } else { Composed::verbatim(span) };
                let ends = ends.as_deref_mut().map(|ends| Ends::new(&composed, start, ends));
                self.encode_composed(&composed.text, room, ids, ends);
            }
        });
    }

    fn encode_composed(&self, text: &str, room: &mut Room, ids: &mut Vec<u32>, mut ends: Option<Ends>) {
        self.composed.split(text, |part| match part {
            Part::Added { id, end } => {
                ids.push(id);
                if let Some(ends) = &mut ends {
                    ends.push_at(end);
                }
            }
            Part::Text { start, end } => {
                let first = ids.len();
                self.encode_span(text.as_bytes().get(start..end).unwrap_or_default(), room, ids);
                if let Some(ends) = &mut ends {
                    for &id in ids.get(first..).unwrap_or_default() {
                        ends.push_len(self.vocabulary.token_bytes(id).map_or(0, <[u8]>::len));
                    }
                }
            }
        });
    }

    fn encode_span(&self, text: &[u8], room: &mut Room, ids: &mut Vec<u32>) {
        let classes = self.classes;
        match self.pattern {
            Pattern::Gpt2 => self.encode_pieces(Gpt2 { classes }, text, room, ids),
            Pattern::Llama3 => self.encode_pieces(Words::<3, false> { classes }, text, room, ids),
            Pattern::Qwen2 => self.encode_pieces(Words::<1, false> { classes }, text, room, ids),
            Pattern::Qwen35 => self.encode_pieces(Words::<1, true> { classes }, text, room, ids),
            Pattern::O200k => self.encode_pieces(Cased::<3, true> { classes }, text, room, ids),
            Pattern::Tekken => self.encode_pieces(Cased::<1, false> { classes }, text, room, ids),
            Pattern::DeepSeek => self.encode_pieces(DeepSeek::new(classes), text, room, ids),
        }
    }

    fn encode_pieces(&self, mut scan: impl Scan, text: &[u8], room: &mut Room, ids: &mut Vec<u32>) {
        let mut start = 0;
        while start < text.len() {
            let end = scan.piece_end(text, start);
            assert!(start < end, "a piece is never empty");
            self.encode_piece(text, start, end, room, ids);
            start = end;
        }
    }

    #[inline(always)]
    fn encode_piece(&self, text: &[u8], start: usize, end: usize, room: &mut Room, ids: &mut Vec<u32>) {
        match Key::of(text, start, end) {
            Some(key) => match self.vocabulary.short_piece(key) {
                Some(id) => ids.push(id),
                None => self.encode_split(key, text.get(start..end).unwrap_or_default(), room, ids),
            },
            None => self.encode_long(text.get(start..end).unwrap_or_default(), room, ids),
        }
    }

    #[inline]
    fn encode_split(&self, key: Key, piece: &[u8], room: &mut Room, ids: &mut Vec<u32>) {
        if let Some(cached) = room.cache.get(key) {
            ids.extend_from_slice(cached);
            return;
        }
        let first = ids.len();
        room.merger.merge(&self.vocabulary.merges, self.vocabulary.bytes(piece), ids);
        room.cache.put(key, ids.get(first..).unwrap_or_default());
    }

    #[inline(never)]
    fn encode_long(&self, piece: &[u8], room: &mut Room, ids: &mut Vec<u32>) {
        if let Some(cached) = room.cache.get_long(piece) {
            ids.extend_from_slice(cached);
            return;
        }
        let first = ids.len();
        match self.vocabulary.long_piece(piece) {
            Some(id) => ids.push(id),
            None => room.merger.merge(&self.vocabulary.merges, self.vocabulary.bytes(piece), ids),
        }
        room.cache.put_long(piece, ids.get(first..).unwrap_or_default());
    }

    pub(super) fn texts(&self, ids: &[u32]) -> Vec<String> {
        ids.iter().map(|id| shown(self.vocabulary.token_bytes(*id).unwrap_or_default())).collect()
    }

    pub(super) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> String {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            if !(skip_special_tokens && self.vocabulary.is_special(id)) {
                bytes.extend_from_slice(self.vocabulary.token_bytes(id).unwrap_or_default());
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(super) fn added_tokens(&self) -> &[AddedToken] {
        &self.vocabulary.added
    }
}
