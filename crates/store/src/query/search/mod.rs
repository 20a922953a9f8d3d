//! Text in bodies: substrings and regular expressions, by channel, at the speed of the disk.
//!
//! Decoding JSON is slow and looking for bytes is fast. So the raw bytes of a file are searched for how a pattern
//! can be spelled in JSON ([`needle`]), on all cores, a few megabytes at a time ([`scan`]); only rows with such a
//! spelling are decoded, and only then it is decided whether the text has the pattern and where ([`confirm`]).
//! Hits are told in the order of rows, with a bounded number of stretches under way.

mod confirm;
mod needle;
mod scan;
mod stretch;

use super::{Choice, Mistake, Query, QueryError};
use crate::catalog::RowNo;
use crate::records::Channel;
use std::ops::{ControlFlow, Range};

/// Text to look for in bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub is_regex: bool,
    pub ignore_case: bool,
    /// Empty for all.
    pub channels: Vec<Channel>,
}

/// Patterns that a rollout must have, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Has(Pattern),
    All(Vec<Wanted>),
    Any(Vec<Wanted>),
    Not(Box<Wanted>),
}

/// A place where a pattern was found. `range` counts characters (Unicode scalar values) in the piece's message
/// text of that channel. A rollout that is wanted for what it does not have gets an empty hit at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub row: RowNo,
    pub message: usize,
    pub channel: Channel,
    pub range: Range<usize>,
    /// Some text around it, and where the hit stands in it (bytes).
    pub snippet: String,
    pub in_snippet: Range<usize>,
    /// Hits in this row; only the first is told in detail.
    pub count_in_row: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub rows_done: u64,
    pub rows: u64,
    pub bytes_done: u64,
    pub bytes: u64,
    /// Rows with a hit.
    pub hits: u64,
}

#[derive(Clone, Debug)]
pub enum Found {
    Hit(Hit),
    Progress(Scanned),
}

impl Query {
    /// Looks through the bodies of a choice, in file order, on all cores, for rollouts that have every pattern.
    /// Stops when `on_found` says so.
    pub fn search(
        &self,
        filter: &str,
        patterns: &[Pattern],
        on_found: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<Scanned, QueryError> {
        let wanted = Wanted::All(patterns.iter().cloned().map(Wanted::Has).collect());
        self.search_for(filter, &wanted, on_found)
    }

    /// The same for any combination of patterns.
    pub fn search_for(
        &self,
        filter: &str,
        wanted: &Wanted,
        on_found: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<Scanned, QueryError> {
        let goal = confirm::Goal::new(wanted)?;
        let choice = Choice { filter: filter.to_owned(), sort: Vec::new() };
        let work = stretch::Work::of(self, &choice)?;
        scan::run(self.catalog(), &goal, &work, on_found)
    }
}

impl Wanted {
    /// Patterns in the order in which they stand.
    fn patterns(&self) -> Vec<&Pattern> {
        match self {
            Self::Has(pattern) => vec![pattern],
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::patterns).collect(),
            Self::Not(inner) => inner.patterns(),
        }
    }
}

fn mistake(pattern: &Pattern, message: String) -> Mistake {
    Mistake { message, at: 0..pattern.text.len(), expected: Vec::new() }
}
