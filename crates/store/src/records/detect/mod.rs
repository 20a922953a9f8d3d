//! Signs that a reward was won by something other than the task.
//!
//! Each is a hint to look, not a verdict. The catalog keeps whether a sign is there, as a column that can be filtered
//! and sorted by; whoever opens the rollout is shown where and why. Both are found by the same code, in one pass over
//! the pieces: [`truth`] knows the right answer and looks for it where the model could read it, [`tamper`] looks
//! into what the model runs and submits, [`parts`] into what the reward is made of.
//!
//! | column | what the sign is |
//! |---|---|
//! | `leak` | the ground truth stands in what the model was told, before it said it itself |
//! | `tampering` | tests or the grader are changed, skipped or got round |
//! | `format_only` | a reward above 0 although the part that says correct is 0 |
//! | `repetition` | the answers go round in circles |

mod parts;
mod tamper;
mod truth;

use super::Channel;
use super::body::Piece;
use super::json::{Node, Said};
use super::repetition;
use parts::Parts;
use std::ops::Range;
use tamper::Tamper;
use truth::Truths;

/// A sign that was found, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// The column that has it.
    pub detector: &'static str,
    pub why: String,
    /// None for what is said by numbers alone.
    pub span: Option<Span>,
}

/// Characters of the text that a message has in a channel, as search counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub message: usize,
    pub channel: Channel,
    pub start: usize,
    pub end: usize,
    /// What stands there; a long one is cut.
    pub quote: String,
}

const QUOTE_CHARS: usize = 300;
/// From this share on, repetition is told as a sign. The column has the share itself.
const REPETITION_FROM: f64 = 0.3;

/// Where in the pieces something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    piece: usize,
    bytes: Range<usize>,
    why: String,
}

/// Looks at one rollout after the other.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    truths: Truths,
    tamper: Tamper,
    parts: Parts,
    pieces: usize,
}

impl Watch {
    /// Takes what a row says beside its conversation.
    pub(crate) fn begin(&mut self, row: Node<'_>) {
        self.truths.clear();
        self.tamper.clear();
        self.parts.clear();
        self.pieces = 0;
        for home in homes(row) {
            for (name, node) in home.entries() {
                self.truths.hear(name, node);
                self.parts.hear(name, node);
            }
        }
    }

    /// The pieces of all messages, in order.
    pub(crate) fn see(&mut self, channel: Channel, text: &str) {
        self.truths.see(self.pieces, channel, text);
        self.tamper.see(self.pieces, channel, text);
        self.pieces += 1;
    }

    pub(crate) fn is_leak(&self) -> bool {
        self.truths.found().is_some()
    }

    pub(crate) fn is_tampering(&self) -> bool {
        self.tamper.found().is_some()
    }

    pub(crate) fn is_format_only(&self, reward: Option<f64>) -> bool {
        self.parts.format_only(reward).is_some()
    }
}

/// Everything that is found in one rollout.
pub(super) fn detections(row: Node<'_>, reward: Option<f64>, pieces: &[Piece]) -> Vec<Detection> {
    let mut watch = Watch::default();
    watch.begin(row);
    for piece in pieces {
        watch.see(piece.channel, &piece.text);
    }
    let told = |detector, found: &Found| Detection {
        detector,
        why: found.why.clone(),
        span: span(pieces, found.piece, &found.bytes),
    };
    let mut all = Vec::new();
    all.extend(watch.truths.found().map(|found| told("leak", found)));
    all.extend(watch.tamper.found().map(|found| told("tampering", found)));
    all.extend(watch.parts.format_only(reward).map(|why| Detection {
        detector: "format_only",
        why,
        span: None,
    }));
    let said = pieces.iter().enumerate().filter(|(_, piece)| is_said(piece.channel));
    let (share, circle) = repetition::circle(said.map(|(nth, piece)| (nth, piece.text.as_str())));
    if share >= REPETITION_FROM {
        let why = format!("{:.0}% of the answers repeat earlier parts of them", share * 100.0);
        let span = circle.and_then(|(piece, bytes)| span(pieces, piece, &bytes));
        all.push(Detection { detector: "repetition", why, span });
    }
    all
}

fn is_said(channel: Channel) -> bool {
    matches!(channel, Channel::Assistant | Channel::Reasoning | Channel::ToolCall)
}

/// Objects whose fields count as the row's own.
fn homes(row: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let within = super::fields::HOMES.iter().filter_map(move |name| row.get(name));
    std::iter::once(row).chain(within.filter(|node| matches!(node.said(), Said::Object)))
}

fn span(pieces: &[Piece], nth: usize, bytes: &Range<usize>) -> Option<Span> {
    let piece = pieces.get(nth)?;
    let bytes = floor(&piece.text, bytes.start)..floor(&piece.text, bytes.end);
    let is_before = |other: &&Piece| other.message == piece.message && other.channel == piece.channel;
    let before: usize =
        pieces.iter().take(nth).filter(is_before).map(|other| other.text.chars().count()).sum();
    let quote = piece.text.get(bytes.clone())?;
    let start = before + piece.text.get(..bytes.start)?.chars().count();
    Some(Span {
        message: piece.message,
        channel: piece.channel,
        start,
        end: start + quote.chars().count(),
        quote: match quote.char_indices().nth(QUOTE_CHARS) {
            Some((cut, _)) => format!("{}…", quote.get(..cut).unwrap_or_default()),
            None => quote.to_owned(),
        },
    })
}

/// The last byte up to this one at which a character begins, or the end.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
