//! Decides by the decoded text, and says where.

use super::needle::Needle;
use super::{Hit, Pattern, QueryError, Wanted, mistake};
use crate::catalog::RowNo;
use crate::query::filter;
use crate::records::{Channel, Piece};
use regex::{Regex, RegexBuilder};
use std::ops::Range;

/// Characters on either side of a hit in its snippet.
const AROUND: usize = 60;

/// What is looked for, with everything that can be made ready before the first byte is read.
#[derive(Debug)]
pub(crate) struct Goal {
    tree: Tree,
    pub(crate) patterns: Vec<Ready>,
}

#[derive(Debug)]
pub(crate) struct Ready {
    matcher: Regex,
    channels: Vec<Channel>,
    pub(crate) needle: Needle,
}

/// By the numbers of patterns.
#[derive(Debug)]
enum Tree {
    Has(usize),
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
}

/// Where a pattern was found first, and how often.
#[derive(Clone, Debug)]
struct Place {
    piece: usize,
    bytes: Range<usize>,
    count: usize,
}

impl Goal {
    pub(crate) fn new(wanted: &Wanted) -> Result<Self, QueryError> {
        let mut patterns = Vec::new();
        for pattern in wanted.patterns() {
            if pattern.text.is_empty() {
                return Err(
                    mistake(pattern, "the pattern is empty; give some text to look for".to_owned()).into()
                );
            }
            patterns.push(Ready {
                matcher: matcher(pattern)?,
                channels: pattern.channels.clone(),
                needle: Needle::of(pattern),
            });
        }
        if patterns.is_empty() {
            let nothing =
                Pattern { text: String::new(), is_regex: false, ignore_case: false, channels: Vec::new() };
            return Err(mistake(&nothing, "there is no pattern to look for".to_owned()).into());
        }
        let mut next = 0;
        Ok(Self { tree: tree(wanted, &mut next), patterns })
    }

    /// Whether a row can be wanted, by which patterns its raw bytes may have.
    pub(crate) fn may_hold(&self, raw: &[bool]) -> bool {
        possible(&self.tree, raw).0
    }

    /// The hit of a decoded row, if it is wanted.
    pub(crate) fn hit(&self, row: RowNo, pieces: &[Piece]) -> Option<Hit> {
        let places: Vec<Option<Place>> = self.patterns.iter().map(|pattern| pattern.place(pieces)).collect();
        let has: Vec<bool> = places.iter().map(Option::is_some).collect();
        if !possible(&self.tree, &has).1 {
            return None;
        }
        let count = self.counted(&places);
        let first = places.into_iter().flatten().min_by_key(|place| (place.piece, place.bytes.start));
        Some(match first.as_ref().and_then(|place| Some((place, pieces.get(place.piece)?))) {
            Some((place, piece)) => told(row, pieces, place, piece, count),
            None => nowhere(row),
        })
    }

    fn counted(&self, places: &[Option<Place>]) -> usize {
        places.iter().flatten().map(|place| place.count).sum()
    }
}

impl Ready {
    fn place(&self, pieces: &[Piece]) -> Option<Place> {
        let mut first: Option<Place> = None;
        for (i, piece) in pieces.iter().enumerate() {
            if !self.channels.is_empty() && !self.channels.contains(&piece.channel) {
                continue;
            }
            for found in self.matcher.find_iter(&piece.text) {
                let place = first.get_or_insert_with(|| Place { piece: i, bytes: found.range(), count: 0 });
                place.count += 1;
            }
        }
        first
    }
}

fn matcher(pattern: &Pattern) -> Result<Regex, QueryError> {
    if pattern.is_regex && !pattern.ignore_case {
        return Ok(filter::regex(&pattern.text, &(0..pattern.text.len()))?);
    }
    let text = if pattern.is_regex { pattern.text.clone() } else { regex::escape(&pattern.text) };
    let text = if pattern.ignore_case { format!("(?i){text}") } else { text };
    if pattern.is_regex {
        return Ok(filter::regex(&text, &(0..pattern.text.len()))?);
    }
    // A text of kilobytes is allowed, unlike a regex that grows.
    let built = RegexBuilder::new(&text).size_limit(64 << 20).build();
    built.map_err(|error| mistake(pattern, format!("the pattern is too long ({error})")).into())
}

fn tree(wanted: &Wanted, next: &mut usize) -> Tree {
    match wanted {
        Wanted::Has(_) => {
            *next += 1;
            Tree::Has(*next - 1)
        }
        Wanted::All(parts) => Tree::All(parts.iter().map(|part| tree(part, next)).collect()),
        Wanted::Any(parts) => Tree::Any(parts.iter().map(|part| tree(part, next)).collect()),
        Wanted::Not(inner) => Tree::Not(Box::new(tree(inner, next))),
    }
}

/// Whether it can be true if what `has` names may be there and the rest is not; and whether it is true if what
/// `has` names is there.
fn possible(tree: &Tree, has: &[bool]) -> (bool, bool) {
    fn may(tree: &Tree, has: &[bool], wanted: bool) -> bool {
        match (tree, wanted) {
            (Tree::Has(i), true) => has.get(*i).copied().unwrap_or_default(),
            // Its spelling stands there, or not; the decoded text may lack it in any case.
            (Tree::Has(_), false) => true,
            (Tree::Not(inner), wanted) => may(inner, has, !wanted),
            (Tree::All(parts), true) | (Tree::Any(parts), false) => {
                parts.iter().all(|part| may(part, has, wanted))
            }
            (Tree::Any(parts), true) | (Tree::All(parts), false) => {
                parts.iter().any(|part| may(part, has, wanted))
            }
        }
    }
    fn is(tree: &Tree, has: &[bool]) -> bool {
        match tree {
            Tree::Has(i) => has.get(*i).copied().unwrap_or_default(),
            Tree::Not(inner) => !is(inner, has),
            Tree::All(parts) => parts.iter().all(|part| is(part, has)),
            Tree::Any(parts) => parts.iter().any(|part| is(part, has)),
        }
    }
    (may(tree, has, true), is(tree, has))
}

fn told(row: RowNo, pieces: &[Piece], place: &Place, piece: &Piece, count: usize) -> Hit {
    // Several pieces of one channel in one message count on from each other.
    let before: usize = pieces
        .iter()
        .take(place.piece)
        .filter(|other| other.message == piece.message && other.channel == piece.channel)
        .map(|other| other.text.chars().count())
        .sum();
    let text = piece.text.as_str();
    let chars = |range: Range<usize>| text.get(range).unwrap_or_default().chars().count();
    let from = before + chars(0..place.bytes.start);
    let range = from..from + chars(place.bytes.clone());
    let left = text.get(..place.bytes.start).unwrap_or_default();
    let start = left.char_indices().rev().take(AROUND).last().map_or(place.bytes.start, |(at, _)| at);
    // Of a hit that goes on for pages, a line is enough.
    let right = text.get(place.bytes.start..).unwrap_or_default();
    let most = chars(place.bytes.clone()).min(4 * AROUND) + AROUND;
    let end = right.char_indices().nth(most).map_or(text.len(), |(at, _)| place.bytes.start + at);
    Hit {
        row,
        message: piece.message,
        channel: piece.channel,
        range,
        snippet: text.get(start..end).unwrap_or_default().to_owned(),
        in_snippet: place.bytes.start - start..place.bytes.end.min(end) - start,
        count_in_row: count,
    }
}

fn nowhere(row: RowNo) -> Hit {
    Hit {
        row,
        message: 0,
        channel: Channel::System,
        range: 0..0,
        snippet: String::new(),
        in_snippet: 0..0,
        count_in_row: 0,
    }
}
