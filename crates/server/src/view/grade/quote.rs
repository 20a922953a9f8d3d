//! Whether a quote stands in a rollout, and where.
//!
//! Models quote from memory. A quote that is there is shown in its place; one that is not is kept, and marked.

use rollyard_store::records::{Channel, Piece};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Quote {
    text: String,
    pub(super) found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
}

/// In characters of the message's text in that channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Span {
    message: usize,
    channel: &'static str,
    start: usize,
    end: usize,
}

/// Looks for it as it is, then with every run of spaces as one.
pub(super) fn find(text: String, pieces: &[Piece]) -> Quote {
    let voices = voices(pieces);
    let exact = voices.iter().find_map(|voice| voice.find_exact(&text));
    let span = exact.or_else(|| voices.iter().find_map(|voice| voice.find_spaced(&text)));
    Quote { text, found: span.is_some(), span }
}

/// All that is said in one message and one channel.
struct Voice {
    message: usize,
    channel: Channel,
    text: String,
}

fn voices(pieces: &[Piece]) -> Vec<Voice> {
    let mut voices: Vec<Voice> = Vec::new();
    for piece in pieces {
        let known = voices.iter_mut().find(|v| v.message == piece.message && v.channel == piece.channel);
        match known {
            Some(voice) => voice.text.push_str(&piece.text),
            None => voices.push(Voice {
                message: piece.message,
                channel: piece.channel,
                text: piece.text.clone(),
            }),
        }
    }
    voices
}

impl Voice {
    fn span(&self, start: usize, end: usize) -> Span {
        Span { message: self.message, channel: self.channel.name(), start, end }
    }

    fn find_exact(&self, quote: &str) -> Option<Span> {
        let at = self.text.find(quote)?;
        let start = self.text.get(..at)?.chars().count();
        Some(self.span(start, start + quote.chars().count()))
    }

    fn find_spaced(&self, quote: &str) -> Option<Span> {
        let wanted: String = spaced(quote.trim()).map(|(_, c)| c).collect();
        if wanted.is_empty() {
            return None;
        }
        // Each character that is left, and its number in the text.
        let (numbers, text): (Vec<usize>, String) = spaced(&self.text).unzip();
        let at = text.find(&wanted)?;
        let first = text.get(..at)?.chars().count();
        let last = first + wanted.chars().count() - 1;
        Some(self.span(*numbers.get(first)?, numbers.get(last)? + 1))
    }
}

/// The characters with their numbers, of each run of spaces only the first, as a plain one.
fn spaced(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut after_space = false;
    text.chars().enumerate().filter_map(move |(number, c)| {
        let is_space = c.is_whitespace();
        let again = std::mem::replace(&mut after_space, is_space) && is_space;
        (!again).then_some((number, if is_space { ' ' } else { c }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_where_it_stands_or_marked() {
        let piece = |message, channel, text: &str| Piece { message, channel, text: text.to_owned() };
        let pieces = [
            piece(0, Channel::User, "Wie heißt\n\tdas?"),
            piece(1, Channel::Reasoning, "hm"),
            piece(1, Channel::Assistant, "Das ist "),
            piece(1, Channel::Assistant, "das Haus."),
        ];
        for (quote, expected) in [
            ("heißt", Some((0, "user", 4, 9))),
            ("heißt das", Some((0, "user", 4, 14))),
            ("ist das  Haus", Some((1, "assistant", 4, 16))),
            ("hm", Some((1, "reasoning", 0, 2))),
            ("das Boot", None),
            ("  ", None),
        ] {
            let found = find(quote.to_owned(), &pieces);
            let span = found.span.map(|span| (span.message, span.channel, span.start, span.end));
            assert_eq!((found.found, span), (expected.is_some(), expected), "{quote:?}");
        }
    }
}
